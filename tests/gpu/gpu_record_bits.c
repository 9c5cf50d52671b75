/* gpu_record_bits.c - prints the bits of calls on a GPU, drawn at random: gpu_record_bits SEED
 * COUNT [LARGEST]. See call_bits.h. */
#include "gpu.h"
#include "support/call_bits.h"

#include <stdio.h>
#include <stdlib.h>

static void read_back(void *host, const void *memory, size_t bytes) {
  GPU(cudaMemcpy(host, memory, bytes, cudaMemcpyDeviceToHost));
}

int main(int argc, char **argv) {
  if (argc < 3) {
    fprintf(stderr, "usage: gpu_record_bits SEED COUNT [LARGEST]\n");
    return 2;
  }
  gpu_open();
  const struct call_memory memory = {gpu_copy, read_back, gpu_free};
  call_bits_print("cuda", &memory, strtoull(argv[1], NULL, 10), atoi(argv[2]), argc > 3 ? atoll(argv[3]) : 2500);
  return 0;
}
