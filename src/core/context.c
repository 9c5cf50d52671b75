/* context.c - handles, their settings, the environment, and what went wrong last.
 *
 * Everything that the library takes from outside a call comes through here: every WSGEMM_* variable (one table), the cgroup quota, the
 * number of processors, read once, on the first call; and the calling thread's affinity, read whenever it counts. A setting in the
 * environment that makes no sense is ignored with one warning in last_error. */
#define _GNU_SOURCE
#include <errno.h>
#include <limits.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/cancel.h"
#include "core/internal.h"
#include "cpu/place.h"
#include "cpu/queue.h"
#include "cuda/host/backend.h"
#include "tune/tuning.h"

_Atomic bool ws_context_ready;
wsgemm_handle ws_default_handle = {.magic = WS_HANDLE_MAGIC};

static ws_machine machine;
static int quota_threads, env_threads; /* 0: no such limit */
static int process_threads;            /* most that a call uses by default, whatever its thread's affinity */
static int env_policy, env_coarse, env_quantum, env_check, env_invariant;
static char env_report[512]; /* lines for wsgemm_machine */
static _Thread_local char last_error[256];
static _Thread_local int thread_limit;

const ws_machine *ws_machine_get(void) { return &machine; }

const char *wsgemm_last_error(void) { return last_error; }

/* Of what is set together, of all handles. Held over a fork, as its owner may not be in the child. */
static pthread_mutex_t settings_lock = PTHREAD_MUTEX_INITIALIZER;
void ws_settings_lock(void) { pthread_mutex_lock(&settings_lock); }
void ws_settings_unlock(void) { pthread_mutex_unlock(&settings_lock); }

ws_caller_workspace ws_caller_workspace_get(const wsgemm_handle *h) {
  ws_settings_lock();
  const ws_caller_workspace workspace = h->workspace;
  ws_settings_unlock();
  return workspace;
}

void ws_caller_workspace_set(wsgemm_handle *h, const ws_caller_workspace *workspace) {
  ws_settings_lock();
  h->workspace = *workspace;
  ws_settings_unlock();
}

ws_logger ws_logger_get(const wsgemm_handle *h) {
  ws_settings_lock();
  const ws_logger logger = h->logger;
  ws_settings_unlock();
  return logger;
}

static void log_line(wsgemm_handle *h, wsgemm_status status) {
  const ws_logger logger = ws_logger_get(h);
  if (logger.log) logger.log(logger.user, status, last_error);
}

wsgemm_status ws_fail(wsgemm_handle *h, wsgemm_status status, const char *format, ...) {
  va_list args;
  va_start(args, format);
  ws_format(last_error, sizeof last_error, format, args);
  va_end(args);
  if (h) log_line(h, status);
  return status;
}

/* ---- status texts --------------------------------------------------------------------------------------------------------- */

static const struct {
  const char *name, *text;
} statuses[] = {
#define STATUS_ROW(name, value, text) [value] = {"WSGEMM_" #name, text},
    WSGEMM_STATUS_MAP(STATUS_ROW)
#undef STATUS_ROW
};

static bool known(wsgemm_status status) { return (int)status >= 0 && (size_t)status < sizeof statuses / sizeof statuses[0]; }
const char *wsgemm_status_name(wsgemm_status status) { return known(status) ? statuses[status].name : "WSGEMM_UNKNOWN"; }
const char *wsgemm_status_text(wsgemm_status status) { return known(status) ? statuses[status].text : "unknown status"; }

/* ---- environment: one table ------------------------------------------------------------------------------------------------ */

static ws_isa env_isa = WS_N_ISAS - 1;
static const char *env_kernel, *env_tune;

static bool parse_int(const char *text, int least, int most, int *value) {
  char *end;
  errno = 0;
  const long v = strtol(text, &end, 10);
  if (errno || end == text || *end || v < least || v > most) return false;
  *value = (int)v;
  return true;
}

static bool read_threads(const char *text) { return parse_int(text, 1, WS_MAX_WORKERS, &env_threads); }
static bool read_coarse(const char *text) { return parse_int(text, 1, WS_COARSE_MAX, &env_coarse); }
static bool read_quantum(const char *text) { return parse_int(text, 0, WS_QUANTUM_MAX, &env_quantum); }
static bool read_check(const char *text) { return parse_int(text, 0, 1, &env_check); }
static bool read_invariant(const char *text) { return parse_int(text, 0, 1, &env_invariant); }

static bool read_policy(const char *text) {
  for (int policy = WSGEMM_POLICY_AUTO; policy <= WSGEMM_POLICY_FOREACH; policy++)
    if (strcmp(text, ws_policy_name((wsgemm_policy)policy)) == 0) {
      env_policy = policy;
      return true;
    }
  return false;
}

static bool read_isa(const char *text) {
  for (int isa = 0; isa < WS_N_ISAS; isa++)
    if (strcmp(text, ws_isa_name((ws_isa)isa)) == 0 && machine.isa[isa]) {
      env_isa = (ws_isa)isa;
      return true;
    }
  return false;
}

static bool read_kernel(const char *text) {
  const int row = ws_row_find(text);
  if (row < 0 || !machine.isa[ws_row(row)->isa]) return false;
  env_kernel = text;
  return true;
}

/* Not for a program with more rights than its user, who would have it write where he says. */
static bool read_tune(const char *text) {
  if (!secure_getenv("WSGEMM_TUNE")) return false;
  env_tune = text;
  return true;
}

static const struct {
  const char *name;
  bool (*read)(const char *text);
  const char *legal;
} variables[] = {
    {"WSGEMM_NUM_THREADS", read_threads, "1 .. 256"},
    {"WSGEMM_POLICY", read_policy, "auto, fixed_work, fixed_blocks, steal, clc or foreach"},
    {"WSGEMM_COARSE_FACTOR", read_coarse, "1 .. 64"},
    {"WSGEMM_QUANTUM", read_quantum, "0 .. 1048576"},
    {"WSGEMM_ISA", read_isa, "an instruction set of this machine: amx, avx512, avx2, neon or ref"},
    {"WSGEMM_KERNEL", read_kernel, "the name of a kernel row that this machine can run"},
    {"WSGEMM_TUNE", read_tune, "the name of a file, or off"},
    {"WSGEMM_CHECK", read_check, "0 or 1"},
    {"WSGEMM_INVARIANT", read_invariant, "0 or 1"},
};

static void read_environment(void) {
  ws_text report = {env_report, sizeof env_report, 0};
  for (size_t i = 0; i < sizeof variables / sizeof variables[0]; i++) {
    const char *value = getenv(variables[i].name);
    if (!value || !*value) continue;
    const bool ok = variables[i].read(value);
    ws_text_add(&report, "env %s: %.40s%s\n", variables[i].name, value, ok ? "" : " (ignored)");
    if (!ok)
      ws_fail(NULL, WSGEMM_INVALID_VALUE, "warning: %s=%.60s is ignored; it must be %s", variables[i].name, value,
              variables[i].legal);
  }
}

/* ---- threads ---------------------------------------------------------------------------------------------------------------- */

static int count_online(void) {
  const long online = sysconf(_SC_NPROCESSORS_ONLN);
  return online > 0 && online < INT_MAX ? (int)online : 0;
}

/* Of the calling thread: not of the process, as another thread's may differ, nor remembered, as it may change. */
static int count_affinity(void) {
  ws_affinity affinity;
  ws_affinity_get(&affinity);
  return ws_affinity_count(&affinity);
}

/* Whole processors, rounded up, of cpu.max: "QUOTA PERIOD", or "max PERIOD". */
static double processors_of(const char *text) {
  long long quota, period;
  if (sscanf(text, "%lld %lld", &quota, &period) != 2 || quota <= 0 || period <= 0) return HUGE_VAL;
  return ceil((double)quota / (double)period);
}

/* 0: none. */
static int count_quota(void) {
  const double least = ws_cgroup_least("cpu.max", processors_of);
  return least < INT_MAX ? (int)least : 0;
}

static int tighter(int limit, int other) { return other > 0 && other < limit ? other : limit; }

int wsgemm_default_num_threads(void) {
  ws_context_init();
  return process_threads > 1 ? tighter(process_threads, count_affinity()) : process_threads;
}

/* Inside a parallel region of OpenMP every thread of the team may call us at once: then each works alone. We need not be linked with the
 * runtime: it is found if it is in the global scope (the program's own libraries, and what was loaded with RTLD_GLOBAL) as we are loaded. To
 * look for it on each call, for one that is loaded later, would take the loader's lock: a call would wait for any dlopen in another
 * thread, for ever if that one's constructor waits for the call. */
extern int omp_in_parallel(void) __attribute__((weak));

static bool in_openmp_parallel(void) { return omp_in_parallel && omp_in_parallel() != 0; }

int ws_thread_limit(wsgemm_handle *h) {
  const int own = atomic_load_explicit(&h->n_threads, memory_order_relaxed);
  int limit = tighter(own > 0 ? own : process_threads, thread_limit);
  if (limit > 1 && own == 0) limit = tighter(limit, count_affinity());
  return limit > 1 && in_openmp_parallel() ? 1 : limit;
}

int wsgemm_set_num_threads_local(int n_threads) {
  const int old = thread_limit;
  if (n_threads >= 0) thread_limit = n_threads;
  return old;
}

/* ---- start ------------------------------------------------------------------------------------------------------------------ */

static void set_defaults(wsgemm_handle *h) {
  atomic_store(&h->math, WSGEMM_MATH_DEFAULT);
  atomic_store(&h->policy, env_policy);
  atomic_store(&h->coarse_factor, env_coarse);
  atomic_store(&h->quantum, env_quantum);
  atomic_store(&h->check, env_check);
  atomic_store(&h->invariant, env_invariant);
}

/* Not asked for where the environment says that no such kernel may run. */
static void settle_tiles(void) {
  const bool by_name = env_kernel && ws_row(ws_row_find(env_kernel))->isa == WS_ISA_AMX;
  if (!machine.isa[WS_ISA_AMX]) return;
  if (env_isa >= WS_ISA_AMX || by_name)
    ws_cpu_ask_for_tiles(&machine);
  else
    machine.isa[WS_ISA_AMX] = false;
}

static void init_tuning(void) {
  ws_tuning_device cpu;
  ws_tune_init(env_tune);
  ws_cpu_tuning_device(process_threads, &cpu);
  ws_tune_set_device(WS_TUNE_CPU, &cpu);
}

static void init(void) {
  ws_watch_forks();
  ws_cuda_init();
  ws_cpu_detect(&machine);
  read_environment();
  settle_tiles();
  ws_registry_init(env_isa, env_kernel);
  quota_threads = count_quota();
  process_threads = tighter(tighter(tighter(WS_MAX_WORKERS, count_online()), quota_threads), env_threads);
  set_defaults(&ws_default_handle);
  init_tuning();
  atomic_store_explicit(&ws_context_ready, true, memory_order_release);
}

/* Not pthread_once: a child that was forked in the middle of it would do all again, beside what the parent had done by then. */
static pthread_mutex_t init_lock = PTHREAD_MUTEX_INITIALIZER;
static _Thread_local bool is_initialising; /* this thread; a driver that it loads may fork */

/* The loader's lock comes before ours: a constructor, which runs with that one, may call the
 * library or fork, and both take ours. So ours is free while a thread looks for a driver. A fork
 * meanwhile first looks itself: when the loader has answered, the driver is there as a whole, for
 * the child too, and other threads that look for it load nothing any more. */
static int n_searching; /* threads that look for a driver */
static _Thread_local bool is_searching;

void ws_context_lock(void) {
  WS_UNCANCELLED;
  if (is_initialising) return;
  pthread_mutex_lock(&init_lock);
  if (n_searching == 0 || is_searching) return;
  pthread_mutex_unlock(&init_lock);
  ws_cuda_find();
  pthread_mutex_lock(&init_lock);
}

void ws_context_unlock(void) {
  if (!is_initialising) pthread_mutex_unlock(&init_lock);
}

/* Of those who looked for a driver only the forking thread can be here. */
void ws_context_unlock_in_child(void) {
  n_searching = is_searching;
  ws_context_unlock();
}

/* With the lock held, before and after. */
static void find_driver(void) {
  n_searching++;
  pthread_mutex_unlock(&init_lock);
  ws_cuda_find();
  pthread_mutex_lock(&init_lock);
  n_searching--;
}

void ws_context_init_once(void) {
  WS_UNCANCELLED;
  is_searching = true; /* before the lock: the first use of a thread's variables may take the loader's, too */
  pthread_mutex_lock(&init_lock);
  if (!atomic_load_explicit(&ws_context_ready, memory_order_relaxed)) find_driver();
  is_searching = false;
  is_initialising = true;
  if (!atomic_load_explicit(&ws_context_ready, memory_order_relaxed)) init();
  is_initialising = false;
  pthread_mutex_unlock(&init_lock);
}

size_t wsgemm_machine(char *text, size_t bytes) {
  WS_UNCANCELLED;
  ws_context_init();
  ws_text t = {text, bytes, 0};
  if (bytes > 0) text[0] = '\0';
  ws_text_add(&t, "processor: %s\nfeatures: %s\n", machine.model, machine.features);
  ws_text_add(&t, "isa: %s\n", ws_isa_name(ws_row_for(&ws_default_handle, WSGEMM_F32)->isa));
  ws_text_add(&t, "caches: L1d %lld KiB, L2 %lld KiB, L3 %lld KiB (%s)\n", (long long)machine.l1d_bytes >> 10,
              (long long)machine.l2_bytes >> 10, (long long)machine.l3_bytes >> 10,
              machine.caches_measured ? "from the system" : "assumed");
  ws_text_add(&t, "affinity: %d processors\n", count_affinity());
  if (quota_threads > 0)
    ws_text_add(&t, "cgroup quota: %d processors\n", quota_threads);
  else
    ws_text_add(&t, "cgroup quota: none\n");
  ws_text_add(&t, "threads: %d (the least of affinity%s%s)\n", wsgemm_default_num_threads(),
              quota_threads > 0 ? ", cgroup quota" : "", env_threads > 0 ? ", WSGEMM_NUM_THREADS" : "");
  ws_text_add(&t, "units: %d (of tuning; affinity apart)\n", process_threads);
  ws_cuda_describe(&t);
  ws_text_add(&t, "%s", env_report);
  return t.length;
}

/* ---- handles ---------------------------------------------------------------------------------------------------------------- */

wsgemm_status wsgemm_create(wsgemm_handle **out) {
  if (!out) return ws_fail(NULL, WSGEMM_INVALID_POINTER, "out is NULL");
  ws_context_init();
  wsgemm_handle *h = calloc(1, sizeof *h);
  if (!h) return ws_fail(NULL, WSGEMM_ALLOC_FAILED, "no memory for a handle of %zu bytes", sizeof *h);
  set_defaults(h);
  atomic_store(&h->magic, WS_HANDLE_MAGIC);
  *out = h;
  return WSGEMM_SUCCESS;
}

wsgemm_status ws_fail_handle(void) {
  return ws_fail(NULL, WSGEMM_INVALID_HANDLE, "h was not made by wsgemm_create, or is already destroyed");
}

wsgemm_status wsgemm_destroy(wsgemm_handle *h) {
  if (!h) return WSGEMM_SUCCESS;
  if (!ws_handle(h)) return ws_fail_handle();
  atomic_store(&h->magic, 0);
  free(h);
  return WSGEMM_SUCCESS;
}

static wsgemm_status set_int(wsgemm_handle *h, _Atomic int *field, const char *name, int value, int least, int most) {
  if (value < least || value > most)
    return ws_fail(h, WSGEMM_INVALID_VALUE, "%s is %d; it must be %d .. %d", name, value, least, most);
  atomic_store(field, value);
  return WSGEMM_SUCCESS;
}

static wsgemm_status get_int(wsgemm_handle *h, const _Atomic int *field, const char *name, int *value) {
  if (!value) return ws_fail(h, WSGEMM_INVALID_POINTER, "%s is NULL", name);
  *value = atomic_load(field);
  return WSGEMM_SUCCESS;
}

wsgemm_status wsgemm_set_num_threads(wsgemm_handle *h, int n_threads) {
  if (!(h = ws_handle(h))) return ws_fail_handle();
  return set_int(h, &h->n_threads, "n_threads", n_threads, 0, WS_MAX_WORKERS);
}

wsgemm_status wsgemm_get_num_threads(wsgemm_handle *h, int *n_threads) {
  if (!(h = ws_handle(h))) return ws_fail_handle();
  return get_int(h, &h->n_threads, "n_threads", n_threads);
}

wsgemm_status wsgemm_set_policy(wsgemm_handle *h, wsgemm_policy policy) {
  if (!(h = ws_handle(h))) return ws_fail_handle();
  return set_int(h, &h->policy, "policy", (int)policy, WSGEMM_POLICY_AUTO, WSGEMM_POLICY_FOREACH);
}

wsgemm_status wsgemm_get_policy(wsgemm_handle *h, wsgemm_policy *policy) {
  int value = 0;
  if (!(h = ws_handle(h))) return ws_fail_handle();
  const wsgemm_status status = get_int(h, &h->policy, "policy", policy ? &value : NULL);
  if (policy) *policy = (wsgemm_policy)value;
  return status;
}

wsgemm_status wsgemm_set_coarse_factor(wsgemm_handle *h, int coarse_factor) {
  if (!(h = ws_handle(h))) return ws_fail_handle();
  return set_int(h, &h->coarse_factor, "coarse_factor", coarse_factor, 0, WS_COARSE_MAX);
}

wsgemm_status wsgemm_get_coarse_factor(wsgemm_handle *h, int *coarse_factor) {
  if (!(h = ws_handle(h))) return ws_fail_handle();
  return get_int(h, &h->coarse_factor, "coarse_factor", coarse_factor);
}

wsgemm_status wsgemm_set_quantum(wsgemm_handle *h, int quantum) {
  if (!(h = ws_handle(h))) return ws_fail_handle();
  return set_int(h, &h->quantum, "quantum", quantum, 0, WS_QUANTUM_MAX);
}

wsgemm_status wsgemm_get_quantum(wsgemm_handle *h, int *quantum) {
  if (!(h = ws_handle(h))) return ws_fail_handle();
  return get_int(h, &h->quantum, "quantum", quantum);
}

wsgemm_status wsgemm_set_math(wsgemm_handle *h, wsgemm_math math) {
  if (!(h = ws_handle(h))) return ws_fail_handle();
  return set_int(h, &h->math, "math", (int)math, WSGEMM_MATH_DEFAULT, WSGEMM_MATH_TF32);
}

wsgemm_status wsgemm_get_math(wsgemm_handle *h, wsgemm_math *math) {
  int value = 0;
  if (!(h = ws_handle(h))) return ws_fail_handle();
  const wsgemm_status status = get_int(h, &h->math, "math", math ? &value : NULL);
  if (math) *math = (wsgemm_math)value;
  return status;
}

wsgemm_status wsgemm_set_kernel(wsgemm_handle *h, const char *name) {
  if (!(h = ws_handle(h))) return ws_fail_handle();
  if (!name || !*name) {
    for (int type = 0; type < WS_N_TYPES; type++) atomic_store(&h->kernel[type], 0), atomic_store(&h->cuda_kernel[type], 0);
    return WSGEMM_SUCCESS;
  }
  const int row = ws_row_find(name), cuda_row = row < 0 ? ws_cuda_kernel_find(name) : -1;
  if (cuda_row >= 0) {
    if (!ws_cuda_may_have_devices)
      return ws_fail(h, WSGEMM_NOT_SUPPORTED, "kernel %s needs a GPU, which this machine lacks", name);
    atomic_store(&h->cuda_kernel[ws_cuda_kernel_type(cuda_row)], cuda_row + 1);
    return WSGEMM_SUCCESS;
  }
  if (row < 0) return ws_fail(h, WSGEMM_INVALID_VALUE, "name is \"%.60s\"; no kernel row is called so", name);
  if (!ws_row_usable(row))
    return ws_fail(h, WSGEMM_NOT_SUPPORTED, "kernel %s needs %s, which this machine lacks", name, ws_isa_name(ws_row(row)->isa));
  atomic_store(&h->kernel[ws_row(row)->type], row + 1);
  return WSGEMM_SUCCESS;
}

wsgemm_status wsgemm_set_stream(wsgemm_handle *h, void *stream) {
  if (!(h = ws_handle(h))) return ws_fail_handle();
  atomic_store(&h->stream, stream);
  return WSGEMM_SUCCESS;
}

wsgemm_status wsgemm_get_stream(wsgemm_handle *h, void **stream) {
  if (!(h = ws_handle(h))) return ws_fail_handle();
  if (!stream) return ws_fail(h, WSGEMM_INVALID_POINTER, "stream is NULL");
  *stream = atomic_load(&h->stream);
  return WSGEMM_SUCCESS;
}

wsgemm_status wsgemm_set_workspace(wsgemm_handle *h, void *workspace, size_t bytes) {
  WS_UNCANCELLED;
  if (!(h = ws_handle(h))) return ws_fail_handle();
  if (!workspace && bytes > 0) return ws_fail(h, WSGEMM_INVALID_POINTER, "workspace is NULL, but bytes is %zu", bytes);
  if (!ws_cuda_may_have_devices) return workspace ? ws_fail(h, WSGEMM_NO_DEVICE, "there is no GPU driver") : WSGEMM_SUCCESS;
  return ws_cuda_set_workspace(h, workspace, bytes);
}

wsgemm_status wsgemm_get_fallback_count(wsgemm_handle *h, int device, int64_t *count) {
  WS_UNCANCELLED;
  if (!(h = ws_handle(h))) return ws_fail_handle();
  if (!count) return ws_fail(h, WSGEMM_INVALID_POINTER, "count is NULL");
  if (device < 0) return ws_fail(h, WSGEMM_INVALID_VALUE, "device is %d; it must be at least 0", device);
  *count = 0;
  return ws_cuda_may_have_devices ? ws_cuda_fallback_count(h, device, count) : WSGEMM_SUCCESS;
}

wsgemm_status wsgemm_set_check(wsgemm_handle *h, int enabled) {
  if (!(h = ws_handle(h))) return ws_fail_handle();
  return set_int(h, &h->check, "enabled", enabled, 0, 1);
}

wsgemm_status wsgemm_get_check(wsgemm_handle *h, int *enabled) {
  if (!(h = ws_handle(h))) return ws_fail_handle();
  return get_int(h, &h->check, "enabled", enabled);
}

wsgemm_status wsgemm_set_invariant(wsgemm_handle *h, int enabled) {
  if (!(h = ws_handle(h))) return ws_fail_handle();
  return set_int(h, &h->invariant, "enabled", enabled, 0, 1);
}

wsgemm_status wsgemm_get_invariant(wsgemm_handle *h, int *enabled) {
  if (!(h = ws_handle(h))) return ws_fail_handle();
  return get_int(h, &h->invariant, "enabled", enabled);
}

wsgemm_status wsgemm_set_logger(wsgemm_handle *h, wsgemm_logger logger, void *user) {
  if (!(h = ws_handle(h))) return ws_fail_handle();
  ws_settings_lock();
  h->logger = (ws_logger){logger, user};
  ws_settings_unlock();
  return WSGEMM_SUCCESS;
}
