/* laswp.c - LAPACK's row interchanges, {s,d,c,z}laswp: the one routine of LAPACK in this library.
 *
 * LAPACK's getrf calls it for every block of columns, and with Netlib's own, which goes along rows,
 * it takes a quarter of the time where columns lie a multiple of 4 KiB apart: all elements of a row
 * meet in one set of a cache. Here each column is done with before the next, whose lines are asked
 * for meanwhile. It moves elements and does no arithmetic, so whoever finds it in place of another
 * one gets the same bits. As there, arguments are not checked. */
#include <string.h>

#include "blas/blas.h"

enum { COLUMNS_AHEAD = 2 };

/* Inlined with a constant size, so that the copies become moves. */
WS_BLAS_INLINE void exchange(char *x, char *y, const size_t bytes) {
  char kept[16];
  memcpy(kept, x, bytes);
  memcpy(x, y, bytes);
  memcpy(y, kept, bytes);
}

/* Rows k1 .. k2, each with the one that its pivot names, in this order; from k2 upwards if incx < 0.
 * Rows are counted from 1. */
#define LASWP(name, bytes, INT)                                                                                        \
  WS_BLAS_EXPORT void name(const INT *n, void *a, const INT *lda, const INT *k1, const INT *k2, const INT *pivots,     \
                           const INT *incx);                                                                           \
  void name(const INT *n, void *a, const INT *lda, const INT *k1, const INT *k2, const INT *pivots, const INT *incx) { \
    const int64_t step = *incx, count = (int64_t)*k2 - *k1 + 1, ld_bytes = (int64_t)*lda * (bytes);                    \
    if (step == 0 || count <= 0) return;                                                                               \
    const int64_t by = step > 0 ? 1 : -1, first = step > 0 ? *k1 : *k2;                                                \
    /* going up, pivots are read from behind: the first of them is that of row k2 */                                   \
    const INT *const first_pivot = pivots + (step > 0 ? *k1 - 1 : *k1 - 1 + (count - 1) * -step);                      \
    char *column = (char *)a - (bytes);                                                                                \
    for (int64_t j = 0; j < *n; j++, column += ld_bytes) {                                                             \
      const char *const ahead = column + COLUMNS_AHEAD * ld_bytes;                                                     \
      const INT *pivot = first_pivot;                                                                                  \
      int64_t row = first;                                                                                             \
      for (int64_t i = 0; i < count; i++, row += by, pivot += step) {                                                  \
        const int64_t other = *pivot;                                                                                  \
        __builtin_prefetch(ahead + other * (bytes), 1);                                                                \
        exchange(column + row * (bytes), column + other * (bytes), bytes);                                             \
      }                                                                                                                \
    }                                                                                                                  \
  }

LASWP(slaswp_, 4, int32_t)
LASWP(dlaswp_, 8, int32_t)
LASWP(claswp_, 8, int32_t)
LASWP(zlaswp_, 16, int32_t)
LASWP(slaswp_64_, 4, int64_t)
LASWP(dlaswp_64_, 8, int64_t)
LASWP(claswp_64_, 8, int64_t)
LASWP(zlaswp_64_, 16, int64_t)
