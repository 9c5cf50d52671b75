/* table.c - the CPU's entry in the table of backends. */
#include "cpu/backend.h"
#include "cpu/threads.h"
#include "tune/tuning.h"

/* The portable kernels round twice (simd_ref.h); a matrix unit has a rounding of its own. */
static void row_info(int row_idx, wsgemm_kernel_info *info) {
  const ws_cpu_row *row = ws_row(row_idx);
  info->name = row->name;
  info->family = ws_isa_name(row->isa);
  info->type = row->type;
  info->bm = row->mr;
  info->bn = row->nr;
  info->bk = row->kc;
  info->is_fma = !row->unit && row->isa != WS_ISA_REF;
}

static const char *row_lacks(int row) { return ws_row_usable(row) ? NULL : ws_isa_name(ws_row(row)->isa); }

static void nothing(void *context, int n_workers) { (void)context, (void)n_workers; }

static void together(int n_workers, ws_backend_work *work, void *context) {
  ws_pool_run(&(ws_pool_job){.n_workers = n_workers, .needs_all = true, .begin = nothing, .fn = work, .context = context});
}

const ws_backend ws_cpu_backend = {.name = "cpu",
                                   .gemm = ws_cpu_gemm,
                                   .grouped = ws_cpu_grouped,
                                   .explain = ws_cpu_explain,
                                   .solve = ws_cpu_solve,
                                   .explain_solve = ws_cpu_explain_solve,
                                   .describe = ws_cpu_describe,
                                   .row_count = ws_row_count,
                                   .row_info = row_info,
                                   .row_find = ws_row_find,
                                   .row_lacks = row_lacks,
                                   .arena = &ws_cpu_arena,
                                   .together = together};
