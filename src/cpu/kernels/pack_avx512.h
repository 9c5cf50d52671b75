/* pack_avx512.h - packing with AVX-512: whole vectors copied, or transposed in registers. Contract:
 * ws_pack_fn in ukr.h. */
#ifndef WS_CPU_PACK_AVX512_H
#define WS_CPU_PACK_AVX512_H
#include <immintrin.h>

#include "cpu/kernels/transpose_avx512.h"
#include "cpu/kernels/ukr.h"

/* Rows contiguous: each column of the operand is read from end to end, its pieces dealt out to the
 * panels. The columns ahead are asked for: they lie far apart, so the processor does not see them
 * coming. Counts words of 4 bytes. */
static inline __attribute__((always_inline)) void copy_columns(int64_t words, int64_t k, const char *in, int64_t ld_bytes,
                                                               char *out, int64_t width_words, const int n_vectors) {
  enum { AHEAD = 8, LINE = 64 };
  const __mmask16 whole = (__mmask16)(0xffffu >> (16 * n_vectors - width_words));
  const int64_t rest = words % width_words, last = words - rest;
  const __mmask16 rest_0 = (__mmask16)(rest >= 16 ? 0xffffu : (1u << rest) - 1);
  const __mmask16 rest_1 = (__mmask16)(rest > 16 ? (1u << (rest - 16)) - 1 : 0);
  for (int64_t p = 0; p < k; p++) {
    const char *from = in + p * ld_bytes;
    char *to = out + p * width_words * 4;
    if (p + AHEAD < k)
      for (int64_t at = 0; at < words * 4; at += LINE) __builtin_prefetch(from + AHEAD * ld_bytes + at);
    for (int64_t r = 0; r < last; r += width_words) {
#pragma GCC unroll 2
      for (int v = 0; v < n_vectors; v++) {
        const __mmask16 mask = v == n_vectors - 1 ? whole : (__mmask16)0xffff;
        _mm512_mask_storeu_epi32(to + 64 * v, mask, _mm512_maskz_loadu_epi32(mask, from + 64 * v));
      }
      from += width_words * 4;
      to += width_words * 4 * k;
    }
    if (rest > 0) _mm512_mask_storeu_epi32(to, rest_0, _mm512_maskz_loadu_epi32(rest_0, from));
    if (rest > 16) _mm512_mask_storeu_epi32(to + 64, rest_1, _mm512_maskz_loadu_epi32(rest_1, from + 64));
  }
}

/* One strip of at most 64 / bytes rows, transposed. What lies ahead_bytes further on, the next
 * panel, is asked for meanwhile. */
static inline __attribute__((always_inline)) void transpose_strip(int64_t w, int64_t k, const char *in, int64_t ld_bytes,
                                                                  char *out, int64_t out_bytes, int64_t ahead_bytes,
                                                                  const int bytes) {
  const int side = 64 / bytes;
  const int words = bytes / 4;
  const __mmask16 rows = (__mmask16)(0xffffu >> (16 - w * words));
  for (int64_t p = 0; p < k; p += side) {
    const int64_t n = k - p < side ? k - p : side;
    const __mmask16 cols = (__mmask16)(0xffffu >> (16 - n * words));
    __m512i v[16];
#pragma GCC unroll 16
    for (int r = 0; r < side; r++)
      if (r < w) {
        v[r] = _mm512_maskz_loadu_epi32(cols, in + r * ld_bytes + p * bytes);
        __builtin_prefetch(in + r * ld_bytes + p * bytes + ahead_bytes, 0, 2);
      } else {
        v[r] = _mm512_setzero_si512();
      }
    if (side == 16)
      transpose_16(v);
    else if (side == 8)
      transpose_8(v);
    else
      transpose_4(v);
#pragma GCC unroll 16
    for (int q = 0; q < side; q++)
      if (q < n) _mm512_mask_storeu_epi32(out + (p + q) * out_bytes, rows, v[q]);
  }
}

static inline __attribute__((always_inline)) void pack_avx512(int64_t n, int64_t k, const char *in, int64_t ld, bool k_contiguous,
                                                              char *out, int64_t width, const int bytes) {
  const int64_t side = 64 / bytes, words = bytes / 4;
  if (!k_contiguous) {
    if (width * words <= 16)
      copy_columns(n * words, k, in, ld * bytes, out, width * words, 1);
    else
      copy_columns(n * words, k, in, ld * bytes, out, width * words, 2);
    return;
  }
  for (int64_t r0 = 0; r0 < n; r0 += width) {
    const int64_t w = n - r0 < width ? n - r0 : width;
    for (int64_t r = 0; r < w; r += side)
      transpose_strip(w - r < side ? w - r : side, k, in + (r0 + r) * ld * bytes, ld * bytes, out + (r0 * k + r) * bytes,
                      width * bytes, width * ld * bytes, bytes);
  }
}

/* A vector of columns of `out` at a time, so that each is written in a long run. */
static inline __attribute__((always_inline)) void transpose_avx512(int64_t n, int64_t k, const char *in, int64_t ld_in, char *out,
                                                                   int64_t ld_out, const int bytes) {
  const int64_t side = 64 / bytes;
  for (int64_t r = 0; r < n; r += side)
    for (int64_t p = 0; p < k; p += side)
      transpose_strip(k - p < side ? k - p : side, n - r < side ? n - r : side, in + (r + p * ld_in) * bytes, ld_in * bytes,
                      out + (p + r * ld_out) * bytes, ld_out * bytes, side * ld_in * bytes, bytes);
}

static void transpose_avx512_4(int64_t n, int64_t k, const void *in, int64_t ld_in, void *out, int64_t ld_out) {
  transpose_avx512(n, k, in, ld_in, out, ld_out, 4);
}

static void transpose_avx512_8(int64_t n, int64_t k, const void *in, int64_t ld_in, void *out, int64_t ld_out) {
  transpose_avx512(n, k, in, ld_in, out, ld_out, 8);
}

static void transpose_avx512_16(int64_t n, int64_t k, const void *in, int64_t ld_in, void *out, int64_t ld_out) {
  transpose_avx512(n, k, in, ld_in, out, ld_out, 16);
}

static void pack_avx512_4(int64_t n, int64_t k, const void *in, int64_t ld, bool k_contiguous, void *out, int64_t width) {
  pack_avx512(n, k, in, ld, k_contiguous, out, width, 4);
}

static void pack_avx512_8(int64_t n, int64_t k, const void *in, int64_t ld, bool k_contiguous, void *out, int64_t width) {
  pack_avx512(n, k, in, ld, k_contiguous, out, width, 8);
}

static void pack_avx512_16(int64_t n, int64_t k, const void *in, int64_t ld, bool k_contiguous, void *out, int64_t width) {
  pack_avx512(n, k, in, ld, k_contiguous, out, width, 16);
}
#endif
