"""`wsgemm autotune`, and `wsgemm tune`, which shows, carries and clears what it has found.

Every test has a tuning file of its own, in a temporary folder.
"""

import fcntl
import json
import os
import pty
import re
import resource
import select
import signal
import struct
import subprocess
import termios
import time
import zlib

import pytest
from command import COMMAND, FAKE_CUDA, check, clean_environment, refuse, run

SHAPE = "200x200x200"
LONG = "1300x1300x1300"  # a search of seconds, if the budget allows
QUICK = ["--budget", "50"]


@pytest.fixture
def env(tmp_path):
    return clean_environment(WSGEMM_TUNE=str(tmp_path / "tuning"))


def lines_of(path):
    """The lines of a tuning file, each as a dict of its words."""
    text = path.read_text()
    assert text.startswith("# wsgemm tuning 1\n")
    return [dict(re.findall(r'(\w+)=("(?:[^"\\]|\\.)*"|\S+)', line)) for line in text.splitlines()[1:]]


def autotune(env, *arguments, code=0):
    """Runs a search; returns its table and what it told meanwhile."""
    result = run("autotune", *arguments, env=env)
    assert result.returncode == code, result
    return result.stdout, result.stderr


# ---- The command line ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["autotune", "tune"])
def test_help(name):
    text = check("help", name)
    assert text == check(name, "--help") == check(name, "-h")
    assert text.startswith(f"Usage: wsgemm {name}")
    assert max(map(len, text.splitlines())) <= 100
    assert re.search(rf"^  {name} ", check("--help"), re.MULTILINE)


@pytest.mark.parametrize(
    ("words", "arguments"),
    [
        (["'--fast'"], ["--fast"]),
        (["unexpected", "'now'"], ["now"]),
        (["'--shapes' needs a value"], ["--shapes"]),
        (["'9x'"], ["--shapes", "9x"]),
        (["'0'"], ["--shapes", "0"]),
        (["''"], ["--shapes", "9,,8"]),
        (["'2x3'"], ["--shapes", "2x3"]),
        (["'2x3x4x5'"], ["--shapes", "2x3x4x5"]),
        (["1048576", "'1048577'"], ["--shapes", "1048577"]),
        (["'squares'", "square, small, odd, skinny"], ["--shapes", "squares"]),
        (["random:COUNT"], ["--shapes", "random:"]),
        (["random:COUNT"], ["--shapes", "random:3:4:5"]),
        (["random:COUNT"], ["--shapes", "random:5000"]),
        (["--routine", "'q'"], ["--routine", "q"]),
        (["--routine", "'sgem'"], ["--routine", "sgem"]),
        (["--routine", "''"], ["--routine", "s,"]),
        (["--routine", "'hsymm'"], ["--routine", "hsymm"]),
        (["--routine", "'dherk'"], ["--routine", "dherk"]),
        (["--side", "'up'"], ["--side", "up"]),
        (["--uplo", "'left'"], ["--uplo", "left"]),
        (["--ops", "'n'"], ["--ops", "N"]),
        (["--ops", "'xn'"], ["--ops", "NN,XN"]),
        (["--device", "'gpu'"], ["--device", "gpu"]),
        (["--device", "'-1'"], ["--device", "-1"]),
        (["--math", "'fp8'"], ["--math", "fp8"]),
        (["--beta", "'one'"], ["--beta", "one"]),
        (["--beta", "'1e39'"], ["--beta", "1e39"]),
        (["--beta", "'nan'"], ["--beta", "nan"]),
        (["--budget", "'-1'"], ["--budget", "-1"]),
        (["--budget", "'nan'"], ["--budget", "nan"]),
        (["--threads", "'0'"], ["--threads", "0"]),
        (["--seed", "'x'"], ["--seed", "x"]),
        (["--out"], ["--out", ""]),
        (["--dry-run", "--log"], ["--dry-run", "--log", "x.jsonl"]),
        (["--dry-run", "--budget"], ["--dry-run", "--budget", "5"]),
        (["--dry-run", "--exhaustive"], ["--dry-run", "--exhaustive"]),
    ],
)
def test_senseless_autotune(tmp_path, env, words, arguments):
    refuse(2, *words, arguments=["autotune", *arguments], cwd=tmp_path, env=env)


@pytest.mark.parametrize(
    ("words", "arguments"),
    [
        (["show, export, import or clear"], []),
        (["'list'"], ["list"]),
        (["'more'"], ["show", "more"]),
        (["one file"], ["import"]),
        (["one file"], ["import", "a", "b"]),
        (["say --yes"], ["clear"]),
        (["clear takes no --table"], ["clear", "--yes", "--table"]),
        (["export takes no --json"], ["export", "--json"]),
        (["show takes no --yes"], ["show", "--yes"]),
        (["show takes no --output"], ["show", "-o", "x"]),
        (["exclude"], ["show", "--table", "--file", "x"]),
        (["--file"], ["show", "--file", ""]),
        (["'--files'"], ["show", "--files", "x"]),
    ],
)
def test_senseless_tune(tmp_path, env, words, arguments):
    refuse(2, *words, arguments=["tune", *arguments], cwd=tmp_path, env=env)


@pytest.mark.parametrize(
    ("text", "words"),
    [("10 20\n", ["line 1"]), ("# sizes\n\n10x20x30\n10 20 30 40\n", ["line 4"]), ("10 -2 3\n", ["line 1"]), ("#\n", ["no shape"])],
)
def test_files_that_hold_no_shapes(tmp_path, env, text, words):
    (tmp_path / "shapes.txt").write_text(text)
    refuse(1, "shapes.txt", *words, arguments=["autotune", "--shapes", "shapes.txt"], cwd=tmp_path, env=env)
    refuse(1, "./none.txt", arguments=["autotune", "--shapes", "./none.txt"], cwd=tmp_path, env=env)


def test_a_gpu_that_is_not_there(tmp_path):
    env = clean_environment(WSGEMM_TUNE=str(tmp_path / "tuning"), CUDA_VISIBLE_DEVICES="-1")
    refuse(1, "--device 0: ", arguments=["autotune", "--shapes", SHAPE, "--device", "0"], cwd=tmp_path, env=env)


def test_no_file_to_keep_anything_in(tmp_path):
    refuse(1, "WSGEMM_TUNE=off", "--out", arguments=["autotune"], cwd=tmp_path, env=clean_environment(WSGEMM_TUNE="off"))
    env = clean_environment(WSGEMM_TUNE="off")
    for action in (["show"], ["export"], ["import", "-"], ["clear", "--yes"]):
        refuse(1, "WSGEMM_TUNE=off", arguments=["tune", *action], cwd=tmp_path, env=env, input="")


# ---- A search ------------------------------------------------------------------------------------------------------------


def test_a_search_is_kept_and_told(tmp_path, env):
    stdout, stderr = autotune(env, "--shapes", f"{SHAPE},300x100x150", "--routine", "s,dgemm", "--ops", "nn,TN", *QUICK)
    kept = lines_of(tmp_path / "tuning")
    assert len(kept) == 8
    assert {(x["type"], x["ops"]) for x in kept} == {(t, o) for t in "sd" for o in ("nn", "tn")}
    assert {(x["m"], x["n"], x["k"]) for x in kept} == {("200", "200", "200"), ("300", "100", "150")}
    # Not a terminal: a plain line for each shape, no control characters.
    assert [line.split(" ")[0] for line in stderr.splitlines()] == [f"{i}/8" for i in range(1, 9)]
    assert "\r" not in stderr and "\033" not in stderr
    rows = re.findall(r"^([sd]gemm [nt]n \d+x\d+x\d+) +([\d.]+) +([\d.]+) +([\d.]+)  \S", stdout, re.MULTILINE)
    assert len(rows) == 8
    product = 1.0
    for _, before, after, gain in rows:
        assert float(after) <= float(before) and float(gain) >= 1
        assert float(gain) == pytest.approx(float(before) / float(after), rel=0.02)
        product *= float(gain)
    mean = re.search(r"^geometric mean +([\d.]+)$", stdout, re.MULTILINE)
    assert float(mean[1]) == pytest.approx(product ** (1 / 8), abs=0.002)
    assert f"8 of 8 shapes kept in {tmp_path / 'tuning'}" in stdout


def test_what_is_kept_is_in_force(tmp_path, env):
    import numpy as np

    autotune(env, "--shapes", SHAPE, *QUICK)
    np.save(tmp_path / "a.npy", np.ones((200, 200), "f4"))
    assert "tuning file" in check("gemm", "a.npy", "a.npy", "--explain", cwd=tmp_path, env=env)


def test_shapes_of_every_form(tmp_path, env):
    (tmp_path / "shapes.txt").write_text("# m n k\n\n 100 120 140 # a comment\n130x90x110\r\n")
    names = []
    for shapes in ["shapes.txt,150,100x120x140", "random:3:7", "random:3:7", "random:3:8", "small"]:
        listing = check("autotune", "--dry-run", "--shapes", shapes, cwd=tmp_path, env=env) if shapes != "small" else ""
        names.append(re.findall(r"^sgemm nn (\S+):", listing, re.MULTILINE))
    assert names[0] == ["100x120x140", "130x90x110", "150x150x150"]
    assert len(names[1]) == 3 and names[1] == names[2] != names[3]
    assert all(16 <= int(size) <= 8192 for name in names[1] for size in name.split("x"))


@pytest.mark.parametrize("arguments", [["--dry-run"], ["--budget", "0"]])
def test_dry_run(tmp_path, env, arguments):
    stdout = check("autotune", "--shapes", SHAPE, *arguments, env=env)
    count = int(re.match(rf"sgemm nn {SHAPE}: (\d+) candidates", stdout)[1])
    found = re.findall(r"^ *(\d+) ([* ]) +([\d.]+)  (row=sgemm_\S+ .*)$", stdout, re.MULTILINE)
    assert [int(x[0]) for x in found] == list(range(1, count + 1)) and count > 5
    assert len({x[3] for x in found}) == count
    built_in = [i for i, x in enumerate(found) if x[1] == "*"]
    assert len(built_in) == 1 and float(found[built_in[0]][2]) == 1
    others = [float(x[2]) for i, x in enumerate(found) if i not in built_in]
    assert others == sorted(others)
    assert ("the budget is 0" in stdout) == (arguments[0] == "--budget")
    assert "nothing was measured or written" in stdout
    assert os.listdir(tmp_path) == []


def test_nothing_to_choose(env):
    stdout, stderr = autotune(env, "--shapes", f"8,{SHAPE}", *QUICK)
    assert "1/2 sgemm nn 8x8x8: left out" in stderr and "1 shape left out: there is nothing to choose" in stdout
    _, stderr = autotune(env, "--shapes", "8", code=1)
    assert "nothing to choose" in stderr.splitlines()[-1] or "anything to choose" in stderr.splitlines()[-1]


def test_log_of_the_landscape(tmp_path, env):
    log = tmp_path / "log.jsonl"
    for beta in ("0", "0.5"):
        autotune({**env, "WSGEMM_COMMIT": "c0ffee1"}, "--shapes", SHAPE, "--exhaustive", "--log", log, "--beta", beta)
    records = [json.loads(line) for line in log.read_text().splitlines()]
    half = len(records) // 2
    assert [r.get("beta") for r in records] == [None] * half + [0.5] * half
    candidates = re.findall(r"row=.*", check("autotune", "--shapes", SHAPE, "--dry-run", env=env))
    assert len(records) == 2 * len(candidates)
    for record in records:
        assert (record["suite"], record["routine"], record["case"], record["unit"]) == ("landscape", "sgemm", f"nn {SHAPE}", "us")
        assert record["numerics"] == "default" and record["commit"] == "c0ffee1"
        assert record["ours"] > 0 and record["samples"] >= 1 and record["device"]
        assert re.fullmatch(r"\d+x\d+", record["tile"]) and re.fullmatch(r"\d{4}-\d\d-\d\d", record["date"])
    assert {r["policy"] for r in records if "policy" in r} <= {"steal", "fixed_work", "fixed_blocks"}


def test_resume(tmp_path, env):
    autotune(env, "--shapes", SHAPE, *QUICK)
    before = (tmp_path / "tuning").read_text()
    stdout, stderr = autotune(env, "--shapes", SHAPE, "--resume", *QUICK)
    assert "1 shape left out" in stdout and stderr == ""
    assert (tmp_path / "tuning").read_text() == before
    # What differs is searched: ops, routine, shape, threads; also what lies in another file.
    n_threads = int(json.loads(check("info", "--json", env=env))["machine"]["threads"].split()[0])
    for more in (["--ops", "NT"], ["--routine", "d"], ["--threads", "1"], ["--out", str(tmp_path / "other")]):
        stdout, _ = autotune(env, "--shapes", SHAPE, "--resume", *QUICK, *more)
        assert "left out" not in stdout or "threads" in more[0] and n_threads == 1
    stdout, _ = autotune(env, "--shapes", f"{SHAPE},210", "--resume", *QUICK)
    assert "1 of 1 shape kept" in stdout and "1 shape left out" in stdout


LEVEL3 = {
    # routine: (its case in the table, its line's first word, and what else the line says)
    "dsymm": ("left lower 300x200", "symm", {"ops": "nn", "side": "left", "m": "300", "n": "200", "k": "300"}),
    "zhemm": ("left lower 300x200", "hemm", {"ops": "nn", "side": "left", "m": "300", "n": "200", "k": "300"}),
    "ssyrk": ("lower t 200x100", "syrk", {"ops": "tn", "uplo": "lower", "m": "200", "n": "200", "k": "100"}),
    "cherk": ("lower c 200x100", "herk", {"ops": "tn", "uplo": "lower", "m": "200", "n": "200", "k": "100"}),
    "dsyr2k": ("lower t 200x100", "syrk", {"ops": "tn", "uplo": "lower", "m": "200", "n": "200", "k": "100"}),
    "zgemmtr": ("lower tn 200x100", "syrk", {"ops": "tn", "uplo": "lower", "m": "200", "n": "200", "k": "100"}),
    "dtrmm": ("left lower t 300x200", "trmm", {"ops": "tn", "side": "left", "uplo": "lower", "store": "in_place", "k": "300"}),
    "strsm": ("left lower t 300x200", "trsm", {"ops": "tn", "side": "left", "uplo": "lower", "m": "300", "n": "200", "k": "300"}),
}


def test_level3_is_kept_shown_and_resumed(tmp_path, env):
    words = ["--shapes", "300x200x100", "--ops", "TN", "--routine", ",".join(LEVEL3)]
    stdout, _ = autotune(env, *words, *QUICK)
    kept = (tmp_path / "tuning").read_text().splitlines()[1:]
    facts = lines_of(tmp_path / "tuning")
    assert len(kept) == len(LEVEL3)
    for routine, (case, word, said) in LEVEL3.items():
        assert re.search(rf"^{routine} {case} +[\d.]+ ", stdout, re.MULTILINE), case
        assert any(
            line.startswith(f"{word} device=") and x["type"] == routine[0] and said.items() <= x.items() for line, x in zip(kept, facts)
        ), (routine, kept)
    assert "8 shapes left out" in autotune(env, *words, "--resume", *QUICK)[0]
    for more in (["--uplo", "upper"], ["--side", "right"]):
        stdout, _ = autotune(env, "--shapes", "300x200x100", "--ops", "TN", "--routine", "dtrmm", "--resume", *more, *QUICK)
        assert "left out" not in stdout
    shown = check("tune", "show", env=env)
    assert re.search(r"^  strsm left lower +chain +tn +300x200x300 ", shown, re.MULTILINE)
    assert re.search(r"^  dtrmm right lower .*\(in place\)$", shown, re.MULTILINE)
    told = json.loads(check("tune", "show", "--json", env=env))
    assert {"routine": "strsm", "side": "left", "uplo": "lower", "m": 300, "n": 200, "k": 300}.items() <= next(
        x for x in told if x["routine"] == "strsm"
    ).items()
    exported = check("tune", "export", env=env)
    other = {**env, "WSGEMM_TUNE": str(tmp_path / "other")}
    check("tune", "import", "-", env=other, input=exported)
    assert check("tune", "export", env=other) == exported


def test_level3_leaves_out_what_a_routine_does_not_have():
    # Neither m of rank updates nor k of the others, nor ops of symm, make a second case.
    env = clean_environment(WSGEMM_TUNE="off")
    words = ["--shapes", "200x150x100,300x150x100,200x150x50", "--ops", "NN,NT", "--dry-run", "--routine"]
    for routine, n_cases in (("dsymm", 2), ("dsyrk", 2), ("dgemmtr", 4), ("dtrsm", 2), ("dgemm", 6)):
        text = check("autotune", *words, routine, env=env)
        assert len(re.findall(rf"^{routine} .*: \d+ candidates", text, re.MULTILINE)) == n_cases


needs_fake_cuda = pytest.mark.skipif(not FAKE_CUDA, reason="needs a build with the GPU backend and a shared library")


@pytest.fixture
def on_a_gpu(env):
    """Of a GPU that computes nothing, so that only dry runs find their way through."""
    return {**env, "LD_LIBRARY_PATH": os.path.dirname(FAKE_CUDA), "WSGEMM_TEST_FAKE_CUDA": "hopper"}


@needs_fake_cuda
def test_level3_on_a_gpu_lists_candidates_of_its_largest_product(on_a_gpu):
    words = ["--device", "0", "--shapes", "4096", "--dry-run", "--routine"]
    whole = check("autotune", *words, "ssymm", env=on_a_gpu)
    assert "ssymm left lower 4096x4096: " in whole and "f16x3" in whole  # one diagonal block, by slices
    half = check("autotune", *words, "dtrsm", env=on_a_gpu)
    gemm = check("autotune", "--device", "0", "--shapes", "2048x4096x2048", "--dry-run", "--routine", "d", "--beta", "1", env=on_a_gpu)
    assert half.splitlines()[1:] == gemm.splitlines()[1:]
    assert "left out" in check("autotune", *words, "dtrsm", "--shapes", "4096,32", env=on_a_gpu)


@needs_fake_cuda
def test_a_beta_is_part_of_the_product(on_a_gpu):
    # Another store, which the model knows of. The CPU and the other types have one for all.
    words = ["--device", "0", "--shapes", "1024", "--dry-run", "--routine"]
    plain, full = (check("autotune", *words, "h", "--beta", beta, env=on_a_gpu) for beta in ("0", "1"))
    assert "hgemm nn 1024x1024x1024: " in plain and "hgemm nn 1024x1024x1024 beta=1: " in full
    assert plain.splitlines()[1:] != full.splitlines()[1:]
    plain, full = (check("autotune", *words, "d", "--beta", beta, env=on_a_gpu) for beta in ("0", "-0.5"))
    assert "beta=-0.5: " in full and plain.splitlines()[1:] == full.splitlines()[1:]


@needs_fake_cuda
@pytest.mark.parametrize("numerics", ["wgmma", "wgmma_k2"])
def test_resume_beside_products_with_a_beta(tmp_path, on_a_gpu, numerics):
    version = json.loads(check("info", "--json"))["version"]
    line = (
        f'gemm device="Fake GPU" arch=sm_90 units=40 version={version} type=h type_c=h numerics={numerics} ops=nn access=vv{{}}'
        " m=1024 n=1024 k=1024 batch=1 row=hgemm_wgmma_256x64x64_c2_x2 policy=steal order=1 before_us=9.000 after_us=8.000"
    )
    for store, left_out in (("", ["0"]), (" store=full", ["1", "-2"])):
        text = line.format(store)
        (tmp_path / "tuning").write_text(f"# wsgemm tuning 1\n{text} crc={zlib.crc32(text.encode()):08x}\n")
        assert ("(beta or epilogue)" in check("tune", "show", env=on_a_gpu)) == bool(store)
        for beta in ("0", "1", "-2"):
            words = ["--device", "0", "--shapes", "1024", "--routine", "h", "--beta", beta, "--dry-run", "--resume"]
            assert ("1 shape left out" in check("autotune", *words, env=on_a_gpu)) == (beta in left_out)
    words[words.index("--beta") + 1] = "1e-50"  # a float's 0
    assert "1 shape left out" not in check("autotune", *words, env=on_a_gpu)


@needs_fake_cuda
@pytest.mark.parametrize("numerics, left_out", [("wgmma", ["default"]), ("chain", ["default"]), ("fma16", ["pedantic"]),
                                                ("fma16_parts", ["pedantic"]), ("vector", ["default", "pedantic"])])
def test_resume_of_half_precision_by_class(tmp_path, on_a_gpu, numerics, left_out):
    # Lines of tensor cores and of multiply-adds are apart.
    version = json.loads(check("info", "--json"))["version"]
    text = (
        f'gemm device="Fake GPU" arch=sm_90 units=40 version={version} type=h type_c=h numerics={numerics} ops=nn access=vv'
        " m=1024 n=1024 k=1024 batch=1 row=hgemm_fma16_64x64x32_c1 policy=steal order=1 before_us=9.000 after_us=8.000"
    )
    (tmp_path / "tuning").write_text(f"# wsgemm tuning 1\n{text} crc={zlib.crc32(text.encode()):08x}\n")
    assert numerics in check("tune", "show", env=on_a_gpu)
    for math in ("default", "pedantic"):
        words = ["--device", "0", "--shapes", "1024", "--routine", "h", "--math", math, "--dry-run", "--resume"]
        assert ("1 shape left out" in check("autotune", *words, env=on_a_gpu)) == (math in left_out)


def test_beta_on_the_cpu(tmp_path, env):
    # One line for products with a beta and those without.
    _, stderr = autotune(env, "--shapes", SHAPE, "--beta", "0.5", *QUICK)
    assert f"1/1 sgemm nn {SHAPE} beta=0.5: " in stderr
    for beta in ("0", "0.5"):
        stdout, _ = autotune(env, "--shapes", SHAPE, "--beta", beta, "--resume", *QUICK)
        assert "1 shape left out" in stdout and len(lines_of(tmp_path / "tuning")) == 1


@pytest.mark.parametrize("path", ["", "file/tuning"])
def test_out_that_cannot_be_written(tmp_path, env, path):
    (tmp_path / "file").write_text("")
    out = tmp_path / path
    refuse(1, str(out), arguments=["autotune", "--shapes", SHAPE, "--out", out], cwd=tmp_path, env=env)


def test_out_that_is_no_tuning_file(tmp_path, env):
    out = tmp_path / "notes.txt"
    out.write_text("Dear diary\n")
    _, stderr = autotune(env, "--shapes", f"{SHAPE},210", "--out", out, *QUICK, code=1)
    assert stderr.splitlines()[-1].startswith("wsgemm: ") and "notes.txt" in stderr
    assert "2/2" not in stderr  # the others would fail of the same
    assert out.read_text() == "Dear diary\n"


def test_log_that_cannot_be_written(tmp_path, env):
    refuse(1, "none/log", arguments=["autotune", "--shapes", SHAPE, "--log", "none/log"], cwd=tmp_path, env=env)
    _, stderr = autotune(env, "--shapes", f"{SHAPE},210", "--log", "/dev/full", *QUICK, code=1)
    assert "/dev/full" in stderr and "2/2" not in stderr


# ---- SIGINT and terminals ------------------------------------------------------------------------------------------------


def start(env, *arguments, **options):
    options = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True, **options}
    return subprocess.Popen([*COMMAND, "autotune", *map(str, arguments)], env=env, **options)


def test_sigint_keeps_what_was_found(tmp_path, env):
    # Python may have been started with SIGINT ignored, which children inherit.
    process = start(env, "--shapes", f"{SHAPE},{LONG},210", "--budget", "20000",
                    preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler))
    first = process.stderr.readline()
    assert first.startswith("1/3 ")
    time.sleep(0.3)
    process.send_signal(signal.SIGINT)
    stdout, stderr = process.communicate(timeout=60)
    assert process.returncode == 130
    assert stderr.splitlines()[-1] == "wsgemm: interrupted: what was found is kept; 1 of 3 shapes not reached"
    assert f"sgemm nn {SHAPE}" in stdout and f"sgemm nn {LONG}" in stdout
    assert "sgemm nn 210x" not in stdout
    assert "of 2 shapes kept in" in stdout
    assert {"m": "200"}.items() <= lines_of(tmp_path / "tuning")[0].items()


def test_a_second_sigint_kills(tmp_path, env):
    process = start(env, "--shapes", "2500", "--budget", "20000", stderr=subprocess.DEVNULL,
                    preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler))
    time.sleep(0.5)
    for _ in range(2):
        process.send_signal(signal.SIGINT)
        time.sleep(0.02)
    process.communicate(timeout=60)
    assert process.returncode in (-signal.SIGINT, 130)  # 130: the search had ended in between


def test_sigint_that_is_ignored_stays_so(env):
    process = start(env, "--shapes", LONG, "--budget", "600", preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_IGN))
    time.sleep(0.3)
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=60)
    assert process.returncode == 0


def watch(env, width, *arguments, interrupt_after=None):
    """(exit code, stdout, what a terminal of this width was sent on stderr)"""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("4H", 24, width, 0, 0))
    process = start({**env, "TERM": "xterm"}, *arguments, stderr=theirs, text=False,
                    preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler))
    os.close(theirs)
    sent, begin = b"", time.monotonic()
    while True:
        if interrupt_after and time.monotonic() - begin > interrupt_after:
            process.send_signal(signal.SIGINT)
            interrupt_after = None
        try:
            if select.select([ours], [], [], 0.05)[0]:
                part = os.read(ours, 65536)
                sent += part
                if not part:
                    break
        except OSError:  # EIO: the other side is closed
            break
    os.close(ours)
    stdout = process.communicate(timeout=60)[0].decode()
    return process.returncode, stdout, sent.decode()


@pytest.mark.parametrize("width", [30, 80, 300])
def test_progress_on_a_terminal(env, width):
    code, stdout, sent = watch(env, width, "--shapes", f"{SHAPE},{LONG}", "--budget", "500")
    assert code == 0 and "geometric mean" in stdout
    drawn = [x for x in sent.split("\r\033[K") if x]
    assert len(drawn) >= 2
    assert "\n" not in sent and sent.endswith("\r\033[K")  # one line, which is gone at the end
    assert max(map(len, drawn)) < width
    for i, shape in enumerate([SHAPE, LONG]):
        assert any(f"{i + 1}/2 sgemm nn {shape}".startswith(x[:29]) or x.startswith(f"{i + 1}/2 sgemm nn {shape}") for x in drawn)
    if width == 300:
        assert re.search(r"\[#+ *\] [\d.]+x [\d.]+ us, \d+ s left, \d+ of \d+ survive, now row=sgemm_.*, best row=sgemm_", drawn[-1])


def test_sigint_on_a_terminal(env):
    code, stdout, sent = watch(env, 80, "--shapes", f"{LONG},{SHAPE}", "--budget", "20000", interrupt_after=0.7)
    assert code == 130
    *bars, last = sent.split("\r\033[K")
    assert last == "wsgemm: interrupted: what was found is kept; 1 of 2 shapes not reached\r\n"
    assert bars and LONG in stdout


def test_a_dumb_terminal_gets_lines(env):
    ours, theirs = pty.openpty()
    process = start({**env, "TERM": "dumb"}, "--shapes", SHAPE, *QUICK, stderr=theirs)
    os.close(theirs)
    process.communicate(timeout=60)
    assert os.read(ours, 65536).decode().startswith(f"1/1 sgemm nn {SHAPE}: ")
    os.close(ours)


# ---- tune ----------------------------------------------------------------------------------------------------------------


@pytest.fixture
def tuned(tmp_path, env):
    """A tuning file with three shapes."""
    autotune(env, "--shapes", f"{SHAPE},180x150x160", *QUICK)
    autotune(env, "--shapes", "150", "--routine", "z", *QUICK)
    return tmp_path / "tuning"


def test_show(env, tuned):
    text = check("tune", "show", env=env)
    assert re.search(rf"^  sgemm +chain +nn +{SHAPE} +[\d.]+ +[\d.]+ +[\d.]+  sgemm_\S+ .*threads=", text, re.MULTILINE)
    order = re.findall(r"^  ([sz]gemm) +chain +nn +(\S+)", text, re.MULTILINE)
    assert order == [("sgemm", "180x150x160"), ("sgemm", SHAPE), ("zgemm", "150x150x150")]
    assert text.endswith(f"\n3 shapes in {tuned}\n")
    facts = json.loads(check("tune", "show", "--json", env=env))
    assert [(x["routine"], x["m"], x["n"], x["k"]) for x in facts] == [
        ("sgemm", 180, 150, 160), ("sgemm", 200, 200, 200), ("zgemm", 150, 150, 150)
    ]  # fmt: skip
    for entry in facts:
        assert entry["gain"] == pytest.approx(entry["before_us"] / entry["after_us"], abs=1e-3)
        assert entry["device"] and "crc" not in entry


def test_nothing_to_show(tmp_path, env):
    assert check("tune", "show", env=env) == f"0 shapes in {tmp_path / 'tuning'}\n"
    assert json.loads(check("tune", "show", "--json", env=env)) == []
    assert check("tune", "export", env=env) == "# wsgemm tuning 1\n"
    refuse(1, "none", arguments=["tune", "show", "--file", "none"], cwd=tmp_path, env=env)
    refuse(1, "none", arguments=["tune", "export", "--file", "none"], cwd=tmp_path, env=env)


def test_the_table_of_the_library(env):
    text = check("tune", "show", "--table", env=env)
    count = int(re.search(r"(\d+) shapes? in the library's table\n$", text)[1])
    exported = check("tune", "export", "--table", env=env)
    assert exported.startswith("# wsgemm tuning 1\n") and exported.count("\n") == count + 1
    assert len(json.loads(check("tune", "show", "--table", "--json", env=env))) == count


def test_round_trip(tmp_path, env, tuned):
    lines = tuned.read_text()
    assert check("tune", "export", env=env) == lines
    assert check("tune", "export", "-o", tmp_path / "exported", env=env) == f"3 lines written to {tmp_path / 'exported'}\n"
    assert (tmp_path / "exported").read_text() == lines
    other = tmp_path / "folder" / "other"
    assert check("tune", "import", tmp_path / "exported", "--file", other, env=env) == f"3 lines imported into {other}\n"
    assert other.read_text() == lines
    assert check("tune", "show", "--file", other, env=env).replace(str(other), str(tuned)) == check("tune", "show", env=env)
    assert check("tune", "clear", "--yes", env=env) == f"3 lines removed from {tuned}\n"
    assert lines_of(tuned) == []
    assert check("tune", "clear", "--yes", env=env) == f"0 lines removed from {tuned}\n"
    result = run("tune", "import", "-", env=env, input=lines)
    assert (result.returncode, result.stdout, result.stderr) == (0, f"3 lines imported into {tuned}\n", "")
    assert tuned.read_text() == lines


def test_clear_without_a_file(tmp_path, env):
    check("tune", "clear", "--yes", env=env)
    assert not (tmp_path / "tuning").exists() or lines_of(tmp_path / "tuning") == []


def test_damaged_lines(tmp_path, env, tuned):
    header, first, *others = tuned.read_text().splitlines(keepends=True)
    tuned.write_text(header + first.replace("m=", "m=1", 1) + "".join(others))
    text = check("tune", "show", env=env)
    assert f"2 shapes in {tuned}\n1 line is damaged" in text
    assert len(check("tune", "export", env=env).splitlines()) == 3
    copy = tmp_path / "copy"
    copy.write_bytes(tuned.read_bytes())
    assert check("tune", "import", copy, "--file", tmp_path / "x", env=env).endswith(", 1 left out as damaged or of another version\n")
    # A search mends the file, and nothing else is lost.
    autotune(env, "--shapes", "170", *QUICK)
    assert len(lines_of(tuned)) == 3


def test_lines_of_another_version(tmp_path, env):
    later = 'gemm device="x" version=99.0.0 sparse=2:4'
    later += f" crc={zlib.crc32(later.encode()):08x}\n"
    (tmp_path / "tuning").write_text("# wsgemm tuning 1\n" + later)
    autotune(env, "--shapes", SHAPE, *QUICK)
    text = (tmp_path / "tuning").read_text()
    assert text.endswith(later) and text.count("\n") == 3
    assert "1 line is damaged, superseded or of another version" in check("tune", "show", env=env)
    told = check("tune", "import", tmp_path / "tuning", "--file", tmp_path / "x", env=env)
    assert told.startswith("1 line imported") and told.endswith(", 1 left out as damaged or of another version\n")
    assert check("tune", "clear", "--yes", env=env).startswith("2 lines removed")
    assert (tmp_path / "tuning").read_text() == "# wsgemm tuning 1\n"


@pytest.mark.parametrize("content", [b"", b"#\n\n", b"Dear diary\n", b"\0\1\2\3\n\0", b"gemm device="])
def test_import_of_what_is_no_tuning(tmp_path, env, content):
    (tmp_path / "strange").write_bytes(content)
    refuse(1, "strange", arguments=["tune", "import", "strange"], cwd=tmp_path, env=env)
    refuse(1, "none", arguments=["tune", "import", "none"], cwd=tmp_path, env=env)
    refuse(1, arguments=["tune", "import", "."], cwd=tmp_path, env=env)


def test_show_of_what_is_no_tuning_file(tmp_path, env):
    (tmp_path / "notes.txt").write_text("Dear diary\n")
    refuse(1, "notes.txt", arguments=["tune", "show", "--file", "notes.txt"], cwd=tmp_path, env=env)
    refuse(1, "notes.txt", arguments=["tune", "export", "--file", "notes.txt"], cwd=tmp_path, env=env)


def little_memory():
    """So that what reads a file without an end is stopped by its own greed. (A sanitizer has more address space.)"""
    with open(COMMAND[-1], "rb") as file:
        if b"san_init" not in file.read():
            resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30))


@pytest.mark.parametrize("kind", ["pipe", "folder", "endless", "loop", "sparse"])
def test_what_is_no_file(tmp_path, env, kind):
    """Neither waited for nor read without an end, and not said to have no shapes; a text to be imported may come from a pipe."""
    path = tmp_path / kind
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    elif kind == "sparse":
        path.touch()
        os.truncate(path, 1 << 40)
    else:
        path.symlink_to("/dev/zero" if kind == "endless" else kind)
    for action in "show", "export":
        result = run("tune", action, "--file", path, env=env, preexec_fn=little_memory)
        assert (result.returncode, result.stdout) == (1, "") and str(path) in result.stderr, result
    assert run("tune", "clear", "--yes", "--file", path, env=env).returncode == 1
    if kind != "pipe":
        result = run("tune", "import", path, env=env, preexec_fn=little_memory)
        reason = {"folder": "Is a directory", "loop": "symbolic links"}.get(kind, "File too large")
        assert result.returncode == 1 and reason in result.stderr, result



def test_places_that_cannot_be_written(tmp_path, env, tuned):
    (tmp_path / "file").write_text("")
    refuse(1, "file/x", arguments=["tune", "export", "-o", "file/x"], cwd=tmp_path, env=env)
    refuse(1, "file/x", arguments=["tune", "import", "tuning", "--file", "file/x"], cwd=tmp_path, env=env)
    refuse(1, "/dev/full", arguments=["tune", "export", "-o", "/dev/full"], cwd=tmp_path, env=env)
