/* small_load.cuh - an item's matrices of one operand, from memory to a stage in shared memory: by cp.async
 * (16-bit elements that are not aligned to four bytes: by ordinary loads and stores), or where no line is
 * aligned and the batch is one stretch of memory, by one bulk copy.
 *
 * The block's threads take neighbouring pieces, so that what is contiguous in memory is asked for side by
 * side; each has the same pieces of all items, so that a copy is an instruction and few more. */
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

/* cp.async of all of its 16 bytes past L1; of 4 or 8. With a number of bytes that is no constant ptxas makes 10 more instructions. */
static __device__ __forceinline__ void cp_async_whole_16(uint32_t to, const void *from) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to), "l"(from) : "memory");
}
template <int BYTES> static __device__ __forceinline__ void cp_async_whole(uint32_t to, const void *from) {
  asm volatile("cp.async.ca.shared.global [%0], [%1], %2;" ::"r"(to), "l"(from), "n"(BYTES) : "memory");
}

/* cp.async.bulk: n_bytes, a multiple of 16 as both addresses; complete_tx on the barrier of this block. */
static __device__ __forceinline__ void cp_async_bulk(uint32_t to, const void *from, uint32_t n_bytes, uint32_t barrier) {
  asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(to), "l"(from),
               "r"(n_bytes), "r"(barrier)
               : "memory");
}

/* FILLS: with zeros up to n_pieces and n_filled. HAS_PLACES: the matrices lie at pointers of any alignment. */
template <bool FILLS, bool HAS_PLACES> class small_load {
  const ws_small_operand &op;
  const char *data;          /* the thread's first piece of the batch's first matrix */
  const void *const *places; /* HAS_PLACES, and then instead: of the matrices */
  int64_t offset;            /* from there to the thread's first piece */
  int to_first, line;        /* where it goes; its line */
  int matrix;                /* its matrix; beyond all, if the thread has none */
  bool exists;               /* its piece of lines; else there are zeros */

  template <int UNIT> static __device__ __forceinline__ void copy_piece(uint32_t to, const char *from) {
    if constexpr (UNIT == 16)
      cp_async_whole_16(to, from);
    else if constexpr (UNIT == 2)
      store_shared_16(to, ld_in_order(reinterpret_cast<const uint16_t *>(from)));
    else
      cp_async_whole<UNIT>(to, from);
  }
  /* The same from where a pointer leads. */
  template <int UNIT> static __device__ __forceinline__ void copy_unaligned(uint32_t to, const char *from) {
    if constexpr (UNIT > 2) {
      if (reinterpret_cast<uintptr_t>(from) % UNIT != 0) {
#pragma unroll 1
        for (int half = 0; half < 2; half++) copy_unaligned<UNIT / 2>(to + half * (UNIT / 2), from + half * (UNIT / 2));
        return;
      }
    }
    copy_piece<UNIT>(to, from);
  }
  template <int UNIT> static __device__ __forceinline__ void clear_piece(uint32_t to) {
    if constexpr (UNIT == 2) {
      store_shared_16(to, 0);
    } else {
#pragma unroll
      for (int i = 0; i < UNIT; i += 4) store_shared(to + i, 0);
    }
  }

  template <int UNIT> __device__ __forceinline__ void copy_by(uint32_t to, const char *from, int first, int n) const {
    const int64_t from_line = op.lines_apart * op.step_line, from_matrix = op.matrices_apart * op.step_matrix;
    const int to_line = op.lines_apart * op.pitch, to_matrix = op.matrices_apart * op.matrix;
#pragma unroll 1
    for (int g = matrix; g < n; g += op.matrices_apart, to += to_matrix, from += from_matrix) {
      uint32_t at = to;
      const char *source = from;
      if constexpr (HAS_PLACES) source = static_cast<const char *>(places[first + g]) + offset;
#pragma unroll 1
      for (int l = line; l < op.n_filled; l += op.lines_apart, at += to_line, source += from_line)
        if (!FILLS || (exists && l < op.n_lines)) {
          if constexpr (HAS_PLACES)
            copy_unaligned<UNIT>(at, source);
          else
            copy_piece<UNIT>(at, source);
        } else
          clear_piece<UNIT>(at);
    }
  }

  static __device__ __forceinline__ void copy_raw(uint32_t to, const char *from, int n_bytes, uint32_t barrier) {
    const int bulk = n_bytes & ~15;
    if (threadIdx.x != 0) return;
    if (bulk > 0) cp_async_bulk(to, from, uint32_t(bulk), barrier);
    if (bulk < n_bytes) cp_async_16(to + bulk, from + bulk, n_bytes - bulk);
  }

public:
  __device__ __forceinline__ small_load(const ws_operand &operand, const ws_small_operand &of_item)
      : op(of_item), data(static_cast<const char *>(operand.data)) {
    if (op.is_raw) return;
    const int piece = seat();
    if (matrix < op.matrices_apart) data += matrix * op.step_matrix, to_first += matrix * op.matrix;
    if (line < op.n_lines && exists) data += line * op.step_line + piece * op.unit;
  }
  __device__ __forceinline__ small_load(const void *const *matrices, const ws_small_operand &of_item)
      : op(of_item), data(nullptr), places(matrices), offset(0) {
    const int piece = seat();
    if (matrix < op.matrices_apart) to_first += matrix * op.matrix;
    if (line < op.n_lines && exists) offset = line * op.step_line + piece * op.unit;
  }

private:
  /* Which piece of which lines the thread has. */
  __device__ __forceinline__ int seat() {
    const int number = int(ws_divide(threadIdx.x, &op.by_pieces)), piece = int(threadIdx.x) - number * op.n_pieces;
    matrix = int(ws_divide(uint32_t(number), &op.by_lines)), line = number - matrix * op.lines_apart;
    if (matrix >= op.matrices_apart) matrix = 1 << 30;
    exists = piece * op.unit < op.line_bytes;
    to_first = piece * op.unit + line * op.pitch;
    return piece;
  }

public:
  /* Bytes before the first element of a raw item. */
  __device__ __forceinline__ int before(int first) const {
    return op.is_raw ? int((reinterpret_cast<uintptr_t>(data) + first * op.step_matrix) & 15) : 0;
  }

  /* What bulk copies bring of the batch's matrices from that number on, n of them. */
  __device__ __forceinline__ uint32_t bulk_bytes(int first, int n) const {
    return op.is_raw ? uint32_t(op.matrix * n + before(first)) & ~15u : 0;
  }

  __device__ __forceinline__ void copy(uint32_t to, int first, int n, uint32_t barrier) const {
    const char *const from = data + first * op.step_matrix;
    if (op.is_raw)
      copy_raw(to, from - before(first), op.matrix * n + before(first), barrier);
    else if (op.unit == 16)
      copy_by<16>(to + to_first, from, first, n);
    else if (op.unit == 8)
      copy_by<8>(to + to_first, from, first, n);
    else if (op.unit == 4)
      copy_by<4>(to + to_first, from, first, n);
    else
      copy_by<2>(to + to_first, from, first, n);
  }
};

} // namespace ws
#endif
