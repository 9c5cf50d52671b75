/* pack_operand.c - packing of structured operands: what lies wholly in the stored triangle is
 * packed as it lies, what lies wholly in the other one from its mirror image, by the packing
 * functions of the ISA; where a panel crosses the diagonal, element by element.
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

/* ---- one panel ------------------------------------------------------------------------------- */

/* Lines r .. r + n - 1 at places p .. p + k - 1, all of them in one triangle: stored, or not. */
static void pack_off_diagonal(const view *x, int64_t r, int64_t n, int64_t p, int64_t k, bool is_stored, char *out,
                              int64_t width) {
  const bool k_contiguous = is_stored == x->k_contiguous;
  if (k <= 0) return;
  x->pack(n, k, at(x, r, p, k_contiguous), x->ld, k_contiguous, out, width);
  if (!is_stored && x->structure == WS_HERMITIAN) conjugate(x->type, n, k, out, width);
}

/* n elements, `step` bytes apart where they come from. */
static inline __attribute__((always_inline)) void gather(char *out, const char *from, int64_t n, int64_t step,
                                                         const int64_t bytes) {
  if (step == bytes)
    memcpy(out, from, (size_t)(n * bytes));
  else
    for (int64_t i = 0; i < n; i++) memcpy(out + i * bytes, from + i * step, (size_t)bytes);
}

/* Places p .. p + k - 1 of lines r .. r + n - 1, r <= p, p + k <= r + n, element by element. */
static inline __attribute__((always_inline)) void pack_elements(const view *x, int64_t r, int64_t n, int64_t p, int64_t k,
                                                                char *out, int64_t width, const int64_t bytes) {
  const char *first = at(x, r, p, true), *mirrored_first = at(x, r, p, false);
  const bool has_zeros = ws_is_triangular(x->structure);
  if (!x->k_contiguous) {
    const char *swap = first;
    first = mirrored_first, mirrored_first = swap;
  }
  /* from line to line, and from place to place; of the mirror image the other way round */
  const int64_t line = (x->k_contiguous ? x->ld : 1) * bytes, place = (x->k_contiguous ? 1 : x->ld) * bytes;
  for (int64_t q = 0; q < k; q++, out += width * bytes, first += place, mirrored_first += line) {
    const int64_t on = p + q - r; /* the line on the diagonal */
    const int64_t stored = x->stored_before ? on : 0, n_stored = x->stored_before ? n - on : on + 1;
    const int64_t other = x->stored_before ? 0 : on + 1, n_other = n - n_stored;
    gather(out + stored * bytes, first + stored * line, n_stored, line, bytes);
    if (has_zeros)
      memset(out + other * bytes, 0, (size_t)(n_other * bytes));
    else
      gather(out + other * bytes, mirrored_first + other * place, n_other, place, bytes);
    if (x->structure == WS_HERMITIAN) conjugate(x->type, n_other, 1, out + other * bytes, n_other);
  }
}

/* The diagonal of an operand that has it otherwise than in memory, at the same places. */
static void mend_diagonal(const view *x, int64_t r, int64_t p, int64_t k, char *out, int64_t width) {
  const int64_t bytes = ws_types[x->type].bytes;
  if (x->structure == WS_UNIT_TRIANGULAR)
    for (int64_t q = p; q < p + k; q++) set_one(x->type, out + ((q - p) * width + q - r) * bytes);
  if (x->structure == WS_HERMITIAN)
    for (int64_t q = p; q < p + k; q++) ws_clear_im(x->type, out + ((q - p) * width + q - r) * bytes);
}

static void pack_diagonal(const view *x, int64_t r, int64_t n, int64_t p, int64_t k, char *out, int64_t width) {
  switch (ws_types[x->type].bytes) {
  case 4:
    pack_elements(x, r, n, p, k, out, width, 4);
    break;
  case 8:
    pack_elements(x, r, n, p, k, out, width, 8);
    break;
  default:
    pack_elements(x, r, n, p, k, out, width, 16);
  }
  mend_diagonal(x, r, p, k, out, width);
}

/* A panel of lines r .. r + n - 1: the stretches before, on and behind the diagonal. */
static void pack_panel(const view *x, int64_t r, int64_t n, int64_t p, int64_t k, char *out, int64_t width) {
  const int64_t bytes = ws_types[x->type].bytes, end = p + k;
  const int64_t first = ws_min(ws_max(r, p), end), last = ws_min(ws_max(r + n, p), end);
  pack_off_diagonal(x, r, n, p, first - p, x->stored_before, out, width);
  if (last > first) pack_diagonal(x, r, n, first, last - first, out + (first - p) * width * bytes, width);
  pack_off_diagonal(x, r, n, last, end - last, !x->stored_before, out + (last - p) * width * bytes, width);
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
  for (int64_t i = 0; i < n; i += width) {
    const int64_t lines = ws_min(width, n - i);
    ws_k_range places = {0, k};
    if (ws_is_triangular(x.structure)) places = ws_panel_k(matrix, part->is_b, r + i, lines, p, k);
    if (places.begin < places.end)
      pack_panel(&x, r + i, lines, p + places.begin, places.end - places.begin, out + (i * k + places.begin * width) * bytes,
                 width);
  }
}
