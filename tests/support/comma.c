/* comma.c - a locale with a decimal comma: see comma.h. */
#define _GNU_SOURCE
#include "comma.h"

#include "folder.h"

#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void write_charmap(const char *path) {
  FILE *file = fopen(path, "w");
  REQUIRE(file != NULL, "writing %s", path);
  fprintf(file, "<code_set_name> ANSI_X3.4-1968\n<comment_char> %%\n<escape_char> /\nCHARMAP\n");
  for (int c = 0; c < 128; c++) fprintf(file, "<U%04X> /x%02x C%d\n", (unsigned)c, (unsigned)c, c);
  fprintf(file, "END CHARMAP\n");
  REQUIRE(fclose(file) == 0, "closing %s", path);
}

bool comma_set(const char *folder) {
  static const char source[] = "LC_NUMERIC\ndecimal_point \",\"\nthousands_sep \".\"\ngrouping 3;3\nEND LC_NUMERIC\n";
  char path[PATH_BYTES], command[5 * PATH_BYTES];
  file_write(folder_path(path, folder, "source"), source, sizeof source - 1);
  write_charmap(folder_path(path, folder, "charmap"));
  /* Its status says that most categories are missing. */
  snprintf(command, sizeof command, "localedef -c -i '%s/source' -f '%s/charmap' '%s/xx_XX' >'%s/said' 2>&1", folder, folder,
           folder, folder);
  if (system(command) == -1) return false;
  setenv("LOCPATH", folder, 1);
  return setlocale(LC_ALL, "xx_XX") && strcmp(localeconv()->decimal_point, ",") == 0;
}

void comma_unset(void) {
  setlocale(LC_ALL, "C");
  unsetenv("LOCPATH");
}
