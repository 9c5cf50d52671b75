/* tuning_case.h - tuning entries for the suites of internals: drawn ones, whether two are the same, and lines with a checksum of the
 * suite's own making. */
#ifndef WSGEMM_TESTS_TUNING_CASE_H
#define WSGEMM_TESTS_TUNING_CASE_H

#include "check.h"
#include "tuning.h"

/* Any entry that can be kept; which of its texts need quoting, and which numbers are extreme, is drawn too. */
ws_tuning_entry tuning_draw(struct check_random *dice);

/* An entry like others of a made-up device, for an FP32 product m x n x k of this version, with mc = `mark`. */
ws_tuning_entry tuning_plain(int64_t m, int64_t n, int64_t k, int mark);

/* All of them: key, row, parameters, times to the ns. */
bool tuning_equal(const ws_tuning_entry *x, const ws_tuning_entry *y);

/* The entry of the list that has this key; NULL: none. */
const ws_tuning_entry *tuning_in(const ws_tuning_list *list, const ws_tuning_entry *key);

/* The entry's line with its end, into `line`; its length without the end. */
enum { LINE_BYTES = 1024 };
size_t tuning_line(const ws_tuning_entry *e, char line[LINE_BYTES]);

/* Puts " crc=" and the checksum of the n bytes behind them; the length of it all. `line` has room for 13 more bytes and a NUL. */
size_t tuning_seal(char *line, size_t n);

/* As wsgemm's files begin: the header, and the list's lines; in memory of its own. */
char *tuning_text(const ws_tuning_list *list, size_t *n_bytes);

#endif
