#!/usr/bin/env python3
"""What the lines of suite `row_times` say (bench/gpu/row_times.c): the best of our rows beside cuBLAS, the choice beside the best.

    tools/row_times.py FILE.jsonl ... [--list BELOW]

Geometric means by distribution, min(m, n), ops and cuBLAS's time. --list: the products whose best row is below that part of cuBLAS's
speed, with the row, what it runs in (rounds of items, of which how many are full) and what nobody can be faster than (tensor cores, memory).
"""

import argparse
import collections
import json
import math
import pathlib
import re

CASE = re.compile(r"([NT])([NT]) (\d+)x(\d+)x(\d+) (\w+) lda\+(\d+) ldb\+(\d+) ldc\+(\d+)")
ROW = re.compile(r"(?:wgmma|direct|vec|mma16)_(\d+)x(\d+)x(\d+)_(\w+)")
SUMS_PER_US, BYTES_PER_US, N_SMS = 4096 * 132 * 1755 / 2, 4.0e6, 132

Product = collections.namedtuple("Product", "routine ops m n k kind more cublas_us choice choice_us best best_us rows")


def read(path):
    """The products of a file; rows: {name: (first, second)}, us."""
    products = []
    for line in pathlib.Path(path).read_text(encoding="utf-8").splitlines():
        record = json.loads(line)
        a, b, m, n, k, kind, *more = CASE.match(record["case"]).groups()
        rows = {}
        for word in record["rows"].split():
            name, times = word.split(":")
            rows[name] = tuple(float(t) for t in times.split("/"))
        best, choice = (record[name].split("_", 1)[1] for name in ("best", "kernel"))
        products.append(Product(record["routine"], a + b, int(m), int(n), int(k), kind, tuple(map(int, more)), record["theirs"], choice,
                                record["ours"], best, rows[best][1], rows))
    return products


def mean(ratios):
    return math.exp(sum(map(math.log, ratios)) / len(ratios)) if ratios else math.nan


def side(p):
    least = min(p.m, p.n)
    return "min(m,n) <= 64" if least <= 64 else "65-256" if least <= 256 else "257-1024" if least <= 1024 else "> 1024"


def time(p):
    return "time < 10 us" if p.cublas_us < 10 else "10-30" if p.cublas_us < 30 else "30-100" if p.cublas_us < 100 else ">= 100"


def lines_straddle(p):
    """Of A and B: whether lines of 128 bytes straddle two of the L2, or are not even of whole 16 bytes."""
    lengths = (p.k if p.ops[0] == "T" else p.m) + p.more[0], (p.n if p.ops[1] == "T" else p.k) + p.more[1]
    return "".join("o" if x % 8 else "s" if x % 64 else "." for x in lengths)


def print_table(products):
    groups = collections.defaultdict(list)
    for p in products:
        kind = "uniform" if p.kind == "uniform" else "classes"
        for name in ("all", side(p), time(p), "ops " + p.ops, "lines " + lines_straddle(p), p.kind):
            groups[kind, name].append(p)
    print(f"{'':32} {'n':>4} {'best/cuBLAS':>12} {'choice/cuBLAS':>14} {'choice/best':>12} {'least':>6}")
    order = lambda name: ("all min( 65- 257 > tim 10- 30- >= ops lin".split() + [name]).index(
        next((x for x in "all min( 65- 257 tim 10- 30- >= ops lin >".split() if name.startswith(x)), name))
    for kind, name in sorted(groups, key=lambda key: (key[0], order(key[1]), key[1])):
        some = groups[kind, name]
        ratios = [p.best_us / p.choice_us for p in some]
        print(f"{kind + ' ' + name:32} {len(some):4} {mean([p.cublas_us / p.best_us for p in some]):12.3f}"
              f" {mean([p.cublas_us / p.choice_us for p in some]):14.3f} {mean(ratios):12.3f} {min(ratios):6.2f}")


def describe(p):
    parts = ROW.match(p.best)
    if not parts or not p.best.startswith("wgmma"):
        return ""
    bm, bn, _, rest = parts.groups()
    coarse, sharing = re.match(r"c(\d+)_(\w\d)", rest).groups()
    splits, width = (int(sharing[1]) if sharing[0] == "k" else 1), int(bn) * int(coarse)
    items = math.ceil(p.m / int(bm)) * math.ceil(p.n / width)
    places = N_SMS // splits
    useful = p.m * p.n / (items * int(bm) * width)
    return f"{items} items on {places}, {useful:.2f} of them used"


def print_list(products, below):
    slow = sorted((p for p in products if p.cublas_us / p.best_us < below), key=lambda p: p.cublas_us / p.best_us)
    print(f"\n{len(slow)} of {len(products)} products whose best row is below {below} of cuBLAS's speed: ratio, us, cuBLAS's, tensor cores', memory's")
    for p in slow:
        sums, moved = p.m * p.n * p.k / SUMS_PER_US, 2 * (p.m * p.k + p.n * p.k + p.m * p.n) / BYTES_PER_US
        print(f"{p.cublas_us / p.best_us:.2f} {p.ops} {p.m}x{p.n}x{p.k} {lines_straddle(p)} {p.best_us:7.1f} {p.cublas_us:7.1f} {sums:7.1f} {moved:7.1f}"
              f" {p.best} {describe(p)}" + (f" (choice {p.choice} {p.choice_us:.1f})" if p.choice != p.best else ""))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("files", nargs="+")
    parser.add_argument("--list", type=float, metavar="BELOW")
    options = parser.parse_args()
    products = [p for path in options.files for p in read(path)]
    print_table(products)
    if options.list:
        print_list(products, options.list)


if __name__ == "__main__":
    main()
