/* config.cuh - element types and the shape of a kernel row, as constants of the compiler; whose asserts say what a row must obey. */
#ifndef WS_CUDA_CONFIG_CUH
#define WS_CUDA_CONFIG_CUH
#include <cstdint>

namespace ws {

/* Element types by their BLAS letter: a Unit of 2 means complex, (re, im). */
struct type_s {
  using real = float;
  using element = float;
  static constexpr int unit = 1;
};
struct type_d {
  using real = double;
  using element = double;
  static constexpr int unit = 1;
};
struct type_c {
  using real = float;
  using element = float2;
  static constexpr int unit = 2;
};
struct type_z {
  using real = double;
  using element = double2;
  static constexpr int unit = 2;
};

constexpr int copy_bytes = 16; /* of one wide copy */

/* A work item is BM rows of C times COARSE neighbouring tiles of BN columns, summed over k in blocks of BK. TM x TN of each tile
 * belong to one owner: a thread (simt) or a warp (mma). */
template <class Type, int BM, int BN, int BK, int TM, int TN, int COARSE, int STAGES, int OWNER_THREADS, int PAD>
struct row_config {
  using type = Type;
  using real = typename Type::real;
  using element = typename Type::element;
  static constexpr int unit = Type::unit;
  static constexpr int bm = BM, bn = BN, bk = BK, tm = TM, tn = TN, coarse = COARSE, n_stages = STAGES;
  static constexpr int item_n = BN * COARSE;
  static constexpr int n_threads = BM / TM * (BN / TN) * OWNER_THREADS;
  static constexpr int vec = copy_bytes / int(sizeof(element)); /* elements of one wide copy */
  /* A row of k in shared memory is PAD elements longer than its tile: see copy_tile.cuh and the mainloops. */
  static constexpr int a_pitch = BM + PAD, b_pitch = item_n + PAD;
  static constexpr int stage_elements = BK * (a_pitch + b_pitch);
  static constexpr int shared_bytes = STAGES * stage_elements * int(sizeof(element));

  static_assert(BM % TM == 0 && BN % TN == 0, "a tile is cut evenly among its owners");
  static_assert(BK % 8 == 0, "copies along k go by eight");
  static_assert(PAD * sizeof(element) % copy_bytes == 0, "every row of k begins where a wide copy may");
  static_assert(n_threads % 32 == 0 && n_threads <= 1024, "whole warps, at most a block");
  static_assert(STAGES >= 2, "one stage is filled while another is used");
  static_assert(shared_bytes <= 227 * 1024, "the shared memory of one block (cc 9.0)");
};

} // namespace ws
#endif
