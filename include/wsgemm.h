/* wsgemm.h - the whole public interface of wsgemm, a dense linear algebra library.
 *
 *   C = alpha * op(A) * op(B) + beta * C
 *
 * The header is C11 and C++ and needs no CUDA header: a stream is a void *. Sizes, leading
 * dimensions and strides are int64_t and count elements, not bytes. Every function may be called
 * from any number of threads at once. A NULL handle stands for the process-wide default handle.
 *
 * Nothing here prints, exits, raises a signal, or changes the rounding mode. The returned status
 * says what went wrong, and wsgemm_last_error() says it in words.
 *
 * This header says what each call takes, returns and promises. Why and how: docs/numerics.md (error
 * bounds), docs/behaviour.md (threads, fork, signals, streams, graphs, memory), docs/scheduling.md,
 * docs/tuning.md, docs/environment.md (WSGEMM_* variables). */
#ifndef WSGEMM_H
#define WSGEMM_H

#include <stddef.h>
#include <stdint.h>

#define WSGEMM_VERSION_MAJOR 0
#define WSGEMM_VERSION_MINOR 1
#define WSGEMM_VERSION_PATCH 0
/* One comparable number: 10000 * major + 100 * minor + patch. */
#define WSGEMM_VERSION (10000 * WSGEMM_VERSION_MAJOR + 100 * WSGEMM_VERSION_MINOR + WSGEMM_VERSION_PATCH)

#if defined(__GNUC__)
#define WSGEMM_API __attribute__((visibility("default")))
#else
#define WSGEMM_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Status codes: X(name, value, text) ------------------------------------------------------ */

#define WSGEMM_STATUS_MAP(X)                                                                      \
  X(SUCCESS, 0, "success")                                                                        \
  X(INVALID_HANDLE, 1, "the handle was not made by wsgemm_create, or is already destroyed")       \
  X(INVALID_VALUE, 2, "an argument is out of its range")                                          \
  X(INVALID_POINTER, 3, "a pointer that would be read or written is NULL or in the wrong memory") \
  X(ALLOC_FAILED, 4, "out of memory; the output was not touched")                                 \
  X(NOT_SUPPORTED, 5, "this combination of types, modes or options is not built in")              \
  X(NO_DEVICE, 6, "no usable GPU")                                                                \
  X(INSUFFICIENT_DRIVER, 7, "the GPU driver is older than this library needs")                    \
  X(ARCH_MISMATCH, 8, "the library holds no kernel for this GPU's architecture")                  \
  X(CAPTURE_UNSAFE, 9, "the stream is being captured and a needed buffer is missing")             \
  X(WORKSPACE_TOO_SMALL, 10, "the given workspace is too small for every kernel")                 \
  X(DEVICE_ERROR, 11, "a GPU call failed; the output may be partly written")                      \
  X(INTERNAL_ERROR, 12, "a defect in wsgemm; please report it")                                   \
  X(FILE_ERROR, 13, "a file cannot be read or written")                                           \
  X(STOPPED, 14, "the progress function stopped the call; the output may be partly written")

typedef enum wsgemm_status {
#define WSGEMM_STATUS_ENUM(name, value, text) WSGEMM_##name = (value),
  WSGEMM_STATUS_MAP(WSGEMM_STATUS_ENUM)
#undef WSGEMM_STATUS_ENUM
} wsgemm_status;

/* The names and sentences above, such as "WSGEMM_INVALID_VALUE". For an unknown number
 * "WSGEMM_UNKNOWN" and "unknown status". Never NULL. */
WSGEMM_API const char *wsgemm_status_name(wsgemm_status status);
WSGEMM_API const char *wsgemm_status_text(wsgemm_status status);

/* Why the last failing call of this thread failed: the argument's name, its value and the least
 * legal one. Warnings (an ignored environment variable) are left here too. Never NULL; "" if
 * nothing went wrong. The text is valid until the thread's next call that fails. */
WSGEMM_API const char *wsgemm_last_error(void);

/* ---- Enumerations: the values of layout, op, uplo, diag and side are CBLAS's ----------------- */

typedef enum wsgemm_layout { WSGEMM_ROW_MAJOR = 101, WSGEMM_COL_MAJOR = 102 } wsgemm_layout;

typedef enum wsgemm_op {
  WSGEMM_NO_TRANS = 111,     /* op(X) = X             */
  WSGEMM_TRANS = 112,        /* op(X) = X^T           */
  WSGEMM_CONJ_TRANS = 113,   /* op(X) = conj(X)^T     */
  WSGEMM_CONJ_NO_TRANS = 114 /* op(X) = conj(X)       */
} wsgemm_op;

typedef enum wsgemm_uplo { WSGEMM_UPPER = 121, WSGEMM_LOWER = 122 } wsgemm_uplo;
typedef enum wsgemm_diag { WSGEMM_NON_UNIT = 131, WSGEMM_UNIT = 132 } wsgemm_diag;
typedef enum wsgemm_side { WSGEMM_LEFT = 141, WSGEMM_RIGHT = 142 } wsgemm_side;

/* Element types. A complex number is a pair (re, im) without padding: layout-compatible with C's
 * and C++'s complex types. */
typedef enum wsgemm_type {
  WSGEMM_F32 = 0, /* s */
  WSGEMM_F64 = 1, /* d */
  WSGEMM_C32 = 2, /* c: two floats  */
  WSGEMM_C64 = 3, /* z: two doubles */
  WSGEMM_F16 = 4, /* h: IEEE binary16, 1 + 5 + 10 bits  */
  WSGEMM_BF16 = 5 /* b: bfloat16, the upper half of a float: 1 + 8 + 7 bits */
} wsgemm_type;

/* The bits of a half-precision number, in the machine's byte order. */
typedef uint16_t wsgemm_f16;
typedef uint16_t wsgemm_bf16;

typedef struct wsgemm_cfloat {
  float re, im;
} wsgemm_cfloat;

typedef struct wsgemm_cdouble {
  double re, im;
} wsgemm_cdouble;

/* Numerics class. Within one class the bits of C depend on nothing but the arguments and the kernel
 * row.
 *
 *   DEFAULT   In every component |C - C^| <= gamma_{k+2} (|alpha| |A| |B| + |beta| |C|)
 *             + (2 k |alpha| + 4) t, where gamma_n = n u / (1 - n u), u = 2^-24, t = 2^-149 (F64,
 *             C64: 2^-53, 2^-1074), and for complex types, whose |z| is |re| + |im|, gamma_{2k+2}
 *             replaces gamma_{k+2}; where no intermediate sum overflows: a partial sum, alpha times
 *             the sum, beta C, or the last two together may exceed the range although C^ does not,
 *             and then C is Inf or NaN. None does where (|alpha| + 1) |A| |B| + |beta| |C| stays
 *             below half of the largest number. An infinite alpha is multiplied with the sum of
 *             each block of k: Inf where these have one sign, else NaN. Large F32 and C32 products
 *             (k >= 128) on GPUs of compute capability 9.0 meet this bound on tensor cores, by
 *             slices; a call for which the library's memory cannot be allocated fails
 *             (wsgemm_set_workspace).
 *             wsgemm_explain names the arithmetic of a call. Half precision: see wsgemm_hgemm.
 *   PEDANTIC  The same bound, by fused multiply-adds in the data's own type only; half
 *             precision is multiplied in FP32.
 *   TF32      F32 and C32 on GPUs of compute capability 9.0: elements of A and B may be rounded
 *             to 11 significant bits, subnormal ones to multiples of 2^-136. All else is as in
 *             DEFAULT.
 *
 * Derivations and tests: docs/numerics.md. */
typedef enum wsgemm_math {
  WSGEMM_MATH_INHERIT = 0, /* in a descriptor: what the handle says */
  WSGEMM_MATH_DEFAULT = 1,
  WSGEMM_MATH_PEDANTIC = 2,
  WSGEMM_MATH_TF32 = 3
} wsgemm_math;

/* Who works on which tile (docs/scheduling.md). The result's bits never depend on it. A worker is a
 * thread on the CPU, a block on a GPU. CLC and FOREACH are compiled and model-checked, never run on
 * hardware. */
typedef enum wsgemm_policy {
  WSGEMM_POLICY_AUTO = 0,         /* CLC on GPUs that have it, else STEAL */
  WSGEMM_POLICY_FIXED_WORK = 1,   /* one shared ticket: whoever is free takes the next item */
  WSGEMM_POLICY_FIXED_BLOCKS = 2, /* every worker has an equal share and keeps to it */
  WSGEMM_POLICY_STEAL = 3,        /* CPU: own share, then the others'; GPU: ticket queue */
  WSGEMM_POLICY_CLC = 4,          /* Cluster Launch Control (cc >= 10.0); elsewhere as STEAL */
  WSGEMM_POLICY_FOREACH = 5       /* the same by cuda::for_each_canceled_block */
} wsgemm_policy;

/* X(enumerator, name): their names in WSGEMM_POLICY, in texts and on the command line. */
#define WSGEMM_POLICY_MAP(X)      \
  X(AUTO, "auto")                 \
  X(FIXED_WORK, "fixed_work")     \
  X(FIXED_BLOCKS, "fixed_blocks") \
  X(STEAL, "steal")               \
  X(CLC, "clc")                   \
  X(FOREACH, "foreach")

/* ---- Threads, fork, signals ---------------------------------------------------------------------
 *
 * The library creates threads on the first call that can use some, and keeps them. They compute as
 * the calling thread would: bits and floating-point flags of a call are those of a call with one
 * thread. Inside a parallel region of OpenMP a call uses one thread. Workers block all signals but
 * those of faults; a handler must not jump out of a call that uses several threads.
 *
 * After fork() parent and child both go on; only the parent can use GPUs. A pthread_cancel() takes
 * effect after the call (asynchronous cancellation is not supported). A call on host memory needs
 * 32 KiB of the calling thread's stack; tuning, and bgemm on a CPU with AMX, 64 KiB. The details,
 * and what constructors of libraries may do: docs/behaviour.md. */

/* ---- Handle ---------------------------------------------------------------------------------- */

typedef struct wsgemm_handle wsgemm_handle;

/* Makes a handle with the defaults (see the setters). It creates no thread and allocates only
 * itself. Returns SUCCESS, INVALID_POINTER (out is NULL), ALLOC_FAILED. */
WSGEMM_API wsgemm_status wsgemm_create(wsgemm_handle **out);

/* Frees a handle. No call may still be using it. NULL is allowed and does nothing. Returns SUCCESS,
 * INVALID_HANDLE. */
WSGEMM_API wsgemm_status wsgemm_destroy(wsgemm_handle *h);

/* Setters and getters. Setting is atomic per value and takes effect for calls that begin
 * afterwards. Every setter returns SUCCESS, INVALID_HANDLE, or INVALID_VALUE (then nothing
 * changed); every getter SUCCESS, INVALID_HANDLE or INVALID_POINTER. */

/* Most CPU threads that a call may use, the caller's included; 0 (default): as many as
 * wsgemm_default_num_threads says. */
WSGEMM_API wsgemm_status wsgemm_set_num_threads(wsgemm_handle *h, int n_threads);
WSGEMM_API wsgemm_status wsgemm_get_num_threads(wsgemm_handle *h, int *n_threads);

/* Limit for calls made by this thread, on top of the handle's; 0: none. Returns the old limit
 * (negative n: only asks). */
WSGEMM_API int wsgemm_set_num_threads_local(int n_threads);

/* min(processors that the calling thread may run on, cgroup cpu quota rounded up,
 * WSGEMM_NUM_THREADS), at least 1. The first is read on each call, the others once. */
WSGEMM_API int wsgemm_default_num_threads(void);

WSGEMM_API wsgemm_status wsgemm_set_policy(wsgemm_handle *h, wsgemm_policy policy);
WSGEMM_API wsgemm_status wsgemm_get_policy(wsgemm_handle *h, wsgemm_policy *policy);

/* Neighbouring tiles of one row of tiles that a work item covers, sharing one load of A: 1..64, or
 * 0 (default): chosen per call. */
WSGEMM_API wsgemm_status wsgemm_set_coarse_factor(wsgemm_handle *h, int coarse_factor);
WSGEMM_API wsgemm_status wsgemm_get_coarse_factor(wsgemm_handle *h, int *coarse_factor);

/* GPU, policy STEAL: work items after which a block leaves, so that a kernel of higher priority can
 * take its place: 0 .. 2^20; 0 (default): a block works until nothing is left. Ignored on the CPU
 * and by the other policies. */
WSGEMM_API wsgemm_status wsgemm_set_quantum(wsgemm_handle *h, int quantum);
WSGEMM_API wsgemm_status wsgemm_get_quantum(wsgemm_handle *h, int *quantum);

WSGEMM_API wsgemm_status wsgemm_set_math(wsgemm_handle *h, wsgemm_math math); /* any but INHERIT */
WSGEMM_API wsgemm_status wsgemm_get_math(wsgemm_handle *h, wsgemm_math *math);

/* Forces a kernel row by its full name ("sgemm_avx512_32x12", "sgemm_simt_128x64x16_c2"), for the
 * element type that the name begins with and the row's backend; NULL or "": back to automatic for
 * all. INVALID_VALUE: no such row; NOT_SUPPORTED: this machine cannot run it. */
WSGEMM_API wsgemm_status wsgemm_set_kernel(wsgemm_handle *h, const char *name);

/* CUDA stream (a cudaStream_t) of calls on device memory; NULL: the default stream. Calls on host
 * memory keep it and do not use it. */
WSGEMM_API wsgemm_status wsgemm_set_stream(wsgemm_handle *h, void *stream);
WSGEMM_API wsgemm_status wsgemm_get_stream(wsgemm_handle *h, void **stream);

/* Device memory for the calls of this handle, `bytes` from `workspace` on, aligned to 256 bytes, in
 * place of the library's own; NULL and 0: back to the library's own. The caller keeps it alive, and
 * must not let two calls share it that may run at the same time (on two streams, in two graphs).
 *
 * It holds the partial sums of split-k, the slices of F32 and C32 products on compute capability
 * 9.0, align copies of half-precision operands that TMA cannot read (pointer, ld or strides not
 * multiples of 16 bytes), a copy of a residual that is C itself, of F32 or F64, and copies of large
 * F32 operands for products by multiply-adds. Where there is no room for the latter, the operands
 * are read where they are, with the same bits.
 * wsgemm_get_workspace_size reports how much a call would use. With less memory a product is
 * computed one chunk of C after the other, slower and with the same bits. If not even one chunk
 * (256 rows and columns) fits, F32 and C32 products are multiplied as by PEDANTIC, and half
 * precision that needs align copies by kernels that need none: within the same bound, with other
 * bits. If the library's own memory for operands cannot be allocated, calls that need it return
 * ALLOC_FAILED and report how much they need. A captured call without a workspace adds a memory
 * node to its graph, with the driver's rules for such graphs. How much the library has, and which
 * streams and graphs wait for each other because of it: docs/behaviour.md.
 *
 * INVALID_POINTER: not device memory; INVALID_VALUE: badly aligned; NO_DEVICE: there is no GPU
 * driver. */
WSGEMM_API wsgemm_status wsgemm_set_workspace(wsgemm_handle *h, void *workspace, size_t bytes);

/* How many rows of A and columns of B have needed more than two slices (in TF32: one) in the F32
 * and C32 products on a device so far: those with NaN or infinity, or with elements too far below
 * their largest (wsgemm_math). The count starts with the first product in the context that
 * wsgemm_gemm would use. The query waits for its default stream, so work on other streams must have
 * ended to be counted. device: the CUDA driver's ordinal; *count is 0 if there is no such device.
 * count: host memory. INVALID_POINTER: count is NULL; INVALID_VALUE: device < 0; NO_DEVICE: after
 * fork(); DEVICE_ERROR: the device does not answer. */
WSGEMM_API wsgemm_status wsgemm_get_fallback_count(wsgemm_handle *h, int device, int64_t *count);

/* Check mode also refuses a C that overlaps A or B, and parts of an epilogue that overlap what they
 * must not (INVALID_VALUE). Default 0, or WSGEMM_CHECK=1 in the environment. */
WSGEMM_API wsgemm_status wsgemm_set_check(wsgemm_handle *h, int enabled);
WSGEMM_API wsgemm_status wsgemm_get_check(wsgemm_handle *h, int *enabled);

/* Invariant mode: an element C(i, j) depends on nothing but row i of op(A), column j of op(B),
 * C(i, j) itself, alpha, beta, k, the types and the kernel row: not on m, n, i, j, the batch, lds,
 * alignment, ops or layout. So a row of a product has the same bits alone (m = 1), in a matrix of
 * any height, and in a batch. (In complex types only the sign of a zero may depend on the layout.)
 * The mode costs F32 and C32 the tensor cores, and bfloat16 AMX on CPUs that have it; it costs time
 * where m = 1 or n = 1, and on a GPU where C is small and k long, since there is no split-k.
 * Default 0, or WSGEMM_INVARIANT=1 in the environment. */
WSGEMM_API wsgemm_status wsgemm_set_invariant(wsgemm_handle *h, int enabled);
WSGEMM_API wsgemm_status wsgemm_get_invariant(wsgemm_handle *h, int *enabled);

/* ---- Host matrices on GPUs: see GEMM below for which calls, docs/offload.md for how ------------
 *
 * A wsgemm_gemm, or typed gemm, of host matrices runs on these GPUs (the CUDA driver's ordinals),
 * which share its work: the operands are copied to them, and C back. devices = NULL with n_devices
 * 0 (default): none; with -1: all that there are. What of C a GPU cannot compute (there is none, it
 * is full or fails) others do, or the CPU, with one warning in wsgemm_last_error. INVALID_VALUE:
 * n_devices beyond -1 .. 64, an ordinal beyond 0 .. 63, or twice the same. INVALID_POINTER: devices
 * is NULL. WSGEMM_OFFLOAD in the environment, "off", "auto", "all", or ordinals such as "0,1": the
 * devices of new handles, and (auto: AUTO) when. */
WSGEMM_API wsgemm_status wsgemm_set_devices(wsgemm_handle *h, const int *devices, int n_devices);
/* *n_devices: how many, -1: all that there are; of them, the first `room` into devices. */
WSGEMM_API wsgemm_status wsgemm_get_devices(wsgemm_handle *h, int *devices, int room, int *n_devices);

/* When: ALWAYS (default): all products but those of fewer than 2^24 multiply-adds; AUTO: where the
 * model says that the GPUs are faster than the CPU by a quarter. */
typedef enum wsgemm_offload { WSGEMM_OFFLOAD_ALWAYS = 0, WSGEMM_OFFLOAD_AUTO = 1 } wsgemm_offload;
WSGEMM_API wsgemm_status wsgemm_set_offload(wsgemm_handle *h, wsgemm_offload when);
WSGEMM_API wsgemm_status wsgemm_get_offload(wsgemm_handle *h, wsgemm_offload *when);

/* The most pinned memory that the library keeps for copies from and to pageable matrices, of all
 * GPUs together; default 2^30 bytes. With too little of it for a call (16 MiB a GPU) calls on
 * pageable matrices stay on the CPU. Returns SUCCESS. */
WSGEMM_API wsgemm_status wsgemm_set_pinned_limit(size_t bytes);

/* A function called now and then, on the calling thread, during calls of host matrices on GPUs,
 * with the share of C that is done, 0 .. 1; NULL (default): none. It must not call wsgemm. It
 * returns 0, or stops the call: what is on its way comes to its end, and the call returns
 * STOPPED, or SUCCESS if that was all there was. */
typedef int (*wsgemm_progress)(void *user, double done);
WSGEMM_API wsgemm_status wsgemm_set_progress(wsgemm_handle *h, wsgemm_progress progress, void *user);

/* A function called with one line of text for each warning and each failing call; NULL (default):
 * none. It runs on the calling thread and must not call wsgemm. */
typedef void (*wsgemm_logger)(void *user, wsgemm_status status, const char *message);
WSGEMM_API wsgemm_status wsgemm_set_logger(wsgemm_handle *h, wsgemm_logger logger, void *user);

/* ---- GEMM: C = alpha op(A) op(B) + beta C -------------------------------------------------------
 *
 * op(A) is m x k, op(B) is k x n, C is m x n. Column-major: element (i, j) of X is x[i + j * ldx],
 * so lda >= max(1, m) if A is not transposed, else max(1, k); ldb >= max(1, k), else max(1, n);
 * ldc >= max(1, m). Row-major: element (i, j) is x[i * ldx + j], and the least lds are k / m, n / k
 * and n. Any element-aligned pointer will do.
 *
 * beta = 0: C is written without being read. alpha = 0 or k = 0: C = beta C; A and B are not read
 * and may be NULL. m = 0 or n = 0: nothing happens. A complex alpha or beta whose imaginary part is
 * 0 multiplies as a real number. C must not overlap A or B (undefined; refused in check mode).
 *
 * The pointers decide which backend works. Host memory: the CPU, or, if the handle has devices
 * (wsgemm_set_devices), GPUs: products without epilogue that are no batch, of which A, B and C fit
 * into device memory, with the bits that the product has in device memory. Either way the product
 * is done when the call returns; small products neither allocate nor lock nor wake a thread.
 * Device memory (all matrices on one device; managed memory goes where the others are): that GPU,
 * stream-ordered on the handle's stream and in its CUDA context (of the NULL stream and of green
 * contexts: the thread's if that is on this GPU, else the GPU's primary one). The call returns at
 * once and can be captured into a CUDA graph, to which it may add memory (wsgemm_set_workspace).
 * Two graphs captured from one handle may run at the same time; two instances of the same captured
 * graph may not. alpha and beta are always host values.
 *
 * Returns SUCCESS; INVALID_HANDLE; INVALID_VALUE (enum, negative size, small ld, extent beyond
 * int64_t); INVALID_POINTER (NULL, or host and device memory mixed); for device memory also
 * NOT_SUPPORTED, ARCH_MISMATCH, INSUFFICIENT_DRIVER, ALLOC_FAILED (wsgemm_set_workspace),
 * DEVICE_ERROR, and NO_DEVICE (also in a process forked from one that used CUDA: it can work on
 * host memory only). All of them but SUCCESS and DEVICE_ERROR leave C as it was. DEVICE_ERROR: the
 * driver refused a launch (for lack of memory, too) after another one that writes C, or the GPU
 * failed; some elements of C are old and others new, and it is not known which. A call gets all of
 * its memory before that, so ALLOC_FAILED leaves C as it was. Checks run in this order: handle,
 * enums, sizes, lds, quick return, pointers. */

WSGEMM_API wsgemm_status wsgemm_sgemm(wsgemm_handle *h, wsgemm_layout layout, wsgemm_op transa, wsgemm_op transb, int64_t m,
                                      int64_t n, int64_t k, float alpha, const float *a, int64_t lda, const float *b, int64_t ldb,
                                      float beta, float *c, int64_t ldc);

WSGEMM_API wsgemm_status wsgemm_dgemm(wsgemm_handle *h, wsgemm_layout layout, wsgemm_op transa, wsgemm_op transb, int64_t m,
                                      int64_t n, int64_t k, double alpha, const double *a, int64_t lda, const double *b,
                                      int64_t ldb, double beta, double *c, int64_t ldc);

/* Complex matrices are of any complex type of two floats (doubles): C's, C++'s, wsgemm_cfloat, or
 * plain pairs. */
WSGEMM_API wsgemm_status wsgemm_cgemm(wsgemm_handle *h, wsgemm_layout layout, wsgemm_op transa, wsgemm_op transb, int64_t m,
                                      int64_t n, int64_t k, wsgemm_cfloat alpha, const void *a, int64_t lda, const void *b,
                                      int64_t ldb, wsgemm_cfloat beta, void *c, int64_t ldc);

WSGEMM_API wsgemm_status wsgemm_zgemm(wsgemm_handle *h, wsgemm_layout layout, wsgemm_op transa, wsgemm_op transb, int64_t m,
                                      int64_t n, int64_t k, wsgemm_cdouble alpha, const void *a, int64_t lda, const void *b,
                                      int64_t ldb, wsgemm_cdouble beta, void *c, int64_t ldc);

/* Half precision. Every element of A, B and C becomes an FP32 number, exactly; products, sums, and
 * alpha * sum + beta * c are FP32, and that is rounded once, to nearest even, to C's type: beyond
 * its range to Inf. Subnormal numbers are kept. alpha and beta are floats. In every element
 *
 *   |C - C^| <= gamma_{k+2} (|alpha| |A| |B| + |beta| |C|) + half an ulp of C's type
 *               + (2 k |alpha| + 4) 2^-149,     gamma_n = n u / (1 - n u), u = 2^-24,
 *
 * and sums may overflow as wsgemm_math says. On GPUs the sums are those of the tensor cores: where
 * A or B has subnormal elements, another k 2^-38 |alpha| max|x| (bfloat16: k 2^-150) is allowed, x
 * being the elements that meet a subnormal one; on compute capability 8.x an eighth of the bound is
 * added at worst, by the published model. WSGEMM_MATH_PEDANTIC keeps the bound as above, without
 * tensor cores (docs/numerics.md).
 *
 * On CPUs with AMX, bgemm uses it, except for tiles that AMX would flush or overflow. The library
 * asks Linux for AMX on its first call; from then on signal stacks of the process must have
 * sysconf(_SC_MINSIGSTKSZ) bytes or more. With WSGEMM_ISA=avx512 in the environment it does not ask
 * (docs/behaviour.md).
 *
 * The descriptor form also takes a C of the other half-precision type, or of WSGEMM_F32. */
WSGEMM_API wsgemm_status wsgemm_hgemm(wsgemm_handle *h, wsgemm_layout layout, wsgemm_op transa, wsgemm_op transb, int64_t m,
                                      int64_t n, int64_t k, float alpha, const wsgemm_f16 *a, int64_t lda, const wsgemm_f16 *b,
                                      int64_t ldb, float beta, wsgemm_f16 *c, int64_t ldc);

WSGEMM_API wsgemm_status wsgemm_bgemm(wsgemm_handle *h, wsgemm_layout layout, wsgemm_op transa, wsgemm_op transb, int64_t m,
                                      int64_t n, int64_t k, float alpha, const wsgemm_bf16 *a, int64_t lda, const wsgemm_bf16 *b,
                                      int64_t ldb, float beta, wsgemm_bf16 *c, int64_t ldc);

/* A scalar, of type_scalar: by value, or where it lies in device memory. */
typedef union wsgemm_scalar {
  float s;
  double d;
  wsgemm_cfloat c;
  wsgemm_cdouble z;
  const void *device;
} wsgemm_scalar;

/* SCALAR_DEVICE: alpha.device and beta.device are read when the stream comes to the product,
 * whose matrices are on the same GPU: one launch, of a row for groups (wsgemm_gemm_grouped says
 * for what GPUs and modes, and which bits), large products of floats and of half precision
 * slower than by value. Without column sums and packed operands. In other descriptors scalars
 * are by value. */
typedef enum wsgemm_scalar_mode { WSGEMM_SCALAR_VALUE = 0, WSGEMM_SCALAR_DEVICE = 1 } wsgemm_scalar_mode;

/* The epilogue: what may be done to each element of C on its way to memory. For every element
 * (i, j), of row i and column j of C as the caller sees it, whatever the layout,
 *
 *   z = alpha sum + beta C(i, j) + bias(i or j)
 *   C(i, j) = out_scale act(z) + residual(i, j)        rounded once, to C's type
 *   column_sums(j) = sum over i of C(i, j)             of what was stored
 *
 * each part of which may be missing. Every step is computed in FP32, for a C of F64 in double; the
 * bits of C do not depend on threads, policy or tiles. act is within an ulp of FP32, for F64 within
 * 8 |z| 2^-53, in half-precision products on GPUs within 8 |z| 2^-24. act is 0 at -Inf; NaN
 * stays NaN, in RELU too. The order in which a column is summed follows from m alone: the error is
 * at most gamma_{m - 1} times the sum of |C(i, j)|.
 *
 * alpha = 0 or k = 0: z = beta C + bias, and the other steps follow. beta = 0 never reads C. m = 0
 * or n = 0: nothing happens, and column_sums is left as it is. Real types of C only, else
 * NOT_SUPPORTED. */
typedef enum wsgemm_epilogue {
  WSGEMM_EPILOGUE_NONE = 0,      /* act(z) = z; with no other part: no epilogue at all */
  WSGEMM_EPILOGUE_RELU = 1,      /* max(z, 0) */
  WSGEMM_EPILOGUE_GELU_TANH = 2, /* z (1 + tanh(sqrt(2 / pi) (z + 0.044715 z^3))) / 2 */
  WSGEMM_EPILOGUE_GELU_ERF = 3,  /* z (1 + erf(z / sqrt(2))) / 2 */
  WSGEMM_EPILOGUE_SILU = 4       /* z / (1 + exp(-z)) */
} wsgemm_epilogue;

typedef enum wsgemm_bias {
  WSGEMM_BIAS_PER_ROW = 0,   /* bias(i) to every element of row i: m elements */
  WSGEMM_BIAS_PER_COLUMN = 1 /* bias(j) to every element of column j: n elements */
} wsgemm_bias;

typedef struct wsgemm_packed wsgemm_packed;

/* The descriptor form. Set it to WSGEMM_GEMM_DESC_INIT, then fill in what differs. The typed calls
 * above are this with batch_count = 1. */
typedef struct wsgemm_gemm_desc {
  size_t struct_bytes; /* sizeof(wsgemm_gemm_desc), so that the struct may grow */
  wsgemm_layout layout;
  wsgemm_op transa, transb;
  /* All four equal; or type_a = type_b one of F16, BF16, with type_c one of F16, BF16, F32 and
   * type_scalar = F32. Else NOT_SUPPORTED. */
  wsgemm_type type_a, type_b, type_c, type_scalar;
  wsgemm_math math;
  wsgemm_scalar_mode scalar_mode;
  wsgemm_epilogue epilogue; /* act */
  int64_t m, n, k;
  wsgemm_scalar alpha, beta;
  const void *a;
  int64_t lda;
  const void *b;
  int64_t ldb;
  void *c;
  int64_t ldc;
  /* Strided batch: product i works on a + i * stride_a, b + i * stride_b, c + i * stride_c. A or B
   * may be shared (stride 0), strides may be negative; the C of different products must not
   * overlap. batch_count = 0 does nothing. */
  int64_t batch_count, stride_a, stride_b, stride_c;
  /* The rest of the epilogue; a struct that ends here (struct_bytes = WSGEMM_GEMM_DESC_BASE_BYTES)
   * has none of it. Strides are from product to product of a batch, with any value, except that the
   * vectors of column_sums must not overlap; stride 0 shares one bias or residual. */
  wsgemm_bias bias_per;
  wsgemm_type type_bias; /* of the bias: C's type, or F32 where C is half precision */
  const void *bias;      /* contiguous; NULL: none */
  int64_t stride_bias;
  /* m x n, of C's type and layout, NULL: none. Either C itself (same pointer, ld and stride: its
   * elements before the call), or no overlap with C. */
  const void *residual;
  int64_t ld_residual, stride_residual;
  double out_scale;  /* rounded to FP32 unless C is of F64 */
  void *column_sums; /* n contiguous floats (F64: doubles) that overlap nothing; NULL: none */
  int64_t stride_column_sums;
  const wsgemm_packed *packed_a, *packed_b; /* wsgemm_prepack, of just this A, or B; NULL: none */
} wsgemm_gemm_desc;

/* struct_bytes of the first version of the struct: all before the members of the epilogue. */
#define WSGEMM_GEMM_DESC_BASE_BYTES (offsetof(wsgemm_gemm_desc, bias_per))

#define WSGEMM_GEMM_DESC_INIT                                                                                                  \
  {                                                                                                                            \
    sizeof(wsgemm_gemm_desc), WSGEMM_COL_MAJOR, WSGEMM_NO_TRANS, WSGEMM_NO_TRANS, WSGEMM_F32, WSGEMM_F32, WSGEMM_F32,          \
        WSGEMM_F32, WSGEMM_MATH_INHERIT, WSGEMM_SCALAR_VALUE, WSGEMM_EPILOGUE_NONE, 0, 0, 0, {0}, {0}, 0, 0, 0, 0, 0, 0, 1, 0, \
        0, 0, WSGEMM_BIAS_PER_ROW, WSGEMM_F32, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0                                                    \
  }

/* Returns what the typed calls do, and NOT_SUPPORTED. INVALID_POINTER: desc is NULL; INVALID_VALUE:
 * struct_bytes is not that of this or the first version, batch_count < 0, or packed_a or packed_b
 * was made of another operand. ALLOC_FAILED: no memory for the copy of a residual that is C itself,
 * of F32 or F64 (on a GPU the copy is in the workspace). */
WSGEMM_API wsgemm_status wsgemm_gemm(wsgemm_handle *h, const wsgemm_gemm_desc *desc);

/* Into *bytes: the workspace that this call would use, 0 if none (see wsgemm_set_workspace). The
 * pointers in desc determine the device, or if all are NULL the calling thread's CUDA context, if
 * it has one; nothing is read through them. Returns what wsgemm_gemm does for a bad desc;
 * INVALID_POINTER: bytes is NULL. */
WSGEMM_API wsgemm_status wsgemm_get_workspace_size(wsgemm_handle *h, const wsgemm_gemm_desc *desc, size_t *bytes);

/* ---- Groups: products of different sizes, or in different places, in one call -------------------
 *
 *   C[g] = alpha op(A[g]) op(B[g]) + beta C[g]        g = 0 .. group_count - 1
 *
 * Types, ops, layout, alpha, beta and the kind of epilogue are those of all groups. Sizes: m, n and
 * k, or of each group its own by an array. Places: a + g * stride_a, or a_array[g]; likewise b and
 * c.
 *
 * Ragged: or the groups lie one behind the other along one dimension, and `offsets` says where each
 * ends, the first one beginning at 0. Then m (n, k) is how many there are of all groups together.
 *   RAGGED_M   rows offsets[g - 1] .. offsets[g] - 1 of op(A) and C, with a B for each group: the
 *              experts of a layer, each with its tokens
 *   RAGGED_N   the same columns of op(B) and C, with an A for each group
 *   RAGGED_K   these columns of op(A) and rows of op(B), with a C for each group: the gradient of
 *              the experts' weights
 * What lies behind the last offset is neither read nor written. No offset needs to be aligned, and
 * groups may be empty: of k = 0 C[g] = beta C[g], zeros for beta = 0.
 *
 * Of many matrices in places of fixed size of which only some rows are in use, m_array is how many
 * (beside strides, without offsets); of pointers to matrices of one size, a_array, b_array and
 * c_array alone are given. Each element of C has the bits that the group's product has alone, by
 * wsgemm_gemm and the same kernel row, whatever the other groups are. */
typedef enum wsgemm_ragged {
  WSGEMM_RAGGED_NONE = 0,
  WSGEMM_RAGGED_M = 1,
  WSGEMM_RAGGED_N = 2,
  WSGEMM_RAGGED_K = 3
} wsgemm_ragged;

/* Set it to WSGEMM_GROUPED_DESC_INIT, then fill in what differs. What is not explained here is as
 * in wsgemm_gemm_desc. */
typedef struct wsgemm_grouped_desc {
  size_t struct_bytes; /* sizeof(wsgemm_grouped_desc) */
  wsgemm_layout layout;
  wsgemm_op transa, transb;
  wsgemm_type type_a, type_b, type_c, type_scalar;
  wsgemm_math math;
  wsgemm_ragged ragged;
  int index_bytes; /* 4 or 8: offsets and arrays of sizes are int32_t, or int64_t */
  int64_t group_count;
  const void *offsets; /* group_count ends, which do not decrease; NULL unless ragged */
  int64_t m, n, k;
  /* By group; NULL: m, n, k. Not of the ragged dimension. */
  const void *m_array, *n_array, *k_array;
  wsgemm_scalar alpha, beta;
  /* Strides are from group to group, in elements, of any value; not looked at beside an array of
   * pointers, nor of what is ragged, which has no such array either. Lds by group: NULL: lda, ldb,
   * ldc. The C of different groups must not overlap. */
  const void *a;
  int64_t lda, stride_a;
  const void *b;
  int64_t ldb, stride_b;
  void *c;
  int64_t ldc, stride_c;
  const void *const *a_array, *const *b_array;
  void *const *c_array;
  const void *lda_array, *ldb_array, *ldc_array;
  /* The epilogue, without column sums. Of each group: bias + g * stride_bias, residual + g *
   * stride_residual. Along ragged rows or columns of C the bias is as long as they are together,
   * and the residual lies as C does. */
  wsgemm_epilogue epilogue;
  wsgemm_bias bias_per;
  wsgemm_type type_bias;
  const void *bias;
  int64_t stride_bias;
  const void *residual;
  int64_t ld_residual, stride_residual;
  double out_scale;
} wsgemm_grouped_desc;

#define WSGEMM_GROUPED_DESC_INIT                                                                                                \
  {                                                                                                                             \
    sizeof(wsgemm_grouped_desc), WSGEMM_COL_MAJOR, WSGEMM_NO_TRANS, WSGEMM_NO_TRANS, WSGEMM_F32, WSGEMM_F32, WSGEMM_F32,        \
        WSGEMM_F32, WSGEMM_MATH_INHERIT, WSGEMM_RAGGED_NONE, 8, 0, 0, 0, 0, 0, 0, 0, 0, {0}, {0}, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, \
        0, 0, 0, 0, 0, WSGEMM_EPILOGUE_NONE, WSGEMM_BIAS_PER_ROW, WSGEMM_F32, 0, 0, 0, 0, 0, 1                                  \
  }

/* Host memory: all groups and their tiles are one queue of work for the threads; the call returns
 * when all is done. Device memory, with offsets and arrays in host memory: each group is launched
 * as wsgemm_gemm would, or up to 256 ragged ones at once, where they are small or of half
 * precision; groups of one size at equal distances are a batch.
 *
 * Offsets and arrays in device memory, all of them: they are read by the kernel, when the stream
 * comes to it: one launch, the host waits for nothing, and a graph may be replayed with other
 * offsets, sizes and pointers. m, n and k are then the most that any group has, or of what is
 * ragged all have together; what they exceed the groups by costs blocks that find nothing to do. A
 * group is skipped that does not lie within them, whose end lies before its beginning, or whose
 * leading dimension is too short; behind an end that lies before its beginning other groups may be
 * left out in part. Nothing is known of what pointers in device memory point to: it must be memory
 * that the device can reach, of elements of the type (complex ones: aligned to their parts).
 *
 * This version has that on compute capability 9.0, for all types, ops and layouts, outside of
 * invariant mode and, but for small matrices at pointers, without PEDANTIC for complex floats
 * and half precision, with m, n, k and group_count below 2^30 and tiles for fewer than 2^31
 * blocks; all else returns NOT_SUPPORTED. All groups are summed by one kernel row, which is
 * chosen by m, n, k and group_count, or by wsgemm_set_kernel: an element has the bits that the
 * group's product has alone by the row of this name, but of tf32 rows with k < 24 (tf32w2 rows:
 * 40, of complex numbers 20) those of multiply-adds in the order of k, and of complex C = beta C
 * with another rounding where beta has an imaginary part. Two forms of F16 and BF16, C of the
 * same type or of F32, have a faster kernel, in invariant mode, too, with the bits that each
 * group's product has alone in that mode: RAGGED_M, row-major with A not transposed (RAGGED_N,
 * column-major with B not transposed), and RAGGED_K, row-major with A transposed and B not
 * (column-major, B is transposed and A not), with offsets alone; at most 1024 groups; lds and
 * strides of A and B, and n (m), ldc, stride_c and those of a residual unless they are of F32,
 * multiples of 8, and pointers of 16 bytes. With offsets in host memory outside of invariant
 * mode, other rows may be chosen for some groups.
 *
 * Returns what wsgemm_gemm does; INVALID_POINTER also: desc or offsets is NULL, or arrays are in
 * device memory and matrices are not, or on another device; INVALID_VALUE also: group_count < 0,
 * index_bytes, an offset that decreases or exceeds the total, an array that is given for what is
 * ragged, or a bad size of any group: last_error names the group. NOT_SUPPORTED also: some
 * arrays are in device memory, others in host memory. All groups are checked before the first
 * element of C is written, but those whose arrays are in device memory. */
WSGEMM_API wsgemm_status wsgemm_gemm_grouped(wsgemm_handle *h, const wsgemm_grouped_desc *desc);

/* ---- Level 3: structured matrices ---------------------------------------------------------------
 *
 * The routines of the BLAS, for s, d, c, z, with its names. All that is said of GEMM holds, on
 * layouts, scalars, host and device memory, streams, numerics classes, errors. A matrix of which
 * only one triangle counts is described by uplo, as the caller sees it in its layout; the other
 * triangle is neither read nor written. In column-major terms, X being n x n and T triangular:
 *
 *   symm, hemm    C = alpha A B + beta C (LEFT, A m x m), or alpha B A + beta C (RIGHT, A n x n);
 *                 A symmetric (Hermitian: the imaginary parts of its diagonal count as 0), of which
 *                 the triangle uplo is read; B and C m x n
 *   syrk, herk    C = alpha op(A) op(A)^T + beta C (herk: ^H), op(A) n x k: A is n x k (NO_TRANS)
 *                 or k x n (TRANS; herk CONJ_TRANS); C n x n, of which the triangle uplo is written
 *   syr2k, her2k  C = alpha op(A) op(B)^T + alpha op(B) op(A)^T + beta C (her2k: ^H, and the second
 *                 product by conj(alpha)); shapes as in syrk
 *   gemmtr        C = alpha op(A) op(B) + beta C, of which the triangle uplo is written; C n x n
 *   trmm          B = alpha op(A) B (LEFT, A m x m) or alpha B op(A) (RIGHT, A n x n); B m x n; A
 *                 triangular, with an implied diagonal of ones if diag is UNIT
 *   trsm          the X that solves op(A) X = alpha B (LEFT), or X op(A) = alpha B (RIGHT), into B.
 *                 A zero on the diagonal gives Inf and NaN, as dividing by it does
 *
 * herk and her2k leave imaginary parts of 0 on C's diagonal, which they take for 0 before, unless
 * nothing happens (below). trans of syrk, syr2k: NO_TRANS or TRANS (real types also CONJ_TRANS,
 * which is TRANS); of herk, her2k: NO_TRANS or CONJ_TRANS; op of gemmtr, trmm, trsm: any of the
 * four. alpha = 0 or k = 0: C = beta C within the triangle (trmm and trsm, alpha = 0: B = 0), A
 * and B are not read; if beta = 1, nothing happens, and as in the reference BLAS no pointer is
 * looked at, nor is the diagonal of a Hermitian C.
 *
 * Error: the bound of GEMM, with the structured matrices filled in (syr2k, her2k: k counts twice);
 * trsm: |alpha B - op(A) X| <= 8 gamma_{k+2} |op(A)| |X| in every component, k being A's size, for
 * triangles of any scaling, where nothing over- or underflows. */

WSGEMM_API wsgemm_status wsgemm_ssymm(wsgemm_handle *h, wsgemm_layout layout, wsgemm_side side, wsgemm_uplo uplo, int64_t m,
                                      int64_t n, float alpha, const float *a, int64_t lda, const float *b, int64_t ldb,
                                      float beta, float *c, int64_t ldc);
WSGEMM_API wsgemm_status wsgemm_dsymm(wsgemm_handle *h, wsgemm_layout layout, wsgemm_side side, wsgemm_uplo uplo, int64_t m,
                                      int64_t n, double alpha, const double *a, int64_t lda, const double *b, int64_t ldb,
                                      double beta, double *c, int64_t ldc);
WSGEMM_API wsgemm_status wsgemm_csymm(wsgemm_handle *h, wsgemm_layout layout, wsgemm_side side, wsgemm_uplo uplo, int64_t m,
                                      int64_t n, wsgemm_cfloat alpha, const void *a, int64_t lda, const void *b, int64_t ldb,
                                      wsgemm_cfloat beta, void *c, int64_t ldc);
WSGEMM_API wsgemm_status wsgemm_zsymm(wsgemm_handle *h, wsgemm_layout layout, wsgemm_side side, wsgemm_uplo uplo, int64_t m,
                                      int64_t n, wsgemm_cdouble alpha, const void *a, int64_t lda, const void *b, int64_t ldb,
                                      wsgemm_cdouble beta, void *c, int64_t ldc);
WSGEMM_API wsgemm_status wsgemm_chemm(wsgemm_handle *h, wsgemm_layout layout, wsgemm_side side, wsgemm_uplo uplo, int64_t m,
                                      int64_t n, wsgemm_cfloat alpha, const void *a, int64_t lda, const void *b, int64_t ldb,
                                      wsgemm_cfloat beta, void *c, int64_t ldc);
WSGEMM_API wsgemm_status wsgemm_zhemm(wsgemm_handle *h, wsgemm_layout layout, wsgemm_side side, wsgemm_uplo uplo, int64_t m,
                                      int64_t n, wsgemm_cdouble alpha, const void *a, int64_t lda, const void *b, int64_t ldb,
                                      wsgemm_cdouble beta, void *c, int64_t ldc);
WSGEMM_API wsgemm_status wsgemm_ssyrk(wsgemm_handle *h, wsgemm_layout layout, wsgemm_uplo uplo, wsgemm_op trans, int64_t n,
                                      int64_t k, float alpha, const float *a, int64_t lda, float beta, float *c, int64_t ldc);
WSGEMM_API wsgemm_status wsgemm_dsyrk(wsgemm_handle *h, wsgemm_layout layout, wsgemm_uplo uplo, wsgemm_op trans, int64_t n,
                                      int64_t k, double alpha, const double *a, int64_t lda, double beta, double *c, int64_t ldc);
WSGEMM_API wsgemm_status wsgemm_csyrk(wsgemm_handle *h, wsgemm_layout layout, wsgemm_uplo uplo, wsgemm_op trans, int64_t n,
                                      int64_t k, wsgemm_cfloat alpha, const void *a, int64_t lda, wsgemm_cfloat beta, void *c,
                                      int64_t ldc);
WSGEMM_API wsgemm_status wsgemm_zsyrk(wsgemm_handle *h, wsgemm_layout layout, wsgemm_uplo uplo, wsgemm_op trans, int64_t n,
                                      int64_t k, wsgemm_cdouble alpha, const void *a, int64_t lda, wsgemm_cdouble beta, void *c,
                                      int64_t ldc);
WSGEMM_API wsgemm_status wsgemm_cherk(wsgemm_handle *h, wsgemm_layout layout, wsgemm_uplo uplo, wsgemm_op trans, int64_t n,
                                      int64_t k, float alpha, const void *a, int64_t lda, float beta, void *c, int64_t ldc);
WSGEMM_API wsgemm_status wsgemm_zherk(wsgemm_handle *h, wsgemm_layout layout, wsgemm_uplo uplo, wsgemm_op trans, int64_t n,
                                      int64_t k, double alpha, const void *a, int64_t lda, double beta, void *c, int64_t ldc);
WSGEMM_API wsgemm_status wsgemm_ssyr2k(wsgemm_handle *h, wsgemm_layout layout, wsgemm_uplo uplo, wsgemm_op trans, int64_t n,
                                       int64_t k, float alpha, const float *a, int64_t lda, const float *b, int64_t ldb,
                                       float beta, float *c, int64_t ldc);
WSGEMM_API wsgemm_status wsgemm_dsyr2k(wsgemm_handle *h, wsgemm_layout layout, wsgemm_uplo uplo, wsgemm_op trans, int64_t n,
                                       int64_t k, double alpha, const double *a, int64_t lda, const double *b, int64_t ldb,
                                       double beta, double *c, int64_t ldc);
WSGEMM_API wsgemm_status wsgemm_csyr2k(wsgemm_handle *h, wsgemm_layout layout, wsgemm_uplo uplo, wsgemm_op trans, int64_t n,
                                       int64_t k, wsgemm_cfloat alpha, const void *a, int64_t lda, const void *b, int64_t ldb,
                                       wsgemm_cfloat beta, void *c, int64_t ldc);
WSGEMM_API wsgemm_status wsgemm_zsyr2k(wsgemm_handle *h, wsgemm_layout layout, wsgemm_uplo uplo, wsgemm_op trans, int64_t n,
                                       int64_t k, wsgemm_cdouble alpha, const void *a, int64_t lda, const void *b, int64_t ldb,
                                       wsgemm_cdouble beta, void *c, int64_t ldc);
WSGEMM_API wsgemm_status wsgemm_cher2k(wsgemm_handle *h, wsgemm_layout layout, wsgemm_uplo uplo, wsgemm_op trans, int64_t n,
                                       int64_t k, wsgemm_cfloat alpha, const void *a, int64_t lda, const void *b, int64_t ldb,
                                       float beta, void *c, int64_t ldc);
WSGEMM_API wsgemm_status wsgemm_zher2k(wsgemm_handle *h, wsgemm_layout layout, wsgemm_uplo uplo, wsgemm_op trans, int64_t n,
                                       int64_t k, wsgemm_cdouble alpha, const void *a, int64_t lda, const void *b, int64_t ldb,
                                       double beta, void *c, int64_t ldc);
WSGEMM_API wsgemm_status wsgemm_sgemmtr(wsgemm_handle *h, wsgemm_layout layout, wsgemm_uplo uplo, wsgemm_op transa,
                                        wsgemm_op transb, int64_t n, int64_t k, float alpha, const float *a, int64_t lda,
                                        const float *b, int64_t ldb, float beta, float *c, int64_t ldc);
WSGEMM_API wsgemm_status wsgemm_dgemmtr(wsgemm_handle *h, wsgemm_layout layout, wsgemm_uplo uplo, wsgemm_op transa,
                                        wsgemm_op transb, int64_t n, int64_t k, double alpha, const double *a, int64_t lda,
                                        const double *b, int64_t ldb, double beta, double *c, int64_t ldc);
WSGEMM_API wsgemm_status wsgemm_cgemmtr(wsgemm_handle *h, wsgemm_layout layout, wsgemm_uplo uplo, wsgemm_op transa,
                                        wsgemm_op transb, int64_t n, int64_t k, wsgemm_cfloat alpha, const void *a, int64_t lda,
                                        const void *b, int64_t ldb, wsgemm_cfloat beta, void *c, int64_t ldc);
WSGEMM_API wsgemm_status wsgemm_zgemmtr(wsgemm_handle *h, wsgemm_layout layout, wsgemm_uplo uplo, wsgemm_op transa,
                                        wsgemm_op transb, int64_t n, int64_t k, wsgemm_cdouble alpha, const void *a, int64_t lda,
                                        const void *b, int64_t ldb, wsgemm_cdouble beta, void *c, int64_t ldc);
WSGEMM_API wsgemm_status wsgemm_strmm(wsgemm_handle *h, wsgemm_layout layout, wsgemm_side side, wsgemm_uplo uplo,
                                      wsgemm_op transa, wsgemm_diag diag, int64_t m, int64_t n, float alpha, const float *a,
                                      int64_t lda, float *b, int64_t ldb);
WSGEMM_API wsgemm_status wsgemm_dtrmm(wsgemm_handle *h, wsgemm_layout layout, wsgemm_side side, wsgemm_uplo uplo,
                                      wsgemm_op transa, wsgemm_diag diag, int64_t m, int64_t n, double alpha, const double *a,
                                      int64_t lda, double *b, int64_t ldb);
WSGEMM_API wsgemm_status wsgemm_ctrmm(wsgemm_handle *h, wsgemm_layout layout, wsgemm_side side, wsgemm_uplo uplo,
                                      wsgemm_op transa, wsgemm_diag diag, int64_t m, int64_t n, wsgemm_cfloat alpha,
                                      const void *a, int64_t lda, void *b, int64_t ldb);
WSGEMM_API wsgemm_status wsgemm_ztrmm(wsgemm_handle *h, wsgemm_layout layout, wsgemm_side side, wsgemm_uplo uplo,
                                      wsgemm_op transa, wsgemm_diag diag, int64_t m, int64_t n, wsgemm_cdouble alpha,
                                      const void *a, int64_t lda, void *b, int64_t ldb);
WSGEMM_API wsgemm_status wsgemm_strsm(wsgemm_handle *h, wsgemm_layout layout, wsgemm_side side, wsgemm_uplo uplo,
                                      wsgemm_op transa, wsgemm_diag diag, int64_t m, int64_t n, float alpha, const float *a,
                                      int64_t lda, float *b, int64_t ldb);
WSGEMM_API wsgemm_status wsgemm_dtrsm(wsgemm_handle *h, wsgemm_layout layout, wsgemm_side side, wsgemm_uplo uplo,
                                      wsgemm_op transa, wsgemm_diag diag, int64_t m, int64_t n, double alpha, const double *a,
                                      int64_t lda, double *b, int64_t ldb);
WSGEMM_API wsgemm_status wsgemm_ctrsm(wsgemm_handle *h, wsgemm_layout layout, wsgemm_side side, wsgemm_uplo uplo,
                                      wsgemm_op transa, wsgemm_diag diag, int64_t m, int64_t n, wsgemm_cfloat alpha,
                                      const void *a, int64_t lda, void *b, int64_t ldb);
WSGEMM_API wsgemm_status wsgemm_ztrsm(wsgemm_handle *h, wsgemm_layout layout, wsgemm_side side, wsgemm_uplo uplo,
                                      wsgemm_op transa, wsgemm_diag diag, int64_t m, int64_t n, wsgemm_cdouble alpha,
                                      const void *a, int64_t lda, void *b, int64_t ldb);

/* Their descriptor form. Set it to WSGEMM_LEVEL3_DESC_INIT, then fill in what the routine has. */
typedef enum wsgemm_routine {
  WSGEMM_SYMM = 1,
  WSGEMM_HEMM = 2,
  WSGEMM_SYRK = 3,
  WSGEMM_HERK = 4,
  WSGEMM_SYR2K = 5,
  WSGEMM_HER2K = 6,
  WSGEMM_GEMMTR = 7,
  WSGEMM_TRMM = 8,
  WSGEMM_TRSM = 9
} wsgemm_routine;

/* X(enumerator, name): their names in texts, in tuning files and on the command line. */
#define WSGEMM_ROUTINE_MAP(X) \
  X(SYMM, "symm")             \
  X(HEMM, "hemm")             \
  X(SYRK, "syrk")             \
  X(HERK, "herk")             \
  X(SYR2K, "syr2k")           \
  X(HER2K, "her2k")           \
  X(GEMMTR, "gemmtr")         \
  X(TRMM, "trmm")             \
  X(TRSM, "trsm")

typedef struct wsgemm_level3_desc {
  size_t struct_bytes; /* sizeof(wsgemm_level3_desc), so that the struct may grow */
  wsgemm_routine routine;
  wsgemm_layout layout;
  wsgemm_side side; /* symm, hemm, trmm, trsm */
  wsgemm_uplo uplo;
  wsgemm_op transa, transb; /* syrk and its kin: transa is trans; transb: of gemmtr alone */
  wsgemm_diag diag;         /* trmm, trsm */
  wsgemm_type type;         /* of matrices and scalars: F32, F64, C32, C64, else NOT_SUPPORTED */
  wsgemm_math math;
  int64_t m, n, k; /* those that the typed call has */
  /* of `type`; herk: alpha and beta, her2k: beta are the real parts of these, whose imaginary parts
   * must be 0 */
  wsgemm_scalar alpha, beta;
  const void *a;
  int64_t lda;
  /* trmm, trsm: B, if c is NULL where the result goes (b is then written) */
  const void *b;
  int64_t ldb;
  /* trmm, trsm: where the result goes; NULL: to b. Either b itself (same pointer and ld) or no
   * overlap with it. */
  void *c;
  int64_t ldc;
  /* Strided batch, as in wsgemm_gemm_desc; an operand that is written must have a stride. */
  int64_t batch_count, stride_a, stride_b, stride_c;
} wsgemm_level3_desc;

#define WSGEMM_LEVEL3_DESC_INIT                                                                                             \
  {                                                                                                                         \
    sizeof(wsgemm_level3_desc), WSGEMM_SYRK, WSGEMM_COL_MAJOR, WSGEMM_LEFT, WSGEMM_UPPER, WSGEMM_NO_TRANS, WSGEMM_NO_TRANS, \
        WSGEMM_NON_UNIT, WSGEMM_F32, WSGEMM_MATH_INHERIT, 0, 0, 0, {0}, {0}, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0                   \
  }

/* Returns what the typed calls do, and NOT_SUPPORTED. INVALID_POINTER: desc is NULL; INVALID_VALUE:
 * struct_bytes, an enum, or batch_count < 0. */
WSGEMM_API wsgemm_status wsgemm_level3(wsgemm_handle *h, const wsgemm_level3_desc *desc);

/* As wsgemm_get_workspace_size and wsgemm_explain, for a Level 3 call. */
WSGEMM_API wsgemm_status wsgemm_level3_workspace_size(wsgemm_handle *h, const wsgemm_level3_desc *desc, size_t *bytes);
WSGEMM_API size_t wsgemm_level3_explain(wsgemm_handle *h, const wsgemm_level3_desc *desc, char *text, size_t bytes);

/* ---- Packed operands: slices of an operand, made once for many products -------------------------
 *
 * F32 and C32 products on GPUs of compute capability 9.0 first split their operands into slices.
 * The slices of an operand that serves many products, such as the weights of a layer, can be made
 * once and kept:
 *
 *   wsgemm_get_packed_size(h, &desc, WSGEMM_OPERAND_B, &bytes);      a product that B takes part in
 *   cudaMalloc(&memory, bytes);
 *   wsgemm_prepack(h, &desc, WSGEMM_OPERAND_B, memory, bytes, &packed);       on h's stream
 *   desc.packed_b = packed;                                          in all products with this B
 *
 * The operand itself is still given, and must not change while its packed form is in use. Pointer,
 * ld, op, layout, sizes, type and strides must be those that were packed; a batch may share one
 * packed operand by stride 0. Products of another numerics class, or by other kernels, ignore the
 * packed form. Any number of streams may use it at once, after the stream that made it has done so.
 * With a packed operand even smaller products may use slices, and so have other bits than without
 * it, within the same bound. More: docs/behaviour.md. */
typedef enum wsgemm_operand { WSGEMM_OPERAND_A = 0, WSGEMM_OPERAND_B = 1 } wsgemm_operand;

/* Into *bytes: device memory for the packed form of desc's A, or B: about 4 bytes for each real
 * number, but 8 for the complex A of a column-major C and the complex B of a row-major one; half of
 * it for TF32; 0: it has none here (other types or GPUs, host memory, PEDANTIC, invariant mode,
 * k < 128). Only layout, types, math, k, batch_count, and of this operand pointer, op, ld, stride
 * and its other size (m or n) count; nothing is read through pointers. Returns what wsgemm_gemm
 * does for a bad desc; INVALID_VALUE: operand; INVALID_POINTER: bytes or the operand is NULL. */
WSGEMM_API wsgemm_status wsgemm_get_packed_size(wsgemm_handle *h, const wsgemm_gemm_desc *desc, wsgemm_operand operand,
                                                size_t *bytes);

/* Packs the operand into `bytes` of device memory, aligned to 256 bytes, on the handle's stream
 * (which may be captured into a graph), and makes a record of it in *packed. The caller owns the
 * memory and keeps it as long as products use it; it is on the operand's device. Returns what
 * wsgemm_get_packed_size does; INVALID_VALUE: memory is badly aligned; INVALID_POINTER: packed or
 * memory is NULL, or memory is not on the operand's device; WORKSPACE_TOO_SMALL; NOT_SUPPORTED: the
 * size is 0; ARCH_MISMATCH: this build has no kernels for it; ALLOC_FAILED; DEVICE_ERROR. After an
 * error *packed is as it was. */
WSGEMM_API wsgemm_status wsgemm_prepack(wsgemm_handle *h, const wsgemm_gemm_desc *desc, wsgemm_operand operand, void *memory,
                                        size_t bytes, wsgemm_packed **packed);

/* Frees the record, not the memory. Calls that have returned no longer need the record. NULL is
 * allowed and does nothing. Returns SUCCESS; INVALID_POINTER: no record, or destroyed already.
 */
WSGEMM_API wsgemm_status wsgemm_packed_destroy(wsgemm_packed *packed);

/* ---- Tuning -------------------------------------------------------------------------------------
 *
 * A model of speed chooses the row, tile, COARSE_FACTOR, policy and blocking of every call.
 * wsgemm_autotune measures instead, for one shape on one device, and keeps what it found: in this
 * process at once, and in a file for later ones. Tuning never changes a bit of C. A call takes what
 * the handle or the environment forces; else what the user's file has; else the table that comes
 * with the library; else the model's choice. File and table also serve shapes near those that were
 * measured, on the same device; on a GPU only if the model agrees, and if both shapes or neither
 * have leading dimensions of A and B that are multiples of 128 bytes.
 *
 * The user's file is $WSGEMM_TUNE, else $XDG_CACHE_HOME/wsgemm/tuning, else ~/.cache/wsgemm/tuning;
 * WSGEMM_TUNE=off: neither file nor table. It is read once, on the library's first call. Any number
 * of processes may write to it at once; a call that waits longer than 30 s for its lock returns
 * FILE_ERROR. The search, the file's format and its lock: docs/tuning.md. */

/* What the search is doing, reported after each measurement. Texts are valid during the call. */
typedef struct wsgemm_autotune_step {
  const char *candidate, *best; /* "row=sgemm_avx512_32x12 path=packed mc=192 ..." */
  double us;                    /* of this run; 0: not measured; < 0: refused, its C differs */
  double best_us, built_in_us;  /* medians so far; 0: none yet */
  double model;                 /* predicted time of the candidate over the built-in choice's */
  int candidate_idx, n_candidates, n_survivors, round;
  double elapsed_ms, budget_ms;
  /* A quarter of the built-in choice's times so far differ from their median by more than this. */
  double noise;
} wsgemm_autotune_step;

/* Not 0: the search stops here, and keeps what it has confirmed. Runs on the calling thread and
 * must not call wsgemm. */
typedef int (*wsgemm_autotune_progress)(void *user, const wsgemm_autotune_step *step);

typedef struct wsgemm_autotune_result {
  double before_us, after_us; /* medians: built-in choice, and what is kept; 0: not measured */
  int n_candidates, n_measured, n_refused, is_better, is_interrupted;
  double elapsed_ms;            /* the whole search, and what came before its first run */
  char before[192], after[192]; /* as wsgemm_autotune_step's candidate */
} wsgemm_autotune_result;

typedef struct wsgemm_autotune_options {
  size_t struct_bytes; /* sizeof(wsgemm_autotune_options) */
  int device;          /* the CUDA driver's ordinal; -1: the CPU */
  int is_exhaustive;   /* not 0: every candidate, up to 5 times while the budget lasts */
  /* Counted from the first run, after operands are made and kernels loaded. < 0: 80 on a GPU, 1000
   * on the CPU; 0: nothing is measured or kept. */
  double budget_ms;
  uint64_t seed;                     /* of the operands, and of the order of candidates */
  const char *file;                  /* NULL: the user's; "": none, for this process only */
  wsgemm_autotune_progress progress; /* NULL: none; with budget 0: all candidates, in order */
  void *user;
  wsgemm_autotune_result *result; /* NULL: not wanted */
} wsgemm_autotune_options;

#define WSGEMM_AUTOTUNE_OPTIONS_INIT \
  { sizeof(wsgemm_autotune_options), -1, 0, -1, 1, 0, 0, 0, 0 }

/* Tunes the product that desc describes: layout, ops, types, math, sizes, lds, batch, alpha and
 * beta count; no pointer of it is read, nor its epilogue and packed operands. The call makes
 * operands of random numbers: in host memory, or on the device, on the handle's stream, whose work
 * it waits for. The handle's settings count as in any call; what it forces is not tuned. In half
 * precision on a GPU, what is found with a beta serves products with a beta, and those with an
 * epilogue of more than a bias and ReLU; what is found without one serves the others.
 *
 * A candidate is kept if it is 2 % faster than the built-in choice in 6 of 6 or 8 of 9 comparisons
 * at the end of the search, which may take a quarter of the budget more; else the file remembers
 * that nothing better was found. What was found with a forced kernel or, on a GPU, COARSE_FACTOR is
 * reported, not kept. wsgemm_get_fallback_count counts the rows and columns of a search, too.
 * options: NULL for the defaults.
 *
 * Returns SUCCESS, also if nothing better was found or the search was stopped; what wsgemm_gemm
 * returns for a bad desc; INVALID_VALUE (an option out of its range); ALLOC_FAILED (no memory for
 * the operands); NO_DEVICE, INSUFFICIENT_DRIVER, DEVICE_ERROR, ARCH_MISMATCH; CAPTURE_UNSAFE: the
 * handle's stream is being captured; NOT_SUPPORTED: there is nothing to compute or to choose
 * (matrix-vector products, and small ones on the CPU: fewer than 2^18 multiply-adds); FILE_ERROR:
 * found and in force, but not written to the file. */
WSGEMM_API wsgemm_status wsgemm_autotune(wsgemm_handle *h, const wsgemm_gemm_desc *desc, const wsgemm_autotune_options *options);

/* The same for a Level 3 call: routine, layout, side, uplo, ops, type, math, sizes, lds, batch,
 * alpha, beta and whether c is NULL or b (in place) count. On the CPU the whole call is tuned; of
 * syr2k and her2k, which are two products, one of them. On a GPU a call is a list of launches: what
 * is tuned is its largest product, and the line that comes of it serves every call that has such a
 * product: of syrk and its kin a product of which a triangle is written, of symm, hemm and trmm one
 * with a structured operand, of trsm, and of large calls of the others, one of general matrices,
 * whose line is gemm's. NOT_SUPPORTED also: a GPU's call that is all diagonal block. */
WSGEMM_API wsgemm_status wsgemm_level3_autotune(wsgemm_handle *h, const wsgemm_level3_desc *desc,
                                                const wsgemm_autotune_options *options);

/* The name of the user's file ("" if there is none); its valid lines, whatever device and version
 * they are of; and those of the library's own table. Written as the texts below. file: NULL for the
 * user's. */
WSGEMM_API size_t wsgemm_tuning_file(char *text, size_t bytes);
WSGEMM_API size_t wsgemm_tuning_read(const char *file, char *text, size_t bytes);
WSGEMM_API size_t wsgemm_tuning_table(char *text, size_t bytes);

/* Merges the valid lines of `text` (as wsgemm_tuning_read gives them) into a file, and takes them
 * into use if it is the user's. *n_lines: how many were valid (NULL: not wanted). Returns SUCCESS;
 * INVALID_POINTER: text is NULL; INVALID_VALUE: text has lines, none of them valid; FILE_ERROR;
 * ALLOC_FAILED. */
WSGEMM_API wsgemm_status wsgemm_tuning_import(const char *text, const char *file, int *n_lines);

/* Empties a file, and forgets what was in force of it if it is the user's. Returns SUCCESS (also if
 * there was none), FILE_ERROR. */
WSGEMM_API wsgemm_status wsgemm_tuning_clear(const char *file);

/* ---- Queries ------------------------------------------------------------------------------------
 *
 * Texts: at most `bytes` bytes are written, always closed with NUL if bytes > 0. Returns the length
 * of the whole text without its NUL, as snprintf does; (NULL, 0) asks for it. */

/* Which kernel row, tile, blocking, COARSE_FACTOR, policy and thread count the call would use, one
 * "key: value" a line. The first line is the product as desc has it. A row-major one is computed as
 * the column-major C^T = op(B)^T op(A)^T: a line computed_as gives its m and n, which tile and
 * tuning go by. The pointers in desc determine the backend, or if all are NULL the calling thread's
 * CUDA context, if it has one; nothing is read through them. For a bad desc: the one line
 * "error: ...". */
WSGEMM_API size_t wsgemm_explain(wsgemm_handle *h, const wsgemm_gemm_desc *desc, char *text, size_t bytes);

/* How this library was built: version, compiler, backends, kernel families; one "key: value" a
 * line. */
WSGEMM_API size_t wsgemm_config(char *text, size_t bytes);

/* What the library found on this machine: CPU features, ISA in use, caches, affinity, cgroup quota,
 * thread count and why, WSGEMM_* variables in force or ignored; one "key: value" a line. */
WSGEMM_API size_t wsgemm_machine(char *text, size_t bytes);

WSGEMM_API int wsgemm_version(void);                /* WSGEMM_VERSION of the library in use */
WSGEMM_API const char *wsgemm_version_string(void); /* "0.1.0" */

/* The kernel registry: names of rows 0 .. count - 1 (NULL beyond), and whether this machine can run
 * a row: on the CPU, or of GPU rows whether there is a driver. */
WSGEMM_API int wsgemm_kernel_count(void);
WSGEMM_API const char *wsgemm_kernel_name(int row);
WSGEMM_API const char *wsgemm_kernel_backend(int row); /* "cpu" or "cuda" */
WSGEMM_API int wsgemm_kernel_usable(int row);

/* What a row of the registry says about its kernel. A number that a kernel does not have is 0. The
 * texts are constants. */
typedef struct wsgemm_kernel_info {
  size_t struct_bytes; /* sizeof(wsgemm_kernel_info), set by the caller */
  const char *name;    /* "sgemm_simt_128x64x16_c2": for wsgemm_set_kernel */
  const char *backend; /* "cpu" or "cuda" */
  /* CPU: the instruction set: ref (none), neon, avx2, avx512, amx. GPU: simt, fma16 (multiply-adds
   * of elements, of 16-bit elements in FP32); vec (m = 1 or n = 1); mma, mma16 (tensor cores: FP64,
   * 16-bit elements); wgmma (Hopper's, 16-bit elements); direct (there, small and flat
   * products); f16x3, bf16x6, f16x1 (FP32 there, by so many products of slices of such a type). */
  const char *family;
  wsgemm_type type; /* of A and B */
  int is_usable;    /* as wsgemm_kernel_usable */
  /* In elements: the tile of C, bm x bn (CPU: of registers), and the block of k that is loaded at
   * once (CPU: the longest one packed at once). */
  int bm, bn, bk;
  int coarse_factor;     /* GPU: an item is bm x (bn * coarse_factor); CPU: 0, chosen per call */
  int n_stages;          /* GPU: blocks of k in shared memory at once */
  int n_threads;         /* GPU: of a block */
  int shared_bytes;      /* GPU: of a block; a kernel of split-k may use more */
  int cluster;           /* GPU: blocks of a cluster; 1: there are no clusters */
  int cluster_splits;    /* GPU: parts of k that the blocks of a cluster sum, each one of them */
  int n_slices;          /* of an operand; 0: elements are multiplied whole */
  int has_split_k;       /* GPU: not 0: several blocks may sum parts of k of one item */
  int is_ping_pong;      /* GPU: not 0: an item is stored while another one is multiplied */
  int is_fma;            /* not 0: IEEE fused multiply-adds, in the type or in FP32 */
  int least_cc, most_cc; /* GPU: compute capabilities, 10 * major + minor; most_cc = 0: no limit */
} wsgemm_kernel_info;

/* Returns SUCCESS; INVALID_POINTER: info is NULL; INVALID_VALUE: there is no such row, or another
 * struct_bytes (then nothing is written). */
WSGEMM_API wsgemm_status wsgemm_get_kernel_info(int row, wsgemm_kernel_info *info);

#ifdef __cplusplus
}
#endif
#endif
