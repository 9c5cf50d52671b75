/* random_shapes.c - see random_shapes.h. */
#include "bench/harness/random_shapes.h"
#include "bench/harness/random.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

enum { FLAT_MOST = 128, OCTAVES = 16 /* most / OCTAVES divides small sizes from large ones */ };

const char *ws_shape_class_name(int shape_class) {
  static const char *const names[WS_SHAPE_ALIGNED + 1] = {"square", "flat", "small", "ragged", "uniform", "wide", "aligned"};
  return names[shape_class];
}

static void draw_square(uint64_t *state, int64_t sizes[3], int64_t most) {
  const int64_t size = ws_random_size(state, most / OCTAVES, most);
  for (int i = 0; i < 3; i++) {
    const double factor = exp((2 * ws_random_unit(state) - 1) * log(1.4));
    const int64_t drawn = llround((double)size * factor);
    sizes[i] = drawn > most ? most : drawn;
  }
}

static void draw_flat(uint64_t *state, int64_t sizes[3], int64_t most) {
  /* the same: one is short */
  const int first = (int)ws_random_below(state, 3), second = (int)ws_random_below(state, 3);
  for (int i = 0; i < 3; i++)
    sizes[i] = i == first || i == second ? ws_random_size(state, 1, FLAT_MOST) : ws_random_size(state, most / OCTAVES, most);
}

static int64_t draw_more(uint64_t *state, int shape_class) {
  if (shape_class == WS_SHAPE_RAGGED) return 1 + (int64_t)ws_random_below(state, 63);
  return 8 * (1 + (int64_t)ws_random_below(state, 8));
}

/* Where the numbers of a shape begin; seeds that are neighbours share no shape. */
static uint64_t state_of(uint64_t seed, int idx) {
  uint64_t state = seed;
  state = ws_random(&state) + (uint64_t)idx;
  return ws_random(&state);
}

ws_random_shape ws_random_uniform_shape_at(uint64_t seed, int idx, int64_t multiple, ws_random_sides sides) {
  const int64_t least = 16, most = 16384;
  const double least_product = 1e7, most_product = 2e12;
  uint64_t state = state_of(seed, idx);
  ws_random_shape s = {.shape_class = WS_SHAPE_UNIFORM, .seed = seed, .idx = idx};
  int64_t side;
  double product;
  do {
    int64_t *const sizes[] = {&s.m, &s.n, &s.k};
    for (int i = 0; i < 3; i++) {
      const int64_t rounded = (ws_random_size(&state, least, most) + multiple / 2) / multiple * multiple;
      *sizes[i] = rounded < least ? least : rounded > most ? most : rounded;
    }
    product = (double)s.m * (double)s.n * (double)s.k, side = s.m < s.n ? s.m : s.n;
  } while (product < least_product || product > most_product || (sides.most && (side < sides.least || side > sides.most)) ||
           (sides.most_k && (s.k < sides.least_k || s.k > sides.most_k)));
  s.transposed_a = ws_random_below(&state, 2);
  s.transposed_b = ws_random_below(&state, 2);
  return s;
}

ws_random_shape ws_random_wide_shape_at(uint64_t seed, int idx, bool is_padded) {
  const int64_t least = 4, most = 4000;
  const double most_product = 4e9;
  uint64_t state = state_of(seed, idx);
  ws_random_shape s = {.shape_class = WS_SHAPE_WIDE, .seed = seed, .idx = idx};
  do {
    s.m = ws_random_size(&state, least, most);
    s.n = ws_random_size(&state, least, most);
    s.k = ws_random_size(&state, least, most);
  } while ((double)s.m * (double)s.n * (double)s.k > most_product);
  s.transposed_a = ws_random_below(&state, 2);
  s.transposed_b = ws_random_below(&state, 2);
  if (!is_padded) return s;
  s.more_a = (int64_t)ws_random_below(&state, 64);
  s.more_b = (int64_t)ws_random_below(&state, 64);
  s.more_c = (int64_t)ws_random_below(&state, 64);
  return s;
}

ws_random_shape ws_random_shape_at(uint64_t seed, int idx, int64_t least, int64_t most) {
  uint64_t state = state_of(seed, idx);
  int64_t sizes[3];
  ws_random_shape s = {.shape_class = idx % WS_N_SHAPE_CLASSES, .seed = seed, .idx = idx};
  if (s.shape_class == WS_SHAPE_SQUARE)
    draw_square(&state, sizes, most);
  else if (s.shape_class == WS_SHAPE_FLAT)
    draw_flat(&state, sizes, most);
  else
    for (int i = 0; i < 3; i++)
      sizes[i] = s.shape_class == WS_SHAPE_SMALL ? ws_random_size(&state, least, most / OCTAVES)
                                                 : (ws_random_size(&state, least, most) - 1) | 1;
  s.m = sizes[0], s.n = sizes[1], s.k = sizes[2];
  s.transposed_a = ws_random_below(&state, 2);
  s.transposed_b = ws_random_below(&state, 2);
  if (s.shape_class == WS_SHAPE_RAGGED || ws_random_below(&state, 2)) {
    s.more_a = draw_more(&state, s.shape_class);
    s.more_b = draw_more(&state, s.shape_class);
    s.more_c = draw_more(&state, s.shape_class);
  }
  return s;
}

void ws_random_shape_case(const ws_random_shape *s, char text[WS_RANDOM_CASE_BYTES]) {
  snprintf(text, WS_RANDOM_CASE_BYTES,
           "%c%c %" PRId64 "x%" PRId64 "x%" PRId64 " %s lda+%" PRId64 " ldb+%" PRId64 " ldc+%" PRId64 " seed=%" PRIu64 " #%d",
           "NT"[s->transposed_a], "NT"[s->transposed_b], s -> m, s -> n, s -> k, ws_shape_class_name(s->shape_class), s -> more_a,
           s -> more_b, s -> more_c, s -> seed, s -> idx);
}
