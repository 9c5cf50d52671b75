/* tma_maps.h - host side of wgmma_args.h: whether TMA can bring a problem's operands, and the
 * tensor maps for it. */
#ifndef WS_CUDA_TMA_MAPS_H
#define WS_CUDA_TMA_MAPS_H
#include "core/problem.h"
#include "cuda/host/device.h"
#include "cuda/shared/map_args.h"
#include "cuda/shared/wgmma_args.h"

/* A (or B), by lines: what is contiguous is a line. Strides are in elements. */
typedef struct ws_strided {
  const void *data;
  bool along_k;
  int64_t length, n_lines, ld, n_batch, stride; /* n_batch: those that differ */
  /* a product's, one stride after the other (slice_args.h); 1: the operand itself */
  int64_t n_slices;
} ws_strided;
ws_strided ws_strided_a(const ws_problem *p);
ws_strided ws_strided_b(const ws_problem *p);

/* A map of 16-bit elements, or of floats, as they are or (TFLOAT32) rounded: boxes of so many elements of so many lines; dims[1] lines
 * of dims[0] elements, dims[2] times, strides in bytes. */
CUresult ws_tma_encode(CUtensorMap *map, CUtensorMapDataType type, const void *data, const cuuint64_t dims[3],
                       const cuuint64_t strides[2], int box_length, int box_lines);

/* Of half precision. */
CUtensorMapDataType ws_tma_half(wsgemm_type type);

/* Whether rows by tensor maps can have floats as they are: all lines begin at whole 16 bytes. */
bool ws_maps_take(const ws_problem *p);
/* The maps of such a product; of one that is computed transposed, of ws_problem_across. */
CUresult ws_map_args_make(const ws_problem *p, const ws_cuda_row *row, ws_map_args *args);

/* Whether TMA takes them as they are: all begin at whole 16 bytes. */
bool ws_tma_takes_as_is(const ws_strided *x);

/* Whether sizes and strides are within TMA's limits. */
bool ws_tma_takes(const ws_problem *p);

/* Whether it is C = alpha * A * B of one type, of which TMA loads and stores everything as it is. */
bool ws_is_bare(const ws_problem *p);

/* Whether the row's bare entry had better compute C transposed (wgmma_model.h). */
bool ws_is_across(const ws_problem *p, const ws_cuda_row *row);

/* What of the arguments follows from problem and row, with A and B as they are given here; grid and
 * is_across are there. */
CUresult ws_wgmma_args_make(const ws_problem *p, const ws_strided *a, const ws_strided *b, const ws_cuda_row *row,
                            ws_wgmma_args *args);
#endif
