/* cblas.c - the CBLAS entry points: cblas_name with 32-bit integers, cblas_name_64 with 64-bit ones. */
#include "blas/cblas.h"

#define ROUTINE(name, family, letter) CBLAS_##family(name, letter)

#define INT int32_t
#define WIDTH 0
#define ENTRY(name) cblas_##name
#include "blas/routines.def"
#undef INT
#undef WIDTH
#undef ENTRY

#define INT int64_t
#define WIDTH WS_64
#define ENTRY(name) cblas_##name##_64
#include "blas/routines.def"
