/* types.h - element types by letter, as the entry points' macros need them: s d c z, and the halves
 * b and h, whose C and scalars are floats. */
#ifndef WS_BLAS_TYPES_H
#define WS_BLAS_TYPES_H

#include "wsgemm.h"

/* An element, where pointers are passed on; a scalar; a real scalar of the same precision. */
#define ELEMENT_s float
#define ELEMENT_d double
#define ELEMENT_c void
#define ELEMENT_z void
#define ELEMENT_b wsgemm_bf16
#define ELEMENT_h wsgemm_f16
#define SCALAR_s float
#define SCALAR_d double
#define SCALAR_c wsgemm_cfloat
#define SCALAR_z wsgemm_cdouble
#define REAL_c float
#define REAL_z double
#define TYPE_s WSGEMM_F32
#define TYPE_d WSGEMM_F64
#define TYPE_c WSGEMM_C32
#define TYPE_z WSGEMM_C64
#define TYPE_b WSGEMM_BF16
#define TYPE_h WSGEMM_F16

/* CBLAS: real scalars come by value, complex ones by pointer; batches have arrays of them. */
#define VALUE_s float
#define VALUE_d double
#define VALUE_c const void *
#define VALUE_z const void *
#define LOAD_s(value) (value)
#define LOAD_d(value) (value)
#define LOAD_c(value) (*(const wsgemm_cfloat *)(value))
#define LOAD_z(value) (*(const wsgemm_cdouble *)(value))

#define ZERO_s(x) ((x) == 0)
#define ZERO_d(x) ((x) == 0)
#define ZERO_c(x) ((x).re == 0 && (x).im == 0)
#define ZERO_z(x) ((x).re == 0 && (x).im == 0)
#define ONE_s(x) ((x) == 1)
#define ONE_d(x) ((x) == 1)
#define ONE_c(x) ((x).re == 1 && (x).im == 0)
#define ONE_z(x) ((x).re == 1 && (x).im == 0)

#define IS_COMPLEX_s 0
#define IS_COMPLEX_d 0
#define IS_COMPLEX_c 1
#define IS_COMPLEX_z 1

#endif
