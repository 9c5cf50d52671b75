/* lookup.c - what tuning has found, as a call looks it up: in the user's file and in what this
 * process itself has found, else in the table that comes with the library.
 *
 * A look-up takes no lock, and copies what it finds. Every table exists twice: a change is written
 * into the copy that is not in force, which a slow look-up may still be reading; a look-up
 * therefore reads the count of changes before and after, and starts again if there was one. So no
 * memory is freed under a reader, and a process that tunes for days holds no more than its largest
 * tables. The library's own table is parsed on the first question to it. Entries of one kind and
 * one octave of m are together, in order of n, so that a look-up touches few that are not within
 * reach. */
#define _GNU_SOURCE
#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/backend.h"
#include "core/status.h"
#include "tune/tuning.h"

/* OCTAVE: of the logarithms of m, n, k, batch, whose largest is 63 of them. REACH: the distance of
 * shapes up to which an entry serves. OTHER_LINES: what partial lines add to the logarithm of
 * batch, so that no entry serves the others' neighbours. */
enum { OCTAVE = 1 << 24, REACH = OCTAVE / 2, OTHER_LINES = 64 * OCTAVE };

/* ---- tables ---------------------------------------------------------------------------------- */

/* Logarithms to the base 2, in parts of an octave; too coarse to tell large shapes apart. Integers,
 * as gcc takes atomic floats through a general register (look-ups among 3000 shapes: 290 ns instead
 * of 230). */
typedef struct shape_log {
  int32_t m, n, k, batch;
} shape_log;

/* Members of a table, which a look-up may read while a change writes them. The acquire of GET has
 * its partner in the release of SET: a look-up that has read something of a later table then also
 * reads the later count of changes. */
#define GET(member) atomic_load_explicit(&(member), memory_order_acquire)
#define SET(member, value) atomic_store_explicit(&(member), (value), memory_order_release)

/* Of one kind and one octave of m. */
typedef struct range {
  _Atomic uint64_t key;
  _Atomic int first, n;
} range;

/* Apart from the rest, as a look-up reads those of many shapes. */
typedef struct table_log {
  _Atomic int32_t m, n, k, batch;
} table_log;

typedef struct table_entry {
  _Atomic int64_t m, n, k, batch;
  _Atomic int row;
#define ATOMIC_MEMBER(name, most) _Atomic int name;
  WS_TUNING_PARAMETERS(ATOMIC_MEMBER)
#undef ATOMIC_MEMBER
} table_entry;

typedef struct table {
  /* the one that this took the place of, at most half as large; a look-up may still be reading
   * it */
  struct table *outgrown;
  int most; /* room for so many entries and ranges; never changes */
  _Atomic int n_ranges;
  range *ranges; /* ascending */
  table_log *logs;
  table_entry *entries;
} table;

typedef struct layer {
  _Atomic unsigned n_changes; /* its parity is the index of the table in force */
  _Atomic(table *) tables[2]; /* NULL: nothing */
} layer;

enum { FOUND, SHIPPED, N_LAYERS };

static struct slot {
  ws_tuning_device device;
  _Atomic bool is_known, is_shipped_read;
  layer layers[N_LAYERS];
} slots[WS_N_TUNE_SLOTS];

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char user_path[1024];
static bool is_off;
static ws_tuning_list of_file, of_process; /* with the lock */

/* Of bits in groups: the routine's, the flags', the workers', types and numerics. Below 2^56. */
static uint64_t code_of(const ws_tuning_kind *kind) {
  const unsigned of_routine =
      (unsigned)kind->routine << 3 | (unsigned)kind->is_right << 2 | (unsigned)kind->is_upper << 1 | kind->in_place;
  const unsigned flags = (unsigned)kind->full_store << 4 | (unsigned)kind->a_trans << 3 | (unsigned)kind->b_trans << 2 |
                         (unsigned)kind->single_a << 1 | kind->single_b;
  const unsigned of_types = (unsigned)kind->type << 10 | (unsigned)kind->type_c << 7 | (unsigned)kind->numerics;
  _Static_assert(WS_N_TYPES <= 8 && WS_N_NUMERICS <= 128, "a group for each");
  return (uint64_t)of_routine << 40 | (uint64_t)flags << 32 | (uint64_t)kind->workers << 16 | of_types;
}

static uint64_t key_of(uint64_t kind, int32_t log_m) { return kind << 8 | (uint64_t)(log_m > 0 ? log_m / OCTAVE : 0); }

typedef struct sorted_entry {
  uint64_t key;
  int age; /* the least of those of one shape is in force */
  shape_log log;
  ws_tuning_shape shape;
  ws_tuning tuning;
} sorted_entry;

static int by_key_and_n(const void *a, const void *b) {
  const sorted_entry *x = a, *y = b;
  if (x->key != y->key) return x->key < y->key ? -1 : 1;
  if (x->log.n != y->log.n) return x->log.n < y->log.n ? -1 : 1;
  return (x->age > y->age) - (x->age < y->age);
}

static int32_t octaves(int64_t size) { return (int32_t)(log2f((float)size) * OCTAVE); }

static shape_log log_of(const ws_tuning_shape *s, bool partial_lines) {
  return (shape_log){octaves(s->m), octaves(s->n), octaves(s->k), octaves(s->batch) + (partial_lines ? OTHER_LINES : 0)};
}

bool ws_tuning_has_partial_lines(const ws_tuning_kind *kind, int64_t lda, int64_t ldb) {
  enum {
    LINE_BYTES = 128,
    TMA_BYTES = 16
  }; /* TMA_BYTES: what rows by map want of an ld; other operands are copied, to whole lines */
  const ws_numerics numerics = kind->numerics;
  const bool is_sliced = numerics == WS_NUMERICS_F16X1 || numerics == WS_NUMERICS_F16X3 || numerics == WS_NUMERICS_BF16X6,
             is_by_map = numerics >= WS_NUMERICS_WGMMA && numerics <= WS_NUMERICS_WGMMA_K8;
  const int64_t a = lda * ws_types[kind->type].bytes % LINE_BYTES, b = ldb * ws_types[kind->type].bytes % LINE_BYTES;
  if (kind->workers > 0 || is_sliced) return false;
  return is_by_map ? (a > 0 && a % TMA_BYTES == 0) || (b > 0 && b % TMA_BYTES == 0) : a > 0 || b > 0;
}

static bool has_partial_lines(const ws_tuning_entry *e) {
  const ws_tuning_shape *s = &e->shape;
  return ws_tuning_has_partial_lines(&e->kind, e->kind.a_trans ? s->k : s->m, e->kind.b_trans ? s->n : s->k);
}

/* NULL: not built in. */
static const ws_backend *backend_of(const ws_tuning_entry *e) { return ws_backends[e->device.is_gpu ? WS_CUDA : WS_CPU]; }

static int row_of(const ws_tuning_entry *e) {
  const ws_backend *backend = backend_of(e);
  const int row = backend ? backend->row_find(e->row) : -1;
  return row >= 0 && ws_row_info(backend, row).type == e->kind.type ? row + 1 : 0;
}

/* The table of the library also serves other devices of the same architecture and, of GPUs,
 * size. */
static bool serves(const ws_tuning_entry *e, const ws_tuning_device *device, bool is_shipped) {
  const bool any_size = is_shipped && !device->is_gpu;
  return (any_size || e->device.units == device->units) && strcmp(e->device.arch, device->arch) == 0 &&
         (is_shipped || strcmp(e->device.name, device->name) == 0) && strcmp(e->version, wsgemm_version_string()) == 0;
}

/* Adds to `n` entries those that serve a device; returns how many there are then. */
static int gather(const ws_tuning_list *list, const ws_tuning_device *device, bool is_shipped, sorted_entry *to, int n) {
  for (int i = 0; i < list->n; i++) {
    const ws_tuning_entry *e = &list->entry[i];
    const int row = row_of(e);
    if (row == 0 || !serves(e, device, is_shipped)) continue;
    const shape_log log = log_of(&e->shape, has_partial_lines(e));
    to[n] = (sorted_entry){key_of(code_of(&e->kind), log.m), -n, log, e->shape, e->tuning};
    to[n++].tuning.row = row;
  }
  return n;
}

/* In one piece, so that a look-up with cold caches finds the first ranges with the table. */
static table *new_table(int least) {
  int most = 16;
  while (most < least) most *= 2;
  table *t = calloc(1, sizeof *t + (size_t)most * (sizeof *t->ranges + sizeof *t->logs + sizeof *t->entries));
  if (!t) return NULL;
  t->most = most;
  t->ranges = (range *)(t + 1);
  t->logs = (table_log *)(t->ranges + most);
  t->entries = (table_entry *)(t->logs + most);
  return t;
}

static void set_entry(table *t, int i, const sorted_entry *from) {
  table_log *log = &t->logs[i];
  table_entry *e = &t->entries[i];
  SET(log->m, from->log.m), SET(log->n, from->log.n), SET(log->k, from->log.k), SET(log->batch, from->log.batch);
  SET(e->m, from->shape.m), SET(e->n, from->shape.n), SET(e->k, from->shape.k), SET(e->batch, from->shape.batch);
  SET(e->row, from->tuning.row);
#define SET_PARAMETER(name, most) SET(e->name, from->tuning.name);
  WS_TUNING_PARAMETERS(SET_PARAMETER)
#undef SET_PARAMETER
}

static void fill(table *t, const sorted_entry *sorted, int n) {
  int n_ranges = 0;
  for (int i = 0, first = 0; i < n; i++) {
    set_entry(t, i, &sorted[i]);
    if (i + 1 < n && sorted[i + 1].key == sorted[i].key) continue;
    range *r = &t->ranges[n_ranges++];
    SET(r->key, sorted[i].key), SET(r->first, first), SET(r->n, i + 1 - first);
    first = i + 1;
  }
  SET(t->n_ranges, n_ranges);
}

static table *table_in_force(const layer *l) { return GET(l->tables[GET(l->n_changes) % 2]); }

/* With the lock. false: out of memory, and nothing has changed. */
static bool put_into_force(layer *l, const sorted_entry *sorted, int n) {
  const unsigned n_changes = GET(l->n_changes) + 1;
  table *spare = GET(l->tables[n_changes % 2]);
  if (!spare || spare->most < n) {
    table *larger = new_table(n);
    if (!larger) return false;
    larger->outgrown = spare;
    spare = larger;
  }
  fill(spare, sorted, n);
  SET(l->tables[n_changes % 2], spare);
  SET(l->n_changes, n_changes);
  return true;
}

/* With the lock. Where both lists have a shape, the `later` one's is in force. false: out of
 * memory, and nothing has changed. */
static bool build(struct slot *s, int layer_idx, const ws_tuning_list *earlier, const ws_tuning_list *later) {
  sorted_entry *sorted = malloc((size_t)(earlier->n + later->n + 1) * sizeof *sorted);
  if (!sorted) return false;
  int n = gather(earlier, &s->device, layer_idx == SHIPPED, sorted, 0);
  n = gather(later, &s->device, layer_idx == SHIPPED, sorted, n);
  qsort(sorted, (size_t)n, sizeof *sorted, by_key_and_n);
  layer *l = &s->layers[layer_idx];
  const bool is_needed = n > 0 || table_in_force(l);
  const bool ok = !is_needed || put_into_force(l, sorted, n);
  free(sorted);
  return ok;
}

static bool build_found(void) {
  bool ok = true;
  for (int i = 0; i < WS_N_TUNE_SLOTS; i++)
    if (atomic_load_explicit(&slots[i].is_known, memory_order_relaxed)) ok = build(&slots[i], FOUND, &of_file, &of_process) && ok;
  return ok;
}

/* Once; without memory for it the device has none. */
static void read_shipped(struct slot *s) {
  ws_tuning_list list = {0};
  const ws_tuning_list none = {0};
  pthread_mutex_lock(&lock);
  if (!is_off && !atomic_load_explicit(&s->is_shipped_read, memory_order_relaxed) && ws_tuned_read(&s->device, &list))
    build(s, SHIPPED, &list, &none);
  atomic_store_explicit(&s->is_shipped_read, true, memory_order_release);
  pthread_mutex_unlock(&lock);
  ws_tuning_list_free(&list);
}

static layer *layer_of(struct slot *s, int layer_idx) {
  if (layer_idx == SHIPPED && !atomic_load_explicit(&s->is_shipped_read, memory_order_acquire)) read_shipped(s);
  return &s->layers[layer_idx];
}

void ws_tune_set_device(int slot, const ws_tuning_device *device) {
  struct slot *s = &slots[slot];
  if (slot < 0 || slot >= WS_N_TUNE_SLOTS || atomic_load_explicit(&s->is_known, memory_order_acquire)) return;
  pthread_mutex_lock(&lock);
  if (!atomic_load_explicit(&s->is_known, memory_order_relaxed)) {
    s->device = *device;
    build(s, FOUND, &of_file, &of_process);
    atomic_store_explicit(&s->is_known, true, memory_order_release);
  }
  pthread_mutex_unlock(&lock);
}

bool ws_tune_device(int slot, ws_tuning_device *device) {
  if (!atomic_load_explicit(&slots[slot].is_known, memory_order_acquire)) return false;
  *device = slots[slot].device;
  return true;
}

/* ---- look-up --------------------------------------------------------------------------------- */

/* These may read while a change writes, and so meet parts of two tables: the result is then of no
 * use, but no index is beyond the table's room. */
static int first_range(const table *t, int n_ranges, uint64_t key) {
  int low = 0, high = n_ranges;
  while (low < high) {
    const int middle = (low + high) / 2;
    if (GET(t->ranges[middle].key) < key)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

/* The first whose n is not below. */
static int first_from(const table_log *logs, int low, int high, int32_t n) {
  while (low < high) {
    const int middle = (low + high) / 2;
    if (GET(logs[middle].n) < n)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

static int64_t square(int64_t x) { return x * x; }

static bool is_same(const table_entry *e, const ws_tuning_shape *shape) {
  return GET(e->m) == shape->m && GET(e->n) == shape->n && GET(e->k) == shape->k && GET(e->batch) == shape->batch;
}

/* NULL: none is within reach. */
static const table_entry *nearest(const table *t, uint64_t kind, const ws_tuning_shape *shape, const shape_log *log) {
  const uint64_t last = key_of(kind, log->m + REACH);
  const int n_ranges = GET(t->n_ranges);
  int best = -1;
  int64_t distance = square(REACH) + 1;
  for (int r = first_range(t, n_ranges, key_of(kind, log->m - REACH)); r < n_ranges && GET(t->ranges[r].key) <= last; r++) {
    const int first = GET(t->ranges[r].first), n = GET(t->ranges[r].n), end = n < t->most - first ? first + n : t->most;
    for (int i = first_from(t->logs, first, end, log->n - REACH); i < end; i++) {
      const table_log *l = &t->logs[i];
      const int32_t log_n = GET(l->n);
      if (log_n > log->n + REACH) break;
      const int64_t d =
          square(GET(l->m) - log->m) + square(log_n - log->n) + square(GET(l->k) - log->k) + square(GET(l->batch) - log->batch);
      /* whatever its lines */
      if (d % square(OTHER_LINES) == 0 && is_same(&t->entries[i], shape)) return &t->entries[i];
      if (d < distance) best = i, distance = d;
    }
  }
  return best < 0 ? NULL : &t->entries[best];
}

/* false: none is within reach. */
static bool find_in(const layer *l, uint64_t kind, const ws_tuning_shape *shape, const shape_log *log, ws_tuned *found,
                    ws_tuning_shape *line) {
  for (;;) {
    const unsigned n_changes = GET(l->n_changes);
    const table *t = GET(l->tables[n_changes % 2]);
    const table_entry *e = t ? nearest(t, kind, shape, log) : NULL;
    if (e) {
      found->is_exact = is_same(e, shape);
      if (line) *line = (ws_tuning_shape){GET(e->m), GET(e->n), GET(e->k), GET(e->batch)};
      found->tuning.row = GET(e->row);
#define GET_PARAMETER(name, most) found->tuning.name = GET(e->name);
      WS_TUNING_PARAMETERS(GET_PARAMETER)
#undef GET_PARAMETER
    }
    if (GET(l->n_changes) == n_changes) return e;
  }
}

bool ws_tune_has_table(int slot) {
  for (int i = 0; i < N_LAYERS; i++)
    if (table_in_force(layer_of(&slots[slot], i))) return true;
  return false;
}

ws_tuned ws_tune_find_line(int slot, const ws_tuning_kind *kind, const ws_tuning_shape *shape, ws_tuning_shape *line) {
  static const ws_tuned_by by[N_LAYERS] = {[FOUND] = WS_TUNED_BY_USER, [SHIPPED] = WS_TUNED_BY_TABLE};
  const shape_log log = log_of(shape, kind->partial_lines);
  const uint64_t code = code_of(kind);
  ws_tuned found;
  for (int i = 0; i < N_LAYERS; i++)
    if (find_in(layer_of(&slots[slot], i), code, shape, &log, &found, line)) {
      found.by = by[i];
      return found;
    }
  return ws_tuned_model();
}

/* ---- the user's file ------------------------------------------------------------------------- */

const char *ws_tune_path(void) { return user_path; }

static void warn_of_file(const char *what) {
  ws_fail(NULL, WSGEMM_FILE_ERROR, "warning: tuning file %.120s: %s", user_path, what);
}

static int count_unknown(const ws_tuning_list *list) {
  int n = 0;
  for (int i = 0; i < list->n; i++)
    n += row_of(&list->entry[i]) == 0 && backend_of(&list->entry[i]) &&
         strcmp(list->entry[i].version, wsgemm_version_string()) == 0;
  return n;
}

/* With the lock. */
static void read_file(void) {
  char text[64];
  ws_tuning_list_free(&of_file);
  if (!user_path[0]) return;
  if (!ws_tuning_file_read(user_path, &of_file)) {
    const int why = errno;
    ws_tuning_list_free(&of_file);
    warn_of_file(why == EINVAL ? "not a tuning file; it is ignored" : ws_error_text(why));
    return;
  }
  const int n_unknown = count_unknown(&of_file);
  if (of_file.n_bad > 0)
    snprintf(text, sizeof text, "%d damaged lines are ignored", of_file.n_bad), warn_of_file(text);
  else if (n_unknown > 0)
    snprintf(text, sizeof text, "%d lines of unknown kernels are ignored", n_unknown), warn_of_file(text);
  else if (of_file.n == 0 && of_file.n_foreign > 0)
    snprintf(text, sizeof text, "%d lines of other versions are ignored", of_file.n_foreign), warn_of_file(text);
}

static void find_path(const char *setting) {
  const char *cache = secure_getenv("XDG_CACHE_HOME"), *home = secure_getenv("HOME");
  int n = 0;
  if (setting)
    n = snprintf(user_path, sizeof user_path, "%s", setting);
  else if (cache && cache[0] == '/')
    n = snprintf(user_path, sizeof user_path, "%s/wsgemm/tuning", cache);
  else if (home && home[0] == '/')
    n = snprintf(user_path, sizeof user_path, "%s/.cache/wsgemm/tuning", home);
  if (n < (int)sizeof user_path) return;
  user_path[0] = '\0';
  ws_fail(NULL, WSGEMM_FILE_ERROR, "warning: the name of the tuning file is longer than %zu bytes; there is none",
          sizeof user_path - 1);
}

void ws_tune_lock(void) { pthread_mutex_lock(&lock); }
void ws_tune_unlock(void) { pthread_mutex_unlock(&lock); }

void ws_tune_init(const char *setting) {
  pthread_mutex_lock(&lock);
  is_off = setting && strcmp(setting, "off") == 0;
  if (!is_off) {
    find_path(setting);
    read_file();
  }
  pthread_mutex_unlock(&lock);
}

/* With the lock. What the file says of the same shapes now is newer. */
static void take_over_file(void) {
  const int n = of_process.n;
  for (int i = 0; i < of_file.n; i++) {
    if (!ws_tuning_list_put(&of_process, &of_file.entry[i])) return;
    of_process.n = n; /* only in the place of another */
  }
}

void ws_tune_reload(void) {
  pthread_mutex_lock(&lock);
  read_file();
  if (of_process.n > 0) take_over_file();
  build_found();
  pthread_mutex_unlock(&lock);
}

bool ws_tune_put(const ws_tuning_entry *e) {
  pthread_mutex_lock(&lock);
  const bool ok = ws_tuning_list_put(&of_process, e) && build_found();
  pthread_mutex_unlock(&lock);
  return ok;
}

void ws_tune_forget(void) {
  pthread_mutex_lock(&lock);
  ws_tuning_list_free(&of_process);
  pthread_mutex_unlock(&lock);
  ws_tune_reload();
}
