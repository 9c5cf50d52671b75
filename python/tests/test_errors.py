"""Bad arguments: the right exception, whose message names both sides, and nothing written."""

import re

import numpy as np
import pytest
import wsgemm

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


def test_error_of_the_library():
    handle = wsgemm.Handle()
    with pytest.raises(wsgemm.WsgemmError) as caught:
        handle.coarse_factor = 65
    assert caught.value.status == wsgemm.Status.INVALID_VALUE and caught.value.status == 2
    assert str(caught.value).startswith("WSGEMM_INVALID_VALUE: ") and "65" in str(caught.value)
    assert handle.coarse_factor == 0
    assert isinstance(caught.value, RuntimeError)
