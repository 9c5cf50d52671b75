/* batch.h - gemm_batch (groups of products, each given by pointers) and gemm_batch_strided.
 *
 * All arguments are checked before any product is computed, in the caller's own layout. Numbers of
 * bad arguments are positions in the call. */
#ifndef WS_BLAS_BATCH_H
#define WS_BLAS_BATCH_H

#include "blas/blas.h"

/* Products of one shape: of a group, or of a strided batch. An op of 0 stands for a bad one. */
typedef struct ws_blas_shape {
  wsgemm_layout layout;
  wsgemm_op transa, transb;
  int64_t m, n, k, lda, ldb, ldc;
  int64_t count; /* of products */
} ws_blas_shape;

bool ws_blas_good_count(ws_blas_caller caller, int64_t n_groups);
bool ws_blas_good_group(ws_blas_caller caller, const ws_blas_shape *shape);
bool ws_blas_good_strided(ws_blas_caller caller, const ws_blas_shape *shape);

/* alpha and beta are scalars of `type`. */
void ws_blas_run_group(ws_blas_routine routine, wsgemm_type type, const ws_blas_shape *shape, const void *alpha, const void *beta,
                       const void *const *a, const void *const *b, void *const *c);

typedef struct ws_blas_strides {
  int64_t a, b, c;
} ws_blas_strides;

void ws_blas_run_strided(ws_blas_routine routine, wsgemm_type type, const ws_blas_shape *shape, const void *alpha,
                         const void *beta, const void *a, const void *b, void *c, ws_blas_strides strides);

/* The body of an entry point of groups: i counts groups; alpha_i and beta_i are scalars. */
#define RUN_GROUPS(name, x, layout_, op, alpha_i, beta_i, n_groups)                                                          \
  const ws_blas_caller caller = {WS_BLAS_##name, WAY};                                                                       \
  if (!ws_blas_good_count(caller, n_groups)) return;                                                                         \
  for (int pass = 0; pass < 2; pass++)                                                                                       \
    for (int64_t i = 0, first = 0; i < (n_groups); first += group_size[i], i++) {                                            \
      const ws_blas_shape shape = {layout_, op(transa[i]), op(transb[i]), m[i],   n[i],                                      \
                                   k[i],    lda[i],        ldb[i],        ldc[i], group_size[i]};                            \
      const SCALAR_##x alpha_of_group = alpha_i, beta_of_group = beta_i;                                                     \
      if (pass == 0 && !ws_blas_good_group(caller, &shape)) return;                                                          \
      if (pass == 1)                                                                                                         \
        ws_blas_run_group(WS_BLAS_##name, TYPE_##x, &shape, &alpha_of_group, &beta_of_group, (const void *const *)a + first, \
                          (const void *const *)b + first, (void *const *)c + first);                                         \
    }

#define RUN_STRIDED(name, x, layout_, transa_, transb_, m_, n_, k_, alpha_, a_, lda_, stride_a_, b_, ldb_, stride_b_, beta_, c_, \
                    ldc_, stride_c_, count_)                                                                                     \
  const ws_blas_shape shape = {layout_, transa_, transb_, m_, n_, k_, lda_, ldb_, ldc_, count_};                                 \
  const SCALAR_##x alpha_of_all = alpha_, beta_of_all = beta_;                                                                   \
  if (ws_blas_good_strided((ws_blas_caller){WS_BLAS_##name, WAY}, &shape))                                                       \
    ws_blas_run_strided(WS_BLAS_##name, TYPE_##x, &shape, &alpha_of_all, &beta_of_all, a_, b_, c_,                               \
                        (ws_blas_strides){stride_a_, stride_b_, stride_c_});

#endif
