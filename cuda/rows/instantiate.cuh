/* instantiate.cuh - the entry points of one type's rows, the tiled ones: the file that includes it
 * defines WS_CUDA_ROW_<letter> as WS_CUDA_ENTRIES_OF_ROW for its own letter, and then includes
 * instantiate_rows.cuh. An entry point is called <row's name>_queue, _clc, _foreach (its
 * scheduler), _split, or _split_clc (split products without memory for their sums), and is found by
 * that name. Those of Cluster Launch Control are made for devices that have it. Split products have
 * none over for-each: it would be a third of the image for what is seldom asked for, and gives the
 * blocks the same items as CLC. */
#include "cuda/kernels/gemm.cuh"
#include "cuda/kernels/split_k.cuh"
#include "cuda/mainloop/fma16.cuh"
#include "cuda/mainloop/mma.cuh"
#include "cuda/mainloop/mma16.cuh"
#include "cuda/mainloop/simt.cuh"
#include "cuda/rows/rows.h"
#include "cuda/sched/clc.cuh"
#include "cuda/sched/foreach.cuh"
#include "cuda/sched/queue.cuh"

namespace ws {

template <class Type, int BM, int BN, int BK, int TM, int TN, int COARSE, int STAGES>
using config_simt = row_config<Type, BM, BN, BK, TM, TN, COARSE, STAGES, WS_OWNER_simt, WS_PAD_simt, WS_KEEPS_K_simt>;
template <class Type, int BM, int BN, int BK, int TM, int TN, int COARSE, int STAGES>
using config_mma = row_config<Type, BM, BN, BK, TM, TN, COARSE, STAGES, WS_OWNER_mma, WS_PAD_mma, WS_KEEPS_K_mma>;
template <class Type, int BM, int BN, int BK, int TM, int TN, int COARSE, int STAGES>
using config_mma16 = row_config<Type, BM, BN, BK, TM, TN, COARSE, STAGES, WS_OWNER_mma16, WS_PAD_mma16, WS_KEEPS_K_mma16>;
template <class Type, int BM, int BN, int BK, int TM, int TN, int COARSE, int STAGES>
using config_fma16 = row_config<Type, BM, BN, BK, TM, TN, COARSE, STAGES, WS_OWNER_fma16, WS_PAD_fma16, WS_KEEPS_K_fma16>;
template <class Type, int BM, int BN, int BK, int TM, int TN, int COARSE, int STAGES>
using config_vec = row_config<Type, BM, BN, BK, TM, TN, COARSE, STAGES, WS_OWNER_vec, WS_PAD_vec, WS_KEEPS_K_vec>;

template <class Config> using product_simt = tiled_product<Config, mainloop_simt>;
template <class Config> using product_mma = tiled_product<Config, mainloop_mma>;
template <class Config> using product_mma16 = tiled_product<Config, mainloop_mma16>;
template <class Config> using product_fma16 = tiled_product<Config, mainloop_fma16>;
template <class Config> struct vector_product; /* gemm_vector.cuh */
template <class Config> using product_vec = vector_product<Config>;

} // namespace ws

/* `blocks` of kernels.def was tried and measured on cc 9.0; elsewhere the same code may need a few
 * registers more, and takes them. */
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ != 900
#define WS_CUDA_BLOCKS(blocks) 1
#else
#define WS_CUDA_BLOCKS(blocks) (blocks)
#endif

#define WS_CUDA_ENTRY(name, sched, blocks, mainloop, ...)                                                             \
  extern "C" __global__ void __launch_bounds__(ws::config_##mainloop<__VA_ARGS__>::n_threads, WS_CUDA_BLOCKS(blocks)) \
      name##_##sched(const __grid_constant__ ws_gemm_args args) {                                                     \
    using config = ws::config_##mainloop<__VA_ARGS__>;                                                                \
    static_assert(blocks * (config::shared_bytes + 1024) <= 228 * 1024, "the blocks fit (cc 9.0)");                   \
    ws::gemm<config, ws::product_##mainloop<config>, ws::sched_##sched>(args);                                        \
  }

#define WS_CUDA_SPLIT_ENTRY(name, suffix, sched, blocks, mainloop, ...)                                               \
  extern "C" __global__ void __launch_bounds__(ws::config_##mainloop<__VA_ARGS__>::n_threads, WS_CUDA_BLOCKS(blocks)) \
      name##_##suffix(const __grid_constant__ ws_gemm_args args) {                                                    \
    using config = ws::config_##mainloop<__VA_ARGS__>;                                                                \
    ws::split_gemm<config, ws::product_##mainloop<config>, ws::sched>(args);                                          \
  }

#define WS_CUDA_SPLIT_ENTRY_0(...)
#define WS_CUDA_SPLIT_ENTRY_1(name, ...) WS_CUDA_SPLIT_ENTRY(name, split, sched_fixed, __VA_ARGS__)

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 1000
#define WS_CUDA_SPLIT_CLC_ENTRY_0(...)
#define WS_CUDA_SPLIT_CLC_ENTRY_1(name, ...) WS_CUDA_SPLIT_ENTRY(name, split_clc, sched_clc, __VA_ARGS__)
#define WS_CUDA_CLC_ENTRIES(name, blocks, splits, mainloop, ...) \
  WS_CUDA_ENTRY(name, clc, blocks, mainloop, __VA_ARGS__)        \
  WS_CUDA_ENTRY(name, foreach, blocks, mainloop, __VA_ARGS__)    \
  WS_CUDA_SPLIT_CLC_ENTRY_##splits(name, blocks, mainloop, __VA_ARGS__)
#else
#define WS_CUDA_CLC_ENTRIES(...)
#endif

#define WS_CUDA_ENTRIES(name, blocks, splits, mainloop, ...)       \
  WS_CUDA_ENTRY(name, queue, blocks, mainloop, __VA_ARGS__)        \
  WS_CUDA_CLC_ENTRIES(name, blocks, splits, mainloop, __VA_ARGS__) \
  WS_CUDA_SPLIT_ENTRY_##splits(name, blocks, mainloop, __VA_ARGS__)

#define WS_CUDA_ENTRIES_OF_ROW(t, mainloop, bm, bn, bk, tm, tn, coarse, stages, blocks, splits, rate)                          \
  WS_CUDA_ENTRIES(t##gemm_##mainloop##_##bm##x##bn##x##bk##_c##coarse, blocks, splits, mainloop, ws::type_##t, bm, bn, bk, tm, \
                  tn, coarse, stages)
