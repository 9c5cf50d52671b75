/* slices.h - host side of slice_args.h: products of floats, and of complex ones, by slices of 16
 * bits. Which products those are, where the slices are, and the arguments of the kernels before and
 * after the product. */
#ifndef WS_CUDA_SLICES_H
#define WS_CUDA_SLICES_H
#include "cuda/host/chunks.h"
#include "cuda/host/device.h"
#include "cuda/host/tma_maps.h"
#include "cuda/shared/fallback_args.h"
#include "cuda/shared/slice_args.h"

/* How many slices an operand has at first in this problem's numerics class: 1, 2 (and 3 where those
 * will not do); 0: its products are multiply-adds. */
int ws_n_slices(const ws_call *call, const ws_problem *p);

/* Whether slices may be used (limits of k and of sizes). */
bool ws_slices_fit(const ws_problem *p);

/* Memory for slices and what belongs to them: of one slice, and of two or three. */
ws_chunk_bytes *ws_sliced_bytes(int n_slices);

/* A chunk's operands in its memory. */
typedef struct ws_sliced {
  ws_slice_args args; /* for both operands */
  ws_strided a, b;    /* the slices */
  ws_wgmma_scales scales;
  bool counts_a, counts_b; /* whether its marks have not been counted in this call */
} ws_sliced;

/* n_first: slices that an operand has at first (ws_n_slices); n_slices: the same, or the three
 * after two, which take their place. a_at, b_at: begin at whole 256 bytes. */
ws_sliced ws_sliced_make(const ws_problem *chunk, const ws_chunk_place *place, int n_first, int n_slices, char *a_at, char *b_at);

/* Whether both operands have the same slices, which are then A's. */
bool ws_slices_are_shared(const ws_problem *p);

/* Whether A, or B, comes in a packed form of so many slices. */
bool ws_is_packed(const ws_problem *p, bool is_a, int n_slices);

/* Device memory for the packed form of A, or B; and what makes it there: both passes, and of two
 * slices the trial of three after them. */
double ws_packed_bytes(const ws_problem *p, bool is_a, int n_slices);
ws_slice_args ws_packing_args(const wsgemm_packed *packed, int n_slices);

/* Which kernel splits them (ws_plain_kernel), and the parts that it works on, each by a block at a
 * time; 0: there is nothing to split. */
int ws_slices_kernel(const ws_slice_args *args);
double ws_slice_parts(const ws_slice_args *args);

bool ws_slices_are_structured(const ws_slice_args *args);

/* For the fallback: how a structured operand is written out, in the memory of its slices; turns the
 * chunk into one of that. false: there is none. */
bool ws_expand(const ws_sliced *sliced, ws_problem *chunk, ws_expand_args *args);

ws_fallback_args ws_fallback_args_of(const ws_problem *chunk, const ws_sliced *sliced);
#endif
