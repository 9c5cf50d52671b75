/* test_backend_exit.c - a program that loads the library, works on a GPU (a fake one), unloads it
 * and leaves through exit(): from the unloading on the driver is not called, as CUDA may be gone by
 * then. Not linked with the library; exit status 0, 1, or the driver's. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

#include "fake_driver.h"
#include "wsgemm.h"

static void *find(void *library, const char *name) {
  void *symbol = dlsym(library, name);
  if (!symbol) fprintf(stderr, "FAILED: no %s\n", name), exit(1);
  return symbol;
}

static void use(void *library) {
  wsgemm_status (*create)(wsgemm_handle **);
  wsgemm_status (*set_stream)(wsgemm_handle *, void *);
  wsgemm_status (*gemm)(wsgemm_handle *, const wsgemm_gemm_desc *);
  *(void **)&create = find(library, "wsgemm_create");
  *(void **)&set_stream = find(library, "wsgemm_set_stream");
  *(void **)&gemm = find(library, "wsgemm_gemm");
  wsgemm_handle *h = NULL; /* never destroyed */
  wsgemm_gemm_desc d = WSGEMM_GEMM_DESC_INIT;
  d.m = d.n = d.k = d.lda = d.ldb = d.ldc = 100;
  d.alpha.s = 1;
  d.a = d.b = fake_alloc(FAKE_DEVICE, 1, 1 << 20);
  d.c = fake_alloc(FAKE_DEVICE, 1, 1 << 20);
  if (create(&h) || set_stream(h, &fake.stream[2]) || gemm(h, &d) || (d.k = 0, gemm(h, &d)) || fake.n_launches != 2)
    fprintf(stderr, "FAILED: %d launches\n", fake.n_launches), exit(1);
}

int main(void) {
  void *library = dlopen(WSGEMM_LIBRARY, RTLD_NOW | RTLD_LOCAL);
  if (!library) return fprintf(stderr, "FAILED: %s\n", dlerror()), 1;
  if (fake.n_calls > 0 || fake.trapped) return fprintf(stderr, "FAILED: loading the library called the driver\n"), 1;
  use(library);
  fake.is_forbidden = true;
  if (dlclose(library) != 0) return fprintf(stderr, "FAILED: %s\n", dlerror()), 1;
  if (fake.trapped) return fprintf(stderr, "FAILED: %s was called\n", fake.trapped), 1;
  puts("backend_exit: two launches, then no call of the driver");
  exit(0);
}
