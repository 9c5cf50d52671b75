/* offload_plan.h - how a product of host matrices is laid out for GPUs: where its matrices lie on a
 * device, the strips and panels that C is cut into, the transfers (what is copied at once), and a model
 * of the time it takes. Pure arithmetic.
 *
 *        panels of B
 *        +----+----+----+     A strip of C is the work that a device takes from the queue of all of them; with
 *      A +----+----+----+     it goes a strip of A (here), and every device needs all panels of B. A cell is
 *        +----+----+----+     what a strip and a panel have in common: C's unit for copies. Along n it is
 *                             the same with A and B exchanged. */
#ifndef WS_CUDA_OFFLOAD_PLAN_H
#define WS_CUDA_OFFLOAD_PLAN_H
#include <stddef.h>

#include "core/problem.h"
#include "cuda/host/device.h"

/* Of a matrix as it lies in memory. */
typedef struct ws_block {
  int64_t row, col, n_rows, n_cols;
} ws_block;

enum { WS_OF_A, WS_OF_B, WS_OF_C, WS_N_OFFLOADED };

typedef struct ws_offload_matrix {
  char *host;
  int64_t n_rows, n_cols, ld, device_ld; /* in elements, as all */
  int bytes;                             /* of an element */
  bool is_pinned;                        /* the driver copies it where it lies */
  size_t offset;                         /* in the device's memory */
} ws_offload_matrix;

typedef struct ws_offload_plan {
  const ws_problem *p;
  ws_offload_matrix matrix[WS_N_OFFLOADED];
  size_t device_bytes;
  bool is_staged; /* one of the matrices is not pinned */
  bool along_n;   /* strips are columns of C */
  int64_t strip, panel;
  int n_strips, n_panels;
  int most_transfers; /* of a cell */
} ws_offload_plan;

/* The matrices; not yet cut. is_pinned: of A, B, C. */
void ws_offload_plan_make(const ws_problem *p, const bool is_pinned[WS_N_OFFLOADED], ws_offload_plan *plan);
/* Into about so many panels, and as many strips for each of so many devices, if they are not too
 * small for a GPU to be busy with. Few where operands are split into slices, which is done anew for
 * each strip; more where nothing is, as copies and kernels overlap better. */
enum { WS_PARTS_OF_SLICES = 8, WS_MOST_PANELS = 16, WS_MOST_STRIPS = 32 };
void ws_offload_plan_cut(ws_offload_plan *plan, int n_parts, int n_devices);

/* The operand that goes with strips, or with panels, and the block of it; the block of C. */
int ws_offload_operand(const ws_offload_plan *plan, bool of_strip);
ws_block ws_offload_block(const ws_offload_plan *plan, bool of_strip, int i);
/* Of neighbouring strips and panels. */
ws_block ws_offload_cells(const ws_offload_plan *plan, int strip, int n_strips, int panel, int n_panels);

/* A block is copied by transfers, each of which a slot has room for: how many, and the i-th. */
int ws_offload_n_transfers(const ws_offload_matrix *matrix, const ws_block *block);
ws_block ws_offload_transfer(const ws_offload_matrix *matrix, const ws_block *block, int i);

/* The product of a part of C, where its matrices lie on a device, or on the host. */
ws_problem ws_offload_part(const ws_offload_plan *plan, const ws_block *of_c, const char *device_memory);

/* Seconds by the model: on so many devices with so many copying threads; on the CPU. */
typedef struct ws_offload_times {
  double link, staging, device, all, cpu;
} ws_offload_times;
ws_offload_times ws_offload_model(const ws_offload_plan *plan, int n_devices, int n_threads);
#endif
