"""Calls the command `wsgemm` as a user's shell does, and states what every failure must look like."""

import os
import shlex
import subprocess

import numpy as np

COMMAND = shlex.split(os.environ["WSGEMM_TEST_COMMAND"])
WRONG_GEMM = os.environ.get("WSGEMM_TEST_WRONG_GEMM")
FAKE_PEERS = os.environ.get("WSGEMM_TEST_FAKE_PEERS", "").split(",")
BLAS = os.environ.get("WSGEMM_TEST_BLAS")
FAKE_CUDA = os.environ.get("WSGEMM_TEST_FAKE_CUDA_LIBRARY")

TYPES = ["f4", "f8", "c8", "c16"]
ORDERS = ["C", "F"]


def clean_environment(**more):
    """This process's environment without what would steer wsgemm, also the user's tuning file; `more` is added."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith("WSGEMM_")}
    return {**kept, "XDG_CACHE_HOME": "/nonexistent", **more}


def run(*arguments, cwd=None, env=None, **options):
    words = COMMAND + [str(a) for a in arguments]
    return subprocess.run(
        words, cwd=cwd, env=env or clean_environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options
    )


def check(*arguments, **options):
    """Runs what must succeed in silence on stderr; returns its stdout."""
    result = run(*arguments, **options)
    assert (result.returncode, result.stderr) == (0, "")
    return result.stdout


def refuse(code, *words, arguments, cwd, **options):
    """Runs what must fail with this exit code and one line on stderr that holds all the words, and leave the folder as it was."""
    before = contents(cwd)
    result = run(*arguments, cwd=cwd, **options)
    assert result.returncode == code, result
    assert result.stdout == ""
    assert result.stderr.startswith("wsgemm: ")
    assert result.stderr.endswith("\n") and result.stderr.count("\n") == 1, result.stderr
    for word in words:
        assert word in result.stderr
    assert contents(cwd) == before


def contents(folder):
    """Name and bytes of each regular file in a folder, None for what is no regular file or cannot be read."""
    found = {}
    for entry in os.scandir(folder):
        found[entry.name] = None
        if entry.is_file(follow_symlinks=False) and os.access(entry.path, os.R_OK):
            with open(entry.path, "rb") as file:
                found[entry.name] = file.read()
    return found


def integers(rng, shape, dtype):
    """Small integers: sums of their products are exact in every type and order."""
    dtype = np.dtype(dtype)
    values = rng.integers(-8, 9, shape).astype(dtype)
    if dtype.kind == "c":
        values += 1j * rng.integers(-8, 9, shape)
    return values


def save(path, array, order="C", byte_order="<", version=None):
    """Writes `array` with np.save's own code, in the given storage order and byte order."""
    array = np.require(array, array.dtype.newbyteorder(byte_order), [order])
    with open(path, "wb") as file:
        np.lib.format.write_array(file, array, version=version)


def load(path):
    return np.load(path, allow_pickle=False)
