/* ukr_avx512.c - the micro-kernels of the avx512 rows of kernels.def for real numbers: the shared tile and vector
 * kernels over simd_avx512.h. Those for complex numbers are in a file of their own, as compilers take minutes for each. */
#include "cpu/kernels/simd_avx512.h"

#include "cpu/kernels/pack_avx512.h"
#include "cpu/kernels/store_rows_avx512.h"
#include "cpu/kernels/ukr.h"

#define WS_CPU_ROWS_AVX512
#include "cpu/kernels/kernel_shapes.h"

#define WS_T s
#define WS_R float
#define WS_L s
#define WS_UNIT 1
#define WS_MV 2
#define WS_NR 12
#define WS_NR_3 8
#define WS_NR_4 6
#define WS_PACK pack_avx512_4
#define WS_TRANSPOSE transpose_avx512_4
#define WS_STORE_ROWS store_rows_4
#include "cpu/kernels/ukr_type.h"

#define WS_T d
#define WS_R double
#define WS_L d
#define WS_UNIT 1
#define WS_MV 2
#define WS_NR 12
#define WS_NR_3 8
#define WS_NR_4 6
#define WS_PACK pack_avx512_8
#define WS_TRANSPOSE transpose_avx512_8
#define WS_STORE_ROWS store_rows_8
#include "cpu/kernels/ukr_type.h"

#include "cpu/kernels/convert.h"
