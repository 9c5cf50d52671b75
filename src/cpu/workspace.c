/* workspace.c - memory for packed operands, kept between calls in a list.
 *
 * A returned workspace is kept, and those that have lain there longest go where more than KEEP are free that have more than
 * KEEP_BYTES together, or more than MOST: so a loop of calls maps memory once, also one in each of many threads.
 *
 * Invariant: every workspace is either in the list or held by exactly one call. */
#include "cpu/workspace.h"

#include <pthread.h>
#include <stdint.h>

#include "cpu/pages.h"

enum { KEEP = 4, MOST = 64, HEADER_BYTES = 4096 };
#define KEEP_BYTES ((size_t)256 << 20)

struct ws_workspace {
  struct ws_workspace *next;
  size_t mapped_bytes;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static ws_workspace *free_list; /* what was put last comes first */
static int n_free;
static size_t free_bytes;

void ws_workspace_lock(void) { pthread_mutex_lock(&lock); }
void ws_workspace_unlock(void) { pthread_mutex_unlock(&lock); }

void *ws_workspace_data(ws_workspace *w) { return (char *)w + HEADER_BYTES; }

static ws_workspace *unlink_at(ws_workspace **at) {
  ws_workspace *w = *at;
  *at = w->next;
  n_free--;
  free_bytes -= w->mapped_bytes;
  return w;
}

/* The smallest that is large enough, of those the last one put; NULL: none. */
static ws_workspace *unlink_fit(size_t bytes) {
  ws_workspace **best = NULL;
  for (ws_workspace **at = &free_list; *at && !(best && (*best)->mapped_bytes == bytes); at = &(*at)->next)
    if ((*at)->mapped_bytes >= bytes && (!best || (*at)->mapped_bytes < (*best)->mapped_bytes)) best = at;
  return best ? unlink_at(best) : NULL;
}

/* The one that has lain there longest; there is one. */
static ws_workspace *unlink_last(void) {
  ws_workspace **at = &free_list;
  while ((*at)->next) at = &(*at)->next;
  return unlink_at(at);
}

static void unmap(ws_workspace *w) { ws_pages_unmap(w, w->mapped_bytes); }

ws_workspace *ws_workspace_get(size_t bytes) {
  if (bytes > SIZE_MAX / 2) return NULL;
  const size_t need = (bytes + HEADER_BYTES + WS_LARGE_PAGE - 1) / WS_LARGE_PAGE * WS_LARGE_PAGE;
  pthread_mutex_lock(&lock);
  ws_workspace *w = unlink_fit(need);
  ws_workspace *too_small = !w && free_list ? unlink_last() : NULL;
  pthread_mutex_unlock(&lock);
  if (w) return w;
  if (too_small) unmap(too_small);
  w = ws_pages_map(need);
  if (w) w->mapped_bytes = need;
  return w;
}

void ws_workspace_put(ws_workspace *w) {
  ws_workspace *surplus = NULL;
  pthread_mutex_lock(&lock);
  w->next = free_list;
  free_list = w;
  n_free++;
  free_bytes += w->mapped_bytes;
  while (n_free > MOST || (n_free > KEEP && free_bytes > KEEP_BYTES)) {
    ws_workspace *last = unlink_last();
    last->next = surplus;
    surplus = last;
  }
  pthread_mutex_unlock(&lock);
  while (surplus) {
    ws_workspace *next = surplus->next;
    unmap(surplus);
    surplus = next;
  }
}
