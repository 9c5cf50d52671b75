/* fake_driver.h - a CUDA driver for machines without a GPU: libcuda.so.1 with the entry points of
 * cuda/host/driver.h, which does what the test has written into `fake`, and writes down what it was
 * asked.
 *
 * It runs nothing and computes nothing, unless the test does (fake.compute). It does keep the driver's rules, as far as the library has
 * to: no answer before it is initialised, contexts in a stack for each thread, no loading and no
 * look-up (which may load) while somebody captures unless the thread is in the relaxed mode, no
 * launch that a device would refuse. Device memory is address space without access, so that a read
 * on the CPU ends the test. */
#ifndef WSGEMM_TESTS_FAKE_DRIVER_H
#define WSGEMM_TESTS_FAKE_DRIVER_H
#include "cuda/host/driver.h"
#include "cuda/shared/align_copy_args.h"
#include "cuda/shared/copied_args.h"
#include "cuda/shared/fallback_args.h"
#include "cuda/shared/float_copy_args.h"
#include "cuda/shared/group_args.h"
#include "cuda/shared/grouped_args.h"
#include "cuda/shared/kernel_args.h"
#include "cuda/shared/launch_state.h"
#include "cuda/shared/map_args.h"
#include "cuda/shared/slice_args.h"
#include "cuda/shared/small_args.h"
#include "cuda/shared/wgmma_args.h"

#define FAKE_FUNCTION(name, version) FAKE_##name,
/* The optional ones come after those that a driver must have, then those for host matrices. */
#define FAKE_ENTRIES(X) WS_DRIVER_ENTRIES(X) WS_DRIVER_OPTIONAL_ENTRIES(X) WS_DRIVER_OFFLOAD_ENTRIES(X)
typedef enum fake_function { FAKE_ENTRIES(FAKE_FUNCTION) FAKE_N_FUNCTIONS, FAKE_ANY = FAKE_N_FUNCTIONS } fake_function;
#undef FAKE_FUNCTION
extern const char *const fake_function_names[FAKE_N_FUNCTIONS];

enum {
  FAKE_N_DEVICES = 3,
  FAKE_MOST_DEVICES = 8,
  FAKE_N_STREAMS = 5000,
  FAKE_N_LAUNCHES = 64,
  FAKE_N_CALLS = 4096,
  FAKE_N_NODES = 64
};

typedef enum fake_memory { FAKE_DEVICE, FAKE_MANAGED, FAKE_PINNED } fake_memory;

typedef struct fake_device {
  int cc, n_sms, blocks_per_sm; /* cc: 10 * major + minor */
  int max_shared;               /* of one block, bytes */
  int most_cluster;             /* blocks of a cluster, if it may be large */
  int64_t room;                 /* of each allocation; 0: any number of bytes */
  bool has_no_pools;
} fake_device;

typedef struct fake_stream {
  CUstreamCaptureStatus capture;
  bool is_busy;      /* what was launched onto it is not over: no event recorded in it is */
  int generation;    /* how many streams have had this handle before */
  CUcontext context; /* NULL: it says nothing of it */
  CUgraph graph;     /* of the capture, once somebody asked for it */
} fake_stream;

/* A launch as the device would have seen it. */
typedef struct fake_launch {
  char kernel[96];
  int row_idx;    /* in kernels.def, of a row's kernel; else -1 */
  char entry[16]; /* of the row's: "queue", "split", ... */
  int device;
  CUcontext context;
  CUstream stream;
  unsigned grid[3], block[3], shared_bytes;
  bool is_cooperative;                 /* all blocks at once, or none */
  bool is_early;                       /* may begin before the launch before it has ended */
  unsigned cluster;                    /* blocks of a cluster */
  int planned_threads, planned_shared; /* for which the occupancy of this kernel was asked */
  ws_gemm_args args;
  ws_copied_args copied;           /* of rows of dmma.def; args then has its product's, too */
  ws_small_args small;             /* of rows of small.def; likewise */
  ws_map_args maps;                /* of rows of tf32m.def; likewise */
  ws_align_copy_args pitch;        /* of align_copy */
  ws_float_copy_args float_copy;   /* of that one */
  ws_column_sums_args column_sums; /* of kernels with these words in their names */
  ws_slice_args slices;            /* of kernels called maxima, sslices_N or cslices_N */
  ws_fallback_args fallback;       /* of sfallback; args then has its product's */
  /* of the rows on tensor cores; args then has what is common: the scheduler's and the grid */
  ws_wgmma_args wgmma;
  ws_grouped_args grouped;      /* of the kernels of ragged groups; args then has their scheduler */
  ws_group_args groups;         /* of other rows' kernels for groups; args then has what all groups share */
  ws_grouped_ends grouped_ends; /* of both */
  ws_small_places small_places; /* of rows of small.def for matrices at pointers */
} fake_launch;

/* Memory of a graph: allocated in its capture, and freed. */
typedef struct fake_node {
  CUgraph graph;
  char *memory;
  size_t bytes;
  bool is_freed;
} fake_node;

/* What a tensor map holds, here. */
typedef struct fake_map {
  uint64_t address, dims[3], strides[2];
  uint32_t box[2];
  CUtensorMapDataType type;
  CUtensorMapL2promotion promotion;
} fake_map;

/* An event, and how many launches there had been when it was last recorded, in which stream;
 * n_records 0: never. */
enum { FAKE_N_EVENTS = 8192, FAKE_N_WAITS = 64 };
typedef struct fake_event {
  int n_records, n_launches;
  CUstream stream;
  unsigned long long context_id; /* of the context that it was made in */
  int n_queries;                 /* since it was recorded */
} fake_event;
typedef struct fake_wait {
  CUstream stream;
  fake_event event; /* as it was */
  int n_launches;   /* before it */
} fake_wait;

typedef struct fake_driver {
  /* ---- what it is to do ---- */
  bool is_initialised; /* somebody has called cuInit */
  int n_devices;
  fake_device device[FAKE_MOST_DEVICES];
  /* the handle is the element's address; NULL is the default stream, numbered 0 */
  fake_stream stream[FAKE_N_STREAMS];
  const char *missing; /* this entry point does not exist */
  /* The first_failing-th call of the function (FAKE_ANY: of all together) up to the last_failing-th
   * answer so, and do nothing. */
  fake_function failing;
  int first_failing, last_failing;
  CUresult failure;
  int n_watched; /* calls of that function since it was named */
  /* any call ends the process with FAKE_EXIT_FORBIDDEN */
  bool is_forbidden;
  void (*before_call)(fake_function function); /* unless NULL; runs without a lock */
  /* Device memory is there, copies copy; and what the kernels compute, this does, with the lock. */
  void (*compute)(const fake_launch *l);
  size_t free_bytes; /* of each device; 0: 80 GiB */
  bool has_no_peers; /* devices cannot read each other's memory */
  int event_delay;   /* a recorded event has come when it is asked for so many times */

  /* ---- what it was asked ---- */
  int n_calls, n_calls_of[FAKE_N_FUNCTIONS];
  fake_function calls[FAKE_N_CALLS];
  int n_launches; /* refused ones are not counted */
  fake_launch launch[FAKE_N_LAUNCHES];
  int n_loads; /* images given to the driver with success */
  /* the globals of these names, once somebody asked where they are */
  ws_launch_state *states[FAKE_MOST_DEVICES];
  int n_events; /* made; the handle is the element's address */
  fake_event event[FAKE_N_EVENTS];
  int n_waits; /* of streams for events */
  fake_wait wait[FAKE_N_WAITS];
  uint64_t n_fallback[FAKE_MOST_DEVICES]; /* what the library reads of device memory itself */
  char *sums[FAKE_MOST_DEVICES];
  int n_allocs;        /* with success */
  size_t pinned_bytes; /* allocated, and not freed */
  /* the last that was allocated in the primary context, and its bytes */
  char *copies[FAKE_MOST_DEVICES];
  size_t copies_bytes[FAKE_MOST_DEVICES];
  int n_peer_copies; /* from another device's memory */
  int n_nodes;       /* the last ones are kept, the first at 0 */
  fake_node node[FAKE_N_NODES];
  bool is_capture_broken; /* a call came that a capturing stream does not survive */
  /* a function that the library has no business with was looked for or called */
  const char *trapped;
  /* something was used that is no more, or belongs to another context; NULL: nothing was */
  const char *misuse;
  int n_user_objects;   /* alive */
  char last_wanted[64]; /* the last name that was looked for in vain */
} fake_driver;
extern fake_driver fake;

#define FAKE_EXIT_FORBIDDEN 98

/* Forgets all calls and launches; what is to fail, memory, libraries and contexts stay. */
void fake_forget(void);

/* From now on the first .. last call of the function fails; none if last is 0. */
void fake_fail(fake_function function, int first, int last, CUresult failure);

/* Memory of whole pages; device memory without access. */
void *fake_alloc(fake_memory kind, int device, size_t bytes);

/* The calling thread's contexts. */
CUcontext fake_primary(int device);
CUcontext fake_other(int device); /* one that a program made for itself */
CUcontext fake_current(void);
int fake_depth(void);
void fake_set_current(CUcontext context); /* NULL: none */
CUstreamCaptureMode fake_capture_mode(void);

/* Ends a context, with its events and the globals in it; another with the same handle takes its
 * place: cudaDeviceReset, or cuCtxDestroy and cuCtxCreate. */
void fake_end_context(CUcontext context);
/* A green context, say: of the device's SMs it has so many. 0: all. */
void fake_limit_sms(CUcontext context, int n_sms);

/* The stream is destroyed; with the same handle another one is made, as real drivers do. */
void fake_end_stream(int stream);

/* Captures of their own, unlike streams that are just set to be captured: what the graph retains
 * goes with it, in another thread. */
void fake_begin_capture(int stream);
CUgraph fake_end_capture(int stream);
void fake_destroy_graph(CUgraph graph);
#endif
