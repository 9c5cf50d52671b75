/* test_cublas_calls.c - every routine of the interposer with WSGEMM_CUBLAS=all: what wsgemm is asked,
 * what cuBLAS is asked when wsgemm refuses, and which status the caller gets; functions that dlsym found. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cublas_case.h"
#include "host/fake_driver.h"

static const char *const names[WS_CUBLAS_N_FUNCTIONS] = {
#define FUNCTION(symbol) #symbol,
#include "cublas/functions.def"
#undef FUNCTION
};

static wsgemm_type type_of(char letter) {
  return letter == 'd' ? WSGEMM_F64 : letter == 'c' ? WSGEMM_C32 : letter == 'z' ? WSGEMM_C64 : WSGEMM_F32;
}

/* The scalars of the descriptor are 2 (+ 3i) and 5 (+ 7i), real ones followed by zeros. */
static void check_scalar(const char *name, wsgemm_scalar scalar, wsgemm_type type, bool is_real, double re, double im) {
  const double got_re = type == WSGEMM_F32 || type == WSGEMM_C32 ? (double)scalar.c.re : scalar.z.re;
  const double got_im = type == WSGEMM_C32 ? (double)scalar.c.im : type == WSGEMM_C64 ? scalar.z.im : 0;
  const bool has_im = (type == WSGEMM_C32 || type == WSGEMM_C64) && !is_real;
  CHECK(got_re == re && got_im == (has_im ? im : 0), "%s: scalar %g %g", name, got_re, got_im);
}

static void check_gemm(const routine *r) {
  const char *const name = names[r->function];
  const wsgemm_gemm_desc *const d = &wsgemm.gemm;
  const wsgemm_type type = type_of(r->letter);
  const bool is_batch = strncmp(r->family, "strided", 7) == 0;
  CHECK(d->struct_bytes == sizeof *d && d->layout == WSGEMM_COL_MAJOR && d->transa == WSGEMM_TRANS &&
            d->transb == WSGEMM_CONJ_TRANS,
        "%s: layout and ops", name);
  CHECK(d->m == shape.m && d->n == shape.n && d->k == shape.k && d->lda == shape.lda && d->ldb == shape.ldb &&
            d->ldc == shape.ldc,
        "%s: sizes", name);
  CHECK(d->a == matrix[0] && d->b == matrix[1] && d->c == matrix[2], "%s: pointers", name);
  CHECK(d->type_a == type && d->type_b == type && d->type_c == type && d->type_scalar == type, "%s: types", name);
  CHECK(d->math == WSGEMM_MATH_DEFAULT && d->scalar_mode == WSGEMM_SCALAR_VALUE && d->epilogue == WSGEMM_EPILOGUE_NONE &&
            !d->bias,
        "%s: modes", name);
  CHECK(d->batch_count == (is_batch ? 3 : 1) && d->stride_a == (is_batch ? 11 : 0) && d->stride_b == (is_batch ? 12 : 0) &&
            d->stride_c == (is_batch ? 13 : 0),
        "%s: batch", name);
  check_scalar(name, d->alpha, type, false, 2, 3);
  check_scalar(name, d->beta, type, false, 5, 7);
}

/* All that the descriptor of a batch by pointers says, but for its scalars; modes and what it does not say are as they begin. */
static void check_grouped(const char *name, wsgemm_type type, wsgemm_type type_c, wsgemm_type type_scalar, wsgemm_math math) {
  const wsgemm_grouped_desc *const d = &wsgemm.grouped;
  CHECK(wsgemm.is_grouped, "%s: not of groups", name);
  CHECK(d->struct_bytes == sizeof *d && d->layout == WSGEMM_COL_MAJOR && d->transa == WSGEMM_TRANS &&
            d->transb == WSGEMM_CONJ_TRANS,
        "%s: layout and ops", name);
  CHECK(d->m == shape.m && d->n == shape.n && d->k == shape.k && d->lda == shape.lda && d->ldb == shape.ldb &&
            d->ldc == shape.ldc && d->group_count == shape.count,
        "%s: sizes", name);
  CHECK(d->a_array == (void *)matrix[0] && d->b_array == (void *)matrix[1] && d->c_array == (void *)matrix[2] && !d->a && !d->b &&
            !d->c,
        "%s: pointers", name);
  CHECK(d->type_a == type && d->type_b == type && d->type_c == type_c && d->type_scalar == type_scalar && d->math == math,
        "%s: types", name);
  CHECK(d->ragged == WSGEMM_RAGGED_NONE && !d->offsets && !d->m_array && !d->n_array && !d->k_array && !d->lda_array &&
            !d->ldb_array && !d->ldc_array && d->epilogue == WSGEMM_EPILOGUE_NONE && !d->bias && !d->residual &&
            d->out_scale == 1,
        "%s: what it has not", name);
  check_scalar(name, d->alpha, type_scalar, false, 2, 3);
  check_scalar(name, d->beta, type_scalar, false, 5, 7);
}

static wsgemm_routine routine_of(const char *family) {
  static const char *const families[] = {"symm", "hemm", "syrk", "herk", "syr2k", "her2k", "gemmtr", "trmm", "trsm"};
  for (int i = 0; i < 9; i++)
    if (strcmp(families[i], family) == 0) return (wsgemm_routine)(i + 1);
  return (wsgemm_routine)0;
}

static void check_level3(const routine *r) {
  const char *const name = names[r->function];
  const wsgemm_level3_desc *const d = &wsgemm.level3;
  const wsgemm_type type = type_of(r->letter);
  const wsgemm_routine which = routine_of(r->family);
  const bool is_rank = which >= WSGEMM_SYRK && which <= WSGEMM_HER2K, is_triangle = which >= WSGEMM_TRMM;
  const bool has_b = which != WSGEMM_SYRK && which != WSGEMM_HERK, has_c = which != WSGEMM_TRSM;
  CHECK(d->struct_bytes == sizeof *d && d->routine == which && d->type == type && d->layout == WSGEMM_COL_MAJOR &&
            d->uplo == WSGEMM_LOWER && d->math == WSGEMM_MATH_DEFAULT,
        "%s: %d", name, (int)d->routine);
  CHECK(is_rank || d->side == WSGEMM_LEFT, "%s: side", name);
  CHECK((!is_rank && !is_triangle) || d->transa == WSGEMM_TRANS, "%s: op", name);
  CHECK(!is_triangle || d->diag == WSGEMM_UNIT, "%s: diag", name);
  CHECK(d->n == shape.n && (is_rank ? d->k == shape.k : d->m == shape.m), "%s: sizes", name);
  CHECK(d->a == matrix[0] && d->lda == shape.lda && d->b == (has_b ? matrix[1] : NULL) && (!has_b || d->ldb == shape.ldb) &&
            d->c == (has_c ? matrix[2] : NULL) && (!has_c || d->ldc == shape.ldc) && d->batch_count == 1,
        "%s: operands", name);
  check_scalar(name, d->alpha, type, which == WSGEMM_HERK, 2, 3);
  if (!is_triangle) check_scalar(name, d->beta, type, which == WSGEMM_HERK || which == WSGEMM_HER2K, 5, 7);
}

/* 64-bit sizes arrive whole. */
static void taken(void) {
  begin_case();
  for (int i = 0; i < n_routines; i++) {
    const routine *const r = &routines[i];
    if (r->is_wide)
      shape = (sizes){5000000001, 5000000002, 5000000003, 5000000004, 5000000005, 5000000006, 5000000007};
    else
      shape = (sizes){2100, 2200, 2300, 2501, 2502, 2503, 4};
    memset(&wsgemm.gemm, 0, sizeof wsgemm.gemm), memset(&wsgemm.level3, 0, sizeof wsgemm.level3);
    memset(&wsgemm.grouped, 0, sizeof wsgemm.grouped);
    wsgemm.n_products = 0;
    fake_cublas.stream = (cudaStream_t)&fake.stream[i % 100 + 1];
    const cublasStatus_t status = r->call();
    CHECK(status == CUBLAS_STATUS_SUCCESS && wsgemm.n_products == 1 && fake_cublas.n_calls == 0,
          "%s: status %d, %d products, %d of cuBLAS", names[r->function], (int)status, wsgemm.n_products, fake_cublas.n_calls);
    CHECK(wsgemm.stream == fake_cublas.stream, "%s: stream", names[r->function]);
    const wsgemm_type type = type_of(r->letter);
    if (strncmp(r->family, "batched", 7) == 0)
      check_grouped(names[r->function], type, type, type, WSGEMM_MATH_DEFAULT);
    else if (wsgemm.is_level3)
      check_level3(r);
    else
      check_gemm(r);
  }
  CHECK(wsgemm.n_handles == 1, "%d handles for one of cuBLAS", wsgemm.n_handles);
}

/* What wsgemm refuses is cuBLAS's, with the same arguments, and its status is the caller's. */
static void refused(void) {
  static const wsgemm_status refusals[] = {WSGEMM_INVALID_VALUE, WSGEMM_INVALID_POINTER, WSGEMM_ALLOC_FAILED,
                                           WSGEMM_NOT_SUPPORTED, WSGEMM_ARCH_MISMATCH,   WSGEMM_CAPTURE_UNSAFE,
                                           WSGEMM_NO_DEVICE,     WSGEMM_INTERNAL_ERROR};
  begin_case();
  for (int i = 0; i < n_routines; i++) {
    const routine *const r = &routines[i];
    const char *const name = names[r->function];
    wsgemm.status = refusals[i % 8];
    fake_cublas.status = i % 2 ? CUBLAS_STATUS_ARCH_MISMATCH : CUBLAS_STATUS_SUCCESS;
    const int n_before = fake_cublas.n_calls, n_products = wsgemm.n_products;
    const cublasStatus_t status = r->call();
    CHECK(status == fake_cublas.status, "%s: status %d", name, (int)status);
    CHECK(fake_cublas.n_calls == n_before + 1 && fake_cublas.n_calls_of[r->function] == 1 && wsgemm.n_products == n_products + 1,
          "%s: %d calls", name, fake_cublas.n_calls_of[r->function]);
    CHECK(fake_cublas.handle == handle, "%s: handle", name);
    long long sum = 0; /* of all that `shape` and `matrix` gave it */
    for (int j = 0; j < fake_cublas.n_arguments; j++)
      for (int p = 0; p < 3; p++) sum += fake_cublas.argument[j] == (long long)(uintptr_t)matrix[p];
    const wsgemm_routine which = routine_of(r->family);
    CHECK(sum == (which == WSGEMM_SYRK || which == WSGEMM_HERK || which == WSGEMM_TRSM ? 2 : 3), "%s: pointers", name);
  }
}

/* All arguments of some calls, one by one. */
static void passed_arguments(void) {
  begin_case();
  wsgemm.status = WSGEMM_NOT_SUPPORTED;
  const float alpha = 1, beta = 0;
  cublasSgemm_v2(handle, CUBLAS_OP_N, CUBLAS_OP_T, -1, 2, 3, &alpha, (float *)matrix[0], 4, (float *)matrix[1], 5, &beta,
                 (float *)matrix[2], 6);
  const long long wanted[] = {0,
                              1,
                              -1,
                              2,
                              3,
                              (long long)(uintptr_t)&alpha,
                              (long long)(uintptr_t)matrix[0],
                              4,
                              (long long)(uintptr_t)matrix[1],
                              5,
                              (long long)(uintptr_t)&beta,
                              (long long)(uintptr_t)matrix[2],
                              6};
  CHECK(fake_cublas.n_arguments == 13 && memcmp(fake_cublas.argument, wanted, sizeof wanted) == 0, "sgemm");
  cublasGemmStridedBatchedEx(handle, CUBLAS_OP_C, CUBLAS_OP_N, 1, 2, 3, &alpha, matrix[0], CUDA_R_8I, 4, 5, matrix[1], CUDA_R_8I,
                             6, 7, &beta, matrix[2], CUDA_R_32I, 8, -9, 10, CUBLAS_COMPUTE_32I, CUBLAS_GEMM_ALGO3);
  const long long wanted_ex[] = {2,
                                 0,
                                 1,
                                 2,
                                 3,
                                 (long long)(uintptr_t)&alpha,
                                 (long long)(uintptr_t)matrix[0],
                                 CUDA_R_8I,
                                 4,
                                 5,
                                 (long long)(uintptr_t)matrix[1],
                                 CUDA_R_8I,
                                 6,
                                 7,
                                 (long long)(uintptr_t)&beta,
                                 (long long)(uintptr_t)matrix[2],
                                 CUDA_R_32I,
                                 8,
                                 -9,
                                 10,
                                 CUBLAS_COMPUTE_32I,
                                 CUBLAS_GEMM_ALGO3};
  CHECK(fake_cublas.n_arguments == 22 && memcmp(fake_cublas.argument, wanted_ex, sizeof wanted_ex) == 0, "strided ex");
}

/* Batches by pointers: all arguments of each, whether wsgemm refused it or was not asked. */
static void passed_batches(void) {
  begin_case();
  int n_seen = 0;
  for (int i = 0; i < n_routines; i++) {
    const routine *const r = &routines[i];
    if (strncmp(r->family, "batched", 7) != 0) continue;
    const bool is_ex = strcmp(r->family, "batched_ex") == 0, is_wide = r->is_wide;
    const long long more = is_wide ? 5000000000 : 0;
    shape = (sizes){more + 1, more + 2, more + 3, more + 4, more + 5, more + 6, more + 7};
#define AT(pointer) (long long)(uintptr_t)(pointer)
    const wsgemm_type type = type_of(r->letter);
    const long long alpha = AT(alpha_of(type)), beta = AT(beta_of(type)), a = AT(matrix[0]), b = AT(matrix[1]), c = AT(matrix[2]);
    const long long plain[] = {CUBLAS_OP_T, CUBLAS_OP_C, shape.m,   shape.n, shape.k, alpha,     a,
                               shape.lda,   b,           shape.ldb, beta,    c,       shape.ldc, shape.count};
    const long long ex[] = {
        CUBLAS_OP_T, CUBLAS_OP_C, shape.m, shape.n, shape.k,    alpha,     a,           CUDA_R_32F,         shape.lda,          b,
        CUDA_R_32F,  shape.ldb,   beta,    c,       CUDA_R_32F, shape.ldc, shape.count, CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT};
    const long long *const wanted = is_ex ? ex : plain;
    const int n_wanted = (int)((is_ex ? sizeof ex : sizeof plain) / sizeof(long long));
    for (int asked = 0; asked < 2; asked++) {
      wsgemm.status = asked ? WSGEMM_NOT_SUPPORTED : WSGEMM_SUCCESS;
      fake_cublas.scalars = asked ? CUBLAS_POINTER_MODE_HOST : CUBLAS_POINTER_MODE_DEVICE;
      fake_cublas.status = asked ? CUBLAS_STATUS_ARCH_MISMATCH : CUBLAS_STATUS_SUCCESS;
      const int n_products = wsgemm.n_products, n_calls = fake_cublas.n_calls_of[r->function];
      const cublasStatus_t status = r->call();
      CHECK(status == fake_cublas.status && wsgemm.n_products == n_products + asked &&
                fake_cublas.n_calls_of[r->function] == n_calls + 1 && fake_cublas.handle == handle,
            "%s, %d: status %d", names[r->function], asked, (int)status);
      CHECK(fake_cublas.n_arguments == n_wanted && memcmp(fake_cublas.argument, wanted, (size_t)n_wanted * sizeof *wanted) == 0,
            "%s, %d: arguments", names[r->function], asked);
    }
    n_seen++;
  }
  CHECK(n_seen == 10, "%d entry points", n_seen);
}

/* A batch by pointers of these types, op T of A and C of B; whether it is wsgemm's. */
static bool batch_is_taken(cudaDataType ab, cudaDataType c, cublasComputeType_t compute) {
  const int n_products = wsgemm.n_products, n_calls = fake_cublas.n_calls;
  const bool is_double = compute == CUBLAS_COMPUTE_64F || compute == CUBLAS_COMPUTE_64F_PEDANTIC;
  const wsgemm_type scalar = is_double ? WSGEMM_F64 : WSGEMM_F32;
  const cublasStatus_t status =
      cublasGemmBatchedEx(handle, CUBLAS_OP_T, CUBLAS_OP_C, (int)shape.m, (int)shape.n, (int)shape.k, alpha_of(scalar),
                          (void *)matrix[0], ab, (int)shape.lda, (void *)matrix[1], ab, (int)shape.ldb, beta_of(scalar),
                          (void *)matrix[2], c, (int)shape.ldc, (int)shape.count, compute, CUBLAS_GEMM_DEFAULT);
  CHECK(status == CUBLAS_STATUS_SUCCESS && wsgemm.n_products + fake_cublas.n_calls == n_products + n_calls + 1, "status %d",
        (int)status);
  return wsgemm.n_products == n_products + 1;
}

/* Types and compute types are those of strided batches; others are cuBLAS's. ctest also looks at the log of this case. */
static void batch_types(void) {
  static const struct {
    cudaDataType ab, c;
    cublasComputeType_t compute;
    bool is_taken;
    wsgemm_type type, type_c, scalar;
    wsgemm_math math;
  } types[] = {
      {CUDA_R_32F, CUDA_R_32F, CUBLAS_COMPUTE_32F, true, WSGEMM_F32, WSGEMM_F32, WSGEMM_F32, WSGEMM_MATH_DEFAULT},
      {CUDA_R_32F, CUDA_R_32F, CUBLAS_COMPUTE_32F_PEDANTIC, true, WSGEMM_F32, WSGEMM_F32, WSGEMM_F32, WSGEMM_MATH_PEDANTIC},
      {CUDA_R_32F, CUDA_R_32F, CUBLAS_COMPUTE_32F_FAST_TF32, true, WSGEMM_F32, WSGEMM_F32, WSGEMM_F32, WSGEMM_MATH_TF32},
      {CUDA_C_32F, CUDA_C_32F, CUBLAS_COMPUTE_32F_FAST_TF32, true, WSGEMM_C32, WSGEMM_C32, WSGEMM_C32, WSGEMM_MATH_TF32},
      {CUDA_R_64F, CUDA_R_64F, CUBLAS_COMPUTE_64F, true, WSGEMM_F64, WSGEMM_F64, WSGEMM_F64, WSGEMM_MATH_DEFAULT},
      {CUDA_C_64F, CUDA_C_64F, CUBLAS_COMPUTE_64F, true, WSGEMM_C64, WSGEMM_C64, WSGEMM_C64, WSGEMM_MATH_DEFAULT},
      {CUDA_R_16F, CUDA_R_16F, CUBLAS_COMPUTE_32F, true, WSGEMM_F16, WSGEMM_F16, WSGEMM_F32, WSGEMM_MATH_DEFAULT},
      {CUDA_R_16F, CUDA_R_32F, CUBLAS_COMPUTE_32F, true, WSGEMM_F16, WSGEMM_F32, WSGEMM_F32, WSGEMM_MATH_DEFAULT},
      {CUDA_R_16BF, CUDA_R_16BF, CUBLAS_COMPUTE_32F, true, WSGEMM_BF16, WSGEMM_BF16, WSGEMM_F32, WSGEMM_MATH_DEFAULT},
      {CUDA_R_16BF, CUDA_R_32F, CUBLAS_COMPUTE_32F, true, WSGEMM_BF16, WSGEMM_F32, WSGEMM_F32, WSGEMM_MATH_DEFAULT},
      {.ab = CUDA_R_16F, .c = CUDA_R_16F, .compute = CUBLAS_COMPUTE_16F},
      {.ab = CUDA_R_32F, .c = CUDA_R_32F, .compute = CUBLAS_COMPUTE_32F_FAST_16BF},
      {.ab = CUDA_R_8I, .c = CUDA_R_32I, .compute = CUBLAS_COMPUTE_32I},
      {.ab = CUDA_R_8I, .c = CUDA_R_32F, .compute = CUBLAS_COMPUTE_32F},
  };
  begin_case();
  for (int i = 0; i < (int)(sizeof types / sizeof types[0]); i++) {
    char name[32];
    snprintf(name, sizeof name, "types %d", i);
    CHECK(batch_is_taken(types[i].ab, types[i].c, types[i].compute) == types[i].is_taken, "%s", name);
    if (types[i].is_taken) check_grouped(name, types[i].type, types[i].type_c, types[i].scalar, types[i].math);
  }
}

/* What keeps a batch by pointers with cuBLAS. */
static void batches(void) {
  static char *host[4];
  begin_case();
#define IS_TAKEN() batch_is_taken(CUDA_R_32F, CUDA_R_32F, CUBLAS_COMPUTE_32F)
  wsgemm.workspace_wanted = 1000;
  cublasSetWorkspace_v2(handle, matrix[0], 1 << 20);
  CHECK(IS_TAKEN() && !wsgemm.workspace, "a workspace that groups do not use");
  fake_cublas.scalars = CUBLAS_POINTER_MODE_DEVICE;
  CHECK(!IS_TAKEN(), "scalars in device memory");
  fake_cublas.scalars = CUBLAS_POINTER_MODE_HOST, fake_cublas.math = CUBLAS_TF32_TENSOR_OP_MATH;
  CHECK(IS_TAKEN() && wsgemm.grouped.math == WSGEMM_MATH_TF32, "TF32 of the handle");
  fake_cublas.math = CUBLAS_PEDANTIC_MATH;
  CHECK(IS_TAKEN() && wsgemm.grouped.math == WSGEMM_MATH_PEDANTIC, "a pedantic handle");
  fake_cublas.math = CUBLAS_DEFAULT_MATH, fake_cublas.n_sms = 16;
  CHECK(!IS_TAKEN(), "limited SMs");
  fake_cublas.n_sms = 0;
  char *const own = matrix[2];
  matrix[2] = (char *)host;
  CHECK(!IS_TAKEN(), "an array in host memory");
  matrix[2] = fake_alloc(FAKE_MANAGED, 0, 4096);
  CHECK(!IS_TAKEN(), "an array in managed memory");
  matrix[2] = NULL;
  CHECK(!IS_TAKEN(), "no array");
  matrix[2] = own;
  CHECK(IS_TAKEN(), "arrays in device memory");
  wsgemm.status = WSGEMM_DEVICE_ERROR;
  const int n_calls = fake_cublas.n_calls;
  CHECK(cublasSgemmBatched(handle, CUBLAS_OP_N, CUBLAS_OP_N, 9, 9, 9, alpha_of(WSGEMM_F32), (void *)matrix[0], 9,
                           (void *)matrix[1], 9, beta_of(WSGEMM_F32), (void *)matrix[2], 9,
                           2) == CUBLAS_STATUS_EXECUTION_FAILED &&
            fake_cublas.n_calls == n_calls,
        "an error of the device");
  CHECK(cublasSgemmBatched(handle, (cublasOperation_t)7, CUBLAS_OP_N, 9, 9, 9, alpha_of(WSGEMM_F32), (void *)matrix[0], 9,
                           (void *)matrix[1], 9, beta_of(WSGEMM_F32), (void *)matrix[2], 9, 2) == CUBLAS_STATUS_SUCCESS &&
            fake_cublas.n_calls == n_calls + 1 && fake_cublas.argument[0] == 7,
        "an op that is none");
  CHECK(cublasSgemmBatched(handle, CUBLAS_OP_N, CUBLAS_OP_N, 9, 9, 9, NULL, (void *)matrix[0], 9, (void *)matrix[1], 9,
                           beta_of(WSGEMM_F32), (void *)matrix[2], 9, 2) == CUBLAS_STATUS_SUCCESS &&
            fake_cublas.n_calls == n_calls + 2,
        "no alpha");
}

/* C may be partly written: nobody begins again. */
static void device_error(void) {
  begin_case();
  wsgemm.status = WSGEMM_DEVICE_ERROR;
  CHECK(routines[0].call() == CUBLAS_STATUS_EXECUTION_FAILED && fake_cublas.n_calls == 0, "%d calls", fake_cublas.n_calls);
}

static bool is_taken(void) {
  const int n_products = wsgemm.n_products, n_calls = fake_cublas.n_calls;
  const cublasStatus_t status = routines[0].call();
  CHECK(status == CUBLAS_STATUS_SUCCESS && wsgemm.n_products + fake_cublas.n_calls == n_products + n_calls + 1, "status %d",
        (int)status);
  return wsgemm.n_products == n_products + 1;
}

static void modes(void) {
  static const struct {
    int math;
    bool is_taken;
    wsgemm_math in;
  } maths[] = {{CUBLAS_DEFAULT_MATH, true, WSGEMM_MATH_DEFAULT},
               {CUBLAS_TENSOR_OP_MATH, true, WSGEMM_MATH_DEFAULT},
               {CUBLAS_PEDANTIC_MATH, true, WSGEMM_MATH_PEDANTIC},
               {CUBLAS_TF32_TENSOR_OP_MATH, true, WSGEMM_MATH_TF32},
               {CUBLAS_TF32_TENSOR_OP_MATH | CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION, true, WSGEMM_MATH_TF32},
               {4, false, WSGEMM_MATH_INHERIT}, /* emulation by bfloat16 */
               {8, false, WSGEMM_MATH_INHERIT}};
  begin_case();
  for (size_t i = 0; i < sizeof maths / sizeof maths[0]; i++) {
    fake_cublas.math = (cublasMath_t)maths[i].math;
    CHECK(is_taken() == maths[i].is_taken && (!maths[i].is_taken || wsgemm.gemm.math == maths[i].in), "math %d", maths[i].math);
  }
  fake_cublas.math = CUBLAS_DEFAULT_MATH, fake_cublas.n_sms = 16;
  CHECK(!is_taken(), "limited SMs");
  fake_cublas.n_sms = 0, fake_cublas.is_dead = true;
  CHECK(!is_taken(), "a handle that does not answer");
  fake_cublas.is_dead = false, fake_cublas.scalars = CUBLAS_POINTER_MODE_DEVICE;
  CHECK(is_taken() && wsgemm.gemm.scalar_mode == WSGEMM_SCALAR_DEVICE && wsgemm.gemm.alpha.device == alpha_of(WSGEMM_F32) &&
            wsgemm.gemm.beta.device == beta_of(WSGEMM_F32),
        "scalars in device memory");
}

/* cuBLAS may read host memory through the GPU: wsgemm would take it to the CPU. */
static void places(void) {
  static char host[4096];
  char *const others[] = {host, fake_alloc(FAKE_PINNED, 0, 4096), fake_alloc(FAKE_MANAGED, 0, 4096),
                          fake_alloc(FAKE_DEVICE, 1, 4096), NULL};
  begin_case();
  char *const own = matrix[2];
  for (int i = 0; i < 5; i++) {
    matrix[2] = others[i];
    CHECK(!is_taken(), "memory %d", i);
  }
  matrix[2] = own;
  CHECK(is_taken(), "device memory");
  fake_set_current(fake_primary(1));
  CHECK(!is_taken(), "another device than the current one");
  fake_set_current(NULL);
  CHECK(!is_taken(), "no context");
}

static void workspaces(void) {
  begin_case();
  wsgemm.workspace_wanted = 1000;
  CHECK(is_taken() && !wsgemm.workspace && wsgemm.workspace_bytes == 0, "no workspace");
  cublasSetWorkspace_v2(handle, matrix[0], 999);
  CHECK(is_taken() && !wsgemm.workspace, "too small a workspace");
  cublasSetWorkspace_v2(handle, matrix[0], 1000);
  CHECK(is_taken() && wsgemm.workspace == matrix[0] && wsgemm.workspace_bytes == 1000, "the caller's workspace");
  cublasSetWorkspace_v2(handle, matrix[0] + 16, 4000);
  CHECK(is_taken() && !wsgemm.workspace, "a workspace that is not aligned");
  cublasSetWorkspace_v2(handle, matrix[0], 1000);
  CHECK(is_taken() && wsgemm.workspace == matrix[0], "the caller's workspace again");
  cublasSetStream_v2(handle, NULL);
  CHECK(is_taken() && !wsgemm.workspace, "a new stream ends the workspace");
  cublasSetWorkspace_v2(handle, matrix[0], 1000);
  CHECK(is_taken() && wsgemm.workspace == matrix[0], "the caller's workspace for the new stream");
  cublasSetWorkspace_v2(handle, NULL, 0);
  CHECK(is_taken() && !wsgemm.workspace, "no workspace any more");
  CHECK(fake_cublas.n_calls_of[WS_cublasSetWorkspace_v2] == 6 && fake_cublas.n_calls_of[WS_cublasSetStream_v2] == 1, "passed on");
}

static void handles(void) {
  begin_case();
  cublasHandle_t other = NULL, first = handle;
  CHECK(is_taken(), "first");
  wsgemm_handle *const of_first = wsgemm.handle;
  REQUIRE(cublasCreate_v2(&other) == CUBLAS_STATUS_SUCCESS && other != first, "other");
  handle = other;
  CHECK(is_taken() && wsgemm.handle != of_first && wsgemm.n_handles == 2, "a handle each");
  CHECK(cublasDestroy_v2(other) == CUBLAS_STATUS_SUCCESS && wsgemm.n_handles == 1, "%d handles", wsgemm.n_handles);
  handle = first;
  CHECK(is_taken() && wsgemm.handle == of_first, "first again");
  cublasDestroy_v2(first);
  CHECK(wsgemm.n_handles == 0 && fake_cublas.n_calls_of[WS_cublasDestroy_v2] == 2, "all ended");
  handle = (cublasHandle_t)&other; /* made unseen */
  CHECK(is_taken() && wsgemm.n_handles == 1, "an unknown handle");
  cublasDestroy_v2(handle);
  handle = NULL;
  CHECK(!is_taken(), "no handle is cuBLAS's to refuse");
}

/* A call that cuBLAS makes itself while it computes is not looked at. */
static void call_again(void) {
  fake_cublas.inside = NULL;
  routines[0].call();
}
static void inside(void) {
  begin_case();
  wsgemm.status = WSGEMM_NOT_SUPPORTED;
  fake_cublas.inside = call_again;
  routines[4].call();
  CHECK(wsgemm.n_products == 1 && fake_cublas.n_calls == 2, "%d products, %d calls", wsgemm.n_products, fake_cublas.n_calls);
  wsgemm.status = WSGEMM_SUCCESS;
  CHECK(is_taken(), "afterwards all is as before");
}

static void *many_calls(void *unused) {
  (void)unused;
  fake_set_current(fake_primary(0));
  cublasHandle_t own = NULL;
  const float one = 1;
  for (int i = 0; i < 2000; i++) {
    if (i % 100 == 0) cublasCreate_v2(&own);
    cublasSgemm_v2(i % 2 ? own : handle, CUBLAS_OP_N, CUBLAS_OP_N, 9, 9, 9, &one, (float *)matrix[0], 9, (float *)matrix[1], 9,
                   &one, (float *)matrix[2], 9);
    if (i % 100 == 99) cublasDestroy_v2(own);
  }
  return NULL;
}
static void threads(void) {
  enum { N_THREADS = 8 };
  pthread_t thread[N_THREADS];
  begin_case();
  for (int i = 0; i < N_THREADS; i++) REQUIRE(pthread_create(&thread[i], NULL, many_calls, NULL) == 0, "no thread");
  for (int i = 0; i < N_THREADS; i++) pthread_join(thread[i], NULL);
  CHECK(wsgemm.n_products == N_THREADS * 2000 && fake_cublas.n_calls == 0, "%d products", wsgemm.n_products);
  CHECK(wsgemm.n_mixed == 0 && wsgemm.n_handles == 1, "%d at once on one handle, %d handles left", wsgemm.n_mixed,
        wsgemm.n_handles);
}

/* ---- functions that dlsym found in the library itself -------------------------------------------- */

static void *open_cublas(void) {
  void *const library = dlopen("libcublas.so.13", RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD);
  REQUIRE(library, "%s", dlerror());
  return library;
}

static const void *file_of(const void *address) {
  Dl_info info;
  return address && dladdr(address, &info) ? info.dli_fbase : NULL;
}

/* All that this library defines is asked for under the interposer's eyes, nothing else. */
static void asked_for(void) {
  static const char *const ours[] = {
#define ENTRY(symbol) #symbol,
#include "cublas/entries.def"
#undef ENTRY
  };
  void *const library = open_cublas();
  const void *const here = file_of(dlsym(RTLD_DEFAULT, "cublasLtDestroy")), *const there = file_of(dlsym(library, "fake_cublas"));
  const int n_ours = (int)(sizeof ours / sizeof ours[0]);
  CHECK(here && there && here != there, "the interposer comes first");
  for (int f = 0; f < WS_CUBLAS_N_FUNCTIONS; f++) {
    bool is_ours = false;
    for (int i = 0; i < n_ours; i++)
      if (strcmp(names[f], ours[i]) == 0) is_ours = true;
    const void *const found = dlsym(library, names[f]);
    CHECK(!dlerror() && file_of(found) == (is_ours ? here : there), "%s", names[f]);
  }
}

static void found_functions(void) {
  __typeof__(&cublasCreate_v2) create = NULL;
  __typeof__(&cublasLtCreate) create_lt = NULL;
  __typeof__(&cublasDestroy_v2) destroy = NULL;
  __typeof__(&cublasSgemm_v2) sgemm = NULL;
  cublasHandle_t own = NULL;
  cublasLtHandle_t own_lt = NULL;
  const float one = 1;
  begin_case();
  void *const library = open_cublas();
  *(void **)&create = dlsym(library, "cublasCreate_v2"), *(void **)&create_lt = dlsym(library, "cublasLtCreate");
  *(void **)&destroy = dlsym(library, "cublasDestroy_v2"), *(void **)&sgemm = dlsym(library, "cublasSgemm_v2");
  REQUIRE(create && create_lt && destroy && sgemm, "not all found");
  REQUIRE(create(&own) == CUBLAS_STATUS_SUCCESS && create_lt(&own_lt) == CUBLAS_STATUS_SUCCESS, "no handles");
  CHECK(fake_cublas.n_calls_of[WS_cublasCreate_v2] == 2 && fake_cublas.n_calls_of[WS_cublasLtCreate] == 1, "made by cuBLAS");
  for (int m = 9; m <= 10; m++) {
    wsgemm.status = m == 9 ? WSGEMM_SUCCESS : WSGEMM_NOT_SUPPORTED;
    CHECK(sgemm(own, CUBLAS_OP_N, CUBLAS_OP_N, m, 9, 9, &one, (float *)matrix[0], 99, (float *)matrix[1], 99, &one,
                (float *)matrix[2], 99) == CUBLAS_STATUS_SUCCESS &&
              wsgemm.n_products == m - 8 && wsgemm.gemm.m == m && fake_cublas.n_calls == m - 9,
          "%d products, %d calls", wsgemm.n_products, fake_cublas.n_calls);
  }
  CHECK(wsgemm.n_handles == 1, "%d handles", wsgemm.n_handles);
  CHECK(destroy(own) == CUBLAS_STATUS_SUCCESS && wsgemm.n_handles == 0, "ended");
}

static void *find_and_call(void *library) {
  for (int i = 0; i < 200; i++) {
    __typeof__(&cublasCreate_v2) create = NULL;
    cublasHandle_t own = NULL;
    *(void **)&create = dlsym(library, "cublasCreate_v2");
    if (create && create(&own) == CUBLAS_STATUS_SUCCESS) cublasDestroy_v2(own);
  }
  return NULL;
}
static void found_by_threads(void) {
  enum { N_THREADS = 8 };
  pthread_t thread[N_THREADS];
  void *const library = open_cublas();
  for (int i = 0; i < N_THREADS; i++) REQUIRE(pthread_create(&thread[i], NULL, find_and_call, library) == 0, "no thread");
  for (int i = 0; i < N_THREADS; i++) pthread_join(thread[i], NULL);
  CHECK(fake_cublas.n_calls_of[WS_cublasCreate_v2] == N_THREADS * 200 &&
            fake_cublas.n_calls_of[WS_cublasDestroy_v2] == N_THREADS * 200,
        "%d made, %d ended", fake_cublas.n_calls_of[WS_cublasCreate_v2], fake_cublas.n_calls_of[WS_cublasDestroy_v2]);
}

static void forked(void) {
  begin_case();
  CHECK(is_taken(), "before");
  const pid_t child = fork();
  if (child == 0)
    _exit(routines[0].call() == CUBLAS_STATUS_SUCCESS && fake_cublas.n_calls == 1 && wsgemm.n_products == 1 ? 0 : 1);
  int status = -1;
  CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0, "a child's calls are cuBLAS's");
  CHECK(is_taken(), "afterwards in the parent");
}

/* A child of a parent that never had a handle is a process like others. First of all cases. */
static void child_of_none(void *unused) {
  (void)unused;
  begin_case();
  CHECK(is_taken(), "taken");
}
static void forked_early(void) { check_in_child("forked early", child_of_none, NULL); }

static const struct check_case cases[] = {
    {"forked_early", forked_early},
    {"taken", taken},
    {"refused", refused},
    {"passed_arguments", passed_arguments},
    {"passed_batches", passed_batches},
    {"batch_types", batch_types},
    {"batches", batches},
    {"modes", modes},
    {"device_error", device_error},
    {"places", places},
    {"handles", handles},
    {"workspaces", workspaces},
    {"inside", inside},
    {"threads", threads},
    {"asked_for", asked_for},
    {"found_functions", found_functions},
    {"found_by_threads", found_by_threads},
    {"forked", forked},
};
CHECK_MAIN("cublas_calls", cases)
