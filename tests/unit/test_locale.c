/* test_locale.c - what the library says does not depend on the program's locale: neither its
 * numbers nor its words. (That of tuning lines is test_tuning_line.c's.) */
#define _GNU_SOURCE
#include "support/comma.h"
#include "support/folder.h"
#include "support/gemm_call.h"

#include <errno.h>
#include <libintl.h>
#include <locale.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static void in_comma(void (*body)(const char *folder)) {
  char folder[PATH_BYTES], number[16];
  folder_make(folder);
  if (comma_set(folder)) {
    snprintf(number, sizeof number, "%g", 0.5);
    CHECK(strcmp(number, "0,5") == 0, "half is %s", number);
    body(folder);
  } else {
    check_skip("no locale with a decimal comma can be made (localedef of glibc)");
  }
  comma_unset();
  folder_remove(folder);
}

/* ---- numbers --------------------------------------------------------------------------------- */

enum { TEXT_BYTES = 1 << 16 };

/* All that is said of one product and of the machine. */
static char *all_texts(void) {
  static const double scales[] = {0.5, 1234567.25, -1e-7, 3e300};
  char *text = calloc(1, TEXT_BYTES);
  REQUIRE(text != NULL, "memory");
  size_t n = 0;
  for (int i = 0; i < 4; i++) {
    wsgemm_gemm_desc d = gemm_desc(WSGEMM_F64, WSGEMM_COL_MAJOR, WSGEMM_NO_TRANS, WSGEMM_NO_TRANS, 128, 128, 128);
    d.out_scale = scales[i];
    n += wsgemm_explain(NULL, &d, text + n, TEXT_BYTES - n);
  }
  n += wsgemm_machine(text + n, TEXT_BYTES - n);
  n += wsgemm_config(text + n, TEXT_BYTES - n);
  wsgemm_autotune_options options = WSGEMM_AUTOTUNE_OPTIONS_INIT; /* operands of 2^45 elements */
  wsgemm_gemm_desc large = gemm_desc(WSGEMM_F64, WSGEMM_COL_MAJOR, WSGEMM_NO_TRANS, WSGEMM_NO_TRANS, 100, 100, 100);
  large.lda = INT64_C(1) << 45;
  CHECK(wsgemm_autotune(NULL, &large, &options) == WSGEMM_ALLOC_FAILED, "%s", wsgemm_last_error());
  n += (size_t)snprintf(text + n, TEXT_BYTES - n, "%s\n", wsgemm_last_error());
  REQUIRE(n < TEXT_BYTES, "%zu bytes of text", n);
  return text;
}

static char *said_before;

static void numbers_in_comma(const char *folder) {
  (void)folder;
  char *texts = all_texts();
  size_t same = 0;
  while (texts[same] && texts[same] == said_before[same]) same++;
  CHECK(strstr(said_before, "scale 0.5") && strcmp(texts, said_before) == 0, "\"%.40s\" and not \"%.40s\"", texts + same,
        said_before + same);
  CHECK(strcmp(localeconv()->decimal_point, ",") == 0, "the program's locale has changed");
  free(texts);
}

static void numbers(void) {
  said_before = all_texts();
  in_comma(numbers_in_comma);
  free(said_before);
}

/* ---- words ----------------------------------------------------------------------------------- */

static char *table; /* lines to import */
static char english[128];

/* A catalogue of one text, as gettext reads it
 * (https://www.gnu.org/software/gettext/manual/html_node/MO-Files.html). */
static void write_catalogue(const char *path, const char *text, const char *translation) {
  enum { N_WORDS = 7 + 2 * 2 };
  const uint32_t bytes = (uint32_t)strlen(text), more = (uint32_t)strlen(translation);
  const uint32_t words[N_WORDS] = {0x950412de, 0, 1, 28, 36, 0, 44, bytes, 44, more, 44 + bytes + 1};
  char file[1024];
  memcpy(file, words, sizeof words);
  memcpy(file + sizeof words, text, bytes + 1);
  memcpy(file + sizeof words + bytes + 1, translation, more + 1);
  file_write(path, file, sizeof words + bytes + 1 + more + 1);
}

static void words_in_comma(const char *folder) {
  char path[PATH_BYTES];
  REQUIRE(mkdir(folder_path(path, folder, "xx"), 0777) == 0 && mkdir(folder_path(path, folder, "xx/LC_MESSAGES"), 0777) == 0,
          "%s", path);
  write_catalogue(folder_path(path, folder, "xx/LC_MESSAGES/libc.mo"), english, "Kein Ordner");
  CHECK(bindtextdomain("libc", folder) && strcmp(strerror(ENOTDIR), "Kein Ordner") == 0, "not translated: %s", strerror(ENOTDIR));
  CHECK(wsgemm_tuning_import(table, folder_path(path, folder, "source/below"), NULL) == WSGEMM_FILE_ERROR, "imported");
  CHECK(strstr(wsgemm_last_error(), english) != NULL, "\"%s\"", wsgemm_last_error());
}

static void words(void) {
  const size_t bytes = wsgemm_tuning_table(NULL, 0) + 1;
  table = malloc(bytes);
  REQUIRE(table && wsgemm_tuning_table(table, bytes) < bytes, "the table");
  snprintf(english, sizeof english, "%s", strerror(ENOTDIR));
  in_comma(words_in_comma);
  free(table);
}

static const struct check_case cases[] = {{"numbers", numbers}, {"words", words}};
CHECK_MAIN("locale", cases)
