/* group_case.h - groups as their descriptor has them (column-major, arrays where the host can read them), as arguments: those
 * of a kernel of groups, and those that the host makes of one group's product. For C++, which cannot read core/groups.h. */
#ifndef WSGEMM_TESTS_GROUP_CASE_H
#define WSGEMM_TESTS_GROUP_CASE_H
#include "cuda/shared/group_args.h"
#include "wsgemm.h"

/* All but product_tiles. */
ws_group_args group_case_args(const wsgemm_grouped_desc *d);
/* By ws_product_of_group; k = 0 if nothing is to be read. */
ws_gemm_args group_case_product(const wsgemm_grouped_desc *d, int64_t group);
int group_case_bytes(wsgemm_type type);
#endif
