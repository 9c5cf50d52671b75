"""The examples run, with little work, and say what they gain. Those of libraries that are not installed are skipped."""

import importlib.util
import os
import pathlib
import subprocess
import sys

import pytest
import wsgemm
from wsgemm import _lib

FOLDER = pathlib.Path(__file__).parents[1] / "examples"
EXAMPLES = {"training_step": ("torch", "--steps", "1"), "linear_layer": ("torch",), "expert_layer": ("torch",), "batched_products": (None,), "numpy_products": (None,),
            "jax_solver": ("jax",)}  # fmt: skip


def test_all_are_run():
    assert {path.stem for path in FOLDER.glob("*.py")} == set(EXAMPLES)


@pytest.mark.parametrize("name", EXAMPLES)
def test_example(name):
    library, *arguments = EXAMPLES[name]
    if library is not None and importlib.util.find_spec(library) is None:
        pytest.skip(f"no {library}")
    if library == "jax" and not (pathlib.Path(_lib.library._name).resolve().parent / "libwsgemm_xla.so").exists():
        pytest.skip("no libwsgemm_xla.so beside the library")
    path = [str(pathlib.Path(wsgemm.__path__[0]).parent), *filter(None, [os.environ.get("PYTHONPATH")])]
    done = subprocess.run(
        [sys.executable, str(FOLDER / f"{name}.py"), *arguments],
        capture_output=True, text=True, timeout=300, env={**os.environ, "PYTHONPATH": os.pathsep.join(path)},
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert "times as fast" in done.stdout
