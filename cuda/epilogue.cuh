/* epilogue.cuh - C = alpha * sum + beta * C for single elements, with the roundings of the CPU kernels: beta * C first, then one
 * multiply-add with alpha (complex: two products, one sum). beta = 0 never reads C; a scalar with imaginary part 0 multiplies as a
 * real number. */
#ifndef WS_CUDA_EPILOGUE_CUH
#define WS_CUDA_EPILOGUE_CUH
#include "config.cuh"
#include "kernel_args.h"

namespace ws {

/* The two scalars in the type of the arithmetic. */
template <class Config> struct scaling {
  using real = typename Config::real;
  using element = typename Config::element;
  real alpha_re, alpha_im, beta_re, beta_im;
  bool beta_zero;

  __device__ explicit scaling(const ws_gemm_args &args) : beta_zero(args.beta_zero) {
    if constexpr (sizeof(real) == 4) {
      alpha_re = args.alpha.s[0], alpha_im = args.alpha.s[1], beta_re = args.beta.s[0], beta_im = args.beta.s[1];
    } else {
      alpha_re = args.alpha.d[0], alpha_im = args.alpha.d[1], beta_re = args.beta.d[0], beta_im = args.beta.d[1];
    }
  }

  static __device__ element times(real re, real im, element x) {
    if constexpr (Config::unit == 1) {
      return re * x;
    } else {
      if (im == 0) return {re * x.x, re * x.y};
      return {fma(re, x.x, -(im * x.y)), fma(re, x.y, im * x.x)};
    }
  }

  /* old is not looked at if beta_zero. */
  __device__ element operator()(element sum, element old) const {
    if constexpr (Config::unit == 1) {
      return beta_zero ? alpha_re * sum : fma(alpha_re, sum, beta_re * old);
    } else {
      element r = times(alpha_re, alpha_im, sum);
      if (!beta_zero) {
        const element kept = times(beta_re, beta_im, old);
        r.x += kept.x, r.y += kept.y;
      }
      return r;
    }
  }
};

/* Sums of re a (re b, im b) and of im a (im b, re b) to the complex sum of a b, conj(a) b, .. */
template <class Element>
__device__ __forceinline__ Element combine_products(Element by_re, Element by_im, bool conj_a, bool conj_b) {
  const auto minus_if = [](bool negate, auto x) { return negate ? -x : x; };
  return {by_re.x - minus_if(conj_a != conj_b, by_im.x), minus_if(conj_b, by_re.y) + minus_if(conj_a, by_im.y)};
}

/* Complex elements are aligned to their real parts only, so that no wider access may touch them. */
template <class Config> __device__ __forceinline__ typename Config::element load_element(const typename Config::element *p) {
  if constexpr (Config::unit == 1) {
    return *p;
  } else {
    const auto *parts = reinterpret_cast<const typename Config::real *>(p);
    return {parts[0], parts[1]};
  }
}

template <class Config>
__device__ __forceinline__ void store_element(typename Config::element *p, typename Config::element value) {
  if constexpr (Config::unit == 1) {
    *p = value;
  } else {
    auto *parts = reinterpret_cast<typename Config::real *>(p);
    parts[0] = value.x, parts[1] = value.y;
  }
}

template <class Config>
__device__ __forceinline__ void finish_element(const scaling<Config> &scale, typename Config::element *c,
                                               typename Config::element sum) {
  store_element<Config>(c, scale(sum, scale.beta_zero ? typename Config::element{} : load_element<Config>(c)));
}

} // namespace ws
#endif
