"""The library inside a process: the GIL, other threads, fork, and how it is found."""

import ctypes
import os
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
import wsgemm
from wsgemm import _lib
from wsgemm_reference import random_array


def product_of(n, seed=51):
    rng = np.random.default_rng(seed)
    return random_array(rng, (n, n), "float32"), random_array(rng, (n, n), "float32")


def progress_during(call, n_tries):
    """How often another Python thread got on while `call` ran in this one, over up to n_tries calls.

    With this switch interval a thread keeps the GIL until it gives it away; so the other thread moves only where this one
    leaves it: in the two sleeps outside, and during the call if that releases the GIL.
    """
    steps = [0]
    is_done = threading.Event()

    def count():
        while not is_done.is_set():
            steps[0] += 1
            time.sleep(0)

    before_interval = sys.getswitchinterval()
    other = threading.Thread(target=count)
    n_moved = 0
    try:
        sys.setswitchinterval(1000)
        other.start()
        for _ in range(n_tries):
            time.sleep(0.001)
            before = steps[0]
            call()
            n_moved += steps[0] - before
            if n_moved:
                break
    finally:
        sys.setswitchinterval(before_interval)
        is_done.set()
        other.join()
    return n_moved


def test_gil_is_released():
    a, b = product_of(768)
    out = np.empty_like(a)
    handle = wsgemm.Handle(threads=1)
    assert progress_during(lambda: wsgemm.matmul(a, b, out=out, handle=handle), 500) > 0


def test_gil_test_can_fail():
    # The same product through ctypes.PyDLL, which keeps the GIL: no progress, however often it is tried.
    a, b = product_of(768)
    out = np.empty_like(a)
    n = len(a)
    sgemm = ctypes.PyDLL(_lib.library._name).wsgemm_sgemm
    sgemm.restype, sgemm.argtypes = _lib.SIGNATURES["sgemm"]
    pointers = [x.ctypes.data for x in (a, b, out)]

    def call():
        op = _lib.Op.NO_TRANS
        assert sgemm(None, _lib.Layout.ROW_MAJOR, op, op, n, n, n, 1, pointers[0], n, pointers[1], n, 0, pointers[2], n) == 0

    assert progress_during(call, 20) == 0
    np.testing.assert_array_equal(out, wsgemm.matmul(a, b))


def test_concurrent_callers_get_the_serial_bits():
    pairs = [product_of(150 + 31 * i, seed=i) for i in range(4)]
    expected = [wsgemm.matmul(*pair).tobytes() for pair in pairs]
    wrong = []

    def work(start):
        for i in range(start, start + 40):
            pair = pairs[i % 4]
            if wsgemm.matmul(*pair).tobytes() != expected[i % 4]:
                wrong.append(i)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


@pytest.mark.filterwarnings("ignore:This process.*is multi-threaded:DeprecationWarning")
@pytest.mark.filterwarnings("ignore:os.fork.. was called:RuntimeWarning")  # JAX, after its own tests
def test_parent_and_child_go_on_after_fork():
    a, b = product_of(600)
    expected = wsgemm.matmul(a, b)  # the pool's threads are running now
    child = os.fork()
    if child == 0:
        code = 1
        try:
            handle = wsgemm.Handle(threads=2)
            is_right = all((wsgemm.matmul(a, b, handle=h) == expected).all() for h in (None, handle, None))
            code = 0 if is_right else 2
        finally:
            os._exit(code)
    for _ in range(3):
        np.testing.assert_array_equal(wsgemm.matmul(a, b), expected)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 0


# ---- Loading -------------------------------------------------------------------------------------------------------------


def import_with(code="", **environment):
    return subprocess.run(
        [sys.executable, "-c", f"import wsgemm\n{code}"],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
    )


def test_named_library_is_used():
    path = _lib.library._name
    result = import_with("print(wsgemm._lib.library._name)", WSGEMM_LIBRARY=path)
    assert result.returncode == 0 and result.stdout.strip() == path


def test_named_library_that_is_not_there():
    result = import_with(WSGEMM_LIBRARY="/nowhere/libwsgemm.so")
    assert result.returncode != 0
    assert "ImportError: WSGEMM_LIBRARY names '/nowhere/libwsgemm.so'" in result.stderr


def test_library_of_something_else():
    result = import_with(WSGEMM_LIBRARY="libc.so.6")
    assert result.returncode != 0 and "ImportError: libc.so.6 has no wsgemm_" in result.stderr


def test_threadpoolctl_is_not_needed():
    code = "import sys; assert 'wsgemm._threadpoolctl' not in sys.modules; print(wsgemm.__version__)"
    blocked = f"import sys; sys.modules['threadpoolctl'] = None\nimport wsgemm\n{code}"
    result = subprocess.run([sys.executable, "-c", blocked], capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    assert result.stdout.strip() == wsgemm.__version__


def test_import_starts_no_thread():
    # NumPy's own BLAS starts some, so only what comes on top of NumPy counts.
    code = (
        "import numpy, os; n = len(os.listdir('/proc/self/task')); import wsgemm; print(len(os.listdir('/proc/self/task')) - n)"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "0"
