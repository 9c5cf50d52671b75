/* wide.cuh - sums of a few products in more than the type's precision, rounded once at the end:
 * double for float, two doubles for double.
 *
 * Two doubles: T. J. Dekker's and D. E. Knuth's error-free sum and product, as in Ogita, Rump,
 * Oishi, "Accurate Sum and Dot Product" (2005). The intrinsics keep the compiler from contracting
 * what must be rounded apart. */
#ifndef WS_CUDA_WIDE_CUH
#define WS_CUDA_WIDE_CUH

namespace ws {

template <class Real> struct wide;

template <> struct wide<float> {
  double sum = 0;
  __device__ __forceinline__ void add(float x) { sum += double(x); }
  __device__ __forceinline__ void add_product(float x, const wide &y) { sum = fma(double(x), y.sum, sum); }
  __device__ __forceinline__ void add_product(float x, float y) { sum = fma(double(x), double(y), sum); }
  __device__ __forceinline__ float rounded() const { return float(sum); }
};

template <> struct wide<double> {
  double high = 0, low = 0; /* their sum is meant; low counts only while high is finite */

  __device__ __forceinline__ void add(double x) {
    const double sum = __dadd_rn(high, x), x_in_it = __dadd_rn(sum, -high);
    const double high_lost = __dadd_rn(high, -__dadd_rn(sum, -x_in_it)), x_lost = __dadd_rn(x, -x_in_it);
    low = __dadd_rn(low, __dadd_rn(high_lost, x_lost));
    high = sum;
  }
  __device__ __forceinline__ void add_product(double x, double y) {
    const double product = __dmul_rn(x, y);
    add(product);
    low = __dadd_rn(low, fma(x, y, -product));
  }
  __device__ __forceinline__ void add_product(double x, const wide &y) {
    add_product(x, y.high);
    low = fma(x, y.low, low);
  }
  /* An overflow or a NaN in high has made a NaN of low; and what is beyond the range stays so. */
  __device__ __forceinline__ double rounded() const { return isfinite(high) ? __dadd_rn(high, low) : high; }
};

} // namespace ws
#endif
