/* gemm_vector.cuh - one work item of a matrix-vector product (m = 1 or n = 1): the rows of
 * kernels.def called vec.
 *
 * An item is 32 elements x of C; `matrix` is the operand that has x, `vector` the other. It is
 * bound by the matrix's bytes, so every lane has some wide loads under way. The lanes go along
 * whatever is contiguous:
 *
 *   k contiguous   a warp has 4 of the x; lane l sums k = 16 bytes' worth from l on, in steps of a
 *                  warp; then the lanes' sums are added
 *   x contiguous   a lane has one x; warp w sums k = w, w + 8, ..; then the warps' sums are added
 *                  in shared memory, in order
 *
 * Which element goes into which sum does not depend on alignment. */
#ifndef WS_CUDA_VECTOR_PRODUCT_CUH
#define WS_CUDA_VECTOR_PRODUCT_CUH
#include "cuda/epilogue/epilogue.cuh"

namespace ws {

template <class Config> struct vector_product {
  using element = typename Config::element;
  using sum_type = products<Config>;
  static constexpr bool along_m = Config::bn == 1;
  static constexpr int n_x = 32, n_warps = Config::n_threads / 32, x_of_warp = n_x / n_warps, vec = Config::vec;
  static_assert(Config::bm * Config::bn == n_x && Config::coarse == 1, "an item is a warp's width of x");
  static_assert(n_warps * n_x * int(sizeof(sum_type)) <= Config::shared_bytes, "a sum of every warp for every x");

  struct alignas(copy_bytes) vector16 {
    element e[vec];
  };

  struct task {
    const element *matrix, *vector; /* the item's first x, the part's first k */
    int64_t step_x, step_k, step_v;
    int64_t n_k;
    int x_last; /* the last x that exists; those beyond repeat it, and are not stored */
  };

  /* `whole`: complex elements may be accessed as such, not only by their real parts. */
  static __device__ __forceinline__ element load(const element *p, bool whole) {
    if constexpr (Config::unit == 1)
      return __ldg(p);
    else
      return whole ? __ldg(p) : load_element<Config>(p);
  }

  static __device__ __forceinline__ bool is_wide(const void *p, int64_t step) {
    return ((reinterpret_cast<uintptr_t>(p) | uintptr_t(step * int64_t(sizeof(element)))) & (copy_bytes - 1)) == 0;
  }

  static __device__ __forceinline__ sum_type over_lanes(sum_type sum) {
    constexpr int n_words = int(sizeof(sum_type) / sizeof(typename Config::real));
#pragma unroll
    for (int apart = 16; apart > 0; apart /= 2) {
      sum_type other = sum;
      auto *words = reinterpret_cast<typename Config::real *>(&other);
#pragma unroll
      for (int i = 0; i < n_words; i++) words[i] = __shfl_xor_sync(~0u, words[i], apart);
      sum.add(other);
    }
    return sum;
  }

  template <class Finish>
  static __device__ __forceinline__ void along_k(const task &t, bool whole_m, bool whole_v, Finish finish) {
    const int lane = int(threadIdx.x) % 32, x_first = int(threadIdx.x) / 32 * x_of_warp;
    const element *row[x_of_warp];
    sum_type sum[x_of_warp];
#pragma unroll
    for (int x = 0; x < x_of_warp; x++) row[x] = t.matrix + min(x_first + x, t.x_last) * t.step_x, sum[x].clear();
    int64_t p = lane * vec;
    if (is_wide(t.matrix, t.step_x) && t.step_v == 1 && is_wide(t.vector, 0)) {
#pragma unroll 4
      for (; p + vec <= t.n_k; p += 32 * vec) {
        vector16 m[x_of_warp];
#pragma unroll
        for (int x = 0; x < x_of_warp; x++) m[x] = *reinterpret_cast<const vector16 *>(row[x] + p);
        const vector16 v = *reinterpret_cast<const vector16 *>(t.vector + p);
#pragma unroll
        for (int i = 0; i < vec; i++)
#pragma unroll
          for (int x = 0; x < x_of_warp; x++) multiply_add(sum[x], m[x].e[i], v.e[i]);
      }
    }
    /* The same lanes take the same k: what is not aligned, or the end. */
#pragma unroll 1
    for (; p < t.n_k; p += 32 * vec)
#pragma unroll
      for (int i = 0; i < vec; i++) {
        if (p + i >= t.n_k) break;
        const element v = load(t.vector + (p + i) * t.step_v, whole_v);
#pragma unroll
        for (int x = 0; x < x_of_warp; x++) multiply_add(sum[x], load(row[x] + p + i, whole_m), v);
      }
#pragma unroll
    for (int x = 0; x < x_of_warp; x++) {
      const sum_type total = over_lanes(sum[x]);
      if (lane == 0 && x_first + x <= t.x_last) finish(x_first + x, total);
    }
  }

  template <class Finish>
  static __device__ __forceinline__ void along_x(const task &t, bool whole_m, bool whole_v, sum_type *shared, Finish finish) {
    const int lane = int(threadIdx.x) % 32, warp = int(threadIdx.x) / 32;
    const element *column = t.matrix + min(lane, t.x_last);
    sum_type sum;
    sum.clear();
#pragma unroll 8
    for (int64_t p = warp; p < t.n_k; p += n_warps)
      multiply_add(sum, load(column + p * t.step_k, whole_m), load(t.vector + p * t.step_v, whole_v));
    shared[warp * n_x + lane] = sum;
    __syncthreads();
    if (warp > 0) return;
    for (int w = 1; w < n_warps; w++) sum.add(shared[w * n_x + lane]);
    if (lane <= t.x_last) finish(lane, sum);
  }

  /* The products know a from b by their signs of conjugation. */
  static __device__ __forceinline__ void multiply_add(sum_type &sum, element m, element v) {
    if constexpr (along_m)
      sum.add(widened(m), widened(v));
    else
      sum.add(widened(v), widened(m));
  }

  /* What is summed. */
  static __device__ __forceinline__ typename Config::sum widened(element x) {
    if constexpr (std::is_same_v<typename Config::type, type_h>)
      return float_of_f16(x);
    else if constexpr (std::is_same_v<typename Config::type, type_b>)
      return float_of_bf16(x);
    else
      return x;
  }

  template <class SizeK, class MakeOutput>
  static __device__ __forceinline__ void run(const ws_gemm_args &args, void *shared, int batch, const int &row, const int &col,
                                             int64_t k_first, SizeK n_k, MakeOutput make_output) {
    const ws_operand &matrix = along_m ? args.a : args.b, &vector = along_m ? args.b : args.a;
    const int64_t x_first = int64_t(along_m ? row : col) * n_x, size = along_m ? args.m : args.n;
    const task t = {static_cast<const element *>(matrix.data) + batch * matrix.stride + x_first * matrix.step_mn +
                        k_first * matrix.step_k,
                    static_cast<const element *>(vector.data) + batch * vector.stride + k_first * vector.step_k,
                    matrix.step_mn,
                    matrix.step_k,
                    vector.step_k,
                    n_k(),
                    int(ws_min(n_x, size - x_first)) - 1};
    const auto finish = [&](int x, const sum_type &sum) {
      const auto out = along_m ? make_output(x_first, 0) : make_output(0, x_first);
      if constexpr (is_half<Config> && std::is_same_v<std::remove_cv_t<decltype(out)>, output_scaled<Config>>) {
        finish_sum<Config>(args, out.scale, batch, along_m ? x_first + x : 0, along_m ? 0 : x_first + x, sum.sum);
        return;
      }
      finish_element<Config>(out, out.first + (along_m ? x : x * out.ld), sum, false);
    };
    if (ws_is_along_k(&matrix))
      along_k(t, matrix.whole_elements, vector.whole_elements, finish);
    else
      along_x(t, matrix.whole_elements, vector.whole_elements, static_cast<sum_type *>(shared), finish);
  }
};

} // namespace ws
#endif
