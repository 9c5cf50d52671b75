/* test_gpu_tuning.c - tuning on the GPU: no candidate of any product gives other bits than the
 * built-in choice (the search compares them itself, and so does this suite with a C of its own);
 * what is found is taken, from the file too; nothing of the device is kept or harmed. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "gpu.h"
#include "support/level3_call.h"

static struct check_random rng;
static char file[64];

static wsgemm_autotune_options options_with(wsgemm_autotune_result *result) {
  wsgemm_autotune_options o = WSGEMM_AUTOTUNE_OPTIONS_INIT;
  o.device = 0, o.result = result, o.file = "", o.budget_ms = 30;
  return o;
}

/* Sizes of every kind of row: a few tiles, many, a short and a long k (in parts; in slices),
 * vectors apart. */
static const int64_t shapes[][3] = {{96, 80, 33},     {700, 900, 333}, {64, 4000, 50},   {129, 257, 1000},
                                    {1024, 640, 512}, {130, 70, 5000}, {33, 2000, 2100}, {2100, 1300, 160}};
enum { N_SHAPES = sizeof shapes / sizeof shapes[0] };

static wsgemm_gemm_desc drawn_desc(wsgemm_type type, int shape) {
  wsgemm_gemm_desc d = gemm_desc(type, WSGEMM_COL_MAJOR, draw_op(type, &rng), draw_op(type, &rng), shapes[shape][0],
                                 shapes[shape][1], shapes[shape][2]);
  d.alpha = scalar_make(type, 0.75, 0), d.beta = scalar_make(type, shape % 3 == 0 ? 0.5 : 0, 0);
  return d;
}

/* Every candidate, once, whatever it costs; operands and comparison are the library's own. */
static void every_candidate(void) {
  rng = check_random_from(301);
  int n_compared = 0, n_searches = 0;
  for (int type = 0; type < N_TYPES; type++)
    for (int shape = 0; shape < N_SHAPES; shape++)
      for (int math = WSGEMM_MATH_DEFAULT; math <= WSGEMM_MATH_TF32; math++) {
        const bool is_half = type_is_half((wsgemm_type)type), is_single = type == WSGEMM_F32 || type == WSGEMM_C32;
        const bool has_class =
            math == WSGEMM_MATH_DEFAULT || is_single || (is_half && math == WSGEMM_MATH_PEDANTIC); /* of its own */
        const bool is_drawn = check_random_in(&rng, 1, check_scale()) <= 4 || n_searches == 0;
        if (!is_drawn || !has_class) continue;
        n_searches++;
        wsgemm_gemm_desc d = drawn_desc((wsgemm_type)type, shape);
        wsgemm_autotune_result result;
        wsgemm_autotune_options o = options_with(&result);
        char text[DESCRIPTION_BYTES];
        d.math = (wsgemm_math)math;
        o.is_exhaustive = 1, o.budget_ms = 1;
        CHECK(wsgemm_autotune(NULL, &d, &o) == WSGEMM_SUCCESS, "%s: %s", gemm_describe(&d, text), wsgemm_last_error());
        CHECK(result.n_refused == 0 && result.n_measured == result.n_candidates, "%s: of %d candidates %d refused, %d measured",
              gemm_describe(&d, text), result.n_candidates, result.n_refused, result.n_measured);
        n_compared += result.n_candidates - 1;
      }
  const int least = check_scale() > 40 ? n_searches : check_scale() > 10 ? 50 : 100;
  CHECK(n_compared > least, "%d searches met only %d candidates beside the built-in choices", n_searches, n_compared);
}

static unsigned long long digest_of(struct stage *stage, wsgemm_handle *h, wsgemm_gemm_desc *d) {
  const struct layout_of_case where = layout_tight();
  case_store(stage, d, &where);
  CHECK(call_on_device(stage, h, d, false) == WSGEMM_SUCCESS, "%s", wsgemm_last_error());
  return matrix_digest(&stage->stored[2]);
}

/* The caller's own C, before and after; and that the search was not in vain: settings other than
 * the built-in ones come into force. */
static void bits_before_and_after(void) {
  rng = check_random_from(302);
  int n_better = 0;
  for (int type = 0; type < N_TYPES; type++)
    for (int shape = 0; shape < N_SHAPES; shape++) {
      const int64_t m = shapes[shape][0], n = shapes[shape][1], k = shapes[shape][2];
      struct stage stage = stage_new((wsgemm_type)type, m, n, k, FILL_UNIFORM, &rng);
      wsgemm_gemm_desc d = drawn_desc((wsgemm_type)type, shape);
      wsgemm_autotune_result result;
      wsgemm_autotune_options o = options_with(&result);
      char text[DESCRIPTION_BYTES];
      const unsigned long long before = digest_of(&stage, NULL, &d);
      CHECK(wsgemm_autotune(NULL, &d, &o) == WSGEMM_SUCCESS, "%s", wsgemm_last_error());
      const unsigned long long after = digest_of(&stage, NULL, &d);
      CHECK(before == after, "%s: other bits after tuning: %s, before %s", gemm_describe(&d, text), result.after, result.before);
      n_better += result.is_better;
      stage_free(&stage);
    }
  CHECK(n_better > 0, "nothing was found in %d shapes", N_TYPES * N_SHAPES);
}

/* What explain says of the product on device memory. */
static bool is_chosen_by(wsgemm_handle *h, wsgemm_gemm_desc d, const char *by) {
  void *memory = gpu_alloc(1024);
  d.a = d.b = memory, d.c = memory;
  const bool is = explained_is(h, &d, "chosen_by", by);
  gpu_free(memory);
  return is;
}

static void taken_and_forced(void) {
  wsgemm_gemm_desc d = gemm_desc(WSGEMM_F64, WSGEMM_COL_MAJOR, WSGEMM_NO_TRANS, WSGEMM_TRANS, 1100, 900, 300);
  wsgemm_autotune_result result;
  wsgemm_autotune_options o = options_with(&result);
  wsgemm_handle *forced = NULL;
  CHECK(wsgemm_create(&forced) == WSGEMM_SUCCESS && wsgemm_set_kernel(forced, "dgemm_mma_32x32x32_c1") == WSGEMM_SUCCESS, "%s",
        wsgemm_last_error());
  CHECK(is_chosen_by(NULL, d, "model") || is_chosen_by(NULL, d, "tuning table"), "chosen before tuning");
  o.file = file;
  CHECK(wsgemm_autotune(NULL, &d, &o) == WSGEMM_SUCCESS, "%s", wsgemm_last_error());
  CHECK(is_chosen_by(NULL, d, "tuning file"), "what was found is not taken");
  d.a = d.b = d.c = NULL;
  char *text = malloc(4096);
  REQUIRE(text && wsgemm_tuning_read(file, text, 4096) > 0 && strstr(text, "m=1100 n=900 k=300"),
          "the file has not what was found");
  void *memory = gpu_alloc(1024);
  d.a = d.b = memory, d.c = memory;
  CHECK(explained_is(forced, &d, "kernel", "dgemm_mma_32x32x32_c1"), "a forced row is not taken after tuning");
  gpu_free(memory);
  free(text);
  wsgemm_destroy(forced);
}

/* ---- Level 3 --------------------------------------------------------------------------------- */

/* A call's matrices in device memory, column-major and square, of values that triangular systems
 * bear; b is written, or c. */
typedef struct level3_case {
  wsgemm_level3_desc d;
  size_t bytes; /* of each */
  char *initial;
} level3_case;

static level3_case level3_new(wsgemm_routine routine, wsgemm_type type, int64_t n) {
  const struct variant variant = draw_variant(routine, type, &rng);
  level3_case x = {level3_desc(routine, type, WSGEMM_COL_MAJOR, &variant, n, n, n), (size_t)(n * n) * type_bytes(type), NULL};
  const size_t n_reals = x.bytes / (type_is_double(type) ? 8 : 4);
  x.initial = malloc(x.bytes);
  REQUIRE(x.initial != NULL, "memory");
  for (size_t i = 0; i < n_reals; i++) {
    const double value = check_random_unit(&rng);
    if (type_is_double(type))
      ((double *)(void *)x.initial)[i] = value;
    else
      ((float *)(void *)x.initial)[i] = (float)value;
  }
  for (int64_t i = 0; i < n; i++) { /* the sums of a row are below */
    char *diagonal = x.initial + (size_t)(i * (n + 1)) * type_bytes(type);
    if (type_is_double(type))
      *(double *)(void *)diagonal = (double)n;
    else
      *(float *)(void *)diagonal = (float)n;
  }
  x.d.diag = WSGEMM_NON_UNIT;
  x.d.a = gpu_alloc(x.bytes), x.d.b = gpu_alloc(x.bytes);
  if (!routine_is_triangular(routine)) x.d.c = gpu_alloc(x.bytes);
  return x;
}

static void level3_free(level3_case *x) {
  gpu_free((void *)(uintptr_t)x->d.a), gpu_free((void *)(uintptr_t)x->d.b);
  if (x->d.c) gpu_free(x->d.c);
  free(x->initial);
}

/* The call on its first values; its result into `result`. */
static void level3_bits(const level3_case *x, char *result) {
  void *written = x->d.c ? x->d.c : (void *)(uintptr_t)x->d.b;
  void *const all[] = {(void *)(uintptr_t)x->d.a, (void *)(uintptr_t)x->d.b, x->d.c};
  for (int i = 0; i < 3; i++)
    if (all[i]) GPU(cudaMemcpy(all[i], x->initial, x->bytes, cudaMemcpyHostToDevice));
  CHECK(wsgemm_level3(NULL, &x->d) == WSGEMM_SUCCESS, "%s", wsgemm_last_error());
  GPU(cudaMemcpy(result, written, x->bytes, cudaMemcpyDeviceToHost));
}

/* Every candidate of the call's largest product once, with the same bits; then a search as users
 * have it, after which the call has the bits of before, and takes what was found. */
static void level3(void) {
  rng = check_random_from(303);
  int n_taken = 0, n_calls = 0;
  for (int r = 0; r < N_ROUTINES; r++)
    for (int type = 0; type < N_LEVEL3_TYPES; type++) {
      if (!routine_has_type(all_routines[r], (wsgemm_type)type)) continue;
      level3_case x = level3_new(all_routines[r], (wsgemm_type)type, check_random_in(&rng, 700, 1500));
      wsgemm_autotune_result result;
      wsgemm_autotune_options o = options_with(&result);
      char what[DESCRIPTION_BYTES], text[4096], *before = malloc(x.bytes), *after = malloc(x.bytes);
      REQUIRE(before && after, "memory");
      level3_describe(&x.d, what);
      level3_bits(&x, before);
      o.is_exhaustive = 1, o.budget_ms = 1;
      CHECK(wsgemm_level3_autotune(NULL, &x.d, &o) == WSGEMM_SUCCESS, "%s: %s", what, wsgemm_last_error());
      CHECK(result.n_refused == 0 && result.n_measured == result.n_candidates && result.n_candidates > 1,
            "%s: of %d candidates %d refused, %d measured", what, result.n_candidates, result.n_refused, result.n_measured);
      o.is_exhaustive = 0, o.budget_ms = 20;
      CHECK(wsgemm_level3_autotune(NULL, &x.d, &o) == WSGEMM_SUCCESS, "%s: %s", what, wsgemm_last_error());
      level3_bits(&x, after);
      CHECK(memcmp(before, after, x.bytes) == 0, "%s: other bits after tuning: %s, before %s", what, result.after, result.before);
      wsgemm_level3_explain(NULL, &x.d, text, sizeof text);
      n_calls++, n_taken += strstr(text, "chosen_by: tuning file") != NULL;
      CHECK(strstr(text, "chosen_by: tuning file"), "%s: what was found is not taken:\n%s", what, text);
      free(before), free(after);
      level3_free(&x);
    }
  CHECK(n_calls > 0 && n_taken == n_calls, "%d of %d calls take what was found for them", n_taken, n_calls);
}

/* A budget of nothing measures nothing, the stream of the handle is waited for, a captured one
 * refused; no memory is lost. */
static void leaves_the_device_alone(void) {
  wsgemm_gemm_desc d = gemm_desc(WSGEMM_F32, WSGEMM_COL_MAJOR, WSGEMM_NO_TRANS, WSGEMM_NO_TRANS, 500, 600, 700);
  wsgemm_autotune_result result;
  wsgemm_autotune_options o = options_with(&result);
  wsgemm_handle *h = NULL;
  cudaStream_t stream;
  size_t before, after, total;
  GPU(cudaStreamCreate(&stream));
  REQUIRE(wsgemm_create(&h) == WSGEMM_SUCCESS && wsgemm_set_stream(h, stream) == WSGEMM_SUCCESS, "handle");
  CHECK(wsgemm_autotune(h, &d, &o) == WSGEMM_SUCCESS, "%s", wsgemm_last_error());
  GPU(cudaMemGetInfo(&before, &total));
  for (int turn = 0; turn < 5; turn++) CHECK(wsgemm_autotune(h, &d, &o) == WSGEMM_SUCCESS, "%s", wsgemm_last_error());
  GPU(cudaMemGetInfo(&after, &total));
  CHECK(after + (64 << 20) > before, "%zu bytes of device memory were lost", before - after);
  o.budget_ms = 0;
  CHECK(wsgemm_autotune(h, &d, &o) == WSGEMM_SUCCESS && result.n_measured == 0 && result.n_candidates > 1,
        "budget 0: %d measured of %d", result.n_measured, result.n_candidates);
  cudaGraph_t graph;
  GPU(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
  o.budget_ms = 30;
  CHECK(wsgemm_autotune(h, &d, &o) == WSGEMM_CAPTURE_UNSAFE, "capturing: %s", wsgemm_last_error());
  GPU(cudaStreamEndCapture(stream, &graph));
  GPU(cudaGraphDestroy(graph));
  cudaStream_t other; /* what another stream records is not disturbed */
  GPU(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking));
  GPU(cudaStreamBeginCapture(other, cudaStreamCaptureModeGlobal));
  CHECK(wsgemm_autotune(h, &d, &o) == WSGEMM_SUCCESS, "beside a capture: %s", wsgemm_last_error());
  GPU(cudaStreamEndCapture(other, &graph));
  GPU(cudaGraphDestroy(graph));
  GPU(cudaStreamDestroy(other));
  o.device = 40;
  CHECK(wsgemm_autotune(h, &d, &o) != WSGEMM_SUCCESS, "a device that is not there");
  o.device = 0;
  d.m = d.lda = d.ldc = INT64_C(1) << 31, d.n = d.ldb = 1 << 20, d.k = 1 << 10, d.ldb = 1 << 10;
  CHECK(wsgemm_autotune(h, &d, &o) == WSGEMM_ALLOC_FAILED, "operands larger than the device: %s", wsgemm_last_error());
  wsgemm_destroy(h);
  GPU(cudaStreamDestroy(stream));
}

int main(int argc, char **argv) {
  static const struct check_case cases[] = {{"every_candidate", every_candidate},
                                            {"bits_before_and_after", bits_before_and_after},
                                            {"taken_and_forced", taken_and_forced},
                                            {"level3", level3},
                                            {"leaves_the_device_alone", leaves_the_device_alone}};
  snprintf(file, sizeof file, "/tmp/wsgemm-tuning-%ld", (long)getpid());
  setenv("WSGEMM_TUNE", file, 1);
  gpu_open();
  const int code = check_main("gpu_tuning", cases, sizeof cases / sizeof cases[0], argc, argv);
  unlink(file);
  char lock[80];
  snprintf(lock, sizeof lock, "%s.lock", file);
  unlink(lock);
  return code;
}
