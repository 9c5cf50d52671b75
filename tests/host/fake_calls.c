/* fake_calls.c - see fake_calls.h. */
#include "fake_calls.h"

#include <stdio.h>
#include <string.h>

#include "cuda/host/row_table.h"

const ws_cuda_row *const gpu_rows = ws_cuda_rows;
#define WS_CUDA_ROW(...) +1
#define WS_CUDA_WGMMA_ROW(...)
#define WS_CUDA_SLICED_ROW(...)
#define WS_CUDA_DIRECT_ROW(...)
const int n_gpu_rows = 0
#include "cuda/rows/kernels.def"
#include "cuda/rows/vec.def"
    ;
#undef WS_CUDA_ROW
#undef WS_CUDA_WGMMA_ROW
#undef WS_CUDA_SLICED_ROW
#undef WS_CUDA_DIRECT_ROW
const int n_all_gpu_rows = WS_N_CUDA_ROWS;

const ws_cuda_row *gpu_row_named(const char *name) {
  for (int r = 0; r < n_all_gpu_rows; r++)
    if (strcmp(gpu_rows[r].name, name) == 0) return &gpu_rows[r];
  REQUIRE(false, "no row is called %s", name);
  return NULL;
}

const ws_cuda_row *gpu_row_with(wsgemm_type type, int bm, int bn, int coarse) {
  for (int r = 0; r < n_gpu_rows; r++)
    if (gpu_rows[r].type == type && gpu_rows[r].bm == bm && gpu_rows[r].bn == bn && gpu_rows[r].coarse == coarse)
      return &gpu_rows[r];
  REQUIRE(false, "no %cgemm row has tiles of %d x %d, %d to an item", type_letter(type), bm, bn, coarse);
  return NULL;
}

const ws_cuda_row *row_of(const fake_launch *l) { return l->row_idx < 0 ? NULL : &gpu_rows[l->row_idx]; }

bool is_of(const fake_launch *l, const char *family) { return row_of(l) && strcmp(row_of(l)->family, family) == 0; }

bool is_split(const fake_launch *l) { return strcmp(l->entry, "split") == 0 || strcmp(l->entry, "split_clc") == 0; }

int64_t gpu_row_items(const ws_cuda_row *row, int64_t m, int64_t n, int64_t batch_count) {
  const int64_t n_columns = (n + row->bn - 1) / row->bn, columns = row->coarse * ws_cluster_n(row),
                rows = (int64_t)row->bm * row->cluster_m;
  return batch_count * ((m + rows - 1) / rows) * ((n_columns + columns - 1) / columns);
}

wsgemm_handle *handle_of_row(const ws_cuda_row *row) {
  wsgemm_handle *h = NULL;
  REQUIRE(wsgemm_create(&h) == WSGEMM_SUCCESS && wsgemm_set_kernel(h, row->name) == WSGEMM_SUCCESS, "%s: %s", row->name,
          wsgemm_last_error());
  return h;
}

enum { MATRIX_BYTES = 4 << 20 };

void *device_memory(int device) {
  static void *memory[FAKE_MOST_DEVICES];
  if (!memory[device]) memory[device] = fake_alloc(FAKE_DEVICE, device, 3 * MATRIX_BYTES);
  REQUIRE(memory[device] != NULL, "address space");
  return memory[device];
}

wsgemm_gemm_desc device_desc(wsgemm_type type, int64_t m, int64_t n, int64_t k, int device) {
  wsgemm_gemm_desc d = gemm_desc(type, WSGEMM_COL_MAJOR, WSGEMM_NO_TRANS, WSGEMM_NO_TRANS, m, n, k);
  d.a = device_memory(device);
  d.b = (char *)device_memory(device) + MATRIX_BYTES;
  d.c = (char *)device_memory(device) + 2 * MATRIX_BYTES;
  return d;
}

wsgemm_gemm_desc row_desc(const ws_cuda_row *row, int64_t m, int64_t n, int64_t k, int device) {
  const bool is_vector = row->kind == WS_ROW_VECTOR, is_along_k = row->bm * row->bn == 8;
  wsgemm_gemm_desc d = device_desc(row->type, is_vector && row->bm == 1 ? 1 : m, is_vector && row->bn == 1 ? 1 : n, k, device);
  if (is_vector && row->bn == 1 && is_along_k) d.transa = WSGEMM_TRANS, d.lda = k;
  if (is_vector && row->bm == 1 && !is_along_k) d.transb = WSGEMM_TRANS, d.ldb = n;
  return d;
}

wsgemm_gemm_desc ops_desc(wsgemm_type type, int ops, int64_t m, int64_t n, int64_t k) {
  static const wsgemm_op both[] = {WSGEMM_NO_TRANS, WSGEMM_TRANS};
  wsgemm_gemm_desc d = device_desc(type, m, n, k, 0);
  d.transa = both[ops / 2], d.transb = both[ops % 2];
  d.lda = ops / 2 ? k : m, d.ldb = ops % 2 ? n : k;
  return d;
}

/* By the words of their names, so that none can come in by another door. Streams may wait, the call
 * may not. Memory is allocated once in a context, see watched_gemm, and by nodes of a graph. */
static bool is_never_called(const char *name) {
  static const char *const words[] = {"Init",  "Alloc",  "Free",    "Synchronize", "Memcpy",  "Memset", "Wait",
                                      "Query", "Record", "Destroy", "Unload",      "Release", "Reset",  "SetCurrent"};
  static const char *const allowed[] = {"cuStreamWaitEvent", "cuEventRecord",   "cuEventQuery",
                                        "cuMemAlloc",        "cuMemAllocAsync", "cuMemFreeAsync"};
  for (size_t i = 0; i < sizeof allowed / sizeof allowed[0]; i++)
    if (strcmp(name, allowed[i]) == 0) return false;
  for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
    if (strstr(name, words[i])) return true;
  return false;
}

wsgemm_level3_desc level3_device_desc(wsgemm_routine routine, wsgemm_type type, int64_t n) {
  wsgemm_level3_desc d = WSGEMM_LEVEL3_DESC_INIT;
  char *memory = fake_alloc(FAKE_DEVICE, 0, (size_t)(3 * n * n) * 16);
  d.routine = routine, d.type = type, d.m = d.n = d.k = n;
  d.a = memory, d.b = memory + n * n * 16, d.c = memory + 2 * n * n * 16;
  d.lda = d.ldb = d.ldc = n;
  d.alpha = scalar_make(type, 1, 0), d.beta = scalar_make(type, 0, 0);
  return d;
}

wsgemm_status watched_gemm(wsgemm_handle *h, const wsgemm_gemm_desc *d) {
  const CUcontext context = fake_current();
  const CUstreamCaptureMode mode = fake_capture_mode();
  const int depth = fake_depth();
  char text[DESCRIPTION_BYTES];
  fake_forget();
  const wsgemm_status status = d->batch_count == 1 && d->m % 2 ? gemm_typed(h, d) : wsgemm_gemm(h, d);
  CHECK(fake_depth() == depth && fake_current() == context, "%s: %d contexts became %d, or another one is current",
        gemm_describe(d, text), depth, fake_depth());
  CHECK(fake_capture_mode() == mode, "%s: the thread's capture mode is another", gemm_describe(d, text));
  CHECK(!fake.is_capture_broken, "%s: a capture was broken", gemm_describe(d, text));
  CHECK(!fake.trapped, "%s: %s was called", gemm_describe(d, text), fake.trapped);
  CHECK(!fake.misuse, "%s: %s", gemm_describe(d, text), fake.misuse);
  CHECK(fake.n_allocs <= 1, "%s: %d allocations", gemm_describe(d, text), fake.n_allocs);
  for (int f = 0; f < FAKE_N_FUNCTIONS; f++)
    if (fake.n_calls_of[f] > 0 && is_never_called(fake_function_names[f]))
      CHECK(false, "%s: a call may not use %s", gemm_describe(d, text), fake_function_names[f]);
  CHECK(status == WSGEMM_SUCCESS || fake.n_launches == 0, "%s: a launch, and then %s", gemm_describe(d, text),
        wsgemm_status_name(status));
  return status;
}

bool writes_output(const fake_launch *l) {
  return strcmp(l->kernel, "align_copy") != 0 && strcmp(l->kernel, "float_copy") != 0 && strcmp(l->kernel, "maxima") != 0 &&
         !strstr(l->kernel, "slices_");
}

int n_writing_launches(void) {
  int n = 0;
  for (int i = 0; i < fake.n_launches && i < FAKE_N_LAUNCHES; i++) n += writes_output(&fake.launch[i]);
  return n;
}

const fake_launch *launch_of(wsgemm_handle *h, const wsgemm_gemm_desc *d) {
  char text[DESCRIPTION_BYTES];
  const wsgemm_status status = watched_gemm(h, d);
  REQUIRE(status == WSGEMM_SUCCESS && fake.n_launches == 1, "%s: %s (%s), %d launches", gemm_describe(d, text),
          wsgemm_status_name(status), wsgemm_last_error(), fake.n_launches);
  return &fake.launch[0];
}

void check_divisors(const ws_cuda_row *row, const fake_launch *l) {
  const ws_tile_divisors wanted = ws_tile_divisors_of(&l->args.grid);
  const ws_divisor sharers = ws_divisor_of(row->cluster);
  CHECK(memcmp(&l->args.tiles, &wanted, sizeof wanted) == 0, "%s: divisors of the grid", row->name);
  CHECK(memcmp(&l->args.sharers, &sharers, sizeof sharers) == 0, "%s: divisors of the cluster", row->name);
}

void expect_failure(wsgemm_handle *h, const wsgemm_gemm_desc *d, wsgemm_status status, const char *words) {
  char text[DESCRIPTION_BYTES];
  const wsgemm_status got = watched_gemm(h, d);
  CHECK(got == status && strstr(wsgemm_last_error(), words), "%s: %s (%s), not %s (.. %s ..)", gemm_describe(d, text),
        wsgemm_status_name(got), wsgemm_last_error(), wsgemm_status_name(status), words);
}

void expect_cpu_works(const char *when) {
  const double a[4] = {1, 2, 3, 4}, b[4] = {5, 6, 7, 8};
  double c[4] = {1, 1, 1, 1};
  const int n_launches = fake.n_launches;
  const wsgemm_status status =
      wsgemm_dgemm(NULL, WSGEMM_ROW_MAJOR, WSGEMM_NO_TRANS, WSGEMM_NO_TRANS, 2, 2, 2, 1, a, 2, b, 2, 2, c, 2);
  CHECK(status == WSGEMM_SUCCESS && c[0] == 21 && c[1] == 24 && c[2] == 45 && c[3] == 52,
        "%s: on host memory: %s (%s), (%g, %g, %g, %g)", when, wsgemm_status_name(status), wsgemm_last_error(), c[0], c[1], c[2],
        c[3]);
  CHECK(fake.n_launches == n_launches, "%s: a launch for host memory", when);
}

static void check_launch_by_ops(const ws_cuda_row *row, const fake_launch *l, int ops, const wsgemm_gemm_desc *d) {
  static const char *const entries[] = {"nn", "nt", "tn", "tt"};
  const int64_t n_items = ws_ceil_div(d->m, row->bm) * ws_ceil_div(d->n, row->bn);
  CHECK(row_of(l) == row && strcmp(l->entry, entries[ops]) == 0, "%s, ops %d: %s", row->name, ops, l->kernel);
  CHECK(l->grid[0] == n_items * row->cluster && l->cluster == (unsigned)row->cluster && l->block[0] == (unsigned)row->n_threads &&
            l->shared_bytes == (unsigned)row->shared_bytes,
        "%s: %u blocks in clusters of %u, %u threads", row->name, l->grid[0], l->cluster, l->block[0]);
  CHECK(l->args.sched.n_items == n_items && !l->args.sched.queue && l->args.grid.coarse == 1 &&
            l->args.grid.n_rows * row->bm >= d->m && l->args.grid.n_cols * row->bn >= d->n,
        "%s: grid", row->name);
  CHECK(l->args.a.data == d->a && l->args.b.data == d->b && l->args.c == d->c && l->args.k == d->k, "%s: operands", row->name);
}

void check_launches_by_ops(ws_row_kind kind, void (*check_more)(const ws_cuda_row *row, const fake_launch *l)) {
  int n_rows = 0;
  fake.device[0].cc = 90;
  for (int r = 0; r < n_all_gpu_rows; r++) {
    const ws_cuda_row *row = &gpu_rows[r];
    if (row->kind != kind || row->takes_maps) continue;
    n_rows++;
    wsgemm_handle *h = handle_of_row(row);
    if (row->n_slices == 1) REQUIRE(wsgemm_set_math(h, WSGEMM_MATH_TF32) == WSGEMM_SUCCESS, "%s", wsgemm_last_error());
    for (int ops = 0; ops < 4; ops++)
      for (int policy = 0; policy < WS_N_POLICIES; policy++) {
        wsgemm_gemm_desc d = ops_desc(row->type, ops, 301, 203, 77);
        /* A begins one real number late; lines of other lengths */
        d.a = (const char *)d.a + (type_is_half(row->type) ? 2 : 8), d.lda += ops;
        REQUIRE(wsgemm_set_policy(h, (wsgemm_policy)policy) == WSGEMM_SUCCESS, "%s", wsgemm_last_error());
        const fake_launch *l = launch_of(h, &d);
        check_launch_by_ops(row, l, ops, &d);
        check_more(row, l);
      }
    wsgemm_destroy(h);
  }
  CHECK(n_rows > 0, "there are no such rows");
}
