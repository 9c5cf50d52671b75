/* peer.c - see peer.h. cuBLAS's types are ints and pointers here, the values those of its
 * manual. */
#include "peer.h"

#include <dlfcn.h>
#include <stddef.h>
#include <string.h>

enum { PEER_SUCCESS = 0, OP_N = 0, OP_T = 1, OP_C = 2 };
typedef int create_function(void **handle);
typedef int gemm_function(void *handle, int transa, int transb, int64_t m, int64_t n, int64_t k, const void *alpha, const void *a,
                          int64_t lda, const void *b, int64_t ldb, const void *beta, void *c, int64_t ldc);

static void *handle;
static gemm_function *gemm[4]; /* by wsgemm_type */

bool peer_open(const char **why) {
  static const char *const names[] = {"libcublas.so.13", "libcublas.so.12", "libcublas.so"};
  static const char *const routines[] = {"cublasSgemm_v2_64", "cublasDgemm_v2_64", "cublasCgemm_v2_64", "cublasZgemm_v2_64"};
  void *library = NULL;
  create_function *create;
  if (handle) return true;
  for (size_t i = 0; i < sizeof names / sizeof names[0] && !library; i++) library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
  if (!library) {
    *why = dlerror();
    return false;
  }
  *(void **)&create = dlsym(library, "cublasCreate_v2");
  for (int type = 0; type < 4; type++) *(void **)&gemm[type] = dlsym(library, routines[type]);
  *why = "this libcublas cannot be used";
  return create && gemm[0] && gemm[1] && gemm[2] && gemm[3] && create(&handle) == PEER_SUCCESS;
}

bool peer_knows(wsgemm_op op) { return op != WSGEMM_CONJ_NO_TRANS; }

static int op_of(wsgemm_op op) { return op == WSGEMM_NO_TRANS ? OP_N : op == WSGEMM_TRANS ? OP_T : OP_C; }

/* cuBLAS is column-major: row-major is the product of the transposes, in the other order. */
wsgemm_status peer_gemm(wsgemm_handle *unused, const wsgemm_gemm_desc *d) {
  (void)unused;
  const bool transposed = d->layout == WSGEMM_ROW_MAJOR;
  /* its complex doubles are aligned to 16 bytes, and read so */
  _Alignas(16) wsgemm_scalar alpha = d->alpha, beta = d->beta;
  const int result = transposed ? gemm[d->type_c](handle, op_of(d->transb), op_of(d->transa), d->n, d->m, d->k, &alpha, d->b,
                                                  d->ldb, d->a, d->lda, &beta, d->c, d->ldc)
                                : gemm[d->type_c](handle, op_of(d->transa), op_of(d->transb), d->m, d->n, d->k, &alpha, d->a,
                                                  d->lda, d->b, d->ldb, &beta, d->c, d->ldc);
  return result == PEER_SUCCESS ? WSGEMM_SUCCESS : WSGEMM_INTERNAL_ERROR;
}
