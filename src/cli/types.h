/* The element types as the commands see them: one table, indexed by wsgemm_type, and scalars of these types. */
#ifndef WSGEMM_CLI_TYPES_H
#define WSGEMM_CLI_TYPES_H

#include "wsgemm.h"
#include <stdint.h>

enum { WS_N_TYPES = 4 };

typedef struct ws_cli_type {
  const char *name; /* NumPy's, without byte order */
  char letter;      /* of the BLAS routine */
  int n_parts;      /* real numbers per element: 1, or 2 if it is complex */
  int64_t bytes, part_bytes;
} ws_cli_type;

extern const ws_cli_type ws_cli_types[WS_N_TYPES];

/* The value as the type holds it: rounded to single precision, without imaginary part, as the case may be. */
wsgemm_cdouble ws_cli_fit(wsgemm_type type, wsgemm_cdouble value);

/* The same as the library wants it. */
wsgemm_scalar ws_cli_scalar(wsgemm_type type, wsgemm_cdouble value);

#endif
