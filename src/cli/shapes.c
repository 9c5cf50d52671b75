/* Sizes by name, by number and by file: see shapes.h. */
#define _GNU_SOURCE
#include "shapes.h"
#include "bench/harness/random.h"
#include "cli.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_SHAPES = 4096, MAX_SIZE = 1 << 20, RANDOM_LEAST = 16, RANDOM_MOST = 8192 };

/* ---- The sets, each closed by a size of 0 ---------------------------------------------------- */

static const ws_shape square[] = {
    {256, 256, 256},    {384, 384, 384},    {512, 512, 512},    {768, 768, 768},    {1024, 1024, 1024},
    {1536, 1536, 1536}, {2048, 2048, 2048}, {3072, 3072, 3072}, {4096, 4096, 4096}, {0},
};
static const ws_shape small[] = {
    {16, 16, 16}, {24, 24, 24}, {32, 32, 32},    {48, 48, 48},    {64, 64, 64},
    {80, 80, 80}, {96, 96, 96}, {128, 128, 128}, {192, 192, 192}, {0},
};
static const ws_shape odd[] = {
    {65, 65, 65},
    {101, 101, 101},
    {127, 127, 127},
    {255, 257, 253},
    {333, 333, 333},
    {513, 511, 517},
    {777, 777, 777},
    {1001, 999, 1003},
    {1025, 1025, 1025},
    {2047, 2049, 2051},
    {3001, 2999, 3003},
    {4095, 4097, 4099},
    {0},
};
static const ws_shape skinny[] = {
    {16, 4096, 4096}, {4096, 16, 4096}, {64, 4096, 4096}, {4096, 64, 4096}, {4096, 4096, 16}, {4096, 4096, 64}, {256, 4096, 4096},
    {256, 256, 8192}, {64, 64, 16384},  {8192, 256, 256}, {256, 8192, 256}, {1, 4096, 4096},  {4096, 1, 4096},  {0},
};

static const struct {
  const char *name, *what;
  const ws_shape *shapes;
} sets[] = {
    {"square", "squares of 256 to 4096", square},
    {"small", "squares of 16 to 192", small},
    {"odd", "sizes beside the multiples of every tile", odd},
    {"skinny", "one or two of m, n, k small, down to a vector", skinny},
};
enum { N_SETS = sizeof sets / sizeof *sets };

void ws_shapes_print_sets(void) {
  for (int i = 0; i < N_SETS; i++) printf("    %-18s %s\n", sets[i].name, sets[i].what);
  printf("    %-18s COUNT shapes, m, n and k each from %d to %d, evenly in log\n", "random:COUNT:SEED", RANDOM_LEAST,
         RANDOM_MOST);
}

/* ---- One word -------------------------------------------------------------------------------- */

static int add(ws_shapes *list, const char *command, ws_shape s) {
  for (int i = 0; i < list->n; i++)
    if (list->at[i].m == s.m && list->at[i].n == s.n && list->at[i].k == s.k) return WS_EXIT_OK;
  if (list->n == MAX_SHAPES) return ws_cli_usage(command, "%s: more than %d shapes", command, MAX_SHAPES);
  ws_shape *more = realloc(list->at, sizeof *more * (size_t)(list->n + 1));
  if (!more) return ws_cli_fail("out of memory for shapes");
  list->at = more;
  more[list->n++] = s;
  return WS_EXIT_OK;
}

/* The next size in *text, which then points behind it. */
static bool take_size(const char **text, int64_t *out) {
  char digits[16];
  const size_t length = strspn(*text, "0123456789");
  if (length == 0 || length >= sizeof digits) return false;
  memcpy(digits, *text, length);
  digits[length] = 0;
  *text += length;
  return ws_cli_int64(digits, 1, MAX_SIZE, out);
}

/* "MxNxK", or "N" for a square. */
static bool read_shape(const char *text, ws_shape *s) {
  if (!take_size(&text, &s->m)) return false;
  s->n = s->k = s->m;
  if (!*text) return true;
  return *text++ == 'x' && take_size(&text, &s->n) && *text++ == 'x' && take_size(&text, &s->k) && !*text;
}

static bool looks_like_shape(const char *text) { return isdigit((unsigned char)*text) && text[strspn(text, "0123456789x")] == 0; }

/* random:COUNT[:SEED] */
static int add_random(ws_shapes *list, const char *command, const char *text) {
  char copy[64], *rest = copy;
  snprintf(copy, sizeof copy, "%s", text);
  int64_t count, seed = 1;
  const char *count_text = strsep(&rest, ":"), *seed_text = strsep(&rest, ":");
  if (strlen(text) >= sizeof copy || rest || !ws_cli_int64(count_text, 1, MAX_SHAPES, &count) ||
      (seed_text && !ws_cli_int64(seed_text, 0, INT64_MAX, &seed)))
    return ws_cli_usage(command, "%s: 'random:%s' is not random:COUNT[:SEED], with up to %d shapes", command, text, MAX_SHAPES);
  uint64_t state = (uint64_t)seed;
  int code = WS_EXIT_OK;
  while (code == WS_EXIT_OK && count-- > 0) {
    ws_shape s;
    s.m = ws_random_size(&state, RANDOM_LEAST, RANDOM_MOST);
    s.n = ws_random_size(&state, RANDOM_LEAST, RANDOM_MOST);
    s.k = ws_random_size(&state, RANDOM_LEAST, RANDOM_MOST);
    code = add(list, command, s);
  }
  return code;
}

/* ---- Files ----------------------------------------------------------------------------------- */

/* "m n k" or "MxNxK", comments after '#'. False: neither a shape nor an empty line. */
static bool read_line(char *line, ws_shape *s, bool *is_empty) {
  line[strcspn(line, "#")] = 0;
  char *words[3], *save = NULL;
  int n = 0;
  for (char *word = strtok_r(line, " \t\r\n", &save); word; word = strtok_r(NULL, " \t\r\n", &save)) {
    if (n == 3) return false;
    words[n++] = word;
  }
  *is_empty = n == 0;
  if (n <= 1) return n == 0 || read_shape(words[0], s);
  return n == 3 && ws_cli_int64(words[0], 1, MAX_SIZE, &s->m) && ws_cli_int64(words[1], 1, MAX_SIZE, &s->n) &&
         ws_cli_int64(words[2], 1, MAX_SIZE, &s->k);
}

static int add_lines(ws_shapes *list, const char *command, const char *path, FILE *file) {
  char *line = NULL;
  size_t room = 0;
  int code = WS_EXIT_OK;
  errno = 0;
  for (int number = 1; code == WS_EXIT_OK && getline(&line, &room, file) >= 0; number++) {
    ws_shape s;
    bool is_empty = false;
    if (!read_line(line, &s, &is_empty))
      code = ws_cli_fail("%s, line %d: no shape 'm n k' or 'MxNxK' of sizes from 1 to %d", path, number, MAX_SIZE);
    else if (!is_empty)
      code = add(list, command, s);
  }
  if (code == WS_EXIT_OK && ferror(file)) code = ws_cli_fail("%s: %s", path, strerror(errno));
  free(line);
  return code;
}

static int add_file(ws_shapes *list, const char *command, const char *path) {
  FILE *file = fopen(path, "re");
  if (!file && errno == ENOENT && !strchr(path, '/')) {
    char names[128] = "";
    for (int i = 0; i < N_SETS; i++) strcat(strcat(names, sets[i].name), ", ");
    return ws_cli_usage(command, "%s: '%.80s' is neither a set (%srandom:COUNT:SEED), nor MxNxK, nor a file", command, path,
                        names);
  }
  if (!file) return ws_cli_fail("%s: %s", path, strerror(errno));
  const int before = list->n;
  int code = add_lines(list, command, path, file);
  if (code == WS_EXIT_OK && list->n == 0 && before == 0) code = ws_cli_fail("%s: no shape in it", path);
  fclose(file);
  return code;
}

/* ---- Lists ----------------------------------------------------------------------------------- */

static int add_word(ws_shapes *list, const char *command, const char *word) {
  ws_shape s;
  for (int i = 0; i < N_SETS; i++) {
    if (strcmp(word, sets[i].name) != 0) continue;
    int code = WS_EXIT_OK;
    for (const ws_shape *at = sets[i].shapes; at->m && code == WS_EXIT_OK; at++) code = add(list, command, *at);
    return code;
  }
  if (strncmp(word, "random:", 7) == 0) return add_random(list, command, word + 7);
  if (read_shape(word, &s)) return add(list, command, s);
  if (!*word || looks_like_shape(word))
    return ws_cli_usage(command, "%s: '%.80s' is no shape: MxNxK, with sizes from 1 to %d", command, word, MAX_SIZE);
  return add_file(list, command, word);
}

int ws_shapes_add(ws_shapes *list, const char *command, const char *text) {
  char *copy = strdup(text), *rest = copy;
  if (!copy) return ws_cli_fail("out of memory");
  int code = WS_EXIT_OK;
  for (char *word; code == WS_EXIT_OK && (word = strsep(&rest, ","));) code = add_word(list, command, word);
  free(copy);
  return code;
}
