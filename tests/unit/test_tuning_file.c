/* test_tuning_file.c - files of tuning entries: what is read of strange ones, merging, writers at
 * once, writers that are killed, links, permissions, forks. A system that fails is
 * test_tuning_faults.c's. */
#define _GNU_SOURCE
#include "support/folder.h"
#include "support/tuning_case.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- small things ---------------------------------------------------------------------------- */

static void *shared_memory(size_t bytes) {
  void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  REQUIRE(memory != MAP_FAILED, "shared memory");
  return memory;
}

/* ---- reading --------------------------------------------------------------------------------- */

/* A file with these bytes has so many entries and bad lines; or (n_entries < 0) is not ours:
 * refused, and left as it is by a merge. */
static void check_file(const char *path, const char *what, const void *bytes, size_t n_bytes, int n_entries, int n_bad) {
  ws_tuning_list list = {0};
  const ws_tuning_entry other = tuning_of_writer(77, 7);
  file_write(path, bytes, n_bytes);
  errno = 0;
  const bool is_read = ws_tuning_file_read(path, &list);
  if (n_entries < 0)
    CHECK(!is_read && errno == EINVAL, "%s: read, or errno is %d", what, errno);
  else
    CHECK(is_read && list.n == n_entries && list.n_bad == n_bad, "%s: %d entries, %d bad lines", what, list.n, list.n_bad);
  errno = 0;
  const bool is_merged = tuning_merge(path, &other);
  if (n_entries < 0)
    CHECK(!is_merged && errno == EINVAL && file_is(path, bytes, n_bytes), "%s: merged into, or errno is %d", what, errno);
  else
    CHECK(is_merged && tuning_file_count(path) == n_entries + 1 && tuning_file_has(path, &other), "%s: not merged", what);
  if (n_entries < 0)
    CHECK(!ws_tuning_file_merge(path, NULL) && file_is(path, bytes, n_bytes), "%s: emptied", what);
  else
    CHECK(ws_tuning_file_merge(path, NULL) && file_is(path, WS_TUNING_HEADER, strlen(WS_TUNING_HEADER)), "%s: not emptied", what);
  for (int i = 0; i < list.n; i++) CHECK(list.entry[i].shape.k == 7, "%s: an entry that nobody wrote", what);
  ws_tuning_list_free(&list);
  unlink(path);
}

static void strange_files(void) {
  enum { MOST_BYTES = 1 << 20 };
  char folder[PATH_BYTES], path[PATH_BYTES], one[LINE_BYTES], two[LINE_BYTES], text[4 * LINE_BYTES];
  const ws_tuning_entry first = tuning_of_writer(1, 1), second = tuning_of_writer(1, 2);
  tuning_line(&first, one), tuning_line(&second, two);
  folder_make(folder);
  folder_path(path, folder, "tuning");
  ws_tuning_list list = {0};
  CHECK(ws_tuning_file_read(path, &list) && list.n == 0 && list.n_bad == 0, "a file that is not there");
#define CHECK_TEXT(what, n_entries, n_bad, ...) \
  check_file(path, what, text, (size_t)snprintf(text, sizeof text, __VA_ARGS__), n_entries, n_bad)
  check_file(path, "empty", "", 0, 0, 0);
  CHECK_TEXT("header only", 0, 0, "%s", WS_TUNING_HEADER);
  CHECK_TEXT("two lines", 2, 0, "%s%s%s", WS_TUNING_HEADER, one, two);
  CHECK_TEXT("without a header", 2, 0, "%s%s", one, two);
  CHECK_TEXT("a line twice", 1, 0, "%s%s%s", WS_TUNING_HEADER, one, one);
  CHECK_TEXT("a line without end", 2, 0, "%s%s%.*s", WS_TUNING_HEADER, one, (int)strlen(two) - 1, two);
  CHECK_TEXT("half a line", 1, 1, "%s%s%.*s", WS_TUNING_HEADER, one, (int)strlen(two) / 2, two);
  CHECK_TEXT("a line with CR LF", 1, 1, "%s%s%.*s\r\n", WS_TUNING_HEADER, one, (int)strlen(two) - 1, two);
  CHECK_TEXT("all with CR LF", -1, 0, "# wsgemm tuning 1\r\n%.*s\r\n", (int)strlen(one) - 1, one);
  CHECK_TEXT("a damaged line", 1, 1, "%s%s%s", WS_TUNING_HEADER, one, "gemm device=\"x\" crc=01234567\n");
  CHECK_TEXT("a later format", -1, 0, "# wsgemm tuning 2\nproduct device=x\n");
  CHECK_TEXT("text", -1, 0, "Dear diary,\n");
  CHECK_TEXT("a blank", -1, 0, " ");
  CHECK_TEXT("an end of line", -1, 0, "\n");
  CHECK_TEXT("half a header", -1, 0, "# wsgemm");
#undef CHECK_TEXT
  size_t n = (size_t)sprintf(text, "%s%s", WS_TUNING_HEADER, one);
  memset(text + n, 0, 100);
  check_file(path, "NUL bytes after it", text, n + 100, 1, 1);
  memset(text, 0, 500);
  check_file(path, "NUL bytes alone", text, 500, -1, 0);
  char *large = malloc(MOST_BYTES + 1);
  REQUIRE(large != NULL, "memory");
  n = (size_t)sprintf(large, "%s%s#", WS_TUNING_HEADER, one);
  memset(large + n, '\n', MOST_BYTES + 1 - n);
  check_file(path, "just short enough", large, MOST_BYTES, 1, 0);
  check_file(path, "too long", large, MOST_BYTES + 1, -1, 0);
  free(large);
  /* As long as a disk, and as little. */
  file_write(path, "", 0);
  REQUIRE(truncate(path, INT64_C(1) << 32) == 0, "truncate: %s", strerror(errno));
  errno = 0;
  CHECK(!ws_tuning_file_read(path, &list) && errno == EINVAL && !tuning_merge(path, &first), "a sparse file: errno is %d", errno);
  REQUIRE(unlink(path) == 0, "unlink");
  /* a pipe without a writer must not keep anyone waiting */
  for (int is_pipe = 0; is_pipe < 2; is_pipe++) {
    REQUIRE((is_pipe ? mkfifo(path, 0666) : mkdir(path, 0777)) == 0, "%s", path);
    errno = 0;
    CHECK(!ws_tuning_file_read(path, &list) && errno == EINVAL, "pipe %d: errno is %d", is_pipe, errno);
    errno = 0;
    CHECK(!tuning_merge(path, &first) && errno == EINVAL, "pipe %d: merged, or errno is %d", is_pipe, errno);
    CHECK((is_pipe ? unlink(path) : rmdir(path)) == 0, "pipe %d: gone", is_pipe);
  }
  CHECK(folder_count(folder, "tuning.") == 1, "%d files are left besides the lock", folder_count(folder, "tuning.") - 1);
  folder_remove(folder);
}

/* What is no file is not even opened: that may rewind a tape, start a watchdog, or end the wait of
 * a pipe's other end. */
static void devices(void) {
  static const char *const never_ending[] = {"/dev/zero", "/dev/full", "/dev/null"};
  char folder[PATH_BYTES], path[PATH_BYTES], lock[PATH_BYTES], events[4096];
  const ws_tuning_entry first = tuning_of_writer(1, 1);
  ws_tuning_list list = {0};
  folder_make(folder);
  for (int i = 0; i < 3; i++) {
    snprintf(lock, sizeof lock, "%s.lock", never_ending[i]);
    REQUIRE(symlink(never_ending[i], folder_path(path, folder, "link")) == 0, "link");
    errno = 0;
    CHECK(!ws_tuning_file_read(path, &list) && errno == EINVAL, "%s: errno is %d", never_ending[i], errno);
    errno = 0;
    CHECK(!tuning_merge(path, &first) && errno == EINVAL, "%s: errno is %d", never_ending[i], errno);
    CHECK(access(lock, F_OK) != 0, "%s was made", lock);
    REQUIRE(unlink(path) == 0, "unlink");
  }
  REQUIRE(mkfifo(folder_path(path, folder, "pipe"), 0666) == 0, "%s", strerror(errno));
  const int watch = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
  REQUIRE(watch >= 0 && inotify_add_watch(watch, path, IN_OPEN) >= 0, "inotify: %s", strerror(errno));
  CHECK(!ws_tuning_file_read(path, &list) && errno == EINVAL && !tuning_merge(path, &first), "a pipe was read");
  CHECK(read(watch, events, sizeof events) < 0 && errno == EAGAIN, "a pipe was opened");
  close(watch);
  CHECK(folder_count(folder, "") == 3, "%d entries", folder_count(folder, "")); /* with . and .. */
  folder_remove(folder);
}

/* Lines of another version, which has words, kinds or lengths that this one cannot read: in the
 * file they stay, whoever writes into it. */
static void foreign_lines(void) {
  enum { LONG = 5000 };
  static const char *const unknown[] = {"gemm device=\"x\" sparse=2:4 m=1", "trsm device=\"x\" m=1", "x"};
  char folder[PATH_BYTES], path[PATH_BYTES], mine[LINE_BYTES], torn[LINE_BYTES];
  const ws_tuning_entry first = tuning_of_writer(1, 1), second = tuning_of_writer(1, 2);
  folder_make(folder);
  folder_path(path, folder, "tuning");
  char *foreign = calloc(4, LONG), *text = calloc(8, LONG);
  REQUIRE(foreign && text, "memory");
  size_t n = 0;
  for (int i = 0; i < 4; i++) {
    char *line = foreign + n;
    if (i < 3)
      strcpy(line, unknown[i]);
    else
      memset(line, 'y', LONG - 100);
    n += tuning_seal(line, strlen(line));
    foreign[n++] = '\n';
  }
  tuning_line(&first, mine), tuning_line(&second, torn);
  torn[10] ^= 1;
  size_t n_text = (size_t)sprintf(text, "%s%.100s%s%s", WS_TUNING_HEADER, "# said by hand\n", torn, mine);
  memcpy(text + n_text, foreign, n);
  file_write(path, text, n_text + n);
  ws_tuning_list list = {0};
  CHECK(ws_tuning_file_read(path, &list) && list.n == 1 && list.n_bad == 1 && list.n_foreign == 4, "%d, %d bad, %d foreign",
        list.n, list.n_bad, list.n_foreign);
  ws_tuning_list_free(&list);
  for (int turn = 0; turn < 3; turn++) { /* they do not grow more, either */
    CHECK(tuning_merge(path, &first), "merged");
    const size_t n_now = (size_t)sprintf(text, "%s%s", WS_TUNING_HEADER, mine);
    memcpy(text + n_now, foreign, n);
    CHECK(file_is(path, text, n_now + n), "turn %d: the file is another", turn);
  }
  CHECK(ws_tuning_file_merge(path, NULL) && file_is(path, WS_TUNING_HEADER, strlen(WS_TUNING_HEADER)), "not emptied");
  n_text = (size_t)sprintf(text, "%s", WS_TUNING_HEADER);
  memcpy(text + n_text, foreign, n);
  file_write(path, text, n_text + n);
  CHECK(ws_tuning_file_read(path, &list) && list.n == 0 && list.n_bad == 0 && list.n_foreign == 4, "foreign lines alone");
  ws_tuning_list_free(&list);
  text[n_text + 3] = '\0'; /* no checksum makes this a line */
  text[n_text + tuning_seal(text + n_text, strlen(unknown[0]))] = '\n';
  file_write(path, text, n_text + n);
  CHECK(ws_tuning_file_read(path, &list) && list.n_bad == 1 && list.n_foreign == 3, "a NUL in a line: %d bad", list.n_bad);
  ws_tuning_list_free(&list);
  check_file(path, "foreign lines without a header", foreign, n, -1, 0);
  n_text = (size_t)sprintf(text, "# wsgemm tuning 2\n%s", mine);
  check_file(path, "a later header, a line of ours", text, n_text, -1, 0);
  memcpy(text + n_text, foreign, n);
  check_file(path, "a later header, foreign lines", text, n_text + n, -1, 0);
  n_text = (size_t)sprintf(text, "%s", mine);
  memcpy(text + n_text, foreign, n);
  file_write(path, text, n_text + n);
  errno = 0;
  CHECK(!tuning_merge(path, &second) && errno == EINVAL && file_is(path, text, n_text + n),
        "foreign lines without a header, merged");
  n_text = (size_t)sprintf(text, "%sgemm version=%s m=011", WS_TUNING_HEADER, wsgemm_version_string());
  n_text = (size_t)(strlen(WS_TUNING_HEADER) + tuning_seal(text + strlen(WS_TUNING_HEADER), n_text - strlen(WS_TUNING_HEADER)));
  check_file(path, "of this version, and yet not to be read", text, n_text, 0, 1);
  free(foreign), free(text);
  folder_remove(folder);
}

/* ---- merging --------------------------------------------------------------------------------- */

static void merging(void) {
  char folder[PATH_BYTES], path[PATH_BYTES];
  struct check_random rng = check_random_from(310);
  folder_make(folder);
  folder_path(path, folder, "tuning");
  ws_tuning_list expected = {0}, part = {0}, found = {0};
  for (int turn = 0; turn < 40; turn++) {
    part.n = 0;
    for (int i = (int)check_random_in(&rng, 0, 8); i > 0; i--) {
      ws_tuning_entry e = tuning_draw(&rng);
      if (expected.n > 0 && check_random_in(&rng, 0, 2) == 0) { /* the same key again */
        e = expected.entry[check_random_in(&rng, 0, expected.n - 1)];
        e.tuning.mc = turn + 1, e.after_us = turn;
      }
      CHECK(ws_tuning_list_put(&part, &e) && ws_tuning_list_put(&expected, &e), "memory");
    }
    CHECK(ws_tuning_file_merge(path, &part), "merge: %s", strerror(errno));
    found.n = 0;
    CHECK(ws_tuning_file_read(path, &found) && found.n == expected.n && found.n_bad == 0, "%d of %d entries", found.n,
          expected.n);
    for (int i = 0; i < expected.n && i < found.n; i++)
      CHECK(tuning_equal(&found.entry[i], &expected.entry[i]), "turn %d: entry %d", turn, i);
  }
  CHECK(folder_count(folder, "tuning") == 2 && tuning_file_is_unlocked(path), "%d files", folder_count(folder, "tuning"));
  ws_tuning_list_free(&expected), ws_tuning_list_free(&part), ws_tuning_list_free(&found);
  folder_remove(folder);
}

enum { N_WRITERS = 16, N_ENTRIES = 20 };

static void writers_at_once(void) {
  char folder[PATH_BYTES], path[PATH_BYTES];
  pid_t children[N_WRITERS];
  folder_make(folder);
  folder_path(path, folder, "new/tuning"); /* whose folder all want to make, too */
  atomic_int *n_ready = shared_memory(sizeof *n_ready);
  fflush(NULL);
  for (int w = 0; w < N_WRITERS; w++) {
    children[w] = fork();
    REQUIRE(children[w] >= 0, "fork");
    if (children[w] > 0) continue;
    bool ok = true;
    atomic_fetch_add(n_ready, 1);
    while (atomic_load(n_ready) < N_WRITERS) usleep(100);
    for (int i = 0; i < N_ENTRIES; i++) {
      const ws_tuning_entry e = tuning_of_writer(w, i);
      ok = tuning_merge(path, &e) && tuning_file_count(path) > i && ok; /* readers take no lock */
    }
    _exit(!ok);
  }
  for (int w = 0; w < N_WRITERS; w++) {
    int status = -1;
    CHECK(waitpid(children[w], &status, 0) == children[w] && status == 0, "writer %d: %#x", w, (unsigned)status);
  }
  CHECK(tuning_file_count(path) == N_WRITERS * N_ENTRIES, "%d entries of %d", tuning_file_count(path), N_WRITERS * N_ENTRIES);
  for (int w = 0; w < N_WRITERS; w++)
    for (int i = 0; i < N_ENTRIES; i += 7) {
      const ws_tuning_entry e = tuning_of_writer(w, i);
      CHECK(tuning_file_has(path, &e), "entry %d of writer %d is lost", i, w);
    }
  munmap(n_ready, sizeof *n_ready);
  folder_remove(folder);
}

/* ---- writers that are killed ----------------------------------------------------------------- */

static pid_t start_writer(const char *path, int writer, atomic_int *n_done) {
  fflush(NULL);
  const pid_t child = fork();
  REQUIRE(child >= 0, "fork");
  for (int i = 0; child == 0; i++) {
    const ws_tuning_entry e = tuning_of_writer(writer, i);
    if (!tuning_merge(path, &e)) _exit(1);
    atomic_store(n_done, i + 1);
  }
  return child;
}

/* One of them has merged an entry, or has left by itself, which it must not. */
static bool has_begun(atomic_int *n_done, int n_writers) {
  siginfo_t left = {.si_pid = 0};
  for (int w = 0; w < n_writers; w++)
    if (atomic_load(&n_done[w]) > 0) return true;
  return waitid(P_ALL, 0, &left, WEXITED | WNOHANG | WNOWAIT) != 0 || left.si_pid != 0;
}

static void killed_at_random(void) {
  enum { AT_ONCE = 3 };
  char folder[PATH_BYTES], path[PATH_BYTES];
  struct check_random rng = check_random_from(311);
  const int n_rounds = check_scale() > 1 ? 6 : 25;
  folder_make(folder);
  folder_path(path, folder, "tuning");
  atomic_int *n_done = shared_memory((size_t)n_rounds * AT_ONCE * sizeof *n_done);
  for (int round = 0; round < n_rounds; round++) {
    pid_t children[AT_ONCE];
    for (int w = 0; w < AT_ONCE; w++) children[w] = start_writer(path, round * AT_ONCE + w, &n_done[round * AT_ONCE + w]);
    /* so that there is something to be lost */
    while (round == 0 && !has_begun(n_done, AT_ONCE)) usleep(100);
    for (int w = 0; w < AT_ONCE; w++) {
      usleep((unsigned)check_random_in(&rng, 0, 15000));
      kill(children[w], SIGKILL);
    }
    for (int w = 0; w < AT_ONCE; w++) {
      int status = -1;
      REQUIRE(waitpid(children[w], &status, 0) == children[w], "waitpid");
      CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL, "a writer left by itself: %#x", (unsigned)status);
    }
    CHECK(tuning_file_is_unlocked(path), "round %d: the lock is still held", round);
    CHECK(tuning_file_count(path) >= 0, "round %d: the file is damaged", round);
  }
  ws_tuning_list list = {0};
  CHECK(ws_tuning_file_read(path, &list) && list.n_bad == 0, "the file is damaged");
  int n_all = 0;
  for (int writer = 0; writer < n_rounds * AT_ONCE; writer++)
    for (int i = 0; i < atomic_load(&n_done[writer]); i++, n_all++) {
      const ws_tuning_entry e = tuning_of_writer(writer, i);
      CHECK(tuning_in(&list, &e) != NULL, "entry %d of writer %d, which had been merged, is lost", i, writer);
    }
  CHECK(n_all > 0 && list.n >= n_all && list.n <= n_all + n_rounds * AT_ONCE, "%d entries, %d were told", list.n, n_all);
  ws_tuning_list_free(&list);
  munmap(n_done, (size_t)n_rounds * AT_ONCE * sizeof *n_done);
  folder_remove(folder);
}

/* ---- folders, links, permissions ------------------------------------------------------------- */

static void folders_and_links(void) {
  char folder[PATH_BYTES], path[PATH_BYTES], link[PATH_BYTES], inner[PATH_BYTES], here[PATH_BYTES];
  const ws_tuning_entry first = tuning_of_writer(1, 1), second = tuning_of_writer(1, 2), third = tuning_of_writer(1, 3);
  struct stat s;
  folder_make(folder);
  CHECK(tuning_merge(folder_path(path, folder, "a/b//c/tuning"), &first) && tuning_file_count(path) == 1, "folders: %s",
        strerror(errno));
  REQUIRE(chmod(path, 0640) == 0, "chmod");
  folder_path(link, folder, "link");
  REQUIRE(symlink("a/b/c/tuning", link) == 0, "link");
  CHECK(tuning_merge(link, &second) && lstat(link, &s) == 0 && S_ISLNK(s.st_mode), "a link is no link any more");
  CHECK(tuning_file_count(path) == 2 && tuning_file_count(link) == 2, "%d entries behind a link", tuning_file_count(path));
  CHECK(stat(path, &s) == 0 && (s.st_mode & 0777) == 0640, "mode %o", (unsigned)s.st_mode);
  folder_path(inner, folder, "outer");
  REQUIRE(symlink("a/b", inner) == 0, "link");
  CHECK(tuning_merge(folder_path(inner, folder, "outer/c/tuning"), &third) && tuning_file_count(path) == 3, "a link to a folder");
  CHECK(folder_count(folder_path(inner, folder, "a/b/c"), "") == 4, "temporary files are left");
  CHECK(!tuning_merge(folder_path(inner, folder, "a/b/c/tuning/below"), &first) && tuning_file_count(path) == 3,
        "a file as a folder");
  CHECK(tuning_file_count(inner) == 0, "below a file there is none");
  REQUIRE(getcwd(here, sizeof here) && chdir(folder) == 0, "chdir");
  CHECK(tuning_merge("plain", &first) && tuning_merge("x/y", &second) && tuning_merge("./plain", &second), "relative names");
  CHECK(tuning_file_count("plain") == 2 && tuning_file_count("x/../x/y") == 1, "relative names");
  REQUIRE(chdir(here) == 0, "chdir");
  CHECK(tuning_file_count(folder_path(path, folder, "plain")) == 2, "relative names are of another folder");
  char *longer = calloc(1, 6000);
  REQUIRE(longer != NULL, "memory");
  for (int i = 0; i < 5900; i++) longer[i] = i % 10 ? 'x' : '/';
  CHECK(!tuning_merge(longer, &first), "a name of 5900 bytes");
  free(longer);
  folder_remove(folder);
}

/* The links stay, and the file is made where the last one says. */
static void dangling_links(void) {
  static const struct {
    const char *name, *target, *file; /* file: where it is made */
  } links[] = {{"beside", "file_1", "file_1"},
               {"down", "inner/file_2", "inner/file_2"},
               {"inner/up", "../file_3", "file_3"},
               {"inner/of_inner", "../inner/./file_4", "inner/file_4"},
               {"to_up", "inner/to_up", NULL},
               {"inner/to_up", "../to_file_5", NULL},
               {"to_file_5", "%/inner/file_5", "inner/file_5"},
               {"through_folder", "outer/file_6", "inner/file_6"}};
  enum { N_LINKS = sizeof links / sizeof links[0] };
  char folder[PATH_BYTES], link[PATH_BYTES], path[PATH_BYTES], target[2 * PATH_BYTES];
  const ws_tuning_entry first = tuning_of_writer(1, 1), second = tuning_of_writer(1, 2);
  struct stat s;
  folder_make(folder);
  REQUIRE(mkdir(folder_path(path, folder, "inner"), 0777) == 0 && symlink("inner", folder_path(path, folder, "outer")) == 0, "%s",
          strerror(errno));
  for (int i = 0; i < N_LINKS; i++) {
    snprintf(target, sizeof target, "%s%s", links[i].target[0] == '%' ? folder : "",
             links[i].target + (links[i].target[0] == '%'));
    REQUIRE(symlink(target, folder_path(link, folder, links[i].name)) == 0, "%s", links[i].name);
  }
  for (int i = 0; i < N_LINKS; i++) {
    const bool is_chain = !links[i].file; /* to_up > inner/to_up > to_file_5 > inner/file_5 */
    folder_path(link, folder, links[i].name), folder_path(path, folder, is_chain ? "inner/file_5" : links[i].file);
    const int n_before = tuning_file_count(link);
    CHECK(tuning_merge(link, &first), "%s: %s", links[i].name, strerror(errno));
    CHECK(lstat(link, &s) == 0 && S_ISLNK(s.st_mode), "%s is no link any more", links[i].name);
    CHECK(lstat(path, &s) == 0 && S_ISREG(s.st_mode) && tuning_file_count(path) == 1 && n_before <= 1, "%s is not made by %s",
          path, links[i].name);
    CHECK(tuning_merge(link, &second) && lstat(link, &s) == 0 && S_ISLNK(s.st_mode) && tuning_file_count(path) == 2,
          "%s, now to a file", links[i].name);
    CHECK(ws_tuning_file_merge(link, NULL) && tuning_file_count(path) == 0 && tuning_merge(path, &first), "%s: emptied",
          links[i].name);
  }
  const int n_outer = folder_count(folder, ""), n_inner = folder_count(folder_path(path, folder, "inner"), "");
  CHECK(n_outer == 2 + 2 * 2 + 5 + 2 && n_inner == 2 + 2 * 4 + 3, "%d and %d entries", n_outer,
        n_inner); /* files with locks, links */
  folder_remove(folder);
}

/* Refused, with an errno, and nothing is made. */
static void links_to_nowhere(void) {
  char folder[PATH_BYTES], link[PATH_BYTES], target[PATH_BYTES];
  const ws_tuning_entry first = tuning_of_writer(1, 1);
  ws_tuning_list list = {0};
  struct stat s;
  folder_make(folder);
  REQUIRE(symlink("there", folder_path(link, folder, "back")) == 0, "link");
#define REFUSED(name, target, expected)                                                                   \
  do {                                                                                                    \
    REQUIRE(symlink(target, folder_path(link, folder, name)) == 0, "link");                               \
    errno = 0;                                                                                            \
    CHECK(!tuning_merge(link, &first) && errno == (expected), "%s: merged, or errno is %d", name, errno); \
    CHECK(lstat(link, &s) == 0 && S_ISLNK(s.st_mode), "%s is no link any more", name);                    \
  } while (0)
  REFUSED("loop", "loop", ELOOP);
  CHECK(!ws_tuning_file_read(link, &list) && errno == ELOOP, "a loop is read");
  REFUSED("there", "back", ELOOP);
  REFUSED("no_folder", "missing/file", ENOENT);
  file_write(folder_path(target, folder, "file"), "", 0);
  REFUSED("below_a_file", "file/below", ENOTDIR);
  REFUSED("to_folder", ".", EINVAL);
  for (int i = 1; i <= 60; i++) { /* longer than the system follows */
    char name[32], next[32];
    snprintf(name, sizeof name, "chain_%d", i), snprintf(next, sizeof next, "chain_%d", i + 1);
    REQUIRE(symlink(next, folder_path(link, folder, name)) == 0, "link");
  }
  CHECK(!tuning_merge(folder_path(link, folder, "chain_1"), &first) && errno == ELOOP, "a chain of 60: errno is %d", errno);
#undef REFUSED
  CHECK(folder_count(folder, "") == 2 + 7 + 60, "%d entries", folder_count(folder, ""));
  folder_remove(folder);
}

/* Writers take turns whatever name they give the file. */
static void *merge_many(void *argument) {
  const char *path = argument;
  for (int i = 0; i < 60; i++) {
    const ws_tuning_entry e = tuning_of_writer((int)strlen(path), i);
    CHECK(tuning_merge(path, &e), "%s", strerror(errno));
  }
  return NULL;
}

static void two_names(void) {
  char folder[PATH_BYTES], path[PATH_BYTES], link[PATH_BYTES];
  pthread_t thread;
  folder_make(folder);
  folder_path(path, folder, "tuning"), folder_path(link, folder, "the_link");
  CHECK(symlink("tuning", link) == 0, "%s", strerror(errno)); /* to a file that both want to make */
  REQUIRE(pthread_create(&thread, NULL, merge_many, link) == 0, "thread");
  merge_many(path);
  pthread_join(thread, NULL);
  CHECK(tuning_file_count(path) == 120, "%d entries of 120 by a file and a link to it", tuning_file_count(path));
  folder_remove(folder);
}

static void permissions_child(void *argument) {
  const char *folder = argument;
  char path[PATH_BYTES], below[PATH_BYTES];
  const ws_tuning_entry e = tuning_of_writer(1, 2);
  if (!process_become_ordinary()) {
    CHECK(true, "root stays root");
    return;
  }
  folder_path(path, folder, "closed/tuning");
  CHECK(tuning_file_count(path) == 1, "a read-only folder's file can be read");
  errno = 0;
  CHECK(!tuning_merge(path, &e) && errno == EACCES, "merged into a read-only folder, or errno is %d", errno);
  errno = 0;
  CHECK(!tuning_merge(folder_path(below, folder, "closed/sub/tuning"), &e) && errno == EACCES,
        "made a folder in a read-only one");
  CHECK(tuning_file_count(path) == 1, "%d entries", tuning_file_count(path));
  ws_tuning_list list = {0};
  errno = 0;
  CHECK(!ws_tuning_file_read(folder_path(path, folder, "secret"), &list) && errno == EACCES, "read, or errno is %d", errno);
  errno = 0;
  CHECK(!tuning_merge(path, &e) && errno == EACCES, "a file that cannot be read was replaced, or errno is %d", errno);
  CHECK(tuning_merge(folder_path(path, folder, "mine"), &e) && tuning_file_count(path) == 1, "an ordinary file: %s",
        strerror(errno));
}

static void permissions(void) {
  char folder[PATH_BYTES], path[PATH_BYTES];
  const ws_tuning_entry e = tuning_of_writer(1, 1);
  folder_make(folder);
  CHECK(tuning_merge(folder_path(path, folder, "closed/tuning"), &e), "%s", strerror(errno));
  CHECK(tuning_merge(folder_path(path, folder, "secret"), &e) && chmod(path, 0) == 0, "%s", strerror(errno));
  CHECK(chmod(folder_path(path, folder, "closed"), 0555) == 0, "chmod");
  check_in_child("an ordinary user", permissions_child, folder);
  CHECK(chmod(path, 0755) == 0, "chmod");
  folder_remove(folder);
}

static mode_t mode_of(const char *folder, const char *name) {
  char path[PATH_BYTES];
  struct stat s;
  return stat(folder_path(path, folder, name), &s) == 0 ? s.st_mode & 0777 : 0;
}

static void open_lock_child(void *argument) {
  char path[PATH_BYTES];
  if (process_become_ordinary())
    CHECK(open(folder_path(path, argument, "b.lock"), O_RDONLY) < 0 && errno == EACCES, "anyone may hold the lock");
  else
    CHECK(true, "root stays root");
}

/* Who may write the file may hold its lock; who may only read it may not. */
static void lock_modes(void) {
  static const struct {
    const char *name;
    mode_t umask, of_file, of_lock;
  } files[] = {
      {"a", 077, 0600, 0600}, {"b", 022, 0644, 0600}, {"c", 027, 0640, 0600}, {"d", 002, 0664, 0660}, {"e", 0, 0666, 0666}};
  char folder[PATH_BYTES], path[PATH_BYTES], lock[32];
  const ws_tuning_entry e = tuning_of_writer(1, 1);
  folder_make(folder);
  for (int i = 0; i < 5; i++) {
    snprintf(lock, sizeof lock, "%s.lock", files[i].name);
    for (int turn = 0; turn < 3; turn++) {
      const mode_t old = umask(files[i].umask);
      CHECK(tuning_merge(folder_path(path, folder, files[i].name), &e), "%s", strerror(errno));
      umask(old);
      CHECK(mode_of(folder, files[i].name) == files[i].of_file && mode_of(folder, lock) == files[i].of_lock,
            "turn %d, umask %03o: file %03o, lock %03o", turn, (unsigned)files[i].umask, (unsigned)mode_of(folder, files[i].name),
            (unsigned)mode_of(folder, lock));
      /* as earlier versions made it */
      if (turn == 0) CHECK(chmod(folder_path(path, folder, lock), 0644) == 0, "chmod");
      /* the lock stays */
      if (turn == 1) CHECK(unlink(folder_path(path, folder, files[i].name)) == 0, "unlink");
    }
  }
  CHECK(chmod(folder_path(path, folder, "b"), 0664) == 0 && tuning_merge(path, &e) && mode_of(folder, "b.lock") == 0660,
        "shared later: lock %03o", (unsigned)mode_of(folder, "b.lock"));
  CHECK(chmod(path, 0644) == 0 && tuning_merge(path, &e) && mode_of(folder, "b.lock") == 0600, "no longer shared: lock %03o",
        (unsigned)mode_of(folder, "b.lock"));
  check_in_child("an ordinary user", open_lock_child, folder);
  if (geteuid() == 0) { /* another user's lock is his */
    CHECK(chown(folder_path(path, folder, "b.lock"), 65534, 65534) == 0 && chmod(path, 0640) == 0, "chown");
    CHECK(tuning_merge(folder_path(path, folder, "b"), &e) && mode_of(folder, "b.lock") == 0640, "lock %03o",
          (unsigned)mode_of(folder, "b.lock"));
  }
  folder_remove(folder);
}

/* What has the lock's name and is not the library's keeps its mode: a file that holds something, or
 * has another name too, or is none. */
static void lock_of_others(void) {
  static const char *const kinds[] = {"text", "two_names", "pipe"};
  char folder[PATH_BYTES], path[PATH_BYTES], lock[PATH_BYTES], other[PATH_BYTES];
  const ws_tuning_entry e = tuning_of_writer(1, 1);
  folder_make(folder);
  folder_path(path, folder, "a"), folder_path(lock, folder, "a.lock"), folder_path(other, folder, "other");
  for (int i = 0; i < 3; i++) {
    if (i == 2)
      REQUIRE(mkfifo(lock, 0644) == 0, "%s", strerror(errno));
    else
      file_write(lock, "text", i == 0 ? 4 : 0);
    if (i == 1) REQUIRE(link(lock, other) == 0, "%s", strerror(errno));
    REQUIRE(chmod(lock, 0644) == 0, "chmod");
    for (int turn = 0; turn < 2; turn++)
      CHECK(tuning_merge(path, &e) && mode_of(folder, "a.lock") == 0644, "%s, turn %d: mode %03o", kinds[i], turn,
            (unsigned)mode_of(folder, "a.lock"));
    if (i == 0) CHECK(file_is(lock, "text", 4), "the text is another");
    CHECK(unlink(lock) == 0 && unlink(path) == 0 && (i != 1 || unlink(other) == 0), "unlink");
  }
  CHECK(tuning_merge(path, &e) && mode_of(folder, "a.lock") == 0600, "the library's own: mode %03o",
        (unsigned)mode_of(folder, "a.lock"));
  folder_remove(folder);
}

/* ---- forks ----------------------------------------------------------------------------------- */

static atomic_bool is_over;

static void *merge_on(void *argument) {
  for (int i = 0; !atomic_load(&is_over); i = (i + 1) % 50) {
    const ws_tuning_entry e = tuning_of_writer(9, i);
    CHECK(tuning_merge(argument, &e), "%s", strerror(errno));
  }
  return NULL;
}

/* A child that was forked while another thread held the lock does not keep it: it may live for
 * days. */
static void forked_beside_a_writer(void) {
  enum { N_CHILDREN = 20 };
  char folder[PATH_BYTES], path[PATH_BYTES];
  pid_t children[N_CHILDREN];
  pthread_t thread;
  folder_make(folder);
  folder_path(path, folder, "tuning");
  fflush(NULL);
  atomic_store(&is_over, false);
  REQUIRE(pthread_create(&thread, NULL, merge_on, path) == 0, "thread");
  for (int i = 0; i < N_CHILDREN; i++) {
    usleep(1500);
    children[i] = fork();
    REQUIRE(children[i] >= 0, "fork");
    if (children[i] == 0)
      for (;;) pause();
    CHECK(tuning_file_count(path) >= 0, "the file is damaged");
  }
  atomic_store(&is_over, true);
  pthread_join(thread, NULL); /* which would itself wait for ever */
  CHECK(tuning_file_is_unlocked(path), "a child that does nothing holds the lock");
  for (int i = 0; i < N_CHILDREN; i++) {
    kill(children[i], SIGKILL);
    waitpid(children[i], NULL, 0);
  }
  folder_remove(folder);
}

static const struct check_case cases[] = {{"strange_files", strange_files},
                                          {"devices", devices},
                                          {"foreign_lines", foreign_lines},
                                          {"merging", merging},
                                          {"writers_at_once", writers_at_once},
                                          {"killed_at_random", killed_at_random},
                                          {"folders_and_links", folders_and_links},
                                          {"dangling_links", dangling_links},
                                          {"links_to_nowhere", links_to_nowhere},
                                          {"two_names", two_names},
                                          {"lock_modes", lock_modes},
                                          {"lock_of_others", lock_of_others},
                                          {"permissions", permissions},
                                          {"forked_beside_a_writer", forked_beside_a_writer}};
CHECK_MAIN("tuning_file", cases)
