/* ffi.h - XLA's foreign function interface, as far as the handler needs it: what XLA hands over for a
 * call, and the functions that it lends.
 *
 * Written after the binary interface of XLA's major version 0, which only ever appends members, and
 * says in struct_size how many bytes of a struct there are. Nothing of XLA is included or linked. */
#ifndef WS_XLA_FFI_H
#define WS_XLA_FFI_H
#include <stddef.h>
#include <stdint.h>

enum { WS_XLA_METADATA = 1, WS_XLA_EXECUTE = 3, WS_XLA_BUFFER = 1, WS_XLA_SCALAR = 3 };
enum { WS_XLA_INVALID_ARGUMENT = 3, WS_XLA_RESOURCE_EXHAUSTED = 8, WS_XLA_INTERNAL = 13 };

/* X(XLA's number, wsgemm's type, bytes of an element) */
#define WS_XLA_TYPES(X) \
  X(11, WSGEMM_F32, 4)  \
  X(12, WSGEMM_F64, 8)  \
  X(15, WSGEMM_C32, 8)  \
  X(18, WSGEMM_C64, 16) \
  X(10, WSGEMM_F16, 2)  \
  X(16, WSGEMM_BF16, 2)
enum { WS_XLA_S32 = 4 };

typedef struct ws_xla_extension {
  size_t struct_size;
  int type;
  struct ws_xla_extension *next;
} ws_xla_extension;

typedef struct ws_xla_version {
  size_t struct_size;
  ws_xla_extension *extension;
  int major, minor;
} ws_xla_version;

typedef struct ws_xla_error ws_xla_error;
typedef struct ws_xla_context ws_xla_context;

typedef struct ws_xla_error_create {
  size_t struct_size;
  ws_xla_extension *extension;
  const char *message;
  int code;
} ws_xla_error_create;

typedef struct ws_xla_stream_get {
  size_t struct_size;
  ws_xla_extension *extension;
  ws_xla_context *context;
  void *stream; /* out */
} ws_xla_stream_get;

/* The first of the functions that XLA lends. */
typedef struct ws_xla_api {
  size_t struct_size;
  ws_xla_extension *extension;
  ws_xla_version version;
  const void *internal;
  ws_xla_error *(*error_create)(ws_xla_error_create *);
  void *error_get_message, *error_destroy, *handler_register;
  ws_xla_error *(*stream_get)(ws_xla_stream_get *);
} ws_xla_api;

typedef struct ws_xla_array {
  size_t struct_size;
  ws_xla_extension *extension;
  int type;
  void *data;
  int64_t rank;
  const int64_t *dims;
} ws_xla_array;

/* Arguments, and results. */
typedef struct ws_xla_arrays {
  size_t struct_size;
  ws_xla_extension *extension;
  int64_t size;
  const int *types;
  void **values;
} ws_xla_arrays;

typedef struct ws_xla_text {
  const char *ptr;
  size_t len;
} ws_xla_text;

typedef struct ws_xla_scalar {
  int type;
  void *value;
} ws_xla_scalar;

typedef struct ws_xla_attributes {
  size_t struct_size;
  ws_xla_extension *extension;
  int64_t size;
  const int *types;
  ws_xla_text **names;
  void **values;
} ws_xla_attributes;

typedef struct ws_xla_call {
  size_t struct_size;
  ws_xla_extension *extension;
  const ws_xla_api *api;
  ws_xla_context *context;
  int stage;
  ws_xla_arrays arguments, results;
  ws_xla_attributes attributes;
} ws_xla_call;

typedef struct ws_xla_metadata {
  size_t struct_size;
  ws_xla_version version;
  uint32_t traits;
} ws_xla_metadata;

typedef struct ws_xla_metadata_extension {
  ws_xla_extension base;
  ws_xla_metadata *metadata;
} ws_xla_metadata_extension;
#endif
