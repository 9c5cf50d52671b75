/* wsgemm_stub.c - the calls of wsgemm_stub.h. */
#include "wsgemm_stub.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>

stub wsgemm;

struct wsgemm_handle {
  void *stream, *workspace;
  size_t workspace_bytes;
  atomic_int n_users;
};

wsgemm_status wsgemm_create(wsgemm_handle **out) {
  *out = calloc(1, sizeof **out);
  atomic_fetch_add((_Atomic int *)&wsgemm.n_handles, 1);
  atomic_fetch_add((_Atomic int *)&wsgemm.n_made, 1);
  return *out ? WSGEMM_SUCCESS : WSGEMM_ALLOC_FAILED;
}

wsgemm_status wsgemm_destroy(wsgemm_handle *h) {
  if (h) atomic_fetch_sub((_Atomic int *)&wsgemm.n_handles, 1);
  free(h);
  return WSGEMM_SUCCESS;
}

wsgemm_status wsgemm_set_stream(wsgemm_handle *h, void *stream) {
  if (atomic_fetch_add(&h->n_users, 1) > 0) atomic_fetch_add((_Atomic int *)&wsgemm.n_mixed, 1);
  h->stream = stream;
  sched_yield(); /* to whoever may come between the settings and the product */
  return WSGEMM_SUCCESS;
}

wsgemm_status wsgemm_set_workspace(wsgemm_handle *h, void *workspace, size_t bytes) {
  h->workspace = workspace, h->workspace_bytes = bytes;
  return WSGEMM_SUCCESS;
}

wsgemm_status wsgemm_get_workspace_size(wsgemm_handle *h, const wsgemm_gemm_desc *desc, size_t *bytes) {
  (void)h, (void)desc;
  *bytes = wsgemm.workspace_wanted;
  return WSGEMM_SUCCESS;
}

wsgemm_status wsgemm_level3_workspace_size(wsgemm_handle *h, const wsgemm_level3_desc *desc, size_t *bytes) {
  (void)h, (void)desc;
  *bytes = wsgemm.workspace_wanted;
  return WSGEMM_SUCCESS;
}

/* Writes down the last product; from any number of threads. */
static wsgemm_status run(wsgemm_handle *h, const wsgemm_gemm_desc *gemm, const wsgemm_grouped_desc *grouped,
                         const wsgemm_level3_desc *level3) {
  static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
  pthread_mutex_lock(&lock);
  wsgemm.n_products++;
  wsgemm.handle = h, wsgemm.is_level3 = level3 != NULL, wsgemm.is_grouped = grouped != NULL;
  if (gemm) wsgemm.gemm = *gemm;
  if (grouped) wsgemm.grouped = *grouped;
  if (level3) wsgemm.level3 = *level3;
  wsgemm.stream = h->stream, wsgemm.workspace = h->workspace, wsgemm.workspace_bytes = h->workspace_bytes;
  pthread_mutex_unlock(&lock);
  atomic_fetch_sub(&h->n_users, 1);
  return wsgemm.status;
}

wsgemm_status wsgemm_gemm(wsgemm_handle *h, const wsgemm_gemm_desc *desc) { return run(h, desc, NULL, NULL); }
wsgemm_status wsgemm_gemm_grouped(wsgemm_handle *h, const wsgemm_grouped_desc *desc) { return run(h, NULL, desc, NULL); }
wsgemm_status wsgemm_level3(wsgemm_handle *h, const wsgemm_level3_desc *desc) { return run(h, NULL, NULL, desc); }

const char *wsgemm_status_name(wsgemm_status status) { return status == WSGEMM_SUCCESS ? "WSGEMM_SUCCESS" : "another"; }
