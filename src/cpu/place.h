/* place.h - which processors a thread may run on, and how the workers of one job keep to processors of their own. */
#ifndef WS_CPU_PLACE_H
#define WS_CPU_PLACE_H
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ---- affinity ----------------------------------------------------------------------------------------------------------------- */

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

/* ---- places --------------------------------------------------------------------------------------------------------------------- */

enum { WS_PLACE_CPUS = 1024 }; /* as many as a cpu_set_t holds; processors beyond are never claimed */

/* The processors on which workers of the job run, a bit each. */
typedef struct ws_places {
  _Atomic uint64_t claimed[WS_PLACE_CPUS / 64];
} ws_places;

/* Forgets all claims; nobody may be claiming. */
void ws_places_clear(ws_places *places);

/* Claims the processor that the calling thread runs on. If another worker has it, moves the thread to one that its affinity
 * allows and nobody has claimed, if there is one; the affinity is as before on return. */
void ws_places_claim(ws_places *places);
#endif
