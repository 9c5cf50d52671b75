/* config.cuh - the shape of a kernel row, as constants of the compiler; whose asserts say what a
 * row must obey. */
#ifndef WS_CUDA_CONFIG_CUH
#define WS_CUDA_CONFIG_CUH
#include <cstdint>
#include <type_traits>

#include "cuda/rows/rows.h"
#include "cuda/shared/element_types.cuh"

namespace ws {

constexpr int copy_bytes = 16; /* of one wide copy */

/* A work item is BM rows of C times COARSE neighbouring tiles of BN columns, summed over k in
 * blocks of BK. TM x TN of each tile belong to one owner: a thread (simt, fma16) or a warp (mma,
 * mma16). */
template <class Type, int BM, int BN, int BK, int TM, int TN, int COARSE, int STAGES, int OWNER_THREADS, int PAD, bool KEEPS_K>
struct row_config {
  using type = Type;
  using real = typename Type::real;
  using element = typename Type::element;
  using sum = typename Type::sum;
  static constexpr int unit = Type::unit;
  static constexpr int bm = BM, bn = BN, bk = BK, tm = TM, tn = TN, coarse = COARSE, n_stages = STAGES;
  static constexpr int item_n = BN * COARSE;
  static constexpr int n_threads = BM / TM * (BN / TN) * OWNER_THREADS;
  /* Shared memory holds whole elements, or (mma) the real parts of a block and its imaginary parts
   * apart from each other. */
  static constexpr int pad = PAD;
  static constexpr bool keeps_k = KEEPS_K, splits = KEEPS_K && unit == 2;
  using word = std::conditional_t<splits, real, element>;
  static constexpr int n_planes = splits ? unit : 1;
  /* elements of one wide copy */
  static constexpr int vec = splits ? 1 : copy_bytes / int(sizeof(element));
  /* By rows of k a row in shared memory is (at most) PAD words longer than its tile, by rows of m
   * or n PAD words longer than its k block: see copy_tile.cuh and the mainloops. */
  static constexpr int a_pitch = BM + PAD, b_pitch = item_n + PAD, k_pitch = BK + PAD;
  static constexpr int a_plane = WS_OPERAND_WORDS(KEEPS_K, BM, BK, PAD), b_plane = WS_OPERAND_WORDS(KEEPS_K, item_n, BK, PAD);
  static constexpr int a_words = n_planes * a_plane, stage_words = a_words + n_planes * b_plane;
  static constexpr int shared_bytes = STAGES * stage_words * int(sizeof(word));

  static_assert(BM % TM == 0 && BN % TN == 0, "a tile is cut evenly among its owners");
  static_assert(BK % 8 == 0, "copies along k go by eight");
  static_assert(PAD * sizeof(word) % copy_bytes == 0, "every row of k begins where a wide copy may");
  static_assert(!KEEPS_K || k_pitch * sizeof(word) % copy_bytes == 0, "so does every row of m or n");
  static_assert(n_threads % 32 == 0 && n_threads <= 1024, "whole warps, at most a block");
  static_assert(STAGES >= 2, "one stage is filled while another is used");
  static_assert(shared_bytes <= 99 * 1024, "the shared memory of one block (cc 12.0; more elsewhere)");
};

} // namespace ws
#endif
