/* machine.h - what the processor can do, and how large its caches are. */
#ifndef WS_CPU_MACHINE_H
#define WS_CPU_MACHINE_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum ws_isa { WS_ISA_REF, WS_ISA_NEON, WS_ISA_AVX2, WS_ISA_AVX512, WS_ISA_AMX, WS_N_ISAS } ws_isa;

typedef struct ws_machine {
  bool isa[WS_N_ISAS]; /* the processor and the operating system can run it */
  char model[64];
  char features[160];
  int64_t l1d_bytes, l2_bytes, l3_bytes;
  int64_t near_l3_bytes; /* what of L3 is near enough to count on */
  const char *caches_from;
} ws_machine;

const char *ws_isa_name(ws_isa isa);
/* On the first call. */
void ws_machine_detect(void);
/* These caches, before the first plan is made; false: they are not in order, or of a size that none has. */
bool ws_machine_take_caches(const size_t bytes[3]);
/* Whether tile registers (AMX), if the machine has them, are wanted. Linux gives them to processes
 * that ask. The answer holds for all threads, also for those there already, and for children; from
 * then on a signal stack must have room for them (8 KiB more). Refused, for one where a thread's
 * signal stack is too small: isa[AMX] is false. */
void ws_machine_settle_tiles(bool wanted);
/* This machine, after the first call. */
const ws_machine *ws_machine_get(void);
#endif
