/* arena.c - where tuning measures products on the CPU: operands of its own in host memory, and the
 * candidates for a product. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/cgroup.h"
#include "core/processors.h"
#include "core/status.h"
#include "core/tile.h"
#include "cpu/backend.h"
#include "cpu/plan.h"
#include "cpu/trsm_plan.h"
#include "tune/tuning.h"

typedef struct cpu_arena {
  void *a, *b, *c, *expected, *cache;
  const void *initial; /* what C begins with, where it is an operand too; else NULL */
  size_t c_bytes, cache_bytes;
} cpu_arena;

void ws_cpu_tuning_device(int n_threads, ws_tuning_device *device) {
  const ws_machine *machine = ws_machine_get();
  int isa = WS_N_ISAS - 1;
  while (isa > 0 && !machine->isa[isa]) isa--;
  *device = (ws_tuning_device){.units = n_threads};
  ws_text name = {device->name, sizeof device->name, 0}, arch = {device->arch, sizeof device->arch, 0};
  ws_text_add(&name, "%s", machine->model);
  ws_tuning_clean_name(device->name);
  ws_text_add(&arch, "%s/%lldK/%lldK", ws_isa_name((ws_isa)isa), (long long)machine->l1d_bytes >> 10,
              (long long)machine->l2_bytes >> 10);
}

/* ---- operands -------------------------------------------------------------------------------- */

/* Numbers between 2^-5 and 1 and their negatives: sums of thousands stay in the range of all
 * types. */
static void draw(void *to, size_t n_reals, wsgemm_type type, uint64_t seed) {
  uint64_t x = seed * UINT64_C(0x9E3779B97F4A7C15) + 1;
  for (size_t i = 0; i < n_reals; i++) {
    x ^= x << 13, x ^= x >> 7, x ^= x << 17; /* xorshift64 (Marsaglia 2003) */
    const double unit = ((double)(x >> 11) * 0x1p-53 + 0x1p-5) / (1 + 0x1p-5), value = x & 1 ? unit : -unit;
    const uint16_t sign = (uint16_t)(x & 0x8000), exponent = (uint16_t)(x >> 32 & 3);
    switch (type) {
    case WSGEMM_F16:
      ((uint16_t *)to)[i] = (uint16_t)(sign | (11 + exponent) << 10 | (x & 0x3ff));
      break;
    case WSGEMM_BF16:
      ((uint16_t *)to)[i] = (uint16_t)(sign | (123 + exponent) << 7 | (x & 0x7f));
      break;
    case WSGEMM_F64:
    case WSGEMM_C64:
      ((double *)to)[i] = value;
      break;
    case WSGEMM_F32:
    case WSGEMM_C32:
      ((float *)to)[i] = (float)value;
      break;
    }
  }
}

/* The same numbers again and again, from where no size of a matrix meets them in step. */
static void fill(void *to, size_t bytes, wsgemm_type type, uint64_t seed) {
  enum { PERIOD = 65521 }; /* a prime */
  const size_t real_bytes = (size_t)(ws_types[type].bytes / ws_types[type].n_real);
  const size_t n_drawn = bytes / real_bytes < PERIOD ? bytes / real_bytes : PERIOD;
  draw(to, n_drawn, type, seed);
  for (size_t done = n_drawn * real_bytes; done < bytes;) {
    const size_t n = done < bytes - done ? done : bytes - done;
    memcpy((char *)to + done, to, n);
    done += n;
  }
}

/* NULL: none is to be had. */
static void *new_matrix(size_t bytes) {
  enum { ALIGN = 4096 };
  return bytes > 0 ? aligned_alloc(ALIGN, (bytes + ALIGN - 1) / ALIGN * ALIGN) : NULL;
}

/* Of memory.max: a number, or "max". */
static double bytes_of(const char *text) {
  long long bytes;
  return sscanf(text, "%lld", &bytes) == 1 && bytes >= 0 ? (double)bytes : HUGE_VAL;
}

/* All that the machine has, or that a cgroup (version 2) may have; others may use some of it. */
static double memory_bytes(void) {
  const long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
  return fmin(pages > 0 && page > 0 ? (double)pages * (double)page : HUGE_VAL, ws_cgroup_least("memory.max", bytes_of));
}

/* A diagonal that exceeds the rest of its row: solutions stay as large as right sides. */
static void make_dominant(const ws_matrix *x, char *data, int64_t n, int64_t batch_count) {
  for (int64_t batch = 0; batch < batch_count; batch++)
    for (int64_t i = 0; i < n; i++) {
      char *element = data + (batch * x->stride + i * (x->ld + 1)) * ws_types[x->type].bytes;
      if (x->type == WSGEMM_F64 || x->type == WSGEMM_C64)
        *(double *)(void *)element = (double)n;
      else
        *(float *)(void *)element = (float)n;
    }
}

/* Where the operands are: of syrk both are one; in place C is one, as in a system, which is always
 * solved so. */
static void set_operands(ws_arena *arena, bool is_one_matrix) {
  cpu_arena *own = arena->own;
  ws_problem *p = &arena->problem;
  const bool is_right = p->b.structure != WS_GENERAL;
  ws_matrix *general = is_right ? &p->a : &p->b;
  p->a.data = own->a, p->b.data = is_one_matrix ? own->a : own->b, p->c.data = own->c;
  if (p->in_place || arena->is_system) own->initial = general->data, general->data = own->c;
  if (!arena->is_system) return;
  ws_system *s = &arena->system;
  s->a = is_right ? p->b : p->a, s->b = *general, s->x = p->c;
  s->a.structure = WS_TRIANGULAR;
  make_dominant(&s->a, is_right ? own->b : own->a, p->k, p->batch_count);
}

static wsgemm_status open_arena(ws_arena *arena) {
  ws_problem *p = &arena->problem;
  const bool is_one_matrix = p->c.region != WS_ALL && p->a.data == p->b.data;
  cpu_arena *own = arena->own = calloc(1, sizeof *own);
  if (!own) return ws_fail(arena->h, WSGEMM_ALLOC_FAILED, "no memory for an arena");
  const size_t a_bytes = ws_arena_bytes(p, p->a.ld, p->a.trans ? p->m : p->k, &p->a.stride, p->a.type);
  const size_t b_bytes = ws_arena_bytes(p, p->b.ld, p->b.trans ? p->k : p->n, &p->b.stride, p->a.type);
  own->c_bytes = ws_arena_bytes(p, p->c.ld, p->n, &p->c.stride, p->c.type);
  own->cache_bytes = (size_t)(2 * ws_machine_get()->l2_bytes);
  const double wanted = (double)a_bytes + (double)b_bytes + 2 * (double)own->c_bytes + (double)own->cache_bytes;
  if (wanted > memory_bytes()) /* the system may promise more than it has, and kill who uses it */
    return ws_fail(arena->h, WSGEMM_ALLOC_FAILED, "operands of %.0f bytes are more than there is memory for this process",
                   wanted);
  own->a = new_matrix(a_bytes), own->b = new_matrix(b_bytes), own->c = new_matrix(own->c_bytes);
  own->expected = new_matrix(own->c_bytes), own->cache = new_matrix(own->cache_bytes);
  if (!own->a || !own->b || !own->c || !own->expected || !own->cache)
    return ws_fail(arena->h, WSGEMM_ALLOC_FAILED, "no memory for operands of %.0f bytes", wanted);
  fill(own->a, a_bytes, p->a.type, arena->seed), fill(own->b, b_bytes, p->a.type, arena->seed + 1);
  memset(own->cache, 1, own->cache_bytes);
  set_operands(arena, is_one_matrix);
  const ws_call call = ws_call_of(arena->h);
  ws_arena_describe(arena);
  arena->entry.kind = arena->is_system ? ws_cpu_tuning_kind_of_system(&call, &arena->system) : ws_cpu_tuning_kind(&call, p);
  return WSGEMM_SUCCESS;
}

static void close_arena(ws_arena *arena) {
  cpu_arena *own = arena->own;
  if (!own) return;
  free(own->a), free(own->b), free(own->c), free(own->expected), free(own->cache);
  free(own);
}

/* ---- measuring ------------------------------------------------------------------------------- */

static wsgemm_status prepare(ws_arena *arena, const ws_tuning *tuning) {
  cpu_arena *own = arena->own;
  (void)tuning;
  fill(own->c, own->c_bytes, arena->problem.c.type, arena->seed + 2);
  return WSGEMM_SUCCESS;
}

/* Of this thread's core; the others' were left some time ago. */
static void clear_l2(cpu_arena *own) {
  volatile unsigned char *line = own->cache;
  for (size_t i = 0; i < own->cache_bytes; i += 64) line[i]++;
}

static wsgemm_status run(ws_arena *arena, const ws_tuning *tuning, double *us) {
  cpu_arena *own = arena->own;
  const ws_call call = ws_call_of(arena->h);
  ws_problem p = arena->problem;
  ws_system s = arena->system;
  p.tuning = s.tuning = tuning;
  /* else it might grow beyond all bounds */
  if (own->initial)
    memcpy(own->c, own->initial, own->c_bytes);
  else if (!p.scale.beta_zero)
    fill(own->c, own->c_bytes, p.c.type, arena->seed + 2);
  clear_l2(own);
  const double begin = ws_arena_now_ms(arena);
  const wsgemm_status status = arena->is_system ? ws_cpu_solve(&call, &s, 0) : ws_cpu_gemm(&call, &p, 0);
  *us = (ws_arena_now_ms(arena) - begin) * 1e3;
  return status;
}

static wsgemm_status keep(ws_arena *arena) {
  cpu_arena *own = arena->own;
  memcpy(own->expected, own->c, own->c_bytes);
  return WSGEMM_SUCCESS;
}

static wsgemm_status differs(ws_arena *arena, bool *answer) {
  const cpu_arena *own = arena->own;
  *answer = memcmp(own->expected, own->c, own->c_bytes) != 0;
  return WSGEMM_SUCCESS;
}

/* ---- candidates ------------------------------------------------------------------------------ */

typedef struct listing {
  ws_arena *arena;
  ws_candidate *list;
  int n;
} listing;

/* Time in ns of a machine about as fast as a Zen 5 core at 250 GF/s in FP32: only the order
 * counts. */
static double model_of(const ws_problem *p, const ws_plan *plan) {
  const ws_machine *machine = ws_machine_get();
  const ws_type_info *type = &ws_types[p->a.type];
  const double bytes = type->bytes;
  const double m = (double)p->m, n = (double)p->n, k = (double)p->k, batch = (double)p->batch_count;
  const double work_ns = m * n * k * ws_float_products(p->a.type) / 125;
  const double memory = 12, l3 = 30, l2 = 80; /* bytes in a ns */
  double traffic_ns, items;
  if (plan->path == WS_PATH_PACKED || plan->path == WS_PATH_HALF) {
    const double sweeps_of_a = plan->path == WS_PATH_PACKED ? (double)ws_ceil_div(p->n, plan->nc) : 1;
    const double block_of_a = (double)plan->bm * (double)plan->kc * bytes,
                 block_of_b = (double)plan->nc * (double)plan->kc * bytes;
    const double reads_of_b = m / (double)plan->bm * k * n * bytes;
    traffic_ns = 2 * m * k * bytes * sweeps_of_a / memory + 2 * k * n * bytes / memory + reads_of_b / l3 +
                 2 * m * n * bytes * (double)ws_ceil_div(p->k, plan->kc) / l3;
    if (block_of_a > 0.7 * (double)machine->l2_bytes) traffic_ns += reads_of_b / l2 + m * k * n / plan->row->nr * bytes / l3;
    if (block_of_b > 0.5 * (double)machine->near_l3_bytes) traffic_ns += reads_of_b / memory;
    items = (double)ws_ceil_div(p->m, plan->bm) * (double)ws_ceil_div(ws_min(plan->nc, p->n), plan->bn * plan->coarse);
  } else {
    const double b_bytes = k * n * bytes;
    traffic_ns = m * k * bytes / memory + m / plan->row->mr * b_bytes / (b_bytes > (double)machine->l2_bytes ? l3 : l2) +
                 2 * m * n * bytes * (double)ws_ceil_div(p->k, plan->kc) / l3;
    items = (double)ws_ceil_div(p->m, plan->bm) * (double)ws_ceil_div(p->n, plan->bn * plan->coarse) * batch;
  }
  const double threads = plan->n_threads, rounds = (double)ws_ceil_div((int64_t)items, plan->n_threads) * threads / items;
  const double hand_over_ns = threads > 1 ? 2000 + 50 * items : 0;
  return batch * (work_ns + traffic_ns) / threads * rounds + hand_over_ns;
}

/* What a plan has chosen, in full. */
static ws_tuning tuning_of(const ws_problem *p, const ws_plan *plan) {
  ws_tuning t = {.row = ws_row_find(plan->row->name) + 1, .threads = plan->n_threads};
  if (plan->path == WS_PATH_DIRECT) t.path = WS_TUNING_DIRECT;
  if (plan->path == WS_PATH_PACKED) t.path = WS_TUNING_PACKED, t.nc = (int)plan->nc;
  if (plan->path != WS_PATH_DIRECT) t.mc = (int)plan->bm;
  if (plan->n_threads > 1) {
    const int64_t n_cols = plan->path == WS_PATH_PACKED ? ws_min(plan->nc, p->n) : p->n;
    t.policy = (int)plan->policy;
    t.coarse = (int)ws_min(plan->coarse, ws_min(WS_COARSE_MAX, ws_ceil_div(n_cols, plan->bn)));
  }
  return t;
}

static void plan_of(const listing *l, const ws_tuning *tuning, ws_plan *plan) {
  const ws_call call = ws_call_of(l->arena->h);
  ws_problem p = l->arena->problem;
  p.tuning = tuning;
  if (ws_is_plain(&p))
    ws_plan_make(&call, &p, plan);
  else
    ws_plan_structured(&call, &p, plan);
}

/* The candidate that becomes of a tuning: as its plan is, in full. */
static ws_candidate candidate_of(const listing *l, const ws_tuning *wanted) {
  const ws_arena *arena = l->arena;
  if (arena->is_system) {
    const ws_call call = ws_call_of(arena->h);
    return ws_solve_candidate(&call, &arena->system, wanted);
  }
  ws_plan plan;
  plan_of(l, wanted, &plan);
  ws_candidate c = {.tuning = tuning_of(&arena->problem, &plan), .model = model_of(&arena->problem, &plan)};
  ws_text row = {c.row, sizeof c.row, 0};
  ws_text_add(&row, "%s", plan.row->name);
  return c;
}

static bool is_listed(const listing *l, const ws_tuning *t) {
  for (int i = 0; i < l->n; i++)
    if (memcmp(&l->list[i].tuning, t, sizeof *t) == 0) return true;
  return false;
}

/* As the plan that becomes of it: what the handle forces, and what blocks are rounded to, makes
 * equals of some. */
static void add(listing *l, const ws_tuning *wanted) {
  const ws_candidate c = candidate_of(l, wanted);
  if (l->n < WS_MOST_CANDIDATES && !is_listed(l, &c.tuning)) l->list[l->n++] = c;
}

/* Blocks by twos and halves of what the model takes for this path. */
static void add_blocks(listing *l, const ws_tuning *base) {
  static const int parts[][2] = {{1, 4}, {1, 2}, {3, 4}, {3, 2}, {2, 1}, {4, 1}};
  enum { N_PARTS = sizeof parts / sizeof parts[0] };
  for (int i = -1; i < N_PARTS; i++)
    for (int j = -1; j < N_PARTS; j++) {
      ws_tuning t = *base;
      if (i >= 0) t.mc = (int)ws_max(1, (int64_t)base->mc * parts[i][0] / parts[i][1]);
      if (j >= 0 && base->nc > 0) t.nc = (int)ws_max(1, (int64_t)base->nc * parts[j][0] / parts[j][1]);
      if (base->mc > 0) add(l, &t);
    }
}

/* Not FIXED_BLOCKS: a search on an idle machine does not see what it costs where others take a
 * core. */
static void add_sharing(listing *l, const ws_tuning *base, int n_threads) {
  enum { N_POLICIES = 2 };
  static const int policies[N_POLICIES] = {WSGEMM_POLICY_STEAL, WSGEMM_POLICY_FIXED_WORK};
  for (int threads = n_threads; threads >= 1; threads /= 2)
    for (int policy = 0; policy < N_POLICIES; policy++)
      for (int coarse = 1; coarse <= WS_COARSE_MAX; coarse *= 2) {
        ws_tuning t = *base;
        t.threads = threads, t.policy = policies[policy], t.coarse = coarse;
        add(l, &t);
      }
}

/* What the model takes for a path (0: its own), and what is near it. */
static void add_path(listing *l, int path, int n_threads) {
  const ws_tuning of_path = {.path = path}, base = candidate_of(l, &of_path).tuning;
  add(l, &base);
  add_blocks(l, &base);
  add_sharing(l, &base, n_threads);
}

static wsgemm_status list_candidates(ws_arena *arena, ws_candidate *candidates, int *n) {
  *n = 0;
  const ws_call call = ws_call_of(arena->h);
  listing l = {arena, candidates, 0};
  const ws_problem *p = &arena->problem;
  if ((double)p->m * (double)p->n * (double)p->k * (double)p->batch_count < WS_TUNE_LEAST_WORK) return WSGEMM_SUCCESS;
  const int n_threads = ws_thread_limit(&call);
  if (arena->is_system) {
    add_path(&l, 0, n_threads);
    *n = l.n;
    return WSGEMM_SUCCESS;
  }
  ws_plan plan;
  plan_of(&l, &ws_tuning_of_model, &plan);
  if (plan.path == WS_PATH_VECTOR || (ws_is_plain(p) && !ws_is_half(p->a.type) && ws_is_small(p, plan.row)))
    return WSGEMM_SUCCESS;
  const ws_tuning built_in = tuning_of(p, &plan);
  add(&l, &built_in);
  if (plan.path == WS_PATH_HALF)
    add_path(&l, 0, n_threads);
  else
    for (int path = WS_TUNING_DIRECT; path <= WS_TUNING_PACKED; path++) add_path(&l, path, n_threads);
  *n = l.n;
  return WSGEMM_SUCCESS;
}

const ws_arena_class ws_cpu_arena = {open_arena, list_candidates, prepare, run, keep, differs, ws_arena_now_ms, close_arena};
