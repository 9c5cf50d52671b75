/* test_backend_faults.c - the GPU backend when the driver is not there, not ready, too old, or
 * fails: a status that says so, nothing launched, CPU calls as before, and all well again once the
 * driver is. And after fork(), where the driver must not be touched. */
#define _GNU_SOURCE
#include "fake_calls.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* ---- no driver to speak of ------------------------------------------------------------------- */

/* Until somebody calls cuInit, which is not this library, every pointer is host memory; from then
 * on GPUs are there. */
CHILD_CASE(nobody_has_initialised_it) {
  (void)unused;
  fake.is_initialised = false;
  char text[1024];
  wsgemm_machine(text, sizeof text);
  CHECK(fake.n_calls == 0 && !fake.trapped, "a first need of the library is %d driver calls", fake.n_calls);
  CHECK(!fake.last_wanted[0], "the library looked for %s", fake.last_wanted);
  expect_cpu_works("before cuInit");
  CHECK(!fake.trapped, "%s was called", fake.trapped);
  for (int f = 0; f < FAKE_N_FUNCTIONS; f++)
    CHECK(f == FAKE_cuPointerGetAttributes || fake.n_calls_of[f] == 0, "%s was called for host memory", fake_function_names[f]);
  fake.is_initialised = true;
  const wsgemm_gemm_desc d = device_desc(WSGEMM_F32, 30, 30, 30, 0);
  CHECK(launch_of(NULL, &d)->device == 0, "after cuInit");
}

CHILD_CASE(no_device) {
  (void)unused;
  wsgemm_gemm_desc d = device_desc(WSGEMM_F32, 30, 30, 30, 0);
  fake.n_devices = 0;
  expect_failure(NULL, &d, WSGEMM_NO_DEVICE, "CUDA_ERROR_NO_DEVICE");
  expect_cpu_works("without a device");
  fake.n_devices = 1;
  d = device_desc(WSGEMM_F32, 30, 30, 30, 1);
  expect_failure(NULL, &d, WSGEMM_DEVICE_ERROR, "CUDA_ERROR_INVALID_DEVICE");
  d.a = d.b = d.c = fake_alloc(FAKE_DEVICE, 64, 1 << 20);
  expect_failure(NULL, &d, WSGEMM_NOT_SUPPORTED, "device 64");
  expect_cpu_works("with one device");
}

static void lacks_entry(void *argument) {
  const char *name = *(const char **)argument;
  char words[64], text[1024];
  snprintf(words, sizeof words, "too old: it has no %s", name);
  fake.missing = name;
  static float host[3][64];
  float *managed = fake_alloc(FAKE_MANAGED, 0, 1 << 20);
  for (int layout = 0; layout < 2; layout++)
    for (int k = 0; k < 2; k++) {
      wsgemm_gemm_desc d = device_desc(WSGEMM_F32, 8, 8, k, 0);
      d.layout = all_layouts[layout], d.lda = d.ldb = 8;
      expect_failure(NULL, &d, WSGEMM_INSUFFICIENT_DRIVER, words);
      wsgemm_explain(NULL, &d, text, sizeof text);
      CHECK(strstr(text, "error: ") && strstr(text, words), "explained: %s", text);
    }
  for (int i = 0; i < 3; i++) { /* one on the device is enough */
    wsgemm_gemm_desc d = device_desc(WSGEMM_F32, 8, 8, 8, 0);
    if (i != 0) d.a = host[0];
    if (i != 1) d.b = host[1];
    if (i != 2) d.c = host[2];
    expect_failure(NULL, &d, WSGEMM_INSUFFICIENT_DRIVER, words);
  }
  wsgemm_gemm_desc d = gemm_desc(WSGEMM_F32, WSGEMM_COL_MAJOR, WSGEMM_NO_TRANS, WSGEMM_NO_TRANS, 8, 8, 8);
  d.a = managed, d.b = managed, d.c = managed + 64;
  CHECK(watched_gemm(NULL, &d) == WSGEMM_SUCCESS, "managed memory, which the CPU can read: %s", wsgemm_last_error());
  CHECK(fake.n_launches == 0, "a launch");
  wsgemm_machine(text, sizeof text);
  CHECK(strstr(text, words), "%s", text);
  expect_cpu_works(name);
}

static void old_drivers(void) {
  for (int f = 0; f < FAKE_cuMemAllocAsync; f++) /* from there on those that a driver may lack */
    check_in_child(fake_function_names[f], lacks_entry, (void *)&fake_function_names[f]);
}

/* ---- no kernel for the device ---------------------------------------------------------------- */

/* The driver has no machine code for the device, wherever it notices that: said so each time,
 * without trying again. */
static void no_kernel(void *argument) {
  const fake_function function = *(fake_function *)argument;
  fake_fail(function, 1, 1, CUDA_ERROR_NO_BINARY_FOR_GPU);
  const wsgemm_gemm_desc d = device_desc(WSGEMM_F64, 30, 30, 30, 0);
  const ws_cuda_row *row = gpu_row_with(WSGEMM_F64, 32, 32, 1);
  wsgemm_handle *h = handle_of_row(row), *other = handle_of_row(gpu_row_with(WSGEMM_F32, 64, 32, 1));
  expect_failure(h, &d, WSGEMM_ARCH_MISMATCH, "compute capability 8.0");
  expect_failure(h, &d, WSGEMM_ARCH_MISMATCH, row->name);
  char text[1024];
  wsgemm_explain(h, &d, text, sizeof text);
  CHECK(strstr(text, "error: kernel ") && strstr(text, "does not run on device 0"), "explained: %s", text);
  expect_cpu_works("without a kernel for the GPU");
  const wsgemm_gemm_desc s = device_desc(WSGEMM_F32, 30, 30, 30, 0);
  CHECK(watched_gemm(other, &s) == WSGEMM_SUCCESS, "another kernel: %s", wsgemm_last_error());
}

CHILD_CASE(shared_memory_too_small) {
  (void)unused;
  fake.device[0].max_shared = 32 << 10;
  for (int r = 0; r < n_gpu_rows; r++) {
    wsgemm_handle *h = handle_of_row(&gpu_rows[r]);
    const wsgemm_gemm_desc d = row_desc(&gpu_rows[r], 300, 300, 30, 0);
    if (gpu_rows[r].shared_bytes > 32 << 10)
      expect_failure(h, &d, WSGEMM_ARCH_MISMATCH, gpu_rows[r].name);
    else
      CHECK(launch_of(h, &d)->shared_bytes == (unsigned)gpu_rows[r].shared_bytes, "%s", gpu_rows[r].name);
    wsgemm_destroy(h);
  }
}

CHILD_CASE(no_block_fits) {
  (void)unused;
  fake.device[0].blocks_per_sm = 0;
  const wsgemm_gemm_desc d = device_desc(WSGEMM_C32, 300, 300, 30, 0);
  expect_failure(NULL, &d, WSGEMM_ARCH_MISMATCH, "does not run on device 0 (Fake GPU 0, compute capability 8.0)");
  expect_cpu_works("without a kernel that fits");
}

CHILD_CASE(no_scaling) {
  (void)unused;
  fake_fail(FAKE_cuLibraryGetKernel, 1, 1, CUDA_ERROR_NOT_FOUND);
  wsgemm_gemm_desc d = device_desc(WSGEMM_C32, 30, 30, 0, 0);
  expect_failure(NULL, &d, WSGEMM_ARCH_MISMATCH, "scale");
  expect_cpu_works("without a kernel that scales");
}

static void no_kernels(void) {
  static const fake_function functions[] = {FAKE_cuLibraryLoadData, FAKE_cuLibraryGetKernel, FAKE_cuKernelGetFunction,
                                            FAKE_cuOccupancyMaxActiveBlocksPerMultiprocessor};
  for (size_t i = 0; i < sizeof functions / sizeof functions[0]; i++)
    check_in_child(fake_function_names[functions[i]], no_kernel, (void *)&functions[i]);
}

/* Rows of large clusters are there on a device that has room for one, and nowhere else. */
CHILD_CASE(large_clusters) {
  (void)unused;
  enum { LARGE = 16, PORTABLE = 8 };
  fake.device[0].cc = fake.device[1].cc = 90;
  fake.device[1].most_cluster = PORTABLE;
  int n_rows = 0;
  for (int r = 0; r < n_all_gpu_rows; r++) {
    const ws_cuda_row *row = &gpu_rows[r];
    if (row->cluster != LARGE) continue;
    n_rows++;
    wsgemm_handle *h = handle_of_row(row);
    wsgemm_gemm_desc d = device_desc(row->type, 24, 20, 800, 0), other = device_desc(row->type, 24, 20, 800, 1);
    d.math = other.math = strcmp(row->family, "ffma") == 0 ? WSGEMM_MATH_PEDANTIC
                          : row->n_slices == 1             ? WSGEMM_MATH_TF32
                                                           : WSGEMM_MATH_DEFAULT;
    fake_forget();
    CHECK(watched_gemm(h, &d) == WSGEMM_SUCCESS && fake.n_launches == 1 && row_of(&fake.launch[0]) == row &&
              fake.launch[0].cluster == LARGE,
          "%s: %d launches; %s", row->name, fake.n_launches, wsgemm_last_error());
    expect_failure(h, &other, WSGEMM_ARCH_MISMATCH, row->name);
    fake_forget();
    CHECK(watched_gemm(NULL, &other) == WSGEMM_SUCCESS && fake.n_launches > 0 && fake.launch[0].cluster <= PORTABLE,
          "%s: not without it; %s", row->name, wsgemm_last_error());
    wsgemm_destroy(h);
  }
  CHECK(n_rows > 0, "no such rows");
}

/* ---- calls that fail ------------------------------------------------------------------------- */

CHILD_CASE(launches_fail) {
  (void)unused;
  for (int k = 0; k < 2; k++) {
    const wsgemm_gemm_desc d = device_desc(WSGEMM_F64, 30, 30, k, 0);
    fake_fail(FAKE_cuLaunchKernelEx, 1, 2, CUDA_ERROR_OUT_OF_MEMORY);
    expect_failure(NULL, &d, WSGEMM_ALLOC_FAILED, "launch: CUDA_ERROR_OUT_OF_MEMORY (as the test wanted it)");
    expect_cpu_works("after a launch failed");
    fake_fail(FAKE_cuLaunchKernelEx, 1, 1, (CUresult)12345);
    expect_failure(NULL, &d, WSGEMM_DEVICE_ERROR, "launch: unknown CUDA error");
    CHECK(watched_gemm(NULL, &d) == WSGEMM_SUCCESS, "afterwards: %s", wsgemm_last_error());
  }
}

/* What each run of each_call_fails does; the last two say how it went. */
struct fault {
  CUresult failure;
  int number;
  const char *kernel; /* the path of the call */
  int64_t side, k;
  int context, captures;
  int *n_calls;
  atomic_int *n_failed;
};

static bool is_clean(wsgemm_status status, const char *words, CUresult failure) {
  if (status == WSGEMM_SUCCESS) return true;
  if (status == WSGEMM_ARCH_MISMATCH) return failure == CUDA_ERROR_INVALID_VALUE && strstr(words, "does not run on device 0");
  const char *name = failure == CUDA_ERROR_OUT_OF_MEMORY     ? "CUDA_ERROR_OUT_OF_MEMORY"
                     : failure == CUDA_ERROR_ILLEGAL_ADDRESS ? "CUDA_ERROR_ILLEGAL_ADDRESS"
                                                             : "unknown CUDA error";
  const wsgemm_status expected = failure == CUDA_ERROR_OUT_OF_MEMORY ? WSGEMM_ALLOC_FAILED : WSGEMM_DEVICE_ERROR;
  return status == expected && strstr(words, name);
}

/* Of the calls so far that exchange the thread's capture mode every second one restores it. */
static bool is_restoring(int number) {
  int n_exchanges = 0;
  for (int i = 0; i < number && i < fake.n_calls; i++) n_exchanges += fake.calls[i] == FAKE_cuThreadExchangeStreamCaptureMode;
  return number <= fake.n_calls && fake.calls[number - 1] == FAKE_cuThreadExchangeStreamCaptureMode && n_exchanges % 2 == 0;
}

static void fault_child(void *argument) {
  const struct fault *fault = argument;
  wsgemm_handle *h = NULL;
  REQUIRE(wsgemm_create(&h) == WSGEMM_SUCCESS && wsgemm_set_stream(h, &fake.stream[1]) == WSGEMM_SUCCESS, "handle");
  if (fault->captures) fake.stream[1].capture = CU_STREAM_CAPTURE_STATUS_ACTIVE;
  if (fault->context) fake_set_current(fake_primary(1));
  const wsgemm_gemm_desc d = device_desc(WSGEMM_F32, fault->side, fault->side, fault->k, 0);
  const CUcontext context = fake_current();
  fake_fail(FAKE_ANY, fault->number, fault->number, fault->failure);
  const wsgemm_status status = wsgemm_gemm(h, &d);
  *fault->n_calls = fake.n_calls;
  const fake_function failed = fake.calls[fault->number - 1];
  const bool cannot_restore = is_restoring(fault->number);
  const char *name = fault->number <= fake.n_calls ? fake_function_names[failed] : "none";
  CHECK(is_clean(status, wsgemm_last_error(), fault->failure), "call %d (%s) answers %d: %s (%s)", fault->number, name,
        (int)fault->failure, wsgemm_status_name(status), wsgemm_last_error());
  CHECK(fake.n_launches == (status == WSGEMM_SUCCESS), "%s fails: %s, and %d launches", name, wsgemm_status_name(status),
        fake.n_launches);
  if (status != WSGEMM_SUCCESS) atomic_fetch_add(fault->n_failed, 1);
  fake_fail(FAKE_ANY, 0, 0, CUDA_SUCCESS);
  if (strcmp(name, "cuCtxPopCurrent") != 0) { /* then nobody can restore it */
    CHECK(fake_current() == context && fake_depth() == (context != NULL), "%s fails: another context is current", name);
  } else {
    fake_set_current(context);
  }
  CHECK(!fake.is_capture_broken, "%s fails: the capture is broken", name);
  if (!cannot_restore)
    CHECK(fake_capture_mode() == CU_STREAM_CAPTURE_MODE_GLOBAL, "%s fails: the thread's capture mode is another", name);
  expect_cpu_works(name);
  if (fault->failure == CUDA_ERROR_INVALID_VALUE) return;
  for (int again = 0; again < 2; again++) {
    const fake_launch *l = launch_of(h, &d);
    CHECK(l->device == 0 && l->block[0] > 0 && strcmp(row_of(l) ? l->entry : l->kernel, fault->kernel) == 0, "%s fails, then %s",
          name, l->kernel);
  }
  wsgemm_destroy(h);
}

/* The 1st, 2nd, .. call of the driver fails, on every path, until a run gets by without: a clean
 * status, and the next call works. */
static void each_call_fails(void) {
  static const CUresult failures[] = {CUDA_ERROR_OUT_OF_MEMORY, CUDA_ERROR_ILLEGAL_ADDRESS, CUDA_ERROR_INVALID_VALUE,
                                      CUDA_ERROR_UNKNOWN};
  static const char *const kernels[] = {"sscale", "queue", "queue", "split"};
  int *shared = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  REQUIRE(shared != MAP_FAILED, "shared memory");
  int n_runs = 0;
  struct fault fault = {.n_calls = shared, .n_failed = (atomic_int *)(shared + 1)};
  for (size_t i = 0; i < sizeof failures / sizeof failures[0]; i++)
    for (int path = 0; path < 16; path++) {
      fault.failure = failures[i];
      fault.kernel = kernels[path % 4];
      fault.side = path % 4 == 2 ? 3000 : 64, fault.k = path % 4 == 0 ? 0 : path % 4 == 3 ? 5000 : 30;
      fault.context = path >> 2 & 1, fault.captures = path >> 3 & 1;
      fault.number = 0;
      do {
        fault.number++;
        n_runs++;
        check_in_child("a failing call", fault_child, &fault);
      } while (fault.number <= *fault.n_calls);
    }
  CHECK(n_runs > 400 && atomic_load(fault.n_failed) > n_runs / 2, "%d runs, %d failed calls", n_runs,
        atomic_load(fault.n_failed));
  munmap(shared, 4096);
}

/* The kernel of a split product may use more shared memory than usual; if the driver is once too
 * short of memory to say yes, it is asked again. */
CHILD_CASE(shared_memory_refused_once) {
  (void)unused;
  wsgemm_handle *h = NULL;
  REQUIRE(wsgemm_create(&h) == WSGEMM_SUCCESS && wsgemm_set_workspace(h, device_memory(0), 256) == WSGEMM_SUCCESS, "handle");
  const wsgemm_gemm_desc d = device_desc(WSGEMM_C64, 64, 64, 5000, 0);
  fake_fail(FAKE_cuKernelSetAttribute, 1, 1, CUDA_ERROR_OUT_OF_MEMORY);
  expect_failure(h, &d, WSGEMM_ALLOC_FAILED, "CUDA_ERROR_OUT_OF_MEMORY");
  const fake_launch *l = launch_of(h, &d);
  CHECK(is_split(l) && l->shared_bytes > (unsigned)l->planned_shared, "%s with %u bytes", l->kernel, l->shared_bytes);
  wsgemm_destroy(h);
}

/* A device that a kernel has broken: every call of the driver answers with that kernel's error. */
CHILD_CASE(everything_fails) {
  (void)unused;
  char text[1024];
  for (int was_used = 0; was_used < 2; was_used++) {
    const wsgemm_gemm_desc d = device_desc(WSGEMM_F32, 30, 30, 30, 0);
    fake_fail(FAKE_ANY, 1, 1 << 30, CUDA_ERROR_ILLEGAL_ADDRESS);
    expect_failure(NULL, &d, WSGEMM_DEVICE_ERROR, "");
    wsgemm_explain(NULL, &d, text, sizeof text);
    CHECK(strstr(text, "error: "), "explained: %s", text);
    expect_cpu_works("beside a broken device");
    /* as in a program's last moments */
    fake_fail(FAKE_cuPointerGetAttributes, 1, 1 << 30, CUDA_ERROR_DEINITIALIZED);
    expect_failure(NULL, &d, WSGEMM_DEVICE_ERROR, "");
    expect_cpu_works("after the driver has gone");
    fake_fail(FAKE_ANY, 0, 0, CUDA_SUCCESS);
    CHECK(launch_of(NULL, &d)->device == 0, "when all is well again");
  }
}

/* ---- fork ------------------------------------------------------------------------------------ */

/* One element each, the last one before memory that is not there: whether it can be read must be
 * asked of no byte beyond it. */
static void expect_page_ends_work(const char *who) {
  const struct arena arena = arena_new(1);
  float *last = (float *)(void *)(arena.low + arena.bytes) - 3;
  last[0] = 2, last[1] = 3;
  for (int i = 0; i < 2; i++) {
    last[2] = 5;
    const wsgemm_status status = wsgemm_sgemm(NULL, WSGEMM_COL_MAJOR, WSGEMM_NO_TRANS, WSGEMM_NO_TRANS, 1, 1, 1, 1,
                                              &last[i ? 0 : 2], 1, &last[1], 1, 1, &last[i ? 2 : 0], 1);
    CHECK(status == WSGEMM_SUCCESS, "%s: at the end of a page: %s", who, wsgemm_last_error());
  }
  CHECK(last[0] == 17 && last[2] == 56, "%s: %g and %g", who, (double)last[0], (double)last[2]);
}

static void expect_no_gpu(const char *who) {
  char text[1024];
  static float host[3][64];
  fake.is_forbidden = true; /* whoever calls the driver from here on is out */
  wsgemm_handle *h = NULL;
  REQUIRE(wsgemm_create(&h) == WSGEMM_SUCCESS, "handle");
  for (int operands = 1; operands < 8; operands++) {
    wsgemm_gemm_desc d = device_desc(WSGEMM_F32, 8, 8, 8, operands % 2);
    if (!(operands & 1)) d.a = host[0];
    if (!(operands & 2)) d.b = host[1];
    if (!(operands & 4)) d.c = host[2];
    expect_failure(operands % 2 ? h : NULL, &d, WSGEMM_NO_DEVICE, "fork()");
    wsgemm_explain(h, &d, text, sizeof text);
    CHECK(strstr(text, "error: ") && strstr(text, "fork()"), "%s: explained: %s", who, text);
  }
  wsgemm_gemm_desc d = device_desc(WSGEMM_F32, 8, 8, 0, 0);
  expect_failure(h, &d, WSGEMM_NO_DEVICE, "fork()");
  size_t bytes;
  d = device_desc(WSGEMM_F32, 8, 8, 8, 0);
  CHECK(wsgemm_set_workspace(h, d.c, 4096) == WSGEMM_NO_DEVICE && strstr(wsgemm_last_error(), "fork()"), "%s: workspace: %s", who,
        wsgemm_last_error());
  CHECK(wsgemm_get_workspace_size(h, &d, &bytes) == WSGEMM_NO_DEVICE && bytes == 0, "%s: size of the workspace: %s", who,
        wsgemm_last_error());
  CHECK(wsgemm_set_workspace(h, NULL, 0) == WSGEMM_SUCCESS, "%s: no workspace: %s", who, wsgemm_last_error());
  expect_cpu_works(who);
  expect_page_ends_work(who);
  wsgemm_machine(text, sizeof text);
  CHECK(strstr(text, "fork()"), "%s: %s", who, text);
  wsgemm_destroy(h);
}

static void grandchild(void *unused) {
  (void)unused;
  expect_no_gpu("a grandchild");
}

static void forked_child(void *unused) {
  (void)unused;
  check_in_child("a grandchild", grandchild, NULL); /* before this one has called */
  expect_no_gpu("a child");
  check_in_child("a later grandchild", grandchild, NULL);
}

CHILD_CASE(fork_after_use) {
  (void)unused;
  const wsgemm_gemm_desc d = device_desc(WSGEMM_F32, 30, 30, 30, 0);
  for (int turn = 0; turn < 2; turn++) {
    launch_of(NULL, &d);
    check_in_child("a child of a process that used the GPU", forked_child, NULL);
    CHECK(launch_of(NULL, &d)->device == 0, "the parent after the fork");
  }
}

/* The parent has worked on host memory alone, but with a driver that somebody had initialised. */
CHILD_CASE(fork_after_host_calls) {
  (void)unused;
  device_memory(0), device_memory(1);
  expect_cpu_works("the parent");
  check_in_child("a child of a process that used CUDA", forked_child, NULL);
}

/* The parent has used CUDA, but not this library, which cannot know more than the driver says in
 * the child: that nobody has initialised it. */
static void first_user(void *unused) {
  (void)unused;
  static float host[3][64];
  char text[1024];
  size_t bytes;
  fake.is_initialised = false;
  for (int operands = 1; operands < 8; operands++) {
    wsgemm_gemm_desc d = device_desc(WSGEMM_F32, 8, 8, 8, operands % 2);
    if (!(operands & 1)) d.a = host[0];
    if (!(operands & 2)) d.b = host[1];
    if (!(operands & 4)) d.c = host[2];
    expect_failure(NULL, &d, WSGEMM_NO_DEVICE, "fork()");
    wsgemm_explain(NULL, &d, text, sizeof text);
    CHECK(strstr(text, "error: ") && strstr(text, "fork()"), "explained: %s", text);
    CHECK(wsgemm_get_workspace_size(NULL, &d, &bytes) == WSGEMM_NO_DEVICE, "%s", wsgemm_last_error());
  }
  CHECK(wsgemm_set_workspace(NULL, device_memory(0), 4096) == WSGEMM_NO_DEVICE, "workspace: %s", wsgemm_last_error());
  expect_cpu_works("a child of a process that used CUDA");
  expect_page_ends_work("a child of a process that used CUDA");
}

CHILD_CASE(fork_before_first_use) {
  (void)unused;
  device_memory(0), device_memory(1);
  check_in_child("a child that is first to use the library", first_user, NULL);
}

/* Nobody had: the child is free to, and so is the parent. */
static void child_uses_gpu(void *unused) {
  (void)unused;
  const wsgemm_gemm_desc d = device_desc(WSGEMM_F32, 30, 30, 30, 0);
  expect_cpu_works("the child");
  fake.is_initialised = true;
  CHECK(launch_of(NULL, &d)->device == 0, "the child");
}

CHILD_CASE(fork_before_use) {
  (void)unused;
  fake.is_initialised = false;
  check_in_child("a child that is first to use the library", child_uses_gpu, NULL);
  expect_cpu_works("the parent");
  check_in_child("a child of a process without CUDA", child_uses_gpu, NULL);
  child_uses_gpu(NULL);
}

/* A thread is in the middle of loading kernels, or of a launch, and holds the lock for that, while
 * another forks. A child that hangs is ended by CTest. */
static atomic_bool is_held, may_go_on;
static fake_function held_in;
static void hold(fake_function function) {
  if (function != held_in) return;
  atomic_store(&is_held, true);
  while (!atomic_load(&may_go_on)) usleep(1000);
}

static void *first_caller(void *unused) {
  (void)unused;
  const wsgemm_gemm_desc d = device_desc(WSGEMM_F32, 30, 30, 30, 0);
  CHECK(wsgemm_gemm(NULL, &d) == WSGEMM_SUCCESS, "beside a fork: %s", wsgemm_last_error());
  return NULL;
}

static void fork_beside(fake_function function) {
  pthread_t thread;
  device_memory(0), device_memory(1);
  held_in = function;
  fake.before_call = hold;
  REQUIRE(pthread_create(&thread, NULL, first_caller, NULL) == 0, "thread");
  while (!atomic_load(&is_held)) usleep(1000);
  check_in_child("a child forked beside a call", forked_child, NULL);
  atomic_store(&may_go_on, true);
  pthread_join(thread, NULL);
  first_caller(NULL);
}

CHILD_CASE(fork_beside_loading) {
  (void)unused;
  fork_beside(FAKE_cuLibraryLoadData);
}

CHILD_CASE(fork_beside_a_launch) {
  (void)unused;
  fork_beside(FAKE_cuLaunchKernelEx);
}

static const struct check_case cases[] = {{"nobody_has_initialised_it", nobody_has_initialised_it},
                                          {"no_device", no_device},
                                          {"old_drivers", old_drivers},
                                          {"no_kernels", no_kernels},
                                          {"shared_memory_too_small", shared_memory_too_small},
                                          {"no_block_fits", no_block_fits},
                                          {"no_scaling", no_scaling},
                                          {"large_clusters", large_clusters},
                                          {"launches_fail", launches_fail},
                                          {"each_call_fails", each_call_fails},
                                          {"shared_memory_refused_once", shared_memory_refused_once},
                                          {"everything_fails", everything_fails},
                                          {"fork_after_use", fork_after_use},
                                          {"fork_after_host_calls", fork_after_host_calls},
                                          {"fork_before_first_use", fork_before_first_use},
                                          {"fork_before_use", fork_before_use},
                                          {"fork_beside_loading", fork_beside_loading},
                                          {"fork_beside_a_launch", fork_beside_a_launch}};
CHECK_MAIN("backend_faults", cases)
