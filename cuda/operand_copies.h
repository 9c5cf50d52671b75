/* operand_copies.h - operands that the copy engine does not take as they stand: into which pieces a product is cut so that their copies fit
 * into the memory there is. No element of C is cut, so its bits do not depend on that. */
#ifndef WS_CUDA_OPERAND_COPIES_H
#define WS_CUDA_OPERAND_COPIES_H
#include "pitch_args.h"
#include "wgmma_maps.h"

/* Of C and of the batch, worked on at a time. */
typedef struct ws_pieces {
  int64_t m, n, batch;
} ws_pieces;

/* Bytes of an operand's copy; 0: it is taken as it stands. */
double ws_copy_bytes(const ws_lines *x);

/* Bytes of copies for such pieces; 0: both operands are taken as they stand. */
double ws_copies_bytes(const ws_problem *p, const ws_pieces *pieces);

/* The largest pieces whose copies fit into so many bytes; false: there are none. */
bool ws_pieces_for(const ws_problem *p, double bytes, ws_pieces *pieces);

/* What of the problem begins with this row, column and product; its column sums are the whole problem's. */
ws_problem ws_piece_at(const ws_problem *p, const ws_pieces *pieces, int64_t m_first, int64_t n_first, int64_t batch_first);

/* Turns x into a copy at `to`, and says in *op how it is made. */
void ws_copy_lines(ws_lines *x, char *to, ws_pitch_operand *op);

/* Turns the residual into a copy of C at `to`, which may be NULL; returns its bytes. */
double ws_copy_c(ws_problem *p, char *to, ws_pitch_operand *op);
#endif
