/* triangle_args.h - arguments of the kernel for diagonal blocks of structured operands
 * (triangle.cuh). Shared by C and CUDA. */
#ifndef WS_CUDA_TRIANGLE_ARGS_H
#define WS_CUDA_TRIANGLE_ARGS_H
#include <stdint.h>

#include "core/tile.h"

/* With D a diagonal block and X its rows of the right-hand sides, column by column:
 *   SOLVE     X = D^-1 (alpha X), D lower triangular, by substitution
 *   SLICED    the same of floats, products by slices of TF32
 *   MULTIPLY  X = alpha D X, D lower triangular
 *   ADD       Y = alpha D X + beta Y, D of any structure
 * What is upper triangular, or stands on the right, is brought into this form by the steps: rows may
 * be counted from the last one, and be columns. */
typedef enum ws_triangle_work { WS_TRIANGLE_SOLVE, WS_TRIANGLE_MULTIPLY, WS_TRIANGLE_ADD, WS_TRIANGLE_SLICED } ws_triangle_work;

/* Element (i, j) of something is at data[i * row + j * column], in elements. */
typedef struct ws_steps {
  int64_t row, column, stride; /* stride: from product to product of a batch */
} ws_steps;

typedef struct ws_triangle_args {
  int32_t work, structure; /* ws_triangle_work, ws_structure */
  /* D's element (i, j) with i >= j is in the triangle that is stored; of ADD else that with i <=
   * j */
  int32_t is_lower;
  int32_t conj; /* all of D */
  /* columns of D begin where 16 bytes may be read at a time */
  int32_t d_vectors;
  int64_t n, n_columns, n_batch; /* D is n x n, n at most the kernel's block size; or, of ADD, many such blocks */
  const void *d;
  void *x;
  void *y; /* ADD */
  ws_steps of_d, of_x, of_y;
  union {
    float s[2];
    double d[2];
  } alpha, beta;
  int32_t beta_zero;
} ws_triangle_args;

/* Columns that a block takes at a time; and the largest diagonal block, by type. ADD takes
 * blocks of WS_TRIANGLE_ADD_N, all of them in one launch. */
enum {
  WS_TRIANGLE_COLUMNS = 32,
  WS_TRIANGLE_THREADS = 128,
  WS_TRIANGLE_PART = 32,
  WS_TRIANGLE_PITCH = 36,
  WS_TRIANGLE_N_s = 128,
  WS_TRIANGLE_N_d = 96,
  WS_TRIANGLE_N_c = 96,
  WS_TRIANGLE_N_z = 64,
  WS_TRIANGLE_ADD_N_s = 64,
  WS_TRIANGLE_ADD_N_d = 64,
  WS_TRIANGLE_ADD_N_c = 64,
  WS_TRIANGLE_ADD_N_z = 32,
  /* systems (solve.cuh): right-hand sides of a block, all their rows with room for 4 more */
  WS_SOLVE_COLUMNS = 16,
  WS_SOLVE_X_PITCH = 20,
  WS_SOLVE_SOLVERS = 4, /* warps beside those that sum */
  /* By type: the largest diagonal block (where there is the memory); warps that sum; columns of D
   * that each has at a time, and places for as many; places for rows' parts on the diagonal; rows of parts at a time. */
  WS_SOLVE_N_s = 512,
  WS_SOLVE_N_d = 256,
  WS_SOLVE_N_c = 256,
  WS_SOLVE_N_z = 128,
  WS_SOLVE_WARPS_s = 8,
  WS_SOLVE_WARPS_d = 4,
  WS_SOLVE_WARPS_c = 4,
  WS_SOLVE_WARPS_z = 2,
  WS_SOLVE_OWN_K_s = 4,
  WS_SOLVE_OWN_K_d = 4,
  WS_SOLVE_OWN_K_c = 4,
  WS_SOLVE_OWN_K_z = 4,
  WS_SOLVE_RING_s = 3,
  WS_SOLVE_RING_d = 6,
  WS_SOLVE_RING_c = 6,
  WS_SOLVE_RING_z = 6,
  WS_SOLVE_D_PLACES_s = 2,
  WS_SOLVE_D_PLACES_d = 2,
  WS_SOLVE_D_PLACES_c = 2,
  WS_SOLVE_D_PLACES_z = 1,
  WS_SOLVE_HALVES_s = 2,
  WS_SOLVE_HALVES_d = 1,
  WS_SOLVE_HALVES_c = 1,
  WS_SOLVE_HALVES_z = 1,
  /* systems by slices (solve_sliced.cuh): right-hand sides of a block, tiles of 32 rows of a warp, warps; the largest diagonal block */
  WS_SLICED_SOLVE_COLUMNS = 32,
  WS_SLICED_SOLVE_TILES = 2,
  WS_SLICED_SOLVE_WARPS = 8,
  WS_SLICED_SOLVE_N = 512
};

/* Shared memory: unknowns by tiles, of each warp a tile of D and its reciprocals; a barrier for each tile. */
#define WS_SLICED_SOLVE_BYTES(columns, tiles, warps)                                                            \
  (4 * ((tiles) * (warps) * (columns)*WS_TRIANGLE_PITCH + (warps)*WS_TRIANGLE_PART * (WS_TRIANGLE_PITCH + 1)) + \
   8 * (tiles) * (warps))
#define WS_SLICED_SOLVE_SHARED_BYTES WS_SLICED_SOLVE_BYTES(WS_SLICED_SOLVE_COLUMNS, WS_SLICED_SOLVE_TILES, WS_SLICED_SOLVE_WARPS)

#define WS_SOLVE_THREADS(t) (32 * (WS_SOLVE_WARPS_##t + WS_SOLVE_SOLVERS))
/* Rows of a block of threads at a time; their columns of D, and of sums, in shared memory; parts of D on the diagonal and
 * between two such. */
#define WS_SOLVE_ROWS(t) (WS_SOLVE_HALVES_##t * WS_TRIANGLE_PART)
#define WS_SOLVE_OWN_PITCH(halves) ((halves)*WS_TRIANGLE_PART + 8)
#define WS_SOLVE_SUM_PITCH(halves) ((halves)*WS_TRIANGLE_PART + 8)
#define WS_SOLVE_D_SIZE(halves) ((halves) * ((halves) + 1) / 2 * WS_TRIANGLE_PART * WS_TRIANGLE_PITCH)
/* Places for columns of D, sums of all warps, parts on the diagonal; and n rows of right-hand sides. */
#define WS_SOLVE_SHARED_BYTES(t, bytes, n)                                                                            \
  ((bytes) * (WS_SOLVE_WARPS_##t * WS_SOLVE_RING_##t * WS_SOLVE_OWN_K_##t * WS_SOLVE_OWN_PITCH(WS_SOLVE_HALVES_##t) + \
              WS_SOLVE_WARPS_##t * WS_SOLVE_COLUMNS * WS_SOLVE_SUM_PITCH(WS_SOLVE_HALVES_##t) +                       \
              WS_SOLVE_D_PLACES_##t * WS_SOLVE_D_SIZE(WS_SOLVE_HALVES_##t) + (n)*WS_SOLVE_X_PITCH))

/* Shared memory: D by parts, those of its lower triangle (ADD: all), and X. */
#define WS_TRIANGLE_PARTS(n) ((n) / WS_TRIANGLE_PART * ((n) / WS_TRIANGLE_PART + 1) / 2)
#define WS_TRIANGLE_ADD_PARTS(n) ((n) / WS_TRIANGLE_PART * ((n) / WS_TRIANGLE_PART))
#define WS_TRIANGLE_MOST(a, b) ((a) > (b) ? (a) : (b))
#define WS_TRIANGLE_SHARED_BYTES(bytes, n, add_n)                                                                          \
  (WS_TRIANGLE_MOST(WS_TRIANGLE_PARTS(n), WS_TRIANGLE_ADD_PARTS(add_n)) * WS_TRIANGLE_PART * WS_TRIANGLE_PITCH * (bytes) + \
   (n) * (WS_TRIANGLE_COLUMNS + 1) * (bytes))
#endif
