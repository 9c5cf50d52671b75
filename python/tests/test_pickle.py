"""Copies and other processes: what points to memory of the C library goes to neither, its errors go to both."""

import concurrent.futures
import copy
import functools
import gc
import importlib.util
import multiprocessing
import pickle
import pkgutil

import numpy as np
import pytest
import wsgemm
from wsgemm import _lib
from wsgemm_fakes import Cuda, aligned, gpu, zeros  # noqa: F401

COPIES = {
    "copy": copy.copy,
    "deepcopy": copy.deepcopy,
    **{
        f"pickle {protocol}": lambda x, protocol=protocol: pickle.loads(pickle.dumps(x, protocol))
        for protocol in range(pickle.HIGHEST_PROTOCOL + 1)
    },
}


@pytest.fixture(params=COPIES.values(), ids=COPIES)
def copied(request):
    return request.param


@pytest.fixture(scope="module")
def other_process():
    with concurrent.futures.ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        yield lambda function, *arguments: pool.submit(function, *arguments).result()


# ---- What stays ----------------------------------------------------------------------------------------------------------


class Derived(wsgemm.Handle):
    """With a dictionary."""


@pytest.mark.parametrize("make", [wsgemm.Handle, Derived])
def test_handles_stay(copied, make):
    handle = make(threads=1)
    for x in (handle, [handle], functools.partial(wsgemm.matmul, handle=handle)):
        if copied is copy.copy and x is not handle:
            continue  # that of a container has the same handle
        with pytest.raises(TypeError, match=f"a wsgemm {make.__name__} cannot be copied or pickled"):
            copied(x)
    gc.collect()
    assert handle.threads == 1


def test_the_default_handle_is_that_of_the_process(copied, other_process):
    assert copied(wsgemm.default_handle) is wsgemm.default_handle
    assert other_process(repr, wsgemm.default_handle) == repr(wsgemm.default_handle)


def test_packed_operands_stay(gpu, copied):  # noqa: F811
    memory = Cuda(aligned(1024))
    for x in (np.ones((4, 4), "float32"), Cuda(np.ones((4, 4), "float32"))):
        packed = wsgemm.prepack(x, memory=memory)
        with pytest.raises(TypeError, match="a wsgemm Packed cannot be copied or pickled"):
            copied(packed)
        if packed._record is not None:
            with pytest.raises(TypeError, match="a wsgemm Record cannot be copied or pickled"):
                copied(packed._record)
    gc.collect()
    assert len(gpu.packed) == 1 and not [entry for entry in gpu.log if entry[0] == "destroy"]
    packed.close()
    with pytest.raises(TypeError, match="cannot be copied or pickled"):
        copied(packed)
    assert not gpu.packed


def test_handles_do_not_reach_other_processes(other_process):
    with pytest.raises(TypeError, match="a wsgemm Handle cannot be copied or pickled"):
        other_process(repr, wsgemm.Handle())


# ---- What goes -----------------------------------------------------------------------------------------------------------


class Failure(wsgemm.WsgemmError):
    """An error with arguments of its own."""

    def __init__(self, shape, *, cause):
        super().__init__(wsgemm.Status.NOT_SUPPORTED, f"no product of {shape}: {cause}")
        self.shape = shape


def error_of_the_library():
    with pytest.raises(wsgemm.WsgemmError) as caught:
        wsgemm.Handle().coarse_factor = 65
    return caught.value


def assert_same(x, y):
    assert type(x) is type(y) and x is not y
    assert (str(x), repr(x), x.args, vars(x), type(x.status)) == (str(y), repr(y), y.args, vars(y), type(y.status))


def fail(error):
    raise error


@pytest.mark.parametrize(
    "make",
    [
        error_of_the_library,
        lambda: wsgemm.WsgemmError(99, "WSGEMM_UNHEARD_OF: of a library that is newer"),
        lambda: Failure((3, 4), cause="too odd"),
    ],
    ids=["library", "unknown status", "derived"],
)
def test_errors_go(copied, make, other_process):
    error = make()
    error.note = {"more": 1}
    assert_same(copied(error), error)
    with pytest.raises(type(error)) as caught:
        other_process(fail, error)
    assert_same(caught.value, error)


def product_that_fails():
    return wsgemm.matmul(zeros(3, 3), zeros(3, 3), handle=wsgemm.Handle(kernel="sgemm_abacus"))


def test_errors_of_other_processes_come_back(other_process):
    with pytest.raises(wsgemm.WsgemmError, match="sgemm_abacus") as caught:
        other_process(product_that_fails)
    assert caught.value.status is wsgemm.Status.INVALID_VALUE
    assert other_process(abs, -1) == 1  # the process lives


def test_exceptions_of_the_package(copied):
    found = set()
    for info in pkgutil.walk_packages(wsgemm.__path__, "wsgemm."):
        # An installed package has the libraries beside its modules.
        library, name = info.name.split(".")[1], info.name.rpartition(".")[2]
        is_missing = library in ("torch", "jax") and importlib.util.find_spec(library) is None
        if not is_missing and not name.startswith("libwsgemm") and name not in ("__main__", "_threadpoolctl", "wsgemm_calls"):
            module = importlib.import_module(info.name)
            found |= {x for x in vars(module).values() if isinstance(x, type) and issubclass(x, Exception)}
    own = {x for x in found if x.__module__.startswith("wsgemm.")}
    assert _lib.WsgemmError in own and len(own) >= 4
    for exception in own - {_lib.WsgemmError}:
        error = exception("what is wrong")
        again = copied(error)
        assert type(again) is exception and again.args == error.args
