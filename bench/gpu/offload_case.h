/* offload_case.h - products and systems of host matrices, column-major, as the offload bench runs them: their
 * matrices in pageable or pinned memory, and the call of wsgemm. */
#ifndef WSGEMM_BENCH_OFFLOAD_CASE_H
#define WSGEMM_BENCH_OFFLOAD_CASE_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wsgemm.h"

/* Other than gemm: on the left, the lower triangle, not transposed, of trmm and trsm with a unit diagonal; trmm from B to C,
 * trsm in C. */
typedef enum offload_routine {
  OFFLOAD_GEMM,
  OFFLOAD_SYMM,
  OFFLOAD_SYRK,
  OFFLOAD_SYR2K,
  OFFLOAD_TRMM,
  OFFLOAD_TRSM,
  OFFLOAD_N_ROUTINES
} offload_routine;
extern const struct offload_routine_row {
  const char *name;
  wsgemm_routine level3;
  bool has_b;
} offload_routines[OFFLOAD_N_ROUTINES];

typedef struct offload_matrix {
  int64_t rows, cols; /* ld is rows */
  size_t bytes;
  void *host;
} offload_matrix;

typedef struct offload_case {
  offload_routine routine;
  wsgemm_type type;
  int64_t m, n, k;
  bool is_transposed[2]; /* gemm's A and B */
  bool is_pinned;
  offload_matrix of[3]; /* A, B, C */
} offload_case;

/* Random numbers in -1 .. 1; C has them, too, so that its pages are there. false: no memory. */
bool offload_make(offload_case *t);
void offload_drop(offload_case *t);
double offload_flops(const offload_case *t);
/* Bytes that must come to the GPU: of triangles half. */
double offload_bytes_in(const offload_case *t);
double offload_bytes_out(const offload_case *t);

/* The same matrices elsewhere. */
typedef struct offload_place {
  void *memory[3];
  int64_t ld[3];
} offload_place;
offload_place offload_host(const offload_case *t);
wsgemm_status offload_call(const offload_case *t, wsgemm_handle *h, const offload_place *where);
/* Whether this handle has GPUs compute the gemm; other routines: true. */
bool offload_is_on_gpus(const offload_case *t, wsgemm_handle *h);
/* In device memory, with the leading dimensions by which C has the bits that it has from host matrices (docs/offload.md). */
bool offload_to_device(const offload_case *t, offload_place *where);
void offload_drop_device(offload_place *where);
/* Whether C is the same in both. */
bool offload_is_equal(const offload_case *t, const offload_place *where);
#endif
