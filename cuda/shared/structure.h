/* structure.h - what is known of an operand beside its elements, as kernels are told
 * (core/matrix.h). Shared by C and CUDA. */
#ifndef WS_CUDA_STRUCTURE_H
#define WS_CUDA_STRUCTURE_H
#ifdef __CUDACC__
enum ws_structure { WS_GENERAL, WS_SYMMETRIC, WS_HERMITIAN, WS_TRIANGULAR, WS_UNIT_TRIANGULAR };
#else
#include "core/matrix.h"
#endif
#endif
