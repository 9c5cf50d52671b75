/* text.c - texts that grow into a caller's buffer, and the one about how the library was built. Whatever the program's locale, they have the
 * numbers and words of "C". */
#define _GNU_SOURCE
#include <locale.h>
#include <stdio.h>
#include <string.h>

#include "core/internal.h"
#include "cuda/host/backend.h"

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

#define STRING_(x) #x
#define STRING(x) STRING_(x)

const char *wsgemm_version_string(void) {
  return STRING(WSGEMM_VERSION_MAJOR) "." STRING(WSGEMM_VERSION_MINOR) "." STRING(WSGEMM_VERSION_PATCH);
}

int wsgemm_version(void) { return WSGEMM_VERSION; }

size_t wsgemm_config(char *text, size_t bytes) {
  ws_text t = {text, bytes, 0};
  if (bytes > 0) text[0] = '\0';
  ws_text_add(&t, "version: %s\n", wsgemm_version_string());
#if defined(__clang__)
  ws_text_add(&t, "compiler: clang %s\n", __clang_version__);
#elif defined(__GNUC__)
  ws_text_add(&t, "compiler: gcc %s\n", __VERSION__);
#else
  ws_text_add(&t, "compiler: unknown\n");
#endif
#if defined(__x86_64__)
  ws_text_add(&t, "target: x86-64\n");
#elif defined(__aarch64__)
  ws_text_add(&t, "target: aarch64\n");
#else
  ws_text_add(&t, "target: generic\n");
#endif
#ifdef NDEBUG
  ws_text_add(&t, "assertions: off\n");
#else
  ws_text_add(&t, "assertions: on\n");
#endif
  ws_text_add(&t, "backends: cpu%s\n", ws_cuda_kernel_count() > 0 ? " cuda" : "");
#ifdef WS_CUDA_ARCHITECTURES
  ws_text_add(&t, "gpu code: %s\n", WS_CUDA_ARCHITECTURES);
#endif
  ws_text_add(&t, "kernels: %d rows\n", wsgemm_kernel_count());
  return t.length;
}
