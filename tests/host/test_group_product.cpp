// test_group_product.cpp - the search of cuda/kernels/group_product.cuh on the host, block by block: each tile of each group that is one
// comes to one block, or to each of a cluster, those of others to none, and the arguments that the block makes are those that the host makes of the group's product
// alone (core/groups.h, cuda/host/problem_args.c). Nothing is read beside the arrays.
#include "host_device.h"

#include "cuda/kernels/group_product.cuh"

#include <algorithm>
#include <memory>
#include <set>
#include <string>
#include <tuple>

#include "fenced.h"

extern "C" {
#include "group_case.h"
}

namespace {

struct check_random rng;
int64_t in(int64_t low, int64_t high) { return check_random_in(&rng, low, high); }
bool one_of(int n) { return in(1, n) == 1; }

// Of a row; the real numbers say of which types.
template <class Real, int UNIT, int BM, int BN> struct tile_config {
  using real = Real;
  static constexpr int unit = UNIT, bm = BM, bn = BN;
};

/* ---- groups ---------------------------------------------------------------------------------- */

enum spread { FEW_EMPTY, MOST_EMPTY, ONE_LARGE, OF_ONE_ROW, HUGE_SIZES };

struct drawing {
  spread kind;
  bool is_bad;       // some groups are not within what the host knows, or have short lines
  bool is_of_arrays; // else of offsets and strides alone
  bool is_of_nothing;
  int64_t count;
};

// What the kernel reads of it ends where memory does.
class numbers {
  std::unique_ptr<fenced> memory;

public:
  const void *put(const std::vector<int64_t> &x, int bytes) {
    memory = std::make_unique<fenced>(x.size() * size_t(bytes));
    unsigned char *const first = memory->end() - x.size() * size_t(bytes);
    for (size_t i = 0; i < x.size(); i++) {
      const int32_t word = int32_t(x[i]);
      memcpy(first + i * size_t(bytes), bytes == 8 ? static_cast<const void *>(&x[i]) : &word, size_t(bytes));
    }
    return first;
  }
};

struct sizes {
  int64_t m, n, k, begin, lda, ldb, ldc;
};

class groups {
  numbers memory[10];
  int n_arrays = 0;
  bool is_whole; // everything of 16 bytes, but where ragged groups begin
  std::vector<int64_t> ends, m, n, k, lda, ldb, ldc;

  const void *put(const std::vector<int64_t> &x, int bytes) { return memory[n_arrays++].put(x, bytes); }
  int64_t rounded(int64_t x, int bytes) const {
    const int64_t whole = std::max(16 / bytes, 1);
    return is_whole ? (x + whole - 1) / whole * whole : x;
  }
  // Nobody reads there.
  char *place(int bytes) const {
    const int64_t at = (int64_t(1) << 59) + in(0, 1 << 20) * 16;
    return reinterpret_cast<char *>(at + (is_whole ? 0 : in(0, 3) * std::max(2, bytes / 2)));
  }
  std::vector<const void *> places(int bytes) const {
    std::vector<const void *> all;
    for (int64_t i = 0; i < d.group_count; i++) all.push_back(place(bytes));
    return all;
  }
  int64_t wild() const {
    const int64_t far = d.index_bytes == 8 ? int64_t(1) << 61 : INT32_MAX;
    return one_of(2) ? in(1, 3) * -1 : one_of(2) ? far : -far;
  }
  static int64_t size_of(const drawing &how, int64_t group, int64_t large, int64_t usual) {
    switch (how.kind) {
    case MOST_EMPTY:
      return one_of(int(std::max<int64_t>(2, how.count / 20))) ? in(1, usual) : 0;
    case ONE_LARGE:
      return group == large ? in(5 * usual, 8 * usual) : in(0, 3);
    case OF_ONE_ROW:
      return 1;
    case HUGE_SIZES:
      return one_of(3) ? 0 : in(1, (1 << 29) / how.count);
    default:
      return one_of(5) ? 0 : in(1, usual);
    }
  }
  std::vector<int64_t> drawn_sizes(const drawing &how, int64_t usual) {
    std::vector<int64_t> all;
    const int64_t large = in(0, how.count - 1);
    for (int64_t i = 0; i < how.count; i++) all.push_back(size_of(how, i, large, usual));
    return all;
  }
  // most: that the host knows.
  const void *make_array(std::vector<int64_t> &x, const drawing &how, int64_t usual, int64_t *most) {
    x = drawn_sizes(how, usual);
    *most = *std::max_element(x.begin(), x.end()) + in(0, 3);
    for (int64_t &size : x)
      if (how.is_bad && one_of(6)) size = one_of(3) ? *most + 1 : wild();
    return put(x, d.index_bytes);
  }
  void make_ends(const drawing &how, int64_t usual, int64_t *total) {
    int64_t end = 0;
    for (const int64_t size : drawn_sizes(how, usual)) ends.push_back(end += size);
    *total = end + in(0, 3);
    for (int64_t &x : ends)
      if (how.is_bad && one_of(6)) x = one_of(3) ? *total + 1 : one_of(2) ? in(0, *total) : wild();
    d.offsets = put(ends, d.index_bytes);
  }
  // One for all, or one for each; least(group): what a group's product needs.
  template <class Least> const void *make_lds(std::vector<int64_t> &x, const drawing &how, int bytes, int64_t *ld, Least least) {
    int64_t most = 1;
    std::vector<int64_t> drawn;
    for (int64_t i = 0; i < how.count; i++) {
      const int64_t needed = least(i) < 1 || least(i) > (1 << 30) ? 1 : least(i);
      most = std::max(most, needed);
      drawn.push_back(how.is_bad && one_of(6) ? needed - in(1, 5) : rounded(needed + in(0, 9), bytes));
    }
    const bool has_array = how.is_of_arrays && one_of(2);
    if (has_array) x = drawn;
    *ld = has_array ? 1 : how.is_bad && one_of(3) ? in(1, most) : rounded(most + in(0, 9), bytes);
    return has_array ? put(x, d.index_bytes) : nullptr;
  }
  void make_places(const drawing &how, int64_t *stride, const void *const **array, std::vector<const void *> &pointers, int bytes,
                   bool is_one) {
    *stride = rounded(in(-(1 << 20), 1 << 20), bytes);
    if (!how.is_of_arrays || is_one || one_of(2)) return;
    pointers = places(bytes);
    *array = pointers.data();
  }
  std::vector<const void *> pointers[3];
  bool a_is_transposed() const { return d.transa != WSGEMM_NO_TRANS; }
  bool b_is_transposed() const { return d.transb != WSGEMM_NO_TRANS; }

  void make_epilogue(int c_bytes) {
    const bool is_half = group_case_bytes(d.type_a) == 2;
    d.type_bias = is_half && one_of(2) ? WSGEMM_F32 : d.type_c;
    d.bias_per = one_of(2) ? WSGEMM_BIAS_PER_ROW : WSGEMM_BIAS_PER_COLUMN;
    if (!one_of(3)) d.bias = place(group_case_bytes(d.type_bias)), d.stride_bias = in(-300, 300);
    if (!one_of(3))
      d.residual = place(c_bytes), d.ld_residual = one_of(4) ? in(0, d.m) : d.m + in(1, 1 << 20),
      d.stride_residual = in(-5000, 5000);
    if (one_of(2)) d.epilogue = WSGEMM_EPILOGUE_RELU, d.out_scale = 0.5;
  }

public:
  wsgemm_grouped_desc d = WSGEMM_GROUPED_DESC_INIT;
  bool has_one_size() const { return m.empty() && n.empty() && (d.ragged == WSGEMM_RAGGED_NONE || d.ragged == WSGEMM_RAGGED_K); }

  groups(const drawing &how, wsgemm_type type, int bm, int bn) : is_whole(one_of(2)) {
    const int bytes = group_case_bytes(type);
    d.type_a = d.type_b = d.type_c = type;
    if (bytes == 2 && one_of(2)) d.type_c = WSGEMM_F32;
    const int c_bytes = group_case_bytes(d.type_c);
    d.transa = one_of(2) ? WSGEMM_TRANS : WSGEMM_NO_TRANS, d.transb = one_of(2) ? WSGEMM_CONJ_TRANS : WSGEMM_NO_TRANS;
    d.group_count = how.count, d.index_bytes = one_of(2) ? 4 : 8;
    d.ragged = wsgemm_ragged(in(how.is_of_arrays ? WSGEMM_RAGGED_NONE : WSGEMM_RAGGED_M, WSGEMM_RAGGED_K));
    const bool of_m = d.ragged == WSGEMM_RAGGED_M, of_n = d.ragged == WSGEMM_RAGGED_N, of_k = d.ragged == WSGEMM_RAGGED_K;
    const bool is_far = how.kind == HUGE_SIZES;
    d.m = in(1, 2 * bm), d.n = in(1, 2 * bn), d.k = one_of(5) ? 0 : is_far ? in(1, 1 << 29) : in(1, 99);
    if (of_m) make_ends(how, 3 * bm / 2, &d.m);
    if (of_n) make_ends(how, 3 * bn / 2, &d.n);
    if (of_k) make_ends(how, 99, &d.k);
    drawing less = how;
    if (d.ragged != WSGEMM_RAGGED_NONE) less.kind = FEW_EMPTY;
    if (how.is_of_arrays && !of_m && one_of(2)) d.m_array = make_array(m, less, 3 * bm / 2, &d.m);
    if (!m.empty()) less.kind = FEW_EMPTY;
    if (how.is_of_arrays && !of_n && one_of(2)) d.n_array = make_array(n, less, 3 * bn / 2, &d.n);
    if (how.is_of_arrays && !of_k && one_of(2)) d.k_array = make_array(k, less, 99, &d.k);
    d.lda_array = make_lds(lda, how, bytes, &d.lda, [&](int64_t i) { return a_is_transposed() ? of(i).k : of(i).m; });
    d.ldb_array = make_lds(ldb, how, bytes, &d.ldb, [&](int64_t i) { return b_is_transposed() ? of(i).n : of(i).k; });
    d.ldc_array = make_lds(ldc, how, c_bytes, &d.ldc, [&](int64_t i) { return of(i).m; });
    const void *const *of_c = nullptr;
    d.a = place(bytes), d.b = place(bytes), d.c = place(c_bytes);
    make_places(how, &d.stride_a, &d.a_array, pointers[0], bytes, of_m || of_k);
    make_places(how, &d.stride_b, &d.b_array, pointers[1], bytes, of_n || of_k);
    make_places(how, &d.stride_c, &of_c, pointers[2], c_bytes, of_m || of_n);
    d.c_array = reinterpret_cast<void *const *>(const_cast<void **>(of_c));
    const double alpha = how.is_of_nothing ? 0 : 2, beta = one_of(2) ? 0 : 3;
    if (type == WSGEMM_F64 || type == WSGEMM_C64)
      d.alpha.d = alpha, d.beta.d = beta;
    else
      d.alpha.s = float(alpha), d.beta.s = float(beta);
    if (one_of(3)) make_epilogue(c_bytes);
  }
  groups(const groups &) = delete;
  groups &operator=(const groups &) = delete;

  sizes of(int64_t g) const {
    const auto at = [&](const std::vector<int64_t> &x, int64_t otherwise) { return x.empty() ? otherwise : x[size_t(g)]; };
    sizes s = {at(m, d.m), at(n, d.n), at(k, d.k), 0, at(lda, d.lda), at(ldb, d.ldb), at(ldc, d.ldc)};
    if (ends.empty()) return s;
    s.begin = g > 0 ? ends[size_t(g) - 1] : 0;
    (d.ragged == WSGEMM_RAGGED_M ? s.m : d.ragged == WSGEMM_RAGGED_N ? s.n : s.k) = ends[size_t(g)] - s.begin;
    return s;
  }
  // Whether it has sizes that the host knows of.
  bool is_within(int64_t g) const {
    const sizes s = of(g);
    const int64_t total = d.ragged == WSGEMM_RAGGED_M ? d.m : d.ragged == WSGEMM_RAGGED_N ? d.n : d.k;
    if (!ends.empty() && (s.begin < 0 || s.begin > total || ends[size_t(g)] < s.begin || ends[size_t(g)] > total)) return false;
    return s.m >= 0 && s.n >= 0 && s.k >= 0 && s.m <= d.m && s.n <= d.n && s.k <= d.k;
  }
  bool is_product(int64_t g, bool reads_operands) const {
    const sizes s = of(g);
    const bool has_lines = s.lda >= (a_is_transposed() ? s.k : s.m) && s.ldb >= (b_is_transposed() ? s.n : s.k);
    const bool has_residual = !d.residual || d.ld_residual >= s.m;
    return is_within(g) && s.ldc >= s.m && has_residual && (has_lines || s.k == 0 || !reads_operands);
  }
  ws_grouped_ends given_ends() const {
    ws_grouped_ends given = {};
    for (size_t i = 0; i < ends.size(); i++) given.end[i] = int32_t(ends[i]);
    return given;
  }
  bool can_be_given() const {
    const auto fits = [](int64_t end) { return end == int32_t(end); };
    return !ends.empty() && ends.size() <= WS_GROUPED_MOST_GIVEN && std::all_of(ends.begin(), ends.end(), fits);
  }
};

/* ---- arguments ------------------------------------------------------------------------------- */

template <class T> bool are_same(const T &x, const T &y) { return memcmp(&x, &y, sizeof x) == 0; }

bool is_operand(const ws_operand &x, const ws_operand &y) {
  return x.data == y.data && x.step_mn == y.step_mn && x.step_k == y.step_k && x.stride == y.stride && x.mode == y.mode &&
         x.whole_elements == y.whole_elements && x.conj == y.conj && x.pairs == y.pairs;
}
bool is_epilogue(const ws_epilogue_args &x, const ws_epilogue_args &y) {
  return x.is_any == y.is_any && x.activation == y.activation && x.bias_per_row == y.bias_per_row && x.type_bias == y.type_bias &&
         x.bias == y.bias && x.residual == y.residual && x.stride_bias == y.stride_bias && x.ld_residual == y.ld_residual &&
         x.stride_residual == y.stride_residual && x.out_scale == y.out_scale;
}

// What is wrong; NULL: nothing. common: what all groups share.
const char *fault_of(const ws_gemm_args &x, const ws_gemm_args &wanted, const ws_gemm_args &common) {
  if (x.m != wanted.m || x.n != wanted.n || x.k != wanted.k) return "sizes";
  if (!is_operand(x.a, wanted.a)) return "A";
  if (!is_operand(x.b, wanted.b)) return "B";
  if (x.c != wanted.c || x.ldc != wanted.ldc || x.stride_c != wanted.stride_c || x.c_vectors != wanted.c_vectors) return "C";
  if (!are_same(x.alpha, wanted.alpha) || !are_same(x.beta, wanted.beta) || x.beta_zero != wanted.beta_zero) return "scalars";
  if (!is_epilogue(x.epilogue, wanted.epilogue)) return "epilogue";
  if (x.type_c != wanted.type_c || x.structured != 0 || x.triangular != 0 || x.region.region != 0) return "kind";
  const bool is_rest_same = are_same(x.tiles, common.tiles) && are_same(x.sharers, common.sharers) &&
                            are_same(x.grid, common.grid) && are_same(x.split, common.split) &&
                            x.sched.queue == common.sched.queue;
  return is_rest_same ? nullptr : "what is common";
}

/* ---- blocks ---------------------------------------------------------------------------------- */

// Scalars in device memory, at its end.
template <class Config> class scalar_at {
  using real = typename Config::real;
  fenced memory{sizeof(real) * Config::unit};

public:
  real *data = reinterpret_cast<real *>(memory.end()) - Config::unit;
  scalar_at() {
    const bool is_zero = one_of(3);
    for (int u = 0; u < Config::unit; u++) data[u] = is_zero ? real(0) : real(in(-3, 3));
  }
  bool is_zero() const { return data[0] == 0 && data[Config::unit - 1] == 0; }
  template <class Scalar> void put(Scalar &x) const {
    for (int u = 0; u < 2; u++)
      if constexpr (sizeof(real) == 8)
        x.d[u] = u < Config::unit ? data[u] : 0;
      else
        x.s[u] = u < Config::unit ? data[u] : 0;
  }
};

template <class Config> class run {
  const groups &all;
  ws_group_args args;
  ws_grouped_ends given = {};
  const scalar_at<Config> alpha, beta;
  int64_t cluster;            // blocks that share a tile
  std::vector<int64_t> first; // each group's first tile, and the end of all
  std::set<std::tuple<int, int64_t, int64_t, uint32_t>> parts;

  bool reads_operands() const { return args.reads_operands != 0 && !(args.alpha && alpha.is_zero()); }
  ws_gemm_args wanted_of(int64_t group) const {
    ws_gemm_args x = group_case_product(&all.d, group);
    if (args.alpha) alpha.put(x.alpha), beta.put(x.beta), x.beta_zero = beta.is_zero();
    if (!reads_operands()) x.k = 0;
    if (x.k != 0) return x;
    if constexpr (sizeof(typename Config::real) == 8)
      x.alpha.d[0] = x.beta_zero ? 1 : -0.0, x.alpha.d[1] = 0;
    else
      x.alpha.s[0] = x.beta_zero ? 1 : -0.0f, x.alpha.s[1] = 0;
    return x;
  }
  const char *fault_of_tile(const ws::group_product &p) {
    const int64_t rows = ws_ceil_div(p.gemm.m, Config::bm), cols = ws_ceil_div(p.gemm.n, Config::bn);
    const bool is_there = p.tile.row >= 0 && p.tile.row < rows && p.tile.col >= 0 && p.tile.col < cols;
    if (!is_there || p.tile.batch != 0 || p.tile.n_col != 1) return "a tile that is not there";
    if (!parts.insert({p.group, p.tile.row, p.tile.col, p.rank}).second) return "a tile for the second time";
    const bool is_same = p.item.batch == 0 && p.item.m == p.tile.row * Config::bm && p.item.n == p.tile.col * Config::bn &&
                         p.item.k_begin == 0 && p.item.k_end == p.gemm.k && p.item.is_wanted;
    return is_same ? nullptr : "another item than tile";
  }

public:
  explicit run(const groups &drawn) : all(drawn), args(group_case_args(&drawn.d)) {
    const wsgemm_grouped_desc &d = all.d;
    const bool has_one_size = all.has_one_size();
    static constexpr int clusters[] = {1, 2, 3, 4, 8, 16};
    cluster = clusters[in(0, 5)];
    args.common.gemm.sharers = ws_divisor_of(cluster);
    if (has_one_size) args.product_tiles = ws_divisor_of(ws_ceil_div(d.m, Config::bm) * ws_ceil_div(d.n, Config::bn));
    if (all.can_be_given() && one_of(2)) args.ends = nullptr, given = all.given_ends();
    if (one_of(3)) args.alpha = alpha.data, args.beta = beta.data;
    first.push_back(0);
    for (int64_t g = 0; g < d.group_count; g++) {
      const sizes s = all.of(g);
      const bool has_blocks = has_one_size || all.is_within(g);
      first.push_back(first.back() + (has_blocks ? ws_ceil_div(s.m, Config::bm) * ws_ceil_div(s.n, Config::bn) : 0));
    }
  }
  int64_t of_cluster() const { return cluster; }
  int64_t n_blocks() const { return first.back() * cluster; }
  // -1: none.
  int64_t group_of(int64_t block) const {
    if (block >= n_blocks()) return -1;
    const int64_t group = std::upper_bound(first.begin(), first.end(), block / cluster) - first.begin() - 1;
    return all.is_product(group, reads_operands()) ? group : -1;
  }
  const char *fault_of_block(int64_t block, int n_threads, bool is_backwards) {
    static ws::group_product p;
    memset(static_cast<void *>(&p), 0xa5, sizeof p);
    blockIdx.x = unsigned(block), blockDim.x = unsigned(n_threads);
    int n_found = 0;
    const bool have_met =
        host_run_block(n_threads, 16, is_backwards, [&] { n_found += ws::group_finder<Config>(args, given).find(p) ? 1 : 0; });
    const int64_t group = group_of(block);
    if (!have_met) return "barriers";
    if (n_found != 0 && n_found != n_threads) return "some threads alone have a product";
    if (group < 0) return n_found == 0 ? nullptr : "a product where there is none";
    if (n_found == 0 || p.group != group) return n_found == 0 ? "no product" : "another group";
    if (p.rank != block % cluster) return "another rank";
    const char *const fault = fault_of(p.gemm, wanted_of(group), args.common.gemm);
    return fault ? fault : fault_of_tile(p);
  }
  // Of tiles, one for each block of a cluster.
  int64_t n_parts() const { return int64_t(parts.size()); }
  int64_t n_parts_wanted() const {
    int64_t n = 0;
    for (size_t g = 0; g + 1 < first.size(); g++)
      if (all.is_product(int64_t(g), reads_operands())) n += first[g + 1] - first[g];
    return n * cluster;
  }
};

// Blocks of which all are run: those of few. Of many, some.
constexpr int64_t most_blocks = 200;

template <class Config> void one(const drawing &how, wsgemm_type type, int turn) {
  const groups all(how, type, Config::bm, Config::bn);
  const wsgemm_grouped_desc &d = all.d;
  run<Config> r(all);
  const int n_threads = 32 * int(one_of(2) ? 4 : in(4, 16));
  const int64_t n_blocks = r.n_blocks(), step = n_blocks / most_blocks + 1;
  CHECK(n_blocks < INT32_MAX, "%lld blocks", (long long)n_blocks);
  const char *fault = nullptr;
  int64_t block = 0;
  for (int64_t at = 0; at < n_blocks + r.of_cluster() + 2 && !fault; at += at < n_blocks ? step : 1) {
    block = step == 1 || at >= n_blocks ? at : std::min(n_blocks - 1, at + in(0, step - 1));
    fault = r.fault_of_block(block, n_threads, turn % 2 != 0);
  }
  CHECK(
      !fault && (step > 1 || r.n_parts() == r.n_parts_wanted()),
      "turn %d, type %d, ragged %d, %lld groups, %lld x %lld x %lld, ops %d %d, kind %d, %d bytes, arrays %d %d %d, %d threads, "
      "%lld to a tile: block %lld of %lld has %s; %lld parts of tiles, not %lld",
      turn, type, d.ragged, (long long)d.group_count, (long long)d.m, (long long)d.n, (long long)d.k, d.transa, d.transb,
      how.kind, d.index_bytes, d.m_array != nullptr, d.n_array != nullptr, d.k_array != nullptr, n_threads,
      (long long)r.of_cluster(), (long long)block, (long long)n_blocks, fault ? fault : "no fault", (long long)r.n_parts(),
      (long long)r.n_parts_wanted());
}

void of_any_type(const drawing &how, int turn) {
  static const wsgemm_type reals[] = {WSGEMM_F32, WSGEMM_F16, WSGEMM_BF16};
  switch (in(0, 4)) {
  case 0:
    return one<tile_config<float, 1, 16, 64>>(how, reals[in(0, 2)], turn);
  case 1:
    return one<tile_config<float, 1, 64, 32>>(how, reals[in(0, 2)], turn);
  case 2:
    return one<tile_config<float, 2, 32, 32>>(how, WSGEMM_C32, turn);
  case 3:
    return one<tile_config<double, 1, 32, 16>>(how, WSGEMM_F64, turn);
  default:
    return one<tile_config<double, 2, 64, 64>>(how, WSGEMM_C64, turn);
  }
}

/* ---- cases ----------------------------------------------------------------------------------- */

int64_t drawn_count() { return one_of(8) ? in(200, 700) : one_of(4) ? in(33, 200) : in(1, 32); }

void draw_many(int n_turns, drawing how) {
  for (int turn = 0; turn < n_turns / check_scale() + 6; turn++) {
    how.kind = how.kind == HUGE_SIZES ? HUGE_SIZES : spread(turn % HUGE_SIZES);
    how.is_of_arrays = turn / HUGE_SIZES % 2 != 0;
    how.count = drawn_count();
    of_any_type(how, turn);
  }
}

void good_groups() {
  rng = check_random_from(301);
  draw_many(60, {FEW_EMPTY, false, false, false, 0});
}
void bad_groups() {
  rng = check_random_from(302);
  draw_many(60, {FEW_EMPTY, true, false, false, 0});
}
void large_groups() {
  rng = check_random_from(303);
  draw_many(16, {HUGE_SIZES, false, false, false, 0});
}
void products_of_nothing() {
  rng = check_random_from(304);
  draw_many(24, {FEW_EMPTY, false, false, true, 0});
  draw_many(24, {FEW_EMPTY, true, false, true, 0});
}

const struct check_case cases[] = {{"good_groups", good_groups},
                                   {"bad_groups", bad_groups},
                                   {"large_groups", large_groups},
                                   {"products_of_nothing", products_of_nothing}};

} // namespace

CHECK_MAIN("group_product", cases)
