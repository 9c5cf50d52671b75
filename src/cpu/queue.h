/* queue.h - the tile queue of the CPU: hands out the items 0 .. n_items - 1, each exactly once,
 * under one of three policies.
 *
 * A range [lo, hi) of items is one 64-bit word, so that taking from either end is one atomic
 * operation:
 *   fixed work     one range for all; everybody takes from its low end
 *   fixed blocks   a range for each worker; everybody keeps to his own
 *   steal          a range for each worker; who is done takes from the high end of the longest
 *                  range left, that is, from the worker furthest behind
 *
 * The queue gives out integers and orders nothing else: who needs to see what another worker wrote
 * for an earlier item must synchronise by other means (team.c does, between steps). A word that is
 * equal to one seen before means the same items are left, so a late compare-and-swap that succeeds
 * is always right for the filling that is current at that moment. */
#ifndef WS_CPU_QUEUE_H
#define WS_CPU_QUEUE_H
#include <assert.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "core/handle.h" /* WS_MAX_WORKERS */

#define WS_MAX_ITEMS (INT64_C(1) << 31)

typedef struct ws_range {
  _Alignas(64) _Atomic uint64_t word; /* hi << 32 | lo; empty if lo >= hi */
} ws_range;

typedef struct ws_queue {
  wsgemm_policy policy; /* not AUTO */
  int n_ranges;
  ws_range range[WS_MAX_WORKERS];
} ws_queue;

static inline uint64_t ws_range_word(uint64_t lo, uint64_t hi) { return hi << 32 | lo; }
static inline uint32_t ws_range_lo(uint64_t word) { return (uint32_t)word; }
static inline uint32_t ws_range_hi(uint64_t word) { return (uint32_t)(word >> 32); }
static inline uint32_t ws_range_left(uint64_t word) {
  return ws_range_lo(word) < ws_range_hi(word) ? ws_range_hi(word) - ws_range_lo(word) : 0;
}

/* Readies the queue for a number of workers; no worker may be using it. */
static inline void ws_queue_init(ws_queue *q, wsgemm_policy policy, int n_workers) {
  q->policy = policy;
  q->n_ranges = policy == WSGEMM_POLICY_FIXED_WORK ? 1 : n_workers;
  for (int w = 0; w < q->n_ranges; w++) atomic_init(&q->range[w].word, 0);
}

/* Refills an empty queue with n_items. Workers may be asking meanwhile: each gets either nothing or
 * an item of the new filling, and sees (acquire) all that the caller wrote before. */
static inline void ws_queue_fill(ws_queue *q, int64_t n_items) {
  assert(n_items >= 0 && n_items < WS_MAX_ITEMS);
  const uint64_t share = (uint64_t)n_items / (uint64_t)q->n_ranges, extra = (uint64_t)n_items % (uint64_t)q->n_ranges;
  uint64_t lo = 0;
  for (int w = 0; w < q->n_ranges; w++) {
    const uint64_t hi = lo + share + ((uint64_t)w < extra);
    atomic_store_explicit(&q->range[w].word, ws_range_word(lo, hi), memory_order_release);
    lo = hi;
  }
}

static inline bool ws_range_take_low(ws_range *r, int64_t *item_idx) {
  uint64_t word = atomic_load_explicit(&r->word, memory_order_acquire);
  while (ws_range_left(word) > 0) {
    if (atomic_compare_exchange_weak_explicit(&r->word, &word, word + 1, memory_order_acquire, memory_order_acquire)) {
      *item_idx = ws_range_lo(word);
      return true;
    }
  }
  return false;
}

static inline bool ws_range_take_high(ws_range *r, uint64_t word, int64_t *item_idx) {
  if (ws_range_left(word) == 0) return false;
  const uint64_t less = word - (UINT64_C(1) << 32);
  if (!atomic_compare_exchange_strong_explicit(&r->word, &word, less, memory_order_acquire, memory_order_relaxed)) return false;
  *item_idx = ws_range_hi(word) - 1;
  return true;
}

/* Takes one item for a worker (0 .. n_workers - 1); false: nothing is left that this worker may
 * take. */
static inline bool ws_queue_take(ws_queue *q, int worker, int64_t *item_idx) {
  if (q->policy == WSGEMM_POLICY_FIXED_WORK) return ws_range_take_low(&q->range[0], item_idx);
  if (ws_range_take_low(&q->range[worker], item_idx)) return true;
  if (q->policy == WSGEMM_POLICY_FIXED_BLOCKS) return false;
  for (;;) {
    int victim = -1;
    uint64_t victim_word = 0;
    for (int w = 0; w < q->n_ranges; w++) {
      const uint64_t word = atomic_load_explicit(&q->range[w].word, memory_order_acquire);
      if (ws_range_left(word) > ws_range_left(victim_word)) victim = w, victim_word = word;
    }
    if (victim < 0) return false;
    if (ws_range_take_high(&q->range[victim], victim_word, item_idx)) return true;
  }
}
#endif
