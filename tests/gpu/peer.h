/* peer.h - cuBLAS as a peer, found at run time; never linked, and never a part of the library. */
#ifndef WSGEMM_TESTS_PEER_H
#define WSGEMM_TESTS_PEER_H
#include "wsgemm.h"

#include <stdbool.h>

/* Whether there is one; if not, *why says so. It works on the default stream, in its default
 * numerics. */
bool peer_open(const char **why);

/* Whether it knows the op: all but conjugation without transposition. */
bool peer_knows(wsgemm_op op);

/* The product that d says, batch_count being 1; any pointer and ld must be aligned to whole
 * elements. The handle is not looked at. */
wsgemm_status peer_gemm(wsgemm_handle *unused, const wsgemm_gemm_desc *d);
#endif
