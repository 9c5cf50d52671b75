/* test_gpu_stress.c - calls on device memory under strain: many threads with many streams each, a
 * full device, a first call inside a capture, pointers that do not belong together, a second GPU.
 * References are digests of the same products made one after the other. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpu.h"

static struct check_random rng;

/* ---- products to be made again and again ----------------------------------------------------- */

/* LARGE: more items of the smallest row than blocks fit, so that there is something to steal;
 * SPLIT: few items and a long k. */
enum shape { SMALL, LARGE, SPLIT, SCALE, N_SHAPES };
enum { MAX_SIDE = 1210, MATRIX_BYTES = MAX_SIDE * MAX_SIDE * 8 };
struct job {
  wsgemm_gemm_desc d; /* with A and B in place; C is the caller's */
  const char *row;    /* to be forced; NULL: none */
  size_t c_bytes;
  unsigned long long expected;
};

static unsigned char *operands[4][2]; /* device: A and B of each type */
static const char *smallest_row[4];

static void find_smallest_rows(void) {
  static struct kernel_row rows[MAX_ROWS];
  const int n_rows = usable_rows(rows);
  int extent[4] = {0};
  for (int r = 0; r < n_rows; r++) {
    const int type = (int)rows[r].type, mn = rows[r].mr * rows[r].nr;
    if (rows[r].mr == 1 || rows[r].nr == 1 || (extent[type] > 0 && extent[type] <= mn)) continue;
    extent[type] = mn;
    smallest_row[type] = rows[r].name;
  }
}

static void make_operands(void) {
  double *host = malloc(MATRIX_BYTES);
  REQUIRE(host != NULL, "memory");
  find_smallest_rows();
  for (int type = 0; type < 4; type++)
    for (int x = 0; x < 2; x++) {
      for (size_t i = 0; i < MATRIX_BYTES / sizeof *host; i++)
        if (type_is_single((wsgemm_type)type))
          ((float *)host)[2 * i] = (float)check_random_unit(&rng), ((float *)host)[2 * i + 1] = (float)check_random_unit(&rng);
        else
          host[i] = check_random_unit(&rng);
      operands[type][x] = gpu_copy(host, MATRIX_BYTES);
    }
  free(host);
}

static void free_operands(void) {
  for (int type = 0; type < 4; type++)
    for (int x = 0; x < 2; x++) gpu_free(operands[type][x]);
}

static int64_t draw_side(wsgemm_type type, enum shape shape) {
  const int64_t large = type == WSGEMM_C64 ? 800 : 1200;
  return shape == LARGE ? large - check_random_in(&rng, 0, 9) : check_random_in(&rng, 1, shape == SPLIT ? 64 : 300);
}

static struct job draw_job(wsgemm_type type, enum shape shape) {
  const int64_t m = draw_side(type, shape), n = draw_side(type, shape);
  const int64_t k = shape == SCALE ? 0 : shape == SPLIT ? check_random_in(&rng, 1000, 5000) : check_random_in(&rng, 1, 300);
  struct job job = {.d = gemm_desc(type, draw_layout(&rng), draw_op(type, &rng), draw_op(type, &rng), m, n, k),
                    .row = shape == LARGE ? smallest_row[type] : NULL};
  wsgemm_gemm_desc *d = &job.d;
  const size_t bytes = type_bytes(type);
  d->lda += check_random_in(&rng, 0, 3), d->ldb += check_random_in(&rng, 0, 3), d->ldc += check_random_in(&rng, 0, 3);
  d->a = operands[type][0] + bytes * (size_t)check_random_in(&rng, 0, 3);
  d->b = operands[type][1] + bytes * (size_t)check_random_in(&rng, 0, 3);
  d->alpha = scalar_make(type, check_random_unit(&rng), check_random_unit(&rng));
  job.c_bytes = (size_t)(d->ldc * (d->layout == WSGEMM_COL_MAJOR ? d->n : d->m)) * bytes;
  return job;
}

/* Makes the job on a stream, with a C of its own: what is not an element of C stays 0xa5 and is
 * part of the digest. */
static wsgemm_status begin_job(wsgemm_handle *h, const struct job *job, void *c, cudaStream_t stream) {
  wsgemm_gemm_desc d = job->d;
  d.c = c;
  REQUIRE(wsgemm_set_kernel(h, job->row) == WSGEMM_SUCCESS, "%s", wsgemm_last_error());
  GPU(cudaMemsetAsync(c, 0xa5, job->c_bytes, stream));
  return wsgemm_gemm(h, &d);
}

static unsigned long long digest_on(const void *device, size_t bytes, void *host, cudaStream_t stream) {
  GPU(cudaMemcpyAsync(host, device, bytes, cudaMemcpyDeviceToHost, stream));
  GPU(cudaStreamSynchronize(stream));
  /* FNV-1a, by words; all sizes are multiples of 4 */
  unsigned long long digest = 1469598103934665603ull;
  for (size_t i = 0; i < bytes / sizeof(unsigned); i++) digest = (digest ^ ((const unsigned *)host)[i]) * 1099511628211ull;
  return digest;
}

static void expect_job(struct job *job, void *c, void *host) {
  REQUIRE(begin_job(NULL, job, c, 0) == WSGEMM_SUCCESS, "%s", wsgemm_last_error());
  job->expected = digest_on(c, job->c_bytes, host, 0);
}

/* ---- 16 threads, 4 streams each -------------------------------------------------------------- */

enum { N_THREADS = 16, N_STREAMS = 4, N_JOBS = 96, N_ROUNDS = 40 };
static struct job jobs[N_JOBS];

struct worker {
  pthread_t thread;
  int number, n_failed, n_wrong, n_products;
  char first_failure[200];
};

static void *work(void *argument) {
  struct worker *self = argument;
  struct check_random own = check_random_from(310 + (unsigned long long)self->number);
  wsgemm_handle *handle[N_STREAMS];
  cudaStream_t stream[N_STREAMS];
  void *c[N_STREAMS], *host = malloc(MATRIX_BYTES);
  REQUIRE(host != NULL, "memory");
  GPU(cudaSetDevice(0));
  for (int s = 0; s < N_STREAMS; s++) {
    GPU(cudaStreamCreateWithFlags(&stream[s], cudaStreamNonBlocking));
    c[s] = gpu_alloc(MATRIX_BYTES);
    REQUIRE(wsgemm_create(&handle[s]) == WSGEMM_SUCCESS && wsgemm_set_stream(handle[s], stream[s]) == WSGEMM_SUCCESS, "handle");
  }
  for (int round = 0; round < N_ROUNDS / (check_scale() > 1 ? 8 : 1); round++) {
    const struct job *chosen[N_STREAMS];
    for (int s = 0; s < N_STREAMS; s++) {
      chosen[s] = &jobs[check_random_in(&own, 0, N_JOBS - 1)];
      wsgemm_set_policy(handle[s], all_policies[check_random_in(&own, 0, N_POLICIES - 1)]);
      wsgemm_set_quantum(handle[s], (int)check_random_in(&own, 0, 2));
      if (begin_job(handle[s], chosen[s], c[s], stream[s]) != WSGEMM_SUCCESS && self->n_failed++ == 0)
        snprintf(self->first_failure, sizeof self->first_failure, "%s", wsgemm_last_error());
    }
    for (int s = 0; s < N_STREAMS; s++, self->n_products++)
      self->n_wrong += digest_on(c[s], chosen[s]->c_bytes, host, stream[s]) != chosen[s]->expected;
  }
  for (int s = 0; s < N_STREAMS; s++) {
    wsgemm_destroy(handle[s]);
    GPU(cudaStreamDestroy(stream[s]));
    gpu_free(c[s]);
  }
  free(host);
  return NULL;
}

static void threads_and_streams(void) {
  static struct worker workers[N_THREADS];
  void *c, *host = malloc(MATRIX_BYTES);
  rng = check_random_from(300);
  REQUIRE(host != NULL, "memory");
  make_operands();
  c = gpu_alloc(MATRIX_BYTES);
  for (int i = 0; i < N_JOBS; i++) {
    jobs[i] = draw_job((wsgemm_type)(i % 4), i / 4 % 8 == 0 ? LARGE : i / 4 % 8 < 3 ? SPLIT : i / 4 % 8 < 4 ? SCALE : SMALL);
    expect_job(&jobs[i], c, host);
  }
  for (int t = 0; t < N_THREADS; t++) {
    workers[t].number = t;
    REQUIRE(pthread_create(&workers[t].thread, NULL, work, &workers[t]) == 0, "thread");
  }
  for (int t = 0; t < N_THREADS; t++) {
    pthread_join(workers[t].thread, NULL);
    CHECK(workers[t].n_failed == 0 && workers[t].n_products > 0, "thread %d: %d of %d calls failed (%s)", t, workers[t].n_failed,
          workers[t].n_products, workers[t].first_failure);
    CHECK(workers[t].n_wrong == 0, "thread %d: %d of %d products have other bits than alone", t, workers[t].n_wrong,
          workers[t].n_products);
  }
  gpu_free(c), free(host);
  free_operands();
}

/* ---- a full device --------------------------------------------------------------------------- */

struct block {
  struct block *next; /* in host memory; `device` is what was taken */
  void *device;
};

/* All that the device has left, down to pieces of 64 KiB. */
static struct block *take_all(size_t *bytes_taken) {
  struct block *first = NULL;
  *bytes_taken = 0;
  for (size_t bytes = (size_t)1 << 30; bytes >= (size_t)64 << 10; bytes /= 2)
    for (;;) {
      struct block *block = malloc(sizeof *block);
      REQUIRE(block != NULL, "memory");
      if (cudaMalloc(&block->device, bytes) != cudaSuccess) {
        free(block);
        cudaGetLastError(); /* that was expected */
        break;
      }
      block->next = first, first = block;
      *bytes_taken += bytes;
    }
  return first;
}

static void give_back(struct block *block) {
  while (block) {
    struct block *next = block->next;
    GPU(cudaFree(block->device));
    free(block);
    block = next;
  }
}

/* A call allocates nothing, so a full device does not matter to kernels that are loaded. One that
 * is not may fail to load, with a status that says so, and works when there is room again. */
static void memory_is_full(void) {
  enum { N = 24 };
  static struct job some[N];
  void *c, *host = malloc(MATRIX_BYTES);
  size_t bytes_taken;
  int n_refused = 0;
  rng = check_random_from(301);
  REQUIRE(host != NULL, "memory");
  make_operands();
  c = gpu_alloc(MATRIX_BYTES);
  for (int i = 0; i < N; i++) {
    some[i] = draw_job((wsgemm_type)(i % 3), (enum shape)(i / 3 % N_SHAPES)); /* z is not loaded */
    expect_job(&some[i], c, host);
  }
  struct block *all = take_all(&bytes_taken);
  CHECK(bytes_taken > 0, "nothing could be taken");
  for (int turn = 0; turn < 3 * N; turn++) {
    const struct job *job = &some[turn % N];
    CHECK(begin_job(NULL, job, c, 0) == WSGEMM_SUCCESS, "on a full device: %s", wsgemm_last_error());
    CHECK(digest_on(c, job->c_bytes, host, 0) == job->expected, "on a full device: other bits");
  }
  struct job late = draw_job(WSGEMM_C64, SMALL);
  for (int turn = 0; turn < 3; turn++) {
    const wsgemm_status status = begin_job(NULL, &late, c, 0);
    GPU(cudaStreamSynchronize(0));
    n_refused += status != WSGEMM_SUCCESS;
    CHECK(status == WSGEMM_SUCCESS || (status == WSGEMM_ALLOC_FAILED && strstr(wsgemm_last_error(), "CUDA_ERROR_OUT_OF_MEMORY")),
          "a new kernel on a full device: %s (%s)", wsgemm_status_name(status), wsgemm_last_error());
  }
  give_back(all);
  cudaGetLastError();
  printf("  %zu MiB taken; a new kernel was refused %d times of 3\n", bytes_taken >> 20, n_refused);
  expect_job(&late, c, host);
  const unsigned long long first = late.expected;
  expect_job(&late, c, host);
  CHECK(late.expected == first, "when there is room again: other bits");
  gpu_free(c), free(host);
  free_operands();
}

/* ---- captures -------------------------------------------------------------------------------- */

/* The process's first call for a type lies in a capture of the strictest mode: kernels are loaded
 * and queues found beside it. */
static void first_call_in_capture(void) {
  cudaStream_t stream;
  wsgemm_handle *h = NULL;
  void *c, *host = malloc(MATRIX_BYTES);
  rng = check_random_from(302);
  REQUIRE(host != NULL && wsgemm_create(&h) == WSGEMM_SUCCESS, "memory");
  make_operands();
  c = gpu_alloc(MATRIX_BYTES);
  GPU(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  REQUIRE(wsgemm_set_stream(h, stream) == WSGEMM_SUCCESS, "stream");
  for (int turn = 0; turn < 4 * 6 * N_SHAPES; turn++) { /* types, policies, shapes */
    struct job job = draw_job((wsgemm_type)(turn / N_SHAPES / 6), (enum shape)(turn % N_SHAPES));
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    enum cudaStreamCaptureStatus capture;
    size_t n_nodes = 0;
    wsgemm_set_policy(h, (wsgemm_policy)(turn / N_SHAPES % 6));
    GPU(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    CHECK(begin_job(h, &job, c, stream) == WSGEMM_SUCCESS, "turn %d: %s", turn, wsgemm_last_error());
    GPU(cudaStreamIsCapturing(stream, &capture));
    CHECK(capture == cudaStreamCaptureStatusActive, "turn %d: the capture is broken", turn);
    GPU(cudaStreamEndCapture(stream, &graph));
    GPU(cudaGraphGetNodes(graph, NULL, &n_nodes));
    CHECK(n_nodes >= 2, "turn %d: %zu nodes, not a memset and a launch", turn, n_nodes);
    expect_job(&job, c, host);
    GPU(cudaMemsetAsync(c, 0xff, job.c_bytes, stream));
    GPU(cudaGraphInstantiate(&exec, graph, 0));
    for (int replay = 0; replay < 3; replay++) {
      GPU(cudaGraphLaunch(exec, stream));
      CHECK(digest_on(c, job.c_bytes, host, stream) == job.expected, "turn %d: other bits from the graph", turn);
    }
    GPU(cudaGraphExecDestroy(exec));
    GPU(cudaGraphDestroy(graph));
  }
  wsgemm_destroy(h);
  GPU(cudaStreamDestroy(stream));
  gpu_free(c), free(host);
  free_operands();
}

/* ---- bad pointers, a second GPU -------------------------------------------------------------- */

static void expect_refusal(const wsgemm_gemm_desc *d, wsgemm_status status, const char *words, const char *what) {
  const wsgemm_status got = wsgemm_gemm(NULL, d);
  CHECK(got == status && strstr(wsgemm_last_error(), words), "%s: %s (%s)", what, wsgemm_status_name(got), wsgemm_last_error());
  CHECK(cudaDeviceSynchronize() == cudaSuccess && cudaGetLastError() == cudaSuccess, "%s: an error was left behind", what);
}

/* One operand in memory of another kind, for products, scalings and batches; then a good call, as
 * if nothing had been. */
static void bad_pointers(void) {
  void *c, *pinned, *host = malloc(MATRIX_BYTES);
  rng = check_random_from(303);
  REQUIRE(host != NULL, "memory");
  make_operands();
  c = gpu_alloc(MATRIX_BYTES);
  GPU(cudaMallocHost(&pinned, MATRIX_BYTES));
  for (int turn = 0; turn < 4 * 2 * 3; turn++) {
    const wsgemm_type type = (wsgemm_type)(turn % 4);
    void *other = turn / 4 % 2 ? pinned : host;
    struct job job = draw_job(type, SMALL);
    expect_job(&job, c, host);
    wsgemm_gemm_desc d = job.d;
    d.c = c;
    if (turn / 8 == 0) d.a = other;
    if (turn / 8 == 1) d.b = other;
    if (turn / 8 == 2) d.c = other;
    expect_refusal(&d, WSGEMM_INVALID_POINTER, "host memory", "host memory among device memory");
    d.batch_count = 3, d.stride_c = MAX_SIDE * MAX_SIDE;
    expect_refusal(&d, WSGEMM_INVALID_POINTER, "host memory", "host memory in a batch");
    if (turn / 8 == 0) d.a = NULL;
    if (turn / 8 == 1) d.b = NULL;
    if (turn / 8 == 2) d.c = NULL;
    expect_refusal(&d, WSGEMM_INVALID_POINTER, "is NULL", "NULL among device memory");
    CHECK(digest_on(c, job.c_bytes, host, 0) == job.expected, "a refused call wrote C");
    const unsigned long long before = job.expected;
    expect_job(&job, c, host);
    CHECK(job.expected == before, "after a refused call: other bits");
  }
  GPU(cudaFreeHost(pinned));
  gpu_free(c), free(host);
  free_operands();
}

/* Pointers decide about the GPU, not what is current; and matrices on both are refused. */
static void two_gpus(void) {
  int n_devices = 0, current = -1;
  GPU(cudaGetDeviceCount(&n_devices));
  if (n_devices < 2) {
    check_skip("one GPU");
    return;
  }
  void *c[2], *a[2], *b[2], *host = malloc(MATRIX_BYTES);
  rng = check_random_from(304);
  REQUIRE(host != NULL, "memory");
  make_operands();
  struct job job = draw_job(WSGEMM_F64, SMALL);
  const size_t a_offset = (size_t)((const unsigned char *)job.d.a - operands[WSGEMM_F64][0]);
  const size_t b_offset = (size_t)((const unsigned char *)job.d.b - operands[WSGEMM_F64][1]);
  for (int device = 0; device < 2; device++) {
    GPU(cudaSetDevice(device));
    a[device] = gpu_alloc(MATRIX_BYTES), b[device] = gpu_alloc(MATRIX_BYTES), c[device] = gpu_alloc(MATRIX_BYTES);
    GPU(cudaMemcpy(a[device], operands[WSGEMM_F64][0], MATRIX_BYTES, cudaMemcpyDefault));
    GPU(cudaMemcpy(b[device], operands[WSGEMM_F64][1], MATRIX_BYTES, cudaMemcpyDefault));
  }
  GPU(cudaSetDevice(0));
  expect_job(&job, c[0], host);
  for (int device = 0; device < 2; device++)
    for (int now = 0; now < 2; now++) {
      wsgemm_gemm_desc d = job.d;
      d.a = (unsigned char *)a[device] + a_offset, d.b = (unsigned char *)b[device] + b_offset, d.c = c[device];
      GPU(cudaSetDevice(device));
      GPU(cudaMemset(c[device], 0xa5, job.c_bytes));
      GPU(cudaDeviceSynchronize());
      GPU(cudaSetDevice(now));
      CHECK(wsgemm_gemm(NULL, &d) == WSGEMM_SUCCESS, "device %d from %d: %s", device, now, wsgemm_last_error());
      GPU(cudaGetDevice(&current));
      CHECK(current == now, "device %d was current, now %d", now, current);
      GPU(cudaSetDevice(device));
      GPU(cudaDeviceSynchronize());
      CHECK(digest_on(c[device], job.c_bytes, host, 0) == job.expected, "device %d from %d: other bits", device, now);
      if (now == 0) d.a = (unsigned char *)a[1 - device] + a_offset;
      if (now == 1) d.c = c[1 - device];
      expect_refusal(&d, WSGEMM_INVALID_POINTER, "different devices", "matrices on two GPUs");
    }
  GPU(cudaSetDevice(0));
  for (int device = 0; device < 2; device++) gpu_free(a[device]), gpu_free(b[device]), gpu_free(c[device]);
  free(host);
  free_operands();
}

int main(int argc, char **argv) {
  static const struct check_case cases[] = {{"first_call_in_capture", first_call_in_capture},
                                            {"memory_is_full", memory_is_full},
                                            {"threads_and_streams", threads_and_streams},
                                            {"bad_pointers", bad_pointers},
                                            {"two_gpus", two_gpus}};
  gpu_open();
  return check_main("gpu_stress", cases, sizeof cases / sizeof cases[0], argc, argv);
}
