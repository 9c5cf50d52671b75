#!/bin/sh
# libwsgemm_cublas as a process loads it, without a GPU: what it exports and needs; preloaded under a program that links cuBLAS, under
# plug-ins that are loaded into scopes of their own, and under two versions of cuBLAS at once; what it writes.
#   process.sh LIBRARY SOURCE_DIR FOLDER    FOLDER: of the programs that CMake made
set -eu
library=$1 source=$2 folder=$3
. "$source/tests/support/expect.sh"
unset WSGEMM_CUBLAS WSGEMM_CUBLAS_SUMMARY WSGEMM_CUBLAS_FILE LD_PRELOAD || true
scratch=$folder/process
rm -rf "$scratch"
mkdir -p "$scratch"

# ---- symbols ----
{
  sed -n 's/^BOTH(\([A-Za-z0-9_]*\),.*/\1\n\1_64/p' "$source/src/cublas/routines.def"
  printf '%s\n' cublasLtMatmul cublasCreate_v2 cublasDestroy_v2 cublasSetStream_v2 cublasSetWorkspace_v2 cublasLtCreate cublasLtDestroy
} | sort >"$scratch/wanted"
nm -D --defined-only "$library" | awk '{print $3}' | sort >"$scratch/exported"
[ "$(grep -c . "$scratch/wanted")" -gt 70 ] || fail "found few routines"
diff "$scratch/wanted" "$scratch/exported" >&2 || fail "exported (right) is not what routines.def has (left)"
if readelf -d "$library" | grep NEEDED | grep -i -E 'libcu|libnv'; then fail "it links CUDA"; fi
readelf -d "$library" | grep -q NODELETE || fail "it may be unloaded"

# ---- a program that links cuBLAS ----
expect 'products of cuBLAS: 2' "$folder/cublas_program"
for setting in '' on off all log bad; do
  expect 'products of cuBLAS: 2' env LD_PRELOAD="$library" WSGEMM_CUBLAS=$setting "$folder/cublas_program"
done
summary() {
  env LD_PRELOAD="$library" WSGEMM_CUBLAS_SUMMARY=1 "$@" 2>&1 | sed 's/\[[0-9]*\]//'
}
expect 'wsgemm_cublas: cublasSgemm_v2: 2 calls, 0 taken, 1 passed on (cuBLAS is as fast), 1 passed on (not device memory)' \
  summary "$folder/cublas_program"
expect 'wsgemm_cublas: cublasSgemm_v2: 2 calls, 0 taken, 2 passed on (not device memory)' summary env WSGEMM_CUBLAS=all "$folder/cublas_program"
expect 'wsgemm_cublas: cublasSgemm_v2: 2 calls, 0 taken, 2 passed on (switched off)' summary env WSGEMM_CUBLAS=off "$folder/cublas_program"
expect 'wsgemm_cublas: cublasSgemm_v2 f32 NN 4096x4096x4096 batch=1: passed on: not device memory' \
  summary env WSGEMM_CUBLAS=on,log "$folder/cublas_program"
env LD_PRELOAD="$library" WSGEMM_CUBLAS=log WSGEMM_CUBLAS_FILE="$scratch/log" "$folder/cublas_program" >"$scratch/output" 2>&1
[ "$(cat "$scratch/output")" = 'products of cuBLAS: 2' ] || fail "a file for the log, and still output"
[ "$(grep -c 'cublasSgemm_v2 f32' "$scratch/log")" = 2 ] || fail "no log in the file"

# ---- plug-ins ----
one=$folder/libcublas_plugin13.so two=$folder/libcublas_plugin12.so
expect 'plug-in 1: products of its own cuBLAS: 2
plug-in 1: products of its own cuBLAS: 2' env LD_PRELOAD="$library" "$folder/cublas_loader" "$one"
for order in "$one $two" "$two $one"; do
  # shellcheck disable=SC2086 # two words
  expect 'plug-in 1: products of its own cuBLAS: 2
plug-in 2: products of its own cuBLAS: 2
plug-in 1: products of its own cuBLAS: 2
plug-in 2: products of its own cuBLAS: 2' env LD_PRELOAD="$library" "$folder/cublas_loader" $order
done
echo "process.sh: $n_checks checks"
