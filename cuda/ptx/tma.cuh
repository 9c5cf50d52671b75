/* tma.cuh - TMA between global and shared memory by tensor maps (PTX ISA: cp.async.bulk.tensor, cc
 * >= 9.0), and the barriers in shared memory that tell of its copies. One instruction each, named
 * as in the manual. */
#ifndef WS_CUDA_PTX_TMA_CUH
#define WS_CUDA_PTX_TMA_CUH
#include <cstdint>

#include "cuda/ptx/clc.cuh"
#include "cuda/ptx/copy.cuh"

namespace ws {

/* mbarrier.arrive, release: what this thread did before is seen by those that wait for the
 * phase. */
__device__ __forceinline__ void mbarrier_arrive(uint32_t barrier) {
  asm volatile("mbarrier.arrive.release.cta.shared::cta.b64 _, [%0];" ::"r"(barrier) : "memory");
}

/* The same at a barrier in the shared memory of a block of the cluster (mapa), for its threads. By
 * a fence that orders accesses to shared memory only: of an arrive.release.cluster nvcc 13.0 makes
 * a MEMBAR.ALL.GPU, which waits for global memory, too. */
__device__ __forceinline__ void mbarrier_arrive_at(uint32_t barrier, uint32_t rank) {
  asm volatile("{\n\t.reg .b32 there;\n\t"
               "mapa.shared::cluster.u32 there, %0, %1;\n\t"
               "fence.release.sync_restrict::shared::cta.cluster;\n\t"
               "mbarrier.arrive.relaxed.cluster.shared::cluster.b64 _, [there];\n\t}" ::"r"(barrier),
               "r"(rank)
               : "memory");
}

/* mbarrier.arrive.expect_tx: and the phase also waits for so many bytes. */
__device__ __forceinline__ void mbarrier_arrive_expect_tx(uint32_t barrier, uint32_t n_bytes) {
  asm volatile("mbarrier.arrive.expect_tx.release.cta.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(n_bytes) : "memory");
}

/* mbarrier.try_wait.parity, acquire, until the phase of that parity is complete. cluster: also by
 * another block's arrivals and copies; then of accesses to shared memory only (acquire.cluster
 * would empty the L1 each time). */
template <barrier_scope SCOPE> __device__ __forceinline__ void mbarrier_wait(uint32_t barrier, uint32_t parity) {
  if constexpr (SCOPE == barrier_scope::cluster)
    asm volatile("{\n\t.reg .pred p;\n"
                 "again:\n\t"
                 "mbarrier.try_wait.parity.relaxed.cluster.shared::cta.b64 p, [%0], %1;\n\t"
                 "@!p bra again;\n\t"
                 "fence.acquire.sync_restrict::shared::cluster.cluster;\n\t}" ::"r"(barrier),
                 "r"(parity)
                 : "memory");
  else
    asm volatile("{\n\t.reg .pred p;\n"
                 "again:\n\t"
                 "mbarrier.try_wait.parity.acquire.cta.shared::cta.b64 p, [%0], %1;\n\t"
                 "@!p bra again;\n\t}" ::"r"(barrier),
                 "r"(parity)
                 : "memory");
}

/* st.async of 16 bytes to the shared memory of a block of the cluster; completes as many on its
 * barrier. */
#define WS_ST_ASYNC_16(type, constraint)                                                                                      \
  __device__ __forceinline__ void st_async_16(uint32_t to, const type(&x)[4], uint32_t barrier, uint32_t rank) {              \
    asm volatile(                                                                                                             \
        "{\n\t.reg .b32 there, barrier;\n\t"                                                                                  \
        "mapa.shared::cluster.u32 there, %0, %6;\n\t"                                                                         \
        "mapa.shared::cluster.u32 barrier, %5, %6;\n\t"                                                                       \
        "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v4.b32 [there], {%1, %2, %3, %4}, [barrier];\n\t}" ::"r"( \
            to),                                                                                                              \
        constraint(x[0]), constraint(x[1]), constraint(x[2]), constraint(x[3]), "r"(barrier), "r"(rank)                       \
        : "memory");                                                                                                          \
  }
WS_ST_ASYNC_16(int, "r")
WS_ST_ASYNC_16(float, "f")

/* barrier.cluster: all threads of the cluster's blocks meet, and see what the others did before. */
__device__ __forceinline__ void cluster_sync() {
  asm volatile("barrier.cluster.arrive.release;\n\tbarrier.cluster.wait.acquire;" ::: "memory");
}

/* %cluster_ctarank */
__device__ __forceinline__ uint32_t cluster_rank() {
  uint32_t rank;
  asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  return rank;
}

/* prefetch.tensormap */
__device__ __forceinline__ void prefetch_tensormap(const void *map) {
  asm volatile("prefetch.tensormap [%0];" ::"l"(uint64_t(map)) : "memory");
}

/* cp.async.bulk.tensor.3d to shared memory: the map's box at (x, y, z), zeros where the tensor
 * ends; completes bytes on the barrier. */
__device__ __forceinline__ void cp_async_bulk_tensor_load(uint32_t to, const void *map, int x, int y, int z, uint32_t barrier) {
  asm volatile(
      "cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3, %4}], [%5];" ::"r"(
          to),
      "l"(uint64_t(map)), "r"(x), "r"(y), "r"(z), "r"(barrier)
      : "memory");
}

/* The same into every block of the cluster whose bit is set, to the same place, completing on the
 * same barrier of each. */
__device__ __forceinline__ void cp_async_bulk_tensor_multicast(uint32_t to, const void *map, int x, int y, int z,
                                                               uint32_t barrier, uint16_t blocks) {
  asm volatile("cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster "
               "[%0], [%1, {%2, %3, %4}], [%5], %6;" ::"r"(to),
               "l"(uint64_t(map)), "r"(x), "r"(y), "r"(z), "r"(barrier), "h"(blocks)
               : "memory");
}

/* cp.async.bulk.tensor.3d from shared memory: what of the box lies in the tensor. */
__device__ __forceinline__ void cp_async_bulk_tensor_store(const void *map, int x, int y, int z, uint32_t from) {
  asm volatile("cp.async.bulk.tensor.3d.global.shared::cta.tile.bulk_group [%0, {%1, %2, %3}], [%4];" ::"l"(uint64_t(map)),
               "r"(x), "r"(y), "r"(z), "r"(from)
               : "memory");
}

/* cp.async.bulk.commit_group: this thread's stores since the last are a group. */
__device__ __forceinline__ void cp_async_bulk_commit_group() { asm volatile("cp.async.bulk.commit_group;" ::: "memory"); }

/* cp.async.bulk.wait_group.read: all but the newest N groups of this thread have read shared
 * memory. */
template <int N> __device__ __forceinline__ void cp_async_bulk_wait_group_read() {
  asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(N) : "memory");
}

/* cp.async.bulk.wait_group: and are complete. */
template <int N> __device__ __forceinline__ void cp_async_bulk_wait_group() {
  asm volatile("cp.async.bulk.wait_group %0;" ::"n"(N) : "memory");
}

/* fence.proxy.async: this thread's accesses to shared memory so far come before those of TMA that
 * follow. */
__device__ __forceinline__ void fence_proxy_async_shared() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }

/* barrier.sync of n_threads threads (a multiple of 32), by a number 0 .. 15; __syncthreads is
 * number 0. */
__device__ __forceinline__ void barrier_sync(int number, int n_threads) {
  asm volatile("barrier.sync %0, %1;" ::"r"(number), "r"(n_threads) : "memory");
}

/* barrier.arrive: the others need not be waited for. */
__device__ __forceinline__ void barrier_arrive(int number, int n_threads) {
  asm volatile("barrier.arrive %0, %1;" ::"r"(number), "r"(n_threads) : "memory");
}

/* elect.sync, of a whole warp: true in one thread. The compiler knows that it is one, and makes one
 * instruction of each copy by TMA. */
__device__ __forceinline__ bool elect_one() {
  uint32_t is_elected;
  asm volatile("{\n\t.reg .pred p;\n\telect.sync _|p, 0xffffffff;\n\tselp.u32 %0, 1, 0, p;\n\t}" : "=r"(is_elected));
  return is_elected != 0;
}

/* prefetch.global.L2 */
__device__ __forceinline__ void prefetch_l2(const void *global) { asm volatile("prefetch.global.L2 [%0];" ::"l"(global)); }

/* st.shared.f32, ld.shared.f32, ld.shared.v2.f32 */
__device__ __forceinline__ void st_shared(uint32_t to, float x) {
  asm volatile("st.shared.f32 [%0], %1;" ::"r"(to), "f"(x) : "memory");
}
__device__ __forceinline__ float ld_shared(uint32_t from) {
  float x;
  asm volatile("ld.shared.f32 %0, [%1];" : "=f"(x) : "r"(from) : "memory");
  return x;
}
__device__ __forceinline__ void ld_shared_two(float (&x)[2], uint32_t from) {
  asm volatile("ld.shared.v2.f32 {%0, %1}, [%2];" : "=f"(x[0]), "=f"(x[1]) : "r"(from) : "memory");
}

/* ld.shared.v4.f32 */
__device__ __forceinline__ void ld_shared_four(float (&x)[4], uint32_t from) {
  asm volatile("ld.shared.v4.f32 {%0, %1, %2, %3}, [%4];"
               : "=f"(x[0]), "=f"(x[1]), "=f"(x[2]), "=f"(x[3])
               : "r"(from)
               : "memory");
}

/* st.shared.v4.f32 */
__device__ __forceinline__ void st_shared_four(uint32_t to, const float (&x)[4]) {
  asm volatile("st.shared.v4.f32 [%0], {%1, %2, %3, %4};" ::"r"(to), "f"(x[0]), "f"(x[1]), "f"(x[2]), "f"(x[3]) : "memory");
}

/* ld.shared.b32 */
__device__ __forceinline__ uint32_t ld_shared_32(uint32_t from) {
  uint32_t x;
  asm volatile("ld.shared.b32 %0, [%1];" : "=r"(x) : "r"(from) : "memory");
  return x;
}

/* st.shared.b8 */
__device__ __forceinline__ void st_shared_byte(uint32_t to, uint32_t x) {
  asm volatile("st.shared.b8 [%0], %1;" ::"r"(to), "r"(x) : "memory");
}

/* stmatrix.x4: four 8 x 8 matrices of 16-bit elements; lane l gives the address of row l % 8 of
 * matrix l / 8, and holds of matrix i in x[i] the elements 2 (l % 4) and the next of row l / 4. */
__device__ __forceinline__ void stmatrix_x4(uint32_t row, const uint32_t (&x)[4]) {
  asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(row), "r"(x[0]), "r"(x[1]), "r"(x[2]),
               "r"(x[3])
               : "memory");
}

/* stmatrix.x4.trans: the same with each matrix's rows and columns exchanged: the lane holds of matrix
 * i in x[i] the elements 2 (l % 4) and the next of column l / 4. */
__device__ __forceinline__ void stmatrix_x4_trans(uint32_t row, const uint32_t (&x)[4]) {
  asm volatile("stmatrix.sync.aligned.m8n8.x4.trans.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(row), "r"(x[0]), "r"(x[1]),
               "r"(x[2]), "r"(x[3])
               : "memory");
}

/* stmatrix.x2.trans: two of them, whose addresses lanes 0 to 15 give. */
__device__ __forceinline__ void stmatrix_x2_trans(uint32_t row, const uint32_t (&x)[2]) {
  asm volatile("stmatrix.sync.aligned.m8n8.x2.trans.shared.b16 [%0], {%1, %2};" ::"r"(row), "r"(x[0]), "r"(x[1]) : "memory");
}

} // namespace ws
#endif
