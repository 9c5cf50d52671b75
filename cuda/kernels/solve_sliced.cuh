/* solve_sliced.cuh - triangular systems of floats with one diagonal block (triangle_args.h: D x = alpha b, D lower
 * triangular, rows counted as the steps say): products by slices of TF32, substitution on the diagonal.
 *
 * A block of threads has N right-hand sides. Tiles of 32 rows belong to its warps in turn; a warp keeps what is left of its rows
 * in registers. The warp of tile j substitutes, 32 rows of a right-hand side by one lane, and tells the others, who take D's tile
 * times these unknowns from their rows, that of tile j + 1 first:
 *
 *        j = 0  1  2
 *   tile 0 [s]                  s: 32 steps of substitution by multiply-adds, nothing but diagonal elements inverted
 *   tile 1 [.][s]               .: high high + high low + low high of 32 x 32 x N, from zero, then subtracted
 *   tile 2 [.][.][s]
 *
 * Every element of D off the diagonal is read by one warp of the block, into registers, a tile ahead. An element of x has one order
 * of summation, whatever n_columns, N or the number of warps. */
#ifndef WS_CUDA_SOLVE_SLICED_CUH
#define WS_CUDA_SOLVE_SLICED_CUH
#include "cuda/kernels/triangle.cuh"
#include "cuda/ptx/mma_tf32.cuh"
#include "cuda/ptx/tma.cuh"

namespace ws {

/* x = high + low, exactly; of both the units read 11 bits. */
__device__ __forceinline__ float high_of(float x) { return __uint_as_float(__float_as_uint(x) & 0xffffe000u); }

template <int N, int TILES, int WARPS> struct sliced_solver {
  using type = type_s;
  static constexpr int side = WS_TRIANGLE_PART, pitch = WS_TRIANGLE_PITCH, n_threads = 32 * WARPS, across = N / 8;
  static constexpr int n_most = side * TILES * WARPS, slot_size = N * pitch, diagonal_size = side * pitch + side;
  static constexpr int shared_bytes = WS_SLICED_SOLVE_BYTES(N, TILES, WARPS);
  static_assert(shared_bytes == int(sizeof(float)) * (TILES * WARPS * slot_size + WARPS * diagonal_size) + 8 * TILES * WARPS);
  static_assert(side == 32 && N % 8 == 0 && N <= 32 && pitch % 4 == 0 && pitch / 4 % 2 == 1);

  /* Of a tile's rows the four from 4 g on, of columns 8 across + 2 t and the next one: as mma_tf32 has them, with rows 4 g + 2 i
   * and 4 g + 2 i + 1 in place of g and g + 8; where columns of D are read backwards, these four backwards. */
  using sums = float[2][across][4];
  /* Of a tile of D the same rows, columns 8 t .. 8 t + 7: by halves, columns, rows; where rows of D are read backwards, the four
   * columns of a half backwards. */
  using piece = float[2][4][4];

  const ws_triangle_args &args;
  const float *d;
  float *slots, *diagonal,
      *reciprocals; /* unknowns by tiles, each by columns; of this warp D's tile on the diagonal by columns */
  uint64_t *solved; /* barriers, by tiles */
  int n, n_tiles;
  bool is_flipped, is_plain; /* neighbours in D's memory are read backwards; reciprocals of this warp's tile may be had */

  static __device__ __forceinline__ int lane() { return int(threadIdx.x) % 32; }
  static __device__ __forceinline__ int warp() { return int(threadIdx.x) / 32; }
  static __device__ __forceinline__ int g() { return lane() / 4; }
  static __device__ __forceinline__ int t() { return lane() % 4; }

  __device__ sliced_solver(const ws_triangle_args &given, unsigned char *shared)
      : args(given), d(nullptr), n(int(given.n)), n_tiles(int(ws_ceil_div(given.n, side))),
        is_flipped(given.of_d.row == -1 || (given.of_d.row != 1 && given.of_d.column == -1)), is_plain(true) {
    slots = reinterpret_cast<float *>(shared);
    diagonal = slots + TILES * WARPS * slot_size + warp() * diagonal_size, reciprocals = diagonal + side * pitch;
    solved = reinterpret_cast<uint64_t *>(slots + TILES * WARPS * slot_size + WARPS * diagonal_size);
  }

  /* ---- D ---- */

  /* How D is read: by elements, or 16 bytes of a column at a time, or of a row. */
  enum reading { by_elements, by_columns, by_rows };
  __device__ __forceinline__ reading reading_of_d() const {
    const int64_t row = args.of_d.row, column = args.of_d.column;
    if (!args.d_vectors || n % 4 != 0) return by_elements;
    return row == 1 || row == -1 ? by_columns : column == 1 || column == -1 ? by_rows : by_elements;
  }
  static __device__ __forceinline__ float4 load_four(const float *from, bool flipped) {
    return __ldg(reinterpret_cast<const float4 *>(flipped ? from - 3 : from));
  }
  /* Of tile j whose columns all exist. Nothing is done with what is read, as it is not there yet. Rows that do not exist are others.
   * Steps are read again each time, as their multiples would stay in registers. */
  template <reading HOW> __device__ __forceinline__ void load_half(float (&to)[4][4], int tile, int j, int h) const {
    int64_t row_step = args.of_d.row, column_step = args.of_d.column;
    asm volatile("" : "+l"(row_step), "+l"(column_step));
    const int row = tile * side + 4 * g();
    const float *at = d + (HOW == by_elements || row < n ? row : 0) * row_step + (j * side + 8 * t() + 4 * h) * column_step;
    if constexpr (HOW == by_columns) {
#pragma unroll
      for (int c = 0; c < 4; c++, at += column_step) {
        const float4 v = load_four(at, is_flipped);
        to[c][0] = v.x, to[c][1] = v.y, to[c][2] = v.z, to[c][3] = v.w;
      }
    } else if constexpr (HOW == by_rows) {
#pragma unroll
      for (int r = 0; r < 4; r++, at += row_step) {
        const float4 v = load_four(at, is_flipped);
        to[0][r] = v.x, to[1][r] = v.y, to[2][r] = v.z, to[3][r] = v.w;
      }
    } else {
#pragma unroll
      for (int r = 0; r < 4; r++, at += row_step) {
        const float *of_row = at;
#pragma unroll
        for (int c = 0; c < 4; c++, of_row += column_step) to[c][r] = row + r < n ? __ldg(of_row) : 0;
      }
    }
  }
  /* A row of the four, as it lies in registers. */
  template <reading HOW> __device__ __forceinline__ int row_in(int r) const {
    return HOW == by_columns && is_flipped ? 3 - r : r;
  }

  /* The tile on the diagonal: neighbouring lanes read neighbours in memory. Elements that are not stored, or are no part of D, are
   * not read. */
  __device__ __forceinline__ void begin_diagonal(int tile) const {
    const float *const first = d + tile * side * (args.of_d.row + args.of_d.column);
    const int n_rows = n - tile * side;
    const bool is_by_columns = args.of_d.row == 1 || args.of_d.row == -1, is_unit = args.structure == WS_UNIT_TRIANGULAR;
#pragma unroll 4
    for (int s = 0; s < side; s++) {
      const int i = is_by_columns ? lane() : s, j = is_by_columns ? s : lane();
      copy_element<type>(diagonal + j * pitch + i, first + i * args.of_d.row + j * args.of_d.column, d,
                         i < n_rows && (is_unit ? i > j : i >= j));
    }
    cp_async_commit();
  }
  __device__ __forceinline__ void end_diagonal(int tile) {
    cp_async_wait<0>();
    __syncwarp();
    const bool is_one = args.structure == WS_UNIT_TRIANGULAR || tile * side + lane() >= n;
    const float value = is_one ? 1.0f : diagonal[lane() * (pitch + 1)];
    is_plain = __all_sync(~0u, fabsf(value) > 0x1p-100f && fabsf(value) < 0x1p100f) != 0;
    reciprocals[lane()] = is_plain ? __frcp_rn(value) : value;
    __syncwarp();
  }

  /* ---- right-hand sides ---- */

  template <reading HOW> __device__ __forceinline__ void load_sides(sums &acc, const float *x, int tile, int n_columns) const {
    const int row = tile * side + 4 * g();
#pragma unroll
    for (int b = 0; b < across; b++)
#pragma unroll
      for (int u = 0; u < 2; u++) {
        const int column = 8 * b + 2 * t() + u;
        const float *const at = x + row * args.of_x.row + column * args.of_x.column;
#pragma unroll
        for (int r = 0; r < 4; r++) {
          const int own_row = row_in<HOW>(r);
          acc[r / 2][b][r % 2 * 2 + u] = row + own_row < n && column < n_columns ? at[own_row * args.of_x.row] : 0;
        }
      }
  }
  __device__ __forceinline__ void scale_sides(sums &acc) const {
#pragma unroll
    for (int i = 0; i < 2; i++)
#pragma unroll
      for (int b = 0; b < across; b++)
#pragma unroll
        for (int e = 0; e < 4; e++) acc[i][b][e] *= args.alpha.s[0];
  }
  template <reading HOW> __device__ __forceinline__ void put_sides(const sums &acc, float *slot) const {
    const bool backwards = HOW == by_columns && is_flipped;
#pragma unroll
    for (int b = 0; b < across; b++)
#pragma unroll
      for (int u = 0; u < 2; u++) {
        const float4 v = {acc[0][b][u], acc[0][b][2 + u], acc[1][b][u], acc[1][b][2 + u]};
        *reinterpret_cast<float4 *>(slot + (8 * b + 2 * t() + u) * pitch + 4 * g()) = backwards ? float4{v.w, v.z, v.y, v.x} : v;
      }
  }
  __device__ __forceinline__ void store_sides(const float *slot, float *x, int tile, int n_columns) const {
    const bool by_rows = args.of_x.row == 1 || args.of_x.row == -1;
    const int n_rows = n - tile * side, rows = by_rows ? side : 32 / N;
    const int i = by_rows ? lane() : lane() / N, j = by_rows ? 0 : lane() % N;
    float *const at = x + tile * side * args.of_x.row;
#pragma unroll 4
    for (int s = 0; s < N; s++) {
      const int row = by_rows ? i : i + s * rows, column = by_rows ? s : j;
      if (row < n_rows && column < n_columns) at[row * args.of_x.row + column * args.of_x.column] = slot[column * pitch + row];
    }
  }

  /* ---- off the diagonal ---- */

  static __device__ __forceinline__ int least(int a, int b) { return a < b ? a : b; }

  /* A tile's rows less D's tile, in `own`, times unknowns; then own is tile `next` of D, columns of tile next_j. */
  template <reading HOW>
  __device__ __forceinline__ void subtract_tile(sums &acc, piece &own, const float *slot, int next, int next_j) const {
    /* what is not needed is some other tile; the last one's columns may not all exist */
    next = least(next, n_tiles - 1), next_j = least(next_j, n_tiles - 2);
    sums product = {};
#pragma unroll
    for (int h = 0; h < 2; h++) {
      float4 x[across];
#pragma unroll
      for (int b = 0; b < across; b++) {
        x[b] = *reinterpret_cast<const float4 *>(slot + (8 * b + g()) * pitch + 8 * t() + 4 * h);
        if (HOW == by_rows && is_flipped) x[b] = {x[b].w, x[b].z, x[b].y, x[b].x};
      }
#pragma unroll
      for (int s = 0; s < 4; s += 2) {
        float x_high[across][2], x_low[across][2];
#pragma unroll
        for (int b = 0; b < across; b++) {
          const float x0 = s == 0 ? x[b].x : x[b].z, x1 = s == 0 ? x[b].y : x[b].w;
          x_high[b][0] = high_of(x0), x_high[b][1] = high_of(x1);
          x_low[b][0] = x0 - x_high[b][0], x_low[b][1] = x1 - x_high[b][1];
        }
#pragma unroll
        for (int i = 0; i < 2; i++) {
          const float all[4] = {own[h][s][2 * i], own[h][s][2 * i + 1], own[h][s + 1][2 * i], own[h][s + 1][2 * i + 1]};
          float high[4], low[4];
#pragma unroll
          for (int e = 0; e < 4; e++) high[e] = high_of(all[e]), low[e] = all[e] - high[e];
#pragma unroll
          for (int b = 0; b < across; b++) mma_tf32(product[i][b], low, x_high[b]);
#pragma unroll
          for (int b = 0; b < across; b++) mma_tf32(product[i][b], high, x_low[b]);
#pragma unroll
          for (int b = 0; b < across; b++) mma_tf32(product[i][b], high, x_high[b]);
        }
      }
      load_half<HOW>(own[h], next, next_j, h);
    }
#pragma unroll
    for (int i = 0; i < 2; i++)
#pragma unroll
      for (int b = 0; b < across; b++)
#pragma unroll
        for (int e = 0; e < 4; e++) acc[i][b][e] -= product[i][b][e];
  }

  /* ---- on the diagonal ---- */

  /* One right-hand side. */
  __device__ __forceinline__ void substitute(float *side_of) const {
    float x[side];
#pragma unroll
    for (int q = 0; q < side; q += 4) {
      const float4 v = *reinterpret_cast<const float4 *>(side_of + q);
      x[q] = v.x, x[q + 1] = v.y, x[q + 2] = v.z, x[q + 3] = v.w;
    }
#pragma unroll
    for (int j = 0; j < side; j++) {
      x[j] *= reciprocals[j];
#pragma unroll
      for (int q = j / 4 * 4; q < side; q += 4) {
        const float4 v = *reinterpret_cast<const float4 *>(diagonal + j * pitch + q);
        if (q > j) x[q] = fmaf(-v.x, x[j], x[q]);
        if (q + 1 > j) x[q + 1] = fmaf(-v.y, x[j], x[q + 1]);
        if (q + 2 > j) x[q + 2] = fmaf(-v.z, x[j], x[q + 2]);
        if (q + 3 > j) x[q + 3] = fmaf(-v.w, x[j], x[q + 3]);
      }
    }
    __syncwarp();
    if (lane() < N)
#pragma unroll
      for (int q = 0; q < side; q += 4) *reinterpret_cast<float4 *>(side_of + q) = float4{x[q], x[q + 1], x[q + 2], x[q + 3]};
  }
  /* The same with divisions, where a reciprocal would leave the range. */
  __device__ __forceinline__ void divide(float *side_of) const {
    if (lane() >= N) return;
#pragma unroll 1
    for (int j = 0; j < side; j++) {
      const float x = __fdiv_rn(side_of[j], reciprocals[j]);
      side_of[j] = x;
#pragma unroll 1
      for (int i = j + 1; i < side; i++) side_of[i] = fmaf(-diagonal[j * pitch + i], x, side_of[i]);
    }
  }
  template <reading HOW> __device__ __forceinline__ void solve_tile(const sums &acc, float *slot) const {
    put_sides<HOW>(acc, slot);
    __syncwarp();
    float *const side_of = slot + lane() % N * pitch;
    if (is_plain)
      substitute(side_of);
    else
      divide(side_of);
    __syncwarp();
  }

  /* ---- right-hand sides of one system ---- */

  static __device__ __forceinline__ uint32_t groups_of(const ws_triangle_args &args) {
    return uint32_t(ws_ceil_div(args.n_columns, N));
  }

  __device__ __forceinline__ void init_barriers() const {
    if (int(threadIdx.x) < TILES * WARPS) mbarrier_init(solved + threadIdx.x, 1);
    __syncthreads();
  }

  template <reading HOW> __device__ __forceinline__ void run(uint32_t item, uint32_t parity) {
    const int64_t column = int64_t(item % groups_of(args)) * N, batch = item / groups_of(args);
    const int n_columns = int(ws_min(N, args.n_columns - column));
    float *const x = static_cast<float *>(args.x) + batch * args.of_x.stride + column * args.of_x.column;
    d = static_cast<const float *>(args.d) + batch * args.of_d.stride;
    int first = warp(); /* of its tiles that are not solved */
    sums acc[TILES];
    piece own;
#pragma unroll
    for (int q = 0; q < TILES; q++)
      if (first + q * WARPS < n_tiles) load_sides<HOW>(acc[q], x, first + q * WARPS, n_columns);
    const int begin = least(first == 0 ? WARPS : first, n_tiles - 1);
    if (n_tiles > 1) load_half<HOW>(own[0], begin, 0, 0), load_half<HOW>(own[1], begin, 0, 1);
    if (first < n_tiles) begin_diagonal(first), end_diagonal(first);
#pragma unroll
    for (int q = 0; q < TILES; q++)
      if (first + q * WARPS < n_tiles) scale_sides(acc[q]);
#pragma unroll 1
    for (int j = -1; first < n_tiles; j++) {
      const bool solves = first == j + 1;
      const float *const unknowns = slots + j * slot_size;
      const int after = solves ? first + WARPS : first; /* the first one of the next j */
      if (j >= 0) {
        mbarrier_wait<barrier_scope::cta>(shared_address(solved + j), parity);
        const bool is_last = TILES == 1 || first + WARPS >= n_tiles;
        subtract_tile<HOW>(acc[0], own, unknowns, is_last ? after : first + WARPS, is_last ? j + 1 : j);
      }
      if (solves) {
        float *const slot = slots + first * slot_size;
        solve_tile<HOW>(acc[0], slot);
        if (lane() == 0) mbarrier_arrive(shared_address(solved + first));
        store_sides(slot, x, first, n_columns);
        if (after < n_tiles) begin_diagonal(after);
      }
#pragma unroll
      for (int q = 1; q < TILES; q++)
        if (j >= 0 && first + q * WARPS < n_tiles) {
          const bool is_last = q + 1 == TILES || first + (q + 1) * WARPS >= n_tiles;
          subtract_tile<HOW>(acc[q], own, unknowns, is_last ? after : first + (q + 1) * WARPS, is_last ? j + 1 : j);
        }
      if (!solves) continue;
#pragma unroll
      for (int q = 1; q < TILES; q++)
#pragma unroll
        for (int e = 0; e < 8 * across; e++) (&acc[q - 1][0][0][0])[e] = (&acc[q][0][0][0])[e];
      first = after;
      if (first < n_tiles) end_diagonal(first);
    }
    __syncthreads();
  }
};

template <int N, int TILES, int WARPS> __device__ __forceinline__ void solve_by_slices(const ws_triangle_args &args) {
  extern __shared__ __align__(16) unsigned char memory_of_solver[];
  sliced_solver<N, TILES, WARPS> own(args, memory_of_solver);
  const uint32_t n_items = uint32_t(args.n_batch) * own.groups_of(args);
  own.init_barriers();
  uint32_t parity = 0;
  const auto reading = own.reading_of_d();
  using solver = sliced_solver<N, TILES, WARPS>;
  for (uint32_t item = worker_idx(); item < n_items; item += n_workers(), parity ^= 1) {
    if (reading == solver::by_columns)
      own.template run<solver::by_columns>(item, parity);
    else if (reading == solver::by_rows)
      own.template run<solver::by_rows>(item, parity);
    else
      own.template run<solver::by_elements>(item, parity);
  }
}

} // namespace ws
#endif
