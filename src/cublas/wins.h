/* wins.h - the table of wins.def: classes of products that wsgemm computes faster than cuBLAS. For take.c, which
 * asks it, and for the bench that measures its rows (bench/gpu/preload.c). */
#ifndef WS_CUBLAS_WINS_H
#define WS_CUBLAS_WINS_H
#include <stdint.h>

#include "wsgemm.h"

/* Of wins.def's rows; wsgemm_routine counts from 1. */
enum { WSGEMM_GEMM = 0, WSGEMM_GEMM_EPILOGUE = 100, WSGEMM_GEMM_POINTERS = 101 };
typedef enum ws_layout_class { ANY, ODD } ws_layout_class;

typedef struct ws_cublas_win {
  int routine;
  wsgemm_type type;
  wsgemm_math math;
  int64_t least_mn, least_k;
  double least_products;
  ws_layout_class layout;
  double saved; /* us */
} ws_cublas_win;

static const ws_cublas_win wins[] = {
#define WIN(routine, type, math, least_mn, least_k, least_products, layout, saved) \
  {WSGEMM_##routine, WSGEMM_##type, WSGEMM_MATH_##math, least_mn, least_k, least_products, layout, saved},
#include "cublas/wins.def"
#undef WIN
};
enum { N_WINS = sizeof wins / sizeof wins[0] };

#endif
