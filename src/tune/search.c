/* autotune.c - the search for what is faster than the built-in choice, the same for all backends.
 *
 * The model puts the candidates in order; as many of them as the budget lasts for are measured by successive halving: each round, all that
 * are left take turns in a drawn order, and the slower half goes. The built-in choice takes part in every round, so that both times of the
 * comparison at the end are of the same minutes. A candidate's C is compared with the built-in choice's after its first run, before any time
 * of its counts. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tune/tuning.h"

enum { MOST_RUNS = 15, EXHAUSTIVE_RUNS = 5, LEAST_RUNS_TO_WIN = 2 };

/* Of the built-in choice's time: what is not faster by this much may be noise, and is not worth a change. */
static const double hysteresis = 0.98;
/* Of the budget, for halving; the rest is for the last two. */
static const double share_of_halving = 0.65;

typedef struct arm {
  const ws_candidate *candidate;
  double us[MOST_RUNS];
  int n_runs;
  bool is_built_in, is_refused;
} arm;

typedef struct search {
  ws_arena *arena;
  const wsgemm_autotune_options *options;
  wsgemm_autotune_result *result;
  double open_ms, begin_ms, budget_ms, run_ms; /* run_ms: of one measurement, all that belongs to it */
  arm *arms;
  int n_arms, n_candidates, n_alive, round;
  uint64_t dice;
  bool is_stopped;
} search;

/* ---- small things --------------------------------------------------------------------------------------------------------------- */

static uint64_t draw(search *s) { /* splitmix64 (Steele, Lea, Flood 2014) */
  uint64_t x = s->dice += UINT64_C(0x9E3779B97F4A7C15);
  x = (x ^ x >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
  x = (x ^ x >> 27) * UINT64_C(0x94D049BB133111EB);
  return x ^ x >> 31;
}

static int ascending(const void *a, const void *b) {
  const double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

/* Infinity: not measured yet. */
static double median(const arm *a) {
  double us[MOST_RUNS];
  if (a->n_runs == 0 || a->is_refused) return HUGE_VAL;
  memcpy(us, a->us, (size_t)a->n_runs * sizeof us[0]);
  qsort(us, (size_t)a->n_runs, sizeof us[0], ascending);
  return a->n_runs % 2 ? us[a->n_runs / 2] : (us[a->n_runs / 2 - 1] + us[a->n_runs / 2]) / 2;
}

static double known(double us) { return us < HUGE_VAL ? us : 0; }

static double elapsed(const search *s) { return s->arena->is->now_ms(s->arena) - s->begin_ms; }

static void describe(const ws_candidate *c, char *text, size_t bytes) {
  ws_text t = {text, bytes, 0};
  ws_tuning_describe(c->row, &c->tuning, &t);
}

static const arm *best_of(const search *s) {
  const arm *best = &s->arms[0];
  for (int i = 1; i < s->n_arms; i++)
    if (median(&s->arms[i]) < median(best)) best = &s->arms[i];
  return best;
}

/* Tells the caller; us as in wsgemm_autotune_step. */
static void tell(search *s, const arm *a, double us) {
  char candidate[192], best_text[192];
  if (!s->options->progress) return;
  const arm *best = best_of(s);
  describe(a->candidate, candidate, sizeof candidate);
  describe(best->candidate, best_text, sizeof best_text);
  const wsgemm_autotune_step step = {.candidate = candidate,
                                     .best = best_text,
                                     .us = us,
                                     .best_us = known(median(best)),
                                     .built_in_us = known(median(&s->arms[0])),
                                     .model = a->candidate->model / s->arms[0].candidate->model,
                                     .candidate_idx = (int)(a - s->arms),
                                     .n_candidates = s->n_candidates,
                                     .n_alive = s->n_alive,
                                     .round = s->round,
                                     .elapsed_ms = elapsed(s),
                                     .budget_ms = s->budget_ms};
  if (s->options->progress(s->options->user, &step) != 0) s->is_stopped = true;
}

/* ---- measuring ------------------------------------------------------------------------------------------------------------------ */

/* What one candidate may fail of without ending the search. */
static bool is_of_candidate(wsgemm_status status) {
  return status == WSGEMM_ARCH_MISMATCH || status == WSGEMM_NOT_SUPPORTED || status == WSGEMM_ALLOC_FAILED;
}

static wsgemm_status verify(search *s, arm *a) {
  bool differs = false;
  if (a->is_built_in) return s->arena->is->keep(s->arena);
  const wsgemm_status status = s->arena->is->differs(s->arena, &differs);
  if (!status && differs) a->is_refused = true;
  return status;
}

static wsgemm_status measure(search *s, arm *a) {
  const ws_arena_class *is = s->arena->is;
  const ws_tuning *tuning = &a->candidate->tuning;
  const bool is_first = a->n_runs == 0;
  double us = 0, begin_ms = is->now_ms(s->arena);
  wsgemm_status status = is_first ? is->prepare(s->arena, tuning) : WSGEMM_SUCCESS;
  if (!status && is_first && a->is_built_in) { /* what all candidates share is loaded now, and in nobody's time */
    status = is->run(s->arena, tuning, &us);
    s->begin_ms = begin_ms = is->now_ms(s->arena);
    if (!status) status = is->prepare(s->arena, tuning);
  }
  if (!status) status = is->run(s->arena, tuning, &us);
  if (!status && is_first) status = verify(s, a);
  if (status && (a->is_built_in || !is_of_candidate(status))) return status;
  if (status) a->is_refused = true;
  s->run_ms = is->now_ms(s->arena) - begin_ms;
  if (a->is_refused) {
    s->result->n_refused++;
  } else {
    if (is_first) s->result->n_measured++;
    a->us[a->n_runs++] = us;
  }
  tell(s, a, a->is_refused ? -1 : us);
  return WSGEMM_SUCCESS;
}

/* Whether another measurement would end after so much of the budget. */
static bool is_over(const search *s, double share) {
  if (s->is_stopped) return true;
  return share < HUGE_VAL && elapsed(s) + s->run_ms > share * s->budget_ms;
}

/* ---- halving -------------------------------------------------------------------------------------------------------------------- */

/* Infinity: not measured yet. Of so few runs as a round has, the median is too often of one that was disturbed. */
static double least(const arm *a) {
  double us = HUGE_VAL;
  for (int i = 0; i < a->n_runs && !a->is_refused; i++) us = fmin(us, a->us[i]);
  return us;
}

static int by_least(const void *a, const void *b) {
  const arm *x = *(arm *const *)a, *y = *(arm *const *)b;
  const double least_x = least(x), least_y = least(y);
  if (least_x != least_y) return least_x < least_y ? -1 : 1;
  return (x > y) - (x < y); /* so that it does not depend on qsort */
}

static void shuffle(search *s, arm **alive) {
  for (int i = s->n_alive - 1; i > 0; i--) {
    const int j = (int)(draw(s) % (uint64_t)(i + 1));
    arm *const other = alive[i];
    alive[i] = alive[j], alive[j] = other;
  }
}

/* n_runs of each, in turn. */
static wsgemm_status run_all(search *s, arm **alive, int n_runs, double share) {
  for (int run = 0; run < n_runs; run++) {
    shuffle(s, alive);
    for (int i = 0; i < s->n_alive; i++) {
      if (alive[i]->n_runs == MOST_RUNS || alive[i]->is_refused) continue;
      if (is_over(s, share)) return WSGEMM_SUCCESS;
      const wsgemm_status status = measure(s, alive[i]);
      if (status) return status;
    }
  }
  return WSGEMM_SUCCESS;
}

/* The better `n`, and the built-in choice. */
static void keep_best(search *s, arm **alive, int n) {
  int n_others = 0, n_alive = 0;
  qsort(alive, (size_t)s->n_alive, sizeof alive[0], by_least);
  for (int i = 0; i < s->n_alive; i++)
    if (alive[i]->is_built_in || (n_others < n && least(alive[i]) < HUGE_VAL)) {
      n_others += !alive[i]->is_built_in;
      alive[n_alive++] = alive[i];
    }
  s->n_alive = n_alive;
}

static wsgemm_status halve(search *s, arm **alive) {
  int n_rounds = 1;
  wsgemm_status status = WSGEMM_SUCCESS;
  while (2 << n_rounds < s->n_alive) n_rounds++;
  const double round_ms = share_of_halving * s->budget_ms / n_rounds;
  for (; !status && (s->n_alive > 3 || s->round == 0) && !is_over(s, share_of_halving); s->round++) {
    const double runs = s->run_ms > 0 ? round_ms / (s->n_alive * s->run_ms) : MOST_RUNS;
    status = run_all(s, alive, runs < 1 ? 1 : runs > 5 ? 5 : (int)runs, share_of_halving);
    keep_best(s, alive, s->n_alive / 2);
  }
  if (status) return status;
  keep_best(s, alive, 2);
  return run_all(s, alive, MOST_RUNS, 1);
}

/* Each once, then as often as the budget lasts. */
static wsgemm_status run_exhaustively(search *s, arm **alive) {
  const wsgemm_status status = run_all(s, alive, 1, HUGE_VAL);
  return status ? status : run_all(s, alive, EXHAUSTIVE_RUNS - 1, 1);
}

static wsgemm_status run_search(search *s) {
  arm **alive = malloc((size_t)s->n_arms * sizeof *alive);
  if (!alive) return ws_fail(s->arena->h, WSGEMM_ALLOC_FAILED, "no memory for %d candidates", s->n_arms);
  wsgemm_status status = measure(s, &s->arms[0]);
  /* The first run of each costs most: half of the time of halving is for these. */
  if (!s->options->is_exhaustive && s->run_ms > 0) {
    const double lasts_for = share_of_halving / 2 * s->budget_ms / s->run_ms;
    if (lasts_for < s->n_arms) s->n_arms = lasts_for < 2 ? 2 : (int)lasts_for;
    if (s->n_arms > s->n_candidates) s->n_arms = s->n_candidates;
  }
  for (int i = 0; i < s->n_arms; i++) alive[i] = &s->arms[i];
  s->n_alive = s->n_arms;
  if (!status && !s->is_stopped) status = s->options->is_exhaustive ? run_exhaustively(s, alive) : halve(s, alive);
  free(alive);
  return status;
}

/* ---- the whole ------------------------------------------------------------------------------------------------------------------ */

static int by_model(const void *a, const void *b) {
  const ws_candidate *x = a, *y = b;
  return (x->model > y->model) - (x->model < y->model);
}

/* Without what was measured once, where others were measured more often: the budget may end in the middle of things. Of an exhaustive search
 * once may be all. */
static const arm *winner_of(const search *s) {
  const arm *built_in = &s->arms[0], *best = built_in;
  for (int i = 1; i < s->n_arms; i++) {
    const arm *a = &s->arms[i];
    if (a->n_runs < LEAST_RUNS_TO_WIN && a->n_runs < built_in->n_runs && !(s->options->is_exhaustive && !s->is_stopped)) continue;
    if (median(a) < median(best)) best = a;
  }
  return median(best) <= hysteresis * median(built_in) ? best : built_in;
}

static void set_result(search *s, const arm *winner, ws_tuning_entry *e) {
  wsgemm_autotune_result *r = s->result;
  r->before_us = known(median(&s->arms[0])), r->after_us = known(median(winner));
  r->is_better = !winner->is_built_in, r->is_interrupted = s->is_stopped;
  r->elapsed_ms = s->arena->is->now_ms(s->arena) - s->open_ms;
  describe(s->arms[0].candidate, r->before, sizeof r->before);
  describe(winner->candidate, r->after, sizeof r->after);
  *e = s->arena->entry;
  memcpy(e->row, winner->candidate->row, sizeof e->row);
  e->tuning = winner->candidate->tuning;
  e->before_us = r->before_us, e->after_us = r->after_us;
}

/* What is in force for this product takes part whatever the model says of it, or a search could put something slower in its place. */
static void put_second(search *s, ws_candidate *candidates) {
  const ws_tuning_entry *e = &s->arena->entry;
  const ws_tuned in_force = ws_tune_find(1 + s->arena->device, &e->kind, &e->shape);
  for (int i = 2; i < s->n_candidates && in_force.by != WS_TUNED_BY_MODEL; i++)
    if (memcmp(&candidates[i].tuning, &in_force.tuning, sizeof in_force.tuning) == 0) {
      const ws_candidate found = candidates[i];
      memmove(candidates + 2, candidates + 1, (size_t)(i - 1) * sizeof *candidates);
      candidates[1] = found;
      return;
    }
}

static wsgemm_status search_among(search *s, ws_candidate *candidates, ws_tuning_entry *e) {
  wsgemm_status status = WSGEMM_SUCCESS;
  qsort(candidates + 1, (size_t)s->n_candidates - 1, sizeof *candidates, by_model);
  if (s->budget_ms > 0) put_second(s, candidates);
  s->n_arms = s->n_alive = s->n_candidates;
  for (int i = 0; i < s->n_arms; i++) s->arms[i].candidate = &candidates[i], s->arms[i].is_built_in = i == 0;
  if (s->budget_ms == 0)
    for (int i = 0; i < s->n_arms && !s->is_stopped; i++) tell(s, &s->arms[i], 0);
  else
    status = run_search(s);
  if (!status) set_result(s, winner_of(s), e);
  return status;
}

wsgemm_status ws_search(ws_arena *arena, const wsgemm_autotune_options *options, wsgemm_autotune_result *result,
                        ws_tuning_entry *e) {
  search s = {.arena = arena,
              .options = options,
              .result = result,
              .open_ms = arena->is->now_ms(arena),
              .budget_ms = options->budget_ms,
              .dice = options->seed};
  *result = (wsgemm_autotune_result){0};
  wsgemm_status status = arena->is->open(arena);
  ws_candidate *candidates = calloc(WS_MOST_CANDIDATES, sizeof *candidates);
  s.arms = calloc(WS_MOST_CANDIDATES, sizeof *s.arms);
  if (!status && (!candidates || !s.arms)) status = ws_fail(arena->h, WSGEMM_ALLOC_FAILED, "no memory for a search");
  s.begin_ms = arena->is->now_ms(arena);
  if (!status) s.n_candidates = result->n_candidates = arena->is->candidates(arena, candidates);
  if (!status && s.n_candidates == 0)
    status = ws_fail(arena->h, WSGEMM_NOT_SUPPORTED, "there is nothing to choose for this product");
  if (!status) status = search_among(&s, candidates, e);
  free(s.arms);
  free(candidates);
  arena->is->close(arena);
  return status;
}
