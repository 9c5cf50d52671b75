"""Products on a real GPU, of torch, cupy and jax arrays: values, views, streams, and what is refused. Skipped without a GPU.

Each library says through a small adapter how its arrays are made and read back; what it lacks (streams, writing) is skipped.
"""

import threading

import numpy as np
import pytest
import wsgemm
from wsgemm import _lib
from wsgemm_reference import DTYPES, assert_product, integer_array, random_array

if "cuda" not in wsgemm.config()["backends"].split():
    pytest.skip("this build has no GPU backend", allow_module_level=True)


class Torch:
    name = "torch"
    is_mutable = True

    def __init__(self):
        self.torch = pytest.importorskip("torch")
        if not self.torch.cuda.is_available():
            pytest.skip("torch sees no GPU")

    def put(self, array):
        return self.torch.from_numpy(np.ascontiguousarray(array)).cuda()

    def get(self, x):
        return x.resolve_conj().cpu().numpy()

    def address(self, x):
        return x.data_ptr()

    def transposed(self, x):
        return x.mT

    def owns(self, x):
        return isinstance(x, self.torch.Tensor) and x.is_cuda

    def stream(self):
        return self.torch.cuda.stream(self.torch.cuda.Stream())

    def spin(self):
        self.torch.cuda._sleep(400_000_000)  # clock cycles: some 0.2 s

    def synchronize(self):
        self.torch.cuda.synchronize()


class Cupy:
    name = "cupy"
    is_mutable = True

    def __init__(self):
        self.cupy = pytest.importorskip("cupy")
        try:
            self.cupy.cuda.runtime.getDeviceCount()
        except self.cupy.cuda.runtime.CUDARuntimeError as error:
            pytest.skip(f"cupy sees no GPU: {error}")
        self.kernel = self.cupy.RawKernel(
            'extern "C" __global__ void spin(long long cycles) { long long t = clock64(); while (clock64() - t < cycles) {} }',
            "spin",
        )

    def put(self, array):
        return self.cupy.asarray(np.ascontiguousarray(array))

    def get(self, x):
        return self.cupy.asnumpy(x)

    def address(self, x):
        return x.data.ptr

    def transposed(self, x):
        return x.swapaxes(-1, -2)

    def owns(self, x):
        return isinstance(x, self.cupy.ndarray)

    def stream(self):
        return self.cupy.cuda.Stream(non_blocking=True)

    def spin(self):
        self.kernel((1,), (1,), (np.int64(400_000_000),))

    def synchronize(self):
        self.cupy.cuda.runtime.deviceSynchronize()


class Jax:
    name = "jax"
    is_mutable = False

    def __init__(self):
        self.jax = pytest.importorskip("jax")
        self.jax.config.update("jax_enable_x64", True)
        if self.jax.default_backend() != "gpu":
            pytest.skip("jax sees no GPU")

    def put(self, array):
        return self.jax.numpy.asarray(array)

    def get(self, x):
        return np.asarray(x)

    def transposed(self, x):
        return x.swapaxes(-1, -2)

    def owns(self, x):
        return isinstance(x, self.jax.Array) and x.devices() == {self.jax.devices()[0]}

    def synchronize(self):
        pass


@pytest.fixture(scope="module", params=[Torch, Cupy, Jax], ids=lambda library: library.name)
def library(request):
    return request.param()


@pytest.fixture
def mutable(library):
    if not library.is_mutable:
        pytest.skip(f"{library.name} arrays cannot be written")
    return library


@pytest.fixture
def rng():
    return np.random.default_rng(81)


# ---- Values --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    "shape_a, shape_b",
    [
        ((65, 33), (33, 129)),
        ((300, 257), (257, 301)),
        ((1, 70), (70, 1)),
        ((6, 3, 4), (6, 4, 5)),
        ((6, 3, 4), (4, 5)),
        ((2, 1, 3, 4), (6, 4, 5)),
        ((4,), (4, 5)),
        ((3, 4), (4,)),
        ((4,), (4,)),
        ((0, 4), (4, 5)),
        ((3, 0), (0, 5)),
    ],
)
def test_values(library, shape_a, shape_b, dtype, rng):
    a, b = random_array(rng, shape_a, dtype), random_array(rng, shape_b, dtype)
    result = wsgemm.matmul(library.put(a), library.put(b))
    assert library.owns(result)
    assert_product(np.asarray(library.get(result)), a, b)


@pytest.mark.parametrize("dtype", DTYPES)
def test_gemm_with_every_op(library, dtype, rng):
    op = {0: lambda x: x, 1: lambda x: x.T, 2: lambda x: x.conj().T}
    c = integer_array(rng, (30, 50), dtype)
    for trans_a in op:
        for trans_b in op:
            a = integer_array(rng, (40, 30) if trans_a else (30, 40), dtype)
            b = integer_array(rng, (50, 40) if trans_b else (40, 50), dtype)
            result = wsgemm.gemm(2, library.put(a), library.put(b), -1, library.put(c), trans_a, trans_b)
            np.testing.assert_array_equal(library.get(result), 2 * (op[trans_a](a) @ op[trans_b](b)) - c)


def test_the_result_of_one_library_is_the_other_s_operand(library, rng):
    a = integer_array(rng, (100, 100), "float32")
    x = library.put(a)
    for _ in range(3):
        x = wsgemm.matmul(x, wsgemm.matmul(library.put(a % 2), library.put(np.eye(100, dtype="float32"))))
    expected = a.astype("float64")
    for _ in range(3):
        expected = expected @ (a % 2)
    assert np.abs(library.get(x) - expected).max() <= 1e-5 * np.abs(expected).max()


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("activation", [None, "relu", "gelu_tanh", "gelu_erf", "silu"])
def test_epilogue(library, dtype, activation, rng):
    a, b, residual, bias = (
        rng.uniform(-1, 1, shape).astype(dtype) for shape in ((3, 130, 70), (70, 90), (3, 130, 90), (3, 1, 90))
    )
    more = {"activation": activation, "out_scale": 1.5, "alpha": 0.5}
    expected = wsgemm.matmul(a, b, bias=bias, residual=residual, **more).astype("float64")
    result = wsgemm.matmul(library.put(a), library.put(b), bias=library.put(bias), residual=library.put(residual), **more)
    assert library.owns(result)
    got = np.asarray(library.get(result))
    assert got.dtype == dtype
    assert np.abs(got.astype("float64") - expected).max() <= 8 * np.finfo(dtype).eps * (1 + np.abs(expected).max())


def test_epilogue_into_out(mutable, rng):
    library = mutable
    a, b, c = (integer_array(rng, shape, "float32") for shape in ((130, 70), (70, 90), (130, 90)))
    out, sums, bias = library.put(c), library.put(np.zeros(90, "float32")), library.put(np.repeat(c[0], 2))
    wsgemm.matmul(library.put(a), library.put(b), out, activation="relu", bias=bias[::2], residual=out, column_sums=sums)
    expected = np.maximum(a @ b + c[0], 0) + c
    np.testing.assert_array_equal(library.get(out), expected)
    np.testing.assert_array_equal(library.get(sums), expected.sum(axis=0))


def test_single_result_of_halves(library, rng):
    a, b = integer_array(rng, (130, 70), "float16"), integer_array(rng, (70, 90), "float16")
    result = np.asarray(library.get(wsgemm.matmul(library.put(a), library.put(b), dtype="float32")))
    assert result.dtype == np.float32
    np.testing.assert_array_equal(result, a.astype("float32") @ b.astype("float32"))


def test_bfloat16_of_torch(rng):
    library = Torch()
    torch = library.torch

    def put(array):
        return library.put(array).bfloat16()

    def check(result, expected, dtype=torch.bfloat16):
        assert library.owns(result) and result.dtype == dtype
        np.testing.assert_array_equal(library.get(result.float()), library.get(library.put(expected).to(dtype).float()))

    a, b, c = (integer_array(rng, shape, "float32") for shape in ((3, 130, 70), (70, 90), (3, 130, 90)))
    x, y, z = put(a), put(b), put(c)
    check(wsgemm.matmul(x, y), a @ b)
    check(wsgemm.matmul(x, put(b.T).mT), a @ b)
    check(wsgemm.matmul(x[..., ::2], y[::2]), a[..., ::2] @ b[::2])
    for dtype in (torch.float32, torch.float16):
        check(wsgemm.matmul(x, y, dtype=dtype), a @ b, dtype)
    for function in (wsgemm.gemm, wsgemm.bgemm):
        check(function(2, x[0], y, -1, z[0]), 2 * (a[0] @ b) - c[0])
    out, sums = z.clone(), torch.zeros(3, 90, device="cuda")
    assert wsgemm.matmul(x, y, out, beta=1) is out
    check(out, a @ b + c)
    result = wsgemm.matmul(x, y, bias=z[0, 0], residual=z, activation="relu", column_sums=sums)
    check(result, np.maximum(a @ b + c[0, 0], 0) + c)
    assert sums.dtype == torch.float32
    with wsgemm.prepack(y) as packed:
        check(wsgemm.matmul(x, packed), a @ b)
    with pytest.raises(TypeError, match="a is bfloat16 and b is float16"):
        wsgemm.matmul(x, y.half())


def test_bfloat16_of_ml_dtypes(library, rng):
    bfloat16 = pytest.importorskip("ml_dtypes").bfloat16
    a, b = (integer_array(rng, shape, "float32") for shape in ((130, 70), (70, 90)))
    try:
        x, y = library.put(a.astype(bfloat16)), library.put(b.astype(bfloat16))
    except (TypeError, ValueError) as error:
        pytest.skip(f"{library.name} does not take NumPy arrays of ml_dtypes: {error}")
    result = wsgemm.matmul(x, y)
    assert library.owns(result) and library.get(result).dtype == bfloat16
    np.testing.assert_array_equal(library.get(result), (a @ b).astype(bfloat16))


# ---- Views and out -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", DTYPES)
def test_views_without_copies(mutable, dtype, rng):
    library = mutable
    host = integer_array(rng, (80, 96), dtype)
    wide = library.put(host)
    for cut in (np.s_[3:43, 5:45], np.s_[:40, 56:], np.s_[::2, :40]):
        for is_turned in (False, True):
            a = library.transposed(wide[cut]) if is_turned else wide[cut]
            host_a = host[cut].T if is_turned else host[cut]
            target = library.put(np.zeros((60, 60), dtype))
            out = target[10:50, 7:47]
            assert wsgemm.matmul(a, library.transposed(a), out) is out
            np.testing.assert_array_equal(library.get(out), host_a @ host_a.T)
            around = library.get(target).copy()
            around[10:50, 7:47] = 0
            assert not around.any()
            turned = library.transposed(library.put(np.zeros((40, 40), dtype)))
            wsgemm.matmul(a, a, turned, alpha=2)
            np.testing.assert_array_equal(library.get(turned), 2 * (host_a @ host_a))


def test_what_blas_cannot_read_is_copied_by_the_library(mutable, rng):
    library = mutable
    host = integer_array(rng, (60, 60), "float64")
    x = library.put(host)
    np.testing.assert_array_equal(library.get(wsgemm.matmul(x[:, ::2], x[::2, ::3])), host[:, ::2] @ host[::2, ::3])
    wsgemm.matmul(x, library.transposed(x), x)
    np.testing.assert_array_equal(library.get(x), host @ host.T)
    with pytest.raises(ValueError, match="out.*BLAS cannot write"):
        wsgemm.matmul(x[:30, :30], x[:30, :30], library.put(host)[::2, ::2])


def test_beta_and_stacks_into_out(mutable, rng):
    library = mutable
    a, b, c = (integer_array(rng, shape, "complex64") for shape in ((7, 20, 30), (30, 10), (7, 20, 10)))
    out = library.put(c)
    wsgemm.matmul(library.put(a), library.put(b), out, alpha=1 + 1j, beta=-2)
    np.testing.assert_array_equal(library.get(out), (1 + 1j) * (a @ b) - 2 * c)


# ---- Streams -------------------------------------------------------------------------------------------------------------


def test_product_waits_for_what_is_on_the_current_stream(mutable, rng):
    library = mutable
    a, b = integer_array(rng, (256, 256), "float32"), integer_array(rng, (256, 256), "float32")
    source, x, y, z = library.put(a), library.put(np.zeros_like(a)), library.put(b), library.put(np.zeros_like(a))
    wsgemm.matmul(x, y, z)
    library.synchronize()
    for _ in range(3):
        with library.stream():
            library.spin()
            x[...] = source  # after the spinning, on the same stream
            wsgemm.matmul(x, y, z)
            z += 1  # after the product
            result = library.get(z)
        np.testing.assert_array_equal(result, a @ b + 1)
        x[...] = 0
        library.synchronize()


def test_call_returns_before_the_product_is_done(mutable):
    torch = mutable.torch if mutable.name == "torch" else pytest.skip("asked of torch only")
    x = torch.ones(512, 512, device="cuda")
    wsgemm.matmul(x, x, x.clone())
    with mutable.stream():
        mutable.spin()
        result = wsgemm.matmul(x, x)
        is_done = torch.cuda.current_stream().query()
    torch.cuda.synchronize()
    assert not is_done and (result == 512).all().item()


def test_threads_on_streams_of_their_own(mutable, rng):
    library = mutable
    a = integer_array(rng, (128, 128), "float32")
    failures = []

    def work(factor):
        with library.stream():
            x, out = library.put(a * factor), library.put(np.zeros_like(a))
            for _ in range(50):
                out *= 0
                wsgemm.matmul(x, x, out, beta=1)
            if not (library.get(out) == (a * factor) @ (a * factor)).all():
                failures.append(factor)

    threads = [threading.Thread(target=work, args=(factor,)) for factor in range(1, 5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


def test_libraries_wait_for_each_other(rng):
    torch, cupy = Torch(), Cupy()
    a, b = integer_array(rng, (256, 256), "float64"), integer_array(rng, (256, 256), "float64")
    x, y = torch.put(np.zeros_like(a)), cupy.put(b)
    source = torch.put(a)
    wsgemm.matmul(x, y)
    torch.synchronize()
    with torch.stream(), cupy.stream():
        torch.spin()
        x.copy_(source)
        result = wsgemm.matmul(x, y, out=cupy.cupy.empty((256, 256)))  # on cupy's stream, after torch's copy
        x.zero_()  # on torch's stream, after the product
        cupy.spin()
        np.testing.assert_array_equal(cupy.get(result), a @ b)
    jax = Jax()
    for left, right, kind in ((torch.put(a), jax.put(b), torch), (jax.put(a), cupy.put(b), jax)):
        result = wsgemm.matmul(left, right)
        assert kind.owns(result)
        np.testing.assert_array_equal(kind.get(result), a @ b)


def test_jax_arrays_are_ready_and_stay_as_they_are(rng):
    library = Jax()
    jnp = library.jax.numpy
    a = integer_array(rng, (512, 512), "float32")
    x = library.put(a)
    before = jnp.zeros((512, 512), "float32")
    for _ in range(5):
        late = x
        for _ in range(20):
            late = jnp.sin(late @ x)  # still being computed when the product is asked for
        late = late * 0 + x
        result = wsgemm.matmul(late, late)
        after = jnp.zeros((512, 512), "float32")
        np.testing.assert_array_equal(np.asarray(result), a @ a)
        np.testing.assert_array_equal(np.asarray(x), a)
        assert not np.asarray(before).any() and not np.asarray(after).any()
        assert not np.asarray(library.jax.jit(lambda: jnp.zeros((512, 512), "float32"))()).any()
    with pytest.raises(ValueError, match="out is a .*Array.*cannot be written"):
        wsgemm.matmul(x, x, out=result)


def test_product_in_a_torch_graph(rng):
    library = Torch()
    torch = library.torch
    a, b = integer_array(rng, (300, 300), "float32"), integer_array(rng, (300, 300), "float32")
    x, y, out = library.put(a), library.put(b), library.put(np.zeros_like(a))
    wsgemm.matmul(x, y, out)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        wsgemm.matmul(x, y, out)
    for factor in (2, 3):
        x.copy_(torch.from_numpy(a * factor))
        graph.replay()
        np.testing.assert_array_equal(library.get(out), factor * (a @ b))


def test_product_in_a_cupy_graph(rng):
    library = Cupy()
    cupy = library.cupy
    a, b = integer_array(rng, (300, 300), "float32"), integer_array(rng, (300, 300), "float32")
    x, y, out = library.put(a), library.put(b), library.put(np.zeros_like(a))
    with cupy.cuda.Stream(non_blocking=True) as stream:
        wsgemm.matmul(x, y, out)
        stream.synchronize()
        stream.begin_capture()
        wsgemm.matmul(x, y, out)
        graph = stream.end_capture()
        for factor in (2, 3):
            x[...] = library.put(a * factor)
            graph.launch(stream)
            stream.synchronize()
            np.testing.assert_array_equal(library.get(out), factor * (a @ b))


# ---- Packed operands: as large as products must be that are made of slices anyway ------------------------------------------


def bits(library, x):
    return np.ascontiguousarray(library.get(x)).view("uint32")


def hard_array(rng, shape, dtype):
    """With rows and columns that two slices, or three, will not do for."""
    x = random_array(rng, shape, dtype)
    x[..., 5, ::3] *= 1e-9
    x[..., ::3, 11] *= 1e-9
    x[..., 200, 300] *= 1e-30
    x[..., 17, 40], x[..., 90, 8] = np.inf, np.nan
    return x


@pytest.mark.parametrize("dtype", ["float32", "complex64"])
@pytest.mark.parametrize("side", ["a", "b", "ab"])
def test_packed_operands_give_the_same_bits(library, side, dtype, rng):
    x, y = library.put(hard_array(rng, (2048, 1536), dtype)), library.put(hard_array(rng, (1536, 1792), dtype))
    left = wsgemm.prepack(x, "a") if "a" in side else x
    right = wsgemm.prepack(y, "b") if "b" in side else y
    told = wsgemm.explain(left, right)
    for packed in (left, right):
        if isinstance(packed, wsgemm.Packed):
            assert packed.nbytes == wsgemm.packed_size(packed.array, packed.side)
            assert bool(told.get("packed")) == (packed.nbytes > 0)
    expected = bits(library, wsgemm.matmul(x, y))
    for _ in range(2):
        result = wsgemm.matmul(left, right)
        assert library.owns(result)
        np.testing.assert_array_equal(bits(library, result), expected)


@pytest.mark.parametrize("dtype", ["float32", "complex64"])
def test_packed_operands_of_small_products(library, dtype, rng):
    a, b = random_array(rng, (300, 400), dtype), random_array(rng, (400, 200), dtype)
    x, y = library.put(a), library.put(b)
    for result in (wsgemm.matmul(x, wsgemm.prepack(y)), wsgemm.matmul(wsgemm.prepack(x, "a"), y)):
        assert_product(np.asarray(library.get(result)), a, b)
    for left, right, side in ((a[0], b, "b"), (a, b[:, 0], "a"), (a, b[:, 0], "b")):
        x, y = library.put(left), library.put(right)
        x, y = (wsgemm.prepack(x, "a"), y) if side == "a" else (x, wsgemm.prepack(y))
        assert_product(np.asarray(library.get(wsgemm.matmul(x, y))), left, right)


@pytest.mark.parametrize("dtype", ["float32", "complex64"])
@pytest.mark.parametrize("trans", [0, 1, 2])
def test_packed_operands_of_gemm(library, trans, dtype, rng):
    shape_a, shape_b = ((1280, 1536), (1792, 1280)) if trans else ((1536, 1280), (1280, 1792))
    x, y = library.put(hard_array(rng, shape_a, dtype)), library.put(hard_array(rng, shape_b, dtype))
    expected = bits(library, wsgemm.gemm(1, x, y, trans_a=trans, trans_b=trans))
    packed_x, packed_y = wsgemm.prepack(x, "a", trans=trans), wsgemm.prepack(y, "b", trans=trans)
    for left, right in ((packed_x, y), (x, packed_y), (packed_x, packed_y)):
        np.testing.assert_array_equal(bits(library, wsgemm.gemm(1, left, right, trans_a=trans, trans_b=trans)), expected)


@pytest.mark.parametrize("dtype", ["float32", "complex64"])
def test_packed_views_and_results_in_any_order(mutable, dtype, rng):
    library = mutable
    wide, x = library.put(hard_array(rng, (2000, 2000), dtype)), library.put(hard_array(rng, (1536, 1280), dtype))
    by_rows = library.put(np.zeros((1536, 1500), dtype))
    by_columns = library.transposed(library.put(np.zeros((1500, 1536), dtype)))
    for y in (wide[20:1300, 31:1531], library.transposed(wide[31:1531, 20:1300])):
        for order, out in (("C", by_rows), ("F", by_columns)):
            wsgemm.matmul(x, y, out)
            expected = bits(library, out)
            # Of real types either will do for both.
            for made_for in (order,) if dtype == "complex64" else ("C", "F"):
                for left, right in ((x, wsgemm.prepack(y, order=made_for)), (wsgemm.prepack(x, "a", order=made_for), y)):
                    out[...] = 0
                    wsgemm.matmul(left, right, out)
                    np.testing.assert_array_equal(bits(library, out), expected)


@pytest.mark.parametrize("dtype", ["float32", "complex64"])
def test_packed_operands_of_stacks(library, dtype, rng):
    for shape_a, shape_b, side in (
        ((3, 640, 1024), (1024, 1280), "b"),
        ((1024, 1152), (4, 1152, 768), "a"),
        ((4, 1024, 768), (4, 768, 1024), "a"),
        ((4, 1024, 768), (4, 768, 1024), "b"),
    ):
        x, y = library.put(hard_array(rng, shape_a, dtype)), library.put(hard_array(rng, shape_b, dtype))
        expected = bits(library, wsgemm.matmul(x, y))
        left, right = (wsgemm.prepack(x, "a"), y) if side == "a" else (x, wsgemm.prepack(y))
        if "f16" in wsgemm.explain(x, y)["kernel"] or dtype != "float32":
            np.testing.assert_array_equal(bits(library, wsgemm.matmul(left, right)), expected)
        else:  # packed operands are slices of FP16, which the product by itself is not made of
            same, packed = library.get(wsgemm.matmul(x, y)), library.get(wsgemm.matmul(left, right))
            np.testing.assert_allclose(packed, same, rtol=0, atol=1e-5 * abs(same[np.isfinite(same)]).max())


def test_packed_operands_with_an_epilogue(library, rng):
    x, y = (library.put(hard_array(rng, shape, "float32")) for shape in ((2048, 1536), (1536, 1792)))
    bias = library.put(random_array(rng, (1792,), "float32"))
    packed = wsgemm.prepack(y)
    more = {"activation": "relu", "bias": bias, "out_scale": 0.5}
    expected = bits(library, wsgemm.matmul(x, y, **more))
    np.testing.assert_array_equal(bits(library, wsgemm.matmul(x, packed, **more)), expected)


def test_packed_operands_of_a_class(library, rng):
    x, y = (library.put(random_array(rng, shape, "float32")) for shape in ((2048, 1536), (1536, 1792)))
    fast, exact = wsgemm.Handle(math="tf32"), wsgemm.Handle(math="pedantic")
    packed = {handle: wsgemm.prepack(y, handle=handle) for handle in (None, fast, exact)}
    assert packed[exact].nbytes == wsgemm.packed_size(y, handle=exact) == 0 and packed[fast].nbytes <= packed[None].nbytes
    for handle in packed:
        expected = bits(library, wsgemm.matmul(x, y, handle=handle))
        for y_packed in packed.values():  # one of another class is not looked at
            np.testing.assert_array_equal(bits(library, wsgemm.matmul(x, y_packed, handle=handle)), expected)


def test_packed_form_in_memory_of_the_caller(mutable, rng):
    library = mutable
    x, y = library.put(random_array(rng, (2048, 1536), "float32")), library.put(random_array(rng, (1536, 1792), "float32"))
    n_bytes = wsgemm.packed_size(y)
    if n_bytes == 0:
        pytest.skip("this GPU's products use no packed form")
    assert n_bytes >= 4 * 1536 * 1792
    guard = 4096
    memory = library.put(np.full(n_bytes + 2 * guard, 0xAB, "uint8"))
    packed = wsgemm.prepack(y, memory=memory[guard : guard + n_bytes])
    expected = bits(library, wsgemm.matmul(x, y))
    np.testing.assert_array_equal(bits(library, wsgemm.matmul(x, packed)), expected)
    around = library.get(memory)
    assert (around[:guard] == 0xAB).all() and (around[-guard:] == 0xAB).all()
    for bad, status in (
        (memory[guard : guard + n_bytes - 1], wsgemm.Status.WORKSPACE_TOO_SMALL),
        (memory[guard + 64 :], wsgemm.Status.INVALID_VALUE),
    ):
        with pytest.raises(wsgemm.WsgemmError) as caught:
            wsgemm.prepack(y, memory=bad)
        assert caught.value.status == status
    with pytest.raises(TypeError, match="memory lies in host memory"):
        wsgemm.prepack(y, memory=np.zeros(n_bytes, "uint8"))


def test_packed_form_in_memory_of_another_library(rng):
    torch, cupy = Torch(), Cupy()
    a, b = random_array(rng, (2048, 1536), "float32"), random_array(rng, (1536, 1792), "float32")
    n_bytes = wsgemm.packed_size(torch.put(b))
    if n_bytes == 0:
        pytest.skip("this GPU's products use no packed form")
    for library, other in ((torch, cupy), (cupy, torch)):
        with torch.stream(), cupy.stream():
            x, source, y = library.put(a), library.put(b), library.put(np.zeros_like(b))
            memory = other.put(np.zeros(n_bytes, "uint8"))
            library.spin()
            y[...] = source
            packed = wsgemm.prepack(y, memory=memory)  # on the other's stream, after the copy
            result = wsgemm.matmul(x, packed)
            packed.close()
            memory[...] = 0  # on the other's stream, after the product
            np.testing.assert_array_equal(bits(library, result), bits(library, wsgemm.matmul(x, source)))


def test_packing_waits_for_what_is_on_the_current_stream(mutable, rng):
    library = mutable
    x, source = (library.put(random_array(rng, shape, "float32")) for shape in ((2048, 1536), (1536, 1792)))
    y = library.put(np.zeros((1536, 1792), "float32"))
    expected = bits(library, wsgemm.matmul(x, source))
    for _ in range(3):
        with library.stream():
            library.spin()
            y[...] = source
            packed = wsgemm.prepack(y)
            result = wsgemm.matmul(x, packed)
            del packed  # its memory may be taken for what follows on this stream
            library.put(np.ones(4 * 1536 * 1792 + 1024, "uint8"))
            np.testing.assert_array_equal(bits(library, result), expected)
        y[...] = 0
        library.synchronize()


def test_packing_in_a_torch_graph(rng):
    library = Torch()
    torch = library.torch
    a, b = random_array(rng, (2048, 1536), "float32"), random_array(rng, (1536, 1792), "float32")
    x, y, out = library.put(a), library.put(b), library.put(np.zeros((2048, 1792), "float32"))
    memory = torch.empty(max(wsgemm.packed_size(y), 1), dtype=torch.uint8, device="cuda")
    before = wsgemm.prepack(y, memory=memory)
    n_bytes = max(wsgemm.workspace_size(x, y, out), wsgemm.workspace_size(x, before, out))
    handle = wsgemm.Handle(workspace=torch.empty(n_bytes, dtype=torch.uint8, device="cuda"))
    wsgemm.matmul(x, before, out, handle=handle)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        packed = wsgemm.prepack(y, memory=memory, handle=handle)
        wsgemm.matmul(x, packed, out, handle=handle)
    for factor in (1, 3):
        y.copy_(torch.from_numpy(b * factor))
        graph.replay()
        np.testing.assert_array_equal(bits(library, out), bits(library, wsgemm.matmul(x, y, handle=handle)))
    assert packed.nbytes == before.nbytes


def test_packed_operands_of_torch(rng):
    library = Torch()
    torch = library.torch
    x, y = library.put(hard_array(rng, (2048, 1536), "complex64")), library.put(hard_array(rng, (1792, 1536), "complex64"))
    for left, right in ((x.conj(), y.mT), (x, y.mH), (x.conj(), y.mH)):
        expected = bits(library, wsgemm.matmul(left, right))
        np.testing.assert_array_equal(bits(library, wsgemm.matmul(left, wsgemm.prepack(right))), expected)
        np.testing.assert_array_equal(bits(library, wsgemm.matmul(wsgemm.prepack(left, "a"), right)), expected)
    weight = torch.ones(512, 512, device="cuda", requires_grad=True)
    with pytest.raises(TypeError, match="x requires a gradient"):
        wsgemm.prepack(weight)
    with torch.no_grad():
        packed = wsgemm.prepack(weight)
        assert (wsgemm.matmul(weight, packed) == 512).all().item()
        if packed.nbytes:
            weight.data = torch.ones(512, 512, device="cuda")  # elsewhere
            with pytest.raises(wsgemm.WsgemmError, match="packed_b was made of another operand: its data") as caught:
                wsgemm.matmul(torch.ones(512, 512, device="cuda"), packed)
            assert caught.value.status == wsgemm.Status.INVALID_VALUE


def test_packed_operands_are_refused_elsewhere(library):
    x = library.put(np.ones((256, 256), "float32"))
    host = np.ones((256, 256), "float32")
    with wsgemm.prepack(x) as packed:
        with pytest.raises(ValueError, match="a was packed as the operand b"):
            wsgemm.matmul(packed, x)
        with pytest.raises(TypeError, match="a lies in host memory .*b lies on a GPU"):
            wsgemm.matmul(host, packed)
        with pytest.raises(ValueError, match="b was packed with trans = 0, but is multiplied with 1"):
            wsgemm.gemm(1, x, packed, trans_b=1)
        if library.is_mutable and packed.nbytes:
            with pytest.raises(ValueError, match="b is packed, but may share memory with the result"):
                wsgemm.matmul(x, packed, x)
    with pytest.raises(ValueError, match="b is a packed operand that was closed"):
        wsgemm.matmul(x, packed)
    for dtype in ("float64", "complex128"):
        other = library.put(np.ones((256, 256), dtype))
        with wsgemm.prepack(other) as packed:
            assert packed.nbytes == 0
            assert (library.get(wsgemm.matmul(other, packed)) == 256).all()
    for name in ("C", "F"):
        if library.is_mutable and wsgemm.packed_size(x):
            z = library.put(np.ones((256, 256), "complex64"))
            out = library.put(np.zeros((256, 256), "complex64"))
            with pytest.raises(ValueError, match="b was packed for complex results in"):
                wsgemm.matmul(z, wsgemm.prepack(z, order=name), library.transposed(out) if name == "C" else out)


# ---- Workspaces ----------------------------------------------------------------------------------------------------------


def workspace_of(library, n_bytes):
    return library.put(np.full(n_bytes, 0xAB, "uint8"))


@pytest.mark.parametrize("dtype", ["float32", "complex64"])
def test_a_workspace_changes_no_bits(mutable, dtype, rng):
    library = mutable
    x, y = library.put(hard_array(rng, (2048, 1536), dtype)), library.put(hard_array(rng, (1536, 1792), dtype))
    expected = bits(library, wsgemm.matmul(x, y))
    n_bytes, guard = wsgemm.workspace_size(x, y), 4096
    memory = workspace_of(library, n_bytes + 2 * guard)
    handle = wsgemm.Handle(workspace=memory[guard : guard + n_bytes])
    np.testing.assert_array_equal(bits(library, wsgemm.matmul(x, y, handle=handle)), expected)
    around = library.get(memory)
    assert (around[:guard] == 0xAB).all() and (around[-guard:] == 0xAB).all()
    if n_bytes:
        assert (around[guard:-guard] != 0xAB).any()
        handle.workspace = memory[: n_bytes // 4 * 3 // 256 * 256]  # piece by piece
        np.testing.assert_array_equal(bits(library, wsgemm.matmul(x, y, handle=handle)), expected)
        with pytest.raises(wsgemm.WsgemmError) as caught:
            handle.workspace = memory[64:]
        assert caught.value.status == wsgemm.Status.INVALID_VALUE
    handle.workspace = None
    np.testing.assert_array_equal(bits(library, wsgemm.matmul(x, y, handle=handle)), expected)
    for bad, error in ((np.zeros(4096, "uint8"), TypeError), (memory[::2], ValueError)):
        with pytest.raises(error, match="workspace"):
            handle.workspace = bad


def test_workspace_of_an_epilogue(mutable, rng):
    library = mutable
    x, y = (library.put(random_array(rng, (1024, 1024), "float32")) for _ in range(2))
    host = random_array(rng, (1024, 1024), "float32")
    n_bytes = wsgemm.workspace_size(x, y, library.put(host), residual=library.put(host))
    out = library.put(host)
    n_bytes_with_copy = wsgemm.workspace_size(x, y, out, residual=out)
    assert n_bytes_with_copy >= max(host.nbytes, n_bytes + 1) and wsgemm.workspace_size(x, y, residual=x) == n_bytes
    results = []
    for workspace in (None, workspace_of(library, n_bytes_with_copy)):
        out = library.put(host)
        wsgemm.matmul(x, y, out, residual=out, activation="relu", handle=wsgemm.Handle(workspace=workspace))
        results.append(bits(library, out))
    np.testing.assert_array_equal(results[0], results[1])


def test_workspace_size_of_what_is_copied(mutable, rng):
    library = mutable
    x, y = library.put(random_array(rng, (2048, 1536), "float32")), library.put(random_array(rng, (1536, 3584), "float32"))
    n_bytes = wsgemm.workspace_size(x, library.put(random_array(rng, (1536, 1792), "float32")))
    assert wsgemm.workspace_size(x, y[:, ::2]) == n_bytes
    assert wsgemm.workspace_size(library.put(np.zeros((0, 4), "float32")), library.put(np.zeros((4, 5), "float32"))) == 0


def test_products_in_a_torch_graph_with_a_workspace(rng):
    library = Torch()
    torch = library.torch
    shapes = ((2048, 1536, 1792), (1536, 2048, 1280), (1280, 1024, 2048))
    xs = [library.put(hard_array(rng, (m, k), "float32")) for m, k, n in shapes]
    ys = [library.put(hard_array(rng, (k, n), "float32")) for m, k, n in shapes]
    outs = [library.put(np.zeros((m, n), "float32")) for m, k, n in shapes]
    n_bytes = max(wsgemm.workspace_size(*arguments) for arguments in zip(xs, ys, outs))
    handle = wsgemm.Handle(workspace=torch.empty(n_bytes, dtype=torch.uint8, device="cuda"))
    for arguments in zip(xs, ys, outs):
        wsgemm.matmul(*arguments, handle=handle)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for arguments in zip(xs, ys, outs):
            wsgemm.matmul(*arguments, handle=handle)
    for factor in (1, 3):
        for x, out in zip(xs, outs):
            x.mul_(factor)
            out.zero_()
        graph.replay()
        for x, y, out in zip(xs, ys, outs):
            np.testing.assert_array_equal(bits(library, out), bits(library, wsgemm.matmul(x, y)))


def test_products_on_many_streams_have_the_same_bits(mutable, rng):
    # More streams than the library has memory for: they share it.
    library = mutable
    pairs = [
        (library.put(hard_array(rng, (2048, 1536), "float32")), library.put(hard_array(rng, (1536, 1792), "float32")))
        for _ in range(5)
    ]
    expected = [bits(library, wsgemm.matmul(x, y)) for x, y in pairs]
    streams = [library.stream() for _ in pairs]  # all at once, so that none has the handle of another
    library.synchronize()
    for _ in range(2):
        results = []
        for stream, (x, y) in zip(streams, pairs):
            with stream:
                results.append(wsgemm.matmul(x, y))
        library.synchronize()
        for result, right in zip(results, expected):
            np.testing.assert_array_equal(bits(library, result), right)


# ---- torch ---------------------------------------------------------------------------------------------------------------


def test_conjugated_and_gradients_of_torch(rng):
    library = Torch()
    torch = library.torch
    a, b = integer_array(rng, (30, 40), "complex64"), integer_array(rng, (40, 50), "complex64")
    x, y = library.put(a), library.put(b)
    np.testing.assert_array_equal(library.get(wsgemm.matmul(x.conj(), y)), a.conj() @ b)
    np.testing.assert_array_equal(library.get(wsgemm.matmul(y.mH, x.mH)), b.conj().T @ a.conj().T)
    imaginary = x.conj().imag  # negated
    expected = (-a.imag) @ np.ones((40, 2), "float32")
    np.testing.assert_array_equal(library.get(wsgemm.matmul(imaginary, torch.ones(40, 2, device="cuda"))), expected)
    weight = torch.ones(40, 40, device="cuda", requires_grad=True)
    wsgemm.matmul(weight, weight).sum().backward()
    assert (weight.grad == 80).all().item()
    with pytest.raises(TypeError, match="a requires a gradient"):
        wsgemm.matmul(weight, weight, alpha=2)
    with torch.no_grad():
        assert (wsgemm.matmul(weight, weight) == 40).all().item()
    saved = torch.ones(40, 40, device="cuda")
    loss = (weight * saved).sum()
    wsgemm.matmul(saved.clone(), saved.clone(), saved)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        loss.backward()


# ---- Refused -------------------------------------------------------------------------------------------------------------


def test_mixed_places_and_types(library):
    host = np.ones((4, 4), "float32")
    x = library.put(host)
    with pytest.raises(TypeError, match="a lies on a GPU .*b lies in host memory .numpy.ndarray.*together"):
        wsgemm.matmul(x, host)
    with pytest.raises(TypeError, match="a lies in host memory .*b lies on a GPU"):
        wsgemm.matmul(host, x)
    with pytest.raises(TypeError, match="out lies in host memory"):
        wsgemm.matmul(x, x, out=host.copy())
    with pytest.raises(TypeError, match="out lies on a GPU"):
        wsgemm.matmul(host, host, out=x)
    with pytest.raises(TypeError, match="a is float32 and b is float64"):
        wsgemm.matmul(x, library.put(host.astype("float64")))
    with pytest.raises(TypeError, match="float16"):
        wsgemm.matmul(library.put(host.astype("float16")), x)
    with pytest.raises(ValueError, match="do not fit"):
        wsgemm.matmul(x, library.put(np.ones((3, 4), "float32")))


def test_torch_in_host_memory_and_sparse():
    library = Torch()
    torch = library.torch
    x = torch.ones(4, 4, device="cuda")
    with pytest.raises(TypeError, match="b lies in host memory .torch.Tensor"):
        wsgemm.matmul(x, torch.ones(4, 4))
    with pytest.raises(TypeError, match="b is a tensor of layout torch.sparse_coo"):
        wsgemm.matmul(x, x.to_sparse())


def test_arrays_inside_jit():
    library = Jax()
    if _lib.beside("libwsgemm_xla.so") is None:
        pytest.skip("no libwsgemm_xla.so beside the library")
    result = library.jax.jit(lambda x: wsgemm.matmul(x, x))(library.put(np.ones((4, 4), "float32")))
    np.testing.assert_array_equal(np.asarray(result), np.full((4, 4), 4))


def test_kernel_rows_of_the_handle(library):
    x = library.put(np.ones((300, 300), "float64"))
    # not the rows for matrix-vector products, and for batches of small ones
    others = ("vec", "small")
    rows = [row for row in map(wsgemm.kernel_info, wsgemm.kernels("cuda")) if row.type == "d" and row.family not in others]
    names = [row.name for row in rows]
    assert len(names) > 1
    for name in names:
        handle = wsgemm.Handle(policy="fixed_blocks", kernel=name)
        told = wsgemm.explain(x, x, handle=handle)
        assert (told["backend"], told["kernel"], told["scheduler"]) == ("cuda", name, "static")
        assert (library.get(wsgemm.matmul(x, x, handle=handle)) == 300).all()


# ---- A library that is not known here ------------------------------------------------------------------------------------


def test_numba_arrays_on_their_stream(rng):
    cuda = pytest.importorskip("numba.cuda")
    if not cuda.is_available():
        pytest.skip("numba sees no GPU")
    a, b = integer_array(rng, (200, 100), "float32"), integer_array(rng, (100, 300), "float32")
    for stream in (0, cuda.stream()):
        x, y, out = (cuda.to_device(array, stream=stream) for array in (a, b, np.zeros((200, 300), "float32")))
        assert wsgemm.matmul(x, y, out) is out
        np.testing.assert_array_equal(out.copy_to_host(stream=stream), a @ b)
        wsgemm.matmul(x[50:150, 20:60], y[20:60, ::1], out[:100], alpha=3)
        np.testing.assert_array_equal(out.copy_to_host(stream=stream)[:100], 3 * (a[50:150, 20:60] @ b[20:60]))
        with pytest.raises(TypeError, match="pass one to write to"):
            wsgemm.matmul(x, y)
