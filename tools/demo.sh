#!/bin/sh
# Shows wsgemm at work on this machine: sets up, builds, multiplies .npy matrices that NumPy wrote, on the CPU and on a GPU if there is
# one, has every product verified by wsgemm and compared by NumPy, then shows the speed beside OpenBLAS and cuBLAS. Takes a few minutes
# the first time; writes to build/demo and .venv only.
set -eu
cd "$(dirname "$0")/.."
sh tools/setup.sh demo

# OpenBLAS must choose its kernels by itself, or the comparison would flatter.
# shellcheck disable=SC2046 # a list of names
unset $(env | sed -n 's/^\(OPENBLAS_[A-Z0-9_]*\)=.*/\1/p')

demo=build/demo/matrices
mkdir -p "$demo"
# The GPU part takes minutes to build: only for the GPUs of this machine, and not at all where there is none.
if nvidia-smi -L >build/demo/gpus 2>&1; then cuda=ON; else cuda=OFF; fi
cmake --preset demo -DWSGEMM_CUDA=$cuda >build/demo/cmake.log 2>&1 || {
  cat build/demo/cmake.log >&2
  exit 1
}
[ $cuda = OFF ] || sed -n 's/^-- wsgemm: //p' build/demo/cmake.log
cmake --build --preset demo --target wsgemm_cli
wsgemm=build/demo/wsgemm

title() { printf '\n== %s\n' "$*"; }
show() { # runs a command and shows it
  printf '$ %s\n' "$*"
  "$@"
}

title "Matrices, written by NumPy"
.venv/bin/python tools/package/demo_matrices.py make "$demo"

products() { # products PREFIX [--gpu]: the files PREFIX_x.npy
  c=$demo/$1
  shift
  show $wsgemm gemm "$demo/A_f4.npy" "$demo/B_f4.npy" -o "${c}_f4.npy" --verify "$@"
  show $wsgemm gemm "$demo/A_f8.npy" "$demo/B_f8.npy" -o "${c}_f8.npy" --transb t --alpha 0.5 --verify "$@"
  show $wsgemm gemm "$demo/A_c8.npy" "$demo/B_c8.npy" -o "${c}_c8.npy" --transa c --verify "$@"
  show $wsgemm gemm "$demo/A_c16.npy" "$demo/B_c16.npy" -o "${c}_c16.npy" --c "$demo/C0_c16.npy" --beta 1j --verify "$@"
}

title "Products, by wsgemm; --verify recomputes them in higher precision"
products C

title "The same products, by NumPy"
.venv/bin/python tools/package/demo_matrices.py compare "$demo" C

if why=$($wsgemm gemm "$demo/A_f4.npy" "$demo/B_f4.npy" --gpu --explain 2>&1); then
  has_gpu=yes
  title "A GPU"
  $wsgemm doctor | grep -A1 ' gpu '
  title "The same products, on the GPU"
  products G --gpu
  title "Compared with the CPU's"
  .venv/bin/python tools/package/demo_matrices.py compare "$demo" G C
else
  has_gpu=no
  [ $cuda = ON ] || why="nvidia-smi finds none on this machine"
  title "No GPU: ${why#wsgemm: --gpu: }"
fi

title "Speed beside OpenBLAS, one process, arms in turn"
show $wsgemm bench --suite demo --allow-slow-peer

if [ $has_gpu = yes ]; then
  title "Speed on the GPU beside cuBLAS, one process, arms in turn"
  cmake --build --preset demo --target bench_gpu_gemm
  . tools/cublas_path.sh
  show build/demo/bench/gpu/bench_gpu_gemm --suite demo
fi
