#!/usr/bin/env python3
"""Looks at the code that nvcc makes of wgmma_probe.cu: where the blocks of a cluster wait for each other, barriers order memory for the whole
cluster, and by fences of shared memory alone; where there is no cluster, for the block.

    wgmma_code.py SOURCE_DIR [NVCC]

Exits 77 where there is no nvcc, or none that knows these fences.
"""

import pathlib
import re
import subprocess
import sys
import tempfile

from clc_code import check, failures, kernels_of, nvcc_or_skip

OF_BLOCK = ["probe_k1", "probe_sliced_x1", "probe_x1"]
OF_CLUSTER = ["probe_sliced_x2", "probe_x2", "probe_x24", "probe_x2_turns"]
OF_PARTS = ["probe_k2", "probe_k8"]  # stages of their own block, sums of the cluster

WAIT = r"mbarrier\.(try|test)_wait"
WAIT_OF_BLOCK = r"mbarrier\.try_wait\.parity\.acquire\.cta\.shared::cta\.b64 "
WAIT_OF_CLUSTER = r"mbarrier\.try_wait\.parity\.relaxed\.cluster\.shared::cta\.b64 "
ACQUIRE = r"fence\.acquire\.sync_restrict::shared::cluster\.cluster;"
REMOTE_ARRIVE = r"mbarrier\.arrive\S*\.shared::cluster"
REMOTE_ARRIVE_OF_CLUSTER = r"mbarrier\.arrive\.relaxed\.cluster\.shared::cluster\.b64 _, "
RELEASE = r"fence\.release\.sync_restrict::shared::cta\.cluster;"
LOOP = r"@!%?p\d* bra\s+again\w*;"


def check_waits_of_cluster(name, lines):
    """Each wait: the instruction, the branch back to it, the fence."""
    waits = [i for i, line in enumerate(lines) if re.search(WAIT, line)]
    check(waits, f"{name}: no wait")
    for i in waits:
        check(re.search(WAIT_OF_CLUSTER, lines[i]), f"{name}: a wait is not of the cluster: {lines[i]}")
        check(re.search(LOOP, lines[i + 1]) and re.search(ACQUIRE, lines[i + 2]), f"{name}: no fence after {lines[i:i + 3]}")


def check_arrivals_at_blocks(name, lines):
    arrivals = [i for i, line in enumerate(lines) if re.search(REMOTE_ARRIVE, line)]
    check(arrivals, f"{name}: no arrival at another block's barrier")
    for i in arrivals:
        check(re.search(REMOTE_ARRIVE_OF_CLUSTER, lines[i]), f"{name}: an arrival is not of the cluster: {lines[i]}")
        check(re.search(RELEASE, lines[i - 1]), f"{name}: no fence before {lines[i - 1:i + 1]}")


def check_block(name, lines):
    waits = [line for line in lines if re.search(WAIT, line)]
    check(waits and all(re.search(WAIT_OF_BLOCK, line) for line in waits), f"{name}: not all waits are of the block")
    check(not any(re.search(rf"{REMOTE_ARRIVE}|{ACQUIRE}|{RELEASE}", line) for line in lines), f"{name}: a cluster is asked for")


def check_parts(name, lines):
    """Stages are waited for as in a block alone; the other blocks' sums once, in each of the two codes for C (plain, and any other). Before
    any sums are sent, all blocks have begun, and where these land in stages (k2), the cluster has met."""
    waits = [i for i, line in enumerate(lines) if re.search(WAIT, line)]
    of_cluster = [i for i in waits if re.search(WAIT_OF_CLUSTER, lines[i])]
    check(len(of_cluster) == 2, f"{name}: {len(of_cluster)} waits for the sums of other blocks")
    check(all(re.search(WAIT_OF_BLOCK, lines[i]) for i in waits if i not in of_cluster), f"{name}: not all stages are the block's")
    for i in of_cluster:
        check(re.search(LOOP, lines[i + 1]) and re.search(ACQUIRE, lines[i + 2]), f"{name}: no fence after {lines[i:i + 3]}")
    n_begun = sum("barrier.cluster.arrive.relaxed" in line for line in lines)
    check(n_begun == 4, f"{name}: {n_begun} of two producers and two codes of consumers say that the block has begun")
    in_stages = name == "probe_k2"
    for first, last in zip([0] + of_cluster, of_cluster):
        met = [i for i in range(first, last) if re.search(r"barrier\.cluster\.wait", lines[i])]
        arrived = [i for i in range(first, last) if "barrier.cluster.arrive.release" in lines[i]]
        sent = [i for i in range(first, last) if "st.async" in lines[i]]
        check(len(met) == 1 + in_stages and len(arrived) == in_stages, f"{name}: the cluster waits {len(met)} times")
        check(not in_stages or met[0] < arrived[0] < met[1], f"{name}: the cluster has not met when stages are overwritten")
        check(sent and met and min(sent) > met[-1], f"{name}: sums are sent before the cluster has met")
        check(all("mbarrier::complete_tx" in lines[i] for i in sent), f"{name}: sums that complete nothing")


def main():
    source = pathlib.Path(sys.argv[1])
    nvcc = nvcc_or_skip(sys.argv[2:])
    with tempfile.TemporaryDirectory() as scratch:
        output = pathlib.Path(scratch, "ptx")
        command = [nvcc, "-std=c++17", "-arch=sm_90a", f"-I{source}", f"-I{source}/src", f"-I{source}/include", "-Werror",
                   "all-warnings", "-ptx", "-o", output, source / "tests/host/wgmma_probe.cu"]
        done = subprocess.run(command, capture_output=True, text=True)
        check(done.returncode == 0, f"no PTX: {done.stdout}{done.stderr}")
        kernels = kernels_of(output.read_text()) if done.returncode == 0 else {}
    check(sorted(kernels) == sorted(OF_BLOCK + OF_CLUSTER + OF_PARTS), f"kernels {sorted(kernels)}")
    for name in sorted(kernels):
        if name in OF_CLUSTER:
            check_waits_of_cluster(name, kernels[name])
            check_arrivals_at_blocks(name, kernels[name])
        elif name in OF_PARTS:
            check_parts(name, kernels[name])
        else:
            check_block(name, kernels[name])
    print(f"{nvcc}: {len(kernels)} kernels, {len(failures)} failures")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
