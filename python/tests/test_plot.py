"""Pictures of measurements: every one of the table from made-up results, and what happens without data or matplotlib."""

import importlib.util
import json
import pathlib
import subprocess
import sys
import xml.etree.ElementTree as ElementTree

import pytest
import wsgemm_measurements as made_up
from wsgemm import plot
from wsgemm.plot import _heat, _landscape, _odd, _results
from wsgemm.plot.__main__ import main

REAL_RESULTS = pathlib.Path(__file__).resolve().parents[2] / "bench" / "results"


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    folder = tmp_path_factory.mktemp("results")
    made_up.write_all(folder)
    return folder


@pytest.fixture
def needs_matplotlib():
    pytest.importorskip("matplotlib")


def run(capsys, *arguments):
    code = main([str(a) for a in arguments])
    printed = capsys.readouterr()
    for line in printed.err.splitlines():
        assert line.startswith("wsgemm: plot: ")
    return code, printed.out.splitlines(), printed.err.splitlines()


def figures_of(picture, device):
    from wsgemm.plot._style import in_style

    with in_style():
        return [drawing.figure for drawing in picture.draw(device)]


# ---- Without matplotlib --------------------------------------------------------------------------------------------------


def test_without_matplotlib(results, tmp_path):
    """The package can be imported; drawing says what to install, and writes nothing."""
    program = f"""
import sys
sys.modules["matplotlib"] = None
import wsgemm.plot
assert wsgemm.plot.PICTURES and wsgemm.plot.read(__import__("pathlib").Path({str(results)!r}))
from wsgemm.plot.__main__ import main
sys.exit(main(["--results", {str(results)!r}, "--out", {str(tmp_path / "out")!r}]))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (1, "")
    advice = f"{sys.executable} -m pip install matplotlib"
    assert f": {advice} (" in done.stderr and done.stderr.count("\n") == 1
    assert not (tmp_path / "out").exists()
    if importlib.util.find_spec("matplotlib") and importlib.util.find_spec("pip"):  # what is there already needs no network
        assert subprocess.run(advice.split() + ["--no-deps"], capture_output=True).returncode == 0


def test_nothing_of_matplotlib_is_loaded_by_import():
    program = "import sys, wsgemm.plot.__main__; sys.exit(any(name.startswith('matplotlib') for name in sys.modules))"
    assert subprocess.run([sys.executable, "-c", program]).returncode == 0


# ---- Results and their names ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("case", "shape"),
    [
        ("n=64", ("NN", 64, 64, 64)),
        ("m=1 n=4096 k=16", ("NN", 1, 4096, 16)),
        ("NT row n=1024", ("NT row", 1024, 1024, 1024)),
        ("NN 8192x128x4096", ("NN", 8192, 128, 4096)),
        ("tn 8x16x32", ("TN", 8, 16, 32)),
        ("NN 4096x4096x4096 ld+1", None),
        ("priority n=8192", None),
    ],
)
def test_shape_of(case, shape):
    found = _results.shape_of({"case": case})
    assert (found and (found.ops, found.m, found.n, found.k)) == shape


def test_intensity():
    assert _results.intensity("sgemm", _results.Shape("NN", 6, 6, 6)) == pytest.approx(1)
    assert _results.intensity("zgemm", _results.Shape("NN", 4, 1, 2)) == pytest.approx(8 * 8 / (16 * (8 + 2 + 4)))


def test_best_peer_counts():
    record = {"suite": "square", "routine": "sgemm", "case": "n=8", "threads": 1}
    records = [{**record, "peer": peer, "ratio": ratio} for peer, ratio in (("a", 1.2), ("b", 0.9), ("wsgemm x", 0.1))]
    assert _results.beside_best_peer(records) == [records[1]]


def test_landscape_takes_the_best_of_several():
    lines = [made_up.landscape_line("64x64", 2, t) for t in (30.0, 10.0, 20.0)] + [made_up.landscape_line("64x64", 4, 15.0)]
    assert _landscape._cells(lines) == {("64x64", 2): 10, ("64x64", 4): 15}


def test_random_products_meet_in_cells():
    """By the ranges of m, n and k; what was not drawn at random is in none."""
    cases = [("TN 65x64x256", 2.0), ("NN 256x17x9", 8.0), ("NT 65x65x257", 3.0), ("NN 1x4x2049", 0.5)]
    records = [{"case": f"{case} uniform lda+0 ldb+8 ldc+0 seed=7 #1", "ratio": ratio} for case, ratio in cases]
    cells = _heat._random_cells([*records, {"case": "NN 64x64x64", "ratio": 9.0}, {"case": "NN 64x64x64 ld+1", "ratio": 9.0}])
    assert {depth: dict(found) for depth, found in cells.items()} == {
        256: {(256, 64): pytest.approx(4.0)},
        2048: {(256, 256): pytest.approx(3.0)},
        float("inf"): {(1, 4): pytest.approx(0.5)},
    }


@pytest.mark.parametrize(
    ("text", "words"),
    [(b"{\n", "square.jsonl:1: "), (b'{"a": 1}\n[]\n', "square.jsonl:2: not a JSON object"), (b"\xff\n", "square.jsonl: ")],
)
def test_broken_results(tmp_path, capsys, text, words):
    (tmp_path / "device").mkdir()
    (tmp_path / "device" / "square.jsonl").write_bytes(text)
    code, _, errors = run(capsys, "--results", tmp_path, "--out", tmp_path / "out")
    assert code == 1 and len(errors) == 1 and words in errors[0]


def test_no_results(tmp_path, results, capsys):
    for arguments, words in [
        (["--results", tmp_path / "none"], "there is no folder"),
        (["--results", tmp_path], "holds no results"),
        (["--results", results, "--device", "abacus"], f"no results of abacus; there are {made_up.CPU}, {made_up.GPU}"),
    ]:
        code, printed, errors = run(capsys, *arguments, "--out", tmp_path / "out")
        assert (code, printed, len(errors)) == (1, [], 1) and words in errors[0]


def test_unknown_picture(results, tmp_path, capsys):
    with pytest.raises(SystemExit) as exit_of:
        main(["--results", str(results), "--out", str(tmp_path), "--only", "roofline,mona_lisa"])
    assert exit_of.value.code == 2
    assert "mona_lisa" in capsys.readouterr().err


# ---- Drawing -------------------------------------------------------------------------------------------------------------


def test_table_of_pictures():
    for device in ("cpu", "gpu"):
        shown = [p for p in plot.PICTURES if p.of in (device, "any")]
        assert len({p.name for p in shown}) == len({p.file for p in shown}) == len(shown)
    assert all(p.suites for p in plot.PICTURES)


def test_every_picture_is_drawn(results, tmp_path, capsys, needs_matplotlib):
    code, printed, errors = run(capsys, "--results", results, "--out", tmp_path)
    assert code == 0
    assert errors == [f"wsgemm: plot: {made_up.CPU}: no picture landscape: there is no landscape.jsonl"]
    assert sorted(printed) == sorted(str(path) for path in tmp_path.rglob("*.*"))
    for device in plot.read(results):
        for picture in plot.PICTURES:
            if picture.fits(device) and (device.name, picture.name) != (made_up.CPU, "landscape"):
                assert list((tmp_path / device.name).glob(f"{picture.file}*.png")), picture.name
    assert (tmp_path / made_up.GPU / "landscape_sgemm_f16x3.svg").exists()
    for path in printed:
        data = pathlib.Path(path).read_bytes()
        if path.endswith(".png"):
            assert data.startswith(b"\x89PNG") and int.from_bytes(data[16:20], "big") == 1296
            assert b"tIME" not in data
        else:
            assert ElementTree.fromstring(data).tag.endswith("svg")
            assert b"dc:date" not in data


def test_pictures_are_the_same_on_every_run(results, tmp_path, capsys, needs_matplotlib):
    for name in ("fonts", "one", "two"):  # the first drawing of a process finds its fonts
        assert run(capsys, "--results", results, "--out", tmp_path / name, "--only", "roofline,landscape,preemption")[0] == 0
    files = [path.relative_to(tmp_path / "one") for path in (tmp_path / "one").rglob("*.*")]
    assert len(files) > 6
    for file in files:
        assert (tmp_path / "one" / file).read_bytes() == (tmp_path / "two" / file).read_bytes(), file


@pytest.mark.parametrize("picture", plot.PICTURES, ids=lambda p: f"{p.name}-{p.of}")
def test_captions_and_axes(results, picture, needs_matplotlib):
    drawn = 0
    for device in plot.read(results):
        if not picture.fits(device) or not device.records(*picture.suites):
            continue
        for figure in figures_of(picture, device):
            drawn += 1
            caption = " ".join(figure.texts[1].get_text().split())
            assert f"Made-up {device.name}" in caption and made_up.COMMIT in caption and made_up.DATE in caption
            shown = [ax for ax in figure.axes if ax.get_visible()]
            assert any(ax.get_xlabel() for ax in shown)
            figure.draw_without_rendering()
            box = figure.bbox
            for text in [*figure.texts, *(t for ax in shown for t in (ax.title, ax.xaxis.label, ax.yaxis.label))]:
                place = text.get_window_extent()
                assert place.x0 >= box.x0 and place.x1 <= box.x1 and place.y0 >= box.y0 and place.y1 <= box.y1, text.get_text()
            for legend in figure.legends:
                assert not any(legend.get_window_extent().overlaps(ax.get_window_extent()) for ax in shown)
    assert drawn


def test_what_is_missing_is_named_and_left_out(results, tmp_path, capsys, needs_matplotlib):
    lines = [made_up.landscape_line("64x64", 2, 10.0)]
    del lines[0]["tile"]
    made_up.write(tmp_path, "device", {"landscape": lines, "heat": []})
    code, printed, errors = run(capsys, "--results", tmp_path, "--out", tmp_path / "out", "--only", "landscape,heat")
    assert (code, printed) == (1, [])
    assert "no picture heat: there is no heat.jsonl" in errors[0]
    assert "no picture landscape" in errors[1] and "'tile'" in errors[1]
    assert "nothing was drawn" in errors[2]


# Odd fields, and what is said of a record that has them.
ODD = [
    ({"case": "n=0"}, "its case 'n=0' is a product without elements"),
    ({"case": "NN 64x0x64"}, "its case 'NN 64x0x64' is a product without elements"),
    ({"case": f"n={10**30}"}, f"its case 'n={10**30}' is beyond any sensible size"),
    ({"case": "n=" + "9" * 5000}, "is beyond any sensible size"),
    ({"ours": float("inf"), "max": float("inf")}, "is inf"),
    ({"ratio": float("-inf"), "max": float("nan")}, "is nan"),
    ({"case": "n=1e3", "peak_fraction": float("nan")}, "its peak_fraction is nan"),
    ({"ours": 10**400}, "its ours is 1000000"),
    ({"case": "n=64", "routine": "qgemm"}, "its routine 'qgemm' is unknown"),
    ({"theirs": 0, "ideal": 0}, "its theirs is 0"),
    ({"ours": "fast", "over_ideal": "low"}, "its ours is 'fast'"),
    ({"ratio": None, "times_no_prologue": True}, "its ratio is None"),
    ({"threads": "two"}, "its threads is 'two'"),
    ({"coarse": -1}, "its coarse is -1"),
    ({"device": 5}, "its device is 5"),
    ({"commit": None}, "its commit is None"),
]


def write_odd(folder):
    """The made-up results, with odd records among them."""
    made_up.write_all(folder)
    n_odd = 0
    for path in folder.glob("*/*.jsonl"):
        lines = path.read_text().splitlines()
        for fields, _ in ODD:
            record = json.loads(lines[0])
            lines.insert(len(lines) // 2, json.dumps({**record, **fields}))
            n_odd += 1
        del record["date"]
        path.write_text("\n".join([*lines, json.dumps(record), json.dumps({})]))


def test_odd_records_are_left_out_and_named(results, tmp_path, capsys, needs_matplotlib):
    write_odd(tmp_path / "odd")
    assert run(capsys, "--results", results, "--out", tmp_path / "fonts", "--only", "steal")[0] == 0  # finds the fonts
    for name, folder in (("clean", results), ("drawn", tmp_path / "odd")):
        code, printed, errors = run(capsys, "--results", folder, "--out", tmp_path / name)
        assert code == 0
    files = {path.relative_to(tmp_path / "clean"): path.read_bytes() for path in (tmp_path / "clean").rglob("*.*")}
    assert files == {path.relative_to(tmp_path / "drawn"): path.read_bytes() for path in (tmp_path / "drawn").rglob("*.*")}
    assert [line for line in errors if "no picture" in line] == [
        f"wsgemm: plot: {made_up.CPU}: no picture landscape: there is no landscape.jsonl"
    ]
    square = [line for line in errors if f"{made_up.CPU}: square.jsonl: " in line]
    for fields, words in [*ODD, ({}, "it has no date"), ({}, "it has no suite")]:
        assert any("left out" in line and words in line for line in square), (fields, words)
    assert len(square) <= len(ODD) + 2


def test_odd_records_of_one_kind_are_named_in_one_line(tmp_path, capsys, needs_matplotlib):
    lines = [made_up.landscape_line("64x64", 2, 10.0)] * 3 + [made_up.landscape_line("64x64", 2, 0)] * 40
    made_up.write(tmp_path, "device", {"landscape": lines})
    code, printed, errors = run(capsys, "--results", tmp_path, "--out", tmp_path / "out", "--only", "landscape")
    assert code == 0 and len(printed) == 2
    assert errors == ["wsgemm: plot: device: landscape.jsonl: lines 4, 5, 6, 7, 8 and 35 more are left out: its ours is 0"]
    made_up.write(tmp_path, "device", {"landscape": lines[3:]})
    code, printed, errors = run(capsys, "--results", tmp_path, "--out", tmp_path / "out", "--only", "landscape")
    assert code == 1 and "no picture landscape: all records of its suites are left out" in errors[1]


NAMES = [
    "a$b$c",
    "$",
    "$\\frac{",
    "\\$x_1^",
    "a\ud800b",
    "a\udcffb",
    "tab\there",
    "nul\0",
    "line\nend",
    "--><b>&amp;",
    "_hidden",
    "%s {x}",
]


@pytest.mark.parametrize("name", NAMES, ids=ascii)
def test_names_are_shown_as_they_are(tmp_path, capsys, needs_matplotlib, name):
    line = made_up.landscape_line("64x64", 2, 10.0, case=name, numerics=name)
    made_up.write(tmp_path, "device", {"landscape": [{**line, "peer": name}]}, {"device": name, "commit": name, "date": name})
    code, printed, errors = run(capsys, "--results", tmp_path, "--out", tmp_path / "out", "--only", "landscape")
    assert code == 0 and len(printed) == 2
    ElementTree.parse(printed[1])
    is_escaped = not name.isprintable()
    assert len(errors) == is_escaped and all("line 1 is shown with escapes" in line for line in errors)
    (device,) = plot.read(tmp_path)
    (figure,) = figures_of(next(p for p in plot.PICTURES if p.name == "landscape"), _odd.presentable(device, device.suites)[0])
    shown = "".join(c if c.isprintable() else ascii(c)[1:-1] for c in name)
    assert all(shown in text for text in (figure.axes[0].get_title(loc="left"), figure.texts[1].get_text().replace("\n", " ")))


def test_a_picture_that_fails_stops_no_other(results, tmp_path, capsys, needs_matplotlib, monkeypatch):
    for where in ("draw", "save"):

        def fail(*_arguments, **_more):
            raise ZeroDivisionError("on purpose")

        with monkeypatch.context() as patch:
            if where == "draw":
                patch.setattr("wsgemm.plot._heat._draw_panel", fail)
            else:
                patch.setattr("wsgemm.plot._style._numbered", fail)
            code, printed, errors = run(
                capsys, "--results", results, "--out", tmp_path / where, "--device", made_up.CPU, "--only", "heat,steal"
            )
        assert len(printed) == (2 if where == "draw" else 0)
        assert [path.name for path in (tmp_path / where).rglob("*.*")] == [pathlib.Path(p).name for p in printed]
        assert "no picture heat: a record lacks something, or is odd (ZeroDivisionError: on purpose)" in errors[0]


def test_a_disk_that_is_full_is_told(results, tmp_path, capsys, needs_matplotlib):
    (tmp_path / "out").write_text("no folder")
    code, printed, errors = run(capsys, "--results", results, "--out", tmp_path / "out", "--only", "steal")
    assert (code, printed, len(errors)) == (1, [], 1) and "out" in errors[0]


def test_peers_are_not_made_up(tmp_path, capsys, needs_matplotlib):
    """Without peers there is no speed-up, but a roofline."""
    record = {"suite": "square", "routine": "sgemm", "policy": "auto", "threads": 1, "peer": "none", "ours": 9.0, "unit": "GF/s"}
    made_up.write(tmp_path, "device", {"square": [{**record, "case": f"n={n}", "peak_fraction": 0.5} for n in (64, 128)]})
    code, printed, errors = run(capsys, "--results", tmp_path, "--out", tmp_path / "out", "--only", "roofline,speedup")
    assert code == 0 and all("roofline" in path for path in printed)
    assert len(errors) == 1 and "no picture speedup" in errors[0]


def words_of(figure):
    import matplotlib.text

    return [text.get_text().replace("\n", " ") for text in figure.findobj(matplotlib.text.Text) if text.get_text()]


def test_labels_are_the_fields_words(results, needs_matplotlib):
    """A ratio of speeds is a speedup over whom it is; nothing is called ours or theirs, and an SM has one name."""
    words = {}
    for device in _results.read(results):
        for picture in plot.PICTURES:
            if picture.fits(device) and device.records(*picture.suites):
                for figure in figures_of(picture, device):
                    words.setdefault((picture.name, device.name), []).extend(words_of(figure))
    assert len(words) == 14
    for where, texts in words.items():
        for private in ("their time", "over ours", "ours or", "multiprocessor", "time over"):
            assert not [text for text in texts if private in text], where
    labels = [
        ("speedup", made_up.GPU, "speedup over cuBLAS"),
        ("speedup", made_up.CPU, "speedup over OpenBLAS"),
        ("heat", made_up.GPU, "speedup over cuBLAS"),
        ("heat", made_up.CPU, "speedup over OpenBLAS"),
        ("random_heat", made_up.GPU, "hgemm, k <= 256"),
        ("random_heat", made_up.GPU, "n, at most"),
        ("sharing", made_up.GPU, "time relative to the idle GPU"),
        ("sharing", made_up.GPU, "SMs held"),
        ("preemption_cost", made_up.GPU, "time relative to the fastest kernel"),
        ("steal", made_up.CPU, "time relative to ideal"),
    ]
    for name, device, label in labels:
        assert label in words[name, device], (name, words[name, device])


@pytest.mark.skipif(not REAL_RESULTS.is_dir(), reason="the sources' bench/results are not there")
def test_real_results(tmp_path, capsys, needs_matplotlib):
    code, printed, errors = run(capsys, "--results", REAL_RESULTS, "--out", tmp_path)
    assert code == 0
    assert len(printed) >= 24
    assert all("there is no" in line for line in errors)
