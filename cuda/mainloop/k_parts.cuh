/* k_parts.cuh - how the blocks of a cluster share an item: each has consecutive stages of its k, and in the end consecutive
 * columns of C, for which it adds all blocks' sums in their order. How many blocks there are is the launch's business, not the
 * kernel's: one entry point does for all of them. */
#ifndef WS_CUDA_K_PARTS_CUH
#define WS_CUDA_K_PARTS_CUH
#include <cstdint>

#include "core/tile.h"
#include "cuda/ptx/cluster.cuh"
#include "cuda/ptx/shared_f64.cuh"
#include "cuda/ptx/tma.cuh"

namespace ws {

/* A part of a sum, of this block. */
template <int WIDTH> __device__ __forceinline__ void load_part(float (&x)[WIDTH], uint32_t from) {
  if constexpr (WIDTH == 4)
    ld_shared_four(x, from);
  else
    for (int e = 0; e < WIDTH; e++) x[e] = ld_shared(from + 4 * e);
}
__device__ __forceinline__ void load_part(double (&x)[1], uint32_t from) { ld_shared_f64(x[0], from); }
__device__ __forceinline__ void load_part(double (&x)[2], uint32_t from) { ld_shared_f64(x[0], x[1], from); }

/* The blocks that share an item, and how many columns of C each does. */
struct k_sharers {
  int cluster, columns;

  __device__ __forceinline__ bool is_alone() const { return cluster == 1; }
  __device__ __forceinline__ int first_column() const { return is_alone() ? 0 : int(cluster_rank()) * columns; }

  /* The sums of WIDTH reals, of an element or of neighbours in a column, in the order of blocks and of their K_GROUPS groups of warps;
   * of_group(g): where those of a group lie in each block. */
  template <int K_GROUPS, class Real, int WIDTH, class OfGroup>
  __device__ __forceinline__ void add_parts(Real (&x)[WIDTH], OfGroup of_group) const {
    /* whose sums are asked for at the same time: as many as 64 registers take */
    constexpr int blocks_at_once = 64 / (K_GROUPS * WIDTH * int(sizeof(Real) / 4)) < 8 ? 4 : 8;
    const int n = cluster;
#pragma unroll
    for (int e = 0; e < WIDTH; e++) x[e] = Real(-0.0); /* changes no sum */
    if (n == 1)
      add_round<1, K_GROUPS>(x, of_group, 0, n);
    else
#pragma unroll 1
      for (int first = 0; first < n; first += blocks_at_once) add_round<blocks_at_once, K_GROUPS>(x, of_group, first, n);
  }
  template <int BLOCKS, int K_GROUPS, class Real, int WIDTH, class OfGroup>
  static __device__ __forceinline__ void add_round(Real (&x)[WIDTH], OfGroup of_group, int first, int n) {
    constexpr int n_parts = BLOCKS * K_GROUPS;
    Real part[n_parts][WIDTH];
#pragma unroll
    for (int i = 0; i < n_parts; i++) {
      const uint32_t there = of_group(i % K_GROUPS);
      const int rank = first + i / K_GROUPS;
      if constexpr (BLOCKS > 1)
        ld_if(part[i], address_in_block(there, uint32_t(rank)), rank < n);
      else
        load_part(part[i], there);
    }
#pragma unroll
    for (int i = 0; i < n_parts; i++)
#pragma unroll
      for (int e = 0; e < WIDTH; e++) x[e] += part[i][e];
  }

  /* Of warps that multiply: this thread's parts stand in shared memory. */
  __device__ __forceinline__ void come() const {
    if (!is_alone()) cluster_arrive_shared();
  }
  /* All parts do; of all N_CONSUMING threads of the block that multiply, which have come. */
  template <int N_CONSUMING> __device__ __forceinline__ void await() const {
    if (is_alone())
      barrier_sync(1, N_CONSUMING);
    else
      cluster_wait_shared();
  }
  template <int N_CONSUMING> __device__ __forceinline__ void meet() const { come(), await<N_CONSUMING>(); }
  /* Nobody reads a block's shared memory behind it. */
  __device__ __forceinline__ void leave() const {
    if (!is_alone()) cluster_leave();
  }
  /* Both, of warps that only copy, and have written nothing that others read. */
  __device__ __forceinline__ void attend() const {
    if (!is_alone()) cluster_leave(), cluster_leave();
  }
};

/* Of a block: its stages of an item's k, and who shares the item. */
struct k_part {
  int first, count, columns, cluster;

  static __device__ __forceinline__ k_part whole(int n_stages, int n_columns) { return {0, n_stages, n_columns, 1}; }

  /* What stages do not share evenly is for the first blocks. */
  static __device__ __forceinline__ k_part of_block(uint32_t rank, const ws_divisor &blocks, int n_stages, int n_columns) {
    const int each = int(ws_divide(uint32_t(n_stages), &blocks)), more = n_stages - each * int(blocks.d);
    return {each * int(rank) + min(int(rank), more), each + (int(rank) < more),
            int(ws_divide(uint32_t(n_columns) + blocks.d - 1, &blocks)), int(blocks.d)};
  }
  static __device__ __forceinline__ k_part of_block(int n_stages, int n_columns) {
    const int cluster = int(cluster_blocks()), rank = int(cluster_rank());
    if (cluster == 1) return whole(n_stages, n_columns);
    const int each = n_stages / cluster, more = n_stages % cluster;
    return {each * rank + min(rank, more), each + (rank < more), (n_columns + cluster - 1) / cluster, cluster};
  }
};

} // namespace ws
#endif
