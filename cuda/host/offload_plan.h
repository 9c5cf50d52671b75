/* offload_plan.h - how a product of host matrices is laid out for GPUs: which of its matrices lie on a
 * device, and where, the strips and panels that C is cut into, the transfers (what is copied at once).
 * Pure arithmetic.
 *
 *        panels of B
 *        +----+----+----+     A strip of C is the work that a device takes from the queue of all of them; with
 *      A +----+----+----+     it goes a strip of A (here), and every device needs all panels of B. A cell is
 *        +----+----+----+     what a strip and a panel have in common: C's unit for copies. Along n it is
 *                             the same with A and B exchanged. k is never cut.
 *
 * A device has places for so many strips and panels, and for what they have of C in common. Where that is
 * not all of them, panels pass by a group of strips that stays, in places that they leave to later ones.
 *
 * Products with a structure, a region or an epilogue, batches and systems are not cut: they are one cell. */
#ifndef WS_CUDA_OFFLOAD_PLAN_H
#define WS_CUDA_OFFLOAD_PLAN_H
#include <stddef.h>

#include "core/problem.h"
#include "core/system.h"
#include "cuda/host/device.h"

/* Of a matrix as it lies in memory, and of which product of a batch. */
typedef struct ws_block {
  int64_t row, col, n_rows, n_cols, product;
} ws_block;

/* The last three are an epilogue's. */
enum { WS_OF_A, WS_OF_B, WS_OF_C, WS_OF_BIAS, WS_OF_RESIDUAL, WS_OF_SUMS, WS_N_OFFLOADED };

typedef struct ws_offload_matrix {
  char *host;                                     /* NULL: there is none */
  int64_t n_rows, n_cols, ld, n_products, stride; /* in elements, as all */
  int64_t device_ld, device_stride;
  int bytes;       /* of an element */
  bool is_pinned;  /* the driver copies it where it lies */
  bool is_another; /* has the memory of one before it, or of C */
  uint8_t region;  /* what of it is read or written */
  size_t offset;   /* in the device's memory */
} ws_offload_matrix;

typedef struct ws_offload_plan {
  const ws_problem *p;
  const ws_system *system; /* or NULL; p: a product with its matrices */
  ws_offload_matrix matrix[WS_N_OFFLOADED];
  bool is_whole; /* one cell */
  bool reads_c;
  size_t device_bytes;
  bool is_staged; /* one of the matrices is not pinned */
  bool along_n;   /* strips are columns of C */
  int64_t strip, panel;
  int n_strips, n_panels;
  int strip_places, panel_places; /* on a device */
  int most_transfers;             /* of a cell */
} ws_offload_plan;

/* The matrices; not yet cut. is_pinned: of each of them. */
void ws_offload_plan_make(const ws_problem *p, const ws_system *system, const bool is_pinned[WS_N_OFFLOADED],
                          ws_offload_plan *plan);
/* Into about so many panels, and as many strips for each of so many devices, if they are not too
 * small for a GPU to be busy with, and places for them in so many bytes of each device. false: nothing has
 * room. Few parts where operands are split into slices, which is done anew for each strip; more where nothing is, as copies and
 * kernels overlap better; 1: C is one cell. */
enum {
  WS_PARTS_OF_SLICES = 8,
  WS_MOST_PANELS = 16, /* of operands that have room as a whole; places for them */
  WS_MOST_STRIPS = 32, /* places on a device */
};
bool ws_offload_plan_cut(ws_offload_plan *plan, int n_parts, int n_devices, size_t bytes);

/* The operand that goes with strips, or with panels, and the block of it; the block of C. */
int ws_offload_operand(const ws_offload_plan *plan, bool of_strip);
ws_block ws_offload_block(const ws_offload_plan *plan, bool of_strip, int i);
ws_block ws_offload_cell(const ws_offload_plan *plan, int strip, int panel);
/* The i-th matrix that comes with a strip, or panel; false: there are no more. */
bool ws_offload_input(const ws_offload_plan *plan, bool of_strip, int i, int *matrix);

/* Strips, or panels, in neighbouring places; the last one of them may be shorter than the others. */
typedef struct ws_places {
  int first, n, last; /* last: which strip, or panel, it is */
} ws_places;
/* What they have of C in common, in its places on a device. */
ws_block ws_offload_cells_in(const ws_offload_plan *plan, const ws_places *strips, const ws_places *panels);
/* From a block to its place: rows and columns to be added. */
typedef struct ws_shift {
  int64_t row, col;
} ws_shift;
ws_shift ws_offload_shift(const ws_offload_plan *plan, int matrix, int strip, int strip_place, int panel, int panel_place);

/* A block is copied by transfers, each of which a slot has room for: how many, and the i-th, which may be
 * empty. */
int ws_offload_n_transfers(const ws_offload_matrix *matrix, const ws_block *block);
ws_block ws_offload_transfer(const ws_offload_matrix *matrix, const ws_block *block, int i);
/* The same for what a cell gives back: C, and an epilogue's sums. */
int ws_offload_n_out(const ws_offload_plan *plan, int strip, int panel);
ws_block ws_offload_out(const ws_offload_plan *plan, int strip, int panel, int i, int *matrix);

/* The product of a part of C, in its places on a device, or (device_memory NULL) on the host. */
ws_problem ws_offload_part(const ws_offload_plan *plan, const ws_block *of_c, const char *device_memory);
/* What is one cell, on a device; second: of a product that has one. */
ws_problem ws_offload_whole(const ws_offload_plan *plan, const char *device_memory, ws_problem *second);
ws_system ws_offload_whole_system(const ws_offload_plan *plan, const char *device_memory);
#endif
