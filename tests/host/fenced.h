/* fenced.h - memory between two pages that nobody may read or write, so that an access beside an operand ends the test. */
#ifndef WSGEMM_TESTS_FENCED_H
#define WSGEMM_TESTS_FENCED_H
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

extern "C" {
#include "support/check.h"
}

/* Filled with bytes 0xff, which are NaNs of every type. */
struct fenced {
  unsigned char *pages;
  size_t page = size_t(sysconf(_SC_PAGESIZE)), n_bytes;
  explicit fenced(size_t bytes) : n_bytes((bytes + page - 1) / page * page) {
    pages = static_cast<unsigned char *>(mmap(nullptr, n_bytes + 2 * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    REQUIRE(pages != MAP_FAILED && mprotect(pages + page, n_bytes, PROT_READ | PROT_WRITE) == 0, "memory");
    memset(begin(), 0xff, n_bytes);
  }
  ~fenced() { munmap(pages, n_bytes + 2 * page); }
  fenced(const fenced &) = delete;
  fenced &operator=(const fenced &) = delete;
  unsigned char *begin() const { return pages + page; }
  unsigned char *end() const { return begin() + n_bytes; }
};
#endif
