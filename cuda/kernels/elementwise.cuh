/* elementwise.cuh - what goes over C apart from a product: C = beta C where nothing is added to it
 * (alpha = 0 or k = 0), the steps of an epilogue that the product has not taken, and column
 * sums. */
#ifndef WS_CUDA_ELEMENTWISE_KERNELS_CUH
#define WS_CUDA_ELEMENTWISE_KERNELS_CUH
#include "cuda/epilogue/epilogue.cuh"
#include "cuda/sched/fixed.cuh"

namespace ws {

/* Only what epilogue.cuh looks at of a row. */
template <class Type> struct elementwise_config {
  using real = typename Type::real;
  using element = typename Type::element;
  using sum = typename Type::sum;
  static constexpr int unit = Type::unit;
};

/* Index: counts the elements. Divisions by 32 bits take a third of the time of those by 64. */
template <class Type, class Index> __device__ __forceinline__ void scale_elements(const ws_gemm_args &args, Index n_elements) {
  using config = elementwise_config<Type>;
  using number = typename config::sum;
  const scaling<config> scale(args);
  const Index m = Index(args.m), n = Index(args.n);
  for (Index at = worker_idx() * Index(blockDim.x) + threadIdx.x; at < n_elements; at += Index(n_workers()) * blockDim.x) {
    const Index column = at / m;
    const int64_t batch = column / n, j = column - batch * n, i = at - column * m;
    if (!ws_region_wants(&args.region, i, j)) continue;
    const bool is_real = ws_region_is_real(&args.region, i, j);
    const c_pointer<config> c = c_of<config>(args) + batch * args.stride_c + j * args.ldc + i;
    const number old = scale.beta_zero ? number{} : load_element<config>(c);
    number x[1] = {scale.beta_zero ? number{} : scale.kept(without_imaginary<config>(old, is_real))};
    if constexpr (config::unit == 1)
      if (args.epilogue.is_any) take_steps<exact_activations, is_half<config>>(args.epilogue, args.type_c, batch, i, j, 1, x);
    store_element<config>(c, without_imaginary<config>(x[0], is_real));
  }
}

template <class Type> __device__ __forceinline__ void scale_c(const ws_gemm_args &args) {
  const int64_t n_elements = args.m * args.n * args.grid.n_batch;
  if (n_elements < int64_t(1) << 31) /* so that no step beyond the end wraps around */
    scale_elements<Type>(args, uint32_t(n_elements));
  else
    scale_elements<Type>(args, uint64_t(n_elements));
}

/* ---- column sums --------------------------------------------------------------------------------
 * A sum over length elements is that of 256 sums, number l of which takes the elements l, l + 256,
 * ...: those are added by pairs whose numbers differ in bit 0, then in bit 1, and so on. So the
 * bits follow from the length alone, whether a column is contiguous or not. */

constexpr int n_sum_lanes = 256, n_sum_warps = 32, n_sum_threads = 32 * n_sum_warps;

/* Adds up COUNT numbers, a power of two, by pairs. */
template <int COUNT, class Real> __device__ __forceinline__ Real sum_by_pairs(const Real (&x)[COUNT]) {
  Real sum[COUNT];
#pragma unroll
  for (int l = 0; l < COUNT; l++) sum[l] = x[l];
#pragma unroll
  for (int step = 1; step < COUNT; step *= 2)
#pragma unroll
    for (int l = 0; l < COUNT; l += 2 * step) sum[l] += sum[l + step];
  return sum[0];
}

/* Elements of C from `first` on, so many steps apart, of which n exist; 0 for the others. All are
 * on their way before the first is waited for. */
template <class Type, int COUNT>
__device__ __forceinline__ void load_elements(const ws_column_sums_args &args, int64_t first, int64_t step, int64_t n,
                                              typename Type::real (&x)[COUNT]) {
  int64_t offset[COUNT];
#pragma unroll
  for (int l = 0; l < COUNT; l++) offset[l] = first + ws_min(l, n - 1) * step;
  if constexpr (is_half<elementwise_config<Type>>) {
    half_c_at(args.c, args.type_c).load_some(offset, x);
  } else {
#pragma unroll
    for (int l = 0; l < COUNT; l++) x[l] = static_cast<const typename Type::real *>(args.c)[offset[l]];
  }
#pragma unroll
  for (int l = 0; l < COUNT; l++) x[l] = l < n ? x[l] : 0;
}

/* A warp has a column, a lane 8 neighbours of it at a time. */
template <class Type> __device__ __forceinline__ void sum_along(const ws_column_sums_args &args) {
  using real = typename Type::real;
  constexpr int own = n_sum_lanes / 32;
  const int lane = int(threadIdx.x) % 32;
  const int64_t n_columns = args.n * args.n_batch;
  for (int64_t column = worker_idx() * int64_t(n_sum_warps) + threadIdx.x / 32; column < n_columns;
       column += int64_t(n_workers()) * n_sum_warps) {
    const int64_t batch = column / args.n, j = column % args.n, first = batch * args.stride_c + j * args.ldc;
    real sum[own] = {};
#pragma unroll 1
    for (int64_t i = lane * own; i < args.m; i += n_sum_lanes) {
      real x[own];
      load_elements<Type>(args, first + i, 1, args.m - i, x);
#pragma unroll
      for (int l = 0; l < own; l++) sum[l] += x[l];
    }
    real total = sum_by_pairs(sum);
#pragma unroll
    for (int step = 1; step < 32; step *= 2) total += __shfl_xor_sync(~0u, total, step);
    if (lane == 0) static_cast<real *>(args.sums)[batch * args.stride_sums + j] = total;
  }
}

/* A block has 32 rows, a lane one of them; a warp takes 8 columns of every 256. */
template <class Type> __device__ __forceinline__ void sum_across(const ws_column_sums_args &args) {
  using real = typename Type::real;
  constexpr int own = n_sum_lanes / n_sum_warps;
  __shared__ real part[n_sum_warps][32];
  const int lane = int(threadIdx.x) % 32, warp = int(threadIdx.x) / 32;
  const int64_t n_groups = ws_ceil_div(args.m, 32);
  for (int64_t group = worker_idx(); group < n_groups * args.n_batch; group += n_workers()) {
    const int64_t batch = group / n_groups, i = group % n_groups * 32 + lane,
                  first = batch * args.stride_c + ws_min(i, args.m - 1);
    real sum[own] = {};
#pragma unroll 1
    for (int64_t j = warp * own; j < args.n; j += n_sum_lanes) {
      real x[own];
      load_elements<Type>(args, first + j * args.ldc, args.ldc, args.n - j, x);
#pragma unroll
      for (int l = 0; l < own; l++) sum[l] += x[l];
    }
    part[warp][lane] = sum_by_pairs(sum);
    __syncthreads();
    if (warp == 0 && i < args.m) {
      real of_warp[n_sum_warps];
#pragma unroll
      for (int w = 0; w < n_sum_warps; w++) of_warp[w] = part[w][lane];
      static_cast<real *>(args.sums)[batch * args.stride_sums + i] = sum_by_pairs(of_warp);
    }
    __syncthreads();
  }
}

template <class Type> __device__ __forceinline__ void sum_columns(const ws_column_sums_args &args) {
  if (args.transposed)
    sum_across<Type>(args);
  else
    sum_along<Type>(args);
}

} // namespace ws
#endif
