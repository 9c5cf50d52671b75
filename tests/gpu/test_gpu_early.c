/* test_gpu_early.c - launches that begin before the one before them has ended (docs/scheduling.md): products of half precision that
 * depend on each other, on kernels and copies of others, and that others depend on, must find in memory what they find with a wait
 * after every launch. Wanted are the bits that come with such waits; what these are is test_gpu_half.c's business.
 *
 * The others' kernel copies words after some time. It may allow the next launch at once, and may itself begin early. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "gpu.h"

/* Of kernel `foreign`: first it allows dependents (is_early), then waits for the launch before (waits), then for so many ns. */
static const char foreign_ptx[] =
    ".version 8.0\n.target sm_90\n.address_size 64\n"
    ".visible .entry foreign(.param .u64 to, .param .u64 from, .param .u64 n, .param .u32 ns, .param .u32 is_early, .param .u32 "
    "waits)\n"
    "{\n"
    ".reg .pred %p;\n.reg .u32 %r<6>;\n.reg .u64 %d<10>;\n"
    "ld.param.u32 %r0, [is_early];\nsetp.ne.u32 %p, %r0, 0;\n@%p griddepcontrol.launch_dependents;\n"
    "ld.param.u32 %r0, [waits];\nsetp.ne.u32 %p, %r0, 0;\n@%p griddepcontrol.wait;\n"
    "ld.param.u32 %r0, [ns];\ncvt.u64.u32 %d0, %r0;\nmov.u64 %d1, %globaltimer;\n"
    "spin:\nmov.u64 %d2, %globaltimer;\nsub.u64 %d2, %d2, %d1;\nsetp.lt.u64 %p, %d2, %d0;\n@%p bra spin;\n"
    "ld.param.u64 %d3, [to];\nld.param.u64 %d4, [from];\nld.param.u64 %d5, [n];\n"
    "mov.u32 %r1, %ctaid.x;\nmov.u32 %r2, %ntid.x;\nmov.u32 %r3, %tid.x;\nmad.lo.u32 %r1, %r1, %r2, %r3;\ncvt.u64.u32 %d6, %r1;\n"
    "mov.u32 %r4, %nctaid.x;\nmul.lo.u32 %r4, %r4, %r2;\ncvt.u64.u32 %d7, %r4;\n"
    "copy:\nsetp.ge.u64 %p, %d6, %d5;\n@%p bra done;\n"
    "shl.b64 %d8, %d6, 2;\nadd.u64 %d9, %d4, %d8;\nld.global.u32 %r5, [%d9];\nadd.u64 %d9, %d3, %d8;\nst.global.u32 [%d9], %r5;\n"
    "add.u64 %d6, %d6, %d7;\nbra copy;\n"
    "done:\nret;\n}\n";
enum { SLOW_NS = 300000, MOST_N = 2048 };
typedef enum early { IN_ORDER, EARLY } early;
static cudaKernel_t foreign_kernel;

struct foreign {
  void *to;
  const void *from;
  int64_t bytes;
  unsigned ns;
  early allows, begins; /* the next launch; this one */
  bool waits;
};
static void launch_foreign(const struct foreign *f, cudaStream_t stream) {
  unsigned long long n_words = (unsigned long long)f->bytes / 4;
  unsigned is_early = f->allows == EARLY, waits = f->waits, ns = f->ns;
  union {
    const void *from;
    void *parameter;
  } from = {f->from};
  void *to = f->to, *parameters[] = {&to, &from.parameter, &n_words, &ns, &is_early, &waits};
  cudaLaunchAttribute attribute = {.id = cudaLaunchAttributeProgrammaticStreamSerialization,
                                   .val = {.programmaticStreamSerializationAllowed = f->begins == EARLY}};
  const cudaLaunchConfig_t config = {
      .gridDim = {32, 1, 1}, .blockDim = {256, 1, 1}, .stream = stream, .attrs = &attribute, .numAttrs = 1};
  GPU(cudaLaunchKernelExC(&config, (const void *)foreign_kernel, parameters));
}

/* Matrices of ones with signs: products by W, scaled by 1 / sqrt(n), neither grow nor shrink. x: where a chain's products are, by turns. */
struct chain {
  wsgemm_type type;
  int n;
  int64_t bytes;
  void *w, *first, *x[3];
  wsgemm_handle *handle;
  cudaStream_t stream;
};

static void *signs(wsgemm_type type, int64_t count, unsigned long long seed) {
  const uint16_t one = type == WSGEMM_F16 ? 0x3c00 : 0x3f80;
  struct check_random rng = check_random_from(seed);
  uint16_t *host = malloc((size_t)count * 2);
  REQUIRE(host != NULL, "memory");
  unsigned long long bits = 0;
  for (int64_t i = 0; i < count; i++, bits >>= 1) {
    if (i % 32 == 0) bits = check_random_bits(&rng);
    host[i] = (uint16_t)(one | (bits & 1) << 15);
  }
  void *device = gpu_copy(host, (size_t)count * 2);
  free(host);
  return device;
}

static struct chain chain_new(wsgemm_type type, int n) {
  struct chain x = {.type = type, .n = n, .bytes = (int64_t)n * n * 2};
  GPU(cudaStreamCreateWithFlags(&x.stream, cudaStreamNonBlocking));
  REQUIRE(wsgemm_create(&x.handle) == WSGEMM_SUCCESS && wsgemm_set_stream(x.handle, x.stream) == WSGEMM_SUCCESS, "handle");
  x.w = signs(type, (int64_t)n * n, 1), x.first = signs(type, (int64_t)n * n, 2);
  for (int i = 0; i < 3; i++) x.x[i] = gpu_alloc((size_t)x.bytes);
  return x;
}

static void chain_free(struct chain *x) {
  GPU(cudaStreamSynchronize(x->stream));
  wsgemm_destroy(x->handle);
  GPU(cudaStreamDestroy(x->stream));
  gpu_free(x->w), gpu_free(x->first);
  for (int i = 0; i < 3; i++) gpu_free(x->x[i]);
}

static void chain_begin(const struct chain *x) {
  GPU(cudaStreamSynchronize(x->stream));
  for (int i = 0; i < 3; i++) GPU(cudaMemcpy(x->x[i], x->first, (size_t)x->bytes, cudaMemcpyDefault));
  GPU(cudaDeviceSynchronize()); /* such a copy may return before its end, and the stream does not wait for it */
}

/* to's first columns = W from's; full: half of what was there is added, and a bias that is from's last column; then all is halved. */
static void multiply(const struct chain *x, void *to, const void *from, int columns, bool full) {
  wsgemm_gemm_desc d = gemm_desc(x->type, WSGEMM_COL_MAJOR, WSGEMM_NO_TRANS, WSGEMM_NO_TRANS, x->n, columns, x->n);
  d.a = x->w, d.b = from, d.c = to, d.alpha.s = 1 / sqrtf((float)x->n), d.beta.s = 0;
  if (full) {
    d.beta.s = 0.5F, d.out_scale = 0.5;
    d.bias = (const char *)from + x->bytes - (int64_t)x->n * 2, d.type_bias = x->type, d.bias_per = WSGEMM_BIAS_PER_ROW;
  }
  CHECK(wsgemm_gemm(x->handle, &d) == WSGEMM_SUCCESS, "%s", wsgemm_last_error());
}

/* Products of several numbers of columns, so of several rows. */
static void run_chain(const struct chain *x, int n_products, bool full, bool syncs) {
  static const int columns[] = {MOST_N, 16, 256, 64, MOST_N, 1000, 8, 520};
  for (int i = 0; i < n_products; i++) {
    const int n = columns[(size_t)i % (sizeof columns / sizeof columns[0])];
    multiply(x, x->x[(i + 1) % 2], x->x[i % 2], n < x->n ? n : x->n, full && i % 3 != 0);
    if (syncs) GPU(cudaStreamSynchronize(x->stream));
  }
}

static unsigned long long digest(const struct chain *x) {
  unsigned long long all = 0;
  GPU(cudaStreamSynchronize(x->stream));
  for (int i = 0; i < 3; i++) all = all * 31 + gpu_digest(x->x[i], (size_t)x->bytes);
  return all;
}

static void chains(void) {
  static const int sides[] = {256, 520, 1024, MOST_N};
  enum { N_PRODUCTS = 64, N_ROUNDS = 6 };
  for (int type = WSGEMM_F16; type <= WSGEMM_BF16; type++)
    for (size_t s = 0; s < sizeof sides / sizeof sides[0]; s++)
      for (int full = 0; full < 2; full++) {
        struct chain x = chain_new((wsgemm_type)type, sides[s]);
        unsigned long long expected = 0;
        for (int round = 0; round < N_ROUNDS; round++) {
          chain_begin(&x);
          run_chain(&x, N_PRODUCTS, full != 0, round == 0);
          const unsigned long long found = digest(&x);
          if (round == 0) expected = found;
          CHECK(found == expected, "%c, side %d, %s, round %d: other bits than with waits", type_letter((wsgemm_type)type),
                sides[s], full ? "full" : "plain", round);
        }
        chain_free(&x);
      }
}

/* Two streams that multiply by the same W, under every policy. */
static void neighbours(void) {
  enum { N_PRODUCTS = 40 };
  struct chain x[2] = {chain_new(WSGEMM_F16, 1024), chain_new(WSGEMM_F16, 1024)};
  for (int policy = 0; policy < 6; policy++) {
    unsigned long long expected = 0;
    for (int both = 0; both < 3; both++) {
      for (int i = 0; i < 2; i++) wsgemm_set_policy(x[i].handle, (wsgemm_policy)policy), chain_begin(&x[i]);
      for (int i = 0; i < (both ? 2 : 1); i++) run_chain(&x[i], N_PRODUCTS, false, !both);
      if (!both) expected = digest(&x[0]);
      for (int i = 0; i < 2 && both; i++) CHECK(digest(&x[i]) == expected, "policy %d, stream %d: other bits", policy, i);
    }
  }
  chain_free(&x[0]), chain_free(&x[1]);
}

/* ---- Others in the stream ---------------------------------------------------------------------- */

typedef enum way { SLOW_KERNEL, SLOW_EARLY_KERNEL, EVENT, COPY, CLEARED, ASIDE, N_WAYS } way;
static const char *const way_names[N_WAYS] = {"a slow kernel",      "a slow kernel that allows the next launch at once",
                                              "an event",           "a copy after a slow kernel",
                                              "memory that is set", "two kernels, of which the last allows the next launch"};

/* x[0] = first, in this way, by the chain's stream or, by an event, by another one. */
static void write_first(const struct chain *x, way how, cudaStream_t other) {
  struct foreign f = {x->x[0],  x->first, x->bytes, SLOW_NS, how == SLOW_EARLY_KERNEL || how == ASIDE ? EARLY : IN_ORDER,
                      IN_ORDER, false};
  cudaEvent_t event;
  switch (how) {
  case EVENT:
    launch_foreign(&f, other);
    GPU(cudaEventCreate(&event));
    GPU(cudaEventRecord(event, other));
    GPU(cudaStreamWaitEvent(x->stream, event, 0));
    GPU(cudaEventDestroy(event));
    break;
  case COPY:
    f.to = x->x[2];
    launch_foreign(&f, x->stream);
    GPU(cudaMemcpyAsync(x->x[0], x->x[2], (size_t)x->bytes, cudaMemcpyDefault, x->stream));
    break;
  case CLEARED:
    launch_foreign(&f, x->stream);
    GPU(cudaMemsetAsync(x->x[0], 0, (size_t)x->bytes / 2, x->stream));
    break;
  case ASIDE:
    launch_foreign(&f, x->stream);
    f = (struct foreign){x->x[2], x->w, x->bytes, 0, EARLY, EARLY, true};
    launch_foreign(&f, x->stream);
    break;
  default:
    launch_foreign(&f, x->stream);
  }
}

static void after_others(void) {
  static const int columns[] = {1024, 16, 200};
  struct chain x = chain_new(WSGEMM_F16, 1024);
  cudaStream_t other;
  GPU(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking));
  for (int how = 0; how < N_WAYS; how++)
    for (size_t c = 0; c < sizeof columns / sizeof columns[0]; c++) {
      unsigned long long expected = 0;
      for (int round = 0; round < 3; round++) {
        chain_begin(&x);
        GPU(cudaMemset(x.x[0], 0, (size_t)x.bytes));
        GPU(cudaDeviceSynchronize());
        write_first(&x, (way)how, other);
        if (round == 0) GPU(cudaDeviceSynchronize());
        multiply(&x, x.x[1], x.x[0], columns[c], false);
        const unsigned long long found = digest(&x);
        if (round == 0) expected = found;
        CHECK(found == expected, "%d columns after %s: other bits", columns[c], way_names[how]);
      }
    }
  GPU(cudaStreamDestroy(other));
  chain_free(&x);
}

/* Kernels that read what a product has written, and one that writes what it reads. */
static void before_others(void) {
  struct chain x = chain_new(WSGEMM_BF16, 1024);
  for (int begins = 0; begins < 2; begins++)
    for (int round = 0, columns = 1024; round < 6; round++, columns = round % 2 ? 16 : 1024) {
      chain_begin(&x);
      multiply(&x, x.x[1], x.x[0], columns, false);
      GPU(cudaStreamSynchronize(x.stream));
      GPU(cudaMemcpy(x.x[2], x.x[1], (size_t)x.bytes, cudaMemcpyDefault));
      GPU(cudaMemcpy(x.x[0], x.w, (size_t)x.bytes, cudaMemcpyDefault));
      GPU(cudaDeviceSynchronize());
      const unsigned long long expected = digest(&x);
      chain_begin(&x);
      GPU(cudaDeviceSynchronize());
      for (int i = 0; i < 4; i++) multiply(&x, x.x[1], x.x[0], columns, false); /* so that the others are there in time */
      struct foreign f = {x.x[2], x.x[1], x.bytes, 0, EARLY, begins ? EARLY : IN_ORDER, begins != 0};
      launch_foreign(&f, x.stream);
      f.to = x.x[0], f.from = x.w;
      launch_foreign(&f, x.stream);
      CHECK(digest(&x) == expected, "%d columns, others begin %s: other bits", columns, begins ? "early" : "in order");
    }
  chain_free(&x);
}

/* The stream of old, which waits for others that block. */
static void default_stream(void) {
  struct chain x = chain_new(WSGEMM_F16, 1024);
  cudaStream_t blocking;
  GPU(cudaStreamCreate(&blocking));
  REQUIRE(wsgemm_set_stream(x.handle, NULL) == WSGEMM_SUCCESS, "stream");
  unsigned long long expected = 0;
  for (int round = 0; round < 4; round++) {
    chain_begin(&x);
    GPU(cudaMemset(x.x[0], 0, (size_t)x.bytes));
    GPU(cudaDeviceSynchronize());
    multiply(&x, x.x[2], x.w, 1024, false); /* so that there is one to begin before the end of */
    const struct foreign f = {x.x[0], x.first, x.bytes, SLOW_NS, EARLY, IN_ORDER, false};
    launch_foreign(&f, blocking);
    if (round == 0) GPU(cudaDeviceSynchronize());
    multiply(&x, x.x[1], x.x[0], round % 2 ? 16 : 1024, false);
    multiply(&x, x.x[1], x.x[0], 1024, false);
    GPU(cudaDeviceSynchronize());
    const unsigned long long found = digest(&x);
    if (round == 0) expected = found;
    CHECK(found == expected, "default stream, round %d: other bits", round);
  }
  REQUIRE(wsgemm_set_stream(x.handle, x.stream) == WSGEMM_SUCCESS, "stream");
  GPU(cudaStreamDestroy(blocking));
  chain_free(&x);
}

/* ---- Graphs ------------------------------------------------------------------------------------ */

static void settle(bool syncs) {
  if (syncs) GPU(cudaDeviceSynchronize());
}

/* A fork, whose branches multiply at the same time, a join, and a copy. */
static void enqueue(const struct chain *x, const struct chain *branch, cudaEvent_t forks, cudaEvent_t joins, bool syncs) {
  const struct foreign slow = {x->x[0], x->first, x->bytes, SLOW_NS / 3, EARLY, IN_ORDER, false};
  launch_foreign(&slow, x->stream);
  settle(syncs);
  run_chain(x, 10, false, syncs);
  GPU(cudaEventRecord(forks, x->stream));
  GPU(cudaStreamWaitEvent(branch->stream, forks, 0));
  multiply(branch, branch->x[0], x->x[0], 1024, false);
  settle(syncs);
  run_chain(branch, 5, false, syncs);
  multiply(x, x->x[2], x->x[0], 200, false);
  GPU(cudaEventRecord(joins, branch->stream));
  GPU(cudaStreamWaitEvent(x->stream, joins, 0));
  settle(syncs);
  multiply(x, x->x[1], branch->x[1], 1024, true);
  settle(syncs);
  GPU(cudaMemcpyAsync(x->x[0], x->x[1], (size_t)x->bytes, cudaMemcpyDefault, x->stream));
  settle(syncs);
  run_chain(x, 3, true, syncs);
}

static void graphs(void) {
  struct chain x = chain_new(WSGEMM_F16, 1024), branch = chain_new(WSGEMM_F16, 1024);
  cudaEvent_t forks, joins;
  cudaGraph_t graph;
  cudaGraphExec_t exec;
  GPU(cudaEventCreate(&forks));
  GPU(cudaEventCreate(&joins));
  chain_begin(&x), chain_begin(&branch);
  enqueue(&x, &branch, forks, joins, true);
  const unsigned long long expected = digest(&x), of_branch = digest(&branch);
  GPU(cudaStreamBeginCapture(x.stream, cudaStreamCaptureModeGlobal));
  enqueue(&x, &branch, forks, joins, false);
  GPU(cudaStreamEndCapture(x.stream, &graph));
  GPU(cudaGraphInstantiate(&exec, graph, 0));
  for (int round = 0; round < 6; round++) {
    chain_begin(&x), chain_begin(&branch);
    GPU(cudaDeviceSynchronize());
    for (int i = 0; i < 1 + round % 2; i++) GPU(cudaGraphLaunch(exec, x.stream)); /* twice: the second finds all in use */
    GPU(cudaDeviceSynchronize());
    CHECK(digest(&x) == expected && digest(&branch) == of_branch, "round %d: other bits than with waits", round);
  }
  GPU(cudaGraphExecDestroy(exec));
  GPU(cudaGraphDestroy(graph));
  GPU(cudaEventDestroy(forks));
  GPU(cudaEventDestroy(joins));
  chain_free(&x), chain_free(&branch);
}

/* A launch of others that begins early, waits for nobody and has ended when the one before it has not: whether our wait is for that
 * one, too. CUDA's books leave it open. */
static void passed_over(void) {
  struct chain x = chain_new(WSGEMM_F16, 1024);
  unsigned long long expected = 0;
  for (int round = 0; round < 4; round++) {
    chain_begin(&x);
    GPU(cudaMemset(x.x[0], 0, (size_t)x.bytes));
    GPU(cudaDeviceSynchronize());
    write_first(&x, SLOW_EARLY_KERNEL, NULL);
    const struct foreign idle = {x.x[2], x.w, 0, 0, EARLY, EARLY, false};
    launch_foreign(&idle, x.stream);
    if (round == 0) GPU(cudaDeviceSynchronize());
    multiply(&x, x.x[1], x.x[0], round % 2 ? 16 : 1024, false);
    multiply(&x, x.x[1], x.x[0], 1024, false);
    const unsigned long long found = digest(&x);
    if (round == 0) expected = found;
    CHECK(found == expected, "round %d: other bits behind a kernel that waits for nobody", round);
  }
  chain_free(&x);
}

int main(int argc, char **argv) {
  static const struct check_case cases[] = {{"chains", chains},
                                            {"neighbours", neighbours},
                                            {"after_others", after_others},
                                            {"before_others", before_others},
                                            {"default_stream", default_stream},
                                            {"graphs", graphs},
                                            {"passed_over", passed_over}};
  cudaLibrary_t library;
  gpu_open();
  GPU(cudaLibraryLoadData(&library, foreign_ptx, NULL, NULL, 0, NULL, NULL, 0));
  GPU(cudaLibraryGetKernel(&foreign_kernel, library, "foreign"));
  return check_main("gpu_early", cases, sizeof cases / sizeof cases[0], argc, argv);
}
