/* tf32_config.cuh - the shape of a row of tf32.def, as constants of the compiler; whose asserts say
 * what a row must obey. */
#ifndef WS_CUDA_TF32_CONFIG_CUH
#define WS_CUDA_TF32_CONFIG_CUH
#include "cuda/rows/config.cuh"
#include "cuda/rows/tf32_rows.h"

namespace ws {

/* A_K, B_K: the operand is contiguous along k. SLICES: of an element, 1 or 2. */
template <class Type, int SLICES, int BM, int BN, int WM, int WN, int K_GROUPS, int STAGES, int BLOCKS, bool A_K, bool B_K>
struct tf32_config {
  using type = Type;
  using real = typename Type::real;
  using element = typename Type::element;
  using sum = typename Type::sum;
  static constexpr int unit = Type::unit;
  static constexpr int n_slices = SLICES, bm = BM, bn = BN, item_n = BN, bk = WS_TF32_BK(unit), wm = WM, wn = WN,
                       n_stages = STAGES, k_groups = K_GROUPS;
  static constexpr bool a_k = A_K, b_k = B_K;
  static constexpr int warps_m = BM / WM, group_warps = warps_m * (BN / WN), n_warps = group_warps * K_GROUPS,
                       n_consuming = n_warps * 32, n_threads = n_consuming + WS_TF32_PRODUCERS;
  static constexpr int a_bytes = WS_TF32_OPERAND_BYTES(unit, BM), group_bytes = WS_TF32_STAGE_BYTES(unit, BM, BN, 1);
  static constexpr int stage_bytes = group_bytes * K_GROUPS, body_bytes = WS_TF32_BODY_BYTES(unit, BM, BN, K_GROUPS, STAGES);
  static constexpr int shared_bytes = WS_TF32_SHARED_BYTES(unit, BM, BN, K_GROUPS, STAGES);
  static constexpr bool by_map = false, is_across = false;
  /* none: by mma.sync */
  static constexpr int n_producers = WS_TF32_PRODUCERS, n_splitters = 0, n_places = 0, slices_of_group = 0, place_bytes = 0,
                       slices_bytes = 0;
  static constexpr int sum_pitch = WS_TF32_SUM_PITCH(unit, BM), sum_pitch_bytes = sum_pitch * 4;
  /* Registers of a thread: all have the same at first, then those that multiply take what the
   * others leave. */
  static constexpr int first_registers = 65536 / (n_threads * BLOCKS) / 8 * 8, producer_registers = 56;
  static constexpr int left_registers =
      (first_registers * n_threads - producer_registers * WS_TF32_PRODUCERS) / n_consuming / 8 * 8;
  static constexpr int consumer_registers = left_registers < 240 ? left_registers : 240;

  static_assert(BM % WM == 0 && BN % WN == 0 && WM % 16 == 0 && WN % 8 == 0, "a warp's part is whole pieces");
  static_assert(BM <= 128 && BN <= 128, "a line for each producer");
  static_assert(n_warps % 4 == 0, "whole warpgroups, which registers are given to");
  static_assert(STAGES >= 2 && STAGES * 16 <= WS_TF32_BARRIER_BYTES, "one stage is filled while another is used");
  static_assert(BLOCKS * (shared_bytes + 1024 + 64) <= 228 * 1024, "the blocks fit");
};

/* The same of a row by wgmma: a warp sums 16 x bn, A comes from registers, B as slices in PLACES. */
template <class Type, int SLICES, int BM, int BN, int K_GROUPS, int STAGES, int PLACES, int BLOCKS, bool A_K, bool B_K>
struct tf32w_config {
  using type = Type;
  using real = typename Type::real;
  using element = typename Type::element;
  using sum = typename Type::sum;
  static constexpr int unit = Type::unit;
  static constexpr int n_slices = SLICES, bm = BM, bn = BN, item_n = BN, bk = WS_TF32_BK(unit), wm = 16, wn = BN,
                       n_stages = STAGES, k_groups = K_GROUPS, n_places = PLACES;
  static constexpr bool a_k = A_K, b_k = B_K, by_map = false, is_across = false;
  static constexpr int warps_m = BM / wm, group_warps = warps_m, n_warps = group_warps * K_GROUPS, n_consuming = n_warps * 32,
                       n_producers = WS_TF32_PRODUCERS, n_splitters = WS_TF32_SPLITTERS,
                       n_threads = WS_TF32W_THREADS(BM, K_GROUPS);
  static constexpr int a_bytes = WS_TF32_OPERAND_BYTES(unit, BM), group_bytes = WS_TF32_STAGE_BYTES(unit, BM, BN, 1);
  static constexpr int stage_bytes = group_bytes * K_GROUPS, slice_bytes = WS_TF32W_SLICE_BYTES(unit, BN),
                       slices_of_group = slice_bytes * SLICES, place_bytes = slices_of_group * K_GROUPS,
                       slices_bytes = place_bytes * PLACES;
  static constexpr int body_bytes = WS_TF32W_BODY_BYTES(unit, SLICES, BM, BN, K_GROUPS, STAGES, PLACES);
  static constexpr int shared_bytes = WS_TF32W_SHARED_BYTES(unit, SLICES, BM, BN, K_GROUPS, STAGES, PLACES);
  static constexpr int sum_pitch = WS_TF32_SUM_PITCH(unit, BM), sum_pitch_bytes = sum_pitch * 4;
  static constexpr int first_registers = 65536 / (n_threads * BLOCKS) / 8 * 8, producer_registers = BLOCKS == 1 ? 64 : 56;
  static constexpr int left_registers =
      (first_registers * n_threads - producer_registers * (WS_TF32_PRODUCERS + n_splitters)) / n_consuming / 8 * 8;
  static constexpr int consumer_registers = left_registers < 240 ? left_registers : 240;

  static_assert(BM % 64 == 0 && BN % 32 == 0, "a warpgroup's part is whole pieces");
  static_assert(BM <= 128 && unit * BN <= 128, "a line for each producer, and a warpgroup's registers");
  static_assert(STAGES >= 2 && PLACES >= 2 && (STAGES + PLACES) * 16 <= WS_TF32_BARRIER_BYTES,
                "one is filled while another is used");
  static_assert(BLOCKS * (shared_bytes + 1024 + 64) <= 228 * 1024, "the blocks fit");
};

/* The same by tensor maps. Of one slice TMA rounds to TF32. A B contiguous along k is loaded as wgmma reads it, of two slices as TMA
 * rounds it and once more as it is; any other is transposed into one of PLACES buffers. IS_ACROSS: the product is C transposed. */
template <int SLICES, int BM, int BN, int STAGES, int TURNED_STAGES, int PLACES, int BLOCKS, bool A_K, bool B_K, bool IS_ACROSS>
struct tf32m_config {
  using type = type_s;
  using real = float;
  using element = float;
  using sum = float;
  static constexpr bool a_k = A_K, b_k = B_K, by_map = true, is_across = IS_ACROSS;
  static constexpr int unit = 1, n_slices = SLICES, bm = BM, bn = BN, item_n = BN, bk = WS_TF32_BK(1), wm = 16, wn = BN,
                       k_groups = 1, n_stages = B_K ? STAGES : TURNED_STAGES, n_places = B_K ? 0 : PLACES;
  static constexpr int warps_m = BM / wm, group_warps = warps_m, n_warps = warps_m, n_consuming = n_warps * 32,
                       n_producers = WS_TF32M_PRODUCERS, n_splitters = WS_TF32M_SPLITTERS(SLICES, BM),
                       n_threads = WS_TF32M_THREADS(SLICES, BM);
  static constexpr int a_bytes = BM * WS_TF32M_LINE_BYTES, slice_bytes = BN * WS_TF32M_LINE_BYTES,
                       group_bytes = WS_TF32M_STAGE_LINES(SLICES, BM, BN, B_K) * WS_TF32M_LINE_BYTES, stage_bytes = group_bytes,
                       slices_of_group = slice_bytes * SLICES, place_bytes = slices_of_group,
                       slices_bytes = place_bytes * n_places;
  static constexpr int body_bytes = WS_TF32M_BODY_BYTES(SLICES, BM, BN, B_K, n_stages, n_places),
                       shared_bytes = WS_TF32M_SHARED_BYTES(SLICES, BM, BN, STAGES, TURNED_STAGES, PLACES);
  static constexpr int sum_pitch = WS_TF32_SUM_PITCH(1, BM), sum_pitch_bytes = sum_pitch * 4;
  static constexpr int first_registers = 65536 / (n_threads * BLOCKS) / 8 * 8, producer_registers = 56;
  static constexpr int left_registers =
      (first_registers * n_threads - producer_registers * (n_producers + n_splitters)) / n_consuming / 8 * 8;
  static constexpr int consumer_registers = left_registers < 240 ? left_registers : 240;

  static_assert(BM % 64 == 0 && BM <= 256 && BN % 32 == 0 && BN * SLICES <= 256,
                "whole warpgroups; a box of TMA, a thread's sums");
  static_assert(STAGES >= 2 && TURNED_STAGES >= 2 && PLACES >= 2 &&
                    (n_stages * 3 + n_places * 2) * 8 + 8 <= WS_TF32_BARRIER_BYTES,
                "one is filled while another is used");
  static_assert(BLOCKS * (shared_bytes + 1024 + 64) <= 228 * 1024, "the blocks fit");
};

/* Of a row of tf32w.def whose blocks stay. */
template <class Type, int SLICES, int BM, int BN, int STAGES, int PLACES, int BLOCKS, bool A_K, bool B_K>
struct tf32w_stays_config : tf32w_config<Type, SLICES, BM, BN, 1, STAGES, PLACES, BLOCKS, A_K, B_K> {
  static constexpr int n_items = WS_TF32_ITEMS, marks_bytes = WS_TF32_MARKS_BYTES(BM, BN);
  /* of one slice the units add to the sums themselves; of wider items a store has no registers beside them */
  static constexpr bool stores_beside = SLICES > 1 && BN <= 64;
  static constexpr int shared_bytes = WS_TF32W_STAYS_BYTES(Type::unit, SLICES, BM, BN, 1, STAGES, PLACES);
  static_assert((STAGES + PLACES + n_items) * 16 <= WS_TF32_BARRIER_BYTES, "room for the barriers");
  static_assert(BLOCKS * (shared_bytes + 1024 + 256) <= 228 * 1024, "the blocks fit");
};

} // namespace ws
#endif
