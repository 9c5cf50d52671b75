#!/bin/sh
# Sets up, builds, and runs every test that can run on this machine; those that cannot are shown as skipped. CTest runs them
# all (C, command, packaging, Python, NEON under an emulator), so its closing lines come last and its exit code is this one's.
set -eu
cd "$(dirname "$0")/.."
sh tools/setup.sh

# OpenBLAS is a reference here: it must choose its kernels by itself.
# shellcheck disable=SC2046 # a list of names
unset $(env | sed -n 's/^\(OPENBLAS_[A-Z0-9_]*\)=.*/\1/p')

cmake --preset release
cmake --build --preset release
exec ctest --preset release --parallel "$(nproc)"
