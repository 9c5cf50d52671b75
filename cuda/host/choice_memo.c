/* choice_memo.c - see choice_memo.h. */
#include "cuda/host/choice_memo.h"

#include <string.h>

_Static_assert(sizeof(ws_choice_key) == 4 * sizeof(int64_t) + 2 * sizeof(int32_t) + 16, "no padding");

/* A key has one of the two places of its set, the one kept last in the first: a call asks for the
 * same product in up to five kinds. n_sms = 0: a place is empty. A thread's table takes
 * of its stack, so it is small. */
enum { SET_BITS = 4, N_SETS = 1 << SET_BITS, N_WAYS = 2 };
typedef struct place {
  ws_choice_key key;
  ws_choice choice;
} place;
static _Thread_local place places[N_SETS][N_WAYS];

/* FNV-1a over words, whose upper bits are the better mixed ones. */
static place *set_of(const ws_choice_key *key) {
  uint64_t words[sizeof *key / sizeof(uint64_t)], hash = 0xcbf29ce484222325;
  memcpy(words, key, sizeof words);
  for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) hash = (hash ^ words[i]) * 0x100000001b3;
  hash ^= hash >> 32;
  return places[(hash * 0x9e3779b97f4a7c15) >> (64 - SET_BITS)];
}

bool ws_choice_recall(const ws_choice_key *key, ws_choice *choice) {
  const place *set = set_of(key);
  for (int way = 0; way < N_WAYS; way++)
    if (memcmp(&set[way].key, key, sizeof *key) == 0) {
      *choice = set[way].choice;
      return true;
    }
  return false;
}

void ws_choice_keep(const ws_choice_key *key, const ws_choice *choice) {
  place *set = set_of(key);
  set[1] = set[0];
  set[0] = (place){*key, *choice};
}
