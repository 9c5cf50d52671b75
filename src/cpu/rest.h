/* rest.h - for how long no worker is called after one has kept its caller waiting.
 *
 * On a processor that others use, too, a worker may lose it in the middle of an item; the caller then
 * waits for a time slice of theirs, which is a hundred times as long as a small product. So the
 * workers rest for twice as long as was waited, and each time four times as long as before if the next
 * wait comes soon after a rest: a loop that stays costs a few hundredths, one wait in a tenth of a
 * second hardly more, and a processor that is free again is seen within MOST. */
#ifndef WS_CPU_REST_H
#define WS_CPU_REST_H
#include <stdbool.h>
#include <stdint.h>

/* All in ns; begins as zeros. */
typedef struct ws_rest {
  int64_t until, length;
} ws_rest;

static inline bool ws_rest_is_on(const ws_rest *rest, int64_t now) { return now < rest->until; }

/* Now a call is over that has waited so long. */
static inline void ws_rest_begin(ws_rest *rest, int64_t now, int64_t waited) {
  enum { TIMES = 2, MORE = 4, SOON = 16 * 1000 * 1000, MOST = 256 * 1000 * 1000 };
  const bool is_soon = rest->length > 0 && now - rest->until < (rest->length > SOON ? rest->length : SOON);
  const int64_t length = is_soon ? MORE * rest->length : TIMES * waited;
  rest->length = length < MOST ? length : MOST;
  rest->until = now + rest->length;
}
#endif
