/* room.c - see room.h. Rooms lie in slabs of a large page, which stay; a thread looks first for the room that it had
 * last, whose memory its processor may still have in its caches.
 *
 * Memory that is mapped and given back for each item costs more than the item where many workers do so: the
 * system clears a large page, and has all processors forget it (bench/NOTES.md). */
#include "cpu/room.h"

#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "cpu/pages.h"

/* Rooms for more threads than a job has workers. */
enum { OF_SLAB = WS_LARGE_PAGE / WS_ROOM_BYTES, N_SLABS = 13, N_ROOMS = N_SLABS * OF_SLAB, PAGE_BYTES = 4096, LAST = -1 };

static struct { _Alignas(64) _Atomic bool is_taken; } rooms[N_ROOMS];
static _Atomic(char *) slabs[N_SLABS]; /* NULL: not needed yet */
static pthread_mutex_t mapping_lock = PTHREAD_MUTEX_INITIALIZER;

/* Where there is no memory: rather than on the stacks of callers, who may have little. */
static pthread_mutex_t last_lock = PTHREAD_MUTEX_INITIALIZER;
static _Alignas(PAGE_BYTES) char last_room[WS_ROOM_BYTES];

void ws_room_lock(void) {
  pthread_mutex_lock(&last_lock);
  pthread_mutex_lock(&mapping_lock);
}

void ws_room_unlock(void) {
  pthread_mutex_unlock(&mapping_lock);
  pthread_mutex_unlock(&last_lock);
}

void ws_room_unlock_in_child(void) {
  for (int i = 0; i < N_ROOMS; i++) atomic_store_explicit(&rooms[i].is_taken, false, memory_order_relaxed);
  ws_room_unlock();
}

static char *slab_at(int idx) {
  char *slab = atomic_load_explicit(&slabs[idx], memory_order_acquire);
  if (slab) return slab;
  pthread_mutex_lock(&mapping_lock);
  slab = atomic_load_explicit(&slabs[idx], memory_order_relaxed);
  if (!slab && (slab = ws_pages_map(WS_LARGE_PAGE))) atomic_store_explicit(&slabs[idx], slab, memory_order_release);
  pthread_mutex_unlock(&mapping_lock);
  return slab;
}

static void give(int idx) { atomic_store_explicit(&rooms[idx].is_taken, false, memory_order_release); }

static bool take(int idx) {
  return !atomic_load_explicit(&rooms[idx].is_taken, memory_order_relaxed) &&
         !atomic_exchange_explicit(&rooms[idx].is_taken, true, memory_order_acquire);
}

/* Where none is free, or there is memory for none, it is the last one. Where a slab cannot be mapped, rooms of others are looked for. */
static ws_room take_any(void) {
  static _Thread_local int had;
  bool has_memory = true;
  for (int i = 0, idx = had; i < N_ROOMS; i++, idx = idx + 1 < N_ROOMS ? idx + 1 : 0) {
    if (!has_memory && !atomic_load_explicit(&slabs[idx / OF_SLAB], memory_order_acquire)) continue;
    if (!take(idx)) continue;
    char *const slab = slab_at(idx / OF_SLAB);
    if (slab) return had = idx, (ws_room){slab + (size_t)(idx % OF_SLAB) * WS_ROOM_BYTES, idx};
    give(idx);
    has_memory = false;
  }
  return (ws_room){last_room, LAST};
}

ws_room ws_room_take(size_t bytes) {
  assert(bytes <= WS_ROOM_BYTES);
  (void)bytes;
  const ws_room room = take_any();
  if (room.idx == LAST) pthread_mutex_lock(&last_lock);
  return room;
}

void ws_room_give(const ws_room *room) {
  if (room->idx == LAST)
    pthread_mutex_unlock(&last_lock);
  else
    give(room->idx);
}
