/* slices.c - see slices.h. */
#include "cuda/host/slices.h"

#include <math.h>

#include "cuda/host/problem_args.h"
#include "cuda/host/split.h"
#include "cuda/rows/rows.h"

enum { ALIGN = 256, PITCH = 64, K_STEP = 64 };

static double aligned(double bytes) { return ceil(bytes / ALIGN) * ALIGN; }

int ws_n_slices(const ws_call *call, const ws_problem *p) {
  const wsgemm_math math = ws_math_of(call, p);
  if (p->a.type != WSGEMM_F32 && p->a.type != WSGEMM_C32) return 0;
  return math == WSGEMM_MATH_DEFAULT ? 2 : math == WSGEMM_MATH_TF32 ? 1 : 0;
}

bool ws_slices_fit(const ws_problem *p) { return p->k >= WS_SLICED_LEAST_K && ws_tma_takes(p); }

/* The packed form of A, or B, if it is of so many slices. */
static const wsgemm_packed *packed_of(const ws_problem *p, bool is_a, int n_slices) {
  const wsgemm_packed *packed = !p->has_packed ? NULL : is_a ? p->packed.a : p->packed.b;
  return packed && packed->n_slices == n_slices ? packed : NULL;
}

bool ws_is_packed(const ws_problem *p, bool is_a, int n_slices) { return packed_of(p, is_a, n_slices) != NULL; }

/* ---- memory of slices ------------------------------------------------------------------------ */

/* An operand as floats in memory, and as the units are given it: a slice has the latter's lines. */
typedef struct ws_operand_forms {
  ws_slice_form form;
  bool conj;
  ws_strided floats, given;
  ws_structure structure;
  bool stored_upper;
} ws_operand_forms;

static ws_operand_forms forms_of(const ws_problem *p, bool is_a) {
  const int unit = ws_types[p->a.type].n_real;
  const ws_matrix *of = is_a ? &p->a : &p->b;
  ws_operand_forms x = {.floats = is_a ? ws_strided_a(p) : ws_strided_b(p),
                        .structure = (ws_structure)of->structure,
                        .stored_upper = of->stored_upper};
  x.floats.length *= unit, x.floats.ld *= unit, x.floats.stride *= unit;
  x.given = x.floats;
  if (unit == 1) return x;
  x.form = is_a ? WS_SLICE_COMPLEX_A : WS_SLICE_COMPLEX_B, x.conj = of->conj;
  if (is_a || !x.given.along_k) x.given.n_lines *= 2;
  if (!is_a && !x.given.along_k) x.given.length /= 2;
  return x;
}

/* Either way x means m or n. */
static int64_t n_x_of(const ws_strided *x) { return x->along_k ? x->n_lines : x->length; }
static int64_t n_k_of(const ws_strided *x) { return x->along_k ? x->length : x->n_lines; }

/* One operand. Bytes as doubles, which do not overflow. */
typedef struct ws_sliced_sizes {
  int64_t pitch, scales_pitch, groups_pitch, listed_pitch;
  double slices_bytes, maxima_bytes, scales_bytes, groups_bytes, listed_bytes;
  int n_chunks, chunk_k;
} ws_sliced_sizes;

/* With room for n_most slices. No chunk needs more than a larger one: so there is room for as many
 * chunks as any may have. */
static ws_sliced_sizes sizes_of(const ws_operand_forms *x, int n_most) {
  enum { PARTS = 528 }; /* four for each SM of an H200 */
  const ws_strided *const floats = &x->floats, *const given = &x->given;
  const int64_t n_x = n_x_of(floats), k = n_k_of(floats), n_given = n_x_of(given);
  ws_sliced_sizes s;
  const double n_batch = (double)given->n_batch;
  const int64_t groups = given->n_batch * ws_slice_groups(n_x, floats->along_k);
  const int64_t most_chunks = ws_min(WS_SLICE_CHUNKS, ws_ceil_div(k, K_STEP)),
                wanted = ws_min(ws_ceil_div(PARTS, groups), most_chunks);
  const int64_t chunk_k = ws_ceil_div(ws_ceil_div(k, wanted), K_STEP) * K_STEP;
  s.chunk_k = (int)chunk_k, s.n_chunks = (int)ws_ceil_div(k, chunk_k);
  s.pitch = ws_ceil_div(given->length, PITCH) * PITCH, s.scales_pitch = ws_ceil_div(n_given, 4) * 4;
  s.groups_pitch = ws_ceil_div(n_given, WS_SLICE_GROUP), s.listed_pitch = n_given + 1;
  s.slices_bytes = aligned(n_batch * n_most * (double)given->n_lines * (double)s.pitch * sizeof(uint16_t));
  s.maxima_bytes = aligned(n_batch * (double)most_chunks * (double)n_x * sizeof(uint32_t));
  s.scales_bytes = aligned(n_batch * (double)s.scales_pitch * sizeof(int32_t));
  s.groups_bytes = aligned(n_batch * (double)s.groups_pitch * sizeof(int32_t));
  s.listed_bytes = aligned(n_batch * (double)s.listed_pitch * sizeof(int32_t));
  return s;
}

/* Three slices take the place of two; and so may a structured operand's floats, written out. */
static int most_slices(const ws_operand_forms *x, int n_first) { return n_first == 1 && x->structure == WS_GENERAL ? 1 : 3; }

static double all_bytes(const ws_operand_forms *x, int n_most) {
  const ws_sliced_sizes s = sizes_of(x, n_most);
  return ALIGN + s.slices_bytes + s.maxima_bytes + s.scales_bytes + s.groups_bytes + s.listed_bytes;
}

/* As in a product of a matrix and its own transpose (syrk). */
bool ws_slices_are_shared(const ws_problem *p) {
  const ws_strided a = ws_strided_a(p), b = ws_strided_b(p);
  return p->a.type == WSGEMM_F32 && !p->has_packed && a.data == b.data && a.along_k == b.along_k && a.ld == b.ld &&
         a.stride == b.stride && a.length == b.length && a.n_lines == b.n_lines && a.n_batch == b.n_batch;
}

/* Of a packed operand only three slices are made in the call's memory. */
static double bytes_of(const ws_problem *p, bool is_a, int n_first) {
  const ws_operand_forms x = forms_of(p, is_a);
  const int n_most = most_slices(&x, n_first);
  if (!packed_of(p, is_a, n_first)) return all_bytes(&x, n_most);
  return n_most > n_first ? sizes_of(&x, n_most).slices_bytes : 0;
}

double ws_packed_bytes(const ws_problem *p, bool is_a, int n_slices) {
  const ws_operand_forms x = forms_of(p, is_a);
  return all_bytes(&x, n_slices);
}

static double bytes_of_both(const ws_problem *p, int n_slices, double *of_a, double *of_b) {
  *of_a = bytes_of(p, true, n_slices), *of_b = bytes_of(p, false, n_slices);
  return *of_a + *of_b;
}

static double bytes_of_one(const ws_problem *chunk, double *of_a, double *of_b) { return bytes_of_both(chunk, 1, of_a, of_b); }
static double bytes_of_three(const ws_problem *chunk, double *of_a, double *of_b) { return bytes_of_both(chunk, 2, of_a, of_b); }
ws_chunk_bytes *ws_sliced_bytes(int n_slices) { return n_slices == 1 ? bytes_of_one : bytes_of_three; }

/* The state, slices, maxima, scales, groups, list. */
static ws_slice_operand operand_of(const ws_operand_forms *x, int n_most, char *at) {
  const ws_sliced_sizes s = sizes_of(x, n_most);
  const ws_strided *const floats = &x->floats;
  char *const slices = at + ALIGN, *const maxima = slices + (int64_t)s.slices_bytes,
              *const scales = maxima + (int64_t)s.maxima_bytes, *const groups = scales + (int64_t)s.scales_bytes,
              *const listed = groups + (int64_t)s.groups_bytes;
  return (ws_slice_operand){.from = floats->data,
                            .to = (uint16_t *)(void *)slices,
                            .maxima = (uint32_t *)(void *)maxima,
                            .scales = (int32_t *)(void *)scales,
                            .groups = (int32_t *)(void *)groups,
                            .listed = (int32_t *)(void *)listed,
                            .state = (ws_slice_state *)(void *)at,
                            .n_x = n_x_of(floats),
                            .n_k = n_k_of(floats),
                            .n_batch = floats->n_batch,
                            .ld = floats->ld,
                            .stride = floats->stride,
                            .n_lines = x->given.n_lines,
                            .pitch = s.pitch,
                            .maxima_pitch = n_x_of(floats),
                            .scales_pitch = s.scales_pitch,
                            .groups_pitch = s.groups_pitch,
                            .listed_pitch = s.listed_pitch,
                            .n_counted = n_x_of(&x->given) * x->given.n_batch,
                            .form = x->form,
                            .conj = x->conj,
                            .structure = (int32_t)x->structure,
                            .stored_upper = x->stored_upper,
                            .along_k = floats->along_k,
                            .vectors = ws_is_aligned(floats->data, floats->ld, floats->stride, (int)sizeof(float), 16),
                            .n_chunks = s.n_chunks,
                            .chunk_k = s.chunk_k};
}

/* The part of a packed operand that a chunk takes. Its two slices are where they were packed, three
 * are in the call's memory. */
static ws_slice_operand part_of(const wsgemm_packed *packed, const ws_operand_forms *x, const ws_chunk_place *place, bool is_a,
                                int n_slices, char *at) {
  const ws_operand_forms whole = forms_of(&packed->of, packed->is_a);
  ws_slice_operand op = operand_of(&whole, packed->n_slices, packed->memory);
  const ws_strided *const floats = &x->floats;
  const int unit = ws_types[packed->of.a.type].n_real;
  const int64_t first = is_a ? place->m : place->n, product = whole.given.n_batch > 1 ? place->product : 0,
                x_first = floats->along_k ? first : first * unit, given_first = is_a ? first * unit : first;
  op.from = floats->data, op.n_x = n_x_of(floats), op.n_batch = floats->n_batch, op.is_packed = true;
  op.listed = NULL;
  op.maxima += product * op.n_chunks * op.maxima_pitch + x_first;
  op.scales += product * op.scales_pitch + given_first;
  op.groups += product * op.groups_pitch + given_first / WS_SLICE_GROUP;
  op.to += product * packed->n_slices * op.n_lines * op.pitch + given_first * (floats->along_k ? op.pitch : 1);
  if (n_slices > packed->n_slices) {
    op.to = (uint16_t *)(void *)at;
    op.n_lines = x->given.n_lines, op.pitch = sizes_of(x, n_slices).pitch;
  }
  return op;
}

static ws_strided slices_of(const ws_operand_forms *x, const ws_slice_operand *op, int n_slices) {
  ws_strided slices = x->given;
  slices.data = op->to, slices.ld = op->pitch, slices.stride = op->pitch * op->n_lines, slices.n_slices = n_slices;
  return slices;
}

/* A state is counted with the first chunk that it is of: with one of each row of chunks for A, of
 * each column for B; of a shared operand only with the first products, of a packed one, whose state
 * is that of all of it, only with the first chunk. */
static bool is_counted(const ws_chunk_place *place, bool is_a, bool is_shared, bool is_packed) {
  const int64_t own = is_a ? place->m : place->n, other = is_a ? place->n : place->m;
  return other == 0 && (place->product == 0 || !(is_shared || is_packed)) && (own == 0 || !is_packed);
}

/* One operand of a chunk; whether its marks are to be counted. */
static ws_slice_operand operand_for(const ws_problem *chunk, const ws_chunk_place *place, bool is_a, const ws_operand_forms *x,
                                    int n_first, int n_slices, char *at, bool *counts) {
  const wsgemm_packed *packed = packed_of(chunk, is_a, n_first);
  *counts = is_counted(place, is_a, (is_a ? chunk->a.stride : chunk->b.stride) == 0, packed != NULL);
  if (packed) return part_of(packed, x, place, is_a, n_slices, at);
  ws_slice_operand op = operand_of(x, most_slices(x, n_first), at);
  op.is_again = !(is_a ? place->new_a : place->new_b);
  return op;
}

/* Whether the rows and columns that need three slices may be multiplied as if they stood side by side: C must be all wanted, and no
 * k left out of it by where it stands. */
static bool may_be_gathered(const ws_problem *p) {
  return !ws_is_structured(p) && p->c.region == WS_ALL && !p->c.real_diagonal && !ws_slices_are_shared(p);
}

ws_sliced ws_sliced_make(const ws_problem *chunk, const ws_chunk_place *place, int n_first, int n_slices, char *a_at,
                         char *b_at) {
  const ws_operand_forms a = forms_of(chunk, true), b = forms_of(chunk, false);
  ws_sliced s = {.args = {.n_slices = n_slices}};
  ws_slice_operand *of_a = &s.args.operand[0], *of_b = &s.args.operand[1];
  *of_a = operand_for(chunk, place, true, &a, n_first, n_slices, a_at, &s.counts_a);
  *of_b = operand_for(chunk, place, false, &b, n_first, n_slices, b_at, &s.counts_b);
  if (ws_slices_are_shared(chunk)) *of_b = *of_a, s.counts_b = false;
  if (!may_be_gathered(chunk)) of_a->listed = of_b->listed = NULL;
  s.a = slices_of(&a, of_a, n_slices), s.b = slices_of(&b, of_b, n_slices);
  s.scales.of_m = of_a->scales, s.scales.of_n = of_b->scales;
  s.scales.groups_m = of_a->groups, s.scales.groups_n = of_b->groups;
  s.scales.listed_m = of_a->listed, s.scales.listed_n = of_b->listed;
  s.scales.state_m = of_a->state, s.scales.state_n = of_b->state;
  s.scales.n_m = of_a->n_counted, s.scales.n_n = of_b->n_counted;
  if (a.given.n_batch > 1)
    s.scales.pitch_m = of_a->scales_pitch, s.scales.groups_pitch_m = of_a->groups_pitch,
    s.scales.listed_pitch_m = of_a->listed_pitch;
  if (b.given.n_batch > 1)
    s.scales.pitch_n = of_b->scales_pitch, s.scales.groups_pitch_n = of_b->groups_pitch,
    s.scales.listed_pitch_n = of_b->listed_pitch;
  if (ws_slices_are_shared(chunk)) *of_b = (ws_slice_operand){0};
  return s;
}

ws_slice_args ws_packing_args(const wsgemm_packed *packed, int n_slices) {
  const ws_operand_forms x = forms_of(&packed->of, packed->is_a);
  ws_slice_args args = {.n_slices = n_slices};
  args.operand[0] = operand_of(&x, packed->n_slices, packed->memory);
  args.operand[0].listed = NULL; /* a product's part of it has others */
  if (n_slices > packed->n_slices) args.operand[0].to = NULL;
  return args;
}

int ws_slices_kernel(const ws_slice_args *args) {
  /* then also the other one, if it is there */
  const bool is_complex = args->operand[0].form != WS_SLICE_REALS;
  const int first = ws_slices_are_structured(args) ? WS_KERNEL_STRUCTURED_SLICES : WS_KERNEL_SLICES;
  return first + (is_complex ? 3 : 0) + args->n_slices - 1;
}

bool ws_slices_are_structured(const ws_slice_args *args) {
  return args->operand[0].structure != WS_GENERAL || args->operand[1].structure != WS_GENERAL;
}

double ws_slice_parts(const ws_slice_args *args) {
  double parts = 0;
  for (int i = 0; i < 2; i++) {
    const ws_slice_operand *op = &args->operand[i];
    if (op->n_batch == 0 || (op->is_packed && args->n_slices < 3)) continue;
    parts += (double)op->n_batch * (double)ws_slice_groups(op->n_x, op->along_k) * op->n_chunks;
  }
  return parts;
}

bool ws_expand(const ws_sliced *sliced, ws_problem *chunk, ws_expand_args *args) {
  const bool is_a = chunk->a.structure != WS_GENERAL;
  ws_matrix *x = is_a ? &chunk->a : &chunk->b;
  if (x->structure == WS_GENERAL) return false;
  const ws_operand_forms forms = forms_of(chunk, is_a);
  *args = (ws_expand_args){.operand = sliced->args.operand[!is_a], .state = {sliced->scales.state_m, sliced->scales.state_n}};
  args->to = (float *)(void *)args->operand.to, args->pitch = ws_ceil_div(forms.floats.length, 4) * 4;
  x->structure = WS_GENERAL, x->data = args->to, x->ld = args->pitch / ws_types[x->type].n_real;
  x->stride = forms.floats.n_batch > 1 ? x->ld * forms.floats.n_lines : 0;
  return true;
}

ws_fallback_args ws_fallback_args_of(const ws_problem *chunk, const ws_sliced *sliced) {
  ws_fallback_args args = {
      .gemm = ws_gemm_args_of(chunk), .scales = sliced->scales, .counts_a = sliced->counts_a, .counts_b = sliced->counts_b};
  args.gemm.grid = (ws_tile_grid){.n_batch = chunk->batch_count,
                                  .n_rows = ws_ceil_div(chunk->m, WS_FALLBACK_BM),
                                  .n_cols = ws_ceil_div(chunk->n, WS_FALLBACK_BN),
                                  .coarse = 1,
                                  .swizzle = 8};
  args.gemm.sched.n_items = (uint32_t)ws_tile_items(&args.gemm.grid);
  return args;
}
