/* group_args.h - arguments of the kernels of groups (kernels/group_product.cuh): products of one kind whose
 * sizes and places are in device memory, in terms of the problem (core/groups.h). Shared by C and CUDA;
 * constant parameters. */
#ifndef WS_CUDA_GROUP_ARGS_H
#define WS_CUDA_GROUP_ARGS_H
#include "cuda/shared/copied_args.h"

/* Where a matrix of each group lies: in array[g], or stride elements behind the one before. */
typedef struct ws_group_matrix {
  const void *data;
  const void *const *array; /* NULL: data */
  const void *ld_array;     /* NULL: ld */
  int64_t ld, stride;       /* stride: 0 of what is ragged, which is one matrix for all groups */
  int32_t along_k;          /* A, B: k is contiguous */
  int32_t bytes;            /* of an element */
} ws_group_matrix;

typedef struct ws_group_args {
  ws_copied_args common; /* what groups share; m, n, k: of each, the most of any, or of all ragged ones together */
  ws_group_matrix a, b, c;
  const void *alpha, *beta; /* of all groups; NULL: common */
  const void *ends;         /* of ragged groups; NULL: ws_grouped_ends has them */
  const void *m, *n, *k;    /* NULL: common */
  int32_t ragged;           /* wsgemm_ragged */
  int32_t index_bytes;      /* of the arrays above: 4 or 8 */
  int32_t n_groups;
  int32_t reads_operands;   /* 0: as if every k were 0 */
  int32_t bias_bytes;       /* of an element */
  ws_divisor product_tiles; /* d: tiles of each group, if all have as many; else 0 */
} ws_group_args;
#endif
