/* calls.c - see calls.h. Squares, whose operands stay in the L2; medians of times of the calling
 * thread, wsgemm and cuBLAS in turn:
 *
 *   alone   one call, when the device has nothing to do; the time until it returns
 *   chain   a thousand calls, one after the other: the time until the last returns, for each; the
 *           driver's queue is as long, and of products that take longer than calls it fills
 *   waited  one call, and the wait for its product */
#include "calls.h"

#include <stdlib.h>

#include "bench/harness/cublas.h"
#include "bench/harness/stats.h"
#include "candidates.h"

enum { CHAIN = 1000, N_ALONE = 200, N_CHAINS = 7, N_SIDES = 2 };
typedef enum way { ALONE, CHAINED, WAITED, N_WAYS } way;
static const char *const way_names[N_WAYS] = {"alone", "chain", "waited"};

static void call(const candidate *x, const problem *p, int n_calls) {
  for (int i = 0; i < n_calls; i++)
    if (!candidate_run(x, p)) exit(1);
}

/* us of the thread for each call. */
static double time_of(way how, const candidate *x, const problem *p) {
  const int n_calls = how == CHAINED ? CHAIN : 1;
  GPU(cudaStreamSynchronize(bench.stream));
  const double begin = ws_bench_now();
  call(x, p, n_calls);
  if (how == WAITED) GPU(cudaStreamSynchronize(bench.stream));
  return (ws_bench_now() - begin) * 1e6 / n_calls;
}

static void put(way how, wsgemm_type type, const char *case_name, const candidate *ours, const double us[N_SIDES]) {
  const char routine[] = {letters[type], 'g', 'e', 'm', 'm', 0};
  printf("calls     %s %-24s %-34s %8.2f %8.2f %7.3f   us\n", routine, case_name, ours->label, us[1], us[0], us[0] / us[1]);
  if (!bench.json) return;
  const ws_bench_result r = {.suite = "calls",
                             .routine = routine,
                             .case_name = case_name,
                             .policy = ours->policy,
                             .device = bench.device,
                             .peer = ws_bench_cublas_version(),
                             .ours = us[1],
                             .theirs = us[0],
                             .unit = "us a call",
                             .ratio = us[0] / us[1],
                             .commit = bench.commit,
                             .date = bench.date};
  ws_bench_result_begin(bench.json, &r);
  ws_bench_result_text(bench.json, "kernel", ours->label);
  ws_bench_result_number(bench.json, "samples", how == CHAINED ? N_CHAINS : N_ALONE);
  ws_bench_result_end(bench.json);
}

void run_calls(wsgemm_type type) {
  static const int64_t sizes[] = {64, 256, 1024};
  static double us[N_SIDES][N_ALONE];
  candidate candidates[N_SIDES] = {{.label = "cuBLAS", .policy = "none"}};
  set_candidate(&candidates[1], "auto", "auto", WSGEMM_POLICY_AUTO, 0, NULL);
  for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++) {
    const shape square = {.ops = "NN", .m = sizes[s], .n = sizes[s], .k = sizes[s]};
    problem p = make_problem(type, WSGEMM_COL_MAJOR, &square);
    explained_kernel(&candidates[1], &p, candidates[1].label);
    for (way how = ALONE; how < N_WAYS; how++) {
      const int n = how == CHAINED ? N_CHAINS : N_ALONE;
      double medians[N_SIDES];
      char case_name[64];
      for (int i = 0; i < N_SIDES; i++) call(&candidates[i], &p, 10); /* loads kernels */
      for (int sample = 0; sample < n; sample++)
        for (int i = 0; i < N_SIDES; i++) us[i][sample] = time_of(how, &candidates[i], &p);
      for (int i = 0; i < N_SIDES; i++) medians[i] = ws_bench_median(us[i], n);
      snprintf(case_name, sizeof case_name, "%lld^3 %s", (long long)sizes[s], way_names[how]);
      put(how, type, case_name, &candidates[1], medians);
    }
    GPU(cudaStreamSynchronize(bench.stream));
    free_problem(&p);
  }
  free_candidates(candidates, N_SIDES);
}
