/* rectangle.h - a part of C of one product of a batch, and how its longer side is cut into strips; of the paths
 * that pack little (gemm_direct.c, gemm_dots.c). */
#ifndef WS_CPU_RECTANGLE_H
#define WS_CPU_RECTANGLE_H
#include <stdint.h>

typedef struct ws_rectangle {
  int64_t batch, i0, i1, j0, j1;
} ws_rectangle;

/* Lines of the next strip when n are left: the most, but the last two share what is left, as a narrow rest
 * would leave units idle. */
static inline int64_t ws_strip(int64_t n, int64_t most) { return n > 2 * most ? most : n > most ? (n + 1) / 2 : n; }

#endif
