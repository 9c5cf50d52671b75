/* clc_machine.h - a simulated device for the protocol of cuda/sched/clc_protocol.cuh: blocks,
 * clusters, barriers, requests, two proxies.
 *
 * Every primitive is a step of one thread, and between steps a chooser says what happens next: a
 * step of any thread or an event of the device. Values are in order; what real memory may reorder
 * is found by vector clocks. The first rule that is broken ends the run. Stricter than the manual
 * in two things: a release fence covers the reads of its own thread only, and only
 * fence.mbarrier_init shows a barrier to other blocks. Not modelled: the instructions themselves,
 * other memory, time, a device unlike the manual. Compiled and model-checked, never run on
 * hardware. */
#ifndef WSGEMM_TESTS_CLC_MACHINE_H
#define WSGEMM_TESTS_CLC_MACHINE_H
#include <array>
#include <cstdint>
#include <functional>
#include <vector>

#include "fibers.h"

namespace clc_machine {

#define CLC_RULES(X)                                                                \
  X(request_after_refusal, "a request after an observed refusal")                   \
  X(refusal_decoded, "a refusal is decoded")                                        \
  X(read_before_completion, "a result is read before its completion")               \
  X(overwritten_before_read, "a result that a thread has still to read is written") \
  X(acquire_fence_missing, "no acquire proxy fence before the request")             \
  X(release_fence_missing, "no release proxy fence after the read")                 \
  X(wrong_bytes, "a barrier completes early or never: wrong transaction bytes")     \
  X(cluster_not_running, "a request before all blocks of the cluster run")          \
  X(write_after_exit, "a write into a block that has exited")                       \
  X(item_twice, "an item is done twice")                                            \
  X(item_never, "an item is never done")                                            \
  X(barrier_not_ready, "a barrier is used before its initialisation is visible")    \
  X(request_not_alone, "a second request before the first has completed")           \
  X(request_not_ahead, "the work is begun before the next request goes out")        \
  X(bodies_overlap, "a thread begins an item while another is in the one before")   \
  X(not_neighbours, "the blocks of a cluster get items that are not neighbours")    \
  X(no_such_item, "body is called with an index that is not an item's")             \
  X(deadlock, "nothing can go on, or it goes on for ever")

enum class rule {
  none,
#define CLC_RULE(name, text) name,
  CLC_RULES(CLC_RULE)
#undef CLC_RULE
      n_rules
};
const char *rule_text(rule broken);

struct shape {
  int n_items;
  int cluster_blocks; /* 1 or 2 */
  int n_threads;      /* of a block, 1 .. 4 */
  int n_resident;     /* clusters that fit on the device, 1 .. 4 */
  /* how often a kernel of higher priority may come: all requests are refused until it goes, nothing
   * is launched */
  int n_priority;
};
constexpr int max_clusters = 4, max_cluster_blocks = 2, max_threads = 4;
constexpr int max_cluster_threads = max_cluster_blocks * max_threads;
constexpr int n_fibers = max_clusters * max_cluster_threads;
constexpr long long most_choices =
    100000; /* of a run: many times what 200 items take; more is a thread that goes round in circles */

/* What may happen next. */
struct action {
  enum kind_of {
    step,          /* of the thread of this index */
    write,         /* a result reaches a block, */
    complete,      /* its bytes are counted there; both: slot of the cluster * 2 + rank */
    start,         /* the threads of a block of a launched cluster begin; the same */
    decide,        /* a request is granted or refused; slot */
    launch,        /* of the next cluster of the grid */
    priority_goes, /* a kernel of higher priority */
    priority_comes,
    n_kinds
  } kind;
  int index;
};

/* Chooses among the actions; threads come first, and of these the one that runs. */
struct chooser {
  virtual ~chooser() = default;
  virtual size_t choose(const std::vector<action> &actions) = 0;
};

struct result {
  bool is_granted;
  int first_ctaid;
};

/* How often a run saw what it is made to see. */
#define CLC_COUNTS(X)                                           \
  X(orders, "orders")                                           \
  X(choices, "choices")                                         \
  X(grants, "grants")                                           \
  X(refusals_with_work_left, "refusals with work left")         \
  X(launches_after_refusal, "launches after such a refusal")    \
  X(bytes_before_arrival, "results before their block arrived") \
  X(rank_1_first, "results at rank 1 first")                    \
  X(blocks_apart, "blocks started after others had met")

enum count {
#define CLC_COUNT(name, text) name,
  CLC_COUNTS(CLC_COUNT)
#undef CLC_COUNT
      n_counts
};
const char *count_text(count which);
using tally = std::array<long long, n_counts>;

/* How far a thread has seen: of the threads of its cluster by their own count, of the results of
 * its blocks by number. */
struct clock {
  std::array<uint32_t, max_cluster_threads> thread{};
  std::array<uint32_t, max_cluster_blocks> result{};
  void join(const clock &other);
};

class machine {
public:
  machine(fibers &pool, const shape &launch, chooser &order);

  /* Runs the grid, every thread calling program(thread); the rule that was broken, if any. */
  rule run(const std::function<void(int)> &program);
  tally seen{};

  /* ---- The primitives of a thread, and body -------------------------------------------------- */
  int thread_rank(int t) const { return t % max_threads; }
  int block_rank(int t) const { return t / max_threads % max_cluster_blocks; }
  int ctaid(int t) const { return clusters[cluster_of(t)].first_ctaid + block_rank(t); }
  int running() const { return running_thread; }
  /* rank: the own block's, or of_cluster; of_library: of a block that is its own cluster, apart
   * from its other meetings */
  static constexpr int of_cluster = -1, of_library = -2;
  void sync(int t, int rank, bool waits = true);
  /* barrier_at, result_at: where they stand in each block; a program that has one of each need not
   * say so. */
  void init_barrier(int t, uint32_t n_arrivals = 1, const void *barrier_at = nullptr);
  void release_barrier_init(int t);
  void arrive_expect_tx(int t, uint32_t n_bytes, const void *barrier_at = nullptr);
  void wait(int t, uint32_t parity);
  /* A wait that may say no, and does so once if it must wait at all. is_of_cluster: orders what
   * other blocks do, too. */
  bool try_wait(int t, uint32_t parity, bool is_of_cluster, const void *barrier_at);
  void acquire_result_reads(int t);
  void release_result_reads(int t);
  void request(int t, bool multicast, const void *result_at = nullptr, const void *barrier_at = nullptr);
  result read_result(int t, const void *result_at = nullptr);
  bool is_canceled(int t, result r);
  int first_ctaid(result r);
  void body(int t, int64_t item_idx, int n_pauses);

private:
  struct thread_state {
    enum state_of { absent, ready, at_sync, at_barrier, exited } state = absent;
    clock seen, released, acquired; /* the last two: of reads, for the asynchronous proxy */
    uint32_t n_read = 0, read_at = 0, n_entered = 0, n_left = 0;
    std::array<uint32_t, 2> left_at{};  /* by the parity of the item's number */
    uint32_t parity = 0, n_refused = 0; /* n_refused: the phases that a wait has said no to */
    bool is_alive = false;              /* its fiber is inside program */
  };
  struct meeting { /* __syncthreads or barrier.cluster */
    int n_arrived = 0;
    std::vector<int> waiting;
    clock seen, released;
  };
  struct block_state {
    bool has_started = false;
    int n_exited = 0;
    meeting sync, library_sync;
    uint32_t n_requested = 0, n_written = 0, n_completed = 0; /* results */
    result last{};
    const void *barrier_at = nullptr, *result_at = nullptr;
    bool is_init = false, is_init_released = false;
    int init_by = 0;
    uint32_t init_at = 0;
    int32_t n_arrivals = 1, pending_arrivals = 1, tx_bytes = 0; /* n_arrivals: of a phase */
    /* visible: results whose bytes a completed phase has counted */
    uint32_t n_phases = 0, completed_in_phase = 0, visible = 0;
  };
  struct cluster_state {
    bool is_resident = false, is_asked = false, is_decided = false, refusal_seen = false;
    int first_ctaid = 0, n_blocks_exited = 0;
    unsigned unwritten = 0, uncompleted = 0; /* blocks that the request has yet to reach */
    result answer{};
    meeting sync;
    std::vector<int64_t> base; /* of its items, by round */
    std::array<block_state, max_cluster_blocks> block;
  };
  struct stopped {};

  fibers &pool;
  const shape launch;
  chooser &order;
  const std::function<void(int)> *program = nullptr;
  std::array<thread_state, n_fibers> threads;
  std::array<cluster_state, max_clusters> clusters;
  std::vector<action> actions;
  std::vector<uint8_t> n_visits; /* item * max_threads + rank of the thread */
  std::vector<int> owner;        /* of each item: the block that does it, -1: nobody yet */
  int n_grid_clusters, next_cluster = 0, n_priority_left;
  int running_thread = 0;
  bool is_priority = false, was_refused = false;
  rule broken = rule::none;

  size_t cluster_of(int t) const { return size_t(t / max_cluster_threads); }
  cluster_state &cluster(int t) { return clusters[cluster_of(t)]; }
  block_state &block(int t) { return cluster(t).block[size_t(block_rank(t))]; }
  thread_state &thread(int t) { return threads[size_t(t)]; }
  static size_t in_cluster(int t) { return size_t(t % max_cluster_threads); }
  uint32_t tick(int t) { return ++thread(t).seen.thread[in_cluster(t)]; }

  void report(rule which) { broken = broken == rule::none ? which : broken; }
  [[noreturn]] void fail(rule which);
  void pause(int t);
  void check_barrier_ready(int t, int rank, const void *barrier_at = nullptr);
  void sleep_until_complete(int t, uint32_t parity);
  meeting &meeting_at(size_t slot, int rank);
  int live(int t);
  int next(int running);
  void list_actions(int running);
  void perform(action a);
  void launch_cluster();
  void start_block(size_t slot, int rank);
  void decide(cluster_state &c);
  static void write_result(cluster_state &c, int rank);
  void complete(size_t slot, int rank);
  void complete_phase_if_due(size_t slot, int rank);
  void meet_if_all(size_t slot, int rank);
  void check_reads(int t, int rank);
  void exit_thread(int t);
  rule why_stuck() const;
};

} // namespace clc_machine
#endif
