/* test_turns.c - a model of the barriers of cuda/kernels/gemm_wgmma.cuh where two consumers take turns, all of whose interleavings are walked
 * through: a stage is read only when it is full and filled only when it has been read, whatever the copy engine does first, and nobody waits
 * for ever. As in the kernel, a waiter knows no more than the parity of its round. Also that the model finds what it is for: without `begun`
 * (begin_turn) a consumer takes the round before its own, which it did not watch, for its own; and if one warp of a consumer says it has
 * begun before the others know that they may, these can wait for ever. */
#include "support/check.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_BLOCKS = 2, MAX_STAGES = 4, N_CONSUMERS = 2, N_SLOTS = 2, N_WARPS = 2 };

/* Who says that a consumer has begun: nobody, its first warp for itself, or when all of its warps have met. */
typedef enum begun_by { NOBODY, FIRST_WARP, ALL_WARPS } begun_by;

typedef struct protocol {
  int n_blocks, n_stages, n_k, n_items; /* blocks of a cluster, which fill each other's stages; k blocks of an item */
  begun_by begun_by;
} protocol;

/* Its warps go their own ways while it begins; they hear of an item together, and multiply together. */
enum { LISTENS, BEGINS, MULTIPLIES, HAS_LEFT };
enum { AWAITS_TURN, AWAITS_FIRST, HAS_SEEN_FIRST };

/* Counts of what has happened so far. */
typedef struct consumer {
  uint8_t heard, does, k_block, begun; /* begun: how often it has said so */
  uint8_t warp[N_WARPS];
} consumer;

typedef struct block {
  uint8_t item, step; /* the producer's; step 0: it tells (of block 0) or hears of the item, then k blocks */
  uint8_t issued[MAX_STAGES], released[MAX_STAGES];
  uint8_t landed[MAX_BLOCKS][MAX_STAGES]; /* copies from that block */
  consumer consumers[N_CONSUMERS];
} block;

typedef struct state {
  block blocks[MAX_BLOCKS];
} state;

/* ---- The states that have been seen ----------------------------------------------------------------------------------------- */

static struct {
  state *at;
  size_t n, room;
} todo;

static struct {
  state *at;
  bool *is_used;
  size_t n, room;
} seen;

static uint64_t hash_of(const state *s) {
  const unsigned char *bytes = (const unsigned char *)s;
  uint64_t hash = UINT64_C(0xcbf29ce484222325); /* FNV-1a */
  for (size_t i = 0; i < sizeof *s; i++) hash = (hash ^ bytes[i]) * UINT64_C(0x100000001b3);
  return hash ^ hash >> 29;
}

static bool put(const state *s) {
  size_t i = hash_of(s) & (seen.room - 1);
  for (; seen.is_used[i]; i = (i + 1) & (seen.room - 1))
    if (memcmp(&seen.at[i], s, sizeof *s) == 0) return false;
  seen.is_used[i] = true, seen.at[i] = *s, seen.n++;
  return true;
}

static void grow(void) {
  state *old = seen.at;
  bool *was_used = seen.is_used;
  const size_t n = seen.room;
  seen.room = n ? 2 * n : 1 << 12, seen.n = 0;
  seen.at = malloc(seen.room * sizeof *seen.at), seen.is_used = calloc(seen.room, sizeof *seen.is_used);
  REQUIRE(seen.at && seen.is_used, "memory");
  for (size_t i = 0; i < n; i++)
    if (was_used[i]) put(&old[i]);
  free(old), free(was_used);
}

static void reach(const state *s) {
  if (2 * seen.n >= seen.room) grow();
  if (!put(s)) return;
  if (todo.n == todo.room) {
    todo.room = todo.room ? 2 * todo.room : 1 << 12;
    todo.at = realloc(todo.at, todo.room * sizeof *todo.at);
    REQUIRE(todo.at != NULL, "memory");
  }
  todo.at[todo.n++] = *s;
}

/* ---- Barriers --------------------------------------------------------------------------------------------------------------- */

/* What a wait for a round's parity says of a barrier of which so many rounds are complete. */
static bool passes(int n_complete, int round) { return (n_complete & 1) != (round & 1); }

static int full_rounds(const protocol *p, const block *b, int stage) {
  int n = b->issued[stage];
  for (int from = 0; from < p->n_blocks; from++)
    if (b->landed[from][stage] < n) n = b->landed[from][stage];
  return n;
}

static int empty_rounds(const protocol *p, const block *b, int stage) { return b->released[stage] / p->n_blocks; }

/* ---- Steps ------------------------------------------------------------------------------------------------------------------ */

typedef struct outcome {
  int n_early_reads, n_early_fills, n_stuck, n_ends;
} outcome;

/* All have heard of the item that stood in the slot before. */
static bool slot_is_free(const protocol *p, const state *s, int item) {
  for (int b = 0; b < p->n_blocks; b++) {
    if (b > 0 && s->blocks[b].item + (s->blocks[b].step > 0) < item - N_SLOTS + 1) return false;
    for (int c = 0; c < N_CONSUMERS; c++)
      if (s->blocks[b].consumers[c].heard < item - N_SLOTS + 1) return false;
  }
  return true;
}

/* Block 0's producer has told it; item n_items is the end. */
static bool is_told(const state *s, int item) {
  const block *first = &s->blocks[0];
  return item < first->item || (item == first->item && first->step > 0);
}

static bool produce(const protocol *p, state *s, int b, outcome *o) {
  block *own = &s->blocks[b];
  if (own->item > p->n_items) return false;
  if (own->step == 0) {
    if (b == 0 ? !slot_is_free(p, s, own->item) : !is_told(s, own->item)) return false;
    own->step = 1;
    if (own->item == p->n_items) own->item++; /* the end; what was told stays so */
    return true;
  }
  const int nth = own->item * p->n_k + own->step - 1, stage = nth % p->n_stages, round = nth / p->n_stages;
  if (!passes(empty_rounds(p, own, stage), round - 1)) return false;
  o->n_early_fills += empty_rounds(p, own, stage) != round;
  own->issued[stage]++;
  if (own->step++ == p->n_k) own->item++, own->step = 0;
  return true;
}

static bool land(state *s, int from, int to, int stage) {
  if (s->blocks[to].landed[from][stage] == s->blocks[from].issued[stage]) return false;
  s->blocks[to].landed[from][stage]++;
  return true;
}

static void release(const protocol *p, state *s, int nth) {
  for (int b = 0; b < p->n_blocks; b++) s->blocks[b].released[nth % p->n_stages]++;
}

/* Waits for the full stage of a k block. */
static bool sees_full(const protocol *p, const block *own, int nth, outcome *o) {
  const int stage = nth % p->n_stages, round = nth / p->n_stages, n_full = full_rounds(p, own, stage);
  if (!passes(n_full, round)) return false;
  o->n_early_reads += n_full != round + 1;
  return true;
}

static bool listen(const protocol *p, const state *s, consumer *me, int which) {
  if (!is_told(s, me->heard)) return false;
  const int item = me->heard++;
  me->k_block = 0;
  if (item == p->n_items)
    me->does = HAS_LEFT;
  else if (item % N_CONSUMERS == which)
    me->does = p->begun_by == NOBODY ? MULTIPLIES : BEGINS;
  memset(me->warp, item > 0 ? AWAITS_TURN : AWAITS_FIRST, sizeof me->warp);
  return true;
}

static bool begin(const protocol *p, block *own, int which, int warp, outcome *o) {
  consumer *me = &own->consumers[which];
  const int item = me->heard - 1;
  bool have_all = true;
  if (me->does != BEGINS) return false;
  switch (me->warp[warp]) {
  case AWAITS_TURN:
    if (!passes(own->consumers[1 - which].begun, (item - 1) / N_CONSUMERS)) return false;
    break;
  case AWAITS_FIRST:
    if (!sees_full(p, own, item * p->n_k, o)) return false;
    break;
  default:
    return false;
  }
  me->warp[warp]++;
  for (int w = 0; w < N_WARPS; w++) have_all = have_all && me->warp[w] == HAS_SEEN_FIRST;
  if (p->begun_by == FIRST_WARP && warp == 0) me->begun += me->warp[0] == HAS_SEEN_FIRST;
  if (p->begun_by == ALL_WARPS) me->begun += have_all;
  if (have_all) me->does = MULTIPLIES;
  return true;
}

static bool multiply(const protocol *p, state *s, block *own, consumer *me, outcome *o) {
  const int nth = (me->heard - 1) * p->n_k + me->k_block;
  if (!sees_full(p, own, nth, o)) return false;
  if (me->k_block > 0) release(p, s, nth - 1);
  if (++me->k_block < p->n_k) return true;
  release(p, s, nth);
  me->k_block = 0, me->does = LISTENS;
  return true;
}

static bool consume(const protocol *p, state *s, int b, int which, outcome *o) {
  block *own = &s->blocks[b];
  consumer *me = &own->consumers[which];
  return me->does == LISTENS ? listen(p, s, me, which) : me->does == MULTIPLIES && multiply(p, s, own, me, o);
}

/* All that can happen next. */
static void follow(const protocol *p, const state *s, outcome *o) {
  bool is_end = true, is_stuck = true;
  const int n_errors = o->n_early_reads + o->n_early_fills;
  for (int b = 0; b < p->n_blocks; b++) {
    state next = *s;
    if (produce(p, &next, b, o)) reach(&next), is_stuck = false;
    for (int c = 0; c < N_CONSUMERS; c++) {
      next = *s;
      if (consume(p, &next, b, c, o)) reach(&next), is_stuck = false;
      for (int warp = 0; warp < N_WARPS; warp++) {
        next = *s;
        if (begin(p, &next.blocks[b], c, warp, o)) reach(&next), is_stuck = false;
      }
      is_end = is_end && s->blocks[b].consumers[c].does == HAS_LEFT;
    }
    for (int to = 0; to < p->n_blocks; to++)
      for (int stage = 0; stage < p->n_stages; stage++) {
        next = *s;
        if (land(&next, b, to, stage)) reach(&next), is_stuck = false;
      }
  }
  if (o->n_early_reads + o->n_early_fills > n_errors) todo.n = 0; /* what comes of it is of no interest */
  o->n_ends += is_stuck && is_end;
  o->n_stuck += is_stuck && !is_end;
}

static outcome walk(const protocol *p, size_t *n_states) {
  outcome o = {0};
  state s;
  memset(&s, 0, sizeof s);
  reach(&s);
  while (todo.n > 0) {
    s = todo.at[--todo.n];
    follow(p, &s, &o);
  }
  *n_states = seen.n;
  free(seen.at), free(seen.is_used), free(todo.at);
  memset(&seen, 0, sizeof seen), memset(&todo, 0, sizeof todo);
  return o;
}

static void check_protocol(int n_blocks, int n_stages, int n_k, int n_items) {
  protocol p = {n_blocks, n_stages, n_k, n_items, ALL_WARPS};
  size_t n_states, n_others;
  const outcome o = walk(&p, &n_states);
  CHECK(o.n_early_reads == 0 && o.n_early_fills == 0 && o.n_stuck == 0 && o.n_ends == 1,
        "%d blocks, %d stages, %d k blocks, %d items: of %zu states %d read and %d fill a stage too early, %d are stuck, %d the "
        "end",
        n_blocks, n_stages, n_k, n_items, n_states, o.n_early_reads, o.n_early_fills, o.n_stuck, o.n_ends);
  p.begun_by = NOBODY;
  const outcome without = walk(&p, &n_others);
  /* With more k blocks than stages the last to be filled has waited for another to be read, and that one's reader for the first; with half as
   * many or less a stage comes back to whom it was before. */
  const bool is_needed = n_k <= n_stages && 2 * n_k > n_stages;
  CHECK((without.n_early_reads > 0) == is_needed, "%d blocks, %d stages, %d k blocks: `begun` is %s", n_blocks, n_stages, n_k,
        is_needed ? "not missed" : "missed");
  p.begun_by = FIRST_WARP;
  const outcome alone = walk(&p, &n_others);
  const bool is_meeting_needed = n_k < n_stages && n_items >= 3; /* the next item's first stage fits into the ring, too */
  CHECK((alone.n_stuck > 0) == is_meeting_needed, "%d blocks, %d stages, %d k blocks: that warps meet is %s", n_blocks, n_stages,
        n_k, is_meeting_needed ? "not missed" : "missed");
}

static void one_block(void) {
  for (int n_stages = 2; n_stages <= MAX_STAGES; n_stages++)
    for (int n_k = 1; n_k <= 2 * n_stages + 1; n_k++) check_protocol(1, n_stages, n_k, 5);
}

static void clusters(void) {
  for (int n_k = 1; n_k <= 4; n_k++) check_protocol(2, 2, n_k, 3); /* of 3 stages there are millions of states */
}

static const struct check_case cases[] = {{"one_block", one_block}, {"clusters", clusters}};
CHECK_MAIN("turns", cases)
