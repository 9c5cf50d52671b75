/* flat_config.cuh - the shape of a row of flat.def, as constants of the compiler; whose asserts say
 * what a row must obey. */
#ifndef WS_CUDA_FLAT_CONFIG_CUH
#define WS_CUDA_FLAT_CONFIG_CUH
#include "cuda/rows/config.cuh"
#include "cuda/rows/flat_rows.h"

namespace ws {

/* An item is one tile of BM x BN of C. Each of K_GROUPS warps of the CLUSTER blocks that share it
 * sums a part of k of all of it, in blocks of STEPS steps of 64. */
template <class Type, int BM, int BN, int K_GROUPS, int STEPS, int CLUSTER> struct flat_config {
  using type = Type;
  using real = typename Type::real;
  using element = typename Type::element;
  using sum = typename Type::sum;
  static constexpr int unit = Type::unit;
  static constexpr int bm = BM, bn = BN, bk = WS_FLAT_BK(STEPS), step = WS_FLAT_STEP, n_steps = STEPS;
  static constexpr bool matrix_is_a = BM > BN;
  static constexpr int n_x = matrix_is_a ? BM : BN, n_y = matrix_is_a ? BN : BM; /* of the matrix, of the few */
  static constexpr int x_pieces = n_x / 32, y_pieces = n_y / 8;
  static constexpr int k_groups = K_GROUPS, cluster = CLUSTER, n_parts = K_GROUPS * CLUSTER;
  static constexpr int group_threads = 32, n_threads = WS_FLAT_THREADS(K_GROUPS);
  static constexpr int sum_pitch = BM + 8, group_bytes = BN * sum_pitch * 4;
  static constexpr int shared_bytes = WS_FLAT_SHARED_BYTES(BM, BN, K_GROUPS);

  static_assert(BM != BN && n_x % 32 == 0 && n_y % 8 == 0, "the longer side is the matrix's, and both are whole pieces");
  static_assert(CLUSTER <= 8 && BN % CLUSTER == 0, "any device of cc 9.0 has room for such a cluster, which shares columns");
  static_assert(group_bytes * K_GROUPS == shared_bytes, "of all groups");
};

} // namespace ws
#endif
