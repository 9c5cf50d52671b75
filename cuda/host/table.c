/* table.c - the GPU backend's entry in the table of backends. */
#include <string.h>

#include "cuda/host/backend.h"
#include "cuda/host/device.h"

static const char *row_name(int row) { return ws_cuda_row_at(row)->name; }
static wsgemm_type row_type(int row) { return ws_cuda_row_at(row)->type; }
static const char *row_lacks(int row) { return (void)row, ws_devices ? NULL : "a GPU"; }

static int row_find(const char *name) {
  for (int r = 0; r < ws_cuda_row_count(); r++)
    if (strcmp(ws_cuda_row_at(r)->name, name) == 0) return r;
  return -1;
}

static void describe_build(ws_text *t) { ws_text_add(t, "gpu code: %s\n", WS_CUDA_ARCHITECTURES); }

const ws_backend ws_cuda_backend = {.name = "cuda",
                                    .gemm = ws_cuda_gemm,
                                    .explain = ws_cuda_explain,
                                    .describe = ws_cuda_describe,
                                    .describe_build = describe_build,
                                    .row_count = ws_cuda_row_count,
                                    .row_name = row_name,
                                    .row_type = row_type,
                                    .row_find = row_find,
                                    .row_lacks = row_lacks,
                                    .arena = &ws_cuda_arena,
                                    .find = ws_driver_find,
                                    .start = ws_cuda_start,
                                    .forked = ws_driver_forked,
                                    .place = ws_cuda_place,
                                    .workspace_bytes = ws_cuda_workspace_bytes,
                                    .set_workspace = ws_cuda_set_workspace,
                                    .packed_bytes = ws_cuda_packed_bytes,
                                    .prepack = ws_cuda_prepack,
                                    .is_on = ws_cuda_is_on,
                                    .fallback_count = ws_cuda_fallback_count};
