/* test_gpu_tensor_core.c - the model of the tensor core (tensor_core.h) and of products by slices
 * (sliced_model.h), bit by bit beside a GPU of compute capability 9.0; and the bound of F32 and C32
 * on it under operands made to break it (adversary.h). */
#include "slices.h"
#include "support/adversary.h"
#include "support/sliced_model.h"
#include "support/tensor_core.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { N = 64, MOST_K = 1000 };

static void *memory_of(size_t bytes) {
  void *memory = malloc(bytes);
  REQUIRE(memory != NULL, "memory");
  return memory;
}

/* N rows of A and N columns of B, k floats each, one after the other: so A is transposed, as the
 * call sees it. */
typedef struct operands {
  float *a, *b;
} operands;

static operands operands_new(int64_t k) {
  return (operands){memory_of(N * (size_t)k * sizeof(float)), memory_of(N * (size_t)k * sizeof(float))};
}
static void operands_free(operands *x) { free(x->a), free(x->b); }

/* ---- 16-bit elements ------------------------------------------------------------------------- */

static const struct format {
  wsgemm_type type;
  tensor_format format;
  int least, bits;
} formats[] = {{WSGEMM_F16, TENSOR_F16, -14, 11}, {WSGEMM_BF16, TENSOR_BF16, -126, 8}};

static uint16_t pattern_of(wsgemm_type type, float x) {
  uint32_t bits;
  memcpy(&bits, &x, sizeof bits);
  if (type == WSGEMM_BF16) return (uint16_t)(bits >> 16);
  const uint16_t sign = (uint16_t)(bits >> 16 & 0x8000);
  const double magnitude = fabs((double)x);
  if (magnitude < 0x1p-14) return (uint16_t)(sign | (uint16_t)ldexp(magnitude, 24));
  return (uint16_t)(sign | (uint16_t)((ilogb(magnitude) + 15) << 10) | (bits >> 13 & 0x3ff));
}

static uint16_t *on_device(wsgemm_type type, const float *x, size_t n) {
  uint16_t *patterns = memory_of(n * sizeof *patterns);
  for (size_t i = 0; i < n; i++) patterns[i] = pattern_of(type, x[i]);
  uint16_t *device = gpu_copy(patterns, n * sizeof *patterns);
  free(patterns);
  return device;
}

/* Direct rows sum k in parts (gemm_direct.cuh), which their names tell ("..._g4_k8"): blocks of 16 go
 * to the parts in turn, those of a block of threads are added first. All others have one chain. */
static float expected_of(const struct format *f, const char *name, int64_t k, const float *a, const float *b) {
  enum { BK = 16 };
  int n_groups = 1, n_blocks = 1;
  const char *parts = strstr(name, "_direct_") ? strstr(name, "_g") : NULL;
  if (parts) REQUIRE(sscanf(parts, "_g%d_k%d", &n_groups, &n_blocks) == 2, "%s", name);
  if (!parts) return tensor_core_dot(f->format, TENSOR_FRACTION_BITS_CC90, k, a, b, 0);
  float total = 0;
  for (int block = 0; block < n_blocks; block++) {
    float of_block = 0;
    for (int group = 0; group < n_groups; group++) {
      float sum = 0;
      for (int64_t p = (int64_t)(block * n_groups + group) * BK; p < k; p += (int64_t)n_groups * n_blocks * BK)
        sum = tensor_core_dot(f->format, TENSOR_FRACTION_BITS_CC90, k - p < BK ? k - p : BK, a + p, b + p, sum);
      of_block = group == 0 ? sum : of_block + sum;
    }
    total = block == 0 ? of_block : total + of_block;
  }
  return total;
}

/* In invariant mode no row cuts k. */
static void check_row(const struct format *f, wsgemm_handle *h, const char *name, const operands *x, int64_t k,
                      wsgemm_gemm_desc *d) {
  static float c[N * N];
  if (!explained_is(h, d, "kernel", name)) return;
  GPU(cudaMemset(d->c, 0xff, sizeof c));
  REQUIRE(wsgemm_gemm(h, d) == WSGEMM_SUCCESS, "%s: %s", name, wsgemm_last_error());
  GPU(cudaMemcpy(c, d->c, sizeof c, cudaMemcpyDeviceToHost));
  int n_wrong = 0;
  for (int at = 0; at < N * N; at++) {
    const float *a = x->a + at % N * k, *b = x->b + at / N * k;
    const float expected = expected_of(f, name, k, a, b);
    if (!isfinite(expected)) continue; /* the bound excludes it; of parts Inf - Inf is a NaN of either sign */
    if (c[at] != expected && n_wrong++ == 0)
      CHECK(false, "%s, k = %d: element %d is %a, by the model %a", name, (int)k, at, (double)c[at], (double)expected);
  }
  CHECK(n_wrong == 0, "%s, k = %d: %d elements differ from the model", name, (int)k, n_wrong);
}

static void elements(void) {
  rng = check_random_from(301);
  for (int t = 0; t < 2; t++) {
    rows_open(&rows, formats[t].type);
    for (int turn = 0; turn < 40 / check_scale() + 1; turn++) {
      const int64_t k = 8 * drawn(1, turn % 4 ? 12 : 60);
      operands x = operands_new(k);
      for (int line = 0; line < N; line++)
        adversary_of_elements(&rng, formats[t].least, formats[t].bits, k, x.a + line * k, x.b + line * k);
      wsgemm_gemm_desc d = gemm_desc(formats[t].type, WSGEMM_COL_MAJOR, WSGEMM_TRANS, WSGEMM_NO_TRANS, N, N, k);
      uint16_t *a = on_device(formats[t].type, x.a, (size_t)(N * k)), *b = on_device(formats[t].type, x.b, (size_t)(N * k));
      d.a = a, d.b = b, d.c = gpu_alloc(N * N * sizeof(float)), d.type_c = WSGEMM_F32;
      int n_rows = 0;
      for (int i = 0; i < rows.n_rows; i++) {
        if (!is_of_family(&rows.row[i].info, "mma16 wgmma direct")) continue;
        const bool cuts_k = is_of_family(&rows.row[i].info, "direct"); /* never in invariant mode */
        REQUIRE(wsgemm_set_invariant(rows.handle[i], !cuts_k) == WSGEMM_SUCCESS, "%s", wsgemm_last_error());
        check_row(&formats[t], rows.handle[i], rows.row[i].name, &x, k, &d);
        n_rows += explained_is(rows.handle[i], &d, "kernel", rows.row[i].name);
      }
      CHECK(n_rows >= 4, "only %d rows ran", n_rows);
      gpu_free(a), gpu_free(b), gpu_free(d.c);
      operands_free(&x);
    }
    rows_close(&rows);
  }
}

/* A product with a zero has no exponent: else the largest elements, meeting zeros, would cost the
 * others their low bits. */
static void zeros(void) {
  enum { K = 16 };
  static const float large[] = {0x1p14f, 0x1p120f};
  for (int t = 0; t < 2; t++) {
    operands x = operands_new(K);
    for (int at = 0; at < N * K; at++) {
      const bool is_first = at % K == 0;
      x.a[at] = is_first ? large[t] : t == 0 ? 0x1.ffcp-13f : 0x1.fcp-13f, x.b[at] = is_first ? 0 : 0x1p-13f;
    }
    uint16_t *a = on_device(formats[t].type, x.a, N * K), *b = on_device(formats[t].type, x.b, N * K);
    wsgemm_gemm_desc d = gemm_desc(formats[t].type, WSGEMM_COL_MAJOR, WSGEMM_TRANS, WSGEMM_NO_TRANS, N, N, K);
    d.a = a, d.b = b, d.c = gpu_alloc(N * N * sizeof(float)), d.type_c = WSGEMM_F32;
    rows_open(&rows, formats[t].type);
    for (int i = 0; i < rows.n_rows; i++)
      if (is_of_family(&rows.row[i].info, "mma16 wgmma direct"))
        check_row(&formats[t], rows.handle[i], rows.row[i].name, &x, K, &d);
    rows_close(&rows);
    gpu_free(a), gpu_free(b), gpu_free(d.c);
    operands_free(&x);
  }
}

/* ---- Slices ---------------------------------------------------------------------------------- */

/* Every row of A meets every column of B, and each element comes from the arithmetic that the worse
 * of the two needs. */
static void slices_of(const char *product, int n_slices) {
  static float c[N * N];
  int n_by[4] = {0};
  open_sliced(WSGEMM_F32, product);
  for (int turn = 0; turn < 16 / check_scale() + 1; turn++) {
    const int64_t k = drawn_k(400);
    operands x = operands_new(k);
    for (int line = 0; line < N; line++) adversary_of_slices(&rng, k, x.a + line * k, x.b + line * k);
    wsgemm_gemm_desc d = gemm_desc(WSGEMM_F32, WSGEMM_COL_MAJOR, WSGEMM_TRANS, WSGEMM_NO_TRANS, N, N, k);
    float *a = gpu_copy(x.a, N * (size_t)k * sizeof(float)), *b = gpu_copy(x.b, N * (size_t)k * sizeof(float)),
          *device_c = gpu_alloc(sizeof c);
    d.a = a, d.b = b, d.c = device_c;
    for (int i = 0; i < rows.n_rows; i++) {
      int n_wrong = 0;
      check_used(i, N, N, k);
      GPU(cudaMemset(device_c, 0xff, sizeof c));
      REQUIRE(wsgemm_gemm(rows.handle[i], &d) == WSGEMM_SUCCESS, "%s", wsgemm_last_error());
      GPU(cudaMemcpy(c, device_c, sizeof c, cudaMemcpyDeviceToHost));
      for (int at = 0; at < N * N; at++) {
        sliced_by by;
        const float expected = sliced_model_dot(n_slices, sliced_model_rule, k, x.a + at % N * k, x.b + at / N * k, &by);
        n_by[by]++;
        if (c[at] != expected && !(isnan(c[at]) && isnan(expected)) && n_wrong++ == 0)
          CHECK(false, "%s, k = %d: element %d is %a, by the model (%d slices) %a", rows.row[i].name, (int)k, at, (double)c[at],
                (int)by, (double)expected);
      }
      CHECK(n_wrong == 0, "%s, k = %d: %d elements differ from the model", rows.row[i].name, (int)k, n_wrong);
    }
    gpu_free(a), gpu_free(b), gpu_free(device_c);
    operands_free(&x);
  }
  CHECK(n_by[n_slices] > 0 && (n_slices == 1 || n_by[3] > 0), "the operands miss an arithmetic");
  rows_close(&rows);
}

static void slices(void) {
  rng = check_random_from(302);
  slices_of(OF_THREE_PRODUCTS, 2);
  slices_of(OF_ONE_PRODUCT, 1);
}

/* ---- The bound ------------------------------------------------------------------------------- */

/* Products of a batch: M x M x k each, transposed A. */
enum { M = 16, BATCH = 250 };

typedef struct judged {
  int n_products;
  double worst;
} judged;

static void fill_batch(int64_t k, int n_parts_of, float *a, float *b) {
  for (int line = 0; line < M * BATCH; line++, a += k * n_parts_of, b += k * n_parts_of)
    (n_parts_of == 2 ? adversary_of_complex : adversary_of_slices)(&rng, k, a, b);
}

/* |re| + |im|. */
static double size_of(const float *x, int n_parts_of) { return fabs((double)x[0]) + (n_parts_of == 2 ? fabs((double)x[1]) : 0); }

/* Sums in double: exact products, and a sum's error is 2^-29 of what is allowed. */
static double part_of_bound(int64_t k, int parts, const float *a, const float *b, const float *c) {
  double sum[2] = {0}, magnitude = 0, worst = 0;
  for (int64_t p = 0; p < k; p++, a += parts, b += parts) {
    sum[0] += (double)a[0] * (double)b[0];
    if (parts == 2) {
      sum[0] -= (double)a[1] * (double)b[1];
      sum[1] += (double)a[0] * (double)b[1], sum[1] += (double)a[1] * (double)b[0];
    }
    magnitude += size_of(a, parts) * size_of(b, parts);
  }
  for (int part = 0; part < parts; part++) {
    const double error = fabs((double)c[part] - sum[part]), bound = gamma_of(k) * magnitude + (double)k * 0x1p-149;
    if (isnan(error)) return INFINITY;
    worst = fmax(worst, error / bound);
  }
  return worst;
}

static void adversaries_of(wsgemm_type type, int n_calls) {
  const int parts = n_parts(type);
  judged all = {0, 0};
  open_sliced(type, OF_THREE_PRODUCTS);
  for (int call = 0; call < n_calls; call++) {
    const int64_t k = call % 16 == 0 ? drawn(500, MOST_K) : drawn_k(260);
    const size_t n_floats = (size_t)BATCH * M * (size_t)(k * parts), n_c = (size_t)BATCH * M * M * (size_t)parts;
    float *a = memory_of(n_floats * sizeof *a), *b = memory_of(n_floats * sizeof *b), *c = memory_of(n_c * sizeof *c);
    fill_batch(k, parts, a, b);
    wsgemm_gemm_desc d = gemm_desc(type, WSGEMM_COL_MAJOR, WSGEMM_TRANS, WSGEMM_NO_TRANS, M, M, k);
    float *device_a = gpu_copy(a, n_floats * sizeof *a), *device_b = gpu_copy(b, n_floats * sizeof *b),
          *device_c = gpu_alloc(n_c * sizeof *c);
    d.a = device_a, d.b = device_b, d.c = device_c;
    d.batch_count = BATCH, d.stride_a = d.stride_b = M * k, d.stride_c = M * M;
    const int i = call % rows.n_rows;
    check_used(i, M, M, k);
    GPU(cudaMemset(device_c, 0xff, n_c * sizeof *c));
    REQUIRE(wsgemm_gemm(rows.handle[i], &d) == WSGEMM_SUCCESS, "%s", wsgemm_last_error());
    GPU(cudaMemcpy(c, device_c, n_c * sizeof *c, cudaMemcpyDeviceToHost));
    int n_beyond = 0;
    for (int at = 0; at < BATCH * M * M; at++) {
      const int product = at / (M * M), row = at % M, column = at / M % M;
      const double part = part_of_bound(k, parts, a + (product * M + row) * k * parts, b + (product * M + column) * k * parts,
                                        c + (int64_t)at * parts);
      n_beyond += !(part <= 1);
      all.worst = fmax(all.worst, part);
    }
    CHECK(n_beyond == 0, "%s, k = %d: %d of %d elements are beyond the bound", rows.row[i].name, (int)k, n_beyond, BATCH * M * M);
    all.n_products += BATCH;
    gpu_free(device_a), gpu_free(device_b), gpu_free(device_c);
    free(a), free(b), free(c);
  }
  printf("%c: %d adversarial products of %d x %d elements, at worst %.3f of the bound\n", type_letter(type), all.n_products, M, M,
         all.worst);
  rows_close(&rows);
}

static void adversaries(void) {
  rng = check_random_from(303);
  adversaries_of(WSGEMM_F32, 300 / check_scale() + 1);
  adversaries_of(WSGEMM_C32, 100 / check_scale() + 1);
}

int main(int argc, char **argv) {
  static const struct check_case cases[] = {
      {"zeros", zeros}, {"elements", elements}, {"slices", slices}, {"adversaries", adversaries}};
  gpu_open_for_slices(WSGEMM_F32);
  return check_main("gpu_tensor_core", cases, sizeof cases / sizeof cases[0], argc, argv);
}
