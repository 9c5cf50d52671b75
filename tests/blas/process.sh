#!/bin/sh
# libwsgemm_blas as a process loads it: what it exports and needs; linked, preloaded, as libblas.so.3; without another BLAS; its
# messages; limits of threads in the environment; what threadpoolctl makes of it.
#   process.sh LIBRARY SOURCE_DIR SCRATCH_DIR C_COMPILER
set -eu
library=$1 source=$2 scratch=$3 cc=$4
. "$source/tests/support/expect.sh"
rm -rf "$scratch"
mkdir -p "$scratch/as_libblas"
cd "$scratch"
unset WSGEMM_BLAS_LIBRARY WSGEMM_BLAS64_LIBRARY WSGEMM_BLAS_LOG OMP_NUM_THREADS OPENBLAS_NUM_THREADS GOTO_NUM_THREADS LD_PRELOAD LD_LIBRARY_PATH || true

# ---- symbols ----
sed -n 's/^ROUTINE(\([a-z0-9_]*\),.*/\1_ \1_64_ cblas_\1 cblas_\1_64/p' "$source/src/blas/routines.def" | tr ' ' '\n' >wanted
sed -n 's/^FORWARD(\([a-z0-9_]*\))/\1 \164_/p; s/^FORWARD_CBLAS(\([a-z0-9_]*\))/\1 \1_64/p' "$source/src/blas/forward.def" |
  tr ' ' '\n' >>wanted
for letter in s d c z; do printf '%s\n' "${letter}laswp_" "${letter}laswp_64_"; done >>wanted
cat >>wanted <<'END'
xerbla_
xerbla_64_
cblas_xerbla
cblas_xerbla_64
RowMajorStrg
CBLAS_CallFromC
wsgemm_blas_version
openblas_set_num_threads
openblas_set_num_threads_
openblas_set_num_threads_local
openblas_get_num_threads
openblas_get_num_threads_
openblas_get_num_procs
openblas_get_num_procs_
openblas_get_parallel
openblas_get_parallel_
openblas_get_config
openblas_get_corename
goto_set_num_threads
goto_set_num_threads_
END
for x in s d c z; do printf 'scipy_cblas_%sgemm64_\nscipy_cblas_%ssyrk64_\n' "$x" "$x"; done >>wanted # NumPy's wheels
LC_ALL=C sort -o wanted wanted
nm -D --defined-only "$library" | awk '{ print $3 }' | LC_ALL=C sort >exported
diff wanted exported >difference || fail "wanted (<), exported (>): $(cat difference)"
foreign=$(readelf -d "$library" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p' | grep -Ev '^(libwsgemm|libc|libm|libpthread|libdl)\.so\.|^ld-linux' || true)
[ -z "$foreign" ] || fail "the library needs $foreign"
# All that Debian's reference BLAS exports is here, so a program that was linked to it finds everything.
multiarch=$("$cc" -print-multiarch)
reference=/usr/lib/$multiarch/blas/libblas.so.3
if [ -e "$reference" ]; then
  nm -D --defined-only "$reference" | awk '{ print $3 }' | LC_ALL=C sort >reference
  missing=$(LC_ALL=C comm -23 reference exported | tr '\n' ' ')
  [ -z "$missing" ] || fail "the reference BLAS has, and this library lacks $missing"
fi

# ---- linked, preloaded, as libblas.so.3 ----
"$cc" -o linked "$source/tests/blas/program.c" "$library" "-Wl,-rpath,$(dirname "$library")"
result='dgemm 10 14 14 20
ddot 5'
expect "$result" ./linked both
# An alternative: the file, by way of a link in another folder; it must not find itself.
cp -L "$library" libopenblas_wsgemm.so.0
ln -s ../libopenblas_wsgemm.so.0 as_libblas/libblas.so.3
system=
for file in "/usr/lib/$multiarch/openblas-pthread/libblas.so.3" "$reference"; do
  [ -e "$file" ] || continue
  system=$file
  "$cc" -o for_libblas "$source/tests/blas/program.c" "$file"
  expect "$result" ./for_libblas both
  expect "$result" env LD_PRELOAD="$library" ./for_libblas both
  expect "$result" env LD_LIBRARY_PATH=as_libblas ./for_libblas both
  expect "$result" env LD_LIBRARY_PATH=as_libblas LD_PRELOAD="$library" ./for_libblas both
  for way in LD_PRELOAD="$library" LD_LIBRARY_PATH=as_libblas; do
    env "$way" WSGEMM_BLAS_LOG=1 ./for_libblas both 2>&1 | grep -q 'wsgemm_blas\[[0-9]*\]: dgemm: 1 calls, 8 multiply-adds' ||
      fail "$way: dgemm was not taken"
  done
  n_checks=$((n_checks + 2))
done
[ -n "$system" ] || echo "no BLAS of the system: not tried as preload and as libblas.so.3"

# ---- without another BLAS ----
for nothing in /nonexistent.so "$PWD/libopenblas_wsgemm.so.0"; do
  rc=0
  said=$(WSGEMM_BLAS_LIBRARY=$nothing ./linked both 2>&1) || rc=$?
  [ $rc -eq 127 ] || fail "without another BLAS the exit status is $rc"
  case "$said" in *"wsgemm_blas: no ddot_: WSGEMM_BLAS_LIBRARY=$nothing is not a BLAS that can be loaded"*) ;; *) fail "said: $said" ;; esac
  expect 'dgemm 10 14 14 20' env WSGEMM_BLAS_LIBRARY="$nothing" ./linked level3
  n_checks=$((n_checks + 1))
done

# ---- Level 1 and 2 with 64-bit integers ----
# Of a BLAS whose names have the suffix, of the other BLAS itself if it has such names, of one whose names have none; and of none.
cat >libsuffixed.c <<'END'
double ddot_64_(const long long *n) { return *n == (1LL << 40) + 2 ? 64 : -1; }
double cblas_ddot_64(long long n) { return n == (1LL << 40) + 2 ? 640 : -1; }
double ddot_(const int *n) { return *n == 2 ? 32 : -1; }
void daxpy_(void) {}
void daxpy_64_(void) {}
END
"$cc" -shared -fPIC -o libsuffixed.so libsuffixed.c
"$cc" -shared -fPIC -x c -o libplain.so - <<'END'
double ddot_(const long long *n) { return *n == (1LL << 40) + 2 ? 65 : -1; }
double cblas_ddot(long long n) { return n == (1LL << 40) + 2 ? 650 : -1; }
void daxpy_(void) {}
END
"$cc" -shared -fPIC -x c -o libnarrow.so - <<'END'
double ddot_(const int *n) { return *n == 2 ? 32 : -1; }
void daxpy_(void) {}
END
sed 's/^double cblas_ddot_64/double cblas_ddot64_/' libsuffixed.c | "$cc" -shared -fPIC -x c -o libopenblas_suffixed.so -
narrow=$PWD/libnarrow.so
expect 'ddot 32
ddot_64 64 640' env WSGEMM_BLAS_LIBRARY="$PWD/libsuffixed.so" WSGEMM_BLAS64_LIBRARY="$PWD/libplain.so" ./linked level1_64
expect 'ddot 32
ddot_64 64 640' env WSGEMM_BLAS_LIBRARY="$narrow" WSGEMM_BLAS64_LIBRARY="$PWD/libsuffixed.so" ./linked level1_64
expect 'ddot 32
ddot_64 64 640' env WSGEMM_BLAS_LIBRARY="$narrow" WSGEMM_BLAS64_LIBRARY="$PWD/libopenblas_suffixed.so" ./linked level1_64
expect 'ddot 32
ddot_64 65 650' env WSGEMM_BLAS_LIBRARY="$narrow" WSGEMM_BLAS64_LIBRARY="$PWD/libplain.so" ./linked level1_64
for nothing in /nonexistent.so "$PWD/libopenblas_wsgemm.so.0"; do
  rc=0
  said=$(WSGEMM_BLAS_LIBRARY=$narrow WSGEMM_BLAS64_LIBRARY=$nothing ./linked level1_64 2>&1) || rc=$?
  [ $rc -eq 127 ] || fail "without a BLAS of 64-bit integers the exit status is $rc"
  case "$said" in *"wsgemm_blas: no ddot_64_: WSGEMM_BLAS64_LIBRARY=$nothing is not a BLAS"*) ;; *) fail "said: $said" ;; esac
  n_checks=$((n_checks + 1))
done
system64=/usr/lib/$multiarch/libblas64.so.3
if [ -e "$system64" ]; then
  expect 'ddot_64 5 5' ./linked small_64
else
  echo "no $system64: not tried with Debian's"
fi

# ---- messages, limits ----
expect ' ** On entry to DGEMM parameter number  4 had an illegal value' ./linked errors
expect 'Parameter 11 to routine cblas_dgemm was incorrect' ./linked errors
expect 'Parameter 4 to routine cblas_dgemm was incorrect' ./linked errors
expect 'wsgemm_blas: dgemm was not computed: a pointer that would be read or written is NULL or in the wrong memory: a is NULL' ./linked null
expect 'c 5' ./linked null
expect 'threads 1' env OMP_NUM_THREADS=1 ./linked threads
expect 'threads 1' env OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=7 ./linked threads
default=$(./linked threads)
expect "$default" env OMP_NUM_THREADS=1000 ./linked threads
expect "$default" env OMP_NUM_THREADS=1 WSGEMM_NUM_THREADS=256 ./linked threads

# ---- threadpoolctl ----
python=${WSGEMM_TEST_PYTHON:-$source/.venv/bin/python}
if "$python" -c 'import threadpoolctl' 2>/dev/null; then
  cat >limits.py <<'END'
import ctypes, sys, threadpoolctl
library = ctypes.CDLL(sys.argv[1])
mine = lambda: [i for i in threadpoolctl.threadpool_info() if i["filepath"].endswith("libopenblas_wsgemm.so.0")]
assert len(mine()) == 1, threadpoolctl.threadpool_info()
before = mine()[0]["num_threads"]
with threadpoolctl.threadpool_limits(1, user_api="blas"):
    print("limited to", mine()[0]["num_threads"], library.openblas_get_num_threads())
print("then", mine()[0]["num_threads"] == before, mine()[0]["internal_api"], mine()[0]["architecture"] != "unknown")
END
  expect 'limited to 1 1
then True openblas True' env LD_LIBRARY_PATH="$(dirname "$library")" "$python" limits.py "$PWD/libopenblas_wsgemm.so.0"
else
  echo "no threadpoolctl: not tried"
fi
echo "$n_checks checks"
