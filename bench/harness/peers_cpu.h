/* peers_cpu.h - other BLAS libraries for the CPU (OpenBLAS, BLIS), loaded at run time, each with
 * its version and core. */
#ifndef WSGEMM_BENCH_PEERS_CPU_H
#define WSGEMM_BENCH_PEERS_CPU_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { BENCH_MAX_PEERS = 4 };

typedef void (*bench_cblas_s)(int, int, int, int, int, int, float, const float *, int, const float *, int, float, float *, int);
typedef void (*bench_cblas_d)(int, int, int, int, int, int, double, const double *, int, const double *, int, double, double *,
                              int);
typedef void (*bench_cblas_x)(int, int, int, int, int, int, const void *, const void *, int, const void *, int, const void *,
                              void *, int); /* complex, both sizes */

typedef struct bench_peer {
  char name[96]; /* "OpenBLAS 0.3.21 Cooperlake" */
  char path[512];
  bench_cblas_s sgemm;
  bench_cblas_d dgemm;
  bench_cblas_x cgemm, zgemm;
  void (*set_threads)(int);
  void (*set_threads64)(int64_t); /* instead, in a family whose counts are 64 bits wide */
  int (*get_threads)(void);
  int n_threads; /* as last set */
  void *library;
  char prefix[16];
} bench_peer;

/* Removes from the environment what would distort a peer; call it before any peer is loaded.
 * Returns how many were removed and leaves their names, separated by blanks, in text. */
int ws_bench_clean_environment(char *text, size_t bytes);

/* Loads the peers named in specs ("PATH" or "PATH:PREFIX"); with n_specs = 0 those of the
 * default search. Returns how many stand in peers, or -1 with one line in error: a named peer
 * cannot be used, or a peer runs without AVX-512 on a machine that has it.
 * */
int ws_bench_load_peers(const char *const *specs, int n_specs, bool allow_slow, bench_peer *peers, char *error, size_t bytes);

/* Another function of the peer ("cblas_ssyrk") into *function, a pointer to a function; false, and
 * NULL: it has none. */
bool ws_bench_peer_find(const bench_peer *peer, const char *name, void *function);

/* Sets the peer's thread count; false if it does not take it. */
bool ws_bench_peer_threads(bench_peer *peer, int n_threads);
#endif
