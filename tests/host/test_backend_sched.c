/* test_backend_sched.c - which scheduler and grid a call on device memory gets, and which ticket
 * queue: seen by a fake driver.
 *
 * Expected grids are worked out here from the numbers of the fake device: 131 SMs of 2 blocks
 * each. */
#define _GNU_SOURCE
#include "fake_calls.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { N_RESIDENT = 131 * 2 };

/* "static" is the entry point of the queue, without one. */
static bool is_kernel(const fake_launch *l, const ws_cuda_row *row, const char *sched) {
  const bool is_static = strcmp(sched, "static") == 0;
  char name[96];
  snprintf(name, sizeof name, "%s_%s", row->name, is_static ? "queue" : sched);
  return CHECK(strcmp(l->kernel, name) == 0, "kernel %s, not %s", l->kernel, name) &&
         CHECK(!is_static || (!l->args.sched.queue && l->args.sched.quantum == 0), "%s: a queue, or a quantum of %u", name,
               l->args.sched.quantum);
}

static wsgemm_handle *handle_with(const ws_cuda_row *row, wsgemm_policy policy, int quantum) {
  wsgemm_handle *h = handle_of_row(row);
  REQUIRE(wsgemm_set_policy(h, policy) == WSGEMM_SUCCESS && wsgemm_set_quantum(h, quantum) == WSGEMM_SUCCESS, "settings");
  return h;
}

static int queue_of(const fake_launch *l) {
  /* its first member */
  const ws_launch_state *state = (const ws_launch_state *)(const void *)l->args.sched.queue;
  return state ? (int)(state - fake.states[l->device]) : -1;
}

/* ---- grids ----------------------------------------------------------------------------------- */

static int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }
static int64_t larger(int64_t a, int64_t b) { return a > b ? a : b; }

/* A device without Cluster Launch Control. */
static void check_grid(const ws_cuda_row *row, wsgemm_policy policy, int quantum, int64_t m, int64_t n) {
  const wsgemm_gemm_desc d = row_desc(row, m, n, 33, 0);
  const int64_t n_items = gpu_row_items(row, d.m, d.n, 1);
  /* an item for every block at most: nothing to steal */
  const bool is_static = policy == WSGEMM_POLICY_FIXED_WORK || policy == WSGEMM_POLICY_FIXED_BLOCKS || n_items <= N_RESIDENT;
  int64_t n_blocks = smaller(n_items, N_RESIDENT);
  if (policy == WSGEMM_POLICY_FIXED_WORK) n_blocks = n_items;
  if (!is_static && quantum > 0) n_blocks = larger(n_blocks, (n_items + quantum - 1) / quantum);
  wsgemm_handle *h = handle_with(row, policy, quantum);
  const fake_launch *l = launch_of(h, &d);
  is_kernel(l, row, is_static ? "static" : "queue");
  CHECK(l->grid[0] == n_blocks && l->grid[1] == 1 && l->grid[2] == 1,
        "%s, policy %d, quantum %d, %lld items: %u x %u x %u blocks, not %lld", row->name, (int)policy, quantum,
        (long long)n_items, l->grid[0], l->grid[1], l->grid[2], (long long)n_blocks);
  CHECK(l->block[0] == (unsigned)row->n_threads && l->block[1] == 1 && l->block[2] == 1, "%s: %u threads", row->name,
        l->block[0]);
  CHECK(l->shared_bytes == (unsigned)row->shared_bytes, "%s: %u bytes", row->name, l->shared_bytes);
  CHECK(l->planned_threads == row->n_threads && l->planned_shared == row->shared_bytes,
        "%s: the occupancy was asked for %d threads and %d bytes", row->name, l->planned_threads, l->planned_shared);
  const ws_tile_grid *g = &l->args.grid;
  CHECK(g->n_rows == (d.m + row->bm - 1) / row->bm && g->n_cols == (d.n + row->bn - 1) / row->bn && g->coarse == row->coarse &&
            g->n_batch == 1 && g->swizzle >= 1 && l->args.sched.n_items == n_items,
        "%s: tiles", row->name);
  CHECK(is_static ? !l->args.sched.queue : queue_of(l) >= 0 && queue_of(l) < WS_N_STATES, "%s: queue", row->name);
  if (!is_static) CHECK(l->args.sched.quantum == (unsigned)quantum, "%s: quantum %u", row->name, l->args.sched.quantum);
  /* What does not fill the blocks at the end is shared by the SMs: 1 each, or 2. */
  const int64_t n_last = n_items % N_RESIDENT;
  const bool spreads = !is_static && quantum == 0 && n_last > 0;
  CHECK(l->args.sched.n_eager == (unsigned)(spreads ? 1 + (n_last > N_RESIDENT / 2) : 0) &&
            l->args.sched.late_first == (unsigned)(spreads ? n_items - n_last - N_RESIDENT : 0),
        "%s, %lld items: %u of a multiprocessor ask ahead from %u on", row->name, (long long)n_items, l->args.sched.n_eager,
        l->args.sched.late_first);
  wsgemm_destroy(h);
}

/* What each policy comes to. Only 10.0 and 12.0 have both Cluster Launch Control and machine code
 * here that uses it. */
static const struct {
  const char *with_clc, *without;
} expected_scheds[] = {[WSGEMM_POLICY_AUTO] = {"clc", "queue"},
                       [WSGEMM_POLICY_FIXED_WORK] = {"static", "static"},
                       [WSGEMM_POLICY_FIXED_BLOCKS] = {"static", "static"},
                       [WSGEMM_POLICY_STEAL] = {"queue", "queue"},
                       [WSGEMM_POLICY_CLC] = {"clc", "queue"},
                       [WSGEMM_POLICY_FOREACH] = {"foreach", "queue"}};
_Static_assert(sizeof expected_scheds / sizeof expected_scheds[0] == WS_N_POLICIES, "a line for each policy");

CHILD_CASE(grids) {
  (void)unused;
  static const int64_t shapes[][2] = {{1, 1}, {64, 32}, {129, 65}, {1000, 900}, {5000, 7000}};
  for (int r = 0; r < n_gpu_rows; r++)
    for (size_t s = 0; s < sizeof shapes / sizeof shapes[0]; s++)
      for (int policy = WSGEMM_POLICY_AUTO; policy < WS_N_POLICIES; policy++)
        for (int quantum = 0; quantum < 6; quantum += quantum ? 4 : 1)
          check_grid(&gpu_rows[r], (wsgemm_policy)policy, quantum, shapes[s][0], shapes[s][1]);
  for (int r = 0; r < n_gpu_rows; r++) /* as many items as blocks fit, and one more */
    for (int n_items = N_RESIDENT; n_items <= N_RESIDENT + 1; n_items++)
      if (gpu_rows[r].kind != WS_ROW_VECTOR)
        check_grid(&gpu_rows[r], WSGEMM_POLICY_STEAL, 0, (int64_t)n_items * gpu_rows[r].bm, gpu_rows[r].bn);
}

/* Some in plain numbers: tiles of 128 x 64, two to an item. */
CHILD_CASE(grids_by_hand) {
  (void)unused;
  static const struct {
    wsgemm_policy policy;
    int quantum;
    int64_t m, n;
    unsigned n_blocks, n_items;
  } expected[] = {{WSGEMM_POLICY_FIXED_WORK, 0, 5000, 5000, 1600, 1600}, {WSGEMM_POLICY_FIXED_BLOCKS, 0, 5000, 5000, 262, 1600},
                  {WSGEMM_POLICY_STEAL, 0, 5000, 5000, 262, 1600},       {WSGEMM_POLICY_STEAL, 3, 5000, 5000, 534, 1600},
                  {WSGEMM_POLICY_STEAL, 1 << 20, 5000, 5000, 262, 1600}, {WSGEMM_POLICY_STEAL, 0, 1000, 1000, 64, 64},
                  {WSGEMM_POLICY_FIXED_BLOCKS, 3, 1000, 1000, 64, 64},   {WSGEMM_POLICY_FIXED_WORK, 3, 128, 128, 1, 1},
                  {WSGEMM_POLICY_FIXED_WORK, 0, 129, 129, 4, 4}};
  for (size_t i = 0; i < sizeof expected / sizeof expected[0]; i++) {
    wsgemm_handle *h = handle_with(gpu_row_with(WSGEMM_F32, 128, 64, 2), expected[i].policy, expected[i].quantum);
    const wsgemm_gemm_desc d = device_desc(WSGEMM_F32, expected[i].m, expected[i].n, 10, 0);
    const fake_launch *l = launch_of(h, &d);
    CHECK(l->grid[0] == expected[i].n_blocks && l->args.sched.n_items == expected[i].n_items, "%zu: %u blocks, %u items", i,
          l->grid[0], l->args.sched.n_items);
    wsgemm_destroy(h);
  }
}

static void on_devices(const int ccs[FAKE_N_DEVICES], const bool has_clc[FAKE_N_DEVICES]) {
  const ws_cuda_row *row = gpu_row_with(WSGEMM_C64, 32, 32, 1);
  fake.n_devices = FAKE_N_DEVICES;
  for (int device = 0; device < FAKE_N_DEVICES; device++) {
    fake.device[device].cc = ccs[device];
    for (int policy = WSGEMM_POLICY_AUTO; policy < WS_N_POLICIES; policy++) {
      const char *const sched = has_clc[device] ? expected_scheds[policy].with_clc : expected_scheds[policy].without;
      wsgemm_handle *h = handle_with(row, (wsgemm_policy)policy, 2);
      const wsgemm_gemm_desc d = device_desc(row->type, 1024, 1024, 10, device);
      const fake_launch *l = launch_of(h, &d);
      CHECK(l->device == device, "device %d", l->device);
      is_kernel(l, row, sched);
      CHECK(explained_is(h, &d, "scheduler", sched), "policy %d is not explained as %s", policy, sched);
      if (strcmp(sched, "clc") == 0 || strcmp(sched, "foreach") == 0)
        CHECK(l->grid[0] == 1024 && !l->args.sched.queue, "%s: %u blocks", sched, l->grid[0]);
      wsgemm_destroy(h);
    }
  }
}

CHILD_CASE(cluster_launch_control) {
  (void)unused;
  on_devices((const int[]){100, 120, 90}, (const bool[]){true, true, false});
}

CHILD_CASE(no_cluster_launch_control) {
  (void)unused;
  on_devices((const int[]){103, 121, 80}, (const bool[]){false, false, false});
}

/* Among the rows of a type that have the handle's COARSE_FACTOR, if there are any. */
CHILD_CASE(coarse_factors) {
  (void)unused;
  wsgemm_handle *h = NULL;
  REQUIRE(wsgemm_create(&h) == WSGEMM_SUCCESS, "handle");
  for (int type = 0; type < N_TYPES; type++)
    for (int coarse = 1; coarse <= 8; coarse++) {
      bool exists = false;
      for (int r = 0; r < n_gpu_rows; r++) exists |= gpu_rows[r].type == (wsgemm_type)type && gpu_rows[r].coarse == coarse;
      const wsgemm_gemm_desc d = device_desc((wsgemm_type)type, 3000, 3000, 100, 0);
      CHECK(wsgemm_set_coarse_factor(h, coarse) == WSGEMM_SUCCESS, "%s", wsgemm_last_error());
      const fake_launch *l = launch_of(h, &d);
      if (exists) CHECK(l->args.grid.coarse == coarse, "%s for a COARSE_FACTOR of %d", l->kernel, coarse);
      CHECK(row_of(l)->type == (wsgemm_type)type, "%s", l->kernel);
    }
  wsgemm_destroy(h);
}

/* ---- ticket queues --------------------------------------------------------------------------- */

static const ws_cuda_row *steal_row(void) { return gpu_row_with(WSGEMM_F32, 64, 32, 1); }

static int queue_on(wsgemm_handle *h, const wsgemm_gemm_desc *d, int stream) {
  wsgemm_set_stream(h, stream > 0 ? &fake.stream[stream] : NULL);
  const fake_launch *l = launch_of(h, d);
  if (l->args.sched.queue) is_kernel(l, steal_row(), "queue");
  return queue_of(l);
}

/* One for each stream, the same each time; one for each captured launch, never the same. */
CHILD_CASE(queues) {
  (void)unused;
  enum { N = 40 };
  static bool is_taken[2][WS_N_STATES];
  int first[2][N];
  wsgemm_handle *h = handle_with(steal_row(), WSGEMM_POLICY_STEAL, 0);
  for (int device = 0; device < 2; device++)
    for (int stream = 0; stream < N; stream++) {
      const wsgemm_gemm_desc d = device_desc(WSGEMM_F32, 1000, 1000, 10, device);
      const int queue = first[device][stream] = queue_on(h, &d, stream);
      if (!CHECK(queue >= 0 && queue < WS_N_STATES && !is_taken[device][queue], "stream %d: queue %d", stream, queue)) return;
      is_taken[device][queue] = true;
    }
  for (int turn = 0; turn < 200; turn++) {
    const int device = turn % 2, stream = turn * 7 % N;
    const wsgemm_gemm_desc d = device_desc(WSGEMM_F32, 1000, 1000, 10, device);
    fake.stream[stream].capture = turn % 3 == 1 ? CU_STREAM_CAPTURE_STATUS_ACTIVE : CU_STREAM_CAPTURE_STATUS_NONE;
    const int queue = queue_on(h, &d, stream);
    if (turn % 3 == 1) {
      if (!CHECK(queue >= 0 && queue < WS_N_STATES && !is_taken[device][queue], "captured: queue %d", queue)) return;
      is_taken[device][queue] = true;
    } else {
      CHECK(queue == first[device][stream], "stream %d: first queue %d, then %d", stream, first[device][stream], queue);
    }
    fake.stream[stream].capture = CU_STREAM_CAPTURE_STATUS_NONE;
  }
  wsgemm_destroy(h);
}

/* All are taken, by captured launches and streams with something in flight: the static form with
 * the same items; who has a queue keeps it. */
static void take_all(int n_captured) {
  wsgemm_handle *h = handle_with(steal_row(), WSGEMM_POLICY_STEAL, 0);
  const wsgemm_gemm_desc d = device_desc(WSGEMM_F32, 6400, 640, 10, 0); /* 2000 items */
  static bool is_taken[WS_N_STATES];
  for (int i = 0; i < FAKE_N_STREAMS - 1; i++) {
    const int stream = i < n_captured ? FAKE_N_STREAMS - 1 : i - n_captured;
    fake.stream[stream].is_busy = true;
    fake.stream[FAKE_N_STREAMS - 1].capture = i < n_captured ? CU_STREAM_CAPTURE_STATUS_ACTIVE : CU_STREAM_CAPTURE_STATUS_NONE;
    const int queue = queue_on(h, &d, stream);
    if (i < WS_N_STATES) {
      if (!CHECK(queue >= 0 && queue < WS_N_STATES && !is_taken[queue], "launch %d: queue %d", i, queue)) return;
      is_taken[queue] = true;
    } else {
      const fake_launch *l = &fake.launch[0];
      if (!CHECK(queue == -1, "launch %d: queue %d of %d", i, queue, WS_N_STATES)) return;
      is_kernel(l, steal_row(), "static");
      CHECK(l->grid[0] == N_RESIDENT && l->args.sched.n_items == 2000, "%u blocks for %u items", l->grid[0],
            l->args.sched.n_items);
    }
  }
  const int again = queue_on(h, &d, 5);
  CHECK(again >= 0 && is_taken[again], "a stream lost its queue");
  fake.stream[5].capture = CU_STREAM_CAPTURE_STATUS_ACTIVE;
  CHECK(queue_on(h, &d, 5) == -1, "a captured launch shares a queue");
  wsgemm_destroy(h);
}

CHILD_CASE(no_queue_left_by_streams) {
  (void)unused;
  take_all(0);
}

CHILD_CASE(no_queue_left_by_captures) {
  (void)unused;
  take_all(1000);
}

/* The very first call of a process, and the first with a scheduler and a type, in a capture:
 * kernels are loaded beside it. */
CHILD_CASE(first_calls_in_a_capture) {
  (void)unused;
  fake.stream[7].capture = CU_STREAM_CAPTURE_STATUS_ACTIVE;
  for (int type = 0; type < N_TYPES; type++)
    for (int policy = WSGEMM_POLICY_AUTO; policy < WS_N_POLICIES; policy++)
      for (int path = 0; path < 3; path++) { /* the scaling, the product, the split product */
        const int64_t side = path == 1 ? 3000 : 50;
        wsgemm_handle *h = NULL;
        REQUIRE(wsgemm_create(&h) == WSGEMM_SUCCESS && wsgemm_set_stream(h, &fake.stream[7]) == WSGEMM_SUCCESS &&
                    wsgemm_set_policy(h, (wsgemm_policy)policy) == WSGEMM_SUCCESS,
                "handle");
        const wsgemm_gemm_desc d = device_desc((wsgemm_type)type, side, side, path == 2 ? 5000 : path, 0);
        CHECK(launch_of(h, &d)->stream == (CUstream)&fake.stream[7], "stream");
        wsgemm_destroy(h);
      }
}

/* ---- split products -------------------------------------------------------------------------- */

/* Few tiles and a long k: one launch of blocks that are all there at once, with memory of the
 * library's for 8 streams, of the caller's, or none; then the row that wants the least shared
 * memory works alone. */
CHILD_CASE(split_products) {
  (void)unused;
  enum { N = 64, K = 8192 };
  wsgemm_handle *h = NULL;
  char *own = fake_alloc(FAKE_DEVICE, 0, 16 << 20);
  REQUIRE(own && wsgemm_create(&h) == WSGEMM_SUCCESS, "handle");
  for (int type = 0; type < N_TYPES; type++)
    for (int turn = 0; turn < 12; turn++) {
      const wsgemm_gemm_desc d = device_desc((wsgemm_type)type, N, N, K, 0);
      const bool is_own = turn == 10, is_short = turn == 11;
      size_t bytes = 0;
      wsgemm_set_stream(h, &fake.stream[turn]);
      fake.stream[turn].capture = CU_STREAM_CAPTURE_STATUS_NONE;
      fake.stream[turn].is_busy = true;
      CHECK(wsgemm_get_workspace_size(h, &d, &bytes) == WSGEMM_SUCCESS && bytes > 0, "no workspace is wanted: %zu", bytes);
      REQUIRE(wsgemm_set_workspace(h, is_own || is_short ? own : NULL,
                                   is_own     ? bytes
                                   : is_short ? bytes - 1
                                              : 0) == WSGEMM_SUCCESS,
              "%s", wsgemm_last_error());
      const fake_launch *l = launch_of(h, &d);
      const ws_split_args *split = &l->args.split;
      const bool has_sums = turn < WS_N_SUMS || is_own;
      CHECK(bytes == (size_t)split->n_splits * N * N *
                         (type_is_half((wsgemm_type)type) ? sizeof(float) : type_bytes((wsgemm_type)type)),
            "%c: %zu bytes for %d parts", type_letter((wsgemm_type)type), bytes, split->n_splits);
      CHECK(is_split(l) && split->n_splits > 1 && split->k_per_split * split->n_splits >= K &&
                split->k_per_split * (split->n_splits - 1) < K,
            "%s: %d parts of %lld", l->kernel, split->n_splits, (long long)split->k_per_split);
      CHECK(l->is_cooperative == has_sums && (split->sums != NULL) == has_sums && (split->barrier != NULL) == has_sums,
            "turn %d: sums %p, cooperative %d", turn, split->sums, l->is_cooperative);
      const long place = has_sums && !is_own ? (char *)split->sums - fake.sums[0] : 0;
      CHECK(is_own ? split->sums == own : place == (has_sums ? turn * (long)WS_SUMS_BYTES : 0), "turn %d: sums at %ld", turn,
            place);
      if (has_sums) {
        CHECK((const char *)split->barrier - (const char *)fake.states[0] ==
                  turn * (long)sizeof(ws_launch_state) + (long)offsetof(ws_launch_state, barrier),
              "turn %d: the barrier of another stream", turn);
        CHECK(l->grid[0] == (unsigned)smaller(l->args.sched.n_items, N_RESIDENT), "%u blocks", l->grid[0]);
      } else {
        CHECK(l->grid[0] == l->args.sched.n_items && l->args.grid.n_batch == 1, "%u blocks", l->grid[0]);
        CHECK(l->shared_bytes > (unsigned)l->planned_shared, "no shared memory for the total");
      }
    }
  wsgemm_destroy(h);
  h = handle_of_row(gpu_row_with(WSGEMM_F32, 32, 64, 1));
  const wsgemm_gemm_desc d = device_desc(WSGEMM_F32, 256, 512, 4096, 0);
  const fake_launch *l = launch_of(h, &d);
  CHECK(l->args.sched.n_items > N_RESIDENT && l->grid[0] == N_RESIDENT && l->is_cooperative, "%u blocks for %u items", l->grid[0],
        l->args.sched.n_items);
  wsgemm_destroy(h);
}

/* A row by name keeps its way of summing where there is no memory for sums, also for a matrix and a
 * vector. */
CHILD_CASE(named_rows_without_sums) {
  (void)unused;
  for (int r = 0; r < n_gpu_rows; r++)
    for (int is_row = 0; is_row < 2; is_row++) {
      const wsgemm_type type = gpu_rows[r].type;
      wsgemm_handle *h = handle_of_row(&gpu_rows[r]);
      char *small = fake_alloc(FAKE_DEVICE, 0, 256);
      wsgemm_gemm_desc d = device_desc(type, is_row ? 1 : 200, is_row ? 200 : 1, 100000, 0);
      d.transa = WSGEMM_TRANS, d.lda = 100000;
      const ws_cuda_row *with_sums = row_of(launch_of(h, &d));
      REQUIRE(wsgemm_set_workspace(h, small, 256) == WSGEMM_SUCCESS, "%s", wsgemm_last_error());
      const ws_cuda_row *without = row_of(launch_of(h, &d));
      CHECK(with_sums->kind == without->kind && with_sums->is_fma == without->is_fma, "%s: %s with sums, %s without",
            gpu_rows[r].name, with_sums->name, without->name);
      wsgemm_destroy(h);
    }
}

/* Without sums no block waits for another: where there is Cluster Launch Control, it hands out the
 * tiles. */
CHILD_CASE(split_products_by_clc) {
  (void)unused;
  enum { N = 64, K = 8192 };
  static const int ccs[] = {100, 120, 90};
  static const struct {
    int device;
    wsgemm_policy policy;
    bool is_clc;
  } calls[] = {{0, WSGEMM_POLICY_AUTO, true},   {1, WSGEMM_POLICY_CLC, true},  {0, WSGEMM_POLICY_FOREACH, true},
               {0, WSGEMM_POLICY_STEAL, false}, {2, WSGEMM_POLICY_CLC, false}, {1, WSGEMM_POLICY_FIXED_BLOCKS, false}};
  fake.n_devices = 3;
  for (int device = 0; device < 3; device++) fake.device[device].cc = ccs[device];
  for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++)
    for (int has_sums = 0; has_sums < 2; has_sums++) {
      const int device = calls[i].device;
      char *small = fake_alloc(FAKE_DEVICE, device, 256);
      wsgemm_handle *h = NULL;
      REQUIRE(wsgemm_create(&h) == WSGEMM_SUCCESS && wsgemm_set_policy(h, calls[i].policy) == WSGEMM_SUCCESS, "handle");
      REQUIRE(wsgemm_set_workspace(h, has_sums ? NULL : small, has_sums ? 0 : 256) == WSGEMM_SUCCESS, "%s", wsgemm_last_error());
      wsgemm_gemm_desc d = device_desc(WSGEMM_C32, N, N, K, device);
      d.math = WSGEMM_MATH_PEDANTIC; /* tf32 rows do not cut k into items */
      const fake_launch *l = launch_of(h, &d);
      const bool is_clc = strcmp(l->entry, "split_clc") == 0;
      CHECK(is_clc == (calls[i].is_clc && !has_sums), "cc %d, policy %d, %s sums: %s", ccs[device], (int)calls[i].policy,
            has_sums ? "with" : "without", l->kernel);
      if (!has_sums) CHECK(l->grid[0] == l->args.sched.n_items && !l->is_cooperative, "%u blocks", l->grid[0]);
      wsgemm_destroy(h);
    }
}

/* A row that has no entry point for split products gives way to one that has. */
CHILD_CASE(rows_of_split_products) {
  (void)unused;
  for (int r = 0; r < n_gpu_rows; r++) {
    wsgemm_handle *h = handle_of_row(&gpu_rows[r]);
    const wsgemm_gemm_desc d = row_desc(&gpu_rows[r], 64, 64, 8192, 0);
    const fake_launch *l = launch_of(h, &d);
    const ws_cuda_row *taken = row_of(l);
    CHECK(is_split(l) && taken->splits && (taken == &gpu_rows[r] || !gpu_rows[r].splits), "%s: %s is taken", gpu_rows[r].name,
          l->kernel);
    wsgemm_destroy(h);
  }
}

/* ---- threads --------------------------------------------------------------------------------- */

enum { N_THREADS = 8, N_TURNS = 200 };
struct caller {
  pthread_t thread;
  int number, n_failed;
};
static atomic_int n_ready;

static void *call_many(void *argument) {
  struct caller *self = argument;
  wsgemm_handle *h = NULL;
  atomic_fetch_add(&n_ready, 1);
  while (atomic_load(&n_ready) < N_THREADS) continue;
  if (wsgemm_create(&h) != WSGEMM_SUCCESS) return NULL;
  wsgemm_set_stream(h, &fake.stream[1 + self->number % 4]); /* two threads to a stream */
  for (int turn = 0; turn < N_TURNS; turn++) {
    wsgemm_gemm_desc d = device_desc((wsgemm_type)(turn % N_TYPES), 3000, 3000, turn % 5, turn / N_TYPES % 2);
    wsgemm_set_policy(h, (wsgemm_policy)(turn % 6));
    self->n_failed += wsgemm_gemm(h, &d) != WSGEMM_SUCCESS || fake_depth() != 0;
  }
  wsgemm_destroy(h);
  return NULL;
}

/* Threads that are all first: every image is loaded once for each device, every stream gets one
 * queue. */
CHILD_CASE(threads) {
  (void)unused;
  struct caller callers[N_THREADS];
  device_memory(0), device_memory(1);
  fake_forget();
  for (int t = 0; t < N_THREADS; t++) {
    callers[t] = (struct caller){.number = t};
    REQUIRE(pthread_create(&callers[t].thread, NULL, call_many, &callers[t]) == 0, "thread");
  }
  for (int t = 0; t < N_THREADS; t++) {
    pthread_join(callers[t].thread, NULL);
    CHECK(callers[t].n_failed == 0, "thread %d: %d calls failed or left a context", t, callers[t].n_failed);
  }
  CHECK(fake.n_launches == N_THREADS * N_TURNS, "%d launches", fake.n_launches);
  CHECK(fake.n_loads == 2 * (N_TYPES + 2), "%d images loaded, not six types, scaling and the queues on two devices",
        fake.n_loads);
  CHECK(fake.n_calls_of[FAKE_cuDevicePrimaryCtxRetain] == 2, "%d contexts retained on two devices",
        fake.n_calls_of[FAKE_cuDevicePrimaryCtxRetain]);
  wsgemm_handle *h = handle_with(steal_row(), WSGEMM_POLICY_STEAL, 0);
  for (int device = 0; device < 2; device++) {
    const wsgemm_gemm_desc d = device_desc(WSGEMM_F32, 1000, 1000, 10, device);
    CHECK(queue_on(h, &d, 9) == 4, "4 streams took more than 4 queues of device %d", device);
  }
  wsgemm_destroy(h);
}

/* Two threads that are first on one stream: the second has looked for its queue, in vain, when the
 * first is about to enter it. */
static void hold_first(fake_function function) {
  if (function == FAKE_cuStreamGetId) atomic_fetch_add(&n_ready, 1);
  if (function != FAKE_cuLibraryGetGlobal) return;
  /* The second may be waiting for the lock that the first holds here, to look up its kernel. If any
   * wait is too short, nothing is learnt, and nothing fails. */
  for (int i = 0; i < 200 && atomic_load(&n_ready) < 2; i++) usleep(1000);
  usleep(50000);
}

static void *call_once(void *handle) {
  const wsgemm_gemm_desc d = device_desc(WSGEMM_F32, 1000, 1000, 10, 0);
  CHECK(wsgemm_gemm(handle, &d) == WSGEMM_SUCCESS, "%s", wsgemm_last_error());
  return NULL;
}

CHILD_CASE(two_threads_on_a_stream) {
  (void)unused;
  pthread_t thread[2];
  wsgemm_handle *h = handle_with(steal_row(), WSGEMM_POLICY_STEAL, 0);
  wsgemm_set_stream(h, &fake.stream[3]);
  device_memory(0);
  fake.before_call = hold_first;
  for (int t = 0; t < 2; t++) REQUIRE(pthread_create(&thread[t], NULL, call_once, h) == 0, "thread");
  for (int t = 0; t < 2; t++) pthread_join(thread[t], NULL);
  CHECK(fake.n_launches == 2 && fake.launch[0].args.sched.queue && queue_of(&fake.launch[0]) == queue_of(&fake.launch[1]),
        "one stream got queues %d and %d", queue_of(&fake.launch[0]), queue_of(&fake.launch[1]));
  wsgemm_destroy(h);
}

static const struct check_case cases[] = {{"grids", grids},
                                          {"grids_by_hand", grids_by_hand},
                                          {"cluster_launch_control", cluster_launch_control},
                                          {"no_cluster_launch_control", no_cluster_launch_control},
                                          {"coarse_factors", coarse_factors},
                                          {"queues", queues},
                                          {"no_queue_left_by_streams", no_queue_left_by_streams},
                                          {"no_queue_left_by_captures", no_queue_left_by_captures},
                                          {"first_calls_in_a_capture", first_calls_in_a_capture},
                                          {"split_products", split_products},
                                          {"split_products_by_clc", split_products_by_clc},
                                          {"named_rows_without_sums", named_rows_without_sums},
                                          {"rows_of_split_products", rows_of_split_products},
                                          {"threads", threads},
                                          {"two_threads_on_a_stream", two_threads_on_a_stream}};
CHECK_MAIN("backend_sched", cases)
