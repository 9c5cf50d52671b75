/* operand_copies.h - copies of 16-bit operands that TMA does not take as they are. */
#ifndef WS_CUDA_OPERAND_COPIES_H
#define WS_CUDA_OPERAND_COPIES_H
#include "cuda/host/chunks.h"
#include "cuda/host/tma_maps.h"
#include "cuda/shared/align_copy_args.h"

/* Bytes of an operand's copy; 0: it is taken as it is. */
double ws_align_copy_bytes(const ws_strided *x);

/* Of both operands (ws_chunk_bytes); 0: both are taken as they are. */
double ws_align_copies_bytes(const ws_problem *p, double *of_a, double *of_b);

/* Turns x into a copy at `to`, and says in *op how it is made. */
void ws_align_copy_to(ws_strided *x, char *to, ws_align_copy_operand *op);

/* Turns the residual into a copy of C at `to`, which may be NULL; returns its bytes, whole 256. */
double ws_copy_c(ws_problem *p, char *to, ws_align_copy_operand *op);
#endif
