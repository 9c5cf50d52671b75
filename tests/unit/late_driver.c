/* late_driver.c - a libcuda.so.1 without entry points, for test_driver_load.c. Its constructor does
 * what LATE_DRIVER says; then the driver is whole.
 *   wait     writes a byte to the first of the files LATE_DRIVER_FDS, and waits for one from the
 *            second
 *   fork     forks
 *   cancel   lets a cancel act that is pending */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int late_driver_is_whole, late_driver_child;

static void wait_for_byte(void) {
  const char *files = getenv("LATE_DRIVER_FDS");
  int there, go;
  char byte = 0;
  if (!files || sscanf(files, "%d %d", &there, &go) != 2 || write(there, &byte, 1) != 1 || read(go, &byte, 1) != 1) abort();
}

__attribute__((constructor)) static void construct(void) {
  const char *task = getenv("LATE_DRIVER");
  if (task && strcmp(task, "wait") == 0) wait_for_byte();
  if (task && strcmp(task, "fork") == 0) late_driver_child = fork();
  if (task && strcmp(task, "cancel") == 0) pthread_testcancel();
  late_driver_is_whole = 1;
}
