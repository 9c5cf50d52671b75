"""Plans: what is made again goes the short way, with the numbers of the long one; what the short way cannot do, it leaves alone."""

import functools
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import numpy as np
import pytest
import wsgemm
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from wsgemm import _plans
from wsgemm._plans import NUMPY
from wsgemm_fakes import Tensor, faked_torch, gpu  # noqa: F401
from wsgemm_reference import DTYPES, LAYOUTS, arrange, integer_array


@pytest.fixture(params=["C", "ctypes"])
def written_in(request, monkeypatch):
    """Both short ways of NumPy's arrays; the other libraries have one here."""
    if request.param == "C" and not NUMPY.is_in_c:
        pytest.skip("wsgemm._calls is not built, or not for this Python")
    if request.param == "ctypes":
        monkeypatch.setattr(NUMPY, "matmul", functools.partial(_plans.NumpyWay.matmul, NUMPY))


@pytest.fixture
def ways(written_in, monkeypatch):
    """Of each product, whether the short way did it."""
    found = []

    def look_at(way):
        def look(*arguments):
            done = own(*arguments)
            found.append(done is not None)
            return done

        own = way.matmul
        return look

    monkeypatch.setattr(NUMPY, "matmul", look_at(NUMPY))
    init = _plans.TorchWay.__init__

    def made(self, module):
        init(self, module)
        self.matmul = look_at(self)

    monkeypatch.setattr(_plans.TorchWay, "__init__", made)
    return found


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    dtype=st.sampled_from(DTYPES),
    sizes=st.tuples(*[st.integers(0, 6)] * 3),
    layouts=st.tuples(*[st.sampled_from(list(LAYOUTS))] * 3),
    beta=st.sampled_from([0, 2]),
    has_out=st.booleans(),
    seed=st.integers(0, 2**32 - 1),
)
def test_numbers_of_the_second_call(written_in, dtype, sizes, layouts, beta, has_out, seed):
    rng, (m, n, k) = np.random.default_rng(seed), sizes
    beta = beta if has_out else 0
    for _ in range(2):  # other numbers, and other addresses
        before = integer_array(rng, (m, n), dtype)
        a, b, c = (
            arrange(x, layout)
            for x, layout in zip((integer_array(rng, (m, k), dtype), integer_array(rng, (k, n), dtype), before.copy()), layouts)
        )
        result = wsgemm.matmul(a, b, c if has_out else None, beta=beta)
        assert not has_out or result is c
        np.testing.assert_array_equal(result, a @ b + beta * before)


def test_what_has_no_plan(ways):
    a = np.ones((4, 4))
    wsgemm.matmul(a, a)
    assert ways == [True]
    wsgemm.matmul(a, a, a)  # overlaps
    assert ways == [True, False]
    others = [(a[::-1], a), (a[:, ::2], np.ones((2, 4))), (a[:0], a), (a[0], a[0]), (np.ones((1,) * 7), np.ones((1,) * 7))]
    for x, y in others:
        wsgemm.matmul(x, y)
    wsgemm.matmul(a, a, alpha=np.float64(2))
    assert ways[:6] + ways[7:] == [True] + [False] * 6
    wsgemm.matmul(a, a, dtype="float64")
    wsgemm.matmul(a, a, activation="relu")
    assert len(ways) == 8
    odd = np.frombuffer(b"\0" + a.tobytes(), "u1")[1:].view("f8").reshape(4, 4)
    wsgemm.matmul(odd, np.ones((4, 4)))
    assert ways[8:] == [False]
    for arguments, keywords, error in (
        ((a, a[:3]), {}, ValueError),
        ((a, a), {"beta": 2}, ValueError),
        ((a, a.astype("float32")), {}, TypeError),
        ((a, a, np.broadcast_to(a, (4, 4))), {}, ValueError),
        ((a, a, np.ones((4, 5))), {}, ValueError),
        ((a, a, np.ones((4, 4), "float32")), {}, TypeError),
        ((a.astype("float32"),) * 2, {"alpha": 1e300}, OverflowError),
    ):
        for _ in range(2):
            with pytest.raises(error):
                wsgemm.matmul(*arguments, **keywords)


@pytest.mark.parametrize("is_in_c", [False, True])
def test_plans_are_not_kept_without_end(monkeypatch, is_in_c):
    monkeypatch.setattr(_plans, "_MOST_PLANS", 8)
    way = _plans.NumpyWay(np)
    if is_in_c and not way.is_in_c:
        pytest.skip("wsgemm._calls is not built, or not for this Python")
    matmul = way.matmul if is_in_c else functools.partial(_plans.NumpyWay.matmul, way)
    for _ in range(2):
        for n in range(1, 30):
            a, b = np.full((1, n), 2.0), np.ones((n, 2))
            np.testing.assert_array_equal(matmul(a, b, None, 1, 0, None, None, None, False), a @ b)
            assert 1 <= (way.short.n_plans if is_in_c else len(way.plans)) <= 8


def test_types_of_kept_plans_stay_what_they_are():
    """A plan in C is kept by the address of the type, where no other may come to lie."""
    for i in range(200):
        x = np.ones((3, 3), np.dtype({"names": [f"x{i}"], "formats": ["f8"]}))
        with pytest.raises(TypeError):
            wsgemm.matmul(x, x)
        y = np.ones((3, 3), np.dtype("f8").newbyteorder())
        with pytest.raises(TypeError):
            wsgemm.matmul(y, y)


def test_threads_share_plans():
    def work(seed):
        rng = np.random.default_rng(seed)
        for _ in range(300):
            m, n, k = rng.integers(1, 5, 3)
            a, b = integer_array(rng, (m, k), "f8"), integer_array(rng, (k, n), "f8")
            np.testing.assert_array_equal(wsgemm.matmul(a, b), a @ b)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(work, range(8)))


def test_errors_of_the_library_are_raised(written_in):
    a = np.ones((4, 4))
    with pytest.raises(TypeError, match="Handle"):
        wsgemm.matmul(a, a, handle=7)
    handle = wsgemm.Handle(threads=1)
    np.testing.assert_array_equal(wsgemm.matmul(a, a, handle=handle), a @ a)


def test_tensors_go_by_plan_on_their_stream(gpu, torch, ways):  # noqa: F811
    a, b = (np.arange(9, dtype="float32").reshape(3, 3) + i for i in range(2))
    for _ in range(2):
        x, y, out = Tensor(a), Tensor(b.T), Tensor(np.ones((3, 3), "float32"))
        np.testing.assert_array_equal(wsgemm.matmul(x, y).array, a @ b.T)
        assert wsgemm.matmul(x, y, out, alpha=2, beta=3) is out and out.n_written == 1
        np.testing.assert_array_equal(out.array, 2 * a @ b.T + 3)
    assert ways == [True] * 4 and gpu.log == [("gemm", 5)] * 4
    with pytest.raises(ValueError, match="needs out"):
        wsgemm.matmul(Tensor(a), Tensor(b), beta=2)


def test_settings_count_from_the_next_call_on(gpu, torch):  # noqa: F811
    seen, handle = [], wsgemm.Handle()
    gpu.on_gemm = lambda pointer: seen.append(pointer) or 0
    x = Tensor(np.ones((3, 3)))
    for values in ({}, {"math": "pedantic"}, {}, {"invariant": True}, {"kernel": "dgemm_ref_4x6"}):
        for name, value in values.items():
            setattr(handle, name, value)
        wsgemm.matmul(x, x, handle=handle)
        own = handle._on_streams[5]
        assert own.pointer == seen[-1] != handle.pointer
        assert all(getattr(own, name) == getattr(handle, name) for name in ("math", "invariant", "policy", "kernel"))


def test_handles_of_streams_are_not_kept_without_end(gpu, torch, monkeypatch):  # noqa: F811
    handle = wsgemm.Handle()
    for stream in range(2, 300):
        assert handle.on_stream(stream) is handle.on_stream(stream)
    assert len(handle._on_streams) <= 64


# ---- CuPy, as far as its arrays are looked at ------------------------------------------------------------------------------------


class Array:
    """Of cupy.ndarray what the short ways ask for, in host memory, where the library then multiplies."""

    def __init__(self, shape, dtype, array=None):
        self.array = np.zeros(shape, dtype) if array is None else array
        self.data = SimpleNamespace(ptr=self.array.ctypes.data, device_id=0)

    shape = property(lambda self: self.array.shape)
    strides = property(lambda self: self.array.strides)
    dtype = property(lambda self: self.array.dtype)


@pytest.fixture(params=["C", "ctypes"])
def of_cupy(request, monkeypatch):
    current = SimpleNamespace(device=0, ptr=0)
    cuda = SimpleNamespace(device=SimpleNamespace(get_device_id=lambda: current.device), get_current_stream=lambda: current)
    monkeypatch.setattr(_plans._streams, "require_gpu_backend", lambda: None)
    monkeypatch.setattr(wsgemm.default_handle, "_on_streams", {1: wsgemm.Handle(), 5: wsgemm.Handle()})
    if request.param == "ctypes":
        monkeypatch.setattr(_plans, "_calls", lambda: None)
    way = _plans.CupyWay(SimpleNamespace(ndarray=Array, cuda=cuda))
    if request.param == "C" and not way.is_in_c:
        pytest.skip("wsgemm._calls is not built, or not for this Python")
    return way, current


def of_numbers(array):
    return Array(None, None, array)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.complex64])
def test_cupy_arrays(of_cupy, dtype):
    way, current = of_cupy
    rng = np.random.default_rng(7)
    for shape_a, shape_b in (((3, 4), (4, 5)), ((3, 4), (4,)), ((2, 3, 4), (2, 4, 5)), ((4, 3), (4, 5))):
        for current.ptr in (0, 5):
            a, b = (integer_array(rng, shape, dtype) for shape in (shape_a, shape_b))
            a = a.T if shape_a == (4, 3) else a
            result = way.matmul(of_numbers(a), of_numbers(b), None, 1, 0, None, None, None, False)
            assert type(result) is Array
            np.testing.assert_array_equal(result.array, a @ b)
            old = integer_array(rng, result.shape, dtype)
            out = of_numbers(old.copy())
            assert way.matmul(of_numbers(a), of_numbers(b), out, 2, 3, None, None, None, False) is out
            np.testing.assert_array_equal(out.array, 2 * (a @ b) + 3 * old)


def test_what_has_no_plan_of_cupy(of_cupy):
    way, current = of_cupy
    x = of_numbers(np.ones((4, 4), np.float32))
    strange = of_numbers(np.ones((4, 4), np.float32))
    strange.data = SimpleNamespace(ptr="nowhere", device_id=0)
    for a, b, out in ((x, x.array, None), (x, x, x), (x, of_numbers(np.ones((4, 4))), None), (x, of_numbers(np.ones((1,) * 7)), None)):
        assert way.matmul(a, b, out, 1, 0, None, None, None, False) is None
    if way.is_in_c:
        assert way.matmul(x, strange, None, 1, 0, None, None, None, False) is None
    x.data.device_id = 1
    assert way.matmul(x, x, None, 1, 0, None, None, None, False) is None
    x.data.device_id = current.device = 0
    assert way.matmul(x, x, None, 1, 0, None, None, None, False) is not None
