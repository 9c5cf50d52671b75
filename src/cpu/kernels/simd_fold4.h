/* simd_fold4.h - the sums of the lanes of four vectors, for instruction sets that have nothing better than one
 * after the other: read by their simd headers behind their ws_fold. */
#ifndef WS_CPU_SIMD_FOLD4_H
#define WS_CPU_SIMD_FOLD4_H

/* Those of four vectors, one after the other. */
static inline void ws_fold4_s(float *out, ws_vs v0, ws_vs v1, ws_vs v2, ws_vs v3, int unit) {
  ws_fold_s(out, v0, unit);
  ws_fold_s(out + unit, v1, unit);
  ws_fold_s(out + 2 * unit, v2, unit);
  ws_fold_s(out + 3 * unit, v3, unit);
}
static inline void ws_fold4_d(double *out, ws_vd v0, ws_vd v1, ws_vd v2, ws_vd v3, int unit) {
  ws_fold_d(out, v0, unit);
  ws_fold_d(out + unit, v1, unit);
  ws_fold_d(out + 2 * unit, v2, unit);
  ws_fold_d(out + 3 * unit, v3, unit);
}

#endif
