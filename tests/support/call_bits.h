/* call_bits.h - the bits of calls drawn at random, one line a call, so that two builds of the
 * library can be compared line by line.
 *
 * Only the public interface is used. Memory is the caller's: on the host, or on a GPU. A line is
 *   number description | status | kernel | digest of C and of the column sums
 * and the description has no spaces but one between its parts. */
#ifndef WSGEMM_TESTS_CALL_BITS_H
#define WSGEMM_TESTS_CALL_BITS_H
#include "gemm_call.h"

/* Memory that calls read and write. */
struct call_memory {
  void *(*copy)(const void *host, size_t bytes);              /* new memory with these bytes */
  void (*read)(void *host, const void *memory, size_t bytes); /* waits for all work before */
  void (*release)(void *memory);
};

/* Prints the lines of calls 0 .. count - 1 of a seed, on rows of the backend ("cpu", "cuda"), sizes
 * up to `largest`. */
void call_bits_print(const char *backend, const struct call_memory *memory, unsigned long long seed, int count, int64_t largest);
#endif
