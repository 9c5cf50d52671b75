/* small_config.cuh - the shape of a row of small.def, as constants of the compiler; whose asserts say what
 * a row must obey. */
#ifndef WS_CUDA_SMALL_CONFIG_CUH
#define WS_CUDA_SMALL_CONFIG_CUH
#include "cuda/rows/config.cuh"

namespace ws {

/* TM x TN of C belong to a thread, or a warp. A_K, B_K: the operand is contiguous along k. */
template <class Type, int TM, int TN, bool A_K, bool B_K> struct small_config {
  using type = Type;
  using real = typename Type::real;
  using element = typename Type::element;
  using sum = typename Type::sum;
  static constexpr int unit = Type::unit, tm = TM, tn = TN;
  static constexpr bool a_k = A_K, b_k = B_K;
  /* elements of 16 bytes of C, which are read of an operand at a time */
  static constexpr int vec = copy_bytes / int(sizeof(sum));
  static constexpr int k_step = A_K || B_K ? vec : vec < 2 ? vec : 2;

  static_assert(TM % vec == 0 && TN % vec == 0, "whole vectors along m and along n, of threads' tiles; more than that of warps'");
};

} // namespace ws
#endif
