/* tuning_file.c - reads and replaces files of tuning entries.
 *
 * Readers take no lock: a file is only ever replaced as a whole, by rename. Writers hold a lock on PATH.lock, which the system takes back
 * from one that is killed; it is never removed, since another may be waiting for it. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tuning.h"

/* Some thousand lines: whatever is longer is not ours. */
enum { MOST_BYTES = 1 << 20 };

/* ---- reading ------------------------------------------------------------------------------------------------------------------ */

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

bool ws_tuning_file_read(const char *path, ws_tuning_list *list) {
  const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* a pipe must not keep us waiting */
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

/* ---- writing ------------------------------------------------------------------------------------------------------------------ */

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
  if (fd < 0) return errno == EACCES;                                  /* who may not list it cannot do more */
  const bool ok = fsync(fd) == 0 || errno == EINVAL || errno == EROFS; /* not all file systems can */
  const int why = errno;
  close(fd);
  errno = why;
  return ok;
}

/* A file that a link stands for is locked and replaced where it lies, so that writers by either name take turns. */
static bool resolve(const char *path, char resolved[PATH_MAX]) {
  if (realpath(path, resolved)) return true;
  if (errno != ENOENT) return false;
  return snprintf(resolved, PATH_MAX, "%s", path) < PATH_MAX;
}

/* A new file gets new_mode. */
static bool replace(const char *target, const char *text, size_t length, mode_t new_mode) {
  char temporary[PATH_MAX];
  if (snprintf(temporary, sizeof temporary, "%s.XXXXXX", target) >= (int)sizeof temporary) {
    errno = ENAMETOOLONG;
    return false;
  }
  const int fd = mkostemp(temporary, O_CLOEXEC);
  if (fd < 0) return false;
  struct stat s;
  const mode_t mode = stat(target, &s) == 0 ? s.st_mode & 0777 : new_mode;
  bool ok = fchmod(fd, mode) == 0 && write_all(fd, text, length) && fsync(fd) == 0;
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

/* -1, with errno: there is no lock to be had. */
static int lock_of(const char *path) {
  char lock[PATH_MAX];
  if (snprintf(lock, sizeof lock, "%s.lock", path) >= (int)sizeof lock) {
    errno = ENAMETOOLONG;
    return -1;
  }
  const int fd = open(lock, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666);
  if (fd < 0) return -1;
  while (flock(fd, LOCK_EX) != 0)
    if (errno != EINTR) {
      const int why = errno;
      close(fd);
      errno = why;
      return -1;
    }
  return fd;
}

static void write_text(const ws_tuning_list *list, ws_text *t) {
  ws_text_add(t, WS_TUNING_HEADER);
  ws_tuning_list_write(list, t);
  ws_text_add(t, "%.*s", (int)list->n_foreign_bytes, list->foreign ? list->foreign : ""); /* of a file of MOST_BYTES at most */
}

static bool write_list(const char *path, const ws_tuning_list *list, mode_t new_mode) {
  ws_text t = {NULL, 0, 0};
  write_text(list, &t);
  char *text = malloc(t.length + 1);
  if (!text) return false;
  t = (ws_text){text, t.length + 1, 0};
  write_text(list, &t);
  errno = EFBIG;
  const bool ok = t.length <= MOST_BYTES && replace(path, text, t.length, new_mode);
  const int why = errno;
  free(text);
  errno = why;
  return ok;
}

/* Not by close alone: a child that another thread has forked meanwhile has the file open too, and would keep the lock. */
static void unlock(int lock) {
  flock(lock, LOCK_UN);
  close(lock);
}

bool ws_tuning_file_merge(const char *name, const ws_tuning_list *entries) {
  char path[PATH_MAX];
  if (!make_folders(name) || !resolve(name, path)) return false;
  const int lock = lock_of(path);
  if (lock < 0) return false;
  ws_tuning_list all = {0};
  struct stat s;
  const mode_t mode = fstat(lock, &s) == 0 ? s.st_mode & 0666 : 0600; /* as the umask left it */
  bool ok = ws_tuning_file_read(path, &all);
  if (ok && !all.has_header && all.n_bad + all.n_foreign > 0) ok = false, errno = EINVAL; /* what is not ours is not replaced */
  if (!entries) ws_tuning_list_free(&all);
  for (int i = 0; ok && entries && i < entries->n; i++) {
    ok = ws_tuning_list_put(&all, &entries->entry[i]);
    if (!ok) errno = ENOMEM;
  }
  ok = ok && write_list(path, &all, mode);
  const int why = errno;
  ws_tuning_list_free(&all);
  unlock(lock);
  errno = why;
  return ok;
}
