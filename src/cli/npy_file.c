/* Reading and writing .npy files (the format itself is npy.c's business).
 *
 * Reading copies instead of mapping, unless it is asked to map: a file that another process cuts short meanwhile is then an
 * error, not a signal. Writing invariant: the final name holds either what it held before or the
 * whole new matrix, on disc; the temporary file beside it is gone after commit, discard, and the
 * signals that end a program politely. */
#define _GNU_SOURCE
#include "npy.h"
#include "types.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- Reading --------------------------------------------------------------------------------- */

/* Bytes read before the end of the file: fewer than asked for means that it ended, -1 an error
 * (errno). */
static int64_t read_fully(int fd, unsigned char *to, int64_t n_bytes, int64_t offset) {
  const int64_t piece_most = 1 << 30;
  int64_t done = 0;
  while (done < n_bytes) {
    int64_t left = n_bytes - done;
    ssize_t got = pread(fd, to + done, (size_t)(left < piece_most ? left : piece_most), offset + done);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return -1;
    if (got == 0) break;
    done += got;
  }
  return done;
}

static bool read_exactly(int fd, unsigned char *to, int64_t n_bytes, int64_t offset, char why[WS_NPY_WHY_BYTES]) {
  int64_t got = read_fully(fd, to, n_bytes, offset);
  if (got < 0) return ws_npy_refuse(why, "cannot be read: %s", strerror(errno));
  if (got < n_bytes) return ws_npy_refuse(why, "became shorter while it was read");
  return true;
}

/* Pages of its own where somebody writes: nobody does. */
static bool map_from(int fd, const ws_npy_info *info, ws_npy *out) {
  const int64_t bytes = info->data_offset + info->data_bytes;
  if (info->is_swapped || info->data_bytes == 0 || info->data_offset % ws_cli_types[info->type].part_bytes != 0) return false;
  char *map = mmap(NULL, (size_t)bytes, PROT_READ, MAP_PRIVATE, fd, 0);
  if (map == MAP_FAILED) return false;
  *out = (ws_npy){info->type, info->n_rows, info->n_cols, info->is_fortran, map + info->data_offset, map, (size_t)bytes};
  return true;
}

static bool load_from(int fd, bool maps, ws_npy *out, char why[WS_NPY_WHY_BYTES]) {
  struct stat st;
  if (fstat(fd, &st) != 0) return ws_npy_refuse(why, "cannot be read: %s", strerror(errno));
  if (S_ISDIR(st.st_mode)) return ws_npy_refuse(why, "is a folder");
  if (!S_ISREG(st.st_mode)) return ws_npy_refuse(why, "is no regular file");

  int64_t n_start = st.st_size < WS_NPY_HEADER_MAX_BYTES ? st.st_size : WS_NPY_HEADER_MAX_BYTES;
  unsigned char *start = malloc(WS_NPY_HEADER_MAX_BYTES);
  if (!start) return ws_npy_refuse(why, "out of memory");
  ws_npy_info info;
  bool ok = read_exactly(fd, start, n_start, 0, why) && ws_npy_parse(start, (size_t)n_start, st.st_size, &info, why);
  free(start);
  if (!ok) return false;
  if (maps && map_from(fd, &info, out)) return true;

  void *data = ws_npy_alloc(info.type, info.n_rows, info.n_cols);
  if (!data) return ws_npy_refuse(why, "out of memory for its %" PRId64 " bytes of data", info.data_bytes);
  if (!read_exactly(fd, data, info.data_bytes, info.data_offset, why)) {
    free(data);
    return false;
  }
  if (info.is_swapped) ws_npy_swap(info.type, data, info.data_bytes);
  *out = (ws_npy){info.type, info.n_rows, info.n_cols, info.is_fortran, data, NULL, 0};
  return true;
}

bool ws_npy_load(const char *path, bool maps, ws_npy *out, char why[WS_NPY_WHY_BYTES]) {
  /* O_NONBLOCK: opening a named pipe must not wait for a writer that never comes. */
  int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (fd < 0) return ws_npy_refuse(why, "cannot be opened: %s", strerror(errno));
  bool ok = load_from(fd, maps, out, why);
  close(fd);
  return ok;
}

void ws_npy_free(ws_npy *m) {
  if (m->map)
    munmap(m->map, m->map_bytes);
  else
    free(m->data);
  m->data = NULL, m->map = NULL;
}

/* ---- The temporary file and the signals that would leave it behind --------------------------- */

static const int polite_signals[] = {SIGHUP, SIGINT, SIGTERM};
/* what the handler removes; changed only while those signals are blocked */
static char doomed_path[PATH_MAX];

static void remove_temporary(int signal_number) {
  if (*doomed_path) unlink(doomed_path);
  raise(signal_number); /* SA_RESETHAND: this time it ends the program */
}

static void block_signals(sigset_t *old) {
  sigset_t set;
  sigemptyset(&set);
  for (size_t i = 0; i < sizeof polite_signals / sizeof *polite_signals; i++) sigaddset(&set, polite_signals[i]);
  pthread_sigmask(SIG_BLOCK, &set, old);
}

static void watch_signals(void) {
  for (size_t i = 0; i < sizeof polite_signals / sizeof *polite_signals; i++) {
    struct sigaction old, action = {.sa_handler = remove_temporary, .sa_flags = SA_RESETHAND};
    sigemptyset(&action.sa_mask);
    /* One that was ignored (nohup) stays ignored. */
    if (sigaction(polite_signals[i], NULL, &old) == 0 && old.sa_handler != SIG_IGN) sigaction(polite_signals[i], &action, NULL);
  }
}

/* ---- Writing --------------------------------------------------------------------------------- */

/* The name that a rename must replace: the file behind a symbolic link, not the link. NULL: *why
 * says what is in the way. */
static char *final_path(const char *path, mode_t *mode, char why[WS_NPY_WHY_BYTES]) {
  struct stat st;
  size_t length = strlen(path);
  if (length == 0 || path[length - 1] == '/') {
    ws_npy_refuse(why, "cannot be written: it is no file name");
    return NULL;
  }
  *mode = 0;
  if (lstat(path, &st) != 0) {
    if (errno == ENOENT) return strdup(path);
    ws_npy_refuse(why, "cannot be written: %s", strerror(errno));
    return NULL;
  }
  char *real = realpath(path, NULL);
  if (!real || stat(real, &st) != 0)
    ws_npy_refuse(why, "cannot be written: %s", strerror(errno));
  else if (S_ISDIR(st.st_mode))
    ws_npy_refuse(why, "cannot be written: it is a folder");
  else if (!S_ISREG(st.st_mode))
    ws_npy_refuse(why, "cannot be written: it is no regular file");
  else if (faccessat(AT_FDCWD, real, W_OK, AT_EACCESS) != 0)
    ws_npy_refuse(why, "cannot be written: %s", strerror(errno));
  else {
    *mode = st.st_mode & 0777;
    return real;
  }
  free(real);
  return NULL;
}

/* Makes the temporary file in the folder of out->path. */
static bool open_temporary(ws_npy_output *out) {
  const char *slash = strrchr(out->path, '/');
  int folder_length = slash ? (int)(slash + 1 - out->path) : 0;
  for (int attempt = 0; attempt < 1000; attempt++) {
    if (asprintf(&out->temporary, "%.*s.wsgemm-%ld-%d.tmp", folder_length, out->path, (long)getpid(), attempt) < 0) {
      out->temporary = NULL;
      errno = ENOMEM;
      return false;
    }
    out->fd =
        strlen(out->temporary) < sizeof doomed_path ? open(out->temporary, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666) : -1;
    if (out->fd >= 0) return true;
    int reason = strlen(out->temporary) < sizeof doomed_path ? errno : ENAMETOOLONG;
    free(out->temporary);
    out->temporary = NULL;
    errno = reason;
    if (reason != EEXIST) return false;
  }
  return false;
}

bool ws_npy_open_output(const char *path, int64_t data_bytes, ws_npy_output *out, char why[WS_NPY_WHY_BYTES]) {
  mode_t mode;
  *out = (ws_npy_output){.fd = -1};
  out->path = final_path(path, &mode, why);
  if (!out->path) return false;
  /* Past a file size limit a write shall fail with an errno, not end the program with the temporary
   * file left behind. */
  signal(SIGXFSZ, SIG_IGN);

  sigset_t old;
  block_signals(&old);
  bool ok = open_temporary(out);
  int reason = errno;
  if (ok) {
    strcpy(doomed_path, out->temporary);
    watch_signals();
  }
  pthread_sigmask(SIG_SETMASK, &old, NULL);

  /* Reserving the space now finds a full disc before the work; a file system that cannot reserve
   * will tell while writing. */
  if (ok && (mode ? fchmod(out->fd, mode) != 0 : false)) {
    ok = false;
    reason = errno;
  } else if (ok && data_bytes > 0 && fallocate(out->fd, 0, 0, data_bytes) != 0 &&
             (errno == ENOSPC || errno == EFBIG || errno == EDQUOT)) {
    ok = false;
    reason = errno;
  }
  if (ok) return true;
  ws_npy_discard_output(out);
  return ws_npy_refuse(why, "cannot be written: %s", strerror(reason));
}

static bool write_fully(int fd, const char *from, int64_t n_bytes) {
  const int64_t piece_most = 1 << 30;
  while (n_bytes > 0) {
    ssize_t put = write(fd, from, (size_t)(n_bytes < piece_most ? n_bytes : piece_most));
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) return false;
    from += put;
    n_bytes -= put;
  }
  return true;
}

/* The rename itself must reach the disc too. Not every file system can sync a folder; that it can't
 * is no failure. */
static void sync_folder(const char *path) {
  const char *slash = strrchr(path, '/');
  char *folder = slash ? strndup(path, (size_t)(slash + 1 - path)) : strdup(".");
  int fd = folder ? open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
  if (fd >= 0) {
    (void)!fsync(fd);
    close(fd);
  }
  free(folder);
}

bool ws_npy_map_output(const ws_npy_output *out, ws_npy *m, char why[WS_NPY_WHY_BYTES]) {
  char header[WS_NPY_HEADER_BYTES];
  const size_t header_bytes = ws_npy_header(m, header);
  const size_t bytes = header_bytes + (size_t)(m->n_rows * m->n_cols) * (size_t)ws_cli_types[m->type].bytes;
  if (ftruncate(out->fd, (off_t)bytes) != 0) return ws_npy_refuse(why, "cannot be written: %s", strerror(errno));
  char *map = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, out->fd, 0);
  if (map == MAP_FAILED) return ws_npy_refuse(why, "cannot be written: %s", strerror(errno));
  m->map = map, m->map_bytes = bytes, m->data = map + header_bytes;
  return true;
}

static bool write_matrix(int fd, const ws_npy *m) {
  char header[WS_NPY_HEADER_BYTES];
  const size_t header_bytes = ws_npy_header(m, header);
  if (m->map) {
    memcpy(m->map, header, header_bytes);
    return msync(m->map, m->map_bytes, MS_SYNC) == 0;
  }
  return write_fully(fd, header, (int64_t)header_bytes) &&
         write_fully(fd, m->data, m->n_rows * m->n_cols * ws_cli_types[m->type].bytes);
}

bool ws_npy_write_stdout(const ws_npy *m, char why[WS_NPY_WHY_BYTES]) {
  return write_matrix(STDOUT_FILENO, m) || ws_npy_refuse(why, "cannot be written: %s", strerror(errno));
}

bool ws_npy_commit_output(ws_npy_output *out, const ws_npy *m, char why[WS_NPY_WHY_BYTES]) {
  bool ok = write_matrix(out->fd, m) && fsync(out->fd) == 0;
  int reason = errno;
  if (close(out->fd) != 0 && ok) {
    ok = false;
    reason = errno;
  }
  out->fd = -1;

  sigset_t old;
  block_signals(&old);
  if (ok && rename(out->temporary, out->path) != 0) {
    ok = false;
    reason = errno;
  }
  if (ok) *doomed_path = 0;
  pthread_sigmask(SIG_SETMASK, &old, NULL);

  if (ok) sync_folder(out->path);
  if (ok) {
    free(out->temporary);
    out->temporary = NULL;
  }
  ws_npy_discard_output(out);
  return ok || ws_npy_refuse(why, "cannot be written: %s", strerror(reason));
}

void ws_npy_discard_output(ws_npy_output *out) {
  sigset_t old;
  block_signals(&old);
  if (out->fd >= 0) close(out->fd);
  if (out->temporary) unlink(out->temporary);
  *doomed_path = 0;
  pthread_sigmask(SIG_SETMASK, &old, NULL);
  free(out->temporary);
  free(out->path);
  *out = (ws_npy_output){.fd = -1};
}
