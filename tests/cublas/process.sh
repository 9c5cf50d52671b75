#!/bin/sh
# libwsgemm_cublas as a process loads it, without a GPU: what it exports and needs; preloaded under a program that links cuBLAS, under
# plug-ins that are loaded into scopes of their own, under two versions of cuBLAS at once, and under a program that asks dlsym for
# cuBLAS's functions; what it writes.
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
  sed -n 's/^ENTRY(\(.*\))$/\1/p' "$source/src/cublas/entries.def"
  echo dlsym
} | sort >"$scratch/wanted"
nm -D --defined-only "$library" | awk '{print $3}' | sort >"$scratch/exported"
[ "$(grep -c . "$scratch/wanted")" -gt 70 ] || fail "found few routines"
diff "$scratch/wanted" "$scratch/exported" >&2 || fail "exported (right) is not what entries.def has (left)"
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

# ---- a program that opens cuBLAS and asks for its functions ----
thirteen=$folder/fake_cublas13/libcublas.so.13 twelve=$folder/fake_cublas12/libcublas.so.12
file=$(basename "$library")
asked() {
  env LD_PRELOAD="$library" "$@" 2>"$scratch/errors" | sed "s/$file,/OURS,/"
  [ ! -s "$scratch/errors" ] || fail "on stderr: $(cat "$scratch/errors")"
}
"$folder/cublas_asker" "$thirteen" >"$scratch/without"
[ "$(grep -c . "$scratch/without")" = 32 ] || fail "the program alone: $(cat "$scratch/without")"
grep -q '^one, next layer: liblayer_two.so' "$scratch/without" || fail "the program's libraries are not in their order"
# Only what cuBLAS defines and this library, too, is answered otherwise, and nothing if it is off.
asked "$folder/cublas_asker" "$thirteen" >"$scratch/with"
sed '/library.s cublas\(Sgemm\|SetStream\)_v2:/s/: libcublas.so.13,/: OURS,/' "$scratch/without" | diff - "$scratch/with" >&2 ||
  fail "dlsym answers otherwise (right) than it should (left)"
grep -c OURS "$scratch/with" | grep -qx 2 || fail "cuBLAS's own functions"
asked env WSGEMM_CUBLAS=off "$folder/cublas_asker" "$thirteen" | diff "$scratch/without" - >&2 || fail "dlsym's answers with WSGEMM_CUBLAS=off"
n_checks=$((n_checks + 3))
# Before this library's own start.
expect "early: $file" env LD_PRELOAD="$library" ASK_EARLY="$thirteen" "$folder/cublas_asker" "$thirteen"
expect 'early: libcublas.so.13' env LD_PRELOAD="$library" ASK_EARLY="$thirteen" WSGEMM_CUBLAS=off "$folder/cublas_asker" "$thirteen"
expect 'wsgemm_cublas: cublasSgemm_v2: 4 calls, 0 taken, 2 passed on (cuBLAS is as fast), 2 passed on (not device memory)' \
  summary "$folder/cublas_asker" "$thirteen"
for order in "$thirteen $twelve" "$twelve $thirteen"; do
  # shellcheck disable=SC2086 # two words
  expect 'library 1: 2 handles, 4 products, 2 handles ended
library 2: 2 handles, 4 products, 2 handles ended' env LD_PRELOAD="$library" "$folder/cublas_asker" $order
  # shellcheck disable=SC2086
  if env LD_PRELOAD="$library" "$folder/cublas_asker" $order | grep 'of another'; then fail "a handle of another library"; fi
done
echo "process.sh: $n_checks checks"
