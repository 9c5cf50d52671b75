// test_slice_kernels.cpp - the slices that cuda/kernels/slices.cuh makes of four neighbours, and
// which of them it says stand, run on the host beside their definition in cuda/shared/slice_args.h.
// Threads, and the instructions between them, are not here.
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstring>

#include "host_device.h"

#include "cuda/kernels/slices.cuh"

extern "C" {
#include "support/check.h"
}

namespace {

float bits_to_float(uint32_t bits) {
  float x;
  std::memcpy(&x, &bits, sizeof x);
  return x;
}

float value_of(uint16_t bits, bool is_bf16) {
  if (is_bf16) return bits_to_float(uint32_t(bits) << 16);
  const int exponent = bits >> 10 & 31, fraction = bits & 0x3ff;
  const float magnitude = exponent == 0 ? std::ldexp(float(fraction), -24) : std::ldexp(float(0x400 | fraction), exponent - 25);
  return bits >> 15 ? -magnitude : magnitude;
}

// To nearest even, by its definition.
float rounded(double x, bool is_bf16) {
  if (x == 0) return float(x);
  const int least = is_bf16 ? -126 : -14, digits = is_bf16 ? 7 : 10, e = std::ilogb(x) > least ? std::ilogb(x) : least;
  return float(std::ldexp(std::nearbyint(std::ldexp(x, digits - e)), e - digits));
}

// Four neighbours along k of a real operand; slice s at s * 4.
template <int SLICES> void check_four(const float (&x)[4], int exponent, int *n_standing) {
  uint16_t slices[SLICES * 4] = {};
  ws_slice_operand op = {};
  op.to = slices, op.n_lines = 1, op.pitch = 4, op.form = WS_SLICE_REALS, op.along_k = 1;
  const ws::slice_place place(op, 0, SLICES, 0, 0);
  const float factor = std::ldexp(1.0f, exponent), scale[4] = {factor, factor, factor, factor};
  bool fit[4] = {true, true, true, true};
  ws::split_four<SLICES, false>(place, 0, x, scale, fit);
  for (int j = 0; j < 4; j++) {
    double rest = double(x[j]) * factor;
    for (int s = 0; s < SLICES; s++) {
      const float expected = rounded(rest, SLICES == 3), got = value_of(slices[s * 4 + j], SLICES == 3);
      CHECK(got == expected || !fit[j], "%d slices: slice %d of %a is %a, not %a", SLICES, s, double(x[j]), double(got),
            double(expected));
      rest = (rest - double(expected)) * (SLICES == 2 ? 2048 : 1);
    }
    const float y = std::fabs(x[j] * factor);
    CHECK(fit[j] == (x[j] == 0 || y >= (SLICES == 1   ? 0x1p-14f
                                        : SLICES == 2 ? 0x1p-15f
                                                      : 0x1p-54f)),
          "%d slices: %a with 2^%d: stands: %d", SLICES, double(x[j]), exponent, int(fit[j]));
    *n_standing += fit[j];
  }
}

// Of all magnitudes, those next to the rule's edges, and what scaling makes subnormal or 0.
float drawn(struct check_random *random, int exponent) {
  static const float edges[] = {0x1p-14f, 0x1p-15f, 0x1p-54f, 0x1p-24f, 0x1p-25f};
  const float sign = check_random_in(random, 0, 1) ? 1.0f : -1.0f;
  const int kind = int(check_random_in(random, 0, 5));
  if (kind == 0) return 0;
  if (kind < 4) {
    float edge = edges[check_random_in(random, 0, 4)];
    if (check_random_in(random, 0, 1)) edge = std::nextafter(edge, check_random_in(random, 0, 1) ? 0.0f : 1.0f);
    return sign * std::ldexp(edge, -exponent);
  }
  const double y = std::ldexp(1 + std::fabs(check_random_unit(random)), int(check_random_in(random, kind == 4 ? -160 : -30, 14)));
  return float(sign * std::ldexp(y, -exponent));
}

void slices() {
  struct check_random random = check_random_from(41);
  int n_standing[4] = {0};
  const int n = 200000 / check_scale();
  for (int i = 0; i < n; i++) {
    const int exponent = int(check_random_in(&random, -113, 120));
    float x[4];
    for (float &one : x) one = drawn(&random, exponent);
    check_four<1>(x, exponent, &n_standing[1]);
    check_four<2>(x, exponent, &n_standing[2]);
    check_four<3>(x, exponent, &n_standing[3]);
  }
  for (int s = 1; s <= 3; s++) CHECK(n_standing[s] > n && n_standing[s] < 4 * n, "%d slices: %d stand", s, n_standing[s]);
}

// Four neighbours of a structured operand from every place on, by the definition of core/matrix.h; what
// is not stored is NaN in memory.
template <bool COMPLEX> void check_structure(int structure, bool upper) {
  constexpr int n = 11, ld = 13, unit = COMPLEX ? 2 : 1;
  static float memory[n * ld * unit];
  const auto stored = [&](int i, int j) { return upper ? i <= j : i >= j; };
  const auto real_part = [](int i, int j) { return float(1 + 20 * i + j); };
  for (int j = 0; j < n; j++)
    for (int i = 0; i < ld; i++)
      for (int u = 0; u < unit; u++) {
        const bool is_read = i < n && stored(i, j) && !(i == j && structure == WS_UNIT_TRIANGULAR);
        memory[(j * ld + i) * unit + u] = !is_read ? NAN : u == 0 ? real_part(i, j) : 1000 + real_part(i, j);
      }
  ws_slice_operand op = {};
  op.structure = structure, op.stored_upper = upper, op.ld = ld * unit;
  for (int line = 0; line < n; line++)
    for (int first = 0; first < n * unit; first += 4) {
      float x[4];
      ws::load_structured<4, COMPLEX>(op, memory, line, first, n * unit - first, x);
      for (int e = 0; e < 4; e++) {
        const int i = (first + e) / unit, u = (first + e) % unit;
        float expected = 0;
        if (i >= n)
          expected = 0;
        else if (i == line && structure == WS_UNIT_TRIANGULAR)
          expected = u == 0;
        else if (i == line && u == 1 && structure == WS_HERMITIAN)
          expected = 0;
        else if (stored(i, line))
          expected = real_part(i, line) + 1000.0f * float(u);
        else if (structure < WS_TRIANGULAR)
          expected = (real_part(line, i) + 1000.0f * float(u)) * (u == 1 && structure == WS_HERMITIAN ? -1.0f : 1.0f);
        CHECK(x[e] == expected, "structure %d, upper %d: (%d, %d) part %d is %g, not %g", structure, upper, i, line, u,
              double(x[e]), double(expected));
      }
    }
}

void structures() {
  for (int structure = WS_SYMMETRIC; structure <= WS_UNIT_TRIANGULAR; structure++)
    for (int upper = 0; upper < 2; upper++) {
      if (structure != WS_HERMITIAN) check_structure<false>(structure, upper);
      check_structure<true>(structure, upper);
    }
}

} // namespace

static const struct check_case cases[] = {{"slices", slices}, {"structures", structures}};
CHECK_MAIN("slice_kernels", cases)
