/* test_split.c - cuda/host/split.h alone: the parts cover k once, their sums fit the workspace, and
 * what is cut is what should be. */
#include "cuda/host/split.h"
#include "support/check.h"

#include <math.h>

enum { N_SPLIT_TYPES = 6 };
static const int sum_bytes[N_SPLIT_TYPES] = {4, 8, 8, 16, 4, 4}; /* s d c z h b */

static ws_problem problem(int type, int64_t m, int64_t n, int64_t k, int64_t batch_count) {
  return (ws_problem){.a.type = (wsgemm_type)type, .m = m, .n = n, .k = k, .batch_count = batch_count};
}

static void check_split(const ws_problem *p, int n_sms, bool takes_fma) {
  const ws_split split = ws_split_for(p, n_sms, takes_fma);
  const long long m = p->m, n = p->n, k = p->k;
  if (split.n_splits == 1) {
    CHECK(split.k_per_split == k && split.bytes == 0, "%lld x %lld x %lld, whole: a part of %lld, %lld bytes", m, n, k,
          (long long)split.k_per_split, (long long)split.bytes);
    return;
  }
  CHECK(split.n_splits > 1 && (split.n_splits - 1) * split.k_per_split < k && k <= split.n_splits * split.k_per_split &&
            split.k_per_split % 64 == 0,
        "%lld x %lld x %lld: %lld parts of %lld", m, n, k, (long long)split.n_splits, (long long)split.k_per_split);
  CHECK(split.ld >= m && split.ld % 4 == 0, "%lld x %lld: ld %lld", m, n, (long long)split.ld);
  CHECK(split.bytes == split.n_splits * p->batch_count * n * split.ld * sum_bytes[p->a.type] && split.bytes <= WS_SUMS_BYTES,
        "%lld x %lld x %lld, %lld parts: %lld bytes", m, n, k, (long long)split.n_splits, (long long)split.bytes);
}

static void drawn(void) {
  struct check_random rng = check_random_from(70);
  static const int n_sms[] = {1, 20, 108, 132, 148};
  int n_cut = 0;
  for (int i = 0; i < 40000 / check_scale(); i++) {
    const int64_t most = i % 2 ? 64 : 1500;
    ws_problem p = problem(i % N_SPLIT_TYPES, check_random_in(&rng, 1, most), check_random_in(&rng, 1, most),
                           check_random_in(&rng, 1, i % 3 ? 3000 : 200000), check_random_in(&rng, 1, i % 5 ? 1 : 40));
    if (i % 7 == 0) p.m = 1;
    if (i % 11 == 0) p.n = 1;
    p.a.trans = i % 13 < 6, p.b.trans = i % 17 < 8;
    for (int takes_fma = 0; takes_fma < 2; takes_fma++) check_split(&p, n_sms[i % 5], takes_fma);
    n_cut += ws_split_for(&p, n_sms[i % 5], false).n_splits > 1;
  }
  CHECK(n_cut > 4000 / check_scale(), "only %d were cut", n_cut);
}

/* 132 multiprocessors: few tiles and a long k are cut; large products, short k and small products,
 * which are done before a barrier would be, are not. */
static void known(void) {
  static const struct {
    int64_t m, n, k;
    bool is_cut;
  } known[] = {{64, 64, 65536, true},     {16, 4096, 4096, true},    {64, 64, 4096, true},  {64, 64, 511, false},
               {4096, 4096, 4096, false}, {2304, 2304, 2304, false}, {1, 1, 1 << 20, true}, {256, 256, 256, false}};
  for (int way = 0; way < 2 * N_SPLIT_TYPES; way++)
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
      const int type = way / 2;
      const bool takes_fma = way % 2;
      const ws_problem p = problem(type, known[i].m, known[i].n, known[i].k, 1);
      CHECK((ws_split_for(&p, 132, takes_fma).n_splits > 1) == known[i].is_cut, "%lld x %lld x %lld, type %d: %lld parts",
            (long long)known[i].m, (long long)known[i].n, (long long)known[i].k, type,
            (long long)ws_split_for(&p, 132, takes_fma).n_splits);
    }
}

/* Multiply-adds of 16-bit elements take as long as those of floats: what keeps tensor cores busy
 * enough whole, is cut for them; and only of 16 bits there is a difference. */
static void by_multiply_adds(void) {
  for (int type = 0; type < N_SPLIT_TYPES; type++) {
    const ws_problem p = problem(type, 512, 512, 4096, 1), of_floats = problem(WSGEMM_F32, 512, 512, 4096, 1);
    const ws_split split = ws_split_for(&p, 132, true), whole = ws_split_for(&p, 132, false),
                   s = ws_split_for(&of_floats, 132, false);
    if (type == WSGEMM_F16 || type == WSGEMM_BF16)
      CHECK(split.n_splits == s.n_splits && split.bytes == s.bytes && split.n_splits > whole.n_splits,
            "type %d: %lld parts, not %lld", type, (long long)split.n_splits, (long long)s.n_splits);
    else
      CHECK(split.n_splits == whole.n_splits, "type %d: %lld parts, not %lld", type, (long long)split.n_splits,
            (long long)whole.n_splits);
  }
}

/* The share of rounds that is work, of so many parts. */
static double share_of(double rounds, int64_t parts) { return rounds * (double)parts / ceil(rounds * (double)parts); }

/* Parts of a matrix times a vector in more than one round: of a large one alone, as few as make the rounds fuller; of 134 blocks on 132
 * SMs, whose second round is almost empty, more than one. */
static void rounds_of_vectors(void) {
  struct check_random rng = check_random_from(97);
  int n_cut = 0;
  for (int i = 0; i < 4000 / check_scale(); i++) {
    const ws_problem p = problem(i % N_SPLIT_TYPES, 1, check_random_in(&rng, 200, 9000), check_random_in(&rng, 10, 9000), 1);
    const double rounds = (double)check_random_in(&rng, 61, 900) / 100,
                 bytes = (double)p.n * (double)p.k * ws_types[p.a.type].bytes;
    const int64_t parts = ws_splits_for_rounds(&p, rounds);
    CHECK((parts == 1 || parts == 2 || parts == 4 || parts == 8) && share_of(rounds, parts) >= share_of(rounds, 1) &&
              (parts == 1 || (bytes >= 24e6 && p.k >= 512 * parts && share_of(rounds, parts / 2) < 0.95)),
          "%lld x %lld, %g rounds: %lld parts", (long long)p.n, (long long)p.k, rounds, (long long)parts);
    n_cut += parts > 1;
  }
  CHECK(n_cut > 200 / check_scale(), "only %d were cut", n_cut);
  const ws_problem p = problem(WSGEMM_F32, 1, 4265, 3091, 1), small = problem(WSGEMM_F32, 1, 4265, 1024, 1);
  CHECK(ws_splits_for_rounds(&p, 134 / 132.0) > 1 && ws_splits_for_rounds(&p, 1) == 1, "a round and a bit, a round");
  CHECK(ws_splits_for_rounds(&small, 134 / 132.0) == 1, "17 MB");
}

/* Parts of a matrix times a vector, which decide its bits: k of 20000 on 132 SMs. With k contiguous 300 lines are 38 items of 8, of which
 * 528 find a place at once: 13 parts; else items of 32 F32 lines, or of 16, of which 132 find a place, of doubles 264. */
static void parts_of_vectors(void) {
  static const struct {
    wsgemm_type type;
    bool is_along_k;
    int64_t n_lines, n_parts;
  } known[] = {{WSGEMM_F32, true, 300, 13},  {WSGEMM_F32, true, 1056, 4},  {WSGEMM_F32, true, 1057, 1},
               {WSGEMM_F16, true, 300, 13},  {WSGEMM_C64, true, 300, 13},  {WSGEMM_F32, false, 300, 13},
               {WSGEMM_F32, false, 2528, 1}, {WSGEMM_F32, false, 2560, 8}, {WSGEMM_F64, false, 300, 13},
               {WSGEMM_F64, false, 2528, 1}, {WSGEMM_F64, false, 2544, 8}, {WSGEMM_C32, false, 300, 6},
               {WSGEMM_C32, false, 1264, 1}, {WSGEMM_C32, false, 1280, 8}, {WSGEMM_C64, false, 300, 13}};
  for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
    ws_problem p = problem((int)known[i].type, known[i].n_lines, 1, 20000, 1);
    p.a.trans = known[i].is_along_k;
    const ws_split split = ws_split_for(&p, 132, false);
    CHECK(split.n_splits == known[i].n_parts, "type %d, %lld lines, along k %d: %lld parts", (int)known[i].type,
          (long long)known[i].n_lines, known[i].is_along_k, (long long)split.n_splits);
  }
}

static const struct check_case cases[] = {{"drawn", drawn},
                                          {"known", known},
                                          {"by_multiply_adds", by_multiply_adds},
                                          {"rounds_of_vectors", rounds_of_vectors},
                                          {"parts_of_vectors", parts_of_vectors}};
CHECK_MAIN("split", cases)
