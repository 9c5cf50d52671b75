/* grouped_args.h - arguments of the kernel of ragged groups (kernels/gemm_grouped.cuh). Shared by C and
 * CUDA; constant parameters.
 *
 * The kernel's m is what all groups have in full and is contiguous in C. Ragged columns: group g owns
 * columns ends[g - 1] .. ends[g] - 1 of B and C, and matrix g of A. Ragged k: it owns these lines of A
 * and B, and matrix g of C. */
#ifndef WS_CUDA_GROUPED_ARGS_H
#define WS_CUDA_GROUPED_ARGS_H
#include <cuda.h>
#include <stdint.h>

#include "cuda/sched/sched.h"
#include "cuda/shared/epilogue_args.h"

/* The ends of few groups that the host knows: a parameter of their own. */
enum { WS_GROUPED_MOST_GIVEN = 256 };
typedef struct ws_grouped_ends {
  int32_t end[WS_GROUPED_MOST_GIVEN];
} ws_grouped_ends;

/* Groups of which a block keeps the first item in shared memory. */
enum { WS_GROUPED_MOST_GROUPS = 1024, WS_GROUPED_SHARED_BYTES = 216 * 1024, WS_GROUPED_NARROW_SHARED_BYTES = 112 * 1024 };

typedef struct ws_grouped_args {
  CUtensorMap a, b, c;
  ws_sched_args sched; /* n_items: not known here */
  const void *ends;    /* n_groups numbers in device memory; NULL: ws_grouped_ends has them */
  int32_t ends_are_64, n_groups;
  int64_t total;    /* columns, or lines along k, that exist: no group may reach beyond */
  int32_t m, n, k;  /* n: of ragged k; k: of ragged columns; 0: nothing is added up */
  int32_t is_plain; /* neither beta nor an epilogue, C of 16 bits */
  int32_t type_c;   /* ws_half_c_type; of floats there is no map of C */
  int32_t beta_zero;
  float alpha, beta;
  void *c_data;
  int64_t ldc, stride_c; /* stride_c: from group to group, of ragged k */
  ws_epilogue_args epilogue;
} ws_grouped_args;
#endif
