/* ukr_avx512_complex.c - the micro-kernels of the avx512 rows of kernels.def for complex numbers; see ukr_avx512.c. */
#include "cpu/kernels/simd_avx512.h"

#include "cpu/kernels/pack_avx512.h"
#include "cpu/kernels/store_rows_avx512.h"
#include "cpu/kernels/ukr.h"

#define WS_CPU_ROWS_AVX512
#include "cpu/kernels/kernel_shapes.h"

#define WS_T c
#define WS_R float
#define WS_L s
#define WS_UNIT 2
#define WS_MV 2
#define WS_NR 6
#define WS_NR_3 4
#define WS_NR_4 3
#define WS_PACK pack_avx512_8
#define WS_TRANSPOSE transpose_avx512_8
#define WS_STORE_ROWS store_rows_4x2
#include "cpu/kernels/ukr_type.h"

#define WS_T z
#define WS_R double
#define WS_L d
#define WS_UNIT 2
#define WS_MV 2
#define WS_NR 6
#define WS_NR_3 4
#define WS_NR_4 3
#define WS_PACK pack_avx512_16
#define WS_TRANSPOSE transpose_avx512_16
#define WS_STORE_ROWS store_rows_8x2
#include "cpu/kernels/ukr_type.h"
