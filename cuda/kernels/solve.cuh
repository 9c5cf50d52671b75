/* solve.cuh - triangular systems with one diagonal block, by substitution (triangle_args.h: D x
 * = alpha b, D lower triangular, rows counted as the steps say).
 *
 * A block of threads has 16 right-hand sides, all their rows in shared memory, and goes down D
 * by row blocks of 32. Parts of D, 32 x 32, come through a ring of places, asynchronously, some
 * ahead:
 *
 *        p = 0  1  2      left of the diagonal  all threads: sums of D x; of each part two groups
 *   b=0 [d]                                     of warps take half of the columns each
 *   b=1 [.][d]            on the diagonal       one warp, a lane for each right-hand side; some
 *   b=2 [.][.][d]                               rows at a time in registers
 *
 * Substitution is stable for every triangle, whatever its scaling: |b - D x| <= gamma_{n+1} |D|
 * |x|. Every element has one order of summation, so its bits depend on D and its own right-hand
 * side. */
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

template <class Type, int N, int RING> struct solver {
  using config = triangle_config<Type>;
  using element = typename Type::element;
  using real = typename Type::real;
  static constexpr int part_n = WS_TRIANGLE_PART, pitch = WS_TRIANGLE_PITCH, columns = WS_SOLVE_COLUMNS,
                       x_pitch = WS_SOLVE_X_PITCH, own_rows = 4, own_columns = 2, n_groups = 2;
  /* of a part on the diagonal, in registers */
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 900
  static constexpr int rows_at_once = sizeof(element) == 16 ? 4 : 16; /* 8 do not fit into registers */
#else
  static constexpr int rows_at_once = sizeof(element) == 16 ? 8 : 16;
#endif
  static_assert(WS_TRIANGLE_THREADS == n_groups * (part_n / own_rows) * (columns / own_columns));
  static_assert(pitch * sizeof(element) % 16 == 0 && own_columns * x_pitch * sizeof(element) % 16 == 0, "aligned");

  const ws_triangle_args &args;
  const element *from; /* D */
  element *ring, *x, *sums, *reciprocal;
  real *shift; /* of each row two factors, by whose product the reciprocal is too small or large */
  bool conj, by_rows;
  bool is_wide; /* columns of D begin where 16 bytes may be read at a time */

  __device__ solver(const ws_triangle_args &given, unsigned char *shared)
      : args(given), from(nullptr), conj(given.conj != 0), by_rows(given.of_d.row == 1 || given.of_d.row == -1),
        is_wide(given.d_vectors && given.of_d.row == 1) {
    ring = reinterpret_cast<element *>(shared);
    x = ring + RING * part_n * pitch;
    sums = x + N * x_pitch;
    reciprocal = sums + n_groups * part_n * x_pitch;
    shift = reinterpret_cast<real *>(reciprocal + N);
  }

  static __device__ __forceinline__ int lane() { return int(threadIdx.x) % 32; }
  static __device__ __forceinline__ int warp() { return int(threadIdx.x) / 32; }

  /* ---- memory ---- */

  /* Begins to bring part (b, p), and counts as a group even where there is none. */
  __device__ __forceinline__ void copy_part(int place, int b, int p, int n, bool is_any) const {
    if (is_any) {
      const element *const first = from + b * part_n * args.of_d.row + p * part_n * args.of_d.column;
      element *const to = ring + place * part_n * pitch;
      const int n_rows = n - b * part_n;
      if (p < b && n_rows >= part_n && is_wide)
        copy_wide(first, to);
      else if (p < b && n_rows >= part_n)
        copy_whole(first, to);
      else
        copy_some(first, to, n_rows, p < b ? part_n : -1);
    }
    cp_async_commit();
  }
  /* 16 bytes at a time. */
  __device__ __forceinline__ void copy_wide(const element *first, element *to) const {
    constexpr int vec = 16 / int(sizeof(element)), lanes = part_n / vec, step = WS_TRIANGLE_THREADS / lanes;
    const int i = int(threadIdx.x) % lanes * vec, j = int(threadIdx.x) / lanes;
    const element *source = first + i + j * args.of_d.column;
    const int64_t next = step * args.of_d.column;
#pragma unroll
    for (int s = 0; s < part_n; s += step, source += next) cp_async_16(shared_address(to + (j + s) * pitch + i), source, 16);
  }
  static constexpr int across = WS_TRIANGLE_THREADS / 32;
  __device__ __forceinline__ void copy_whole(const element *first, element *to) const {
    const int64_t next = across * (by_rows ? args.of_d.column : args.of_d.row);
    const int i = by_rows ? lane() : warp(), j = by_rows ? warp() : lane(), next_to = by_rows ? across * pitch : across;
    const element *source = first + i * args.of_d.row + j * args.of_d.column;
    element *target = to + j * pitch + i;
#pragma unroll
    for (int s = 0; s < part_n; s += across, source += next, target += next_to) copy_element<Type>(target, source, source, true);
  }
  /* Of its first rows, elements with j - i at most so large. */
  __device__ __forceinline__ void copy_some(const element *first, element *to, int n_rows, int least) const {
#pragma unroll
    for (int s = 0; s < part_n; s += across) {
      const int i = by_rows ? lane() : warp() + s, j = by_rows ? warp() + s : lane();
      copy_element<Type>(to + j * pitch + i, first + i * args.of_d.row + j * args.of_d.column, from,
                         i < n_rows && j - i <= least);
    }
  }

  template <class Body> __device__ __forceinline__ void for_each_x(int n, int64_t column, Body body) const {
    const int n_rows = int(ws_ceil_div(n, part_n)) * part_n;
    const int64_t n_there = args.n_columns - column;
    const bool along = args.of_x.row == 1 || args.of_x.row == -1;
    for (int row = 0; row < n_rows; row += part_n)
#pragma unroll
      for (int step = 0; step < columns; step += WS_TRIANGLE_THREADS / 32) {
        const int i = row + (along ? lane() : (warp() * 2 + lane() / columns) + 2 * step),
                  c = along ? warp() + step : lane() % columns;
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

  __device__ __forceinline__ void find_reciprocals(int n) const {
    constexpr int most = sizeof(real) == 4 ? 100 : 1000;
    const int n_rows = int(ws_ceil_div(n, part_n)) * part_n;
    for (int i = int(threadIdx.x); i < n_rows; i += WS_TRIANGLE_THREADS) {
      const bool is_one = i >= n || args.structure == WS_UNIT_TRIANGULAR;
      element diagonal = one_of(element{});
      if (!is_one) diagonal = load_element<config>(from + i * (args.of_d.row + args.of_d.column));
      if (conj) diagonal = conjugate_of(diagonal);
      const int exponent = exponent_of(diagonal), kept = exponent < most && exponent > -most ? exponent : 0;
      const int left = kept - exponent, half = left / 2;
      reciprocal[i] = scaled_by(reciprocal_of(scaled_by(diagonal, -exponent)), -kept);
      shift[2 * i] = scaled_by(real(1), half), shift[2 * i + 1] = scaled_by(real(1), left - half);
    }
  }

  template <int COUNT> static __device__ __forceinline__ void load_neighbours(const element *at, element (&to)[COUNT]) {
    constexpr int bytes = COUNT * int(sizeof(element)) < 16 ? COUNT * int(sizeof(element)) : 16;
    struct alignas(bytes) piece {
      uint32_t word[bytes / 4];
    };
    union {
      piece pieces[COUNT * sizeof(element) / bytes];
      element elements[COUNT];
    } all;
#pragma unroll
    for (int u = 0; u < COUNT * int(sizeof(element)) / bytes; u++) all.pieces[u] = reinterpret_cast<const piece *>(at)[u];
#pragma unroll
    for (int e = 0; e < COUNT; e++) to[e] = all.elements[e];
  }
  __device__ __forceinline__ void load_d(const element *at, element (&rows)[own_rows]) const {
    load_neighbours(at, rows);
    if constexpr (Type::unit == 2)
      if (conj)
#pragma unroll
        for (int r = 0; r < own_rows; r++) rows[r] = conjugate_of(rows[r]);
  }

  /* ---- left of the diagonal ---- */

  __device__ __forceinline__ void subtract_part(element (&acc)[own_columns][own_rows], int place, int p) const {
    const int group = warp() / n_groups, own = int(threadIdx.x) % (WS_TRIANGLE_THREADS / n_groups),
              column = own % (columns / own_columns) * own_columns, row = own / (columns / own_columns) * own_rows;
    const element *const of_part = ring + place * part_n * pitch + row;
    const element *const of_x = x + p * part_n * x_pitch + column;
#pragma unroll 4
    for (int step = 0; step < part_n / n_groups; step++) {
      const int j = group * (part_n / n_groups) + step;
      element rows[own_rows], value[own_columns];
      load_d(of_part + j * pitch, rows);
      load_neighbours(of_x + j * x_pitch, value);
#pragma unroll
      for (int c = 0; c < own_columns; c++)
#pragma unroll
        for (int r = 0; r < own_rows; r++) subtract(acc[c][r], rows[r], value[c]);
    }
  }
  __device__ __forceinline__ void put_sums(const element (&acc)[own_columns][own_rows]) const {
    const int group = warp() / n_groups, own = int(threadIdx.x) % (WS_TRIANGLE_THREADS / n_groups),
              column = own % (columns / own_columns) * own_columns, row = own / (columns / own_columns) * own_rows;
#pragma unroll
    for (int c = 0; c < own_columns; c++)
#pragma unroll
      for (int r = 0; r < own_rows; r++) sums[(group * part_n + row + r) * x_pitch + column + c] = acc[c][r];
  }

  /* ---- on the diagonal: one warp ---- */

  __device__ __forceinline__ void solve_part(int place, int b, const scaling<config> &scale) const {
    const int column = lane() % columns;
    element *const of_x = x + b * part_n * x_pitch + column;
    const element *const of_sums = sums + column, *const of_part = ring + place * part_n * pitch;
    const real *const factors = shift + 2 * b * part_n;
    const bool any_shift = __any_sync(~0u, factors[2 * lane()] != 1 || factors[2 * lane() + 1] != 1);
#pragma unroll 1
    for (int begin = 0; begin < part_n; begin += rows_at_once) {
      element acc[rows_at_once];
#pragma unroll
      for (int r = 0; r < rows_at_once; r++) {
        const int row = begin + r;
        acc[r] = scale(of_x[row * x_pitch], element{});
        if (b > 0) acc[r] = plus<config>(acc[r], plus<config>(of_sums[row * x_pitch], of_sums[(part_n + row) * x_pitch]));
      }
#pragma unroll 4
      for (int j = 0; j < begin; j++) subtract_row<0>(acc, of_part + j * pitch + begin, of_x[j * x_pitch]);
      solve_rows(acc, of_part + begin * (pitch + 1), b * part_n + begin, any_shift);
#pragma unroll
      for (int r = 0; r < rows_at_once; r++)
        if (lane() < columns) of_x[(begin + r) * x_pitch] = acc[r];
      __syncwarp();
    }
  }

  /* Rows from FIRST on. */
  template <int FIRST>
  __device__ __forceinline__ void subtract_row(element (&acc)[rows_at_once], const element *column, element value) const {
#pragma unroll
    for (int first = FIRST / own_rows * own_rows; first < rows_at_once; first += own_rows) {
      element rows[own_rows];
      load_d(column + first, rows);
#pragma unroll
      for (int r = 0; r < own_rows; r++)
        if (first + r >= FIRST) subtract(acc[first + r], rows[r], value);
    }
  }

  template <int J = 0>
  __device__ __forceinline__ void solve_rows(element (&acc)[rows_at_once], const element *corner, int row, bool any_shift) const {
    acc[J] = times(acc[J], reciprocal[row + J]);
    if (any_shift) acc[J] = multiplied(multiplied(acc[J], shift[2 * (row + J)]), shift[2 * (row + J) + 1]);
    if constexpr (J + 1 < rows_at_once) {
      subtract_row<J + 1>(acc, corner + J * pitch, acc[J]);
      solve_rows<J + 1>(acc, corner, row, any_shift);
    }
  }
  static __device__ __forceinline__ real multiplied(real a, real by) { return a * by; }
  template <class Pair> static __device__ __forceinline__ Pair multiplied(Pair a, real by) { return {a.x * by, a.y * by}; }

  /* ---- one system ---- */

  __device__ __forceinline__ void run(const element *d, element *b, int64_t column, const scaling<config> &scale) {
    const int n = int(args.n), n_blocks = int(ws_ceil_div(n, part_n));
    from = d;
    load_x(b, n, column);
    int ahead_b = 0, ahead_p = 0, ahead_place = 0; /* the next part to ask for */
    const auto ask = [&] {
      copy_part(ahead_place, ahead_b, ahead_p, n, ahead_b < n_blocks);
      ahead_place = ahead_place + 1 == RING ? 0 : ahead_place + 1;
      if (ahead_p++ == ahead_b) ahead_b++, ahead_p = 0;
    };
#pragma unroll 1
    for (int i = 0; i + 1 < RING; i++) ask();
    find_reciprocals(n);
    int place = 0;
#pragma unroll 1
    for (int block = 0; block < n_blocks; block++) {
      element acc[own_columns][own_rows] = {};
#pragma unroll 1
      for (int p = 0; p <= block; p++) {
        cp_async_wait<RING - 2>();
        if (p == block && block > 0) put_sums(acc);
        __syncthreads(); /* it has come; the place of the one before is free */
        ask();
        if (p < block)
          subtract_part(acc, place, p);
        else if (warp() == 0)
          solve_part(place, block, scale);
        place = place + 1 == RING ? 0 : place + 1;
      }
    }
    cp_async_wait<0>();
    __syncthreads();
    store_x(b, n, column);
    __syncthreads();
  }
};

template <class Type, int N, int RING> __device__ __forceinline__ void solve_systems(const ws_triangle_args &args) {
  extern __shared__ __align__(16) unsigned char shared[];
  using element = typename Type::element;
  solver<Type, N, RING> own(args, shared);
  const scaling<triangle_config<Type>> scale = triangle_scaling<triangle_config<Type>>(args);
  const int64_t n_groups = ws_ceil_div(args.n_columns, WS_SOLVE_COLUMNS);
  for (int64_t item = worker_idx(); item < args.n_batch * n_groups; item += n_workers()) {
    const int64_t batch = item / n_groups, column = item % n_groups * WS_SOLVE_COLUMNS;
    own.run(static_cast<const element *>(args.d) + batch * args.of_d.stride,
            static_cast<element *>(args.x) + batch * args.of_x.stride, column, scale);
  }
}

} // namespace ws
#endif
