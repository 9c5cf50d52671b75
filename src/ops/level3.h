/* level3.h - the routines of Level 3, lowered to products and triangular systems. A descriptor that
 * comes here is checked, column-major, and has something to do; of trmm and trsm c says where the
 * result goes, and is never NULL. */
#ifndef WS_OPS_LEVEL3_H
#define WS_OPS_LEVEL3_H
#include "core/backend.h"

/* What a routine is computed as: products, one after the other, or a system. */
typedef struct ws_lowered {
  int n_products; /* 0: the system */
  ws_problem product[2];
  ws_system system;
} ws_lowered;
void ws_level3_lower(const wsgemm_level3_desc *d, ws_lowered *lowered);
/* A product with the system's matrices: how large they are, and where they lie. */
ws_problem ws_level3_product_like(const ws_system *s);

wsgemm_status ws_level3_run(const ws_call *call, const wsgemm_level3_desc *d);
/* See wsgemm_level3_workspace_size. */
wsgemm_status ws_level3_workspace_bytes(const ws_call *call, const wsgemm_level3_desc *d, size_t *bytes);
/* How ws_level3_run would run it, in words; the call itself is the caller's to name. */
void ws_level3_explain(const ws_call *call, const wsgemm_level3_desc *d, ws_text *t);
#endif
