/* backend.h - what a backend is to the layers above: one table of functions. src/library.c names
 * the backends that are built in.
 *
 * WS_CPU works on host memory and is always there; WS_CUDA works on the memory of GPUs, and has the
 * functions that only devices need. */
#ifndef WS_BACKEND_H
#define WS_BACKEND_H
#include <stddef.h>

#include "core/groups.h"
#include "core/handle.h"
#include "core/problem.h"
#include "core/system.h"
#include "core/text.h"

typedef enum ws_place { WS_PLACE_HOST, WS_PLACE_DEVICE, WS_PLACE_BAD } ws_place;

/* What a thread does of some work; any number of them may come, but worker 0, the caller, for
 * certain. */
typedef void ws_backend_work(void *context, int worker);

typedef struct ws_backend {
  const char *name; /* "cpu", "cuda" */

  /* Runs a checked product with elements; explains in words how. device: as `place` said; the CPU's
   * is 0. */
  wsgemm_status (*gemm)(const ws_call *call, const ws_problem *p, int device);
  void (*explain)(const ws_call *call, const ws_problem *p, int device, ws_text *t);
  /* Groups of products, of which one has elements: checked, on the CPU; of a device ragged ones. If their
   * ends are in its memory it checks them, group by group; else NOT_SUPPORTED, which is nobody's error, means
   * that it has nothing for them together. */
  wsgemm_status (*grouped)(const ws_call *call, const ws_groups *groups, int device);
  /* The same for a triangular system. */
  wsgemm_status (*solve)(const ws_call *call, const ws_system *s, int device);
  void (*explain_solve)(const ws_call *call, const ws_system *s, int device, ws_text *t);
  /* Lines for wsgemm_machine and wsgemm_config. */
  void (*describe)(ws_text *t);
  void (*describe_build)(ws_text *t);

  /* Kernel rows. info: what the row says; other members stay as they are. find: -1: none is called
   * so. lacks: NULL, or what a usable row would need of this machine. */
  int (*row_count)(void);
  void (*row_info)(int row, wsgemm_kernel_info *info);
  int (*row_find)(const char *name);
  const char *(*row_lacks)(int row);

  /* Where tuning measures. */
  const struct ws_arena_class *arena;

  /* ---- the CPU only ---- */

  /* Runs work on up to n_workers threads, the caller's among them, to its end on all that came. */
  void (*together)(int n_workers, ws_backend_work *work, void *context);

  /* ---- devices only ---- */

  /* On the first call. find: looks for a driver; it takes the loader's lock, so the caller holds
   * none that a fork takes; by any thread, any number of times. start: takes what was found into
   * use, once, after it; false: there is no driver. Neither initialises a device. */
  void (*find)(void);
  bool (*start)(void);
  /* In a forked child, which has no device if its parent has used one. */
  void (*forked)(void);

  /* Where the matrices lie that the problem reads or writes; on BAD the status says what is
   * wrong. */
  ws_place (*place)(const ws_call *call, const ws_problem *p, int *device, wsgemm_status *status);
  /* Device memory that the call works faster with. */
  wsgemm_status (*workspace_bytes)(const ws_call *call, const ws_problem *p, int device, size_t *bytes);
  wsgemm_status (*solve_workspace_bytes)(const ws_call *call, const ws_system *s, int device, size_t *bytes);
  wsgemm_status (*set_workspace)(wsgemm_handle *h, void *workspace, size_t bytes);
  /* Device memory for the packed form of A, or B (src/api/packed.c), and of how many slices it is;
   * 0: products of such operands use none. */
  wsgemm_status (*packed_bytes)(const ws_call *call, const ws_problem *p, bool is_a, int device, int *n_slices, size_t *bytes);
  /* Makes it in packed->memory. */
  wsgemm_status (*prepack)(const ws_call *call, const wsgemm_packed *packed);
  /* Whether it begins in memory of this device's. */
  bool (*is_on)(const void *memory, int device);
  /* Host matrices on devices: a backend of its own, for products that it takes; the most memory that
   * it may pin. */
  const struct ws_backend *of_host;
  bool (*takes_host)(const ws_call *call, const ws_problem *p);
  void (*set_pinned_limit)(size_t bytes);
  /* Rows and columns that products by slices left to the fallback on the device so far. */
  wsgemm_status (*fallback_count)(wsgemm_handle *h, int device, int64_t *count);
} ws_backend;

/* What the row says of itself. */
static inline wsgemm_kernel_info ws_row_info(const ws_backend *backend, int row) {
  wsgemm_kernel_info info = {.struct_bytes = sizeof info, .backend = backend->name};
  backend->row_info(row, &info);
  return info;
}

/* By ws_backend_id; NULL: not built in. */
extern const ws_backend *const ws_backends[WS_N_BACKENDS];

/* The backend of devices; NULL: none is built in, or there is no driver, and every pointer is host
 * memory. */
extern const ws_backend *ws_devices;
#endif
