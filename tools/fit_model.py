#!/usr/bin/env python3
"""Fits the models of half precision's rows (cuda/host/wgmma_model.c, direct_model.c, flat_model.c), or of one family of rows that
copy for others (dmma_model.c: dmma of d or z, or of s, which are rows ffma; tf32x1 .. tf32w2 of s or c, tf32m1 and tf32m2 of s), to measurements of suite `row_times`, which must be of one type.

    tools/fit_model.py FILE.jsonl ... [--family NAME] [--test FILE.jsonl ...] [--passes N] [--only TEXT,...] [--write]

The library's own code says what a row takes (tools/fit_model.c, compiled here); its terms are varied one after the other, and kept
where the choice by the model comes nearer to the best row. Prints what the choice then has of the best row's speed, on the files and
on those of --test, which are not fitted to, where the model errs most, and the terms; --write puts these into the sources. --passes 0
changes nothing. --only: terms with one of these texts in their names; --begin: where the search begins, if not at the library's terms.
These are to be the ones that the times were measured with, as they say which rows computed C transposed. Times are the medians that
row_times.c keeps for timing, where there are such.
"""

import argparse
import collections
import ctypes
import math
import pathlib
import re
import subprocess
import tempfile

import row_times

ROOT = pathlib.Path(__file__).resolve().parents[1]
HALF_MODELS, COPIED_MODELS = ("wgmma_model", "direct_model", "flat_model"), ("dmma_model",)
TYPES = {"s": 0, "d": 1, "c": 2, "z": 3, "h": 4}  # wsgemm_type
FAMILIES = ("dmma", "tf32x1", "tf32x2", "tf32w1", "tf32w2", "tf32m1", "tf32m2")  # fit_family
# The structures of terms in dmma_model.c, in their order: (family, type).
STRUCTURES = [("dmma", t) for t in "dsz"] + [(f, t) for f in FAMILIES[1:5] for t in "sc"] + [(f, "s") for f in FAMILIES[5:]]
FLAGS = ("-std=gnu11", "-I.", "-Iinclude", "-Isrc", "-isystem", "/usr/local/cuda/include")
# How near times are that the choice takes by turns, and how much the times themselves count (fit_model.c).
SOFTNESS, WEIGHT = 0.03, 1.0
LEAST_GAIN = 2e-6  # so that terms that hardly count stay where they are
STRUCTURE = re.compile(r"\{((\n +)\.\w+ = (?:[^{}]|\{[^{}]*\})*?)\n *\}")
FIELDS = re.compile(r"typedef struct \w+_terms \{(.*?)\} \w+_terms;", re.DOTALL)


class Product(ctypes.Structure):
    _fields_ = [(name, ctypes.c_int64) for name in ("m", "n", "k", "a_trans", "b_trans", "n_entries", "type", "family")]


class Entry(ctypes.Structure):
    _fields_ = [("row_idx", ctypes.c_int64), ("is_across", ctypes.c_int64), ("us", ctypes.c_double)]


def compile_models():
    with tempfile.TemporaryDirectory() as folder:
        library = pathlib.Path(folder) / "fit.so"
        sources = ["tools/fit_model.c", "src/core/types.c", "cuda/host/problem_args.c", *(f"cuda/host/{model}.c" for model in HALF_MODELS + COPIED_MODELS)]
        subprocess.run(["cc", *FLAGS, "-O2", "-ffp-contract=off", "-fPIC", "-shared", "-o", str(library), *sources, "-lm"], cwd=ROOT, check=True)
        code = ctypes.CDLL(str(library))
    code.fit_loss.restype = ctypes.c_double
    code.fit_row.argtypes = [ctypes.c_char_p]
    return code


def models_of(letter):
    return HALF_MODELS if letter == "h" else COPIED_MODELS


def names_of_terms(letter):
    """In the order of the structures: (model, name, place in its array or None)."""
    names = []
    for model in models_of(letter):
        body = re.sub(r"/\*.*?\*/", "", FIELDS.search((ROOT / f"cuda/host/{model}.h").read_text()).group(1), flags=re.DOTALL)
        for declared in re.findall(r"double ([^;]*);", body):
            for name, size in re.findall(r"(\w+)(?:\[(\d+)\])?", declared):
                names += [(model, name, place) for place in range(int(size))] if size else [(model, name, None)]
    return names


def terms_of(code, letter, family="dmma"):
    """The library's own."""
    array = (ctypes.c_double * len(names_of_terms(letter)))()
    code.fit_terms(ctypes.c_int64(TYPES[letter]), ctypes.c_int64(FAMILIES.index(family)), array)
    return list(array)


class Measured:
    """Products and the times of their rows, as the C code takes them. Rows: (row, name, first, second time)."""

    def __init__(self, code, files, terms, family="dmma"):
        self.code = code
        self.products = [p for path in files for p in row_times.read(path)]
        found = [[(code.fit_row(f"{p.routine}_{name}".encode()), name, *us) for name, us in p.rows.items()] for p in self.products]
        is_half = self.products[0].routine[0] == "h"
        prefix = "ffma_" if self.products[0].routine[0] == "s" and family == "dmma" else family + "_"
        self.rows = [[row for row in rows if row[0] >= 0 and (is_half or row[1].startswith(prefix))] for rows in found]
        some = [i for i, rows in enumerate(self.rows) if rows]
        self.products, self.rows = [self.products[i] for i in some], [self.rows[i] for i in some]
        self.c_products = (Product * len(self.products))(*(
            Product(p.m, p.n, p.k, p.ops[0] == "T", p.ops[1] == "T", len(rows), TYPES[p.routine[0]], FAMILIES.index(family)) for p, rows in zip(self.products, self.rows)))
        flat = [Entry(idx, 0, (3 * first + 5 * second) / 8 if second else first) for rows in self.rows for idx, _, first, second in rows]
        self.c_entries = (Entry * len(flat))(*flat)
        self.n = ctypes.c_int64(len(self.products))
        code.fit_ways((ctypes.c_double * len(terms))(*terms), self.n, self.c_products, self.c_entries)

    def loss(self, terms):
        array = (ctypes.c_double * len(terms))(*terms)
        return self.code.fit_loss(array, self.n, self.c_products, self.c_entries, ctypes.c_double(SOFTNESS), ctypes.c_double(WEIGHT))

    def times(self, terms):
        """Of each product its rows that the models know: [(name, first, second, the model's time)]."""
        us = (ctypes.c_double * len(self.c_entries))()
        self.code.fit_times((ctypes.c_double * len(terms))(*terms), self.n, self.c_products, self.c_entries, us)
        at = iter(us)
        weighed = [[(name, first, second or first, next(at)) for _, name, first, second in rows] for rows in self.rows]
        return [[row for row in rows if row[3] > 0] for rows in weighed]


def search(measured, terms, names, passes, only):
    """One term after the other, by factors that shrink where they bring nothing."""
    steps = [0.15] * len(terms)
    best = measured.loss(terms)
    for turn in range(passes):
        before = best
        for i, (_, name, _) in enumerate(names):
            if terms[i] == 0 or (only and not any(text in name for text in only)):
                continue
            for factor in (1 + steps[i], 1 / (1 + steps[i])):
                tried = terms[:i] + [terms[i] * factor] + terms[i + 1:]
                loss = measured.loss(tried)
                if loss < best - LEAST_GAIN:
                    best, terms, steps[i] = loss, tried, min(0.3, steps[i] * 1.6)
                    break
            else:
                steps[i] = max(0.002, steps[i] / 2)
        print(f"pass {turn + 1}: {best:.5f}", flush=True)
        if before - best < LEAST_GAIN:
            break
    return terms


def kind_of(name):
    """wgmma x1: of kernels that stay; k2: of clusters that share k; direct."""
    return name.split("_")[0] + (" " + name.rsplit("_", 1)[1] if name.startswith("wgmma") else "")


def report(title, measured, terms, n_listed):
    """The best row is the one whose first time is the least; second times are compared."""
    residuals, taken = collections.defaultdict(list), []
    for p, rows in zip(measured.products, measured.times(terms)):
        choice, best = min(rows, key=lambda row: row[3]), min(rows, key=lambda row: row[1])
        taken.append((best[2] / choice[2], p, choice, best))
        for name, _, us, model in rows:
            if us < 1.5 * best[2]:
                residuals[kind_of(name)].append(math.log(model / us))
    ratios = [ratio for ratio, *_ in taken]
    print(f"\n{title}: the choice has {row_times.mean(ratios):.4f} of the best row's speed, {len(ratios)} products,"
          f" least {min(ratios):.3f}; {sum(r < 0.9 for r in ratios)} below 0.9")
    for kind, found in sorted(residuals.items()):
        mean, square = sum(found) / len(found), sum(x * x for x in found) / len(found)
        print(f"  {kind:10} {len(found):5} times near the best: the model {mean:+.3f}, spread {math.sqrt(max(0, square - mean * mean)):.3f}")
    for ratio, p, choice, best in sorted(taken, key=lambda t: t[0])[:n_listed]:
        print(f"  {ratio:.3f} {p.ops} {p.m}x{p.n}x{p.k} {row_times.lines_straddle(p)} {choice[0]} {choice[2]:.1f} (model {choice[3]:.1f});"
              f" {best[0]} {best[2]:.1f} ({best[3]:.1f}); cuBLAS {p.cublas_us:.1f}")


def initializers(terms, names, model):
    """{name: text of its value}, with four figures."""
    values = collections.defaultdict(list)
    for (of, name, _), value in zip(names, terms):
        if of == model:
            values[name].append(f"{value:.4g}")
    is_array = {name for of, name, place in names if of == model and place is not None}
    return {name: "{" + ", ".join(found) + "}" if name in is_array else found[0] for name, found in values.items()}


def write(terms, names, letter, family):
    for model in models_of(letter):
        path = ROOT / f"cuda/host/{model}.c"
        text = path.read_text()
        structures = list(STRUCTURE.finditer(text))
        if len(structures) != (len(STRUCTURES) if model in COPIED_MODELS else 1):
            raise SystemExit(f"fit_model.py: {path} has {len(structures)} structures of terms")
        found = structures[STRUCTURES.index((family, letter)) if model in COPIED_MODELS else 0]
        lines = [f"{found[2]}.{name} = {value}," for name, value in initializers(terms, names, model).items() if value != "0"]
        path.write_text(text[:found.start(1)] + "".join(lines) + text[found.end(1):])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("files", nargs="+")
    parser.add_argument("--family", choices=FAMILIES, default="dmma", help="of rows that copy for others")
    parser.add_argument("--test", nargs="+", default=[], metavar="FILE")
    parser.add_argument("--passes", type=int, default=60)
    parser.add_argument("--only", type=lambda text: text.split(","), metavar="TEXT,...")
    parser.add_argument("--begin", type=lambda text: dict(word.split("=") for word in text.split(",")), default={}, metavar="TERM=VALUE,...")
    parser.add_argument("--list", type=int, default=12, metavar="N", help="how many of the worst choices are listed")
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    letter = row_times.read(options.files[0])[0].routine[0]
    code, names = compile_models(), names_of_terms(letter)
    measured_with = terms_of(code, letter, options.family)
    fitted = Measured(code, options.files, measured_with, options.family)
    begin = [float(options.begin.get(name, value)) for value, (_, name, _) in zip(measured_with, names)]
    terms = search(fitted, begin, names, options.passes, options.only)
    report("fitted", fitted, terms, options.list)
    if options.test:
        report("test", Measured(code, options.test, measured_with, options.family), terms, options.list)
    print()
    for model in models_of(letter):
        print(", ".join(f"{name} = {value}" for name, value in initializers(terms, names, model).items()))
    if options.write:
        write(terms, names, letter, options.family)


if __name__ == "__main__":
    main()
