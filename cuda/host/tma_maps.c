/* tma_maps.c - tensor maps for the kernels on Hopper's tensor cores. */
#include "cuda/host/tma_maps.h"

#include "cuda/host/problem_args.h"
#include "cuda/host/wgmma_model.h"
#include "cuda/rows/rows.h"

enum { BYTES = 2, WHOLE_BYTES = 16, WHOLE = WHOLE_BYTES / BYTES, BOX = 64, BOX_BYTES = BOX * BYTES, ANY_STRIDE = WHOLE_BYTES };

/* The driver's limits: 2^32 elements along each dimension, strides below 2^40 bytes; coordinates
 * are 32-bit integers. */
static const int64_t most_along = INT64_C(1) << 30, most_stride = INT64_C(1) << 35;

static int64_t magnitude(int64_t x) { return x < 0 ? -x : x; }

/* A vector that is contiguous is one line, with any ld. */
static ws_strided lines_of(const ws_problem *p, const void *data, bool along_k, int64_t x, int64_t ld, int64_t stride) {
  const bool are_many = p->batch_count > 1 && stride != 0;
  if (x == 1 && ld == 1) along_k = true;
  ws_strided lines = {.data = data, .along_k = along_k, .ld = ld, .n_batch = 1, .n_slices = 1};
  lines.length = along_k ? p->k : x, lines.n_lines = along_k ? x : p->k;
  if (are_many) lines.n_batch = p->batch_count, lines.stride = stride;
  const int whole = WHOLE_BYTES / ws_types[p->a.type].bytes;
  if (lines.n_lines == 1) lines.ld = ws_ceil_div(lines.length, whole) * whole;
  return lines;
}

ws_strided ws_strided_a(const ws_problem *p) { return lines_of(p, p->a.data, p->a.trans, p->m, p->a.ld, p->a.stride); }
ws_strided ws_strided_b(const ws_problem *p) { return lines_of(p, p->b.data, !p->b.trans, p->n, p->b.ld, p->b.stride); }

static bool is_whole(const void *data, int64_t ld, int64_t stride) {
  return (uintptr_t)data % WHOLE_BYTES == 0 && ld % WHOLE == 0 && stride % WHOLE == 0;
}

bool ws_tma_takes_as_is(const ws_strided *x) {
  return is_whole(x->data, x->ld, x->stride) && x->ld < most_stride && magnitude(x->stride) < most_stride;
}

bool ws_tma_takes(const ws_problem *p) {
  const int64_t most = most_along / ws_types[p->a.type].n_real;
  return p->m < most && p->n < most && p->k < most && p->batch_count < most;
}

/* In blocks of how many bytes the L2 fetches a box. 256 bytes cost 3 to 8 % where memory is the bound,
 * and 10 to 15 % where lines straddle; fewer than 128 bring nothing more (bench/NOTES.md). */
enum { PROMOTION = CU_TENSOR_MAP_L2_PROMOTION_L2_128B };

CUtensorMapDataType ws_tma_half(wsgemm_type type) {
  return type == WSGEMM_F16 ? CU_TENSOR_MAP_DATA_TYPE_FLOAT16 : CU_TENSOR_MAP_DATA_TYPE_BFLOAT16;
}
static bool is_of_half(CUtensorMapDataType type) {
  return type == CU_TENSOR_MAP_DATA_TYPE_FLOAT16 || type == CU_TENSOR_MAP_DATA_TYPE_BFLOAT16;
}

/* Boxes of so many elements of so many lines; a line is as long as its swizzle. */
CUresult ws_tma_encode(CUtensorMap *map, CUtensorMapDataType type, const void *data, const cuuint64_t dims[3],
                       const cuuint64_t strides[2], int box_length, int box_lines) {
  const cuuint32_t box[3] = {(cuuint32_t)box_length, (cuuint32_t)box_lines, 1}, steps[3] = {1, 1, 1};
  const int line_bytes = box_length * (is_of_half(type) ? BYTES : (int)sizeof(float));
  const CUtensorMapSwizzle swizzle = line_bytes == BOX_BYTES       ? CU_TENSOR_MAP_SWIZZLE_128B
                                     : line_bytes == BOX_BYTES / 2 ? CU_TENSOR_MAP_SWIZZLE_64B
                                                                   : CU_TENSOR_MAP_SWIZZLE_32B;
  union {
    const void *given;
    void *wanted;
  } address = {data};
  return ws_cuda.cuTensorMapEncodeTiled(map, type, 3, address.wanted, dims, strides, box, steps, CU_TENSOR_MAP_INTERLEAVE_NONE,
                                        swizzle, (CUtensorMapL2promotion)PROMOTION, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
}

/* Of an operand of x elements along m or n: how many of them come to a block for a k block, whose
 * item has item_x, by boxes of so many lines, of which n_shared blocks load as many each. No more
 * than there are (along k: where it loads alone): boxes that end beyond the operand are slow, and
 * take up what others could have. */
typedef struct loaded {
  int box_length, box_lines, n_slabs, n_lines;
} loaded;
static loaded loaded_of(bool along_k, int64_t x, int item_x, int n_shared) {
  loaded l = {.box_length = along_k ? BOX : WS_WGMMA_A_LINE(item_x),
              .n_slabs = (int)ws_min(ws_ceil_div(item_x, BOX), ws_ceil_div(x, BOX))};
  if (along_k && n_shared == 1)
    l.box_lines = (int)ws_min(item_x, ws_ceil_div(x, WHOLE) * WHOLE);
  else
    l.box_lines = (along_k ? item_x : BOX) / n_shared;
  l.n_lines = along_k ? l.box_lines * n_shared : l.n_slabs * l.box_length;
  return l;
}

/* Products in reverse order (a negative stride) are numbered from the last. */
static CUresult make_operand(wsgemm_type type, const ws_strided *x, const loaded *load, ws_wgmma_operand *op) {
  const bool backwards = x->stride < 0;
  const int64_t n_planes = x->n_batch * x->n_slices;
  const char *first = (const char *)x->data + (backwards ? (n_planes - 1) * x->stride * BYTES : 0);
  const cuuint64_t dims[3] = {(cuuint64_t)x->length, (cuuint64_t)x->n_lines, (cuuint64_t)n_planes};
  const cuuint64_t strides[2] = {(cuuint64_t)(x->ld * BYTES),
                                 n_planes > 1 ? (cuuint64_t)(magnitude(x->stride) * BYTES) : ANY_STRIDE};
  op->along_k = x->along_k;
  op->batch_step = x->n_batch == 1 ? 0 : backwards ? -1 : (int32_t)x->n_slices;
  op->batch_first = backwards ? (int32_t)(n_planes - 1) : 0;
  op->n_slabs = load->n_slabs;
  return ws_tma_encode(&op->map, ws_tma_half(type), first, dims, strides, load->box_length, load->box_lines);
}

/* ---- floats ---------------------------------------------------------------------------------- */

static bool is_whole_matrix(const ws_problem *p, const ws_strided *x) {
  return ws_is_aligned(x->data, x->ld, x->stride, ws_types[p->a.type].bytes, WHOLE_BYTES) && x->ld < most_stride / 2 &&
         x->stride >= 0 && x->stride < most_stride / 2;
}

bool ws_maps_take(const ws_problem *p) {
  if (p->a.type != WSGEMM_F32 || !ws_tma_takes(p) || ws_is_structured(p)) return false;
  if (ws_maps_are_across(p) && (p->c.region != WS_ALL || p->c.real_diagonal)) return false; /* C transposed has another region */
  const ws_strided a = ws_strided_a(p), b = ws_strided_b(p);
  return a.along_k == p->a.trans && b.along_k != p->b.trans && is_whole_matrix(p, &a) && is_whole_matrix(p, &b);
}

/* Of an operand of which a block has item_x along m or n. */
static CUresult make_map(const ws_strided *x, CUtensorMapDataType type, int item_x, ws_map_operand *op) {
  const int bytes = ws_types[WSGEMM_F32].bytes, box = BOX_BYTES / bytes;
  const cuuint64_t dims[3] = {(cuuint64_t)x->length, (cuuint64_t)x->n_lines, (cuuint64_t)x->n_batch};
  const cuuint64_t strides[2] = {(cuuint64_t)(x->ld * bytes), x->n_batch > 1 ? (cuuint64_t)(x->stride * bytes) : ANY_STRIDE};
  op->batch_first = 0, op->batch_step = x->n_batch > 1;
  return ws_tma_encode(&op->map, type, x->data, dims, strides, box, x->along_k ? item_x : box);
}

CUresult ws_map_args_make(const ws_problem *p, const ws_cuda_row *row, ws_map_args *args) {
  const ws_strided a = ws_strided_a(p), b = ws_strided_b(p);
  const CUtensorMapDataType rounded = CU_TENSOR_MAP_DATA_TYPE_TFLOAT32, whole = CU_TENSOR_MAP_DATA_TYPE_FLOAT32;
  const bool is_split = row->n_slices > 1;
  CUresult result = make_map(&a, is_split ? whole : rounded, row->bm, &args->a);
  if (!result) result = make_map(&b, is_split ? whole : rounded, row->bn, &args->b);
  return result || !is_split ? result : make_map(&b, rounded, row->bn, &args->b_high);
}

/* ---- half precision -------------------------------------------------------------------------- */

/* 16-bit elements where TMA may write them. Where a column ends within 16 bytes it was seen to
 * write beyond (H200, 2026-11-22: one case in thousands). */
static bool c_by_map(const ws_problem *p) {
  const int64_t stride = p->batch_count > 1 ? p->c.stride : 0;
  return ws_is_half(p->c.type) && p->m % WHOLE == 0 && is_whole(p->c.data, p->c.ld, stride) && p->c.ld < most_stride &&
         stride >= 0 && stride < most_stride;
}

bool ws_is_bare(const ws_problem *p) {
  if (p->c.type != p->a.type || !ws_has_plain_store(p) || !c_by_map(p)) return false;
  const ws_strided a = ws_strided_a(p), b = ws_strided_b(p);
  return ws_tma_takes_as_is(&a) && ws_tma_takes_as_is(&b);
}

bool ws_is_across(const ws_problem *p, const ws_cuda_row *row) {
  if (row->kind != WS_ROW_WGMMA || !ws_is_bare(p)) return false;
  const ws_wgmma_product product = ws_wgmma_look_at(&ws_wgmma_terms_h200, p, WS_RATED_SMS, false);
  return ws_wgmma_is_across(&ws_wgmma_terms_h200, &product, row);
}

/* Of C, or of what is like it; ld and stride in reals. */
static bool are_pairs(const ws_problem *p, const void *data, int64_t ld, int64_t stride) {
  const int bytes = ws_types[p->c.type].bytes / ws_types[p->c.type].n_real;
  return ws_is_aligned(data, ld, p->batch_count > 1 ? stride : 0, bytes, 2 * bytes);
}

static CUresult make_operands(const ws_problem *p, const ws_strided *a, const ws_strided *b, const ws_cuda_row *row,
                              ws_wgmma_args *args) {
  const wsgemm_type element = ws_is_half(p->a.type) ? p->a.type : row->n_slices == 3 ? WSGEMM_BF16 : WSGEMM_F16;
  const int item_m = row->bm * ws_types[p->a.type].n_real;
  const loaded of_a = loaded_of(a->along_k, args->m, item_m, ws_cluster_n(row)),
               of_b = loaded_of(b->along_k, args->n, row->bn * row->coarse, row->cluster_m);
  args->stage_bytes = (int32_t)ws_max(row->n_slices, 1) * (of_a.n_lines + of_b.n_lines) * BOX * BYTES;
  const CUresult result = make_operand(element, a, &of_a, &args->a);
  return result ? result : make_operand(element, b, &of_b, &args->b);
}

CUresult ws_wgmma_args_make(const ws_problem *p, const ws_strided *a, const ws_strided *b, const ws_cuda_row *row,
                            ws_wgmma_args *args) {
  const int unit = ws_types[p->a.type].n_real;
  args->m = p->m * unit, args->n = p->n, args->k = p->k * unit;
  args->c_data = p->c.data, args->ldc = p->c.ld * unit, args->stride_c = p->c.stride * unit;
  args->tiles = ws_tile_divisors_of(&args->grid);
  args->n_k_blocks = (int32_t)ws_ceil_div(args->k, BOX);
  args->region = ws_region_args_of(p);
  const bool of_a = ws_is_triangular((ws_structure)p->a.structure), of_b = ws_is_triangular((ws_structure)p->b.structure);
  args->triangular = of_a ? 1 : of_b ? 2 : 0;
  args->triangle = (int32_t)ws_triangle_of(of_a ? &p->a : &p->b);
  args->alpha = p->scale.alpha.s[0], args->beta = p->scale.beta.s[0], args->beta_zero = p->scale.beta_zero;
  args->alpha_im = p->scale.alpha.s[1], args->beta_im = p->scale.beta.s[1];
  args->type_c = (int32_t)ws_half_c_type_of(p->c.type);
  args->epilogue = ws_epilogue_args_of(p);
  args->is_simple = ws_is_simple(p);
  args->c_pairs = are_pairs(p, p->c.data, args->ldc, args->stride_c);
  if (p->has_epilogue)
    args->residual_pairs = are_pairs(p, p->epilogue.residual, p->epilogue.ld_residual, p->epilogue.stride_residual);
  args->c_by_map = c_by_map(p);
  args->is_plain = args->c_by_map && p->c.type == p->a.type && ws_has_plain_store(p);
  if (args->is_across) args->m = p->n, args->n = p->m;
  CUresult result = args->is_across ? make_operands(p, b, a, row, args) : make_operands(p, a, b, row, args);
  if (!result && args->c_by_map) {
    const cuuint64_t dims[3] = {(cuuint64_t)p->m, (cuuint64_t)p->n, (cuuint64_t)p->batch_count};
    const cuuint64_t strides[2] = {(cuuint64_t)(p->c.ld * BYTES),
                                   p->batch_count > 1 ? (cuuint64_t)(p->c.stride * BYTES) : ANY_STRIDE};
    const int share = WS_WGMMA_SHARE_ROWS(row->bm, row->cluster_splits);
    result = ws_tma_encode(&args->c, ws_tma_half(p->c.type), p->c.data, dims, strides,
                           args->is_across ? BOX : WS_WGMMA_BOX_ROWS(share), args->is_across ? WS_WGMMA_BOX_COLUMNS(share) : BOX);
  }
  return result;
}
