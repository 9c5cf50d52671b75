"""autotune() and the functions that carry what it has found. What searches or touches the user's file runs in a process of its own, whose
WSGEMM_TUNE names a file in a temporary folder."""

import doctest
import os
import pty
import subprocess
import sys
import textwrap

import numpy as np
import pytest
import wsgemm
from wsgemm import _level3_plan, _lib

QUICK = "budget_ms=40"
PRELUDE = "import numpy as np, os, signal, sys, wsgemm\n"


@pytest.fixture
def env(tmp_path):
    kept = {k: v for k, v in os.environ.items() if not k.startswith("WSGEMM_") or k == "WSGEMM_LIBRARY"}
    # As this process found the package, wherever it is.
    folders = os.pathsep.join([os.path.dirname(wsgemm.__path__[0]), *filter(None, [kept.get("PYTHONPATH")])])
    return {**kept, "PYTHONPATH": folders, "WSGEMM_TUNE": str(tmp_path / "tuning")}


def python(env, code):
    result = subprocess.run(
        [sys.executable, "-c", PRELUDE + textwrap.dedent(code)], env=env, capture_output=True, text=True, timeout=120
    )
    assert (result.returncode, result.stderr) == (0, ""), result.stderr
    return result.stdout


# ---- A search ------------------------------------------------------------------------------------------------------------


def test_results(env, tmp_path):
    python(env, f"""
        shapes = [(200, 180, 160), [150, 150, 150], np.array([190, 200, 210])]
        results = wsgemm.autotune(shapes, {QUICK})
        assert [r.shape for r in results] == [(200, 180, 160), (150, 150, 150), (190, 200, 210)]
        for r in results:
            assert r.before_us >= r.after_us > 0 and r.gain == r.before_us / r.after_us
            assert r.before.startswith("row=sgemm_") and r.after.startswith("row=sgemm_")
            assert r.n_measured > 1 and r.n_refused == 0 and r.interrupted is False
        lines = wsgemm.tuning_lines()
        assert len(lines) == 3 and wsgemm.tuning_lines({str(tmp_path / "tuning")!r}) == lines
        assert wsgemm.tuning_file() == {str(tmp_path / "tuning")!r}
    """)


@pytest.mark.parametrize(
    ("routine", "letter"),
    [("'sgemm'", "s"), ("'d'", "d"), ("np.complex64", "c"), ("'complex128'", "z"), ("np.dtype('f2')", "h"), ("'bgemm'", "b"),
     ("'bfloat16'", "b"), ("type('Type', (), {'__str__': lambda _: 'torch.bfloat16'})()", "b")],
)  # fmt: skip
def test_types(env, routine, letter):
    python(env, f"""
        wsgemm.autotune((200, 180, 160), routine={routine}, {QUICK})
        (line,) = wsgemm.tuning_lines()
        assert " type={letter} type_c={letter} " in line
    """)


@pytest.mark.parametrize("ops", ["NN", "nt", "TN", "CT"])
def test_matmul_finds_what_was_tuned(env, ops):
    # Shapes and ops are those of C-ordered arrays: matmul asks for exactly this entry.
    python(env, f"""
        wsgemm.autotune((300, 280, 160), routine="cgemm", ops={ops!r}, {QUICK})
        a = np.ones((300, 160) if {ops!r}[0] in "Nn" else (160, 300), "c8")
        b = np.ones((160, 280) if {ops!r}[1] in "Nn" else (280, 160), "c8")
        a = a if {ops!r}[0] in "Nn" else a.T
        b = b if {ops!r}[1] in "Nn" else b.T
        assert wsgemm.explain(a, b)["chosen_by"] == "tuning file"
        wsgemm.clear_tuning()
        assert wsgemm.explain(a, b)["chosen_by"] != "tuning file"
    """)


@pytest.mark.parametrize("routine", ["ssymm", "zhemm", "dsyrk", "cherk", "dsyr2k", "zher2k", "cgemmtr", "dtrmm", "strsm"])
@pytest.mark.parametrize("trans", ["N", "T", "C"])
@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize("lower", [0, 1])
def test_level3_is_tuned_as_it_is_called(monkeypatch, routine, trans, side, lower):
    # Of C-ordered arrays: the descriptor of the search is that of the call.
    tuned, called = [], []
    monkeypatch.setattr(_lib.library, "wsgemm_level3_autotune", lambda handle, desc, options: tuned.append(desc) or _lib.Status.SUCCESS)
    monkeypatch.setattr(_level3_plan, "_level3", lambda handle, desc: called.append(desc) or 0)
    m, n, k = 30, 20, 10
    wsgemm.autotune((m, n, k), routine=routine, ops=trans + "T", side=side, lower=lower)
    dtype = {"s": "f4", "d": "f8", "c": "c8", "z": "c16"}[routine[0]]
    name, more = routine[1:], {"lower": lower}

    def ones(rows, columns):
        return np.ones((rows, columns), dtype)

    transposed, is_right = trans != "N", side == "right"
    if name in ("symm", "hemm", "trmm", "trsm"):
        a, b = ones(*[n if is_right else m] * 2), ones(m, n)
        more["side"] = side
        if name in ("symm", "hemm"):
            getattr(wsgemm, name)(1, a, b, 0, ones(m, n), overwrite_c=1, **more)
        elif name == "trmm":
            wsgemm.trmm(1, a, b, trans="NTC".index(trans), overwrite_b=1, **more)
        else:
            wsgemm.solve_triangular(a, b, trans=trans, overwrite_b=True, **more)
    elif name == "gemmtr":
        a, b = ones(*((k, n) if transposed else (n, k))), ones(n, k)
        wsgemm.gemmtr(1, a, b, 0, ones(n, n), trans_a="NTC".index(trans), trans_b=1, overwrite_c=1, **more)
    else:
        a = ones(*((k, n) if transposed else (n, k)))
        b = () if name in ("syrk", "herk") else (a.copy(),)
        code = 0 if not transposed else 2 if name in ("herk", "her2k") else 1
        getattr(wsgemm, name)(1, a, *b, 0, ones(n, n), trans=code, overwrite_c=1, **more)
    search, call = (_lib.Level3Desc.from_buffer_copy(desc) for (desc,) in (tuned, called))
    fields = ["routine", "layout", "side", "uplo", "transa", "transb", "type", "m", "n", "k", "lda", "ldc", "batch_count"]
    fields += ["ldb"] if name not in ("syrk", "herk") else []
    of_search, of_call = ({field: getattr(desc, field) for field in fields} for desc in (search, call))
    if dtype[0] == "f" and trans == "C":  # of real matrices the same
        of_search["transa"] = of_search["transa"] if of_search["transa"] != _lib.Op.CONJ_TRANS else _lib.Op.TRANS
    if name in ("syrk", "herk", "syr2k", "her2k", "gemmtr"):
        of_search["side"] = of_call["side"]  # of no consequence
    assert of_search == of_call


def test_level3_is_kept(env):
    python(env, f"""
        wsgemm.autotune((200, 150, 100), routine="dtrsm", side="right", lower=1, {QUICK})
        (line,) = wsgemm.tuning_lines()
        assert line.startswith("trsm device=") and " side=left uplo=upper " in line and " m=150 n=200 k=150 " in line, line
    """)


def test_bits_do_not_change(env):
    python(env, """
        rng = np.random.default_rng(5)
        a, b = rng.standard_normal((2, 230, 230))
        before = wsgemm.matmul(a, b)
        wsgemm.autotune((230, 230, 230), routine=a.dtype, exhaustive=True)
        np.testing.assert_array_equal(wsgemm.matmul(a, b), before)
    """)


def test_nothing_measured(env):
    python(env, """
        steps = []
        (r,) = wsgemm.autotune((200, 200, 200), budget_ms=0, progress=lambda step: steps.append(step))
        assert (r.before_us, r.after_us, r.gain, r.n_measured) == (0, 0, 1, 0)
        assert [s.candidate_idx for s in steps] == list(range(steps[0].n_candidates)) and len(steps) > 5
        assert steps[0].model == 1 and steps[0].candidate == r.before
        models = [s.model for s in steps[1:]]
        assert models == sorted(models) and all(s.us == 0 for s in steps)
        assert wsgemm.tuning_lines() == []
        assert not os.path.exists(wsgemm.tuning_file())
        assert wsgemm.autotune([], budget_ms=0) == []
    """)


def test_nothing_to_choose(env):
    python(env, f"""
        one, two = wsgemm.autotune([(1, 300, 300), (200, 200, 200)], {QUICK})
        assert (one.gain, one.before, one.after, one.n_measured, one.interrupted) == (1, "", "", 0, False)
        assert two.n_measured > 0
    """)


def test_for_this_process_only(env, tmp_path):
    python(env, f"""
        wsgemm.autotune((200, 180, 160), file="", {QUICK})
        assert wsgemm.tuning_lines() == []
    """)
    assert not (tmp_path / "tuning").exists()


def test_the_handle_s_settings_count(env):
    python(env, f"""
        (r,) = wsgemm.autotune((300, 300, 300), handle=wsgemm.Handle(threads=1, kernel="sgemm_ref_8x6"), {QUICK})
        assert "row=sgemm_ref_8x6" in r.before and "row=sgemm_ref_8x6" in r.after
        assert " workers=1 " in wsgemm.tuning_lines()[0]
    """)


def test_a_file_that_cannot_be_written(env, tmp_path):
    (tmp_path / "file").write_text("")
    python(env, f"""
        try:
            wsgemm.autotune((200, 180, 160), file={str(tmp_path / "file" / "x")!r}, {QUICK})
        except wsgemm.WsgemmError as error:
            assert error.status is wsgemm.Status.FILE_ERROR and "file/x" in str(error)
        else:
            raise AssertionError
    """)


# ---- Progress ------------------------------------------------------------------------------------------------------------


def test_progress_function(env):
    python(env, f"""
        steps = []
        shapes = [(200, 180, 160), (150, 150, 150)]
        results = wsgemm.autotune(shapes, progress=steps.append, {QUICK})
        assert {{s.shape for s in steps}} == set(shapes)
        for s in steps:
            assert shapes[s.shape_idx] == s.shape and s.n_shapes == 2
            assert s.us > 0 and s.best_us > 0 and s.built_in_us > 0 and s.model > 0
            assert 0 <= s.candidate_idx < s.n_candidates and 0 < s.n_survivors <= s.n_candidates
            assert 0 <= s.elapsed_ms and s.budget_ms == 40
        assert steps[0].candidate == results[0].before
    """)


def test_progress_stops_the_search(env):
    python(env, f"""
        results = wsgemm.autotune([(200, 200, 200), (210, 210, 210)], progress=lambda step: step.candidate_idx >= 0, {QUICK})
        assert [r.interrupted for r in results] == [True]
        assert results[0].n_measured == 1
        assert wsgemm.tuning_lines() == []  # that nothing better was found so far says nothing
    """)


@pytest.mark.parametrize("error", ["ZeroDivisionError", "KeyboardInterrupt", "SystemExit"])
def test_exceptions_of_progress(env, error):
    python(env, f"""
        count = 0
        def progress(step):
            global count
            count += 1
            if step.shape_idx == 1:
                raise {error}("now")
        try:
            wsgemm.autotune([(200, 200, 200), (210, 210, 210), (220, 220, 220)], progress=progress, {QUICK})
        except {error} as raised:
            assert str(raised) == "now"
        else:
            raise AssertionError
        assert [" m=200 " in line for line in wsgemm.tuning_lines()] == [True]
        before = count
        wsgemm.autotune((220, 220, 220), {QUICK})  # all is as ever
        assert count == before
    """)


@pytest.mark.parametrize("progress", ["False", "lambda step: None"])
def test_ctrl_c(env, progress):
    python(env, f"""
        import threading, time
        signal.signal(signal.SIGINT, signal.default_int_handler)
        def interrupt_the_second():
            while not wsgemm.tuning_lines():
                time.sleep(0.01)
            os.kill(os.getpid(), signal.SIGINT)
        threading.Thread(target=interrupt_the_second).start()
        try:
            wsgemm.autotune([(200, 200, 200), (1300, 1300, 1300), (1310, 1300, 1300)], budget_ms=20000, progress={progress})
        except KeyboardInterrupt:
            pass
        else:
            raise AssertionError
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
        lines = wsgemm.tuning_lines()
        assert " m=200 " in lines[0] and not any(" m=1310 " in line for line in lines)
    """)


def test_in_another_thread(env):
    python(env, f"""
        import threading
        found = []
        thread = threading.Thread(target=lambda: found.extend(wsgemm.autotune((200, 200, 200), {QUICK})))
        thread.start()
        thread.join()
        assert found[0].n_measured > 0
    """)


def on_a_terminal(env, code, **more):
    """(exit code, what a terminal was sent on stderr)"""
    ours, theirs = pty.openpty()
    process = subprocess.Popen([sys.executable, "-c", PRELUDE + textwrap.dedent(code)], env={**env, **more}, stderr=theirs)
    os.close(theirs)
    sent = b""
    while True:
        try:
            part = os.read(ours, 65536)
        except OSError:  # EIO: the other side is closed
            break
        if not part:
            break
        sent += part
    os.close(ours)
    return process.wait(60), sent.decode()


def test_the_line_on_a_terminal(env):
    code, sent = on_a_terminal(env, "wsgemm.autotune([(200, 200, 200), (1300, 1300, 1300)], budget_ms=500, progress=True)")
    drawn = [x for x in sent.split("\r\033[K") if x]
    assert code == 0 and "\n" not in sent and sent.endswith("\r\033[K")
    assert max(map(len, drawn)) < 80
    assert drawn[0].startswith("1/2 sgemm nn 200x200x200: ") and drawn[-1].startswith("2/2 sgemm nn 1300x1300x1300: ")
    code, sent = on_a_terminal(env, "wsgemm.autotune((200, 200, 200), budget_ms=40)")
    assert (code, sent) == (0, "")


def test_no_terminal(env):
    assert python(env, f"wsgemm.autotune((200, 200, 200), progress=True, {QUICK})") == ""
    python(env, f"sys.stderr = None; wsgemm.autotune((200, 200, 200), progress=True, {QUICK})")


# ---- Arguments -----------------------------------------------------------------------------------------------------------

BAD = [
    # shapes, keywords, exception, all these words in the message
    ("10x20x30", {}, TypeError, ["10x20x30"]),
    ([(1, 2)], {}, TypeError, ["(1, 2)"]),
    ([(1, 2, 3, 4)], {}, TypeError, ["(1, 2, 3, 4)"]),
    ([(1.5, 2, 3)], {}, TypeError, ["1.5"]),
    ([1, 2, 3, 4], {}, TypeError, ["a shape is 1"]),
    (7, {}, TypeError, []),
    ([(1, 2, 2**63)], {}, ValueError, ["beyond"]),
    ((9, 9, 9), {"routine": "fgemm"}, ValueError, ["'fgemm'", "sgemm"]),
    ((9, 9, 9), {"routine": "gemm"}, ValueError, ["'gemm'"]),
    ((9, 9, 9), {"routine": "hsymm"}, ValueError, ["'hsymm'", "dtrsm"]),
    ((9, 9, 9), {"routine": "dherk"}, ValueError, ["'dherk'"]),
    ((9, 9, 9), {"routine": "dsymm", "side": 2}, ValueError, ["side is 2"]),
    ((9, 9, 9), {"routine": int}, TypeError, ["int64", "float16"]),
    ((9, 9, 9), {"routine": None}, TypeError, []),
    ((9, 9, 9), {"routine": ">f4"}, TypeError, ["native"]),
    ((9, 9, 9), {"ops": "N"}, ValueError, ["'N'"]),
    ((9, 9, 9), {"ops": "NX"}, ValueError, ["'NX'"]),
    ((9, 9, 9), {"ops": None}, ValueError, ["None"]),
    ((9, 9, 9), {"math": "exact"}, ValueError, ["'exact'", "'pedantic'"]),
    ((9, 9, 9), {"device": -1}, ValueError, ["-1"]),
    ((9, 9, 9), {"device": "cpu"}, TypeError, []),
    ((9, 9, 9), {"beta": "x"}, ValueError, []),
    ((9, 9, 9), {"beta": 1j}, TypeError, []),
    ((9, 9, 9), {"beta": 1e39}, ValueError, ["1e+39"]),
    ((9, 9, 9), {"beta": 10**400}, ValueError, ["float32"]),
    ((9, 9, 9), {"beta": float("nan")}, ValueError, ["nan"]),
    ((9, 9, 9), {"budget_ms": -5}, ValueError, ["-5"]),
    ((9, 9, 9), {"budget_ms": float("nan")}, ValueError, ["nan"]),
    ((9, 9, 9), {"seed": 1.5}, TypeError, []),
    ((9, 9, 9), {"file": 3}, TypeError, []),
    ((9, 9, 9), {"file": "a\0b"}, ValueError, ["NUL"]),
    ((9, 9, 9), {"progress": "yes"}, TypeError, ["'yes'"]),
]


@pytest.mark.parametrize(("shapes", "keywords", "exception", "words"), BAD)
def test_bad_arguments(shapes, keywords, exception, words):
    keywords = {"file": "", "budget_ms": 0, **keywords}
    with pytest.raises(exception) as raised:
        wsgemm.autotune(shapes, **keywords)
    for word in words:
        assert word in str(raised.value)


def test_bad_sizes():
    with pytest.raises(wsgemm.WsgemmError) as raised:
        wsgemm.autotune((-1, 5, 5), budget_ms=0)
    assert raised.value.status is wsgemm.Status.INVALID_VALUE
    with pytest.raises(wsgemm.WsgemmError) as raised:
        wsgemm.autotune((2**24, 2**24, 2**24), budget_ms=0, file="")
    assert raised.value.status is wsgemm.Status.ALLOC_FAILED


def test_a_gpu_that_is_not_there(env):
    python({**env, "CUDA_VISIBLE_DEVICES": "-1"}, """
        try:
            wsgemm.autotune((200, 200, 200), device=0)
        except wsgemm.WsgemmError as error:
            assert error.status is wsgemm.Status.NO_DEVICE, error
        else:
            raise AssertionError
    """)


@pytest.mark.parametrize(("routine", "beta", "read"), [("h", 0.5, lambda b: b.s), ("d", -2, lambda b: b.d), ("c", 1, lambda b: b.c.re)])
def test_beta_is_handed_over(monkeypatch, routine, beta, read):
    told = []
    monkeypatch.setattr(_lib.library, "wsgemm_autotune", lambda handle, desc, options: told.append(desc) or _lib.Status.SUCCESS)
    wsgemm.autotune((30, 20, 10), routine=routine, beta=beta)
    wsgemm.autotune((30, 20, 10), routine=routine)
    descs = [_lib.GemmDesc.from_buffer_copy(desc.ljust(_lib.DESC_BYTES, b"\0")) for desc in told]
    assert [read(desc.beta) for desc in descs] == [beta, 0] and [read(desc.alpha) for desc in descs] == [1, 1]


def test_results_do_not_change():
    (result,) = wsgemm.autotune((64, 200, 64), budget_ms=0)
    with pytest.raises(AttributeError):
        result.gain = 2


# ---- Files ---------------------------------------------------------------------------------------------------------------


@pytest.fixture
def lines(env, tmp_path):
    python(env, f"wsgemm.autotune([(200, 180, 160), (150, 150, 150)], file={str(tmp_path / 'found')!r}, {QUICK})")
    found = wsgemm.tuning_lines(tmp_path / "found")
    assert len(found) == 2
    return found


def test_round_trip(lines, tmp_path):
    other = tmp_path / "folder" / "other"
    assert wsgemm.tuning_lines(other) == []
    assert wsgemm.import_tuning(lines, other) == 2
    assert wsgemm.tuning_lines(str(other)) == lines
    wsgemm.clear_tuning(other)
    assert wsgemm.tuning_lines(other) == []
    assert wsgemm.import_tuning((tmp_path / "found").read_text(), other) == 2
    assert wsgemm.import_tuning([line + "\n" for line in lines], other) == 2
    assert other.read_text() == (tmp_path / "found").read_text()
    assert wsgemm.import_tuning([], other) == 0
    wsgemm.clear_tuning(tmp_path / "none")


def test_damaged_lines(lines, tmp_path):
    damaged = lines[0].replace(" m=", " m=1")
    assert wsgemm.import_tuning([damaged, lines[1] + "\0x", lines[1]], tmp_path / "x") == 1
    assert wsgemm.tuning_lines(tmp_path / "x") == [lines[1]]
    for text in (damaged, "Dear diary", "\0\0", "gemm device=\udcff".encode("utf-8", "replace").decode()):
        with pytest.raises(wsgemm.WsgemmError) as raised:
            wsgemm.import_tuning([text] if "\0" not in text else [text, "x"], tmp_path / "x")
        assert raised.value.status is wsgemm.Status.INVALID_VALUE
    with open(tmp_path / "x", "a") as file:
        file.write(damaged + "\n")
    assert wsgemm.tuning_lines(tmp_path / "x") == [lines[1]]


def test_files_that_are_not_ours(lines, tmp_path):
    notes = tmp_path / "notes"
    notes.write_text("Dear diary\n")
    assert wsgemm.tuning_lines(notes) == []
    for call in (lambda: wsgemm.import_tuning(lines, notes), lambda: wsgemm.clear_tuning(notes)):
        with pytest.raises(wsgemm.WsgemmError) as raised:
            call()
        assert raised.value.status is wsgemm.Status.FILE_ERROR
    assert notes.read_text() == "Dear diary\n"


def test_the_user_s_file(env, tmp_path, lines):
    python(env, f"""
        a = np.ones((200, 160), "f4"), np.ones((160, 180), "f4")
        assert wsgemm.explain(*a)["chosen_by"] != "tuning file"
        assert wsgemm.import_tuning({lines!r}) == 2
        assert wsgemm.explain(*a)["chosen_by"] == "tuning file"
    """)
    python(env, """
        a = np.ones((200, 160), "f4"), np.ones((160, 180), "f4")
        assert wsgemm.explain(*a)["chosen_by"] == "tuning file"
    """)
    python({**env, "WSGEMM_TUNE": "off"}, """
        a = np.ones((200, 160), "f4"), np.ones((160, 180), "f4")
        assert wsgemm.explain(*a)["chosen_by"] == "model"
        assert wsgemm.tuning_file() is None and wsgemm.tuning_lines() == []
    """)
    home = {k: v for k, v in env.items() if k != "WSGEMM_TUNE"}
    home |= {"HOME": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path / "cache")}
    assert python(home, "print(wsgemm.tuning_file())") == f"{tmp_path}/cache/wsgemm/tuning\n"
    del home["XDG_CACHE_HOME"]
    assert python(home, "print(wsgemm.tuning_file())") == f"{tmp_path}/.cache/wsgemm/tuning\n"


def test_docstrings():
    failures, n_tests = doctest.testmod(sys.modules["wsgemm._autotune"])
    assert n_tests > 0 and failures == 0
