/* k_parts.cuh - how the blocks of a cluster share an item: each has consecutive stages of its k, and in the end consecutive
 * columns of C, for which it adds all blocks' sums in their order. How many blocks there are is the launch's business, not the
 * kernel's: one entry point does for all of them. */
#ifndef WS_CUDA_K_PARTS_CUH
#define WS_CUDA_K_PARTS_CUH
#include <cstdint>

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

/* Blocks whose sums are asked for at the same time, of so many groups of warps each. */
__host__ __device__ constexpr int blocks_at_once(int k_groups) { return k_groups < 4 ? 4 : 2; }

/* How many of its columns a thread does together, of which there are so many reals: as many as there are registers for. */
__host__ __device__ constexpr int columns_at_once(int n_columns, int reals) {
  int n = 1;
  while (2 * n <= n_columns && 2 * n * reals <= 16) n *= 2;
  return n;
}

/* The blocks that share an item, and how many columns of C each does. */
struct k_sharers {
  int cluster, columns;

  __device__ __forceinline__ bool is_alone() const { return cluster == 1; }
  __device__ __forceinline__ int first_column() const { return is_alone() ? 0 : int(cluster_rank()) * columns; }

  /* The sums of WIDTH reals, of an element or of neighbours in a column, in the order of blocks and of their K_GROUPS groups of warps;
   * of_group(g): where those of a group lie in each block. */
  template <int K_GROUPS, class Real, int WIDTH, class OfGroup>
  __device__ __forceinline__ void add_parts(Real (&x)[WIDTH], OfGroup of_group) const {
    constexpr int at_once = blocks_at_once(K_GROUPS);
#pragma unroll
    for (int e = 0; e < WIDTH; e++) x[e] = Real(-0.0); /* changes no sum */
    if (is_alone())
      add_round<1, K_GROUPS>(x, of_group, 0);
    else
#pragma unroll 1
      for (int first = 0; first < cluster; first += at_once) add_round<at_once, K_GROUPS>(x, of_group, first);
  }
  template <int BLOCKS, int K_GROUPS, class Real, int WIDTH, class OfGroup>
  __device__ __forceinline__ void add_round(Real (&x)[WIDTH], OfGroup of_group, int first) const {
    constexpr int n_parts = BLOCKS * K_GROUPS;
    Real part[n_parts][WIDTH];
#pragma unroll
    for (int i = 0; i < n_parts; i++) {
      const uint32_t there = of_group(i % K_GROUPS);
      if constexpr (BLOCKS > 1)
        ld_shared_cluster_of(part[i], there, uint32_t(first + i / K_GROUPS), uint32_t(cluster));
      else
        load_part(part[i], there);
    }
#pragma unroll
    for (int e = 0; e < WIDTH; e++)
#pragma unroll
      for (int i = 0; i < n_parts; i++) x[e] += part[i][e];
  }

  /* The same of some columns together, so that all wait at the same time: those that exist; of others nothing is known. where(group, u):
   * column u of a group; what does not exist lies in shared memory, too, where there is but one block (IS_ALONE). */
  template <int K_GROUPS, bool IS_ALONE, class Real, int N, int WIDTH, class Where, class Exists>
  __device__ __forceinline__ void add_columns(Real (&x)[N][WIDTH], Where where, Exists exists) const {
#pragma unroll
    for (int i = 0; i < N * WIDTH; i++) x[i / WIDTH][i % WIDTH] = Real(-0.0);
    constexpr int n_blocks = IS_ALONE ? 1 : blocks_at_once(K_GROUPS), n_parts = n_blocks * K_GROUPS;
#pragma unroll 1
    for (int first = 0; first < (IS_ALONE ? 1 : cluster); first += n_blocks) {
      Real part[N][n_parts][WIDTH];
#pragma unroll
      for (int u = 0; u < N; u++)
#pragma unroll
        for (int i = 0; i < n_parts; i++) {
          if constexpr (IS_ALONE)
            load_part(part[u][i], where(i, u));
          else
            ld_shared_cluster_of(part[u][i], where(i % K_GROUPS, u), uint32_t(first + i / K_GROUPS),
                                 exists(u) ? uint32_t(cluster) : 0u);
        }
#pragma unroll
      for (int u = 0; u < N; u++)
#pragma unroll
        for (int e = 0; e < WIDTH; e++)
#pragma unroll
          for (int i = 0; i < n_parts; i++) x[u][e] += part[u][i][e];
    }
  }

  /* Of warps that multiply, N_CONSUMING threads a block: all parts stand in shared memory. */
  template <int N_CONSUMING> __device__ __forceinline__ void meet() const {
    if (is_alone())
      barrier_sync(1, N_CONSUMING);
    else
      cluster_sync();
  }
  /* Nobody reads a block's shared memory behind it. */
  __device__ __forceinline__ void leave() const {
    if (!is_alone()) cluster_leave();
  }
  /* Both, of warps that only copy. */
  __device__ __forceinline__ void attend() const {
    if (!is_alone()) cluster_sync(), cluster_leave();
  }
};

/* Of a block: its stages of an item's k, and who shares the item. */
struct k_part {
  int first, count, columns, cluster;

  static __device__ __forceinline__ k_part whole(int n_stages, int n_columns) { return {0, n_stages, n_columns, 1}; }

  /* What stages do not share evenly is for the first blocks. */
  static __device__ __forceinline__ k_part of_block(int n_stages, int n_columns) {
    const int cluster = int(cluster_blocks()), rank = int(cluster_rank());
    if (cluster == 1) return whole(n_stages, n_columns);
    const int each = n_stages / cluster, more = n_stages % cluster;
    return {each * rank + min(rank, more), each + (rank < more), (n_columns + cluster - 1) / cluster, cluster};
  }
};

} // namespace ws
#endif
