/* lt.c - cublasLtMatmul: D = act(alpha op(A) op(B) + beta C + bias), where its descriptors ask for no
 * more than wsgemm's: column-major, one type or half precision in FP32, C that is D or not read, bias of
 * D's rows, ReLU, GELU by tanh. The algorithm is cuBLASLt's own and left alone.
 *
 * Descriptors are read through the real library's getters, sizes and types first: most calls end there. */
#include <string.h>

#include "cublas/types.h"

/* The getters of a handle's library; `is_read`: all that was asked for and had to be there was. */
typedef struct reader {
  __typeof__(&cublasLtMatrixLayoutGetAttribute) layout;
  __typeof__(&cublasLtMatmulDescGetAttribute) product;
  bool is_read;
} reader;

static int64_t of_layout(reader *r, cublasLtMatrixLayout_t layout, cublasLtMatrixLayoutAttribute_t what, size_t bytes) {
  uint32_t narrow = 0;
  int64_t wide = 0;
  size_t n = 0;
  void *const value = bytes == sizeof narrow ? (void *)&narrow : (void *)&wide;
  if (r->layout(layout, what, value, bytes, &n) != CUBLAS_STATUS_SUCCESS || n != bytes) r->is_read = false;
  return bytes == sizeof narrow ? (int64_t)(int32_t)narrow : wide;
}
#define NARROW(layout, what) of_layout(r, layout, CUBLASLT_MATRIX_LAYOUT_##what, 4)
#define WIDE(layout, what) of_layout(r, layout, CUBLASLT_MATRIX_LAYOUT_##what, 8)

static int32_t of_product(reader *r, cublasLtMatmulDesc_t desc, cublasLtMatmulDescAttributes_t what) {
  int32_t value = 0;
  size_t n = 0;
  if (r->product(desc, what, &value, sizeof value, &n) != CUBLAS_STATUS_SUCCESS || n != sizeof value) r->is_read = false;
  return value;
}
#define PRODUCT(what) of_product(r, desc, CUBLASLT_MATMUL_DESC_##what)

/* What only some versions have; 0 where it does not exist. */
static uint64_t optional(const reader *r, cublasLtMatmulDesc_t desc, cublasLtMatmulDescAttributes_t what, size_t bytes) {
  uint64_t value = 0;
  size_t n = 0;
  return r->product(desc, what, &value, bytes, &n) == CUBLAS_STATUS_SUCCESS ? value : 0;
}
#define OPTIONAL(what, bytes) optional(r, desc, CUBLASLT_MATMUL_DESC_##what, bytes)

static bool is_plain(reader *r, cublasLtMatrixLayout_t layout) {
  uint32_t mode = 0;
  size_t n = 0;
  const bool is_strided =
      r->layout(layout, (cublasLtMatrixLayoutAttribute_t)8, &mode, sizeof mode, &n) != CUBLAS_STATUS_SUCCESS ||
      mode == 0; /* CUBLASLT_MATRIX_LAYOUT_BATCH_MODE, which 12 lacks */
  return is_strided && NARROW(layout, ORDER) == CUBLASLT_ORDER_COL && WIDE(layout, PLANE_OFFSET) == 0;
}

/* The matrix C is D itself. */
static bool is_same(reader *r, cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d) {
  return c == d ||
         (NARROW(c, TYPE) == NARROW(d, TYPE) && NARROW(c, ORDER) == NARROW(d, ORDER) && WIDE(c, LD) == WIDE(d, LD) &&
          WIDE(c, ROWS) == WIDE(d, ROWS) && WIDE(c, COLS) == WIDE(d, COLS) && NARROW(c, BATCH_COUNT) == NARROW(d, BATCH_COUNT) &&
          WIDE(c, STRIDED_BATCH_OFFSET) == WIDE(d, STRIDED_BATCH_OFFSET));
}

static bool is_zero(const void *scalar, wsgemm_type type) {
  const float *const s = scalar;
  const double *const d = scalar;
  switch (type) {
  case WSGEMM_F64:
    return d[0] == 0;
  case WSGEMM_C64:
    return d[0] == 0 && d[1] == 0;
  case WSGEMM_C32:
    return s[0] == 0 && s[1] == 0;
  default:
    return s[0] == 0;
  }
}

/* Operands, k and types: with C's size all that wins.def looks at first. */
static void read_operands(reader *r, ws_cublas_call *call, cublasLtMatmulDesc_t desc, cublasLtMatrixLayout_t a,
                          cublasLtMatrixLayout_t b, cublasLtMatrixLayout_t d) {
  wsgemm_gemm_desc *const g = &call->desc.gemm;
  const cublasOperation_t transa = (cublasOperation_t)PRODUCT(TRANSA), transb = (cublasOperation_t)PRODUCT(TRANSB);
  const cublasComputeType_t compute = (cublasComputeType_t)PRODUCT(COMPUTE_TYPE);
  g->transa = op_of(transa, &call->is_bad), g->transb = op_of(transb, &call->is_bad);
  g->k = transa == CUBLAS_OP_N ? WIDE(a, COLS) : WIDE(a, ROWS);
  g->lda = WIDE(a, LD), g->ldb = WIDE(b, LD), g->ldc = WIDE(d, LD);
  call->is_foreign =
      !set_types(call, (cudaDataType)NARROW(a, TYPE), (cudaDataType)NARROW(b, TYPE), (cudaDataType)NARROW(d, TYPE), compute) ||
      !r->is_read;
}

static bool has_epilogue(reader *r, ws_cublas_call *call, cublasLtMatmulDesc_t desc) {
  wsgemm_gemm_desc *const g = &call->desc.gemm;
  const int epilogue = PRODUCT(EPILOGUE);
  switch (epilogue & ~CUBLASLT_EPILOGUE_BIAS) {
  case 0:
  case CUBLASLT_EPILOGUE_DEFAULT:
    g->epilogue = WSGEMM_EPILOGUE_NONE;
    break;
  case CUBLASLT_EPILOGUE_RELU:
    g->epilogue = WSGEMM_EPILOGUE_RELU;
    break;
  case CUBLASLT_EPILOGUE_GELU:
    g->epilogue = WSGEMM_EPILOGUE_GELU_TANH;
    break;
  default:
    return false;
  }
  if (!(epilogue & CUBLASLT_EPILOGUE_BIAS)) return true;
  static const cudaDataType_t types[] = {CUDA_R_32F, CUDA_R_64F, CUDA_C_32F, CUDA_C_64F, CUDA_R_16F, CUDA_R_16BF};
  g->bias = (const void *)(uintptr_t)OPTIONAL(BIAS_POINTER, 8);
  g->stride_bias = (int64_t)OPTIONAL(BIAS_BATCH_STRIDE, 8);
  const int32_t type = (int32_t)(uint32_t)OPTIONAL(BIAS_DATA_TYPE, 4);
  const bool is_half = g->type_c == WSGEMM_F16 || g->type_c == WSGEMM_BF16;
  g->type_bias = is_half && type == CUDA_R_32F ? WSGEMM_F32 : g->type_c;
  g->bias_per = WSGEMM_BIAS_PER_ROW;
  return g->bias && (type == -1 || type == (int32_t)types[g->type_bias]);
}

/* All else that a descriptor may ask for; false: what wsgemm does not have. */
static bool read_rest(reader *r, ws_cublas_call *call, cublasLtMatmulDesc_t desc, cublasLtMatrixLayout_t a,
                      cublasLtMatrixLayout_t b, cublasLtMatrixLayout_t d) {
  static const cudaDataType_t scales[] = {CUDA_R_32F, CUDA_R_64F, CUDA_C_32F, CUDA_C_64F};
  wsgemm_gemm_desc *const g = &call->desc.gemm;
  if (!is_plain(r, a) || !is_plain(r, b) || !is_plain(r, d) || !has_epilogue(r, call, desc)) return false;
  if (PRODUCT(SCALE_TYPE) != (int32_t)scales[g->type_scalar] || PRODUCT(TRANSC) != CUBLAS_OP_N ||
      PRODUCT(FILL_MODE) != CUBLAS_FILL_MODE_FULL)
    return false;
  if (OPTIONAL(SM_COUNT_TARGET, 4) || OPTIONAL(A_SCALE_POINTER, 8) || OPTIONAL(B_SCALE_POINTER, 8) ||
      OPTIONAL(C_SCALE_POINTER, 8) || OPTIONAL(D_SCALE_POINTER, 8) || OPTIONAL(AMAX_D_POINTER, 8))
    return false;
  const bool is_transa = g->transa != WSGEMM_NO_TRANS, is_transb = g->transb != WSGEMM_NO_TRANS;
  const int64_t n_products = NARROW(d, BATCH_COUNT);
  if ((is_transa ? WIDE(a, COLS) : WIDE(a, ROWS)) != g->m || (is_transb ? WIDE(b, ROWS) : WIDE(b, COLS)) != g->n ||
      (is_transb ? WIDE(b, COLS) : WIDE(b, ROWS)) != g->k || NARROW(a, BATCH_COUNT) != n_products ||
      NARROW(b, BATCH_COUNT) != n_products)
    return false;
  g->batch_count = n_products;
  g->stride_a = WIDE(a, STRIDED_BATCH_OFFSET), g->stride_b = WIDE(b, STRIDED_BATCH_OFFSET);
  g->stride_c = WIDE(d, STRIDED_BATCH_OFFSET);
  call->scalars = (cublasPointerMode_t)PRODUCT(POINTER_MODE);
  return r->is_read;
}

/* A C that is read is D. */
static bool has_own_c(reader *r, const ws_cublas_call *call, const void *c, cublasLtMatrixLayout_t layout_c, const void *d,
                      cublasLtMatrixLayout_t layout_d) {
  if (call->scalars == CUBLAS_POINTER_MODE_HOST && call->beta && is_zero(call->beta, call->type_beta)) return true;
  return c == d && layout_c && is_same(r, layout_c, layout_d) && r->is_read;
}

WS_CUBLAS_EXPORT cublasStatus_t cublasLtMatmul(cublasLtHandle_t handle, cublasLtMatmulDesc_t desc, const void *alpha,
                                               const void *A, cublasLtMatrixLayout_t layout_a, const void *B,
                                               cublasLtMatrixLayout_t layout_b, const void *beta, const void *C,
                                               cublasLtMatrixLayout_t layout_c, void *D, cublasLtMatrixLayout_t layout_d,
                                               const cublasLtMatmulAlgo_t *algo, void *workspace, size_t workspace_bytes,
                                               cudaStream_t stream) {
  reader r = {NULL, NULL, true};
  if (ws_cublas_depth == 0 && !ws_cublas_settings_now.is_off) {
    r.layout = WS_CUBLAS_REAL(cublasLtMatrixLayoutGetAttribute, handle);
    r.product = WS_CUBLAS_REAL(cublasLtMatmulDescGetAttribute, handle);
  }
  if (r.layout && r.product && desc && layout_a && layout_b && layout_d) {
    ws_cublas_call call;
    memset(&call, 0, sizeof call);
    call.function = WS_cublasLtMatmul, call.handle = handle, call.is_lt = true;
    call.alpha = alpha, call.beta = beta, call.stream = stream;
    call.workspace = workspace, call.workspace_bytes = workspace_bytes;
    call.desc.gemm = (wsgemm_gemm_desc)WSGEMM_GEMM_DESC_INIT;
    call.desc.gemm.a = A, call.desc.gemm.b = B, call.desc.gemm.c = D;
    call.desc.gemm.m = of_layout(&r, layout_d, CUBLASLT_MATRIX_LAYOUT_ROWS, 8);
    call.desc.gemm.n = of_layout(&r, layout_d, CUBLASLT_MATRIX_LAYOUT_COLS, 8);
    const bool is_small = ws_cublas_is_small(call.desc.gemm.m, call.desc.gemm.n);
    if (!is_small) read_operands(&r, &call, desc, layout_a, layout_b, layout_d);
    if (!is_small && !call.is_foreign && ws_cublas_may_win(&call))
      call.is_foreign =
          !read_rest(&r, &call, desc, layout_a, layout_b, layout_d) || !has_own_c(&r, &call, C, layout_c, D, layout_d);
    cublasStatus_t status;
    if (ws_cublas_take(&call, &status)) return status;
  }
  PASS_ON(cublasLtMatmul, handle, handle, desc, alpha, A, layout_a, B, layout_b, beta, C, layout_c, D, layout_d, algo, workspace,
          workspace_bytes, stream);
}
