/* arena.c - what the backends' arenas (cpu/arena.c, cuda/host/arena.c) have in common. */
#include <string.h>
#include <time.h>

#include "tune/tuning.h"

double ws_arena_now_ms(ws_arena *arena) {
  struct timespec t;
  (void)arena;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

size_t ws_arena_bytes(const ws_problem *p, int64_t ld, int64_t n_lines, int64_t *stride, wsgemm_type type) {
  *stride = *stride < 0 ? -*stride : *stride;
  const double elements = (double)ld * (double)n_lines + (double)*stride * (double)(p->batch_count - 1);
  const double bytes = elements * ws_types[type].bytes;
  return bytes < 0x1p46 ? ((size_t)bytes + 15) / 16 * 16 : (size_t)1 << 46;
}

void ws_arena_describe(ws_arena *arena) {
  const ws_problem *p = &arena->problem;
  const ws_system *s = &arena->system;
  arena->entry = (ws_tuning_entry){.shape = {p->m, p->n, p->k, p->batch_count}};
  if (arena->is_system) arena->entry.shape = (ws_tuning_shape){s->m, s->n, s->is_right ? s->n : s->m, s->batch_count};
  ws_tune_device(1 + arena->device, &arena->entry.device);
  memcpy(arena->entry.version, wsgemm_version_string(), strlen(wsgemm_version_string()) + 1);
}
