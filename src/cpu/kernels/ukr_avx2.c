/* ukr_avx2.c - the micro-kernels of the avx2 rows of kernels.def: the shared tile and vector
 * kernels over simd_avx2.h. */
#include "cpu/kernels/simd_avx2.h"

#include "cpu/kernels/pack_avx2.h"
#include "cpu/kernels/store_rows_avx2.h"
#include "cpu/kernels/ukr.h"

#define WS_CPU_ROWS_AVX2
#include "cpu/kernels/kernel_shapes.h"

#define WS_T s
#define WS_R float
#define WS_L s
#define WS_UNIT 1
#define WS_MV 2
#define WS_NR 6
#define WS_NR_3 0
#define WS_NR_4 0
#define WS_PACK pack_avx2_4
#define WS_TRANSPOSE transpose_avx2_4
#define WS_STORE_ROWS store_rows_4
#include "cpu/kernels/ukr_type.h"

#define WS_T d
#define WS_R double
#define WS_L d
#define WS_UNIT 1
#define WS_MV 2
#define WS_NR 6
#define WS_NR_3 0
#define WS_NR_4 0
#define WS_PACK pack_avx2_8
#define WS_TRANSPOSE transpose_avx2_8
#define WS_STORE_ROWS store_rows_8
#include "cpu/kernels/ukr_type.h"

#define WS_T c
#define WS_R float
#define WS_L s
#define WS_UNIT 2
#define WS_MV 2
#define WS_NR 3
#define WS_NR_3 0
#define WS_NR_4 0
#define WS_PACK pack_avx2_8
#define WS_TRANSPOSE transpose_avx2_8
#define WS_STORE_ROWS store_rows_4x2
#include "cpu/kernels/ukr_type.h"

#define WS_T z
#define WS_R double
#define WS_L d
#define WS_UNIT 2
#define WS_MV 2
#define WS_NR 3
#define WS_NR_3 0
#define WS_NR_4 0
#define WS_PACK pack_avx2_16
#define WS_TRANSPOSE transpose_avx2_16
#define WS_STORE_ROWS store_rows_8x2
#include "cpu/kernels/ukr_type.h"

#include "cpu/kernels/convert.h"
