"""The command line itself, and info, doctor and verify."""

import json
import os
import re

import numpy as np
import pytest
from command import FAKE_CUDA, TYPES, WRONG_GEMM, check, clean_environment, integers, load, refuse, run, save

COMMANDS = ["info", "doctor", "gemm", "bench", "verify", "autotune", "tune", "preload"]


def test_help_lists_every_command():
    text = check("--help")
    assert check("-h") == text == check("help")
    assert check() == text  # the bare command
    for name in COMMANDS:
        assert re.search(rf"^  {name} ", text, re.MULTILINE)


@pytest.mark.parametrize("name", COMMANDS)
def test_help_on_a_command(name):
    text = check("help", name)
    assert text == check(name, "--help") == check(name, "-h")
    assert text.startswith(f"Usage: wsgemm {name}")
    assert max(map(len, text.splitlines())) <= 100


def test_version_is_the_library_s():
    text = check("--version")
    assert re.fullmatch(r"wsgemm \d+\.\d+\.\d+\n", text)
    assert json.loads(check("info", "--json"))["version"] == text.split()[1]


@pytest.mark.parametrize(
    ("words", "arguments"),
    [
        (["unknown command", "'mul'"], ["mul"]),
        (["unknown command", "'mul'"], ["help", "mul"]),
        (["unknown option", "'--mul'"], ["--mul"]),
        (["too many arguments"], ["--version", "now"]),
        (["'--fast'"], ["autotune", "--fast"]),
        (["'--yaml'"], ["info", "--yaml"]),
        (["'--json'", "no value"], ["info", "--json=x"]),
        (["'all'"], ["info", "all"]),
        (["'-x'"], ["doctor", "-x"]),
        (["'now'"], ["doctor", "now"]),
        (["blas or cublas is missing"], ["preload"]),
        (["one library"], ["preload", "blas", "cublas"]),
        (["neither blas nor cublas", "'lapack'"], ["preload", "lapack"]),
        (["'--slow'"], ["verify", "--slow"]),
        (["'fgemm_9x9'"], ["verify", "--kernel", "fgemm_9x9"]),
        (["--threads", "'0'"], ["verify", "--threads", "0"]),
        (["--seed"], ["verify", "--seed", "-1"]),
        (["two input files", "0 are given"], ["gemm"]),
        (["two input files", "1 are given"], ["gemm", "a.npy", "-o", "c.npy"]),
        (["two input files", "3 are given"], ["gemm", "a.npy", "b.npy", "d.npy", "-o", "c.npy"]),
        (["-o C.npy is missing"], ["gemm", "a.npy", "b.npy"]),
        (["--explain", "-o -", "standard output"], ["gemm", "a.npy", "b.npy", "-o", "-", "--explain"]),
        (["-o C.npy"], ["gemm", "a.npy", "b.npy", "--verify", "--explain"]),
        (["'-o' needs a value"], ["gemm", "a.npy", "b.npy", "-o"]),
        (["--beta needs --c"], ["gemm", "a.npy", "b.npy", "-o", "c.npy", "--beta", "2"]),
        (["--alpha 'two'"], ["gemm", "a.npy", "b.npy", "-o", "c.npy", "--alpha", "two"]),
        (["--alpha '1+2'"], ["gemm", "a.npy", "b.npy", "-o", "c.npy", "--alpha", "1+2"]),
        (["--alpha '1e999'"], ["gemm", "a.npy", "b.npy", "-o", "c.npy", "--alpha", "1e999"]),
        (["--alpha ''"], ["gemm", "a.npy", "b.npy", "-o", "c.npy", "--alpha", ""]),
        (["--transa 'q'"], ["gemm", "a.npy", "b.npy", "-o", "c.npy", "--transa", "q"]),
        (["--transb ''"], ["gemm", "a.npy", "b.npy", "-o", "c.npy", "--transb", ""]),
        (["--threads '-1'"], ["gemm", "a.npy", "b.npy", "-o", "c.npy", "--threads", "-1"]),
        (["--threads '2x'"], ["gemm", "a.npy", "b.npy", "-o", "c.npy", "--threads", "2x"]),
        (["--coarse '65'"], ["gemm", "a.npy", "b.npy", "-o", "c.npy", "--coarse", "65"]),
        (["--policy 'luck'", "fixed_work, fixed_blocks, steal"], ["gemm", "a.npy", "b.npy", "-o", "c.npy", "--policy", "luck"]),
        (["'--trans'"], ["gemm", "a.npy", "b.npy", "--trans", "t"]),
        (["'--verify'", "no value"], ["gemm", "a.npy", "b.npy", "-o", "c.npy", "--verify=yes"]),
    ],
)
def test_senseless_command_line(tmp_path, words, arguments):
    refuse(2, *words, arguments=arguments, cwd=tmp_path)


def test_kernels_that_do_not_fit(tmp_path):
    np.save(tmp_path / "a.npy", np.ones((2, 2)))
    arguments = ["gemm", "a.npy", "a.npy", "-o", "c.npy", "--kernel"]
    refuse(2, "'nothing'", arguments=[*arguments, "nothing"], cwd=tmp_path)
    kernels = json.loads(check("info", "--json"))["kernels"]
    other = next(k["name"] for k in kernels if k["usable"] and k["name"].startswith("s"))
    refuse(1, other, "f8", "a.npy", arguments=[*arguments, other], cwd=tmp_path)


@pytest.mark.parametrize(
    "setting", [{"WSGEMM_POLICY": "luck"}, {"WSGEMM_KERNEL": "nothing"}, {"WSGEMM_NUM_THREADS": "0"}, {"WSGEMM_ISA": "mmx"}]
)
def test_senseless_environment(tmp_path, setting):
    np.save(tmp_path / "a.npy", np.ones((2, 2)))
    env = clean_environment(**setting)
    name, value = next(iter(setting.items()))
    for arguments in [["gemm", "a.npy", "a.npy", "-o", "c.npy"], ["verify", "--quick"], ["bench", "--no-peers", "--shapes", "8"]]:
        refuse(1, f"{name}={value}", arguments=arguments, cwd=tmp_path, env=env)
    report = check("doctor", env=env)
    assert re.search(rf"^warn  environment  {name}={value} makes no sense", report, re.MULTILINE)


def test_preload_names_what_lies_beside_the_library(tmp_path):
    for word in ("blas", "cublas"):
        done = run("preload", word, cwd=tmp_path)
        if done.returncode == 0:
            path = done.stdout.rstrip("\n")
            assert os.path.isabs(path) and re.fullmatch(rf"libwsgemm_{word}\.so(\.0)?", os.path.basename(path))
            assert os.access(path, os.R_OK) and done.stderr == ""
        else:  # not part of this build
            refuse(1, f"libwsgemm_{word}.so", arguments=["preload", word], cwd=tmp_path)


def test_info_and_its_json_agree():
    text, facts = check("info"), json.loads(check("info", "--json"))
    assert set(facts) == {"version", "build", "machine", "kernels"}
    assert max(map(len, text.splitlines())) <= 100
    lines = [line.split() for line in text.splitlines() if line.startswith("  ")]
    for kernel in facts["kernels"]:
        item = f'{kernel["bm"]}x{kernel["bn"] * max(1, kernel["coarse_factor"])}'
        told = [kernel["family"], item, *(str(kernel[key]) for key in ("bk", "n_stages", "n_threads", "shared_bytes"))]
        assert [kernel["name"], *told, *("usable" if kernel["usable"] else "not on this machine").split()] in lines
        assert kernel["type"] == kernel["name"][0] and kernel["backend"] == ("cuda" if kernel["n_threads"] else "cpu")
        assert all(type(kernel[key]) is bool for key in ("has_split_k", "is_ping_pong", "is_fma"))
    for section in ("build", "machine"):
        for key, value in facts[section].items():
            assert re.search(rf"^  {re.escape(key)} +{re.escape(value)}$", text, re.MULTILINE)


def test_json_survives_any_environment():
    facts = json.loads(check("info", "--json", env=clean_environment(WSGEMM_POLICY='"\\\t\udcff')))
    assert "(ignored)" in facts["machine"]["env WSGEMM_POLICY"]


def test_doctor_finds_what_distorts():
    env = clean_environment(OPENBLAS_CORETYPE="Haswell", OMP_NUM_THREADS="3", MKL_DEBUG="1", BLIS_JC_NT="2", WSGEMM_POLICY="steal")
    report = check("doctor", env=env)
    for name in ["OPENBLAS_CORETYPE=Haswell", "OMP_NUM_THREADS=3", "MKL_DEBUG=1", "BLIS_JC_NT=2", "WSGEMM_POLICY=steal forces"]:
        assert re.search(rf"^warn  environment  {name} ", report, re.MULTILINE)
    assert re.search(r"\nHealthy, with \d+ warnings\.\n$", report)


def test_doctor_sees_an_unknown_variable_of_ours():
    report = check("doctor", env=clean_environment(WSGEMM_THREADS="2"))
    assert re.search(r"^warn  environment  WSGEMM_THREADS is set, but wsgemm knows no such", report, re.MULTILINE)
    for name in ("LIBRARY", "PYTHON", "COMMIT", "BENCH_PEERS"):  # the Python package's and the command's
        assert f"WSGEMM_{name} is set" not in check("doctor", env=clean_environment(**{f"WSGEMM_{name}": "x"}))


def test_doctor_looks_at_everything():
    quiet = {k: v for k, v in clean_environment().items() if not re.match("OPENBLAS|GOTO|OMP|KMP|GOMP|MKL|BLIS|LD_PRELOAD", k)}
    report = check("doctor", env=quiet)
    for topic in ["processor", "features", "kernels", "threads", "environment", "load", "frequency", "huge pages", "gpu", "self-test"]:
        assert re.search(rf"^(ok|note|warn) +{topic} ", report, re.MULTILINE), topic
    assert re.search(r"^ok    environment ", report, re.MULTILINE)
    assert re.search(r"^ok    self-test ", report, re.MULTILINE)
    assert max(map(len, report.splitlines())) <= 100


# ---- The GPU, played by a library that is found in place of the driver -----------------------------------------------------


def words_of(report, topic):
    """The findings on a topic, each as (label, text), their lines joined."""
    found = []
    for line in report.splitlines():
        label, found_topic, text = line[:5].strip(), line[6:18].strip(), line[19:].strip()
        if label in ("ok", "note", "warn", "FAIL"):
            found.append([found_topic, label, text])
        elif found and text and not line[:19].strip():
            found[-1][2] += " " + text
    return [(label, text) for found_topic, label, text in found if found_topic == topic]


def fake_gpu(state):
    return clean_environment(LD_LIBRARY_PATH=os.path.dirname(FAKE_CUDA), WSGEMM_TEST_FAKE_CUDA=state)


needs_fake_cuda = pytest.mark.skipif(not FAKE_CUDA, reason="needs a build with the GPU backend and a shared library")


def test_doctor_without_gpu_backend():
    if "cuda" in json.loads(check("info", "--json"))["build"]["backends"]:
        pytest.skip("this build has the GPU backend")
    ((label, text),) = words_of(check("doctor"), "gpu")[:1]
    assert label in ("note", "warn") and "this build has no GPU part: " in text
    assert any(reason in text for reason in ("nvcc", "WSGEMM_CUDA is OFF", "cross build"))


@needs_fake_cuda
@pytest.mark.parametrize(
    ("state", "label", "words"),
    [
        ("old", "warn", ["too old", "made for CUDA 11.8", "cuLibraryLoadData", "run on the CPU"]),
        ("no device", None, ["finds no GPU that this process may use", "run on the CPU"]),
        ("zero devices", None, ["finds no GPU", "run on the CPU"]),
        ("broken", "warn", ["cuInit: CUDA_ERROR_FAKED (as asked for)", "run on the CPU"]),
    ],
)
def test_doctor_says_what_is_wrong_with_the_driver(state, label, words):
    found, text = words_of(check("doctor", env=fake_gpu(state)), "gpu")[0]
    assert found == label or (label is None and found in ("note", "warn"))
    for word in words:
        assert word in text


@needs_fake_cuda
def test_doctor_on_a_gpu_that_the_build_has_no_code_for():
    findings = words_of(check("doctor", env=fake_gpu("no code")), "gpu")
    code = json.loads(check("info", "--json"))["build"]["gpu code"]
    assert findings[0][0] == "ok" and findings[0][1].startswith("driver for CUDA 13.0, 2 GPUs")
    for ordinal in range(2):
        label, text = findings[1 + 2 * ordinal]
        assert (label, text) == ("ok", f"GPU {ordinal}: Fake GPU, compute capability 7.5, 40 SMs, 16.0 GiB")
        label, text = findings[2 + 2 * ordinal]
        assert label == "warn" and f"GPU {ordinal} cannot be used: " in text
        assert "Fake GPU, compute capability 7.5" in text and text.endswith(f"this build has code for {code}")


@needs_fake_cuda
def test_doctor_on_a_gpu_without_memory():
    findings = words_of(check("doctor", env=fake_gpu("no memory")), "gpu")
    assert ("warn", "GPU 0 cannot be used: GPU memory: CUDA_ERROR_FAKED (as asked for)") in findings


@needs_fake_cuda
@pytest.mark.parametrize(
    ("state", "word"),
    [("old", "too old"), ("no device", "finds no GPU"), ("no code", "compute capability 7.5"), ("no memory", "GPU memory")],
)
def test_gemm_on_a_gpu_that_cannot(tmp_path, state, word):
    np.save(tmp_path / "a.npy", np.ones((2, 2)))
    refuse(1, word, arguments=["gemm", "a.npy", "a.npy", "-o", "c.npy", "--gpu"], cwd=tmp_path, env=fake_gpu(state))


def test_gemm_without_a_gpu(tmp_path):
    np.save(tmp_path / "a.npy", np.ones((2, 2)))
    for more in (["-o", "c.npy"], ["--explain"]):
        refuse(1, "--gpu: ", arguments=["gemm", "a.npy", "a.npy", "--gpu", *more], cwd=tmp_path,
               env=clean_environment(CUDA_VISIBLE_DEVICES="-1"))


def test_gemm_on_the_gpu(tmp_path):
    rng = np.random.default_rng(5)
    for dtype in TYPES:
        a, b, c = integers(rng, (70, 90), dtype), integers(rng, (50, 90), dtype), integers(rng, (70, 50), dtype)
        for name, matrix, order in (("a", a, "C"), ("b", b, "F"), ("c0", c, "F")):
            save(tmp_path / f"{name}.npy", matrix, order)
        files = [tmp_path / "a.npy", tmp_path / "b.npy", "-o", tmp_path / "c.npy", "--c", tmp_path / "c0.npy"]
        result = run("gemm", *files, "--gpu", "--transb", "t", "--alpha", "2", "--beta", "-1", "--verify")
        if result.returncode == 1 and "--gpu: " in result.stderr:
            pytest.skip(result.stderr)
        assert result.returncode == 0 and "verified" in result.stdout
        np.testing.assert_array_equal(load(tmp_path / "c.npy"), 2 * (a @ b.T) - c)
        assert "cuda" in check("gemm", *files, "--gpu", "--transb", "t", "--explain")


def test_quick_verify_covers_every_usable_kernel():
    report = check("verify", "--quick", "--threads", "2")
    usable = [k["name"] for k in json.loads(check("info", "--json"))["kernels"] if k["usable"]]
    for name in usable:
        row = re.search(rf"^{name} +(\d+) +(\d+) +(\S+) .* ok$", report, re.MULTILINE)
        assert row, name
        assert int(row[1]) > 200 and int(row[2]) > 10000 and 0 < float(row[3]) < 1
    assert report.endswith(f"{len(usable)} kernels verified\n") or f"{len(usable)} kernels verified, " in report
    assert max(map(len, report.splitlines())) <= 100


def test_verify_of_one_kernel():
    name = next(k["name"] for k in json.loads(check("info", "--json"))["kernels"] if k["usable"])
    report = check("verify", "--quick", "--kernel", name, "--seed", "7")
    assert name in report and "\n1 kernel verified\n" in report


@pytest.mark.skipif(not WRONG_GEMM, reason="needs a shared library whose functions can be preloaded")
@pytest.mark.parametrize("arguments", [["doctor"], ["verify", "--quick"]])
def test_wrong_kernels_are_found(arguments):
    # No GPU: the preloaded library spoils host memory.
    env = clean_environment(
        LD_PRELOAD=WRONG_GEMM, ASAN_OPTIONS="verify_asan_link_order=0:detect_leaks=0", CUDA_VISIBLE_DEVICES="-1"
    )
    result = run(*arguments, env=env)
    assert result.returncode == 1
    assert result.stderr.splitlines()[-1].startswith("wsgemm: ")
    usable = [k["name"] for k in json.loads(check("info", "--json"))["kernels"] if k["usable"]]
    for name in usable:
        assert re.search(rf"(FAIL  self-test    {name}, |^{name} .* WRONG$)", result.stdout, re.MULTILINE)
