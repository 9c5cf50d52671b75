/* folder.h - temporary folders and files for the suites that write some, and what it takes to be
 * refused one. */
#ifndef WSGEMM_TESTS_FOLDER_H
#define WSGEMM_TESTS_FOLDER_H

#include "check.h"

enum { PATH_BYTES = 512 };

/* A new empty folder under $TMPDIR or /tmp, open to all users; the process ends if there is none to
 * be had. */
void folder_make(char folder[PATH_BYTES]);

/* With all that is in it. */
void folder_remove(const char *folder);

/* "folder/name" into path; returns path. */
const char *folder_path(char path[PATH_BYTES], const char *folder, const char *name);

/* How many entries of the folder have a name that begins with `start`; -1: it cannot be read. */
int folder_count(const char *folder, const char *start);

/* Replaces the file. */
void file_write(const char *path, const void *bytes, size_t n_bytes);

/* All of a file, NUL-closed, in memory of its own; NULL: it cannot be read. */
char *file_read(const char *path, size_t *n_bytes);

/* Whether the file holds just these bytes. */
bool file_is(const char *path, const void *bytes, size_t n_bytes);

/* In a child, with a folder that is empty at first; user_file, a path in it, is what WSGEMM_TUNE says. */
void check_with_tuning_file(char folder[PATH_BYTES], char user_file[PATH_BYTES], const char *what, void (*body)(void *),
                            void *argument);

/* Makes this process one that permissions apply to, for good; false if it stays root. */
bool process_become_ordinary(void);

#endif
