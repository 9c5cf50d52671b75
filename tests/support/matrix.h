/* matrix.h - matrices for the tests: plain values on one side, guarded storage in every layout on
 * the other.
 *
 * `values` is what op(X) means: a row-major table of doubles. `matrix` is how it lies in memory for
 * a call: any type, op, layout, ld, and alignment, in an arena whose data area stands between two
 * pages without access. Every byte of the arena near a matrix that is not one of its elements
 * (between columns, before, after) holds a signalling NaN, so that a write there is seen, a read
 * spoils the result, and arithmetic on it raises FE_INVALID. */
#ifndef WSGEMM_TESTS_MATRIX_H
#define WSGEMM_TESTS_MATRIX_H

#include "check.h"
#include "wsgemm.h"

struct values {
  int64_t rows, cols;
  bool is_complex;
  double *re, *im; /* row-major, ld = cols; im is all zero for real types */
};

enum fill {
  FILL_UNIFORM, /* in (-1, 1) */
  FILL_SPREAD,  /* random signs and exponents over 2^-12 .. 2^12 */
  FILL_INTEGER, /* -3 .. 3, so that short products are exact */
  FILL_ZERO
};

/* Values that the type can hold exactly. */
struct values values_new(wsgemm_type type, int64_t rows, int64_t cols, enum fill fill, struct check_random *random);
void values_free(struct values *values);

enum { N_TYPES = 6 }; /* of wsgemm_type */
extern const char type_letters[N_TYPES + 1];
bool type_is_complex(wsgemm_type type);
bool type_is_half(wsgemm_type type);
bool type_is_single(wsgemm_type type); /* its reals are floats */
bool type_is_double(wsgemm_type type); /* else sums, alpha and beta are single */
size_t type_bytes(wsgemm_type type);
static inline bool op_transposes(wsgemm_op op) { return op == WSGEMM_TRANS || op == WSGEMM_CONJ_TRANS; }
char type_letter(wsgemm_type type);
wsgemm_type type_of_scalars(wsgemm_type type);
double type_largest(wsgemm_type type); /* the largest finite real */
double type_least(wsgemm_type type);   /* the least positive real, a subnormal one */

/* x as the type's reals hold it: rounded to nearest even, Inf beyond their range. */
double type_round(wsgemm_type type, double x);

/* Half the distance of a half-precision type's numbers round x; 0 for the other types. */
double type_half_ulp(wsgemm_type type, double x);

struct arena {
  unsigned char *low; /* first byte of the data area */
  size_t bytes;       /* whole pages */
};

struct arena arena_new(size_t bytes);
void arena_free(struct arena *arena);
void arena_set_read_only(const struct arena *arena, bool read_only);

/* Where a matrix lies in its arena. */
enum place {
  PLACE_END,   /* last element right before the page without access */
  PLACE_START, /* first element right after the page without access */
  PLACE_ODD    /* an odd number of real elements after the start */
};

struct matrix {
  wsgemm_type type;
  bool by_columns;         /* column-major storage */
  int64_t rows, cols, ld;  /* as stored */
  unsigned char *elements; /* first element */
  const struct arena *arena;
};

/* Lays out an empty matrix and fills its surroundings with the guard pattern. rows and cols are
 * those of the stored matrix. */
struct matrix matrix_place(const struct arena *arena, wsgemm_type type, wsgemm_layout layout, int64_t rows, int64_t cols,
                           int64_t ld, enum place place);

/* Stores the upper left rows x cols corner of values so that op(X) is that corner. */
void matrix_store(const struct matrix *x, const struct values *values, wsgemm_op op);

/* Sets every element to a quiet NaN. */
void matrix_store_nan(const struct matrix *x);

/* The guard pattern in place of an element: for what must be neither read nor written although it
 * lies inside the matrix. */
void matrix_set_guard(const struct matrix *x, int64_t i, int64_t j);
bool matrix_is_guard(const struct matrix *x, int64_t i, int64_t j);

/* Element (i, j) as stored. */
void matrix_get(const struct matrix *x, int64_t i, int64_t j, double *re, double *im);
void matrix_set(const struct matrix *x, int64_t i, int64_t j, double re, double im);

/* The number behind an element's bits, of a real type. */
double element_value(wsgemm_type type, const void *element);

/* The same number, and sign of zero; any NaN is as any other. */
bool same_number(double x, double y);

/* Whether every byte round the elements still holds the guard pattern; if not, *byte_idx is the
 * offset from the first element. */
bool matrix_guard_intact(const struct matrix *x, int64_t *byte_idx);

/* Bytes from the first element to the end of the last. */
size_t matrix_extent_bytes(const struct matrix *x);

/* 64-bit digest of the elements' bits, to compare runs. */
unsigned long long matrix_digest(const struct matrix *x);

#endif
