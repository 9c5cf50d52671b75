/* direct_model.h - what small and flat products of 16-bit elements take by direct rows, by those for
 * vectors, and what wgmma rows take besides. From sizes, ops, row and SMs alone, as it decides about the order of summation:
 * operands count as if their lds were no longer than they must be. */
#ifndef WS_CUDA_DIRECT_MODEL_H
#define WS_CUDA_DIRECT_MODEL_H
#include "core/problem.h"
#include "cuda/host/device.h"
#include "cuda/host/split.h"

/* us, of doubles only: tools/fit_model.py reads their names here. */
typedef struct ws_direct_terms {
  /* Once: launch, code (longer for larger tiles, and for more loads of a thread), the cluster. */
  double launch_us, cluster_of_4_us, cluster_of_8_us, per_element_us, per_load_us, per_single_us;
  /* For each round of blocks, and for each k block of a part. */
  double round_us, k_block_us, k_block_single_us;
  /* For each block of an SM: operands, C in single elements. */
  double block_us, copied_us, stored_single_us;
  double read_us; /* for each byte of A and B, from memory */
  /* Of operands that TMA does not take, for a wgmma row: the launch, an element of a line, a byte
   * that is read or written; and an element of C that is not stored by TMA. Of batches, a line. */
  double copy_launch_us, copy_element_us, copy_byte_us, copy_single_c_us, copy_line_us;
  /* Rows for vectors: the launch; the grid barrier, where k is split; one k of a part; a wave of blocks; a byte of the matrix, and a
   * byte of it where its columns or rows along k are not multiples of 16 bytes. */
  double vector_launch_us, vector_parts_us, vector_k_us, vector_round_us, vector_byte_us, vector_odd_byte_us;
} ws_direct_terms;
extern const ws_direct_terms ws_direct_terms_h200;

/* us between two events, launch included, L2 flushed. */
double ws_direct_us(const ws_direct_terms *terms, const ws_problem *p, const ws_cuda_row *row, int n_sms);
/* What wgmma rows take besides (wgmma_model.h): copies of operands that TMA does not take, and a C
 * that it does not store. */
double ws_wgmma_copies_us(const ws_direct_terms *terms, const ws_problem *p);

/* The same of the row for a matrix-vector product, split so. */
double ws_vector_us(const ws_direct_terms *terms, const ws_problem *p, const ws_split *split, int n_sms);

/* Whether the product is so small that the two are worth comparing. */
bool ws_may_be_direct(const ws_problem *p);
#endif
