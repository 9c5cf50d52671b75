/* test_cublas_device.c - the interposer with the library itself, on the fake driver: what a program's
 * cuBLAS call launches, on which stream, and who computes if the device cannot. */
#include <stdlib.h>
#include <string.h>

#include "fake_cublas.h"
#include "host/fake_driver.h"
#include "support/check.h"

static char *matrix[3];
static cublasHandle_t handle;

static void begin_case(void) {
  for (int i = 0; i < 3; i++) matrix[i] = fake_alloc(FAKE_DEVICE, 0, 64 << 20);
  fake.device[0].cc = 90, fake.device[0].n_sms = 132;
  fake_set_current(fake_primary(0));
  REQUIRE(cublasCreate_v2(&handle) == CUBLAS_STATUS_SUCCESS, "no handle");
  cublasSetStream_v2(handle, (cudaStream_t)&fake.stream[5]);
  fake_forget();
}

static cublasStatus_t sgemm(int n) {
  const float alpha = 1, beta = 0;
  return cublasSgemm_v2(handle, CUBLAS_OP_N, CUBLAS_OP_T, n, n, n, &alpha, (float *)matrix[0], n, (float *)matrix[1], n, &beta,
                        (float *)matrix[2], n);
}

static bool is_written(const char *c) {
  for (int i = 0; i < fake.n_launches; i++)
    if (fake.launch[i].args.c == c) return true;
  return false;
}

/* All launches are in the handle's stream; one of them writes C. */
static void launches_child(void *unused) {
  (void)unused;
  begin_case();
  CHECK(sgemm(2048) == CUBLAS_STATUS_SUCCESS && fake_cublas.n_calls == 0 && fake.n_launches > 0, "%d launches", fake.n_launches);
  for (int i = 0; i < fake.n_launches; i++)
    CHECK(fake.launch[i].stream == (CUstream)&fake.stream[5], "launch %d: %s", i, fake.launch[i].kernel);
  CHECK(is_written(matrix[2]), "C");
  cublasSetStream_v2(handle, (cudaStream_t)&fake.stream[6]);
  fake_forget();
  CHECK(sgemm(2048) == CUBLAS_STATUS_SUCCESS && fake.launch[0].stream == (CUstream)&fake.stream[6], "another stream");
  fake_forget();
  CHECK(sgemm(64) == CUBLAS_STATUS_SUCCESS && fake_cublas.n_calls == 1 && fake.n_launches == 0, "a small product");
  CHECK(!fake.trapped && !fake.misuse, "%s", fake.trapped ? fake.trapped : fake.misuse);
}

/* Without memory for slices the real cuBLAS computes. */
static void no_memory_child(void *unused) {
  (void)unused;
  begin_case();
  fake.device[0].room = 4096;
  CHECK(sgemm(2048) == CUBLAS_STATUS_SUCCESS && fake_cublas.n_calls == 1 && !is_written(matrix[2]), "%d calls",
        fake_cublas.n_calls);
}

/* Scalars in device memory are what wsgemm does not have, today. */
static void scalars_child(void *unused) {
  (void)unused;
  begin_case();
  fake_cublas.scalars = CUBLAS_POINTER_MODE_DEVICE;
  CHECK(sgemm(2048) == CUBLAS_STATUS_SUCCESS && fake_cublas.n_calls + (fake.n_launches > 0) == 1, "%d calls",
        fake_cublas.n_calls);
}

/* A bad ld is cuBLAS's to name. */
static void bad_ld_child(void *unused) {
  (void)unused;
  begin_case();
  const float alpha = 1, beta = 0;
  fake_cublas.status = CUBLAS_STATUS_INVALID_VALUE;
  CHECK(cublasSgemm_v2(handle, CUBLAS_OP_N, CUBLAS_OP_N, 2048, 2048, 2048, &alpha, (float *)matrix[0], 2047, (float *)matrix[1],
                       2048, &beta, (float *)matrix[2], 2048) == CUBLAS_STATUS_INVALID_VALUE &&
            fake_cublas.n_calls == 1 && fake.n_launches == 0,
        "%d calls", fake_cublas.n_calls);
}

/* A captured call stays in the capture, and adds no memory to the graph, which could then be no part of another one: it is cuBLAS's
 * without a workspace that holds what it uses, or if it begins at no multiple of 256 bytes. */
static void captured_child(void *unused) {
  (void)unused;
  begin_case();
  char *const workspace = fake_alloc(FAKE_DEVICE, 0, 128 << 20);
  const struct {
    char *memory;
    size_t bytes;
    bool is_taken;
  } given[] = {{NULL, 0, false}, {workspace, 1 << 20, false}, {workspace, 128 << 20, true}, {workspace + 16, 127 << 20, false}};
  CHECK(sgemm(2048) == CUBLAS_STATUS_SUCCESS && fake_cublas.n_calls == 0, "before");
  for (size_t i = 0; i < sizeof given / sizeof given[0]; i++) {
    REQUIRE(cublasSetWorkspace_v2(handle, given[i].memory, given[i].bytes) == CUBLAS_STATUS_SUCCESS, "workspace %zu", i);
    fake_cublas.n_calls = 0;
    fake_begin_capture(5);
    fake_forget();
    const int n_nodes = fake.n_nodes;
    CHECK(sgemm(2048) == CUBLAS_STATUS_SUCCESS && fake_cublas.n_calls == !given[i].is_taken &&
              is_written(matrix[2]) == given[i].is_taken && fake.n_nodes == n_nodes,
          "workspace %zu: %d launches, %d calls, %d nodes of memory", i, fake.n_launches, fake_cublas.n_calls,
          fake.n_nodes - n_nodes);
    CHECK(!fake.is_capture_broken && !fake.misuse, "the capture is broken");
    fake_end_capture(5);
  }
}

static cublasStatus_t sgemm_batched(char *const *arrays, int n) {
  const float alpha = 1, beta = 0;
  return cublasSgemmBatched(handle, CUBLAS_OP_N, CUBLAS_OP_T, n, n, n, &alpha, (void *)arrays[0], n, (void *)arrays[1], n, &beta,
                            (void *)arrays[2], n, 3);
}

/* Arrays of pointers, which lie in device memory: one launch in the handle's stream, if everything is taken (as ctest runs this case
 * once more). Arrays that lie elsewhere are cuBLAS's. */
static void batches_child(void *unused) {
  (void)unused;
  begin_case();
  const char *const setting = getenv("WSGEMM_CUBLAS");
  const bool takes_all = setting && strcmp(setting, "all") == 0;
  const int wanted = takes_all ? 1 : 0;
  CHECK(sgemm_batched(matrix, 64) == CUBLAS_STATUS_SUCCESS && fake.n_launches == wanted && fake_cublas.n_calls == 1 - wanted,
        "%d launches, %d calls", fake.n_launches, fake_cublas.n_calls);
  CHECK(!takes_all || (strstr(fake.launch[0].kernel, "groups_nt") && fake.launch[0].stream == (CUstream)&fake.stream[5]), "%s",
        fake.launch[0].kernel);
  static char host[4096];
  for (int i = 0; i < 3; i++) {
    char *const others[] = {i == 0 ? host : matrix[0], i == 1 ? host : matrix[1], i == 2 ? host : matrix[2]};
    fake_cublas.n_calls = 0;
    fake_forget();
    CHECK(sgemm_batched(others, 64) == CUBLAS_STATUS_SUCCESS && fake.n_launches == 0 && fake_cublas.n_calls == 1,
          "array %d in host memory: %d launches", i, fake.n_launches);
  }
  fake_cublas.n_calls = 0;
  CHECK(sgemm_batched(matrix, -1) == CUBLAS_STATUS_SUCCESS && fake.n_launches == 0 && fake_cublas.n_calls == 1, "a size of -1");
  if (!takes_all) return;
  fake_begin_capture(5);
  fake_cublas.n_calls = 0;
  fake_forget();
  CHECK(sgemm_batched(matrix, 64) == CUBLAS_STATUS_SUCCESS && fake_cublas.n_calls == 0 && fake.n_launches == 1, "captured");
  CHECK(!fake.is_capture_broken && !fake.misuse && !fake.trapped, "%s", fake.misuse ? fake.misuse : "the capture is broken");
  fake_end_capture(5);
}

#define CASE(name) \
  static void name(void) { check_in_child(#name, name##_child, NULL); }
CASE(launches)
CASE(no_memory)
CASE(scalars)
CASE(bad_ld)
CASE(captured)
CASE(batches)

static const struct check_case cases[] = {
    {"launches", launches}, {"no_memory", no_memory}, {"scalars", scalars},
    {"bad_ld", bad_ld},     {"captured", captured},   {"batches", batches},
};
CHECK_MAIN("cublas_device", cases)
