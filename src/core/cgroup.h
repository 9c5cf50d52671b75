/* cgroup.h - limits of the cgroups (version 2) that this process is in. */
#ifndef WS_CGROUP_H
#define WS_CGROUP_H

/* The least of what `value` makes of the first line of a file of cgroups (version 2), such as
 * "memory.max", in this process's cgroup and those above it. value: HUGE_VAL for no limit.
 * HUGE_VAL: there is none. */
double ws_cgroup_least(const char *file, double (*value)(const char *text)); /* cgroup.c */
#endif
