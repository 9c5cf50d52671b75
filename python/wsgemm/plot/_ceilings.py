"""Roofs: what a machine can do at most, in operations and in bytes a second, each with where the number comes from.

Of a CPU both come from the result files: every rate there was timed in turn with a loop of multiply-adds. Of a GPU they stand in
the table below, since no result file holds them.
"""

from __future__ import annotations

import dataclasses

from ._results import Record, flops, matrix_bytes, shape_of


@dataclasses.dataclass(frozen=True)
class Roof:
    label: str
    rate: float  # FLOP/s, or byte/s
    is_measured: bool


@dataclasses.dataclass(frozen=True)
class Ceilings:
    compute: list[Roof]
    memory: Roof | None


NO_CEILINGS = Ceilings([], None)


@dataclasses.dataclass(frozen=True)
class _Gpu:
    device: str  # as the driver names it
    ceilings: Ceilings
    origin: str  # for the caption


# FFMA loop and copy: measured on one H200 (132 SMs), 2026-11-21. The others: NVIDIA's data sheet of the H200 SXM, no sparsity.
_H200_FP16 = 989e12
_GPUS = (
    _Gpu(
        "NVIDIA H200",
        Ceilings(
            [
                Roof("FP16, BF16\ntensor cores", _H200_FP16, False),
                Roof("FP32 as three\nproducts of\nFP16 slices", _H200_FP16 / 3, False),
                Roof("FP64 tensor cores", 67e12, False),
                Roof("FP32 multiply-adds", 63.9e12, True),
            ],
            Roof("device memory", 4.30e12, True),
        ),
        "Roofs: solid, measured on one H200 on 2026-11-21 (a loop of FP32 multiply-adds; a copy in device memory, bytes read and"
        " written); dashed, NVIDIA's data sheet of the H200 SXM, without sparsity (FP32 by slices: a third of FP16).",
    ),
)

# Matrices of so many bytes together do not stay in the caches of the machines that were measured.
_BEYOND_CACHES = 64 << 20
_SLOW = 0.8


def of_gpu(device: str) -> tuple[Ceilings, str]:
    """And where they come from."""
    for gpu in _GPUS:
        if gpu.device == device:
            return gpu.ceilings, gpu.origin
    return NO_CEILINGS, "No roofs are known for this device."


_PRECISIONS = (("single", ("sgemm", "cgemm")), ("double", ("dgemm", "zgemm")))


def _loop_rates(records: list[Record], routines: tuple[str, ...]) -> list[float]:
    """Of the loop of multiply-adds, beside each case."""
    cases = {(r["suite"], r["routine"], r["case"]): r for r in records if r["routine"] in routines and r.get("peak_fraction")}
    return [r["ours"] / r["peak_fraction"] * 1e9 for r in cases.values()]


def of_cpu(records: list[Record]) -> Ceilings:
    """Of records of one thread count."""
    rates = [(label, _loop_rates(records, routines)) for label, routines in _PRECISIONS]
    streams = []
    for record in records:
        shape = shape_of(record)
        if shape is not None and matrix_bytes(record["routine"], shape) >= _BEYOND_CACHES:
            bytes_per_flop = matrix_bytes(record["routine"], shape) / flops(record["routine"], shape)
            streams += [record[side] * 1e9 * bytes_per_flop for side in ("ours", "theirs") if side in record]
    return Ceilings(
        [Roof(label, max(found), True) for label, found in rates if found],
        Roof("memory", max(streams), False) if streams else None,
    )


def cpu_origin(groups: list[list[Record]]) -> str:
    """Where of_cpu's roofs come from; groups of one thread count each."""
    rates = [_loop_rates(records, routines) for records in groups for _, routines in _PRECISIONS]
    slow = sum(rate < _SLOW * max(found) for found in rates for rate in found)
    return (
        "Roofs, solid: the best rate of a loop of multiply-adds in registers, which was timed in turn with every case"
        f" (bench_peak.c); beside {slow} of the {sum(map(len, rates))} cases it got less than {_SLOW} of that. Dashed: the most"
        f" bytes a second that any product here got through, of wsgemm or a peer, of matrices of {_BEYOND_CACHES >> 20} MiB or"
        " more together: a lower bound of what the memory can do; small matrices are read from caches."
    )
