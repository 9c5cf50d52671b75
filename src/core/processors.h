/* processors.h - how many processors there are for this process and for the calling thread, and so
 * how many threads a call may use. */
#ifndef WS_PROCESSORS_H
#define WS_PROCESSORS_H
#include <stdbool.h>
#include <stddef.h>

#include "core/handle.h"

enum { WS_AFFINITY_CPUS = 8192 }; /* the most that Linux can be built for on x86-64 */

/* The processors that a thread may run on, as the system writes them. */
typedef struct ws_affinity {
  size_t bytes; /* of `word` that are used; 0: the system does not say */
  unsigned long word[WS_AFFINITY_CPUS / (8 * sizeof(unsigned long))];
} ws_affinity;

/* The calling thread's. One system call: 0.12 us (Zen 5). */
void ws_affinity_get(ws_affinity *affinity);
int ws_affinity_count(const ws_affinity *affinity); /* 0: the system does not say */
bool ws_affinity_equal(const ws_affinity *x, const ws_affinity *y);
/* Makes it the calling thread's; nothing happens where the system refuses. */
void ws_affinity_set(const ws_affinity *affinity);

/* What the first call found. */
typedef struct ws_processors {
  int quota;   /* of the cgroup; 0: none */
  int threads; /* most that a call uses by default, whatever its thread's affinity */
} ws_processors;
void ws_processors_init(int env_threads); /* 0: the environment does not say */
const ws_processors *ws_processors_get(void);

/* Threads that a call may use on this thread: by default; by what the call says. */
int ws_default_threads(void);
int ws_thread_limit(const ws_call *call);
/* Limits the calling thread's calls (0: not); a negative number changes nothing. Returns the limit
 * that was. */
int ws_set_limit_of_thread(int n_threads);
#endif
