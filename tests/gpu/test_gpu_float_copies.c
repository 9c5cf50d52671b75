/* test_gpu_float_copies.c - large float products under PEDANTIC, which read copies of their operands where lines are along k or begin
 * anywhere: the bits of C are those without copies, nothing of what lies between lines comes in, and nothing is written but C and the
 * workspace that is asked for. */
#include "gpu.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { GUARD = 4096 };
static struct check_random rng;

/* n_lines lines of so many floats, NaN between them, at an odd place in device memory (*memory, to be freed). */
static float *new_matrix(int64_t length, int64_t n_lines, int64_t ld, void **memory) {
  const int64_t n = n_lines * ld;
  float *host = malloc((size_t)n * sizeof *host);
  REQUIRE(host != NULL, "memory");
  for (int64_t i = 0; i < n; i++) host[i] = i % ld < length ? (float)check_random_in(&rng, -8000, 8000) / 4096 : NAN;
  *memory = gpu_alloc((size_t)(n + 4) * sizeof *host);
  float *const at = (float *)*memory + check_random_in(&rng, 0, 3);
  gpu_put(at, host, (size_t)n * sizeof *host);
  free(host);
  return at;
}

static int64_t copied_bytes(wsgemm_handle *h, const wsgemm_gemm_desc *d) {
  char text[2048];
  wsgemm_explain(h, d, text, sizeof text);
  const char *at = strstr(text, "operand_copies_bytes: ");
  return at ? atoll(at + strlen("operand_copies_bytes: ")) : 0;
}

static unsigned long long digest_of(wsgemm_handle *h, const wsgemm_gemm_desc *d, const void *c_before, size_t c_bytes) {
  GPU(cudaMemcpy(d->c, c_before, c_bytes, cudaMemcpyDeviceToDevice));
  CHECK(wsgemm_gemm(h, d) == WSGEMM_SUCCESS, "%s", wsgemm_last_error());
  return gpu_digest(d->c, c_bytes);
}

/* Ops, lds, batches and C's old values, drawn. */
static void bits(void) {
  enum { N_PRODUCTS = 24, N_OPS = 4 };
  static const wsgemm_op ops[] = {WSGEMM_NO_TRANS, WSGEMM_TRANS};
  wsgemm_handle *h = NULL;
  int n_copied[N_OPS] = {0};
  REQUIRE(wsgemm_create(&h) == WSGEMM_SUCCESS, "%s", wsgemm_last_error());
  rng = check_random_from(417);
  for (int i = 0; i < N_PRODUCTS; i++) {
    const int64_t m = check_random_in(&rng, 1500, 3500), n = check_random_in(&rng, 1500, 3500),
                  k = check_random_in(&rng, 130, 900), batch = i % 5 == 4 ? 2 : 1;
    const bool trans_a = i / 2 % 2, trans_b = i % 2;
    wsgemm_gemm_desc d = gemm_desc(WSGEMM_F32, WSGEMM_COL_MAJOR, ops[trans_a], ops[trans_b], m, n, k);
    const int64_t length_a = trans_a ? k : m, length_b = trans_b ? n : k;
    d.lda = length_a + check_random_in(&rng, 0, 40), d.ldb = length_b + check_random_in(&rng, 0, 40), d.ldc = m + i % 3;
    d.math = WSGEMM_MATH_PEDANTIC, d.batch_count = batch;
    const int64_t lines_a = trans_a ? m : k, lines_b = trans_b ? k : n;
    d.stride_a = batch > 1 ? lines_a * d.lda : 0, d.stride_b = i % 2 && batch > 1 ? lines_b * d.ldb : 0, d.stride_c = d.ldc * n;
    d.alpha.s = 0.75f, d.beta.s = i % 3 == 0 ? 0 : 0.5f;
    void *memory[4];
    d.a = new_matrix(length_a, lines_a * batch, d.lda, &memory[0]),
    d.b = new_matrix(length_b, lines_b * batch, d.ldb, &memory[1]);
    d.c = new_matrix(m, n * batch, d.ldc, &memory[2]);
    const void *before = new_matrix(m, n * batch, d.ldc, &memory[3]);
    const size_t c_bytes = (size_t)(d.ldc * n * batch) * sizeof(float);
    size_t asked = 0;
    char text[DESCRIPTION_BYTES];
    REQUIRE(wsgemm_get_workspace_size(h, &d, &asked) == WSGEMM_SUCCESS, "%s", wsgemm_last_error());
    unsigned char *workspace = gpu_alloc(asked + 2 * GUARD);
    GPU(cudaMemset(workspace, 0xff, asked + 2 * GUARD));
    const unsigned long long guards = gpu_digest(workspace, GUARD) + gpu_digest(workspace + GUARD + asked, GUARD);
    REQUIRE(wsgemm_set_workspace(h, workspace + GUARD, 256) == WSGEMM_SUCCESS, "%s", wsgemm_last_error());
    CHECK(copied_bytes(h, &d) == 0, "%s: copies in 256 bytes", gemm_describe(&d, text));
    const unsigned long long direct = digest_of(h, &d, before, c_bytes);
    REQUIRE(wsgemm_set_workspace(h, workspace + GUARD, asked) == WSGEMM_SUCCESS, "%s", wsgemm_last_error());
    const int64_t copied = copied_bytes(h, &d);
    CHECK(copied == 0 || copied == (int64_t)asked, "%s: %lld bytes, %zu asked for", gemm_describe(&d, text), (long long)copied,
          asked);
    n_copied[i % N_OPS] += copied > 0;
    CHECK(digest_of(h, &d, before, c_bytes) == direct, "%s: other bits with copies", gemm_describe(&d, text));
    CHECK(gpu_digest(workspace, GUARD) + gpu_digest(workspace + GUARD + asked, GUARD) == guards,
          "%s: written beside the workspace", gemm_describe(&d, text));
    REQUIRE(wsgemm_set_workspace(h, NULL, 0) == WSGEMM_SUCCESS, "%s", wsgemm_last_error());
    CHECK(digest_of(h, &d, before, c_bytes) == direct, "%s: other bits in the library's memory", gemm_describe(&d, text));
    for (int j = 0; j < 4; j++) gpu_free(memory[j]);
    gpu_free(workspace);
  }
  for (int o = 0; o < N_OPS; o++) CHECK(n_copied[o] > 0, "ops %d: no copies", o);
  wsgemm_destroy(h);
}

int main(int argc, char **argv) {
  static const struct check_case cases[] = {{"bits", bits}};
  gpu_open();
  return check_main("gpu_float_copies", cases, sizeof cases / sizeof cases[0], argc, argv);
}
