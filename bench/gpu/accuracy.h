/* accuracy.h - errors of single-precision products beside cuBLAS's sgemm, over distributions of
 * the operands and over k. */
#ifndef WSGEMM_BENCH_ACCURACY_H
#define WSGEMM_BENCH_ACCURACY_H

/* Prints a table, and writes its lines to the bench's JSON file, if there is one. Needs cuBLAS. */
void run_accuracy(void);
#endif
