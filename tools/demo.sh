#!/bin/sh
# Shows wsgemm at work on this machine: sets up, builds, multiplies .npy matrices that NumPy wrote, has every product verified by
# wsgemm and compared by NumPy, then shows the speed beside OpenBLAS. Takes a few minutes the first time; writes to build/ only.
set -eu
cd "$(dirname "$0")/.."
sh tools/setup.sh

# OpenBLAS must choose its kernels by itself, or the comparison would flatter.
# shellcheck disable=SC2046 # a list of names
unset $(env | sed -n 's/^\(OPENBLAS_[A-Z0-9_]*\)=.*/\1/p')

cmake --preset release >/dev/null
cmake --build --preset release --target wsgemm_cli
wsgemm=build/release/wsgemm
demo=build/demo
mkdir -p "$demo"

title() { printf '\n== %s\n' "$*"; }
show() { # runs a command and shows it
  printf '$ %s\n' "$*"
  "$@"
}

title "Matrices, written by NumPy"
.venv/bin/python tools/package/demo_matrices.py make "$demo"

title "Products, by wsgemm; --verify recomputes them in higher precision"
show $wsgemm gemm "$demo/A_f4.npy" "$demo/B_f4.npy" -o "$demo/C_f4.npy" --verify
show $wsgemm gemm "$demo/A_f8.npy" "$demo/B_f8.npy" -o "$demo/C_f8.npy" --transb t --alpha 0.5 --verify
show $wsgemm gemm "$demo/A_c8.npy" "$demo/B_c8.npy" -o "$demo/C_c8.npy" --transa c --verify
show $wsgemm gemm "$demo/A_c16.npy" "$demo/B_c16.npy" -o "$demo/C_c16.npy" --c "$demo/C0_c16.npy" --beta 1j --verify

title "The same products, by NumPy"
.venv/bin/python tools/package/demo_matrices.py compare "$demo"

title "Speed beside OpenBLAS, one process, arms in turn"
show $wsgemm bench --suite demo
