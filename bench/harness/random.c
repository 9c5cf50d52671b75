/* random.c - see random.h. */
#include "bench/harness/random.h"

#include <math.h>

uint64_t ws_random(uint64_t *state) {
  uint64_t x = *state += UINT64_C(0x9e3779b97f4a7c15);
  x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
  x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
  return x ^ (x >> 31);
}

double ws_random_unit(uint64_t *state) { return (double)(ws_random(state) >> 11) * 0x1p-53; }

uint64_t ws_random_below(uint64_t *state, uint64_t n) { return ws_random(state) % n; }

int64_t ws_random_size(uint64_t *state, int64_t least, int64_t most) {
  return (int64_t)llround((double)least * exp(ws_random_unit(state) * log((double)most / (double)least)));
}

void ws_random_shuffle(uint64_t *state, int *values, int n_values) {
  for (int left = n_values; left > 1; left--) {
    const int drawn = (int)ws_random_below(state, (uint64_t)left), last = values[left - 1];
    values[left - 1] = values[drawn];
    values[drawn] = last;
  }
}
