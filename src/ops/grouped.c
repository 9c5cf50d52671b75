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

wsgemm_status ws_groups_locate(const ws_call *call, const ws_groups *groups, bool *are_on_device) {
  *are_on_device = false;
  if (!ws_devices) return WSGEMM_SUCCESS;
  WS_UNCANCELLED;
  const void *const arrays[] = {groups->ends, groups->m,   groups->n, groups->k, groups->lda,
                                groups->ldb,  groups->ldc, groups->a, groups->b, groups->c};
  int n_on_device = 0, n_arrays = 0;
  for (size_t i = 0; i < sizeof arrays / sizeof arrays[0]; i++) {
    int device;
    wsgemm_status status = WSGEMM_SUCCESS;
    if (!arrays[i]) continue;
    n_arrays++;
    const ws_place place = place_of(call, arrays[i], &device, &status);
    if (place == WS_PLACE_BAD) return status;
    n_on_device += place == WS_PLACE_DEVICE;
  }
  *are_on_device = n_on_device > 0;
  if (n_on_device == 0 || (n_arrays == 1 && groups->ends)) return WSGEMM_SUCCESS;
  return ws_fail(call->h, WSGEMM_NOT_SUPPORTED,
                 "arrays of sizes, lds or pointers in device memory: not built in; offsets alone are");
}

wsgemm_status ws_grouped_on_device(const ws_call *call, const ws_groups *groups) {
  WS_UNCANCELLED;
  int device, of_ends;
  wsgemm_status status = WSGEMM_SUCCESS;
  const ws_backend *backend = ws_backend_of(call, &groups->of_all, &device, &status);
  if (!backend) return status;
  if (backend != ws_devices)
    return ws_fail(call->h, WSGEMM_INVALID_POINTER, "offsets are in device memory, the matrices are not");
  if (place_of(call, groups->ends, &of_ends, &status) == WS_PLACE_BAD) return status;
  if (of_ends != device)
    return ws_fail(call->h, WSGEMM_INVALID_POINTER, "offsets are on device %d, the matrices on %d", of_ends, device);
  return backend->grouped(call, groups, device);
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
    if (groups->ends) status = backend->grouped(call, groups, device);
    return groups->ends && status != WSGEMM_NOT_SUPPORTED ? status : run_apart(call, groups, backend, device);
  }
  return WSGEMM_SUCCESS;
}

wsgemm_status ws_grouped(const ws_call *call, const ws_groups *groups) {
  return ws_devices ? run_beside_devices(call, groups) : ws_backends[WS_CPU]->grouped(call, groups, 0);
}
