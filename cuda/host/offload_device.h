/* offload_device.h - one GPU at work on a product of host matrices, and the job that it has a part in.
 *
 * What arrives on a device is a strip of C that it has taken from the job's queue, or a panel of the
 * operand that all strips share, in turns; each makes a rectangle of C computable that was not: a
 * part. So the copies in, the kernels and the copies back overlap from early on, each on streams of their
 * own:
 *
 *      in    S0 P0 | S1    P1 | S2        P2 |                each operand crosses the link once
 *      work        | S0xP0    | S1xP0  S01xP1|  S2xP01 ...
 *      out                    | S0xP0        |
 *
 * Threads of the CPU do one step at a time, whatever there is to do: they fill a slot with a transfer of
 * an operand and hand it to the driver, hand a transfer of a ready part to the driver, or store a slot
 * that has come back into C. No step waits for the device. Matrices in pinned memory need no slots:
 * their steps are the driver's calls alone.
 *
 * Where the device has no room for all of the operands, panels pass by the strips that it has (offload_plan.h):
 * one arrives when what has been computed with the one in its place is fetched. */
#ifndef WS_CUDA_OFFLOAD_DEVICE_H
#define WS_CUDA_OFFLOAD_DEVICE_H
#include <pthread.h>
#include <stdatomic.h>

#include "cuda/host/executor.h"
#include "cuda/host/gemm_plan.h"
#include "cuda/host/offload_plan.h"
#include "cuda/host/offload_site.h"

/* Of a transfer of C in host memory. WRITTEN: by the driver, if nothing goes wrong (pinned memory). */
typedef enum ws_transfer_state { WS_TRANSFER_UNTOUCHED, WS_TRANSFER_WRITTEN, WS_TRANSFER_DONE } ws_transfer_state;

/* Rings: of arrivals fewer are open than there are slots, one for each thread; of parts ws_offload_step sees to it. */
enum { WS_MOST_ARRIVALS = 2 * WS_MOST_SLOTS, WS_MOST_OPEN_PARTS = WS_MOST_PART_EVENTS };

/* A transfer back: of a cell. */
typedef struct ws_transfer_of_c {
  int strip, panel, transfer;
} ws_transfer_of_c;

typedef struct ws_offload_job {
  const ws_call *call;
  const ws_system *system; /* or NULL: the plan's product */
  ws_call quiet_call;      /* the same of a handle that logs nothing, for other threads than the caller's */
  wsgemm_handle quiet;
  ws_offload_plan plan;
  _Atomic int next_strip;                       /* the queue */
  _Atomic unsigned char *state;                 /* ws_transfer_state of [strip][panel][transfer] */
  unsigned char *owner;                         /* of each strip: the device that has taken it, + 1 */
  _Atomic int n_cells_out;                      /* fetched, or on their way */
  _Atomic bool is_stopped;                      /* by the progress function */
  bool has_peers;                               /* devices read each other's memory, and panels stay there */
  _Atomic unsigned char holder[WS_MOST_PANELS]; /* of each panel then: a device that has it, + 1 */
  int n_devices;
  struct ws_offload_device *device;
  ws_progress progress;
} ws_offload_job;

/* On its way in: the operand's block, then the cells of C that it makes computable, if C is read. */
typedef struct ws_arrival {
  bool is_strip;
  const struct ws_offload_device *peer; /* has the operand's block, which is copied from there at once; or NULL */
  int idx, place, n_cells, n_transfers;
  int next_transfer, n_left; /* of them: not begun, and not handed to the driver yet */
} ws_arrival;

/* A rectangle of cells, in neighbouring places, that is being computed, and the next transfer of it to be
 * fetched: of which of its cells. */
typedef struct ws_part {
  ws_places strips, panels;
  bool is_computed;
  CUevent event; /* it is computed; then: it has been fetched */
  int strip, panel, transfer;
} ws_part;

/* Slots in the order in which the driver is done with them. */
typedef struct ws_slot_queue {
  int first, n;
  int slot[WS_MOST_SLOTS];
  ws_transfer_of_c transfer[WS_MOST_SLOTS]; /* what is to be stored */
} ws_slot_queue;

typedef struct ws_offload_device {
  ws_offload_job *job;
  int idx, ordinal;
  pthread_mutex_t lock; /* over all below, in steps */
  wsgemm_status status; /* why it does no more; SUCCESS: it works */
  char words[200];
  CUcontext context;
  bool is_waited_for;
  ws_offload_site *site;
  ws_executor executor[WS_N_WORK_STREAMS];
  int n_work_streams; /* parts are computed on them in turn: where one ends and leaves SMs free, the next one begins */
  ws_problem whole;   /* as it would lie in a device's memory */
  ws_gemm_plan plan;
  char *copies;
  int64_t copies_bytes;
  int n_copying; /* threads between two holds of the lock */
  /* Of the group of strips that it has now: taken, and arrived. Panels are counted in the order in which they
   * pass by, which is the other way round in each second group, as the last ones are still there then. */
  int n_groups, n_strips, n_strips_here, n_panels, n_panels_here;
  int strip_at[WS_MOST_STRIPS], panel_at[WS_MOST_PANELS]; /* in each place */
  bool is_here[WS_MOST_PANELS];                           /* the panel in that place */
  int first_panel;                                        /* where it begins, so that peers have others for it later */
  int last_part[WS_MOST_PANELS];                          /* one more than the last with that panel */
  /* the next to begin with; the first not all handed over; the first that has not come */
  int n_arrivals, next_arrival, first_left, first_coming;
  ws_arrival arrival[WS_MOST_ARRIVALS];
  int n_parts, first_part, n_parts_over; /* the first that is not all fetched; their memory may be used again */
  ws_part part[WS_MOST_OPEN_PARTS];
  int n_free, free_slot[WS_MOST_SLOTS];
  ws_slot_queue sent, returning;
} ws_offload_device;

/* Decides how the device would compute the product; then (prepare), when the job's plan is cut, with
 * everything that the call needs on it; or false with status and words. room: bytes that it has for matrices. */
bool ws_offload_device_open(ws_offload_device *d, ws_offload_job *job, int ordinal, size_t *room);
bool ws_offload_device_prepare(ws_offload_device *d);
/* Lets it read the other one's memory; false: it cannot. */
bool ws_offload_device_connect(ws_offload_device *d, const ws_offload_device *peer);
/* For all of them first, as they may copy from each other: waits for it. Then: says which transfers are done. */
void ws_offload_device_wait(ws_offload_device *d);
void ws_offload_device_close(ws_offload_device *d);

typedef enum ws_step { WS_STEP_OVER, WS_STEP_NONE, WS_STEP_DONE } ws_step;
/* One step, if there is something to do now. OVER: nor ever again. */
ws_step ws_offload_step(ws_offload_device *d);

static inline _Atomic unsigned char *ws_transfer_state_of(const ws_offload_job *job, const ws_transfer_of_c *at) {
  const ws_offload_plan *plan = &job->plan;
  return &job->state[((size_t)at->strip * (size_t)plan->n_panels + (size_t)at->panel) * (size_t)plan->most_transfers +
                     (size_t)at->transfer];
}
#endif
