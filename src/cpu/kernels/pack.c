/* pack.c - portable packing for elements of 4, 8 and 16 bytes. */
#include "cpu/kernels/pack.h"

#include <string.h>

/* Inlined with a constant size, so that the copies become moves. */
static inline __attribute__((always_inline)) void pack(int64_t n, int64_t k, const char *in, int64_t ld, bool k_contiguous,
                                                       char *out, int64_t width, const int64_t bytes) {
  /* A few p at a time, so that a line of `in` is used up while it is in the cache. */
  enum { STRIP = 8 };
  for (int64_t p0 = 0; p0 < k; p0 += STRIP) {
    const int64_t p1 = k - p0 < STRIP ? k : p0 + STRIP;
    for (int64_t r0 = 0; r0 < n; r0 += width) {
      const int64_t w = n - r0 < width ? n - r0 : width;
      char *panel = out + r0 * k * bytes;
      if (k_contiguous) {
        for (int64_t r = 0; r < w; r++)
          for (int64_t p = p0; p < p1; p++)
            memcpy(panel + (p * width + r) * bytes, in + (p + (r0 + r) * ld) * bytes, (size_t)bytes);
      } else {
        for (int64_t p = p0; p < p1; p++) memcpy(panel + p * width * bytes, in + (r0 + p * ld) * bytes, (size_t)(w * bytes));
      }
    }
  }
}

void ws_pack_ref_4(int64_t n, int64_t k, const void *in, int64_t ld, bool k_contiguous, void *out, int64_t width) {
  pack(n, k, in, ld, k_contiguous, out, width, 4);
}

void ws_pack_ref_8(int64_t n, int64_t k, const void *in, int64_t ld, bool k_contiguous, void *out, int64_t width) {
  pack(n, k, in, ld, k_contiguous, out, width, 8);
}

void ws_pack_ref_16(int64_t n, int64_t k, const void *in, int64_t ld, bool k_contiguous, void *out, int64_t width) {
  pack(n, k, in, ld, k_contiguous, out, width, 16);
}

/* As rows of one wide panel. */
void ws_transpose_ref_4(int64_t n, int64_t k, const void *in, int64_t ld_in, void *out, int64_t ld_out) {
  pack(k, n, in, ld_in, true, out, ld_out, 4);
}

void ws_transpose_ref_8(int64_t n, int64_t k, const void *in, int64_t ld_in, void *out, int64_t ld_out) {
  pack(k, n, in, ld_in, true, out, ld_out, 8);
}

void ws_transpose_ref_16(int64_t n, int64_t k, const void *in, int64_t ld_in, void *out, int64_t ld_out) {
  pack(k, n, in, ld_in, true, out, ld_out, 16);
}
