/* store_rows_avx512.h - a tile's columns, one a vector, stored as rows: element (i, j) goes to out + i * step + j elements, for
 * i < m, j < n. n is a constant where these are called; m is one but for the last vector of a tile. */
#ifndef WS_CPU_STORE_ROWS_AVX512_H
#define WS_CPU_STORE_ROWS_AVX512_H
#include <immintrin.h>
#include <stdint.h>

#include "cpu/kernels/simd_avx512.h"
#include "cpu/kernels/transpose_avx512.h"

#define WS_PART_INLINE static inline __attribute__((always_inline))

/* The first n words. */
WS_PART_INLINE void store_words_4(char *to, __m128i x, const int n) {
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
WS_PART_INLINE void store_words_8(char *to, __m256i x, const int n) {
  if (n == 8) {
    _mm256_storeu_si256((__m256i *)to, x);
    return;
  }
  WS_KEEP(x);
  _mm256_mask_storeu_epi32(to, (__mmask8)((1 << n) - 1), x);
}

WS_PART_INLINE void store_words_16(char *to, __m512i x, const int n) {
  if (n >= 16)
    _mm512_storeu_si512(to, x);
  else
    _mm512_mask_storeu_epi32(to, (__mmask16)((1 << n) - 1), x);
}

/* Words: columns in groups of 8, or of 4 and less. */
WS_PART_INLINE void store_rows_4(const __m512i *v, const int n, const int64_t m, char *out, int64_t step) {
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
        store_words_8(to + i * step, i & 4 ? _mm512_extracti64x4_epi64(both, 1) : _mm512_castsi512_si256(both), w);
      }
    } else {
      const int w = n - g;
/* a constant of the instruction, also where nothing is optimized */
#define WS_STORE_LANE(lane)                                                                \
  for (int q = 0; q < 4; q++) {                                                            \
    if (4 * (lane) + q >= m) break;                                                        \
    store_words_4(to + (4 * (lane) + q) * step, _mm512_extracti32x4_epi32(x[q], lane), w); \
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

/* Elements of 8 bytes: columns in groups of 8, or of 4 and less. */
WS_PART_INLINE void store_rows_8(const __m512i *v, const int n, const int64_t m, char *out, int64_t step) {
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
        store_words_16(to + i * step, x[i], 2 * (n - g));
      }
      continue;
    }
    mix_pairs(x, WS_LANES_0_1, WS_LANES_2_3); /* rows i and i + 2 */
#pragma GCC unroll 8
    for (int i = 0; i < 8; i++) {
      if (i >= m) break;
      const __m512i both = x[i / 4 * 2 + i % 2];
      store_words_8(to + i * step, i & 2 ? _mm512_extracti64x4_epi64(both, 1) : _mm512_castsi512_si256(both), 2 * (n - g));
    }
  }
}

/* Elements of 16 bytes. */
WS_PART_INLINE void store_rows_16(const __m512i *v, const int n, const int64_t m, char *out, int64_t step) {
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
      if (n - g >= 4)
        _mm512_storeu_si512(to + i * step, x[i]);
      else
        _mm512_mask_storeu_epi64(to + i * step, (__mmask8)((1 << 2 * (n - g)) - 1), x[i]);
    }
  }
}
#undef WS_PART_INLINE
#endif
