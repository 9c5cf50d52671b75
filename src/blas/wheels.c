/* wheels.c - the CBLAS entry points by the names that NumPy's wheels from PyPI call them with, in the OpenBLAS
 * that they bring: a preloaded library is asked first. Of Level 3 alone: all else stays with that OpenBLAS. */
#include "blas/cblas.h"

#define ROUTINE(name, family, letter) CBLAS_##family(name, letter)
#define INT int64_t
#define WIDTH WS_64
#define ENTRY(name) scipy_cblas_##name##64_
#include "blas/routines.def"
