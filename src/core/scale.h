/* scale.h - alpha and beta, and what is known of them. */
#ifndef WS_SCALE_H
#define WS_SCALE_H
#include <stdbool.h>

/* What happens to the accumulators on their way to C. Scalars are (re, im), im = 0 for real
 * types. */
typedef struct ws_scale {
  union {
    float s[2];
    double d[2];
  } alpha, beta;
  bool alpha_zero, beta_zero; /* A and B, or C, are not read */
  bool alpha_one, beta_one;   /* nothing to multiply by */
  /* im = 0: multiplies as a real number, so that 0 * Inf makes no NaN */
  bool alpha_real, beta_real;
  /* complex types only; false in a problem, whose operands say it: set for micro-kernels
   * (cpu/paths.h) */
  bool conj_a, conj_b;
} ws_scale;
#endif
