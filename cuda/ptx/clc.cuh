/* clc.cuh - barriers in shared memory, clusters, proxy fences and Cluster Launch Control (PTX ISA),
 * one instruction each.
 *
 * Nothing here decides anything: clc_protocol.cuh says who may call what, and when. ptxas refuses
 * an instruction that a target lacks. A "memory" clobber is where the compiler must not move
 * accesses across.
 * Compiled and model-checked, never run on hardware. */
#ifndef WS_CUDA_PTX_CLC_CUH
#define WS_CUDA_PTX_CLC_CUH
#include <cstdint>

#include "cuda/ptx/copy.cuh"

namespace ws {

/* ---- cc >= 9.0 ------------------------------------------------------------------------------- */

/* The threads among which a barrier orders memory: the block's (.cta) or the cluster's. */
enum class barrier_scope { cta, cluster };

/* %cluster_ctaid.x */
__device__ __forceinline__ uint32_t cluster_ctaid_x() {
  uint32_t x;
  asm("mov.u32 %0, %%cluster_ctaid.x;" : "=r"(x));
  return x;
}

/* barrier.cluster.arrive, barrier.cluster.wait: all threads of the cluster that have not exited. */
__device__ __forceinline__ void barrier_cluster_sync() {
  asm volatile("barrier.cluster.arrive.release;\n\tbarrier.cluster.wait.acquire;" ::: "memory");
}

/* mbarrier.init */
__device__ __forceinline__ void mbarrier_init(uint64_t *barrier, uint32_t n_arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(shared_address(barrier)), "r"(n_arrivals) : "memory");
}

/* fence.mbarrier_init */
__device__ __forceinline__ void fence_mbarrier_init_release() {
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}

/* mbarrier.arrive.expect_tx; relaxed: orders no other access of the arriving thread. */
template <barrier_scope SCOPE>
__device__ __forceinline__ void mbarrier_arrive_expect_tx_relaxed(uint64_t *barrier, uint32_t n_bytes) {
  const uint32_t at = shared_address(barrier);
  if constexpr (SCOPE == barrier_scope::cluster)
    asm volatile("mbarrier.arrive.expect_tx.relaxed.cluster.shared::cta.b64 _, [%0], %1;" ::"r"(at), "r"(n_bytes) : "memory");
  else
    asm volatile("mbarrier.arrive.expect_tx.relaxed.cta.shared::cta.b64 _, [%0], %1;" ::"r"(at), "r"(n_bytes) : "memory");
}

/* mbarrier.try_wait.parity: whether the phase of that parity has completed; may wait a while before
 * it says no. */
template <barrier_scope SCOPE>
__device__ __forceinline__ bool mbarrier_try_wait_parity_acquire(uint64_t *barrier, uint32_t parity) {
  const uint32_t at = shared_address(barrier);
  uint32_t is_complete;
  if constexpr (SCOPE == barrier_scope::cluster)
    asm volatile("{\n\t.reg .pred p;\n\t"
                 "mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 p, [%1], %2;\n\t"
                 "selp.u32 %0, 1, 0, p;\n\t}"
                 : "=r"(is_complete)
                 : "r"(at), "r"(parity)
                 : "memory");
  else
    asm volatile("{\n\t.reg .pred p;\n\t"
                 "mbarrier.try_wait.parity.acquire.cta.shared::cta.b64 p, [%1], %2;\n\t"
                 "selp.u32 %0, 1, 0, p;\n\t}"
                 : "=r"(is_complete)
                 : "r"(at), "r"(parity)
                 : "memory");
  return is_complete != 0;
}

/* fence.proxy.async::generic, acquire: what was released to the asynchronous proxy comes before
 * this thread's later requests to it. */
__device__ __forceinline__ void fence_proxy_async_generic_acquire() {
  asm volatile("fence.proxy.async::generic.acquire.sync_restrict::shared::cluster.cluster;" ::: "memory");
}

/* fence.proxy.async::generic, release: this thread's accesses to its block's shared memory so far,
 * released to that proxy. */
__device__ __forceinline__ void fence_proxy_async_generic_release() {
  asm volatile("fence.proxy.async::generic.release.sync_restrict::shared::cta.cluster;" ::: "memory");
}

/* ---- cc >= 10.0; multicast: targets named with a or f (sm_100a, sm_120f ..) ------------------ */

/* What a request writes: opaque. */
struct alignas(16) clc_result {
  uint64_t lo, hi;
};

/* clusterlaunchcontrol.try_cancel. One thread calls it; elect.sync (of that one) shows ptxas that
 * it is uniform, which spares a loop over the warp. */
__device__ __forceinline__ void clusterlaunchcontrol_try_cancel(clc_result *result, uint64_t *barrier) {
  const uint32_t result_at = shared_address(result), barrier_at = shared_address(barrier), mask = __activemask();
  asm volatile("{\n\t.reg .pred p;\n\telect.sync _|p, %2;\n\t"
               "@p clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes.b128 [%0], [%1];\n\t}"
               :
               : "r"(result_at), "r"(barrier_at), "r"(mask)
               : "memory");
}

/* The same with .multicast::cluster::all: to the same place of every block of the cluster, each
 * completing its own barrier. */
__device__ __forceinline__ void clusterlaunchcontrol_try_cancel_multicast(clc_result *result, uint64_t *barrier) {
  const uint32_t result_at = shared_address(result), barrier_at = shared_address(barrier), mask = __activemask();
  asm volatile("{\n\t.reg .pred p;\n\telect.sync _|p, %2;\n\t"
               "@p clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes.multicast::cluster::all.b128 "
               "[%0], [%1];\n\t}"
               :
               : "r"(result_at), "r"(barrier_at), "r"(mask)
               : "memory");
}

/* clusterlaunchcontrol.query_cancel.is_canceled */
__device__ __forceinline__ bool clusterlaunchcontrol_query_cancel_is_canceled(clc_result result) {
  uint32_t is_canceled;
  asm volatile("{\n\t.reg .pred p;\n\t.reg .b128 r;\n\t"
               "mov.b128 r, {%1, %2};\n\t"
               "clusterlaunchcontrol.query_cancel.is_canceled.pred.b128 p, r;\n\t"
               "selp.u32 %0, 1, 0, p;\n\t}"
               : "=r"(is_canceled)
               : "l"(result.lo), "l"(result.hi));
  return is_canceled != 0;
}

/* clusterlaunchcontrol.query_cancel.get_first_ctaid, x. Volatile: undefined for a refusal, so never
 * before the question. */
__device__ __forceinline__ uint32_t clusterlaunchcontrol_query_cancel_get_first_ctaid_x(clc_result result) {
  uint32_t x;
  asm volatile("{\n\t.reg .b128 r;\n\t"
               "mov.b128 r, {%1, %2};\n\t"
               "clusterlaunchcontrol.query_cancel.get_first_ctaid::x.b32.b128 %0, r;\n\t}"
               : "=r"(x)
               : "l"(result.lo), "l"(result.hi));
  return x;
}

} // namespace ws
#endif
