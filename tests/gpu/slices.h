/* slices.h - what the suites of products by slices (cuda/shared/slice_args.h; compute capability
 * 9.0) share: their rows, numbers of all kinds, the judge at the ends of the range, and the cases
 * that are the same for F32 and C32, but for the type.
 *
 * A number has one part (re) or two (re, im), which are floats. A suite seeds `rng` and opens rows;
 * all that is drawn and called here is drawn from the one and called on the others. */
#ifndef WSGEMM_TESTS_SLICES_H
#define WSGEMM_TESTS_SLICES_H
#include "gpu.h"

extern struct check_random rng;
int64_t drawn(int64_t low, int64_t high);
double unit(void);
bool heads(void);

int n_parts(wsgemm_type type);

/* ---- Rows of slices, and what explain says of them: slices.c --------------------------------- */

/* gpu_open; ends the process with 77 (skipped) where no row of slices of this type is used. */
void gpu_open_for_slices(wsgemm_type type);

/* Their families. */
#define OF_THREE_PRODUCTS "f16x3"
#define OF_ONE_PRODUCT "f16x1"
#define OF_ANY_PRODUCTS "f16x3 f16x1"

/* Those of the type and the families, each in its numerics class; until rows_close(&rows). */
extern struct rows_of_type rows;
void open_sliced(wsgemm_type type, const char *families);
wsgemm_math math_of(const char *name);

/* By multiply-adds in the order of k, uncut: what unfit rows and columns are left to has its
 * bits. */
wsgemm_handle *pedantic_handle(wsgemm_type type);

/* The caller's workspace; NULL and 0: the library's own. */
void workspace_of(wsgemm_handle *h, void *memory, size_t bytes);

/* A plain product of these sizes in device memory, for explain alone. */
wsgemm_gemm_desc to_explain(wsgemm_type type, int64_t m, int64_t n, int64_t k);
/* The kernel that explain names; valid until the next call. */
const char *kernel_of(wsgemm_handle *h, const wsgemm_gemm_desc *d);
/* That row i of `rows` is used for a product of these sizes. */
void check_used(int i, int64_t m, int64_t n, int64_t k);

/* Rows and columns of all products so far for which two slices did not do. */
int64_t n_fallbacks(void);

/* ---- Sizes, scalars, operands, the bound: slices.c ------------------------------------------- */

/* One time in three next to an edge of tiles. */
int64_t drawn_side(int64_t most);
int64_t drawn_k(int64_t most); /* from 128 on */

/* Layout, ops and scalars as drawn: 0 (beta), real, and of complex numbers also imaginary and
 * neither. */
wsgemm_gemm_desc drawn_desc(wsgemm_type type, int64_t m, int64_t n, int64_t k);

/* Rows of op(A), or columns of op(B), of which this is one part: n of them, of k elements each. */
struct lines {
  double *part;
  int64_t n, k, next_line, next_k;
  int n_parts; /* of an element */
};
struct lines lines_of(const struct stage *stage, bool is_b, int part);
double *element(const struct lines *x, int64_t line, int64_t p);
void put(const struct lines *x, int64_t line, int64_t p, double value); /* rounded to a float */
void fill_each(const struct lines *x, double (*draw)(void));
void fill_c(const struct stage *stage); /* of the size of what is added to it */

/* With 24 digits, in [2^e, 2^(e + 1)) or the negative; no larger than a float can be. */
double number(int e);

/* Stores the stage's operands, and makes the call that d says; C is for others to judge. */
void store_and_call(struct stage *stage, wsgemm_handle *h, wsgemm_gemm_desc *d, const struct layout_of_case *where,
                    const char *who);

double gamma_of(int64_t k);

/* Parts of C that should be finite: within the bound, where results and what they are made of may
 * also be subnormal, and parts of |A| |B| may be lost besides. Returns how many results are
 * subnormal. */
int judge_at_the_ends(const struct stage *stage, const wsgemm_gemm_desc *d, double lost, const char *who);

/* ---- Cases: slices_numerics.c, slices_bits.c ------------------------------------------------- */

/* Within the bound whatever numbers A and B hold. */
void distributions_of(wsgemm_type type);
/* Rows and columns for which two slices will not do: they, and they alone, come from three, or have
 * the multiply-adds' bits. */
void marked_is_needed_of(wsgemm_type type);
void gathered_of(wsgemm_type type);
/* NaN, Inf and 0 in A, B and C. */
void classes_of(wsgemm_type type);
/* One slice: within the bound of TF32. Which numerics class uses which rows, if one is forced. */
void tf32_of(wsgemm_type type);
/* The same if none is forced. */
void unforced_of(wsgemm_type type);

enum { ALL_NEED_3 = -1 }; /* in place of a number of marks */
/* One digest over rows of three products, policies, quanta, runs and alignments, also where the
 * product is cut into pieces that fit `few` bytes; few = 0: uncut. n_marks: in A. */
void bits_of(wsgemm_type type, int64_t m, int64_t n, int64_t k, int n_marks, size_t few, wsgemm_op transa, wsgemm_op transb);
/* Graphs have the bits of direct calls, whatever is fallback. */
void captured_of(wsgemm_type type);
/* Strided batches have those of their products one by one. */
void batches_of(wsgemm_type type);

/* The same n numbers, of which a few mark their rows and columns, at whole 16 bytes, and one float
 * off. */
struct twice {
  float *at[2], *memory[2];
};
struct twice twice_new(wsgemm_type type, int64_t n, int n_marks);
void twice_free(struct twice *x);
#endif
