/* cublas.h - what the files of the cuBLAS interposer share: the real libraries, dlsym, a handle's record,
 * a call, the log.
 *
 * libwsgemm_cublas computes nothing: an entry point (entries.c, lt.c) writes its arguments into a
 * wsgemm descriptor; take.c decides who computes, and calls wsgemm.h's public function or says that
 * the real cuBLAS is to (libraries.c). Nothing of CUDA is linked. */
#ifndef WS_CUBLAS_CUBLAS_H
#define WS_CUBLAS_CUBLAS_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cublas_v2.h>
#include <cublasLt.h>

#include "wsgemm.h"

#define WS_CUBLAS_EXPORT __attribute__((visibility("default")))
#define WS_CUBLAS_COLD __attribute__((cold, noinline))

typedef enum ws_cublas_function {
#define FUNCTION(symbol) WS_##symbol,
#include "cublas/functions.def"
#undef FUNCTION
  WS_CUBLAS_N_FUNCTIONS
} ws_cublas_function;
extern const char *const ws_cublas_names[WS_CUBLAS_N_FUNCTIONS]; /* "cublasSgemm_v2" */

typedef enum ws_cublas_reason {
#define REASON(name, words) WS_CUBLAS_##name,
#include "cublas/reasons.def"
#undef REASON
  WS_CUBLAS_N_REASONS,
  WS_CUBLAS_TAKEN = WS_CUBLAS_N_REASONS
} ws_cublas_reason;

/* ---- The real cuBLAS (libraries.c) ----------------------------------------------------------- */

typedef struct ws_cublas_library ws_cublas_library;
typedef void (*ws_cublas_any)(void); /* a function whose type the symbol says */
enum { WS_CUBLAS_N_LIBRARIES = 8 };  /* that are told apart */

/* The cuBLAS (cuBLASLt: of functions of that one) that the code at this address is linked to; or the
 * process's only one. NULL: there is none. */
ws_cublas_library *ws_cublas_library_of(ws_cublas_function function, const void *caller);
/* A function of a library, NULL for the process's only one. NULL: it has none. */
ws_cublas_any ws_cublas_function_of(ws_cublas_library *library, ws_cublas_function function);
/* The number of the library that has this real function, and the library of a number. Negative: it can
 * be none of those told apart. */
int ws_cublas_number_of(ws_cublas_function function, void *real);
ws_cublas_library *ws_cublas_library_at(int number);

/* ---- dlsym (dlsym.c, lookup.c) --------------------------------------------------------------- */

typedef void *(*ws_cublas_dlsym)(void *library, const char *name);
ws_cublas_dlsym ws_cublas_true_dlsym(void); /* for what this library itself looks up of cuBLAS */

/* What a program's dlsym answers for a name that begins with cublas. */
void *ws_cublas_look_up(void *library, const char *name);
/* The function that makes handles of the library of this number; NULL: the function makes none (handles.c). */
ws_cublas_any ws_cublas_create_of(ws_cublas_function function, int number);

/* ---- A handle of cuBLAS or cuBLASLt (handles.c) ---------------------------------------------- */

typedef struct ws_cublas_state {
  _Atomic(void *) key; /* the handle; NULL: free */
  struct ws_cublas_state *next;
  ws_cublas_library *library; /* that made it; NULL: not known */
  pthread_mutex_t lock;       /* over what follows: a call's settings and the call */
  wsgemm_handle *handle;      /* NULL: none yet */
  void *workspace;            /* that the program gave cuBLAS, for its present stream */
  size_t workspace_bytes;
} ws_cublas_state;

/* NULL: the handle is NULL, or (is_wanted: memory is short) has no record. */
ws_cublas_state *ws_cublas_state_of(void *handle, bool is_wanted);

/* The real function of this symbol for a handle, as its own type; NULL: there is none. */
ws_cublas_any ws_cublas_real(ws_cublas_function function, void *handle);
#define WS_CUBLAS_REAL(symbol, handle) ((__typeof__(&symbol))ws_cublas_real(WS_##symbol, handle))

/* Whether this process is the child of one that had handles: CUDA stayed with the parent. */
bool ws_cublas_is_forked(void);

/* How deep this thread is in the real library, whose own calls are not looked at. */
extern __thread int ws_cublas_depth __attribute__((tls_model("initial-exec"), visibility("hidden")));

/* Ends an entry point by the real function: PASS_ON(cublasSgemm_v2, handle, handle, transa, ...). */
#define PASS_ON(symbol, handle_, ...)                                          \
  do {                                                                         \
    const __typeof__(&symbol) real_function = WS_CUBLAS_REAL(symbol, handle_); \
    if (!real_function) return CUBLAS_STATUS_NOT_INITIALIZED;                  \
    ws_cublas_depth++;                                                         \
    const cublasStatus_t real_status = real_function(__VA_ARGS__);             \
    ws_cublas_depth--;                                                         \
    return real_status;                                                        \
  } while (0)

/* ---- A call (take.c) ------------------------------------------------------------------------- */

/* desc.gemm's or desc.level3's sizes, lds, pointers, enumerators and types are the caller's, its math
 * what the compute type asks for (INHERIT: what the handle says); the rest is take.c's. A batch by
 * pointers is desc.gemm without matrices, and the arrays beside it. */
typedef struct ws_cublas_call {
  ws_cublas_function function;
  void *handle;
  bool is_level3;
  bool is_lt;               /* `stream` and `scalars` count, and no handle's modes */
  bool is_bad;              /* an enumerator that wsgemm does not have */
  bool is_foreign;          /* types, a compute type or an epilogue likewise */
  bool has_arrays;          /* `a`, `b` and `c` count: pointers of each product, in device memory */
  const void *alpha, *beta; /* beta: NULL: the routine has none */
  const void *const *a, *const *b;
  void *const *c;
  wsgemm_type type_alpha, type_beta;
  cudaStream_t stream;
  cublasPointerMode_t scalars;
  void *workspace; /* is_lt: the call's own; else the handle's */
  size_t workspace_bytes;
  double saved_us; /* of a call that was taken, by wins.def */
  union {
    wsgemm_gemm_desc gemm;
    wsgemm_level3_desc level3;
  } desc;
} ws_cublas_call;

/* Whether wsgemm has computed the call; *status is then the caller's. */
bool ws_cublas_take(ws_cublas_call *call, cublasStatus_t *status);

/* Of cublasLtMatmul: whether no C of this size is wsgemm's; whether a product may be, by sizes and types, epilogue or not. */
bool ws_cublas_is_small(int64_t m, int64_t n);
bool ws_cublas_may_win(const ws_cublas_call *call);

/* Where a pointer of device memory lies (device.c). */
typedef struct ws_cublas_place {
  bool is_device; /* memory of a GPU that is not managed, on the thread's current device */
  int cc;         /* of the device: 10 * major + minor */
} ws_cublas_place;
ws_cublas_place ws_cublas_place_of(const void *pointer);
/* Whether the stream is being captured; after ws_cublas_place_of has found a device. */
bool ws_cublas_is_captured(cudaStream_t stream);

/* ---- Settings and log (log.c) ---------------------------------------------------------------- */

typedef struct ws_cublas_settings {
  bool is_off, takes_all, is_logged, has_summary;
} ws_cublas_settings;
extern ws_cublas_settings ws_cublas_settings_now;
void ws_cublas_read_settings(void); /* once, as the library is loaded or sooner */

/* Counts a call, what it saved, and writes its line: `reason` says who computed it. */
WS_CUBLAS_COLD void ws_cublas_note(const ws_cublas_call *call, ws_cublas_reason reason, wsgemm_status status);

#endif
