"""Made-up result files of a CPU and of a GPU: something for every picture."""

import json
import math

CPU, GPU = "made-up-cpu-2c", "made-up-gpu"
COMMIT, DATE = "c0ffee1", "2026-01-02"


def _sizes(routines, suite, names, unit, peers, **more):
    lines = []
    for place, routine in enumerate(routines):
        for step, name in enumerate(names):
            for n_peer, peer in enumerate(peers):
                ratio = 0.8 + 0.1 * place + 0.05 * step + 0.01 * n_peer
                rate = 20.0 + 5 * place + step
                lines.append({"suite": suite, "routine": routine, "case": name, "policy": "auto", "peer": peer, "ours": rate,
                              "theirs": rate / ratio, "unit": unit, "ratio": ratio, **more})
    return lines


def _cpu():
    peers = ["OpenBLAS 0.0.1 Old", "OpenBLAS 0.0.2 New"]
    real, every = ["sgemm", "dgemm"], ["sgemm", "dgemm", "cgemm", "zgemm"]
    squares = [f"n={n}" for n in (256, 512, 1000, 2048)]
    odd = ["m=1 n=4096 k=4096", "m=64 n=64 k=65536"]
    heat = [f"m={m} n={n} k=1024" if (m, n) != (1024, 1024) else "n=1024" for m in (16, 256, 1024) for n in (16, 256, 1024)]
    one, two = {"threads": 1, "peak_fraction": 0.5}, {"threads": 2, "peak_fraction": 0.4}
    arms = [("steal", "wsgemm steal"), ("fixed_work", "wsgemm fixed_work"), ("none", peers[0])]
    return {
        "small": _sizes(every, "small", ["n=8", "n=33", "n=128"], "GF/s", peers, **one),
        "square": _sizes(every, "square", squares, "GF/s", peers, **one),
        "threads": _sizes(every, "threads", squares, "GF/s", peers, **two),
        "odd": _sizes(real, "odd", odd, "GF/s", peers, **one) + _sizes(real, "odd", odd, "GF/s", peers, **two),
        "heat": _sizes(real, "heat", heat, "GF/s", peers, **two),
        "steal": [{"suite": "steal", "routine": "sgemm", "case": f"n={n}", "policy": policy, "threads": 2, "peer": peer,
                   "ours": 9.0, "theirs": 8.0, "unit": "GF/s", "ratio": 1.1, "idle_s": 0.3, "busy_s": 0.4, "busy_share": 0.45,
                   "over_ideal": 1 + 0.1 * place} for n in (4096, 6144) for place, (policy, peer) in enumerate(arms)],
    }


def landscape_line(tile, coarse, microseconds, case="nn 4096x4096x4096", routine="sgemm", numerics="f16x3", **more):
    return {"suite": "landscape", "routine": routine, "case": case, "numerics": numerics,
            "row": f"{routine}_{numerics}_{tile}x64_c{coarse}_x1", "tile": tile, "coarse": coarse, "policy": "steal", "order": 8,
            "ours": microseconds, "unit": "us", **more}


def _gpu():
    peers = ["cuBLAS 0.0"]
    plain, half = ["sgemm", "dgemm", "cgemm", "zgemm"], ["hgemm", "bgemm"]
    squares = [f"NN {n}x{n}x{n}" for n in (256, 1024, 4096)] + ["NT 4096x4096x4096", "NN 128x8192x8192"]
    heat = [f"NN {2**i}x{2**j}x4096" for i in range(4, 8) for j in range(4, 8)]
    drawn = [f"TN {m}x{n}x{k} uniform lda+0 ldb+0 ldc+0 seed=1 #{k}" for m in (16, 17, 4096) for n in (64, 65) for k in (256, 16384)]
    policies = ["fixed_work", "fixed_blocks", "steal", "steal_q1", "steal_q16", "cuBLAS"]

    def sharing(routine, size):
        lines = [{"routine": routine, "case": f"held sms={sms} n={size}", "policy": policy, "ours": 1 + 0.01 * sms,
                  "unit": "times idle", "ideal": 132 / (132 - sms)} for sms in (8, 16) for policy in policies]
        lines += [{"routine": routine, "case": f"priority n={size}", "policy": policy, "ours": 0.1 + place, "unit": "ms",
                   "max": 0.2 + place} for place, policy in enumerate(["idle", *policies])]
        return [{"suite": "gpu_sharing", "peer": peers[0], **line} for line in lines]

    rows = []
    for place, kernel in enumerate(["sgemm_simt_64x64x16_c4", "sgemm_simt_32x32x32_c1"]):
        rows += [{"case": "priority n=8192", "kernel": kernel, "ours": 0.3 / (place + 1), "unit": "ms", "max": 1.0},
                 {"case": "cost n=8192", "kernel": kernel, "ours": 1 + 0.5 * place, "unit": "times the best", "ms": 20.0}]
    strategies = []
    for place, policy in enumerate(["fixed_work", "fixed_blocks", "steal", "steal_q8"]):
        strategies += [{"case": f"prologue rounds={r}", "policy": policy, "ours": 0.3, "unit": "ms",
                        "times_no_prologue": 1 + r * place / 999} for r in (0, 64, 256)]
        strategies += [{"case": f"uneven {how}", "policy": policy, "ours": 1 + 0.1 * place, "unit": "times ideal", "ms": 2.0}
                       for how in ("none", "random")]
        strategies += [{"case": "held sms=8", "policy": policy, "ours": 1.1, "unit": "times idle", "ideal": 1.06},
                       {"case": "priority latency", "policy": policy, "ours": 80.0 + place, "unit": "us", "max": 100.0 + place},
                       {"case": "priority low kernel", "policy": policy, "ours": 33.0, "unit": "ms", "max": 34.0}]
    return {
        "gpu_square": _sizes(plain, "gpu_square", squares, "TFLOP/s", peers),
        "gpu_half_square": _sizes(half, "gpu_half_square", squares, "TFLOP/s", peers),
        "gpu_pedantic": _sizes(["sgemm"], "gpu_pedantic", squares, "TFLOP/s", peers),
        "gpu_skinny": _sizes(plain, "gpu_skinny", ["NN 1x4096x4096"], "TFLOP/s", peers),
        "gpu_heat": _sizes(plain, "gpu_heat", heat, "TFLOP/s", peers),
        "gpu_half_heat": _sizes(half, "gpu_half_heat", heat, "TFLOP/s", peers),
        "gpu_random": _sizes(plain, "gpu_random", drawn, "TFLOP/s", peers),
        "gpu_half_random_uniform": _sizes(half, "gpu_half_random_uniform", drawn, "TFLOP/s", peers),
        "gpu_offload": [{"suite": "gpu_offload", "routine": routine, "case": f"NN {n} {memory}, 1 GPU", "policy": "auto",
                         "peer": "cublasXt 1.2.3", "ours": n / 100, "theirs": n / 400, "cpu": 1.5 if n < 8192 else 0, "unit": "TFLOP/s",
                         "ratio": 4.0} for routine in ("sgemm", "dgemm") for n in (2048, 4096, 8192) for memory in ("pageable", "pinned")],
        "gpu_sharing": sharing("sgemm", 4096) + sharing("dgemm", 8192),
        "gpu_sharing_rows": [{"suite": "gpu_sharing_rows", "routine": "sgemm", "policy": "steal_q1", "peer": peers[0], **row}
                             for row in rows],
        "gpu_strategies": [{"suite": "gpu_strategies", "routine": "vector_scale", **line} for line in strategies],
        "landscape": [landscape_line(tile, coarse, 100.0 * math.sqrt(place + coarse), case, routine, numerics)
                      for place, tile in enumerate(["64x64", "128x64", "128x128"]) for coarse in (1, 2, 4)
                      for case in ("nn 1024x1024x1024", "nn 4096x4096x4096")
                      for routine, numerics in (("sgemm", "f16x3"), ("dgemm", ""))],
    }


def write(folder, name, suites, origin=None):
    """suites: {suite: lines}; device, commit and date are added to the lines."""
    origin = origin or {"device": f"Made-up {name}", "commit": COMMIT, "date": DATE}
    (folder / name).mkdir(parents=True, exist_ok=True)
    for suite, lines in suites.items():
        text = "".join(json.dumps({**line, **origin}) + "\n" for line in lines)
        (folder / name / f"{suite}.jsonl").write_text(text, encoding="utf-8")


def write_all(folder):
    write(folder, CPU, _cpu())
    write(folder, GPU, _gpu())
