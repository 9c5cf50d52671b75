/* choice_memo.c - see choice_memo.h. */
#include "cuda/host/choice_memo.h"

#include <string.h>

_Static_assert(sizeof(ws_choice_key) == 4 * sizeof(int64_t) + 2 * sizeof(int32_t) + 8, "no padding");

/* Each key has one place. n_sms = 0: it is empty. */
enum { N_PLACES = 32 };
typedef struct place {
  ws_choice_key key;
  ws_choice choice;
} place;
static _Thread_local place places[N_PLACES];

/* FNV-1a over words, whose upper bits are the better mixed ones. */
static place *place_of(const ws_choice_key *key) {
  uint64_t words[sizeof *key / sizeof(uint64_t)], hash = 0xcbf29ce484222325;
  memcpy(words, key, sizeof words);
  for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) hash = (hash ^ words[i]) * 0x100000001b3;
  hash ^= hash >> 32;
  return &places[(hash * 0x9e3779b97f4a7c15) >> 59];
}

bool ws_choice_recall(const ws_choice_key *key, ws_choice *choice) {
  const place *p = place_of(key);
  if (memcmp(&p->key, key, sizeof *key) != 0) return false;
  *choice = p->choice;
  return true;
}

void ws_choice_keep(const ws_choice_key *key, const ws_choice *choice) { *place_of(key) = (place){*key, *choice}; }
