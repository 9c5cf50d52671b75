"""The operators: one table, of what torch.library is told about each, and its registration.

A row says how an operator is called, what computes it, what its result looks like, its gradient, and what it does to a
stack of arguments (vmap). Autocast is one rule for all. Shapes are checked where the result's is told, types in the products.
"""

from __future__ import annotations

import importlib
import math
from collections.abc import Callable
from typing import Any, NamedTuple, Optional

import torch
from torch import Tensor

from .._plans import TorchWay, way_of
from ._compute import grouped, grouped_shape, product

_ops: Any = torch.ops.wsgemm
_library: Any = torch.library  # which has no types
_check: Any = torch._check
_broadcast_shapes: Any = torch.broadcast_shapes
_is_compiling = torch.compiler.is_compiling
_is_grad_enabled = torch.is_grad_enabled
_transformed = torch._C._functorch.peek_interpreter_stack
_n_modes = torch._C._len_torch_dispatch_stack
_is_autocast_enabled: Any = torch._C._is_any_autocast_enabled
_traced: Any = torch._C._get_tracing_state
try:
    _autograd: Any = importlib.import_module("torch._library.autograd")
except ImportError:  # another release: then the dispatcher goes the way of torch.library only
    _autograd = None
_subclasses = torch._C.DispatchKey.Python  # that tensors have that see their operators themselves
Gradients = tuple[Optional[Tensor], ...]
Call = Callable[..., Tensor]  # of an operator, by its name


def _spread(g: Tensor) -> Tensor:
    """A gradient that is one number many times, as a sum's, laid out: products read no such."""
    return g.contiguous() if 0 in g.stride() else g


def _rows(x: Tensor) -> Tensor:
    """All rows of a stack, in one matrix."""
    return x if x.dim() == 2 else x.reshape(math.prod(x.shape[:-1]), x.shape[-1])


# ---- matmul: of vectors, matrices and stacks ---------------------------------------------------------------------------------


def _matmul_like(a: Tensor, b: Tensor) -> Tensor:
    _check(a.dim() > 0 and b.dim() > 0, lambda: "a and b need at least one dimension")
    _check(a.dtype == b.dtype, lambda: f"a is {a.dtype} and b is {b.dtype}, but they must be of one type")
    m, n = a.shape[-2:-1], b.shape[-1:] if b.dim() > 1 else ()
    k = b.shape[-2] if b.dim() > 1 else b.shape[0]
    _check(a.shape[-1] == k, lambda: f"a has shape {tuple(a.shape)} and b has shape {tuple(b.shape)}, which do not fit")
    return a.new_empty((*_broadcast_shapes(a.shape[:-2], b.shape[:-2]), *m, *n))


def _matmul_saved(ctx: Any, inputs: Any, output: Tensor) -> None:
    ctx.save_for_backward(*inputs)


def _matmul_gradient(ctx: Any, g: Tensor) -> Gradients:
    a, b = ctx.saved_tensors
    g = _spread(g)
    full_a = a.unsqueeze(0) if a.dim() == 1 else a
    full_b = b.unsqueeze(-1) if b.dim() == 1 else b
    g = g.unsqueeze(-1) if b.dim() == 1 else g
    g = g.unsqueeze(-2) if a.dim() == 1 else g
    of_a = of_b = None
    if ctx.needs_input_grad[0]:
        of_a = multiply(g, full_b.mH).sum_to_size(full_a.shape).reshape(a.shape)
    if ctx.needs_input_grad[1] and full_b.dim() == 2:  # of a stack's products, one that is as high as all of them
        of_b = multiply(_rows(full_a).mH, _rows(g)).reshape(b.shape)
    elif ctx.needs_input_grad[1]:
        of_b = multiply(full_a.mH, g).sum_to_size(full_b.shape).reshape(b.shape)
    return of_a, of_b


def _matmul_of_stacks(use: Call, dims: Any, a: Tensor, b: Tensor) -> tuple[Tensor, int]:
    (a, n_a), (b, n_b) = _in_front(a, dims[0]), _in_front(b, dims[1])
    is_row, is_column = n_a == 1, n_b == 1
    a = a.unsqueeze(-2) if is_row else a
    b = b.unsqueeze(-1) if is_column else b
    n_axes = max(n_a + is_row, n_b + is_column)
    result = use("matmul", _padded(a, dims[0], n_axes), _padded(b, dims[1], n_axes))
    result = result.squeeze(-1) if is_column else result
    return (result.squeeze(-2 + is_column) if is_row else result), 0


def _in_front(x: Tensor, dim: int | None) -> tuple[Tensor, int]:
    """(x with its stack's dimension first, dimensions that one of the stack has)"""
    return (x, x.dim()) if dim is None else (x.movedim(dim, 0), x.dim() - 1)


def _padded(x: Tensor, dim: int | None, n_axes: int) -> Tensor:
    """Of a stack: as many dimensions behind the first as the other one has, that it may stay the first."""
    if dim is None:
        return x
    return x.reshape(x.shape[0], *(1,) * (n_axes - x.dim() + 1), *x.shape[1:])


# ---- addmm: beta input + alpha a b -------------------------------------------------------------------------------------------


def addmm(input: Tensor, a: Tensor, b: Tensor, *, beta: complex = 1, alpha: complex = 1) -> Tensor:
    shape = (a.shape[0], b.shape[1])
    if beta == 0:
        return product(a, b, alpha=alpha)
    if beta == 1 and not input.is_complex() and input.dim() and input.shape[-1] == shape[1] and input.numel() == shape[1]:
        return product(a, b, alpha=alpha, bias=input.reshape(shape[1]))
    return product(a, b, input.expand(shape).clone(memory_format=torch.contiguous_format), alpha, beta)


def _addmm_like(input: Tensor, a: Tensor, b: Tensor, *, beta: complex = 1, alpha: complex = 1) -> Tensor:
    _check(a.dim() == 2 and b.dim() == 2, lambda: "addmm takes matrices")
    _check(input.dtype == a.dtype, lambda: f"input is {input.dtype} and a is {a.dtype}, but they must be of one type")
    return _matmul_like(a, b)


def _addmm_saved(ctx: Any, inputs: Any, keyword_only_inputs: Any, output: Tensor) -> None:
    input, a, b = inputs
    ctx.save_for_backward(a, b)
    ctx.shape, ctx.alpha, ctx.beta = input.shape, keyword_only_inputs["alpha"], keyword_only_inputs["beta"]


def _addmm_gradient(ctx: Any, g: Tensor) -> Gradients:
    a, b = ctx.saved_tensors
    needs, g = ctx.needs_input_grad, _spread(g)
    scaled = g if ctx.alpha == 1 else g * _conjugate(ctx.alpha)
    of_input = g if ctx.beta == 1 else g * _conjugate(ctx.beta)
    return (
        of_input.sum_to_size(ctx.shape) if needs[0] else None,
        multiply(scaled, b.mH) if needs[1] else None,
        multiply(a.mH, scaled) if needs[2] else None,
    )


def _conjugate(x: complex) -> complex:
    return x.conjugate()


def _addmm_of_stacks(
    use: Call, dims: Any, input: Tensor, a: Tensor, b: Tensor, *, beta: complex = 1, alpha: complex = 1
) -> tuple[Tensor, int]:
    result, _ = _matmul_of_stacks(use, dims[1:], a, b)
    result = result.unsqueeze(0) if result.dim() == 2 else result
    input, n_axes = _in_front(input, dims[0])
    if dims[0] is not None:
        input = input.reshape(input.shape[0], *(1,) * (2 - n_axes), *input.shape[1:])
    return input * beta + result * alpha, 0


# ---- linear: an activation of x weight^T + bias ------------------------------------------------------------------------------


class Activation(NamedTuple):
    function: Callable[[Tensor], Tensor]
    gradient: Callable[[Tensor, Tensor], Tensor]  # of g, z


_aten = torch.ops.aten
ACTIVATIONS = {
    "relu": Activation(torch.relu, lambda g, z: _aten.threshold_backward(g, z, 0)),
    "gelu_tanh": Activation(
        lambda z: torch.nn.functional.gelu(z, approximate="tanh"), lambda g, z: _aten.gelu_backward(g, z, approximate="tanh")
    ),
    "gelu_erf": Activation(torch.nn.functional.gelu, lambda g, z: _aten.gelu_backward(g, z)),
    "silu": Activation(torch.nn.functional.silu, lambda g, z: g * (torch.sigmoid(z) * (1 + z * (1 - torch.sigmoid(z))))),
}


def _linear(input: Tensor, weight: Tensor, bias: Tensor | None = None, activation: str | None = None) -> Tensor:
    way = way_of(input)
    if isinstance(way, TorchWay):
        done: Tensor | None = way.matmul(input, weight, None, 1, 0, None, bias, activation, True)
        if done is not None:
            return done
    shape = (*input.shape[:-1], weight.shape[0])
    matrix = _rows(input)
    has_epilogue = not input.is_complex()  # of which complex types have none
    result = product(matrix, weight.mT, bias=bias if has_epilogue else None, activation=activation)
    if bias is not None and not has_epilogue:
        result += bias
    return result.view(shape)


def _linear_like(input: Tensor, weight: Tensor, bias: Tensor | None = None, activation: str | None = None) -> Tensor:
    _check(weight.dim() == 2, lambda: f"weight has shape {tuple(weight.shape)}, but it must be a matrix")
    _check(activation is None or activation in ACTIVATIONS, lambda: f"activation is {activation!r}")
    return _matmul_like(input, weight.mT)


def _linear_saved(ctx: Any, inputs: Any, output: Tensor) -> None:
    input, weight, bias, activation = inputs
    ctx.activation = activation
    ctx.save_for_backward(input, weight, bias, output if activation == "relu" else None)


def _linear_gradient(ctx: Any, g: Tensor) -> Gradients:
    input, weight, bias, output = ctx.saved_tensors
    if ctx.activation is not None:
        z = call("linear", input, weight, bias) if output is None else output  # relu's gradient asks for the sign only
        g = ACTIVATIONS[ctx.activation].gradient(g, z)
    needs = ctx.needs_input_grad
    of_input = of_weight = of_bias = None
    rows = _rows(_spread(g))
    if needs[0]:
        of_input = multiply(rows, weight.conj()).view(input.shape)
    if needs[1]:
        of_weight = multiply(rows.mT, _rows(input).conj())
    if bias is not None and needs[2]:
        of_bias = rows.sum(0)
    return of_input, of_weight, of_bias, None


def _linear_of_stacks(
    use: Call, dims: Any, input: Tensor, weight: Tensor, bias: Tensor | None = None, activation: str | None = None
) -> tuple[Tensor, int]:
    input, n_axes = _in_front(input, dims[0])
    if dims[1] is None and (bias is None or dims[2] is None):
        return use("linear", input, weight, bias, activation), 0
    rows = input.shape[input.dim() - n_axes : -1]
    matrices = input.reshape(*input.shape[: input.dim() - n_axes], -1, input.shape[-1])
    weights = weight.mT if dims[1] is None else weight.movedim(dims[1], 0).mT
    result = use("matmul", matrices, weights)
    if bias is not None:
        result = result + (bias if dims[2] is None else bias.movedim(dims[2], 0).unsqueeze(1))
    result = result.reshape(len(result) if result.dim() == 3 else 1, *rows, result.shape[-1])
    return (result if activation is None else ACTIVATIONS[activation].function(result)), 0


# ---- grouped_mm: groups of rows, or of what is summed over ---------------------------------------------------------------------


def _grouped(a: Tensor, b: Tensor, offs: Tensor) -> Tensor:
    return grouped(a, b, offs)


def _grouped_like(a: Tensor, b: Tensor, offs: Tensor) -> Tensor:
    _check(a.dim() == 2 and b.dim() in (2, 3), lambda: "a must be a matrix, b a matrix or a stack of them")
    _check(a.dtype == b.dtype, lambda: f"a is {a.dtype} and b is {b.dtype}, but they must be of one type")
    _check(a.shape[-1] == b.shape[-2], lambda: f"a has shape {tuple(a.shape)} and b has shape {tuple(b.shape)}, which do not fit")
    _check(offs.dim() == 1, lambda: f"offs has shape {tuple(offs.shape)}, but it must have one dimension")
    _check(b.dim() == 2 or b.shape[0] == offs.shape[0], lambda: f"b has {b.shape[0]} matrices, and offs is {offs.shape[0]} long")
    return a.new_empty(grouped_shape(a, b, offs))


def _zero_behind(x: Tensor, offs: Tensor) -> Tensor:
    """A matrix without what is in the rows behind the last offset, which no product has written on a GPU."""
    if x.device.type == "cpu":
        return x  # zeros are there
    is_there = torch.arange(x.shape[0], device=x.device) < offs[-1]
    return torch.where(is_there.unsqueeze(1), x, 0)


def _grouped_gradient(ctx: Any, g: Tensor) -> Gradients:
    a, b, offs = ctx.saved_tensors
    of_a = of_b = None
    if b.dim() == 3:
        of_a = _zero_behind(call("grouped_mm", g, b.mH, offs), offs) if ctx.needs_input_grad[0] else None
        of_b = call("grouped_mm", a.mH, g, offs) if ctx.needs_input_grad[1] else None
    else:  # rows of b, and columns of a, have a matrix of the gradient each
        of_a = _zero_behind(call("grouped_mm", b.conj(), g.mT, offs), offs).mT if ctx.needs_input_grad[0] else None
        of_b = _zero_behind(call("grouped_mm", a.mH, g, offs), offs) if ctx.needs_input_grad[1] else None
    return of_a, of_b, None


def _grouped_of_stacks(use: Call, dims: Any, a: Tensor, b: Tensor, offs: Tensor) -> tuple[Tensor, int]:
    raise NotImplementedError("grouped_mm cannot be mapped over a stack (vmap)")


# ---- The table ---------------------------------------------------------------------------------------------------------------


class Operator(NamedTuple):
    name: str
    schema: str
    compute: Callable[..., Tensor]
    like: Callable[..., Tensor]  # without data: the result's shape, type and device
    save: Callable[..., None]
    gradient: Callable[[Any, Tensor], Gradients]
    of_stacks: Callable[..., tuple[Tensor, int]]
    keywords: tuple[str, ...] = ()


OPERATORS = (
    Operator(
        "matmul", "(Tensor a, Tensor b) -> Tensor",
        product, _matmul_like, _matmul_saved, _matmul_gradient, _matmul_of_stacks,
    ),
    Operator(
        "addmm", "(Tensor input, Tensor a, Tensor b, *, Scalar beta=1, Scalar alpha=1) -> Tensor",
        addmm, _addmm_like, _addmm_saved, _addmm_gradient, _addmm_of_stacks,
        ("beta", "alpha"),
    ),
    Operator(
        "grouped_mm", "(Tensor a, Tensor b, Tensor offs) -> Tensor",
        _grouped, _grouped_like, _matmul_saved, _grouped_gradient, _grouped_of_stacks,
    ),
    Operator(
        "linear", "(Tensor input, Tensor weight, Tensor? bias=None, str? activation=None) -> Tensor",
        _linear, _linear_like, _linear_saved, _linear_gradient, _linear_of_stacks,
    ),
)  # fmt: skip
_DEVICES = {"cpu": "AutocastCPU", "cuda": "AutocastCUDA"}


def _autocast(name: str, device: str, key: str) -> Callable[..., Tensor]:
    """As torch's own products: operands in the autocast's type, but for double precision and complex ones."""

    def cast(x: Any, dtype: torch.dtype) -> Any:
        is_cast = isinstance(x, Tensor) and x.is_floating_point() and x.dtype != torch.float64 and x.device.type == device
        return x.to(dtype) if is_cast else x

    def call(*arguments: Any, **keywords: Any) -> Tensor:
        dtype = torch.get_autocast_dtype(device)
        with torch._C._ExcludeDispatchKeyGuard(torch._C.DispatchKeySet(getattr(torch._C.DispatchKey, key))):
            result: Tensor = getattr(_ops, name)(*(cast(x, dtype) for x in arguments), **keywords)
        return result

    return call


def _as_function(operator: Operator) -> Any:
    """For torch.func's transforms, which do not take the gradients of torch.library."""
    n_given = -len(operator.keywords) or None

    def named(arguments: Any) -> dict[str, Any]:
        return dict(zip(operator.keywords, arguments[n_given:])) if n_given else {}

    def forward(*arguments: Any) -> Any:
        return getattr(_ops, operator.name)(*arguments[:n_given], **named(arguments))

    def setup_context(ctx: Any, inputs: Any, output: Tensor) -> None:
        keywords = (named(inputs),) if n_given else ()
        ctx.n_inputs = len(inputs)
        operator.save(ctx, inputs[:n_given], *keywords, output)

    def backward(ctx: Any, g: Tensor) -> Gradients:
        found: list[Tensor | None] = list(operator.gradient(ctx, g))
        return tuple(found + [None] * (ctx.n_inputs - len(found)))

    def vmap(info: Any, dims: Any, *arguments: Any) -> tuple[Tensor, int]:
        return operator.of_stacks(call, dims[:n_given], *arguments[:n_given], **named(arguments))

    functions = {"forward": forward, "setup_context": setup_context, "backward": backward, "vmap": vmap}
    return type(operator.name, (torch.autograd.Function,), {name: staticmethod(f) for name, f in functions.items()})


_functions = {operator.name: (_as_function(operator), operator.keywords) for operator in OPERATORS}
_unwrapped: Any = torch._C._functorch.unwrap_if_dead


def _n_inputs(operator: Operator) -> int:
    return operator.schema.partition("->")[0].replace("*,", "").count(",") + 1


def _as_node(operator: Operator) -> Callable[..., Tensor]:
    """Computes at once, of plain tensors, and records the gradient: without torch.library, whose two ways through its dispatcher take
    longer than a product of small matrices."""
    compute, save, gradient = operator.compute, operator.save, operator.gradient
    n_given, n_inputs = -len(operator.keywords), _n_inputs(operator)

    def forward(ctx: Any, *arguments: Any) -> Tensor:
        result = compute(*arguments)
        save(ctx, arguments, result)
        return result

    def forward_with_keywords(ctx: Any, *arguments: Any) -> Tensor:
        keywords = dict(zip(operator.keywords, arguments[n_given:]))
        result = compute(*arguments[:n_given], **keywords)
        save(ctx, arguments[:n_given], keywords, result)
        return result

    def backward(ctx: Any, g: Tensor) -> Gradients:
        found = gradient(ctx, g)
        return found + (None,) * (n_inputs - len(found))

    both: dict[str, Any] = {"forward": forward_with_keywords if n_given else forward, "backward": backward}
    node: Any = type(operator.name, (torch.autograd.Function,), {name: staticmethod(f) for name, f in both.items()})
    apply: Callable[..., Tensor] = super(torch.autograd.Function, node).apply  # what Function's own does besides is for torch.func
    return apply


_nodes = {operator.name: _as_node(operator) for operator in OPERATORS}


def _autograd_rule(operator: Operator, generic: Any) -> Callable[..., Tensor]:
    """The kernel of the dispatcher's keys for gradients: at once what the operator does, where nobody else is to know of it."""
    compute, node = operator.compute, _nodes[operator.name]

    def rule(keys: Any, *arguments: Any, **keywords: Any) -> Tensor:
        if is_watched() or keys.has(_subclasses):
            result: Tensor = generic(keys, *arguments, **keywords)
            return result
        if _is_grad_enabled() and any(isinstance(x, Tensor) and x.requires_grad for x in arguments):
            all_inputs = (*arguments, *(keywords.get(name, 1) for name in operator.keywords))
            return node(*all_inputs, *(None,) * (_n_inputs(operator) - len(all_inputs)))
        return compute(*arguments, **keywords)

    return rule


def _vmap_rule(operator: Operator) -> Callable[..., tuple[Tensor, int]]:
    def rule(info: Any, dims: Any, *arguments: Any, **keywords: Any) -> tuple[Tensor, int]:
        return operator.of_stacks(_dispatched, dims, *arguments, **keywords)

    return rule


def _dispatched(name: str, *arguments: Any) -> Tensor:
    result: Tensor = _overloads[name](*arguments)
    return result


def _register() -> Any:
    library = _library.Library("wsgemm", "DEF")
    for operator in OPERATORS:
        library.define(operator.name + operator.schema, tags=(torch.Tag.pt2_compliant_tag,))
        name = "wsgemm::" + operator.name
        for key in ("CPU", "CUDA"):
            library.impl(operator.name, operator.compute, key)
        _library.register_fake(name, operator.like, lib=library)
        _library.register_autograd(name, operator.gradient, setup_context=operator.save, lib=library)
        if _autograd is not None:
            info = _autograd.Info(operator.gradient, operator.save)
            generic = _autograd.make_autograd_impl(getattr(_ops, operator.name).default, info)
            for key in ("AutogradCPU", "AutogradCUDA"):
                library.impl(operator.name, _autograd_rule(operator, generic), key, with_keyset=True)
        _library.register_vmap(name, _vmap_rule(operator), lib=library)
        for device, key in _DEVICES.items():
            library.impl(operator.name, _autocast(operator.name, device, key), key)
    return library


library = _register()  # kept as long as the module
_computes = {operator.name: operator.compute for operator in OPERATORS}
_overloads = {operator.name: getattr(_ops, operator.name).default for operator in OPERATORS}


def compute(name: str, *arguments: Any) -> Tensor:
    """Without torch, of plain tensors."""
    return _computes[name](*arguments)


def record(name: str, *arguments: Any) -> Tensor:
    """Of tensors that are plain but for that they require gradients. Keywords are given as the last arguments."""
    return _nodes[name](*[_unwrapped(x) if isinstance(x, Tensor) else x for x in arguments])


def call(name: str, *arguments: Any, **keywords: Any) -> Tensor:
    """The operator, as torch wants it to be called where it is."""
    result: Tensor
    if _is_compiling() or _transformed() is None:
        result = _overloads[name](*arguments, **keywords)
    else:
        function, names = _functions[name]
        result = function.apply(*arguments, *(keywords[name] for name in names))
    return result


# ---- Which way ---------------------------------------------------------------------------------------------------------------


def is_watched() -> bool:
    """Somebody is to know of what is computed now, or has something to say: a transform, a mode, autocast."""
    return _transformed() is not None or _n_modes() != 0 or bool(_is_autocast_enabled()) or _traced() is not None


def multiply(a: Tensor, b: Tensor) -> Tensor:
    """a @ b, with torch.matmul's rules of shapes.

    >>> import torch, wsgemm.torch
    >>> wsgemm.torch.matmul(torch.ones(2, 3), torch.ones(3))
    tensor([3., 3.])
    """
    if _is_compiling() or is_watched():
        return call("matmul", a, b)
    way = way_of(a)
    if way is None or way_of(b) is not way:
        return call("matmul", a, b)
    if (a.requires_grad or b.requires_grad) and _is_grad_enabled():
        return _nodes["matmul"](_unwrapped(a), _unwrapped(b))
    done: Tensor | None = way.matmul(a, b, None, 1, 0, None, None, None, False)
    return call("matmul", a, b) if done is None else done
