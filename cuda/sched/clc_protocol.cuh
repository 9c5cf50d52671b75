/* clc_protocol.cuh - the protocol of Cluster Launch Control (CLC): how the blocks of a launch take
 * the items of blocks that have not started yet. Written once, over a policy Clc: clc.cuh gives it
 * the instructions, tests/host/clc_machine.h a simulated device.
 *
 * Left to the caller: a grid of one dimension with a block for each item, rounded up to whole
 * clusters.
 *
 * Invariant: a result belongs to the asynchronous proxy from its request to its completion and to
 * the threads of its block from there to the next sync; the barrier orders the one change of hands,
 * the two proxy fences the other. Compiled and model-checked, never run on hardware. */
#ifndef WS_CUDA_CLC_PROTOCOL_CUH
#define WS_CUDA_CLC_PROTOCOL_CUH
#include <cstdint>

#ifdef __CUDACC__
#define WS_CLC_DEVICE __device__ __forceinline__
#else
#define WS_CLC_DEVICE inline
#endif

namespace ws::clc {

constexpr uint32_t result_bytes = 16; /* what one request writes into each block of the cluster */

/* One result and one barrier in the shared memory of every block. An item:
 *
 *                            sync | request             | body | wait | read | refused: leave | decode, release | sync | request ..
 *   all threads               x   |                     |  x   |  x   |  x   |       x        |        x        |  x   |
 *   first of each block           | expect              |
 *   first of the first block      | acquire, try_cancel |
 *   whose the result is   threads | --------- request's ---------- | ---------------- threads' -------------------- | request's ..
 *
 * The sync is of the cluster where it has more than one block. It says three things: every block of
 * the cluster runs, or this thread would not have met its threads (a request needs that); the
 * barriers are initialised; and all have read the last result and released it, so that the request
 * may write over it. It also keeps two calls of body apart.
 *
 * A refusal is the last thing that is read: it says nothing about how much is left, only that this
 * block must not ask again. Each block waits for its own copy before it leaves, and no request
 * follows, so that nothing can be written to a block that has left. A block without an item (the
 * grid was rounded up) goes on asking, for its cluster's sake. */
template <class Clc, class Body> WS_CLC_DEVICE void for_each_item(const Clc &clc, int64_t n_items, Body &&body) {
  constexpr bool in_cluster = Clc::cluster_blocks > 1;
  const bool expects = clc.is_first_thread();
  const bool asks = expects && clc.block_rank() == 0;
  if (expects) {
    clc.init_barrier();
    if constexpr (in_cluster) /* partner: the first sync, before which no other block's request comes */
      clc.release_barrier_init();
  }
  int64_t item_idx = clc.own_ctaid();
  for (uint32_t parity = 0;; parity ^= 1) {
    if constexpr (in_cluster)
      clc.sync_cluster();
    else
      clc.sync_block();
    if (expects) clc.arrive_expect_tx(result_bytes);
    if (asks) {
      /* partner: release_result_reads of every thread, across the sync */
      clc.acquire_result_reads();
      if constexpr (in_cluster)
        clc.request_multicast();
      else
        clc.request();
    }
    if (item_idx < n_items) body(item_idx);
    clc.wait(parity);
    const typename Clc::result result = clc.read_result();
    if (!clc.is_canceled(result)) return;
    item_idx = int64_t(clc.first_ctaid(result)) + int64_t(clc.block_rank());
    clc.release_result_reads(); /* partner: acquire_result_reads before the next request */
  }
}

} // namespace ws::clc
#endif
