/* NumPy's .npy files that hold one matrix: reading, writing, and the parts of both that work on
 * memory alone.
 *
 * Read are format versions 1, 2 and 3, element types f2, f4, f8, c8 and c16 of either byte order, C
 * or Fortran order, 2-D arrays with any sizes, zero included. Everything else is refused with a
 * reason in plain words, without the file's name: the caller knows it. Nothing a header says is
 * believed before it agrees with the real size of the file. */
#ifndef WSGEMM_CLI_NPY_H
#define WSGEMM_CLI_NPY_H

#include "wsgemm.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Room for a reason. */
enum { WS_NPY_WHY_BYTES = 256 };

/* Writes a reason; always false. */
bool ws_npy_refuse(char why[WS_NPY_WHY_BYTES], const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Longest header that is looked at: far above what a plain matrix needs, far below what would
 * hurt. */
enum { WS_NPY_HEADER_MAX_BYTES = 65536 };

/* A matrix in memory: native byte order, no padding between rows (columns if is_fortran). */
typedef struct ws_npy {
  wsgemm_type type;
  int64_t n_rows, n_cols;
  bool is_fortran;
  void *data; /* aligned to 64 bytes, or as the file has it; never NULL, to be freed with free(), or ws_npy_free */
  char *map;  /* of a file that it lies in; NULL: data is of ws_npy_alloc */
  size_t map_bytes;
} ws_npy;

/* What the header of a file says. */
typedef struct ws_npy_info {
  wsgemm_type type;
  int64_t n_rows, n_cols;
  bool is_fortran, is_swapped;     /* is_swapped: the other byte order than this machine's */
  int64_t data_offset, data_bytes; /* data_offset + data_bytes is the size of the file */
} ws_npy_info;

/* Parses the header that begins at `start`, of which n_start bytes are at hand: min(file_bytes,
 * WS_NPY_HEADER_MAX_BYTES) always suffice. False: *why says what is wrong. */
bool ws_npy_parse(const unsigned char *start, size_t n_start, int64_t file_bytes, ws_npy_info *info, char why[WS_NPY_WHY_BYTES]);

/* Bytes of a matrix's data; -1: more than an address can say. */
int64_t ws_npy_data_bytes(wsgemm_type type, int64_t n_rows, int64_t n_cols);

/* Memory for a matrix (at least one element); NULL: there is not enough. */
void *ws_npy_alloc(wsgemm_type type, int64_t n_rows, int64_t n_cols);

/* A whole file that lies in memory. */
bool ws_npy_decode(const unsigned char *file, size_t n_bytes, ws_npy *out, char why[WS_NPY_WHY_BYTES]);

/* Turns each number of `data` from the other byte order to this machine's. */
void ws_npy_swap(wsgemm_type type, void *data, int64_t n_bytes);

/* The header that belongs before m's data, as NumPy writes it; returns its length, a multiple of
 * 64. */
enum { WS_NPY_HEADER_BYTES = 192 };
size_t ws_npy_header(const ws_npy *m, char header[WS_NPY_HEADER_BYTES]);

/* Reads a regular file. maps: the matrix stays in the file, if its bytes are in this machine's order: for such as are
 * larger than memory. It is read while the file is used, so that cutting it short then ends the program. */
bool ws_npy_load(const char *path, bool maps, ws_npy *out, char why[WS_NPY_WHY_BYTES]);
void ws_npy_free(ws_npy *m);

/* Writing: open (everything that can be found out before the work is: no such folder, no
 * permission, disc full), then either commit or discard. Until commit has returned true the old
 * file of that name, if any, stays as it was: what is written goes to a temporary file beside it,
 * which is removed on failure and on SIGINT, SIGTERM and SIGHUP. One output at a time. */
typedef struct ws_npy_output {
  char *path;      /* its final path */
  char *temporary; /* in the same folder */
  int fd;
} ws_npy_output;
bool ws_npy_open_output(const char *path, int64_t data_bytes, ws_npy_output *out, char why[WS_NPY_WHY_BYTES]);
/* Memory for m's data in that file, in place of ws_npy_alloc: commit writes no more than the header then. */
bool ws_npy_map_output(const ws_npy_output *out, ws_npy *m, char why[WS_NPY_WHY_BYTES]);
bool ws_npy_commit_output(ws_npy_output *out, const ws_npy *m, char why[WS_NPY_WHY_BYTES]);
void ws_npy_discard_output(ws_npy_output *out);

/* The whole file to standard output, past its buffer, which must be empty. */
bool ws_npy_write_stdout(const ws_npy *m, char why[WS_NPY_WHY_BYTES]);

#endif
