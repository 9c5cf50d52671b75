/* tuning.c - the public calls of tuning: their checks, and what becomes of what the search has
 * found. */
#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "api/level3.h"
#include "api/problem.h"
#include "core/backend.h"
#include "core/cancel.h"
#include "core/status.h"
#include "ops/level3.h"
#include "tune/tuning.h"

/* ---- autotune -------------------------------------------------------------------------------- */

static wsgemm_status check_options(wsgemm_handle *h, const wsgemm_autotune_options *o) {
  if (o->struct_bytes != sizeof *o)
    return ws_fail(h, WSGEMM_INVALID_VALUE, "struct_bytes of the options is %zu; it must be %zu", o->struct_bytes, sizeof *o);
  if (o->device < -1 || o->device >= WS_N_TUNE_SLOTS - 1)
    return ws_fail(h, WSGEMM_INVALID_VALUE, "device is %d; it must be -1 .. %d", o->device, WS_N_TUNE_SLOTS - 2);
  if (isnan(o->budget_ms)) return ws_fail(h, WSGEMM_INVALID_VALUE, "budget_ms is not a number");
  if (o->device >= 0 && !ws_devices) return ws_fail(h, WSGEMM_NO_DEVICE, "there is no GPU driver");
  return WSGEMM_SUCCESS;
}

/* From a descriptor to what is tuned. */
typedef wsgemm_status make_work(wsgemm_handle *h, const void *desc, ws_arena *arena);

static wsgemm_status fail_nothing(wsgemm_handle *h) {
  return ws_fail(h, WSGEMM_NOT_SUPPORTED, "nothing is to be computed, so there is nothing to tune");
}

/* Without what tuning does not look at. */
static wsgemm_status make_gemm(wsgemm_handle *h, const void *gemm_desc, ws_arena *arena) {
  const wsgemm_gemm_desc *given = gemm_desc;
  ws_problem *p = &arena->problem;
  wsgemm_gemm_desc desc = WSGEMM_GEMM_DESC_INIT;
  if (!given) return ws_fail(h, WSGEMM_INVALID_POINTER, "desc is NULL");
  const size_t bytes = given->struct_bytes;
  if (bytes == sizeof desc || bytes == WSGEMM_GEMM_DESC_BASE_BYTES) memcpy(&desc, given, WSGEMM_GEMM_DESC_BASE_BYTES);
  desc.struct_bytes = bytes == WSGEMM_GEMM_DESC_BASE_BYTES ? sizeof desc : bytes;
  desc.epilogue = WSGEMM_EPILOGUE_NONE;
  const wsgemm_status status = ws_problem_of(h, &desc, p);
  if (status) return status;
  if (desc.scalar_mode == WSGEMM_SCALAR_DEVICE)
    return ws_fail(h, WSGEMM_NOT_SUPPORTED, "scalars in device memory: such products are not tuned");
  return ws_is_empty(p) || ws_product_is_zero(p) ? fail_nothing(h) : WSGEMM_SUCCESS;
}

/* Its pointers say no more than which of them are one. Of two products the first is tuned: the
 * other one is like it. */
static wsgemm_status make_level3(wsgemm_handle *h, const void *level3_desc, ws_arena *arena) {
  static char place_of_a, place_of_b, place_of_c;
  const wsgemm_level3_desc *given = level3_desc;
  wsgemm_status status = ws_level3_check_desc(h, given);
  if (status) return status;
  wsgemm_level3_desc d = *given;
  const bool may_be_in_place = ws_routines[d.routine].is_in_place;
  const bool is_in_place = may_be_in_place && (d.routine == WSGEMM_TRSM || !given->c || given->c == given->b);
  d.a = &place_of_a, d.b = &place_of_b, d.c = is_in_place ? NULL : &place_of_c;
  status = ws_level3_check(h, &d);
  if (status) return status;
  if (ws_level3_is_nothing(&d)) return fail_nothing(h);
  ws_level3_normalize(&d);
  ws_lowered lowered;
  ws_level3_lower(&d, &lowered);
  arena->is_system = lowered.n_products == 0;
  arena->system = lowered.system;
  arena->problem = arena->is_system ? ws_level3_product_like(&lowered.system) : lowered.product[0];
  return ws_product_is_zero(&arena->problem) ? fail_nothing(h) : WSGEMM_SUCCESS;
}

/* A handle of the search's own, with the caller's settings as they are now: another thread may
 * change them meanwhile. */
static wsgemm_handle copy_of(const wsgemm_handle *h) {
  wsgemm_handle copy = {.magic = WS_HANDLE_MAGIC, .workspace = ws_caller_workspace_get(h), .logger = ws_logger_get(h)};
  atomic_init(&copy.settings, atomic_load(&h->settings));
  for (int b = 0; b < WS_N_BACKENDS; b++) atomic_init(&copy.forced[b], atomic_load(&h->forced[b]));
  atomic_init(&copy.stream, atomic_load(&h->stream));
  return copy;
}

/* What the caller forces is no finding, and others are not to have it. */
static void forget_forced(const ws_call *call, ws_tuning_entry *e) {
  if (call->settings.policy != WSGEMM_POLICY_AUTO) e->tuning.policy = 0;
  if (call->settings.quantum > 0) e->tuning.quantum = 0;
  if (call->settings.coarse > 0) e->tuning.coarse = 0;
}

/* Whether the row of what was found was forced: of GPUs also by the COARSE_FACTOR, which is the
 * row's. */
static bool is_row_forced(const ws_call *call, const ws_arena *arena) {
  return arena->device >= 0 && (ws_forced_row(call->forced[WS_CUDA], arena->problem.a.type) != 0 || call->settings.coarse > 0);
}

static wsgemm_status fail_file(wsgemm_handle *h, const char *path, int why) {
  char lock[PATH_MAX] = "";
  ws_text t = {lock, sizeof lock, 0};
  ws_tuning_file_lock_name(path, &t);
  if (why == EACCES && ws_tuning_file_lock_is_closed(path))
    return ws_fail(h, WSGEMM_FILE_ERROR, "tuning file: its lock %.160s may not be opened: %s", lock, ws_error_text(why));
  if (why == ETIMEDOUT)
    return ws_fail(h, WSGEMM_FILE_ERROR, "tuning file: another process has held the lock %.160s for %d s", lock,
                   WS_TUNING_LOCK_S);
  return ws_fail(h, WSGEMM_FILE_ERROR, "tuning file %.150s: %s", path[0] ? path : "(none)",
                 why == EINVAL ? "not a tuning file; it is left as it is" : ws_error_text(why));
}

/* Into force, and into the file. */
static wsgemm_status keep(wsgemm_handle *h, const ws_tuning_entry *e, const char *file) {
  ws_tuning_entry kept = *e;
  const ws_tuning_list list = {.entry = &kept, .n = 1, .most = 1};
  if (!ws_tune_put(e)) return ws_fail(h, WSGEMM_ALLOC_FAILED, "no memory for what was found");
  const char *path = file ? file : ws_tune_path();
  if (!path[0]) return WSGEMM_SUCCESS;
  return ws_tuning_file_merge(path, &list) ? WSGEMM_SUCCESS : fail_file(h, path, errno);
}

static wsgemm_status autotune(wsgemm_handle *handle, const void *desc, make_work *make, const wsgemm_autotune_options *given) {
  WS_UNCANCELLED;
  enum { GPU_MS = 80, CPU_MS = 1000 };
  wsgemm_handle *h = ws_handle(handle);
  if (!h) return ws_fail_handle();
  wsgemm_autotune_options options = WSGEMM_AUTOTUNE_OPTIONS_INIT;
  wsgemm_status status = given ? check_options(h, given) : WSGEMM_SUCCESS;
  if (status) return status;
  if (given) options = *given;
  if (options.budget_ms < 0) options.budget_ms = options.device < 0 ? CPU_MS : GPU_MS;
  wsgemm_handle own = copy_of(h);
  const ws_call call = ws_call_of(&own);
  const ws_backend *backend = options.device < 0 ? ws_backends[WS_CPU] : ws_devices;
  ws_arena arena = {.is = backend->arena, .h = &own, .seed = options.seed, .device = options.device};
  status = make(h, desc, &arena);
  if (status) return status;
  wsgemm_autotune_result result;
  ws_tuning_entry found;
  bool is_settled;
  status = ws_search(&arena, &options, &result, &found, &is_settled);
  if (status) return status;
  if (options.result) *options.result = result;
  /* That there is nothing better is no finding of a search that was stopped; nor, where more is
   * known, of one that came to nothing but the built-in choice, or not to the end of a
   * confirmation. */
  const ws_tuned known = ws_tune_find(1 + options.device, &found.kind, &found.shape);
  const bool is_finding =
      (is_settled && result.n_measured > 1) || (result.n_measured > 0 && !(known.by == WS_TUNED_BY_USER && known.is_exact));
  const bool is_kept = result.is_better || (is_finding && !result.is_interrupted);
  if (!is_kept || is_row_forced(&call, &arena)) return WSGEMM_SUCCESS;
  forget_forced(&call, &found);
  return keep(h, &found, options.file);
}

wsgemm_status wsgemm_autotune(wsgemm_handle *handle, const wsgemm_gemm_desc *desc, const wsgemm_autotune_options *options) {
  return autotune(handle, desc, make_gemm, options);
}

wsgemm_status wsgemm_level3_autotune(wsgemm_handle *handle, const wsgemm_level3_desc *desc,
                                     const wsgemm_autotune_options *options) {
  return autotune(handle, desc, make_level3, options);
}

/* ---- files ----------------------------------------------------------------------------------- */

static size_t give(const char *from, char *text, size_t bytes) {
  ws_text t = {text, bytes, 0};
  if (bytes > 0) text[0] = '\0';
  ws_text_add(&t, "%s", from);
  return t.length;
}

size_t wsgemm_tuning_file(char *text, size_t bytes) {
  ws_start();
  return give(ws_tune_path(), text, bytes);
}

size_t wsgemm_tuning_table(char *text, size_t bytes) {
  ws_text t = {text, bytes, 0};
  if (bytes > 0) text[0] = '\0';
  ws_tuned_write(&t);
  return t.length;
}

size_t wsgemm_tuning_read(const char *file, char *text, size_t bytes) {
  WS_UNCANCELLED;
  ws_start();
  ws_text t = {text, bytes, 0};
  ws_tuning_list list = {0};
  if (bytes > 0) text[0] = '\0';
  const char *path = file ? file : ws_tune_path();
  if (path[0] && !ws_tuning_file_read(path, &list)) {
    fail_file(NULL, path, errno);
    list.n = 0;
  } else {
    ws_tuning_list_write(&list, &t);
  }
  ws_tuning_list_free(&list);
  return t.length;
}

static bool is_users(const char *file) { return !file || strcmp(file, ws_tune_path()) == 0; }

static wsgemm_status merge(const char *file, const ws_tuning_list *list) {
  const char *path = file ? file : ws_tune_path();
  if (!path[0]) return fail_file(NULL, path, ENOENT);
  if (!ws_tuning_file_merge(path, list)) return fail_file(NULL, path, errno);
  return WSGEMM_SUCCESS;
}

wsgemm_status wsgemm_tuning_import(const char *text, const char *file, int *n_lines) {
  WS_UNCANCELLED;
  ws_start();
  if (!text) return ws_fail(NULL, WSGEMM_INVALID_POINTER, "text is NULL");
  ws_tuning_list list = {0};
  wsgemm_status status = WSGEMM_SUCCESS;
  if (!ws_tuning_list_read(&list, text, strlen(text)))
    status = ws_fail(NULL, WSGEMM_ALLOC_FAILED, "no memory for the lines");
  else if (list.n == 0 && list.n_bad + list.n_foreign > 0)
    status = ws_fail(NULL, WSGEMM_INVALID_VALUE, "none of %d lines is valid", list.n_bad + list.n_foreign);
  else if (list.n > 0)
    status = merge(file, &list);
  if (n_lines) *n_lines = list.n;
  ws_tuning_list_free(&list);
  if (!status && is_users(file)) ws_tune_reload();
  return status;
}

wsgemm_status wsgemm_tuning_clear(const char *file) {
  WS_UNCANCELLED;
  ws_start();
  const char *path = file ? file : ws_tune_path();
  const bool is_there = path[0] && !(access(path, F_OK) != 0 && (errno == ENOENT || errno == ENOTDIR));
  const wsgemm_status status = is_there ? merge(file, NULL) : WSGEMM_SUCCESS;
  if (!status && is_users(file)) ws_tune_forget();
  return status;
}
