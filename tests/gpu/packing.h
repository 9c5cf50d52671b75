/* packing.h - numbers that need marks, and operands in their packed form, for the suites of these
 * (compute capability 9.0). */
#ifndef WSGEMM_TESTS_PACKING_H
#define WSGEMM_TESTS_PACKING_H
#include "slices.h"

/* What of its numbers two slices will not do for: FOR_THREE slices, FOR_ALL: of some also
 * multiply-adds. */
enum marks { NO_MARKS, FOR_THREE, FOR_ALL };

/* Of (-1, 1), but for so many; in host memory, for free(). */
float *new_floats(size_t n, enum marks marks, int n_marks);
/* Numbers of the type in device memory. */
void *new_numbers(wsgemm_type type, int64_t n, enum marks marks, int n_marks);

/* An operand's packed form: in `memory`, behind a guard and before another. */
enum { PACKING_GUARD = 4096 };
struct packing {
  wsgemm_packed *record;
  unsigned char *memory;
  size_t bytes;
  unsigned long long guards, inside; /* digests */
};

/* Room for it, and its making on the handle's stream; both, and waiting for it. */
struct packing packing_new(wsgemm_handle *h, const wsgemm_gemm_desc *d, bool is_b);
void pack_into(struct packing *p, wsgemm_handle *h, const wsgemm_gemm_desc *d, bool is_b);
struct packing pack(wsgemm_handle *h, const wsgemm_gemm_desc *d, bool is_b);

/* No product changes what others may be reading, nor what surrounds it. */
void check_untouched(const struct packing *p, const char *who);
void check_guards(const struct packing *p, const char *who);

void destroy_record(struct packing *p);
void unpack(struct packing *p); /* and its memory */
#endif
