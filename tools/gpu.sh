#!/bin/sh
# Builds the GPU backend for the GPU of this machine and runs one of:
#   test      the suites with label gpu
#   bench     the GPU benches beside cuBLAS; arguments go to bench_gpu_gemm; without any also what `strategies` runs
#   strategies  who works on what, and what it brings: intensity (with ncu's bytes), coarsening, strategies, sharing
#   bits      500 products drawn at random, beside the bits that the H200 gave before (bench/results/nvidia-h200/bits.txt)
#   sanitize  the small suites under compute-sanitizer (memcheck, racecheck, synccheck, initcheck)
# Output: a short table last. With $OUT set, logs and JSON lines go there, else to build/gpu. Needs nvcc, CMake, ninja, a GPU.
set -eu
cd "$(dirname "$0")/.."
what=${1:-test}
[ $# -gt 0 ] && shift
out=${OUT:-build/gpu}
mkdir -p "$out"

. tools/cublas_path.sh

cmake -S . -B build/gpu -G Ninja -DCMAKE_BUILD_TYPE=RelWithDebInfo "-DCMAKE_C_FLAGS_RELWITHDEBINFO=-O3 -g -DNDEBUG" \
  "-DWSGEMM_CUDA_ARCHITECTURES=${WSGEMM_CUDA_ARCHITECTURES:-90a}" >"$out/cmake.log"
cmake --build build/gpu >"$out/build.log" 2>&1 || { tail -40 "$out/build.log"; exit 1; }

commit=$(git rev-parse --short HEAD 2>/dev/null || echo unknown)
strategies() {
  build/gpu/bench/gpu/intensity --json "$out/intensity.jsonl" --commit "$commit" &&
    python3 tools/intensity_bytes.py build/gpu/bench/gpu/intensity "$out/intensity.jsonl" || echo "intensity: exit $?"
  build/gpu/bench/gpu/coarsening --json "$out/coarsening.jsonl" --commit "$commit" >"$out/coarsening.txt" || echo "coarsening: exit $?"
  build/gpu/bench/gpu/strategies --json "$out/strategies.jsonl" --commit "$commit" || echo "strategies: exit $?"
  build/gpu/bench/gpu/bench_gpu_sharing --json "$out/sharing.jsonl" --commit "$commit" || echo "sharing: exit $?"
}

case $what in
test)
  ctest --test-dir build/gpu -L gpu --output-on-failure "$@" >"$out/test.log" 2>&1 && rc=0 || rc=$?
  grep -E "not so:|worst at|that was" "$out/test.log" | cut -c1-400 | head -40
  grep -E "Test *#|tests passed|tests failed" "$out/test.log"
  exit $rc
  ;;
bench)
  if [ $# -eq 0 ]; then
    strategies
    set -- --suite square,random,skinny,policies
  fi
  build/gpu/bench/gpu/bench_gpu_gemm --json "$out/gemm.jsonl" --commit "$commit" "$@"
  ;;
strategies)
  strategies
  ;;
bits)
  build/gpu/tests/gpu/gpu_record_bits 7 500 >"$out/bits.txt"
  diff bench/results/nvidia-h200/bits.txt "$out/bits.txt" >"$out/bits.diff" && rc=0 || rc=1
  echo "bits: $(grep -c '^>' "$out/bits.diff") of $(wc -l <"$out/bits.txt") lines differ"
  exit $rc
  ;;
sanitize)
  rc=0
  sanitize() { # tool, suite, its cases
    tool=$1 suite=$2
    shift 2
    WSGEMM_TEST_SCALE=${WSGEMM_TEST_SCALE:-50} compute-sanitizer --tool "$tool" --error-exitcode 9 \
      "build/gpu/tests/gpu/test_gpu_$suite" "$@" >"$out/$tool.log" 2>&1 || rc=1
    echo "$tool, $suite $*: $(tail -1 "$out/$tool.log")"
  }
  for tool in memcheck racecheck synccheck initcheck; do
    sanitize $tool gemm edges_exact nothing_added batches
    sanitize $tool split callers_workspace
    sanitize $tool half batches ways_of_copying
    sanitize $tool slices exact
    sanitize $tool complex_slices exact
    sanitize $tool packed marked
    # Not under racecheck: it does not follow a barrier of 128 threads to the mbarrier on which one of them then arrives, and so calls every
    # ring of items that is gone round (gemm_wgmma.cuh) a race; the products of the other suites are too small for that.
    [ $tool = racecheck ] || sanitize $tool tuning bits_before_and_after
  done
  exit $rc
  ;;
*)
  echo "usage: sh tools/gpu.sh test|bench|strategies|bits|sanitize" >&2
  exit 2
  ;;
esac
