/* test_gpu_peer.c - every GPU row beside cuBLAS: random shapes round the edges of its work item,
 * all op pairs that cuBLAS knows, both layouts, beta 0, 1 and general. Both results must lie within
 * the componentwise bound of the reference, and within the sum of the two bounds of each other, by
 * sizes |A| |B| that are summed here in double. Skipped where there is no cuBLAS. */
#include "gpu.h"
#include "peer.h"

#include <fenv.h>
#include <float.h>
#include <math.h>
#include <stdlib.h>

static struct check_random rng;

/* |op(A)| |op(B)|, of all that the stage holds; |z| is |re| + |im|. */
static double *sizes_of(const struct stage *stage) {
  const struct values *a = &stage->a, *b = &stage->b;
  double *sizes = calloc((size_t)(a->rows * b->cols), sizeof *sizes);
  REQUIRE(sizes != NULL, "memory");
  for (int64_t i = 0; i < a->rows; i++)
    for (int64_t p = 0; p < a->cols; p++) {
      const double size_a = fabs(a->re[i * a->cols + p]) + fabs(a->im[i * a->cols + p]);
      for (int64_t j = 0; j < b->cols; j++)
        sizes[i * b->cols + j] += size_a * (fabs(b->re[p * b->cols + j]) + fabs(b->im[p * b->cols + j]));
    }
  return sizes;
}

/* C as it is in the stage: re, im by turns. */
static void take_c(const struct stage *stage, const wsgemm_gemm_desc *d, double *c) {
  for (int64_t i = 0; i < d->m; i++)
    for (int64_t j = 0; j < d->n; j++) {
      double *element = &c[2 * (i * d->n + j)];
      matrix_get(&stage->stored[2], i, j, &element[0], &element[1]);
    }
}

static void compare(const struct stage *stage, const wsgemm_gemm_desc *d, const double *sizes, const double *ours,
                    const double *theirs, const char *who) {
  const double unit = type_is_single(d->type_c) ? FLT_EPSILON / 2 : DBL_EPSILON / 2;
  const double gamma = (double)(d->k + 2) * unit / (1 - (double)(d->k + 2) * unit);
  double alpha[2], beta[2], worst = -1;
  int64_t worst_at = 0;
  char text[DESCRIPTION_BYTES];
  scalar_get(d->type_c, &d->alpha, alpha);
  scalar_get(d->type_c, &d->beta, beta);
  for (int64_t at = 0; at < d->m * d->n; at++) {
    const double size = (fabs(alpha[0]) + fabs(alpha[1])) * sizes[at] +
                        (fabs(beta[0]) + fabs(beta[1])) * (fabs(stage->c.re[at]) + fabs(stage->c.im[at]));
    const double both = 2 * gamma * size * (1 + 1e-9); /* the size itself is rounded */
    for (int part = 0; part < 2; part++) {
      const double off = fabs(ours[2 * at + part] - theirs[2 * at + part]);
      /* NaN is as far off as can be */
      const double ratio = off == 0 ? 0 : off / both >= 0 ? off / both : (double)INFINITY;
      if (ratio > worst) worst = ratio, worst_at = at;
    }
  }
  CHECK(worst <= 1, "%s: %s: at (%lld, %lld) (%.17g, %.17g), cuBLAS has (%.17g, %.17g): %.3g of both bounds", who,
        gemm_describe(d, text), (long long)(worst_at / d->n), (long long)(worst_at % d->n), ours[2 * worst_at],
        ours[2 * worst_at + 1], theirs[2 * worst_at], theirs[2 * worst_at + 1], worst);
}

static wsgemm_status call_peer(struct stage *stage, wsgemm_handle *handle, const wsgemm_gemm_desc *d, bool typed) {
  (void)typed;
  const wsgemm_status status = call_mirrored(stage->arena, 3, handle, d, peer_gemm);
  feclearexcept(FE_ALL_EXCEPT); /* its own business */
  return status;
}

/* cuBLAS wants whole elements, so no odd places. */
static struct layout_of_case draw_where(void) {
  struct layout_of_case where = layout_drawn(&rng);
  for (int i = 0; i < 3; i++)
    if (where.place[i] == PLACE_ODD) where.place[i] = PLACE_START;
  return where;
}

static void beside_peer(struct stage *stage, const struct kernel_row *row, wsgemm_handle *handle, wsgemm_gemm_desc *d,
                        const double *sizes, double *c[2]) {
  const struct layout_of_case where = draw_where();
  for (int who = 0; who < 2; who++) {
    run_case_caller = who == 0 ? call_on_device : call_peer;
    run_case(stage, handle, d, &where, check_random_in(&rng, 0, 1), JUDGE_BOUND, who == 0 ? row->name : "cuBLAS");
    take_c(stage, d, c[who]);
  }
  run_case_caller = call_on_device;
  compare(stage, d, sizes, c[0], c[1], row->name);
}

/* Near an edge of a work item, or anywhere; a row for vectors works on nothing else. */
static int64_t draw_extent(int item) {
  if (item == 1) return 1;
  const int64_t marks[] = {2, item / 2, item, 2 * item, check_random_in(&rng, 2, 2 * item)};
  return marks[check_random_in(&rng, 0, 4)] + check_random_in(&rng, -1, 1);
}

static int64_t draw_k(void) {
  static const int64_t ks[] = {1, 2, 7, 8, 9, 15, 16, 17, 33, 48, 64, 100};
  const int64_t i = check_random_in(&rng, 0, 12);
  return i < 12 ? ks[i] : check_random_in(&rng, 1, 200);
}

static void shape_on_row(const struct rows_of_type *rows, int i) {
  const int64_t m = draw_extent(rows->row[i].mr), n = draw_extent(rows->row[i].nr), k = draw_k();
  const wsgemm_type type = rows->type;
  struct stage stage = stage_new(type, m, n, k, FILL_UNIFORM, &rng);
  product_extend(&stage.product, &stage.a, &stage.b, k);
  double *sizes = sizes_of(&stage);
  double *c[2] = {malloc((size_t)(2 * m * n) * sizeof(double)), malloc((size_t)(2 * m * n) * sizeof(double))};
  REQUIRE(c[0] && c[1], "memory");
  for (int op_a = 0; op_a < n_ops(type); op_a++)
    for (int op_b = 0; op_b < n_ops(type); op_b++)
      for (int layout = 0; layout < 2; layout++)
        for (int beta = 0; beta < 3; beta++) {
          if (!peer_knows(all_ops[op_a]) || !peer_knows(all_ops[op_b])) continue;
          wsgemm_gemm_desc d = gemm_desc(type, all_layouts[layout], all_ops[op_a], all_ops[op_b], m, n, k);
          const bool is_plain = check_random_in(&rng, 0, 1);
          d.alpha = scalar_make(type, is_plain ? 1 : 2 * check_random_unit(&rng), is_plain ? 0 : check_random_unit(&rng));
          d.beta = scalar_make(type, beta < 2 ? beta : 2 * check_random_unit(&rng), beta < 2 ? 0 : check_random_unit(&rng));
          beside_peer(&stage, &rows->row[i], rows->handle[i], &d, sizes, c);
        }
  free(c[0]), free(c[1]), free(sizes);
  stage_free(&stage);
}

static void all_rows(wsgemm_type type) {
  static struct rows_of_type rows;
  const char *why = NULL;
  if (!peer_open(&why)) {
    check_skip("no cuBLAS: %s", why);
    return;
  }
  rng = check_random_from(200 + (unsigned long long)type);
  rows_open(&rows, type);
  for (int i = 0; i < rows.n_rows; i++)
    for (int shape = 0; shape < (check_scale() > 1 ? 1 : 6); shape++) shape_on_row(&rows, i);
  rows_close(&rows);
}

static void single_real(void) { all_rows(WSGEMM_F32); }
static void double_real(void) { all_rows(WSGEMM_F64); }
static void single_complex(void) { all_rows(WSGEMM_C32); }
static void double_complex(void) { all_rows(WSGEMM_C64); }

int main(int argc, char **argv) {
  static const struct check_case cases[] = {{"single_real", single_real},
                                            {"double_real", double_real},
                                            {"single_complex", single_complex},
                                            {"double_complex", double_complex}};
  gpu_open();
  return check_main("gpu_peer", cases, sizeof cases / sizeof cases[0], argc, argv);
}
