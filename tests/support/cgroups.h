/* cgroups.h - cgroups (version 2) of a test's own: files over /proc/self/cgroup and /sys/fs/cgroup,
 * in a mount namespace of its own. */
#ifndef CGROUPS_H
#define CGROUPS_H

#include <stdbool.h>

/* For this process from now on: three nested cgroups, of which it is in the innermost, have this
 * text in `file` ("cpu.max"); NULL: no such file. false: not permitted. */
bool cgroups_enter(const char *file, const char *root, const char *outer, const char *inner);
/* Whether a child may. */
bool cgroups_can_enter(void);

#endif
