#!/bin/sh
# NumPy's and SciPy's own tests of linear algebra with libwsgemm_blas preloaded, under Debian's packages, which take their BLAS from
# libblas.so.3 (the wheels of PyPI bring their own). A test that fails is run again without the library, and may fail there, too.
#   numpy.sh LIBRARY SCRATCH_DIR TEST...    TEST: numpy/linalg/tests, scipy/linalg/tests/test_blas.py ...
set -eu
library=$1 scratch=$2
shift 2
python=/usr/bin/python3
packages=/usr/lib/python3/dist-packages
for module in numpy scipy pytest hypothesis; do
  [ -e "$packages/$module" ] || {
    echo "skipped: Debian's python3-$module is not installed"
    exit 77
  }
done
mkdir -p "$scratch"
cd "$scratch"
# LAPACK: the reference one. OpenBLAS's would call its own Level 3.
LD_LIBRARY_PATH=/usr/lib/$(gcc -print-multiarch 2>/dev/null || dpkg-architecture -qDEB_HOST_MULTIARCH)/lapack
export LD_LIBRARY_PATH PYTHONNOUSERSITE=1 PYTHONDONTWRITEBYTECODE=1
unset PYTHONPATH PYTHONHOME VIRTUAL_ENV || true

run() { # FILE, then tests: their verdicts go into FILE
  out=$1
  shift
  "$python" -m pytest -q -rfE -p no:cacheprovider -W ignore -m 'not slow' "$@" >"$out" 2>&1 || true
}

tests=
for test in "$@"; do tests="$tests $packages/$test"; done
# shellcheck disable=SC2086 # a list of files
WSGEMM_BLAS_LOG=1 LD_PRELOAD="$library" run ours.log $tests
grep '^wsgemm_blas' ours.log | sed 's/wsgemm_blas\[[0-9]*\]: /  /' || true
grep -E '(passed|failed).* in [0-9]' ours.log || {
  tail -n 20 ours.log
  exit 1
}
calls=$(awk '/^wsgemm_blas/ { n += $3 } END { print n + 0 }' ours.log)
[ "$calls" -gt 0 ] || {
  echo "numpy.sh: the library was not called"
  exit 1
}
if grep -q 'was not computed' ours.log; then
  grep 'was not computed' ours.log | sort | uniq -c
  exit 1
fi

failed=$(sed -n 's/^\(FAILED\|ERROR\) \([^ ]*\).*/\2/p' ours.log | sort -u)
[ -n "$failed" ] || exit 0
cd / # test names are relative to where pytest was started
ids=$(cd "$scratch" && for name in $failed; do printf '%s ' "$(realpath -m "${name%%::*}")::${name#*::}"; done)
cd "$scratch"
# shellcheck disable=SC2086
run system.log $ids
verdict=0
for name in $failed; do
  grep -qF "${name##*/}" system.log && echo "fails with the system's BLAS, too: $name" && continue
  echo "fails with libwsgemm_blas only: $name"
  verdict=1
done
exit $verdict
