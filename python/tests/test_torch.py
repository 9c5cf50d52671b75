"""wsgemm.torch: the operators' numbers, gradients and transforms, compiled functions, autocast, graphs, and patch().

In host memory, and on the GPU where torch sees one. Skipped without torch, which tools/setup.sh does not install: PyPI's for
Linux cannot be imported without NVIDIA's libraries, 2.5 GB of packages in all and 4 GB installed.
"""

import doctest

import numpy as np
import pytest
import wsgemm

torch = pytest.importorskip("torch")
if not hasattr(torch.library, "register_vmap"):
    pytest.skip("this torch is older than wsgemm.torch needs", allow_module_level=True)

import wsgemm.torch as wt
import wsgemm.torch._patch as patching

# opcheck of torch 2.15 looks at .grad of what is no leaf
of_torch_s_own_tests = pytest.mark.filterwarnings("ignore:The .grad attribute")

F = torch.nn.functional
HAS_GPU = torch.cuda.is_available() and "cuda" in wsgemm.config()["backends"].split()
DEVICES = ["cpu", *(["cuda"] if HAS_GPU else [])]
TYPES = {
    torch.float32: 1e-5,
    torch.float64: 1e-13,
    torch.complex64: 1e-5,
    torch.complex128: 1e-13,
    torch.float16: 2e-3,
    torch.bfloat16: 2e-2,
}
SHAPES = [
    ((3, 4), (4, 5)), ((4,), (4,)), ((4,), (4, 5)), ((3, 4), (4,)), ((2, 3, 4), (4, 5)), ((2, 3, 4), (2, 4, 5)), ((4,), (2, 4, 5)),
    ((3, 4), (6, 2, 4, 5)), ((6, 1, 3, 4), (2, 4, 5)), ((0, 4), (4, 5)), ((3, 0), (0, 5)), ((2, 0, 4), (2, 4, 5)),
]  # fmt: skip
ACTIVATIONS = [None, "relu", "gelu_tanh", "gelu_erf", "silu"]

close = torch.testing.assert_close


@pytest.fixture(params=DEVICES)
def device(request):
    torch.manual_seed(71)
    return request.param


def random(shape, device, dtype=torch.float64, grad=False):
    return torch.randn(shape, dtype=dtype, device=device).requires_grad_(grad)


def exact(x):
    return x.to(torch.complex128 if x.is_complex() else torch.float64)


# ---- Numbers -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", TYPES, ids=str)
def test_products_of_all_types_and_shapes(device, dtype):
    for shape_a, shape_b in SHAPES:
        a, b = random(shape_a, device, dtype), random(shape_b, device, dtype)
        result = wt.matmul(a, b)
        assert result.dtype == dtype and result.is_contiguous() and result.device == a.device
        close(exact(result), torch.matmul(exact(a), exact(b)), rtol=TYPES[dtype], atol=8 * TYPES[dtype])
        close(result, torch.ops.wsgemm.matmul(a, b), rtol=0, atol=0)
        if device == "cuda":
            close(result, wsgemm.matmul(a, b), rtol=0, atol=0)


@pytest.mark.parametrize("dtype", TYPES, ids=str)
def test_views_are_read_as_what_they_stand_for(device, dtype):
    wide = random((12, 18), device, dtype)
    views = [wide[:6, :6], wide.mT[:6, :6], wide[::2, ::3], wide[0].expand(6, 18)[:, :6], wide[:6, :6].conj(), wide[:6, 6:12].mH]
    if dtype.is_complex:
        views += [wide[:6, :6].conj().imag.to(dtype), wide[:6, :6].imag.to(dtype)]
    for a in views:
        for b in views:
            close(exact(wt.mm(a, b)), exact(a) @ exact(b), rtol=TYPES[dtype], atol=8 * TYPES[dtype])
            close(exact(wt.linear(a, b)), F.linear(exact(a), exact(b)), rtol=TYPES[dtype], atol=8 * TYPES[dtype])


def test_out_of_wsgemm_is_written_again_and_again():
    if not HAS_GPU:
        pytest.skip("no GPU")
    a, b = random((64, 64), "cuda"), random((64, 64), "cuda")
    c = torch.ones_like(a)
    for _ in range(3):  # by the plan, from the second time on
        version = c._version
        assert wsgemm.matmul(a, b, c, alpha=2, beta=0.5) is c and c._version > version
    close(c, (0.125 + 3.5 * (a @ b)))
    d = a.clone()
    for _ in range(2):  # overlaps: copied first
        expected = d @ b
        close(wsgemm.matmul(d, b, d), expected)
    with pytest.raises(ValueError):
        wsgemm.matmul(a, b, torch.ones(64, 63, device="cuda", dtype=torch.float64))
    with pytest.raises(TypeError):
        wsgemm.matmul(a, b.float())


@pytest.mark.parametrize("activation", ACTIVATIONS)
@pytest.mark.parametrize("dtype", [t for t in TYPES if not t.is_complex], ids=str)
def test_linear(device, dtype, activation):
    for shape in ((3, 4), (4,), (2, 3, 4), (0, 4), (2, 3, 0)):
        x, bias = random(shape, device, dtype), random((5,), device, dtype)
        weight = random((5, shape[-1]), device, dtype)
        for b in (None, bias):
            z = F.linear(exact(x), exact(weight), b if b is None else exact(b))
            expected = z if activation is None else wt._operators.ACTIVATIONS[activation].function(z)
            close(exact(wt.linear(x, weight, b, activation)), expected, rtol=TYPES[dtype], atol=8 * TYPES[dtype])


@of_torch_s_own_tests
def test_grouped(device):
    dtype = torch.float64 if device == "cpu" else torch.bfloat16
    rtol = TYPES[dtype]
    offs = torch.tensor([0, 3, 3, 20, 40], dtype=torch.int32, device=device)
    x, w, g = random((40, 24), device, dtype, True), random((5, 24, 16), device, dtype, True), random((40, 16), device, dtype)
    y = wt.grouped_mm(x, w, offs)
    of_x, of_w = torch.autograd.grad(y, (x, w), g)
    begin = 0
    for group, end in enumerate(offs.tolist()):
        rows = slice(begin, end)
        begin = end
        for got, a, b in ((y[rows], x[rows], w[group]), (of_x[rows], g[rows], w[group].mT), (of_w[group], x[rows].mT, g[rows])):
            close(exact(got), exact(a) @ exact(b), rtol=rtol, atol=40 * rtol)
    columns = wt.grouped_mm(w.mT, x.mT, offs)
    close(columns, y.mT, rtol=0, atol=0)
    with torch.no_grad():
        close(wt.grouped_mm(x, w, offs), y, rtol=0, atol=0)
    close(torch.compile(wt.grouped_mm, backend="eager", fullgraph=True)(x, w, offs), y, rtol=0, atol=0)
    if device == "cpu":
        torch.autograd.gradcheck(lambda x, w: wt.grouped_mm(x, w, offs), (x, w))
        torch.autograd.gradgradcheck(lambda x, w: wt.grouped_mm(x, w, offs).sin(), (x, w), atol=1e-4)
        torch.library.opcheck(torch.ops.wsgemm.grouped_mm, (x, w, offs))
    else:
        close(y, torch._grouped_mm(x, w, offs=offs), rtol=rtol, atol=rtol)


def test_grouped_behind_the_last_offset(device):
    """Rows there are no group's: they have no part in the gradients, of which they have zeros."""
    offs = torch.tensor([3, 3, 8, 15], dtype=torch.int32, device=device)
    x, w = random((17, 5), device, torch.float64, True), random((4, 5, 6), device, torch.float64, True)
    torch.autograd.gradcheck(lambda x, w: wt.grouped_mm(x, w, offs)[:15], (x, w))
    a, b = random((5, 17), device, torch.float64, True), random((17, 6), device, torch.float64, True)
    torch.autograd.gradcheck(lambda a, b: wt.grouped_mm(a, b, offs), (a, b))
    of_x, of_a, of_b = torch.autograd.grad(
        wt.grouped_mm(x, w, offs)[:15].sum() + wt.grouped_mm(a, b, offs).sum(), (x, a, b)
    )
    assert not (of_x[15:].any() or of_a[:, 15:].any() or of_b[15:].any())


def test_addmm(device):
    a, b = random((3, 4), device), random((4, 5), device)
    for shape in ((3, 5), (5,), (1, 5), (3, 1), (1,), ()):
        c = random(shape, device)
        for beta, alpha in ((1, 1), (0, 2), (0.5, -2)):
            close(wt.addmm(c, a, b, beta=beta, alpha=alpha), torch.addmm(c, a, b, beta=beta, alpha=alpha))


def test_what_is_refused(device):
    a = random((3, 4), device)
    for f in (lambda: wt.mm(a, a), lambda: wt.mm(a[0], a), lambda: wt.bmm(a, a), lambda: wt.linear(a, a.mT)):
        with pytest.raises((ValueError, RuntimeError)):
            f()
    for x, y in ((a, a.mT.float()), (a.int(), a.mT.int())):
        with pytest.raises((TypeError, RuntimeError)):
            wt.matmul(x, y)
    with pytest.raises(ValueError, match="activation"):
        wt.linear(a, a, None, "tanh")


# ---- Gradients, transforms -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [torch.float64, torch.complex128], ids=str)
@pytest.mark.parametrize("shape_a, shape_b", SHAPES[:8])
def test_gradients_of_matmul(device, shape_a, shape_b, dtype):
    operands = random(shape_a, device, dtype, True), random(shape_b, device, dtype, True)
    assert torch.autograd.gradcheck(wt.matmul, operands)
    assert torch.autograd.gradgradcheck(wt.matmul, operands)


@pytest.mark.parametrize("activation", ACTIVATIONS)
@pytest.mark.parametrize("linear", [wt.linear, torch.ops.wsgemm.linear], ids=["function", "operator"])
def test_gradients_of_linear(device, linear, activation):
    operands = [random(shape, device, grad=True) for shape in ((2, 3, 4), (5, 4), (5,))]
    assert torch.autograd.gradcheck(lambda *x: linear(*x, activation), operands)
    assert torch.autograd.gradgradcheck(lambda *x: linear(*x, activation), operands)


@pytest.mark.parametrize("shape", [(3, 5), (5,), (3, 1), ()])
def test_gradients_of_addmm(device, shape):
    operands = [random(shape, device, grad=True) for shape in (shape, (3, 4), (4, 5))]
    for f in (lambda *x: wt.addmm(*x, beta=0.5, alpha=2.0), wt.addmm):
        assert torch.autograd.gradcheck(f, operands)
        assert torch.autograd.gradgradcheck(f, operands)


def test_gradients_of_what_is_empty(device):
    for shapes in (((0, 4), (5, 4), (5,)), ((2, 3, 0), (5, 0), (5,)), ((2, 0, 4), (5, 4), (5,))):
        operands = [random(shape, device, grad=True) for shape in shapes]
        ours, theirs = (torch.autograd.grad(f(*operands).sum(), operands) for f in (wt.linear, F.linear))
        close(ours, theirs)
        ours, theirs = (torch.autograd.grad(f(operands[0], operands[1].mT).sum(), operands[:2]) for f in (wt.matmul, torch.matmul))
        close(ours, theirs)


def test_gradients_of_wsgemm_itself(device):
    a, b = random((3, 4), device, grad=True), random((4, 5), device)
    wsgemm.matmul(a, b).sum().backward()
    close(a.grad, b.sum(1).expand(3, 4))


@pytest.mark.parametrize(
    "shape_a, shape_b, dims",
    [
        ((7, 3, 4), (7, 4, 5), (0, 0)), ((3, 7, 4), (4, 5), (1, None)), ((3, 4), (4, 7, 5), (None, 1)), ((7, 4), (7, 4), (0, 0)),
        ((4,), (4, 7), (None, 1)), ((7, 2, 3, 4), (7, 4, 5), (0, 0)), ((7, 3, 4), (7, 6, 4, 5), (0, 0)), ((7, 3, 4), (4,), (0, None)),
    ],
)  # fmt: skip
def test_stacks_of_matmul(device, shape_a, shape_b, dims):
    a, b = random(shape_a, device), random(shape_b, device)
    expected = torch.vmap(torch.matmul, dims)(a, b)
    for f in (wt.matmul, wsgemm.matmul, torch.ops.wsgemm.matmul):
        close(torch.vmap(f, dims)(a, b), expected)


def test_stacks_of_linear_and_addmm(device):
    for shapes, dims in (
        (((7, 3, 4), (5, 4), (5,)), (0, None, None)),
        (((3, 4), (7, 5, 4), (5,)), (None, 0, None)),
        (((2, 3, 4), (5, 4), (7, 5)), (None, None, 0)),
        (((7, 2, 3, 4), (5, 7, 4), (5, 7)), (0, 1, 1)),
        (((7, 4), (7, 5, 4), (7, 5)), (0, 0, 0)),
    ):
        given = [random(shape, device) for shape in shapes]
        close(torch.vmap(lambda *x: wt.linear(*x, "relu"), dims)(*given), torch.vmap(lambda *x: F.linear(*x).relu(), dims)(*given))
    for shapes, dims in (
        (((7, 5), (7, 3, 4), (4, 5)), (0, 0, None)),
        (((5, 7), (3, 4), (4, 5)), (1, None, None)),
        (((5,), (7, 3, 4), (7, 4, 5)), (None, 0, 0)),
    ):
        given = [random(shape, device) for shape in shapes]
        ours, theirs = (torch.vmap(lambda *x, f=f: f(*x, beta=2, alpha=3), dims)(*given) for f in (wt.addmm, torch.addmm))
        close(ours, theirs)


def test_functional_gradients(device):
    a, b = random((3, 3), device), random((3, 3), device)
    close(torch.func.grad(lambda a: wt.matmul(a, b).sum())(a), torch.func.grad(lambda a: (a @ b).sum())(a))
    second = [torch.func.jacrev(torch.func.grad(lambda a, f=f: f(a, a).square().sum()))(a) for f in (wt.linear, F.linear)]
    close(*second)
    close(torch.func.vmap(torch.func.grad(lambda a: wt.mm(a, b).square().sum()))(a.expand(2, 3, 3))[1], 2 * (a @ b) @ b.mT)


@pytest.mark.parametrize("name, arguments, keywords", [
    ("matmul", ((3, 4), (4, 5)), {}), ("matmul", ((2, 3, 4), (2, 4, 5)), {}), ("matmul", ((4,), (4,)), {}),
    ("addmm", ((5,), (3, 4), (4, 5)), {"beta": 2, "alpha": 0.5}), ("addmm", ((3, 5), (3, 4), (4, 5)), {}),
    ("linear", ((2, 3, 4), (5, 4), (5,), "relu"), {}), ("linear", ((3, 4), (5, 4), None, "silu"), {}), ("linear", ((3, 4), (5, 4)), {}),
])  # fmt: skip
@of_torch_s_own_tests
def test_operators_are_what_torch_expects(device, name, arguments, keywords):
    for grad in (False, True):
        given = [random(x, device, torch.float32, grad) if isinstance(x, tuple) else x for x in arguments]
        torch.library.opcheck(getattr(torch.ops.wsgemm, name).default, given, keywords)


def test_others_see_the_operators(device):
    """A tensor's class, and a mode: in the ways that compute at once otherwise."""
    from torch.utils._python_dispatch import TorchDispatchMode

    seen = []

    class Look(TorchDispatchMode):
        def __torch_dispatch__(self, function, types, args=(), kwargs=None):
            seen.append(str(function))
            return function(*args, **(kwargs or {}))

    class Own(torch.Tensor):
        @classmethod
        def __torch_dispatch__(cls, function, types, args=(), kwargs=None):
            seen.append(str(function))
            return torch.ones(3, 5)

    for grad in (False, True):
        a, b = random((3, 4), device, grad=grad), random((4, 5), device)
        own = torch.Tensor._make_subclass(Own, a.detach())
        for f in (wt.matmul, torch.ops.wsgemm.matmul):
            seen.clear()
            with Look():
                close(f(a, b), a @ b)
            assert seen.count("wsgemm.matmul.default") == 1
            seen.clear()
            f(own.requires_grad_(grad), b)
            assert seen == ["wsgemm.matmul.default"]
        seen.clear()
        for weight, bias in ((own, None), (b.mT, torch.Tensor._make_subclass(Own, random((5,), device)))):
            wt.linear(a, weight, bias)
            assert seen.pop() == "wsgemm.linear.default"


# ---- Compiled functions, autocast, streams ---------------------------------------------------------------------------------


def layers(x, weight, bias):
    y = wt.linear(wt.matmul(x, weight), weight, bias, "silu")
    return y.sum() + wt.mm(x[0], weight).sum() + wsgemm.matmul(x, weight).sum() + wt.addmm(bias, x[0], weight @ weight.mT).sum()


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("dynamic", [False, True])
def test_compiled_functions_have_no_breaks(device, dynamic):
    x, weight, bias = random((2, 3, 4), device, grad=True), random((4, 5), device, grad=True), random((4,), device)
    compiled = torch.compile(layers, fullgraph=True, backend="aot_eager", dynamic=dynamic)
    gradients = [torch.autograd.grad(f(x, weight, bias), (x, weight)) for f in (compiled, layers)]
    close(*gradients)
    longer = random((2, 9, 4), device)
    close(compiled(longer, weight, bias), layers(longer, weight, bias))


def test_autocast(device):
    a, b = random((3, 4), device, torch.float32, True), random((4, 5), device, torch.float32)
    bias = random((5,), device, torch.float32)
    for dtype in (torch.bfloat16, torch.float16) if device == "cuda" else (torch.bfloat16,):
        with torch.autocast(device, dtype):
            assert wt.matmul(a, b).dtype == wt.linear(a, b.mT, bias).dtype == wt.addmm(bias, a, b).dtype == dtype
            assert wt.matmul(a.detach(), b).dtype == dtype
            assert wt.mm(a.double(), b.double()).dtype == torch.float64
            wt.matmul(a, b).sum().backward()
    assert a.grad.dtype == torch.float32


@pytest.mark.skipif(not HAS_GPU, reason="no GPU")
def test_streams_and_graphs():
    a, b = random((512, 512), "cuda", torch.float32), random((512, 512), "cuda", torch.float32)
    expected, stream = wt.mm(a, b), torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        torch.cuda._sleep(100_000_000)
        result = wt.mm(a, b)
        is_done = stream.query()
        total = result.sum()
    stream.synchronize()
    assert not is_done
    close(total, expected.sum(), rtol=0, atol=0)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        captured = wt.linear(a, b, activation="relu")
    a.copy_(random((512, 512), "cuda", torch.float32))
    graph.replay()
    torch.cuda.synchronize()
    close(captured, F.linear(a.double(), b.double()).relu().float(), rtol=1e-5, atol=1e-4)


# ---- patch -----------------------------------------------------------------------------------------------------------------


@pytest.fixture
def seen(monkeypatch):
    """The products that patch() gives to wsgemm, which it gives all that it may."""
    shapes = []

    def look(a, *arguments, **keywords):
        shapes.append(tuple(a.shape))
        return product(a, *arguments, **keywords)

    product = patching.product
    for name in ("WINS", "WINS_OF_EPILOGUES"):
        monkeypatch.setattr(patching, name, tuple(win._replace(least_mn=1, least_k=1, least_products=0) for win in patching.WINS))
    monkeypatch.setattr(patching, "product", look)
    monkeypatch.setattr(patching._operators, "product", look)
    return shapes


# On each way from an operand of steps_of_layers() to a result: 5 of y, 7 of its square with the scale, the sums of z and the gradient
# 4 more, 16 back to y, and the product of all 21 rows 22 at most.
N_ROUNDINGS = 5 + 5 + 7 + 4 + 16 + 22


def steps_of_layers(x, linear):
    """Products of all kinds and their gradients: sums of products of the operands, with no minus, so that those of absolute values
    bound what each rounding adds."""
    x.grad = None
    linear.zero_grad()
    y = linear(x)
    z = torch.baddbmm(torch.ones(3, 7, 7, device=x.device, dtype=x.dtype), y, y.mT, beta=0.5, alpha=2) + x @ x.mT
    (z + torch.einsum("bij,bkj->bik", x, x)).square().sum().backward()
    return x.grad.clone(), linear.weight.grad.clone(), linear.bias.grad.clone(), z.detach()


def test_patched_layers(device, seen):
    x, linear = random((3, 7, 4), device, torch.float32, True), torch.nn.Linear(4, 5, device=device)
    absolute = torch.nn.Linear(4, 5, device=device, dtype=torch.float64)
    absolute.load_state_dict({name: value.abs().double() for name, value in linear.state_dict().items()})
    sums = steps_of_layers(x.detach().double().abs().requires_grad_(), absolute)

    def near(found):
        for one, other, most in zip(found, expected, sums):
            assert ((one - other).abs() <= 2 * N_ROUNDINGS * 2**-24 * most).all()

    expected = steps_of_layers(x, linear)
    assert not seen
    with patching._patched(device.upper()):
        with patching._patched(device.upper()):
            near(steps_of_layers(x, linear))
        assert len(seen) == 12
        n_seen = len(seen)
        a = torch.randint(5, (3, 3), device="cpu")
        assert (torch.mm(a, a) == a @ a).all() and (a.double() @ a.double() == a @ a).all()
        with torch.inference_mode():
            x.detach()[0] @ x.detach()[1].mT
        assert len(seen) == n_seen + 1
    n_seen = len(seen)
    near(steps_of_layers(x, linear))
    assert len(seen) == n_seen


def test_patch_knows_what_is_faster():
    a = torch.empty(4096, 4096, device="meta")
    small = torch.empty(128, 128, device="meta")
    assert patching._is_faster(a, a, patching.WINS) and not patching._is_faster(small, small, patching.WINS)
    assert not patching._is_faster(a.double(), a.double(), patching.WINS)
    before = torch.backends.cuda.matmul.fp32_precision
    try:
        torch.backends.cuda.matmul.fp32_precision = "tf32"
        assert not patching._is_faster(a, a, patching.WINS)
    finally:
        torch.backends.cuda.matmul.fp32_precision = before


def test_results_in_numpy_are_the_same():
    a, b = np.arange(12.0).reshape(3, 4), np.arange(20.0).reshape(4, 5)
    np.testing.assert_array_equal(wt.matmul(torch.from_numpy(a), torch.from_numpy(b)).numpy(), wsgemm.matmul(a, b))


def test_examples_of_the_documents():
    for module in (wt._functions, wt._operators):
        failures, n_tests = doctest.testmod(module)
        assert n_tests and not failures
