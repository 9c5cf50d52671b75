/* fake_cublas.h - a cuBLAS for machines without a GPU: libcublas.so.13 with the functions that the
 * interposer defines or calls, cuBLASLt's too, which computes nothing, answers what the test has written
 * into `fake_cublas`, and writes down what it was asked. */
#ifndef WSGEMM_TESTS_FAKE_CUBLAS_H
#define WSGEMM_TESTS_FAKE_CUBLAS_H

#include "cublas/cublas.h"

enum { FAKE_N_ARGUMENTS = 24, FAKE_N_ATTRIBUTES = 64 };

/* A layout or a product's descriptor of cuBLASLt: values by attribute; has: whether this version knows
 * it. */
typedef struct fake_attributes {
  int64_t value[FAKE_N_ATTRIBUTES];
  bool is_unknown[FAKE_N_ATTRIBUTES];
} fake_attributes;

typedef struct fake_cublas_library {
  /* ---- what it is to do ---- */
  cublasStatus_t status; /* of every product */
  cudaStream_t stream;   /* of every handle */
  cublasMath_t math;
  cublasPointerMode_t scalars;
  int n_sms;
  bool is_dead;         /* no handle answers */
  void (*inside)(void); /* called by every product, unless NULL */
  /* ---- what it was asked ---- */
  int n_calls, n_calls_of[WS_CUBLAS_N_FUNCTIONS];
  int n_arguments; /* of the last product, after its handle */
  long long argument[FAKE_N_ARGUMENTS];
  void *handle;
} fake_cublas_library;
extern fake_cublas_library fake_cublas;

/* Where handles of this library come from. */
extern char fake_cublas_handles[64];

#endif
