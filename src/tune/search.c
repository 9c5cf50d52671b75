/* search.c - the search for what is faster than the built-in choice, the same for all backends.
 *
 * The model puts the candidates in order; as many of them as the budget lasts for are measured by
 * successive halving: each round, all that are left take turns in a drawn order, and the slower
 * half goes. The built-in choice takes part in every round, so that both times of a comparison are
 * of the same minutes. A candidate's C is compared with the built-in choice's after its first run,
 * before any time of its counts.
 *
 * Times of a busy machine differ by more than candidates do, and the least of many times is luck.
 * So nothing is kept that is not confirmed: at the end a survivor and the built-in choice are
 * measured anew, side by side, in blocks of a few runs each. A drift of the machine's speed meets
 * both alike; noise makes the survivor lose blocks, of which it may lose one at most. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/status.h"
#include "tune/tuning.h"

enum {
  HALVING_RUNS = 15,
  ROUND_RUNS = 4,
  EXHAUSTIVE_RUNS = 5,
  N_SURVIVORS = 2,
  BLOCK_RUNS = 3, /* of each of both; the least counts, since what disturbs only ever adds time */
  /* A survivor that is no faster wins all of 6 blocks once in 64 times, loses one of them and wins
   * 3 more once in 85; and its gain must be 2 %, too. */
  BLOCKS_WITHOUT_LOSS = 6,
  MOST_BLOCKS = 9,
  BLOCKS_IN_ALL = 12, /* of all survivors */
  /* A block that a refusal cuts short is not counted: one for each survivor. */
  MOST_RUNS = HALVING_RUNS + (BLOCKS_IN_ALL + N_SURVIVORS) * BLOCK_RUNS
};

/* Of the built-in choice's time: what is not faster by this much is not worth a change. */
static const double hysteresis = 0.98;
/* Of the budget: for halving, less where the rest would not last for a confirmation; and until a
 * confirmation must be over. */
static const double most_of_halving = 0.65, least_of_halving = 0.25, share_of_confirming = 1.25;

/* A candidate, and what was measured of it. */
typedef struct timed {
  const ws_candidate *candidate;
  double us[MOST_RUNS];
  int n_runs, first_run; /* first_run: the first that counts; those before are of other minutes */
  double least;          /* in parts of what was usual in its turn; 0: not measured yet */
  bool is_built_in, is_refused;
} timed;

typedef struct search {
  ws_arena *arena;
  const wsgemm_autotune_options *options;
  wsgemm_autotune_result *result;
  /* run_ms: of one measurement, all that belongs to it */
  double open_ms, begin_ms, budget_ms, halving_ms, run_ms;
  double usual_us; /* of a turn */
  timed *timed;    /* the built-in choice first */
  int n_timed, n_candidates, n_survivors, n_blocks, n_runs, round;
  const timed *rival, *winner; /* rival: NULL, or the survivor that is being confirmed */
  uint64_t rng;
  bool is_stopped, is_undecided; /* is_undecided: the budget did not last for a confirmation */
} search;

/* ---- small things ---------------------------------------------------------------------------- */

static uint64_t draw(search *s) { /* splitmix64 (Steele, Lea, Flood 2014) */
  uint64_t x = s->rng += UINT64_C(0x9E3779B97F4A7C15);
  x = (x ^ x >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
  x = (x ^ x >> 27) * UINT64_C(0x94D049BB133111EB);
  return x ^ x >> 31;
}

static int ascending(const void *a, const void *b) {
  const double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

/* Sorts them; n > 0. */
static double median_of(double *x, int n) {
  qsort(x, (size_t)n, sizeof x[0], ascending);
  return n % 2 ? x[n / 2] : (x[n / 2 - 1] + x[n / 2]) / 2;
}

/* Infinity: not measured yet. */
static double median(const timed *c) {
  double us[MOST_RUNS];
  const int first = c->n_runs > c->first_run ? c->first_run : 0;
  if (c->n_runs == 0 || c->is_refused) return HUGE_VAL;
  memcpy(us, c->us + first, (size_t)(c->n_runs - first) * sizeof us[0]);
  return median_of(us, c->n_runs - first);
}

/* A quarter of the built-in choice's times differ from their median by more than this part of
 * it. */
static double noise_of(const search *s) {
  const timed *built_in = &s->timed[0];
  double us[MOST_RUNS];
  if (built_in->n_runs < 3) return 0;
  memcpy(us, built_in->us, (size_t)built_in->n_runs * sizeof us[0]);
  const double middle = median_of(us, built_in->n_runs);
  for (int i = 0; i < built_in->n_runs; i++) us[i] = fabs(us[i] - middle);
  qsort(us, (size_t)built_in->n_runs, sizeof us[0], ascending);
  return middle > 0 ? us[built_in->n_runs * 3 / 4] / middle : 0;
}

static double known(double us) { return us < HUGE_VAL ? us : 0; }

static double elapsed(const search *s) { return s->arena->is->now_ms(s->arena) - s->begin_ms; }

static void describe(const ws_candidate *c, char *text, size_t bytes) {
  ws_text t = {text, bytes, 0};
  ws_tuning_describe(c->row, &c->tuning, &t);
}

/* Of those whose times are of the same minutes. */
static const timed *best_of(const search *s) {
  const timed *best = &s->timed[0];
  if (s->rival) return median(s->rival) < median(best) ? s->rival : best;
  for (int i = 1; i < s->n_timed; i++)
    if (median(&s->timed[i]) < median(best)) best = &s->timed[i];
  return best;
}

/* Tells the caller; us as in wsgemm_autotune_step. */
static void tell(search *s, const timed *c, double us) {
  char candidate[192], best_text[192];
  if (!s->options->progress) return;
  const timed *best = best_of(s);
  describe(c->candidate, candidate, sizeof candidate);
  describe(best->candidate, best_text, sizeof best_text);
  const wsgemm_autotune_step step = {.candidate = candidate,
                                     .best = best_text,
                                     .us = us,
                                     .best_us = known(median(best)),
                                     .built_in_us = known(median(&s->timed[0])),
                                     .model = c->candidate->model / s->timed[0].candidate->model,
                                     .candidate_idx = (int)(c - s->timed),
                                     .n_candidates = s->n_candidates,
                                     .n_survivors = s->n_survivors,
                                     .round = s->round,
                                     .elapsed_ms = elapsed(s),
                                     .budget_ms = s->budget_ms,
                                     .noise = noise_of(s)};
  if (s->options->progress(s->options->user, &step) != 0) s->is_stopped = true;
}

/* ---- measuring ------------------------------------------------------------------------------- */

/* What one candidate may fail of without ending the search. */
static bool is_of_candidate(wsgemm_status status) {
  return status == WSGEMM_ARCH_MISMATCH || status == WSGEMM_NOT_SUPPORTED || status == WSGEMM_ALLOC_FAILED;
}

static wsgemm_status verify(search *s, timed *c) {
  bool differs = false;
  if (c->is_built_in) return s->arena->is->keep(s->arena);
  const wsgemm_status status = s->arena->is->differs(s->arena, &differs);
  if (!status && differs) c->is_refused = true;
  return status;
}

static wsgemm_status measure(search *s, timed *c) {
  const ws_arena_class *is = s->arena->is;
  const ws_tuning *tuning = &c->candidate->tuning;
  const bool is_first = c->n_runs == 0;
  double us = 0, begin_ms = is->now_ms(s->arena);
  wsgemm_status status = is_first ? is->prepare(s->arena, tuning) : WSGEMM_SUCCESS;
  /* what all candidates share is loaded now, and in nobody's time */
  if (!status && is_first && c->is_built_in) {
    status = is->run(s->arena, tuning, &us);
    s->begin_ms = begin_ms = is->now_ms(s->arena);
    if (!status) status = is->prepare(s->arena, tuning);
  }
  if (!status) status = is->run(s->arena, tuning, &us);
  if (!status && is_first) status = verify(s, c);
  if (status && (c->is_built_in || !is_of_candidate(status))) return status;
  if (status) c->is_refused = true;
  s->run_ms = is->now_ms(s->arena) - begin_ms, s->n_runs++;
  if (c->is_refused) {
    s->result->n_refused++;
  } else {
    if (is_first) s->result->n_measured++;
    c->us[c->n_runs++] = us;
  }
  tell(s, c, c->is_refused ? -1 : us);
  return WSGEMM_SUCCESS;
}

/* Whether another measurement would end after so much time. */
static bool is_over(const search *s, double ms) { return s->is_stopped || elapsed(s) + s->run_ms > ms; }

/* ---- halving --------------------------------------------------------------------------------- */

/* Of so few runs as a round has, the median is too often of one that was disturbed. */
static int by_least(const void *a, const void *b) {
  const timed *x = *(timed *const *)a, *y = *(timed *const *)b;
  const bool has_x = x->least > 0 && !x->is_refused, has_y = y->least > 0 && !y->is_refused;
  if (has_x != has_y) return has_x ? -1 : 1;
  if (has_x && x->least != y->least) return x->least < y->least ? -1 : 1;
  return (x > y) - (x < y); /* so that it does not depend on qsort */
}

/* Turns are of different minutes: how slow the machine was in this one tell the candidates that
 * were in others, too. Of few that may have been disturbed they tell nothing, but then turns are
 * short. */
static void take_turn(search *s, timed **turn, const double *us, int n) {
  enum { ENOUGH = 12 };
  double factors[WS_MOST_CANDIDATES];
  for (int i = 0; i < n; i++) factors[i] = turn[i]->least > 0 ? us[i] / turn[i]->least : us[i];
  qsort(factors, (size_t)n, sizeof factors[0], ascending);
  const double usual = n >= ENOUGH ? factors[n / 4] : s->usual_us; /* what disturbs only adds */
  if (usual > 0) s->usual_us = usual;
  for (int i = 0; i < n; i++)
    turn[i]->least = turn[i]->least > 0 ? fmin(turn[i]->least, us[i] / s->usual_us) : us[i] / s->usual_us;
}

static void shuffle(search *s, timed **survivors) {
  for (int i = s->n_survivors - 1; i > 0; i--) {
    const int j = (int)(draw(s) % (uint64_t)(i + 1));
    timed *const other = survivors[i];
    survivors[i] = survivors[j], survivors[j] = other;
  }
}

/* A run of each, as long as the time lasts. */
static wsgemm_status run_turn(search *s, timed **survivors, double ms) {
  timed *turn[WS_MOST_CANDIDATES];
  double us[WS_MOST_CANDIDATES];
  int n = 0;
  wsgemm_status status = WSGEMM_SUCCESS;
  shuffle(s, survivors);
  for (int i = 0; i < s->n_survivors && !status && !is_over(s, ms); i++) {
    timed *const c = survivors[i];
    if (c->n_runs == HALVING_RUNS || c->is_refused) continue;
    status = measure(s, c);
    if (!status && !c->is_refused) turn[n] = c, us[n++] = c->us[c->n_runs - 1];
  }
  take_turn(s, turn, us, n);
  return status;
}

static wsgemm_status run_turns(search *s, timed **survivors, int n_turns, double ms) {
  wsgemm_status status = WSGEMM_SUCCESS;
  for (int turn = 0; turn < n_turns && !status && !is_over(s, ms); turn++) status = run_turn(s, survivors, ms);
  return status;
}

/* The better `n` in their order, and the built-in choice. */
static void keep_best(search *s, timed **survivors, int n) {
  int n_others = 0, n_kept = 0;
  qsort(survivors, (size_t)s->n_survivors, sizeof survivors[0], by_least);
  for (int i = 0; i < s->n_survivors; i++)
    if (survivors[i]->is_built_in || (n_others < n && survivors[i]->least > 0 && !survivors[i]->is_refused)) {
      n_others += !survivors[i]->is_built_in;
      survivors[n_kept++] = survivors[i];
    }
  s->n_survivors = n_kept;
}

static wsgemm_status halve(search *s, timed **survivors) {
  /* of few, confirming says all */
  const int most = s->n_survivors <= N_SURVIVORS + 1 ? s->n_survivors - 1 : ROUND_RUNS;
  int n_rounds = 1;
  wsgemm_status status = WSGEMM_SUCCESS;
  while (2 << n_rounds < s->n_survivors) n_rounds++;
  const double round_ms = s->halving_ms / n_rounds;
  for (; !status && (s->n_survivors > N_SURVIVORS + 1 || s->round == 0) && !is_over(s, s->halving_ms); s->round++) {
    const double run_ms = elapsed(s) / s->n_runs, runs = run_ms > 0 ? round_ms / (s->n_survivors * run_ms) : most;
    status = run_turns(s, survivors, runs < 1 ? 1 : runs < most ? (int)runs : most, s->halving_ms);
    keep_best(s, survivors, s->n_survivors / 2);
  }
  return status;
}

/* Each once, then as often as the budget lasts. */
static wsgemm_status run_exhaustively(search *s, timed **survivors) {
  const wsgemm_status status = run_turns(s, survivors, 1, HUGE_VAL);
  return status ? status : run_turns(s, survivors, EXHAUSTIVE_RUNS - 1, s->budget_ms);
}

/* ---- confirming ------------------------------------------------------------------------------ */

typedef enum verdict { CONFIRMED, REFUTED, UNDECIDED } verdict;

/* n_each runs of both: in the order ABBAAB, or BAABBA, so that a drift meets both alike. *gain: of
 * the survivor, as a logarithm. */
static wsgemm_status run_block(search *s, timed *survivor, int n_each, double *gain) {
  timed *const sides[2] = {&s->timed[0], survivor};
  const int first = (int)(draw(s) & 1);
  double us[2] = {HUGE_VAL, HUGE_VAL};
  for (int i = 0; i < 2 * n_each && !s->is_stopped && !survivor->is_refused; i++) {
    const int side = first ^ ((i + 1) / 2 & 1);
    const wsgemm_status status = measure(s, sides[side]);
    if (status) return status;
    if (!sides[side]->is_refused) us[side] = fmin(us[side], sides[side]->us[sides[side]->n_runs - 1]);
  }
  *gain = us[1] > 0 ? log(us[0] / us[1]) : 0;
  return WSGEMM_SUCCESS;
}

/* Of blocks enough: whether the survivor is faster by what is worth a change. */
static verdict judge(const search *s, const timed *survivor, double *gains, int n_blocks) {
  const bool is_faster = median_of(gains, n_blocks) >= -log(hysteresis) && median(survivor) <= hysteresis * median(&s->timed[0]);
  return is_faster ? CONFIRMED : REFUTED;
}

static wsgemm_status run_blocks(search *s, timed *survivor, double ms, verdict *v) {
  double gains[MOST_BLOCKS];
  const double lasts_for = s->run_ms > 0 ? (ms - elapsed(s)) / s->run_ms : HUGE_VAL;
  /* 0.9: runs differ */
  const int n_each = (int)fmin(0.9 * lasts_for / (2 * BLOCKS_WITHOUT_LOSS), BLOCK_RUNS);
  *v = UNDECIDED;
  if (n_each < 1) return WSGEMM_SUCCESS;
  for (int n_blocks = 0, n_lost = 0; s->n_blocks < BLOCKS_IN_ALL; s->round++) {
    if (is_over(s, ms - (2 * n_each - 1) * s->run_ms)) return WSGEMM_SUCCESS;
    const wsgemm_status status = run_block(s, survivor, n_each, &gains[n_blocks]);
    if (status) return status;
    if (survivor->is_refused) *v = REFUTED;
    /* a block that was cut short says nothing */
    if (survivor->is_refused || s->is_stopped) return WSGEMM_SUCCESS;
    s->n_blocks++, n_lost += gains[n_blocks++] <= 0;
    if (n_lost > 1) *v = REFUTED;
    if (n_lost == 0 && n_blocks == BLOCKS_WITHOUT_LOSS) *v = judge(s, survivor, gains, n_blocks);
    if (n_lost == 1 && n_blocks == MOST_BLOCKS) *v = judge(s, survivor, gains, n_blocks);
    if (*v != UNDECIDED) return WSGEMM_SUCCESS;
  }
  return WSGEMM_SUCCESS;
}

/* The survivors one after the other, the best first, until one is confirmed. */
static wsgemm_status confirm(search *s, timed **survivors) {
  const double ms = share_of_confirming * fmax(s->budget_ms, s->options->is_exhaustive ? elapsed(s) : 0);
  timed *const built_in = &s->timed[0];
  wsgemm_status status = WSGEMM_SUCCESS;
  verdict v = REFUTED;
  keep_best(s, survivors, N_SURVIVORS);
  const int n = s->n_survivors;
  for (int i = 0; i < n && v != CONFIRMED && !status && !s->is_stopped; i++) {
    timed *const survivor = survivors[i];
    if (survivor->is_built_in) continue;
    built_in->first_run = built_in->n_runs, survivor->first_run = survivor->n_runs;
    s->rival = survivor, s->n_survivors = 2;
    status = run_blocks(s, survivor, ms, &v);
    if (v == CONFIRMED) s->winner = survivor;
    if (v == UNDECIDED) s->is_undecided = true;
    if (v != CONFIRMED) built_in->first_run = survivor->first_run = 0;
  }
  return status;
}

/* After the first measurement: how much time halving gets, and for how many candidates that
 * lasts. */
static void share_budget(search *s) {
  const double confirming = s->budget_ms > 0 ? 2 * BLOCKS_WITHOUT_LOSS * s->run_ms / s->budget_ms : 0;
  const double left = share_of_confirming - confirming;
  const double share = left < least_of_halving ? most_of_halving : fmin(left, most_of_halving);
  s->halving_ms = share * s->budget_ms;
  if (s->options->is_exhaustive || s->run_ms <= 0) return;
  /* The first run of each costs most: half of the time of halving is for these. */
  const double lasts_for = s->halving_ms / 2 / s->run_ms;
  if (lasts_for < s->n_timed) s->n_timed = lasts_for < 2 ? 2 : (int)lasts_for;
  if (s->n_timed > s->n_candidates) s->n_timed = s->n_candidates;
}

static wsgemm_status run_search(search *s) {
  timed **survivors = malloc((size_t)s->n_timed * sizeof *survivors);
  if (!survivors) return ws_fail(s->arena->h, WSGEMM_ALLOC_FAILED, "no memory for %d candidates", s->n_timed);
  wsgemm_status status = measure(s, &s->timed[0]);
  share_budget(s);
  for (int i = 0; i < s->n_timed; i++) survivors[i] = &s->timed[i];
  s->n_survivors = s->n_timed;
  if (!status && !s->is_stopped) status = s->options->is_exhaustive ? run_exhaustively(s, survivors) : halve(s, survivors);
  if (!status && !s->is_stopped) status = confirm(s, survivors);
  free(survivors);
  return status;
}

/* ---- the whole ------------------------------------------------------------------------------- */

static int by_model(const void *a, const void *b) {
  const ws_candidate *x = a, *y = b;
  return (x->model > y->model) - (x->model < y->model);
}

static void set_result(search *s, ws_tuning_entry *e) {
  const timed *winner = s->winner ? s->winner : &s->timed[0];
  wsgemm_autotune_result *r = s->result;
  r->before_us = known(median(&s->timed[0])), r->after_us = known(median(winner));
  r->is_better = !winner->is_built_in, r->is_interrupted = s->is_stopped;
  r->elapsed_ms = s->arena->is->now_ms(s->arena) - s->open_ms;
  describe(s->timed[0].candidate, r->before, sizeof r->before);
  describe(winner->candidate, r->after, sizeof r->after);
  *e = s->arena->entry;
  memcpy(e->row, winner->candidate->row, sizeof e->row);
  e->tuning = winner->candidate->tuning;
  e->before_us = r->before_us, e->after_us = r->after_us;
}

/* What is in force for this product takes part whatever the model says of it, or a search could put
 * something slower in its place. */
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
  s->n_timed = s->n_survivors = s->n_candidates;
  for (int i = 0; i < s->n_timed; i++) s->timed[i].candidate = &candidates[i], s->timed[i].is_built_in = i == 0;
  if (s->budget_ms == 0)
    for (int i = 0; i < s->n_timed && !s->is_stopped; i++) tell(s, &s->timed[i], 0);
  else
    status = run_search(s);
  if (!status) set_result(s, e);
  return status;
}

wsgemm_status ws_search(ws_arena *arena, const wsgemm_autotune_options *options, wsgemm_autotune_result *result,
                        ws_tuning_entry *e, bool *is_settled) {
  search s = {.arena = arena,
              .options = options,
              .result = result,
              .open_ms = arena->is->now_ms(arena),
              .budget_ms = options->budget_ms,
              .usual_us = 1,
              .rng = options->seed};
  *result = (wsgemm_autotune_result){0};
  wsgemm_status status = arena->is->open(arena);
  ws_candidate *candidates = calloc(WS_MOST_CANDIDATES, sizeof *candidates);
  s.timed = calloc(WS_MOST_CANDIDATES, sizeof *s.timed);
  if (!status && (!candidates || !s.timed)) status = ws_fail(arena->h, WSGEMM_ALLOC_FAILED, "no memory for a search");
  s.begin_ms = arena->is->now_ms(arena);
  if (!status) status = arena->is->candidates(arena, candidates, &s.n_candidates);
  if (!status) result->n_candidates = s.n_candidates;
  if (!status && s.n_candidates == 0)
    status = ws_fail(arena->h, WSGEMM_NOT_SUPPORTED, "there is nothing to choose for this product");
  if (!status) status = search_among(&s, candidates, e);
  *is_settled = !s.is_undecided && !s.is_stopped;
  free(s.timed);
  free(candidates);
  arena->is->close(arena);
  return status;
}
