/* late_library.c - a library that test_loader.c loads. Its constructor does what LATE_LIBRARY says:
 *   join   multiplies in a thread that it waits for
 *   wait   writes a byte to the first of the files LATE_LIBRARY_FDS, and waits for one from the
 *          second
 *   call   the same, then multiplies
 *   fork   the same, then forks a child that multiplies, and waits for it */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "wsgemm.h"

enum { SIDE = 300, HANG_S = 50 };

static void *multiply(void *unused) {
  static float x[SIDE * SIDE], c[SIDE * SIDE];
  x[0] = 2;
  wsgemm_set_num_threads(NULL, 3);
  if (wsgemm_sgemm(NULL, WSGEMM_COL_MAJOR, WSGEMM_NO_TRANS, WSGEMM_NO_TRANS, SIDE, SIDE, SIDE, 1, x, SIDE, x, SIDE, 0, c, SIDE) !=
          WSGEMM_SUCCESS ||
      c[0] != 4)
    abort();
  return unused;
}

static void join(void) {
  pthread_t thread;
  if (pthread_create(&thread, NULL, multiply, NULL) != 0) abort();
  pthread_join(thread, NULL);
}

static void wait_for_byte(void) {
  const char *files = getenv("LATE_LIBRARY_FDS");
  int there, go;
  char byte = 0;
  if (!files || sscanf(files, "%d %d", &there, &go) != 2 || write(there, &byte, 1) != 1 || read(go, &byte, 1) != 1) abort();
}

static void fork_child(void) {
  int status = -1;
  const pid_t child = fork();
  if (child == 0) {
    alarm(HANG_S);
    multiply(NULL);
    _exit(0);
  }
  if (child < 0 || waitpid(child, &status, 0) != child || status != 0) abort();
}

__attribute__((constructor)) static void construct(void) {
  const char *task = getenv("LATE_LIBRARY");
  if (!task) return;
  if (strcmp(task, "join") == 0)
    join();
  else
    wait_for_byte();
  if (strcmp(task, "call") == 0) multiply(NULL);
  if (strcmp(task, "fork") == 0) fork_child();
}
