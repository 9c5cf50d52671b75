/* outer_config.cuh - the shape of a row of outer.def, as constants of the compiler; whose asserts say
 * what a row must obey. */
#ifndef WS_CUDA_OUTER_CONFIG_CUH
#define WS_CUDA_OUTER_CONFIG_CUH
#include "cuda/rows/config.cuh"
#include "cuda/rows/outer_rows.h"

namespace ws {

/* A_K, B_K: k is contiguous, in memory and in shared memory. */
template <class Type, int TM, int TN, int WARPS, int STAGES, int BLOCKS, bool A_K, bool B_K> struct outer_config {
  using type = Type;
  using real = typename Type::real;
  using element = typename Type::element;
  using sum = typename Type::sum;
  static constexpr int unit = Type::unit, tm = TM, tn = TN, bm = WS_OUTER_BM(TM), bn = WS_OUTER_BN(TN, WARPS), item_n = bn;
  static constexpr int bk = WS_OUTER_BK, n_stages = STAGES, n_threads = WS_OUTER_THREADS(WARPS);
  static constexpr bool a_k = A_K, b_k = B_K;
  /* Floats of a line in shared memory, along k or along x. */
  static constexpr int a_line = unit * (A_K ? bk + 1 : bm), b_line = unit * (B_K ? bk : bn);
  static constexpr int a_bytes = WS_OUTER_A_BYTES(unit, bm), stage_bytes = WS_OUTER_STAGE_BYTES(unit, bm, bn);
  static constexpr int shared_bytes = WS_OUTER_SHARED_BYTES(unit, bm, bn, STAGES);

  static_assert(STAGES >= 3, "one stage is multiplied, one has come, one comes");
  static_assert(TN % 4 == 0, "columns are read by 16 bytes");
  static_assert(BLOCKS * (shared_bytes + 1024) <= 228 * 1024, "the blocks fit");
};

} // namespace ws
#endif
