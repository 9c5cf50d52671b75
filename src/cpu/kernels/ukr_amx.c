/* ukr_amx.c - the kernels of the amx rows of kernels.def: bfloat16 on the matrix unit, 32 x 32 sums
 * in four of its tiles.
 *
 *                      a: 32 rows, k              the unit's result is C transposed: its rows are columns of C, which lie
 *                     +-------+-------+           contiguous; so op(B) is its first operand, by columns, and op(A) the
 *                     | tmm6  | tmm7  |           second, by pairs (pack_amx.h)
 *           +------+  +-------+-------+
 *      b:   | tmm4 |  | tmm0  | tmm1  |           for each step of 32 k four tiles are loaded and four products added:
 *      32   +------+  +-------+-------+           8 + 8 + 8 + 8 cycles of loads beside 4 x 16 of products
 *  columns  | tmm5 |  | tmm2  | tmm3  |
 *           +------+  +-------+-------+
 *
 * A block's sums start from zero in the unit and are added to those of the blocks before by
 * AVX-512, which flushes nothing. A tile whose panels do not suit the unit (exponents.h) is
 * multiplied by the FP32 kernels, from the same panels. A product passes through less than k
 * roundings either way: at most 15 in its chain, one for the pair of chains, and one for each later
 * step and block. */
#include <immintrin.h>

#include "cpu/kernels/ukr.h"

#include "cpu/kernels/pack_amx.h"

#define WS_CPU_ROWS_AMX
#define WS_CPU_ROWS_AVX512
#include "cpu/kernels/kernel_shapes.h"

_Static_assert((int)ws_mr_amx_b == PANEL_LINES && (int)ws_nr_amx_b == PANEL_LINES,
               "the kernel must have the shape that its row says");
_Static_assert(ws_kc_amx_b <= 1 << WS_EXPONENTS_LOG2_K, "the guard against overflow counts on it");
_Static_assert((int)ws_mr_avx512_s == PANEL_LINES, "tiles that do not suit the unit are multiplied whole");

extern const ws_ukr_set ws_ukr_avx512_s;

static void begin(void) {
  ws_tile_config config = {.palette = 1};
  for (int t = 0; t < WS_N_TILES; t++) config.line_bytes[t] = WS_TILE_LINE_BYTES, config.lines[t] = WS_TILE_LINES;
  ws_tiles_configure(&config);
}

static void end(void) { ws_tiles_release(); }

/* sums = A B for a tile of 32 rows (or 16, if not tall) and 32 columns (or 16, if not wide). */
static inline __attribute__((always_inline)) void unit_tile(int64_t k, const char *a, const char *b, float *sums, int64_t ld,
                                                            const bool tall, const bool wide) {
  WS_TILE_ZERO(0);
  if (tall) WS_TILE_ZERO(1);
  if (wide) WS_TILE_ZERO(2);
  if (tall && wide) WS_TILE_ZERO(3);
  for (int64_t p = 0; p < k; p += STEP, a += STEP_BYTES, b += STEP_BYTES) {
    WS_TILE_LOAD(4, b, WS_TILE_LINE_BYTES);
    WS_TILE_LOAD(6, a, WS_TILE_LINE_BYTES);
    if (wide) WS_TILE_LOAD(5, b + WS_TILE_BYTES, WS_TILE_LINE_BYTES);
    if (tall) WS_TILE_LOAD(7, a + WS_TILE_BYTES, WS_TILE_LINE_BYTES);
    WS_TILE_DOT(0, 4, 6);
    if (wide) WS_TILE_DOT(2, 5, 6);
    if (tall) WS_TILE_DOT(1, 4, 7);
    if (tall && wide) WS_TILE_DOT(3, 5, 7);
  }
  const int64_t ld_bytes = ld * (int64_t)sizeof(float);
  WS_TILE_STORE(0, sums, ld_bytes);
  if (tall) WS_TILE_STORE(1, sums + WS_TILE_LINES, ld_bytes);
  if (wide) WS_TILE_STORE(2, sums + WS_TILE_LINES * ld, ld_bytes);
  if (tall && wide) WS_TILE_STORE(3, sums + WS_TILE_LINES * ld + WS_TILE_LINES, ld_bytes);
}

static void any_tile(int64_t k, const char *a, int64_t m, const char *b, int64_t n, float *sums, int64_t ld) {
  if (m > WS_TILE_LINES && n > WS_TILE_LINES)
    unit_tile(k, a, b, sums, ld, true, true);
  else if (m > WS_TILE_LINES)
    unit_tile(k, a, b, sums, ld, true, false);
  else if (n > WS_TILE_LINES)
    unit_tile(k, a, b, sums, ld, false, true);
  else
    unit_tile(k, a, b, sums, ld, false, false);
}

/* sums += block; what lies beyond m, which may be anything, raises no exception. */
static void add_block(int64_t m, int64_t n, const float *block, float *sums, int64_t ld) {
  const __mmask16 low = (__mmask16)(m >= 16 ? 0xffff : (1u << m) - 1), high = (__mmask16)(m > 16 ? (1ull << (m - 16)) - 1 : 0);
  for (int64_t j = 0; j < n; j++, block += PANEL_LINES, sums += ld) {
    _mm512_mask_storeu_ps(sums, low, _mm512_add_ps(_mm512_maskz_loadu_ps(low, sums), _mm512_maskz_loadu_ps(low, block)));
    if (high)
      _mm512_mask_storeu_ps(sums + 16, high,
                            _mm512_add_ps(_mm512_maskz_loadu_ps(high, sums + 16), _mm512_maskz_loadu_ps(high, block + 16)));
  }
}

/* ---- Tiles that do not suit the unit --------------------------------------------------------- */

enum { CHUNK = 4 * STEP };

/* Rows of op(A) by pairs to floats: element i, p at out + i + p * PANEL_LINES. */
static void widen_a(int64_t k, const char *a, int64_t m, float *out) {
  for (int64_t p = 0; p < k; p += STEP, a += STEP_BYTES)
    for (int64_t t = 0; t * WS_TILE_LINES < m; t++)
      for (int64_t q = 0; q < WS_TILE_LINES; q++) {
        const __m512i pairs = _mm512_load_si512(a + t * WS_TILE_BYTES + q * WS_TILE_LINE_BYTES);
        float *to = out + (p + 2 * q) * PANEL_LINES + t * WS_TILE_LINES;
        _mm512_store_si512(to, _mm512_slli_epi32(pairs, 16));
        _mm512_store_si512(to + PANEL_LINES, _mm512_and_si512(pairs, _mm512_set1_epi32((int)0xffff0000u)));
      }
}

/* Columns of op(B) to floats: element p, j at out + p + j * CHUNK. */
static void widen_b(int64_t k, const char *b, int64_t n, float *out) {
  for (int64_t p = 0; p < k; p += STEP, b += STEP_BYTES)
    for (int64_t j = 0; j < n; j++)
      for (int64_t half = 0; half < 2; half++) {
        const __m256i v = _mm256_load_si256((const __m256i *)(const void *)(b + j * WS_TILE_LINE_BYTES + half * 32));
        _mm512_store_si512(out + j * CHUNK + p + half * 16, _mm512_slli_epi32(_mm512_cvtepu16_epi32(v), 16));
      }
}

/* sums = A B, or sums += A B, a few k at a time. */
static __attribute__((noinline)) void exact_tile(int64_t k, const char *a, int64_t m, const char *b, int64_t n, float *sums,
                                                 int64_t ld, bool adds) {
  _Alignas(64) float a_floats[PANEL_LINES * CHUNK], b_floats[PANEL_LINES * CHUNK];
  const ws_ukr_set *ukr = &ws_ukr_avx512_s;
  ws_scale scale = {
      .alpha = {.s = {1}}, .beta = {.s = {1}}, .alpha_one = true, .beta_one = true, .alpha_real = true, .beta_real = true};
  for (int64_t p = 0; p < k; p += CHUNK) {
    const int64_t k_chunk = k - p < CHUNK ? k - p : CHUNK;
    widen_a(k_chunk, a + p / STEP * STEP_BYTES, m, a_floats);
    widen_b(k_chunk, b + p / STEP * STEP_BYTES, n, b_floats);
    scale.beta_zero = p == 0 && !adds;
    for (int64_t j = 0; j < n; j += ukr->nr) {
      const int64_t n_tile = n - j < ukr->nr ? n - j : ukr->nr;
      ukr->tile[WS_B_COLS][m > ukr->vl][n_tile - 1](k_chunk, a_floats, PANEL_LINES, b_floats + j * CHUNK, CHUNK, sums + j * ld,
                                                    ld, &scale, m);
    }
  }
}

/* ---- All tiles ------------------------------------------------------------------------------- */

static void sweep(int64_t k, const void *a_panels, int64_t m, const void *b_panels, int64_t n, float *sums, int64_t ld,
                  bool adds) {
  const int64_t stride_bytes = panel_bytes(k);
  const char *b = b_panels;
  for (int64_t j = 0; j < n; j += PANEL_LINES, b += stride_bytes) {
    const int64_t n_tile = n - j < PANEL_LINES ? n - j : PANEL_LINES;
    const char *a = a_panels, *b_tiles = b + sizeof(panel_head);
    for (int64_t i = 0; i < m; i += PANEL_LINES, a += stride_bytes) {
      const int64_t m_tile = m - i < PANEL_LINES ? m - i : PANEL_LINES;
      const char *a_tiles = a + sizeof(panel_head);
      float *c = sums + i + j * ld;
      const panel_head *a_head = (const panel_head *)(const void *)a, *b_head = (const panel_head *)(const void *)b;
      if (!ws_exponents_suit(&a_head->exponents, &b_head->exponents)) {
        exact_tile(k, a_tiles, m_tile, b_tiles, n_tile, c, ld, adds);
      } else if (!adds) {
        any_tile(k, a_tiles, m_tile, b_tiles, n_tile, c, ld);
      } else {
        _Alignas(64) float block[PANEL_LINES * PANEL_LINES];
        any_tile(k, a_tiles, m_tile, b_tiles, n_tile, block, PANEL_LINES);
        add_block(m_tile, n_tile, block, c, ld);
      }
    }
  }
}

const ws_matrix_unit ws_unit_amx = {
    .panel_bytes = panel_bytes,
    .begin = begin,
    .end = end,
    .pack_a = pack_a,
    .pack_b = pack_b,
    .sweep = sweep,
};
