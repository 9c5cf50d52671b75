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

/* All but conj_a and conj_b. */
static inline __attribute__((always_inline)) void ws_set_scale_s(ws_scale *s, float alpha_re, float alpha_im, float beta_re,
                                                                 float beta_im) {
  s->alpha.s[0] = alpha_re, s->alpha.s[1] = alpha_im;
  s->beta.s[0] = beta_re, s->beta.s[1] = beta_im;
  s->alpha_real = alpha_im == 0, s->beta_real = beta_im == 0;
  s->alpha_zero = alpha_re == 0 && alpha_im == 0, s->beta_zero = beta_re == 0 && beta_im == 0;
  s->alpha_one = alpha_re == 1 && alpha_im == 0, s->beta_one = beta_re == 1 && beta_im == 0;
}

static inline __attribute__((always_inline)) void ws_set_scale_d(ws_scale *s, double alpha_re, double alpha_im, double beta_re,
                                                                 double beta_im) {
  s->alpha.d[0] = alpha_re, s->alpha.d[1] = alpha_im;
  s->beta.d[0] = beta_re, s->beta.d[1] = beta_im;
  s->alpha_real = alpha_im == 0, s->beta_real = beta_im == 0;
  s->alpha_zero = alpha_re == 0 && alpha_im == 0, s->beta_zero = beta_re == 0 && beta_im == 0;
  s->alpha_one = alpha_re == 1 && alpha_im == 0, s->beta_one = beta_re == 1 && beta_im == 0;
}
#endif
