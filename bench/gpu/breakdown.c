/* breakdown.c - see breakdown.h. */
#include "breakdown.h"

#include <math.h>
#include <stdio.h>

static const int64_t sides[N_BY_SIDE - 1] = {64, 256, 1024}; /* the last of each */
static const double times_us[N_BY_TIME - 1] = {10, 30, 100, 300};
static const char *const side_names[N_BY_SIDE] = {"<= 64", "65-256", "257-1024", "> 1024"},
                         *const time_names[N_BY_TIME] = {"< 10 us", "10-30 us", "30-100 us", "100-300 us", ">= 300 us"},
                         *const op_names[N_BY_OPS] = {"NN", "NT", "TN", "TT"};

void breakdown_add(breakdown *b, const char *ops, int64_t m, int64_t n, double peer_ms, double speedup) {
  const int64_t side = m < n ? m : n;
  int by_side = 0, by_time = 0;
  while (by_side < N_BY_SIDE - 1 && side > sides[by_side]) by_side++;
  while (by_time < N_BY_TIME - 1 && peer_ms * 1e3 >= times_us[by_time]) by_time++;
  ws_bench_mean_add(&b->by_side[by_side], speedup);
  ws_bench_mean_add(&b->by_time[by_time], speedup);
  ws_bench_mean_add(&b->by_ops[2 * (ops[0] != 'N') + (ops[1] != 'N')], speedup);
}

static void print_line(char letter, const char *what, const ws_bench_mean *means, const char *const *names, int n) {
  printf("  %cgemm by %-22s", letter, what);
  for (int i = 0; i < n; i++) {
    if (means[i].n > 0)
      printf(" | %s: %.3f of %d, least %.3f", names[i], ws_bench_mean_of(&means[i]), means[i].n, means[i].least);
    else
      printf(" | %s: -", names[i]);
  }
  putchar('\n');
}

void breakdown_print(const breakdown *b, char letter) {
  print_line(letter, "min(m, n)", b->by_side, side_names, N_BY_SIDE);
  print_line(letter, "time of cuBLAS", b->by_time, time_names, N_BY_TIME);
  print_line(letter, "op pair", b->by_ops, op_names, N_BY_OPS);
}
