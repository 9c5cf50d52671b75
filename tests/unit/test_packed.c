/* test_packed.c - what the functions of packed operands refuse, and what they do not look at,
 * wherever they run: here all memory is the host's, where no operand has a packed form. What is
 * made of one on a GPU: tests/host/test_backend_packed.c, tests/gpu/test_gpu_packed.c. */
#include "support/gemm_call.h"

#include <stdio.h>
#include <string.h>

enum { M = 3, N = 4, K = 200, N_OPERANDS = 2 };

/* For operands and for their packed form; nothing here is read or written. */
static _Alignas(256) unsigned char host[4096];
static int a_record;
static wsgemm_packed *const untouched = (wsgemm_packed *)(void *)&a_record;

static wsgemm_gemm_desc good_desc(wsgemm_type type, wsgemm_layout layout) {
  wsgemm_gemm_desc d = gemm_desc(type, layout, WSGEMM_NO_TRANS, WSGEMM_NO_TRANS, M, N, K);
  d.a = d.b = d.c = host;
  return d;
}

static bool begins_with(const char *text, const char *words) { return strncmp(text, words, strlen(words)) == 0; }

/* wsgemm_prepack with good memory; *packed must stay as it is, as nothing can be packed here. */
static wsgemm_status prepack(wsgemm_handle *h, const wsgemm_gemm_desc *d, wsgemm_operand which) {
  wsgemm_packed *packed = untouched;
  const wsgemm_status status = wsgemm_prepack(h, d, which, host, sizeof host, &packed);
  CHECK(status != WSGEMM_SUCCESS && packed == untouched, "%s, and *packed was written", wsgemm_status_name(status));
  return status;
}

/* An operand that may be packed, but has no packed form here. */
static void expect_none(wsgemm_handle *h, const wsgemm_gemm_desc *d, wsgemm_operand which, const char *what) {
  size_t bytes = 77;
  wsgemm_status status = wsgemm_get_packed_size(h, d, which, &bytes);
  CHECK(status == WSGEMM_SUCCESS && bytes == 0, "%s, operand %d: %s (%s), %zu bytes", what, (int)which,
        wsgemm_status_name(status), wsgemm_last_error(), bytes);
  status = prepack(h, d, which);
  CHECK(status == WSGEMM_NOT_SUPPORTED && strstr(wsgemm_last_error(), "packed form"), "%s, operand %d: %s (%s)", what, (int)which,
        wsgemm_status_name(status), wsgemm_last_error());
}

/* ---- Descriptors ----------------------------------------------------------------------------- */

struct bad_desc {
  const char *what;
  void (*spoil)(wsgemm_gemm_desc *d, bool is_b);
  wsgemm_status answer;
  const char *words[N_OPERANDS]; /* that last_error begins with, for A and for B */
};

static int64_t *own_size(wsgemm_gemm_desc *d, bool is_b) { return is_b ? &d->n : &d->m; }
static int64_t *own_ld(wsgemm_gemm_desc *d, bool is_b) { return is_b ? &d->ldb : &d->lda; }
static int64_t *own_stride(wsgemm_gemm_desc *d, bool is_b) { return is_b ? &d->stride_b : &d->stride_a; }
static wsgemm_op *own_op(wsgemm_gemm_desc *d, bool is_b) { return is_b ? &d->transb : &d->transa; }
static const void **own_data(wsgemm_gemm_desc *d, bool is_b) { return is_b ? &d->b : &d->a; }

#define SPOIL(name, ...) \
  static void name(wsgemm_gemm_desc *d, bool is_b) { (void)is_b, __VA_ARGS__; }
SPOIL(struct_bytes_zero, d->struct_bytes = 0)
SPOIL(struct_bytes_large, d->struct_bytes = sizeof *d + 8)
SPOIL(layout_zero, d->layout = (wsgemm_layout)0)
SPOIL(op_110, *own_op(d, is_b) = (wsgemm_op)110)
SPOIL(op_115, *own_op(d, is_b) = (wsgemm_op)115)
SPOIL(type_a_6, d->type_a = (wsgemm_type)6)
SPOIL(type_b_negative, d->type_b = (wsgemm_type)-1)
SPOIL(type_c_6, d->type_c = (wsgemm_type)6)
SPOIL(type_scalar_6, d->type_scalar = (wsgemm_type)6)
SPOIL(types_mixed, d->type_b = d->type_a == WSGEMM_F32 ? WSGEMM_F64 : WSGEMM_F32)
SPOIL(math_4, d->math = (wsgemm_math)4)
SPOIL(size_negative, *own_size(d, is_b) = -7)
SPOIL(k_negative, d->k = INT64_MIN)
SPOIL(ld_zero, *own_ld(d, is_b) = 0)
SPOIL(ld_zero_without_size, *own_size(d, is_b) = 0, *own_ld(d, is_b) = 0)
SPOIL(ld_overflow, *own_ld(d, is_b) = INT64_MAX / 2)
SPOIL(batch_negative, d->batch_count = -1)
SPOIL(batch_overflow, d->batch_count = INT64_MAX / 2, *own_stride(d, is_b) = 100)
SPOIL(stride_least, d->batch_count = 2, *own_stride(d, is_b) = INT64_MIN)
SPOIL(data_null, *own_data(d, is_b) = NULL)
SPOIL(data_null_without_size, *own_size(d, is_b) = 0, *own_data(d, is_b) = NULL)
SPOIL(data_null_alpha_zero, d->alpha = scalar_make(d->type_c, 0, 0), *own_data(d, is_b) = NULL)
/* One less than a line, in each op and layout. */
SPOIL(ld_small, *own_ld(d, is_b) -= 1)
SPOIL(ld_small_transposed, *own_op(d, is_b) = WSGEMM_CONJ_TRANS,
      *own_ld(d, is_b) = ((d->layout == WSGEMM_COL_MAJOR) != is_b ? d->k : *own_size(d, is_b)) - 1)

static const struct bad_desc table[] = {
    {"struct_bytes 0", struct_bytes_zero, WSGEMM_INVALID_VALUE, {"struct_bytes is 0;", "struct_bytes is 0;"}},
    {"struct_bytes of a later version", struct_bytes_large, WSGEMM_INVALID_VALUE, {"struct_bytes is", "struct_bytes is"}},
    {"layout 0", layout_zero, WSGEMM_INVALID_VALUE, {"layout is 0;", "layout is 0;"}},
    {"op 110", op_110, WSGEMM_INVALID_VALUE, {"transa is 110;", "transb is 110;"}},
    {"op 115", op_115, WSGEMM_INVALID_VALUE, {"transa is 115;", "transb is 115;"}},
    {"type_a 6", type_a_6, WSGEMM_INVALID_VALUE, {"type_a is 6;", "type_a is 6;"}},
    {"type_b -1", type_b_negative, WSGEMM_INVALID_VALUE, {"type_b is -1;", "type_b is -1;"}},
    {"type_c 6", type_c_6, WSGEMM_INVALID_VALUE, {"type_c is 6;", "type_c is 6;"}},
    {"type_scalar 6", type_scalar_6, WSGEMM_INVALID_VALUE, {"type_scalar is 6;", "type_scalar is 6;"}},
    {"mixed types", types_mixed, WSGEMM_NOT_SUPPORTED, {"types ", "types "}},
    {"math 4", math_4, WSGEMM_INVALID_VALUE, {"math is 4;", "math is 4;"}},
    {"a negative size", size_negative, WSGEMM_INVALID_VALUE, {"m is -7;", "n is -7;"}},
    {"k INT64_MIN", k_negative, WSGEMM_INVALID_VALUE, {"k is -9223372036854775808;", "k is -9223372036854775808;"}},
    {"ld one too small", ld_small, WSGEMM_INVALID_VALUE, {"lda is", "ldb is"}},
    {"ld one too small, transposed", ld_small_transposed, WSGEMM_INVALID_VALUE, {"lda is", "ldb is"}},
    {"ld 0", ld_zero, WSGEMM_INVALID_VALUE, {"lda is 0;", "ldb is 0;"}},
    {"ld 0, nothing to pack", ld_zero_without_size, WSGEMM_INVALID_VALUE, {"lda is 0;", "ldb is 0;"}},
    {"ld beyond int64", ld_overflow, WSGEMM_INVALID_VALUE, {"lda is 4611686018427387903;", "ldb is 4611686018427387903;"}},
    {"batch_count -1", batch_negative, WSGEMM_INVALID_VALUE, {"batch_count is -1;", "batch_count is -1;"}},
    {"batch beyond int64", batch_overflow, WSGEMM_INVALID_VALUE, {"batch_count is", "batch_count is"}},
    {"stride INT64_MIN", stride_least, WSGEMM_INVALID_VALUE, {"batch_count is 2;", "batch_count is 2;"}},
    {"NULL", data_null, WSGEMM_INVALID_POINTER, {"a is NULL", "b is NULL"}},
    {"NULL, nothing to pack", data_null_without_size, WSGEMM_INVALID_POINTER, {"a is NULL", "b is NULL"}},
    {"NULL, alpha is 0", data_null_alpha_zero, WSGEMM_INVALID_POINTER, {"a is NULL", "b is NULL"}},
};

static void expect_refusal(wsgemm_handle *h, const wsgemm_gemm_desc *d, wsgemm_operand which, wsgemm_status answer,
                           const char *words, const char *what) {
  size_t bytes = 77;
  for (int by_prepack = 0; by_prepack < 2; by_prepack++) {
    const wsgemm_status status = by_prepack ? prepack(h, d, which) : wsgemm_get_packed_size(h, d, which, &bytes);
    CHECK(status == answer && begins_with(wsgemm_last_error(), words), "%s, operand %d, %s: %s (%s), not %s (%s ..)", what,
          (int)which, by_prepack ? "packed" : "size", wsgemm_status_name(status), wsgemm_last_error(), wsgemm_status_name(answer),
          words);
  }
}

static void descriptors(void) {
  wsgemm_handle *own = NULL;
  REQUIRE(wsgemm_create(&own) == WSGEMM_SUCCESS, "handle");
  for (size_t r = 0; r < sizeof table / sizeof table[0]; r++)
    for (int type = 0; type < N_TYPES; type++)
      for (int turn = 0; turn < 4; turn++) {
        wsgemm_gemm_desc d = good_desc((wsgemm_type)type, all_layouts[turn % 2]);
        const bool is_b = turn / 2;
        table[r].spoil(&d, is_b);
        expect_refusal(NULL, &d, (wsgemm_operand)is_b, table[r].answer, table[r].words[is_b], table[r].what);
        expect_refusal(own, &d, (wsgemm_operand)is_b, table[r].answer, table[r].words[is_b], table[r].what);
      }
  CHECK(wsgemm_destroy(own) == WSGEMM_SUCCESS, "destroy");
}

/* ---- The other arguments --------------------------------------------------------------------- */

static void arguments(void) {
  static const wsgemm_operand unknown[] = {(wsgemm_operand)2, (wsgemm_operand)-1, (wsgemm_operand)111};
  const wsgemm_gemm_desc d = good_desc(WSGEMM_F32, WSGEMM_COL_MAJOR);
  wsgemm_packed *packed = untouched;
  size_t bytes = 77;
  for (size_t i = 0; i < sizeof unknown / sizeof unknown[0]; i++) {
    char words[32];
    snprintf(words, sizeof words, "operand is %d;", (int)unknown[i]);
    expect_refusal(NULL, &d, unknown[i], WSGEMM_INVALID_VALUE, words, "an unknown operand");
  }
  expect_refusal(NULL, NULL, WSGEMM_OPERAND_A, WSGEMM_INVALID_POINTER, "desc is NULL", "no descriptor");
  for (int is_b = 0; is_b < N_OPERANDS; is_b++) {
    const wsgemm_operand which = (wsgemm_operand)is_b;
    CHECK(wsgemm_get_packed_size(NULL, &d, which, NULL) == WSGEMM_INVALID_POINTER &&
              begins_with(wsgemm_last_error(), "bytes is NULL"),
          "no place for the size: %s", wsgemm_last_error());
    CHECK(wsgemm_prepack(NULL, &d, which, host, sizeof host, NULL) == WSGEMM_INVALID_POINTER &&
              begins_with(wsgemm_last_error(), "packed is NULL"),
          "no place for the record: %s", wsgemm_last_error());
    CHECK(wsgemm_prepack(NULL, &d, which, NULL, sizeof host, &packed) == WSGEMM_INVALID_POINTER &&
              begins_with(wsgemm_last_error(), "memory is NULL"),
          "no memory: %s", wsgemm_last_error());
    for (int off = 1; off < 256; off = off * 2 + off % 3)
      CHECK(wsgemm_prepack(NULL, &d, which, host + off, sizeof host - 256, &packed) == WSGEMM_INVALID_VALUE &&
                begins_with(wsgemm_last_error(), "memory is") && strstr(wsgemm_last_error(), "256"),
            "memory %d bytes off: %s", off, wsgemm_last_error());
  }
  CHECK(packed == untouched && bytes == 77, "something was written after an error");
}

/* What is no handle is found before all else. */
static void handles(void) {
  static _Alignas(16) unsigned char not_a_handle[512];
  wsgemm_handle *wrong = (wsgemm_handle *)(void *)not_a_handle;
  wsgemm_packed *packed = untouched;
  size_t bytes = 77;
  memset(not_a_handle, 0x5a, sizeof not_a_handle);
  const wsgemm_gemm_desc d = good_desc(WSGEMM_F32, WSGEMM_COL_MAJOR);
  CHECK(wsgemm_get_packed_size(wrong, NULL, (wsgemm_operand)9, NULL) == WSGEMM_INVALID_HANDLE &&
            wsgemm_get_packed_size(wrong, &d, WSGEMM_OPERAND_A, &bytes) == WSGEMM_INVALID_HANDLE && bytes == 77,
        "the size is told to no handle");
  CHECK(wsgemm_prepack(wrong, NULL, (wsgemm_operand)9, NULL, 0, NULL) == WSGEMM_INVALID_HANDLE &&
            wsgemm_prepack(wrong, &d, WSGEMM_OPERAND_A, host, sizeof host, &packed) == WSGEMM_INVALID_HANDLE &&
            packed == untouched,
        "no handle packs");
}

/* ---- What has no packed form here, and what is not looked at --------------------------------- */

static void none_here(void) {
  wsgemm_handle *own = NULL;
  REQUIRE(wsgemm_create(&own) == WSGEMM_SUCCESS, "handle");
  for (int type = 0; type < N_TYPES; type++)
    for (int turn = 0; turn < 16; turn++) {
      const wsgemm_layout layout = all_layouts[turn % 2];
      const wsgemm_operand which = (wsgemm_operand)(turn / 2 % 2);
      wsgemm_gemm_desc d = gemm_desc((wsgemm_type)type, layout, all_ops[turn / 4], all_ops[3 - turn / 4], M, N, K);
      d.a = d.b = d.c = host;
      expect_none(NULL, &d, which, "host memory");
      expect_none(own, &d, which, "host memory");
      for (int math = WSGEMM_MATH_INHERIT; math <= WSGEMM_MATH_TF32; math++) {
        d.math = (wsgemm_math)math;
        expect_none(own, &d, which, "another class");
      }
      wsgemm_gemm_desc less = good_desc((wsgemm_type)type, layout);
      less.k = 1, less.transa = less.transb = WSGEMM_TRANS, less.lda = less.ldb = K;
      expect_none(own, &less, which, "k = 1");
      less.k = 0;
      expect_none(own, &less, which, "k = 0");
      less = good_desc((wsgemm_type)type, layout), *own_size(&less, which) = 0;
      expect_none(own, &less, which, "no rows, or columns");
      less = good_desc((wsgemm_type)type, layout), less.batch_count = 0;
      expect_none(own, &less, which, "no products");
      less.batch_count = 3, *own_stride(&less, which) = -5;
      expect_none(own, &less, which, "a batch");
    }
  CHECK(wsgemm_destroy(own) == WSGEMM_SUCCESS, "destroy");
}

/* All that belongs to the other operand, to C and to the epilogue may be anything. */
static void not_looked_at(void) {
  for (int type = 0; type < N_TYPES; type++)
    for (int turn = 0; turn < 4; turn++) {
      wsgemm_gemm_desc d = good_desc((wsgemm_type)type, all_layouts[turn % 2]);
      const bool is_b = turn / 2;
      *own_size(&d, !is_b) = -5, *own_ld(&d, !is_b) = 0, *own_data(&d, !is_b) = NULL, *own_op(&d, !is_b) = (wsgemm_op)3;
      d.c = NULL, d.ldc = -1, d.alpha = d.beta = scalar_make(d.type_c, 0, 0);
      d.epilogue = (wsgemm_epilogue)77, d.bias_per = (wsgemm_bias)77, d.type_bias = (wsgemm_type)77, d.bias = host + 1;
      d.residual = host, d.ld_residual = -1, d.column_sums = host, d.packed_a = d.packed_b = untouched;
      expect_none(NULL, &d, (wsgemm_operand)is_b, "all else spoiled");
      d.batch_count = 3, *own_stride(&d, !is_b) = INT64_MIN, d.stride_c = INT64_MIN,
      d.stride_bias = d.stride_residual = INT64_MIN;
      expect_none(NULL, &d, (wsgemm_operand)is_b, "all else spoiled, of a batch");
    }
}

/* Operands of one line that are as long as memory allows; what else is in their product would not
 * fit into int64_t. */
static void long_lines(void) {
  static const int64_t most = INT64_C(1) << 31;
  for (int type = 0; type < N_TYPES; type++)
    for (int turn = 0; turn < 32; turn++) {
      const bool is_b = turn / 2 % 2, along_k = turn / 4 % 2;
      wsgemm_gemm_desc d = gemm_desc((wsgemm_type)type, all_layouts[turn % 2], all_ops[turn / 8], all_ops[turn / 8],
                                     along_k ? 1 : most, along_k ? 1 : most, along_k ? most : 1);
      d.a = d.b = d.c = host;
      expect_none(NULL, &d, (wsgemm_operand)is_b, along_k ? "a long k" : "many rows, or columns");
    }
}

/* A struct of the first version: nothing behind it is read, which would end the test. */
static void first_version(void) {
  struct arena place = arena_new(WSGEMM_GEMM_DESC_BASE_BYTES);
  wsgemm_gemm_desc *shorter = (void *)(place.low + place.bytes - WSGEMM_GEMM_DESC_BASE_BYTES);
  for (int turn = 0; turn < 4; turn++) {
    wsgemm_gemm_desc d = good_desc(WSGEMM_F32, all_layouts[turn % 2]);
    d.struct_bytes = WSGEMM_GEMM_DESC_BASE_BYTES, d.epilogue = turn % 2 ? WSGEMM_EPILOGUE_RELU : WSGEMM_EPILOGUE_NONE;
    memcpy((void *)shorter, &d, d.struct_bytes);
    expect_none(NULL, shorter, (wsgemm_operand)(turn / 2), "the first version");
  }
  arena_free(&place);
}

/* ---- Products with what is no record --------------------------------------------------------- */

/* No call with this descriptor goes on; it names what is wrong, as the caller calls it. */
static void expect_no_record(const wsgemm_gemm_desc *d, const char *name) {
  size_t bytes = 77;
  char text[256], words[64];
  snprintf(words, sizeof words, "%s was not made by wsgemm_prepack", name);
  CHECK(wsgemm_gemm(NULL, d) == WSGEMM_INVALID_VALUE && begins_with(wsgemm_last_error(), words), "%s: %s", name,
        wsgemm_last_error());
  CHECK(wsgemm_get_workspace_size(NULL, d, &bytes) == WSGEMM_INVALID_VALUE && begins_with(wsgemm_last_error(), words), "%s: %s",
        name, wsgemm_last_error());
  wsgemm_explain(NULL, d, text, sizeof text);
  CHECK(begins_with(text, "error: ") && begins_with(text + strlen("error: "), words), "%s: explained as %s", name, text);
}

static void no_record(void) {
  static _Alignas(16) unsigned char zeros[2048], others[2048];
  const wsgemm_packed *const none[] = {(const wsgemm_packed *)(void *)zeros, (const wsgemm_packed *)(void *)others};
  static float a[M * K], b[K * N], c[M * N], before[M * N];
  memset(others, 0x5a, sizeof others);
  for (int i = 0; i < M * N; i++) c[i] = before[i] = (float)i;
  for (int turn = 0; turn < 8; turn++) {
    wsgemm_gemm_desc d = good_desc(WSGEMM_F32, all_layouts[turn % 2]);
    const bool is_b = turn / 2 % 2;
    d.a = a, d.b = b, d.c = c;
    *(is_b ? &d.packed_b : &d.packed_a) = none[turn / 4];
    expect_no_record(&d, is_b ? "packed_b" : "packed_a");
    d.m = 0;
    expect_no_record(&d, is_b ? "packed_b" : "packed_a"); /* before the quick return */
    d.m = M, d.alpha.s = 0;
    expect_no_record(&d, is_b ? "packed_b" : "packed_a");
    d.ldc = 0;
    CHECK(wsgemm_gemm(NULL, &d) == WSGEMM_INVALID_VALUE && begins_with(wsgemm_last_error(), "ldc is 0"), "after lds: %s",
          wsgemm_last_error());
    CHECK(memcmp(c, before, sizeof c) == 0, "C was written");
    d = good_desc(WSGEMM_F32, all_layouts[turn % 2]), d.a = a, d.b = b, d.c = c, d.alpha.s = 0, d.beta.s = 1;
    d.packed_a = d.packed_b = none[turn / 4], d.struct_bytes = WSGEMM_GEMM_DESC_BASE_BYTES;
    CHECK(wsgemm_gemm(NULL, &d) == WSGEMM_SUCCESS, "the first version has none: %s", wsgemm_last_error());
    CHECK(wsgemm_packed_destroy((wsgemm_packed *)(void *)(turn / 4 ? others : zeros)) == WSGEMM_INVALID_POINTER &&
              begins_with(wsgemm_last_error(), "packed was not made by wsgemm_prepack"),
          "what is no record is destroyed: %s", wsgemm_last_error());
  }
  const wsgemm_gemm_desc fresh = WSGEMM_GEMM_DESC_INIT;
  CHECK(!fresh.packed_a && !fresh.packed_b, "WSGEMM_GEMM_DESC_INIT has packed operands");
  CHECK(wsgemm_packed_destroy(NULL) == WSGEMM_SUCCESS && wsgemm_packed_destroy(NULL) == WSGEMM_SUCCESS, "destroying NULL");
}

static const struct check_case cases[] = {
    {"descriptors", descriptors},     {"arguments", arguments},         {"handles", handles},
    {"none_here", none_here},         {"not_looked_at", not_looked_at}, {"long_lines", long_lines},
    {"first_version", first_version}, {"no_record", no_record}};
CHECK_MAIN("packed", cases)
