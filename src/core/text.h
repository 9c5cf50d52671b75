/* text.h - texts that grow into a caller's buffer. Whatever the program's locale, they have the
 * numbers and words of "C". */
#ifndef WS_TEXT_H
#define WS_TEXT_H
#include <stdarg.h>
#include <stddef.h>

typedef struct ws_text {
  char *at;
  size_t bytes, length; /* capacity; length of the whole text, written or not */
} ws_text;
void ws_text_add(ws_text *t, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* vsnprintf and strerror in the locale "C", whatever the program's is. */
int ws_format(char *text, size_t bytes, const char *format, va_list args) __attribute__((format(printf, 3, 0)));
const char *ws_error_text(int error);
#endif
