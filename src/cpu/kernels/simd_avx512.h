/* simd_avx512.h - the vector operations of the AVX-512 kernels.
 *
 * Each simd_*.h offers the same operations for float (suffix s) and double (suffix d); ukr_tile.h
 * is written over them. A mask selects the first m lanes of a vector. load_m fills the others with
 * zero; load_a fills them with anything that raises no floating-point exception in the _m
 * operations which the first lanes do not raise. Here those leave the others out of the arithmetic
 * altogether, so that zero will do. They are written as instructions because gcc may turn the
 * intrinsics into an unmasked operation and a masked move (12.2 does under -fsanitize=thread), and
 * 0 * Inf in a lane left out then raises FE_INVALID. */
#ifndef WS_SIMD_AVX512_H
#define WS_SIMD_AVX512_H
#include <immintrin.h>
#include <stdint.h>

#define WS_ISA avx512
#define WS_BYTES 64

/* r = the operation of the three-operand instruction on x, y in the lanes of m, zero in the
 * others */
#define WS_ZEROING(op, r, m, x, y) __asm__(op " %2, %1, %0%{%3%}%{z%}" : "=v"(r) : "v"(x), "v"(y), "Yk"(m))
/* r = the operation of the fused instruction on r, x, y in the lanes of m, as before in the
 * others */
#define WS_MERGING(op, r, m, x, y) __asm__(op " %2, %1, %0%{%3%}" : "+v"(r) : "v"(x), "v"(y), "Yk"(m))

/* The same with one number for y, in memory: it takes no register, and no instruction of its own (Zen 4: 12 numbers loaded into all
 * lanes and 12 multiply-adds take a third longer). */
#define WS_MERGING_TIMES(op, r, m, x, number, lanes) \
  __asm__(op " %2%{" lanes "%}, %1, %0%{%3%}" : "+v"(r) : "v"(x), "m"(number), "Yk"(m))

/* A loaded vector stays in a register: gcc reads it again for each use as an operand in memory, which takes the place of loads. */
#define WS_KEEP(v) __asm__("" : "+v"(v))

typedef __m512 ws_vs;
typedef __m512d ws_vd;
typedef __m512i ws_vi;
typedef __mmask16 ws_ms;
typedef __mmask8 ws_md;

static inline ws_ms ws_mask_s(int64_t m) { return (ws_ms)((1u << m) - 1u); }
static inline ws_vs ws_zero_s(void) { return _mm512_setzero_ps(); }
static inline ws_vs ws_set1_s(float x) { return _mm512_set1_ps(x); }
static inline ws_vs ws_load_s(const float *p) { return _mm512_loadu_ps(p); }
static inline ws_vs ws_load_m_s(const float *p, ws_ms m) { return _mm512_maskz_loadu_ps(m, p); }
static inline ws_vs ws_load_a_s(const float *p, ws_ms m) { return ws_load_m_s(p, m); }
static inline void ws_store_s(float *p, ws_vs v) { _mm512_storeu_ps(p, v); }
static inline void ws_store_m_s(float *p, ws_vs v, ws_ms m) { _mm512_mask_storeu_ps(p, m, v); }
static inline ws_vs ws_mul_s(ws_vs a, ws_vs b) { return _mm512_mul_ps(a, b); }
static inline ws_vs ws_mul_m_s(ws_vs a, ws_vs b, ws_ms m) {
  ws_vs r;
  WS_ZEROING("vmulps", r, m, a, b);
  return r;
}
static inline ws_vs ws_add_s(ws_vs a, ws_vs b) { return _mm512_add_ps(a, b); }
static inline ws_vs ws_add_m_s(ws_vs a, ws_vs b, ws_ms m) {
  ws_vs r;
  WS_ZEROING("vaddps", r, m, a, b);
  return r;
}
static inline ws_vs ws_fma_s(ws_vs a, ws_vs b, ws_vs c) { return _mm512_fmadd_ps(a, b, c); }
static inline ws_vs ws_fma_m_s(ws_vs a, ws_vs b, ws_vs c, ws_ms m) {
  WS_MERGING("vfmadd231ps", c, m, a, b);
  return c;
}
static inline ws_vs ws_fma_times_m_s(ws_vs a, const float *b, ws_vs c, ws_ms m) {
  WS_MERGING_TIMES("vfmadd231ps", c, m, a, *b, "1to16");
  return c;
}
/* (x0, x1, x2, x3, ..) -> (x1, x0, x3, x2, ..): swaps re and im. */
static inline ws_vs ws_swap_s(ws_vs v) { return _mm512_permute_ps(v, 0xb1); }
/* even lanes of a, odd ones of b */
static inline ws_vs ws_even_odd_s(ws_vs a, ws_vs b) { return _mm512_mask_blend_ps(0xaaaa, a, b); }
/* even lanes a * b - c, odd lanes a * b + c */
static inline ws_vs ws_fmaddsub_m_s(ws_vs a, ws_vs b, ws_vs c, ws_ms m) {
  WS_MERGING("vfmaddsub231ps", c, m, a, b);
  return c;
}
static inline ws_vs ws_xor_s(ws_vs a, ws_vs b) {
  return _mm512_castsi512_ps(_mm512_xor_si512(_mm512_castps_si512(a), _mm512_castps_si512(b)));
}
/* sign patterns: -0.0 in every lane, and in the odd (imaginary) lanes only */
static inline ws_vs ws_sign_s(void) { return _mm512_set1_ps(-0.0f); }
static inline ws_vs ws_sign_im_s(void) { return _mm512_castsi512_ps(_mm512_set1_epi64((long long)0x8000000000000000ull)); }

/* Sums of four vectors' lanes, one after the other to `out`, which has room for a vector: the upper half
 * is added to the lower one until `unit` lanes are left, 1 or 2. */
static inline void ws_fold4_s(float *out, ws_vs v0, ws_vs v1, ws_vs v2, ws_vs v3, int unit) {
  const ws_vs v01 = _mm512_add_ps(_mm512_shuffle_f32x4(v0, v1, 0x44), _mm512_shuffle_f32x4(v0, v1, 0xee));
  const ws_vs v23 = _mm512_add_ps(_mm512_shuffle_f32x4(v2, v3, 0x44), _mm512_shuffle_f32x4(v2, v3, 0xee));
  const ws_vs four = _mm512_add_ps(_mm512_shuffle_f32x4(v01, v23, 0x88), _mm512_shuffle_f32x4(v01, v23, 0xdd));
  const ws_vs two = _mm512_add_ps(four, _mm512_permute_ps(four, 0x4e)), one = _mm512_add_ps(two, _mm512_permute_ps(two, 0xb1));
  const __m512i firsts = _mm512_setr_epi32(0, 4, 8, 12, 0, 4, 8, 12, 0, 4, 8, 12, 0, 4, 8, 12);
  const __m512i pairs = _mm512_setr_epi32(0, 1, 4, 5, 8, 9, 12, 13, 0, 1, 4, 5, 8, 9, 12, 13);
  ws_store_s(out, _mm512_permutexvar_ps(unit == 1 ? firsts : pairs, unit == 1 ? one : two));
}

static inline ws_md ws_mask_d(int64_t m) { return (ws_md)((1u << m) - 1u); }
static inline ws_vd ws_zero_d(void) { return _mm512_setzero_pd(); }
static inline ws_vd ws_set1_d(double x) { return _mm512_set1_pd(x); }
static inline ws_vd ws_load_d(const double *p) { return _mm512_loadu_pd(p); }
static inline ws_vd ws_load_m_d(const double *p, ws_md m) { return _mm512_maskz_loadu_pd(m, p); }
static inline ws_vd ws_load_a_d(const double *p, ws_md m) { return ws_load_m_d(p, m); }
static inline void ws_store_d(double *p, ws_vd v) { _mm512_storeu_pd(p, v); }
static inline void ws_store_m_d(double *p, ws_vd v, ws_md m) { _mm512_mask_storeu_pd(p, m, v); }
static inline ws_vd ws_mul_d(ws_vd a, ws_vd b) { return _mm512_mul_pd(a, b); }
static inline ws_vd ws_mul_m_d(ws_vd a, ws_vd b, ws_md m) {
  ws_vd r;
  WS_ZEROING("vmulpd", r, m, a, b);
  return r;
}
static inline ws_vd ws_add_d(ws_vd a, ws_vd b) { return _mm512_add_pd(a, b); }
static inline ws_vd ws_add_m_d(ws_vd a, ws_vd b, ws_md m) {
  ws_vd r;
  WS_ZEROING("vaddpd", r, m, a, b);
  return r;
}
static inline ws_vd ws_fma_d(ws_vd a, ws_vd b, ws_vd c) { return _mm512_fmadd_pd(a, b, c); }
static inline ws_vd ws_fma_m_d(ws_vd a, ws_vd b, ws_vd c, ws_md m) {
  WS_MERGING("vfmadd231pd", c, m, a, b);
  return c;
}
static inline ws_vd ws_fma_times_m_d(ws_vd a, const double *b, ws_vd c, ws_md m) {
  WS_MERGING_TIMES("vfmadd231pd", c, m, a, *b, "1to8");
  return c;
}
static inline ws_vd ws_swap_d(ws_vd v) { return _mm512_permute_pd(v, 0x55); }
static inline ws_vd ws_even_odd_d(ws_vd a, ws_vd b) { return _mm512_mask_blend_pd(0xaa, a, b); }
static inline ws_vd ws_fmaddsub_m_d(ws_vd a, ws_vd b, ws_vd c, ws_md m) {
  WS_MERGING("vfmaddsub231pd", c, m, a, b);
  return c;
}
static inline ws_vd ws_xor_d(ws_vd a, ws_vd b) {
  return _mm512_castsi512_pd(_mm512_xor_si512(_mm512_castpd_si512(a), _mm512_castpd_si512(b)));
}
static inline ws_vd ws_sign_d(void) { return _mm512_set1_pd(-0.0); }
static inline ws_vd ws_sign_im_d(void) { return _mm512_mask_blend_pd(0xaa, _mm512_setzero_pd(), _mm512_set1_pd(-0.0)); }
static inline void ws_fold4_d(double *out, ws_vd v0, ws_vd v1, ws_vd v2, ws_vd v3, int unit) {
  const ws_vd v01 = _mm512_add_pd(_mm512_shuffle_f64x2(v0, v1, 0x44), _mm512_shuffle_f64x2(v0, v1, 0xee));
  const ws_vd v23 = _mm512_add_pd(_mm512_shuffle_f64x2(v2, v3, 0x44), _mm512_shuffle_f64x2(v2, v3, 0xee));
  const ws_vd two = _mm512_add_pd(_mm512_shuffle_f64x2(v01, v23, 0x88), _mm512_shuffle_f64x2(v01, v23, 0xdd));
  const ws_vd one = _mm512_add_pd(two, _mm512_permute_pd(two, 0x55));
  const __m512i firsts = _mm512_setr_epi64(0, 2, 4, 6, 0, 2, 4, 6);
  ws_store_d(out, unit == 1 ? _mm512_permutexvar_pd(firsts, one) : two);
}

/* As many halves as a vector has floats: their bits, loaded and stored whole or the first n of
 * them, and what they stand for. */
typedef __m256i ws_v16;
static inline ws_v16 ws_load_16(const uint16_t *p) { return _mm256_loadu_si256((const __m256i *)p); }
static inline ws_v16 ws_load_m_16(const uint16_t *p, int64_t n) { return _mm256_maskz_loadu_epi16(ws_mask_s(n), p); }
static inline void ws_store_16(uint16_t *p, ws_v16 v) { _mm256_storeu_si256((__m256i *)p, v); }
static inline void ws_store_m_16(uint16_t *p, ws_v16 v, int64_t n) { _mm256_mask_storeu_epi16(p, ws_mask_s(n), v); }
static inline ws_vs ws_widen_h(ws_v16 v) { return _mm512_cvtph_ps(v); }
static inline ws_v16 ws_narrow_h(ws_vs v) { return _mm512_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT); }
static inline ws_vs ws_widen_b(ws_v16 v) { return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(v), 16)); }
/* Half of the last place, less one where the upper half is even, carries into the upper half; a NaN
 * must stay one. */
static inline ws_v16 ws_narrow_b(ws_vs v) {
  const __m512i x = _mm512_castps_si512(v), high = _mm512_srli_epi32(x, 16),
                magnitude = _mm512_and_si512(x, _mm512_set1_epi32(0x7fffffff));
  const __m512i half = _mm512_add_epi32(_mm512_set1_epi32(0x7fff), _mm512_and_si512(high, _mm512_set1_epi32(1)));
  const __mmask16 is_nan = _mm512_cmpgt_epi32_mask(magnitude, _mm512_set1_epi32(0x7f800000));
  const __m512i rounded = _mm512_srli_epi32(_mm512_add_epi32(x, half), 16);
  return _mm512_cvtepi32_epi16(_mm512_mask_or_epi32(rounded, is_nan, high, _mm512_set1_epi32(0x40)));
}
#endif
