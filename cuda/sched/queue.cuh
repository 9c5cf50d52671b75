/* queue.cuh - WS_SCHED_QUEUE (sched.h), device half: stealing on GPUs without Cluster Launch
 * Control. Without a queue it is WS_SCHED_STATIC (fixed.cuh), so that one entry point serves both.
 *
 * With a queue whoever is free draws the next ticket. One thread draws for its block, one item
 * ahead, so that the answer has come when the item before is done; it is handed over in shared
 * memory. Also the first item is drawn: a block that the hardware cannot place yet must hold
 * nothing back. The last block to leave sets the queue back to zero for the next launch. With a
 * quantum a block leaves after so many items, holding no ticket. Before the end some blocks do not
 * ask ahead (ws_sched_spread_last). */
#ifndef WS_CUDA_SCHED_QUEUE_CUH
#define WS_CUDA_SCHED_QUEUE_CUH
#include <cuda/atomic>

#include "cuda/sched/fixed.cuh"

namespace ws {

/* CLUSTER: blocks that work together, and count as one here. */
template <int CLUSTER> struct sched_queue_of {
  static constexpr bool keeps_blocks = false; /* a quantum ends them */
  const ws_sched_args &args;
  __device__ explicit sched_queue_of(const ws_sched_args &sched_args) : args(sched_args) {}

  using counter = cuda::atomic_ref<uint32_t, cuda::thread_scope_device>;

  /* Tickets order nothing but themselves. They, as all item numbers here, stay below n_items +
   * gridDim.x < 2^32 - 2. */
  static constexpr uint32_t leaves = ~uint32_t(0), has_not_asked = leaves - 1;
  __device__ uint32_t draw() const { return counter(args.queue->next).fetch_add(1, cuda::memory_order_relaxed); }
  /* The first item of who need not draw it. */
  static __device__ uint32_t first_of_worker() { return worker_idx<CLUSTER>(); }
  __device__ uint32_t first() const { return args.queue ? draw() : worker_idx<CLUSTER>(); }
  __device__ uint32_t after(uint32_t item_idx) const { return args.queue ? draw() : item_idx + n_workers<CLUSTER>(); }
  /* How many items a worker may take. */
  __device__ uint32_t most_items() const { return args.quantum > 0 ? args.quantum : ~uint32_t(0); }
  /* A block's place on its SM, by the hardware's place of its first warp. It may be anything, and
   * another one each time: nothing but time hangs on it. */
  static __device__ uint32_t place() {
    uint32_t warp;
    asm volatile("mov.u32 %0, %%warpid;" : "=r"(warp));
    return warp / (blockDim.x / 32);
  }
  __device__ bool is_late(uint32_t item_idx) const {
    return args.n_eager > 0 && item_idx >= args.late_first && place() >= args.n_eager;
  }

  /* Every block has drawn for the last time before it leaves (release), so the one that sees all
   * others gone (acquire) writes last. */
  __device__ void leave() const {
    if (!args.queue) return;
    if (counter(args.queue->n_left).fetch_add(1, cuda::memory_order_acq_rel) != n_workers<CLUSTER>() - 1) return;
    counter(args.queue->next).store(0, cuda::memory_order_relaxed);
    counter(args.queue->n_left).store(0, cuda::memory_order_relaxed);
  }

  /* What must outlive body is kept in shared memory, where it costs the mainloop no registers; only
   * the ticket on its way is not. */
  template <class Body> __device__ __forceinline__ void for_each_item(Body body) {
    __shared__ uint32_t drawn, n_left;
    const auto draws = [] { return threadIdx.x == 0; };
    if (draws()) {
      drawn = first();
      n_left = most_items();
    }
    __syncthreads();
    while (drawn < args.n_items) {
      const uint32_t item_idx = drawn;
      uint32_t ticket = leaves;
      if (draws() && --n_left > 0) ticket = is_late(item_idx) ? has_not_asked : after(item_idx);
      body(int64_t(item_idx));
      __syncthreads(); /* drawn has been read, and body's shared memory is free */
      if (draws()) drawn = ticket == has_not_asked ? after(item_idx) : ticket;
      __syncthreads();
    }
    if (draws()) leave();
  }
};
using sched_queue = sched_queue_of<1>;

} // namespace ws
#endif
