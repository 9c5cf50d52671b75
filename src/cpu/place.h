/* place.h - how the workers of one job keep to processors of their own. */
#ifndef WS_CPU_PLACE_H
#define WS_CPU_PLACE_H
#include <stdatomic.h>
#include <stdint.h>

/* as many as a cpu_set_t holds; processors beyond are never claimed */
enum { WS_PLACE_CPUS = 1024 };

/* The processors on which workers of the job run, a bit each. */
typedef struct ws_places {
  _Atomic uint64_t claimed[WS_PLACE_CPUS / 64];
} ws_places;

/* Forgets all claims; nobody may be claiming. */
void ws_places_clear(ws_places *places);

/* Claims the processor that the calling thread runs on. If another worker has it, claims one that
 * the thread's affinity allows and nobody has claimed, if there is one, and returns it; else -1: the
 * thread stays. */
int ws_places_claim(ws_places *places);
/* Moves the calling thread there; its affinity is as before on return. It may have to wait there for
 * what runs: nobody should be waiting for the thread meanwhile. */
void ws_place_move(int processor);
#endif
