/* wheels.c - the products that NumPy's wheels from PyPI call, by the names of the OpenBLAS that they bring: a
 * preloaded library is asked first. All else stays with that OpenBLAS. */
#include "blas/cblas.h"

#define INT int64_t
#define WIDTH WS_64
#define ENTRY(name) scipy_cblas_##name##64_

CBLAS_gemm(sgemm, s) CBLAS_gemm(dgemm, d) CBLAS_gemm(cgemm, c) CBLAS_gemm(zgemm, z) CBLAS_syrk(ssyrk, s) CBLAS_syrk(dsyrk, d)
    CBLAS_syrk(csyrk, c) CBLAS_syrk(zsyrk, z)
