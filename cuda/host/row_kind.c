/* row_kind.c - which kind of rows a product gets (ws_gpu_kind_for in plan.h): by its type, its numerics class and sizes, and by the
 * models' times, so that what is asked is the same for every pointer, ld and policy; but of FP32 also by whether all lines begin at multiples of
 * 16 bytes, as the fastest rows want that (ws_maps_take). */
#include <math.h>

#include "cuda/host/direct_model.h"
#include "cuda/host/float_copies.h"
#include "cuda/host/plan.h"
#include "cuda/host/problem_args.h"
#include "cuda/host/slices.h"
#include "cuda/host/small.h"
#include "cuda/host/tma_maps.h"
#include "cuda/rows/tf32_rows.h"

ws_row_kind ws_gpu_plain_kind(const ws_call *call, const ws_problem *p) {
  /* Rows for vectors know of no region of C. */
  const bool has_region = p->c.region != WS_ALL || p->c.real_diagonal;
  return ws_is_matrix_vector(p) && !has_region && !call->settings.invariant ? WS_ROW_VECTOR : WS_ROW_TILED;
}

ws_split ws_gpu_split_for(const ws_call *call, const ws_problem *p, const ws_device *device, ws_row_kind kind) {
  return ws_gpu_plan_without_row(call, p, device, kind, 0).split;
}

/* The least time of the rows of that kind; n_slices: of sliced ones. */
static double best_us(const ws_call *call, const ws_problem *p, const ws_device *device, ws_row_kind kind, int n_slices) {
  const ws_gpu_plan plan = ws_gpu_plan_without_row(call, p, device, kind, n_slices);
  return ws_gpu_best_us(&plan, device);
}

/* By multiply-adds of tiled rows, with the launch; fitted to the same measurements. */
static double tiled_adds_us(const ws_call *call, const ws_problem *p, const ws_device *device) {
  const bool is_float = p->a.type == WSGEMM_F32;
  const double launch_us = is_float ? 2.5 : 1.6, of_model = is_float ? 1 : 0.87, sum_bytes_per_us = 3e6;
  const double cooperative_us = is_float ? 1.3 : 0;
  ws_gpu_plan plan = ws_gpu_plan_without_row(call, p, device, WS_ROW_TILED, 0);
  /* What multiply-adds a product gets may not depend on where its operands begin. */
  plan.mode_a = p->a.trans ? WS_COPY_VECTORS_K : WS_COPY_VECTORS_MN;
  plan.mode_b = p->b.trans ? WS_COPY_VECTORS_MN : WS_COPY_VECTORS_K;
  const double best = ws_float_copies_for(call, &plan, device).us;
  return launch_us + (plan.split.n_splits > 1 ? cooperative_us : 0) +
         of_model * (best + 2 * (double)plan.split.bytes / sum_bytes_per_us);
}

/* Whether rows whose warps copy for others can have it: their indices of elements are of 32 bits, and in invariant mode none may cut
 * k, nor any model of the time choose. */
static bool may_be_copied(const ws_call *call, const ws_problem *p) {
  return !call->settings.invariant && ws_max(ws_max(p->m, p->n), p->k) <= INT32_MAX / 2;
}

/* ---- floats and complex ones ----------------------------------------------------------------- */

static bool may_be_tf32(const ws_call *call, const ws_problem *p, int n_slices) {
  return n_slices > 0 && p->k >= WS_TF32_LEAST_K && may_be_copied(call, p);
}
static bool may_be_sliced(const ws_call *call, const ws_problem *p, int n_slices) {
  return n_slices > 0 && ws_slices_fit(p) && !call->settings.invariant;
}

static ws_row_kind forced_kind_of_floats(const ws_call *call, const ws_problem *p, const ws_cuda_row *forced, ws_row_kind plain,
                                         int n_slices) {
  const bool has_slices = forced->n_slices == n_slices || (forced->n_slices == 3 && n_slices == 2); /* three come after two */
  if (forced->kind == WS_ROW_TF32 && forced->n_slices >= n_slices && may_be_tf32(call, p, n_slices)) return WS_ROW_TF32;
  if (forced->kind == WS_ROW_SLICED && has_slices && may_be_sliced(call, p, n_slices)) return WS_ROW_SLICED;
  return forced->kind == WS_ROW_DMMA && plain == WS_ROW_TILED && may_be_copied(call, p) ? WS_ROW_DMMA : plain;
}

/* The models of rows whose warps copy for others, and of slices, have the event pair in their times, that of tiled rows does not. */
enum { EVENTS_US = 5 };
static double copied_best_us(const ws_call *call, const ws_problem *p, const ws_device *device, ws_row_kind kind) {
  return best_us(call, p, device, kind, 0) - EVENTS_US;
}

/* By slices of TF32 in one launch (tf32), by slices of 16 bits, by multiply-adds (ffma, outer, tiled): what the models think is fastest.
 * Times are without end for what cannot be. */
static ws_row_kind kind_of_floats(const ws_call *call, const ws_problem *p, const ws_device *device, ws_row_kind plain,
                                  int n_slices) {
  if (plain != WS_ROW_TILED || call->settings.invariant) return plain;
  const bool may_be_ffma = may_be_copied(call, p);
  const double tiled_us = tiled_adds_us(call, p, device);
  const double ffma_us = may_be_ffma ? copied_best_us(call, p, device, WS_ROW_DMMA) : HUGE_VAL;
  const double tf32_us = may_be_tf32(call, p, n_slices) ? copied_best_us(call, p, device, WS_ROW_TF32) : HUGE_VAL;
  const double slices_us =
      may_be_sliced(call, p, n_slices) ? best_us(call, p, device, WS_ROW_SLICED, n_slices) - EVENTS_US : HUGE_VAL;
  /* so the kinds come nearest to the best rows of 126 random products, most of odd lds, and of 195 with a short k; no choice
   * goes by lds, but that of rows by maps */
  const double adds_us = fmin(ffma_us, 1.25 * tiled_us);
  const double elements = (double)p->m * ws_types[p->a.type].n_real * (double)p->n * (double)p->batch_count;
  const double least_elements = 8 * 64 * 128; /* with fewer items the model of slices is not good enough */
  if (tf32_us < adds_us && tf32_us <= slices_us) return WS_ROW_TF32;
  if (slices_us < adds_us && elements >= least_elements) return WS_ROW_SLICED;
  return ffma_us < tiled_us ? WS_ROW_DMMA : plain;
}

int ws_gpu_slices_to_pack(const ws_call *call, const ws_problem *p, const ws_device *device) {
  return device->cc == WS_BY_MAP_CC && !call->settings.invariant && ws_slices_fit(p) ? ws_n_slices(call, p) : 0;
}

/* ---- double precision ------------------------------------------------------------------------ */

/* Few elements with so long a k that more parts of it are wanted than a cluster has blocks. */
static bool wants_parts(const ws_call *call, const ws_problem *p, const ws_device *device) {
  /* the model of tiled rows is off by these, where k is split (suite row_times) */
  const double slower = p->a.type == WSGEMM_C64 ? 1.3 : 1.4;
  return ws_gpu_split_for(call, p, device, WS_ROW_TILED).n_splits > 1 &&
         slower * tiled_adds_us(call, p, device) < best_us(call, p, device, WS_ROW_DMMA, 0);
}

/* Every product of double precision but by vectors, and with k in many parts, whatever the policy and COARSE_FACTOR,
 * which may change no bits; in invariant mode those of any GPU. */
static ws_row_kind kind_of_doubles(const ws_call *call, const ws_problem *p, const ws_device *device, const ws_cuda_row *forced,
                                   ws_row_kind plain) {
  if (!may_be_copied(call, p)) return plain;
  if (forced) return forced->kind == WS_ROW_DMMA ? WS_ROW_DMMA : plain;
  if (ws_is_structured(p)) return WS_ROW_DMMA; /* which others do not read */
  return plain == WS_ROW_TILED && !wants_parts(call, p, device) ? WS_ROW_DMMA : plain;
}

/* ---- half precision -------------------------------------------------------------------------- */

/* With what comes before. */
static double wgmma_us(const ws_call *call, const ws_problem *p, const ws_device *device) {
  return best_us(call, p, device, WS_ROW_WGMMA, 0) + ws_wgmma_copies_us(&ws_direct_terms_h200, p);
}

/* Half precision's matrix-vector products: by the rows for vectors; without end for others. */
static double vector_us(const ws_call *call, const ws_problem *p, const ws_device *device) {
  if (ws_gpu_plain_kind(call, p) != WS_ROW_VECTOR) return HUGE_VAL;
  const ws_split split = ws_gpu_split_for(call, p, device, WS_ROW_VECTOR);
  return ws_vector_us(&ws_direct_terms_h200, p, &split, device->n_sms);
}

/* In invariant mode no row may cut k, as direct rows do, and no model of the time may choose; they
 * know of no structure and no region of C. */
static bool wants_direct(const ws_call *call, const ws_problem *p, const ws_device *device, const ws_cuda_row *forced) {
  if (ws_gpu_takes_fma(call, p) || call->settings.invariant || !ws_is_plain(p)) return false;
  if (forced) return forced->kind == WS_ROW_DIRECT;
  if (!ws_may_be_direct(p)) return false;
  const double us = best_us(call, p, device, WS_ROW_DIRECT, 0);
  return us < vector_us(call, p, device) && (!ws_tma_takes(p) || us < wgmma_us(call, p, device));
}

/* In invariant mode there are no rows for vectors. */
static bool wants_wgmma(const ws_call *call, const ws_problem *p, const ws_device *device, const ws_cuda_row *forced) {
  if (ws_gpu_takes_fma(call, p) || !ws_tma_takes(p)) return false;
  if (forced) return forced->kind == WS_ROW_WGMMA;
  return ws_gpu_plain_kind(call, p) == WS_ROW_TILED || (ws_is_plain(p) && wgmma_us(call, p, device) < vector_us(call, p, device));
}

/* ---- batches of small products ----------------------------------------------------------------- */

/* As one of the rows for other products; in invariant mode no batch may be summed in another way than its products. */
static bool wants_small(const ws_call *call, const ws_problem *p, const ws_device *device, const ws_cuda_row *forced) {
  if (call->settings.invariant || !ws_small_may_take(p)) return false;
  if (forced ? forced->kind != WS_ROW_SMALL || !ws_small_takes(p, forced) : !ws_small_is_quick(p)) return false;
  return best_us(call, p, device, WS_ROW_SMALL, 0) < HUGE_VAL; /* flat ones may have more tiles than any row has threads */
}

/* ---- all ------------------------------------------------------------------------------------- */

ws_row_kind ws_gpu_kind_for(const ws_call *call, const ws_problem *p, const ws_device *device, int *n_slices) {
  const int forced_idx = ws_forced_row(call->forced[WS_CUDA], p->a.type);
  const ws_cuda_row *forced = forced_idx ? ws_cuda_row_at(forced_idx - 1) : NULL;
  const ws_row_kind plain = ws_gpu_plain_kind(call, p);
  *n_slices = 0;
  if (device->cc != WS_BY_MAP_CC) return plain;
  if (wants_small(call, p, device, forced)) return WS_ROW_SMALL;
  if (ws_is_half(p->a.type)) {
    if (wants_direct(call, p, device, forced)) return WS_ROW_DIRECT;
    return wants_wgmma(call, p, device, forced) ? WS_ROW_WGMMA : plain;
  }
  if (p->a.type == WSGEMM_F64 || p->a.type == WSGEMM_C64) return kind_of_doubles(call, p, device, forced, plain);
  const int wanted = ws_n_slices(call, p);
  const ws_row_kind kind =
      forced ? forced_kind_of_floats(call, p, forced, plain, wanted) : kind_of_floats(call, p, device, plain, wanted);
  if (kind == WS_ROW_SLICED) *n_slices = wanted;
  return kind;
}
