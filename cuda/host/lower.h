/* lower.h - launches of a plan: lists for what comes before the product, for each chunk of C, or
 * for the product as it is, and for what comes after it. They go onto one stream in this order. */
#ifndef WS_CUDA_LOWER_H
#define WS_CUDA_LOWER_H
#include "cuda/host/gemm_plan.h"
#include "cuda/host/launch.h"
#include "cuda/host/small.h"

/* residual_at: memory for the copy of C (plan->residual_bytes). */
wsgemm_status ws_lower_first(wsgemm_handle *h, ws_gemm_plan *plan, char *residual_at, ws_device *device, ws_launch_list *list);

/* A chunk of a product by tensor maps (ws_is_by_map); a_at, b_at: memory for its operands' other
 * form. */
wsgemm_status ws_lower_chunk(wsgemm_handle *h, const ws_gemm_plan *plan, const ws_problem *chunk, const ws_chunk_place *place,
                             char *a_at, char *b_at, ws_device *device, ws_launch_list *list);

/* Of a row of small.def: blocks that stay, as many as an SM has room for. */
ws_launch *ws_add_small(ws_launch_list *list, const ws_cuda_row *row, CUkernel kernel, const ws_small_args *args,
                        const ws_small_shape *shape, const ws_device *device);

/* Any other product. */
wsgemm_status ws_lower_product(wsgemm_handle *h, const ws_gemm_plan *plan, const ws_device *device, ws_launch_list *list);
/* In its place, where list->lacks_sums. */
wsgemm_status ws_lower_without_sums(wsgemm_handle *h, const ws_gemm_plan *plan, ws_device *device, ws_launch_list *list);

wsgemm_status ws_lower_last(wsgemm_handle *h, const ws_gemm_plan *plan, ws_device *device, ws_launch_list *list);

/* What makes a packed operand. */
wsgemm_status ws_lower_packing(wsgemm_handle *h, const wsgemm_packed *packed, ws_device *device, ws_launch_list *list);
#endif
