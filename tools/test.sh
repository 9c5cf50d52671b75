#!/bin/sh
# Sets up, builds, and runs tests; those that cannot run on this machine are shown as skipped.
#   test.sh         all but those with the label `long`: some minutes
#   test.sh smoke   a look at everything: half a minute
#   test.sh all     all of them
# CTest runs them (C, command, packaging, Python, NEON under an emulator), so its closing lines come last and its exit code is this
# one's. Where there is a GPU its part is built for it alone, in less time; WSGEMM_CUDA_ARCHITECTURES=all in the environment: for all.
set -eu
cd "$(dirname "$0")/.."
case "${1:-}" in
  '') set -- --label-exclude '^long$' ;;
  smoke) set -- --label-regex '^smoke$' ;;
  all) set -- ;;
  *)
    echo "test.sh: '$1' is neither smoke nor all" >&2
    exit 2
    ;;
esac
sh tools/setup.sh test

# OpenBLAS is a reference here: it must choose its kernels by itself.
# shellcheck disable=SC2046 # a list of names
unset $(env | sed -n 's/^\(OPENBLAS_[A-Z0-9_]*\)=.*/\1/p')

cmake --preset release "-DWSGEMM_CUDA_ARCHITECTURES=${WSGEMM_CUDA_ARCHITECTURES:-native}"
cmake --build --preset release --parallel "$(nproc)"
exec ctest --preset release --parallel "$(nproc)" "$@"
