"""Handles, thread limits, threadpoolctl, and what the library says of itself."""

import dataclasses
import doctest
import gc
import json
import re
import sys
import threading

import numpy as np
import pytest
import threadpoolctl
import wsgemm
from wsgemm import _handle, _lib
from wsgemm_reference import DTYPES, assert_product, random_array

POLICIES = ["auto", "fixed_work", "fixed_blocks", "steal"]


@pytest.fixture
def operands():
    rng = np.random.default_rng(41)
    return random_array(rng, (257, 301), "float32"), random_array(rng, (301, 263), "float32")


# ---- Handles -------------------------------------------------------------------------------------------------------------


def test_defaults():
    handle = wsgemm.Handle()
    assert (handle.threads, handle.policy, handle.coarse_factor, handle.kernel, handle.math) == (0, "auto", 0, (), "default")
    assert "threads=0" in repr(handle) and "policy='auto'" in repr(handle)


def test_settings_are_kept_and_apart():
    handle, other = wsgemm.Handle(3, "fixed_blocks", 4, math="pedantic"), wsgemm.Handle()
    assert (handle.threads, handle.policy, handle.coarse_factor, handle.math) == (3, "fixed_blocks", 4, "pedantic")
    assert (other.threads, other.policy, other.coarse_factor, other.math) == (0, "auto", 0, "default")
    handle.threads, handle.policy, handle.coarse_factor, handle.math = 2, "steal", 0, "default"
    assert (handle.threads, handle.policy, handle.coarse_factor, handle.math) == (2, "steal", 0, "default")


def test_devices_for_host_arrays():
    handle = wsgemm.Handle(devices="all", offload="auto")
    assert (handle.devices, handle.offload) == ("all", "auto")
    assert (wsgemm.Handle().devices, wsgemm.Handle().offload) == ((), "always")
    handle.devices, handle.offload = [3, 1], "always"
    assert (handle.devices, handle.offload) == ((1, 3), "always")
    for bad in ("some", (-1,), (64,), (1, 1)):
        with pytest.raises((ValueError, wsgemm.WsgemmError)):
            handle.devices = bad
    with pytest.raises(ValueError, match="offload is 'never'"):
        handle.offload = "never"
    assert (handle.devices, handle.offload) == ((1, 3), "always")
    handle.devices = ()
    assert handle.devices == ()


def test_host_arrays_without_a_gpu_or_with_one():
    rng = np.random.default_rng(44)
    handle, reported = wsgemm.Handle(devices="all"), []
    handle.set_progress(reported.append)
    wsgemm.set_pinned_limit(1 << 28)
    a, b = random_array(rng, (600, 300), "float64"), random_array(rng, (300, 500), "float64")
    assert_product(wsgemm.matmul(a, b, handle=handle), a, b)
    assert reported == sorted(reported) and all(0 <= done <= 1 for done in reported)
    handle.set_progress(None)
    with pytest.raises(ValueError, match="at least 0"):
        wsgemm.set_pinned_limit(-1)


def test_what_progress_raises_stops_a_product():
    """The function that the library is given returns 1, and what was raised is raised by the check of the call's status."""

    def fail(done):
        raise ArithmeticError(done)

    seen = []
    for function, done in ((fail, 0.5), (seen.append, 0.25), (None, 0.75)):
        call, user, _ = _handle.progress_of(function)
        if not call:
            continue  # None without src/python
        assert call(user, done) == (function is fail)
        with pytest.raises(ArithmeticError if function is fail else wsgemm.WsgemmError, match="0.5" if function is fail else "STOPPED"):
            _lib.check(_lib.Status.STOPPED)
    assert seen == [0.25]


def test_invariant_rows():
    rng = np.random.default_rng(43)
    handle = wsgemm.Handle(invariant=True)
    assert handle.invariant is True and wsgemm.Handle().invariant is False and "invariant=True" in repr(handle)
    for dtype in (*DTYPES, "float16"):
        a, b = random_array(rng, (33, 300), "float32").astype(dtype), random_array(rng, (300, 64), "float32").astype(dtype)
        whole = wsgemm.matmul(a, b, handle=handle)
        for m in (1, 2, 7, 33):
            assert wsgemm.matmul(a[:m], b, handle=handle).tobytes() == whole[:m].tobytes()
        assert wsgemm.matmul(a[:, None], b, handle=handle).tobytes() == whole.tobytes()  # a stack of rows
        assert wsgemm.matmul(a[5], b, handle=handle).tobytes() == whole[5].tobytes()
        fused = wsgemm.matmul(a, b, activation="relu", handle=handle) if dtype in ("float32", "float16") else None
        if fused is not None:
            assert wsgemm.matmul(a[5], b, activation="relu", handle=handle).tobytes() == fused[5].tobytes()
    assert "invariant" in wsgemm.explain(a, b, handle=handle) and "invariant" not in wsgemm.explain(a, b)
    handle.invariant = False
    assert handle.invariant is False
    with pytest.raises(wsgemm.WsgemmError):
        handle.invariant = 2


def test_settings_reach_the_call(operands):
    told = wsgemm.explain(*operands, handle=wsgemm.Handle(threads=1, policy="fixed_work", coarse_factor=3))
    assert told["threads"] == "1" and told["coarse_factor"] == "3" and re.search("fixed.work", told["policy"])


def test_default_handle(operands):
    assert wsgemm.default_handle.threads == 0
    wsgemm.default_handle.threads = 1
    try:
        assert wsgemm.explain(*operands)["threads"] == "1"
        assert "default_handle threads=1" in repr(wsgemm.default_handle)
    finally:
        wsgemm.default_handle.threads = 0
    with pytest.raises(wsgemm.WsgemmError):
        wsgemm.default_handle.threads = -1


def test_bits_depend_on_no_setting(operands):
    for dtype in DTYPES:
        a, b = operands[0].astype(dtype), operands[1].astype(dtype)
        expected = wsgemm.matmul(a, b, handle=wsgemm.Handle(threads=1))
        assert_product(expected, a, b)
        for policy in POLICIES:
            for threads in (1, 2, 3, 5, 16):
                for coarse_factor in (0, 1, 7):
                    handle = wsgemm.Handle(threads, policy, coarse_factor)
                    assert wsgemm.matmul(a, b, handle=handle).tobytes() == expected.tobytes(), handle


def test_every_usable_kernel_row():
    rng = np.random.default_rng(42)
    rows = [wsgemm.kernel_info(name) for name in wsgemm.kernels()]
    types = dict(zip("sdcz", DTYPES))
    assert {row.type for row in rows if row.is_usable} == {*types, "h", "b"}
    for row in rows:
        name = row.name
        if row.type in "hb":
            continue  # test_half.py's
        if not row.is_usable:
            with pytest.raises(wsgemm.WsgemmError) as caught:
                wsgemm.Handle(kernel=name)
            assert caught.value.status == wsgemm.Status.NOT_SUPPORTED
            continue
        handle = wsgemm.Handle(kernel=name)
        assert handle.kernel == (name,)
        dtype = types[row.type]
        a, b = random_array(rng, (45, 67), dtype), random_array(rng, (67, 39), dtype)
        assert wsgemm.explain(a, b, handle=handle)["kernel"] == name
        assert_product(wsgemm.matmul(a, b, handle=handle), a, b)
        handle.kernel = None
        assert handle.kernel == ()


def test_kernels_of_several_types_at_once():
    rows = [row for row in map(wsgemm.kernel_info, wsgemm.kernels()) if row.family == "ref" and row.type in "sdcz"]
    names = [row.name for row in rows]
    assert len(rows) == 4
    handle = wsgemm.Handle(kernel=names)
    assert handle.kernel == tuple(names)
    for row in rows:
        x = np.ones((40, 40), dict(zip("sdcz", DTYPES))[row.type])
        assert wsgemm.explain(x, x, handle=handle)["kernel"] == row.name


def test_kernel_info():
    names = [*wsgemm.kernels("cpu"), *wsgemm.kernels("cuda")]
    for name in names:
        row = wsgemm.kernel_info(name)
        assert (row.name, row.is_usable) == (name, wsgemm.kernels(row.backend)[name])
        assert (row.n_threads > 0) == (row.backend == "cuda")
        for field in dataclasses.fields(row):
            assert type(getattr(row, field.name)).__name__ == field.type, field.name
    for wrong in ("", "sgemm_ref_8x6 ", "nonsense", "\udcff"):
        with pytest.raises(ValueError, match="no kernel row"):
            wsgemm.kernel_info(wrong)
    with pytest.raises(dataclasses.FrozenInstanceError):
        wsgemm.kernel_info(names[0]).bm = 1


@pytest.mark.parametrize(
    "keywords, exception, word",
    [
        ({"threads": -1}, wsgemm.WsgemmError, "-1"),
        ({"threads": 2**40}, ValueError, str(2**40)),
        ({"threads": 1.5}, TypeError, "float"),
        ({"policy": "fair"}, ValueError, "'fair'.*'steal'"),
        ({"math": "inherit"}, ValueError, "'inherit'.*'pedantic'"),
        ({"coarse_factor": 65}, wsgemm.WsgemmError, "65"),
        ({"kernel": "sgemm_abacus"}, wsgemm.WsgemmError, "sgemm_abacus"),
    ],
)
def test_bad_settings(keywords, exception, word):
    with pytest.raises(exception, match=word):
        wsgemm.Handle(**keywords)
    handle = wsgemm.Handle()
    with pytest.raises(exception, match=word):
        for name, value in keywords.items():
            setattr(handle, name, value)
    assert repr(handle) == repr(wsgemm.Handle())


def test_handle_is_freed_with_its_last_reference(monkeypatch):
    freed = []
    monkeypatch.setattr(_lib.library, "wsgemm_destroy", freed.append)
    handle = wsgemm.Handle()
    pointer = handle.pointer
    assert pointer and not freed
    del handle
    gc.collect()
    assert freed == [pointer]
    monkeypatch.undo()
    assert _lib.library.wsgemm_destroy(pointer) == 0


# ---- Workspaces: those in GPU memory are test_workspace.py's -------------------------------------------------------------


def test_no_workspace(operands):
    handle = wsgemm.Handle()
    assert handle.workspace is None and wsgemm.default_handle.workspace is None and "workspace" not in repr(handle)
    handle.workspace = None
    assert handle.workspace is None and wsgemm.Handle(workspace=None).workspace is None
    wsgemm.default_handle.workspace = None
    assert_product(wsgemm.matmul(*operands, handle=handle), *operands)


@pytest.mark.parametrize("workspace", [np.zeros(1000, "uint8"), bytearray(1000), 1000, [0]])
def test_workspace_in_host_memory(workspace):
    with pytest.raises(TypeError, match="workspace lies in host memory .*, but it must lie on a GPU"):
        wsgemm.Handle(workspace=workspace)
    for handle in (wsgemm.Handle(), wsgemm.default_handle):
        with pytest.raises(TypeError, match=f"workspace lies in host memory .*{type(workspace).__name__}"):
            handle.workspace = workspace
        assert handle.workspace is None


def test_workspace_size_in_host_memory(operands):
    a, b = operands
    out = np.full((257, 263), 7, "float32")
    assert wsgemm.workspace_size(a, b) == wsgemm.workspace_size(a, b, out, 2, 1, handle=wsgemm.Handle(math="tf32")) == 0
    assert wsgemm.workspace_size(a[0], b, activation="relu", bias=b[0], residual=a[0] @ b, out_scale=2) == 0
    assert wsgemm.workspace_size(a.astype("float16"), b.astype("float16"), out) == 0
    for few_a, few_b in (([[1.0]], [[1.0]]), (a[:0], b), (a[:, :0], b[:0])):
        assert wsgemm.workspace_size(few_a, few_b) == 0
    assert wsgemm.workspace_size(wsgemm.prepack(a, "a"), wsgemm.prepack(b)) == 0
    assert (out == 7).all()


@pytest.mark.parametrize(
    "b, keywords, error, words",
    [
        (np.ones((4, 3)), {}, ValueError, "do not fit"),
        (np.ones((3, 4), "float32"), {}, TypeError, "one type"),
        (np.ones((3, 4)), {"out": np.ones((4, 3))}, ValueError, "out has shape"),
        (np.ones((3, 4)), {"beta": 1}, ValueError, "needs out"),
        (np.ones((3, 4)), {"dtype": "float32"}, TypeError, "dtype is float32"),
        (np.ones((3, 4)), {"alpha": 1j}, TypeError, "alpha is complex"),
    ],
)
def test_workspace_size_refuses(b, keywords, error, words):
    for function in (wsgemm.workspace_size, wsgemm.matmul):
        with pytest.raises(error, match=words):
            function(np.ones((2, 3)), b, **keywords)


def test_examples():
    for name in ("wsgemm._handle", "wsgemm._info"):
        failures, n_tests = doctest.testmod(sys.modules[name])
        assert failures == 0 and n_tests > 1


# ---- Threads -------------------------------------------------------------------------------------------------------------


def limit_here():
    return _lib.library.wsgemm_set_num_threads_local(-1)


def test_num_threads_nests(operands):
    assert limit_here() == 0
    with wsgemm.num_threads(1):
        assert limit_here() == 1
        assert wsgemm.explain(*operands)["threads"] == "1"
        with wsgemm.num_threads(4):
            assert limit_here() == 4
        assert limit_here() == 1
    assert limit_here() == 0


def test_num_threads_ends_with_an_exception():
    with pytest.raises(KeyError), wsgemm.num_threads(1):
        raise KeyError
    assert limit_here() == 0


def test_num_threads_is_of_one_thread():
    seen = []
    with wsgemm.num_threads(1):
        other = threading.Thread(target=lambda: seen.append(limit_here()))
        other.start()
        other.join()
    assert seen == [0]


def test_num_threads_as_decorator():
    @wsgemm.num_threads(1)
    def inside():
        return limit_here()

    assert [inside(), inside(), limit_here()] == [1, 1, 0]


@pytest.mark.parametrize("n, exception", [(-1, ValueError), (2**31, ValueError), (1.0, TypeError), ("2", TypeError)])
def test_num_threads_refuses(n, exception):
    with pytest.raises(exception), wsgemm.num_threads(n):
        pass
    assert limit_here() == 0


def controllers():
    return [info for info in threadpoolctl.threadpool_info() if info["internal_api"] == "wsgemm"]


def test_threadpoolctl_sees_and_limits(operands):
    (info,) = controllers()
    assert info["user_api"] == "blas" and info["version"] == wsgemm.__version__ and info["prefix"] == "libwsgemm."
    before = info["num_threads"]
    assert before == _lib.library.wsgemm_default_num_threads()
    try:
        with threadpoolctl.threadpool_limits(1, user_api="blas"):
            assert controllers()[0]["num_threads"] == 1
            assert wsgemm.explain(*operands)["threads"] == "1"
        assert controllers()[0]["num_threads"] == before
    finally:
        wsgemm.default_handle.threads = 0


def test_threadpoolctl_leaves_what_was_set(operands):
    threads = []
    for before in (0, 1, 0, _lib.library.wsgemm_default_num_threads()):
        wsgemm.default_handle.threads = before
        try:
            with threadpoolctl.threadpool_limits(1):
                threads.append(wsgemm.default_handle.threads)
                with threadpoolctl.threadpool_limits(3, user_api="blas"):
                    threads.append(wsgemm.default_handle.threads)
                threads.append(wsgemm.default_handle.threads)
            threads.append(wsgemm.default_handle.threads)
            found = threadpoolctl.threadpool_info()
            with threadpoolctl.threadpool_limits(1), threadpoolctl.threadpool_limits(found):
                threads.append(wsgemm.default_handle.threads)
        finally:
            wsgemm.default_handle.threads = 0
        assert threads == [1, 3, 1, before, before]
        threads.clear()
    assert json.dumps(controllers()[0]["num_threads"]) == str(_lib.library.wsgemm_default_num_threads())


# ---- Information ---------------------------------------------------------------------------------------------------------


def test_config_and_machine():
    assert wsgemm.config()["version"] == wsgemm.__version__
    assert re.fullmatch(r"\d+\.\d+\.\d+", wsgemm.__version__)
    assert int(re.match(r"\d+", wsgemm.machine()["threads"]).group()) == _lib.library.wsgemm_default_num_threads()


def test_explain_names_the_problem():
    told = wsgemm.explain(np.ones((30, 20), "complex64"), np.ones((20, 10), "complex64"))
    assert told["kernel"].startswith("cgemm_") and told["calls"] == "1" and told["copies"] == ""
    assert wsgemm.explain(np.ones((0, 20)), np.ones((20, 10))) == {"calls": "0", "copies": ""}


def test_explain_does_not_run():
    out = np.full((3, 3), 7.0)
    wsgemm.explain(np.ones((3, 3)), np.ones((3, 3)), out, beta=1)
    assert (out == 7).all()


def test_long_texts_come_whole():
    # Longer than the first guess at its length: another thread may change a setting between two calls.
    lengths = []

    def grows(buffer, n_bytes):
        text = b"key: " + b"x" * (10 * len(lengths))
        lengths.append(n_bytes)
        if buffer is not None:
            buffer.raw = (text + b"\0")[:n_bytes].ljust(len(buffer), b"\0")
        return len(text) if len(lengths) < 4 else 25

    assert _lib.text(grows)["key"].strip("x") == ""
    assert len(lengths) >= 3


def test_fallback_count():
    handle = wsgemm.Handle()
    assert handle.fallback_count() == 0 and handle.fallback_count(device=3) == 0  # no GPU has had a product
    with pytest.raises(wsgemm.WsgemmError, match="device is -1"):
        handle.fallback_count(-1)


def test_math_by_name():
    handle = wsgemm.Handle(math="tf32")
    assert handle.math == "tf32"
    handle.math = "pedantic"
    assert handle.math == "pedantic"
    with pytest.raises(ValueError, match="tf32"):
        handle.math = "bf16"
