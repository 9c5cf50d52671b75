/* matcopy_type.h - the copies of one element type, column-major, for matcopy.c: T is the type,
 * NAME(x) makes names, SCALED(alpha, x) multiplies, CONJUGATED(x) conjugates.
 *
 * alpha = 0 writes zeros and reads nothing. A transposition goes by squares of TILE x TILE elements,
 * so that both matrices are read and written by whole lines. */

static T NAME(element)(const T *alpha, bool is_zero, bool conj, const T *x) {
  if (is_zero) return (T)ZERO_ELEMENT;
  const T value = conj ? CONJUGATED(*x) : *x;
  return SCALED(*alpha, value);
}

/* B = alpha A. May be in place: then each element is read before anything is written on it. */
static void NAME(copy)(const T *alpha, bool conj, int64_t rows, int64_t cols, const T *a, int64_t lda, T *b, int64_t ldb) {
  const bool is_zero = IS_ZERO_ELEMENT(*alpha), backwards = a == b && ldb > lda;
  for (int64_t step = 0; step < cols; step++) {
    const int64_t j = backwards ? cols - 1 - step : step;
    if (backwards)
      for (int64_t i = rows - 1; i >= 0; i--) b[i + j * ldb] = NAME(element)(alpha, is_zero, conj, &a[i + j * lda]);
    else
      for (int64_t i = 0; i < rows; i++) b[i + j * ldb] = NAME(element)(alpha, is_zero, conj, &a[i + j * lda]);
  }
}

/* B = alpha A^T; A and B do not overlap. */
static void NAME(transpose)(const T *alpha, bool conj, int64_t rows, int64_t cols, const T *a, int64_t lda, T *b, int64_t ldb) {
  const bool is_zero = IS_ZERO_ELEMENT(*alpha);
  for (int64_t j0 = 0; j0 < cols; j0 += TILE)
    for (int64_t i0 = 0; i0 < rows; i0 += TILE)
      for (int64_t j = j0; j < cols && j < j0 + TILE; j++)
        for (int64_t i = i0; i < rows && i < i0 + TILE; i++)
          b[j + i * ldb] = NAME(element)(alpha, is_zero, conj, &a[i + j * lda]);
}

/* A = alpha A^T, n x n. */
static void NAME(transpose_square)(const T *alpha, bool conj, int64_t n, T *a, int64_t lda) {
  const bool is_zero = IS_ZERO_ELEMENT(*alpha);
  for (int64_t j0 = 0; j0 < n; j0 += TILE)
    for (int64_t i0 = j0; i0 < n; i0 += TILE)
      for (int64_t j = j0; j < n && j < j0 + TILE; j++)
        for (int64_t i = i0 > j ? i0 : j; i < n && i < i0 + TILE; i++) {
          const T lower = NAME(element)(alpha, is_zero, conj, &a[i + j * lda]);
          a[i + j * lda] = NAME(element)(alpha, is_zero, conj, &a[j + i * lda]);
          a[j + i * lda] = lower;
        }
}
