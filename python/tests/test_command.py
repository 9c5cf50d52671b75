"""The command `wsgemm` that the wheel brings: as `python -m wsgemm`, and as the script that pip makes of its entry point."""

import os
import pathlib
import shutil
import subprocess
import sys
import sysconfig

import numpy as np
import pytest
import wsgemm
import wsgemm.__main__

HAS_PROGRAM = any(os.access(os.path.join(folder, "bin", "wsgemm"), os.X_OK) for folder in wsgemm.__path__)
needs_program = pytest.mark.skipif(not HAS_PROGRAM, reason="this package was not installed by pip")
SCRIPT = pathlib.Path(sysconfig.get_path("scripts")) / "wsgemm"


def ways():
    return [[sys.executable, "-m", "wsgemm"]] + [[SCRIPT]] * SCRIPT.exists()


@needs_program
def test_the_command(tmp_path):
    a = np.arange(12.0).reshape(3, 4)
    np.save(tmp_path / "A.npy", a)
    for way in ways():
        done = subprocess.run([*way, "--version"], capture_output=True, text=True, cwd=tmp_path)
        assert (done.returncode, done.stdout, done.stderr) == (0, f"wsgemm {wsgemm.__version__}\n", "")
        words = ["gemm", "A.npy", "A.npy", "--transb", "t", "-o", "C.npy", "--verify"]
        assert subprocess.run([*way, *words], capture_output=True, cwd=tmp_path).returncode == 0
        np.testing.assert_array_equal(np.load(tmp_path / "C.npy"), a @ a.T)
        os.remove(tmp_path / "C.npy")
        assert subprocess.run([*way, "nonsense"], capture_output=True).returncode == 2  # the command's own exit code


@needs_program
def test_numpy_s_products_by_preload(tmp_path):
    """`wsgemm preload blas` names a library of this package, which NumPy then multiplies with."""
    asked = subprocess.run([*ways()[0], "preload", "blas"], capture_output=True, text=True, cwd=tmp_path, check=True)
    library = pathlib.Path(asked.stdout.rstrip("\n"))
    assert library.parent in map(pathlib.Path, map(os.path.realpath, wsgemm.__path__))
    program = "import numpy as np, wsgemm; a = np.ones((40, 30)); assert ((a @ a.T) == 30).all(); assert (wsgemm.matmul(a, a.T) == 30).all()"
    environment = {**os.environ, "LD_PRELOAD": str(library), "WSGEMM_BLAS_LOG": "1"}
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, cwd=tmp_path, env=environment, check=False)
    assert done.returncode == 0, done.stderr
    assert "wsgemm_blas" in done.stderr and ": dsyrk: 1 calls, 2.46e+04 multiply-adds" in done.stderr, done.stderr


@needs_program
def test_pictures_are_drawn_by_this_python(tmp_path):
    environment = {name: value for name, value in os.environ.items() if name != "WSGEMM_PYTHON"}
    words = [sys.executable, "-m", "wsgemm", "bench", "--plot", "out"]
    # Another python3 stands first in PATH, and says nothing.
    (tmp_path / "python3").symlink_to(shutil.which("true"))
    environment["PATH"] = f"{tmp_path}:{environment['PATH']}"
    done = subprocess.run(words, capture_output=True, text=True, cwd=tmp_path, env=environment)
    assert done.returncode == 1 and "no folder bench/results" in done.stderr, done


def test_a_package_without_the_command(monkeypatch, tmp_path):
    monkeypatch.setattr(wsgemm, "__path__", [str(tmp_path)])
    with pytest.raises(SystemExit, match="the command is not in this package"):
        wsgemm.__main__.main()
