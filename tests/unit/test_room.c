/* test_room.c - memory that many threads take and give back at once: rooms and workspaces are mapped once, not for
 * each item, and nobody gets what another one has. */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "cpu/room.h"
#include "cpu/workspace.h"
#include "support/check.h"

enum { N_THREADS = 24, N_ROUNDS = 60, WORKSPACE_BYTES = 3 << 20, PAGE = 4096 };

static pthread_barrier_t barrier;
static bool is_workspace;
static void *at[N_ROUNDS][N_THREADS];
static long faults_before, faults_after;

static long faults(void) {
  struct rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_minflt;
}

/* Holds it while all the others hold theirs. */
static void hold(void *memory, size_t bytes, int round, int thread) {
  at[round][thread] = memory;
  for (size_t i = 0; i < bytes; i += PAGE) ((char *)memory)[i] = (char)thread;
  pthread_barrier_wait(&barrier);
  bool is_mine = true;
  for (size_t i = 0; i < bytes; i += PAGE) is_mine &= ((char *)memory)[i] == (char)thread;
  CHECK(is_mine, "thread %d has memory of another one", thread);
}

static void *work(void *context) {
  const int thread = (int)(intptr_t)context;
  for (int round = 0; round < N_ROUNDS; round++) {
    /* all have had theirs by then, and the checks have what they need */
    if (thread == 0 && round == 2) faults_before = faults();
    pthread_barrier_wait(&barrier);
    if (is_workspace) {
      ws_workspace *w = ws_workspace_get(WORKSPACE_BYTES);
      REQUIRE(w != NULL, "memory");
      hold(ws_workspace_data(w), WORKSPACE_BYTES, round, thread);
      ws_workspace_put(w);
    } else {
      const ws_room room = ws_room_take(WS_ROOM_BYTES);
      hold(room.at, WS_ROOM_BYTES, round, thread);
      ws_room_give(&room);
    }
  }
  pthread_barrier_wait(&barrier);
  if (thread == 0) faults_after = faults();
  return NULL;
}

static bool is_in_first_rounds(const void *memory) {
  for (int i = 0; i < 2 * N_THREADS; i++)
    if (at[i / N_THREADS][i % N_THREADS] == memory) return true;
  return false;
}

static void many_at_once(bool of_workspaces) {
  pthread_t threads[N_THREADS];
  is_workspace = of_workspaces;
  REQUIRE(pthread_barrier_init(&barrier, NULL, N_THREADS) == 0, "barrier");
  for (intptr_t i = 0; i < N_THREADS; i++) REQUIRE(pthread_create(&threads[i], NULL, work, (void *)i) == 0, "thread");
  for (int i = 0; i < N_THREADS; i++) pthread_join(threads[i], NULL);
  pthread_barrier_destroy(&barrier);
  for (int round = 2; round < N_ROUNDS; round++)
    for (int i = 0; i < N_THREADS; i++)
      CHECK(is_in_first_rounds(at[round][i]), "round %d has memory that was not there before", round);
  /* Each mapped anew would be one or more. Sanitizers and emulators (check_scale) have faults of their own. */
  const long n = check_scale() == 1 ? faults_after - faults_before : 0;
  CHECK(n < N_THREADS * (N_ROUNDS - 2) / 8, "%ld pages came into being in %d rounds of %d threads", n, N_ROUNDS - 2, N_THREADS);
}

static void rooms(void) { many_at_once(false); }
static void workspaces(void) { many_at_once(true); }

/* A thread has the room again that it had last, whichever others are free. */
static void same_again(void) {
  const ws_room first = ws_room_take(1), second = ws_room_take(1);
  ws_room_give(&first);
  ws_room_give(&second);
  const ws_room third = ws_room_take(1);
  CHECK(third.at == second.at && first.at != second.at, "another room");
  ws_room_give(&third);
}

/* The smallest that is large enough is taken, so that a small need does not leave a large one without. */
static void best_fit(void) {
  ws_workspace *small = ws_workspace_get(1), *large = ws_workspace_get(20 << 20);
  ws_workspace_put(small);
  ws_workspace_put(large);
  ws_workspace *again = ws_workspace_get(1), *large_again = ws_workspace_get(20 << 20);
  CHECK(large_again == large && again != large, "a small workspace is the large one");
  ws_workspace_put(again);
  ws_workspace_put(large_again);
  ws_workspace *smaller = ws_workspace_get(5 << 20); /* than the large one alone */
  CHECK(smaller == large, "5 MB fit into the large one");
  ws_workspace *other = ws_workspace_get(5 << 20);
  CHECK(other != again && other != large, "5 MB do not fit into the small one");
  ws_workspace_put(smaller);
  ws_workspace_put(other);
}

static double mapped_mib(void) {
  long pages = 0;
  FILE *f = fopen("/proc/self/statm", "r");
  if (!f || fscanf(f, "%ld", &pages) != 1) pages = 0;
  if (f) fclose(f);
  return (double)pages * (double)sysconf(_SC_PAGESIZE) / (1 << 20);
}

/* What many had at once is kept up to a limit. */
static void limit(void) {
  enum { N_AT_ONCE = 120, BYTES = 7 << 20, LIMIT_MIB = 256 };
  static ws_workspace *at_once[N_AT_ONCE];
  const double before = mapped_mib();
  for (int i = 0; i < N_AT_ONCE; i++) REQUIRE((at_once[i] = ws_workspace_get(BYTES)) != NULL, "memory");
  const double most = mapped_mib();
  for (int i = 0; i < N_AT_ONCE; i++) ws_workspace_put(at_once[i]);
  const double after = mapped_mib();
  CHECK(most - before > 2 * LIMIT_MIB && after - before <= LIMIT_MIB, "%.0f MiB more were mapped, and %.0f stay", most - before,
        after - before);
}

/* A large one that comes back is kept, and small ones that have lain there longer go. */
static void large_is_kept(void) {
  enum { N_SMALL = 60 };
  static ws_workspace *small[N_SMALL];
  for (int i = 0; i < N_SMALL; i++) small[i] = ws_workspace_get(3 << 20);
  for (int i = 0; i < N_SMALL; i++) ws_workspace_put(small[i]);
  ws_workspace *large = ws_workspace_get((size_t)300 << 20);
  ws_workspace_put(large);
  for (int i = 0; i < 3; i++) {
    ws_workspace *again = ws_workspace_get((size_t)300 << 20);
    CHECK(again == large, "a large workspace was mapped anew");
    ws_workspace_put(again);
  }
}

/* More threads than there are rooms: each gets one in turn. */
enum { N_MANY = 400 };
static void *take_and_give(void *unused) {
  const ws_room room = ws_room_take(PAGE);
  memset(room.at, 1, PAGE);
  ws_room_give(&room);
  return unused;
}

static void more_threads_than_rooms(void) {
  static pthread_t threads[N_MANY];
  static ws_room held[N_MANY];
  int n_held = 0, n = 0;
  while (n_held < N_MANY && (n_held == 0 || held[n_held - 1].idx >= 0)) held[n_held++] = ws_room_take(1);
  CHECK(n_held < N_MANY && n_held > 256, "%d rooms", n_held - 1);
  for (int i = 0; i < n_held - 1; i++) CHECK(held[i].at != held[n_held - 1].at, "the last room is another's");
  while (n < 3 && pthread_create(&threads[n], NULL, take_and_give, NULL) == 0) n++;
  for (int i = n_held - 1; i >= 0; i--) ws_room_give(&held[i]);
  for (int i = 0; i < n; i++) CHECK(pthread_join(threads[i], NULL) == 0, "thread %d", i);
}

/* Rooms of threads that a child has not are free there: the library's fork handlers see to that. */
static void in_child(void *room) {
  const ws_room mine = ws_room_take(1);
  CHECK(mine.at == ((const ws_room *)room)->at, "the room of a thread that is not there is not free");
  ws_room_give(&mine);
}

static void forked(void) {
  ws_room room = ws_room_take(1);
  check_in_child("rooms", in_child, &room);
  ws_room_give(&room);
}

static const struct check_case cases[] = {
    {"rooms", rooms},
    {"workspaces", workspaces},
    {"same_again", same_again},
    {"best_fit", best_fit},
    {"large_is_kept", large_is_kept},
    {"limit", limit},
    {"more_threads_than_rooms", more_threads_than_rooms},
    {"forked", forked},
};

CHECK_MAIN("room", cases)
