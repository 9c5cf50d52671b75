/* driver.c - finds the CUDA driver's entry points. */
#include "driver.h"

#include <dlfcn.h>
#include <stddef.h>
#include <string.h>

ws_driver ws_cuda;

typedef CUresult(CUDAAPI *get_proc_address)(const char *, void **, int, cuuint64_t, CUdriverProcAddressQueryResult *);

static const struct {
  const char *name;
  int version;
  size_t offset; /* of its member in ws_driver */
} entries[] = {
#define WS_DRIVER_ROW(name, version) {#name, version, offsetof(ws_driver, name)},
    WS_DRIVER_ENTRIES(WS_DRIVER_ROW)
#undef WS_DRIVER_ROW
};

/* ISO C has no cast from an object pointer to a function pointer; their bytes are copied. */
void ws_driver_load(void) {
  void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  void *symbol = library ? dlsym(library, "cuGetProcAddress_v2") : NULL;
  if (!library) return;
  ws_cuda.is_loaded = true;
  if (!symbol) {
    ws_cuda.missing = "cuGetProcAddress_v2";
    return;
  }
  get_proc_address get;
  memcpy(&get, &symbol, sizeof get);
  for (size_t i = 0; i < sizeof entries / sizeof entries[0]; i++) {
    void *found = NULL;
    if (get(entries[i].name, &found, entries[i].version, CU_GET_PROC_ADDRESS_DEFAULT, NULL) != CUDA_SUCCESS || !found)
      ws_cuda.missing = entries[i].name;
    memcpy((char *)&ws_cuda + entries[i].offset, &found, sizeof found);
  }
}
