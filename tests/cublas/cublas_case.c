/* cublas_case.c - the calls of cublas_case.h. */
#include "cublas_case.h"

#include <string.h>

#include "host/fake_driver.h"

char *matrix[3];
cublasHandle_t handle;
sizes shape;

void begin_case(void) {
  static bool is_made;
  if (!is_made) {
    for (int i = 0; i < 3; i++) matrix[i] = fake_alloc(FAKE_DEVICE, 0, 1 << 20);
    is_made = true;
  }
  fake.device[0].cc = 90;
  fake_set_current(fake_primary(0));
  if (handle) cublasDestroy_v2(handle);
  memset(&fake_cublas, 0, sizeof fake_cublas);
  memset(&wsgemm, 0, sizeof wsgemm);
  shape = (sizes){2100, 2200, 2300, 2501, 2502, 2503, 4};
  handle = NULL;
  REQUIRE(cublasCreate_v2(&handle) == CUBLAS_STATUS_SUCCESS && handle, "no handle");
}

static const float alpha_s[] = {2, 3}, beta_s[] = {5, 7};
static const double alpha_d[] = {2, 3}, beta_d[] = {5, 7};
const void *alpha_of(wsgemm_type type) { return type == WSGEMM_F64 || type == WSGEMM_C64 ? (const void *)alpha_d : alpha_s; }
const void *beta_of(wsgemm_type type) { return type == WSGEMM_F64 || type == WSGEMM_C64 ? (const void *)beta_d : beta_s; }

#define ALPHA_s alpha_s
#define ALPHA_d alpha_d
#define ALPHA_c ((const cuComplex *)alpha_s)
#define ALPHA_z ((const cuDoubleComplex *)alpha_d)
#define BETA_s beta_s
#define BETA_d beta_d
#define BETA_c ((const cuComplex *)beta_s)
#define BETA_z ((const cuDoubleComplex *)beta_d)
#define REAL_ALPHA_c alpha_s
#define REAL_ALPHA_z alpha_d
#define REAL_BETA_c beta_s
#define REAL_BETA_z beta_d
#define M(i) ((void *)matrix[i])
#define N(x) (INT) shape.x
#define OPS CUBLAS_OP_T, CUBLAS_OP_C

#define CALL_gemm(symbol, x) symbol(handle, OPS, N(m), N(n), N(k), ALPHA_##x, M(0), N(lda), M(1), N(ldb), BETA_##x, M(2), N(ldc))
#define CALL_strided(symbol, x) \
  symbol(handle, OPS, N(m), N(n), N(k), ALPHA_##x, M(0), N(lda), 11, M(1), N(ldb), 12, BETA_##x, M(2), N(ldc), 13, 3)
#define CALL_gemm_ex(symbol, x)                                                                                                \
  symbol(handle, OPS, N(m), N(n), N(k), alpha_s, M(0), CUDA_R_32F, N(lda), M(1), CUDA_R_32F, N(ldb), beta_s, M(2), CUDA_R_32F, \
         N(ldc), CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT)
#define CALL_strided_ex(symbol, x)                                                                                         \
  symbol(handle, OPS, N(m), N(n), N(k), alpha_s, M(0), CUDA_R_32F, N(lda), 11, M(1), CUDA_R_32F, N(ldb), 12, beta_s, M(2), \
         CUDA_R_32F, N(ldc), 13, 3, CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT)
#define CALL_batched(symbol, x) \
  symbol(handle, OPS, N(m), N(n), N(k), ALPHA_##x, M(0), N(lda), M(1), N(ldb), BETA_##x, M(2), N(ldc), N(count))
#define CALL_batched_ex(symbol, x)                                                                                             \
  symbol(handle, OPS, N(m), N(n), N(k), alpha_s, M(0), CUDA_R_32F, N(lda), M(1), CUDA_R_32F, N(ldb), beta_s, M(2), CUDA_R_32F, \
         N(ldc), N(count), CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT)
#define CALL_symm(symbol, x)                                                                                                  \
  symbol(handle, CUBLAS_SIDE_LEFT, CUBLAS_FILL_MODE_LOWER, N(m), N(n), ALPHA_##x, M(0), N(lda), M(1), N(ldb), BETA_##x, M(2), \
         N(ldc))
#define CALL_hemm CALL_symm
#define RANK CUBLAS_FILL_MODE_LOWER, CUBLAS_OP_T, N(n), N(k)
#define CALL_syrk(symbol, x) symbol(handle, RANK, ALPHA_##x, M(0), N(lda), BETA_##x, M(2), N(ldc))
#define CALL_syr2k(symbol, x) symbol(handle, RANK, ALPHA_##x, M(0), N(lda), M(1), N(ldb), BETA_##x, M(2), N(ldc))
#define CALL_herk(symbol, x) symbol(handle, RANK, REAL_ALPHA_##x, M(0), N(lda), REAL_BETA_##x, M(2), N(ldc))
#define CALL_her2k(symbol, x) symbol(handle, RANK, ALPHA_##x, M(0), N(lda), M(1), N(ldb), REAL_BETA_##x, M(2), N(ldc))
#define TRIANGLE CUBLAS_SIDE_LEFT, CUBLAS_FILL_MODE_LOWER, CUBLAS_OP_T, CUBLAS_DIAG_UNIT, N(m), N(n)
#define CALL_trmm(symbol, x) symbol(handle, TRIANGLE, ALPHA_##x, M(0), N(lda), M(1), N(ldb), M(2), N(ldc))
#define CALL_trsm(symbol, x) symbol(handle, TRIANGLE, ALPHA_##x, M(0), N(lda), M(1), N(ldb))

#define ROUTINE(symbol, family, letter, integer) \
  static cublasStatus_t call_##symbol(void) {    \
    typedef integer INT;                         \
    return CALL_##family(symbol, letter);        \
  }
#include "cublas/routines.def"
#undef ROUTINE

const routine routines[] = {
#define ROUTINE(symbol, family, letter, integer) {WS_##symbol, #family, #letter[0], sizeof(integer) == 8, call_##symbol},
#include "cublas/routines.def"
#undef ROUTINE
};
const int n_routines = sizeof routines / sizeof routines[0];
