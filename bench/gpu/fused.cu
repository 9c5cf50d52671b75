/* fused.cu - sgemm whose floats are split where they are multiplied (cuda/kernels/gemm_fused.cuh; no
 * row of the library yet) beside cuBLAS and the library, in turn, the L2 flushed: the fastest of all
 * candidates (which operand is R, columns of a tile, parts of k, the arithmetic), its error against
 * a reference in double, in units of u.
 *
 *   bench_gpu_fused check                 small odd shapes, all rows, all kinds of operands; exit 1: beyond the bound
 *   bench_gpu_fused shapes                some shapes, all of their candidates
 *   bench_gpu_fused random SEED COUNT     m, n, k drawn log-uniformly
 *   bench_gpu_fused one TA TB M N K [PART OF A CANDIDATE'S NAME] */
#include <cuda_runtime.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "bench/harness/cublas.h"
#include "bench/harness/flush_gpu.h"
#include "cuda/kernels/gemm_fused.cuh"
extern "C" {
#include "tests/support/fused_model.h"
}

#define CHECK(x)                                                                                          \
  do {                                                                                                    \
    auto e_ = (x);                                                                                        \
    if (int(e_) != 0) printf("%s:%d %s: %d\n", __FILE__, __LINE__, #x, int(e_)), fflush(stdout), exit(1); \
  } while (0)

template <class Config>
__global__ void __launch_bounds__(Config::n_threads, 1) fused(const __grid_constant__ ws_fused_args args) {
  extern __shared__ __align__(1024) unsigned char shared[];
  ws::fused_kernel<Config>{args, shared}.run();
}

struct row {
  const void *kernel;
  int bn, r_x, s_x, tma, cross, threads;
  uint32_t bytes;
};
static std::vector<row> rows;
template <int BN, bool RX, bool SX, bool TMA, int STAGES, bool CROSS> static void add() {
  using config = ws::fused_config<BN, RX, SX, TMA, STAGES, CROSS, TMA && STAGES == 6 ? 1 : 2>;
  rows.push_back({(const void *)fused<config>, BN, RX, SX, TMA, CROSS, config::n_threads, config::shared_bytes});
  static_assert(config::shared_bytes <= 232448);
  CHECK(cudaFuncSetAttribute((const void *)fused<config>, cudaFuncAttributeMaxDynamicSharedMemorySize, config::shared_bytes));
}
template <int BN, bool TMA, int KEEP, int COPY, bool CROSS> static void add_layouts() {
  add<BN, false, false, TMA, KEEP, CROSS>();
  add<BN, true, false, TMA, KEEP, CROSS>();
  add<BN, false, true, TMA, COPY, CROSS>();
  add<BN, true, true, TMA, COPY, CROSS>();
}

/* ---- operands -------------------------------------------------------------------------------- */

__host__ __device__ static inline uint64_t mix(uint64_t x) {
  x += 0x9e3779b97f4a7c15u, x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u, x = (x ^ x >> 27) * 0x94d049bb133111ebu;
  return x ^ x >> 31;
}
__global__ void fill(float *x, size_t n, uint64_t seed, int kind) {
  for (size_t i = blockIdx.x * size_t(blockDim.x) + threadIdx.x; i < n; i += size_t(gridDim.x) * blockDim.x) {
    const uint64_t bits = mix(seed * 0x100000001b3u + i);
    float v = float(bits >> 40) * 0x1p-24f;
    if (kind == 0 || kind >= 3) v = 2 * v - 1;
    if (kind == 1) v = (2 * v - 1) * exp2f(float(int(bits % 31)) - 15);
    if (kind == 3) {
      const int what = int(bits % 200000);
      v = what == 0     ? NAN
          : what == 1   ? INFINITY
          : what == 2   ? -INFINITY
          : what == 3   ? 0x1p-140f
          : what == 4   ? 0x1p-120f
          : what < 4000 ? 0
                        : v;
    }
    x[i] = v;
  }
}
struct problem {
  int ta, tb, m, n, k;
  int lda, ldb, ldc;
};
__global__ void judge(problem p, const float *a, const float *b, const float *c0, const float *c, float alpha, float beta,
                      int n_samples, uint64_t seed, double *worst, int *n_wrong) {
  const int w = int(blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x % 32;
  if (w >= n_samples) return;
  const uint64_t bits = mix(seed + w);
  const int i = int(bits % p.m), j = int((bits >> 32) % p.n);
  double sum = 0, size = 0;
  for (int l = lane; l < p.k; l += 32) {
    const double x = a[p.ta ? size_t(i) * p.lda + l : size_t(l) * p.lda + i],
                 y = b[p.tb ? size_t(l) * p.ldb + j : size_t(j) * p.ldb + l];
    sum += x * y, size += fabs(x * y);
  }
  for (int o = 16; o; o /= 2) sum += __shfl_xor_sync(~0u, sum, o), size += __shfl_xor_sync(~0u, size, o);
  const double old = beta == 0 ? 0 : beta * double(c0[size_t(j) * p.ldc + i]);
  sum = alpha * sum + old, size = fabs(alpha) * size + fabs(old);
  const double got = c[size_t(j) * p.ldc + i];
  if (lane) return;
  if (!isfinite(sum)) {
    if (isnan(sum) ? !isnan(got) : got != sum) atomicAdd(n_wrong, 1);
    return;
  }
  const double error = fabs(got - sum);
  if (!(error <= 1e300)) {
    atomicAdd(n_wrong, 1);
    return;
  }
  const double units = error <= 2 * p.k * 0x1p-149 ? 0 : error / (size * 0x1p-24);
  atomicMax((unsigned long long *)worst, (unsigned long long)__double_as_longlong(units));
}

/* ---- launching ------------------------------------------------------------------------------- */

typedef CUresult (*encode_t)(CUtensorMap *, CUtensorMapDataType, cuuint32_t, void *, const cuuint64_t *, const cuuint64_t *,
                             const cuuint32_t *, const cuuint32_t *, CUtensorMapInterleave, CUtensorMapSwizzle,
                             CUtensorMapL2promotion, CUtensorMapFloatOOBfill);
static encode_t encode;
static bool set_operand(ws_fused_operand &op, const float *from, int n_x, int n_k, int ld, bool x_contiguous, int box_x) {
  op.from = from, op.ld = ld, op.n_x = n_x;
  if (ld % 4 || (uintptr_t)from % 16) return false;
  const cuuint64_t dims[3] = {cuuint64_t(x_contiguous ? n_x : n_k), cuuint64_t(x_contiguous ? n_k : n_x), 1};
  const cuuint64_t strides[2] = {cuuint64_t(ld) * 4, cuuint64_t(ld) * 4 * dims[1]};
  const cuuint32_t box[3] = {32, cuuint32_t(x_contiguous ? 32 : box_x), 1}, ones[3] = {1, 1, 1};
  CHECK(encode(&op.map, CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 3, (void *)from, dims, strides, box, ones, CU_TENSOR_MAP_INTERLEAVE_NONE,
               CU_TENSOR_MAP_SWIZZLE_128B, CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE));
  return true;
}

struct candidate {
  const row *r;
  bool r_is_a;
  int parts, grid;
  ws_fused_args args;
  std::string name;
};
static int n_sms;
static bool make(candidate &c, const problem &p, const float *a, const float *b, float *out, float alpha, float beta, bool r_is_a,
                 int bn, int parts, bool tma, int cross) {
  ws_fused_args &g = c.args;
  memset(&g, 0, sizeof g);
  const bool a_x = !p.ta, b_x = p.tb;
  bool fits = set_operand(r_is_a ? g.r : g.s, a, p.m, p.k, p.lda, a_x, r_is_a ? 128 : bn);
  fits &= set_operand(r_is_a ? g.s : g.r, b, p.n, p.k, p.ldb, b_x, r_is_a ? bn : 128);
  if (tma && !fits) return false;
  g.c = out, g.c_r = r_is_a ? 1 : p.ldc, g.c_s = r_is_a ? p.ldc : 1;
  g.n_k = p.k, g.n_tiles_r = (g.r.n_x + 127) / 128, g.n_tiles_s = (g.s.n_x + bn - 1) / bn, g.n_parts = parts;
  g.alpha = alpha, g.beta = beta;
  c.r = nullptr, c.r_is_a = r_is_a, c.parts = parts;
  for (const row &w : rows)
    if (w.bn == bn && w.r_x == (r_is_a ? a_x : b_x) && w.s_x == (r_is_a ? b_x : a_x) && w.tma == tma && w.cross == cross)
      c.r = &w;
  if (!c.r) return false;
  const long tiles = long(g.n_tiles_r) * g.n_tiles_s;
  c.grid = int(parts > 1 ? tiles * parts : std::min<long>(tiles, n_sms));
  char text[64];
  snprintf(text, sizeof text, "%c 128x%d p%d %s %s", r_is_a ? 'A' : 'B', bn, parts, tma ? "tma" : "async", cross ? "tbb" : "ttt");
  c.name = text;
  return true;
}
static void launch(const candidate &c) {
  cudaLaunchConfig_t config = {};
  config.gridDim = c.grid, config.blockDim = c.r->threads, config.dynamicSmemBytes = c.r->bytes;
  cudaLaunchAttribute cluster = {};
  cluster.id = cudaLaunchAttributeClusterDimension, cluster.val.clusterDim.x = c.parts,
  cluster.val.clusterDim.y = cluster.val.clusterDim.z = 1;
  config.attrs = &cluster, config.numAttrs = c.parts > 1;
  void *args[] = {(void *)&c.args};
  CHECK(cudaLaunchKernelExC(&config, c.r->kernel, args));
}

static cudaEvent_t e0, e1;
template <class F> static float once(F run) {
  if (!ws_bench_flush_gpu(0)) exit(1);
  CHECK(cudaEventRecord(e0));
  run();
  CHECK(cudaEventRecord(e1));
  CHECK(cudaEventSynchronize(e1));
  float ms;
  CHECK(cudaEventElapsedTime(&ms, e0, e1));
  return ms * 1e3f;
}
static float median(std::vector<float> &v) {
  std::sort(v.begin(), v.end());
  return v[v.size() / 2];
}

static double *worst;
static int *n_wrong;

struct verdict {
  double units;
  int wrong;
};
static verdict judged(const problem &p, const float *a, const float *b, const float *c0, const float *c, float alpha,
                      float beta) {
  CHECK(cudaMemset(worst, 0, 8));
  CHECK(cudaMemset(n_wrong, 0, 4));
  judge<<<1024, 256>>>(p, a, b, c0, c, alpha, beta, 8192, 77, worst, n_wrong);
  verdict v;
  CHECK(cudaMemcpy(&v.units, worst, 8, cudaMemcpyDeviceToHost));
  CHECK(cudaMemcpy(&v.wrong, n_wrong, 4, cudaMemcpyDeviceToHost));
  return v;
}

static float *A, *B, *C, *C0;
static size_t capacity = size_t(300) << 20; /* floats */

static double log_ratio, log_ratio_library;
static int n_ratios;

static void fill_all(uint64_t seed, int kind, size_t na, size_t nb, size_t nc) {
  fill<<<1024, 256>>>(A, na, seed, kind);
  fill<<<1024, 256>>>(B, nb, seed + 1, kind);
  fill<<<1024, 256>>>(C0, nc, seed + 2, 0);
  CHECK(cudaDeviceSynchronize());
}

static void bench(const problem &p, bool all, const char *only) {
  const size_t na = size_t(p.lda) * (p.ta ? p.m : p.k), nb = size_t(p.ldb) * (p.tb ? p.k : p.n), nc = size_t(p.ldc) * p.n;
  if (std::max(na, std::max(nb, nc)) > capacity) return;
  fill_all(mix(p.m * 7 + p.n * 13 + p.k), 0, na, nb, nc);
  const wsgemm_op ta = p.ta ? WSGEMM_TRANS : WSGEMM_NO_TRANS, tb = p.tb ? WSGEMM_TRANS : WSGEMM_NO_TRANS;
  const auto of_blas = [&] {
    if (!ws_bench_cublas_gemm(WSGEMM_F32, ta, tb, p.m, p.n, p.k, A, p.lda, B, p.ldb, C, p.ldc)) exit(1);
  };
  const auto of_library = [&] {
    CHECK(wsgemm_sgemm(nullptr, WSGEMM_COL_MAJOR, ta, tb, p.m, p.n, p.k, 1, A, p.lda, B, p.ldb, 0, C, p.ldc));
  };
  std::vector<candidate> list;
  for (int tma = 1; tma >= 0; tma--)
    for (int r_is_a = 1; r_is_a >= 0; r_is_a--)
      for (int bn : {32, 64})
        for (int way = 0; way < 8; way++) {
          const int parts = 1 << way / 2, cross = way % 2;
          candidate c;
          if (cross ? p.k < 144 : p.k < 80) continue;
          if (!make(c, p, A, B, C, 1, 0, r_is_a, bn, parts, tma, cross)) continue;
          if (tma == 0 && !all && !list.empty() && list[0].r->tma) continue;
          const long tiles = long(c.args.n_tiles_r) * c.args.n_tiles_s;
          if (parts > 1 && (tiles * parts > 2 * n_sms || p.k < parts * 64)) continue;
          if (bn > 32 && c.args.s.n_x <= bn / 2) continue;
          if (!all && (r_is_a ? p.m : p.n) <= 64 && (r_is_a ? p.n : p.m) > 64) continue;
          if (only && c.name.find(only) == std::string::npos) continue;
          list.push_back(c);
        }
  std::vector<std::vector<float>> times(list.size() + 2);
  of_blas(), of_library();
  CHECK(cudaDeviceSynchronize());
  std::vector<verdict> verdicts(list.size());
  for (size_t i = 0; i < list.size(); i++) {
    CHECK(cudaMemset(C, 0xff, nc * 4));
    launch(list[i]);
    cudaError_t e = cudaDeviceSynchronize();
    if (e) printf("%s: %s\n", list[i].name.c_str(), cudaGetErrorString(e)), fflush(stdout), exit(1);
    verdicts[i] = judged(p, A, B, C0, C, 1, 0);
    if (verdicts[i].wrong || verdicts[i].units > p.k + 2)
      printf("WRONG %s: %d wrong, %.1f u\n", list[i].name.c_str(), verdicts[i].wrong, verdicts[i].units);
  }
  for (int rep = 0; rep < 7; rep++) {
    times[0].push_back(once(of_blas));
    times[1].push_back(once(of_library));
    for (size_t i = 0; i < list.size(); i++) times[2 + i].push_back(once([&] { launch(list[i]); }));
  }
  of_blas();
  const verdict of_cublas = judged(p, A, B, C0, C, 1, 0);
  const float t_blas = median(times[0]), t_library = median(times[1]);
  size_t best = 0;
  std::vector<float> mine;
  for (size_t i = 0; i < list.size(); i++) mine.push_back(median(times[2 + i]));
  for (size_t i = 0; i < list.size(); i++)
    if (mine[i] < mine[best]) best = i;
  printf(
      "%c%c %6d %6d %6d  cuBLAS %8.1f  library %8.1f (%.2f)  fused %8.1f (%.2f) %-16s %5.1f TF  err %.1f u of %d (cuBLAS %.1f)\n",
      "NT"[p.ta], "NT"[p.tb], p.m, p.n, p.k, t_blas, t_library, t_blas / t_library, mine.empty() ? 0 : mine[best],
      mine.empty() ? 0 : t_blas / mine[best], list.empty() ? "-" : list[best].name.c_str(),
      mine.empty() ? 0 : 2e-6 * p.m * p.n * p.k / mine[best], verdicts.empty() ? 0 : verdicts[best].units, p.k + 2,
      of_cublas.units);
  if (all) {
    printf("   ");
    for (size_t i = 0; i < list.size(); i++) printf(" %s %.1f;", list[i].name.c_str(), mine[i]);
    printf("\n");
  }
  if (!mine.empty())
    log_ratio += log(t_blas / mine[best]), log_ratio_library += log(t_blas / std::min(t_library, mine[best])), n_ratios++;
  fflush(stdout);
}

static std::vector<float> on_host(const float *from, size_t n) {
  std::vector<float> to(n);
  CHECK(cudaMemcpy(to.data(), from, n * sizeof(float), cudaMemcpyDeviceToHost));
  return to;
}

/* How many of some elements have other bits than the model's. */
static int count_other_bits(const problem &p, const candidate &c, float alpha, float beta) {
  const size_t na = size_t(p.lda) * (p.ta ? p.m : p.k), nb = size_t(p.ldb) * (p.tb ? p.k : p.n), nc = size_t(p.ldc) * p.n;
  const std::vector<float> a = on_host(A, na), b = on_host(B, nb), c0 = on_host(C0, nc), result = on_host(C, nc);
  std::vector<float> x(p.k), y(p.k);
  int n_other = 0;
  for (int sample = 0; sample < 300; sample++) {
    const int i = int(mix(sample) % p.m), j = int(mix(sample + 1000) % p.n);
    for (int l = 0; l < p.k; l++) {
      x[l] = a[p.ta ? size_t(i) * p.lda + l : size_t(l) * p.lda + i];
      y[l] = b[p.tb ? size_t(l) * p.ldb + j : size_t(j) * p.ldb + l];
    }
    if (!fused_model_stands_for(p.k, x.data()) || !fused_model_stands_for(p.k, y.data())) continue;
    const float *const r = c.r_is_a ? x.data() : y.data(), *const s = c.r_is_a ? y.data() : x.data();
    const float sum = fused_model_dot(c.r->cross ? FUSED_CROSS_BF16 : FUSED_CROSS_TF32, p.k, c.parts, r, s);
    if (!std::isfinite(sum)) continue;
    const size_t at = size_t(j) * p.ldc + i;
    const float expected = beta == 0 ? alpha * sum : fmaf(alpha, sum, beta * c0[at]);
    n_other += memcmp(&expected, &result[at], sizeof expected) != 0;
  }
  return n_other;
}

/* All rows on small odd shapes, three kinds of operands and special values, with beta. */
static int check() {
  int n_bad = 0, n_other_bits = 0;
  for (const row &w : rows)
    for (int r_is_a = 0; r_is_a < 2; r_is_a++)
      for (int parts : {1, 2, 4})
        for (int kind = 0; kind < 4; kind++) {
          const int x_r = w.r_x, x_s = w.s_x;
          problem p = {};
          p.ta = r_is_a ? !x_r : !x_s, p.tb = r_is_a ? x_s : x_r;
          p.m = 391, p.n = 205, p.k = parts > 1 ? 517 : 149;
          p.lda = (p.ta ? p.k : p.m), p.ldb = (p.tb ? p.n : p.k), p.ldc = p.m + 3;
          if (w.tma) p.lda = (p.lda + 3) / 4 * 4, p.ldb = (p.ldb + 3) / 4 * 4;
          const size_t na = size_t(p.lda) * (p.ta ? p.m : p.k), nb = size_t(p.ldb) * (p.tb ? p.k : p.n), nc = size_t(p.ldc) * p.n;
          fill_all(1234 + kind, kind, na, nb, nc);
          CHECK(cudaMemcpy(C, C0, nc * 4, cudaMemcpyDeviceToDevice));
          candidate c;
          const float beta = kind == 1 ? 0.5f : 0;
          if (!make(c, p, A, B, C, 1.25f, beta, r_is_a, w.bn, parts, w.tma, w.cross)) continue;
          launch(c);
          cudaError_t e = cudaDeviceSynchronize();
          if (e) printf("%s: %s\n", c.name.c_str(), cudaGetErrorString(e)), fflush(stdout), exit(1);
          const verdict v = judged(p, A, B, C0, C, 1.25f, beta);
          const bool bad = v.wrong || v.units > p.k + 2;
          const int n_other = count_other_bits(p, c, 1.25f, beta);
          n_bad += bad, n_other_bits += n_other;
          if (bad || (kind != 3 && parts == 1 && r_is_a))
            printf("%s %s r_x %d s_x %d kind %d: %d wrong, %.2f u of %d\n", bad ? "BAD" : "ok ", c.name.c_str(), x_r, x_s, kind,
                   v.wrong, v.units, p.k + 2);
        }
  printf("check: %d beyond the bound or wrong, %d elements with other bits than the model's\n", n_bad, n_other_bits);
  fflush(stdout);
  return n_bad + n_other_bits;
}

int main(int argc, char **argv) {
  cudaDeviceProp prop;
  CHECK(cudaGetDeviceProperties(&prop, 0));
  n_sms = prop.multiProcessorCount;
  printf("%s, %d SMs\n", prop.name, n_sms);
  cudaDriverEntryPointQueryResult found;
  CHECK(cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", (void **)&encode, 12000, cudaEnableDefault, &found));
  if (!ws_bench_cublas_open(0)) return 1;
  add_layouts<32, true, 6, 6, true>();
  add_layouts<64, true, 6, 5, false>();
  add_layouts<64, true, 6, 5, true>();
  add_layouts<32, false, 6, 6, true>();
  add_layouts<64, false, 4, 4, true>();
  CHECK(cudaMalloc(&A, capacity * 4));
  CHECK(cudaMalloc(&B, capacity * 4));
  CHECK(cudaMalloc(&C, capacity * 4));
  CHECK(cudaMalloc(&C0, capacity * 4));
  CHECK(cudaMalloc(&worst, 8));
  CHECK(cudaMalloc(&n_wrong, 4));
  CHECK(cudaEventCreate(&e0));
  CHECK(cudaEventCreate(&e1));
  const std::string mode = argc > 1 ? argv[1] : "check";
  if (mode == "check") return check() > 0;
  if (mode == "shapes") {
    const int sizes[][3] = {{512, 512, 512},   {1024, 1024, 1024}, {2048, 2048, 2048}, {128, 8192, 8192},
                            {8192, 128, 8192}, {64, 8192, 8192},   {32, 8192, 8192},   {8192, 8192, 128},
                            {4096, 4096, 64},  {256, 256, 256},    {256, 256, 4096}};
    for (const auto &s : sizes)
      for (int op = 0; op < 4; op++) {
        problem p = {op & 1, op >> 1, s[0], s[1], s[2], 0, 0, 0};
        if (s[0] == 2048 && op % 3) continue;
        p.lda = p.ta ? p.k : p.m, p.ldb = p.tb ? p.n : p.k, p.ldc = p.m;
        bench(p, op == 0 || op == 1, nullptr);
      }
  }
  if (mode == "one") { /* one ta tb m n k candidate: for ncu */
    problem p = {atoi(argv[2]), atoi(argv[3]), atoi(argv[4]), atoi(argv[5]), atoi(argv[6]), 0, 0, 0};
    p.lda = p.ta ? p.k : p.m, p.ldb = p.tb ? p.n : p.k, p.ldc = p.m;
    bench(p, true, argc > 7 ? argv[7] : nullptr);
  }
  if (mode == "random") { /* random seed count */
    uint64_t state = strtoull(argv[2], nullptr, 10);
    int count = atoi(argv[3]);
    const auto draw = [&] { return double((state = mix(state)) >> 11) * 0x1p-53; };
    const auto side = [&](double lo, double hi) { return int(exp(log(lo) + draw() * log(hi / lo))); };
    while (count > 0) {
      problem p = {int(draw() * 2), int(draw() * 2), side(16, 16384), side(16, 16384), side(16, 16384), 0, 0, 0};
      const double work = double(p.m) * p.n * p.k;
      if (work < 1e7 || work > 6e10) continue;
      p.lda = p.ta ? p.k : p.m, p.ldb = p.tb ? p.n : p.k, p.ldc = p.m;
      bench(p, false, nullptr);
      count--;
    }
  }
  if (n_ratios)
    printf("geometric mean of %d: fused %.3f of cuBLAS, the better of fused and library %.3f\n", n_ratios,
           exp(log_ratio / n_ratios), exp(log_ratio_library / n_ratios));
  return 0;
}
