/* gpu.h - a GPU for the commands: finding it, and multiplying matrices of host memory on it.
 *
 * The driver is found at run time, through the library's own table (cuda/host/driver.h), and
 * initialised here: a command may do that, the library never does. The products themselves go
 * through the public API. In builds without the GPU backend everything here says so. */
#ifndef WSGEMM_CLI_GPU_H
#define WSGEMM_CLI_GPU_H

#include "wsgemm.h"
#include <stdbool.h>
#include <stdint.h>

enum { WS_GPU_WHY_BYTES = 512 };

typedef enum ws_gpu_state {
  WS_GPU_READY,
  WS_GPU_NOT_BUILT,  /* this build has no GPU backend */
  WS_GPU_NO_DRIVER,  /* no libcuda.so.1 */
  WS_GPU_OLD_DRIVER, /* it lacks something that the library needs */
  WS_GPU_NO_DEVICE,  /* a driver, but no GPU that this process may use */
  WS_GPU_BROKEN      /* the driver fails otherwise */
} ws_gpu_state;

/* Initialises the driver. Why not, if it is not READY, is put in words. */
ws_gpu_state ws_gpu_find(int *n_devices, char why[WS_GPU_WHY_BYTES]);

/* CUDA version that the driver is made for, as 10 * (100 * major + minor); 0: it does not tell. */
int ws_gpu_driver_version(void);

typedef struct ws_gpu_facts {
  char name[96];
  int cc_major, cc_minor, n_sms;
  double gib;
} ws_gpu_facts;

/* After READY: makes a GPU this thread's, for what follows. */
bool ws_gpu_open(int ordinal, ws_gpu_facts *facts, char why[WS_GPU_WHY_BYTES]);

/* wsgemm_gemm on the GPU for one product (no batch) whose matrices lie in host memory: they are
 * copied there, and C back. With ns not NULL the product runs twice, the second time timed. On
 * failure, C is untouched and why says what failed. */
wsgemm_status ws_gpu_gemm(wsgemm_handle *h, const wsgemm_gemm_desc *d, int64_t *ns, char why[WS_GPU_WHY_BYTES]);

/* wsgemm_explain for the same, to be freed; NULL: see why. */
char *ws_gpu_explain(wsgemm_handle *h, const wsgemm_gemm_desc *d, char why[WS_GPU_WHY_BYTES]);
#endif
