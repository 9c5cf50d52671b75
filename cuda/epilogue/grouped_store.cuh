/* grouped_store.cuh - from a warpgroup's sums of an item of gemm_grouped.cuh to C.
 *
 * The sums are fragments of 64 rows of C times the item's columns: thread t, with w = t / 32, g = t % 32 /
 * 4, q = t % 4, has in sums[4a + 2h + r] the element of row 16w + g + 8h, column 8a + 2q + r. C leaves in
 * parts of 32 columns: of 16 bits by way of shared memory, by TMA if the whole part is the item's, else
 * column by column; of floats from registers, eight rows a sector. What is read of C, or of a residual,
 * comes the same ways, so its loads are as wide as the stores. */
#ifndef WS_CUDA_GROUPED_STORE_CUH
#define WS_CUDA_GROUPED_STORE_CUH
#include "cuda/epilogue/activations.cuh"
#include "cuda/epilogue/half_c.cuh"
#include "cuda/epilogue/steps.cuh"
#include "cuda/ptx/convert.cuh"
#include "cuda/ptx/mma16.cuh"
#include "cuda/ptx/tma.cuh"
#include "cuda/shared/grouped_args.h"

namespace ws {

/* First element of C in it; n: its columns, 0: there are no more items. Its lines along k. */
struct grouped_item {
  int m, column, n, group;
  int k_first, k, unused[2];
};

/* HAS_STEPS: it can also do beta, an epilogue, and C of floats, which take registers. */
template <class Element, bool RAGGED_K, int MOST_N, int N_OUTPUTS, bool HAS_STEPS> struct grouped_store {
  static constexpr int part_n = 32, part_bytes = part_n * 64 * 2;
  /* Columns whose steps are taken together; elements of a thread's among them. */
  static constexpr int step_n = 16, n_own = step_n / 2, step_bytes = step_n * 64 * 2;
  static_assert(part_n == 2 * step_n);
  const ws_grouped_args &args;
  uint32_t places; /* N_OUTPUTS parts of the warpgroup's */
  int barrier;     /* its number */

  /* Rows from m on. */
  __device__ __forceinline__ void operator()(const grouped_item &at, int m, const float (&sums)[MOST_N / 2]) const {
    if (m >= args.m) return;
    if constexpr (HAS_STEPS)
      if (!args.is_plain) return store_finished(at, m, sums);
    store_plainly(at, m, sums);
  }

  /* Asks the L2 for what will be read of C, before the sums are made. */
  __device__ __forceinline__ void prefetch(const grouped_item &at, int m) const {
    if (args.beta_zero || m >= args.m) return;
    for (int line = thread(); line < at.n; line += 128) {
      const half_c first = like_c(args.c_data, args.ldc, args.stride_c, m, at.column + line, at.group);
      prefetch_l2(first.at);
      if (args.type_c == WS_HALF_C_F32 && m + 32 < args.m) prefetch_l2((first + 32).at);
    }
  }

  /* Where nothing is added up: beta C, and the epilogue, as scale_elements of kernels/elementwise.cuh, which the product alone goes
   * to. Many groups may be empty, and their C is all that there is to do. */
  __device__ __forceinline__ void store_without_k(const grouped_item &at, int m) const {
    if (m >= args.m) return;
    if (HAS_STEPS && (args.epilogue.is_any || args.type_c == WS_HALF_C_F32)) return scale_elements(at, m);
    if (!HAS_STEPS || args.beta_zero)
      store_zeros(at, m);
    else
      scale_columns(at, m);
  }

  static __device__ __forceinline__ int thread() { return int(threadIdx.x) % 128; }

private:
  __device__ __forceinline__ void scale_elements(const grouped_item &at, int m) const {
    const int i = m + thread() % 64;
    if (i >= args.m) return;
#pragma unroll 4
    for (int j = at.column + thread() / 64; j < at.column + at.n; j += 2) {
      const half_c to = like_c(args.c_data, args.ldc, args.stride_c, i, j, at.group);
      float x[1] = {args.beta_zero ? 0 : args.beta * to.load()};
      if constexpr (HAS_STEPS)
        if (args.epilogue.is_any) take_steps<exact_activations, true>(args.epilogue, args.type_c, at.group, i, j, 1, x);
      to.store(x[0]);
    }
  }

  /* 16 bits: all parts from one that is zeros. */
  __device__ __forceinline__ void store_zeros(const grouped_item &at, int m) const {
    const bool is_asking = asks();
    if (is_asking) cp_async_bulk_wait_group_read<0>();
    meet();
    for (uint32_t to = uint32_t(thread()) * 16; to < part_bytes; to += 128 * 16)
      asm volatile("st.shared.v4.b32 [%0], {%1, %1, %1, %1};" ::"r"(places + to), "r"(0) : "memory");
    fence_proxy_async_shared();
    meet();
    for (int first = 0; first < at.n; first += part_n) {
      if (at.n - first < part_n)
        store_columns(places, m, at.column + first, at.n - first, at.group);
      else if (is_asking)
        cp_async_bulk_tensor_store(&args.c, m, at.column + first, RAGGED_K ? at.group : 0, places);
    }
    if (is_asking)
      for (int i = 0; i < N_OUTPUTS; i++) cp_async_bulk_commit_group(); /* as if each place had had its turn */
  }

  /* 16 bits, 16 bytes at a time. */
  __device__ __forceinline__ void scale_columns(const grouped_item &at, int m) const {
    const int i = m + thread() % 8 * 8;
    if (i >= args.m) return;
#pragma unroll 4
    for (int j = at.column + thread() / 8; j < at.column + at.n; j += 16) {
      const half_c to = like_c(args.c_data, args.ldc, args.stride_c, i, j, at.group);
      uint4 eight = to.template as<uint4>();
      uint32_t *const two = &eight.x;
#pragma unroll
      for (int u = 0; u < 4; u++)
        two[u] = to.packed(args.beta * to.widened(two[u] & 0xffff), args.beta * to.widened(two[u] >> 16));
      to.template as<uint4>() = eight;
    }
  }

  static __device__ __forceinline__ bool asks() { return __shfl_sync(~0u, thread() / 32, 0) == 0 && elect_one(); }
  __device__ __forceinline__ void meet() const { barrier_sync(barrier, 128); }

  /* An element of C, or of what lies as C does. */
  static __device__ __forceinline__ int64_t place_of(int64_t ld, int64_t stride, int i, int j, int group) {
    return (RAGGED_K ? group * stride : 0) + j * ld + i;
  }
  __device__ __forceinline__ half_c like_c(const void *base, int64_t ld, int64_t stride, int i, int j, int group) const {
    return half_c_at(base, args.type_c) + place_of(ld, stride, i, j, group);
  }

  /* ---- 16 bits, by way of shared memory: a line is a column ----------------------------------------- */

  /* Of 16 columns of the warpgroup's 64 rows, which begin there: which eight this lane gives the address of. */
  static __device__ __forceinline__ uint32_t matrix_at(uint32_t place) {
    const uint32_t lane = uint32_t(thread() % 32), line = lane / 16 * 8 + lane % 8;
    const uint32_t eight = uint32_t(thread() / 32 * 2) + lane / 8 % 2;
    return place + line * 128 + (eight ^ line % 8) * 16;
  }

  static __device__ __forceinline__ void put(uint32_t place, const float (&x)[n_own]) {
    uint32_t two[4];
#pragma unroll
    for (int i = 0; i < 4; i++) two[i] = half_pair_of<Element>(x[2 * i], x[2 * i + 1]);
    stmatrix_x4_trans(matrix_at(place), two);
  }

  __device__ __forceinline__ void put_scaled(uint32_t place, const float *sums) const {
    float x[n_own];
#pragma unroll
    for (int u = 0; u < n_own; u++) x[u] = __fmul_rn(args.alpha, sums[u]);
    put(place, x);
  }

  /* The thread's 16 bytes of COUNT columns: body(how far from the first element, where in shared memory,
   * whether they exist). */
  template <int COUNT, class Body>
  __device__ __forceinline__ void for_columns(int64_t ld, int m, int n, uint32_t place, Body body) const {
    const uint32_t eight = uint32_t(thread() % 8);
#pragma unroll
    for (int i = 0; i < COUNT / 16; i++) {
      const uint32_t line = uint32_t(thread() / 8 + i * 16);
      body(int64_t(line) * ld + eight * 8, place + line * 128 + (eight ^ line % 8) * 16,
           int(line) < n && m + int(eight) * 8 < args.m);
    }
  }

  __device__ __forceinline__ void store_columns(uint32_t place, int m, int column, int n, int group) const {
    uint16_t *const c = static_cast<uint16_t *>(args.c_data) + place_of(args.ldc, args.stride_c, m, column, group);
    for_columns<part_n>(args.ldc, m, n, place, [=](int64_t to, uint32_t from, bool exists) {
      uint4 x;
      if (!exists) return;
      asm volatile("ld.shared.v4.b32 {%0, %1, %2, %3}, [%4];"
                   : "=r"(x.x), "=r"(x.y), "=r"(x.z), "=r"(x.w)
                   : "r"(from)
                   : "memory");
      *reinterpret_cast<uint4 *>(c + to) = x;
    });
  }

  /* A part that lies in `place`, by TMA if it is whole. */
  __device__ __forceinline__ void store_part(uint32_t place, int m, int column, int n, int group, bool asks) const {
    if (n >= part_n) {
      fence_proxy_async_shared();
      meet();
      if (asks) cp_async_bulk_tensor_store(&args.c, m, column, RAGGED_K ? group : 0, place);
    } else {
      meet();
      store_columns(place, m, column, n, group);
    }
    if (asks) cp_async_bulk_commit_group();
  }

  /* Places take turns, so each item's parts begin with the first one: it takes an even number of turns. */
  __device__ __forceinline__ void store_plainly(const grouped_item &at, int m, const float (&sums)[MOST_N / 2]) const {
    const bool is_asking = asks();
#pragma unroll
    for (int part = 0; part < MOST_N / part_n; part++) {
      const int n_left = at.n - part * part_n;
      if (n_left > 0) {
        const uint32_t place = places + uint32_t(part % N_OUTPUTS * part_bytes);
        if (is_asking) cp_async_bulk_wait_group_read<N_OUTPUTS - 1>();
        meet();
        put_scaled(place, &sums[part * 2 * n_own]);
        put_scaled(place + step_bytes, &sums[(part * 2 + 1) * n_own]);
        store_part(place, m, at.column + part * part_n, n_left, at.group, is_asking);
      } else if (part % N_OUTPUTS && n_left > -part_n) {
        if (is_asking) cp_async_bulk_commit_group();
      }
    }
  }

  /* ---- Steps: beta, the epilogue -------------------------------------------------------------------- */

  struct some_columns {
    int m, column, n, group;
  };

  /* body(element of the thread's, its row, its column), of those that exist */
  template <class Body> __device__ __forceinline__ void for_own(const some_columns &p, Body body) const {
    const int row = thread() / 32 * 16 + thread() % 32 / 4, column = thread() % 4 * 2;
#pragma unroll
    for (int u = 0; u < n_own; u++) {
      const int i = row + u / 2 % 2 * 8, j = u / 4 * 8 + column + u % 2;
      if (p.m + i < args.m && j < p.n) body(u, i, j);
    }
  }

  /* The thread's elements of C, or of the residual, as they come from memory: 16 bytes of a column, or floats. What does
   * not exist is 0. */
  struct found {
    uint4 bits[2];
  };

  __device__ __forceinline__ found ask(const some_columns &p, const void *base, int64_t ld, int64_t stride) const {
    found x = {};
    if (p.n <= 0) return x;
    const half_c first = like_c(base, ld, stride, p.m, p.column, p.group);
    if (args.type_c == WS_HALF_C_F32) {
      uint32_t *const to = &x.bits[0].x;
      for_own(p, [&](int u, int i, int j) { to[u] = (first + (j * ld + i)).template as<uint32_t>(); });
    } else {
      for_columns<step_n>(ld, p.m, p.n, 0, [&](int64_t from, uint32_t, bool exists) {
        if (exists) x.bits[0] = *reinterpret_cast<const uint4 *>(first.at + from * 2);
      });
    }
    return x;
  }

  /* What was asked for, as numbers. */
  __device__ __forceinline__ void take(const found &from, uint32_t place, float (&x)[n_own]) const {
    if (args.type_c == WS_HALF_C_F32) {
      const uint32_t *const bits = &from.bits[0].x;
#pragma unroll
      for (int u = 0; u < n_own; u++) x[u] = __uint_as_float(bits[u]);
      return;
    }
    meet(); /* what was there has been read */
    for_columns<step_n>(0, 0, step_n, place, [&](int64_t, uint32_t to, bool) {
      const uint4 two = from.bits[0];
      asm volatile("st.shared.v4.b32 [%0], {%1, %2, %3, %4};" ::"r"(to), "r"(two.x), "r"(two.y), "r"(two.z), "r"(two.w)
                   : "memory");
    });
    meet();
    uint32_t two[4];
    ldmatrix_x4_trans(two, matrix_at(place));
#pragma unroll
    for (int u = 0; u < n_own; u++) x[u] = half_c{nullptr, args.type_c}.widened(two[u / 2] >> (u % 2 * 16) & 0xffff);
  }

  __device__ __forceinline__ void add_bias(const some_columns &p, float (&x)[n_own]) const {
    const ws_epilogue_args &e = args.epilogue;
    const half_c first = half_c_at(e.bias, e.type_bias) + (p.group * e.stride_bias + (e.bias_per_row ? p.m : p.column));
    for_own(p, [&](int u, int i, int j) { x[u] = __fadd_rn(x[u], (first + (e.bias_per_row ? i : j)).load()); });
  }

  __device__ __forceinline__ void finish(const some_columns &p, uint32_t place, const found &of_c, float (&x)[n_own]) const {
    const ws_epilogue_args &e = args.epilogue;
    float old[n_own];
    if (args.beta_zero) {
#pragma unroll
      for (int u = 0; u < n_own; u++) x[u] = __fmul_rn(args.alpha, x[u]);
    } else {
      take(of_c, place, old);
#pragma unroll
      for (int u = 0; u < n_own; u++) x[u] = fmaf(args.alpha, x[u], args.beta * old[u]);
    }
    if (!e.is_any) return;
    if (e.residual) take(ask(p, e.residual, e.ld_residual, e.stride_residual), place, old);
    if (e.bias) add_bias(p, x);
    fast_activations::apply(e.activation, x);
    const float out_scale = float(e.out_scale);
    if (out_scale != 1) {
#pragma unroll
      for (int u = 0; u < n_own; u++) x[u] = __fmul_rn(x[u], out_scale);
    }
    if (e.residual) {
#pragma unroll
      for (int u = 0; u < n_own; u++) x[u] = __fadd_rn(x[u], old[u]);
    }
  }

  __device__ __forceinline__ some_columns step_at(const grouped_item &at, int m, int first) const {
    return {m, at.column + first, int(ws_min(step_n, at.n - first)), at.group};
  }
  __device__ __forceinline__ found ask_for_c(const grouped_item &at, int m, int first) const {
    return args.beta_zero ? found{} : ask(step_at(at, m, first), args.c_data, args.ldc, args.stride_c);
  }

  /* By one place: the steps take longer than the store. Of C what the next two take is on its way. */
  __device__ __forceinline__ void store_finished(const grouped_item &at, int m, const float (&sums)[MOST_N / 2]) const {
    const bool is_asking = asks();
    found next = ask_for_c(at, m, 0), one_more = ask_for_c(at, m, step_n);
#pragma unroll 1
    for (int first = 0; first < at.n; first += step_n) {
      const some_columns p = step_at(at, m, first);
      const bool is_second = first % part_n > 0;
      const uint32_t place = places + (is_second ? step_bytes : 0);
      const found of_c = next;
      next = one_more, one_more = ask_for_c(at, m, first + 2 * step_n);
      float x[n_own];
#pragma unroll
      for (int t = 0; t < MOST_N; t += step_n)
        if (t == first) { /* registers have no numbers in a loop */
#pragma unroll
          for (int u = 0; u < n_own; u++) x[u] = sums[t / 2 + u];
        }
      if (is_asking && !is_second) cp_async_bulk_wait_group_read<0>();
      finish(p, place, of_c, x);
      if (args.type_c == WS_HALF_C_F32) {
        const half_c to = like_c(args.c_data, args.ldc, args.stride_c, m, p.column, p.group);
        for_own(p, [&](int u, int i, int j) { (to + (j * args.ldc + i)).template as<float>() = x[u]; });
        continue;
      }
      meet();
      put(place, x);
      const int begin = first - (is_second ? step_n : 0);
      if (is_second || first + step_n >= at.n) store_part(places, m, at.column + begin, at.n - begin, p.group, is_asking);
    }
  }
};

} // namespace ws
#endif
