/* workspace.c - memory for packed operands, kept between calls in a short list.
 *
 * Taken from the system with mmap (large pages asked for where the system has them: packed panels
 * are read in long strides of pages otherwise). A returned workspace is kept if fewer than KEEP are
 * free, so that a loop of calls maps memory once.
 *
 * Invariant: every workspace is either in the list or held by exactly one call. */
#define _DEFAULT_SOURCE
#include "cpu/workspace.h"

#include <pthread.h>
#include <stdint.h>
#include <sys/mman.h>

enum { KEEP = 4, HEADER_BYTES = 4096 };
#define HUGE_BYTES ((size_t)2 << 20)

struct ws_workspace {
  struct ws_workspace *next;
  size_t mapped_bytes;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static ws_workspace *free_list;
static int n_free;

/* Where there is no memory: rather than on the stacks of callers, who may have little. */
static pthread_mutex_t room_lock = PTHREAD_MUTEX_INITIALIZER;
static _Alignas(HEADER_BYTES) char last_room[WS_ROOM_BYTES];

void ws_workspace_lock(void) {
  pthread_mutex_lock(&room_lock);
  pthread_mutex_lock(&lock);
}

void ws_workspace_unlock(void) {
  pthread_mutex_unlock(&lock);
  pthread_mutex_unlock(&room_lock);
}

void *ws_workspace_data(ws_workspace *w) { return (char *)w + HEADER_BYTES; }

/* Unlinks the first workspace of the list that is large enough; failing that, `any`: the first
 * one. */
static ws_workspace *unlink_free(size_t bytes, int any) {
  ws_workspace **at = &free_list;
  while (*at && !any && (*at)->mapped_bytes < bytes) at = &(*at)->next;
  ws_workspace *w = *at;
  if (w) {
    *at = w->next;
    n_free--;
  }
  return w;
}

/* Maps whole large pages: more than asked for, then the ends cut off. Only an aligned stretch can
 * become large pages, and small ones, scattered as they are, would meet each other in the same sets
 * of L2. */
static void *map_aligned(size_t bytes) {
  char *base = mmap(NULL, bytes + HUGE_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (base == MAP_FAILED) return NULL;
  const size_t front = (HUGE_BYTES - (uintptr_t)base % HUGE_BYTES) % HUGE_BYTES;
  if (front > 0) munmap(base, front);
  if (front < HUGE_BYTES) munmap(base + front + bytes, HUGE_BYTES - front);
#ifdef MADV_HUGEPAGE
  madvise(base + front, bytes, MADV_HUGEPAGE);
#endif
  return base + front;
}

ws_workspace *ws_workspace_get(size_t bytes) {
  if (bytes > SIZE_MAX / 2) return NULL;
  const size_t need = (bytes + HEADER_BYTES + HUGE_BYTES - 1) / HUGE_BYTES * HUGE_BYTES;
  pthread_mutex_lock(&lock);
  ws_workspace *w = unlink_free(need, 0);
  ws_workspace *too_small = w ? NULL : unlink_free(0, 1);
  pthread_mutex_unlock(&lock);
  if (w) return w;
  if (too_small) munmap(too_small, too_small->mapped_bytes);
  w = map_aligned(need);
  if (w) w->mapped_bytes = need;
  return w;
}

void ws_workspace_put(ws_workspace *w) {
  pthread_mutex_lock(&lock);
  const int keep = n_free < KEEP;
  if (keep) {
    w->next = free_list;
    free_list = w;
    n_free++;
  }
  pthread_mutex_unlock(&lock);
  if (!keep) munmap(w, w->mapped_bytes);
}

ws_room ws_room_take(size_t bytes) {
  ws_workspace *w = ws_workspace_get(bytes);
  if (!w) pthread_mutex_lock(&room_lock);
  return (ws_room){w ? ws_workspace_data(w) : last_room, w};
}

void ws_room_give(const ws_room *room) {
  if (room->workspace)
    ws_workspace_put(room->workspace);
  else
    pthread_mutex_unlock(&room_lock);
}
