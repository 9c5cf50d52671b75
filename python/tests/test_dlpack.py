"""DLPack capsules: consumed once, given back once, after the product, whatever happens; both kinds, and what is refused."""

import ctypes

import numpy as np
import pytest
import wsgemm
from wsgemm import _lib
from wsgemm_fakes import Cuda, Lent, gpu, half  # noqa: F401
from wsgemm_reference import DTYPES, from_bits, integer_array, numbers_of, of_type, to_bits

VERSIONS = [None, (1, 0), (1, 3)]


@pytest.fixture
def rng():
    return np.random.default_rng(71)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("device", [2, 13])
def test_product(gpu, version, dtype, device, rng):  # noqa: F811
    a, b = integer_array(rng, (5, 8), dtype)[:, 1:5], integer_array(rng, (6, 4), dtype).T
    out = np.zeros((5, 6), dtype)
    lent = [Lent(x, version, device=device, told_device=device, log=gpu.log) for x in (a, b, out)]
    assert wsgemm.matmul(*lent) is lent[2]
    np.testing.assert_array_equal(out, a @ b)
    # Whose streams are not known: done when the call returns, and given back only then.
    assert gpu.log == [("gemm", 1), ("wait", 1), "deleted", "deleted", "deleted"]
    used = b"used_dltensor" if version is None else b"used_dltensor_versioned"
    assert [x.names() for x in lent] == [[used]] * 3
    assert [x.asked for x in lent] == [[(1, {} if version is None else {"max_version": (1, 0)})]] * 3


def test_types_that_others_set(gpu, monkeypatch):  # noqa: F811
    """Of ctypes.pythonapi's functions, which are one object for all modules: JAX sets some."""
    for name in ("IsValid", "GetPointer", "SetName"):
        monkeypatch.setattr(getattr(ctypes.pythonapi, f"PyCapsule_{name}"), "argtypes", [])
    lent = [Lent(np.ones((2, 2))) for _ in range(2)]
    np.testing.assert_array_equal(wsgemm.matmul(*lent, Cuda(np.zeros((2, 2)))).array, np.full((2, 2), 2.0))


@pytest.mark.parametrize("version", VERSIONS)
def test_halves(gpu, half, version, rng):  # noqa: F811
    a, b = integer_array(rng, (5, 8), "float32")[:, 1:5], integer_array(rng, (6, 4), "float32").T
    other = np.dtype("float16") if half.name == "bfloat16" else half
    for dtype in (half, other, np.dtype("float32")):
        out = np.zeros((5, 6), dtype)
        lent = [Lent(x, version, log=gpu.log) for x in (of_type(a, half), of_type(b, half), out)]
        assert wsgemm.matmul(*lent, dtype=dtype) is lent[2]
        np.testing.assert_array_equal(numbers_of(out), numbers_of(of_type(a @ b, dtype)))
        codes = {"float16": _lib.Type.F16, "bfloat16": _lib.Type.BF16, "float32": _lib.Type.F32}
        desc = gpu.descs.pop()
        assert (desc.type_a, desc.type_b, desc.type_c) == (codes[half.name], codes[half.name], codes[dtype.name])
    assert gpu.log == [("gemm", 1), ("wait", 1), "deleted", "deleted", "deleted"] * 3
    with pytest.raises(TypeError, match=f"out is float64, but a and b are {half.name}"):
        wsgemm.matmul(*lent[:2], Lent(np.zeros((5, 6))))
    with pytest.raises(TypeError, match=f"a is {half.name} and b is float32, but they must be of one type"):
        wsgemm.matmul(lent[0], Lent(b), lent[2])


def test_routines_of_halves(gpu, half, rng):  # noqa: F811
    routine, wrong = (wsgemm.bgemm, wsgemm.hgemm) if half.name == "bfloat16" else (wsgemm.hgemm, wsgemm.bgemm)
    a, b, c = (integer_array(rng, shape, "float32") for shape in ((5, 4), (4, 6), (5, 6)))
    out = of_type(c, half)
    x, y = (Lent(of_type(host, half)) for host in (a, b))
    routine(2, x, y, -1, Lent(out), overwrite_c=1)
    np.testing.assert_array_equal(numbers_of(out), numbers_of(of_type(2 * (a @ b) - c, half)))
    with pytest.raises(TypeError, match=f"{wrong.__name__} takes .*, but a is {half.name}"):
        wrong(1, x, y, 0, Lent(out), overwrite_c=1)
    with pytest.raises(TypeError, match=f"c is float32, but for {routine.__name__} it must be {half.name}"):
        routine(1, x, y, 0, Lent(c), overwrite_c=1)


@pytest.mark.parametrize("array", [Cuda, Lent])
def test_bits_of_bfloat16(gpu, array, rng):  # noqa: F811
    a, b, out = integer_array(rng, (5, 4), "float32"), integer_array(rng, (4, 6), "float32"), np.zeros((5, 6), "uint16")
    x, y = array(to_bits(a)), array(to_bits(b))
    wsgemm.bgemm(1, x, y, 0, array(out), overwrite_c=1)
    np.testing.assert_array_equal(from_bits(out), from_bits(to_bits(a @ b)))
    with pytest.raises(TypeError, match="a is uint16 and b is uint16, but both must be float16"):
        wsgemm.matmul(x, y, array(out))


def test_stream_of_the_others_is_passed_on(gpu):  # noqa: F811
    lent = Lent(np.zeros((2, 2)), (1, 0), log=gpu.log)
    wsgemm.matmul(lent, Cuda(np.zeros((2, 2)), stream=7), Cuda(np.zeros((2, 2)), stream=7))
    assert lent.asked == [(7, {"max_version": (1, 0)})]
    assert gpu.log == [("gemm", 7), ("wait", 7), "deleted"]


def test_interface_that_tells_streams_comes_first(gpu):  # noqa: F811
    class Both(Lent):
        version_told = 3

        @property
        def __cuda_array_interface__(self):
            return Cuda(self.array, stream=4, version=self.version_told).__cuda_array_interface__

    x = Both(np.zeros((2, 2)))
    wsgemm.matmul(x, x, Cuda(np.zeros((2, 2)), stream=4))
    assert not x.capsules and gpu.log == [("gemm", 4)]
    x.version_told = 2
    wsgemm.matmul(x, x, Cuda(np.zeros((2, 2)), stream=4))
    assert len(x.capsules) == 2 and gpu.log[1:] == [("gemm", 4), ("wait", 4)] and x.log == ["deleted"] * 2


@pytest.mark.parametrize("version", VERSIONS)
def test_given_back_after_errors(gpu, version):  # noqa: F811
    a, b = Lent(np.zeros((2, 3)), version), Lent(np.zeros((2, 3)), version)
    with pytest.raises(ValueError, match="do not fit"):
        wsgemm.matmul(a, b, Cuda(np.zeros((2, 2))))
    assert a.log == b.log == ["deleted"] and not gpu.log
    gpu.on_gemm = lambda handle: 11
    c = Lent(np.zeros((2, 2)), version, log=gpu.log)
    with pytest.raises(wsgemm.WsgemmError):
        wsgemm.matmul(c, c, Cuda(np.zeros((2, 2))))
    assert gpu.log == [("gemm", 1), ("wait", 1), "deleted", "deleted"]


def test_error_of_the_second_producer_gives_the_first_back(gpu):  # noqa: F811
    class Broken(Lent):
        def __dlpack__(self, **keywords):
            raise BufferError("not today")

    a = Lent(np.zeros((2, 2)))
    with pytest.raises(BufferError, match="not today"):
        wsgemm.matmul(a, Broken(np.zeros((2, 2))), Cuda(np.zeros((2, 2))))
    assert a.log == ["deleted"]


def test_unknown_major_version(gpu):  # noqa: F811
    a = Lent(np.zeros((2, 2)), (2, 5))
    with pytest.raises(BufferError, match=r"a comes as DLPack 2\.5"):
        wsgemm.matmul(a, Cuda(np.zeros((2, 2))), Cuda(np.zeros((2, 2))))
    assert a.log == ["deleted"] and a.names() == [b"used_dltensor_versioned"]


def test_what_is_no_capsule(gpu):  # noqa: F811
    class Wrong(Lent):
        def __dlpack__(self, **keywords):
            return self.answer

    a = Wrong(np.zeros((2, 2)))
    used = Lent(np.zeros((2, 2)))
    wsgemm.matmul(used, Cuda(np.zeros((2, 2))), Cuda(np.zeros((2, 2))))
    for a.answer in (None, 5, used.capsules[0]):
        with pytest.raises(TypeError, match="a.__dlpack__.. of Wrong gave no unused DLPack capsule"):
            wsgemm.matmul(a, Cuda(np.zeros((2, 2))), Cuda(np.zeros((2, 2))))
    assert used.log == ["deleted"]


def test_no_deleter(gpu, rng):  # noqa: F811
    a = integer_array(rng, (3, 3), "float32")
    out = np.zeros((3, 3), "float32")
    for version in VERSIONS:
        lent = Lent(a, version, deleter=None)
        wsgemm.matmul(lent, lent, Cuda(out))
        np.testing.assert_array_equal(out, a @ a)
        assert not lent.log


def test_byte_offset_and_no_strides(gpu, rng):  # noqa: F811
    a = integer_array(rng, (3, 4), "complex64")
    out = np.zeros((3, 3), "complex64")
    wsgemm.matmul(Lent(a, byte_offset=64, strides=False), Lent(a.T, byte_offset=8), Cuda(out))
    np.testing.assert_array_equal(out, a @ a.T)
    assert gpu.descs[0].a == a.ctypes.data


def test_tensor_elsewhere_than_told(gpu):  # noqa: F811
    a = Lent(np.zeros((2, 2)), device=1)
    with pytest.raises(BufferError, match="a told of a CUDA device.*type 1"):
        wsgemm.matmul(a, Cuda(np.zeros((2, 2))), Cuda(np.zeros((2, 2))))
    assert a.log == ["deleted"]


def test_dimensions_are_none_or_empty(gpu):  # noqa: F811
    scalar = Lent(np.array(1.0))
    with pytest.raises(ValueError, match="at least one dimension"):
        wsgemm.matmul(scalar, Cuda(np.zeros((2, 2))), Cuda(np.zeros((2, 2))))
    empty = Lent(np.zeros((0, 2)))
    wsgemm.matmul(empty, Cuda(np.zeros((2, 2))), Lent(np.zeros((0, 2)), log=empty.log))
    assert not gpu.log and empty.log == ["deleted"] * 2
