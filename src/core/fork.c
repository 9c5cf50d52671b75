/* fork.c - carries the library over fork(): every lock is held while the process is copied, so that the child finds each free and what it
 * guards whole.
 *
 * The handlers are registered as the library is loaded, so once, and before any fork that could meet a lock. Registered on the first call,
 * they could be there twice (a fork or a cancel in the middle of that call) or be missed by a fork that has already begun. Locks of devices
 * are not here: in the child the GPU is lost (cuda/host/driver.c), and they are not taken. */
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

#include "core/internal.h"
#include "cpu/threads.h"
#include "cpu/workspace.h"
#include "cuda/host/backend.h"
#include "tune/tuning.h"

/* In the order in which they are taken: the first call reads the tuning file with the lock of the context. */
static const struct {
  void (*lock)(void), (*unlock)(void), (*unlock_in_child)(void);
} locks[] = {
    {ws_context_lock, ws_context_unlock, ws_context_unlock_in_child},
    {ws_tune_lock, ws_tune_unlock, ws_tune_unlock},
    {ws_pool_lock, ws_pool_unlock, ws_pool_unlock_in_child},
    {ws_workspace_lock, ws_workspace_unlock, ws_workspace_unlock},
    {ws_settings_lock, ws_settings_unlock, ws_settings_unlock},
};
enum { N_LOCKS = sizeof locks / sizeof locks[0] };

static void before_fork(void) {
  for (int i = 0; i < N_LOCKS; i++) locks[i].lock();
}

static void after_fork_parent(void) {
  for (int i = N_LOCKS - 1; i >= 0; i--) locks[i].unlock();
}

static void after_fork_child(void) {
  ws_cuda_forked();
  for (int i = N_LOCKS - 1; i >= 0; i--) locks[i].unlock_in_child();
}

/* The first call tries again what failed for want of memory. 101: before constructors of the program's own, which may call the library. */
__attribute__((constructor(101))) void ws_watch_forks(void) {
  static bool is_watching;
  if (!is_watching) is_watching = pthread_atfork(before_fork, after_fork_parent, after_fork_child) == 0;
}
