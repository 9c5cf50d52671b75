/* cgroups.c - see cgroups.h. */
#define _GNU_SOURCE
#include "cgroups.h"

#include <sched.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static bool write_file(const char *folder, const char *name, const char *text) {
  char path[128];
  snprintf(path, sizeof path, "/sys/fs/cgroup/%s%s", folder, name);
  FILE *file = text ? fopen(path, "w") : NULL;
  const bool good = file && fputs(text, file) >= 0;
  return !text || (file && fclose(file) == 0 && good);
}

bool cgroups_enter(const char *file, const char *root, const char *outer, const char *inner) {
  return unshare(CLONE_NEWNS) == 0 && mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 &&
         mount("none", "/sys/fs/cgroup", "tmpfs", 0, NULL) == 0 && mkdir("/sys/fs/cgroup/outer", 0755) == 0 &&
         mkdir("/sys/fs/cgroup/outer/inner", 0755) == 0 && write_file("", "self", "1:cpu:/\n0::/outer/inner\n") &&
         mount("/sys/fs/cgroup/self", "/proc/self/cgroup", NULL, MS_BIND, NULL) == 0 && write_file("", file, root) &&
         write_file("outer/", file, outer) && write_file("outer/inner/", file, inner);
}

bool cgroups_can_enter(void) {
  fflush(NULL);
  const pid_t child = fork();
  if (child == 0) _exit(cgroups_enter("cpu.max", NULL, NULL, NULL) ? 0 : 1);
  int status = -1;
  return child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}
