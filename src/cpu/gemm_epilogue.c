/* gemm_epilogue.c - a product with an epilogue: half precision does it on its way to memory, all
 * else in a walk over C behind the product; a residual that is C itself is kept first. */
#include <string.h>

#include "core/status.h"
#include "cpu/epilogue.h"
#include "cpu/paths.h"
#include "cpu/run.h"
#include "cpu/workspace.h"

/* A copy of C without gaps at `to`, in *p the residual from now on. */
static void keep_residual(ws_problem *p, char *to) {
  const int bytes = ws_types[p->c.type].bytes;
  p->epilogue.residual = to, p->epilogue.ld_residual = p->m, p->epilogue.stride_residual = p->m * p->n;
  for (int64_t batch = 0; batch < p->batch_count; batch++)
    for (int64_t j = 0; j < p->n; j++, to += p->m * bytes) memcpy(to, ws_c_at(p, batch, 0, j, bytes), (size_t)(p->m * bytes));
}

static void run(const ws_call *call, const ws_problem *p, bool has_product, bool is_fused) {
  if (has_product) {
    ws_plan plan;
    ws_plan_make(call, p, &plan);
    ws_cpu_run(p, &plan);
  }
  ws_epilogue_walk(call, p, !is_fused, has_product);
}

/* Bytes of a residual that is kept on the stack. */
enum { SMALL = 4 * 1024 };

static __attribute__((noinline)) void run_beside_copy(const ws_call *call, ws_problem *apart, bool has_product, bool is_fused) {
  _Alignas(64) char small[SMALL];
  keep_residual(apart, small);
  run(call, apart, has_product, is_fused);
}

wsgemm_status ws_cpu_gemm_epilogue(const ws_call *call, const ws_problem *p) {
  const bool has_product = !ws_product_is_zero(p), is_fused = has_product && ws_is_half(p->a.type);
  if (!has_product || is_fused || !ws_residual_is_c(p)) {
    run(call, p, has_product, is_fused);
    return WSGEMM_SUCCESS;
  }
  ws_problem apart = *p; /* with its residual somewhere else: the product will be written over it */
  int64_t bytes;
  if (__builtin_mul_overflow(p->m * ws_types[p->c.type].bytes, p->n, &bytes) ||
      __builtin_mul_overflow(bytes, p->batch_count, &bytes))
    bytes = INT64_MAX;
  if (bytes <= SMALL) {
    run_beside_copy(call, &apart, has_product, is_fused);
    return WSGEMM_SUCCESS;
  }
  ws_workspace *memory = ws_workspace_get((size_t)bytes);
  if (!memory)
    return ws_fail(call->h, WSGEMM_ALLOC_FAILED, "no memory for a copy of c, its own residual: %lld bytes", (long long)bytes);
  keep_residual(&apart, ws_workspace_data(memory));
  run(call, &apart, has_product, is_fused);
  ws_workspace_put(memory);
  return WSGEMM_SUCCESS;
}
