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

/* Claims the processor that the calling thread runs on. If another worker has it, moves the thread
 * to one that its affinity allows and nobody has claimed, if there is one; the affinity is as
 * before on return. */
void ws_places_claim(ws_places *places);
#endif
