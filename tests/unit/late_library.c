/* late_library.c - a library that test_loader.c loads; its constructor does what LATE_LIBRARY says: "multiply", in a thread that it waits for,
 * or "wait": it writes a byte to the first of the files LATE_LIBRARY_FDS, and waits for one from the second. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "wsgemm.h"

static void *multiply(void *unused) {
  enum { SIDE = 300 };
  static float x[SIDE * SIDE], c[SIDE * SIDE];
  (void)unused;
  wsgemm_set_num_threads(NULL, 3);
  wsgemm_sgemm(NULL, WSGEMM_COL_MAJOR, WSGEMM_NO_TRANS, WSGEMM_NO_TRANS, SIDE, SIDE, SIDE, 1, x, SIDE, x, SIDE, 0, c, SIDE);
  return NULL;
}

__attribute__((constructor)) static void construct(void) {
  const char *task = getenv("LATE_LIBRARY"), *files = getenv("LATE_LIBRARY_FDS");
  pthread_t thread;
  int there, go;
  char byte = 0;
  if (task && strcmp(task, "multiply") == 0 && pthread_create(&thread, NULL, multiply, NULL) == 0) pthread_join(thread, NULL);
  if (task && strcmp(task, "wait") == 0 && files && sscanf(files, "%d %d", &there, &go) == 2 &&
      (write(there, &byte, 1) != 1 || read(go, &byte, 1) != 1))
    abort();
}
