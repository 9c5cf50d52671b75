/* library.c - see library.h. */
#include "bench/harness/library.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

void *ws_bench_load(const char *const *names, int n_names) {
  void *library = NULL;
  for (int i = 0; i < n_names && !library; i++) library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
  return library;
}

bool ws_bench_find(void *library, const char *name, void *function) {
  void *symbol = dlsym(library, name);
  memcpy(function, &symbol, sizeof symbol);
  return symbol != NULL;
}

void ws_bench_cuda_version(const char *name, int (*property)(int, int *), char version[WS_BENCH_VERSION_BYTES]) {
  int part[3] = {0};
  for (int i = 0; i < 3; i++) property(i, &part[i]);
  snprintf(version, WS_BENCH_VERSION_BYTES, "%s %d.%d.%d", name, part[0], part[1], part[2]);
}
