/* k_parts.cuh - how the blocks of a cluster share an item: each has consecutive stages of its k, and in the end consecutive
 * columns of C, for which it adds all blocks' sums in their order. How many blocks there are is the launch's business, not the
 * kernel's: one entry point does for all of them. */
#ifndef WS_CUDA_K_PARTS_CUH
#define WS_CUDA_K_PARTS_CUH
#include <cstdint>

#include "cuda/ptx/cluster.cuh"
#include "cuda/ptx/tma.cuh"

namespace ws {

/* Of a block: its stages, the columns that each block has, and how many blocks share the item. */
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

/* Blocks whose sums are asked for at the same time, of so many groups of warps each. */
__host__ __device__ constexpr int blocks_at_once(int k_groups) { return k_groups < 4 ? 4 : 2; }

} // namespace ws
#endif
