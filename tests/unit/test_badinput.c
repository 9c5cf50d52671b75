/* test_badinput.c - the bad-input table: each row spoils one good call and names the answer. A
 * refused call writes nothing and its wsgemm_last_error names the argument, its value and the least
 * legal one.
 *
 * The good call: m = 3, n = 4, k = 5, so all least lds differ. Each row runs in every type, both
 * layouts, by the typed call where that can express it and by descriptor. */
#define _GNU_SOURCE
#include "support/badinput.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct bad_input {
  const char *what;
  void (*spoil)(wsgemm_gemm_desc *d);
  bool descriptor_only; /* the typed call cannot say it */
  struct refusal refusal;
};

/* ---- What is spoiled ------------------------------------------------------------------------- */

static bool by_columns(const wsgemm_gemm_desc *d) { return d->layout == WSGEMM_COL_MAJOR; }
#define SPOIL(name, ...) \
  static void name(wsgemm_gemm_desc *d) { __VA_ARGS__; }
SPOIL(layout_zero, d->layout = (wsgemm_layout)0)
SPOIL(layout_103, d->layout = (wsgemm_layout)103)
SPOIL(layout_negative, d->layout = (wsgemm_layout)-1)
SPOIL(transa_110, d->transa = (wsgemm_op)110)
SPOIL(transa_115, d->transa = (wsgemm_op)115)
SPOIL(transb_zero, d->transb = (wsgemm_op)0)
SPOIL(transb_121, d->transb = (wsgemm_op)121)
SPOIL(m_negative, d->m = -1)
SPOIL(n_negative, d->n = -7)
SPOIL(k_negative, d->k = INT64_MIN)
SPOIL(m_negative_n_zero, d->m = -1, d->n = 0)
SPOIL(lda_small, d->lda = (by_columns(d) ? M : K) - 1)
SPOIL(ldb_small, d->ldb = (by_columns(d) ? K : N) - 1)
SPOIL(ldc_small, d->ldc = (by_columns(d) ? M : N) - 1)
SPOIL(lda_small_transposed, d->transa = WSGEMM_TRANS, d->lda = (by_columns(d) ? K : M) - 1)
SPOIL(ldb_small_transposed, d->transb = WSGEMM_CONJ_TRANS, d->ldb = (by_columns(d) ? N : K) - 1)
SPOIL(lda_small_conjugated, d->transa = WSGEMM_CONJ_NO_TRANS, d->lda = (by_columns(d) ? M : K) - 1)
SPOIL(lda_zero, d->lda = 0)
SPOIL(ldb_negative, d->ldb = -9)
SPOIL(lda_zero_k_zero, d->k = 0, d->lda = 0)
SPOIL(ldb_zero_all_zero, d->m = 0, d->n = 0, d->k = 0, d->ldb = 0)
SPOIL(ldc_small_n_zero, d->m = by_columns(d) ? 8 : 0, d->n = by_columns(d) ? 0 : 8, d->lda = 8, d->ldb = 8, d->ldc = 7)
SPOIL(lda_overflow, d->lda = INT64_MAX / 2)
SPOIL(ldb_overflow, d->ldb = INT64_MAX / 3)
SPOIL(ldc_overflow, d->ldc = INT64_MAX / 3)
SPOIL(ldc_overflow_in_bytes, d->ldc = INT64_MAX / (3 * (int64_t)type_bytes(d->type_c)) + 1)
SPOIL(ldc_overflow_of_c_type, d->type_c = type_is_half(d->type_c) ? WSGEMM_F32 : d->type_c, ldc_overflow_in_bytes(d))
SPOIL(m_overflow, d->m = d->n = d->k = INT64_MAX, d->lda = d->ldb = d->ldc = INT64_MAX)
SPOIL(a_null, d->a = NULL)
SPOIL(b_null, d->b = NULL)
SPOIL(c_null, d->c = NULL)
SPOIL(c_null_k_zero, d->c = NULL, d->k = 0)
SPOIL(all_null, d->a = NULL, d->b = NULL, d->c = NULL)
SPOIL(order_layout_before_m, d->layout = (wsgemm_layout)9, d->m = -1, d->lda = 0, d->a = NULL)
SPOIL(order_transa_before_transb, d->transa = (wsgemm_op)9, d->transb = (wsgemm_op)9)
SPOIL(order_m_before_lda, d->m = -1, d->lda = 0, d->a = NULL)
SPOIL(order_lda_before_ldb, d->lda = 0, d->ldb = 0, d->ldc = 0)
SPOIL(order_ldb_before_ldc, d->ldb = 0, d->ldc = 0)
SPOIL(order_ldc_before_pointers, d->ldc = 0, d->a = NULL)
SPOIL(batch_negative, d->batch_count = -1)
SPOIL(batch_overflow, d->batch_count = INT64_MAX / 2, d->stride_c = 100)
SPOIL(struct_bytes_zero, d->struct_bytes = 0)
SPOIL(struct_bytes_large, d->struct_bytes = sizeof *d + 8)
SPOIL(type_a_6, d->type_a = (wsgemm_type)6)
SPOIL(type_b_negative, d->type_b = (wsgemm_type)-1)
SPOIL(type_c_99, d->type_c = (wsgemm_type)99)
SPOIL(type_scalar_6, d->type_scalar = (wsgemm_type)6)
SPOIL(types_mixed, d->type_b = d->type_a == WSGEMM_F32 ? WSGEMM_F64 : WSGEMM_F32)
SPOIL(halves_mixed, d->type_b = d->type_a == WSGEMM_F16 ? WSGEMM_BF16 : WSGEMM_F16)
SPOIL(c_mixed, d->type_c = d->type_a == WSGEMM_F64 ? WSGEMM_F32 : WSGEMM_F64)
SPOIL(c_half, d->type_c = type_is_half(d->type_a) ? WSGEMM_C32 : WSGEMM_BF16)
SPOIL(scalar_mixed, d->type_scalar = d->type_scalar == WSGEMM_F32 ? WSGEMM_F64 : WSGEMM_F32)
SPOIL(scalar_half, d->type_scalar = WSGEMM_F16)
SPOIL(scalar_mode_device, d->scalar_mode = WSGEMM_SCALAR_DEVICE)
SPOIL(scalar_mode_2, d->scalar_mode = (wsgemm_scalar_mode)2)
SPOIL(epilogue_5, d->epilogue = (wsgemm_epilogue)5)
SPOIL(math_4, d->math = (wsgemm_math)4)

static const struct bad_input table[] = {
    {"layout 0", layout_zero, false, {WSGEMM_INVALID_VALUE, "layout", "0", "101"}},
    {"layout 103", layout_103, false, {WSGEMM_INVALID_VALUE, "layout", "103", "101"}},
    {"layout -1", layout_negative, false, {WSGEMM_INVALID_VALUE, "layout", "-1", "101"}},
    {"transa 110", transa_110, false, {WSGEMM_INVALID_VALUE, "transa", "110", "111"}},
    {"transa 115", transa_115, false, {WSGEMM_INVALID_VALUE, "transa", "115", "111"}},
    {"transb 0", transb_zero, false, {WSGEMM_INVALID_VALUE, "transb", "0", "111"}},
    {"transb 121", transb_121, false, {WSGEMM_INVALID_VALUE, "transb", "121", "111"}},
    {"m -1", m_negative, false, {WSGEMM_INVALID_VALUE, "m", "-1", "0"}},
    {"n -7", n_negative, false, {WSGEMM_INVALID_VALUE, "n", "-7", "0"}},
    {"k INT64_MIN", k_negative, false, {WSGEMM_INVALID_VALUE, "k", "-9223372036854775808", "0"}},
    {"m -1 though n is 0", m_negative_n_zero, false, {WSGEMM_INVALID_VALUE, "m", "-1", "0"}},
    {"lda one too small", lda_small, false, {WSGEMM_INVALID_VALUE, "lda", "", ""}},
    {"ldb one too small", ldb_small, false, {WSGEMM_INVALID_VALUE, "ldb", "", ""}},
    {"ldc one too small", ldc_small, false, {WSGEMM_INVALID_VALUE, "ldc", "", ""}},
    {"lda one too small, transposed", lda_small_transposed, false, {WSGEMM_INVALID_VALUE, "lda", "", ""}},
    {"ldb one too small, transposed", ldb_small_transposed, false, {WSGEMM_INVALID_VALUE, "ldb", "", ""}},
    {"lda one too small, conjugated", lda_small_conjugated, false, {WSGEMM_INVALID_VALUE, "lda", "", ""}},
    {"lda 0", lda_zero, false, {WSGEMM_INVALID_VALUE, "lda", "0", ""}},
    {"ldb -9", ldb_negative, false, {WSGEMM_INVALID_VALUE, "ldb", "-9", ""}},
    {"lda 0 though k is 0", lda_zero_k_zero, false, {WSGEMM_INVALID_VALUE, "lda", "0", ""}},
    {"ldb 0 though all sizes are 0", ldb_zero_all_zero, false, {WSGEMM_INVALID_VALUE, "ldb", "0", "1"}},
    {"ldc too small though C is empty", ldc_small_n_zero, false, {WSGEMM_INVALID_VALUE, "ldc", "7", "8"}},
    {"k lda beyond int64", lda_overflow, false, {WSGEMM_INVALID_VALUE, "lda", "4611686018427387903", ""}},
    {"n ldb beyond int64", ldb_overflow, false, {WSGEMM_INVALID_VALUE, "ldb", "3074457345618258602", ""}},
    {"n ldc beyond int64", ldc_overflow, false, {WSGEMM_INVALID_VALUE, "ldc", "3074457345618258602", ""}},
    {"ldc beyond int64 in bytes", ldc_overflow_in_bytes, false, {WSGEMM_INVALID_VALUE, "ldc", "", ""}},
    {"ldc beyond int64 in bytes of C", ldc_overflow_of_c_type, true, {WSGEMM_INVALID_VALUE, "ldc", "", ""}},
    {"all sizes INT64_MAX", m_overflow, false, {WSGEMM_INVALID_VALUE, "lda", "9223372036854775807", ""}},
    {"a NULL", a_null, false, {WSGEMM_INVALID_POINTER, "a", "NULL", ""}},
    {"b NULL", b_null, false, {WSGEMM_INVALID_POINTER, "b", "NULL", ""}},
    {"c NULL", c_null, false, {WSGEMM_INVALID_POINTER, "c", "NULL", ""}},
    {"c NULL though k is 0", c_null_k_zero, false, {WSGEMM_INVALID_POINTER, "c", "NULL", ""}},
    {"a, b, c NULL", all_null, false, {WSGEMM_INVALID_POINTER, "a", "NULL", ""}},
    {"enums before sizes", order_layout_before_m, false, {WSGEMM_INVALID_VALUE, "layout", "9", "101"}},
    {"transa before transb", order_transa_before_transb, false, {WSGEMM_INVALID_VALUE, "transa", "9", "111"}},
    {"sizes before lds", order_m_before_lda, false, {WSGEMM_INVALID_VALUE, "m", "-1", "0"}},
    {"lda before ldb", order_lda_before_ldb, false, {WSGEMM_INVALID_VALUE, "lda", "0", ""}},
    {"ldb before ldc", order_ldb_before_ldc, false, {WSGEMM_INVALID_VALUE, "ldb", "0", ""}},
    {"lds before pointers", order_ldc_before_pointers, false, {WSGEMM_INVALID_VALUE, "ldc", "0", ""}},
    {"batch_count -1", batch_negative, true, {WSGEMM_INVALID_VALUE, "batch_count", "-1", "0"}},
    {"batch beyond int64", batch_overflow, true, {WSGEMM_INVALID_VALUE, "batch_count", "4611686018427387903", ""}},
    {"struct_bytes 0", struct_bytes_zero, true, {WSGEMM_INVALID_VALUE, "struct_bytes", "0", ""}},
    {"struct_bytes of a later version", struct_bytes_large, true, {WSGEMM_INVALID_VALUE, "struct_bytes", "", ""}},
    {"type_a 6", type_a_6, true, {WSGEMM_INVALID_VALUE, "type_a", "6", "0"}},
    {"type_b -1", type_b_negative, true, {WSGEMM_INVALID_VALUE, "type_b", "-1", "0"}},
    {"type_c 99", type_c_99, true, {WSGEMM_INVALID_VALUE, "type_c", "99", "0"}},
    {"type_scalar 6", type_scalar_6, true, {WSGEMM_INVALID_VALUE, "type_scalar", "6", "0"}},
    {"mixed types", types_mixed, true, {WSGEMM_NOT_SUPPORTED, "type", "", ""}},
    {"half-precision types mixed", halves_mixed, true, {WSGEMM_NOT_SUPPORTED, "type", "", ""}},
    {"C of another type", c_mixed, true, {WSGEMM_NOT_SUPPORTED, "type", "", ""}},
    {"C of half precision, or complex", c_half, true, {WSGEMM_NOT_SUPPORTED, "type", "", ""}},
    {"scalar of half precision", scalar_half, true, {WSGEMM_NOT_SUPPORTED, "", "", ""}},
    {"scalar of another type", scalar_mixed, true, {WSGEMM_NOT_SUPPORTED, "", "", ""}},
    {"scalar_mode DEVICE", scalar_mode_device, true, {WSGEMM_NOT_SUPPORTED, "scalar_mode", "1", ""}},
    {"scalar_mode 2", scalar_mode_2, true, {WSGEMM_INVALID_VALUE, "scalar_mode", "2", "0"}},
    {"epilogue 5", epilogue_5, true, {WSGEMM_INVALID_VALUE, "epilogue", "5", "0"}},
    {"math 4", math_4, true, {WSGEMM_INVALID_VALUE, "math", "4", "0"}},
};

/* ---- Running it ------------------------------------------------------------------------------ */

static wsgemm_gemm_desc good_call(struct operands *x, wsgemm_type type, wsgemm_layout layout) {
  wsgemm_gemm_desc d = gemm_desc(type, layout, WSGEMM_NO_TRANS, WSGEMM_NO_TRANS, M, N, K);
  d.a = x->a;
  d.b = x->b;
  d.c = x->c;
  d.beta = scalar_make(type, 2, 0);
  return d;
}

static void refused(const struct bad_input *row, wsgemm_handle *handle, const wsgemm_gemm_desc *d, struct operands *x,
                    bool typed) {
  const wsgemm_status status = typed ? gemm_typed(handle, d) : wsgemm_gemm(handle, d);
  char what[DESCRIPTION_BYTES];
  snprintf(what, sizeof what, "%s (%s, layout %d)", row->what, typed ? "typed" : "descriptor", (int)d->layout);
  check_refused(what, status, &row->refusal, x);
}

static void whole_table(void) {
  static struct operands x;
  wsgemm_handle *own = NULL;
  REQUIRE(wsgemm_create(&own) == WSGEMM_SUCCESS, "handle");
  operands_fill(&x);
  for (size_t r = 0; r < sizeof table / sizeof table[0]; r++)
    for (int type = 0; type < N_TYPES; type++)
      for (int layout = 0; layout < 2; layout++) {
        wsgemm_gemm_desc d = good_call(&x, (wsgemm_type)type, all_layouts[layout]);
        table[r].spoil(&d);
        refused(&table[r], NULL, &d, &x, false);
        refused(&table[r], own, &d, &x, false);
        if (!table[r].descriptor_only) refused(&table[r], NULL, &d, &x, true);
        char text[512];
        wsgemm_explain(NULL, &d, text, sizeof text);
        if (table[r].refusal.answer != WSGEMM_INVALID_POINTER) check_explains_error(table[r].what, text);
      }
  wsgemm_destroy(own);
}

/* The least legal ld is named, and is enough: one less is refused, the same is taken. */
static void least_lds(void) {
  static struct operands x;
  static const char *const argument[3] = {"lda", "ldb", "ldc"};
  operands_fill(&x);
  for (int type = 0; type < N_TYPES; type++)
    for (int layout = 0; layout < 2; layout++)
      for (int op = 0; op < 16; op++)
        for (int which = 0; which < 3; which++) {
          wsgemm_gemm_desc d = gemm_desc((wsgemm_type)type, all_layouts[layout], all_ops[op % 4], all_ops[op / 4], M, N, K);
          int64_t *const ld[3] = {&d.lda, &d.ldb, &d.ldc};
          char value[8], least[8];
          d.a = x.a, d.b = x.b, d.c = x.c, d.beta = scalar_make(d.type_a, 1, 0), d.alpha = scalar_make(d.type_a, 0, 0);
          CHECK(gemm_typed(NULL, &d) == WSGEMM_SUCCESS, "least lds: %s", wsgemm_last_error());
          CHECK(operands_are_as_filled(&x), "C = 1 C + 0 A B changed C");
          least[0] = (char)('0' + *ld[which]), least[1] = '\0';
          value[0] = (char)('0' + --*ld[which]), value[1] = '\0';
          const struct bad_input row = {"ld", NULL, false, {WSGEMM_INVALID_VALUE, argument[which], value, least}};
          refused(&row, NULL, &d, &x, true);
        }
}

/* What is not refused: NULL where it is not read, whatever the enum in the other layout would
 * say. */
static void allowed(void) {
  static struct operands x;
  operands_fill(&x);
  for (int type = 0; type < N_TYPES; type++)
    for (int layout = 0; layout < 2; layout++) {
      const wsgemm_gemm_desc good = good_call(&x, (wsgemm_type)type, all_layouts[layout]);
      wsgemm_gemm_desc d = good;
      d.m = 0, d.a = d.b = NULL, d.c = NULL;
      CHECK(gemm_typed(NULL, &d) == WSGEMM_SUCCESS, "m = 0: %s", wsgemm_last_error());
      d = good, d.n = 0, d.a = d.b = NULL, d.c = NULL;
      CHECK(gemm_typed(NULL, &d) == WSGEMM_SUCCESS, "n = 0: %s", wsgemm_last_error());
      d = good, d.batch_count = 0, d.a = d.b = NULL, d.c = NULL;
      CHECK(wsgemm_gemm(NULL, &d) == WSGEMM_SUCCESS, "batch_count = 0: %s", wsgemm_last_error());
      d = good, d.k = 0, d.a = d.b = NULL, d.beta = scalar_make(d.type_c, 1, 0);
      CHECK(gemm_typed(NULL, &d) == WSGEMM_SUCCESS, "k = 0: %s", wsgemm_last_error());
      d = good, d.alpha = scalar_make(d.type_c, 0, 0), d.a = d.b = NULL, d.beta = scalar_make(d.type_c, 1, 0);
      CHECK(gemm_typed(NULL, &d) == WSGEMM_SUCCESS, "alpha = 0: %s", wsgemm_last_error());
      CHECK(operands_are_as_filled(&x), "a call that has nothing to do wrote C");
    }
}

/* ---- Handles, setters, getters --------------------------------------------------------------- */

static void handles(void) {
  wsgemm_handle *h = NULL, *const wrong = no_handle();
  static struct operands x;
  operands_fill(&x);
  CHECK(wsgemm_create(NULL) == WSGEMM_INVALID_POINTER && message_names(wsgemm_last_error(), "out"), "%s", wsgemm_last_error());
  CHECK(wsgemm_destroy(NULL) == WSGEMM_SUCCESS, "destroying NULL");
  REQUIRE(wsgemm_create(&h) == WSGEMM_SUCCESS && h, "create");
  for (int type = 0; type < N_TYPES; type++) { /* the handle is checked first of all */
    wsgemm_gemm_desc d = good_call(&x, (wsgemm_type)type, WSGEMM_COL_MAJOR);
    d.layout = (wsgemm_layout)0, d.m = -1, d.c = NULL;
    CHECK(gemm_typed(wrong, &d) == WSGEMM_INVALID_HANDLE && wsgemm_gemm(wrong, &d) == WSGEMM_INVALID_HANDLE, "a wrong handle");
  }
  CHECK(wsgemm_gemm(wrong, NULL) == WSGEMM_INVALID_HANDLE, "a wrong handle and no descriptor");
  CHECK(wsgemm_gemm(h, NULL) == WSGEMM_INVALID_POINTER && message_names(wsgemm_last_error(), "desc"), "%s", wsgemm_last_error());
  CHECK(wsgemm_destroy(wrong) == WSGEMM_INVALID_HANDLE, "destroying what is no handle");
  CHECK(
      wsgemm_set_num_threads(wrong, 1) == WSGEMM_INVALID_HANDLE && wsgemm_get_num_threads(wrong, NULL) == WSGEMM_INVALID_HANDLE &&
          wsgemm_set_policy(wrong, WSGEMM_POLICY_STEAL) == WSGEMM_INVALID_HANDLE &&
          wsgemm_get_policy(wrong, NULL) == WSGEMM_INVALID_HANDLE &&
          wsgemm_set_coarse_factor(wrong, 1) == WSGEMM_INVALID_HANDLE &&
          wsgemm_get_coarse_factor(wrong, NULL) == WSGEMM_INVALID_HANDLE &&
          wsgemm_set_math(wrong, WSGEMM_MATH_DEFAULT) == WSGEMM_INVALID_HANDLE &&
          wsgemm_get_math(wrong, NULL) == WSGEMM_INVALID_HANDLE && wsgemm_set_kernel(wrong, NULL) == WSGEMM_INVALID_HANDLE &&
          wsgemm_set_stream(wrong, NULL) == WSGEMM_INVALID_HANDLE && wsgemm_get_stream(wrong, NULL) == WSGEMM_INVALID_HANDLE &&
          wsgemm_set_check(wrong, 1) == WSGEMM_INVALID_HANDLE && wsgemm_get_check(wrong, NULL) == WSGEMM_INVALID_HANDLE &&
          wsgemm_set_invariant(wrong, 1) == WSGEMM_INVALID_HANDLE && wsgemm_get_invariant(wrong, NULL) == WSGEMM_INVALID_HANDLE &&
          wsgemm_set_workspace(wrong, NULL, 0) == WSGEMM_INVALID_HANDLE &&
          wsgemm_get_workspace_size(wrong, NULL, NULL) == WSGEMM_INVALID_HANDLE &&
          wsgemm_get_fallback_count(wrong, 0, NULL) == WSGEMM_INVALID_HANDLE &&
          wsgemm_set_logger(wrong, NULL, NULL) == WSGEMM_INVALID_HANDLE,
      "a setter or getter takes what is no handle");
  char text[64] = "";
  wsgemm_gemm_desc d = good_call(&x, WSGEMM_F32, WSGEMM_COL_MAJOR);
  wsgemm_explain(wrong, &d, text, sizeof text);
  check_explains_error("a wrong handle", text);
  CHECK(wsgemm_destroy(h) == WSGEMM_SUCCESS, "destroy");
}

struct int_setting {
  const char *argument;
  wsgemm_status (*set)(wsgemm_handle *h, int value);
  wsgemm_status (*get)(wsgemm_handle *h, int *value);
  int good[4], bad[4];
};

static wsgemm_status set_policy(wsgemm_handle *h, int value) { return wsgemm_set_policy(h, (wsgemm_policy)value); }
static wsgemm_status set_math(wsgemm_handle *h, int value) { return wsgemm_set_math(h, (wsgemm_math)value); }
static wsgemm_status get_policy(wsgemm_handle *h, int *value) {
  wsgemm_policy policy = WSGEMM_POLICY_AUTO;
  const wsgemm_status status = wsgemm_get_policy(h, value ? &policy : NULL);
  if (value) *value = (int)policy;
  return status;
}
static wsgemm_status get_math(wsgemm_handle *h, int *value) {
  wsgemm_math math = WSGEMM_MATH_INHERIT;
  const wsgemm_status status = wsgemm_get_math(h, value ? &math : NULL);
  if (value) *value = (int)math;
  return status;
}

static void settings(void) {
  static const struct int_setting int_settings[] = {
      {"n_threads", wsgemm_set_num_threads, wsgemm_get_num_threads, {1, 2, 64, 0}, {-1, -100, INT32_MIN, INT32_MAX}},
      {"policy", set_policy, get_policy, {5, 4, 2, 0}, {-1, 6, 99, INT32_MIN}},
      {"coarse_factor", wsgemm_set_coarse_factor, wsgemm_get_coarse_factor, {1, 3, 64, 0}, {-1, 65, INT32_MAX, INT32_MIN}},
      {"quantum", wsgemm_set_quantum, wsgemm_get_quantum, {1, 7, 1 << 20, 0}, {-1, (1 << 20) + 1, INT32_MAX, INT32_MIN}},
      {"math", set_math, get_math, {2, 3, 1, 1}, {-1, 0, 4, INT32_MAX}},
      {"enabled", wsgemm_set_check, wsgemm_get_check, {1, 0, 1, 0}, {-1, 2, INT32_MIN, INT32_MAX}},
      {"enabled", wsgemm_set_invariant, wsgemm_get_invariant, {1, 0, 1, 0}, {-1, 2, INT32_MIN, INT32_MAX}},
  };
  static struct operands x;
  wsgemm_handle *own = NULL;
  operands_fill(&x);
  REQUIRE(wsgemm_create(&own) == WSGEMM_SUCCESS, "handle");
  for (int which = 0; which < 2; which++) {
    wsgemm_handle *h = which ? own : NULL;
    for (size_t s = 0; s < sizeof int_settings / sizeof int_settings[0]; s++)
      for (int i = 0; i < 4; i++) {
        const struct int_setting *setting = &int_settings[s];
        int value = -77;
        CHECK(setting->set(h, setting->good[i]) == WSGEMM_SUCCESS && setting->get(h, &value) == WSGEMM_SUCCESS &&
                  value == setting->good[i],
              "%s: set %d, got %d", setting->argument, setting->good[i], value);
        CHECK(setting->set(h, setting->bad[i]) == WSGEMM_INVALID_VALUE, "%s: %d is taken", setting->argument, setting->bad[i]);
        CHECK(message_names(wsgemm_last_error(), setting->argument), "\"%s\" does not name %s", wsgemm_last_error(),
              setting->argument);
        CHECK(setting->get(h, &value) == WSGEMM_SUCCESS && value == setting->good[i], "%s: a refused value took effect",
              setting->argument);
        CHECK(setting->get(h, NULL) == WSGEMM_INVALID_POINTER, "%s: NULL is written", setting->argument);
      }
    int stream_object;
    void *stream = NULL;
    CHECK(wsgemm_set_stream(h, &stream_object) == WSGEMM_SUCCESS && wsgemm_get_stream(h, &stream) == WSGEMM_SUCCESS &&
              stream == (void *)&stream_object && wsgemm_get_stream(h, NULL) == WSGEMM_INVALID_POINTER,
          "stream");
    wsgemm_set_stream(h, NULL);
    /* host memory: refused as what it is, or because there is no GPU */
    const wsgemm_status not_device = wsgemm_set_workspace(h, &stream_object, sizeof stream_object);
    CHECK(not_device == WSGEMM_NO_DEVICE || not_device == WSGEMM_INVALID_POINTER || not_device == WSGEMM_INSUFFICIENT_DRIVER,
          "host memory as workspace: status %d", (int)not_device);
    CHECK(wsgemm_set_workspace(h, NULL, 0) == WSGEMM_SUCCESS && wsgemm_set_workspace(h, NULL, 1) == WSGEMM_INVALID_POINTER,
          "no workspace");
    wsgemm_gemm_desc d = good_call(&x, WSGEMM_F32, WSGEMM_COL_MAJOR);
    size_t bytes = 77;
    CHECK(wsgemm_get_workspace_size(h, &d, NULL) == WSGEMM_INVALID_POINTER &&
              wsgemm_get_workspace_size(h, NULL, &bytes) == WSGEMM_INVALID_POINTER &&
              wsgemm_get_workspace_size(h, &d, &bytes) == WSGEMM_SUCCESS && bytes == 0,
          "the workspace of a call on host memory is %zu bytes", bytes);
    d.m = -1;
    CHECK(wsgemm_get_workspace_size(h, &d, &bytes) == WSGEMM_INVALID_VALUE && message_names(wsgemm_last_error(), "m"), "%s",
          wsgemm_last_error());
    CHECK(wsgemm_set_kernel(h, "sgemm_nonsense_1x1") == WSGEMM_INVALID_VALUE &&
              strstr(wsgemm_last_error(), "sgemm_nonsense_1x1") != NULL,
          "%s", wsgemm_last_error());
    for (int row = 0; row < wsgemm_kernel_count(); row++)
      if (!wsgemm_kernel_usable(row))
        CHECK(wsgemm_set_kernel(h, wsgemm_kernel_name(row)) == WSGEMM_NOT_SUPPORTED, "%s is taken", wsgemm_kernel_name(row));
    CHECK(wsgemm_set_kernel(h, NULL) == WSGEMM_SUCCESS && wsgemm_set_kernel(h, "") == WSGEMM_SUCCESS, "back to automatic");
  }
  CHECK(wsgemm_destroy(own) == WSGEMM_SUCCESS, "destroy");
}

/* ---- Check mode, logger ---------------------------------------------------------------------- */

/* C that overlaps A or B by one element is refused in check mode, C right behind or before them is
 * not. */
static void overlaps(void) {
  static struct operands x;
  wsgemm_handle *h = NULL;
  REQUIRE(wsgemm_create(&h) == WSGEMM_SUCCESS && wsgemm_set_check(h, 1) == WSGEMM_SUCCESS, "handle");
  for (int type = 0; type < N_TYPES; type++)
    for (int layout = 0; layout < 2; layout++)
      for (int other_is_b = 0; other_is_b < 2; other_is_b++)
        for (int c_is_first = 0; c_is_first < 2; c_is_first++)
          for (int distance = -1; distance <= 0; distance++) {
            operands_fill(&x);
            wsgemm_gemm_desc d = good_call(&x, (wsgemm_type)type, all_layouts[layout]);
            if (type_is_half(d.type_c) && layout) d.type_c = WSGEMM_F32;
            const size_t element = type_bytes((wsgemm_type)type), c_element = type_bytes(d.type_c), c_bytes = M * N * c_element;
            /* Up to where an element of C may begin. */
            const size_t other_bytes = ((other_is_b ? K * N : M * K) * element + c_element - 1) / c_element * c_element;
            unsigned char *const other = x.c + 64 * element;
            *(other_is_b ? &d.b : &d.a) = other;
            d.c = c_is_first ? other - c_bytes - (size_t)distance * c_element : other + other_bytes + distance * (int)c_element;
            memset(x.c, 0, sizeof x.c);
            memset(x.before_c, 0, sizeof x.before_c);
            const wsgemm_status status = gemm_typed(h, &d);
            const wsgemm_status expected = distance < 0 ? WSGEMM_INVALID_VALUE : WSGEMM_SUCCESS;
            CHECK(status == expected, "type %d, C %s %s, %d elements apart: %s", type, c_is_first ? "before" : "behind",
                  other_is_b ? "B" : "A", distance, wsgemm_status_name(status));
            if (status != WSGEMM_SUCCESS)
              CHECK(message_names(wsgemm_last_error(), "c") && message_names(wsgemm_last_error(), other_is_b ? "b" : "a"), "%s",
                    wsgemm_last_error());
          }
  operands_fill(&x);
  /* unread A and B may be anywhere */
  wsgemm_gemm_desc d = good_call(&x, WSGEMM_F64, WSGEMM_COL_MAJOR);
  d.a = d.b = d.c;
  d.alpha.d = 0, d.beta.d = 1;
  CHECK(gemm_typed(h, &d) == WSGEMM_SUCCESS, "alpha = 0: %s", wsgemm_last_error());
  d.alpha.d = 1;
  CHECK(gemm_typed(h, &d) == WSGEMM_INVALID_VALUE, "A = C");
  CHECK(operands_are_as_filled(&x), "C was written");
  CHECK(wsgemm_destroy(h) == WSGEMM_SUCCESS, "destroy");
}

struct log {
  int n_calls;
  wsgemm_status status;
  char message[512];
};

static void write_log(void *user, wsgemm_status status, const char *message) {
  struct log *log = user;
  log->n_calls++;
  log->status = status;
  strncpy(log->message, message, sizeof log->message - 1);
}

static void logger(void) {
  static struct operands x;
  struct log log = {0, WSGEMM_SUCCESS, ""};
  wsgemm_handle *h = NULL;
  REQUIRE(wsgemm_create(&h) == WSGEMM_SUCCESS, "handle");
  operands_fill(&x);
  wsgemm_gemm_desc d = good_call(&x, WSGEMM_F32, WSGEMM_COL_MAJOR);
  d.m = -3;
  CHECK(wsgemm_set_logger(h, write_log, &log) == WSGEMM_SUCCESS, "set_logger");
  CHECK(gemm_typed(h, &d) == WSGEMM_INVALID_VALUE, "m = -3");
  CHECK(log.n_calls == 1 && log.status == WSGEMM_INVALID_VALUE && strcmp(log.message, wsgemm_last_error()) == 0 &&
            strchr(log.message, '\n') == NULL && message_names(log.message, "-3"),
        "%d calls, the last with \"%s\"", log.n_calls, log.message);
  CHECK(gemm_typed(NULL, &d) == WSGEMM_INVALID_VALUE && log.n_calls == 1, "another handle's failure was logged");
  d.m = M;
  CHECK(gemm_typed(h, &d) == WSGEMM_SUCCESS && log.n_calls == 1, "a good call was logged");
  CHECK(wsgemm_set_logger(h, NULL, NULL) == WSGEMM_SUCCESS, "no logger");
  d.m = -3;
  CHECK(gemm_typed(h, &d) == WSGEMM_INVALID_VALUE && log.n_calls == 1, "a removed logger was called");
  CHECK(wsgemm_destroy(h) == WSGEMM_SUCCESS, "destroy");
}

/* A logger is never called with another logger's user pointer, however often they are changed
 * meanwhile. */
struct tagged {
  int tag;
};
static struct tagged user_one = {1}, user_two = {2};
static atomic_int n_mismatches, n_logged, n_tuned;
static atomic_bool changes_are_over;

static void expect_tag(const void *user, int tag) {
  atomic_fetch_add(&n_logged, 1);
  if (((const struct tagged *)user)->tag != tag) atomic_fetch_add(&n_mismatches, 1);
}
static void logger_one(void *user, wsgemm_status status, const char *message) {
  (void)status, (void)message;
  expect_tag(user, 1);
}
static void logger_two(void *user, wsgemm_status status, const char *message) {
  (void)status, (void)message;
  expect_tag(user, 2);
}

static void *fail_all_the_time(void *handle) {
  while (!atomic_load(&changes_are_over))
    if (wsgemm_set_coarse_factor(handle, -1) != WSGEMM_INVALID_VALUE) atomic_fetch_add(&n_mismatches, 1);
  return NULL;
}

/* Refused only after autotune has made a handle of its own with the settings of this one. */
static void *tune_too_small_all_the_time(void *handle) {
  wsgemm_gemm_desc d = gemm_desc(WSGEMM_F32, WSGEMM_COL_MAJOR, WSGEMM_NO_TRANS, WSGEMM_NO_TRANS, M, N, K);
  for (; !atomic_load(&changes_are_over); atomic_fetch_add(&n_tuned, 1))
    if (wsgemm_autotune(handle, &d, NULL) != WSGEMM_NOT_SUPPORTED) atomic_fetch_add(&n_mismatches, 1);
  return NULL;
}

static void logger_and_user_belong_together(void) {
  wsgemm_handle *h = NULL;
  pthread_t thread, tuner;
  REQUIRE(wsgemm_create(&h) == WSGEMM_SUCCESS && wsgemm_set_logger(h, logger_one, &user_one) == WSGEMM_SUCCESS, "handle");
  REQUIRE(pthread_create(&thread, NULL, fail_all_the_time, h) == 0, "thread");
  REQUIRE(pthread_create(&tuner, NULL, tune_too_small_all_the_time, h) == 0, "thread");
  while (atomic_load(&n_logged) == 0) sched_yield();
  for (int i = 0; i < 200000 / check_scale() || atomic_load(&n_tuned) < 1500 / check_scale(); i++)
    if (i % 2)
      wsgemm_set_logger(h, logger_one, &user_one);
    else
      wsgemm_set_logger(h, logger_two, &user_two);
  atomic_store(&changes_are_over, true);
  pthread_join(thread, NULL);
  pthread_join(tuner, NULL);
  CHECK(atomic_load(&n_mismatches) == 0, "%d of %d calls got the other logger's user", atomic_load(&n_mismatches),
        atomic_load(&n_logged));
  CHECK(wsgemm_destroy(h) == WSGEMM_SUCCESS, "destroy");
}

/* Whatever happens, nothing is printed. */
static void silence(void) {
  static struct operands x;
  FILE *file = tmpfile();
  REQUIRE(file != NULL, "temporary file");
  operands_fill(&x);
  fflush(NULL);
  const int old_out = dup(STDOUT_FILENO), old_err = dup(STDERR_FILENO);
  REQUIRE(dup2(fileno(file), STDOUT_FILENO) >= 0 && dup2(fileno(file), STDERR_FILENO) >= 0, "dup2");
  int n_refused = 0;
  for (size_t r = 0; r < sizeof table / sizeof table[0]; r++) {
    wsgemm_gemm_desc d = good_call(&x, WSGEMM_F64, WSGEMM_COL_MAJOR);
    table[r].spoil(&d);
    n_refused += wsgemm_gemm(NULL, &d) != WSGEMM_SUCCESS;
  }
  const wsgemm_gemm_desc good = good_call(&x, WSGEMM_F64, WSGEMM_COL_MAJOR);
  const wsgemm_status status = wsgemm_gemm(NULL, &good);
  wsgemm_set_kernel(NULL, "no such kernel");
  fflush(NULL);
  dup2(old_out, STDOUT_FILENO);
  dup2(old_err, STDERR_FILENO);
  close(old_out);
  close(old_err);
  CHECK(n_refused == (int)(sizeof table / sizeof table[0]) && status == WSGEMM_SUCCESS, "%d refused", n_refused);
  CHECK(lseek(fileno(file), 0, SEEK_END) == 0, "%lld bytes were printed", (long long)lseek(fileno(file), 0, SEEK_END));
  fclose(file);
}

static const struct check_case cases[] = {
    {"whole_table", whole_table}, {"least_lds", least_lds},
    {"allowed", allowed},         {"handles", handles},
    {"settings", settings},       {"overlaps", overlaps},
    {"logger", logger},           {"logger_and_user_belong_together", logger_and_user_belong_together},
    {"silence", silence}};
CHECK_MAIN("badinput", cases)
