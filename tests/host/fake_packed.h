/* fake_packed.h - operands packed beforehand, on the fake driver: making them, and what the
 * launches of a product should be told of them. */
#ifndef WSGEMM_TESTS_FAKE_PACKED_H
#define WSGEMM_TESTS_FAKE_PACKED_H
#include "fake_slices.h"

enum { N_SLICED_TYPES = 2, N_SLICED_MATHS = 2 };
extern const wsgemm_type sliced_types[N_SLICED_TYPES];
extern const wsgemm_math sliced_maths[N_SLICED_MATHS];
int unit_of(wsgemm_type type); /* reals of an element */

/* That forces a row of the class; and the class. */
wsgemm_handle *handle_for(wsgemm_type type, wsgemm_math math);

/* A product with all matrices on the first device, lds larger than need be; a batch of five small
 * ones. */
wsgemm_gemm_desc desc_of(wsgemm_type type, wsgemm_layout layout, wsgemm_op transa, wsgemm_op transb, int64_t m, int64_t n,
                         int64_t k);
wsgemm_gemm_desc batch_of(wsgemm_type type, wsgemm_layout layout, wsgemm_op op, int64_t stride_a, int64_t stride_b);

/* ---- Operands -------------------------------------------------------------------------------- */

/* An operand of a call, as the kernels should see it. */
struct shape {
  const char *data;
  /* of the problem's operands: a row-major product is that of B and A */
  int slot;
  bool along_k, conj;        /* along_k: contiguous along k */
  int64_t n, k, ld, n_given; /* n_given: rows or columns for the units */
  /* of a slice; between products of a batch, in elements of the operand */
  int64_t n_lines, length, stride;
  int n_batch, unit;
};
struct shape shape_of(const wsgemm_gemm_desc *d, bool is_b);

/* An operand in its packed form, and what the kernel was told that cut it. */
struct packing {
  wsgemm_packed *record;
  char *memory;
  size_t bytes;
  ws_slice_operand made;
};

/* wsgemm_prepack, watched as watched_gemm watches a product. */
wsgemm_status watched_prepack(wsgemm_handle *h, const wsgemm_gemm_desc *d, bool is_b, void *memory, size_t bytes,
                              wsgemm_packed **packed);
/* The same, which must succeed, in memory of its own. */
struct packing pack(wsgemm_handle *h, const wsgemm_gemm_desc *d, bool is_b);
void unpack(struct packing *p);

/* Device memory, of which each call gets another part. */
char *next_memory(size_t bytes);

size_t workspace_for(wsgemm_handle *h, const wsgemm_gemm_desc *d);
bool explained_with(wsgemm_handle *h, const wsgemm_gemm_desc *d, const char *words);

/* ---- Products -------------------------------------------------------------------------------- */

/* The launches of a piece. */
struct chain {
  /* the first two: not if both operands are packed */
  const fake_launch *first_pass, *slices, *product;
  const fake_launch *three, *second; /* not of one slice */
  const fake_launch *fallback;
};
/* Those from launch *at on, which becomes the next; cuts: not both operands are packed. */
struct chain next_chain(int *at, wsgemm_type type, wsgemm_math math, bool cuts);

/* What of an operand a piece takes. */
struct part {
  int64_t first, n; /* rows or columns */
  int product, n_batch;
};
struct part whole_of(const struct shape *x);

/* All that the launches of a piece are told of a packed operand. */
void check_chain(const struct chain *c, const struct packing *p, const struct shape *x, const struct part *at, wsgemm_math math);

/* What the call itself makes of its operands: in its own memory, none upon the other. */
void check_own_memory(const struct chain *c, const bool is_packed[2], const char *memory, int64_t bytes);
#endif
