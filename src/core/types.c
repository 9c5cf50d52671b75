/* types.c - see types.h. */
#include "core/types.h"

const ws_type_info ws_types[WS_N_TYPES] = {
    [WSGEMM_F32] = {'s', "f32", 4, 1},  [WSGEMM_F64] = {'d', "f64", 8, 1}, [WSGEMM_C32] = {'c', "c32", 8, 2},
    [WSGEMM_C64] = {'z', "c64", 16, 2}, [WSGEMM_F16] = {'h', "f16", 2, 1}, [WSGEMM_BF16] = {'b', "bf16", 2, 1},
};
