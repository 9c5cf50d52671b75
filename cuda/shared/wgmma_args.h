/* wgmma_args.h - arguments of a kernel on Hopper's tensor cores. Shared by C and CUDA; one constant
 * parameter. */
#ifndef WS_CUDA_WGMMA_ARGS_H
#define WS_CUDA_WGMMA_ARGS_H
#include <cuda.h>
#include <stdint.h>

#include "core/tile.h"
#include "cuda/sched/sched.h"
#include "cuda/shared/epilogue_args.h"
#include "cuda/shared/region_args.h"
#include "cuda/shared/slice_args.h"

/* A or B, by lines: what is contiguous is a line (x, that is m or n, of one k; or k of one x). The
 * tensor maps are of 3 dimensions: along a line, from line to line, from product to product; boxes
 * of 64 elements (128 bytes, swizzled) of some lines. */
typedef struct ws_wgmma_operand {
  CUtensorMap map;
  int32_t along_k; /* a line is k of one x */
  int32_t n_slabs; /* if not: how many boxes of 64 x a block loads of a k block, at most */
  /* product b of the batch: the map's batch_first + b * batch_step */
  int32_t batch_first, batch_step;
} ws_wgmma_operand;

/* Products of slices: the scales of row i of product b are at of_m[b * pitch_m + i], of column j at
 * of_n[b * pitch_n + j], likewise those of groups and lists (slice_args.h; pitch 0: the operand is the same
 * in all products). */
typedef struct ws_wgmma_scales {
  const int32_t *of_m, *of_n, *groups_m, *groups_n, *listed_m, *listed_n;
  int64_t pitch_m, pitch_n, groups_pitch_m, groups_pitch_n, listed_pitch_m, listed_pitch_n;
  const ws_slice_state *state_m, *state_n;
  int64_t n_m, n_n; /* how many rows, and columns, the states count (ws_slice_operand) */
} ws_wgmma_scales;

typedef struct ws_wgmma_args {
  ws_wgmma_operand a, b;
  CUtensorMap c;          /* not looked at if !c_by_map */
  ws_tile_divisors tiles; /* of the grid; of rows that end with their item, which find it alone */
  int32_t n_k_blocks;     /* of these rows */
  int32_t stage_bytes;    /* that come to a block for a k block */
  int32_t is_plain;       /* 16-bit C of the operands' type, by its map, with alpha alone */
  ws_sched_args sched;
  ws_tile_grid grid; /* coarse: the tiles of all blocks of a cluster */
  int64_t m, n, k;   /* of complex types: as reals (slice_args.h), and so are ldc and stride_c */
  void *c_data;
  int64_t ldc, stride_c;
  /* of slices: which operand is triangular (0: none, 1: A, 2: B), and its triangle (ws_region) */
  int32_t triangular, triangle;
  ws_region_args region;                /* of slices; of complex types its rows are pairs of rows */
  float alpha, beta, alpha_im, beta_im; /* im: of complex types */
  int32_t beta_zero;
  int32_t type_c;   /* ws_half_c_type */
  int32_t c_by_map; /* C may be stored by its map */
  /* m, n, A and B are exchanged: the kernel computes C transposed, and stores it as it is
   * (c_by_map, alpha * sum) */
  int32_t is_across;
  /* of C, two rows may be accessed at once, beginning with an even one */
  int32_t c_pairs;
  int32_t residual_pairs; /* of the residual, too */
  /* so few steps (ws_is_simple) that their code may be repeated for every fragment */
  int32_t is_simple;
  ws_epilogue_args epilogue; /* of 16-bit types */
  ws_wgmma_scales scales;    /* of slices */
} ws_wgmma_args;
#endif
