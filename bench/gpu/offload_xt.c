/* offload_xt.c - see offload_xt.h. */
#include "offload_xt.h"

#include <ctype.h>
#include <stdio.h>

#include "bench/harness/library.h"
#include "cublas_level3.h"
#include "operands.h"

/* Its sizes are of type size_t, which is passed as int64_t is. */
typedef int gemm_fn(void *, int, int, int64_t, int64_t, int64_t, const void *, const void *, int64_t, const void *, int64_t,
                    const void *, void *, int64_t);
enum { MOST_DEVICES = 8 };

static struct {
  void *library, *handle;
  int (*set_block)(void *, int);
} xt;

bool xt_open(int n_devices, char peer[64]) {
  static const char *const files[] = {"libcublas.so.13", "libcublas.so.12"};
  static const int ids[MOST_DEVICES] = {0, 1, 2, 3, 4, 5, 6, 7};
  int (*create)(void **), (*select)(void *, int, const int *), (*property)(int, int *);
  xt.library = ws_bench_load(files, 2);
  if (!xt.library || !ws_bench_find(xt.library, "cublasXtCreate", &create) ||
      !ws_bench_find(xt.library, "cublasXtDeviceSelect", &select) ||
      !ws_bench_find(xt.library, "cublasXtSetBlockDim", &xt.set_block) ||
      !ws_bench_find(xt.library, "cublasGetProperty", &property))
    return false;
  ws_bench_cuda_version("cublasXt", property, peer);
  return create(&xt.handle) == 0 && select(xt.handle, n_devices, ids) == 0;
}

static bool find(const offload_case *t, void *function) {
  char name[64];
  if (!xt.handle || t->type > WSGEMM_C64) return false;
  snprintf(name, sizeof name, "cublasXt%c%s", toupper(letters[t->type]), offload_routines[t->routine].name);
  return ws_bench_find(xt.library, name, function);
}

bool xt_has(const offload_case *t) {
  int (*function)(void);
  return find(t, &function);
}

bool xt_run(const offload_case *t, int block) {
  const void *one = scalar_of(t->type, 1), *zero = scalar_of(t->type, 0);
  const int64_t m = t->m, n = t->n, k = t->k, lda = t->of[0].rows, ldb = t->of[1].rows, ldc = t->of[2].rows;
  void *h = xt.handle, *a = t->of[0].host, *b = t->of[1].host, *c = t->of[2].host;
  void (*any)(void);
  if (xt.set_block(h, block) != 0 || !find(t, &any)) return false;
  int status = 1;
  switch (t->routine) {
  case OFFLOAD_GEMM:
    status = (*(gemm_fn *)any)(h, t->is_transposed[0], t->is_transposed[1], m, n, k, one, a, lda, b, ldb, zero, c, ldc);
    break;
  case OFFLOAD_SYMM:
    status = (*(symm_fn *)any)(h, CUBLAS_LEFT, CUBLAS_LOWER, m, n, one, a, lda, b, ldb, zero, c, ldc);
    break;
  case OFFLOAD_SYRK:
    status = (*(syrk_fn *)any)(h, CUBLAS_LOWER, CUBLAS_N, n, k, one, a, lda, zero, c, ldc);
    break;
  case OFFLOAD_SYR2K:
    status = (*(syr2k_fn *)any)(h, CUBLAS_LOWER, CUBLAS_N, n, k, one, a, lda, b, ldb, zero, c, ldc);
    break;
  case OFFLOAD_TRMM:
    status = (*(trmm_fn *)any)(h, CUBLAS_LEFT, CUBLAS_LOWER, CUBLAS_N, CUBLAS_UNIT, m, n, one, a, lda, b, ldb, c, ldc);
    break;
  case OFFLOAD_TRSM:
    status = (*(trsm_fn *)any)(h, CUBLAS_LEFT, CUBLAS_LOWER, CUBLAS_N, CUBLAS_UNIT, m, n, one, a, lda, c, ldc);
    break;
  case OFFLOAD_N_ROUTINES:
    break;
  }
  return status == 0;
}
