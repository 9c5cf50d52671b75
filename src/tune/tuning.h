/* tuning.h - what tuning may choose for a product, for which products it was found, and where it is
 * kept.
 *
 *   kind.c     what a product has in common with those that a line of its serves
 *   line.c     an entry as a line of text, and back
 *   file.c     the files that such lines are kept in
 *   tuned.c    the table that comes with the library
 *   lookup.c   the tables in force, and the look-up of a call
 *   search.c   the search, over an arena of a backend's (arena.c, cpu/arena.c, cuda/host/arena.c)
 *
 * No parameter here may change the bits of a product within its numerics class; ws_numerics names
 * those that tuning keeps apart. */
#ifndef WS_TUNING_H
#define WS_TUNING_H
#include "core/problem.h"
#include "core/system.h"
#include "core/text.h"

/* ---- of which numerics (what is chosen: ws_tuning in core/tuned.h) --------------------------- */

/* In which order an element of C is summed: X(name, text). Rows, paths and parts of k of one class
 * give the same bits. */
#define WS_NUMERICS_MAP(X)                                                              \
  X(CHAIN, "chain") /* multiply-adds in one chain, on CPUs cut by kc */                 \
  X(PARTS, "parts") /* k in parts, by their number (split.h) */                         \
  X(FMA16, "fma16") /* half precision under PEDANTIC, in one chain */                   \
  X(FMA16_PARTS, "fma16_parts")                                                         \
  X(VECTOR, "vector")     /* kernels of matrix-vector products */                       \
  X(WGMMA, "wgmma")       /* tensor cores of cc 9.0 */                                  \
  X(WGMMA_K2, "wgmma_k2") /* the same, k in two parts */                                \
  X(WGMMA_K4, "wgmma_k4")                                                               \
  X(WGMMA_K8, "wgmma_k8")                                                               \
  X(DIRECT_G1, "direct_g1") /* direct rows, by groups of a block that sum parts of k */ \
  X(DIRECT_G2, "direct_g2")                                                             \
  X(DIRECT_G4, "direct_g4")                                                             \
  X(DIRECT_G8, "direct_g8")                                                             \
  X(DIRECT_G4_K8, "direct_g4_k8") /* and by blocks of a cluster */                      \
  X(DIRECT_G8_K4, "direct_g8_k4")                                                       \
  X(DIRECT_G8_K8, "direct_g8_k8")                                                       \
  X(FLAT_G6, "flat_g6") /* flat rows, likewise */                                       \
  X(FLAT_G6_K2, "flat_g6_k2")                                                           \
  X(FLAT_G12, "flat_g12")                                                               \
  X(FLAT_G12_K2, "flat_g12_k2")                                                         \
  X(DMMA_G1, "dmma_g1") /* dmma rows, likewise */                                       \
  X(DMMA_G1_K2, "dmma_g1_k2")                                                           \
  X(DMMA_G1_K3, "dmma_g1_k3")                                                           \
  X(DMMA_G1_K4, "dmma_g1_k4")                                                           \
  X(DMMA_G1_K8, "dmma_g1_k8")                                                           \
  X(DMMA_G1_K16, "dmma_g1_k16")                                                         \
  X(DMMA_G2, "dmma_g2")                                                                 \
  X(DMMA_G2_K4, "dmma_g2_k4")                                                           \
  X(DMMA_G2_K8, "dmma_g2_k8")                                                           \
  X(DMMA_G2_K16, "dmma_g2_k16")                                                         \
  X(DMMA_G4, "dmma_g4")                                                                 \
  X(DMMA_G4_K8, "dmma_g4_k8")                                                           \
  X(DMMA_G4_K16, "dmma_g4_k16")                                                         \
  X(FFMA_G2, "ffma_g2") /* ffma rows, likewise; those of one part are a chain */        \
  X(FFMA_G2_K2, "ffma_g2_k2")                                                           \
  X(FFMA_G2_K4, "ffma_g2_k4")                                                           \
  X(FFMA_G2_K8, "ffma_g2_k8")                                                           \
  X(FFMA_G4, "ffma_g4")                                                                 \
  X(FFMA_G4_K4, "ffma_g4_k4")                                                           \
  X(FFMA_G4_K8, "ffma_g4_k8")                                                           \
  X(FFMA_G4_K16, "ffma_g4_k16")                                                         \
  X(TF32X2_G1, "tf32x2_g1") /* tf32 rows, likewise, of two slices and of one */         \
  X(TF32X2_G1_K2, "tf32x2_g1_k2")                                                       \
  X(TF32X2_G1_K4, "tf32x2_g1_k4")                                                       \
  X(TF32X2_G1_K8, "tf32x2_g1_k8")                                                       \
  X(TF32X2_G2, "tf32x2_g2")                                                             \
  X(TF32X2_G2_K4, "tf32x2_g2_k4")                                                       \
  X(TF32X2_G2_K8, "tf32x2_g2_k8")                                                       \
  X(TF32X2_G2_K16, "tf32x2_g2_k16")                                                     \
  X(TF32X2_G4, "tf32x2_g4")                                                             \
  X(TF32X2_G4_K2, "tf32x2_g4_k2")                                                       \
  X(TF32X2_G4_K4, "tf32x2_g4_k4")                                                       \
  X(TF32X2_G4_K8, "tf32x2_g4_k8")                                                       \
  X(TF32X2_G4_K16, "tf32x2_g4_k16")                                                     \
  X(TF32X1_G1, "tf32x1_g1")                                                             \
  X(TF32X1_G1_K2, "tf32x1_g1_k2")                                                       \
  X(TF32X1_G1_K3, "tf32x1_g1_k3")                                                       \
  X(TF32X1_G1_K4, "tf32x1_g1_k4")                                                       \
  X(TF32X1_G1_K8, "tf32x1_g1_k8")                                                       \
  X(TF32X1_G1_K16, "tf32x1_g1_k16")                                                     \
  X(TF32X1_G2, "tf32x1_g2")                                                             \
  X(TF32X1_G2_K4, "tf32x1_g2_k4")                                                       \
  X(TF32X1_G2_K8, "tf32x1_g2_k8")                                                       \
  X(TF32X1_G4, "tf32x1_g4")                                                             \
  X(TF32X1_G4_K2, "tf32x1_g4_k2")                                                       \
  X(TF32X1_G4_K4, "tf32x1_g4_k4")                                                       \
  X(TF32X1_G4_K8, "tf32x1_g4_k8")                                                       \
  X(TF32X1_G4_K16, "tf32x1_g4_k16")                                                     \
  X(PAIRS, "pairs")         /* outer rows of complex ones: both products of each k */   \
  X(TF32W2_G1, "tf32w2_g1") /* by wgmma; of one slice they sum as tf32x1 does */        \
  X(TF32W2_G1_K2, "tf32w2_g1_k2")                                                       \
  X(TF32W2_G1_K3, "tf32w2_g1_k3")                                                       \
  X(TF32W2_G1_K4, "tf32w2_g1_k4")                                                       \
  X(TF32W2_G1_K8, "tf32w2_g1_k8")                                                       \
  X(TF32W2_G1_K16, "tf32w2_g1_k16")                                                     \
  X(TF32W2_G2, "tf32w2_g2")                                                             \
  X(TF32W2_G2_K4, "tf32w2_g2_k4")                                                       \
  X(TF32W2_G2_K8, "tf32w2_g2_k8")                                                       \
  X(TF32W2_G2_K16, "tf32w2_g2_k16")                                                     \
  X(TF32M1, "tf32m1") /* by tensor maps */                                              \
  X(TF32M1_K2, "tf32m1_k2")                                                             \
  X(TF32M1_K3, "tf32m1_k3")                                                             \
  X(TF32M1_K4, "tf32m1_k4")                                                             \
  X(TF32M1_K8, "tf32m1_k8")                                                             \
  X(TF32M2, "tf32m2")                                                                   \
  X(TF32M2_K2, "tf32m2_k2")                                                             \
  X(TF32M2_K3, "tf32m2_k3")                                                             \
  X(TF32M2_K4, "tf32m2_k4")                                                             \
  X(TF32M2_K8, "tf32m2_k8")                                                             \
  X(TF32M2_K16, "tf32m2_k16")                                                           \
  X(F16X1, "f16x1") /* slices of FP16 and of BF16 */                                    \
  X(F16X3, "f16x3")                                                                     \
  X(BF16X6, "bf16x6")

typedef enum ws_numerics {
#define WS_NUMERICS_ENUM(name, text) WS_NUMERICS_##name,
  WS_NUMERICS_MAP(WS_NUMERICS_ENUM)
#undef WS_NUMERICS_ENUM
      WS_N_NUMERICS
} ws_numerics;
const char *ws_numerics_name(ws_numerics numerics);

/* ---- for what -------------------------------------------------------------------------------- */

enum { WS_DEVICE_NAME_BYTES = 80, WS_ARCH_BYTES = 40, WS_VERSION_BYTES = 24, WS_ROW_NAME_BYTES = 64 };

typedef struct ws_tuning_device {
  char name[WS_DEVICE_NAME_BYTES]; /* "NVIDIA H200" */
  char arch[WS_ARCH_BYTES];        /* "sm_90"; of CPUs instruction set and caches: "avx512/48K/1024K" */
  int units;                       /* SMs, processors */
  bool is_gpu;                     /* not in the text: of `arch` */
} ws_tuning_device;

/* What must be equal for an entry to serve a product, but for device and shape. */
typedef struct ws_tuning_kind {
  /* 0: gemm; else as ws_tuning_kind_of says. is_right: of routines with a structured operand, where
   * it stands. is_upper: of the others, and of triangular operands, which triangle (symm and hemm
   * cost the same by both). in_place: trmm, C is its operand. */
  uint8_t routine;
  bool is_right, is_upper, in_place;
  wsgemm_type type, type_c;
  ws_numerics numerics;
  bool a_trans, b_trans, single_a, single_b; /* single: GPU, comes by single elements */
  /* GPU, kernels of tensor cores of cc 9.0: the store reads C or goes through more of an epilogue
   * than a bias and ReLU, which other rows are good at. */
  bool full_store;
  /* GPU, not in the text: the columns of A or B are no whole lines of 128 bytes in memory, which
   * other rows are good at. Of a line as its own shape has them without an ld; this is asked of
   * neighbours alone. */
  bool partial_lines;
  int workers; /* CPU: threads that the call may use; GPU: 0 */
} ws_tuning_kind;

typedef struct ws_tuning_shape {
  int64_t m, n, k, batch;
} ws_tuning_shape;

typedef struct ws_tuning_entry {
  ws_tuning_device device;
  char version[WS_VERSION_BYTES]; /* of the library that found it */
  ws_tuning_kind kind;
  ws_tuning_shape shape;
  char row[WS_ROW_NAME_BYTES];
  ws_tuning tuning; /* row: not looked at */
  double before_us, after_us;
} ws_tuning_entry;

/* Of a product: types, ops, and the routine that its structure and region make it: symm, hemm or
 * trmm by its structured operand; else syrk, or herk where the diagonal is real, by its region
 * (gemmtr, and each product of syr2k and her2k, is the same work). */
ws_tuning_kind ws_tuning_kind_of(const ws_problem *p);
/* Of a triangular system. */
ws_tuning_kind ws_tuning_kind_of_system(const ws_system *s);
/* "gemm" for 0. */
const char *ws_tuning_routine_name(int routine);
/* Whether lines of the routine tell sides, or triangles, apart. */
bool ws_tuning_has_side(int routine);
bool ws_tuning_has_uplo(int routine);

/* ---- text: line.c ---------------------------------------------------------------------------- */

#define WS_TUNING_HEADER_OF_ALL "# wsgemm tuning "
#define WS_TUNING_HEADER WS_TUNING_HEADER_OF_ALL "1\n"
enum { WS_TUNING_LINE_BYTES = 640 };

/* What a line cannot hold of a device's name becomes '?'. */
void ws_tuning_clean_name(char *name);
/* "row=... policy=...", what differs from the model's; without a row's name, of the parameters
 * alone. */
void ws_tuning_describe(const char *row, const ws_tuning *tuning, ws_text *t);
/* The entry's line with its checksum and '\n'. */
void ws_tuning_write_line(const ws_tuning_entry *e, ws_text *t);
/* Of `length` bytes without '\n'. false: damaged, or none; *e is then of no use. */
bool ws_tuning_read_line(const char *line, size_t length, ws_tuning_entry *e);

typedef struct ws_tuning_list {
  ws_tuning_entry *entry;
  int n, most;
  int n_bad; /* lines that were none */
  /* Lines of other versions that have a right checksum, but cannot be read here, each with its
   * '\n'. A writer leaves them in the file. */
  char *foreign;
  size_t n_foreign_bytes;
  int n_foreign;
  bool has_header; /* of a file that was read */
} ws_tuning_list;

void ws_tuning_list_free(ws_tuning_list *list);
/* Takes the place of an entry of the same device, version, kind and shape. false: out of memory. */
bool ws_tuning_list_put(ws_tuning_list *list, const ws_tuning_entry *e);
/* Without a look at what is there. */
bool ws_tuning_list_add(ws_tuning_list *list, const ws_tuning_entry *e);
/* Empty lines and those that begin with '#' are none, and not counted as bad. false: out of
 * memory. */
bool ws_tuning_list_read(ws_tuning_list *list, const char *text, size_t length);
/* The entries; not the foreign lines. */
void ws_tuning_list_write(const ws_tuning_list *list, ws_text *t);

/* ---- files: file.c --------------------------------------------------------------------------- */

/* Adds a file's valid lines. A file that is not there has none. false, with errno: it cannot be
 * read, or is no file of ours (EINVAL). */
bool ws_tuning_file_read(const char *path, ws_tuning_list *list);
enum { WS_TUNING_LOCK_S = 30 };
/* Merges the entries into the file, or (NULL) empties it; makes its folder if need be. A file that
 * is not of this kind is left as it is, and so are foreign lines, but by NULL. Writers take turns
 * by PATH.lock; who is killed at any point leaves the old file or the new one. false, with errno;
 * ETIMEDOUT: another held the lock for WS_TUNING_LOCK_S seconds (a writer takes some ms). */
bool ws_tuning_file_merge(const char *path, const ws_tuning_list *entries);

/* The name of the lock that writers of this file take. */
void ws_tuning_file_lock_name(const char *path, ws_text *t);
/* Whether it is there and the system does not let us open it, such as another user's. */
bool ws_tuning_file_lock_is_closed(const char *path);

/* ---- the library's own table: tuned.c -------------------------------------------------------- */

void ws_tuned_write(ws_text *t);
/* Adds the entries of a device's architecture and, of GPUs, size; the others are not even parsed.
 * false: out of memory. */
bool ws_tuned_read(const ws_tuning_device *device, ws_tuning_list *list);

/* ---- tables in force: lookup.c --------------------------------------------------------------- */

/* Reads the user's file (`setting`: what WSGEMM_TUNE says, NULL if nothing; "off": no file, no
 * table). Once, by library.c. */
void ws_tune_init(const char *setting);
/* The user's file; "": none. */
const char *ws_tune_path(void);
/* Replaces what is in force of the user's file by what it holds now; keeps what was only found in
 * this process. */
void ws_tune_reload(void);
/* Into force, for this process. false: out of memory. */
bool ws_tune_put(const ws_tuning_entry *e);
/* Forgets what was found in this process, and reads the user's file again. */
void ws_tune_forget(void);
/* For fork handlers (library.c). */
void ws_tune_lock(void);
void ws_tune_unlock(void);

/* Which tables a device's calls look into: slot 0 is the CPU's, 1 + i that of GPU i. */
enum { WS_TUNE_CPU = 0, WS_N_TUNE_SLOTS = 65 };
/* Once for a slot, before any question of it. */
void ws_tune_set_device(int slot, const ws_tuning_device *device);
bool ws_tune_device(int slot, ws_tuning_device *device);

/* Whether there is any. */
bool ws_tune_has_table(int slot);
/* Multiply-adds of a batch on the CPU below which a look-up would be felt: neither tuned nor looked
 * up. */
enum { WS_TUNE_LEAST_WORK = 64 * 64 * 64 };
/* *line: the shape that what is found was found for; NULL: not wanted. */
ws_tuned ws_tune_find_line(int slot, const ws_tuning_kind *kind, const ws_tuning_shape *shape, ws_tuning_shape *line);
static inline ws_tuned ws_tune_find(int slot, const ws_tuning_kind *kind, const ws_tuning_shape *shape) {
  return ws_tune_find_line(slot, kind, shape, NULL);
}
/* What the kind's partial_lines is for these lds: kernels that read copies do not see the lines of
 * what was copied. */
bool ws_tuning_has_partial_lines(const ws_tuning_kind *kind, int64_t lda, int64_t ldb);

/* ---- search: search.c ------------------------------------------------------------------------ */

typedef struct ws_candidate {
  ws_tuning tuning;
  char row[WS_ROW_NAME_BYTES];
  double model; /* predicted time, in any unit */
} ws_candidate;

enum { WS_MOST_CANDIDATES = 512 };

/* A place to measure in: a backend's, or a test's. */
typedef struct ws_arena ws_arena;
typedef struct ws_arena_class ws_arena_class;
struct ws_arena_class {
  /* Makes operands, puts them into the problem, and describes device and kind in *e. */
  wsgemm_status (*open)(ws_arena *arena);
  /* All candidates, *n of them, at most WS_MOST_CANDIDATES; first the built-in choice, with all of
   * its parameters. None: there is nothing to choose. */
  wsgemm_status (*candidates)(ws_arena *arena, ws_candidate *candidates, int *n);
  /* Readies what the first run would otherwise be the slower for; fills C with what it begins
   * with. */
  wsgemm_status (*prepare)(ws_arena *arena, const ws_tuning *tuning);
  /* One run with caches cleared, and its time. */
  wsgemm_status (*run)(ws_arena *arena, const ws_tuning *tuning, double *us);
  /* Keeps C as what others must be equal to. */
  wsgemm_status (*keep)(ws_arena *arena);
  wsgemm_status (*differs)(ws_arena *arena, bool *differs);
  double (*now_ms)(ws_arena *arena);
  void (*close)(ws_arena *arena); /* also after a failed open */
};

struct ws_arena {
  const ws_arena_class *is;
  wsgemm_handle *h;
  bool is_system; /* what is tuned is `system`, not `problem` */
  ws_problem problem;
  ws_system system;
  uint64_t seed;
  int device;
  void *own;             /* the class's */
  ws_tuning_entry entry; /* device and kind of the product */
};

/* For the classes: arena.c. */
double ws_arena_now_ms(ws_arena *arena);
/* Of a batch of so many lines, whose strides are made positive: in whole 16 bytes, at most 2^46. */
size_t ws_arena_bytes(const ws_problem *p, int64_t ld, int64_t n_lines, int64_t *stride, wsgemm_type type);
/* Begins the entry: device, shape of the product or system, and version. */
void ws_arena_describe(ws_arena *arena);

extern const ws_arena_class ws_cpu_arena;
/* Of a product that is no matrix-vector one, and of a triangular system. */
ws_tuning_kind ws_cpu_tuning_kind(const ws_call *call, const ws_problem *p);
ws_tuning_kind ws_cpu_tuning_kind_of_system(const ws_call *call, const ws_system *s);
void ws_cpu_tuning_device(int n_threads, ws_tuning_device *device);

/* The search alone; nothing is put into force or written. e: the winner's entry (the built-in
 * choice's, if nothing better was confirmed). is_settled: the search was not stopped, and its
 * budget lasted for what had to be confirmed. */
wsgemm_status ws_search(ws_arena *arena, const wsgemm_autotune_options *options, wsgemm_autotune_result *result,
                        ws_tuning_entry *e, bool *is_settled);

#endif
