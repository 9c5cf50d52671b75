/* instantiate_elementwise.cu - the kernels that are no rows: those over C, by its type's letter,
 * copies of operands, and those of tuning. */
#include "cuda/kernels/align_copy.cuh"
#include "cuda/kernels/arena.cuh"
#include "cuda/kernels/elementwise.cuh"
#include "cuda/kernels/float_copy.cuh"

#define WS_SCALE(letter)                                                                                       \
  extern "C" __global__ void __launch_bounds__(256) letter##scale(const __grid_constant__ ws_gemm_args args) { \
    ws::scale_c<ws::type_##letter>(args);                                                                      \
  }
#define WS_COLUMN_SUMS(letter)                                                \
  extern "C" __global__ void __launch_bounds__(ws::n_sum_threads)             \
      letter##column_sums(const __grid_constant__ ws_column_sums_args args) { \
    ws::sum_columns<ws::type_##letter>(args);                                 \
  }
WS_SCALE(s)
WS_SCALE(d)
WS_SCALE(c)
WS_SCALE(z)
WS_SCALE(h)
WS_SCALE(b)
WS_COLUMN_SUMS(s)
WS_COLUMN_SUMS(d)
WS_COLUMN_SUMS(h)
WS_COLUMN_SUMS(b)

extern "C" __global__ void __launch_bounds__(256) align_copy(const __grid_constant__ ws_align_copy_args args) {
  ws::align_copies(args);
}

extern "C" __global__ void __launch_bounds__(WS_FLOAT_COPY_THREADS) float_copy(const __grid_constant__ ws_float_copy_args args) {
  ws::float_copy::run(args);
}

extern "C" __global__ void __launch_bounds__(256) fill(const __grid_constant__ ws_arena_args args) { ws::fill_matrix(args); }
extern "C" __global__ void __launch_bounds__(256) compare(const __grid_constant__ ws_arena_args args) {
  ws::compare_matrices(args);
}
