"""tools/readme_tables.py and tools/gpu_results.py on made-up results: what they write, and what they refuse."""

import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
LINE = {"suite": "square", "routine": "sgemm", "case": "n=256", "policy": "auto", "device": "A CPU, 2 cores", "peer": "OpenBLAS 9 Core",
        "ours": 30.0, "theirs": 20.0, "unit": "GF/s", "ratio": 1.5, "commit": "abc", "date": "2026-01-02", "threads": 1,
        "peak_fraction": 0.5}


def line(**changes):
    changed = {**LINE, **changes}
    return {name: value for name, value in changed.items() if value is not None}


def random_line(shape_class, ratio, number):
    return line(suite="random", case=f"NN 3x5x7 {shape_class} lda+0 ldb+0 ldc+0 seed=1 #{number}", ratio=ratio, theirs=30.0 / ratio,
                **{"class": shape_class})


class Tables(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.write("square", [line(), line(case="n=512", ratio=0.5, theirs=60.0)])

    def write(self, suite, lines, device="a-cpu-2c"):
        path = self.folder / "results" / device / f"{suite}.jsonl"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(json.dumps(x) + "\n" for x in lines), encoding="utf-8")

    def documents(self, readme, tables):
        for name, marks in (("README.md", readme), ("RESULTS.md", tables)):
            text = "before\n" + "".join(f"<!-- table:{mark} -->\n<!-- /table -->\nbetween\n" for mark in marks)
            (self.folder / name).write_text(text, encoding="utf-8")

    def readme(self):
        return (self.folder / "README.md").read_text(encoding="utf-8")

    def run_tool(self, *arguments):
        return subprocess.run([sys.executable, "-B", ROOT / "tools" / "readme_tables.py", "--readme", self.folder / "README.md", "--tables",
                               self.folder / "RESULTS.md", "--results", self.folder / "results", *arguments], capture_output=True,
                              text=True, check=False)

    def refuse(self, *words):
        result = self.run_tool("--check")
        self.assertEqual(result.returncode, 1, result.stdout)
        for word in words:
            self.assertIn(word, result.stderr)

    def test_writes_and_checks_both_documents(self):
        self.documents(["headline"], ["square", "random"])
        self.refuse("RESULTS.md is out of date", "README.md is out of date")
        self.assertEqual(self.run_tool().returncode, 0)
        self.assertEqual(self.run_tool("--check").returncode, 0)
        tables = (self.folder / "RESULTS.md").read_text(encoding="utf-8")
        self.assertIn("speedup over OpenBLAS", tables)
        self.assertIn("| `sgemm` | 256-512 | 0.866 | 0.500 (n = 512) |", tables)
        self.assertIn("Not measured yet.", tables)
        self.assertIn("beside OpenBLAS 9 Core.", tables)
        self.assertIn("before\n", tables)
        self.assertIn("| A CPU, 2 cores; 1 thread | `sgemm` | 256-512 | 0.866 (0.500) | not measured |", self.readme())
        self.write("square", [line()])
        self.refuse("RESULTS.md is out of date", "README.md is out of date")

    def test_names_the_tuning_that_was_set(self):
        self.documents([], ["square", "random"])
        self.write("square", [line(tuning="off"), line(case="n=512", tuning="off")])
        self.write("random", [random_line("flat", 0.5, 0), {**random_line("flat", 0.5, 1), "tuning": "a file"}])
        self.assertEqual(self.run_tool().returncode, 0)
        tables = (self.folder / "RESULTS.md").read_text(encoding="utf-8")
        self.assertIn("commit abc; with WSGEMM_TUNE=off; beside", tables)
        self.assertIn("commit abc; in part with WSGEMM_TUNE=FILE; beside", tables)

    def test_random_shapes_by_class_and_in_the_headline(self):
        self.write("random", [random_line(c, r, i) for i, (c, r) in enumerate([("square", 2.0), ("square", 0.5), ("flat", 4.0), ("small", 1.0)])])
        self.documents(["headline"], ["random"])
        self.assertEqual(self.run_tool().returncode, 0)
        self.assertIn("| `sgemm`, 1 thread | 4 | 1.000 (0.500) | 4.000 (4.000) | 1.000 (1.000) | - | 1.414 (0.500) |",
                      (self.folder / "RESULTS.md").read_text(encoding="utf-8"))
        self.assertIn("| `sgemm` | 256-512 | 0.866 (0.500) | 1.414 (0.500) |", self.readme())

    def test_headline_joins_the_thread_counts(self):
        two = {"suite": "threads", "threads": 2, "commit": "def", "date": "2026-01-03"}
        self.write("square", [line(), line(case="n=512", ratio=0.5, theirs=60.0), line(threads=2, routine="zgemm")])  # suite square: one thread only
        self.write("threads", [line(**two, ratio=2.0, theirs=15.0), line(**two, routine="dgemm", ratio=3.0, theirs=10.0)])
        self.write("random", [{**random_line("flat", 4.0, 0), "commit": "0ff"}, {**random_line("flat", 0.25, 0), "threads": 2, "commit": "0ff"}])
        self.documents(["headline"], ["overview"])
        self.assertEqual(self.run_tool().returncode, 0)
        mean = (1.5 * 0.5 * 2.0) ** (1 / 3)
        self.assertIn(f"| A CPU, 2 cores; 1 and 2 threads | `sgemm` | 256-512 | {mean:.3f} (0.500) | 1.000 (0.250) |\n"
                      "|  | `dgemm` | 256-256 | 3.000 (3.000) | not measured |", self.readme())
        self.assertNotIn("zgemm", self.readme())
        self.assertIn("A CPU, 2 cores; 2026-01-02 and 2026-01-03, commits abc, 0ff and def; beside OpenBLAS 9 Core.\n", self.readme())
        overview = (self.folder / "RESULTS.md").read_text(encoding="utf-8")
        self.assertIn("| `sgemm`, 1 thread | 256-512 | 0.866 (0.500) | 4.000 (4.000) |", overview)
        self.assertIn("| `sgemm`, 2 threads | 256-256 | 2.000 (2.000) | 0.250 (0.250) |", overview)

    def test_headline_has_the_newest_of_each_kind(self):
        for date, theirs, other in (("2026-01-03", 20.0, "a newer one"), ("2026-01-01", 60.0, "an older one")):
            self.write("square", [line(device=f"{other}, 2 cores", date=day, case=f"n={n}", theirs=theirs, ratio=30.0 / theirs)
                                  for day, n in ((date, 256), ("2026-01-01", 512))], "b-cpu-8c")
            of_gpu = {"device": "A GPU", "suite": "gpu_square", "case": "NN 256x256x256", "peer": "cuBLAS 1", "threads": None, "date": "2025-01-01"}
            self.write("gpu_square", [line(**of_gpu, routine="zgemm"), line(**of_gpu)], "a-gpu")
            self.write("gpu_random_uniform", [line(**{**of_gpu, **random_line("flat", 2.0, 0), "suite": "gpu_random", "threads": None, "device": "A GPU"})], "a-gpu")
            self.documents(["headline"], ["overview"])
            self.assertEqual(self.run_tool().returncode, 0)
            shown, left_out = (other, "A CPU") if "newer" in other else ("A CPU", other)
            self.assertIn(f"| {shown}", self.readme())
            self.assertNotIn(left_out, self.readme())
            self.assertIn("| A GPU | `sgemm` | 256-256 | 1.500 (1.500) | 2.000 (2.000) |\n|  | `zgemm` | 256-256 | 1.500 (1.500) | not measured |\n\n",
                          self.readme())
            self.assertEqual(self.readme().count("A GPU"), 2)  # the row, the caption
            overview = (self.folder / "RESULTS.md").read_text(encoding="utf-8")
            self.assertIn(f"\n{shown}", overview)
            self.assertIn(f"\n{left_out}", overview)

    def test_headline_has_the_cpu_with_the_most_cores(self):
        self.write("threads", [line(suite="threads", device="Many, 16 cores", date="2025-01-01", threads=16)], "c-cpu-16c")
        self.write("random", [{**random_line("flat", 4.0, 0), "device": "One, 1 core", "date": "2027-01-01"}], "d-cpu-1c")
        self.documents(["headline"], ["overview"])
        self.assertEqual(self.run_tool().returncode, 0)
        self.assertIn("| A CPU, 2 cores; 1 thread | `sgemm`", self.readme())
        self.assertIn("| Many, 16 cores", self.readme())

    def test_headline_has_all_cpus_that_have_all(self):
        drawn = {"device": "Another CPU, 2 cores", "date": "2026-01-05"}
        self.write("random", [random_line("flat", 2.0, 0)])
        self.write("random", [{**random_line("flat", 4.0, 0), **drawn}], "b-cpu-2c")
        self.write("square", [line(**drawn)], "b-cpu-2c")
        self.documents(["headline"], ["overview"])
        self.assertEqual(self.run_tool().returncode, 0)
        self.assertLess(0, self.readme().find("| Another CPU, 2 cores; 1 thread"))
        self.assertLess(self.readme().find("| Another CPU, 2 cores"), self.readme().find("| A CPU, 2 cores; 1 thread"))

    def test_headline_has_two_devices_where_none_has_all(self):
        drawn = {"device": "Another CPU, 8 cores", "date": "2026-01-05"}
        self.write("random", [{**random_line("flat", 4.0, 0), **drawn}, {**random_line("flat", 0.25, 0), **drawn, "threads": 8}], "b-cpu-8c")
        self.documents(["headline"], ["overview"])
        self.assertEqual(self.run_tool().returncode, 0)
        self.assertIn("| A CPU, 2 cores; 1 thread | `sgemm` | 256-512 | 0.866 (0.500) | not measured |\n"
                      "| Another CPU, 8 cores; 1 and 8 threads | `sgemm` | - | not measured | 1.000 (0.250) |\n", self.readme())
        self.assertIn("\nAnother CPU, 8 cores; 2026-01-05, commit abc; beside OpenBLAS 9 Core.\n", self.readme())
        self.assertIn("| `sgemm`, 8 threads | - | not measured | 0.250 (0.250) |", (self.folder / "RESULTS.md").read_text(encoding="utf-8"))
        self.write("square", [line(**drawn)], "b-cpu-8c")
        self.assertEqual(self.run_tool().returncode, 0)
        self.assertNotIn("A CPU, 2 cores", self.readme())

    def test_prices_of_the_modes(self):
        of_gpu = {"device": "A GPU", "threads": None}
        self.write("gpu_invariant", [line(**of_gpu, suite="gpu_invariant", case=f"NN {n}x{n}x{n}", peer="wsgemm by default", ratio=ratio)
                                     for n, ratio in ((8, 1.0), (9, 0.25))], "a-gpu")
        self.write("gpu_half_pedantic", [line(**of_gpu, suite="gpu_half_pedantic", routine="bgemm", case="NN 8x8x8", peer="cuBLAS 1", ratio=0.1)], "a-gpu")
        self.documents([], ["gpu_modes"])
        self.assertEqual(self.run_tool().returncode, 0)
        self.assertIn("| invariant | `sgemm` | wsgemm by default | 2 | 0.500 | 0.250 (NN 9x9x9) |\n"
                      "| pedantic | `bgemm` | cuBLAS 1 | 1 | 0.100 | 0.100 (NN 8x8x8) |\n", (self.folder / "RESULTS.md").read_text(encoding="utf-8"))

    def test_refuses_more_than_one_table_in_the_readme(self):
        self.documents(["headline", "square"], ["square"])
        self.refuse("more than one table")

    def test_refuses_lines_that_are_no_results(self):
        self.documents([], [])
        faults = [(line(commit=None), "no commit"), (line(commit=""), "no commit"), (line(peer=None), "no peer"), (line(theirs=None), "no theirs"),
                  (line(ratio=0.6667), "does not come of"), (line(suite="small"), "in the file of 'square'"),
                  (line(unit="us"), "does not come of")]
        for record, why in faults:
            self.write("square", [line(), record])
            self.refuse("square.jsonl:2:", why)
        for record in (line(peer="none", theirs=None, ratio=None), line(unit="us", ratio=2 / 3)):
            self.write("square", [record])
            self.assertEqual(self.run_tool("--check").returncode, 0)

    def test_refuses_a_mark_without_its_end(self):
        self.documents([], [])
        (self.folder / "RESULTS.md").write_text("<!-- table:square -->\n", encoding="utf-8")
        self.refuse("has no '<!-- /table -->'")


class GpuResults(unittest.TestCase):
    def file_away(self, lines):
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            (folder / "new.jsonl").write_text("".join(json.dumps(x) + "\n" for x in lines), encoding="utf-8")
            subprocess.run([sys.executable, "-B", ROOT / "tools" / "gpu_results.py", "--results", folder / "results", "c0ffee",
                            folder / "new.jsonl"], check=True, capture_output=True)
            return {path.relative_to(folder / "results").as_posix(): [json.loads(x) for x in path.read_text(encoding="utf-8").splitlines()]
                    for path in (folder / "results").glob("*/*.jsonl")}

    def test_files_by_device_suite_and_precision(self):
        filed = self.file_away([line(device="NVIDIA H200", commit="unknown"), line(device="NVIDIA H200", routine="bgemm")])
        self.assertEqual(sorted(filed), ["nvidia-h200/gpu_half_square.jsonl", "nvidia-h200/gpu_square.jsonl"])
        self.assertEqual(filed["nvidia-h200/gpu_square.jsonl"][0], line(device="NVIDIA H200", suite="gpu_square", commit="c0ffee"))

    def test_names_the_best_of_a_landscape(self):
        bare = dict(suite="landscape", device="NVIDIA H200", unit="us", numerics="", peer=None, theirs=None, ratio=None, case="nn 2x2x2")
        lines = [line(**bare, ours=4.0), line(**bare, ours=2.0), line(**{**bare, "case": "nn 3x3x3"}, ours=8.0)]
        filed = self.file_away(lines)["nvidia-h200/gpu_landscape.jsonl"]
        self.assertEqual([(r["peer"], r["theirs"], r["ratio"]) for r in filed],
                         [("wsgemm best of all candidates", 2.0, 0.5), ("wsgemm best of all candidates", 2.0, 1.0), ("wsgemm best of all candidates", 8.0, 1.0)])


if __name__ == "__main__":
    unittest.main()
