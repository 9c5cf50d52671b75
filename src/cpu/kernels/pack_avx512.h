/* pack_avx512.h - packing with AVX-512: whole vectors copied, or transposed in registers. Contract:
 * ws_pack_fn in ukr.h. */
#ifndef WS_CPU_PACK_AVX512_H
#define WS_CPU_PACK_AVX512_H
#include <immintrin.h>

#include "cpu/kernels/store_rows_avx512.h"
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

/* 4 rows of words, transposed, 16 at a time; returns how many of them are done. Out of line, as the
 * compiler would keep all addresses of all cases at hand. */
static __attribute__((noinline)) int64_t transpose_4_rows(int64_t k, const char *in, int64_t ld_bytes, char *out,
                                                          int64_t out_bytes) {
  int64_t p = 0;
  for (; p + 16 <= k; p += 16) {
    __m512i v[4];
#pragma GCC unroll 4
    for (int r = 0; r < 4; r++) v[r] = _mm512_loadu_si512(in + r * ld_bytes + p * 4);
    store_rows_4(v, 4, 16, out + p * out_bytes, out_bytes, NULL, NULL);
  }
  return p;
}

/* Up to 4 rows of words, transposed. Written as parts of 512 bits: of 128, gcc makes a masked vextracti32x4,
 * which faults where the lanes left out are not mapped. */
static __attribute__((noinline)) void transpose_few_rows(int64_t w, int64_t k, const char *in, int64_t ld_bytes, char *out,
                                                         int64_t out_bytes) {
  const __mmask16 rows = (__mmask16)(0xffffu >> (16 - w));
  for (int64_t p = 0; p < k; p += 16) {
    const int64_t n = k - p < 16 ? k - p : 16;
    const __mmask16 cols = (__mmask16)(0xffffu >> (16 - n));
    __m512i v[4];
#pragma GCC unroll 4
    for (int r = 0; r < 4; r++) v[r] = r < w ? _mm512_maskz_loadu_epi32(cols, in + r * ld_bytes + p * 4) : _mm512_setzero_si512();
    transpose_lanes(v);
    char *to = out + p * out_bytes;
    for (int lane = 0; lane < 4; lane++, to += 4 * out_bytes) {
#pragma GCC unroll 4
      for (int q = 0; q < 4; q++)
        if (4 * lane + q < n) _mm512_mask_storeu_epi32(to + q * out_bytes, rows, v[q]);
#pragma GCC unroll 4
      for (int q = 0; q < 4; q++) v[q] = _mm512_shuffle_i32x4(v[q], v[q], 0x39);
    }
  }
}

/* Up to 16 rows of up to 4 words each, transposed. */
static __attribute__((noinline)) void transpose_few_columns(int64_t w, int64_t n, const char *in, int64_t ld_bytes, char *out,
                                                            int64_t out_bytes) {
  const __mmask8 cols = (__mmask8)(0xffu >> (8 - n));
  const __mmask16 rows = (__mmask16)(0xffffu >> (16 - w));
  __m128i x[16];
  __m512i v[4];
#pragma GCC unroll 16
  for (int r = 0; r < 16; r++) x[r] = r < w ? _mm_maskz_loadu_epi32(cols, in + r * ld_bytes) : _mm_setzero_si128();
#pragma GCC unroll 4
  for (int r = 0; r < 4; r++) {
    const __m256i low = _mm256_inserti128_si256(_mm256_castsi128_si256(x[r]), x[4 + r], 1);
    const __m256i high = _mm256_inserti128_si256(_mm256_castsi128_si256(x[8 + r]), x[12 + r], 1);
    v[r] = _mm512_inserti64x4(_mm512_castsi256_si512(low), high, 1);
  }
  transpose_lanes(v);
#pragma GCC unroll 4
  for (int q = 0; q < 4; q++)
    if (q < n) _mm512_mask_storeu_epi32(out + q * out_bytes, rows, v[q]);
}

/* The first n_words of 8 of so many rows, the second half of the rows beside the first one. */
static inline __attribute__((always_inline)) void load_halves(int64_t w, int64_t n_words, const char *in, int64_t ld_bytes,
                                                              __m512i *v, const int n_rows) {
  const __mmask8 cols = (__mmask8)(0xffu >> (8 - n_words));
  __m256i x[16];
#pragma GCC unroll 16
  for (int r = 0; r < n_rows; r++) x[r] = r < w ? _mm256_maskz_loadu_epi32(cols, in + r * ld_bytes) : _mm256_setzero_si256();
#pragma GCC unroll 8
  for (int r = 0; r < n_rows / 2; r++) v[r] = _mm512_inserti64x4(_mm512_castsi256_si512(x[r]), x[n_rows / 2 + r], 1);
}

/* Up to 16 rows of 5 to 8 words each, transposed. */
static __attribute__((noinline)) void transpose_8_columns(int64_t w, int64_t n, const char *in, int64_t ld_bytes, char *out,
                                                          int64_t out_bytes) {
  const __mmask16 rows = (__mmask16)(0xffffu >> (16 - w));
  __m512i v[8];
  load_halves(w, n, in, ld_bytes, v, 16);
  transpose_lanes(v); /* v[q]: columns q and 4 + q of rows 0 to 3, then of 8 to 11 */
  transpose_lanes(v + 4);
#pragma GCC unroll 4
  for (int q = 0; q < 4; q++) {
    _mm512_mask_storeu_epi32(out + q * out_bytes, rows, _mm512_permutex2var_epi64(v[q], WS_LANES_0_2, v[4 + q]));
    if (4 + q < n)
      _mm512_mask_storeu_epi32(out + (4 + q) * out_bytes, rows, _mm512_permutex2var_epi64(v[q], WS_LANES_1_3, v[4 + q]));
  }
}

/* Up to 8 rows of up to 4 elements of 8 bytes each, transposed. */
static __attribute__((noinline)) void transpose_few_columns_8(int64_t w, int64_t n, const char *in, int64_t ld_bytes, char *out,
                                                              int64_t out_bytes) {
  const __mmask8 rows = (__mmask8)(0xffu >> (8 - w));
  __m512i v[4];
  load_halves(w, 2 * n, in, ld_bytes, v, 8);
  mix_pairs(v, WS_LANES_0_2, WS_LANES_1_3);
#pragma GCC unroll 4
  for (int q = 0; q < 4; q++)
    if (q < n) _mm512_mask_storeu_epi64(out + q * out_bytes, rows, v[q]);
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

static __attribute__((noinline)) void transpose_words(int64_t n, int64_t k, const char *in, int64_t ld_in, char *out,
                                                      int64_t ld_out) {
  transpose_avx512(n, k, in, ld_in, out, ld_out, 4);
}

static inline void transpose_avx512_4(int64_t n, int64_t k, const void *in, int64_t ld_in, void *out, int64_t ld_out) {
  const char *from = in;
  char *to = out;
  if (k <= 4) {
    const int64_t done = k == 4 ? transpose_4_rows(n, from, ld_in * 4, to, ld_out * 4) : 0;
    if (done < n) transpose_few_rows(k, n - done, from + done * 4, ld_in * 4, to + done * ld_out * 4, ld_out * 4);
  } else if (n <= 8) {
    for (int64_t p = 0; p < k; p += 16)
      (n <= 4 ? transpose_few_columns : transpose_8_columns)(k - p < 16 ? k - p : 16, n, from + p * ld_in * 4, ld_in * 4,
                                                             to + p * 4, ld_out * 4);
  } else {
    transpose_words(n, k, from, ld_in, to, ld_out);
  }
}

/* As transpose_4_rows, of 8 bytes each, 8 at a time. */
static __attribute__((noinline)) int64_t transpose_4_rows_8(int64_t k, const char *in, int64_t ld_bytes, char *out,
                                                            int64_t out_bytes) {
  int64_t p = 0;
  for (; p + 8 <= k; p += 8) {
    __m512i v[4];
#pragma GCC unroll 4
    for (int r = 0; r < 4; r++) v[r] = _mm512_loadu_si512(in + r * ld_bytes + p * 8);
    store_rows_8(v, 4, 8, out + p * out_bytes, out_bytes, NULL, NULL);
  }
  return p;
}

static __attribute__((noinline)) void transpose_pairs(int64_t n, int64_t k, const char *in, int64_t ld_in, char *out,
                                                      int64_t ld_out) {
  transpose_avx512(n, k, in, ld_in, out, ld_out, 8);
}

static inline void transpose_avx512_8(int64_t n, int64_t k, const void *in, int64_t ld_in, void *out, int64_t ld_out) {
  const char *from = in;
  char *to = out;
  if (n <= 4 && k > 4) {
    for (int64_t p = 0; p < k; p += 8)
      transpose_few_columns_8(k - p < 8 ? k - p : 8, n, from + p * ld_in * 8, ld_in * 8, to + p * 8, ld_out * 8);
    return;
  }
  const int64_t done = k == 4 ? transpose_4_rows_8(n, from, ld_in * 8, to, ld_out * 8) : 0;
  if (done < n) transpose_pairs(n - done, k, from + done * 8, ld_in, to + done * ld_out * 8, ld_out);
}

static inline void transpose_avx512_16(int64_t n, int64_t k, const void *in, int64_t ld_in, void *out, int64_t ld_out) {
  transpose_avx512(n, k, in, ld_in, out, ld_out, 16);
}

static inline void pack_avx512_4(int64_t n, int64_t k, const void *in, int64_t ld, bool k_contiguous, void *out, int64_t width) {
  pack_avx512(n, k, in, ld, k_contiguous, out, width, 4);
}

static inline void pack_avx512_8(int64_t n, int64_t k, const void *in, int64_t ld, bool k_contiguous, void *out, int64_t width) {
  pack_avx512(n, k, in, ld, k_contiguous, out, width, 8);
}

static inline void pack_avx512_16(int64_t n, int64_t k, const void *in, int64_t ld, bool k_contiguous, void *out, int64_t width) {
  pack_avx512(n, k, in, ld, k_contiguous, out, width, 16);
}
#endif
