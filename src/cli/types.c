/* The table of element types, and scalars of these types: see types.h. */
#include "types.h"

#include <float.h>
#include <math.h>

const ws_cli_type ws_cli_types[WS_N_TYPES] = {
    [WSGEMM_F32] = {"f4", 's', 1, 4, 4},   [WSGEMM_F64] = {"f8", 'd', 1, 8, 8}, [WSGEMM_C32] = {"c8", 'c', 2, 8, 4},
    [WSGEMM_C64] = {"c16", 'z', 2, 16, 8}, [WSGEMM_F16] = {"f2", 'h', 1, 2, 2}, [WSGEMM_BF16] = {"bf16", 'b', 1, 2, 2},
};

bool ws_cli_is_hermitian(wsgemm_routine routine) {
  return routine == WSGEMM_HEMM || routine == WSGEMM_HERK || routine == WSGEMM_HER2K;
}

/* The halves: bits of the fraction, and exponent of the least normal number; the largest has the
 * same but for its sign, and one. */
typedef struct {
  int fraction_bits, low;
} half_format;

static half_format half_of(wsgemm_type type) { return type == WSGEMM_F16 ? (half_format){10, -14} : (half_format){7, -126}; }
static bool is_half(wsgemm_type type) { return ws_cli_types[type].part_bytes == 2; }

double ws_cli_largest(wsgemm_type type) {
  const half_format f = half_of(type);
  if (is_half(type)) return ldexp(2 - ldexp(1, -f.fraction_bits), 1 - f.low);
  return ws_cli_types[type].part_bytes == 4 ? FLT_MAX : DBL_MAX;
}

/* The exponent of the last place of the halves round x. */
static int last_place(half_format f, double x) {
  return (x != 0 && isfinite(x) && ilogb(x) > f.low ? ilogb(x) : f.low) - f.fraction_bits;
}

double ws_cli_half_ulp(wsgemm_type type, double x) { return is_half(type) ? ldexp(1, last_place(half_of(type), x) - 1) : 0; }

static double from_half(wsgemm_type type, uint16_t bits) {
  const half_format f = half_of(type);
  const int exponent = (bits & 0x7fff) >> f.fraction_bits, fraction = bits & ((1 << f.fraction_bits) - 1);
  double x = exponent == 0 ? ldexp(fraction, f.low - f.fraction_bits)
                           : ldexp(fraction + (1 << f.fraction_bits), exponent - 1 + f.low - f.fraction_bits);
  if (exponent == 0x7fff >> f.fraction_bits) x = fraction ? NAN : INFINITY;
  return bits & 0x8000 ? -x : x;
}

static uint16_t to_half(wsgemm_type type, double value) {
  const half_format f = half_of(type);
  const uint16_t sign = signbit(value) ? 0x8000 : 0, top = (uint16_t)(0x7fff >> f.fraction_bits << f.fraction_bits);
  if (isnan(value)) return 0x7fff;
  const int place = last_place(f, value);
  const double digits = nearbyint(ldexp(fabs(value), -place)); /* a carry goes into the exponent */
  if (ldexp(digits, place) > ws_cli_largest(type)) return sign | top;
  return (uint16_t)(sign | (((place + f.fraction_bits - f.low) << f.fraction_bits) + (int)digits));
}

double ws_cli_get(wsgemm_type type, const void *data, int64_t part_idx) {
  if (is_half(type)) return from_half(type, ((const uint16_t *)data)[part_idx]);
  return ws_cli_types[type].part_bytes == 4 ? ((const float *)data)[part_idx] : ((const double *)data)[part_idx];
}

void ws_cli_set(wsgemm_type type, void *data, int64_t part_idx, double value) {
  if (is_half(type))
    ((uint16_t *)data)[part_idx] = to_half(type, value);
  else if (ws_cli_types[type].part_bytes == 4)
    ((float *)data)[part_idx] = (float)value;
  else
    ((double *)data)[part_idx] = value;
}

/* volatile: gcc 12 at -O2 drops a pair of conversions double > float > double, as of the two parts
 * of a complex number. */
static double to_single(double value) {
  volatile float single = (float)value;
  return single;
}

wsgemm_cdouble ws_cli_fit(wsgemm_type type, wsgemm_cdouble value) {
  if (ws_cli_types[type].n_parts == 1) value.im = 0;
  if (ws_cli_types[type].part_bytes <= 4) value = (wsgemm_cdouble){to_single(value.re), to_single(value.im)};
  return value;
}

wsgemm_type ws_cli_scalar_type(wsgemm_type type) { return is_half(type) ? WSGEMM_F32 : type; }

wsgemm_scalar ws_cli_scalar(wsgemm_type type, wsgemm_cdouble value) {
  wsgemm_scalar s = {0};
  switch (type) {
  case WSGEMM_F32:
  case WSGEMM_F16:
  case WSGEMM_BF16:
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
