/* candidates.h - products on the GPU and who computes them: wsgemm under some setting, cuBLAS, one
 * of cuBLASLt's proposals. */
#ifndef WSGEMM_BENCH_CANDIDATES_H
#define WSGEMM_BENCH_CANDIDATES_H
#include <stdio.h>

#include "bench/harness/clock.h"
#include "bench/harness/result.h"
#include "operands.h"
#include "shapes.h"

/* What all suites share; set in main. */
typedef struct gpu_bench {
  cudaStream_t stream;
  cudaEvent_t before, after;
  char device[256], commit[WS_BENCH_COMMIT_BYTES], date[WS_BENCH_DATE_BYTES];
  FILE *json;                 /* or NULL */
  int samples;                /* up to 200 */
  const void *device_scalars; /* alpha and beta of both widths (use_device_scalars); NULL: by value */
  bool asked_workspace;       /* as large as wsgemm_get_workspace_size says; else the library's own */
} gpu_bench;
extern gpu_bench bench;
void use_device_scalars(void);

typedef struct candidate {
  char label[96];
  const char *policy, *kernel; /* kernel: the one that is forced, or NULL */
  wsgemm_handle *handle;       /* NULL: cuBLAS, or cuBLASLt */
  const epilogue *epilogue;    /* NULL: none */
  int proposal;                /* of cuBLASLt, from 1 on; 0: none */
  double ms[200], median, spread;
} candidate;
enum { MAX_CANDIDATES = 256 };

typedef struct problem {
  wsgemm_type type;
  wsgemm_layout layout;
  wsgemm_op op_a, op_b;
  int64_t m, n, k, lda, ldb, ldc, shift;
  void *a, *b, *c, *bias, *residual, *sums; /* the last three: of the epilogue, or NULL */
  void *packed_memory;                      /* of packed_b, NULL: none */
  wsgemm_packed *packed_b;
  const char *case_class; /* of a random shape, or NULL */
} problem;

problem make_problem(wsgemm_type type, wsgemm_layout layout, const shape *s);
void pack_b(const candidate *x, problem *p);
void free_problem(problem *p);
double flops_of(const problem *p);
const char *sizes_of(const shape *s, char text[64]); /* "4096x4096x4096 ld+1" */

void set_candidate(candidate *x, const char *label, const char *policy_name, wsgemm_policy policy, int quantum,
                   const char *kernel);
void free_candidates(candidate *candidates, int n_candidates);
/* that the call takes */
void explained_kernel(const candidate *x, const problem *p, char name[91]);
/* Whether the candidate runs what it is called after: a kernel that cannot run the problem is
 * replaced by another. */
bool takes_kernel(const candidate *x, const problem *p);

/* One call, on the bench's stream. False: it failed, which has been told. */
bool candidate_run(const candidate *x, const problem *p);
/* The same between two events, the L2 flushed before: ms. */
double candidate_time(const candidate *x, const problem *p);
/* Times all candidates in turn, the L2 flushed before each run: medians and spread. */
void measure(candidate *candidates, int n_candidates, const problem *p);
/* Largest difference of the two candidates' C over a sample of its columns, relative to sqrt(k). */
double difference(const candidate *x, const candidate *y, const problem *p);
/* A line of the table, and one of JSON. */
void report(const char *suite, const char *case_name, const problem *p, const candidate *ours, const candidate *theirs,
            const char *peer);
#endif
