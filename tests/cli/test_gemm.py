"""`wsgemm gemm` on files written by NumPy: every type, order, byte order and option gives the product that NumPy gives."""

import json

import numpy as np
import pytest
from command import ORDERS, TYPES, WRONG_GEMM, check, clean_environment, integers, load, refuse, save


@pytest.fixture
def rng():
    return np.random.default_rng(20)


def op(array, letter):
    return {"n": array, "t": array.T, "c": array.conj().T}[letter]


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("order_a", ORDERS)
@pytest.mark.parametrize("order_b", ORDERS)
@pytest.mark.parametrize("byte_order", ["<", ">"])
def test_product_in_every_order(tmp_path, rng, dtype, order_a, order_b, byte_order):
    for m, n, k in [(1, 1, 1), (5, 7, 3), (33, 14, 129), (70, 50, 1)]:
        a, b = integers(rng, (m, k), dtype), integers(rng, (k, n), dtype)
        save(tmp_path / "a.npy", a, order_a, byte_order)
        save(tmp_path / "b.npy", b, order_b, byte_order)
        check("gemm", "a.npy", "b.npy", "-o", "c.npy", cwd=tmp_path)
        c = load(tmp_path / "c.npy")
        assert c.dtype == np.dtype(dtype)
        np.testing.assert_array_equal(c, a @ b)
        if m > 1 and n > 1:
            assert np.isfortran(c) == (order_a == order_b == "F" and k > 1)


def test_order_of_the_output_is_said_in_its_header(tmp_path, rng):
    a = integers(rng, (4, 3), "f4")
    for order_a in ORDERS:
        for order_b in ORDERS:
            save(tmp_path / "a.npy", a, order_a)
            save(tmp_path / "b.npy", a.T.copy(), order_b)
            check("gemm", "a.npy", "b.npy", "-o", "c.npy", cwd=tmp_path)
            with open(tmp_path / "c.npy", "rb") as file:
                assert np.lib.format.read_magic(file) == (1, 0)
                shape, is_fortran, dtype = np.lib.format.read_array_header_1_0(file)
                assert file.tell() % 64 == 0
            assert (shape, is_fortran, dtype) == ((4, 4), order_a == order_b == "F", np.dtype("<f4"))


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("op_a", "ntc")
@pytest.mark.parametrize("op_b", "ntc")
def test_ops_and_scalars(tmp_path, rng, dtype, op_a, op_b):
    m, n, k = 19, 13, 21
    is_complex = dtype.startswith("c")
    alpha, beta = (2 - 1j, -1 + 3j) if is_complex else (2, -3)
    for order_a, order_b, order_c in [("C", "F", "C"), ("F", "C", "F"), ("F", "F", "C"), ("C", "C", "F"), ("F", "F", "F")]:
        a = integers(rng, (m, k) if op_a == "n" else (k, m), dtype)
        b = integers(rng, (k, n) if op_b == "n" else (n, k), dtype)
        c0 = integers(rng, (m, n), dtype)
        for name, array, order in [("a", a, order_a), ("b", b, order_b), ("c0", c0, order_c)]:
            save(tmp_path / f"{name}.npy", array, order)
        scalars = ["--alpha", str(alpha), f"--beta={beta}", "--c", "c0.npy", "--transa", op_a, "--transb", op_b]
        check("gemm", "a.npy", "b.npy", "-o", "c.npy", *scalars, "--verify", cwd=tmp_path)
        np.testing.assert_array_equal(load(tmp_path / "c.npy"), alpha * (op(a, op_a) @ op(b, op_b)) + beta * c0)
        np.testing.assert_array_equal(load(tmp_path / "c0.npy"), c0)


@pytest.mark.parametrize(
    ("text", "value"),
    [("1.5+2j", 1.5 + 2j), ("(1.5-2j)", 1.5 - 2j), ("2j", 2j), ("-0.5", -0.5), ("1e1-2.5e-1j", 10 - 0.25j), ("+3", 3)],
)
def test_complex_scalars_are_written_as_in_python(tmp_path, text, value):
    assert complex(text) == value
    save(tmp_path / "one.npy", np.ones((1, 1), "c16"))
    check("gemm", "one.npy", "one.npy", "-o", "c.npy", "--alpha", text, cwd=tmp_path)
    assert load(tmp_path / "c.npy")[0, 0] == value


def test_beta_is_one_unless_given(tmp_path, rng):
    a, c0 = integers(rng, (3, 3), "f8"), integers(rng, (3, 3), "f8")
    save(tmp_path / "a.npy", a)
    save(tmp_path / "c0.npy", c0)
    check("gemm", "a.npy", "a.npy", "-o", "c.npy", "--c", "c0.npy", cwd=tmp_path)
    np.testing.assert_array_equal(load(tmp_path / "c.npy"), a @ a + c0)


@pytest.mark.parametrize("dtype", TYPES)
def test_random_reals_agree_within_the_bound(tmp_path, rng, dtype):
    m, n, k = 200, 150, 300
    a, b = (rng.uniform(-1, 1, shape).astype(dtype) for shape in [(m, k), (k, n)])
    save(tmp_path / "a.npy", a)
    save(tmp_path / "b.npy", b, "F")
    out = check("gemm", "a.npy", "b.npy", "-o", "c.npy", "--verify", cwd=tmp_path)
    assert f"verified: {m * n} of {m * n} elements" in out
    c = load(tmp_path / "c.npy")
    wide = np.longdouble if dtype.startswith("f") else np.clongdouble
    u = np.finfo(dtype).eps / 2
    gamma = (k + 2) * u / (1 - (k + 2) * u)
    bound = gamma * (np.abs(a).astype(wide) @ np.abs(b).astype(wide))
    assert (np.abs(c - a.astype(wide) @ b.astype(wide)) < 2 * bound).all()


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("byte_order", ["<", ">"])
def test_half_precision_is_summed_in_single(tmp_path, rng, order, byte_order):
    m, n, k = 70, 50, 300
    a, b, c0 = (rng.uniform(-1, 1, shape).astype("f2") for shape in [(m, k), (k, n), (m, n)])
    save(tmp_path / "a.npy", a, order, byte_order)
    save(tmp_path / "b.npy", b, "C", byte_order)
    save(tmp_path / "c0.npy", c0, byte_order=byte_order)
    out = check("gemm", "a.npy", "b.npy", "-o", "c.npy", "--c", "c0.npy", "--alpha", "0.5", "--verify", cwd=tmp_path)
    assert f"verified: {m * n} of {m * n} elements" in out
    c = load(tmp_path / "c.npy")
    assert c.dtype == np.dtype("f2")
    exact = 0.5 * (a.astype("f8") @ b.astype("f8")) + c0
    bound = (k + 2) * 2.0**-23 * (0.5 * (np.abs(a).astype("f8") @ np.abs(b).astype("f8")) + np.abs(c0))
    assert (np.abs(c - exact) <= bound + np.spacing(np.abs(c)).astype("f8") / 2).all()


@pytest.mark.parametrize(("alpha", "overflows"), [("0.001", False), ("1", True)])
def test_half_precision_verifies_sums_beyond_its_range(tmp_path, rng, alpha, overflows):
    for name, shape in [("a", (40, 1000)), ("b", (1000, 30))]:
        save(tmp_path / f"{name}.npy", rng.uniform(-300, 300, shape).astype("f2"))
    out = check("gemm", "a.npy", "b.npy", "-o", "c.npy", "--alpha", alpha, "--verify", cwd=tmp_path)
    assert "verified: 1200 of 1200 elements" in out and "not judged" not in out
    assert np.isinf(load(tmp_path / "c.npy")).any() == overflows


@pytest.mark.parametrize(("m", "n", "k"), [(0, 5, 3), (3, 0, 4), (0, 0, 0), (4, 3, 0)])
@pytest.mark.parametrize("order", ORDERS)
def test_empty_matrices(tmp_path, rng, m, n, k, order):
    save(tmp_path / "a.npy", integers(rng, (m, k), "f4"), order)
    save(tmp_path / "b.npy", integers(rng, (k, n), "f4"))
    c0 = integers(rng, (m, n), "f4")
    save(tmp_path / "c0.npy", c0)
    check("gemm", "a.npy", "b.npy", "-o", "c.npy", "--verify", cwd=tmp_path)
    np.testing.assert_array_equal(load(tmp_path / "c.npy"), np.zeros((m, n)))
    check("gemm", "a.npy", "b.npy", "-o", "c.npy", "--c", "c0.npy", "--beta", "2", "--verify", cwd=tmp_path)
    np.testing.assert_array_equal(load(tmp_path / "c.npy"), 2 * c0)


@pytest.mark.parametrize("version", [(1, 0), (2, 0), (3, 0)])
def test_format_versions(tmp_path, rng, version):
    a = integers(rng, (6, 6), "f8")
    save(tmp_path / "a.npy", a, version=version)
    check("gemm", "a.npy", "a.npy", "-o", "c.npy", cwd=tmp_path)
    np.testing.assert_array_equal(load(tmp_path / "c.npy"), a @ a)


def test_settings_never_change_the_bits(tmp_path, rng):
    save(tmp_path / "a.npy", rng.uniform(-1, 1, (300, 280)))
    save(tmp_path / "b.npy", rng.uniform(-1, 1, (280, 260)))
    seen = set()
    settings = [["--threads", n] for n in (1, 2, 3)] + [["--coarse", n] for n in (1, 2, 64)]
    settings += [["--threads", 2, "--policy", p] for p in ("auto", "fixed_work", "fixed_blocks", "steal")]
    for setting in settings:
        check("gemm", "a.npy", "b.npy", "-o", "c.npy", *setting, cwd=tmp_path)
        seen.add((tmp_path / "c.npy").read_bytes())
    assert len(seen) == 1


def test_every_usable_kernel_by_name(tmp_path, rng):
    kernels = [k["name"] for k in json.loads(check("info", "--json"))["kernels"] if k["usable"]]
    letters = dict(zip("sdczh", [*TYPES, "f2"]))
    assert {name[0] for name in kernels} == {*letters, "b"}
    for name in kernels:
        if name[0] == "b":  # no file has its type
            save(tmp_path / "a.npy", integers(rng, (2, 2), "f2"))
            refuse(1, name, "f2", arguments=["gemm", "a.npy", "a.npy", "-o", "c.npy", "--kernel", name], cwd=tmp_path)
            continue
        a = integers(rng, (40, 40), letters[name[0]])
        save(tmp_path / "a.npy", a)
        out = check("gemm", "a.npy", "a.npy", "-o", "c.npy", "--kernel", name, "--explain", cwd=tmp_path)
        assert name in out
        np.testing.assert_array_equal(load(tmp_path / "c.npy"), a @ a)


def test_invariant_rows(tmp_path, rng):
    a, b = rng.standard_normal((40, 300)).astype("f4"), rng.standard_normal((300, 64)).astype("f4")
    for name, x in (("a", a), ("row", a[7:8]), ("b", b)):
        np.save(tmp_path / f"{name}.npy", x)
    check("gemm", "a.npy", "b.npy", "-o", "c.npy", "--invariant", cwd=tmp_path)
    out = check("gemm", "row.npy", "b.npy", "-o", "d.npy", "--invariant", "--explain", cwd=tmp_path)
    assert "invariant" in out
    assert np.load(tmp_path / "d.npy").tobytes() == np.load(tmp_path / "c.npy")[7].tobytes()


@pytest.mark.parametrize("byte_order", ["<", ">"])
def test_map(tmp_path, rng, byte_order):
    """Matrices that stay in their files: the same bytes; those of the other byte order are copied."""
    for m, n, k in [(70, 50, 1), (300, 200, 100), (5, 7, 0)]:
        a, b, c0 = integers(rng, (m, k), "f8"), integers(rng, (k, n), "f8"), integers(rng, (m, n), "f8")
        save(tmp_path / "a.npy", a, "C", byte_order)
        save(tmp_path / "b.npy", b, "F", byte_order)
        save(tmp_path / "c0.npy", c0, "F", byte_order)
        arguments = ["gemm", "a.npy", "b.npy", "--c", "c0.npy", "-o"]
        check(*arguments, "c.npy", cwd=tmp_path)
        check(*arguments, "mapped.npy", "--map", "--verify", cwd=tmp_path)
        assert (tmp_path / "c.npy").read_bytes() == (tmp_path / "mapped.npy").read_bytes()
        np.testing.assert_array_equal(load(tmp_path / "c.npy"), a @ b + c0)
    check("gemm", "a.npy", "b.npy", "-o", "a.npy", "--map", cwd=tmp_path)
    assert load(tmp_path / "a.npy").shape == (5, 7)
    save(tmp_path / "a.npy", integers(rng, (7, 7), "f8"), "C", byte_order)
    refuse(1, "mapped/c.npy", arguments=["gemm", "a.npy", "a.npy", "-o", "mapped/c.npy", "--map"], cwd=tmp_path)
    assert not [name for name in tmp_path.iterdir() if name.name.endswith(".tmp")]


def test_devices(tmp_path, rng):
    """With GPUs for host matrices or without any: the product is right."""
    a, b = integers(rng, (300, 300), "f8"), integers(rng, (300, 300), "f8")
    for name, x in (("a", a), ("b", b)):
        np.save(tmp_path / f"{name}.npy", x)
    for devices in ("all", "0", "0,1"):
        check("gemm", "a.npy", "b.npy", "-o", "c.npy", "--device", devices, cwd=tmp_path)
        np.testing.assert_array_equal(load(tmp_path / "c.npy"), a @ b)
    for devices in ("", "some", "0,", "64", "-1", "0;1"):
        refuse(2, "--device", arguments=["gemm", "a.npy", "b.npy", "-o", "d.npy", "--device", devices], cwd=tmp_path)


def test_explain_alone_writes_nothing(tmp_path, rng):
    save(tmp_path / "a.npy", integers(rng, (40, 40), "f4"))
    out = check("gemm", "a.npy", "a.npy", "--explain", cwd=tmp_path)
    assert "sgemm_" in out and "threads" in out
    assert [p.name for p in tmp_path.iterdir()] == ["a.npy"]


def test_explain_names_the_product_of_the_files(tmp_path, rng):
    save(tmp_path / "a.npy", integers(rng, (30, 10), "f4"))
    save(tmp_path / "b.npy", integers(rng, (20, 10), "f4"))
    out = check("gemm", "a.npy", "b.npy", "--transb", "t", "--explain", cwd=tmp_path)
    told = {key: value.strip() for key, value in (line.split(" ", 1) for line in out.splitlines() if " " in line)}
    assert told["problem"] == "sgemm nt m=30 n=20 k=10 batch=1" and told["layout"] == "row-major"
    assert told["computed_as"].startswith("column-major C^T") and "m=20 n=30" in told["computed_as"]


def test_verify_takes_a_sample_of_a_large_product(tmp_path, rng):
    save(tmp_path / "a.npy", rng.uniform(-1, 1, (600, 600)).astype("f4"))
    out = check("gemm", "a.npy", "a.npy", "-o", "c.npy", "--verify", cwd=tmp_path)
    checked, total = (int(word) for word in out.split("verified: ")[1].split()[:3:2])
    assert total == 360000
    assert 1000 < checked < total


def test_verify_accepts_nan_and_infinity(tmp_path, rng):
    a, b = rng.uniform(1, 2, (9, 9)), rng.uniform(1, 2, (9, 9))
    a[2, 3], a[4, 5], b[1, 7] = np.nan, np.inf, -np.inf
    save(tmp_path / "a.npy", a)
    save(tmp_path / "b.npy", b)
    out = check("gemm", "a.npy", "b.npy", "-o", "c.npy", "--verify", cwd=tmp_path)
    assert "verified: 81 of 81" in out
    with np.errstate(invalid="ignore"):
        expected = a @ b
    np.testing.assert_array_equal(np.isnan(load(tmp_path / "c.npy")), np.isnan(expected))


def test_scalars_are_rounded_to_the_type_before_verify_judges(tmp_path):
    save(tmp_path / "one.npy", np.ones((1, 1), "f4"))
    out = check("gemm", "one.npy", "one.npy", "-o", "c.npy", "--alpha", "0.1", "--verify", cwd=tmp_path)
    assert "worst err/bound 0 at (0, 0)" in out
    assert load(tmp_path / "c.npy")[0, 0] == np.float32(0.1)


def test_verify_says_what_it_cannot_judge(tmp_path):
    save(tmp_path / "a.npy", np.full((3, 3), 1e200))
    out = check("gemm", "a.npy", "a.npy", "-o", "c.npy", "--verify", cwd=tmp_path)
    assert "verified: 0 of 9" in out and "not judged: 9" in out


@pytest.mark.skipif(not WRONG_GEMM, reason="needs a shared library whose functions can be preloaded")
class TestWrongResults:
    """With a wsgemm_gemm in place that spoils one element of C."""

    environment = clean_environment(LD_PRELOAD=WRONG_GEMM or "", ASAN_OPTIONS="verify_asan_link_order=0:detect_leaks=0")

    @pytest.mark.parametrize("dtype", TYPES)
    @pytest.mark.parametrize("size", [1, 50, 700])
    def test_verify_refuses_them(self, tmp_path, rng, dtype, size):
        values = rng.uniform(-1, 1, (size, size)).astype(dtype)
        save(tmp_path / "a.npy", values)
        (tmp_path / "c.npy").write_bytes(b"as it was")
        arguments = ["gemm", "a.npy", "a.npy", "-o", "c.npy", "--verify"]
        where = f"({size - 1}, {size - 1})"
        refuse(1, "the product is wrong", where, arguments=arguments, cwd=tmp_path, env=self.environment)

    def test_they_go_unnoticed_without_verify(self, tmp_path):
        save(tmp_path / "a.npy", np.eye(3))
        check("gemm", "a.npy", "a.npy", "-o", "c.npy", cwd=tmp_path, env=self.environment)
        assert load(tmp_path / "c.npy")[2, 2] == 2
