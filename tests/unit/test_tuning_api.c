/* test_tuning_api.c - tuning as users call it, on the CPU: what wsgemm_autotune finds is in force,
 * explained, written where the environment says, and changes no bit of C; what is refused; files
 * that are shared, damaged or not to be written.
 *
 * The library reads its file on its first call, so every case runs in forked children and the
 * parent never calls it. */
#define _GNU_SOURCE
#include "support/cgroups.h"
#include "support/folder.h"
#include "support/process.h"
#include "support/rows.h"

#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- small things ---------------------------------------------------------------------------- */

static char folder[PATH_BYTES], user_file[PATH_BYTES];

static void in_child(const char *what, void (*body)(void *), void *argument) {
  check_with_tuning_file(folder, user_file, what, body, argument);
}

static wsgemm_gemm_desc product(wsgemm_type type, int64_t m) {
  wsgemm_gemm_desc d = gemm_desc(type, WSGEMM_COL_MAJOR, WSGEMM_NO_TRANS, WSGEMM_NO_TRANS, m, 110, 120);
  d.beta = scalar_make(type, 0.5, 0.25);
  return d;
}

static wsgemm_autotune_options quick(wsgemm_autotune_result *result) {
  wsgemm_autotune_options options = WSGEMM_AUTOTUNE_OPTIONS_INIT;
  /* so that more than the built-in choice is measured, under an emulator too */
  options.budget_ms = 100 * check_scale();
  options.result = result;
  return options;
}

/* Tunes a product and expects something or nothing better to be in force. */
static wsgemm_status tune(wsgemm_handle *h, const wsgemm_gemm_desc *d, const char *file, wsgemm_autotune_result *result) {
  wsgemm_autotune_options options = quick(result);
  options.file = file;
  const wsgemm_status status = wsgemm_autotune(h, d, &options);
  if (status != WSGEMM_FILE_ERROR) CHECK(status == WSGEMM_SUCCESS, "%s: %s", wsgemm_status_name(status), wsgemm_last_error());
  CHECK(explained_is(h, d, "chosen_by", "tuning file"), "what was found is not in force");
  return status;
}

static int count_lines(const char *file) {
  size_t n_bytes;
  int n = 0;
  char *text = file_read(file, &n_bytes);
  for (size_t i = 0; text && i < n_bytes; i++) n += text[i] == '\n';
  free(text);
  return n - 1; /* without the header */
}

/* The value of "key=" in a text as wsgemm_autotune_result has them; false: it is not there. */
static bool value_of(const char *text, const char *key, char value[64]) {
  char word[32];
  snprintf(word, sizeof word, " %s=", key);
  const char *at = strstr(text, word);
  return at && sscanf(at + strlen(word), "%63s", value) == 1;
}

/* Whether wsgemm_explain has the line "key: value", or one that goes on after it: "direct (panels
 * of A packed)". */
static bool is_explained(const char *text, const char *key, const char *value) {
  char line[128];
  const int length = snprintf(line, sizeof line, "\n%s: %s", key, value);
  const char *at = strstr(text, line);
  return at && (at[length] == '\n' || at[length] == ' ');
}

static void check_explained(wsgemm_handle *h, const wsgemm_gemm_desc *d, const wsgemm_autotune_result *result) {
  static const char *const keys[][2] = {
      {"policy", "policy"}, {"path", "path"}, {"threads", "threads"}, {"coarse", "coarse_factor"}, {"nc", "column_block"}};
  char text[4096], value[64];
  wsgemm_explain(h, d, text, sizeof text);
  for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++)
    if (value_of(result->after, keys[i][0], value))
      CHECK(is_explained(text, keys[i][1], value), "kept is %s, but explained is\n%s", result->after, text);
  CHECK(sscanf(result->after, "row=%63s", value) == 1 && is_explained(text, "kernel", value), "kept is %s", result->after);
}

static void check_result(const wsgemm_autotune_result *r) {
  CHECK(r->n_candidates >= 2 && r->n_measured >= 1 && r->n_measured + r->n_refused <= r->n_candidates && r->n_refused == 0,
        "%d candidates, %d measured, %d refused", r->n_candidates, r->n_measured, r->n_refused);
  CHECK(r->before_us > 0 && r->after_us > 0 && r->elapsed_ms > 0 && r->is_interrupted == 0, "%g us, %g us, %g ms", r->before_us,
        r->after_us, r->elapsed_ms);
  CHECK(strncmp(r->before, "row=", 4) == 0 && strncmp(r->after, "row=", 4) == 0, "\"%s\", \"%s\"", r->before, r->after);
  CHECK(r->is_better ? r->after_us <= 0.98 * r->before_us && strcmp(r->before, r->after) != 0
                     : r->after_us == r->before_us && strcmp(r->before, r->after) == 0,
        "better %d: %g us by %s, %g us by %s", r->is_better, r->before_us, r->before, r->after_us, r->after);
}

/* ---- what is tuned --------------------------------------------------------------------------- */

static unsigned long long digest_of(struct stage *stage, wsgemm_handle *h, wsgemm_gemm_desc *d) {
  const struct layout_of_case where = layout_tight();
  case_store(stage, d, &where);
  CHECK(wsgemm_gemm(h, d) == WSGEMM_SUCCESS, "%s", wsgemm_last_error());
  return matrix_digest(&stage->stored[2]);
}

struct staged {
  struct stage stage;
  wsgemm_gemm_desc d;
};

static void later_process(void *argument) {
  const wsgemm_gemm_desc *d = argument;
  wsgemm_handle *h = NULL;
  REQUIRE(wsgemm_create(&h) == WSGEMM_SUCCESS && wsgemm_set_num_threads(h, 3) == WSGEMM_SUCCESS, "handle");
  CHECK(explained_is(h, d, "chosen_by", "tuning file"), "a later process does not take what the file says");
  CHECK(wsgemm_last_error()[0] == '\0', "\"%s\"", wsgemm_last_error());
  wsgemm_destroy(h);
}

static void tuned_child(void *argument) {
  struct staged *staged = argument;
  struct stage *stage = &staged->stage;
  wsgemm_gemm_desc *d = &staged->d;
  wsgemm_handle *h = NULL;
  wsgemm_autotune_result result;
  REQUIRE(wsgemm_create(&h) == WSGEMM_SUCCESS && wsgemm_set_num_threads(h, 3) == WSGEMM_SUCCESS, "handle");
  const unsigned long long before = digest_of(stage, h, d);
  CHECK(!explained_is(h, d, "chosen_by", "tuning file"), "tuned before it was tuned");
  const wsgemm_gemm_desc asked = *d;
  tune(h, d, NULL, &result);
  CHECK(memcmp(&asked, d, sizeof asked) == 0, "the descriptor has changed");
  check_result(&result);
  check_explained(h, d, &result);
  CHECK(digest_of(stage, h, d) == before, "the bits of C have changed with %s", result.after);
  CHECK(case_guards_intact(stage, d, "autotune"), "guards");
  CHECK(count_lines(user_file) == 1, "%d lines", count_lines(user_file));
  CHECK(wsgemm_set_num_threads(h, 1) == WSGEMM_SUCCESS && !explained_is(h, d, "chosen_by", "tuning file"),
        "taken for other threads");
  CHECK(digest_of(stage, h, d) == before, "the bits of C depend on threads");
  wsgemm_destroy(h);
}

static void types_and_ops(void) {
  struct check_random rng = check_random_from(340);
  for (int type = 0; type < N_TYPES; type++)
    for (int turn = 0; turn < (check_scale() > 1 ? 1 : 4); turn++) {
      struct staged both = {.stage = stage_new((wsgemm_type)type, 420, 410, 70, FILL_UNIFORM, &rng)};
      both.d = gemm_desc((wsgemm_type)type, all_layouts[turn % 2], draw_op((wsgemm_type)type, &rng),
                         draw_op((wsgemm_type)type, &rng), check_random_in(&rng, 380, 420), check_random_in(&rng, 380, 410),
                         check_random_in(&rng, 50, 70)); /* not by rows */
      both.d.alpha = scalar_make((wsgemm_type)type, 0.7, 0.2), both.d.beta = scalar_make((wsgemm_type)type, turn % 2, 0.5);
      folder_make(folder);
      folder_path(user_file, folder, "tuning");
      setenv("WSGEMM_TUNE", user_file, 1);
      check_in_child("a product", tuned_child, &both);
      check_in_child("a later process", later_process, &both.d);
      folder_remove(folder);
      stage_free(&both.stage);
    }
}

/* ---- options --------------------------------------------------------------------------------- */

struct steps {
  int n, stop_at, n_unmeasured;
};

static int count_steps(void *user, const wsgemm_autotune_step *step) {
  struct steps *steps = user;
  steps->n++;
  steps->n_unmeasured += step->us == 0;
  CHECK(strncmp(step->candidate, "row=", 4) == 0 && strncmp(step->best, "row=", 4) == 0 && step->elapsed_ms >= 0, "step %d",
        steps->n);
  return steps->n == steps->stop_at;
}

static void options_child(void *unused) {
  (void)unused;
  struct steps steps = {0, 0, 0};
  wsgemm_autotune_result result;
  wsgemm_gemm_desc d = product(WSGEMM_F32, 100);
  wsgemm_autotune_options options = quick(&result);
  options.progress = count_steps, options.user = &steps, options.budget_ms = 0;
  CHECK(wsgemm_autotune(NULL, &d, &options) == WSGEMM_SUCCESS, "%s", wsgemm_last_error());
  CHECK(steps.n == result.n_candidates && steps.n_unmeasured == steps.n && result.n_measured == 0, "%d steps for %d candidates",
        steps.n, result.n_candidates);
  CHECK(!explained_is(NULL, &d, "chosen_by", "tuning file") && access(user_file, F_OK) != 0, "kept without a budget");
  steps = (struct steps){0, 1, 0}; /* stopped after the built-in choice: there is nothing to keep */
  options.budget_ms = 50;
  CHECK(wsgemm_autotune(NULL, &d, &options) == WSGEMM_SUCCESS && steps.n == 1, "%d steps", steps.n);
  CHECK(result.is_interrupted == 1 && result.is_better == 0 && result.n_measured == 1, "result");
  CHECK(!explained_is(NULL, &d, "chosen_by", "tuning file") && access(user_file, F_OK) != 0, "kept, though stopped");
  steps = (struct steps){0, 0, 0};
  options.is_exhaustive = 1, options.budget_ms = 1e-3;
  CHECK(wsgemm_autotune(NULL, &d, &options) == WSGEMM_SUCCESS && result.n_measured == result.n_candidates, "%d of %d measured",
        result.n_measured, result.n_candidates);
  CHECK(steps.n >= result.n_candidates && count_lines(user_file) == 1, "%d steps", steps.n);
  /* Epilogue, pointers and packed operands are not looked at. */
  d.m = 150, d.lda = d.ldc = 150;
  d.a = d.b = d.c = NULL, d.bias = &d, d.column_sums = NULL, d.epilogue = WSGEMM_EPILOGUE_RELU;
  options = quick(&result);
  CHECK(wsgemm_autotune(NULL, &d, &options) == WSGEMM_SUCCESS && count_lines(user_file) == 2, "%s", wsgemm_last_error());
  /* Neither a result nor options need be wanted, and a batch is as good as one. */
  d = product(WSGEMM_C32, 64);
  d.batch_count = 3, d.stride_a = -20000, d.stride_b = 0, d.stride_c = d.ldc * d.n;
  options = quick(NULL);
  CHECK(wsgemm_autotune(NULL, &d, &options) == WSGEMM_SUCCESS && count_lines(user_file) == 3, "%s", wsgemm_last_error());
  if (check_scale() == 1) CHECK(wsgemm_autotune(NULL, &d, NULL) == WSGEMM_SUCCESS, "%s", wsgemm_last_error());
  CHECK(count_lines(user_file) == 3, "the same product twice");
  /* What the handle forces is kept; it serves where it is forced. */
  wsgemm_handle *h = NULL;
  REQUIRE(wsgemm_create(&h) == WSGEMM_SUCCESS && wsgemm_set_policy(h, WSGEMM_POLICY_FIXED_WORK) == WSGEMM_SUCCESS &&
              wsgemm_set_kernel(h, "sgemm_ref_8x6") == WSGEMM_SUCCESS,
          "handle");
  d = product(WSGEMM_F32, 131);
  tune(h, &d, NULL, &result);
  check_explained(h, &d, &result);
  CHECK(strncmp(result.after, "row=sgemm_ref_8x6 ", 18) == 0 && explained_is(h, &d, "policy", "fixed_work"), "%s", result.after);
  wsgemm_destroy(h);
}
static void results_and_steps(void) { in_child("options", options_child, NULL); }

/* ---- refused --------------------------------------------------------------------------------- */

static void refuse(wsgemm_handle *h, const wsgemm_gemm_desc *d, wsgemm_autotune_options options, wsgemm_status expected,
                   const char *what) {
  wsgemm_autotune_result result, before;
  memset(&result, 0x77, sizeof result), memset(&before, 0x77, sizeof before);
  options.result = &result;
  const wsgemm_status status = wsgemm_autotune(h, d, &options);
  CHECK(status == expected, "%s: %s (%s)", what, wsgemm_status_name(status), wsgemm_last_error());
  CHECK(wsgemm_last_error()[0] != '\0' && memcmp(&result, &before, sizeof result) == 0, "%s: the result was written", what);
}

static void refused_child(void *unused) {
  (void)unused;
  static const struct {
    int device;
    size_t bytes;
    double budget_ms;
    wsgemm_status status;
  } bad[] = {{-2, 0, 5, WSGEMM_INVALID_VALUE},
             {64, 0, 5, WSGEMM_INVALID_VALUE},
             {1 << 30, 0, 5, WSGEMM_INVALID_VALUE},
             {-1, 8, 5, WSGEMM_INVALID_VALUE},
             {-1, (size_t)-8, 5, WSGEMM_INVALID_VALUE},
             {-1, 0, (double)NAN, WSGEMM_INVALID_VALUE},
             {0, 0, 5, WSGEMM_NO_DEVICE},
             {63, 0, 5, WSGEMM_NO_DEVICE}};
  const wsgemm_gemm_desc good = product(WSGEMM_F64, 100);
  const wsgemm_autotune_options options = quick(NULL);
  for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
    wsgemm_autotune_options o = options;
    o.device = bad[i].device, o.struct_bytes += bad[i].bytes, o.budget_ms = bad[i].budget_ms;
    refuse(NULL, &good, o, bad[i].status, "options");
  }
  refuse(NULL, NULL, options, WSGEMM_INVALID_POINTER, "no descriptor");
  unsigned char nothing[256] = {0};
  refuse((wsgemm_handle *)(void *)nothing, &good, options, WSGEMM_INVALID_HANDLE, "no handle");
#define REFUSE(member, value, expected)                        \
  do {                                                         \
    wsgemm_gemm_desc d = good;                                 \
    d.member = (value);                                        \
    refuse(NULL, &d, options, expected, #member " = " #value); \
  } while (0)
  REFUSE(struct_bytes, 1, WSGEMM_INVALID_VALUE);
  REFUSE(m, -1, WSGEMM_INVALID_VALUE);
  REFUSE(lda, 99, WSGEMM_INVALID_VALUE);
  REFUSE(batch_count, -1, WSGEMM_INVALID_VALUE);
  REFUSE(layout, (wsgemm_layout)7, WSGEMM_INVALID_VALUE);
  REFUSE(type_a, WSGEMM_F32, WSGEMM_NOT_SUPPORTED);
  REFUSE(m, 0, WSGEMM_NOT_SUPPORTED);
  REFUSE(n, 0, WSGEMM_NOT_SUPPORTED);
  REFUSE(k, 0, WSGEMM_NOT_SUPPORTED);
  REFUSE(batch_count, 0, WSGEMM_NOT_SUPPORTED);
  REFUSE(alpha, scalar_make(WSGEMM_F64, 0, 0), WSGEMM_NOT_SUPPORTED);
  REFUSE(m, 1, WSGEMM_NOT_SUPPORTED); /* a matrix-vector product: there is no choice */
  REFUSE(lda, INT64_C(1) << 50, WSGEMM_ALLOC_FAILED);
#undef REFUSE
  wsgemm_gemm_desc one_panel = good;
  one_panel.m = 4, one_panel.k = 30;
  refuse(NULL, &one_panel, options, WSGEMM_NOT_SUPPORTED, "one panel");
  CHECK(folder_count(folder, "tuning") == 0, "what was refused has made a file");
  CHECK(!explained_is(NULL, &good, "chosen_by", "tuning file"), "what was refused is in force");
}

static void refused(void) {
  setenv("CUDA_VISIBLE_DEVICES", "-1", 1);
  in_child("refused", refused_child, NULL);
}

/* A container's memory is less than the machine's. */
static void container_child(void *unused) {
  (void)unused;
  REQUIRE(cgroups_enter("memory.max", "max\n", "60000000\n", "max\n"), "cgroups");
  const wsgemm_gemm_desc fits = gemm_desc(WSGEMM_F64, WSGEMM_COL_MAJOR, WSGEMM_NO_TRANS, WSGEMM_NO_TRANS, 1000, 1000, 1000),
                         too_large = gemm_desc(WSGEMM_F64, WSGEMM_COL_MAJOR, WSGEMM_NO_TRANS, WSGEMM_NO_TRANS, 1500, 1500, 1500);
  /* operands and a second C: 32 and 72 MB */
  wsgemm_autotune_options options = WSGEMM_AUTOTUNE_OPTIONS_INIT;
  options.budget_ms = 0;
  CHECK(wsgemm_autotune(NULL, &fits, &options) == WSGEMM_SUCCESS, "%s", wsgemm_last_error());
  CHECK(wsgemm_autotune(NULL, &too_large, &options) == WSGEMM_ALLOC_FAILED && strstr(wsgemm_last_error(), "memory"), "%s",
        wsgemm_last_error());
}

static void container(void) {
  if (cgroups_can_enter())
    in_child("container", container_child, NULL);
  else
    check_skip("no mount namespace of our own (not root?)");
}

/* ---- files ----------------------------------------------------------------------------------- */

static void no_file_child(void *unused) {
  (void)unused;
  char path[PATH_BYTES];
  wsgemm_autotune_result result;
  wsgemm_gemm_desc d = product(WSGEMM_F32, 100);
  CHECK(tune(NULL, &d, "", &result) == WSGEMM_SUCCESS && folder_count(folder, "tuning") == 0, "\"\" has made a file");
  folder_path(path, folder, "diary");
  file_write(path, "Dear diary,\n", 12);
  d = product(WSGEMM_F32, 160);
  CHECK(tune(NULL, &d, path, &result) == WSGEMM_FILE_ERROR && file_is(path, "Dear diary,\n", 12), "a file of others");
  CHECK(strstr(wsgemm_last_error(), "diary") != NULL, "\"%s\"", wsgemm_last_error());
  check_result(&result);
  d = product(WSGEMM_F32, 250);
  CHECK(tune(NULL, &d, folder_path(path, folder, "diary/below"), &result) == WSGEMM_FILE_ERROR, "below a file");
  d = product(WSGEMM_F32, 400);
  REQUIRE(mkdir(folder_path(path, folder, "inner"), 0777) == 0, "mkdir");
  CHECK(tune(NULL, &d, path, &result) == WSGEMM_FILE_ERROR, "a folder as a file");
  d = product(WSGEMM_F32, 640);
  CHECK(tune(NULL, &d, folder_path(path, folder, "other"), &result) == WSGEMM_SUCCESS && count_lines(path) == 1, "another file");
  CHECK(access(user_file, F_OK) != 0, "written to the user's file, too");
}
static void no_file(void) { in_child("no file", no_file_child, NULL); }

struct home {
  const char *tune, *cache, *home; /* NULL: unset; %: the folder */
  const char *file;                /* below the folder; "": none */
  bool is_read_only;
};

static void set_or_unset(const char *name, const char *value) {
  char text[PATH_BYTES];
  if (value)
    setenv(name, value[0] == '%' ? folder_path(text, folder, value + 2) : value, 1);
  else
    unsetenv(name);
}

static bool is_too_long(const char *name) { return name && strlen(name) > 900; }

static void home_child(void *argument) {
  const struct home *home = argument;
  char expected[PATH_BYTES] = "", said[PATH_BYTES];
  wsgemm_autotune_result result;
  const wsgemm_gemm_desc d = product(WSGEMM_F64, 100);
  set_or_unset("WSGEMM_TUNE", home->tune), set_or_unset("XDG_CACHE_HOME", home->cache), set_or_unset("HOME", home->home);
  if (home->file[0]) folder_path(expected, folder, home->file);
  if (home->is_read_only) {
    REQUIRE(chmod(folder, 0555) == 0, "chmod");
    if (!process_become_ordinary()) {
      CHECK(true, "root stays root");
      return;
    }
  }
  CHECK(wsgemm_tuning_file(said, sizeof said) == strlen(said) && strcmp(said, expected) == 0, "\"%s\" instead of \"%s\"", said,
        expected);
  const bool warns = is_too_long(home->tune) || is_too_long(home->cache) || is_too_long(home->home);
  CHECK((wsgemm_last_error()[0] != '\0') == warns, "\"%s\"", wsgemm_last_error());
  const wsgemm_status status = tune(NULL, &d, NULL, &result);
  CHECK(status == (home->is_read_only ? WSGEMM_FILE_ERROR : WSGEMM_SUCCESS), "%s", wsgemm_status_name(status));
  if (expected[0]) CHECK((access(expected, F_OK) == 0) == !home->is_read_only, "%s", expected);
}

static void where_it_is_kept(void) {
  static char longest[2000];
  for (size_t i = 0; i < sizeof longest - 1; i++) longest[i] = i % 50 ? 'x' : '/';
  static const struct home homes[] = {
      {"%/mine", "%/cache", "%/home", "mine", false},
      {"%/new/folders/mine", NULL, NULL, "new/folders/mine", false},
      {"off", "%/cache", "%/home", "", false},
      {"", "%/cache", "%/home", "cache/wsgemm/tuning", false},
      {NULL, "%/cache", "%/home", "cache/wsgemm/tuning", false},
      {NULL, "cache", "%/home", "home/.cache/wsgemm/tuning", false},
      {NULL, "", "%/home", "home/.cache/wsgemm/tuning", false},
      {NULL, NULL, "%/home", "home/.cache/wsgemm/tuning", false},
      {NULL, NULL, "home", "", false},
      {NULL, NULL, NULL, "", false},
      {NULL, longest, "%/home", "", false},
      {NULL, NULL, "%/home", "home/.cache/wsgemm/tuning", true},
      {NULL, "%/cache", NULL, "cache/wsgemm/tuning", true},
  };
  for (size_t i = 0; i < sizeof homes / sizeof homes[0]; i++) {
    struct home home = homes[i];
    in_child(home.file, home_child, &home);
  }
}

/* ---- warnings -------------------------------------------------------------------------------- */

struct damage {
  const char *text, *warning; /* NULL: none */
  const char *link;           /* in place of a text, what the file is a link to; "": it is a pipe */
};

static void damage_file(const struct damage *damage) {
  if (damage->text)
    file_write(user_file, damage->text, strlen(damage->text));
  else if (!damage->link)
    REQUIRE(mkdir(user_file, 0777) == 0, "mkdir");
  else
    REQUIRE((damage->link[0] ? symlink(damage->link, user_file) : mkfifo(user_file, 0666)) == 0, "%s", damage->link);
}

static void damage_child(void *argument) {
  const struct damage *damage = argument;
  double x[4] = {1, 2, 3, 4}, c[4] = {0};
  damage_file(damage);
  for (int turn = 0; turn < 3; turn++) {
    CHECK(wsgemm_dgemm(NULL, WSGEMM_COL_MAJOR, WSGEMM_NO_TRANS, WSGEMM_NO_TRANS, 2, 2, 2, 1, x, 2, x, 2, 0, c, 2) ==
                  WSGEMM_SUCCESS &&
              c[0] == 7 && c[3] == 22,
          "a damaged file disturbs calls: %s", wsgemm_last_error());
    const bool is_warned = strncmp(wsgemm_last_error(), "warning: tuning file ", 21) == 0;
    if (turn == 0)
      CHECK(damage->warning ? is_warned && strstr(wsgemm_last_error(), damage->warning) != NULL : wsgemm_last_error()[0] == '\0',
            "\"%s\" instead of \"%s\"", wsgemm_last_error(), damage->warning ? damage->warning : "");
    else
      CHECK(!is_warned, "warned again");
    CHECK(wsgemm_set_num_threads(NULL, -1) == WSGEMM_INVALID_VALUE, "another message in its place");
  }
  const wsgemm_gemm_desc d = product(WSGEMM_F32, 300);
  CHECK(!explained_is(NULL, &d, "chosen_by", "tuning file") && strstr(wsgemm_last_error(), "tuning") == NULL, "\"%s\"",
        wsgemm_last_error());
  if (damage->text) return;
  struct stat before, after;
  wsgemm_autotune_result result;
  const wsgemm_status expected = damage->warning ? WSGEMM_FILE_ERROR : WSGEMM_SUCCESS;
  REQUIRE(lstat(user_file, &before) == 0, "lstat");
  CHECK(tune(NULL, &d, NULL, &result) == expected, "%s", wsgemm_last_error());
  if (expected) CHECK(strstr(wsgemm_last_error(), user_file) != NULL, "\"%s\"", wsgemm_last_error());
  CHECK(wsgemm_tuning_clear(NULL) == expected, "%s", wsgemm_last_error());
  CHECK(lstat(user_file, &after) == 0 && before.st_ino == after.st_ino && before.st_mode == after.st_mode, "it was replaced");
}

static void warnings(void) {
  static const struct damage damages[] = {
      {"", NULL, NULL},
      {"# wsgemm tuning 1\n", NULL, NULL},
      {"# wsgemm tuning 1\n# a comment\n\n", NULL, NULL},
      {"# wsgemm tuning 1\ngemm device=\"x\" crc=00000000\nnonsense\n", "2 damaged lines are ignored", NULL},
      {"Dear diary,\n", "not a tuning file", NULL},
      {"# wsgemm tuning 1\nx crc=8cdc1683\n", "1 lines of other versions are ignored", NULL},
      {NULL, "not a tuning file", NULL},
      {NULL, "not a tuning file", ""},
      {NULL, "not a tuning file", "/dev/zero"},
      {NULL, "not a tuning file", "/proc"},
      {NULL, "symbolic links", "tuning"},
      {NULL, NULL, "made_by_tuning"},
  };
  for (size_t i = 0; i < sizeof damages / sizeof damages[0]; i++) {
    struct damage damage = damages[i];
    in_child(damage.text ? damage.text : damage.link ? damage.link : "a folder", damage_child, &damage);
  }
}

/* ---- texts ----------------------------------------------------------------------------------- */

static size_t text_of_file(char *text, size_t bytes) { return wsgemm_tuning_read(NULL, text, bytes); }

static void texts_child(void *unused) {
  (void)unused;
  static size_t (*const calls[])(char *, size_t) = {wsgemm_tuning_file, wsgemm_tuning_table, text_of_file};
  wsgemm_autotune_result result;
  const wsgemm_gemm_desc d = product(WSGEMM_F32, 100);
  tune(NULL, &d, NULL, &result);
  for (int i = 0; i < 3; i++) {
    const size_t length = calls[i](NULL, 0);
    CHECK(length > 10, "text %d: %zu bytes", i, length);
    char *whole = malloc(length + 1);
    REQUIRE(whole && calls[i](whole, length + 1) == length && strlen(whole) == length, "text %d", i);
    for (size_t bytes = 1; bytes <= length + 1; bytes += 1 + bytes / 40) {
      char *part = malloc(bytes); /* just so large, for a sanitizer to see */
      REQUIRE(part != NULL, "memory");
      memset(part, 'x', bytes);
      CHECK(calls[i](part, bytes) == length && strlen(part) == bytes - 1 && strncmp(part, whole, bytes - 1) == 0,
            "text %d in %zu bytes", i, bytes);
      free(part);
    }
    free(whole);
  }
  char text[8] = "xxxxxxx", path[PATH_BYTES];
  CHECK(wsgemm_tuning_read(folder_path(path, folder, "nowhere"), text, sizeof text) == 0 && text[0] == '\0',
        "no file has a text");
  file_write(folder_path(path, folder, "diary"), "Dear diary,\n", 12);
  CHECK(wsgemm_tuning_read(path, text, sizeof text) == 0 && strstr(wsgemm_last_error(), "diary") != NULL, "\"%s\"",
        wsgemm_last_error());
}
static void texts(void) { in_child("texts", texts_child, NULL); }

/* What one handle forces is not for others. */
static void forced_child(void *unused) {
  (void)unused;
  wsgemm_handle *h = NULL;
  char text[4096];
  wsgemm_autotune_result result;
  const wsgemm_gemm_desc d = product(WSGEMM_F64, 400);
  REQUIRE(wsgemm_create(&h) == WSGEMM_SUCCESS && wsgemm_set_policy(h, WSGEMM_POLICY_FIXED_BLOCKS) == WSGEMM_SUCCESS &&
              wsgemm_set_coarse_factor(h, 3) == WSGEMM_SUCCESS,
          "handle");
  CHECK(tune(h, &d, NULL, &result) == WSGEMM_SUCCESS, "tune");
  CHECK(wsgemm_tuning_read(NULL, text, sizeof text) > 0 && !strstr(text, "policy=") && !strstr(text, "coarse="), "%s", text);
  CHECK(explained_is(NULL, &d, "policy", "steal") && explained_is(h, &d, "policy", "fixed_blocks"),
        "the policy of another handle");
  wsgemm_destroy(h);
}
static void forced(void) { in_child("forced", forced_child, NULL); }

static void import_child(void *unused) {
  (void)unused;
  char lines[2048], more[4096], path[PATH_BYTES], inner[PATH_BYTES];
  int n_lines = -1;
  wsgemm_autotune_result result;
  const wsgemm_gemm_desc d = product(WSGEMM_F32, 100), other = product(WSGEMM_F32, 300);
  folder_path(path, folder, "elsewhere");
  REQUIRE(mkdir(folder_path(inner, folder, "inner"), 0777) == 0, "mkdir");
  CHECK(tune(NULL, &d, path, &result) == WSGEMM_SUCCESS && tune(NULL, &other, path, &result) == WSGEMM_SUCCESS, "tune");
  CHECK(wsgemm_tuning_read(path, lines, sizeof lines) < sizeof lines && access(user_file, F_OK) != 0, "the user's file is there");
  CHECK(wsgemm_tuning_clear(NULL) == WSGEMM_SUCCESS && !explained_is(NULL, &d, "chosen_by", "tuning file"), "not forgotten");
  CHECK(count_lines(path) == 2 && access(user_file, F_OK) != 0, "another file was emptied");
  snprintf(more, sizeof more, "# wsgemm tuning 1\n\nnonsense\n%snonsense", lines);
  CHECK(wsgemm_tuning_import(more, NULL, &n_lines) == WSGEMM_SUCCESS && n_lines == 2, "%d lines: %s", n_lines,
        wsgemm_last_error());
  CHECK(explained_is(NULL, &d, "chosen_by", "tuning file") && explained_is(NULL, &other, "chosen_by", "tuning file"),
        "not in force");
  check_explained(NULL, &other, &result);
  CHECK(count_lines(user_file) == 2, "%d lines", count_lines(user_file));
  CHECK(wsgemm_tuning_import(lines, NULL, NULL) == WSGEMM_SUCCESS && count_lines(user_file) == 2, "the same lines again");
  CHECK(wsgemm_tuning_import(NULL, NULL, &n_lines) == WSGEMM_INVALID_POINTER, "NULL");
  CHECK(wsgemm_tuning_import("nonsense\n", NULL, &n_lines) == WSGEMM_INVALID_VALUE && n_lines == 0, "%d lines of nonsense",
        n_lines);
  CHECK(wsgemm_tuning_import("x crc=8cdc1683\n", NULL, &n_lines) == WSGEMM_INVALID_VALUE && n_lines == 0,
        "%d lines of another version's", n_lines);
  CHECK(wsgemm_tuning_import("", NULL, &n_lines) == WSGEMM_SUCCESS && n_lines == 0 && count_lines(user_file) == 2,
        "an empty text");
  CHECK(wsgemm_tuning_import(lines, inner, &n_lines) == WSGEMM_FILE_ERROR, "into a folder");
  CHECK(wsgemm_tuning_clear(inner) == WSGEMM_FILE_ERROR && wsgemm_tuning_clear(path) == WSGEMM_SUCCESS, "%s",
        wsgemm_last_error());
  CHECK(count_lines(path) == 0 && explained_is(NULL, &d, "chosen_by", "tuning file"), "emptying one file changed another");
  CHECK(wsgemm_tuning_clear(user_file) == WSGEMM_SUCCESS && !explained_is(NULL, &d, "chosen_by", "tuning file"),
        "the user's, by its name");
  CHECK(wsgemm_tuning_clear(folder_path(path, folder, "nowhere")) == WSGEMM_SUCCESS, "a file that was not there");
}
static void import_and_clear(void) { in_child("import", import_child, NULL); }

static void closed_lock_child(void *unused) {
  char path[PATH_BYTES], below[PATH_BYTES];
  (void)unused;
  REQUIRE(mkdir(folder_path(below, folder, "closed"), 0755) == 0, "mkdir");
  file_write(folder_path(path, folder, "shared"), "", 0), file_write(folder_path(below, folder, "closed/file"), "", 0);
  CHECK(wsgemm_tuning_clear(path) == WSGEMM_SUCCESS && wsgemm_tuning_clear(below) == WSGEMM_SUCCESS, "%s", wsgemm_last_error());
  CHECK(chmod(folder, 0777) == 0 && chmod(path, 0666) == 0, "chmod");
  strcat(path, ".lock"), strcat(below, ".lock");
  CHECK(chmod(path, 0) == 0 && unlink(below) == 0 && chmod(folder_path(below, folder, "closed"), 0555) == 0, "chmod");
  if (process_become_ordinary()) {
    CHECK(wsgemm_tuning_clear(folder_path(path, folder, "shared")) == WSGEMM_FILE_ERROR &&
              strstr(wsgemm_last_error(), "shared.lock may not be opened"),
          "%s", wsgemm_last_error());
    CHECK(wsgemm_tuning_clear(folder_path(below, folder, "closed/file")) == WSGEMM_FILE_ERROR &&
              strstr(wsgemm_last_error(), "closed/file: "),
          "a folder that is closed: %s", wsgemm_last_error());
  }
  /* for the one who removes it, if that is not root */
  (void)!chmod(folder_path(below, folder, "closed"), 0755);
}
/* It is the lock that another user has to give away, not the file. */
static void closed_lock(void) { in_child("a lock that may not be opened", closed_lock_child, NULL); }

/* ---- together -------------------------------------------------------------------------------- */

enum { N_PROCESSES = 3, N_EACH = 4 };

static void two_processes(void) {
  pid_t children[N_PROCESSES];
  folder_make(folder);
  folder_path(user_file, folder, "tuning");
  setenv("WSGEMM_TUNE", user_file, 1);
  fflush(NULL);
  for (int p = 0; p < N_PROCESSES; p++) {
    children[p] = fork();
    REQUIRE(children[p] >= 0, "fork");
    if (children[p] > 0) continue;
    bool ok = true;
    for (int i = 0; i < N_EACH; i++) {
      const wsgemm_gemm_desc d = product(WSGEMM_F32, 90 + N_PROCESSES * i + p);
      const wsgemm_autotune_options options = quick(NULL);
      ok = wsgemm_autotune(NULL, &d, &options) == WSGEMM_SUCCESS && ok;
    }
    _exit(!ok);
  }
  for (int p = 0; p < N_PROCESSES; p++) {
    int status = -1;
    CHECK(waitpid(children[p], &status, 0) == children[p] && status == 0, "process %d: %#x", p, (unsigned)status);
  }
  CHECK(count_lines(user_file) == N_PROCESSES * N_EACH, "%d lines of %d", count_lines(user_file), N_PROCESSES * N_EACH);
  folder_remove(folder);
}

static atomic_bool is_over;

static void *tune_on(void *unused) {
  for (int turn = 0; !atomic_load(&is_over); turn = (turn + 1) % 20) {
    const wsgemm_gemm_desc d = product(WSGEMM_F32, 80 + turn);
    wsgemm_autotune_options options = quick(NULL);
    options.budget_ms = 1;
    CHECK(wsgemm_autotune(NULL, &d, &options) == WSGEMM_SUCCESS, "%s", wsgemm_last_error());
  }
  return unused;
}

static void forked_child(void *unused) {
  (void)unused;
  wsgemm_autotune_result result;
  const wsgemm_gemm_desc d = product(WSGEMM_F32, 200);
  CHECK(tune(NULL, &d, NULL, &result) == WSGEMM_SUCCESS, "%s", wsgemm_last_error());
  check_result(&result);
}

static void fork_child(void *unused) {
  pthread_t thread;
  REQUIRE(pthread_create(&thread, NULL, tune_on, unused) == 0, "thread");
  for (int turn = 0; turn < (check_scale() > 1 ? 4 : 30); turn++) {
    usleep(2000);
    check_in_child("a fork beside tuning", forked_child, NULL);
  }
  atomic_store(&is_over, true);
  pthread_join(thread, NULL);
  forked_child(NULL);
}
static void fork_beside_tuning(void) {
  if (process_may_fork_beside_threads())
    in_child("fork", fork_child, NULL);
  else
    check_skip("a sanitizer's allocator does not stand forks beside threads");
}

static const struct check_case cases[] = {{"types_and_ops", types_and_ops},
                                          {"results_and_steps", results_and_steps},
                                          {"refused", refused},
                                          {"container", container},
                                          {"no_file", no_file},
                                          {"where_it_is_kept", where_it_is_kept},
                                          {"warnings", warnings},
                                          {"texts", texts},
                                          {"import_and_clear", import_and_clear},
                                          {"closed_lock", closed_lock},
                                          {"forced", forced},
                                          {"two_processes", two_processes},
                                          {"fork_beside_tuning", fork_beside_tuning}};
CHECK_MAIN("tuning_api", cases)
