/* line.c - tuning entries as lines of text: words of the form key=value in a fixed order, the last
 * one a checksum (CRC-32 of ISO 3309, as zlib's) of all before it. A line that is not exactly what
 * this file would write for some entry is none. */
#define _GNU_SOURCE
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/policy.h"
#include "tune/tuning.h"

const ws_tuning ws_tuning_of_model;

static const char *const numerics_names[] = {
#define NUMERICS_NAME(name, text) text,
    WS_NUMERICS_MAP(NUMERICS_NAME)
#undef NUMERICS_NAME
};
const char *ws_numerics_name(ws_numerics numerics) { return numerics_names[numerics]; }

void ws_tuning_clean_name(char *name) {
  for (; *name; name++)
    if (*name < ' ' || *name > '~') *name = '?';
}

const char *ws_tuned_by_name(ws_tuned_by by) {
  static const char *const names[] = {"model", "tuning file", "tuning table", "search"};
  return names[by];
}

static const char *const path_names[] = {"", "direct", "packed"};
static const char *const side_names[] = {"left", "right"}, *const uplo_names[] = {"lower", "upper"};

static uint32_t crc32_of(const char *text, size_t length) {
  uint32_t crc = UINT32_MAX;
  for (size_t i = 0; i < length; i++) {
    crc ^= (unsigned char)text[i];
    for (int bit = 0; bit < 8; bit++) crc = crc >> 1 ^ (crc & 1 ? UINT32_C(0xEDB88320) : 0);
  }
  return ~crc;
}

/* ---- writing --------------------------------------------------------------------------------- */

static void add_quoted(const char *text, ws_text *t) {
  ws_text_add(t, "\"");
  for (; *text; text++) ws_text_add(t, *text == '"' || *text == '\\' ? "\\%c" : "%c", *text >= ' ' && *text <= '~' ? *text : '?');
  ws_text_add(t, "\"");
}

/* Not by %f, which asks the locale for its point. */
static void add_us(const char *key, double us, ws_text *t) {
  const long long ns = (long long)(us * 1e3 + 0.5);
  ws_text_add(t, " %s=%lld.%03lld", key, ns / 1000, ns % 1000);
}

static void add_parameter(const char *name, int value, ws_text *t) {
  if (value == 0) return;
  if (strcmp(name, "policy") == 0)
    ws_text_add(t, " policy=%s", ws_policy_name((wsgemm_policy)value));
  else if (strcmp(name, "path") == 0)
    ws_text_add(t, " path=%s", path_names[value]);
  else
    ws_text_add(t, " %s=%d", name, value);
}

void ws_tuning_describe(const char *row, const ws_tuning *tuning, ws_text *t) {
  ws_text_add(t, "row=%s", row);
#define ADD_PARAMETER(name, most) add_parameter(#name, tuning->name, t);
  WS_TUNING_PARAMETERS(ADD_PARAMETER)
#undef ADD_PARAMETER
}

void ws_tuning_write_line(const ws_tuning_entry *e, ws_text *t) {
  char line[WS_TUNING_LINE_BYTES];
  ws_text l = {line, sizeof line, 0};
  const ws_tuning_kind *kind = &e->kind;
  ws_text_add(&l, "%s device=", ws_tuning_routine_name(kind->routine));
  add_quoted(e->device.name, &l);
  ws_text_add(&l, " arch=%s units=%d version=%s type=%c type_c=%c numerics=%s ops=%c%c access=%c%c", e->device.arch,
              e->device.units, e->version, ws_types[kind->type].letter, ws_types[kind->type_c].letter,
              ws_numerics_name(kind->numerics), kind->a_trans ? 't' : 'n', kind->b_trans ? 't' : 'n', kind->single_a ? 's' : 'v',
              kind->single_b ? 's' : 'v');
  if (ws_tuning_has_side(kind->routine)) ws_text_add(&l, " side=%s", side_names[kind->is_right]);
  if (ws_tuning_has_uplo(kind->routine)) ws_text_add(&l, " uplo=%s", uplo_names[kind->is_upper]);
  if (kind->full_store) ws_text_add(&l, " store=full");
  if (kind->in_place) ws_text_add(&l, " store=in_place");
  if (kind->workers > 0) ws_text_add(&l, " workers=%d", kind->workers);
  ws_text_add(&l, " m=%lld n=%lld k=%lld batch=%lld ", (long long)e->shape.m, (long long)e->shape.n, (long long)e->shape.k,
              (long long)e->shape.batch);
  ws_tuning_describe(e->row, &e->tuning, &l);
  add_us("before_us", e->before_us, &l);
  add_us("after_us", e->after_us, &l);
  if (l.length >= sizeof line) return; /* its reader would not take it either */
  ws_text_add(t, "%s crc=%08x\n", line, (unsigned)crc32_of(line, l.length));
}

/* ---- reading --------------------------------------------------------------------------------- */

/* What is left of a line, NUL-closed. */
typedef struct reader {
  const char *at;
  bool is_bad;
} reader;

static bool skip(reader *r, const char *text) {
  const size_t length = strlen(text);
  if (r->is_bad || strncmp(r->at, text, length) != 0) return false;
  r->at += length;
  return true;
}

static void expect(reader *r, const char *text) {
  if (!skip(r, text)) r->is_bad = true;
}

/* The word up to the next space. */
static void read_word(reader *r, char *word, size_t bytes) {
  const size_t length = r->is_bad ? 0 : strcspn(r->at, " ");
  r->is_bad = r->is_bad || length == 0 || length >= bytes;
  if (r->is_bad) return;
  memcpy(word, r->at, length);
  word[length] = '\0';
  r->at += length;
}

static void read_quoted(reader *r, char *text, size_t bytes) {
  size_t length = 0;
  expect(r, "\"");
  while (!r->is_bad && *r->at != '"') {
    if (*r->at == '\\') r->at++;
    r->is_bad = *r->at == '\0' || length + 1 >= bytes;
    if (!r->is_bad) text[length++] = *r->at++;
  }
  if (r->is_bad) return;
  text[length] = '\0';
  r->at++;
}

static int64_t read_number(reader *r, int64_t least, int64_t most) {
  char *end;
  if (r->is_bad) return least;
  errno = 0;
  const long long value = strtoll(r->at, &end, 10);
  r->is_bad = r->is_bad || !isdigit((unsigned char)*r->at) || errno || value < least || value > most || (*end && *end != ' ');
  r->at = end;
  return r->is_bad ? least : value;
}

static double read_us(reader *r) {
  enum { DECIMALS = 3 };
  if (r->is_bad) return 0;
  int64_t ns = 0;
  int n_digits = 0, n_decimals = -1; /* before the point */
  for (; isdigit((unsigned char)*r->at) || (*r->at == '.' && n_decimals < 0); r->at++) {
    if (*r->at == '.') {
      n_decimals = 0;
      continue;
    }
    ns = 10 * ns + (*r->at - '0');
    n_digits++;
    if (n_decimals >= 0) n_decimals++;
    if (n_digits > 17) break;
  }
  r->is_bad = r->is_bad || n_decimals != DECIMALS || n_digits == DECIMALS || n_digits > 17;
  return (double)ns / 1e3;
}

static int read_one_of(reader *r, const char *const *names, int n_names) {
  char word[32];
  read_word(r, word, sizeof word);
  for (int i = 0; !r->is_bad && i < n_names; i++)
    if (strcmp(word, names[i]) == 0) return i;
  r->is_bad = true;
  return 0;
}

static wsgemm_type read_type(reader *r) {
  for (int type = 0; !r->is_bad && type < WS_N_TYPES; type++)
    if (*r->at == ws_types[type].letter) {
      r->at++;
      return (wsgemm_type)type;
    }
  r->is_bad = true;
  return WSGEMM_F32;
}

static bool read_letter(reader *r, char no, char yes) {
  if (r->is_bad) return false;
  const bool is_yes = *r->at == yes;
  if (is_yes || *r->at == no)
    r->at++;
  else
    r->is_bad = true;
  return is_yes;
}

static int read_policy(reader *r) {
  char word[32];
  read_word(r, word, sizeof word);
  const int policy = r->is_bad ? -1 : ws_policy_find(word);
  if (policy < 0) r->is_bad = true;
  return policy < 0 ? 0 : policy;
}

/* " name=value", if it comes next. */
static int read_parameter(reader *r, const char *name, int most) {
  reader ahead = *r;
  if (!skip(&ahead, " ") || !skip(&ahead, name) || !skip(&ahead, "=")) return 0;
  *r = ahead;
  if (strcmp(name, "policy") == 0) return read_policy(r);
  if (strcmp(name, "path") == 0) return read_one_of(r, path_names, sizeof path_names / sizeof path_names[0]);
  return (int)read_number(r, 1, most);
}

static void read_kind(reader *r, ws_tuning_kind *kind) {
  expect(r, " type="), kind->type = read_type(r);
  expect(r, " type_c="), kind->type_c = read_type(r);
  expect(r, " numerics="), kind->numerics = (ws_numerics)read_one_of(r, numerics_names, WS_N_NUMERICS);
  expect(r, " ops="), kind->a_trans = read_letter(r, 'n', 't'), kind->b_trans = read_letter(r, 'n', 't');
  expect(r, " access="), kind->single_a = read_letter(r, 'v', 's'), kind->single_b = read_letter(r, 'v', 's');
  if (ws_tuning_has_side(kind->routine)) expect(r, " side="), kind->is_right = read_one_of(r, side_names, 2) == 1;
  if (ws_tuning_has_uplo(kind->routine)) expect(r, " uplo="), kind->is_upper = read_one_of(r, uplo_names, 2) == 1;
  kind->full_store = skip(r, " store=full");
  kind->in_place = skip(r, " store=in_place");
  if (skip(r, " workers=")) kind->workers = (int)read_number(r, 1, 1 << 12);
}

static void read_shape(reader *r, ws_tuning_shape *shape) {
  expect(r, " m="), shape->m = read_number(r, 1, INT64_MAX);
  expect(r, " n="), shape->n = read_number(r, 1, INT64_MAX);
  expect(r, " k="), shape->k = read_number(r, 1, INT64_MAX);
  expect(r, " batch="), shape->batch = read_number(r, 1, INT64_MAX);
}

/* The first word. */
static int read_routine(reader *r) {
  char word[16];
  read_word(r, word, sizeof word);
  for (int routine = 0; !r->is_bad && routine <= WSGEMM_TRSM; routine++)
    if (strcmp(word, ws_tuning_routine_name(routine)) == 0) return routine;
  r->is_bad = true;
  return 0;
}

static void read_fields(reader *r, ws_tuning_entry *e) {
  const int routine = read_routine(r);
  expect(r, " device="), read_quoted(r, e->device.name, sizeof e->device.name);
  expect(r, " arch="), read_word(r, e->device.arch, sizeof e->device.arch);
  expect(r, " units="), e->device.units = (int)read_number(r, 1, 1 << 20);
  expect(r, " version="), read_word(r, e->version, sizeof e->version);
  e->kind.routine = (uint8_t)routine;
  read_kind(r, &e->kind);
  read_shape(r, &e->shape);
  expect(r, " row="), read_word(r, e->row, sizeof e->row);
#define READ_PARAMETER(name, most) e->tuning.name = read_parameter(r, #name, most);
  WS_TUNING_PARAMETERS(READ_PARAMETER)
#undef READ_PARAMETER
  expect(r, " before_us="), e->before_us = read_us(r);
  expect(r, " after_us="), e->after_us = read_us(r);
}

/* Whether the entry's line is just this one: no zeros in front, no other escapes. */
static bool is_line_of(const ws_tuning_entry *e, const char *line, size_t length) {
  char text[WS_TUNING_LINE_BYTES + sizeof " crc=01234567\n"];
  ws_text t = {text, sizeof text, 0};
  ws_tuning_write_line(e, &t);
  return t.length == length + 1 && memcmp(text, line, length) == 0;
}

static const char crc_key[] = " crc=";
enum { CRC_BYTES = sizeof crc_key - 1 + 8 };

/* Whether a line ends with the checksum of what comes before it. */
static bool is_sealed(const char *line, size_t length) {
  char crc[CRC_BYTES + 1];
  if (length <= CRC_BYTES || memchr(line, '\0', length)) return false;
  ws_text t = {crc, sizeof crc, 0};
  ws_text_add(&t, "%s%08x", crc_key, (unsigned)crc32_of(line, length - CRC_BYTES));
  return memcmp(line + length - CRC_BYTES, crc, CRC_BYTES) == 0;
}

bool ws_tuning_read_line(const char *line, size_t length, ws_tuning_entry *e) {
  char text[WS_TUNING_LINE_BYTES];
  if (!is_sealed(line, length) || length - CRC_BYTES >= sizeof text) return false;
  memcpy(text, line, length - CRC_BYTES);
  text[length - CRC_BYTES] = '\0';
  reader r = {text, false};
  memset(e, 0, sizeof *e);
  read_fields(&r, e);
  e->device.is_gpu = strncmp(e->device.arch, "sm_", 3) == 0;
  return !r.is_bad && *r.at == '\0' && is_line_of(e, line, length);
}

/* ---- lists ----------------------------------------------------------------------------------- */

void ws_tuning_list_free(ws_tuning_list *list) {
  free(list->entry);
  free(list->foreign);
  *list = (ws_tuning_list){0};
}

static bool same_device(const ws_tuning_device *x, const ws_tuning_device *y) {
  return x->units == y->units && strcmp(x->name, y->name) == 0 && strcmp(x->arch, y->arch) == 0;
}

static bool same_product(const ws_tuning_entry *x, const ws_tuning_entry *y) {
  const ws_tuning_kind *a = &x->kind, *b = &y->kind;
  return x->shape.m == y->shape.m && x->shape.n == y->shape.n && x->shape.k == y->shape.k && x->shape.batch == y->shape.batch &&
         a->type == b->type && a->type_c == b->type_c && a->numerics == b->numerics && a->a_trans == b->a_trans &&
         a->b_trans == b->b_trans && a->workers == b->workers && a->single_a == b->single_a && a->single_b == b->single_b &&
         a->full_store == b->full_store && a->routine == b->routine && a->is_right == b->is_right && a->is_upper == b->is_upper &&
         a->in_place == b->in_place && same_device(&x->device, &y->device) && strcmp(x->version, y->version) == 0;
}

bool ws_tuning_list_add(ws_tuning_list *list, const ws_tuning_entry *e) {
  if (list->n == list->most) {
    const int most = list->most > 0 ? 2 * list->most : 16;
    ws_tuning_entry *grown = realloc(list->entry, (size_t)most * sizeof *grown);
    if (!grown) return false;
    list->entry = grown, list->most = most;
  }
  list->entry[list->n++] = *e;
  return true;
}

bool ws_tuning_list_put(ws_tuning_list *list, const ws_tuning_entry *e) {
  for (int i = 0; i < list->n; i++)
    if (same_product(&list->entry[i], e)) {
      list->entry[i] = *e;
      return true;
    }
  return ws_tuning_list_add(list, e);
}

/* Not of this version, which can read what it writes. */
static bool is_foreign(const char *line, size_t length) {
  char words[WS_VERSION_BYTES + 16];
  const int n = snprintf(words, sizeof words, " version=%s ", wsgemm_version_string());
  return is_sealed(line, length) && !memmem(line, length, words, (size_t)n);
}

static bool keep_foreign(ws_tuning_list *list, const char *line, size_t length) {
  char *grown = realloc(list->foreign, list->n_foreign_bytes + length + 1);
  if (!grown) return false;
  memcpy(grown + list->n_foreign_bytes, line, length);
  list->foreign = grown;
  list->n_foreign_bytes += length + 1;
  grown[list->n_foreign_bytes - 1] = '\n';
  list->n_foreign++;
  return true;
}

static bool take_line(ws_tuning_list *list, const char *line, size_t length) {
  ws_tuning_entry e;
  if (length == 0 || *line == '#') return true;
  if (ws_tuning_read_line(line, length, &e)) return ws_tuning_list_put(list, &e);
  if (is_foreign(line, length)) return keep_foreign(list, line, length);
  list->n_bad++;
  return true;
}

bool ws_tuning_list_read(ws_tuning_list *list, const char *text, size_t length) {
  for (size_t begin = 0; begin < length;) {
    const char *end = memchr(text + begin, '\n', length - begin);
    const size_t n = end ? (size_t)(end - text) - begin : length - begin;
    if (!take_line(list, text + begin, n)) return false;
    begin += n + 1;
  }
  return true;
}

void ws_tuning_list_write(const ws_tuning_list *list, ws_text *t) {
  for (int i = 0; i < list->n; i++) ws_tuning_write_line(&list->entry[i], t);
}
