/* bench_load.c - how much of the machine others took while a suite ran: the figures of a disturbed
 * run are not to be trusted.
 *
 * /proc/stat counts the busy time of all cores; what this process and its waited-for children used
 * is taken off. Under a hypervisor the time that other guests took is counted there too ("steal").
 * Without /proc/stat nothing is known, and said. */
#define _GNU_SOURCE
#include "bench.h"

#include <sys/resource.h>
#include <unistd.h>

typedef struct load_sample {
  double wall_s, busy_s, steal_s, own_s;
  int n_cores; /* of the machine, not of this process */
} load_sample;

static load_sample start;

static double usage_s(int who) {
  struct rusage r;
  if (getrusage(who, &r)) return 0;
  return (double)(r.ru_utime.tv_sec + r.ru_stime.tv_sec) + 1e-6 * (double)(r.ru_utime.tv_usec + r.ru_stime.tv_usec);
}

static load_sample take_sample(void) {
  load_sample s = {.wall_s = ws_bench_now(), .own_s = usage_s(RUSAGE_SELF) + usage_s(RUSAGE_CHILDREN)};
  unsigned long long user, nice, system, idle, iowait, irq, softirq, steal;
  const double tick_s = 1.0 / (double)sysconf(_SC_CLK_TCK);
  FILE *f = fopen("/proc/stat", "re");
  if (!f) return s;
  if (fscanf(f, "cpu %llu %llu %llu %llu %llu %llu %llu %llu", &user, &nice, &system, &idle, &iowait, &irq, &softirq, &steal) ==
      8) {
    s.busy_s = (double)(user + nice + system + irq + softirq) * tick_s;
    s.steal_s = (double)steal * tick_s;
    s.n_cores = (int)sysconf(_SC_NPROCESSORS_ONLN);
  }
  fclose(f);
  return s;
}

void ws_bench_load_begin(void) { start = take_sample(); }

double ws_bench_load_others(void) {
  const load_sample now = take_sample();
  const double capacity_s = (now.wall_s - start.wall_s) * now.n_cores;
  const double others_s = now.busy_s - start.busy_s + now.steal_s - start.steal_s - (now.own_s - start.own_s);
  if (!start.n_cores || !now.n_cores || !(capacity_s > 0)) return -1;
  /* ticks are coarse: slightly below 0 is possible */
  return others_s > 0 ? others_s / capacity_s : 0;
}
