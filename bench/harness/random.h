/* random.h - random numbers of tests by the command and of benches: splitmix64, the same numbers
 * in every run of one seed. */
#ifndef WSGEMM_BENCH_RANDOM_H
#define WSGEMM_BENCH_RANDOM_H
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

uint64_t ws_random(uint64_t *state);    /* any state will do to begin with: it is the seed */
double ws_random_unit(uint64_t *state); /* 0 <= x < 1, in steps of 2^-53 */
uint64_t ws_random_below(uint64_t *state, uint64_t n);
/* A size from least to most, log-uniform: each octave is as likely as every other. */
int64_t ws_random_size(uint64_t *state, int64_t least, int64_t most);
void ws_random_shuffle(uint64_t *state, int *values, int n_values);

#ifdef __cplusplus
}
#endif
#endif
