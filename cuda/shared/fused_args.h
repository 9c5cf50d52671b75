/* fused_args.h - arguments of the kernel that splits floats where it multiplies them
 * (gemm_fused.cuh). Shared by C and CUDA; one constant parameter. */
#ifndef WS_CUDA_FUSED_ARGS_H
#define WS_CUDA_FUSED_ARGS_H
#include <cuda.h>
#include <stdint.h>

/* A or B, as R or S: element (x, k) at x * ld + k, or where x is contiguous at k * ld + x. The map is
 * not looked at where threads load; it has 3 dimensions, and boxes of 32 floats (128 bytes,
 * swizzled): of 128 x (S: as many as a tile has), or of 32 k. */
typedef struct ws_fused_operand {
  CUtensorMap map;
  const float *from;
  int64_t ld;
  int32_t n_x, unused;
} ws_fused_operand;

typedef struct ws_fused_args {
  ws_fused_operand r, s;
  float *c; /* element (r, s) at r * c_r + s * c_s; one of these is 1 */
  int64_t c_r, c_s;
  int32_t n_k, n_tiles_r, n_tiles_s;
  int32_t n_parts; /* of k: the blocks of a cluster, which then has one tile */
  float alpha, beta;
} ws_fused_args;
#endif
