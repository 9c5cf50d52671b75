/* activations.cuh - act of an epilogue (wsgemm_epilogue): ReLU, GELU, SiLU. All but ReLU are z
 * times a share between 0 and 1, so they come to -0 far below 0, and at -Inf. A NaN stays one. */
#ifndef WS_CUDA_ACTIVATIONS_CUH
#define WS_CUDA_ACTIVATIONS_CUH
#include "cuda/ptx/math.cuh"
#include "wsgemm.h"

namespace ws {

/* gelu_tanh: (1 + tanh(u)) / 2 = 1 / (1 + exp(-2 u)),  2 u = tanh_slope (z + tanh_cube z^3),  tanh_slope = sqrt(8 / pi). */
constexpr double tanh_slope = 1.5957691216057308, tanh_cube = 0.044715;

/* In the registers of a product's last step: error at most 8 |z| 2^-24. */
struct fast_activations {
  /* 1 / (1 + exp(-t)) */
  static __device__ __forceinline__ float logistic(float t) { return rcp_approx(1.0f + ex2_approx(t * -1.4426950408889634f)); }

  /* The normal distribution. Below 0 it is exp(-z^2 / 2) times a function that falls slowly, here a
   * polynomial in s = 1 / (1 + 0.3 |z|), fitted to a relative error of 1.5e-7 by weighted least
   * squares. */
  static __device__ __forceinline__ float normal(float z) {
    constexpr float c[8] = {0.11962930113f, 0.12075386941f, 0.09991401434f,  0.12855993211f,
                            -0.0536804795f, 0.20635011792f, -0.15720115602f, 0.03567431867f};
    const float s = rcp_approx(fmaf(0.3f, fabsf(z), 1.0f));
    float p = c[7];
#pragma unroll
    for (int i = 6; i >= 0; i--) p = fmaf(p, s, c[i]);
    const float below = p * s * ex2_approx(z * z * -0.7213475204444817f);
    return z < 0 ? below : 1.0f - below;
  }

  static __device__ __forceinline__ float share_of(float z, float share) { return z == -INFINITY ? -0.0f : z * share; }

  template <int COUNT> static __device__ __forceinline__ void apply(int activation, float (&z)[COUNT]) {
    switch (activation) {
    case WSGEMM_EPILOGUE_RELU:
#pragma unroll
      for (int i = 0; i < COUNT; i++) z[i] = z[i] < 0 ? 0 : z[i];
      break;
    case WSGEMM_EPILOGUE_GELU_TANH:
#pragma unroll
      for (int i = 0; i < COUNT; i++)
        z[i] = share_of(z[i], logistic(z[i] * fmaf(float(tanh_slope * tanh_cube) * z[i], z[i], float(tanh_slope))));
      break;
    case WSGEMM_EPILOGUE_GELU_ERF:
#pragma unroll
      for (int i = 0; i < COUNT; i++) z[i] = share_of(z[i], normal(z[i]));
      break;
    case WSGEMM_EPILOGUE_SILU:
#pragma unroll
      for (int i = 0; i < COUNT; i++) z[i] = share_of(z[i], logistic(z[i]));
      break;
    default:
      break;
    }
  }
};

/* Where memory is waited for anyway: floats within an ulp, by way of double; doubles within 8 |z|
 * 2^-53. */
struct exact_activations {
  /* z / (1 + exp(-t)), t of z's sign, by the exponential that cannot overflow. */
  static __device__ __forceinline__ double logistic_times(double z, double t) {
    if (t > 40) return z;
    if (t < -800) return -0.0;
    const double e = exp(-fabs(t));
    return t < 0 ? z * e / (1 + e) : z / (1 + e);
  }

  static __device__ __forceinline__ double activated(int activation, double z) {
    /* nothing is left to compute */
    if (activation != WSGEMM_EPILOGUE_SILU && fabs(z) > 50) return z > 0 ? z : -0.0;
    switch (activation) {
    case WSGEMM_EPILOGUE_GELU_TANH:
      return logistic_times(z, tanh_slope * (z + tanh_cube * (z * z * z)));
    case WSGEMM_EPILOGUE_GELU_ERF:
      return 0.5 * z * erfc(-z * 0.70710678118654752);
    default:
      return logistic_times(z, z);
    }
  }

  template <class Real, int COUNT> static __device__ __forceinline__ void apply(int activation, Real (&z)[COUNT]) {
    if (activation == WSGEMM_EPILOGUE_NONE) return;
    for (int i = 0; i < COUNT; i++)
      if (activation == WSGEMM_EPILOGUE_RELU)
        z[i] = z[i] < 0 ? 0 : z[i];
      else
        z[i] = Real(activated(activation, double(z[i])));
  }
};

} // namespace ws
#endif
