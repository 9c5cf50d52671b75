/* scale_kernel.cuh - C = beta C, where nothing is added to it (alpha = 0 or k = 0). */
#ifndef WS_CUDA_SCALE_KERNEL_CUH
#define WS_CUDA_SCALE_KERNEL_CUH
#include "epilogue.cuh"

namespace ws {

/* Only what `scaling` looks at of a row. */
template <class Type> struct scale_config {
  using real = typename Type::real;
  using element = typename Type::element;
  using sum = typename Type::sum;
  static constexpr int unit = Type::unit;
};

template <class Type> __device__ __forceinline__ void scale_c(const ws_gemm_args &args) {
  using config = scale_config<Type>;
  using number = typename config::sum;
  const scaling<config> scale(args);
  const int64_t n_elements = args.m * args.n * args.grid.n_batch;
  for (int64_t i = blockIdx.x * int64_t(blockDim.x) + threadIdx.x; i < n_elements; i += int64_t(gridDim.x) * blockDim.x) {
    const int64_t column = i / args.m;
    const c_pointer<config> c = c_of<config>(args) + column / args.n * args.stride_c + column % args.n * args.ldc + i % args.m;
    store_element<config>(c, scale.beta_zero ? number{} : scale.kept(load_element<config>(c)));
  }
}

} // namespace ws
#endif
