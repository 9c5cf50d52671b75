/* cublas.c - loads cuBLAS at run time: see cublas.h. Its types are ints and pointers here; the
 * values are those of its manual. */
#include "bench/harness/cublas.h"

#include <dlfcn.h>
#include <stdio.h>

#include "bench/harness/library.h"

enum { OP_N = 0, OP_T = 1, DEFAULT_MATH = 0, TF32_MATH = 3, R_16F = 2, R_16BF = 14, COMPUTE_32F = 68, DEFAULT_ALGORITHM = -1 };
typedef int gemm_fn(void *, int, int, int64_t, int64_t, int64_t, const void *, const void *, int64_t, const void *, int64_t,
                    const void *, void *, int64_t);

typedef int gemm_ex_fn(void *, int, int, int64_t, int64_t, int64_t, const void *, const void *, int, int64_t, const void *, int,
                       int64_t, const void *, void *, int, int64_t, int, int);

typedef int batched_fn(void *, int, int, int64_t, int64_t, int64_t, const void *, const void *, int64_t, int64_t, const void *,
                       int64_t, int64_t, const void *, void *, int64_t, int64_t, int64_t);
typedef int batched_ex_fn(void *, int, int, int64_t, int64_t, int64_t, const void *, const void *, int, int64_t, int64_t,
                          const void *, int, int64_t, int64_t, const void *, void *, int, int64_t, int64_t, int64_t, int, int);

typedef int pointers_fn(void *, int, int, int64_t, int64_t, int64_t, const void *, const void *const *, int64_t,
                        const void *const *, int64_t, const void *, void *const *, int64_t, int64_t);
typedef int pointers_ex_fn(void *, int, int, int64_t, int64_t, int64_t, const void *, const void *const *, int, int64_t,
                           const void *const *, int, int64_t, const void *, void *const *, int, int64_t, int64_t, int, int);

static void *handle;
static batched_fn *batched[4];
static batched_ex_fn *batched_ex;
static pointers_fn *pointers[4];
static pointers_ex_fn *pointers_ex;
static gemm_fn *gemm[4];
static gemm_ex_fn *gemm_ex;
static int (*set_math)(void *, int);
static char version[WS_BENCH_VERSION_BYTES];

bool ws_bench_cublas_open(cudaStream_t stream) {
  static const char *const names[] = {"libcublas.so.13", "libcublas.so.12", "libcublas.so"};
  static const char *const routines[] = {"cublasSgemm_v2_64", "cublasDgemm_v2_64", "cublasCgemm_v2_64", "cublasZgemm_v2_64"};
  int (*create)(void **), (*set_stream)(void *, cudaStream_t), (*property)(int, int *);
  void *library = ws_bench_load(names, (int)(sizeof names / sizeof names[0]));
  if (!library) {
    printf("no peer: %s\n", dlerror());
    return false;
  }
  ws_bench_find(library, "cublasCreate_v2", &create);
  ws_bench_find(library, "cublasSetStream_v2", &set_stream);
  ws_bench_find(library, "cublasSetMathMode", &set_math);
  ws_bench_find(library, "cublasGetProperty", &property);
  for (int t = 0; t < 4; t++) ws_bench_find(library, routines[t], &gemm[t]);
  ws_bench_find(library, "cublasGemmEx_64", &gemm_ex);
  static const char *const batches[] = {"cublasSgemmStridedBatched_64", "cublasDgemmStridedBatched_64",
                                        "cublasCgemmStridedBatched_64", "cublasZgemmStridedBatched_64"};
  for (int t = 0; t < 4; t++) ws_bench_find(library, batches[t], &batched[t]);
  ws_bench_find(library, "cublasGemmStridedBatchedEx_64", &batched_ex);
  static const char *const by_pointers[] = {"cublasSgemmBatched_64", "cublasDgemmBatched_64", "cublasCgemmBatched_64",
                                            "cublasZgemmBatched_64"};
  for (int t = 0; t < 4; t++) ws_bench_find(library, by_pointers[t], &pointers[t]);
  ws_bench_find(library, "cublasGemmBatchedEx_64", &pointers_ex);
  if (!create || !set_stream || !set_math || !property || !gemm[0] || !gemm[1] || !gemm[2] || !gemm[3] || !gemm_ex ||
      create(&handle) != 0 || set_stream(handle, stream) != 0 || set_math(handle, DEFAULT_MATH) != 0) {
    puts("no peer: this libcublas cannot be used");
    return false;
  }
  ws_bench_cuda_version("cuBLAS", property, version);
  return true;
}

void ws_bench_cublas_set_tf32(bool on) { set_math(handle, on ? TF32_MATH : DEFAULT_MATH); }

const char *ws_bench_cublas_version(void) { return version; }

typedef struct scalars {
  const void *one, *zero;
} scalars;

/* Of half precision they are floats, as its sums are. */
static scalars scalars_of(wsgemm_type type) {
  static const float one_s[2] = {1, 0}, zero_s[2] = {0, 0};
  static const double one_d[2] = {1, 0}, zero_d[2] = {0, 0};
  return type == WSGEMM_F64 || type == WSGEMM_C64 ? (scalars){one_d, zero_d} : (scalars){one_s, zero_s};
}
static int op_of(wsgemm_op op) { return op == WSGEMM_NO_TRANS ? OP_N : OP_T; }
/* cuBLAS's name of a half precision; -1: it is another type. */
static int half_of(wsgemm_type type) { return type == WSGEMM_F16 ? R_16F : type == WSGEMM_BF16 ? R_16BF : -1; }

bool ws_bench_cublas_gemm(wsgemm_type type, wsgemm_op transa, wsgemm_op transb, int64_t m, int64_t n, int64_t k, const void *a,
                          int64_t lda, const void *b, int64_t ldb, void *c, int64_t ldc) {
  const scalars of = scalars_of(type);
  const int op_a = op_of(transa), op_b = op_of(transb), half = half_of(type);
  if (half >= 0)
    return gemm_ex(handle, op_a, op_b, m, n, k, of.one, a, half, lda, b, half, ldb, of.zero, c, half, ldc, COMPUTE_32F,
                   DEFAULT_ALGORITHM) == 0;
  return gemm[type](handle, op_a, op_b, m, n, k, of.one, a, lda, b, ldb, of.zero, c, ldc) == 0;
}

bool ws_bench_cublas_gemm_batched(wsgemm_type type, wsgemm_op transa, wsgemm_op transb, int64_t m, int64_t n, int64_t k,
                                  const void *a, int64_t lda, int64_t stride_a, const void *b, int64_t ldb, int64_t stride_b,
                                  void *c, int64_t ldc, int64_t stride_c, int64_t count) {
  const scalars of = scalars_of(type);
  const int op_a = op_of(transa), op_b = op_of(transb), half = half_of(type);
  if (half >= 0)
    return batched_ex && batched_ex(handle, op_a, op_b, m, n, k, of.one, a, half, lda, stride_a, b, half, ldb, stride_b, of.zero,
                                    c, half, ldc, stride_c, count, COMPUTE_32F, DEFAULT_ALGORITHM) == 0;
  return batched[type] && batched[type](handle, op_a, op_b, m, n, k, of.one, a, lda, stride_a, b, ldb, stride_b, of.zero, c, ldc,
                                        stride_c, count) == 0;
}

bool ws_bench_cublas_gemm_pointers(wsgemm_type type, wsgemm_op transa, wsgemm_op transb, int64_t m, int64_t n, int64_t k,
                                   const void *const *a, int64_t lda, const void *const *b, int64_t ldb, void *const *c,
                                   int64_t ldc, int64_t count) {
  const scalars of = scalars_of(type);
  const int op_a = op_of(transa), op_b = op_of(transb), half = half_of(type);
  if (half >= 0)
    return pointers_ex && pointers_ex(handle, op_a, op_b, m, n, k, of.one, a, half, lda, b, half, ldb, of.zero, c, half, ldc,
                                      count, COMPUTE_32F, DEFAULT_ALGORITHM) == 0;
  return pointers[type] && pointers[type](handle, op_a, op_b, m, n, k, of.one, a, lda, b, ldb, of.zero, c, ldc, count) == 0;
}
