/* test_autotune.c - the search for the fastest candidate, in an arena of the suite's own: times,
 * failures and the clock are invented, so what must be found is known beforehand. */
#include "support/check.h"
#include "tune/tuning.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- an invented machine --------------------------------------------------------------------- */

enum { MOST = WS_MOST_CANDIDATES, MOST_LOG = 20000, CLOCK_BEGINS_MS = 1000000 };

typedef struct fake {
  double us, model;
  bool is_wrong;                /* its C differs */
  wsgemm_status prepares, runs; /* what these return, from the run of number `fails_from` on */
  int fails_from;
  int n_runs;             /* that were good */
  int slow_from, slow_to; /* runs that take six times as long; 0: none */
} fake;

typedef struct lab {
  ws_arena arena;
  fake candidates[MOST]; /* as listed: by number, which stands in mc - 1 */
  int n;
  /* of each run, besides its time; more of the very first */
  double clock_ms, run_costs_ms, first_run_costs_ms;
  /* relative; share of runs that take up to four times as long */
  double noise, outliers;
  /* all slows down, or gets faster, by this part within so much time */
  double drift, drift_ms;
  struct check_random rng;
  wsgemm_status opens, lists, keeps, compares;
  int n_opened, n_closed, n_prepared, n_runs, n_kept;
  int c, expected; /* stands for the bits of C */
  int log[MOST_LOG];
} lab;

static lab the_lab;

static wsgemm_status lab_open(ws_arena *arena) {
  lab *l = arena->own;
  l->n_opened++;
  arena->entry = (ws_tuning_entry){.device = {"lab", "made/up", 1, false}, .shape = {5, 6, 7, 1}};
  return l->opens;
}

static wsgemm_status lab_candidates(ws_arena *arena, ws_candidate *candidates, int *n) {
  lab *l = arena->own;
  for (int i = 0; i < l->n; i++) {
    candidates[i].tuning.mc = i + 1;
    snprintf(candidates[i].row, sizeof candidates[i].row, "row_%d", i);
    candidates[i].model = l->candidates[i].model;
  }
  *n = l->n;
  return l->lists;
}

static fake *fake_of(lab *l, const ws_tuning *tuning) {
  REQUIRE(tuning->mc >= 1 && tuning->mc <= l->n, "a tuning that was never listed");
  return &l->candidates[tuning->mc - 1];
}

static wsgemm_status lab_prepare(ws_arena *arena, const ws_tuning *tuning) {
  lab *l = arena->own;
  const fake *f = fake_of(l, tuning);
  l->n_prepared++;
  l->c = -1;
  return f->prepares;
}

static wsgemm_status lab_run(ws_arena *arena, const ws_tuning *tuning, double *us) {
  lab *l = arena->own;
  fake *f = fake_of(l, tuning);
  double factor = 1 + l->noise * check_random_unit(&l->rng);
  if (fabs(check_random_unit(&l->rng)) < l->outliers) factor *= 2.5 + 1.5 * check_random_unit(&l->rng);
  if (l->n_runs == 0) factor *= 1 + l->first_run_costs_ms;
  factor *= 1 + l->drift * fmin(1, (l->clock_ms - CLOCK_BEGINS_MS) / l->drift_ms);
  if (f->slow_from && f->n_runs + 1 >= f->slow_from && f->n_runs + 1 <= f->slow_to) factor *= 6;
  *us = f->us * factor;
  l->clock_ms += *us / 1e3 + l->run_costs_ms;
  REQUIRE(l->n_runs < MOST_LOG, "the search does not end");
  l->log[l->n_runs++] = tuning->mc - 1;
  if (f->runs && f->n_runs + 1 >= f->fails_from) return f->runs;
  f->n_runs++;
  l->c = f->is_wrong ? tuning->mc + 1 : 1;
  return WSGEMM_SUCCESS;
}

static wsgemm_status lab_keep(ws_arena *arena) {
  lab *l = arena->own;
  l->n_kept++;
  l->expected = l->c;
  return l->keeps;
}

static wsgemm_status lab_differs(ws_arena *arena, bool *differs) {
  lab *l = arena->own;
  CHECK(l->n_kept == 1, "C is compared before there is one to compare with");
  *differs = l->c != l->expected;
  return l->compares;
}

static double lab_now_ms(ws_arena *arena) { return ((const lab *)arena->own)->clock_ms; }
static void lab_close(ws_arena *arena) { ((lab *)arena->own)->n_closed++; }

static const ws_arena_class lab_class = {lab_open, lab_candidates, lab_prepare, lab_run,
                                         lab_keep, lab_differs,    lab_now_ms,  lab_close};

/* n candidates, the built-in one of 100 us first; the others take 101 .. 200 us, and the model has
 * no idea. */
static lab *lab_new(int n, unsigned long long salt) {
  lab *l = &the_lab;
  memset(l, 0, sizeof *l);
  l->rng = check_random_from(salt);
  l->arena = (ws_arena){.is = &lab_class, .h = ws_handle(NULL), .own = l, .device = -1};
  l->n = n;
  l->clock_ms = CLOCK_BEGINS_MS, l->drift_ms = 1;
  for (int i = 0; i < n; i++) {
    const double us = 101 + 99 * fabs(check_random_unit(&l->rng)), model = 1 + fabs(check_random_unit(&l->rng));
    l->candidates[i] = (fake){.us = i == 0 ? 100 : us, .model = i == 0 ? 1.5 : model};
  }
  return l;
}

/* ---- one search ------------------------------------------------------------------------------ */

typedef struct outcome {
  wsgemm_status status;
  wsgemm_autotune_result result;
  ws_tuning_entry entry;
  bool is_settled;
  int n_steps, n_minus, n_zero; /* told; as refused, as not measured */
  double noise;                 /* told at last */
} outcome;

static struct {
  lab *l;
  int n_steps, stop_at, n_minus, n_zero, least_alive;
  double last_model, noise;
} told;

static int progress(void *user, const wsgemm_autotune_step *step) {
  char row[40];
  CHECK(user == &told, "the caller's pointer");
  told.n_steps++;
  told.n_minus += step->us < 0, told.n_zero += step->us == 0;
  CHECK(step->n_candidates == told.l->n && step->candidate_idx >= 0 && step->candidate_idx < told.l->n, "candidate %d of %d",
        step->candidate_idx, step->n_candidates);
  CHECK(sscanf(step->candidate, "row=%39s mc=", row) == 1 && strncmp(step->best, "row=row_", 8) == 0, "\"%s\", \"%s\"",
        step->candidate, step->best);
  CHECK(step->n_survivors >= 1 && step->n_survivors <= told.l->n && step->round >= 0 && step->elapsed_ms >= 0, "step %d",
        told.n_steps);
  told.noise = step->noise;
  if (step->us > 0) CHECK(step->best_us > 0 && step->built_in_us > 0 && step->best_us <= step->built_in_us, "medians");
  if (step->us == 0) {
    CHECK(told.n_steps == 1 ? step->model == 1 : step->model >= told.last_model, "not in the model's order");
    told.last_model = told.n_steps == 1 ? 0 : step->model;
  }
  return told.n_steps == told.stop_at;
}

static outcome search_with(lab *l, double budget_ms, int is_exhaustive, uint64_t seed, int stop_at) {
  outcome o = {.status = WSGEMM_SUCCESS};
  memset(&told, 0, sizeof told);
  told.l = l, told.stop_at = stop_at;
  wsgemm_autotune_options options = WSGEMM_AUTOTUNE_OPTIONS_INIT;
  options.budget_ms = budget_ms, options.is_exhaustive = is_exhaustive, options.seed = seed;
  options.progress = progress, options.user = &told;
  l->arena.seed = seed;
  o.status = ws_search(&l->arena, &options, &o.result, &o.entry, &o.is_settled);
  CHECK(l->n_opened == 1 && l->n_closed == 1, "opened %d times, closed %d times", l->n_opened, l->n_closed);
  o.n_steps = told.n_steps, o.n_minus = told.n_minus, o.n_zero = told.n_zero, o.noise = told.noise;
  return o;
}

static outcome search(lab *l, double budget_ms) { return search_with(l, budget_ms, 0, 1, 0); }

/* The number of the winner; the result's fields must agree with it. */
static int winner_of(const outcome *o) {
  int row = -1;
  char text[40];
  REQUIRE(o->status == WSGEMM_SUCCESS && sscanf(o->entry.row, "row_%d", &row) == 1, "status %d, row %s", (int)o->status,
          o->entry.row);
  snprintf(text, sizeof text, "row=row_%d mc=%d", row, row + 1);
  CHECK(strcmp(o->result.after, text) == 0 && strcmp(o->result.before, "row=row_0 mc=1") == 0, "before %s, after %s",
        o->result.before, o->result.after);
  CHECK(o->entry.tuning.mc == row + 1 && o->entry.shape.n == 6 && strcmp(o->entry.device.name, "lab") == 0, "entry");
  CHECK(o->result.is_better == (row != 0) && o->entry.before_us == o->result.before_us && o->entry.after_us == o->result.after_us,
        "result");
  return row;
}

/* ---- cases ----------------------------------------------------------------------------------- */

static void fastest_is_found(void) {
  static const int counts[] = {1, 2, 3, 4, 5, 7, 8, 33, 100, 512};
  for (size_t c = 0; c < sizeof counts / sizeof counts[0]; c++)
    for (int at = 0; at<counts[c]; at += counts[c]> 40 ? 37 : 1) {
      lab *l = lab_new(counts[c], 400 + (unsigned)at);
      l->candidates[at].us = 60; /* of the built-in choice too: then it stays */
      const outcome o = search(l, 1e6);
      CHECK(winner_of(&o) == at, "of %d: %d instead of %d", l->n, winner_of(&o), at);
      CHECK(o.result.after_us == 60 && o.result.before_us == l->candidates[0].us, "%g and %g us", o.result.before_us,
            o.result.after_us);
      CHECK(o.result.n_candidates == l->n && o.result.n_measured == l->n && o.result.n_refused == 0 && !o.result.is_interrupted,
            "%d of %d measured", o.result.n_measured, o.result.n_candidates);
      for (int i = 1; i < l->n; i++)
        CHECK(l->candidates[i].n_runs <= l->candidates[0].n_runs, "candidate %d ran %d times, the built-in choice %d", i,
              l->candidates[i].n_runs, l->candidates[0].n_runs);
    }
}

/* What the first run of all loads is in nobody's time, and not in the budget. */
static void first_run(void) {
  lab *l = lab_new(20, 410);
  l->first_run_costs_ms = 1e5;
  l->candidates[7].us = 90;
  const outcome o = search(l, 100);
  CHECK(winner_of(&o) == 7 && o.result.before_us == 100 && o.result.n_measured == 20, "%d, %g us, %d measured", winner_of(&o),
        o.result.before_us, o.result.n_measured);
}

static void wrong_is_refused(void) {
  for (int n_wrong = 1; n_wrong <= 6; n_wrong++)
    for (int is_exhaustive = 0; is_exhaustive < 2; is_exhaustive++) {
      lab *l = lab_new(30, 420);
      l->candidates[9].us = 80;
      for (int i = 1; i <= n_wrong; i++) l->candidates[3 * i + 1].us = 10, l->candidates[3 * i + 1].is_wrong = true;
      const outcome o = search_with(l, 1e6, is_exhaustive, 1, 0);
      CHECK(winner_of(&o) == 9 && o.result.n_refused == n_wrong && o.n_minus == n_wrong, "%d wins, %d refused, %d told",
            winner_of(&o), o.result.n_refused, o.n_minus);
      CHECK(o.result.n_measured == 30 - n_wrong, "%d measured", o.result.n_measured);
      for (int i = 1; i <= n_wrong; i++) CHECK(l->candidates[3 * i + 1].n_runs == 1, "a refused candidate runs on");
    }
  lab *l = lab_new(5, 421);
  for (int i = 1; i < 5; i++) l->candidates[i].us = 10, l->candidates[i].is_wrong = true;
  const outcome o = search(l, 1e6);
  CHECK(winner_of(&o) == 0 && o.result.n_refused == 4, "all others are wrong: %d", winner_of(&o));
}

static void budgets(void) {
  for (double budget_ms = 1e-6; budget_ms < 200; budget_ms = budget_ms * 1.7 + 0.05) {
    lab *l = lab_new(100, 430);
    for (int i = 0; i < l->n; i++) l->candidates[i].us = 100;
    /* the model knows, so that it is among the first */
    l->candidates[31].us = 50, l->candidates[31].model = 0.5;
    l->run_costs_ms = 0.1;
    const double begin_ms = l->clock_ms;
    const outcome o = search(l, budget_ms);
    const double spent_ms = l->clock_ms - begin_ms - 0.2; /* without the run that nobody counts */
    CHECK(spent_ms <= (budget_ms > 0.2 ? 1.25 * budget_ms : 0.2) + 0.06, "a budget of %g ms: %g", budget_ms, spent_ms);
    CHECK(l->n_runs >= 2 && o.result.elapsed_ms >= spent_ms, "%d runs, %g ms told", l->n_runs, o.result.elapsed_ms);
    if (budget_ms > 4) CHECK(spent_ms > 0.5 * budget_ms || l->n_runs > 200, "%g of %g ms are used", spent_ms, budget_ms);
    if (budget_ms > 4) CHECK(winner_of(&o) == 31, "in %g ms: %d", budget_ms, winner_of(&o));
    double most = 0, least = HUGE_VAL; /* of the models of those that ran, and did not */
    for (int i = 1; i < l->n; i++)
      if (l->candidates[i].n_runs > 0)
        most = fmax(most, l->candidates[i].model);
      else
        least = fmin(least, l->candidates[i].model);
    if (budget_ms > 4) CHECK(most <= least, "in %g ms: one of model %g ran, one of %g did not", budget_ms, most, least);
  }
  /* a clock that stands still; one that leaps; no end */
  for (int strange = 0; strange < 3; strange++) {
    lab *l = lab_new(40, 431);
    for (int i = 0; i < l->n; i++) l->candidates[i].us = strange == 0 ? 1e-12 : strange == 1 ? 1e12 : 100;
    const outcome o = search(l, strange == 2 ? (double)INFINITY : 1);
    CHECK(winner_of(&o) == 0, "clock %d: %d wins", strange, winner_of(&o));
    CHECK(strange == 1 ? l->n_runs == 2 && o.result.n_measured == 1 : o.result.n_measured == 40, "clock %d: %d runs", strange,
          l->n_runs);
  }
}

static void no_budget(void) {
  for (int is_exhaustive = 0; is_exhaustive < 2; is_exhaustive++)
    for (int stop_at = 0; stop_at <= 50; stop_at += 25) {
      lab *l = lab_new(60, 440);
      const outcome o = search_with(l, 0, is_exhaustive, 1, stop_at);
      const int n_told = stop_at ? stop_at : 60;
      CHECK(winner_of(&o) == 0 && l->n_runs == 0 && l->n_prepared == 0, "%d runs without a budget", l->n_runs);
      CHECK(o.n_steps == n_told && o.n_zero == n_told, "%d steps, %d of them not measured", o.n_steps, o.n_zero);
      CHECK(o.result.n_measured == 0 && o.result.before_us == 0 && o.result.after_us == 0 && o.result.n_candidates == 60 &&
                o.result.is_interrupted == (stop_at > 0),
            "result");
    }
}

/* Whoever wins was measured beside the built-in choice in blocks at the end. */
static bool is_confirmed(const lab *l, int winner) {
  int n_winner = 0, n_built_in = 0;
  for (int i = l->n_runs - 1; i >= 0 && n_winner + n_built_in < 10 && (l->log[i] == winner || l->log[i] == 0); i--)
    n_winner += l->log[i] == winner, n_built_in += l->log[i] == 0;
  return n_winner + n_built_in == 10 && n_winner == 5;
}

static void interrupted(void) {
  enum { N = 24 };
  for (int is_exhaustive = 0; is_exhaustive < 2; is_exhaustive++) {
    int n_better = 0, n_steps = 1;
    for (int stop_at = 1; stop_at <= n_steps; stop_at++) {
      lab *l = lab_new(N, 450);
      for (int i = 1; i < N; i++) l->candidates[i].us = 100 - i, l->candidates[i].is_wrong = i % 5 == 0;
      const outcome o = search_with(l, 20, is_exhaustive, 3, stop_at);
      const bool is_stopped = o.n_steps == stop_at;
      if (is_stopped) n_steps++;
      CHECK(o.status == WSGEMM_SUCCESS && o.result.is_interrupted == is_stopped, "stopped at %d: %d", stop_at,
            o.result.is_interrupted);
      CHECK(o.n_steps <= stop_at && l->n_runs == o.n_steps + 1, "stopped at %d: %d steps, %d runs", stop_at, o.n_steps,
            l->n_runs);
      CHECK(winner_of(&o) == 0 || is_confirmed(l, winner_of(&o)), "stopped at %d: %d was not confirmed", stop_at, winner_of(&o));
      CHECK(o.is_settled == !is_stopped, "stopped at %d: settled %d", stop_at, o.is_settled);
      n_better += o.result.is_better;
      if (!is_stopped) CHECK(winner_of(&o) == N - 1, "to the end: %d", winner_of(&o));
    }
    CHECK(n_steps > 100 && n_better > 0, "%d steps, something better found at %d of them", n_steps, n_better);
  }
}

static void same_seed(void) {
  static int log[3][MOST_LOG];
  int n_runs[3];
  for (int run = 0; run < 3; run++) {
    lab *l = lab_new(50, 460);
    const outcome o = search_with(l, 30, 0, run < 2 ? 5 : 6, 0);
    CHECK(o.status == WSGEMM_SUCCESS, "status %d", (int)o.status);
    n_runs[run] = l->n_runs;
    memcpy(log[run], l->log, sizeof l->log);
  }
  CHECK(n_runs[0] == n_runs[1] && memcmp(log[0], log[1], sizeof log[0]) == 0, "one seed, two orders");
  CHECK(memcmp(log[0], log[2], sizeof log[0]) != 0, "two seeds, one order");
}

static void hysteresis(void) {
  static const struct {
    double us;
    int winner;
  } table[] = {{100, 0}, {99.9, 0}, {98.5, 0}, {98.1, 0}, {97.9, 3}, {97, 3}, {1, 3}};
  for (size_t i = 0; i < sizeof table / sizeof table[0]; i++)
    for (int is_exhaustive = 0; is_exhaustive < 2; is_exhaustive++) {
      lab *l = lab_new(6, 470);
      l->candidates[3].us = table[i].us;
      const outcome o = search_with(l, 1e6, is_exhaustive, 1, 0);
      CHECK(winner_of(&o) == table[i].winner, "%g us for 100: %d", table[i].us, winner_of(&o));
    }
}

/* One that fails in the middle of its confirmation leaves runs of the built-in choice behind that
 * count for nothing; the next survivor, which loses a block, then needs the most runs that there
 * can be: all of them have room. */
static void refused_while_confirmed(void) {
  enum { HALVING = 15, BLOCK = 3 };
  /* of the later ones none are left for the next survivor */
  for (int block = 0; block < 4; block++)
    for (int run = 1; run <= BLOCK; run++) {
      lab *l = lab_new(300, 481);
      for (int i = 0; i < l->n; i++) l->candidates[i].us = i == 0 ? 10 : 20 + i, l->candidates[i].model = i + 1;
      l->run_costs_ms = 1;
      l->candidates[1].us = 4, l->candidates[2].us = 5;
      l->candidates[1].runs = WSGEMM_ALLOC_FAILED, l->candidates[1].fails_from = HALVING + BLOCK * block + run;
      l->candidates[2].slow_from = HALVING + 1, l->candidates[2].slow_to = HALVING + BLOCK;
      const outcome o = search(l, 1e7);
      CHECK(winner_of(&o) == 2 && o.result.n_refused == 1, "block %d, run %d: %d wins, %d refused", block, run, winner_of(&o),
            o.result.n_refused);
    }
}

/* ---- failures -------------------------------------------------------------------------------- */

/* Of one candidate alone: it is left out, from whichever run on. */
static void left_out(void) {
  static const wsgemm_status statuses[] = {WSGEMM_ARCH_MISMATCH, WSGEMM_NOT_SUPPORTED, WSGEMM_ALLOC_FAILED};
  for (int s = 0; s < 3; s++)
    for (int fails_from = 0; fails_from <= 6; fails_from++) {
      lab *l = lab_new(20, 480);
      fake *best = &l->candidates[4];
      best->us = 10, l->candidates[11].us = 70;
      if (fails_from == 0)
        best->prepares = statuses[s];
      else
        best->runs = statuses[s], best->fails_from = fails_from;
      const outcome o = search(l, 1e6);
      CHECK(winner_of(&o) == 11 && o.result.n_refused == 1 && o.n_minus == 1, "run %d fails with %d: %d wins, %d refused",
            fails_from, (int)statuses[s], winner_of(&o), o.result.n_refused);
    }
}

static void ended_by_errors(void) {
  for (int fails_from = 1; fails_from <= 8; fails_from++)
    for (int at = 0; at < 10; at += 3) {
      lab *l = lab_new(10, 481);
      l->candidates[at].us = 50, l->candidates[at].runs = WSGEMM_DEVICE_ERROR, l->candidates[at].fails_from = fails_from;
      const outcome o = search(l, 1e6);
      CHECK(o.status == WSGEMM_DEVICE_ERROR && l->log[l->n_runs - 1] == at, "status %d, last run of %d", (int)o.status,
            l->log[l->n_runs - 1]);
    }
  for (int what = 0; what < 7; what++) {
    lab *l = lab_new(10, 482);
    wsgemm_status expected = WSGEMM_DEVICE_ERROR;
    if (what == 0) l->opens = expected = WSGEMM_ALLOC_FAILED;
    if (what == 1) l->keeps = expected;
    if (what == 2) l->compares = expected;
    if (what == 3) l->n = 0, expected = WSGEMM_NOT_SUPPORTED;
    /* there is no built-in choice to go back to */
    if (what == 4) l->candidates[0].prepares = expected = WSGEMM_ARCH_MISMATCH;
    if (what == 5) l->candidates[0].runs = expected = WSGEMM_ARCH_MISMATCH, l->candidates[0].fails_from = 4;
    if (what == 6) l->lists = expected; /* not: there is nothing to choose */
    const outcome o = search(l, 1e6);
    CHECK(o.status == expected, "failure %d: status %d", what, (int)o.status);
    if (what == 0 || what == 3 || what == 6) CHECK(l->n_runs == 0, "failure %d: %d runs", what, l->n_runs);
  }
}

/* ---- noise ----------------------------------------------------------------------------------- */

/* Outliers, as from other work on the machine, only ever add time. */
static void noise(void) {
  const int n_searches = check_scale() > 1 ? 40 : 150;
  int n_found = 0, n_stayed = 0, n_near = 0;
  for (int i = 0; i < n_searches; i++) {
    lab *l = lab_new(60, 500 + (unsigned)i);
    for (int c = 1; c < l->n; c++) l->candidates[c].us = 100 + c % 10;
    l->candidates[1 + i % 59].us = 80;
    l->noise = 0.05, l->outliers = 0.3;
    const outcome o = search_with(l, 400, 0, (uint64_t)i, 0);
    n_found += winner_of(&o) == 1 + i % 59;
    l = lab_new(60, 900 + (unsigned)i);
    for (int c = 0; c < l->n; c++) l->candidates[c].us = 100;
    l->noise = 0.01, l->outliers = 0.3;
    const outcome equals = search_with(l, 400, 0, (uint64_t)i, 0);
    n_stayed += winner_of(&equals) == 0;
    n_near += fabs(equals.result.before_us - 100) < 5;
  }
  CHECK(n_found >= n_searches * 9 / 10, "a candidate faster by a fifth was found in %d of %d searches", n_found, n_searches);
  CHECK(n_stayed >= n_searches * 9 / 10, "of equals the built-in choice stayed in %d of %d searches", n_stayed, n_searches);
  CHECK(n_near >= n_searches * 9 / 10, "a time within outliers is right in %d of %d searches", n_near, n_searches);
}

/* ---- a busy machine -------------------------------------------------------------------------- */

enum { N_SEARCHES = 120 };

/* noise: as a standard deviation. Of searches among equals, or with one that is faster by `gain`:
 * how often something is kept, and how often what is worse. */
typedef struct count {
  int n_kept, n_right, n_worse, n_runs;
  double least_noise, most_noise;
} count;

static count search_often(int n, double gain, double noise, double drift, double outliers, double budget_ms) {
  count c = {.least_noise = HUGE_VAL};
  for (int i = 0; i < N_SEARCHES / check_scale(); i++) {
    lab *l = lab_new(n, 7000 + (unsigned)i);
    const int best = 1 + i % (n - 1);
    for (int k = 1; k < n; k++) l->candidates[k].us = gain > 0 ? 100 + k % 7 : 100;
    if (gain > 0) l->candidates[best].us = 100 / (1 + gain);
    if (gain > 0) l->candidates[best].model = 0.9; /* among the first, whatever the budget */
    l->noise = sqrt(3) * noise, l->drift = drift, l->outliers = outliers, l->run_costs_ms = 0.1;
    l->drift_ms = 0.2 * (30 + 7 * n); /* about as long as the search */
    const outcome o = search_with(l, budget_ms, 0, (uint64_t)i, 0);
    const int winner = winner_of(&o);
    c.n_kept += winner != 0, c.n_right += winner == best;
    c.n_worse += winner != 0 && l->candidates[winner].us > 100;
    c.n_runs += l->n_runs;
    c.least_noise = fmin(c.least_noise, o.noise), c.most_noise = fmax(c.most_noise, o.noise);
  }
  return c;
}

/* Over a search all gets slower, or faster, by a third. */
static void drifts(void) {
  static const double drifts[] = {0.3, -0.3, 0.05, 1};
  const int n_searches = N_SEARCHES / check_scale();
  for (size_t i = 0; i < sizeof drifts / sizeof drifts[0]; i++)
    for (int n = 2; n <= 60; n += 29) {
      const count equals = search_often(n, 0, 0, drifts[i], 0, 1e6), gain = search_often(n, 0.05, 0, drifts[i], 0, 1e6);
      CHECK(equals.n_kept == 0, "drift of %g, %d equals: %d of %d are kept", drifts[i], n, equals.n_kept, n_searches);
      CHECK(gain.n_right >= n_searches * 95 / 100 && gain.n_worse == 0,
            "drift of %g, %d candidates, one faster by 5 %%: found in %d of %d", drifts[i], n, gain.n_right, n_searches);
      if (drifts[i] >= 0.3)
        CHECK(equals.least_noise > 0.01, "a drift of %g is told as noise of %g", drifts[i], equals.least_noise);
    }
}

/* A gain of 5 % under noise of 2 %, and nothing where there is none, however large the noise. */
static void noisy_machine(void) {
  const int n_searches = N_SEARCHES / check_scale();
  for (int n = 2; n <= 60; n += 29)
    for (int drifts = 0; drifts < 2; drifts++) {
      const count gain = search_often(n, 0.05, 0.02, 0.3 * drifts, 0, 1e6);
      CHECK(gain.n_right >= n_searches * 9 / 10 && gain.n_worse == 0, "%d candidates, drift %d: found in %d of %d, worse in %d",
            n, drifts, gain.n_right, n_searches, gain.n_worse);
      for (double noise = 0.02; noise < 0.5; noise *= 2) {
        const count equals = search_often(n, 0, noise, 0.3 * drifts, 0, 1e6);
        CHECK(equals.n_kept <= n_searches * 8 / 100 + (n_searches < 50 ? 2 : 0), "%d equals, noise %g: %d of %d are kept", n,
              noise, equals.n_kept, n_searches);
        if (!drifts)
          CHECK(equals.least_noise > 0.5 * noise && equals.most_noise < 4 * noise, "noise %g is told as %g .. %g", noise,
                equals.least_noise, equals.most_noise);
      }
      const count slower = search_often(n, 0, 0.02, 0.3 * drifts, 0.3, 1e6);
      CHECK(slower.n_kept <= n_searches * 5 / 100, "%d equals, outliers: %d are kept", n, slower.n_kept);
    }
}

/* Where the budget lasts for few runs only, as of large products: none of them is luck. */
static void few_runs(void) {
  const int n_searches = N_SEARCHES / check_scale();
  for (double budget_ms = 0.3; budget_ms < 20; budget_ms *= 1.5) {
    const count equals = search_often(30, 0, 0.3, 0.3, 0.1, budget_ms), gain = search_often(30, 0.25, 0.01, 0.3, 0, budget_ms);
    CHECK(equals.n_kept <= n_searches * 8 / 100 + (n_searches < 50 ? 2 : 0), "%g ms: of equals %d of %d are kept", budget_ms,
          equals.n_kept, n_searches);
    CHECK(gain.n_worse == 0, "%g ms: %d that are worse are kept", budget_ms, gain.n_worse);
    if (budget_ms > 4)
      CHECK(gain.n_right >= n_searches * 9 / 10, "%g ms: found in %d of %d", budget_ms, gain.n_right, n_searches);
  }
}

/* What it may cost: the runs of a search were these when nothing was confirmed. */
static void cost(void) {
  static const struct { int n, n_runs; } before[] = {{2, 31}, {3, 46}, {8, 81}, {20, 186}, {60, 536}};
  for (size_t i = 0; i < sizeof before / sizeof before[0]; i++)
    for (int has_gain = 0; has_gain < 2; has_gain++) {
      const count c = search_often(before[i].n, has_gain * 0.05, 0.02, 0, 0, 1e6);
      const double mean = (double)c.n_runs / (N_SEARCHES / check_scale());
      CHECK(mean <= 1.3 * before[i].n_runs, "%d candidates: %g runs, %d before", before[i].n, mean, before[i].n_runs);
    }
}

/* Each once whatever the budget, and five times if it lasts. */
static void exhaustive(void) {
  enum { RUNS = 5 };
  for (int lasts = 0; lasts < 2; lasts++) {
    lab *l = lab_new(77, 490);
    const int n_runs = lasts ? RUNS : 1;
    l->candidates[60].us = 95, l->candidates[60].model = 9; /* the model's last */
    const outcome o = search_with(l, lasts ? 1e6 : 1e-9, 1, 1, 0);
    CHECK(o.result.n_measured == 77 && o.n_steps >= 77 * n_runs, "%d measured in %d steps", o.result.n_measured, o.n_steps);
    if (lasts) CHECK(winner_of(&o) == 60, "%d wins", winner_of(&o));
    if (!lasts) CHECK(l->n_runs <= 1.25 * 77 + 1, "%d runs of 77 candidates", l->n_runs);
    for (int i = 1; i < l->n; i++)
      CHECK(l->candidates[i].n_runs == n_runs || l->candidates[i].n_runs >= n_runs + 2, "candidate %d ran %d times", i,
            l->candidates[i].n_runs);
    CHECK(l->candidates[0].n_runs > n_runs, "the built-in choice ran %d times", l->candidates[0].n_runs);
  }
}

static const struct check_case cases[] = {{"fastest_is_found", fastest_is_found},
                                          {"first_run", first_run},
                                          {"wrong_is_refused", wrong_is_refused},
                                          {"refused_while_confirmed", refused_while_confirmed},
                                          {"budgets", budgets},
                                          {"no_budget", no_budget},
                                          {"interrupted", interrupted},
                                          {"same_seed", same_seed},
                                          {"hysteresis", hysteresis},
                                          {"left_out", left_out},
                                          {"ended_by_errors", ended_by_errors},
                                          {"noise", noise},
                                          {"drifts", drifts},
                                          {"noisy_machine", noisy_machine},
                                          {"few_runs", few_runs},
                                          {"cost", cost},
                                          {"exhaustive", exhaustive}};
CHECK_MAIN("autotune", cases)
