#!/usr/bin/env python3
"""Looks at the code that nvcc makes of clc_probe.cu: the instructions of Cluster Launch Control, in their order, and that ptxas
accepts them; the refusal for targets without the multicast; the trap for devices without CLC. Executes that code on a simulated device
(ptx_machine.py): each item is visited once, so the operands are those that belong together, the predicates have their polarity, waits
go back, and their parity changes. And does the same with each fault of clc_source_mutants.py, all of which it must find.

    clc_code.py SOURCE_DIR [NVCC]

Exits 77 where there is no nvcc, or none that knows all this. Compiled and model-checked, never run on hardware.
"""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

from clc_source_mutants import CLC, FOREACH, MUTANTS, PROBE, PTX, mutated, variants
from ptx_machine import first_fault, parse_kernels

LEAST_RELEASE = (13, 0)  # <cuda/work_stealing> came with it
TARGETS = ["sm_100a", "sm_100f", "sm_120a", "sm_120f"]

BYTES = r"\.mbarrier::complete_tx::bytes"
TRY_CANCEL = rf"clusterlaunchcontrol\.try_cancel\.async\.shared::cta{BYTES}\.b128 "
TRY_CANCEL_MULTICAST = rf"clusterlaunchcontrol\.try_cancel\.async\.shared::cta{BYTES}\.multicast::cluster::all\.b128 "
INIT = r"mbarrier\.init\.shared::cta\.b64 \[[^]]*\], 1;"
EXPECT_16_OF_BLOCK = r"mbarrier\.arrive\.expect_tx\.relaxed\.cta\.shared::cta\.b64 _, \[[^]]*\], 16;"
EXPECT_16_OF_CLUSTER = r"mbarrier\.arrive\.expect_tx\.relaxed\.cluster\.shared::cta\.b64 _, \[[^]]*\], 16;"
ACQUIRE = r"fence\.proxy\.async::generic\.acquire\.sync_restrict::shared::cluster\.cluster;"
RELEASE = r"fence\.proxy\.async::generic\.release\.sync_restrict::shared::cta\.cluster;"
WORK = r"(atom|red)\.global\.add"
READ = r"ld\.shared\.(v2\.u64|v2\.b64|b128|v4\.u32|v4\.b32) "
ASK = r"clusterlaunchcontrol\.query_cancel\.is_canceled\.pred\.b128 "
DECODE = r"clusterlaunchcontrol\.query_cancel\.get_first_ctaid::x\.b32\.b128 "
BLOCK_SYNC = r"(bar|barrier|barrier\.cta)\.sync"

# What has to stand in each kernel, from top to bottom: the request comes before the work on the item, the result after it.
EXPECTED = {
    "probe_clc": [INIT, BLOCK_SYNC, EXPECT_16_OF_BLOCK, ACQUIRE, TRY_CANCEL, WORK,
                  r"mbarrier\.try_wait\.parity\.acquire\.cta\.", READ, ASK, DECODE, RELEASE],
    "probe_clc_pair": [INIT, r"fence\.mbarrier_init\.release\.cluster;", r"barrier\.cluster\.arrive\.release;",
                       r"barrier\.cluster\.wait\.acquire;", EXPECT_16_OF_CLUSTER, ACQUIRE, TRY_CANCEL_MULTICAST, WORK,
                       r"mbarrier\.try_wait\.parity\.acquire\.cluster\.", READ, ASK, DECODE, r"%cluster_ctaid\.x;", RELEASE],
    "probe_foreach": [TRY_CANCEL, EXPECT_16_OF_BLOCK, WORK, BLOCK_SYNC, r"mbarrier\.try_wait\.parity\.", READ, ASK, DECODE,
                      TRY_CANCEL],
}

CLUSTER_BLOCKS = {"clc": 1, "pair": 2, "foreach": 1}
KERNELS = {"clc": "probe_clc", "pair": "probe_clc_pair", "foreach": "probe_foreach"}
N_RUNS = 60  # of each kernel; the rarest fault shows in about every third

failures = []


def check(condition, text):
    if not condition:
        failures.append(text)
        print(f"{pathlib.Path(sys.argv[0]).stem}: {text}", file=sys.stderr)


def find_nvcc(given):
    for candidate in [given, os.environ.get("CUDACXX"), "nvcc", "/usr/local/cuda/bin/nvcc"]:
        found = candidate and shutil.which(candidate)
        if found:
            return found
    return None


def nvcc_or_skip(given):
    """An nvcc that knows all this; without one the program ends as skipped."""
    nvcc = find_nvcc(given[0] if given else None)
    if not nvcc:
        print("skipped: no nvcc")
        sys.exit(77)
    release = re.search(r"release (\d+)\.(\d+)", subprocess.run([nvcc, "--version"], capture_output=True, text=True).stdout)
    if not release or tuple(map(int, release.groups())) < LEAST_RELEASE:
        print(f"skipped: {nvcc} is older than {LEAST_RELEASE}")
        sys.exit(77)
    return nvcc


def kernels_of(ptx):
    """The instructions of each kernel by its name, one a line, with constants in place of the registers that only ever hold them."""
    bodies = {}
    for part in re.split(r"^\.visible \.entry ", ptx, flags=re.MULTILINE)[1:]:
        name = re.match(r"\w+", part).group()
        constants = {}
        for register, value in re.findall(r"mov\.[bu]32 \s*(%r\d+), (%?\w+);", part):
            constants[register] = value if register not in constants and value.isdigit() else None
        lines = [line.strip() for line in part.splitlines()]
        lines = [line for line in lines if line and not line.startswith(("//", "."))]
        bodies[name] = [re.sub(r"%r\d+", lambda found: constants.get(found.group()) or found.group(), line) for line in lines]
    return bodies


def fault_of(kernels, lines_of, name, kind):
    """What is wrong with the kernel, if anything."""
    fault = missing_instruction(lines_of[name], EXPECTED[KERNELS[kind]])
    return fault or first_fault(kernels[name], CLUSTER_BLOCKS[kind], N_RUNS)


def missing_instruction(lines, patterns):
    at = 0
    for pattern in patterns:
        found = next((i for i in range(at, len(lines)) if re.search(pattern, lines[i])), None)
        if found is None:
            return f"no {pattern} after instruction {at} of the kernel"
        at = found + 1
    return None


def source_fault(text):
    """Every asm statement that is not a mere question about the thread is volatile, and clobbers memory if it orders it."""
    statements = re.findall(r"\basm( volatile)?\(((?:[^()\"]|\"(?:[^\"\\]|\\.)*\"|\((?:[^()]|\([^()]*\))*\))*)\);", text)
    if len(statements) != text.count("asm(") + text.count("asm volatile("):
        return "not all asm statements were understood"
    for is_volatile, statement in statements:
        if not is_volatile and "%%cluster_ctaid" not in statement:
            return f"not volatile: {statement}"
        if re.search(r"mbarrier|fence|barrier\.cluster|try_cancel", statement) and '"memory"' not in statement:
            return f"orders memory and does not say so: {statement}"
    return None


def check_mutants(source, compile_ptx):
    """Each mutant of the source by its own kernel, all from one file, which has the right one besides."""
    text = "".join(f"#include {name}\n" for name in ["<cuda/work_stealing>", '"cuda/ptx/copy.cuh"', '"cuda/sched/clc_protocol.cuh"',
                                                     '"cuda/sched/sched.h"'])
    of_code = [mutant for mutant in MUTANTS if mutant.kernel != "source" and mutant.is_in_code]
    status, told, output = compile_ptx(text + variants(source, [PTX, CLC, FOREACH, PROBE], of_code))
    check(status == 0, f"the mutants: no PTX: {told}")
    if status != 0:
        return
    kernels, lines_of = parse_kernels(output.read_text()), kernels_of(output.read_text())
    for kind, probe in KERNELS.items():
        fault = fault_of(kernels, lines_of, probe.replace("probe_", "right__"), kind)
        check(fault is None, f"the right one, {kind}: {fault}")
    faults = {m.name: fault_of(kernels, lines_of, KERNELS[m.kernel].replace("probe_", f"{m.name}__"), m.kernel) for m in of_code}
    right = (source / PTX).read_text()
    check(source_fault(right) is None, f"{PTX}: {source_fault(right)}")
    faults.update((m.name, source_fault(mutated(right, m))) for m in MUTANTS if m.kernel == "source")
    for name, fault in faults.items():
        print(f"  {name:42} {' '.join((fault or 'not found').split())[:150]}")
        check(fault is not None, f"{name} was not found out")
    n_others = sum(not m.is_in_code for m in MUTANTS)
    check(len(faults) + n_others == len(MUTANTS) and all(m.breaks for m in MUTANTS if not m.is_in_code), "some mutant is nobody's")


def check_kernel(target, name, lines):
    fault = missing_instruction(lines, EXPECTED[name])
    check(fault is None, f"{target}, {name}: {fault}")
    n_wanted = EXPECTED[name].count(TRY_CANCEL) + EXPECTED[name].count(TRY_CANCEL_MULTICAST)
    n_requests = sum("try_cancel" in line for line in lines)
    check(n_requests == n_wanted, f"{target}, {name}: {n_requests} requests in the code, not {n_wanted}")


def main():
    source = pathlib.Path(sys.argv[1])
    nvcc = nvcc_or_skip(sys.argv[2:])

    with tempfile.TemporaryDirectory() as scratch:

        def compile_probe(target, form, probe=source / PROBE):
            output = pathlib.Path(scratch, f"{target}{form}")
            command = [nvcc, "-std=c++17", f"-arch={target}", f"-I{source}", f"-I{source}/src", "-Werror", "all-warnings", form,
                       "-o", output, probe]
            done = subprocess.run(command, capture_output=True, text=True)
            return done.returncode, done.stdout + done.stderr, output

        def compile_mutants(text):
            pathlib.Path(scratch, "mutants.cu").write_text(text)
            return compile_probe(TARGETS[0], "-ptx", pathlib.Path(scratch, "mutants.cu"))

        for target in TARGETS:
            status, text, output = compile_probe(target, "-ptx")
            check(status == 0, f"{target}: no PTX: {text}")
            if status != 0:
                continue
            lines_of, kernels = kernels_of(output.read_text()), parse_kernels(output.read_text())
            check(sorted(lines_of) == sorted(EXPECTED), f"{target}: kernels {sorted(lines_of)}")
            for name in sorted(EXPECTED.keys() & lines_of.keys()):
                check_kernel(target, name, lines_of[name])
            for kind, name in KERNELS.items():
                fault = first_fault(kernels[name], CLUSTER_BLOCKS[kind], N_RUNS) if name in kernels else "is not there"
                check(fault is None, f"{target}, {name}: {fault}")
            status, text, output = compile_probe(target, "-cubin")
            check(status == 0 and output.stat().st_size > 0, f"{target}: ptxas refuses: {text}")

        check_mutants(source, compile_mutants)

        status, text, _ = compile_probe("sm_100", "-cubin")
        check(status != 0 and "needs a target named with a or f" in text, f"sm_100: pairs are not refused: {text}")

        status, text, output = compile_probe("sm_90", "-ptx")
        check(status == 0, f"sm_90: no PTX: {text}")
        if status == 0:
            for name, lines in kernels_of(output.read_text()).items():
                check(not any("clusterlaunchcontrol" in line for line in lines), f"sm_90, {name}: has CLC")
                check(name == "probe_foreach" or any("trap;" in line for line in lines), f"sm_90, {name}: does not trap")

    print(f"{nvcc}: {len(TARGETS)} targets, {len(EXPECTED)} kernels each, {len(MUTANTS)} mutants, {len(failures)} failures")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
