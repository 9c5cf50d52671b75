/* decode.h - shapes of suite `decode`: few tokens times the weights of language models, and flat
 * products drawn at random. */
#ifndef WSGEMM_BENCH_DECODE_H
#define WSGEMM_BENCH_DECODE_H
#include "shapes.h"

enum { DECODE_MOST_RANDOM = 1000, DECODE_MOST = 200 + DECODE_MOST_RANDOM };

/* Layers first, then n_random shapes of that seed; returns how many. */
int decode_shapes(uint64_t seed, int n_random, shape to[DECODE_MOST]);
#endif
