/* arguments.h - what all products' calls do with their arguments: ops, checks of sizes,
 * leading dimensions, strides and overlaps, each of which says what is wrong in the caller's
 * words. */
#ifndef WS_API_ARGUMENTS_H
#define WS_API_ARGUMENTS_H
#include <stddef.h>

#include "core/problem.h"

#define WS_INLINE static inline __attribute__((always_inline))

static inline bool ws_is_transposed(wsgemm_op op) { return op == WSGEMM_TRANS || op == WSGEMM_CONJ_TRANS; }
static inline bool ws_is_conjugated(wsgemm_op op) { return op == WSGEMM_CONJ_TRANS || op == WSGEMM_CONJ_NO_TRANS; }
static inline bool ws_known_op(wsgemm_op op) { return op >= WSGEMM_NO_TRANS && op <= WSGEMM_CONJ_NO_TRANS; }
static inline bool ws_known_layout(wsgemm_layout layout) { return layout == WSGEMM_ROW_MAJOR || layout == WSGEMM_COL_MAJOR; }

/* op(X) of a matrix without structure. In place, member by member: a copy of what has just been
 * stored byte by byte would wait for the stores (13 ns). */
WS_INLINE void ws_set_operand(ws_matrix *x, wsgemm_type type, wsgemm_op op, const void *data, int64_t ld) {
  const bool is_complex = type == WSGEMM_C32 || type == WSGEMM_C64;
  x->data = data, x->ld = ld, x->stride = 0;
  x->type = type;
  x->trans = ws_is_transposed(op), x->conj = is_complex && ws_is_conjugated(op);
  x->structure = WS_GENERAL, x->stored_upper = false;
}

wsgemm_status ws_check_size(wsgemm_handle *h, const char *name, int64_t size);
wsgemm_status ws_check_layout(wsgemm_handle *h, wsgemm_layout layout);
wsgemm_status ws_check_op(wsgemm_handle *h, const char *name, wsgemm_op op);
/* Of `count` lines of `length` contiguous elements of so many bytes. */
wsgemm_status ws_check_ld(wsgemm_handle *h, const char *ld_name, int64_t length, int64_t count, int64_t ld, int64_t bytes);
/* Bytes from the first to behind the last element of a batch of matrices of positive size; -1 if
 * that overflows. */
int64_t ws_batch_bytes(int64_t length, int64_t count, int64_t ld, int64_t batch_count, int64_t stride, int64_t bytes);

/* Memory from the first to behind the last element of a batch. */
typedef struct ws_extent {
  const char *name;
  uintptr_t begin, bytes; /* 0: not there, or not read */
} ws_extent;
ws_extent ws_extent_of(const char *name, const void *x, int64_t batch_count, int64_t stride, int element_bytes, int64_t bytes);
bool ws_extents_meet(const ws_extent *x, const ws_extent *y);
#endif
