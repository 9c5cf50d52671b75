/* wgmma_maps.h - host side of wgmma_args.h: whether the copy engine can bring a problem's operands, and the tensor maps for it. */
#ifndef WS_CUDA_WGMMA_MAPS_H
#define WS_CUDA_WGMMA_MAPS_H
#include "core/internal.h"
#include "cuda/host/device.h"
#include "cuda/shared/wgmma_args.h"

/* A (or B), by lines: what is contiguous is a line. Strides are in elements. */
typedef struct ws_lines {
  const void *data;
  bool along_k;
  int64_t length, n_lines, ld, n_products, stride; /* n_products: those that differ */
  int64_t n_slices; /* a product's, one stride after the other (slice_args.h); 1: the operand itself */
} ws_lines;
ws_lines ws_lines_of_a(const ws_problem *p);
ws_lines ws_lines_of_b(const ws_problem *p);

/* Whether the copy engine takes them as they stand: all begin at whole 16 bytes. */
bool ws_lines_are_whole(const ws_lines *x);

/* Whether sizes and strides are within the copy engine's limits. */
bool ws_wgmma_takes(const ws_problem *p);

/* What of the arguments follows from problem and row, with A and B as they are given here. */
CUresult ws_wgmma_args_make(const ws_problem *p, const ws_lines *a, const ws_lines *b, const ws_cuda_row *row,
                            ws_wgmma_args *args);
#endif
