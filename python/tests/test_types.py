"""What calls give for a type checker, and which calls it refuses."""

import subprocess
import sys
from pathlib import Path

import pytest
import wsgemm

pytest.importorskip("mypy")

# Each line that must be refused says so; mypy reports those that are not (--warn-unused-ignores).
PROGRAM = '''
from typing import assert_type

import numpy as np
from numpy.typing import NDArray

import wsgemm

class Tensor:
    """Of a library on a GPU."""
    def __dlpack__(self) -> object: ...

singles: NDArray[np.float32] = np.ones((3, 4), np.float32)
doubles: NDArray[np.float64] = np.ones((4, 5))
tensor = Tensor()

assert_type(wsgemm.matmul(singles, singles), NDArray[np.float32])
assert_type(wsgemm.matmul(doubles, doubles, alpha=2, activation="relu"), NDArray[np.float64])
assert_type(wsgemm.matmul(tensor, tensor), Tensor)
assert_type(wsgemm.matmul([[1.0]], [[2.0]]), NDArray[np.generic])
assert_type(wsgemm.matmul(singles, singles, dtype="float64"), NDArray[np.generic])
assert_type(wsgemm.gemm(1.0, singles, singles), NDArray[np.float32])
assert_type(wsgemm.gemm(1j, tensor, tensor, trans_a=1), Tensor)
assert_type(wsgemm.syrk(1.0, doubles, trans="T"), NDArray[np.float64])
assert_type(wsgemm.explain(singles, singles), dict[str, str])
with wsgemm.num_threads(2):
    pass
handle = wsgemm.Handle()
assert_type(wsgemm.matmul(tensor, tensor, handle=handle), Tensor)

wsgemm.matmul(singles)  # type: ignore[call-overload]
wsgemm.matmul(singles, singles, beta="1")  # type: ignore[call-overload]
wsgemm.matmul(singles, singles, activation="tanh")  # type: ignore[call-overload]
wsgemm.matmul(singles, object())  # type: ignore[call-overload]
wsgemm.syrk(1.0, doubles, trans="X")  # type: ignore[call-overload]
wsgemm.no_such_name  # type: ignore[attr-defined]
'''


@pytest.mark.skipif(sys.version_info < (3, 11), reason="typing.assert_type came with Python 3.11")
def test_calls_and_results(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    command = [sys.executable, "-m", "mypy", "--strict", "--warn-unused-ignores", "--cache-dir", str(tmp_path / "cache"), str(program)]
    folder = Path(wsgemm.__file__).parent.parent
    environment = {"PATH": "/usr/bin:/bin"} | ({} if folder.name == "site-packages" else {"MYPYPATH": str(folder)})
    done = subprocess.run(command, capture_output=True, text=True, env=environment, cwd=tmp_path, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
