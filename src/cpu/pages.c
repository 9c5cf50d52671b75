/* pages.c - see pages.h: mmap, large pages asked for where the system has them, as packed panels are read in
 * long strides of pages otherwise. */
#define _DEFAULT_SOURCE
#include "cpu/pages.h"

#include <stdint.h>
#include <sys/mman.h>

/* More than asked for, then the ends cut off. Only an aligned stretch can become large pages, and small
 * ones, scattered as they are, would meet each other in the same sets of L2. */
void *ws_pages_map(size_t bytes) {
  char *base = mmap(NULL, bytes + WS_LARGE_PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (base == MAP_FAILED) return NULL;
  const size_t front = (WS_LARGE_PAGE - (uintptr_t)base % WS_LARGE_PAGE) % WS_LARGE_PAGE;
  if (front > 0) munmap(base, front);
  if (front < WS_LARGE_PAGE) munmap(base + front + bytes, WS_LARGE_PAGE - front);
#ifdef MADV_HUGEPAGE
  madvise(base + front, bytes, MADV_HUGEPAGE);
#endif
  return base + front;
}

void ws_pages_unmap(void *pages, size_t bytes) { munmap(pages, bytes); }
