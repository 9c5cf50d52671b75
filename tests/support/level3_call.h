/* level3_call.h - Level 3 calls for the tests: shapes, both forms of the API, storage in which all
 * that a routine may not touch is guarded, and the verdict against a plain reference.
 *
 * Matrices are named as in wsgemm_level3_desc, by idx: 0 is A, 1 is B, 2 is C. Values are those of
 * the stored matrix (no op applied, whatever the layout). Inside a stored matrix the guard pattern
 * of matrix.h stands in the unused triangle, on unit diagonals, in the imaginary parts that count
 * as 0, in a C that is not read, and in operands that alpha = 0 leaves unread. */
#ifndef WSGEMM_TESTS_LEVEL3_CALL_H
#define WSGEMM_TESTS_LEVEL3_CALL_H

#include "gemm_call.h"

enum { N_ROUTINES = 9, N_LEVEL3_TYPES = 4 };
extern const wsgemm_routine all_routines[N_ROUTINES];
bool routine_has_type(wsgemm_routine routine, wsgemm_type type); /* hemm, herk, her2k: complex ones */
bool routine_is_triangular(wsgemm_routine routine);              /* trmm, trsm */
bool routine_writes_triangle(wsgemm_routine routine);
bool routine_has_k(wsgemm_routine routine);

/* What a routine can be asked for besides sizes. */
struct variant {
  wsgemm_side side;
  wsgemm_uplo uplo;
  wsgemm_op transa, transb;
  wsgemm_diag diag;
};
enum { MAX_VARIANTS = 32 };
int variants_of(wsgemm_routine routine, wsgemm_type type, struct variant variants[MAX_VARIANTS]);

/* alpha = 1, beta = 0, least lds, no pointers. m is ignored where C is n x n, k where the routine
 * has none. */
wsgemm_level3_desc level3_desc(wsgemm_routine routine, wsgemm_type type, wsgemm_layout layout, const struct variant *variant,
                               int64_t m, int64_t n, int64_t k);

/* Of the stored matrices; 0 x 0 for one that the routine does not have. */
void level3_shapes(const wsgemm_level3_desc *d, int64_t rows[3], int64_t cols[3]);
int64_t level3_sum_length(const wsgemm_level3_desc *d); /* terms of a sum: k, or A's size */

/* The typed call that says the same as d; d has no c for trmm and trsm, and one product. */
wsgemm_status level3_typed(wsgemm_handle *handle, const wsgemm_level3_desc *d);

/* "ssyrk col L NT ... m=.. n=.. k=.. alpha=.. beta=.. lds=.." into text; returns text. */
const char *level3_describe(const wsgemm_level3_desc *d, char text[DESCRIPTION_BYTES]);

/* How a case is called, and where its result goes. */
enum form {
  FORM_TYPED,
  FORM_DESCRIPTOR,
  FORM_APART, /* trmm, trsm: c is memory of its own; else as FORM_DESCRIPTOR */
  FORM_SAME,  /* trmm, trsm: c is b; syr2k, her2k: b is a; else as FORM_DESCRIPTOR */
  N_FORMS
};

/* What cases of one type up to one size share. */
struct level3_stage {
  wsgemm_type type;
  struct values x[3];
  struct values solution; /* trsm judged exactly: X, from which B is made */
  struct arena arena[3];
  struct matrix stored[3]; /* of the last case */
  int out_idx;             /* which of them holds its result */
};

/* Each matrix is up to `rows` x `cols`. For FILL_INTEGER, A's triangles, solved for, give whole
 * numbers again: see level3_fill_solvable. */
struct level3_stage level3_stage_new(wsgemm_type type, int64_t rows, int64_t cols, enum fill fill, struct check_random *random);
void level3_stage_free(struct level3_stage *stage);

/* A for trsm. SOLVABLE: whole numbers, a diagonal of absolute value 1, and a strict triangle N with
 * N^2 = 0, so that the inverse of every diagonal block is of small whole numbers. The others as
 * their names say, in both triangles. */
enum triangle {
  TRIANGLE_SOLVABLE,
  TRIANGLE_DOMINANT,
  TRIANGLE_RANDOM,
  TRIANGLE_GRADED,
  TRIANGLE_NEAR_SINGULAR,
  TRIANGLE_TINY, /* dominant, but for a factor that the square of an element does not survive */
  TRIANGLE_HUGE,
  TRIANGLE_HILBERT
};
enum { N_TRIANGLES = TRIANGLE_HILBERT + 1 };
void level3_fill_triangle(struct level3_stage *stage, enum triangle kind, struct check_random *random);

/* Fills in d's lds and pointers and stores the matrices for this form. */
void level3_store(struct level3_stage *stage, wsgemm_level3_desc *d, const struct layout_of_case *layout, enum form form,
                  enum judge how);

/* Checks the guards, in the matrices and round them, and every element of the result. */
bool level3_judge(struct level3_stage *stage, const wsgemm_level3_desc *d, enum judge how, const char *who);

/* Makes the call. Suites of another backend put their own in place. */
typedef wsgemm_status level3_caller(struct level3_stage *stage, wsgemm_handle *handle, const wsgemm_level3_desc *d, bool typed);
level3_caller level3_call_on_host;
extern level3_caller *run_level3_caller; /* level3_call_on_host at first */

/* level3_store, the call, level3_judge; also that what is only read is unchanged, and that the
 * floating-point exception flags (inexact apart) stay down. */
bool run_level3(struct level3_stage *stage, wsgemm_handle *handle, wsgemm_level3_desc *d, const struct layout_of_case *layout,
                enum form form, enum judge how, const char *who);

/* One more matrix of a case: digest of the result's bits, guards included. */
unsigned long long level3_digest(const struct level3_stage *stage);

struct variant draw_variant(wsgemm_routine routine, wsgemm_type type, struct check_random *random);
/* 0, 1, -1, a small whole number, or for JUDGE_BOUND any; fit for the routine (real where it must
 * be; for trsm judged exactly, a power of two). */
void draw_scalars(wsgemm_level3_desc *d, enum judge how, struct check_random *random);

#endif
