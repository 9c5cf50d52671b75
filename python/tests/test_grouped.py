"""grouped_matmul against the products one by one."""

import numpy as np
import pytest
import wsgemm
import wsgemm_fakes as fakes
from wsgemm._grouped import describe_groups
from wsgemm._plans import way_of
from wsgemm_fakes import faked_cupy, faked_jax, faked_torch, gpu  # noqa: F401  (fixtures)

TYPES = [np.float16, np.float32, np.float64, np.complex64, np.complex128]
RNG = np.random.default_rng(23)


def drawn(shape, dtype, order):
    x = RNG.uniform(-1, 1, shape)
    if np.dtype(dtype).kind == "c":
        x = x + 1j * RNG.uniform(-1, 1, shape)
    x = x.astype(dtype)
    return np.ascontiguousarray(x) if order == "C" else np.ascontiguousarray(x.swapaxes(-1, -2)).swapaxes(-1, -2)


def ends_drawn(total, n_groups, dtype):
    return np.sort(RNG.integers(0, total + 1, n_groups)).astype(dtype)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("order", ["CCC", "FCC", "CFC", "FFF", "CCF"])
@pytest.mark.parametrize("form", ["m", "n", "k"])
def test_same_bits(dtype, order, form):
    for n_groups in (1, 7, 30):
        m, n, k = (int(x) for x in RNG.integers(1, 50, 3))
        a_shape, b_shape = (m, k), (k, n)
        if form == "m":
            b_shape = (n_groups, k, n)
        if form == "n":
            a_shape = (n_groups, m, k)
        total = {"m": m, "n": n, "k": k}[form]
        ends = ends_drawn(total, n_groups, RNG.choice([np.int32, np.int64]))
        a, b = drawn(a_shape, dtype, order[0]), drawn(b_shape, dtype, order[1])
        c_shape = (n_groups, m, n) if form == "k" else (m, n)
        old = drawn(c_shape, dtype, order[2])
        for out, beta in ((None, 0), (old.copy("K"), 0), (old.copy("K"), 0.5)):
            before = None if out is None else out.copy("K")
            c = wsgemm.grouped_matmul(a, b, ends, out, alpha=1.5, beta=beta)
            assert out is None or c is out
            begin = 0
            for group, end in enumerate(int(end) for end in ends):
                rows = slice(begin, end)
                of_a = {"m": a[rows] if form == "m" else None, "n": a[group] if form == "n" else None, "k": a[:, rows]}[form]
                of_b = {"m": b[group] if form == "m" else None, "n": b[:, rows], "k": b[rows]}[form]
                where = {"m": (rows,), "n": (slice(None), rows), "k": (group,)}[form]
                alone = np.zeros_like(c) if before is None else before
                expected = wsgemm.matmul(of_a, of_b, out=alone[where], alpha=1.5, beta=beta)
                assert c[where].tobytes() == expected.tobytes()
                begin = end
            behind = {"m": c[begin:], "n": c[:, begin:], "k": c[:0]}[form]
            kept = {"m": old[begin:], "n": old[:, begin:], "k": old[:0]}[form] if out is not None else np.zeros_like(behind)
            assert np.array_equal(behind, kept)


def test_refused():
    a, b = np.ones((4, 3), np.float32), np.ones((2, 3, 5), np.float32)
    with pytest.raises(ValueError, match=r"offsets\[1\] is 1; it must be at least 2"):
        wsgemm.grouped_matmul(a, b, [2, 1])
    with pytest.raises(ValueError, match=r"offsets\[0\] is -1"):
        wsgemm.grouped_matmul(a, b, [-1, 1])
    with pytest.raises(ValueError, match="there are only 4"):
        wsgemm.grouped_matmul(a, b, [2, 5])
    with pytest.raises(ValueError, match="2 matrices and there are 3 offsets"):
        wsgemm.grouped_matmul(a, b, [1, 2, 3])
    with pytest.raises(ValueError, match="a has 3 columns and b 2 rows"):
        wsgemm.grouped_matmul(a, b[:, :2], [1, 2])
    with pytest.raises(TypeError, match="whole numbers"):
        wsgemm.grouped_matmul(a, b, [1.0, 2.0])
    with pytest.raises(ValueError, match="needs out"):
        wsgemm.grouped_matmul(a, b, [1, 2], beta=1)
    with pytest.raises(ValueError, match="overlaps"):
        x = np.ones((4, 4), np.float32)
        wsgemm.grouped_matmul(x, np.ones((1, 4, 4), np.float32), [4], out=x)
    with pytest.raises(ValueError, match="dimensions"):
        wsgemm.grouped_matmul(b, b, [1, 2])


def test_empty():
    a, b = np.ones((4, 0), np.float32), np.ones((2, 0, 5), np.float32)
    assert not wsgemm.grouped_matmul(a, b, [1, 4]).any()
    assert wsgemm.grouped_matmul(np.ones((0, 3)), np.ones((2, 3, 5)), [0, 0]).shape == (0, 5)
    k = wsgemm.grouped_matmul(np.ones((3, 6)), np.ones((6, 2)), [0, 6, 6])
    assert np.array_equal(k, np.stack((np.zeros((3, 2)), np.full((3, 2), 6.0), np.zeros((3, 2)))))


# ---- On a GPU, as far as it can be seen without one ------------------------------------------------------------------------


def put_in(library, array):
    return {"torch": fakes.Tensor, "cupy": fakes.ndarray, "jax": fakes.Array, "numpy": np.asarray}[library](array)


@pytest.mark.parametrize("where_ends", ["same", "numpy", "cupy"])
@pytest.mark.parametrize("library", ["torch", "cupy", "jax"])
@pytest.mark.parametrize("form", ["m", "n", "k"])
def test_fakes(gpu, request, library, form, where_ends):
    for name in {library, "cupy"}:
        request.getfixturevalue(name)
    n_groups, m, n, k = 5, 24, 16, 40
    total = {"m": m, "n": n, "k": k}[form]
    shapes = {"m": ((m, k), (n_groups, k, n)), "n": ((n_groups, m, k), (k, n)), "k": ((m, k), (k, n))}[form]
    for order in "CF":
        a, b = (drawn(shape, np.float32, order) for shape in shapes)
        for ends in (ends_drawn(total, n_groups, np.int32), ends_drawn(total, n_groups, np.int64)):
            ends[-1] = total
            expected = wsgemm.grouped_matmul(a, b, ends)
            given = put_in(library if where_ends == "same" else where_ends, ends)
            gpu.log.clear()
            result = wsgemm.grouped_matmul(put_in(library, a), put_in(library, b), given)
            assert type(result) is type(put_in(library, a)) and np.array_equal(result.array, expected)
            waits = ("wait", {"torch": 5, "cupy": 6, "jax": 6 if where_ends == "cupy" else 1}[library])
            assert (waits in gpu.log) == (library == "jax")
            if library == "jax":
                continue
            old = drawn(expected.shape, np.float32, "C")
            out = put_in(library, old.copy())
            assert wsgemm.grouped_matmul(put_in(library, a), put_in(library, b), given, out, beta=2) is out
            assert np.array_equal(out.array, wsgemm.grouped_matmul(a, b, ends, old, beta=2))


def test_fakes_refused(gpu, torch):
    a, b, ends = np.ones((4, 3), np.float32), np.ones((2, 3, 5), np.float32), np.array([1, 4])
    on_gpu = fakes.Tensor(a), fakes.Tensor(b)
    with pytest.raises(TypeError, match="offsets lies on a GPU"):
        wsgemm.grouped_matmul(a, b, fakes.Tensor(ends))
    with pytest.raises(TypeError, match="all must lie together"):
        wsgemm.grouped_matmul(fakes.Tensor(a), b, ends)
    with pytest.raises(TypeError, match="offsets is int16"):
        wsgemm.grouped_matmul(*on_gpu, fakes.Tensor(ends.astype(np.int16)))
    with pytest.raises(ValueError, match="contiguous"):
        wsgemm.grouped_matmul(*on_gpu, fakes.Tensor(np.array([1, 0, 4, 0])[::2]))
    with pytest.raises(ValueError, match="2 matrices and there are 3 offsets"):
        wsgemm.grouped_matmul(*on_gpu, fakes.Tensor(np.array([1, 2, 4])))
    with pytest.raises(ValueError, match="there are only 4"):
        wsgemm.grouped_matmul(*on_gpu, [1, 5])
    with pytest.raises(ValueError, match="share memory"):
        x = np.ones((1, 4, 4), np.float32)
        wsgemm.grouped_matmul(fakes.Tensor(x[0].copy()), fakes.Tensor(x), [4], fakes.Tensor(x[0]))
    elsewhere = ends.astype(np.int32)
    gpu.device_of = lambda address: int(address == elsewhere.ctypes.data)
    with pytest.raises(ValueError, match="offsets lies on GPU 1"):
        wsgemm.grouped_matmul(*on_gpu, fakes.ndarray(elsewhere))


@pytest.mark.parametrize("form", ["m", "n", "k"])
def test_fakes_again(gpu, torch, form):
    """The short way has the numbers of host memory, other arrays' too, and leaves alone what has something to copy or to refuse."""
    put = fakes.Tensor
    shapes = {"m": ((6, 4), (2, 4, 4)), "n": ((2, 6, 4), (4, 5)), "k": ((6, 4), (4, 5))}[form]
    ends = np.array([1, {"m": 6, "n": 5, "k": 4}[form]])
    for _ in range(3):
        a, b = (drawn(shape, np.float32, "C") for shape in shapes)
        expected = wsgemm.grouped_matmul(a, b, ends)
        x, y, z = put(a), put(b), put(ends.copy())
        way = way_of(x)
        assert np.array_equal(way.grouped(x, y, z, None, 1, 0, None, describe_groups).array, expected)
        old = drawn(expected.shape, np.float32, "C")
        out = put(old.copy())
        assert way.grouped(x, y, z, out, 2, 3, None, describe_groups) is out
        assert np.array_equal(out.array, wsgemm.grouped_matmul(a, b, ends, old, 2, 3))
    assert len(way.group_plans) == 2
    leaves = [
        (x, y, z, None, np.float64(1), 0), (x, y, z, None, 1, 1), (x, y, z, put(np.ones((3, 3), np.float32)), 1, 0),
        (x, y, put(ends.astype(np.int16)), None, 1, 0), (x, y, put(np.repeat(ends, 2)[::2]), None, 1, 0), (x, y, ends, None, 1, 0),
        (x, y, z, put(a) if form == "k" else x, 1, 0), (put(a.astype(np.float64)), y, z, None, 1, 0),
    ]  # fmt: skip
    for given in leaves:
        assert way.grouped(*given, None, describe_groups) is None


def test_fakes_without_elements(gpu, torch):
    t = lambda *shape: fakes.Tensor(np.ones(shape, np.float32))  # noqa: E731
    ends = fakes.Tensor(np.array([0, 0]))
    assert wsgemm.grouped_matmul(t(0, 3), t(2, 3, 5), ends).shape == (0, 5)
    assert not wsgemm.grouped_matmul(t(4, 0), t(0, 5), ends).array.any()
    assert wsgemm.grouped_matmul(t(4, 3), t(0, 3, 5), fakes.Tensor(np.empty(0, np.int64))).shape == (4, 5)
