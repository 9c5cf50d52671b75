/* test_tuning_level3.c - Level 3 as wsgemm_level3_autotune tunes it, on the CPU: what is found is in
 * force, explained, written under the routine's name, and changes no bit of a result; which calls a
 * line serves; what is refused.
 *
 * The library reads its file on its first call, so every case runs in forked children and the
 * parent never calls it. */
#define _GNU_SOURCE
#include "support/folder.h"
#include "support/level3_call.h"
#include "support/process.h"
#include "support/rows.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { N_THREADS = 3, SIZE = 120 };

static char folder[PATH_BYTES], user_file[PATH_BYTES];

static void in_child(const char *what, void (*body)(void *), void *argument) {
  check_with_tuning_file(folder, user_file, what, body, argument);
}

static wsgemm_handle *new_handle(void) {
  wsgemm_handle *h = NULL;
  REQUIRE(wsgemm_create(&h) == WSGEMM_SUCCESS && wsgemm_set_num_threads(h, N_THREADS) == WSGEMM_SUCCESS, "handle");
  return h;
}

static bool is_chosen_by(wsgemm_handle *h, const wsgemm_level3_desc *d, const char *by) {
  char text[4096], line[64];
  snprintf(line, sizeof line, "\nchosen_by: %s\n", by);
  wsgemm_level3_explain(h, d, text, sizeof text);
  return strstr(text, line) != NULL;
}

/* The value of "key=" in a text as wsgemm_autotune_result has them, in wsgemm_level3_explain's words. */
static void check_explained(wsgemm_handle *h, const wsgemm_level3_desc *d, const wsgemm_autotune_result *result) {
  static const char *const keys[][2] = {{" policy=", "policy"}, {" path=", "path"}, {" threads=", "threads"}};
  char text[4096], value[64], line[128];
  wsgemm_level3_explain(h, d, text, sizeof text);
  for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
    const char *at = strstr(result->after, keys[i][0]);
    if (!at || sscanf(at + strlen(keys[i][0]), "%63s", value) != 1) continue;
    snprintf(line, sizeof line, "\n%s: %s", keys[i][1], value);
    CHECK(strstr(text, line), "kept is %s, but explained is\n%s", result->after, text);
  }
}

/* ---- every routine --------------------------------------------------------------------------- */

struct tuned_call {
  wsgemm_level3_desc d;
  const char *word; /* with which its line begins */
};

static const char *word_of(wsgemm_routine routine) {
  static const char *const words[] = {
#define WORD(enumerator, name) [WSGEMM_##enumerator] = (name),
      WSGEMM_ROUTINE_MAP(WORD)
#undef WORD
  };
  if (routine == WSGEMM_SYR2K || routine == WSGEMM_GEMMTR) routine = WSGEMM_SYRK; /* the same work */
  return words[routine == WSGEMM_HER2K ? WSGEMM_HERK : routine];
}

static unsigned long long digest_of(struct level3_stage *stage, wsgemm_handle *h, wsgemm_level3_desc *d) {
  const struct layout_of_case where = layout_tight();
  level3_store(stage, d, &where, FORM_DESCRIPTOR, JUDGE_BOUND);
  CHECK(wsgemm_level3(h, d) == WSGEMM_SUCCESS, "%s", wsgemm_last_error());
  return level3_digest(stage);
}

static void later_process(void *argument) {
  const struct tuned_call *call = argument;
  wsgemm_handle *h = new_handle();
  CHECK(is_chosen_by(h, &call->d, "tuning file"), "a later process does not take what the file says");
  CHECK(wsgemm_last_error()[0] == '\0', "\"%s\"", wsgemm_last_error());
  wsgemm_destroy(h);
}

static void check_line(const struct tuned_call *call, const char *what) {
  size_t n_bytes;
  char *text = file_read(user_file, &n_bytes);
  const char *line = text ? strchr(text, '\n') : NULL;
  const size_t length = strlen(call->word);
  CHECK(line && strncmp(line + 1, call->word, length) == 0 && line[1 + length] == ' ', "%s: the file has\n%s", what,
        text ? text : "(nothing)");
  CHECK(line && strchr(line + 1, '\n') && strchr(line + 1, '\n')[1] == '\0', "%s: the file has not one line", what);
  free(text);
}

/* A search as users have it, before and after which bits are the same; then all candidates, once. */
static void tuned_child(void *argument) {
  struct tuned_call *call = argument;
  wsgemm_level3_desc *d = &call->d;
  struct check_random rng = check_random_from(411);
  struct level3_stage stage = level3_stage_new(d->type, SIZE + 80, SIZE + 80, FILL_UNIFORM, &rng);
  if (d->routine == WSGEMM_TRSM) level3_fill_triangle(&stage, TRIANGLE_DOMINANT, &rng);
  wsgemm_handle *h = new_handle();
  wsgemm_autotune_result result;
  wsgemm_autotune_options options = WSGEMM_AUTOTUNE_OPTIONS_INIT;
  char what[DESCRIPTION_BYTES];
  level3_describe(d, what);
  const unsigned long long before = digest_of(&stage, h, d);
  CHECK(!is_chosen_by(h, d, "tuning file"), "%s: tuned before it was tuned", what);
  const wsgemm_level3_desc asked = *d;
  wsgemm_level3_desc without = *d;
  without.a = without.b = NULL, without.c = NULL; /* no pointer is read */
  options.result = &result, options.budget_ms = 60 * check_scale();
  CHECK(wsgemm_level3_autotune(h, d, &options) == WSGEMM_SUCCESS, "%s: %s", what, wsgemm_last_error());
  CHECK(memcmp(&asked, d, sizeof asked) == 0, "%s: the descriptor has changed", what);
  CHECK(is_chosen_by(h, d, "tuning file"), "%s: what was found is not in force", what);
  check_explained(h, d, &result);
  CHECK(digest_of(&stage, h, d) == before, "%s: other bits after tuning: %s, before %s", what, result.after, result.before);
  check_line(call, what);
  options.is_exhaustive = 1, options.budget_ms = 1, options.file = "";
  CHECK(wsgemm_level3_autotune(h, &without, &options) == WSGEMM_SUCCESS, "%s: %s", what, wsgemm_last_error());
  CHECK(result.n_candidates > 1 && result.n_refused == 0 && result.n_measured == result.n_candidates,
        "%s: %d candidates, %d measured, %d refused", what, result.n_candidates, result.n_measured, result.n_refused);
  level3_stage_free(&stage);
  wsgemm_destroy(h);
}

static void tuned_and_later(void *argument) {
  check_in_child("a tuned routine", tuned_child, argument);
  check_in_child("a later process", later_process, argument);
}

static void every_routine(void) {
  struct check_random rng = check_random_from(410);
  for (int r = 0; r < N_ROUTINES; r++)
    for (int type = 0; type < N_LEVEL3_TYPES; type++) {
      const wsgemm_routine routine = all_routines[r];
      if (!routine_has_type(routine, (wsgemm_type)type) || check_random_in(&rng, 0, check_scale() > 4 ? 3 : 1)) continue;
      const struct variant variant = draw_variant(routine, (wsgemm_type)type, &rng);
      const wsgemm_layout layout = check_random_in(&rng, 0, 1) ? WSGEMM_ROW_MAJOR : WSGEMM_COL_MAJOR;
      struct tuned_call call = {level3_desc(routine, (wsgemm_type)type, layout, &variant, SIZE, SIZE - 10, SIZE + 10),
                                word_of(routine)};
      draw_scalars(&call.d, JUDGE_BOUND, &rng);
      call.d.alpha = scalar_make((wsgemm_type)type, 0.75, routine_has_type(routine, WSGEMM_F32) ? 0.5 : 0);
      in_child("a routine", tuned_and_later, &call);
    }
}

/* ---- sizes at which a plan has all of its parts ---------------------------------------------- */

/* Several blocks of k, or of unknowns, and more than one chunk: every candidate, with the bits of
 * the built-in choice; a batch; C that is not its operand. */
static void larger_child(void *argument) {
  wsgemm_level3_desc *d = argument;
  wsgemm_handle *h = new_handle();
  wsgemm_autotune_result result;
  wsgemm_autotune_options options = WSGEMM_AUTOTUNE_OPTIONS_INIT;
  char what[DESCRIPTION_BYTES];
  options.result = &result, options.is_exhaustive = 1, options.budget_ms = 1, options.file = "";
  CHECK(wsgemm_level3_autotune(h, d, &options) == WSGEMM_SUCCESS, "%s: %s", level3_describe(d, what), wsgemm_last_error());
  CHECK(result.n_candidates > 1 && result.n_refused == 0 && result.n_measured == result.n_candidates,
        "%s: %d candidates, %d measured, %d refused", level3_describe(d, what), result.n_candidates, result.n_measured,
        result.n_refused);
  wsgemm_destroy(h);
}

static void larger(void) {
  struct check_random rng = check_random_from(412);
  static const wsgemm_routine routines[] = {WSGEMM_SYMM, WSGEMM_SYRK, WSGEMM_TRMM, WSGEMM_TRSM};
  const int64_t size = check_scale() > 4 ? 200 : 700;
  static char memory;
  for (size_t r = 0; r < sizeof routines / sizeof routines[0]; r++)
    for (int turn = 0; turn < (check_scale() > 4 ? 1 : 3); turn++) {
      const wsgemm_type type = turn == 0 ? WSGEMM_F64 : (wsgemm_type)check_random_in(&rng, 0, N_LEVEL3_TYPES - 1);
      const struct variant variant = draw_variant(routines[r], type, &rng);
      const int64_t n = turn == 2 ? size / 8 : size;
      wsgemm_level3_desc d = level3_desc(routines[r], type, WSGEMM_COL_MAJOR, &variant, n, n + 40, n - 30);
      if (turn == 1 && routine_is_triangular(routines[r])) d.c = &memory, d.ldc = d.ldb;
      if (turn == 2) d.batch_count = 9, d.stride_a = d.lda * d.lda, d.stride_b = d.ldb * (n + 40), d.stride_c = d.ldc * (n + 40);
      if (turn == 2 && routine_writes_triangle(routines[r])) d.stride_a = d.lda * (n + 40);
      in_child("larger sizes", larger_child, &d);
    }
}

/* ---- which calls a line serves --------------------------------------------------------------- */

static wsgemm_level3_desc plain(wsgemm_routine routine) {
  const struct variant variant = {WSGEMM_LEFT, WSGEMM_LOWER, WSGEMM_NO_TRANS, WSGEMM_NO_TRANS, WSGEMM_NON_UNIT};
  return level3_desc(routine, WSGEMM_F64, WSGEMM_COL_MAJOR, &variant, SIZE, SIZE, SIZE);
}

static void tune(wsgemm_handle *h, const wsgemm_level3_desc *d) {
  wsgemm_autotune_options options = WSGEMM_AUTOTUNE_OPTIONS_INIT;
  options.budget_ms = 60 * check_scale();
  CHECK(wsgemm_level3_autotune(h, d, &options) == WSGEMM_SUCCESS, "%s", wsgemm_last_error());
  CHECK(is_chosen_by(h, d, "tuning file"), "what was found is not in force");
}

static void check_chosen(wsgemm_handle *h, const wsgemm_level3_desc *d, bool is_tuned, const char *what) {
  CHECK(is_chosen_by(h, d, is_tuned ? "tuning file" : "model"), "%s: %s", what, is_tuned ? "not served" : "served");
}

/* Of doubles: symm, syrk, trmm, trsm. */
static bool has_lines(wsgemm_routine routine) {
  return routine_has_type(routine, WSGEMM_F64) && routine != WSGEMM_SYR2K && routine != WSGEMM_GEMMTR;
}

static void served_child(void *unused) {
  (void)unused;
  wsgemm_handle *h = new_handle();
  static char memory[2];
  for (int r = 0; r < N_ROUTINES; r++) {
    if (!has_lines(all_routines[r])) continue;
    const wsgemm_level3_desc d = plain(all_routines[r]);
    for (int later = r; later < N_ROUTINES; later++) {
      const wsgemm_level3_desc other = plain(all_routines[later]);
      if (has_lines(all_routines[later])) check_chosen(h, &other, false, "another routine's line");
    }
    tune(h, &d);
  }
  wsgemm_gemm_desc gemm = gemm_desc(WSGEMM_F64, WSGEMM_COL_MAJOR, WSGEMM_NO_TRANS, WSGEMM_NO_TRANS, SIZE, SIZE, SIZE);
  CHECK(!explained_is(h, &gemm, "chosen_by", "tuning file"), "gemm is served by a line of Level 3");
  wsgemm_level3_desc d = plain(WSGEMM_SYMM);
  d.uplo = WSGEMM_UPPER;
  check_chosen(h, &d, true, "symm, the other triangle");
  d.side = WSGEMM_RIGHT;
  check_chosen(h, &d, false, "symm, the other side");
  d = plain(WSGEMM_SYMM), d.layout = WSGEMM_ROW_MAJOR, d.side = WSGEMM_RIGHT, d.m = SIZE;
  check_chosen(h, &d, true, "symm, row-major on the other side");
  d = plain(WSGEMM_SYMM), d.n = SIZE + 8;
  check_chosen(h, &d, true, "symm, a shape near it");
  d = plain(WSGEMM_SYR2K);
  check_chosen(h, &d, true, "syr2k, two products like syrk's");
  d = plain(WSGEMM_GEMMTR);
  check_chosen(h, &d, false, "gemmtr, other ops than syrk's");
  d = plain(WSGEMM_SYRK), d.uplo = WSGEMM_UPPER;
  check_chosen(h, &d, false, "syrk, the other triangle");
  d = plain(WSGEMM_TRSM), d.diag = WSGEMM_UNIT;
  check_chosen(h, &d, true, "trsm, a unit diagonal");
  d = plain(WSGEMM_TRSM), d.transa = WSGEMM_TRANS;
  check_chosen(h, &d, false, "trsm, transposed");
  d = plain(WSGEMM_TRMM), d.b = &memory[0], d.c = &memory[1], d.ldc = d.ldb;
  check_chosen(h, &d, false, "trmm, not in place");
  CHECK(wsgemm_tuning_clear(NULL) == WSGEMM_SUCCESS, "%s", wsgemm_last_error());
  for (int r = 0; r < N_ROUTINES; r++)
    if (routine_has_type(all_routines[r], WSGEMM_F64)) d = plain(all_routines[r]), check_chosen(h, &d, false, "cleared");
  wsgemm_destroy(h);
}

static void served(void) { in_child("which calls a line serves", served_child, NULL); }

/* ---- what is refused ------------------------------------------------------------------------- */

static void expect(const wsgemm_level3_desc *d, wsgemm_status expected, const char *what) {
  wsgemm_autotune_options options = WSGEMM_AUTOTUNE_OPTIONS_INIT;
  options.budget_ms = 0;
  const wsgemm_status status = wsgemm_level3_autotune(NULL, d, &options);
  CHECK(status == expected, "%s: %s, \"%s\"", what, wsgemm_status_name(status), wsgemm_last_error());
}

static void refused_child(void *unused) {
  (void)unused;
  wsgemm_level3_desc d = plain(WSGEMM_TRSM);
  expect(&d, WSGEMM_SUCCESS, "a good one");
  expect(NULL, WSGEMM_INVALID_POINTER, "no descriptor");
  d.struct_bytes--;
  expect(&d, WSGEMM_INVALID_VALUE, "struct_bytes");
  d = plain(WSGEMM_TRSM), d.lda = SIZE - 1;
  expect(&d, WSGEMM_INVALID_VALUE, "lda");
  d = plain(WSGEMM_TRSM), d.type = WSGEMM_BF16;
  expect(&d, WSGEMM_NOT_SUPPORTED, "half precision");
  d = plain(WSGEMM_TRSM), d.m = 0;
  expect(&d, WSGEMM_NOT_SUPPORTED, "m = 0");
  d = plain(WSGEMM_SYMM), d.alpha = scalar_make(WSGEMM_F64, 0, 0);
  expect(&d, WSGEMM_NOT_SUPPORTED, "alpha = 0");
  d = plain(WSGEMM_SYRK), d.n = d.k = 8;
  expect(&d, WSGEMM_NOT_SUPPORTED, "a small one");
  d = plain(WSGEMM_TRSM), d.m = 8, d.n = 8;
  expect(&d, WSGEMM_NOT_SUPPORTED, "a small system");
  wsgemm_autotune_options options = WSGEMM_AUTOTUNE_OPTIONS_INIT;
  options.device = 99;
  d = plain(WSGEMM_SYRK);
  CHECK(wsgemm_level3_autotune(NULL, &d, &options) != WSGEMM_SUCCESS, "a device that is not there");
}

static void refused(void) { in_child("what is refused", refused_child, NULL); }

static const struct check_case cases[] = {
    {"every_routine", every_routine}, {"larger", larger}, {"served", served}, {"refused", refused}};

int main(int argc, char **argv) { return check_main("tuning_level3", cases, sizeof cases / sizeof cases[0], argc, argv); }
