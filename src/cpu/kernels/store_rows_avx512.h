/* store_rows_avx512.h - a tile's columns, one a vector, stored as rows: element (i, j) goes to out + i * step + j elements, for
 * i < m, j < n. n is a constant where these are called; m is one but for the last vector of a tile. */
#ifndef WS_CPU_STORE_ROWS_AVX512_H
#define WS_CPU_STORE_ROWS_AVX512_H
#include <immintrin.h>
#include <stdint.h>

#include "core/scale.h"
#include "cpu/kernels/simd_avx512.h"
#include "cpu/kernels/transpose_avx512.h"

#define WS_PART_INLINE static inline __attribute__((always_inline))

/* What is stored in place of the first n reals of a row, beside what was there. */
typedef __m512i ws_row_fn(__m512i sums, __m512i old, const int n, const ws_scale *scale);

/* How rows are stored: as they are if there is no `add`. */
typedef struct ws_row_end {
  ws_row_fn *add;
  const ws_scale *scale;
  int real_words; /* words of a real */
} ws_row_end;

/* x, or what is stored in its place; its first n words count, as of old. */
WS_PART_INLINE __m512i row_end(__m512i x, __m512i old, const int n, const ws_row_end *end) {
  return end->add(x, old, n / end->real_words, end->scale);
}

/* The first n words. */
WS_PART_INLINE void store_words_4(char *to, __m128i x, const int n, const ws_row_end *end) {
  if (end->add) {
    const __m128i old = n == 4 ? _mm_loadu_si128((const __m128i *)to) : _mm_maskz_loadu_epi32((__mmask8)((1 << n) - 1), to);
    x = _mm512_castsi512_si128(row_end(_mm512_castsi128_si512(x), _mm512_castsi128_si512(old), n, end));
  }
  if (n == 4) {
    _mm_storeu_si128((__m128i *)to, x);
    return;
  }
  if (n == 1)
    _mm_storeu_si32(to, x);
  else
    _mm_storel_epi64((__m128i *)to, x);
  if (n == 3) _mm_storeu_si32(to + 8, _mm_srli_si128(x, 8));
}

/* The same. A masked vextract, which gcc would make of it, faults where the lanes left out are not mapped. */
WS_PART_INLINE void store_words_8(char *to, __m256i x, const int n, const ws_row_end *end) {
  if (end->add) {
    const __m256i old = n == 8 ? _mm256_loadu_si256((const __m256i *)to) : _mm256_maskz_loadu_epi32((__mmask8)((1 << n) - 1), to);
    x = _mm512_castsi512_si256(row_end(_mm512_castsi256_si512(x), _mm512_castsi256_si512(old), n, end));
  }
  if (n == 8) {
    _mm256_storeu_si256((__m256i *)to, x);
    return;
  }
  WS_KEEP(x);
  _mm256_mask_storeu_epi32(to, (__mmask8)((1 << n) - 1), x);
}

WS_PART_INLINE void store_words_16(char *to, __m512i x, const int given, const ws_row_end *end) {
  const int n = given < 16 ? given : 16;
  if (end->add)
    x = row_end(x, n == 16 ? _mm512_loadu_si512(to) : _mm512_maskz_loadu_epi32((__mmask16)((1 << n) - 1), to), n, end);
  if (n == 16)
    _mm512_storeu_si512(to, x);
  else
    _mm512_mask_storeu_epi32(to, (__mmask16)((1 << n) - 1), x);
}

/* Words: columns in groups of 8, or of 4 and less. */
WS_PART_INLINE void store_rows_4(const __m512i *v, const int n, const int64_t m, char *out, int64_t step, ws_row_fn *add,
                                 const ws_scale *scale) {
  const ws_row_end end = {add, scale, 1};
#pragma GCC unroll 2
  for (int g = 0; g < n; g += 8) {
    __m512i x[4], y[4];
#pragma GCC unroll 4
    for (int q = 0; q < 4; q++) {
      x[q] = g + q < n ? v[g + q] : _mm512_setzero_si512();
      y[q] = g + 4 + q < n ? v[g + 4 + q] : _mm512_setzero_si512();
    }
    char *const to = out + g * 4;
    transpose_lanes(x); /* lane l of x[q]: row 4 l + q */
    if (n - g > 4) {
      const int w = n - g < 8 ? n - g : 8;
      transpose_lanes(y);
      __m512i part[2][4];
#pragma GCC unroll 4
      for (int q = 0; q < 4; q++)
        part[0][q] = _mm512_permutex2var_epi64(x[q], WS_LANES_0_1, y[q]),
        part[1][q] = _mm512_permutex2var_epi64(x[q], WS_LANES_2_3, y[q]);
#pragma GCC unroll 16
      for (int i = 0; i < 16; i++) {
        if (i >= m) break;
        const __m512i both = part[i / 8][i % 4];
        store_words_8(to + i * step, i & 4 ? _mm512_extracti64x4_epi64(both, 1) : _mm512_castsi512_si256(both), w, &end);
      }
    } else {
      const int w = n - g;
/* a constant of the instruction, also where nothing is optimized */
#define WS_STORE_LANE(lane)                                                                      \
  for (int q = 0; q < 4; q++) {                                                                  \
    if (4 * (lane) + q >= m) break;                                                              \
    store_words_4(to + (4 * (lane) + q) * step, _mm512_extracti32x4_epi32(x[q], lane), w, &end); \
  }
#pragma GCC unroll 4
      WS_STORE_LANE(0)
#pragma GCC unroll 4
      WS_STORE_LANE(1)
#pragma GCC unroll 4
      WS_STORE_LANE(2)
#pragma GCC unroll 4
      WS_STORE_LANE(3)
#undef WS_STORE_LANE
    }
  }
}

/* Elements of 8 bytes, of a double or of two floats: columns in groups of 8, or of 4 and less. */
WS_PART_INLINE void store_pairs(const __m512i *v, const int n, const int64_t m, char *out, int64_t step, const ws_row_end *end) {
#pragma GCC unroll 2
  for (int g = 0; g < n; g += 8) {
    __m512i x[16];
#pragma GCC unroll 8
    for (int q = 0; q < 8; q++) x[q] = g + q < n ? v[g + q] : _mm512_setzero_si512();
    char *const to = out + g * 8;
    if (n - g > 4) {
      transpose_8(x);
#pragma GCC unroll 8
      for (int i = 0; i < 8; i++) {
        if (i >= m) break;
        store_words_16(to + i * step, x[i], 2 * (n - g), end);
      }
      continue;
    }
    mix_pairs(x, WS_LANES_0_1, WS_LANES_2_3); /* rows i and i + 2 */
#pragma GCC unroll 8
    for (int i = 0; i < 8; i++) {
      if (i >= m) break;
      const __m512i both = x[i / 4 * 2 + i % 2];
      store_words_8(to + i * step, i & 2 ? _mm512_extracti64x4_epi64(both, 1) : _mm512_castsi512_si256(both), 2 * (n - g), end);
    }
  }
}

WS_PART_INLINE void store_rows_8(const __m512i *v, const int n, const int64_t m, char *out, int64_t step, ws_row_fn *add,
                                 const ws_scale *scale) {
  const ws_row_end end = {add, scale, 2};
  store_pairs(v, n, m, out, step, &end);
}

WS_PART_INLINE void store_rows_4x2(const __m512i *v, const int n, const int64_t m, char *out, int64_t step, ws_row_fn *add,
                                   const ws_scale *scale) {
  const ws_row_end end = {add, scale, 1};
  store_pairs(v, n, m, out, step, &end);
}

/* Elements of 16 bytes, of two doubles. */
WS_PART_INLINE void store_rows_8x2(const __m512i *v, const int n, const int64_t m, char *out, int64_t step, ws_row_fn *add,
                                   const ws_scale *scale) {
  const ws_row_end end = {add, scale, 2};
#pragma GCC unroll 3
  for (int g = 0; g < n; g += 4) {
    __m512i x[16];
#pragma GCC unroll 4
    for (int q = 0; q < 4; q++) x[q] = g + q < n ? v[g + q] : _mm512_setzero_si512();
    transpose_4(x);
    char *const to = out + g * 16;
#pragma GCC unroll 4
    for (int i = 0; i < 4; i++) {
      if (i >= m) break;
      store_words_16(to + i * step, x[i], 4 * (n - g), &end);
    }
  }
}
#undef WS_PART_INLINE
#endif
