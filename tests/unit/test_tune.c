/* test_tune.c - the look-up of what was tuned: which source goes first, how near a shape must be,
 * which entries are never meant; and that the tables can be read while they change. What becomes of
 * a product by it is test_tuned.c's.
 *
 * The library reads its file on its first call, so every case runs in forked children. Entries of
 * the library's own table are added here, by --wrap of the function that reads it (CMakeLists.txt).
 * Most of it is asked of a device that does not exist, in a slot of its own. */
#define _GNU_SOURCE
#include "support/folder.h"
#include "support/process.h"
#include "support/rows.h"
#include "support/tuning_case.h"

#include <malloc.h>
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

static ws_tuning_list more_of_table;
static int n_table_reads;

bool __real_ws_tuned_read(const ws_tuning_device *device, ws_tuning_list *list);
bool __wrap_ws_tuned_read(const ws_tuning_device *device, ws_tuning_list *list);
bool __wrap_ws_tuned_read(const ws_tuning_device *device, ws_tuning_list *list) {
  bool ok = __real_ws_tuned_read(device, list);
  n_table_reads++;
  for (int i = 0; i < more_of_table.n; i++) ok = ws_tuning_list_put(list, &more_of_table.entry[i]) && ok;
  return ok;
}

/* Memory of the library's and of this suite's: bytes that were taken and not given back. */
static bool is_memory_gone;
static atomic_llong n_bytes_held;

static void *counted(void *memory) {
  atomic_fetch_add(&n_bytes_held, (long long)malloc_usable_size(memory));
  return memory;
}

void *__real_malloc(size_t bytes);
void *__real_calloc(size_t n, size_t bytes);
void *__real_realloc(void *memory, size_t bytes);
void __real_free(void *memory);
void *__wrap_malloc(size_t bytes);
void *__wrap_calloc(size_t n, size_t bytes);
void *__wrap_realloc(void *memory, size_t bytes);
void __wrap_free(void *memory);

void *__wrap_malloc(size_t bytes) { return counted(__real_malloc(bytes)); }
void *__wrap_calloc(size_t n, size_t bytes) { return is_memory_gone ? NULL : counted(__real_calloc(n, bytes)); }
void *__wrap_realloc(void *memory, size_t bytes) {
  atomic_fetch_sub(&n_bytes_held, (long long)malloc_usable_size(memory));
  return counted(__real_realloc(memory, bytes));
}
void __wrap_free(void *memory) {
  atomic_fetch_sub(&n_bytes_held, (long long)malloc_usable_size(memory));
  __real_free(memory);
}

enum { SLOT = 5, OTHER_SLOT = 6 };

/* What the children of a case share with their parent. */
static struct scene {
  char folder[PATH_BYTES], path[PATH_BYTES];
  ws_tuning_entry of_cpu; /* of the product of large(), on this machine */
} * scene;

static void put_into(ws_tuning_list *list, ws_tuning_entry e) { REQUIRE(ws_tuning_list_put(list, &e), "memory"); }

static void write_file(const ws_tuning_list *list) {
  size_t n_bytes;
  char *text = tuning_text(list, &n_bytes);
  file_write(scene->path, text, n_bytes);
  free(text);
}

static void write_one(ws_tuning_entry e) {
  const ws_tuning_list list = {.entry = &e, .n = 1, .most = 1};
  write_file(&list);
}

/* The first call of a child, with this file ("off": none). */
static void start(const char *file) {
  setenv("WSGEMM_TUNE", file, 1);
  ws_start();
  const ws_tuning_entry e = tuning_plain(1, 1, 1, 1);
  ws_tuning_device other = e.device;
  other.name[0] = 'T';
  ws_tune_set_device(SLOT, &e.device);
  ws_tune_set_device(OTHER_SLOT, &other);
}

static ws_tuned find(int slot, ws_tuning_entry e) { return ws_tune_find(slot, &e.kind, &e.shape); }

/* What is found in SLOT for a product m x n x k: an entry of this mark, or (0) none. */
static void expect(int64_t m, int64_t n, int64_t k, int mark, ws_tuned_by by, const char *what) {
  const ws_tuned found = find(SLOT, tuning_plain(m, n, k, 0));
  CHECK(found.tuning.mc == mark && found.by == by, "%s: %lld x %lld x %lld: mark %d by %s instead of %d by %s", what,
        (long long)m, (long long)n, (long long)k, found.tuning.mc, ws_tuned_by_name(found.by), mark, ws_tuned_by_name(by));
}

static void in_scene(void (*body)(void *)) {
  scene = mmap(NULL, sizeof *scene, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  REQUIRE(scene != MAP_FAILED, "shared memory");
  folder_make(scene->folder);
  folder_path(scene->path, scene->folder, "tuning");
  check_in_child("the case", body, NULL);
  folder_remove(scene->folder);
  munmap(scene, sizeof *scene);
}

/* ---- the CPU of this machine ----------------------------------------------------------------- */

static wsgemm_gemm_desc large(void) {
  return gemm_desc(WSGEMM_F32, WSGEMM_COL_MAJOR, WSGEMM_NO_TRANS, WSGEMM_NO_TRANS, 300, 280, 260);
}

static wsgemm_handle *handle_for(int n_threads) {
  wsgemm_handle *h = NULL;
  REQUIRE(wsgemm_create(&h) == WSGEMM_SUCCESS && wsgemm_set_num_threads(h, n_threads) == WSGEMM_SUCCESS, "handle");
  return h;
}

static void learn_child(void *unused) {
  (void)unused;
  const wsgemm_gemm_desc d = large();
  const ws_tuning tuning = {.policy = WSGEMM_POLICY_FIXED_WORK, .path = WS_TUNING_PACKED, .coarse = 3, .threads = 3};
  start("off");
  wsgemm_handle *h = handle_for(4);
  scene->of_cpu = tuning_for(h, &d, &tuning);
  CHECK(explained_is(h, &d, "chosen_by", "model"), "something is tuned without a file");
  wsgemm_destroy(h);
}

/* ---- order ----------------------------------------------------------------------------------- */

static void file_first_child(void *unused) {
  (void)unused;
  ws_tuning_list list = {0};
  put_into(&more_of_table, tuning_plain(100, 100, 100, 20)), put_into(&more_of_table, tuning_plain(500, 500, 500, 21));
  put_into(&more_of_table, tuning_plain(1000, 1000, 1000, 22));
  put_into(&list, tuning_plain(100, 100, 100, 10)), put_into(&list, tuning_plain(550, 500, 500, 11));
  write_file(&list);
  ws_tuning_list_free(&list);
  start(scene->path);
  CHECK(strcmp(ws_tune_path(), scene->path) == 0 && ws_tune_has_table(SLOT), "path %s", ws_tune_path());
  expect(100, 100, 100, 10, WS_TUNED_BY_USER, "both know it");
  expect(500, 500, 500, 11, WS_TUNED_BY_USER, "the table knows it better");
  expect(1000, 1000, 1000, 22, WS_TUNED_BY_TABLE, "the table alone knows it");
  expect(5000, 5000, 5000, 0, WS_TUNED_BY_MODEL, "nobody knows it");
  const ws_tuned found = find(OTHER_SLOT, tuning_plain(100, 100, 100, 0));
  CHECK(found.tuning.mc == 20 && found.by == WS_TUNED_BY_TABLE, "a device of another name: mark %d", found.tuning.mc);
  const ws_tuning_entry mine = tuning_plain(100, 100, 100, 30);
  CHECK(ws_tune_put(&mine), "memory");
  expect(100, 100, 100, 30, WS_TUNED_BY_USER, "found in this process after the file was read");
}

/* The library's first call would be the slower for it. */
static void read_late_child(void *unused) {
  (void)unused;
  put_into(&more_of_table, tuning_plain(100, 100, 100, 20));
  file_write(scene->path, "", 0);
  start(scene->path);
  CHECK(n_table_reads == 0, "the table is read before it is asked");
  for (int i = 0; i < 3; i++) {
    expect(100, 100, 100, 20, WS_TUNED_BY_TABLE, "asked");
    CHECK(n_table_reads == 1, "read %d times", n_table_reads);
  }
  CHECK(ws_tune_has_table(OTHER_SLOT) && n_table_reads == 2, "asked for another device: read %d times", n_table_reads);
}

static void off_child(void *unused) {
  (void)unused;
  put_into(&more_of_table, tuning_plain(100, 100, 100, 20));
  start("off");
  CHECK(ws_tune_path()[0] == '\0' && !ws_tune_has_table(SLOT), "off, and there is a table");
  expect(100, 100, 100, 0, WS_TUNED_BY_MODEL, "off");
  ws_tune_reload();
  expect(100, 100, 100, 0, WS_TUNED_BY_MODEL, "off, and read again");
  const ws_tuning_entry mine = tuning_plain(100, 100, 100, 30);
  CHECK(ws_tune_put(&mine), "memory");
  expect(100, 100, 100, 30, WS_TUNED_BY_USER, "off, but found in this process");
}

/* What calls take: `by` says from where; what the handle forces it forces whoever has chosen the
 * rest. */
static void check_sources(const char *by, const char *policy, int coarse) {
  const wsgemm_gemm_desc d = large();
  wsgemm_handle *h = handle_for(4);
  const bool is_tuned = strcmp(by, "model") != 0;
  CHECK(explained_is(h, &d, "chosen_by", by), "not chosen by %s", by);
  if (policy) CHECK(explained_is(h, &d, "policy", policy), "policy %s is not taken", policy);
  if (coarse) CHECK(explained_number(h, &d, "coarse_factor", 0) == coarse, "COARSE_FACTOR %d is not taken", coarse);
  if (is_tuned) CHECK(explained_number(h, &d, "threads", 0) == 3 && explained_is(h, &d, "path", "packed"), "not as tuned");
  CHECK(wsgemm_set_policy(h, WSGEMM_POLICY_FIXED_BLOCKS) == WSGEMM_SUCCESS && wsgemm_set_coarse_factor(h, 7) == WSGEMM_SUCCESS,
        "settings");
  CHECK(explained_is(h, &d, "policy", "fixed_blocks") && explained_number(h, &d, "coarse_factor", 0) == 7,
        "what the handle forces is not taken");
  if (is_tuned) CHECK(explained_number(h, &d, "threads", 0) == 3, "the rest is not as tuned");
  CHECK(wsgemm_set_kernel(h, "sgemm_ref_8x6") == WSGEMM_SUCCESS, "%s", wsgemm_last_error());
  if (strcmp(scene->of_cpu.row, "sgemm_ref_8x6") != 0)
    CHECK(explained_is(h, &d, "chosen_by", "model"), "what was tuned for another kernel is taken");
  wsgemm_destroy(h);
}

struct source {
  bool in_file, in_table;
  const char *variable, *value, *by, *policy;
  int coarse;
};

static void source_child(void *argument) {
  const struct source *source = argument;
  ws_tuning_entry of_table = scene->of_cpu;
  of_table.tuning.coarse = 5, of_table.tuning.policy = WSGEMM_POLICY_FIXED_BLOCKS;
  if (source->in_table) put_into(&more_of_table, of_table);
  file_write(scene->path, "", 0);
  if (source->in_file) write_one(scene->of_cpu);
  if (source->variable) setenv(source->variable, source->value, 1);
  start(scene->path);
  check_sources(source->by, source->policy, source->coarse);
}

static void order_in_scene(void *unused) {
  (void)unused;
  static const struct source sources[] = {
      {false, false, NULL, NULL, "model", NULL, 0},
      {true, false, NULL, NULL, "tuning file", "fixed_work", 3},
      {false, true, NULL, NULL, "tuning table", "fixed_blocks", 5},
      {true, true, NULL, NULL, "tuning file", "fixed_work", 3},
      {true, true, "WSGEMM_POLICY", "steal", "tuning file", "steal", 3},
      {false, true, "WSGEMM_COARSE_FACTOR", "9", "tuning table", "fixed_blocks", 9},
  };
  check_in_child("learning", learn_child, NULL);
  check_in_child("file before table", file_first_child, NULL);
  check_in_child("read late", read_late_child, NULL);
  check_in_child("off", off_child, NULL);
  for (size_t i = 0; i < sizeof sources / sizeof sources[0]; i++) {
    struct source source = sources[i];
    check_in_child(source.by, source_child, &source);
  }
}
static void order(void) { in_scene(order_in_scene); }

/* The library's own table: whole, of this version, and each line is read for its device and
 * architecture, whatever the device's name. */
static void shipped_child(void *unused) {
  (void)unused;
  ws_text t = {NULL, 0, 0};
  ws_tuning_list all = {0};
  ws_tuned_write(&t);
  char *text = malloc(t.length + 1);
  REQUIRE(text != NULL, "memory");
  t = (ws_text){text, t.length + 1, 0};
  ws_tuned_write(&t);
  CHECK(strncmp(text, WS_TUNING_HEADER, strlen(WS_TUNING_HEADER)) == 0, "no header");
  CHECK(ws_tuning_list_read(&all, text, t.length) && all.n_bad == 0, "%d bad lines", all.n_bad);
  int n_lines = 0;
  for (const char *c = strchr(text, '\n'); c; c = strchr(c + 1, '\n')) n_lines++;
  CHECK(all.n == n_lines - 1, "%d lines of %d products", n_lines - 1, all.n);
  for (int i = 0; i < all.n; i += 1 + all.n / 50) {
    ws_tuning_list of_device = {0};
    ws_tuning_device device = all.entry[i].device;
    CHECK(strcmp(all.entry[i].version, wsgemm_version_string()) == 0, "line %d is of version %s", i, all.entry[i].version);
    device.name[0] = 'x';
    CHECK(ws_tuned_read(&device, &of_device) && of_device.n_bad == 0 && tuning_in(&of_device, &all.entry[i]), "line %d", i);
    ws_tuning_list_free(&of_device);
    device.units++;
    CHECK(ws_tuned_read(&device, &of_device) && (tuning_in(&of_device, &all.entry[i]) != NULL) == !device.is_gpu,
          "line %d for a larger device", i);
    ws_tuning_list_free(&of_device);
  }
  ws_tuning_list_free(&all);
  free(text);
}
static void shipped(void) { check_in_child("the table", shipped_child, NULL); }

/* ---- nearest --------------------------------------------------------------------------------- */

static double distance(const ws_tuning_shape *x, const ws_tuning_shape *y) {
  const double m = log2((double)x->m / (double)y->m), n = log2((double)x->n / (double)y->n);
  const double k = log2((double)x->k / (double)y->k), batch = log2((double)x->batch / (double)y->batch);
  return sqrt(m * m + n * n + k * k + batch * batch);
}

/* The reach is 1.4 in all: half an octave. */
static void edges_child(void *unused) {
  (void)unused;
  static const struct {
    int m, n, k, batch;
    bool is_near;
  } edges[] = {{1000, 1000, 1000, 100, true},  {1414, 1000, 1000, 100, true},  {1415, 1000, 1000, 100, false},
               {708, 1000, 1000, 100, true},   {707, 1000, 1000, 100, false},  {1000, 1414, 1000, 100, true},
               {1000, 1415, 1000, 100, false}, {1000, 707, 1000, 100, false},  {1000, 1000, 1414, 100, true},
               {1000, 1000, 1415, 100, false}, {1000, 1000, 707, 100, false},  {1000, 1000, 1000, 141, true},
               {1000, 1000, 1000, 142, false}, {1000, 1000, 1000, 71, true},   {1000, 1000, 1000, 70, false},
               {1250, 1250, 1000, 100, true},  {1300, 1300, 1000, 100, false}, {1180, 1180, 1180, 118, true},
               {1200, 1200, 1200, 120, false}, {2000, 1000, 1000, 100, false}, {1, 1, 1, 1, false}};
  ws_tuning_entry e = tuning_plain(1000, 1000, 1000, 9);
  e.shape.batch = 100;
  start("off");
  CHECK(ws_tune_put(&e), "memory");
  for (size_t i = 0; i < sizeof edges / sizeof edges[0]; i++) {
    e.shape = (ws_tuning_shape){edges[i].m, edges[i].n, edges[i].k, edges[i].batch};
    CHECK((find(SLOT, e).by == WS_TUNED_BY_USER) == edges[i].is_near, "%d x %d x %d, batch %d is %s", edges[i].m, edges[i].n,
          edges[i].k, edges[i].batch, edges[i].is_near ? "not reached" : "reached");
  }
}

/* Lines of GPUs: a neighbour has whole lines of 128 bytes in memory just where the product has
 * them; the shape itself is found whatever its lines. CPUs do not look at it, nor do slices, which
 * are copies. */
static void memory_lines_child(void *unused) {
  (void)unused;
  static const struct {
    ws_numerics numerics;
    int64_t m, k;
    /* is_near: serves 1000 x 1000 x 1000, whose columns have 4000 bytes */
    bool a_trans, is_gpu, is_near;
  } lines[] = {{WS_NUMERICS_WGMMA, 1024, 1000, false, true, true},  {WS_NUMERICS_WGMMA, 1024, 1024, false, true, false},
               {WS_NUMERICS_WGMMA, 1008, 1008, false, true, true},  {WS_NUMERICS_WGMMA, 1001, 1024, true, true, false},
               {WS_NUMERICS_WGMMA, 1024, 1001, false, true, false}, {WS_NUMERICS_WGMMA, 1001, 1000, false, true, true},
               {WS_NUMERICS_CHAIN, 1024, 1024, false, true, false}, {WS_NUMERICS_CHAIN, 1024, 1001, false, true, true},
               {WS_NUMERICS_F16X3, 1024, 1024, false, true, true},  {WS_NUMERICS_CHAIN, 1024, 1024, false, false, true}};
  start("off");
  for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
    ws_tuning_entry e = tuning_plain(lines[i].m, 1000, lines[i].k, (int)i + 1);
    e.kind.numerics = lines[i].numerics, e.kind.a_trans = lines[i].a_trans, e.kind.workers = lines[i].is_gpu ? 0 : 3;
    CHECK(ws_tune_put(&e), "memory");
    const ws_tuning_shape own = e.shape, other = {1000, 1000, 1000, 1};
    for (int has_partial = 0; has_partial < 2; has_partial++) { /* as with an ld of its own */
      e.kind.partial_lines = has_partial;
      const ws_tuned found = ws_tune_find(SLOT, &e.kind, &own);
      CHECK(found.by == WS_TUNED_BY_USER && found.is_exact && found.tuning.mc == (int)i + 1, "line %d: its own shape", (int)i);
    }
    e.kind.partial_lines = ws_tuning_has_partial_lines(&e.kind, 1000, 1000);
    CHECK(e.kind.partial_lines == (lines[i].is_gpu && lines[i].numerics != WS_NUMERICS_F16X3), "line %d", (int)i);
    e.shape = other;
    const ws_tuned found = find(SLOT, e);
    CHECK((found.by == WS_TUNED_BY_USER) == lines[i].is_near && !found.is_exact, "line %d is %s", (int)i,
          lines[i].is_near ? "not found" : "found");
    ws_tune_forget();
  }
}

/* Against a search through all of them, in doubles. */
static void nearest_child(void *unused) {
  (void)unused;
  enum { N = 150 };
  struct check_random rng = check_random_from(320);
  static ws_tuning_entry entries[N];
  int n_near = 0, n_far = 0;
  start("off");
  for (int i = 0; i < N; i++) {
    entries[i] =
        tuning_plain(check_random_in(&rng, 50, 400), check_random_in(&rng, 50, 200), check_random_in(&rng, 50, 200), i + 1);
    entries[i].shape.batch = check_random_in(&rng, 1, 2);
    CHECK(ws_tune_put(&entries[i]), "memory");
  }
  for (int turn = 0; turn < 20000 / check_scale(); turn++) {
    ws_tuning_entry e =
        tuning_plain(check_random_in(&rng, 40, 500), check_random_in(&rng, 40, 250), check_random_in(&rng, 40, 250), 0);
    e.shape.batch = check_random_in(&rng, 1, 3);
    double least = HUGE_VAL;
    for (int i = 0; i < N; i++) least = fmin(least, distance(&entries[i].shape, &e.shape));
    const ws_tuned found = find(SLOT, e);
    if (fabs(least - 0.5) < 1e-5) continue;
    if (least > 0.5) {
      CHECK(found.by == WS_TUNED_BY_MODEL && memcmp(&found.tuning, &ws_tuning_of_model, sizeof found.tuning) == 0,
            "found %d, %g away", found.tuning.mc, least);
      n_far++;
      continue;
    }
    const int at = found.tuning.mc;
    CHECK(found.by == WS_TUNED_BY_USER && at >= 1 && distance(&entries[at - 1].shape, &e.shape) < least + 1e-5,
          "found %d, but the nearest is %g away", at, least);
    n_near++;
  }
  CHECK(n_near > 100 && n_far > 100, "%d near and %d far", n_near, n_far);
  const ws_tuning_entry below = tuning_plain(8000, 8000, 8000, 1001), above = tuning_plain(12500, 8000, 8000, 1002);
  CHECK(ws_tune_put(&below) && ws_tune_put(&above), "memory");
  /* just between them */
  const int first = find(SLOT, tuning_plain(10000, 8000, 8000, 0)).tuning.mc;
  CHECK(first == 1001 || first == 1002, "of two as near: %d", first);
  for (int i = 0; i < 10; i++) CHECK(find(SLOT, tuning_plain(10000, 8000, 8000, 0)).tuning.mc == first, "now this, now that");
}

static void nearest_in_scene(void *unused) {
  (void)unused;
  check_in_child("edges", edges_child, NULL);
  check_in_child("memory lines", memory_lines_child, NULL);
  check_in_child("many", nearest_child, NULL);
}
static void nearest(void) { in_scene(nearest_in_scene); }

/* Just this shape, however large: then tuned figures need no second look. */
static void exact_child(void *unused) {
  (void)unused;
  static const int64_t sizes[] = {64, 1000, 4097, 1000001, (1 << 25) + 1, (INT64_C(1) << 40) + 1};
  start("off");
  for (int i = 0; i < 6; i++) {
    const ws_tuning_entry e = tuning_plain(sizes[i], sizes[i], 77, 1 + i),
                          next = tuning_plain(sizes[i] + 1, sizes[i], 77, 100 + i);
    CHECK(ws_tune_put(&e), "memory");
    ws_tuned found = find(SLOT, e);
    CHECK(found.is_exact && found.tuning.mc == 1 + i, "%lld is not exact", (long long)sizes[i]);
    found = find(SLOT, next);
    CHECK(!found.is_exact && found.tuning.mc == 1 + i, "%lld is said to be just %lld", (long long)next.shape.m,
          (long long)sizes[i]);
    CHECK(!find(SLOT, tuning_plain(sizes[i], sizes[i] - 1, 77, 0)).is_exact &&
              !find(SLOT, tuning_plain(sizes[i], sizes[i], 78, 0)).is_exact,
          "exact");
    CHECK(ws_tune_put(&next), "memory");
    CHECK(find(SLOT, e).tuning.mc == 1 + i && find(SLOT, next).tuning.mc == 100 + i, "%lld and the next are mixed up",
          (long long)sizes[i]);
  }
}
static void exact(void) { in_scene(exact_child); }

/* ---- never meant ----------------------------------------------------------------------------- */

static void kinds_child(void *unused) {
  (void)unused;
  const ws_tuning_entry e = tuning_plain(100, 100, 100, 9);
  put_into(&more_of_table, tuning_plain(300, 300, 300, 8));
  start(scene->path);
  CHECK(ws_tune_put(&e), "memory");
  CHECK(find(SLOT, e).by == WS_TUNED_BY_USER, "itself is not found");
#define CHANGED(member, value)                                                  \
  do {                                                                          \
    ws_tuning_entry x = e;                                                      \
    x.kind.member = (value);                                                    \
    CHECK(find(SLOT, x).by == WS_TUNED_BY_MODEL, "found for another " #member); \
  } while (0)
  for (int other = 0; other < WS_N_TYPES; other++) {
    if (other != WSGEMM_F32) CHANGED(type, (wsgemm_type)other);
    if (other != WSGEMM_F32) CHANGED(type_c, (wsgemm_type)other);
  }
  for (int other = 0; other < WS_N_NUMERICS; other++)
    if (other != WS_NUMERICS_CHAIN) CHANGED(numerics, (ws_numerics)other);
  CHANGED(a_trans, true);
  CHANGED(b_trans, true);
  CHANGED(single_a, true);
  CHANGED(full_store, true);
  CHANGED(single_b, true);
  CHANGED(workers, 1);
  CHANGED(workers, 3);
  CHANGED(workers, 0);
  for (int routine = WSGEMM_SYMM; routine <= WSGEMM_TRSM; routine++) CHANGED(routine, (uint8_t)routine);
  CHANGED(is_right, true);
  CHANGED(is_upper, true);
  CHANGED(in_place, true);
#undef CHANGED
  /* Near in shape, but of another device, version or kernel: put, and never served. */
  ws_tuning_entry others[6];
  for (int i = 0; i < 6; i++) others[i] = tuning_plain(1000, 1000, 1000, 50 + i);
  others[0].device.name[0] = 'x', others[1].device.arch[0] = 'x', others[2].device.units++;
  memcpy(others[3].version, "0.0.0", sizeof "0.0.0");
  memcpy(others[4].row, "sgemm_gone_3x3", sizeof "sgemm_gone_3x3");
  memcpy(others[5].row, "dgemm_ref_4x6", sizeof "dgemm_ref_4x6");
  for (int i = 0; i < 6; i++) CHECK(ws_tune_put(&others[i]), "memory");
  expect(1000, 1000, 1000, 0, WS_TUNED_BY_MODEL, "other devices");
  CHECK(find(OTHER_SLOT, e).by == WS_TUNED_BY_MODEL, "found for a device of another name");
  CHECK(find(WS_TUNE_CPU, e).by == WS_TUNED_BY_MODEL, "found for the CPU");
  expect(300, 300, 300, 8, WS_TUNED_BY_TABLE, "the table");
  ws_tuning_device device;
  CHECK(ws_tune_device(SLOT, &device) && strcmp(device.name, "test device") == 0, "the slot's device");
  CHECK(!ws_tune_device(SLOT + 2, &device), "a device that was never set");
}
static void kinds(void) { in_scene(kinds_child); }

/* ---- warnings -------------------------------------------------------------------------------- */

/* Kernels of other builds: one warning, and none for those of other versions. */
static void unknown_rows_child(void *argument) {
  const bool has_unknown = *(const bool *)argument;
  ws_tuning_list list = {0};
  ws_tuning_entry gone = tuning_plain(400, 400, 400, 11), old = tuning_plain(800, 800, 800, 12);
  memcpy(gone.row, "sgemm_gone_3x3", sizeof "sgemm_gone_3x3"), memcpy(old.row, "sgemm_gone_4x4", sizeof "sgemm_gone_4x4");
  memcpy(old.version, "0.0.0", sizeof "0.0.0");
  put_into(&list, tuning_plain(100, 100, 100, 10)), put_into(&list, old);
  if (has_unknown) put_into(&list, gone);
  write_file(&list);
  ws_tuning_list_free(&list);
  start(scene->path);
  CHECK((strstr(wsgemm_last_error(), "1 lines of unknown kernels") != NULL) == has_unknown, "\"%s\"", wsgemm_last_error());
  CHECK(has_unknown || wsgemm_last_error()[0] == '\0', "\"%s\"", wsgemm_last_error());
  expect(100, 100, 100, 10, WS_TUNED_BY_USER, "beside an unknown kernel");
  expect(400, 400, 400, 0, WS_TUNED_BY_MODEL, "an unknown kernel");
  expect(800, 800, 800, 0, WS_TUNED_BY_MODEL, "another version's kernel");
  CHECK(wsgemm_set_policy(NULL, (wsgemm_policy)99) == WSGEMM_INVALID_VALUE, "a bad policy");
  const wsgemm_gemm_desc d = large();
  CHECK(explained_is(NULL, &d, "backend", "cpu") && strstr(wsgemm_last_error(), "tuning") == NULL, "warned again");
}

static void unknown_rows_in_scene(void *unused) {
  (void)unused;
  for (int i = 0; i < 2; i++) {
    bool has_unknown = i;
    check_in_child("kernels of other builds", unknown_rows_child, &has_unknown);
  }
}
static void unknown_rows(void) { in_scene(unknown_rows_in_scene); }

/* ---- changes --------------------------------------------------------------------------------- */

static void reload_child(void *unused) {
  (void)unused;
  ws_tuning_list list = {0};
  const ws_tuning_entry mine = tuning_plain(900, 900, 900, 30), again = tuning_plain(100, 100, 100, 31);
  write_one(tuning_plain(100, 100, 100, 10));
  start(scene->path);
  expect(100, 100, 100, 10, WS_TUNED_BY_USER, "the file");
  CHECK(ws_tune_put(&mine) && ws_tune_put(&again), "memory");
  expect(100, 100, 100, 31, WS_TUNED_BY_USER, "found since");
  put_into(&list, tuning_plain(100, 100, 100, 12)), put_into(&list, tuning_plain(300, 300, 300, 13));
  write_file(&list);
  ws_tuning_list_free(&list);
  expect(300, 300, 300, 0, WS_TUNED_BY_MODEL, "the file is read once");
  ws_tune_reload();
  expect(100, 100, 100, 12, WS_TUNED_BY_USER, "read again: the file's is newer");
  expect(300, 300, 300, 13, WS_TUNED_BY_USER, "read again: another line");
  expect(900, 900, 900, 30, WS_TUNED_BY_USER, "read again: only found in this process");
  CHECK(ws_tune_put(&again), "memory");
  expect(100, 100, 100, 31, WS_TUNED_BY_USER, "found again");
  CHECK(remove(scene->path) == 0, "remove");
  ws_tune_reload();
  expect(300, 300, 300, 0, WS_TUNED_BY_MODEL, "the file is gone");
  expect(900, 900, 900, 30, WS_TUNED_BY_USER, "the file is gone");
}
static void reload(void) { in_scene(reload_child); }

static void forget_child(void *unused) {
  (void)unused;
  const ws_tuning_entry mine = tuning_plain(900, 900, 900, 30), same = tuning_plain(100, 100, 100, 31);
  write_one(tuning_plain(100, 100, 100, 10));
  start(scene->path);
  CHECK(ws_tune_put(&mine) && ws_tune_put(&same), "memory");
  ws_tune_forget();
  expect(900, 900, 900, 0, WS_TUNED_BY_MODEL, "forgotten");
  expect(100, 100, 100, 10, WS_TUNED_BY_USER, "forgotten, but in the file");
  CHECK(remove(scene->path) == 0, "remove");
  ws_tune_forget();
  expect(100, 100, 100, 0, WS_TUNED_BY_MODEL, "nothing is left");
  CHECK(ws_tune_put(&mine), "memory");
  expect(900, 900, 900, 30, WS_TUNED_BY_USER, "found again");
}
static void forget(void) { in_scene(forget_child); }

/* ---- memory ---------------------------------------------------------------------------------- */

static void change_all(int turn) {
  ws_tuning_list list = {0};
  for (int i = 0; i < turn % 60; i++) put_into(&list, tuning_plain(100 + i, 100, 100, 1 + turn));
  write_file(&list);
  ws_tuning_list_free(&list);
  ws_tune_reload();
  ws_tune_reload(); /* of the same file */
  for (int i = 0; i < 10; i++) {
    const ws_tuning_entry e = tuning_plain(500 + i, 100, 100, 1 + turn);
    CHECK(ws_tune_put(&e), "memory");
  }
  if (turn % 7 == 0) ws_tune_forget();
}

/* A process may import and tune for days. */
static void memory_child(void *unused) {
  (void)unused;
  const int n_first = 120, n_more = check_scale() > 1 ? 420 : 4200; /* all ends as at n_first */
  write_one(tuning_plain(100, 100, 100, 1));
  start(scene->path);
  for (int turn = 0; turn < n_first; turn++) change_all(turn);
  const long long n_held = atomic_load(&n_bytes_held);
  for (int turn = n_first; turn < n_first + n_more; turn++) change_all(turn);
  CHECK(n_held > 1000 && atomic_load(&n_bytes_held) <= n_held, "%lld bytes are held after some changes, and %lld after many",
        n_held, atomic_load(&n_bytes_held));
}
static void memory_is_kept(void) { in_scene(memory_child); }

/* ---- readers beside a writer ----------------------------------------------------------------- */

static atomic_bool is_over;
static atomic_llong n_found;

/* Every tuning that is put has mc = nc, so that a torn one would be seen. */
static void *reader_main(void *unused) {
  const wsgemm_gemm_desc d = large();
  for (long long turn = 0; !atomic_load(&is_over); turn++) {
    const ws_tuned found = find(SLOT, tuning_plain(100 + turn % 9, 100, 100, 0));
    CHECK(found.tuning.mc == found.tuning.nc && (found.by == WS_TUNED_BY_MODEL) == (found.tuning.mc == 0), "%d and %d",
          found.tuning.mc, found.tuning.nc);
    if (found.tuning.mc) atomic_fetch_add(&n_found, 1);
    if (turn % 16 == 0) CHECK(explained_number(NULL, &d, "threads", 0) >= 1, "explain");
    const ws_tuned other = find(SLOT + 2 + (int)(turn % 40), tuning_plain(100, 100, 100, 0));
    CHECK(other.tuning.mc == other.tuning.nc, "another slot: %d and %d", other.tuning.mc, other.tuning.nc);
  }
  return unused;
}

static void readers_child(void *unused) {
  (void)unused;
  enum { N_READERS = 3 };
  pthread_t threads[N_READERS];
  write_one(tuning_plain(3000, 3000, 3000, 5));
  start(scene->path);
  const wsgemm_gemm_desc d = large();
  const ws_tuning tuning = {.mc = 64, .nc = 64};
  for (int i = 0; i < N_READERS; i++) REQUIRE(pthread_create(&threads[i], NULL, reader_main, NULL) == 0, "thread");
  for (int turn = 0; turn < 1500 / (check_scale() > 1 ? 3 : 1); turn++) {
    ws_tuning_entry e = tuning_plain(100 + turn % 7, 100, 100, 1 + turn);
    e.tuning.nc = e.tuning.mc;
    CHECK(ws_tune_put(&e), "memory");
    if (turn % 50 == 10) {
      const ws_tuning_entry of_cpu = tuning_for(NULL, &d, &tuning);
      CHECK(ws_tune_put(&of_cpu), "memory");
    }
    if (turn % 100 == 20) ws_tune_reload();
    if (turn % 400 == 30) ws_tune_forget();
    if (turn % 30 == 0 && turn / 30 < 40) ws_tune_set_device(SLOT + 2 + turn / 30, &e.device);
  }
  atomic_store(&is_over, true);
  for (int i = 0; i < N_READERS; i++) pthread_join(threads[i], NULL);
  CHECK(atomic_load(&n_found) > 0, "nothing was ever found");
}
static void readers(void) { in_scene(readers_child); }

enum { N_STAYING = 40, LEAST_N = 1000 };

/* Of an entry that stays: all that it has says whose it is. */
static ws_tuning_entry staying(int i) {
  ws_tuning_entry e = tuning_plain(100, LEAST_N + 3 * i, 100, LEAST_N + 3 * i);
  e.tuning.nc = e.tuning.quantum = e.tuning.mc;
  return e;
}

static void *staying_reader_main(void *unused) {
  for (int turn = 0; !atomic_load(&is_over); turn++) {
    const ws_tuning_entry e = staying(turn % N_STAYING);
    const ws_tuned found = find(SLOT, e);
    CHECK(found.is_exact && found.by == WS_TUNED_BY_USER && found.tuning.mc == e.shape.n && found.tuning.nc == e.shape.n &&
              found.tuning.quantum == e.shape.n && found.tuning.row > 0,
          "of %lld: %d, %d, %d", (long long)e.shape.n, found.tuning.mc, found.tuning.nc, found.tuning.quantum);
    atomic_fetch_add(&n_found, 1);
  }
  return unused;
}

/* Others come before those that stay, and go again, so that all of these move to another place. */
static void moving_child(void *unused) {
  (void)unused;
  enum { N_READERS = 3, N_OTHERS = 60 };
  pthread_t threads[N_READERS];
  ws_tuning_list list = {0};
  for (int i = 0; i < N_STAYING; i++) put_into(&list, staying(i));
  write_file(&list);
  ws_tuning_list_free(&list);
  start(scene->path);
  for (int i = 0; i < N_READERS; i++) REQUIRE(pthread_create(&threads[i], NULL, staying_reader_main, NULL) == 0, "thread");
  for (int turn = 0; turn < 30000 / (check_scale() > 1 ? 30 : 1); turn++) {
    const ws_tuning_entry other = tuning_plain(100, LEAST_N - 1 - turn % N_OTHERS, 100, 1);
    CHECK(ws_tune_put(&other), "memory");
    if (turn % N_OTHERS == N_OTHERS - 1) ws_tune_forget();
  }
  atomic_store(&is_over, true);
  for (int i = 0; i < N_READERS; i++) pthread_join(threads[i], NULL);
  CHECK(atomic_load(&n_found) > 0, "nothing was ever found");
}
static void readers_of_what_moves(void) { in_scene(moving_child); }

/* ---- forks beside a writer ------------------------------------------------------------------- */

static void *writer_main(void *unused) {
  for (int turn = 0; !atomic_load(&is_over); turn++) {
    const ws_tuning_entry e = tuning_plain(100 + turn % 7, 100, 100, 1);
    CHECK(ws_tune_put(&e), "memory");
  }
  return unused;
}

static void put_and_find(void *unused) {
  (void)unused;
  const ws_tuning_entry e = tuning_plain(700, 700, 700, 40);
  CHECK(ws_tune_put(&e), "memory");
  expect(700, 700, 700, 40, WS_TUNED_BY_USER, "a child forked beside a writer");
  ws_tune_reload();
  expect(700, 700, 700, 40, WS_TUNED_BY_USER, "a child forked beside a writer");
}

/* A child that hangs is ended by CTest. */
static void forks_child(void *unused) {
  (void)unused;
  pthread_t thread;
  start(scene->path);
  REQUIRE(pthread_create(&thread, NULL, writer_main, NULL) == 0, "thread");
  for (int turn = 0; turn < (check_scale() > 1 ? 10 : 60); turn++) check_in_child("a fork beside a writer", put_and_find, NULL);
  atomic_store(&is_over, true);
  pthread_join(thread, NULL);
  put_and_find(NULL);
}
static void forked_beside_puts(void) {
  if (process_may_fork_beside_threads())
    in_scene(forks_child);
  else
    check_skip("a sanitizer's allocator does not stand forks beside threads");
}

/* What was in force stays; a table that could not be made is not asked for again and again. */
static void without_memory_child(void *unused) {
  (void)unused;
  const ws_tuning_entry mine = tuning_plain(100, 100, 100, 30);
  put_into(&more_of_table, tuning_plain(1000, 1000, 1000, 20));
  write_one(tuning_plain(100, 100, 100, 10));
  start(scene->path);
  is_memory_gone = true;
  expect(1000, 1000, 1000, 0, WS_TUNED_BY_MODEL, "no memory for the table");
  CHECK(!ws_tune_put(&mine), "put without memory");
  is_memory_gone = false;
  expect(100, 100, 100, 10, WS_TUNED_BY_USER, "put without memory");
  expect(1000, 1000, 1000, 0, WS_TUNED_BY_MODEL, "memory came too late for the table");
  CHECK(ws_tune_put(&mine) && n_table_reads == 1, "%d reads", n_table_reads);
  expect(100, 100, 100, 30, WS_TUNED_BY_USER, "put with memory");
}

static void without_memory_in_scene(void *unused) {
  (void)unused;
  check_in_child("without memory", without_memory_child, NULL);
}
static void without_memory(void) { in_scene(without_memory_in_scene); }

static const struct check_case cases[] = {{"order", order},
                                          {"shipped", shipped},
                                          {"nearest", nearest},
                                          {"exact", exact},
                                          {"kinds", kinds},
                                          {"unknown_rows", unknown_rows},
                                          {"reload", reload},
                                          {"forget", forget},
                                          {"memory_is_kept", memory_is_kept},
                                          {"readers", readers},
                                          {"readers_of_what_moves", readers_of_what_moves},
                                          {"forked_beside_puts", forked_beside_puts},
                                          {"without_memory", without_memory}};
CHECK_MAIN("tune", cases)
