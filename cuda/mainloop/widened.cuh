/* widened.cuh - an element as the type that its products are summed in: of 16 bits a float. */
#ifndef WS_CUDA_WIDENED_CUH
#define WS_CUDA_WIDENED_CUH
#include <type_traits>

#include "cuda/ptx/convert.cuh"
#include "cuda/shared/element_types.cuh"

namespace ws {

template <class Type> __device__ __forceinline__ typename Type::sum widened(typename Type::element x) {
  if constexpr (std::is_same_v<Type, type_h>)
    return float_of_f16(x);
  else if constexpr (std::is_same_v<Type, type_b>)
    return float_of_bf16(x);
  else
    return x;
}

} // namespace ws
#endif
