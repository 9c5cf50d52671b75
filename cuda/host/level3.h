/* level3.h - products with a structured operand, and triangular systems: cut into diagonal blocks
 * (triangle.cuh) and products of general blocks, which read the operand where it lies.
 *
 * How they are cut follows from sizes, type and the memory that a call may have for copies; in
 * invariant mode from the structured operand's size and type alone, so that the bits of a column of
 * C do not depend on the others. */
#ifndef WS_CUDA_LEVEL3_H
#define WS_CUDA_LEVEL3_H
#include "core/system.h"
#include "cuda/host/executor.h"
#include "cuda/host/gemm_plan.h"

wsgemm_status ws_run_structured(ws_executor *x, const ws_problem *p);
wsgemm_status ws_run_system(ws_executor *x, const ws_system *s);

/* For words and tuning: the size of diagonal blocks, and one of the largest products as ws_run_gemm
 * gets it: of general operands, or what a diagonal block is multiplied as. bytes: device memory that
 * the call works faster with. */
typedef struct ws_level3_cut {
  int64_t block;
  bool by_slices, is_read_in_place, is_written_out; /* of structured products' diagonal blocks */
  bool has_product;
  ws_problem product;
  double bytes;
} ws_level3_cut;

/* most: bytes that the call may have for copies. */
ws_level3_cut ws_cut_structured(const ws_call *call, const ws_problem *p, const ws_device *device, double most);
ws_level3_cut ws_cut_system(const ws_call *call, const ws_system *s, const ws_device *device);
#endif
