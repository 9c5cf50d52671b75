/* pages.h - memory from the system in whole large pages. */
#ifndef WS_CPU_PAGES_H
#define WS_CPU_PAGES_H
#include <stddef.h>

#define WS_LARGE_PAGE ((size_t)2 << 20)

/* bytes: a multiple of WS_LARGE_PAGE, at which the memory is aligned. NULL: there is none. */
void *ws_pages_map(size_t bytes);
void ws_pages_unmap(void *pages, size_t bytes);
#endif
