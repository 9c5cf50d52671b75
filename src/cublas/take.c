/* take.c - who computes a call: wsgemm where it is known to be faster (wins.def) and the call is within
 * what it promises, else cuBLAS.
 *
 * The cheapest checks come first, so that a small product costs cuBLAS's caller some comparisons. The
 * stream, the math mode, where scalars are and how many SMs may be used come from the handle in the
 * real library; the workspace is the one that was given to it, or to the call, if it is large enough. */
#include <string.h>

#include "cublas/cublas.h"
#include "cublas/wins.h"

/* A call as wins.def sees it. */
typedef struct product {
  int routine;
  wsgemm_type type;
  int64_t m, n, k;
  bool is_odd;
  int64_t n_together; /* that least_products is of */
} product;

static bool is_odd(const wsgemm_gemm_desc *d) {
  const int per_16_bytes = d->type_a == WSGEMM_F16 || d->type_a == WSGEMM_BF16 ? 8 : d->type_a == WSGEMM_F32 ? 4 : 2;
  return d->lda % per_16_bytes || d->ldb % per_16_bytes;
}

static product product_of(const ws_cublas_call *call) {
  if (!call->is_level3) {
    const wsgemm_gemm_desc *const d = &call->desc.gemm;
    const bool has_epilogue = d->bias || d->epilogue != WSGEMM_EPILOGUE_NONE;
    const int routine = call->has_arrays ? WSGEMM_GEMM_POINTERS : has_epilogue ? WSGEMM_GEMM_EPILOGUE : WSGEMM_GEMM;
    return (product){routine, d->type_a, d->m, d->n, d->k, is_odd(d), call->has_arrays ? d->batch_count : 1};
  }
  const wsgemm_level3_desc *const d = &call->desc.level3;
  switch (d->routine) {
  case WSGEMM_SYRK:
  case WSGEMM_HERK:
  case WSGEMM_SYR2K:
  case WSGEMM_HER2K:
    return (product){(int)d->routine, d->type, d->n, d->n, d->k, false, 1};
  default:
    return (product){(int)d->routine, d->type, d->m, d->n, d->side == WSGEMM_LEFT ? d->m : d->n, false, 1};
  }
}

static double products_of(const product *p) { return (double)p->m * (double)p->n * (double)p->k * (double)p->n_together; }

/* The row that knows wsgemm to be faster, in this math (INHERIT: in any). */
static const ws_cublas_win *find_win(const product *p, wsgemm_math math) {
  const int64_t mn = p->m < p->n ? p->m : p->n;
  const double n_products = products_of(p);
  for (int i = 0; i < N_WINS; i++) {
    const ws_cublas_win *const w = &wins[i];
    if (w->routine == p->routine && w->type == p->type && (math == WSGEMM_MATH_INHERIT || w->math == math) && mn >= w->least_mn &&
        p->k >= w->least_k && n_products >= w->least_products && (w->layout == ANY || p->is_odd))
      return w;
  }
  return NULL;
}

bool ws_cublas_is_small(int64_t m, int64_t n) {
  for (int i = 0; i < N_WINS; i++)
    if (wins[i].routine != WSGEMM_GEMM_POINTERS && m >= wins[i].least_mn && n >= wins[i].least_mn) return false;
  return !ws_cublas_settings_now.takes_all;
}

bool ws_cublas_may_win(const ws_cublas_call *call) {
  const product p = product_of(call);
  return ws_cublas_settings_now.takes_all || find_win(&p, WSGEMM_MATH_INHERIT);
}

/* What is known of a call without the handle's state. */
static ws_cublas_reason first_reason(const ws_cublas_call *call, const product *p) {
  if (call->is_foreign) return WS_CUBLAS_TYPES;
  if (call->is_bad || !call->handle || !call->alpha) return WS_CUBLAS_ARGUMENTS;
  if (!ws_cublas_settings_now.takes_all && !find_win(p, WSGEMM_MATH_INHERIT)) return WS_CUBLAS_SPEED;
  if (!call->is_level3 && !call->has_arrays && call->desc.gemm.batch_count > 1 && call->desc.gemm.stride_c == 0)
    return WS_CUBLAS_ARGUMENTS;
  return WS_CUBLAS_TAKEN;
}

/* What the handle says, unless the compute type says more. A compute type that asks for less precision
 * does so for its call alone; a handle in pedantic mode keeps to it. */
static ws_cublas_reason read_modes(ws_cublas_call *call, wsgemm_math *in) {
  if (call->is_lt) {
    if (*in == WSGEMM_MATH_INHERIT) *in = WSGEMM_MATH_DEFAULT;
    return WS_CUBLAS_TAKEN;
  }
  cublasMath_t math;
  int n_sms = 0;
  const __typeof__(&cublasGetStream_v2) get_stream = WS_CUBLAS_REAL(cublasGetStream_v2, call->handle);
  const __typeof__(&cublasGetMathMode) get_math = WS_CUBLAS_REAL(cublasGetMathMode, call->handle);
  const __typeof__(&cublasGetPointerMode_v2) get_scalars = WS_CUBLAS_REAL(cublasGetPointerMode_v2, call->handle);
  const __typeof__(&cublasGetSmCountTarget) get_sms = WS_CUBLAS_REAL(cublasGetSmCountTarget, call->handle);
  if (!get_stream || !get_math || !get_scalars || get_stream(call->handle, &call->stream) != CUBLAS_STATUS_SUCCESS ||
      get_math(call->handle, &math) != CUBLAS_STATUS_SUCCESS ||
      get_scalars(call->handle, &call->scalars) != CUBLAS_STATUS_SUCCESS)
    return WS_CUBLAS_STATE;
  if (get_sms && (get_sms(call->handle, &n_sms) != CUBLAS_STATUS_SUCCESS || n_sms != 0)) return WS_CUBLAS_SMS;
  switch ((int)math & ~CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION) {
  case CUBLAS_DEFAULT_MATH:
  case CUBLAS_TENSOR_OP_MATH:
    if (*in == WSGEMM_MATH_INHERIT) *in = WSGEMM_MATH_DEFAULT;
    return WS_CUBLAS_TAKEN;
  case CUBLAS_TF32_TENSOR_OP_MATH:
    if (*in == WSGEMM_MATH_INHERIT) *in = WSGEMM_MATH_TF32;
    return WS_CUBLAS_TAKEN;
  case CUBLAS_PEDANTIC_MATH:
    *in = WSGEMM_MATH_PEDANTIC;
    return WS_CUBLAS_TAKEN;
  default:
    return WS_CUBLAS_MATH;
  }
}

/* TF32 is a class of F32 and C32 alone. */
static wsgemm_math math_for(wsgemm_type type, wsgemm_math math) {
  return math == WSGEMM_MATH_TF32 && type != WSGEMM_F32 && type != WSGEMM_C32 ? WSGEMM_MATH_DEFAULT : math;
}

static wsgemm_scalar scalar_at(const void *scalar, wsgemm_type type) {
  wsgemm_scalar s;
  memset(&s, 0, sizeof s); /* a real scalar of a Hermitian update: its imaginary part is 0 */
  if (scalar)
    memcpy(&s, scalar,
           type == WSGEMM_F32   ? sizeof s.s
           : type == WSGEMM_F64 ? sizeof s.d
           : type == WSGEMM_C32 ? sizeof s.c
                                : sizeof s.z);
  return s;
}

/* Of the products that wins.def has, those that are faster with scalars in device memory, too: wsgemm then has one kernel for FP32, and
 * none by TMA for half precision (bench_gpu_gemm --scalars device). */
static bool is_fast_with_device_scalars(const ws_cublas_call *call) {
  const wsgemm_gemm_desc *const d = &call->desc.gemm;
  const bool has_epilogue = d->epilogue != WSGEMM_EPILOGUE_NONE || d->bias;
  return (d->type_a == WSGEMM_F32 || d->type_a == WSGEMM_C32) && d->math == WSGEMM_MATH_DEFAULT && !has_epilogue;
}

static ws_cublas_reason set_scalars(ws_cublas_call *call) {
  const bool has_beta =
      !call->is_level3 || (call->desc.level3.routine != WSGEMM_TRMM && call->desc.level3.routine != WSGEMM_TRSM);
  if (has_beta && !call->beta) return WS_CUBLAS_ARGUMENTS;
  wsgemm_scalar *const alpha = call->is_level3 ? &call->desc.level3.alpha : &call->desc.gemm.alpha;
  wsgemm_scalar *const beta = call->is_level3 ? &call->desc.level3.beta : &call->desc.gemm.beta;
  if (call->scalars != CUBLAS_POINTER_MODE_HOST) {
    if (call->is_level3 || call->has_arrays || call->scalars != CUBLAS_POINTER_MODE_DEVICE) return WS_CUBLAS_SCALARS;
    if (!is_fast_with_device_scalars(call) && !ws_cublas_settings_now.takes_all) return WS_CUBLAS_SCALARS;
    call->desc.gemm.scalar_mode = WSGEMM_SCALAR_DEVICE;
    alpha->device = call->alpha, beta->device = call->beta;
    return WS_CUBLAS_TAKEN;
  }
  *alpha = scalar_at(call->alpha, call->type_alpha);
  *beta = scalar_at(call->beta, call->type_beta);
  return WS_CUBLAS_TAKEN;
}

/* Memory that the call uses. Kernels of groups use none. */
static size_t bytes_wanted(const ws_cublas_call *call, wsgemm_handle *handle) {
  size_t bytes = SIZE_MAX;
  if (call->has_arrays) return 0;
  const wsgemm_status status = call->is_level3 ? wsgemm_level3_workspace_size(handle, &call->desc.level3, &bytes)
                                               : wsgemm_get_workspace_size(handle, &call->desc.gemm, &bytes);
  return status == WSGEMM_SUCCESS ? bytes : SIZE_MAX;
}

/* Which memory that is: the caller's workspace, if it is aligned and holds all of it, as with less a product is computed in chunks,
 * slower than with the library's own; else that. But where the stream is captured the library's would be a node of the graph, and a
 * graph with such a node cannot become part of another one, as those of XLA do. */
typedef enum memory { MEMORY_WORKSPACE, MEMORY_OWN, MEMORY_NONE } memory;
static memory memory_for(const ws_cublas_call *call, wsgemm_handle *handle) {
  const bool is_given = call->workspace && (uintptr_t)call->workspace % 256 == 0;
  size_t wanted = is_given ? bytes_wanted(call, handle) : 0;
  if (wanted > 0 && wanted <= call->workspace_bytes) return MEMORY_WORKSPACE;
  if (!ws_cublas_is_captured(call->stream)) return MEMORY_OWN;
  if (!is_given) wanted = bytes_wanted(call, handle);
  return wanted > 0 ? MEMORY_NONE : MEMORY_OWN;
}

static wsgemm_status compute_batch(const ws_cublas_call *call, wsgemm_handle *handle) {
  const wsgemm_gemm_desc *const d = &call->desc.gemm;
  wsgemm_grouped_desc g = WSGEMM_GROUPED_DESC_INIT;
  g.transa = d->transa, g.transb = d->transb;
  g.type_a = d->type_a, g.type_b = d->type_b, g.type_c = d->type_c, g.type_scalar = d->type_scalar;
  g.math = d->math;
  g.group_count = d->batch_count;
  g.m = d->m, g.n = d->n, g.k = d->k;
  g.alpha = d->alpha, g.beta = d->beta;
  g.a_array = call->a, g.b_array = call->b, g.c_array = call->c;
  g.lda = d->lda, g.ldb = d->ldb, g.ldc = d->ldc;
  return wsgemm_gemm_grouped(handle, &g);
}

/* Settings of the handle and the call are one step, whoever else uses the same cuBLAS handle. */
static ws_cublas_reason compute(ws_cublas_call *call, ws_cublas_state *state, wsgemm_status *wsgemm) {
  ws_cublas_reason reason = WS_CUBLAS_TAKEN;
  pthread_mutex_lock(&state->lock);
  wsgemm_status status = state->handle ? WSGEMM_SUCCESS : wsgemm_create(&state->handle);
  if (!call->is_lt) call->workspace = state->workspace, call->workspace_bytes = state->workspace_bytes;
  const memory memory = status == WSGEMM_SUCCESS ? memory_for(call, state->handle) : MEMORY_OWN;
  const bool is_given = memory == MEMORY_WORKSPACE;
  if (memory == MEMORY_NONE) {
    reason = WS_CUBLAS_CAPTURE;
  } else {
    if (status == WSGEMM_SUCCESS) status = wsgemm_set_stream(state->handle, call->stream);
    if (status == WSGEMM_SUCCESS) /* or ends the one of an earlier call */
      status = wsgemm_set_workspace(state->handle, is_given ? call->workspace : NULL, is_given ? call->workspace_bytes : 0);
    if (status == WSGEMM_SUCCESS)
      status = call->is_level3    ? wsgemm_level3(state->handle, &call->desc.level3)
               : call->has_arrays ? compute_batch(call, state->handle)
                                  : wsgemm_gemm(state->handle, &call->desc.gemm);
    if (status != WSGEMM_SUCCESS && status != WSGEMM_DEVICE_ERROR) reason = WS_CUBLAS_REFUSED;
  }
  pthread_mutex_unlock(&state->lock);
  *wsgemm = status;
  return reason;
}

/* What is written; of a batch by pointers the array that says where, which the host does not read. */
static const void *written_by(const ws_cublas_call *call) {
  const wsgemm_level3_desc *const l = &call->desc.level3;
  if (call->is_level3) return l->routine == WSGEMM_TRSM ? l->b : l->c;
  return call->has_arrays ? (const void *)call->c : call->desc.gemm.c;
}

/* Host memory would be the CPU's: so this must be a GPU's, and wsgemm refuses a mixture. */
static ws_cublas_reason check_place(const ws_cublas_call *call) {
  const ws_cublas_place place = ws_cublas_place_of(written_by(call));
  if (!place.is_device) return WS_CUBLAS_MEMORY;
  return place.cc == 90 || ws_cublas_settings_now.takes_all ? WS_CUBLAS_TAKEN : WS_CUBLAS_DEVICE;
}

static ws_cublas_reason decide(ws_cublas_call *call, wsgemm_status *wsgemm) {
  if (ws_cublas_settings_now.is_off) return WS_CUBLAS_OFF;
  const product p = product_of(call);
  ws_cublas_reason reason = first_reason(call, &p);
  if (reason != WS_CUBLAS_TAKEN) return reason;
  if (ws_cublas_is_forked()) return WS_CUBLAS_FORKED;
  wsgemm_math *const math = call->is_level3 ? &call->desc.level3.math : &call->desc.gemm.math;
  if ((reason = read_modes(call, math)) != WS_CUBLAS_TAKEN) return reason;
  *math = math_for(p.type, *math);
  const ws_cublas_win *const win = find_win(&p, *math);
  if (!ws_cublas_settings_now.takes_all && !win) return WS_CUBLAS_SPEED;
  if ((reason = set_scalars(call)) != WS_CUBLAS_TAKEN) return reason;
  if ((reason = check_place(call)) != WS_CUBLAS_TAKEN) return reason;
  ws_cublas_state *const state = ws_cublas_state_of(call->handle, true);
  if (!state) return WS_CUBLAS_STATE;
  reason = compute(call, state, wsgemm);
  const double n_batch = call->is_level3 || call->has_arrays ? 1 : (double)call->desc.gemm.batch_count;
  const bool is_done = reason == WS_CUBLAS_TAKEN && *wsgemm == WSGEMM_SUCCESS;
  call->saved_us = is_done && win ? n_batch * products_of(&p) * 1e-9 * win->saved : 0;
  return reason;
}

/* After WSGEMM_DEVICE_ERROR C may be partly written, so cuBLAS cannot begin again. */
bool ws_cublas_take(ws_cublas_call *call, cublasStatus_t *status) {
  if (ws_cublas_depth > 0) return false;
  wsgemm_status wsgemm = WSGEMM_SUCCESS;
  const ws_cublas_reason reason = decide(call, &wsgemm);
  if (__builtin_expect(ws_cublas_settings_now.is_logged || ws_cublas_settings_now.has_summary, 0))
    ws_cublas_note(call, reason, wsgemm);
  *status = wsgemm == WSGEMM_SUCCESS ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_EXECUTION_FAILED;
  return reason == WS_CUBLAS_TAKEN;
}
