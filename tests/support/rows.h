/* rows.h - the registry rows of one type, each with a handle that forces it, and the case plans
 * that several suites run on them: the edges round a row's tile, crossed with op pairs and
 * layouts. */
#ifndef WSGEMM_TESTS_ROWS_H
#define WSGEMM_TESTS_ROWS_H

#include "gemm_call.h"

/* What the registry says of a row, by its number or its name; the process ends if there is none. */
wsgemm_kernel_info row_info_at(int row_idx);
wsgemm_kernel_info row_info(const char *name);
/* Whether the row's family is one of these, with a space between two. */
bool is_of_family(const wsgemm_kernel_info *row, const char *families);
bool row_is_of(const char *name, const char *families);

/* One registry row that this machine can run. */
struct kernel_row {
  const char *name;
  wsgemm_type type;
  int mr, nr; /* of a GPU row, the extents of a work item */
  wsgemm_kernel_info info;
};

/* Fills rows with the usable rows of the registry and returns how many there are; at least one for
 * each type, or the check fails. */
enum { MAX_ROWS = 700 };
extern const char *rows_backend; /* whose rows: "cpu" at first, or "cuda" */
int usable_rows(struct kernel_row rows[MAX_ROWS]);

struct rows_of_type {
  wsgemm_type type;
  int n_rows;
  struct kernel_row row[MAX_ROWS];
  wsgemm_handle *handle[MAX_ROWS];
  int64_t kc[MAX_ROWS];
  int64_t widest; /* two tiles and one more, of the row with the widest tile */
  int64_t max_kc;
};

void rows_open(struct rows_of_type *rows, wsgemm_type type);
void rows_close(struct rows_of_type *rows);

/* The value of a line "key: value" in wsgemm_explain's text for d, in `value`; false if there is no
 * such line. */
bool explained_text(wsgemm_handle *handle, const wsgemm_gemm_desc *d, const char *key, char value[128]);

/* The number after "key:" in wsgemm_explain's text for d, or fallback if there is none. */
long long explained_number(wsgemm_handle *handle, const wsgemm_gemm_desc *d, const char *key, long long fallback);

/* Whether wsgemm_explain's text for d has the line "key: value". */
bool explained_is(wsgemm_handle *handle, const wsgemm_gemm_desc *d, const char *key, const char *value);

/* An n for which an m x n x k product packs both operands (column-major, no transposes), and for n - 1 does not;
 * it depends on the caches. AVX2 may pack from fewer columns on, and not again before many more. */
int64_t packed_n(wsgemm_handle *handle, wsgemm_type type, int64_t m, int64_t k);

wsgemm_op draw_op(wsgemm_type type, struct check_random *rng);
wsgemm_layout draw_layout(struct check_random *rng);

/* One case on row i with lds, places and form of the API drawn at random, and alpha and beta: 0, 1,
 * -1 or a random number (a small integer for JUDGE_EXACT). k is the product's. `down` and `across`
 * are the extents along the tile's mr and nr: in row-major the library computes the transpose, so
 * there they are n and m. */
bool run_drawn(struct stage *stage, const struct rows_of_type *rows, int i, wsgemm_layout layout, wsgemm_op transa,
               wsgemm_op transb, int64_t down, int64_t across, enum judge how, struct check_random *rng);

/* 1, a quarter, a half (on the SIMD rows: a vector), one tile, two tiles, each with its neighbours;
 * returns how many. */
enum { MAX_EDGES = 20 };
int edges_of(int tile, int edges[MAX_EDGES]);

/* All edges of row i's tile x all op pairs x both layouts; part > 1 takes a random one in `part` of
 * them. */
void cross_edges(struct stage *stage, const struct rows_of_type *rows, int i, enum judge how, int part, struct check_random *rng);

/* cross_edges for all rows of a type, k = 0 .. 17 (every k_small_part-th case) and kc - 1, kc, kc +
 * 1 (every kc_part-th). */
void cross_edges_and_k(wsgemm_type type, enum fill fill, enum judge how, int small_k_part, int kc_part, struct check_random *rng);

#endif
