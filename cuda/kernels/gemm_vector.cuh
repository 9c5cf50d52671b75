/* gemm_vector.cuh - one work item of a matrix-vector product (m = 1 or n = 1): the rows of
 * kernels.def called vec.
 *
 * An item is n_x elements x of C; `matrix` is the operand that has x, `vector` the other. It is bound by the matrix's bytes, so
 * every lane asks for a batch of loads before the first is used, and neighbouring lanes load neighbours. A row is for one of two
 * layouts:
 *
 *   k contiguous   n_x = 8: a warp has one x. The k of a step (32 vectors of 16 bytes) go to as many sums, k modulo a step; what is
 *                  not a whole vector, in the end, to others. They are added in pairs, in the order of fold_along_k. A vector
 *                  operand that is not contiguous comes through shared memory, once for all warps.
 *   x contiguous   n_x = 16 or 32: groups of lines, as many as 32 vectors hold, go to the warps in turn. A sum is of one x and of
 *                  one line of the groups; a warp's are added in pairs, neighbours first; then the warps', in shared memory, in
 *                  their order.
 *
 * Which element goes into which sum does not depend on alignment; which lane has the sum does: by vectors a lane has neighbours,
 * else elements that lie 32 apart, or in lines that follow each other. */
#ifndef WS_CUDA_VECTOR_PRODUCT_CUH
#define WS_CUDA_VECTOR_PRODUCT_CUH
#include "cuda/epilogue/epilogue.cuh"
#include "cuda/mainloop/widened.cuh"

namespace ws {

/* For other devices the compiler has the addresses of many loads ready at once. */
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ != 900
constexpr bool has_many_registers = false;
#else
constexpr bool has_many_registers = true;
#endif

template <class Config> struct vector_product {
  static constexpr bool is_called = false; /* short: copies cost little */
  using element = typename Config::element;
  using sum_type = products<Config>;
  static constexpr bool along_m = Config::bn == 1;
  static constexpr int n_x = Config::bm * Config::bn, n_warps = Config::n_threads / 32, vec = Config::vec;
  static constexpr bool is_along_k = n_x == 8;
  static_assert(!is_along_k || n_warps == n_x, "a warp for each x");
  static_assert(is_along_k || (n_x <= 32 && n_x >= vec && n_warps * n_x * int(sizeof(sum_type)) <= Config::shared_bytes),
                "a sum of every warp for every x");
  static_assert(Config::coarse == 1, "items of one tile");

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

  /* ---- loads ----------------------------------------------------------------------------------- */

  /* 16 bytes at a time, by elements, or by the parts of complex ones. */
  enum class access { vectors, elements, parts };

  static __device__ __forceinline__ bool is_wide(const void *p, int64_t step) {
    return ((reinterpret_cast<uintptr_t>(p) | uintptr_t(step * int64_t(sizeof(element)))) & (copy_bytes - 1)) == 0;
  }
  static __device__ __forceinline__ access access_to(bool wide, bool whole) {
    return vec > 1 && wide ? access::vectors : Config::unit == 1 || whole ? access::elements : access::parts;
  }

  template <access BY> static __device__ __forceinline__ element load(const element *p) {
    if constexpr (BY == access::parts && Config::unit == 2)
      return load_element<Config>(p);
    else
      return __ldg(p);
  }
  static __device__ __forceinline__ element load(const element *p, bool whole) {
    return Config::unit == 1 || whole ? load<access::elements>(p) : load<access::parts>(p);
  }

  /* Calls run() with the access as a constant: each has code of its own. */
  template <access BY> struct constant { static constexpr access value = BY; };
  template <class Run> static __device__ __forceinline__ void with(access by, Run run) {
    if constexpr (vec > 1)
      if (by == access::vectors) return run(constant<access::vectors>{});
    if constexpr (Config::unit == 2)
      if (by == access::parts) return run(constant<access::parts>{});
    run(constant<access::elements>{});
  }

  /* ---- sums ------------------------------------------------------------------------------------ */

  /* Over lanes that are `from`, 2 `from`, .. apart, less than `to`. */
  static __device__ __forceinline__ sum_type over_lanes(sum_type sum, int from, int to) {
    constexpr int n_words = int(sizeof(sum_type) / sizeof(typename Config::real));
#pragma unroll
    for (int apart = 1; apart < 32; apart *= 2) {
      if (apart < from || apart >= to) continue;
      sum_type other = sum;
      auto *words = reinterpret_cast<typename Config::real *>(&other);
#pragma unroll
      for (int i = 0; i < n_words; i++) words[i] = __shfl_xor_sync(~0u, words[i], apart);
      sum.add(other);
    }
    return sum;
  }

  /* Over a lane's own. */
  static __device__ __forceinline__ sum_type over_own(sum_type (&sum)[vec]) {
#pragma unroll
    for (int apart = 1; apart < vec; apart *= 2)
#pragma unroll
      for (int i = 0; i < vec; i += 2 * apart) sum[i].add(sum[i + apart]);
    return sum[0];
  }

  static __device__ __forceinline__ void clear(sum_type (&sum)[vec]) {
#pragma unroll
    for (int i = 0; i < vec; i++) sum[i].clear();
  }

  /* In place of what is not there: a product of these two, -0, changes no sum. */
  static __device__ __forceinline__ element zero() { return element{}; }
  static __device__ __forceinline__ element minus_zero() {
    if constexpr (is_half<Config>)
      return 0x8000;
    else if constexpr (Config::unit == 2)
      return {-0.0f, -0.0f};
    else
      return -0.0f;
  }

  /* The products know a from b by their signs of conjugation. */
  static __device__ __forceinline__ void multiply_add(sum_type &sum, element m, element v) {
    if constexpr (along_m)
      sum.add(widened<typename Config::type>(m), widened<typename Config::type>(v));
    else
      sum.add(widened<typename Config::type>(v), widened<typename Config::type>(m));
  }

  /* ---- k contiguous ---------------------------------------------------------------------------- */

  static constexpr int step = 32 * vec, steps_at_once = vec > 4 ? 2 : 4, batch = steps_at_once * step;
  /* So many elements of a vector that is not contiguous are in shared memory at a time. */
  static constexpr int staged = Config::shared_bytes / int(sizeof(element)) / batch * batch;

  /* A lane's first element in a step; how far the others are from it; and whether its i-th is one of the n that there are from the
   * first one on, which are whole vectors. */
  static __device__ __forceinline__ int first_of(access by, int lane) { return by == access::vectors ? lane * vec : lane; }
  template <access BY> static __device__ __forceinline__ int place_of(int i) { return BY == access::vectors ? i : 32 * i; }
  template <access BY> static __device__ __forceinline__ bool is_there(int i, int n) {
    return (BY == access::vectors ? 0 : 32 * i) < n;
  }

  /* A lane's elements of a step, its first one at p. IS_LAST: those that are there, else `other`. */
  template <access BY, bool IS_STAGED, bool IS_LAST>
  static __device__ __forceinline__ vector16 load_step(const element *p, int n, element other) {
    vector16 x;
#pragma unroll
    for (int i = 0; i < vec; i++) x.e[i] = other;
    if constexpr (BY == access::vectors) {
      if (!IS_LAST || is_there<BY>(0, n)) x = *reinterpret_cast<const vector16 *>(p);
    } else {
#pragma unroll
      for (int i = 0; i < vec; i++)
        if (!IS_LAST || is_there<BY>(i, n)) x.e[i] = IS_STAGED ? p[place_of<BY>(i)] : load<BY>(p + place_of<BY>(i));
    }
    return x;
  }

  template <access BY, bool IS_STAGED, bool IS_LAST>
  static __device__ __forceinline__ void add_steps(const element *line, const element *v, int n, sum_type (&sum)[vec]) {
    vector16 m[steps_at_once], factor[steps_at_once];
#pragma unroll
    for (int u = 0; u < steps_at_once; u++) m[u] = load_step<BY, false, IS_LAST>(line + u * step, n - u * step, zero());
#pragma unroll
    for (int u = 0; u < steps_at_once; u++)
      factor[u] = load_step<BY, IS_STAGED, IS_LAST>(v + u * step, n - u * step, minus_zero());
#pragma unroll
    for (int u = 0; u < steps_at_once; u++)
#pragma unroll
      for (int i = 0; i < vec; i++) multiply_add(sum[i], m[u].e[i], factor[u].e[i]);
  }

  /* n elements, whole vectors; `first`: the lane's first one. */
  template <access BY, bool IS_STAGED>
  static __device__ __forceinline__ void add_line(const element *line, const element *v, int first, int64_t n,
                                                  sum_type (&sum)[vec]) {
    line += first, v += first;
#pragma unroll 1
    for (int left = int(uint64_t(n) / batch); left > 0; left--, line += batch, v += batch)
      add_steps<BY, IS_STAGED, false>(line, v, batch, sum);
    const int n_last = int(n % batch);
    if (n_last > 0) add_steps<BY, IS_STAGED, true>(line, v, n_last - first, sum);
  }

  /* Of the sums of k modulo a step those are added first that are neighbours in a vector, then those whose places differ in the
   * highest bits, then the others: so both ways have few lanes to ask. */
  template <access BY> static __device__ __forceinline__ sum_type fold_along_k(sum_type (&sum)[vec]) {
    if constexpr (BY == access::vectors) {
      return over_lanes(over_lanes(over_own(sum), 32 / vec, 32), 1, 32 / vec);
    } else {
#pragma unroll
      for (int i = 0; i < vec; i++) sum[i] = over_lanes(sum[i], 1, vec);
      return over_lanes(over_own(sum), vec, 32);
    }
  }

  /* n elements of the vector, for all threads. */
  static __device__ __forceinline__ void stage(const task &t, int64_t first, int n, element *shared) {
    const element *v = t.vector + first * t.step_v;
    constexpr int n_each = (staged + Config::n_threads - 1) / Config::n_threads;
#pragma unroll
    for (int i = 0; i < n_each; i++) {
      const int at = int(threadIdx.x) + i * Config::n_threads;
      if (at < n) shared[at] = load(v + at * t.step_v, t.whole_v);
    }
  }

  template <class Finish> static __device__ __forceinline__ void along_k(const task &t, element *shared, Finish finish) {
    static_assert(staged > 0, "room for a batch");
    const int lane = int(threadIdx.x) % 32, x = int(threadIdx.x) / 32;
    const bool is_there = x <= t.x_last, is_contiguous = t.step_v == 1;
    const element *line = t.matrix + (is_there ? x * t.step_x : 0);
    const access by =
        access_to(is_wide(line, 0) && (!is_contiguous || is_wide(t.vector, 0)), t.whole_m && (!is_contiguous || t.whole_v));
    const int first = first_of(by, lane), n_rest = int(t.n_k % vec);
    const int64_t n_whole = is_there ? t.n_k - n_rest : 0;
    element m_rest = zero(), v_rest = minus_zero();
    if (is_there && lane < n_rest)
      m_rest = load(line + n_whole + lane, t.whole_m), v_rest = load(t.vector + (n_whole + lane) * t.step_v, t.whole_v);
    sum_type sum[vec];
    clear(sum);
    if (is_contiguous)
      with(by, [&](auto known) { add_line<decltype(known)::value, false>(line, t.vector, first, n_whole, sum); });
    else
      for (int64_t begin = 0; begin < t.n_k; begin += staged) {
        __syncthreads();
        stage(t, begin, int(ws_min(staged, t.n_k - begin)), shared);
        __syncthreads();
        const int64_t n = ws_min(staged, n_whole - begin);
        if (n > 0) with(by, [&](auto known) { add_line<decltype(known)::value, true>(line + begin, shared, first, n, sum); });
      }
    sum_type total;
    with(by, [&](auto known) { total = fold_along_k<decltype(known)::value>(sum); });
    sum_type rest;
    rest.clear();
    multiply_add(rest, m_rest, v_rest);
    total.add(over_lanes(rest, 1, vec));
    if (lane == 0) finish(x, total);
  }

  /* ---- x contiguous ---------------------------------------------------------------------------- */

  /* So many lines go to a warp, which has that many of such groups of them under way as there are registers for. */
  static constexpr int lines = is_along_k ? 1 : 32 * vec / n_x, group_step = n_warps * lines;
  static constexpr int groups_at_once = has_many_registers && sizeof(typename Config::real) == 4 ? 8 : 4,
                       last_groups = groups_at_once / 2;
  static_assert(is_along_k || lines * groups_at_once <= 32, "a lane for each line of a batch");

  /* A lane's elements of a group: side by side in a line, or in lines that follow each other. The first of these lines, and x's. */
  template <access BY> static constexpr int lanes_of_line = BY == access::vectors ? n_x / vec : n_x;
  template <access BY> static constexpr int lines_of_lane = BY == access::vectors ? 1 : vec;
  template <access BY> static constexpr int x_of_lane = vec / lines_of_lane<BY>;

  static __device__ __forceinline__ element from_lane(element x, int lane) {
    if constexpr (Config::unit == 2)
      return {__shfl_sync(~0u, x.x, lane), __shfl_sync(~0u, x.y, lane)};
    else
      return __shfl_sync(~0u, x, lane);
  }

  /* Groups from `line` on, where the lane's first element is, and from v on, the factor that the lane brings; both go on by them. Of
   * n lines from the warp's first one on those that are there, if they are the last. */
  template <access BY, bool IS_LAST>
  static __device__ __forceinline__ void add_groups(const task &t, const element *&line, const element *&v, int lane, int n,
                                                    sum_type (&sum)[vec]) {
    constexpr int n_groups = IS_LAST ? last_groups : groups_at_once;
    const int first = lane / lanes_of_line<BY> * lines_of_lane<BY>;
    const auto is_there = [&](int group, int line_idx) { return !IS_LAST || group * group_step + line_idx < n; };
    vector16 m[n_groups] = {};
#pragma unroll
    for (int g = 0; g < n_groups; g++, line += group_step * t.step_k) {
      if constexpr (BY == access::vectors) {
        if (is_there(g, first)) m[g] = *reinterpret_cast<const vector16 *>(line);
      } else {
        const element *own = line;
#pragma unroll
        for (int i = 0; i < vec; i++, own += t.step_k)
          if (is_there(g, first + i)) m[g].e[i] = load<BY>(own);
      }
    }
    element factor = minus_zero();
    if (lane < n_groups * lines && is_there(lane / lines, lane % lines)) factor = load(v, t.whole_v);
    v += n_groups * group_step * t.step_v;
#pragma unroll
    for (int g = 0; g < n_groups; g++) {
      element of_line{};
#pragma unroll
      for (int i = 0; i < vec; i++) {
        if (i % x_of_lane<BY> == 0) of_line = from_lane(factor, g * lines + first + i / x_of_lane<BY>);
        multiply_add(sum[i], m[g].e[i], of_line);
      }
    }
  }

  /* A warp's sums, over its lines of a group: neighbours first. */
  template <access BY> static __device__ __forceinline__ void sum_lines(const task &t, int warp, int lane, sum_type *shared) {
    constexpr int batch_lines = groups_at_once * group_step, last_lines = last_groups * group_step;
    const int first = lane / lanes_of_line<BY> * lines_of_lane<BY>, x = lane % lanes_of_line<BY> * x_of_lane<BY>;
    const int first_v = lane / lines * group_step + lane % lines; /* lanes beyond the batch bring what nobody asks for */
    const int64_t begin = warp * lines, n = t.n_k - begin + group_step - lines; /* with what the last group lacks */
    const element *line = t.matrix + (begin + first) * t.step_k + min(x, t.x_last), *v = t.vector + (begin + first_v) * t.step_v;
    sum_type sum[vec];
    clear(sum);
#pragma unroll 1
    for (int left = int(n / batch_lines); left > 0; left--) add_groups<BY, false>(t, line, v, lane, batch_lines, sum);
#pragma unroll 1
    for (int n_last = int(n % batch_lines) - (group_step - lines); n_last > 0; n_last -= last_lines)
      add_groups<BY, true>(t, line, v, lane, n_last, sum);
    if (BY != access::vectors) over_own(sum);
#pragma unroll
    for (int i = 0; i < x_of_lane<BY>; i++) {
      sum[i] = over_lanes(sum[i], lanes_of_line<BY>, 32);
      if (lane < lanes_of_line<BY>) shared[warp * n_x + x + i] = sum[i];
    }
  }

  template <class Finish> static __device__ __forceinline__ void along_x(const task &t, sum_type *shared, Finish finish) {
    const int lane = int(threadIdx.x) % 32, warp = int(threadIdx.x) / 32;
    with(access_to(is_wide(t.matrix, t.step_k) && t.x_last == n_x - 1, t.whole_m),
         [&](auto known) { sum_lines<decltype(known)::value>(t, warp, lane, shared); });
    __syncthreads();
    if (warp > 0 || lane >= n_x) return;
    sum_type total = shared[lane];
#pragma unroll 8
    for (int w = 1; w < n_warps; w++) total.add(shared[w * n_x + lane]);
    finish(lane, total);
  }

  /* ---- an item --------------------------------------------------------------------------------- */

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
      const int64_t first = int64_t(along_m ? row : col) * n_x; /* asked for again, rather than kept in registers */
      if (first + x >= (along_m ? args.m : args.n)) return;
      const auto out = along_m ? make_output(first, 0) : make_output(0, first);
      if constexpr (is_half<Config> && std::is_same_v<std::remove_cv_t<decltype(out)>, output_scaled<Config>>) {
        finish_sum<Config>(args, out.scale, batch, along_m ? first + x : 0, along_m ? 0 : first + x, sum.sum);
        return;
      }
      finish_element<Config>(out, out.first + (along_m ? x : x * out.ld), sum, false);
    };
    if constexpr (is_along_k)
      along_k(t, static_cast<element *>(shared), finish);
    else
      along_x(t, static_cast<sum_type *>(shared), finish);
  }
};

} // namespace ws
#endif
