/* faults.h - calls of the system that a suite lets fail, one after the other, and counts. The suite is
 * linked with faults.c and with --wrap for each function of it, and with the library's objects, so
 * that every call that the library makes by name comes through here. */
#ifndef WSGEMM_TESTS_FAULTS_H
#define WSGEMM_TESTS_FAULTS_H

#include <stdbool.h>
#include <stddef.h>

#include "wsgemm.h"

/* X(kind): MALLOC is all of its kin. LOCK and DLSYM, which takes the loader's lock, are counted, never
 * refused. */
#define FAULT_KINDS(X) X(MALLOC) X(MMAP) X(MUNMAP) X(MADVISE) X(THREAD) X(LOCK) X(DLSYM)
#define FAULT_KIND_ENUM(name) KIND_##name,
enum fault_kind { FAULT_KINDS(FAULT_KIND_ENUM) N_FAULT_KINDS };
#undef FAULT_KIND_ENUM
extern const char *const fault_kind_names[N_FAULT_KINDS];

/* Between these, calls count, and fail as they are asked to. */
void faults_watch(void);
void faults_ignore(void);

/* Calls of a kind by number, from 1, while they are watched; (kind, 0, 0): none. */
void faults_fail(enum fault_kind kind, int first, int last);
int faults_count(enum fault_kind kind);
void faults_count_anew(void);
/* Fails the suite for each kind of which there has been a call. what: for the message. */
void faults_expect_none(const char *what);

/* Zeros that a forked child shares with its parent. */
void *faults_shared(size_t bytes);

/* A fault to be tried in a child, which sets *is_harmless if its run made fewer than `first` such
 * calls. */
struct fault {
  enum fault_kind kind;
  int first, last;
  bool *is_harmless; /* shared with the parent */
  const void *of;    /* the suite's */
};

/* Fails the 1st, 2nd, .. call of a kind until a run gets by without it; or (all) all calls at once.
 * Returns how many faults there were. */
int faults_try_each(enum fault_kind kind, bool all, void (*child)(void *fault), const void *of);
/* Fails the suite if no call of a kind that is used was ever made, so that none failed. */
void faults_expect_some(enum fault_kind kind, int n_faults, bool is_used_at_all);

/* What a call may answer under a fault: SUCCESS, whose result is then to be judged (true), or
 * ALLOC_FAILED with everything untouched. */
bool fault_is_survived(const struct fault *fault, wsgemm_status status, bool is_untouched, const char *what);

#endif
