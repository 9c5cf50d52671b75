/* store_rows_avx2.h - a tile's columns, one a vector, stored as rows: element (i, j) goes to out + i * step + j elements, for
 * i < m, j < n. n is a constant where these are called; m is one but for the last vector of a tile. */
#ifndef WS_CPU_STORE_ROWS_AVX2_H
#define WS_CPU_STORE_ROWS_AVX2_H
#include "core/scale.h"
#include "cpu/kernels/simd_avx2.h"
#include "cpu/kernels/transpose_avx2.h"

/* What is stored in place of the first n reals of a row, beside what was there. */
typedef __m256i ws_row_fn(__m256i sums, __m256i old, const int n, const ws_scale *scale);

/* Elements of so many bytes, of real_words words each real; columns in groups of a vector's elements. */
WS_PART_INLINE void store_rows(const __m256i *v, const int n, const int64_t m, char *out, int64_t step, ws_row_fn *add,
                               const ws_scale *scale, const int bytes, const int real_words) {
  const int side = WS_SIDE(bytes);
#pragma GCC unroll 4
  for (int g = 0; g < n; g += side) {
    const int n_words = (n - g < side ? n - g : side) * bytes / 4;
    __m256i x[8];
#pragma GCC unroll 8
    for (int q = 0; q < side; q++) x[q] = g + q < n ? v[g + q] : _mm256_setzero_si256();
    transpose_square(x, bytes);
    char *to = out + g * bytes;
#pragma GCC unroll 8
    for (int i = 0; i < side; i++) {
      if (i >= m) break;
      if (add) { /* arithmetic cannot leave lanes out, and must raise nothing for them */
        const ws_lanes words = ws_first_words(n_words);
        const __m256i old = ws_repeat_words(ws_load_words(to, words), words);
        x[i] = add(ws_repeat_words(x[i], words), old, n_words / real_words, scale);
      }
      ws_store_words(to, x[i], n_words);
      to += step;
    }
  }
}

#define WS_STORE_ROWS_OF(name, bytes, real_words)                                                                                \
  WS_PART_INLINE void store_rows_##name(const __m256i *v, const int n, const int64_t m, char *out, int64_t step, ws_row_fn *add, \
                                        const ws_scale *scale) {                                                                 \
    store_rows(v, n, m, out, step, add, scale, bytes, real_words);                                                               \
  }
WS_STORE_ROWS_OF(4, 4, 1)
WS_STORE_ROWS_OF(8, 8, 2)
WS_STORE_ROWS_OF(4x2, 8, 1)
WS_STORE_ROWS_OF(8x2, 16, 2)
#undef WS_STORE_ROWS_OF
#endif
