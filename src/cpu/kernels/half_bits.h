/* half_bits.h - halves in vectors of four, by the compiler's vector extension and whole numbers:
 * what simd_ref.h and simd_neon.h share. Included by them behind ws_vs. How a half is widened is
 * theirs; the rounding is not NEON's vcvt_f16_f32, which follows the rounding mode. */
#ifndef WS_HALF_BITS_H
#define WS_HALF_BITS_H
#include <stdint.h>
#include <string.h>

typedef uint16_t ws_v16 __attribute__((vector_size(8)));
typedef uint32_t ws_v32 __attribute__((vector_size(16)));
static inline ws_v16 ws_load_16(const uint16_t *p) {
  ws_v16 v;
  memcpy(&v, p, sizeof v);
  return v;
}
static inline ws_v16 ws_load_m_16(const uint16_t *p, int64_t n) {
  ws_v16 v = {0};
  memcpy(&v, p, (size_t)n * sizeof *p);
  return v;
}
static inline void ws_store_16(uint16_t *p, ws_v16 v) { memcpy(p, &v, sizeof v); }
static inline void ws_store_m_16(uint16_t *p, ws_v16 v, int64_t n) { memcpy(p, &v, (size_t)n * sizeof *p); }
/* The last place of the half weighs 2^13 of the float's, or, where the half is subnormal, ever
 * more; what is cut off is rounded to nearest even, and a carry into the exponent is right as it
 * is. */
static inline uint16_t ws_narrow_one_h(uint32_t x) {
  const uint32_t sign = x >> 16 & 0x8000, magnitude = x & 0x7fffffff;
  if (magnitude > 0x7f800000) return (uint16_t)(sign | 0x7e00 | (magnitude >> 13 & 0x3ff));
  if (magnitude >= 0x477ff000) return (uint16_t)(sign | 0x7c00); /* from half-way to 2^16 on */
  if (magnitude >= 0x38800000) {
    const uint32_t biased = magnitude - (112u << 23);
    return (uint16_t)(sign | (biased + 0xfff + (biased >> 13 & 1)) >> 13);
  }
  const uint32_t n_cut = 126 - (magnitude >> 23);
  if (n_cut > 24) return (uint16_t)sign; /* below half of 2^-24 */
  const uint32_t digits = (magnitude & 0x7fffff) | 0x800000;
  return (uint16_t)(sign | (digits + (1u << (n_cut - 1)) - 1 + (digits >> n_cut & 1)) >> n_cut);
}
static inline ws_v16 ws_narrow_h(ws_vs v) {
  const ws_v32 x = (ws_v32)v;
  ws_v16 r;
  for (int l = 0; l < 4; l++) r[l] = ws_narrow_one_h(x[l]);
  return r;
}
static inline ws_vs ws_widen_b(ws_v16 v) { return (ws_vs)(__builtin_convertvector(v, ws_v32) << 16); }
/* Half of the last place, less one where the upper half is even, carries into the upper half; a NaN
 * must stay one. */
static inline ws_v16 ws_narrow_b(ws_vs v) {
  const ws_v32 x = (ws_v32)v, high = x >> 16, is_nan = (ws_v32)((x & 0x7fffffff) > 0x7f800000);
  return __builtin_convertvector((is_nan & (high | 0x40)) | (~is_nan & ((x + 0x7fff + (high & 1)) >> 16)), ws_v16);
}
#endif
