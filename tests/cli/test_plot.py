"""wsgemm bench --plot: which Python it runs, with what, how that fails. The pictures themselves: python/tests/test_plot.py."""

import json
import os
import pathlib
import subprocess
import sys

import pytest
from command import COMMAND, clean_environment, contents, refuse, run

PACKAGE = pathlib.Path(__file__).resolve().parents[2] / "python"
LIBRARY = os.environ.get("WSGEMM_TEST_LIBRARY")


def script(path, text):
    path.write_text("#!/bin/sh\n" + text + "\n")
    path.chmod(0o755)
    return path


def with_package(**more):
    """An environment in which this Python has the package of the sources, with the library that is tested."""
    env = clean_environment(WSGEMM_PYTHON=sys.executable, PYTHONPATH=str(PACKAGE), PYTHONDONTWRITEBYTECODE="1", **more)
    return {**env, "WSGEMM_LIBRARY": LIBRARY} if LIBRARY else env


def can(*modules):
    program = "import " + ", ".join(modules)
    return subprocess.run([sys.executable, "-c", program], env=with_package(), capture_output=True).returncode == 0


needs_package = pytest.mark.skipif(not can("wsgemm.plot"), reason="this Python cannot load the library that is tested")
needs_matplotlib = pytest.mark.skipif(not can("wsgemm.plot", "matplotlib"), reason="needs matplotlib, and the library in Python")


def write_results(folder):
    (folder / "a-cpu").mkdir(parents=True)
    record = {"suite": "steal", "routine": "sgemm", "case": "n=4096", "policy": "steal", "threads": 2, "device": "A CPU, 2 cores",
              "peer": "wsgemm steal", "busy_share": 0.45, "over_ideal": 1.01, "commit": "c0ffee1", "date": "2026-01-02T03:04:05Z"}
    (folder / "a-cpu" / "steal.jsonl").write_text(json.dumps(record) + "\n")


def test_python_is_run_with_the_folders(tmp_path):
    python = script(tmp_path / "python", 'test "$1" = -c && shift 2 && printf "%s\\n" "$@"')
    env = clean_environment(WSGEMM_PYTHON=str(python))
    for arguments, results in [([], "bench/results"), (["--results", "some where"], "some where"), (["--results", "-x"], "-x")]:
        result = run("bench", "--plot", "-out put", *arguments, cwd=tmp_path, env=env)
        assert (result.returncode, result.stderr) == (0, "")
        assert result.stdout.splitlines() == [f"--results={results}", "--out=-out put"]


def test_python3_is_the_default(tmp_path):
    script(tmp_path / "python3", "echo here")
    env = clean_environment(PATH=f"{tmp_path}:{os.environ['PATH']}", WSGEMM_PYTHON="")
    assert run("bench", "--plot", "out", cwd=tmp_path, env=env).stdout == "here\n"


def test_no_such_python(tmp_path):
    env = clean_environment(WSGEMM_PYTHON="/nowhere/python")
    words = ["cannot run /nowhere/python", "Python with wsgemm and matplotlib", "WSGEMM_PYTHON"]
    refuse(1, *words, arguments=["bench", "--plot", "out"], cwd=tmp_path, env=env)


@pytest.mark.skipif(not os.path.isabs(COMMAND[0]), reason="the command itself is found by PATH")
def test_no_python3(tmp_path):
    env = clean_environment(PATH=str(tmp_path))
    refuse(1, "cannot run python3", "Python with wsgemm and matplotlib", arguments=["bench", "--plot", "out"], cwd=tmp_path, env=env)


def test_python_that_fails(tmp_path):
    for text, words in [("exit 7", ""), ("kill -9 $$", "ended by signal 9")]:
        env = clean_environment(WSGEMM_PYTHON=str(script(tmp_path / "python", text)))
        result = run("bench", "--plot", "out", cwd=tmp_path, env=env)
        assert (result.returncode, result.stdout) == (1, "") and words in result.stderr


def test_python_without_the_package(tmp_path):
    python = script(tmp_path / "python", f'exec "{sys.executable}" -I -S "$@"')
    refuse(1, "cannot import wsgemm.plot", " -m pip install . matplotlib;", "WSGEMM_PYTHON", arguments=["bench", "--plot", "out"],
           cwd=tmp_path, env=clean_environment(WSGEMM_PYTHON=str(python)))


@needs_package
def test_python_without_matplotlib(tmp_path):
    write_results(tmp_path / "results")
    (tmp_path / "hidden").mkdir()
    (tmp_path / "hidden" / "matplotlib.py").write_text('raise ImportError("hidden")\n')
    env = with_package()
    env["PYTHONPATH"] = f"{tmp_path / 'hidden'}:{env['PYTHONPATH']}"
    refuse(1, "matplotlib (hidden)", " -m pip install matplotlib ", arguments=["bench", "--plot", "out", "--results", "results"],
           cwd=tmp_path, env=env)


@needs_matplotlib
def test_no_results(tmp_path):
    (tmp_path / "empty").mkdir()
    for arguments, words in [([], "no folder bench/results"), (["--results", "empty"], "empty holds no results")]:
        refuse(1, words, arguments=["bench", "--plot", "out", *arguments], cwd=tmp_path, env=with_package())


@needs_matplotlib
def test_pictures_of_what_is_there(tmp_path):
    write_results(tmp_path / "bench" / "results")
    result = run("bench", "--plot", "out", cwd=tmp_path, env=with_package())
    assert result.returncode == 0
    assert result.stdout.splitlines() == ["out/a-cpu/steal.png", "out/a-cpu/steal.svg"]
    assert {name: data[:4] for name, data in contents(tmp_path / "out" / "a-cpu").items()}["steal.png"] == b"\x89PNG"
    assert "a-cpu: no picture roofline" in result.stderr


@needs_matplotlib
def test_pictures_of_what_was_just_measured(tmp_path):
    quick = ["--samples", "1", "--min-time", "0.001", "--budget", "0.001", "--commit", "c0ffee1"]
    folders = ["--results", "results", "--plot", "out"]
    result = run("bench", "--suite", "small", "--no-peers", *quick, *folders, cwd=tmp_path, env=with_package())
    assert result.returncode == 0, result.stderr
    (device,) = os.listdir(tmp_path / "results")
    assert f"out/{device}/roofline.png" in result.stdout
    assert os.listdir(tmp_path / "results" / device) == ["small.jsonl"]
