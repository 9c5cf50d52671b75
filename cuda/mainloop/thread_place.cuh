/* thread_place.cuh - where a thread is among those that own parts of a tile of C, for mainloops
 * whose owners are threads.
 *
 * A warp is 8 threads along m times 4 along n, the bits of a lane's number being n m m n m: shared
 * memory serves half a warp's 16-byte reads at once if neighbouring lanes (for A), or lanes two
 * apart (for B), read the same. */
#ifndef WS_CUDA_THREAD_PLACE_CUH
#define WS_CUDA_THREAD_PLACE_CUH

namespace ws {

struct thread_place {
  int m, n;
};

/* Counted in elements, where those of neighbouring threads are so many apart. */
template <int THREADS_M, int THREADS_N, int APART_M = 1, int APART_N = 1>
__device__ __forceinline__ thread_place own_thread_place() {
  static_assert(THREADS_M % 8 == 0 && THREADS_N % 4 == 0, "a warp is 8 threads along m times 4 along n");
  const int lane = int(threadIdx.x) % 32, warp = int(threadIdx.x) / 32;
  constexpr int warps_m = THREADS_M / 8;
  const int lane_m = (lane >> 1 & 3) | (lane >> 4 & 1) << 2, lane_n = (lane & 1) | (lane >> 3 & 1) << 1;
  return {(warp % warps_m * 8 + lane_m) * APART_M, (warp / warps_m * 4 + lane_n) * APART_N};
}

} // namespace ws
#endif
