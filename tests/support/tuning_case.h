/* tuning_case.h - tuning entries for the suites of internals: drawn ones, whether two are the same,
 * and lines with a checksum of the suite's own making. */
#ifndef WSGEMM_TESTS_TUNING_CASE_H
#define WSGEMM_TESTS_TUNING_CASE_H

#include "check.h"
#include "tune/tuning.h"

/* Any entry that can be kept; which of its texts need quoting, and which numbers are extreme, is
 * drawn too. */
ws_tuning_entry tuning_draw(struct check_random *rng);

/* An entry like others of a made-up device, for an FP32 product m x n x k of this version, with mc
 * = `mark`. */
ws_tuning_entry tuning_plain(int64_t m, int64_t n, int64_t k, int mark);

/* The entry by which a tuning serves the CPU's calls like this one, on this handle by this
 * thread. */
ws_tuning_entry tuning_for(wsgemm_handle *h, const wsgemm_gemm_desc *d, const ws_tuning *tuning);

/* All of them: key, row, parameters, times to the ns. */
bool tuning_equal(const ws_tuning_entry *x, const ws_tuning_entry *y);

/* The entry of the list that has this key; NULL: none. */
const ws_tuning_entry *tuning_in(const ws_tuning_list *list, const ws_tuning_entry *key);

/* The entry's line with its end, into `line`; its length without the end. */
enum { LINE_BYTES = 1024 };
size_t tuning_line(const ws_tuning_entry *e, char line[LINE_BYTES]);

/* Puts " crc=" and the checksum of the n bytes behind them; the length of it all. `line` has room
 * for 13 more bytes and a NUL. */
size_t tuning_seal(char *line, size_t n);

/* As wsgemm's files begin: the header, and the list's lines; in memory of its own. */
char *tuning_text(const ws_tuning_list *list, size_t *n_bytes);

/* The i-th entry of a writer; all of them differ. */
ws_tuning_entry tuning_of_writer(int writer, int i);

/* Merges one entry into a file. */
bool tuning_merge(const char *path, const ws_tuning_entry *e);

/* Whether just this entry is in a file. */
bool tuning_file_has(const char *path, const ws_tuning_entry *e);

/* How many entries a file has, none of its lines bad; -1: it is damaged, or not to be read. */
int tuning_file_count(const char *path);

/* Whether nobody holds the file's lock. */
bool tuning_file_is_unlocked(const char *path);

#endif
