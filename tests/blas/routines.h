/* routines.h - the BLAS library's routines for its tests: prototypes of all entry points, and for each
 * routine a function that calls it with its arguments in an array, numbered as BLAS numbers them
 * (from 1); scalars and matrices are the test's. */
#ifndef WSGEMM_TESTS_BLAS_ROUTINES_H
#define WSGEMM_TESTS_BLAS_ROUTINES_H

#include <stddef.h>
#include <stdint.h>

#include "blas/types.h"
#include "wsgemm.h"

enum { MOST_ARGUMENTS = 18 };

/* Matrices of a call; scalars are of the routine's type. */
struct operands {
  void *a, *b, *c;
  const void *alpha, *beta;
};

typedef void (*blas_call)(const int64_t *v, const struct operands *o);

/* CBLAS scalars are by value (real) or by pointer (complex). */
#define GIVE_s(p) (*(const float *)(p))
#define GIVE_d(p) (*(const double *)(p))
#define GIVE_c(p) (p)
#define GIVE_z(p) (p)

#define OP(i) ((wsgemm_op)v[i])
#define UPLO(i) ((wsgemm_uplo)v[i])
#define SIDE(i) ((wsgemm_side)v[i])
#define LAYOUT ((wsgemm_layout)v[1])
#define N(i) ((INT)v[i])

#define CALL_gemm(name, x)                                                                                                       \
  void ENTRY(name)(wsgemm_layout, wsgemm_op, wsgemm_op, INT, INT, INT, VALUE_##x, const ELEMENT_##x *, INT, const ELEMENT_##x *, \
                   INT, VALUE_##x, ELEMENT_##x *, INT);                                                                          \
  static void CALL(name)(const int64_t *v, const struct operands *o) {                                                           \
    ENTRY(name)                                                                                                                  \
    (LAYOUT, OP(2), OP(3), N(4), N(5), N(6), GIVE_##x(o->alpha), o->a, N(9), o->b, N(11), GIVE_##x(o->beta), o->c, N(14));       \
  }
#define CALL_half(name, x)                                                                                                  \
  void ENTRY(name)(wsgemm_layout, wsgemm_op, wsgemm_op, INT, INT, INT, float, const uint16_t *, INT, const uint16_t *, INT, \
                   float, float *, INT);                                                                                    \
  static void CALL(name)(const int64_t *v, const struct operands *o) {                                                      \
    ENTRY(name)                                                                                                             \
    (LAYOUT, OP(2), OP(3), N(4), N(5), N(6), GIVE_s(o->alpha), o->a, N(9), o->b, N(11), GIVE_s(o->beta), o->c, N(14));      \
  }
#define CALL_bgemm(name, x)                                                                                                    \
  void ENTRY(name)(wsgemm_layout, wsgemm_op, wsgemm_op, INT, INT, INT, uint16_t, const uint16_t *, INT, const uint16_t *, INT, \
                   uint16_t, uint16_t *, INT);                                                                                 \
  static void CALL(name)(const int64_t *v, const struct operands *o) {                                                         \
    ENTRY(name)                                                                                                                \
    (LAYOUT, OP(2), OP(3), N(4), N(5), N(6), *(const uint16_t *)o->alpha, o->a, N(9), o->b, N(11), *(const uint16_t *)o->beta, \
     o->c, N(14));                                                                                                             \
  }
#define CALL_gemmtr(name, x)                                                                                                  \
  void ENTRY(name)(wsgemm_layout, wsgemm_uplo, wsgemm_op, wsgemm_op, INT, INT, VALUE_##x, const ELEMENT_##x *, INT,           \
                   const ELEMENT_##x *, INT, VALUE_##x, ELEMENT_##x *, INT);                                                  \
  static void CALL(name)(const int64_t *v, const struct operands *o) {                                                        \
    ENTRY(name)                                                                                                               \
    (LAYOUT, UPLO(2), OP(3), OP(4), N(5), N(6), GIVE_##x(o->alpha), o->a, N(9), o->b, N(11), GIVE_##x(o->beta), o->c, N(14)); \
  }
#define CALL_symm(name, x)                                                                                                      \
  void ENTRY(name)(wsgemm_layout, wsgemm_side, wsgemm_uplo, INT, INT, VALUE_##x, const ELEMENT_##x *, INT, const ELEMENT_##x *, \
                   INT, VALUE_##x, ELEMENT_##x *, INT);                                                                         \
  static void CALL(name)(const int64_t *v, const struct operands *o) {                                                          \
    ENTRY(name)                                                                                                                 \
    (LAYOUT, SIDE(2), UPLO(3), N(4), N(5), GIVE_##x(o->alpha), o->a, N(8), o->b, N(10), GIVE_##x(o->beta), o->c, N(13));        \
  }
#define CALL_RANK_K(name, x, value, give)                                                                                        \
  void ENTRY(name)(wsgemm_layout, wsgemm_uplo, wsgemm_op, INT, INT, value, const ELEMENT_##x *, INT, value, ELEMENT_##x *, INT); \
  static void CALL(name)(const int64_t *v, const struct operands *o) {                                                           \
    ENTRY(name)(LAYOUT, UPLO(2), OP(3), N(4), N(5), give(o->alpha), o->a, N(8), give(o->beta), o->c, N(11));                     \
  }
#define CALL_syrk(name, x) CALL_RANK_K(name, x, VALUE_##x, GIVE_##x)
#define GIVE_REAL_c GIVE_s
#define GIVE_REAL_z GIVE_d
#define CALL_herk(name, x) CALL_RANK_K(name, x, REAL_##x, GIVE_REAL_##x)
#define CALL_RANK_2K(name, x, beta_type, give)                                                                                \
  void ENTRY(name)(wsgemm_layout, wsgemm_uplo, wsgemm_op, INT, INT, VALUE_##x, const ELEMENT_##x *, INT, const ELEMENT_##x *, \
                   INT, beta_type, ELEMENT_##x *, INT);                                                                       \
  static void CALL(name)(const int64_t *v, const struct operands *o) {                                                        \
    ENTRY(name)(LAYOUT, UPLO(2), OP(3), N(4), N(5), GIVE_##x(o->alpha), o->a, N(8), o->b, N(10), give(o->beta), o->c, N(13)); \
  }
#define CALL_syr2k(name, x) CALL_RANK_2K(name, x, VALUE_##x, GIVE_##x)
#define CALL_her2k(name, x) CALL_RANK_2K(name, x, REAL_##x, GIVE_REAL_##x)
#define CALL_trmm(name, x)                                                                                                     \
  void ENTRY(name)(wsgemm_layout, wsgemm_side, wsgemm_uplo, wsgemm_op, wsgemm_diag, INT, INT, VALUE_##x, const ELEMENT_##x *,  \
                   INT, ELEMENT_##x *, INT);                                                                                   \
  static void CALL(name)(const int64_t *v, const struct operands *o) {                                                         \
    ENTRY(name)(LAYOUT, SIDE(2), UPLO(3), OP(4), (wsgemm_diag)v[5], N(6), N(7), GIVE_##x(o->alpha), o->a, N(10), o->c, N(12)); \
  }
#define CALL_strided(name, x)                                                                                              \
  void ENTRY(name)(wsgemm_layout, wsgemm_op, wsgemm_op, INT, INT, INT, VALUE_##x, const ELEMENT_##x *, INT, INT,           \
                   const ELEMENT_##x *, INT, INT, VALUE_##x, ELEMENT_##x *, INT, INT, INT);                                \
  static void CALL(name)(const int64_t *v, const struct operands *o) {                                                     \
    ENTRY(name)                                                                                                            \
    (LAYOUT, OP(2), OP(3), N(4), N(5), N(6), GIVE_##x(o->alpha), o->a, N(9), 64, o->b, N(12), 64, GIVE_##x(o->beta), o->c, \
     N(16), 64, N(18));                                                                                                    \
  }
/* One group of one product. */
#define CALL_batch(name, x)                                                                                                  \
  void ENTRY(name)(wsgemm_layout, const wsgemm_op *, const wsgemm_op *, const INT *, const INT *, const INT *, const void *, \
                   void *, const INT *, void *, const INT *, const void *, void *, const INT *, INT, const INT *);           \
  static void CALL(name)(const int64_t *v, const struct operands *o) {                                                       \
    const wsgemm_op transa = OP(2), transb = OP(3);                                                                          \
    const INT m = N(4), n = N(5), k = N(6), lda = N(9), ldb = N(11), ldc = N(14), size = N(16);                              \
    void *a = o->a, *b = o->b, *c = o->c;                                                                                    \
    ENTRY(name)(LAYOUT, &transa, &transb, &m, &n, &k, o->alpha, &a, &lda, &b, &ldb, o->beta, &c, &ldc, N(15), &size);        \
  }
#define CALL_omatcopy(name, x)                                                                                   \
  void ENTRY(name)(wsgemm_layout, wsgemm_op, INT, INT, VALUE_##x, const ELEMENT_##x *, INT, ELEMENT_##x *, INT); \
  static void CALL(name)(const int64_t *v, const struct operands *o) {                                           \
    ENTRY(name)(LAYOUT, OP(2), N(3), N(4), GIVE_##x(o->alpha), o->a, N(7), o->c, N(9));                          \
  }
#define CALL_imatcopy(name, x)                                                              \
  void ENTRY(name)(wsgemm_layout, wsgemm_op, INT, INT, VALUE_##x, ELEMENT_##x *, INT, INT); \
  static void CALL(name)(const int64_t *v, const struct operands *o) {                      \
    ENTRY(name)(LAYOUT, OP(2), N(3), N(4), GIVE_##x(o->alpha), o->c, N(7), N(8));           \
  }

#define ROUTINE(name, family, letter) CALL_##family(name, letter)
#define INT int32_t
#define ENTRY(name) cblas_##name
#define CALL(name) call_##name
#include "blas/routines.def"
#undef INT
#undef ENTRY
#undef CALL
#define INT int64_t
#define ENTRY(name) cblas_##name##_64
#define CALL(name) call_##name##_64
#include "blas/routines.def"
#undef INT
#undef ENTRY
#undef CALL
#undef ROUTINE

/* Fortran: every argument is a pointer, so one prototype serves all; a routine with fewer arguments
 * does not look at the others. */
typedef void (*fortran_routine)(const void *, const void *, const void *, const void *, const void *, const void *, const void *,
                                const void *, const void *, const void *, const void *, const void *, const void *, const void *,
                                const void *, const void *, const void *);

enum family {
  family_gemm,
  family_half,
  family_bgemm,
  family_gemmtr,
  family_symm,
  family_syrk,
  family_herk,
  family_syr2k,
  family_her2k,
  family_trmm,
  family_batch,
  family_strided,
  family_omatcopy,
  family_imatcopy
};

struct routine {
  const char *name;
  enum family family;
  wsgemm_type type;
  blas_call call, call_64;
};

static const struct routine routines[] = {
#define ROUTINE(name, family, letter) {#name, family_##family, TYPE_##letter, call_##name, call_##name##_64},
#include "blas/routines.def"
#undef ROUTINE
};
enum { N_ROUTINES = sizeof routines / sizeof routines[0] };

#endif
