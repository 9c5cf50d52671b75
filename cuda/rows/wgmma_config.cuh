/* wgmma_config.cuh - the shape of a row of wgmma kernels, as constants of the compiler; whose
 * asserts say what a row must obey. */
#ifndef WS_CUDA_WGMMA_CONFIG_CUH
#define WS_CUDA_WGMMA_CONFIG_CUH
#include "cuda/ptx/wgmma.cuh"
#include "cuda/rows/rows.h"
#include "cuda/shared/slice_args.h"

namespace ws {

/* A block's item: BM rows of C times COARSE neighbouring tiles of BN columns, summed over k in
 * blocks of 64; its columns are shared out among CONSUMERS warpgroups, or (ping-pong) each of these
 * takes every n-th item. The blocks of a cluster take neighbouring items of one row of tiles, and
 * load A for each other; or (CLUSTER_SPLITS) sum parts of k of the same item, of which each adds up
 * its share. ONCE: non-persistent, a block or cluster for each item (gemm_wgmma_once.cuh). SLICES of 16 bits
 * make up the floats of A and B; 0: these have 16 bits themselves. UNIT 2: rows of C are pairs,
 * parts of complex numbers. BARE: C = alpha * A * B, all of one type, stored by TMA; short code, as a
 * product of few us waits for each line of it. */
template <class Element, int BM, int BN, int COARSE, int CONSUMERS, bool PING_PONG, int STAGES, int CLUSTER, int CLUSTER_SPLITS,
          int SLICES = 0, int UNIT = 1, bool ONCE = false, bool BARE = false, int CLUSTER_M = 1>
struct wgmma_config {
  using element = Element;
  static constexpr int bm = BM, bn = BN, coarse = COARSE, item_n = BN * COARSE, n_stages = STAGES, cluster = CLUSTER;
  static constexpr int bk = WS_WGMMA_BK, n_consumers = CONSUMERS, n_threads = WS_WGMMA_ROW_THREADS(CONSUMERS, ONCE), n_items = 2;
  static constexpr bool ping_pong = PING_PONG, is_once = ONCE;
  /* producers are of the first warpgroup, or (ONCE) the last warps */
  static constexpr int first_consumer = ONCE ? 0 : 128;
  static constexpr int cluster_splits = CLUSTER_SPLITS, n_shared_b = CLUSTER_M, /* blocks that load B for each other, and A: */
      n_shared_a = CLUSTER / CLUSTER_SPLITS / CLUSTER_M;
  static constexpr int n_sharing = PING_PONG ? 1 : CONSUMERS; /* consumers of a stage */
  /* of 64 columns of C, for each consumer */
  static constexpr int n_fragments = item_n / 64 / n_sharing;
  static constexpr int slab_bytes = wgmma_line * bk * 2; /* 64 x 64 elements */
  /* loaded, of which the last may be of no use */
  static constexpr int a_rows = WS_WGMMA_A_ROWS(BM), a_line = WS_WGMMA_A_LINE(BM);
  static constexpr bool is_sliced = SLICES > 0;
  static constexpr int n_slices = is_sliced ? SLICES : 1, unit = UNIT;
  static constexpr int a_bytes = a_rows * bk * 2, b_bytes = item_n * bk * 2; /* of a slice */
  /* slices of A, then of B */
  static constexpr int stage_bytes = n_slices * (a_bytes + b_bytes);
  static constexpr int n_outputs = is_sliced ? 0 : WS_WGMMA_OUTPUTS(CONSUMERS, PING_PONG),
                       output_bytes = slab_bytes; /* of each consumer, on their way to C */
  static constexpr bool is_bare = BARE, is_plain = BARE || WS_WGMMA_IS_PLAIN(BM, BN *COARSE, CONSUMERS, PING_PONG);
  static constexpr int bias_bytes = is_sliced ? 0 : WS_WGMMA_BIAS_BYTES(is_plain);
  static constexpr int shared_bytes =
      is_sliced ? WS_SLICED_SHARED_BYTES(SLICES, BM, BN, COARSE, STAGES)
                : WS_WGMMA_SHARED_BYTES(BM, BN, COARSE, CONSUMERS, PING_PONG, STAGES, CLUSTER_SPLITS, ONCE);
  static constexpr int n_blocks = WS_WGMMA_ROW_BLOCKS(shared_bytes); /* of an SM */
  /* Of a thread: the producers need few, and leave theirs to the consumers. 0: all keep what they
   * are launched with. */
  static constexpr int producer_registers = CONSUMERS == 1 ? 0 : CONSUMERS == 2 ? 40 : 32;
  static constexpr int consumer_registers = CONSUMERS == 2 ? 232 : 160;

  static_assert(item_n % (64 * n_sharing) == 0, "each consumer has as many columns of C, in fragments of 64");
  static_assert(BM % 8 == 0 && BM <= 256, "a box of TMA is at most 256 long");
  static_assert(64 % n_shared_a == 0 && 64 % n_shared_b == 0 && (n_shared_a == 1 || BM % (8 * n_shared_a) == 0),
                "each block that shares A or B loads as much of it, in whole atoms of 8 lines");
  static_assert(n_shared_b == 1 || (SLICES == 0 && !ONCE && !PING_PONG && CLUSTER <= 8), "only kernels that stay share B");
  static_assert(ONCE || CLUSTER_SPLITS == 1, "only non-persistent rows share k");
  /* ONCE: C, and what finds no room beside them, is where the stages were. */
  static constexpr int share_rows = WS_WGMMA_SHARE_ROWS(BM, CLUSTER_SPLITS), n_sharers = BM / share_rows;
  /* consumers have room for all that they store, in boxes of up to 64 x 64 */
  static constexpr int n_places = WS_LARGER(n_outputs, n_fragments *((share_rows + 63) / 64));
  static constexpr int parts_bytes = WS_WGMMA_PARTS_BYTES(BM, item_n, CLUSTER_SPLITS);
  static constexpr bool parts_apart =
      WS_WGMMA_BYTES_WITHOUT_PARTS(BM, BN, COARSE, CONSUMERS, PING_PONG, STAGES, ONCE) + parts_bytes <=
      WS_WGMMA_MOST_SHARED_BYTES;
  static constexpr int parts_at = parts_apart ? STAGES * stage_bytes : 0, places_at = parts_apart ? 0 : parts_bytes;
  static_assert(!ONCE || (CLUSTER <= 8 && !PING_PONG && SLICES == 0 && BM % share_rows == 0 && share_rows % 8 == 0 &&
                          places_at + CONSUMERS * n_places * output_bytes <= STAGES * stage_bytes),
                "C finds room where the stages were");
  static_assert(SLICES < 2 || n_fragments * BM / 2 <= 64, "three sums of each element leave registers for the rest");
  static_assert(SLICES < 3 || (CLUSTER == 1 && BM % WS_SLICE_GROUP == 0 && item_n % WS_SLICE_GROUP == 0),
                "its producer passes over items by groups");
  static_assert(SLICES == 0 || (CLUSTER_SPLITS == 1 && !PING_PONG && CONSUMERS < 3), "products of slices have no such rows");
  static_assert(CONSUMERS >= 1 && CONSUMERS <= 3 && n_fragments * BM / 2 <= (CONSUMERS == 3 ? 96 : 192),
                "the sums leave registers for the rest");
  static_assert(shared_bytes <= WS_WGMMA_MOST_SHARED_BYTES, "the shared memory of a block (cc 9.0)");
};

} // namespace ws
#endif
