/* offload_xt.h - cublasXt, the peer of products of host matrices. */
#ifndef WSGEMM_BENCH_OFFLOAD_XT_H
#define WSGEMM_BENCH_OFFLOAD_XT_H
#include "offload_case.h"

/* On the first n_devices GPUs; peer: "cublasXt 13.1.0". false: there is none. */
bool xt_open(int n_devices, char peer[64]);
/* Whether it has the routine for this type. */
bool xt_has(const offload_case *t);
/* The call, in blocks of so many rows and columns. */
bool xt_run(const offload_case *t, int block);
#endif
