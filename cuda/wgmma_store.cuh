/* wgmma_store.cuh - from the sums of a warpgroup to C: alpha * sum + beta * C, rounded once to C's type.
 *
 * A warpgroup holds pieces of 64 columns of C times BM rows: thread t, with w = t / 32, g = t % 32 / 4, q = t % 4, has in
 * sums[piece][4j .. 4j + 3]
 *   column 16w + g, rows 8j + 2q and the next;   column 16w + g + 8, the same rows.
 * 16-bit C that is not read leaves from shared memory, 64 x 64 elements at a time: by the copy engine where it may write, else by lines, a
 * warp one of its 16 columns after the other. All else goes through shared memory as floats, 32 rows of a warp's own 16 columns at a time, so
 * that each lane then has one row. */
#ifndef WS_CUDA_WGMMA_STORE_CUH
#define WS_CUDA_WGMMA_STORE_CUH
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "ptx_tma.cuh"
#include "wgmma_args.h"
#include "wsgemm.h"

namespace ws {

template <class Element> __device__ __forceinline__ uint32_t pack_two(float x, float y) {
  uint32_t bits;
  if constexpr (std::is_same_v<Element, __half>) {
    const __half2 two = __floats2half2_rn(x, y);
    memcpy(&bits, &two, 4);
  } else {
    const __nv_bfloat162 two = __floats2bfloat162_rn(x, y);
    memcpy(&bits, &two, 4);
  }
  return bits;
}

/* An element of C, of a type known only now; without branches, so that neighbours are not kept waiting. */
__device__ __forceinline__ float load_float(const void *at, int type) {
  if (type == WSGEMM_F32) return *static_cast<const float *>(at);
  const uint16_t bits = *static_cast<const uint16_t *>(at);
  return type == WSGEMM_F16 ? __half2float(__ushort_as_half(bits)) : __bfloat162float(__ushort_as_bfloat16(bits));
}

__device__ __forceinline__ void store_float(void *at, int type, float x) {
  const uint16_t bits = type == WSGEMM_F16 ? __half_as_ushort(__float2half_rn(x)) : __bfloat16_as_ushort(__float2bfloat16_rn(x));
  if (type == WSGEMM_F32)
    *static_cast<float *>(at) = x;
  else
    *static_cast<uint16_t *>(at) = bits;
}

template <class Config> struct wgmma_store {
  static constexpr int n_sums = Config::bm / 2, pieces = Config::pieces;
  const ws_wgmma_args &args;

  /* Columns from n on, rows from m on. `places`: the warpgroup's shared memory, n_outputs places; output: which of them is next. */
  __device__ __forceinline__ void operator()(const float (&sums)[pieces][n_sums], int m, int n, int batch, uint32_t places,
                                             int &output) const {
    if constexpr (Config::bm % 64 == 0) {
      if (args.beta_zero && args.type_c != WSGEMM_F32) {
        if (args.type_c == WSGEMM_F16)
          by_pieces<__half>(sums, m, n, batch, places, output);
        else
          by_pieces<__nv_bfloat16>(sums, m, n, batch, places, output);
        return;
      }
    }
    by_rows(sums, m, n, batch, places);
  }

private:
  static __device__ __forceinline__ int thread() { return int(threadIdx.x) % 128; }
  static __device__ __forceinline__ int barrier() {
    return int(threadIdx.x) / 128;
  } /* a number of the warpgroup's own, from 1 on */

  /* Of a piece a column is a line of 128 bytes, swizzled as the copy engine wants it; a warp has 16 of them. */
  template <class Element>
  __device__ __forceinline__ void by_pieces(const float (&sums)[pieces][n_sums], int m, int n, int batch, uint32_t places,
                                            int &output) const {
#pragma unroll
    for (int p = 0; p < pieces; p++)
#pragma unroll
      for (int s = 0; s < Config::bm / 64; s++) {
        if (m + s * 64 >= args.m || n + p * 64 >= args.n) continue;
        const uint32_t place = places + uint32_t(output * Config::output_bytes);
        output = (output + 1) % Config::n_outputs;
        if (args.c_by_map) {
          if (thread() == 0) cp_async_bulk_wait_group_read<Config::n_outputs - 1>();
          barrier_sync(barrier(), 128);
          put_piece<Element>(place, &sums[p][s * 32]);
          fence_proxy_async_shared();
          barrier_sync(barrier(), 128);
          if (thread() == 0) {
            cp_async_bulk_tensor_store(&args.c, m + s * 64, n + p * 64, batch, place);
            cp_async_bulk_commit_group();
          }
        } else {
          __syncwarp(); /* what stood here has been read */
          put_piece<Element>(place, &sums[p][s * 32]);
          __syncwarp();
          store_lines(place, m + s * 64, n + p * 64, batch);
        }
      }
  }

  template <class Element> __device__ __forceinline__ void put_piece(uint32_t place, const float *sums) const {
    const int lane = thread() % 32;
    const uint32_t line = uint32_t(thread() / 32 * 16 + lane % 16); /* of those whose address this lane gives */
#pragma unroll
    for (int q = 0; q < 4; q++) {
      const float *d = &sums[q * 8];
      const uint32_t x[4] = {
          pack_two<Element>(args.alpha * d[0], args.alpha * d[1]), pack_two<Element>(args.alpha * d[2], args.alpha * d[3]),
          pack_two<Element>(args.alpha * d[4], args.alpha * d[5]), pack_two<Element>(args.alpha * d[6], args.alpha * d[7])};
      stmatrix_x4(place + line * 128 + (uint32_t(2 * q + lane / 16) ^ line % 8) * 16, x);
    }
  }

  /* The warp's lines of a piece, a few at once. */
  __device__ __forceinline__ void store_lines(uint32_t place, int m, int n, int batch) const {
    constexpr int at_once = 4;
    const uint32_t lane = uint32_t(thread() % 32), first = uint32_t(thread() / 32 * 16);
    const int n_columns = int(ws_min(args.n - n - first, 16)), n_rows = int(ws_min(args.m - m, 64));
    uint16_t *column = static_cast<uint16_t *>(args.c_data) + batch * args.stride_c + (n + int64_t(first)) * args.ldc + m;
#pragma unroll 1
    for (int c = 0; c < n_columns; c += at_once) {
      uint32_t two[at_once];
#pragma unroll
      for (int i = 0; i < at_once; i++) {
        const uint32_t line = first + uint32_t(c + i);
        two[i] = ld_shared_32(place + line * 128 + (lane / 4 ^ line % 8) * 16 + lane % 4 * 4);
      }
#pragma unroll
      for (int i = 0; i < at_once; i++, column += args.ldc)
        if (c + i < n_columns) store_line(column, two[i], n_rows);
    }
  }

  /* Rows 2 lane and the next are in `two`; pairs are written where they are aligned, else each with its neighbour's. */
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

  /* In shared memory a column is 16 pairs of rows, pair u at u ^ 4 (column % 4): so neither writes nor reads meet in a bank. */
  static constexpr int rows = Config::bm < 32 ? Config::bm : 32;
  static __device__ __forceinline__ int pair_at(int column, int u) { return column * 16 + (u ^ column % 4 * 4); }

  __device__ __forceinline__ void by_rows(const float (&sums)[pieces][n_sums], int m, int n, int batch, uint32_t places) const {
    const int t = thread(), lane = t % 32, warp = t / 32;
    const uint32_t own = places + uint32_t(warp * (16 * 16 * 8));
#pragma unroll
    for (int p = 0; p < pieces; p++)
#pragma unroll
      for (int s = 0; s < Config::bm / rows; s++) {
        if (m + s * rows >= args.m || n + p * 64 >= args.n) continue;
        __syncwarp(); /* what stood here has been read */
#pragma unroll
        for (int j = 0; j < rows / 8; j++)
#pragma unroll
          for (int half = 0; half < 2; half++) {
            const float *d = &sums[p][s * (rows / 2) + j * 4 + half * 2];
            st_shared_pair(own + uint32_t(pair_at(lane / 4 + half * 8, j * 4 + lane % 4) * 8), d[0], d[1]);
          }
        __syncwarp();
        const int i = m + s * rows + lane;
        if (lane < rows && i < args.m) finish_row(own, i, n + p * 64, batch);
      }
  }

  /* The lane's row, in the warp's 16 of the 64 columns from n on; a few at once: one by one they would wait for each other. */
  __device__ __forceinline__ void finish_row(uint32_t from, int i, int n, int batch) const {
    constexpr int at_once = Config::n_consumers == 3 ? 4 : 8;
    const int first = n + thread() / 32 * 16, n_columns = int(ws_min(args.n - first, 16));
    const int64_t bytes = args.type_c == WSGEMM_F32 ? 4 : 2;
    char *at = static_cast<char *>(args.c_data) + (batch * args.stride_c + first * args.ldc + i) * bytes;
#pragma unroll 1
    for (int c = 0; c < n_columns; c += at_once, at += at_once * args.ldc * bytes)
      finish_columns<at_once>(from, c, at, args.ldc * bytes, n_columns - c);
  }

  template <int COUNT>
  __device__ __forceinline__ void finish_columns(uint32_t from, int first, char *at, int64_t step, int n_columns) const {
    const int lane = int(threadIdx.x) % 32;
    float x[COUNT];
#pragma unroll
    for (int c = 0; c < COUNT; c++) x[c] = ld_shared(from + uint32_t(pair_at(first + c, lane / 2) * 8 + lane % 2 * 4));
    if (args.beta_zero) {
#pragma unroll
      for (int c = 0; c < COUNT; c++) x[c] *= args.alpha;
    } else {
#pragma unroll
      for (int c = 0; c < COUNT; c++)
        if (c < n_columns) x[c] = fmaf(args.alpha, x[c], args.beta * load_float(at + c * step, args.type_c));
    }
#pragma unroll
    for (int c = 0; c < COUNT; c++)
      if (c < n_columns) store_float(at + c * step, args.type_c, x[c]);
  }
};

} // namespace ws
#endif
