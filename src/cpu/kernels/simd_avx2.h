/* simd_avx2.h - the vector operations of the AVX2 + FMA kernels. The same operations as
 * simd_avx512.h. Masked loads and stores touch the first m lanes only; arithmetic cannot be masked,
 * so load_a repeats the first lanes in the others. A masked store is made of up to three parts: vmaskmov
 * takes Zen 3 a dozen cycles. */
#ifndef WS_SIMD_AVX2_H
#define WS_SIMD_AVX2_H
#include <immintrin.h>
#include <stdint.h>

#define WS_ISA avx2
#define WS_BYTES 32
/* The last vector of several of a tile's rows is that of its last rows, and overlaps the one before: no mask is wanted. */
#define WS_OVERLAPS 1
/* The write-back of C = A B has no branch for each vector (Zen 3: complex products of k up to 24 take a fifth less time). */
#define WS_PLAIN_ENDS 1
/* Sums along k: the vectors of B stay in registers, those of A pass by, as there are 16 of them. */
#define WS_DOTS_HOLD_B 1

/* A loaded vector stays in a register: gcc reads it again for each use as an operand in memory, which takes the place of loads. */
#define WS_KEEP(v) __asm__("" : "+x"(v))

typedef __m256 ws_vs;
typedef __m256d ws_vd;
typedef __m256i ws_vi;
/* Lanes in use, in words of 4 bytes: all ones in the first n; the words that all of a vector is filled from. */
typedef struct ws_lanes {
  __m256i used, from;
  int64_t n;
} ws_lanes;
typedef ws_lanes ws_ms, ws_md;

/* The first n words of 8. They are repeated four, two or one at a time, so that no number is cut, nor a pair of floats. */
static inline ws_lanes ws_first_words(int64_t n) {
  const __m256i word = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7), used = _mm256_cmpgt_epi32(_mm256_set1_epi32((int)n), word);
  const __m256i again = _mm256_and_si256(word, _mm256_set1_epi32(n >= 4 ? 3 : n >= 2));
  return (ws_lanes){used, _mm256_blendv_epi8(again, word, used), n};
}
static inline __m256i ws_load_words(const void *p, ws_lanes w) { return _mm256_maskload_epi32(p, w.used); }
static inline __m256i ws_repeat_words(__m256i v, ws_lanes w) { return _mm256_permutevar8x32_epi32(v, w.from); }
static inline void ws_store_words(void *p, __m256i v, int64_t n) {
  char *to = p;
  if (n >= 8) {
    _mm256_storeu_si256((__m256i *)p, v);
    return;
  }
  __m128i x = _mm256_castsi256_si128(v);
  if (n & 4) {
    _mm_storeu_si128((__m128i *)(void *)to, x);
    to += 16, x = _mm256_extracti128_si256(v, 1);
  }
  if (n & 2) {
    _mm_storel_epi64((__m128i *)(void *)to, x);
    to += 8, x = _mm_unpackhi_epi64(x, x);
  }
  if (n & 1) _mm_storeu_si32(to, x);
}

static inline ws_ms ws_mask_s(int64_t m) { return ws_first_words(m); }
static inline ws_vs ws_zero_s(void) { return _mm256_setzero_ps(); }
static inline ws_vs ws_set1_s(float x) { return _mm256_set1_ps(x); }
static inline ws_vs ws_load_s(const float *p) { return _mm256_loadu_ps(p); }
static inline ws_vs ws_load_m_s(const float *p, ws_ms m) { return (ws_vs)ws_load_words(p, m); }
static inline ws_vs ws_load_a_s(const float *p, ws_ms m) { return (ws_vs)ws_repeat_words(ws_load_words(p, m), m); }
static inline void ws_store_s(float *p, ws_vs v) { _mm256_storeu_ps(p, v); }
static inline void ws_store_m_s(float *p, ws_vs v, ws_ms m) { ws_store_words(p, (__m256i)v, m.n); }
static inline ws_vs ws_mul_s(ws_vs a, ws_vs b) { return _mm256_mul_ps(a, b); }
static inline ws_vs ws_mul_m_s(ws_vs a, ws_vs b, ws_ms m) {
  (void)m;
  return _mm256_mul_ps(a, b);
}
static inline ws_vs ws_add_s(ws_vs a, ws_vs b) { return _mm256_add_ps(a, b); }
static inline ws_vs ws_add_m_s(ws_vs a, ws_vs b, ws_ms m) {
  (void)m;
  return _mm256_add_ps(a, b);
}
static inline ws_vs ws_fma_s(ws_vs a, ws_vs b, ws_vs c) { return _mm256_fmadd_ps(a, b, c); }
static inline ws_vs ws_fma_m_s(ws_vs a, ws_vs b, ws_vs c, ws_ms m) {
  (void)m;
  return _mm256_fmadd_ps(a, b, c);
}
static inline ws_vs ws_fma_times_m_s(ws_vs a, const float *b, ws_vs c, ws_ms m) { return ws_fma_m_s(a, ws_set1_s(*b), c, m); }
static inline ws_vs ws_fmaddsub_m_s(ws_vs a, ws_vs b, ws_vs c, ws_ms m) {
  (void)m;
  return _mm256_fmaddsub_ps(a, b, c);
}
static inline ws_vs ws_swap_s(ws_vs v) { return _mm256_permute_ps(v, 0xb1); }
/* even lanes of a, odd ones of b */
static inline ws_vs ws_even_odd_s(ws_vs a, ws_vs b) { return _mm256_blend_ps(a, b, 0xaa); }
static inline ws_vs ws_xor_s(ws_vs a, ws_vs b) { return _mm256_xor_ps(a, b); }
static inline ws_vs ws_sign_s(void) { return _mm256_set1_ps(-0.0f); }
static inline ws_vs ws_sign_im_s(void) { return _mm256_castsi256_ps(_mm256_set1_epi64x((long long)0x8000000000000000ull)); }
/* Rotates lanes to the left by n. */
static inline ws_vs ws_from_lane_s(ws_vs v, int64_t n) {
  return _mm256_permutevar8x32_ps(v, _mm256_add_epi32(_mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7), _mm256_set1_epi32((int)n)));
}
static inline ws_vd ws_from_lane_d(ws_vd v, int64_t n) { return _mm256_castps_pd(ws_from_lane_s(_mm256_castpd_ps(v), 2 * n)); }
/* Sums of four vectors' lanes, one after the other to `out`, which has room for a vector: the upper half is added to the lower one
 * until `unit` lanes are left, 1 or 2. */
static inline void ws_fold4_s(float *out, ws_vs v0, ws_vs v1, ws_vs v2, ws_vs v3, int unit) {
  const ws_vs v01 = _mm256_add_ps(_mm256_permute2f128_ps(v0, v1, 0x20), _mm256_permute2f128_ps(v0, v1, 0x31));
  const ws_vs v23 = _mm256_add_ps(_mm256_permute2f128_ps(v2, v3, 0x20), _mm256_permute2f128_ps(v2, v3, 0x31));
  const ws_vs two = _mm256_add_ps(_mm256_shuffle_ps(v01, v23, 0x44), _mm256_shuffle_ps(v01, v23, 0xee)); /* v0, v2; v1, v3 */
  if (unit == 2) {
    ws_store_s(out, _mm256_castpd_ps(_mm256_permute4x64_pd(_mm256_castps_pd(two), 0xd8)));
  } else {
    const ws_vs one = _mm256_hadd_ps(two, two); /* v0, v2, v0, v2; v1, v3, v1, v3 */
    ws_store_s(out, _mm256_unpacklo_ps(_mm256_permute2f128_ps(one, one, 0x00), _mm256_permute2f128_ps(one, one, 0x11)));
  }
}

static inline ws_md ws_mask_d(int64_t m) { return ws_first_words(2 * m); }
static inline ws_vd ws_zero_d(void) { return _mm256_setzero_pd(); }
static inline ws_vd ws_set1_d(double x) { return _mm256_set1_pd(x); }
static inline ws_vd ws_load_d(const double *p) { return _mm256_loadu_pd(p); }
static inline ws_vd ws_load_m_d(const double *p, ws_md m) { return (ws_vd)ws_load_words(p, m); }
static inline ws_vd ws_load_a_d(const double *p, ws_md m) { return (ws_vd)ws_repeat_words(ws_load_words(p, m), m); }
static inline void ws_store_d(double *p, ws_vd v) { _mm256_storeu_pd(p, v); }
static inline void ws_store_m_d(double *p, ws_vd v, ws_md m) { ws_store_words(p, (__m256i)v, m.n); }
static inline ws_vd ws_mul_d(ws_vd a, ws_vd b) { return _mm256_mul_pd(a, b); }
static inline ws_vd ws_mul_m_d(ws_vd a, ws_vd b, ws_md m) {
  (void)m;
  return _mm256_mul_pd(a, b);
}
static inline ws_vd ws_add_d(ws_vd a, ws_vd b) { return _mm256_add_pd(a, b); }
static inline ws_vd ws_add_m_d(ws_vd a, ws_vd b, ws_md m) {
  (void)m;
  return _mm256_add_pd(a, b);
}
static inline ws_vd ws_fma_d(ws_vd a, ws_vd b, ws_vd c) { return _mm256_fmadd_pd(a, b, c); }
static inline ws_vd ws_fma_m_d(ws_vd a, ws_vd b, ws_vd c, ws_md m) {
  (void)m;
  return _mm256_fmadd_pd(a, b, c);
}
static inline ws_vd ws_fma_times_m_d(ws_vd a, const double *b, ws_vd c, ws_md m) { return ws_fma_m_d(a, ws_set1_d(*b), c, m); }
static inline ws_vd ws_fmaddsub_m_d(ws_vd a, ws_vd b, ws_vd c, ws_md m) {
  (void)m;
  return _mm256_fmaddsub_pd(a, b, c);
}
static inline ws_vd ws_swap_d(ws_vd v) { return _mm256_permute_pd(v, 0x5); }
static inline ws_vd ws_even_odd_d(ws_vd a, ws_vd b) { return _mm256_blend_pd(a, b, 0xa); }
static inline ws_vd ws_xor_d(ws_vd a, ws_vd b) { return _mm256_xor_pd(a, b); }
static inline ws_vd ws_sign_d(void) { return _mm256_set1_pd(-0.0); }
static inline ws_vd ws_sign_im_d(void) { return _mm256_setr_pd(0.0, -0.0, 0.0, -0.0); }
static inline void ws_fold4_d(double *out, ws_vd v0, ws_vd v1, ws_vd v2, ws_vd v3, int unit) {
  const ws_vd v01 = _mm256_add_pd(_mm256_permute2f128_pd(v0, v1, 0x20), _mm256_permute2f128_pd(v0, v1, 0x31));
  const ws_vd v23 = _mm256_add_pd(_mm256_permute2f128_pd(v2, v3, 0x20), _mm256_permute2f128_pd(v2, v3, 0x31));
  if (unit == 2)
    ws_store_d(out, v01), ws_store_d(out + 4, v23);
  else
    ws_store_d(out, _mm256_permute4x64_pd(_mm256_hadd_pd(v01, v23), 0xd8));
}

typedef __m128i ws_v16;
static inline ws_v16 ws_load_16(const uint16_t *p) { return _mm_loadu_si128((const __m128i *)p); }
static inline ws_v16 ws_load_m_16(const uint16_t *p, int64_t n) {
  uint16_t x[8] = {0};
  for (int64_t l = 0; l < n; l++) x[l] = p[l];
  return ws_load_16(x);
}
static inline void ws_store_16(uint16_t *p, ws_v16 v) { _mm_storeu_si128((__m128i *)p, v); }
static inline void ws_store_m_16(uint16_t *p, ws_v16 v, int64_t n) {
  uint16_t x[8];
  ws_store_16(x, v);
  for (int64_t l = 0; l < n; l++) p[l] = x[l];
}
static inline ws_vs ws_widen_h(ws_v16 v) { return _mm256_cvtph_ps(v); }
static inline ws_v16 ws_narrow_h(ws_vs v) { return _mm256_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT); }
static inline ws_vs ws_widen_b(ws_v16 v) { return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(v), 16)); }
/* Half of the last place, less one where the upper half is even, carries into the upper half; a NaN
 * must stay one. */
static inline ws_v16 ws_narrow_b(ws_vs v) {
  const __m256i x = _mm256_castps_si256(v), high = _mm256_srli_epi32(x, 16),
                magnitude = _mm256_and_si256(x, _mm256_set1_epi32(0x7fffffff));
  const __m256i half = _mm256_add_epi32(_mm256_set1_epi32(0x7fff), _mm256_and_si256(high, _mm256_set1_epi32(1)));
  const __m256i is_nan = _mm256_cmpgt_epi32(magnitude, _mm256_set1_epi32(0x7f800000));
  const __m256i rounded = _mm256_srli_epi32(_mm256_add_epi32(x, half), 16);
  const __m256i r = _mm256_blendv_epi8(rounded, _mm256_or_si256(high, _mm256_set1_epi32(0x40)), is_nan);
  return _mm_packus_epi32(_mm256_castsi256_si128(r), _mm256_extracti128_si256(r, 1));
}
#endif
