/* types.h - the element types: one table of what each is. */
#ifndef WS_TYPES_H
#define WS_TYPES_H
#include <stdbool.h>

#include "wsgemm.h"

enum { WS_N_TYPES = 6 };
typedef struct ws_type_info {
  char letter;       /* s d c z h b */
  const char *name;  /* f32 ... */
  int bytes, n_real; /* per element */
} ws_type_info;
extern const ws_type_info ws_types[WS_N_TYPES];

/* Types that are stored in 16 bits and computed with in FP32. */
static inline bool ws_is_half(wsgemm_type type) { return type == WSGEMM_F16 || type == WSGEMM_BF16; }
#endif
