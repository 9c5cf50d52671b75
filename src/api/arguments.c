/* arguments.c - see arguments.h. */
#include "api/arguments.h"

#include "core/status.h"
#include "core/tile.h"

wsgemm_status ws_check_layout(wsgemm_handle *h, wsgemm_layout layout) {
  if (ws_known_layout(layout)) return WSGEMM_SUCCESS;
  return ws_fail(h, WSGEMM_INVALID_VALUE, "layout is %d; it must be 101 (row-major) or 102 (column-major)", (int)layout);
}

wsgemm_status ws_check_op(wsgemm_handle *h, const char *name, wsgemm_op op) {
  if (ws_known_op(op)) return WSGEMM_SUCCESS;
  return ws_fail(h, WSGEMM_INVALID_VALUE, "%s is %d; it must be 111 .. 114", name, (int)op);
}

wsgemm_status ws_check_size(wsgemm_handle *h, const char *name, int64_t size) {
  if (size >= 0) return WSGEMM_SUCCESS;
  return ws_fail(h, WSGEMM_INVALID_VALUE, "%s is %lld; it must be at least 0", name, (long long)size);
}

wsgemm_status ws_check_ld(wsgemm_handle *h, const char *ld_name, int64_t length, int64_t count, int64_t ld, int64_t bytes) {
  int64_t extent;
  const int64_t least = ws_max(1, length);
  if (ld < least)
    return ws_fail(h, WSGEMM_INVALID_VALUE, "%s is %lld; it must be at least %lld", ld_name, (long long)ld, (long long)least);
  if (__builtin_mul_overflow(ld, count, &extent) || __builtin_mul_overflow(extent, bytes, &extent))
    return ws_fail(h, WSGEMM_INVALID_VALUE, "%s is %lld; %lld times that many elements are more than 2^63 - 1 bytes", ld_name,
                   (long long)ld, (long long)count);
  return WSGEMM_SUCCESS;
}

int64_t ws_batch_bytes(int64_t length, int64_t count, int64_t ld, int64_t batch_count, int64_t stride, int64_t bytes) {
  int64_t extent;
  if (length == 0 || count == 0) return 0;
  if (stride == INT64_MIN || __builtin_mul_overflow(stride < 0 ? -stride : stride, batch_count - 1, &extent)) return -1;
  if (__builtin_add_overflow(extent, (count - 1) * ld + length, &extent)) return -1;
  return __builtin_mul_overflow(extent, bytes, &extent) ? -1 : extent;
}

ws_extent ws_extent_of(const char *name, const void *x, int64_t batch_count, int64_t stride, int element_bytes, int64_t bytes) {
  const int64_t before = stride < 0 ? stride * (batch_count - 1) * element_bytes : 0;
  return (ws_extent){name, (uintptr_t)x + (uintptr_t)before, x ? (uintptr_t)bytes : 0};
}

bool ws_extents_meet(const ws_extent *x, const ws_extent *y) {
  return x->bytes > 0 && y->bytes > 0 && x->begin < y->begin + y->bytes && y->begin < x->begin + x->bytes;
}
