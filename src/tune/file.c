/* file.c - reads and replaces files of tuning entries.
 *
 * Readers take no lock: a file is only ever replaced as a whole, by rename. Writers hold a lock on
 * PATH.lock, which the system takes back from one that is killed; it is never removed, since
 * another may be waiting for it. Only those who may write the file may open its lock: with flock
 * whoever has it open could hold it for ever. From those who may, and do, a deadline helps. Whoever
 * may only read the file cannot keep a writer waiting by it, as no writer waits for readers. */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "tune/tuning.h"

/* Some thousand lines: whatever is longer is not ours. */
enum { MOST_BYTES = 1 << 20 };

/* ---- reading --------------------------------------------------------------------------------- */

/* NULL, with errno: it cannot be read, or (EINVAL) is no regular file or too long. */
static char *read_all(int fd, size_t *length) {
  struct stat s;
  if (fstat(fd, &s) != 0) return NULL;
  if (!S_ISREG(s.st_mode) || s.st_size > MOST_BYTES) {
    errno = EINVAL;
    return NULL;
  }
  const size_t most = (size_t)s.st_size;
  char *text = malloc(most + 1);
  if (!text) return NULL;
  for (*length = 0; *length < most;) {
    const ssize_t n = read(fd, text + *length, most - *length);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) {
      free(text);
      return NULL;
    }
    if (n == 0) break;
    *length += (size_t)n;
  }
  return text;
}

static bool begins_with(const char *text, size_t length, const char *words) {
  const size_t n = strlen(words);
  return length >= n && memcmp(text, words, n) == 0;
}

/* Something is there that is no regular file. Asked before it is opened, which of a device or a
 * pipe may do something. */
static bool is_other(const char *path) {
  struct stat s;
  return stat(path, &s) == 0 && !S_ISREG(s.st_mode);
}

bool ws_tuning_file_read(const char *path, ws_tuning_list *list) {
  if (is_other(path)) {
    errno = EINVAL;
    return false;
  }
  /* one that took its place must not keep us waiting */
  const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (fd < 0) return errno == ENOENT || errno == ENOTDIR;
  size_t length = 0;
  char *text = read_all(fd, &length);
  const int why = errno;
  close(fd);
  if (!text) {
    errno = why;
    return false;
  }
  const int n_before = list->n;
  list->has_header = begins_with(text, length, WS_TUNING_HEADER);
  const bool is_later = !list->has_header && begins_with(text, length, WS_TUNING_HEADER_OF_ALL);
  bool ok = is_later || ws_tuning_list_read(list, text, length);
  if (!ok) {
    errno = ENOMEM;
  } else if (length > 0 && list->n == n_before && !list->has_header) {
    ok = false;
    errno = EINVAL;
  }
  free(text);
  return ok;
}

/* ---- writing --------------------------------------------------------------------------------- */

static bool write_all(int fd, const char *text, size_t length) {
  for (size_t done = 0; done < length;) {
    const ssize_t n = write(fd, text + done, length - done);
    if (n < 0 && errno != EINTR) return false;
    if (n > 0) done += (size_t)n;
  }
  return true;
}

/* The folders of a path, as far as they are missing. */
static bool make_folders(const char *path) {
  char folder[PATH_MAX];
  const size_t length = strlen(path);
  if (length >= sizeof folder) {
    errno = ENAMETOOLONG;
    return false;
  }
  memcpy(folder, path, length + 1);
  for (char *slash = strchr(folder + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
    *slash = '\0';
    if (mkdir(folder, 0777) != 0 && errno != EEXIST) {
      struct stat s;
      const int why = errno;
      const bool is_there = stat(folder, &s) == 0 && S_ISDIR(s.st_mode); /* on a read-only system */
      errno = why;
      if (!is_there) return false;
    }
    *slash = '/';
  }
  return true;
}

/* So that the rename is there after a power cut. */
static bool sync_folder(const char *path) {
  char folder[PATH_MAX];
  snprintf(folder, sizeof folder, "%s", path);
  char *slash = strrchr(folder, '/');
  if (slash)
    slash[slash == folder] = '\0';
  else
    strcpy(folder, ".");
  const int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  /* who may not list it cannot do more */
  if (fd < 0) return errno == EACCES;
  /* not all file systems can */
  const bool ok = fsync(fd) == 0 || errno == EINVAL || errno == EROFS;
  const int why = errno;
  close(fd);
  errno = why;
  return ok;
}

/* Puts a link's target in the link's place: beside the link, if it is relative. */
static bool follow(char path[PATH_MAX], const char *target) {
  const char *slash = strrchr(path, '/');
  const size_t n_kept = target[0] == '/' || !slash ? 0 : (size_t)(slash + 1 - path);
  if (snprintf(path + n_kept, PATH_MAX - n_kept, "%s", target) < (int)(PATH_MAX - n_kept)) return true;
  errno = ENAMETOOLONG;
  return false;
}

/* A file that links stand for is locked and replaced where it lies, so that writers by all of its
 * names take turns; one that is not there yet, where the last link says. */
static bool resolve(const char *path, char resolved[PATH_MAX]) {
  enum { MOST_LINKS = 40 }; /* as Linux follows */
  char target[PATH_MAX];
  struct stat s;
  if (stat(path, &s) == 0) return realpath(path, resolved) != NULL;
  if (errno != ENOENT) return false;
  if (snprintf(resolved, PATH_MAX, "%s", path) >= PATH_MAX) {
    errno = ENAMETOOLONG;
    return false;
  }
  for (int n_links = 0; n_links < MOST_LINKS; n_links++) {
    const ssize_t n = readlink(resolved, target, sizeof target - 1);
    /* the last; it may have been made meanwhile */
    if (n < 0) return errno == ENOENT || errno == EINVAL;
    target[n] = '\0';
    if (!follow(resolved, target)) return false;
  }
  errno = ELOOP;
  return false;
}

#define TEMPORARY ".tmp-"

/* "PID-NS" behind it. */
static bool is_end_of_temporary(const char *text) {
  const size_t n_pid = strspn(text, "0123456789");
  const char *ns = text + n_pid + 1;
  return n_pid > 0 && text[n_pid] == '-' && *ns && !ns[strspn(ns, "0123456789")];
}

/* With the lock, which whoever writes such a file holds: so it is a dead writer's. But a file
 * system may have no locks that other machines see, hence the age; and of our own user's regular
 * files only. What fails is left for the next writer. */
static void remove_stale(const char *target) {
  enum { STALE_S = 2 * WS_TUNING_LOCK_S };
  char folder[PATH_MAX];
  struct stat s;
  snprintf(folder, sizeof folder, "%s", target); /* a resolved path */
  char *name = strrchr(folder, '/');
  if (!name) return;
  *name++ = '\0';
  const size_t n_name = strlen(name), n_start = n_name + strlen(TEMPORARY);
  DIR *entries = opendir(folder[0] ? folder : "/");
  if (!entries) return;
  for (const struct dirent *e; (e = readdir(entries));) {
    const bool is_ours = strncmp(e->d_name, name, n_name) == 0 &&
                         strncmp(e->d_name + n_name, TEMPORARY, strlen(TEMPORARY)) == 0 &&
                         is_end_of_temporary(e->d_name + n_start);
    if (!is_ours || fstatat(dirfd(entries), e->d_name, &s, AT_SYMLINK_NOFOLLOW) != 0) continue;
    if (S_ISREG(s.st_mode) && s.st_uid == geteuid() && s.st_nlink == 1 && time(NULL) - s.st_mtime > STALE_S)
      (void)unlinkat(dirfd(entries), e->d_name, 0);
  }
  closedir(entries);
}

/* A new file beside the target, of a name of its own; its mode is as the umask leaves it. */
static int open_temporary(const char *target, mode_t mode, char name[PATH_MAX]) {
  struct timespec now = {0, 0};
  int fd = -1;
  clock_gettime(CLOCK_REALTIME, &now);
  for (int attempt = 0; attempt < 100; attempt++) {
    if (snprintf(name, PATH_MAX, "%s" TEMPORARY "%ld-%ld", target, (long)getpid(), now.tv_nsec + attempt) >= PATH_MAX) {
      errno = ENAMETOOLONG;
      return -1;
    }
    fd = open(name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
    if (fd >= 0 || errno != EEXIST) break;
  }
  return fd;
}

static bool replace(const char *target, const char *text, size_t length) {
  char temporary[PATH_MAX];
  struct stat s;
  const bool is_there = stat(target, &s) == 0;
  const mode_t mode = is_there ? s.st_mode & 0777 : 0666;
  const int fd = open_temporary(target, mode, temporary);
  if (fd < 0) return false;
  bool ok = (!is_there || fchmod(fd, mode) == 0) && write_all(fd, text, length) && fsync(fd) == 0;
  int why = errno;
  if (close(fd) != 0 && ok) ok = false, why = errno;
  if (ok && rename(temporary, target) != 0) ok = false, why = errno;
  if (!ok) {
    unlink(temporary);
    errno = why;
    return false;
  }
  return sync_folder(target);
}

/* ---- the lock -------------------------------------------------------------------------------- */

/* For those who may write the file, also where an earlier version made the lock for all; another
 * user's lock is left alone. Failures do not matter: a file system may have no modes. */
static void set_lock_mode(int lock, const char *path) {
  struct stat file, own;
  mode_t mode = 0600;
  if (stat(path, &file) == 0) mode |= (file.st_mode & S_IWGRP ? 0060 : 0) | (file.st_mode & S_IWOTH ? 0006 : 0);
  if (fstat(lock, &own) != 0 || own.st_uid != geteuid() || (own.st_mode & 0777) == mode) return;
  /* A file of that name that holds something, or has another name too, is none of ours. */
  if (S_ISREG(own.st_mode) && own.st_size == 0 && own.st_nlink == 1) (void)fchmod(lock, mode);
}

static double now_s(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* false, with errno; ETIMEDOUT: another holds it. */
static bool wait_for(int lock) {
  const double begin = now_s();
  struct timespec pause = {0, 1000000};
  while (flock(lock, LOCK_EX | LOCK_NB) != 0) {
    if (errno == EINTR) continue;
    if (errno != EWOULDBLOCK) return false;
    if (now_s() - begin > WS_TUNING_LOCK_S) {
      errno = ETIMEDOUT;
      return false;
    }
    nanosleep(&pause, NULL);
    if (pause.tv_nsec < 20000000) pause.tv_nsec *= 2;
  }
  return true;
}

static bool name_of_lock(const char *path, char name[PATH_MAX]) {
  if (snprintf(name, PATH_MAX, "%s.lock", path) < PATH_MAX) return true;
  errno = ENAMETOOLONG;
  return false;
}

static int open_lock(const char *name) {
  return open(name, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY, 0600);
}

/* -1, with errno: there is no lock to be had. */
static int lock_of(const char *path) {
  char name[PATH_MAX];
  if (!name_of_lock(path, name)) return -1;
  const int lock = open_lock(name);
  if (lock < 0) return -1;
  set_lock_mode(lock, path);
  if (wait_for(lock)) return lock;
  const int why = errno;
  close(lock);
  errno = why;
  return -1;
}

/* Not by close alone: a child that another thread has forked meanwhile has the file open too, and
 * would keep the lock. */
static void unlock(int lock) {
  flock(lock, LOCK_UN);
  close(lock);
}

void ws_tuning_file_lock_name(const char *path, ws_text *t) {
  char resolved[PATH_MAX], name[PATH_MAX];
  if (resolve(path, resolved) && name_of_lock(resolved, name)) ws_text_add(t, "%s", name);
}

bool ws_tuning_file_lock_is_closed(const char *path) {
  char resolved[PATH_MAX], name[PATH_MAX];
  struct stat s;
  if (!resolve(path, resolved) || !name_of_lock(resolved, name) || lstat(name, &s) != 0) return false;
  const int lock = open_lock(name);
  if (lock < 0) return errno == EACCES;
  close(lock);
  return false;
}

/* ---- merging --------------------------------------------------------------------------------- */

static void write_text(const ws_tuning_list *list, ws_text *t) {
  ws_text_add(t, WS_TUNING_HEADER);
  ws_tuning_list_write(list, t);
  /* of a file of MOST_BYTES at most */
  ws_text_add(t, "%.*s", (int)list->n_foreign_bytes, list->foreign ? list->foreign : "");
}

static bool write_list(const char *path, const ws_tuning_list *list) {
  ws_text t = {NULL, 0, 0};
  write_text(list, &t);
  char *text = malloc(t.length + 1);
  if (!text) return false;
  t = (ws_text){text, t.length + 1, 0};
  write_text(list, &t);
  errno = EFBIG;
  const bool ok = t.length <= MOST_BYTES && replace(path, text, t.length);
  const int why = errno;
  free(text);
  errno = why;
  return ok;
}

bool ws_tuning_file_merge(const char *name, const ws_tuning_list *entries) {
  char path[PATH_MAX];
  if (!make_folders(name) || !resolve(name, path)) return false;
  if (is_other(path)) {
    errno = EINVAL;
    return false;
  }
  const int lock = lock_of(path);
  if (lock < 0) return false;
  ws_tuning_list all = {0};
  remove_stale(path);
  bool ok = ws_tuning_file_read(path, &all);
  /* what is not ours is not replaced */
  if (ok && !all.has_header && all.n_bad + all.n_foreign > 0) ok = false, errno = EINVAL;
  if (!entries) ws_tuning_list_free(&all);
  for (int i = 0; ok && entries && i < entries->n; i++) {
    ok = ws_tuning_list_put(&all, &entries->entry[i]);
    if (!ok) errno = ENOMEM;
  }
  ok = ok && write_list(path, &all);
  const int why = errno;
  ws_tuning_list_free(&all);
  set_lock_mode(lock, path); /* the file may be new */
  unlock(lock);
  errno = why;
  return ok;
}
