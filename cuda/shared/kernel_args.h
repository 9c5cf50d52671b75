/* kernel_args.h - arguments of a GEMM kernel. Shared by C and CUDA; one constant parameter. */
#ifndef WS_CUDA_KERNEL_ARGS_H
#define WS_CUDA_KERNEL_ARGS_H
#include <stddef.h>
#include <stdint.h>

#include "core/tile.h"
#include "cuda/sched/sched.h"
#include "cuda/shared/epilogue_args.h"
#include "cuda/shared/grid_barrier.h"
#include "cuda/shared/region_args.h"

/* How an operand is brought to shared memory; the backend picks the widest that pointer, ld and
 * stride allow. */
typedef enum ws_copy_mode {
  WS_COPY_VECTORS_MN, /* 16 bytes along the contiguous m or n */
  WS_COPY_ALONG_MN,   /* single elements, m or n contiguous */
  /* 16 bytes along the contiguous k, where the mainloop keeps them so (mma; else as below) */
  WS_COPY_VECTORS_K,
  WS_COPY_ALONG_K /* single elements, k contiguous */
} ws_copy_mode;

/* Element (x, p) of an operand, x along m or n, p along k, is at data[x * step_mn + p * step_k];
 * one of the steps is 1. */
typedef struct ws_operand {
  const void *data;
  int64_t step_mn, step_k, stride; /* stride: from product to product of a batch */
  int32_t mode;                    /* ws_copy_mode */
  int32_t whole_elements;          /* complex: aligned to an element, not only to its real parts */
  int32_t conj;
  int32_t pairs; /* of 16-bit elements: aligned to two of them */
} ws_operand;

static inline WS_HOST_DEVICE int ws_is_along_k(const ws_operand *op) { return op->mode >= WS_COPY_VECTORS_K; }

/* k split into parts (split_k.cuh): part s sums k from s * k_per_split on. Its sum of element (i,
 * j) of product b is at sums[((b * n_splits + s) * n + j) * ld + i]. */
typedef struct ws_split_args {
  int32_t n_splits;
  int64_t k_per_split;
  int64_t ld;
  /* NULL: no memory for them; each tile's parts are summed by its owner */
  void *sums;
  ws_grid_barrier *barrier; /* of this launch, if there are sums */
} ws_split_args;

/* What the beginning of an item wants stands in front, then what its end wants: constants come to a kernel line by line. */
typedef struct ws_gemm_args {
  /* Of kernels that work out an item's place in every thread: the grid's, and that of the blocks which share an item. */
  ws_tile_divisors tiles;
  ws_divisor sharers;
  ws_region_args region;
  /* which operand is triangular, with zeros in memory (0: none, 1: A, 2: B), and its triangle
   * (ws_region): blocks of k that have only zeros may be passed over */
  int32_t triangular, triangle;
  int64_t m, n, k;
  ws_operand a, b;
  /* The operand of which one triangle is stored, and read where it lies, by the rows that do so (copied_args.h; 0: none, 1: A, 2: B). */
  int32_t structured;
  void *c;
  int64_t ldc, stride_c;
  union {
    float s[2];
    double d[2];
  } alpha, beta; /* re, im */
  int32_t beta_zero;
  int32_t c_vectors; /* columns of C may be written 16 bytes at a time */
  int32_t type_c;    /* ws_half_c_type; C of other types is of the type of A and B */
  ws_tile_grid grid; /* split with sums: every part is a product of its own */
  ws_sched_args sched;
  ws_split_args split;
  ws_epilogue_args epilogue;
} ws_gemm_args;

/* So many lines of 64 bytes hold what an item begins with, up to `structured`; parameters begin 16 bytes behind a line. */
enum { WS_GEMM_FIRST_LINES = (16 + offsetof(ws_gemm_args, structured) + sizeof(int32_t) + 63) / 64 };
#endif
