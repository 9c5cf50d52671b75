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

/* Blocks whose sums are asked for at the same time, each of which takes so many registers. */
__host__ __device__ constexpr int blocks_at_once(int registers) {
  int n = 2;
  while (n < 8 && 2 * n * registers <= 64) n *= 2;
  return n;
}

/* How many of its columns a thread does together, of which each takes so many registers. */
__host__ __device__ constexpr int columns_at_once(int n_columns, int registers) {
  int n = 1;
  while (2 * n <= n_columns && 2 * n * registers <= 16) n *= 2;
  return n;
}

/* The blocks that share an item, and how many columns of C each does. */
struct k_sharers {
  int cluster, columns;

  __device__ __forceinline__ bool is_alone() const { return cluster == 1; }
  __device__ __forceinline__ int first_column() const { return is_alone() ? 0 : int(cluster_rank()) * columns; }

  /* The sums of some columns together, so that all wait at the same time: of each WIDTH reals, of an element or of neighbours; in the
   * order of blocks and of their K_GROUPS groups of warps. where(group, u): where column u of a group lies in each block. Those that do
   * not exist have any sums; of one block alone they lie in shared memory nevertheless. */
  template <int K_GROUPS, bool IS_ALONE, class Real, int N, int WIDTH, class Where, class Exists>
  __device__ __forceinline__ void add_columns(Real (&x)[N][WIDTH], Where where, Exists exists) const {
    constexpr int n_blocks = IS_ALONE ? 1 : blocks_at_once(K_GROUPS * N * WIDTH * int(sizeof(Real) / 4)),
                  n_parts = n_blocks * K_GROUPS;
    const int n = IS_ALONE ? 1 : cluster;
#pragma unroll
    for (int i = 0; i < N * WIDTH; i++) x[i / WIDTH][i % WIDTH] = Real(-0.0); /* changes no sum */
#pragma unroll 1
    for (int first = 0; first < n; first += n_blocks) {
      Real part[N][n_parts][WIDTH];
#pragma unroll
      for (int u = 0; u < N; u++)
#pragma unroll
        for (int i = 0; i < n_parts; i++) {
          const uint32_t there = where(i % K_GROUPS, u);
          const int rank = first + i / K_GROUPS;
          if constexpr (IS_ALONE)
            load_part(part[u][i], there);
          else
            ld_if(part[u][i], address_in_block(there, uint32_t(rank)), rank < n && exists(u));
        }
#pragma unroll
      for (int u = 0; u < N; u++)
#pragma unroll
        for (int i = 0; i < n_parts; i++)
#pragma unroll
          for (int e = 0; e < WIDTH; e++) x[u][e] += part[u][i][e];
    }
  }
  /* Of one. */
  template <int K_GROUPS, class Real, int WIDTH, class OfGroup>
  __device__ __forceinline__ void add_parts(Real (&x)[WIDTH], OfGroup of_group) const {
    Real all[1][WIDTH];
    const auto where = [&](int group, int) { return of_group(group); };
    const auto exists = [](int) { return true; };
    if (is_alone())
      add_columns<K_GROUPS, true>(all, where, exists);
    else
      add_columns<K_GROUPS, false>(all, where, exists);
#pragma unroll
    for (int e = 0; e < WIDTH; e++) x[e] = all[0][e];
  }

  /* Of warps that multiply: this thread's parts stand in shared memory. */
  __device__ __forceinline__ void arrive() const {
    if (!is_alone()) cluster_arrive_shared();
  }
  /* All parts do; of all N_CONSUMING threads of the block that multiply, which have arrived. */
  template <int N_CONSUMING> __device__ __forceinline__ void wait() const {
    if (is_alone())
      barrier_sync(1, N_CONSUMING);
    else
      cluster_wait_shared();
  }
  template <int N_CONSUMING> __device__ __forceinline__ void arrive_and_wait() const { arrive(), wait<N_CONSUMING>(); }
  /* Nobody reads a block's shared memory behind it. */
  __device__ __forceinline__ void leave() const {
    if (!is_alone()) cluster_leave();
  }
  /* Both, of warps that only copy. What they write and others read (marks) is ordered by the barriers of their own block's consumers. */
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
};

} // namespace ws
#endif
