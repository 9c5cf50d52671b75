/* test_gpu_calls.c - how calls on device memory behave: who works where, streams and threads,
 * graphs, managed and pinned memory, bad pointers, the noisy neighbour. Whether C is right element
 * by element is test_gpu_gemm.c's business; here a digest on the default stream is the
 * reference. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "gpu.h"

enum { N = 700, BYTES = N * N * (int)sizeof(float) };
static float *a, *b; /* device */
static unsigned long long expected;

static wsgemm_status multiply(wsgemm_handle *h, float *c) {
  return wsgemm_sgemm(h, WSGEMM_COL_MAJOR, WSGEMM_NO_TRANS, WSGEMM_TRANS, N, N, N, 1, a, N, b, N, 0, c, N);
}

static void make_operands(void) {
  struct check_random rng = check_random_from(1);
  float *host = malloc(BYTES);
  REQUIRE(host != NULL, "memory");
  for (int x = 0; x < 2; x++) {
    for (int i = 0; i < N * N; i++) host[i] = (float)check_random_unit(&rng);
    *(x ? &b : &a) = gpu_copy(host, BYTES);
  }
  free(host);
  float *c = gpu_alloc(BYTES);
  REQUIRE(multiply(NULL, c) == WSGEMM_SUCCESS, "%s", wsgemm_last_error());
  expected = gpu_digest(c, BYTES);
  gpu_free(c);
}

static wsgemm_handle *handle_on(cudaStream_t stream) {
  wsgemm_handle *h = NULL;
  REQUIRE(wsgemm_create(&h) == WSGEMM_SUCCESS && wsgemm_set_stream(h, stream) == WSGEMM_SUCCESS, "handle");
  return h;
}

static void explains(void) {
  wsgemm_gemm_desc d = gemm_desc(WSGEMM_F32, WSGEMM_COL_MAJOR, WSGEMM_NO_TRANS, WSGEMM_TRANS, N, N, N);
  float host;
  float *c = gpu_alloc(BYTES);
  d.a = a, d.b = b, d.c = c;
  for (int type = 0; type < N_TYPES; type++) {
    d.type_a = d.type_b = d.type_c = (wsgemm_type)type, d.type_scalar = type_of_scalars(d.type_a);
    CHECK(explained_is(NULL, &d, "backend", "cuda"), "device memory is not explained as cuda for type %c", type_letter(d.type_a));
  }
  d = gemm_desc(WSGEMM_F32, WSGEMM_COL_MAJOR, WSGEMM_NO_TRANS, WSGEMM_TRANS, N, N, N);
  gpu_free(c);
  d.a = d.b = d.c = &host;
  CHECK(explained_is(NULL, &d, "backend", "cpu"), "host memory is not explained as cpu");
}

/* Host and device memory mixed, in every position: refused, with nothing launched and C
 * untouched. */
static void mixed_pointers(void) {
  static float host[N * N];
  float *device = gpu_alloc(BYTES);
  GPU(cudaMemset(device, 0x5a, BYTES));
  const unsigned long long before = gpu_digest(device, BYTES);
  const float *as[] = {a, host}, *bs[] = {b, host};
  float *cs[] = {device, host};
  for (int mix = 1; mix < 7; mix++) {
    const wsgemm_status status = wsgemm_sgemm(NULL, WSGEMM_COL_MAJOR, WSGEMM_NO_TRANS, WSGEMM_TRANS, N, N, N, 1, as[mix & 1], N,
                                              bs[mix >> 1 & 1], N, 0, cs[mix >> 2 & 1], N);
    CHECK(status == WSGEMM_INVALID_POINTER && strstr(wsgemm_last_error(), "host"), "mix %d: status %d (%s)", mix, (int)status,
          wsgemm_last_error());
  }
  GPU(cudaDeviceSynchronize());
  CHECK(gpu_digest(device, BYTES) == before, "C was written");
  gpu_free(device);
}

static void managed_and_pinned(void) {
  float *managed[3], *pinned[3];
  for (int i = 0; i < 3; i++) {
    GPU(cudaMallocManaged((void **)&managed[i], BYTES, cudaMemAttachGlobal));
    GPU(cudaMallocHost((void **)&pinned[i], BYTES));
  }
  GPU(cudaMemcpy(managed[0], a, BYTES, cudaMemcpyDefault));
  GPU(cudaMemcpy(managed[1], b, BYTES, cudaMemcpyDefault));
  GPU(cudaMemcpy(pinned[0], a, BYTES, cudaMemcpyDefault));
  GPU(cudaMemcpy(pinned[1], b, BYTES, cudaMemcpyDefault));
  CHECK(wsgemm_sgemm(NULL, WSGEMM_COL_MAJOR, WSGEMM_NO_TRANS, WSGEMM_TRANS, N, N, N, 1, managed[0], N, managed[1], N, 0,
                     managed[2], N) == WSGEMM_SUCCESS,
        "managed: %s", wsgemm_last_error());
  GPU(cudaDeviceSynchronize());
  CHECK(gpu_digest(managed[2], BYTES) == expected, "managed memory: other bits than device memory");
  /* pinned host memory is host memory: the CPU's own kernel and bits */
  float *host_c = malloc(BYTES), *host_a = malloc(BYTES), *host_b = malloc(BYTES);
  REQUIRE(host_a && host_b && host_c, "memory");
  memcpy(host_a, pinned[0], BYTES), memcpy(host_b, pinned[1], BYTES);
  for (int on_pinned = 0; on_pinned < 2; on_pinned++)
    CHECK(wsgemm_sgemm(NULL, WSGEMM_COL_MAJOR, WSGEMM_NO_TRANS, WSGEMM_TRANS, N, N, N, 1, on_pinned ? pinned[0] : host_a, N,
                       on_pinned ? pinned[1] : host_b, N, 0, on_pinned ? pinned[2] : host_c, N) == WSGEMM_SUCCESS,
          "host: %s", wsgemm_last_error());
  CHECK(memcmp(pinned[2], host_c, BYTES) == 0, "pinned memory: other bits than plain host memory");
  free(host_a), free(host_b), free(host_c);
  for (int i = 0; i < 3; i++) GPU(cudaFree(managed[i])), GPU(cudaFreeHost(pinned[i]));
}

enum { N_STREAMS = 8, N_ROUNDS = 40 };

/* Many streams at once, under every policy; each on a C of its own. */
static void streams(void) {
  cudaStream_t stream[N_STREAMS];
  wsgemm_handle *handle[N_STREAMS];
  float *c[N_STREAMS];
  for (int s = 0; s < N_STREAMS; s++) {
    GPU(cudaStreamCreateWithFlags(&stream[s], cudaStreamNonBlocking));
    handle[s] = handle_on(stream[s]);
    c[s] = gpu_alloc(BYTES);
    wsgemm_set_policy(handle[s], (wsgemm_policy)(s % 6));
    wsgemm_set_quantum(handle[s], s % 3);
  }
  for (int round = 0; round < N_ROUNDS; round++)
    for (int s = 0; s < N_STREAMS; s++) {
      GPU(cudaMemsetAsync(c[s], 0xff, BYTES, stream[s]));
      CHECK(multiply(handle[s], c[s]) == WSGEMM_SUCCESS, "%s", wsgemm_last_error());
    }
  GPU(cudaDeviceSynchronize());
  for (int s = 0; s < N_STREAMS; s++) {
    CHECK(gpu_digest(c[s], BYTES) == expected, "stream %d: other bits", s);
    wsgemm_destroy(handle[s]);
    GPU(cudaStreamDestroy(stream[s]));
    gpu_free(c[s]);
  }
}

struct caller {
  pthread_t thread;
  wsgemm_handle *handle; /* NULL: the default one */
  float *c;
  int n_failed;
};

static void *call_many(void *argument) {
  struct caller *caller = argument;
  cudaSetDevice(0);
  for (int round = 0; round < N_ROUNDS; round++) caller->n_failed += multiply(caller->handle, caller->c) != WSGEMM_SUCCESS;
  return NULL;
}

/* Many threads at once; half of them on the default handle and stream, half on streams of their
 * own. */
static void threads(void) {
  struct caller callers[N_STREAMS];
  cudaStream_t stream[N_STREAMS];
  for (int t = 0; t < N_STREAMS; t++) {
    GPU(cudaStreamCreateWithFlags(&stream[t], cudaStreamNonBlocking));
    callers[t] = (struct caller){.handle = t % 2 ? handle_on(stream[t]) : NULL, .c = gpu_alloc(BYTES)};
    REQUIRE(pthread_create(&callers[t].thread, NULL, call_many, &callers[t]) == 0, "thread");
  }
  for (int t = 0; t < N_STREAMS; t++) pthread_join(callers[t].thread, NULL);
  GPU(cudaDeviceSynchronize());
  for (int t = 0; t < N_STREAMS; t++) {
    CHECK(callers[t].n_failed == 0, "thread %d: %d calls failed", t, callers[t].n_failed);
    CHECK(gpu_digest(callers[t].c, BYTES) == expected, "thread %d: other bits", t);
    gpu_free(callers[t].c);
    if (callers[t].handle) wsgemm_destroy(callers[t].handle);
    GPU(cudaStreamDestroy(stream[t]));
  }
}

/* A thread that has never used CUDA. */
static void *call_without_context(void *argument) {
  struct caller *caller = argument;
  caller->n_failed = multiply(caller->handle, caller->c) != WSGEMM_SUCCESS;
  return NULL;
}

static void fresh_thread(void) {
  struct caller caller = {.c = gpu_alloc(BYTES)};
  REQUIRE(pthread_create(&caller.thread, NULL, call_without_context, &caller) == 0, "thread");
  pthread_join(caller.thread, NULL);
  GPU(cudaDeviceSynchronize());
  CHECK(caller.n_failed == 0 && gpu_digest(caller.c, BYTES) == expected, "a thread without a context");
  gpu_free(caller.c);
}

/* Two graphs captured from one handle, replayed at the same time on two streams, many times. */
static void graphs(void) {
  cudaStream_t stream[2];
  cudaGraph_t graph[2];
  cudaGraphExec_t exec[2];
  float *c[2];
  GPU(cudaStreamCreateWithFlags(&stream[0], cudaStreamNonBlocking));
  GPU(cudaStreamCreateWithFlags(&stream[1], cudaStreamNonBlocking));
  wsgemm_handle *h = handle_on(stream[0]);
  for (int policy = 0; policy < 6; policy++) {
    wsgemm_set_policy(h, (wsgemm_policy)policy);
    for (int g = 0; g < 2; g++) {
      c[g] = gpu_alloc(BYTES);
      GPU(cudaStreamBeginCapture(stream[0], cudaStreamCaptureModeGlobal));
      for (int call = 0; call < 3; call++) CHECK(multiply(h, c[g]) == WSGEMM_SUCCESS, "captured: %s", wsgemm_last_error());
      GPU(cudaStreamEndCapture(stream[0], &graph[g]));
      GPU(cudaGraphInstantiate(&exec[g], graph[g], 0));
    }
    for (int round = 0; round < N_ROUNDS; round++)
      for (int g = 0; g < 2; g++) {
        GPU(cudaMemsetAsync(c[g], 0xff, BYTES, stream[g]));
        GPU(cudaGraphLaunch(exec[g], stream[g]));
      }
    GPU(cudaDeviceSynchronize());
    for (int g = 0; g < 2; g++) {
      CHECK(gpu_digest(c[g], BYTES) == expected, "policy %d, graph %d: other bits", policy, g);
      GPU(cudaGraphExecDestroy(exec[g]));
      GPU(cudaGraphDestroy(graph[g]));
      gpu_free(c[g]);
    }
  }
  wsgemm_destroy(h);
  GPU(cudaStreamDestroy(stream[0]));
  GPU(cudaStreamDestroy(stream[1]));
}

/* 100 runs beside products of other sizes on another stream: the same bits each time. */
static void noisy_neighbour(void) {
  cudaStream_t quiet, noisy;
  GPU(cudaStreamCreateWithFlags(&quiet, cudaStreamNonBlocking));
  GPU(cudaStreamCreateWithFlags(&noisy, cudaStreamNonBlocking));
  wsgemm_handle *h = handle_on(quiet), *noise = handle_on(noisy);
  float *c = gpu_alloc(BYTES), *other = gpu_alloc(BYTES);
  for (int run = 0; run < 100; run++) {
    const int n = 64 + 37 * (run % 16);
    for (int i = 0; i < 3; i++)
      CHECK(wsgemm_sgemm(noise, WSGEMM_COL_MAJOR, WSGEMM_NO_TRANS, WSGEMM_NO_TRANS, n, n, N, 1, a, N, b, N, 0, other, N) ==
                WSGEMM_SUCCESS,
            "%s", wsgemm_last_error());
    GPU(cudaMemsetAsync(c, 0xff, BYTES, quiet));
    CHECK(multiply(h, c) == WSGEMM_SUCCESS, "%s", wsgemm_last_error());
    GPU(cudaStreamSynchronize(quiet));
    CHECK(gpu_digest(c, BYTES) == expected, "run %d: other bits", run);
  }
  GPU(cudaDeviceSynchronize());
  wsgemm_destroy(h), wsgemm_destroy(noise);
  gpu_free(c), gpu_free(other);
  GPU(cudaStreamDestroy(quiet));
  GPU(cudaStreamDestroy(noisy));
}

int main(int argc, char **argv) {
  static const struct check_case cases[] = {{"explains", explains},
                                            {"mixed_pointers", mixed_pointers},
                                            {"managed_and_pinned", managed_and_pinned},
                                            {"streams", streams},
                                            {"threads", threads},
                                            {"fresh_thread", fresh_thread},
                                            {"graphs", graphs},
                                            {"noisy_neighbour", noisy_neighbour}};
  gpu_open();
  make_operands();
  return check_main("gpu_calls", cases, sizeof cases / sizeof cases[0], argc, argv);
}
