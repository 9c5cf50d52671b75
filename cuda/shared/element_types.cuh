/* element_types.cuh - element types, as types of the compiler. */
#ifndef WS_CUDA_ELEMENT_TYPES_CUH
#define WS_CUDA_ELEMENT_TYPES_CUH
#include <cstdint>

namespace ws {

/* Element types by their BLAS letter: a unit of 2 means complex, (re, im). A sum over k, and with
 * it alpha, beta and what is made of them, is an element, too, except where the elements have 16
 * bits: there it is a float, and C may be of another type than A and B. */
struct type_s {
  using real = float;
  using element = float;
  using sum = element;
  static constexpr int unit = 1;
};
struct type_d {
  using real = double;
  using element = double;
  using sum = element;
  static constexpr int unit = 1;
};
struct type_c {
  using real = float;
  using element = float2;
  using sum = element;
  static constexpr int unit = 2;
};
struct type_z {
  using real = double;
  using element = double2;
  using sum = element;
  static constexpr int unit = 2;
};
/* The bits of an IEEE half. */
struct type_h {
  using real = float;
  using element = uint16_t;
  using sum = float;
  static constexpr int unit = 1;
};
/* The bits of a bfloat16. */
struct type_b {
  using real = float;
  using element = uint16_t;
  using sum = float;
  static constexpr int unit = 1;
};

} // namespace ws
#endif
