"""Level 3 on a real GPU, of torch, cupy and jax arrays: values of every routine, memory orders, overwriting, streams, and what is
refused. Skipped without a GPU. The libraries' adapters are test_device.py's, the cases test_level3.py's."""

import numpy as np
import pytest
import wsgemm
from test_device import library, mutable, rng  # noqa: F401  (fixtures)
from test_level3 import COMPLEX, ROUTINES, Case, right_side
from wsgemm_reference import DTYPES

SINGLE = {"float32": "float64", "complex64": "complex128"}


def drawn_case(routine, dtype, rng, least=1, most=70):
    return Case(
        routine, dtype, rng,
        *(int(size) for size in rng.integers(least, most, 3)), bool(rng.integers(2)), int(rng.integers(2)), int(rng.integers(3)),
        int(rng.integers(3)), bool(rng.integers(2)), bool(rng.integers(2)), int(rng.choice([1, -1, 2])), int(rng.choice([0, 1, -2])),
    )  # fmt: skip


def put_all(library, case):
    b = right_side(case)
    return library.put(case.a), None if b is None else library.put(b), None if case.c is None else library.put(case.c)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("routine", ROUTINES)
def test_values(library, routine, dtype, rng):
    for _ in range(6):
        case = drawn_case(routine, dtype, rng)
        a, b, c = put_all(library, case)
        result = case.call(a, b, c, False)
        assert library.owns(result)
        got = np.asarray(library.get(result))
        assert got.dtype == np.dtype(dtype)
        np.testing.assert_array_equal(got, case.expected)
        for given, before in ((b, right_side(case)), (c, case.c)):
            if given is not None:
                np.testing.assert_array_equal(np.asarray(library.get(given)), before)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("routine", ROUTINES)
def test_overwriting(mutable, routine, dtype, rng):
    library = mutable
    for _ in range(4):
        case = drawn_case(routine, dtype, rng)
        a, b, c = put_all(library, case)
        is_triangular = routine in ("trmm", "solve_triangular")
        if not is_triangular and c is None:
            continue
        result = case.call(a, b, c, True)
        assert library.address(result) == library.address(b if is_triangular else c)
        np.testing.assert_array_equal(np.asarray(library.get(result)), case.expected)


@pytest.mark.parametrize("routine", ROUTINES)
def test_stacks(library, routine, rng):
    case = drawn_case(routine, "complex128", rng)
    b = right_side(case)
    a, c = library.put(np.stack([case.a] * 3)), None if case.c is None else library.put(np.stack([case.c] * 3))
    got = np.asarray(library.get(case.call(a, None if b is None else library.put(b), c, False)))  # b is broadcast
    np.testing.assert_array_equal(got, np.stack([case.expected] * 3))


@pytest.mark.parametrize("routine", ["symm", "syrk", "syr2k", "trmm", "solve_triangular"])
@pytest.mark.parametrize("dtype", ["float32", "complex64"])
def test_large_enough_for_slices(library, routine, dtype, rng):
    n, k = 1100, 300
    wide = SINGLE[dtype]
    def draw(*shape):
        return (rng.uniform(-1, 1, shape) + (1j * rng.uniform(-1, 1, shape) if dtype in COMPLEX else 0)).astype(dtype)

    a, b = draw(n, n), draw(n, n)
    if routine in ("syrk", "syr2k"):
        a, b = a[:, :k].copy(), b[:, :k].copy()
    if routine == "solve_triangular":
        a[np.arange(n), np.arange(n)] += 2 * n
    x, y, u, v = a.astype(wide), b.astype(wide), library.put(a), library.put(b)
    upper = np.triu(np.ones((n, n), bool))
    full = np.where(upper, x, x.T) if routine == "symm" else np.triu(x) if x.shape == (n, n) else None
    if routine == "symm":
        result, expected, bound = wsgemm.symm(1, u, v), full @ y, np.abs(full) @ np.abs(y)
    elif routine == "syrk":
        result, expected, bound = wsgemm.syrk(1, u), x @ x.T, np.abs(x) @ np.abs(x.T)
    elif routine == "syr2k":
        result, expected, bound = wsgemm.syr2k(1, u, v), x @ y.T + y @ x.T, 2 * np.abs(x) @ np.abs(y.T) + 2 * np.abs(y) @ np.abs(x.T)
    elif routine == "trmm":
        result, expected, bound = wsgemm.trmm(1, u, v), full @ y, np.abs(full) @ np.abs(y)
    else:
        result = wsgemm.solve_triangular(u, v)
        solution = np.asarray(library.get(result)).astype(wide)
        assert np.all(np.abs(full @ solution - y) <= 8 * (n + 2) * 2**-23 * (np.abs(full) @ np.abs(solution)))
        return
    if routine in ("syrk", "syr2k"):
        expected, bound = np.where(upper, expected, 0), np.where(upper, bound, 0)
    assert np.all(np.abs(np.asarray(library.get(result)).astype(wide) - expected) <= 4 * (n + 2) * 2**-24 * bound)


def test_views(library, rng):
    a = rng.integers(-4, 5, (40, 40)).astype("float64")
    b = rng.integers(-4, 5, (30, 40)).astype("float64")
    u, v = library.put(a), library.put(b)
    symmetric = np.triu(a) + np.triu(a, 1).T
    np.testing.assert_array_equal(library.get(wsgemm.symm(1, u, library.transposed(v))), symmetric @ b.T)
    np.testing.assert_array_equal(library.get(wsgemm.symm(1, library.transposed(u), library.transposed(v), lower=1)), symmetric @ b.T)
    np.testing.assert_array_equal(library.get(wsgemm.syrk(1, library.transposed(v))), np.triu(b.T @ b))
    part = rng.integers(-4, 5, (20, 20)).astype("float64")
    whole = np.zeros((50, 50))
    whole[7:27, 11:31] = part
    w = library.put(whole)[7:27, 11:31]
    np.testing.assert_array_equal(library.get(wsgemm.trmm(1, w, w)), np.triu(part) @ part)


def test_a_vector_is_solved_for(library, rng):
    a = np.triu(rng.integers(-2, 3, (33, 33))).astype("float64")
    np.fill_diagonal(a, 1)
    x = rng.integers(-3, 4, 33).astype("float64")
    result = wsgemm.solve_triangular(library.put(a), library.put(a @ x))
    assert result.shape == (33,)
    np.testing.assert_allclose(library.get(result), x, rtol=0, atol=1e-6)


@pytest.mark.parametrize("routine", ROUTINES)
def test_a_call_waits_for_what_is_on_the_current_stream(mutable, routine, rng):
    library = mutable
    case = drawn_case(routine, "float64", rng, 20)
    a, b, c = put_all(library, case)
    source, x = library.put(case.a), library.put(np.zeros_like(case.a))
    library.synchronize()
    with library.stream():
        library.spin()
        x[...] = source  # after the spinning, on the same stream
        result = case.call(x, b, c, False)
        got = np.asarray(library.get(result))
    np.testing.assert_array_equal(got, case.expected)


def test_what_is_refused(library, rng):
    a, b = library.put(np.eye(4, dtype="float32")), library.put(np.ones((4, 3), "float32"))
    with pytest.raises(TypeError):
        wsgemm.symm(1, a, np.ones((4, 3), "float32"))  # one on the GPU, one not
    with pytest.raises(ValueError, match="shape"):
        wsgemm.symm(1, a, b, side=1)
    with pytest.raises(ValueError, match="needs c"):
        wsgemm.syrk(1, a, 1)
    with pytest.raises(TypeError, match="float16"):
        wsgemm.syrk(1, library.put(np.eye(4, dtype="float16")))
