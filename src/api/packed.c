/* packed.c - operands in a form made once for many products: the records of them. What that form
 * is, the backend knows. */
#include <stdlib.h>

#include "api/problem.h"
#include "core/backend.h"
#include "core/cancel.h"
#include "core/status.h"
#include "core/tile.h"

enum { ALIGN = 256 };

/* ---- making one ------------------------------------------------------------------------------ */

/* A product of this operand with one of a single row or column, whose pointers all are the
 * operand's: they tell the device. */
static wsgemm_status problem_around(wsgemm_handle *h, const wsgemm_gemm_desc *desc, wsgemm_operand which, ws_problem *p,
                                    bool *is_a) {
  if (!desc) return ws_fail(h, WSGEMM_INVALID_POINTER, "desc is NULL");
  if (which != WSGEMM_OPERAND_A && which != WSGEMM_OPERAND_B)
    return ws_fail(h, WSGEMM_INVALID_VALUE, "operand is %d; it must be 0 (A) or 1 (B)", (int)which);
  wsgemm_gemm_desc d = WSGEMM_GEMM_DESC_INIT;
  const bool is_b = which == WSGEMM_OPERAND_B;
  union {
    const void *given;
    void *wanted;
  } data = {is_b ? desc->b : desc->a};
  d.struct_bytes = desc->struct_bytes == WSGEMM_GEMM_DESC_BASE_BYTES ? sizeof d : desc->struct_bytes;
  d.layout = desc->layout, d.math = desc->math, d.scalar_mode = desc->scalar_mode;
  d.transa = is_b ? WSGEMM_NO_TRANS : desc->transa, d.transb = is_b ? desc->transb : WSGEMM_NO_TRANS;
  d.type_a = desc->type_a, d.type_b = desc->type_b, d.type_c = desc->type_c, d.type_scalar = desc->type_scalar;
  d.m = is_b ? 1 : desc->m, d.n = is_b ? desc->n : 1, d.k = desc->k;
  d.a = d.b = data.given, d.c = data.wanted;
  const bool by_rows = d.layout == WSGEMM_ROW_MAJOR;
  d.lda = is_b ? by_rows ? ws_max(1, d.k) : 1 : desc->lda, d.ldb = is_b ? desc->ldb : by_rows ? 1 : ws_max(1, d.k);
  d.ldc = ws_max(1, by_rows ? d.n : d.m);
  d.batch_count = desc->batch_count, d.stride_a = is_b ? 0 : desc->stride_a, d.stride_b = is_b ? desc->stride_b : 0;
  *is_a = is_b == (d.layout == WSGEMM_ROW_MAJOR);
  const wsgemm_status status = ws_problem_of(h, &d, p);
  if (status) return status;
  p->scale.alpha_zero = false;
  return data.given ? WSGEMM_SUCCESS : ws_fail(h, WSGEMM_INVALID_POINTER, "%s is NULL", is_b ? "b" : "a");
}

static wsgemm_status packed_bytes(const ws_call *call, const ws_problem *p, bool is_a, int *device, int *n_slices,
                                  size_t *bytes) {
  *bytes = 0;
  wsgemm_status status = WSGEMM_SUCCESS;
  if (!ws_devices || ws_is_empty(p) || p->k == 0) return status;
  const ws_place place = ws_devices->place(call, p, device, &status);
  return place == WS_PLACE_DEVICE ? ws_devices->packed_bytes(call, p, is_a, *device, n_slices, bytes) : status;
}

wsgemm_status wsgemm_get_packed_size(wsgemm_handle *handle, const wsgemm_gemm_desc *desc, wsgemm_operand which, size_t *bytes) {
  WS_UNCANCELLED;
  wsgemm_handle *h = ws_handle(handle);
  if (!h) return ws_fail_handle();
  if (!bytes) return ws_fail(h, WSGEMM_INVALID_POINTER, "bytes is NULL");
  ws_problem p;
  bool is_a;
  int device, n_slices;
  const wsgemm_status status = problem_around(h, desc, which, &p, &is_a);
  if (status) return status;
  const ws_call call = ws_call_of(h);
  return packed_bytes(&call, &p, is_a, &device, &n_slices, bytes);
}

wsgemm_status wsgemm_prepack(wsgemm_handle *handle, const wsgemm_gemm_desc *desc, wsgemm_operand which, void *memory,
                             size_t bytes, wsgemm_packed **packed) {
  WS_UNCANCELLED;
  wsgemm_handle *h = ws_handle(handle);
  if (!h) return ws_fail_handle();
  if (!packed) return ws_fail(h, WSGEMM_INVALID_POINTER, "packed is NULL");
  if (!memory) return ws_fail(h, WSGEMM_INVALID_POINTER, "memory is NULL");
  if ((uintptr_t)memory % ALIGN != 0)
    return ws_fail(h, WSGEMM_INVALID_VALUE, "memory is aligned to less than %d bytes", (int)ALIGN);
  wsgemm_packed made = {.magic = WS_PACKED_MAGIC, .memory = memory};
  const ws_call call = ws_call_of(h);
  size_t needed;
  wsgemm_status status = problem_around(h, desc, which, &made.of, &made.is_a);
  if (!status) status = packed_bytes(&call, &made.of, made.is_a, &made.device, &made.n_slices, &needed);
  if (status) return status;
  if (needed == 0) return ws_fail(h, WSGEMM_NOT_SUPPORTED, "products of such an operand use no packed form of it");
  if (bytes < needed)
    return ws_fail(h, WSGEMM_WORKSPACE_TOO_SMALL, "memory has %zu bytes; the packed operand needs %zu", bytes, needed);
  if (!ws_devices->is_on(memory, made.device))
    return ws_fail(h, WSGEMM_INVALID_POINTER, "memory is not device memory of device %d, where the operand is", made.device);
  wsgemm_packed *record = malloc(sizeof *record);
  if (!record) return ws_fail(h, WSGEMM_ALLOC_FAILED, "no memory for the record of a packed operand");
  status = ws_devices->prepack(&call, &made);
  *record = made;
  if (status)
    free(record);
  else
    *packed = record;
  return status;
}

wsgemm_status wsgemm_packed_destroy(wsgemm_packed *packed) {
  if (!packed) return WSGEMM_SUCCESS;
  if (packed->magic != WS_PACKED_MAGIC)
    return ws_fail(NULL, WSGEMM_INVALID_POINTER, "packed was not made by wsgemm_prepack, or is already destroyed");
  *(volatile uint64_t *)&packed->magic = 0;
  free(packed);
  return WSGEMM_SUCCESS;
}
