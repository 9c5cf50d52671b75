/* fake_slices.c - see fake_slices.h. */
#include "fake_slices.h"

#include <string.h>

fake_map held(const CUtensorMap *map) {
  fake_map m;
  memcpy(&m, map, sizeof m);
  return m;
}

wsgemm_handle *forced(const char *name) {
  wsgemm_handle *h = NULL;
  fake.device[0].cc = 90;
  REQUIRE(wsgemm_create(&h) == WSGEMM_SUCCESS && wsgemm_set_kernel(h, name) == WSGEMM_SUCCESS, "%s", wsgemm_last_error());
  return h;
}

int64_t n_maxima_of(const ws_slice_operand *op) { return op->n_chunks * op->maxima_pitch; }

void regions_of(const ws_slice_operand *op, int n_slices, struct region regions[REGIONS_OF_OPERAND]) {
  const int64_t n = op->n_batch;
  regions[0] = (struct region){op->state, sizeof(ws_slice_state)};
  regions[1] = (struct region){op->to, n * n_slices * op->n_lines * op->pitch * 2};
  regions[2] = (struct region){op->maxima, n * n_maxima_of(op) * 4};
  regions[3] = (struct region){op->scales, n * op->scales_pitch * 4};
  regions[4] = (struct region){op->groups, n * op->groups_pitch * 4};
  regions[5] = op->listed ? (struct region){op->listed, n * op->listed_pitch * 4} : (struct region){op->state, 0};
}

void check_regions(const struct region *regions, int n_regions, const char *memory, int64_t bytes) {
  for (int i = 0; i < n_regions; i++) {
    const char *at = regions[i].at, *end = at + regions[i].bytes;
    CHECK(at >= memory && end <= memory + bytes && (uintptr_t)at % 16 == 0, "part %d lies elsewhere", i);
    for (int j = 0; j < i; j++)
      CHECK(at >= (const char *)regions[j].at + regions[j].bytes || end <= (const char *)regions[j].at, "%d and %d overlap", i,
            j);
  }
}
