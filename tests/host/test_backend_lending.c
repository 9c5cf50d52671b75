/* test_backend_lending.c - what the library lends to calls on device memory, launch states, memory
 * for partial sums and for operands: that any number of streams and captured launches, one after
 * the other, get the same arithmetic; that no two which may run at once share any of it; that
 * nothing is used of a context that is no more. And that calls do not wait for calls on other
 * devices. Seen by a fake driver. */
#define _GNU_SOURCE
#include "fake_slices.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { N_CUT = 6 }; /* launches of a product of slices */
static const char *const sliced_row = "sgemm_f16x3_128x64x64_c2_x1";

/* More items than blocks that fit, so that they are stolen. */
static wsgemm_handle *stealing_handle(void) {
  wsgemm_handle *h = handle_of_row(gpu_row_with(WSGEMM_F32, 64, 32, 1));
  REQUIRE(wsgemm_set_policy(h, WSGEMM_POLICY_STEAL) == WSGEMM_SUCCESS, "%s", wsgemm_last_error());
  return h;
}

/* The state of a product on this stream; -1: none. */
static int state_on(wsgemm_handle *h, int stream, int device) {
  const wsgemm_gemm_desc d = device_desc(WSGEMM_F32, 1000, 1000, 10, device);
  wsgemm_set_stream(h, stream > 0 ? &fake.stream[stream] : NULL);
  const fake_launch *l = launch_of(h, &d);
  /* its first member */
  const ws_launch_state *state = (const ws_launch_state *)(const void *)l->args.sched.queue;
  if (!state) return -1;
  CHECK(state >= fake.states[device] && state < fake.states[device] + WS_N_STATES, "a state that is none");
  return (int)(state - fake.states[device]);
}

/* ---- streams that come and go ---------------------------------------------------------------- */

/* More streams than there are states, all with something in flight: none shares, none waits; those
 * beyond work without. */
CHILD_CASE(busy_streams) {
  (void)unused;
  static bool is_taken[WS_N_STATES];
  wsgemm_handle *h = stealing_handle();
  int n_without = 0;
  for (int s = 0; s < FAKE_N_STREAMS; s++) {
    fake.stream[s].is_busy = true;
    const int state = state_on(h, s, 0);
    n_without += state < 0;
    if (state < 0) continue;
    if (!CHECK(!is_taken[state], "stream %d shares state %d", s, state)) return;
    is_taken[state] = true;
  }
  CHECK(n_without == FAKE_N_STREAMS - WS_N_STATES && fake.n_waits == 0, "%d streams without a state, %d waits", n_without,
        fake.n_waits);
  for (int s = 0; s < FAKE_N_STREAMS; s++) fake.stream[s].is_busy = false;
  const int mine = state_on(h, FAKE_N_STREAMS - 1, 0);
  CHECK(mine >= 0, "none, though most streams have nothing in flight");
  CHECK(state_on(h, FAKE_N_STREAMS - 1, 0) == mine, "it has another one in the next call");
  wsgemm_destroy(h);
}

/* A stream a request: each is as good as the first. */
CHILD_CASE(streams_that_end) {
  (void)unused;
  wsgemm_handle *h = stealing_handle();
  for (int i = 0; i < 3 * WS_N_STATES; i++) {
    if (!CHECK(state_on(h, 7, 0) >= 0, "stream %d works without a state", i)) break;
    fake_end_stream(7);
  }
  CHECK(fake.n_waits == 0, "%d waits", fake.n_waits);
  wsgemm_destroy(h);
}

/* While another thread captures: what asks whether a stream is done may not break that. */
CHILD_CASE(streams_that_end_beside_a_capture) {
  (void)unused;
  wsgemm_handle *h = stealing_handle();
  fake_begin_capture(9);
  for (int i = 0; i < 2 * WS_N_STATES; i++) {
    if (!CHECK(state_on(h, 7, 0) >= 0, "stream %d works without a state", i)) break;
    fake_end_stream(7);
  }
  wsgemm_destroy(h);
}

/* The arithmetic of a product of slices, which needs memory, is the same on any stream: its kernels
 * are. */
CHILD_CASE(same_arithmetic_on_all_streams) {
  (void)unused;
  wsgemm_handle *h = forced(sliced_row);
  const wsgemm_gemm_desc d = device_desc(WSGEMM_F32, 64, 64, 128, 0);
  for (int i = 0; i < FAKE_N_STREAMS + 100; i++) {
    const int s = i % FAKE_N_STREAMS;
    fake.stream[s].is_busy = true;
    wsgemm_set_stream(h, &fake.stream[s]);
    fake.n_waits = 0;
    REQUIRE(watched_gemm(h, &d) == WSGEMM_SUCCESS, "%s", wsgemm_last_error());
    if (!CHECK(fake.n_launches == N_CUT, "stream %d: %s", i, fake.launch[0].kernel)) break;
    CHECK(fake.n_waits == (i > 0), "stream %d: %d waits", i, fake.n_waits);
  }
  wsgemm_destroy(h);
}

/* Memory for partial sums: the last of it goes from stream to stream, without a wait. */
CHILD_CASE(sums_are_passed_on) {
  (void)unused;
  const wsgemm_gemm_desc d = device_desc(WSGEMM_F64, 64, 64, 8192, 0);
  wsgemm_handle *h = NULL;
  char *last = NULL;
  REQUIRE(wsgemm_create(&h) == WSGEMM_SUCCESS, "handle");
  for (int s = 1; s <= WS_N_SUMS + 3; s++) {
    fake.stream[s].is_busy = true;
    wsgemm_set_stream(h, &fake.stream[s]);
    const fake_launch *l = launch_of(h, &d);
    CHECK(is_split(l) && (l->args.split.sums != NULL) == (s <= WS_N_SUMS), "stream %d: sums at %p", s, l->args.split.sums);
    if (s == WS_N_SUMS) last = l->args.split.sums;
  }
  fake.stream[WS_N_SUMS].is_busy = false;
  const fake_launch *l = launch_of(h, &d); /* the last stream */
  CHECK(l->is_cooperative && (char *)l->args.split.sums == last, "sums at %p, not %p", l->args.split.sums, (void *)last);
  wsgemm_set_stream(h, &fake.stream[WS_N_SUMS]);
  CHECK(launch_of(h, &d)->args.split.sums == NULL, "two streams have the same sums");
  wsgemm_set_stream(h, &fake.stream[1]);
  CHECK(launch_of(h, &d)->args.split.sums == fake.sums[0] && fake.n_waits == 0, "the first stream has lost its own");
  wsgemm_destroy(h);
}

/* ---- captured calls -------------------------------------------------------------------------- */

/* A graph that is no more gives back what its calls had: the next is as good as the first. Those
 * that are alive share nothing. */
CHILD_CASE(graphs_that_end) {
  (void)unused;
  enum { N_ALIVE = 3 };
  wsgemm_handle *h = stealing_handle(), *cutting = forced(sliced_row);
  const wsgemm_gemm_desc cut = device_desc(WSGEMM_F32, 64, 64, 128, 0);
  CUgraph alive[N_ALIVE] = {NULL};
  int state_of[N_ALIVE] = {-1, -1, -1};
  wsgemm_set_stream(cutting, &fake.stream[8]);
  for (int i = 0; i < 2 * WS_N_STATES; i++) {
    const int which = i % N_ALIVE;
    if (alive[which]) fake_destroy_graph(alive[which]);
    state_of[which] = -1;
    fake_begin_capture(7);
    const int state = state_on(h, 7, 0);
    if (!CHECK(state >= 0, "captured call %d works without a state", i)) return;
    for (int other = 0; other < N_ALIVE; other++) CHECK(state_of[other] != state, "graphs that are alive share state %d", state);
    state_of[which] = state, alive[which] = fake_end_capture(7);
    CHECK(fake.n_user_objects == (i < N_ALIVE ? i + 1 : N_ALIVE), "%d objects are alive", fake.n_user_objects);
    if (i % 1024 != 0) continue;
    fake_begin_capture(8);
    REQUIRE(watched_gemm(cutting, &cut) == WSGEMM_SUCCESS, "%s", wsgemm_last_error());
    CHECK(fake.n_launches == N_CUT, "captured call %d has other arithmetic: %s", i, fake.launch[0].kernel);
    fake_destroy_graph(fake_end_capture(8));
  }
  wsgemm_destroy(h), wsgemm_destroy(cutting);
}

/* One piece of memory serves all of a call: a captured one has the launches of any other. */
CHILD_CASE(captured_residual_in_c) {
  (void)unused;
  wsgemm_handle *h = forced(sliced_row);
  wsgemm_gemm_desc d = device_desc(WSGEMM_F32, 64, 64, 128, 0);
  d.residual = d.c, d.ld_residual = d.ldc, d.epilogue = WSGEMM_EPILOGUE_RELU;
  for (int captured = 0; captured < 2; captured++) {
    wsgemm_set_stream(h, &fake.stream[1 + captured]);
    if (captured) fake_begin_capture(2);
    REQUIRE(watched_gemm(h, &d) == WSGEMM_SUCCESS, "%s", wsgemm_last_error());
    CHECK(fake.n_launches == 1 + N_CUT + 1, "captured %d: %d launches, the second of %s", captured, fake.n_launches,
          fake.launch[1].kernel);
    CHECK(fake.n_nodes == captured && fake.n_user_objects == 0, "captured %d: %d nodes", captured, fake.n_nodes);
  }
  wsgemm_destroy(h);
}

/* A graph that cannot be told to give it back is given none. */
CHILD_CASE(graphs_that_retain_nothing) {
  (void)unused;
  static const fake_function functions[] = {FAKE_cuUserObjectCreate, FAKE_cuGraphRetainUserObject};
  wsgemm_handle *h = stealing_handle();
  const wsgemm_gemm_desc d = device_desc(WSGEMM_F32, 1000, 1000, 10, 0);
  for (int f = 0; f < 2; f++)
    for (int i = 0; i < WS_N_STATES; i++) {
      fake_begin_capture(7);
      wsgemm_set_stream(h, &fake.stream[7]);
      fake_fail(functions[f], 1, 1, CUDA_ERROR_OUT_OF_MEMORY);
      fake_forget();
      if (!CHECK(wsgemm_gemm(h, &d) == WSGEMM_ALLOC_FAILED && fake.n_launches == 0, "call %d: %s", i, wsgemm_last_error()))
        return;
      CHECK(fake.n_user_objects == 0, "%d objects", fake.n_user_objects);
      fake_destroy_graph(fake_end_capture(7));
    }
  fake_fail(FAKE_ANY, 0, 0, CUDA_SUCCESS);
  fake_begin_capture(7);
  CHECK(state_on(h, 7, 0) >= 0, "failed calls have kept all states");
  wsgemm_destroy(h);
}

/* The device is full: without that memory the bits would be others, so there is no product; with
 * room there is. Its sums it can do without. */
CHILD_CASE(no_room) {
  (void)unused;
  wsgemm_handle *h = forced(sliced_row);
  const wsgemm_gemm_desc d = device_desc(WSGEMM_F32, 64, 64, 128, 0), split = device_desc(WSGEMM_F32, 64, 64, 100000, 0);
  size_t bytes = 0;
  CHECK(wsgemm_get_workspace_size(h, &d, &bytes) == WSGEMM_SUCCESS, "%s", wsgemm_last_error());
  REQUIRE(wsgemm_set_workspace(h, fake_alloc(FAKE_DEVICE, 0, bytes), bytes) == WSGEMM_SUCCESS, "%s", wsgemm_last_error());
  REQUIRE(watched_gemm(h, &d) == WSGEMM_SUCCESS && fake.n_launches == N_CUT, "%s", wsgemm_last_error());
  REQUIRE(wsgemm_set_workspace(h, NULL, 0) == WSGEMM_SUCCESS, "%s", wsgemm_last_error());
  char words[64];
  snprintf(words, sizeof words, "this product needs %zu bytes", bytes);
  fake_fail(FAKE_cuMemAlloc, 1, 1000, CUDA_ERROR_OUT_OF_MEMORY);
  for (int i = 0; i < 2; i++) expect_failure(h, &d, WSGEMM_ALLOC_FAILED, words);
  /* No piece of this one would fit that memory, so it is not asked for. */
  const wsgemm_gemm_desc long_k = device_desc(WSGEMM_F32, 300, 300, 300000, 0);
  CHECK(wsgemm_gemm(h, &long_k) == WSGEMM_SUCCESS, "%s", wsgemm_last_error());
  fake_fail(FAKE_cuMemAlloc, 0, 0, CUDA_SUCCESS);
  CHECK(watched_gemm(h, &d) == WSGEMM_SUCCESS && fake.n_launches == N_CUT, "with room: %s", wsgemm_last_error());
  fake_end_context(fake_primary(0));
  REQUIRE(wsgemm_set_math(h, WSGEMM_MATH_PEDANTIC) == WSGEMM_SUCCESS && wsgemm_set_kernel(h, NULL) == WSGEMM_SUCCESS &&
              wsgemm_set_workspace(h, fake_alloc(FAKE_DEVICE, 0, 32 << 20), 32 << 20) == WSGEMM_SUCCESS,
          "%s", wsgemm_last_error());
  /* loads all but the library's own sums */
  CHECK(launch_of(h, &split)->args.split.sums, "no sums in the workspace");
  REQUIRE(wsgemm_set_workspace(h, NULL, 0) == WSGEMM_SUCCESS, "%s", wsgemm_last_error());
  fake_fail(FAKE_cuLibraryLoadData, 1, 1, CUDA_ERROR_OUT_OF_MEMORY);
  CHECK(!launch_of(h, &split)->args.split.sums && fake.n_watched == 1, "sums that there is no room for");
  CHECK(launch_of(h, &split)->args.split.sums, "no sums with room");
  wsgemm_destroy(h);
}

/* ---- ends that cannot be recorded ------------------------------------------------------------ */

static bool synchronising_fails;
static void fail_to_tell(fake_function function) {
  const bool fails = function == FAKE_cuEventRecord || (function == FAKE_cuStreamSynchronize && synchronising_fails);
  fake_fail(function, 1, fails, CUDA_ERROR_UNKNOWN);
}

/* A call whose event cannot be recorded, beside a capture, which does not break. */
static void call_without_end(wsgemm_handle *h, const wsgemm_gemm_desc *d, int stream) {
  wsgemm_set_stream(h, &fake.stream[stream]);
  fake.stream[stream].is_busy = true;
  fake_forget();
  fake.before_call = fail_to_tell;
  CHECK(wsgemm_gemm(h, d) == WSGEMM_SUCCESS, "%s", wsgemm_last_error());
  fake.before_call = NULL;
  fake_fail(FAKE_ANY, 0, 0, CUDA_SUCCESS);
  CHECK(fake.n_calls_of[FAKE_cuEventRecord] == 1 && fake.n_calls_of[FAKE_cuStreamSynchronize] == 1 && !fake.is_capture_broken &&
            fake_capture_mode() == CU_STREAM_CAPTURE_MODE_GLOBAL,
        "%d events, %d waits", fake.n_calls_of[FAKE_cuEventRecord], fake.n_calls_of[FAKE_cuStreamSynchronize]);
}

/* The memory for copies: the call waits for its own stream, and others have the memory; if that
 * fails, too, they have new memory. */
CHILD_CASE(copies_without_end) {
  (void)unused;
  wsgemm_handle *h = forced(sliced_row);
  const wsgemm_gemm_desc d = device_desc(WSGEMM_F32, 64, 64, 128, 0);
  fake_begin_capture(9);
  for (int i = 0; i < 2; i++) {
    synchronising_fails = i > 0;
    call_without_end(h, &d, 1 + 3 * i);
    const char *first = fake.copies[0];
    fake_end_stream(1 + 3 * i); /* nobody can ask it any more */
    for (int s = 2; s <= 3; s++) {
      wsgemm_set_stream(h, &fake.stream[s + 3 * i]);
      fake.n_waits = 0;
      REQUIRE(watched_gemm(h, &d) == WSGEMM_SUCCESS && fake.n_launches == N_CUT, "stream %d: %s", s, wsgemm_last_error());
      const char *state = (const char *)fake.launch[0].slices.operand[0].state;
      CHECK(state >= fake.copies[0] && state < fake.copies[0] + fake.copies_bytes[0] && (fake.copies[0] != first) == (i > 0),
            "stream %d: memory at %p, at first %p", s, (void *)fake.copies[0], (void *)first);
      CHECK(fake.n_waits == (s == 3 || i == 0), "stream %d: %d waits", s, fake.n_waits);
    }
  }
  wsgemm_destroy(h);
}

/* Sums that are passed on. */
CHILD_CASE(sums_without_end) {
  (void)unused;
  const wsgemm_gemm_desc d = device_desc(WSGEMM_F64, 64, 64, 8192, 0);
  wsgemm_handle *h = NULL;
  REQUIRE(wsgemm_create(&h) == WSGEMM_SUCCESS, "handle");
  for (int s = 1; s < WS_N_SUMS; s++) {
    wsgemm_set_stream(h, &fake.stream[s]);
    launch_of(h, &d);
  }
  call_without_end(h, &d, WS_N_SUMS);
  char *last = fake.launch[0].args.split.sums;
  wsgemm_set_stream(h, &fake.stream[WS_N_SUMS + 1]);
  const fake_launch *l = launch_of(h, &d);
  CHECK(last && (char *)l->args.split.sums == last, "sums at %p, not %p", l->args.split.sums, (void *)last);
  wsgemm_destroy(h);
}

/* ---- a device with little room --------------------------------------------------------------- */

/* What one launch of a product writes: rows and columns of C, and how it is made. */
static bool is_tile_of(const fake_launch *l, const fake_launch *whole) {
  return strcmp(l->kernel, whole->kernel) == 0 && l->wgmma.k == whole->wgmma.k && l->wgmma.alpha == whole->wgmma.alpha &&
         l->wgmma.m <= whole->wgmma.m && l->wgmma.n <= whole->wgmma.n;
}

/* A device with room for a part of the memory: a product gets by with as much as there is, by the
 * same kernels, each element of C once; with less than its smallest chunk it is refused. */
CHILD_CASE(little_room) {
  (void)unused;
  wsgemm_handle *h = forced(sliced_row);
  const wsgemm_gemm_desc d = device_desc(WSGEMM_F32, 1000, 700, 2000, 0);
  enum { MIB = 1 << 20 };
  const struct {
    int64_t room;
    bool is_made;
    size_t taken;
  } rooms[] = {{10 * MIB, false, 0},
               {13 * MIB, true, WS_COPIES_BYTES / 32},
               {60 * MIB, true, WS_COPIES_BYTES / 8},
               {399 * MIB, true, WS_COPIES_BYTES / 2},
               {0, true, WS_COPIES_BYTES}};
  size_t bytes;
  fake_launch whole = {.device = -1};
  CHECK(wsgemm_get_workspace_size(h, &d, &bytes) == WSGEMM_SUCCESS, "%s", wsgemm_last_error());
  CHECK(bytes > 13 * MIB && bytes < WS_COPIES_BYTES / 8, "%zu bytes", bytes);
  /* each with a context of its own */
  for (int i = sizeof rooms / sizeof rooms[0] - 1; i >= 0; i--) {
    fake.device[0].room = rooms[i].room;
    fake.copies_bytes[0] = 0;
    fake_end_context(fake_primary(0));
    if (!rooms[i].is_made) {
      const wsgemm_gemm_desc long_k = device_desc(WSGEMM_F32, 300, 300, 3400, 0);
      expect_failure(h, &long_k, WSGEMM_ALLOC_FAILED, "and at the least ");
      continue;
    }
    REQUIRE(watched_gemm(h, &d) == WSGEMM_SUCCESS && fake.n_launches <= FAKE_N_LAUNCHES, "room %d: %s", i, wsgemm_last_error());
    CHECK(fake.copies_bytes[0] == rooms[i].taken, "room %d: %zu bytes are taken", i, fake.copies_bytes[0]);
    int64_t n_elements = 0;
    for (int l = 2; l < fake.n_launches; l += N_CUT) {
      if (whole.device < 0) whole = fake.launch[l];
      CHECK(is_tile_of(&fake.launch[l], &whole), "room %d: %s", i, fake.launch[l].kernel);
      n_elements += fake.launch[l].wgmma.m * fake.launch[l].wgmma.n;
    }
    CHECK(n_elements == d.m * d.n && (fake.n_launches > N_CUT) == (rooms[i].taken < bytes),
          "room %d: %lld elements in %d launches", i, (long long)n_elements, fake.n_launches);
  }
  wsgemm_destroy(h);
}

/* When there is room again, more is taken: at once by a product that cannot do without, in time by
 * those that can. */
CHILD_CASE(room_again) {
  (void)unused;
  wsgemm_handle *h = forced(sliced_row);
  const wsgemm_gemm_desc d = device_desc(WSGEMM_F32, 1000, 700, 2000, 0), long_k = device_desc(WSGEMM_F32, 300, 300, 5000, 0);
  fake.device[0].room = 13 << 20;
  REQUIRE(watched_gemm(h, &d) == WSGEMM_SUCCESS && fake.n_launches > N_CUT, "%s", wsgemm_last_error());
  int n_allocations = 0;
  for (int i = 0; i < 64; i++) {
    CHECK(watched_gemm(h, &d) == WSGEMM_SUCCESS && fake.n_launches > N_CUT, "%s", wsgemm_last_error());
    n_allocations += fake.n_calls_of[FAKE_cuMemAlloc] > 0;
  }
  CHECK(n_allocations == 7, "%d of 64 calls try to get more", n_allocations);
  fake.device[0].room = 60 << 20;
  CHECK(watched_gemm(h, &long_k) == WSGEMM_SUCCESS && fake.copies_bytes[0] == WS_COPIES_BYTES / 8, "%zu bytes: %s",
        fake.copies_bytes[0], wsgemm_last_error());
  CHECK(watched_gemm(h, &d) == WSGEMM_SUCCESS && fake.n_launches == N_CUT, "%d launches", fake.n_launches);
  wsgemm_destroy(h);
}

/* Whichever call of the driver finds no memory: the product as it should be, or ALLOC_FAILED and
 * nothing launched that writes C; only a launch may fail after that, and what frees the memory of a
 * graph, which has no use then: DEVICE_ERROR, as where something else goes wrong. */
struct lack {
  int number, captured, chunked;
  CUresult failure;
  int *n_calls;
};

static void lack_child(void *argument) {
  const struct lack *lack = argument;
  wsgemm_handle *h = forced(sliced_row);
  wsgemm_gemm_desc d = lack->chunked ? device_desc(WSGEMM_F32, 600, 300, 1500, 0) : device_desc(WSGEMM_F32, 64, 64, 128, 0);
  d.residual = d.c, d.ld_residual = d.ldc, d.epilogue = WSGEMM_EPILOGUE_RELU;
  wsgemm_set_stream(h, &fake.stream[1]);
  if (lack->captured) fake_begin_capture(1);
  if (lack->chunked) REQUIRE(wsgemm_set_workspace(h, fake_alloc(FAKE_DEVICE, 0, 17 << 19), 17 << 19) == WSGEMM_SUCCESS, "memory");
  fake_forget();
  fake_fail(FAKE_ANY, lack->number, lack->number, lack->failure);
  const wsgemm_status status = wsgemm_gemm(h, &d);
  const char *name = lack->number <= fake.n_calls ? fake_function_names[fake.calls[lack->number - 1]] : "none";
  const bool is_lack = lack->failure == CUDA_ERROR_OUT_OF_MEMORY, has_written = n_writing_launches() > 0,
             may_be_late = strcmp(name, "cuLaunchKernelEx") == 0 || strcmp(name, "cuMemFreeAsync") == 0;
  /* Maps are made of arguments alone, and real drivers find no lack there; those of a second chunk
   * come after the first. */
  const bool is_map = strcmp(name, "cuTensorMapEncodeTiled") == 0;
  const wsgemm_status expected = is_lack && (!has_written || is_map) ? WSGEMM_ALLOC_FAILED : WSGEMM_DEVICE_ERROR;
  const int n_all = 1 + (lack->chunked ? 2 : 1) * N_CUT + 1;
  CHECK(status == expected || (status == WSGEMM_SUCCESS && fake.n_launches == n_all), "%s fails: %s (%s), %d launches", name,
        wsgemm_status_name(status), wsgemm_last_error(), fake.n_launches);
  if (is_lack && has_written && !is_map)
    CHECK(status == WSGEMM_SUCCESS || may_be_late, "%s fails, and C is partly written", name);
  *lack->n_calls = fake.n_calls;
  fake_fail(FAKE_ANY, 0, 0, CUDA_SUCCESS);
  wsgemm_destroy(h);
}

static void each_call_lacks_memory(void) {
  int *n_calls = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  REQUIRE(n_calls != MAP_FAILED, "shared memory");
  for (int i = 0; i < 6; i++) {
    struct lack lack = {0, i & 1, i >= 4, i & 2 ? CUDA_ERROR_ILLEGAL_ADDRESS : CUDA_ERROR_OUT_OF_MEMORY, n_calls};
    do lack.number++, check_in_child("a call without memory", lack_child, &lack);
    while (lack.number <= *n_calls);
    CHECK(*n_calls > 40, "%d calls of the driver", *n_calls);
  }
  munmap(n_calls, 4096);
}

/* Once C may be partly written, all that a call still needs is there: nothing but a launch may
 * fail. (Maps: see above.) */
static void fail_after_writing(fake_function function) {
  const bool may_fail = function != FAKE_cuLaunchKernelEx && function != FAKE_cuTensorMapEncodeTiled;
  fake_fail(function, 1, may_fail && n_writing_launches() > 0, CUDA_ERROR_OUT_OF_MEMORY);
}

CHILD_CASE(nothing_is_needed_after_the_first_write) {
  (void)unused;
  const struct {
    const char *row;
    wsgemm_type type;
    int64_t m, n, k;
    size_t workspace;
  } calls[] = {{sliced_row, WSGEMM_F32, 1000, 700, 2000, 0}, {sliced_row, WSGEMM_F32, 1000, 700, 2000, 13 << 20},
               {NULL, WSGEMM_F64, 64, 64, 8192, 0},          {NULL, WSGEMM_F64, 64, 64, 8192, 64 << 10},
               {NULL, WSGEMM_F16, 999, 700, 2000, 0},        {NULL, WSGEMM_F16, 999, 700, 2000, 3 << 20},
               {NULL, WSGEMM_C32, 1000, 700, 30, 0}};
  fake.device[0].cc = 90;
  for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++) {
    int n_launches[2];
    for (int turn = 0; turn < 2; turn++) {
      wsgemm_handle *h = NULL;
      REQUIRE(wsgemm_create(&h) == WSGEMM_SUCCESS && wsgemm_set_kernel(h, calls[i].row) == WSGEMM_SUCCESS, "handle");
      if (calls[i].workspace)
        REQUIRE(wsgemm_set_workspace(h, fake_alloc(FAKE_DEVICE, 0, calls[i].workspace), calls[i].workspace) == WSGEMM_SUCCESS,
                "%s", wsgemm_last_error());
      wsgemm_gemm_desc d = device_desc(calls[i].type, calls[i].m, calls[i].n, calls[i].k, 0);
      if (calls[i].type != WSGEMM_C32) d.column_sums = (char *)device_memory(0), d.epilogue = WSGEMM_EPILOGUE_RELU;
      fake_end_context(fake_primary(0)); /* all is to be loaded again */
      fake_forget();
      fake.before_call = turn ? fail_after_writing : NULL;
      CHECK(wsgemm_gemm(h, &d) == WSGEMM_SUCCESS, "call %zu: %s", i, wsgemm_last_error());
      fake.before_call = NULL;
      fake_fail(FAKE_ANY, 0, 0, CUDA_SUCCESS);
      n_launches[turn] = fake.n_launches;
      wsgemm_destroy(h);
    }
    CHECK(n_launches[0] == n_launches[1], "call %zu: %d launches, not %d", i, n_launches[1], n_launches[0]);
  }
}

/* A call that finds no state for its first launch does not look for one again, when what it lacks
 * then would end it. */
static void no_object_after_writing(fake_function function) {
  if (n_writing_launches() > 0 && function == FAKE_cuUserObjectCreate) fake_fail(function, 1, 1, CUDA_ERROR_OUT_OF_MEMORY);
}

CHILD_CASE(states_are_asked_for_once) {
  (void)unused;
  wsgemm_handle *h = forced(sliced_row);
  const wsgemm_gemm_desc d = device_desc(WSGEMM_F32, 3000, 3000, 128, 0);
  wsgemm_set_stream(h, &fake.stream[1]);
  fake_begin_capture(1);
  fake.before_call = no_object_after_writing;
  fake_fail(FAKE_cuLibraryGetGlobal, 1, 1, CUDA_ERROR_OUT_OF_MEMORY);
  CHECK(watched_gemm(h, &d) == WSGEMM_SUCCESS && fake.n_launches == N_CUT && !fake.launch[2].wgmma.sched.queue, "%d launches: %s",
        fake.n_launches, wsgemm_last_error());
  CHECK(watched_gemm(h, &d) == WSGEMM_SUCCESS && fake.launch[2].wgmma.sched.queue && fake.launch[4].wgmma.sched.queue,
        "the next call has no state: %s", wsgemm_last_error());
  wsgemm_destroy(h);
}

/* ---- memory of graphs ------------------------------------------------------------------------ */

/* Captured products of slices have the arithmetic of any other, however many graphs are alive, each
 * in memory of its own, as much as it needs, which its graph frees. */
CHILD_CASE(graphs_with_memory) {
  (void)unused;
  enum { N_GRAPHS = 20 };
  wsgemm_handle *h = forced(sliced_row);
  size_t bytes = 0;
  for (int i = 0; i < N_GRAPHS; i++) {
    const wsgemm_gemm_desc d = device_desc(WSGEMM_F32, 64 + i, 64, 128, 0);
    wsgemm_set_stream(h, &fake.stream[1 + i % 3]);
    fake_begin_capture(1 + i % 3);
    REQUIRE(watched_gemm(h, &d) == WSGEMM_SUCCESS && fake.n_launches == N_CUT, "graph %d: %s", i, wsgemm_last_error());
    CHECK(wsgemm_get_workspace_size(h, &d, &bytes) == WSGEMM_SUCCESS, "%s", wsgemm_last_error());
    CHECK(fake.n_nodes == i + 1 && fake.node[i].bytes == bytes && fake.node[i].is_freed, "graph %d: %zu bytes of %zu", i,
          fake.node[i].bytes, bytes);
    fake_end_capture(1 + i % 3);
    CHECK(!fake.misuse && fake.n_user_objects == 0, "graph %d: %d objects, or misuse", i, fake.n_user_objects);
  }
  wsgemm_destroy(h);
}

/* More than the library would ever take for a stream: the same chunks. */
CHILD_CASE(large_captured) {
  (void)unused;
  wsgemm_handle *h = forced(sliced_row);
  const char *matrices = fake_alloc(FAKE_DEVICE, 0, (size_t)3 << 32);
  int n_launches[2];
  for (int captured = 0; captured < 2; captured++) {
    wsgemm_gemm_desc d = device_desc(WSGEMM_F32, 16384, 16384, 8192, 0);
    d.a = matrices, d.b = matrices + ((size_t)1 << 32), d.c = (char *)d.b + ((size_t)1 << 32);
    wsgemm_set_stream(h, &fake.stream[1]);
    if (captured) fake_begin_capture(1);
    REQUIRE(watched_gemm(h, &d) == WSGEMM_SUCCESS, "%s", wsgemm_last_error());
    n_launches[captured] = fake.n_launches;
  }
  CHECK(n_launches[0] > N_CUT && n_launches[0] == n_launches[1] && fake.node[0].bytes <= WS_COPIES_BYTES,
        "%d launches, captured %d, with %zu bytes", n_launches[0], n_launches[1], fake.node[0].bytes);
  wsgemm_destroy(h);
}

/* Where graphs can have no memory of their own, one captured call at a time has the library's;
 * another is refused, as is one without a state. None takes other arithmetic. */
static void without_nodes(wsgemm_handle *h) {
  const wsgemm_gemm_desc d = device_desc(WSGEMM_F32, 64, 64, 128, 0);
  wsgemm_set_stream(h, &fake.stream[1]);
  fake_begin_capture(1);
  fake_fail(FAKE_cuLibraryGetGlobal, 1, 1, CUDA_ERROR_OUT_OF_MEMORY);
  expect_failure(h, &d, WSGEMM_ALLOC_FAILED, "launch states");
  REQUIRE(watched_gemm(h, &d) == WSGEMM_SUCCESS && fake.n_launches == N_CUT, "%s", wsgemm_last_error());
  CUgraph graph = fake_end_capture(1);
  CHECK(fake.n_user_objects > 0 && fake.n_nodes == 0, "%d objects, %d nodes", fake.n_user_objects, fake.n_nodes);
  wsgemm_set_stream(h, &fake.stream[2]);
  fake_begin_capture(2);
  expect_failure(h, &d, WSGEMM_ALLOC_FAILED, "second captured call");
  fake_destroy_graph(graph);
  CHECK(watched_gemm(h, &d) == WSGEMM_SUCCESS && fake.n_launches == N_CUT, "once the first has ended: %s", wsgemm_last_error());
  wsgemm_set_stream(h, &fake.stream[3]);
  CHECK(watched_gemm(h, &d) == WSGEMM_SUCCESS && fake.n_launches == N_CUT && fake.n_waits == 0, "a stream: %s",
        wsgemm_last_error());
  wsgemm_destroy(h);
}

CHILD_CASE(no_pools) {
  (void)unused;
  fake.device[0].has_no_pools = true;
  without_nodes(forced(sliced_row));
}

CHILD_CASE(no_entry_for_nodes) {
  (void)unused;
  fake.missing = "cuMemFreeAsync";
  without_nodes(forced(sliced_row));
}

/* ---- contexts -------------------------------------------------------------------------------- */

/* Work of all kinds, each with memory of the library's; the fake driver sees whose. */
static void work_of_all_kinds(const char *where) {
  wsgemm_handle *stealing = stealing_handle(), *cutting = forced(sliced_row);
  for (int s = 1; s <= 3; s++) {
    const wsgemm_gemm_desc d = device_desc(WSGEMM_F32, 1000, 1000, 10, 0), cut = device_desc(WSGEMM_F32, 64, 64, 128, 0),
                           split = device_desc(WSGEMM_F32, 64, 64, 8192, 0);
    wsgemm_set_stream(stealing, &fake.stream[s]), wsgemm_set_stream(cutting, &fake.stream[s]);
    CHECK(launch_of(stealing, &d)->args.sched.queue, "%s, stream %d: no state", where, s);
    CHECK(watched_gemm(cutting, &cut) == WSGEMM_SUCCESS && fake.n_launches == N_CUT, "%s, stream %d: %s", where, s,
          wsgemm_last_error());
    CHECK(launch_of(stealing, &split)->args.split.sums, "%s, stream %d: no sums", where, s);
  }
  wsgemm_destroy(stealing), wsgemm_destroy(cutting);
}

CHILD_CASE(contexts) {
  (void)unused;
  work_of_all_kinds("no context is current");
  fake_set_current(fake_other(0));
  work_of_all_kinds("a context of the program's own");
  fake_set_current(fake_primary(0));
  work_of_all_kinds("the primary one");
  fake_set_current(fake_other(0));
  work_of_all_kinds("the own one again");
}

/* Streams of a context that is not current, nor the primary one; beside no context, the primary
 * one, and another device's. */
CHILD_CASE(streams_of_other_contexts) {
  (void)unused;
  const CUcontext others[] = {NULL, fake_primary(0), fake_primary(1), fake_other(0)};
  for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
    for (int s = 1; s <= 3; s++) fake.stream[s].context = i < 3 ? fake_other(0) : fake_primary(0);
    fake_set_current(others[i]);
    work_of_all_kinds("a context of the stream's own");
    CHECK(!fake.misuse, "%s", fake.misuse);
  }
}

/* What a call on a stream of another context will launch is loaded there, and in no other. */
CHILD_CASE(explained_in_the_streams_context) {
  (void)unused;
  char text[1024];
  wsgemm_handle *h = NULL;
  const wsgemm_gemm_desc d = device_desc(WSGEMM_F64, 64, 64, 64, 0);
  REQUIRE(wsgemm_create(&h) == WSGEMM_SUCCESS && wsgemm_set_stream(h, &fake.stream[1]) == WSGEMM_SUCCESS, "handle");
  fake.stream[1].context = fake_other(0);
  fake_set_current(fake_primary(0));
  wsgemm_explain(h, &d, text, sizeof text);
  CHECK(strstr(text, "kernel: dgemm_") && fake.n_loads == 1 && fake_current() == fake_primary(0) && fake_depth() == 1, "%s",
        text);
  CHECK(launch_of(h, &d)->context == fake_other(0) && fake.n_loads == 0, "%d images are loaded again", fake.n_loads);
  wsgemm_destroy(h);
}

/* cudaDeviceReset, or a context that is destroyed and another made: nothing is left of the first,
 * but what the next call does not use. */
CHILD_CASE(contexts_that_end) {
  (void)unused;
  int64_t count = 0;
  for (int turn = 0; turn < 4; turn++) {
    const CUcontext context = turn % 2 ? fake_other(0) : fake_primary(0);
    fake_set_current(turn < 3 ? context : NULL);
    work_of_all_kinds("a first context");
    fake_end_context(turn < 3 ? context : fake_primary(0));
    work_of_all_kinds("its successor");
    CHECK(wsgemm_get_fallback_count(NULL, 0, &count) == WSGEMM_SUCCESS && !fake.misuse, "count: %s", wsgemm_last_error());
  }
}

/* A primary context that must be retained again before it can be made current. */
CHILD_CASE(reset_from_another_device) {
  (void)unused;
  const wsgemm_gemm_desc d = device_desc(WSGEMM_F32, 1000, 1000, 10, 0);
  fake_set_current(fake_primary(1));
  launch_of(NULL, &d);
  fake_end_context(fake_primary(0));
  fake_fail(FAKE_cuCtxPushCurrent, 1, 1, CUDA_ERROR_CONTEXT_IS_DESTROYED);
  const fake_launch *l = launch_of(NULL, &d);
  CHECK(l->device == 0 && l->context == fake_primary(0), "launched on device %d", l->device);
}

/* Of the device's SMs the context has a few: a split product cannot have all its blocks there at
 * once, and goes without sums, in the same parts. */
CHILD_CASE(few_sms) {
  (void)unused;
  const wsgemm_gemm_desc d = device_desc(WSGEMM_F64, 256, 256, 8192, 0);
  const ws_split_args all = launch_of(NULL, &d)->args.split;
  CHECK(all.sums && fake.launch[0].grid[0] > 16, "%u blocks", fake.launch[0].grid[0]);
  fake_limit_sms(fake_other(0), 8);
  fake_set_current(fake_other(0));
  const fake_launch *l = launch_of(NULL, &d);
  CHECK(!l->is_cooperative && !l->args.split.sums && is_split(l), "%s", l->kernel);
  CHECK(l->args.split.n_splits == all.n_splits && l->args.split.k_per_split == all.k_per_split, "%d parts, not %d",
        l->args.split.n_splits, all.n_splits);
}

/* ---- locks ----------------------------------------------------------------------------------- */

static atomic_bool is_launching, other_is_done;
static _Thread_local bool waits_in_launch;

/* A launch that waits, as on a full queue, until the call on the other device has returned. */
static void hold_launch(fake_function function) {
  if (!waits_in_launch || function != FAKE_cuLaunchKernelEx) return;
  atomic_store(&is_launching, true);
  while (!atomic_load(&other_is_done)) usleep(1000);
}

static void *call_and_wait(void *unused) {
  (void)unused;
  const wsgemm_gemm_desc d = device_desc(WSGEMM_F32, 3000, 3000, 10, 0); /* with a state */
  waits_in_launch = true;
  CHECK(wsgemm_gemm(NULL, &d) == WSGEMM_SUCCESS, "%s", wsgemm_last_error());
  return NULL;
}

/* Known and unknown kernels: neither the lock of launches nor that of what is found out once is
 * held over. A call that waits for the other is ended by CTest. */
CHILD_CASE(devices_beside_each_other) {
  (void)unused;
  pthread_t thread;
  device_memory(0), device_memory(1);
  fake.before_call = hold_launch;
  REQUIRE(pthread_create(&thread, NULL, call_and_wait, NULL) == 0, "thread");
  while (!atomic_load(&is_launching)) usleep(1000);
  for (int type = 0; type < N_TYPES; type++) {
    const wsgemm_gemm_desc d = device_desc((wsgemm_type)type, 64, 64, 64, 1);
    CHECK(wsgemm_gemm(NULL, &d) == WSGEMM_SUCCESS, "%s", wsgemm_last_error());
  }
  atomic_store(&other_is_done, true);
  pthread_join(thread, NULL);
  CHECK(fake.n_launches == N_TYPES + 1, "%d launches", fake.n_launches);
}

/* The same for two streams of one device: what they share, a launch that waits does not keep. */
CHILD_CASE(streams_beside_each_other) {
  (void)unused;
  pthread_t thread;
  wsgemm_handle *h = stealing_handle();
  const wsgemm_gemm_desc d = device_desc(WSGEMM_F32, 1000, 1000, 10, 0), split = device_desc(WSGEMM_F64, 64, 64, 8192, 0);
  CHECK(wsgemm_set_policy(NULL, WSGEMM_POLICY_STEAL) == WSGEMM_SUCCESS, "%s", wsgemm_last_error());
  wsgemm_set_stream(h, &fake.stream[1]);
  fake.before_call = hold_launch;
  REQUIRE(pthread_create(&thread, NULL, call_and_wait, NULL) == 0, "thread");
  while (!atomic_load(&is_launching)) usleep(1000);
  CHECK(wsgemm_gemm(h, &d) == WSGEMM_SUCCESS && wsgemm_gemm(h, &split) == WSGEMM_SUCCESS, "%s", wsgemm_last_error());
  atomic_store(&other_is_done, true);
  pthread_join(thread, NULL);
  CHECK(fake.n_launches == 3, "%d launches", fake.n_launches);
  wsgemm_destroy(h);
}

/* Of a sliced product, with memory of the caller's or of the library's. */
static wsgemm_handle *waiting;
static void *cut_and_wait(void *unused) {
  (void)unused;
  const wsgemm_gemm_desc d = device_desc(WSGEMM_F32, 64, 64, 128, 0);
  waits_in_launch = true;
  CHECK(wsgemm_gemm(waiting, &d) == WSGEMM_SUCCESS, "%s", wsgemm_last_error());
  return NULL;
}

static void *steal_and_wait(void *unused) {
  (void)unused;
  const wsgemm_gemm_desc d = device_desc(WSGEMM_F32, 1000, 1000, 10, 0);
  waits_in_launch = true;
  CHECK(wsgemm_gemm(waiting, &d) == WSGEMM_SUCCESS, "%s", wsgemm_last_error());
  return NULL;
}

static void beside_a_sliced_product(bool has_workspace) {
  enum { BYTES = 8 << 20 };
  pthread_t thread;
  wsgemm_handle *h = stealing_handle(), *cutting = forced(sliced_row);
  const wsgemm_gemm_desc d = device_desc(WSGEMM_F32, 1000, 1000, 10, 0), cut = device_desc(WSGEMM_F32, 64, 64, 128, 0),
                         split = device_desc(WSGEMM_F64, 64, 64, 8192, 0);
  waiting = forced(sliced_row);
  char *memory = fake_alloc(FAKE_DEVICE, 0, 2 * BYTES);
  wsgemm_set_stream(waiting, &fake.stream[1]), wsgemm_set_stream(h, &fake.stream[2]), wsgemm_set_stream(cutting, &fake.stream[3]);
  if (has_workspace) REQUIRE(wsgemm_set_workspace(waiting, memory, BYTES) == WSGEMM_SUCCESS, "%s", wsgemm_last_error());
  REQUIRE(wsgemm_set_workspace(cutting, memory + BYTES, BYTES) == WSGEMM_SUCCESS, "%s", wsgemm_last_error());
  fake.before_call = hold_launch;
  REQUIRE(pthread_create(&thread, NULL, cut_and_wait, NULL) == 0, "thread");
  while (!atomic_load(&is_launching)) usleep(1000);
  CHECK(wsgemm_gemm(h, &d) == WSGEMM_SUCCESS, "a plain product: %s", wsgemm_last_error());
  CHECK(wsgemm_gemm(h, &split) == WSGEMM_SUCCESS, "one with sums: %s", wsgemm_last_error());
  CHECK(wsgemm_gemm(cutting, &cut) == WSGEMM_SUCCESS, "one with a workspace of its own: %s", wsgemm_last_error());
  CHECK(fake.n_launches == 2 + N_CUT, "%d launches", fake.n_launches);
  atomic_store(&other_is_done, true);
  pthread_join(thread, NULL);
  CHECK(fake.n_launches == 2 + 2 * N_CUT, "%d launches", fake.n_launches);
  wsgemm_destroy(h), wsgemm_destroy(cutting), wsgemm_destroy(waiting);
}

/* A call that waits in a launch keeps nobody waiting but those that need the memory that it has. */
CHILD_CASE(workspaces_beside_each_other) {
  (void)unused;
  beside_a_sliced_product(true);
}

CHILD_CASE(beside_the_memory_for_copies) {
  (void)unused;
  beside_a_sliced_product(false);
}

/* States and sums that are passed on: what another call has in the middle of its launches is not
 * taken. */
CHILD_CASE(passed_beside_each_other) {
  (void)unused;
  pthread_t thread;
  wsgemm_handle *h = stealing_handle();
  for (int s = 100; s < 100 + WS_N_KEPT_STATES; s++) REQUIRE(state_on(h, s, 0) >= 0, "no state for stream %d", s);
  waiting = stealing_handle();
  wsgemm_set_stream(waiting, &fake.stream[1]);
  fake.before_call = hold_launch;
  fake_forget();
  REQUIRE(pthread_create(&thread, NULL, steal_and_wait, NULL) == 0, "thread");
  while (!atomic_load(&is_launching)) usleep(1000);
  for (int s = 2; s < 8; s++) {
    const wsgemm_gemm_desc d = device_desc(WSGEMM_F32, 1000, 1000, 10, 0);
    wsgemm_set_stream(h, &fake.stream[s]);
    CHECK(wsgemm_gemm(h, &d) == WSGEMM_SUCCESS, "%s", wsgemm_last_error());
  }
  atomic_store(&other_is_done, true);
  pthread_join(thread, NULL);
  REQUIRE(fake.n_launches == 7, "%d launches", fake.n_launches);
  for (int i = 0; i < 7; i++)
    for (int j = 0; j < i; j++)
      CHECK(fake.launch[i].args.sched.queue != fake.launch[j].args.sched.queue, "launches %d and %d share a state", i, j);
  wsgemm_destroy(h), wsgemm_destroy(waiting);
}

/* The same while the first is loading its kernels. */
static void hold_loading(fake_function function) {
  if (!waits_in_launch || function != FAKE_cuLibraryLoadData) return;
  atomic_store(&is_launching, true);
  while (!atomic_load(&other_is_done)) usleep(1000);
}

CHILD_CASE(loading_beside_another_device) {
  (void)unused;
  pthread_t thread;
  const wsgemm_gemm_desc d = device_desc(WSGEMM_F32, 64, 64, 64, 1);
  device_memory(0);
  fake.before_call = hold_loading;
  REQUIRE(pthread_create(&thread, NULL, call_and_wait, NULL) == 0, "thread");
  while (!atomic_load(&is_launching)) usleep(1000);
  CHECK(wsgemm_gemm(NULL, &d) == WSGEMM_SUCCESS, "%s", wsgemm_last_error());
  atomic_store(&other_is_done, true);
  pthread_join(thread, NULL);
}

/* A thread that is cancelled within the driver leaves no lock behind: it ends when its call has. */
static fake_function cancels_in;
static void cancel_in(fake_function function) {
  if (waits_in_launch && function == cancels_in) pthread_cancel(pthread_self()), pthread_testcancel();
}

CHILD_CASE(cancelled_calls) {
  (void)unused;
  static const fake_function functions[] = {FAKE_cuDevicePrimaryCtxRetain, FAKE_cuLibraryLoadData, FAKE_cuLaunchKernelEx};
  device_memory(0);
  fake.before_call = cancel_in;
  for (size_t i = 0; i < sizeof functions / sizeof functions[0]; i++) {
    pthread_t thread;
    cancels_in = functions[i];
    REQUIRE(pthread_create(&thread, NULL, call_and_wait, NULL) == 0, "thread");
    pthread_join(thread, NULL);
  }
  const wsgemm_gemm_desc d = device_desc(WSGEMM_F32, 64, 64, 64, 0);
  CHECK(wsgemm_gemm(NULL, &d) == WSGEMM_SUCCESS, "%s", wsgemm_last_error());
}

/* Two threads, one stream: the launches of a call that share memory follow each other. */
enum { N_CALLS = 100 };
static atomic_int last_thread, n_between;
static _Thread_local int number, n_launched;
static void watch_order(fake_function function) {
  if (function != FAKE_cuLaunchKernelEx) return;
  const int last = atomic_exchange(&last_thread, number);
  if (n_launched++ % N_CUT != 0 && last != number) atomic_fetch_add(&n_between, 1);
  usleep(1);
}

static void *cut_many(void *handle) {
  static atomic_int n_threads;
  const wsgemm_gemm_desc d = device_desc(WSGEMM_F32, 64, 64, 128, 0);
  number = 1 + atomic_fetch_add(&n_threads, 1);
  for (int i = 0; i < N_CALLS; i++) CHECK(wsgemm_gemm(handle, &d) == WSGEMM_SUCCESS, "%s", wsgemm_last_error());
  return NULL;
}

CHILD_CASE(calls_stay_together) {
  (void)unused;
  wsgemm_handle *h = forced(sliced_row);
  device_memory(0);
  fake.before_call = watch_order;
  for (int given = 0; given < 2; given++) {
    pthread_t thread[2];
    if (given)
      REQUIRE(wsgemm_set_workspace(h, fake_alloc(FAKE_DEVICE, 0, 8 << 20), 8 << 20) == WSGEMM_SUCCESS, "%s", wsgemm_last_error());
    fake_forget();
    for (int t = 0; t < 2; t++) REQUIRE(pthread_create(&thread[t], NULL, cut_many, h) == 0, "thread");
    for (int t = 0; t < 2; t++) pthread_join(thread[t], NULL);
    CHECK(fake.n_launches == 2 * N_CALLS * N_CUT, "%d launches", fake.n_launches);
    CHECK(atomic_load(&n_between) == 0, "given %d: %d launches came between those of another call", given,
          atomic_load(&n_between));
  }
  wsgemm_destroy(h);
}

/* ---- the caller's workspace ------------------------------------------------------------------ */

static wsgemm_handle *flipped;
static char *large, *small;
enum { LARGE = 64 << 20, SMALL = 4096 };

static void set_small(fake_function function) {
  if (function == FAKE_cuLaunchKernelEx) wsgemm_set_workspace(flipped, small, SMALL);
}

/* Another thread sets another workspace in the middle of a call, which goes on with the one that it
 * began with. */
CHILD_CASE(workspace_of_the_call) {
  (void)unused;
  large = fake_alloc(FAKE_DEVICE, 0, LARGE), small = fake_alloc(FAKE_DEVICE, 0, 1 << 20);
  REQUIRE(large && small && wsgemm_create(&flipped) == WSGEMM_SUCCESS, "memory");
  wsgemm_gemm_desc d = device_desc(WSGEMM_F64, 64, 64, 8192, 0);
  d.residual = d.c, d.ld_residual = d.ldc, d.epilogue = WSGEMM_EPILOGUE_RELU;
  REQUIRE(wsgemm_set_workspace(flipped, large, LARGE) == WSGEMM_SUCCESS, "%s", wsgemm_last_error());
  fake.before_call = set_small;
  CHECK(wsgemm_gemm(flipped, &d) == WSGEMM_SUCCESS && fake.n_launches == 3, "%d launches: %s", fake.n_launches,
        wsgemm_last_error());
  fake.before_call = NULL;
  const char *sums = fake.launch[1].args.split.sums;
  CHECK(fake.launch[0].pitch.operand[0].to == large && sums > large && sums < large + LARGE, "sums at %p, not in %p",
        (const void *)sums, (void *)large);
  wsgemm_destroy(flipped);
}

static atomic_bool is_over;
static void *flip(void *unused) {
  (void)unused;
  while (!atomic_load(&is_over)) {
    wsgemm_set_workspace(flipped, large, LARGE);
    wsgemm_set_workspace(flipped, small, SMALL);
  }
  return NULL;
}

/* Pointer, size and device belong together, whenever they are read. */
CHILD_CASE(workspace_beside_setting) {
  (void)unused;
  pthread_t thread;
  const wsgemm_gemm_desc d = device_desc(WSGEMM_F32, 64, 64, 100000, 0);
  large = fake_alloc(FAKE_DEVICE, 0, LARGE), small = fake_alloc(FAKE_DEVICE, 0, 1 << 20);
  REQUIRE(large && small && wsgemm_create(&flipped) == WSGEMM_SUCCESS, "memory");
  REQUIRE(wsgemm_set_workspace(flipped, large, LARGE) == WSGEMM_SUCCESS, "%s", wsgemm_last_error());
  REQUIRE(launch_of(flipped, &d)->args.split.sums == large, "no sums in the workspace");
  REQUIRE(pthread_create(&thread, NULL, flip, NULL) == 0, "thread");
  int n_beyond = 0, n_large = 0;
  for (int i = 0; i < 20000 / check_scale(); i++) {
    fake_forget();
    wsgemm_gemm(flipped, &d);
    n_beyond += fake.launch[0].args.split.sums == small, n_large += fake.launch[0].args.split.sums == large;
  }
  atomic_store(&is_over, true);
  pthread_join(thread, NULL);
  CHECK(n_beyond == 0, "%d products wrote beyond a workspace of %d bytes, %d used the large one", n_beyond, SMALL, n_large);
  wsgemm_destroy(flipped);
}

static const struct check_case cases[] = {{"busy_streams", busy_streams},
                                          {"streams_that_end", streams_that_end},
                                          {"streams_that_end_beside_a_capture", streams_that_end_beside_a_capture},
                                          {"same_arithmetic_on_all_streams", same_arithmetic_on_all_streams},
                                          {"sums_are_passed_on", sums_are_passed_on},
                                          {"graphs_that_end", graphs_that_end},
                                          {"captured_residual_in_c", captured_residual_in_c},
                                          {"graphs_that_retain_nothing", graphs_that_retain_nothing},
                                          {"copies_without_end", copies_without_end},
                                          {"sums_without_end", sums_without_end},
                                          {"no_room", no_room},
                                          {"little_room", little_room},
                                          {"room_again", room_again},
                                          {"each_call_lacks_memory", each_call_lacks_memory},
                                          {"nothing_is_needed_after_the_first_write", nothing_is_needed_after_the_first_write},
                                          {"states_are_asked_for_once", states_are_asked_for_once},
                                          {"graphs_with_memory", graphs_with_memory},
                                          {"large_captured", large_captured},
                                          {"no_pools", no_pools},
                                          {"no_entry_for_nodes", no_entry_for_nodes},
                                          {"workspaces_beside_each_other", workspaces_beside_each_other},
                                          {"beside_the_memory_for_copies", beside_the_memory_for_copies},
                                          {"passed_beside_each_other", passed_beside_each_other},
                                          {"cancelled_calls", cancelled_calls},
                                          {"calls_stay_together", calls_stay_together},
                                          {"contexts", contexts},
                                          {"streams_of_other_contexts", streams_of_other_contexts},
                                          {"explained_in_the_streams_context", explained_in_the_streams_context},
                                          {"contexts_that_end", contexts_that_end},
                                          {"reset_from_another_device", reset_from_another_device},
                                          {"few_sms", few_sms},
                                          {"devices_beside_each_other", devices_beside_each_other},
                                          {"streams_beside_each_other", streams_beside_each_other},
                                          {"loading_beside_another_device", loading_beside_another_device},
                                          {"workspace_of_the_call", workspace_of_the_call},
                                          {"workspace_beside_setting", workspace_beside_setting}};
CHECK_MAIN("backend_lending", cases)
