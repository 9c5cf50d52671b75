/* launch.h - a launch, written down: what the planner says (lower.h) and the executor does
 * (executor.h). And entries for kernels of any number of blocks, whose threads step over what there
 * is. */
#ifndef WS_CUDA_LAUNCH_H
#define WS_CUDA_LAUNCH_H
#include "cuda/host/device.h"
#include "cuda/host/slices.h"
#include "cuda/shared/align_copy_args.h"
#include "cuda/shared/arena_args.h"
#include "cuda/shared/copied_args.h"
#include "cuda/shared/float_copy_args.h"
#include "cuda/shared/group_args.h"
#include "cuda/shared/grouped_args.h"
#include "cuda/shared/map_args.h"
#include "cuda/shared/small_args.h"
#include "cuda/shared/triangle_args.h"

/* How a kernel's blocks begin: in the order of the stream, when the launch before has ended; all at
 * once, or none of them (cooperative); or as soon as there is room (programmatic dependent launch),
 * because the kernel itself waits for the launch before (griddepcontrol.wait, cc >= 9.0;
 * docs/scheduling.md says why that is right). */
typedef enum ws_begin { WS_BEGIN_STREAM_ORDERED, WS_BEGIN_COOPERATIVE, WS_BEGIN_PDL } ws_begin;

/* What becomes of a launch that gets a launch state: its items are stolen. Without, it has the same
 * items, unstolen. */
typedef struct ws_stealing {
  bool is_wanted;
  uint32_t quantum;
  /* n_resident: workers (blocks, or clusters) that the device has room for */
  int64_t n_resident, n_blocks;
} ws_stealing;

typedef struct ws_launch {
  const char *what; /* in messages */
  CUkernel kernel;
  int64_t n_blocks;
  int n_threads, shared_bytes, cluster; /* cluster: blocks that are placed together */
  ws_begin begin;
  ws_stealing stealing;
  int64_t sums_bytes;         /* needs a launch state and so much memory for partial sums; 0: neither */
  bool is_by_map, is_grouped; /* which arguments; neither: gemm */
  const void *more;           /* a second parameter; NULL: none */
  bool writes_output;         /* C or the sums of its columns; else only memory that is the call's own */
  union {
    ws_gemm_args gemm;
    ws_copied_args copied;   /* begins with gemm */
    ws_small_args small;     /* likewise */
    ws_map_args maps;        /* likewise */
    ws_wgmma_args wgmma;     /* is_by_map */
    ws_grouped_args grouped; /* is_grouped */
    ws_group_args groups;
    ws_align_copy_args align_copy;
    ws_float_copy_args float_copy;
    ws_slice_args slices;
    ws_expand_args expand;
    ws_fallback_args fallback;
    ws_column_sums_args column_sums;
    ws_arena_args arena;
    ws_triangle_args triangle;
  } args;
} ws_launch;

/* What belongs to a chunk of C, or comes before or after all of them. */
enum { WS_MOST_LAUNCHES = 9 };
typedef struct ws_launch_list {
  int n;
  /* after its execution: a launch could not be made for want of memory for sums, or of SMs */
  bool lacks_sums;
  ws_launch entry[WS_MOST_LAUNCHES];
} ws_launch_list;
/* One more, as it is given; its arguments are the caller's to fill in. */
ws_launch *ws_launch_add(ws_launch_list *list, const char *what, CUkernel kernel, int64_t n_blocks, int n_threads,
                         int shared_bytes, ws_begin begin);

CUresult ws_launch_make(const ws_launch *launch, CUstream stream);

/* Those of elementwise.cuh: C = beta C and the steps of its epilogue; the sums of its columns;
 * copies of operands. */
wsgemm_status ws_add_scale(wsgemm_handle *h, const ws_problem *p, ws_device *device, ws_launch_list *list);
wsgemm_status ws_add_column_sums(wsgemm_handle *h, const ws_problem *p, ws_device *device, ws_launch_list *list);
wsgemm_status ws_add_align_copy(wsgemm_handle *h, const ws_align_copy_args *args, ws_device *device, ws_launch_list *list);
wsgemm_status ws_add_float_copy(wsgemm_handle *h, const ws_float_copy_args *args, ws_device *device, ws_launch_list *list);

/* Those of triangle.cuh. add_n: size of the blocks of WS_TRIANGLE_ADD. */
wsgemm_status ws_add_triangle(wsgemm_handle *h, wsgemm_type type, const ws_triangle_args *args, int add_n, ws_device *device,
                              ws_launch_list *list);
wsgemm_status ws_add_write_out(wsgemm_handle *h, wsgemm_type type, const ws_triangle_args *args, ws_device *device,
                               ws_launch_list *list);
wsgemm_status ws_add_copy_lines(wsgemm_handle *h, wsgemm_type type, const ws_triangle_args *args, ws_device *device,
                                ws_launch_list *list);

/* Those of slices.cuh that split operands into slices: both passes, or of three slices, whose
 * scales are known, the second; that of fallback.cuh. */
wsgemm_status ws_add_slices(wsgemm_handle *h, const ws_slice_args *args, ws_device *device, ws_launch_list *list);
wsgemm_status ws_add_expand(wsgemm_handle *h, wsgemm_type type, const ws_expand_args *args, ws_device *device,
                            ws_launch_list *list);
wsgemm_status ws_add_fallback(wsgemm_handle *h, wsgemm_type type, const ws_fallback_args *args, ws_device *device,
                              ws_launch_list *list);
#endif
