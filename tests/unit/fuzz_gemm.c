/* fuzz_gemm.c - a fuzzer's bytes as calls of the C API: any enums, sizes, lds, strides and
 * pointers. What must be refused is refused and writes nothing; what is accepted is right (small
 * whole numbers, so exactly) and stays within its guards.
 *
 * Built with libFuzzer (-fsanitize=fuzzer) it runs until stopped; built without it, main feeds it a
 * fixed sequence of random bytes, as a test. A finding ends the process. */
#include "support/gemm_call.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 70 /* m, n, k of an accepted call */ };

struct input {
  const uint8_t *bytes;
  size_t left;
};

static unsigned take(struct input *input) {
  if (input->left == 0) return 0;
  input->left--;
  return *input->bytes++;
}

/* Mostly one of the n good values; seldom anything. */
static int take_enum(struct input *input, int first, int n) {
  const unsigned byte = take(input);
  return byte < 240 ? first + (int)(byte % (unsigned)n) : (int)byte * 7 - 1700;
}

static int64_t take_size(struct input *input) {
  static const int64_t strange[] = {-1, INT64_MIN, INT64_MAX, INT64_MAX / 4, (int64_t)1 << 32, -70, 0, (int64_t)1 << 62};
  const unsigned byte = take(input);
  return byte < 248 ? byte % (MOST + 1) : strange[byte % 8];
}

/* The least ld, more, or something strange. */
static int64_t take_ld(struct input *input, int64_t least) {
  const unsigned byte = take(input);
  if (byte >= 250) return take_size(input);
  return byte < 128 || least > MOST ? least : byte < 200 ? least + byte % 16 : least - 1 - byte % 3;
}

static wsgemm_scalar take_scalar(struct input *input, wsgemm_type type) {
  const unsigned byte = take(input);
  return scalar_make(type, (double)(byte % 5) - 2, (double)(byte / 5 % 5) - 2);
}

/* What the header says about d: the status it must give. Sizes stay so small that no extent
 * overflows unless an ld is strange. */
static wsgemm_status judge_arguments(const wsgemm_gemm_desc *d) {
  if (d->layout != WSGEMM_ROW_MAJOR && d->layout != WSGEMM_COL_MAJOR) return WSGEMM_INVALID_VALUE;
  if (d->transa < WSGEMM_NO_TRANS || d->transa > WSGEMM_CONJ_NO_TRANS || d->transb < WSGEMM_NO_TRANS ||
      d->transb > WSGEMM_CONJ_NO_TRANS || d->m < 0 || d->n < 0 || d->k < 0)
    return WSGEMM_INVALID_VALUE;
  const bool columns = d->layout == WSGEMM_COL_MAJOR;
  const bool a_flips = op_transposes(d->transa);
  const bool b_flips = op_transposes(d->transb);
  const int64_t length[3] = {columns != a_flips ? d->m : d->k, columns != b_flips ? d->k : d->n, columns ? d->m : d->n};
  const int64_t count[3] = {columns != a_flips ? d->k : d->m, columns != b_flips ? d->n : d->k, columns ? d->n : d->m};
  const int64_t ld[3] = {d->lda, d->ldb, d->ldc};
  for (int i = 0; i < 3; i++) {
    const int64_t element = (int64_t)type_bytes(i < 2 ? d->type_a : d->type_c);
    if (ld[i] < 1 || ld[i] < length[i] || (count[i] > 0 && ld[i] > INT64_MAX / element / count[i])) return WSGEMM_INVALID_VALUE;
  }
  if (d->m == 0 || d->n == 0) return WSGEMM_SUCCESS;
  double alpha[2];
  scalar_get(d->type_a, &d->alpha, alpha);
  const bool reads_ab = d->k > 0 && (alpha[0] != 0 || alpha[1] != 0);
  return !d->c || (reads_ab && (!d->a || !d->b)) ? WSGEMM_INVALID_POINTER : WSGEMM_SUCCESS;
}

static struct stage *stage_of(wsgemm_type type) {
  static struct stage stages[N_TYPES];
  if (!stages[type].a.re) {
    struct check_random rng = check_random_from(130 + (unsigned)type);
    stages[type] = stage_new(type, MOST, MOST, MOST, FILL_INTEGER, &rng);
  }
  return &stages[type];
}

/* The same descriptor, damaged in one more member that only the descriptor form has, must be
 * refused. */
static void damage(struct input *input, wsgemm_gemm_desc d) {
  switch (take(input) % 9) {
  case 0:
    d.struct_bytes += 1 + take(input);
    break;
  case 1:
    d.type_b = (wsgemm_type)((int)d.type_b + 1 + (int)take(input) % 3);
    break;
  case 2:
    d.scalar_mode = (wsgemm_scalar_mode)(1 + (int)take(input));
    break;
  case 3:
    d.epilogue = (wsgemm_epilogue)(5 + (int)take(input));
    break;
  case 4:
    d.math = (wsgemm_math)(4 + (int)take(input));
    break;
  case 5:
    d.bias_per = (wsgemm_bias)(2 + (int)take(input));
    break;
  case 6:
    d.type_bias = (wsgemm_type)(N_TYPES + (int)take(input));
    break;
  case 7: /* never read */
    d.residual = &d, d.ld_residual = -(int64_t)take(input);
    break;
  default:
    d.batch_count = -1 - (int64_t)take(input);
  }
  char text[64];
  const wsgemm_status status = wsgemm_gemm(NULL, &d);
  REQUIRE(status == WSGEMM_INVALID_VALUE || status == WSGEMM_NOT_SUPPORTED, "a damaged descriptor: %s",
          wsgemm_status_name(status));
  wsgemm_explain(NULL, &d, text, sizeof text);
  REQUIRE(strncmp(text, "error: ", 7) == 0, "explain of a damaged descriptor: %s", text);
}

static void call_once(struct input *input) {
  const wsgemm_type type = (wsgemm_type)(take(input) % N_TYPES);
  struct stage *stage = stage_of(type);
  wsgemm_gemm_desc d =
      gemm_desc(type, (wsgemm_layout)take_enum(input, WSGEMM_ROW_MAJOR, 2), (wsgemm_op)take_enum(input, WSGEMM_NO_TRANS, 4),
                (wsgemm_op)take_enum(input, WSGEMM_NO_TRANS, 4), take_size(input), take_size(input), take_size(input));
  static const wsgemm_type types_c[] = {WSGEMM_F16, WSGEMM_BF16, WSGEMM_F32};
  if (type_is_half(type)) d.type_c = types_c[take(input) % 3];
  d.alpha = take_scalar(input, type);
  d.beta = take_scalar(input, type);
  const wsgemm_gemm_desc least = d;
  d.lda = take_ld(input, least.lda);
  d.ldb = take_ld(input, least.ldb);
  d.ldc = take_ld(input, least.ldc);
  const unsigned nulls = take(input);
  struct layout_of_case where = layout_tight();
  const unsigned places = take(input);
  for (int i = 0; i < 3; i++) where.place[i] = (enum place)(places >> (2 * i) & 3) % 3;
  static unsigned char dummy[16];
  /* never read or written by a call that is refused or has nothing to do */
  d.a = d.b = d.c = dummy;
  wsgemm_status expected = judge_arguments(&d);
  const bool runs = expected == WSGEMM_SUCCESS && d.m > 0 && d.n > 0;
  const bool is_small = runs && d.m <= MOST && d.n <= MOST && d.k <= MOST && d.lda - least.lda <= MAX_PAD &&
                        d.ldb - least.ldb <= MAX_PAD && d.ldc - least.ldc <= MAX_PAD;
  if (runs && !is_small) return; /* legal, and beyond the arena */
  if (runs) {
    where.pad[0] = (int)(d.lda - least.lda), where.pad[1] = (int)(d.ldb - least.ldb), where.pad[2] = (int)(d.ldc - least.ldc);
    case_store(stage, &d, &where);
    product_whole(&stage->product, &stage->a, &stage->b, d.k);
  }
  if (nulls % 16 == 1) d.a = NULL;
  if (nulls % 16 == 2) d.b = NULL;
  if (nulls % 16 == 3) d.c = NULL;
  expected = judge_arguments(&d);
  const unsigned long long before = runs ? matrix_digest(&stage->stored[2]) : 0;
  (void)wsgemm_set_num_threads(NULL, (int)(nulls >> 4) % 4);
  const wsgemm_status status = nulls & 0x80 ? gemm_typed(NULL, &d) : wsgemm_gemm(NULL, &d);
  char text[DESCRIPTION_BYTES] = "a call with bad enums";
  if (expected != WSGEMM_INVALID_VALUE) gemm_describe(&d, text);
  REQUIRE(status == expected, "%s: %s, expected %s (%s)", text, wsgemm_status_name(status), wsgemm_status_name(expected),
          wsgemm_last_error());
  if (runs && status == WSGEMM_SUCCESS)
    REQUIRE(case_judge(stage, &d, JUDGE_EXACT, "fuzz"), "%s", text);
  else if (runs)
    REQUIRE(matrix_digest(&stage->stored[2]) == before && case_guards_intact(stage, &d, "fuzz"), "%s: a refused call wrote",
            text);
  damage(input, d);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n_bytes);
int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n_bytes) {
  struct input input = {bytes, n_bytes};
  while (input.left > 0) /* at least one byte is taken each time */
    call_once(&input);
  return 0;
}

#ifndef WSGEMM_LIBFUZZER
static void random_bytes(void) {
  struct check_random rng = check_random_from(140);
  for (int i = 0; i < 8000 / check_scale(); i++) {
    uint8_t bytes[40];
    for (size_t at = 0; at < sizeof bytes; at++) bytes[at] = (uint8_t)check_random_bits(&rng);
    LLVMFuzzerTestOneInput(bytes, sizeof bytes);
  }
}

static const struct check_case cases[] = {{"random_bytes", random_bytes}};
CHECK_MAIN("fuzz_gemm", cases)
#endif
