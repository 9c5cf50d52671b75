/* store_tile16.cuh - one item's sums of 16-bit products, from the registers of whoever summed them
 * to C, by way of shared memory.
 *
 * The stages are no longer needed then. So C is written along its columns, whatever the mainloop's
 * owners look like, and its type (half_c.cuh) is asked for in one small loop. Left to the mainloop:
 * to put each of its sums where sum_at() says. */
#ifndef WS_CUDA_STORE_TILE16_CUH
#define WS_CUDA_STORE_TILE16_CUH
#include "cuda/epilogue/epilogue.cuh"

namespace ws {

template <class Config> struct store_tile16 {
  /* Column n of the item in shared memory. 8 beyond a multiple of 32 floats: the four columns that
   * half a warp writes at a time, 8 floats each, are in different banks. */
  static constexpr int pitch = Config::bm + 8;
  static_assert(Config::bm % 32 == 0, "see the banks");
  static_assert(pitch * Config::item_n * int(sizeof(float)) <= Config::shared_bytes, "the sums find room");

  /* Element (m, n) of the item. */
  static __device__ __forceinline__ float *sum_at(float *sums, int m, int n) { return sums + n * pitch + m; }

  /* Some rows of the item, from i_begin up to n_i, WIDTH neighbours to a thread, in n_j columns.
   * Loads of some columns are under way at once. */
  template <int WIDTH, class Output>
  static __device__ __forceinline__ void finish_rows(const Output &out, const float *sums, int i_begin, int n_i, int n_j) {
    using vector = sum_vector<Config>;
    static_assert(WIDTH == 1 || WIDTH == vector::length);
    constexpr int along = Config::bm / WIDTH, step_j = Config::n_threads / along, n_turns = Config::item_n / step_j;
    constexpr int at_once = n_turns < 4 ? n_turns : 4;
    static_assert(Config::n_threads % along == 0 && Config::item_n % (step_j * at_once) == 0,
                  "the threads step over whole items");
    const int i = i_begin + int(threadIdx.x) % along * WIDTH;
    if (i + WIDTH > n_i) return;
#pragma unroll 1
    for (int j = int(threadIdx.x) / along; j < n_j; j += at_once * step_j) {
      vector x[at_once];
#pragma unroll
      for (int u = 0; u < at_once; u++) {
        x[u] = {};
        if (!out.reads_old() || j + u * step_j >= n_j) continue;
        const auto at = out.first + i + (j + u * step_j) * out.ld;
        if constexpr (WIDTH == 1)
          x[u].e[0] = load_element<Config>(at);
        else
          x[u] = load_vector<Config>(at);
      }
#pragma unroll
      for (int u = 0; u < at_once; u++) {
        if (j + u * step_j >= n_j) continue;
        const auto at = out.first + i + (j + u * step_j) * out.ld;
        const float *from = sums + (j + u * step_j) * pitch + i;
#pragma unroll
        for (int e = 0; e < WIDTH; e++) x[u].e[e] = out(products<Config>{from[e]}, x[u].e[e]);
        if constexpr (WIDTH == 1)
          store_element<Config>(at, x[u].e[0]);
        else
          store_vector<Config>(at, x[u]);
      }
    }
  }

  /* With the steps of the epilogue. */
  static __device__ __forceinline__ void finish_by_elements(const output_scaled<Config> &out, const float *sums, int n_i,
                                                            int n_j) {
#pragma unroll 1
    for (int e = int(threadIdx.x); e < Config::bm * n_j; e += Config::n_threads) {
      const int i = e % Config::bm, j = e / Config::bm;
      if (i < n_i) finish_sum<Config>(out.args, out.scale, out.batch, out.m_first + i, out.n_first + j, sums[j * pitch + i]);
    }
  }

  /* n_m x n_n elements of the item exist. put(sums): puts those of the calling thread where
   * sum_at() says. */
  template <class Output, class Put>
  static __device__ __forceinline__ void finish(const Output &out, void *shared, int64_t n_m, int64_t n_n, Put put) {
    constexpr int length = sum_vector<Config>::length;
    const int n_i = int(ws_min(Config::bm, n_m)), n_j = int(ws_min(Config::item_n, n_n)),
              n_by_vectors = out.vectors ? n_i / length * length : 0;
    float *const sums = static_cast<float *>(shared);
    __syncthreads(); /* nobody reads a stage any more */
    put(sums);
    __syncthreads();
    if constexpr (std::is_same_v<Output, output_scaled<Config>>)
      if (out.args.epilogue.is_any) {
        finish_by_elements(out, sums, n_i, n_j);
        return;
      }
    if (n_by_vectors > 0) finish_rows<length>(out, sums, 0, n_by_vectors, n_j);
    if (n_by_vectors < n_i) finish_rows<1>(out, sums, n_by_vectors, n_i, n_j);
  }
};

} // namespace ws
#endif
