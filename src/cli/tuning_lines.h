/* tuning_lines.h - lines of a tuning file as wsgemm_tuning_read gives them: words of the form
 * key=value, texts in quotes. */
#ifndef WSGEMM_CLI_TUNING_LINES_H
#define WSGEMM_CLI_TUNING_LINES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

/* Splits the next line off *text, in place, and leaves out empty ones and comments. NULL at the
 * end. */
char *ws_tuning_next_line(char **text);

/* The next word of a line, which *line then points behind: its key, and its value without quotes,
 * both cut to fit. A word without '=' has no value. False at the end. */
typedef struct ws_tuning_word {
  char key[32], value[128];
  bool is_quoted;
} ws_tuning_word;
bool ws_tuning_next_word(const char **line, ws_tuning_word *word);

/* The value of a key; false, and "": the line does not have it. */
bool ws_tuning_value(const char *line, const char *key, char *value, size_t bytes);
bool ws_tuning_is(const char *line, const char *key, const char *value);
double ws_tuning_number(const char *line, const char *key); /* 0: none */

/* Lines that a text has, comments not counted. */
int ws_tuning_count_lines(const char *text);

/* The valid lines of a file, or (NULL) of the user's, or of the library's own table; to be freed.
 * NULL: out of memory. */
char *ws_tuning_lines(const char *file, bool of_table);

/* The name of the user's file, "" if there is none; to be freed. NULL: out of memory. */
char *ws_tuning_user_file(void);

/* A value of a word as JSON: a number where it is one, else a string. */
void ws_tuning_put_json_value(FILE *f, const ws_tuning_word *word);

#endif
