/* table.c - the GPU backend's entry in the table of backends. */
#include <string.h>

#include "cuda/host/backend.h"
#include "cuda/host/device.h"
#include "cuda/host/offload.h"
#include "cuda/host/offload_site.h"

static void row_info(int row_idx, wsgemm_kernel_info *info) {
  const ws_cuda_row *row = ws_cuda_row_at(row_idx);
  info->name = row->name;
  info->family = row->family;
  info->type = row->type;
  info->bm = row->bm;
  info->bn = row->bn;
  info->bk = row->bk;
  info->coarse_factor = row->coarse;
  info->n_stages = row->stages;
  info->n_threads = row->n_threads;
  info->shared_bytes = row->shared_bytes;
  info->cluster = row->cluster;
  info->cluster_splits = row->cluster_splits;
  info->n_slices = row->n_slices;
  info->has_split_k = row->splits;
  info->is_ping_pong = row->ping_pong;
  info->is_fma = row->is_fma;
  info->least_cc = ws_is_of_hopper(row->kind) ? WS_BY_MAP_CC : WS_LEAST_CC;
  info->most_cc = ws_is_of_hopper(row->kind) ? WS_BY_MAP_CC : 0;
}

static const char *row_lacks(int row) { return (void)row, ws_devices ? NULL : "a GPU"; }

static int row_find(const char *name) {
  for (int r = 0; r < ws_cuda_row_count(); r++)
    if (strcmp(ws_cuda_row_at(r)->name, name) == 0) return r;
  return -1;
}

static void describe_build(ws_text *t) { ws_text_add(t, "gpu code: %s\n", WS_CUDA_ARCHITECTURES); }

const ws_backend ws_cuda_backend = {.name = "cuda",
                                    .gemm = ws_cuda_gemm,
                                    .grouped = ws_cuda_grouped,
                                    .explain = ws_cuda_explain,
                                    .solve = ws_cuda_solve,
                                    .explain_solve = ws_cuda_explain_solve,
                                    .describe = ws_cuda_describe,
                                    .describe_build = describe_build,
                                    .row_count = ws_cuda_row_count,
                                    .row_info = row_info,
                                    .row_find = row_find,
                                    .row_lacks = row_lacks,
                                    .arena = &ws_cuda_arena,
                                    .find = ws_driver_find,
                                    .start = ws_cuda_start,
                                    .forked = ws_driver_forked,
                                    .place = ws_cuda_place,
                                    .workspace_bytes = ws_cuda_workspace_bytes,
                                    .solve_workspace_bytes = ws_cuda_solve_workspace_bytes,
                                    .set_workspace = ws_cuda_set_workspace,
                                    .packed_bytes = ws_cuda_packed_bytes,
                                    .prepack = ws_cuda_prepack,
                                    .is_on = ws_cuda_is_on,
                                    .of_host = &ws_offload_backend,
                                    .takes_host = ws_offload_takes,
                                    .set_pinned_limit = ws_site_set_pinned_limit,
                                    .fallback_count = ws_cuda_fallback_count};
