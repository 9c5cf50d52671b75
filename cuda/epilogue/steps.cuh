/* steps.cuh - the steps of an epilogue: out_scale act(z + bias) + residual, each rounded by itself,
 * for some elements of a row of C. They come from a product's last step (half precision), or from C
 * (kernels/elementwise.cuh). */
#ifndef WS_CUDA_EPILOGUE_STEPS_CUH
#define WS_CUDA_EPILOGUE_STEPS_CUH
#include "cuda/epilogue/activations.cuh"
#include "cuda/epilogue/half_c.cuh"

namespace ws {

/* No multiply-add is made of these two. */
__device__ __forceinline__ float times(float x, float y) { return __fmul_rn(x, y); }
__device__ __forceinline__ double times(double x, double y) { return __dmul_rn(x, y); }
__device__ __forceinline__ float sum_of(float x, float y) { return __fadd_rn(x, y); }
__device__ __forceinline__ double sum_of(double x, double y) { return __dadd_rn(x, y); }

/* What is given as Real, or (HALVES) of a ws_half_c_type. */
template <class Real, bool HALVES> __device__ __forceinline__ Real number_at(const void *base, int64_t idx, int32_t type) {
  if constexpr (HALVES)
    return (half_c_at(base, type) + idx).load();
  else
    return static_cast<const Real *>(base)[idx];
}

/* z: those of row i from column j on, of which n exist. type_c: ws_half_c_type. */
template <class Activations, bool HALVES, class Real, int COUNT>
__device__ __forceinline__ void take_steps(const ws_epilogue_args &e, int32_t type_c, int64_t batch, int64_t i, int64_t j, int n,
                                           Real (&z)[COUNT]) {
  Real residual[COUNT];
  if (e.residual) {
    const int64_t at = batch * e.stride_residual + i + j * e.ld_residual;
#pragma unroll
    for (int c = 0; c < COUNT; c++)
      if (c < n) residual[c] = number_at<Real, HALVES>(e.residual, at + c * e.ld_residual, type_c);
  }
  if (e.bias) {
    const int64_t at = batch * e.stride_bias + (e.bias_per_row ? i : j);
#pragma unroll
    for (int c = 0; c < COUNT; c++)
      if (c < n) z[c] = sum_of(z[c], number_at<Real, HALVES>(e.bias, at + (e.bias_per_row ? 0 : c), e.type_bias));
  }
  Activations::apply(e.activation, z);
  const Real out_scale = Real(e.out_scale);
#pragma unroll
  for (int c = 0; c < COUNT; c++) z[c] = times(z[c], out_scale);
  if (e.residual) {
#pragma unroll
    for (int c = 0; c < COUNT; c++)
      if (c < n) z[c] = sum_of(z[c], residual[c]);
  }
}

} // namespace ws
#endif
