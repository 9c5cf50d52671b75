/* pack_operand.c - packing of structured operands: what lies wholly in the stored triangle is packed
 * as it lies, what lies wholly in the other one from its mirror image, by the packing functions of
 * the ISA; where a panel crosses the diagonal, element by element.
 *
 *        k ->                      of each panel, `width` lines of op(X), three stretches of k:
 *      +-----------+
 *      |\ . . . . .|   panel       before the diagonal, on it, behind it
 *      |--\--------|
 *      |   \       |   panel
 *      +-----------+
 */
#include "cpu/pack_operand.h"

#include <string.h>

/* An operand as packing sees it: line r, place p is at data[p + r * ld] if k_contiguous, else at
 * data[r + p * ld]; its mirror image the other way round. */
typedef struct view {
  const char *data;
  int64_t ld;
  wsgemm_type type;
  ws_structure structure;
  bool k_contiguous;
  bool stored_before; /* p <= r is stored; else p >= r */
  ws_pack_fn *pack;
} view;

static view view_of(const ws_matrix *x, const ws_part *part, ws_pack_fn *pack) {
  const bool k_contiguous = x->trans != part->is_b;
  return (view){.data = (const char *)x->data + part->batch * x->stride * ws_types[x->type].bytes,
                .ld = x->ld,
                .type = x->type,
                .structure = (ws_structure)x->structure,
                .k_contiguous = k_contiguous,
                .stored_before = x->stored_upper == k_contiguous,
                .pack = pack};
}

static const char *at(const view *x, int64_t r, int64_t p, bool k_contiguous) {
  return x->data + (k_contiguous ? p + r * x->ld : r + p * x->ld) * ws_types[x->type].bytes;
}

/* ---- complex elements ------------------------------------------------------------------------ */

static void conjugate(wsgemm_type type, int64_t n, int64_t k, char *out, int64_t width) {
  for (int64_t p = 0; p < k; p++)
    if (type == WSGEMM_C32) {
      wsgemm_cfloat *line = (wsgemm_cfloat *)(void *)out + p * width;
      for (int64_t r = 0; r < n; r++) line[r].im = -line[r].im;
    } else if (type == WSGEMM_C64) {
      wsgemm_cdouble *line = (wsgemm_cdouble *)(void *)out + p * width;
      for (int64_t r = 0; r < n; r++) line[r].im = -line[r].im;
    }
}

static void set_one(wsgemm_type type, char *x) {
  const wsgemm_cfloat one_c = {1, 0};
  const wsgemm_cdouble one_z = {1, 0};
  const bool is_single = type == WSGEMM_F32 || type == WSGEMM_C32;
  memcpy(x, is_single ? (const void *)&one_c : (const void *)&one_z, (size_t)ws_types[type].bytes);
}

/* Its real part. */
static void copy_real(wsgemm_type type, const char *x, char *to) {
  const int half = ws_types[type].bytes / ws_types[type].n_real;
  memset(to, 0, (size_t)ws_types[type].bytes);
  memcpy(to, x, (size_t)half);
}

/* ---- one panel ------------------------------------------------------------------------------- */

/* n elements `step` bytes apart. */
static inline __attribute__((always_inline)) void gather(int64_t n, const char *in, int64_t step, char *out,
                                                         const int64_t bytes) {
  for (int64_t i = 0; i < n; i++) memcpy(out + i * bytes, in + i * step, (size_t)bytes);
}

static void gather_bytes(int64_t n, const char *in, int64_t step, char *out, int bytes) {
  if (step == bytes)
    memcpy(out, in, (size_t)(n * bytes));
  else if (bytes == 4)
    gather(n, in, step, out, 4);
  else if (bytes == 8)
    gather(n, in, step, out, 8);
  else
    gather(n, in, step, out, 16);
}

/* Lines r .. r + n - 1 at places p .. p + k - 1, all of them in one triangle: stored, or not. */
static void pack_off_diagonal(const view *x, int64_t r, int64_t n, int64_t p, int64_t k, bool is_stored, char *out,
                              int64_t width) {
  const bool k_contiguous = is_stored == x->k_contiguous;
  if (k <= 0) return;
  x->pack(n, k, at(x, r, p, k_contiguous), x->ld, k_contiguous, out, width);
  if (!is_stored && x->structure == WS_HERMITIAN) conjugate(x->type, n, k, out, width);
}

/* n lines from r on at the one place p, all in the triangle that is not stored. */
static void mirror(const view *x, int64_t r, int64_t n, int64_t p, char *out) {
  const int bytes = ws_types[x->type].bytes;
  if (ws_is_triangular(x->structure)) {
    memset(out, 0, (size_t)(n * bytes));
    return;
  }
  gather_bytes(n, at(x, r, p, !x->k_contiguous), (x->k_contiguous ? 1 : x->ld) * bytes, out, bytes);
  if (x->structure == WS_HERMITIAN) conjugate(x->type, n, 1, out, n);
}

/* Places p .. p + k - 1 of lines r .. r + n - 1, r <= p, p + k <= r + n: each place has lines on both
 * sides of the diagonal. */
static void pack_diagonal(const view *x, int64_t r, int64_t n, int64_t p, int64_t k, char *out, int64_t width) {
  const int bytes = ws_types[x->type].bytes;
  const int64_t step = (x->k_contiguous ? x->ld : 1) * bytes;
  for (int64_t q = p; q < p + k; q++, out += width * bytes) {
    const int64_t before = q - r, behind = n - before - 1; /* lines r .. q - 1, q + 1 .. r + n - 1 */
    char *diagonal = out + before * bytes;
    if (x->stored_before) { /* q <= line */
      mirror(x, r, before, q, out);
      gather_bytes(behind, at(x, q + 1, q, x->k_contiguous), step, diagonal + bytes, bytes);
    } else {
      gather_bytes(before, at(x, r, q, x->k_contiguous), step, out, bytes);
      mirror(x, q + 1, behind, q, diagonal + bytes);
    }
    if (x->structure == WS_UNIT_TRIANGULAR)
      set_one(x->type, diagonal);
    else if (x->structure == WS_HERMITIAN)
      copy_real(x->type, at(x, q, q, true), diagonal);
    else
      memcpy(diagonal, at(x, q, q, true), (size_t)bytes);
  }
}

static void pack_panel(const view *x, int64_t r, int64_t n, int64_t p, int64_t k, char *out, int64_t width) {
  const int64_t line_bytes = width * ws_types[x->type].bytes, end = p + k;
  const int64_t first = ws_min(ws_max(r, p), end), last = ws_min(ws_max(r + n, p), end);
  const bool has_zeros = ws_is_triangular(x->structure);
  if (x->stored_before || !has_zeros) pack_off_diagonal(x, r, n, p, first - p, x->stored_before, out, width);
  pack_diagonal(x, r, n, first, last - first, out + (first - p) * line_bytes, width);
  if (!x->stored_before || !has_zeros)
    pack_off_diagonal(x, r, n, last, end - last, !x->stored_before, out + (last - p) * line_bytes, width);
}

void ws_pack_operand(const ws_matrix *matrix, const ws_part *part, ws_pack_fn *pack, char *out, int64_t width) {
  const view x = view_of(matrix, part, pack);
  const int64_t r = part->first, n = part->n, p = part->k_first, k = part->k_count;
  if (x.structure == WS_GENERAL) {
    pack(n, k, at(&x, r, p, x.k_contiguous), x.ld, x.k_contiguous, out, width);
    return;
  }
  const bool is_before = p + k <= r, is_behind = p >= r + n; /* the diagonal, as a whole */
  const bool is_stored = is_before == x.stored_before;
  if ((is_before || is_behind) && (is_stored || x.structure == WS_SYMMETRIC)) {
    pack_off_diagonal(&x, r, n, p, k, is_stored, out, width);
    return;
  }
  const int64_t bytes = ws_types[x.type].bytes;
  for (int64_t i = 0; i < n; i += width) pack_panel(&x, r + i, ws_min(width, n - i), p, k, out + i * k * bytes, width);
}
