/* explain.c - how the CPU would run a product, in words; how it is made up. */
#include "core/policy.h"
#include "core/processors.h"
#include "cpu/backend.h"
#include "cpu/plan.h"

void ws_cpu_explain(const ws_call *call, const ws_problem *p, int device, ws_text *t) {
  (void)device;
  ws_plan plan;
  if (ws_is_plain(p))
    ws_plan_make(call, p, &plan);
  else
    ws_plan_structured(call, p, &plan);
  const bool packs_lines = !ws_is_plain(p) && (ws_is_structured(p) || p->a.trans);
  ws_text_add(t, "kernel: %s\nregister_tile: %dx%d\npath: %s%s\n", plan.row->name, plan.row->mr, plan.row->nr,
              ws_path_name(plan.path),
              plan.path != WS_PATH_DIRECT                                    ? ""
              : plan.pack_a || (packs_lines && p->b.structure == WS_GENERAL) ? " (panels of A packed)"
              : packs_lines                                                  ? " (panels of B packed)"
                                                                             : "");
  ws_text_add(t, "k_block: %lld\ntile: %lldx%lld\n", (long long)plan.kc, (long long)plan.bm, (long long)plan.bn);
  if (plan.k_of_part > 0) ws_text_add(t, "k_part: %d\n", plan.k_of_part);
  if (plan.path == WS_PATH_PACKED) ws_text_add(t, "column_block: %lld\n", (long long)plan.nc);
  if (plan.b_source == WS_B_IN_PLACE) ws_text_add(t, "operand_b: read in place\n");
  if (plan.b_source == WS_B_OF_EACH) ws_text_add(t, "operand_b: packed by each worker\n");
  if (plan.own_columns) ws_text_add(t, "worker_begins_with: columns of its own\n");
  ws_text_add(t, "coarse_factor: %d\npolicy: %s\nthreads: %d\nchosen_by: %s\n", plan.coarse, ws_policy_name(plan.policy),
              plan.n_threads, ws_tuned_by_name(plan.tuned.by));
  if (ws_is_half(p->a.type))
    ws_text_add(t, "arithmetic: %s operands as FP32, IEEE FP32 multiply-add, then one rounding to %s\n", ws_types[p->a.type].name,
                ws_types[p->c.type].name);
  else
    ws_text_add(t, "arithmetic: IEEE multiply-add in the data's own type\n");
}

void ws_cpu_describe(ws_text *t) {
  const ws_machine *machine = ws_machine_get();
  const ws_call call = ws_call_of(&ws_default_handle);
  ws_text_add(t, "processor: %s\nfeatures: %s\n", machine->model, machine->features);
  ws_text_add(t, "isa: %s\n", ws_isa_name(ws_row_for(&call, WSGEMM_F32)->isa));
  ws_text_add(t, "caches: L1d %lld KiB, L2 %lld KiB, L3 %lld KiB (%s)\n", (long long)machine->l1d_bytes >> 10,
              (long long)machine->l2_bytes >> 10, (long long)machine->l3_bytes >> 10, machine->caches_from);
}
