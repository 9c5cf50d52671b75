/* pack_avx2.h - packing with AVX2: vectors copied, or transposed in registers. Contract: ws_pack_fn in ukr.h. */
#ifndef WS_CPU_PACK_AVX2_H
#define WS_CPU_PACK_AVX2_H
#include <string.h>

#include "cpu/kernels/simd_avx2.h"
#include "cpu/kernels/transpose_avx2.h"
#include "cpu/kernels/ukr.h"

/* Words of 4 bytes. */
WS_PART_INLINE void copy_words(char *to, const char *from, int64_t n) {
  for (; n >= 4; n -= 4, to += 16, from += 16) memcpy(to, from, 16);
  if (n & 2) memcpy(to, from, 8), to += 8, from += 8;
  if (n & 1) memcpy(to, from, 4);
}

/* Rows contiguous: each column of the operand is read from end to end, its pieces dealt out to the panels. The columns ahead are
 * asked for: they lie far apart, so the processor does not see them coming. */
WS_PART_INLINE void copy_columns(int64_t n_bytes, int64_t k, const char *in, int64_t ld_bytes, char *out,
                                 const int64_t width_bytes) {
  enum { AHEAD = 8, LINE = 64 };
  const int64_t rest = n_bytes % width_bytes, last = n_bytes - rest;
  for (int64_t p = 0; p < k; p++) {
    const char *from = in + p * ld_bytes;
    char *to = out + p * width_bytes;
    if (p + AHEAD < k)
      for (int64_t at = 0; at < n_bytes; at += LINE) __builtin_prefetch(from + AHEAD * ld_bytes + at);
    for (int64_t r = 0; r < last; r += width_bytes) {
      copy_words(to, from, width_bytes / 4);
      from += width_bytes;
      to += width_bytes * k;
    }
    copy_words(to, from, rest / 4);
  }
}

/* Panels as wide as registers of kernels.def have them, or of any width. */
static __attribute__((noinline)) void copy_any_columns(int64_t n_bytes, int64_t k, const char *in, int64_t ld_bytes, char *out,
                                                       int64_t width_bytes) {
  switch (width_bytes) {
  case 64:
    copy_columns(n_bytes, k, in, ld_bytes, out, 64);
    return;
  case 48:
    copy_columns(n_bytes, k, in, ld_bytes, out, 48);
    return;
  case 32:
    copy_columns(n_bytes, k, in, ld_bytes, out, 32);
    return;
  case 24:
    copy_columns(n_bytes, k, in, ld_bytes, out, 24);
    return;
  default:
    copy_columns(n_bytes, k, in, ld_bytes, out, width_bytes);
  }
}

/* A square, or less: w rows of n elements, transposed. `cols` are the words of n elements. */
WS_PART_INLINE void transpose_block(const int64_t w, int64_t n, ws_lanes cols, const char *in, int64_t ld_bytes, char *out,
                                    int64_t out_bytes, const int bytes) {
  const int side = WS_SIDE(bytes);
  __m256i v[8];
#pragma GCC unroll 8
  for (int r = 0; r < side; r++)
    v[r] = r >= w      ? _mm256_setzero_si256()
           : n == side ? _mm256_loadu_si256((const __m256i *)(in + r * ld_bytes))
                       : ws_load_words(in + r * ld_bytes, cols);
  transpose_square(v, bytes);
#pragma GCC unroll 8
  for (int q = 0; q < side; q++) {
    if (q >= n) break;
    ws_store_words(out + q * out_bytes, v[q], w * bytes / 4);
  }
}

/* w rows, transposed. What lies ahead_bytes further on, the next panel, is asked for meanwhile. */
WS_PART_INLINE void transpose_rows(const int64_t w, int64_t k, const char *in, int64_t ld_bytes, char *out, int64_t out_bytes,
                                   int64_t ahead_bytes, const int bytes) {
  const int side = WS_SIDE(bytes);
  int64_t p = 0;
  for (; p + side <= k; p += side) {
#pragma GCC unroll 8
    for (int r = 0; r < side; r++)
      if (r < w) __builtin_prefetch(in + r * ld_bytes + p * bytes + ahead_bytes, 0, 2);
    transpose_block(w, side, ws_first_words(8), in + p * bytes, ld_bytes, out + p * out_bytes, out_bytes, bytes);
  }
  if (p < k)
    transpose_block(w, k - p, ws_first_words((k - p) * bytes / 4), in + p * bytes, ld_bytes, out + p * out_bytes, out_bytes,
                    bytes);
}

/* One strip of at most as many rows as a vector has elements: constants put in. */
WS_PART_INLINE void transpose_strip(int64_t w, int64_t k, const char *in, int64_t ld_bytes, char *out, int64_t out_bytes,
                                    int64_t ahead_bytes, const int bytes) {
#define WS_STRIP(rows)                                                                                     \
  case rows:                                                                                               \
    if (rows <= WS_SIDE(bytes)) transpose_rows(rows, k, in, ld_bytes, out, out_bytes, ahead_bytes, bytes); \
    return;
  switch (w) {
    WS_STRIP(1)
    WS_STRIP(2)
    WS_STRIP(3)
    WS_STRIP(4)
    WS_STRIP(5)
    WS_STRIP(6)
    WS_STRIP(7)
    WS_STRIP(8)
  default:
    return;
  }
#undef WS_STRIP
}

/* The same, out of line: a function for each size. */
typedef void ws_strip_fn(int64_t w, int64_t k, const char *in, int64_t ld_bytes, char *out, int64_t out_bytes,
                         int64_t ahead_bytes);

WS_PART_INLINE void pack_avx2(int64_t n, int64_t k, const char *in, int64_t ld, bool k_contiguous, char *out, int64_t width,
                              ws_strip_fn *strip, const int bytes) {
  const int64_t side = WS_SIDE(bytes);
  if (!k_contiguous) {
    copy_any_columns(n * bytes, k, in, ld * bytes, out, width * bytes);
    return;
  }
  for (int64_t r0 = 0; r0 < n; r0 += width) {
    const int64_t w = n - r0 < width ? n - r0 : width;
    for (int64_t r = 0; r < w; r += side)
      strip(w - r < side ? w - r : side, k, in + (r0 + r) * ld * bytes, ld * bytes, out + (r0 * k + r) * bytes, width * bytes,
            width * ld * bytes);
  }
}

/* Of few lines, a strip; else a vector of columns of `out` at a time, so that each is written in a long run. */
WS_PART_INLINE void transpose_avx2(int64_t n, int64_t k, const char *in, int64_t ld_in, char *out, int64_t ld_out,
                                   ws_strip_fn *strip, const int bytes) {
  const int64_t side = WS_SIDE(bytes), in_bytes = ld_in * bytes, out_bytes = ld_out * bytes;
  if (k <= side) {
    strip(k, n, in, in_bytes, out, out_bytes, 0);
    return;
  }
  for (int64_t r = 0; r < n; r += side) {
    const int64_t n_cols = n - r < side ? n - r : side, whole = k / side * side;
    const ws_lanes cols = ws_first_words(n_cols * bytes / 4);
    const char *from = in + r * bytes;
    char *to = out + r * out_bytes;
    for (int64_t p = 0; p < whole; p += side)
      transpose_block(side, n_cols, cols, from + p * in_bytes, in_bytes, to + p * bytes, out_bytes, bytes);
    if (whole < k) strip(k - whole, n_cols, from + whole * in_bytes, in_bytes, to + whole * bytes, out_bytes, 0);
  }
}

#define WS_PACKING(size)                                                                                                        \
  static __attribute__((noinline)) void strip_##size(int64_t w, int64_t k, const char *in, int64_t ld_bytes, char *out,         \
                                                     int64_t out_bytes, int64_t ahead_bytes) {                                  \
    transpose_strip(w, k, in, ld_bytes, out, out_bytes, ahead_bytes, size);                                                     \
  }                                                                                                                             \
  static void pack_avx2_##size(int64_t n, int64_t k, const void *in, int64_t ld, bool k_contiguous, void *out, int64_t width) { \
    pack_avx2(n, k, in, ld, k_contiguous, out, width, strip_##size, size);                                                      \
  }                                                                                                                             \
  static void transpose_avx2_##size(int64_t n, int64_t k, const void *in, int64_t ld_in, void *out, int64_t ld_out) {           \
    transpose_avx2(n, k, in, ld_in, out, ld_out, strip_##size, size);                                                           \
  }
WS_PACKING(4)
WS_PACKING(8)
WS_PACKING(16)
#undef WS_PACKING
#endif
