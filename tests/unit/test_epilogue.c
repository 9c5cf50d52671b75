/* test_epilogue.c - the epilogue of wsgemm_gemm in host memory: the cases of epilogue_case.h, and
 * what is taken and what is refused. */
#include "support/epilogue_case.h"
#include "support/rows.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* Neither threads nor policy nor COARSE_FACTOR change a bit. */
static void settings_of_turn(wsgemm_handle *handle, int turn, struct check_random *rng) {
  static const wsgemm_policy policies[] = {WSGEMM_POLICY_FIXED_WORK, WSGEMM_POLICY_FIXED_BLOCKS, WSGEMM_POLICY_STEAL};
  wsgemm_set_num_threads(handle, turn == 0 ? 1 : (int)check_random_in(rng, 2, 9));
  wsgemm_set_policy(handle, policies[turn % 3]);
  wsgemm_set_coarse_factor(handle, (int)check_random_in(rng, 0, 5));
}

static void bits(void) { epilogue_same_bits(520, 330, 60, settings_of_turn); }

/* ---- what is taken and what is refused ------------------------------------------------------- */

/* A descriptor of the first version is taken, not read beyond its end, and may have an
 * activation. */
static void first_version(void) {
  double a[2] = {-3, 2}, b[1] = {2}, c[2] = {7, 7};
  wsgemm_gemm_desc d = gemm_desc(WSGEMM_F64, WSGEMM_COL_MAJOR, WSGEMM_NO_TRANS, WSGEMM_NO_TRANS, 2, 1, 1);
  d.a = a, d.b = b, d.c = c;
  d.struct_bytes = WSGEMM_GEMM_DESC_BASE_BYTES;
  CHECK(d.struct_bytes == 184, "the first version had 184 bytes, not %zu", d.struct_bytes);
  struct arena place = arena_new(d.struct_bytes);
  wsgemm_gemm_desc *shorter = (void *)(place.low + place.bytes - d.struct_bytes);
  memcpy((void *)shorter, &d, d.struct_bytes);
  CHECK(wsgemm_gemm(NULL, shorter) == WSGEMM_SUCCESS && c[0] == -6 && c[1] == 4, "%s: %g %g", wsgemm_last_error(), c[0], c[1]);
  shorter->epilogue = WSGEMM_EPILOGUE_RELU;
  CHECK(wsgemm_gemm(NULL, shorter) == WSGEMM_SUCCESS && c[0] == 0 && c[1] == 4, "%s: %g %g", wsgemm_last_error(), c[0], c[1]);
  char text[1024];
  size_t bytes;
  wsgemm_explain(NULL, shorter, text, sizeof text);
  CHECK(strstr(text, "epilogue: relu\n") != NULL, "%s", text);
  CHECK(wsgemm_get_workspace_size(NULL, shorter, &bytes) == WSGEMM_SUCCESS, "%s", wsgemm_last_error());
  arena_free(&place);
}

enum { BAD_M = 3, BAD_N = 4, BAD_K = 5 };
static unsigned char memory[8192] __attribute__((aligned(64)));
static unsigned char *const c_memory = memory + 1024, *const elsewhere = memory + 4096;

struct spoiled {
  const char *what;
  void (*spoil)(wsgemm_gemm_desc *d);
  wsgemm_status answer;
  const char *names, *least; /* stand in last_error */
};
#define SPOIL(name, ...) \
  static void name(wsgemm_gemm_desc *d) { __VA_ARGS__; }
SPOIL(activation_5, d->epilogue = (wsgemm_epilogue)5)
SPOIL(activation_negative, d->epilogue = (wsgemm_epilogue)-1)
SPOIL(bias_per_2, d->bias_per = (wsgemm_bias)2)
SPOIL(type_bias_6, d->type_bias = (wsgemm_type)6)
SPOIL(type_bias_other, d->type_bias = d->type_c == WSGEMM_F64 ? WSGEMM_F32 : WSGEMM_F64)
SPOIL(type_bias_half, d->type_bias = d->type_c == WSGEMM_F16 ? WSGEMM_BF16 : WSGEMM_F16)
SPOIL(ld_residual_small, d->ld_residual = d->ldc - 1)
SPOIL(ld_residual_zero, d->ld_residual = 0)
SPOIL(ld_residual_overflow, d->ld_residual = INT64_MAX / 2)
SPOIL(stride_bias_overflow, d->batch_count = 3, d->stride_bias = INT64_MIN)
SPOIL(stride_residual_overflow, d->batch_count = 3, d->stride_residual = INT64_MAX / 2)
SPOIL(stride_sums_overflow, d->batch_count = 3, d->stride_column_sums = INT64_MAX / 2)
SPOIL(ldc_before_ld_residual, d->ldc = 0, d->ld_residual = 0)
SPOIL(ld_residual_before_pointers, d->ld_residual = 0, d->c = NULL)
SPOIL(c_null, d->c = NULL)
SPOIL(a_null, d->a = NULL)

static const struct spoiled table[] = {
    {"activation 5", activation_5, WSGEMM_INVALID_VALUE, "epilogue is 5", "0 .. 4"},
    {"activation -1", activation_negative, WSGEMM_INVALID_VALUE, "epilogue is -1", "0 .. 4"},
    {"bias_per 2", bias_per_2, WSGEMM_INVALID_VALUE, "bias_per is 2", "0 .. 1"},
    {"type_bias 6", type_bias_6, WSGEMM_INVALID_VALUE, "type_bias is 6", "0 .. 5"},
    {"a bias of another size", type_bias_other, WSGEMM_NOT_SUPPORTED, "type_bias", ""},
    {"a bias of another half", type_bias_half, WSGEMM_NOT_SUPPORTED, "type_bias", ""},
    {"ld_residual one too small", ld_residual_small, WSGEMM_INVALID_VALUE, "ld_residual", "at least"},
    {"ld_residual 0", ld_residual_zero, WSGEMM_INVALID_VALUE, "ld_residual is 0", "at least"},
    {"ld_residual overflows", ld_residual_overflow, WSGEMM_INVALID_VALUE, "ld_residual", "2^63"},
    {"stride_bias overflows", stride_bias_overflow, WSGEMM_INVALID_VALUE, "stride_bias", "2^63"},
    {"stride_residual overflows", stride_residual_overflow, WSGEMM_INVALID_VALUE, "stride_residual", "2^63"},
    {"stride_column_sums overflows", stride_sums_overflow, WSGEMM_INVALID_VALUE, "stride_column_sums", "2^63"},
    {"ldc comes first", ldc_before_ld_residual, WSGEMM_INVALID_VALUE, "ldc is 0", ""},
    {"pointers come last", ld_residual_before_pointers, WSGEMM_INVALID_VALUE, "ld_residual", ""},
    {"no C", c_null, WSGEMM_INVALID_POINTER, "c is NULL", ""},
    {"no A", a_null, WSGEMM_INVALID_POINTER, "a is NULL", ""},
};

/* A good call with everything: C in the middle of the memory, all else elsewhere. */
static wsgemm_gemm_desc good_call(const wsgemm_type types[2], wsgemm_layout layout) {
  wsgemm_gemm_desc d = gemm_desc(types[0], layout, WSGEMM_NO_TRANS, WSGEMM_NO_TRANS, BAD_M, BAD_N, BAD_K);
  d.type_c = types[1], d.beta = scalar_make(types[0], 1, 0);
  d.c = c_memory, d.a = elsewhere, d.b = elsewhere + 512;
  d.bias = elsewhere + 1024, d.type_bias = types[1], d.bias_per = WSGEMM_BIAS_PER_COLUMN;
  d.residual = elsewhere + 1536, d.ld_residual = d.ldc;
  d.column_sums = elsewhere + 2048, d.epilogue = WSGEMM_EPILOGUE_SILU;
  return d;
}

static void refused(void) {
  for (size_t row = 0; row < sizeof table / sizeof table[0]; row++)
    for (int pair = 0; pair < N_TYPE_PAIRS; pair++)
      for (int layout = 0; layout < 2; layout++) {
        wsgemm_gemm_desc d = good_call(type_pairs[pair], all_layouts[layout]);
        memset(memory, 0, sizeof memory);
        memset(c_memory, 0x11, 512), memset(elsewhere + 2048, 0x11, 512);
        table[row].spoil(&d);
        const wsgemm_status status = wsgemm_gemm(NULL, &d);
        CHECK(status == table[row].answer && strstr(wsgemm_last_error(), table[row].names) &&
                  strstr(wsgemm_last_error(), table[row].least),
              "%s: %s: \"%s\"", table[row].what, wsgemm_status_name(status), wsgemm_last_error());
        int n_written = 0;
        for (int i = 0; i < 512; i++) n_written += (c_memory[i] != 0x11) + (elsewhere[2048 + i] != 0x11);
        CHECK(n_written == 0, "%s: %d bytes were written", table[row].what, n_written);
      }
  static const wsgemm_type complex_types[] = {WSGEMM_C32, WSGEMM_C64};
  for (int t = 0; t < 2; t++)
    for (int part = 0; part < 5; part++) {
      const wsgemm_gemm_desc none =
          gemm_desc(complex_types[t], WSGEMM_COL_MAJOR, WSGEMM_NO_TRANS, WSGEMM_NO_TRANS, BAD_M, BAD_N, 0);
      wsgemm_gemm_desc d = none;
      d.c = c_memory;
      CHECK(wsgemm_gemm(NULL, &d) == WSGEMM_SUCCESS, "%s", wsgemm_last_error());
      if (part == 0) d.epilogue = WSGEMM_EPILOGUE_RELU;
      if (part == 1) d.bias = elsewhere, d.type_bias = complex_types[t];
      if (part == 2) d.residual = elsewhere, d.ld_residual = BAD_M;
      if (part == 3) d.column_sums = elsewhere;
      if (part == 4) d.out_scale = 2;
      CHECK(wsgemm_gemm(NULL, &d) == WSGEMM_NOT_SUPPORTED && strstr(wsgemm_last_error(), "complex"), "part %d: \"%s\"", part,
            wsgemm_last_error());
    }
}

/* m = 0 or n = 0 or no product in the batch: nothing is read or written, whatever the pointers; NaN
 * as out_scale is an epilogue too. */
static void nothing_to_do(void) {
  for (int pair = 0; pair < N_TYPE_PAIRS; pair++)
    for (int which = 0; which < 3; which++) {
      wsgemm_gemm_desc d = good_call(type_pairs[pair], all_layouts[which % 2]);
      void *nowhere = (void *)(uintptr_t)64;
      d.a = d.b = d.bias = d.residual = nowhere, d.c = d.column_sums = nowhere;
      *(which == 0 ? &d.m : which == 1 ? &d.n : &d.batch_count) = 0;
      CHECK(wsgemm_gemm(NULL, &d) == WSGEMM_SUCCESS, "%s", wsgemm_last_error());
    }
  float c = 3;
  wsgemm_gemm_desc d = gemm_desc(WSGEMM_F32, WSGEMM_COL_MAJOR, WSGEMM_NO_TRANS, WSGEMM_NO_TRANS, 1, 1, 0);
  d.beta.s = 1, d.c = &c, d.out_scale = (double)NAN;
  CHECK(wsgemm_gemm(NULL, &d) == WSGEMM_SUCCESS && isnan(c), "out_scale = NaN gives %g", (double)c);
}

/* Check mode: what is written (C, column_sums) by one element over what else there is; right beside
 * it is no overlap, nor is C its own residual. */
static void overlaps(void) {
  enum { BIASES, RESIDUALS, SUM_VECTOR, SUMS_AND_A, SUMS_AND_BIAS, N_CASES };
  wsgemm_handle *h = NULL;
  REQUIRE(wsgemm_create(&h) == WSGEMM_SUCCESS && wsgemm_set_check(h, 1) == WSGEMM_SUCCESS, "handle");
  for (int pair = 0; pair < N_TYPE_PAIRS; pair++)
    for (int layout = 0; layout < 2; layout++)
      for (int which = 0; which < N_CASES; which++)
        for (int distance = 0; distance < 2; distance++) {
          wsgemm_gemm_desc d = good_call(type_pairs[pair], all_layouts[layout]);
          const size_t element = type_bytes(d.type_c), of_a = type_bytes(d.type_a), of_sum = d.type_c == WSGEMM_F64 ? 8 : 4;
          unsigned char *const behind_c = c_memory + (BAD_M * BAD_N - 1 + distance) * (int)element;
          memset(memory, 0, sizeof memory);
          const char *first = "c", *second = "";
          if (which == BIASES) d.bias = behind_c, second = "bias";
          if (which == RESIDUALS) d.residual = behind_c, second = "residual";
          /* before C, so that its floats are aligned beside halves */
          if (which == SUM_VECTOR) d.column_sums = c_memory - (BAD_N - 1 + distance) * (int)of_sum, second = "column_sums";
          if (which == SUMS_AND_A)
            d.column_sums = elsewhere + (BAD_M * BAD_K * of_a - 1) / of_sum * of_sum + distance * of_sum, first = "column_sums",
            second = "a";
          if (which == SUMS_AND_BIAS)
            d.column_sums = elsewhere + 1024 + (BAD_N * element - 1) / of_sum * of_sum + distance * of_sum, first = "column_sums",
            second = "bias";
          const wsgemm_status status = wsgemm_gemm(h, &d);
          CHECK(status == (distance ? WSGEMM_SUCCESS : WSGEMM_INVALID_VALUE), "pair %d, case %d, distance %d: %s", pair, which,
                distance, wsgemm_status_name(status));
          char wanted[64];
          snprintf(wanted, sizeof wanted, "%s overlaps %s", first, second);
          if (!distance) CHECK(strstr(wsgemm_last_error(), wanted) != NULL, "\"%s\"", wsgemm_last_error());
        }
  wsgemm_gemm_desc d = good_call(type_pairs[0], WSGEMM_COL_MAJOR);
  memset(memory, 0, sizeof memory);
  d.residual = d.c;
  CHECK(wsgemm_gemm(h, &d) == WSGEMM_SUCCESS, "C as its own residual: %s", wsgemm_last_error());
  d.ld_residual++;
  CHECK(wsgemm_gemm(h, &d) == WSGEMM_INVALID_VALUE, "C as its own residual with another ld");
  d.ld_residual--, d.batch_count = 2, d.stride_c = 16, d.stride_residual = 0;
  CHECK(wsgemm_gemm(h, &d) == WSGEMM_INVALID_VALUE, "C as its own residual with another stride");
  d.stride_residual = 16, d.stride_column_sums = BAD_N;
  CHECK(wsgemm_gemm(h, &d) == WSGEMM_SUCCESS, "a batch of C as its own residual: %s", wsgemm_last_error());
  wsgemm_destroy(h);
}

static void explained(void) {
  wsgemm_gemm_desc d = good_call(type_pairs[0], WSGEMM_ROW_MAJOR);
  d.out_scale = 2;
  CHECK(explained_is(NULL, &d, "epilogue", "bias per column in f32, silu, scale 2, residual, column sums"), "all of it");
  d.bias_per = WSGEMM_BIAS_PER_ROW, d.residual = d.c, d.column_sums = NULL, d.epilogue = WSGEMM_EPILOGUE_GELU_TANH;
  CHECK(explained_is(NULL, &d, "epilogue", "bias per row in f32, gelu_tanh, scale 2, residual in c"), "other parts");
  d.bias = d.residual = NULL, d.out_scale = 1;
  CHECK(explained_is(NULL, &d, "epilogue", "gelu_tanh"), "an activation");
  d.epilogue = WSGEMM_EPILOGUE_NONE;
  char text[1024];
  wsgemm_explain(NULL, &d, text, sizeof text);
  CHECK(strstr(text, "epilogue") == NULL, "%s", text);
}

static const struct check_case cases[] = {{"against_steps", epilogue_against_steps},
                                          {"whole_range", epilogue_whole_range},
                                          {"spreading", epilogue_spreading},
                                          {"bits", bits},
                                          {"sums_in_both_layouts", epilogue_sums_in_both_layouts},
                                          {"first_version", first_version},
                                          {"refused", refused},
                                          {"nothing_to_do", nothing_to_do},
                                          {"overlaps", overlaps},
                                          {"explained", explained}};
CHECK_MAIN("epilogue", cases)
