/* wgmma_store.cuh - from the sums of a warpgroup to C: what wgmma_steps.cuh makes of them, rounded
 * once to C's type.
 *
 * 16-bit C leaves from shared memory, up to 64 x 64 elements at a time: by TMA where it may write,
 * else by lines, of its 16 columns by each warp (of whole 64 rows, by_lines, or is_plain): 16 bytes a
 * lane where TMA might write, too. Floats, and what has no boxes, go to C from where they are. */
#ifndef WS_CUDA_WGMMA_STORE_CUH
#define WS_CUDA_WGMMA_STORE_CUH
#include <type_traits>

#include <cuda_fp16.h>

#include "cuda/epilogue/wgmma_steps.cuh"

namespace ws {

template <class Config, int BM = Config::bm> struct wgmma_store : wgmma_steps<Config, BM> {
  using base = wgmma_steps<Config, BM>;
  using base::add_bias, base::args, base::at, base::barrier, base::finish, base::n_fragments, base::n_own, base::n_sums,
      base::part_at, base::pick, base::rows, base::take_simple_steps, base::thread;
  using typename base::part;
  /* 16-bit C may leave by boxes of so many rows; up to 64 rows find room in a place */
  static constexpr bool has_boxes = BM % 16 == 0;
  /* Of these rows boxes would be short, and lines of 32 or 64 bytes cost TMA as much as whole ones. */
  static constexpr bool by_lines = has_boxes && BM > 64 && BM % 64 != 0;
  static constexpr int box_rows = by_lines ? 64 : WS_WGMMA_BOX_ROWS(BM), box_line = 2 * box_rows, box_bytes = 64 * box_line;
  static constexpr int box_columns = WS_WGMMA_BOX_COLUMNS(BM); /* across */

  /* Columns from n on, rows from m on. The warpgroup's shared memory: its bias, n_outputs places;
   * output: which of these is next. */
  __device__ __forceinline__ void operator()(const float (&sums)[n_fragments][n_sums], int m, int n, int batch, uint32_t bias,
                                             uint32_t places, int &output) const {
    if constexpr (Config::is_bare) {
      if constexpr (std::is_same_v<typename Config::element, __half>)
        store_bare<f16x2_of>(sums, m, n, batch, bias, places, output);
      else
        store_bare<bf16x2_of>(sums, m, n, batch, bias, places, output);
    } else if constexpr (has_boxes) {
      if (Config::is_plain || (args.type_c != WS_HALF_C_F32 && (box_rows == 64 || args.c_by_map))) {
        if (!Config::is_plain && !args.is_simple)
          store_fragments(sums, m, n, batch, bias, places, output);
        else if (args.type_c == WS_HALF_C_F16)
          store_simply<f16x2_of>(sums, m, n, batch, bias, places, output);
        else
          store_simply<bf16x2_of>(sums, m, n, batch, bias, places, output);
        return;
      }
    }
    if constexpr (!Config::is_plain) store_from_registers(sums, m, n, batch, bias);
  }

  /* The same, of a warpgroup with places for all that it stores. */
  template <bool IS_PLAIN>
  __device__ __forceinline__ void store(const float (&sums)[n_fragments][n_sums], int m, int n, int batch, uint32_t bias,
                                        uint32_t places) const {
    int output = 0;
    if constexpr (!IS_PLAIN)
      (*this)(sums, m, n, batch, bias, places, output);
    else if constexpr (has_boxes) {
      if (args.is_across)
        store_plainly<true>(sums, m, n, batch, places);
      else
        store_plainly<false>(sums, m, n, batch, places);
    } else if (args.is_across)
      store_eights_across(sums, m, n, batch, places);
    else
      store_eights(sums, m, n, batch);
  }

private:
  /* Whether TMA stores C. */
  __device__ __forceinline__ bool by_map() const { return Config::is_bare || args.c_by_map; }
  /* Whether this thread asks for copies by TMA: one of the warpgroup, always the same. The compiler is to
   * know that it is one; of others it makes a loop for each copy. Kernels with every epilogue have no
   * register left for that. */
  static __device__ __forceinline__ bool asks() {
    if constexpr (Config::is_plain || Config::is_once) return __shfl_sync(~0u, thread() / 32, 0) == 0 && elect_one();
    return thread() == 0;
  }

  /* ---- Out of registers ---------------------------------------------------------------------- */

  __device__ __forceinline__ void store_from_registers(const float (&sums)[n_fragments][n_sums], int m, int n, int batch,
                                                       uint32_t bias) const {
    constexpr int per_fragment = BM / rows;
#pragma unroll 1
    for (int turn = 0; turn < n_fragments * per_fragment; turn++) {
      const part p = part_at(m, turn % per_fragment * rows, n, turn / per_fragment * 64, batch);
      float x[n_own];
      pick(sums, turn, x);
      if (p.n_i <= 0 || p.n_j <= 0) continue;
      finish(p, bias, x);
      const half_c first = at(args.c_data, args.ldc, args.stride_c, p.i, p.j, p.batch);
#pragma unroll
      for (int u = 0; u < n_own; u += 2) {
        const int i = u / 4 * 8, j = u / 2 % 2 * 8;
        const half_c to = first + (i + j * args.ldc);
        if (args.c_pairs && i + 1 < p.n_i && j < p.n_j) {
          to.store_two({x[u], x[u + 1]});
        } else if (i < p.n_i && j < p.n_j) {
          to.store(x[u]);
          if (i + 1 < p.n_i) (to + 1).store(x[u + 1]);
        }
      }
    }
  }

  /* ---- By way of shared memory --------------------------------------------------------------- */

  /* Where the whole item has room (gemm_wgmma_once.cuh), alpha * sum alone: short code, of which each
   * line is run once. */
  template <bool IS_ACROSS>
  __device__ __forceinline__ void store_plainly(const float (&sums)[n_fragments][n_sums], int m, int n, int batch,
                                                uint32_t places) const {
    constexpr int per_fragment = (BM + 63) / 64;
#pragma unroll
    for (int p = 0; p < n_fragments; p++)
#pragma unroll
      for (int s = 0; s < BM / 16; s++) {
        float x[8];
#pragma unroll
        for (int u = 0; u < 8; u++) x[u] = __fmul_rn(args.alpha, sums[p][s * 8 + u]);
        const uint32_t place = places + uint32_t((p * per_fragment + s / 4) * Config::output_bytes);
        if constexpr (IS_ACROSS)
          put_across<half_pair_of<typename Config::element>>(place, s % 4, x);
        else
          put_packed<half_pair_of<typename Config::element>>(place, s % 4, x);
      }
    if constexpr (by_lines && !IS_ACROSS) {
      __syncwarp();
#pragma unroll
      for (int p = 0; p < n_fragments; p++)
#pragma unroll
        for (int s = 0; s < per_fragment; s++)
          store_eights_of_lines(places + uint32_t((p * per_fragment + s) * Config::output_bytes), m + s * 64, n + p * 64, batch,
                                BM - s * 64);
      return;
    }
    fence_proxy_async_shared();
    barrier_sync(barrier(), 128);
    if (!asks()) return;
    const int n_rows = int(args.m) - m, n_columns = int(args.n) - n;
#pragma unroll
    for (int p = 0; p < n_fragments; p++)
#pragma unroll
      for (int s = 0; s < BM; s += IS_ACROSS ? box_columns : box_rows)
        if (s < n_rows && p * 64 < n_columns) {
          const uint32_t from = places + uint32_t((p * per_fragment + s / 64) * Config::output_bytes +
                                                  (IS_ACROSS ? s % 64 * 128 : s % 64 / box_rows * box_bytes));
          cp_async_bulk_tensor_store(&args.c, IS_ACROSS ? n + p * 64 : m + s, IS_ACROSS ? m + s : n + p * 64, batch, from);
        }
    cp_async_bulk_commit_group();
  }

  /* Of too few rows for boxes of 16 where these are columns of C, in boxes of eight of them. */
  __device__ __forceinline__ void store_eights_across(const float (&sums)[n_fragments][n_sums], int m, int n, int batch,
                                                      uint32_t places) const {
    constexpr int per_fragment = (BM + 63) / 64;
    const uint32_t lane = uint32_t(thread() % 32), eight = uint32_t(thread() / 32 * 2) + lane / 8 % 2;
#pragma unroll
    for (int p = 0; p < n_fragments; p++)
#pragma unroll
      for (int s = 0; s < BM; s += 16) { /* lines, of which lanes give the address */
        const uint32_t place = places + uint32_t((p * per_fragment + s / 64) * Config::output_bytes);
        const uint32_t line = uint32_t(s % 64) + (s + 8 < BM ? lane / 16 * 8 : 0) + lane % 8;
        const uint32_t row = place + line * 128 + (eight ^ line % 8) * 16;
        uint32_t two[4];
#pragma unroll
        for (int u = 0; u < 4 && s / 2 + 2 * u < n_sums; u++) {
          const float *d = &sums[p][s / 2 + 2 * u];
          two[u] = half_pair_of<typename Config::element>(__fmul_rn(args.alpha, d[0]), __fmul_rn(args.alpha, d[1]));
        }
        if (s + 8 < BM)
          stmatrix_x4_trans(row, two);
        else
          stmatrix_x2_trans(row, {two[0], two[1]});
      }
    fence_proxy_async_shared();
    barrier_sync(barrier(), 128);
    if (__shfl_sync(~0u, thread() / 32, 0) != 0 || !elect_one()) return;
    const int n_rows = int(args.m) - m, n_columns = int(args.n) - n;
#pragma unroll
    for (int p = 0; p < n_fragments; p++)
#pragma unroll
      for (int s = 0; s < BM; s += box_columns)
        if (s < n_rows && p * 64 < n_columns)
          cp_async_bulk_tensor_store(&args.c, n + p * 64, m + s, batch,
                                     places + uint32_t((p * per_fragment + s / 64) * Config::output_bytes + s % 64 * 128));
    cp_async_bulk_commit_group();
  }

  /* Of too few rows for a box, as pairs: rows by the eight exist, or do not (args.c_by_map). */
  __device__ __forceinline__ void store_eights(const float (&sums)[n_fragments][n_sums], int m, int n, int batch) const {
    const int lane = thread() % 32, n_rows = int(args.m) - m;
    const int column = thread() / 32 * 16 + lane / 4, n_columns = int(args.n) - n - column;
    uint16_t *c = static_cast<uint16_t *>(args.c_data) + batch * args.stride_c + (int64_t(n) + column) * args.ldc + m;
#pragma unroll
    for (int p = 0; p < n_fragments; p++)
#pragma unroll
      for (int u = 0; u < n_sums; u += 2) {
        const int i = u / 4 * 8 + lane % 4 * 2, j = p * 64 + u / 2 % 2 * 8;
        const uint32_t two =
            half_pair_of<typename Config::element>(__fmul_rn(args.alpha, sums[p][u]), __fmul_rn(args.alpha, sums[p][u + 1]));
        if (i < n_rows && j < n_columns) *reinterpret_cast<uint32_t *>(c + j * args.ldc + i) = two;
      }
  }

  template <uint32_t packed(float, float)>
  __device__ __forceinline__ void store_bare(const float (&sums)[n_fragments][n_sums], int m, int n, int batch, uint32_t bias,
                                             uint32_t places, int &output) const {
    if (args.is_across)
      store_across<packed>(sums, m, n, batch, places, output);
    else
      store_simply<packed>(sums, m, n, batch, bias, places, output);
  }

  /* Lines 16 first to the next of a place, in which rows of the item are lines of 64 rows of C; of
   * these a warp has 16. */
  template <uint32_t packed(float, float)>
  static __device__ __forceinline__ void put_across(uint32_t place, int first, const float (&x)[8]) {
    const uint32_t two[4] = {packed(x[0], x[1]), packed(x[2], x[3]), packed(x[4], x[5]), packed(x[6], x[7])};
    /* of those whose address this lane gives */
    const uint32_t lane = uint32_t(thread() % 32), line = uint32_t(first * 16) + lane / 16 * 8 + lane % 8;
    const uint32_t eight = uint32_t(thread() / 32 * 2) + lane / 8 % 2;
    stmatrix_x4_trans(place + line * 128 + (eight ^ line % 8) * 16, two);
  }

  /* Where rows of the item are columns of C: in a place are boxes of so many of these. */
  template <uint32_t packed(float, float)>
  __device__ __forceinline__ void store_across(const float (&sums)[n_fragments][n_sums], int m, int n, int batch, uint32_t places,
                                               int &output) const {
#pragma unroll
    for (int p = 0; p < n_fragments; p++)
#pragma unroll
      for (int s = 0; s < (BM + 63) / 64; s++) {
        if (m + s * 64 >= args.m || n + p * 64 >= args.n) continue;
        const uint32_t place = places + uint32_t(output * Config::output_bytes);
        output = (output + 1) % Config::n_outputs;
        cp_async_bulk_wait_group_read<Config::n_outputs - 1>(); /* in the thread that asks */
        barrier_sync(barrier(), 128);
#pragma unroll
        for (int q = 0; q < 4; q++) { /* 16 lines */
          if (s * 64 + q * 16 >= BM) continue;
          float x[8];
#pragma unroll
          for (int u = 0; u < 8; u++) x[u] = __fmul_rn(args.alpha, sums[p][s * 32 + q * 8 + u]);
          put_across<packed>(place, q, x);
        }
        fence_proxy_async_shared();
        barrier_sync(barrier(), 128);
        if (!asks()) continue;
#pragma unroll
        for (int line = 0; line < 64 && s * 64 + line < BM; line += box_columns)
          if (m + s * 64 + line < args.m)
            cp_async_bulk_tensor_store(&args.c, n + p * 64, m + s * 64 + line, batch, place + uint32_t(line * 128));
        cp_async_bulk_commit_group();
      }
  }

  template <uint32_t packed(float, float)>
  __device__ __forceinline__ void store_simply(const float (&sums)[n_fragments][n_sums], int m, int n, int batch, uint32_t bias,
                                               uint32_t places, int &output) const {
#pragma unroll
    for (int p = 0; p < n_fragments; p++)
#pragma unroll
      for (int s = 0; s < (BM + 63) / 64; s++) {
        if (m + s * 64 >= args.m || n + p * 64 >= args.n) continue;
        const uint32_t place = begin_place(places, output);
#pragma unroll
        for (int q = 0; q < 4; q++) { /* 16 rows */
          if (s * 64 + q * 16 >= BM) continue;
          float x[8];
#pragma unroll
          for (int u = 0; u < 8; u++) x[u] = __fmul_rn(args.alpha, sums[p][s * 32 + q * 8 + u]);
          if constexpr (!Config::is_plain)
            if (args.epilogue.is_any) take_simple_steps(bias, s * 64 + q * 16, p * 64, x);
          put_packed<packed>(place, q, x);
        }
        end_place(place, m + s * 64, n + p * 64, batch, BM - s * 64);
      }
  }

  __device__ __forceinline__ void store_fragments(const float (&sums)[n_fragments][n_sums], int m, int n, int batch,
                                                  uint32_t bias, uint32_t places, int &output) const {
    constexpr int per_fragment = (BM + 63) / 64, n_turns = BM / rows, turns = 64 / rows;
#pragma unroll 1
    for (int of_64 = 0; of_64 < n_fragments * per_fragment; of_64++) {
      const int fragment = of_64 / per_fragment, first_turn = of_64 % per_fragment * turns;
      const int i = m + first_turn * rows, j = n + fragment * 64;
      if (i >= args.m || j >= args.n) continue;
      const uint32_t place = begin_place(places, output);
      const int end_turn = first_turn + turns < n_turns ? first_turn + turns : n_turns;
#pragma unroll 1
      for (int turn = first_turn; turn < end_turn; turn++) {
        const part p = part_at(m, turn * rows, n, fragment * 64, batch);
        float x[n_own];
        pick(sums, fragment * n_turns + turn, x);
        if (p.n_i > 0 && p.n_j > 0) finish(p, bias, x);
        __syncwarp();
        put(place, (turn - first_turn) * (rows / 16), x);
      }
      end_place(place, i, j, batch, (end_turn - first_turn) * rows);
    }
  }

  /* The next place, when nobody reads there any more. In it are boxes, one after the other, of so
   * many rows each and 64 columns; a column is a line of up to 128 bytes, swizzled as TMA wants it;
   * a warp has 16 of them. */
  __device__ __forceinline__ uint32_t begin_place(uint32_t places, int &output) const {
    const uint32_t place = places + uint32_t(output * Config::output_bytes);
    output = (output + 1) % Config::n_outputs;
    if (!by_lines && by_map()) {
      cp_async_bulk_wait_group_read<Config::n_outputs - 1>(); /* in the thread that asks */
      barrier_sync(barrier(), 128);
    } else {
      __syncwarp();
    }
    return place;
  }

  __device__ __forceinline__ void end_place(uint32_t place, int m, int n, int batch, int n_rows) const {
    if constexpr (by_lines) {
      /* rows of so many sums that they only store have no registers left for both ways */
      constexpr bool has_eights = Config::is_bare || !Config::is_plain;
      __syncwarp();
      if (has_eights && by_map())
        store_eights_of_lines(place, m, n, batch, n_rows);
      else if constexpr (!Config::is_bare)
        store_lines(place, m, n, batch, n_rows);
    } else if (by_map()) {
      fence_proxy_async_shared();
      barrier_sync(barrier(), 128);
      if (asks()) {
#pragma unroll
        for (int s = 0; s < 64; s += box_rows)
          if (s < n_rows && m + s < args.m)
            cp_async_bulk_tensor_store(&args.c, m + s, n, batch, place + uint32_t(s / box_rows * box_bytes));
        cp_async_bulk_commit_group();
      }
    } else if constexpr ((box_rows == 64 || Config::is_plain) && !Config::is_bare) {
      __syncwarp();
      store_lines(place, m, n, batch, box_rows == 64 ? 64 : n_rows);
    }
  }

  /* Where 8 rows of a box are in a column, from row 8 eight on: 16 bytes number c of line l are,
   * with lines of 128 bytes, at c ^ (l % 8); of 64 at c ^ (l / 2 % 4); of 32 at c ^ (l / 4 % 2). */
  static __device__ __forceinline__ uint32_t eight_at(uint32_t box, uint32_t line, uint32_t eight) {
    constexpr uint32_t per_line = box_rows / 8;
    return box + line * box_line + (eight ^ line / (8 / per_line) % per_line) * 16;
  }

  /* Rows of the fragment, from 16 first on. */
  template <int COUNT> __device__ __forceinline__ void put(uint32_t place, int first, const float (&x)[COUNT]) const {
    if (args.type_c == WS_HALF_C_F16)
      put_packed<f16x2_of>(place, first, x);
    else
      put_packed<bf16x2_of>(place, first, x);
  }

  template <uint32_t packed(float, float), int COUNT>
  __device__ __forceinline__ void put_packed(uint32_t place, int first, const float (&x)[COUNT]) const {
    const int lane = thread() % 32;
    /* of those whose address this lane gives */
    const uint32_t line = uint32_t(thread() / 32 * 16 + lane % 16);
#pragma unroll
    for (int s = 0; s < COUNT / 8; s++) {
      const float *d = &x[s * 8];
      const uint32_t two[4] = {packed(d[0], d[1]), packed(d[2], d[3]), packed(d[4], d[5]), packed(d[6], d[7])};
      const int row = 16 * (first + s);
      stmatrix_x4(eight_at(place + uint32_t(row / box_rows * box_bytes), line, uint32_t(row % box_rows / 8 + lane / 16)), two);
    }
  }

  /* The warp's lines of a fragment, of so many rows, 16 bytes a lane (args.c_by_map: they are aligned, and
   * there are rows by the eight). */
  __device__ __forceinline__ void store_eights_of_lines(uint32_t place, int m, int n, int batch, int most_rows) const {
    const int lanes = most_rows > 32 ? 8 : most_rows > 16 ? 4 : 2, at_once = 32 / lanes; /* of a line; lines */
    const int lane = thread() % 32, eight = lane % lanes, column = thread() / 32 * 16 + lane / lanes;
    const int n_eights = int(ws_min(args.m - m, ws_min(most_rows, 64))) / 8, n_columns = int(args.n) - n;
    const int64_t first = batch * args.stride_c + (n + int64_t(column)) * args.ldc + m + eight * 8;
    uint16_t *to = static_cast<uint16_t *>(args.c_data) + first;
#pragma unroll
    for (int c = 0; c < 16; c += at_once, to += at_once * args.ldc) {
      float x[4]; /* bits, as they are */
      ld_shared_four(x, eight_at(place, uint32_t(column + c), uint32_t(eight)));
      if (eight < n_eights && column + c < n_columns) *reinterpret_cast<float4 *>(to) = {x[0], x[1], x[2], x[3]};
    }
  }

  /* The warp's lines of a fragment, a few at once. */
  __device__ __forceinline__ void store_lines(uint32_t place, int m, int n, int batch, int most_rows) const {
    constexpr int at_once = 4, per_line = box_rows / 8;
    const uint32_t lane = uint32_t(thread() % 32), first = uint32_t(thread() / 32 * 16);
    const int n_columns = int(ws_min(args.n - n - first, 16)), n_rows = int(ws_min(args.m - m, ws_min(most_rows, 64)));
    const uint32_t box = box_rows == 64 ? place : place + lane / 4 / per_line * box_bytes;
    uint16_t *column = static_cast<uint16_t *>(args.c_data) + batch * args.stride_c + (n + int64_t(first)) * args.ldc + m;
#pragma unroll 1
    for (int c = 0; c < n_columns; c += at_once) {
      uint32_t two[at_once];
#pragma unroll
      for (int i = 0; i < at_once; i++) {
        const uint32_t line = first + uint32_t(c + i);
        two[i] = ld_shared_32(eight_at(box, line, lane / 4 % per_line) + lane % 4 * 4);
      }
#pragma unroll
      for (int i = 0; i < at_once; i++, column += args.ldc)
        if (c + i < n_columns) store_line(column, two[i], n_rows);
    }
  }

  /* Rows 2 lane and the next are in `two`; pairs are written where they are aligned, else each with
   * its neighbour's. */
  static __device__ __forceinline__ void store_line(uint16_t *column, uint32_t two, int n_rows) {
    const int lane = int(threadIdx.x) % 32, is_odd = int(reinterpret_cast<uintptr_t>(column) >> 1 & 1), row = 2 * lane - is_odd;
    const uint32_t before = __shfl_up_sync(~0u, two, 1), pair = is_odd ? __byte_perm(before, two, 0x5432) : two;
    if (row >= 0 && row + 1 < n_rows)
      *reinterpret_cast<uint32_t *>(column + row) = pair;
    else if (row >= 0 && row < n_rows)
      column[row] = uint16_t(pair);
    if (is_odd && lane == 0) column[0] = uint16_t(two);
    if (is_odd && lane == 31 && n_rows == 64) column[63] = uint16_t(two >> 16);
  }
};

} // namespace ws
#endif
