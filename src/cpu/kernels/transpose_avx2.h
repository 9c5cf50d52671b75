/* transpose_avx2.h - squares of elements of 4, 8 or 16 bytes, transposed in registers; vectors loaded and stored in part. */
#ifndef WS_CPU_TRANSPOSE_AVX2_H
#define WS_CPU_TRANSPOSE_AVX2_H
#include <immintrin.h>
#include <stdint.h>

#define WS_PART_INLINE static inline __attribute__((always_inline))

/* Elements of so many bytes in a vector. */
#define WS_SIDE(bytes) (32 / (bytes))

/* 8 x 8 of 4 bytes. */
WS_PART_INLINE void transpose_words(__m256i v[8]) {
  __m256i pair[8], quad[8];
#pragma GCC unroll 4
  for (int i = 0; i < 8; i += 2) {
    pair[i] = _mm256_unpacklo_epi32(v[i], v[i + 1]);
    pair[i + 1] = _mm256_unpackhi_epi32(v[i], v[i + 1]);
  }
#pragma GCC unroll 2
  for (int i = 0; i < 8; i += 4)
#pragma GCC unroll 2
    for (int h = 0; h < 2; h++) {
      quad[i + 2 * h] = _mm256_unpacklo_epi64(pair[i + h], pair[i + 2 + h]);
      quad[i + 2 * h + 1] = _mm256_unpackhi_epi64(pair[i + h], pair[i + 2 + h]);
    }
#pragma GCC unroll 4
  for (int i = 0; i < 4; i++) {
    v[i] = _mm256_permute2x128_si256(quad[i], quad[4 + i], 0x20);
    v[4 + i] = _mm256_permute2x128_si256(quad[i], quad[4 + i], 0x31);
  }
}

/* 4 x 4 of 8 bytes. */
WS_PART_INLINE void transpose_pairs(__m256i v[4]) {
  const __m256i even = _mm256_unpacklo_epi64(v[0], v[1]), odd = _mm256_unpackhi_epi64(v[0], v[1]);
  const __m256i even_2 = _mm256_unpacklo_epi64(v[2], v[3]), odd_2 = _mm256_unpackhi_epi64(v[2], v[3]);
  v[0] = _mm256_permute2x128_si256(even, even_2, 0x20), v[2] = _mm256_permute2x128_si256(even, even_2, 0x31);
  v[1] = _mm256_permute2x128_si256(odd, odd_2, 0x20), v[3] = _mm256_permute2x128_si256(odd, odd_2, 0x31);
}

/* 2 x 2 of 16 bytes. */
WS_PART_INLINE void transpose_quads(__m256i v[2]) {
  const __m256i low = _mm256_permute2x128_si256(v[0], v[1], 0x20);
  v[1] = _mm256_permute2x128_si256(v[0], v[1], 0x31), v[0] = low;
}

WS_PART_INLINE void transpose_square(__m256i *v, const int bytes) {
  if (bytes == 4)
    transpose_words(v);
  else if (bytes == 8)
    transpose_pairs(v);
  else
    transpose_quads(v);
}

/* The first n_words of 8; nothing behind them is touched. */
WS_PART_INLINE __m256i words_used(int64_t n_words) {
  return _mm256_cmpgt_epi32(_mm256_set1_epi32((int)n_words), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}
WS_PART_INLINE __m256i load_words(const char *from, __m256i used) { return _mm256_maskload_epi32((const int *)from, used); }
WS_PART_INLINE void store_words(char *to, __m256i x, int64_t n_words) {
  if (n_words >= 8) {
    _mm256_storeu_si256((__m256i *)to, x);
    return;
  }
  __m128i part = _mm256_castsi256_si128(x);
  if (n_words & 4) {
    _mm_storeu_si128((__m128i *)to, part);
    to += 16, part = _mm256_extracti128_si256(x, 1);
  }
  if (n_words & 2) {
    _mm_storel_epi64((__m128i *)to, part);
    to += 8, part = _mm_unpackhi_epi64(part, part);
  }
  if (n_words & 1) _mm_storeu_si32(to, part);
}
#endif
