"""wsgemm bench: what it says that it does not run, suites of random shapes, the lines that it writes."""

import json
import os
import re

import pytest
from command import BLAS, FAKE_PEERS, check, refuse, run

QUICK = ["--samples", "1", "--min-time", "0.001", "--budget", "0.001", "--no-peers", "--threads", "1", "--commit", "c0ffee1"]
# A distribution's OpenBLAS may not know the processor, and then has kernels of an old one.
BESIDE_PEERS = [x for x in QUICK if x != "--no-peers"] + ["--allow-slow-peer"]
MEMBERS = ["suite", "routine", "case", "policy", "device", "peer", "ours", "unit", "commit", "date"]


def measured(tmp_path, *arguments):
    """Prints and JSON lines of a run."""
    text = check("bench", *arguments, *QUICK, "--json", "lines.jsonl", cwd=tmp_path)
    with open(tmp_path / "lines.jsonl", encoding="utf-8") as file:
        lines = [json.loads(line) for line in file]
    os.remove(tmp_path / "lines.jsonl")
    return text, lines


def test_what_is_not_run_is_told(tmp_path):
    text, lines = measured(tmp_path, "--suite", "square,half", "--routine", "s,h", "--shapes", "16")
    assert "square: hgemm is not run: no peer has half precision; suite half compares it with sgemm\n" in text
    assert "half: sgemm is not run: this suite compares half precision with sgemm\n" in text
    assert [(line["suite"], line["routine"]) for line in lines] == [("square", "sgemm"), ("half", "hgemm")]
    text, lines = measured(tmp_path, "--suite", "square,demo", "--routine", "h,d", "--shapes", "16")
    assert text.count("hgemm is not run") == 2 and len(lines) == 2
    text, lines = measured(tmp_path, "--suite", "square", "--routine", "d", "--shapes", "16")
    assert "not run" not in text and len(lines) == 1


def test_nothing_to_run_is_a_failure(tmp_path):
    result = run("bench", "--suite", "square,odd", "--routine", "b", *QUICK, cwd=tmp_path)
    assert result.returncode == 1
    assert result.stdout.count("bgemm is not run") == 2
    assert result.stderr == "wsgemm: bench: nothing was run; the lines above say why\n"


def test_members_of_a_line(tmp_path):
    _, (line, *_) = measured(tmp_path, "--suite", "demo", "--shapes", "16")
    assert list(line)[: len(MEMBERS)] == MEMBERS
    assert (line["commit"], line["peer"], line["case"], line["unit"]) == ("c0ffee1", "none", "n=16", "GF/s")
    _, lines = measured(tmp_path, "--suite", "coarse", "--shapes", "16", "--routine", "s")
    assert all(line["theirs"] > 0 and abs(line["ratio"] - line["ours"] / line["theirs"]) < 1e-3 * line["ratio"] for line in lines)


def test_peers_are_called_with_the_same_product(tmp_path):
    """The command compares the results, and fails where they differ."""
    check("bench", "--suite", "square", "--routine", "s,d,c,z", "--shapes", "24x40x33", *BESIDE_PEERS, "--json", "lines.jsonl", cwd=tmp_path)
    lines = [json.loads(line) for line in (tmp_path / "lines.jsonl").read_text(encoding="utf-8").splitlines()]
    if {line["peer"] for line in lines} == {"none"}:
        pytest.skip("no other BLAS library here")
    assert {line["routine"] for line in lines} == {"sgemm", "dgemm", "cgemm", "zgemm"}
    assert all(line["peer"] != "none" and line["theirs"] > 0 for line in lines)


def test_level3_has_its_routines_and_squares(tmp_path):
    text, lines = measured(tmp_path, "--suite", "level3", "--routine", "d,c", "--shapes", "24,24x24x8")
    real, hermitian = ["syrk", "gemmtr", "trmm", "symm", "syr2k", "trsm"], ["herk", "hemm", "her2k"]
    assert sorted(line["routine"] for line in lines) == sorted(["d" + r for r in real] + ["c" + r for r in real + hermitian])
    assert "level3: 24x24x8 is not run: this suite has squares\n" in text
    assert {line["case"] for line in lines} == {"n=24"} and all(line["ours"] > 0 for line in lines)


def test_peers_get_the_same_level3_calls(tmp_path):
    """The command compares the results, and fails where they differ."""
    text = check("bench", "--suite", "level3", "--shapes", "1,37", *BESIDE_PEERS, "--json", "lines.jsonl", cwd=tmp_path)
    lines = [json.loads(line) for line in (tmp_path / "lines.jsonl").read_text(encoding="utf-8").splitlines()]
    if {line["peer"] for line in lines} == {"none"}:
        pytest.skip("no other BLAS library here")
    not_run = set(re.findall(r"level3: (\w+) is not run: no peer has it", text))
    assert not_run <= {x + "gemmtr" for x in "sdcz"}  # the only routine that is younger than CBLAS
    assert len({line["routine"] for line in lines} | not_run) == 30 and all(line["theirs"] > 0 for line in lines)


def beside(peers, tmp_path, *arguments):
    """Prints and JSON lines of suite level3 beside these libraries."""
    quick = [x for x in QUICK if x != "--no-peers"] + ["--allow-slow-peer", *(f"--peer={x}" for x in peers)]
    text = check("bench", "--suite", "level3", "--shapes", "24", *quick, *arguments, "--json", "lines.jsonl", cwd=tmp_path)
    return text, [json.loads(line) for line in (tmp_path / "lines.jsonl").read_text(encoding="utf-8").splitlines()]


@pytest.mark.skipif(not BLAS, reason="needs a build with libwsgemm_blas")
def test_each_routine_has_its_mean(tmp_path):
    text, lines = beside([BLAS], tmp_path)
    routines = {line["routine"] for line in lines}
    assert len(routines) == 30 and len(lines) == 30
    assert set(re.findall(r"^  (\w+), 1 thread: speedup 0*[.\d]+ in", text, re.MULTILINE)) == routines


def test_a_peer_may_lack_a_routine(tmp_path):
    """A case is measured beside the peers that have it, and compared with the fastest of those."""
    text, lines = beside(FAKE_PEERS, tmp_path, "--routine", "s")
    gemmt, gemmtr = "OpenBLAS gemmt SkylakeX", "OpenBLAS gemmtr SkylakeX"
    assert [(line["routine"], line["peer"]) for line in lines] == [("ssyrk", gemmt), ("sgemmtr", gemmt), ("sgemmtr", gemmtr)]
    number = r"\s+(\d+\.\d+)"
    ssyrk = re.search(rf"^ssyrk n=24, 1t{number * 4}\s+-\s+-{number}$", text, re.MULTILINE)
    sgemmtr = re.search(rf"^sgemmtr n=24, 1t{number * 7}$", text, re.MULTILINE)
    assert ssyrk and sgemmtr and ssyrk[5] == ssyrk[4] and float(sgemmtr[7]) == min(float(sgemmtr[4]), float(sgemmtr[6]))
    for routine, least in (("ssyrk", ssyrk[5]), ("sgemmtr", sgemmtr[7])):
        assert f"  {routine}, 1 thread: speedup over the fastest peer {least} in the geometric mean" in text
    assert re.findall(r"level3: (\w+) is not run: no peer has it\n", text) == ["strmm", "ssymm", "ssyr2k", "strsm"]


def test_what_no_peer_has_is_told_once(tmp_path):
    text, lines = beside(FAKE_PEERS[1:], tmp_path, "--routine", "s,d", "--shapes", "25")
    assert [(line["routine"], line["case"]) for line in lines] == [("sgemmtr", "n=24"), ("sgemmtr", "n=25")]
    assert text.count("ssyrk is not run") == 1 and text.count("dgemmtr is not run") == 1
    quick = [x for x in QUICK if x != "--no-peers"] + ["--peer", FAKE_PEERS[0], "--shapes", "8", "--routine", "d"]
    result = run("bench", "--suite", "level3", *quick, cwd=tmp_path)
    assert (result.returncode, result.stderr) == (1, "wsgemm: bench: nothing was run; the lines above say why\n")


def test_shapes_are_written_as_for_autotune(tmp_path):
    (tmp_path / "shapes.txt").write_text("# a shape a line\n7 8 9\n16\n")
    _, lines = measured(tmp_path, "--suite", "square", "--routine", "s", "--shapes", "16,4x5x6,shapes.txt", "--shapes", "12")
    assert [line["case"] for line in lines] == ["n=16", "m=4 n=5 k=6", "m=7 n=8 k=9", "n=12"]
    for text, words in (("4,5,6;7,8,9", "'6;7'"), ("4x5", "'4x5'"), ("0", "'0'"), ("squares", "square, small, odd, skinny")):
        refuse(2, words, "bench: ", arguments=["bench", "--shapes", text, *QUICK], cwd=tmp_path)


def test_random_shapes_are_those_of_the_seed(tmp_path):
    def cases(*arguments):
        return [(line["case"], line["class"]) for line in measured(tmp_path, "--suite", "random", "--routine", "s", *arguments)[1]]

    first = cases("--count", "8")
    assert len(first) == 8 and {shape_class for _, shape_class in first} == {"square", "flat", "small", "ragged"}
    for idx, (case, shape_class) in enumerate(first):
        found = re.fullmatch(r"[NT]{2} (\d+)x(\d+)x(\d+) (\w+) lda\+\d+ ldb\+\d+ ldc\+\d+ seed=1 #(\d+)", case)
        assert found and found[4] == shape_class and int(found[5]) == idx
        assert all(1 <= int(found[i]) <= 2048 for i in (1, 2, 3))
    assert cases("--count", "4", "--seed", "1") == first[:4]
    other = cases("--count", "4", "--seed", "2")
    assert all(case.endswith(f"seed=2 #{idx}") for idx, (case, _) in enumerate(other))
    assert not {case.split(" lda")[0] for case, _ in other} & {case.split(" lda")[0] for case, _ in first}


def test_wide_shapes_are_told_by_size(tmp_path):
    text, lines = measured(tmp_path, "--suite", "wide", "--routine", "s", "--count", "3", "--seed", "5")
    assert [line["class"] for line in lines] == ["wide"] * 3
    sizes = [[int(x) for x in re.search(r" (\d+)x(\d+)x(\d+) wide ", line["case"]).groups()] for line in lines]
    assert all(4 <= x <= 4000 for shape in sizes for x in shape)


def test_updates_are_wide_shapes_that_add(tmp_path):
    """The same shapes, padded; the command compares results, with a C that was not zero."""
    quick = BESIDE_PEERS + ["--count", "12", "--seed", "6", "--json", "lines.jsonl"]
    check("bench", "--suite", "update", "--routine", "s,d,c,z", *quick, cwd=tmp_path)
    lines = [json.loads(line) for line in (tmp_path / "lines.jsonl").read_text(encoding="utf-8").splitlines()]
    _, wide = measured(tmp_path, "--suite", "wide", "--routine", "s", "--count", "12", "--seed", "6")
    assert {line["case"].split(" lda")[0] for line in lines} == {line["case"].split(" lda")[0] for line in wide}
    found = [re.search(r"wide lda\+(\d+) ldb\+(\d+) ldc\+(\d+) seed=6 #\d+ beta=1$", line["case"]) for line in lines]
    assert all(found) and all(len({x[i] for x in found}) > 6 and all(int(x[i]) < 64 for x in found) for i in (1, 2, 3))


def test_batched_products(tmp_path):
    """A batch is one call; its rate is that of all its products."""
    text, lines = measured(tmp_path, "--suite", "batched", "--routine", "d,c", "--shapes", "4,5x7x3")
    assert {line["case"] for line in lines} == {"n=4", "m=5 n=7 k=3"} and {line["routine"] for line in lines} == {"dgemm", "cgemm"}
    assert all(line["suite"] == "batched" and line["ours"] > 0 for line in lines), text


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="needs two cores")
def test_a_loop_without_a_core_says_nothing(tmp_path):
    """Suite busy: either the loop had its core, or nothing is reported."""
    arguments = ["--suite", "busy", "--shapes", "24x37x1378", "--samples", "1", "--no-peers", "--json", "lines.jsonl"]
    result = run("bench", *arguments, cwd=tmp_path)
    file = tmp_path / "lines.jsonl"
    lines = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()] if file.exists() else []
    if result.returncode == 0:
        assert [(line["peer"], line["case"]) for line in lines] == [("wsgemm 1 thread", "m=24 n=37 k=1378")]
        assert 0 < lines[0]["busy_share"] <= 1.1 and abs(lines[0]["ratio"] - lines[0]["theirs"] / lines[0]["ours"]) < 1e-3 * lines[0]["ratio"]
    else:
        assert re.search(r"the loop had 0\.\d\d of its core", result.stderr) and not lines


def test_processor_time_is_told(tmp_path):
    _, lines = measured(tmp_path, "--suite", "square", "--routine", "s", "--shapes", "64", "--processor-time")
    assert [line["clock"] for line in lines] == ["processor time"]
    _, lines = measured(tmp_path, "--suite", "square", "--routine", "s", "--shapes", "64")
    assert "clock" not in lines[0]
    arguments = ["bench", "--shapes", "64", "--threads", "2", "--processor-time"]
    refuse(2, "--processor-time needs --threads 1", arguments=arguments, cwd=tmp_path)


def test_seed_and_count_are_checked(tmp_path):
    for arguments, words in [
        (["--seed", "1"], ["belong to suites random, wide, update"]),
        (["--suite", "square", "--count", "3"], ["belong to suites random, wide, update"]),
        (["--suite", "random", "--count", "0"], ["--count takes 1 to"]),
        (["--suite", "random", "--seed", "-1"], ["--seed takes 0 to"]),
        (["--suite", "random", "--routine", "x"], ["routines are"]),
    ]:
        refuse(2, *words, arguments=["bench", *arguments], cwd=tmp_path)
