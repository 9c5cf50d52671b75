#!/bin/sh
# Installs the Python package as a user would, by `pip install .`, then runs its tests against the installed wheel.
#   python.sh SOURCE_DIR SCRATCH_DIR
# Uses .venv of the sources, which tools/setup.sh makes; WSGEMM_TEST_PYTHON names another Python that has the test packages.
set -eu
source=$1 scratch=$2
python=${WSGEMM_TEST_PYTHON:-$source/.venv/bin/python}
"$python" -c 'import numpy, hypothesis, pytest, scikit_build_core, threadpoolctl' 2>/dev/null || {
  echo "skipped: $python lacks the test packages; tools/setup.sh installs them"
  exit 77
}
# A library named by hand would be tested in place of the wheel's.
unset WSGEMM_LIBRARY PYTHONPATH || true
rm -rf "$scratch"
mkdir -p "$scratch"
if ! "$python" -m pip install -v --disable-pip-version-check --no-build-isolation --no-deps --force-reinstall \
  --config-settings=cmake.define.WSGEMM_CUDA=OFF "$source" >"$scratch/pip.log" 2>&1; then
  cat "$scratch/pip.log" >&2
  exit 1
fi
for said in 'wsgemm: GPU part not built: WSGEMM_CUDA is OFF' '\[[0-9]*/[0-9]*\] Building C object'; do # pip -v: that, and the progress
  grep -q "$said" "$scratch/pip.log" || {
    echo "pip does not say: $said" >&2
    exit 1
  }
done
cd "$scratch"
# Where pip puts scripts: the tests of the command skip themselves where there is none.
"$("$python" -c 'import sysconfig; print(sysconfig.get_path("scripts"))')/wsgemm" --version
exec "$python" -m pytest -q -c "$source/pyproject.toml" -p no:cacheprovider "$source/python/tests"
