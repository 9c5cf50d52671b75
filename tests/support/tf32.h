/* tf32.h - the rounding of a float to TF32, to nearest, ties to even, as TMA and cvt.rn.tf32.f32 round; NaN stays what it is. */
#ifndef WSGEMM_TESTS_TF32_H
#define WSGEMM_TESTS_TF32_H
#include <stdint.h>
#include <string.h>

static inline float nearest_tf32(float x) {
  uint32_t bits;
  if (x != x) return x;
  memcpy(&bits, &x, sizeof bits);
  bits = (bits + 0xfff + (bits >> 13 & 1)) & 0xffffe000;
  memcpy(&x, &bits, sizeof bits);
  return x;
}
#endif
