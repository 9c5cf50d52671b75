/* fake_slices.h - what the suites share that see on the fake driver how floats are multiplied by
 * slices of 16 bits (cuda/shared/slice_args.h). */
#ifndef WSGEMM_TESTS_FAKE_SLICES_H
#define WSGEMM_TESTS_FAKE_SLICES_H
#include "fake_calls.h"

/* What the fake driver has put into a tensor map. */
fake_map held(const CUtensorMap *map);

/* A handle that forces the row, NULL: none, for the first device, which has tensor cores then. */
wsgemm_handle *forced(const char *name);

/* The launch before that which makes slices. */
#define FIRST_PASS "maxima"

/* Largest magnitudes of a product. */
int64_t n_maxima_of(const ws_slice_operand *op);

/* Pieces of memory that belong to operands. */
struct region {
  const void *at;
  int64_t bytes;
};
enum { REGIONS_OF_OPERAND = 6 };
/* Those of an operand with room for so many slices: state, slices, maxima, scales, groups, list. */
void regions_of(const ws_slice_operand *op, int n_slices, struct region regions[REGIONS_OF_OPERAND]);
/* None overlaps another, and all are in the memory. */
void check_regions(const struct region *regions, int n_regions, const char *memory, int64_t bytes);
#endif
