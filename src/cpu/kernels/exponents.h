/* exponents.h - which numbers the matrix unit may multiply: it takes subnormal bfloat16 for zero
 * and makes zero of FP32 results below 2^-126, so a register tile whose operands could bring it
 * there is not given to it (ukr_amx.c: exact_tile).
 *
 * Let the least exponent of A's panel, its zeros apart, be x, and that of B's y, and none of their
 * numbers be subnormal. A bfloat16 has 8 digits, so each element of A is a whole multiple of
 * 2^(x-7), each product one of 2^(x+y-14), and so is each sum of products: rounding to 24 digits
 * makes multiples of greater powers only. What is not zero is therefore 2^(x+y-14) at least: from x
 * + y = -112 on nothing is ever flushed, and every operation is that of IEEE FP32.
 * With largest exponents X and Y, k products add up to less than k 2^(X+Y+2): up to 2^127 / k no
 * sum on the way overflows that the sum from left to right would have kept finite (one fused
 * multiply-add may bring 2^128 - 2^127 back into range, the unit's separate sums may not). Inf and
 * NaN are left to the FP32 kernels too, whose exceptions are those that the operands call for.
 *
 * The panels and their blocks of k follow from the row and the shape alone; so does who multiplies
 * which tile. */
#ifndef WS_CPU_EXPONENTS_H
#define WS_CPU_EXPONENTS_H
#include <stdbool.h>
#include <stdint.h>

/* Biased exponents of a panel's least and largest numbers; NEVER beyond them where there are
 * subnormals, or Inf or NaN. */
typedef struct ws_exponents {
  int32_t least, largest;
} ws_exponents;

enum {
  WS_EXPONENTS_BIAS = 127,
  WS_EXPONENTS_NEVER = 1000,
  WS_EXPONENTS_LOG2_K = 9, /* of the longest k block */
  WS_EXPONENTS_LEAST = 2 * WS_EXPONENTS_BIAS - 126 + 14,
  WS_EXPONENTS_LARGEST = 2 * WS_EXPONENTS_BIAS + 127 - 2 - WS_EXPONENTS_LOG2_K
};

/* From the least magnitude that is not zero, less one (0xffff: there is none), and the largest. */
static inline ws_exponents ws_exponents_of(uint16_t least_less_one, uint16_t largest) {
  enum { FRACTION_BITS = 7, LEAST_NORMAL = 0x80, INF = 0x7f80 };
  const int32_t least = (int32_t)least_less_one + 1;
  const ws_exponents e = {least < LEAST_NORMAL ? -WS_EXPONENTS_NEVER : least >> FRACTION_BITS,
                          largest >= INF ? WS_EXPONENTS_NEVER : largest >> FRACTION_BITS};
  return e;
}

static inline bool ws_exponents_suit(const ws_exponents *a, const ws_exponents *b) {
  return a->least + b->least >= WS_EXPONENTS_LEAST && a->largest + b->largest <= WS_EXPONENTS_LARGEST;
}
#endif
