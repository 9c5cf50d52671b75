/* device.h - what the library keeps for each GPU, its limits, and for each context on it: its
 * kernels, and what is lent to calls (lending.h). All of it is made on first need, kept to the end
 * of the process, and read without a lock afterwards. */
#ifndef WS_CUDA_DEVICE_H
#define WS_CUDA_DEVICE_H
#include <stdint.h>
#include <string.h>

#include "core/handle.h"
#include "cuda/host/driver.h"
#include "cuda/host/lending.h"
#include "cuda/sched/sched.h"

typedef enum ws_row_kind {
  WS_ROW_TILED,  /* gemm.cuh */
  WS_ROW_VECTOR, /* the same, for m = 1 (bm = 1) or n = 1 (bn = 1) only */
  WS_ROW_WGMMA,  /* gemm_wgmma.cuh: 16-bit types on cc 9.0 */
  WS_ROW_SLICED, /* the same of floats split into slices of 16 bits */
  WS_ROW_DIRECT, /* gemm_direct.cuh: small and flat products of 16-bit types on cc 9.0 */
  /* gemm_dmma.cuh, gemm_ffma.cuh, gemm_outer.cuh: double precision, and floats and complex ones by multiply-adds, on cc 9.0 */
  WS_ROW_DMMA,
  WS_ROW_TF32, /* gemm_tf32.cuh: floats as slices of TF32 on cc 9.0 */
  WS_ROW_SMALL /* gemm_small.cuh: batches of small products on cc 9.0; a block has several matrices for an item */
} ws_row_kind;

/* Whether rows of the kind take their operands by tensor maps, if need be from copies of them. */
static inline bool ws_is_by_map(ws_row_kind kind) { return kind == WS_ROW_WGMMA || kind == WS_ROW_SLICED; }
/* Whether the rows have an entry point for each pair of ops, and (but those that stay) a block, or a cluster, for each item (small: for
 * some items). */
static inline bool ws_has_entry_for_ops(ws_row_kind kind) {
  return kind == WS_ROW_DIRECT || kind == WS_ROW_DMMA || kind == WS_ROW_TF32 || kind == WS_ROW_SMALL;
}
/* Whether warps copy the operands as they are, whatever their alignment, for others: gemm_dmma.cuh and its like. */
static inline bool ws_is_by_copies(ws_row_kind kind) { return kind == WS_ROW_DMMA || kind == WS_ROW_TF32; }
/* Whether they are compiled for one compute capability alone (10 * major + minor), the others from
 * the least one on. */
static inline bool ws_is_of_hopper(ws_row_kind kind) { return ws_is_by_map(kind) || ws_has_entry_for_ops(kind); }
enum { WS_LEAST_CC = 80, WS_BY_MAP_CC = 90 };

typedef struct ws_cuda_row {
  const char *name;   /* made from the row's values: "sgemm_simt_128x64x16_c2" */
  const char *family; /* what kernels.def calls its mainloop or product: "simt", ..., "wgmma" */
  wsgemm_type type;
  int bm, bn, bk, coarse, stages;
  int n_threads, shared_bytes, blocks; /* blocks: of an SM */
  /* of shared memory besides, for a split product without memory for its sums */
  int total_bytes;
  ws_row_kind kind;
  bool is_fma;        /* IEEE multiply-adds: what half precision is multiplied by under PEDANTIC */
  int cluster;        /* blocks that work together, each on an item of its own */
  bool splits;        /* has an entry point for split products */
  bool is_plain;      /* no beta, no epilogue, C of 16 bits */
  int cluster_splits; /* of an item, summed by as many blocks of the cluster */
  int cluster_m;      /* blocks of the cluster along m, which load B for each other */
  bool ping_pong;     /* items are stored while others are multiplied */
  int n_slices;       /* of an operand */
  int k_groups;       /* parts of k that groups of a block's warps sum */
  bool is_once;       /* non-persistent: a block, or cluster, for each item, which ends with it */
  bool is_flat;       /* direct: of flat.def */
  int slice_places;   /* tf32: of tf32w.def, with room for so many k blocks' slices of B; 0: of tf32.def */
  double rate;        /* relative speed on large products: see kernels.def */
  bool stays;         /* of the rows with entries for ops those whose blocks take items one after the other */
  bool of_groups;     /* has entry points for groups, too (rows/groups.h) */
  bool takes_maps;    /* tf32: of tf32m.def, whose operands come by tensor maps (tma_maps.h) */
  bool any_parts;     /* its entry points are those of all rows that differ in `cluster` alone (parts.h) */
} ws_cuda_row;

/* How much of a row's name its entry points' names begin with: not how many blocks share k, where these do not matter to them. */
static inline size_t ws_entry_length(const ws_cuda_row *row) {
  return row->any_parts ? (size_t)(strstr(row->name, "_k") - row->name) : strlen(row->name);
}

/* Of outer.def. */
static inline bool ws_is_outer(const ws_cuda_row *row) { return row->kind == WS_ROW_DMMA && row->stays; }

/* Blocks of the cluster along n, which load A for each other. */
static inline int ws_cluster_n(const ws_cuda_row *row) { return row->cluster / row->cluster_splits / row->cluster_m; }

/* Rates are those of an H200; us of an SM for a k of so many elements of an item, if all goes well. */
enum { WS_RATED_SMS = 132 };
static inline double ws_rated_us_per_k(const ws_cuda_row *row, double elements) {
  const double real = ws_types[row->type].n_real * ws_types[row->type].n_real;
  return elements / row->rate * 2 * real * WS_RATED_SMS * 1e-6;
}

/* How many clusters of so many blocks are resident, of one block an SM: those of 3 and more have to fit into a GPC, some of which have
 * fewer SMs (an H200's: of 4 and 8 by cudaOccupancyMaxActiveClusters, of 3 by times, of 16 a guess). */
static inline int ws_most_clusters(int cluster, int n_sms) {
  const int of_132 = cluster == 16 ? 7 : cluster == 8 ? 15 : cluster == 4 ? 30 : cluster == 3 ? 38 : WS_RATED_SMS / cluster;
  const int most = n_sms * of_132 / WS_RATED_SMS;
  return most > 1 ? most : 1;
}

int ws_cuda_row_count(void);
const ws_cuda_row *ws_cuda_row_at(int row_idx);

/* The entry points of a row: schedulers in software, those of Cluster Launch Control (cc >= 10.0),
 * split products, and these by Cluster Launch Control where they have no sums; of direct, dmma and tf32
 * rows one for each pair of ops, of some of these also for groups; of wgmma rows one for bare products (tma_maps.h). */
typedef enum ws_entry {
  WS_ENTRY_QUEUE,
  WS_ENTRY_CLC,
  WS_ENTRY_FOREACH,
  WS_ENTRY_SPLIT,
  WS_ENTRY_SPLIT_CLC,
  WS_ENTRY_NN,
  WS_ENTRY_NT,
  WS_ENTRY_TN,
  WS_ENTRY_TT,
  WS_ENTRY_GROUPS_NN,
  WS_ENTRY_GROUPS_NT,
  WS_ENTRY_GROUPS_TN,
  WS_ENTRY_GROUPS_TT,
  WS_ENTRY_BARE,
  WS_N_ENTRIES
} ws_entry;

enum { WS_MAX_DEVICES = 64 };

typedef struct ws_device_kernel {
  CUkernel kernel; /* NULL: not for this device */
  int blocks_per_sm;
} ws_device_kernel;

struct ws_device {
  int ordinal, n_sms, cc; /* cc: 10 * major + minor */
  /* memory in the order of a stream (cuMemAllocAsync), so also by nodes of a graph */
  bool has_pools;
  char name[64];
};

/* Once, before all else. */
void ws_device_init(void);

/* What is known of a device in any context; the driver is asked on the first call. On failure NULL,
 * with the status and its words recorded. */
const ws_device *ws_device_get(wsgemm_handle *h, int ordinal, wsgemm_status *status);

/* The device of the thread's context; -1: it has none. */
int ws_device_current(void);

/* The device in the context of the stream, if it says which (NULL, and streams of green contexts do
 * not), else in the thread's, if that is one of its own, else in its primary one; it is current
 * until ws_device_leave. Contexts are told apart by their ids, as later ones may get their handles
 * and addresses. On failure NULL, likewise, and nothing is to be left. */
ws_device *ws_device_enter(wsgemm_handle *h, int ordinal, CUstream stream, bool *is_pushed, wsgemm_status *status);
void ws_device_leave(bool is_pushed);

/* All below: of a device that was entered. */

/* An entry point of a row, loaded on the first call. NULL: there is none, for the given reason. */
const ws_device_kernel *ws_device_kernel_get(ws_device *device, int row_idx, ws_entry entry, CUresult *result);
/* Kernels that are no rows: X(enumerator, its entry point's name, image). Those that there are
 * several of stand by type (of C: scale C by beta and the epilogue; sums of columns, of real
 * types), or by the number of slices, of floats, then of complex numbers. */
#define WS_PLAIN_KERNELS(X)                               \
  X(SCALE, "sscale", ELEMENTWISE)                         \
  X(SCALE_D, "dscale", ELEMENTWISE)                       \
  X(SCALE_C, "cscale", ELEMENTWISE)                       \
  X(SCALE_Z, "zscale", ELEMENTWISE)                       \
  X(SCALE_H, "hscale", ELEMENTWISE)                       \
  X(SCALE_B, "bscale", ELEMENTWISE)                       \
  X(COLUMN_SUMS, "scolumn_sums", ELEMENTWISE)             \
  X(COLUMN_SUMS_D, "dcolumn_sums", ELEMENTWISE)           \
  X(COLUMN_SUMS_C, "ccolumn_sums", ELEMENTWISE)           \
  X(COLUMN_SUMS_Z, "zcolumn_sums", ELEMENTWISE)           \
  X(COLUMN_SUMS_H, "hcolumn_sums", ELEMENTWISE)           \
  X(COLUMN_SUMS_B, "bcolumn_sums", ELEMENTWISE)           \
  X(ALIGN_COPY, "align_copy", ELEMENTWISE)                \
  X(FLOAT_COPY, "float_copy", ELEMENTWISE)                \
  X(FILL, "fill", ELEMENTWISE)                            \
  X(COMPARE, "compare", ELEMENTWISE)                      \
  X(MAXIMA, "maxima", SLICED)                             \
  X(SLICES, "sslices_1", SLICED)                          \
  X(SLICES_S2, "sslices_2", SLICED)                       \
  X(SLICES_S3, "sslices_3", SLICED)                       \
  X(SLICES_C1, "cslices_1", SLICED)                       \
  X(SLICES_C2, "cslices_2", SLICED)                       \
  X(SLICES_C3, "cslices_3", SLICED)                       \
  X(FALLBACK, "sfallback", SLICED)                        \
  X(FALLBACK_C, "cfallback", SLICED)                      \
  X(STRUCTURED_MAXIMA, "sstructured_maxima", SLICED)      \
  X(STRUCTURED_MAXIMA_C, "cstructured_maxima", SLICED)    \
  X(STRUCTURED_SLICES, "sstructured_slices_1", SLICED)    \
  X(STRUCTURED_SLICES_S2, "sstructured_slices_2", SLICED) \
  X(STRUCTURED_SLICES_S3, "sstructured_slices_3", SLICED) \
  X(STRUCTURED_SLICES_C1, "cstructured_slices_1", SLICED) \
  X(STRUCTURED_SLICES_C2, "cstructured_slices_2", SLICED) \
  X(STRUCTURED_SLICES_C3, "cstructured_slices_3", SLICED) \
  X(EXPAND, "sexpand_structured", SLICED)                 \
  X(EXPAND_C, "cexpand_structured", SLICED)               \
  X(SLICED_SOLVE, "ssolve_sliced", SLICED)                \
  X(TRIANGLE, "striangle", TRIANGLE)                      \
  X(TRIANGLE_D, "dtriangle", TRIANGLE)                    \
  X(TRIANGLE_C, "ctriangle", TRIANGLE)                    \
  X(TRIANGLE_Z, "ztriangle", TRIANGLE)                    \
  X(SOLVE, "ssolve", TRIANGLE)                            \
  X(SOLVE_D, "dsolve", TRIANGLE)                          \
  X(SOLVE_C, "csolve", TRIANGLE)                          \
  X(SOLVE_Z, "zsolve", TRIANGLE)                          \
  X(WRITE_OUT, "swrite_out", TRIANGLE)                    \
  X(WRITE_OUT_D, "dwrite_out", TRIANGLE)                  \
  X(WRITE_OUT_C, "cwrite_out", TRIANGLE)                  \
  X(WRITE_OUT_Z, "zwrite_out", TRIANGLE)                  \
  X(COPY_LINES, "scopy_lines", TRIANGLE)                  \
  X(COPY_LINES_D, "dcopy_lines", TRIANGLE)                \
  X(GROUPED, "hgrouped_m", GROUPED)                       \
  X(GROUPED_HK, "hgrouped_k", GROUPED)                    \
  X(GROUPED_HR, "hgrouped_ragged_k", GROUPED)             \
  X(GROUPED_B, "bgrouped_m", GROUPED)                     \
  X(GROUPED_BK, "bgrouped_k", GROUPED)                    \
  X(GROUPED_BR, "bgrouped_ragged_k", GROUPED)             \
  X(NARROW, "hgrouped_narrow_m", GROUPED)                 \
  X(NARROW_HK, "hgrouped_narrow_k", GROUPED)              \
  X(NARROW_HR, "hgrouped_narrow_ragged_k", GROUPED)       \
  X(NARROW_B, "bgrouped_narrow_m", GROUPED)               \
  X(NARROW_BK, "bgrouped_narrow_k", GROUPED)              \
  X(NARROW_BR, "bgrouped_narrow_ragged_k", GROUPED)
typedef enum ws_plain_kernel {
#define WS_PLAIN_KERNEL_ENUM(enumerator, name, image) WS_KERNEL_##enumerator,
  WS_PLAIN_KERNELS(WS_PLAIN_KERNEL_ENUM)
#undef WS_PLAIN_KERNEL_ENUM
      WS_N_PLAIN_KERNELS
} ws_plain_kernel;
_Static_assert((int)WS_KERNEL_COLUMN_SUMS == (int)WS_KERNEL_SCALE + WS_N_TYPES &&
                   (int)WS_KERNEL_ALIGN_COPY == (int)WS_KERNEL_COLUMN_SUMS + WS_N_TYPES,
               "one for each type");
/* Shared memory of a block of WS_KERNEL_TRIANGLE + type, and of WS_KERNEL_SOLVE + type for a
 * system of n rows, of which there may be so many. */
int ws_triangle_shared_bytes(wsgemm_type type);
int ws_solve_shared_bytes(wsgemm_type type, int64_t n);
int64_t ws_solve_n(const ws_device *device, wsgemm_type type);
/* WS_KERNEL_SCALE + type */
CUkernel ws_device_plain_kernel(ws_device *device, int which, CUresult *result);

/* Where a variable of an image is. */
CUresult ws_device_global(ws_device *device, int image_idx, const char *name, void **at);
/* Whether the reason of a failure is the device, which has no such kernel or image and never will;
 * else the same may work later. */
bool ws_device_lacks(CUresult result);
ws_lending *ws_device_lending(ws_device *device);
/* What is kept for host matrices (offload_site.h); NULL at first. */
struct ws_offload_site **ws_device_site(ws_device *device);

/* How many rows and columns products of slices have left to the fallback so far in the context that
 * ws_device_enter would enter, 0 if the library has not used the device; waits for its default
 * stream. */
wsgemm_status ws_device_fallback_count(wsgemm_handle *h, int ordinal, uint64_t *n_fallback);

/* Records a failed call of the driver, with the error's name. NO_DEVICE (also where the driver was
 * lost by fork()); ALLOC_FAILED: the device is full; else DEVICE_ERROR. */
wsgemm_status ws_fail_cuda(wsgemm_handle *h, const char *what, CUresult result);
/* The same of a kernel that is not to be had: ARCH_MISMATCH if the device has none of this name and
 * never will. */
wsgemm_status ws_fail_kernel(wsgemm_handle *h, const char *name, const ws_device *device, CUresult result);
#endif
