/* split_kernel.cuh - products of few tiles and a long k: k is cut into parts that are summed apart, and their sums are added in the order
 * of the parts. How k is cut depends on the problem alone (split.h), so whoever sums a part, and where, changes no bit of C.
 *
 *   with memory for the sums   every part of every tile is an item; then all blocks meet (grid_barrier.cuh) and share out the elements of
 *                              C: each is the sum of its parts, read from the L2. All blocks must be resident at once.
 *   without                    a block does the parts of a tile one after the other and keeps the total in shared memory. */
#ifndef WS_CUDA_SPLIT_KERNEL_CUH
#define WS_CUDA_SPLIT_KERNEL_CUH
#include "epilogue.cuh"
#include "grid_barrier.cuh"

namespace ws {

/* parts[i * stride] for i = 0 .. n - 1, added in this order; so many are on their way at once that the L2's latency is paid seldom. */
template <class Config>
__device__ __forceinline__ typename Config::element add_parts(const typename Config::element *parts, int64_t stride, int n) {
  using element = typename Config::element;
  constexpr int at_once = 64 / int(sizeof(element)); /* registers: 16 of 32 bits */
  element total = *parts;
  for (int first = 1; first < n; first += at_once) {
    element part[at_once];
#pragma unroll
    for (int i = 0; i < at_once; i++)
      if (first + i < n) part[i] = parts[(first + i) * stride];
#pragma unroll
    for (int i = 0; i < at_once; i++)
      if (first + i < n) total = plus<Config>(total, part[i]);
  }
  return total;
}

template <class Config> __device__ __forceinline__ void add_all_parts(const ws_gemm_args &args) {
  using element = typename Config::element;
  const scaling<Config> scale(args);
  const int n_parts = args.split.n_parts;
  const int64_t ld = args.split.ld, stride = ld * args.n;
  const uint32_t n_rows = uint32_t(args.m),
                 n_elements = uint32_t(args.grid.n_batch / n_parts * args.n * args.m); /* they fit: split.c */
  for (uint32_t e = blockIdx.x * blockDim.x + threadIdx.x; e < n_elements; e += gridDim.x * blockDim.x) {
    const uint32_t i = e % n_rows, column = e / n_rows, j = column % uint32_t(args.n), product = column / uint32_t(args.n);
    const element *parts = static_cast<const element *>(args.split.sums) + product * int64_t(n_parts) * stride + j * ld + i;
    element *c = static_cast<element *>(args.c) + product * args.stride_c + j * args.ldc + i;
    const element total = add_parts<Config>(parts, stride, n_parts);
    store_element<Config>(c, scale(total, scale.beta_zero ? element{} : load_element<Config>(c)));
  }
}

/* One tile's total, bm x item_n elements in shared memory, to C. */
template <class Config>
__device__ __forceinline__ void finish_total(const ws_gemm_args &args, const typename Config::element *total, int64_t product,
                                             int64_t m_first, int64_t n_first) {
  using element = typename Config::element;
  const scaling<Config> scale(args);
  const output<Config> out = output_at<Config>(args, product, m_first, n_first);
  for (int e = int(threadIdx.x); e < Config::bm * Config::item_n; e += Config::n_threads) {
    const int i = e % Config::bm, j = e / Config::bm;
    if (m_first + i >= args.m || n_first + j >= args.n) continue;
    element *c = out.first + j * out.ld + i;
    store_element<Config>(c, scale(total[e], scale.beta_zero ? element{} : load_element<Config>(c)));
  }
}

template <class Config, class Product> __device__ __forceinline__ void split_gemm(const ws_gemm_args &args) {
  using element = typename Config::element;
  extern __shared__ __align__(128) unsigned char shared[];
  element *const tile_total = reinterpret_cast<element *>(shared + Config::shared_bytes);
  element *const sums = static_cast<element *>(args.split.sums);
  const int n_parts = args.split.n_parts;
  for (uint32_t item_idx = blockIdx.x; item_idx < args.sched.n_items; item_idx += gridDim.x) {
    const ws_tile tile = ws_tile_at(&args.grid, item_idx);
    const int row = int(tile.row), col = int(tile.col);
    const int product = sums ? int(tile.batch) / n_parts : int(tile.batch);
    const int first_part = sums ? int(tile.batch) % n_parts : 0, end_part = sums ? first_part + 1 : n_parts;
    for (int part = first_part; part < end_part; part++) {
      const int64_t k_first = part * args.split.part_k;
      Product::run(args, shared, product, row, col, k_first, ws_min(args.split.part_k, args.k - k_first),
                   [&](int64_t m_first, int64_t n_first) {
                     const conjugation conj = {args.a.conj != 0, args.b.conj != 0};
                     if (!sums) return output_total<Config>{{tile_total, Config::bm, Config::bm > 1, conj}, part == 0};
                     element *first = sums + (tile.batch * args.n + n_first) * args.split.ld + m_first;
                     return output_total<Config>{{first, args.split.ld, Config::bm > 1, conj}, true};
                   });
      __syncthreads(); /* shared memory is free again, and the total complete */
    }
    if (!sums) {
      finish_total<Config>(args, tile_total, product, int64_t(row) * Config::bm, int64_t(col) * Config::bn);
      __syncthreads();
    }
  }
  if (!sums) return;
  grid_sync(args.split.barrier, gridDim.x);
  add_all_parts<Config>(args);
}

} // namespace ws
#endif
