/* test_backend_offload.c - host matrices on GPUs, without one: the fake driver's memory is there, its
 * copies copy, and what its kernels compute, this file does. So C can be checked: for all types of
 * layouts and ops, one to three devices, pageable and pinned matrices, and for any call of the
 * driver that fails. */
#define _GNU_SOURCE
#include "fake_calls.h"

#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- what a kernel computes ------------------------------------------------------------------- */

static double element(const ws_operand *x, int64_t b, int64_t i, int64_t k) {
  return ((const double *)x->data)[b * x->stride + i * x->step_mn + k * x->step_k];
}

static void compute_product(const ws_gemm_args *g, int64_t b) {
  double alpha, beta;
  memcpy(&alpha, &g->alpha, sizeof alpha), memcpy(&beta, &g->beta, sizeof beta);
  double *sums = malloc((size_t)g->m * sizeof *sums);
  for (int64_t j = 0; j < g->n; j++) {
    double *c = (double *)g->c + b * g->stride_c + j * g->ldc;
    for (int64_t i = 0; i < g->m; i++) sums[i] = 0;
    for (int64_t k = 0; k < g->k; k++) {
      const double factor = element(&g->b, b, j, k);
      for (int64_t i = 0; i < g->m; i++) sums[i] += element(&g->a, b, i, k) * factor;
    }
    for (int64_t i = 0; i < g->m; i++)
      if (ws_region_wants(&g->region, i, j)) c[i] = alpha * sums[i] + (g->beta_zero ? 0 : beta * c[i]);
  }
  free(sums);
}

/* What is done to C behind its product. */
static void compute_steps(const ws_gemm_args *g, int64_t b) {
  const ws_epilogue_args *e = &g->epilogue;
  for (int64_t j = 0; j < g->n; j++)
    for (int64_t i = 0; i < g->m; i++)
      ((double *)g->c)[b * g->stride_c + i + j * g->ldc] +=
          ((const double *)e->residual)[b * e->stride_residual + i + j * e->ld_residual];
}

/* Lines of elements of 16 bits. */
static void compute_copy(const ws_align_copy_operand *o) {
  for (int64_t line = 0; line < o->n_lines; line++)
    memcpy((uint16_t *)o->to + line * o->pitch, (const uint16_t *)o->from + line * o->ld, (size_t)o->length * 2);
}

/* Of doubles, on cc 8.0: one launch computes its whole product. Integers, so exact in any order. */
static void compute(const fake_launch *l) {
  const ws_gemm_args *g = &l->args;
  if (strcmp(l->kernel, "align_copy") == 0) {
    for (int i = 0; i < 2; i++) compute_copy(&l->pitch.operand[i]);
    return;
  }
  if (strcmp(l->kernel, "dscale") == 0) {
    for (int64_t b = 0; b < g->grid.n_batch; b++) compute_steps(g, b);
    return;
  }
  const int64_t n_parts = g->split.n_splits > 1 ? g->split.n_splits : 1; /* of a product, in the grid */
  for (int64_t b = 0; b < g->grid.n_batch / n_parts; b++) compute_product(g, b);
}

/* ---- products ---------------------------------------------------------------------------------- */

typedef struct host_product {
  int64_t m, n, k, lda, ldb, ldc;
  wsgemm_layout layout;
  wsgemm_op transa, transb;
  double alpha, beta;
  bool is_pinned;
  double *a, *b, *c, *before;
  size_t n_a, n_b, n_c;
} host_product;

enum { GAP = 3 };

static double *matrix(bool is_pinned, size_t n) {
  double *x = is_pinned ? fake_alloc(FAKE_PINNED, 0, n * sizeof *x) : malloc(n * sizeof *x);
  for (size_t i = 0; i < n; i++) x[i] = (double)((i * 2654435761u >> 7) % 9) - 4;
  return x;
}

/* Lines of a matrix as it lies in memory, with a gap after each. */
static void lines_of(const host_product *p, wsgemm_op op, int64_t rows, int64_t cols, int64_t *ld, size_t *n) {
  const bool is_along_rows = (p->layout == WSGEMM_COL_MAJOR) == (op == WSGEMM_NO_TRANS);
  *ld = (is_along_rows ? rows : cols) + GAP;
  *n = (size_t)*ld * (size_t)(is_along_rows ? cols : rows);
}

static void make(host_product *p) {
  lines_of(p, p->transa, p->m, p->k, &p->lda, &p->n_a);
  lines_of(p, p->transb, p->k, p->n, &p->ldb, &p->n_b);
  lines_of(p, WSGEMM_NO_TRANS, p->m, p->n, &p->ldc, &p->n_c);
  p->a = matrix(p->is_pinned, p->n_a), p->b = matrix(p->is_pinned, p->n_b), p->c = matrix(p->is_pinned, p->n_c);
  p->before = malloc(p->n_c * sizeof *p->before);
  memcpy(p->before, p->c, p->n_c * sizeof *p->before);
}

static void reset(const host_product *p) { memcpy(p->c, p->before, p->n_c * sizeof *p->c); }

static wsgemm_status run(wsgemm_handle *h, const host_product *p) {
  return wsgemm_dgemm(h, p->layout, p->transa, p->transb, p->m, p->n, p->k, p->alpha, p->a, p->lda, p->b, p->ldb, p->beta, p->c,
                      p->ldc);
}

/* By the CPU, once for each product; gaps too. */
static double *expected_of(const host_product *p) {
  double *expected = malloc(p->n_c * sizeof *expected);
  host_product cpu = *p;
  cpu.c = expected;
  memcpy(expected, p->before, p->n_c * sizeof *expected);
  CHECK(run(NULL, &cpu) == WSGEMM_SUCCESS, "on the CPU: %s", wsgemm_last_error());
  return expected;
}

static bool is_right(const host_product *p, const double *expected) { return memcmp(p->c, expected, p->n_c * sizeof *p->c) == 0; }

/* Both slots and strips several times over. */
static host_product product_of(bool is_pinned, double beta) {
  return (host_product){.m = 2100,
                        .n = 2500,
                        .k = 5,
                        .layout = WSGEMM_COL_MAJOR,
                        .transa = WSGEMM_NO_TRANS,
                        .transb = WSGEMM_NO_TRANS,
                        .alpha = 2,
                        .beta = beta,
                        .is_pinned = is_pinned};
}

static wsgemm_handle *handle_on(int n_devices) {
  const int all[] = {0, 1, 2, 3, 4, 5, 6, 7};
  wsgemm_handle *h;
  CHECK(wsgemm_create(&h) == WSGEMM_SUCCESS && wsgemm_set_devices(h, all, n_devices) == WSGEMM_SUCCESS, "a handle");
  wsgemm_set_num_threads(h, 4);
  return h;
}

static void begin(int n_devices) {
  fake.compute = compute, fake.n_devices = n_devices, fake.is_initialised = false, fake.event_delay = 2;
}

static int n_launches_on(int device) {
  int n = 0;
  for (int i = 0; i < fake.n_launches && i < FAKE_N_LAUNCHES; i++) n += fake.launch[i].device == device;
  return n;
}

static void check_product(host_product *p, int n_devices) {
  make(p);
  double *expected = expected_of(p);
  wsgemm_handle *h = handle_on(n_devices);
  fake_forget();
  const wsgemm_status status = run(h, p);
  CHECK(status == WSGEMM_SUCCESS && is_right(p, expected), "%d devices, m = %lld, beta = %g, pinned %d: %s", n_devices,
        (long long)p->m, p->beta, p->is_pinned, wsgemm_last_error());
  CHECK(fake.n_launches > 0, "the CPU worked on it: %s", wsgemm_last_error());
  CHECK(!fake.misuse, "%s", fake.misuse);
  CHECK(fake_depth() == 0 && fake_capture_mode() == CU_STREAM_CAPTURE_MODE_GLOBAL, "the thread is not as it was");
  wsgemm_destroy(h);
  free(expected);
}

CHILD_CASE(layouts_and_ops) {
  (void)unused;
  begin(1);
  for (int pinned = 0; pinned < 2; pinned++)
    for (int i = 0; i < 8; i++) {
      host_product p = product_of(pinned, i % 3);
      p.layout = i & 1 ? WSGEMM_ROW_MAJOR : WSGEMM_COL_MAJOR;
      p.transa = i & 2 ? WSGEMM_TRANS : WSGEMM_NO_TRANS, p.transb = i & 4 ? WSGEMM_TRANS : WSGEMM_NO_TRANS;
      check_product(&p, 1);
    }
}

/* Tall, wide, long, and a row: lines of all lengths. */
CHILD_CASE(shapes) {
  (void)unused;
  begin(1);
  const int64_t shapes[][3] = {{5000, 300, 12}, {300, 5000, 12}, {30, 40, 15000},
                               {1, 9000, 2000}, {300000, 8, 8},  {1025, 1023, 17}};
  for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
    host_product p = product_of(i & 1, 1);
    p.m = shapes[i][0], p.n = shapes[i][1], p.k = shapes[i][2];
    check_product(&p, 1);
  }
}

CHILD_CASE(several_devices) {
  (void)unused;
  begin(3);
  for (int n_devices = 2; n_devices <= 3; n_devices++)
    for (int i = 0; i < 4; i++) {
      host_product p = product_of(i & 1, i & 2);
      p.m = 5000, p.k = 2;
      check_product(&p, n_devices);
      for (int device = 0; device < n_devices; device++)
        CHECK(n_launches_on(device) > 0, "device %d of %d had nothing to do: %s", device, n_devices, wsgemm_last_error());
    }
}

static void expect_cpu(wsgemm_handle *h, host_product *p, const char *when);

/* Times that the stream had been told to wait, when so many launches had been made. */
static int n_waits_of(CUstream stream, int n_launches) {
  int n = 0;
  for (int i = 0; i < fake.n_waits && fake.wait[i].n_launches <= n_launches; i++) n += fake.wait[i].stream == stream;
  return n;
}

/* Launches behind which there is no event in their stream when the next one is made. */
static int n_without_event;
static void compute_and_look(const fake_launch *l) {
  const int n_before = (int)(l - fake.launch);
  bool has_event = n_before == 0;
  for (int i = 0; i < fake.n_events && !has_event; i++)
    has_event = fake.event[i].n_records > 0 && fake.event[i].n_launches == n_before &&
                fake.event[i].stream == fake.launch[n_before - 1].stream;
  n_without_event += !has_event;
  compute(l);
}

/* Parts are launched on several streams in turn; each stream waits for all that has arrived, the event of a part is
 * that of its stream, and all streams are waited for. */
CHILD_CASE(streams_of_parts) {
  (void)unused;
  begin(1);
  host_product p = product_of(true, 2);
  fake.n_waits = 0, fake.compute = compute_and_look;
  fake.event_delay = 1000; /* so that no part is fetched before the last one is launched, which records its event again */
  check_product(&p, 1);
  REQUIRE(fake.n_launches > 1 && fake.n_launches <= FAKE_N_LAUNCHES && fake.n_waits < FAKE_N_WAITS, "%d launches, %d waits",
          fake.n_launches, fake.n_waits);
  int n_streams = 0;
  for (int i = 0; i < fake.n_launches; i++) {
    const CUstream stream = fake.launch[i].stream;
    bool is_new = true;
    for (int j = 0; j < i; j++) is_new &= fake.launch[j].stream != stream;
    n_streams += is_new;
    for (int j = 0; j < fake.n_launches; j++)
      CHECK(n_waits_of(stream, i) >= n_waits_of(fake.launch[j].stream, i) && n_waits_of(stream, i) > 0,
            "launch %d is on a stream that does not wait for all that another one waits for", i);
  }
  CHECK(n_streams > 1, "all launches are on one stream");
  CHECK(fake.n_calls_of[FAKE_cuStreamSynchronize] >= n_streams + 2,
        "%d streams are waited for at the end, of %d and those of copies", fake.n_calls_of[FAKE_cuStreamSynchronize], n_streams);
  CHECK(n_without_event == 0, "%d launches have no event behind them in their stream", n_without_event);
}

/* Panels that one device has the others copy from it, if they can. */
CHILD_CASE(peers) {
  (void)unused;
  begin(3);
  for (int i = 0; i < 8; i++) {
    host_product p = product_of(i & 1, i & 2);
    p.m = 4100, p.n = 3100, p.k = 2;
    p.transb = i & 4 ? WSGEMM_TRANS : WSGEMM_NO_TRANS;
    fake.n_peer_copies = 0;
    check_product(&p, 3);
    CHECK(fake.n_peer_copies > 0, "no copies from device to device");
  }
  fake.has_no_peers = true, fake.n_peer_copies = 0;
  host_product p = product_of(true, 2);
  p.m = 4100, p.k = 2;
  check_product(&p, 3);
  CHECK(fake.n_peer_copies == 0, "%d copies from device to device", fake.n_peer_copies);
}

CHILD_CASE(eight_devices) {
  (void)unused;
  begin(8);
  for (int i = 0; i < 4; i++) {
    host_product p = product_of(i & 1, i & 2);
    p.m = 12000, p.n = 1100, p.k = 2;
    check_product(&p, 8);
    int n_used = 0;
    for (int device = 0; device < 8; device++) n_used += n_launches_on(device) > 0;
    CHECK(n_used >= 6, "%d devices of 8 had something to do", n_used);
  }
}

/* ---- what fails -------------------------------------------------------------------------------- */

/* The n-th call of the driver fails, and from there on `length` of them: C is right, or lost where
 * the driver was to write to it itself; and the call after it is right. */
static bool check_failing_call(const host_product *p, const double *expected, int n_devices, int nth, int length,
                               CUresult failure) {
  wsgemm_handle *h = handle_on(n_devices);
  reset(p);
  fake_fail(FAKE_ANY, nth, nth + length - 1, failure);
  const wsgemm_status status = run(h, p);
  const bool has_failed = fake.n_watched >= nth;
  fake_fail(FAKE_ANY, 0, 0, CUDA_SUCCESS);
  const bool is_lost = status == WSGEMM_DEVICE_ERROR && p->is_pinned && p->beta != 0;
  CHECK(is_lost || (status == WSGEMM_SUCCESS && is_right(p, expected)), "call %d fails (%d of them), %d devices: %s: %s", nth,
        length, n_devices, wsgemm_status_name(status), wsgemm_last_error());
  reset(p);
  fake_forget();
  CHECK(run(h, p) == WSGEMM_SUCCESS && is_right(p, expected) && fake.n_launches > 0, "after the failure of call %d: %s", nth,
        wsgemm_last_error());
  wsgemm_destroy(h);
  return has_failed;
}

/* Of calls that fail alone each, or each step-th. */
static void check_failures_by(int step, int n_devices, bool is_pinned, double beta, int length, CUresult failure) {
  host_product p = product_of(is_pinned, beta);
  p.k = 4, p.m = 2100, p.n = 2048;
  make(&p);
  double *expected = expected_of(&p);
  int nth = 1;
  while (check_failing_call(&p, expected, n_devices, nth, length, failure)) nth += length > 1 ? 1 + nth / 24 : step;
  CHECK(nth > (length > 1 ? 30 : 60), "%d calls are few", nth);
  free(expected);
}

static void check_failures(int n_devices, bool is_pinned, double beta, int length, CUresult failure) {
  check_failures_by(1, n_devices, is_pinned, beta, length, failure);
}

CHILD_CASE(a_call_fails) {
  (void)unused;
  begin(1);
  check_failures(1, false, 0, 1, CUDA_ERROR_OUT_OF_MEMORY);
  check_failures(1, false, 3, 1, CUDA_ERROR_LAUNCH_FAILED);
  check_failures(1, true, 3, 1, CUDA_ERROR_LAUNCH_FAILED);
}

/* And all after it: the device has vanished. */
CHILD_CASE(a_device_vanishes) {
  (void)unused;
  begin(2);
  check_failures(1, false, 3, 1 << 20, CUDA_ERROR_ECC_UNCORRECTABLE);
  check_failures(2, false, 1, 1 << 20, CUDA_ERROR_LAUNCH_FAILED);
  check_failures(2, true, 0, 1 << 20, CUDA_ERROR_LAUNCH_FAILED);
}

/* One of two devices is full: the other one works alone, and the warning says so. */
CHILD_CASE(a_full_device) {
  (void)unused;
  begin(2);
  host_product p = product_of(false, 2);
  fake.device[0].room = 1 << 20;
  check_product(&p, 2);
  CHECK(n_launches_on(0) == 0 && n_launches_on(1) > 0, "launches on a full device");
  CHECK(strstr(wsgemm_last_error(), "warning: device 0"), "%s", wsgemm_last_error());
}

CHILD_CASE(devices_unlike) {
  (void)unused;
  begin(2);
  fake.device[1].cc = 86;
  host_product p = product_of(false, 2);
  check_product(&p, 2);
  CHECK(n_launches_on(1) == 0, "a device of another kind had a part in C");
  CHECK(strstr(wsgemm_last_error(), "not like device 0"), "%s", wsgemm_last_error());
}

static void expect_cpu(wsgemm_handle *h, host_product *p, const char *when) {
  double *expected = expected_of(p);
  fake_forget();
  reset(p);
  CHECK(run(h, p) == WSGEMM_SUCCESS && is_right(p, expected), "%s: %s", when, wsgemm_last_error());
  CHECK(fake.n_launches == 0, "%s: %d launches", when, fake.n_launches);
  free(expected);
}

CHILD_CASE(no_devices) {
  (void)unused;
  begin(0);
  host_product p = product_of(false, 2);
  make(&p);
  wsgemm_handle *h = handle_on(1);
  expect_cpu(h, &p, "no device");
  CHECK(strstr(wsgemm_last_error(), "stay on the CPU"), "%s", wsgemm_last_error());
  CHECK(fake.n_calls_of[FAKE_cuInit] == 1, "the driver was asked");
  expect_cpu(h, &p, "no device again");
  CHECK(fake.n_calls_of[FAKE_cuInit] == 0, "the driver was asked again");
}

/* ---- larger than a device's memory ------------------------------------------------------------ */

/* Strips stay in groups, panels pass by: as many launches as that takes, in no more memory. */
static void check_in_little_memory(int n_devices, int64_t m, int64_t n, int64_t k, size_t bytes) {
  for (int i = 0; i < 4; i++) {
    host_product p = product_of(i & 1, i & 2 ? -1 : 0);
    p.m = m, p.n = n, p.k = k;
    p.transa = i & 1 ? WSGEMM_TRANS : WSGEMM_NO_TRANS, p.transb = i & 2 ? WSGEMM_TRANS : WSGEMM_NO_TRANS;
    check_product(&p, n_devices);
    CHECK(fake.n_launches >= 3, "%d launches", fake.n_launches);
    for (int device = 0; device < n_devices; device++)
      CHECK(fake.copies_bytes[device] <= bytes, "%zu bytes on device %d", fake.copies_bytes[device], device);
  }
}

CHILD_CASE(little_memory) {
  (void)unused;
  setenv("WSGEMM_OFFLOAD_MEMORY", "6M", 1);
  begin(3);
  check_in_little_memory(1, 6000, 1500, 3, 6 << 20);
  check_in_little_memory(1, 1500, 6000, 3, 6 << 20);
  check_in_little_memory(3, 6000, 3100, 2, 6 << 20);
  host_product p = product_of(false, 1);
  p.m = p.n = 300, p.k = 4000;
  make(&p);
  wsgemm_handle *h = handle_on(1);
  expect_cpu(h, &p, "k so long that no strip has room");
  CHECK(strstr(wsgemm_last_error(), "has room for"), "%s", wsgemm_last_error());
}

/* As the driver says. */
CHILD_CASE(little_is_free) {
  (void)unused;
  begin(1);
  fake.free_bytes = (size_t)560 << 20;
  check_in_little_memory(1, 3000, 4000, 3, (size_t)48 << 20);
}

/* There is as much, but not in one piece. */
CHILD_CASE(memory_in_pieces) {
  (void)unused;
  begin(1);
  fake.device[0].room = (int64_t)24 << 20;
  host_product p = product_of(false, 2);
  check_product(&p, 1);
  CHECK(fake.copies_bytes[0] > (size_t)10 << 20, "%zu bytes", fake.copies_bytes[0]);
}

CHILD_CASE(a_call_fails_in_little_memory) {
  (void)unused;
  setenv("WSGEMM_OFFLOAD_MEMORY", "6M", 1);
  begin(1);
  check_failures_by(3, 1, false, 3, 1, CUDA_ERROR_LAUNCH_FAILED);
  check_failures(1, true, 0, 1 << 20, CUDA_ERROR_ECC_UNCORRECTABLE);
}

CHILD_CASE(a_device_vanishes_in_little_memory) {
  (void)unused;
  setenv("WSGEMM_OFFLOAD_MEMORY", "6M", 1);
  begin(2);
  check_failures(2, false, 1, 1 << 20, CUDA_ERROR_LAUNCH_FAILED);
}

/* ---- what is one cell: batches, regions ------------------------------------------------------- */

typedef struct batch {
  wsgemm_gemm_desc d;
  double *c, *before, *expected;
  size_t n_c;
} batch;

static wsgemm_status run_batch(wsgemm_handle *h, const batch *x, double *c) {
  wsgemm_gemm_desc d = x->d;
  d.c = c;
  return wsgemm_gemm(h, &d);
}

/* A batch with gaps between its matrices, or without, and one B for all. */
static batch make_batch(bool is_pinned, bool has_gaps, double beta) {
  enum { M = 300, N = 200, K = 40, COUNT = 9 };
  const int64_t gap = has_gaps ? 5 : 0;
  batch x = {.d = gemm_desc(WSGEMM_F64, WSGEMM_COL_MAJOR, WSGEMM_NO_TRANS, WSGEMM_TRANS, M, N, K)};
  x.d.lda = M, x.d.ldb = N, x.d.ldc = M, x.d.batch_count = COUNT;
  x.d.stride_a = M * K + gap, x.d.stride_b = 0, x.d.stride_c = M * N + gap;
  x.d.alpha.d = 2, x.d.beta.d = beta;
  x.n_c = (size_t)(x.d.stride_c * COUNT);
  x.d.a = matrix(is_pinned, (size_t)(x.d.stride_a * COUNT)), x.d.b = matrix(is_pinned, N * K);
  x.c = matrix(is_pinned, x.n_c), x.before = matrix(false, x.n_c), x.expected = matrix(false, x.n_c);
  CHECK(run_batch(NULL, &x, x.expected) == WSGEMM_SUCCESS, "on the CPU: %s", wsgemm_last_error());
  return x;
}

static bool is_batch_right(const batch *x) { return memcmp(x->c, x->expected, x->n_c * sizeof *x->c) == 0; }

CHILD_CASE(batches) {
  (void)unused;
  begin(2);
  wsgemm_handle *h = handle_on(2);
  for (int i = 0; i < 8; i++) {
    batch x = make_batch(i & 1, i & 2, i & 4 ? 3 : 0);
    fake_forget();
    CHECK(run_batch(h, &x, x.c) == WSGEMM_SUCCESS && is_batch_right(&x) && fake.n_launches > 0, "batch %d: %s", i,
          wsgemm_last_error());
  }
}

/* A call of which the driver's n-th one fails, and `length` from there on; whether it came so far. */
typedef bool failing_call(wsgemm_handle *h, const void *what, int nth, int length);

/* Each call of the driver fails alone, and each eighth or so with all after it. */
static void check_each_failure(failing_call *call, wsgemm_handle *h, const void *what) {
  int nth = 1;
  while (call(h, what, nth, 1)) nth++;
  CHECK(nth > 20, "%d calls are few", nth);
  for (nth = 1; call(h, what, nth, 1000);) nth += 1 + nth / 8;
}

/* C is right, or lost, if it is read and has been written in part. */
static bool check_failing_batch(wsgemm_handle *h, const void *what, int nth, int length) {
  const batch *x = what;
  memcpy(x->c, x->before, x->n_c * sizeof *x->c);
  fake_fail(FAKE_ANY, nth, nth + length - 1, CUDA_ERROR_LAUNCH_FAILED);
  const wsgemm_status status = run_batch(h, x, x->c);
  const bool has_failed = fake.n_watched >= nth, may_be_lost = x->d.beta.d != 0;
  fake_fail(FAKE_ANY, 0, 0, CUDA_SUCCESS);
  CHECK((status == WSGEMM_DEVICE_ERROR && may_be_lost) || (status == WSGEMM_SUCCESS && is_batch_right(x)),
        "call %d fails: %s: %s", nth, wsgemm_status_name(status), wsgemm_last_error());
  return has_failed;
}

CHILD_CASE(a_call_of_a_batch_fails) {
  (void)unused;
  begin(1);
  wsgemm_handle *h = handle_on(1);
  for (int i = 0; i < 4; i++) { /* pinned, gaps, beta: two of them, or none */
    const batch x = make_batch(i == 1 || i == 2, i == 2 || i == 3, i == 1 || i == 3 ? 3 : 0);
    check_each_failure(check_failing_batch, h, &x);
  }
}

/* A triangle of C, the other one of which is neither read nor written: NaN. */
CHILD_CASE(regions) {
  (void)unused;
  enum { N = 1100, K = 30, LD = N + 1 };
  begin(1);
  wsgemm_handle *h = handle_on(1);
  for (int i = 0; i < 8; i++) {
    const wsgemm_uplo uplo = i & 1 ? WSGEMM_UPPER : WSGEMM_LOWER;
    double *a = matrix(i & 2, N * K), *c = matrix(i & 2, LD * N), *expected = matrix(false, LD * N);
    for (int64_t j = 0; j < N; j++)
      for (int64_t r = 0; r < LD; r++)
        if (r == N || (uplo == WSGEMM_UPPER ? r > j : r < j)) c[r + j * LD] = expected[r + j * LD] = NAN;
    const double beta = i & 4 ? -2 : 0;
    CHECK(wsgemm_dsyrk(NULL, WSGEMM_COL_MAJOR, uplo, WSGEMM_NO_TRANS, N, K, 3, a, N, beta, expected, LD) == WSGEMM_SUCCESS,
          "on the CPU");
    fake_forget();
    CHECK(wsgemm_dsyrk(h, WSGEMM_COL_MAJOR, uplo, WSGEMM_NO_TRANS, N, K, 3, a, N, beta, c, LD) == WSGEMM_SUCCESS &&
              fake.n_launches > 0 && memcmp(c, expected, sizeof *c * LD * N) == 0,
          "region %d: %s", i, wsgemm_last_error());
  }
}

typedef struct update {
  bool is_pinned;
  double beta;
} update;

/* Of a rank-k update the triangle is right, or lost, if it is read and has been written in part; the other one is as it was. */
static bool check_failing_update(wsgemm_handle *h, const void *what, int nth, int length) {
  const bool is_pinned = ((const update *)what)->is_pinned;
  const double beta = ((const update *)what)->beta;
  enum { N = 520, K = 70, LD = N + 1 };
  static double *a[2], *c[2], expected[LD * N];
  if (!a[is_pinned]) a[is_pinned] = matrix(is_pinned, N * K), c[is_pinned] = matrix(is_pinned, LD * N);
  double *const to = c[is_pinned];
  for (int64_t j = 0; j < N; j++)
    for (int64_t r = 0; r < LD; r++) to[r + j * LD] = expected[r + j * LD] = r == N || r < j ? NAN : (double)((r + j) % 7);
  CHECK(wsgemm_dsyrk(NULL, WSGEMM_COL_MAJOR, WSGEMM_LOWER, WSGEMM_NO_TRANS, N, K, 3, a[is_pinned], N, beta, expected, LD) ==
            WSGEMM_SUCCESS,
        "on the CPU");
  fake_fail(FAKE_ANY, nth, nth + length - 1, CUDA_ERROR_LAUNCH_FAILED);
  const wsgemm_status status =
      wsgemm_dsyrk(h, WSGEMM_COL_MAJOR, WSGEMM_LOWER, WSGEMM_NO_TRANS, N, K, 3, a[is_pinned], N, beta, to, LD);
  const bool has_failed = fake.n_watched >= nth;
  fake_fail(FAKE_ANY, 0, 0, CUDA_SUCCESS);
  bool is_outside_kept = true;
  for (int64_t j = 0; j < N; j++)
    for (int64_t r = 0; r < LD; r++) is_outside_kept &= !(r == N || r < j) || isnan(to[r + j * LD]);
  CHECK(is_outside_kept && ((status == WSGEMM_DEVICE_ERROR && beta != 0) ||
                            (status == WSGEMM_SUCCESS && memcmp(to, expected, sizeof expected) == 0)),
        "call %d fails (%d of them), pinned %d, beta %g: %s: %s", nth, length, is_pinned, beta, wsgemm_status_name(status),
        wsgemm_last_error());
  return has_failed;
}

CHILD_CASE(a_call_of_an_update_fails) {
  (void)unused;
  begin(2);
  wsgemm_handle *h = handle_on(2);
  for (int i = 0; i < 4; i++) check_each_failure(check_failing_update, h, &(update){i & 1, i & 2 ? -2 : 0});
}

/* C's own memory as what is added to it, and one matrix as both factors: it crosses the link once, and is read before C is written. */
CHILD_CASE(shared_memory) {
  (void)unused;
  enum { N = 900, K = 900, LD = N + 3 };
  begin(1);
  wsgemm_handle *h = handle_on(1);
  for (int i = 0; i < 8; i++) {
    const bool adds_c = i & 1, is_square = i & 2, is_pinned = i & 4;
    double *a = matrix(is_pinned, LD * K), *b = is_square ? a : matrix(is_pinned, LD * N), *c = matrix(is_pinned, LD * N);
    double *expected = matrix(false, LD * N), *other = matrix(is_pinned, LD * N);
    for (int64_t x = 0; x < LD * N; x++) c[x] = expected[x] = (double)(x % 5), b[x] += is_square ? 0 : 1;
    wsgemm_gemm_desc d = gemm_desc(WSGEMM_F64, WSGEMM_COL_MAJOR, WSGEMM_NO_TRANS, WSGEMM_NO_TRANS, N, N, K);
    d.a = a, d.b = b, d.lda = d.ldb = d.ldc = d.ld_residual = LD;
    d.alpha.d = 2, d.beta.d = 0;
    d.c = expected, d.residual = adds_c ? expected : other;
    CHECK(wsgemm_gemm(NULL, &d) == WSGEMM_SUCCESS, "on the CPU: %s", wsgemm_last_error());
    d.c = c, d.residual = adds_c ? c : other;
    fake_forget();
    CHECK(wsgemm_gemm(h, &d) == WSGEMM_SUCCESS && fake.n_launches > 0 && memcmp(c, expected, sizeof *c * LD * N) == 0,
          "residual in C %d, A = B %d, pinned %d: %s", adds_c, is_square, is_pinned, wsgemm_last_error());
  }
}

/* ---- which products ---------------------------------------------------------------------------- */

CHILD_CASE(what_stays_on_the_cpu) {
  (void)unused;
  begin(1);
  host_product p = product_of(false, 2);
  make(&p);
  expect_cpu(NULL, &p, "a handle without devices");
  wsgemm_handle *h = handle_on(1);
  wsgemm_set_offload(h, WSGEMM_OFFLOAD_AUTO);
  expect_cpu(h, &p, "the model says no");
  wsgemm_set_offload(h, WSGEMM_OFFLOAD_ALWAYS);
  wsgemm_set_pinned_limit((size_t)8 << 20);
  expect_cpu(h, &p, "no pinned memory");
  wsgemm_set_pinned_limit((size_t)1 << 30);
  host_product small = product_of(false, 0);
  small.m = small.n = 100;
  make(&small);
  expect_cpu(h, &small, "a small product");
  fake_forget();
  CHECK(run(h, &p) == WSGEMM_SUCCESS && fake.n_launches > 0, "a large one");
}

static void compute_nothing(const fake_launch *l) { (void)l; }

/* Floats under PEDANTIC, in parts: their operands are in memory of the job's own, and no copies are made of these. */
CHILD_CASE(without_float_copies) {
  (void)unused;
  enum { M = 3900, N = 4100, K = 2500 };
  begin(1);
  fake.compute = compute_nothing; /* compute() knows doubles */
  fake.device[0].cc = 90, fake.device[0].n_sms = 132;
  wsgemm_handle *h = handle_on(1);
  wsgemm_gemm_desc d = gemm_desc(WSGEMM_F32, WSGEMM_COL_MAJOR, WSGEMM_TRANS, WSGEMM_NO_TRANS, M, N, K);
  float *a = calloc((size_t)M * (K + 1), sizeof *a), *b = calloc((size_t)N * (K + 1), sizeof *b), *c = malloc(sizeof *c * M * N);
  REQUIRE(a && b && c, "memory");
  d.a = a, d.b = b, d.c = c, d.lda = d.ldb = K + 1, d.ldc = M, d.math = WSGEMM_MATH_PEDANTIC;
  fake_forget();
  REQUIRE(wsgemm_gemm(h, &d) == WSGEMM_SUCCESS, "%s", wsgemm_last_error());
  int n_copies = 0;
  for (int i = 0; i < fake.n_launches && i < FAKE_N_LAUNCHES; i++) n_copies += strcmp(fake.launch[i].kernel, "float_copy") == 0;
  CHECK(fake.n_launches > 1 && n_copies == 0, "%d launches, %d of them copies", fake.n_launches, n_copies);
  wsgemm_destroy(h);
  free(a), free(b), free(c);
}

/* Where parts share memory for forms of their operands they follow each other on one stream. */
CHILD_CASE(one_stream_of_parts) {
  (void)unused;
  enum { M = 2100, N = 2500, K = 2048 };
  begin(1);
  fake.compute = compute_nothing; /* compute() knows doubles */
  fake.device[0].cc = 90, fake.device[0].n_sms = 132;
  wsgemm_handle *h = handle_on(1);
  wsgemm_gemm_desc d = gemm_desc(WSGEMM_F32, WSGEMM_COL_MAJOR, WSGEMM_NO_TRANS, WSGEMM_NO_TRANS, M, N, K);
  float *a = calloc((size_t)M * K, sizeof *a), *b = calloc((size_t)K * N, sizeof *b), *c = malloc(sizeof *c * M * N);
  REQUIRE(a && b && c, "memory");
  d.a = a, d.b = b, d.c = c;
  fake_forget();
  REQUIRE(wsgemm_gemm(h, &d) == WSGEMM_SUCCESS, "%s", wsgemm_last_error());
  int n_slices = 0;
  for (int i = 0; i < fake.n_launches && i < FAKE_N_LAUNCHES; i++) {
    n_slices += strstr(fake.launch[i].kernel, "slices") != NULL;
    CHECK(fake.launch[i].stream == fake.launch[0].stream, "launch %d is on a stream of its own", i);
  }
  CHECK(n_slices > 1, "%d of %d launches make slices", n_slices, fake.n_launches);
  wsgemm_destroy(h);
  free(a), free(b), free(c);
}

CHILD_CASE(pinned_limit) {
  (void)unused;
  begin(2);
  wsgemm_set_pinned_limit((size_t)40 << 20);
  host_product p = product_of(false, 2), q = p, r = p;
  check_product(&p, 2);
  CHECK(fake.pinned_bytes > 0 && fake.pinned_bytes <= (size_t)40 << 20, "%zu bytes are pinned", fake.pinned_bytes);
  wsgemm_set_pinned_limit((size_t)1 << 30);
  check_product(&q, 2);
  wsgemm_set_pinned_limit((size_t)40 << 20);
  check_product(&r, 2);
  CHECK(fake.pinned_bytes <= (size_t)40 << 20, "%zu bytes are pinned still", fake.pinned_bytes);
}

/* ---- settings ---------------------------------------------------------------------------------- */

static int count_report(void *user, double done) {
  double *last = user;
  CHECK(done >= *last && done <= 1, "%g after %g", done, *last);
  *last = done;
  return 0;
}

/* So many reports later. */
static int stop(void *user, double done) {
  int *left = user;
  (void)done;
  return (*left)-- <= 0;
}

/* What is written of C is right, all else as it was; and the next call is right. */
CHILD_CASE(stopped) {
  (void)unused;
  begin(2);
  for (int i = 0; i < 12; i++) {
    host_product p = product_of(i & 1, i & 2 ? 2 : 0);
    p.m = 5000;
    make(&p);
    double *expected = expected_of(&p);
    wsgemm_handle *h = handle_on(1 + i % 2);
    int left = i / 2;
    wsgemm_set_progress(h, stop, &left);
    const wsgemm_status status = run(h, &p);
    /* asked to stop when all was on its way, it has all of C */
    CHECK(status == WSGEMM_STOPPED || (status == WSGEMM_SUCCESS && is_right(&p, expected)), "%s", wsgemm_status_name(status));
    for (size_t j = 0; j < p.n_c; j++) CHECK(p.c[j] == expected[j] || p.c[j] == p.before[j], "element %zu is neither", j);
    wsgemm_set_progress(h, NULL, NULL);
    reset(&p);
    CHECK(run(h, &p) == WSGEMM_SUCCESS && is_right(&p, expected), "after a call that was stopped: %s", wsgemm_last_error());
    wsgemm_destroy(h);
  }
}

CHILD_CASE(settings) {
  (void)unused;
  begin(1);
  wsgemm_handle *h;
  int devices[4] = {0}, n;
  wsgemm_offload when;
  wsgemm_create(&h);
  CHECK(wsgemm_get_devices(h, devices, 4, &n) == WSGEMM_SUCCESS && n == 0, "a new handle has %d devices", n);
  CHECK(wsgemm_set_devices(h, NULL, -1) == WSGEMM_SUCCESS && wsgemm_get_devices(h, NULL, 0, &n) == WSGEMM_SUCCESS && n == -1,
        "all");
  CHECK(wsgemm_set_devices(h, (int[]){5, 2}, 2) == WSGEMM_SUCCESS && wsgemm_get_devices(h, devices, 4, &n) == WSGEMM_SUCCESS &&
            n == 2 && devices[0] == 2 && devices[1] == 5,
        "two");
  CHECK(wsgemm_set_devices(h, (int[]){1, 1}, 2) == WSGEMM_INVALID_VALUE, "twice the same");
  CHECK(wsgemm_set_devices(h, (int[]){64}, 1) == WSGEMM_INVALID_VALUE, "64");
  CHECK(wsgemm_set_devices(h, NULL, 1) == WSGEMM_INVALID_POINTER, "NULL");
  CHECK(wsgemm_set_devices(h, NULL, -2) == WSGEMM_INVALID_VALUE, "-2");
  CHECK(wsgemm_set_offload(h, (wsgemm_offload)2) == WSGEMM_INVALID_VALUE, "when: 2");
  CHECK(wsgemm_get_offload(h, &when) == WSGEMM_SUCCESS && when == WSGEMM_OFFLOAD_ALWAYS, "when");
  host_product p = product_of(false, 2);
  make(&p);
  double last = 0;
  CHECK(wsgemm_set_progress(h, count_report, &last) == WSGEMM_SUCCESS, "progress");
  wsgemm_set_devices(h, NULL, -1);
  CHECK(run(h, &p) == WSGEMM_SUCCESS && last > 0, "last %g", last);
  wsgemm_gemm_desc d = gemm_desc(WSGEMM_F64, p.layout, p.transa, p.transb, p.m, p.n, p.k);
  d.a = p.a, d.b = p.b, d.c = p.c, d.lda = p.lda, d.ldb = p.ldb, d.ldc = p.ldc;
  char text[1024];
  wsgemm_explain(h, &d, text, sizeof text);
  CHECK(strstr(text, "backend: offload\n") && strstr(text, "strips: ") && strstr(text, "expected_ms: "), "%s", text);
}

/* Several threads at once, each with its own product. */
static void *run_one(void *argument) {
  host_product *p = argument;
  wsgemm_handle *h = handle_on(1);
  const wsgemm_status status = run(h, p);
  wsgemm_destroy(h);
  return status ? argument : NULL;
}

CHILD_CASE(several_threads) {
  (void)unused;
  begin(1);
  enum { N = 4 };
  host_product p[N];
  double *expected[N];
  pthread_t thread[N];
  for (int i = 0; i < N; i++) p[i] = product_of(i & 1, i), make(&p[i]), expected[i] = expected_of(&p[i]);
  for (int i = 0; i < N; i++) pthread_create(&thread[i], NULL, run_one, &p[i]);
  for (int i = 0; i < N; i++) {
    void *failed;
    pthread_join(thread[i], &failed);
    CHECK(!failed && is_right(&p[i], expected[i]), "thread %d", i);
  }
}

static const struct check_case cases[] = {
    {"layouts_and_ops", layouts_and_ops},
    {"shapes", shapes},
    {"several_devices", several_devices},
    {"streams_of_parts", streams_of_parts},
    {"peers", peers},
    {"eight_devices", eight_devices},
    {"a_call_fails", a_call_fails},
    {"a_device_vanishes", a_device_vanishes},
    {"a_full_device", a_full_device},
    {"devices_unlike", devices_unlike},
    {"no_devices", no_devices},
    {"little_memory", little_memory},
    {"little_is_free", little_is_free},
    {"memory_in_pieces", memory_in_pieces},
    {"a_call_fails_in_little_memory", a_call_fails_in_little_memory},
    {"a_device_vanishes_in_little_memory", a_device_vanishes_in_little_memory},
    {"batches", batches},
    {"a_call_of_a_batch_fails", a_call_of_a_batch_fails},
    {"regions", regions},
    {"a_call_of_an_update_fails", a_call_of_an_update_fails},
    {"shared_memory", shared_memory},
    {"what_stays_on_the_cpu", what_stays_on_the_cpu},
    {"without_float_copies", without_float_copies},
    {"one_stream_of_parts", one_stream_of_parts},
    {"pinned_limit", pinned_limit},
    {"settings", settings},
    {"stopped", stopped},
    {"several_threads", several_threads},
};

CHECK_MAIN("backend_offload", cases)
