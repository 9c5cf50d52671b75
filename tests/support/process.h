/* process.h - what the suites ask of the process they run in: its threads, its affinity, its vector
 * control register. */
#ifndef WSGEMM_TESTS_PROCESS_H
#define WSGEMM_TESTS_PROCESS_H

#include "check.h"

#include <sys/types.h>

/* Threads of this process by /proc/self/task; -1 if the system does not say. */
int process_n_threads(void);

/* Starts and ends a thread: a sanitizer's own helper thread comes with the first one, and would be
 * counted as the library's. */
void process_start_first_thread(void);

/* Whether a thread of this process waits in a system call. */
bool process_thread_is_asleep(pid_t thread);

/* Processors that this thread may run on. */
int process_n_processors(void);

/* Leaves this thread on n of its processors; false if it has fewer or the system refuses. */
bool process_keep_processors(int n);

/* Whether a child forked beside other threads may allocate: the sanitizers' own allocators may be
 * left locked. */
bool process_may_fork_beside_threads(void);

/* Runs call(argument) in a thread that has a cancel pending: it must come back, and the cancel then
 * take effect. */
void process_check_cancelled(void (*call)(void *argument), void *argument);

/* Control register of the vector unit: rounding, flush-to-zero, denormals-are-zero, masks; without
 * the exception flags. */
unsigned long long process_control_register(void);
void process_flush_to_zero(bool enabled);

#endif
