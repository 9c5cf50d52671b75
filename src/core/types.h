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

/* By the letter in a line of kernels.def. */
#define WS_TYPE_s WSGEMM_F32
#define WS_TYPE_d WSGEMM_F64
#define WS_TYPE_c WSGEMM_C32
#define WS_TYPE_z WSGEMM_C64
#define WS_TYPE_h WSGEMM_F16
#define WS_TYPE_b WSGEMM_BF16

/* Types that are stored in 16 bits and computed with in FP32. */
static inline bool ws_is_half(wsgemm_type type) { return type == WSGEMM_F16 || type == WSGEMM_BF16; }
#endif
