"""Groups of products whose sizes are on the GPU, beside torch._grouped_mm: bfloat16, forward and the gradient of the weights.

    grouped.py [--seed N] [--count N] [--samples N] [--json FILE] [--commit NAME]

Sizes are drawn at random, `count` of each class: groups of Zipf's sizes, small ones, few rows each (as tokens are decoded),
equal ones, and one huge one among empty ones. In turns, the L2 flushed before every timing, medians of event timings; results
are compared. Without torch._grouped_mm, or a GPU: exit code 77.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import sys

CLASSES = ("zipf", "small", "decode", "equal", "huge")
FLUSHED_BYTES = 256 << 20


def draw(draws: random.Random, name: str) -> tuple[list[int], int, int]:
    """(rows of each group, columns, what is summed over)"""
    n, k = (128 * draws.randint(8, 40) for _ in range(2))
    n_groups = draws.choice((16, 32, 64, 128, 256))
    if name == "zipf":
        total, power = draws.randint(8192, 32768), draws.uniform(0.6, 1.2)
        shares = [(i + 1) ** -power for i in range(n_groups)]
        counts = [int(total * share / sum(shares)) for share in shares]
        if draws.random() < 0.5:
            draws.shuffle(counts)
    elif name == "small":
        n, k = n // 2 // 128 * 128, k // 2 // 128 * 128
        counts = [draws.randint(8, 256) for _ in range(n_groups)]
    elif name == "decode":
        counts = [draws.choice((0, draws.randint(1, 16))) for _ in range(n_groups)]
    elif name == "equal":
        n_groups = draws.choice((4, 8, 16))
        counts = [256 * draws.randint(4, 16)] * n_groups
    else:
        counts = [0] * n_groups
        counts[draws.randrange(n_groups)] = draws.randint(4096, 16384)
    return counts, n, k


def medians_us(torch, calls, n_samples):
    flushed = torch.empty(FLUSHED_BYTES, dtype=torch.uint8, device="cuda")
    times = [[] for _ in calls]
    for sample in range(n_samples + 1):
        for idx, call in enumerate(calls):
            flushed.fill_(sample)
            begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            torch.cuda._sleep(1000000)  # the host is ahead
            begin.record()
            call()
            end.record()
            torch.cuda.synchronize()
            if sample:
                times[idx].append(begin.elapsed_time(end) * 1e3)
    return [statistics.median(found) for found in times]


def measure(torch, grouped_mm, counts, n, k, n_samples):
    """(form, microseconds here, microseconds of torch, TFLOP/s here, GB/s of what must be moved at least, greatest difference)"""
    offs = torch.tensor(counts, device="cuda").cumsum(0).to(torch.int32)
    total, groups = sum(counts), len(counts)
    x, g = (torch.randn(total, width, device="cuda", dtype=torch.bfloat16) for width in (k, n))
    stored, moved = torch.randn(groups, n, k, device="cuda", dtype=torch.bfloat16), 2.0 * (total * (n + k))
    busy = sum(count > 0 for count in counts)
    forms = {
        "forward": (x, stored.mT, moved + 2.0 * busy * n * k),
        "gradient": (g, stored, moved + 2.0 * busy * n * k),
        "weights": (g.t(), x, moved + 2.0 * groups * n * k),
    }
    for form, (a, b, n_bytes) in forms.items():
        pair = [lambda a=a, b=b: grouped_mm(a, b, offs), lambda a=a, b=b: torch._grouped_mm(a, b, offs=offs)]
        ours, theirs = (call().float() for call in pair)
        difference = float((ours - theirs).abs().max() / theirs.abs().max())
        del ours, theirs
        us, torch_us = medians_us(torch, pair, n_samples)
        yield form, us, torch_us, 2e-6 * total * n * k / us, 1e-3 * n_bytes / us, difference


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=4)
    parser.add_argument("--samples", type=int, default=7)
    parser.add_argument("--json")
    parser.add_argument("--commit", default="")
    options = parser.parse_args()
    try:
        import torch
        import wsgemm.torch as wt
    except ImportError as error:
        print(f"skipped: {error}")
        return 77
    if not torch.cuda.is_available() or not hasattr(torch, "_grouped_mm"):
        print("skipped: no GPU, or torch is older than _grouped_mm")
        return 77
    torch.manual_seed(options.seed)
    draws, is_wrong = random.Random(options.seed), False
    for name in CLASSES:
        ratios = []
        for _ in range(options.count):
            counts, n, k = draw(draws, name)
            with torch.no_grad():
                found = list(measure(torch, wt.grouped_mm, counts, n, k, options.samples))
            for form, us, torch_us, tflops, gbs, difference in found:
                is_wrong |= not difference < 0.02
                ratios.append(torch_us / us)
                shape = f"{len(counts)} groups, {sum(counts)} rows, n {n}, k {k}"
                print(f"grouped   {name:7s} {form:9s} {shape:44s} {us:8.1f} us {tflops:6.1f} TF {gbs:6.0f} GB/s {ratios[-1]:5.2f}")
                if options.json:
                    line = {"suite": "grouped", "class": name, "form": form, "groups": len(counts), "rows": sum(counts), "n": n,
                            "k": k, "us": us, "peer_us": torch_us, "commit": options.commit, "seed": options.seed}  # fmt: skip
                    with open(options.json, "a") as file:
                        print(json.dumps(line), file=file)
        print(f"grouped   {name:7s} geometric mean {statistics.geometric_mean(ratios):.2f}, least {min(ratios):.2f}")
    return int(is_wrong)


if __name__ == "__main__":
    sys.exit(main())
