/* parts.h - rows that differ only in how many blocks share the k of an item have one entry point, whose name has no parts: that of the
 * row of one block. WS_IF_PARTS_<blocks>(text): the text, if it is that row. */
#ifndef WS_CUDA_PARTS_H
#define WS_CUDA_PARTS_H

/* Blocks of a cluster that any device of cc 9.0 has room for; more have to be allowed, and asked for. */
enum { WS_PORTABLE_PARTS = 8, WS_MOST_PARTS = 16 };

#define WS_IF_PARTS_1(...) __VA_ARGS__
#define WS_IF_PARTS_2(...)
#define WS_IF_PARTS_3(...)
#define WS_IF_PARTS_4(...)
#define WS_IF_PARTS_8(...)
#define WS_IF_PARTS_16(...)
#endif
