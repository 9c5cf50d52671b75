/* test_tuning_faults.c - files of tuning entries where the system fails, or a writer is killed, at
 * each of its calls in turn: a file is the old or the new one.
 *
 * Linked with --wrap for the system calls below (CMakeLists.txt), so that those of the library can
 * be counted, failed, and be the last thing that a process does. */
#define _GNU_SOURCE
#include "support/folder.h"
#include "support/tuning_case.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* ---- the system's calls ---------------------------------------------------------------------- */

#define CALLS(X) X(mkdir) X(flock) X(open) X(fchmod) X(write) X(fsync) X(close) X(rename)
#define CALL_ENUM(name) CALL_##name,
enum call { CALLS(CALL_ENUM) N_CALLS };
#undef CALL_ENUM
#define CALL_NAME(name) #name,
static const char *const call_names[] = {CALLS(CALL_NAME)};
#undef CALL_NAME

enum { MOST_CALLS = 64 };
static struct {
  bool is_watching, writes_short;
  int killed_at, failed_at, failure; /* by number, from 1; 0: none. The errno */
  int n;
  enum call log[MOST_CALLS];
} calls;

/* Whether another holds the lock: then time passes only while somebody waits. released_at_s: when
 * it is given back; 0: never. */
static bool is_lock_held;
static int holder = -1;
static double slept_s, released_at_s;

static bool should_fail(enum call call) {
  if (!calls.is_watching) return false;
  if (calls.n < MOST_CALLS) calls.log[calls.n] = call;
  calls.n++;
  if (calls.n == calls.killed_at) raise(SIGKILL);
  if (calls.n != calls.failed_at) return false;
  errno = calls.failure;
  return true;
}

int __real_mkdir(const char *path, mode_t mode);
int __real_flock(int fd, int operation);
int __real_open(const char *path, int flags, ...);
int __real_fchmod(int fd, mode_t mode);
ssize_t __real_write(int fd, const void *bytes, size_t n);
int __real_fsync(int fd);
int __real_close(int fd);
int __real_rename(const char *from, const char *to);
int __wrap_mkdir(const char *path, mode_t mode);
int __wrap_flock(int fd, int operation);
int __wrap_open(const char *path, int flags, ...);
int __wrap_fchmod(int fd, mode_t mode);
ssize_t __wrap_write(int fd, const void *bytes, size_t n);
int __wrap_fsync(int fd);
int __wrap_close(int fd);
int __wrap_rename(const char *from, const char *to);

int __wrap_mkdir(const char *path, mode_t mode) { return should_fail(CALL_mkdir) ? -1 : __real_mkdir(path, mode); }
int __wrap_open(const char *path, int flags, ...) {
  va_list more;
  va_start(more, flags);
  const mode_t mode = flags & O_CREAT ? va_arg(more, mode_t) : 0;
  va_end(more);
  return should_fail(CALL_open) ? -1 : __real_open(path, flags, mode);
}
int __wrap_flock(int fd, int operation) {
  const bool may_wait = !(operation & (LOCK_NB | LOCK_UN));
  if (should_fail(CALL_flock)) return -1;
  if (is_lock_held && !CHECK(!may_wait, "a wait without an end")) {
    errno = EDEADLK;
    return -1;
  }
  return __real_flock(fd, operation);
}
int __wrap_fchmod(int fd, mode_t mode) { return should_fail(CALL_fchmod) ? -1 : __real_fchmod(fd, mode); }
ssize_t __wrap_write(int fd, const void *bytes, size_t n) {
  if (should_fail(CALL_write)) return -1;
  return __real_write(fd, bytes, calls.writes_short && n > 100 ? 100 : n);
}
int __wrap_fsync(int fd) { return should_fail(CALL_fsync) ? -1 : __real_fsync(fd); }
int __wrap_close(int fd) { /* as on Linux: closed, whatever it says */
  const bool fails = should_fail(CALL_close);
  const int why = errno, status = __real_close(fd);
  if (fails) errno = why;
  return fails ? -1 : status;
}
int __wrap_rename(const char *from, const char *to) { return should_fail(CALL_rename) ? -1 : __real_rename(from, to); }

int __real_nanosleep(const struct timespec *time, struct timespec *left);
int __real_clock_gettime(clockid_t clock, struct timespec *time);
int __wrap_nanosleep(const struct timespec *time, struct timespec *left);
int __wrap_clock_gettime(clockid_t clock, struct timespec *time);

int __wrap_nanosleep(const struct timespec *time, struct timespec *left) {
  if (!is_lock_held) return __real_nanosleep(time, left);
  slept_s += (double)time->tv_sec + (double)time->tv_nsec * 1e-9;
  if (released_at_s > 0 && slept_s > released_at_s) __real_flock(holder, LOCK_UN);
  REQUIRE(slept_s < 1e4, "still waiting for the lock");
  return 0;
}
int __wrap_clock_gettime(clockid_t clock, struct timespec *time) {
  if (!is_lock_held) return __real_clock_gettime(clock, time);
  *time = (struct timespec){(time_t)slept_s, (long)(1e9 * (slept_s - floor(slept_s)))};
  return 0;
}

/* ---- cases ---------------------------------------- */

/* At each of its calls in turn: afterwards the file is the old or the new one. */
/* All in the folder whose name begins so is of two minutes ago. */
static void make_old(const char *folder, const char *start) {
  char path[PATH_BYTES];
  struct timespec times[2] = {{0, UTIME_NOW}, {time(NULL) - 120, 0}};
  DIR *entries = opendir(folder);
  REQUIRE(entries != NULL, "%s", folder);
  for (const struct dirent *e; (e = readdir(entries));)
    if (strncmp(e->d_name, start, strlen(start)) == 0)
      CHECK(utimensat(AT_FDCWD, folder_path(path, folder, e->d_name), times, AT_SYMLINK_NOFOLLOW) == 0, "%s", path);
  closedir(entries);
}

static void killed_at_each_call(void) {
  char folder[PATH_BYTES], path[PATH_BYTES], inner[PATH_BYTES];
  const ws_tuning_entry old = tuning_of_writer(1, 1), new = tuning_of_writer(1, 2);
  int n_killed = 0, n_old = 0, n_new = 0;
  folder_make(folder);
  folder_path(path, folder, "deep/er/tuning");
  for (int status = SIGKILL; status == SIGKILL;) {
    CHECK(ws_tuning_file_merge(path, NULL) && tuning_merge(path, &old), "merge: %s", strerror(errno));
    fflush(NULL);
    const pid_t child = fork();
    REQUIRE(child >= 0, "fork");
    if (child == 0) {
      calls.killed_at = n_killed + 1, calls.is_watching = true;
      _exit(!tuning_merge(path, &new));
    }
    REQUIRE(waitpid(child, &status, 0) == child && (status == 0 || status == SIGKILL), "waitpid: %#x", (unsigned)status);
    n_killed += status == SIGKILL;
    const int n = tuning_file_count(path);
    CHECK((n == 1 || n == 2) && tuning_file_has(path, &old) && (n == 1 || tuning_file_has(path, &new)) &&
              tuning_file_is_unlocked(path),
          "killed at call %d: %d entries", n_killed, n);
    if (n == 1) n_old++;
    if (n == 2) n_new++;
  }
  folder_path(inner, folder, "deep/er");
  const int n_left = folder_count(inner, "tuning.tmp-");
  CHECK(n_left >= 3, "%d temporary files of writers that were killed", n_left);
  CHECK(tuning_merge(path, &new) && folder_count(inner, "tuning.tmp-") == n_left, "a writer's file that is new is gone");
  make_old(inner, "tuning.tmp-");
  CHECK(tuning_merge(path, &new) && folder_count(inner, "") == 4, "%d files and folders are left", folder_count(inner, ""));
  CHECK(n_killed >= 8 && n_old >= 5 && n_new >= 2, "killed %d times, %d old files and %d new ones", n_killed, n_old, n_new);
  folder_remove(folder);
}

/* What only looks like a dead writer's file stays, however old. */
static void files_of_others(void) {
  static const char *const names[] = {"tuning.tmp-12-34x", "tuning.tmp-12",   "tuning.tmp--3",      "tuning.tmp-",
                                      "tuning.12.34",      "other.tmp-12-34", "tuning.tmp-1-2.bak", "tuning2.tmp-1-2"};
  enum { N = sizeof names / sizeof names[0] };
  char folder[PATH_BYTES], path[PATH_BYTES], name[PATH_BYTES];
  const ws_tuning_entry e = tuning_of_writer(1, 1);
  folder_make(folder);
  for (int i = 0; i < N; i++) file_write(folder_path(name, folder, names[i]), "x", 1);
  REQUIRE(mkdir(folder_path(name, folder, "tuning.tmp-1-1"), 0700) == 0 &&
              symlink(names[0], folder_path(name, folder, "tuning.tmp-2-2")) == 0 &&
              link(folder_path(path, folder, names[4]), folder_path(name, folder, "tuning.tmp-3-3")) == 0,
          "%s", strerror(errno));
  file_write(folder_path(name, folder, "tuning.tmp-4-4"), "x", 1); /* but this is one */
  make_old(folder, "");
  CHECK(tuning_merge(folder_path(path, folder, "tuning"), &e) && folder_count(folder, "") == 2 + N + 3 + 2, "%d entries",
        folder_count(folder, ""));
  folder_remove(folder);
}

/* ---- a system that fails --------------------------------------------------------------------- */

static int first_of(enum call call, int from) {
  while (from < calls.n && calls.log[from] != call) from++;
  return from;
}

/* Among the first `n` calls: the lock, and its end. */
static int n_flocks(int n) {
  int n_flocks = 0;
  for (int i = 0; i < n; i++) n_flocks += calls.log[i] == CALL_flock;
  return n_flocks;
}

/* Whether this close is of the temporary file, just written. */
static bool is_of_new_file(int at) { return calls.log[at - 1] == CALL_fsync && first_of(CALL_rename, 0) >= at; }

/* Each call fails in turn: the file is the old or the new one, and a merge that was said to be done
 * is. */
static void each_call_fails(void) {
  static const int failures[] = {ENOSPC, EIO, EINTR};
  char folder[PATH_BYTES], path[PATH_BYTES];
  const ws_tuning_entry old = tuning_of_writer(1, 1), new = tuning_of_writer(1, 2);
  int n_failed = 0;
  folder_make(folder);
  folder_path(path, folder, "tuning");
  for (int f = 0; f < 3; f++) {
    for (int at = 1;; at++) {
      CHECK(ws_tuning_file_merge(path, NULL) && tuning_merge(path, &old), "merge: %s", strerror(errno));
      calls.n = 0, calls.failed_at = at, calls.failure = failures[f], calls.is_watching = true;
      errno = 0;
      const bool is_merged = tuning_merge(path, &new);
      const int why = errno;
      calls.is_watching = false;
      if (at > calls.n) {
        CHECK(is_merged, "no call failed, but the merge did");
        break;
      }
      const enum call call = calls.log[at - 1];
      const int n = tuning_file_count(path);
      CHECK(tuning_file_has(path, &old) && n == (tuning_file_has(path, &new) ? 2 : 1), "%s failed: %d entries", call_names[call],
            n);
      CHECK(is_merged ? n == 2 : why == failures[f], "%s failed with %d: %d, errno is %d", call_names[call], failures[f],
            is_merged, why);
      const bool is_asked_again = (call == CALL_write || (call == CALL_flock && n_flocks(at) == 1)) && failures[f] == EINTR;
      const bool is_of_no_matter =
          call == CALL_mkdir || (call == CALL_flock && n_flocks(at) == 2) || (call == CALL_close && !is_of_new_file(at - 1));
      CHECK(is_merged == (is_asked_again || is_of_no_matter), "%s failed with %d, and the merge was %s", call_names[call],
            failures[f], is_merged ? "done" : "not done");
      CHECK(folder_count(folder, "tuning") == 2 && tuning_file_is_unlocked(path), "%s failed: %d files", call_names[call],
            folder_count(folder, "tuning"));
      n_failed++;
    }
  }
  CHECK(n_failed >= 3 * 12, "only %d calls", n_failed);
  calls.failed_at = 0;
  calls.writes_short = calls.is_watching = true;
  CHECK(tuning_merge(path, &new), "writing in parts: %s", strerror(errno));
  calls.writes_short = calls.is_watching = false;
  CHECK(tuning_file_count(path) == 2, "writing in parts: %d entries", tuning_file_count(path));
  folder_remove(folder);
}

/* What a power cut must find on disk: the new file's contents before its name, and its folder's
 * contents before the lock is given back. */
static void order_of_calls(void) {
  char folder[PATH_BYTES], path[PATH_BYTES];
  const ws_tuning_entry e = tuning_of_writer(1, 1);
  folder_make(folder);
  folder_path(path, folder, "tuning");
  calls.n = 0, calls.is_watching = true;
  CHECK(tuning_merge(path, &e), "merge: %s", strerror(errno));
  calls.is_watching = false;
  REQUIRE(calls.n <= MOST_CALLS, "%d calls", calls.n);
  const int lock = first_of(CALL_flock, 0), old = first_of(CALL_open, lock), temporary = first_of(CALL_open, old + 1),
            text = first_of(CALL_write, 0);
  const int sync = first_of(CALL_fsync, 0), name = first_of(CALL_rename, 0), folder_sync = first_of(CALL_fsync, name);
  CHECK(lock < temporary && temporary < text && text < sync && sync < name && name < folder_sync && folder_sync < calls.n,
        "lock %d, temporary %d, write %d, fsync %d, rename %d, fsync of the folder %d of %d calls", lock, temporary, text, sync,
        name, folder_sync, calls.n);
  CHECK(first_of(CALL_write, sync) == calls.n && first_of(CALL_rename, name + 1) == calls.n, "more after the fsync");
  folder_remove(folder);
}

/* ---- a lock that is held --------------------------------------------------------------------- */

static void hold(const char *path, double for_s) {
  REQUIRE(holder >= 0 && __real_flock(holder, LOCK_EX | LOCK_NB) == 0, "the lock of %s", path);
  is_lock_held = true, slept_s = 0, released_at_s = for_s;
}

static void let_go(void) {
  is_lock_held = false;
  REQUIRE(__real_flock(holder, LOCK_UN) == 0, "unlock");
}

/* For so long a writer waits, and not for ever; then it says whose fault it is. */
static void held_lock(void) {
  char folder[PATH_BYTES], path[PATH_BYTES], link[PATH_BYTES], lock[PATH_BYTES], line[LINE_BYTES];
  const ws_tuning_entry old = tuning_of_writer(1, 1), new = tuning_of_writer(1, 2);
  folder_make(folder);
  folder_path(path, folder, "tuning"), folder_path(lock, folder, "tuning.lock");
  CHECK(tuning_merge(path, &old) && symlink("tuning", folder_path(link, folder, "link")) == 0, "%s", strerror(errno));
  holder = open(lock, O_RDWR | O_CLOEXEC);
  hold(path, 0);
  errno = 0;
  CHECK(!tuning_merge(path, &new) && errno == ETIMEDOUT && slept_s > 5 && slept_s < 120, "errno is %d after %g s", errno,
        slept_s);
  slept_s = 0;
  tuning_line(&new, line);
  for (int by_link = 0; by_link < 2; by_link++) {
    CHECK(wsgemm_tuning_import(line, by_link ? link : path, NULL) == WSGEMM_FILE_ERROR, "imported");
    CHECK(strstr(wsgemm_last_error(), lock) && strstr(wsgemm_last_error(), "held"), "%s", wsgemm_last_error());
    CHECK(wsgemm_tuning_clear(by_link ? link : path) == WSGEMM_FILE_ERROR, "cleared");
  }
  /* readers do not wait */
  CHECK(tuning_file_count(path) == 1 && tuning_file_has(path, &old), "the file has changed");
  let_go();
  hold(path, 3);
  CHECK(tuning_merge(path, &new) && slept_s > 3 && slept_s < 4, "%s after %g s", strerror(errno), slept_s);
  let_go();
  CHECK(tuning_file_count(path) == 2 && folder_count(folder, "tuning") == 2, "%d entries", tuning_file_count(path));
  close(holder);
  folder_remove(folder);
}

static const struct check_case cases[] = {{"held_lock", held_lock},
                                          {"killed_at_each_call", killed_at_each_call},
                                          {"files_of_others", files_of_others},
                                          {"each_call_fails", each_call_fails},
                                          {"order_of_calls", order_of_calls}};
CHECK_MAIN("tuning_faults", cases)
