/* solve.cuh - triangular systems with one diagonal block, by substitution (triangle_args.h: D x
 * = alpha b, D lower triangular, rows counted as the steps say).
 *
 * A block of threads has 16 right-hand sides, all their rows in shared memory, and goes down D by
 * rows of parts, 32 x 32, by types two rows at a time (halves). Warps that sum have some columns of every
 * part each, which they bring for themselves, asynchronously, some parts ahead; four more warps solve:
 *
 *        p = 0  1  2      left of the diagonal  D x, all warps that sum; of row b + 1 all but the
 *   b=0 [d]                                     last part while row b is being solved
 *   b=1 [.][d]            on the diagonal       8 lanes for each right-hand side, 4 rows of a part each,
 *   b=2 [.][.][d]                               which hand on what they have solved
 *
 * Substitution is stable for every triangle, whatever its scaling: |b - D x| <= gamma_{n+1} |D|
 * |x|. Every element has one order of summation (each warp's own sum, then these in their order), so
 * its bits depend on D and its own right-hand side. */
#ifndef WS_CUDA_SOLVE_CUH
#define WS_CUDA_SOLVE_CUH
#include "cuda/kernels/triangle.cuh"
#include "cuda/ptx/barrier.cuh"

namespace ws {

__device__ __forceinline__ float reciprocal_of(float x) { return 1 / x; }
/* Of a number near 1, or 0, or none. By Newton's iteration: a division calls a routine, which costs
 * the kernel registers. */
__device__ __forceinline__ double reciprocal_of(double x) {
  double r = 1 / float(x);
  if (x == 0 || !isfinite(x)) return r;
#pragma unroll
  for (int i = 0; i < 3; i++) r = fma(r, fma(-x, r, 1.0), r);
  return r;
}
__device__ __forceinline__ float2 reciprocal_of(float2 x) {
  const double re = x.x, im = x.y, of_size = reciprocal_of(re * re + im * im);
  return {float(re * of_size), float(-im * of_size)};
}
__device__ __forceinline__ double2 reciprocal_of(double2 x) {
  const double of_size = reciprocal_of(fma(x.x, x.x, x.y * x.y));
  return {x.x * of_size, -x.y * of_size};
}

template <class Real> __device__ __forceinline__ Real times(Real a, Real b) { return a * b; }
__device__ __forceinline__ float2 times(float2 a, float2 b) { return {fmaf(a.x, b.x, -(a.y * b.y)), fmaf(a.x, b.y, a.y * b.x)}; }
__device__ __forceinline__ double2 times(double2 a, double2 b) { return {fma(a.x, b.x, -(a.y * b.y)), fma(a.x, b.y, a.y * b.x)}; }

/* x -= d * y */
template <class Real> __device__ __forceinline__ void subtract(Real &x, Real d, Real y) { x = fma(-d, y, x); }
template <class Pair> __device__ __forceinline__ void subtract_pair(Pair &x, Pair d, Pair y) {
  x.x = fma(-d.x, y.x, x.x), x.y = fma(-d.x, y.y, x.y);
  x.x = fma(d.y, y.y, x.x), x.y = fma(-d.y, y.x, x.y);
}
__device__ __forceinline__ void subtract(float2 &x, float2 d, float2 y) { subtract_pair(x, d, y); }
__device__ __forceinline__ void subtract(double2 &x, double2 d, double2 y) { subtract_pair(x, d, y); }

__device__ __forceinline__ float from_lane(float x, int lane) { return __shfl_sync(~0u, x, lane); }
__device__ __forceinline__ double from_lane(double x, int lane) { return __shfl_sync(~0u, x, lane); }
__device__ __forceinline__ float2 from_lane(float2 x, int lane) { return {from_lane(x.x, lane), from_lane(x.y, lane)}; }
__device__ __forceinline__ double2 from_lane(double2 x, int lane) { return {from_lane(x.x, lane), from_lane(x.y, lane)}; }

/* Of its larger part; of 0, Inf and NaN 0. */
template <class Real> __device__ __forceinline__ int exponent_of(Real x) { return x == 0 || !isfinite(x) ? 0 : ilogb(x); }
__device__ __forceinline__ int exponent_of(float2 x) { return exponent_of(fmaxf(fabsf(x.x), fabsf(x.y))); }
__device__ __forceinline__ int exponent_of(double2 x) { return exponent_of(fmax(fabs(x.x), fabs(x.y))); }

/* Whether a reciprocal needs no scaling, and has the same bits without. */
__device__ __forceinline__ bool has_plain_reciprocal(float x) { return fabsf(x) > 0x1p-100f && fabsf(x) < 0x1p100f; }
__device__ __forceinline__ bool has_plain_reciprocal(double x) { return fabs(x) > 0x1p-100 && fabs(x) < 0x1p100; }
template <class Pair> __device__ __forceinline__ bool has_plain_reciprocal(Pair x) {
  const double most = fmax(fabs(double(x.x)), fabs(double(x.y)));
  return most > 0x1p-50 && most < 0x1p50;
}

__device__ __forceinline__ float scaled_by(float x, int exponent) { return scalbnf(x, exponent); }
__device__ __forceinline__ double scaled_by(double x, int exponent) { return scalbn(x, exponent); }
__device__ __forceinline__ float2 scaled_by(float2 x, int exponent) { return {scalbnf(x.x, exponent), scalbnf(x.y, exponent)}; }
__device__ __forceinline__ double2 scaled_by(double2 x, int exponent) { return {scalbn(x.x, exponent), scalbn(x.y, exponent)}; }

/* What triangle_args.h says of the type. */
template <class Type> struct solve_shape;
#define WS_SOLVE_SHAPE(t)                                                                                  \
  template <> struct solve_shape<type_##t> {                                                               \
    static constexpr int warps = WS_SOLVE_WARPS_##t, own_k = WS_SOLVE_OWN_K_##t, ring = WS_SOLVE_RING_##t, \
                         d_places = WS_SOLVE_D_PLACES_##t, halves = WS_SOLVE_HALVES_##t;                   \
  };
WS_SOLVE_SHAPE(s)
WS_SOLVE_SHAPE(d)
WS_SOLVE_SHAPE(c)
WS_SOLVE_SHAPE(z)
#undef WS_SOLVE_SHAPE

template <class Type> struct solver {
  using config = triangle_config<Type>;
  using element = typename Type::element;
  using real = typename Type::real;
  using shape = solve_shape<Type>;
  static constexpr int part_n = WS_TRIANGLE_PART, columns = WS_SOLVE_COLUMNS, x_pitch = WS_SOLVE_X_PITCH,
                       d_pitch = WS_TRIANGLE_PITCH, own = 4; /* rows of a part, and columns, of a thread's sums */
  static constexpr int halves = shape::halves, rows_n = halves * part_n, own_pitch = WS_SOLVE_OWN_PITCH(halves),
                       sum_pitch = WS_SOLVE_SUM_PITCH(halves), d_size = WS_SOLVE_D_SIZE(halves);
  static constexpr int warps = shape::warps, own_k = shape::own_k, ring = shape::ring, d_places = shape::d_places;
  static constexpr int n_summing = warps * 32, n_solving = WS_SOLVE_SOLVERS * 32, n_threads = n_summing + n_solving;
  static constexpr int groups = part_n / own,
                       sides = columns / WS_SOLVE_SOLVERS; /* of lanes that solve; right-hand sides of theirs */
  /* Barriers: a part on the diagonal has been solved, of the first half or of the second; sums of a row are there; of
   * those that solve. */
  static constexpr int first_solved = 1, second_solved = 2, summed = 3, among_solvers = 4;
  static_assert(groups * sides == 32 && WS_SOLVE_SOLVERS * sides == columns && (halves == 1 || halves == 2));
  static_assert(part_n / own * (columns / own) == 32 && part_n % (warps * own_k) == 0);
  static_assert(own_pitch * sizeof(element) % 16 == 0 && x_pitch * sizeof(element) % 16 == 0 && sum_pitch % 4 == 0, "aligned");

  const ws_triangle_args &args;
  const element *from; /* D */
  element *places, *sums, *diagonal, *x;
  bool conj, by_rows;
  int n_wide;      /* rows of which 16 bytes of a column may be read at a time */
  bool is_flipped; /* rows lie in shared memory as in D's, where they are counted from the last one */

  __device__ solver(const ws_triangle_args &given, unsigned char *shared)
      : args(given), from(nullptr), conj(given.conj != 0), by_rows(given.of_d.row == 1 || given.of_d.row == -1),
        n_wide(given.d_vectors && (given.of_d.row == 1 || (given.of_d.row == -1 && given.n * sizeof(element) % 16 == 0))
                   ? int(given.n) / rows_n
                   : 0),
        is_flipped(given.of_d.row == -1) {
    places = reinterpret_cast<element *>(shared);
    sums = places + warps * ring * own_k * own_pitch;
    diagonal = sums + warps * columns * sum_pitch;
    x = diagonal + d_places * d_size;
  }

  static __device__ __forceinline__ int lane() { return int(threadIdx.x) % 32; }
  static __device__ __forceinline__ int warp() { return int(threadIdx.x) / 32; }
  /* Of this thread's sums the first row (as it lies in shared memory) and column. */
  static __device__ __forceinline__ int own_row() { return lane() / (columns / own) * own; }
  static __device__ __forceinline__ int own_column() { return lane() % (columns / own) * own; }

  /* ---- memory ---- */

  /* What a warp asks for: its columns of all parts left of the diagonal, in the order in which it takes
   * them. source: this thread's first element of them, where it copies 16 bytes. */
  struct walk {
    int place, b, k;
    const element *of_row, *source;
  };
  static constexpr int vec = 16 / int(sizeof(element)), of_column = rows_n / vec; /* copies of 16 bytes */
  __device__ __forceinline__ walk walk_begin() const {
    const int i = lane() % of_column * vec - (is_flipped ? rows_n - 1 : 0), j = warp() * own_k + lane() / of_column;
    const element *const first = from + rows_n * args.of_d.row + i + j * args.of_d.column;
    return {0, 1, 0, first, first};
  }
  /* A place, as what it is from this warp's first; the next one. */
  static constexpr int place_size = own_k * own_pitch;
  __device__ __forceinline__ element *own_place(int place) const { return places + warp() * ring * place_size + place; }
  static __device__ __forceinline__ int after(int place) { return place == (ring - 1) * place_size ? 0 : place + place_size; }

  /* Begins to bring the next ones, and counts as a group even where there are none. */
  __device__ __forceinline__ void ask(walk &ahead, int n, int n_blocks) const {
    element *const to = own_place(ahead.place);
    if (ahead.b < n_wide)
      copy_wide(ahead.source, to);
    else if (ahead.b < n_blocks)
      copy_single(ahead.b, ahead.k, to, n - ahead.b * rows_n);
    cp_async_commit();
    ahead.place = after(ahead.place);
    ahead.k += warps * own_k, ahead.source += warps * own_k * args.of_d.column;
    if (ahead.k < ahead.b * rows_n) return;
    ahead.b++, ahead.k = 0;
    ahead.of_row += rows_n * args.of_d.row, ahead.source = ahead.of_row;
  }
  __device__ __forceinline__ void copy_wide(const element *source, element *to) const {
    element *const target = to + lane() / of_column * own_pitch + lane() % of_column * vec;
    constexpr int next = 32 / of_column;
#pragma unroll
    for (int j = 0; j < own_k; j += next) cp_async_16(shared_address(target + j * own_pitch), source + j * args.of_d.column, 16);
  }
  __device__ __forceinline__ void copy_single(int b, int k, element *to, int n_rows) const {
    constexpr int at_once = 32 / own_k; /* rows */
    const int i = by_rows ? lane() : lane() / own_k, j = by_rows ? 0 : lane() % own_k;
    const element *const source = from + (b * rows_n + i) * args.of_d.row + (k + warp() * own_k + j) * args.of_d.column;
    const auto copy = [&](int row, int column, const element *at) {
      copy_element<Type>(to + column * own_pitch + (is_flipped ? rows_n - 1 - row : row), at, from, row < n_rows);
    };
    if (by_rows) {
#pragma unroll 1
      for (int h = 0; h < halves; h++)
        for (int s = 0; s < own_k; s++) copy(i + h * part_n, s, source + h * part_n * args.of_d.row + s * args.of_d.column);
    } else {
#pragma unroll 4
      for (int s = 0; s < own_k * halves; s++) copy(i + s * at_once, j, source + s * at_once * args.of_d.row);
    }
  }

  /* Warps that solve: their elements of parts on the diagonal, and of a part between two such. */
  struct corner_walk {
    int b, i, j;
    const element *source;
  };
  static constexpr int part_size = part_n * d_pitch;
  static __device__ __forceinline__ constexpr int part_idx(int h, int p) { return h * (h + 1) / 2 + p; }
  __device__ __forceinline__ element *diagonal_of(int b) const { return diagonal + b % d_places * d_size; }

  __device__ __forceinline__ corner_walk corner_begin() const {
    const int across = warp() - warps, i = by_rows ? lane() : across, j = by_rows ? across : lane();
    return {0, i, j, from + i * args.of_d.row + j * args.of_d.column};
  }
  /* The one between two such, where 16 bytes may be read at a time. */
  __device__ __forceinline__ void copy_between(int b) const {
    constexpr int of_part = part_n / vec, next = 32 / of_part, own_columns = part_n / WS_SOLVE_SOLVERS;
    const int i = lane() % of_part * vec, j = (warp() - warps) * own_columns + lane() / of_part;
    const element *const source = from + b * rows_n * (args.of_d.row + args.of_d.column) + part_n + i + j * args.of_d.column;
    element *const to = diagonal_of(b) + part_idx(1, 0) * part_size + j * d_pitch + i;
#pragma unroll
    for (int s = 0; s < own_columns; s += next) cp_async_16(shared_address(to + s * d_pitch), source + s * args.of_d.column, 16);
  }
  __device__ __forceinline__ void copy_corner(corner_walk &ahead, int n) const {
    constexpr int step = WS_SOLVE_SOLVERS;
    const int i_step = by_rows ? 0 : step, j_step = step - i_step, of_diagonal = args.structure == WS_UNIT_TRIANGULAR ? 1 : 0;
    const int64_t source_step = step * (by_rows ? args.of_d.column : args.of_d.row);
#pragma unroll
    for (int h = 0; h < halves; h++)
#pragma unroll
      for (int p = 0; p <= h; p++) {
        const int n_rows = n - ahead.b * rows_n - h * part_n, least = p < h ? -part_n : of_diagonal;
        if (p < h && ahead.b < n_wide && !is_flipped) {
          copy_between(ahead.b);
          continue;
        }
        const element *source = ahead.source + h * part_n * args.of_d.row + p * part_n * args.of_d.column;
        element *const to = diagonal_of(ahead.b) + part_idx(h, p) * part_size + ahead.j * d_pitch + ahead.i;
#pragma unroll
        for (int s = 0; s < part_n / step; s++, source += source_step) {
          const int i = ahead.i + s * i_step, j = ahead.j + s * j_step;
          copy_element<Type>(to + s * (j_step * d_pitch + i_step), source, from, i < n_rows && i - j >= least);
        }
      }
    cp_async_commit();
    ahead.b++, ahead.source += rows_n * (args.of_d.row + args.of_d.column);
  }

  /* As many at a time as a warp has lanes: units of `rows` rows, where those are neighbours in memory. */
  template <int ROWS, class Body> __device__ __forceinline__ void for_each_x(int n, int64_t column, Body body) const {
    const int n_units = int(ws_ceil_div(n, rows_n)) * rows_n * columns / 32,
              n_there = int(ws_min(columns, args.n_columns - column));
    const int rows = args.of_x.row == 1 || args.of_x.row == -1 ? ROWS : 2, across = 32 / rows, in_row = columns / across;
#pragma unroll 1
    for (int u = warp(); u < n_units; u += n_threads / 32) {
      const int i = u / in_row * rows + lane() % rows, c = u % in_row * across + lane() / rows;
      body(i, c, i < n && c < n_there);
    }
  }
  /* No bank of shared memory is met twice. */
  __device__ __forceinline__ void load_x(const element *b, int n, int64_t column) const {
    for_each_x<8>(n, column, [&](int i, int c, bool is_there) {
      copy_element<Type>(x + i * x_pitch + c, b + i * args.of_x.row + (column + c) * args.of_x.column, b, is_there);
    });
    cp_async_commit();
  }
  /* Whole lines of memory are written. */
  __device__ __forceinline__ void store_x(element *to, int n, int64_t column) const {
    for_each_x<32>(n, column, [&](int i, int c, bool is_there) {
      if (is_there) store_element<config>(to + i * args.of_x.row + (column + c) * args.of_x.column, x[i * x_pitch + c]);
    });
  }

  /* Of the rows of this thread's group. By the product of two factors the reciprocal is too small or large. */
  struct reciprocals {
    element value[halves][own];
    real shift[halves][own][2];
    bool has_shifts;
  };
  __device__ __forceinline__ void find_reciprocals(reciprocals &of, int b, int n) const {
    constexpr int most = sizeof(real) == 4 ? 100 : 1000;
    of.has_shifts = false;
#pragma unroll
    for (int h = 0; h < halves; h++) {
      const bool is_one = b * rows_n + h * part_n + lane() >= n || args.structure == WS_UNIT_TRIANGULAR;
      element value = diagonal_of(b)[part_idx(h, h) * part_size + lane() * (d_pitch + 1)];
      if (is_one) value = one_of(element{});
      if (conj) value = conjugate_of(value);
      int left = 0;
      if (__any_sync(~0u, !has_plain_reciprocal(value))) {
        const int exponent = exponent_of(value), kept = exponent < most && exponent > -most ? exponent : 0;
        left = kept - exponent;
        value = scaled_by(reciprocal_of(scaled_by(value, -exponent)), -kept);
      } else {
        value = reciprocal_of(value);
      }
      const int half = left / 2;
      const bool is_shifted = __any_sync(~0u, left != 0) != 0;
      of.has_shifts = of.has_shifts || is_shifted;
#pragma unroll
      for (int r = 0; r < own; r++) {
        of.value[h][r] = from_lane(value, group() * own + r);
        of.shift[h][r][0] = of.shift[h][r][1] = 1;
        if (!is_shifted) continue;
        of.shift[h][r][0] = from_lane(scaled_by(real(1), half), group() * own + r);
        of.shift[h][r][1] = from_lane(scaled_by(real(1), left - half), group() * own + r);
      }
    }
  }

  /* As many as a thread has rows, or columns, 16 bytes at a time. */
  struct alignas(16) piece {
    uint32_t word[4];
  };
  static constexpr int n_pieces = own * int(sizeof(element)) / 16;
  union neighbours {
    piece pieces[n_pieces];
    element elements[own];
    __device__ neighbours() {}
  };
  static __device__ __forceinline__ void load_neighbours(const element *at, element (&to)[own]) {
    neighbours all;
#pragma unroll
    for (int u = 0; u < n_pieces; u++) all.pieces[u] = reinterpret_cast<const piece *>(at)[u];
#pragma unroll
    for (int e = 0; e < own; e++) to[e] = all.elements[e];
  }
  static __device__ __forceinline__ void store_neighbours(element *at, const element (&from)[own]) {
    neighbours all;
#pragma unroll
    for (int e = 0; e < own; e++) all.elements[e] = from[e];
#pragma unroll
    for (int u = 0; u < n_pieces; u++) reinterpret_cast<piece *>(at)[u] = all.pieces[u];
  }
  __device__ __forceinline__ void load_d(const element *at, element (&rows)[own]) const {
    load_neighbours(at, rows);
    if constexpr (Type::unit == 2)
      if (conj)
#pragma unroll
        for (int r = 0; r < own; r++) rows[r] = conjugate_of(rows[r]);
  }

  /* ---- left of the diagonal: warps that sum ---- */

  using own_sums = element[halves][own][own]; /* of halves, by rows */

  __device__ __forceinline__ void subtract_columns(own_sums &acc, const element *of_d, const element *of_x) const {
#pragma unroll
    for (int j = 0; j < own_k; j++) {
      element value[own];
      load_neighbours(of_x + j * x_pitch, value);
#pragma unroll
      for (int h = 0; h < halves; h++) {
        element rows[own];
        load_d(of_d + j * own_pitch + h * part_n, rows);
#pragma unroll
        for (int r = 0; r < own; r++)
#pragma unroll
          for (int c = 0; c < own; c++) subtract(acc[h][r][c], rows[r], value[c]);
      }
    }
  }
  /* By columns, which lie so that neither side meets a bank twice: the first ones of all quads before the second ones. */
  static __device__ __forceinline__ int sum_column(int column) { return column % own * own + column / own; }
  __device__ __forceinline__ void put_sums(const own_sums &acc) const {
#pragma unroll
    for (int h = 0; h < halves; h++) {
      const int row = h * part_n + own_row();
      element *const to =
          sums + (warp() * columns + sum_column(own_column())) * sum_pitch + (is_flipped ? rows_n - own - row : row);
#pragma unroll
      for (int c = 0; c < own; c++) {
        element rows[own];
#pragma unroll
        for (int r = 0; r < own; r++) rows[r] = is_flipped ? acc[h][own - 1 - r][c] : acc[h][r][c];
        store_neighbours(to + c * own * sum_pitch, rows);
      }
    }
  }

  /* Parts p .. end - 1 of a row, of which the first is in `place`. */
  __device__ __forceinline__ void subtract_parts(own_sums &acc, int p, int end, int &place, walk &ahead, int n,
                                                 int n_blocks) const {
    const element *of_x = x + (p * part_n + warp() * own_k) * x_pitch + own_column();
    const element *const last = of_x + (end - p) * part_n * x_pitch, *const of_d = own_place(0) + own_row();
#pragma unroll 1
    for (; of_x != last; of_x += warps * own_k * x_pitch) {
      cp_async_wait<ring - 2>();
      __syncwarp(); /* it has come; the place of the one before is free */
      ask(ahead, n, n_blocks);
      subtract_columns(acc, of_d + place, of_x);
      place = after(place);
    }
  }

  /* Of rows before the last one. */
  static __device__ __forceinline__ void wait_for_solved(int h) {
    if (h == 0)
      barrier_sync<first_solved>(n_threads);
    else
      barrier_sync<second_solved>(n_threads);
  }
  static __device__ __forceinline__ void say_solved(int h) {
    if (h == 0)
      barrier_arrive<first_solved>(n_threads);
    else
      barrier_arrive<second_solved>(n_threads);
  }

  __device__ __forceinline__ void sum(int n, int n_blocks, walk &ahead) const {
    int place = 0;
#pragma unroll 1
    for (int b = 1; b < n_blocks; b++) {
      own_sums acc = {};
      const int p = (b - 1) * halves;
      subtract_parts(acc, 0, p, place, ahead, n, n_blocks);
#pragma unroll
      for (int h = 0; h < halves; h++) {
        wait_for_solved(h); /* of row b - 1; and sums of it are not needed any more */
        subtract_parts(acc, p + h, p + h + 1, place, ahead, n, n_blocks);
      }
      put_sums(acc);
      barrier_arrive<summed>(n_threads);
    }
    cp_async_wait<0>();
  }

  /* ---- on the diagonal: warps that solve ---- */

  static __device__ __forceinline__ int group() { return lane() / sides; }
  static __device__ __forceinline__ int own_side() { return lane() % sides * WS_SOLVE_SOLVERS + warp() - warps; }

  using own_sides = element[halves][own];
  __device__ __forceinline__ element *sides_at(int b, int h) const {
    return x + (b * rows_n + h * part_n + group() * own) * x_pitch + own_side();
  }

  /* Row b's right-hand sides, less their sums. */
  __device__ __forceinline__ void load_sides(own_sides &acc, int b, const scaling<config> &scale) const {
#pragma unroll
    for (int h = 0; h < halves; h++) {
      const element *const of_sums = sums + sum_column(own_side()) * sum_pitch + h * part_n + group() * own;
      element total[own], next[own];
      if (b > 0) load_neighbours(of_sums, total);
#pragma unroll
      for (int w = 1; w < warps && b > 0; w++) {
        load_neighbours(of_sums + w * columns * sum_pitch, next);
#pragma unroll
        for (int r = 0; r < own; r++) total[r] = plus<config>(total[r], next[r]);
      }
#pragma unroll
      for (int r = 0; r < own; r++) {
        acc[h][r] = scale(sides_at(b, h)[r * x_pitch], element{});
        if (b > 0) acc[h][r] = plus<config>(acc[h][r], total[r]);
      }
    }
  }

  /* This group's rows, if those before them have been subtracted. */
  template <bool HAS_SHIFTS>
  __device__ __forceinline__ void solve_own(element (&value)[own], const element (&corner)[own][own], const reciprocals &of,
                                            int h) const {
#pragma unroll
    for (int j = 0; j < own; j++) {
      value[j] = times(value[j], of.value[h][j]);
      if (HAS_SHIFTS) value[j] = multiplied(multiplied(value[j], of.shift[h][j][0]), of.shift[h][j][1]);
#pragma unroll
      for (int r = j + 1; r < own; r++) subtract(value[r], corner[j][r], value[j]);
    }
  }
  static __device__ __forceinline__ real multiplied(real a, real by) { return a * by; }
  template <class Pair> static __device__ __forceinline__ Pair multiplied(Pair a, real by) { return {a.x * by, a.y * by}; }

  /* A part on the diagonal, and what its unknowns take from the half after it. Every group does what one of them has to do:
   * what it has solved is kept apart, what comes of it later is of no use. */
  template <bool HAS_SHIFTS, int H>
  __device__ __forceinline__ void solve_part(own_sides &acc, const reciprocals &of, int b) const {
    const element *const of_d = diagonal_of(b) + part_idx(H, H) * part_size + group() * own, *const of_next =
                                                                                                 diagonal_of(b) +
                                                                                                 part_idx(1, 0) * part_size +
                                                                                                 group() * own;
    element corner[own][own], result[own] = {};
#pragma unroll
    for (int r = 0; r < own; r++) load_d(of_d + (group() * own + r) * d_pitch, corner[r]);
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ != 900 /* as there are registers for */
    [[maybe_unused]] constexpr int at_once = sizeof(element) == 16 ? 1 : 2;
#else
    [[maybe_unused]] constexpr int at_once = sizeof(element) == 16 ? 1 : sizeof(real) == 8 ? 2 : groups;
#endif
#pragma unroll at_once
    for (int g = 0; g < groups; g++) {
      element value[own];
#pragma unroll
      for (int r = 0; r < own; r++) value[r] = acc[H][r];
      solve_own<HAS_SHIFTS>(value, corner, of, H);
#pragma unroll
      for (int r = 0; r < own; r++)
        if (group() == g) result[r] = value[r];
#pragma unroll
      for (int j = 0; j < own; j++) {
        const element of_group = from_lane(value[j], g * sides + lane() % sides);
        element rows[own];
        load_d(of_d + (g * own + j) * d_pitch, rows);
#pragma unroll
        for (int r = 0; r < own; r++) subtract(acc[H][r], rows[r], of_group);
        if constexpr (H + 1 < halves) {
          load_d(of_next + (g * own + j) * d_pitch, rows);
#pragma unroll
          for (int r = 0; r < own; r++) subtract(acc[H + 1][r], rows[r], of_group);
        }
      }
    }
#pragma unroll
    for (int r = 0; r < own; r++) sides_at(b, H)[r * x_pitch] = result[r];
  }

  template <int H = 0>
  __device__ __forceinline__ void solve_row(own_sides &acc, const reciprocals &of, int b, int n, int n_blocks) const {
    if (b * rows_n + H * part_n >= n) return;
    if (of.has_shifts)
      solve_part<true, H>(acc, of, b);
    else
      solve_part<false, H>(acc, of, b);
    if (b + 1 < n_blocks) say_solved(H);
    if constexpr (H + 1 < halves) solve_row<H + 1>(acc, of, b, n, n_blocks);
  }

  /* Its part of D, whose place was free or will be. */
  __device__ __forceinline__ void prepare(reciprocals &of, int b, corner_walk &ahead, int n) const {
    if (d_places > 1) cp_async_wait<0>();
    barrier_sync<among_solvers>(n_solving); /* the place of row b - 1 is free; row b has come where it has its own */
    copy_corner(ahead, n);
    if (d_places == 1) {
      cp_async_wait<0>();
      barrier_sync<among_solvers>(n_solving);
    }
    find_reciprocals(of, b, n);
  }

  __device__ __forceinline__ void solve(int n, int n_blocks, corner_walk &ahead, const scaling<config> &scale) const {
    reciprocals of;
    find_reciprocals(of, 0, n);
#pragma unroll 1
    for (int b = 0; b < n_blocks; b++) {
      own_sides acc;
      if (b > 0) barrier_sync<summed>(n_threads);
      load_sides(acc, b, scale);
      solve_row(acc, of, b, n, n_blocks);
      if (b + 1 < n_blocks) prepare(of, b + 1, ahead, n);
    }
    cp_async_wait<0>();
  }

  /* ---- right-hand sides of one system ---- */

  static __device__ __forceinline__ uint32_t groups_of(const ws_triangle_args &args) {
    return uint32_t(ws_ceil_div(args.n_columns, columns));
  }
  __device__ __forceinline__ int64_t first_column(uint32_t item) const { return int64_t(item % groups_of(args)) * columns; }
  __device__ __forceinline__ element *sides_of(uint32_t item) const {
    return static_cast<element *>(args.x) + int64_t(item / groups_of(args)) * args.of_x.stride;
  }

  __device__ __forceinline__ void run(uint32_t item, const scaling<config> &scale) {
    const int n = int(args.n), n_blocks = int(ws_ceil_div(n, rows_n));
    const bool sums_up = warp() < warps;
    from = static_cast<const element *>(args.d) + int64_t(item / groups_of(args)) * args.of_d.stride;
    load_x(sides_of(item), n, first_column(item));
    walk ahead = walk_begin();
    corner_walk corners = corner_begin();
#pragma unroll 1
    for (int i = 0; i + 1 < ring && sums_up; i++) ask(ahead, n, n_blocks);
#pragma unroll 1
    for (int i = 0; i < d_places && !sums_up; i++) copy_corner(corners, n);
    if (sums_up)
      cp_async_wait<ring - 1>(); /* X */
    else
      cp_async_wait<0>();
    __syncthreads();
    if (sums_up)
      sum(n, n_blocks, ahead);
    else
      solve(n, n_blocks, corners, scale);
    __syncthreads();
    store_x(sides_of(item), n, first_column(item));
    __syncthreads();
  }
};

template <class Type> __device__ __forceinline__ void solve_systems(const ws_triangle_args &args) {
  extern __shared__ __align__(16) unsigned char shared[];
  solver<Type> own(args, shared);
  const scaling<triangle_config<Type>> scale = triangle_scaling<triangle_config<Type>>(args);
  const uint32_t n_items = uint32_t(args.n_batch) * solver<Type>::groups_of(args);
  for (uint32_t item = worker_idx(); item < n_items; item += n_workers()) own.run(item, scale);
}

} // namespace ws
#endif
