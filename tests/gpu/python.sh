#!/bin/sh
# Products and Level 3 calls of torch, cupy, jax and numba arrays on the GPU, by the Python package of the sources over a library that is built already.
#   python.sh SOURCE_DIR LIBRARY
# Uses python3, or the Python that WSGEMM_TEST_GPU_PYTHON names: one with pytest and any of those packages.
set -eu
source=$1
export WSGEMM_LIBRARY="$2" PYTHONPATH="$source/python"
# JAX would take most of the GPU's memory at once.
export XLA_PYTHON_CLIENT_PREALLOCATE=false
python=${WSGEMM_TEST_GPU_PYTHON:-python3}
"$python" -c 'import numpy, hypothesis, pytest' 2>/dev/null || {
  echo "skipped: $python lacks numpy, hypothesis or pytest"
  exit 77
}
cd "$source/python/tests"
exec "$python" -B -m pytest -q -c /dev/null --rootdir . -p no:cacheprovider test_device.py test_device_level3.py
