/* test_gpu_offload.c - products and systems of host matrices on GPUs: C has the bits that the call has in
 * device memory, whatever memory its matrices lie in, how much of a device's memory they may take,
 * and how many GPUs and threads work; what lies between C's lines stays. */
#include "gpu.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/level3_call.h"

static struct check_random rng;

/* ---- matrices ---------------------------------------------------------------------------------- */

enum memory { PAGEABLE, PINNED, REGISTERED, MANAGED, N_MEMORIES };
static const char *const memory_names[N_MEMORIES] = {"pageable", "pinned", "registered", "managed"};

/* As it lies in memory: lines, with some elements behind each that are nobody's. */
struct operand {
  wsgemm_type type;
  enum memory memory;
  int64_t length, n_lines, ld, device_ld;
  size_t bytes;
  unsigned char *host, *before, *device;
};

/* How a matrix lies that the library copies to a device (docs/offload.md, Bits). */
static int64_t ld_on_device(wsgemm_type type, int64_t length) {
  const int64_t element = (int64_t)type_bytes(type), bytes = length * element, unit = bytes < 128 ? 16 : 256;
  return (bytes + unit - 1) / unit * unit / element;
}

static unsigned char *host_alloc(enum memory memory, size_t bytes) {
  void *host = NULL;
  if (memory == PINNED)
    GPU(cudaHostAlloc(&host, bytes, cudaHostAllocPortable));
  else if (memory == MANAGED)
    GPU(cudaMallocManaged(&host, bytes, cudaMemAttachGlobal));
  else
    host = malloc(bytes);
  REQUIRE(host != NULL, "%zu bytes", bytes);
  if (memory == REGISTERED) GPU(cudaHostRegister(host, bytes, cudaHostRegisterPortable));
  return host;
}

static void host_free(enum memory memory, void *host) {
  if (memory == PINNED)
    GPU(cudaFreeHost(host));
  else if (memory == MANAGED)
    GPU(cudaFree(host));
  else {
    if (memory == REGISTERED) GPU(cudaHostUnregister(host));
    free(host);
  }
}

static void fill(unsigned char *to, wsgemm_type type, size_t bytes) {
  const size_t real = type_bytes(type) / (type_is_complex(type) ? 2 : 1);
  const wsgemm_type of_real = type == WSGEMM_C32 ? WSGEMM_F32 : type == WSGEMM_C64 ? WSGEMM_F64 : type;
  for (size_t at = 0; at < bytes; at += real) element_put(of_real, to + at, check_random_unit(&rng));
}

/* Every line of it to the device, or back. */
static void copy_lines(const struct operand *o, unsigned char *host, enum cudaMemcpyKind kind) {
  const size_t element = type_bytes(o->type), pitch = (size_t)o->ld * element, device_pitch = (size_t)o->device_ld * element;
  const bool is_in = kind == cudaMemcpyHostToDevice;
  GPU(cudaMemcpy2D(is_in ? o->device : host, is_in ? device_pitch : pitch, is_in ? host : o->device, is_in ? pitch : device_pitch,
                   (size_t)o->length * element, (size_t)o->n_lines, kind));
  GPU(cudaDeviceSynchronize());
}

static struct operand operand_new(wsgemm_type type, enum memory memory, int64_t length, int64_t n_lines, int64_t pad) {
  struct operand o = {.type = type, .memory = memory, .length = length, .n_lines = n_lines, .ld = length + pad};
  o.device_ld = ld_on_device(type, length);
  o.bytes = (size_t)(o.ld * n_lines) * type_bytes(type);
  o.host = host_alloc(memory, o.bytes);
  o.before = malloc(o.bytes);
  REQUIRE(o.before != NULL, "%zu bytes", o.bytes);
  fill(o.before, type, o.bytes);
  memcpy(o.host, o.before, o.bytes);
  o.device = gpu_alloc((size_t)(o.device_ld * n_lines) * type_bytes(type));
  copy_lines(&o, o.before, cudaMemcpyHostToDevice);
  return o;
}

static void operand_free(struct operand *o) {
  if (!o->host) return;
  host_free(o->memory, o->host);
  free(o->before);
  gpu_free(o->device);
}

/* ---- cases ------------------------------------------------------------------------------------- */

enum { A, B, C, BIAS, RESIDUAL, N_OPERANDS };

struct offload_case {
  bool is_level3;
  wsgemm_gemm_desc gemm;
  wsgemm_level3_desc level3;
  int out;
  struct operand x[N_OPERANDS];
};

static wsgemm_handle *on_cpu_memory, *on_device_memory; /* with devices, and without */
static int n_gpus;

static void *pointer_of(const struct operand *o, bool is_host) { return is_host ? o->host : o->device; }
static int64_t ld_of(const struct operand *o, bool is_host) { return is_host ? o->ld : o->device_ld; }

/* Products of a batch lie one behind the other. */
static int64_t stride_of(const struct operand *o, bool is_host, int64_t n_products) {
  return ld_of(o, is_host) * o->n_lines / n_products;
}

static wsgemm_status call(const struct offload_case *t, wsgemm_handle *h, bool is_host) {
  const struct operand *x = t->x;
  if (t->is_level3) {
    wsgemm_level3_desc d = t->level3;
    d.a = pointer_of(&x[A], is_host), d.lda = ld_of(&x[A], is_host);
    d.b = pointer_of(&x[B], is_host), d.ldb = ld_of(&x[B], is_host);
    d.c = pointer_of(&x[C], is_host), d.ldc = ld_of(&x[C], is_host);
    return wsgemm_level3(h, &d);
  }
  wsgemm_gemm_desc d = t->gemm;
  d.a = pointer_of(&x[A], is_host), d.lda = ld_of(&x[A], is_host), d.stride_a = stride_of(&x[A], is_host, d.batch_count);
  d.b = pointer_of(&x[B], is_host), d.ldb = ld_of(&x[B], is_host), d.stride_b = stride_of(&x[B], is_host, d.batch_count);
  d.c = pointer_of(&x[C], is_host), d.ldc = ld_of(&x[C], is_host), d.stride_c = stride_of(&x[C], is_host, d.batch_count);
  if (x[BIAS].host) d.bias = pointer_of(&x[BIAS], is_host);
  if (x[RESIDUAL].host) {
    d.residual = pointer_of(&x[RESIDUAL], is_host), d.ld_residual = ld_of(&x[RESIDUAL], is_host);
    d.stride_residual = stride_of(&x[RESIDUAL], is_host, d.batch_count);
  }
  return wsgemm_gemm(h, &d);
}

static bool is_on_gpus(const struct offload_case *t) {
  char text[4096];
  struct offload_case host = *t;
  wsgemm_gemm_desc *d = &host.gemm;
  wsgemm_level3_desc *l = &host.level3;
  if (t->is_level3) {
    l->a = t->x[A].host, l->lda = t->x[A].ld, l->b = t->x[B].host, l->ldb = t->x[B].ld, l->c = t->x[C].host, l->ldc = t->x[C].ld;
    wsgemm_level3_explain(on_cpu_memory, l, text, sizeof text);
  } else {
    d->a = t->x[A].host, d->lda = t->x[A].ld, d->b = t->x[B].host, d->ldb = t->x[B].ld, d->c = t->x[C].host, d->ldc = t->x[C].ld;
    wsgemm_explain(on_cpu_memory, d, text, sizeof text);
  }
  return strstr(text, "backend: offload") != NULL;
}

static const char *describe(const struct offload_case *t, char text[DESCRIPTION_BYTES]) {
  return t->is_level3 ? level3_describe(&t->level3, text) : gemm_describe(&t->gemm, text);
}

/* What C must be: the device's elements, and all else as it was. */
static void judge(struct offload_case *t) {
  char text[DESCRIPTION_BYTES];
  struct operand *c = &t->x[t->out];
  const wsgemm_status status = call(t, on_cpu_memory, true);
  CHECK(status == WSGEMM_SUCCESS && !*wsgemm_last_error(), "%s: status %d: %s", describe(t, text), status, wsgemm_last_error());
  const wsgemm_status there = call(t, on_device_memory, false);
  CHECK(there == WSGEMM_SUCCESS, "%s, in device memory: %s", describe(t, text), wsgemm_last_error());
  copy_lines(c, c->before, cudaMemcpyDeviceToHost);
  CHECK(is_on_gpus(t), "%s is the CPU's", describe(t, text));
  CHECK(memcmp(c->host, c->before, c->bytes) == 0, "%s: C in %s memory (A %s, B %s) is not what it is in device memory",
        describe(t, text), memory_names[c->memory], memory_names[t->x[A].memory], memory_names[t->x[B].memory]);
  for (int i = 0; i < N_OPERANDS; i++) operand_free(&t->x[i]);
}

static enum memory draw_memory(void) { return (enum memory)check_random_in(&rng, 0, N_MEMORIES - 1); }
/* Where all of a call's matrices are managed it is one in device memory: not so A. */
static enum memory draw_host_memory(void) { return (enum memory)check_random_in(&rng, 0, MANAGED - 1); }
static int64_t draw_pad(void) { return check_random_in(&rng, 0, 2) * check_random_in(&rng, 0, 40); }
static wsgemm_scalar draw_scalar(wsgemm_type type, double re) {
  return scalar_make(type_is_half(type) ? WSGEMM_F32 : type, re, type_is_complex(type) ? check_random_unit(&rng) : 0);
}

/* A matrix of rows x cols that is stored by the layout, or transposed. */
static struct operand stored(wsgemm_type type, enum memory memory, wsgemm_layout layout, bool trans, int64_t rows, int64_t cols,
                             int64_t n_products) {
  const bool by_columns = (layout == WSGEMM_COL_MAJOR) != trans;
  return operand_new(type, memory, by_columns ? rows : cols, (by_columns ? cols : rows) * n_products, draw_pad());
}

static struct offload_case gemm_case(wsgemm_type type, int64_t m, int64_t n, int64_t k, int64_t n_products) {
  const wsgemm_layout layout = all_layouts[check_random_in(&rng, 0, 1)];
  const wsgemm_op transa = all_ops[check_random_in(&rng, 0, n_ops(type) - 1)],
                  transb = all_ops[check_random_in(&rng, 0, n_ops(type) - 1)];
  static const double betas[] = {0, 1, -0.75};
  struct offload_case t = {.gemm = gemm_desc(type, layout, transa, transb, m, n, k), .out = C};
  t.gemm.batch_count = n_products;
  t.gemm.alpha = draw_scalar(type, 1.25);
  const double beta = betas[check_random_in(&rng, 0, 2)];
  t.gemm.beta = beta == 0 ? scalar_make(t.gemm.type_scalar, 0, 0) : draw_scalar(type, beta);
  t.x[A] = stored(type, draw_host_memory(), layout, op_transposes(transa), m, k, n_products);
  t.x[B] = stored(type, draw_memory(), layout, op_transposes(transb), k, n, n_products);
  t.x[C] = stored(type, draw_memory(), layout, false, m, n, n_products);
  return t;
}

/* Log-uniform; long enough in all for a GPU. */
static int64_t draw_side(int64_t most) {
  int64_t side = most;
  while (side > 40 && check_random_in(&rng, 0, 1)) side /= 2;
  return check_random_in(&rng, side / 2 + 1, side);
}

static void draw_sides(int64_t most, int64_t side[3]) {
  do
    for (int i = 0; i < 3; i++) side[i] = draw_side(most);
  while ((double)side[0] * (double)side[1] * (double)side[2] < 1 << 24);
}

static void open_handles(int n_devices) {
  static const int all[] = {0, 1, 2, 3, 4, 5, 6, 7};
  if (!on_device_memory) REQUIRE(wsgemm_create(&on_device_memory) == WSGEMM_SUCCESS, "a handle");
  if (!on_cpu_memory) REQUIRE(wsgemm_create(&on_cpu_memory) == WSGEMM_SUCCESS, "a handle");
  REQUIRE(wsgemm_set_devices(on_device_memory, NULL, 0) == WSGEMM_SUCCESS, "no devices");
  REQUIRE(wsgemm_set_devices(on_cpu_memory, all, n_devices) == WSGEMM_SUCCESS, "%d devices", n_devices);
}

/* Some of few rows or columns, whose kernels are not cut, are the CPU's where room is short. */
static void draw_products(int n_cases, int64_t least, int64_t most) {
  for (int i = 0; i < n_cases; i += check_scale()) {
    int64_t side[3];
    const wsgemm_type type = (wsgemm_type)(i % N_TYPES);
    do draw_sides(type_is_complex(type) ? most / 2 : most, side);
    while (side[0] < least || side[1] < least || side[2] < least);
    REQUIRE(wsgemm_set_num_threads(on_cpu_memory, (int)check_random_in(&rng, 1, 16)) == WSGEMM_SUCCESS, "threads");
    struct offload_case t = gemm_case(type, side[0], side[1], side[2], 1);
    judge(&t);
  }
}

static void products(void) {
  open_handles(1);
  draw_products(48, 1, 3000);
}

/* Run with and without WSGEMM_OFFLOAD_MEMORY (CMakeLists.txt). */
static void large_products(void) {
  open_handles(1);
  draw_products(18, 400, 6000);
}

static void several_devices(void) {
  if (n_gpus < 2) {
    check_skip("%d GPU", n_gpus);
    return;
  }
  open_handles(n_gpus < 8 ? n_gpus : 8);
  draw_products(36, 200, 5000);
}

static void batches(void) {
  open_handles(1);
  for (int i = 0; i < 18; i += check_scale()) {
    int64_t side[3];
    draw_sides(700, side);
    struct offload_case t = gemm_case((wsgemm_type)(i % N_TYPES), side[0], side[1], side[2], check_random_in(&rng, 2, 9));
    judge(&t);
  }
}

static void epilogues(void) {
  static const wsgemm_type real_types[] = {WSGEMM_F32, WSGEMM_F64, WSGEMM_F16, WSGEMM_BF16};
  open_handles(1);
  for (int i = 0; i < 24; i += check_scale()) {
    int64_t side[3];
    const wsgemm_type type = real_types[i % 4]; /* complex C has no epilogue */
    draw_sides(1500, side);
    struct offload_case t = gemm_case(type, side[0], side[1], side[2], 1);
    t.gemm.type_bias = type;
    t.gemm.bias_per = check_random_in(&rng, 0, 1) ? WSGEMM_BIAS_PER_ROW : WSGEMM_BIAS_PER_COLUMN;
    t.x[BIAS] = operand_new(type, draw_memory(), t.gemm.bias_per == WSGEMM_BIAS_PER_ROW ? side[0] : side[1], 1, 0);
    if (check_random_in(&rng, 0, 1)) t.x[RESIDUAL] = stored(type, draw_memory(), t.gemm.layout, false, side[0], side[1], 1);
    if (check_random_in(&rng, 0, 1)) t.gemm.epilogue = WSGEMM_EPILOGUE_RELU;
    judge(&t);
  }
}

/* So that systems have solutions. */
static void raise_diagonal(struct operand *a) {
  const wsgemm_type of_real = type_is_double(a->type) ? WSGEMM_F64 : WSGEMM_F32;
  for (int64_t i = 0; i < a->length; i++)
    element_put(of_real, a->before + (size_t)(i * a->ld + i) * type_bytes(a->type), (double)a->length);
  memcpy(a->host, a->before, a->bytes);
  copy_lines(a, a->before, cudaMemcpyHostToDevice);
}

static struct offload_case level3_case(wsgemm_routine routine, wsgemm_type type) {
  const struct variant variant = draw_variant(routine, type, &rng);
  struct offload_case t = {.is_level3 = true, .out = routine_is_triangular(routine) ? B : C};
  int64_t rows[3], cols[3];
  t.level3 = level3_desc(routine, type, all_layouts[check_random_in(&rng, 0, 1)], &variant, check_random_in(&rng, 500, 1500),
                         check_random_in(&rng, 500, 1500), check_random_in(&rng, 500, 1500));
  draw_scalars(&t.level3, JUDGE_BOUND, &rng);
  level3_shapes(&t.level3, rows, cols);
  for (int i = A; i <= C; i++)
    if (rows[i] > 0)
      t.x[i] = stored(type, i == A ? draw_host_memory() : draw_memory(), t.level3.layout, false, rows[i], cols[i], 1);
  if (routine_is_triangular(routine)) raise_diagonal(&t.x[A]);
  return t;
}

static void level3(void) {
  open_handles(1);
  for (int i = 0; i < N_ROUTINES * N_LEVEL3_TYPES; i += check_scale()) {
    const wsgemm_routine routine = all_routines[i % N_ROUTINES];
    const wsgemm_type type = (wsgemm_type)(i / N_ROUTINES);
    double alpha[2];
    if (!routine_has_type(routine, type)) continue;
    struct offload_case t = level3_case(routine, type);
    scalar_get(type, &t.level3.alpha, alpha);
    if (alpha[0] == 0 && alpha[1] == 0) t.level3.alpha = scalar_make(type, 1, 0); /* else it is the CPU's */
    judge(&t);
  }
}

/* ---- progress ---------------------------------------------------------------------------------- */

static double stop_at, last_done;
static int stops(void *user, double done) {
  (void)user;
  CHECK(done >= last_done && done <= 1, "%g after %g", done, last_done);
  last_done = done;
  return done >= stop_at;
}

/* Each element is as it was, or as it should be. */
static void judge_stopped(struct offload_case *t) {
  const struct operand *c = &t->x[C];
  const size_t element = type_bytes(c->type);
  unsigned char *whole = malloc(c->bytes);
  int64_t n_old = 0, n_new = 0, n_other = 0;
  REQUIRE(whole != NULL, "%zu bytes", c->bytes);
  last_done = 0;
  const wsgemm_status status = call(t, on_cpu_memory, true);
  REQUIRE(call(t, on_device_memory, false) == WSGEMM_SUCCESS, "%s", wsgemm_last_error());
  memcpy(whole, c->before, c->bytes);
  copy_lines(c, whole, cudaMemcpyDeviceToHost);
  for (size_t at = 0; at < c->bytes; at += element) {
    const bool is_old = memcmp(c->host + at, c->before + at, element) == 0,
               is_new = memcmp(c->host + at, whole + at, element) == 0;
    n_old += is_old && !is_new, n_new += is_new && !is_old, n_other += !is_old && !is_new;
  }
  CHECK(status == WSGEMM_STOPPED, "stopped at %g: status %d", stop_at, status);
  CHECK(n_other == 0 && n_old > 0, "stopped at %g: %lld elements as before, %lld as they should be, %lld neither", stop_at,
        (long long)n_old, (long long)n_new, (long long)n_other);
  CHECK(stop_at == 0 || n_new > 0, "stopped at %g: nothing is new", stop_at);
  free(whole);
  for (int i = 0; i < N_OPERANDS; i++) operand_free(&t->x[i]);
}

static void stopped(void) {
  open_handles(1);
  REQUIRE(wsgemm_set_progress(on_cpu_memory, stops, NULL) == WSGEMM_SUCCESS, "progress");
  for (int i = 0; i < 4; i++) {
    static const double at[] = {0, 1e-9, 0.2, 0.4};
    stop_at = at[i];
    struct offload_case t = gemm_case(i % 2 ? WSGEMM_F64 : WSGEMM_F32, 8100, 8000, 4000, 1);
    judge_stopped(&t);
  }
  REQUIRE(wsgemm_set_progress(on_cpu_memory, NULL, NULL) == WSGEMM_SUCCESS, "no progress");
}

int main(int argc, char **argv) {
  static const struct check_case cases[] = {
      {"products", products}, {"large_products", large_products}, {"several_devices", several_devices},
      {"batches", batches},   {"epilogues", epilogues},           {"level3", level3},
      {"stopped", stopped},
  };
  gpu_open();
  GPU(cudaGetDeviceCount(&n_gpus));
  rng = check_random_from(25);
  return check_main("gpu_offload", cases, sizeof cases / sizeof cases[0], argc, argv);
}
