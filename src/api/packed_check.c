/* packed_check.c - whether a packed operand is one, and the one that a problem calls by that
 * name. */
#include "api/problem.h"
#include "core/status.h"

/* One operand of a problem. */
typedef struct operand {
  const void *data;
  bool along_k, conj;
  int64_t n_x, ld, n_batch, stride; /* n_x: m or n; n_batch: those that differ */
} operand;

static operand operand_of(const ws_problem *p, bool is_a) {
  operand x = {.data = is_a ? p->a.data : p->b.data,
               .along_k = is_a ? p->a.trans : !p->b.trans,
               .conj = is_a ? p->a.conj : p->b.conj,
               .n_x = is_a ? p->m : p->n,
               .ld = is_a ? p->a.ld : p->b.ld,
               .n_batch = 1};
  const int64_t stride = is_a ? p->a.stride : p->b.stride;
  if (p->batch_count > 1 && stride != 0) x.n_batch = p->batch_count, x.stride = stride;
  return x;
}

static wsgemm_status check_one(wsgemm_handle *h, const ws_problem *p, const wsgemm_packed *packed, bool is_a) {
  const bool transposed = p->packed.transposed;
  const char *const name = is_a != transposed ? "packed_a" : "packed_b";
  if (packed->magic != WS_PACKED_MAGIC)
    return ws_fail(h, WSGEMM_INVALID_VALUE, "%s was not made by wsgemm_prepack, or is already destroyed", name);
  const operand now = operand_of(p, is_a), then = operand_of(&packed->of, packed->is_a);
  const struct {
    const char *what;
    int64_t now, then;
  } values[] = {{"type", p->a.type, packed->of.a.type},
                {"data", (int64_t)(intptr_t)now.data, (int64_t)(intptr_t)then.data},
                {"k", p->k, packed->of.k},
                {is_a != transposed ? "m" : "n", now.n_x, then.n_x},
                {"ld", now.ld, then.ld},
                {"transposition", now.along_k, then.along_k},
                {"conjugation", now.conj, then.conj},
                {"side", ws_types[p->a.type].n_real > 1 && is_a, ws_types[p->a.type].n_real > 1 && packed->is_a},
                {"number of products", now.n_batch, then.n_batch},
                {"stride", now.stride, then.stride}};
  for (size_t i = 0; i < sizeof values / sizeof values[0]; i++)
    if (values[i].now != values[i].then)
      return ws_fail(h, WSGEMM_INVALID_VALUE, "%s was made of another operand: its %s is %lld, not %lld", name, values[i].what,
                     (long long)values[i].then, (long long)values[i].now);
  return WSGEMM_SUCCESS;
}

wsgemm_status ws_check_packed(wsgemm_handle *h, const ws_problem *p) {
  wsgemm_status status = WSGEMM_SUCCESS;
  if (p->packed.a) status = check_one(h, p, p->packed.a, true);
  if (!status && p->packed.b) status = check_one(h, p, p->packed.b, false);
  return status;
}
