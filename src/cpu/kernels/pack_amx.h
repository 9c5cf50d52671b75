/* pack_amx.h - packing halves for the matrix unit, and a look at their exponents on the way.
 *
 * A panel holds 32 lines (rows of op(A), columns of op(B)) over one block of k:
 *
 *    head      the panel's ws_exponents
 *    step 0    32 elements of k: a tile of lines 0 .. 15, a tile of lines 16 .. 31
 *    step 1    ...
 *
 * A tile's 16 rows are, of op(B), its lines, with 16 pairs of neighbours in k each; of op(A), the
 * 16 pairs, each for all lines: the one is the transpose of the other, a pair being a word. What a
 * panel has beyond its last line, or beyond k, is zero in both operands, so that it adds nothing,
 * Inf or NaN being where it may; a second tile without any line is left as it is. */
#ifndef WS_CPU_PACK_AMX_H
#define WS_CPU_PACK_AMX_H
#include "cpu/kernels/exponents.h"
#include "cpu/kernels/simd_amx.h"
#include "cpu/kernels/transpose_avx512.h"

enum {
  PANEL_LINES = 2 * WS_TILE_LINES,
  STEP = WS_TILE_LINE_BYTES / 2, /* elements of k */
  STEP_BYTES = 2 * WS_TILE_BYTES
};

/* While a panel is being packed: in each place the least magnitude that is not zero, less one, and
 * the largest. */
typedef struct panel_head {
  union {
    struct {
      __m512i least_less_one, largest;
    } seen;
    ws_exponents exponents;
  };
} panel_head;

static int64_t panel_bytes(int64_t k) { return (int64_t)sizeof(panel_head) + (k + STEP - 1) / STEP * STEP_BYTES; }

#define PACK_INLINE static inline __attribute__((always_inline))

PACK_INLINE void panel_begin(panel_head *head) {
  head->seen.least_less_one = _mm512_set1_epi16(-1);
  head->seen.largest = _mm512_setzero_si512();
}

PACK_INLINE void look_at(__m512i halves, __m512i *least_less_one, __m512i *largest) {
  const __m512i magnitude = _mm512_and_si512(halves, _mm512_set1_epi16(0x7fff));
  *least_less_one = _mm512_min_epu16(*least_less_one, _mm512_sub_epi16(magnitude, _mm512_set1_epi16(1)));
  *largest = _mm512_max_epu16(*largest, magnitude);
}

static void panel_end(panel_head *head) {
  uint16_t least[STEP], largest[STEP];
  _mm512_storeu_si512(least, head->seen.least_less_one);
  _mm512_storeu_si512(largest, head->seen.largest);
  for (int i = 1; i < STEP; i++) {
    if (least[i] < least[0]) least[0] = least[i];
    if (largest[i] > largest[0]) largest[0] = largest[i];
  }
  head->exponents = ws_exponents_of(least[0], largest[0]);
}

/* The first n of 32 places. */
PACK_INLINE __mmask32 first_places(int64_t n) { return n >= STEP ? (__mmask32)0xffffffffu : (__mmask32)((1u << n) - 1); }

PACK_INLINE void store_tile(char *tile, const __m512i rows[WS_TILE_LINES]) {
#pragma GCC unroll 16
  for (int r = 0; r < WS_TILE_LINES; r++) _mm512_store_si512(tile + r * WS_TILE_LINE_BYTES, rows[r]);
}

/* k contiguous: line after line is read, each a step long. */
PACK_INLINE void pack_along_k(int64_t n, int64_t k, const uint16_t *in, int64_t ld, char *out, const bool pairs_first) {
  for (int64_t r0 = 0; r0 < n; r0 += PANEL_LINES, out += panel_bytes(k)) {
    panel_head *head = (panel_head *)(void *)out;
    panel_begin(head);
    __m512i least = head->seen.least_less_one, largest = head->seen.largest;
    for (int64_t t = 0; t < 2 && r0 + t * WS_TILE_LINES < n; t++) {
      const int64_t first = r0 + t * WS_TILE_LINES, lines = n - first;
      char *tile = out + sizeof(panel_head) + t * WS_TILE_BYTES;
      for (int64_t p = 0; p < k; p += STEP, tile += STEP_BYTES) {
        const __mmask32 places = first_places(k - p);
        __m512i v[WS_TILE_LINES];
#pragma GCC unroll 16
        for (int r = 0; r < WS_TILE_LINES; r++) {
          v[r] = r < lines ? _mm512_maskz_loadu_epi16(places, in + (first + r) * ld + p) : _mm512_setzero_si512();
          look_at(v[r], &least, &largest);
        }
        if (pairs_first) transpose_16(v);
        store_tile(tile, v);
      }
    }
    head->seen.least_less_one = least, head->seen.largest = largest;
    panel_end(head);
  }
}

/* Two neighbours in k of 32 lines: their pairs for the first 16 lines and for the others. */
PACK_INLINE void pair_up(__m512i x, __m512i y, __m512i *low, __m512i *high) {
  const __m512i even =
      _mm512_set_epi32(0x002f000f, 0x002e000e, 0x002d000d, 0x002c000c, 0x002b000b, 0x002a000a, 0x00290009, 0x00280008, 0x00270007,
                       0x00260006, 0x00250005, 0x00240004, 0x00230003, 0x00220002, 0x00210001, 0x00200000);
  *low = _mm512_permutex2var_epi16(x, even, y);
  *high = _mm512_permutex2var_epi16(x, _mm512_add_epi16(even, _mm512_set1_epi16(WS_TILE_LINES)), y);
}

/* Lines contiguous: a step of k at a time of all panels, so that 32 columns of the operand are read
 * side by side from end to end; those of the next step are asked for. */
PACK_INLINE void pack_across_k(int64_t n, int64_t k, const uint16_t *in, int64_t ld, char *out, const bool pairs_first) {
  const int64_t stride_bytes = panel_bytes(k);
  for (int64_t r0 = 0; r0 < n; r0 += PANEL_LINES) panel_begin((panel_head *)(void *)(out + r0 / PANEL_LINES * stride_bytes));
  for (int64_t p = 0; p < k; p += STEP)
    for (int64_t r0 = 0; r0 < n; r0 += PANEL_LINES) {
      char *panel = out + r0 / PANEL_LINES * stride_bytes, *tile = panel + sizeof(panel_head) + p / STEP * STEP_BYTES;
      panel_head *head = (panel_head *)(void *)panel;
      __m512i least = head->seen.least_less_one, largest = head->seen.largest, low[WS_TILE_LINES], high[WS_TILE_LINES];
      const __mmask32 places = first_places(n - r0);
      const uint16_t *from = in + r0 + p * ld;
#pragma GCC unroll 16
      for (int q = 0; q < WS_TILE_LINES; q++) {
        __m512i x = _mm512_setzero_si512(), y = x;
        if (p + 2 * q < k) x = _mm512_maskz_loadu_epi16(places, from + 2 * q * ld);
        if (p + 2 * q + 1 < k) y = _mm512_maskz_loadu_epi16(places, from + (2 * q + 1) * ld);
        __builtin_prefetch(from + (2 * q + STEP) * ld, 0, 2);
        __builtin_prefetch(from + (2 * q + 1 + STEP) * ld, 0, 2);
        look_at(x, &least, &largest);
        look_at(y, &least, &largest);
        pair_up(x, y, &low[q], &high[q]);
      }
      if (!pairs_first) transpose_16(low);
      store_tile(tile, low);
      if (n - r0 > WS_TILE_LINES) {
        if (!pairs_first) transpose_16(high);
        store_tile(tile + WS_TILE_BYTES, high);
      }
      head->seen.least_less_one = least, head->seen.largest = largest;
    }
  for (int64_t r0 = 0; r0 < n; r0 += PANEL_LINES) panel_end((panel_head *)(void *)(out + r0 / PANEL_LINES * stride_bytes));
}

static void pack_a(int64_t m, int64_t k, const uint16_t *in, int64_t ld, bool k_contiguous, void *out) {
  if (k_contiguous)
    pack_along_k(m, k, in, ld, out, true);
  else
    pack_across_k(m, k, in, ld, out, true);
}

static void pack_b(int64_t n, int64_t k, const uint16_t *in, int64_t ld, bool k_contiguous, void *out) {
  if (k_contiguous)
    pack_along_k(n, k, in, ld, out, false);
  else
    pack_across_k(n, k, in, ld, out, false);
}
#endif
