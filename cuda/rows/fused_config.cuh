/* fused_config.cuh - what a row of gemm_fused.cuh is at compile time, and what its shared memory
 * holds. */
#ifndef WS_CUDA_FUSED_CONFIG_CUH
#define WS_CUDA_FUSED_CONFIG_CUH
#include <cstdint>

namespace ws {

constexpr int fused_bm = 128, fused_bk = 32;

/* R_X, S_X: x is contiguous. TMA: lines begin at multiples of 16 bytes. */
template <int BN, bool R_X_, bool S_X_, bool TMA_, int STAGES, bool CROSS, int SPLITTERS = 2> struct fused_config {
  static constexpr int bn = BN, n_stages = STAGES;
  static constexpr bool r_x = R_X_, s_x = S_X_, tma = TMA_, cross_bf16 = CROSS;
  static constexpr bool writes_high = S_X_ || !TMA_; /* splitters do */
  /* Lines of an operand as the loaders bring them: TMA 128 bytes, swizzled (of x in slabs of 32); by
   * threads as they are from the last multiple of 16 bytes on, so a chunk of 16 bytes longer. */
  static __host__ __device__ constexpr int lines_of(bool x, int n_x) { return x ? fused_bk : n_x; }
  static __host__ __device__ constexpr int chunks_of(bool x, int n_x) { return (x ? n_x : fused_bk) / 4; }
  static __host__ __device__ constexpr uint32_t pitch_of(bool x, int n_x) { return uint32_t(chunks_of(x, n_x) + 1) * 16; }
  static __host__ __device__ constexpr uint32_t bytes_of(bool x, int n_x) {
    return TMA_ ? n_x * fused_bk * 4 : (lines_of(x, n_x) * pitch_of(x, n_x) + 1023) / 1024 * 1024;
  }
  static constexpr uint32_t r_bytes = bytes_of(R_X_, fused_bm), s_bytes = bytes_of(S_X_, BN), slice_bytes = BN * fused_bk * 4;
  static constexpr uint32_t r_pitch = pitch_of(R_X_, fused_bm), s_pitch = pitch_of(S_X_, BN);
  static constexpr bool is_in_place = TMA_ && !S_X_; /* the lines of S, of which high is made */
  static constexpr uint32_t s_at = r_bytes, low_at = s_at + s_bytes, high_at = is_in_place ? s_at : low_at + slice_bytes;
  static constexpr uint32_t stage_bytes = r_bytes + s_bytes + (is_in_place ? 1 : 2) * slice_bytes;
  static constexpr int bp = 32; /* columns that go to C at a time */
  static constexpr int pitch_r = fused_bm + 4, pitch_s = bp + 8;
  static constexpr uint32_t sums_bytes = 4 * (bp * pitch_r > fused_bm * pitch_s ? bp * pitch_r : fused_bm * pitch_s);
  static constexpr uint32_t shared_bytes = n_stages * stage_bytes + sums_bytes + 2048;
  /* Warps 0 to 3 load (TMA: number 0, and 2 and 3 split), 4 to 11 multiply, 12 to 15 split. */
  static constexpr int n_threads = 512, n_loaders = TMA_ ? 32 : 128, n_splitters = TMA_ ? 192 : 128;
  static constexpr int loader_registers = BN == 96 ? 40 : 56, splitter_registers = loader_registers;
  static constexpr int consumer_registers = BN == 96 ? 216 : 200;
  /* Warps that split a stage together; others have the next ones. */
  static constexpr int splitters_of_stage = SPLITTERS;
  static_assert(n_splitters / 32 % SPLITTERS == 0 && n_splitters / 32 / SPLITTERS <= STAGES);
};

/* Barriers and marks. */
template <class Config> struct fused_state {
  static constexpr int n_stages = Config::n_stages;
  uint64_t full[n_stages], split[n_stages], empty[n_stages];
  /* of tile number i of this block at i % 2, i % 8: splitters are ahead by at most n_stages tiles */
  uint8_t r_is_bad[2][fused_bm], s_is_bad[8][Config::bn];
  static_assert(n_stages <= 6);
};

/* What a block computes of C at a time: its first elements. */
struct fused_tile {
  int r, s;
};

/* A thread's rows of R in the tile: where x is contiguous they are spread so that the lanes of a
 * warp read from all banks. */
template <class Config> __device__ __forceinline__ int fused_row(int half) {
  const int t = int(threadIdx.x) - 128, g = t % 32 / 4, w = t / 32 % 4;
  const int in_group = Config::r_x ? w / 2 * 32 + g / 4 * 16 + g % 4 + 4 * half + 8 * (w % 2) : 16 * w + g + 8 * half;
  return t / 128 * 64 + in_group;
}

} // namespace ws
#endif
