/* test_fma16.cpp - the rows fma16 of kernels.def on the host, as the device would run them: copies
 * to shared memory, mainloop, C. Every element of C is the chain of multiply-adds of floats in the
 * order of k, to the bit, and has one owner; reads of fragments meet no bank twice.
 *
 * What the compiler makes of the code, and how fast it is, only hardware can tell. */
#include "host_device.h"

#include <algorithm>
#include <array>
#include <type_traits>

#include "cuda/kernels/gemm.cuh"
#include "cuda/mainloop/fma16.cuh"

extern "C" {
#include "support/check.h"
}

namespace {

template <class Config> using product = ws::tiled_product<Config, ws::mainloop_fma16>;

/* ---- The rows -------------------------------------------------------------------------------- */

struct row_test {
  const char *name;
  void (*owners)(const char *name);
  void (*banks)(const char *name);
  void (*products)(const char *name);
  void (*parts)(const char *name);
};

template <class Config> void owners(const char *name);
template <class Config> void banks(const char *name);
template <class Config> void products(const char *name);
template <class Config> void parts(const char *name);

#define ROW_simt(...)
#define ROW_mma(...)
#define ROW_mma16(...)
#define ROW_vec(...)
#define CONFIG_fma16(t, bm, bn, bk, tm, tn, coarse, stages, ...) \
  ws::row_config<ws::type_##t, bm, bn, bk, tm, tn, coarse, stages, WS_OWNER_fma16, WS_PAD_fma16, WS_KEEPS_K_fma16>
#define ROW_fma16(t, bm, bn, bk, ...)                                                                   \
  {#t "gemm_fma16_" #bm "x" #bn "x" #bk, owners<CONFIG_fma16(t, bm, bn, bk, __VA_ARGS__)>,              \
   banks<CONFIG_fma16(t, bm, bn, bk, __VA_ARGS__)>, products<CONFIG_fma16(t, bm, bn, bk, __VA_ARGS__)>, \
   parts<CONFIG_fma16(t, bm, bn, bk, __VA_ARGS__)>},
#define WS_CUDA_ROW(t, mainloop, ...) ROW_##mainloop(t, __VA_ARGS__)
#define WS_CUDA_WGMMA_ROW(...)
#define WS_CUDA_SLICED_ROW(...)
#define WS_CUDA_DIRECT_ROW(...)
const row_test rows[] = {
#include "cuda/rows/kernels.def"
};
#undef WS_CUDA_ROW
#undef WS_CUDA_WGMMA_ROW
#undef WS_CUDA_SLICED_ROW
#undef WS_CUDA_DIRECT_ROW

void for_each_row(void (*row_test::*test)(const char *)) {
  for (const row_test &row : rows) (row.*test)(row.name);
}

template <class Test> void for_each_layout(Test test) {
  test(std::false_type{}, std::false_type{}), test(std::false_type{}, std::true_type{});
  test(std::true_type{}, std::false_type{}), test(std::true_type{}, std::true_type{});
}

/* ---- Who owns what --------------------------------------------------------------------------- */

template <class Config, bool A_K, bool B_K> void owners_in(const char *name) {
  using mainloop = ws::mainloop_fma16<Config, A_K, B_K>;
  using store = ws::store_tile16<Config>;
  std::vector<float> sums(size_t(store::pitch * Config::item_n), -1.0f);
  int n_owned = 0, n_twice = 0;
  for (int t = 0; t < Config::n_threads; t++) {
    threadIdx.x = unsigned(t);
    mainloop own;
    for (float(&column)[Config::tn][Config::tm] : own.sum)
      for (float(&part)[Config::tm] : column) std::fill(part, part + Config::tm, float(t));
    std::vector<float> before = sums;
    own.put_sums(sums.data());
    for (size_t at = 0; at < sums.size(); at++)
      if (sums[at] == float(t)) n_owned++, n_twice += before[at] != -1.0f;
  }
  int n_missing = 0;
  for (int n = 0; n < Config::item_n; n++)
    for (int m = 0; m < Config::bm; m++) n_missing += *store::sum_at(sums.data(), m, n) == -1.0f;
  CHECK(n_owned == Config::bm * Config::item_n && n_twice == 0 && n_missing == 0,
        "%s, A by %c, B by %c: %d elements are owned, %d twice, %d not", name, A_K ? 'k' : 'm', B_K ? 'k' : 'n', n_owned, n_twice,
        n_missing);
}

template <class Config> void owners(const char *name) {
  for_each_layout([&](auto a_k, auto b_k) { owners_in<Config, a_k.value, b_k.value>(name); });
}

/* ---- Banks ----------------------------------------------------------------------------------- */

/* A warp reads so many bytes a lane from these places, 128 bytes' worth of lanes at once: how often
 * the fullest bank is asked. */
int most_of_a_bank(const std::array<int, 32> &at, int bytes) {
  const int at_once = 32 / (bytes / 4);
  int most = 0;
  for (int first = 0; first < 32; first += at_once) {
    std::vector<int> words;
    for (int lane = first; lane < first + at_once; lane++)
      for (int word = 0; word < bytes / 4; word++) words.push_back(at[size_t(lane)] / 4 + word);
    std::sort(words.begin(), words.end());
    words.erase(std::unique(words.begin(), words.end()), words.end());
    int asked[32] = {0};
    for (int word : words) most = std::max(most, ++asked[word % 32]);
  }
  return most;
}

template <class Config> void banks(const char *name) {
  for_each_layout([&](auto a_k, auto b_k) {
    using mainloop = ws::mainloop_fma16<Config, a_k.value, b_k.value>;
    std::array<int, 32> a, b;
    for (int lane = 0; lane < 32; lane++) {
      threadIdx.x = unsigned(lane);
      const mainloop own;
      a[size_t(lane)] = own.a_first * 2, b[size_t(lane)] = own.b_first * 2;
    }
    /* Of k the compiler may make one read of 16 bytes from those of some steps. */
    for (int bytes = int(sizeof(typename mainloop::fragment_a::vector));
         bytes <= (a_k ? 16 : 0) || bytes == sizeof(typename mainloop::fragment_a::vector); bytes *= 2)
      CHECK(most_of_a_bank(a, bytes) == 1, "%s: A by %c: %d reads of a bank for %d bytes", name, a_k ? 'k' : 'm',
            most_of_a_bank(a, bytes), bytes);
    for (int bytes = int(sizeof(typename mainloop::fragment_b::vector));
         bytes <= (b_k ? 16 : 0) || bytes == sizeof(typename mainloop::fragment_b::vector); bytes *= 2)
      CHECK(most_of_a_bank(b, bytes) == 1, "%s: B by %c: %d reads of a bank for %d bytes", name, b_k ? 'k' : 'n',
            most_of_a_bank(b, bytes), bytes);
  });
}

/* ---- Products -------------------------------------------------------------------------------- */

struct check_random rng;

int64_t drawn(int64_t low, int64_t high) { return check_random_in(&rng, low, high); }

/* Bits of an element. `fill` 0: of all magnitudes that keep products and sums finite, with many
 * subnormal numbers; 1: with few Inf and NaN; 2: so small that (of bfloat16) products underflow,
 * mostly to zeros of either sign. */
template <class Type> uint16_t drawn_element(int fill) {
  constexpr bool is_f16 = std::is_same_v<Type, ws::type_h>;
  constexpr int fraction_bits = is_f16 ? 10 : 7, most_exponent = is_f16 ? 30 : 180;
  const uint16_t sign = uint16_t(drawn(0, 1) << 15), fraction = uint16_t(drawn(0, (1 << fraction_bits) - 1));
  const int64_t turn = drawn(0, 999);
  if (fill == 1 && turn < 4) return uint16_t(sign | (is_f16 ? 0x7c00 : 0x7f80) | (turn == 0 ? fraction | 1 : 0));
  if (turn < 100) return uint16_t(sign | fraction); /* subnormal */
  if (turn < 150) return sign;
  const int exponent = fill == 2    ? int(drawn(1, is_f16 ? 3 : 55))
                       : turn < 400 ? int(drawn(most_exponent - 3, most_exponent))
                                    : int(drawn(1, most_exponent));
  return uint16_t(sign | exponent << fraction_bits | fraction);
}

template <class Type> float value_of(uint16_t bits) {
  return std::is_same_v<Type, ws::type_h> ? ws::float_of_f16(bits) : ws::float_of_bf16(bits);
}

/* An operand between elements that are NaN: whoever reads them is found out. */
struct operand_memory {
  std::vector<uint16_t> memory;
  ws_operand op;
  uint16_t at(int64_t x, int64_t p) const { return static_cast<const uint16_t *>(op.data)[x * op.step_mn + p * op.step_k]; }
};

enum way { VECTORS, PAIRS, SINGLES, N_WAYS };

template <class Type> operand_memory drawn_operand(int64_t n_x, int64_t n_k, bool along_k, way how, int fill) {
  constexpr int margin = 64;
  operand_memory o;
  const int64_t length = along_k ? n_k : n_x, n_lines = along_k ? n_x : n_k, unit = how == VECTORS ? 8 : how == PAIRS ? 2 : 1;
  const int64_t ld = (length + unit - 1) / unit * unit + unit * drawn(0, 2) + (how == SINGLES ? 1 - length % 2 : 0);
  o.memory.assign(size_t(ld * n_lines + 2 * margin), 0x7fff);
  uint16_t *first = o.memory.data() + 8;
  while (reinterpret_cast<uintptr_t>(first) % 16 != 0) first++;
  first += how == PAIRS ? 2 : how == SINGLES ? 1 : 0;
  for (int64_t line = 0; line < n_lines; line++)
    for (int64_t i = 0; i < length; i++) first[line * ld + i] = drawn_element<Type>(fill);
  o.op.data = first;
  o.op.step_mn = along_k ? ld : 1, o.op.step_k = along_k ? 1 : ld;
  o.op.mode =
      along_k ? (how == VECTORS ? WS_COPY_VECTORS_K : WS_COPY_ALONG_K) : (how == VECTORS ? WS_COPY_VECTORS_MN : WS_COPY_ALONG_MN);
  o.op.pairs = how != SINGLES;
  return o;
}

bool same_bits(float x, float y) { return memcmp(&x, &y, sizeof x) == 0; }
bool same(float x, float y) { return x == y || (isnan(x) && isnan(y)); }

struct problem {
  operand_memory a, b;
  ws_gemm_args args;
  int64_t m, n, k;
};

template <class Config> problem drawn_problem(bool a_k, bool b_k, int fill) {
  using type = typename Config::type;
  problem p = {};
  p.m = drawn(1, 2 * Config::bm), p.n = drawn(1, 2 * Config::item_n), p.k = drawn(1, 4 * Config::bk);
  if (drawn(0, 2) == 0) p.m = Config::bm * drawn(1, 2), p.n = Config::item_n;
  if (drawn(0, 2) == 0) p.k = Config::bk * drawn(1, 4);
  p.a = drawn_operand<type>(p.m, p.k, a_k, way(drawn(0, N_WAYS - 1)), fill);
  p.b = drawn_operand<type>(p.n, p.k, b_k, way(drawn(0, N_WAYS - 1)), fill);
  p.args.a = p.a.op, p.args.b = p.b.op;
  p.args.m = p.m, p.args.n = p.n, p.args.k = p.k;
  return p;
}

/* Rows k_first .. k_first + n_k - 1. */
template <class Type> float chain(const problem &p, int64_t i, int64_t j, int64_t k_first, int64_t n_k) {
  float sum = 0;
  for (int64_t q = k_first; q < k_first + n_k; q++) sum = fmaf(value_of<Type>(p.a.at(i, q)), value_of<Type>(p.b.at(j, q)), sum);
  return sum;
}

/* All tiles of the product, each by a block of its own; n_parts > 1: one part of k after the other
 * by the same block. */
template <class Config, class MakeOutput>
void run(const char *name, const problem &p, bool is_backwards, int64_t k_first, int64_t n_k, MakeOutput make_output) {
  for (int row = 0; row < ws_ceil_div(p.m, Config::bm); row++)
    for (int col = 0; col < ws_ceil_div(p.n, Config::item_n); col++) {
      const bool met = host_run_block(Config::n_threads, Config::shared_bytes, is_backwards, [&] {
        product<Config>::run(
            p.args, host_shared, 0, row, col, k_first, [n_k] { return n_k; },
            [&](int64_t m_first, int64_t n_first) { return make_output(m_first, n_first); });
      });
      CHECK(met, "%s: barriers are missed", name);
    }
}

/* C as it is in memory. */
struct matrix_c {
  std::vector<unsigned char> memory;
  ws::half_c first;
  int64_t ld;
};

matrix_c drawn_c(const problem &p, int type) {
  matrix_c c;
  c.ld = p.m + drawn(0, 5);
  c.memory.resize(size_t(c.ld * p.n * 4 + 32));
  const uintptr_t at = reinterpret_cast<uintptr_t>(c.memory.data());
  c.first = {c.memory.data() + (16 - at % 16) % 16 + (drawn(0, 1) ? 4 : 0), type};
  for (int64_t e = 0; e < c.ld * p.n; e++) (c.first + e).store(float(drawn(-100, 100)));
  return c;
}

float stored_as(float x, int type) {
  return type == WS_HALF_C_F32 ? x : type == WS_HALF_C_F16 ? ws::float_of_f16(ws::f16_of(x)) : ws::float_of_bf16(ws::bf16_of(x));
}

/* z's steps: bias of its row, ReLU, scale, residual. */
float after_steps(float z, float bias, float out_scale, float residual) {
  z += bias;
  z = z < 0 ? 0 : z;
  return z * out_scale + residual;
}

template <class Config> void one_product(const char *name, bool a_k, bool b_k, int turn) {
  problem p = drawn_problem<Config>(a_k, b_k, turn % 4 == 3);
  const int type_c = turn % 3;
  const bool has_beta = drawn(0, 1), has_steps = turn % 5 == 4;
  matrix_c c = drawn_c(p, type_c);
  std::vector<float> old(size_t(c.ld * p.n)), bias(size_t(p.m), 0.0f), residual(size_t(c.ld * p.n), 0.0f);
  for (size_t e = 0; e < old.size(); e++) old[e] = (c.first + int64_t(e)).load();
  for (float &x : bias) x = float(drawn(-9, 9));
  for (float &x : residual) x = stored_as(float(drawn(-9, 9)), type_c);
  matrix_c kept = drawn_c(p, type_c);
  kept.ld = c.ld, kept.memory.resize(size_t(c.ld * p.n * 4 + 32)), kept.first.at = kept.memory.data();
  for (size_t e = 0; e < residual.size(); e++) (kept.first + int64_t(e)).store(residual[e]);
  ws_gemm_args &args = p.args;
  args.c = c.first.at, args.ldc = c.ld, args.type_c = type_c;
  args.c_vectors = reinterpret_cast<uintptr_t>(args.c) % 16 == 0 && c.ld % (type_c == WS_HALF_C_F32 ? 4 : 8) == 0;
  args.alpha.s[0] = turn % 2 ? 1.0f : -0.75f, args.beta.s[0] = has_beta ? 0.5f : 0.0f, args.beta_zero = !has_beta;
  if (has_steps) {
    args.epilogue.is_any = 1, args.epilogue.activation = WSGEMM_EPILOGUE_RELU, args.epilogue.out_scale = 0.25f;
    args.epilogue.bias = bias.data(), args.epilogue.bias_per_row = 1, args.epilogue.type_bias = WS_HALF_C_F32;
    args.epilogue.residual = kept.first.at, args.epilogue.ld_residual = c.ld;
  }
  run<Config>(name, p, turn % 2, 0, p.k, [&](int64_t m_first, int64_t n_first) {
    return ws::output_scaled<Config>{
        ws::output_at<Config>(args, 0, m_first, n_first), ws::scaling<Config>(args), args, 0, m_first, n_first};
  });
  int n_wrong = 0;
  for (int64_t j = 0; j < p.n; j++)
    for (int64_t i = 0; i < c.ld; i++) {
      const size_t e = size_t(i + j * c.ld);
      float wanted = old[e];
      if (i < p.m) {
        const float sum = chain<typename Config::type>(p, i, j, 0, p.k);
        wanted = has_beta ? fmaf(args.alpha.s[0], sum, args.beta.s[0] * old[e]) : args.alpha.s[0] * sum;
        if (has_steps) wanted = after_steps(wanted, bias[size_t(i)], 0.25f, residual[e]);
        wanted = stored_as(wanted, type_c);
      }
      const float got = (c.first + int64_t(e)).load();
      if (!same(got, wanted) && n_wrong++ == 0)
        CHECK(false, "%s, A by %c, B by %c, turn %d, %lld x %lld x %lld: C(%lld, %lld) is %g, not %g", name, a_k ? 'k' : 'm',
              b_k ? 'k' : 'n', turn, (long long)p.m, (long long)p.n, (long long)p.k, (long long)i, (long long)j, double(got),
              double(wanted));
    }
  CHECK(n_wrong == 0, "%s, turn %d: %d elements are wrong", name, turn, n_wrong);
}

template <class Config> void products(const char *name) {
  rng = check_random_from(180);
  for (int layout = 0; layout < 4; layout++)
    for (int turn = 0; turn < 24 / check_scale(); turn++) one_product<Config>(name, layout & 1, layout & 2, turn);
}

/* Parts of k, as split_k.cuh has them summed: each part is a chain of its own, and they are added
 * in their order. */
template <class Config> void parts(const char *name) {
  rng = check_random_from(181);
  for (int turn = 0; turn < 24 / check_scale(); turn++) {
    problem p = drawn_problem<Config>(turn & 1, turn & 2, turn % 3 == 1 ? 2 : 0);
    const int64_t ld = (p.m + 3) / 4 * 4, k_per_split = Config::bk * drawn(1, 2);
    std::vector<ws::sum_vector<Config>> total(size_t(ld * p.n / 4));
    float *const first = total.data()->e;
    for (int64_t k_first = 0; k_first < p.k; k_first += k_per_split)
      run<Config>(name, p, turn % 3 == 0, k_first, ws_min(k_per_split, p.k - k_first), [&](int64_t m_first, int64_t n_first) {
        const ws::output<Config> out = {first + m_first + n_first * ld, ld, true, {false, false}};
        return ws::output_total<Config>{out, k_first == 0};
      });
    int n_wrong = 0;
    for (int64_t j = 0; j < p.n; j++)
      for (int64_t i = 0; i < p.m; i++) {
        float wanted = 0; /* no sum is -0 */
        for (int64_t k_first = 0; k_first < p.k; k_first += k_per_split)
          wanted += chain<typename Config::type>(p, i, j, k_first, ws_min(k_per_split, p.k - k_first));
        n_wrong += !same_bits(first[i + j * ld], wanted);
      }
    CHECK(n_wrong == 0, "%s, turn %d: %d elements are wrong", name, turn, n_wrong);
  }
}

void all_owners() { for_each_row(&row_test::owners); }
void all_banks() { for_each_row(&row_test::banks); }
void all_products() { for_each_row(&row_test::products); }
void all_parts() { for_each_row(&row_test::parts); }

const struct check_case cases[] = {
    {"owners", all_owners}, {"banks", all_banks}, {"products", all_products}, {"parts", all_parts}};

} // namespace

CHECK_MAIN("fma16", cases)
