"""The tables of bench/RESULTS.md and README.md, each a function of the records of its suite: see readme_tables.py.

A speedup above 1 means that wsgemm is faster; it is against the fastest of the other libraries.
"""

import math
import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parent.parent


def geometric_mean(values):
    return math.exp(sum(map(math.log, values)) / len(values))


def unique(values):
    return list(dict.fromkeys(values))


def table(heads, rows):
    """A Markdown table; the first column to the left, the others to the right."""
    lines = ["| " + " | ".join(heads) + " |", "|" + "|".join([":--"] + ["--:"] * (len(heads) - 1)) + "|"]
    return "\n".join(lines + ["| " + " | ".join(row) + " |" for row in rows])


class Case:
    """The records of one case: one for each peer."""

    def __init__(self, records):
        self.records = records
        first = records[0]
        self.routine, self.name, self.threads = first["routine"], first["case"], first.get("threads", 0)
        self.rate, self.peak_fraction = first["ours"], first.get("peak_fraction")
        ratios = [r["ratio"] for r in records if "ratio" in r]
        self.ratio = min(ratios) if ratios else None  # against the faster peer
        self.peers = unique(r["peer"] for r in records)
        rates = [r["theirs"] for r in records if "theirs" in r]
        self.best_peer_rate = max(rates) if rates else None


def cases_of(records):
    groups = {}
    for record in records:
        groups.setdefault((record["routine"], record["case"], record.get("threads", 0)), []).append(record)
    return [Case(group) for group in groups.values()]


def peer_family(peers):
    """What the peers are called together: "OpenBLAS"; of several versions the faster one counts."""
    names = unique(peer.split()[0].rstrip(",") for peer in peers if peer != "none")
    return " or ".join(names) or "others"


def speedup_head(cases):
    return f"speedup over {peer_family([peer for case in cases for peer in case.peers])}"


def ratio_text(case):
    return "-" if case.ratio is None else f"{case.ratio:.3f}"


def threads_text(count):
    return f"{count} thread" + ("" if count == 1 else "s")


def size_of(case):
    return int(case.name.removeprefix("n="))


def by_routine(cases):
    """One row for each routine and thread count, which is told where there are several: ratios and share of the peak over all sizes."""
    rows, has_threads = [], len({case.threads for case in cases}) > 1
    for routine, threads in unique((c.routine, c.threads) for c in cases):
        group = [c for c in cases if (c.routine, c.threads) == (routine, threads)]
        rated = [c for c in group if c.ratio is not None]
        least = min(rated, key=lambda c: c.ratio) if rated else None
        sizes = [size_of(c) for c in group]
        rows.append([
            f"`{routine}`", *([str(threads)] if has_threads else []), f"{min(sizes)}-{max(sizes)}",
            f"{geometric_mean([c.ratio for c in rated]):.3f}" if rated else "-",
            f"{least.ratio:.3f} (n = {size_of(least)})" if least else "-",
            f"{max(c.rate for c in group):.0f}",
            f"{geometric_mean([c.peak_fraction for c in group]):.2f}",
        ])
    heads = ["routine", *(["threads"] if has_threads else []), "n", f"{speedup_head(cases)}, geometric mean", "least", "best GF/s", "share of peak, geometric mean"]
    return table(heads, rows)


def by_shape(cases):
    """One row for each shape and routine, one column of ratios for each thread count."""
    threads = unique(c.threads for c in cases)
    rows = []
    for name, routine in unique((c.name, c.routine) for c in cases):
        row = [name, f"`{routine}`"]
        for count in threads:
            found = [c for c in cases if (c.name, c.routine, c.threads) == (name, routine, count)]
            row += [f"{found[0].rate:.1f}", ratio_text(found[0])] if found else ["-", "-"]
        rows.append(row)
    heads = ["shape", "routine"]
    for count in threads:
        heads += [f"GF/s, {threads_text(count)}", speedup_head(cases)]
    return table(heads, rows)


def steal_table(records):
    rows = [[r["case"].replace("=", " = "), r["peer"], f"{r['idle_s']:.3f}", f"{r['busy_s']:.3f}", f"{r['busy_share']:.2f}",
             f"{r['over_ideal']:.2f}"] for r in records]
    return table(["size", "who", "idle, s", "one core half busy, s", "share taken", "time relative to ideal"], rows)


def policies_table(records):
    sizes = unique((r["routine"], r["case"]) for r in records)
    arms = unique((r["policy"], r.get("coarse_factor")) for r in records)
    rows = []
    for policy, factor in arms:
        row = [f"`{policy}`" + (f", COARSE_FACTOR {factor}" if factor else "")]
        for routine, case in sizes:
            found = [r for r in records if (r["routine"], r["case"], r["policy"], r.get("coarse_factor")) ==
                     (routine, case, policy, factor)]
            row += [f"{found[0]['ours']:.0f}", f"{found[0]['ratio']:.3f}"] if found else ["-", "-"]
        rows.append(row)
    heads = ["policy"]
    for routine, case in sizes:
        heads += [f"{routine} {case}, GF/s", "speedup over `fixed_blocks`"]
    return table(heads, rows)


def neighbours_table(records):
    """Suites that compare wsgemm with itself, summed up in one row."""
    least = min(records, key=lambda r: r["ratio"])
    return table(["compared with", "sizes", "speed relative to it, geometric mean", "least"],
                 [[records[0]["peer"], str(len(records)), f"{geometric_mean([r['ratio'] for r in records]):.3f}",
                   f"{least['ratio']:.3f} ({least['case'].replace('=', ' = ')})"]])


def gpu_gemm_table(records):
    """One row for each case, a pair of columns for each routine, in BLAS's order."""
    routines = sorted(unique(r["routine"] for r in records), key=lambda routine: "sdczhb".index(routine[0]))
    rows = []
    for case in unique(r["case"] for r in records):
        row = [case]
        for routine in routines:
            found = [r for r in records if (r["case"], r["routine"]) == (case, routine)]
            row += [f"{found[0]['ours']:.1f}", f"{found[0]['ratio']:.2f}"] if found else ["-", "-"]
        rows.append(row)
    means = ["geometric mean of the speedups"]
    for routine in routines:
        means += ["", f"{geometric_mean([r['ratio'] for r in records if r['routine'] == routine]):.3f}"]
    heads = ["ops, m x n x k"]
    for routine in routines:
        heads += [f"{routine}, TFLOP/s", f"speedup over {peer_family(r['peer'] for r in records)}"]
    return table(heads, rows + [means])


def gpu_calls_table(records):
    """What a call costs the host: one row for each case, three columns for each routine."""
    routines = sorted(unique(r["routine"] for r in records), key=lambda routine: "sdczhb".index(routine[0]))
    peer = peer_family(r["peer"] for r in records)
    rows = []
    for case in unique(r["case"] for r in records):
        found = [[r for r in records if (r["case"], r["routine"]) == (case, routine)] for routine in routines]
        cells = [[f"{r[0]['ours']:.1f}", f"{r[0]['theirs']:.1f}", f"{r[0]['ratio']:.2f}"] if r else ["-"] * 3 for r in found]
        rows.append([case, *(cell for three in cells for cell in three)])
    heads = [head for routine in routines for head in (f"{routine}, us", f"{peer}, us", "speedup")]
    return table(["size, how called", *heads], rows)


def gpu_epilogue_table(records):
    """One row for each epilogue, one column for each product: the rate without one, then ratios to it."""
    split = [{**r, "epilogue": r["case"].split()[0], "product": (r["routine"], r["case"].split()[1])} for r in records]
    products = unique(r["product"] for r in split)
    rows = [["none, TFLOP/s"] + [f"{next(r['theirs'] for r in split if r['product'] == p):.0f}" for p in products]]
    for epilogue in unique(r["epilogue"] for r in split):
        ratios = {r["product"]: f"{r['ratio']:.3f}" for r in split if r["epilogue"] == epilogue}
        rows.append([f"`{epilogue}`"] + [ratios.get(p, "-") for p in products])
    return table(["epilogue"] + [" ".join(p) for p in products], rows)


def gpu_accuracy_table(records):
    """One row for each distribution and k, a pair of columns (ours, theirs) for each measure."""
    split = [{**r, "at": tuple(r["case"].rsplit(", ", 2)[:2]), "measure": r["case"].rsplit(", ", 1)[1]} for r in records]
    measures = unique(r["measure"] for r in split)
    rows = []
    for at in unique(r["at"] for r in split):
        row = list(at)
        for measure in measures:
            found = next(r for r in split if (r["at"], r["measure"]) == (at, measure))
            row += [f"{found[side]:.2f}" for side in ("ours", "theirs")]
        rows.append(row)
    return table(["elements", "k"] + [f"{measure}{whose}" for measure in measures for whose in ("", ", cuBLAS")], rows)


# Of the seeds' table: the capability, and what shows it (the beginning of a case).
CAPABILITIES = {
    "reduced overheads": ("prologue", "idle", "cost"),
    "preemption": ("priority",),
    "load balancing": ("uneven", "held"),
}
# Cases for the files alone.
UNSHOWN = {"prologue rounds=64", "prologue rounds=256", "prologue rounds=1024", "priority low kernel", "uneven none", "held sms=0"}


def policy_order(policy):
    """The seeds' columns, then stealing with a quantum, then cuBLAS."""
    names = ["fixed_work", "fixed_blocks", "steal"]
    quantum = re.fullmatch(r"steal_q(\d+)", policy)
    return (names.index(policy) if policy in names else 3 if quantum else 4, int(quantum[1]) if quantum else 0)


def in_ms(record):
    """Waits are read best in one unit."""
    if record["unit"] != "us":
        return record
    return {**record, "unit": "ms", "ours": record["ours"] / 1000, "max": record["max"] / 1000}


def value_text(record):
    most = f" (max {record['max']:.3g})" if "max" in record else ""
    return f"{record['ours']:.3g}{most}" if record["unit"] == "ms" else f"{record['ours']:.3f}"


def gpu_strategies_table(records):
    """The seeds' table in figures: one row for each case, one column for each policy."""
    records = [in_ms(r) for r in records]
    policies = sorted(unique(r["policy"] for r in records if r["policy"] != "idle"), key=policy_order)
    rows = []
    for capability, beginnings in CAPABILITIES.items():
        shown = [r for r in records if r["case"].startswith(beginnings) and r["case"] not in UNSHOWN]
        for routine, case, unit in unique((r["routine"], r["case"], r["unit"]) for r in shown):
            found = [r for r in shown if (r["routine"], r["case"], r["unit"]) == (routine, case, unit)]
            ideal = f", ideal {found[0]['ideal']:.3f}" if "ideal" in found[0] else ""
            texts = {r["policy"]: value_text(r) for r in found}
            rows.append([capability, f"`{routine}` {case.replace('=', ' = ')}, {unit}{ideal}"] +
                        [texts.get(p, "-") for p in policies])
            capability = ""
    return table(["", "case"] + [f"`{p}`" if policy_order(p)[0] < 4 else p for p in policies], rows)


def gpu_sharing_rows_table(records):
    """One row for each kernel: how long the other kernel waits, and what the kernel costs."""
    rows = []
    for kernel in unique(r["kernel"] for r in records):
        wait, cost = (next(r for r in records if r["kernel"] == kernel and r["case"].startswith(c)) for c in ("priority", "cost"))
        rows.append([f"`{kernel}`", f"{wait['ours']:.3f}", f"{wait['max']:.3f}", f"{cost['ms']:.1f}", f"{cost['ours']:.3f}"])
    return table(["kernel", "wait, ms", "longest wait, ms", "alone, ms", "time relative to the fastest kernel"], rows)


def gpu_intensity_table(records):
    """One row for each kernel; ncu's columns where it ran."""
    measured = {"measured": "asked, by ncu", "distinct": "distinct in a warp", "l1": "L1", "l2": "L2", "dram": "DRAM"}
    measured = {f: head for f, head in measured.items() if all(f"{f}_operations_per_byte" in r for r in records)}
    rows = [[f"`{r['case'].replace('=', ' = ')}`", f"{r['ops_per_byte_derived']:.4g}", f"{r['ops_per_byte_counted']:.4g}"] +
            [f"{r[f'{f}_operations_per_byte']:.4g}" for f in measured] + [f"{r['ours'] / 1000:.1f}"] for r in records]
    return table(["kernel", "derived", "counted"] + list(measured.values()) + ["TFLOP/s"], rows)


FACTORS = (1, 2, 4, 8, 16, 32)  # of bench/gpu/coarsening.cu
MOST_ROWS = 8  # of the tables on COARSE_FACTOR


def bold_best(values, texts):
    """The texts, that of the largest value in bold; values may be None."""
    best = max((v for v in values if v is not None), default=None)
    return [f"**{text}**" if value is not None and value == best else text for value, text in zip(values, texts)]


def against_one(records, routine, unit_divisor, unit):
    """Cells of one size: the rate with COARSE_FACTOR 1, then the ratios of the others to it."""
    rates = {r["coarse"]: r["rate"] for r in records if r["routine"] == routine}
    values = [rates.get(c) for c in FACTORS]
    texts = [f"{rates[1] / unit_divisor:.4g} {unit}"] + [f"{rates[c] / rates[1]:.2f}" if c in rates else "-" for c in FACTORS[1:]]
    return bold_best(values, texts)


def spread_out(values, count):
    """So many of the values, the first and the last among them; of one the last."""
    count = min(count, len(values))
    return [values[-1]] if count == 1 else [values[i * (len(values) - 1) // (count - 1)] for i in range(count)]


def gpu_coarsening_scale_table(records):
    """Nothing to save: one row for each element and (some) sizes."""
    rows = []
    for routine, element in (("scale", "`float`"), ("scale_x4", "`float4`")):
        sizes = sorted({r["n"] for r in records if r["routine"] == routine})
        for n in spread_out(sizes, 4):
            of_size = [r for r in records if r["n"] == n]
            rows.append([element, f"2^{n.bit_length() - 1}"] + against_one(of_size, routine, 1, "GB/s"))
    return table(["element", "floats"] + [f"COARSE_FACTOR {FACTORS[0]}"] + [str(c) for c in FACTORS[1:]], rows)


def gpu_coarsening_blocks_table(records):
    """Blocks that run out: one row for each size."""
    rows = []
    for n in sorted({r["n"] for r in records if r["routine"] == "tiled32_c"}):
        of_size = [r for r in records if (r["n"], r["routine"]) == (n, "tiled32_c")]
        blocks = next(r["blocks"] for r in of_size if r["coarse"] == 1)
        rows.append([str(n), str(blocks)] + against_one(of_size, "tiled32_c", 1000, "TFLOP/s"))
    sms = records[0]["sms"]
    heads = ["n", f"blocks with 1, for {sms} SMs", "COARSE_FACTOR 1"]
    return table(heads + [str(c) for c in FACTORS[1:]], rows)


def gpu_coarsening_occupancy_table(records):
    """Registers and shared memory: one row for each COARSE_FACTOR, then one of them with fewer blocks by force."""
    sizes = sorted({r["n"] for r in records if r["routine"] == "held32_c" and r["coarse"] == max(FACTORS)})[-2:]
    arms = [("held32_c", c, None) for c in FACTORS]
    pressed = [r for r in records if r["routine"] == "held32_c_pressed" and r["n"] == sizes[-1]]
    arms += [("held32_c_pressed", r["coarse"], r["blocks_per_sm"]) for r in pressed if r["blocks_per_sm"] <= 2]
    rows, rates = [], {n: [] for n in sizes}
    for routine, coarse, limit in arms:
        found = [r for r in records if (r["routine"], r["coarse"]) == (routine, coarse) and limit in (None, r["blocks_per_sm"])]
        first = found[0]
        name = str(coarse) if limit is None else f"{coarse}, {limit} block{'s' if limit > 1 else ''} by force"
        rows.append([name, str(first["registers"]), f"{first['shared_bytes'] / 1024:.0f}", str(first["blocks_per_sm"])])
        for n in sizes:
            rates[n].append(next(r["rate"] for r in found if r["n"] == n))
    for n in sizes:
        for row, text in zip(rows, bold_best(rates[n], [f"{rate / 1000:.1f}" for rate in rates[n]])):
            row.append(text)
    heads = ["COARSE_FACTOR", "registers per thread", "shared memory per block, KiB", "blocks per SM"]
    return table(heads + [f"n = {n}, TFLOP/s" for n in sizes], rows)


def coarse_table(records):
    """All threads: one row for each size, both routines in one figure; one thread: all sizes in one row."""
    factors = sorted({r["coarse_factor"] for r in records if "coarse_factor" in r})
    most = max(r["threads"] for r in records)

    def cells(group):
        ratios = [geometric_mean([r["ratio"] for r in group if r.get("coarse_factor") == c]) for c in factors]
        return bold_best([*ratios, 1], [f"{ratio:.3f}" for ratio in ratios] + [""])[:-1]

    rows = []
    for case in unique(r["case"] for r in records):
        group = [r for r in records if (r["case"], r["threads"]) == (case, most)]
        picks = [f"{r['routine']} {r['coarse_factor_taken']}" for r in group if "coarse_factor" not in r]
        rows.append([f"{case.replace('=', ' = ')}, {threads_text(most)}"] + cells(group) + [", ".join(picks)])
    if most > 1:
        rows.append(["all n, 1 thread"] + cells([r for r in records if r["threads"] == 1]) + [""])
    return table(["size"] + [f"COARSE_FACTOR {factors[0]}"] + [str(c) for c in factors[1:]] + ["the library picks"], rows)


def tuned_lines():
    """The shipped table: one dict for each line."""
    lines = []
    for text in re.findall(r'^"(.*)",$', (ROOT / "src" / "tune" / "tuned.def").read_text(encoding="utf-8"), re.MULTILINE):
        text = re.sub(r"\\(.)", r"\1", text)
        lines.append({key: value.strip('"') for key, value in re.findall(r'(\w+)=("[^"]*"|\S+)', text)})
    return lines


def tuned_row(records, lines):
    """The row that the shipped table has for the product of these records, which has no beta; None: it has none."""
    first, rows = records[0], {r["row"] for r in records}
    ops, m, n, k = re.fullmatch(r"(\w\w) (\d+)x(\d+)x(\d+)", first["case"]).groups()
    wanted = {"device": first["device"], "type": first["routine"][0], "ops": ops, "m": m, "n": n, "k": k, "batch": "1"}
    lines = [line for line in lines if line["row"] in rows and "store" not in line]
    lines = [line for line in lines if all(line.get(key) == value for key, value in wanted.items())]
    return lines[0]["row"] if lines else None


def is_square(case):
    return len(set(case.split()[1].split("x"))) == 1


def gpu_landscape_table(records):
    """Of a search that left nothing out: the fastest kernel with each COARSE_FACTOR beside the fastest, and the tuner's."""
    lines = tuned_lines()
    records = [r for r in records if not r.get("beta")]
    squares = [r for r in records if is_square(r["case"])] or records
    classes = unique((r["routine"], r["numerics"]) for r in squares)
    classes = sorted(classes, key=lambda c: ("sdczhb".index(c[0][0]), c[1]))[:MOST_ROWS]
    factors = sorted({r["coarse"] for r in squares})
    rows = []
    for routine, numerics in classes:
        of_class = [r for r in squares if (r["routine"], r["numerics"]) == (routine, numerics)]
        cases = sorted(unique(r["case"] for r in of_class), key=lambda case: int(case.split("x")[-1]))
        for case in spread_out(cases, MOST_ROWS // len(classes)):
            group = [r for r in of_class if r["case"] == case]
            fastest = min(group, key=lambda r: r["ours"])
            pick = tuned_row(group, lines) or fastest["row"]
            shares = [max((fastest["ours"] / r["ours"] for r in group if r["coarse"] == c), default=None) for c in factors]
            share = max(fastest["ours"] / r["ours"] for r in group if r["row"] == pick)
            name = f"`{routine}`" + ("" if numerics in ("", "default") else f" {numerics}")
            rows.append([f"{name} {case.split()[0].upper()} {case.split()[1]}"] +
                        bold_best(shares, ["-" if s is None else f"{s:.3f}" for s in shares]) + [f"`{pick}`, {share:.3f}"])
    return table(["product", f"COARSE_FACTOR {factors[0]}"] + [str(c) for c in factors[1:]] + ["the tuner picks"], rows)


def choices_table(records):
    """Times of what is chosen, as parts of the best candidate's, over all shapes: the geometric mean, and the worst."""
    rows = []
    for routine, mode, threads in unique((r["routine"], r["math"], r["threads"]) for r in records):
        group = [r for r in records if (r["routine"], r["math"], r["threads"]) == (routine, mode, threads)]
        row = [f"`{routine}`" + ("" if mode == "default" else f" {mode}") + (f", {threads_text(threads)}" if threads else "")]
        row.append(str(len({r["case"] for r in group})))
        for policy in ("model", "tuned"):
            ratios = [r["ratio"] for r in group if r["policy"] == policy]
            row += [f"{geometric_mean(ratios):.3f}", f"{min(ratios):.3f}"]
        times = [r["cold_ms"] for r in group if r["policy"] == "tuned"]
        rows.append(row + [f"{sum(times) / len(times):.0f}, {max(times):.0f}"])
    heads = ["product", "shapes", "model", "least", "tuned", "least", "ms per shape, most"]
    return table(heads, rows)


def lookup_table(records):
    """Nanoseconds over the number of shapes that were tuned."""
    rows = [[r["case"].split()[0], f"{r['ours']:.0f}", f"{r['cold_ns']:.0f}"] for r in records]
    return table(["shapes that were tuned, all of one kind", "ns", "ns, caches cold"], rows)


def gpu_modes_table(records):
    """The modes that a program asks for: one row for each mode and routine."""
    rows = []
    modes = [{**r, "mode": r["suite"].removeprefix("gpu_").removeprefix("half_")} for r in records]
    order = ("invariant", "pedantic", "tf32")
    for mode, routine in sorted(unique((r["mode"], r["routine"]) for r in modes), key=lambda k: (order.index(k[0]), "sdczhb".index(k[1][0]))):
        group = [r for r in modes if (r["mode"], r["routine"]) == (mode, routine)]
        least = min(group, key=lambda r: r["ratio"])
        rows.append([mode, f"`{routine}`", " and ".join(unique(r["peer"] for r in group)), str(len(group)),
                     f"{geometric_mean([r['ratio'] for r in group]):.3f}", f"{least['ratio']:.3f} ({least['case']})"])
    return table(["mode", "routine", "compared with", "shapes", "speed relative to it, geometric mean", "least"], rows)


# ---- Random shapes, and the headline -----------------------------------------------------------------------------------

CLASSES = ("square", "flat", "small", "ragged")


def mean_and_least(cases):
    ratios = [case.ratio for case in cases if case.ratio is not None]
    return f"{geometric_mean(ratios):.3f} ({min(ratios):.3f})" if ratios else "-"


def random_table(records):
    """One row for each routine and thread count, one column for each class of shapes."""
    classes = {record["case"]: record["class"] for record in records}
    cases = cases_of(records)
    rows = []
    for routine, threads in sorted(unique((c.routine, c.threads) for c in cases), key=lambda k: ("sdczhb".index(k[0][0]), k[1])):
        group = [c for c in cases if (c.routine, c.threads) == (routine, threads)]
        name = f"`{routine}`" + (f", {threads_text(threads)}" if threads else "")
        rows.append([name, str(len(group))] + [mean_and_least([c for c in group if classes[c.name] == k]) for k in CLASSES] +
                    [mean_and_least(group)])
    return table([speedup_head(cases) + ": geometric mean (least)", "shapes", *CLASSES, "all"], rows)


def by_class_table(records):
    """One row for each routine, one column for each class, in the order in which they were measured."""
    classes = {record["case"]: record["class"] for record in records}
    cases, names = cases_of(records), unique(record["class"] for record in records)
    rows = []
    for routine in sorted(unique(c.routine for c in cases), key=lambda name: "sdczhb".index(name[0])):
        group = [c for c in cases if c.routine == routine]
        rows.append([f"`{routine}`", str(len(group))] + [mean_and_least([c for c in group if classes[c.name] == k]) for k in names] +
                    [mean_and_least(group)])
    return table([speedup_head(cases) + ": geometric mean (least)", "cases", *names, "all"], rows)


def by_lesser_side(cases, ends):
    """One row for each routine and thread count, one column for each range of min(m, n), which end at `ends` but the last one."""
    firsts = (0, *(end + 1 for end in ends))
    ranges = list(zip(firsts, (*ends, 1 << 62)))
    names = [f"<= {ends[0]}", *(f"{least}-{most}" for least, most in ranges[1:-1]), f"> {ends[-1]}"]

    def lesser_side(case):
        return min(int(size) for size in re.search(r"(\d+)x(\d+)x", case.name).groups())

    rows = []
    for routine, threads in sorted(unique((c.routine, c.threads) for c in cases), key=lambda k: ("sdczhb".index(k[0][0]), k[1])):
        group = [c for c in cases if (c.routine, c.threads) == (routine, threads)]
        rows.append([f"`{routine}`" + (f", {threads_text(threads)}" if threads else ""), str(len(group))] +
                    [mean_and_least([c for c in group if least <= lesser_side(c) <= most]) for least, most in ranges] +
                    [mean_and_least(group)])
    return table([speedup_head(cases) + ": geometric mean (least); min(m, n):", "shapes", *names, "all"], rows)


def uniform_table(records):
    """Sizes drawn log-uniformly, multiples of 8."""
    return by_lesser_side(cases_of(records), (64, 256, 1024))


def wide_table(records):
    """Sizes drawn log-uniformly from 4 to 4000."""
    return by_lesser_side(cases_of(records), (8, 24, 64, 256))


def busy_table(records):
    """Means of a call: alone and beside a loop on one core; one row for each shape and contestant."""
    rows = [[r["case"], r["peer"], f"{1e6 * r['idle_s']:.0f}", f"{r['ours']:.0f}", f"{r['theirs']:.0f}", f"{r['ratio']:.2f}"]
            for r in records]
    heads = ["wsgemm, machine idle, us", "wsgemm beside the loop, us", "the other beside the loop, us", "speedup"]
    return table(["shape", "compared with", *heads], rows)


def gpu_level3_table(records):
    """One row for each routine, one column for each size."""
    cases = cases_of(records)
    sizes = sorted(unique(size_of(c) for c in cases))
    rows = []
    for routine in unique(c.routine for c in cases):
        of_size = {size_of(c): c for c in cases if c.routine == routine}
        rows.append([f"`{routine}`"] + [ratio_text(of_size[n]) if n in of_size else "-" for n in sizes] +
                    [mean_and_least(list(of_size.values()))])
    return table([speedup_head(cases) + ", n:", *(str(n) for n in sizes), "geometric mean (least)"], rows)


def batched_table(records):
    """One row for each routine and thread count, one column for each size."""
    cases = cases_of(records)
    sizes = sorted(unique(size_of(c) for c in cases))
    rows = []
    for routine, threads in unique((c.routine, c.threads) for c in cases):
        of_size = {size_of(c): c for c in cases if (c.routine, c.threads) == (routine, threads)}
        rows.append([f"`{routine}`, {threads_text(threads)}"] +
                    [f"{of_size[n].ratio:.2f}" if n in of_size and of_size[n].ratio is not None else "-" for n in sizes] +
                    [mean_and_least(list(of_size.values()))])
    return table([speedup_head(cases) + ", n:", *(str(n) for n in sizes), "geometric mean (least)"], rows)


def is_square_case(name):
    """n=64, or NN 64x64x64: no op, no ld of its own."""
    found = re.fullmatch(r"n=\d+|NN (\d+)x\1x\1", name)
    return found is not None


# Suites of one row of the headline tables: squares, random shapes, and which thread counts of the squares count (None: all).
HEADLINES = (("square", "random", 1), ("threads", "random", None), ("square", "wide", 1), ("threads", "wide", None),
             ("gpu_square", "gpu_random_uniform", None), ("gpu_half_square", "gpu_half_random_uniform", None))


def headline_cases(suites):
    """(routine, threads): the cases of the squares and of the shapes drawn at random; `suites`: {name: records} of one device."""
    found = {}
    for squares, threads in unique((pair[0], pair[2]) for pair in HEADLINES):
        for case in cases_of(suites.get(squares, [])):
            if is_square_case(case.name) and threads in (None, case.threads):
                found.setdefault((case.routine, case.threads), ([], []))[0].append(case)
    for randoms in unique(pair[1] for pair in HEADLINES):
        for case in cases_of(suites.get(randoms, [])):
            found.setdefault((case.routine, case.threads), ([], []))[1].append(case)
    return dict(sorted(found.items(), key=lambda item: (item[0][1], "sdczhb".index(item[0][0][0]))))


def sizes_text(squares):
    sizes = sorted(int(re.search(r"\d+", c.name)[0]) for c in squares)
    return f"{sizes[0]}-{sizes[-1]}" if sizes else "-"


def measured_text(cases):
    return mean_and_least(cases) if cases else "not measured"


def overview_table(suites):
    """Of one device: one row for each routine and thread count."""
    rows, peers = [], []
    for (routine, threads), (squares, randoms) in headline_cases(suites).items():
        name = f"`{routine}`" + (f", {threads_text(threads)}" if threads else "")
        rows.append([name, sizes_text(squares), measured_text(squares), measured_text(randoms)])
        peers += [peer for c in squares + randoms for peer in c.peers]
    return table(["routine", "squares, n", f"speedup over {peer_family(peers)}, geometric mean (least): squares", "random shapes"], rows)


def headline_rows(device, suites):
    """Of one device: one row for each routine; all thread counts count alike. The device is named once."""
    of_routine = {}
    for (routine, threads), (squares, randoms) in headline_cases(suites).items():
        joined = of_routine.setdefault(routine, (set(), [], []))
        joined[0].add(threads)
        joined[1].extend(squares)
        joined[2].extend(randoms)
    counts = sorted({threads for joined in of_routine.values() for threads in joined[0] if threads})
    device += f"; {' and '.join(map(str, counts))} thread{'s' * (counts != [1])}" if counts else ""
    rows = []
    for routine, (_, squares, randoms) in of_routine.items():
        rows.append(["" if rows else device, f"`{routine}`", sizes_text(squares), measured_text(squares), measured_text(randoms)])
    return rows


def number_or_dash(record, name, digits=1):
    return f"{record[name]:.{digits}f}" if record.get(name) else "-"


def gpu_offload_table(records):
    """Host matrices: TFLOP/s with all copies, and what the link alone, and the product in device memory, would allow."""
    rows = [
        [f"`{r['routine']}` {r['case']}", f"{r['ours']:.1f}", number_or_dash(r, "theirs"), number_or_dash(r, "cpu", 2),
         number_or_dash(r, "link"), number_or_dash(r, "in_device_memory"), number_or_dash(r, "ratio")]
        for r in records
    ]
    heads = ["matrices in host memory", "wsgemm, TFLOP/s", "cublasXt", "wsgemm on the CPU", "link alone", "in device memory",
             "wsgemm / cublasXt"]
    return table(heads, rows)


OFFLOAD_SQUARE = re.compile(r"NN (\d+) (pageable|pinned), 1 GPU$")


def gpu_offload_pays_table(records):
    """One row for each n; sgemm / dgemm from each kind of memory on one GPU, beside cublasXt and the CPU."""
    of = {}
    for r in records:
        found = OFFLOAD_SQUARE.match(r["case"])
        if found and r["routine"] in ("sgemm", "dgemm"):
            of.setdefault(int(found[1]), {})[found[2], r["routine"]] = r

    def pair(row, memory, name):
        figures = [row.get((memory, routine), {}).get(name) for routine in ("sgemm", "dgemm")]
        return " / ".join(f"{x:.3g}" if x else "-" for x in figures)

    heads = ["n, TFLOP/s of sgemm / dgemm", "pageable", "cublasXt", "pinned", "cublasXt", "CPU"]
    return table(heads, [[str(n), *(pair(row, memory, name) for memory in ("pageable", "pinned") for name in ("ours", "theirs")),
                          pair(row, "pageable", "cpu")] for n, row in sorted(of.items())])


def gpu_offload_random_table(records):
    """One row for each routine and kind of memory: the speedup over cublasXt."""
    rows = []
    for routine in sorted(unique(r["routine"] for r in records), key=lambda name: "sdcz".index(name[0])):
        for memory in ("pageable", "pinned"):
            cases = cases_of([r for r in records if r["routine"] == routine and f" {memory}," in r["case"]])
            rows.append([f"`{routine}`, {memory}", str(len(cases)), mean_and_least(cases)])
    return table(["routine, memory", "shapes", "wsgemm / cublasXt: geometric mean (least)"], rows)


def gpu_offload_numpy_table(records):
    rows = [[f"`{r['routine']}` {r['case']}", f"{r['ours']:.1f}", f"{r['theirs']:.2f}", f"{r['ratio']:.1f}"] for r in records]
    return table(["NumPy's product", "wsgemm preloaded, TFLOP/s", "NumPy alone", "ratio"], rows)


def gpu_programs_table(records):
    """One row for each program: as it is, and preloaded (or patched), with the calls of a step."""
    rows = [[f"{r['routine']}: {r['case']}", f"{r['theirs']:.4g}", f"{r['ours']:.4g}", f"{r['ratio']:.2f}",
             f"{r['least']:.2f} to {r['most']:.2f}", f"{r['taken']} of {r['seen']}" if r.get("seen") is not None else "-"] for r in records]
    return table(["program, ms", "as it is", "with wsgemm", "speedup", "in all pairs", "calls taken"], rows)


def headline_table(rows):
    return table(["device", "routine", "squares, n", "speedup on squares", "on random shapes"], rows)


TABLES = {
    "random": random_table,
    "wide": wide_table,
    "update": wide_table,
    "busy": busy_table,
    "gpu_random": random_table,
    "gpu_half_random_uniform": uniform_table,
    "gpu_random_uniform": uniform_table,
    "gpu_random_aligned": uniform_table,
    "gpu_pedantic_random_uniform": uniform_table,
    "gpu_tf32_random_uniform": uniform_table,
    "gpu_tf32_random_aligned": uniform_table,
    "gpu_programs": gpu_programs_table,
    "gpu_grouped": by_class_table,
    "gpu_tf32_grouped": by_class_table,
    "gpu_batched": by_class_table,
    "gpu_pointer_batches": by_class_table,
    "gpu_level3": gpu_level3_table,
    "gpu_offload": gpu_offload_table,
    "gpu_half_offload": gpu_offload_table,
    "gpu_offload_level3": gpu_offload_table,
    "gpu_offload_numpy": gpu_offload_numpy_table,
    "gpu_offload_pays": gpu_offload_pays_table,
    "gpu_offload_random": gpu_offload_random_table,
    "gpu_square": gpu_gemm_table,
    "gpu_skinny": gpu_gemm_table,
    "gpu_pedantic": gpu_gemm_table,
    "gpu_sliced": gpu_gemm_table,
    "gpu_spread": gpu_gemm_table,
    "gpu_packed": gpu_gemm_table,
    "gpu_tf32": gpu_gemm_table,
    "gpu_accuracy": gpu_accuracy_table,
    "gpu_half_square": gpu_gemm_table,
    "gpu_half_odd": gpu_gemm_table,
    "gpu_half_skinny": gpu_gemm_table,
    "gpu_half_decode": gpu_gemm_table,
    "gpu_half_calls": gpu_calls_table,
    "gpu_half_best": gpu_gemm_table,
    "gpu_modes": gpu_modes_table,
    "gpu_epilogue": gpu_epilogue_table,
    "gpu_half_sharing": gpu_strategies_table,
    "gpu_strategies": gpu_strategies_table,
    "gpu_sharing_rows": gpu_sharing_rows_table,
    "gpu_intensity": gpu_intensity_table,
    "gpu_coarsening_scale": gpu_coarsening_scale_table,
    "gpu_coarsening_blocks": gpu_coarsening_blocks_table,
    "gpu_coarsening_occupancy": gpu_coarsening_occupancy_table,
    "gpu_landscape": gpu_landscape_table,
    "coarse": coarse_table,
    "choices": choices_table,
    "gpu_choices": choices_table,
    "lookup": lookup_table,
    "square": lambda records: by_routine(cases_of(records)),
    "small": lambda records: by_routine(cases_of(records)),
    "batched": batched_table,
    "threads": lambda records: by_routine(cases_of(records)),
    "level3": lambda records: by_routine(cases_of(records)),
    "odd": lambda records: by_shape(cases_of(records)),
    "lapack": lambda records: by_shape(cases_of(records)),
    "ops": lambda records: by_shape(cases_of(records)),
    "steal": steal_table,
    "policies": policies_table,
    "triangles": policies_table,
    "scan": neighbours_table,
    "dips": neighbours_table,
}

# Suites whose records a table takes in besides its own, where they have been measured.
TAKEN_IN = {"gpu_strategies": ("gpu_sharing",), "gpu_landscape": ("gpu_half_landscape",), "gpu_choices": ("gpu_half_choices",),
            "gpu_random": ("gpu_half_random",), "gpu_grouped": ("gpu_half_grouped",), "gpu_batched": ("gpu_half_batched",), "gpu_pointer_batches": ("gpu_half_pointer_batches",), "gpu_epilogue": ("gpu_half_epilogue",), "gpu_modes": ("gpu_half_invariant", "gpu_pedantic", "gpu_half_pedantic", "gpu_tf32")}

# Tables that are not called after their (first) suite.
SUITES = {**{f"gpu_coarsening_{what}": "gpu_coarsening" for what in ("scale", "blocks", "occupancy")}, "gpu_modes": "gpu_invariant",
          "gpu_offload_pays": "gpu_offload"}
