/* grouped.c - see grouped.h. What a device has no kernel of groups for is a product of its own for each. */
#include "ops/grouped.h"

#include "core/cancel.h"
#include "core/status.h"
#include "ops/place.h"

static ws_place place_of(const ws_call *call, const void *array, int *device, wsgemm_status *status) {
  union {
    const void *given;
    void *wanted;
  } at = {array};
  const ws_problem alone = {.m = 1, .n = 1, .batch_count = 1, .c = {.data = at.wanted}};
  return ws_devices->place(call, &alone, device, status);
}

wsgemm_status ws_groups_locate(const ws_call *call, const ws_groups *groups, int *device) {
  *device = -1;
  if (!ws_devices) return WSGEMM_SUCCESS;
  WS_UNCANCELLED;
  const void *const arrays[] = {groups->ends, groups->m, groups->n, groups->k, groups->lda,   groups->ldb,
                                groups->ldc,  groups->a, groups->b, groups->c, groups->alpha, groups->beta};
  int n_on_device = 0, n_arrays = 0;
  for (size_t i = 0; i < sizeof arrays / sizeof arrays[0]; i++) {
    int of_array;
    wsgemm_status status = WSGEMM_SUCCESS;
    if (!arrays[i]) continue;
    n_arrays++;
    const ws_place place = place_of(call, arrays[i], &of_array, &status);
    if (place == WS_PLACE_BAD) return status;
    if (place != WS_PLACE_DEVICE) continue;
    if (n_on_device++ > 0 && of_array != *device)
      return ws_fail(call->h, WSGEMM_INVALID_POINTER, "arrays or scalars are on devices %d and %d", *device, of_array);
    *device = of_array;
  }
  if (n_on_device == 0 || n_on_device == n_arrays) return WSGEMM_SUCCESS;
  return ws_fail(call->h, WSGEMM_NOT_SUPPORTED, "some arrays or scalars are in device memory, others in host memory");
}

/* Of the problem what is given as such: matrices that arrays of pointers have are looked at by nobody. */
static ws_problem given_of(const ws_groups *groups) {
  ws_problem given = groups->of_all;
  if (groups->a) given.a.data = NULL;
  if (groups->b) given.b.data = NULL;
  if (groups->c) given.c.data = NULL;
  return given;
}

static bool has_memory(const ws_problem *p) {
  return p->a.data || p->b.data || p->c.data || (p->has_epilogue && (p->epilogue.bias || p->epilogue.residual));
}

wsgemm_status ws_grouped_on_device(const ws_call *call, const ws_groups *groups, int device) {
  WS_UNCANCELLED;
  const ws_problem given = given_of(groups);
  int of_matrices = device;
  wsgemm_status status = WSGEMM_SUCCESS;
  const ws_backend *backend = has_memory(&given) ? ws_backend_of(call, &given, &of_matrices, &status) : ws_devices;
  if (!backend) return status;
  if (backend != ws_devices)
    return ws_fail(call->h, WSGEMM_INVALID_POINTER, "arrays or scalars are in device memory, the matrices are not");
  if (of_matrices != device)
    return ws_fail(call->h, WSGEMM_INVALID_POINTER, "arrays or scalars are on device %d, the matrices on %d", device,
                   of_matrices);
  return ws_devices->grouped(call, groups, device);
}

/* Groups of one size and equal distances are the products of a batch; not where that would copy all of C first (gemm_plan.c). */
static bool are_batch(const ws_groups *groups) {
  const ws_problem *p = &groups->of_all;
  return ws_groups_are_batch(groups) && !(p->has_epilogue && !ws_is_half(p->a.type) && ws_residual_is_c(p));
}

static wsgemm_status run_batch(const ws_call *call, const ws_groups *groups, const ws_backend *backend, int device) {
  ws_problem batch = groups->of_all;
  batch.batch_count = groups->count;
  return backend->gemm(call, &batch, device);
}

/* One after the other on the stream. All are on one backend, that of the first with elements. */
static wsgemm_status run_apart(const ws_call *call, const ws_groups *groups, const ws_backend *backend, int device) {
  for (int64_t group = 0; group < groups->count; group++) {
    ws_problem p;
    ws_product_of_group(groups, group, &p);
    if (ws_is_empty(&p)) continue;
    int other_device = device;
    wsgemm_status status = WSGEMM_SUCCESS;
    const ws_backend *other = groups->a || groups->b || groups->c ? ws_backend_of(call, &p, &other_device, &status) : backend;
    if (!other) return status;
    if (other != backend || other_device != device)
      return ws_fail(call->h, WSGEMM_INVALID_POINTER, "group %lld is in other memory than the groups before it",
                     (long long)group);
    status = backend->gemm(call, &p, device);
    if (status) return status;
  }
  return WSGEMM_SUCCESS;
}

static wsgemm_status run_beside_devices(const ws_call *call, const ws_groups *groups) {
  WS_UNCANCELLED;
  for (int64_t group = 0; group < groups->count; group++) {
    ws_problem p;
    ws_product_of_group(groups, group, &p);
    if (ws_is_empty(&p)) continue;
    int device;
    wsgemm_status status = WSGEMM_SUCCESS;
    const ws_backend *backend = ws_backend_of(call, &p, &device, &status);
    if (!backend) return status;
    if (backend != ws_devices) return backend->grouped(call, groups, device);
    if (are_batch(groups)) return run_batch(call, groups, backend, device);
    if (groups->ends) status = backend->grouped(call, groups, device);
    return groups->ends && status != WSGEMM_NOT_SUPPORTED ? status : run_apart(call, groups, backend, device);
  }
  return WSGEMM_SUCCESS;
}

wsgemm_status ws_grouped(const ws_call *call, const ws_groups *groups) {
  return ws_devices ? run_beside_devices(call, groups) : ws_backends[WS_CPU]->grouped(call, groups, 0);
}
