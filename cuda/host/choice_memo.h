/* choice_memo.h - what the model has chosen for the last products of this thread.
 *
 * Rows are many, of several kinds that are weighed against each other, and weighing all of them takes longer than the rest of a
 * call. A choice follows from its key alone, so a thread that multiplies the same shapes again, as
 * most do, finds it here. Nothing is shared between threads: there is no lock. */
#ifndef WS_CUDA_CHOICE_MEMO_H
#define WS_CUDA_CHOICE_MEMO_H
#include <stdbool.h>
#include <stdint.h>

/* All that the model looks at. Without padding, so that its bytes can be compared. */
typedef struct ws_choice_key {
  int64_t m, n, k, batch_count;
  int32_t n_sms, coarse; /* COARSE_FACTOR that is asked for; 0: any */
  uint8_t type, type_c, kind, ops, is_invariant, takes_fma, has_plain_store, is_simple, n_slices, mode_a, mode_b, has_maps,
      unused[4];
} ws_choice_key;

typedef struct ws_choice {
  int row_idx; /* -1: none */
  double us;   /* the model's time */
} ws_choice;

bool ws_choice_recall(const ws_choice_key *key, ws_choice *choice);
void ws_choice_keep(const ws_choice_key *key, const ws_choice *choice);
#endif
