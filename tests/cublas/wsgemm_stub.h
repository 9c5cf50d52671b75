/* wsgemm_stub.h - the calls of wsgemm that the interposer makes, defined by the test program in the
 * library's place: they compute nothing and write down what they were asked. */
#ifndef WSGEMM_TESTS_WSGEMM_STUB_H
#define WSGEMM_TESTS_WSGEMM_STUB_H

#include <stdbool.h>

#include "wsgemm.h"

typedef struct stub {
  wsgemm_status status; /* of every product */
  size_t workspace_wanted;
  int n_handles, n_made; /* alive; made so far */
  int n_products;
  bool is_level3, is_grouped; /* the last one */
  wsgemm_gemm_desc gemm;
  wsgemm_grouped_desc grouped;
  wsgemm_level3_desc level3;
  wsgemm_handle *handle; /* of the last one, and its settings then */
  void *stream, *workspace;
  size_t workspace_bytes;
  int n_mixed; /* products that ran while another one of their handle did */
} stub;
extern stub wsgemm;

#endif
