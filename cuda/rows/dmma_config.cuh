/* dmma_config.cuh - the shape of a row of dmma.def, as constants of the compiler; whose asserts say
 * what a row must obey. */
#ifndef WS_CUDA_DMMA_CONFIG_CUH
#define WS_CUDA_DMMA_CONFIG_CUH
#include "cuda/rows/config.cuh"
#include "cuda/rows/dmma_rows.h"

namespace ws {

/* The roles of the operands in a matrix instruction: P has its rows, Q its columns. P is A, and Q
 * is B; with both transposed P is B, as then P has its own direction contiguous, and Q has k. */
enum class dmma_ops { nn, nt, tn, tt };

template <class Type, int BM, int BN, int WP, int WQ, int K_GROUPS, int STAGES, int BLOCKS, dmma_ops OPS> struct dmma_config {
  using type = Type;
  using real = typename Type::real;
  using element = typename Type::element;
  using sum = typename Type::sum;
  static constexpr int unit = Type::unit;
  static constexpr int bm = BM, bn = BN, item_n = BN, bk = WS_DMMA_BK(unit), n_stages = STAGES, k_groups = K_GROUPS;
  static constexpr dmma_ops ops = OPS;
  static constexpr bool is_swapped = OPS == dmma_ops::tt;
  static constexpr int bp = is_swapped ? BN : BM, bq = is_swapped ? BM : BN;
  /* Of a warp; see dmma.def. */
  static constexpr bool fits = bp % WP == 0 && bq % WQ == 0;
  static constexpr int wp = fits ? WP : WQ, wq = fits ? WQ : WP;
  static constexpr int group_warps = bp / wp * (bq / wq), n_warps = group_warps * K_GROUPS, n_consuming = n_warps * 32;
  static constexpr int n_threads = n_consuming + WS_DMMA_PRODUCERS;
  /* Whether k is contiguous in memory, and in shared memory: doubles of a k-contiguous P are copied
   * one by one, to where pairs along p stand side by side, as the instruction wants them. */
  static constexpr bool p_k = OPS == dmma_ops::tn, q_k = OPS != dmma_ops::nt, keeps_p_k = p_k && unit == 2;
  static constexpr int line_bytes = WS_DMMA_LINE_BYTES, operand_p_bytes = bp * line_bytes, group_bytes = (bp + bq) * line_bytes;
  static constexpr int stage_bytes = group_bytes * K_GROUPS, body_bytes = WS_DMMA_BODY_BYTES(unit, BM, BN, K_GROUPS, STAGES);
  static constexpr int shared_bytes = WS_DMMA_SHARED_BYTES(unit, BM, BN, K_GROUPS, STAGES);
  static constexpr int sum_pitch = WS_DMMA_SUM_PITCH(unit, BM), sum_pitch_bytes = sum_pitch * 8 * unit;
  /* Registers of a thread: all have the same at first, then those that multiply take what the
   * others leave. */
  static constexpr int first_registers = 65536 / (n_threads * BLOCKS) / 8 * 8, producer_registers = 40;
  static constexpr int left_registers =
      (first_registers * n_threads - producer_registers * WS_DMMA_PRODUCERS) / n_consuming / 8 * 8;
  static constexpr int consumer_registers = left_registers < 240 ? left_registers : 240;

  static_assert(bp % wp == 0 && bq % wq == 0 && wp % 16 == 0 && wq % 16 == 0, "a warp's part is whole pieces, Q's in pairs");
  static_assert(n_warps % 4 == 0, "whole warpgroups, which registers are given to");
  static_assert(n_threads == WS_DMMA_THREADS(BM, BN, WP, WQ, K_GROUPS), "however the warps lie");
  static_assert(STAGES >= 2 && STAGES * 16 <= WS_DMMA_BARRIER_BYTES, "one stage is filled while another is used");
  static_assert(BLOCKS * (shared_bytes + 1024 + 64) <= 228 * 1024, "the blocks fit");
};

} // namespace ws
#endif
