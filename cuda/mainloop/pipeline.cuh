/* pipeline.cuh - the protocol of the pipelines of gemm_wgmma.cuh: where a producer or consumer is,
 * which parity it waits for, and how the consumers of ping-pong begin an item. Written once, over a
 * policy: the kernel gives it barriers in shared memory, tests/host/test_pipeline.cpp a model of
 * which all interleavings are walked through.
 *
 * A stage has two barriers: `full` is completed by the bytes that TMA brings (stages of items: by
 * the producer), `empty` by the consumers. The waiter knows the parity of its round; a stage's
 * `empty` of round -1 counts as complete (parity 1). A parity tells a round from the next one only,
 * so who waits must know that the round before is complete: in ping-pong, where consumers leave out
 * rounds, by `begun`.
 *
 * Sums over parts of k (gemm_wgmma_once.cuh) go to the blocks of a cluster that add them up: where
 * these had their stages, not before all consumers of all blocks have read their last one; to room
 * of their own, not before all blocks have begun. */
#ifndef WS_CUDA_PIPELINE_CUH
#define WS_CUDA_PIPELINE_CUH
#include <cstdint>

#ifdef __CUDACC__
#define WS_PIPELINE_DEVICE __device__ __forceinline__
#define WS_PIPELINE_UNROLL _Pragma("unroll")
#else
#define WS_PIPELINE_DEVICE inline
#define WS_PIPELINE_UNROLL
#endif

namespace ws {

/* Where a producer or consumer is in a pipeline of N stages: at which place, and in which round (by
 * its parity). */
template <int N> struct pipeline_stage {
  int place = 0;
  uint32_t round = 0;
  WS_PIPELINE_DEVICE void advance() {
    if (++place == N) place = 0, round ^= 1;
  }
  WS_PIPELINE_DEVICE void advance(int n) {
    const uint32_t at = uint32_t(place) + uint32_t(n);
    place = int(at % N), round ^= at / N & 1;
  }
  WS_PIPELINE_DEVICE uint32_t full_parity() const { return round; }
  WS_PIPELINE_DEVICE uint32_t empty_parity() const { return round ^ 1; } /* of the round before */
};

namespace ping_pong {

/* Items go to the consumers round-robin; item 0 is the block's first. */
template <int N_CONSUMERS> WS_PIPELINE_DEVICE bool owns_item(uint32_t item, int consumer) {
  return int(item % N_CONSUMERS) == consumer;
}

/* Every warp of the consumer calls this before it multiplies item number `item` of the block, from
 * 0 on: the consumer did not watch the one before. With no more k blocks than stages the first
 * stage of that one is among those to come, and full by `begun`; with more, the item was published
 * only when it was. Each further stage of that one is full since the one before it there was
 * released, and so filled for this item. No warp may still ask for the item before when others have
 * begun this one: then the next consumer could begin, too, and be a round ahead of what the warp
 * knows. */
template <int N_CONSUMERS, class Barriers, class Stage>
WS_PIPELINE_DEVICE void begin_item(const Barriers &barriers, uint32_t item, const Stage &stage) {
  const uint32_t before = item - 1;
  if (item > 0) barriers.wait_begun(int(before % N_CONSUMERS), before / N_CONSUMERS & 1);
  barriers.wait_full(stage.place, stage.full_parity());
  barriers.meet_consumer();
  barriers.arrive_begun();
}

} // namespace ping_pong

/* Every consumer of the N_PARTS blocks of a cluster calls this with its sums over its block's part
 * of k, once, when it has read its last stage. The first N_SHARERS blocks add up a share of the
 * item each, in the order of k; false: this block has none. A block may end, or store where parts
 * were, when it has all that is sent to it: nothing else comes from other blocks. */
template <int N_PARTS, int N_SHARERS, class Blocks> WS_PIPELINE_DEVICE bool exchange_parts(const Blocks &blocks) {
  const int rank = blocks.rank();
  blocks.meet();
  WS_PIPELINE_UNROLL
  for (int to = 0; to < N_SHARERS; to++)
    if (to != rank) blocks.send(to);
  if (rank >= N_SHARERS) return false;
  blocks.wait_parts();
  WS_PIPELINE_UNROLL
  for (int part = 0; part < N_PARTS; part++) blocks.add(part);
  return true;
}

} // namespace ws
#endif
