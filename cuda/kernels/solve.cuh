/* solve.cuh - triangular systems with one diagonal block, by substitution (triangle_args.h: D x
 * = alpha b, D lower triangular, rows counted as the steps say).
 *
 * A block of threads has 16 right-hand sides, all their rows in shared memory, and goes down D by
 * rows of parts, 32 x 32. Warps that sum have some columns of every part each, which they bring
 * for themselves, asynchronously, some parts ahead; one more warp solves:
 *
 *        p = 0  1  2      left of the diagonal  D x, all warps that sum; of row b + 1 all but the
 *   b=0 [d]                                     last part while row b is being solved
 *   b=1 [.][d]            on the diagonal       a lane for each right-hand side; some rows at a
 *   b=2 [.][.][d]                               time in registers
 *
 * Substitution is stable for every triangle, whatever its scaling: |b - D x| <= gamma_{n+1} |D|
 * |x|. Every element has one order of summation (each warp's own sum, then these in their order), so
 * its bits depend on D and its own right-hand side. */
#ifndef WS_CUDA_SOLVE_CUH
#define WS_CUDA_SOLVE_CUH
#include "cuda/kernels/triangle.cuh"

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
  static constexpr int n_summing = warps * 32, n_threads = n_summing + 32;
  /* of a part on the diagonal, in registers */
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 900
  static constexpr int rows_at_once = sizeof(element) == 16 ? 4 : 16; /* 8 do not fit into registers */
#else
  static constexpr int rows_at_once = sizeof(element) == 16 ? 8 : 16;
#endif
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

  /* All warps that sum: part b on the diagonal without its diagonal. */
  __device__ __forceinline__ void copy_diagonal(int b, int n) const {
    const int n_rows = n - b * part_n, across = by_rows ? 1 : 0;
    const element *const first = from + b * part_n * (args.of_d.row + args.of_d.column);
    element *const to = diagonal + b % d_places * part_n * d_pitch;
#pragma unroll 4
    for (int s = 0; s < part_n; s += warps) {
      const int i = across ? lane() : warp() + s, j = across ? warp() + s : lane();
      copy_element<Type>(to + j * d_pitch + i, first + i * args.of_d.row + j * args.of_d.column, from, i < n_rows && i > j);
    }
    cp_async_commit();
  }

  template <class Body> __device__ __forceinline__ void for_each_x(int n, int64_t column, Body body) const {
    const int n_rows = int(ws_ceil_div(n, part_n)) * part_n;
    const int64_t n_there = args.n_columns - column;
    const bool along = args.of_x.row == 1 || args.of_x.row == -1;
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
  /* Row b's right-hand sides, of which the sums have been taken. */
  __device__ __forceinline__ void add_sums(int b, const scaling<config> &scale) const {
    for (int e = int(threadIdx.x); e < part_n * columns; e += n_summing) {
      const int row = e / columns, column = e % columns;
      element *const to = x + (b * part_n + row) * x_pitch + column;
      element value = scale(*to, element{});
      if (b > 0) {
        element total = sums[row * x_pitch + column];
#pragma unroll
        for (int w = 1; w < warps; w++) total = plus<config>(total, sums[(w * part_n + row) * x_pitch + column]);
        value = plus<config>(value, total);
      }
      *to = value;
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

  __device__ __forceinline__ void sum(int n, int n_blocks, walk &ahead, const scaling<config> &scale) const {
    constexpr int steps = part_n / (warps * own_k); /* of a part */
    int place = 0;
#pragma unroll 1
    for (int b = 0; b < n_blocks; b++) {
      own_sums acc = {};
      if (d_places > 1) copy_diagonal(b, n);
      if (b > 0) subtract_parts(acc, 0, b - 1, place, ahead, n, n_blocks);
      if (d_places > 1 && (b - 1) * steps < ring) cp_async_wait<0>(); /* else so many groups have been waited for since */
      __syncthreads();                                                /* row b - 1 has been solved */
      if (d_places == 1) copy_diagonal(b, n);
      if (b > 0) subtract_parts(acc, b - 1, b, place, ahead, n, n_blocks);
      if (d_places == 1) cp_async_wait<0>();
      put_sums(acc);
      __syncthreads();
      add_sums(b, scale);
      __syncthreads();
    }
    cp_async_wait<0>();
  }

  /* ---- on the diagonal: one warp ---- */

  template <bool HAS_SHIFTS> __device__ __forceinline__ void solve_part(int b) const {
    if (lane() >= columns) return;
    element *const of_x = x + b * part_n * x_pitch + lane();
    const element *const of_d = diagonal + b % d_places * part_n * d_pitch;
#pragma unroll 1
    for (int begin = 0; begin < part_n; begin += rows_at_once) {
      element acc[rows_at_once];
#pragma unroll
      for (int r = 0; r < rows_at_once; r++) acc[r] = of_x[(begin + r) * x_pitch];
#pragma unroll 4
      for (int j = 0; j < begin; j++) subtract_row<0>(acc, of_d + j * d_pitch + begin, of_x[j * x_pitch]);
      solve_rows<HAS_SHIFTS>(acc, of_d + begin * (d_pitch + 1), b * part_n + begin);
#pragma unroll
      for (int r = 0; r < rows_at_once; r++) of_x[(begin + r) * x_pitch] = acc[r];
    }
  }

  /* Rows from FIRST on. */
  template <int FIRST>
  __device__ __forceinline__ void subtract_row(element (&acc)[rows_at_once], const element *column, element value) const {
#pragma unroll
    for (int first = FIRST / own * own; first < rows_at_once; first += own) {
      element rows[own];
      load_d(column + first, rows);
#pragma unroll
      for (int r = 0; r < own; r++)
        if (first + r >= FIRST) subtract(acc[first + r], rows[r], value);
    }
  }

  template <bool HAS_SHIFTS, int J = 0>
  __device__ __forceinline__ void solve_rows(element (&acc)[rows_at_once], const element *corner, int row) const {
    acc[J] = times(acc[J], x[(row + J) * x_pitch + at_reciprocal]);
    if (HAS_SHIFTS) acc[J] = multiplied(multiplied(acc[J], shift_of(row + J)[0]), shift_of(row + J)[1]);
    if constexpr (J + 1 < rows_at_once) {
      subtract_row<J + 1>(acc, corner + J * d_pitch, acc[J]);
      solve_rows<HAS_SHIFTS, J + 1>(acc, corner, row);
    }
  }
  static __device__ __forceinline__ real multiplied(real a, real by) { return a * by; }
  template <class Pair> static __device__ __forceinline__ Pair multiplied(Pair a, real by) { return {a.x * by, a.y * by}; }

  __device__ __forceinline__ void solve(int n_blocks) const {
#pragma unroll 1
    for (int b = 0; b < n_blocks; b++) {
      __syncthreads();
      __syncthreads();
      __syncthreads(); /* its part of D has come, and its sums are added */
      if (*mark_of(b) == 0)
        solve_part<false>(b);
      else
        solve_part<true>(b);
    }
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
    walk ahead = walk_begin();
    load_x(sides_of(item), n, first_column(item));
    if (sums_up)
#pragma unroll 1
      for (int i = 0; i + 1 < ring; i++) ask(ahead, n, n_blocks);
    find_reciprocals(n);
    if (sums_up) {
      cp_async_wait<ring - 1>(); /* X */
      __syncthreads();
      sum(n, n_blocks, ahead, scale);
    } else {
      cp_async_wait<0>();
      __syncthreads();
      solve(n_blocks);
    }
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
