/* gemm_plan.h - what a call on matrices comes to, decided once: which arithmetic, which rows, what
 * memory. From the problem, the handle and the device alone; nothing is launched or taken. lower.h
 * makes launches of it. */
#ifndef WS_CUDA_GEMM_PLAN_H
#define WS_CUDA_GEMM_PLAN_H
#include "cuda/host/chunks.h"
#include "cuda/host/float_copies.h"
#include "cuda/host/plan.h"

/* Points into itself: not to be copied. */
typedef struct ws_gemm_plan {
  const ws_problem *problem;
  bool multiplies;
  const ws_problem *product; /* the problem, or that without its epilogue, if that comes after it */
  ws_problem without_epilogue;
  int n_slices; /* of a product by slices */
  ws_gpu_plan row, row_of_three;
  bool has_steps; /* over C as it is: of the epilogue, or beta C */
  ws_problem steps;
  int64_t residual_bytes; /* for a copy of C, its own residual; 0: there is none */
  ws_float_copies copies; /* of a product by tiled rows, and that with them; bytes 0: none */
  ws_problem copied;
  ws_copies_need need; /* with all that; 0: no copies */
  ws_chunks chunks;    /* of a product by tensor maps (ws_is_by_map), with need.whole */
} ws_gemm_plan;

/* The device's context must be current; kernels are loaded. in_parts: it is run part by part (ws_run_part), for which float copies are
 * not made. */
wsgemm_status ws_gemm_plan_make(const ws_call *call, const ws_problem *p, ws_device *device, const ws_caller_workspace *workspace,
                                bool in_parts, ws_gemm_plan *plan);

/* For a copy of C that is its own residual; else 0. */
double ws_bytes_for_residual(const ws_problem *p);

/* Bytes that a call may have for copies, if the device has room for them: of the caller's
 * workspace, else of the library's own memory. */
double ws_most_copies_bytes(const ws_caller_workspace *w, const ws_device *device);

/* Memory for copies that the product, and none that is smaller, may need at most. false: none. */
bool ws_gemm_most_need(const ws_call *call, const ws_problem *p, const ws_device *device, double most, ws_copies_need *need);

/* What a row of that kind multiplies: the problem, or one like it (*copied) whose operands are copies, within `most` bytes; *copies:
 * which. Their memory is not known yet. */
const ws_problem *ws_gemm_with_copies(const ws_call *call, const ws_problem *p, const ws_device *device, ws_row_kind kind,
                                      double most, ws_float_copies *copies, ws_problem *copied);

/* What the operands' other form needs: slices, or (n_slices 0) copies. */
ws_chunk_bytes *ws_bytes_of_form(int n_slices);

/* Memory that the call works faster with: for copies, or for partial sums; what of it a row's
 * operands or sums take. */
double ws_gpu_workspace_bytes(const ws_call *call, const ws_problem *p, const ws_device *device);
double ws_gpu_operand_bytes(const ws_call *call, const ws_problem *p, ws_row_kind kind, int n_slices, const ws_device *device);
#endif
