"""Questions: how the library was built, what it found on this machine, and what it would do with a product, in which memory."""

from __future__ import annotations

import ctypes
import dataclasses
from contextlib import ExitStack
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from . import _device_product, _lib
from ._arrays import as_array, check_out, kind_of, needs_out, scalars_of, type_of_result
from ._epilogue import Epilogue
from ._handle import Handle, pointer_of
from ._packed import unpacked
from ._product import Options, matmul_shapes, prepare


def config() -> dict[str, str]:
    """How the library was built: version, compiler, backends, kernel families."""
    return _lib.text(_lib.library.wsgemm_config)


def machine() -> dict[str, str]:
    """What the library found here: CPU features, caches, thread count and why, WSGEMM_* variables in force
    or ignored.
    """
    return _lib.text(_lib.library.wsgemm_machine)


def kernels(backend: str = "cpu") -> dict[str, bool]:
    """The kernel rows for arrays in host memory ("cpu") or GPU memory ("cuda") by name, and whether this
    machine can run each; of those for GPU memory, whether there is a driver.
    """
    library = _lib.library
    return {
        library.wsgemm_kernel_name(row).decode(): bool(library.wsgemm_kernel_usable(row))
        for row in range(library.wsgemm_kernel_count())
        if library.wsgemm_kernel_backend(row) == backend.encode()
    }


@dataclasses.dataclass(frozen=True)
class KernelInfo:
    """What a row of the kernel registry says of its kernel: see kernel_info. A number that a kernel does
    not have is 0.

    Attributes:
        name: what Handle(kernel=...) takes.
        backend: "cpu" or "cuda".
        family: of the CPU the instruction set; of GPUs "simt", "fma16", "vec", "mma", "mma16", "wgmma",
            "direct", "flat", "small", "dmma", "ffma", "outer",
            "tf32x2", "tf32x1", "tf32w2", "tf32w1", "tf32m1", "tf32m2", "f16x3", "bf16x6", "f16x1".
        type: the letter of its routine, one of "sdczhb": the type of a and b.
        is_usable: whether this machine can run it; of those for GPU memory, whether there is a driver.
        bm, bn, bk: the tile of the result (CPU: of registers), and the block of k loaded at once (CPU:
            the longest one packed).
        coarse_factor: GPU: a work item is bm x (bn * coarse_factor); CPU: 0, chosen per call.
        n_stages, n_threads, shared_bytes: GPU: blocks of k in shared memory at once; threads of a
            block; its shared memory.
        cluster, cluster_splits: GPU: blocks of a cluster (1: there are no clusters), and parts of k
            that these sum.
        n_slices: of an operand; 0: elements are multiplied whole.
        has_split_k: GPU: several blocks may sum parts of k of one item.
        is_ping_pong: GPU: an item is stored while another one is multiplied.
        is_fma: it multiplies by IEEE's fused multiply-adds.
        least_cc, most_cc: GPU: compute capabilities, 10 * major + minor; most_cc = 0: no limit.
    """

    name: str
    backend: str
    family: str
    type: str
    is_usable: bool
    bm: int
    bn: int
    bk: int
    coarse_factor: int
    n_stages: int
    n_threads: int
    shared_bytes: int
    cluster: int
    cluster_splits: int
    n_slices: int
    has_split_k: bool
    is_ping_pong: bool
    is_fma: bool
    least_cc: int
    most_cc: int


_LETTERS = dict(zip(_lib.Type, "sdczhb"))


def _info_of(row: int) -> KernelInfo:
    info = _lib.KernelInfo(struct_bytes=ctypes.sizeof(_lib.KernelInfo))
    _lib.check(_lib.library.wsgemm_get_kernel_info(row, info))
    facts: dict[str, Any] = {}
    for field in dataclasses.fields(KernelInfo):
        value = getattr(info, field.name)
        facts[field.name] = value.decode() if isinstance(value, bytes) else bool(value) if field.type == "bool" else value
    return KernelInfo(**{**facts, "type": _LETTERS[info.type]})


def kernel_info(name: str) -> KernelInfo:
    """What the registry says of the kernel row of this name; ValueError: no row is called so.

    >>> import wsgemm
    >>> row = wsgemm.kernel_info("sgemm_ref_8x6")
    >>> row.family, row.type, row.bm, row.bn, row.is_usable
    ('ref', 's', 8, 6, True)
    >>> {wsgemm.kernel_info(name).backend for name in wsgemm.kernels("cpu")}
    {'cpu'}
    """
    library = _lib.library
    for row in range(library.wsgemm_kernel_count()):
        if library.wsgemm_kernel_name(row).decode() == name:
            return _info_of(row)
    raise ValueError(f"no kernel row is called {name!r}")


def explain(
    a: ArrayLike | Any,
    b: ArrayLike | Any,
    out: Any = None,
    alpha: complex = 1,
    beta: complex = 0,
    *,
    handle: Handle | None = None,
) -> dict[str, str]:
    """How matmul would do this product, without doing it: the library's kernel row, tile, blocking,
    COARSE_FACTOR, policy and threads, or on a GPU its device and scheduler; under "calls" the number of
    library calls that a stack takes, and under "copies" which arrays would be copied first.

    Arguments and errors are matmul's; a product without elements takes no call and is told by {"calls":
    "0", "copies": ""}.
    """
    a, record_a = unpacked(a, "a")
    b, record_b = unpacked(b, "b")
    with ExitStack() as closing:
        operands = _device_product.operands(closing, a, b, out, records=(record_a, record_b))
        if operands is not None:
            return _device_product.explain(operands, alpha, beta, handle)
    array_a, array_b = as_array(a, "a"), as_array(b, "b")
    kind = kind_of(array_a, array_b)
    scalars = scalars_of(kind, alpha, beta)
    full_a, full_b, full_shape, shape = matmul_shapes(array_a, array_b)
    kind_c = kind
    if out is not None:
        kind_c = check_out(out, kind, array_a, shape)
    elif beta != 0:
        raise needs_out(beta)
    result = np.empty(full_shape, array_a.dtype) if out is None else np.asarray(out).reshape(full_shape)
    if not result.size:
        return {"calls": "0", "copies": ""}
    prepared = prepare(kind, full_a, full_b, result, out is None, Options(scalars, beta != 0, kind_c))
    descs = list(prepared.descs)
    answer = _lib.text(_lib.library.wsgemm_explain, pointer_of(handle), descs[0])
    return {**answer, "calls": str(len(descs)), "copies": ", ".join(prepared.copies)}


def workspace_size(
    a: ArrayLike | Any,
    b: ArrayLike | Any,
    out: Any = None,
    alpha: complex = 1,
    beta: complex = 0,
    *,
    dtype: DTypeLike | None = None,
    activation: str | None = None,
    bias: ArrayLike | None = None,
    residual: ArrayLike | None = None,
    out_scale: float = 1,
    column_sums: Any = None,
    handle: Handle | None = None,
) -> int:
    """Bytes of memory on a GPU that matmul would use with the same arguments, beside the arrays, for all
    to be done at once: see Handle.workspace. 0: none, as in host memory. A workspace for several
    products has the most that one of them asks for.

    >>> import numpy as np
    >>> import wsgemm
    >>> wsgemm.workspace_size(np.ones((4, 3)), np.ones((3, 2)))
    0

    Makes no array and no product. A workspace that the handle has already does not matter. Errors are
    matmul's, but `out` may be left away whatever library the operands are of, and what is wrong with an
    epilogue in host memory is not told.
    """
    epilogue = None
    if activation is not None or bias is not None or residual is not None or column_sums is not None or out_scale != 1:
        epilogue = Epilogue(activation, bias, residual, out_scale, column_sums)
    a, record_a = unpacked(a, "a")
    b, record_b = unpacked(b, "b")
    with ExitStack() as closing:
        operands = _device_product.operands(closing, a, b, out, epilogue=epilogue, records=(record_a, record_b))
        if operands is not None:
            return _device_product.workspace_size(operands, dtype, alpha, beta, epilogue, handle)
    array_a, array_b = as_array(a, "a"), as_array(b, "b")
    kind = kind_of(array_a, array_b)
    scalars_of(kind, alpha, beta)
    if out is None and beta != 0:
        raise needs_out(beta)
    pointer_of(handle)
    _, _, _, shape = matmul_shapes(array_a, array_b)
    type_of_result(kind, array_a, out, dtype)
    if out is not None:
        check_out(out, kind, array_a, shape)
    return 0
