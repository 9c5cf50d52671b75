/* huge.c - see huge.h. */
#define _GNU_SOURCE
#include "huge.h"

#include <sys/mman.h>
#include <unistd.h>

bool is_too_much_here(bool takes_long) {
#ifdef WSGEMM_TESTS_EMULATED
  const bool is_emulated = true;
#else
  const bool is_emulated = false;
#endif
  if (is_emulated)
    check_skip("not under an emulator");
  else if (takes_long && check_scale() > 1)
    check_skip("takes minutes under a sanitizer");
  return is_emulated || (takes_long && check_scale() > 1);
}

void *map_sparse(size_t bytes) {
  void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return p == MAP_FAILED ? NULL : p;
}

float *map_over_and_over(int64_t n_floats, size_t piece_bytes) {
  const size_t bytes = ((size_t)n_floats * sizeof(float) + piece_bytes - 1) / piece_bytes * piece_bytes;
  const int file = memfd_create("wsgemm-test", MFD_CLOEXEC);
  unsigned char *base = mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  bool good = file >= 0 && base != MAP_FAILED && ftruncate(file, (off_t)piece_bytes) == 0;
  for (size_t at = 0; good && at < bytes; at += piece_bytes)
    good = mmap(base + at, piece_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file, 0) != MAP_FAILED;
  if (file >= 0) close(file);
  return good ? (float *)(void *)base : NULL;
}

void check_long_sum(long_sum_call *call) {
  const int64_t k = BEYOND + 1029;
  if (is_too_much_here(true)) return;
  float *x = map_sparse((size_t)k * sizeof *x);
  if (!x) {
    check_skip("the system maps no %lld bytes", (long long)k * 4);
    return;
  }
  x[0] = 3, x[BEYOND - 1] = 5, x[BEYOND + 1] = 7, x[k - 1] = 11;
  float c = -1;
  CHECK(call(k, x, &c) == WSGEMM_SUCCESS, "%s", wsgemm_last_error());
  CHECK(c == 9 + 25 + 49 + 121 - 1, "%g", (double)c);
  munmap(x, (size_t)k * sizeof *x);
}

enum { TALL_PIECE = 2 << 20, N_TALL_PIECE = TALL_PIECE / sizeof(float) };

bool tall_map(struct tall *t) {
  if (is_too_much_here(true)) return false;
  t->m = BEYOND + 41;
  t->in = map_over_and_over(t->m, TALL_PIECE), t->out = map_over_and_over(t->m, TALL_PIECE);
  if (!t->in || !t->out) check_skip("the system does not map 2 MiB 4097 times");
  return t->in && t->out;
}

void tall_unmap(const struct tall *t) {
  munmap(t->in, (size_t)t->m * sizeof *t->in);
  munmap(t->out, (size_t)t->m * sizeof *t->out);
}

void tall_fill(const struct tall *t, float in) {
  for (int i = 0; i < N_TALL_PIECE; i++) t->in[i] = in, t->out[i] = 0;
}

void check_tall(const struct tall *t, float expected, const char *what) {
  int64_t n_wrong = 0;
  for (int i = 0; i < N_TALL_PIECE; i++) n_wrong += t->out[i] != expected;
  CHECK(n_wrong == 0, "%s: %lld elements are not %g", what, (long long)n_wrong, (double)expected);
}

bool matrix_far_apart(const struct matrix *near, struct matrix *far) {
  *far = *near;
  far->ld = BEYOND + 7;
  far->elements = map_sparse(matrix_extent_bytes(far) + 1); /* an empty one has no bytes */
  if (!far->elements) return false;
  for (int64_t i = 0; i < near->rows; i++)
    for (int64_t j = 0; j < near->cols; j++) {
      double re, im;
      matrix_get(near, i, j, &re, &im);
      matrix_set(far, i, j, re, im);
    }
  return true;
}

void matrix_unmap(const struct matrix *far) { munmap(far->elements, matrix_extent_bytes(far) + 1); }
