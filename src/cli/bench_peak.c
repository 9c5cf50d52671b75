/* bench_peak.c - the machine's fused multiply-add peak, measured: what "fraction of peak" refers
 * to.
 *
 * 16 independent accumulators in registers, no memory access; in inline assembly, so that an
 * unoptimised build measures the same figure. One call is LOOP_COUNT rounds, about 2 microseconds.
 * With several threads every thread runs the loop and takes its own time, so starting the threads
 * is not counted. The widest instruction set of the machine is used, whatever wsgemm is limited
 * to. */
#include "bench.h"

#include <pthread.h>
#include <stdatomic.h>

enum { LOOP_COUNT = 1024, N_ACCUMULATORS = 16, MAX_PEAK_THREADS = 1024 };

typedef void (*peak_loop)(int64_t n_rounds);

#define SIXTEEN(F) F(0) F(1) F(2) F(3) F(4) F(5) F(6) F(7) F(8) F(9) F(10) F(11) F(12) F(13) F(14) F(15)

#if defined(__x86_64__)

#define CLEAR_Z(i) "vpxord %%zmm" #i ", %%zmm" #i ", %%zmm" #i "\n\t"
#define FMA_PS_Z(i) "vfmadd231ps %%zmm30, %%zmm31, %%zmm" #i "\n\t"
#define FMA_PD_Z(i) "vfmadd231pd %%zmm30, %%zmm31, %%zmm" #i "\n\t"
#define ZMM_LIST                                                                                                               \
  "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", "xmm11", "xmm12", "xmm13", "xmm14", \
      "xmm15", "xmm30", "xmm31"

__attribute__((target("avx512f"))) static void avx512_f32(int64_t n_rounds) {
  static const float x = 0x1p-12f;
  __asm__ volatile("vbroadcastss %1, %%zmm30\n\tvbroadcastss %1, %%zmm31\n\t" SIXTEEN(CLEAR_Z) ".p2align 5\n\t1:\n\t" SIXTEEN(
                       FMA_PS_Z) "dec %0\n\tjnz 1b\n\tvzeroupper\n\t"
                   : "+r"(n_rounds)
                   : "m"(x)
                   : ZMM_LIST, "cc");
}

__attribute__((target("avx512f"))) static void avx512_f64(int64_t n_rounds) {
  static const double x = 0x1p-12;
  __asm__ volatile("vbroadcastsd %1, %%zmm30\n\tvbroadcastsd %1, %%zmm31\n\t" SIXTEEN(CLEAR_Z) ".p2align 5\n\t1:\n\t" SIXTEEN(
                       FMA_PD_Z) "dec %0\n\tjnz 1b\n\tvzeroupper\n\t"
                   : "+r"(n_rounds)
                   : "m"(x)
                   : ZMM_LIST, "cc");
}

/* 16 registers in all: twelve accumulators are enough (2 FMA a cycle x a latency of 4 or 5 = 8 or
 * 10). */
#define CLEAR_Y(i) "vxorps %%ymm" #i ", %%ymm" #i ", %%ymm" #i "\n\t"
#define FMA_PS_Y(i) "vfmadd231ps %%ymm12, %%ymm13, %%ymm" #i "\n\t"
#define FMA_PD_Y(i) "vfmadd231pd %%ymm12, %%ymm13, %%ymm" #i "\n\t"
#define TWELVE(F) F(0) F(1) F(2) F(3) F(4) F(5) F(6) F(7) F(8) F(9) F(10) F(11)
#define YMM_LIST \
  "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", "xmm11", "xmm12", "xmm13"

__attribute__((target("avx2,fma"))) static void avx2_f32(int64_t n_rounds) {
  static const float x = 0x1p-12f;
  __asm__ volatile("vbroadcastss %1, %%ymm12\n\tvbroadcastss %1, %%ymm13\n\t" TWELVE(CLEAR_Y) ".p2align 5\n\t1:\n\t" TWELVE(
                       FMA_PS_Y) "dec %0\n\tjnz 1b\n\tvzeroupper\n\t"
                   : "+r"(n_rounds)
                   : "m"(x)
                   : YMM_LIST, "cc");
}

__attribute__((target("avx2,fma"))) static void avx2_f64(int64_t n_rounds) {
  static const double x = 0x1p-12;
  __asm__ volatile("vbroadcastsd %1, %%ymm12\n\tvbroadcastsd %1, %%ymm13\n\t" TWELVE(CLEAR_Y) ".p2align 5\n\t1:\n\t" TWELVE(
                       FMA_PD_Y) "dec %0\n\tjnz 1b\n\tvzeroupper\n\t"
                   : "+r"(n_rounds)
                   : "m"(x)
                   : YMM_LIST, "cc");
}

#elif defined(__aarch64__)

#define CLEAR_N(i) "movi v" #i ".2d, #0\n\t"
#define FMA_PS_N(i) "fmla v" #i ".4s, v30.4s, v31.4s\n\t"
#define FMA_PD_N(i) "fmla v" #i ".2d, v30.2d, v31.2d\n\t"
#define NEON_LIST \
  "v0", "v1", "v2", "v3", "v4", "v5", "v6", "v7", "v8", "v9", "v10", "v11", "v12", "v13", "v14", "v15", "v30", "v31"

static void neon_f32(int64_t n_rounds) {
  __asm__ volatile("fmov v30.4s, #0.125\n\tfmov v31.4s, #0.125\n\t" SIXTEEN(CLEAR_N) "1:\n\t" SIXTEEN(
                       FMA_PS_N) "subs %0, %0, #1\n\tb.ne 1b\n\t"
                   : "+r"(n_rounds)
                   :
                   : NEON_LIST, "cc");
}

static void neon_f64(int64_t n_rounds) {
  __asm__ volatile("fmov v30.2d, #0.125\n\tfmov v31.2d, #0.125\n\t" SIXTEEN(CLEAR_N) "1:\n\t" SIXTEEN(
                       FMA_PD_N) "subs %0, %0, #1\n\tb.ne 1b\n\t"
                   : "+r"(n_rounds)
                   :
                   : NEON_LIST, "cc");
}

#endif

/* Multiplications and additions that the compiler may turn into whatever the target has; the empty
 * asm keeps the result alive. */
static void portable_f32(int64_t n_rounds) {
  float acc[N_ACCUMULATORS] = {0};
  for (int64_t round = 0; round < n_rounds; round++)
    for (int i = 0; i < N_ACCUMULATORS; i++) acc[i] = acc[i] * 0.5f + 1.0f;
  __asm__ volatile("" : : "m"(acc));
}

static void portable_f64(int64_t n_rounds) {
  double acc[N_ACCUMULATORS] = {0};
  for (int64_t round = 0; round < n_rounds; round++)
    for (int i = 0; i < N_ACCUMULATORS; i++) acc[i] = acc[i] * 0.5 + 1.0;
  __asm__ volatile("" : : "m"(acc));
}

typedef struct peak_row {
  const char *isa;
  peak_loop f32, f64;
  int f32_flops, f64_flops; /* of one round */
} peak_row;

static const peak_row *widest(void) {
  static const peak_row portable = {"portable", portable_f32, portable_f64, 2 * N_ACCUMULATORS, 2 * N_ACCUMULATORS};
#if defined(__x86_64__)
  static const peak_row avx512 = {"avx512", avx512_f32, avx512_f64, 16 * 16 * 2, 16 * 8 * 2};
  static const peak_row avx2 = {"avx2", avx2_f32, avx2_f64, 12 * 8 * 2, 12 * 4 * 2};
  if (__builtin_cpu_supports("avx512f")) return &avx512;
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return &avx2;
#elif defined(__aarch64__)
  static const peak_row neon = {"neon", neon_f32, neon_f64, 16 * 4 * 2, 16 * 2 * 2};
  (void)portable;
  return &neon;
#endif
  return &portable;
}

const char *ws_bench_peak_isa(void) { return widest()->isa; }

double ws_bench_peak_flops(bool double_precision) {
  const peak_row *row = widest();
  return (double)LOOP_COUNT * (double_precision ? row->f64_flops : row->f32_flops);
}

typedef struct peak_team {
  peak_loop loop;
  int64_t n_rounds;
  int n_threads;
  atomic_int n_ready;
} peak_team;

typedef struct peak_member {
  peak_team *team;
  pthread_t thread;
  double seconds;
} peak_member;

static void *run_member(void *argument) {
  peak_member *me = argument;
  atomic_fetch_add(&me->team->n_ready, 1);
  while (atomic_load(&me->team->n_ready) < me->team->n_threads) {
  }
  const double start = ws_bench_now();
  me->team->loop(me->team->n_rounds);
  me->seconds = ws_bench_now() - start;
  return NULL;
}

double ws_bench_peak_run(bool double_precision, int n_threads, int64_t n_calls) {
  static peak_member members[MAX_PEAK_THREADS];
  const peak_row *row = widest();
  peak_team team = {.loop = double_precision ? row->f64 : row->f32, .n_rounds = n_calls * LOOP_COUNT, .n_threads = n_threads};
  double rate = 0;
  int n_started = 1;

  if (n_calls < 1 || n_threads < 1 || n_threads > MAX_PEAK_THREADS) return -1;
  for (; n_started < n_threads; n_started++) {
    members[n_started].team = &team;
    if (pthread_create(&members[n_started].thread, NULL, run_member, &members[n_started])) break;
  }
  /* let the others out of the start gate */
  if (n_started < n_threads) atomic_fetch_add(&team.n_ready, n_threads - n_started);
  members[0].team = &team;
  run_member(&members[0]);
  for (int i = 1; i < n_started; i++) pthread_join(members[i].thread, NULL);
  if (n_started < n_threads) return -1;
  /* The sum of the threads' rates is the peak, so the time to report is the harmonic mean of
   * theirs. */
  for (int i = 0; i < n_threads; i++) rate += 1 / members[i].seconds;
  return n_threads / rate;
}
