"""Bad arguments: the right exception, whose message names both sides, and nothing written."""

import re

import numpy as np
import pytest
import wsgemm
from wsgemm_fakes import Cuda, aligned, gpu  # noqa: F401

F32 = np.ones((3, 4), "float32")
F64 = np.ones((4, 5), "float64")
SQUARE = np.ones((4, 4), "float32")


def frozen(shape, dtype="float32"):
    x = np.zeros(shape, dtype)
    x.flags.writeable = False
    return x


BAD = [
    # arguments, keywords, exception, all these words in the message
    ((F32, F64), {}, TypeError, ["a is float32", "b is float64"]),
    ((F64.T, F32.T), {}, TypeError, ["a is float64", "b is float32"]),
    ((F32, np.ones((4, 5), "complex64")), {}, TypeError, ["float32", "complex64"]),
    ((np.ones((3, 4), int), np.ones((4, 5), int)), {}, TypeError, ["int64", "float32, float64, complex64 or complex128"]),
    ((F32, np.ones((4, 5), "int8")), {}, TypeError, ["float32", "int8", "complex64"]),
    ((F32, [[1], [2], [3], [4]]), {}, TypeError, ["float32", "int64"]),
    ((np.ones((3, 4), "int16"), np.ones((4, 5), "int16")), {}, TypeError, ["int16", "float16"]),
    ((np.ones((3, 4), bool), F32.T), {}, TypeError, ["bool", "float32"]),
    ((F32.astype(">f4"), F32.T), {}, TypeError, ["float32 in swapped byte order", "native"]),
    ((F32, F32.T.astype(">f4")), {}, TypeError, ["float32 in swapped byte order"]),
    ((np.array([[object()]]), SQUARE), {}, TypeError, ["object"]),
    ((None, SQUARE), {}, TypeError, ["object", "float32"]),
    (("1.5", SQUARE), {}, TypeError, ["float32"]),
    ((np.ma.masked_less(SQUARE, 2), SQUARE), {}, TypeError, ["a is a masked array"]),
    ((SQUARE, np.ma.masked_less(SQUARE, 2)), {}, TypeError, ["b is a masked array"]),
    ((F32, F32), {}, ValueError, ["(3, 4)", "4 columns of a", "3 rows of b"]),
    ((np.ones(4, "float32"), F32), {}, ValueError, ["(4,)", "(3, 4)"]),
    ((F32, np.ones(3, "float32")), {}, ValueError, ["(3, 4)", "(3,)"]),
    ((np.float32(1), F32), {}, ValueError, ["()", "(3, 4)", "at least one dimension"]),
    ((F32, np.float32(1)), {}, ValueError, ["()", "(3, 4)"]),
    ((np.ones((2, 3, 4), "float32"), np.ones((5, 4, 3), "float32")), {}, ValueError, ["(2, 3, 4)", "(5, 4, 3)", "(2,)", "(5,)"]),
    ((np.ones((0, 3, 4), "float32"), np.ones((2, 4, 3), "float32")), {}, ValueError, ["(0,)", "(2,)"]),
    ((SQUARE, SQUARE), {"out": np.ones((4, 4))}, TypeError, ["out is float64", "float32"]),
    ((SQUARE, SQUARE), {"out": np.ones((4, 4), ">f4")}, TypeError, ["out is float32 in swapped byte order"]),
    ((SQUARE, SQUARE), {"out": [[1.0] * 4] * 4}, TypeError, ["out must be a NumPy array", "list"]),
    ((SQUARE, SQUARE), {"out": np.ma.masked_less(SQUARE, 2)}, TypeError, ["out", "MaskedArray"]),
    ((F32, SQUARE), {"out": np.ones((4, 3), "float32")}, ValueError, ["(4, 3)", "(3, 4)"]),
    ((F32, SQUARE), {"out": np.ones((1, 3, 4), "float32")}, ValueError, ["(1, 3, 4)", "(3, 4)"]),
    ((F32, np.ones(4, "float32")), {"out": np.ones((3, 1), "float32")}, ValueError, ["(3, 1)", "(3,)"]),
    ((SQUARE, SQUARE), {"out": frozen((4, 4))}, ValueError, ["out is read-only"]),
    ((F32, SQUARE), {"out": frozen((3, 4)), "beta": 1}, ValueError, ["out is read-only"]),
    ((np.ones((2, 3, 4), "float32"), SQUARE), {"out": frozen((2, 3, 4))}, ValueError, ["out is read-only"]),
    ((np.ones((0, 4), "float32"), SQUARE), {"out": frozen((0, 4))}, ValueError, ["out is read-only"]),
    ((SQUARE, SQUARE), {"out": np.broadcast_to(np.zeros(4, "float32"), (4, 4))}, ValueError, ["out is read-only"]),
    ((SQUARE, SQUARE), {"beta": 1}, ValueError, ["beta = 1", "out"]),
    ((SQUARE, SQUARE), {"beta": float("nan")}, ValueError, ["beta = nan", "out"]),
    ((SQUARE, SQUARE), {"alpha": 1j}, TypeError, ["alpha is complex", "float32"]),
    ((SQUARE, SQUARE), {"alpha": "2"}, TypeError, ["alpha must be a number", "str"]),
    ((SQUARE, SQUARE), {"alpha": None}, TypeError, ["alpha must be a number", "NoneType"]),
    ((SQUARE, SQUARE), {"alpha": np.ones(2)}, TypeError, ["alpha must be a number", "ndarray"]),
    ((SQUARE, SQUARE), {"beta": 1j, "out": SQUARE.copy()}, TypeError, ["beta is complex", "float32"]),
]


@pytest.mark.parametrize("arguments, keywords, exception, words", BAD)
def test_bad_arguments(arguments, keywords, exception, words):
    out = keywords.get("out")
    before = out.copy() if isinstance(out, np.ndarray) else None
    with pytest.raises(exception) as caught:
        wsgemm.matmul(*arguments, **keywords)
    assert type(caught.value) is exception
    for word in words:
        assert word in str(caught.value)
    if before is not None:
        np.testing.assert_array_equal(np.asarray(out), np.asarray(before))


@pytest.mark.parametrize("arguments, keywords, exception, words", BAD)
def test_explain_refuses_the_same(arguments, keywords, exception, words):
    with pytest.raises(exception, match=re.escape(words[0])):
        wsgemm.explain(*arguments, **keywords)


# ---- Numbers beyond their type ---------------------------------------------------------------------------------------------

HUGE = 10**5000
OF_TYPE = {"float16": "float32", "float32": "float32", "float64": "float64", "complex64": "float32", "complex128": "float64"}


@pytest.mark.parametrize("dtype", OF_TYPE)
@pytest.mark.parametrize("name", ["alpha", "beta"])
def test_numbers_beyond_their_type(dtype, name):
    x, out = np.ones((4, 4), dtype), np.ones((4, 4), dtype)
    single, double = (
        [1e39, -1e39, 3.5e38, np.float64(1e39)],
        [HUGE, -HUGE, 10**400, np.longdouble("1e4000"), -np.longdouble("1e4000")],
    )
    values = double + single * (OF_TYPE[dtype] == "float32")
    if dtype.startswith("complex"):
        values += [complex(0, 1e39), complex(-1e39, 0)] * (dtype == "complex64") + [np.clongdouble(1j) * np.longdouble("1e4000")]
    functions = [
        lambda **more: wsgemm.matmul(x, x, out, **more),
        lambda **more: wsgemm.explain(x, x, out, **more),
        lambda **more: wsgemm.workspace_size(x, x, out, **more),
        lambda **more: wsgemm.gemm(more.get("alpha", 1), x, x, more.get("beta", 0), out),
    ]
    if not dtype.startswith("complex"):
        functions.append(lambda **more: wsgemm.matmul(x, x, out, bias=x[0], **more))
    for value in values:
        for function in functions:
            with pytest.raises(OverflowError, match=f"{name} is beyond what a {OF_TYPE[dtype]} holds"):
                function(**{name: value})
    assert (out == 1).all()


def test_numbers_at_the_ends_of_their_type():
    x = np.full((2, 2), 0.25, "float32")
    most = float(np.finfo("float32").max)
    for value in (most, -most, np.nextafter(most, 0), 2.0**127, -(2**127), 2**127 + 1, np.inf, -np.inf, 1e-300, 2**-149):
        expected = x * np.float32(value) / 2
        for alpha in (value, np.float64(value)):
            np.testing.assert_array_equal(wsgemm.matmul(x, x, alpha=alpha), expected)
    assert np.isnan(wsgemm.matmul(x, x, alpha=float("nan"))).all()
    y = x.astype("float64")
    for value in (float(np.finfo("float64").max), -(2.0**1023), -(2**1023), np.inf):
        np.testing.assert_array_equal(wsgemm.matmul(y, y, alpha=value), y * (value / 2))


@pytest.mark.parametrize(
    "out_scale, exception, words",
    [
        (10**400, OverflowError, "out_scale is beyond what a float64 holds"),
        ("2", TypeError, "out_scale must be a number, not str"),
        (None, TypeError, "out_scale must be a number, not NoneType"),
        (1j, TypeError, "out_scale is complex, but a and b are float32"),
    ],
)
def test_bad_out_scale(out_scale, exception, words):
    with pytest.raises(exception, match=words):
        wsgemm.matmul(SQUARE, SQUARE, out_scale=out_scale)
    with pytest.raises(exception, match=words):
        wsgemm.gemm(1, SQUARE, SQUARE, out_scale=out_scale)


# ---- Handles ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("handle", [0, 5, "auto", wsgemm.Handle, np.float32(1)])
def test_what_is_no_handle(handle):
    for function in (
        lambda **more: wsgemm.matmul(SQUARE, SQUARE, **more),
        lambda **more: wsgemm.matmul(SQUARE, SQUARE, activation="relu", **more),
        lambda **more: wsgemm.gemm(1, SQUARE, SQUARE, **more),
        lambda **more: wsgemm.gemm(1, SQUARE, SQUARE, residual=SQUARE, **more),
        lambda **more: wsgemm.sgemm(1, SQUARE, SQUARE, **more),
        lambda **more: wsgemm.explain(SQUARE, SQUARE, **more),
        lambda **more: wsgemm.workspace_size(SQUARE, SQUARE, **more),
        lambda **more: wsgemm.prepack(SQUARE, **more),
        lambda **more: wsgemm.packed_size(SQUARE, **more),
        lambda **more: wsgemm.autotune((8, 8, 8), budget_ms=0, **more),
    ):
        with pytest.raises(TypeError, match=f"handle must be a wsgemm.Handle or None, not {type(handle).__name__}"):
            function(handle=handle)


@pytest.mark.parametrize("call", [lambda *x, **more: wsgemm.matmul(*x, **more), lambda *x, **more: wsgemm.prepack(x[0], **more)])
def test_what_is_no_handle_on_a_gpu(gpu, call):  # noqa: F811
    x = Cuda(SQUARE)
    more = {"memory": Cuda(aligned(1024))} if call.__code__.co_names[-1] == "prepack" else {"out": Cuda(SQUARE.copy())}
    with pytest.raises(TypeError, match="handle must be a wsgemm.Handle or None, not int"):
        call(x, x, handle=5, **more)
    assert not gpu.log


def test_error_of_the_library():
    handle = wsgemm.Handle()
    with pytest.raises(wsgemm.WsgemmError) as caught:
        handle.coarse_factor = 65
    assert caught.value.status == wsgemm.Status.INVALID_VALUE and caught.value.status == 2
    assert str(caught.value).startswith("WSGEMM_INVALID_VALUE: ") and "65" in str(caught.value)
    assert handle.coarse_factor == 0
    assert isinstance(caught.value, RuntimeError)
