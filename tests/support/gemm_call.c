/* gemm_call.c - calling the library and checking one case: see gemm_call.h. Which cases there are
 * is left to the suites.
 *
 * Invariant: run_case passes only if the status is SUCCESS, every component is judged good, and no
 * guarded byte outside C's elements has changed. */
#include "gemm_call.h"

#include <fenv.h>
#include <stdio.h>
#include <string.h>

const wsgemm_op all_ops[4] = {WSGEMM_NO_TRANS, WSGEMM_TRANS, WSGEMM_CONJ_TRANS, WSGEMM_CONJ_NO_TRANS};
#define POLICY_LISTED(enumerator, name) WSGEMM_POLICY_##enumerator,
const wsgemm_policy all_policies[N_POLICIES] = {WSGEMM_POLICY_MAP(POLICY_LISTED)};
const wsgemm_layout all_layouts[2] = {WSGEMM_COL_MAJOR, WSGEMM_ROW_MAJOR};
int n_ops(wsgemm_type type) { return type_is_complex(type) ? 4 : 2; }

wsgemm_scalar scalar_make(wsgemm_type type, double re, double im) {
  wsgemm_scalar scalar;
  memset(&scalar, 0, sizeof scalar);
  if (type_of_scalars(type) == WSGEMM_F32)
    scalar.s = (float)re;
  else if (type == WSGEMM_F64)
    scalar.d = re;
  else if (type == WSGEMM_C32)
    scalar.c = (wsgemm_cfloat){(float)re, (float)im};
  else
    scalar.z = (wsgemm_cdouble){re, im};
  return scalar;
}

void scalar_get(wsgemm_type type, const wsgemm_scalar *scalar, double value[2]) {
  value[1] = 0;
  if (type_of_scalars(type) == WSGEMM_F32) {
    value[0] = scalar->s;
  } else if (type == WSGEMM_F64) {
    value[0] = scalar->d;
  } else if (type == WSGEMM_C32) {
    value[0] = scalar->c.re;
    value[1] = scalar->c.im;
  } else {
    value[0] = scalar->z.re;
    value[1] = scalar->z.im;
  }
}

wsgemm_status gemm_typed(wsgemm_handle *h, const wsgemm_gemm_desc *d) {
  if (d->type_c != d->type_a || d->packed_a || d->packed_b) return wsgemm_gemm(h, d);
  switch (d->type_a) {
  case WSGEMM_F32:
    return wsgemm_sgemm(h, d->layout, d->transa, d->transb, d->m, d->n, d->k, d->alpha.s, d->a, d->lda, d->b, d->ldb, d->beta.s,
                        d->c, d->ldc);
  case WSGEMM_F64:
    return wsgemm_dgemm(h, d->layout, d->transa, d->transb, d->m, d->n, d->k, d->alpha.d, d->a, d->lda, d->b, d->ldb, d->beta.d,
                        d->c, d->ldc);
  case WSGEMM_C32:
    return wsgemm_cgemm(h, d->layout, d->transa, d->transb, d->m, d->n, d->k, d->alpha.c, d->a, d->lda, d->b, d->ldb, d->beta.c,
                        d->c, d->ldc);
  case WSGEMM_C64:
    return wsgemm_zgemm(h, d->layout, d->transa, d->transb, d->m, d->n, d->k, d->alpha.z, d->a, d->lda, d->b, d->ldb, d->beta.z,
                        d->c, d->ldc);
  case WSGEMM_F16:
    return wsgemm_hgemm(h, d->layout, d->transa, d->transb, d->m, d->n, d->k, d->alpha.s, d->a, d->lda, d->b, d->ldb, d->beta.s,
                        d->c, d->ldc);
  case WSGEMM_BF16:
    return wsgemm_bgemm(h, d->layout, d->transa, d->transb, d->m, d->n, d->k, d->alpha.s, d->a, d->lda, d->b, d->ldb, d->beta.s,
                        d->c, d->ldc);
  }
  return WSGEMM_INTERNAL_ERROR;
}

/* Rows and columns of a stored operand whose op() is rows x cols. */
static void stored_shape(wsgemm_op op, int64_t rows, int64_t cols, int64_t *stored_rows, int64_t *stored_cols) {
  *stored_rows = op_transposes(op) ? cols : rows;
  *stored_cols = op_transposes(op) ? rows : cols;
}

static int64_t least_ld(wsgemm_layout layout, int64_t stored_rows, int64_t stored_cols) {
  const int64_t line = layout == WSGEMM_COL_MAJOR ? stored_rows : stored_cols;
  return line > 1 ? line : 1;
}

wsgemm_gemm_desc gemm_desc(wsgemm_type type, wsgemm_layout layout, wsgemm_op transa, wsgemm_op transb, int64_t m, int64_t n,
                           int64_t k) {
  wsgemm_gemm_desc d = WSGEMM_GEMM_DESC_INIT;
  int64_t rows, cols;
  d.layout = layout;
  d.transa = transa;
  d.transb = transb;
  d.type_a = d.type_b = d.type_c = type;
  d.type_scalar = type_of_scalars(type);
  d.m = m;
  d.n = n;
  d.k = k;
  d.alpha = scalar_make(type, 1, 0);
  d.beta = scalar_make(type, 0, 0);
  stored_shape(transa, m, k, &rows, &cols);
  d.lda = least_ld(layout, rows, cols);
  stored_shape(transb, k, n, &rows, &cols);
  d.ldb = least_ld(layout, rows, cols);
  d.ldc = least_ld(layout, m, n);
  return d;
}

const char *gemm_describe(const wsgemm_gemm_desc *d, char text[DESCRIPTION_BYTES]) {
  double alpha[2], beta[2];
  scalar_get(d->type_a, &d->alpha, alpha);
  scalar_get(d->type_a, &d->beta, beta);
  snprintf(text, DESCRIPTION_BYTES,
           "%cgemm to %c %s %c%c m=%lld n=%lld k=%lld alpha=(%g,%g) beta=(%g,%g) lda=%lld ldb=%lld ldc=%lld a%%64=%d b%%64=%d "
           "c%%64=%d",
           type_letter(d->type_a), type_letter(d->type_c), d->layout == WSGEMM_COL_MAJOR ? "col" : "row",
           "NTCR"[d->transa - WSGEMM_NO_TRANS], "NTCR"[d->transb - WSGEMM_NO_TRANS], (long long)d -> m, (long long)d -> n,
           (long long)d -> k, alpha[0], alpha[1], beta[0], beta[1], (long long)d -> lda, (long long)d -> ldb, (long long)d -> ldc,
           (int)((uintptr_t)d->a % 64), (int)((uintptr_t)d->b % 64), (int)((uintptr_t)d->c % 64));
  return text;
}

struct stage stage_new(wsgemm_type type, int64_t max_m, int64_t max_n, int64_t max_k, enum fill fill,
                       struct check_random *random) {
  const int64_t largest = max_m > max_n ? max_m : max_n;
  const size_t bytes_ab = (size_t)((largest + MAX_PAD) * (max_k + MAX_PAD)) * type_bytes(type);
  const size_t bytes_c =
      (size_t)((max_m + MAX_PAD) * (max_n + MAX_PAD)) * (type_is_half(type) ? sizeof(float) : type_bytes(type));
  struct stage stage = {values_new(type, max_m, max_k, fill, random),
                        values_new(type, max_k, max_n, fill, random),
                        values_new(type, max_m, max_n, fill, random),
                        product_new(max_m, max_n),
                        {arena_new(bytes_ab), arena_new(bytes_ab), arena_new(bytes_c)},
                        {{0}, {0}, {0}}};
  for (int64_t at = 0; type_is_half(type) && at < max_m * max_n; at++)
    stage.c.re[at] = type_round(WSGEMM_F16, type_round(WSGEMM_BF16, stage.c.re[at]));
  return stage;
}

void stage_free(struct stage *stage) {
  values_free(&stage->a);
  values_free(&stage->b);
  values_free(&stage->c);
  product_free(&stage->product);
  for (int i = 0; i < 3; i++) arena_free(&stage->arena[i]);
}

struct layout_of_case layout_tight(void) {
  return (struct layout_of_case){{0, 0, 0}, {PLACE_END, PLACE_END, PLACE_END}};
}

struct layout_of_case layout_drawn(struct check_random *random) {
  struct layout_of_case layout;
  for (int i = 0; i < 3; i++) {
    layout.pad[i] = (int)check_random_in(random, 0, 1) * (int)check_random_in(random, 1, MAX_PAD);
    layout.place[i] = (enum place)check_random_in(random, PLACE_END, PLACE_ODD);
  }
  return layout;
}

static bool is_zero(wsgemm_type type, const wsgemm_scalar *scalar) {
  double value[2];
  scalar_get(type, scalar, value);
  return value[0] == 0 && value[1] == 0;
}

void case_store(struct stage *stage, wsgemm_gemm_desc *d, const struct layout_of_case *layout) {
  int64_t rows, cols;
  stored_shape(d->transa, d->m, d->k, &rows, &cols);
  d->lda = least_ld(d->layout, rows, cols) + layout->pad[0];
  stage->stored[0] = matrix_place(&stage->arena[0], d->type_a, d->layout, rows, cols, d->lda, layout->place[0]);
  matrix_store(&stage->stored[0], &stage->a, d->transa);
  stored_shape(d->transb, d->k, d->n, &rows, &cols);
  d->ldb = least_ld(d->layout, rows, cols) + layout->pad[1];
  stage->stored[1] = matrix_place(&stage->arena[1], d->type_b, d->layout, rows, cols, d->ldb, layout->place[1]);
  matrix_store(&stage->stored[1], &stage->b, d->transb);
  d->ldc = least_ld(d->layout, d->m, d->n) + layout->pad[2];
  stage->stored[2] = matrix_place(&stage->arena[2], d->type_c, d->layout, d->m, d->n, d->ldc, layout->place[2]);
  if (is_zero(d->type_c, &d->beta))
    matrix_store_nan(&stage->stored[2]);
  else
    matrix_store(&stage->stored[2], &stage->c, WSGEMM_NO_TRANS);
  d->a = stage->stored[0].elements;
  d->b = stage->stored[1].elements;
  d->c = stage->stored[2].elements;
}

bool case_guards_intact(const struct stage *stage, const wsgemm_gemm_desc *d, const char *who) {
  bool intact = true;
  for (int i = 0; i < 3; i++) {
    int64_t byte_idx = 0;
    char text[DESCRIPTION_BYTES];
    if (!matrix_guard_intact(&stage->stored[i], &byte_idx))
      intact = CHECK(false, "%s: %s: byte %lld from the start of %c was written", who, gemm_describe(d, text),
                     (long long)byte_idx, "ABC"[i]);
  }
  return intact;
}

bool case_judge(const struct stage *stage, const wsgemm_gemm_desc *d, enum judge how, const char *who) {
  char text[DESCRIPTION_BYTES];
  const bool intact = case_guards_intact(stage, d, who);
  const struct verdict v = how == JUDGE_EXACT ? reference_judge_exact(d, &stage->product, &stage->c, &stage->stored[2])
                                              : reference_judge(d, &stage->product, &stage->c, &stage->stored[2]);
  return CHECK(v.passed, "%s: %s: worst at (%lld, %lld): got (%.17g, %.17g), expected (%.17g, %.17g), error/bound %.3g", who,
               gemm_describe(d, text), (long long)v.i, (long long)v.j, v.got_re, v.got_im, v.expected_re, v.expected_im,
               v.worst) &&
         intact;
}

wsgemm_status call_on_host(struct stage *stage, wsgemm_handle *handle, const wsgemm_gemm_desc *d, bool typed) {
  (void)stage;
  return typed ? gemm_typed(handle, d) : wsgemm_gemm(handle, d);
}

gemm_caller *run_case_caller = call_on_host;

bool run_case(struct stage *stage, wsgemm_handle *handle, wsgemm_gemm_desc *d, const struct layout_of_case *layout, bool typed,
              enum judge how, const char *who) {
  char text[DESCRIPTION_BYTES];
  case_store(stage, d, layout);
  const unsigned long long digest_a = matrix_digest(&stage->stored[0]), digest_b = matrix_digest(&stage->stored[1]);
  feclearexcept(FE_ALL_EXCEPT);
  const wsgemm_status status = run_case_caller(stage, handle, d, typed);
  /* Of C's type alone FP16 has so few exponents that ordinary products fall below them. */
  const int raised = fetestexcept(FE_INVALID | FE_DIVBYZERO | FE_OVERFLOW | (d->type_c == WSGEMM_F16 ? 0 : FE_UNDERFLOW));
  if (raised != 0)
    CHECK(false, "%s: %s: floating-point exceptions %#x were raised", who, gemm_describe(d, text), (unsigned)raised);
  if (status != WSGEMM_SUCCESS)
    return CHECK(false, "%s: %s: %s (%s)", who, gemm_describe(d, text), wsgemm_status_name(status), wsgemm_last_error());
  const bool unchanged = CHECK(digest_a == matrix_digest(&stage->stored[0]) && digest_b == matrix_digest(&stage->stored[1]),
                               "%s: %s: A or B was written", who, gemm_describe(d, text));
  return case_judge(stage, d, how, who) && unchanged && raised == 0;
}

/* ---- refusals -------------------------------------------------------------------------------- */

bool message_names(const char *message, const char *word) {
  static const char delimiters[] = " ,;:.()=\"'";
  const size_t length = strlen(word);
  if (length == 0) return true;
  for (const char *at = strstr(message, word); at; at = strstr(at + 1, word)) {
    const bool begins = at == message || strchr(delimiters, at[-1]);
    if (begins && (at[length] == '\0' || strchr(delimiters, at[length]))) return true;
  }
  return false;
}

static bool names_argument(const char *message, const char *argument) {
  return message_names(message, argument) || (strcmp(argument, "trans") == 0 && message_names(message, "transa")) ||
         (strcmp(argument, "type") == 0 && strstr(message, "type"));
}

void check_refusal(const char *what, wsgemm_status status, wsgemm_status expected, const char *argument, const char *value,
                   const char *least) {
  const char *message = wsgemm_last_error();
  CHECK(status == expected, "%s: %s, expected %s", what, wsgemm_status_name(status), wsgemm_status_name(expected));
  CHECK(names_argument(message, argument), "%s: \"%s\" does not name %s", what, message, argument);
  CHECK(message_names(message, value), "%s: \"%s\" does not give the value %s", what, message, value);
  CHECK(message_names(message, least), "%s: \"%s\" does not give the least legal value %s", what, message, least);
}
