/* test_cublas_lt.c - cublasLtMatmul and the types of cublasGemmEx with WSGEMM_CUBLAS=all: which
 * descriptors become which product of wsgemm, and which are cuBLAS's. */
#include <string.h>

#include "cublas_case.h"
#include "host/fake_driver.h"

/* CUBLASLT_MATRIX_LAYOUT_BATCH_MODE, and compute type 78: what headers of CUDA 12 lack. */
enum { BATCH_MODE = 8 };

/* A product D = op(A) op(B) of F32, 210 x 220 x 230, as a program would describe it. */
typedef struct lt_product {
  fake_attributes desc, a, b, c, d;
  float alpha[2], beta[2];
  const void *in_c;
  cublasLtHandle_t handle;
} lt_product;

static void set_layout(fake_attributes *layout, int64_t rows, int64_t cols, int64_t ld) {
  layout->value[CUBLASLT_MATRIX_LAYOUT_ROWS] = rows;
  layout->value[CUBLASLT_MATRIX_LAYOUT_COLS] = cols;
  layout->value[CUBLASLT_MATRIX_LAYOUT_LD] = ld;
  layout->value[CUBLASLT_MATRIX_LAYOUT_ORDER] = CUBLASLT_ORDER_COL;
  layout->value[CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT] = 1;
  layout->value[CUBLASLT_MATRIX_LAYOUT_TYPE] = CUDA_R_32F;
}

static lt_product plain_product(void) {
  lt_product p;
  memset(&p, 0, sizeof p);
  set_layout(&p.a, 230, 210, 240);
  set_layout(&p.b, 230, 220, 250);
  set_layout(&p.c, 210, 220, 260);
  p.d = p.c;
  int64_t *const v = p.desc.value;
  v[CUBLASLT_MATMUL_DESC_COMPUTE_TYPE] = CUBLAS_COMPUTE_32F, v[CUBLASLT_MATMUL_DESC_SCALE_TYPE] = CUDA_R_32F;
  v[CUBLASLT_MATMUL_DESC_TRANSA] = CUBLAS_OP_T, v[CUBLASLT_MATMUL_DESC_TRANSB] = CUBLAS_OP_N;
  v[CUBLASLT_MATMUL_DESC_FILL_MODE] = CUBLAS_FILL_MODE_FULL;
  v[CUBLASLT_MATMUL_DESC_EPILOGUE] = CUBLASLT_EPILOGUE_DEFAULT;
  v[CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE] = -1;
  p.alpha[0] = 2, p.beta[0] = 5;
  p.in_c = matrix[2];
  p.handle = (cublasLtHandle_t)handle;
  return p;
}

static bool is_taken(lt_product *p) {
  const int n_products = wsgemm.n_products, n_calls = fake_cublas.n_calls;
  cublasLtMatmulAlgo_t algo;
  memset(&algo, 0, sizeof algo);
  fake_cublas.status = CUBLAS_STATUS_SUCCESS;
  const cublasStatus_t status =
      cublasLtMatmul(p->handle, (cublasLtMatmulDesc_t)&p->desc, p->alpha, matrix[0], (cublasLtMatrixLayout_t)&p->a, matrix[1],
                     (cublasLtMatrixLayout_t)&p->b, p->beta, p->in_c, (cublasLtMatrixLayout_t)&p->c, matrix[2],
                     (cublasLtMatrixLayout_t)&p->d, &algo, matrix[0], 4096, (cudaStream_t)&fake.stream[7]);
  CHECK(status == CUBLAS_STATUS_SUCCESS && wsgemm.n_products + fake_cublas.n_calls == n_products + n_calls + 1, "status %d",
        (int)status);
  if (wsgemm.n_products == n_products)
    CHECK(fake_cublas.n_arguments == 15 && fake_cublas.argument[0] == (long long)(uintptr_t)&p->desc &&
              fake_cublas.argument[9] == (long long)(uintptr_t)matrix[2] &&
              fake_cublas.argument[11] == (long long)(uintptr_t)&algo && fake_cublas.argument[13] == 4096 &&
              fake_cublas.argument[14] == (long long)(uintptr_t)&fake.stream[7],
          "passed on as it was");
  return wsgemm.n_products > n_products;
}

static void plain(void) {
  begin_case();
  lt_product p = plain_product();
  CHECK(is_taken(&p), "plain");
  const wsgemm_gemm_desc *const d = &wsgemm.gemm;
  CHECK(d->m == 210 && d->n == 220 && d->k == 230 && d->lda == 240 && d->ldb == 250 && d->ldc == 260, "sizes");
  CHECK(d->transa == WSGEMM_TRANS && d->transb == WSGEMM_NO_TRANS && d->math == WSGEMM_MATH_DEFAULT && d->alpha.s == 2 &&
            d->beta.s == 5,
        "ops and scalars");
  CHECK(d->a == matrix[0] && d->b == matrix[1] && d->c == matrix[2] && wsgemm.stream == &fake.stream[7] && d->batch_count == 1,
        "operands");
  CHECK(d->epilogue == WSGEMM_EPILOGUE_NONE && !d->bias, "epilogue");
  p.a.is_unknown[BATCH_MODE] = true; /* 12.x */
  CHECK(is_taken(&p), "an older version");
  p.desc.value[CUBLASLT_MATMUL_DESC_COMPUTE_TYPE] = CUBLAS_COMPUTE_32F_FAST_TF32;
  CHECK(is_taken(&p) && d->math == WSGEMM_MATH_TF32, "TF32");
  p.desc.value[CUBLASLT_MATMUL_DESC_COMPUTE_TYPE] = CUBLAS_COMPUTE_32F_PEDANTIC;
  CHECK(is_taken(&p) && d->math == WSGEMM_MATH_PEDANTIC, "pedantic");
  p.desc.value[CUBLASLT_MATMUL_DESC_POINTER_MODE] = CUBLASLT_POINTER_MODE_DEVICE;
  CHECK(is_taken(&p) && d->scalar_mode == WSGEMM_SCALAR_DEVICE && d->alpha.device == p.alpha, "scalars in device memory");
}

static void batches(void) {
  begin_case();
  lt_product p = plain_product();
  fake_attributes *const layouts[] = {&p.a, &p.b, &p.c, &p.d};
  for (int i = 0; i < 4; i++) {
    layouts[i]->value[CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT] = 3;
    layouts[i]->value[CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET] = 100000 + (i > 2 ? 2 : i);
  }
  p.desc.value[CUBLASLT_MATMUL_DESC_EPILOGUE] = CUBLASLT_EPILOGUE_BIAS;
  p.desc.value[CUBLASLT_MATMUL_DESC_BIAS_POINTER] = (int64_t)(uintptr_t)(matrix[0] + 512);
  p.desc.value[CUBLASLT_MATMUL_DESC_BIAS_BATCH_STRIDE] = 210;
  CHECK(is_taken(&p) && wsgemm.gemm.batch_count == 3 && wsgemm.gemm.stride_a == 100000 && wsgemm.gemm.stride_b == 100001 &&
            wsgemm.gemm.stride_c == 100002 && wsgemm.gemm.stride_bias == 210,
        "batch");
  p.b.value[CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT] = 1;
  CHECK(!is_taken(&p), "batches of different lengths");
}

static void epilogues(void) {
  static const struct {
    int epilogue;
    bool is_taken, has_bias;
    wsgemm_epilogue act;
  } all[] = {{CUBLASLT_EPILOGUE_RELU, true, false, WSGEMM_EPILOGUE_RELU},
             {CUBLASLT_EPILOGUE_BIAS, true, true, WSGEMM_EPILOGUE_NONE},
             {CUBLASLT_EPILOGUE_RELU_BIAS, true, true, WSGEMM_EPILOGUE_RELU},
             {CUBLASLT_EPILOGUE_GELU, true, false, WSGEMM_EPILOGUE_GELU_TANH},
             {CUBLASLT_EPILOGUE_GELU_BIAS, true, true, WSGEMM_EPILOGUE_GELU_TANH},
             {CUBLASLT_EPILOGUE_RELU_AUX, false, false, 0},
             {CUBLASLT_EPILOGUE_GELU_AUX_BIAS, false, false, 0},
             {CUBLASLT_EPILOGUE_DRELU, false, false, 0},
             {CUBLASLT_EPILOGUE_DGELU_BGRAD, false, false, 0},
             {CUBLASLT_EPILOGUE_BGRADA, false, false, 0},
             {CUBLASLT_EPILOGUE_BGRADB, false, false, 0}};
  begin_case();
  for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
    lt_product p = plain_product();
    const wsgemm_gemm_desc *const d = &wsgemm.gemm;
    p.desc.value[CUBLASLT_MATMUL_DESC_EPILOGUE] = all[i].epilogue;
    p.desc.value[CUBLASLT_MATMUL_DESC_BIAS_POINTER] = (int64_t)(uintptr_t)(matrix[0] + 512);
    CHECK(is_taken(&p) == all[i].is_taken, "epilogue %d", all[i].epilogue);
    if (!all[i].is_taken) continue;
    CHECK(d->epilogue == all[i].act && d->bias == (all[i].has_bias ? matrix[0] + 512 : NULL), "epilogue %d", all[i].epilogue);
    CHECK(!all[i].has_bias || (d->bias_per == WSGEMM_BIAS_PER_ROW && d->type_bias == WSGEMM_F32), "bias of %d", all[i].epilogue);
  }
  lt_product p = plain_product();
  p.desc.value[CUBLASLT_MATMUL_DESC_EPILOGUE] = CUBLASLT_EPILOGUE_BIAS;
  CHECK(!is_taken(&p), "no bias where one is asked for");
  p.desc.value[CUBLASLT_MATMUL_DESC_BIAS_POINTER] = (int64_t)(uintptr_t)matrix[0];
  p.desc.value[CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE] = CUDA_R_16F;
  CHECK(!is_taken(&p), "a bias of another type");
}

/* C is D, or beta is 0 and C is not read. */
static void other_c(void) {
  begin_case();
  lt_product p = plain_product();
  p.in_c = matrix[1];
  CHECK(!is_taken(&p), "another C that is read");
  p.beta[0] = 0;
  CHECK(is_taken(&p), "another C that is not read");
  p = plain_product();
  p.c.value[CUBLASLT_MATRIX_LAYOUT_LD] = 261;
  CHECK(!is_taken(&p), "another ld of C");
}

/* Whatever wsgemm does not have. */
static void foreign(void) {
  static const struct {
    int what;
    int64_t value;
  } asked[] = {{CUBLASLT_MATMUL_DESC_COMPUTE_TYPE, CUBLAS_COMPUTE_32F_FAST_16BF},
               {CUBLASLT_MATMUL_DESC_COMPUTE_TYPE, 78},
               {CUBLASLT_MATMUL_DESC_SCALE_TYPE, CUDA_R_64F},
               {CUBLASLT_MATMUL_DESC_TRANSC, CUBLAS_OP_T},
               {CUBLASLT_MATMUL_DESC_FILL_MODE, CUBLAS_FILL_MODE_LOWER},
               {CUBLASLT_MATMUL_DESC_SM_COUNT_TARGET, 100},
               {CUBLASLT_MATMUL_DESC_A_SCALE_POINTER, 4096},
               {CUBLASLT_MATMUL_DESC_D_SCALE_POINTER, 4096},
               {CUBLASLT_MATMUL_DESC_AMAX_D_POINTER, 4096},
               {CUBLASLT_MATMUL_DESC_POINTER_MODE, 2},
               {CUBLASLT_MATMUL_DESC_TRANSA, 3}};
  static const struct {
    int what;
    int64_t value;
  } laid_out[] = {{CUBLASLT_MATRIX_LAYOUT_ORDER, CUBLASLT_ORDER_ROW},
                  {CUBLASLT_MATRIX_LAYOUT_TYPE, CUDA_R_8I},
                  {CUBLASLT_MATRIX_LAYOUT_PLANE_OFFSET, 4096},
                  {BATCH_MODE, 1},
                  {CUBLASLT_MATRIX_LAYOUT_ROWS, 17}};
  begin_case();
  for (size_t i = 0; i < sizeof asked / sizeof asked[0]; i++) {
    lt_product p = plain_product();
    p.desc.value[asked[i].what] = asked[i].value;
    CHECK(!is_taken(&p), "attribute %d = %lld", asked[i].what, (long long)asked[i].value);
  }
  for (size_t i = 0; i < sizeof laid_out / sizeof laid_out[0]; i++)
    for (int which = 0; which < 3; which++) {
      lt_product p = plain_product();
      (which == 0 ? &p.a : which == 1 ? &p.b : &p.d)->value[laid_out[i].what] = laid_out[i].value;
      CHECK(!is_taken(&p), "layout %d: attribute %d = %lld", which, laid_out[i].what, (long long)laid_out[i].value);
    }
  lt_product p = plain_product();
  p.handle = NULL;
  CHECK(!is_taken(&p), "no handle");
  p = plain_product();
  p.d.is_unknown[CUBLASLT_MATRIX_LAYOUT_ROWS] = true;
  CHECK(!is_taken(&p), "an attribute that cannot be read");
}

/* Handles of cuBLASLt's own have records like the others. */
static void handles(void) {
  begin_case();
  cublasLtHandle_t own = NULL;
  REQUIRE(cublasLtCreate(&own) == CUBLAS_STATUS_SUCCESS && own, "no handle");
  lt_product p = plain_product();
  p.handle = own;
  CHECK(is_taken(&p) && wsgemm.n_handles == 1, "taken");
  CHECK(cublasLtDestroy(own) == CUBLAS_STATUS_SUCCESS && wsgemm.n_handles == 0 && fake_cublas.n_calls_of[WS_cublasLtDestroy] == 1,
        "ended");
}

/* cublasGemmEx: types of A and B, of C, and compute type. */
static void types(void) {
  enum { NOT = -1 };
  static const struct {
    cudaDataType ab, c;
    cublasComputeType_t compute;
    int type, type_c, scalar;
    wsgemm_math math;
  } all[] = {{CUDA_R_32F, CUDA_R_32F, CUBLAS_COMPUTE_32F, WSGEMM_F32, WSGEMM_F32, WSGEMM_F32, WSGEMM_MATH_DEFAULT},
             {CUDA_R_32F, CUDA_R_32F, CUBLAS_COMPUTE_32F_FAST_TF32, WSGEMM_F32, WSGEMM_F32, WSGEMM_F32, WSGEMM_MATH_TF32},
             {CUDA_R_32F, CUDA_R_32F, CUBLAS_COMPUTE_32F_PEDANTIC, WSGEMM_F32, WSGEMM_F32, WSGEMM_F32, WSGEMM_MATH_PEDANTIC},
             {CUDA_R_32F, CUDA_R_32F, CUBLAS_COMPUTE_32F_FAST_16F, NOT, 0, 0, 0},
             {CUDA_R_32F, CUDA_R_32F, (cublasComputeType_t)78, NOT, 0, 0, 0},
             {CUDA_C_32F, CUDA_C_32F, CUBLAS_COMPUTE_32F_FAST_TF32, WSGEMM_C32, WSGEMM_C32, WSGEMM_C32, WSGEMM_MATH_TF32},
             {CUDA_R_64F, CUDA_R_64F, CUBLAS_COMPUTE_64F, WSGEMM_F64, WSGEMM_F64, WSGEMM_F64, WSGEMM_MATH_DEFAULT},
             {CUDA_C_64F, CUDA_C_64F, CUBLAS_COMPUTE_64F_PEDANTIC, WSGEMM_C64, WSGEMM_C64, WSGEMM_C64, WSGEMM_MATH_PEDANTIC},
             {CUDA_R_64F, CUDA_R_64F, CUBLAS_COMPUTE_32F, NOT, 0, 0, 0},
             {CUDA_R_16F, CUDA_R_16F, CUBLAS_COMPUTE_32F, WSGEMM_F16, WSGEMM_F16, WSGEMM_F32, WSGEMM_MATH_DEFAULT},
             {CUDA_R_16F, CUDA_R_32F, CUBLAS_COMPUTE_32F, WSGEMM_F16, WSGEMM_F32, WSGEMM_F32, WSGEMM_MATH_DEFAULT},
             {CUDA_R_16BF, CUDA_R_16BF, CUBLAS_COMPUTE_32F_PEDANTIC, WSGEMM_BF16, WSGEMM_BF16, WSGEMM_F32, WSGEMM_MATH_PEDANTIC},
             {CUDA_R_16BF, CUDA_R_32F, CUBLAS_COMPUTE_32F, WSGEMM_BF16, WSGEMM_F32, WSGEMM_F32, WSGEMM_MATH_DEFAULT},
             {CUDA_R_16F, CUDA_R_16F, CUBLAS_COMPUTE_16F, NOT, 0, 0, 0},
             {CUDA_R_16F, CUDA_R_16F, CUBLAS_COMPUTE_32F_FAST_TF32, NOT, 0, 0, 0},
             {CUDA_R_16F, CUDA_R_16BF, CUBLAS_COMPUTE_32F, NOT, 0, 0, 0},
             {CUDA_R_8I, CUDA_R_32I, CUBLAS_COMPUTE_32I, NOT, 0, 0, 0}};
  begin_case();
  for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
    const int n_products = wsgemm.n_products;
    cublasGemmEx(handle, CUBLAS_OP_N, CUBLAS_OP_N, 99, 98, 97, alpha_of(WSGEMM_C64), matrix[0], all[i].ab, 99, matrix[1],
                 all[i].ab, 97, beta_of(WSGEMM_C64), matrix[2], all[i].c, 99, all[i].compute, CUBLAS_GEMM_DEFAULT);
    CHECK((wsgemm.n_products > n_products) == (all[i].type != NOT), "types %zu", i);
    if (all[i].type == NOT) continue;
    const wsgemm_gemm_desc *const d = &wsgemm.gemm;
    CHECK((int)d->type_a == all[i].type && (int)d->type_b == all[i].type && (int)d->type_c == all[i].type_c &&
              (int)d->type_scalar == all[i].scalar && d->math == all[i].math,
          "types %zu: %d %d %d", i, (int)d->type_a, (int)d->type_c, (int)d->math);
  }
  fake_cublas.math = CUBLAS_TF32_TENSOR_OP_MATH; /* no class of half precision */
  cublasGemmEx(handle, CUBLAS_OP_N, CUBLAS_OP_N, 99, 98, 97, alpha_of(WSGEMM_F32), matrix[0], CUDA_R_16F, 99, matrix[1],
               CUDA_R_16F, 97, beta_of(WSGEMM_F32), matrix[2], CUDA_R_16F, 99, CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT);
  CHECK(wsgemm.gemm.math == WSGEMM_MATH_DEFAULT, "math %d", (int)wsgemm.gemm.math);
  fake_cublas.math = CUBLAS_PEDANTIC_MATH;
  cublasGemmEx(handle, CUBLAS_OP_N, CUBLAS_OP_N, 99, 98, 97, alpha_of(WSGEMM_F32), matrix[0], CUDA_R_32F, 99, matrix[1],
               CUDA_R_32F, 97, beta_of(WSGEMM_F32), matrix[2], CUDA_R_32F, 99, CUBLAS_COMPUTE_32F_FAST_TF32, CUBLAS_GEMM_DEFAULT);
  CHECK(wsgemm.gemm.math == WSGEMM_MATH_PEDANTIC, "math %d", (int)wsgemm.gemm.math);
}

/* The call's own, of 4096 bytes, if it holds what wsgemm wants; never the handle's, which is for that one's stream. */
static void workspaces(void) {
  begin_case();
  lt_product p = plain_product();
  REQUIRE(cublasSetWorkspace_v2(handle, matrix[1], 1 << 20) == CUBLAS_STATUS_SUCCESS, "the handle's");
  wsgemm.workspace_wanted = 4096;
  CHECK(is_taken(&p) && wsgemm.workspace == matrix[0] && wsgemm.workspace_bytes == 4096, "the call's workspace");
  wsgemm.workspace_wanted = 4097;
  CHECK(is_taken(&p) && !wsgemm.workspace, "too small a workspace");
  wsgemm.workspace_wanted = 0;
  CHECK(is_taken(&p) && !wsgemm.workspace, "a workspace that is not wanted");
}

static const struct check_case cases[] = {
    {"plain", plain},     {"workspaces", workspaces}, {"batches", batches}, {"epilogues", epilogues},
    {"other_c", other_c}, {"foreign", foreign},       {"handles", handles}, {"types", types},
};
CHECK_MAIN("cublas_lt", cases)
