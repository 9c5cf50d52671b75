/* A library to be preloaded: its wsgemm_gemm calls the real one and then spoils the last element of
 * C a little, as a broken kernel would. Whoever claims to check products must notice. */
#define _GNU_SOURCE
#include "wsgemm.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

WSGEMM_API wsgemm_status wsgemm_gemm(wsgemm_handle *h, const wsgemm_gemm_desc *desc) {
  wsgemm_status (*real)(wsgemm_handle *, const wsgemm_gemm_desc *);
  void *symbol = dlsym(RTLD_NEXT, "wsgemm_gemm");
  if (!symbol) abort();
  memcpy(&real, &symbol, sizeof real);
  const wsgemm_status status = real(h, desc);
  if (status != WSGEMM_SUCCESS || desc->m == 0 || desc->n == 0) return status;
  const int64_t last =
      desc->layout == WSGEMM_ROW_MAJOR ? (desc->m - 1) * desc->ldc + desc->n - 1 : (desc->n - 1) * desc->ldc + desc->m - 1;
  switch (desc->type_c) {
  case WSGEMM_F32:
    ((float *)desc->c)[last] += 1;
    break;
  case WSGEMM_F64:
    ((double *)desc->c)[last] += 1;
    break;
  case WSGEMM_C32:
    ((wsgemm_cfloat *)desc->c)[last].im += 1;
    break;
  case WSGEMM_F16:
  case WSGEMM_BF16:
    ((uint16_t *)desc->c)[last] ^= 1 << 8;
    break;
  case WSGEMM_C64:
    ((wsgemm_cdouble *)desc->c)[last].im += 1;
    break;
  }
  return status;
}
