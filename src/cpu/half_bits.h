/* half_bits.h - a float rounded to IEEE binary16 by whole numbers: for ISAs that have no instruction for it, or one that follows the rounding
 * mode. */
#ifndef WS_HALF_BITS_H
#define WS_HALF_BITS_H
#include <stdint.h>

/* The last place of the half weighs 2^13 of the float's, or, where the half is subnormal, ever more; what is cut off is rounded to nearest
 * even, and a carry into the exponent is right as it is. */
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
#endif
