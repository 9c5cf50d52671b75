"""Groups of products whose sizes are on the GPU, forward and the gradient of the weights: bfloat16 beside torch._grouped_mm,
other types, which that does not take, beside a loop of torch.mm, whose sizes the host knows.

    grouped.py [--type bfloat16|float32|tf32|float64|complex64] [--seed N] [--count N] [--samples N] [--json FILE] [--commit NAME]

Sizes are drawn at random, `count` of each class: groups of Zipf's sizes, small ones, few rows each (as tokens are decoded),
equal ones, and one huge one among empty ones. In turns, the L2 flushed before every timing, medians of event timings; results
are compared. Without torch._grouped_mm, or a GPU: exit code 77.
"""

from __future__ import annotations

import argparse
import datetime
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


def medians_us(torch, calls, n_samples, ahead):
    """ahead: cycles that the GPU waits for the host."""
    flushed = torch.empty(FLUSHED_BYTES, dtype=torch.uint8, device="cuda")
    times = [[] for _ in calls]
    for sample in range(n_samples + 1):
        for idx, call in enumerate(calls):
            flushed.fill_(sample)
            begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            torch.cuda._sleep(ahead)
            begin.record()
            call()
            end.record()
            torch.cuda.synchronize()
            if sample:
                times[idx].append(begin.elapsed_time(end) * 1e3)
    return [statistics.median(found) for found in times]


def loop(torch, a, b, counts):
    """The groups one after the other, by torch.mm, as a function of nothing."""
    bounds = [sum(counts[:i]) for i in range(len(counts) + 1)]
    parts = [slice(bounds[i], bounds[i + 1]) for i in range(len(counts))]
    if b.dim() == 3:
        c = torch.empty(a.shape[0], b.shape[2], device="cuda", dtype=a.dtype)
        triples = [(a[part], b[i], c[part]) for i, part in enumerate(parts) if counts[i]]
    else:
        c = torch.empty(len(counts), a.shape[0], b.shape[1], device="cuda", dtype=a.dtype)
        triples = [(a[:, part], b[part], c[i]) for i, part in enumerate(parts)]

    def run():
        for x, y, out in triples:
            if x.shape[1]:
                torch.mm(x, y, out=out)
            else:
                out.zero_()
        return c

    return run


def largest_difference(ours, theirs):
    """Beside the largest element, a part after the other, as there is not room for copies of all."""
    parts = list(zip(ours.reshape(-1).split(1 << 26), theirs.reshape(-1).split(1 << 26)))
    largest = max(float(theirs.abs().max()) for _, theirs in parts)
    return max(float((ours - theirs).abs().max()) for ours, theirs in parts) / largest


def measure(torch, grouped_mm, dtype, counts, n, k, n_samples):
    """(form, microseconds here, microseconds of torch, TFLOP/s here, GB/s of what must be moved at least, greatest difference)"""
    offs = torch.tensor(counts, device="cuda").cumsum(0).to(torch.int32)
    total, groups = sum(counts), len(counts)
    x, g = (torch.randn(total, width, device="cuda", dtype=dtype) for width in (k, n))
    stored, moved = torch.randn(groups, n, k, device="cuda", dtype=dtype), 1.0 * x.element_size() * (total * (n + k))
    busy, matrix = sum(count > 0 for count in counts), 1.0 * x.element_size() * n * k
    forms = {
        "forward": (x, stored.mT, moved + busy * matrix),
        "gradient": (g, stored, moved + busy * matrix),
        "weights": (g.t(), x, moved + groups * matrix),
    }
    is_looped = dtype != torch.bfloat16
    for form, (a, b, n_bytes) in forms.items():
        theirs_of = loop(torch, a, b, counts) if is_looped else lambda a=a, b=b: torch._grouped_mm(a, b, offs=offs)
        pair = [lambda a=a, b=b: grouped_mm(a, b, offs), theirs_of]
        difference = largest_difference(*(call() for call in pair))
        us, torch_us = medians_us(torch, pair, n_samples, 1000000 + (30000 * groups if is_looped else 0))
        flops = (8 if dtype.is_complex else 2) * total * n * k
        yield form, us, torch_us, 1e-6 * flops / us, 1e-3 * n_bytes / us, difference


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--type", default="bfloat16", choices=("bfloat16", "float32", "tf32", "float64", "complex64"))
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=4)
    parser.add_argument("--samples", type=int, default=7)
    parser.add_argument("--json")
    parser.add_argument("--commit", default="")
    options = parser.parse_args()
    try:
        import torch
        import wsgemm
        import wsgemm.torch as wt
    except ImportError as error:
        print(f"skipped: {error}")
        return 77
    if not torch.cuda.is_available() or not hasattr(torch, "_grouped_mm"):
        print("skipped: no GPU, or torch is older than _grouped_mm")
        return 77
    torch.manual_seed(options.seed)
    is_tf32 = options.type == "tf32"
    dtype = torch.float32 if is_tf32 else getattr(torch, options.type)
    torch.backends.cuda.matmul.allow_tf32 = is_tf32
    handle = wsgemm.Handle(math="tf32") if is_tf32 else None

    def grouped_mm(a, b, offs):
        return wsgemm.grouped_matmul(a, b, offs, handle=handle) if is_tf32 else wt.grouped_mm(a, b, offs)

    limit = {"bfloat16": 0.02, "tf32": 0.004, "float64": 1e-12}.get(options.type, 1e-4)
    draws, is_wrong = random.Random(options.seed), False
    letter = {"bfloat16": "b", "float64": "d", "complex64": "c"}.get(options.type, "s")
    peer = "_grouped_mm" if options.type == "bfloat16" else "loop of mm"
    told = {"suite": "tf32_grouped" if is_tf32 else "grouped", "routine": f"{letter}gemm", "policy": "auto",
            "device": torch.cuda.get_device_name(), "peer": f"torch {torch.__version__} {peer}"}  # fmt: skip
    date = datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
    for name in CLASSES:
        ratios = []
        for _ in range(options.count):
            counts, n, k = draw(draws, name)
            with torch.no_grad():
                found = list(measure(torch, grouped_mm, dtype, counts, n, k, options.samples))
            for form, us, torch_us, tflops, gbs, difference in found:
                is_wrong |= not difference < limit
                ratios.append(torch_us / us)
                shape = f"{len(counts)} groups, {sum(counts)} rows, n {n}, k {k}"
                print(f"grouped   {name:7s} {form:9s} {shape:44s} {us:8.1f} us {tflops:6.1f} TF {gbs:6.0f} GB/s {ratios[-1]:5.2f}")
                if options.json:
                    line = {
                        **told, "case": f"{form}, {shape}", "ours": round(us, 3), "theirs": round(torch_us, 3), "unit": "us",
                        "ratio": float(f"{torch_us / us:.6g}"), "commit": options.commit, "date": date, "class": name, "form": form,
                        "tflops": round(tflops, 2), "gbs": round(gbs), "samples": options.samples, "seed": options.seed,
                    }  # fmt: skip
                    with open(options.json, "a") as file:
                        print(json.dumps(line), file=file)
        print(f"grouped   {name:7s} geometric mean {statistics.geometric_mean(ratios):.2f}, least {min(ratios):.2f}")
    return int(is_wrong)


if __name__ == "__main__":
    sys.exit(main())
