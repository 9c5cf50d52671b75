#!/bin/sh
# What CMake says of the GPU part: that it is built and for which GPUs, or why it is not; and its tests are there in each case.
# Configures only, with an nvcc and an nvidia-smi that answer nothing but what is asked here.
#   gpu_part.sh SOURCE_DIR SCRATCH_DIR C_COMPILER
set -eu
source=$1 scratch=$2 cc=$3
rm -rf "$scratch"
mkdir -p "$scratch/cuda/bin" "$scratch/cuda/include" "$scratch/smi" "$scratch/tools"
unset CUDA_HOME || true

fail() {
  echo "gpu_part.sh: $*" >&2
  exit 1
}

program() { # PATH TEXT: a program that prints the text
  printf '#!/bin/sh\ncat <<"END"\n%s\nEND\n' "$2" >"$1"
  chmod +x "$1"
}
for tool in cmake ninja sh cat as ld ar nm ranlib strip readelf uname; do # a PATH without this machine's own nvcc and nvidia-smi
  ln -s "$(command -v $tool)" "$scratch/tools/$tool"
done
nvcc=$scratch/cuda/bin/nvcc

# said WORDS... -- ARGUMENTS...: configures, and the line on the GPU part holds all the words.
n_configured=0
said() {
  n_configured=$((n_configured + 1))
  words=
  while [ "$1" != -- ]; do
    words="$words$1
"
    shift
  done
  shift
  build=$scratch/$n_configured
  PATH=$scratch/smi:$scratch/tools cmake -S "$source" -B "$build" -G Ninja -DCMAKE_C_COMPILER="$cc" \
    "-DCMAKE_IGNORE_PATH=/usr/local/cuda/bin;/usr/local/bin;/usr/bin;/bin" -DWSGEMM_BUILD_BENCH=OFF "$@" >"$build.log" 2>&1 || true
  line=$(tr '\n' ' ' <"$build.log" | sed 's/  */ /g; s/-- wsgemm: GPU part/\n&/g; s/CMake Error/\n&/g' | sed -n 's/^\(-- wsgemm: GPU part\|CMake Error\)/\1/p' | sed 's/ -- .*//')
  [ "$(printf '%s\n' "$line" | wc -l)" -eq 1 ] || fail "not one line: $line"
  printf '%s' "$words" | while read -r word; do
    case "$line" in
      *"$word"*) ;;
      *) fail "'$word' is not in: $line" ;;
    esac
  done
}
no_tests=-DWSGEMM_BUILD_TESTS=OFF

said "not built" "no nvcc in PATH" "install the CUDA toolkit, 12.8 or later" "-DWSGEMM_NVCC=" --
ctest --test-dir "$build" -R '^(backend_host|gpu_gemm|gpu_python)$' -V >"$build.tests" || fail "ctest: $(cat "$build.tests")"
[ "$(grep -c 'Skipped' "$build.tests")" -ge 3 ] || fail "no skipped tests: $(cat "$build.tests")"
grep -q 'skipped: the GPU part is not built: there is no nvcc' "$build.tests" || fail "no reason: $(cat "$build.tests")"

said "not built" "WSGEMM_CUDA is OFF" "-DWSGEMM_CUDA=ON" -- -DWSGEMM_CUDA=OFF $no_tests

program "$nvcc" "Cuda compilation tools, release 11.8, V11.8.89"
said "not built" "CUDA 11.8" "12.8 or later" -- "-DWSGEMM_NVCC=$nvcc" $no_tests
program "$nvcc" "Cuda compilation tools, release 12.8, V12.8.61"
said "not built" "$scratch/cuda/include/cuda.h" -- "-DWSGEMM_NVCC=$nvcc" $no_tests
: >"$scratch/cuda/include/cuda.h"
said "built for 80 90a 100a 120a" "native" "CUDA 12.8" -- "-DWSGEMM_NVCC=$nvcc" $no_tests
said "built for 80 90a (as asked for)" -- "-DWSGEMM_NVCC=$nvcc" "-DWSGEMM_CUDA_ARCHITECTURES=80;90a" $no_tests
said "built for 80 90a 100a 120a" "no GPU" -- "-DWSGEMM_NVCC=$nvcc" -DWSGEMM_CUDA_ARCHITECTURES=native $no_tests
said "CMake Error" "'9.0' is no GPU architecture" "80;90a" -- "-DWSGEMM_NVCC=$nvcc" -DWSGEMM_CUDA_ARCHITECTURES=9.0 $no_tests
program "$scratch/smi/nvidia-smi" "9.0
9.0
8.6
7.5"
said "built for 90a 80 (this machine's GPUs)" -- "-DWSGEMM_NVCC=$nvcc" -DWSGEMM_CUDA_ARCHITECTURES=native $no_tests
echo "$n_configured configurations, each with its line"
