/* pack.h - portable packing, and the names of the packing functions of the ISAs. Contract:
 * ws_pack_fn in ukr.h.
 *
 * Packing moves elements of 4, 8 or 16 bytes; what they mean does not matter (single complex is
 * packed as 8 bytes). */
#ifndef WS_CPU_PACK_H
#define WS_CPU_PACK_H
#include "cpu/kernels/ukr.h"

ws_pack_fn ws_pack_ref_4, ws_pack_ref_8, ws_pack_ref_16;
ws_transpose_fn ws_transpose_ref_4, ws_transpose_ref_8, ws_transpose_ref_16;
#endif
