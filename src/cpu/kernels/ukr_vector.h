/* ukr_vector.h - the matrix-vector product, written once over the vector operations. Included by
 * ukr_type.h.
 *
 * Both forms read A once, in the order in which it lies in memory, several columns at a time, and
 * keep the sums of a block of rows on the stack: four real sums make a complex one, of ar xr, ai
 * xi, ar xi and ai xr. Each sum is a fixed order of fused multiply-adds over p. */

#define WS_K_CHUNK (sizeof(R) * WS_UNIT > 8 ? 512 : 1024) /* elements of x copied at a time: at most 8 KiB */

typedef struct WS_NAME(sums) {
  /* untransposed A: sum of a(i,:) re(x), and of a(i,:) im(x); transposed A: elementwise products,
   * see dot */
  R by_re[WS_VEC_BYTES / WS_UNIT / sizeof(R)];
#if WS_UNIT == 2
  R by_im[WS_VEC_BYTES / WS_UNIT / sizeof(R)];
#endif
} WS_NAME(sums);

/* sums += A(:, 0 .. n_cols) x, for n_cols columns of m_reals reals each. */
WS_INLINE void WS_NAME(axpy)(int64_t m_reals, const R *a, int64_t lda, const R *x, int64_t incx, WS_NAME(sums) * sums,
                             const int n_cols) {
  WS_V xr[8];
#pragma GCC unroll 8
  for (int j = 0; j < n_cols; j++) xr[j] = WS_OP(set1)(x[j * incx]);
#if WS_UNIT == 2
  WS_V xi[8];
#pragma GCC unroll 8
  for (int j = 0; j < n_cols; j++) xi[j] = WS_OP(set1)(x[j * incx + 1]);
#endif
  for (int64_t i = 0; i < m_reals; i += WS_VL) {
    const bool whole = m_reals - i >= WS_VL;
    const WS_M mask = WS_OP(mask)(whole ? WS_VL : m_reals - i);
    WS_V by_re = WS_OP(load)(sums->by_re + i);
#if WS_UNIT == 2
    WS_V by_im = WS_OP(load)(sums->by_im + i);
#endif
#pragma GCC unroll 8
    for (int j = 0; j < n_cols; j++) {
      const WS_V av = whole ? WS_OP(load)(a + i + j * lda) : WS_OP(load_a)(a + i + j * lda, mask);
      by_re = WS_OP(fma_m)(av, xr[j], by_re, mask);
#if WS_UNIT == 2
      by_im = WS_OP(fma_m)(av, xi[j], by_im, mask);
#endif
    }
    WS_OP(store)(sums->by_re + i, by_re);
#if WS_UNIT == 2
    WS_OP(store)(sums->by_im + i, by_im);
#endif
  }
}

/* For n_rows rows of a transposed A: by_re[i] += (ar xr, ai xi), by_im[i] += (ar xi, ai xr), each
 * summed over k_reals / WS_UNIT. */
WS_INLINE void WS_NAME(dot)(int64_t k_reals, const R *a, int64_t lda, const R *x, R *by_re, R *by_im, const int n_rows) {
  WS_V p1[4][2], p2[4][2];
#pragma GCC unroll 4
  for (int i = 0; i < n_rows; i++) {
    p1[i][0] = p1[i][1] = p2[i][0] = p2[i][1] = WS_OP(zero)();
  }
  int64_t p = 0;
  for (; p + 2 * WS_VL <= k_reals; p += 2 * WS_VL) {
#pragma GCC unroll 2
    for (int u = 0; u < 2; u++) {
      const WS_V xv = WS_OP(load)(x + p + u * WS_VL);
#pragma GCC unroll 4
      for (int i = 0; i < n_rows; i++) {
        const WS_V av = WS_OP(load)(a + i * lda + p + u * WS_VL);
        p1[i][u] = WS_OP(fma)(av, xv, p1[i][u]);
        if (WS_UNIT == 2) p2[i][u] = WS_OP(fma)(av, WS_OP(swap)(xv), p2[i][u]);
      }
    }
  }
  for (; p < k_reals; p += WS_VL) {
    const WS_M mask = WS_OP(mask)(k_reals - p < WS_VL ? k_reals - p : WS_VL);
    const WS_V xv = WS_OP(load_m)(x + p, mask);
#pragma GCC unroll 4
    for (int i = 0; i < n_rows; i++) {
      const WS_V av = WS_OP(load_m)(a + i * lda + p, mask);
      p1[i][0] = WS_OP(fma_m)(av, xv, p1[i][0], mask);
      if (WS_UNIT == 2) p2[i][0] = WS_OP(fma_m)(av, WS_OP(swap)(xv), p2[i][0], mask);
    }
  }
#pragma GCC unroll 4
  for (int i = 0; i < n_rows; i++) {
    R lane[WS_VL];
    WS_OP(store)(lane, WS_OP(add)(p1[i][0], p1[i][1]));
    for (int half = WS_VL / 2; half >= WS_UNIT; half /= 2)
      for (int l = 0; l < half; l++) lane[l] += lane[l + half];
    for (int l = 0; l < WS_UNIT; l++) by_re[i * WS_UNIT + l] += lane[l];
    if (WS_UNIT == 2) {
      WS_OP(store)(lane, WS_OP(add)(p2[i][0], p2[i][1]));
      for (int half = WS_VL / 2; half >= WS_UNIT; half /= 2)
        for (int l = 0; l < half; l++) lane[l] += lane[l + half];
      for (int l = 0; l < WS_UNIT; l++) by_im[i * WS_UNIT + l] += lane[l];
    }
  }
}

static void WS_NAME(gemv)(int64_t m, int64_t k, const void *a_matrix, int64_t lda, bool a_trans, const void *x_vector,
                          int64_t incx, void *y_vector, int64_t incy, const ws_scale *scale) {
  const R *a = a_matrix, *x = x_vector;
  R *y = y_vector;
  WS_NAME(sums) sums;
  lda *= WS_UNIT, incx *= WS_UNIT, incy *= WS_UNIT;
  for (int64_t i = 0; i < (m * WS_UNIT + WS_VL - 1) / WS_VL * WS_VL; i++) {
    sums.by_re[i] = 0;
#if WS_UNIT == 2
    sums.by_im[i] = 0;
#endif
  }
  if (!a_trans) {
    int64_t p = 0;
    for (; p + 8 <= k; p += 8) WS_NAME(axpy)(m * WS_UNIT, a + p * lda, lda, x + p * incx, incx, &sums, 8);
    for (; p < k; p++) WS_NAME(axpy)(m * WS_UNIT, a + p * lda, lda, x + p * incx, incx, &sums, 1);
  } else {
    R copy[WS_K_CHUNK * WS_UNIT];
#if WS_UNIT == 2
    R *const by_im = sums.by_im;
#else
    R *const by_im = sums.by_re; /* not used */
#endif
    for (int64_t p = 0; p < k; p += WS_K_CHUNK) {
      const int64_t n = k - p < WS_K_CHUNK ? k - p : WS_K_CHUNK;
      const R *from = x + p * incx;
      if (incx != WS_UNIT) {
        for (int64_t q = 0; q < n; q++)
          for (int l = 0; l < WS_UNIT; l++) copy[q * WS_UNIT + l] = x[(p + q) * incx + l];
        from = copy;
      }
      int64_t i = 0;
      for (; i + 4 <= m; i += 4)
        WS_NAME(dot)(n * WS_UNIT, a + i * lda + p * WS_UNIT, lda, from, sums.by_re + i * WS_UNIT, by_im + i * WS_UNIT, 4);
      for (; i < m; i++)
        WS_NAME(dot)(n * WS_UNIT, a + i * lda + p * WS_UNIT, lda, from, sums.by_re + i * WS_UNIT, by_im + i * WS_UNIT, 1);
    }
  }
  const R *alpha = scale->alpha.WS_L, *beta = scale->beta.WS_L;
  for (int64_t i = 0; i < m; i++, y += incy) {
#if WS_UNIT == 1
    const R t = alpha[0] * sums.by_re[i];
    y[0] = scale->beta_zero ? t : t + beta[0] * y[0];
#else
    const R *q = sums.by_re + 2 * i, *r = sums.by_im + 2 * i;
    const R rr = q[0], ii = a_trans ? q[1] : r[1], ri = r[0], ir = a_trans ? r[1] : q[1];
    const R t_re = scale->conj_a == scale->conj_b ? rr - ii : rr + ii;
    const R t_im = (scale->conj_b ? -ri : ri) + (scale->conj_a ? -ir : ir);
    R re = alpha[0] * t_re, im = alpha[0] * t_im;
    if (!scale->alpha_real) re -= alpha[1] * t_im, im += alpha[1] * t_re;
    if (!scale->beta_zero) {
      R old_re = beta[0] * y[0], old_im = beta[0] * y[1];
      if (!scale->beta_real) old_re -= beta[1] * y[1], old_im += beta[1] * y[0];
      re += old_re, im += old_im;
    }
    y[0] = re, y[1] = im;
#endif
  }
}
#undef WS_K_CHUNK
