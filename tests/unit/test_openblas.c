/* test_openblas.c - random shapes against OpenBLAS, if the machine has it: loaded by name, never
 * linked. The difference of two results that both keep the promised bound is at most twice the
 * bound. Skipped where there is no OpenBLAS. */
#include "support/rows.h"

#include <dlfcn.h>
#include <math.h>
#include <stdlib.h>

typedef void real_single(int, int, int, int, int, int, float, const float *, int, const float *, int, float, float *, int);
typedef void real_double(int, int, int, int, int, int, double, const double *, int, const double *, int, double, double *, int);
typedef void complex_any(int, int, int, int, int, int, const void *, const void *, int, const void *, int, const void *, void *,
                         int);

static struct {
  real_single *s;
  real_double *d;
  complex_any *c, *z;
} peer;

/* Function pointers by way of an object pointer, as dlsym wants it. */
static bool load(void *library, const char *name, void *function) {
  void *symbol = dlsym(library, name);
  *(void **)function = symbol;
  return symbol != NULL;
}

static bool load_peer(void) {
  static const char *const names[] = {"libopenblas.so.0", "libopenblas.so"};
  for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
    void *library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
    if (library && load(library, "cblas_sgemm", &peer.s) && load(library, "cblas_dgemm", &peer.d) &&
        load(library, "cblas_cgemm", &peer.c) && load(library, "cblas_zgemm", &peer.z)) {
      void (*set_threads)(int);
      if (load(library, "openblas_set_num_threads", &set_threads)) set_threads(1);
      return true;
    }
  }
  return false;
}

static void call_peer(const wsgemm_gemm_desc *d) {
  const int layout = d->layout, ta = d->transa, tb = d->transb, m = (int)d->m, n = (int)d->n, k = (int)d->k, lda = (int)d->lda,
            ldb = (int)d->ldb, ldc = (int)d->ldc;
  if (d->type_a == WSGEMM_F32)
    peer.s(layout, ta, tb, m, n, k, d->alpha.s, d->a, lda, d->b, ldb, d->beta.s, d->c, ldc);
  else if (d->type_a == WSGEMM_F64)
    peer.d(layout, ta, tb, m, n, k, d->alpha.d, d->a, lda, d->b, ldb, d->beta.d, d->c, ldc);
  else if (d->type_a == WSGEMM_C32)
    peer.c(layout, ta, tb, m, n, k, &d->alpha, d->a, lda, d->b, ldb, &d->beta, d->c, ldc);
  else
    peer.z(layout, ta, tb, m, n, k, &d->alpha, d->a, lda, d->b, ldb, &d->beta, d->c, ldc);
}

/* |op(A)| |op(B)| from row sums would be too coarse a bound: it is computed, in double. */
static double magnitude_at(const struct stage *stage, const wsgemm_gemm_desc *d, int64_t i, int64_t j) {
  double alpha[2], beta[2], sum = 0;
  scalar_get(d->type_a, &d->alpha, alpha);
  scalar_get(d->type_a, &d->beta, beta);
  for (int64_t l = 0; l < d->k; l++)
    sum += (fabs(stage->a.re[i * stage->a.cols + l]) + fabs(stage->a.im[i * stage->a.cols + l])) *
           (fabs(stage->b.re[l * stage->b.cols + j]) + fabs(stage->b.im[l * stage->b.cols + j]));
  const int64_t at = i * stage->c.cols + j;
  return (fabs(alpha[0]) + fabs(alpha[1])) * sum +
         (fabs(beta[0]) + fabs(beta[1])) * (fabs(stage->c.re[at]) + fabs(stage->c.im[at]));
}

static void compare(struct check_random *rng, wsgemm_type type, int64_t most) {
  const int64_t m = check_random_in(rng, 1, most), n = check_random_in(rng, 1, most), k = check_random_in(rng, 0, most);
  wsgemm_gemm_desc d = gemm_desc(type, draw_layout(rng), draw_op(type, rng), draw_op(type, rng), m, n, k);
  if (type_is_complex(type)) /* CBLAS has no CONJ_NO_TRANS everywhere */
    while (d.transa == WSGEMM_CONJ_NO_TRANS || d.transb == WSGEMM_CONJ_NO_TRANS)
      d = gemm_desc(type, d.layout, draw_op(type, rng), draw_op(type, rng), m, n, k);
  struct stage stage = stage_new(type, m, n, k, FILL_UNIFORM, rng);
  const struct layout_of_case where = layout_drawn(rng);
  d.alpha = scalar_make(type, check_random_unit(rng), check_random_unit(rng));
  d.beta =
      check_random_in(rng, 0, 1) ? scalar_make(type, check_random_unit(rng), check_random_unit(rng)) : scalar_make(type, 0, 0);
  struct values theirs = values_new(type, m, n, FILL_ZERO, rng);
  case_store(&stage, &d, &where);
  call_peer(&d);
  for (int64_t i = 0; i < m; i++)
    for (int64_t j = 0; j < n; j++) matrix_get(&stage.stored[2], i, j, &theirs.re[i * n + j], &theirs.im[i * n + j]);
  case_store(&stage, &d, &where);
  char text[DESCRIPTION_BYTES];
  CHECK(gemm_typed(NULL, &d) == WSGEMM_SUCCESS, "%s: %s", gemm_describe(&d, text), wsgemm_last_error());
  case_guards_intact(&stage, &d, "beside OpenBLAS");
  const double unit = type_is_single(type) ? 0x1p-24 : 0x1p-53, tolerance = 2.0 * (double)(k + 3) * unit;
  int64_t n_wrong = 0, bad_i = -1, bad_j = -1;
  for (int64_t i = 0; i < m; i++)
    for (int64_t j = 0; j < n; j++) {
      double re, im;
      matrix_get(&stage.stored[2], i, j, &re, &im);
      const double off_re = fabs(re - theirs.re[i * n + j]), off_im = fabs(im - theirs.im[i * n + j]);
      if (off_re == 0 && off_im == 0) continue;
      const double bound = tolerance * magnitude_at(&stage, &d, i, j);
      if (!(off_re <= bound && off_im <= bound)) {
        n_wrong++;
        bad_i = i, bad_j = j;
      }
    }
  CHECK(n_wrong == 0, "%s: %lld elements differ by more than twice the bound, the last at (%lld, %lld)", gemm_describe(&d, text),
        (long long)n_wrong, (long long)bad_i, (long long)bad_j);
  values_free(&theirs);
  stage_free(&stage);
}

static void random_shapes(void) {
  struct check_random rng = check_random_from(30);
  if (!load_peer()) {
    check_skip("no OpenBLAS on this machine");
    return;
  }
  for (int turn = 0; turn < 1200 / check_scale(); turn++) compare(&rng, (wsgemm_type)(turn % 4), turn % 8 < 4 ? 40 : 200);
}

static const struct check_case cases[] = {{"random_shapes", random_shapes}};
CHECK_MAIN("openblas", cases)
