/* convert.h - lines of half-precision numbers to floats and back, written once over the vector
 * operations of a simd_*.h. Included by ukr_<isa>.c after its kernels; yields the ws_convert_set
 * named ws_convert_<isa>. Contract: ukr.h.
 *
 * What a last vector holds beyond the end of its line is zero, which converts without an
 * exception. */
#include "cpu/kernels/ukr.h"

#define LINES_INLINE static inline __attribute__((always_inline))
enum { LANES = WS_BYTES / sizeof(float) };

LINES_INLINE void widen_lines(int64_t m, int64_t n, const uint16_t *in, int64_t ld_in, float *out, int64_t ld_out,
                              ws_vs (*widen)(ws_v16)) {
  const int64_t whole = m / LANES * LANES, rest = m - whole;
  for (int64_t j = 0; j < n; j++, in += ld_in, out += ld_out) {
    for (int64_t i = 0; i < whole; i += LANES) ws_store_s(out + i, widen(ws_load_16(in + i)));
    if (rest > 0) ws_store_m_s(out + whole, widen(ws_load_m_16(in + whole, rest)), ws_mask_s(rest));
  }
}

LINES_INLINE void narrow_lines(int64_t m, int64_t n, const float *in, int64_t ld_in, uint16_t *out, int64_t ld_out,
                               ws_v16 (*narrow)(ws_vs)) {
  const int64_t whole = m / LANES * LANES, rest = m - whole;
  for (int64_t j = 0; j < n; j++, in += ld_in, out += ld_out) {
    for (int64_t i = 0; i < whole; i += LANES) ws_store_16(out + i, narrow(ws_load_s(in + i)));
    if (rest > 0) ws_store_m_16(out + whole, narrow(ws_load_m_s(in + whole, ws_mask_s(rest))), rest);
  }
}

static void widen_h(int64_t m, int64_t n, const uint16_t *in, int64_t ld_in, float *out, int64_t ld_out) {
  widen_lines(m, n, in, ld_in, out, ld_out, ws_widen_h);
}

static void widen_b(int64_t m, int64_t n, const uint16_t *in, int64_t ld_in, float *out, int64_t ld_out) {
  widen_lines(m, n, in, ld_in, out, ld_out, ws_widen_b);
}

static void narrow_h(int64_t m, int64_t n, const float *in, int64_t ld_in, uint16_t *out, int64_t ld_out) {
  narrow_lines(m, n, in, ld_in, out, ld_out, ws_narrow_h);
}

static void narrow_b(int64_t m, int64_t n, const float *in, int64_t ld_in, uint16_t *out, int64_t ld_out) {
  narrow_lines(m, n, in, ld_in, out, ld_out, ws_narrow_b);
}

#define JOIN_(a, b) a##b
#define JOIN(a, b) JOIN_(a, b)
const ws_convert_set JOIN(ws_convert_, WS_ISA) = {
    .widen = {[WSGEMM_F16] = widen_h, [WSGEMM_BF16] = widen_b},
    .narrow = {[WSGEMM_F16] = narrow_h, [WSGEMM_BF16] = narrow_b},
};
