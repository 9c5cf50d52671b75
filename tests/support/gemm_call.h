/* gemm_call.h - what every suite needs round a call: scalars, both forms of the API, descriptions,
 * and one full case from values to verdict.
 *
 * A suite makes a stage, extends its product to the k it wants, and runs cases on it. */
#ifndef WSGEMM_TESTS_GEMM_CALL_H
#define WSGEMM_TESTS_GEMM_CALL_H

#include "matrix.h"
#include "reference.h"

wsgemm_scalar scalar_make(wsgemm_type type, double re, double im);
void scalar_get(wsgemm_type type, const wsgemm_scalar *scalar, double value[2]);

/* The typed call (sgemm, ... bgemm) that says the same as d, or the descriptor form if none does;
 * d->batch_count must be 1. */
wsgemm_status gemm_typed(wsgemm_handle *handle, const wsgemm_gemm_desc *d);

/* A descriptor of one type with alpha = 1, beta = 0, no pointers, and the least lds. */
wsgemm_gemm_desc gemm_desc(wsgemm_type type, wsgemm_layout layout, wsgemm_op transa, wsgemm_op transb, int64_t m, int64_t n,
                           int64_t k);

/* "sgemm col NT m=.. n=.. k=.. alpha=.. beta=.. lds=.." into text; returns text. */
#define DESCRIPTION_BYTES 256
const char *gemm_describe(const wsgemm_gemm_desc *d, char text[DESCRIPTION_BYTES]);

extern const wsgemm_op all_ops[4];
extern const wsgemm_layout all_layouts[2];
#define POLICY_COUNTED(enumerator, name) +1
enum { N_POLICIES = 0 WSGEMM_POLICY_MAP(POLICY_COUNTED) };
extern const wsgemm_policy all_policies[N_POLICIES];
int n_ops(wsgemm_type type); /* how many of all_ops differ for the type: 2 or 4 */

/* What the cases of one type and one largest shape share: the values, the reference, and the
 * guarded places. */
struct stage {
  /* op(A), op(B), C before the call (of half precision: fit for every type that C may have) */
  struct values a, b, c;
  struct product product;
  struct arena arena[3];   /* for A, B, C */
  struct matrix stored[3]; /* A, B, C of the last case */
};

#define MAX_PAD 20
struct stage stage_new(wsgemm_type type, int64_t max_m, int64_t max_n, int64_t max_k, enum fill fill,
                       struct check_random *random);
void stage_free(struct stage *stage);

/* Where the operands of a case lie: ld = least + pad, pad <= MAX_PAD; for A, B, C. */
struct layout_of_case {
  int pad[3];
  enum place place[3];
};
/* no padding, each matrix ends at a page without access */
struct layout_of_case layout_tight(void);
struct layout_of_case layout_drawn(struct check_random *random);

/* Fills in d's lds and pointers and stores the operands; C gets its values, or NaN where beta =
 * 0. */
void case_store(struct stage *stage, wsgemm_gemm_desc *d, const struct layout_of_case *layout);

/* Whether the guards of A, B, C are whole; records a failure if not. */
bool case_guards_intact(const struct stage *stage, const wsgemm_gemm_desc *d, const char *who);

/* Checks the guards and the elements of C for the call that was made. The product must stand at
 * d->k. */
enum judge { JUDGE_BOUND, JUDGE_EXACT };
bool case_judge(const struct stage *stage, const wsgemm_gemm_desc *d, enum judge how, const char *who);

/* Makes the call that d says, typed or by descriptor. Suites of another backend put their own in
 * place, which takes the arenas of the stage to where the backend works and back. */
typedef wsgemm_status gemm_caller(struct stage *stage, wsgemm_handle *handle, const wsgemm_gemm_desc *d, bool typed);
gemm_caller call_on_host;
extern gemm_caller *run_case_caller; /* call_on_host at first */

/* The same for suites with arenas of their own: all pointers of d lie in them. */
typedef wsgemm_status arenas_caller(const struct arena *arenas, int n_arenas, wsgemm_handle *handle, const wsgemm_gemm_desc *d);

/* case_store, the call (typed or by descriptor), case_judge; also that A and B are unchanged, and
 * that this thread's floating-point exception flags (inexact apart) stay down: none of the values
 * of a stage calls for one. `who` goes into messages. */
bool run_case(struct stage *stage, wsgemm_handle *handle, wsgemm_gemm_desc *d, const struct layout_of_case *layout, bool typed,
              enum judge how, const char *who);

/* Whether the words of the message contain `word` whole: "m" is not found in "must". */
bool message_names(const char *message, const char *word);

/* That a call was refused with this status, and wsgemm_last_error names the argument (syrk's trans may
 * be called transa, a type by its member), its value and the least legal one; "": not asked for. */
void check_refusal(const char *what, wsgemm_status status, wsgemm_status expected, const char *argument, const char *value,
                   const char *least);

#endif
