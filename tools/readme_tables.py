#!/usr/bin/env python3
"""Writes the tables of bench/RESULTS.md, docs/offload.md and docs/cublas.md, and the one of README.md, from bench/results/<device>/<suite>.jsonl.

Replaces the text between `<!-- table:NAME -->` and `<!-- /table -->`. A NAME is a suite, one in SUITES, `headline` (README.md: the CPUs that were
measured at all, the one with the most cores, and the GPUs measured last, one row for each routine) or `overview` (all devices and thread counts). Nothing
else in the documents is touched, and no figure is written by hand. README.md may hold one table. `--check` changes nothing and exits 1 if a document is not what the files say, or if
a line in the files lacks a member that every result has (bench/harness/result.h).
"""

import argparse
import json
import math
import pathlib
import re
import sys

from result_tables import HEADLINES, ROOT, SUITES, TABLES, TAKEN_IN, headline_rows, headline_table, overview_table, unique

MARKED = re.compile(r"(<!-- table:([a-z0-9_]+) -->\n)(.*?)(<!-- /table -->)", re.DOTALL)
MEMBERS = ("suite", "routine", "case", "policy", "device", "peer", "ours", "unit", "commit", "date")
OF_A_PEER = ("theirs", "ratio")  # where the peer is not "none"
RATES = ("GF/s", "GFLOP/s", "TFLOP/s", "GB/s")  # the more the better; of all other units the less


def fail(text):
    sys.exit(f"readme_tables.py: {text}")


def read_results(path):
    records = []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        try:
            records.append(json.loads(line))
        except ValueError as error:
            fail(f"{path}:{number}: {error}")
    if not records:
        fail(f"{path} is empty")
    return records


def ratio_is_right(record):
    ours, theirs, ratio = record["ours"], record["theirs"], record["ratio"]
    if abs(ours) < 0.01 or abs(theirs) < 0.01:  # a few figures are kept of each
        return True
    wanted = ours / theirs if record["unit"] in RATES else abs(theirs / ours)
    return math.isclose(ratio, wanted, rel_tol=0.02, abs_tol=0.001)


def fault_of(record, suite):
    """Why a line is no result; None: it is one."""
    members = MEMBERS + (() if record.get("peer") == "none" else OF_A_PEER)
    lacking = [name for name in members if record.get(name) in (None, "")]
    if lacking:
        return f"no {', '.join(lacking)}"
    if record["suite"] != suite:
        return f"suite {record['suite']!r} in the file of {suite!r}"
    if record["peer"] != "none" and not ratio_is_right(record):
        return f"a ratio of {record['ratio']} does not come of ours {record['ours']} and theirs {record['theirs']}"
    return None


def check_results(results):
    for path in sorted(results.glob("*/*.jsonl")):
        for number, record in enumerate(read_results(path), 1):
            fault = fault_of(record, path.stem)
            if fault:
                fail(f"{path}:{number}: {fault}")


def listed(words):
    """a; a and b; a, b and c."""
    return " and ".join([", ".join(words[:-1])] * (len(words) > 1) + words[-1:])


def caption(records):
    """Device, days, commits, tuning and peers of some records."""
    days = sorted(unique(r["date"][:10] for r in records))
    commits = unique(r["commit"] for r in records)
    peers = [p for p in unique(r.get("peer", "none") for r in records) if not p.startswith("wsgemm") and p != "none"]
    text = f"{records[0]['device']}; {listed(days)}, {'commits' if len(commits) > 1 else 'commit'} {listed(commits)}"
    tuning = [f"WSGEMM_TUNE={'off' if r['tuning'] == 'off' else 'FILE'}" for r in records if "tuning" in r]
    if tuning:
        text += f"; {'' if len(tuning) == len(records) else 'in part '}with {listed(unique(tuning))}"
    return text + (f"; beside {listed(peers)}" if peers else "") + "."


def read_headlines(results):
    """Of each device with results for these tables: its suites and the records that are shown."""
    named = list(unique(suite for pair in HEADLINES for suite in pair[:2]))
    for folder in sorted(path for path in results.iterdir() if path.is_dir()):
        suites = {path.stem: read_results(path) for path in sorted(folder.glob("*.jsonl")) if path.stem in named}
        if "wide" in suites:  # the others are from 8 to 2048
            suites.pop("random", None)
        shown = [record for name in named for record in suites.get(name, [])]
        if shown:
            yield suites, shown


def make_overview(results):
    parts = [f"{caption(shown)}\n\n{overview_table(suites)}\n" for suites, shown in read_headlines(results)]
    return "\n" + "\n".join(parts) + "\n"


def kind_of(suite):
    return "gpu_half" if suite.startswith("gpu_half_") else "gpu" if suite.startswith("gpu_") else "cpu"


def n_cores_of(records):
    found = re.search(r"(\d+) cores?$", records[0]["device"])
    return int(found[1]) if found else 0


def make_headline(results):
    """One table: of the GPUs, and of those with half precision, the one whose squares were measured last, and the one whose random shapes
    were, of those that have both, if any has; of the CPUs all that have both (if none has, as of GPUs), the last one first; also the CPU
    with the most cores."""
    devices = list(read_headlines(results))
    chosen = []
    for kind in ("cpu", "gpu", "gpu_half"):
        named = [{pair[which] for pair in HEADLINES if kind_of(pair[which]) == kind} for which in (0, 1)]
        have_both = [all(any(suites.get(name) for name in names) for names in named) for suites, _ in devices]
        for names in named:
            counts = have_both if any(have_both) else [True] * len(devices)
            dates = [max((r["date"] for name in names for r in suites.get(name, [])), default="") if takes_part else ""
                     for (suites, _), takes_part in zip(devices, counts)]
            by_date = sorted((idx for idx, date in enumerate(dates) if date), key=lambda idx: dates[idx], reverse=True)
            of_kind = by_date if kind == "cpu" and any(have_both) else by_date[:1]
            chosen += [idx for idx in of_kind if idx not in chosen]
        if kind == "cpu" and chosen:
            most = max(range(len(devices)), key=lambda idx: n_cores_of(devices[idx][1]))
            if most not in chosen and n_cores_of(devices[most][1]) > max(n_cores_of(devices[idx][1]) for idx in chosen):
                chosen.append(most)
    if not chosen:
        return "\nNot measured yet.\n\n"
    rows = [row for idx in chosen for row in headline_rows(devices[idx][1][0]["device"], devices[idx][0])]
    captions = "\\\n".join(caption(devices[idx][1]) for idx in chosen)
    return f"\n{headline_table(rows)}\n\n{captions}\n\n"


def make_table(name, results):
    if name in ("headline", "overview"):
        return (make_headline if name == "headline" else make_overview)(results)
    if name not in TABLES:
        fail(f"no table is called {name}; there are headline, overview, {', '.join(TABLES)}")
    suite = SUITES.get(name, name)
    files = sorted(results.glob(f"*/{suite}.jsonl"))
    if not files:
        return "\nNot measured yet.\n\n"
    parts = []
    for path in files:
        records = read_results(path)
        for other in TAKEN_IN.get(name, ()):
            if (path.parent / f"{other}.jsonl").exists():
                records += read_results(path.parent / f"{other}.jsonl")
        try:
            parts.append(f"{caption(records)}\n\n{TABLES[name](records)}\n")
        except (LookupError, StopIteration, ValueError) as error:
            fail(f"{path}: a record lacks what its table needs: {error}")
    return "\n" + "\n".join(parts) + "\n"


def renew(document, options):
    """Whether the document is as the results have it; else, unless it is only checked, it is written anew."""
    old = document.read_text(encoding="utf-8")
    # A mark that lost its partner would swallow text up to the next table.
    if len(MARKED.findall(old)) != old.count("<!-- table:") or old.count("<!-- table:") != old.count("<!-- /table -->"):
        fail(f"{document}: a '<!-- table:NAME -->' has no '<!-- /table -->'")
    new = MARKED.sub(lambda m: m[1] + make_table(m[2], options.results) + m[4], old)
    names = ", ".join(m[1] for m in MARKED.findall(new)) or "none"
    if document == options.readme and len(MARKED.findall(new)) > 1:
        fail(f"{document} holds more than one table ({names}); they belong into bench/RESULTS.md")
    if new == old:
        print(f"{document} is up to date (tables: {names})")
        return True
    if options.check:
        print(f"readme_tables.py: {document} is out of date; run tools/readme_tables.py", file=sys.stderr)
        return False
    document.write_text(new, encoding="utf-8")
    print(f"{document} rewritten (tables: {names})")
    return True


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="change nothing; exit 1 if a document is out of date, or a result lacks a member")
    parser.add_argument("--readme", type=pathlib.Path, default=ROOT / "README.md")
    parser.add_argument("--tables", type=pathlib.Path, nargs="+", default=[ROOT / "bench" / "RESULTS.md", ROOT / "docs" / "offload.md", ROOT / "docs" / "cublas.md"],
                        help="the other documents with tables")
    parser.add_argument("--results", type=pathlib.Path, default=ROOT / "bench" / "results")
    options = parser.parse_args()
    if options.check:
        check_results(options.results)
    if not all([renew(document, options) for document in (*options.tables, options.readme)]):
        sys.exit(1)


if __name__ == "__main__":
    main()
