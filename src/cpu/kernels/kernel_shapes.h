/* kernel_shapes.h - the register tiles and k blocks of kernels.def as constants, so that an ISA's
 * kernels are checked against their rows. */
#define WS_CPU_ROW(t, isa, mr, nr, kc) enum { ws_mr_##isa##_##t = (mr), ws_nr_##isa##_##t = (nr), ws_kc_##isa##_##t = (kc) };
#include "cpu/kernels/kernels.def"
#undef WS_CPU_ROW
