/* Fuzzes the .npy reader: whatever the bytes, it either refuses with a reason, or gives a matrix
 * that survives being written and read again bit by bit.
 *
 * With clang's -fsanitize=fuzzer and -DWSGEMM_LIBFUZZER this is a libFuzzer harness. Without, a
 * main of its own runs a fixed set: valid files of every kind, all their truncations, every one of
 * their header bytes replaced by every value, and known ways of lying about sizes. */
#include "../../src/cli/npy.h"
#include "../../src/cli/types.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define REQUIRE(fact)                                                             \
  do {                                                                            \
    if (!(fact)) {                                                                \
      fprintf(stderr, "fuzz_npy: line %d: does not hold: %s\n", __LINE__, #fact); \
      abort();                                                                    \
    }                                                                             \
  } while (0)

static void check_reason(const char *why) {
  REQUIRE(memchr(why, 0, WS_NPY_WHY_BYTES) != NULL);
  REQUIRE(*why != 0);
}

static size_t data_bytes(const ws_npy *m) { return (size_t)(m->n_rows * m->n_cols * ws_cli_types[m->type].bytes); }

/* The reader must take what the writer makes of m, and find the same in it. */
static void check_round_trip(const ws_npy *m) {
  char header[WS_NPY_HEADER_BYTES], why[WS_NPY_WHY_BYTES];
  const size_t header_bytes = ws_npy_header(m, header), n_data = data_bytes(m);
  REQUIRE(header_bytes <= sizeof header && header_bytes % 64 == 0);
  unsigned char *file = malloc(header_bytes + n_data);
  REQUIRE(file != NULL);
  memcpy(file, header, header_bytes);
  memcpy(file + header_bytes, m->data, n_data);
  ws_npy again;
  REQUIRE(ws_npy_decode(file, header_bytes + n_data, &again, why));
  REQUIRE(again.type == m->type && again.n_rows == m->n_rows && again.n_cols == m->n_cols && again.is_fortran == m->is_fortran);
  REQUIRE(memcmp(again.data, m->data, n_data) == 0);
  free(again.data);
  free(file);
}

/* Returns whether the bytes were taken for a matrix. */
static bool try_bytes(const unsigned char *bytes, size_t n_bytes) {
  char why[WS_NPY_WHY_BYTES];
  ws_npy m;
  memset(why, 'x', sizeof why);
  /* A copy of just the right size, so that a sanitizer sees any byte read beyond it. */
  unsigned char *copy = malloc(n_bytes ? n_bytes : 1);
  REQUIRE(copy != NULL);
  if (n_bytes) memcpy(copy, bytes, n_bytes);
  const bool taken = ws_npy_decode(copy, n_bytes, &m, why);
  free(copy);
  if (!taken) {
    check_reason(why);
    return false;
  }
  REQUIRE(m.n_rows >= 0 && m.n_cols >= 0);
  REQUIRE(data_bytes(&m) <= n_bytes);
  check_round_trip(&m);
  free(m.data);
  return true;
}

int LLVMFuzzerTestOneInput(const unsigned char *bytes, size_t n_bytes) {
  try_bytes(bytes, n_bytes);
  return 0;
}

#ifndef WSGEMM_LIBFUZZER

typedef struct {
  unsigned char bytes[512];
  size_t n_header, n_bytes;
} sample;

/* A file of the given version with this dictionary, followed by n_data bytes. */
static sample make_sample(int version, const char *dictionary, size_t n_data) {
  sample s = {.n_header = version == 1 ? 10 : 12};
  const size_t length = strlen(dictionary);
  REQUIRE(s.n_header + length + n_data <= sizeof s.bytes);
  memcpy(s.bytes, "\x93NUMPY", 6);
  s.bytes[6] = (unsigned char)version;
  s.bytes[8] = (unsigned char)length;
  memcpy(s.bytes + s.n_header, dictionary, length);
  s.n_header += length;
  for (size_t i = 0; i < n_data; i++) s.bytes[s.n_header + i] = (unsigned char)(37 * i + 1);
  s.n_bytes = s.n_header + n_data;
  return s;
}

static const struct {
  int version;
  const char *dictionary;
  size_t n_data;
  bool is_good;
} seeds[] = {
    {1, "{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }   \n", 48, true},
    {2, "{'descr': '>f8', 'fortran_order': True, 'shape': (2, 3), }\n", 48, true},
    {3, "{'shape':(1,2),\"descr\":\"<c8\",'fortran_order':False}", 16, true},
    {1, "{'descr': '>c16', 'fortran_order': False, 'shape': (2L, 1L), }\n", 32, true},
    {1, "{'descr': '<f4', 'fortran_order': False, 'shape': (0, 7), }\n", 0, true},
    {1, "{'descr': '<f4', 'fortran_order': False, 'shape': (9223372036854775807, 0), }\n", 0, true},
    {1, "{'descr': '<f4', 'fortran_order': False, 'shape': (3037000500, 3037000500), }\n", 16, false},
    {1, "{'descr': '<f4', 'fortran_order': False, 'shape': (4611686018427387904, 4), }\n", 0, false},
    {1, "{'descr': '<f8', 'fortran_order': False, 'shape': (2305843009213693952, 1), }\n", 0, false},
    {1, "{'descr': '<f4', 'fortran_order': False, 'shape': (18446744073709551617, 1), }\n", 4, false},
    {1, "{'descr': '<f4', 'fortran_order': False, 'shape': (-1, 4), }\n", 16, false},
    {1, "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 2), }\n", 17, false},
    {1, "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 2), }\n", 15, false},
    {1, "{'descr': '<f4', 'fortran_order': False, 'shape': (4,), }\n", 16, false},
    {1, "{'descr': '<f4', 'fortran_order': False, 'shape': (), }\n", 4, false},
    {1, "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 2, 1), }\n", 16, false},
    {1, "{'descr': '<i4', 'fortran_order': False, 'shape': (2, 2), }\n", 16, false},
    {1, "{'descr': '|O', 'fortran_order': False, 'shape': (2, 2), }\n", 32, false},
    {1, "{'descr': [('x', '<f4')], 'fortran_order': False, 'shape': (2, 2), }\n", 16, false},
    {1, "{'descr': '<f4', 'fortran_order': 0, 'shape': (2, 2), }\n", 16, false},
    {1, "{'descr': '<f4', 'fortran_order': False, }\n", 16, false},
    {1, "{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': (2, 2), }\n", 16, false},
    {1, "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 2), } {\n", 16, false},
    {4, "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 2), }\n", 16, false},
    {1, "", 0, false},
};

/* Every truncation is refused: the file says how long it has to be. */
static void cut_everywhere(const sample *s) {
  for (size_t length = 0; length < s->n_bytes; length++) REQUIRE(!try_bytes(s->bytes, length));
}

static int replace_everywhere(sample s) {
  int n_taken = 0;
  for (size_t i = 0; i < s.n_header; i++) {
    const unsigned char kept = s.bytes[i];
    for (int value = 0; value < 256; value++) {
      s.bytes[i] = (unsigned char)value;
      n_taken += try_bytes(s.bytes, s.n_bytes);
    }
    s.bytes[i] = kept;
  }
  return n_taken;
}

int main(void) {
  for (size_t i = 0; i < sizeof seeds / sizeof *seeds; i++) {
    const sample s = make_sample(seeds[i].version, seeds[i].dictionary, seeds[i].n_data);
    if (try_bytes(s.bytes, s.n_bytes) != seeds[i].is_good) {
      fprintf(stderr, "fuzz_npy: seed %zu is %s: %s", i, seeds[i].is_good ? "refused" : "taken", seeds[i].dictionary);
      return 1;
    }
    if (!seeds[i].is_good) continue;
    cut_everywhere(&s);
    const int n_taken = replace_everywhere(s);
    /* At least itself, once for each of its bytes; far from all, or nothing is checked. */
    REQUIRE(n_taken >= (int)s.n_header && n_taken < 200 * (int)s.n_header);
  }
  printf("fuzz_npy: %zu seeds, their truncations and replacements: ok\n", sizeof seeds / sizeof *seeds);
  return 0;
}
#endif
