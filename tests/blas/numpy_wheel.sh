#!/bin/sh
# Runs numpy_wheel.py with a Python that has NumPy: that of .venv (made by tools/setup.sh), the one that WSGEMM_TEST_PYTHON names, or
# python3.
#   numpy_wheel.sh SOURCE_DIR LIBRARY
set -eu
source=$1 library=$2
for python in "${WSGEMM_TEST_PYTHON:-$source/.venv/bin/python}" python3; do
  if "$python" -c 'import numpy' 2>/dev/null; then exec "$python" -B "$source/tests/blas/numpy_wheel.py" "$library"; fi
done
echo "skipped: no Python with NumPy; tools/setup.sh installs it"
exit 77
