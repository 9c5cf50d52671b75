/* test_gpu_invariant.c - invariant mode on the GPU: an element of C has the same bits whatever m,
 * n, the batch, lds, ops and alignment are; and by default it has not, or nothing here tests
 * anything. */
#include <stdlib.h>
#include <string.h>

#include "gpu.h"

enum { M = 257, N = 70, MOST_K = 4100, BATCH = 3 };
static struct check_random rng;

/* One product of A (M x k, row i at a + i * k elements) and B (k x N, column j at b + j * k), in
 * device memory. */
struct operands {
  wsgemm_type type;
  int64_t k;
  int bytes;
  char *a, *b, *c, *expected; /* expected: host, M x N by columns */
};

static size_t bytes_of(wsgemm_type type) { return type_bytes(type); }

/* Rows i .. i + m - 1 and columns j .. j + n - 1: the same operands, whose transposes are what they
 * are stored as. */
static wsgemm_gemm_desc part_of(const struct operands *x, int64_t i, int64_t m, int64_t j, int64_t n, int64_t ldc) {
  wsgemm_gemm_desc d = gemm_desc(x->type, WSGEMM_COL_MAJOR, WSGEMM_TRANS, WSGEMM_NO_TRANS, m, n, x->k);
  d.a = x->a + i * x->k * x->bytes, d.lda = x->k;
  d.b = x->b + j * x->k * x->bytes, d.ldb = x->k;
  d.c = x->c, d.ldc = ldc;
  d.alpha = scalar_make(x->type, 1.25, 0);
  return d;
}

/* How many elements of the part have other bits than in the whole. */
static int64_t n_different(const struct operands *x, const char *c, int64_t i, int64_t m, int64_t j, int64_t n, int64_t ldc) {
  int64_t count = 0;
  for (int64_t col = 0; col < n; col++)
    for (int64_t row = 0; row < m; row++)
      count +=
          memcmp(c + (row + col * ldc) * x->bytes, x->expected + (i + row + (j + col) * M) * x->bytes, (size_t)x->bytes) != 0;
  return count;
}

static int64_t compute(wsgemm_handle *h, const struct operands *x, int64_t i, int64_t m, int64_t j, int64_t n, int64_t ldc) {
  const wsgemm_gemm_desc d = part_of(x, i, m, j, n, ldc);
  const size_t bytes = (size_t)(ldc * n) * (size_t)x->bytes;
  char *c = malloc(bytes);
  REQUIRE(c && wsgemm_gemm(h, &d) == WSGEMM_SUCCESS, "%s", wsgemm_last_error());
  GPU(cudaMemcpy(c, x->c, bytes, cudaMemcpyDeviceToHost));
  const int64_t count = n_different(x, c, i, m, j, n, ldc);
  free(c);
  return count;
}

static struct operands operands_new(wsgemm_handle *h, wsgemm_type type, int64_t k) {
  struct operands x = {.type = type, .k = k, .bytes = (int)bytes_of(type)};
  const size_t a_bytes = (size_t)(M * k * x.bytes), b_bytes = (size_t)(N * k * x.bytes), c_bytes = (size_t)(2 * M * N * x.bytes);
  unsigned char *random = malloc(a_bytes + b_bytes);
  x.expected = malloc((size_t)(M * N * x.bytes));
  REQUIRE(random && x.expected, "memory");
  /* Bits: exponents of 1/2 .. 1, signs and fractions drawn. */
  for (size_t at = 0; at < a_bytes + b_bytes; at++) random[at] = (unsigned char)check_random_in(&rng, 0, 255);
  const int real = type_is_half(type) ? 2 : type == WSGEMM_F64 || type == WSGEMM_C64 ? 8 : 4;
  static const unsigned char high[] = {0x3f, 0x3f, 0x3f, 0x3f, 0x38, 0x3f}, low[] = {0x00, 0xe0, 0x00, 0xe0, 0, 0x00};
  for (size_t at = 0; at < a_bytes + b_bytes; at += (size_t)real) {
    random[at + (size_t)real - 1] = (unsigned char)((random[at + (size_t)real - 1] & 0x80) | high[type]);
    if (type != WSGEMM_F16) random[at + (size_t)real - 2] = (unsigned char)((random[at + (size_t)real - 2] & 0x0f) | low[type]);
  }
  x.a = gpu_copy(random, a_bytes), x.b = gpu_copy(random + a_bytes, b_bytes), x.c = gpu_alloc(c_bytes);
  free(random);
  const wsgemm_gemm_desc d = part_of(&x, 0, M, 0, N, M);
  REQUIRE(wsgemm_gemm(h, &d) == WSGEMM_SUCCESS, "%s", wsgemm_last_error());
  GPU(cudaMemcpy(x.expected, x.c, (size_t)(M * N * x.bytes), cudaMemcpyDeviceToHost));
  return x;
}

static void operands_free(struct operands *x) {
  gpu_free(x->a), gpu_free(x->b), gpu_free(x->c);
  free(x->expected);
}

static wsgemm_handle *handle_new(bool is_invariant) {
  wsgemm_handle *h = NULL;
  REQUIRE(wsgemm_create(&h) == WSGEMM_SUCCESS && wsgemm_set_invariant(h, is_invariant) == WSGEMM_SUCCESS, "handle");
  return h;
}

static const int64_t ks[] = {1, 64, 333, 4096, MOST_K};
enum { N_KS = sizeof ks / sizeof ks[0] };

static void heights(void) {
  rng = check_random_from(140);
  wsgemm_handle *h = handle_new(true);
  for (int type = 0; type < N_TYPES; type++)
    for (int ki = 0; ki < N_KS; ki++) {
      struct operands x = operands_new(h, (wsgemm_type)type, ks[ki]);
      for (int64_t m = 1; m <= M; m += m < 20 ? 1 : check_random_in(&rng, 1, check_scale() > 1 ? 60 : 12)) {
        const int64_t i = check_random_in(&rng, 0, M - m), n = check_random_in(&rng, 1, N), j = check_random_in(&rng, 0, N - n);
        const int64_t ldc = m + check_random_in(&rng, 0, 3);
        const int64_t count = compute(h, &x, i, m, j, n, ldc);
        CHECK(count == 0, "type %c, k = %lld: rows %lld + %lld, columns %lld + %lld: %lld elements have other bits",
              type_letter(x.type), (long long)x.k, (long long)i, (long long)m, (long long)j, (long long)n, (long long)count);
      }
      operands_free(&x);
    }
  wsgemm_destroy(h);
}

/* The product beside others in a batch. */
static void in_batches(void) {
  rng = check_random_from(141);
  wsgemm_handle *h = handle_new(true);
  for (int type = 0; type < N_TYPES; type++) {
    struct operands x = operands_new(h, (wsgemm_type)type, 333);
    wsgemm_gemm_desc d = part_of(&x, 0, 40, 0, 30, 40);
    d.batch_count = BATCH, d.stride_a = 40 * x.k, d.stride_b = 0, d.stride_c = 40 * 30;
    REQUIRE(wsgemm_gemm(h, &d) == WSGEMM_SUCCESS, "%s", wsgemm_last_error());
    char *c = malloc((size_t)(BATCH * 40 * 30 * x.bytes));
    REQUIRE(c != NULL, "memory");
    GPU(cudaMemcpy(c, x.c, (size_t)(BATCH * 40 * 30 * x.bytes), cudaMemcpyDeviceToHost));
    for (int b = 0; b < BATCH; b++)
      CHECK(n_different(&x, c + b * 40 * 30 * x.bytes, b * 40, 40, 0, 30, 40) == 0, "type %c, product %d", type_letter(x.type),
            b);
    free(c);
    operands_free(&x);
  }
  wsgemm_destroy(h);
}

/* Few tiles and a long k are cut, matrix-vector products summed by their own rows: not so in
 * invariant mode. */
static void default_differs(void) {
  rng = check_random_from(142);
  wsgemm_handle *h = handle_new(true), *usual = handle_new(false);
  struct operands x = operands_new(h, WSGEMM_F32, MOST_K);
  CHECK(compute(usual, &x, 3, 1, 0, N, 1) > 0, "the default gives the same bits in a matrix-vector product");
  CHECK(compute(usual, &x, 0, 32, 0, 32, 32) > 0, "the default gives the same bits in a small product of a long k");
  operands_free(&x);
  wsgemm_destroy(h), wsgemm_destroy(usual);
}

int main(int argc, char **argv) {
  static const struct check_case cases[] = {
      {"heights", heights}, {"in_batches", in_batches}, {"default_differs", default_differs}};
  gpu_open();
  return check_main("gpu_invariant", cases, sizeof cases / sizeof cases[0], argc, argv);
}
