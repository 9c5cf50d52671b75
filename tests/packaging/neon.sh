#!/bin/sh
# Builds wsgemm for 64-bit Arm and runs its tests under qemu-user: the NEON kernels on a machine that has none.
#   neon.sh SOURCE_DIR SCRATCH_DIR --label-exclude|--label-regex
# runs the tests without the label `long` there, or those with it. SCRATCH_DIR keeps the build, so that a second run compiles only what
# changed.
set -eu
source=$1 scratch=$2 which=$3
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
# the command's handling of files and options. A thread of real-time priority waits for the emulator's own locks, which threads without
# a priority hold.
exec ctest --test-dir "$scratch" --output-on-failure --no-tests=error "$which" '^long$' \
  --exclude-regex '^(bits|cancel|faults|first_use|fork|huge|level3_(bits|faults|huge)|load|loader|openmp|stack|threads|trsm[.](bits|forked)|cli_files|cli_commands|workers[.](priorities|real_time_on_one_processor))([.]|$)'
