/* cublas_case.h - what the suites of the interposer share: device memory of the fake driver, a handle,
 * and a call of each routine with arguments of its own. */
#ifndef WSGEMM_TESTS_CUBLAS_CASE_H
#define WSGEMM_TESTS_CUBLAS_CASE_H

#include "cublas/cublas.h"
#include "fake_cublas.h"
#include "support/check.h"
#include "wsgemm_stub.h"

/* A current device of compute capability 9.0, with nothing forced, and memory on it: A, B, C. */
void begin_case(void);
extern char *matrix[3];
extern cublasHandle_t handle;

/* alpha = 2 (+ 3i), beta = 5 (+ 7i) of each type, in host memory. */
const void *alpha_of(wsgemm_type type), *beta_of(wsgemm_type type);

/* Sizes and lds of the calls: m, n, k and three lds that do for all of them; how many products by pointers. */
typedef struct sizes {
  long long m, n, k, lda, ldb, ldc, count;
} sizes;
extern sizes shape;

/* Every routine by its index in routines.def: the call with `shape`, op T of A and C of B where there
 * are ops, LEFT, LOWER, UNIT. `matrix` are also the arrays of pointers. */
typedef struct routine {
  ws_cublas_function function;
  const char *family;
  char letter;
  bool is_wide; /* 64-bit integers */
  cublasStatus_t (*call)(void);
} routine;
extern const routine routines[];
extern const int n_routines;

#endif
