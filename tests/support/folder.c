/* folder.c - temporary folders and files: see folder.h. */
#define _GNU_SOURCE
#include "folder.h"

#include <dirent.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

void folder_make(char folder[PATH_BYTES]) {
  const char *parent = getenv("TMPDIR");
  snprintf(folder, PATH_BYTES, "%s/wsgemm_test_XXXXXX", parent && *parent == '/' ? parent : "/tmp");
  REQUIRE(mkdtemp(folder) && chmod(folder, 0777) == 0, "folder %s", folder);
}

static int remove_entry(const char *path, const struct stat *s, int type, struct FTW *where) {
  (void)s, (void)where;
  if (type == FTW_DP || type == FTW_D || type == FTW_DNR)
    (void)rmdir(path);
  else
    (void)unlink(path);
  return 0;
}

void folder_remove(const char *folder) { (void)nftw(folder, remove_entry, 16, FTW_DEPTH | FTW_PHYS); }

const char *folder_path(char path[PATH_BYTES], const char *folder, const char *name) {
  REQUIRE(snprintf(path, PATH_BYTES, "%s/%s", folder, name) < PATH_BYTES, "path of %s", name);
  return path;
}

int folder_count(const char *folder, const char *start) {
  DIR *entries = opendir(folder);
  int n = 0;
  if (!entries) return -1;
  for (const struct dirent *entry = readdir(entries); entry; entry = readdir(entries))
    n += strncmp(entry->d_name, start, strlen(start)) == 0;
  closedir(entries);
  return n;
}

void file_write(const char *path, const void *bytes, size_t n_bytes) {
  FILE *file = fopen(path, "wb");
  REQUIRE(file && (n_bytes == 0 || fwrite(bytes, 1, n_bytes, file) == n_bytes), "writing %s", path);
  REQUIRE(fclose(file) == 0, "closing %s", path);
}

char *file_read(const char *path, size_t *n_bytes) {
  FILE *file = fopen(path, "rb");
  if (!file) return NULL;
  size_t most = 1 << 16;
  char *bytes = malloc(most + 1);
  for (*n_bytes = 0; bytes;) {
    const size_t n = fread(bytes + *n_bytes, 1, most - *n_bytes, file);
    *n_bytes += n;
    if (n == 0) break;
    if (*n_bytes == most) bytes = realloc(bytes, 2 * most + 1), most *= 2;
  }
  fclose(file);
  REQUIRE(bytes != NULL, "memory for %s", path);
  bytes[*n_bytes] = '\0';
  return bytes;
}

bool file_is(const char *path, const void *bytes, size_t n_bytes) {
  size_t n_found = 0;
  char *found = file_read(path, &n_found);
  const bool is = found && n_found == n_bytes && memcmp(found, bytes, n_bytes) == 0;
  free(found);
  return is;
}

void check_with_tuning_file(char folder[PATH_BYTES], char user_file[PATH_BYTES], const char *what, void (*body)(void *),
                            void *argument) {
  folder_make(folder);
  folder_path(user_file, folder, "tuning");
  setenv("WSGEMM_TUNE", user_file, 1);
  check_in_child(what, body, argument);
  folder_remove(folder);
}

bool process_become_ordinary(void) {
  enum { NOBODY = 65534 };
  if (geteuid() != 0) return true;
  return setgid(NOBODY) == 0 && setuid(NOBODY) == 0 && geteuid() != 0;
}
