#!/usr/bin/env python3
"""Kernels take their work from schedulers: of the sources in cuda/, only those in cuda/sched read the indices of a block and the size of
the grid (and teaching.cuh, whose kernels are for reading), and every kernel over tiles has a scheduler.

    sched_contract.py SOURCE_DIR
"""

import pathlib
import re
import sys

TILE_KERNELS = {"gemm.cuh": r"sched\.for_each_item\(", "split_k.cuh": r"sched\.first\(\)", "fallback.cuh": r"sched\.for_each_item\(",
                "gemm_wgmma.cuh": r"sched\.first\(\)", "gemm_wgmma_once.cuh": r"sched\.first\(\)",
                "gemm_direct.cuh": r"sched\.first\(\)"}


def faults_of(path, text):
    code = re.sub(r"/\*.*?\*/", "", text, flags=re.DOTALL)
    if path.parent.name != "sched" and path.name != "teaching.cuh":
        for word in re.findall(r"\b(?:blockIdx|gridDim)\b", code):
            yield f"{path}: reads {word}"
    if path.parent.name == "kernels" and path.name in TILE_KERNELS and not re.search(TILE_KERNELS[path.name], code):
        yield f"{path}: takes its items from no scheduler"


def main():
    files = sorted(path for path in pathlib.Path(sys.argv[1], "cuda").rglob("*") if path.suffix in (".cuh", ".cu"))
    faults = [fault for path in files for fault in faults_of(path, path.read_text())]
    n_tile_kernels = sum(path.name in TILE_KERNELS for path in files)
    if n_tile_kernels != len(TILE_KERNELS):
        faults.append(f"{n_tile_kernels} of {len(TILE_KERNELS)} files of kernels over tiles are there")
    print("\n".join([*faults, f"{len(files)} files, {len(faults)} faults"]))
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
