/* record_bits.c - prints the bits of calls on host memory, drawn at random: record_bits SEED COUNT
 * [LARGEST]. See call_bits.h. */
#include "support/call_bits.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void *copy(const void *host, size_t bytes) {
  void *memory = malloc(bytes);
  REQUIRE(memory, "memory");
  return memcpy(memory, host, bytes);
}

static void read_back(void *host, const void *memory, size_t bytes) { memcpy(host, memory, bytes); }

int main(int argc, char **argv) {
  if (argc < 3) {
    fprintf(stderr, "usage: record_bits SEED COUNT [LARGEST]\n");
    return 2;
  }
  const struct call_memory memory = {copy, read_back, free};
  call_bits_print("cpu", &memory, strtoull(argv[1], NULL, 10), atoi(argv[2]), argc > 3 ? atoll(argv[3]) : 400);
  return 0;
}
