/* A small "OpenBLAS" for tests of `wsgemm bench`, right and slow: FAKE_GEMMTR is the name that its
 * sgemmtr goes by; with FAKE_SYRK it has ssyrk too. Of gemm it has the names that a peer must have. It
 * computes column-major, lower, not transposed: other calls end the process. */
#include <stdlib.h>

#define EXPORT __attribute__((visibility("default")))
enum { COL = 102, N = 111, LOWER = 122 };

static int n_threads = 1;

EXPORT const char *openblas_get_config(void) { return "OpenBLAS " FAKE_VERSION; }
EXPORT const char *openblas_get_corename(void) { return "SkylakeX"; }
EXPORT void openblas_set_num_threads(int n) { n_threads = n; }
EXPORT int openblas_get_num_threads(void) { return n_threads; }

EXPORT void cblas_sgemm(void) { abort(); }
EXPORT void cblas_dgemm(void) { abort(); }
EXPORT void cblas_cgemm(void) { abort(); }
EXPORT void cblas_zgemm(void) { abort(); }

/* The lower triangle of alpha A B + beta C; b_row, b_column: how far apart B's rows and columns are. */
static void lower_triangle(int n, int k, float alpha, const float *a, int lda, const float *b, int b_row, int b_column,
                           float beta, float *c, int ldc) {
  for (int j = 0; j < n; j++)
    for (int i = j; i < n; i++) {
      float sum = 0;
      for (int l = 0; l < k; l++) sum += a[i + l * lda] * b[l * b_row + j * b_column];
      c[i + j * ldc] = alpha * sum + (beta == 0 ? 0 : beta * c[i + j * ldc]);
    }
}

EXPORT void FAKE_GEMMTR(int layout, int uplo, int transa, int transb, int n, int k, float alpha, const float *a, int lda,
                        const float *b, int ldb, float beta, float *c, int ldc) {
  if (layout != COL || uplo != LOWER || transa != N || transb != N) abort();
  lower_triangle(n, k, alpha, a, lda, b, 1, ldb, beta, c, ldc);
}

#ifdef FAKE_SYRK
EXPORT void cblas_ssyrk(int layout, int uplo, int trans, int n, int k, float alpha, const float *a, int lda, float beta, float *c,
                        int ldc) {
  if (layout != COL || uplo != LOWER || trans != N) abort();
  lower_triangle(n, k, alpha, a, lda, a, lda, 1, beta, c, ldc);
}
#endif
