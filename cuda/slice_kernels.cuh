/* slice_kernels.cuh - operands of floats into slices of 16 bits (slice_args.h), in two passes: the largest magnitude of each row or column by
 * chunks of k; then, knowing them, scales, slices and marks.
 *
 * A block takes chunk after chunk: of 128 neighbouring x where these are contiguous (a thread has the same few x of every so many k), else of 8
 * lines along k (a warp each). */
#ifndef WS_CUDA_SLICE_KERNELS_CUH
#define WS_CUDA_SLICE_KERNELS_CUH
#include <cuda_fp16.h>

#include "slice_args.h"
#include "tile.h"

namespace ws {

/* What a block takes at a time, of one operand. */
struct slice_part {
  int64_t product, x; /* x: the first */
  int chunk;
};

__device__ __forceinline__ int64_t slice_groups(const ws_slice_operand &op) {
  return ws_ceil_div(op.n_x, op.along_k ? WS_SLICE_LINES : WS_SLICE_X);
}

/* Calls body(operand, part) for what falls to this block, in all of its threads. */
template <class Body> __device__ __forceinline__ void for_each_slice_part(const ws_slice_args &args, Body body) {
  int64_t at = blockIdx.x;
  for (const ws_slice_operand &op : args.operand) {
    const int64_t n_groups = slice_groups(op), n_parts = op.n_products * n_groups * op.n_chunks;
    for (; at < n_parts; at += gridDim.x) {
      const int64_t group = at / op.n_chunks;
      body(op,
           slice_part{group / n_groups, group % n_groups * (op.along_k ? WS_SLICE_LINES : WS_SLICE_X), int(at % op.n_chunks)});
    }
    at -= n_parts;
  }
}

/* Some neighbours in a line, of which n exist; zeros for the others. */
template <int COUNT>
__device__ __forceinline__ void load_neighbours(const float *from, int64_t n, bool vectors, float (&x)[COUNT]) {
  if (vectors && n >= COUNT) {
#pragma unroll
    for (int i = 0; i < COUNT; i += 4) {
      const float4 four = *reinterpret_cast<const float4 *>(from + i);
      x[i] = four.x, x[i + 1] = four.y, x[i + 2] = four.z, x[i + 3] = four.w;
    }
  } else {
#pragma unroll
    for (int i = 0; i < COUNT; i++) x[i] = i < n ? from[i] : 0;
  }
}

/* Magnitudes are ordered as their bits are, NaN and infinity above all others. */
__device__ __forceinline__ uint32_t magnitude_bits(float x) { return __float_as_uint(x) & 0x7fffffff; }

/* ---- first pass ------------------------------------------------------------------------------------------------------------------ */

__device__ __forceinline__ void maxima_along_k(const ws_slice_operand &op, const slice_part &at) {
  const int lane = int(threadIdx.x) % 32;
  const int64_t x = at.x + threadIdx.x / 32, first = int64_t(at.chunk) * op.chunk_k, end = ws_min(first + op.chunk_k, op.n_k);
  if (x >= op.n_x) return;
  const float *line = op.from + at.product * op.stride + x * op.ld;
  uint32_t most = 0;
#pragma unroll 4
  for (int64_t k = first + lane * 4; k < end; k += 128) {
    float four[4];
    load_neighbours(line + k, end - k, op.vectors, four);
#pragma unroll
    for (int i = 0; i < 4; i++) most = max(most, magnitude_bits(four[i]));
  }
  most = __reduce_max_sync(~0u, most);
  if (lane == 0) op.maxima[(at.product * op.n_chunks + at.chunk) * op.n_x + x] = most;
}

__device__ __forceinline__ void maxima_along_x(const ws_slice_operand &op, const slice_part &at) {
  __shared__ uint32_t of_warp[WS_SLICE_LINES][WS_SLICE_X];
  const int lane = int(threadIdx.x) % 32, warp = int(threadIdx.x) / 32;
  const int64_t x = at.x + lane * 4, end = ws_min((int64_t(at.chunk) + 1) * op.chunk_k, op.n_k);
  const float *first = op.from + at.product * op.stride + x;
  uint32_t most[4] = {};
#pragma unroll 8
  for (int64_t k = int64_t(at.chunk) * op.chunk_k + warp; k < end; k += WS_SLICE_LINES) {
    float four[4];
    load_neighbours(first + k * op.ld, op.n_x - x, op.vectors, four);
#pragma unroll
    for (int i = 0; i < 4; i++) most[i] = max(most[i], magnitude_bits(four[i]));
  }
#pragma unroll
  for (int i = 0; i < 4; i++) of_warp[warp][lane * 4 + i] = most[i];
  __syncthreads();
  if (threadIdx.x < WS_SLICE_X && at.x + threadIdx.x < op.n_x) {
    uint32_t all = 0;
#pragma unroll
    for (int w = 0; w < WS_SLICE_LINES; w++) all = max(all, of_warp[w][threadIdx.x]);
    op.maxima[(at.product * op.n_chunks + at.chunk) * op.n_x + at.x + threadIdx.x] = all;
  }
  __syncthreads();
}

/* The second pass adds to scales and marks, so they begin as zeros. */
__device__ __forceinline__ void clear_scales(const ws_slice_args &args) {
  const int64_t first = int64_t(blockIdx.x) * blockDim.x + threadIdx.x, step = int64_t(gridDim.x) * blockDim.x;
  for (const ws_slice_operand &op : args.operand) {
    for (int64_t i = first; i < op.n_products * op.scales_pitch; i += step) op.scales[i] = 0;
    if (first == 0 && op.n_products > 0) *op.n_marked = 0;
  }
}

__device__ __forceinline__ void find_maxima(const ws_slice_args &args) {
  clear_scales(args);
  for_each_slice_part(args, [](const ws_slice_operand &op, const slice_part &at) {
    if (op.along_k)
      maxima_along_k(op, at);
    else
      maxima_along_x(op, at);
  });
}

/* ---- second pass ----------------------------------------------------------------------------------------------------------------- */

__device__ __forceinline__ float power_of_two(int e) { return __int_as_float((e + 127) << 23); }

/* An x's factor, 2^exponent, -113 <= exponent <= 163: in two steps, as the larger ones are no floats. */
struct slice_scale {
  float first, second;
  int exponent;
  bool is_finite;

  __device__ __forceinline__ explicit slice_scale(uint32_t most) {
    const int of_most =
        most >= 0x00800000 ? int(most >> 23) - 127 : -118 - __clz(int(most)); /* floor(log2), also of subnormals */
    is_finite = most < 0x7f800000;
    exponent = most == 0 || !is_finite ? 0 : 14 - of_most;
    first = power_of_two(min(exponent, 127)), second = power_of_two(max(exponent - 127, 0));
  }
  __device__ __forceinline__ float operator()(float x) const { return x * first * second; }
};

__device__ __forceinline__ void mark(const ws_slice_operand &op, int32_t *scale) {
  if ((atomicOr(scale, WS_SCALE_MARKED) & WS_SCALE_MARKED) == 0) atomicAdd(op.n_marked, 1);
}

/* By one thread for each x of an operand. */
__device__ __forceinline__ void tell_scale(const ws_slice_operand &op, int32_t *scale, const slice_scale &by) {
  atomicAdd(scale, WS_SCALE_BIAS - by.exponent); /* others may be marking it */
  if (!by.is_finite) mark(op, scale);
}

/* Slices of one element; whether they stand for it well enough. Both differences are exact. */
template <int SLICES>
__device__ __forceinline__ bool cut(float x, const slice_scale &by, float tolerance, __half (&slice)[SLICES]) {
  const float y = by(x);
  slice[0] = __float2half_rn(y);
  float rest = y - __half2float(slice[0]), allowed = tolerance * fabsf(y);
  if constexpr (SLICES == 2) {
    rest *= 2048, allowed *= 2048;
    slice[1] = __float2half_rn(rest);
    rest -= __half2float(slice[1]);
  }
  return fabsf(rest) <= allowed && (y != 0 || x == 0);
}

/* Eight neighbours of a line. */
template <int SLICES> struct slice_pieces {
  uint4 piece[SLICES];

  __device__ __forceinline__ void put(int i, const __half (&slice)[SLICES]) {
#pragma unroll
    for (int s = 0; s < SLICES; s++) {
      uint32_t *words = reinterpret_cast<uint32_t *>(&piece[s]);
      const uint32_t bits = __half_as_ushort(slice[s]);
      words[i / 2] = i % 2 == 0 ? bits : words[i / 2] | bits << 16;
    }
  }
  __device__ __forceinline__ void store(const ws_slice_operand &op, int64_t product, int64_t n_lines, int64_t line,
                                        int64_t first) const {
#pragma unroll
    for (int s = 0; s < SLICES; s++)
      *reinterpret_cast<uint4 *>(op.to + ((product * SLICES + s) * n_lines + line) * op.pitch + first) = piece[s];
  }
};

template <int SLICES>
__device__ __forceinline__ void slice_along_k(const ws_slice_args &args, const ws_slice_operand &op, const slice_part &at) {
  const int lane = int(threadIdx.x) % 32;
  const int64_t x = at.x + threadIdx.x / 32, first = int64_t(at.chunk) * op.chunk_k, end = ws_min(first + op.chunk_k, op.n_k);
  if (x >= op.n_x) return;
  const uint32_t of_chunk = lane < op.n_chunks ? op.maxima[(at.product * op.n_chunks + lane) * op.n_x + x] : 0;
  const slice_scale scale(__reduce_max_sync(~0u, of_chunk));
  int32_t *const told = op.scales + at.product * op.scales_pitch + x;
  if (at.chunk == 0 && lane == 0) tell_scale(op, told, scale);
  const float *line = op.from + at.product * op.stride + x * op.ld;
  bool all_fit = true;
#pragma unroll 2
  for (int64_t k = first + lane * 8; k < end; k += 256) {
    float eight[8];
    slice_pieces<SLICES> pieces;
    load_neighbours(line + k, end - k, op.vectors, eight);
#pragma unroll
    for (int i = 0; i < 8; i++) {
      __half slice[SLICES];
      all_fit &= cut(eight[i], scale, args.tolerance, slice);
      pieces.put(i, slice);
    }
    pieces.store(op, at.product, op.n_x, x, k);
  }
  if (!all_fit) mark(op, told);
}

template <int SLICES>
__device__ __forceinline__ void slice_along_x(const ws_slice_args &args, const ws_slice_operand &op, const slice_part &at) {
  __shared__ uint32_t most[2][WS_SLICE_X];
  const int t = int(threadIdx.x), half = t / WS_SLICE_X, own = t % WS_SLICE_X;
  uint32_t of_chunks = 0;
  for (int c = half; c < op.n_chunks; c += 2)
    if (at.x + own < op.n_x) of_chunks = max(of_chunks, op.maxima[(at.product * op.n_chunks + c) * op.n_x + at.x + own]);
  most[half][own] = of_chunks;
  __syncthreads();
  int32_t *const told = op.scales + at.product * op.scales_pitch + at.x;
  if (at.chunk == 0 && t < WS_SLICE_X && at.x + t < op.n_x) tell_scale(op, told + t, slice_scale(max(most[0][t], most[1][t])));
  constexpr int n_pieces = WS_SLICE_X / 8, n_rows = WS_SLICE_THREADS / n_pieces;
  const int x = t % n_pieces * 8;
  const int64_t n = op.n_x - at.x - x, end = ws_min((int64_t(at.chunk) + 1) * op.chunk_k, op.n_k);
  const float *first = op.from + at.product * op.stride + at.x + x;
  uint32_t unfit = 0;
  if (n > 0) {
    float by_first[8], by_second[8];
#pragma unroll
    for (int i = 0; i < 8; i++) {
      const slice_scale scale(max(most[0][x + i], most[1][x + i]));
      by_first[i] = scale.first, by_second[i] = scale.second;
    }
#pragma unroll 2
    for (int64_t k = int64_t(at.chunk) * op.chunk_k + t / n_pieces; k < end; k += n_rows) {
      float eight[8];
      slice_pieces<SLICES> pieces;
      load_neighbours(first + k * op.ld, n, op.vectors, eight);
#pragma unroll
      for (int i = 0; i < 8; i++) {
        __half slice[SLICES];
        slice_scale scale(0);
        scale.first = by_first[i], scale.second = by_second[i];
        if (!cut(eight[i], scale, args.tolerance, slice)) unfit |= 1u << i;
        pieces.put(i, slice);
      }
      pieces.store(op, at.product, op.n_k, k, at.x + x);
    }
  }
#pragma unroll 1
  for (int i = 0; unfit >> i != 0; i++)
    if (unfit >> i & 1) mark(op, told + x + i);
  __syncthreads();
}

template <int SLICES> __device__ __forceinline__ void cut_slices(const ws_slice_args &args) {
  for_each_slice_part(args, [&](const ws_slice_operand &op, const slice_part &at) {
    if (op.along_k)
      slice_along_k<SLICES>(args, op, at);
    else
      slice_along_x<SLICES>(args, op, at);
  });
}

} // namespace ws
#endif
