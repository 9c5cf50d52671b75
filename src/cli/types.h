/* The element types as the commands see them: one table, indexed by wsgemm_type, and scalars of
 * these types. */
#ifndef WSGEMM_CLI_TYPES_H
#define WSGEMM_CLI_TYPES_H

#include "wsgemm.h"
#include <stdbool.h>
#include <stdint.h>

enum { WS_N_TYPES = 6 };

typedef struct ws_cli_type {
  /* NumPy's, without byte order; bf16, which NumPy does not know, is in no file */
  const char *name;
  char letter; /* of the BLAS routine */
  int n_parts; /* real numbers per element: 1, or 2 if it is complex */
  int64_t bytes, part_bytes;
} ws_cli_type;

extern const ws_cli_type ws_cli_types[WS_N_TYPES];

/* hemm, herk, her2k, which complex types alone have. */
bool ws_cli_is_hermitian(wsgemm_routine routine);

/* The largest number that the type's parts hold, and half the distance of neighbouring ones round
 * x; the latter only for half precision, else 0. */
double ws_cli_largest(wsgemm_type type);
double ws_cli_half_ulp(wsgemm_type type, double x);

/* Part part_idx of an array: as it is, and rounded to nearest even. */
double ws_cli_get(wsgemm_type type, const void *data, int64_t part_idx);
void ws_cli_set(wsgemm_type type, void *data, int64_t part_idx, double value);

/* The value as scalars of products of the type are: rounded to single precision, without imaginary
 * part, as the case may be. */
wsgemm_cdouble ws_cli_fit(wsgemm_type type, wsgemm_cdouble value);

/* The type that the library wants a product's scalars in. */
wsgemm_type ws_cli_scalar_type(wsgemm_type type);

/* The same as the library wants it. */
wsgemm_scalar ws_cli_scalar(wsgemm_type type, wsgemm_cdouble value);

#endif
