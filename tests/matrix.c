/* matrix.c - values and guarded storage for the tests: see matrix.h. What a product should be is reference.c's business.
 *
 * Invariant: outside [low, low + bytes) of an arena every access faults; inside, within GUARD_BYTES of a placed matrix, each real
 * that is not an element is the signalling NaN of its type. */
#define _GNU_SOURCE
#include "matrix.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define GUARD_BYTES 1024

static const uint32_t signalling_f32 = 0x7fa5a5a5u;
static const uint64_t signalling_f64 = 0x7ff4a5a5a5a5a5a5u;

bool type_is_complex(wsgemm_type type) { return type == WSGEMM_C32 || type == WSGEMM_C64; }
bool type_is_single(wsgemm_type type) { return type == WSGEMM_F32 || type == WSGEMM_C32; }
static size_t real_bytes(wsgemm_type type) { return type_is_single(type) ? sizeof(float) : sizeof(double); }
size_t type_bytes(wsgemm_type type) { return real_bytes(type) * (type_is_complex(type) ? 2 : 1); }
char type_letter(wsgemm_type type) { return "sdcz"[type]; }

static double draw(wsgemm_type type, enum fill fill, struct check_random *random) {
  double value = 0;
  if (fill == FILL_UNIFORM)
    value = check_random_unit(random);
  else if (fill == FILL_SPREAD)
    value = ldexp(check_random_unit(random), (int)check_random_in(random, -12, 12));
  else if (fill == FILL_INTEGER)
    value = (double)check_random_in(random, -3, 3);
  return type_is_single(type) ? (double)(float)value : value;
}

struct values values_new(wsgemm_type type, int64_t rows, int64_t cols, enum fill fill, struct check_random *random) {
  const size_t n = (size_t)(rows * cols);
  struct values values = {rows, cols, type_is_complex(type), calloc(n + 1, sizeof(double)), calloc(n + 1, sizeof(double))};
  REQUIRE(values.re && values.im, "memory for %zu values", n);
  for (size_t i = 0; i < n; i++) {
    values.re[i] = draw(type, fill, random);
    values.im[i] = type_is_complex(type) ? draw(type, fill, random) : 0;
  }
  return values;
}

void values_free(struct values *values) {
  free(values->re);
  free(values->im);
  *values = (struct values){0};
}

struct arena arena_new(size_t bytes) {
  const size_t page = (size_t)sysconf(_SC_PAGESIZE);
  const size_t data = (bytes + page - 1) / page * page + page;
  unsigned char *base = mmap(NULL, data + 2 * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  REQUIRE(base != MAP_FAILED, "%zu bytes of address space", data + 2 * page);
  REQUIRE(mprotect(base + page, data, PROT_READ | PROT_WRITE) == 0, "%zu bytes of memory", data);
  return (struct arena){base + page, data};
}

void arena_free(struct arena *arena) {
  const size_t page = (size_t)sysconf(_SC_PAGESIZE);
  munmap(arena->low - page, arena->bytes + 2 * page);
  *arena = (struct arena){0};
}

void arena_set_read_only(const struct arena *arena, bool read_only) {
  REQUIRE(mprotect(arena->low, arena->bytes, read_only ? PROT_READ : PROT_READ | PROT_WRITE) == 0, "mprotect");
}

static int64_t n_lines(const struct matrix *x) { return x->by_columns ? x->cols : x->rows; }
static int64_t line_length(const struct matrix *x) { return x->by_columns ? x->rows : x->cols; }

size_t matrix_extent_bytes(const struct matrix *x) {
  if (n_lines(x) == 0 || line_length(x) == 0) return 0;
  return (size_t)((n_lines(x) - 1) * x->ld + line_length(x)) * type_bytes(x->type);
}

/* The guarded stretch round x: whole reals, within the arena. */
static void guard_bounds(const struct matrix *x, unsigned char **low, unsigned char **high) {
  const size_t real = real_bytes(x->type), extent = matrix_extent_bytes(x);
  const size_t before = (size_t)(x->elements - x->arena->low);
  const size_t after = (size_t)(x->arena->low + x->arena->bytes - x->elements) - extent;
  *low = x->elements - (before < GUARD_BYTES ? before : GUARD_BYTES) / real * real;
  *high = x->elements + extent + (after < GUARD_BYTES ? after : GUARD_BYTES) / real * real;
}

static void guard_fill(wsgemm_type type, unsigned char *low, unsigned char *high) {
  if (type_is_single(type))
    for (; low < high; low += sizeof signalling_f32) memcpy(low, &signalling_f32, sizeof signalling_f32);
  else
    for (; low < high; low += sizeof signalling_f64) memcpy(low, &signalling_f64, sizeof signalling_f64);
}

/* First byte of [low, high) that is not the pattern, or NULL. */
static unsigned char *guard_broken(wsgemm_type type, unsigned char *low, unsigned char *high) {
  const size_t real = real_bytes(type);
  const void *pattern = type_is_single(type) ? (const void *)&signalling_f32 : (const void *)&signalling_f64;
  for (; low < high; low += real)
    if (memcmp(low, pattern, real) != 0) return low;
  return NULL;
}

struct matrix matrix_place(const struct arena *arena, wsgemm_type type, wsgemm_layout layout, int64_t rows, int64_t cols,
                           int64_t ld, enum place place) {
  struct matrix x = {type, layout == WSGEMM_COL_MAJOR, rows, cols, ld, arena->low, arena};
  const size_t extent = matrix_extent_bytes(&x);
  REQUIRE(extent + 64 <= arena->bytes, "arena of %zu bytes too small for %zu", arena->bytes, extent);
  if (place == PLACE_END)
    x.elements = arena->low + arena->bytes - extent;
  else if (place == PLACE_ODD)
    x.elements = arena->low + real_bytes(type) * (1 + (size_t)(rows + cols) % 2 * 2);
  unsigned char *low, *high;
  guard_bounds(&x, &low, &high);
  guard_fill(type, low, high);
  return x;
}

static unsigned char *element_at(const struct matrix *x, int64_t i, int64_t j) {
  return x->elements + (size_t)(x->by_columns ? i + j * x->ld : i * x->ld + j) * type_bytes(x->type);
}

void matrix_get(const struct matrix *x, int64_t i, int64_t j, double *re, double *im) {
  const unsigned char *p = element_at(x, i, j);
  *im = 0;
  if (type_is_single(x->type)) {
    float value[2] = {0, 0};
    memcpy(value, p, type_bytes(x->type));
    *re = value[0];
    *im = value[1];
  } else {
    double value[2] = {0, 0};
    memcpy(value, p, type_bytes(x->type));
    *re = value[0];
    *im = value[1];
  }
}

void matrix_set(const struct matrix *x, int64_t i, int64_t j, double re, double im) {
  unsigned char *p = element_at(x, i, j);
  if (type_is_single(x->type)) {
    const float value[2] = {(float)re, (float)im};
    memcpy(p, value, type_bytes(x->type));
  } else {
    const double value[2] = {re, im};
    memcpy(p, value, type_bytes(x->type));
  }
}

void matrix_store(const struct matrix *x, const struct values *values, wsgemm_op op) {
  const bool transposed = op == WSGEMM_TRANS || op == WSGEMM_CONJ_TRANS;
  const double sign = op == WSGEMM_CONJ_TRANS || op == WSGEMM_CONJ_NO_TRANS ? -1 : 1;
  REQUIRE((transposed ? x->cols : x->rows) <= values->rows && (transposed ? x->rows : x->cols) <= values->cols,
          "a %lld x %lld matrix from %lld x %lld values", (long long)x->rows, (long long)x->cols, (long long)values->rows,
          (long long)values->cols);
  const int64_t step_i = transposed ? 1 : values->cols, step_j = transposed ? values->cols : 1;
  for (int64_t i = 0; i < x->rows; i++)
    for (int64_t j = 0; j < x->cols; j++)
      matrix_set(x, i, j, values->re[i * step_i + j * step_j], sign * values->im[i * step_i + j * step_j]);
}

void matrix_store_nan(const struct matrix *x) {
  for (int64_t i = 0; i < x->rows; i++)
    for (int64_t j = 0; j < x->cols; j++) matrix_set(x, i, j, (double)NAN, (double)NAN);
}

bool matrix_guard_intact(const struct matrix *x, int64_t *byte_idx) {
  unsigned char *low, *high, *broken;
  guard_bounds(x, &low, &high);
  const size_t element = type_bytes(x->type), extent = matrix_extent_bytes(x);
  broken = guard_broken(x->type, low, x->elements);
  if (!broken) broken = guard_broken(x->type, x->elements + extent, high);
  if (extent > 0 && x->ld > line_length(x))
    for (int64_t line = 0; line + 1 < n_lines(x) && !broken; line++) {
      unsigned char *start = x->elements + (size_t)(line * x->ld) * element;
      broken = guard_broken(x->type, start + (size_t)line_length(x) * element, start + (size_t)x->ld * element);
    }
  if (broken) *byte_idx = broken - x->elements;
  return !broken;
}

unsigned long long matrix_digest(const struct matrix *x) {
  unsigned long long digest = 0xcbf29ce484222325ULL; /* FNV-1a, by 32-bit words */
  const size_t words = (size_t)line_length(x) * type_bytes(x->type) / sizeof(uint32_t);
  for (int64_t line = 0; line < n_lines(x); line++) {
    const unsigned char *start = x->elements + (size_t)(line * x->ld) * type_bytes(x->type);
    for (size_t i = 0; i < words; i++) {
      uint32_t word;
      memcpy(&word, start + i * sizeof word, sizeof word);
      digest = (digest ^ word) * 0x100000001b3ULL;
    }
  }
  return digest;
}
