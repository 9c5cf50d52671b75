/* operands.c - operands full of random numbers: see operands.h. */
#include "operands.h"
#include "bench/harness/random.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void gpu_check(cudaError_t result, const char *file, int line, const char *call) {
  if (result == cudaSuccess) return;
  fprintf(stderr, "%s:%d: %s: %s\n", file, line, call, cudaGetErrorString(result));
  exit(1);
}

const char letters[7] = "sdczhb";
bool is_half(wsgemm_type t) { return t == WSGEMM_F16 || t == WSGEMM_BF16; }
bool is_wide(wsgemm_type t) { return t == WSGEMM_F64 || t == WSGEMM_C64; }
bool is_complex(wsgemm_type t) { return t == WSGEMM_C32 || t == WSGEMM_C64; }
static size_t real_bytes(wsgemm_type t) { return is_half(t) ? 2 : is_wide(t) ? 8 : 4; }
size_t type_bytes(wsgemm_type t) { return real_bytes(t) * (is_complex(t) ? 2 : 1); }

const void *scalar_of(wsgemm_type t, double value) {
  static float narrow[2][2];
  static double wide[2][2];
  const int which = value != 0;
  narrow[which][0] = (float)value, wide[which][0] = value;
  return is_wide(t) ? (const void *)wide[which] : narrow[which];
}

static uint64_t state = 88172645463325252ull;
static double uniform(void) { return 2 * ws_random_unit(&state) - 1; }

__extension__ typedef _Float16 float16;

void put_real(wsgemm_type t, void *reals, size_t i, double x) {
  const float single = (float)x;
  const float16 half = (float16)single;
  uint32_t bits;
  memcpy(&bits, &single, sizeof bits);
  if (is_wide(t))
    ((double *)reals)[i] = x;
  else if (t == WSGEMM_F16)
    memcpy((uint16_t *)reals + i, &half, sizeof half);
  else if (t == WSGEMM_BF16)
    ((uint16_t *)reals)[i] = (uint16_t)(bits >> 16);
  else
    ((float *)reals)[i] = single;
}

double get_real(wsgemm_type t, const void *reals, size_t i) {
  if (is_wide(t)) return ((const double *)reals)[i];
  if (!is_half(t)) return ((const float *)reals)[i];
  const uint16_t stored = ((const uint16_t *)reals)[i];
  const uint32_t bits = (uint32_t)stored << 16;
  float16 half;
  float single;
  memcpy(&half, &stored, sizeof half);
  memcpy(&single, &bits, sizeof single);
  return t == WSGEMM_F16 ? (double)half : (double)single;
}

/* Made once for each type: matrices are pieces of this from a drawn place on. */
enum { POOL_REALS = 1 << 24 };
static const void *random_pool(wsgemm_type t, bool is_spread) {
  static void *pools[2][sizeof letters];
  void **pool = &pools[is_spread][t];
  if (!*pool) {
    *pool = malloc(POOL_REALS * real_bytes(t));
    if (!*pool) exit(1);
    for (size_t i = 0; i < POOL_REALS; i++)
      put_real(t, *pool, i, is_spread ? ldexp(uniform(), (int)drawn_below(SPREAD_EXPONENTS) - SPREAD_EXPONENTS / 2) : uniform());
  }
  return *pool;
}

size_t drawn_below(size_t n) { return (size_t)ws_random_below(&state, n); }

/* Device memory full of them. */
static void *drawn_matrix(wsgemm_type type, int64_t elements, bool is_spread) {
  const size_t bytes = (size_t)elements * type_bytes(type), real = real_bytes(type);
  const unsigned char *pool = random_pool(type, is_spread);
  size_t at = drawn_below(POOL_REALS) * real;
  unsigned char *device;
  GPU(cudaMalloc((void **)&device, bytes));
  for (size_t done = 0, piece; done < bytes; done += piece, at = 0) {
    piece = POOL_REALS * real - at;
    if (piece > bytes - done) piece = bytes - done;
    GPU(cudaMemcpy(device + done, pool + at, piece, cudaMemcpyHostToDevice));
  }
  /* copies of pageable memory may be under way still, and no non-blocking stream waits for them */
  GPU(cudaDeviceSynchronize());
  return device;
}

void *random_matrix(wsgemm_type type, int64_t elements) { return drawn_matrix(type, elements, false); }
void *spread_matrix(wsgemm_type type, int64_t elements) { return drawn_matrix(type, elements, true); }
