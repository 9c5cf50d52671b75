/* outer_config.cuh - the shape of a row of outer.def, as constants of the compiler; whose asserts say
 * what a row must obey. */
#ifndef WS_CUDA_OUTER_CONFIG_CUH
#define WS_CUDA_OUTER_CONFIG_CUH
#include "cuda/rows/config.cuh"
#include "cuda/rows/outer_rows.h"

namespace ws {

/* LANES: of a warp along m. A_K, B_K: k is contiguous in memory. */
template <class Type, int LANES, int TM, int TN, int WARPS, int STAGES, int BLOCKS, bool A_K, bool B_K> struct outer_config {
  using type = Type;
  using real = typename Type::real;
  using element = typename Type::element;
  using sum = typename Type::sum;
  static constexpr int unit = Type::unit, lanes = LANES, tm = TM, tn = TN, bm = WS_OUTER_BM(LANES, TM),
                       bn = WS_OUTER_BN(LANES, TN, WARPS), item_n = bn;
  static constexpr int bk = WS_OUTER_BK, n_stages = STAGES, n_threads = WS_OUTER_THREADS(WARPS);
  static constexpr bool a_k = A_K, b_k = B_K;
  static constexpr int a_line = WS_OUTER_LINE(unit, bm), b_line = WS_OUTER_LINE(unit, bn);
  /* Short products run code that is cold for the most part, so that they want less of it. */
  static constexpr bool is_large = bm * bn * unit >= 128 * 64;
  static constexpr int a_bytes = WS_OUTER_OPERAND_BYTES(unit, bm), stage_bytes = WS_OUTER_STAGE_BYTES(unit, bm, bn);
  static constexpr int shared_bytes = WS_OUTER_SHARED_BYTES(unit, bm, bn, STAGES);

  static_assert(STAGES >= 3, "one stage is multiplied, one has come, one comes");
  static_assert(LANES == 16 || LANES == 32, "stores fill sectors");
  static_assert(TN * unit % 4 == 0, "columns are read by 16 bytes");
  static_assert(bk % 2 == 0, "see outer_sums");
  static_assert(BLOCKS * (shared_bytes + 1024) <= 228 * 1024, "the blocks fit");
};

} // namespace ws
#endif
