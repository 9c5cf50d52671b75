/* table.c - the CPU's entry in the table of backends. */
#include "cpu/backend.h"
#include "tune/tuning.h"

static const char *row_name(int row) { return ws_row(row)->name; }
static wsgemm_type row_type(int row) { return ws_row(row)->type; }
static const char *row_lacks(int row) { return ws_row_usable(row) ? NULL : ws_isa_name(ws_row(row)->isa); }

const ws_backend ws_cpu_backend = {.name = "cpu",
                                   .gemm = ws_cpu_gemm,
                                   .explain = ws_cpu_explain,
                                   .describe = ws_cpu_describe,
                                   .row_count = ws_row_count,
                                   .row_name = row_name,
                                   .row_type = row_type,
                                   .row_find = ws_row_find,
                                   .row_lacks = row_lacks,
                                   .arena = &ws_cpu_arena};
