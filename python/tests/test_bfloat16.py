"""bfloat16 in GPU memory, which no interface has a name for: told by the dtype of the array's own library, whatever it shows."""

import types

import numpy as np
import pytest
import wsgemm
from wsgemm import _lib
from wsgemm_fakes import (  # noqa: F401
    TORCH_TYPES,
    Cuda,
    Lent,
    Tensor,
    aligned,
    faked_cupy,
    faked_torch,
    gpu,
    ndarray,
    zeros,
)
from wsgemm_reference import integer_array, numbers_of, of_type

BF16, F16 = _lib.Type.BF16, _lib.Type.F16


@pytest.fixture
def rng():
    return np.random.default_rng(89)


@pytest.fixture(params=["<V2", "<f2", None], ids=["as V2", "as f2", "as KeyError"])
def release(request, monkeypatch):
    """Of torch: how it shows bfloat16."""
    monkeypatch.setattr(Tensor, "shown", request.param)


@pytest.fixture(params=["alone", "with ml_dtypes"])
def dtype(request, monkeypatch):
    """The bfloat16 that this process has."""
    if request.param != "alone":
        return np.dtype(pytest.importorskip("ml_dtypes").bfloat16)
    monkeypatch.setitem(__import__("sys").modules, "ml_dtypes", None)
    return wsgemm._arrays.bfloat16()


def integers(rng, dtype):
    return [of_type(integer_array(rng, shape, "float32"), dtype) for shape in ((4, 6), (6, 5), (4, 5), (5,))]


def assert_is(tensor, dtype, expected):
    assert type(tensor) is Tensor and tensor.dtype is TORCH_TYPES[dtype.name]
    np.testing.assert_array_equal(numbers_of(tensor.array), numbers_of(of_type(expected, dtype)))


# ---- torch ---------------------------------------------------------------------------------------------------------------


def test_products_of_torch(gpu, torch, release, dtype, rng):  # noqa: F811
    a, b, c, _ = integers(rng, dtype)
    x, y, z = Tensor(a), Tensor(b), Tensor(c.copy())
    exact = numbers_of(a) @ numbers_of(b)
    for result in (wsgemm.matmul(x, y), wsgemm.gemm(1, x, y), wsgemm.bgemm(1, x, y)):
        assert_is(result, dtype, exact)
        desc = gpu.descs.pop()
        assert (desc.type_a, desc.type_b, desc.type_c) == (BF16, BF16, BF16)
    assert_is(wsgemm.gemm(2, x, y, -1, z), dtype, 2 * exact - numbers_of(c))
    assert wsgemm.matmul(x, y, z, beta=1) is z and z.n_written == 1
    assert_is(z, dtype, exact + numbers_of(c))
    assert_is(wsgemm.matmul(Tensor(a[0]), y), dtype, exact[0])
    assert_is(wsgemm.matmul(Tensor(a[:, ::2]), Tensor(b[::2])), dtype, numbers_of(a[:, ::2]) @ numbers_of(b[::2]))  # a is copied
    assert wsgemm.workspace_size(x, y) == (4 + 5) * 6
    assert wsgemm.explain(x, y)["problem"].startswith("bgemm nn m=4 n=5 k=6")
    assert gpu.log == [("gemm", 5)] * 7


def test_results_of_torch_in_other_types(gpu, torch, release, dtype, rng):  # noqa: F811
    a, b, c, _ = integers(rng, dtype)
    x, y = Tensor(a), Tensor(b)
    exact = numbers_of(a) @ numbers_of(b)
    for name in ("float32", "float16", "bfloat16"):
        wanted = dtype if name == "bfloat16" else np.dtype(name)
        for asked in (name, getattr(torch, name), wanted):
            assert_is(wsgemm.matmul(x, y, dtype=asked), wanted, exact)
        out = Tensor(of_type(zeros(4, 5), wanted))
        assert wsgemm.matmul(x, y, out, dtype=getattr(torch, name)) is out
        assert_is(out, wanted, exact)
        assert_is(wsgemm.gemm(1, x, y, 0, out), wanted, exact)
    halves = Tensor(numbers_of(a).astype("float16")), Tensor(numbers_of(b).astype("float16"))
    assert_is(wsgemm.matmul(*halves, dtype=torch.bfloat16), dtype, exact)
    with pytest.raises(TypeError, match="dtype is float64, but a and b are bfloat16"):
        wsgemm.matmul(x, y, dtype=torch.float64)
    with pytest.raises(TypeError, match="dtype is bfloat16, but out is float16"):
        wsgemm.matmul(x, y, Tensor(zeros(4, 5, dtype="float16")), dtype=torch.bfloat16)


def test_epilogue_of_torch(gpu, torch, release, dtype, rng):  # noqa: F811
    a, b, c, bias = integers(rng, dtype)
    x, y, sums = Tensor(a), Tensor(b), Tensor(np.zeros(5, "float32"))
    exact = np.maximum(numbers_of(a) @ numbers_of(b) + numbers_of(bias), 0) + numbers_of(c)
    for given in (Tensor(bias), Tensor(numbers_of(bias).astype("float32"))):
        result = wsgemm.matmul(x, y, activation="relu", bias=given, residual=Tensor(c), column_sums=sums)
        assert_is(result, dtype, exact)
        assert gpu.descs[-1].type_bias == (BF16 if given.dtype.name == "bfloat16" else _lib.Type.F32)
    with pytest.raises(TypeError, match="residual is float16, but the result is bfloat16"):
        wsgemm.matmul(x, y, residual=Tensor(numbers_of(c).astype("float16")))
    with pytest.raises(TypeError, match="bias is float16, but for a result of bfloat16 it must be bfloat16 or float32"):
        wsgemm.matmul(x, y, bias=Tensor(numbers_of(bias).astype("float16")))


def test_prepack_and_memory_of_torch(gpu, torch, release, dtype, rng):  # noqa: F811
    a, b, _, _ = integers(rng, dtype)
    with wsgemm.prepack(Tensor(b)) as packed:
        assert packed.nbytes == wsgemm.packed_size(Tensor(b)) == 0  # only single precision is packed
        assert_is(wsgemm.matmul(Tensor(a), packed), dtype, numbers_of(a) @ numbers_of(b))
    memory = Tensor(aligned(1024).view(dtype))
    with wsgemm.prepack(Tensor(np.ones((6, 5), "float32")), memory=memory) as packed:
        assert packed.nbytes == 240
    handle = wsgemm.Handle(workspace=memory)
    assert gpu.workspaces[handle.pointer] == (memory.array.ctypes.data, 1024)


def test_other_types_of_torch(gpu, torch, release, dtype):  # noqa: F811
    x = Tensor(of_type(zeros(4, 4), dtype))
    for other, words in (
        (Tensor(zeros(4, 4, dtype="float16")), "a is bfloat16 and b is float16, but they must be of one type"),
        (Tensor(zeros(4, 4, dtype="uint16")), "a is bfloat16 and b is uint16, but both must be float16"),
        (Tensor(zeros(4, 4, dtype="uint8"), torch.float8_e4m3fn), "b is float8_e4m3fn"),
        (Tensor(zeros(4, 4, dtype="float32"), torch.complex32), "b is complex32"),
    ):
        with pytest.raises(TypeError, match=words):
            wsgemm.matmul(x, other)
    for routine, name in ((wsgemm.hgemm, "hgemm takes float16"), (wsgemm.sgemm, "sgemm takes float32")):
        with pytest.raises(TypeError, match=f"{name}, but a is bfloat16"):
            routine(1, x, x)
    with pytest.raises(TypeError, match="bgemm takes bfloat16.*, but a is float16"):
        wsgemm.bgemm(1, *[Tensor(zeros(4, 4, dtype="float16"))] * 2)
    for memory in (Tensor(aligned(512), torch.float8_e4m3fn), Tensor(aligned(512, "float32"), torch.complex32)):  # of any type
        assert gpu.workspaces.pop(wsgemm.Handle(workspace=memory).pointer) == (memory.array.ctypes.data, 512)
    assert not gpu.log


def test_tensors_of_torch_that_are_no_matrices_in_memory(gpu, torch):  # noqa: F811
    x = Tensor(zeros(4, 4))
    x.layout = "torch.sparse_csr"
    with pytest.raises(TypeError, match="a is a tensor of layout torch.sparse_csr"):
        wsgemm.matmul(x, Tensor(zeros(4, 4)))
    assert not gpu.log


# ---- Other libraries -----------------------------------------------------------------------------------------------------


def test_cupy(gpu, cupy, dtype, rng):  # noqa: F811
    a, b, c, _ = integers(rng, dtype)
    exact = numbers_of(a) @ numbers_of(b)
    for result in (wsgemm.matmul(ndarray(a), ndarray(b)), wsgemm.bgemm(1, ndarray(a), ndarray(b))):
        assert type(result) is ndarray and result.dtype == dtype
        np.testing.assert_array_equal(numbers_of(result.array), numbers_of(of_type(exact, dtype)))
    result = wsgemm.gemm(1, ndarray(a), ndarray(b), 1, ndarray(c))
    np.testing.assert_array_equal(numbers_of(result.array), numbers_of(of_type(exact + numbers_of(c), dtype)))
    assert gpu.descs[-1].type_c == BF16


class Named(Cuda):
    """Of a library that is not known here, with dtypes of its own."""

    def __init__(self, array, own, typestr):
        super().__init__(array, typestr=typestr)
        self.dtype = own


class Failing(Cuda):
    @property
    def __cuda_array_interface__(self):
        raise KeyError("bfloat16")


class Raising(Lent):
    """Its interface fails for this type, as that of old releases of torch and its likes did; DLPack does not."""

    @property
    def __cuda_array_interface__(self):
        raise KeyError("bfloat16")


def test_interface_that_fails(gpu, dtype, rng):  # noqa: F811
    a, b, c, _ = integers(rng, dtype)
    wsgemm.matmul(*(Raising(x) for x in (a, b, c)))
    np.testing.assert_array_equal(numbers_of(c), numbers_of(of_type(numbers_of(a) @ numbers_of(b), dtype)))
    with pytest.raises(TypeError, match=r"Failing.__cuda_array_interface__ lacks something: KeyError\('bfloat16'\)"):
        wsgemm.matmul(Failing(a), Failing(b), Failing(c))


class PaddleType:
    def __str__(self):
        return "paddle.bfloat16"


@pytest.mark.parametrize("typestr", ["<f2", "<V2", "|V2", "<u2"])
@pytest.mark.parametrize(
    "own", [PaddleType(), "bfloat16", type("bfloat16", (), {}), "own"], ids=["printed", "str", "class", "NumPy's"]
)
def test_libraries_with_types_of_their_own(gpu, own, typestr, dtype, rng):  # noqa: F811
    a, b, c, _ = integers(rng, dtype)
    wsgemm.matmul(*(Named(x, dtype if own == "own" else own, typestr) for x in (a, b, c)))
    np.testing.assert_array_equal(numbers_of(c), numbers_of(of_type(numbers_of(a) @ numbers_of(b), dtype)))
    assert gpu.descs[-1].type_a == BF16


@pytest.mark.parametrize(
    "own, typestr, words",
    [
        (None, "<V2", "a is void16"),  # nobody says what it is
        ("float12", "<V2", "a is void16"),
        (types.SimpleNamespace(), "<V2", "a is void16"),
        ("int16", "<V2", "a is int16"),
        (np.dtype("int16"), "<f2", "a is int16"),
        (np.dtype(">f2"), "<f2", "a is float16 in swapped byte order"),
        ("float16", ">f2", "a is float16 in swapped byte order"),
        ("float64", "<i2", "a is int16"),  # of another size: the interface knows best what lies there
    ],
)
def test_types_that_are_no_operand(gpu, own, typestr, words):  # noqa: F811
    x = Named(zeros(4, 4, dtype="float16"), own, typestr)
    with pytest.raises(TypeError, match=words):
        wsgemm.matmul(x, x, x)
    assert not gpu.log


def test_types_of_their_own_that_say_nothing_more(gpu, rng):  # noqa: F811
    a, b = integer_array(rng, (4, 6), "float16"), integer_array(rng, (6, 5), "float16")
    for own in (None, "float16", "paddle.float16", "vec3", 7, np.dtype("float16")):
        out = zeros(4, 5, dtype="float16")
        wsgemm.matmul(*(Named(x, own, "<f2") for x in (a, b, out)))
        np.testing.assert_array_equal(out, a @ b)
        assert gpu.descs[-1].type_a == F16
