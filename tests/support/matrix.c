/* matrix.c - values and guarded storage for the tests: see matrix.h. What a product should be is
 * reference.c's business.
 *
 * Invariant: outside [low, low + bytes) of an arena every access faults; inside, within GUARD_BYTES
 * of a placed matrix, each real that is not an element is the signalling NaN of its type. */
#define _GNU_SOURCE
#include "matrix.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define GUARD_BYTES 1024

/* The reals of each type: their bytes, digits, least and largest exponent of a normal number, and
 * signalling NaN. */
static const struct {
  size_t bytes;
  int digits, low, high;
  uint64_t signalling;
} reals[N_TYPES] = {{4, 24, -126, 127, 0x7fa5a5a5u}, {8, 53, -1022, 1023, 0x7ff4a5a5a5a5a5a5u},
                    {4, 24, -126, 127, 0x7fa5a5a5u}, {8, 53, -1022, 1023, 0x7ff4a5a5a5a5a5a5u},
                    {2, 11, -14, 15, 0x7da5u},       {2, 8, -126, 127, 0x7fa5u}};

const char type_letters[N_TYPES + 1] = "sdczhb";
bool type_is_complex(wsgemm_type type) { return type == WSGEMM_C32 || type == WSGEMM_C64; }
bool type_is_single(wsgemm_type type) { return type == WSGEMM_F32 || type == WSGEMM_C32; }
bool type_is_half(wsgemm_type type) { return type == WSGEMM_F16 || type == WSGEMM_BF16; }
bool type_is_double(wsgemm_type type) { return type == WSGEMM_F64 || type == WSGEMM_C64; }
static size_t real_bytes(wsgemm_type type) { return reals[type].bytes; }
size_t type_bytes(wsgemm_type type) { return real_bytes(type) * (type_is_complex(type) ? 2 : 1); }
char type_letter(wsgemm_type type) { return type_letters[type]; }
wsgemm_type type_of_scalars(wsgemm_type type) { return type_is_half(type) ? WSGEMM_F32 : type; }
double type_largest(wsgemm_type type) { return ldexp(2 - ldexp(1, 1 - reals[type].digits), reals[type].high); }
double type_least(wsgemm_type type) { return ldexp(1, reals[type].low + 1 - reals[type].digits); }

/* For each element of a test, so not by ldexp and ilogb, which take ten times as long: 2^e, and the e of 2^e <= |x| < 2^(e+1). */
static double two_to(int e) {
  const uint64_t bits = (uint64_t)(e + 1023) << 52;
  double x;
  memcpy(&x, &bits, sizeof x);
  return x;
}

static int exponent_of(double x) {
  uint64_t bits;
  memcpy(&bits, &x, sizeof bits);
  return (int)(bits >> 52 & 0x7ff) - 1023;
}

/* The exponent of the last place of the type's numbers round x. */
static int last_place(wsgemm_type type, double x) {
  int exponent = reals[type].low;
  if (x != 0 && isfinite(x) && exponent_of(x) > exponent) exponent = exponent_of(x);
  return exponent + 1 - reals[type].digits;
}

double type_round(wsgemm_type type, double x) {
  if (reals[type].bytes == 8 || !isfinite(x) || x == 0) return x;
  if (reals[type].digits == 24) return (float)x;
  const int place = last_place(type, x);
  const double rounded = nearbyint(x * two_to(-place)) * two_to(place);
  return fabs(rounded) >= 2 * two_to(reals[type].high) ? copysign((double)INFINITY, x) : rounded;
}

double type_half_ulp(wsgemm_type type, double x) { return type_is_half(type) ? ldexp(1, last_place(type, x) - 1) : 0; }

static uint16_t half_bits(wsgemm_type type, double value) {
  const int fraction_bits = reals[type].digits - 1;
  const uint16_t sign = signbit(value) ? 0x8000 : 0, top = (uint16_t)(0x7fff >> fraction_bits << fraction_bits);
  const double x = fabs(type_round(type, value));
  if (isnan(x)) return 0x7fff;
  if (isinf(x)) return sign | top;
  const int place = last_place(type, x);
  /* a subnormal's: without the leading one; a normal's carries into the exponent */
  const int digits = (int)(x * two_to(-place));
  const int biased = place - (reals[type].low + 1 - reals[type].digits);
  return (uint16_t)(sign | ((biased << fraction_bits) + digits));
}

static double half_value(wsgemm_type type, uint16_t bits) {
  const int fraction_bits = reals[type].digits - 1, exponent = (bits & 0x7fff) >> fraction_bits;
  const int fraction = bits & ((1 << fraction_bits) - 1);
  double x = fraction * two_to(reals[type].low - fraction_bits);
  if (exponent > 0) x = (fraction + (1 << fraction_bits)) * two_to(exponent - 1 + reals[type].low - fraction_bits);
  if (exponent == 0x7fff >> fraction_bits) x = fraction ? (double)NAN : (double)INFINITY;
  return bits & 0x8000 ? -x : x;
}

static double draw(wsgemm_type type, enum fill fill, struct check_random *random) {
  double value = 0;
  if (fill == FILL_UNIFORM)
    value = check_random_unit(random);
  else if (fill == FILL_SPREAD)
    value = ldexp(check_random_unit(random),
                  type_is_half(type) ? (int)check_random_in(random, -3, 3) : (int)check_random_in(random, -12, 12));
  else if (fill == FILL_INTEGER)
    value = (double)check_random_in(random, -3, 3);
  return type_round(type, value);
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
  /* little-endian */
  for (; low < high; low += real_bytes(type)) memcpy(low, &reals[type].signalling, real_bytes(type));
}

/* First byte of [low, high) that is not the pattern, or NULL. */
static unsigned char *guard_broken(wsgemm_type type, unsigned char *low, unsigned char *high) {
  for (; low < high; low += real_bytes(type))
    if (memcmp(low, &reals[type].signalling, real_bytes(type)) != 0) return low;
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

static double real_get(wsgemm_type type, const unsigned char *p) {
  uint16_t half;
  float single;
  double value;
  switch (real_bytes(type)) {
  case 2:
    memcpy(&half, p, sizeof half);
    return half_value(type, half);
  case 4:
    memcpy(&single, p, sizeof single);
    return single;
  default:
    memcpy(&value, p, sizeof value);
    return value;
  }
}

static void real_set(wsgemm_type type, unsigned char *p, double value) {
  const uint16_t half = real_bytes(type) == 2 ? half_bits(type, value) : 0;
  const float single = (float)value;
  memcpy(p,
         real_bytes(type) == 2   ? (const void *)&half
         : real_bytes(type) == 4 ? (const void *)&single
                                 : (const void *)&value,
         real_bytes(type));
}

void matrix_get(const struct matrix *x, int64_t i, int64_t j, double *re, double *im) {
  const unsigned char *p = element_at(x, i, j);
  *re = real_get(x->type, p);
  *im = type_is_complex(x->type) ? real_get(x->type, p + real_bytes(x->type)) : 0;
}

void matrix_set(const struct matrix *x, int64_t i, int64_t j, double re, double im) {
  unsigned char *p = element_at(x, i, j);
  real_set(x->type, p, re);
  if (type_is_complex(x->type)) real_set(x->type, p + real_bytes(x->type), im);
}

void matrix_set_guard(const struct matrix *x, int64_t i, int64_t j) {
  unsigned char *p = element_at(x, i, j);
  guard_fill(x->type, p, p + type_bytes(x->type));
}

bool matrix_is_guard(const struct matrix *x, int64_t i, int64_t j) {
  unsigned char *p = element_at(x, i, j);
  return !guard_broken(x->type, p, p + type_bytes(x->type));
}

void matrix_store(const struct matrix *x, const struct values *values, wsgemm_op op) {
  const bool transposed = op_transposes(op);
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

double element_value(wsgemm_type type, const void *element) {
  unsigned char copy[8] = {0};
  const struct arena arena = {copy, sizeof copy};
  const struct matrix one = {type, true, 1, 1, 1, copy, &arena};
  double re, im;
  memcpy(copy, element, type_bytes(type));
  matrix_get(&one, 0, 0, &re, &im);
  return re;
}

bool same_number(double x, double y) { return isnan(x) ? isnan(y) : x == y && signbit(x) == signbit(y); }

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

/* FNV-1a, shifted too: its multiplication leaves a top bit where it is. */
static inline uint64_t digest_with(uint64_t digest, const unsigned char *from, size_t n) {
  uint64_t word = 0;
  memcpy(&word, from, n);
  digest = (digest ^ word) * 0x100000001b3ULL;
  return digest ^ digest >> 31;
}

unsigned long long matrix_digest(const struct matrix *x) {
  /* by words of 64 bits, and by reals for what is left of a line */
  uint64_t digest = 0xcbf29ce484222325ULL;
  const size_t bytes = (size_t)line_length(x) * type_bytes(x->type);
  for (int64_t line = 0; line < n_lines(x); line++) {
    const unsigned char *at = x->elements + (size_t)(line * x->ld) * type_bytes(x->type), *end = at + bytes;
    for (; at + sizeof(uint64_t) <= end; at += sizeof(uint64_t)) digest = digest_with(digest, at, sizeof(uint64_t));
    for (; at < end; at += real_bytes(x->type)) digest = digest_with(digest, at, real_bytes(x->type));
  }
  return digest;
}
