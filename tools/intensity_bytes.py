#!/usr/bin/env python3
"""Adds ncu's measured bytes to the JSON lines of bench/gpu/intensity: operations per byte at each level of the memory.

    intensity_bytes.py PROGRAM JSONL

`PROGRAM --once` launches each case once, in the order of the lines. Added to each line:
measured_operations_per_byte (load instructions executed, times the bytes that the threads of a warp ask for by one), distinct_ (the
same, but bytes that threads of a warp share count once), l1_, l2_ and dram_operations_per_byte (bytes that each level gave, in whole
sectors of 32). Without ncu nothing is added.
"""

import csv
import json
import pathlib
import shutil
import subprocess
import sys

# Metric: field, bytes of one unit.
METRICS = {
    "smsp__sass_inst_executed_op_global_ld.sum": ("measured_operations_per_byte", 32 * 4),  # whole warps, floats
    "smsp__sass_data_bytes_mem_global_op_ld.sum": ("distinct_operations_per_byte", 1),
    "l1tex__t_bytes_pipe_lsu_mem_global_op_ld.sum": ("l1_operations_per_byte", 1),
    "lts__t_sectors_srcunit_tex_op_read.sum": ("l2_operations_per_byte", 32),
    "dram__bytes_read.sum": ("dram_operations_per_byte", 1),
}


def run_ncu(program, n, metrics):
    """Of each launch, in order: (name of the kernel, {metric: value}); None where ncu cannot."""
    command = ["ncu", "--clock-control", "none", "--csv", "--print-units", "base", "--metrics", ",".join(metrics),
               program, "--once", "--n", str(n)]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    if result.returncode != 0:
        print(f"intensity_bytes.py: ncu exited with {result.returncode}:\n{(result.stdout + result.stderr)[-600:]}")
        return None
    launches = {}
    for row in csv.DictReader(line for line in result.stdout.splitlines() if line.startswith('"')):
        values = launches.setdefault(int(row["ID"]), (row["Kernel Name"], {}))[1]
        values[row["Metric Name"]] = float(row["Metric Value"].replace(",", ""))
    return [launches[launch_id] for launch_id in sorted(launches)]


def measure(program, n):
    launches = run_ncu(program, n, list(METRICS))
    if launches is not None:
        return launches
    # One of the metrics may be unknown to this ncu or GPU: the others alone.
    merged = None
    for metric in METRICS:
        some = run_ncu(program, n, [metric])
        if some is None:
            continue
        if merged is None:
            merged = some
        else:
            for launch, other in zip(merged, some):
                launch[1].update(other[1])
    return merged


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    program, path = sys.argv[1], pathlib.Path(sys.argv[2])
    if not shutil.which("ncu"):
        print("intensity_bytes.py: no ncu; bytes are not measured")
        return
    records = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    n = int(records[0]["case"].split("n=")[1])
    launches = measure(program, n)
    if launches is None:
        print("intensity_bytes.py: ncu measured nothing")
        return
    if len(launches) != len(records):
        sys.exit(f"intensity_bytes.py: {len(launches)} launches measured, {len(records)} lines in {path}")
    for record, (kernel, values) in zip(records, launches):
        case = record["case"].split()[0]
        if case.rstrip("0123456789") not in kernel:
            sys.exit(f"intensity_bytes.py: {case} was to be measured, not {kernel}")
        text = []
        for metric, (field, unit_bytes) in METRICS.items():
            if values.get(metric):
                record[field] = float(f"{2 * n**3 / (values[metric] * unit_bytes):.6g}")
                text.append(f"{field.removesuffix('_operations_per_byte')} {record[field]:.4g}")
        print(f"{case:12} n={n}  operations per byte by ncu: {', '.join(text)}")
    path.write_text("".join(json.dumps(r) + "\n" for r in records), encoding="utf-8")


if __name__ == "__main__":
    main()
