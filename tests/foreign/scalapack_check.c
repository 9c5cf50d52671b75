/* scalapack_check.c - ScaLAPACK over whatever BLAS is under it: pdgemm, pdpotrf and pdgetrf on a 2 x 2
 * grid of processes, with residuals.
 *
 *   mpirun -n 4 scalapack_check N BLOCK
 *
 * It takes BLACS's C interface, which starts MPI itself, so neither MPI's nor ScaLAPACK's headers are
 * needed. Every element of a matrix is a function of its indices, so each process knows all of them.
 * Exit status 1 if a residual is too large; rank 0 prints. */
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

void Cblacs_pinfo(int *rank, int *n_ranks);
void Cblacs_get(int context, int what, int *value);
void Cblacs_gridinit(int *context, char *order, int rows, int cols);
void Cblacs_gridinfo(int context, int *rows, int *cols, int *row, int *col);
void Cblacs_barrier(int context, char *scope);
void Cblacs_gridexit(int context);
void Cblacs_exit(int keep_mpi);
void Cdgsum2d(int context, char *scope, char *topology, int m, int n, double *a, int lda, int to_row, int to_col);
int numroc_(const int *n, const int *block, const int *place, const int *first, const int *n_places);
void descinit_(int *desc, const int *m, const int *n, const int *mb, const int *nb, const int *row, const int *col,
               const int *context, const int *ld, int *info);
void pdgemm_(const char *transa, const char *transb, const int *m, const int *n, const int *k, const double *alpha,
             const double *a, const int *ia, const int *ja, const int *desca, const double *b, const int *ib, const int *jb,
             const int *descb, const double *beta, double *c, const int *ic, const int *jc, const int *descc);
void pdpotrf_(const char *uplo, const int *n, double *a, const int *ia, const int *ja, const int *desca, int *info);
void pdpotrs_(const char *uplo, const int *n, const int *n_rhs, const double *a, const int *ia, const int *ja, const int *desca,
              double *b, const int *ib, const int *jb, const int *descb, int *info);
void pdgetrf_(const int *m, const int *n, double *a, const int *ia, const int *ja, const int *desca, int *pivots, int *info);
void pdgetrs_(const char *trans, const int *n, const int *n_rhs, const double *a, const int *ia, const int *ja, const int *desca,
              const int *pivots, double *b, const int *ib, const int *jb, const int *descb, int *info);

static int context, n, block, rank, row, col;
static int rows_here, cols_here, desc[9], desc_vector[9];
static const int one = 1, zero = 0, two = 2;

/* ---- the matrices ----------------------------------------------------------------------------- */

/* In (-1, 1), from a mix of the indices' bits. */
static double element(unsigned salt, int i, int j) {
  unsigned x = (unsigned)i * 2654435761u + (unsigned)j * 2246822519u + salt * 3266489917u;
  x ^= x >> 15, x *= 2246822519u, x ^= x >> 13, x *= 3266489917u, x ^= x >> 16;
  return (double)x / 2147483648.0 - 1;
}
static double general(int i, int j) { return element(1, i, j); }
static double other(int i, int j) { return element(2, i, j); }
static double definite(int i, int j) { return element(3, i < j ? i : j, i < j ? j : i) + (i == j ? n : 0); }
static double right_hand_side(int i) { return element(4, i, 0); }

/* A local row or column as one of the whole matrix: blocks go round the two places. */
static int global_of(int local, int place) { return (local / block * 2 + place) * block + local % block; }

static double *make(double (*value)(int, int)) {
  double *const a = malloc(sizeof *a * (size_t)(rows_here > 0 ? rows_here : 1) * (size_t)(cols_here > 0 ? cols_here : 1));
  if (!a) exit(2);
  for (int j = 0; j < cols_here; j++)
    for (int i = 0; i < rows_here; i++)
      a[i + (size_t)j * (size_t)rows_here] = value ? value(global_of(i, row), global_of(j, col)) : 0;
  return a;
}

/* y = A x for a matrix that is given by its function; by every process for itself. */
static void multiply(double (*value)(int, int), const double *x, double *y) {
  for (int i = 0; i < n; i++) {
    y[i] = 0;
    for (int j = 0; j < n; j++) y[i] += value(i, j) * x[j];
  }
}

static double largest(const double *x) {
  double most = 0;
  for (int i = 0; i < n; i++) most = fmax(most, fabs(x[i]));
  return most;
}

/* ---- checks ----------------------------------------------------------------------------------- */

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* residual / (n eps scale) is a small number if all is well; NaN fails. */
static int report(const char *name, double seconds, double flops, double residual, double scale) {
  const double ratio = residual / (n * DBL_EPSILON * scale);
  const int is_good = ratio < 10;
  if (rank == 0)
    printf("%-8s n = %d: %.2f GFLOP/s, residual %.2g %s\n", name, n, 1e-9 * flops / seconds, ratio, is_good ? "good" : "BAD");
  return is_good ? 0 : 1;
}

/* C = A B; then C x beside A (B x). */
static int check_gemm(double *x, double *y, double *z) {
  double *const a = make(general), *const b = make(other), *const c = make(NULL);
  const double alpha = 1, beta = 0;
  Cblacs_barrier(context, "All");
  const double start = now();
  pdgemm_("N", "N", &n, &n, &n, &alpha, a, &one, &one, desc, b, &one, &one, desc, &beta, c, &one, &one, desc);
  Cblacs_barrier(context, "All");
  const double seconds = now() - start;
  for (int i = 0; i < n; i++) x[i] = right_hand_side(i);
  multiply(other, x, y);
  multiply(general, y, z);
  for (int i = 0; i < n; i++) y[i] = 0;
  for (int j = 0; j < cols_here; j++)
    for (int i = 0; i < rows_here; i++) y[global_of(i, row)] += c[i + (size_t)j * (size_t)rows_here] * x[global_of(j, col)];
  Cdgsum2d(context, "All", " ", n, 1, y, n, -1, -1);
  double residual = 0;
  for (int i = 0; i < n; i++) residual = fmax(residual, fabs(y[i] - z[i]));
  free(a), free(b), free(c);
  return report("pdgemm", seconds, 2.0 * n * n * n, residual, n);
}

/* A x = b by a factorisation; then A x beside b. */
static int check_solve(const char *name, double (*value)(int, int), double flops, double *x, double *y) {
  double *const a = make(value), *const b = malloc(sizeof *b * (size_t)(rows_here + 1));
  int *const pivots = malloc(sizeof *pivots * (size_t)(rows_here + block)), info = 0, info_solve = 0;
  const int is_definite = value == definite;
  if (!b || !pivots) exit(2);
  for (int i = 0; i < rows_here; i++) b[i] = right_hand_side(global_of(i, row));
  Cblacs_barrier(context, "All");
  const double start = now();
  if (is_definite)
    pdpotrf_("L", &n, a, &one, &one, desc, &info);
  else
    pdgetrf_(&n, &n, a, &one, &one, desc, pivots, &info);
  Cblacs_barrier(context, "All");
  const double seconds = now() - start;
  if (is_definite)
    pdpotrs_("L", &n, &one, a, &one, &one, desc, b, &one, &one, desc_vector, &info_solve);
  else
    pdgetrs_("N", &n, &one, a, &one, &one, desc, pivots, b, &one, &one, desc_vector, &info_solve);
  for (int i = 0; i < n; i++) x[i] = 0;
  if (col == 0)
    for (int i = 0; i < rows_here; i++) x[global_of(i, row)] = b[i];
  Cdgsum2d(context, "All", " ", n, 1, x, n, -1, -1);
  multiply(value, x, y);
  double residual = info || info_solve ? NAN : 0;
  for (int i = 0; i < n; i++) residual = fmax(residual, fabs(y[i] - right_hand_side(i)));
  free(a), free(b), free(pivots);
  return report(name, seconds, flops, info || info_solve ? NAN : residual, 1 + n * largest(x));
}

int main(int argc, char **argv) {
  int n_ranks, n_rows, n_cols, info;
  n = argc > 1 ? atoi(argv[1]) : 256, block = argc > 2 ? atoi(argv[2]) : 32;
  Cblacs_pinfo(&rank, &n_ranks);
  if (n_ranks != 4 || n < 1 || block < 1) {
    fprintf(stderr, "scalapack_check: wants 4 processes, n >= 1, block >= 1\n");
    return 2;
  }
  Cblacs_get(-1, 0, &context);
  Cblacs_gridinit(&context, "Row", 2, 2);
  Cblacs_gridinfo(context, &n_rows, &n_cols, &row, &col);
  rows_here = numroc_(&n, &block, &row, &zero, &two), cols_here = numroc_(&n, &block, &col, &zero, &two);
  const int ld = rows_here > 1 ? rows_here : 1;
  descinit_(desc, &n, &n, &block, &block, &zero, &zero, &context, &ld, &info);
  descinit_(desc_vector, &n, &one, &block, &one, &zero, &zero, &context, &ld, &info);
  double *const x = malloc(3 * sizeof *x * (size_t)n);
  if (!x) return 2;
  const double cube = (double)n * n * n;
  int n_bad = check_gemm(x, x + n, x + 2 * n);
  n_bad += check_solve("pdpotrf", definite, cube / 3, x, x + n);
  n_bad += check_solve("pdgetrf", general, 2 * cube / 3, x, x + n);
  free(x);
  Cblacs_gridexit(context);
  Cblacs_exit(0);
  return n_bad ? 1 : 0;
}
