/* cgroup.c - limits of the cgroups (version 2) that this process is in. */
#define _GNU_SOURCE
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/cgroup.h"

/* The folder of this process's cgroup: "/outer/inner"; "" if there is none. */
static void find_folder(char *folder, size_t bytes) {
  char line[400];
  FILE *f = fopen("/proc/self/cgroup", "re");
  *folder = '\0';
  while (f && fgets(line, sizeof line, f))
    if (strncmp(line, "0::", 3) == 0) snprintf(folder, bytes, "%.*s", (int)strcspn(line + 3, "\n"), line + 3);
  if (f) fclose(f);
}

static double limit_in(const char *folder, const char *file, double (*value)(const char *text)) {
  char path[512], text[64];
  if (snprintf(path, sizeof path, "/sys/fs/cgroup%s/%s", folder, file) >= (int)sizeof path) return HUGE_VAL;
  FILE *f = fopen(path, "re");
  if (!f) return HUGE_VAL;
  const double limit = fgets(text, sizeof text, f) ? value(text) : HUGE_VAL;
  fclose(f);
  return limit;
}

double ws_cgroup_least(const char *file, double (*value)(const char *text)) {
  char folder[400];
  double least = HUGE_VAL;
  find_folder(folder, sizeof folder);
  for (;;) { /* from the innermost up to the root */
    least = fmin(least, limit_in(strcmp(folder, "/") == 0 ? "" : folder, file, value));
    char *slash = strrchr(folder, '/');
    if (!slash) return least;
    *slash = '\0';
  }
}
