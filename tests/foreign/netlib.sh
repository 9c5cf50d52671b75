#!/bin/sh
# Netlib's Level 3 testers on libwsgemm_blas: results, argument errors, unused parts of arrays.
#   netlib.sh fortran|cblas LETTER LIBRARY SCRATCH_DIR SIZES...
# LETTER: s d c z. SIZES: a text of up to 9 matrix sizes, 0 .. 65, for each run. The testers are built here, from LAPACK's sources (tools/lapack_source.sh).
set -eu
interface=$1 letter=$2 library=$3 scratch=$4
shift 4
source=$(cd "$(dirname "$0")/../.." && pwd)/build/foreign/lapack
for tool in gfortran cc; do
  command -v $tool >/dev/null || {
    echo "skipped: no $tool"
    exit 77
  }
done
[ -e "$source/BLAS/TESTING/sblat3.f" ] || {
  echo "skipped: no LAPACK sources (sh tools/lapack_source.sh)"
  exit 77
}
mkdir -p "$scratch"
cd "$scratch"
libs="$library -Wl,-rpath,$(dirname "$library")"

if [ "$interface" = fortran ]; then
  # shellcheck disable=SC2086 # a list of options
  gfortran -w -O1 "$source/BLAS/TESTING/${letter}blat3.f" -o tester $libs
  given=$source/BLAS/TESTING/${letter}blat3.in
else
  for file in "c_${letter}blas3" "c_${letter}3chke" auxiliary c_xerbla; do
    cc -w -O1 -DADD_ -I"$source/CBLAS/include" -c "$source/CBLAS/testing/$file.c" -o "$file.o"
  done
  # shellcheck disable=SC2086
  gfortran -w -O1 "$source/CBLAS/testing/c_${letter}blat3.f" ./*.o -o tester $libs
  given=$source/CBLAS/testing/${letter}in3
fi

n_routines=6
case "$letter" in c | z) n_routines=9 ;; esac
# Each routine passes once for its errors and once for its results, through CBLAS in both layouts.
n_passed=$((n_routines * 2))
if [ "$interface" = cblas ]; then n_passed=$((n_routines * 3)); fi

verdict=0
for sizes in "$@"; do
  # Its own input, with our sizes in the place of its own.
  awk -v sizes="$sizes" '/NUMBER OF VALUES OF N/ { print split(sizes, each) "  NUMBER OF VALUES OF N"; next }
    /VALUES OF N *$/ { print sizes "  VALUES OF N"; next } { print }' "$given" >input
  rm -f ./*.out ./*.SNAP
  ./tester <input >log 2>&1 || verdict=1
  # The Fortran tester writes into a file.
  cat ./*blat3.out >>log 2>/dev/null || true
  echo "sizes $sizes: $(grep -c 'PASSED THE' log) passes of $n_passed"
  if grep -E 'FAIL|\*\*\*\*|ABANDON|FATAL' log || [ "$(grep -c 'PASSED THE' log)" -ne $n_passed ]; then
    verdict=1
  fi
done
exit $verdict
