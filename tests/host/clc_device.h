/* clc_device.h - the words of CUDA and the functions of cuda/ptx/clc.cuh over the simulated device
 * of clc_machine.h, so that the adapters cuda/sched/clc.cuh and foreach.cuh are compiled for the
 * host and run there, line by line as they are.
 *
 * A __shared__ variable is one object for all blocks: the device keeps what each block has there,
 * and knows it by its address. The library's cuda::for_each_canceled_block is written from what its
 * documentation promises, and promises no more: so threads may enter body again while others have
 * not left it. To be included before the adapters. Compiled and model-checked, never run on
 * hardware. */
#ifndef WSGEMM_TESTS_CLC_DEVICE_H
#define WSGEMM_TESTS_CLC_DEVICE_H
#include <cstdlib>

#include "clc_machine.h"
#include "cuda/sched/clc_protocol.cuh"
#include "cuda/sched/sched.h"

namespace clc_machine {

inline machine *device; /* whose threads run */
inline int running_thread() { return device->running(); }

struct host_index {
  unsigned x;
};
inline host_index thread_index() { return {unsigned(device->thread_rank(running_thread()))}; }
inline host_index block_index() { return {unsigned(device->ctaid(running_thread()))}; }

} // namespace clc_machine

#define __device__
#define __forceinline__ inline
#define __shared__ static
#define __CUDA_ARCH__ 1000
#define __CUDA_ARCH_FAMILY_SPECIFIC__ 1000
#define threadIdx clc_machine::thread_index()
#define blockIdx clc_machine::block_index()

inline void __syncthreads() {
  const int t = clc_machine::running_thread();
  clc_machine::device->sync(t, clc_machine::device->block_rank(t));
}

/* ---- cuda/ptx/clc.cuh ------------------------------------------------------------------------ */

#define WS_CUDA_PTX_CLC_CUH
namespace ws {

using clc_machine::device, clc_machine::running_thread;

enum class barrier_scope { cta, cluster };

inline uint32_t cluster_ctaid_x() { return uint32_t(device->block_rank(running_thread())); }
inline void barrier_cluster_sync() { device->sync(running_thread(), clc_machine::machine::of_cluster); }
inline void mbarrier_init(uint64_t *barrier, uint32_t n_arrivals) { device->init_barrier(running_thread(), n_arrivals, barrier); }
inline void fence_mbarrier_init_release() { device->release_barrier_init(running_thread()); }
template <barrier_scope> void mbarrier_arrive_expect_tx_relaxed(uint64_t *barrier, uint32_t n_bytes) {
  device->arrive_expect_tx(running_thread(), n_bytes, barrier);
}
template <barrier_scope SCOPE> bool mbarrier_try_wait_parity_acquire(uint64_t *barrier, uint32_t parity) {
  return device->try_wait(running_thread(), parity, SCOPE == barrier_scope::cluster, barrier);
}
inline void fence_proxy_async_generic_acquire() { device->acquire_result_reads(running_thread()); }
inline void fence_proxy_async_generic_release() { device->release_result_reads(running_thread()); }

/* One that is made from nothing stands in shared memory: a copy of it is a read there. */
struct clc_result {
  clc_machine::result value{};
  const bool is_shared = true;
  clc_result() = default;
  clc_result(const clc_result &from)
      : value(from.is_shared ? device->read_result(running_thread(), &from) : from.value), is_shared(false) {}
};

inline void clusterlaunchcontrol_try_cancel(clc_result *result, uint64_t *barrier) {
  device->request(running_thread(), false, result, barrier);
}
inline void clusterlaunchcontrol_try_cancel_multicast(clc_result *result, uint64_t *barrier) {
  device->request(running_thread(), true, result, barrier);
}
inline bool clusterlaunchcontrol_query_cancel_is_canceled(const clc_result &result) {
  return device->is_canceled(running_thread(), result.value);
}
inline uint32_t clusterlaunchcontrol_query_cancel_get_first_ctaid_x(const clc_result &result) {
  return uint32_t(device->first_ctaid(result.value));
}

} // namespace ws

/* ---- cuda::for_each_canceled_block ----------------------------------------------------------- */

struct dim3 {
  unsigned x, y = 1, z = 1;
};

namespace cuda {

/* Every thread waits for the answer and reads it; the first one alone waits for the others' reads,
 * and asks again. */
template <int, class Body> void for_each_canceled_block(Body body) {
  clc_machine::machine &m = *clc_machine::device;
  const int t = m.running();
  const bool is_first = m.thread_rank(t) == 0;
  dim3 block_idx{unsigned(m.ctaid(t))};
  if (is_first) m.init_barrier(t);
  m.sync(t, clc_machine::machine::of_library);
  for (uint32_t parity = 0;; parity ^= 1) {
    if (is_first) {
      m.acquire_result_reads(t);
      m.request(t, false);
      m.arrive_expect_tx(t, 16);
    }
    body(block_idx);
    m.wait(t, parity);
    const clc_machine::result answer = m.read_result(t);
    if (!m.is_canceled(t, answer)) return;
    block_idx.x = unsigned(m.first_ctaid(answer));
    m.release_result_reads(t);
    m.sync(t, clc_machine::machine::of_library, is_first);
  }
}

} // namespace cuda
#endif
