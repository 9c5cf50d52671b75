/* info.c - what the library is, and what it found: its version, its build, the machine, the kernel
 * rows of all backends. */
#include "core/backend.h"
#include "core/cancel.h"
#include "core/environment.h"
#include "core/processors.h"
#include "core/status.h"

#define STRING_(x) #x
#define STRING(x) STRING_(x)

const char *wsgemm_version_string(void) {
  return STRING(WSGEMM_VERSION_MAJOR) "." STRING(WSGEMM_VERSION_MINOR) "." STRING(WSGEMM_VERSION_PATCH);
}

int wsgemm_version(void) { return WSGEMM_VERSION; }

size_t wsgemm_config(char *text, size_t bytes) {
  ws_text t = {text, bytes, 0};
  if (bytes > 0) text[0] = '\0';
  ws_text_add(&t, "version: %s\n", wsgemm_version_string());
#if defined(__clang__)
  ws_text_add(&t, "compiler: clang %s\n", __clang_version__);
#elif defined(__GNUC__)
  ws_text_add(&t, "compiler: gcc %s\n", __VERSION__);
#else
  ws_text_add(&t, "compiler: unknown\n");
#endif
#if defined(__x86_64__)
  ws_text_add(&t, "target: x86-64\n");
#elif defined(__aarch64__)
  ws_text_add(&t, "target: aarch64\n");
#else
  ws_text_add(&t, "target: generic\n");
#endif
#ifdef NDEBUG
  ws_text_add(&t, "assertions: off\n");
#else
  ws_text_add(&t, "assertions: on\n");
#endif
  ws_text_add(&t, "backends:");
  for (int b = 0; b < WS_N_BACKENDS; b++)
    if (ws_backends[b]) ws_text_add(&t, " %s", ws_backends[b]->name);
  ws_text_add(&t, "\n");
  for (int b = 0; b < WS_N_BACKENDS; b++)
    if (ws_backends[b] && ws_backends[b]->describe_build) ws_backends[b]->describe_build(&t);
  ws_text_add(&t, "kernels: %d rows\n", wsgemm_kernel_count());
  return t.length;
}

size_t wsgemm_machine(char *text, size_t bytes) {
  WS_UNCANCELLED;
  ws_start();
  ws_text t = {text, bytes, 0};
  const ws_processors *processors = ws_processors_get();
  ws_affinity affinity;
  ws_affinity_get(&affinity);
  if (bytes > 0) text[0] = '\0';
  ws_backends[WS_CPU]->describe(&t);
  ws_text_add(&t, "affinity: %d processors\n", ws_affinity_count(&affinity));
  if (processors->quota > 0)
    ws_text_add(&t, "cgroup quota: %d processors\n", processors->quota);
  else
    ws_text_add(&t, "cgroup quota: none\n");
  const bool has_quota = processors->quota > 0, has_variable = ws_environment_get()->n_threads > 0;
  ws_text_add(&t, "threads: %d (by default; limited by affinity%s%s)\n", ws_default_threads(), has_quota ? ", cgroup quota" : "",
              has_variable ? ", WSGEMM_NUM_THREADS" : "");
  ws_text_add(&t, "processors: %d (what tuning goes by: those online%s%s)\n", processors->threads,
              has_quota ? ", within the cgroup quota" : "", has_variable ? ", at most WSGEMM_NUM_THREADS" : "");
  if (ws_backends[WS_CUDA])
    ws_backends[WS_CUDA]->describe(&t);
  else
    ws_text_add(&t, "gpu: not built in\n");
  ws_text_add(&t, "%s", ws_environment_get()->report);
  return t.length;
}

/* ---- kernel rows of all backends, one after the other ---------------------------------------- */

int wsgemm_kernel_count(void) {
  int n = 0;
  for (int b = 0; b < WS_N_BACKENDS; b++)
    if (ws_backends[b]) n += ws_backends[b]->row_count();
  return n;
}

/* The backend of a row; *row becomes its own number of it. NULL: there is no such row. */
static const ws_backend *backend_of_row(int *row) {
  for (int b = 0; b < WS_N_BACKENDS && *row >= 0; b++) {
    if (!ws_backends[b]) continue;
    const int n = ws_backends[b]->row_count();
    if (*row < n) return ws_backends[b];
    *row -= n;
  }
  return NULL;
}

const char *wsgemm_kernel_name(int row) {
  const ws_backend *backend = backend_of_row(&row);
  return backend ? ws_row_info(backend, row).name : NULL;
}

const char *wsgemm_kernel_backend(int row) {
  const ws_backend *backend = backend_of_row(&row);
  return backend ? backend->name : NULL;
}

int wsgemm_kernel_usable(int row) {
  ws_start();
  const ws_backend *backend = backend_of_row(&row);
  return backend && !backend->row_lacks(row);
}

wsgemm_status wsgemm_get_kernel_info(int row, wsgemm_kernel_info *info) {
  if (!info) return ws_fail(NULL, WSGEMM_INVALID_POINTER, "info is NULL");
  if (info->struct_bytes != sizeof *info)
    return ws_fail(NULL, WSGEMM_INVALID_VALUE, "struct_bytes of the info is %zu; it must be %zu", info->struct_bytes,
                   sizeof *info);
  int row_idx = row;
  const ws_backend *backend = backend_of_row(&row_idx);
  if (!backend) return ws_fail(NULL, WSGEMM_INVALID_VALUE, "row is %d; it must be 0 .. %d", row, wsgemm_kernel_count() - 1);
  *info = ws_row_info(backend, row_idx);
  info->is_usable = wsgemm_kernel_usable(row);
  return WSGEMM_SUCCESS;
}
