/* program.c - a program that knows nothing of wsgemm, only BLAS names; process.sh runs it under
 * libwsgemm_blas in all the ways there are.
 *
 *   program level3 | level1 | both | level1_64 | small_64 | errors | null | threads */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

void dgemm_(const char *, const char *, const int *, const int *, const int *, const double *, const double *, const int *,
            const double *, const int *, const double *, double *, const int *);
void cblas_dgemm(int, int, int, int, int, int, double, const double *, int, const double *, int, double, double *, int);
double ddot_(const int *, const double *, const int *, const double *, const int *);
double ddot_64_(const int64_t *, const double *, const int64_t *, const double *, const int64_t *) __attribute__((weak));
double cblas_ddot_64(int64_t, const double *, int64_t, const double *, int64_t) __attribute__((weak));
int openblas_get_num_threads(void) __attribute__((weak));

int main(int argc, char **argv) {
  const char *const what = argc > 1 ? argv[1] : "both";
  const int two = 2, one = 1, minus = -1;
  const double a[4] = {1, 2, 3, 4}, alpha = 1, beta = 0;
  double c[4] = {0, 0, 0, 0};
  if (strcmp(what, "level3") == 0 || strcmp(what, "both") == 0) {
    dgemm_("N", "T", &two, &two, &two, &alpha, a, &two, a, &two, &beta, c, &two);
    printf("dgemm %g %g %g %g\n", c[0], c[1], c[2], c[3]);
  }
  if (strcmp(what, "level1") == 0 || strcmp(what, "both") == 0) printf("ddot %g\n", ddot_(&two, a, &one, a, &one));
  const bool is_small = strcmp(what, "small_64") == 0;
  if (is_small || strcmp(what, "level1_64") == 0) { /* of the many there are none: stand-ins look at n */
    const int64_t n = is_small ? 2 : (INT64_C(1) << 40) + 2, step = 1;
    if (!is_small) printf("ddot %g\n", ddot_(&two, a, &one, a, &one));
    fflush(stdout);
    printf("ddot_64 %g", ddot_64_(&n, a, &step, a, &step));
    printf(" %g\n", cblas_ddot_64(n, a, step, a, step));
  }
  if (strcmp(what, "errors") == 0) {
    dgemm_("N", "N", &two, &minus, &two, &alpha, a, &two, a, &two, &beta, c, &two);
    cblas_dgemm(101, 111, 111, 2, 2, 2, 1, a, 2, a, 1, 0, c, 2); /* row-major: ldb */
    cblas_dgemm(101, 111, 111, -1, 2, 2, 1, a, 2, a, 2, 0, c, 2);
  }
  if (strcmp(what, "null") == 0) {
    c[0] = 5;
    dgemm_("N", "N", &two, &two, &two, &alpha, NULL, &two, a, &two, &beta, c, &two);
    printf("c %g\n", c[0]);
  }
  if (strcmp(what, "threads") == 0) printf("threads %d\n", openblas_get_num_threads ? openblas_get_num_threads() : 0);
  return 0;
}
