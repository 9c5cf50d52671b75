/* locate.c - where memory lies, and so who works: the pointers decide. */
#include "cuda/host/locate.h"

#include "core/status.h"
#include "cuda/host/device.h"

ws_location ws_locate(const void *pointer) {
  unsigned int memory_type = 0, is_managed = 0;
  int device = -1;
  CUpointer_attribute attributes[] = {CU_POINTER_ATTRIBUTE_MEMORY_TYPE, CU_POINTER_ATTRIBUTE_IS_MANAGED,
                                      CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL};
  void *values[] = {&memory_type, &is_managed, &device};
  ws_location l = {.device = -1, .unknown = CUDA_SUCCESS};
  const bool can_ask = !ws_cuda.missing && !ws_driver_is_lost();
  const CUresult result =
      can_ask ? ws_cuda.cuPointerGetAttributes(3, attributes, values, (CUdeviceptr)(uintptr_t)pointer) : CUDA_ERROR_NOT_PERMITTED;
  if (can_ask && result == CUDA_ERROR_NOT_INITIALIZED) {
    if (ws_driver_may_be_inherited() && !ws_is_readable(pointer)) l.unknown = result;
    return l;
  }
  if (can_ask) ws_driver_note_use();
  if (result != CUDA_SUCCESS) {
    if (!ws_is_readable(pointer)) l.unknown = result;
    return l;
  }
  l.is_managed = is_managed != 0;
  l.is_device = memory_type == CU_MEMORYTYPE_DEVICE || l.is_managed;
  l.is_pinned = memory_type == CU_MEMORYTYPE_HOST;
  l.device = device;
  return l;
}

wsgemm_status ws_fail_unknown(wsgemm_handle *h, CUresult unknown) {
  if (ws_cuda.missing)
    return ws_fail(h, WSGEMM_INSUFFICIENT_DRIVER, "not host memory, and the GPU driver is too old: it has no %s",
                   ws_cuda.missing);
  if (ws_driver_is_lost() || unknown == CUDA_ERROR_NOT_INITIALIZED)
    return ws_fail(h, WSGEMM_NO_DEVICE, "not host memory, and no GPU can be used after fork(): CUDA stayed with the parent");
  return ws_fail_cuda(h, "not host memory, and the GPU driver cannot say whose", unknown);
}

/* Of a problem without pointers: the device of the thread's context, if it has one. */
static ws_place place_of_thread(int *device) {
  *device = ws_cuda.missing || ws_driver_is_lost() ? -1 : ws_device_current();
  if (*device < 0) return WS_PLACE_HOST;
  ws_driver_note_use();
  return WS_PLACE_DEVICE;
}

/* Managed memory goes where the others are; on its own, to the GPU. */
ws_place ws_cuda_place(const ws_call *call, const ws_problem *p, int *device, wsgemm_status *status) {
  enum { MOST = 6 };
  const bool reads_ab = !ws_product_is_zero(p);
  const void *pointers[MOST] = {p->c.data, reads_ab ? p->a.data : NULL, reads_ab ? p->b.data : NULL};
  if (p->has_epilogue) pointers[3] = p->epilogue.bias, pointers[4] = p->epilogue.residual, pointers[5] = p->epilogue.column_sums;
  int n_device_only = 0, n_host = 0, n_managed = 0;
  *device = -1;
  for (int i = 0; i < (p->has_epilogue ? MOST : 3); i++) {
    if (!pointers[i]) continue;
    const ws_location l = ws_locate(pointers[i]);
    if (l.unknown) {
      *status = ws_fail_unknown(call->h, l.unknown);
      return WS_PLACE_BAD;
    }
    if (!l.is_device) {
      n_host++;
    } else if (l.is_managed) {
      n_managed++;
      if (*device < 0) *device = l.device;
    } else {
      if (n_device_only++ > 0 && l.device != *device) {
        *status =
            ws_fail(call->h, WSGEMM_INVALID_POINTER, "the matrices lie on different devices (%d and %d)", *device, l.device);
        return WS_PLACE_BAD;
      }
      *device = l.device;
    }
  }
  if (n_host + n_device_only + n_managed == 0) return place_of_thread(device);
  if (n_host == 0) return WS_PLACE_DEVICE;
  if (n_device_only == 0) return WS_PLACE_HOST;
  *status = ws_fail(call->h, WSGEMM_INVALID_POINTER,
                    "some matrices lie in host memory, others on device %d; all must be together", *device);
  return WS_PLACE_BAD;
}
