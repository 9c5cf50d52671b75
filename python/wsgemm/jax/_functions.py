"""The one operator: op(a) op(b) for stacks of matrices, its gradient, and matmul's shapes on top of it."""

from __future__ import annotations

import ctypes
import functools
import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from .. import _lib

TARGET = "wsgemm_gemm"
_HANDLERS = {"cpu": "wsgemm_xla_gemm_host", "CUDA": "wsgemm_xla_gemm_cuda"}  # by XLA's platform
_TYPES = frozenset(("float16", "bfloat16", "float32", "float64", "complex64", "complex128"))
_ffi: Any = jax.ffi
_ShapeDtypeStruct: Any = jax.ShapeDtypeStruct


@functools.cache
def _registered() -> ctypes.CDLL:
    """The library of src/xla, which stands beside the one that is in use."""
    path = _lib.beside("libwsgemm_xla.so")
    if path is None:
        raise ImportError(f"wsgemm.jax needs libwsgemm_xla.so, which is not beside {_lib.library._name}; WSGEMM_XLA=ON builds it")
    library = ctypes.CDLL(path)
    for platform, name in _HANDLERS.items():
        _ffi.register_ffi_target(TARGET, _ffi.pycapsule(getattr(library, name)), platform=platform)
    return library


@functools.partial(jax.custom_vjp, nondiff_argnums=(2, 3))
def product(a: jax.Array, b: jax.Array, trans_a: bool, trans_b: bool) -> jax.Array:
    """op(a) op(b) for stacks of as many dimensions, of which each is that of the other or 1."""
    _registered()
    stack = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    shape = (*stack, a.shape[-1 if trans_a else -2], b.shape[-2 if trans_b else -1])
    call = _ffi.ffi_call(TARGET, _ShapeDtypeStruct(shape, a.dtype), vmap_method="expand_dims")
    result: jax.Array = call(a, b, trans_a=np.int32(trans_a), trans_b=np.int32(trans_b))
    return result


def _forward(a: jax.Array, b: jax.Array, trans_a: bool, trans_b: bool) -> tuple[jax.Array, tuple[jax.Array, jax.Array]]:
    return product(a, b, trans_a, trans_b), (a, b)


def _backward(trans_a: bool, trans_b: bool, saved: tuple[jax.Array, jax.Array], g: jax.Array) -> tuple[jax.Array, jax.Array]:
    a, b = saved
    of_a = product(b, g, trans_b, True) if trans_a else product(g, b, False, not trans_b)
    of_b = product(g, a, True, trans_a) if trans_b else product(a, g, not trans_a, False)
    return _summed(of_a, a), _summed(of_b, b)


def _summed(x: jax.Array, like: jax.Array) -> jax.Array:
    """Over the dimensions in which one matrix served several products."""
    axes = tuple(i for i, (size, own) in enumerate(zip(x.shape, like.shape)) if size != own)
    return x.sum(axes, keepdims=True) if axes else x


product.defvjp(_forward, _backward)


def matmul(a: Any, b: Any) -> jax.Array:
    """a @ b, with numpy.matmul's rules of shapes, for arrays of one type.

    Transposes are XLA's to make: a and b are read as they lie in its memory, row by row.

    Raises:
        TypeError: a and b are not of one type, or of none that products take.
        ValueError: shapes do not fit.
    """
    a, b = jnp.asarray(a), jnp.asarray(b)
    if a.dtype != b.dtype or a.dtype.name not in _TYPES:
        raise TypeError(f"a is {a.dtype} and b is {b.dtype}, but both must be one of {', '.join(sorted(_TYPES))}")
    if a.ndim == 0 or b.ndim == 0:
        raise ValueError(f"a has shape {a.shape} and b has shape {b.shape}, but both need at least one dimension")
    full_a = a[None, :] if a.ndim == 1 else a
    full_b = b[:, None] if b.ndim == 1 else b
    if full_a.shape[-1] != full_b.shape[-2]:
        raise ValueError(f"a has shape {a.shape} and b has shape {b.shape}, which do not fit")
    np.broadcast_shapes(full_a.shape[:-2], full_b.shape[:-2])  # raises ValueError
    stack = full_a.shape[:-1]
    if full_b.ndim == 2:  # one product of all rows
        result = product(full_a.reshape(math.prod(stack), full_a.shape[-1]), full_b, False, False).reshape(*stack, full_b.shape[-1])
    else:
        n_axes = max(full_a.ndim, full_b.ndim)
        full_a, full_b = (x.reshape(*(1,) * (n_axes - x.ndim), *x.shape) for x in (full_a, full_b))
        result = product(full_a, full_b, False, False)
    result = result[..., 0] if b.ndim == 1 else result
    if a.ndim == 1:
        result = result[..., 0] if b.ndim == 1 else result[..., 0, :]
    return result


@functools.cache
def jitted() -> Any:
    """matmul of arrays that are there: compiled for each pair of shapes, and kept by JAX."""
    _registered()
    return jax.jit(matmul)
