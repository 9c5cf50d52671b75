/* cublaslt.c - loads cuBLASLt at run time: see cublaslt.h. Its types are ints, pointers and the
 * two structs below; the values are those of its manual. */
#include "bench/harness/cublaslt.h"

#include <dlfcn.h>
#include <stdio.h>

#include "bench/harness/library.h"

enum { R_32F = 0, R_16F = 2, R_16BF = 14, COMPUTE_32F = 68, OP_N = 0, OP_T = 1 };
enum { DESC_TRANSA = 3, DESC_TRANSB = 4, PREFERENCE_MAX_WORKSPACE = 1 };
static const uint64_t most_workspace = 64 << 20;

typedef struct algorithm {
  uint64_t data[8];
} algorithm;

typedef struct proposal {
  algorithm algo;
  size_t workspace_bytes;
  int status;
  float n_waves;
  int reserved[4];
} proposal;

static struct {
  int (*create)(void **handle);
  int (*desc_create)(void **desc, int compute, int scale_type);
  int (*desc_set)(void *desc, int attribute, const void *value, size_t bytes);
  int (*desc_destroy)(void *desc);
  int (*layout_create)(void **layout, int type, uint64_t rows, uint64_t cols, int64_t ld);
  int (*layout_destroy)(void *layout);
  int (*preference_create)(void **preference);
  int (*preference_set)(void *preference, int attribute, const void *value, size_t bytes);
  int (*propose)(void *handle, void *desc, void *a, void *b, void *c, void *d, void *preference, int n_wanted, proposal *found,
                 int *n_found);
  int (*matmul)(void *handle, void *desc, const void *alpha, const void *a, void *layout_a, const void *b, void *layout_b,
                const void *beta, const void *c, void *layout_c, void *d, void *layout_d, const algorithm *algo, void *workspace,
                size_t workspace_bytes, cudaStream_t stream);
} lt;

static void *handle, *preference, *workspace;
static char version[WS_BENCH_VERSION_BYTES];
static void *desc, *layouts[3]; /* of A, B and C */
static proposal found[WS_BENCH_CUBLASLT_MOST];

static bool open_library(void) {
  static const char *const names[] = {"libcublasLt.so.13", "libcublasLt.so.12", "libcublasLt.so"};
  if (workspace) return true;
  void *library = ws_bench_load(names, (int)(sizeof names / sizeof names[0]));
  if (!library) {
    printf("no cuBLASLt: %s\n", dlerror());
    return false;
  }
  int (*property)(int, int *);
  const bool is_whole = ws_bench_find(library, "cublasLtGetProperty", &property) &&
                        ws_bench_find(library, "cublasLtCreate", &lt.create) &&
                        ws_bench_find(library, "cublasLtMatmulDescCreate", &lt.desc_create) &&
                        ws_bench_find(library, "cublasLtMatmulDescSetAttribute", &lt.desc_set) &&
                        ws_bench_find(library, "cublasLtMatmulDescDestroy", &lt.desc_destroy) &&
                        ws_bench_find(library, "cublasLtMatrixLayoutCreate", &lt.layout_create) &&
                        ws_bench_find(library, "cublasLtMatrixLayoutDestroy", &lt.layout_destroy) &&
                        ws_bench_find(library, "cublasLtMatmulPreferenceCreate", &lt.preference_create) &&
                        ws_bench_find(library, "cublasLtMatmulPreferenceSetAttribute", &lt.preference_set) &&
                        ws_bench_find(library, "cublasLtMatmulAlgoGetHeuristic", &lt.propose) &&
                        ws_bench_find(library, "cublasLtMatmul", &lt.matmul);
  if (!is_whole || lt.create(&handle) != 0 || lt.preference_create(&preference) != 0 ||
      lt.preference_set(preference, PREFERENCE_MAX_WORKSPACE, &most_workspace, sizeof most_workspace) != 0 ||
      cudaMalloc(&workspace, most_workspace) != cudaSuccess) {
    puts("no cuBLASLt: this library cannot be used");
    return false;
  }
  ws_bench_cuda_version("cuBLASLt", property, version);
  return true;
}

const char *ws_bench_cublaslt_version(void) { return version; }

int ws_bench_cublaslt_propose(wsgemm_type type, wsgemm_op transa, wsgemm_op transb, int64_t m, int64_t n, int64_t k, int64_t lda,
                              int64_t ldb, int64_t ldc) {
  if (!open_library()) return -1;
  const int half = type == WSGEMM_F16 ? R_16F : R_16BF;
  const bool trans_a = transa != WSGEMM_NO_TRANS, trans_b = transb != WSGEMM_NO_TRANS;
  const int op_a = trans_a ? OP_T : OP_N, op_b = trans_b ? OP_T : OP_N;
  if (desc) lt.desc_destroy(desc);
  for (int i = 0; i < 3; i++)
    if (layouts[i]) lt.layout_destroy(layouts[i]);
  int n_found = 0;
  const bool is_good = lt.desc_create(&desc, COMPUTE_32F, R_32F) == 0 &&
                       lt.desc_set(desc, DESC_TRANSA, &op_a, sizeof op_a) == 0 &&
                       lt.desc_set(desc, DESC_TRANSB, &op_b, sizeof op_b) == 0 &&
                       lt.layout_create(&layouts[0], half, (uint64_t)(trans_a ? k : m), (uint64_t)(trans_a ? m : k), lda) == 0 &&
                       lt.layout_create(&layouts[1], half, (uint64_t)(trans_b ? n : k), (uint64_t)(trans_b ? k : n), ldb) == 0 &&
                       lt.layout_create(&layouts[2], half, (uint64_t)m, (uint64_t)n, ldc) == 0 &&
                       lt.propose(handle, desc, layouts[0], layouts[1], layouts[2], layouts[2], preference,
                                  WS_BENCH_CUBLASLT_MOST, found, &n_found) == 0;
  return is_good ? n_found : 0;
}

bool ws_bench_cublaslt_gemm(int candidate, const void *a, const void *b, void *c, cudaStream_t stream) {
  static const float one = 1, zero = 0;
  const proposal *p = &found[candidate];
  return lt.matmul(handle, desc, &one, a, layouts[0], b, layouts[1], &zero, c, layouts[2], c, layouts[2], &p->algo, workspace,
                   p->workspace_bytes, stream) == 0;
}
