/* small_load.cuh - an item's matrices of one operand, from memory to a stage in shared memory, by cp.async
 * (16-bit elements that are not aligned to four bytes: by ordinary loads and stores).
 *
 * The block's threads take neighbouring pieces of `unit` bytes, so that what is contiguous in memory is
 * asked for side by side: lines of a matrix, matrices of the batch. */
#ifndef WS_CUDA_SMALL_LOAD_CUH
#define WS_CUDA_SMALL_LOAD_CUH
#include "cuda/ptx/copy.cuh"
#include "cuda/ptx/load.cuh"
#include "cuda/shared/small_args.h"

namespace ws {

/* st.shared: two bytes, for what cp.async cannot bring */
static __device__ __forceinline__ void store_shared_16(uint32_t to, uint32_t bits) {
  asm volatile("st.shared.b16 [%0], %1;" ::"r"(to), "h"(uint16_t(bits)) : "memory");
}

class small_load {
  const void *data;
  const ws_small_operand &op;
  uint32_t first; /* of this thread's pieces: piece of a line, line of a matrix, matrix; 12 bits, 10, 10 */

  template <int UNIT> static __device__ __forceinline__ void copy_piece(uint32_t to, const char *from, int n_bytes) {
    if constexpr (UNIT == 16)
      cp_async_16(to, from, n_bytes);
    else if constexpr (UNIT == 2)
      store_shared_16(to, n_bytes > 0 ? ld_in_order(reinterpret_cast<const uint16_t *>(from)) : 0);
    else
      cp_async<UNIT>(to, from, n_bytes);
  }

  template <int UNIT> __device__ __forceinline__ void copy_by(uint32_t to, const char *from, int n_matrices, int line_bytes) const {
    int piece = int(first & 4095), line = int(first >> 12 & 1023), matrix = int(first >> 22);
#pragma unroll 1
    while (matrix < n_matrices) {
      const int left = line < op.n_lines ? max(0, min(UNIT, line_bytes - piece * UNIT)) : 0;
      const char *const source = from + (matrix * op.step_matrix + line * op.step_line + piece * UNIT);
      copy_piece<UNIT>(to + uint32_t(matrix * op.matrix + line * op.pitch + piece * UNIT), left > 0 ? source : from, left);
      piece += op.next_piece, line += op.next_line, matrix += op.next_matrix;
      if (piece >= op.n_pieces) piece -= op.n_pieces, line++;
      if (line >= op.n_filled) line -= op.n_filled, matrix++;
    }
  }

public:
  __device__ __forceinline__ small_load(const ws_operand &operand, const ws_small_operand &of_item)
      : data(operand.data), op(of_item) {
    const unsigned n_pieces = unsigned(op.n_pieces), n_lines = unsigned(op.n_filled), line = threadIdx.x / n_pieces;
    first = threadIdx.x % n_pieces | line % n_lines << 12 | line / n_lines << 22;
  }

  /* The first matrix of an item. */
  __device__ __forceinline__ const char *at(int64_t matrix) const {
    return static_cast<const char *>(data) + matrix * op.step_matrix;
  }

  /* Bytes before the first element of a raw item, which begins at a multiple of 16. */
  __device__ __forceinline__ int before(int64_t matrix) const {
    return op.is_raw ? int(reinterpret_cast<uintptr_t>(at(matrix)) & 15) : 0;
  }

  /* Of the batch's matrices from that number on, n of them. */
  __device__ __forceinline__ void copy(uint32_t to, int64_t matrix, int n) const {
    const char *const from = at(matrix);
    if (op.is_raw)
      copy_by<16>(to, from - before(matrix), 1, op.line_bytes * n + before(matrix));
    else if (op.unit == 16)
      copy_by<16>(to, from, n, op.line_bytes);
    else if (op.unit == 8)
      copy_by<8>(to, from, n, op.line_bytes);
    else if (op.unit == 4)
      copy_by<4>(to, from, n, op.line_bytes);
    else
      copy_by<2>(to, from, n, op.line_bytes);
  }
};

} // namespace ws
#endif
