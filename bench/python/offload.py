"""NumPy's products with libwsgemm_blas preloaded and GPUs allowed (WSGEMM_OFFLOAD=auto), beside NumPy as it is.

    offload.py LIBWSGEMM_BLAS [--sizes 2048,8192] [--types float32,float64] [--samples N] [--json FILE] [--commit NAME]

n x n products `a @ b`, whose result is new memory, and `numpy.matmul(a, b, out=c)`. What is preloaded is a process's own matter, so
each side is a process that this one starts for each case, in turn; medians. Results are compared with a sum in longer precision
of some elements. Without a GPU: exit code 77.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import statistics
import subprocess
import sys
import time

import numpy as np


def child(type_name: str, n: int, n_samples: int) -> None:
    """Prints seconds of both forms, and the largest error of some elements in units of eps sum |a| |b|."""
    draws = np.random.default_rng(25)
    a, b = (2 * draws.random((n, n), dtype=type_name) - 1 for _ in range(2))
    c = np.zeros((n, n), type_name)
    times: dict[str, list[float]] = {"a @ b": [], "out=": []}
    rows, columns = (draws.integers(n, size=50) for _ in range(2))
    results = {}
    for sample in range(n_samples + 1):
        for form, seconds in times.items():
            begin = time.perf_counter()
            results[form] = np.matmul(a, b, out=c) if form == "out=" else a @ b
            if sample > 0:
                seconds.append(time.perf_counter() - begin)
    worst = 0.0
    for i, j in zip(rows, columns):
        x, y = a[i].astype(np.longdouble), b[:, j].astype(np.longdouble)
        for d in results.values():
            error = abs(float(d[i, j] - x @ y)) / float(abs(x) @ abs(y)) / np.finfo(type_name).eps
            worst = max(worst, float(error))
    print(json.dumps({"seconds": {form: statistics.median(s) for form, s in times.items()}, "worst": worst}))


def run(preload: str | None, type_name: str, n: int, n_samples: int) -> dict:
    environment = dict(os.environ)
    if preload:
        environment |= {"LD_PRELOAD": preload, "WSGEMM_OFFLOAD": "auto"}
        environment.setdefault("CUDA_VISIBLE_DEVICES", "0")  # auto takes all
    command = [sys.executable, __file__, "--child", type_name, str(n), str(n_samples)]
    return json.loads(subprocess.run(command, env=environment, stdout=subprocess.PIPE, check=True).stdout)


def peer() -> str:
    blas = np.show_config(mode="dicts")["Build Dependencies"]["blas"]
    return f"NumPy {np.__version__}, {blas['name']} {blas['version']}"


def device() -> str | None:
    try:
        command = ["nvidia-smi", "--query-gpu=name", "--format=csv,noheader"]
        return subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True).stdout.splitlines()[0]
    except (OSError, subprocess.CalledProcessError, IndexError):
        return None


def main() -> int:
    if sys.argv[1:2] == ["--child"]:
        child(sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
        return 0
    parser = argparse.ArgumentParser()
    parser.add_argument("library")
    parser.add_argument("--sizes", default="2048,8192")
    parser.add_argument("--types", default="float32,float64")
    parser.add_argument("--samples", type=int, default=5)
    parser.add_argument("--json")
    parser.add_argument("--commit", default="unknown")
    options = parser.parse_args()
    gpu, is_good = device(), True
    if gpu is None:
        return 77
    for n in map(int, options.sizes.split(",")):
        for type_name in options.types.split(","):
            theirs, ours = (run(side, type_name, n, options.samples) for side in (None, options.library))
            routine, most = f"{type_name.replace('float32', 's').replace('float64', 'd')}gemm", 2.0 * max(2.0, theirs["worst"])
            is_good &= ours["worst"] <= most
            for form in ours["seconds"]:
                rates = [2e-12 * n**3 / side["seconds"][form] for side in (ours, theirs)]
                print(f"{routine} {n} {form:6} {rates[0]:7.2f} TF, NumPy {rates[1]:6.2f}; errors {ours['worst']:.2g}, {theirs['worst']:.2g} eps")
                line = {"suite": "gpu_offload_numpy", "routine": routine, "case": f"{form} {n} pageable, 1 GPU", "policy": "auto",
                        "device": gpu, "peer": peer(), "ours": rates[0], "theirs": rates[1], "unit": "TFLOP/s",
                        "ratio": rates[0] / rates[1], "commit": options.commit,
                        "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
                        "samples": options.samples} | ({"tuning": "off"} if os.environ.get("WSGEMM_TUNE") == "off" else {})
                if options.json:
                    with open(options.json, "a", encoding="ascii") as out:
                        out.write(json.dumps(line) + "\n")
    return 0 if is_good else 1


if __name__ == "__main__":
    sys.exit(main())
