/* gemm_vector.cuh - one work item of a matrix-vector product (m = 1 or n = 1): the rows of
 * kernels.def called vec.
 *
 * An item is n_x elements x of C; `matrix` is the operand that has x, `vector` the other. It is
 * bound by the matrix's bytes, so every lane has some wide loads under way, at_once of them asked for
 * before the first is used. A row is for one of two layouts:
 *
 *   k contiguous   n_x = 8: a warp has one x; lane l sums k = 16 bytes' worth from l on, in steps of
 *                  a warp; then the lanes' sums are added
 *   x contiguous   n_x = 16 or 32: a lane has 16 bytes' worth of x, so that some have a line of them;
 *                  lines go to k = 0, 1, .. in turn; then the sums of a warp's lines are added, and the
 *                  warps' sums in shared memory, in order
 *
 * Which element goes into which sum does not depend on alignment. */
#ifndef WS_CUDA_VECTOR_PRODUCT_CUH
#define WS_CUDA_VECTOR_PRODUCT_CUH
#include "cuda/epilogue/epilogue.cuh"
#include "cuda/mainloop/widened.cuh"

namespace ws {

template <class Config> struct vector_product {
  using element = typename Config::element;
  using sum_type = products<Config>;
  static constexpr bool along_m = Config::bn == 1;
  static constexpr int n_x = Config::bm * Config::bn, n_warps = Config::n_threads / 32, vec = Config::vec;
  static constexpr bool is_along_k = n_x == 8;
  static constexpr int lanes_x = n_x < vec ? 1 : n_x / vec, lines = 32 / lanes_x, at_once = vec > 4 ? 2 : 4;
  static constexpr int lines_at_once = Config::unit == 2 && vec > 1 ? 2 : 4; /* as many as there are registers for */
  static_assert(n_warps == n_x && (is_along_k || (n_x <= 32 && lanes_x <= 32)), "a warp for each x");
  static_assert(Config::coarse == 1 && (is_along_k || n_warps * n_x * int(sizeof(sum_type)) <= Config::shared_bytes),
                "a sum of every warp for every x");

  struct alignas(copy_bytes) vector16 {
    element e[vec];
  };

  struct task {
    const element *matrix, *vector; /* the item's first x, the part's first k */
    int64_t step_x, step_k, step_v;
    int64_t n_k;
    int x_last;            /* the last x that exists; those beyond repeat it, and are not stored */
    bool whole_m, whole_v; /* complex elements may be accessed as such, not only by their real parts */
  };

  static __device__ __forceinline__ element load(const element *p, bool whole) {
    if constexpr (Config::unit == 1)
      return __ldg(p);
    else
      return whole ? __ldg(p) : load_element<Config>(p);
  }

  static __device__ __forceinline__ bool is_wide(const void *p, int64_t step) {
    return ((reinterpret_cast<uintptr_t>(p) | uintptr_t(step * int64_t(sizeof(element)))) & (copy_bytes - 1)) == 0;
  }

  /* Neighbours, `step` elements apart; WIDE: side by side, and aligned. */
  template <bool WIDE> static __device__ __forceinline__ vector16 load_some(const element *p, int64_t step, bool whole) {
    if constexpr (WIDE) {
      return *reinterpret_cast<const vector16 *>(p);
    } else {
      vector16 v;
#pragma unroll
      for (int i = 0; i < vec; i++) v.e[i] = load(p + i * step, whole);
      return v;
    }
  }

  /* Over lanes that are `from`, 2 `from`, .. apart. */
  static __device__ __forceinline__ sum_type over_lanes(sum_type sum, int from) {
    constexpr int n_words = int(sizeof(sum_type) / sizeof(typename Config::real));
#pragma unroll
    for (int apart = 16; apart > 0; apart /= 2) {
      if (apart < from) break;
      sum_type other = sum;
      auto *words = reinterpret_cast<typename Config::real *>(&other);
#pragma unroll
      for (int i = 0; i < n_words; i++) words[i] = __shfl_xor_sync(~0u, words[i], apart);
      sum.add(other);
    }
    return sum;
  }

  /* Of one x: whole steps of a lane, from p on, as far as at_once of them go. */
  template <bool WIDE_M, bool WIDE_V>
  static __device__ __forceinline__ void sum_row(const task &t, const element *row, int64_t &p, sum_type &sum) {
    constexpr int step = 32 * vec;
#pragma unroll 1
    for (; p + (at_once - 1) * step + vec <= t.n_k; p += at_once * step) {
      vector16 m[at_once], v[at_once];
#pragma unroll
      for (int u = 0; u < at_once; u++) m[u] = load_some<WIDE_M>(row + p + u * step, 1, t.whole_m);
#pragma unroll
      for (int u = 0; u < at_once; u++) v[u] = load_some<WIDE_V>(t.vector + (p + u * step) * t.step_v, t.step_v, t.whole_v);
#pragma unroll
      for (int u = 0; u < at_once; u++)
#pragma unroll
        for (int i = 0; i < vec; i++) multiply_add(sum, m[u].e[i], v[u].e[i]);
    }
  }

  template <class Finish> static __device__ __forceinline__ void along_k(const task &t, Finish finish) {
    const int lane = int(threadIdx.x) % 32, x = int(threadIdx.x) / 32;
    if (x > t.x_last) return;
    const element *row = t.matrix + x * t.step_x;
    sum_type sum;
    sum.clear();
    int64_t p = lane * vec;
    const bool wide_v = t.step_v == 1 && is_wide(t.vector, 0);
    if (is_wide(row, 0) && wide_v)
      sum_row<true, true>(t, row, p, sum);
    else if (is_wide(row, 0))
      sum_row<true, false>(t, row, p, sum);
    else
      sum_row<false, false>(t, row, p, sum);
      /* The same lanes take the same k. */
#pragma unroll 1
    for (; p < t.n_k; p += 32 * vec)
#pragma unroll
      for (int i = 0; i < vec; i++) {
        if (p + i >= t.n_k) break;
        multiply_add(sum, load(row + p + i, t.whole_m), load(t.vector + (p + i) * t.step_v, t.whole_v));
      }
    const sum_type total = over_lanes(sum, 1);
    if (lane == 0) finish(x, total);
  }

  /* n_lines lines from `line` and `v` on, which are so far apart. at: of a lane's first x in a line; its others are neighbours, or
   * (not WIDE) lanes_x apart, so that those of neighbouring lanes are. */
  template <bool WIDE>
  static __device__ __forceinline__ void sum_lines(const task &t, int at, const element *line, const element *v,
                                                   int64_t line_step, int64_t v_step, int n_lines, sum_type (&sum)[vec]) {
    const auto load_line = [&](const element *first) {
      if constexpr (WIDE) {
        return load_some<true>(first + at, 1, true);
      } else {
        vector16 x;
#pragma unroll
        for (int i = 0; i < vec; i++) x.e[i] = load(first + min(at + i * lanes_x, t.x_last), false);
        return x;
      }
    };
#pragma unroll 1
    for (; n_lines >= lines_at_once; n_lines -= lines_at_once) {
      vector16 m[lines_at_once];
      element factor[lines_at_once];
#pragma unroll
      for (int u = 0; u < lines_at_once; u++, line += line_step) m[u] = load_line(line);
#pragma unroll
      for (int u = 0; u < lines_at_once; u++, v += v_step) factor[u] = load(v, t.whole_v);
#pragma unroll
      for (int u = 0; u < lines_at_once; u++)
#pragma unroll
        for (int i = 0; i < vec; i++) multiply_add(sum[i], m[u].e[i], factor[u]);
    }
#pragma unroll 1
    for (; n_lines > 0; n_lines--, line += line_step, v += v_step) {
      const vector16 m = load_line(line);
      const element factor = load(v, t.whole_v);
#pragma unroll
      for (int i = 0; i < vec; i++) multiply_add(sum[i], m.e[i], factor);
    }
  }

  template <class Finish> static __device__ __forceinline__ void along_x(const task &t, sum_type *shared, Finish finish) {
    const int lane = int(threadIdx.x) % 32, warp = int(threadIdx.x) / 32;
    const bool wide = is_wide(t.matrix, t.step_k) && t.x_last == n_x - 1;
    const int at = lane % lanes_x * (wide ? vec : 1), apart = wide ? 1 : lanes_x;
    constexpr int step = n_warps * lines;
    const int first = warp * lines + lane / lanes_x, n_lines = t.n_k > first ? int((t.n_k - first + step - 1) / step) : 0;
    const element *line = t.matrix + first * t.step_k, *v = t.vector + first * t.step_v;
    sum_type sum[vec];
#pragma unroll
    for (int i = 0; i < vec; i++) sum[i].clear();
    if (wide)
      sum_lines<true>(t, at, line, v, step * t.step_k, step * t.step_v, n_lines, sum);
    else
      sum_lines<false>(t, at, line, v, step * t.step_k, step * t.step_v, n_lines, sum);
#pragma unroll
    for (int i = 0; i < vec; i++) {
      const sum_type total = over_lanes(sum[i], lanes_x);
      if (lane < lanes_x) shared[warp * n_x + at + i * apart] = total;
    }
    __syncthreads();
    if (warp > 0 || lane >= n_x) return;
    sum_type total = shared[lane];
#pragma unroll 8
    for (int w = 1; w < n_warps; w++) total.add(shared[w * n_x + lane]);
    if (lane <= t.x_last) finish(lane, total);
  }

  /* The products know a from b by their signs of conjugation. */
  static __device__ __forceinline__ void multiply_add(sum_type &sum, element m, element v) {
    if constexpr (along_m)
      sum.add(widened<typename Config::type>(m), widened<typename Config::type>(v));
    else
      sum.add(widened<typename Config::type>(v), widened<typename Config::type>(m));
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
                    int(ws_min(n_x, size - x_first)) - 1,
                    matrix.whole_elements != 0,
                    vector.whole_elements != 0};
    const auto finish = [&](int x, const sum_type &sum) {
      const auto out = along_m ? make_output(x_first, 0) : make_output(0, x_first);
      if constexpr (is_half<Config> && std::is_same_v<std::remove_cv_t<decltype(out)>, output_scaled<Config>>) {
        finish_sum<Config>(args, out.scale, batch, along_m ? x_first + x : 0, along_m ? 0 : x_first + x, sum.sum);
        return;
      }
      finish_element<Config>(out, out.first + (along_m ? x : x * out.ld), sum, false);
    };
    if constexpr (is_along_k)
      along_k(t, finish);
    else
      along_x(t, static_cast<sum_type *>(shared), finish);
  }
};

} // namespace ws
#endif
