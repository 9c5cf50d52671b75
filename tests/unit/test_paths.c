/* test_paths.c - the ways through the CPU backend with plans that cpu/plan.c would never make:
 * blocks of one register tile, k blocks of a few elements, any COARSE_FACTOR, policy and thread
 * count. So every boundary between blocks, tiles, items and steps is crossed in products small
 * enough to check each of them: exact on whole numbers, and bit for bit what the direct path gives
 * in one thread with the same k block. */
#include "support/rows.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cpu/machine.h"
#include "cpu/paths.h"
#include "cpu/run.h"

static struct check_random rng;
static int64_t drawn(int64_t low, int64_t high) { return check_random_in(&rng, low, high); }

static ws_scale scale_of(const wsgemm_gemm_desc *d) {
  ws_scale s;
  double alpha[2], beta[2];
  memset(&s, 0, sizeof s);
  scalar_get(d->type_a, &d->alpha, alpha);
  scalar_get(d->type_a, &d->beta, beta);
  for (int part = 0; part < 2; part++)
    if (!type_is_double(d->type_a))
      s.alpha.s[part] = (float)alpha[part], s.beta.s[part] = (float)beta[part];
    else
      s.alpha.d[part] = alpha[part], s.beta.d[part] = beta[part];
  s.alpha_real = alpha[1] == 0;
  s.beta_real = beta[1] == 0;
  s.alpha_zero = s.alpha_real && alpha[0] == 0;
  s.beta_zero = s.beta_real && beta[0] == 0;
  s.alpha_one = s.alpha_real && alpha[0] == 1;
  s.beta_one = s.beta_real && beta[0] == 1;
  return s;
}

/* The column-major problem that d says. */
static ws_problem problem_of(const wsgemm_gemm_desc *d) {
  ws_problem p;
  memset(&p, 0, sizeof p);
  p.a.type = p.b.type = d->type_a, p.c.type = d->type_c;
  p.a.conj = type_is_complex(d->type_a) && (d->transa == WSGEMM_CONJ_TRANS || d->transa == WSGEMM_CONJ_NO_TRANS);
  p.b.conj = type_is_complex(d->type_a) && (d->transb == WSGEMM_CONJ_TRANS || d->transb == WSGEMM_CONJ_NO_TRANS);
  p.a.trans = op_transposes(d->transa);
  p.b.trans = op_transposes(d->transb);
  p.m = d->m, p.n = d->n, p.k = d->k;
  p.a.data = d->a, p.b.data = d->b, p.c.data = d->c;
  p.a.ld = d->lda, p.b.ld = d->ldb, p.c.ld = d->ldc;
  p.scale = scale_of(d);
  p.batch_count = d->batch_count;
  p.a.stride = d->stride_a, p.b.stride = d->stride_b, p.c.stride = d->stride_c;
  return p;
}

/* The direct path (of half precision: its only one) in one thread, everything in one piece, with
 * this k block. */
static ws_plan plan_plain(const ws_cpu_row *row, const ws_problem *p, int64_t kc) {
  const ws_call call = ws_call_of(ws_handle(NULL));
  ws_plan plan;
  ws_plan_make(&call, p, &plan); /* for whatever is not said here */
  plan.row = row;
  plan.path = ws_is_half(p->a.type) ? WS_PATH_HALF : WS_PATH_DIRECT;
  plan.pack_a = p->a.trans;
  plan.k_of_part = 0;
  plan.by_columns = plan.asks_for_a = plan.asks_for_c = plan.transposed = plan.c_by_rows = false;
  plan.kc = kc;
  plan.bm = p->m, plan.bn = p->n, plan.nc = p->n;
  plan.n_products = 1;
  plan.coarse = plan.n_threads = 1;
  plan.policy = WSGEMM_POLICY_STEAL;
  return plan;
}

static void draw_team(ws_plan *plan) {
  static const wsgemm_policy policies[] = {WSGEMM_POLICY_FIXED_WORK, WSGEMM_POLICY_FIXED_BLOCKS, WSGEMM_POLICY_STEAL};
  plan->n_threads = drawn(0, 1) ? 1 : (int)drawn(2, 4);
  plan->policy = policies[drawn(0, 2)];
  plan->coarse = (int)drawn(1, drawn(0, 1) ? 3 : 64);
}

/* A plan that keeps the rules (bm a multiple of mr, bn of nr, nc of bn) and nothing else. */
static ws_plan plan_drawn(const ws_cpu_row *row, const ws_problem *p, int64_t kc) {
  ws_plan plan = plan_plain(row, p, kc);
  draw_team(&plan);
  plan.n_products = drawn(1, 3);
  if (plan.path == WS_PATH_HALF) {
    plan.bm = row->mr * drawn(1, 3);
    plan.bn = row->nr * drawn(1, 4);
    return plan;
  }
  switch (drawn(0, 4)) {
  case 0: /* direct, panels of rows */
    plan.pack_a = p->a.trans || drawn(0, 1);
    if (!plan.pack_a && row->ukr->part[0][0][0]) plan.k_of_part = (int)(drawn(0, 1) * drawn(1, 70));
    plan.asks_for_a = !plan.pack_a && drawn(0, 1);
    plan.bm = row->mr * drawn(1, 3);
    plan.bn = row->nr * drawn(1, 4);
    break;
  case 1: /* direct, strips of columns */
    plan.by_columns = !p->a.trans;
    plan.asks_for_a = plan.by_columns && drawn(0, 1), plan.asks_for_c = plan.by_columns && drawn(0, 1);
    plan.bn = row->nr * drawn(1, 4);
    break;
  case 2: /* as the transpose, C by rows */
    plan.transposed = plan.c_by_rows = true;
    plan.pack_a = !p->b.trans || drawn(0, 1);
    if (!plan.pack_a && row->ukr->part[0][0][0] && row->ukr->by_rows[0][0][0]) plan.k_of_part = (int)(drawn(0, 1) * drawn(1, 70));
    plan.bm = row->mr * drawn(1, 3);
    plan.bn = row->nr * drawn(1, 4);
    break;
  default:
    plan.path = WS_PATH_PACKED;
    plan.bm = row->mr * drawn(1, 3);
    plan.bn = row->nr * drawn(1, 3);
    plan.nc = plan.bn * drawn(1, 3);
    plan.b_source =
        (ws_b_source)drawn(WS_B_PACKED_ONCE, p->b.trans ? WS_B_OF_EACH : WS_B_IN_PLACE); /* in place for any number of rows */
    plan.own_columns = drawn(0, 1);
  }
  return plan;
}

/* What must have the bits of this plan. The transposed sums of complex numbers are other sums. */
static ws_plan plain_beside(const ws_plan *plan, const ws_problem *p) {
  ws_plan plain = plan_plain(plan->row, p, plan->kc);
  if (!plan->c_by_rows || !type_is_complex(p->a.type)) return plain;
  plain.transposed = plain.c_by_rows = true;
  plain.pack_a = !p->b.trans;
  plain.bm = p->n, plain.bn = p->m;
  return plain;
}

enum { WORDS_BYTES = 192 };
static const char *plan_words(const ws_plan *plan, char text[WORDS_BYTES]) {
  snprintf(text, WORDS_BYTES,
           "%s %s kc=%lld bm=%lld bn=%lld nc=%lld coarse=%d threads=%d policy=%d pack_a=%d by_columns=%d by_rows=%d parts=%d "
           "asks=%d%d b=%d own=%d",
           plan->row->name, ws_path_name(plan->path), (long long)plan->kc, (long long)plan->bm, (long long)plan->bn,
           (long long)plan->nc, plan->coarse, plan->n_threads, (int)plan->policy, plan->pack_a, plan->by_columns, plan->c_by_rows,
           plan->k_of_part, plan->asks_for_a, plan->asks_for_c, plan->b_source, plan->own_columns);
  return text;
}

static void draw_scalars(wsgemm_gemm_desc *d, bool whole) {
  static const double wholes[][2] = {{1, 0}, {-1, 0}, {2, -1}, {0, 1}};
  const int64_t a = drawn(0, 3), b = drawn(-1, 3);
  d->alpha = scalar_make(d->type_a, whole ? wholes[a][0] : 0.7, whole ? wholes[a][1] : -0.4);
  d->beta = b < 0 ? scalar_make(d->type_a, 0, 0) : scalar_make(d->type_a, wholes[b][0], wholes[b][1]);
}

/* Whole numbers and bits for one shape, under n_plans random plans. */
static void run_shape(const ws_cpu_row *row, int64_t m, int64_t n, int64_t k, int n_plans) {
  struct stage whole = stage_new(row->type, m, n, k, FILL_INTEGER, &rng), any = stage_new(row->type, m, n, k, FILL_UNIFORM, &rng);
  product_extend(&whole.product, &whole.a, &whole.b, k);
  for (int i = 0; i < n_plans; i++) {
    const struct layout_of_case where = layout_drawn(&rng);
    const int64_t kc = drawn(0, 5) == 0 ? row->kc : drawn(1, 12);
    char words[WORDS_BYTES];
    wsgemm_gemm_desc d = gemm_desc(row->type, WSGEMM_COL_MAJOR, draw_op(row->type, &rng), draw_op(row->type, &rng), m, n, k);
    draw_scalars(&d, true);
    case_store(&whole, &d, &where);
    ws_problem p = problem_of(&d);
    const ws_plan plan = plan_drawn(row, &p, kc);
    ws_cpu_run(&p, &plan);
    if (!case_judge(&whole, &d, JUDGE_EXACT, plan_words(&plan, words))) continue;
    draw_scalars(&d, false);
    case_store(&any, &d, &where);
    p = problem_of(&d);
    ws_cpu_run(&p, &plan);
    const unsigned long long digest = matrix_digest(&any.stored[2]);
    case_store(&any, &d, &where);
    const ws_plan plain = plain_beside(&plan, &p);
    ws_cpu_run(&p, &plain);
    char text[DESCRIPTION_BYTES];
    CHECK(digest == matrix_digest(&any.stored[2]), "%s: %s: other bits than by the direct path", gemm_describe(&d, text),
          plan_words(&plan, words));
  }
  stage_free(&whole);
  stage_free(&any);
}

static void each_row(void (*run)(const ws_cpu_row *row)) {
  int n_run = 0;
  CHECK(wsgemm_default_num_threads() >= 1, "the first call, which finds out what the machine can run");
  for (int i = 0; i < ws_row_count(); i++)
    if (ws_row_usable(i)) {
      run(ws_row(i));
      n_run++;
    }
  CHECK(n_run >= 4, "%d rows", n_run);
}

static void odd_plans_of(const ws_cpu_row *row) {
  for (int i = 0; i < 50 / check_scale() + 1; i++)
    run_shape(row, drawn(1, 5 * row->mr + 3), drawn(1, 9 * row->nr + 3), drawn(1, 50), check_scale() > 1 ? 6 : 12);
}
static void odd_plans(void) { rng = check_random_from(120), each_row(odd_plans_of); }

/* Round one tile, every cut of it, through packed panels. */
static void every_cut_of(const ws_cpu_row *row) {
  const int64_t part = check_scale() > 1 ? 4 * check_scale() : 1;
  for (int64_t m = 1; m <= 2 * row->mr + 1; m++)
    for (int64_t n = 1; n <= 2 * row->nr + 1; n++)
      if (drawn(1, part) == 1) run_shape(row, m, n, drawn(1, 9), 1);
}
static void every_cut(void) { rng = check_random_from(121), each_row(every_cut_of); }

/* Matrix-vector products cut anywhere. */
static void vectors_of(const ws_cpu_row *row) {
  if (ws_is_half(row->type)) return; /* they have no such path */
  for (int i = 0; i < 80 / check_scale() + 1; i++) {
    const bool is_row = drawn(0, 1);
    const int64_t length = drawn(1, drawn(0, 9) ? 150 : 2500), k = drawn(1, 70);
    struct stage stage = stage_new(row->type, is_row ? 1 : length, is_row ? length : 1, k, FILL_INTEGER, &rng);
    product_extend(&stage.product, &stage.a, &stage.b, k);
    for (int turn = 0; turn < 4; turn++) {
      const struct layout_of_case where = layout_drawn(&rng);
      wsgemm_gemm_desc d = gemm_desc(row->type, WSGEMM_COL_MAJOR, draw_op(row->type, &rng), draw_op(row->type, &rng),
                                     is_row ? 1 : length, is_row ? length : 1, k);
      draw_scalars(&d, true);
      case_store(&stage, &d, &where);
      const ws_problem p = problem_of(&d);
      ws_plan plan = plan_plain(row, &p, k);
      draw_team(&plan);
      plan.path = WS_PATH_VECTOR;
      plan.transposed = is_row;
      plan.bm = drawn(1, length + 5);
      plan.bn = 1;
      char words[WORDS_BYTES];
      ws_cpu_run(&p, &plan);
      case_judge(&stage, &d, JUDGE_EXACT, plan_words(&plan, words));
    }
    stage_free(&stage);
  }
}
static void vectors(void) { rng = check_random_from(122), each_row(vectors_of); }

/* Batches through one plan: as many single products give the same bits. */
static void batches_of(const ws_cpu_row *row) {
  enum { MOST = 3 };
  for (int i = 0; i < 60 / check_scale() + 1; i++) {
    const int64_t m = drawn(1, 3 * row->mr), n = drawn(1, 4 * row->nr), k = drawn(1, 30), count = drawn(1, MOST);
    wsgemm_gemm_desc d = gemm_desc(row->type, WSGEMM_COL_MAJOR, draw_op(row->type, &rng), draw_op(row->type, &rng), m, n, k);
    const int64_t room = MOST * (m > n ? m > k ? m : k : n > k ? n : k) * (m + n + k);
    unsigned char *a = malloc((size_t)room * 16), *b = malloc((size_t)room * 16), *c = malloc((size_t)room * 16),
                  *single = malloc((size_t)room * 16);
    REQUIRE(a && b && c && single, "memory");
    struct values values = values_new(row->type, 3, room, FILL_UNIFORM, &rng);
    unsigned char *const all[3] = {a, b, c};
    for (int x = 0; x < 3; x++) {
      const struct arena arena = {all[x], (size_t)room * 16};
      const struct matrix flat = {row->type, true, room, 1, room, all[x], &arena};
      for (int64_t at = 0; at < room; at++) matrix_set(&flat, at, 0, values.re[x * room + at], values.im[x * room + at]);
    }
    memcpy(single, c, (size_t)room * type_bytes(row->type));
    draw_scalars(&d, false);
    d.a = a, d.b = b, d.c = c;
    d.batch_count = count;
    d.stride_a = drawn(0, 1) * m * k, d.stride_b = drawn(0, 1) * k * n, d.stride_c = m * n;
    ws_problem p = problem_of(&d);
    const ws_plan plan = plan_drawn(row, &p, drawn(1, 12));
    ws_cpu_run(&p, &plan);
    p.batch_count = 1;
    const ws_plan plain = plain_beside(&plan, &p);
    for (int64_t product = 0; product < count; product++) {
      p.a.data = a + (size_t)(product * d.stride_a) * type_bytes(row->type);
      p.b.data = b + (size_t)(product * d.stride_b) * type_bytes(row->type);
      p.c.data = single + (size_t)(product * d.stride_c) * type_bytes(row->type);
      ws_cpu_run(&p, &plain);
    }
    char text[DESCRIPTION_BYTES], words[WORDS_BYTES];
    CHECK(memcmp(c, single, (size_t)room * type_bytes(row->type)) == 0, "%s: %s: a batch of %lld differs from single products",
          gemm_describe(&d, text), plan_words(&plan, words), (long long)count);
    values_free(&values);
    free(a), free(b), free(c), free(single);
  }
}
static void batches(void) { rng = check_random_from(123), each_row(batches_of); }

/* Products that go without a plan have the bits of their plan. */
static void unplanned(void) {
  enum { N_SMALL = WS_SMALL_DOTS + 1 };
  static const wsgemm_type types[] = {WSGEMM_F32, WSGEMM_F64, WSGEMM_C32, WSGEMM_C64};
  rng = check_random_from(124);
  CHECK(wsgemm_default_num_threads() >= 1, "the first call, which finds out what the machine can run");
  for (int t = 0; t < 4; t++) {
    int n_seen[N_SMALL] = {0};
    for (int i = 0; i < 3000 / check_scale(); i++) {
      const int64_t m = drawn(2, drawn(0, 1) ? 8 : 40), n = drawn(2, drawn(0, 1) ? 8 : 40), k = drawn(1, drawn(0, 1) ? 12 : 300);
      struct stage stage = stage_new(types[t], m, n, k, FILL_UNIFORM, &rng);
      const struct layout_of_case where = layout_drawn(&rng);
      wsgemm_gemm_desc d = gemm_desc(types[t], WSGEMM_COL_MAJOR, draw_op(types[t], &rng), draw_op(types[t], &rng), m, n, k);
      draw_scalars(&d, false);
      case_store(&stage, &d, &where);
      ws_problem p = problem_of(&d);
      const ws_call call = ws_call_of(ws_handle(NULL));
      n_seen[ws_small_of(&call, &p, ws_row_for(&call, p.a.type))]++;
      REQUIRE(wsgemm_gemm(NULL, &d) == WSGEMM_SUCCESS, "%s", wsgemm_last_error());
      const unsigned long long digest = matrix_digest(&stage.stored[2]);
      case_store(&stage, &d, &where);
      p = problem_of(&d);
      ws_plan plan;
      ws_plan_make(&call, &p, &plan);
      ws_cpu_run(&p, &plan);
      char text[DESCRIPTION_BYTES], words[WORDS_BYTES];
      CHECK(digest == matrix_digest(&stage.stored[2]), "%s: %s: other bits than without the plan", gemm_describe(&d, text),
            plan_words(&plan, words));
      stage_free(&stage);
    }
    for (int small = WS_SMALL; small < N_SMALL; small++)
      CHECK(n_seen[small] >= 10, "type %d: %d of way %d", t, n_seen[small], small);
  }
}

static ws_plan plan_of(wsgemm_handle *h, int n_threads, int64_t m, int64_t n, ws_region region) {
  wsgemm_set_num_threads(h, n_threads);
  const ws_call call = ws_call_of(ws_handle(h));
  ws_problem p = {.m = m, .n = n, .k = 3000, .batch_count = 1};
  ws_plan plan;
  p.a.type = p.b.type = p.c.type = WSGEMM_F64;
  p.a.trans = p.b.trans = true;
  p.a.ld = 3000, p.b.ld = n, p.c.ld = m;
  p.c.region = region;
  if (region == WS_ALL)
    ws_plan_make(&call, &p, &plan);
  else
    ws_plan_structured(&call, &p, &plan);
  CHECK(plan.path == WS_PATH_PACKED, "%lld x %lld on %d threads: %s", (long long)m, (long long)n, n_threads,
        ws_path_name(plan.path));
  return plan;
}

/* Two threads share the longer side of C, in equal parts; many share a short one by rows; one shares nothing, and no region is shared so. */
static void shares(void) {
  wsgemm_handle *h = NULL;
  REQUIRE(wsgemm_create(&h) == WSGEMM_SUCCESS, "handle"); /* which finds out what the machine is */
  const ws_machine *machine = ws_machine_get();
  if (machine->l2_bytes < 1024 * 1024 || machine->near_l3_bytes < 8 * 1024 * 1024) {
    wsgemm_destroy(h);
    check_skip("in caches of %lld and %lld bytes blocks are others", (long long)machine->l2_bytes,
               (long long)machine->near_l3_bytes);
    return;
  }
  ws_plan plan = plan_of(h, 2, 100, 1000, WS_ALL);
  CHECK(plan.own_columns && plan.b_source != WS_B_OF_EACH && plan.bm >= 100,
        "wide, two threads: own columns %d, tiles of %lld rows", plan.own_columns, (long long)plan.bm);
  CHECK(ws_ceil_div(1000, plan.bn) % 2 == 0, "wide, two threads: strips of %lld", (long long)plan.bn);
  plan = plan_of(h, 2, 1600, 500, WS_ALL);
  const bool fits = 500 * 2 * plan.kc * 8 * 8 <= machine->near_l3_bytes;
  CHECK(!plan.own_columns && (plan.b_source == WS_B_OF_EACH) == fits, "tall, two threads: own columns %d, source of B %d",
        plan.own_columns, plan.b_source);
  plan = plan_of(h, 32, 600, 610, WS_ALL);
  CHECK(!plan.own_columns && plan.b_source != WS_B_OF_EACH && plan.bm < 100,
        "600 x 610, 32 threads: own columns %d, source of B %d, %lld rows", plan.own_columns, plan.b_source, (long long)plan.bm);
  plan = plan_of(h, 1, 500, 1000, WS_ALL);
  CHECK(!plan.own_columns && plan.b_source != WS_B_OF_EACH, "one thread");
  plan = plan_of(h, 2, 900, 900, WS_UPPER);
  CHECK(!plan.own_columns && plan.b_source != WS_B_OF_EACH, "a triangle of C");
  wsgemm_destroy(h);
}

static const struct check_case cases[] = {{"shares", shares},   {"odd_plans", odd_plans}, {"every_cut", every_cut},
                                          {"vectors", vectors}, {"batches", batches},     {"unplanned", unplanned}};
CHECK_MAIN("paths", cases)
