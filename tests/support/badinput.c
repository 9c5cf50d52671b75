/* badinput.c - see badinput.h. */
#include "badinput.h"

#include <string.h>

void operands_fill(struct operands *x) {
  struct check_random rng = check_random_from(70);
  for (size_t i = 0; i < sizeof x->c; i++) {
    x->a[i] = 0;
    x->b[i] = x->before_b[i] = (unsigned char)check_random_bits(&rng);
    x->c[i] = x->before_c[i] = (unsigned char)check_random_bits(&rng);
  }
}

bool operands_are_as_filled(const struct operands *x) {
  return memcmp(x->c, x->before_c, sizeof x->c) == 0 && memcmp(x->b, x->before_b, sizeof x->b) == 0;
}

wsgemm_handle *no_handle(void) {
  static _Alignas(16) unsigned char memory[512];
  memset(memory, 0x5a, sizeof memory);
  return (wsgemm_handle *)(void *)memory;
}

void check_refused(const char *what, wsgemm_status status, const struct refusal *refusal, const struct operands *x) {
  check_refusal(what, status, refusal->answer, refusal->argument, refusal->value, refusal->least);
  CHECK(operands_are_as_filled(x), "%s: something was written", what);
}

void check_explains_error(const char *what, const char *text) {
  CHECK(strncmp(text, "error: ", 7) == 0, "%s: explained as \"%s\"", what, text);
}
