/* test_gpu_cublas.c - the cuBLAS interposer over the real cuBLAS: who computed a call shows in its bits,
 * which are wsgemm's own or cuBLAS's own, and both are within the bound of FP32. */
#include <cublas_v2.h>
#include <cublasLt.h>
#include <dlfcn.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "gpu.h"

/* Both libraries' functions, in the order of the sides: the interposer's, and the real ones. */
enum { OURS, REAL, N_SIDES };
#define FUNCTIONS(X)                \
  X(cublasCreate_v2)                \
  X(cublasDestroy_v2)               \
  X(cublasSetStream_v2)             \
  X(cublasSetPointerMode_v2)        \
  X(cublasSgemm_v2)                 \
  X(cublasSgemmBatched)             \
  X(cublasStrsm_v2)                 \
  X(cublasLtMatmul)                 \
  X(cublasLtMatmulDescCreate)       \
  X(cublasLtMatmulDescSetAttribute) \
  X(cublasLtMatrixLayoutCreate)
typedef struct functions {
#define MEMBER(symbol) __typeof__(&symbol) symbol##_;
  FUNCTIONS(MEMBER)
#undef MEMBER
} functions;
static functions sides[N_SIDES];

enum { MOST = 1400, N_ELEMENTS = MOST * MOST };
static float *host_a, *host_b, *host_c[3];
static float *a, *b, *c;
static cublasHandle_t handle;
static bool is_hopper;

static void find(void *library, void *fallback, functions *f) {
#define FIND(symbol)                                  \
  {                                                   \
    void *address = dlsym(library, #symbol);          \
    if (!address) address = dlsym(fallback, #symbol); \
    REQUIRE(address, "no %s", #symbol);               \
    memcpy(&f->symbol##_, &address, sizeof address);  \
  }
  FUNCTIONS(FIND)
#undef FIND
}

static bool begin_case(void) {
  static bool is_open;
  if (is_open) return true;
  void *real = dlopen("libcublas.so.13", RTLD_NOW | RTLD_LOCAL);
  if (!real) real = dlopen("libcublas.so.12", RTLD_NOW | RTLD_LOCAL);
  if (!real) {
    check_skip("no cuBLAS: %s", dlerror());
    return false;
  }
  void *const interposer = dlopen(WSGEMM_CUBLAS_FILE_NAME, RTLD_NOW | RTLD_LOCAL);
  REQUIRE(interposer, "%s", dlerror());
  find(interposer, real, &sides[OURS]);
  find(real, real, &sides[REAL]);
  struct cudaDeviceProp device;
  GPU(cudaGetDeviceProperties(&device, 0));
  is_hopper = device.major == 9 && device.minor == 0;
  struct check_random random = check_random_from(31);
  host_a = malloc(N_ELEMENTS * sizeof(float)), host_b = malloc(N_ELEMENTS * sizeof(float));
  for (int i = 0; i < 3; i++) host_c[i] = malloc(N_ELEMENTS * sizeof(float));
  for (int i = 0; i < N_ELEMENTS; i++)
    host_a[i] = (float)check_random_unit(&random), host_b[i] = (float)check_random_unit(&random);
  for (int i = 0; i < MOST; i++) host_a[i * (MOST + 1)] += 100; /* trsm's triangle */
  a = gpu_copy(host_a, N_ELEMENTS * sizeof(float)), b = gpu_copy(host_b, N_ELEMENTS * sizeof(float));
  c = gpu_alloc(N_ELEMENTS * sizeof(float));
  REQUIRE(sides[OURS].cublasCreate_v2_(&handle) == CUBLAS_STATUS_SUCCESS, "no handle");
  return is_open = true;
}

static void fetch(int which, size_t n) {
  GPU(cudaDeviceSynchronize());
  GPU(cudaMemcpy(host_c[which], c, n * sizeof(float), cudaMemcpyDeviceToHost));
}

/* Results 0 (ours), 1 (cuBLAS's) and 2 (wsgemm's own): who computed result 0? */
static void check_who(const char *what, bool is_wsgemm, size_t n) {
  const int wanted = is_wsgemm ? 2 : 1;
  CHECK(memcmp(host_c[0], host_c[wanted], n * sizeof(float)) == 0, "%s: not the bits of %s", what,
        is_wsgemm ? "wsgemm" : "cuBLAS");
}

/* Some elements beside sums in double. */
static void check_sgemm(const char *what, int m, int n, int k, int ld) {
  struct check_random random = check_random_from((unsigned)m);
  for (int s = 0; s < 200; s++) {
    const int i = (int)check_random_in(&random, 0, m - 1), j = (int)check_random_in(&random, 0, n - 1);
    double sum = 0, size = 0;
    for (int l = 0; l < k; l++) {
      const double product = (double)host_a[i * ld + l] * (double)host_b[l + j * ld]; /* A is transposed */
      sum += product, size += fabs(product);
    }
    const double error = fabs((double)host_c[0][i + j * ld] - sum), bound = (k + 2) * 0x1p-24 * 1.001 * size;
    CHECK(error <= bound, "%s: (%d, %d): error %g, bound %g", what, i, j, error, bound);
  }
}

static void sgemm_of(int side, int m, int n, int k, int ld, const float *scalars) {
  GPU(cudaMemset(c, 0xff, N_ELEMENTS * sizeof(float)));
  CHECK(sides[side].cublasSgemm_v2_(handle, CUBLAS_OP_T, CUBLAS_OP_N, m, n, k, scalars, a, ld, b, ld, scalars + 1, c, ld) ==
            CUBLAS_STATUS_SUCCESS,
        "sgemm of side %d", side);
  fetch(side, N_ELEMENTS);
}

/* Large, ragged and small; in a stream that waits for no other. */
static void products(void) {
  static const int sizes[][4] = {{1200, 1300, 1400, 1400}, {1203, 1301, 1111, 1397}, {64, 64, 64, 64}};
  static const float one_zero[] = {1, 0};
  if (!begin_case()) return;
  cudaStream_t stream;
  GPU(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  for (int i = 0; i < 3; i++) {
    const int m = sizes[i][0], n = sizes[i][1], k = sizes[i][2], ld = sizes[i][3];
    sides[OURS].cublasSetStream_v2_(handle, i == 1 ? stream : NULL);
    for (int side = 0; side < N_SIDES; side++) sgemm_of(side, m, n, k, ld, one_zero);
    GPU(cudaMemset(c, 0xff, N_ELEMENTS * sizeof(float)));
    CHECK(wsgemm_sgemm(NULL, WSGEMM_COL_MAJOR, WSGEMM_TRANS, WSGEMM_NO_TRANS, m, n, k, 1, a, ld, b, ld, 0, c, ld) ==
              WSGEMM_SUCCESS,
          "%s", wsgemm_last_error());
    fetch(2, N_ELEMENTS);
    check_who("sgemm", is_hopper && m > 1000, N_ELEMENTS);
    check_sgemm("sgemm", m, n, k, ld);
  }
  sides[OURS].cublasSetStream_v2_(handle, NULL);
  GPU(cudaStreamDestroy(stream));
}

static void scalars(void) {
  if (!begin_case()) return;
  static const float one_zero[] = {1, 0};
  float *const device_scalars = gpu_copy(one_zero, sizeof one_zero);
  sides[OURS].cublasSetPointerMode_v2_(handle, CUBLAS_POINTER_MODE_DEVICE);
  for (int side = 0; side < N_SIDES; side++) sgemm_of(side, 1200, 1300, 1400, 1400, device_scalars);
  sides[OURS].cublasSetPointerMode_v2_(handle, CUBLAS_POINTER_MODE_HOST);
  check_sgemm("scalars in device memory", 1200, 1300, 1400, 1400);
  gpu_free(device_scalars);
}

static void systems(void) {
  if (!begin_case()) return;
  const float one = 1;
  for (int side = 0; side < N_SIDES; side++) {
    GPU(cudaMemcpy(c, b, N_ELEMENTS * sizeof(float), cudaMemcpyDeviceToDevice));
    CHECK(sides[side].cublasStrsm_v2_(handle, CUBLAS_SIDE_LEFT, CUBLAS_FILL_MODE_LOWER, CUBLAS_OP_N, CUBLAS_DIAG_NON_UNIT, 1400,
                                      1100, &one, a, MOST, c, MOST) == CUBLAS_STATUS_SUCCESS,
          "trsm of side %d", side);
    fetch(side, N_ELEMENTS);
  }
  GPU(cudaMemcpy(c, b, N_ELEMENTS * sizeof(float), cudaMemcpyDeviceToDevice));
  CHECK(wsgemm_strsm(NULL, WSGEMM_COL_MAJOR, WSGEMM_LEFT, WSGEMM_LOWER, WSGEMM_NO_TRANS, WSGEMM_NON_UNIT, 1400, 1100, 1, a, MOST,
                     c, MOST) == WSGEMM_SUCCESS,
        "%s", wsgemm_last_error());
  fetch(2, N_ELEMENTS);
  check_who("strsm", is_hopper, N_ELEMENTS);
}

/* Bias and ReLU, as a layer has them. */
static void epilogue(void) {
  if (!begin_case()) return;
  const functions *const f = &sides[REAL];
  cublasLtMatmulDesc_t desc;
  cublasLtMatrixLayout_t layout;
  const float one = 1, zero = 0;
  const cublasOperation_t op = CUBLAS_OP_T;
  const cublasLtEpilogue_t act = CUBLASLT_EPILOGUE_RELU_BIAS;
  f->cublasLtMatmulDescCreate_(&desc, CUBLAS_COMPUTE_32F, CUDA_R_32F);
  f->cublasLtMatmulDescSetAttribute_(desc, CUBLASLT_MATMUL_DESC_TRANSA, &op, sizeof op);
  f->cublasLtMatmulDescSetAttribute_(desc, CUBLASLT_MATMUL_DESC_EPILOGUE, &act, sizeof act);
  f->cublasLtMatmulDescSetAttribute_(desc, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &b, sizeof b);
  f->cublasLtMatrixLayoutCreate_(&layout, CUDA_R_32F, MOST, MOST, MOST);
  for (int side = 0; side < N_SIDES; side++) {
    CHECK(sides[side].cublasLtMatmul_((cublasLtHandle_t)handle, desc, &one, a, layout, b, layout, &zero, c, layout, c, layout,
                                      NULL, NULL, 0, NULL) == CUBLAS_STATUS_SUCCESS,
          "Lt of side %d", side);
    fetch(side, N_ELEMENTS);
  }
  wsgemm_gemm_desc d = WSGEMM_GEMM_DESC_INIT;
  d.transa = WSGEMM_TRANS, d.m = d.n = d.k = d.lda = d.ldb = d.ldc = MOST, d.alpha.s = 1;
  d.a = a, d.b = b, d.c = c, d.bias = b, d.epilogue = WSGEMM_EPILOGUE_RELU;
  CHECK(wsgemm_gemm(NULL, &d) == WSGEMM_SUCCESS, "%s", wsgemm_last_error());
  fetch(2, N_ELEMENTS);
  check_who("Lt", is_hopper, N_ELEMENTS);
  for (int i = 0; i < N_ELEMENTS; i++)
    if (!(fabsf(host_c[0][i] - host_c[1][i]) <= 1e-3f)) {
      CHECK(false, "element %d: %g, cuBLASLt %g", i, (double)host_c[0][i], (double)host_c[1][i]);
      break;
    }
}

/* Batches by pointers: matrices of A and B in any order, those of C one after the other. */
enum { M = 70, N = 60, K = 50, COUNT = 90, STRIDE = 4500 };
static int place_of_a(int product) { return product * 7 % COUNT * STRIDE; }
static int place_of_b(int product) { return product * 11 % COUNT * STRIDE; }

/* All elements of a product beside sums in double, up to the first that is wrong. */
static void check_product(int product) {
  for (int i = 0; i < M * N; i++) {
    const float *const left = host_a + place_of_a(product) + i % M * K;
    const float *const right = host_b + place_of_b(product) + i / M * K;
    double sum = 0, size = 0;
    for (int l = 0; l < K; l++) sum += (double)left[l] * (double)right[l], size += fabs((double)left[l] * (double)right[l]);
    const double error = fabs((double)host_c[0][product * STRIDE + i] - sum), bound = (K + 2) * 0x1p-24 * 1.001 * size;
    CHECK(error <= bound, "product %d, element %d: error %g, bound %g", product, i, error, bound);
    if (!(error <= bound)) return;
  }
}

/* With WSGEMM_CUBLAS=all, as ctest also runs this case, they are wsgemm's; else the table decides. */
static void batches(void) {
  if (!begin_case()) return;
  const void *at[3][COUNT];
  for (int i = 0; i < COUNT; i++) {
    at[0][i] = a + place_of_a(i), at[1][i] = b + place_of_b(i), at[2][i] = c + i * STRIDE;
  }
  const void **const arrays[3] = {gpu_copy(at[0], sizeof at[0]), gpu_copy(at[1], sizeof at[1]), gpu_copy(at[2], sizeof at[2])};
  const float one = 1, zero = 0;
  for (int side = 0; side < N_SIDES; side++) {
    GPU(cudaMemset(c, 0xff, N_ELEMENTS * sizeof(float)));
    CHECK(sides[side].cublasSgemmBatched_(handle, CUBLAS_OP_T, CUBLAS_OP_N, M, N, K, &one, (const float *const *)arrays[0], K,
                                          (const float *const *)arrays[1], K, &zero, (float *const *)arrays[2], M,
                                          COUNT) == CUBLAS_STATUS_SUCCESS,
          "batch of side %d", side);
    fetch(side, N_ELEMENTS);
  }
  wsgemm_grouped_desc d = WSGEMM_GROUPED_DESC_INIT;
  d.transa = WSGEMM_TRANS, d.m = M, d.n = N, d.k = K, d.lda = d.ldb = K, d.ldc = M, d.group_count = COUNT, d.alpha.s = 1;
  d.a_array = arrays[0], d.b_array = arrays[1], d.c_array = (void *const *)arrays[2];
  GPU(cudaMemset(c, 0xff, N_ELEMENTS * sizeof(float)));
  const wsgemm_status status = wsgemm_gemm_grouped(NULL, &d);
  CHECK(status == (is_hopper ? WSGEMM_SUCCESS : WSGEMM_NOT_SUPPORTED), "%s", wsgemm_last_error());
  fetch(2, N_ELEMENTS);
  const char *const setting = getenv("WSGEMM_CUBLAS");
  if (setting && strcmp(setting, "all") == 0) check_who("batch", is_hopper, N_ELEMENTS);
  for (int g = 0; g < COUNT; g++) check_product(g);
  for (int i = 0; i < 3; i++) gpu_free((void *)arrays[i]);
}

static const struct check_case cases[] = {
    {"products", products}, {"scalars", scalars}, {"systems", systems}, {"epilogue", epilogue}, {"batches", batches},
};
int main(int argc, char **argv) {
  gpu_open();
  return check_main("gpu_cublas", cases, sizeof cases / sizeof cases[0], argc, argv);
}
