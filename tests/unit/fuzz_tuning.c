/* fuzz_tuning.c - a fuzzer's bytes as a file of tuning entries: whatever is read must be written to
 * lines that read back equal, and a product that it serves must have the bits that it has without.
 *
 * The bytes are read as they are, then line by line with the right checksum put behind each, so
 * that the fuzz gets beyond it. Built with libFuzzer (-fsanitize=fuzzer) it runs until stopped;
 * built without it, main feeds it changed lines of drawn entries, as a test. A finding ends the
 * process. */
#include "support/rows.h"
#include "support/tuning_case.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int n_read, n_served; /* so that the fixed run can tell that it tries something */

/* ---- what was read serves products ----------------------------------------------------------- */

enum { M = 66, N = 70, K = 68, N_PRODUCTS = 3 }; /* just large enough to be looked up */

static struct served {
  wsgemm_type type;
  bool is_ready;
  struct stage stage;
  wsgemm_gemm_desc d;
  wsgemm_handle *h;
  unsigned long long expected;
} products[N_PRODUCTS] = {{.type = WSGEMM_F32}, {.type = WSGEMM_F64}, {.type = WSGEMM_BF16}};

static unsigned long long digest_of(struct served *s) {
  const struct layout_of_case where = layout_tight();
  case_store(&s->stage, &s->d, &where);
  REQUIRE(wsgemm_gemm(s->h, &s->d) == WSGEMM_SUCCESS, "%s", wsgemm_last_error());
  REQUIRE(case_guards_intact(&s->stage, &s->d, "fuzz"), "guards");
  return matrix_digest(&s->stage.stored[2]);
}

static void make_ready(struct served *s) {
  struct check_random rng = check_random_from(350);
  s->stage = stage_new(s->type, M, N, K, FILL_UNIFORM, &rng);
  s->d = gemm_desc(s->type, WSGEMM_COL_MAJOR, WSGEMM_NO_TRANS, WSGEMM_TRANS, M, N, K);
  REQUIRE(wsgemm_create(&s->h) == WSGEMM_SUCCESS && wsgemm_set_num_threads(s->h, 2) == WSGEMM_SUCCESS, "handle");
  s->expected = digest_of(s);
  s->is_ready = true;
}

/* With the entry's parameters, and the key of a product of ours: what is of another row stays
 * without effect. */
static void serve(const ws_tuning_entry *read) {
  struct served *s = &products[read->kind.type % N_PRODUCTS];
  char text[256];
  if (!s->is_ready) make_ready(s);
  ws_tuning_entry e = tuning_for(s->h, &s->d, &read->tuning);
  if (read->shape.m % 4 == 3) memcpy(e.row, read->row, sizeof e.row);
  ws_text t = {text, sizeof text, 0};
  ws_tuning_describe(e.row, &e.tuning, &t);
  REQUIRE(ws_tune_put(read) && ws_tune_put(&e), "memory");
  n_served += explained_is(s->h, &s->d, "chosen_by", "tuning file");
  REQUIRE(digest_of(s) == s->expected, "bits change with %s", text);
  static int n_kept;
  if (++n_kept % 64 == 0) ws_tune_forget();
}

/* ---- reading --------------------------------------------------------------------------------- */

static void check_list(const ws_tuning_list *list) {
  for (int i = 0; i < list->n; i++) {
    char line[LINE_BYTES], again[LINE_BYTES];
    ws_tuning_entry read;
    const size_t length = tuning_line(&list->entry[i], line);
    REQUIRE(ws_tuning_read_line(line, length, &read) && tuning_equal(&read, &list->entry[i]), "another entry: %s", line);
    REQUIRE(tuning_line(&read, again) == length && memcmp(line, again, length) == 0, "%sbecomes %s", line, again);
    n_read++;
  }
  size_t n_bytes;
  ws_tuning_list all = {0};
  char *text = tuning_text(list, &n_bytes);
  REQUIRE(ws_tuning_list_read(&all, text, n_bytes) && all.n == list->n && all.n_bad == 0, "%d entries become %d", list->n, all.n);
  ws_tuning_list_free(&all);
  free(text);
}

static void read_as_is(const unsigned char *bytes, size_t n_bytes) {
  ws_tuning_list list = {0};
  /* of just the right size, so that a sanitizer sees any byte read beyond it */
  char *copy = malloc(n_bytes > 0 ? n_bytes : 1);
  REQUIRE(copy != NULL, "memory");
  if (n_bytes > 0) memcpy(copy, bytes, n_bytes);
  REQUIRE(ws_tuning_list_read(&list, copy, n_bytes), "memory");
  check_list(&list);
  ws_tuning_list_free(&list);
  free(copy);
}

static void read_sealed(const unsigned char *bytes, size_t n_bytes) {
  ws_tuning_list list = {0};
  for (size_t begin = 0; begin < n_bytes;) {
    const unsigned char *end = memchr(bytes + begin, '\n', n_bytes - begin);
    const size_t n = end ? (size_t)(end - bytes) - begin : n_bytes - begin;
    char line[LINE_BYTES];
    if (n > 0 && n + 16 < sizeof line) {
      memcpy(line, bytes + begin, n);
      REQUIRE(ws_tuning_list_read(&list, line, tuning_seal(line, n)), "memory");
    }
    begin += n + 1;
  }
  check_list(&list);
  for (int i = 0; i < list.n && i < 4; i++) serve(&list.entry[i]);
  ws_tuning_list_free(&list);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n_bytes);
int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n_bytes) {
  setenv("WSGEMM_TUNE", "off", 1);
  read_as_is(bytes, n_bytes);
  read_sealed(bytes, n_bytes);
  return 0;
}

/* ---- what is tried --------------------------------------------------------------------------- */

enum { MOST_BYTES = 4 * LINE_BYTES };

/* A line, mostly without its checksum; how long it is. */
static size_t draw_line(struct check_random *rng, char text[LINE_BYTES]) {
  const ws_tuning_entry e = tuning_draw(rng);
  size_t n = tuning_line(&e, text);
  if (check_random_in(rng, 0, 3)) n -= strlen(" crc=01234567");
  text[n] = '\n';
  return n + 1;
}

/* One to four changes: a byte, a run of bytes from elsewhere, a number for another, an end. */
static size_t change(struct check_random *rng, char *text, size_t n) {
  static const char *const numbers[] = {"0",   "1",   "-1", "00", "256", "257", "16777216", "16777217", "9223372036854775807",
                                        "1e9", "0x10"};
  for (long long turn = check_random_in(rng, 0, 4); turn > 0 && n > 0; turn--) {
    const size_t at = (size_t)check_random_in(rng, 0, (long long)n - 1);
    switch (check_random_in(rng, 0, 4)) {
    case 0:
      text[at] = (char)check_random_bits(rng);
      break;
    case 1:
      text[at] = "0123456789nNtsv=\" \\\n#"[check_random_in(rng, 0, 20)];
      break;
    case 2: {
      const size_t from = (size_t)check_random_in(rng, 0, (long long)n - 1), length = (size_t)check_random_in(rng, 0, 20);
      const size_t most = n - (at > from ? at : from);
      memmove(text + at, text + from, length < most ? length : most);
      break;
    }
    case 3: {
      char *equals = memchr(text + at, '=', n - at);
      const char *number = numbers[check_random_in(rng, 0, 10)];
      if (!equals) break;
      char *end = equals + 1;
      while (end < text + n && *end >= '0' && *end <= '9') end++;
      const size_t length = strlen(number);
      memmove(equals + 1 + length, end, (size_t)(text + n - end));
      memcpy(equals + 1, number, length);
      n = n - (size_t)(end - equals - 1) + length;
      break;
    }
    default:
      if (check_random_in(rng, 0, 3) == 0) n = at;
    }
  }
  return n;
}

#ifdef WSGEMM_LIBFUZZER
size_t LLVMFuzzerMutate(uint8_t *bytes, size_t n_bytes, size_t most);
size_t LLVMFuzzerCustomMutator(uint8_t *bytes, size_t n_bytes, size_t most, unsigned seed);
size_t LLVMFuzzerCustomMutator(uint8_t *bytes, size_t n_bytes, size_t most, unsigned seed) {
  struct check_random rng = check_random_from(seed);
  char text[MOST_BYTES];
  if (n_bytes > MOST_BYTES - 2 * LINE_BYTES || check_random_in(&rng, 0, 3) == 0) return LLVMFuzzerMutate(bytes, n_bytes, most);
  memcpy(text, bytes, n_bytes);
  if (n_bytes < 50 || check_random_in(&rng, 0, 7) == 0) n_bytes += draw_line(&rng, text + n_bytes);
  n_bytes = change(&rng, text, n_bytes);
  if (n_bytes > most) n_bytes = most;
  memcpy(bytes, text, n_bytes);
  return n_bytes;
}
#else
static void changed_lines(void) {
  struct check_random rng = check_random_from(351);
  const int n_turns = 15000 / check_scale();
  for (int turn = 0; turn < n_turns; turn++) {
    char text[MOST_BYTES];
    size_t n = 0;
    for (long long i = check_random_in(&rng, 1, 3); i > 0; i--) n += draw_line(&rng, text + n);
    n = change(&rng, text, n);
    LLVMFuzzerTestOneInput((const uint8_t *)text, n);
  }
  CHECK(n_read > n_turns / 4 && n_served > n_turns / 16, "of %d texts %d entries were read, and %d served", n_turns, n_read,
        n_served);
}

static const struct check_case cases[] = {{"changed_lines", changed_lines}};
CHECK_MAIN("fuzz_tuning", cases)
#endif
