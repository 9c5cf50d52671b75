/* simd_neon.h - the vector operations of the NEON kernels: fused multiply-adds by intrinsics, the
 * rest by the compiler's vector extension. The same operations as simd_avx512.h. There are no
 * masks: load_m and load_a fill a vector element by element. */
#ifndef WS_SIMD_NEON_H
#define WS_SIMD_NEON_H
#include <arm_neon.h>
#include <stdint.h>
#include <string.h>

#define WS_ISA neon
#define WS_BYTES 16
/* The last vector of several of a tile's rows is that of its last rows, and overlaps the one before: no mask is wanted. */
#define WS_OVERLAPS 1

typedef float32x4_t ws_vs;
typedef float64x2_t ws_vd;
typedef int32_t ws_is __attribute__((vector_size(16)));
typedef int64_t ws_id __attribute__((vector_size(16)));
typedef int64_t ws_ms; /* lanes in use */
typedef int64_t ws_md;

static inline ws_ms ws_mask_s(int64_t m) { return m; }
static inline ws_vs ws_zero_s(void) { return (ws_vs){0}; }
static inline ws_vs ws_set1_s(float x) { return (ws_vs){x, x, x, x}; }
static inline ws_vs ws_load_s(const float *p) {
  ws_vs v;
  memcpy(&v, p, sizeof v);
  return v;
}
static inline ws_vs ws_load_m_s(const float *p, ws_ms m) {
  ws_vs v = {0};
  memcpy(&v, p, (size_t)m * sizeof *p);
  return v;
}
/* Repeats the first lanes: a pair at a time, so that a complex number stays one. */
static inline ws_vs ws_load_a_s(const float *p, ws_ms m) {
  ws_vs v;
  for (int l = 0; l < 4; l++) v[l] = p[l < m ? l : m == 1 ? 0 : l % 2];
  return v;
}
static inline void ws_store_s(float *p, ws_vs v) { memcpy(p, &v, sizeof v); }
static inline void ws_store_m_s(float *p, ws_vs v, ws_ms m) { memcpy(p, &v, (size_t)m * sizeof *p); }
static inline ws_vs ws_mul_s(ws_vs a, ws_vs b) { return a * b; }
static inline ws_vs ws_mul_m_s(ws_vs a, ws_vs b, ws_ms m) {
  (void)m;
  return a * b;
}
static inline ws_vs ws_add_s(ws_vs a, ws_vs b) { return a + b; }
static inline ws_vs ws_add_m_s(ws_vs a, ws_vs b, ws_ms m) {
  (void)m;
  return a + b;
}
static inline ws_vs ws_fma_s(ws_vs a, ws_vs b, ws_vs c) { return vfmaq_f32(c, a, b); }
static inline ws_vs ws_fma_m_s(ws_vs a, ws_vs b, ws_vs c, ws_ms m) {
  (void)m;
  return vfmaq_f32(c, a, b);
}
static inline ws_vs ws_fma_times_m_s(ws_vs a, const float *b, ws_vs c, ws_ms m) { return ws_fma_m_s(a, ws_set1_s(*b), c, m); }
static inline ws_vs ws_sign_s(void) { return (ws_vs){-0.0f, -0.0f, -0.0f, -0.0f}; }
static inline ws_vs ws_sign_im_s(void) { return (ws_vs){0.0f, -0.0f, 0.0f, -0.0f}; }
static inline ws_vs ws_xor_s(ws_vs a, ws_vs b) { return (ws_vs)((ws_is)a ^ (ws_is)b); }
static inline ws_vs ws_swap_s(ws_vs v) { return __builtin_shufflevector(v, v, 1, 0, 3, 2); }
/* even lanes a * b - c, odd lanes a * b + c */
static inline ws_vs ws_fmaddsub_m_s(ws_vs a, ws_vs b, ws_vs c, ws_ms m) {
  const ws_vs even = {-0.0f, 0.0f, -0.0f, 0.0f};
  (void)m;
  return vfmaq_f32(ws_xor_s(c, even), a, b);
}

static inline ws_md ws_mask_d(int64_t m) { return m; }
static inline ws_vd ws_zero_d(void) { return (ws_vd){0}; }
static inline ws_vd ws_set1_d(double x) { return (ws_vd){x, x}; }
static inline ws_vd ws_load_d(const double *p) {
  ws_vd v;
  memcpy(&v, p, sizeof v);
  return v;
}
static inline ws_vd ws_load_m_d(const double *p, ws_md m) {
  ws_vd v = {0};
  memcpy(&v, p, (size_t)m * sizeof *p);
  return v;
}
/* Repeats the first lanes: a pair at a time, so that a complex number stays one. */
static inline ws_vd ws_load_a_d(const double *p, ws_md m) {
  ws_vd v;
  for (int l = 0; l < 2; l++) v[l] = p[l < m ? l : m == 1 ? 0 : l % 2];
  return v;
}
static inline void ws_store_d(double *p, ws_vd v) { memcpy(p, &v, sizeof v); }
static inline void ws_store_m_d(double *p, ws_vd v, ws_md m) { memcpy(p, &v, (size_t)m * sizeof *p); }
static inline ws_vd ws_mul_d(ws_vd a, ws_vd b) { return a * b; }
static inline ws_vd ws_mul_m_d(ws_vd a, ws_vd b, ws_md m) {
  (void)m;
  return a * b;
}
static inline ws_vd ws_add_d(ws_vd a, ws_vd b) { return a + b; }
static inline ws_vd ws_add_m_d(ws_vd a, ws_vd b, ws_md m) {
  (void)m;
  return a + b;
}
static inline ws_vd ws_fma_d(ws_vd a, ws_vd b, ws_vd c) { return vfmaq_f64(c, a, b); }
static inline ws_vd ws_fma_m_d(ws_vd a, ws_vd b, ws_vd c, ws_md m) {
  (void)m;
  return vfmaq_f64(c, a, b);
}
static inline ws_vd ws_fma_times_m_d(ws_vd a, const double *b, ws_vd c, ws_md m) { return ws_fma_m_d(a, ws_set1_d(*b), c, m); }
static inline ws_vd ws_sign_d(void) { return (ws_vd){-0.0, -0.0}; }
static inline ws_vd ws_sign_im_d(void) { return (ws_vd){0.0, -0.0}; }
static inline ws_vd ws_xor_d(ws_vd a, ws_vd b) { return (ws_vd)((ws_id)a ^ (ws_id)b); }
static inline ws_vd ws_swap_d(ws_vd v) { return __builtin_shufflevector(v, v, 1, 0); }
/* even lanes a * b - c, odd lanes a * b + c */
static inline ws_vd ws_fmaddsub_m_d(ws_vd a, ws_vd b, ws_vd c, ws_md m) {
  const ws_vd even = {-0.0, 0.0};
  (void)m;
  return vfmaq_f64(ws_xor_d(c, even), a, b);
}

#include "cpu/kernels/half_bits.h"

static inline ws_vs ws_widen_h(ws_v16 v) { return vcvt_f32_f16((float16x4_t)v); }

/* even lanes of a, odd ones of b */
static inline ws_vs ws_even_odd_s(ws_vs a, ws_vs b) {
  a[1] = b[1], a[3] = b[3];
  return a;
}
static inline ws_vd ws_even_odd_d(ws_vd a, ws_vd b) {
  a[1] = b[1];
  return a;
}
/* A vector's lanes, the upper half added to the lower one until `unit` are left: 1 or 2. */
static inline void ws_fold_s(float *out, ws_vs v, int unit) {
  const float even = v[0] + v[2], odd = v[1] + v[3];
  out[0] = unit == 1 ? even + odd : even;
  if (unit == 2) out[1] = odd;
}
static inline void ws_fold_d(double *out, ws_vd v, int unit) {
  out[0] = unit == 1 ? v[0] + v[1] : v[0];
  if (unit == 2) out[1] = v[1];
}
#include "cpu/kernels/simd_fold4.h"

#endif
