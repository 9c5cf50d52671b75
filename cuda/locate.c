/* locate.c - where memory lies, and so who works: the pointers decide. */
#include "locate.h"

#include "driver.h"

ws_location ws_locate(const void *pointer) {
  unsigned int memory_type = 0, is_managed = 0;
  int device = -1;
  CUpointer_attribute attributes[] = {CU_POINTER_ATTRIBUTE_MEMORY_TYPE, CU_POINTER_ATTRIBUTE_IS_MANAGED,
                                      CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL};
  void *values[] = {&memory_type, &is_managed, &device};
  ws_location l = {false, false, -1};
  if (ws_cuda.cuPointerGetAttributes(3, attributes, values, (CUdeviceptr)(uintptr_t)pointer) != CUDA_SUCCESS) return l;
  l.is_managed = is_managed != 0;
  l.is_device = memory_type == CU_MEMORYTYPE_DEVICE || l.is_managed;
  l.device = device;
  return l;
}

/* Managed memory goes where the others are; on its own, to the GPU. */
ws_place ws_cuda_place(wsgemm_handle *h, const ws_problem *p, int *device, wsgemm_status *status) {
  if (ws_cuda.missing) return WS_PLACE_HOST; /* too old a driver: see ws_cuda_describe */
  const bool reads_ab = !ws_product_is_zero(p);
  const void *pointers[] = {p->c, reads_ab ? p->a : NULL, reads_ab ? p->b : NULL};
  int n_device_only = 0, n_managed = 0, n_host = 0;
  *device = -1;
  for (int i = 0; i < 3; i++) {
    if (!pointers[i]) continue;
    const ws_location l = ws_locate(pointers[i]);
    if (!l.is_device) {
      n_host++;
    } else if (l.is_managed) {
      n_managed++;
      if (*device < 0) *device = l.device;
    } else {
      if (n_device_only++ > 0 && l.device != *device) {
        *status = ws_fail(h, WSGEMM_INVALID_POINTER, "the matrices lie on different devices (%d and %d)", *device, l.device);
        return WS_PLACE_BAD;
      }
      *device = l.device;
    }
  }
  if (n_host == 0) return WS_PLACE_DEVICE;
  if (n_device_only == 0) return WS_PLACE_HOST;
  *status =
      ws_fail(h, WSGEMM_INVALID_POINTER, "some matrices lie in host memory, others on device %d; all must be together", *device);
  return WS_PLACE_BAD;
}
