# To be sourced: puts cuBLAS, the toolkit's or else the one that a Python package brought, into LD_LIBRARY_PATH.
for lib in "${CUDA_HOME:-/usr/local/cuda}/lib64" \
  $(python3 -c 'import glob, site; print(*[d for s in site.getsitepackages() for d in glob.glob(s + "/nvidia/*/lib")])' 2>/dev/null); do
  ls "$lib"/libcublas.so.1? >/dev/null 2>&1 && LD_LIBRARY_PATH=$lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
done
export LD_LIBRARY_PATH="${LD_LIBRARY_PATH:-}"
