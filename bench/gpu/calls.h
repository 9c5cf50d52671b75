/* calls.h - suite `calls`: what a call costs its thread, beside cuBLAS. */
#ifndef WSGEMM_BENCH_CALLS_H
#define WSGEMM_BENCH_CALLS_H
#include "wsgemm.h"

void run_calls(wsgemm_type type);
#endif
