#!/bin/sh
# Runs one suite of tests of the command with a Python that has NumPy and pytest.
#   run.sh SOURCE_DIR SUITE COMMAND...
# COMMAND is how `wsgemm` is called, an emulator in front of it if need be. The Python is that of .venv (made by tools/setup.sh),
# or the one that WSGEMM_TEST_PYTHON names, or python3.
set -eu
source=$1 suite=$2
shift 2
WSGEMM_TEST_COMMAND=$*
export WSGEMM_TEST_COMMAND
for python in "${WSGEMM_TEST_PYTHON:-$source/.venv/bin/python}" python3; do
  if "$python" -c 'import numpy, pytest' 2>/dev/null; then
    exec "$python" -B -m pytest -q -p no:cacheprovider -c /dev/null --rootdir "$source/tests/cli" "$source/tests/cli/$suite"
  fi
done
echo "skipped: no Python with NumPy and pytest; tools/setup.sh installs them"
exit 77
