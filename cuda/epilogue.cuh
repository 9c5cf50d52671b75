/* epilogue.cuh - from the sums of products to what is stored: alpha * sum + beta * C, or a running total.
 *
 * Roundings after the k of a sum: real types one for beta * C and one for the multiply-add with alpha. Complex types would need up to
 * four (put together, multiply, add), more than the contract's bound leaves, so their last steps are wide (wide.cuh) and rounded once.
 * beta = 0 never reads C; a scalar with imaginary part 0 multiplies as a real number. */
#ifndef WS_CUDA_EPILOGUE_CUH
#define WS_CUDA_EPILOGUE_CUH
#include "config.cuh"
#include "kernel_args.h"
#include "products.cuh"
#include "wide.cuh"

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

  /* beta * old */
  __device__ __forceinline__ element kept(element old) const {
    if constexpr (Config::unit == 1) {
      return beta_re * old;
    } else {
      if (beta_im == 0) return {beta_re * old.x, beta_re * old.y};
      return {fma(beta_re, old.x, -(beta_im * old.y)), fma(beta_re, old.y, beta_im * old.x)};
    }
  }

  /* alpha * sum + beta * old; old is not looked at if beta_zero. */
  __device__ __forceinline__ element operator()(const products<Config> &sum, conjugation conj, element old) const {
    if constexpr (Config::unit == 1) {
      return beta_zero ? alpha_re * sum.sum : fma(alpha_re, sum.sum, beta_re * old);
    } else {
      wide<real> sum_re, sum_im;
      sum_re.add(sum.by_re.x), sum_re.add(conj.im_im(sum.by_im.x));
      sum_im.add(conj.re_im(sum.by_re.y)), sum_im.add(conj.im_re(sum.by_im.y));
      return scaled(sum_re, sum_im, old);
    }
  }

  /* The same of a sum that is one element. */
  __device__ __forceinline__ element operator()(element sum, element old) const {
    if constexpr (Config::unit == 1) {
      return beta_zero ? alpha_re * sum : fma(alpha_re, sum, beta_re * old);
    } else {
      wide<real> sum_re, sum_im;
      sum_re.add(sum.x), sum_im.add(sum.y);
      return scaled(sum_re, sum_im, old);
    }
  }

private:
  __device__ __forceinline__ element scaled(const wide<real> &sum_re, const wide<real> &sum_im, element old) const {
    wide<real> re, im;
    re.add_product(alpha_re, sum_re), im.add_product(alpha_re, sum_im);
    if (alpha_im != 0) re.add_product(-alpha_im, sum_im), im.add_product(alpha_im, sum_re);
    if (!beta_zero) {
      re.add_product(beta_re, old.x), im.add_product(beta_re, old.y);
      if (beta_im != 0) re.add_product(-beta_im, old.y), im.add_product(beta_im, old.x);
    }
    return {re.rounded(), im.rounded()};
  }
};

/* Complex elements of the caller's are aligned to their real parts only, so that no wider access may touch them. */
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

/* Where a mainloop puts an item's sums, and what it makes of them: element (i, j) of the item goes to first[i + j * ld], as
 * operator()(sum, what stands there), which is read only if reads_old(). */
template <class Config> struct output {
  using element = typename Config::element;
  element *first;
  int64_t ld;
  bool vectors; /* columns may be accessed 16 bytes at a time */
  conjugation conj;
};

/* Element (m_first, n_first) of product `batch` in C, and how C is written. */
template <class Config>
__device__ __forceinline__ output<Config> output_at(const ws_gemm_args &args, int64_t batch, int64_t m_first, int64_t n_first) {
  auto *c = static_cast<typename Config::element *>(args.c) + batch * args.stride_c + n_first * args.ldc + m_first;
  return {c, args.ldc, args.c_vectors != 0, {args.a.conj != 0, args.b.conj != 0}};
}

/* C itself. */
template <class Config> struct output_scaled : output<Config> {
  using element = typename Config::element;
  scaling<Config> scale;
  __device__ __forceinline__ bool reads_old() const { return !scale.beta_zero; }
  __device__ __forceinline__ element operator()(const products<Config> &sum, element old) const {
    return scale(sum, this->conj, old);
  }
};

template <class Config>
__device__ __forceinline__ typename Config::element plus(typename Config::element x, typename Config::element y) {
  if constexpr (Config::unit == 1)
    return x + y;
  else
    return {x.x + y.x, x.y + y.y};
}

/* The sum of the parts of k so far. */
template <class Config> struct output_total : output<Config> {
  using element = typename Config::element;
  bool is_first;
  __device__ __forceinline__ bool reads_old() const { return !is_first; }
  __device__ __forceinline__ element operator()(const products<Config> &sum, element old) const {
    const element part = sum.value(this->conj);
    return is_first ? part : plus<Config>(old, part);
  }
};

/* alpha * sum + beta * C, where the sum is one element already. */
template <class Config>
__device__ __forceinline__ void finish_sum(const scaling<Config> &scale, typename Config::element *at,
                                           typename Config::element sum) {
  store_element<Config>(at, scale(sum, scale.beta_zero ? typename Config::element{} : load_element<Config>(at)));
}

template <class Config, class Output>
__device__ __forceinline__ void finish_element(const Output &out, typename Config::element *at, const products<Config> &sum) {
  store_element<Config>(at, out(sum, out.reads_old() ? load_element<Config>(at) : typename Config::element{}));
}

} // namespace ws
#endif
