"""Plans: what is made again goes the short way, with the numbers of the long one; what the short way cannot do, it leaves alone."""

import numpy as np
import pytest
import wsgemm
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from wsgemm import _plans
from wsgemm_fakes import Tensor, faked_torch, gpu  # noqa: F401
from wsgemm_reference import DTYPES, LAYOUTS, arrange, integer_array


@pytest.fixture
def ways(monkeypatch):
    """Of each product, whether the short way did it."""
    found = []
    call = _plans._call

    def look(*arguments):
        found.append(call(*arguments))
        return found[-1]

    monkeypatch.setattr(_plans, "_call", look)
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
def test_numbers_of_the_second_call(dtype, sizes, layouts, beta, has_out, seed):
    rng, (m, n, k) = np.random.default_rng(seed), sizes
    beta = beta if has_out else 0
    for _ in range(2):  # other numbers, and other addresses
        before = integer_array(rng, (m, n), dtype)
        a, b, c = (
            arrange(x, layout)
            for x, layout in zip((integer_array(rng, (m, k), dtype), integer_array(rng, (k, n), dtype), before), layouts)
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
    others = [(a[::-1], a), (a[:, ::2], np.ones((2, 4))), (a[:0], a), (a[0], a[0]), (a, a.astype(">f8").astype("f8")[::-1])]
    for x, y in others:
        wsgemm.matmul(x, y)
    wsgemm.matmul(a, a, dtype="float64")
    wsgemm.matmul(a, a, activation="relu")
    assert ways == [True, False]
    odd = np.frombuffer(b"\0" + a.tobytes(), "u1")[1:].view("f8").reshape(4, 4)
    wsgemm.matmul(odd, np.ones((4, 4)))
    assert ways == [True, False, False]
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


def test_plans_are_not_kept_without_end(monkeypatch):
    monkeypatch.setattr(_plans, "_MOST_PLANS", 8)
    for n in range(1, 30):
        wsgemm.matmul(np.ones((1, n)), np.ones((n, 2)))
    assert 1 <= len(_plans.NUMPY.plans) <= 8


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
    for settings in ({}, {"math": "pedantic"}, {}, {"invariant": True}, {"kernel": "dgemm_ref_4x6"}):
        for name, value in settings.items():
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
