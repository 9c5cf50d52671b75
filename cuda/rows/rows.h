/* rows.h - the rows of kernels.def as C sees them: what the backend must know of a kernel to choose
 * and launch it. The formulas for threads and shared memory are those of config.cuh. */
#ifndef WS_CUDA_ROWS_H
#define WS_CUDA_ROWS_H

/* Bytes of a row's element, by the row's letter. */
#define WS_ROW_ELEMENT_BYTES_s 4
#define WS_ROW_ELEMENT_BYTES_d 8
#define WS_ROW_ELEMENT_BYTES_c 8
#define WS_ROW_ELEMENT_BYTES_z 16
#define WS_ROW_ELEMENT_BYTES_h 2
#define WS_ROW_ELEMENT_BYTES_b 2
/* Bytes of a sum over k: of an element, and for 16-bit types of a float. */
#define WS_ROW_SUM_BYTES_s 4
#define WS_ROW_SUM_BYTES_d 8
#define WS_ROW_SUM_BYTES_c 8
#define WS_ROW_SUM_BYTES_z 16
#define WS_ROW_SUM_BYTES_h 4
#define WS_ROW_SUM_BYTES_b 4

/* Threads that own one tm x tn part of a tile, and by how many words a row is longer in shared
 * memory than its tile or its k block. */
#define WS_OWNER_simt 1
#define WS_OWNER_mma 32
#define WS_OWNER_mma16 32
#define WS_OWNER_fma16 1
#define WS_OWNER_vec 32
#define WS_PAD_simt 4
#define WS_PAD_mma 4
#define WS_PAD_mma16 8
#define WS_PAD_fma16 8
#define WS_PAD_vec 16 /* no tiles: room for a vector, or the sums of all warps */
#define WS_PAD_direct 8
/* Whether a k-contiguous operand stays so in shared memory (copy_tile.cuh), in rows of k. */
#define WS_KEEPS_K_simt 0
#define WS_KEEPS_K_mma 1
#define WS_KEEPS_K_mma16 1
#define WS_KEEPS_K_fma16 1
#define WS_KEEPS_K_vec 0
/* Whether each product and its addition are rounded once, as by IEEE's fused multiply-add; the
 * tensor cores for 16-bit elements align and cut. */
#define WS_IS_FMA_simt 1
#define WS_IS_FMA_mma 1
#define WS_IS_FMA_mma16 0
#define WS_IS_FMA_fma16 1
#define WS_IS_FMA_vec 1
/* From plane to plane (mma; tiles are multiples of 16 words): half of the banks on. */
#define WS_PAD_PLANE 8

/* Words of one stage for one operand of x elements along m or n: room for either layout. A word is
 * an element, or (mma) a real; there are as many of these for each element as the type has
 * parts. */
#define WS_LARGER(a, b) ((a) > (b) ? (a) : (b))
#define WS_OPERAND_WORDS(keeps_k, x, bk, pad) \
  (WS_LARGER((bk) * ((x) + (pad)), (keeps_k) * (x) * ((bk) + (pad))) + (keeps_k)*WS_PAD_PLANE)

#define WS_ROW_THREADS(mainloop, bm, bn, tm, tn) ((bm) / (tm) * ((bn) / (tn)) * WS_OWNER_##mainloop)
#define WS_ROW_SHARED_BYTES(mainloop, element_bytes, bm, bn, bk, coarse, stages) \
  ((stages) * (element_bytes) *                                                  \
   (WS_OPERAND_WORDS(WS_KEEPS_K_##mainloop, bm, bk, WS_PAD_##mainloop) +         \
    WS_OPERAND_WORDS(WS_KEEPS_K_##mainloop, (bn) * (coarse), bk, WS_PAD_##mainloop)))
/* What a split product needs besides, if it has no memory for its partial sums. */
#define WS_ROW_TOTAL_BYTES(sum_bytes, bm, bn, coarse) ((bm) * (bn) * (coarse) * (sum_bytes))

/* direct: of each group of warps k blocks of 16, with room for either layout, and in their place the
 * sums of the tile. */
#define WS_DIRECT_BK 16
#define WS_DIRECT_GROUP_THREADS(bm, bn, tm, tn) ((bm) / (tm) * ((bn) / (tn)) * 32)
#define WS_DIRECT_THREADS(bm, bn, tm, tn, k_groups) ((k_groups)*WS_DIRECT_GROUP_THREADS(bm, bn, tm, tn))
#define WS_DIRECT_OPERAND_ELEMENTS(x) WS_LARGER(WS_DIRECT_BK *((x) + WS_PAD_direct), (x) * (WS_DIRECT_BK + WS_PAD_direct))
#define WS_DIRECT_SHARED_BYTES(bm, bn, k_groups, stages) \
  ((k_groups) * (stages) * (WS_DIRECT_OPERAND_ELEMENTS(bm) + WS_DIRECT_OPERAND_ELEMENTS(bn)) * 2)

/* wgmma: one warpgroup of producers; k blocks of 128 bytes; A comes in slabs of 64 rows, or one of 16
 * or 32, whose lines are as short where they are along m; each consumer's columns of C leave through
 * WS_WGMMA_OUTPUTS places of 64 x 64 elements; the barriers take the last bytes. */
#define WS_WGMMA_BK 64
#define WS_WGMMA_THREADS(consumers) (128 * (1 + (consumers)))
/* Of a block that ends with its item (k1 .. k8, s2 .. s4k2): two warps of producers. */
#define WS_WGMMA_ROW_THREADS(consumers, once) (128 * (consumers) + ((once) ? 64 : 128))
#define WS_WGMMA_A_ROWS(bm) ((bm) <= 16 ? 16 : (bm) <= 32 ? 32 : ((bm) + 63) / 64 * 64)
/* Elements of such a line. */
#define WS_WGMMA_A_LINE(bm) (WS_WGMMA_A_ROWS(bm) < 64 ? WS_WGMMA_A_ROWS(bm) : 64)
#define WS_WGMMA_OUTPUTS(consumers, ping_pong) ((consumers) == 3 || (ping_pong) ? 1 : 2)
/* Three consumers, or more than 128 sums a thread, leave no registers for more than alpha * sum,
 * stored in 16 bits. */
#define WS_WGMMA_IS_PLAIN(bm, columns, consumers, ping_pong) \
  ((consumers) == 3 || (bm) * (columns) > 128 * 128 * ((ping_pong) ? 1 : (consumers)))
/* A bias of an item's rows, or of a consumer's columns. */
#define WS_WGMMA_BIAS_BYTES(is_plain) ((is_plain) ? 0 : 256 * 4)
/* What the blocks of a cluster do together, and whether they end with their item. */
#define WS_WGMMA_BLOCKS_x1 1
#define WS_WGMMA_BLOCKS_x2 2
#define WS_WGMMA_BLOCKS_x14 4
#define WS_WGMMA_BLOCKS_x41 4
#define WS_WGMMA_BLOCKS_x22 4
#define WS_WGMMA_BLOCKS_x24 8
#define WS_WGMMA_BLOCKS_x42 8
#define WS_WGMMA_BLOCKS_k1 1
#define WS_WGMMA_BLOCKS_k2 2
#define WS_WGMMA_BLOCKS_k4 4
#define WS_WGMMA_BLOCKS_k8 8
#define WS_WGMMA_BLOCKS_s2 2
#define WS_WGMMA_BLOCKS_s4 4
#define WS_WGMMA_BLOCKS_s2k2 4
#define WS_WGMMA_BLOCKS_s4k2 8
#define WS_WGMMA_BLOCKS_s2k4 8
#define WS_WGMMA_CLUSTER_SPLITS_x1 1
#define WS_WGMMA_CLUSTER_SPLITS_x2 1
#define WS_WGMMA_CLUSTER_SPLITS_x14 1
#define WS_WGMMA_CLUSTER_SPLITS_x41 1
#define WS_WGMMA_CLUSTER_SPLITS_x22 1
#define WS_WGMMA_CLUSTER_SPLITS_x24 1
#define WS_WGMMA_CLUSTER_SPLITS_x42 1
#define WS_WGMMA_CLUSTER_SPLITS_k1 1
#define WS_WGMMA_CLUSTER_SPLITS_k2 2
#define WS_WGMMA_CLUSTER_SPLITS_k4 4
#define WS_WGMMA_CLUSTER_SPLITS_k8 8
#define WS_WGMMA_CLUSTER_SPLITS_s2 1
#define WS_WGMMA_CLUSTER_SPLITS_s4 1
#define WS_WGMMA_CLUSTER_SPLITS_s2k2 2
#define WS_WGMMA_CLUSTER_SPLITS_s4k2 2
#define WS_WGMMA_CLUSTER_SPLITS_s2k4 4
#define WS_WGMMA_ONCE_x1 0
#define WS_WGMMA_ONCE_x2 0
#define WS_WGMMA_ONCE_x14 0
#define WS_WGMMA_ONCE_x41 0
#define WS_WGMMA_ONCE_x22 0
#define WS_WGMMA_ONCE_x24 0
#define WS_WGMMA_ONCE_x42 0
#define WS_WGMMA_ONCE_k1 1
#define WS_WGMMA_ONCE_k2 1
#define WS_WGMMA_ONCE_k4 1
#define WS_WGMMA_ONCE_k8 1
#define WS_WGMMA_ONCE_s2 1
#define WS_WGMMA_ONCE_s4 1
#define WS_WGMMA_ONCE_s2k2 1
#define WS_WGMMA_ONCE_s4k2 1
#define WS_WGMMA_ONCE_s2k4 1
/* Its blocks along m, which share B. */
#define WS_WGMMA_CLUSTER_M_x1 1
#define WS_WGMMA_CLUSTER_M_x2 1
#define WS_WGMMA_CLUSTER_M_x14 1
#define WS_WGMMA_CLUSTER_M_x41 4
#define WS_WGMMA_CLUSTER_M_x22 2
#define WS_WGMMA_CLUSTER_M_x24 2
#define WS_WGMMA_CLUSTER_M_x42 4
#define WS_WGMMA_CLUSTER_M_k1 1
#define WS_WGMMA_CLUSTER_M_k2 1
#define WS_WGMMA_CLUSTER_M_k4 1
#define WS_WGMMA_CLUSTER_M_k8 1
#define WS_WGMMA_CLUSTER_M_s2 1
#define WS_WGMMA_CLUSTER_M_s4 1
#define WS_WGMMA_CLUSTER_M_s2k2 1
#define WS_WGMMA_CLUSTER_M_s4k2 1
#define WS_WGMMA_CLUSTER_M_s2k4 1
/* The least k that is split between so many blocks of a cluster. */
#define WS_WGMMA_CLUSTER_SPLIT_LEAST_K(splits) (256 * (splits))
/* Rows of an item that each of these blocks adds up and stores; with fewer than 8 for each, the
 * first blocks have 8. */
#define WS_WGMMA_SHARE_ROWS(bm, splits) WS_LARGER(8, (bm) / (splits))
/* Rows of a box by which TMA stores C, where so many rows leave through shared memory, up to 64 at
 * a time. */
#define WS_WGMMA_BOX_ROWS(rows) ((rows) % 64 == 0 ? 64 : (rows) % 32 == 0 ? 32 : 16)
/* The same of rows that are columns of C, each a line of 64 rows of it. */
#define WS_WGMMA_BOX_COLUMNS(rows) ((rows) % 64 == 0 ? 64 : (rows) % 32 == 0 ? 32 : (rows) % 16 == 0 ? 16 : 8)
#define WS_WGMMA_BARRIER_BYTES 512
/* Rows of reals that the units are given for one of elements. */
#define WS_SLICED_UNIT_s 1
#define WS_SLICED_UNIT_c 2
/* Slices of an operand. */
#define WS_SLICES_f16x3 2
#define WS_SLICES_f16x1 1
#define WS_SLICES_bf16x6 3
/* So many k are summed by the units before their sum is added to the total. */
#define WS_SLICED_CHUNK_K 32
/* The least k for which slices are used: a bound of k + 2 roundings leaves room for what they leave
 * out (docs/numerics.md). */
#define WS_SLICED_LEAST_K 128
/* Floats, as so many slices of 16 bits: C leaves from registers. */
#define WS_SLICED_SHARED_BYTES(slices, real_bm, bn, coarse, stages) \
  ((stages) * (slices) * (WS_WGMMA_A_ROWS(real_bm) + (bn) * (coarse)) * WS_WGMMA_BK * 2 + WS_WGMMA_BARRIER_BYTES)
#define WS_WGMMA_MOST_SHARED_BYTES (227 * 1024) /* of a block (cc 9.0) */
/* A block that ends with its item stores C from where its stages were. */
#define WS_WGMMA_BYTES_WITHOUT_PARTS(bm, bn, coarse, consumers, ping_pong, stages, once) \
  ((stages) * (WS_WGMMA_A_ROWS(bm) + (bn) * (coarse)) * WS_WGMMA_BK * 2 +                \
   (consumers) * ((once) ? 0 : WS_WGMMA_OUTPUTS(consumers, ping_pong) * 64 * 64 * 2) +   \
   (consumers)*WS_WGMMA_BIAS_BYTES(WS_WGMMA_IS_PLAIN(bm, (bn) * (coarse), consumers, ping_pong)) + WS_WGMMA_BARRIER_BYTES)
/* Sums of a block's share that come from the other blocks of its cluster: where there is room beside
 * the stages, else where the stages were. */
#define WS_WGMMA_PARTS_BYTES(bm, item_n, splits) (((splits)-1) * WS_WGMMA_SHARE_ROWS(bm, splits) * (item_n)*4)
#define WS_WGMMA_SHARED_BYTES_OF(without, parts) ((without) + ((without) + (parts) <= WS_WGMMA_MOST_SHARED_BYTES ? (parts) : 0))
#define WS_WGMMA_SHARED_BYTES(bm, bn, coarse, consumers, ping_pong, stages, splits, once)                    \
  WS_WGMMA_SHARED_BYTES_OF(WS_WGMMA_BYTES_WITHOUT_PARTS(bm, bn, coarse, consumers, ping_pong, stages, once), \
                           WS_WGMMA_PARTS_BYTES(bm, (bn) * (coarse), splits))
/* Blocks of an SM, by their shared memory: of 228 KB each takes 1 more. */
#define WS_WGMMA_ROW_BLOCKS(shared_bytes) (228 * 1024 / ((shared_bytes) + 1024))
#endif
