/* test_gpu_small.c - batches of small products by the rows of small.def: all types, ops, sizes to 64,
 * lds, strides and alignments on small whole numbers, each element as the CPU has it, NaN round the matrices neither
 * read nor written over; bits of a batch's product equal to the product alone by a row of one chain, and
 * between the rows; larger products, and invariant mode, have other rows. */
#include "gpu.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 64, MOST_BATCH = 300, GUARD = 64 };
static struct check_random rng;
static int64_t drawn(int64_t low, int64_t high) { return check_random_in(&rng, low, high); }

/* A batch's memory here, before the call and as it should be, and on the device. */
struct operand {
  size_t bytes;
  unsigned char *host, *wanted, *device;
  int64_t at; /* of the first element, in elements */
};
enum { A, B, C, N_OPERANDS };
struct batch {
  wsgemm_gemm_desc d;
  struct operand of[N_OPERANDS];
};

static void fill_line(wsgemm_type type, unsigned char *to, int64_t n, bool is_whole) {
  const int n_reals = type_is_complex(type) ? 2 : 1;
  const size_t real = type_bytes(type) / (size_t)n_reals;
  for (int64_t i = 0; i < n * n_reals; i++)
    element_put(type, to + (size_t)i * real, is_whole ? (double)drawn(-3, 3) : (double)drawn(-4000, 4000) / 4096);
}

/* count matrices of `lines` lines of `length`, `step` and `stride` apart, with all bits set round them; NaN, if without values. */
static void operand_new(struct operand *x, wsgemm_type type, int64_t length, int64_t lines, int64_t step, int64_t stride,
                        int64_t count, bool has_values, bool is_whole) {
  const size_t bytes = type_bytes(type);
  x->at = GUARD + drawn(0, 1) * drawn(0, 15);
  x->bytes = (size_t)(x->at + (count - 1) * stride + (lines - 1) * step + length + GUARD) * bytes;
  x->host = malloc(x->bytes), x->wanted = malloc(x->bytes);
  REQUIRE(x->host && x->wanted, "no memory");
  memset(x->host, 0xff, x->bytes);
  for (int64_t b = 0; b < count && has_values; b++)
    for (int64_t l = 0; l < lines; l++)
      fill_line(type, x->host + (size_t)(x->at + b * stride + l * step) * bytes, length, is_whole);
  memcpy(x->wanted, x->host, x->bytes);
  x->device = gpu_copy(x->host, x->bytes);
}

static void batch_free(struct batch *x) {
  for (int i = 0; i < N_OPERANDS; i++) free(x->of[i].host), free(x->of[i].wanted), gpu_free(x->of[i].device);
}

/* Half of the time without gaps. */
static int64_t padded(int64_t n, bool is_padded) { return n + (is_padded ? drawn(0, 9) : 0); }

static struct batch batch_drawn(wsgemm_type type, int64_t m, int64_t n, int64_t k, int64_t count, bool is_whole) {
  struct batch x;
  const wsgemm_op op_a = draw_op(type, &rng), op_b = draw_op(type, &rng);
  x.d = gemm_desc(type, WSGEMM_COL_MAJOR, op_a, op_b, m, n, k);
  static const wsgemm_type types_c[] = {WSGEMM_F32, WSGEMM_F16, WSGEMM_BF16};
  if (type_is_half(type) && drawn(0, 2) == 0) x.d.type_c = types_c[drawn(0, 2)];
  x.d.alpha = scalar_make(x.d.type_scalar, (double)drawn(1, 2), 0);
  x.d.beta = scalar_make(x.d.type_scalar, (double)drawn(0, 1), 0);
  double beta[2];
  scalar_get(x.d.type_scalar, &x.d.beta, beta);
  const bool is_padded = drawn(0, 1), is_shared = drawn(0, 7) == 0;
  const bool trans_a = op_transposes(op_a), trans_b = op_transposes(op_b);
  const int64_t a_lines = trans_a ? m : k, a_length = trans_a ? k : m, b_lines = trans_b ? k : n, b_length = trans_b ? n : k;
  x.d.lda = padded(a_length, is_padded), x.d.ldb = padded(b_length, is_padded), x.d.ldc = padded(m, is_padded);
  x.d.batch_count = count;
  x.d.stride_a = padded(x.d.lda * a_lines, is_padded), x.d.stride_b = padded(x.d.ldb * b_lines, is_padded);
  x.d.stride_c = padded(x.d.ldc * n, is_padded);
  if (is_shared) *(drawn(0, 1) ? &x.d.stride_a : &x.d.stride_b) = 0;
  operand_new(&x.of[A], type, a_length, a_lines, x.d.lda, x.d.stride_a, count, true, is_whole);
  operand_new(&x.of[B], type, b_length, b_lines, x.d.ldb, x.d.stride_b, count, true, is_whole);
  operand_new(&x.of[C], x.d.type_c, m, n, x.d.ldc, x.d.stride_c, count, beta[0] != 0, is_whole);
  return x;
}

static void point(struct batch *x, unsigned char *a, unsigned char *b, unsigned char *c) {
  const size_t bytes = type_bytes(x->d.type_a);
  x->d.a = a + (size_t)x->of[A].at * bytes, x->d.b = b + (size_t)x->of[B].at * bytes;
  x->d.c = c + (size_t)x->of[C].at * type_bytes(x->d.type_c);
}

static wsgemm_status call_here(struct batch *x, wsgemm_handle *h) {
  point(x, x->of[A].device, x->of[B].device, x->of[C].device);
  const wsgemm_status status = wsgemm_gemm(h, &x->d);
  GPU(cudaMemcpy(x->of[C].host, x->of[C].device, x->of[C].bytes, cudaMemcpyDeviceToHost));
  return status;
}

/* Numbers that are equal, or bits: zeros may differ in their signs. */
static int64_t n_wrong_of(const struct batch *x) {
  const struct operand *c = &x->of[C];
  const size_t real = type_bytes(x->d.type_c) / (type_is_complex(x->d.type_c) ? 2 : 1);
  static const unsigned char zeros[8];
  int64_t n_wrong = 0;
  for (size_t at = 0; at < c->bytes; at += real) {
    unsigned char got[8], wanted[8];
    memcpy(got, c->host + at, real), memcpy(wanted, c->wanted + at, real);
    if (memcmp(got, wanted, real) == 0) continue;
    got[real - 1] &= 0x7f, wanted[real - 1] &= 0x7f;
    n_wrong += memcmp(got, zeros, real) != 0 || memcmp(wanted, zeros, real) != 0;
  }
  return n_wrong;
}

static const char *kernel_of(wsgemm_handle *h, const wsgemm_gemm_desc *d, char kernel[128]) {
  REQUIRE(explained_text(h, d, "kernel", kernel), "no kernel");
  return kernel;
}

static int64_t drawn_size(void) {
  const int64_t turn = drawn(0, 3);
  return turn == 0 ? drawn(1, 8) : turn == 1 ? 8 * drawn(1, 8) : drawn(1, MOST);
}

/* Under any class, and by a row's name: against the CPU. */
static void exact(void) {
  static struct rows_of_type rows;
  rng = check_random_from(201);
  int n_small = 0, n_all = 0;
  for (int type = 0; type < N_TYPES; type++) {
    rows_open(&rows, (wsgemm_type)type);
    for (int turn = 0; turn < 240 / check_scale(); turn++) {
      const int64_t m = drawn_size(), n = drawn_size(), k = drawn_size(),
                    count = drawn(0, 3) ? drawn(16, MOST_BATCH) : drawn(1, 20);
      struct batch x = batch_drawn(rows.type, m, n, k, count, true);
      const int i = (int)drawn(0, rows.n_rows - 1);
      const bool is_forced = drawn(0, 1) && is_of_family(&rows.row[i].info, "small");
      wsgemm_handle *h = is_forced ? rows.handle[i] : NULL;
      if (type_is_half(rows.type) && drawn(0, 3) == 0) x.d.math = WSGEMM_MATH_PEDANTIC;
      point(&x, x.of[A].host, x.of[B].host, x.of[C].wanted);
      CHECK(wsgemm_gemm(NULL, &x.d) == WSGEMM_SUCCESS, "on the CPU: %s", wsgemm_last_error());
      CHECK(call_here(&x, h) == WSGEMM_SUCCESS, "%s", wsgemm_last_error());
      char text[DESCRIPTION_BYTES], kernel[128];
      n_all++, n_small += row_is_of(kernel_of(h, &x.d, kernel), "small");
      const int64_t n_wrong = n_wrong_of(&x);
      CHECK(n_wrong == 0, "%s by %s, %lld times: %lld numbers are wrong", gemm_describe(&x.d, text), kernel, (long long)count,
            (long long)n_wrong);
      batch_free(&x);
    }
    rows_close(&rows);
  }
  CHECK(n_small > n_all / 4, "%d of %d by small rows", n_small, n_all);
}

/* A chain that a product alone has, too: its digest, product by product. */
static unsigned long long digest_alone(struct batch *x, wsgemm_handle *h) {
  const wsgemm_gemm_desc whole = x->d;
  const size_t bytes = type_bytes(whole.type_a), c_bytes = type_bytes(whole.type_c);
  for (int64_t b = 0; b < whole.batch_count; b++) {
    wsgemm_gemm_desc d = whole;
    d.batch_count = 1;
    d.a = (const char *)whole.a + b * whole.stride_a * (int64_t)bytes,
    d.b = (const char *)whole.b + b * whole.stride_b * (int64_t)bytes;
    d.c = (char *)whole.c + b * whole.stride_c * (int64_t)c_bytes;
    CHECK(wsgemm_gemm(h, &d) == WSGEMM_SUCCESS, "%s", wsgemm_last_error());
  }
  return gpu_digest(x->of[C].device, x->of[C].bytes);
}

static void renew_c(struct batch *x) { gpu_put(x->of[C].device, x->of[C].wanted, x->of[C].bytes); }

static void bits_of(struct batch *x, struct rows_of_type *rows) {
  unsigned long long alone[2] = {0}; /* by tensor cores, or whatever; by multiply-adds, of halves */
  bool has_alone[2] = {false};
  for (int i = 0; i < rows->n_rows; i++) {
    const wsgemm_kernel_info *info = &rows->row[i].info;
    const int which = type_is_half(rows->type) && info->is_fma;
    if (has_alone[which] || !is_of_family(info, "simt mma mma16 fma16") || info->coarse_factor > 1) continue;
    renew_c(x), has_alone[which] = true, alone[which] = digest_alone(x, rows->handle[i]);
  }
  for (int i = 0; i < rows->n_rows; i++) {
    const wsgemm_kernel_info *info = &rows->row[i].info;
    char kernel[128], text[DESCRIPTION_BYTES];
    if (!is_of_family(info, "small") || strcmp(kernel_of(rows->handle[i], &x->d, kernel), info->name) != 0) continue;
    renew_c(x);
    CHECK(wsgemm_gemm(rows->handle[i], &x->d) == WSGEMM_SUCCESS, "%s", wsgemm_last_error());
    const int which = type_is_half(rows->type) && info->is_fma;
    CHECK(has_alone[which] && gpu_digest(x->of[C].device, x->of[C].bytes) == alone[which],
          "%s: %s: other bits than the products alone", gemm_describe(&x->d, text), info->name);
  }
}

static void bits(void) {
  static struct rows_of_type rows;
  rng = check_random_from(202);
  for (int type = 0; type < N_TYPES; type++) {
    rows_open(&rows, (wsgemm_type)type);
    for (int turn = 0; turn < 12; turn++) {
      struct batch x = batch_drawn(rows.type, drawn(1, MOST), drawn(1, MOST), drawn(1, MOST), drawn(2, 9), false);
      point(&x, x.of[A].device, x.of[B].device, x.of[C].device);
      bits_of(&x, &rows);
      batch_free(&x);
    }
    rows_close(&rows);
  }
}

static bool is_small(wsgemm_handle *h, const wsgemm_gemm_desc *d) {
  char kernel[128];
  return row_is_of(kernel_of(h, d, kernel), "small");
}

/* Who gets them: batches of products to 64; not in invariant mode, nor a longer k, nor halves with an activation. */
static void choice(void) {
  wsgemm_handle *h = NULL;
  rng = check_random_from(203);
  REQUIRE(wsgemm_create(&h) == WSGEMM_SUCCESS && wsgemm_set_invariant(h, true) == WSGEMM_SUCCESS, "%s", wsgemm_last_error());
  for (int type = 0; type < N_TYPES; type++) {
    struct batch x = batch_drawn((wsgemm_type)type, 8, 8, 8, 1000, true);
    point(&x, x.of[A].device, x.of[B].device, x.of[C].device);
    CHECK(is_small(NULL, &x.d) && !is_small(h, &x.d), "type %d", type);
    wsgemm_gemm_desc d = x.d;
    d.batch_count = 1;
    CHECK(!is_small(NULL, &d), "type %d: one product", type);
    d = x.d, d.epilogue = WSGEMM_EPILOGUE_RELU;
    if (!type_is_complex((wsgemm_type)type))
      CHECK(is_small(NULL, &d) == !type_is_half((wsgemm_type)type), "type %d with an epilogue", type);
    batch_free(&x);
  }
  wsgemm_destroy(h);
}

int main(int argc, char **argv) {
  static const struct check_case cases[] = {{"exact", exact}, {"bits", bits}, {"choice", choice}};
  gpu_open();
  return check_main("gpu_small", cases, sizeof cases / sizeof cases[0], argc, argv);
}
