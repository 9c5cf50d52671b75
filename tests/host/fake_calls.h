/* fake_calls.h - calls on the fake driver's device memory, each watched for what is promised of
 * every call: it allocates nothing but what the library has once, waits for nothing, leaves the
 * thread's contexts and capture mode and any capture as they were, and launches nothing if it
 * fails.
 *
 * The library keeps what it has learnt of a driver, so every case runs in a child that is the first
 * to use it: CHILD_CASE. */
#ifndef WSGEMM_TESTS_FAKE_CALLS_H
#define WSGEMM_TESTS_FAKE_CALLS_H
#include "cuda/host/device.h"
#include "fake_driver.h"
#include "support/rows.h"

#define CHILD_CASE(name)                                                \
  static void name##_child(void *unused);                               \
  static void name(void) { check_in_child(#name, name##_child, NULL); } \
  static void name##_child(void *unused)

/* The rows of cuda/rows/kernels.def. */
extern const ws_cuda_row *const gpu_rows;
/* The rows of any GPU come first; then those on Hopper's tensor cores (test_backend_wgmma.c). */
extern const int n_gpu_rows, n_all_gpu_rows;
const ws_cuda_row *gpu_row_named(const char *name);
const ws_cuda_row *gpu_row_with(wsgemm_type type, int bm, int bn, int coarse);
/* The row whose kernel was launched; NULL: the kernel is no row's. And whether that is one of the
 * family, or an entry point of split-k. */
const ws_cuda_row *row_of(const fake_launch *l);
bool is_of(const fake_launch *l, const char *family);
bool is_split(const fake_launch *l);
int64_t gpu_row_items(const ws_cuda_row *row, int64_t m, int64_t n, int64_t batch_count);
wsgemm_handle *handle_of_row(const ws_cuda_row *row);

/* A problem with all matrices on one device, column-major, no transposes; its memory is large
 * enough for 4 MiB each. */
wsgemm_gemm_desc device_desc(wsgemm_type type, int64_t m, int64_t n, int64_t k, int device);
/* The same that the row can run: m or n becomes 1 where it must be. */
wsgemm_gemm_desc row_desc(const ws_cuda_row *row, int64_t m, int64_t n, int64_t k, int device);
/* On device 0, with ops and lds: 0 NN, 1 NT, 2 TN, 3 TT. */
wsgemm_gemm_desc ops_desc(wsgemm_type type, int ops, int64_t m, int64_t n, int64_t k);
/* of this device, once and for all; with room for 3 matrices of 4 MiB */
void *device_memory(int device);

/* A Level 3 call of squares, in device memory without access: alpha = 1, beta = 0. */
wsgemm_level3_desc level3_device_desc(wsgemm_routine routine, wsgemm_type type, int64_t n);

/* The watched call. What it launched is in fake.launch, and nothing from before it. */
wsgemm_status watched_gemm(wsgemm_handle *h, const wsgemm_gemm_desc *d);
/* The same, which must succeed with one launch. */
const fake_launch *launch_of(wsgemm_handle *h, const wsgemm_gemm_desc *d);
/* The same, which must fail so, with words that hold the text. */
void expect_failure(wsgemm_handle *h, const wsgemm_gemm_desc *d, wsgemm_status status, const char *words);

/* What rows that work out an item's place in every thread divide by is the grid's and the cluster's. */
void check_divisors(const ws_cuda_row *row, const fake_launch *l);

/* Every row of the kind on cc 9.0: one launch however the operands lie, a block or a cluster for each item
 * whatever the policy, the entry point of the ops; and what else there is to be checked of the row's launch. */
void check_launches_by_ops(ws_row_kind kind, void (*check_more)(const ws_cuda_row *row, const fake_launch *l));

/* Whether a launch writes C, or the sums of its columns: all but those that copy operands or split
 * them into slices. */
bool writes_output(const fake_launch *l);
/* How many of those that are written down do. */
int n_writing_launches(void);

/* A product on host memory must be right, and no launch. */
void expect_cpu_works(const char *when);
#endif
