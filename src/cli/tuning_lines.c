/* Lines of a tuning file, taken apart: see tuning_lines.h. */
#define _GNU_SOURCE
#include "tuning_lines.h"
#include "cli.h"

#include <stdlib.h>
#include <string.h>

char *ws_tuning_next_line(char **text) {
  while (**text) {
    char *line = *text, *end = strchrnul(line, '\n');
    *text = *end ? end + 1 : end;
    *end = 0;
    if (*line && *line != '#') return line;
  }
  return NULL;
}

static void add(char *text, size_t bytes, size_t *used, char c) {
  if (*used + 1 < bytes) text[(*used)++] = c;
  text[*used] = 0;
}

bool ws_tuning_next_word(const char **line, ws_tuning_word *word) {
  const char *p = *line;
  size_t n_key = 0, n_value = 0;
  *word = (ws_tuning_word){0};
  while (*p == ' ') p++;
  if (!*p || *p == '\n') return false;
  for (; *p && *p != ' ' && *p != '\n' && *p != '='; p++) add(word->key, sizeof word->key, &n_key, *p);
  if (*p == '=') p++;
  word->is_quoted = *p == '"';
  if (word->is_quoted) {
    for (p++; *p && *p != '\n' && *p != '"'; p++) {
      if (*p == '\\' && p[1] && p[1] != '\n') p++;
      add(word->value, sizeof word->value, &n_value, *p);
    }
    if (*p == '"') p++;
  } else {
    for (; *p && *p != ' ' && *p != '\n'; p++) add(word->value, sizeof word->value, &n_value, *p);
  }
  *line = p;
  return true;
}

bool ws_tuning_value(const char *line, const char *key, char *value, size_t bytes) {
  ws_tuning_word word;
  while (ws_tuning_next_word(&line, &word)) {
    if (strcmp(word.key, key) != 0) continue;
    snprintf(value, bytes, "%s", word.value);
    return true;
  }
  *value = 0;
  return false;
}

bool ws_tuning_is(const char *line, const char *key, const char *value) {
  char found[128];
  return ws_tuning_value(line, key, found, sizeof found) && strcmp(found, value) == 0;
}

double ws_tuning_number(const char *line, const char *key) {
  char text[128];
  double value;
  return ws_tuning_value(line, key, text, sizeof text) && ws_cli_double(text, &value) ? value : 0;
}

int ws_tuning_count_lines(const char *text) {
  int n = 0;
  while (*text) {
    n += *text != '\n' && *text != '#';
    text += strcspn(text, "\n");
    text += *text == '\n';
  }
  return n;
}

char *ws_tuning_lines(const char *file, bool of_table) {
  if (of_table) return ws_cli_text(wsgemm_tuning_table);
  /* Another process may make it longer in between. */
  for (size_t bytes = wsgemm_tuning_read(file, NULL, 0) + 1;;) {
    char *text = malloc(bytes);
    if (!text) return NULL;
    const size_t needed = wsgemm_tuning_read(file, text, bytes) + 1;
    if (needed <= bytes) return text;
    free(text);
    bytes = needed;
  }
}

char *ws_tuning_user_file(void) { return ws_cli_text(wsgemm_tuning_file); }

void ws_tuning_put_json_value(FILE *f, const ws_tuning_word *word) {
  const char *p = word->value;
  p += strspn(p, "0123456789");
  const bool is_whole = p > word->value && !*p && (*word->value != '0' || p == word->value + 1);
  const bool is_decimal = p > word->value && *p == '.' && p[1] && !p[1 + strspn(p + 1, "0123456789")];
  if (!word->is_quoted && (is_whole || is_decimal))
    fputs(word->value, f);
  else
    ws_cli_put_json(f, word->value);
}
