/* test_cublas_choice.c - without WSGEMM_CUBLAS: calls are wsgemm's where a row of wins.def covers them,
 * else cuBLAS's, and little is asked before that is known. */
#include <string.h>

#include "cublas_case.h"
#include "host/fake_driver.h"

enum { GEMM = 0 };
typedef enum layout { ANY, ODD } layout;
#define WSGEMM_GEMM 0
#define WSGEMM_GEMM_EPILOGUE 100
#define WSGEMM_GEMM_POINTERS 101

/* The rows as the test reads them. */
static const struct {
  int routine, type;
  wsgemm_math math;
  long long least_mn, least_k;
  double least_products;
  layout layout;
} rows[] = {
#define WIN(routine, type, math, mn, k, products, layout, saved) \
  {WSGEMM_##routine, WSGEMM_##type, WSGEMM_MATH_##math, mn, k, products, layout},
#include "cublas/wins.def"
#undef WIN
};
enum { N_ROWS = sizeof rows / sizeof rows[0] };

static const float one[2] = {1, 0};
static const double one_d[2] = {1, 0};

static const cudaDataType types[] = {CUDA_R_32F, CUDA_R_64F, CUDA_C_32F, CUDA_C_64F, CUDA_R_16F, CUDA_R_16BF};

/* A product of general matrices of these sizes; odd: lds that are no multiples of 16 bytes. */
static bool gemm_is_taken(int type, long long m, long long n, long long k, bool is_odd) {
  const long long ld = (m + n + k + 15) / 16 * 16 + is_odd;
  const int n_products = wsgemm.n_products;
  const bool is_double = type == WSGEMM_F64 || type == WSGEMM_C64;
  cublasGemmEx_64(handle, CUBLAS_OP_N, CUBLAS_OP_N, m, n, k, is_double ? (const void *)one_d : one, matrix[0], types[type], ld,
                  matrix[1], types[type], ld, is_double ? (const void *)one_d : one, matrix[2], types[type], ld,
                  is_double ? CUBLAS_COMPUTE_64F : CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT);
  return wsgemm.n_products > n_products;
}

/* count: so many are counted as one product. */
static bool are_covered_as(int routine, int type, wsgemm_math math, long long m, long long n, long long k, long long count,
                           bool is_odd) {
  for (int i = 0; i < N_ROWS; i++)
    if (rows[i].routine == routine && rows[i].type == type && rows[i].math == math && (m < n ? m : n) >= rows[i].least_mn &&
        k >= rows[i].least_k && (double)m * (double)n * (double)k * (double)count >= rows[i].least_products &&
        (rows[i].layout == ANY || is_odd))
      return true;
  return false;
}

static bool is_covered_as(int routine, int type, wsgemm_math math, long long m, long long n, long long k, bool is_odd) {
  return are_covered_as(routine, type, math, m, n, k, 1, is_odd);
}

static bool is_covered(int type, wsgemm_math math, long long m, long long n, long long k, bool is_odd) {
  return is_covered_as(GEMM, type, math, m, n, k, is_odd);
}

/* A product, or a batch, of any type; the handle's math mode is set, and math is what it comes to. */
struct drawn {
  int type;
  bool is_odd, is_tf32;
  wsgemm_math math;
  long long size[4];
};
static struct drawn draw(struct check_random *random, int n_sizes, int most_bits) {
  struct drawn x = {.type = (int)check_random_in(random, 0, 5)};
  x.is_odd = check_random_in(random, 0, 1), x.is_tf32 = check_random_in(random, 0, 3) == 0;
  for (int j = 0; j < n_sizes; j++) {
    x.size[j] = 1LL << check_random_in(random, 0, most_bits);
    x.size[j] += check_random_in(random, 0, x.size[j]);
  }
  fake_cublas.math = x.is_tf32 ? CUBLAS_TF32_TENSOR_OP_MATH : CUBLAS_DEFAULT_MATH;
  const bool has_tf32 = x.is_tf32 && (x.type == WSGEMM_F32 || x.type == WSGEMM_C32);
  x.math = has_tf32 ? WSGEMM_MATH_TF32 : WSGEMM_MATH_DEFAULT;
  return x;
}

/* Random sizes, over all types and math modes. */
static void products(void) {
  begin_case();
  struct check_random random = check_random_from(7);
  int n_taken = 0;
  for (int i = 0; i < 20000; i++) {
    const struct drawn x = draw(&random, 3, 14);
    const bool wanted = is_covered(x.type, x.math, x.size[0], x.size[1], x.size[2], x.is_odd);
    const bool got = gemm_is_taken(x.type, x.size[0], x.size[1], x.size[2], x.is_odd);
    CHECK(got == wanted, "type %d, tf32 %d, %lld %lld %lld: %d", x.type, x.is_tf32, x.size[0], x.size[1], x.size[2], got);
    n_taken += got;
  }
  CHECK(n_taken > 100, "only %d were taken", n_taken);
}

static bool batch_is_taken(int type, long long m, long long n, long long k, long long count, bool is_odd) {
  const long long ld = (m + n + k + 15) / 16 * 16 + is_odd;
  const int n_products = wsgemm.n_products;
  const bool is_double = type == WSGEMM_F64 || type == WSGEMM_C64;
  const void *const scalar = is_double ? (const void *)one_d : one;
  cublasGemmBatchedEx_64(handle, CUBLAS_OP_N, CUBLAS_OP_N, m, n, k, scalar, (void *)matrix[0], types[type], ld, (void *)matrix[1],
                         types[type], ld, scalar, (void *)matrix[2], types[type], ld, count,
                         is_double ? CUBLAS_COMPUTE_64F : CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT);
  return wsgemm.n_products > n_products;
}

/* Batches by pointers have rows of their own, which count all products; those of strided batches are not theirs. */
static void pointers(void) {
  begin_case();
  struct check_random random = check_random_from(8);
  for (int i = 0; i < 20000; i++) {
    const struct drawn x = draw(&random, 4, 11);
    const bool wanted =
        are_covered_as(WSGEMM_GEMM_POINTERS, x.type, x.math, x.size[0], x.size[1], x.size[2], x.size[3], x.is_odd);
    const bool got = batch_is_taken(x.type, x.size[0], x.size[1], x.size[2], x.size[3], x.is_odd);
    CHECK(got == wanted, "type %d, tf32 %d, %lld %lld %lld x%lld: %d", x.type, x.is_tf32, x.size[0], x.size[1], x.size[2],
          x.size[3], got);
  }
}

/* With scalars in device memory rows count for floats outside of TF32 alone. */
static void device_scalars(void) {
  begin_case();
  struct check_random random = check_random_from(9);
  int n_taken = 0;
  fake_cublas.scalars = CUBLAS_POINTER_MODE_DEVICE;
  for (int i = 0; i < 20000; i++) {
    const struct drawn x = draw(&random, 3, 14);
    const bool is_float = x.type == WSGEMM_F32 || x.type == WSGEMM_C32,
               wanted = is_float && !x.is_tf32 && is_covered(x.type, x.math, x.size[0], x.size[1], x.size[2], x.is_odd);
    const bool got = gemm_is_taken(x.type, x.size[0], x.size[1], x.size[2], x.is_odd);
    CHECK(got == wanted, "type %d, tf32 %d, %lld %lld %lld: %d", x.type, x.is_tf32, x.size[0], x.size[1], x.size[2], got);
    n_taken += got;
  }
  CHECK(n_taken > 100, "only %d were taken", n_taken);
}

/* Known classes, so that the table itself is looked at. */
static void known(void) {
  begin_case();
  CHECK(gemm_is_taken(WSGEMM_F32, 4096, 4096, 4096, false), "sgemm 4096");
  CHECK(!gemm_is_taken(WSGEMM_F32, 64, 64, 64, false), "sgemm 64");
  CHECK(!gemm_is_taken(WSGEMM_F32, 1, 1 << 20, 1 << 12, false), "a vector");
  CHECK(!gemm_is_taken(WSGEMM_F64, 4096, 4096, 4096, false), "dgemm 4096");
  CHECK(!gemm_is_taken(WSGEMM_F16, 4096, 4096, 4096, false), "hgemm 4096");
  CHECK(gemm_is_taken(WSGEMM_BF16, 4095, 4095, 4095, true), "bgemm 4095");
  fake_cublas.math = CUBLAS_PEDANTIC_MATH;
  CHECK(!gemm_is_taken(WSGEMM_F32, 4096, 4096, 4096, false), "pedantic");
}

/* What the summary says of time, which ctest compares: of one product that is taken, 23 us for each 1e9 of 2^30, and one that is not. */
static void saved(void) {
  begin_case();
  CHECK(gemm_is_taken(WSGEMM_F32, 1024, 1024, 1024, false), "sgemm 1024");
  CHECK(!gemm_is_taken(WSGEMM_F32, 64, 64, 64, false), "sgemm 64");
}

/* Level 3: from each row's least size on, and not below. */
static void level3(void) {
  static const char *const families[] = {"", "symm", "hemm", "syrk", "herk", "syr2k", "her2k", "gemmtr", "trmm", "trsm"};
  begin_case();
  for (int i = 0; i < n_routines; i++) {
    int routine = 0;
    for (int f = 1; f < 10; f++)
      if (strcmp(routines[i].family, families[f]) == 0) routine = f;
    if (!routine) continue;
    const int type = routines[i].letter == 's'   ? WSGEMM_F32
                     : routines[i].letter == 'd' ? WSGEMM_F64
                     : routines[i].letter == 'c' ? WSGEMM_C32
                                                 : WSGEMM_C64;
    long long least = 0;
    for (int r = 0; r < N_ROWS; r++)
      if (rows[r].routine == routine && rows[r].type == type)
        for (least = rows[r].least_mn; (double)least * (double)least * (double)least < rows[r].least_products;) least++;
    for (int below = 0; below < 2; below++) {
      const long long n = least ? least - below : 8192;
      shape = (sizes){n, n, n, n, n, n, 1};
      const int n_products = wsgemm.n_products;
      routines[i].call();
      CHECK((wsgemm.n_products > n_products) == (least > 0 && !below), "%s %c, n = %lld", routines[i].family, routines[i].letter,
            n);
    }
  }
}

/* cublasLtMatmul: with a bias the row is another one. A small product is not looked into. */
static void epilogues(void) {
  enum { N = 2048 };
  static fake_attributes desc, layout[3];
  begin_case();
  for (int has_bias = 0; has_bias < 2; has_bias++)
    for (int64_t k = 64; k <= 2048; k += 64) {
      const int64_t sizes[3][2] = {{N, k}, {k, N}, {N, N}};
      for (int i = 0; i < 3; i++) {
        layout[i].value[CUBLASLT_MATRIX_LAYOUT_ROWS] = layout[i].value[CUBLASLT_MATRIX_LAYOUT_LD] = sizes[i][0];
        layout[i].value[CUBLASLT_MATRIX_LAYOUT_COLS] = sizes[i][1];
        layout[i].value[CUBLASLT_MATRIX_LAYOUT_ORDER] = CUBLASLT_ORDER_COL;
        layout[i].value[CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT] = 1;
      }
      desc.value[CUBLASLT_MATMUL_DESC_COMPUTE_TYPE] = CUBLAS_COMPUTE_32F;
      desc.value[CUBLASLT_MATMUL_DESC_FILL_MODE] = CUBLAS_FILL_MODE_FULL;
      desc.value[CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE] = -1;
      desc.value[CUBLASLT_MATMUL_DESC_BIAS_POINTER] = (int64_t)(uintptr_t)matrix[0];
      desc.value[CUBLASLT_MATMUL_DESC_EPILOGUE] = has_bias ? CUBLASLT_EPILOGUE_BIAS : CUBLASLT_EPILOGUE_DEFAULT;
      const int n_products = wsgemm.n_products;
      cublasLtMatmul((cublasLtHandle_t)handle, (cublasLtMatmulDesc_t)&desc, one, matrix[0], (cublasLtMatrixLayout_t)&layout[0],
                     matrix[1], (cublasLtMatrixLayout_t)&layout[1], one, matrix[2], (cublasLtMatrixLayout_t)&layout[2], matrix[2],
                     (cublasLtMatrixLayout_t)&layout[2], NULL, NULL, 0, NULL);
      const bool wanted = is_covered_as(has_bias ? WSGEMM_GEMM_EPILOGUE : GEMM, WSGEMM_F32, WSGEMM_MATH_DEFAULT, N, N, k, false);
      CHECK((wsgemm.n_products > n_products) == wanted, "bias %d, k = %lld", has_bias, (long long)k);
    }
}

/* A small product costs no question: neither of the handle nor of the driver. */
static void small(void) {
  begin_case();
  fake_forget();
  CHECK(!gemm_is_taken(WSGEMM_F32, 100, 100, 100, false), "small");
  CHECK(fake_cublas.n_calls_of[WS_cublasGetStream_v2] == 0 && fake_cublas.n_calls_of[WS_cublasGetMathMode] == 0 &&
            fake.n_calls == 0,
        "%d calls of the driver", fake.n_calls);
}

/* What other GPUs do is not known. */
static void devices(void) {
  static const int ccs[] = {80, 89, 100, 120};
  for (int i = 0; i < 4; i++) {
    begin_case();
    const int device = 1 + i % 2; /* what a device is is asked once */
    char *const own = matrix[2];
    fake.n_devices = 3;
    fake.device[device].cc = ccs[device];
    fake_set_current(fake_primary(device));
    matrix[2] = fake_alloc(FAKE_DEVICE, device, 4096);
    CHECK(!gemm_is_taken(WSGEMM_F32, 4096, 4096, 4096, false), "cc %d", ccs[device]);
    matrix[2] = own;
  }
}

/* The C of a batch may lie in one place only by mistake. */
static void strides(void) {
  begin_case();
  const int n_products = wsgemm.n_products;
  cublasSgemmStridedBatched(handle, CUBLAS_OP_N, CUBLAS_OP_N, 2048, 2048, 2048, one, (float *)matrix[0], 2048, 9,
                            (float *)matrix[1], 2048, 9, one, (float *)matrix[2], 2048, 0, 2);
  CHECK(wsgemm.n_products == n_products && fake_cublas.n_calls == 1, "one C");
}

static const struct check_case cases[] = {
    {"products", products},   {"known", known},
    {"saved", saved},         {"level3", level3},
    {"small", small},         {"devices", devices},
    {"epilogues", epilogues}, {"strides", strides},
    {"pointers", pointers},   {"device_scalars", device_scalars},
};
CHECK_MAIN("cublas_choice", cases)
