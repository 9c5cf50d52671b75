/* transpose_avx512.h - squares transposed in AVX-512 registers, for packing. */
#ifndef WS_CPU_TRANSPOSE_AVX512_H
#define WS_CPU_TRANSPOSE_AVX512_H
#include <immintrin.h>

/* Transposes a square held one row a vector: 16 x 16 words here, 8 x 8 elements of 8 bytes and 4 x
 * 4 of 16 bytes below. Neighbouring rows are mixed inside 128-bit lanes first, then whole lanes are
 * exchanged. */
static inline __attribute__((always_inline)) void transpose_16(__m512i v[16]) {
  __m512i t[16];
#pragma GCC unroll 8
  for (int i = 0; i < 16; i += 2) {
    t[i] = _mm512_unpacklo_epi32(v[i], v[i + 1]);
    t[i + 1] = _mm512_unpackhi_epi32(v[i], v[i + 1]);
  }
  /* t[i]: columns 0 1, t[i+1]: columns 2 3 (of each group of 4 columns) of rows i, i+1 */
#pragma GCC unroll 4
  for (int i = 0; i < 16; i += 4) {
    v[i] = _mm512_unpacklo_epi64(t[i], t[i + 2]);
    v[i + 1] = _mm512_unpackhi_epi64(t[i], t[i + 2]);
    v[i + 2] = _mm512_unpacklo_epi64(t[i + 1], t[i + 3]);
    v[i + 3] = _mm512_unpackhi_epi64(t[i + 1], t[i + 3]);
  }
  /* v[4 g + c]: in lane l the column 4 l + c of rows 4 g .. 4 g + 3 */
#pragma GCC unroll 4
  for (int c = 0; c < 4; c++) {
    const __m512i a = _mm512_shuffle_i32x4(v[c], v[4 + c], 0x44), b = _mm512_shuffle_i32x4(v[c], v[4 + c], 0xee);
    const __m512i d = _mm512_shuffle_i32x4(v[8 + c], v[12 + c], 0x44), e = _mm512_shuffle_i32x4(v[8 + c], v[12 + c], 0xee);
    t[c] = _mm512_shuffle_i32x4(a, d, 0x88);
    t[4 + c] = _mm512_shuffle_i32x4(a, d, 0xdd);
    t[8 + c] = _mm512_shuffle_i32x4(b, e, 0x88);
    t[12 + c] = _mm512_shuffle_i32x4(b, e, 0xdd);
  }
#pragma GCC unroll 16
  for (int i = 0; i < 16; i++) v[i] = t[i];
}

/* 4 x 4 words in each 128-bit lane. */
static inline __attribute__((always_inline)) void transpose_lanes(__m512i v[4]) {
  const __m512i a = _mm512_unpacklo_epi32(v[0], v[1]), b = _mm512_unpackhi_epi32(v[0], v[1]);
  const __m512i c = _mm512_unpacklo_epi32(v[2], v[3]), d = _mm512_unpackhi_epi32(v[2], v[3]);
  v[0] = _mm512_unpacklo_epi64(a, c), v[1] = _mm512_unpackhi_epi64(a, c);
  v[2] = _mm512_unpacklo_epi64(b, d), v[3] = _mm512_unpackhi_epi64(b, d);
}

/* Which two 128-bit lanes of x, and which two of y, a vector takes in turn: 0 and 1, or 2 and 3, of each; 0 and 2, or 1 and 3. */
#define WS_LANES_0_1 _mm512_setr_epi64(0, 1, 8, 9, 2, 3, 10, 11)
#define WS_LANES_2_3 _mm512_setr_epi64(4, 5, 12, 13, 6, 7, 14, 15)
#define WS_LANES_0_2 _mm512_setr_epi64(0, 1, 8, 9, 4, 5, 12, 13)
#define WS_LANES_1_3 _mm512_setr_epi64(2, 3, 10, 11, 6, 7, 14, 15)

/* Elements of 8 bytes of four vectors, transposed: each half of v[q] holds one element of each of them. first, second: the lanes of
 * v[0] and v[1], of v[2] and v[3]; even elements of them go to v[0] and v[2], odd ones to v[1] and v[3]. */
static inline __attribute__((always_inline)) void mix_pairs(__m512i v[4], __m512i low, __m512i high) {
  const __m512i even = _mm512_unpacklo_epi64(v[0], v[1]), odd = _mm512_unpackhi_epi64(v[0], v[1]);
  const __m512i even_2 = _mm512_unpacklo_epi64(v[2], v[3]), odd_2 = _mm512_unpackhi_epi64(v[2], v[3]);
  v[0] = _mm512_permutex2var_epi64(even, low, even_2), v[1] = _mm512_permutex2var_epi64(odd, low, odd_2);
  v[2] = _mm512_permutex2var_epi64(even, high, even_2), v[3] = _mm512_permutex2var_epi64(odd, high, odd_2);
}

static inline __attribute__((always_inline)) void transpose_8(__m512i v[16]) {
  __m512i t[8];
#pragma GCC unroll 4
  for (int i = 0; i < 8; i += 2) {
    t[i] = _mm512_unpacklo_epi64(v[i], v[i + 1]);
    t[i + 1] = _mm512_unpackhi_epi64(v[i], v[i + 1]);
  }
#pragma GCC unroll 2
  for (int c = 0; c < 2; c++) {
    const __m512i a = _mm512_shuffle_i64x2(t[c], t[2 + c], 0x44), b = _mm512_shuffle_i64x2(t[c], t[2 + c], 0xee);
    const __m512i d = _mm512_shuffle_i64x2(t[4 + c], t[6 + c], 0x44), e = _mm512_shuffle_i64x2(t[4 + c], t[6 + c], 0xee);
    v[c] = _mm512_shuffle_i64x2(a, d, 0x88);
    v[2 + c] = _mm512_shuffle_i64x2(a, d, 0xdd);
    v[4 + c] = _mm512_shuffle_i64x2(b, e, 0x88);
    v[6 + c] = _mm512_shuffle_i64x2(b, e, 0xdd);
  }
}

static inline __attribute__((always_inline)) void transpose_4(__m512i v[16]) {
  const __m512i a = _mm512_shuffle_i64x2(v[0], v[1], 0x44), b = _mm512_shuffle_i64x2(v[0], v[1], 0xee);
  const __m512i d = _mm512_shuffle_i64x2(v[2], v[3], 0x44), e = _mm512_shuffle_i64x2(v[2], v[3], 0xee);
  v[0] = _mm512_shuffle_i64x2(a, d, 0x88);
  v[1] = _mm512_shuffle_i64x2(a, d, 0xdd);
  v[2] = _mm512_shuffle_i64x2(b, e, 0x88);
  v[3] = _mm512_shuffle_i64x2(b, e, 0xdd);
}
#endif
