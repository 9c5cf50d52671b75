/* sched.h - who works on which item of a kernel's grid: the contract of all schedulers, and their
 * host half. Shared by C and CUDA.
 *
 * A launch has the items 0 .. n_items - 1 (tile.h says what an item is). A worker is a block, or a
 * cluster of blocks that work together. A scheduler gives each item to one worker, exactly once,
 * whatever the order in which blocks start, stop or are held back. It is the only code that reads
 * blockIdx and gridDim to share out work: every kernel over tiles takes its items from a scheduler,
 * and kernels over elements use the two numbers of fixed.cuh. A scheduler is a device struct, made
 * from ws_sched_args in each thread, with one or both of these faces:
 *
 *   whole blocks    template <class Body> void for_each_item(Body body);      body(int64_t item_idx)
 *                   Every thread of every block calls it exactly once. It calls body in all threads
 *                   of the block with each of its items; the blocks of one cluster get neighbouring
 *                   items at the same time (item_idx differs by the block's rank). Between two
 *                   calls of body all threads of the block have met (__syncthreads), so body may
 *                   use shared memory from its beginning. When it returns, the block has no more
 *                   items.
 *   one thread      uint32_t first(); uint32_t after(uint32_t item_idx); uint32_t most_items();
 *                   void leave();
 *                   For a producer that passes items on to consumers, and for kernels that keep
 *                   their own account of the item. One thread of each worker calls first() once,
 *                   and after() with the item that it had last, as early as it likes (one item
 *                   ahead hides the answer's latency), at most most_items() - 1 times; a value from
 *                   n_items on says that it is over, and is not asked after. Then it calls leave(),
 *                   last of all. Fixed work has no quantum and no leave().
 *
 *   static constexpr bool keeps_blocks    whether all blocks of the launch may be resident at once
 *                                         and stay to its end, so that they may meet at a barrier
 *                                         (grid_barrier.cuh)
 *
 * A scheduler hands out integers and orders no other memory: what one item writes is not promised
 * to be seen by another, and a one-thread caller hands an item over by a barrier of its own.
 * Nothing may depend on being the last block or the last item.
 *
 *   device half              header        faces           gridDim.x                      next item
 *   WS_SCHED_STATIC          fixed.cuh;    both            n_items (fixed work), or as    own index + number of workers
 *                            queue.cuh                     many blocks as fit (fixed
 *                            without one                   blocks)
 *   WS_SCHED_QUEUE           queue.cuh     both            as many blocks as fit; with a  atomic ticket, asked one item ahead
 *                                                          quantum, enough blocks of at
 *                                                          most that many items
 *   WS_SCHED_CLC             clc.cuh       whole blocks    n_items (cc >= 10.0)           clusterlaunchcontrol.try_cancel, one ahead
 *   WS_SCHED_FOREACH         foreach.cuh   whole blocks    n_items (cc >= 10.0)           cuda::for_each_canceled_block
 *
 * CLC has no face for one thread: its answer comes to all threads of the block by a barrier of
 * theirs, and a request needs that all blocks of the cluster have met. The library's has none
 * because its loop is its own.
 *
 * The quantum bounds how long a block lives: when it leaves, the hardware may put a block of a
 * kernel of higher priority in its place, as CLC does by refusing. */
#ifndef WS_CUDA_SCHED_H
#define WS_CUDA_SCHED_H
#include <stdint.h>

#include "core/tile.h"

typedef enum ws_sched { WS_SCHED_STATIC, WS_SCHED_QUEUE, WS_SCHED_CLC, WS_SCHED_FOREACH, WS_N_SCHEDS } ws_sched;

/* The ticket queue of one launch, in device memory; both words are 0 between launches. No two
 * launches that may run at the same time share one. Each word has a line of 128 bytes of its
 * own. */
typedef struct ws_ticket_queue {
  uint32_t next;
  uint32_t pad0[31];
  uint32_t n_left; /* blocks that have left */
  uint32_t pad1[31];
} ws_ticket_queue;

/* What the device half needs to know. */
typedef struct ws_sched_args {
  /* a multiple of the cluster's blocks is not needed: indices from n_items on are skipped */
  uint32_t n_items;
  uint32_t quantum;       /* WS_SCHED_QUEUE: items for each block; 0: no limit. Others: 0 */
  ws_ticket_queue *queue; /* of WS_SCHED_QUEUE; others: NULL */
  /* WS_SCHED_QUEUE: of the blocks of an SM that work on items from late_first on, only those in its
   * first n_eager places ask for the next item before they are done; 0: all do. */
  uint32_t n_eager, late_first;
} ws_sched_args;

/* The last items are fewer than the blocks. If all ask ahead, they go to all blocks of those few
 * SMs that happen to be ahead themselves, and run crowded there while the others have nothing left.
 * So towards the end only so many blocks of each SM ask ahead as make an even load. Others still
 * get what is left when they are done. */
static inline void ws_sched_spread_last(ws_sched_args *args, int64_t n_resident, int64_t n_sms) {
  const int64_t n_last = args->n_items % n_resident;
  if (n_last == 0 || args->n_items < n_resident || args->quantum > 0) return;
  args->n_eager = (uint32_t)ws_ceil_div(n_last, n_sms);
  args->late_first = (uint32_t)(args->n_items - n_last - n_resident);
}

/* gridDim.x's limit, and so the limit of a launch. */
#define WS_SCHED_MAX_ITEMS ((INT64_C(1) << 31) - 1)

/* Blocks to launch. n_resident: how many fit on the device at once (>= 1); fixed_work: a block for
 * each item. */
static inline int64_t ws_sched_grid(ws_sched sched, int64_t n_items, int64_t n_resident, int64_t quantum, int fixed_work) {
  switch (sched) {
  case WS_SCHED_STATIC:
    return fixed_work ? n_items : ws_min(n_items, n_resident);
  case WS_SCHED_QUEUE:
    return quantum > 0 ? ws_max(ws_min(n_items, n_resident), ws_ceil_div(n_items, quantum)) : ws_min(n_items, n_resident);
  default:
    return n_items;
  }
}
#endif
