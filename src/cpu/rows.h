/* rows.h - the CPU's kernel rows, and which of them a call gets. */
#ifndef WS_CPU_ROWS_H
#define WS_CPU_ROWS_H
#include "core/handle.h"
#include "cpu/kernels/ukr.h"
#include "cpu/machine.h"

typedef struct ws_cpu_row {
  const char *name; /* made from the row's values: "sgemm_avx512_32x12" */
  wsgemm_type type;
  ws_isa isa;
  /* register tile and k block, in elements; kc is part of the numerics, the other blockings are
   * not */
  int mr, nr, kc;
  const ws_ukr_set *ukr; /* of h and b: those of s */
  const ws_convert_set *convert;
  const ws_matrix_unit *unit; /* instead of ukr; NULL: none */
} ws_cpu_row;

int ws_row_count(void);
const ws_cpu_row *ws_row(int row_idx);
bool ws_row_usable(int row_idx);
int ws_row_find(const char *name); /* -1: unknown */
/* The row for a type: the handle's or the environment's if forced, else the first usable one of the
 * table. */
extern const ws_cpu_row *ws_default_row[WS_N_TYPES];
static inline const ws_cpu_row *ws_row_for(const ws_call *call, wsgemm_type type) {
  const int forced = ws_forced_row(call->forced[WS_CPU], type);
  return forced ? ws_row(forced - 1) : ws_default_row[type];
}
/* The same for a product of so many multiply-adds: below UNIT_LEAST a matrix unit costs more than
 * it saves (Sapphire Rapids), and the first row without one is taken, unless a row was asked for by
 * name. In invariant mode always: what a unit computes is decided by whole panels
 * (cpu/kernels/exponents.h), so that an element's bits may depend on its neighbours. */
extern const ws_cpu_row *ws_default_row_without_unit[WS_N_TYPES];
static inline const ws_cpu_row *ws_row_for_work(const ws_call *call, wsgemm_type type, double work) {
  enum { UNIT_LEAST = 20 * 20 * 20 };
  const bool is_forced = ws_forced_row(call->forced[WS_CPU], type) != 0;
  const ws_cpu_row *row = ws_row_for(call, type);
  if (!row->unit) return row;
  return call->settings.invariant || (!is_forced && work < UNIT_LEAST) ? ws_default_row_without_unit[type] : row;
}

/* What the environment says of them: the best instruction set that may be taken; the row to take.
 * false: there is none. */
bool ws_rows_take_isa(const char *name);
bool ws_rows_take_kernel(const char *name);
/* After the machine is known and the environment is read. */
void ws_rows_init(void);
#endif
