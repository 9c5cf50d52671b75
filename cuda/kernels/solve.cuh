/* solve.cuh - triangular systems with one diagonal block, by substitution (triangle_args.h: D x
 * = alpha b, D lower triangular, rows counted as the steps say).
 *
 * A block of threads has 16 right-hand sides, all their rows in shared memory, and goes down D by
 * rows of parts, 32 x 32. Warps that sum have some columns of every part each, which they bring
 * for themselves, asynchronously, some parts ahead; four more warps solve:
 *
 *        p = 0  1  2      left of the diagonal  D x, all warps that sum; of row b + 1 all but the
 *   b=0 [d]                                     last part while row b is being solved
 *   b=1 [.][d]            on the diagonal       8 lanes for each right-hand side, 4 rows each, which
 *   b=2 [.][.][d]                               hand on what they have solved
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

__device__ __forceinline__ float scaled_by(float x, int exponent) { return scalbnf(x, exponent); }
__device__ __forceinline__ double scaled_by(double x, int exponent) { return scalbn(x, exponent); }
__device__ __forceinline__ float2 scaled_by(float2 x, int exponent) { return {scalbnf(x.x, exponent), scalbnf(x.y, exponent)}; }
__device__ __forceinline__ double2 scaled_by(double2 x, int exponent) { return {scalbn(x.x, exponent), scalbn(x.y, exponent)}; }

/* What triangle_args.h says of the type. */
template <class Type> struct solve_shape;
#define WS_SOLVE_SHAPE(t)                                                                                  \
  template <> struct solve_shape<type_##t> {                                                               \
    static constexpr int warps = WS_SOLVE_WARPS_##t, own_k = WS_SOLVE_OWN_K_##t, ring = WS_SOLVE_RING_##t, \
                         d_places = WS_SOLVE_D_PLACES_##t;                                                 \
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
                       d_pitch = WS_TRIANGLE_PITCH, own_pitch = WS_SOLVE_OWN_PITCH,
                       own = 4; /* rows and columns of a thread's sums */
  static constexpr int warps = shape::warps, own_k = shape::own_k, ring = shape::ring, d_places = shape::d_places;
  static constexpr int n_summing = warps * 32, n_solving = WS_SOLVE_SOLVERS * 32, n_threads = n_summing + n_solving;
  static constexpr int groups = part_n / own, sides = columns / WS_SOLVE_SOLVERS; /* of lanes that solve; right-hand sides of theirs */
  /* Barriers: a row of parts has been solved; its sums are there; of those that solve. */
  static constexpr int solved = 1, summed = 2, among_solvers = 3;
  static_assert(groups * sides == 32 && WS_SOLVE_SOLVERS * sides == columns);
  static_assert(part_n / own * (columns / own) == 32 && part_n % (warps * own_k) == 0);
  static_assert(own_pitch * sizeof(element) % 16 == 0 && x_pitch * sizeof(element) % 16 == 0, "aligned");
  /* Beside a row of X there is room for what is known of the row of D. */
  static constexpr int at_reciprocal = columns, at_shift = columns + 1, at_mark = columns + 3;
  static_assert(x_pitch > at_mark);

  const ws_triangle_args &args;
  const element *from; /* D */
  element *places, *sums, *diagonal, *x;
  bool conj, by_rows;
  int n_wide;      /* rows of parts of which 16 bytes of a column may be read at a time */
  bool is_flipped; /* rows of a part lie in shared memory as in D's, where they are counted from the last one */

  __device__ solver(const ws_triangle_args &given, unsigned char *shared)
      : args(given), from(nullptr), conj(given.conj != 0), by_rows(given.of_d.row == 1 || given.of_d.row == -1),
        n_wide(given.d_vectors && (given.of_d.row == 1 || (given.of_d.row == -1 && given.n * sizeof(element) % 16 == 0))
                   ? int(given.n) / part_n
                   : 0),
        is_flipped(given.of_d.row == -1) {
    places = reinterpret_cast<element *>(shared);
    sums = places + warps * ring * own_k * own_pitch;
    diagonal = sums + warps * part_n * x_pitch;
    x = diagonal + d_places * part_n * d_pitch;
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
  static constexpr int vec = 16 / int(sizeof(element)), of_column = part_n / vec; /* copies of 16 bytes */
  __device__ __forceinline__ walk walk_begin() const {
    const int i = lane() % of_column * vec - (is_flipped ? part_n - 1 : 0), j = warp() * own_k + lane() / of_column;
    const element *const first = from + part_n * args.of_d.row + i + j * args.of_d.column;
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
      copy_single(ahead.b, ahead.k, to, n - ahead.b * part_n);
    cp_async_commit();
    ahead.place = after(ahead.place);
    ahead.k += warps * own_k, ahead.source += warps * own_k * args.of_d.column;
    if (ahead.k < ahead.b * part_n) return;
    ahead.b++, ahead.k = 0;
    ahead.of_row += part_n * args.of_d.row, ahead.source = ahead.of_row;
  }
  __device__ __forceinline__ void copy_wide(const element *source, element *to) const {
    element *const target = to + lane() / of_column * own_pitch + lane() % of_column * vec;
    constexpr int next = 32 / of_column;
#pragma unroll
    for (int j = 0; j < own_k; j += next) cp_async_16(shared_address(target + j * own_pitch), source + j * args.of_d.column, 16);
  }
  __device__ __forceinline__ void copy_single(int b, int k, element *to, int n_rows) const {
    const element *const first = from + b * part_n * args.of_d.row + (k + warp() * own_k) * args.of_d.column;
#pragma unroll 1
    for (int s = 0; s < own_k; s++) {
      const int i = by_rows ? lane() : lane() / own_k + s * (32 / own_k), j = by_rows ? s : lane() % own_k;
      copy_element<Type>(to + j * own_pitch + (is_flipped ? part_n - 1 - i : i), first + i * args.of_d.row + j * args.of_d.column,
                         from, i < n_rows);
    }
  }

  /* Warps that solve: their elements of parts on the diagonal, without the diagonal, one part after the other. */
  struct corner_walk {
    int b, i, j;
    const element *source;
  };
  __device__ __forceinline__ corner_walk corner_begin() const {
    const int across = warp() - warps, i = by_rows ? lane() : across, j = by_rows ? across : lane();
    return {0, i, j, from + i * args.of_d.row + j * args.of_d.column};
  }
  __device__ __forceinline__ void copy_diagonal(corner_walk &ahead, int n) const {
    constexpr int step = WS_SOLVE_SOLVERS;
    const int n_rows = n - ahead.b * part_n, i_step = by_rows ? 0 : step, j_step = step - i_step;
    const int64_t source_step = step * (by_rows ? args.of_d.column : args.of_d.row);
    const element *source = ahead.source;
    element *const to = diagonal + (ahead.b % d_places * part_n + ahead.j) * d_pitch + ahead.i;
#pragma unroll
    for (int s = 0; s < part_n / step; s++, source += source_step) {
      const int i = ahead.i + s * i_step;
      copy_element<Type>(to + s * (j_step * d_pitch + i_step), source, from, i < n_rows && i > ahead.j + s * j_step);
    }
    cp_async_commit();
    ahead.b++, ahead.source += part_n * (args.of_d.row + args.of_d.column);
  }

  template <class Body> __device__ __forceinline__ void for_each_x(int n, int64_t column, Body body) const {
    const int n_rows = int(ws_ceil_div(n, part_n)) * part_n;
    const int64_t n_there = args.n_columns - column;
    const bool along = args.of_x.row == 1 || args.of_x.row == -1;
#pragma unroll 1
    for (int e = int(threadIdx.x); e < n_rows * columns; e += n_threads) {
      const int of_part = e % (part_n * columns), row = e / (part_n * columns) * part_n;
      const int i = row + (along ? of_part % part_n : of_part / columns), c = along ? of_part / part_n : of_part % columns;
      body(i, c, i < n && c < n_there);
    }
  }
  __device__ __forceinline__ void load_x(const element *b, int n, int64_t column) const {
    for_each_x(n, column, [&](int i, int c, bool is_there) {
      copy_element<Type>(x + i * x_pitch + c, b + i * args.of_x.row + (column + c) * args.of_x.column, b, is_there);
    });
    cp_async_commit();
  }
  __device__ __forceinline__ void store_x(element *to, int n, int64_t column) const {
    for_each_x(n, column, [&](int i, int c, bool is_there) {
      if (is_there) store_element<config>(to + i * args.of_x.row + (column + c) * args.of_x.column, x[i * x_pitch + c]);
    });
  }

  /* Two factors, by whose product the reciprocal is too small or large. */
  __device__ __forceinline__ real *shift_of(int row) const { return reinterpret_cast<real *>(x + row * x_pitch + at_shift); }
  /* Whether a row of the part has such factors. */
  __device__ __forceinline__ real *mark_of(int b) const { return reinterpret_cast<real *>(x + b * part_n * x_pitch + at_mark); }

  __device__ __forceinline__ void find_reciprocals(int n) const {
    constexpr int most = sizeof(real) == 4 ? 100 : 1000;
    const int n_blocks = int(ws_ceil_div(n, part_n));
    for (int b = int(threadIdx.x); b < n_blocks; b += n_threads) *mark_of(b) = 0;
    __syncthreads();
    for (int i = int(threadIdx.x); i < n_blocks * part_n; i += n_threads) {
      const bool is_one = i >= n || args.structure == WS_UNIT_TRIANGULAR;
      element value = one_of(element{});
      if (!is_one) value = load_element<config>(from + i * (args.of_d.row + args.of_d.column));
      if (conj) value = conjugate_of(value);
      const int exponent = exponent_of(value), kept = exponent < most && exponent > -most ? exponent : 0;
      const int left = kept - exponent, half = left / 2;
      x[i * x_pitch + at_reciprocal] = scaled_by(reciprocal_of(scaled_by(value, -exponent)), -kept);
      shift_of(i)[0] = scaled_by(real(1), half), shift_of(i)[1] = scaled_by(real(1), left - half);
      if (left != 0) *mark_of(i / part_n) = 1;
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

  using own_sums = element[own][own]; /* by rows */

  __device__ __forceinline__ void subtract_columns(own_sums &acc, const element *of_d, const element *of_x) const {
#pragma unroll
    for (int j = 0; j < own_k; j++) {
      element rows[own], value[own];
      load_d(of_d + j * own_pitch, rows);
      load_neighbours(of_x + j * x_pitch, value);
#pragma unroll
      for (int r = 0; r < own; r++)
#pragma unroll
        for (int c = 0; c < own; c++) subtract(acc[r][c], rows[r], value[c]);
    }
  }
  __device__ __forceinline__ void put_sums(const own_sums &acc) const {
#pragma unroll
    for (int r = 0; r < own; r++) {
      const int row = is_flipped ? part_n - 1 - own_row() - r : own_row() + r;
      element *const to = sums + (warp() * part_n + row) * x_pitch + own_column();
      store_neighbours(to, acc[r]);
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

  __device__ __forceinline__ void sum(int n, int n_blocks, walk &ahead) const {
    int place = 0;
#pragma unroll 1
    for (int b = 1; b < n_blocks; b++) {
      own_sums acc = {};
      subtract_parts(acc, 0, b - 1, place, ahead, n, n_blocks);
      barrier_sync<solved>(n_threads); /* row b - 1; and sums of it are not needed any more */
      subtract_parts(acc, b - 1, b, place, ahead, n, n_blocks);
      put_sums(acc);
      barrier_arrive<summed>(n_threads);
    }
    cp_async_wait<0>();
  }

  /* ---- on the diagonal: warps that solve ---- */

  static __device__ __forceinline__ int group() { return lane() / sides; }
  static __device__ __forceinline__ int own_side() { return (warp() - warps) * sides + lane() % sides; }

  /* Row b's right-hand sides, less their sums. */
  __device__ __forceinline__ void load_sides(element (&acc)[own], int b, const scaling<config> &scale) const {
    const element *const of_x = x + (b * part_n + group() * own) * x_pitch + own_side(),
                         *const of_sums = sums + group() * own * x_pitch + own_side();
#pragma unroll
    for (int r = 0; r < own; r++) acc[r] = scale(of_x[r * x_pitch], element{});
    if (b == 0) return;
#pragma unroll
    for (int r = 0; r < own; r++) {
      element total = of_sums[r * x_pitch];
#pragma unroll
      for (int w = 1; w < warps; w++) total = plus<config>(total, of_sums[(w * part_n + r) * x_pitch]);
      acc[r] = plus<config>(acc[r], total);
    }
  }

  /* This group's rows, if those before them have been subtracted. row: their first. */
  template <bool HAS_SHIFTS>
  __device__ __forceinline__ void solve_own(element (&value)[own], const element (&corner)[own][own],
                                            const element (&reciprocals)[own], int row) const {
#pragma unroll
    for (int j = 0; j < own; j++) {
      value[j] = times(value[j], reciprocals[j]);
      if (HAS_SHIFTS) value[j] = multiplied(multiplied(value[j], shift_of(row + j)[0]), shift_of(row + j)[1]);
#pragma unroll
      for (int r = j + 1; r < own; r++) subtract(value[r], corner[j][r], value[j]);
    }
  }
  static __device__ __forceinline__ real multiplied(real a, real by) { return a * by; }
  template <class Pair> static __device__ __forceinline__ Pair multiplied(Pair a, real by) { return {a.x * by, a.y * by}; }

  /* Every group does what one of them has to do: what it has solved is kept apart, what comes of it later is of no use. */
  template <bool HAS_SHIFTS> __device__ __forceinline__ void solve_part(element (&acc)[own], int b) const {
    const int row = b * part_n + group() * own;
    const element *const of_d = diagonal + b % d_places * part_n * d_pitch + group() * own;
    element corner[own][own], reciprocals[own], result[own];
#pragma unroll
    for (int r = 0; r < own; r++) {
      load_d(of_d + (group() * own + r) * d_pitch, corner[r]);
      reciprocals[r] = x[(row + r) * x_pitch + at_reciprocal];
    }
    [[maybe_unused]] constexpr int at_once = sizeof(element) == 16 ? 1 : sizeof(real) == 8 ? 2 : groups; /* as there are registers for */
#pragma unroll at_once
    for (int g = 0; g < groups; g++) {
      element value[own];
#pragma unroll
      for (int r = 0; r < own; r++) value[r] = acc[r];
      solve_own<HAS_SHIFTS>(value, corner, reciprocals, row);
#pragma unroll
      for (int r = 0; r < own; r++)
        if (group() == g) result[r] = value[r];
      if (g + 1 == groups) break;
#pragma unroll
      for (int j = 0; j < own; j++) {
        element rows[own];
        load_d(of_d + (g * own + j) * d_pitch, rows);
        const element of_group = from_lane(value[j], g * sides + lane() % sides);
#pragma unroll
        for (int r = 0; r < own; r++) subtract(acc[r], rows[r], of_group);
      }
    }
#pragma unroll
    for (int r = 0; r < own; r++) x[(row + r) * x_pitch + own_side()] = result[r];
  }

  __device__ __forceinline__ void solve(int n, int n_blocks, corner_walk &ahead, const scaling<config> &scale) const {
#pragma unroll 1
    for (int b = 0; b < n_blocks; b++) {
      element acc[own];
      cp_async_wait<d_places - 1>();
      if (b > 0) barrier_sync<summed>(n_threads); /* and its part of D has come */
      load_sides(acc, b, scale);
      if (*mark_of(b) == 0)
        solve_part<false>(acc, b);
      else
        solve_part<true>(acc, b);
      if (b + 1 < n_blocks) barrier_arrive<solved>(n_threads);
      barrier_sync<among_solvers>(n_solving); /* the place of its part of D is free */
      if (ahead.b < n_blocks)
        copy_diagonal(ahead, n);
      else
        cp_async_commit();
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
    const int n = int(args.n), n_blocks = int(ws_ceil_div(n, part_n));
    const bool sums_up = warp() < warps;
    from = static_cast<const element *>(args.d) + int64_t(item / groups_of(args)) * args.of_d.stride;
    load_x(sides_of(item), n, first_column(item));
    walk ahead = walk_begin();
    corner_walk corners = corner_begin();
#pragma unroll 1
    for (int i = 0; i + 1 < ring && sums_up; i++) ask(ahead, n, n_blocks);
#pragma unroll 1
    for (int i = 0; i < d_places && !sums_up; i++) copy_diagonal(corners, n);
    find_reciprocals(n);
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
