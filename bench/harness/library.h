/* library.h - CUDA libraries that are loaded at run time, so that nothing here needs them to be
 * built. */
#ifndef WSGEMM_BENCH_LIBRARY_H
#define WSGEMM_BENCH_LIBRARY_H
#include <stdbool.h>

enum { WS_BENCH_VERSION_BYTES = 48 };

/* The first of these that there is; NULL: none, and dlerror says why. */
void *ws_bench_load(const char *const *names, int n_names);
/* The function of this name into *function, a pointer to a function; false, and NULL: there is
 * none. */
bool ws_bench_find(void *library, const char *name, void *function);
/* "cuBLAS 13.1.0", by cublasGetProperty or its like. */
void ws_bench_cuda_version(const char *name, int (*property)(int, int *), char version[WS_BENCH_VERSION_BYTES]);
#endif
