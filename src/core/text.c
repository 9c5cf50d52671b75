/* text.c - see text.h. */
#define _GNU_SOURCE
#include "core/text.h"

#include <locale.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

/* 0: there is no memory for it. With glibc and musl it takes none. */
static locale_t c_locale(void) {
  static _Atomic(locale_t) made;
  locale_t is = atomic_load_explicit(&made, memory_order_acquire); /* partner: the exchange below */
  if (is) return is;
  const locale_t own = newlocale(LC_ALL_MASK, "C", (locale_t)0);
  if (!own || atomic_compare_exchange_strong(&made, &is, own)) return own;
  freelocale(own);
  return is;
}

int ws_format(char *text, size_t bytes, const char *format, va_list args) {
  const locale_t c = c_locale(), old = c ? uselocale(c) : (locale_t)0;
  const int n = vsnprintf(text, bytes, format, args);
  if (old) uselocale(old);
  return n;
}

const char *ws_error_text(int error) {
  const locale_t c = c_locale();
  return c ? strerror_l(error, c) : strerror(error);
}

void ws_text_add(ws_text *t, const char *format, ...) {
  va_list args;
  va_start(args, format);
  const size_t room = t->length < t->bytes ? t->bytes - t->length : 0;
  const int n = ws_format(room ? t->at + t->length : NULL, room, format, args);
  va_end(args);
  if (n > 0) t->length += (size_t)n;
}
