/* The table of element types, and scalars of these types: see types.h. */
#include "types.h"

const ws_cli_type ws_cli_types[WS_N_TYPES] = {
    [WSGEMM_F32] = {"f4", 's', 1, 4, 4},
    [WSGEMM_F64] = {"f8", 'd', 1, 8, 8},
    [WSGEMM_C32] = {"c8", 'c', 2, 8, 4},
    [WSGEMM_C64] = {"c16", 'z', 2, 16, 8},
};

/* volatile: gcc 12 at -O2 drops a pair of conversions double > float > double, as of the two parts of a complex number. */
static double to_single(double value) {
  volatile float single = (float)value;
  return single;
}

wsgemm_cdouble ws_cli_fit(wsgemm_type type, wsgemm_cdouble value) {
  if (ws_cli_types[type].n_parts == 1) value.im = 0;
  if (ws_cli_types[type].part_bytes == 4) value = (wsgemm_cdouble){to_single(value.re), to_single(value.im)};
  return value;
}

wsgemm_scalar ws_cli_scalar(wsgemm_type type, wsgemm_cdouble value) {
  wsgemm_scalar s = {0};
  switch (type) {
  case WSGEMM_F32:
    s.s = (float)value.re;
    break;
  case WSGEMM_F64:
    s.d = value.re;
    break;
  case WSGEMM_C32:
    s.c = (wsgemm_cfloat){(float)value.re, (float)value.im};
    break;
  case WSGEMM_C64:
    s.z = value;
    break;
  }
  return s;
}
