/* backend.h - the GPU backend as dispatch.c sees it. */
#ifndef WS_CUDA_BACKEND_H
#define WS_CUDA_BACKEND_H
#include "core/internal.h"

typedef enum ws_place { WS_PLACE_HOST, WS_PLACE_DEVICE, WS_PLACE_BAD } ws_place;

#ifdef WS_WITH_CUDA
/* Where tuning measures on a GPU; NULL: not built in. */
extern const struct ws_arena_class *const ws_cuda_arena;
/* Looks for a driver, initialises nothing. Once. */
void ws_cuda_init(void);
/* To be told in a forked child, which has no GPU if this process has used one. */
void ws_cuda_forked(void);
extern bool ws_cuda_may_have_devices; /* no: every pointer is host memory, and nothing else here is called */
/* Where the matrices lie that the problem reads or writes; on BAD the status says what is wrong. */
ws_place ws_cuda_place(wsgemm_handle *h, const ws_problem *p, int *device, wsgemm_status *status);
wsgemm_status ws_cuda_gemm(wsgemm_handle *h, const ws_problem *p, int device);
void ws_cuda_explain(wsgemm_handle *h, const ws_problem *p, int device, ws_text *t);
/* Device memory that the call works faster with. */
wsgemm_status ws_cuda_workspace_bytes(wsgemm_handle *h, const ws_problem *p, int device, size_t *bytes);
wsgemm_status ws_cuda_set_workspace(wsgemm_handle *h, void *workspace, size_t bytes);
/* Device memory for the packed form of A, or B (packed.c), and of how many slices it is; 0:
 * products of such operands use none. */
wsgemm_status ws_cuda_packed_bytes(wsgemm_handle *h, const ws_problem *p, bool is_a, int device, int *n_slices, size_t *bytes);
/* Makes it in packed->memory. */
wsgemm_status ws_cuda_prepack(wsgemm_handle *h, const wsgemm_packed *packed);
/* Whether it begins in memory of this device's. */
bool ws_cuda_is_on(const void *memory, int device);
/* Rows and columns marked by products of slices (slice_args.h) on the device so far. */
wsgemm_status ws_cuda_fallback_count(wsgemm_handle *h, int device, int64_t *count);
void ws_cuda_describe(ws_text *t); /* lines for wsgemm_machine */
int ws_cuda_kernel_count(void);
const char *ws_cuda_kernel_name(int row_idx);
wsgemm_type ws_cuda_kernel_type(int row_idx);
int ws_cuda_kernel_find(const char *name); /* -1: unknown */
#else
enum { ws_cuda_may_have_devices = 0 };
#define ws_cuda_arena NULL
static inline void ws_cuda_init(void) {}
static inline void ws_cuda_forked(void) {}
static inline ws_place ws_cuda_place(wsgemm_handle *h, const ws_problem *p, int *device, wsgemm_status *status) {
  (void)h, (void)p, (void)device, (void)status;
  return WS_PLACE_HOST;
}
static inline wsgemm_status ws_cuda_gemm(wsgemm_handle *h, const ws_problem *p, int device) {
  (void)h, (void)p, (void)device;
  return WSGEMM_NO_DEVICE;
}
static inline void ws_cuda_explain(wsgemm_handle *h, const ws_problem *p, int device, ws_text *t) {
  (void)h, (void)p, (void)device, (void)t;
}
static inline wsgemm_status ws_cuda_workspace_bytes(wsgemm_handle *h, const ws_problem *p, int device, size_t *bytes) {
  (void)h, (void)p, (void)device, (void)bytes;
  return WSGEMM_NO_DEVICE;
}
static inline wsgemm_status ws_cuda_set_workspace(wsgemm_handle *h, void *workspace, size_t bytes) {
  (void)h, (void)workspace, (void)bytes;
  return WSGEMM_NO_DEVICE;
}
static inline wsgemm_status ws_cuda_packed_bytes(wsgemm_handle *h, const ws_problem *p, bool is_a, int device, int *n_slices,
                                                 size_t *bytes) {
  (void)h, (void)p, (void)is_a, (void)device, (void)n_slices, (void)bytes;
  return WSGEMM_NO_DEVICE;
}
static inline wsgemm_status ws_cuda_prepack(wsgemm_handle *h, const wsgemm_packed *packed) {
  (void)h, (void)packed;
  return WSGEMM_NO_DEVICE;
}
static inline bool ws_cuda_is_on(const void *memory, int device) {
  (void)memory, (void)device;
  return false;
}
static inline wsgemm_status ws_cuda_fallback_count(wsgemm_handle *h, int device, int64_t *count) {
  (void)h, (void)device, (void)count;
  return WSGEMM_SUCCESS;
}
static inline void ws_cuda_describe(ws_text *t) { ws_text_add(t, "gpu: not built in\n"); }
static inline int ws_cuda_kernel_count(void) { return 0; }
static inline const char *ws_cuda_kernel_name(int row_idx) {
  (void)row_idx;
  return NULL;
}
static inline wsgemm_type ws_cuda_kernel_type(int row_idx) {
  (void)row_idx;
  return WSGEMM_F32;
}
static inline int ws_cuda_kernel_find(const char *name) {
  (void)name;
  return -1;
}
#endif
#endif
