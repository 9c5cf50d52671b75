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
