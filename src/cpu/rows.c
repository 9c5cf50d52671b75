/* rows.c - see rows.h. */
#include "cpu/rows.h"

#include <string.h>

#if defined(__x86_64__)
#ifdef WS_WITH_AMX
#define WS_CPU_ROWS_AMX
#endif
#define WS_CPU_ROWS_AVX512
#define WS_CPU_ROWS_AVX2
#elif defined(__aarch64__)
#define WS_CPU_ROWS_NEON
#endif
#define WS_CPU_ROWS_REF

#define ISA_amx WS_ISA_AMX
#define ISA_avx512 WS_ISA_AVX512
#define ISA_avx2 WS_ISA_AVX2
#define ISA_neon WS_ISA_NEON
#define ISA_ref WS_ISA_REF

#include "cpu/kernels/kernel_shapes.h"

/* The ISA whose FP32 kernels and conversions serve the halves of a row, and its matrix unit. */
#define FLOATS_amx avx512
#define FLOATS_avx512 avx512
#define FLOATS_avx2 avx2
#define FLOATS_neon neon
#define FLOATS_ref ref
#define UNIT_amx &ws_unit_amx
#define UNIT_avx512 NULL
#define UNIT_avx2 NULL
#define UNIT_neon NULL
#define UNIT_ref NULL

/* What belongs to the kernels that a row runs: halves are multiplied as floats, but by a unit. */
#define JOIN_(what, isa, t) what##_##isa##_##t
#define JOIN(what, isa, t) JOIN_(what, isa, t)
#define KERNEL_s(isa, what) what##_##isa##_s
#define KERNEL_d(isa, what) what##_##isa##_d
#define KERNEL_c(isa, what) what##_##isa##_c
#define KERNEL_z(isa, what) what##_##isa##_z
#define KERNEL_h(isa, what) JOIN(what, FLOATS_##isa, s)
#define KERNEL_b(isa, what) JOIN(what, FLOATS_##isa, s)
#define CONVERT_(isa) ws_convert_##isa
#define CONVERT(isa) CONVERT_(isa)

#ifdef WS_CPU_ROWS_AMX
extern const ws_matrix_unit ws_unit_amx;
#endif
#define WS_CPU_ROW(t, isa, mr, nr, kc)                                                                          \
  _Static_assert(ISA_##isa == WS_ISA_AMX || ((mr) == KERNEL_##t(isa, ws_mr) && (nr) == KERNEL_##t(isa, ws_nr)), \
                 "a row is named after its kernels' shape");                                                    \
  extern const ws_ukr_set KERNEL_##t(isa, ws_ukr);                                                              \
  extern const ws_convert_set CONVERT(FLOATS_##isa);
#include "cpu/kernels/kernels.def"
#undef WS_CPU_ROW

static const ws_cpu_row rows[] = {
#define WS_CPU_ROW(t, isa, mr, nr, kc)                                                            \
  {#t "gemm_" #isa "_" #mr "x" #nr, WS_TYPE_##t, ISA_##isa, mr, nr, kc, &KERNEL_##t(isa, ws_ukr), \
   &CONVERT(FLOATS_##isa),          UNIT_##isa},
#include "cpu/kernels/kernels.def"
#undef WS_CPU_ROW
};

enum { N_ROWS = sizeof rows / sizeof rows[0] };
_Static_assert((int)N_ROWS <= (int)WS_MOST_ROWS, "a forced row fits its bits");

static bool usable[N_ROWS];
const ws_cpu_row *ws_default_row[WS_N_TYPES], *ws_default_row_without_unit[WS_N_TYPES];

int ws_row_count(void) { return N_ROWS; }
const ws_cpu_row *ws_row(int row_idx) { return &rows[row_idx]; }
bool ws_row_usable(int row_idx) { return usable[row_idx]; }

int ws_row_find(const char *name) {
  for (int r = 0; r < N_ROWS; r++)
    if (strcmp(rows[r].name, name) == 0) return r;
  return -1;
}

/* ---- what the environment asks for, and what is left when the machine is known --------------- */

static ws_isa most_isa = WS_N_ISAS - 1;
static int forced_row = -1;

bool ws_rows_take_isa(const char *name) {
  for (int isa = 0; isa < WS_N_ISAS; isa++)
    if (strcmp(name, ws_isa_name((ws_isa)isa)) == 0 && ws_machine_get()->isa[isa]) {
      most_isa = (ws_isa)isa;
      return true;
    }
  return false;
}

bool ws_rows_take_kernel(const char *name) {
  const int row = ws_row_find(name);
  if (row < 0 || !ws_machine_get()->isa[rows[row].isa]) return false;
  forced_row = row;
  return true;
}

/* Tile registers are not asked for where the environment says that no such kernel may run. */
static void settle_tiles(void) {
  if (ws_machine_get()->isa[WS_ISA_AMX])
    ws_machine_settle_tiles(most_isa >= WS_ISA_AMX || (forced_row >= 0 && rows[forced_row].isa == WS_ISA_AMX));
}

void ws_rows_init(void) {
  settle_tiles();
  const ws_machine *machine = ws_machine_get();
  for (int r = N_ROWS - 1; r >= 0; r--) {
    usable[r] = machine->isa[rows[r].isa];
    if (!usable[r] || rows[r].isa > most_isa) continue;
    ws_default_row[rows[r].type] = &rows[r];
    if (!rows[r].unit) ws_default_row_without_unit[rows[r].type] = &rows[r];
  }
  if (forced_row >= 0 && usable[forced_row])
    ws_default_row[rows[forced_row].type] = ws_default_row_without_unit[rows[forced_row].type] = &rows[forced_row];
}
