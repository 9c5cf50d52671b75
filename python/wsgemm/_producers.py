"""The libraries that device arrays come from: their current stream, and new arrays of theirs.

A library is only looked for among the modules that are imported already. Those that are not known here are taken at their word
(``__cuda_array_interface__``, DLPack), and make no arrays for us.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from ._arrays import dtype_of, unknown_dtype


class Producer:
    """An unknown library."""

    is_known = False
    is_immutable = False  # its arrays must not be written once somebody has seen them

    def prepare(self, x: Any, name: str, is_output: bool) -> Any:
        """x, or what is to be read in its place; raises if a product with x would mislead its library."""
        return x

    def interface(self, x: Any) -> dict[str, Any] | None:
        """x's ``__cuda_array_interface__``, if it has one."""
        try:
            return getattr(x, "__cuda_array_interface__", None)
        except Exception as error:
            if hasattr(x, "__dlpack__"):  # which may have a name for what the interface has none for
                return None
            if isinstance(error, KeyError):
                raise TypeError(f"{type(x).__name__}.__cuda_array_interface__ lacks something: {error!r}") from error
            raise

    def dtype(self, x: Any, told: np.dtype[Any]) -> np.dtype[Any]:
        """x's element type, of which its interface tells `told`: bfloat16, which that has no name for, as <V2 or as <f2."""
        own = dtype_of(getattr(x, "dtype", None))
        return own if own is not None and own.itemsize == told.itemsize and told.isnative else told

    def is_conjugated(self, x: Any) -> bool:
        """Whether x stands for the conjugate of what its memory holds."""
        return False

    def stream(self, x: Any) -> int | None:
        """The handle of the stream that the library works on now, on x's device; None: it does not tell."""
        return None

    def empty(self, like: Any, shape: tuple[int, ...], dtype: str | None = None) -> Any:
        """A new C-ordered array on like's device, of like's type or the one of this name."""
        raise NotImplementedError

    def copy(self, x: Any) -> Any:
        """A new C-ordered array equal to x, made on the current stream."""
        raise NotImplementedError

    def written(self, x: Any) -> None:
        """Tells the library that x was written behind its back."""


class Torch(Producer):
    is_known = True

    def __init__(self, module: Any) -> None:
        self.torch = module

    def prepare(self, x: Any, name: str, is_output: bool) -> Any:
        if is_output and (x.is_conj() or x.is_neg()):
            raise TypeError(f"{name} is a conjugated or negated view, which cannot be written; pass what it is a view of")
        if x.requires_grad:
            if self.torch.is_grad_enabled():
                raise TypeError(
                    f"{name} requires a gradient, which wsgemm does not record; "
                    f"pass {name}.detach(), or call under torch.no_grad()"
                )
            x = x.detach()
        if x.layout != self.torch.strided:
            raise TypeError(f"{name} is a tensor of layout {x.layout}, but it must be strided")
        return x.resolve_neg()

    def interface(self, x: Any) -> dict[str, Any]:
        # The tensor's own changes with the release where NumPy lacks the type: <f2, <V2, or a KeyError.
        dtype = dtype_of(x.dtype)
        if dtype is None:
            dtype = unknown_dtype(str(x.dtype).rpartition(".")[2], x.element_size())
        strides = None if x.is_contiguous() else tuple(stride * dtype.itemsize for stride in x.stride())
        return {"version": 2, "typestr": dtype, "shape": tuple(x.shape), "strides": strides, "data": (x.data_ptr(), False)}

    def dtype(self, x: Any, told: np.dtype[Any]) -> np.dtype[Any]:
        return told

    def is_conjugated(self, x: Any) -> bool:
        return bool(x.is_conj())

    def stream(self, x: Any) -> int | None:
        return int(self.torch.cuda.current_stream(x.device).cuda_stream)

    def empty(self, like: Any, shape: tuple[int, ...], dtype: str | None = None) -> Any:
        return self.torch.empty(shape, dtype=getattr(self.torch, dtype) if dtype else like.dtype, device=like.device)

    def copy(self, x: Any) -> Any:
        return x.clone(memory_format=self.torch.contiguous_format)

    def written(self, x: Any) -> None:
        if not x.is_inference():
            self.torch.autograd.graph.increment_version(x)  # so that a gradient that needed the old values is refused


class Cupy(Producer):
    is_known = True

    def __init__(self, module: Any) -> None:
        self.cupy = module

    def stream(self, x: Any) -> int | None:
        with x.device:
            return int(self.cupy.cuda.get_current_stream().ptr)

    def empty(self, like: Any, shape: tuple[int, ...], dtype: str | None = None) -> Any:
        with like.device:
            return self.cupy.empty(shape, dtype or like.dtype)

    def copy(self, x: Any) -> Any:
        with x.device:
            return x.copy(order="C")


class Jax(Producer):
    """JAX keeps its streams to itself, and its arrays never change: ours are written before anybody else has seen them."""

    is_known = True
    is_immutable = True

    def __init__(self, module: Any) -> None:
        self.jax = module

    def empty(self, like: Any, shape: tuple[int, ...], dtype: str | None = None) -> Any:
        return self.jax.numpy.empty(shape, dtype or like.dtype, device=like.sharding)

    def copy(self, x: Any) -> Any:
        return self.jax.numpy.array(x, copy=True)


UNKNOWN = Producer()
_KNOWN: tuple[tuple[str, str, type[Any]], ...] = (
    ("torch", "Tensor", Torch),
    ("cupy", "ndarray", Cupy),
    ("jax", "Array", Jax),
)


def producer_of(x: Any) -> Producer:
    for module_name, class_name, producer in _KNOWN:
        module = sys.modules.get(module_name)
        array = getattr(module, class_name, None)
        if array is not None and isinstance(x, array):
            return producer(module)  # type: ignore[no-any-return]
    return UNKNOWN
