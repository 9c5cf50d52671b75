/* cublas_level3.h - functions of cuBLAS's Level 3 with 64-bit integers, as benches call them by name (cublas_api.h:
 * handles and scalars by pointer, enumerations as int). */
#ifndef WSGEMM_BENCH_CUBLAS_LEVEL3_H
#define WSGEMM_BENCH_CUBLAS_LEVEL3_H
#include <stdint.h>

enum { CUBLAS_LEFT = 0, CUBLAS_LOWER = 0, CUBLAS_N = 0, CUBLAS_NON_UNIT = 0, CUBLAS_UNIT = 1 };

typedef int symm_fn(void *, int, int, int64_t, int64_t, const void *, const void *, int64_t, const void *, int64_t, const void *,
                    void *, int64_t);
typedef int syrk_fn(void *, int, int, int64_t, int64_t, const void *, const void *, int64_t, const void *, void *, int64_t);
typedef int syr2k_fn(void *, int, int, int64_t, int64_t, const void *, const void *, int64_t, const void *, int64_t, const void *,
                     void *, int64_t);
typedef int trmm_fn(void *, int, int, int, int, int64_t, int64_t, const void *, const void *, int64_t, const void *, int64_t,
                    void *, int64_t);
typedef int trsm_fn(void *, int, int, int, int, int64_t, int64_t, const void *, const void *, int64_t, void *, int64_t);

#endif
