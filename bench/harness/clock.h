/* clock.h - the time of a bench: a monotonic clock, the date that a result carries, and caches
 * that hold nothing of the operands. */
#ifndef WSGEMM_BENCH_CLOCK_H
#define WSGEMM_BENCH_CLOCK_H
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

double ws_bench_now(void); /* seconds, monotonic */
/* From now on it is the time that the calling thread has had a processor: for one thread, on a
 * machine where others work, too. */
void ws_bench_use_processor_time(void);

enum { WS_BENCH_DATE_BYTES = 24 };
void ws_bench_date(char text[WS_BENCH_DATE_BYTES]); /* now: "2026-11-23T00:58:03Z" */

/* Reads and writes 16 MiB, more than the L2 of a core: operands, tables and code are in no cache
 * near the core afterwards. False: out of memory. */
int ws_bench_flush_cpu(void);

#ifdef __cplusplus
}
#endif
#endif
