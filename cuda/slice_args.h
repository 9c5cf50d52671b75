/* slice_args.h - what the kernels are told that cut operands of floats into slices of 16 bits (slice_kernels.cuh). Shared by C and CUDA.
 *
 * A row of A, or a column of B (here: an x, of n_x), is multiplied by the power of two that brings its largest element into [2^14, 2^15). Of an
 * element y after that
 *
 *   slice 0 = fp16(y),   slice 1 = fp16((y - slice 0) 2^11),   so y = slice 0 + 2^-11 slice 1, to 2^-23 |y| or to 2^-36
 *
 * An x is marked if one of its elements is not represented well enough (`tolerance`), or is no finite number. What products need of marked rows
 * and columns is computed by multiply-adds (marked_kernel.cuh), whatever the slices hold. */
#ifndef WS_CUDA_SLICE_ARGS_H
#define WS_CUDA_SLICE_ARGS_H
#include <stdint.h>

/* Elements as they stand in memory: line l of product p begins at element p * stride + l * ld of `from`; a line is k of one x, or the x of
 * one k. Slice s of product p is the lines (p * n_slices + s) * n_lines + l of `pitch` elements of `to`. */
typedef struct ws_slice_operand {
  const float *from;
  uint16_t *to;
  uint32_t *maxima; /* bits of the largest magnitude in chunk c of k: at [(p * n_chunks + c) * n_x + x] */
  int32_t *scales;  /* at [p * scales_pitch + x]: WS_SCALE_BIAS - the exponent of the factor, + WS_SCALE_MARKED */
  uint32_t *n_marked;
  int64_t n_x, n_k, n_products, ld, stride, pitch, scales_pitch;
  int32_t along_k, vectors; /* vectors: lines begin where 16 bytes may be read at a time */
  int32_t n_chunks;         /* of chunk_k each, at most WS_SLICE_CHUNKS */
  int32_t chunk_k;          /* a multiple of 64 */
} ws_slice_operand;

typedef struct ws_slice_args {
  ws_slice_operand operand[2]; /* n_products = 0: none */
  float tolerance;             /* of |y - its slices| / |y| */
  int32_t n_slices;
} ws_slice_args;

enum { WS_SCALE_BIAS = 512, WS_SCALE_MARKED = 1 << 20, WS_SLICE_CHUNKS = 32 };
/* What a block takes at a time: so many x of a chunk if x are contiguous, else so many lines (one for each warp). */
enum { WS_SLICE_THREADS = 256, WS_SLICE_X = 128, WS_SLICE_LINES = WS_SLICE_THREADS / 32 };
#endif
