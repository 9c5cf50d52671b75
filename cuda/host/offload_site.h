/* offload_site.h - what the library keeps in a context for host matrices on its GPU, from one call to
 * the next: streams, staging slots in pinned memory, events, and memory for the operands. One
 * call at a time has it (offload.c). */
#ifndef WS_CUDA_OFFLOAD_SITE_H
#define WS_CUDA_OFFLOAD_SITE_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cuda/host/device.h"

enum {
  WS_SLOT_BYTES = 2 << 20, /* a slot stays in the processors' caches between the two copies through it */
  WS_LEAST_SLOTS = 8,
  WS_MOST_SLOTS = 64,
  WS_MOST_PART_EVENTS = 128,
  WS_N_WORK_STREAMS = 4, /* streams of kernels */
  WS_MOST_COMING = 2     /* arrivals that the driver has been handed, and that have not come */
};

/* A slot is free, or a thread's, or the driver's until its event. */
typedef struct ws_slot {
  char *memory;
  CUevent copied;
} ws_slot;

typedef struct ws_offload_site {
  bool is_open;                     /* all of the next line is there */
  CUstream in, out;                 /* copies to the device, and back */
  CUstream work[WS_N_WORK_STREAMS]; /* kernels */
  CUevent arrived[WS_MOST_COMING];  /* what launches wait for */
  int n_slots;
  ws_slot slot[WS_MOST_SLOTS];
  int n_part_events;
  CUevent part_event[WS_MOST_PART_EVENTS]; /* of parts of C */
  CUdeviceptr memory;
  size_t bytes;
} ws_offload_site;

/* All in the device's context, which is current. */

/* With so many slots at most; what there is too much of is given back. */
CUresult ws_site_open(ws_device *device, int n_slots, ws_offload_site **site);
/* Bytes that the call may have there; as WSGEMM_OFFLOAD_MEMORY says, if it is set. */
CUresult ws_site_room(const ws_offload_site *site, size_t *bytes);
/* Memory of the device, as long as the call has the site. */
CUresult ws_site_memory(ws_offload_site *site, size_t bytes);
/* The event of a part; made on first need. */
CUresult ws_site_part_event(ws_offload_site *site, int i, CUevent *event);
/* The call has ended. Memory beyond a part of the device's goes back. */
void ws_site_close(ws_offload_site *site);

/* wsgemm_set_pinned_limit; the slots that each of so many sites may have. */
void ws_site_set_pinned_limit(size_t bytes);
int ws_site_slots(int n_sites);
#endif
