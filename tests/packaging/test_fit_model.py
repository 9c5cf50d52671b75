"""tools/fit_model.py and tools/row_times.py on made-up times: those of the models themselves, under terms that the search has to find."""

import contextlib
import io
import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent.parent / "tools"))
import fit_model  # noqa: E402
import row_times  # noqa: E402

CASES = [(ops, m, n, k) for ops in ("NN", "TN", "NT", "TT") for m, n, k in ((24, 4096, 512), (200, 1000, 3000), (5000, 136, 96), (2048, 2048, 2048))]
ROWS = ["wgmma_128x64x64_c2_x1", "wgmma_192x64x64_c3_x1", "wgmma_64x64x64_c1_k1", "wgmma_128x64x64_c1_k4", "wgmma_256x64x64_c2_x2",
        "wgmma_144x64x64_c2_x1", "direct_32x32x16_g8_k1", "direct_16x16x16_g8_k8"]


def can_compile():
    """A C compiler and CUDA's headers."""
    return shutil.which("cc") and subprocess.run(["cc", *fit_model.FLAGS, "-fsyntax-only", "-x", "c", "-"], input=b"#include <cudaTypedefs.h>\n",
                                                 capture_output=True).returncode == 0


@unittest.skipUnless(can_compile(), "needs a C compiler and CUDA's headers")
class Fit(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.code, cls.names = fit_model.compile_models(), fit_model.names_of_terms("h")
        cls.terms = fit_model.terms_of(cls.code, "h")

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = pathlib.Path(folder.name) / "times.jsonl"

    def write(self, times):
        """times: of each case, of each row, us; 0: not timed."""
        with self.path.open("w") as out:
            for (ops, m, n, k), of_rows in zip(CASES, times):
                timed = [(name, us) for name, us in zip(ROWS, of_rows) if us > 0]
                best, us = min(timed, key=lambda row: row[1])
                out.write(json.dumps({"routine": "hgemm", "case": f"{ops} {m}x{n}x{k} uniform lda+0 ldb+0 ldc+0 seed=1 #1", "ours": 2 * us,
                                      "theirs": us / 2, "kernel": "hgemm_" + timed[0][0], "best": "hgemm_" + best,
                                      "rows": " ".join(f"{name}:{us:.4f}/{us:.4f}" for name, us in timed)}) + "\n")

    def model_times(self, terms):
        self.write([[1.0] * len(ROWS)] * len(CASES))
        found = fit_model.Measured(self.code, [self.path], self.terms).times(terms)
        return [[{row[0]: row[3] for row in rows}.get(name, 0) for name in ROWS] for rows in found]

    def test_terms_are_those_of_the_structures(self):
        self.assertEqual(len(self.names), sum(len(fit_model.initializers([1.0] * len(self.names), self.names, m)) for m in fit_model.HALF_MODELS)
                         + sum(place is not None and place > 0 for _, _, place in self.names))
        launch = self.terms[self.names.index(("wgmma_model", "launch_us", 0))]
        self.assertTrue(1 < launch < 10)
        self.assertGreater(self.terms[[name for _, name, _ in self.names].index("vector_launch_us")], 1)

    def test_terms_of_rows_that_copy(self):
        """The structures of the source, in the order that --write takes them to have."""
        text = (fit_model.ROOT / "cuda/host/dmma_model.c").read_text()
        structures = [found[1] for found in fit_model.STRUCTURE.finditer(text)]
        self.assertEqual(len(structures), len(fit_model.STRUCTURES))
        for (family, letter), structure in zip(fit_model.STRUCTURES, structures):
            names = [name for _, name, _ in fit_model.names_of_terms(letter)]
            terms = dict(zip(names, fit_model.terms_of(self.code, letter, family)))
            written = {name: float(value) for name, value in re.findall(r"\.(\w+) = ([\d.e+]+),", structure)}
            self.assertEqual({name: terms[name] for name in written}, written, (family, letter))
            most = 3e5 if family == "dmma" else 2.03e6  # what the units can at 1980 MHz
            begin_us = terms["launch_us"] + terms["item_us"]  # products of one round do not tell them apart
            self.assertTrue(1 < begin_us < 10 and 1e5 < terms["mma_per_us"] < most, (family, letter))

    def test_search_finds_what_the_times_are_made_of(self):
        wanted = list(self.terms)
        place = self.names.index(("wgmma_model", "launch_us", 1))
        wanted[place] *= 1.5
        self.write(self.model_times(wanted))
        measured = fit_model.Measured(self.code, [self.path], self.terms)
        self.assertGreater(measured.loss(self.terms), measured.loss(wanted) + 1e-3)
        with contextlib.redirect_stdout(io.StringIO()):
            found = fit_model.search(measured, list(self.terms), self.names, 20, ["launch_us"])
        self.assertAlmostEqual(found[place] / wanted[place], 1, delta=0.07)
        self.assertEqual([t for t, name in zip(found, self.names) if "launch_us" not in name[1]],
                         [t for t, name in zip(self.terms, self.names) if "launch_us" not in name[1]])

    def test_ways_are_those_of_the_terms_then(self):
        self.write([[1.0] * len(ROWS)] * len(CASES))
        terms = [list(self.terms), list(self.terms)]
        for way, value in enumerate((0.0, 1.0)):  # an element stored by lines takes nothing more, or far too long
            terms[way][[name for _, name, _ in self.names].index("lines_us")] = value
        ways = [[entry.is_across for entry in fit_model.Measured(self.code, [self.path], t).c_entries] for t in terms]
        self.assertTrue(all(0 <= one <= other <= 1 for one, other in zip(*ways)))
        self.assertGreater(sum(ways[1]), sum(ways[0]))

    def test_tables(self):
        self.write(self.model_times(self.terms))
        products = row_times.read(self.path)
        self.assertEqual([(p.ops, p.m, p.n, p.k) for p in products], CASES)
        self.assertTrue(all(p.best_us == min(second for _, second in p.rows.values()) for p in products))
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            row_times.print_table(products)
            row_times.print_list(products, 0.85)
        self.assertIn(f"uniform all                        {len(CASES)}        0.500          0.250        0.500   0.50", out.getvalue())
        self.assertIn(f"{len(CASES)} of {len(CASES)} products", out.getvalue())


if __name__ == "__main__":
    unittest.main()
