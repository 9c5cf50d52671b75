/* triangle.cuh - products with diagonal blocks of structured operands (triangle_args.h): triangular
 * ones in place, and with blocks whose other triangle is not stored; such blocks written out.
 * Systems are solve.cuh's; what lies beside the diagonal blocks is general, and left to products
 * (cuda/host/level3.c).
 *
 * A block of threads has 32 columns of X; a warp 8 rows of every 32 (a part), a lane a column. All
 * of D and of these columns are in shared memory: a warp reads D's elements as vectors that all its
 * lanes share. Every element has one order of summation, so its bits depend on D and its own column
 * alone. */
#ifndef WS_CUDA_TRIANGLE_CUH
#define WS_CUDA_TRIANGLE_CUH
#include "cuda/epilogue/epilogue.cuh"
#include "cuda/ptx/copy.cuh"
#include "cuda/sched/fixed.cuh"
#include "cuda/shared/structure.h"
#include "cuda/shared/triangle_args.h"

namespace ws {

/* Begins to copy an element to shared memory. anywhere: an address that may be read from, for an
 * element that is not there. */
template <class Type>
__device__ __forceinline__ void copy_element(typename Type::element *to, const typename Type::element *from,
                                             const typename Type::element *anywhere, bool is_there) {
  using real = typename Type::real;
  const real *const parts = reinterpret_cast<const real *>(is_there ? from : anywhere);
#pragma unroll
  for (int u = 0; u < Type::unit; u++)
    cp_async<int(sizeof(real))>(shared_address(to) + u * uint32_t(sizeof(real)), parts + u, is_there ? int(sizeof(real)) : 0);
}

template <class Type> struct triangle_config {
  using real = typename Type::real;
  using element = typename Type::element;
  using sum = element;
  static constexpr int unit = Type::unit;
};

/* ---- numbers --------------------------------------------------------------------------------- */

template <class Real> __device__ __forceinline__ Real one_of(Real) { return 1; }
__device__ __forceinline__ float2 one_of(float2) { return {1, 0}; }
__device__ __forceinline__ double2 one_of(double2) { return {1, 0}; }
template <class Real> __device__ __forceinline__ Real conjugate_of(Real x) { return x; }
__device__ __forceinline__ float2 conjugate_of(float2 x) { return {x.x, -x.y}; }
__device__ __forceinline__ double2 conjugate_of(double2 x) { return {x.x, -x.y}; }

/* ---- one block of threads -------------------------------------------------------------------- */

template <class Type, int N, int ADD_N> struct triangle_block {
  using config = triangle_config<Type>;
  using element = typename Type::element;
  static constexpr int part_n = WS_TRIANGLE_PART, pitch = WS_TRIANGLE_PITCH, own = 8, x_pitch = WS_TRIANGLE_COLUMNS + 1;
  static constexpr int d_parts = WS_TRIANGLE_MOST(WS_TRIANGLE_PARTS(N), WS_TRIANGLE_ADD_PARTS(ADD_N));
  static_assert(WS_TRIANGLE_THREADS == part_n / own * 32 && WS_TRIANGLE_COLUMNS == 32);

  const ws_triangle_args &args;
  element *d; /* parts, each by columns of `pitch` */
  element *x; /* row by row, x_pitch apart */

  __device__ triangle_block(const ws_triangle_args &given, unsigned char *shared) : args(given) {
    d = reinterpret_cast<element *>(shared);
    x = d + d_parts * part_n * pitch;
  }

  static __device__ __forceinline__ int lane() { return int(threadIdx.x) % 32; }
  /* Its first row of every part. */
  static __device__ __forceinline__ int first() { return int(threadIdx.x) / 32 * own; }

  __device__ __forceinline__ bool is_triangular() const { return args.structure >= WS_TRIANGULAR; }
  /* Of part (b, p) the first element. */
  __device__ __forceinline__ const element *part(int b, int p) const { return d + part_idx(b, p) * part_n * pitch; }
  __device__ __forceinline__ int part_idx(int b, int p) const { return adds() ? b * (ADD_N / part_n) + p : b * (b + 1) / 2 + p; }

  /* Element (i, j) of D, whether it is stored or not; nothing else is read. */
  __device__ __forceinline__ element load(const element *from, int n, int i, int j) const {
    element zero{};
    if (i >= n || j >= n) return i == j ? one_of(zero) : zero;
    const bool is_stored = i == j || (i > j) == (args.is_lower != 0);
    if (is_triangular() && !is_stored) return zero;
    if (args.structure == WS_UNIT_TRIANGULAR && i == j) return one_of(zero);
    const int row = is_stored ? i : j, column = is_stored ? j : i;
    element value = load_element<config>(from + row * args.of_d.row + column * args.of_d.column);
    if (args.structure == WS_HERMITIAN) {
      if (!is_stored) value = conjugate_of(value);
      value = without_imaginary<config>(value, i == j);
    }
    return args.conj ? conjugate_of(value) : value;
  }

  /* D's block of n rows. Neighbouring threads read neighbours in memory. */
  __device__ __forceinline__ void load_d(const element *from, int n) {
    const int n_parts = int(ws_ceil_div(n, part_n));
    for (int b = 0; b < n_parts; b++)
      for (int p = 0; p < (adds() ? n_parts : b + 1); p++) {
        element *const to = d + part_idx(b, p) * part_n * pitch;
        if (adds())
          load_part(from, to, n, b, p);
        else
          copy_part(from, to, n, b, p);
      }
    cp_async_commit();
    cp_async_wait<0>();
    __syncthreads();
    if (adds()) return;
    if (args.conj) conjugate_parts(n_parts);
    if (args.structure == WS_UNIT_TRIANGULAR)
      for (int i = int(threadIdx.x); i < n; i += WS_TRIANGLE_THREADS) *diagonal_at(i) = one_of(element{});
    __syncthreads();
  }

  __device__ __forceinline__ bool adds() const { return args.work == WS_TRIANGLE_ADD; }
  __device__ __forceinline__ bool d_by_rows() const { return args.of_d.row == 1 || args.of_d.row == -1; }

  /* Calls body(i, j) for this thread's elements of a part, so that a warp's are neighbours in
   * memory. */
  template <class Body> __device__ __forceinline__ void for_each_of_part(Body body) const {
    const int along = lane(), across = int(threadIdx.x) / 32;
#pragma unroll
    for (int step = 0; step < part_n; step += WS_TRIANGLE_THREADS / 32)
      body(d_by_rows() ? along : across + step, d_by_rows() ? across + step : along);
  }

  /* Of any part. */
  __device__ __forceinline__ void load_part(const element *from, element *to, int n, int b, int p) const {
    for_each_of_part([&](int i, int j) { to[j * pitch + i] = load(from, n, b * part_n + i, p * part_n + j); });
  }

  /* Of a lower triangle, but for conj; what does not exist, or is no part of it, is zero. By
   * reals, as no more is aligned. */
  __device__ __forceinline__ void copy_part(const element *from, element *to, int n, int b, int p) const {
    const element *const first = from + b * part_n * args.of_d.row + p * part_n * args.of_d.column;
    const int n_rows = n - b * part_n, least = p < b ? part_n : args.structure == WS_UNIT_TRIANGULAR ? -1 : 0;
    for_each_of_part([&](int i, int j) {
      copy_element<Type>(to + j * pitch + i, first + i * args.of_d.row + j * args.of_d.column, from,
                         i < n_rows && j - i <= least);
    });
  }

  __device__ __forceinline__ void conjugate_parts(int n_parts) const {
    for (int e = int(threadIdx.x); e < part_idx(n_parts, 0) * part_n * pitch; e += WS_TRIANGLE_THREADS) d[e] = conjugate_of(d[e]);
    __syncthreads();
  }

  __device__ __forceinline__ element *diagonal_at(int i) const {
    return d + part_idx(i / part_n, i / part_n) * part_n * pitch + i % part_n * (pitch + 1);
  }

  /* Columns from `column` on; those and rows that do not exist are zeros. */
  __device__ __forceinline__ void load_x(const element *from, const ws_steps &steps, int n, int64_t column) {
    for_each_x(steps, n, column, [&](int i, int c, bool is_there) {
      copy_element<Type>(x + i * x_pitch + c, from + i * steps.row + (column + c) * steps.column, from, is_there);
    });
    cp_async_commit();
  }
  static __device__ __forceinline__ void wait_for_x() {
    cp_async_wait<0>();
    __syncthreads();
  }
  __device__ __forceinline__ void store_x(element *to, const ws_steps &steps, int n, int64_t column) const {
    __syncthreads();
    for_each_x(steps, n, column, [&](int i, int c, bool is_there) {
      if (is_there) store_element<config>(to + i * steps.row + (column + c) * steps.column, x[i * x_pitch + c]);
    });
    __syncthreads();
  }
  template <class Body>
  __device__ __forceinline__ void for_each_x(const ws_steps &steps, int n, int64_t column, Body body) const {
    const int n_rows = int(ws_ceil_div(n, part_n)) * part_n, along = lane(), across = int(threadIdx.x) / 32;
    const int64_t n_there = args.n_columns - column;
    const bool by_rows = steps.row == 1 || steps.row == -1;
    for (int part = 0; part < n_rows; part += part_n)
#pragma unroll
      for (int step = 0; step < part_n; step += WS_TRIANGLE_THREADS / 32) {
        const int i = part + (by_rows ? along : across + step), c = by_rows ? across + step : along;
        body(i, c, i < n && c < n_there);
      }
  }

  /* Some of this warp's rows of a column of a part, 16 bytes at a time. */
  static constexpr int quad = 4;
  static __device__ __forceinline__ void load_rows(const element *column, element (&rows)[quad]) {
    static_assert(pitch * sizeof(element) % 16 == 0 && own % quad == 0, "aligned");
    struct alignas(16) four {
      uint32_t word[4];
    };
    union {
      four fours[quad * sizeof(element) / 16];
      element rows[quad];
    } all;
#pragma unroll
    for (int u = 0; u < int(quad * sizeof(element) / 16); u++) all.fours[u] = reinterpret_cast<const four *>(column)[u];
#pragma unroll
    for (int r = 0; r < quad; r++) rows[r] = all.rows[r];
  }

  __device__ __forceinline__ void add_columns(products<config> (&acc)[own], const element *of_part, int row, int count) const {
    constexpr int at_once = sizeof(element) == 16 ? 1 : 4; /* as there are registers for */
#pragma unroll at_once
    for (int c = 0; c < count; c++) {
      const element value = x[(row + c) * x_pitch + lane()];
#pragma unroll
      for (int q = 0; q < own; q += quad) {
        element rows[quad];
        load_rows(of_part + c * pitch + first() + q, rows);
#pragma unroll
        for (int r = 0; r < quad; r++) acc[q + r].add(rows[r], value);
      }
    }
  }

  /* From the last part up: the products of a part need those of X before it. */
  __device__ __forceinline__ void multiply(int n, const scaling<config> &scale) {
    for (int b = int(ws_ceil_div(n, part_n)) - 1; b >= 0; b--) {
      products<config> acc[own];
#pragma unroll
      for (int r = 0; r < own; r++) acc[r].clear();
      for (int p = 0; p <= b; p++) add_columns(acc, part(b, p), p * part_n, part_n);
      __syncthreads();
#pragma unroll
      for (int r = 0; r < own; r++) x[(b * part_n + first() + r) * x_pitch + lane()] = scale(acc[r], {}, element{});
    }
  }

  __device__ __forceinline__ void add(element *y, int n, int64_t column, const scaling<config> &scale) {
    const int n_parts = int(ws_ceil_div(n, part_n));
    for (int b = 0; b < n_parts; b++) {
      products<config> acc[own];
#pragma unroll
      for (int r = 0; r < own; r++) acc[r].clear();
      for (int p = 0; p < n_parts; p++) add_columns(acc, part(b, p), p * part_n, int(ws_min(part_n, n - p * part_n)));
#pragma unroll
      for (int r = 0; r < own; r++) {
        const int i = b * part_n + first() + r;
        if (i >= n || column + lane() >= args.n_columns) continue;
        element *const at = y + i * args.of_y.row + (column + lane()) * args.of_y.column;
        store_element<config>(at, scale(acc[r], {}, scale.beta_zero ? element{} : load_element<config>(at)));
      }
    }
    __syncthreads();
  }
};

/* SOLVE and MULTIPLY have no beta. */
template <class Config> __device__ __forceinline__ scaling<Config> triangle_scaling(const ws_triangle_args &args) {
  const bool beta_zero = args.work != WS_TRIANGLE_ADD || args.beta_zero;
  if constexpr (sizeof(typename Config::real) == 4)
    return {args.alpha.s[0], args.alpha.s[1], args.beta.s[0], args.beta.s[1], beta_zero};
  else
    return {args.alpha.d[0], args.alpha.d[1], args.beta.d[0], args.beta.d[1], beta_zero};
}

template <class Type, int N, int ADD_N> __device__ __forceinline__ void work_on_triangles(const ws_triangle_args &args) {
  extern __shared__ __align__(16) unsigned char shared[];
  using block = triangle_block<Type, N, ADD_N>;
  using element = typename Type::element;
  block own(args, shared);
  const scaling<typename block::config> scale = triangle_scaling<typename block::config>(args);
  const bool adds = args.work == WS_TRIANGLE_ADD;
  const int64_t n_groups = ws_ceil_div(args.n_columns, WS_TRIANGLE_COLUMNS), n_blocks = adds ? ws_ceil_div(args.n, ADD_N) : 1;
  int64_t loaded = -1;
  for (int64_t item = worker_idx(); item < args.n_batch * n_blocks * n_groups; item += n_workers()) {
    const int64_t which = item / n_groups, column = item % n_groups * WS_TRIANGLE_COLUMNS, batch = which / n_blocks,
                  row = which % n_blocks * ADD_N;
    const int n = int(adds ? ws_min(ADD_N, args.n - row) : args.n);
    element *const x = static_cast<element *>(args.x) + batch * args.of_x.stride + row * args.of_x.row;
    own.load_x(x, args.of_x, n, column);
    if (which != loaded)
      own.load_d(static_cast<const element *>(args.d) + batch * args.of_d.stride + row * (args.of_d.row + args.of_d.column), n);
    loaded = which;
    own.wait_for_x();
    if (adds) {
      own.add(static_cast<element *>(args.y) + batch * args.of_y.stride + row * args.of_y.row, n, column, scale);
    } else {
      own.multiply(n, scale);
      own.store_x(x, args.of_x, n, column);
    }
  }
}

/* Y = D as a general matrix, by tiles, of which those that are not stored are read where they are
 * mirrored. */
template <class Type> __device__ __forceinline__ void write_out(const ws_triangle_args &args) {
  using block = triangle_block<Type, WS_TRIANGLE_PART, WS_TRIANGLE_PART>;
  using element = typename Type::element;
  constexpr int side = WS_TRIANGLE_PART;
  __shared__ element tile[side][side + 1];
  const block own(args, nullptr);
  const int lane = int(threadIdx.x) % side, first = int(threadIdx.x) / side, step = WS_TRIANGLE_THREADS / side;
  const int64_t n_tiles = ws_ceil_div(args.n, side);
  for (int64_t item = worker_idx(); item < args.n_batch * n_tiles * n_tiles; item += n_workers()) {
    const int64_t batch = item / (n_tiles * n_tiles), row = item % n_tiles * side, column = item / n_tiles % n_tiles * side;
    const element *const from = static_cast<const element *>(args.d) + batch * args.of_d.stride;
    element *const to = static_cast<element *>(args.y) + batch * args.of_y.stride;
    const bool is_mirrored = row != column && (row > column) != (args.is_lower != 0);
    const bool is_zero = is_mirrored && args.structure >= WS_TRIANGULAR;
    const int64_t read_row = is_mirrored ? column : row, read_column = is_mirrored ? row : column;
    /* neighbouring lanes read neighbours in memory */
    for (int other = first; other < side && !is_zero; other += step) {
      const int i = own.d_by_rows() ? lane : other, j = own.d_by_rows() ? other : lane;
      const int64_t at_row = read_row + i, at_column = read_column + j;
      const bool is_there = at_row < args.n && at_column < args.n;
      tile[i][j] = is_there ? own.load(from, int(args.n), int(at_row), int(at_column)) : element{};
    }
    __syncthreads();
    for (int j = first; j < side; j += step) {
      if (row + lane >= args.n || column + j >= args.n) continue;
      element value{};
      if (!is_zero) value = is_mirrored ? tile[j][lane] : tile[lane][j];
      if (is_mirrored && args.structure == WS_HERMITIAN) value = conjugate_of(value);
      store_element<typename block::config>(to + row + lane + (column + j) * args.of_y.column, value);
    }
    __syncthreads();
  }
}

/* X = B, for a system whose solution goes elsewhere: lines of reals. */
template <class Real> __device__ __forceinline__ void copy_lines(const ws_triangle_args &args) {
  const int64_t n_elements = args.n * args.n_columns * args.n_batch;
  for (int64_t at = worker_idx() * int64_t(blockDim.x) + threadIdx.x; at < n_elements; at += int64_t(n_workers()) * blockDim.x) {
    const int64_t line = at / args.n, i = at % args.n, batch = line / args.n_columns, j = line % args.n_columns;
    static_cast<Real *>(args.x)[batch * args.of_x.stride + j * args.of_x.column + i] =
        static_cast<const Real *>(args.d)[batch * args.of_d.stride + j * args.of_d.column + i];
  }
}

} // namespace ws
#endif
