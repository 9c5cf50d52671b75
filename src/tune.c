/* tune.c - what tuning has found, as a call looks it up: in the user's file and in what this process itself has found, else in the table
 * that comes with the library.
 *
 * A device's tables are read without a lock; a change builds new ones beside the old, which are kept, as a call may be reading them. The
 * library's own is parsed on the first question to it. Entries of one kind and one octave of m stand together, in order of n, so that a
 * look-up touches few that are not within reach. */
#define _GNU_SOURCE
#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cuda/backend.h"
#include "tuning.h"

/* How far an entry serves: the distance of shapes, where one octave in one of m, n, k, batch is 1. */
static const float reach = 0.5f;

/* ---- tables ------------------------------------------------------------------------------------------------------------------- */

/* Logarithms to the base 2; too coarse to tell large shapes apart. Apart from the rest, as a look-up reads those of many shapes. */
typedef struct shape_log {
  float m, n, k, batch;
} shape_log;

typedef struct tuned_shape {
  ws_tuning_shape shape;
  ws_tuning tuning;
} tuned_shape;

/* Of one kind and one octave of m. */
typedef struct range {
  uint64_t key;
  int first, n;
} range;

typedef struct table {
  struct table *older; /* so that what was replaced is not lost to leak checkers */
  int n_ranges;
  range *ranges;   /* ascending */
  shape_log *logs; /* of shapes */
  tuned_shape *shapes;
} table;

enum { FOUND, SHIPPED, N_LAYERS };

static struct slot {
  ws_tuning_device device;
  _Atomic bool is_known, is_shipped_read;
  _Atomic(table *) layer[N_LAYERS]; /* NULL: nothing */
} slots[WS_N_TUNE_SLOTS];

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char user_path[1024];
static bool is_off;
static ws_tuning_list of_file, of_process; /* with the lock */

static uint32_t code_of(const ws_tuning_kind *kind) {
  return (uint32_t)kind->full_store << 31 | (uint32_t)kind->workers << 16 | (uint32_t)kind->type << 12 |
         (uint32_t)kind->type_c << 8 | (uint32_t)kind->numerics << 4 | (uint32_t)kind->a_trans << 3 |
         (uint32_t)kind->b_trans << 2 | (uint32_t)kind->single_a << 1 | (uint32_t)kind->single_b;
}

static uint64_t key_of(uint32_t kind, float log_m) { return (uint64_t)kind << 8 | (uint64_t)(log_m > 0 ? log_m : 0); }

typedef struct sorted_entry {
  uint64_t key;
  int age; /* the least of those of one shape is in force */
  shape_log log;
  tuned_shape is;
} sorted_entry;

static int by_key_and_n(const void *a, const void *b) {
  const sorted_entry *x = a, *y = b;
  if (x->key != y->key) return x->key < y->key ? -1 : 1;
  if (x->log.n != y->log.n) return x->log.n < y->log.n ? -1 : 1;
  return (x->age > y->age) - (x->age < y->age);
}

static shape_log log_of(const ws_tuning_shape *s) {
  return (shape_log){log2f((float)s->m), log2f((float)s->n), log2f((float)s->k), log2f((float)s->batch)};
}

static int row_of(const ws_tuning_entry *e) {
  const int row = e->device.is_gpu ? ws_cuda_kernel_find(e->row) : ws_row_find(e->row);
  if (row < 0) return 0;
  return (e->device.is_gpu ? ws_cuda_kernel_type(row) : ws_row(row)->type) == e->kind.type ? row + 1 : 0;
}

/* The table of the library also serves other devices of the same architecture and, of GPUs, size. */
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
    const shape_log log = log_of(&e->shape);
    to[n] = (sorted_entry){key_of(code_of(&e->kind), log.m), -n, log, {e->shape, e->tuning}};
    to[n++].is.tuning.row = row;
  }
  return n;
}

static table *new_table(const sorted_entry *sorted, int n) {
  table *t = calloc(1, sizeof *t);
  if (!t) return NULL;
  t->ranges = malloc((size_t)(n + 1) * sizeof *t->ranges);
  t->logs = malloc((size_t)(n + 1) * sizeof *t->logs);
  t->shapes = malloc((size_t)(n + 1) * sizeof *t->shapes);
  if (!t->ranges || !t->logs || !t->shapes) {
    free(t->ranges), free(t->logs), free(t->shapes), free(t);
    return NULL;
  }
  for (int i = 0; i < n; i++) {
    t->logs[i] = sorted[i].log;
    t->shapes[i] = sorted[i].is;
    if (i == 0 || sorted[i].key != sorted[i - 1].key) t->ranges[t->n_ranges++] = (range){sorted[i].key, i, 0};
    t->ranges[t->n_ranges - 1].n++;
  }
  return t;
}

/* With the lock. Where both lists have a shape, the `later` one's is in force. false: out of memory, and nothing has changed. */
static bool build(struct slot *s, int layer, const ws_tuning_list *earlier, const ws_tuning_list *later) {
  sorted_entry *sorted = malloc((size_t)(earlier->n + later->n + 1) * sizeof *sorted);
  if (!sorted) return false;
  int n = gather(earlier, &s->device, layer == SHIPPED, sorted, 0);
  n = gather(later, &s->device, layer == SHIPPED, sorted, n);
  qsort(sorted, (size_t)n, sizeof *sorted, by_key_and_n);
  table *old = atomic_load_explicit(&s->layer[layer], memory_order_relaxed);
  const bool is_needed = n > 0 || old;
  table *t = is_needed ? new_table(sorted, n) : NULL;
  free(sorted);
  if (!t) return !is_needed;
  t->older = old;
  atomic_store_explicit(&s->layer[layer], t, memory_order_release);
  return true;
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

static const table *table_of(struct slot *s, int layer) {
  if (layer == SHIPPED && !atomic_load_explicit(&s->is_shipped_read, memory_order_acquire)) read_shipped(s);
  return atomic_load_explicit(&s->layer[layer], memory_order_acquire);
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

/* ---- look-up ------------------------------------------------------------------------------------------------------------------ */

static const range *first_range(const table *t, uint64_t key) {
  int low = 0, high = t->n_ranges;
  while (low < high) {
    const int middle = (low + high) / 2;
    if (t->ranges[middle].key < key)
      low = middle + 1;
    else
      high = middle;
  }
  return t->ranges + low;
}

/* The first whose n is not below. */
static int first_from(const shape_log *logs, int n_logs, float n) {
  int low = 0, high = n_logs;
  while (low < high) {
    const int middle = (low + high) / 2;
    if (logs[middle].n < n)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

static float square(float x) { return x * x; }

bool ws_tune_has_table(int slot) {
  for (int layer = 0; layer < N_LAYERS; layer++)
    if (table_of(&slots[slot], layer)) return true;
  return false;
}

static bool is_same(const ws_tuning_shape *x, const ws_tuning_shape *y) {
  return x->m == y->m && x->n == y->n && x->k == y->k && x->batch == y->batch;
}

static const tuned_shape *nearest(const table *t, uint32_t kind, const ws_tuning_shape *shape, const shape_log *log) {
  const uint64_t last = key_of(kind, log->m + reach);
  const tuned_shape *best = NULL;
  float distance = reach * reach;
  for (const range *r = first_range(t, key_of(kind, log->m - reach)); r < t->ranges + t->n_ranges && r->key <= last; r++) {
    const shape_log *logs = t->logs + r->first;
    const tuned_shape *shapes = t->shapes + r->first;
    for (int i = first_from(logs, r->n, log->n - reach); i < r->n && logs[i].n <= log->n + reach; i++) {
      const float d = square(logs[i].m - log->m) + square(logs[i].n - log->n) + square(logs[i].k - log->k) +
                      square(logs[i].batch - log->batch);
      if (d == 0 && is_same(&shapes[i].shape, shape)) return &shapes[i];
      if (d <= distance && (!best || d < distance)) best = &shapes[i], distance = d;
    }
  }
  return best;
}

ws_tuned ws_tune_find(int slot, const ws_tuning_kind *kind, const ws_tuning_shape *shape) {
  static const ws_tuned_by by[N_LAYERS] = {[FOUND] = WS_TUNED_BY_USER, [SHIPPED] = WS_TUNED_BY_TABLE};
  const shape_log log = log_of(shape);
  const uint32_t code = code_of(kind);
  for (int layer = 0; layer < N_LAYERS; layer++) {
    const table *t = table_of(&slots[slot], layer);
    const tuned_shape *found = t ? nearest(t, code, shape, &log) : NULL;
    if (found) return (ws_tuned){&found->tuning, by[layer], is_same(&found->shape, shape)};
  }
  return (ws_tuned){&ws_tuning_of_model, WS_TUNED_BY_MODEL, false};
}

/* ---- the user's file ---------------------------------------------------------------------------------------------------------- */

const char *ws_tune_path(void) { return user_path; }

static void warn_of_file(const char *what) {
  ws_fail(NULL, WSGEMM_FILE_ERROR, "warning: tuning file %.120s: %s", user_path, what);
}

static int count_unknown(const ws_tuning_list *list) {
  int n = 0;
  for (int i = 0; i < list->n; i++)
    n += row_of(&list->entry[i]) == 0 && (!list->entry[i].device.is_gpu || ws_cuda_kernel_count() > 0) &&
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
    warn_of_file(why == EINVAL ? "not a tuning file; it is ignored" : strerror(why));
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
