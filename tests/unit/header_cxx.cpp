// header_cxx.cpp - the header as C++17 sees it: it compiles, links, and its structs are those of
// C++'s complex types.
#include "wsgemm.h"

#include <complex>
#include <cstdio>
#include <type_traits>

static_assert(sizeof(wsgemm_cfloat) == sizeof(std::complex<float>) && alignof(wsgemm_cfloat) == alignof(std::complex<float>));
static_assert(sizeof(wsgemm_cdouble) == sizeof(std::complex<double>) && alignof(wsgemm_cdouble) == alignof(std::complex<double>));
static_assert(sizeof(wsgemm_f16) == 2 && sizeof(wsgemm_bf16) == 2);
static_assert(std::is_standard_layout_v<wsgemm_gemm_desc> && std::is_trivially_copyable_v<wsgemm_gemm_desc>);

int main() {
  const std::complex<double> a[2] = {{1, 2}, {3, 4}}, z[2] = {{5, 6}, {7, 8}};
  std::complex<double> c(100, 100);
  wsgemm_gemm_desc d = WSGEMM_GEMM_DESC_INIT;
  d.type_a = d.type_b = d.type_c = d.type_scalar = WSGEMM_C64;
  d.transb = WSGEMM_CONJ_TRANS;
  d.m = d.n = 1;
  d.k = 2;
  d.alpha.z = wsgemm_cdouble{1, 0};
  d.beta.z = wsgemm_cdouble{1, 0};
  d.a = a;
  d.b = z;
  d.c = &c;
  d.lda = d.ldb = d.ldc = 1;
  const wsgemm_status status = wsgemm_gemm(nullptr, &d);
  const std::complex<double> expected = 100.0 + std::complex<double>(0, 100) + a[0] * std::conj(z[0]) + a[1] * std::conj(z[1]);
  if (status != WSGEMM_SUCCESS || c != expected) {
    std::fprintf(stderr, "%s: (%g, %g), expected (%g, %g)\n", wsgemm_status_name(status), c.real(), c.imag(), expected.real(),
                 expected.imag());
    return 1;
  }
  const std::complex<float> f[2] = {{1, 2}, {3, 4}};
  std::complex<float> f_c;
  std::complex<double> z_c;
  if (wsgemm_cgemm(nullptr, WSGEMM_COL_MAJOR, WSGEMM_TRANS, WSGEMM_NO_TRANS, 1, 1, 2, {1, 0}, f, 2, f, 2, {0, 0}, &f_c, 1) !=
          WSGEMM_SUCCESS ||
      wsgemm_zgemm(nullptr, WSGEMM_COL_MAJOR, WSGEMM_TRANS, WSGEMM_NO_TRANS, 1, 1, 2, {1, 0}, a, 2, z, 2, {0, 0}, &z_c, 1) !=
          WSGEMM_SUCCESS ||
      f_c != f[0] * f[0] + f[1] * f[1] || z_c != a[0] * z[0] + a[1] * z[1]) {
    std::fprintf(stderr, "cgemm: (%g, %g), zgemm: (%g, %g)\n", f_c.real(), f_c.imag(), z_c.real(), z_c.imag());
    return 1;
  }
  const wsgemm_f16 h[2] = {0x3c00, 0x4000}; // 1, 2
  wsgemm_f16 h_c = 0;
  const wsgemm_bf16 b[2] = {0x3f80, 0x4000};
  wsgemm_bf16 b_c = 0;
  if (wsgemm_hgemm(nullptr, WSGEMM_COL_MAJOR, WSGEMM_TRANS, WSGEMM_NO_TRANS, 1, 1, 2, 1, h, 2, h, 2, 0, &h_c, 1) !=
          WSGEMM_SUCCESS ||
      wsgemm_bgemm(nullptr, WSGEMM_COL_MAJOR, WSGEMM_TRANS, WSGEMM_NO_TRANS, 1, 1, 2, 1, b, 2, b, 2, 0, &b_c, 1) !=
          WSGEMM_SUCCESS ||
      h_c != 0x4500 || b_c != 0x40a0) {
    std::fprintf(stderr, "halves: %#x, %#x, expected 5\n", (unsigned)h_c, (unsigned)b_c);
    return 1;
  }
  std::puts("header_cxx: 5 products, right");
  return 0;
}
