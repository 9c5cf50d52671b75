/* ffma_config.cuh - the shape of a row of ffma.def, as constants of the compiler; whose asserts say
 * what a row must obey. */
#ifndef WS_CUDA_FFMA_CONFIG_CUH
#define WS_CUDA_FFMA_CONFIG_CUH
#include "cuda/rows/config.cuh"
#include "cuda/rows/ffma_rows.h"

namespace ws {

/* A_K, B_K: k is contiguous, in memory and in shared memory. */
template <class Type, int BM, int BN, int WM, int WN, int K_GROUPS, int STAGES, int BLOCKS, bool A_K, bool B_K>
struct ffma_config {
  using type = Type;
  using real = typename Type::real;
  using element = typename Type::element;
  using sum = typename Type::sum;
  static constexpr int unit = Type::unit;
  static constexpr int bm = BM, bn = BN, wm = WM, wn = WN, item_n = BN, bk = WS_FFMA_BK, n_stages = STAGES, k_groups = K_GROUPS;
  static constexpr bool a_k = A_K, b_k = B_K, is_swapped = false;
  static constexpr int group_warps = BM / WM * (BN / WN), n_warps = group_warps * K_GROUPS, n_consuming = n_warps * 32;
  static constexpr int n_threads = n_consuming + WS_DMMA_PRODUCERS;
  static constexpr int line_bytes = WS_DMMA_LINE_BYTES, operand_a_bytes = BM * line_bytes, group_bytes = (BM + BN) * line_bytes;
  static constexpr int stage_bytes = group_bytes * K_GROUPS, body_bytes = WS_FFMA_BODY_BYTES(BM, BN, K_GROUPS, STAGES);
  static constexpr int shared_bytes = WS_FFMA_SHARED_BYTES(BM, BN, K_GROUPS, STAGES), sum_pitch = WS_FFMA_SUM_PITCH(BM),
                       sum_pitch_bytes = sum_pitch * 4;
  /* Registers of a thread: all have the same at first, then those that multiply take what the
   * others leave. */
  static constexpr int first_registers = 65536 / (n_threads * BLOCKS) / 8 * 8, producer_registers = 40;
  static constexpr int left_registers =
      (first_registers * n_threads - producer_registers * WS_DMMA_PRODUCERS) / n_consuming / 8 * 8;
  static constexpr int consumer_registers = left_registers < 240 ? left_registers : 240;

  static_assert(BM % WM == 0 && BN % WN == 0 && WM % 16 == 0 && WN % 16 == 0 && WM * WN >= 1024, "whole vectors for each lane");
  static_assert(n_warps % 4 == 0, "whole warpgroups, which registers are given to");
  static_assert(n_threads == WS_DMMA_THREADS(BM, BN, WM, WN, K_GROUPS), "as the host launches it");
  static_assert(STAGES >= 2 && STAGES * 16 <= WS_DMMA_BARRIER_BYTES, "one stage is filled while another is used");
  static_assert(BLOCKS * (shared_bytes + 1024 + 64) <= 228 * 1024, "the blocks fit");
};

} // namespace ws
#endif
