/* pack_operand.h - packs a part of an operand, structured or not. */
#ifndef WS_CPU_PACK_OPERAND_H
#define WS_CPU_PACK_OPERAND_H
#include <string.h>

#include "core/matrix.h"
#include "cpu/kernels/ukr.h"

/* Which part of op(X): n lines from `first` on (rows of op(A), columns of op(B) if is_b), of which
 * the k_count elements from k_first on; of one product of a batch. */
typedef struct ws_part {
  int64_t batch, first, n, k_first, k_count;
  bool is_b;
} ws_part;

/* Packs as ws_pack_fn. Of a triangular operand a panel gets no more than the k in which it is
 * not wholly zero (ws_panel_k): the rest of the panel is left as it is. Elements of the triangle
 * that is not stored, and a diagonal of ones, have no effect. */
void ws_pack_operand(const ws_matrix *x, const ws_part *part, ws_pack_fn *pack, char *out, int64_t width);

/* The k of a block k_first .. k_first + k_count - 1 in which the lines x .. x + count - 1 of a
 * triangular operand are not wholly zero, counted from k_first on; begin >= end: there are none. */
static inline ws_k_range ws_panel_k(const ws_matrix *x, bool is_b, int64_t line, int64_t count, int64_t k_first,
                                    int64_t k_count) {
  ws_k_range range = ws_k_range_of(ws_triangle_of(x), is_b, line, count, k_first + k_count);
  range.begin = ws_max(range.begin - k_first, 0), range.end = ws_min(range.end - k_first, k_count);
  return range;
}

/* An element without its imaginary part. */
static inline void ws_clear_im(wsgemm_type type, char *x) {
  const int half = ws_types[type].bytes / 2;
  if (ws_types[type].n_real == 2) memset(x + half, 0, (size_t)half);
}
#endif
