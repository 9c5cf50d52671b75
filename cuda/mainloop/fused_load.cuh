/* fused_load.cuh - a block of k of an operand to shared memory, for gemm_fused.cuh: by TMA, or by 128
 * threads where lines do not begin at multiples of 16 bytes (cp.async of 16 bytes nevertheless). */
#ifndef WS_CUDA_FUSED_LOAD_CUH
#define WS_CUDA_FUSED_LOAD_CUH
#include "cuda/ptx/tma.cuh"
#include "cuda/rows/fused_config.cuh"
#include "cuda/shared/fused_args.h"

namespace ws {

template <bool X, int N_X>
__device__ __forceinline__ void fused_load_by_tma(uint32_t to, const ws_fused_operand &op, int x, int k, uint32_t full) {
  if constexpr (X) {
#pragma unroll
    for (int i = 0; i < N_X; i += 32) cp_async_bulk_tensor_load(to + i * 128, &op.map, x + i, k, 0, full);
  } else {
    cp_async_bulk_tensor_load(to, &op.map, k, x, 0, full);
  }
}

/* How far after a multiple of 16 bytes an operand's line begins, in floats: by the number of its x
 * or, where x is contiguous, k. What is loaded begins there too, as tiles begin at multiples of 4. */
__device__ __forceinline__ int fused_shift(const ws_fused_operand &op, int line) {
  return int((reinterpret_cast<uintptr_t>(op.from) >> 2) + uint32_t(line) * uint32_t(op.ld)) & 3;
}

template <class Config, bool X, int N_X>
__device__ __forceinline__ void fused_load_by_threads(uint32_t to, const ws_fused_operand &op, int x, int k, int n_k) {
  constexpr int n_lines = Config::lines_of(X, N_X), n_chunks = Config::chunks_of(X, N_X);
  constexpr uint32_t pitch = Config::pitch_of(X, N_X);
  const int t = int(threadIdx.x), first = X ? x : k, end = X ? op.n_x : n_k;
  const int line_first = X ? k : x, line_end = X ? n_k : op.n_x;
  /* bytes of a line's chunk, and where they are: the same for lines that are a multiple of 4 apart */
  const auto chunk_at = [&](int line, int chunk, int &n_bytes) {
    const float *const at = op.from + (line_first + line) * op.ld + first;
    const int shifted = int(reinterpret_cast<uintptr_t>(at) >> 2) & 3, n = 4 * (end - first + shifted - 4 * chunk);
    n_bytes = line_first + line < line_end ? n < 0 ? 0 : n < 16 ? n : 16 : 0;
    return n_bytes > 0 ? reinterpret_cast<uintptr_t>(at) - 4 * shifted + 16 * chunk
                       : reinterpret_cast<uintptr_t>(op.from) & ~uintptr_t(15);
  };
  constexpr int step = 128 / n_chunks;
  const int line = t / n_chunks, chunk = t % n_chunks;
  const uint32_t place = to + line * pitch + chunk * 16;
  int n_bytes;
  uintptr_t from = chunk_at(line, chunk, n_bytes);
  if (line_first + n_lines <= line_end) {
    const int64_t next = n_bytes > 0 ? step * op.ld * 4 : 0;
#pragma unroll
    for (int i = 0; i < n_lines / step; i++, from += next)
      cp_async_16(place + i * step * pitch, reinterpret_cast<const void *>(from), n_bytes);
  } else {
#pragma unroll 1
    for (int i = 0; i < n_lines / step; i++) {
      from = chunk_at(line + i * step, chunk, n_bytes);
      cp_async_16(place + i * step * pitch, reinterpret_cast<const void *>(from), n_bytes);
    }
  }
  if (t < n_lines) {
    from = chunk_at(t, n_chunks, n_bytes);
    cp_async_16(to + t * pitch + n_chunks * 16, reinterpret_cast<const void *>(from), n_bytes);
  }
}

} // namespace ws
#endif
