/* direct_config.cuh - the shape of a direct row, as constants of the compiler; whose asserts say
 * what a row must obey. */
#ifndef WS_CUDA_DIRECT_CONFIG_CUH
#define WS_CUDA_DIRECT_CONFIG_CUH
#include "cuda/rows/config.cuh"

namespace ws {

/* An item is one tile of BM x BN of C. A warp sums TM x TN of it; the warps that share a part of k
 * are a group, and there are K_GROUPS groups in each of the CLUSTER blocks that share the item. */
template <class Type, int BM, int BN, int TM, int TN, int K_GROUPS, int STAGES, int CLUSTER> struct direct_config {
  using type = Type;
  using real = typename Type::real;
  using element = typename Type::element;
  using sum = typename Type::sum;
  static constexpr int unit = Type::unit;
  static constexpr int bm = BM, bn = BN, bk = WS_DIRECT_BK, tm = TM, tn = TN, n_stages = STAGES;
  static constexpr int k_groups = K_GROUPS, cluster = CLUSTER, n_parts = K_GROUPS * CLUSTER;
  static constexpr int group_threads = WS_DIRECT_GROUP_THREADS(BM, BN, TM, TN), n_threads = group_threads * K_GROUPS;
  /* Rows in shared memory, of k or of m or n, are an odd number of 16 bytes long: the 8 rows of a
   * matrix of ldmatrix are in different banks. */
  static constexpr int pad = WS_PAD_direct, k_pitch = bk + pad;
  static constexpr int a_elements = WS_DIRECT_OPERAND_ELEMENTS(BM), b_elements = WS_DIRECT_OPERAND_ELEMENTS(BN);
  static constexpr int stage_bytes = (a_elements + b_elements) * int(sizeof(element)), group_bytes = STAGES * stage_bytes;
  static constexpr int shared_bytes = WS_DIRECT_SHARED_BYTES(BM, BN, K_GROUPS, STAGES);
  /* A column of sums in shared memory, in floats: 8 beyond a multiple of 16, so that the columns
   * that half a warp writes at a time are in different banks. */
  static constexpr int sum_pitch = BM + 8;

  static_assert(BM % TM == 0 && BN % TN == 0 && TM % 16 == 0 && TN % 16 == 0, "a warp's part is whole pieces of 16 x 16");
  static_assert(BM <= 64 && BN <= 64, "a row of pairs is at most a warp's width");
  static_assert(sum_pitch * BN * int(sizeof(float)) <= group_bytes, "a group's sums find room where its stages were");
  static_assert(K_GROUPS <= 15 && n_threads <= 512, "a named barrier for each group");
  static_assert(CLUSTER <= 8 && BM * BN % CLUSTER == 0, "any device of cc 9.0 has room for such a cluster");
  static_assert(STAGES >= 2, "one stage is filled while another is used");
  static_assert(shared_bytes <= 227 * 1024, "the shared memory of a block (cc 9.0)");
};

} // namespace ws
#endif
