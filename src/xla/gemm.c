/* gemm.c - the functions that XLA calls for wsgemm.jax: a stack of products of row-major arrays,
 *
 *   C = op(A) op(B),    A (..., m, k), B (..., k, n), C (..., m, n), transposed by attributes trans_a, trans_b,
 *
 * in host memory, or on a GPU on the stream that XLA names. A dimension of the stack that is 1 in A
 * or B serves all of C's. Everything is checked: XLA's arrays may be anything that Python wrote. */
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "ffi.h"
#include "wsgemm.h"

#define EXPORTED __attribute__((visibility("default")))
EXPORTED ws_xla_error *wsgemm_xla_gemm_host(ws_xla_call *call);
EXPORTED ws_xla_error *wsgemm_xla_gemm_cuda(ws_xla_call *call);

enum { MOST_DIMS = 16 };

static ws_xla_error *failed(const ws_xla_call *call, int code, const char *message) {
  ws_xla_error_create arguments = {.struct_size = sizeof arguments, .message = message, .code = code};
  return call->api->error_create(&arguments);
}

/* XLA asks once what the function is: of which version of the interface. */
static bool answers_metadata(const ws_xla_call *call) {
  if (!call->extension || call->extension->type != WS_XLA_METADATA) return false;
  ws_xla_metadata *metadata = ((ws_xla_metadata_extension *)call->extension)->metadata;
  metadata->version.major = 0;
  metadata->version.minor = call->api ? call->api->version.minor : 1;
  metadata->traits = 0;
  return true;
}

static bool find_type(int told, wsgemm_type *type, int64_t *bytes) {
  switch (told) {
#define CASE(number, name, size) \
  case number:                   \
    *type = name;                \
    *bytes = size;               \
    return true;
    WS_XLA_TYPES(CASE)
#undef CASE
  default:
    return false;
  }
}

/* An attribute of 32 bits; -1 if there is none of this name. */
static int attribute(const ws_xla_attributes *all, const char *name) {
  for (int64_t i = 0; i < all->size; i++) {
    const ws_xla_scalar *scalar = all->values[i];
    if (all->types[i] == WS_XLA_SCALAR && all->names[i]->len == strlen(name) && !memcmp(all->names[i]->ptr, name, strlen(name)) &&
        scalar->type == WS_XLA_S32)
      return *(const int32_t *)scalar->value;
  }
  return -1;
}

/* One call's arrays: A, B, C. */
typedef struct stack {
  const ws_xla_array *x[3];
  wsgemm_gemm_desc desc;
  int64_t bytes; /* of an element */
  int n_dims;    /* of the stack */
  int64_t sizes[MOST_DIMS];
  int64_t steps[MOST_DIMS][3];
} stack;

/* NULL, or what is wrong. */
static const char *read_arrays(const ws_xla_call *call, stack *s) {
  if (call->arguments.size != 2 || call->results.size != 1) return "wsgemm_gemm takes two arrays and gives one";
  s->x[0] = call->arguments.values[0], s->x[1] = call->arguments.values[1], s->x[2] = call->results.values[0];
  wsgemm_type type;
  if (!find_type(s->x[0]->type, &type, &s->bytes)) return "wsgemm_gemm: an element type that no product takes";
  const int64_t rank = s->x[0]->rank;
  for (int i = 1; i < 3; i++)
    if (s->x[i]->type != s->x[0]->type || s->x[i]->rank != rank) return "wsgemm_gemm: arrays of several types or ranks";
  if (rank < 2 || rank > MOST_DIMS + 2) return "wsgemm_gemm takes stacks of matrices of up to 16 dimensions";
  const int trans_a = attribute(&call->attributes, "trans_a"), trans_b = attribute(&call->attributes, "trans_b");
  if (trans_a < 0 || trans_a > 1 || trans_b < 0 || trans_b > 1) return "wsgemm_gemm: trans_a or trans_b is missing";
  const int64_t *a = s->x[0]->dims + rank - 2, *b = s->x[1]->dims + rank - 2, *c = s->x[2]->dims + rank - 2;
  if (a[trans_a] != c[0] || a[!trans_a] != b[trans_b] || b[!trans_b] != c[1]) return "wsgemm_gemm: shapes do not fit";
  s->desc = (wsgemm_gemm_desc)WSGEMM_GEMM_DESC_INIT;
  s->desc.layout = WSGEMM_ROW_MAJOR;
  s->desc.transa = trans_a ? WSGEMM_TRANS : WSGEMM_NO_TRANS;
  s->desc.transb = trans_b ? WSGEMM_TRANS : WSGEMM_NO_TRANS;
  s->desc.type_a = s->desc.type_b = s->desc.type_c = s->desc.type_scalar = type;
  s->desc.m = c[0], s->desc.n = c[1], s->desc.k = b[trans_b];
  s->desc.lda = a[1] > 0 ? a[1] : 1, s->desc.ldb = b[1] > 0 ? b[1] : 1, s->desc.ldc = c[1] > 0 ? c[1] : 1;
  return NULL;
}

/* The scalars' type and values. */
static void set_scalars(wsgemm_gemm_desc *desc) {
  switch (desc->type_a) {
  case WSGEMM_F64:
  case WSGEMM_C64:
    desc->alpha.z.re = 1;
    break;
  case WSGEMM_F16:
  case WSGEMM_BF16:
    desc->type_scalar = WSGEMM_F32;
    desc->alpha.s = 1;
    break;
  default:
    desc->alpha.c.re = 1;
  }
}

static int64_t elements(const ws_xla_array *x) {
  const int64_t *dims = x->dims + x->rank - 2;
  return dims[0] * dims[1];
}

/* The dimensions of the stack, and by how much each array goes on in each. */
static const char *read_stack(stack *s) {
  int64_t size[3] = {elements(s->x[0]), elements(s->x[1]), elements(s->x[2])};
  for (int64_t i = s->x[2]->rank - 3; i >= 0; i--) {
    const int64_t n = s->x[2]->dims[i];
    s->sizes[s->n_dims] = n;
    for (int x = 0; x < 3; x++) {
      const int64_t own = s->x[x]->dims[i];
      if (own != n && own != 1) return "wsgemm_gemm: stacks do not fit";
      s->steps[s->n_dims][x] = own == 1 ? 0 : size[x];
      size[x] *= own;
    }
    /* A dimension that all arrays go on through as through the one before it is a part of that. */
    const int last = s->n_dims - 1;
    bool is_joined = last >= 0;
    for (int x = 0; is_joined && x < 3; x++) is_joined = s->steps[last + 1][x] == s->sizes[last] * s->steps[last][x];
    if (is_joined)
      s->sizes[last] *= n;
    else if (n != 1)
      s->n_dims++;
  }
  return NULL;
}

static wsgemm_status run(wsgemm_handle *h, stack *s) {
  int64_t n_calls = 1, at[MOST_DIMS] = {0};
  s->desc.batch_count = s->n_dims ? s->sizes[0] : 1;
  s->desc.stride_a = s->steps[0][0], s->desc.stride_b = s->steps[0][1], s->desc.stride_c = s->steps[0][2];
  for (int i = 1; i < s->n_dims; i++) n_calls *= s->sizes[i];
  for (int64_t call = 0; call < n_calls; call++) {
    int64_t offset[3] = {0};
    for (int i = 1; i < s->n_dims; i++)
      for (int x = 0; x < 3; x++) offset[x] += at[i] * s->steps[i][x];
    s->desc.a = (const char *)s->x[0]->data + offset[0] * s->bytes;
    s->desc.b = (const char *)s->x[1]->data + offset[1] * s->bytes;
    s->desc.c = (char *)s->x[2]->data + offset[2] * s->bytes;
    const wsgemm_status status = wsgemm_gemm(h, &s->desc);
    if (status) return status;
    for (int i = 1; i < s->n_dims && ++at[i] == s->sizes[i]; i++) at[i] = 0;
  }
  return WSGEMM_SUCCESS;
}

static ws_xla_error *work(const ws_xla_call *call, wsgemm_handle *h) {
  stack s = {.n_dims = 0};
  const char *wrong = read_arrays(call, &s);
  if (!wrong) wrong = read_stack(&s);
  if (wrong) return failed(call, WS_XLA_INVALID_ARGUMENT, wrong);
  set_scalars(&s.desc);
  const wsgemm_status status = run(h, &s);
  if (!status) return NULL;
  char message[512];
  snprintf(message, sizeof message, "%s: %s", wsgemm_status_name(status), wsgemm_last_error());
  return failed(call, status == WSGEMM_ALLOC_FAILED ? WS_XLA_RESOURCE_EXHAUSTED : WS_XLA_INTERNAL, message);
}

ws_xla_error *wsgemm_xla_gemm_host(ws_xla_call *call) {
  return answers_metadata(call) || call->stage != WS_XLA_EXECUTE ? NULL : work(call, NULL);
}

/* The default handle's settings, for the handle of this call: others may call at the same time, on
 * other streams. */
static wsgemm_status take_settings(wsgemm_handle *h) {
  int value;
  wsgemm_policy policy;
  wsgemm_math math;
  wsgemm_status status;
#define TAKE(name, variable)                            \
  status = wsgemm_get_##name(NULL, &variable);          \
  if (!status) status = wsgemm_set_##name(h, variable); \
  if (status) return status;
  TAKE(policy, policy)
  TAKE(math, math)
  TAKE(coarse_factor, value)
  TAKE(quantum, value)
  TAKE(check, value)
  TAKE(invariant, value)
#undef TAKE
  return WSGEMM_SUCCESS;
}

ws_xla_error *wsgemm_xla_gemm_cuda(ws_xla_call *call) {
  if (answers_metadata(call) || call->stage != WS_XLA_EXECUTE) return NULL;
  ws_xla_stream_get stream = {.struct_size = sizeof stream, .context = call->context};
  ws_xla_error *error = call->api->stream_get(&stream);
  if (error) return error;
  wsgemm_handle *h;
  wsgemm_status status = wsgemm_create(&h);
  if (status) return failed(call, WS_XLA_RESOURCE_EXHAUSTED, wsgemm_status_text(status));
  status = take_settings(h);
  if (!status) status = wsgemm_set_stream(h, stream.stream);
  error = status ? failed(call, WS_XLA_INTERNAL, wsgemm_last_error()) : work(call, h);
  wsgemm_destroy(h);
  return error;
}
