/* grouped.c - see grouped.h: what the kernel of kernels/gemm_grouped.cuh can do, its tensor maps and its
 * launch. One map of what is ragged, as a whole, and one of the operand (of ragged k: of C) that each
 * group has of its own; so none is made on the device. */
#include "cuda/host/grouped.h"

#include "core/status.h"
#include "cuda/host/groups.h"
#include "cuda/host/problem_args.h"
#include "cuda/host/tma_maps.h"
#include "cuda/host/wgmma_model.h"

enum { BYTES = 2, WHOLE = 16 / BYTES, LINE = 64, A_LINES = 128, B_LINES = 32, PART = 32, CLUSTER = 2 };

static bool is_whole(const void *data, int64_t ld, int64_t stride) {
  return (uintptr_t)data % 16 == 0 && ld % WHOLE == 0 && stride % WHOLE == 0;
}

/* Whether C, and a residual beside it, may be accessed 16 bytes at a time. Floats never are. */
static bool has_whole_c(const ws_groups *groups) {
  const ws_problem *p = &groups->of_all;
  const ws_epilogue *e = &p->epilogue;
  const bool of_k = groups->ragged == WSGEMM_RAGGED_K;
  if (!ws_is_half(p->c.type)) return true;
  if (p->has_epilogue && e->residual && !is_whole(e->residual, e->ld_residual, of_k ? e->stride_residual : 0)) return false;
  return p->m % WHOLE == 0 && is_whole(p->c.data, p->c.ld, of_k ? p->c.stride : 0);
}

/* Whether this kernel can; others are slower, or of other types (groups.h). */
static bool can_run(const ws_executor *x, const ws_groups *groups) {
  const ws_problem *p = &groups->of_all;
  const int64_t most = INT64_C(1) << 30;
  const bool of_k = groups->ragged == WSGEMM_RAGGED_K;
  const bool has_more = ws_groups_have_arrays(groups) || groups->alpha;
  if (x->device->cc != WS_BY_MAP_CC || has_more) return false;
  if (!ws_is_half(p->a.type) || (p->c.type != p->a.type && p->c.type != WSGEMM_F32)) return false;
  if (ws_math_of(x->call, p) == WSGEMM_MATH_PEDANTIC) return false; /* by tensor cores */
  /* C contiguous across what is ragged, and operands along it, or of ragged k across it */
  if (groups->ragged != WSGEMM_RAGGED_N && !of_k) return false;
  if (of_k ? p->a.trans || !p->b.trans : p->b.trans) return false;
  if (groups->count > WS_GROUPED_MOST_GROUPS || p->m >= most || p->n >= most || p->k >= most) return false;
  return has_whole_c(groups) && p->a.stride >= 0 && p->c.stride >= 0 && is_whole(p->b.data, p->b.ld, 0) &&
         is_whole(p->a.data, p->a.ld, of_k ? 0 : p->a.stride);
}

/* Whether ends that the host knows find room in a launch, and nobody asks for a kernel that this is not. */
static bool can_be_given(const ws_executor *x, const ws_groups *groups) {
  const wsgemm_type type = groups->of_all.a.type;
  return groups->count > 1 && groups->count <= WS_GROUPED_MOST_GIVEN && ws_forced_row(x->call->forced[WS_CUDA], type) == 0;
}

/* ---- which kernel -------------------------------------------------------------------------------- */

typedef struct grouped_row {
  int first_kernel, n_threads, blocks, shared_bytes; /* blocks: of an SM */
} grouped_row;
static const grouped_row wide_row = {WS_KERNEL_GROUPED, 384, 1, WS_GROUPED_SHARED_BYTES},
                         narrow_row = {WS_KERNEL_NARROW, 288, 2, WS_GROUPED_NARROW_SHARED_BYTES};

/* Narrow items store beside another block's products, which tells where there is little to multiply for each
 * element of C, or of the weights; so few columns a group have no use for wide ones. */
static const grouped_row *row_of(const ws_groups *groups) {
  enum { FEW = 80 };
  const ws_problem *p = &groups->of_all;
  if (!ws_has_plain_store(p)) return &wide_row;
  return groups->ragged == WSGEMM_RAGGED_K || p->n <= FEW * groups->count ? &narrow_row : &wide_row;
}

static int kernel_of(const ws_groups *groups, const grouped_row *row) {
  enum { N_FORMS = 3 };
  const ws_problem *p = &groups->of_all;
  const int form = groups->ragged == WSGEMM_RAGGED_K ? 2 : p->a.trans;
  return row->first_kernel + (p->a.type == WSGEMM_F16 ? 0 : N_FORMS) + form;
}

/* ---- its arguments ------------------------------------------------------------------------------- */

typedef struct lines {
  const void *data;
  int64_t length, n_lines, n_matrices, ld, stride;
} lines;

static CUresult make_map(CUtensorMap *map, wsgemm_type type, const lines *x, int box_lines) {
  const cuuint64_t dims[3] = {(cuuint64_t)x->length, (cuuint64_t)x->n_lines, (cuuint64_t)x->n_matrices};
  const cuuint64_t strides[2] = {(cuuint64_t)(x->ld * BYTES),
                                 (cuuint64_t)(x->n_matrices > 1 && x->stride > 0 ? x->stride * BYTES : 16)};
  return ws_tma_encode(map, ws_tma_half(type), x->data, dims, strides, LINE, box_lines);
}

static CUresult make_maps(const ws_groups *groups, ws_grouped_args *args) {
  const ws_problem *p = &groups->of_all;
  const bool of_k = groups->ragged == WSGEMM_RAGGED_K, a_along_k = p->a.trans;
  const lines a = {p->a.data, a_along_k ? p->k : p->m, a_along_k ? p->m : p->k, of_k ? 1 : groups->count, p->a.ld, p->a.stride};
  const lines b = {p->b.data, of_k ? p->n : p->k, of_k ? p->k : p->n, 1, p->b.ld, 0};
  const lines c = {p->c.data, p->m, p->n, of_k ? groups->count : 1, p->c.ld, p->c.stride};
  CUresult result = ws_is_half(p->c.type) ? make_map(&args->c, p->c.type, &c, PART) : CUDA_SUCCESS;
  if (ws_product_is_zero(p)) return result; /* A and B are not read */
  if (!result) result = make_map(&args->a, p->a.type, &a, a_along_k ? A_LINES : LINE);
  return result ? result : make_map(&args->b, p->a.type, &b, of_k ? LINE : B_LINES);
}

static ws_grouped_args args_of(const ws_groups *groups) {
  const ws_problem *p = &groups->of_all;
  ws_epilogue_args epilogue = ws_epilogue_args_of(p);
  if (groups->ragged != WSGEMM_RAGGED_K) epilogue.stride_residual = 0; /* which lies as C does */
  return (ws_grouped_args){.ends = groups->arrays_are_here ? NULL : groups->ends,
                           .ends_are_64 = groups->index_bytes == 8,
                           .n_groups = (int32_t)groups->count,
                           .total = groups->ragged == WSGEMM_RAGGED_K ? p->k : p->n,
                           .m = (int32_t)p->m,
                           .n = (int32_t)p->n,
                           .k = ws_product_is_zero(p) ? 0 : (int32_t)p->k,
                           .is_plain = ws_has_plain_store(p),
                           .type_c = (int32_t)ws_half_c_type_of(p->c.type),
                           .beta_zero = p->scale.beta_zero,
                           .alpha = p->scale.alpha.s[0],
                           .beta = p->scale.beta.s[0],
                           .c_data = p->c.data,
                           .ldc = p->c.ld,
                           .stride_c = p->c.stride,
                           .epilogue = epilogue};
}

wsgemm_status ws_run_grouped(ws_executor *x, const ws_groups *groups) {
  wsgemm_handle *h = x->call->h;
  if (!can_run(x, groups) || (groups->arrays_are_here && !can_be_given(x, groups))) return ws_run_groups(x, groups);
  CUresult result;
  const grouped_row *row = row_of(groups);
  CUkernel kernel = ws_device_plain_kernel(x->device, kernel_of(groups, row), &result);
  if (!kernel && groups->arrays_are_here && ws_device_lacks(result)) return WSGEMM_NOT_SUPPORTED;
  if (!kernel) return ws_fail_kernel(h, "grouped", x->device, result);
  ws_launch_list list = {.n = 0};
  const int n_clusters = ws_most_clusters(CLUSTER, x->device->n_sms) * row->blocks;
  ws_launch *l = ws_launch_add(&list, "grouped", kernel, (int64_t)n_clusters * CLUSTER, row->n_threads, row->shared_bytes,
                               WS_BEGIN_STREAM_ORDERED);
  l->cluster = CLUSTER, l->is_grouped = true;
  l->stealing = (ws_stealing){true, 0, n_clusters, l->n_blocks};
  l->args.grouped = args_of(groups);
  const ws_grouped_ends ends = ws_given_ends(groups);
  l->more = &ends;
  result = make_maps(groups, &l->args.grouped);
  return result ? ws_fail_cuda(h, "tensor map", result) : ws_execute(x, &list);
}
