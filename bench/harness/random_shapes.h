/* random_shapes.h - products drawn at random, by which speeds are judged: nobody has tuned for
 * them.
 *
 * With sizes from `least` to `most`, all log-uniform:
 *   square   m, n, k within a factor of 1.4 of one size from most / 16 to most
 *   flat     one or two of m, n, k from 1 to 128, the others from most / 16 to most
 *   small    m, n, k each from least to most / 16
 *   ragged   m, n, k each from least to most, all of them odd
 * Beside these the distribution of ws_random_uniform_shape_at, of class
 *   uniform  m, n, k each from 16 to 16384, m n k from 1e7 to 2e12; lds as small as can be
 * and that of ws_random_wide_shape_at, of class
 *   wide     m, n, k each from 4 to 4000, m n k up to 4e9; lds as small as can be, or, if padded, each
 *            longer by up to 63
 * Beside uniform there is
 *   aligned  the same, but that m, n and k are multiples of 8, as those of most layers of neural networks are
 * ops: NN, NT, TN, TT, each as often as the others. Leading dimensions: as small as can be, or,
 * for every second shape, longer by a multiple of 8 up to 64; those of ragged shapes are longer
 * by 1 to 63. The shapes of one seed are the same everywhere. */
#ifndef WSGEMM_BENCH_RANDOM_SHAPES_H
#define WSGEMM_BENCH_RANDOM_SHAPES_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum {
  WS_SHAPE_SQUARE,
  WS_SHAPE_FLAT,
  WS_SHAPE_SMALL,
  WS_SHAPE_RAGGED,
  WS_N_SHAPE_CLASSES,
  WS_SHAPE_UNIFORM = WS_N_SHAPE_CLASSES,
  WS_SHAPE_WIDE,
  WS_SHAPE_ALIGNED
};
const char *ws_shape_class_name(int shape_class);

typedef struct ws_random_shape {
  int shape_class;
  bool transposed_a, transposed_b;
  int64_t m, n, k;
  /* elements by which lda, ldb and ldc are longer than they must be */
  int64_t more_a, more_b, more_c;
  uint64_t seed;
  int idx;
} ws_random_shape;

/* Shape idx of a seed; four neighbours are of four classes. */
ws_random_shape ws_random_shape_at(uint64_t seed, int idx, int64_t least, int64_t most);

/* The smaller side of C, and k; most 0: any. */
typedef struct ws_random_sides {
  int64_t least, most, least_k, most_k;
} ws_random_sides;

/* Shape idx of a seed of the class `uniform`, sizes multiples of `multiple`, of the products with such sides; of floats that multiple is
 * 1, or with 8 the class is `aligned`. */
ws_random_shape ws_random_uniform_shape_at(uint64_t seed, int idx, int64_t multiple, ws_random_sides sides);

/* Shape idx of a seed of the class `wide`; m, n, k and ops are those without padding. */
ws_random_shape ws_random_wide_shape_at(uint64_t seed, int idx, bool is_padded);

enum { WS_RANDOM_CASE_BYTES = 128 };
/* "TN 130x77x2049 ragged lda+3 ldb+1 ldc+60 seed=1 #7" */
void ws_random_shape_case(const ws_random_shape *shape, char text[WS_RANDOM_CASE_BYTES]);

#ifdef __cplusplus
}
#endif
#endif
