/* small_load.cuh - an item's matrices of one operand, from memory to a stage in shared memory: by bulk
 * copies where lines are whole multiples of 16 bytes, or the batch is read as one line; else by cp.async
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

/* cp.async.bulk: n_bytes, a multiple of 16 as both addresses; complete_tx on the barrier of this block. */
static __device__ __forceinline__ void cp_async_bulk(uint32_t to, const void *from, uint32_t n_bytes, uint32_t barrier) {
  asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(to), "l"(from),
               "r"(n_bytes), "r"(barrier)
               : "memory");
}

class small_load {
  const char *data;
  const ws_small_operand &op;
  uint32_t first; /* of this thread's pieces: piece of a line, line of a matrix, matrix; 12 bits, 10, 10 */

  /* What of a piece exists, at its end zeros; UNIT 0: a bulk copy, of all of it. */
  template <int UNIT>
  __device__ __forceinline__ void copy_piece(uint32_t to, const char *from, int line, int n_left, uint32_t barrier) const {
    if constexpr (UNIT == 0) {
      cp_async_bulk(to, from, uint32_t(op.unit), barrier);
    } else {
      const int n_bytes = line < op.n_lines ? max(0, min(UNIT, n_left)) : 0;
      const char *const source = n_bytes > 0 ? from : data;
      if constexpr (UNIT == 16)
        cp_async_16(to, source, n_bytes);
      else if constexpr (UNIT == 2)
        store_shared_16(to, n_bytes > 0 ? ld_in_order(reinterpret_cast<const uint16_t *>(source)) : 0);
      else
        cp_async<UNIT>(to, source, n_bytes);
    }
  }

  template <int UNIT> __device__ __forceinline__ void copy_by(uint32_t to, const char *from, int n_matrices, uint32_t barrier) const {
    int piece = int(first & 4095), line = int(first >> 12 & 1023), matrix = int(first >> 22);
    const int unit = UNIT == 0 ? op.unit : UNIT;
    from += matrix * op.step_matrix + line * op.step_line + piece * unit;
    to += uint32_t(matrix * op.matrix + line * op.pitch + piece * unit);
    const int64_t from_next = op.next_matrix * op.step_matrix + op.next_line * op.step_line + op.next_piece * unit,
                  from_line = op.step_line - op.n_pieces * unit, from_matrix = op.step_matrix - op.n_filled * op.step_line;
    const int to_next = op.next_matrix * op.matrix + op.next_line * op.pitch + op.next_piece * unit,
              to_line = op.pitch - op.n_pieces * unit, to_matrix = op.matrix - op.n_filled * op.pitch;
#pragma unroll 1
    while (matrix < n_matrices) {
      copy_piece<UNIT>(to, from, line, op.line_bytes - piece * unit, barrier);
      piece += op.next_piece, line += op.next_line, matrix += op.next_matrix, from += from_next, to += to_next;
      if (piece >= op.n_pieces) piece -= op.n_pieces, line++, from += from_line, to += to_line;
      if (line >= op.n_filled) line -= op.n_filled, matrix++, from += from_matrix, to += to_matrix;
    }
  }

  __device__ __forceinline__ void copy_raw(uint32_t to, const char *from, int n_bytes, uint32_t barrier) const {
    const int bulk = n_bytes & ~15;
    if (threadIdx.x != 0) return;
    if (bulk > 0) cp_async_bulk(to, from, uint32_t(bulk), barrier);
    if (bulk < n_bytes) cp_async_16(to + bulk, from + bulk, n_bytes - bulk);
  }

public:
  __device__ __forceinline__ small_load(const ws_operand &operand, const ws_small_operand &of_item)
      : data(static_cast<const char *>(operand.data)), op(of_item) {
    const unsigned n_pieces = unsigned(op.n_pieces), n_lines = unsigned(op.n_filled), line = threadIdx.x / n_pieces;
    first = threadIdx.x % n_pieces | line % n_lines << 12 | line / n_lines << 22;
  }

  /* Bytes before the first element of a raw item. */
  __device__ __forceinline__ int before(int matrix) const {
    return op.copy == WS_SMALL_RAW ? int((reinterpret_cast<uintptr_t>(data) + matrix * op.step_matrix) & 15) : 0;
  }

  /* What bulk copies bring of the batch's matrices from that number on, n of them. */
  __device__ __forceinline__ uint32_t bulk_bytes(int matrix, int n) const {
    return op.copy == WS_SMALL_RAW    ? uint32_t(op.line_bytes * n + before(matrix)) & ~15u
           : op.copy == WS_SMALL_BULK ? uint32_t(n * op.n_filled * op.unit)
                                      : 0;
  }

  __device__ __forceinline__ void copy(uint32_t to, int matrix, int n, uint32_t barrier) const {
    const char *const from = data + matrix * op.step_matrix;
    if (op.copy == WS_SMALL_RAW)
      copy_raw(to, from - before(matrix), op.line_bytes * n + before(matrix), barrier);
    else if (op.copy == WS_SMALL_BULK)
      copy_by<0>(to, from, n, barrier);
    else if (op.unit == 16)
      copy_by<16>(to, from, n, barrier);
    else if (op.unit == 8)
      copy_by<8>(to, from, n, barrier);
    else if (op.unit == 4)
      copy_by<4>(to, from, n, barrier);
    else
      copy_by<2>(to, from, n, barrier);
  }
};

} // namespace ws
#endif
