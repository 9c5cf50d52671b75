/* plan.h - which row, scheduler and grid a product gets. None of them changes the bits of C, except
 * that a row sums in its own way. */
#ifndef WS_CUDA_PLAN_H
#define WS_CUDA_PLAN_H
#include "core/tile.h"
#include "cuda/host/device.h"
#include "cuda/host/split.h"
#include "tune/tuning.h"

typedef struct ws_gpu_plan {
  const ws_problem *problem;
  ws_row_kind kind;       /* of the rows made for it */
  int n_slices;           /* WS_ROW_SLICED */
  int32_t mode_a, mode_b; /* ws_copy_mode */
  bool is_invariant;
  bool has_maps; /* WS_ROW_TF32: rows that take their operands by tensor maps can have it */
  /* tiled rows: of those by IEEE multiply-adds; so all but half precision, and that under
   * PEDANTIC */
  bool takes_fma;
  ws_split split;
  int row_idx;
  const ws_device_kernel *kernel;
  ws_tuned tuned;
  ws_sched sched;
  bool fixed_work;
  bool is_across; /* a bare entry that computes C as the transposed product (tma_maps.h) */
  uint32_t quantum;
  ws_tile_grid grid;
  int64_t n_items;
} ws_gpu_plan;

/* The rows that are to run this: those by maps (ws_is_by_map), if their operands can be brought to
 * them, else those of ws_gpu_plain_kind. *n_slices: of SLICED, else 0. Both from one look at the
 * handle, which another thread may change. */
ws_row_kind ws_gpu_kind_for(const ws_call *call, const ws_problem *p, const ws_device *device, int *n_slices);
ws_row_kind ws_gpu_plain_kind(const ws_call *call, const ws_problem *p);

/* Rows that read a structured operand where it lies, whose triangle need not be all there is in memory (not ffma's); and take a second
 * product of the same C with the first. */
static inline bool ws_reads_structure(ws_row_kind kind, wsgemm_type type) {
  return kind == WS_ROW_DMMA && (type == WSGEMM_F64 || type == WSGEMM_C64);
}

/* Products without a region have no second one, and do not say so. */
static inline bool ws_has_second(const ws_problem *p) { return p->c.region != WS_ALL && p->second; }

/* What the plan says before its row is chosen, and the least time of the rows that are made for it. */
ws_gpu_plan ws_gpu_plan_without_row(const ws_call *call, const ws_problem *p, const ws_device *device, ws_row_kind kind,
                                    int n_slices);
double ws_gpu_best_us(const ws_gpu_plan *plan, const ws_device *device);
/* Whether tiled rows, and those for vectors, are to be such of IEEE multiply-adds. */
bool ws_gpu_takes_fma(const ws_call *call, const ws_problem *p);

/* Into how many parts k is split for rows of that kind. */
ws_split ws_gpu_split_for(const ws_call *call, const ws_problem *p, const ws_device *device, ws_row_kind kind);

/* How many slices a packed operand of such products has; 0: they use none. */
int ws_gpu_slices_to_pack(const ws_call *call, const ws_problem *p, const ws_device *device);

/* The same for a call, which may lack the memory for it (gemm_plan.c; the library's own memory is
 * taken to be there). */
ws_row_kind ws_gpu_kind_in_workspace(const ws_call *call, const ws_problem *p, const ws_device *device, int *n_slices);

/* The device's context must be current. n_slices: of rows of that kind, else 0. Without a word of
 * what fails, so that a caller may do without: the driver's answer about the row's kernel. */
CUresult ws_gpu_plan_find(const ws_call *call, const ws_problem *p, ws_device *device, ws_row_kind kind, int n_slices,
                          ws_gpu_plan *plan);
/* Records why such a plan is none, if it is none. */
wsgemm_status ws_gpu_plan_tell(const ws_call *call, const ws_device *device, const ws_gpu_plan *plan, CUresult found);

/* Both. */
wsgemm_status ws_gpu_plan_make(const ws_call *call, const ws_problem *p, ws_device *device, ws_row_kind kind, int n_slices,
                               ws_gpu_plan *plan);

/* The same for a chunk of the product, with the whole's row: nothing is chosen anew. */
ws_gpu_plan ws_gpu_plan_of_chunk(const ws_gpu_plan *whole, const ws_problem *chunk);

/* Of rows with an entry for each pair of ops; those for groups stand in the same order. */
ws_entry ws_entry_of_ops(const ws_problem *p);

/* Whether a row may take the place of the one that was planned, with the same bits; and the model's
 * time of it. */
bool ws_gpu_plan_may_take(const ws_gpu_plan *plan, int row_idx);
double ws_gpu_plan_us(const ws_gpu_plan *plan, int row_idx, const ws_device *device);
ws_tuning_kind ws_gpu_tuning_kind(const ws_gpu_plan *plan);

/* Every part of a split product counts as a product. */
ws_tile_grid ws_gpu_plan_grid(const ws_problem *p, const ws_cuda_row *row, int64_t n_splits);
int64_t ws_gpu_plan_items(const ws_problem *p, const ws_cuda_row *row, const ws_tile_grid *grid);

/* Of the rows made for it the one whose total takes the least shared memory. */
int ws_gpu_plan_smallest_row(const ws_gpu_plan *plan);
#endif
