/* arena_args.h - arguments of the kernels of tuning (arena.cuh). Shared by C and CUDA. */
#ifndef WS_CUDA_ARENA_ARGS_H
#define WS_CUDA_ARENA_ARGS_H
#include <stdint.h>

typedef enum ws_real { WS_REAL_F16, WS_REAL_BF16, WS_REAL_F32, WS_REAL_F64 } ws_real;

typedef struct ws_arena_args {
  void *x;
  const void *y;         /* compare: what x is to be equal to */
  uint64_t n;            /* fill: reals; compare: words of 4 bytes */
  uint64_t seed;         /* fill */
  uint32_t *n_different; /* compare: is added to */
  int32_t real;          /* fill: ws_real */
} ws_arena_args;
#endif
