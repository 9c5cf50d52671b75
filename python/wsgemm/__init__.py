"""wsgemm: matrix multiplication for NumPy arrays, and for CUDA arrays of torch, cupy and others.

>>> import numpy as np
>>> import wsgemm
>>> a = np.arange(6, dtype=np.float32).reshape(2, 3)
>>> b = np.ones((3, 2), dtype=np.float32)
>>> wsgemm.matmul(a, b)
array([[ 3.,  3.],
       [12., 12.]], dtype=float32)

Add to what is there, on at most two threads:

>>> c = np.ones((2, 2), dtype=np.float32)
>>> with wsgemm.num_threads(2):
...     wsgemm.matmul(a, b, out=c, alpha=2, beta=10) is c
True
>>> c
array([[16., 16.],
       [34., 34.]], dtype=float32)

Arrays are float16, float32, float64, complex64 or complex128, or bfloat16 of ml_dtypes (on a GPU
also of torch and jax), and never converted. Products of the half-precision types are summed in
single precision and rounded once. Transposes, slices and stacks are read where they lie if BLAS
can express them. The GIL is released during a product, and the result's bits depend neither on
the number of threads nor on who did which part. Arrays on a GPU are multiplied there, on their
library's current stream: see matmul. What is multiplied there many times can be prepared once:
see prepack. Products that are captured into graphs want memory of their own: see
Handle.workspace. What is fastest for a shape on this machine can be measured, and kept in a file
for later: see autotune.

Symmetric, Hermitian and triangular matrices have routines of their own, with SciPy's arguments:
symm, hemm, syrk, herk, syr2k, her2k, gemmtr, trmm, solve_triangular. Groups of rows with a matrix
each have grouped_matmul. explain and explain_level3 say how a call would be done.
"""

import os

from ._autotune import TuningResult, TuningStep, autotune, clear_tuning, import_tuning, tuning_file, tuning_lines
from ._blas import bgemm, cgemm, dgemm, gemm, hgemm, sgemm, zgemm
from ._grouped import grouped_matmul
from ._handle import Handle, default_handle, num_threads, set_pinned_limit
from ._info import KernelInfo, config, explain, kernel_info, kernels, machine, workspace_size
from ._level3 import explain_level3, gemmtr, hemm, her2k, herk, solve_triangular, symm, syr2k, syrk, trmm
from ._lib import Status, WsgemmError, library
from ._matmul import matmul
from ._packed import Packed
from ._prepack import packed_size, prepack

try:
    from . import _threadpoolctl  # noqa: F401 (registers itself)
except ImportError:  # threadpoolctl is not installed, or too old to be told of other libraries
    pass

if os.environ.get("WSGEMM_OFFLOAD", "off") not in ("", "off"):
    default_handle._heed_signals()

__version__: str = library.wsgemm_version_string().decode()

__all__ = [
    "Handle",
    "KernelInfo",
    "Packed",
    "Status",
    "TuningResult",
    "TuningStep",
    "WsgemmError",
    "autotune",
    "bgemm",
    "cgemm",
    "clear_tuning",
    "config",
    "default_handle",
    "dgemm",
    "explain",
    "explain_level3",
    "gemm",
    "gemmtr",
    "grouped_matmul",
    "hemm",
    "her2k",
    "herk",
    "hgemm",
    "import_tuning",
    "kernel_info",
    "kernels",
    "machine",
    "matmul",
    "num_threads",
    "packed_size",
    "prepack",
    "set_pinned_limit",
    "sgemm",
    "solve_triangular",
    "symm",
    "syr2k",
    "syrk",
    "trmm",
    "tuning_file",
    "tuning_lines",
    "workspace_size",
    "zgemm",
]
