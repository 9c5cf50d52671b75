/* test_level3_badinput.c - the bad-input table of Level 3: each row spoils one good call and names
 * the answer. A refused call writes nothing, and its wsgemm_last_error names the argument, its
 * value and the least legal one.
 *
 * The good call has m = 3, n = 4, k = 5. A row runs for every routine that has what it spoils, in
 * every type and both layouts, by the typed call where that can express it and by descriptor. */
#include "support/badinput.h"
#include "support/level3_call.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Which routines a row is for. */
enum who {
  EVERY,
  SIDED,          /* with a side: symm, hemm, trmm, trsm */
  TRIANGULAR,     /* with a diag: trmm, trsm */
  WITH_K,         /* syrk and its kin, gemmtr */
  WITH_B,         /* all but syrk and herk */
  WITH_BETA,      /* all but trmm, trsm */
  RANK_SYMMETRIC, /* syrk, syr2k */
  RANK_HERMITIAN, /* herk, her2k */
  GEMMTR_ONLY,
  HERK_ONLY,
  HERMITIAN /* hemm, herk, her2k */
};

struct bad_input {
  const char *what;
  void (*spoil)(wsgemm_level3_desc *d);
  enum who who;
  bool descriptor_only; /* the typed call cannot say it */
  struct refusal refusal;
};

static bool is_for(enum who who, const wsgemm_level3_desc *d) {
  const wsgemm_routine r = d->routine;
  switch (who) {
  case EVERY:
    return true;
  case SIDED:
    return !routine_has_k(r);
  case TRIANGULAR:
    return routine_is_triangular(r);
  case WITH_K:
    return routine_has_k(r);
  case WITH_B:
    return r != WSGEMM_SYRK && r != WSGEMM_HERK;
  case WITH_BETA:
    return !routine_is_triangular(r);
  case RANK_SYMMETRIC:
    return r == WSGEMM_SYRK || r == WSGEMM_SYR2K;
  case RANK_HERMITIAN:
    return r == WSGEMM_HERK || r == WSGEMM_HER2K;
  case GEMMTR_ONLY:
    return r == WSGEMM_GEMMTR;
  case HERK_ONLY:
    return r == WSGEMM_HERK;
  case HERMITIAN:
    return r == WSGEMM_HEMM || r == WSGEMM_HERK || r == WSGEMM_HER2K;
  }
  return false;
}

#define SPOIL(name, ...) \
  static void name(wsgemm_level3_desc *d) { __VA_ARGS__; }
SPOIL(layout_zero, d->layout = (wsgemm_layout)0)
SPOIL(layout_103, d->layout = (wsgemm_layout)103)
SPOIL(side_140, d->side = (wsgemm_side)140)
SPOIL(side_143, d->side = (wsgemm_side)143)
SPOIL(uplo_120, d->uplo = (wsgemm_uplo)120)
SPOIL(uplo_zero, d->uplo = (wsgemm_uplo)0)
SPOIL(trans_115, d->transa = (wsgemm_op)115)
SPOIL(trans_zero, d->transa = (wsgemm_op)0)
SPOIL(trans_conj_no, d->transa = WSGEMM_CONJ_NO_TRANS)
SPOIL(trans_conj, d->transa = type_is_complex(d->type) ? WSGEMM_CONJ_TRANS : WSGEMM_CONJ_NO_TRANS)
SPOIL(trans_plain, d->transa = WSGEMM_TRANS)
SPOIL(transb_110, d->transb = (wsgemm_op)110)
SPOIL(diag_130, d->diag = (wsgemm_diag)130)
SPOIL(diag_133, d->diag = (wsgemm_diag)133)
SPOIL(m_negative, d->m = -2)
SPOIL(n_negative, d->n = -7)
SPOIL(k_negative, d->k = INT64_MIN)
SPOIL(n_negative_k_zero, d->n = -1, d->k = 0)
SPOIL(lda_small, d->lda--)
SPOIL(ldb_small, d->ldb--)
SPOIL(ldc_small, d->ldc--)
SPOIL(lda_zero, d->lda = 0)
SPOIL(ldb_negative, d->ldb = -9)
SPOIL(ldc_zero, d->ldc = 0)
SPOIL(lda_zero_n_zero, d->n = 0, d->lda = 0)
SPOIL(lda_overflow, d->lda = INT64_MAX / 2)
SPOIL(ldb_overflow, d->ldb = INT64_MAX / 2)
SPOIL(ldc_overflow, d->ldc = INT64_MAX / 2)
SPOIL(sizes_overflow, d->m = d->n = INT64_MAX, d->lda = d->ldb = d->ldc = INT64_MAX,
      d->k = routine_has_k(d->routine) ? INT64_MAX : 0)
SPOIL(a_null, d->a = NULL)
SPOIL(b_null, d->b = NULL)
SPOIL(c_null, d->c = NULL)
SPOIL(c_null_k_zero, d->c = NULL, d->k = 0)
SPOIL(all_null, d->a = d->b = d->c = NULL)
SPOIL(b_null_alpha_zero, d->a = d->b = d->c = NULL, d->alpha = scalar_make(d->type, 0, 0))
SPOIL(order_enums_before_sizes, d->uplo = (wsgemm_uplo)9, d->n = -1, d->lda = 0, d->a = NULL)
SPOIL(order_sizes_before_lds, d->n = -1, d->lda = 0, d->a = NULL)
SPOIL(order_lda_first, d->lda = 0, d->ldb = -1, d->ldc = -1, d->a = NULL)
SPOIL(order_lds_before_pointers, d->lda = 0, d->a = d->b = NULL)
SPOIL(batch_negative, d->batch_count = -1)
SPOIL(batch_overflow, d->batch_count = INT64_MAX / 2, d->stride_a = d->stride_b = d->stride_c = 100)
SPOIL(struct_bytes_zero, d->struct_bytes = 0)
SPOIL(struct_bytes_large, d->struct_bytes = sizeof *d + 8)
SPOIL(routine_zero, d->routine = (wsgemm_routine)0)
SPOIL(routine_10, d->routine = (wsgemm_routine)10)
SPOIL(type_6, d->type = (wsgemm_type)6)
SPOIL(type_negative, d->type = (wsgemm_type)-1)
SPOIL(type_half, d->type = WSGEMM_F16)
SPOIL(type_bfloat16, d->type = WSGEMM_BF16)
SPOIL(type_real, d->type = WSGEMM_F64)
SPOIL(written_stride_zero, d->batch_count = 2, d->stride_a = d->stride_b = d->stride_c = 100,
      *(routine_is_triangular(d->routine) ? &d->stride_b : &d->stride_c) = 0)
SPOIL(same_with_other_ld, d->c = (void *)(uintptr_t)d->b, d->ldc = d->ldb + 1)
SPOIL(same_with_other_stride, d->c = (void *)(uintptr_t)d->b, d->ldc = d->ldb, d->batch_count = 2, d->stride_b = 100,
      d->stride_c = 101)
SPOIL(math_4, d->math = (wsgemm_math)4)
SPOIL(herk_alpha_im, d->alpha = scalar_make(d->type, 1, 0.5))
SPOIL(herk_beta_im, d->beta = scalar_make(d->type, 1, -3))
SPOIL(apart_ldc_zero, d->c = (char *)(uintptr_t)d->a + 16 * ROOM, d->ldc = 0)

#define BAD WSGEMM_INVALID_VALUE
static const struct bad_input table[] = {
    {"layout 0", layout_zero, EVERY, false, {BAD, "layout", "0", "101"}},
    {"layout 103", layout_103, EVERY, false, {BAD, "layout", "103", "101"}},
    {"side 140", side_140, SIDED, false, {BAD, "side", "140", "141"}},
    {"side 143", side_143, SIDED, false, {BAD, "side", "143", "141"}},
    {"uplo 120", uplo_120, EVERY, false, {BAD, "uplo", "120", "121"}},
    {"uplo 0", uplo_zero, EVERY, false, {BAD, "uplo", "0", "121"}},
    {"trans 115", trans_115, WITH_K, false, {BAD, "trans", "115", "111"}},
    {"trans 0", trans_zero, TRIANGULAR, false, {BAD, "trans", "0", "111"}},
    {"CONJ_NO_TRANS of syrk, syr2k", trans_conj_no, RANK_SYMMETRIC, false, {BAD, "trans", "114", "111"}},
    {"CONJ_NO_TRANS of herk, her2k", trans_conj_no, RANK_HERMITIAN, false, {BAD, "trans", "114", "111"}},
    {"CONJ_TRANS of complex syrk, syr2k", trans_conj, RANK_SYMMETRIC, false, {BAD, "trans", "", "111"}},
    {"TRANS of herk, her2k", trans_plain, RANK_HERMITIAN, false, {BAD, "trans", "112", "111"}},
    {"transb 110", transb_110, GEMMTR_ONLY, false, {BAD, "transb", "110", "111"}},
    {"diag 130", diag_130, TRIANGULAR, false, {BAD, "diag", "130", "131"}},
    {"diag 133", diag_133, TRIANGULAR, false, {BAD, "diag", "133", "131"}},
    {"m -2", m_negative, SIDED, false, {BAD, "m", "-2", "0"}},
    {"n -7", n_negative, EVERY, false, {BAD, "n", "-7", "0"}},
    {"k INT64_MIN", k_negative, WITH_K, false, {BAD, "k", "-9223372036854775808", "0"}},
    {"n -1 though k is 0", n_negative_k_zero, WITH_K, false, {BAD, "n", "-1", "0"}},
    {"lda one too small", lda_small, EVERY, false, {BAD, "lda", "", ""}},
    {"ldb one too small", ldb_small, WITH_B, false, {BAD, "ldb", "", ""}},
    {"ldc one too small", ldc_small, WITH_BETA, false, {BAD, "ldc", "", ""}},
    {"lda 0", lda_zero, EVERY, false, {BAD, "lda", "0", ""}},
    {"ldb -9", ldb_negative, WITH_B, false, {BAD, "ldb", "-9", ""}},
    {"ldc 0", ldc_zero, WITH_BETA, false, {BAD, "ldc", "0", ""}},
    {"lda 0 though n is 0", lda_zero_n_zero, EVERY, false, {BAD, "lda", "0", ""}},
    {"lda beyond int64", lda_overflow, EVERY, false, {BAD, "lda", "4611686018427387903", ""}},
    {"ldb beyond int64", ldb_overflow, WITH_B, false, {BAD, "ldb", "4611686018427387903", ""}},
    {"ldc beyond int64", ldc_overflow, WITH_BETA, false, {BAD, "ldc", "4611686018427387903", ""}},
    {"all sizes INT64_MAX", sizes_overflow, EVERY, false, {BAD, "lda", "9223372036854775807", ""}},
    {"a NULL", a_null, EVERY, false, {WSGEMM_INVALID_POINTER, "a", "NULL", ""}},
    {"b NULL", b_null, WITH_B, false, {WSGEMM_INVALID_POINTER, "b", "NULL", ""}},
    {"c NULL", c_null, WITH_BETA, false, {WSGEMM_INVALID_POINTER, "c", "NULL", ""}},
    {"c NULL though k is 0", c_null_k_zero, WITH_K, false, {WSGEMM_INVALID_POINTER, "c", "NULL", ""}},
    {"all NULL", all_null, EVERY, false, {WSGEMM_INVALID_POINTER, "a", "NULL", ""}},
    {"b NULL though alpha is 0", b_null_alpha_zero, TRIANGULAR, false, {WSGEMM_INVALID_POINTER, "b", "NULL", ""}},
    {"enums before sizes", order_enums_before_sizes, EVERY, false, {BAD, "uplo", "9", "121"}},
    {"sizes before lds", order_sizes_before_lds, EVERY, false, {BAD, "n", "-1", "0"}},
    {"lda first of all lds", order_lda_first, EVERY, false, {BAD, "lda", "0", ""}},
    {"lds before pointers", order_lds_before_pointers, EVERY, false, {BAD, "lda", "0", ""}},
    {"batch_count -1", batch_negative, EVERY, true, {BAD, "batch_count", "-1", "0"}},
    {"batch beyond int64", batch_overflow, EVERY, true, {BAD, "batch_count", "4611686018427387903", ""}},
    {"struct_bytes 0", struct_bytes_zero, EVERY, true, {BAD, "struct_bytes", "0", ""}},
    {"struct_bytes of a later version", struct_bytes_large, EVERY, true, {BAD, "struct_bytes", "", ""}},
    {"routine 0", routine_zero, EVERY, true, {BAD, "routine", "0", "1"}},
    {"routine 10", routine_10, EVERY, true, {BAD, "routine", "10", "1"}},
    {"type 6", type_6, EVERY, true, {BAD, "type", "6", "0"}},
    {"type -1", type_negative, EVERY, true, {BAD, "type", "-1", "0"}},
    {"type F16", type_half, EVERY, true, {WSGEMM_NOT_SUPPORTED, "", "f16", ""}},
    {"type BF16", type_bfloat16, EVERY, true, {WSGEMM_NOT_SUPPORTED, "", "bf16", ""}},
    {"hemm, herk, her2k of real types", type_real, HERMITIAN, true, {WSGEMM_NOT_SUPPORTED, "", "f64", ""}},
    {"C shared by a batch", written_stride_zero, EVERY, true, {BAD, "", "0", ""}},
    {"c is b with another ld", same_with_other_ld, TRIANGULAR, true, {BAD, "ldc", "", ""}},
    {"c is b with another stride", same_with_other_stride, TRIANGULAR, true, {BAD, "stride_c", "", ""}},
    {"math 4", math_4, EVERY, true, {BAD, "math", "4", "0"}},
    {"alpha of herk is complex", herk_alpha_im, HERK_ONLY, true, {BAD, "alpha", "", ""}},
    {"beta of herk, her2k is complex", herk_beta_im, RANK_HERMITIAN, true, {BAD, "beta", "", ""}},
    {"ldc 0 of a result apart", apart_ldc_zero, TRIANGULAR, true, {BAD, "ldc", "0", ""}},
};

/* ---- Running it -------------------------------------------------------------------------------- */

static wsgemm_level3_desc good_call(struct operands *x, wsgemm_routine routine, wsgemm_type type, wsgemm_layout layout) {
  const struct variant plain = {WSGEMM_LEFT, WSGEMM_UPPER, WSGEMM_NO_TRANS, WSGEMM_NO_TRANS, WSGEMM_NON_UNIT};
  wsgemm_level3_desc d = level3_desc(routine, type, layout, &plain, M, N, K);
  d.a = x->a;
  d.b = x->b;
  d.c = routine_is_triangular(routine) ? NULL : x->c;
  if (!routine_is_triangular(routine)) d.beta = scalar_make(type, 2, 0);
  return d;
}

static void refused(const struct bad_input *row, wsgemm_handle *handle, const wsgemm_level3_desc *d, struct operands *x,
                    bool typed) {
  const wsgemm_status status = typed ? level3_typed(handle, d) : wsgemm_level3(handle, d);
  char what[DESCRIPTION_BYTES];
  snprintf(what, sizeof what, "%s (routine %d, type %d, layout %d, %s)", row->what, (int)d->routine, (int)d->type, (int)d->layout,
           typed ? "typed" : "descriptor");
  check_refused(what, status, &row->refusal, x);
}

static void run_row(const struct bad_input *row, const wsgemm_level3_desc *good, wsgemm_handle *own, struct operands *x) {
  wsgemm_level3_desc d = *good;
  /* a real syrk takes CONJ_TRANS; the descriptor alone says what the typed call has no name for */
  if (!is_for(row->who, &d) || (row->spoil == trans_conj && !type_is_complex(d.type))) return;
  row->spoil(&d);
  refused(row, NULL, &d, x, false);
  refused(row, own, &d, x, false);
  if (!row->descriptor_only) refused(row, NULL, &d, x, true);
  char text[512];
  size_t bytes = 12345;
  wsgemm_level3_explain(NULL, &d, text, sizeof text);
  if (row->refusal.answer == WSGEMM_INVALID_POINTER) return;
  check_explains_error(row->what, text);
  CHECK(wsgemm_level3_workspace_size(NULL, &d, &bytes) == row->refusal.answer && bytes == 12345,
        "%s: the workspace's size is told", row->what);
}

static void whole_table(void) {
  static struct operands x;
  wsgemm_handle *own = NULL;
  REQUIRE(wsgemm_create(&own) == WSGEMM_SUCCESS, "handle");
  operands_fill(&x);
  for (size_t row = 0; row < sizeof table / sizeof table[0]; row++)
    for (int r = 0; r < N_ROUTINES; r++)
      for (int type = 0; type < N_LEVEL3_TYPES; type++)
        for (int layout = 0; layout < 2; layout++)
          if (routine_has_type(all_routines[r], (wsgemm_type)type)) {
            const wsgemm_level3_desc good = good_call(&x, all_routines[r], (wsgemm_type)type, all_layouts[layout]);
            run_row(&table[row], &good, own, &x);
          }
  wsgemm_destroy(own);
}

/* The least legal ld is named, and is enough: one less is refused, the same is taken. */
static void least_lds(void) {
  static struct operands x;
  static const char *const argument[3] = {"lda", "ldb", "ldc"};
  operands_fill(&x);
  for (int r = 0; r < N_ROUTINES; r++)
    for (int layout = 0; layout < 2; layout++) {
      struct variant variants[MAX_VARIANTS];
      const int n_variants = variants_of(all_routines[r], WSGEMM_C64, variants);
      for (int v = 0; v < n_variants; v++)
        for (int which = 0; which < (routine_is_triangular(all_routines[r]) ? 2 : 3); which++) {
          wsgemm_level3_desc d = level3_desc(all_routines[r], WSGEMM_C64, all_layouts[layout], &variants[v], M, N, K);
          int64_t *const ld[3] = {&d.lda, &d.ldb, &d.ldc};
          if (which == 1 && !is_for(WITH_B, &d)) continue;
          d.a = x.a, d.b = x.b, d.c = x.c;
          if (routine_is_triangular(d.routine)) d.c = NULL;
          char value[8], least[8];
          least[0] = (char)('0' + *ld[which]), least[1] = '\0';
          value[0] = (char)('0' + --*ld[which]), value[1] = '\0';
          const struct bad_input row = {"ld", NULL, EVERY, false, {BAD, argument[which], value, least}};
          refused(&row, NULL, &d, &x, true);
        }
    }
}

static void not_a_call(void) {
  wsgemm_handle *h = NULL, *const wrong = no_handle();
  static struct operands x;
  char text[64] = "";
  size_t bytes = 0;
  operands_fill(&x);
  REQUIRE(wsgemm_create(&h) == WSGEMM_SUCCESS && h, "create");
  for (int r = 0; r < N_ROUTINES; r++) { /* the handle is checked first of all */
    wsgemm_level3_desc d = good_call(&x, all_routines[r], WSGEMM_C64, WSGEMM_COL_MAJOR);
    d.layout = (wsgemm_layout)0, d.n = -1, d.c = NULL;
    CHECK(level3_typed(wrong, &d) == WSGEMM_INVALID_HANDLE && wsgemm_level3(wrong, &d) == WSGEMM_INVALID_HANDLE,
          "a wrong handle");
    CHECK(wsgemm_level3_workspace_size(wrong, &d, &bytes) == WSGEMM_INVALID_HANDLE, "workspace of a wrong handle");
    wsgemm_level3_explain(wrong, &d, text, sizeof text);
    check_explains_error("a wrong handle", text);
    d = good_call(&x, all_routines[r], WSGEMM_C64, WSGEMM_COL_MAJOR);
    CHECK(wsgemm_level3_workspace_size(h, &d, NULL) == WSGEMM_INVALID_POINTER && message_names(wsgemm_last_error(), "bytes"),
          "%s", wsgemm_last_error());
  }
  CHECK(wsgemm_level3(wrong, NULL) == WSGEMM_INVALID_HANDLE, "a wrong handle and no descriptor");
  CHECK(wsgemm_level3(h, NULL) == WSGEMM_INVALID_POINTER && message_names(wsgemm_last_error(), "desc"), "%s",
        wsgemm_last_error());
  CHECK(wsgemm_level3_workspace_size(h, NULL, &bytes) == WSGEMM_INVALID_POINTER, "no descriptor");
  wsgemm_level3_explain(h, NULL, text, sizeof text);
  check_explains_error("no descriptor", text);
  CHECK(wsgemm_destroy(h) == WSGEMM_SUCCESS, "destroy");
}

/* ---- Check mode -------------------------------------------------------------------------------- */

static void overlaps(void) {
  static struct operands x;
  wsgemm_handle *h = NULL;
  REQUIRE(wsgemm_create(&h) == WSGEMM_SUCCESS && wsgemm_set_check(h, 1) == WSGEMM_SUCCESS, "handle");
  operands_fill(&x);
  for (int r = 0; r < N_ROUTINES; r++)
    for (int type = 0; type < N_LEVEL3_TYPES; type++) {
      const wsgemm_routine routine = all_routines[r];
      const bool triangular = routine_is_triangular(routine);
      if (!routine_has_type(routine, (wsgemm_type)type)) continue;
      const wsgemm_level3_desc good = good_call(&x, routine, (wsgemm_type)type, WSGEMM_COL_MAJOR);
      const size_t element = type_bytes((wsgemm_type)type);
      unsigned char *const output = triangular ? x.b : x.c;
      struct bad_input row = {"C meets A", NULL, EVERY, true, {BAD, triangular ? "b" : "c", "", ""}};
      wsgemm_level3_desc d = good;
      d.a = output + 2 * element;
      refused(&row, h, &d, &x, false);
      refused(&row, h, &d, &x, true);
      if (is_for(WITH_B, &good) && !triangular) {
        d = good, d.b = output + element, row.what = "C meets B";
        refused(&row, h, &d, &x, true);
      }
      if (triangular) {
        d = good, d.c = x.b + element, d.ldc = d.ldb, row.what = "C meets B, but is not B", row.refusal.argument = "c";
        refused(&row, h, &d, &x, false);
        d = good, d.c = x.b, d.ldc = d.ldb + 1, row.what = "C is B with another ld";
        refused(&row, h, &d, &x, false);
      }
    }
  /* apart: b itself, and A and B that are one, are no overlap */
  wsgemm_level3_desc d = good_call(&x, WSGEMM_SYR2K, WSGEMM_F32, WSGEMM_COL_MAJOR);
  d.b = d.a, d.beta = scalar_make(WSGEMM_F32, 1, 0);
  CHECK(wsgemm_level3(h, &d) == WSGEMM_SUCCESS, "syr2k of A and A: %s", wsgemm_last_error());
  d = good_call(&x, WSGEMM_TRMM, WSGEMM_F32, WSGEMM_COL_MAJOR);
  d.c = x.b, d.ldc = d.ldb;
  CHECK(wsgemm_level3(h, &d) == WSGEMM_SUCCESS, "trmm into B: %s", wsgemm_last_error());
  CHECK(wsgemm_destroy(h) == WSGEMM_SUCCESS, "destroy");
}

static const struct check_case cases[] = {
    {"whole_table", whole_table}, {"least_lds", least_lds}, {"not_a_call", not_a_call}, {"overlaps", overlaps}};
CHECK_MAIN("level3_badinput", cases)
