// test_vector_lines.cpp - the rows of cuda/rows/vec.def on the host, as the device would run them. Every element of C is what the order
// of cuda/kernels/gemm_vector.cuh makes of its products, to the bit, wherever the operands begin and however long their lines are: so
// each product counts once, and in the same sum. Operands begin or end where nothing may be read, and between their lines are NaNs.
//
// What the compiler makes of the code, and how fast it is, only hardware can tell.
#include "host_device.h"

#include "cuda/kernels/gemm_vector.cuh"

#include "fenced.h"

namespace {

struct check_random rng;

/* ---- operands -------------------------------------------------------------------------------- */

void draw(float &x) { x = float(check_random_in(&rng, -8388607, 8388607)) / 1048576; }
void draw(double &x) { x = double(check_random_in(&rng, -(1LL << 52), 1LL << 52)) / 1099511627776.0; }
void draw(float2 &x) { draw(x.x), draw(x.y); }
void draw(double2 &x) { draw(x.x), draw(x.y); }
void draw(uint16_t &x) { x = uint16_t(0x3c00 + check_random_in(&rng, 0, 1023) + 0x8000 * check_random_in(&rng, 0, 1)); }

// n_lines of `length` elements, `ld` apart. They end where memory does, or begin `lead` elements' parts after its begin.
template <class Type> struct operand {
  using element = typename Type::element;
  fenced memory;
  unsigned char *data;
  operand(int64_t length, int64_t n_lines, int64_t ld, bool at_end, int lead)
      : memory(size_t((n_lines - 1) * ld + length + 16) * sizeof(element)) {
    const size_t n_bytes = size_t((n_lines - 1) * ld + length) * sizeof(element);
    data = at_end ? memory.end() - n_bytes : memory.begin() + size_t(lead) * sizeof(element) / Type::unit;
    for (int64_t line = 0; line < n_lines; line++)
      for (int64_t i = 0; i < length; i++) {
        element x;
        draw(x);
        memcpy(data + (line * ld + i) * int64_t(sizeof x), &x, sizeof x);
      }
  }
  typename Type::sum at(int64_t i) const {
    element x;
    memcpy(&x, data + i * int64_t(sizeof x), sizeof x);
    return ws::widened<Type>(x);
  }
};

/* ---- the order of summation, as the head of gemm_vector.cuh has it ------------------------------ */

template <class Config> using sums = std::vector<ws::products<Config>>;

// Adds the sums whose places differ in that bit alone.
template <class Config> void fold(sums<Config> &of, int bit) {
  const sums<Config> before = of;
  for (size_t i = 0; i < of.size(); i++) of[i].add(before[i ^ (size_t(1) << bit)]);
}
template <class Config> sums<Config> zeros(int n) {
  sums<Config> of(static_cast<size_t>(n));
  for (ws::products<Config> &sum : of) sum.clear();
  return of;
}
int log2_of(int n) { return n == 1 ? 0 : 1 + log2_of(n / 2); }

// add(sum, k) adds the product of that k.
template <class Config, class Add> ws::products<Config> sum_along_k(int64_t n_k, Add add) {
  constexpr int vec = Config::vec, step = 32 * vec;
  const int64_t n_whole = n_k / vec * vec;
  const int n_low = log2_of(vec);
  sums<Config> of = zeros<Config>(step), rest = zeros<Config>(vec);
  for (int64_t k = 0; k < n_whole; k++) add(of[size_t(k % step)], k);
  for (int64_t k = n_whole; k < n_k; k++) add(rest[size_t(k - n_whole)], k);
  for (int bit = 0; bit < n_low; bit++) fold<Config>(of, bit), fold<Config>(rest, bit);
  for (int bit = 5; bit < 5 + n_low; bit++) fold<Config>(of, bit);
  for (int bit = n_low; bit < 5; bit++) fold<Config>(of, bit);
  of[0].add(rest[0]);
  return of[0];
}

template <class Config, class Add> ws::products<Config> sum_along_x(int64_t n_k, Add add) {
  constexpr int n_x = Config::bm * Config::bn, lines = 32 * Config::vec / n_x, n_warps = Config::n_threads / 32;
  ws::products<Config> total;
  for (int warp = 0; warp < n_warps; warp++) {
    sums<Config> of = zeros<Config>(lines);
    for (int64_t k = 0; k < n_k; k++)
      if (k / lines % n_warps == warp) add(of[size_t(k % lines)], k);
    for (int bit = 0; bit < log2_of(lines); bit++) fold<Config>(of, bit);
    if (warp == 0)
      total = of[0];
    else
      total.add(of[0]);
  }
  return total;
}

/* ---- items ----------------------------------------------------------------------------------- */

struct drawn {
  int64_t size, k, k_first, n_k, gap, step_v;
  bool at_end, is_backwards;
  int lead_m, lead_v;
};

template <class Config> void one(const char *name, const drawn &d) {
  using type = typename Config::type;
  using element = typename Config::element;
  using number = typename Config::sum;
  constexpr bool along_m = Config::bn == 1, is_along_k = Config::bm * Config::bn == 8;
  constexpr int n_x = Config::bm * Config::bn;
  const int64_t ld = (is_along_k ? d.k : d.size) + d.gap;
  const operand<type> matrix(is_along_k ? d.k : d.size, is_along_k ? d.size : d.k, ld, d.at_end, d.lead_m);
  const operand<type> vector(1, d.k, d.step_v, d.at_end, d.lead_v);
  const int64_t step_x = is_along_k ? ld : 1, step_k = is_along_k ? 1 : ld;
  ws_gemm_args args = {};
  args.m = along_m ? d.size : 1, args.n = along_m ? 1 : d.size, args.k = d.k;
  const auto is_whole = [](const operand<type> &x) { return reinterpret_cast<uintptr_t>(x.data) % sizeof(element) == 0; };
  ws_operand of_matrix = {}, of_vector = {};
  of_matrix.data = matrix.data, of_matrix.step_mn = step_x, of_matrix.step_k = step_k,
  of_matrix.whole_elements = is_whole(matrix);
  of_vector.data = vector.data, of_vector.step_mn = 1, of_vector.step_k = d.step_v, of_vector.whole_elements = is_whole(vector);
  of_matrix.conj = int(d.gap % 2), of_vector.conj = int(d.size % 2);
  args.a = along_m ? of_matrix : of_vector, args.b = along_m ? of_vector : of_matrix;
  args.alpha.s[0] = 1, args.beta_zero = 1, args.type_c = WS_HALF_C_F32;
  if (sizeof(typename Config::real) == 8) args.alpha.d[0] = 1;
  std::vector<number> c(size_t(d.size), number{});
  args.c = c.data(), args.ldc = along_m ? d.size : 1;

  const int tile = int(check_random_in(&rng, 0, (d.size - 1) / n_x)), row = along_m ? tile : 0, col = along_m ? 0 : tile;
  const bool have_met = host_run_block(Config::n_threads, Config::shared_bytes, d.is_backwards, [&] {
    ws::vector_product<Config>::run(
        args, host_shared, 0, row, col, d.k_first, [&] { return d.n_k; },
        [&](int64_t m_first, int64_t n_first) {
          return ws::output_scaled<Config>{
              ws::output_at<Config>(args, 0, m_first, n_first), ws::scaling<Config>(args), args, 0, m_first, n_first};
        });
  });

  int n_wrong = 0;
  for (int64_t x = 0; x < d.size; x++) {
    number expected{};
    if (x / n_x == tile) {
      const auto add = [&](ws::products<Config> &sum, int64_t at) {
        const number m = matrix.at(x * step_x + (d.k_first + at) * step_k), v = vector.at((d.k_first + at) * d.step_v);
        along_m ? sum.add(m, v) : sum.add(v, m);
      };
      const ws::products<Config> sum = is_along_k ? sum_along_k<Config>(d.n_k, add) : sum_along_x<Config>(d.n_k, add);
      expected = ws::scaling<Config>(args)(sum, {args.a.conj != 0, args.b.conj != 0}, number{});
    }
    n_wrong += memcmp(&expected, &c[size_t(x)], sizeof expected) != 0;
  }
  CHECK(have_met && n_wrong == 0,
        "%s, %lld elements, k %lld from %lld of %lld, gap %lld, step %lld, leads %d and %d, %s: %d are wrong", name,
        (long long)d.size, (long long)d.n_k, (long long)d.k_first, (long long)d.k, (long long)d.gap, (long long)d.step_v,
        d.lead_m, d.lead_v, d.at_end ? "at the end" : "at the begin", n_wrong);
}

template <class Config> void row(const char *name) {
  constexpr int n_x = Config::bm * Config::bn, vec = Config::vec;
  constexpr bool is_along_k = n_x == 8;
  const int64_t batch = is_along_k ? ws::vector_product<Config>::batch
                                   : ws::vector_product<Config>::group_step * ws::vector_product<Config>::groups_at_once;
  for (int turn = 0; turn < 48 / check_scale() + 12; turn++) {
    drawn d = {};
    const bool is_wide = turn % 4 == 0; // all of it by vectors
    d.size = is_wide ? n_x * check_random_in(&rng, 1, 2) : check_random_in(&rng, 1, 2 * n_x + 3);
    // few, about a batch, and more than shared memory has room for
    d.n_k = turn % 3 == 0   ? check_random_in(&rng, 1, 40)
            : turn % 3 == 1 ? batch + check_random_in(&rng, -40, 40)
                            : check_random_in(&rng, 1, 2 * batch + 70);
    if (is_along_k && turn % 8 == 1) d.n_k = ws::vector_product<Config>::staged + check_random_in(&rng, -9, 300);
    d.k_first = turn % 5 == 0 ? 64 * check_random_in(&rng, 1, 3) : 0;
    d.k = d.k_first + d.n_k + (turn % 7 == 0 ? check_random_in(&rng, 0, 70) : 0);
    d.gap = check_random_in(&rng, 0, 9);
    d.step_v = turn % 8 == 1 || turn % 6 == 5 ? check_random_in(&rng, 2, 5) : 1;
    d.at_end = turn % 2, d.is_backwards = turn / 2 % 2;
    d.lead_m = int(check_random_in(&rng, 0, 8)), d.lead_v = int(check_random_in(&rng, 0, 8));
    if (is_wide) {
      const int64_t length = is_along_k ? d.k : d.size;
      d.gap = (length + vec - 1) / vec * vec - length, d.lead_m = d.lead_v = 0;
    }
    one<Config>(name, d);
  }
}

#define WS_CUDA_ROW(t, mainloop, bm, bn, bk, tm, tn, coarse, stages, ...)                                          \
  row<ws::row_config<ws::type_##t, bm, bn, bk, tm, tn, coarse, stages, WS_OWNER_vec, WS_PAD_vec, WS_KEEPS_K_vec>>( \
      #t "gemm_vec_" #bm "x" #bn);
void rows() {
  rng = check_random_from(83);
#include "cuda/rows/vec.def"
}

const struct check_case cases[] = {{"rows", rows}};

} // namespace

CHECK_MAIN("vector_lines", cases)
