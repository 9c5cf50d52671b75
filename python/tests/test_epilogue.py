"""Epilogues of matmul and gemm: each against the same steps in NumPy, in every layout; what is copied, what is refused."""

import math

import numpy as np
import pytest
import wsgemm
from wsgemm_reference import LAYOUTS, STACK_LAYOUTS, arrange

DTYPES = ["float16", "float32", "float64"]
TOLERANCE = {"float16": 2e-3, "float32": 2e-5, "float64": 1e-12}
ERF = np.vectorize(math.erf, otypes=["float64"])
ACTIVATIONS = {
    None: lambda z: z,
    "relu": lambda z: np.maximum(z, 0),
    "gelu_tanh": lambda z: z / 2 * (1 + np.tanh(math.sqrt(2 / math.pi) * (z + 0.044715 * z**3))),
    "gelu_erf": lambda z: z / 2 * (1 + ERF(z / math.sqrt(2))),
    "silu": lambda z: z / (1 + np.exp(-z)),
}


def rng_of(number):
    return np.random.default_rng(number)


def steps(a, b, activation=None, bias=None, residual=None, out_scale=1, alpha=1, beta=0, c=None):
    """The result in float64."""
    z = alpha * (a.astype("float64") @ b.astype("float64"))
    if beta:
        z = z + beta * c.astype("float64")
    if bias is not None:
        z = z + bias.astype("float64")
    y = out_scale * ACTIVATIONS[activation](z)
    return y if residual is None else y + residual.astype("float64")


def assert_near(result, expected, dtype):
    assert result.dtype == dtype and result.shape == expected.shape
    scale = max(1, np.abs(expected).max(initial=0))
    assert np.abs(result.astype("float64") - expected).max(initial=0) <= TOLERANCE[dtype] * scale


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("activation", ACTIVATIONS)
@pytest.mark.parametrize("per_row", [False, True])
def test_all_at_once(dtype, activation, per_row):
    rng = rng_of(200)
    a, b = rng.uniform(-1, 1, (3, 20, 30)).astype(dtype), rng.uniform(-1, 1, (30, 17)).astype(dtype)
    bias = rng.uniform(-1, 1, (20, 1) if per_row else (17,)).astype(dtype)
    residual = rng.uniform(-1, 1, (3, 20, 17)).astype(dtype)
    sums = np.full((3, 17), np.nan, "float64" if dtype == "float64" else "float32")
    result = wsgemm.matmul(a, b, activation=activation, bias=bias, residual=residual, out_scale=1.5, alpha=2, column_sums=sums)
    assert_near(result, steps(a, b, activation, bias, residual, 1.5, 2), dtype)
    exact = result.astype("float64").sum(axis=-2)
    assert np.abs(sums - exact).max() <= 20 * np.finfo(sums.dtype).eps * np.abs(result).astype("float64").sum(axis=-2).max()


@pytest.mark.parametrize("name", STACK_LAYOUTS)
@pytest.mark.parametrize("which", ["a", "b", "out", "residual", "bias"])
def test_layouts(name, which):
    rng = rng_of(201)
    given = {
        "a": rng.uniform(-1, 1, (4, 9, 13)),
        "b": rng.uniform(-1, 1, (4, 13, 11)),
        "out": rng.uniform(-1, 1, (4, 9, 11)),
        "residual": rng.uniform(-1, 1, (4, 9, 11)),
        "bias": rng.uniform(-1, 1, (4, 1, 11)),
    }
    before = {key: x.copy() for key, x in given.items()}
    given[which] = arrange(given[which], name)
    sums = np.empty((4, 11))
    result = wsgemm.matmul(
        given["a"], given["b"], out=given["out"], beta=0.5, bias=given["bias"], residual=given["residual"], activation="relu",
        column_sums=sums,
    )  # fmt: skip
    assert result is given["out"]
    expected = steps(before["a"], before["b"], "relu", before["bias"], before["residual"], beta=0.5, c=before["out"])
    assert_near(result, expected, "float64")
    assert np.allclose(sums, expected.sum(axis=-2))
    for key in before.keys() - {"out"}:
        assert np.array_equal(given[key], before[key]), f"{key} was written"


@pytest.mark.parametrize("name", LAYOUTS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_out_as_its_own_residual(name, dtype):
    rng = rng_of(202)
    a, b = rng.uniform(-1, 1, (9, 13)).astype(dtype), rng.uniform(-1, 1, (13, 11)).astype(dtype)
    old = rng.uniform(-1, 1, (9, 11)).astype(dtype)
    out = arrange(old.copy(), name)
    wsgemm.matmul(a, b, out=out, residual=out, activation="silu")
    assert_near(out, steps(a, b, "silu", residual=old), dtype)
    out = arrange(old.copy(), name)
    wsgemm.matmul(a, b, out=out, residual=out, beta=2)
    assert_near(out, steps(a, b, residual=old, beta=2, c=old), dtype)


@pytest.mark.parametrize("offset", [1, 11])
def test_overlaps_are_copied(offset):
    rng = rng_of(203)
    a, b, memory = rng.uniform(-1, 1, (9, 13)), rng.uniform(-1, 1, (13, 11)), rng.uniform(-1, 1, 9 * 11 + 40)
    out = memory[:99].reshape(9, 11)
    residual, bias, sums = memory[offset : offset + 99].reshape(9, 11), memory[5:16], memory[90:101]
    expected = steps(a, b, None, bias.copy(), residual.copy(), beta=1, c=out.copy())
    wsgemm.matmul(a, b, out=out, beta=1, residual=residual, bias=bias)
    assert_near(out, expected, "float64")
    fresh = wsgemm.matmul(a, b, bias=bias, column_sums=sums)  # written last
    assert np.allclose(sums, fresh.sum(axis=0))
    x = a.copy()
    wsgemm.matmul(x, b, column_sums=x.reshape(-1)[:11])
    assert np.allclose(x.reshape(-1)[:11], (a @ b).sum(axis=0))


def test_vectors():
    rng = rng_of(204)
    a, b = rng.uniform(-1, 1, (2, 9, 13)), rng.uniform(-1, 1, (2, 13, 11))
    row, column = rng.uniform(-1, 1, 13), rng.uniform(-1, 1, 13)
    sums = np.empty(2)
    got = wsgemm.matmul(a, column, bias=np.arange(9.0), column_sums=sums)
    assert_near(got, a @ column + np.arange(9.0), "float64")
    assert np.allclose(sums, got.sum(axis=-1))
    assert_near(wsgemm.matmul(row, b, bias=np.arange(11.0)), row @ b + np.arange(11.0), "float64")
    assert wsgemm.matmul(row, column, out_scale=2) == pytest.approx(2 * row @ column)
    assert wsgemm.matmul(row, column, bias=np.array(3.0), activation="relu") == pytest.approx(max(0, row @ column + 3))


def test_stacks_of_bias():
    rng = rng_of(205)
    a, b = rng.uniform(-1, 1, (3, 1, 4, 6)), rng.uniform(-1, 1, (2, 6, 5))
    for shape in ((5,), (1, 5), (4, 1), (2, 4, 1), (3, 1, 1, 5), (3, 2, 4, 1)):
        bias = rng.uniform(-1, 1, shape)
        assert_near(wsgemm.matmul(a, b, bias=bias), a @ b + bias, "float64")
    backwards = rng.uniform(-1, 1, (3, 2, 1, 5))[::-1, ::-1, :, ::-1]
    assert_near(wsgemm.matmul(a[::-1], b, bias=backwards), a[::-1] @ b + backwards, "float64")


def test_float32_bias_of_halves():
    rng = rng_of(206)
    a, b = rng.uniform(-1, 1, (9, 13)).astype("float16"), rng.uniform(-1, 1, (13, 11)).astype("float16")
    bias = rng.uniform(-1, 1, 11).astype("float32")
    assert_near(wsgemm.matmul(a, b, bias=bias), steps(a, b, bias=bias), "float16")


@pytest.mark.parametrize("shape_a, shape_b", [((0, 3), (3, 4)), ((2, 5, 0), (0, 4)), ((4, 3), (3, 0)), ((0, 4, 3), (3, 2))])
def test_empty(shape_a, shape_b):
    a, b = np.ones(shape_a), np.ones(shape_b)
    product = a @ b
    sums = np.full(product.shape[:-2] + product.shape[-1:], np.nan)
    bias = np.arange(1.0, product.shape[-1] + 1)
    result = wsgemm.matmul(a, b, bias=bias, column_sums=sums, residual=np.ones(product.shape))
    assert np.array_equal(result, product + bias + 1)
    assert np.array_equal(sums, result.sum(axis=-2))


@pytest.mark.parametrize("trans_a", [0, 1])
@pytest.mark.parametrize("trans_b", [0, 1])
@pytest.mark.parametrize("overwrite", [0, 1])
def test_gemm(trans_a, trans_b, overwrite):
    rng = rng_of(207)
    a, b, c = rng.uniform(-1, 1, (9, 13)), rng.uniform(-1, 1, (13, 11)), rng.uniform(-1, 1, (9, 11))
    bias, old, sums = rng.uniform(-1, 1, (9, 1)), c.copy(), np.empty(11)
    result = wsgemm.gemm(
        2, a.T.copy() if trans_a else a, b.T.copy() if trans_b else b, 0.5, c, trans_a, trans_b, overwrite,
        activation="gelu_erf", bias=bias, residual=c, out_scale=3, column_sums=sums,
    )  # fmt: skip
    expected = steps(a, b, "gelu_erf", bias, old, 3, 2, 0.5, old)
    assert_near(result, expected, "float64")
    assert np.allclose(sums, expected.sum(axis=0))
    assert (result is c) == bool(overwrite) and (overwrite or np.array_equal(c, old))
    assert_near(wsgemm.gemm(1, a, b, activation="relu"), np.maximum(a @ b, 0), "float64")


A, B = np.ones((3, 4)), np.ones((4, 5))


@pytest.mark.parametrize(
    "arguments, error, words",
    [
        ({"activation": "tanh"}, ValueError, "'relu', 'gelu_tanh', 'gelu_erf', 'silu'"),
        ({"activation": "none"}, ValueError, "'none'"),
        ({"bias": np.ones(4)}, ValueError, r"bias has shape \(4,\)"),
        ({"bias": np.ones((3, 5))}, ValueError, "one row of it, or one column"),
        ({"bias": np.ones((2, 1, 5))}, ValueError, "broadcast"),
        ({"bias": np.ones(5, "float32")}, TypeError, "bias is float32"),
        ({"residual": np.ones((5, 3))}, ValueError, "residual has shape"),
        ({"residual": np.ones((3, 5), "float32")}, TypeError, "residual is float32"),
        ({"column_sums": np.ones(3)}, ValueError, "column_sums has shape"),
        ({"column_sums": np.ones(5, "float32")}, TypeError, "column_sums is float32"),
        ({"column_sums": [0] * 5}, TypeError, "column_sums must be"),
        ({"out_scale": "much"}, TypeError, "out_scale must be a number, not str"),
        ({"out_scale": 2, "beta": 1}, ValueError, "beta = 1 needs out"),
    ],
)
def test_refused(arguments, error, words):
    with pytest.raises(error, match=words):
        wsgemm.matmul(A, B, **arguments)


def test_complex_arrays_have_no_epilogue():
    with pytest.raises(TypeError, match="complex64"):
        wsgemm.matmul(A.astype("complex64"), B.astype("complex64"), out_scale=2)


def test_read_only_sums():
    sums = np.zeros(5)
    sums.flags.writeable = False
    with pytest.raises(ValueError, match="column_sums is read-only"):
        wsgemm.matmul(A, B, column_sums=sums)


def test_in_check_mode():
    # What the library itself would refuse never reaches it.
    handle = wsgemm.Handle()
    handle._set("check", 1)
    out = np.ones((3, 5))
    memory = np.zeros(30)
    wsgemm.matmul(A, B, out=out, residual=out, bias=memory[:5], column_sums=memory[5:10], handle=handle)
    assert (out == 5).all() and (memory[5:10] == 15).all()
    wsgemm.matmul(A, B, bias=memory[:5], column_sums=memory[:5], handle=handle)
    assert (memory[:5] == 12).all()
