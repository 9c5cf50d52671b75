/* guarded.h - device memory behind which no address is mapped. */
#ifndef WSGEMM_TESTS_GPU_GUARDED_H
#define WSGEMM_TESTS_GPU_GUARDED_H
#include <stddef.h>

/* The end of so many bytes of device memory, all of them zero: a kernel that reads or writes from there on fails. It stays until the
 * process ends. */
char *gpu_guarded_end(size_t bytes);
#endif
