/* grouped.c - see grouped.h. On a device each group is a product of its own. */
#include "ops/grouped.h"

#include "core/cancel.h"
#include "core/status.h"
#include "ops/place.h"

/* Whether it lies in host memory; managed memory counts as a device's. */
static wsgemm_status check_readable(const ws_call *call, const char *name, const void *array) {
  if (!array) return WSGEMM_SUCCESS;
  union {
    const void *given;
    void *wanted;
  } at = {array};
  ws_problem alone = {.m = 1, .n = 1, .batch_count = 1, .c = {.data = at.wanted}};
  int device;
  wsgemm_status status = WSGEMM_SUCCESS;
  switch (ws_devices->place(call, &alone, &device, &status)) {
  case WS_PLACE_HOST:
    return WSGEMM_SUCCESS;
  case WS_PLACE_DEVICE:
    return ws_fail(call->h, WSGEMM_NOT_SUPPORTED, "%s in device memory: not built in yet; give them in host memory", name);
  case WS_PLACE_BAD:
    break;
  }
  return status;
}

wsgemm_status ws_groups_readable(const ws_call *call, const ws_groups *groups) {
  if (!ws_devices) return WSGEMM_SUCCESS;
  WS_UNCANCELLED;
  const struct {
    const char *name;
    const void *array;
  } arrays[] = {{"offsets", groups->ends},        {"arrays of sizes", groups->m},    {"arrays of sizes", groups->n},
                {"arrays of sizes", groups->k},   {"arrays of lds", groups->lda},    {"arrays of lds", groups->ldb},
                {"arrays of lds", groups->ldc},   {"arrays of pointers", groups->a}, {"arrays of pointers", groups->b},
                {"arrays of pointers", groups->c}};
  for (size_t i = 0; i < sizeof arrays / sizeof arrays[0]; i++) {
    const wsgemm_status status = check_readable(call, arrays[i].name, arrays[i].array);
    if (status) return status;
  }
  return WSGEMM_SUCCESS;
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
    return backend == ws_devices ? run_apart(call, groups, backend, device) : backend->grouped(call, groups);
  }
  return WSGEMM_SUCCESS;
}

wsgemm_status ws_grouped(const ws_call *call, const ws_groups *groups) {
  return ws_devices ? run_beside_devices(call, groups) : ws_backends[WS_CPU]->grouped(call, groups);
}
