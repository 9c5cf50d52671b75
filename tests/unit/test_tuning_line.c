/* test_tuning_line.c - tuning entries as lines: what is written reads back the same, whatever the
 * locale; whatever was changed since is refused, and what has a right checksum but was never
 * written by the library too. */
#define _GNU_SOURCE
#include "support/comma.h"
#include "support/folder.h"
#include "support/tuning_case.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void check_round_trip(const ws_tuning_entry *e) {
  char line[LINE_BYTES], again[LINE_BYTES];
  ws_tuning_entry read;
  const size_t length = tuning_line(e, line);
  memset(&read, 0x5a, sizeof read);
  if (!CHECK(ws_tuning_read_line(line, length, &read), "not read: %s", line)) return;
  CHECK(tuning_equal(e, &read), "another entry is read from %s", line);
  CHECK(tuning_line(&read, again) == length && memcmp(line, again, length) == 0, "%sbecomes %s", line, again);
}

static void round_trip(void) {
  struct check_random rng = check_random_from(300);
  for (int i = 0; i < 20000 / check_scale(); i++) {
    const ws_tuning_entry e = tuning_draw(&rng);
    check_round_trip(&e);
  }
}

/* Each value of each word alone, and each parameter at its ends. */
static void every_value(void) {
  const ws_tuning_entry plain = tuning_plain(1, 1, 1, 0);
  check_round_trip(&plain);
  for (int numerics = 0; numerics < WS_N_NUMERICS; numerics++) {
    ws_tuning_entry e = plain;
    e.kind.numerics = (ws_numerics)numerics;
    check_round_trip(&e);
  }
  for (int types = 0; types < WS_N_TYPES * WS_N_TYPES; types++) {
    ws_tuning_entry e = plain;
    e.kind.type = (wsgemm_type)(types % WS_N_TYPES), e.kind.type_c = (wsgemm_type)(types / WS_N_TYPES);
    check_round_trip(&e);
  }
  for (int policy = 0; policy < WS_N_POLICIES; policy++)
    for (int path = 0; path <= WS_TUNING_PACKED; path++) {
      ws_tuning_entry e = plain;
      e.tuning.policy = policy, e.tuning.path = path;
      check_round_trip(&e);
    }
#define ENDS(name, most)              \
  for (int end = 0; end < 2; end++) { \
    ws_tuning_entry e = plain;        \
    e.tuning.name = end ? (most) : 1; \
    check_round_trip(&e);             \
  }
  WS_TUNING_PARAMETERS(ENDS)
#undef ENDS
}

/* As long as texts and numbers can be: an entry that fits the buffers of a device must have a
 * line. */
static void longest(void) {
  ws_tuning_entry e = tuning_plain(INT64_MAX, INT64_MAX, INT64_MAX, 1 << 24);
  char line[LINE_BYTES];
  memset(e.device.name, 'N', sizeof e.device.name - 1);
  memset(e.device.arch, 'a', sizeof e.device.arch - 1);
  memset(e.version, '9', sizeof e.version - 1);
  memset(e.row, 'r', sizeof e.row - 1);
  e.device.units = 1 << 20, e.kind.workers = 1 << 12, e.kind.numerics = WS_NUMERICS_WGMMA_K2, e.shape.batch = INT64_MAX;
#define MOST(name, most) e.tuning.name = most;
  WS_TUNING_PARAMETERS(MOST)
#undef MOST
  e.tuning.policy = WSGEMM_POLICY_FIXED_BLOCKS;
  e.before_us = e.after_us = 86400e6 * 30;
  check_round_trip(&e);
  CHECK(tuning_line(&e, line) < WS_TUNING_LINE_BYTES, "a line of %zu bytes", strlen(line));
  memset(e.device.name, '"', sizeof e.device.name - 1); /* too long now: a line that is read back, or none */
  ws_tuning_entry read;
  ws_text t = {line, sizeof line, 0};
  ws_tuning_write_line(&e, &t);
  CHECK(t.length == 0 || (t.length < sizeof line && ws_tuning_read_line(line, t.length - 1, &read)), "a line of %zu bytes",
        t.length);
}

/* Bytes of a device's name that are no printing ASCII become '?', so that files stay text. */
static void strange_names(void) {
  ws_tuning_entry e = tuning_plain(5, 6, 7, 0), read;
  char line[LINE_BYTES];
  memcpy(e.device.name, "GPU\n\t\x7f\xc3\xa4 \"\\", sizeof "GPU\n\t\x7f\xc3\xa4 \"\\");
  const size_t length = tuning_line(&e, line);
  for (size_t i = 0; i < length; i++) CHECK(line[i] >= ' ' && line[i] <= '~', "byte %d in a line", line[i]);
  CHECK(ws_tuning_read_line(line, length, &read) && strcmp(read.device.name, "GPU????? \"\\") == 0, "%s", line);
}

/* ---- locale ---------------------------------------------------------------------------------- */

static void decimal_comma(void) {
  char folder[PATH_BYTES], before[LINE_BYTES], after[LINE_BYTES];
  const ws_tuning_entry e = tuning_plain(1234567, 89, 1011, 12);
  const size_t length = tuning_line(&e, before);
  folder_make(folder);
  if (comma_set(folder)) {
    CHECK(tuning_line(&e, after) == length && memcmp(before, after, length) == 0, "with a decimal comma %sbecomes %s", before,
          after);
    round_trip();
  } else {
    check_skip("no locale with a decimal comma can be made (localedef of glibc)");
  }
  comma_unset();
  folder_remove(folder);
}

/* ---- what was changed ------------------------------------------------------------------------ */

/* From a copy of just the right size, so that a sanitizer sees any byte read beyond it. */
static bool is_read(const char *line, size_t length, ws_tuning_entry *e) {
  char *copy = malloc(length > 0 ? length : 1);
  REQUIRE(copy != NULL, "memory");
  memcpy(copy, line, length);
  const bool is = ws_tuning_read_line(copy, length, e);
  free(copy);
  return is;
}

static void changes_of(const char *line, size_t length, struct check_random *rng) {
  char changed[LINE_BYTES];
  ws_tuning_entry e;
  for (size_t at = 0; at < length; at++) {
    memcpy(changed, line, length);
    for (int value = 0; value < 256; value++) {
      if ((char)value == line[at] || check_random_in(rng, 1, check_scale()) != 1) continue;
      changed[at] = (char)value;
      CHECK(!is_read(changed, length, &e), "byte %zu changed to %d is taken: %s", at, value, line);
    }
    CHECK(!is_read(line, at, &e), "the first %zu bytes are taken: %s", at, line);
    memmove(changed + at, line + at + 1, length - at - 1); /* (changed begins as line does) */
    CHECK(!is_read(changed, length - 1, &e), "without byte %zu it is taken: %s", at, line);
  }
  for (size_t at = 0; at <= length; at++)
    for (int turn = 0; turn < 6; turn++) {
      memcpy(changed, line, at);
      changed[at] = turn == 0 ? ' ' : turn == 1 ? '\0' : turn == 2 ? '\r' : (char)check_random_bits(rng);
      memcpy(changed + at + 1, line + at, length - at);
      CHECK(!is_read(changed, length + 1, &e), "with byte %d put in at %zu it is taken: %s", changed[at], at, line);
    }
}

static void changed_lines(void) {
  struct check_random rng = check_random_from(301);
  for (int i = 0; i < 4; i++) {
    const ws_tuning_entry e = tuning_draw(&rng);
    char line[LINE_BYTES];
    const size_t length = tuning_line(&e, line);
    changes_of(line, length, &rng);
  }
}

/* A line put into the middle of another, as a writer without a lock might: nothing is read that
 * neither of them says. */
static void torn_lines(void) {
  struct check_random rng = check_random_from(302);
  const ws_tuning_entry first = tuning_draw(&rng), second = tuning_draw(&rng);
  char a[LINE_BYTES], b[LINE_BYTES], text[2 * LINE_BYTES];
  const size_t n_a = tuning_line(&first, a) + 1, n_b = tuning_line(&second, b) + 1;
  for (size_t at = 0; at <= n_a; at++)
    for (size_t n_kept = n_b; n_kept > 0; n_kept -= n_kept > 40 ? 37 : 1) {
      ws_tuning_list list = {0};
      memcpy(text, a, at), memcpy(text + at, b, n_kept), memcpy(text + at + n_kept, a + at, n_a - at);
      CHECK(ws_tuning_list_read(&list, text, n_a + n_kept), "memory");
      for (int i = 0; i < list.n; i++)
        CHECK(tuning_equal(&list.entry[i], &first) || tuning_equal(&list.entry[i], &second), "torn at %zu: a third entry", at);
      const bool is_whole = at == 0 || at == n_a;
      if (is_whole && n_kept == n_b) CHECK(list.n == 2 && list.n_bad == 0, "%d entries of two lines", list.n);
      if (!is_whole) CHECK(list.n_bad >= 1 && !tuning_in(&list, &first), "torn at %zu: %d bad lines", at, list.n_bad);
      ws_tuning_list_free(&list);
    }
}

/* ---- what was never written ------------------------------------------------------------------ */

static const struct {
  const char *from, *to;
} nonsense[] = {
    {"m=11 ", "m=011 "},
    {"m=11 ", "m=+11 "},
    {"m=11 ", "m= 11 "},
    {"m=11 ", "m=0 "},
    {"m=11 ", "m=-11 "},
    {"m=11 ", "m=11. "},
    {"m=11 ", "m=0xb "},
    {"m=11 ", "m=9223372036854775808 "},
    {"m=11 ", "m=11  "},
    {"m=11 n=22 ", "n=22 m=11 "},
    {"gemm ", "gemv "},
    {"gemm ", " gemm "},
    {"gemm ", ""},
    {"gemm ", "symm "},
    {"gemm ", "syrk "},
    {"access=vv ", "access=vv side=left "},
    {"access=vv ", "access=vv uplo=upper "},
    {"\"test device\"", "test"},
    {"\"test device\"", "\"test device"},
    {"\"test device\"", "\"\\t\""},
    {"\"test device\"", "\"t\xc3\xa4\""},
    {"\"test device\"", "\"a\tb\""},
    {"\"test device\"", "\"test device\\\""},
    {"units=3", "units=0"},
    {"units=3", "units=2147483648"},
    {"units=3", "units=03"},
    {"type=s", "type=x"},
    {"type=s ", "type=ss "},
    {"numerics=chain", "numerics=chains"},
    {"numerics=chain", "numerics="},
    {"ops=nn", "ops=nx"},
    {"ops=nn", "ops=n"},
    {"access=vv", "access=v"},
    {"workers=2", "workers=0"},
    {"workers=2", "workers=5000"},
    {"row=sgemm_ref_8x6", "row="},
    {"mc=33", "mc=33 mc=33"},
    {"mc=33", "mc=0"},
    {"mc=33", "mc=16777217"},
    {"mc=33", "policy=auto mc=33"},
    {"mc=33", "policy=never mc=33"},
    {"mc=33", "path= mc=33"},
    {"mc=33", "mc=33 policy=steal"},
    {"mc=33", "threads=257"},
    {"mc=33", "mc=33 color=2"},
    {"before_us=2.000", "before_us=02.000"},
    {"before_us=2.000", "before_us=2.0"},
    {"before_us=2.000", "before_us=2,000"},
    {"before_us=2.000", "before_us=.200"},
    {"before_us=2.000", "before_us=2000"},
    {"before_us=2.000", "before_us=-2.000"},
    {"before_us=2.000", "before_us=nan"},
    {"before_us=2.000", "before_us=2.0.00"},
    {"before_us=2.000", "before_us=123456789012345678.000"},
    {"after_us=1.500", "after_us=1.500 "},
    {"after_us=1.500", "after_us=1.500 x"},
};

/* The checksum is right, so only the words can tell. */
static void never_written(void) {
  const ws_tuning_entry plain = tuning_plain(11, 22, 44, 33);
  char line[LINE_BYTES], sealed[2 * LINE_BYTES];
  ws_tuning_entry e;
  const size_t length = tuning_line(&plain, line), n_words = length - strlen(" crc=01234567");
  memcpy(sealed, line, n_words);
  CHECK(tuning_seal(sealed, n_words) == length && memcmp(sealed, line, length) == 0, "the suite's checksum is another");
  char known[32] = "123456789";
  tuning_seal(known, 9);
  CHECK(strcmp(known, "123456789 crc=cbf43926") == 0, "%s is not the CRC-32 of zlib and others", known);
  for (size_t i = 0; i < sizeof nonsense / sizeof nonsense[0]; i++) {
    const char *at = strstr(line, nonsense[i].from);
    REQUIRE(at != NULL, "%s is not in %s", nonsense[i].from, line);
    const char *rest = at + strlen(nonsense[i].from);
    const size_t n =
        (size_t)sprintf(sealed, "%.*s%s%.*s", (int)(at - line), line, nonsense[i].to, (int)(line + n_words - rest), rest);
    CHECK(!is_read(sealed, tuning_seal(sealed, n), &e), "taken with a right checksum: %s", sealed);
  }
}

/* ---- lists ----------------------------------------------------------------------------------- */

static void lists(void) {
  struct check_random rng = check_random_from(303);
  ws_tuning_list list = {0}, again = {0};
  for (int i = 0; i < 500; i++) {
    const ws_tuning_entry e = tuning_draw(&rng);
    CHECK(ws_tuning_list_put(&list, &e), "memory");
  }
  ws_tuning_entry other = list.entry[123];
  const int n = list.n;
  other.tuning.mc = other.tuning.mc % 100 + 1, other.after_us = 3;
  memcpy(other.row, "another_row", sizeof "another_row");
  CHECK(ws_tuning_list_put(&list, &other) && list.n == n && tuning_equal(&list.entry[123], &other), "an entry of the same key");
  size_t n_bytes;
  char *text = tuning_text(&list, &n_bytes);
  CHECK(ws_tuning_list_read(&again, text, n_bytes) && again.n == n && again.n_bad == 0, "%d of %d entries", again.n, n);
  for (int i = 0; i < again.n; i++) CHECK(tuning_equal(&again.entry[i], &list.entry[i]), "entry %d", i);
  static const char strange[] = "\n\n# comment\n#\nnonsense\n \n\r\n";
  again.n_bad = 0;
  CHECK(ws_tuning_list_read(&again, strange, sizeof strange - 1) && again.n == n && again.n_bad == 3, "%d bad lines of 3",
        again.n_bad);
  ws_tuning_list_free(&list), ws_tuning_list_free(&again);
  CHECK(list.n == 0 && list.entry == NULL, "a list that was freed");
  free(text);
}

/* Entries that differ in any part of what they are for stand side by side; those that differ in
 * what was found do not. */
static void keys(void) {
  const ws_tuning_entry plain = tuning_plain(3, 4, 5, 6);
  ws_tuning_list list = {0};
  int n = 1;
  CHECK(ws_tuning_list_put(&list, &plain), "memory");
#define DIFFERS(member, value)                                                                             \
  do {                                                                                                     \
    ws_tuning_entry e = plain;                                                                             \
    e.member = (value);                                                                                    \
    CHECK(ws_tuning_list_put(&list, &e) && list.n == ++n, "two entries of different " #member " are one"); \
  } while (0)
  DIFFERS(kind.type, WSGEMM_F64);
  DIFFERS(kind.type_c, WSGEMM_F64);
  DIFFERS(kind.numerics, WS_NUMERICS_PARTS);
  DIFFERS(kind.a_trans, true);
  DIFFERS(kind.b_trans, true);
  DIFFERS(kind.single_a, true);
  DIFFERS(kind.full_store, true);
  DIFFERS(kind.single_b, true);
  DIFFERS(kind.workers, 9);
  DIFFERS(kind.routine, WSGEMM_TRMM);
  DIFFERS(kind.is_right, true);
  DIFFERS(kind.is_upper, true);
  DIFFERS(kind.in_place, true);
  DIFFERS(shape.m, 9);
  DIFFERS(shape.n, 9);
  DIFFERS(shape.k, 9);
  DIFFERS(shape.batch, 9);
  DIFFERS(device.units, 9);
  DIFFERS(device.name[0], 'x');
  DIFFERS(device.arch[0], 'x');
  DIFFERS(version[0], 'x');
#undef DIFFERS
  ws_tuning_entry e = plain;
  e.row[0] = 'x', e.tuning.mc = 7, e.after_us = 9;
  CHECK(ws_tuning_list_put(&list, &e) && list.n == n && tuning_equal(&list.entry[0], &e), "the same product twice");
  ws_tuning_list_free(&list);
}

static const struct check_case cases[] = {{"round_trip", round_trip},
                                          {"every_value", every_value},
                                          {"longest", longest},
                                          {"strange_names", strange_names},
                                          {"decimal_comma", decimal_comma},
                                          {"changed_lines", changed_lines},
                                          {"torn_lines", torn_lines},
                                          {"never_written", never_written},
                                          {"lists", lists},
                                          {"keys", keys}};
CHECK_MAIN("tuning_line", cases)
