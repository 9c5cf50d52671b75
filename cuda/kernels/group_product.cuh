/* group_product.cuh - finds which product a block of a kernel of groups has, and makes the arguments of
 * just that product in shared memory; the block then is one of the kernel of its row, which knows of no
 * groups. So sizes and places may be in device memory, and no host waits for them.
 *
 *   groups    0      1    2 (empty)    3                  a block, or a cluster, for each tile of each group, in this
 *   tiles     0 1 2  3 4               5 6 7 8            order: the block's threads add up the tiles of
 *   block     0 1 2  3 4               5 6 7 8   9 ..     groups, and blocks behind the last tile end
 *
 * Where all groups have as many tiles nothing is added up. A group is skipped whose sizes are not within those
 * that the host knows, or whose leading dimensions are too small. Of k = 0 C = beta C. Every element has one
 * owner and the row's order of summation. */
#ifndef WS_CUDA_GROUP_PRODUCT_CUH
#define WS_CUDA_GROUP_PRODUCT_CUH
#include "cuda/kernels/item_place.cuh"
#include "cuda/sched/fixed.cuh"
#include "cuda/shared/group_args.h"
#include "cuda/shared/grouped_args.h"

namespace ws {

/* A row's, of groups. */
template <class RowConfig> struct groups_config : RowConfig { static constexpr bool of_groups = true; };

/* Of one group. begin: of ragged ones. */
struct group_sizes {
  int64_t m, n, k, begin;
};

/* In shared memory. */
struct group_product {
  ws_gemm_args gemm;
  ws_tile tile;
  item_place item;
  group_sizes sizes;
  int group;         /* -1: the block has none */
  uint32_t in_group; /* number of the tile */
  uint32_t rank;     /* of the block, of those that share the tile */
  bool is_good[4];   /* each part of the arguments */
  uint32_t of_warps[32];
};

/* Config: of the row. */
template <class Config> class group_finder {
  static constexpr int bm = Config::bm, bn = Config::bn;
  static constexpr int of_m = 1, of_n = 2, of_k = 3, swizzle = 8, n_parts = 4; /* wsgemm_ragged; rows of tiles */

  const ws_group_args &args;
  const ws_grouped_ends &given;

  __device__ __forceinline__ int64_t number_at(const void *array, int group, int64_t otherwise) const {
    if (!array) return otherwise;
    return args.index_bytes == 8 ? static_cast<const int64_t *>(array)[group] : static_cast<const int32_t *>(array)[group];
  }
  __device__ __forceinline__ int64_t end_of(int group) const {
    if (group < 0) return 0;
    return args.ends ? number_at(args.ends, group, 0) : given.end[group];
  }

  /* Whether it is a product. */
  __device__ __forceinline__ bool look_up(int group, group_sizes &s) const {
    const ws_gemm_args &common = args.common.gemm;
    s = {number_at(args.m, group, common.m), number_at(args.n, group, common.n), number_at(args.k, group, common.k), 0};
    if (args.ragged != 0) {
      const int64_t total = args.ragged == of_m ? common.m : args.ragged == of_n ? common.n : common.k, end = end_of(group);
      s.begin = end_of(group - 1);
      if (s.begin < 0 || s.begin > end || end > total) return false;
      const int64_t length = end - s.begin;
      if (args.ragged == of_m) s.m = length;
      if (args.ragged == of_n) s.n = length;
      if (args.ragged == of_k) s.k = length;
    }
    const auto is_in = [](int64_t size, int64_t most) { return size >= 0 && size <= most; };
    const bool is_good = is_in(s.m, common.m) && is_in(s.n, common.n) && is_in(s.k, common.k);
    if (!args.reads_operands) s.k = 0;
    return is_good;
  }

  static __device__ __forceinline__ uint32_t rows_of(const group_sizes &s) { return (uint32_t(s.m) + bm - 1) / bm; }
  static __device__ __forceinline__ uint32_t cols_of(const group_sizes &s) { return (uint32_t(s.n) + bn - 1) / bn; }

  /* By all threads of the block; the one of the group notes it. */
  __device__ __forceinline__ void search(group_product &p, uint32_t item) const {
    const int lane = int(threadIdx.x % 32), warp = int(threadIdx.x / 32), n_warps = int(blockDim.x / 32);
    uint32_t before = 0;
#pragma unroll 1
    for (int first = 0; first < args.n_groups && item >= before; first += int(blockDim.x)) {
      const int group = first + int(threadIdx.x);
      group_sizes s = {};
      const uint32_t mine = group < args.n_groups && look_up(group, s) ? rows_of(s) * cols_of(s) : 0;
      uint32_t sum = mine;
#pragma unroll
      for (int d = 1; d < 32; d *= 2) {
        const uint32_t other = __shfl_up_sync(~0u, sum, d);
        if (lane >= d) sum += other;
      }
      if (lane == 31) p.of_warps[warp] = sum;
      __syncthreads();
      uint32_t begin = before + sum - mine;
#pragma unroll 1
      for (int w = 0; w < n_warps; w++) {
        const uint32_t of_warp = p.of_warps[w];
        if (w < warp) begin += of_warp;
        before += of_warp;
      }
      if (item - begin < mine) p.group = group, p.in_group = item - begin, p.sizes = s; /* of no sign */
      __syncthreads();
    }
  }

  /* shift: elements from the matrix's beginning to the group's part of it. */
  static __device__ __forceinline__ const char *place_of(const ws_group_matrix &x, int group, int64_t shift) {
    const char *const at =
        x.array ? static_cast<const char *>(x.array[group]) : static_cast<const char *>(x.data) + group * x.stride * x.bytes;
    return at + shift * x.bytes;
  }
  /* Whether pointer and lines are multiples of so many bytes. */
  static __device__ __forceinline__ bool is_whole(const void *data, int64_t ld, int element_bytes, int bytes) {
    return ((reinterpret_cast<uintptr_t>(data) | uintptr_t(ld * element_bytes)) & uintptr_t(bytes - 1)) == 0;
  }

  /* Of size x k, x along m or n; false: lines are too short. */
  __device__ __forceinline__ bool set_operand(ws_operand &op, const ws_group_matrix &x, int group, int64_t size, int64_t k,
                                              bool is_ragged, int64_t begin) const {
    const int64_t ld = number_at(x.ld_array, group, x.ld), first = args.ragged == of_k || is_ragged ? begin : 0;
    const bool goes_by_lines = (x.along_k != 0) == (args.ragged != of_k);
    op.data = place_of(x, group, first * (goes_by_lines ? ld : 1));
    op.step_mn = x.along_k ? ld : 1, op.step_k = x.along_k ? 1 : ld, op.stride = 0;
    const bool is_vectors = is_whole(op.data, ld, x.bytes, 16);
    op.mode = x.along_k ? (is_vectors ? WS_COPY_VECTORS_K : WS_COPY_ALONG_K) : is_vectors ? WS_COPY_VECTORS_MN : WS_COPY_ALONG_MN;
    op.whole_elements = is_whole(op.data, ld, x.bytes, x.bytes), op.pairs = is_whole(op.data, ld, x.bytes, 4);
    return ld >= (x.along_k ? k : size);
  }

  __device__ __forceinline__ void set_epilogue(ws_epilogue_args &e, int group, int64_t begin) const {
    const bool is_of_m = args.ragged == of_m, is_one_c = is_of_m || args.ragged == of_n;
    const int64_t bias = group * e.stride_bias + (is_one_c && (e.bias_per_row != 0) == is_of_m ? begin : 0);
    const int64_t residual = !is_one_c ? group * e.stride_residual : is_of_m ? begin : begin * e.ld_residual;
    if (e.bias) e.bias = static_cast<const char *>(e.bias) + bias * args.bias_bytes;
    if (e.residual) e.residual = static_cast<const char *>(e.residual) + residual * args.c.bytes;
    e.stride_bias = e.stride_residual = 0;
  }

  /* An alpha by which a sum of nothing changes nothing: -0 + beta C is beta C, and 1 * 0 is 0. */
  static __device__ __forceinline__ void set_alpha_of_nothing(ws_gemm_args &gemm) {
    const float alpha = gemm.beta_zero ? 1.0f : -0.0f;
    if constexpr (sizeof(typename Config::real) == 8)
      gemm.alpha.d[0] = double(alpha), gemm.alpha.d[1] = 0;
    else
      gemm.alpha.s[0] = alpha, gemm.alpha.s[1] = 0;
  }

  /* Scalars in device memory. */
  __device__ __forceinline__ bool is_alpha_zero() const {
    const typename Config::real *const alpha = static_cast<const typename Config::real *>(args.alpha);
    return alpha[0] == 0 && alpha[Config::unit - 1] == 0;
  }
  __device__ __forceinline__ void set_scalars(ws_gemm_args &gemm) const {
    using real = typename Config::real;
    const real *const alpha = static_cast<const real *>(args.alpha), *const beta = static_cast<const real *>(args.beta);
    real scalars[2][2] = {};
#pragma unroll
    for (int u = 0; u < Config::unit; u++) scalars[0][u] = alpha[u], scalars[1][u] = beta[u];
#pragma unroll
    for (int u = 0; u < 2; u++)
      if constexpr (sizeof(real) == 8)
        gemm.alpha.d[u] = scalars[0][u], gemm.beta.d[u] = scalars[1][u];
      else
        gemm.alpha.s[u] = scalars[0][u], gemm.beta.s[u] = scalars[1][u];
    gemm.beta_zero = scalars[1][0] == 0 && scalars[1][1] == 0;
  }

  __device__ __forceinline__ bool set_c(group_product &p, int group, const group_sizes &s) const {
    ws_gemm_args &gemm = p.gemm;
    const bool is_of_m = args.ragged == of_m, is_of_n = args.ragged == of_n;
    gemm.m = s.m, gemm.n = s.n, gemm.k = s.k;
    gemm.ldc = number_at(args.c.ld_array, group, args.c.ld), gemm.stride_c = 0;
    gemm.c = const_cast<char *>(place_of(args.c, group, is_of_m ? s.begin : is_of_n ? s.begin * gemm.ldc : 0));
    gemm.c_vectors = is_whole(gemm.c, gemm.ldc, args.c.bytes, 16);
    if (gemm.epilogue.is_any) set_epilogue(gemm.epilogue, group, s.begin);
    if (args.alpha) set_scalars(gemm);
    if (s.k == 0) set_alpha_of_nothing(gemm);
    const bool has_residual = !gemm.epilogue.is_any || !gemm.epilogue.residual || gemm.epilogue.ld_residual >= s.m;
    return gemm.ldc >= s.m && has_residual;
  }

  __device__ __forceinline__ void set_place(group_product &p, uint32_t in_group, const group_sizes &s, uint32_t rank) const {
    const ws_tile_grid grid = {1, rows_of(s), cols_of(s), 1, swizzle};
    p.rank = rank;
    p.tile = ws_tile_at_32(&grid, in_group);
    p.item = {0, int(p.tile.row) * bm, int(p.tile.col) * bn, 0, int(s.k), true};
  }

  /* A part of the arguments; four warps make one each, as a thread alone would take a microsecond. Whether it makes sense. */
  __device__ __forceinline__ bool make(int part, group_product &p, int group, uint32_t in_group, const group_sizes &s,
                                       uint32_t rank) const {
    switch (part) {
    case 0:
      return set_operand(p.gemm.a, args.a, group, s.m, s.k, args.ragged == of_m, s.begin) || s.k == 0;
    case 1:
      return set_operand(p.gemm.b, args.b, group, s.n, s.k, args.ragged == of_n, s.begin) || s.k == 0;
    case 2:
      return set_c(p, group, s);
    default:
      set_place(p, in_group, s, rank);
      return true;
    }
  }

public:
  __device__ __forceinline__ group_finder(const ws_group_args &group_args, const ws_grouped_ends &ends)
      : args(group_args), given(ends) {}

  /* By all threads of the block, of at least four warps. Whether it has a product. */
  __device__ __forceinline__ bool find(group_product &p) const {
    const worker_block block = worker_block_of(args.common.gemm.sharers);
    const uint32_t *const from = reinterpret_cast<const uint32_t *>(&args.common.gemm);
    uint32_t *const to = reinterpret_cast<uint32_t *>(&p.gemm);
    for (int i = int(threadIdx.x); i < int(sizeof p.gemm / 4); i += int(blockDim.x)) to[i] = from[i];
    int group = -1;
    uint32_t in_group = 0;
    group_sizes s = {};
    if (args.product_tiles.d == 0) {
      if (threadIdx.x == 0) p.group = -1;
      search(p, block.worker);
      group = p.group, in_group = p.in_group, s = p.sizes;
    } else {
      const int of_block = int(ws_divide(block.worker, &args.product_tiles));
      if (of_block < args.n_groups && look_up(of_block, s))
        group = of_block, in_group = block.worker - uint32_t(of_block) * args.product_tiles.d;
      if (threadIdx.x == 0) p.group = group;
      __syncthreads(); /* all of what they share is there */
    }
    if (group < 0) return false;
    if (args.alpha && is_alpha_zero()) s.k = 0;
    const int part = int(threadIdx.x / 32);
    if (part < n_parts && threadIdx.x % 32 == 0) p.is_good[part] = make(part, p, group, in_group, s, block.rank);
    __syncthreads();
    bool is_good = true;
#pragma unroll
    for (int i = 0; i < n_parts; i++) is_good &= p.is_good[i];
    return is_good;
  }
};

} // namespace ws
#endif
