"""The command line itself, and info, doctor and verify."""

import json
import re

import numpy as np
import pytest
from command import WRONG_GEMM, check, clean_environment, refuse, run

COMMANDS = ["info", "doctor", "gemm", "bench", "verify"]


def test_help_lists_every_command():
    text = check("--help")
    assert check("-h") == text == check("help")
    for name in [*COMMANDS, "autotune"]:
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
        (["no command"], []),
        (["unknown command", "'mul'"], ["mul"]),
        (["unknown command", "'mul'"], ["help", "mul"]),
        (["unknown option", "'--mul'"], ["--mul"]),
        (["too many arguments"], ["--version", "now"]),
        (["not there yet"], ["autotune"]),
        (["not there yet"], ["autotune", "--fast"]),
        (["'--yaml'"], ["info", "--yaml"]),
        (["'--json'", "no value"], ["info", "--json=x"]),
        (["'all'"], ["info", "all"]),
        (["'-x'"], ["doctor", "-x"]),
        (["'now'"], ["doctor", "now"]),
        (["'--slow'"], ["verify", "--slow"]),
        (["'fgemm_9x9'"], ["verify", "--kernel", "fgemm_9x9"]),
        (["--threads", "'0'"], ["verify", "--threads", "0"]),
        (["--seed"], ["verify", "--seed", "-1"]),
        (["two input files", "0 are given"], ["gemm"]),
        (["two input files", "1 are given"], ["gemm", "a.npy", "-o", "c.npy"]),
        (["two input files", "3 are given"], ["gemm", "a.npy", "b.npy", "d.npy", "-o", "c.npy"]),
        (["-o C.npy is missing"], ["gemm", "a.npy", "b.npy"]),
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
    for arguments in [["gemm", "a.npy", "a.npy", "-o", "c.npy"], ["verify", "--quick"]]:
        refuse(1, f"{name}={value}", arguments=arguments, cwd=tmp_path, env=env)
    report = check("doctor", env=env)
    assert re.search(rf"^warn  environment  {name}={value} makes no sense", report, re.MULTILINE)


def test_info_and_its_json_agree():
    text, facts = check("info"), json.loads(check("info", "--json"))
    assert set(facts) == {"version", "build", "machine", "kernels"}
    assert max(map(len, text.splitlines())) <= 100
    lines = [line.split(None, 1) for line in text.splitlines() if line.startswith("  ")]
    for kernel in facts["kernels"]:
        assert [kernel["name"], "usable" if kernel["usable"] else "not on this machine"] in lines
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


def test_doctor_looks_at_everything():
    quiet = {k: v for k, v in clean_environment().items() if not re.match("OPENBLAS|GOTO|OMP|KMP|GOMP|MKL|BLIS|LD_PRELOAD", k)}
    report = check("doctor", env=quiet)
    for topic in ["processor", "features", "kernels", "threads", "environment", "load", "frequency", "huge pages", "gpu", "self-test"]:
        assert re.search(rf"^(ok|note|warn) +{topic} ", report, re.MULTILINE), topic
    assert re.search(r"^ok    environment ", report, re.MULTILINE)
    assert re.search(r"^ok    self-test ", report, re.MULTILINE)
    assert max(map(len, report.splitlines())) <= 100


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
    env = clean_environment(LD_PRELOAD=WRONG_GEMM, ASAN_OPTIONS="verify_asan_link_order=0:detect_leaks=0")
    result = run(*arguments, env=env)
    assert result.returncode == 1
    assert result.stderr.splitlines()[-1].startswith("wsgemm: ")
    usable = [k["name"] for k in json.loads(check("info", "--json"))["kernels"] if k["usable"]]
    for name in usable:
        assert re.search(rf"(FAIL  self-test    {name}, |^{name} .* WRONG$)", result.stdout, re.MULTILINE)
