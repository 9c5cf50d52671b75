"""float16, and bfloat16 as ml_dtypes has it or as its bits: multiplied and summed in single precision, rounded once."""

import numpy as np
import pytest
import wsgemm
from wsgemm_reference import LAYOUTS, STACK_LAYOUTS, arrange, from_bits, integer_array, to_bits

SINGLE = 2.0**-24


def assert_rounded_once(result, values, half_ulp, a, b, alpha=1.0, beta=0.0, c=None):
    """result: its numbers in `values`, float64, each within half_ulp; a, b, c: float64."""
    k = a.shape[-1]
    exact = alpha * (a @ b) + (0 if c is None else beta * c)
    size = abs(alpha) * (np.abs(a) @ np.abs(b)) + (0 if c is None else abs(beta) * np.abs(c))
    gamma = (k + 2) * SINGLE / (1 - (k + 2) * SINGLE)
    assert result.shape == exact.shape
    assert (np.abs(values - exact) <= gamma * size + half_ulp).all()


def half_ulp_f16(values):
    return np.spacing(np.abs(values).astype("float16")).astype("float64") / 2


def half_ulp_b(values):
    return 2.0 ** (np.floor(np.log2(np.maximum(np.abs(values), 2.0**-126))) - 8)


@pytest.mark.parametrize("layout", STACK_LAYOUTS)
@pytest.mark.parametrize(
    "shape_a, shape_b", [((3, 40, 30), (30, 20)), ((70, 500), (500, 33)), ((5, 1), (1, 7)), ((2, 3, 0), (0, 4))]
)
def test_float16_matmul(shape_a, shape_b, layout):
    rng = np.random.default_rng(80)
    a, b = rng.uniform(-1, 1, shape_a).astype("float16"), rng.uniform(-1, 1, shape_b).astype("float16")
    if len(shape_a) == 2 and layout not in LAYOUTS:
        pytest.skip("a layout of stacks")
    result = wsgemm.matmul(arrange(a, layout), b)
    assert result.dtype == np.float16
    values = result.astype("float64")
    assert_rounded_once(result, values, half_ulp_f16(values), a.astype("float64"), b.astype("float64"))
    assert wsgemm.matmul(a[..., 0, :], b[:, 0]).dtype == np.float16


def test_float16_sums_are_single():
    ones = np.ones((1, 4096), "float16")
    assert wsgemm.matmul(ones, ones.T)[0, 0] == 4096  # a float16 sum stops at 2048
    large = np.full((1, 2), 60000, "float16")
    assert wsgemm.matmul(large, np.array([[1], [-1]], "float16"))[0, 0] == 0
    assert np.isinf(wsgemm.matmul(large, np.array([[1], [1]], "float16"))[0, 0])
    assert wsgemm.matmul(large, np.array([[1], [1]], "float16"), alpha=0.5)[0, 0] == 60000


@pytest.mark.parametrize("trans_a", [0, 1, 2])
@pytest.mark.parametrize("trans_b", [0, 1, 2])
def test_hgemm_and_bgemm(trans_a, trans_b):
    rng = np.random.default_rng(81)
    x, y, z = rng.uniform(-1, 1, (33, 70)), rng.uniform(-1, 1, (70, 21)), rng.uniform(-1, 1, (33, 21))
    x, y = (x.T if trans_a else x), (y.T if trans_b else y)
    arguments = {"trans_a": trans_a, "trans_b": trans_b}
    for function, make, read, half_ulp in (
        (wsgemm.hgemm, lambda v: v.astype("float16"), lambda v: v.astype("float64"), half_ulp_f16),
        (wsgemm.bgemm, to_bits, from_bits, half_ulp_b),
    ):
        a, b, c = make(x), make(y), np.asfortranarray(make(z))
        result = function(1.5, a, b, -0.5, c, **arguments)
        assert result.dtype == a.dtype and result.flags.f_contiguous
        op_a, op_b = (read(v.T if trans else v) for v, trans in ((a, trans_a), (b, trans_b)))
        assert_rounded_once(result, read(result), half_ulp(read(result)), op_a, op_b, 1.5, -0.5, read(c))
        assert function(1.5, a, b, -0.5, c, **arguments, overwrite_c=1) is c
        np.testing.assert_array_equal(c, result)


def test_bfloat16_of_ml_dtypes():
    ml_dtypes = pytest.importorskip("ml_dtypes")
    rng = np.random.default_rng(82)
    a, b = (rng.uniform(-1, 1, shape).astype(ml_dtypes.bfloat16) for shape in [(40, 30), (30, 20)])
    bits = wsgemm.bgemm(1, a.view("uint16"), b.view("uint16"))
    for result in (wsgemm.matmul(a, b), wsgemm.gemm(1, a, b), wsgemm.bgemm(1, a, b)):
        assert result.dtype == ml_dtypes.bfloat16
        np.testing.assert_array_equal(result.view("uint16"), bits)


def test_every_usable_kernel_row():
    rng = np.random.default_rng(83)
    rows = [row for row in map(wsgemm.kernel_info, wsgemm.kernels()) if row.is_usable and row.type in "hb"]
    assert len(rows) >= 2
    a, b = integer_array(rng, (45, 67), "float16"), integer_array(rng, (67, 39), "float16")
    exact = a.astype("float32") @ b.astype("float32")
    for row in rows:
        handle = wsgemm.Handle(kernel=row.name)
        if row.type == "h":
            assert wsgemm.explain(a, b, handle=handle)["kernel"] == row.name
            np.testing.assert_array_equal(wsgemm.matmul(a, b, handle=handle), exact.astype("float16"))
        else:
            result = wsgemm.bgemm(1, to_bits(a), to_bits(b), handle=handle)
            np.testing.assert_array_equal(result, to_bits(exact))


def test_explain_names_the_arithmetic():
    a = np.ones((40, 40), "float16")
    assert wsgemm.explain(a, a)["arithmetic"].startswith("f16 operands as FP32")


BITS = np.ones((3, 3), "uint16")
HALVES = np.ones((3, 3), "float16")
BAD = [
    (wsgemm.matmul, (BITS, BITS), TypeError, ["uint16", "float16"]),
    (wsgemm.matmul, (HALVES, HALVES.astype("float32")), TypeError, ["float16", "float32"]),
    (wsgemm.hgemm, (1, BITS, BITS), TypeError, ["hgemm takes float16", "uint16"]),
    (wsgemm.bgemm, (1, HALVES, HALVES), TypeError, ["bgemm takes bfloat16", "uint16", "float16"]),
    (wsgemm.bgemm, (1, BITS, HALVES), TypeError, ["bgemm takes bfloat16", "float16"]),
    (wsgemm.hgemm, (1j, HALVES, HALVES), TypeError, ["alpha is complex"]),
    (wsgemm.hgemm, (1e39, HALVES, HALVES), OverflowError, []),
    (wsgemm.matmul, (HALVES.astype(">f2"), HALVES), TypeError, ["swapped byte order"]),
]


@pytest.mark.parametrize("function, arguments, exception, words", BAD)
def test_bad_arguments(function, arguments, exception, words):
    with pytest.raises(exception) as caught:
        function(*arguments)
    for word in words:
        assert word in str(caught.value)


# ---- Results of another type -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("layout", LAYOUTS)
def test_single_result_of_halves(layout):
    rng = np.random.default_rng(84)
    a, b = rng.uniform(-1, 1, (40, 30)).astype("float16"), rng.uniform(-1, 1, (30, 20)).astype("float16")
    wide_a, wide_b = a.astype("float64"), b.astype("float64")
    out = arrange(rng.uniform(-1, 1, (40, 20)).astype("float32"), layout)
    before = out.astype("float64")
    fresh = wsgemm.matmul(a, b, dtype="float32")
    assert fresh.dtype == np.float32 and fresh.flags.c_contiguous
    assert_rounded_once(fresh, fresh, 0, wide_a, wide_b)
    assert wsgemm.matmul(a, b, out=out, beta=2) is out
    assert_rounded_once(out, out, 0, wide_a, wide_b, 1, 2, before)
    assert wsgemm.matmul(a, b, out=out, dtype="float32") is out
    np.testing.assert_array_equal(out, fresh)
    c = arrange(before.astype("float32"), layout)
    np.testing.assert_array_equal(wsgemm.gemm(1, a, b, 0, c), fresh)
    np.testing.assert_array_equal(c, before)
    result = wsgemm.gemm(1, a, b, 0.5, c)
    assert result.dtype == np.float32
    assert_rounded_once(result, result, 0, wide_a, wide_b, 1, 0.5, before)
    assert wsgemm.gemm(1, a, b, 0.5, c, overwrite_c=1) is c
    np.testing.assert_array_equal(c, result)
    assert wsgemm.explain(a, b, out)["calls"] == "1"


def test_single_stacks_and_vectors_of_halves():
    rng = np.random.default_rng(85)
    a, b = integer_array(rng, (3, 4, 6), "float16"), integer_array(rng, (6, 5), "float16")
    exact = a.astype("float32") @ b.astype("float32")
    np.testing.assert_array_equal(wsgemm.matmul(a, b, dtype=np.float32), exact)
    out = np.zeros((5, 3, 4), "float32").transpose(1, 2, 0)
    np.testing.assert_array_equal(wsgemm.matmul(a, b, out=out), exact)
    for x, y in ((a[0, 0], b), (a, b[:, 0]), (a[0, 0], b[:, 0]), (a[:, :0], b), (a[..., :0], b[:0])):
        result = wsgemm.matmul(x, y, dtype="float32")
        assert result.dtype == np.float32
        np.testing.assert_array_equal(result, x.astype("float32") @ y.astype("float32"))


def test_out_of_another_size_that_overlaps():
    rng = np.random.default_rng(86)
    memory = np.zeros(64, "float32")
    a = memory[20:].view("float16")[:36].reshape(6, 6)
    a[...] = integer_array(rng, (6, 6), "float16")
    b = integer_array(rng, (6, 6), "float16")
    exact = a.astype("float32") @ b.astype("float32")
    np.testing.assert_array_equal(wsgemm.matmul(a, b, out=memory[:36].reshape(6, 6)), exact)


def test_epilogue_of_a_single_result():
    rng = np.random.default_rng(87)
    a, b = integer_array(rng, (4, 6), "float16"), integer_array(rng, (6, 5), "float16")
    bias, residual, sums = np.arange(5, dtype="float32"), integer_array(rng, (4, 5), "float32"), np.zeros(5, "float32")
    result = wsgemm.matmul(a, b, dtype="float32", bias=bias, residual=residual, activation="relu", column_sums=sums)
    assert result.dtype == np.float32
    np.testing.assert_array_equal(result, np.maximum(a.astype("float32") @ b.astype("float32") + bias, 0) + residual)
    np.testing.assert_array_equal(sums, result.sum(axis=0))
    for more in ({"bias": bias.astype("float16")}, {"residual": residual.astype("float16")}):
        with pytest.raises(TypeError, match="float16, but"):
            wsgemm.matmul(a, b, dtype="float32", **more)


def test_bfloat16_result_of_ml_dtypes():
    ml_dtypes = pytest.importorskip("ml_dtypes")
    rng = np.random.default_rng(88)
    a, b = integer_array(rng, (9, 6), "float16"), integer_array(rng, (6, 5), "float16")
    result = wsgemm.matmul(a, b, dtype=ml_dtypes.bfloat16)
    assert result.dtype == ml_dtypes.bfloat16
    exact = a.astype("float32") @ b.astype("float32")
    np.testing.assert_array_equal(result, exact.astype(ml_dtypes.bfloat16))
    backwards = wsgemm.matmul(a.astype(ml_dtypes.bfloat16), b.astype(ml_dtypes.bfloat16), dtype="float16")
    np.testing.assert_array_equal(backwards, exact.astype("float16"))


SINGLES = np.ones((3, 3), "float32")


@pytest.mark.parametrize(
    "function, arguments, words",
    [
        (wsgemm.matmul, {"dtype": "float64"}, "dtype is float64, but a and b are float16"),
        (wsgemm.matmul, {"dtype": "float32", "out": HALVES.copy()}, "dtype is float32, but out is float16"),
        (wsgemm.matmul, {"out": np.ones((3, 3))}, "out is float64, but a and b are float16"),
        (wsgemm.matmul, {"out": SINGLES.astype(">f4")}, "out is float32 in swapped byte order"),
        (lambda *x, **more: wsgemm.hgemm(1, *x, **more), {"c": SINGLES.copy()}, "for hgemm it must be float16"),
    ],
)
def test_results_that_halves_do_not_have(function, arguments, words):
    with pytest.raises(TypeError, match=words):
        function(HALVES, HALVES, **arguments)


def test_no_other_type_of_result_of_singles():
    for more in ({"dtype": "float16"}, {"dtype": "float64"}, {"out": HALVES.copy()}):
        with pytest.raises(TypeError, match="a and b are float32"):
            wsgemm.matmul(SINGLES, SINGLES, **more)
