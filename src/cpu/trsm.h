/* trsm.h - a triangular system as the CPU solves it: T X = alpha Y, and the parts of it that
 * trsm.c orders.
 *
 * T is op(A), or its transpose where A is on the right; right sides are columns of Y, rows of B
 * then. T is cut into blocks of kb unknowns. For each block, in the order of substitution: the
 * diagonal block is solved, a group of nr unknowns at a time, and what it contributes is taken from
 * the unknowns that are left. The bits of a right side depend on T, kb and nr alone. */
#ifndef WS_CPU_TRSM_H
#define WS_CPU_TRSM_H
#include "core/system.h"
#include "cpu/rows.h"

typedef struct ws_solve {
  const ws_ukr_set *ukr;
  int bytes; /* of an element */
  wsgemm_type type;
  int64_t m, n, batch_count; /* unknowns, right sides */
  const ws_matrix *t, *b;
  const ws_result *x;
  bool t_rows_contiguous; /* T(i, p) at i + p ld, else at p + i ld */
  bool lanes_contiguous;  /* right side r, unknown p: at r + p ld, else at p + r ld */
  bool is_unit;
  int direction; /* WS_SOLVE_DOWN, WS_SOLVE_UP */
  int64_t kb, n_blocks;
  ws_scale first, later; /* of products that meet an unknown for the first time; of others */
} ws_solve;

void ws_solve_begin(ws_solve *v, const ws_system *s, const ws_cpu_row *row);

/* Block s in the order of substitution: unknowns k0 .. k1 - 1; those left, l0 .. l1 - 1. */
typedef struct ws_block {
  int64_t batch, k0, k1, l0, l1;
  bool is_first;
} ws_block;
ws_block ws_block_at(const ws_solve *v, int64_t batch, int64_t s);

/* ---- T, packed: the groups of a diagonal block; groups of the rows that are left --------------- */

int64_t ws_packed_diagonal_bytes(const ws_solve *v, const ws_block *b);
int64_t ws_packed_left_bytes(const ws_solve *v, const ws_block *b, int64_t n_groups);
int64_t ws_diagonal_groups(const ws_solve *v, const ws_block *b);
int64_t ws_left_groups(const ws_solve *v, const ws_block *b);
void ws_pack_diagonal_group(const ws_solve *v, const ws_block *b, int64_t group, char *packed);
/* To the beginning of `packed`. */
void ws_pack_left_groups(const ws_solve *v, const ws_block *b, int64_t group, int64_t n_groups, char *packed);

/* A group of a diagonal block. */
typedef struct ws_group {
  int64_t g0, w;        /* unknowns g0 .. g0 + w - 1 */
  int64_t p0, k;        /* those of the block that are solved before */
  int64_t panel_offset; /* bytes: where its columns p0 .. p0 + k - 1 are packed */
  int64_t diagonal_offset;
} ws_group;
ws_group ws_group_at(const ws_solve *v, const ws_block *b, int64_t group);
/* Its own triangle alone. */
int64_t ws_diagonal_bytes(const ws_solve *v);
void ws_pack_diagonal(const ws_solve *v, const ws_block *b, const ws_group *g, char *out);
bool ws_diagonal_is_scaled(const ws_solve *v, const char *diagonal);
/* Element (i, p) of T. */
const char *ws_t_at(const ws_solve *v, int64_t batch, int64_t i, int64_t p);

/* ---- right sides ----------------------------------------------------------------------------- */

/* Right sides r .. r + n - 1, as many as fit in a panel of `width` lanes, or fewer. */
typedef struct ws_lanes {
  int64_t r, n, width;
} ws_lanes;
/* Unknowns p .. p + k - 1 of a panel; into X. */
void ws_pack_panel(const ws_solve *v, const ws_matrix *from, int64_t batch, const ws_lanes *lanes, int64_t p, int64_t k,
                   char *panel);
void ws_unpack_panel(const ws_solve *v, int64_t batch, const ws_lanes *lanes, int64_t p, int64_t k, const char *panel);

/* Right sides r .. r + n - 1 in panels at y, each all unknowns long: their bytes; from B; what the
 * block solved, to X. */
int64_t ws_panel_bytes(const ws_solve *v, int64_t n);
void ws_pack_right_sides(const ws_solve *v, int64_t batch, int64_t r, int64_t n, char *y);
void ws_unpack_unknowns(const ws_solve *v, const ws_block *b, int64_t r, int64_t n, const char *y);

/* ---- work ------------------------------------------------------------------------------------ */

/* Solves the diagonal block; takes the block's unknowns from some groups of those that are left,
 * whose rows are at the beginning of `packed`. */
void ws_solve_diagonal(const ws_solve *v, const ws_block *b, const char *packed, char *y, int64_t n);
void ws_update_left(const ws_solve *v, const ws_block *b, const char *packed, int64_t group, int64_t n_groups, char *y,
                    int64_t n);

/* Unknowns i .. i + n - 1 of T where it is, but for lanes and scale; inverse: 2 * nr numbers. Value:
 * whether the diagonal is inverted without factors. */
bool ws_small_triangle_at(const ws_solve *v, int64_t batch, int64_t i, int64_t n, ws_small_triangle *s, double *inverse);
/* All unknowns of right sides r .. r + n - 1 with T where it is, and nothing packed. Value: whether it
 * was done; it is for a T of one group, with a diagonal that is inverted without factors, and few
 * right sides. */
bool ws_fits_place(const ws_solve *v, int64_t n); /* all of that but the diagonal */
bool ws_solve_in_place(const ws_solve *v, int64_t batch, int64_t r, int64_t n);

/* All of it by the calling thread, without memory: trsm_direct.c. */
void ws_solve_directly(const ws_solve *v);
#endif
