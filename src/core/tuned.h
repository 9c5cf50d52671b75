/* tuned.h - what tuning may choose for a product, beside the model. No parameter changes the bits
 * of a product within its numerics class. */
#ifndef WS_TUNED_H
#define WS_TUNED_H
#include <stdbool.h>

#include "core/handle.h"

enum { WS_TUNING_DIRECT = 1, WS_TUNING_PACKED = 2 }; /* ways of the CPU */

/* Parameters beside the row: X(name, most). 0: as the model says; a backend leaves out those that
 * it does not have. */
#define WS_TUNING_PARAMETERS(X)                                                   \
  X(policy, WS_N_POLICIES - 1)                                                    \
  X(coarse, WS_COARSE_MAX)   /* CPU: COARSE_FACTOR (of GPUs, the row's) */        \
  X(order, 1024)             /* GPU: rows of tiles in a swizzle group (tile.h) */ \
  X(quantum, WS_QUANTUM_MAX) /* GPU: items after which a block leaves */          \
  X(path, WS_TUNING_PACKED)  /* CPU */                                            \
  X(mc, 1 << 24)             /* CPU: rows and columns of a block */               \
  X(nc, 1 << 24)                                                                  \
  X(threads, WS_MAX_WORKERS) /* CPU: at most so many */

typedef struct ws_tuning {
  int row; /* of its backend's, + 1; 0: the model's */
#define WS_TUNING_MEMBER(name, most) int name;
  WS_TUNING_PARAMETERS(WS_TUNING_MEMBER)
#undef WS_TUNING_MEMBER
} ws_tuning;

extern const ws_tuning ws_tuning_of_model; /* all 0 */

typedef enum ws_tuned_by { WS_TUNED_BY_MODEL, WS_TUNED_BY_USER, WS_TUNED_BY_TABLE, WS_TUNED_BY_SEARCH } ws_tuned_by;

/* What a call takes, and from where. */
typedef struct ws_tuned {
  ws_tuning tuning; /* all 0: the model's choice */
  ws_tuned_by by;
  bool is_exact; /* of just this shape */
} ws_tuned;
/* Made in registers: reading one costs a call with cold caches 200 ns. */
static inline ws_tuned ws_tuned_model(void) { return (ws_tuned){.by = WS_TUNED_BY_MODEL}; }
const char *ws_tuned_by_name(ws_tuned_by by);
#endif
