#!/bin/sh
# Builds wsgemm for 64-bit Arm and runs its tests under qemu-user: the NEON kernels on a machine that has none.
#   neon.sh SOURCE_DIR SCRATCH_DIR
# SCRATCH_DIR keeps the build, so that a second run compiles only what changed.
set -eu
source=$1 scratch=$2
for tool in aarch64-linux-gnu-gcc qemu-aarch64; do
  command -v $tool >/dev/null || {
    echo "skipped: no $tool"
    exit 77
  }
done
if ! {
  cmake -S "$source" -B "$scratch" -G Ninja -DCMAKE_BUILD_TYPE=Release \
    -DCMAKE_TOOLCHAIN_FILE="$source/tools/package/aarch64-linux-gnu.cmake" && cmake --build "$scratch" -j "$(nproc)"
} >"$scratch.log" 2>&1; then
  cat "$scratch.log" >&2
  exit 1
fi
# The emulator runs Arm code under this machine's memory order and its own memory map, so what tests threads, forks, failing system calls
# and huge mappings would show nothing new, at twenty times the cost (and the huge mappings take all memory); nor would what tests
# the command, files of tuning, the choice of a plan by its times, or models of tensor cores.
exec ctest --test-dir "$scratch" --output-on-failure --no-tests=error --parallel "$(nproc)" \
  --exclude-regex '^(autotune|bits|cancel|cli_[a-z_]+|faults|first_use|fork|fuzz_tuning|huge|level3_(bits|faults|huge)|load|loader|openmp|stack|tensor_core|threads|trsm[.](bits|forked)|tune|tuned[.]candidates|tuning_[a-z0-9_]+|workers)([.]|$)'
