/* align_copy.cuh - copies of 16-bit operands that do not begin at whole 16 bytes to where they do.
 * A warp has a line, a lane 16 bytes of the copy at a time: two aligned pieces of 16 bytes, put
 * together with a shift; at the ends of a line, where these may reach beyond it, single
 * elements. */
#ifndef WS_CUDA_ALIGN_COPY_CUH
#define WS_CUDA_ALIGN_COPY_CUH
#include "core/tile.h"
#include "cuda/sched/fixed.cuh"
#include "cuda/shared/align_copy_args.h"

namespace ws {

/* Bytes `shift` (even, below 16) to shift + 15 of the two. */
__device__ __forceinline__ uint4 shifted(const uint4 &low, const uint4 &high, uint32_t shift) {
  uint32_t x[8] = {low.x, low.y, low.z, low.w, high.x, high.y, high.z, high.w};
#pragma unroll
  for (int i = 0; i < 6; i++) x[i] = shift & 8 ? x[i + 2] : x[i];
#pragma unroll
  for (int i = 0; i < 5; i++) x[i] = shift & 4 ? x[i + 1] : x[i];
  const uint32_t bytes = shift & 2 ? 0x5432 : 0x3210;
  return {__byte_perm(x[0], x[1], bytes), __byte_perm(x[1], x[2], bytes), __byte_perm(x[2], x[3], bytes),
          __byte_perm(x[3], x[4], bytes)};
}

/* Elements from `first` on, zeros from `length` on. */
__device__ __forceinline__ uint4 single_elements(const uint16_t *line, int64_t first, int64_t length) {
  uint32_t x[8];
#pragma unroll
  for (int i = 0; i < 8; i++) x[i] = first + i < length ? line[first + i] : 0;
  return {x[0] | x[1] << 16, x[2] | x[3] << 16, x[4] | x[5] << 16, x[6] | x[7] << 16};
}

__device__ __forceinline__ void copy_line(const uint16_t *line, uint4 *to, int64_t length) {
  const uint32_t shift = uint32_t(reinterpret_cast<uintptr_t>(line) % 16);
  const uint4 *aligned = reinterpret_cast<const uint4 *>(reinterpret_cast<uintptr_t>(line) - shift);
  const int64_t n_pieces = ws_ceil_div(length, 8),
                inner = length / 8 - 1; /* pieces 1 .. inner - 1 need nothing from beyond the line */
#pragma unroll 4
  for (int64_t i = threadIdx.x % 32; i < n_pieces; i += 32)
    to[i] = i > 0 && i < inner ? shifted(aligned[i], aligned[i + 1], shift) : single_elements(line, i * 8, length);
}

__device__ __forceinline__ void align_copy(const ws_align_copy_operand &op) {
  const int64_t n_warps = int64_t(n_workers()) * (blockDim.x / 32), n_lines = op.n_lines * op.n_batch;
  for (int64_t l = int64_t(worker_idx()) * (blockDim.x / 32) + threadIdx.x / 32; l < n_lines; l += n_warps)
    copy_line(static_cast<const uint16_t *>(op.from) + l / op.n_lines * op.stride + l % op.n_lines * op.ld,
              reinterpret_cast<uint4 *>(static_cast<uint16_t *>(op.to) + l * op.pitch), op.length);
}

__device__ __forceinline__ void align_copies(const ws_align_copy_args &args) {
  for (const ws_align_copy_operand &op : args.operand) align_copy(op);
}

} // namespace ws
#endif
