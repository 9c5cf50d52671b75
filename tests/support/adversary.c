/* adversary.c - see adversary.h. */
#include "adversary.h"

#include <math.h>

static int drawn(struct check_random *random, int low, int high) { return (int)check_random_in(random, low, high); }

/* In [1, 2), of so many bits: all ones but for the lowest (most is dropped), 1 itself, or any. */
static double mantissa(struct check_random *random, int bits) {
  const double ulp = ldexp(1, 1 - bits);
  switch (drawn(random, 0, 2)) {
  case 0:
    return 2 - ulp;
  case 1:
    return 1;
  default:
    return 1 + ulp * (double)drawn(random, 0, (1 << (bits - 1)) - 1);
  }
}

/* How a pair of a row and a column is made. */
typedef struct manner {
  int tiny_every;          /* one pair in so many is a tiny element with a large partner; 0: none */
  int tiny_low, tiny_high; /* exponents of the tiny ones, after scaling */
  int tiny_bits, bits;     /* significant bits: of tiny elements, of others */
  int others;              /* exponent of the products of the other pairs */
  int spread;              /* exponents of single factors round half of that */
  bool is_signed, swaps;
} manner;

/* Tiny elements on both sides of the least normal number, or far below; the other products where
 * those lose their low bits to the tiny ones' exponent fields, or anywhere. */
static manner manner_drawn(struct check_random *random, int min_exponent, int bits, int largest) {
  static const int every[] = {0, 1, 2, 15, 16, 16, 16, 17, 64};
  manner how = {.tiny_every = every[drawn(random, 0, 8)], .bits = bits, .tiny_bits = drawn(random, 1, drawn(random, 1, bits))};
  how.tiny_low = min_exponent - drawn(random, 0, drawn(random, 0, 1) ? 1 : 12);
  how.tiny_high = how.tiny_low + drawn(random, 0, 1);
  how.others = drawn(random, 0, 2) ? min_exponent + largest - 25 + drawn(random, -3, 8) : -drawn(random, 0, 40);
  how.spread = drawn(random, 0, 2) ? 0 : drawn(random, 0, drawn(random, 0, 20) ? 20 : 70);
  how.is_signed = drawn(random, 0, 3) == 0, how.swaps = drawn(random, 0, 2) == 0;
  return how;
}

static double sign(struct check_random *random, const manner *how) { return how->is_signed && drawn(random, 0, 1) ? -1.0 : 1.0; }

static void put(struct check_random *random, const manner *how, int largest, float *x, float *y) {
  const bool is_tiny = how->tiny_every > 0 && drawn(random, 1, how->tiny_every) == 1;
  double of_x, of_y;
  if (is_tiny) {
    of_x = ldexp(mantissa(random, how->tiny_bits), drawn(random, how->tiny_low, how->tiny_high));
    of_y = ldexp(mantissa(random, how->bits), drawn(random, 0, 3) ? largest : largest - drawn(random, 0, 24));
  } else {
    const int e = how->others / 2 + drawn(random, -how->spread, how->spread);
    of_x = ldexp(mantissa(random, how->bits), e), of_y = ldexp(mantissa(random, how->bits), how->others - e);
  }
  *x = (float)(sign(random, how) * of_x), *y = (float)(sign(random, how) * of_y);
}

static void put_pairs(struct check_random *random, const manner *how, int largest, int64_t k, float *a, float *b) {
  for (int64_t p = 0; p < k; p++) {
    const bool swapped = how->swaps && drawn(random, 0, 1);
    put(random, how, largest, swapped ? b + p : a + p, swapped ? a + p : b + p);
  }
}

void adversary_of_slices(struct check_random *random, int64_t k, float *a, float *b) {
  const int largest = 13 + drawn(random, 0, 1);
  const manner how = manner_drawn(random, -14, 24, largest);
  const int of_a = drawn(random, -40, 40), of_b = drawn(random, -40, 40);
  put_pairs(random, &how, largest, k, a, b);
  /* The largest elements of row and column, which set the scales, meet zeros. */
  const int64_t first = drawn(random, 0, (int)k - 1), second = (first + drawn(random, 1, (int)k - 1)) % k;
  a[first] = 0x1p14f, b[first] = 0, a[second] = 0, b[second] = 0x1p14f;
  for (int64_t p = 0; p < k; p++) {
    if (fabsf(a[p]) >= 0x1p15f) a[p] = 0x1p14f;
    if (fabsf(b[p]) >= 0x1p15f) b[p] = 0x1p14f;
    a[p] = ldexpf(a[p], of_a), b[p] = ldexpf(b[p], of_b);
  }
}

/* Imaginary parts of one of the two. */
static void put_imaginary(struct check_random *random, int64_t k, const float *re, float *numbers) {
  const int kind = drawn(random, 0, 3);
  const float factor = kind == 0 ? 0 : kind == 1 ? 1 : kind == 2 ? -1 : ldexpf(1, -drawn(random, 1, 20));
  for (int64_t p = 0; p < k; p++) numbers[2 * p] = re[p], numbers[2 * p + 1] = factor * re[p];
}

void adversary_of_complex(struct check_random *random, int64_t k, float *a, float *b) {
  /* The real parts are made in the upper halves, which are read before they are written over. */
  adversary_of_slices(random, k, a + k, b + k);
  put_imaginary(random, k, a + k, a), put_imaginary(random, k, b + k, b);
}

/* Rounded toward zero to the format: what is below its least subnormal number is that number, what
 * is beyond its range the power of two that is its largest. */
static float of_format(float x, int min_exponent, int bits, int largest) {
  if (x == 0) return 0;
  if (ilogbf(x) > largest + 1) return copysignf(ldexpf(1, largest), x);
  const int e = ilogbf(x) > min_exponent ? ilogbf(x) : min_exponent;
  const double grid = ldexp(1, e - bits + 1), n = trunc((double)x / grid);
  return (float)((n != 0 ? n : x < 0 ? -1 : 1) * grid);
}

void adversary_of_elements(struct check_random *random, int min_exponent, int bits, int64_t k, float *a, float *b) {
  /* with subnormal numbers it makes products round 1 */
  const int largest = min_exponent < -100 ? 120 : 14;
  const manner how = manner_drawn(random, min_exponent, bits, largest);
  put_pairs(random, &how, largest, k, a, b);
  const int zero_every = drawn(random, 0, 1) ? 0 : drawn(random, 1, 40);
  for (int64_t p = 0; p < k; p++) {
    a[p] = of_format(a[p], min_exponent, bits, largest), b[p] = of_format(b[p], min_exponent, bits, largest);
    if (zero_every == 0 || drawn(random, 1, zero_every) > 1) continue;
    float *const of_zero = drawn(random, 0, 1) ? a : b, *const other = of_zero == a ? b : a;
    of_zero[p] = 0, other[p] = ldexpf(1, largest);
  }
}
