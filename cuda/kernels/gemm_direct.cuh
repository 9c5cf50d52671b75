/* gemm_direct.cuh - small and flat products of 16-bit elements in one short launch (cc >= 9.0): the
 * direct rows of kernels.def.
 *
 * One item a block, or a cluster of blocks; operands of any alignment are read where they are
 * (direct_load.cuh), and multiplied by mma.sync. k goes in blocks of 16 to parts, in turn: part
 * rank * k_groups + g is a group of warps, which fills stages of its own, sums its blocks in one
 * chain and waits for no other group before the end:
 *
 *   k block        0   1   2   3   4   5   6   7   8 ..       2 blocks of 4 groups
 *   block, group  0,0 0,1 0,2 0,3 1,0 1,1 1,2 1,3 0,0
 *
 * Then the sums of a block's groups are added in their order, those of the cluster's blocks in
 * theirs, each block doing its share of the tile. So the order of summation follows from the row
 * and k; neither alignment nor layout changes it.
 *
 * Shared memory: of each group n_stages of A and B, and in their place at the end its sums.
 * Barriers: one a k block for a group of several warps, two of the block, two of the cluster. */
#ifndef WS_CUDA_GEMM_DIRECT_CUH
#define WS_CUDA_GEMM_DIRECT_CUH
#include "cuda/epilogue/epilogue.cuh"
#include "cuda/mainloop/direct_load.cuh"
#include "cuda/mainloop/mma16_fragments.cuh"
#include "cuda/ptx/cluster.cuh"
#include "cuda/ptx/tma.cuh"
#include "cuda/rows/direct_config.cuh"
#include "cuda/sched/fixed.cuh"

namespace ws {

/* A group's sums over its part of k. A_K, B_K: the operand is contiguous along k. */
template <class Config, bool A_K, bool B_K> struct direct_sums {
  using operand_a = direct_operand<Config, Config::bm, A_K>;
  using operand_b = direct_operand<Config, Config::bn, B_K>;
  static constexpr int pieces_m = Config::tm / 16, pieces_n = Config::tn / 16, warps_m = Config::bm / Config::tm;
  static constexpr int a_pitch = A_K ? Config::k_pitch : Config::bm + Config::pad,
                       b_pitch = B_K ? Config::k_pitch : Config::bn + Config::pad;

  float sum[pieces_n][pieces_m][2][4]; /* 2: the halves of 8 of a piece along m */

  static __device__ __forceinline__ int warp() { return int(threadIdx.x % uint32_t(Config::group_threads) / 32u); }
  static __device__ __forceinline__ int m_first() { return warp() % warps_m * Config::tm; }
  static __device__ __forceinline__ int n_first() { return warp() / warps_m * Config::tn; }

  /* All warps of the group; each group has a barrier of its own. */
  static __device__ __forceinline__ void group_sync() {
    if constexpr (Config::group_threads == 32)
      __syncwarp();
    else
      barrier_sync(1 + int(threadIdx.x / uint32_t(Config::group_threads)), Config::group_threads);
  }

  __device__ __forceinline__ void multiply(uint32_t stage) {
    const uint32_t a_row = stage + mma16_fragment<A_K>::own_row(m_first(), a_pitch),
                   b_row = stage + uint32_t(Config::a_elements * int(sizeof(uint16_t))) +
                           mma16_fragment<B_K>::own_row(n_first(), b_pitch);
#pragma unroll
    for (int k = 0; k < Config::bk; k += mma16_k) {
      uint32_t a[pieces_m][4], b[pieces_n][4];
#pragma unroll
      for (int i = 0; i < pieces_m; i++) mma16_fragment<A_K>::read(a[i], a_row + mma16_fragment<A_K>::offset(i * 16, k, a_pitch));
#pragma unroll
      for (int j = 0; j < pieces_n; j++) mma16_fragment<B_K>::read(b[j], b_row + mma16_fragment<B_K>::offset(j * 16, k, b_pitch));
#pragma unroll
      for (int j = 0; j < pieces_n; j++)
#pragma unroll
        for (int i = 0; i < pieces_m; i++)
#pragma unroll
          for (int half = 0; half < 2; half++) mma16<typename Config::type>(sum[j][i][half], b[j], a[i][half], a[i][half + 2]);
    }
  }

  /* part: of Config::n_parts; stages: the group's shared memory. In turn t the copies of block t are
   * begun and block t - (n_stages - 1) is multiplied: once in the code, which comes from memory, too. */
  __device__ __forceinline__ void run(const ws_gemm_args &args, int64_t batch, int64_t m_first, int64_t n_first, int part,
                                      uint32_t stages) {
    const operand_a a(args.a, batch, m_first, args.m);
    const operand_b b(args.b, batch, n_first, args.n);
    const int64_t size_k = args.k;
    constexpr int n_ahead = Config::n_stages - 1;
    constexpr int64_t step = int64_t(Config::n_parts) * Config::bk;
    float *all = &sum[0][0][0][0];
#pragma unroll
    for (int i = 0; i < int(sizeof sum / sizeof *all); i++) all[i] = 0;
    int64_t k_ahead = int64_t(part) * Config::bk, k = k_ahead - n_ahead * step; /* of the block to be copied, and multiplied */
    int ahead = 0, at = 1 - Config::n_stages;                                   /* their stages; at < 0: not yet */
#pragma unroll 1
    for (; k < size_k; k += step, k_ahead += step) {
      if (at >= 0) {
        cp_async_wait<Config::n_stages - 2>();
        group_sync(); /* the block has come, and everybody has read the one before, so that its stage can be filled */
      }
      if (k_ahead < size_k) {
        const uint32_t stage = stages + uint32_t(ahead * Config::stage_bytes);
        const int n = int(ws_min(Config::bk, size_k - k_ahead));
        a.load(stage, k_ahead, n), b.load(stage + a_bytes, k_ahead, n);
      }
      cp_async_commit(); /* an empty group too, so that their number tells which block has come */
      ahead = ahead == n_ahead ? 0 : ahead + 1;
      const int64_t k_next = k + step;
      const bool fetches = at >= -1 && k_next < size_k && a.how + b.how >= operand_a::SINGLES;
      const int n_next = int(ws_min(Config::bk, size_k - k_next)), next = at == n_ahead ? 0 : at + 1;
      typename operand_a::fetched fetched_a;
      typename operand_b::fetched fetched_b;
      if (fetches) a.fetch(fetched_a, k_next, n_next), b.fetch(fetched_b, k_next, n_next);
      if (at >= 0) multiply(stages + uint32_t(at * Config::stage_bytes));
      at = next;
      if (fetches) {
        const uint32_t stage = stages + uint32_t(next * Config::stage_bytes);
        a.put(fetched_a, stage), b.put(fetched_b, stage + a_bytes);
      }
    }
  }

  /* Where the group's stages were. */
  __device__ __forceinline__ void store(float *to) const {
    const int group = int(threadIdx.x % 32u / 4u), member = int(threadIdx.x % 4u);
#pragma unroll
    for (int j = 0; j < pieces_n; j++)
#pragma unroll
      for (int i = 0; i < pieces_m; i++)
#pragma unroll
        for (int half = 0; half < 2; half++)
#pragma unroll
          for (int r = 0; r < 2; r++) {
            const int n = n_first() + j * 16 + r * 8 + group, m = m_first() + i * 16 + half * 8 + 2 * member;
            const float(&from)[4] = sum[j][i][half];
            *reinterpret_cast<float2 *>(to + n * Config::sum_pitch + m) = {from[2 * r], from[2 * r + 1]};
          }
  }

private:
  static constexpr uint32_t a_bytes = uint32_t(Config::a_elements * int(sizeof(uint16_t)));
};

/* Sums: of a group, direct_sums or flat_sums. */
template <class Config, class Sums> struct direct_kernel {
  static constexpr int cluster = Config::cluster, bm = Config::bm, bn = Config::bn;
  const ws_gemm_args &args;
  unsigned char *shared;

  __device__ __forceinline__ void run() const {
    const sched_fixed_of<cluster> sched(args.sched);
    uint32_t item_idx = sched.first();
    sum(tile_at(item_idx));
    asm volatile("" : "+r"(item_idx)); /* found again: during the sums it would take six registers */
    finish(tile_at(item_idx));
  }
  /* Of a group, whose arguments its block has made; the tile is in shared memory. */
  __device__ __forceinline__ void run_tile(const ws_tile &tile) const { sum(tile), finish(tile); }

private:
  static __device__ __forceinline__ int rank() { return cluster > 1 ? int(cluster_rank()) : 0; }
  __device__ __forceinline__ float *sums_of(int group) const {
    return reinterpret_cast<float *>(shared + group * Config::group_bytes);
  }

  /* ws_tile_at where a swizzle group is all rows of tiles (ws_gpu_plan_grid), in few divisions. */
  __device__ __forceinline__ ws_tile tile_at(uint32_t item_idx) const {
    const uint32_t n_rows = uint32_t(args.grid.n_rows), n_cols = uint32_t(args.grid.n_cols);
    const uint32_t column = n_rows == 1 ? item_idx : item_idx / n_rows, batch = args.grid.n_batch == 1 ? 0 : column / n_cols;
    return {batch, item_idx - column * n_rows, column - batch * n_cols, 1};
  }

  __device__ __forceinline__ void sum(const ws_tile &tile) const {
    const int group = int(threadIdx.x / uint32_t(Config::group_threads));
    Sums s;
    s.run(args, tile.batch, tile.row * bm, tile.col * bn, rank() * Config::k_groups + group,
          shared_address(shared) + uint32_t(group * Config::group_bytes));
    Sums::group_sync(); /* nobody of the group reads a stage any more */
    s.store(sums_of(group));
  }

  /* The sum of the block's groups, WIDTH neighbours along a column. */
  template <int WIDTH> __device__ __forceinline__ void add_groups(int at, float (&x)[WIDTH]) const {
    load<WIDTH>(sums_of(0) + at, x);
#pragma unroll
    for (int g = 1; g < Config::k_groups; g++) {
      float part[WIDTH];
      load<WIDTH>(sums_of(g) + at, part);
#pragma unroll
      for (int e = 0; e < WIDTH; e++) x[e] += part[e];
    }
  }

  /* The sum of the cluster's blocks. */
  template <int WIDTH> __device__ __forceinline__ void add_blocks(int at, float (&x)[WIDTH]) const {
    const uint32_t from = shared_address(sums_of(0) + at);
    float part[cluster][WIDTH];
#pragma unroll
    for (int r = 0; r < cluster; r++) ld_shared_cluster(part[r], from, uint32_t(r));
#pragma unroll
    for (int e = 0; e < WIDTH; e++) {
      x[e] = part[0][e];
#pragma unroll
      for (int r = 1; r < cluster; r++) x[e] += part[r][e];
    }
  }

  template <int WIDTH> static __device__ __forceinline__ void load(const float *from, float (&x)[WIDTH]) {
    if constexpr (WIDTH == 4) {
      const float4 four = *reinterpret_cast<const float4 *>(from);
      x[0] = four.x, x[1] = four.y, x[2] = four.z, x[3] = four.w;
    } else if constexpr (WIDTH == 2) {
      const float2 two = *reinterpret_cast<const float2 *>(from);
      x[0] = two.x, x[1] = two.y;
    } else {
      x[0] = *from;
    }
  }

  /* From the groups' sums to C. */
  __device__ __forceinline__ void finish(const ws_tile &tile) const {
    __syncthreads();
    if constexpr (cluster > 1) {
      constexpr int length = 4;
#pragma unroll 1
      for (int at = int(threadIdx.x) * length; at < bm * bn && Config::k_groups > 1; at += Config::n_threads * length) {
        float x[length];
        const int where = at / bm * Config::sum_pitch + at % bm;
        add_groups<length>(where, x);
        *reinterpret_cast<float4 *>(sums_of(0) + where) = {x[0], x[1], x[2], x[3]};
      }
      cluster_sync();
    }
    const int64_t m_first = tile.row * bm, n_first = tile.col * bn;
    const int n_i = int(ws_min(bm, args.m - m_first)), n_j = int(ws_min(bn, args.n - n_first));
    if (args.epilogue.is_any)
      store<1>(tile.batch, m_first, n_first, n_i, n_j);
    else if (args.c_vectors && n_i % 4 == 0)
      store<4>(tile.batch, m_first, n_first, n_i, n_j);
    else
      store<2>(tile.batch, m_first, n_first, n_i, n_j);
    if constexpr (cluster > 1) {
      /* What is read of others has come, as it is in C; a block stays until all have come so far. */
      barrier_cluster_arrive_relaxed();
      barrier_cluster_wait();
    }
  }

  /* The block's share of the tile's columns, WIDTH neighbours of a column to a thread at a time; 1:
   * with the steps of the epilogue. n_i x n_j elements of the tile exist. */
  template <int WIDTH>
  __device__ __forceinline__ void store(int64_t batch, int64_t m_first, int64_t n_first, int n_i, int n_j) const {
    constexpr int columns = bn / cluster, along = bm / WIDTH, at_once = Config::n_threads / along;
    static_assert(bn % cluster == 0 && Config::n_threads % along == 0, "blocks share whole columns, and threads step over them");
    const scaling<Config> scale(args);
    const int i = int(threadIdx.x % uint32_t(along)) * WIDTH, j_first = rank() * columns,
              j_end = n_j < j_first + columns ? n_j : j_first + columns;
    int j = j_first + int(threadIdx.x / uint32_t(along));
    if (i >= n_i) return;
    half_c c = c_of<Config>(args) + (batch * args.stride_c + (n_first + j) * args.ldc + m_first + i);
#pragma unroll 1
    for (; j < j_end; j += at_once, c = c + at_once * args.ldc) {
      float x[WIDTH];
      if constexpr (cluster > 1)
        add_blocks<WIDTH>(j * Config::sum_pitch + i, x);
      else
        add_groups<WIDTH>(j * Config::sum_pitch + i, x);
      if constexpr (WIDTH == 1)
        finish_sum<Config>(args, scale, batch, m_first + i, n_first + j, x[0]);
      else if constexpr (WIDTH == 2)
        store_two(c, scale, x, i + 1 < n_i);
      else
        store_four(c, scale, x);
    }
  }

  /* Aligned together or not; the second may not exist. */
  static __device__ __forceinline__ void store_two(const half_c &c, const scaling<Config> &scale, const float (&x)[2],
                                                   bool has_two) {
    float old[2] = {};
    if (!scale.beta_zero) {
      old[0] = c.load();
      if (has_two) old[1] = (c + 1).load();
    }
    const float2 y = {scale(x[0], old[0]), scale(x[1], old[1])};
    const uintptr_t bytes = c.type == WS_HALF_C_F32 ? 8 : 4;
    if (has_two && (reinterpret_cast<uintptr_t>(c.at) & (bytes - 1)) == 0) {
      c.store_two(y);
    } else {
      c.store(y.x);
      if (has_two) (c + 1).store(y.y);
    }
  }

  static __device__ __forceinline__ void store_four(const half_c &c, const scaling<Config> &scale, const float (&x)[4]) {
    sum_vector<Config> y{};
    if (!scale.beta_zero) y = load_vector<Config>(c);
#pragma unroll
    for (int e = 0; e < 4; e++) y.e[e] = scale(x[e], y.e[e]);
    store_vector<Config>(c, y);
  }
};

} // namespace ws
#endif
