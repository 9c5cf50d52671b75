"""Files that lie, are not what they should be, or cannot be written: one clear line, exit code 1, nothing left behind."""

import os
import shutil
import signal
import subprocess
import time

import numpy as np
import pytest
from command import COMMAND, check, clean_environment, contents, load, refuse, run, save

CAN_DROP_RIGHTS = os.geteuid() != 0 or (
    shutil.which("setpriv") and subprocess.run(["setpriv", "--bounding-set=-dac_override,-dac_read_search", "true"]).returncode == 0
)


@pytest.fixture
def folder(tmp_path):
    save(tmp_path / "good.npy", np.arange(12.0).reshape(3, 4))
    return tmp_path


def file_of(dictionary, data=b"", version=1):
    """A .npy file with this text as its header."""
    text = dictionary.encode("latin-1") + b"\n"
    return b"\x93NUMPY" + bytes([version, 0]) + len(text).to_bytes(2 if version == 1 else 4, "little") + text + data


def header(descr="'<f8'", order="False", shape="(4, 2)"):
    return f"{{'descr': {descr}, 'fortran_order': {order}, 'shape': {shape}, }}"


GOOD = file_of(header(), bytes(64))

BAD_FILES = {
    "empty": (b"", ["is empty"]),
    "text": (b"1 2 3\n4 5 6\n", ["is no .npy file"]),
    "zip (.npz)": (b"PK\x03\x04" + bytes(60), ["is no .npy file"]),
    "magic cut": (GOOD[:4], ["truncated within the header"]),
    "version cut": (GOOD[:7], ["truncated within the header"]),
    "length cut": (GOOD[:9], ["truncated within the header"]),
    "header cut": (GOOD[:30], ["truncated within the header"]),
    "data missing": (GOOD[:-64], ["truncated", "64 bytes", "holds 0"]),
    "data cut by one byte": (GOOD[:-1], ["truncated", "64 bytes", "holds 63"]),
    "one byte too many": (GOOD + b"x", ["junk", "64 bytes of data"]),
    "two arrays in a row": (GOOD + GOOD, ["bytes of junk"]),
    "version 4": (file_of(header(), bytes(64), 4), ["version 4.0"]),
    "version 1.7": (GOOD[:7] + b"\7" + GOOD[8:], ["version 1.7"]),
    "header length beyond the file": (b"\x93NUMPY\1\0\xff\xff{}", ["truncated within the header"]),
    "header of 4 GiB": (b"\x93NUMPY\2\0\xff\xff\xff\xff{}", ["truncated within the header"]),
    "header of 100 kB": (file_of(header() + 100000 * " ", bytes(64), 2), ["absurdly long"]),
    "no dictionary": (file_of("[1, 2]"), ["damaged header"]),
    "no shape": (file_of("{'descr': '<f8', 'fortran_order': False}"), ["shape is missing"]),
    "shape twice": (file_of(header()[:-1] + "'shape': (4, 2)}", bytes(64)), ["damaged header", "'shape'"]),
    "unknown key": (file_of("{'evil': 1}"), ["damaged header", "'evil'"]),
    "code": (file_of("{'descr': __import__('os').system('true')}"), ["damaged header"]),
    "line feed in a key": (file_of("{'a\nb': 1}"), ["damaged header"]),
    "control character in descr": (file_of(header(descr="'\x1b[31m'"), bytes(64)), ["element type '?[31m'"]),
    "negative size": (file_of(header(shape="(-4, 2)"), bytes(64)), ["damaged header", "shape"]),
    "float size": (file_of(header(shape="(4.0, 2)"), bytes(64)), ["damaged header"]),
    "size beyond 64 bits": (file_of(header(shape="(99999999999999999999999, 2)")), ["truncated"]),
    "size that wraps to 4": (file_of(header(shape="(18446744073709551620, 2)"), bytes(64)), ["truncated"]),
    "product that wraps to 0": (file_of(header(shape="(4294967296, 4294967296)")), ["truncated"]),
    "bytes that wrap to 0": (file_of(header(shape="(2305843009213693952, 1)")), ["truncated"]),
    "absurd size": (file_of(header(shape="(1000000000, 1000000000)")), ["truncated", "8000000000000000000 bytes", "holds 0"]),
    "0-D": (file_of(header(shape="()"), bytes(8)), ["0-D"]),
    "1-D": (file_of(header(shape="(8,)"), bytes(64)), ["1-D"]),
    "3-D": (file_of(header(shape="(2, 2, 2)"), bytes(64)), ["3-D"]),
    "integers": (file_of(header(descr="'<i8'"), bytes(64)), ["'<i8'", "f2, f4, f8, c8, c16"]),
    "bfloat16": (file_of(header(descr="'<bf16'"), bytes(16)), ["'<bf16'"]),
    "long double": (file_of(header(descr="'<f16'"), bytes(128)), ["'<f16'"]),
    "objects": (file_of(header(descr="'|O'"), bytes(64)), ["'|O'"]),
    "records": (file_of(header(descr="[('x', '<f8')]"), bytes(64)), ["records"]),
}


@pytest.mark.parametrize("case", BAD_FILES)
@pytest.mark.parametrize("role", ["A", "B", "C0"])
def test_bad_file(folder, case, role):
    data, words = BAD_FILES[case]
    (folder / "bad.npy").write_bytes(data)
    files = {"A": ["bad.npy", "good.npy"], "B": ["good.npy", "bad.npy"], "C0": ["good.npy", "good.npy", "--c", "bad.npy"]}[role]
    refuse(1, "bad.npy: ", *words, arguments=["gemm", *files, "--transb", "t", "-o", "c.npy"], cwd=folder)


def test_the_good_file_that_the_bad_ones_are_made_of(folder):
    (folder / "b.npy").write_bytes(GOOD)
    check("gemm", "good.npy", "b.npy", "-o", "c.npy", cwd=folder)


def test_every_truncation_of_a_file(folder):
    data = (folder / "good.npy").read_bytes()
    for length in range(0, len(data), 7):
        (folder / "cut.npy").write_bytes(data[:length])
        refuse(1, "cut.npy: ", arguments=["gemm", "cut.npy", "good.npy", "-o", "c.npy"], cwd=folder)


def test_inputs_that_are_no_regular_files(folder):
    os.mkfifo(folder / "pipe")
    (folder / "sub").mkdir()
    (folder / "dangling").symlink_to("nowhere")
    cases = {"pipe": "no regular file", "sub": "is a folder", "dangling": "No such file", "missing.npy": "No such file"}
    for name, words in {**cases, "/dev/zero": "no regular file", "": "No such file"}.items():
        refuse(1, f"{name}: ", words, arguments=["gemm", name, "good.npy", "-o", "c.npy"], cwd=folder)


def test_a_name_with_a_line_feed_still_gives_one_line(folder):
    refuse(1, "two?lines", arguments=["gemm", "two\nlines", "good.npy", "-o", "c.npy"], cwd=folder)


def test_mismatches_name_both_files(folder):
    save(folder / "single.npy", np.ones((4, 4), "f4"))
    save(folder / "c0.npy", np.ones((2, 3)))
    out = ["-o", "c.npy"]
    refuse(1, "good.npy holds f8", "single.npy holds f4", arguments=["gemm", "good.npy", "single.npy", *out], cwd=folder)
    refuse(1, "good.npy is 3 x 4", "good.npy is 3 x 4", arguments=["gemm", "good.npy", "good.npy", *out], cwd=folder)
    both = ["gemm", "good.npy", "good.npy", *out, "--transa", "t", "--transb", "t"]
    refuse(1, "good.npy is 4 x 3 (transposed)", arguments=both, cwd=folder)
    with_c0 = ["gemm", "good.npy", "good.npy", "--transb", "t", *out, "--c", "c0.npy"]
    refuse(1, "product is 3 x 3", "c0.npy is 2 x 3", arguments=with_c0, cwd=folder)
    with_single = ["gemm", "good.npy", "good.npy", "--transb", "t", *out, "--c", "single.npy"]
    refuse(1, "good.npy holds f8", "single.npy holds f4", arguments=with_single, cwd=folder)


def test_scalars_that_the_type_cannot_hold(folder):
    save(folder / "single.npy", np.ones((4, 4), "f4"))
    refuse(1, "--alpha is complex", arguments=["gemm", "good.npy", "good.npy", "-o", "c", "--alpha", "2j"], cwd=folder)
    refuse(1, "--alpha is too large", arguments=["gemm", "single.npy", "single.npy", "-o", "c", "--alpha", "1e39"], cwd=folder)


def test_a_product_too_large_for_memory(folder):
    (folder / "tall.npy").write_bytes(file_of(header(shape="(4000000000, 0)")))
    (folder / "wide.npy").write_bytes(file_of(header(shape="(0, 4000000000)")))
    product = ["gemm", "tall.npy", "wide.npy", "-o", "c.npy"]
    refuse(1, "out of memory", "4000000000 x 4000000000", arguments=product, cwd=folder)
    refuse(1, "out of memory", "4000000000 x 4000000000", arguments=[*product, "--map"], cwd=folder)


# ---- Writing ---------------------------------------------------------------------------------------------------------------

MULTIPLY = ["gemm", "good.npy", "good.npy", "--transb", "t", "-o"]


def test_outputs_that_cannot_be_written(folder):
    (folder / "sub").mkdir()
    os.mkfifo(folder / "pipe")
    (folder / "dangling").symlink_to("nowhere/at/all")
    (folder / "plain").write_bytes(b"x")
    cases = {
        "sub": "is a folder",
        "sub/": "no file name",
        "": "no file name",
        "missing/c.npy": "No such file",
        "plain/c.npy": "Not a directory",
        "pipe": "no regular file",
        "/dev/null": "no regular file",
        "dangling": "No such file",
        "/proc/c.npy": "cannot be written",
        "x" * 300: "name too long",
    }
    for name, words in cases.items():
        refuse(1, f"{name}: cannot be written: ", words, arguments=[*MULTIPLY, name], cwd=folder)
    assert os.listdir(folder / "sub") == []


@pytest.mark.skipif(not CAN_DROP_RIGHTS, reason="root that cannot give up its rights may write everywhere")
def test_missing_permissions(folder):
    drop = ["setpriv", "--bounding-set=-dac_override,-dac_read_search"] if os.geteuid() == 0 else []

    def refuse_without_rights(words, *arguments):
        before = contents(folder)
        result = subprocess.run([*drop, *COMMAND, *arguments], cwd=folder, env=clean_environment(), capture_output=True, text=True)
        assert (result.returncode, result.stdout) == (1, "")
        assert result.stderr.count("\n") == 1 and words in result.stderr
        assert contents(folder) == before

    (folder / "secret.npy").write_bytes(GOOD)
    (folder / "secret.npy").chmod(0)
    refuse_without_rights("secret.npy: cannot be opened: Permission denied", "gemm", "secret.npy", "good.npy", "-o", "c.npy")
    (folder / "kept.npy").write_bytes(b"keep")
    (folder / "kept.npy").chmod(0o444)
    refuse_without_rights("kept.npy: cannot be written: Permission denied", *MULTIPLY, "kept.npy")
    (folder / "locked").mkdir(mode=0o555)
    refuse_without_rights("locked/c.npy: cannot be written: Permission denied", *MULTIPLY, "locked/c.npy")


def limited(folder, limit_bytes):
    """Runs the multiplication where no file may grow beyond the limit, as on a full disc."""
    words = [str(w) for w in [*COMMAND, *MULTIPLY, "c.npy"]]
    script = f"ulimit -f {limit_bytes // 1024}; exec \"$@\""
    return subprocess.run(["bash", "-c", script, "bash", *words], cwd=folder, env=clean_environment(), capture_output=True, text=True)


def test_no_room_for_the_output(folder):
    save(folder / "good.npy", np.ones((100, 2)))
    for old in [None, b"as it was"]:
        if old:
            (folder / "c.npy").write_bytes(old)
        before = contents(folder)
        result = limited(folder, 10 * 1024)
        assert (result.returncode, result.stdout) == (1, "")
        assert result.stderr == "wsgemm: c.npy: cannot be written: File too large\n"
        assert contents(folder) == before
    assert limited(folder, 200 * 1024).returncode == 0


def test_a_full_disc(folder):
    """A file system of its own, of 64 KiB, if this user may mount one."""
    save(folder / "good.npy", np.ones((200, 2)))
    (folder / "disc").mkdir()
    words = [str(w) for w in [*COMMAND, *MULTIPLY, "disc/c.npy"]]
    script = 'mount -t tmpfs -o size=64k none disc || exit 77; "$@"; code=$?; ls -A disc; exit $code'
    unshare = ["unshare", "--mount", "--map-root-user", "bash", "-c", script, "bash", *words]
    if not shutil.which("unshare"):
        pytest.skip("no unshare")
    result = subprocess.run(unshare, cwd=folder, env=clean_environment(), capture_output=True, text=True)
    if result.returncode == 77 or "unshare" in result.stderr:
        pytest.skip("may not mount: " + result.stderr.strip())
    assert (result.returncode, result.stdout) == (1, "")
    assert result.stderr == "wsgemm: disc/c.npy: cannot be written: No space left on device\n"


def test_the_output_is_replaced_as_a_whole(folder):
    (folder / "c.npy").write_bytes(b"the old contents")
    (folder / "c.npy").chmod(0o640)
    with open(folder / "c.npy", "rb") as old:
        check(*MULTIPLY, "c.npy", cwd=folder)
        assert old.read() == b"the old contents"
    assert (folder / "c.npy").stat().st_mode & 0o777 == 0o640
    a = load(folder / "good.npy")
    np.testing.assert_array_equal(load(folder / "c.npy"), a @ a.T)
    assert sorted(contents(folder)) == ["c.npy", "good.npy"]


def test_a_new_output_obeys_the_umask(folder):
    old = os.umask(0o027)
    try:
        check(*MULTIPLY, "c.npy", cwd=folder)
    finally:
        os.umask(old)
    assert (folder / "c.npy").stat().st_mode & 0o777 == 0o640


def test_a_link_stays_a_link(folder):
    (folder / "sub").mkdir()
    (folder / "sub" / "real.npy").write_bytes(b"old")
    (folder / "link.npy").symlink_to("sub/real.npy")
    check(*MULTIPLY, "link.npy", cwd=folder)
    assert (folder / "link.npy").is_symlink()
    assert load(folder / "sub" / "real.npy").shape == (3, 3)


def test_an_input_may_be_the_output(folder):
    a = load(folder / "good.npy")
    check(*MULTIPLY, "good.npy", "--verify", cwd=folder)
    np.testing.assert_array_equal(load(folder / "good.npy"), a @ a.T)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGKILL])
def test_killed_while_it_works(folder, number):
    save(folder / "big.npy", np.ones((1500, 1500)))
    (folder / "c.npy").write_bytes(b"as it was")
    kernel = next(w for w in check("info").split() if w.startswith("dgemm_ref_"))
    words = [*COMMAND, "gemm", "big.npy", "big.npy", "-o", "c.npy", "--threads", "1", "--kernel", kernel, "--verify"]
    before = set(contents(folder))
    with subprocess.Popen(words, cwd=folder, env=clean_environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        while set(os.listdir(folder)) == before and process.poll() is None:
            time.sleep(0.001)
        process.send_signal(number)
        out, err = process.communicate()
    assert (process.returncode, out, err) == (-number, b"", b"")
    assert (folder / "c.npy").read_bytes() == b"as it was"
    if number != signal.SIGKILL:
        assert set(contents(folder)) == before


def test_standard_output_that_is_full(folder):
    with open("/dev/full", "w") as full:
        for arguments in [["info"], ["--help"], ["gemm", "good.npy", "good.npy", "--transb", "t", "--explain"]]:
            result = subprocess.run([*COMMAND, *arguments], cwd=folder, env=clean_environment(), stdout=full, stderr=subprocess.PIPE)
            assert result.returncode == 1
            assert result.stderr == b"wsgemm: cannot write to standard output: No space left on device\n"


def test_the_product_to_standard_output(folder):
    words = ["gemm", "good.npy", "good.npy", "--transb", "t", "--verify"]
    check(*words, "-o", "C.npy", cwd=folder)
    before = contents(folder)
    done = subprocess.run([*COMMAND, *words, "-o", "-"], cwd=folder, env=clean_environment(), capture_output=True)
    assert (done.returncode, done.stdout) == (0, before["C.npy"])
    lines = done.stderr.decode().splitlines()
    assert len(lines) == 2 and lines[0].startswith("verified: 9 of 9") and lines[1].startswith("standard output: 3 x 3 f8")
    assert contents(folder) == before
    check(*words, "-o", "./-", cwd=folder)  # a file of that name
    assert (folder / "-").read_bytes() == before["C.npy"]
    with open("/dev/full", "w") as full:
        words = [*COMMAND, *words, "-o", "-"]
        done = subprocess.run(words, cwd=folder, env=clean_environment(), stdout=full, stderr=subprocess.PIPE, text=True)
    assert done.returncode == 1 and "wsgemm: standard output cannot be written: No space" in done.stderr


def test_no_product_to_a_terminal(folder):
    terminal, other_end = os.openpty()
    words = [*COMMAND, "gemm", "good.npy", "good.npy", "--transb", "t", "-o", "-"]
    done = subprocess.run(words, cwd=folder, env=clean_environment(), stdout=other_end, stderr=subprocess.PIPE, text=True)
    os.close(other_end)
    os.set_blocking(terminal, False)
    assert done.returncode == 2 and "to a terminal" in done.stderr and done.stderr.count("\n") == 1
    try:
        assert os.read(terminal, 100) == b""
    except OSError:  # nothing came
        pass
    os.close(terminal)


def test_many_at_once_into_one_output(folder):
    """Whoever comes last wins, and no reader ever sees a torn file."""
    words = [*COMMAND, *MULTIPLY, "c.npy"]
    running = [subprocess.Popen(words, cwd=folder, env=clean_environment(), stdout=subprocess.DEVNULL) for _ in range(8)]
    a = load(folder / "good.npy")
    while any(p.poll() is None for p in running):
        if (folder / "c.npy").exists():
            np.testing.assert_array_equal(load(folder / "c.npy"), a @ a.T)
    assert [p.wait() for p in running] == [0] * 8
    assert sorted(contents(folder)) == ["c.npy", "good.npy"]
    assert run(*MULTIPLY, "c.npy", cwd=folder).returncode == 0
