/* packing.c - see packing.h. */
#include "packing.h"

#include <math.h>
#include <stdlib.h>

enum { GUARD = PACKING_GUARD };

float *new_floats(size_t n, enum marks marks, int n_marks) {
  static const float large[] = {0x1p35f, 0x1p60f, 0x1p100f, NAN, INFINITY, -INFINITY};
  float *x = malloc(n * sizeof *x);
  REQUIRE(x != NULL, "memory");
  for (size_t at = 0; at < n; at++) x[at] = (float)unit();
  for (int i = 0; i < n_marks && marks != NO_MARKS; i++)
    x[drawn(0, (int64_t)n - 1)] = large[marks == FOR_THREE ? 0 : drawn(0, 5)];
  return x;
}

void *new_numbers(wsgemm_type type, int64_t n, enum marks marks, int n_marks) {
  const size_t n_floats = (size_t)n * (size_t)n_parts(type);
  float *host = new_floats(n_floats, marks, n_marks);
  void *device = gpu_copy(host, n_floats * sizeof *host);
  free(host);
  return device;
}

static unsigned long long guards_of(const struct packing *p) {
  return gpu_digest(p->memory, GUARD) + 3 * gpu_digest(p->memory + GUARD + p->bytes, GUARD);
}

struct packing packing_new(wsgemm_handle *h, const wsgemm_gemm_desc *d, bool is_b) {
  struct packing p = {0};
  REQUIRE(wsgemm_get_packed_size(h, d, (wsgemm_operand)is_b, &p.bytes) == WSGEMM_SUCCESS && p.bytes > 0, "%zu bytes: %s", p.bytes,
          wsgemm_last_error());
  p.memory = gpu_alloc(p.bytes + 2 * GUARD);
  GPU(cudaMemset(p.memory, 0x5a, p.bytes + 2 * GUARD));
  p.guards = guards_of(&p);
  return p;
}

void pack_into(struct packing *p, wsgemm_handle *h, const wsgemm_gemm_desc *d, bool is_b) {
  REQUIRE(wsgemm_prepack(h, d, (wsgemm_operand)is_b, p->memory + GUARD, p->bytes, &p->record) == WSGEMM_SUCCESS, "%s",
          wsgemm_last_error());
}

struct packing pack(wsgemm_handle *h, const wsgemm_gemm_desc *d, bool is_b) {
  struct packing p = packing_new(h, d, is_b);
  pack_into(&p, h, d, is_b);
  GPU(cudaDeviceSynchronize());
  p.inside = gpu_digest(p.memory + GUARD, p.bytes);
  return p;
}

void check_guards(const struct packing *p, const char *who) {
  CHECK(guards_of(p) == p->guards, "%s: what surrounds a packed operand was written", who);
}

void destroy_record(struct packing *p) { CHECK(wsgemm_packed_destroy(p->record) == WSGEMM_SUCCESS, "%s", wsgemm_last_error()); }

void check_untouched(const struct packing *p, const char *who) {
  CHECK(gpu_digest(p->memory + GUARD, p->bytes) == p->inside, "%s: a product wrote into a packed operand", who);
  check_guards(p, who);
}

void unpack(struct packing *p) {
  destroy_record(p);
  gpu_free(p->memory);
}
