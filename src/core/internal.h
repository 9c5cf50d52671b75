/* internal.h - what the rooms of the library tell each other: the problem, the plan, and who does what with them.
 *
 * Path of a call: api.c checks the arguments and makes a ws_problem > dispatch.c picks the backend > cpu/plan.c asks tune.c and makes a ws_plan
 * > cpu/backend.c runs it. The problem is built once and never changed on its way; nothing here is visible outside. */
#ifndef WS_INTERNAL_H
#define WS_INTERNAL_H
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cpu/kernels/ukr.h"
#include "wsgemm.h"

/* ---- element types: one table -------------------------------------------------------------------------------------------- */

enum { WS_N_TYPES = 6 };
typedef struct ws_type_info {
  char letter;       /* s d c z h b */
  const char *name;  /* f32 ... */
  int bytes, n_real; /* per element */
} ws_type_info;
extern const ws_type_info ws_types[WS_N_TYPES];

/* Types that are stored in 16 bits and computed with in FP32. */
static inline bool ws_is_half(wsgemm_type type) { return type == WSGEMM_F16 || type == WSGEMM_BF16; }

/* ---- epilogue -------------------------------------------------------------------------------------------------------------
 * See wsgemm_epilogue, for C as it stands in the problem: where a row-major one was swapped, the caller's columns are rows here. */
typedef struct ws_epilogue {
  wsgemm_epilogue activation;
  bool swapped;      /* the caller's C is row-major: his columns are rows */
  bool bias_per_row; /* bias[i] to row i of the problem's C; else bias[j] to column j */
  wsgemm_type type_bias;
  const void *bias, *residual; /* NULL: none */
  void *column_sums;           /* of the caller's columns; NULL: none */
  int64_t stride_bias, ld_residual, stride_residual, stride_column_sums;
  double out_scale;
} ws_epilogue;

/* ---- packed operands: packed.c -------------------------------------------------------------------------------------------- */

/* Of a problem's operands, their packed forms (NULL: none). swapped: the caller calls them the other way round, as his C is row-major. */
typedef struct ws_packed_pair {
  const wsgemm_packed *a, *b;
  bool swapped;
} ws_packed_pair;

/* ---- what tuning chooses: tune.c ------------------------------------------------------------------------------------------ */

enum { WS_TUNING_DIRECT = 1, WS_TUNING_PACKED = 2 }; /* ways of the CPU */

/* Parameters beside the row: X(name, most). 0: as the model says; a backend leaves out those that it does not have. */
#define WS_TUNING_PARAMETERS(X)                                            \
  X(policy, WSGEMM_POLICY_FOREACH)                                         \
  X(coarse, WS_COARSE_MAX)   /* CPU: COARSE_FACTOR (of GPUs, the row's) */ \
  X(order, 1024)             /* GPU: rows of tiles in a band (tile.h) */   \
  X(quantum, WS_QUANTUM_MAX) /* GPU: items after which a block leaves */   \
  X(path, WS_TUNING_PACKED)  /* CPU */                                     \
  X(mc, 1 << 24)             /* CPU: rows and columns of a block */        \
  X(nc, 1 << 24)                                                           \
  X(threads, 256) /* CPU: at most so many */

typedef struct ws_tuning {
  int row; /* of its backend's, + 1; 0: the model's */
#define WS_TUNING_MEMBER(name, most) int name;
  WS_TUNING_PARAMETERS(WS_TUNING_MEMBER)
#undef WS_TUNING_MEMBER
} ws_tuning;

extern const ws_tuning ws_tuning_of_model; /* all 0 */

typedef enum ws_tuned_by { WS_TUNED_BY_MODEL, WS_TUNED_BY_USER, WS_TUNED_BY_TABLE, WS_TUNED_BY_SEARCH } ws_tuned_by;

/* What a call takes, and from where. */
typedef struct ws_tuned {
  ws_tuning tuning; /* all 0: the model's choice */
  ws_tuned_by by;
  bool is_exact; /* of just this shape */
} ws_tuned;
/* Made in registers: reading one costs a call with cold caches 200 ns. */
static inline ws_tuned ws_tuned_model(void) { return (ws_tuned){.by = WS_TUNED_BY_MODEL}; }
const char *ws_tuned_by_name(ws_tuned_by by);

/* ---- problem --------------------------------------------------------------------------------------------------------------
 * C = alpha op(A) op(B) + beta C, column-major, checked, with m, n >= 1. Element (i, p) of op(A) stands at a[i + p * lda], or at
 * a[p + i * lda] if a_trans; (p, j) of op(B) at b[p + j * ldb], or b[j + p * ldb] if b_trans. */
typedef struct ws_problem {
  wsgemm_type type, type_c; /* of A and B, of C: equal, except that halves may give another half or floats */
  bool a_trans, b_trans;
  int64_t m, n, k;
  const void *a, *b;
  void *c;
  int64_t lda, ldb, ldc;
  ws_scale scale;   /* alpha, beta and what is known of them */
  wsgemm_math math; /* INHERIT: the handle's */
  int64_t batch_count, stride_a, stride_b, stride_c;
  const ws_tuning *tuning; /* what the search tries; NULL: looked up */
  bool has_epilogue, has_packed;
  ws_epilogue epilogue;  /* if has_epilogue, else never looked at */
  ws_packed_pair packed; /* if has_packed, likewise */
} ws_problem;

/* An operand in its packed form, in device memory; made of the A, or B, of `of`, of which all else is not looked at. */
struct wsgemm_packed {
  uint64_t magic;
  ws_problem of;
  bool is_a;
  int device, n_slices; /* of the numerics class that it was made for */
  char *memory;
};
/* INVALID_VALUE: a packed operand is none, or not the problem's. */
wsgemm_status ws_check_packed(wsgemm_handle *h, const ws_problem *p);
/* api.c: a checked descriptor as a problem; of its pointers nothing is checked. */
wsgemm_status ws_problem_of(wsgemm_handle *h, const wsgemm_gemm_desc *desc, ws_problem *p);

/* A residual in C's own memory, of what stands there before the call. */
static inline bool ws_residual_is_c(const ws_problem *p) {
  const ws_epilogue *e = &p->epilogue;
  return e->residual == p->c && e->ld_residual == p->ldc && (p->batch_count == 1 || e->stride_residual == p->stride_c);
}

/* C^T = op(B)^T op(A)^T, for a row C whose elements follow each other (m = 1, ldc = 1), without its epilogue. */
static inline ws_problem ws_transposed(const ws_problem *p) {
  ws_problem t = *p;
  t.m = p->n, t.n = p->m, t.ldc = p->n;
  t.a = p->b, t.lda = p->ldb, t.a_trans = !p->b_trans, t.stride_a = p->stride_b, t.scale.conj_a = p->scale.conj_b;
  t.b = p->a, t.ldb = p->lda, t.b_trans = !p->a_trans, t.stride_b = p->stride_a, t.scale.conj_b = p->scale.conj_a;
  t.has_epilogue = false;
  return t;
}

/* ---- machine: context.c, cpu/cpuid.c ------------------------------------------------------------------------------------ */

typedef enum ws_isa { WS_ISA_REF, WS_ISA_NEON, WS_ISA_AVX2, WS_ISA_AVX512, WS_ISA_AMX, WS_N_ISAS } ws_isa;

typedef struct ws_machine {
  bool isa[WS_N_ISAS]; /* the processor and the operating system can run it */
  char model[64];
  char features[160];
  int64_t l1d_bytes, l2_bytes, l3_bytes;
  bool caches_measured;
} ws_machine;

const char *ws_isa_name(ws_isa isa);
void ws_cpu_detect(ws_machine *machine);
/* Linux gives tile registers (AMX) to processes that ask. The answer holds for all threads, also for those there already, and for children;
 * from then on a signal stack must have room for them (8 KiB more). Refused, for one where a thread's signal stack is too small: isa[AMX] is
 * false. */
void ws_cpu_ask_for_tiles(ws_machine *machine);
const ws_machine *ws_machine_get(void);
/* Detects the machine and reads the environment, once; every WSGEMM_* variable is known to context.c alone. */
void ws_context_init_once(void);
/* For fork handlers: a fork waits for a first call to end. */
void ws_context_lock(void);
void ws_context_unlock(void);
void ws_context_unlock_in_child(void);
/* Registers those handlers, once (fork.c). */
void ws_watch_forks(void);
extern _Atomic bool ws_context_ready;
static inline void ws_context_init(void) {
  if (!atomic_load_explicit(&ws_context_ready, memory_order_acquire)) ws_context_init_once();
}

/* The least of what `value` makes of the first line of a file of cgroups (version 2), such as "memory.max", in this process's cgroup and those
 * above it. value: HUGE_VAL for no limit. HUGE_VAL: there is none. */
double ws_cgroup_least(const char *file, double (*value)(const char *text)); /* cgroup.c */

/* ---- handle: context.c ---------------------------------------------------------------------------------------------------- */

enum { WS_COARSE_MAX = 64, WS_QUANTUM_MAX = 1 << 20 };
/* Device memory of the caller's. */
typedef struct ws_caller_workspace {
  char *memory; /* NULL: the library's own */
  int64_t bytes;
  int device;
} ws_caller_workspace;

typedef struct ws_logger {
  wsgemm_logger log; /* NULL: none */
  void *user;
} ws_logger;

struct wsgemm_handle {
  _Atomic uint64_t magic;
  _Atomic int n_threads, policy, coarse_factor, quantum, math, check, invariant; /* 0: automatic, or off */
  _Atomic int kernel[WS_N_TYPES], cuda_kernel[WS_N_TYPES]; /* forced row + 1 of each backend; 0: automatic */
  _Atomic(void *) stream;
  /* What belongs together, by the functions below alone. */
  ws_caller_workspace workspace;
  ws_logger logger;
};

#define WS_HANDLE_MAGIC UINT64_C(0x77736d67656d6d31)
extern wsgemm_handle ws_default_handle;

/* The handle that a caller's pointer stands for; NULL if it is none of ours. Readies the library on the first call. */
static inline wsgemm_handle *ws_handle(wsgemm_handle *h) {
  ws_context_init();
  if (!h) return &ws_default_handle;
  return atomic_load_explicit(&h->magic, memory_order_relaxed) == WS_HANDLE_MAGIC ? h : NULL;
}
/* As they were set. */
ws_caller_workspace ws_caller_workspace_get(const wsgemm_handle *h);
void ws_caller_workspace_set(wsgemm_handle *h, const ws_caller_workspace *workspace);
ws_logger ws_logger_get(const wsgemm_handle *h);
/* For fork handlers: of what is set together. */
void ws_settings_lock(void);
void ws_settings_unlock(void);
/* The problem's numerics class: its own, or the handle's. */
static inline wsgemm_math ws_math_of(wsgemm_handle *h, const ws_problem *p) {
  return p->math != WSGEMM_MATH_INHERIT ? p->math : (wsgemm_math)atomic_load_explicit(&h->math, memory_order_relaxed);
}
/* Threads that a call on this handle by this thread may use. */
int ws_thread_limit(wsgemm_handle *h);
/* Records and logs a failure for this thread; returns status. */
wsgemm_status ws_fail(wsgemm_handle *h, wsgemm_status status, const char *format, ...) __attribute__((format(printf, 3, 4)));
/* The same for a handle that is none of ours. */
wsgemm_status ws_fail_handle(void);

/* ---- registry: registry.c ----------------------------------------------------------------------------------------------- */

typedef struct ws_cpu_row {
  const char *name; /* made from the row's values: "sgemm_avx512_32x12" */
  wsgemm_type type;
  ws_isa isa;
  int mr, nr, kc;        /* register tile and k block, in elements; kc is part of the numerics, the other blockings are not */
  const ws_ukr_set *ukr; /* of h and b: those of s */
  const ws_convert_set *convert;
  const ws_matrix_unit *unit; /* instead of ukr; NULL: none */
} ws_cpu_row;

int ws_row_count(void); /* CPU rows; wsgemm_kernel_count counts those of all backends, CPU rows first */
const ws_cpu_row *ws_row(int row_idx);
bool ws_row_usable(int row_idx);
int ws_row_find(const char *name); /* -1: unknown */
/* The row for a type: the handle's or the environment's if forced, else the first usable one of the table. */
extern const ws_cpu_row *ws_default_row[WS_N_TYPES];
static inline const ws_cpu_row *ws_row_for(const wsgemm_handle *h, wsgemm_type type) {
  const int forced = atomic_load_explicit(&h->kernel[type], memory_order_relaxed);
  return forced ? ws_row(forced - 1) : ws_default_row[type];
}
/* The same for a product of so many multiply-adds: below UNIT_LEAST a matrix unit costs more than it saves (Sapphire Rapids), and the first row
 * without one is taken, unless a row was asked for by name. In invariant mode always: what a unit computes is decided by whole panels
 * (cpu/exponents.h), so that an element's bits may depend on its neighbours. */
extern const ws_cpu_row *ws_default_row_without_unit[WS_N_TYPES];
static inline const ws_cpu_row *ws_row_for_work(const wsgemm_handle *h, wsgemm_type type, double work) {
  enum { UNIT_LEAST = 20 * 20 * 20 };
  const bool is_forced = atomic_load_explicit(&h->kernel[type], memory_order_relaxed) != 0;
  const ws_cpu_row *row = ws_row_for(h, type);
  if (!row->unit) return row;
  const bool is_invariant = atomic_load_explicit(&h->invariant, memory_order_relaxed) != 0;
  return is_invariant || (!is_forced && work < UNIT_LEAST) ? ws_default_row_without_unit[type] : row;
}
void ws_registry_init(ws_isa most, const char *forced_kernel);

/* ---- plan: cpu/plan.c ----------------------------------------------------------------------------------------------------- */

typedef enum ws_path {
  WS_PATH_DIRECT, /* B as it stands, A as it stands or one panel at a time packed on the stack */
  WS_PATH_VECTOR, /* m = 1 or n = 1: a matrix-vector product */
  WS_PATH_PACKED, /* B packed once for all workers, A by whoever works on its rows */
  WS_PATH_HALF    /* half precision: FP32 copies of A, B and C, a block at a time, by whoever works on it */
} ws_path;

typedef struct ws_plan {
  const ws_cpu_row *row;
  ws_path path;
  bool pack_a;        /* DIRECT: pack panels of A */
  bool by_columns;    /* DIRECT: a strip of columns at a time, not a panel of rows: C in long runs */
  bool swap;          /* m = 1, computed as its transpose */
  int64_t kc;         /* k block: a function of the row and of k alone */
  int64_t bm, bn;     /* tile of the queue, in elements of C */
  int64_t n_products; /* DIRECT, HALF: of a batch, in one work item */
  int64_t nc;         /* PACKED: columns of B packed at a time */
  int coarse, n_threads;
  int thread_limit; /* of the call; 0: not asked for yet */
  wsgemm_policy policy;
  ws_tuned tuned;
} ws_plan;

/* A product of one panel of rows, small enough that planning it would be felt: straight to the direct path. */
static inline bool ws_is_one_panel(const ws_problem *p, const ws_cpu_row *row) {
  enum { SMALL_B = 64 * 64 };
  return p->m <= row->ukr->n_vectors * row->ukr->vl && p->n <= SMALL_B && p->k <= SMALL_B && p->n * p->k <= SMALL_B &&
         p->k <= row->kc && !p->a_trans && p->m > 1 && p->n > 1 && p->batch_count == 1 && !ws_is_half(p->type);
}

void ws_plan_make(wsgemm_handle *h, const ws_problem *p, ws_plan *plan);
/* Multiply-adds of floats that take as long as one of this type. */
double ws_float_products(wsgemm_type type);
/* For a walk over the elements of C alone: row, tile, threads, policy. */
void ws_plan_walk(wsgemm_handle *h, const ws_problem *p, ws_plan *plan);
const char *ws_path_name(ws_path path);
const char *ws_policy_name(wsgemm_policy policy);

/* ---- text: text.c ----------------------------------------------------------------------------------------------------------- */

typedef struct ws_text {
  char *at;
  size_t bytes, length; /* capacity; length of the whole text, written or not */
} ws_text;
void ws_text_add(ws_text *t, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* vsnprintf and strerror in the locale "C", whatever the program's is. */
int ws_format(char *text, size_t bytes, const char *format, va_list args) __attribute__((format(printf, 3, 0)));
const char *ws_error_text(int error);

/* ---- running: dispatch.c, cpu/backend.c ------------------------------------------------------------------------------------- */

/* Runs a checked problem; the handle is one that ws_handle gave. */
wsgemm_status ws_dispatch(wsgemm_handle *h, const ws_problem *p);
/* See wsgemm_get_workspace_size. */
wsgemm_status ws_workspace_bytes(wsgemm_handle *h, const ws_problem *p, size_t *bytes);
/* How ws_dispatch would run it, in words. */
void ws_explain_problem(wsgemm_handle *h, const ws_problem *p, ws_text *t);
/* k = 0 or alpha = 0: C = beta C, A and B are not read. */
static inline bool ws_product_is_zero(const ws_problem *p) { return p->k == 0 || p->scale.alpha_zero; }
void ws_cpu_gemm(const ws_problem *p, const ws_plan *plan);
void ws_cpu_one_panel(const ws_problem *p, const ws_cpu_row *row);
/* C = beta C for the whole batch. */
void ws_cpu_scale(const ws_problem *p, const ws_cpu_row *row);
/* A product with an epilogue; ALLOC_FAILED: see wsgemm_gemm. */
wsgemm_status ws_cpu_gemm_epilogue(wsgemm_handle *h, const ws_problem *p);
#endif
