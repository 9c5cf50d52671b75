/* operands.h - element types and random numbers of the GPU benches: matrices in device memory, full
 * of Uniform(-1, 1). */
#ifndef WSGEMM_BENCH_OPERANDS_H
#define WSGEMM_BENCH_OPERANDS_H
#include <cuda_runtime_api.h>
#include <stdbool.h>
#include <stdint.h>

#include "wsgemm.h"

/* CUDA call that must succeed: else the process ends. */
#define GPU(call) gpu_check((call), __FILE__, __LINE__, #call)
void gpu_check(cudaError_t result, const char *file, int line, const char *call);

extern const char letters[7]; /* of the types, in their order */
bool is_half(wsgemm_type t);
bool is_wide(wsgemm_type t); /* its reals are doubles */
bool is_complex(wsgemm_type t);
size_t type_bytes(wsgemm_type t);
double get_real(wsgemm_type t, const void *reals, size_t i);
void put_real(wsgemm_type t, void *reals, size_t i, double x);
/* A scalar of this type; until the next call with it, or with another that is (or is not) 0. */
const void *scalar_of(wsgemm_type t, double value);

void *random_matrix(wsgemm_type type, int64_t elements);
/* The same times powers of two over so many exponents. */
enum { SPREAD_EXPONENTS = 40 };
void *spread_matrix(wsgemm_type type, int64_t elements);
size_t drawn_below(size_t n);
#endif
