/* rows.c - rows of the registry and the plans of cases run on them: see rows.h. What is right is
 * judged in gemm_call.c. */
#include "rows.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *rows_backend = "cpu";

wsgemm_kernel_info row_info_at(int row_idx) {
  wsgemm_kernel_info info = {.struct_bytes = sizeof info};
  REQUIRE(wsgemm_get_kernel_info(row_idx, &info) == WSGEMM_SUCCESS, "row %d: %s", row_idx, wsgemm_last_error());
  return info;
}

wsgemm_kernel_info row_info(const char *name) {
  int i = 0;
  while (i < wsgemm_kernel_count() && strcmp(wsgemm_kernel_name(i), name) != 0) i++;
  return row_info_at(i);
}

bool is_of_family(const wsgemm_kernel_info *row, const char *families) {
  const size_t length = strlen(row->family);
  for (const char *word = families; *word; word += strcspn(word, " "), word += strspn(word, " "))
    if (strcspn(word, " ") == length && memcmp(word, row->family, length) == 0) return true;
  return false;
}

bool row_is_of(const char *name, const char *families) {
  const wsgemm_kernel_info info = row_info(name);
  return is_of_family(&info, families);
}

int usable_rows(struct kernel_row rows[MAX_ROWS]) {
  const char *wanted = getenv("WSGEMM_TEST_ROWS"); /* for a debugger or a sanitizer: only rows with this in their names */
  int n_rows = 0, n_of_type[N_TYPES] = {0};
  REQUIRE(wsgemm_kernel_count() > 0 && wsgemm_kernel_count() <= MAX_ROWS, "%d rows in the registry", wsgemm_kernel_count());
  for (int i = 0; i < wsgemm_kernel_count(); i++) {
    const wsgemm_kernel_info info = row_info_at(i);
    if (!info.is_usable || strcmp(info.backend, rows_backend) != 0 || (wanted && !strstr(info.name, wanted))) continue;
    const int coarse = info.coarse_factor > 0 ? info.coarse_factor : 1;
    rows[n_rows++] = (struct kernel_row){info.name, info.type, info.bm, info.bn * coarse, info};
    n_of_type[info.type]++;
  }
  for (int type = 0; type < N_TYPES && !wanted; type++)
    CHECK(n_of_type[type] > 0, "no usable row for type %c", type_letters[type]);
  return n_rows;
}

static int64_t larger(int64_t a, int64_t b) { return a > b ? a : b; }

bool explained_text(wsgemm_handle *handle, const wsgemm_gemm_desc *d, const char *key, char value[128]) {
  char text[4096];
  const size_t length = wsgemm_explain(handle, d, text, sizeof text), key_length = strlen(key);
  REQUIRE(length < sizeof text, "wsgemm_explain wants %zu bytes", length);
  for (const char *line = text; line; line = strchr(line, '\n') ? strchr(line, '\n') + 1 : NULL)
    if (strncmp(line, key, key_length) == 0 && line[key_length] == ':')
      return sscanf(line + key_length + 1, " %127[^\n]", value) == 1;
  return false;
}

long long explained_number(wsgemm_handle *handle, const wsgemm_gemm_desc *d, const char *key, long long fallback) {
  char value[128];
  return explained_text(handle, d, key, value) ? atoll(value) : fallback;
}

bool explained_is(wsgemm_handle *handle, const wsgemm_gemm_desc *d, const char *key, const char *value) {
  char found[128];
  return explained_text(handle, d, key, found) && strcmp(found, value) == 0;
}

int64_t packed_n(wsgemm_handle *handle, wsgemm_type type, int64_t m, int64_t k) {
  if (type_is_half(type)) type = WSGEMM_F32; /* their only path packs always */
  int64_t direct = 1, packed = INT64_C(1) << 22;
  while (packed - direct > 1) {
    const int64_t n = (direct + packed) / 2;
    const wsgemm_gemm_desc d = gemm_desc(type, WSGEMM_COL_MAJOR, WSGEMM_NO_TRANS, WSGEMM_NO_TRANS, m, n, k);
    *(explained_is(handle, &d, "path", "packed") ? &packed : &direct) = n;
  }
  REQUIRE(packed < INT64_C(1) << 22, "no product of %lld rows and k = %lld is packed", (long long)m, (long long)k);
  return packed;
}

/* The largest k that is summed in one block: beyond it, wsgemm_explain names a block shorter than
 * k. */
static int64_t longest_k_block(wsgemm_handle *handle, wsgemm_type type) {
  /* a few blocks of k: the pipeline is full, and its edges are near */
  if (strcmp(rows_backend, "cuda") == 0) return 64;
  int64_t one_block = 1, several = INT64_C(1) << 24;
  while (several - one_block > 1) {
    const int64_t k = (one_block + several) / 2;
    const wsgemm_gemm_desc d = gemm_desc(type, WSGEMM_COL_MAJOR, WSGEMM_NO_TRANS, WSGEMM_NO_TRANS, 300, 300, k);
    const long long block = explained_number(handle, &d, "k_block", 0);
    REQUIRE(block > 0, "wsgemm_explain names no k_block for k = %lld", (long long)k);
    *(block < k ? &several : &one_block) = k;
  }
  return one_block;
}

void rows_open(struct rows_of_type *rows, wsgemm_type type) {
  static struct kernel_row all[MAX_ROWS];
  const int n_all = usable_rows(all);
  *rows = (struct rows_of_type){.type = type};
  for (int i = 0; i < n_all; i++) {
    if (all[i].type != type) continue;
    wsgemm_handle *handle = NULL;
    REQUIRE(wsgemm_create(&handle) == WSGEMM_SUCCESS, "handle");
    REQUIRE(wsgemm_set_kernel(handle, all[i].name) == WSGEMM_SUCCESS, "%s: %s", all[i].name, wsgemm_last_error());
    const int64_t kc = longest_k_block(handle, type);
    rows->row[rows->n_rows] = all[i];
    rows->handle[rows->n_rows] = handle;
    rows->kc[rows->n_rows++] = kc;
    rows->widest = larger(rows->widest, 2 * larger(all[i].mr, all[i].nr) + 1);
    rows->max_kc = larger(rows->max_kc, kc);
  }
}

void rows_close(struct rows_of_type *rows) {
  for (int i = 0; i < rows->n_rows; i++) CHECK(wsgemm_destroy(rows->handle[i]) == WSGEMM_SUCCESS, "destroy");
}

wsgemm_op draw_op(wsgemm_type type, struct check_random *rng) { return all_ops[check_random_in(rng, 0, n_ops(type) - 1)]; }
wsgemm_layout draw_layout(struct check_random *rng) { return all_layouts[check_random_in(rng, 0, 1)]; }

static wsgemm_scalar draw_scalar(wsgemm_type type, enum judge how, struct check_random *rng) {
  switch (check_random_in(rng, 0, 3)) {
  case 0:
    return scalar_make(type, 0, 0);
  case 1:
    return scalar_make(type, 1, 0);
  case 2:
    return scalar_make(type, -1, 0);
  default:
    if (how == JUDGE_EXACT) return scalar_make(type, (double)check_random_in(rng, -2, 3), (double)check_random_in(rng, -2, 2));
    return scalar_make(type, 2 * check_random_unit(rng), 2 * check_random_unit(rng));
  }
}

bool run_drawn(struct stage *stage, const struct rows_of_type *rows, int i, wsgemm_layout layout, wsgemm_op transa,
               wsgemm_op transb, int64_t down, int64_t across, enum judge how, struct check_random *rng) {
  const bool transposed = layout == WSGEMM_ROW_MAJOR;
  wsgemm_gemm_desc d =
      gemm_desc(rows->type, layout, transa, transb, transposed ? across : down, transposed ? down : across, stage->product.k);
  const struct layout_of_case where = layout_drawn(rng);
  d.alpha = draw_scalar(rows->type, how, rng);
  d.beta = draw_scalar(rows->type, how, rng);
  static const wsgemm_type types_c[] = {WSGEMM_F16, WSGEMM_BF16, WSGEMM_F32};
  if (type_is_half(rows->type) && check_random_in(rng, 0, 1)) d.type_c = types_c[check_random_in(rng, 0, 2)];
  return run_case(stage, rows->handle[i], &d, &where, check_random_in(rng, 0, 1), how, rows->row[i].name);
}

int edges_of(int tile, int edges[MAX_EDGES]) {
  const int marks[] = {2, tile / 4, tile / 2, tile, 2 * tile};
  int n_edges = 0;
  for (size_t i = 0; i < sizeof marks / sizeof marks[0]; i++)
    for (int edge = marks[i] - 1; edge <= marks[i] + 1; edge++) {
      bool is_known = edge < 1;
      for (int j = 0; j < n_edges; j++) is_known |= edges[j] == edge;
      if (!is_known) edges[n_edges++] = edge;
    }
  return n_edges;
}

void cross_edges(struct stage *stage, const struct rows_of_type *rows, int i, enum judge how, int part,
                 struct check_random *rng) {
  int down[MAX_EDGES], across[MAX_EDGES];
  const int n_down = edges_of(rows->row[i].mr, down), n_across = edges_of(rows->row[i].nr, across);
  for (int op_a = 0; op_a < n_ops(rows->type); op_a++)
    for (int op_b = 0; op_b < n_ops(rows->type); op_b++)
      for (int layout = 0; layout < 2; layout++)
        for (int e = 0; e < n_down * n_across; e++)
          if (check_random_in(rng, 1, part) == 1)
            run_drawn(stage, rows, i, all_layouts[layout], all_ops[op_a], all_ops[op_b], down[e % n_down], across[e / n_down],
                      how, rng);
}

static int compare_k(const void *x, const void *y) {
  const int64_t a = *(const int64_t *)x, b = *(const int64_t *)y;
  return (a > b) - (a < b);
}

void cross_edges_and_k(wsgemm_type type, enum fill fill, enum judge how, int small_k_part, int kc_part,
                       struct check_random *rng) {
  static struct rows_of_type rows;
  rows_open(&rows, type);
  int64_t ks[10 + 3 * MAX_ROWS] = {0, 1, 2, 3, 4, 5, 7, 8, 9, 17};
  int n_ks = 10;
  for (int i = 0; i < rows.n_rows; i++)
    for (int64_t k = rows.kc[i] - 1; k <= rows.kc[i] + 1; k++) ks[n_ks++] = k;
  qsort(ks, (size_t)n_ks, sizeof ks[0], compare_k);
  struct stage stage = stage_new(type, rows.widest, rows.widest, ks[n_ks - 1], fill, rng);
  for (int ki = 0; ki < n_ks; ki++) {
    if (ki > 0 && ks[ki] == ks[ki - 1]) continue;
    product_extend(&stage.product, &stage.a, &stage.b, ks[ki]);
    for (int i = 0; i < rows.n_rows; i++)
      if (ks[ki] <= 17)
        cross_edges(&stage, &rows, i, how, small_k_part, rng);
      else if (llabs((long long)(ks[ki] - rows.kc[i])) <= 1)
        cross_edges(&stage, &rows, i, how, kc_part, rng);
  }
  stage_free(&stage);
  rows_close(&rows);
}
