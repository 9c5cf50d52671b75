/* trsm_block.c - one block of unknowns: packing, substitution, and what the others lose by it.
 * Leaves the order of blocks, memory and threads to trsm.c. Contract: trsm.h.
 *
 * Right sides lie in panels of 1 or 2 vectors, so that a micro-kernel takes a panel as its A, rows
 * of T as its B, and the unknowns that it changes, in the same panel, as its C:
 *
 *      T     k0   k1            panel of right sides (lanes ->)
 *         .                        unknown 0
 *         xx .                     ..
 *      k0 xx D                     k0    solved: A
 *         xx DD .                  ..
 *      k1 xx LLL .                 k1    C = C - L A
 */
#include <math.h>
#include <string.h>

#include "core/tile.h"
#include "cpu/trsm.h"

static void set_scales(ws_solve *v, const ws_system *s) {
  ws_scale *scales[2] = {&v->first, &v->later};
  const bool is_single = s->a.type == WSGEMM_F32 || s->a.type == WSGEMM_C32;
  for (int later = 0; later < 2; later++) {
    ws_scale *scale = scales[later];
    if (is_single) {
      scale->alpha.s[0] = -1, scale->alpha.s[1] = 0;
      scale->beta.s[0] = later ? 1 : s->scale.alpha.s[0], scale->beta.s[1] = later ? 0 : s->scale.alpha.s[1];
    } else {
      scale->alpha.d[0] = -1, scale->alpha.d[1] = 0;
      scale->beta.d[0] = later ? 1 : s->scale.alpha.d[0], scale->beta.d[1] = later ? 0 : s->scale.alpha.d[1];
    }
    scale->alpha_zero = scale->beta_zero = scale->alpha_one = scale->conj_a = false;
    scale->beta_one = later || s->scale.alpha_one;
    scale->alpha_real = true;
    scale->beta_real = later || s->scale.alpha_real;
    scale->conj_b = s->a.conj;
  }
}

/* Member by member: a small system would wait for whole copies of what has just been stored. */
void ws_solve_begin(ws_solve *v, const ws_system *s, const ws_cpu_row *row) {
  v->ukr = row->ukr;
  v->type = s->a.type, v->bytes = ws_types[s->a.type].bytes;
  v->m = s->is_right ? s->n : s->m, v->n = s->is_right ? s->m : s->n;
  v->batch_count = s->batch_count;
  v->t = &s->a, v->b = &s->b, v->x = &s->x;
  v->t_rows_contiguous = s->a.trans == s->is_right;
  v->lanes_contiguous = s->is_right;
  v->is_unit = s->a.structure == WS_UNIT_TRIANGULAR;
  v->direction = (ws_triangle_of(&s->a) == WS_LOWER) != s->is_right ? WS_SOLVE_DOWN : WS_SOLVE_UP;
  const int64_t nr = v->ukr->nr;
  v->kb = v->m, v->n_blocks = 1;
  if (v->m > row->kc - nr) { /* else no division is wanted here */
    v->kb = ws_ceil_div(ws_ceil_div(v->m, ws_ceil_div(v->m, row->kc / nr * nr)), nr) * nr;
    v->n_blocks = ws_ceil_div(v->m, v->kb);
  }
  set_scales(v, s);
}

ws_block ws_block_at(const ws_solve *v, int64_t batch, int64_t s) {
  const bool is_down = v->direction == WS_SOLVE_DOWN;
  ws_block b = {.batch = batch, .is_first = s == 0};
  b.k0 = (is_down ? s : v->n_blocks - 1 - s) * v->kb;
  b.k1 = ws_min(v->m, b.k0 + v->kb);
  b.l0 = is_down ? b.k1 : 0, b.l1 = is_down ? v->m : b.k0;
  return b;
}

/* ---- places ---------------------------------------------------------------------------------- */

/* A packed diagonal: nr x nr elements, two factors for each unknown, whether there are any. */
enum { LINE = 64 };
int64_t ws_diagonal_bytes(const ws_solve *v) {
  const int64_t nr = v->ukr->nr, real_bytes = v->bytes / ws_types[v->type].n_real;
  return ws_ceil_div(nr * nr * v->bytes + (2 * nr + 1) * real_bytes, LINE) * LINE;
}

/* Columns of T that the groups before one have, packed. */
static int64_t columns_before(const ws_solve *v, const ws_block *b, int64_t group) {
  const int64_t nr = v->ukr->nr;
  return v->direction == WS_SOLVE_DOWN ? nr * (group * (group - 1) / 2)
                                       : group * (b->k1 - b->k0) - nr * (group * (group + 1) / 2);
}

int64_t ws_diagonal_groups(const ws_solve *v, const ws_block *b) { return ws_ceil_div(b->k1 - b->k0, v->ukr->nr); }
int64_t ws_left_groups(const ws_solve *v, const ws_block *b) { return ws_ceil_div(b->l1 - b->l0, v->ukr->nr); }

ws_group ws_group_at(const ws_solve *v, const ws_block *b, int64_t group_idx) {
  const int64_t nr = v->ukr->nr, n_groups = ws_diagonal_groups(v, b);
  ws_group g = {.g0 = b->k0 + group_idx * nr};
  g.w = ws_min(nr, b->k1 - g.g0);
  g.p0 = v->direction == WS_SOLVE_DOWN ? b->k0 : g.g0 + g.w;
  g.k = v->direction == WS_SOLVE_DOWN ? g.g0 - b->k0 : b->k1 - g.p0;
  g.diagonal_offset = group_idx * ws_diagonal_bytes(v);
  g.panel_offset = n_groups * ws_diagonal_bytes(v) + columns_before(v, b, group_idx) * nr * v->bytes;
  return g;
}

int64_t ws_packed_diagonal_bytes(const ws_solve *v, const ws_block *b) {
  const int64_t nr = v->ukr->nr, n_groups = ws_diagonal_groups(v, b);
  /* going up, the last group has no columns, and those before it are whole */
  const int64_t columns = columns_before(v, b, v->direction == WS_SOLVE_DOWN ? n_groups : n_groups - 1);
  return ws_ceil_div(n_groups * ws_diagonal_bytes(v) + columns * nr * v->bytes, LINE) * LINE;
}

int64_t ws_packed_left_bytes(const ws_solve *v, const ws_block *b, int64_t n_groups) {
  return ws_ceil_div(n_groups * v->ukr->nr * (b->k1 - b->k0) * v->bytes, LINE) * LINE;
}

/* ---- packing T ------------------------------------------------------------------------------- */

const char *ws_t_at(const ws_solve *v, int64_t batch, int64_t i, int64_t p) {
  return (const char *)v->t->data +
         (batch * v->t->stride + (v->t_rows_contiguous ? i + p * v->t->ld : p + i * v->t->ld)) * v->bytes;
}

/* 1 / d, without overflow or underflow: 2^-e of it is left out if d is far from 1. Value: e. */
static int reciprocal(const double d[2], bool is_complex, bool is_single, double r[2]) {
  const double most = is_single ? 0x1p100 : 0x1p500, least = is_single ? 0x1p-100 : 0x1p-500;
  const double largest = fabs(d[0]) > fabs(d[1]) ? fabs(d[0]) : fabs(d[1]);
  double re = d[0], im = d[1];
  int e = 0;
  if (!(largest >= least && largest <= most) && isfinite(largest)) {
    (void)frexp(largest, &e);
    re = ldexp(re, -e), im = ldexp(im, -e);
  }
  const double norm = re * re + im * im;
  r[0] = is_complex ? re / norm : 1 / re;
  r[1] = is_complex ? -im / norm : 0;
  return e;
}

/* Elements of R, `unit` of them a number. step: to the next diagonal element of T, in reals; the
 * inverse of each goes to out, which is out_step from the one before, two factors to `factors`.
 * Value: whether they are needed. */
#define INVERT_DIAGONAL(name, R, unit)                                                                     \
  static bool name(const R *t, int64_t step, bool conj, int64_t w, R *out, int64_t out_step, R *factors) { \
    bool is_scaled = false;                                                                                \
    for (int64_t j = 0; j < w; j++, t += step, out += out_step) {                                          \
      const double d[2] = {(double)t[0], (unit) == 2 ? (double)(conj ? -t[(unit)-1] : t[(unit)-1]) : 0};   \
      double r[2];                                                                                         \
      const int e = reciprocal(d, (unit) == 2, sizeof(R) == sizeof(float), r);                             \
      out[0] = (R)r[0];                                                                                    \
      if ((unit) == 2) out[(unit)-1] = (R)r[1];                                                            \
      factors[2 * j] = e == 0 ? 1 : (R)ldexp(1, -(e / 2));                                                 \
      factors[2 * j + 1] = e == 0 ? 1 : (R)ldexp(1, -(e - e / 2));                                         \
      is_scaled |= e != 0;                                                                                 \
    }                                                                                                      \
    return is_scaled;                                                                                      \
  }
INVERT_DIAGONAL(invert_diagonal_s, float, 1)
INVERT_DIAGONAL(invert_diagonal_d, double, 1)
INVERT_DIAGONAL(invert_diagonal_c, float, 2)
INVERT_DIAGONAL(invert_diagonal_z, double, 2)

static bool invert_diagonal(const ws_solve *v, const void *t, int64_t w, void *out, int64_t out_step, void *factors) {
  const int64_t unit = ws_types[v->type].n_real, step = (v->t->ld + 1) * unit;
  switch (v->type) {
  case WSGEMM_F32:
    return invert_diagonal_s(t, step, v->t->conj, w, out, out_step * unit, factors);
  case WSGEMM_F64:
    return invert_diagonal_d(t, step, v->t->conj, w, out, out_step * unit, factors);
  case WSGEMM_C32:
    return invert_diagonal_c(t, step, v->t->conj, w, out, out_step * unit, factors);
  default:
    return invert_diagonal_z(t, step, v->t->conj, w, out, out_step * unit, factors);
  }
}

/* The negated triangle beside the diagonal. step: from a row of T to the next, and from a column, in
 * reals. */
#define PACK_TRIANGLE(name, R, unit)                                                                            \
  static void name(const ws_solve *v, const R *t, int64_t row_step, int64_t column_step, int64_t w, R *out) {   \
    const int64_t nr = v->ukr->nr;                                                                              \
    const R sign = v->t->conj ? 1 : -1; /* of the imaginary parts */                                            \
    for (int64_t j = 0; j < w; j++) {                                                                           \
      const R *column = t + j * column_step;                                                                    \
      R *out_column = out + j * nr * (unit);                                                                    \
      const int64_t l0 = v->direction == WS_SOLVE_DOWN ? j + 1 : 0, l1 = v->direction == WS_SOLVE_DOWN ? w : j; \
      for (int64_t l = l0; l < l1; l++) {                                                                       \
        out_column[l * (unit)] = -column[l * row_step];                                                         \
        if ((unit) == 2) out_column[l * (unit) + (unit)-1] = sign * column[l * row_step + (unit)-1];            \
      }                                                                                                         \
    }                                                                                                           \
  }
PACK_TRIANGLE(pack_triangle_s, float, 1)
PACK_TRIANGLE(pack_triangle_d, double, 1)
PACK_TRIANGLE(pack_triangle_c, float, 2)
PACK_TRIANGLE(pack_triangle_z, double, 2)

void ws_pack_diagonal(const ws_solve *v, const ws_block *b, const ws_group *g, char *out) {
  const int64_t nr = v->ukr->nr, unit = ws_types[v->type].n_real, real_bytes = v->bytes / unit;
  const int64_t row_step = unit * (v->t_rows_contiguous ? 1 : v->t->ld),
                column_step = unit * (v->t_rows_contiguous ? v->t->ld : 1);
  const void *t = ws_t_at(v, b->batch, g->g0, g->g0);
  switch (v->type) {
  case WSGEMM_F32:
    pack_triangle_s(v, t, row_step, column_step, g->w, (void *)out);
    break;
  case WSGEMM_F64:
    pack_triangle_d(v, t, row_step, column_step, g->w, (void *)out);
    break;
  case WSGEMM_C32:
    pack_triangle_c(v, t, row_step, column_step, g->w, (void *)out);
    break;
  default:
    pack_triangle_z(v, t, row_step, column_step, g->w, (void *)out);
    break;
  }
  char *factors = out + nr * nr * v->bytes;
  factors[2 * nr * real_bytes] = !v->is_unit && invert_diagonal(v, t, g->w, out, nr + 1, factors);
}

bool ws_diagonal_is_scaled(const ws_solve *v, const char *diagonal) {
  const int64_t nr = v->ukr->nr, real_bytes = v->bytes / ws_types[v->type].n_real;
  return !v->is_unit && diagonal[nr * nr * v->bytes + 2 * nr * real_bytes];
}

void ws_pack_diagonal_group(const ws_solve *v, const ws_block *b, int64_t group_idx, char *packed) {
  const ws_group g = ws_group_at(v, b, group_idx);
  ws_pack_diagonal(v, b, &g, packed + g.diagonal_offset);
  if (g.k > 0)
    v->ukr->pack(g.w, g.k, ws_t_at(v, b->batch, g.g0, g.p0), v->t->ld, !v->t_rows_contiguous, packed + g.panel_offset,
                 v->ukr->nr);
}

void ws_pack_left_groups(const ws_solve *v, const ws_block *b, int64_t group_idx, int64_t n_groups, char *packed) {
  const int64_t nr = v->ukr->nr, i = b->l0 + group_idx * nr, k = b->k1 - b->k0;
  v->ukr->pack(ws_min(n_groups * nr, b->l1 - i), k, ws_t_at(v, b->batch, i, b->k0), v->t->ld, !v->t_rows_contiguous, packed, nr);
}

/* ---- right sides ----------------------------------------------------------------------------- */

/* Lanes of the panel of the next right sides, when n are left. */
static int64_t panel_width(const ws_solve *v, int64_t n) { return n > v->ukr->vl ? v->ukr->mr : v->ukr->vl; }

int64_t ws_panel_bytes(const ws_solve *v, int64_t n) { return ws_ceil_div(n, v->ukr->mr) * v->ukr->mr * v->m * v->bytes; }

static int64_t offset_of(const ws_solve *v, int64_t batch, int64_t stride, int64_t ld, int64_t r, int64_t p) {
  return (batch * stride + (v->lanes_contiguous ? r + p * ld : p + r * ld)) * v->bytes;
}

/* Inlined with a constant size, so that the copies become moves. */
static inline __attribute__((always_inline)) void repeat(char *panel, int64_t k, int64_t n_lanes, int64_t width,
                                                         const int64_t bytes) {
  for (int64_t p = 0; p < k; p++, panel += width * bytes)
    for (int64_t lane = n_lanes; lane < width; lane++) memcpy(panel + lane * bytes, panel, (size_t)bytes);
}

/* The same from one lane, where it is: each element to a whole line of the panel. */
static inline __attribute__((always_inline)) void spread(const char *lane, int64_t step, int64_t k, char *panel, int64_t line,
                                                         const int64_t bytes) {
  enum { PART = 16 };
  for (int64_t p = 0; p < k; p++, panel += line) {
    char part[PART];
    for (int64_t i = 0; i < PART; i += bytes) memcpy(part + i, lane + p * step, (size_t)bytes);
    for (int64_t i = 0; i < line; i += PART) memcpy(panel + i, part, PART);
  }
}

static inline __attribute__((always_inline)) void gather(const char *panel, int64_t line, int64_t k, char *lane, int64_t step,
                                                         const int64_t bytes) {
  for (int64_t p = 0; p < k; p++) memcpy(lane + p * step, panel + p * line, (size_t)bytes);
}

static void spread_lane(const ws_solve *v, const char *lane, int64_t ld, int64_t k, char *panel, int64_t width) {
  const int64_t step = (v->lanes_contiguous ? ld : 1) * v->bytes, line = width * v->bytes;
  if (v->bytes == 4)
    spread(lane, step, k, panel, line, 4);
  else if (v->bytes == 8)
    spread(lane, step, k, panel, line, 8);
  else
    spread(lane, step, k, panel, line, 16);
}

static void gather_lane(const ws_solve *v, const char *panel, int64_t width, int64_t k, char *lane) {
  const int64_t step = (v->lanes_contiguous ? v->x->ld : 1) * v->bytes, line = width * v->bytes;
  if (v->bytes == 4)
    gather(panel, line, k, lane, step, 4);
  else if (v->bytes == 8)
    gather(panel, line, k, lane, step, 8);
  else
    gather(panel, line, k, lane, step, 16);
}

static void pack_lanes(const ws_solve *v, const ws_matrix *from, int64_t batch, int64_t r, int64_t n, int64_t p, int64_t k,
                       char *panels, int64_t width) {
  const char *b = (const char *)from->data + offset_of(v, batch, from->stride, from->ld, r, p);
  v->ukr->pack(n, k, b, from->ld, !v->lanes_contiguous, panels, width);
}

void ws_pack_panel(const ws_solve *v, const ws_matrix *from, int64_t batch, const ws_lanes *lanes, int64_t p, int64_t k,
                   char *panel) {
  if (lanes->n == 1) {
    spread_lane(v, (const char *)from->data + offset_of(v, batch, from->stride, from->ld, lanes->r, p), from->ld, k, panel,
                lanes->width);
    return;
  }
  pack_lanes(v, from, batch, lanes->r, lanes->n, p, k, panel, lanes->width);
  if (lanes->n == lanes->width) return;
  /* lanes without a right side raise no flag of their own */
  if (v->bytes == 4)
    repeat(panel, k, lanes->n, lanes->width, 4);
  else if (v->bytes == 8)
    repeat(panel, k, lanes->n, lanes->width, 8);
  else
    repeat(panel, k, lanes->n, lanes->width, 16);
}

void ws_unpack_panel(const ws_solve *v, int64_t batch, const ws_lanes *lanes, int64_t p, int64_t k, const char *panel) {
  char *x = (char *)v->x->data + offset_of(v, batch, v->x->stride, v->x->ld, lanes->r, p);
  if (lanes->n == 1) {
    gather_lane(v, panel, lanes->width, k, x);
    return;
  }
  if (!v->lanes_contiguous) {
    v->ukr->transpose(lanes->n, k, panel, lanes->width, x, v->x->ld);
    return;
  }
  for (int64_t i = 0; i < k; i++)
    memcpy(x + i * v->x->ld * v->bytes, panel + i * lanes->width * v->bytes, (size_t)(lanes->n * v->bytes));
}

/* How many of n right sides fill panels. */
static int64_t n_whole(const ws_solve *v, int64_t n) { return n / v->ukr->mr * v->ukr->mr; }

/* Whole panels at once: where lanes are contiguous, in long runs of them. */
void ws_pack_right_sides(const ws_solve *v, int64_t batch, int64_t r, int64_t n, char *y) {
  const int64_t whole = n_whole(v, n);
  const ws_lanes rest = {r + whole, n - whole, panel_width(v, n - whole)};
  if (whole > 0) pack_lanes(v, v->b, batch, r, whole, 0, v->m, y, v->ukr->mr);
  if (rest.n > 0) ws_pack_panel(v, v->b, batch, &rest, 0, v->m, y + whole * v->m * v->bytes);
}

static void unpack_whole(const ws_solve *v, const ws_block *b, int64_t r, int64_t n, const char *y) {
  const int64_t mr = v->ukr->mr, bytes = mr * v->bytes;
  for (int64_t p = b->k0; p < b->k1; p++) {
    char *x = (char *)v->x->data + offset_of(v, b->batch, v->x->stride, v->x->ld, r, p);
    for (int64_t done = 0; done < n; done += mr)
      memcpy(x + done * v->bytes, y + done * v->m * v->bytes + p * bytes, (size_t)bytes);
  }
}

void ws_unpack_unknowns(const ws_solve *v, const ws_block *b, int64_t r, int64_t n, const char *y) {
  const int64_t mr = v->ukr->mr, whole = v->lanes_contiguous ? n_whole(v, n) : 0;
  if (whole > 0) unpack_whole(v, b, r, whole, y);
  for (int64_t done = whole; done < n; done += mr) {
    const ws_lanes lanes = {r + done, ws_min(mr, n - done), panel_width(v, n - done)};
    ws_unpack_panel(v, b->batch, &lanes, b->k0, b->k1 - b->k0, y + (done * v->m + b->k0 * lanes.width) * v->bytes);
  }
}

/* ---- solving --------------------------------------------------------------------------------- */

static void solve_group(const ws_solve *v, const ws_block *b, const ws_group *g, const char *packed, char *panel, int64_t width) {
  const ws_ukr_set *ukr = v->ukr;
  const int64_t nr = ukr->nr, vectors = width == ukr->mr ? 2 : 1;
  const ws_scale *scale = b->is_first ? &v->first : &v->later;
  const char *t = packed + g->panel_offset, *diagonal = packed + g->diagonal_offset;
  const bool is_scaled = ws_diagonal_is_scaled(v, diagonal);
  const char *y = panel + g->p0 * width * v->bytes;
  char *x = panel + g->g0 * width * v->bytes;
  if (g->w == nr && !is_scaled) {
    ukr->solve[v->direction][vectors - 1](g->k, y, t, diagonal, v->is_unit, x, scale);
    return;
  }
  ukr->tile[WS_B_ROWS][vectors - 1][g->w - 1](g->k, y, width, t, nr, x, width, scale, width);
  ukr->substitute[vectors - 1](g->w, diagonal, v->is_unit, is_scaled, v->direction, x);
}

void ws_solve_diagonal(const ws_solve *v, const ws_block *b, const char *packed, char *y, int64_t n) {
  const int64_t n_groups = ws_diagonal_groups(v, b);
  for (int64_t step = 0; step < n_groups; step++) {
    const ws_group g = ws_group_at(v, b, v->direction == WS_SOLVE_DOWN ? step : n_groups - 1 - step);
    for (int64_t width, r = 0; r < n; r += width) {
      width = panel_width(v, n - r);
      solve_group(v, b, &g, packed, y + r * v->m * v->bytes, width);
    }
  }
}

void ws_update_left(const ws_solve *v, const ws_block *b, const char *packed, int64_t group_idx, int64_t n_groups, char *y,
                    int64_t n) {
  const ws_ukr_set *ukr = v->ukr;
  const int64_t nr = ukr->nr, k = b->k1 - b->k0, t_bytes = nr * k * v->bytes, asked_bytes = k / 4 * LINE;
  const ws_scale *scale = b->is_first ? &v->first : &v->later;
  const char *t = packed;
  for (int64_t g = 0; g < n_groups; g++, t += t_bytes) {
    const int64_t i = b->l0 + (group_idx + g) * nr, w = ws_min(nr, b->l1 - i);
    int64_t ahead = 0; /* bytes of the next group's rows asked for so far */
    for (int64_t width, r = 0; r < n; r += width) {
      width = panel_width(v, n - r);
      char *panel = y + r * v->m * v->bytes, *x = panel + i * width * v->bytes;
      const char *solved = panel + b->k0 * width * v->bytes;
      if (w == nr && width == ukr->mr) {
        const bool more = g + 1 < n_groups && ahead < t_bytes;
        ukr->full(k, solved, t, x, width, scale, more ? t + t_bytes + ahead : t);
        ahead += asked_bytes;
      } else {
        ukr->tile[WS_B_ROWS][width > ukr->vl][w - 1](k, solved, width, t, nr, x, width, scale, width);
      }
    }
  }
}

/* ---- a small triangle ------------------------------------------------------------------------ */

enum { FEW = 2 }; /* right sides that are quicker one by one than by way of a panel */

/* More right sides pay for packing T. */
bool ws_fits_place(const ws_solve *v, int64_t n) { return v->m <= v->ukr->nr && n <= v->ukr->mr; }

/* A vector of right sides: where it is, or, if its lanes lie apart, by way of a panel. */
static void substitute_lanes(const ws_solve *v, const ws_small_triangle *s, int64_t batch, int64_t r) {
  _Alignas(LINE) char panel[WS_NR_MAX * LINE];
  const ws_ukr_set *ukr = v->ukr;
  const char *b = (const char *)v->b->data + offset_of(v, batch, v->b->stride, v->b->ld, r, 0);
  char *x = (char *)v->x->data + offset_of(v, batch, v->x->stride, v->x->ld, r, 0);
  if (v->lanes_contiguous) {
    ukr->substitute_small(s, b, v->b->ld, x, v->x->ld);
  } else if (s->n_lanes == 1) {
    ukr->substitute_small(s, b, 1, x, 1);
  } else {
    ukr->pack(s->n_lanes, v->m, b, v->b->ld, true, panel, ukr->vl);
    ukr->substitute_small(s, panel, ukr->vl, panel, ukr->vl);
    ukr->transpose(s->n_lanes, v->m, panel, ukr->vl, x, v->x->ld);
  }
}

bool ws_small_triangle_at(const ws_solve *v, int64_t batch, int64_t i, int64_t n, ws_small_triangle *s, double *inverse) {
  double factors[2 * WS_NR_MAX];
  s->t = ws_t_at(v, batch, i, i), s->inverse = inverse, s->n = n;
  s->row_step = v->t_rows_contiguous ? 1 : v->t->ld, s->column_step = v->t_rows_contiguous ? v->t->ld : 1;
  s->is_unit = v->is_unit, s->conj = v->t->conj, s->direction = v->direction;
  return v->is_unit || !invert_diagonal(v, s->t, n, inverse, 1, factors);
}

/* Elements of R, column by column: the triangle of T that is multiplied with, and the inverse of its diagonal. */
#define ARE_FINITE(name, R)                                                                          \
  static bool name(const ws_small_triangle *s, int64_t unit) {                                       \
    const R *const inverse = s->inverse, *column = s->t;                                             \
    const bool is_down = s->direction == WS_SOLVE_DOWN;                                              \
    bool all = true;                                                                                 \
    for (int64_t e = 0; e < s->n * unit && !s->is_unit; e++) all &= isfinite(inverse[e]) != 0;       \
    for (int64_t j = 0; j < s->n; j++, column += s->column_step * unit)                              \
      for (int64_t i = is_down ? j + 1 : 0, end = is_down ? s->n : j; i < end; i++)                  \
        for (int64_t u = 0; u < unit; u++) all &= isfinite(column[i * s->row_step * unit + u]) != 0; \
    return all;                                                                                      \
  }
ARE_FINITE(are_finite_s, float)
ARE_FINITE(are_finite_d, double)

/* Lanes without a right side are zeros, and 0 times Inf would raise a flag that no right side raises. */
static bool are_finite(const ws_solve *v, const ws_small_triangle *s) {
  const int64_t unit = ws_types[v->type].n_real;
  return v->bytes / unit == 4 ? are_finite_s(s, unit) : are_finite_d(s, unit);
}

bool ws_solve_in_place(const ws_solve *v, int64_t batch, int64_t r, int64_t n) {
  double inverse[2 * WS_NR_MAX];
  ws_small_triangle s;
  s.scale = &v->first;
  if (!ws_fits_place(v, n) || !ws_small_triangle_at(v, batch, 0, v->m, &s, inverse)) return false;
  if (n % v->ukr->vl != 0 && !are_finite(v, &s)) return false;
  const int64_t most = v->lanes_contiguous || n > FEW ? v->ukr->vl : 1;
  for (int64_t done = 0; done < n; done += s.n_lanes) {
    s.n_lanes = ws_min(most, n - done);
    substitute_lanes(v, &s, batch, r + done);
  }
  return true;
}
