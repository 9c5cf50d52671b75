"""Epilogues, and results of another type, of device arrays, as far as no device is needed: what reaches the C call and what is refused."""

import numpy as np
import pytest
import wsgemm
from wsgemm_fakes import Array, Cuda, Lent, Tensor, faked_cupy, faked_jax, faked_torch, gpu, half, ndarray, zeros  # noqa: F401
from wsgemm_reference import STACK_LAYOUTS, arrange, integer_array, numbers_of, of_type


@pytest.fixture
def rng():
    return np.random.default_rng(66)


def integers(rng, dtype="float64"):
    """a, b, c, bias per column, bias per row"""
    return [integer_array(rng, shape, dtype) for shape in ((4, 6), (6, 5), (4, 5), (5,), (4, 1))]


@pytest.mark.parametrize("array", [Cuda, Lent])
def test_all_at_once(gpu, array, rng):  # noqa: F811
    a, b, c, bias, _ = integers(rng)
    out, sums = zeros(4, 5), zeros(5)
    given_out = array(out)
    result = wsgemm.matmul(
        array(a),
        array(b),
        given_out,
        activation="relu",
        bias=array(bias),
        residual=array(c),
        out_scale=2,
        column_sums=array(sums),
    )
    assert result is given_out
    np.testing.assert_array_equal(out, 2 * np.maximum(a @ b + bias, 0) + c)
    np.testing.assert_array_equal(sums, out.sum(axis=0))
    (desc,) = gpu.descs
    assert (desc.bias, desc.residual, desc.column_sums) == (bias.ctypes.data, c.ctypes.data, sums.ctypes.data)


def test_new_result(gpu, torch, rng):  # noqa: F811
    a, b, c, _, column = integers(rng)
    sums = Tensor(zeros(5))
    result = wsgemm.matmul(Tensor(a), Tensor(b), bias=Tensor(column), residual=Tensor(c), column_sums=sums)
    assert type(result) is Tensor and (result.n_written, sums.n_written) == (1, 1)
    np.testing.assert_array_equal(result.array, a @ b + column + c)
    np.testing.assert_array_equal(sums.array, result.array.sum(axis=0))
    result = wsgemm.gemm(2, Tensor(a.T.copy()), Tensor(b), -1, Tensor(c), trans_a=1, activation="relu", out_scale=3)
    np.testing.assert_array_equal(result.array, 3 * np.maximum(2 * a @ b - c, 0))
    np.testing.assert_array_equal(wsgemm.matmul(Tensor(a[0]), Tensor(b), bias=Tensor(b[0])).array, a[0] @ b + b[0])


@pytest.mark.parametrize("name", [name for name, (_, is_free) in STACK_LAYOUTS.items() if is_free])
def test_stacks(gpu, name, rng):  # noqa: F811
    a, b, c, bias = (integer_array(rng, shape, "float32") for shape in ((3, 4, 6), (6, 5), (3, 4, 5), (3, 1, 5)))
    out, sums = arrange(c, name), zeros(3, 5, dtype="float32")
    wsgemm.matmul(Cuda(a), Cuda(b), Cuda(out), beta=2, bias=Cuda(bias), column_sums=Cuda(sums))
    np.testing.assert_array_equal(out, a @ b + 2 * c + bias)
    np.testing.assert_array_equal(sums, out.sum(axis=-2))
    again = arrange(c, name)
    wsgemm.matmul(Cuda(a), Cuda(b), Cuda(again), residual=Cuda(again), bias=Cuda(bias))
    np.testing.assert_array_equal(again, a @ b + bias + c)
    assert gpu.descs[-1].residual == gpu.descs[-1].c


def test_result_of_another_type(gpu, torch, cupy, jax, rng):  # noqa: F811
    a, b, _, bias, _ = integers(rng, "float16")
    single = zeros(4, 5, dtype="float32")
    wsgemm.matmul(Cuda(a), Cuda(b), Cuda(single))
    np.testing.assert_array_equal(single, a.astype("float32") @ b.astype("float32"))
    for array in (Tensor, ndarray, Array):
        for more in ({}, {"bias": array(bias.astype("float32"))}):
            result = wsgemm.matmul(array(a), array(b), dtype="float32", **more)
            assert result.array.dtype == np.float32
            np.testing.assert_array_equal(result.array, single + (bias if more else 0))
    result = wsgemm.gemm(1, Tensor(a), Tensor(b), 1, Tensor(single))
    assert result.array.dtype == np.float32
    np.testing.assert_array_equal(result.array, 2 * single)
    sums = zeros(5, dtype="float32")
    wsgemm.matmul(Cuda(a), Cuda(b), Cuda(zeros(4, 5, dtype="float16")), column_sums=Cuda(sums))
    np.testing.assert_array_equal(sums, single.sum(axis=0))
    for function, arguments in (
        (wsgemm.matmul, {"dtype": "float64"}),
        (wsgemm.matmul, {"dtype": "float16", "out": Tensor(single)}),
        (wsgemm.matmul, {"out": Tensor(zeros(4, 5))}),
        (lambda *x, **more: wsgemm.hgemm(1, *x, **more), {"c": Tensor(single)}),
    ):
        with pytest.raises(TypeError, match="float"):
            function(Tensor(a), Tensor(b), **arguments)


def test_halves_of_jax(gpu, jax, half, rng):  # noqa: F811
    a, b, c, bias, _ = integers(rng, "float32")
    x, y = Array(of_type(a, half)), Array(of_type(b, half))
    exact = np.maximum(a @ b + bias, 0) + c
    other = np.dtype("float16") if half.name == "bfloat16" else half
    for dtype in (None, other, np.dtype("float32")):
        dtype_c = dtype or half
        residual, biases = Array(of_type(c, dtype_c)), [Array(bias), Array(of_type(bias, dtype_c))]
        for bias_given in biases:
            result = wsgemm.matmul(x, y, dtype=dtype, activation="relu", bias=bias_given, residual=residual)
            assert type(result) is Array and result.array.dtype == dtype_c
            np.testing.assert_array_equal(numbers_of(result.array), numbers_of(of_type(exact, dtype_c)))
        np.testing.assert_array_equal(numbers_of(wsgemm.matmul(x, y, dtype=dtype).array), numbers_of(of_type(a @ b, dtype_c)))
        for beta in (0, 1):
            result = wsgemm.gemm(1, x, y, beta, residual)
            assert result.array.dtype == dtype_c
            np.testing.assert_array_equal(numbers_of(result.array), numbers_of(of_type(a @ b + beta * c, dtype_c)))
    with pytest.raises(TypeError, match="bias is float64, but for a result of b?float16 it must be b?float16 or float32"):
        wsgemm.matmul(x, y, bias=Array(bias.astype("float64")))


def test_bfloat16_of_float16_operands_of_jax(gpu, jax, half, rng):  # noqa: F811
    a, b, _, _, _ = integers(rng, "float16")
    result = wsgemm.matmul(Array(a), Array(b), dtype=half)
    assert result.array.dtype == half
    exact = a.astype("float32") @ b.astype("float32")
    np.testing.assert_array_equal(numbers_of(result.array), numbers_of(of_type(exact, half)))


# ---- Copies ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("array", [Tensor, ndarray])
def test_library_copies_what_cannot_be_read(gpu, torch, cupy, array, rng):  # noqa: F811
    a, b, c, bias, _ = integers(rng)
    wide = np.repeat(bias, 2)
    result = wsgemm.matmul(array(a), array(b), bias=array(wide[::2]), residual=array(np.asfortranarray(c)))
    np.testing.assert_array_equal(result.array, a @ b + bias + c)
    memory = np.arange(40.0)
    out, residual, row = memory[:20].reshape(4, 5), memory[8:28].reshape(4, 5), memory[3:8]
    expected = a @ b + row + residual
    wsgemm.matmul(array(a), array(b), array(out), bias=array(row), residual=array(residual))
    np.testing.assert_array_equal(out, expected)


def test_unknown_libraries_copy_nothing(gpu, rng):  # noqa: F811
    a, b, c, bias, _ = integers(rng)
    out = zeros(4, 5)
    for more, words in (
        ({"bias": Cuda(np.repeat(bias, 2)[::2])}, "bias has no unit stride; make a contiguous copy"),
        ({"bias": Cuda(out[0])}, "bias may share memory with the result"),
        ({"residual": Cuda(np.asfortranarray(c))}, "residual does not lie by rows"),
        ({"residual": Cuda(out[::-1])}, "residual does not lie by rows"),
    ):
        with pytest.raises(ValueError, match=words):
            wsgemm.matmul(Cuda(a), Cuda(b), Cuda(out), **more)
    assert not gpu.log


def test_residual_by_rows_of_a_result_by_columns(gpu, torch, rng):  # noqa: F811
    a, b, c, _, _ = integers(rng)
    out = zeros(5, 4).T
    with pytest.raises(ValueError, match="residual does not lie by columns"):
        wsgemm.matmul(Tensor(a), Tensor(b), Tensor(out), residual=Tensor(c))
    wsgemm.matmul(Tensor(a), Tensor(b), Tensor(out), residual=Tensor(np.asfortranarray(c)))
    np.testing.assert_array_equal(out, a @ b + c)


# ---- Streams and empty products --------------------------------------------------------------------------------------------


def test_streams_of_the_epilogue(gpu, torch, cupy, rng):  # noqa: F811
    a, b, c, bias, _ = integers(rng)
    wsgemm.matmul(Tensor(a), Tensor(b), bias=ndarray(bias), column_sums=Cuda(zeros(5), stream=9))
    assert gpu.log == [("order", 6, 5), ("order", 9, 5), ("gemm", 5), ("order", 5, 6), ("order", 5, 9)]
    gpu.log.clear()
    wsgemm.matmul(Tensor(a), Tensor(b), residual=Lent(c))
    assert gpu.log == [("gemm", 5), ("wait", 5)]


def test_nothing_to_do(gpu, torch):  # noqa: F811
    sums, out = np.full((2, 5), 7.0), zeros(2, 0, 5)
    wsgemm.matmul(Tensor(zeros(2, 0, 4)), Tensor(zeros(4, 5)), Tensor(out), bias=Tensor(zeros(5)), column_sums=Tensor(sums))
    assert not sums.any() and gpu.log == [("gemm", 5)]
    wsgemm.matmul(Tensor(zeros(3, 4)), Tensor(zeros(4, 0)), activation="relu", column_sums=Tensor(zeros(0)))
    assert gpu.log == [("gemm", 5)]
    result = wsgemm.matmul(Tensor(zeros(3, 0)), Tensor(zeros(0, 5)), bias=Tensor(np.arange(5.0)))
    np.testing.assert_array_equal(result.array, np.tile(np.arange(5.0), (3, 1)))


# ---- Refused ---------------------------------------------------------------------------------------------------------------

A, B = np.ones((3, 4)), np.ones((4, 5))


@pytest.mark.parametrize(
    "arguments, error, words",
    [
        ({"activation": "tanh"}, ValueError, "'gelu_tanh'"),
        ({"bias": Cuda(zeros(4))}, ValueError, r"bias has shape \(4,\)"),
        ({"bias": Cuda(zeros(2, 1, 5))}, ValueError, "broadcast"),
        ({"bias": Cuda(zeros(5, dtype="float32"))}, TypeError, "bias is float32"),
        ({"bias": zeros(5)}, TypeError, r"a lies on a GPU .*, bias lies in host memory \(numpy.ndarray\); all must lie together"),
        ({"column_sums": zeros(5)}, TypeError, "column_sums lies in host memory"),
        ({"residual": Cuda(zeros(5, 3))}, ValueError, "residual has shape"),
        ({"residual": Cuda(zeros(3, 5, dtype="float32"))}, TypeError, "residual is float32"),
        ({"column_sums": Cuda(zeros(3))}, ValueError, "column_sums has shape"),
        ({"column_sums": Cuda(zeros(5, dtype="float32"))}, TypeError, "column_sums is float32"),
        ({"column_sums": Cuda(zeros(5), readonly=True)}, ValueError, "column_sums is read-only"),
        ({"column_sums": Cuda(zeros(10)[::2])}, ValueError, "pass a contiguous array"),
        ({"out_scale": 2, "beta": 1, "out": None}, ValueError, "beta = 1 needs out"),
    ],
)
def test_refused(gpu, arguments, error, words):  # noqa: F811
    given = {"out": Cuda(zeros(3, 5)), **arguments}
    with pytest.raises(error, match=words):
        wsgemm.matmul(Cuda(A), Cuda(B), **given)
    assert not gpu.log


def test_device_arrays_beside_operands_in_host_memory(gpu):  # noqa: F811
    with pytest.raises(TypeError, match="a lies in host memory.*bias lies on a GPU"):
        wsgemm.matmul(A, B, bias=Cuda(zeros(5)))
    with pytest.raises(TypeError, match="c lies in host memory.*column_sums lies on a GPU"):
        wsgemm.gemm(1, A, B, 1, zeros(3, 5), column_sums=Cuda(zeros(5)))


def test_sums_lie_apart(gpu, jax):  # noqa: F811
    memory = zeros(40)
    matrix = memory[:12].reshape(3, 4)
    for more in ({"bias": Cuda(memory[:5])}, {"residual": Cuda(memory[:15].reshape(3, 5))}, {}):
        with pytest.raises(ValueError, match="column_sums may share memory with"):
            wsgemm.matmul(Cuda(A if more else matrix), Cuda(B), Cuda(zeros(3, 5)), column_sums=Cuda(memory[4:9]), **more)
    with pytest.raises(ValueError, match="column_sums is a .*Array, which cannot be written"):
        wsgemm.matmul(Array(A), Array(B), column_sums=Array(zeros(5)))
    assert not [entry for entry in gpu.log if entry[0] == "gemm"]


def test_complex_arrays_have_no_epilogue(gpu):  # noqa: F811
    with pytest.raises(TypeError, match="complex64"):
        wsgemm.matmul(*[Cuda(np.ones((2, 2), "complex64"))] * 2, Cuda(np.ones((2, 2), "complex64")), out_scale=2)


def test_gpus_are_told_apart(gpu):  # noqa: F811
    bias = zeros(5)
    gpu.device_of = lambda address: int(address == bias.ctypes.data)
    with pytest.raises(ValueError, match="bias lies on GPU 1; all must be together"):
        wsgemm.matmul(Cuda(A), Cuda(B), Cuda(zeros(3, 5)), bias=Cuda(bias))
    assert not gpu.log
