/* device.h - the name of the CPU that is measured. */
#ifndef WSGEMM_BENCH_DEVICE_H
#define WSGEMM_BENCH_DEVICE_H

typedef struct ws_bench_device {
  char name[160]; /* "AMD EPYC zen5, 2 cores" */
  char slug[96];  /* "amd-epyc-zen5-2c": the folder of its results */
  int n_cores;    /* that this process may use */
} ws_bench_device;

ws_bench_device ws_bench_device_cpu(void);
#endif
