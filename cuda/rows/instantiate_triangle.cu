/* instantiate_triangle.cu - the kernels of triangle.cuh, by the type's letter; and copies of
 * right-hand sides, by reals. */
#include "cuda/kernels/solve.cuh"
#include "cuda/kernels/triangle.cuh"

#define WS_TRIANGLE(t)                                                                   \
  extern "C" __global__ void __launch_bounds__(WS_TRIANGLE_THREADS, 2)                   \
      t##triangle(const __grid_constant__ ws_triangle_args args) {                       \
    ws::work_on_triangles<ws::type_##t, WS_TRIANGLE_N_##t, WS_TRIANGLE_ADD_N_##t>(args); \
  }
/* `blocks` of threads are to fit on an SM at once, on cc 9.0: elsewhere the same code may need a few
 * registers more, and takes them. */
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ != 900
#define WS_SOLVE_BLOCKS(blocks) 1
#else
#define WS_SOLVE_BLOCKS(blocks) (blocks)
#endif
#define WS_SOLVE(t, blocks)                                                                  \
  extern "C" __global__ void __launch_bounds__(WS_SOLVE_THREADS(t), WS_SOLVE_BLOCKS(blocks)) \
      t##solve(const __grid_constant__ ws_triangle_args args) {                              \
    ws::solve_systems<ws::type_##t>(args);                                                   \
  }
WS_SOLVE(s, 1)
WS_SOLVE(d, 2)
WS_SOLVE(c, 2)
WS_SOLVE(z, 2)
#define WS_WRITE_OUT(t)                                             \
  extern "C" __global__ void __launch_bounds__(WS_TRIANGLE_THREADS) \
      t##write_out(const __grid_constant__ ws_triangle_args args) { \
    ws::write_out<ws::type_##t>(args);                              \
  }
WS_WRITE_OUT(s)
WS_WRITE_OUT(d)
WS_WRITE_OUT(c)
WS_WRITE_OUT(z)
WS_TRIANGLE(s)
WS_TRIANGLE(d)
WS_TRIANGLE(c)
WS_TRIANGLE(z)

extern "C" __global__ void __launch_bounds__(256) scopy_lines(const __grid_constant__ ws_triangle_args args) {
  ws::copy_lines<float>(args);
}
extern "C" __global__ void __launch_bounds__(256) dcopy_lines(const __grid_constant__ ws_triangle_args args) {
  ws::copy_lines<double>(args);
}
