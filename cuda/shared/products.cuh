/* products.cuh - what a mainloop sums for one element of C, and how the pieces of a complex sum are
 * put together. */
#ifndef WS_CUDA_PRODUCTS_CUH
#define WS_CUDA_PRODUCTS_CUH

namespace ws {

/* Which operands are conjugated: signs of the four real products of a complex one.
 *   re(a b) = re a re b - im a im b        im(a b) = re a im b + im a re b */
struct conjugation {
  bool a, b;
  template <class Real> __device__ __forceinline__ Real im_im(Real x) const { return a != b ? x : -x; }
  template <class Real> __device__ __forceinline__ Real re_im(Real x) const { return b ? -x : x; }
  template <class Real> __device__ __forceinline__ Real im_re(Real x) const { return a ? -x : x; }
};

/* The sums of one element over its k. A complex element keeps the products with re a and those with
 * im a apart, so that each is a chain of k multiply-adds: one chain for both would round twice for
 * each step of k. */
template <class Config, int UNIT = Config::unit> struct products {
  using number = typename Config::sum;
  number sum;
  __device__ __forceinline__ void clear() { sum = 0; }
  __device__ __forceinline__ void add(number a, number b) { sum = fma(a, b, sum); }
  __device__ __forceinline__ void add(const products &other) { sum += other.sum; }
  __device__ __forceinline__ number value(conjugation) const { return sum; }
};

template <class Config> struct products<Config, 2> {
  using number = typename Config::sum;
  number by_re, by_im; /* re a (re b, im b), im a (im b, re b) */
  __device__ __forceinline__ void clear() { by_re = by_im = {0, 0}; }
  __device__ __forceinline__ void add(number a, number b) {
    by_re.x = fma(a.x, b.x, by_re.x);
    by_re.y = fma(a.x, b.y, by_re.y);
    by_im.x = fma(a.y, b.y, by_im.x);
    by_im.y = fma(a.y, b.x, by_im.y);
  }
  __device__ __forceinline__ void add(const products &other) {
    by_re.x += other.by_re.x, by_re.y += other.by_re.y;
    by_im.x += other.by_im.x, by_im.y += other.by_im.y;
  }
  __device__ __forceinline__ number value(conjugation conj) const {
    return {by_re.x + conj.im_im(by_im.x), conj.re_im(by_re.y) + conj.im_re(by_im.y)};
  }
};

} // namespace ws
#endif
