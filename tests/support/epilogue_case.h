/* epilogue_case.h - bias, activation, scale, residual and column sums of wsgemm_gemm against the
 * same steps one after the other: a plain product (for half precision into floats, so that nothing
 * is rounded early), then each step rounded as the header says. Without an activation, and with
 * RELU, the result is that number; the other activations may be off, so C lies between what the
 * neighbours of the exact one give.
 *
 * All that a case reads and writes stands in arenas, guards and all. The suites of host memory and
 * of device memory run the same cases; who calls the library, and where the arenas lie meanwhile,
 * is epilogue_backend's business. */
#ifndef WSGEMM_TESTS_EPILOGUE_CASE_H
#define WSGEMM_TESTS_EPILOGUE_CASE_H

#include "gemm_call.h"

/* A type of A and B, and of C. */
enum { N_TYPE_PAIRS = 8, N_ACTIVATIONS = 5 };
extern const wsgemm_type type_pairs[N_TYPE_PAIRS][2];
extern const wsgemm_epilogue activations[N_ACTIVATIONS];

extern struct epilogue_backend {
  arenas_caller *call; /* at first: wsgemm_gemm where they are */
  /* activations of half-precision products are within 8 |z| 2^-24, at first within an ulp */
  bool has_short_half_acts;
} epilogue_backend;

/* What stands in an arena of its own: two operands, C, the plain product, and the parts of the
 * epilogue. */
enum { PART_A, PART_B, PART_C, PART_PLAIN, PART_BIAS, PART_RESIDUAL, PART_SUMS, N_PARTS };

/* The arenas of many cases, for m, n <= most, k <= most_k and batches of up to MOST_BATCH. */
enum { MOST_BATCH = 3 };
struct epilogue_stage {
  struct arena arena[N_PARTS];
  double *residual; /* before the call, product by product, row by row */
  struct check_random rng;
};
struct epilogue_stage epilogue_stage_new(int64_t most, int64_t most_k, unsigned long long salt);
void epilogue_stage_free(struct epilogue_stage *stage);

/* A batch is one matrix here, whose products follow each other; so its guards are those of a
 * matrix. A and B are shared by its products. */
struct epilogue_case {
  wsgemm_gemm_desc d; /* pointers, lds and strides are filled in when the operands are stored */
  bool has_bias, has_residual, residual_is_c, has_sums;
  int pad[N_PARTS];
  enum place place[N_PARTS];
  struct matrix stored[N_PARTS];
};

/* A case of that size: all that is not given is drawn. */
struct epilogue_case epilogue_case_draw(struct epilogue_stage *stage, int pair, int activation, wsgemm_layout layout, int64_t m,
                                        int64_t n, int64_t k);

/* Stores all that the case reads, and makes its plain product by the same handle. */
void epilogue_case_store(struct epilogue_stage *stage, wsgemm_handle *handle, struct epilogue_case *x);

/* Stores, calls, judges: C, the sums, the guards, that the operands are unchanged, and that no
 * floating-point exception flag is raised. */
bool epilogue_case_run(struct epilogue_stage *stage, wsgemm_handle *handle, struct epilogue_case *x);

/* ---- cases for every backend ----------------------------------------------------------------- */

/* Every pair of types x activation x layout x part of the epilogue, at sizes round the edges of
 * tiles. */
void epilogue_against_steps(void);

/* Activations of all halves; of floats and doubles of every size and sign, with NaN, Inf, zeros,
 * the least and the largest among them, with a product (of zeros) and without. Nothing finite or
 * infinite raises more than underflow. */
void epilogue_whole_range(void);

/* NaN and Inf go through bias, scale and residual as through sums; column sums too. */
void epilogue_spreading(void);

/* The sum of a column has the same bits whether its elements lie beside each other or not, after a
 * product and without one. */
void epilogue_sums_in_both_layouts(void);

/* Neither what `set` sets for a turn nor running again changes a bit of C or of the sums. Turn 0 is
 * the one that the others are compared with. */
typedef void epilogue_settings(wsgemm_handle *handle, int turn, struct check_random *rng);
void epilogue_same_bits(int64_t m, int64_t n, int64_t k, epilogue_settings *set);

#endif
