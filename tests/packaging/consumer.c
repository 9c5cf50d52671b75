/* A user's program, as C11 and (through consumer.cpp) as C++: multiplies 2 x 3 by 3 x 2 in both
 * forms of the call and exits 0 only if every element is the known integer. It knows wsgemm by its
 * installed header and library alone. */
#include <wsgemm.h>

#include <stdio.h>

static int differs(const double *c, const double *expected) {
  int n_wrong = 0;
  for (int i = 0; i < 4; ++i) {
    if (!(c[i] == expected[i])) {
      fprintf(stderr, "element %d is %g, not %g\n", i, c[i], expected[i]);
      ++n_wrong;
    }
  }
  return n_wrong;
}

int main(void) {
  const double a[6] = {1, 2, 3, 4, 5, 6};
  const double b[6] = {7, 8, 9, 10, 11, 12};
  const double expected[4] = {58, 64, 139, 154};
  double c[4] = {-1, -1, -1, -1};

  wsgemm_status status =
      wsgemm_dgemm(NULL, WSGEMM_ROW_MAJOR, WSGEMM_NO_TRANS, WSGEMM_NO_TRANS, 2, 2, 3, 1.0, a, 3, b, 2, 0.0, c, 2);
  if (status != WSGEMM_SUCCESS || differs(c, expected)) {
    fprintf(stderr, "wsgemm_dgemm: %s %s\n", wsgemm_status_name(status), wsgemm_last_error());
    return 1;
  }

  wsgemm_gemm_desc desc = WSGEMM_GEMM_DESC_INIT;
  desc.layout = WSGEMM_ROW_MAJOR;
  desc.type_a = desc.type_b = desc.type_c = desc.type_scalar = WSGEMM_F64;
  desc.m = 2, desc.n = 2, desc.k = 3;
  desc.alpha.d = 2.0, desc.beta.d = -1.0;
  desc.a = a, desc.lda = 3;
  desc.b = b, desc.ldb = 2;
  desc.c = c, desc.ldc = 2;
  wsgemm_handle *handle = NULL;
  status = wsgemm_create(&handle);
  if (status == WSGEMM_SUCCESS) status = wsgemm_gemm(handle, &desc);
  if (status != WSGEMM_SUCCESS || differs(c, expected)) {
    fprintf(stderr, "wsgemm_gemm: %s %s\n", wsgemm_status_name(status), wsgemm_last_error());
    return 1;
  }
  if (wsgemm_destroy(handle) != WSGEMM_SUCCESS) return 1;

  if (wsgemm_version() != WSGEMM_VERSION) {
    fprintf(stderr, "header %d, library %d\n", WSGEMM_VERSION, wsgemm_version());
    return 1;
  }
  printf("consumer: wsgemm %s works\n", wsgemm_version_string());
  return 0;
}
