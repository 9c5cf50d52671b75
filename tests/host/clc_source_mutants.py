#!/usr/bin/env python3
"""Faults of the adapter of Cluster Launch Control (cuda/sched/clc.cuh, foreach.cuh) and of its instructions (cuda/ptx/clc.cuh), each a
small change of the source; as one translation unit that has every faulty copy in a namespace of its own.

    clc_source_mutants.py SOURCE_DIR OUTPUT      the faulty adapters, for test_clc_adapter.cpp

test_clc_adapter.cpp runs the adapters on a simulated device, clc_code.py executes the PTX that nvcc makes of them all. A mutant that is
not caught where its row says so fails the test, and so does one whose text is no longer in the source.
Compiled and model-checked, never run on hardware.
"""

import pathlib
import re
import sys
from typing import NamedTuple

PTX, CLC, FOREACH, PROBE = "cuda/ptx/clc.cuh", "cuda/sched/clc.cuh", "cuda/sched/foreach.cuh", "tests/host/clc_probe.cu"


class Mutant(NamedTuple):
    name: str
    path: str
    old: str
    new: str
    kernel: str  # of clc_probe.cu, that shows it: clc, pair, foreach; source: none, only the text of the file does
    occurrence: int = 0
    breaks: str = ""  # the rule of clc_machine.h, of an adapter
    is_in_code: bool = True  # executing the code of that kernel shows it, too


OPERANDS = '"r"(result_at), "r"(barrier_at), "r"(mask)'
EXCHANGED = '"r"(barrier_at), "r"(result_at), "r"(mask)'
SELP, INVERTED_SELP = "selp.u32 %0, 1, 0, p;", "selp.u32 %0, 0, 1, p;"
HALVES, EXCHANGED_HALVES = "mov.b128 r, {%1, %2};", "mov.b128 r, {%2, %1};"
WAIT = "while (!mbarrier_try_wait_parity_acquire<scope>(shared_barrier, parity)) {"
SCOPE = "CLUSTER_BLOCKS > 1 ? barrier_scope::cluster : barrier_scope::cta"
SCOPE_EXCHANGED = "CLUSTER_BLOCKS > 1 ? barrier_scope::cta : barrier_scope::cluster"

MUTANTS = [
    # ---- The adapter over our own protocol
    Mutant("first_warp_for_first_thread", CLC, "threadIdx.x == 0", "threadIdx.x < 32", "clc", breaks="wrong_bytes"),
    Mutant("second_thread_for_first", CLC, "threadIdx.x == 0", "threadIdx.x == 1", "clc", breaks="request_not_ahead"),
    Mutant("begins_with_next_block", CLC, "return blockIdx.x;", "return blockIdx.x + 1;", "clc", breaks="item_twice"),
    Mutant("has_no_rank", CLC, "return cluster_ctaid_x();", "return 0;", "pair", breaks="request_not_alone"),
    Mutant("inverts_rank", CLC, "return cluster_ctaid_x();", "return 1 - cluster_ctaid_x();", "pair", breaks="not_neighbours",
           is_in_code=False),  # each item still has one owner
    Mutant("meets_no_block", CLC, "{ __syncthreads(); }", "{}", "clc", breaks="barrier_not_ready"),
    Mutant("meets_its_block_only", CLC, "barrier_cluster_sync();", "__syncthreads();", "pair", breaks="cluster_not_running"),
    Mutant("expects_two_arrivals", CLC, "mbarrier_init(shared_barrier, 1)", "mbarrier_init(shared_barrier, 2)", "clc",
           breaks="deadlock"),
    Mutant("releases_no_initialisation", CLC, "{ fence_mbarrier_init_release(); }", "{}", "pair", breaks="barrier_not_ready"),
    Mutant("expects_half_the_bytes", CLC, "(shared_barrier, n_bytes)", "(shared_barrier, n_bytes / 2)", "clc",
           breaks="wrong_bytes"),
    Mutant("waits_once", CLC, WAIT, WAIT.replace("while", "if"), "clc", breaks="read_before_completion"),
    Mutant("waits_never", CLC, WAIT, "while (parity > 1) { /* never */", "clc", breaks="read_before_completion"),
    Mutant("waits_while_complete", CLC, WAIT, WAIT.replace("!", ""), "clc", breaks="read_before_completion"),
    Mutant("waits_for_one_parity", CLC, WAIT, WAIT.replace("parity))", "parity & 0))"), "clc", breaks="read_before_completion"),
    Mutant("waits_for_other_parity", CLC, WAIT, WAIT.replace("parity))", "parity ^ 1))"), "clc",
           breaks="read_before_completion"),
    Mutant("exchanges_scopes", CLC, SCOPE, SCOPE_EXCHANGED, "pair", breaks="read_before_completion"),
    Mutant("releases_where_it_should_acquire", CLC, "fence_proxy_async_generic_acquire()", "fence_proxy_async_generic_release()",
           "clc", breaks="acquire_fence_missing"),
    Mutant("acquires_where_it_should_release", CLC, "fence_proxy_async_generic_release()", "fence_proxy_async_generic_acquire()",
           "clc", breaks="release_fence_missing"),
    Mutant("asks_for_one_block", CLC, "clusterlaunchcontrol_try_cancel_multicast(shared_result",
           "clusterlaunchcontrol_try_cancel(shared_result", "pair", breaks="wrong_bytes"),
    Mutant("negates_is_canceled", CLC, "return clusterlaunchcontrol_query_cancel_is_canceled(r)",
           "return !clusterlaunchcontrol_query_cancel_is_canceled(r)", "clc", breaks="refusal_decoded"),
    Mutant("takes_next_ctaid", CLC, "get_first_ctaid_x(r);", "get_first_ctaid_x(r) + 1;", "clc", breaks="item_never"),
    Mutant("leaves_out_last_item", CLC, "args.n_items, body", "args.n_items - 1, body", "clc", breaks="item_never"),
    Mutant("adds_an_item", CLC, "args.n_items, body", "args.n_items + 1, body", "pair", breaks="no_such_item"),
    # ---- The adapter over the library's
    Mutant("foreach_repeats_own_block", FOREACH, "body(int64_t(block_idx.x))", "body(int64_t(blockIdx.x))", "foreach",
           breaks="item_twice"),
    Mutant("foreach_leaves_out_last_item", FOREACH, "block_idx.x < args.n_items", "block_idx.x < args.n_items - 1", "foreach",
           breaks="item_never"),
    Mutant("foreach_takes_next_block", FOREACH, "body(int64_t(block_idx.x))", "body(int64_t(block_idx.x) + 1)", "foreach",
           breaks="no_such_item"),
    Mutant("foreach_negates_bound", FOREACH, "block_idx.x < args.n_items", "block_idx.x >= args.n_items", "foreach",
           breaks="item_never"),
    # The library of CUDA 13.0 meets by itself, without a promise; so its code does not show this one.
    Mutant("foreach_does_not_meet", FOREACH, "      __syncthreads();\n", "", "foreach", breaks="bodies_overlap",
           is_in_code=False),
    # ---- The instructions
    Mutant("ptx_exchanges_request_operands", PTX, OPERANDS, EXCHANGED, "clc"),
    Mutant("ptx_exchanges_multicast_operands", PTX, OPERANDS, EXCHANGED, "pair", 1),
    Mutant("ptx_multicasts_to_own_block", PTX, ".multicast::cluster::all.b128 ", ".b128 ", "pair"),
    Mutant("ptx_asks_unless_elected", PTX, "@p clusterlaunchcontrol", "@!p clusterlaunchcontrol", "clc"),
    Mutant("ptx_multicasts_unless_elected", PTX, "@p clusterlaunchcontrol", "@!p clusterlaunchcontrol", "pair", 1),
    Mutant("ptx_inverts_wait_of_cluster", PTX, SELP, INVERTED_SELP, "pair", 0),
    Mutant("ptx_inverts_wait_of_block", PTX, SELP, INVERTED_SELP, "clc", 1),
    Mutant("ptx_inverts_is_canceled", PTX, SELP, INVERTED_SELP, "clc", 2),
    Mutant("ptx_negates_wait", PTX, "is_complete != 0", "is_complete == 0", "clc"),
    Mutant("ptx_negates_is_canceled", PTX, "is_canceled != 0", "is_canceled == 0", "clc"),
    Mutant("ptx_exchanges_halves_of_question", PTX, HALVES, EXCHANGED_HALVES, "clc", 0),
    Mutant("ptx_exchanges_halves_of_index", PTX, HALVES, EXCHANGED_HALVES, "clc", 1),
    Mutant("ptx_takes_y_of_index", PTX, "get_first_ctaid::x", "get_first_ctaid::y", "clc"),
    Mutant("ptx_adds_to_index", PTX, "return x;", "return x + 1;", "clc", 1),
    Mutant("ptx_adds_to_rank", PTX, "return x;", "return x + 1;", "pair", 0),
    Mutant("ptx_ignores_parity_of_cluster", PTX, "b64 p, [%1], %2;", "b64 p, [%1], 0;", "pair", 0),
    Mutant("ptx_ignores_parity_of_block", PTX, "b64 p, [%1], %2;", "b64 p, [%1], 0;", "clc", 1),
    Mutant("ptx_exchanges_operands_of_wait", PTX, '"r"(at), "r"(parity)', '"r"(parity), "r"(at)', "clc", 1),
    Mutant("ptx_exchanges_operands_of_arrival", PTX, '"r"(at), "r"(n_bytes)', '"r"(n_bytes), "r"(at)', "clc", 1),
    Mutant("ptx_initialises_no_arrivals", PTX, "b64 [%0], %1;\" ::\"r\"(shared_address(barrier)), \"r\"(n_arrivals)",
           "b64 [%0], 0;\" ::\"r\"(shared_address(barrier)), \"r\"(n_arrivals)", "clc"),
    Mutant("ptx_does_not_wait_for_cluster", PTX, ";\\n\\tbarrier.cluster.wait.acquire;", ";", "pair"),
    Mutant("ptx_exchanges_proxy_fences", PTX, "generic.acquire.sync_restrict::shared::cluster.cluster",
           "generic.release.sync_restrict::shared::cta.cluster", "clc"),
]

# Each clobber of memory, and each `volatile` that keeps a question where it stands: nvcc 13.0 makes the same code without.
MUTANTS += [Mutant(f"ptx_no_clobber_{i}", PTX, ': "memory"', ":", "source", i) for i in range(11)]
MUTANTS += [Mutant(f"ptx_no_volatile_{i}", PTX, "asm volatile(", "asm(", "source", i) for i in range(13)]


def mutated(text, mutant):
    """The text with the one change; that it no longer stands there is an error."""
    at = -1
    for _ in range(mutant.occurrence + 1):
        at = text.find(mutant.old, at + 1)
        if at < 0:
            raise SystemExit(f"{mutant.name}: {mutant.path} no longer has: {mutant.old}")
    return text[:at] + mutant.new + text[at + len(mutant.old):]


def body_of(text):
    """A header without its guard and the files that it includes."""
    lines = text.splitlines(keepends=True)
    guard = re.search(r"^#ifndef (WS_\w+_CUH)$", text, flags=re.MULTILINE)
    if guard:
        lines = [line for line in lines if guard.group(1) not in line]
        lines = lines[: max(i for i, line in enumerate(lines) if line.startswith("#endif"))]
    return "".join(line for line in lines if not line.startswith("#include"))


def variants(source, paths, mutants):
    """The files at these paths, as they are and with each mutant, each variant in a namespace of its name."""
    texts = {path: pathlib.Path(source, path).read_text() for path in paths}
    parts = []
    for mutant in [None, *mutants]:
        name = mutant.name if mutant else "right"
        parts.append(f"namespace {name} {{\nnamespace ws {{\nusing namespace ::ws;\n}}\n")
        for path, text in texts.items():
            text = body_of(mutated(text, mutant) if mutant and mutant.path == path else text)
            parts.append(re.sub(r"\bprobe_", f"{name}__", text) if path == PROBE else text)
        parts.append(f"}} // namespace {name}\n")
    return "".join(parts)


def main():
    source, output = sys.argv[1:]
    of_adapter = [mutant for mutant in MUTANTS if mutant.breaks]
    rows = "".join(f"  X({m.name}, {m.breaks}, {2 if m.kernel == 'pair' else 1}, {int(m.path == FOREACH)}) \\\n" for m in of_adapter)
    pathlib.Path(output).write_text(
        f"/* Generated by clc_source_mutants.py. */\n{variants(source, [CLC, FOREACH], of_adapter)}\n"
        f"/* X(name, rule that it breaks, blocks of a cluster, is of foreach.cuh) */\n#define CLC_ADAPTER_MUTANTS(X) \\\n{rows}\n")


if __name__ == "__main__":
    main()
