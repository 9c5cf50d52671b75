#include "call_bits.h"
#include "rows.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* One operand in host memory and its copy where the call works. */
struct operand {
  int64_t rows, cols, ld, stride, n_elements; /* as stored: rows run along ld */
  unsigned char *host;
  void *memory;
};

static int64_t drawn_size(struct check_random *random, int64_t largest) {
  return (int64_t)exp(log((double)largest) * (check_random_unit(random) / 2 + 0.5) + 0.5);
}

/* A number of the type's reals; one in 64 is tiny, one in 64 a power of two, so that all ways of
 * slices are met. */
static void drawn_real(wsgemm_type type, bool spread, struct check_random *random, void *to) {
  double x = check_random_unit(random);
  if (spread) x = ldexp(x, (int)check_random_in(random, type == WSGEMM_F16 ? -10 : -30, type == WSGEMM_F16 ? 2 : 30));
  if (type == WSGEMM_F64 || type == WSGEMM_C64) {
    memcpy(to, &x, 8);
  } else if (type == WSGEMM_F32 || type == WSGEMM_C32) {
    const float s = (float)x;
    memcpy(to, &s, 4);
  } else if (type == WSGEMM_BF16) {
    const float s = (float)x;
    uint32_t bits;
    memcpy(&bits, &s, 4);
    const uint16_t upper = (uint16_t)(bits >> 16);
    memcpy(to, &upper, 2);
  } else { /* binary16: sign, exponent, 10 bits, toward zero */
    const float s = (float)x;
    uint32_t bits;
    memcpy(&bits, &s, 4);
    const int exponent = (int)(bits >> 23 & 0xff) - 127;
    uint16_t half = (uint16_t)(bits >> 16 & 0x8000);
    if (exponent >= -14) half = (uint16_t)(half | (unsigned)(exponent + 15) << 10 | (bits >> 13 & 0x3ff));
    memcpy(to, &half, 2);
  }
}

static struct operand operand_new(wsgemm_type type, int64_t rows, int64_t cols, int64_t batch, bool spread,
                                  const struct call_memory *where, struct check_random *random) {
  struct operand x = {.rows = rows, .cols = cols};
  x.ld = rows + check_random_in(random, 0, 3) * check_random_in(random, 0, 5);
  x.stride = x.ld * cols + check_random_in(random, 0, 1) * check_random_in(random, 0, 9);
  x.n_elements = x.stride * batch;
  const size_t bytes = (size_t)x.n_elements * type_bytes(type), step = type_bytes(type) / (type_is_complex(type) ? 2 : 1);
  x.host = malloc(bytes + 1);
  REQUIRE(x.host, "memory");
  for (size_t at = 0; at < bytes; at += step) drawn_real(type, spread, random, x.host + at);
  x.memory = where->copy(x.host, bytes + 1);
  return x;
}

static unsigned long long digest(const unsigned char *bytes, size_t n) {
  unsigned long long state = 0xcbf29ce484222325ull;
  for (size_t i = 0; i < n; i++) state = (state ^ bytes[i]) * 0x100000001b3ull;
  return state;
}

/* The name of a usable row of the backend for the type, or NULL. */
static const char *drawn_row(const char *backend, wsgemm_type type, struct check_random *random) {
  const char *found = NULL;
  int n_found = 0;
  for (int row = 0; row < wsgemm_kernel_count(); row++) {
    const wsgemm_kernel_info info = row_info_at(row);
    if (info.is_usable && !strcmp(info.backend, backend) && info.type == type && check_random_in(random, 0, n_found++) == 0)
      found = info.name;
  }
  return found;
}

static void draw_epilogue(wsgemm_gemm_desc *d, struct operand *bias, struct operand *residual, struct operand *sums,
                          const struct operand *c, const struct call_memory *where, struct check_random *random) {
  static const wsgemm_epilogue acts[] = {WSGEMM_EPILOGUE_NONE, WSGEMM_EPILOGUE_RELU, WSGEMM_EPILOGUE_GELU_TANH,
                                         WSGEMM_EPILOGUE_GELU_ERF, WSGEMM_EPILOGUE_SILU};
  d->epilogue = acts[check_random_in(random, 0, 4)];
  if (check_random_in(random, 0, 1)) {
    d->bias_per = check_random_in(random, 0, 1) ? WSGEMM_BIAS_PER_ROW : WSGEMM_BIAS_PER_COLUMN;
    d->type_bias = d->type_c;
    *bias = operand_new(d->type_c, d->bias_per == WSGEMM_BIAS_PER_ROW ? d->m : d->n, 1, 1, false, where, random);
    d->bias = bias->memory;
  }
  if (check_random_in(random, 0, 1)) {
    *residual = operand_new(d->type_c, c->rows, c->cols, d->batch_count, false, where, random);
    d->residual = residual->memory, d->ld_residual = residual->ld, d->stride_residual = residual->stride;
  }
  if (check_random_in(random, 0, 2) == 0) {
    *sums = operand_new(d->type_c == WSGEMM_F64 ? WSGEMM_F64 : WSGEMM_F32, d->n, 1, d->batch_count, false, where, random);
    d->column_sums = sums->memory, d->stride_column_sums = sums->stride;
  }
}

static void print_call(const char *backend, const struct call_memory *where, unsigned long long seed, int number,
                       int64_t largest) {
  struct check_random random = check_random_from(seed * 1000003ull + (unsigned long long)number);
  const wsgemm_type type = (wsgemm_type)check_random_in(&random, 0, N_TYPES - 1);
  const bool many = check_random_in(&random, 0, 7) == 0, spread = check_random_in(&random, 0, 3) == 0;
  if (many) largest = largest / 4 + 1;
  wsgemm_gemm_desc d =
      gemm_desc(type, all_layouts[check_random_in(&random, 0, 1)], all_ops[check_random_in(&random, 0, n_ops(type) - 1)],
                all_ops[check_random_in(&random, 0, n_ops(type) - 1)], drawn_size(&random, largest), drawn_size(&random, largest),
                drawn_size(&random, largest));
  if (type_is_half(type) && check_random_in(&random, 0, 3) == 0) d.type_c = WSGEMM_F32;
  d.batch_count = many ? check_random_in(&random, 2, 5) : 1;
  static const double scalars[] = {1, 0, -1, 0.75};
  d.alpha = scalar_make(d.type_scalar, scalars[check_random_in(&random, 0, 3) & ~1ll], check_random_in(&random, 0, 3) ? 0 : 0.5);
  d.beta = scalar_make(d.type_scalar, scalars[check_random_in(&random, 0, 3)], check_random_in(&random, 0, 3) ? 0 : -0.25);
  static const wsgemm_math maths[] = {WSGEMM_MATH_DEFAULT, WSGEMM_MATH_DEFAULT, WSGEMM_MATH_PEDANTIC, WSGEMM_MATH_TF32};
  d.math = maths[check_random_in(&random, 0, 3)];
  const char *row = check_random_in(&random, 0, 1) ? drawn_row(backend, type, &random) : NULL;

  wsgemm_handle *handle = NULL;
  REQUIRE(wsgemm_create(&handle) == WSGEMM_SUCCESS, "%s", wsgemm_last_error());
  wsgemm_set_num_threads(handle, 2);
  if (check_random_in(&random, 0, 9) == 0) wsgemm_set_invariant(handle, 1);
  if (row && wsgemm_set_kernel(handle, row) != WSGEMM_SUCCESS) row = "refused";

  const bool by_columns = d.layout == WSGEMM_COL_MAJOR;
  const bool a_swapped = op_transposes(d.transa) == by_columns;
  const bool b_swapped = op_transposes(d.transb) == by_columns;
  struct operand a = operand_new(d.type_a, a_swapped ? d.k : d.m, a_swapped ? d.m : d.k, d.batch_count, spread, where, &random);
  struct operand b = operand_new(d.type_b, b_swapped ? d.n : d.k, b_swapped ? d.k : d.n, d.batch_count, spread, where, &random);
  struct operand c = operand_new(d.type_c, by_columns ? d.m : d.n, by_columns ? d.n : d.m, d.batch_count, false, where, &random);
  struct operand bias = {0}, residual = {0}, sums = {0};
  d.a = a.memory, d.lda = a.ld, d.stride_a = a.stride;
  d.b = b.memory, d.ldb = b.ld, d.stride_b = b.stride;
  d.c = c.memory, d.ldc = c.ld, d.stride_c = c.stride;
  const bool steps = !type_is_complex(type) && check_random_in(&random, 0, 3) == 0;
  if (steps) draw_epilogue(&d, &bias, &residual, &sums, &c, where, &random);

  char text[DESCRIPTION_BYTES], kernel[128];
  if (!explained_text(handle, &d, "kernel", kernel)) strcpy(kernel, "-");
  const wsgemm_status status = wsgemm_gemm(handle, &d);
  const size_t c_bytes = (size_t)c.n_elements * type_bytes(d.type_c);
  where->read(c.host, c.memory, c_bytes);
  unsigned long long bits = digest(c.host, c_bytes);
  if (sums.memory) {
    const size_t sum_bytes = (size_t)sums.n_elements * (d.type_c == WSGEMM_F64 ? 8 : 4);
    where->read(sums.host, sums.memory, sum_bytes);
    bits ^= digest(sums.host, sum_bytes) << 1;
  }
  gemm_describe(&d, text);
  char *const places = strstr(text, " a%64"); /* where operands happen to lie */
  if (places) *places = '\0';
  printf("%d %s to %c batch %" PRId64 " math %d steps %d | %s | %s %s | %016llx\n", number, text, type_letter(d.type_c),
         d.batch_count, (int)d.math, steps ? 1 + (int)d.epilogue : 0, wsgemm_status_name(status), row ? "forced" : "chosen",
         kernel, bits);
  struct operand *all[] = {&a, &b, &c, &bias, &residual, &sums};
  for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
    if (all[i]->host) {
      where->release(all[i]->memory);
      free(all[i]->host);
    }
  wsgemm_destroy(handle);
}

void call_bits_print(const char *backend, const struct call_memory *memory, unsigned long long seed, int count, int64_t largest) {
  for (int number = 0; number < count; number++) print_call(backend, memory, seed, number, largest);
}
