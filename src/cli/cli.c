/* Error lines, option values and library texts for all commands: see cli.h.
 *
 * Invariant: every message leaves as one write of one line, so that two processes sharing a
 * terminal cannot mix theirs, and a file name with a line feed in it cannot make two lines of
 * one. */
#define _GNU_SOURCE
#include "cli.h"
#include "bench/harness/result.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void error_line(const char *format, va_list args, const char *help_command) {
  char line[2048] = "wsgemm: ";
  size_t room = sizeof line - 80; /* space for the closing hint */
  size_t used = strlen(line);
  int wanted = vsnprintf(line + used, room - used, format, args);
  if (wanted < 0) snprintf(line + used, room - used, "an error that cannot be put into words");
  used = strlen(line);
  if (help_command && *help_command) snprintf(line + used, sizeof line - used, " (see 'wsgemm help %s')", help_command);
  if (help_command && !*help_command) snprintf(line + used, sizeof line - used, " (see 'wsgemm help')");
  used = strlen(line);
  for (size_t i = 0; i < used; i++)
    if ((unsigned char)line[i] < 0x20 || line[i] == 0x7f) line[i] = '?';
  line[used++] = '\n';
  fflush(stdout);
  fwrite(line, 1, used, stderr);
  fflush(stderr);
}

int ws_cli_fail(const char *format, ...) {
  va_list args;
  va_start(args, format);
  error_line(format, args, NULL);
  va_end(args);
  return WS_EXIT_FAILED;
}

int ws_cli_usage(const char *command, const char *format, ...) {
  va_list args;
  va_start(args, format);
  error_line(format, args, command);
  va_end(args);
  return WS_EXIT_USAGE;
}

int ws_cli_bad_option(const char *command, int argc, char **argv, int found) {
  const char *word = optind > 0 && optind <= argc ? argv[optind - 1] : "";
  bool is_long = strncmp(word, "--", 2) == 0;
  if (found == ':') return ws_cli_usage(command, "%s: option '%s' needs a value", command, word);
  if (is_long && optopt) return ws_cli_usage(command, "%s: option '%.*s' takes no value", command, (int)strcspn(word, "="), word);
  if (is_long) return ws_cli_usage(command, "%s: unknown or ambiguous option '%.200s'", command, word);
  return ws_cli_usage(command, "%s: unknown option '-%c'", command, optopt);
}

bool ws_cli_int64(const char *text, int64_t least, int64_t most, int64_t *out) {
  char *end;
  errno = 0;
  long long value = strtoll(text, &end, 10);
  if (end == text || *end || errno || value < least || value > most) return false;
  *out = value;
  return true;
}

/* strtod, but a number too large for a double is refused instead of becoming infinite, as are
 * leading blanks. */
static bool leading_double(const char *text, char **end, double *out) {
  if (*text == ' ' || (*text >= '\t' && *text <= '\r')) return false;
  errno = 0;
  *out = strtod(text, end);
  return *end != text && !(errno == ERANGE && isinf(*out));
}

bool ws_cli_double(const char *text, double *out) {
  char *end;
  return leading_double(text, &end, out) && !*end;
}

bool ws_cli_complex(const char *text, wsgemm_cdouble *out) {
  char copy[128], *p = copy, *end;
  size_t length = strlen(text);
  if (length >= sizeof copy) return false;
  memcpy(copy, text, length + 1);
  if (length > 2 && copy[0] == '(' && copy[length - 1] == ')') {
    copy[length - 1] = 0;
    p++;
  }
  *out = (wsgemm_cdouble){0, 0};
  double first;
  if (!leading_double(p, &end, &first)) return false;
  if (!*end) {
    out->re = first;
    return true;
  }
  if (strcmp(end, "j") == 0) {
    out->im = first;
    return true;
  }
  if (*end != '+' && *end != '-') return false;
  double second;
  if (!leading_double(end, &end, &second) || strcmp(end, "j") != 0) return false;
  *out = (wsgemm_cdouble){first, second};
  return true;
}

wsgemm_kernel_info ws_cli_kernel_at(int row) {
  wsgemm_kernel_info info = {.struct_bytes = sizeof info};
  (void)wsgemm_get_kernel_info(row, &info); /* it cannot fail */
  return info;
}

bool ws_cli_kernel(const char *name, wsgemm_kernel_info *info) {
  for (int row = 0; row < wsgemm_kernel_count(); row++) {
    *info = ws_cli_kernel_at(row);
    if (strcmp(info->name, name) == 0) return true;
  }
  return false;
}

bool ws_cli_row_takes_host_memory(int row) { return wsgemm_kernel_usable(row) && strcmp(wsgemm_kernel_backend(row), "cpu") == 0; }

static const struct {
  const char *name;
  wsgemm_policy policy;
} policies[] = {
#define POLICY(enumerator, name) {name, WSGEMM_POLICY_##enumerator},
    WSGEMM_POLICY_MAP(POLICY)
#undef POLICY
};

bool ws_cli_policy(const char *text, wsgemm_policy *out) {
  for (size_t i = 0; i < sizeof policies / sizeof *policies; i++) {
    if (strcmp(text, policies[i].name) != 0) continue;
    *out = policies[i].policy;
    return true;
  }
  return false;
}

#define LISTED(enumerator, name) ", " name
const char *ws_cli_policy_names(void) { return &WSGEMM_POLICY_MAP(LISTED)[2]; }
#undef LISTED

char *ws_cli_text(size_t (*ask)(char *text, size_t bytes)) {
  size_t bytes = ask(NULL, 0) + 1;
  char *text = malloc(bytes);
  if (text) ask(text, bytes);
  return text;
}

char *ws_cli_explain(wsgemm_handle *h, const wsgemm_gemm_desc *desc) {
  size_t bytes = wsgemm_explain(h, desc, NULL, 0) + 1;
  char *text = malloc(bytes);
  if (text) wsgemm_explain(h, desc, text, bytes);
  return text;
}

bool ws_cli_next_line(char **text, char **key, char **value) {
  static char nothing[] = "";
  char *line;
  do {
    if (!**text) return false;
    line = *text;
    char *end = strchrnul(line, '\n');
    *text = *end ? end + 1 : end;
    *end = 0;
  } while (!*line);
  char *colon = strchr(line, ':');
  *key = line;
  *value = colon ? colon + 1 : nothing;
  if (colon) *colon = 0;
  while (**value == ' ') (*value)++;
  return true;
}

void ws_cli_put_json(FILE *f, const char *text) { ws_bench_put_json(f, text); }

void ws_cli_put_member(FILE *f, const char *key, const char *value) {
  fprintf(f, ",\"%s\":", key);
  ws_cli_put_json(f, value);
}

const char *ws_cli_why(wsgemm_status status) {
  const char *detail = wsgemm_last_error();
  return *detail ? detail : wsgemm_status_text(status);
}

int ws_cli_check_environment(void) {
  static const char begin[] = "warning: ", middle[] = " is ignored; ";
  /* the first call reads the environment, and leaves a warning */
  (void)wsgemm_default_num_threads();
  const char *warning = wsgemm_last_error(), *legal = strstr(warning, middle);
  if (strncmp(warning, begin, strlen(begin)) != 0 || !legal) return WS_EXIT_OK;
  warning += strlen(begin);
  return ws_cli_fail("%.*s in the environment: %s", (int)(legal - warning), warning, legal + strlen(middle));
}
