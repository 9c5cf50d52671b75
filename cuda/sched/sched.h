/* sched.h - who works on which item of a kernel's grid: the contract of all schedulers, and their host half. Shared by C and CUDA.
 *
 * A launch has the items 0 .. n_items - 1 (tile.h says what an item is). A scheduler is a device struct with
 *
 *     template <class Body> __device__ void for_each_item(Body body);      body(int64_t item_idx)
 *
 * which every thread of every block calls exactly once, and which calls body, in all threads of a block, with the items that fall to
 * the block. Over the whole launch each item is given out exactly once, whatever the order in which blocks start, stop or are held
 * back. The blocks of one cluster are given neighbouring items at the same time (item_idx differs by the block's rank).
 *
 * Between two calls of body all threads of the block have met (__syncthreads), so body may use shared memory from its beginning.
 * A scheduler hands out integers and orders nothing else: what one item writes is not promised to be seen by another. Nothing may
 * depend on being the last block or the last item.
 *
 *   device half              header            gridDim.x                      next item
 *   WS_SCHED_STATIC          sched_queue.cuh,  n_items (fixed work), or as    own index + gridDim.x
 *                            without a queue   many blocks as fit (fixed
 *                                              blocks)
 *   WS_SCHED_QUEUE           sched_queue.cuh   as many blocks as fit; with a  atomic ticket, asked one item ahead
 *                                              quantum, enough blocks of at
 *                                              most that many items
 *   WS_SCHED_CLC             sched_clc.cuh     n_items (cc >= 10.0)           clusterlaunchcontrol.try_cancel, one ahead
 *   WS_SCHED_FOREACH         sched_foreach.cuh n_items (cc >= 10.0)           cuda::for_each_canceled_block
 *
 * The quantum bounds how long a block lives: when it leaves, the hardware may put a block of a kernel of higher priority in its
 * place, as CLC does by refusing. */
#ifndef WS_CUDA_SCHED_H
#define WS_CUDA_SCHED_H
#include <stdint.h>

#include "core/tile.h"

typedef enum ws_sched { WS_SCHED_STATIC, WS_SCHED_QUEUE, WS_SCHED_CLC, WS_SCHED_FOREACH, WS_N_SCHEDS } ws_sched;

/* The ticket queue of one launch, in device memory; both words are 0 between launches. No two launches that may run at the same
 * time share one. Each word has a line of 128 bytes of its own. */
typedef struct ws_ticket_queue {
  uint32_t next;
  uint32_t pad0[31];
  uint32_t n_left; /* blocks that have left */
  uint32_t pad1[31];
} ws_ticket_queue;

/* What the device half needs to know. */
typedef struct ws_sched_args {
  uint32_t n_items;       /* a multiple of the cluster's blocks is not needed: indices from n_items on are skipped */
  uint32_t quantum;       /* WS_SCHED_QUEUE: items for each block; 0: no limit. Others: 0 */
  ws_ticket_queue *queue; /* of WS_SCHED_QUEUE; others: NULL */
  /* WS_SCHED_QUEUE: of the blocks of a multiprocessor that work on items from late_first on, only those in its first n_eager places ask
   * for the next item before they are done; 0: all do. */
  uint32_t n_eager, late_first;
} ws_sched_args;

/* The last items are fewer than the blocks. If all ask ahead, they go to all blocks of those few multiprocessors that happen to be ahead
 * themselves, and run crowded there while the others have nothing left. So towards the end only so many blocks of each multiprocessor ask
 * ahead as make an even load. Others still get what is left when they are done. */
static inline void ws_sched_spread_last(ws_sched_args *args, int64_t n_resident, int64_t n_sms) {
  const int64_t n_last = args->n_items % n_resident;
  if (n_last == 0 || args->n_items < n_resident || args->quantum > 0) return;
  args->n_eager = (uint32_t)ws_ceil_div(n_last, n_sms);
  args->late_first = (uint32_t)(args->n_items - n_last - n_resident);
}

/* gridDim.x's limit, and so the limit of a launch. */
#define WS_SCHED_MAX_ITEMS ((INT64_C(1) << 31) - 1)

/* Blocks to launch. n_resident: how many fit on the device at once (>= 1); fixed_work: a block for each item. */
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
