/* groups.h - the rows whose kernels are also made for groups (instantiate_groups.cu), by type letter,
 * family, tile and groups of warps; direct ones also by blocks that share k, which makes no difference to the entry points of the
 * others (parts.h). Their shapes are in the tables of their families; each is listed once, here.
 *
 * WS_IF_OF_GROUPS(row, text): the text, if the row is listed. */
#ifndef WS_CUDA_GROUPS_H
#define WS_CUDA_GROUPS_H

#define WS_GROUPS_ROW_s_tf32w2_128x128_g1 , 1
#define WS_GROUPS_ROW_s_tf32w2_128x64_g1 , 1
#define WS_GROUPS_ROW_s_tf32w2_64x64_g1 , 1
#define WS_GROUPS_ROW_s_tf32x2_32x32_g4 , 1
#define WS_GROUPS_ROW_s_tf32x2_64x16_g2 , 1
#define WS_GROUPS_ROW_s_tf32x2_16x64_g2 , 1
#define WS_GROUPS_ROW_s_tf32w1_128x128_g1 , 1
#define WS_GROUPS_ROW_s_tf32w1_64x64_g1 , 1
#define WS_GROUPS_ROW_s_ffma_128x64_g1 , 1
#define WS_GROUPS_ROW_s_ffma_64x64_g2 , 1
#define WS_GROUPS_ROW_s_ffma_32x32_g4 , 1
#define WS_GROUPS_ROW_s_ffma_64x16_g4 , 1
#define WS_GROUPS_ROW_s_ffma_16x64_g4 , 1
#define WS_GROUPS_ROW_d_dmma_128x64_g1 , 1
#define WS_GROUPS_ROW_d_dmma_64x64_g1 , 1
#define WS_GROUPS_ROW_d_dmma_32x32_g1 , 1
#define WS_GROUPS_ROW_d_dmma_64x16_g2 , 1
#define WS_GROUPS_ROW_d_dmma_16x64_g2 , 1
#define WS_GROUPS_ROW_c_tf32w2_128x64_g1 , 1
#define WS_GROUPS_ROW_c_tf32w2_64x32_g1 , 1
#define WS_GROUPS_ROW_c_tf32x2_32x32_g4 , 1
#define WS_GROUPS_ROW_z_dmma_64x64_g1 , 1
#define WS_GROUPS_ROW_z_dmma_32x32_g1 , 1
#define WS_GROUPS_ROW_h_direct_64x64_g2_k1 , 1
#define WS_GROUPS_ROW_h_direct_64x16_g4_k1 , 1
#define WS_GROUPS_ROW_h_direct_16x64_g4_k1 , 1
#define WS_GROUPS_ROW_b_direct_64x64_g2_k1 , 1
#define WS_GROUPS_ROW_b_direct_64x16_g4_k1 , 1
#define WS_GROUPS_ROW_b_direct_16x64_g4_k1 , 1
/* All rows of small.def, for matrices at pointers. */

/* 1 for what is listed (defined as `, 1`), else 0. */
#define WS_GROUPS_SECOND(first, second, ...) second
#define WS_GROUPS_IS(...) WS_GROUPS_SECOND(__VA_ARGS__, 0, 0)
#define WS_IS_OF_GROUPS(row) WS_GROUPS_IS(WS_GROUPS_ROW_##row)
#define WS_GROUPS_TEXT_0(...)
#define WS_GROUPS_TEXT_1(...) __VA_ARGS__
#define WS_GROUPS_TEXT_OF(is_listed) WS_GROUPS_TEXT_##is_listed
#define WS_GROUPS_TEXT(is_listed) WS_GROUPS_TEXT_OF(is_listed)
#define WS_IF_OF_GROUPS(row, ...) WS_GROUPS_TEXT(WS_IS_OF_GROUPS(row))(__VA_ARGS__)
#endif
