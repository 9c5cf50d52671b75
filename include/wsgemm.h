/* wsgemm.h - the whole public interface of wsgemm, a dense linear algebra library.
 *
 *   C = alpha * op(A) * op(B) + beta * C
 *
 * C11 and C++ (no CUDA header is needed: a stream is a void *). All sizes, leading dimensions and strides are int64_t and
 * count elements, not bytes. Every function is safe to call from any number of threads at once; a NULL handle stands for the
 * process-wide default handle wherever a handle is asked for.
 *
 * Nothing here prints, exits, raises a signal, or touches the rounding mode; what went wrong is in the returned status, and in
 * words in wsgemm_last_error(). */
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

/* ---- Status codes: X(name, value, text) ------------------------------------------------------------------------------ */

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
  X(DEVICE_ERROR, 11, "a GPU call failed")                                                        \
  X(INTERNAL_ERROR, 12, "a defect in wsgemm; please report it")                                   \
  X(FILE_ERROR, 13, "a file cannot be read or written")

typedef enum wsgemm_status {
#define WSGEMM_STATUS_ENUM(name, value, text) WSGEMM_##name = (value),
  WSGEMM_STATUS_MAP(WSGEMM_STATUS_ENUM)
#undef WSGEMM_STATUS_ENUM
} wsgemm_status;

/* "WSGEMM_INVALID_VALUE" and its sentence; for an unknown number "WSGEMM_UNKNOWN" and "unknown status". Never NULL. */
WSGEMM_API const char *wsgemm_status_name(wsgemm_status status);
WSGEMM_API const char *wsgemm_status_text(wsgemm_status status);

/* What the last failing call of this thread complained about: the argument's name, its value and the least legal one. Warnings
 * (an ignored environment variable) are left here too. Never NULL; "" if nothing went wrong. Valid until the thread's next call
 * that fails. */
WSGEMM_API const char *wsgemm_last_error(void);

/* ---- Enumerations: the values of layout, op, uplo, diag and side are CBLAS's ------------------------------------------- */

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

/* Element types. Complex numbers are pairs (re, im) without padding: layout-compatible with C's and C++'s complex types. */
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

/* Numerics class. Within one class the bits of C depend on nothing but the arguments and the kernel row.
 *   DEFAULT   |C - C^| <= gamma_{k+2} (|alpha| |A| |B| + |beta| |C|) + (2 k |alpha| + 4) t in every component, gamma_n = n u / (1 - n u),
 *             u = 2^-24, t = 2^-149 (F64, C64: 2^-53, 2^-1074), where no sum on the way overflows: a partial sum, alpha times the sum, beta C,
 *             or these two together may exceed the range although C^ does not, and then gives Inf or NaN. None does where (|alpha| + 1) |A| |B|
 *             + |beta| |C| stays below half of the largest number. On GPUs of compute capability 9.0 large F32 and C32 products
 *             (k >= 128) reach it with the tensor cores: rows of A and columns of B are scaled by powers of two and split into two slices of FP16, or
 *             where those would not do, element of C by element of C, into three of BF16; elements that need more (NaN, infinity, ranges
 *             beyond 2^68) are computed by multiply-adds. That takes memory (wsgemm_set_workspace); a call for which there is none fails, in a
 *             capture as elsewhere. wsgemm_explain tells which arithmetic runs. Half precision: see wsgemm_hgemm.
 *   PEDANTIC  the same bound by fused multiply-adds in the data's own type only; of half-precision data, in FP32.
 *   TF32      F32 and C32 on a GPU of compute capability 9.0: elements of A and B may be rounded to 11 significant bits, as TF32 has, and of C32
 *             gamma_{2k+2} is the bound; all else as DEFAULT. */
typedef enum wsgemm_math {
  WSGEMM_MATH_INHERIT = 0, /* in a descriptor: whatever the handle says */
  WSGEMM_MATH_DEFAULT = 1,
  WSGEMM_MATH_PEDANTIC = 2,
  WSGEMM_MATH_TF32 = 3
} wsgemm_math;

/* Who works on which tile; the result's bits never depend on it. "Worker" is a thread on the CPU, a block on a GPU. */
typedef enum wsgemm_policy {
  WSGEMM_POLICY_AUTO = 0,         /* on GPUs with Cluster Launch Control CLC, else STEAL */
  WSGEMM_POLICY_FIXED_WORK = 1,   /* one shared ticket: whoever is free takes the next item */
  WSGEMM_POLICY_FIXED_BLOCKS = 2, /* every worker has an equal share and keeps to it */
  WSGEMM_POLICY_STEAL = 3,        /* CPU: every worker has a share, then takes from the one furthest behind; GPU: ticket queue */
  WSGEMM_POLICY_CLC = 4,          /* GPUs of compute capability >= 10.0: Cluster Launch Control; elsewhere as STEAL. Compiled and
                                     model-checked, never run on hardware */
  WSGEMM_POLICY_FOREACH = 5       /* the same through cuda::for_each_canceled_block; elsewhere as STEAL */
} wsgemm_policy;

/* ---- Threads, fork, signals ---------------------------------------------------------------------------------------------------
 *
 * The library makes threads on the first call that can use some, and keeps them. They work as the calling thread would: in its floating-point
 * environment (rounding mode, FTZ and DAZ, exception masks), on processors that it may run on, and with its real-time priority; and the
 * floating-point exceptions that they meet raise the flags of the calling thread. So bits and flags are those of a call with one thread.
 * Attributes that a thread cannot restore (nice, SCHED_IDLE, SCHED_BATCH, memory policy, system call filters) stay those of the thread that
 * created the worker. Workers block all signals but SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP and SIGSYS: a handler that repairs faults also
 * gets theirs, and must return; one that jumps out of a call may do so only where the call uses one thread.
 *
 * Inside a parallel region of OpenMP a call uses one thread. That is seen if the runtime (omp_in_parallel) is in the process's global scope
 * when this library is loaded: linked with the program, or loaded before with RTLD_GLOBAL.
 *
 * fork(): parent and child both go on; a fork waits for another thread's first call of the library. pthread_cancel(): a pending
 * cancellation does not interrupt a call; it takes effect afterwards. (Asynchronous cancellation, which POSIX allows in no function such as these, is not provided for.)
 *
 * Where GPU support is built in, the library's first call looks for a driver by dlopen; no later call on host memory takes the loader's lock.
 * So the constructor of a library may wait for a thread that multiplies, once the library has been called. A constructor that forks while
 * another thread is in its first call deadlocks with it.
 *
 * A call on host memory needs 96 KiB of the calling thread's stack, of half precision 128 KiB. */

/* ---- Handle ------------------------------------------------------------------------------------------------------------- */

typedef struct wsgemm_handle wsgemm_handle;

/* Makes a handle with the defaults (see the setters). Cheap: it creates no thread and allocates only itself.
 * Returns SUCCESS, INVALID_POINTER (out is NULL), ALLOC_FAILED. */
WSGEMM_API wsgemm_status wsgemm_create(wsgemm_handle **out);

/* Frees a handle. No call may still be using it. NULL is allowed and does nothing. Returns SUCCESS, INVALID_HANDLE. */
WSGEMM_API wsgemm_status wsgemm_destroy(wsgemm_handle *h);

/* Setters and getters. Setting is atomic per value and takes effect for calls that begin afterwards. Every setter returns
 * SUCCESS, INVALID_HANDLE, or INVALID_VALUE (then nothing changed); every getter SUCCESS, INVALID_HANDLE or INVALID_POINTER. */

/* Most CPU threads that a call may use, the caller's included; 0 (default): as many as wsgemm_default_num_threads says. */
WSGEMM_API wsgemm_status wsgemm_set_num_threads(wsgemm_handle *h, int n_threads);
WSGEMM_API wsgemm_status wsgemm_get_num_threads(wsgemm_handle *h, int *n_threads);

/* Limit for calls made by this thread, on top of the handle's; 0: none. Returns the old limit (negative n: only asks). */
WSGEMM_API int wsgemm_set_num_threads_local(int n_threads);

/* min(processors that the calling thread may run on, cgroup cpu quota rounded up, WSGEMM_NUM_THREADS), at least 1. The first of them is asked
 * for on each call, the others once. */
WSGEMM_API int wsgemm_default_num_threads(void);

WSGEMM_API wsgemm_status wsgemm_set_policy(wsgemm_handle *h, wsgemm_policy policy);
WSGEMM_API wsgemm_status wsgemm_get_policy(wsgemm_handle *h, wsgemm_policy *policy);

/* Neighbouring tiles of one row of tiles that a work item covers, sharing one load of A: 1..64, or 0 (default): chosen per call. */
WSGEMM_API wsgemm_status wsgemm_set_coarse_factor(wsgemm_handle *h, int coarse_factor);
WSGEMM_API wsgemm_status wsgemm_get_coarse_factor(wsgemm_handle *h, int *coarse_factor);

/* GPU, policy STEAL: work items after which a block leaves, so that a kernel of higher priority can take its place; 0 (default): a
 * block works until nothing is left. 0 .. 2^20. Ignored on the CPU and by the other policies. */
WSGEMM_API wsgemm_status wsgemm_set_quantum(wsgemm_handle *h, int quantum);
WSGEMM_API wsgemm_status wsgemm_get_quantum(wsgemm_handle *h, int *quantum);

WSGEMM_API wsgemm_status wsgemm_set_math(wsgemm_handle *h, wsgemm_math math); /* any but INHERIT */
WSGEMM_API wsgemm_status wsgemm_get_math(wsgemm_handle *h, wsgemm_math *math);

/* Forces a kernel row by its full name ("sgemm_avx512_32x12", "sgemm_simt_128x64x16_c2"), for the element type that the name begins
 * with and the row's backend; NULL or "": back to automatic for all. INVALID_VALUE: no such row; NOT_SUPPORTED: this machine cannot
 * run it. */
WSGEMM_API wsgemm_status wsgemm_set_kernel(wsgemm_handle *h, const char *name);

/* CUDA stream (a cudaStream_t) of calls on device memory; NULL: the default stream. Kept, not used, by calls on host memory. */
WSGEMM_API wsgemm_status wsgemm_set_stream(wsgemm_handle *h, void *stream);
WSGEMM_API wsgemm_status wsgemm_get_stream(wsgemm_handle *h, void **stream);

/* Device memory for the calls of this handle, `bytes` from `workspace` on, aligned to 256 bytes, in place of the library's own; NULL and
 * 0: back to the library's own. The caller keeps it alive, and sees to it that no two calls that may run at the same time (on two streams,
 * in two graphs) share it. Products of few tiles and a long k keep partial sums there; one that finds it too small, or on another device,
 * runs without, slower and with the same bits. The library's own is, in each CUDA context, 32 MiB for each of the first 3 streams and
 * captured launches that need it, and 32 MiB that any other stream takes whose call begins when the one before with it has ended. On
 * compute capability 9.0 operands of F32 and C32 are cut into slices there (wsgemm_math), half-precision ones that do not begin at whole 16
 * bytes (pointer, ld, strides) are copied there first, and so is a residual that is C itself, of F32 or F64, on all; the library's own for
 * that is 400 MiB for all streams, or a smaller part of it (12.5 MiB at the least) where the device has no room for more, allocated when a
 * call first needs it. Streams take turns: a call begins on the device when the one before, of whichever stream, has ended; streams that
 * must not wait for each other (where one waits for what the other does later) need a workspace each. On the host a call waits only for
 * those calls of its context to launch that use the same memory: the same workspace, or this.
 * A captured call has as much of its own as it needs, at most 400 MiB, by an allocation node of the graph, which also frees it. For such a
 * graph the driver has rules: one instance of it at a time, no clones, a child node only if that takes the graph over (CUDA 12.9 on), no body
 * of a conditional node, no launch from the device; a launch or an instantiation fails where the device has no room. Calls captured with a
 * workspace add no such node. (Devices without memory pools have no such nodes: there one captured call at a time has 400 MiB, until its
 * graph and the graph's instances are destroyed, and a second one returns ALLOC_FAILED.)
 * With less memory than operands need, the product goes chunk by chunk of C, slower and with the same bits. F32 and C32 of which no chunk
 * (256 rows and columns) fits the workspace, or 400 MiB, are multiplied as by PEDANTIC: within the same bound, with other bits. Where the
 * device has no room for the library's own memory for operands, calls that need it return ALLOC_FAILED and say how much they need.
 * INVALID_POINTER: not device memory; INVALID_VALUE: badly aligned; NO_DEVICE: there is no GPU driver. */
WSGEMM_API wsgemm_status wsgemm_set_workspace(wsgemm_handle *h, void *workspace, size_t bytes);

/* How many rows of A and columns of B the F32 and C32 products on a device had so far for which two slices (of TF32 one) would not do
 * (wsgemm_math): those with NaN or infinity, or with elements too far below their largest. Counts from the first product in the context
 * that wsgemm_gemm would use; waits for its default stream, so that streams whose products are to be counted must have ended.
 * device: an ordinal of the CUDA driver's; 0 is counted where there is none, or no GPU. count: host memory. INVALID_POINTER: count is
 * NULL; INVALID_VALUE: device < 0; NO_DEVICE: after fork(); DEVICE_ERROR: it cannot be asked. */
WSGEMM_API wsgemm_status wsgemm_get_fallback_count(wsgemm_handle *h, int device, int64_t *count);

/* Check mode: also refuse a C that overlaps A or B, and what of an epilogue must not overlap (INVALID_VALUE). Default 0, or WSGEMM_CHECK=1
 * in the environment. */
WSGEMM_API wsgemm_status wsgemm_set_check(wsgemm_handle *h, int enabled);
WSGEMM_API wsgemm_status wsgemm_get_check(wsgemm_handle *h, int *enabled);

/* Invariant mode: an element C(i, j) depends on nothing but row i of op(A), column j of op(B), C(i, j) itself, alpha, beta, k, the types
 * and the kernel row: not on m, n, i, j, the batch, lds, alignment, ops or layout. So a row of a product has the same bits alone (m = 1),
 * in a matrix of any height, and in a batch. (Of complex types only the sign of a zero may depend on the layout.) Costs F32 and C32 the
 * tensor cores (wsgemm_math), and time where m = 1 or n = 1, whose faster kernels sum in an order of their own; on a GPU also where C is
 * small and k long, which is then not cut into parts; and for bfloat16 on CPUs with AMX, which is not used. Default 0, or
 * WSGEMM_INVARIANT=1 in the environment. */
WSGEMM_API wsgemm_status wsgemm_set_invariant(wsgemm_handle *h, int enabled);
WSGEMM_API wsgemm_status wsgemm_get_invariant(wsgemm_handle *h, int *enabled);

/* A function called with one line of text for each warning and each failing call; NULL (default): none. It runs on the calling
 * thread and must not call wsgemm. */
typedef void (*wsgemm_logger)(void *user, wsgemm_status status, const char *message);
WSGEMM_API wsgemm_status wsgemm_set_logger(wsgemm_handle *h, wsgemm_logger logger, void *user);

/* ---- GEMM: C = alpha op(A) op(B) + beta C --------------------------------------------------------------------------------
 *
 * op(A) is m x k, op(B) is k x n, C is m x n. Column-major: element (i, j) of X stands at x[i + j * ldx], so lda >= max(1, m) if
 * A is not transposed, else max(1, k); ldb >= max(1, k), else max(1, n); ldc >= max(1, m). Row-major: element (i, j) at
 * x[i * ldx + j], and the least lds are k / m, n / k and n. Any element-aligned pointer will do.
 *
 * beta = 0: C is written without being read. alpha = 0 or k = 0: C = beta C, A and B are not read and may be NULL. m = 0 or
 * n = 0: nothing happens. A complex alpha or beta whose imaginary part is 0 multiplies as a real number. C must not overlap A or B
 * (undefined; refused in check mode).
 *
 * The pointers decide who works. Host memory: the CPU, and the call is done when it returns; small products neither allocate nor
 * lock nor wake a thread. Device memory (all matrices on one device; managed memory goes where the others are): that GPU, on the
 * handle's stream and in its CUDA context (of the NULL stream, and those of green contexts: the thread's if that is on this GPU, else the GPU's
 * primary one), and the call returns at once; it
 * can be captured into a CUDA graph, to which it may add memory (wsgemm_set_workspace). Two graphs captured from one handle may run at the
 * same time; two instances of the same captured graph may not. alpha and beta are always host values.
 *
 * Returns SUCCESS; INVALID_HANDLE; INVALID_VALUE (enum, negative size, small ld, extent beyond int64_t); INVALID_POINTER (NULL, or
 * host and device memory mixed); for device memory also NOT_SUPPORTED, ARCH_MISMATCH, INSUFFICIENT_DRIVER, ALLOC_FAILED
 * (the device is full; wsgemm_set_workspace), DEVICE_ERROR, and NO_DEVICE (also in a process forked from one that used CUDA: there only host memory can be
 * worked on). Only after SUCCESS has C been written. Checks run in this order: handle, enums, sizes, lds, quick return, pointers. */

WSGEMM_API wsgemm_status wsgemm_sgemm(wsgemm_handle *h, wsgemm_layout layout, wsgemm_op transa, wsgemm_op transb, int64_t m,
                                      int64_t n, int64_t k, float alpha, const float *a, int64_t lda, const float *b, int64_t ldb,
                                      float beta, float *c, int64_t ldc);

WSGEMM_API wsgemm_status wsgemm_dgemm(wsgemm_handle *h, wsgemm_layout layout, wsgemm_op transa, wsgemm_op transb, int64_t m,
                                      int64_t n, int64_t k, double alpha, const double *a, int64_t lda, const double *b,
                                      int64_t ldb, double beta, double *c, int64_t ldc);

WSGEMM_API wsgemm_status wsgemm_cgemm(wsgemm_handle *h, wsgemm_layout layout, wsgemm_op transa, wsgemm_op transb, int64_t m,
                                      int64_t n, int64_t k, wsgemm_cfloat alpha, const wsgemm_cfloat *a, int64_t lda,
                                      const wsgemm_cfloat *b, int64_t ldb, wsgemm_cfloat beta, wsgemm_cfloat *c, int64_t ldc);

WSGEMM_API wsgemm_status wsgemm_zgemm(wsgemm_handle *h, wsgemm_layout layout, wsgemm_op transa, wsgemm_op transb, int64_t m,
                                      int64_t n, int64_t k, wsgemm_cdouble alpha, const wsgemm_cdouble *a, int64_t lda,
                                      const wsgemm_cdouble *b, int64_t ldb, wsgemm_cdouble beta, wsgemm_cdouble *c, int64_t ldc);

/* Half precision. Every element of A, B and C becomes an FP32 number, exactly; products, sums, and alpha * sum + beta * c are FP32, and
 * that is rounded once, to nearest even, to C's type: beyond its range to Inf. Subnormal numbers are kept in all of them. So, in every
 * element,
 *   |C - C^| <= gamma_{k+2} (|alpha| |A| |B| + |beta| |C|) + half an ulp of C's type,   gamma_n = n u / (1 - n u), u = 2^-24,
 * where an ulp is the distance of neighbouring numbers of that type round the result; products, sums and results below the range of
 * FP32 may add (2 k |alpha| + 4) 2^-149, and sums may overflow as wsgemm_math says. alpha and beta are floats.
 * On GPUs the sums are those of the tensor cores, which align products by their exponent fields. Where A or B has subnormal elements these may
 * cost the other products of their sum low bits: another k 2^-38 |alpha| max|x| (bfloat16: k 2^-150), x the elements that meet a
 * subnormal one; on compute capability 8.x an eighth of the
 * bound is added at worst, by the published model. WSGEMM_MATH_PEDANTIC multiplies without tensor cores there, within the bound as above (docs/numerics.md).
 * Where processor and system have matrix registers for bfloat16 (AMX), bgemm multiplies in them, but for tiles with subnormal numbers or
 * exponents so far apart that it would flush or overflow what FP32 keeps. The library asks Linux for them on its first call, which obliges
 * the process to signal stacks of sysconf(_SC_MINSIGSTKSZ) bytes or more, and leaves them released; WSGEMM_ISA=avx512 in the environment does
 * without.
 * The descriptor form also takes a C of the other half-precision type, or of WSGEMM_F32. */
WSGEMM_API wsgemm_status wsgemm_hgemm(wsgemm_handle *h, wsgemm_layout layout, wsgemm_op transa, wsgemm_op transb, int64_t m,
                                      int64_t n, int64_t k, float alpha, const wsgemm_f16 *a, int64_t lda, const wsgemm_f16 *b,
                                      int64_t ldb, float beta, wsgemm_f16 *c, int64_t ldc);

WSGEMM_API wsgemm_status wsgemm_bgemm(wsgemm_handle *h, wsgemm_layout layout, wsgemm_op transa, wsgemm_op transb, int64_t m,
                                      int64_t n, int64_t k, float alpha, const wsgemm_bf16 *a, int64_t lda, const wsgemm_bf16 *b,
                                      int64_t ldb, float beta, wsgemm_bf16 *c, int64_t ldc);

/* A scalar, by value; of type_scalar. */
typedef union wsgemm_scalar {
  float s;
  double d;
  wsgemm_cfloat c;
  wsgemm_cdouble z;
  const void *device; /* reserved: a scalar in device memory */
} wsgemm_scalar;

typedef enum wsgemm_scalar_mode { WSGEMM_SCALAR_VALUE = 0, WSGEMM_SCALAR_DEVICE = 1 } wsgemm_scalar_mode;

/* The epilogue: what may be done to each element of C on its way to memory. For every element (i, j), of row i and column j of C as the
 * caller sees it, whatever the layout,
 *
 *   z = alpha sum + beta C(i, j) + bias(i or j)
 *   C(i, j) = out_scale act(z) + residual(i, j)        rounded once, to C's type
 *   column_sums(j) = sum over i of C(i, j)             of what was stored
 *
 * each part of which may be missing. Every step is taken in FP32, in double for a C of F64; the bits of C do not depend on threads, policy
 * or tiles. act is within an ulp of FP32, for F64 within 8 |z| 2^-53, in products of half precision on GPUs within 8 |z| 2^-24. It is 0 at
 * -Inf; NaN stays NaN, in RELU too. The order in which a column is summed follows from m alone: the error is at most gamma_{m - 1} times the
 * sum of |C(i, j)|. On GPUs products of half precision take these steps on their way to memory, others in a launch of their own; so do column
 * sums.
 *
 * alpha = 0 or k = 0: z = beta C + bias, and all the rest as ever. beta = 0 never reads C. m = 0 or n = 0: nothing happens, and column_sums
 * is left as it is. Real types of C only, else NOT_SUPPORTED. */
typedef enum wsgemm_epilogue {
  WSGEMM_EPILOGUE_NONE = 0,      /* act(z) = z; with no bias, residual, out_scale and column_sums: no epilogue at all */
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

/* The descriptor form. Set it to WSGEMM_GEMM_DESC_INIT, then fill in what differs. The typed calls above are this with
 * batch_count = 1. */
typedef struct wsgemm_gemm_desc {
  size_t struct_bytes; /* sizeof(wsgemm_gemm_desc), so that the struct may grow */
  wsgemm_layout layout;
  wsgemm_op transa, transb;
  /* All four equal; or type_a = type_b one of F16, BF16, with type_c one of F16, BF16, F32 and type_scalar = F32. Else NOT_SUPPORTED. */
  wsgemm_type type_a, type_b, type_c, type_scalar;
  wsgemm_math math;
  wsgemm_scalar_mode scalar_mode; /* today VALUE, else NOT_SUPPORTED */
  wsgemm_epilogue epilogue;       /* act */
  int64_t m, n, k;
  wsgemm_scalar alpha, beta;
  const void *a;
  int64_t lda;
  const void *b;
  int64_t ldb;
  void *c;
  int64_t ldc;
  /* Strided batch: product i works on a + i * stride_a, b + i * stride_b, c + i * stride_c. A or B may be shared (stride 0), strides may
   * be negative; the C of different products must not overlap. batch_count = 0 does nothing. */
  int64_t batch_count, stride_a, stride_b, stride_c;
  /* The rest of the epilogue; a struct that ends here (struct_bytes = WSGEMM_GEMM_DESC_BASE_BYTES) has none of it. Strides are those of the
   * batch, any but for column_sums, whose vectors must not overlap; stride 0 shares one bias or residual. */
  wsgemm_bias bias_per;
  wsgemm_type type_bias; /* of the bias: C's type, or F32 where C is of half precision; not looked at without one */
  const void *bias;      /* contiguous; NULL: none */
  int64_t stride_bias;
  const void *
      residual; /* m x n, of C's type and layout, ld_residual like ldc; NULL: none. It may be C itself (the same pointer, ld and stride: its
                           elements before the call), else must not overlap C */
  int64_t ld_residual, stride_residual;
  double out_scale;  /* rounded to FP32 unless C is of F64 */
  void *column_sums; /* n contiguous floats, doubles for a C of F64, that overlap nothing else; NULL: none */
  int64_t stride_column_sums;
  const wsgemm_packed *packed_a, *packed_b; /* wsgemm_prepack, of just this A, or B; NULL: none */
} wsgemm_gemm_desc;

/* struct_bytes of the first version of the struct: all that stands before the members of the epilogue. */
#define WSGEMM_GEMM_DESC_BASE_BYTES (offsetof(wsgemm_gemm_desc, bias_per))

#define WSGEMM_GEMM_DESC_INIT                                                                                                  \
  {                                                                                                                            \
    sizeof(wsgemm_gemm_desc), WSGEMM_COL_MAJOR, WSGEMM_NO_TRANS, WSGEMM_NO_TRANS, WSGEMM_F32, WSGEMM_F32, WSGEMM_F32,          \
        WSGEMM_F32, WSGEMM_MATH_INHERIT, WSGEMM_SCALAR_VALUE, WSGEMM_EPILOGUE_NONE, 0, 0, 0, {0}, {0}, 0, 0, 0, 0, 0, 0, 1, 0, \
        0, 0, WSGEMM_BIAS_PER_ROW, WSGEMM_F32, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0                                                    \
  }

/* Returns what the typed calls do, and NOT_SUPPORTED. INVALID_POINTER: desc is NULL; INVALID_VALUE: struct_bytes is not that of this or
 * the first version, batch_count < 0, or packed_a or packed_b was made of another operand. ALLOC_FAILED: a residual that is C itself, of
 * F32 or F64: such a product keeps a copy of C meanwhile; on a GPU in its workspace. */
WSGEMM_API wsgemm_status wsgemm_gemm(wsgemm_handle *h, const wsgemm_gemm_desc *desc);

/* Into *bytes: the workspace that this call would use, 0 if none (see wsgemm_set_workspace). The pointers in desc tell the device, or if all
 * are NULL the calling thread's CUDA context, if it has one; nothing is read through them. Returns what wsgemm_gemm does for a bad desc;
 * INVALID_POINTER: bytes is NULL. */
WSGEMM_API wsgemm_status wsgemm_get_workspace_size(wsgemm_handle *h, const wsgemm_gemm_desc *desc, size_t *bytes);

/* ---- Packed operands: the form that the tensor cores take an operand in, made once for many products ----------------------------
 *
 * F32 and C32 products on GPUs of compute capability 9.0 first cut their operands into slices (wsgemm_math), which costs as much as reading
 * and writing them again. Of an operand that serves many products, such as the weights of a layer, the slices can be made once and kept:
 *
 *   wsgemm_get_packed_size(h, &desc, WSGEMM_OPERAND_B, &bytes);           one product that B takes part in
 *   cudaMalloc(&memory, bytes);
 *   wsgemm_prepack(h, &desc, WSGEMM_OPERAND_B, memory, bytes, &packed);   on h's stream
 *   desc.packed_b = packed;                                               in all products with this B
 *
 * The operand itself is given as ever: elements that need more than two slices are computed from it. It must not change while its packed form
 * is in use, and pointer, ld, op, layout, sizes, type and strides must be those that were packed (a batch may share one packed operand by
 * stride 0). Products of a class other than the one that it was packed for, or by other kernels, do not look at it. It may be used from any
 * number of streams at once, once the stream that made it has done so. Whether slices are used at all is decided with the time in mind that
 * a packed operand saves, so that small products may use them, and have other bits, only with it; within the same bound. */
typedef enum wsgemm_operand { WSGEMM_OPERAND_A = 0, WSGEMM_OPERAND_B = 1 } wsgemm_operand;

/* Into *bytes: device memory for the packed form of desc's A, or B: about 4 bytes for each real number, but 8 for the complex A of a
 * column-major C and the complex B of a row-major one; half of it for TF32; 0: it has none here (other types or GPUs, host memory,
 * PEDANTIC, invariant mode, k < 128). Looked at are layout, types, math, k, batch_count, and of this operand pointer, op, ld, stride and
 * its other size (m or n); nothing is read through pointers. Returns what wsgemm_gemm does for a bad desc; INVALID_VALUE: operand;
 * INVALID_POINTER: bytes or the operand is NULL. */
WSGEMM_API wsgemm_status wsgemm_get_packed_size(wsgemm_handle *h, const wsgemm_gemm_desc *desc, wsgemm_operand operand,
                                                size_t *bytes);

/* Packs it into `bytes` of device memory, aligned to 256 bytes, on the handle's stream (it can be captured into a graph), and makes a
 * record of it in *packed. The memory is the caller's, and must be kept as long as products use it; the operand's device is its own.
 * Returns what wsgemm_get_packed_size does; INVALID_VALUE: memory is badly aligned; INVALID_POINTER: packed or memory is NULL, or memory
 * is not on the operand's device; WORKSPACE_TOO_SMALL; NOT_SUPPORTED: the size is 0; ARCH_MISMATCH: this build has no kernels for it;
 * ALLOC_FAILED; DEVICE_ERROR. After an error *packed is as it was. */
WSGEMM_API wsgemm_status wsgemm_prepack(wsgemm_handle *h, const wsgemm_gemm_desc *desc, wsgemm_operand operand, void *memory,
                                        size_t bytes, wsgemm_packed **packed);

/* Frees the record, not the memory. Calls that have returned do not need it any more. NULL is allowed and does nothing. Returns SUCCESS;
 * INVALID_POINTER: it is none, or destroyed. */
WSGEMM_API wsgemm_status wsgemm_packed_destroy(wsgemm_packed *packed);

/* ---- Tuning -------------------------------------------------------------------------------------------------------------------
 *
 * A model of their speed chooses row, tile, COARSE_FACTOR, policy and blocking of every call. wsgemm_autotune measures instead, for one
 * shape on one device, and keeps what it found: in this process at once, and in a file for later ones. A call takes, from the first of these
 * that has something to say: what the handle or the environment forces; the user's file; a table that comes with the library; the model.
 * File and table serve shapes near to those that were measured (a factor of 1.4 in all), on the same device. What is tuned never changes a
 * bit of C: all candidates sum in the same order as the built-in choice, and each is compared with its C before its time counts.
 *
 * The user's file is $WSGEMM_TUNE, else $XDG_CACHE_HOME/wsgemm/tuning, else ~/.cache/wsgemm/tuning; WSGEMM_TUNE=off: none, nor the table. It
 * is read once, on the library's first call. It is text, a line for each shape, each with a checksum; lines that are damaged or
 * name an unknown kernel are not used, with one warning (wsgemm_last_error), nor are those of another version of the library. Any number of processes may write to
 * it at once: they take turns by FILE.lock, which is for those who may write FILE, and replace it as a whole; links to it stay links. A call
 * that waits longer than 30 s for the lock returns FILE_ERROR. */

/* What the search is doing, told after each measurement. Texts are valid during the call. */
typedef struct wsgemm_autotune_step {
  const char *candidate, *best; /* "row=sgemm_avx512_32x12 path=packed mc=192 ..." */
  double us;                    /* of this run; 0: not measured (budget 0), < 0: refused, since its C differs */
  double best_us, built_in_us;  /* medians so far; 0: none yet */
  double model;                 /* predicted time of the candidate in parts of the built-in choice's */
  int candidate_idx, n_candidates, n_alive, round;
  double elapsed_ms, budget_ms;
} wsgemm_autotune_step;

/* Not 0: the search stops here, and keeps what it has found. Runs on the calling thread and must not call wsgemm. */
typedef int (*wsgemm_autotune_progress)(void *user, const wsgemm_autotune_step *step);

typedef struct wsgemm_autotune_result {
  double before_us, after_us; /* medians of the built-in choice, and of what is kept; 0: not measured */
  int n_candidates, n_measured, n_refused, is_better, is_interrupted;
  double elapsed_ms;            /* all of the search, and what came before its first run */
  char before[192], after[192]; /* as wsgemm_autotune_step's candidate */
} wsgemm_autotune_result;

typedef struct wsgemm_autotune_options {
  size_t struct_bytes; /* sizeof(wsgemm_autotune_options) */
  int device;          /* the CUDA driver's ordinal; -1: the CPU */
  int is_exhaustive;   /* not 0: measures every candidate, once whatever the budget (but 0), and up to 5 times while it lasts */
  /* From the first run on; operands are made, and kernels loaded, before. < 0: 80 on a GPU, 1000 on the CPU; 0: nothing is measured or
   * kept. */
  double budget_ms;
  uint64_t seed;                     /* of the operands, and of the order in which candidates take turns */
  const char *file;                  /* NULL: the user's; "": none, for this process only */
  wsgemm_autotune_progress progress; /* NULL: none; with budget 0 it is told all candidates, in the model's order */
  void *user;
  wsgemm_autotune_result *result; /* NULL: not wanted */
} wsgemm_autotune_options;

#define WSGEMM_AUTOTUNE_OPTIONS_INIT \
  { sizeof(wsgemm_autotune_options), -1, 0, -1, 1, 0, 0, 0, 0 }

/* Tunes the product that desc describes: layout, ops, types, math, sizes, lds, batch, alpha and beta count; no pointer of it is looked at,
 * nor its epilogue and packed operands. Operands of random numbers are made for the time of the call: in host memory, or on the device, on
 * the handle's stream, whose work it waits for. The handle's settings count as in any call; what it forces is not tuned. Of half precision
 * on a GPU what is found with a beta serves products with a beta, and those with an epilogue of more than a bias and ReLU; what is found
 * without serves the others. A candidate is kept if it is 2 % faster than the built-in choice; else the file remembers that nothing better
 * was found. options: NULL for the defaults.
 * Returns SUCCESS, also if nothing better was found or the search was stopped; what wsgemm_gemm returns for a bad desc; INVALID_VALUE (an
 * option out of its range); ALLOC_FAILED (no memory for the operands); NO_DEVICE, INSUFFICIENT_DRIVER, DEVICE_ERROR, ARCH_MISMATCH;
 * CAPTURE_UNSAFE: the handle's stream is being captured; NOT_SUPPORTED: there is nothing to compute or to choose (matrix-vector products, and
 * small ones on the CPU: fewer than 2^18 multiply-adds); FILE_ERROR: found and in force, but not written to the file. The rows and columns that a
 * search marks are counted by wsgemm_get_fallback_count. What was found with a forced kernel or, on a GPU, COARSE_FACTOR is only told. */
WSGEMM_API wsgemm_status wsgemm_autotune(wsgemm_handle *h, const wsgemm_gemm_desc *desc, const wsgemm_autotune_options *options);

/* The name of the user's file ("" if there is none); its lines that are valid, whatever device and version they are of; and those of the
 * library's own table. Written as the texts below. file: NULL for the user's. */
WSGEMM_API size_t wsgemm_tuning_file(char *text, size_t bytes);
WSGEMM_API size_t wsgemm_tuning_read(const char *file, char *text, size_t bytes);
WSGEMM_API size_t wsgemm_tuning_table(char *text, size_t bytes);

/* Merges the valid lines of `text` (as wsgemm_tuning_read gives them) into a file, and takes them into use if it is the user's. *n_lines: how
 * many were valid (NULL: not wanted). Returns SUCCESS; INVALID_POINTER: text is NULL; INVALID_VALUE: text has lines, none of them valid;
 * FILE_ERROR; ALLOC_FAILED. */
WSGEMM_API wsgemm_status wsgemm_tuning_import(const char *text, const char *file, int *n_lines);

/* Empties a file, and forgets what was in force of it if it is the user's. Returns SUCCESS (also where there was none), FILE_ERROR. */
WSGEMM_API wsgemm_status wsgemm_tuning_clear(const char *file);

/* ---- Asking --------------------------------------------------------------------------------------------------------------
 * Texts: at most `bytes` bytes are written, always closed with NUL if bytes > 0. Returns the length of the whole text without
 * its NUL, as snprintf does; (NULL, 0) asks for it. */

/* Which kernel row, tile, blocking, COARSE_FACTOR, policy and thread count the call would use, one "key: value" a line. The
 * pointers in desc tell which backend it would be, or if all are NULL the calling thread's CUDA context, if it has one; nothing is read
 * through them. For a bad desc: the one line "error: ...". */
WSGEMM_API size_t wsgemm_explain(wsgemm_handle *h, const wsgemm_gemm_desc *desc, char *text, size_t bytes);

/* How this library was built: version, compiler, backends, kernel families; one "key: value" a line. */
WSGEMM_API size_t wsgemm_config(char *text, size_t bytes);

/* What the library found on this machine: CPU features, ISA in use, caches, affinity, cgroup quota, thread count and why,
 * WSGEMM_* variables in force or ignored; one "key: value" a line. */
WSGEMM_API size_t wsgemm_machine(char *text, size_t bytes);

WSGEMM_API int wsgemm_version(void);                /* WSGEMM_VERSION of the library in use */
WSGEMM_API const char *wsgemm_version_string(void); /* "0.1.0" */

/* The kernel registry: names of rows 0 .. count - 1 (NULL beyond), and whether this machine can run a row. */
WSGEMM_API int wsgemm_kernel_count(void);
WSGEMM_API const char *wsgemm_kernel_name(int row);
WSGEMM_API const char *wsgemm_kernel_backend(int row); /* "cpu" or "cuda" */
WSGEMM_API int wsgemm_kernel_usable(int row);

#ifdef __cplusplus
}
#endif
#endif
