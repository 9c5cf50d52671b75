/* lending.h - what the library lends to the calls of a context: launch states, memory for partial sums, memory for operands in another
 * form. All of it is memory of the images, so that a call allocates nothing. A call asks for it when it needs it, at most once for each.
 *
 * The first streams keep what they have had, and have it without more ado. What is left goes from stream to stream: an event tells when a
 * call has ended. A state or partial sums go to another stream only when that has happened, as a call can do without, with the same bits; the
 * memory for operands decides about bits, so a stream waits for it on the device. A captured call has what it was lent as long as its graph
 * lives, which a user object tells. */
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

typedef struct ws_piece {
  ws_tenure tenure;
  uint64_t owner;  /* KEPT, PASSED: the stream's id; CAPTURED: the number of the call's state */
  CUevent ended;   /* of PASSED */
  bool is_unknown; /* the owner's last call could not be recorded: nobody else can tell when it has ended */
} ws_piece;

typedef struct ws_lent_state {
  ws_piece piece;
  atomic_bool is_over; /* of CAPTURED: its graph has ended */
} ws_lent_state;

enum {
  WS_N_KEPT_STATES = WS_N_STATES / 4, /* the others are passed on, or captured */
  WS_N_HINTS = 64
};

/* Zero but for the lock at first. */
typedef struct ws_lending {
  pthread_mutex_t lock;
  ws_launch_state *first_state; /* NULL: not looked for yet, or not to be had */
  char *first_sums, *first_copies;
  ws_lent_state state[WS_N_STATES];
  int n_kept, n_others;         /* states that have been lent so far: the first, and those from WS_N_KEPT_STATES on */
  int next_other;               /* where the search for one that is over goes on */
  uint16_t hint[WS_N_HINTS];    /* by a stream's id: the state that it had */
  ws_piece sums[WS_N_SUMS];     /* but for the last they are kept, or captured */
  ws_piece copies[WS_N_COPIES]; /* the first is passed on, the others are for captured calls */
} ws_lending;

typedef enum ws_memory { WS_MEMORY_SUMS, WS_MEMORY_COPIES, WS_N_MEMORIES } ws_memory;

/* What a call has been lent so far. Zero but for the stream at first. */
typedef struct ws_loan {
  CUstream stream;
  bool is_locked, is_held;    /* held: to the end of the call */
  bool is_known, is_captured; /* known: captured, and stream_id or graph, are */
  uint64_t stream_id;
  CUgraph graph;
  bool has_asked, has_asked_for[WS_N_MEMORIES]; /* for a state, for memory */
  int state_idx;                                /* -1: there is none */
  char *memory[WS_N_MEMORIES];                  /* NULL: there is none */
  ws_piece *passed[1 + WS_N_MEMORIES];
  int n_passed;
} ws_loan;

typedef struct ws_device ws_device;

/* Launches of a call that share memory with other calls stay together: from here, or from the lending of what is passed on, to ws_lending_end,
 * which tells what the call has taken that it is over. Calls that share nothing launch without a lock. Those of one context that do, and
 * those that must first find a state, wait for each other over their launches, also where each has a workspace of its own. */
void ws_lending_hold(ws_device *device, ws_loan *loan);
void ws_lending_end(ws_device *device, ws_loan *loan);

/* A state (in device memory) that no other launch uses which may run at the same time. NULL: there is none; the call has the same bits
 * without. */
CUresult ws_lend_state(ws_device *device, ws_loan *loan, ws_launch_state **state);

/* WS_SUMS_BYTES, WS_COPIES_BYTES. NULL: there is none. Copies: what is launched onto the stream from now on begins when the last call with
 * that memory has ended; where the device has no room for it, which must not change bits, the call cannot be made: OUT_OF_MEMORY. */
CUresult ws_lend_memory(ws_device *device, ws_loan *loan, ws_memory which, char **memory);
#endif
