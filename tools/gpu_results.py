#!/usr/bin/env python3
"""Sorts the JSON lines of `tools/gpu.sh bench` into bench/results/<device>/gpu_<suite>.jsonl (hgemm, bgemm: gpu_half_<suite>.jsonl),
replacing all records of a routine in a suite.

    gpu_results.py [--results DIR] COMMIT FILE...

Names the commit that was measured, which the device may not know, and the best of all candidates in the lines of
`wsgemm autotune --exhaustive --log`, which are written before it is known.
"""

import argparse
import json
import pathlib

RESULTS = pathlib.Path(__file__).resolve().parent.parent / "bench" / "results"
MEMBERS = ("suite", "routine", "case", "policy", "device", "peer", "ours", "theirs", "unit", "ratio", "commit", "date")


def product_of(record):
    return record["routine"], record["case"], record["numerics"], record.get("beta", 0)


def beside_best(records):
    """Lines of an exhaustive search, in microseconds, each beside the best of its product."""
    best = {}
    for record in records:
        product = product_of(record)
        best[product] = min(record["ours"], best.get(product, record["ours"]))
    return [{**record, "peer": "wsgemm best of all candidates", "theirs": best[product_of(record)],
             "ratio": float(f"{best[product_of(record)] / record['ours']:.6g}")} for record in records]


def in_order(record):
    """What every line has first."""
    first = {name: record[name] for name in MEMBERS if name in record}
    return {**first, **{name: value for name, value in record.items() if name not in first}}


def suite_of(record):
    """Some benches say gpu_ themselves; random shapes that are not of classes are a suite of their own."""
    kind = "gpu_half_" if record["routine"] in ("hgemm", "bgemm") else "gpu_"
    suite = record["suite"].removeprefix("gpu_")
    return kind + suite + ("_uniform" if suite == "random" and record.get("class") == "uniform" else "")


def file_away(folder, device, suite, records):
    path = folder / device / f"{suite}.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    measured = {record["routine"] for record in records}
    old = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    if suite.endswith("landscape"):
        records = beside_best(records)
    records = records + [record for record in map(json.loads, old) if record["routine"] not in measured]
    path.write_text("".join(json.dumps(in_order(r)) + "\n" for r in records), encoding="utf-8")
    print(f"{path}: {len(records)} records")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--results", type=pathlib.Path, default=RESULTS)
    parser.add_argument("commit")
    parser.add_argument("files", nargs="+", type=pathlib.Path)
    options = parser.parse_args()
    suites = {}
    for path in options.files:
        for text in path.read_text(encoding="utf-8").splitlines():
            record = json.loads(text)
            record["suite"] = suite_of(record)
            record["commit"] = options.commit
            suites.setdefault((record["device"].lower().replace(" ", "-"), record["suite"]), []).append(record)
    for (device, suite), records in suites.items():
        file_away(options.results, device, suite, records)


if __name__ == "__main__":
    main()
