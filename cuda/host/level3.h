/* level3.h - products with a structured operand, and triangular systems: cut into diagonal blocks
 * (triangle.cuh) and products of general blocks, which read the operand where it lies.
 *
 * How they are cut follows from the structured operand's size and type alone, so the bits of a column
 * of C do not depend on the others. */
#ifndef WS_CUDA_LEVEL3_H
#define WS_CUDA_LEVEL3_H
#include "core/system.h"
#include "cuda/host/executor.h"

static inline bool ws_is_structured(const ws_problem *p) { return p->a.structure != WS_GENERAL || p->b.structure != WS_GENERAL; }

wsgemm_status ws_run_structured(ws_executor *x, const ws_problem *p);
wsgemm_status ws_run_system(ws_executor *x, const ws_system *s);

/* The largest product of general operands that they are cut into; false: there is only a diagonal
 * block. */
bool ws_largest_of_structured(const ws_problem *p, ws_problem *largest);
bool ws_largest_of_system(const ws_system *s, ws_problem *largest);
/* The size of diagonal blocks: of products that go elsewhere (adds), and of all others. */
int ws_diagonal_block(wsgemm_type type, bool adds);

/* Device memory that they work faster with. */
double ws_structured_bytes(const ws_call *call, const ws_problem *p, const ws_device *device);
double ws_system_bytes(const ws_call *call, const ws_system *s, const ws_device *device);
#endif
