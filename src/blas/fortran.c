/* fortran.c - the Fortran entry points: name_ with 32-bit integers, name_64_ with 64-bit ones.
 *
 * All arguments are pointers. The lengths of character arguments, which Fortran passes behind the
 * others, are not looked at, so C programs may leave them out. */
#include "blas/fortran.h"

#define ROUTINE(name, family, letter) FORTRAN_##family(name, letter)

#define INT int32_t
#define WAY WS_FORTRAN
#define ENTRY(name) name##_
#include "blas/routines.def"
#undef INT
#undef WAY
#undef ENTRY

#define INT int64_t
#define WAY (WS_FORTRAN | WS_64)
#define ENTRY(name) name##_64_
#include "blas/routines.def"
