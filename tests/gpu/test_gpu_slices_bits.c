/* test_gpu_slices_bits.c - FP32 products by slices of FP16 (compute capability 9.0), their bits:
 * the same over rows, policies, quanta, runs, workspaces, pieces and batches, from graphs, from
 * several threads and on many streams; before an epilogue; in invariant mode there are none. */
#include "slices.h"

#include <pthread.h>
#include <string.h>

static void bits(void) {
  rng = check_random_from(173);
  open_sliced(WSGEMM_F32, OF_THREE_PRODUCTS);
  bits_of(WSGEMM_F32, 600, 700, 512, 3, 2 << 20, WSGEMM_NO_TRANS, WSGEMM_TRANS);
  bits_of(WSGEMM_F32, 600, 700, 512, ALL_NEED_3, 2 << 20, WSGEMM_TRANS, WSGEMM_TRANS);
  bits_of(WSGEMM_F32, 300, 1100, 300, 3, 1 << 20, WSGEMM_TRANS, WSGEMM_NO_TRANS);
  bits_of(WSGEMM_F32, 129, 257, 1000, 3, 0, WSGEMM_NO_TRANS, WSGEMM_NO_TRANS);
  rows_close(&rows);
}

static void captured(void) {
  rng = check_random_from(174);
  captured_of(WSGEMM_F32);
}

static void batches(void) {
  rng = check_random_from(177);
  batches_of(WSGEMM_F32);
}

/* ---- Invariant mode -------------------------------------------------------------------------- */

enum { TALL = 300, FLAT = 10, ACROSS = 200, DEEP = 512 };

/* Rows 0 .. FLAT - 1 of a product of each height. */
static void heights_on(wsgemm_handle *h, const char *who) {
  static float tall[TALL * ACROSS], flat[FLAT * ACROSS];
  struct twice a = twice_new(WSGEMM_F32, TALL * DEEP, 2), b = twice_new(WSGEMM_F32, DEEP * ACROSS, 2),
               c = twice_new(WSGEMM_F32, TALL * ACROSS, 0);
  for (int is_flat = 0; is_flat < 2; is_flat++) {
    const int64_t m = is_flat ? FLAT : TALL;
    CHECK(wsgemm_sgemm(h, WSGEMM_COL_MAJOR, WSGEMM_TRANS, WSGEMM_NO_TRANS, m, ACROSS, DEEP, 1.25f, a.at[0], DEEP, b.at[0], DEEP,
                       0, c.at[is_flat], m) == WSGEMM_SUCCESS,
          "%s", wsgemm_last_error());
    GPU(cudaMemcpy(is_flat ? flat : tall, c.at[is_flat], (size_t)(m * ACROSS) * sizeof(float), cudaMemcpyDeviceToHost));
  }
  int n_wrong = 0;
  for (int64_t j = 0; j < ACROSS; j++)
    for (int64_t i = 0; i < FLAT; i++) n_wrong += memcmp(&flat[i + j * FLAT], &tall[i + j * TALL], sizeof(float)) != 0;
  CHECK(n_wrong == 0, "%s: %d elements have other bits in a product of %d rows than in one of %d", who, n_wrong, (int)FLAT,
        (int)TALL);
  twice_free(&a), twice_free(&b), twice_free(&c);
}

static void invariant(void) {
  const wsgemm_gemm_desc large = to_explain(WSGEMM_F32, 2048, 2048, 2048);
  wsgemm_handle *h = NULL;
  rng = check_random_from(176);
  REQUIRE(wsgemm_create(&h) == WSGEMM_SUCCESS, "handle");
  CHECK(row_is_of(kernel_of(h, &large), OF_THREE_PRODUCTS), "by default: %s", kernel_of(h, &large));
  for (int math = WSGEMM_MATH_DEFAULT; math <= WSGEMM_MATH_TF32; math++) {
    REQUIRE(wsgemm_set_invariant(h, 1) == WSGEMM_SUCCESS && wsgemm_set_math(h, (wsgemm_math)math) == WSGEMM_SUCCESS, "%s",
            wsgemm_last_error());
    CHECK(!row_is_of(kernel_of(h, &large), OF_ANY_PRODUCTS), "math %d: %s", math, kernel_of(h, &large));
    heights_on(h, "automatic");
  }
  wsgemm_destroy(h);
  open_sliced(WSGEMM_F32, OF_ANY_PRODUCTS);
  for (int i = 0; i < rows.n_rows; i++) {
    REQUIRE(wsgemm_set_invariant(rows.handle[i], 1) == WSGEMM_SUCCESS, "%s", wsgemm_last_error());
    CHECK(!row_is_of(kernel_of(rows.handle[i], &large), OF_ANY_PRODUCTS), "forced: %s", kernel_of(rows.handle[i], &large));
    heights_on(rows.handle[i], rows.row[i].name);
  }
  rows_close(&rows);
}

/* ---- Threads: the launches of two calls onto one stream do not mix --------------------------- */

enum { SIDE = 640, N_THREADS = 6, N_CALLS = 60 };
struct caller {
  wsgemm_handle *handle;
  float *a, *b, *c;
  unsigned long long expected;
  int n_wrong;
};

static wsgemm_status multiply(const struct caller *x) {
  return wsgemm_sgemm(x->handle, WSGEMM_COL_MAJOR, WSGEMM_NO_TRANS, WSGEMM_TRANS, SIDE, SIDE, SIDE, 1, x->a, SIDE, x->b, SIDE, 0,
                      x->c, SIDE);
}

static void *call_often(void *context) {
  struct caller *x = context;
  for (int i = 0; i < N_CALLS; i++) x->n_wrong += multiply(x) != WSGEMM_SUCCESS;
  return NULL;
}

/* On a stream for each caller, or one for all. */
static void call_at_once(bool on_streams) {
  static float host[SIDE * SIDE];
  static struct caller callers[N_THREADS];
  pthread_t thread[N_THREADS];
  cudaStream_t stream[N_THREADS];
  rng = check_random_from(182);
  open_sliced(WSGEMM_F32, OF_THREE_PRODUCTS);
  for (int t = 0; t < N_THREADS; t++) {
    for (int x = 0; x < 2; x++) {
      for (int i = 0; i < SIDE * SIDE; i++) host[i] = (float)number((int)drawn(-6 * t, 0));
      *(x ? &callers[t].b : &callers[t].a) = gpu_copy(host, sizeof host);
    }
    callers[t].handle = rows.handle[0], callers[t].c = gpu_alloc(sizeof host);
    REQUIRE(multiply(&callers[t]) == WSGEMM_SUCCESS, "%s", wsgemm_last_error());
    callers[t].expected = gpu_digest(callers[t].c, sizeof host);
    GPU(cudaMemset(callers[t].c, 0xff, sizeof host));
    if (!on_streams) continue;
    GPU(cudaStreamCreateWithFlags(&stream[t], cudaStreamNonBlocking));
    REQUIRE(wsgemm_create(&callers[t].handle) == WSGEMM_SUCCESS &&
                wsgemm_set_stream(callers[t].handle, stream[t]) == WSGEMM_SUCCESS &&
                wsgemm_set_kernel(callers[t].handle, rows.row[0].name) == WSGEMM_SUCCESS,
            "%s", wsgemm_last_error());
  }
  GPU(cudaDeviceSynchronize());
  for (int t = 0; t < N_THREADS; t++) REQUIRE(pthread_create(&thread[t], NULL, call_often, &callers[t]) == 0, "thread");
  for (int t = 0; t < N_THREADS; t++) pthread_join(thread[t], NULL);
  GPU(cudaDeviceSynchronize());
  for (int t = 0; t < N_THREADS; t++) {
    CHECK(callers[t].n_wrong == 0 && gpu_digest(callers[t].c, sizeof host) == callers[t].expected, "thread %d: other bits", t);
    gpu_free(callers[t].a), gpu_free(callers[t].b), gpu_free(callers[t].c);
    if (!on_streams) continue;
    wsgemm_destroy(callers[t].handle);
    GPU(cudaStreamDestroy(stream[t]));
  }
  rows_close(&rows);
}

static void threads(void) { call_at_once(false); }

/* More of them than the library has memory for: they share it. */
static void streams(void) { call_at_once(true); }

/* ---- Epilogue: taken after the product; a residual that is C itself waits where the slices do not stand  */

static void epilogue(void) {
  enum { M = 130, N = 90, K = 300 };
  static float a[M * K], b[K * N], c[M * N], z[M * N], got[M * N], bias[N];
  rng = check_random_from(180);
  for (int i = 0; i < M * K; i++) a[i] = (float)unit();
  for (int i = 0; i < K * N; i++) b[i] = (float)unit();
  for (int i = 0; i < M * N; i++) c[i] = (float)unit();
  for (int j = 0; j < N; j++) bias[j] = (float)unit();
  open_sliced(WSGEMM_F32, OF_THREE_PRODUCTS);
  for (int i = 0; i < rows.n_rows; i++) {
    wsgemm_gemm_desc d = gemm_desc(WSGEMM_F32, WSGEMM_COL_MAJOR, WSGEMM_NO_TRANS, WSGEMM_NO_TRANS, M, N, K);
    void *const memory[] = {gpu_copy(a, sizeof a), gpu_copy(b, sizeof b), gpu_copy(c, sizeof c), gpu_copy(bias, sizeof bias)};
    d.a = memory[0], d.b = memory[1], d.c = memory[2];
    CHECK(wsgemm_gemm(rows.handle[i], &d) == WSGEMM_SUCCESS, "%s", wsgemm_last_error());
    GPU(cudaMemcpy(z, d.c, sizeof z, cudaMemcpyDeviceToHost));
    gpu_put(d.c, c, sizeof c);
    d.epilogue = WSGEMM_EPILOGUE_RELU, d.out_scale = 0.75;
    d.bias = memory[3], d.bias_per = WSGEMM_BIAS_PER_COLUMN, d.type_bias = WSGEMM_F32;
    d.residual = d.c, d.ld_residual = d.ldc;
    CHECK(wsgemm_gemm(rows.handle[i], &d) == WSGEMM_SUCCESS, "%s", wsgemm_last_error());
    GPU(cudaMemcpy(got, d.c, sizeof got, cudaMemcpyDeviceToHost));
    int n_wrong = 0;
    for (int at = 0; at < M * N; at++) {
      const float with_bias = z[at] + bias[at / M], active = with_bias < 0 ? 0 : with_bias, scaled = active * 0.75f;
      n_wrong += got[at] != scaled + c[at];
    }
    CHECK(n_wrong == 0, "%s: %d elements are not what the steps make of the product", rows.row[i].name, n_wrong);
    for (size_t m = 0; m < sizeof memory / sizeof memory[0]; m++) gpu_free(memory[m]);
  }
  rows_close(&rows);
}

int main(int argc, char **argv) {
  static const struct check_case cases[] = {{"bits", bits},       {"captured", captured}, {"invariant", invariant},
                                            {"batches", batches}, {"epilogue", epilogue}, {"threads", threads},
                                            {"streams", streams}};
  gpu_open_for_slices(WSGEMM_F32);
  return check_main("gpu_slices_bits", cases, sizeof cases / sizeof cases[0], argc, argv);
}
