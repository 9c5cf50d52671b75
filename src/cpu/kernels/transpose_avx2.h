/* transpose_avx2.h - squares of elements of 4, 8 or 16 bytes, transposed in registers. */
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
#endif
