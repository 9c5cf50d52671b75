/* dmma_structured.cuh - k blocks of an operand of which one triangle is stored (structure.h), for
 * dmma_load.cuh's places in shared memory. Elements that are not stored are read where their mirror
 * images lie; what is zero, or a one of a diagonal, is not read.
 *
 * A block on one side of the diagonal is copied as any other, along the other direction of memory if
 * it is mirrored; where the diagonal crosses the block, element by element. Symmetric and Hermitian
 * operands of complex numbers are written out before (level3.c). */
#ifndef WS_CUDA_DMMA_STRUCTURED_CUH
#define WS_CUDA_DMMA_STRUCTURED_CUH
#include "cuda/mainloop/dmma_load.cuh"
#include "cuda/shared/copied_args.h"
#include "cuda/shared/structure.h"

namespace ws {

/* To be copied where a diagonal has ones that are not stored. */
static __device__ const double one_and_zero[2] = {1, 0};

/* Place: the item, with batch, m, n. */
template <class Config, class Place, bool OF_A> struct dmma_structured {
  static constexpr bool is_p = OF_A != Config::is_swapped, K = is_p ? Config::p_k : Config::q_k,
                        KEEPS = is_p ? Config::keeps_p_k : Config::q_k;
  static constexpr int X = OF_A ? Config::bm : Config::bn;
  using as_stored = dmma_operand<Config, X, K, KEEPS, true>;
  using as_mirrored = dmma_operand<Config, X, !K, KEEPS, true>;
  static constexpr int unit = Config::unit, bk = Config::bk;
  /* Whether it may be symmetric: not transposed, and real. */
  static constexpr bool may_be_mirrored = Config::ops == dmma_ops::nn && unit == 1;
  static_assert(X * bk % WS_DMMA_PRODUCERS == 0, "elements for all threads");

  const ws_copied_args &given;
  const Place &at;

  __device__ __forceinline__ const ws_operand &op() const { return OF_A ? given.gemm.a : given.gemm.b; }
  __device__ __forceinline__ int x_first() const { return OF_A ? at.m : at.n; }
  /* Of what is stored: x >= k; else x <= k. */
  __device__ __forceinline__ bool x_is_larger() const { return (given.stored == WS_LOWER) == OF_A; }

  __device__ __forceinline__ bool is_stored(int x, int k) const { return x == k || (x > k) == x_is_larger(); }
  __device__ __forceinline__ bool is_there(int x, int k) const {
    return max(x, k) < int(given.gemm.k) && (given.structure < WS_TRIANGULAR || is_stored(x, k));
  }
  /* Of element (x, k), or its mirror image. */
  __device__ __forceinline__ const double *address_of(int x, int k) const {
    const bool as_it_is = is_stored(x, k);
    const int of_mn = as_it_is ? x : k, of_k = as_it_is ? k : x;
    const int64_t line = K ? of_mn * op().step_mn : of_k * op().step_k;
    return static_cast<const double *>(op().data) + unit * (at.batch * op().stride + line + (K ? of_k : of_mn));
  }

  /* An element of a thread, when so many are left; neighbours in memory are those of neighbouring threads. */
  static constexpr int n_elements = X * bk;
  static __device__ __forceinline__ int element_idx(int left) { return n_elements - left + as_stored::thread(); }

  __device__ __forceinline__ void copy_elements(uint32_t to, int k_first) const {
#pragma unroll 1
    for (int left = n_elements; left > 0; left -= WS_DMMA_PRODUCERS) {
      const int i = element_idx(left), x = K ? i / bk : i % X, k = K ? i % bk : i / X, of_x = x_first() + x, of_k = k_first + k;
      const bool is_one = given.structure == WS_UNIT_TRIANGULAR && of_x == of_k;
      const double *const from = is_one ? one_and_zero : address_of(of_x, of_k);
      const int n_bytes = is_there(of_x, of_k) ? 8 : 0;
#pragma unroll
      for (int u = 0; u < unit; u++) cp_async<8>(to + as_stored::place(x, k, u), from + u, n_bytes);
    }
  }

  /* Of x - k in a block. */
  __device__ __forceinline__ int least(int k_first) const { return x_first() - (k_first + bk - 1); }
  __device__ __forceinline__ int most(int k_first) const { return x_first() + X - 1 - k_first; }
  __device__ __forceinline__ bool all_stored(int k_first) const { return x_is_larger() ? least(k_first) > 0 : most(k_first) < 0; }
  __device__ __forceinline__ bool none_stored(int k_first) const {
    return x_is_larger() ? most(k_first) < 0 : least(k_first) > 0;
  }

  /* The block of k from k_first on, of which n_k exist. */
  __device__ __forceinline__ void copy(uint32_t to, int k_first, int n_k) const {
    const bool is_zero = none_stored(k_first) && given.structure >= WS_TRIANGULAR;
    if (all_stored(k_first) || is_zero)
      as_stored(op(), at.batch, x_first(), given.gemm.k, k_first).copy(to, is_zero ? 0 : n_k);
    else if (may_be_mirrored && none_stored(k_first))
      as_mirrored(op(), at.batch, x_first(), given.gemm.k, k_first, true).copy(to, n_k);
    else
      copy_elements(to, k_first);
  }
};

} // namespace ws
#endif
