/* library.c - puts the layers together: the table of backends, the first call, and forks. The one
 * file that knows every layer.
 *
 * Fork: every lock is held while the process is copied, so that the child finds each free and what
 * it guards whole. The handlers are registered as the library is loaded, so once, and before any
 * fork that could meet a lock. Registered on the first call, they could be there twice (a fork or a
 * cancel in the middle of that call) or be missed by a fork that has already begun. Locks of
 * devices are not here: in the child the GPU is lost (cuda/host/driver.c), and they are not
 * taken. */
#include <pthread.h>

#include "core/backend.h"
#include "core/cancel.h"
#include "core/environment.h"
#include "core/processors.h"
#include "core/start.h"
#include "cpu/backend.h"
#include "cpu/room.h"
#include "cpu/threads.h"
#include "cpu/workspace.h"
#include "tune/tuning.h"
#ifdef WS_WITH_CUDA
#include "cuda/host/backend.h"
#endif

const ws_backend *const ws_backends[WS_N_BACKENDS] = {[WS_CPU] = &ws_cpu_backend,
#ifdef WS_WITH_CUDA
                                                      [WS_CUDA] = &ws_cuda_backend
#endif
};
const ws_backend *ws_devices;
_Atomic bool ws_is_started;

/* ---- forks ----------------------------------------------------------------------------------- */

/* Not pthread_once: a child that was forked in the middle of the first call would do all again,
 * beside what the parent had done by then. */
static pthread_mutex_t start_lock = PTHREAD_MUTEX_INITIALIZER;
static _Thread_local bool is_starting; /* this thread; a driver that it loads may fork */

/* The loader's lock comes before ours: a constructor, which runs with that one, may call the
 * library or fork, and both take ours. So ours is free while a thread looks for a driver. A fork
 * meanwhile first looks itself: when the loader has answered, the driver is there as a whole, for
 * the child too, and other threads that look for it load nothing any more. */
static int n_searching; /* threads that look for a driver */
static _Thread_local bool is_searching;

static void look_for_devices(void) {
  if (ws_backends[WS_CUDA]) ws_backends[WS_CUDA]->find();
}

static void lock_start(void) {
  WS_UNCANCELLED;
  if (is_starting) return;
  pthread_mutex_lock(&start_lock);
  if (n_searching == 0 || is_searching) return;
  pthread_mutex_unlock(&start_lock);
  look_for_devices();
  pthread_mutex_lock(&start_lock);
}

static void unlock_start(void) {
  if (!is_starting) pthread_mutex_unlock(&start_lock);
}

/* Of those who looked for a driver only the forking thread can be here. */
static void unlock_start_in_child(void) {
  n_searching = is_searching;
  unlock_start();
}

/* In the order in which they are taken: the first call reads the tuning file with the start's lock
 * held. */
static const struct {
  void (*lock)(void), (*unlock)(void), (*unlock_in_child)(void);
} locks[] = {
    {lock_start, unlock_start, unlock_start_in_child},       {ws_tune_lock, ws_tune_unlock, ws_tune_unlock},
    {ws_pool_lock, ws_pool_unlock, ws_pool_unlock_in_child}, {ws_workspace_lock, ws_workspace_unlock, ws_workspace_unlock},
    {ws_room_lock, ws_room_unlock, ws_room_unlock_in_child}, {ws_settings_lock, ws_settings_unlock, ws_settings_unlock},
};
enum { N_LOCKS = sizeof locks / sizeof locks[0] };

static void before_fork(void) {
  for (int i = 0; i < N_LOCKS; i++) locks[i].lock();
}

static void after_fork_parent(void) {
  for (int i = N_LOCKS - 1; i >= 0; i--) locks[i].unlock();
}

static void after_fork_child(void) {
  if (ws_backends[WS_CUDA]) ws_backends[WS_CUDA]->forked();
  for (int i = N_LOCKS - 1; i >= 0; i--) locks[i].unlock_in_child();
}

/* The first call tries again what failed for want of memory. 101: before constructors of the
 * program's own, which may call the library. */
__attribute__((constructor(101))) static void watch_forks(void) {
  static bool is_watching;
  if (!is_watching) is_watching = pthread_atfork(before_fork, after_fork_parent, after_fork_child) == 0;
}

/* ---- the first call -------------------------------------------------------------------------- */

static void start(void) {
  static const ws_environment_readers readers = {ws_rows_take_isa, ws_rows_take_kernel, ws_machine_take_caches};
  watch_forks();
  const bool has_driver = ws_backends[WS_CUDA] && ws_backends[WS_CUDA]->start();
  ws_machine_detect();
  ws_environment_read(&readers);
  ws_rows_init();
  const ws_environment *environment = ws_environment_get();
  ws_processors_init(environment->n_threads);
  ws_default_settings = environment->settings;
  ws_default_devices = environment->devices;
  atomic_store(&ws_default_handle.settings, ws_default_settings);
  atomic_store(&ws_default_handle.devices, ws_default_devices);
  ws_tuning_device cpu;
  ws_tune_init(environment->tune);
  ws_cpu_tuning_device(ws_processors_get()->threads, &cpu);
  ws_tune_set_device(WS_TUNE_CPU, &cpu);
  if (has_driver) ws_devices = ws_backends[WS_CUDA];
  atomic_store_explicit(&ws_is_started, true, memory_order_release);
}

/* With the lock held, before and after. */
static void find_devices(void) {
  n_searching++;
  pthread_mutex_unlock(&start_lock);
  look_for_devices();
  pthread_mutex_lock(&start_lock);
  if (n_searching > 0) n_searching--; /* 0: in a child that the search itself has forked */
}

void ws_start_once(void) {
  WS_UNCANCELLED;
  const bool is_nested = is_searching; /* a driver's constructor may call the library */
  /* before the lock: the first use of a thread's variables may take the loader's, too */
  is_searching = true;
  pthread_mutex_lock(&start_lock);
  if (!atomic_load_explicit(&ws_is_started, memory_order_relaxed)) find_devices();
  is_searching = is_nested;
  is_starting = true;
  if (!atomic_load_explicit(&ws_is_started, memory_order_relaxed)) start();
  is_starting = false;
  pthread_mutex_unlock(&start_lock);
}
