/* test_gpu_lending.c - what the library lends, on a GPU: graphs that come, go and live beside each
 * other, contexts that end, a few SMs, a device that is nearly full. Always the bits of the first
 * product of its kind, or a refusal that leaves C alone. What the driver is asked for is
 * tests/host/test_backend_lending.c's business. */
#include <cuda.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpu.h"

/* A product and its matrices in device memory: by slices where the GPU has rows for that, as large
 * as it must be for it. */
struct matrices {
  int64_t m, n, k;
  wsgemm_type type;
  size_t a_bytes, b_bytes, c_bytes;
  void *a, *b, *c;
};

static const size_t element_bytes[] = {[WSGEMM_F32] = 4, [WSGEMM_F64] = 8};

static void *operand(struct check_random *rng, wsgemm_type type, size_t bytes) {
  void *host = malloc(bytes);
  REQUIRE(host != NULL, "memory");
  for (size_t i = 0; i < bytes / element_bytes[type]; i++) {
    const double x = check_random_unit(rng);
    if (type == WSGEMM_F32)
      ((float *)host)[i] = (float)x;
    else
      ((double *)host)[i] = x;
  }
  void *device = gpu_copy(host, bytes);
  free(host);
  return device;
}

/* The same numbers each time. */
static struct matrices matrices_new(wsgemm_type type, int64_t m, int64_t n, int64_t k) {
  struct check_random rng = check_random_from(501);
  const size_t bytes = element_bytes[type];
  struct matrices p = {m,    n,    k,   type, (size_t)(m * k) * bytes, (size_t)(k * n) * bytes, (size_t)(m * n) * bytes,
                       NULL, NULL, NULL};
  p.a = operand(&rng, type, p.a_bytes), p.b = operand(&rng, type, p.b_bytes);
  p.c = gpu_alloc(p.c_bytes);
  return p;
}

static void matrices_free(struct matrices *p) { gpu_free(p->a), gpu_free(p->b), gpu_free(p->c); }

static struct matrices sliced_product(void) { return matrices_new(WSGEMM_F32, 1024, 1024, 1024); }

static wsgemm_status multiply(wsgemm_handle *h, const struct matrices *p, void *c) {
  wsgemm_gemm_desc d = gemm_desc(p->type, WSGEMM_COL_MAJOR, WSGEMM_NO_TRANS, WSGEMM_NO_TRANS, p->m, p->n, p->k);
  d.a = p->a, d.b = p->b, d.c = c;
  return wsgemm_gemm(h, &d);
}

static wsgemm_handle *handle_on(cudaStream_t stream) {
  wsgemm_handle *h = NULL;
  REQUIRE(wsgemm_create(&h) == WSGEMM_SUCCESS && wsgemm_set_stream(h, stream) == WSGEMM_SUCCESS, "handle");
  return h;
}

static cudaStream_t stream_new(void) {
  cudaStream_t stream;
  GPU(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  return stream;
}

static void spoil(void *c, size_t bytes, cudaStream_t stream) { GPU(cudaMemsetAsync(c, 0xff, bytes, stream)); }

/* Of a call that is not captured. */
static unsigned long long eager_digest(wsgemm_handle *h, const struct matrices *p) {
  GPU(cudaMemset(p->c, 0xff, p->c_bytes));
  GPU(cudaDeviceSynchronize());
  void *stream = NULL;
  REQUIRE(multiply(h, p, p->c) == WSGEMM_SUCCESS && wsgemm_get_stream(h, &stream) == WSGEMM_SUCCESS, "%s", wsgemm_last_error());
  GPU(cudaStreamSynchronize(stream)); /* also one of a green context */
  return gpu_digest(p->c, p->c_bytes);
}

/* Clears c, then multiplies. */
static cudaGraphExec_t capture(wsgemm_handle *h, cudaStream_t stream, const struct matrices *p, void *c, cudaGraph_t *graph) {
  cudaGraphExec_t exec;
  GPU(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
  spoil(c, p->c_bytes, stream);
  const wsgemm_status status = multiply(h, p, c);
  GPU(cudaStreamEndCapture(stream, graph));
  REQUIRE(status == WSGEMM_SUCCESS, "captured: %s", wsgemm_last_error());
  GPU(cudaGraphInstantiate(&exec, *graph, 0));
  return exec;
}

/* ---- graphs ---------------------------------------------------------------------------------- */

static size_t free_bytes(void) {
  size_t bytes, total;
  GPU(cudaMemGetInfo(&bytes, &total));
  return bytes;
}

/* A product that is captured anew for each request: all have the bits of an eager one, and no
 * memory is lost on the way. */
static void recaptured(void) {
  enum { N_TURNS = 5000, N_WARM = 50, LOOK_EACH = 50, MOST_LOST = 64 << 20 };
  struct matrices p = sliced_product();
  cudaStream_t stream = stream_new();
  wsgemm_handle *h = handle_on(stream);
  const unsigned long long expected = eager_digest(h, &p);
  size_t before = 0;
  for (int turn = 0; turn < N_TURNS; turn++) {
    cudaGraph_t graph;
    cudaGraphExec_t exec = capture(h, stream, &p, p.c, &graph);
    GPU(cudaGraphLaunch(exec, stream));
    GPU(cudaGraphDestroy(graph));
    GPU(cudaStreamSynchronize(stream));
    if (turn % LOOK_EACH == 0)
      if (!CHECK(gpu_digest(p.c, p.c_bytes) == expected, "turn %d: other bits", turn)) break;
    GPU(cudaGraphExecDestroy(exec));
    if (turn == N_WARM) before = free_bytes();
  }
  const size_t after = free_bytes();
  CHECK(after + MOST_LOST > before, "%zu MiB are lost", (before - after) >> 20);
  CHECK(eager_digest(h, &p) == expected, "an eager call after them: other bits");
  wsgemm_destroy(h);
  GPU(cudaStreamDestroy(stream));
  matrices_free(&p);
}

/* Graph and instance are destroyed while the device works on them, and others are captured
 * meanwhile. */
static void destroyed_while_running(void) {
  enum { N_TURNS = 200, N_LAUNCHES = 4 };
  struct matrices p = matrices_new(WSGEMM_F32, 2048, 2048, 1024);
  cudaStream_t stream = stream_new();
  wsgemm_handle *h = handle_on(stream);
  const unsigned long long expected = eager_digest(h, &p);
  for (int turn = 0; turn < N_TURNS; turn++) {
    cudaGraph_t graph;
    cudaGraphExec_t exec = capture(h, stream, &p, p.c, &graph);
    for (int i = 0; i < N_LAUNCHES; i++) GPU(cudaGraphLaunch(exec, stream));
    GPU(cudaGraphExecDestroy(exec));
    GPU(cudaGraphDestroy(graph));
    if (turn % 8 != 7) continue; /* else the next is captured at once */
    GPU(cudaStreamSynchronize(stream));
    if (!CHECK(gpu_digest(p.c, p.c_bytes) == expected, "turn %d: other bits", turn)) break;
  }
  GPU(cudaStreamSynchronize(stream));
  wsgemm_destroy(h);
  GPU(cudaStreamDestroy(stream));
  matrices_free(&p);
}

/* Several at once, on streams of their own, beside eager calls: the same bits. */
static void graphs_alive_at_once(void) {
  enum { N = 4, N_TURNS = 50 };
  struct matrices p = sliced_product();
  cudaStream_t stream[N];
  wsgemm_handle *h[N];
  cudaGraph_t graph[N];
  cudaGraphExec_t exec[N];
  void *c[N];
  const unsigned long long expected = eager_digest(NULL, &p);
  for (int i = 0; i < N; i++) {
    stream[i] = stream_new(), h[i] = handle_on(stream[i]), c[i] = gpu_alloc(p.c_bytes);
    exec[i] = capture(h[i], stream[i], &p, c[i], &graph[i]);
  }
  for (int turn = 0; turn < N_TURNS; turn++) {
    for (int i = 0; i < N; i++) GPU(cudaGraphLaunch(exec[i], stream[i]));
    CHECK(multiply(h[turn % N], &p, p.c) == WSGEMM_SUCCESS, "%s", wsgemm_last_error());
    GPU(cudaDeviceSynchronize());
    CHECK(gpu_digest(p.c, p.c_bytes) == expected, "turn %d: an eager call has other bits", turn);
    for (int i = 0; i < N; i++) CHECK(gpu_digest(c[i], p.c_bytes) == expected, "turn %d, graph %d: other bits", turn, i);
  }
  for (int i = 0; i < N; i++) {
    GPU(cudaGraphExecDestroy(exec[i])), GPU(cudaGraphDestroy(graph[i]));
    wsgemm_destroy(h[i]);
    GPU(cudaStreamDestroy(stream[i]));
    gpu_free(c[i]);
  }
  matrices_free(&p);
}

/* ---- contexts -------------------------------------------------------------------------------- */

/* The driver's own entry points, which the runtime has no names for; NULL: it is too old. */
static void *driver_entry(const char *name) {
  static void *driver;
  if (!driver) driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  return driver ? dlsym(driver, name) : NULL;
}
#define ENTRY(variable, name)                     \
  void *const variable##_at = driver_entry(name); \
  memcpy(&variable, &variable##_at, sizeof variable)

/* The digests of a sliced and of a split product in the current context. */
static void digests(unsigned long long found[2]) {
  struct matrices sliced = sliced_product(), split = matrices_new(WSGEMM_F64, 64, 64, 16384);
  found[0] = eager_digest(NULL, &sliced), found[1] = eager_digest(NULL, &split);
  matrices_free(&sliced), matrices_free(&split);
}

/* Contexts of the program's own, made and destroyed between calls, and the primary one. */
static void other_contexts(void) {
  enum { N_TURNS = 4 };
  CUresult (*create)(CUcontext *, unsigned, CUdevice), (*destroy)(CUcontext);
  ENTRY(create, "cuCtxCreate_v2");
  ENTRY(destroy, "cuCtxDestroy_v2");
  REQUIRE(create && destroy, "the driver has no contexts");
  unsigned long long expected[2], found[2];
  digests(expected);
  for (int turn = 0; turn < N_TURNS; turn++) {
    CUcontext context;
    REQUIRE(create(&context, 0, 0) == CUDA_SUCCESS, "context");
    digests(found);
    CHECK(found[0] == expected[0] && found[1] == expected[1], "turn %d: other bits in another context", turn);
    CHECK(destroy(context) == CUDA_SUCCESS, "the context cannot be destroyed");
    GPU(cudaSetDevice(0));
    digests(found);
    CHECK(found[0] == expected[0] && found[1] == expected[1], "turn %d: other bits in the primary one", turn);
  }
}

static void device_reset(void) {
  enum { N_TURNS = 4 };
  unsigned long long expected[2], found[2];
  digests(expected);
  for (int turn = 0; turn < N_TURNS; turn++) {
    GPU(cudaDeviceReset());
    GPU(cudaSetDevice(0));
    digests(found);
    CHECK(found[0] == expected[0] && found[1] == expected[1], "after reset %d: other bits", turn);
  }
}

/* A stream with a few of the SMs: a split product, whose blocks would wait for each other, has the
 * same bits. */
static void few_sms(void) {
  enum { N_SMS = 8 };
  CUresult (*get)(CUdevice, CUdevResource *, CUdevResourceType);
  CUresult (*cut)(CUdevResource *, unsigned *, const CUdevResource *, CUdevResource *, unsigned, unsigned);
  CUresult (*describe)(CUdevResourceDesc *, CUdevResource *, unsigned);
  CUresult (*create)(CUgreenCtx *, CUdevResourceDesc, CUdevice, unsigned);
  CUresult (*make_stream)(CUstream *, CUgreenCtx, unsigned, int);
  CUresult (*destroy)(CUgreenCtx);
  ENTRY(get, "cuDeviceGetDevResource");
  ENTRY(cut, "cuDevSmResourceSplitByCount");
  ENTRY(describe, "cuDevResourceGenerateDesc");
  ENTRY(create, "cuGreenCtxCreate");
  ENTRY(make_stream, "cuGreenCtxStreamCreate");
  ENTRY(destroy, "cuGreenCtxDestroy");
  if (!get || !cut || !describe || !create || !make_stream || !destroy) {
    check_skip("the driver has no green contexts");
    return;
  }
  CUdevResource all, few, rest;
  CUdevResourceDesc description;
  CUgreenCtx green;
  CUstream stream;
  unsigned n = 1;
  const bool is_made = get(0, &all, CU_DEV_RESOURCE_TYPE_SM) == CUDA_SUCCESS &&
                       cut(&few, &n, &all, &rest, 0, N_SMS) == CUDA_SUCCESS && n == 1 &&
                       describe(&description, &few, 1) == CUDA_SUCCESS &&
                       create(&green, description, 0, CU_GREEN_CTX_DEFAULT_STREAM) == CUDA_SUCCESS;
  if (!is_made) {
    check_skip("the GPU has no green contexts");
    return;
  }
  REQUIRE(make_stream(&stream, green, CU_STREAM_NON_BLOCKING, 0) == CUDA_SUCCESS, "stream");
  static const int64_t sides[] = {64, 256};
  for (int i = 0; i < 2; i++) {
    struct matrices p = matrices_new(WSGEMM_F64, sides[i], sides[i], 16384);
    wsgemm_handle *h = handle_on(stream);
    const unsigned long long expected = eager_digest(NULL, &p);
    for (int turn = 0; turn < 10; turn++)
      CHECK(eager_digest(h, &p) == expected, "side %d, turn %d: other bits with %u SMs", (int)sides[i], turn, few.sm.smCount);
    wsgemm_destroy(h);
    matrices_free(&p);
  }
  GPU(cudaStreamDestroy(stream));
  CHECK(destroy(green) == CUDA_SUCCESS, "the green context cannot be destroyed");
}

/* ---- a device that is nearly full ------------------------------------------------------------ */

/* The first product of the process, with little room: right, or refused with C as it was. With room
 * it has its bits. */
static void first_on_a_full_device(void) {
  enum { MOST_BLOCKS = 4096 };
  static void *taken[MOST_BLOCKS];
  const size_t left = (size_t)300 << 20, smallest = (size_t)16 << 20;
  int n_taken = 0;
  struct matrices p = sliced_product();
  GPU(cudaMemset(p.c, 0xa5, p.c_bytes));
  const unsigned long long untouched = gpu_digest(p.c, p.c_bytes);
  for (size_t bytes = free_bytes(); bytes >= smallest;) {
    const size_t now = free_bytes();
    if (now <= left || n_taken == MOST_BLOCKS) break;
    if (bytes > now - left) bytes = now - left;
    if (cudaMalloc(&taken[n_taken], bytes) == cudaSuccess)
      n_taken++;
    else
      bytes /= 2, cudaGetLastError(); /* that was expected */
  }
  CHECK(n_taken > 0 && free_bytes() < 2 * left, "%zu MiB are still free", free_bytes() >> 20);
  const wsgemm_status status = multiply(NULL, &p, p.c);
  GPU(cudaDeviceSynchronize());
  const unsigned long long found = gpu_digest(p.c, p.c_bytes);
  CHECK(status == WSGEMM_SUCCESS || status == WSGEMM_ALLOC_FAILED, "%s: %s", wsgemm_status_name(status), wsgemm_last_error());
  CHECK(status == WSGEMM_SUCCESS || found == untouched, "a refused product has written C");
  printf("  with %zu MiB left: %s\n", free_bytes() >> 20, wsgemm_status_name(status));
  while (n_taken > 0) gpu_free(taken[--n_taken]);
  const unsigned long long expected = eager_digest(NULL, &p);
  CHECK(status != WSGEMM_SUCCESS || found == expected, "other bits than with room");
  matrices_free(&p);
}

int main(int argc, char **argv) {
  static const struct check_case cases[] = {{"recaptured", recaptured},
                                            {"destroyed_while_running", destroyed_while_running},
                                            {"graphs_alive_at_once", graphs_alive_at_once},
                                            {"other_contexts", other_contexts},
                                            {"device_reset", device_reset},
                                            {"few_sms", few_sms},
                                            {"first_on_a_full_device", first_on_a_full_device}};
  gpu_open();
  return check_main("gpu_lending", cases, sizeof cases / sizeof cases[0], argc, argv);
}
