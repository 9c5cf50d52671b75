/* epilogue.cuh - from the sums of products to what is stored: alpha * sum + beta * C, or a running
 * total.
 *
 * What is summed, scaled and put together are numbers of type Config::sum; C is of that type, too,
 * except for 16-bit types (half_c.cuh), which have one rounding more, when C is stored.
 *
 * Roundings after the k of a sum: real types one for beta * C and one for the multiply-add with
 * alpha. Complex types would need up to four (put together, multiply, add), more than the
 * contract's bound leaves, so their last steps are wide (wide.cuh) and rounded once. beta = 0 never
 * reads C; a scalar with imaginary part 0 multiplies as a real number. */
#ifndef WS_CUDA_EPILOGUE_CUH
#define WS_CUDA_EPILOGUE_CUH
#include <type_traits>

#include "cuda/epilogue/steps.cuh"
#include "cuda/rows/config.cuh"
#include "cuda/shared/kernel_args.h"
#include "cuda/shared/products.cuh"
#include "cuda/shared/wide.cuh"

namespace ws {

/* The two scalars in the type of the arithmetic. */
template <class Config> struct scaling {
  using real = typename Config::real;
  using number = typename Config::sum;
  real alpha_re, alpha_im, beta_re, beta_im;
  bool beta_zero;

  __device__ explicit scaling(const ws_gemm_args &args) : beta_zero(args.beta_zero) {
    if constexpr (sizeof(real) == 4) {
      alpha_re = args.alpha.s[0], alpha_im = args.alpha.s[1], beta_re = args.beta.s[0], beta_im = args.beta.s[1];
    } else {
      alpha_re = args.alpha.d[0], alpha_im = args.alpha.d[1], beta_re = args.beta.d[0], beta_im = args.beta.d[1];
    }
  }

  __device__ scaling(real a_re, real a_im, real b_re, real b_im, bool zero)
      : alpha_re(a_re), alpha_im(a_im), beta_re(b_re), beta_im(b_im), beta_zero(zero) {}

  /* beta * old */
  __device__ __forceinline__ number kept(number old) const {
    if constexpr (Config::unit == 1) {
      return beta_re * old;
    } else {
      if (beta_im == 0) return {beta_re * old.x, beta_re * old.y};
      return {fma(beta_re, old.x, -(beta_im * old.y)), fma(beta_re, old.y, beta_im * old.x)};
    }
  }

  /* alpha * sum + beta * old; old is not looked at if beta_zero. */
  __device__ __forceinline__ number operator()(const products<Config> &sum, conjugation conj, number old) const {
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
  __device__ __forceinline__ number operator()(number sum, number old) const {
    if constexpr (Config::unit == 1) {
      return beta_zero ? alpha_re * sum : fma(alpha_re, sum, beta_re * old);
    } else {
      wide<real> sum_re, sum_im;
      sum_re.add(sum.x), sum_im.add(sum.y);
      return scaled(sum_re, sum_im, old);
    }
  }

  /* Real factors, which by_real() rounds as those of real types are; others, of complex types, need more than double precision. */
  __device__ __forceinline__ bool is_real() const { return Config::unit == 1 || (alpha_im == 0 && beta_im == 0); }
  __device__ __forceinline__ number by_real(number sum, number old) const { return beta_zero ? alone(sum) : with_old(sum, old); }
  __device__ __forceinline__ number alone(number sum) const {
    if constexpr (Config::unit == 1)
      return alpha_re * sum;
    else
      return {alpha_re * sum.x, alpha_re * sum.y};
  }
  __device__ __forceinline__ number with_old(number sum, number old) const {
    if constexpr (Config::unit == 1)
      return fma(alpha_re, sum, beta_re * old);
    else
      return {fma(alpha_re, sum.x, beta_re * old.x), fma(alpha_re, sum.y, beta_re * old.y)};
  }

private:
  __device__ __forceinline__ number scaled(const wide<real> &sum_re, const wide<real> &sum_im, number old) const {
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

/* Elements of C, which for 16-bit types are not what is summed. */
template <class Config> constexpr bool is_half = sizeof(typename Config::element) == 2;
template <class Config> using c_pointer = std::conditional_t<is_half<Config>, half_c, typename Config::sum *>;

template <class Config> __device__ __forceinline__ c_pointer<Config> c_of(const ws_gemm_args &args) {
  if constexpr (is_half<Config>)
    return {static_cast<unsigned char *>(args.c), args.type_c};
  else
    return static_cast<typename Config::sum *>(args.c);
}

/* Complex elements of the caller's are aligned to their real parts only, so that no wider access
 * may touch them. */
template <class Config> __device__ __forceinline__ typename Config::sum load_element(const typename Config::sum *p) {
  if constexpr (Config::unit == 1) {
    return *p;
  } else {
    const auto *parts = reinterpret_cast<const typename Config::real *>(p);
    return {parts[0], parts[1]};
  }
}

/* Whether all of C's elements are aligned to their whole size. */
template <class Config> __device__ __forceinline__ bool has_whole_elements(const ws_gemm_args &args) {
  return reinterpret_cast<uintptr_t>(args.c) % sizeof(typename Config::sum) == 0;
}

template <class Config> __device__ __forceinline__ void store_element(typename Config::sum *p, typename Config::sum value) {
  if constexpr (Config::unit == 1) {
    *p = value;
  } else {
    auto *parts = reinterpret_cast<typename Config::real *>(p);
    parts[0] = value.x, parts[1] = value.y;
  }
}

template <class Config> __device__ __forceinline__ float load_element(const half_c &c) { return c.load(); }
template <class Config> __device__ __forceinline__ void store_element(const half_c &c, float value) { c.store(value); }

/* Neighbours in a column where C's columns, or those of sums, may be accessed 16 bytes at a
 * time. */
template <class Config> struct alignas(copy_bytes) sum_vector {
  static constexpr int length = copy_bytes / int(sizeof(typename Config::sum));
  typename Config::sum e[length];
};

template <class Config> __device__ __forceinline__ sum_vector<Config> load_vector(const typename Config::sum *p) {
  return *reinterpret_cast<const sum_vector<Config> *>(p);
}
template <class Config> __device__ __forceinline__ void store_vector(typename Config::sum *p, const sum_vector<Config> &x) {
  *reinterpret_cast<sum_vector<Config> *>(p) = x;
}
template <class Config> __device__ __forceinline__ sum_vector<Config> load_vector(const half_c &c) {
  const float4 x = c.load_four();
  return {{x.x, x.y, x.z, x.w}};
}
template <class Config> __device__ __forceinline__ void store_vector(const half_c &c, const sum_vector<Config> &x) {
  c.store_four({x.e[0], x.e[1], x.e[2], x.e[3]});
}

/* Of an item's column; and the row whose imaginary part counts as 0, and is stored so. */
struct stored_rows {
  int begin, end, real;
};

/* Where a mainloop puts an item's sums, and what it makes of them: element (i, j) of the item goes
 * to first + i + j * ld, as operator()(sum, what is there), which is read only if reads_old(). */
template <class Config, class Pointer = typename Config::sum *> struct output {
  Pointer first;
  int64_t ld;
  bool vectors; /* columns may be accessed 16 bytes at a time */
  conjugation conj;
  /* Whether only those elements (i, j) of the item are stored that it wants. */
  static constexpr bool is_partial = false;
  __device__ __forceinline__ bool wants(int64_t, int64_t) const { return true; }
  /* Of the item's column, of which n_m rows exist: those that are stored. */
  __device__ __forceinline__ stored_rows rows_of(int, int n_m) const { return {0, n_m, -1}; }
};

/* Element (m_first, n_first) of product `batch` in C, and how C is written. */
template <class Config>
__device__ __forceinline__ output<Config, c_pointer<Config>> output_at(const ws_gemm_args &args, int64_t batch, int64_t m_first,
                                                                       int64_t n_first) {
  const c_pointer<Config> c = c_of<Config>(args) + batch * args.stride_c + n_first * args.ldc + m_first;
  return {c, args.ldc, args.c_vectors != 0 && !args.region.real_diagonal, {args.a.conj != 0, args.b.conj != 0}};
}

/* C itself. Whoever takes the steps of an epilogue needs to know where the item is. */
template <class Config> struct output_scaled : output<Config, c_pointer<Config>> {
  using number = typename Config::sum;
  scaling<Config> scale;
  const ws_gemm_args &args;
  int64_t batch, m_first, n_first;
  __device__ __forceinline__ bool reads_old() const { return !scale.beta_zero; }
  __device__ __forceinline__ stored_rows rows_of(int column, int n_m) const {
    if (args.region.region == WS_ALL && !args.region.real_diagonal) return {0, n_m, -1};
    /* where there is a region C is square, so that it fits */
    const int distance = int(n_first + args.region.first_column) - int(m_first + args.region.first_row) + column;
    const int diagonal = max(-1, min(distance, n_m));
    return {args.region.region == WS_LOWER ? max(diagonal, 0) : 0, args.region.region == WS_UPPER ? min(diagonal + 1, n_m) : n_m,
            args.region.real_diagonal ? diagonal : -1};
  }
  __device__ __forceinline__ number operator()(const products<Config> &sum, number old) const {
    return scale(sum, this->conj, old);
  }
};

template <class Config> __device__ __forceinline__ typename Config::sum plus(typename Config::sum x, typename Config::sum y) {
  if constexpr (Config::unit == 1)
    return x + y;
  else
    return {x.x + y.x, x.y + y.y};
}

/* The sum of the parts of k so far. */
template <class Config> struct output_total : output<Config> {
  using number = typename Config::sum;
  bool is_first;
  __device__ __forceinline__ bool reads_old() const { return !is_first; }
  __device__ __forceinline__ number operator()(const products<Config> &sum, number old) const {
    const number part = sum.value(this->conj);
    return is_first ? part : plus<Config>(old, part);
  }
};

/* Of the kernels of groups (kernels/group_product.cuh). */
template <class Config, class = void> constexpr bool is_of_groups = false;
template <class Config> constexpr bool is_of_groups<Config, std::void_t<decltype(Config::of_groups)>> = true;

/* Whether the product takes the steps of the epilogue itself; products of other types have theirs
 * from a kernel that goes over C, if the host knows C. */
template <class Config> __device__ __forceinline__ bool takes_steps(const ws_gemm_args &args) {
  return (is_half<Config> || is_of_groups<Config>)&&args.epilogue.is_any != 0;
}

/* Of a complex number the real part alone, if it is so. */
template <class Config> __device__ __forceinline__ typename Config::sum without_imaginary(typename Config::sum x, bool is_real) {
  if constexpr (Config::unit == 2)
    if (is_real) x.y = 0;
  return x;
}

/* alpha * sum + beta * C, and the epilogue, where the sum is one element already: element (i, j) of
 * product `batch`. */
template <class Config>
__device__ __forceinline__ void finish_sum(const ws_gemm_args &args, const scaling<Config> &scale, int64_t batch, int64_t i,
                                           int64_t j, typename Config::sum sum) {
  using number = typename Config::sum;
  if (!ws_region_wants(&args.region, i, j)) return;
  const c_pointer<Config> at = c_of<Config>(args) + batch * args.stride_c + j * args.ldc + i;
  const bool is_real = ws_region_is_real(&args.region, i, j);
  number old = scale.beta_zero ? number{} : load_element<Config>(at);
  number x[1] = {scale(sum, without_imaginary<Config>(old, is_real))};
  x[0] = without_imaginary<Config>(x[0], is_real);
  if constexpr (is_half<Config>)
    if (args.epilogue.is_any) take_steps<fast_activations, true>(args.epilogue, args.type_c, batch, i, j, 1, x);
  if constexpr (is_of_groups<Config> && !is_half<Config> && Config::unit == 1)
    if (args.epilogue.is_any) take_steps<exact_activations, false>(args.epilogue, args.type_c, batch, i, j, 1, x);
  store_element<Config>(at, x[0]);
}

template <class Config, class Output, class Pointer>
__device__ __forceinline__ void finish_element(const Output &out, Pointer at, const products<Config> &sum, bool is_real) {
  const typename Config::sum old = out.reads_old() ? load_element<Config>(at) : typename Config::sum{};
  store_element<Config>(at, without_imaginary<Config>(out(sum, without_imaginary<Config>(old, is_real)), is_real));
}

} // namespace ws
#endif
