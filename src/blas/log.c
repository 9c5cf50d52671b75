/* log.c - what a program used of this library: with WSGEMM_BLAS_LOG=1 in the environment, calls and
 * multiply-adds of each routine, on stderr as the process ends.
 *
 * Without it an entry point reads one byte that says so. Counters are relaxed atomics: exact, but
 * no order. */
#define _GNU_SOURCE
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "blas/blas.h"

bool ws_blas_is_logged;

static struct {
  atomic_llong n_calls;
  _Atomic double n_products;
} counters[WS_BLAS_N_ROUTINES];

void ws_blas_count(ws_blas_routine routine, double n_products) {
  atomic_fetch_add_explicit(&counters[routine].n_calls, 1, memory_order_relaxed);
  double old = atomic_load_explicit(&counters[routine].n_products, memory_order_relaxed);
  while (!atomic_compare_exchange_weak_explicit(&counters[routine].n_products, &old, old + n_products, memory_order_relaxed,
                                                memory_order_relaxed)) {
  }
}

__attribute__((constructor)) static void begin_log(void) {
  const char *const wanted = getenv("WSGEMM_BLAS_LOG");
  ws_blas_is_logged = wanted && strcmp(wanted, "1") == 0;
}

__attribute__((destructor)) static void print_log(void) {
  if (!ws_blas_is_logged) return;
  for (int i = 0; i < WS_BLAS_N_ROUTINES; i++) {
    const long long n_calls = atomic_load_explicit(&counters[i].n_calls, memory_order_relaxed);
    if (n_calls)
      fprintf(stderr, "wsgemm_blas[%ld]: %s: %lld calls, %.3g multiply-adds\n", (long)getpid(), ws_blas_names[i], n_calls,
              atomic_load_explicit(&counters[i].n_products, memory_order_relaxed));
  }
}
