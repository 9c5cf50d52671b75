/* lending.h - what the library lends to the calls of a context: launch states, memory for partial
 * sums, memory for copies (operands in another form, a residual). A call asks for it when it needs
 * it, at most once for each.
 *
 * States and sums are memory of the images. The first streams keep what they have had, and have it
 * without more ado. What is left goes from stream to stream: an event tells when a call has ended.
 * A state or partial sums go to another stream only when that has happened, as a call can do
 * without, with the same bits. A captured call has what it was lent as long as its graph lives,
 * which a user object tells.
 *
 * Memory for copies decides about bits, so no call goes without what it needs. All streams share
 * one piece, and wait for each other on the device; it is allocated when a call first needs it, as
 * large as the device has room for. A captured call has allocation nodes of its own in its graph.
 *
 * Nobody launches, loads or allocates under the lock. */
#ifndef WS_CUDA_LENDING_H
#define WS_CUDA_LENDING_H
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "cuda/host/driver.h"
#include "cuda/shared/launch_state.h"

typedef enum ws_tenure {
  WS_TENURE_FREE,
  WS_TENURE_KEPT,    /* one stream's for ever: nothing tells when its last call has ended */
  WS_TENURE_PASSED,  /* the last stream's that had it, and then another's */
  WS_TENURE_CAPTURED /* a captured call's, until its graph has ended */
} ws_tenure;

/* Who has a part of what can be lent. */
typedef struct ws_lent {
  ws_tenure tenure;
  uint64_t owner; /* KEPT, PASSED: the stream's id; CAPTURED: the number of the call's state */
  CUevent ended;  /* of PASSED, and below */
  /* calls on the owner's stream that have not been recorded yet: no other stream's may have it */
  int n_users;
  bool is_shared;  /* there were several of them at once */
  bool is_unknown; /* a call was neither recorded nor waited for: others cannot tell when it ends */
} ws_lent;

typedef struct ws_lent_state {
  ws_lent lent;
  atomic_bool is_over; /* of CAPTURED: its graph has ended */
} ws_lent_state;

/* Memory for copies. Whoever holds it (ws_lending_hold) may look here. */
typedef struct ws_copies {
  ws_lent lent;
  char *memory; /* NULL: not needed yet, or no room for any */
  int64_t bytes;
  unsigned n_short; /* how many calls would have worked faster with more */
} ws_copies;

enum {
  WS_N_KEPT_STATES = WS_N_STATES / 4, /* the others are passed on, or captured */
  WS_N_HINTS = 64
};

typedef struct ws_loan ws_loan;

/* Zero but for the lock and the condition at first. */
typedef struct ws_lending {
  /* over all of this but the copies; for as long as it takes to look something up */
  pthread_mutex_t lock;
  pthread_cond_t released; /* one of the holders has released what it held */
  ws_loan *holders;
  _Atomic(char *) first_state, first_sums; /* NULL: not looked for yet, or not to be had */
  ws_lent_state state[WS_N_STATES];
  /* states that have been lent so far: the first, and those from WS_N_KEPT_STATES on */
  int n_kept, n_others;
  int next_other;             /* where the search for one that is over goes on */
  uint16_t hint[WS_N_HINTS];  /* by a stream's id: the state that it had */
  ws_lent sums[WS_N_SUMS];    /* but for the last they are kept, or captured */
  ws_copies copies, captured; /* passed on; captured: where a graph can have no memory of its own */
} ws_lending;

/* What a call needs of the memory for copies: to work on all of C at once (at most
 * WS_COPIES_BYTES), and to work at all. optional: of the whole, what is no use in parts and saves time
 * alone, so that no graph gets memory for it, and no stream waits for less. */
typedef struct ws_copies_need {
  int64_t whole, least, optional;
} ws_copies_need;

/* What a call has been lent so far. Zero but for the stream at first. */
struct ws_loan {
  CUstream stream;
  bool is_known, is_captured; /* known: captured, and stream_id or graph, are */
  uint64_t stream_id;
  CUgraph graph;
  uintptr_t held, held_end; /* memory that no other call of the context launches with; 0: none */
  ws_loan *next_holder;
  bool has_asked_state, has_asked_sums, has_asked_copies;
  int state_idx;          /* -1: there is none */
  ws_launch_state *state; /* NULL: likewise */
  char *sums, *copies;
  int64_t copies_bytes;
  CUdeviceptr allocated; /* by a node of the graph that is captured; 0: none */
  ws_lent *passed[3];
  int n_passed;
};

typedef struct ws_device ws_device;

/* Waits for other calls of the context that hold any of these bytes, and holds them to
 * ws_lending_end, so that a call's launches with them follow each other. At most once in a call. */
void ws_lending_hold(ws_device *device, ws_loan *loan, const void *at, int64_t bytes);

/* Tells of what the call has taken that it is over. A failure: the graph that is captured is of no
 * use. */
CUresult ws_lending_end(ws_device *device, ws_loan *loan);

/* A state (in device memory) that no other launch uses which may run at the same time. NULL: there
 * is none; the call has the same bits without. */
CUresult ws_lend_state(ws_device *device, ws_loan *loan, ws_launch_state **state);

/* WS_SUMS_BYTES; likewise. */
CUresult ws_lend_sums(ws_device *device, ws_loan *loan, char **memory);

/* At least need->least bytes; what is launched onto the stream from now on begins when the last
 * call with them has ended. Else the call cannot be made; *lacks: what is missing, in words, where
 * it is memory (OUT_OF_MEMORY). */
CUresult ws_lend_copies(ws_device *device, ws_loan *loan, const ws_copies_need *need, char **memory, int64_t *bytes,
                        const char **lacks);
#endif
