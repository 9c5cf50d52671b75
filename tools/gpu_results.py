#!/usr/bin/env python3
"""Sorts the JSON lines of `tools/gpu.sh bench` into bench/results/<device>/gpu_<suite>.jsonl (hgemm, bgemm: gpu_half_<suite>.jsonl),
replacing all records of a routine in a suite.

    gpu_results.py COMMIT FILE...

Adds what a line lacks: the commit that was measured and the date of this run.
"""

import datetime
import json
import pathlib
import sys

RESULTS = pathlib.Path(__file__).resolve().parent.parent / "bench" / "results"


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    commit, today = sys.argv[1], datetime.date.today().isoformat()
    suites = {}
    for name in sys.argv[2:]:
        for line in pathlib.Path(name).read_text(encoding="utf-8").splitlines():
            record = json.loads(line)
            kind = "gpu_half_" if record["routine"] in ("hgemm", "bgemm") else "gpu_"
            record["suite"] = kind + record["suite"]
            record["commit"] = commit
            record.setdefault("date", today)
            device = record["device"].lower().replace(" ", "-")
            suites.setdefault((device, record["suite"]), []).append(record)
    for (device, suite), records in suites.items():
        path = RESULTS / device / f"{suite}.jsonl"
        path.parent.mkdir(parents=True, exist_ok=True)
        measured = {record["routine"] for record in records}
        old = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
        records += [record for record in map(json.loads, old) if record["routine"] not in measured]
        path.write_text("".join(json.dumps(r) + "\n" for r in records), encoding="utf-8")
        print(f"{path}: {len(records)} records")


if __name__ == "__main__":
    main()
