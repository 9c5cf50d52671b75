/* half.cu - the kernels on Hopper's matrix units (cuda/wgmma_kernel.cuh) beside cublasGemmEx: 16-bit A, B, C, sums in FP32; one process,
 * in turn, the same random data, L2 flushed before every timing, medians of event timings; every result compared with cuBLAS's.
 *
 *   bench_gpu_half [--types hb] [--shapes OPS,M,N,K[;OPS,M,N,K]] [--json FILE] [--commit ID] [--samples N]
 *
 * The rows stand here until the library's backend launches them; it will make the tensor maps as this does. A, B, C begin at 16 bytes and
 * have lds that are multiples of 8. */
#include <cudaTypedefs.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <string>
#include <vector>

#include "cublas.h"
#include "cuda/wgmma_kernel.cuh"

/* X(type letter, element, bm, bn, COARSE_FACTOR, consumers, stages) */
#define ROWS_OF(X, letter, element)    \
  X(letter, element, 256, 64, 2, 2, 4) \
  X(letter, element, 192, 64, 2, 2, 4) \
  X(letter, element, 128, 64, 4, 2, 4) \
  X(letter, element, 128, 64, 2, 2, 6)
#define ROWS(X) ROWS_OF(X, h, __half) ROWS_OF(X, b, __nv_bfloat16)

#define ENTRY(letter, element, bm, bn, coarse, consumers, stages) \
  WS_WGMMA_ENTRY(letter##gemm_wgmma_##bm##x##bn##x64_c##coarse, element, bm, bn, coarse, consumers, stages)
ROWS(ENTRY)

namespace {

struct row {
  const char *name;
  void (*kernel)(ws_wgmma_args);
  int bm, bn, coarse, n_threads, shared_bytes;
};
#define ROW(letter, element, bm, bn, coarse, consumers, stages)             \
  {#letter "gemm_wgmma_" #bm "x" #bn "x64_c" #coarse,                       \
   letter##gemm_wgmma_##bm##x##bn##x64_c##coarse,                           \
   bm,                                                                      \
   bn,                                                                      \
   coarse,                                                                  \
   ws::wgmma_config<element, bm, bn, coarse, consumers, stages>::n_threads, \
   ws::wgmma_config<element, bm, bn, coarse, consumers, stages>::shared_bytes},
const row rows[] = {ROWS(ROW)};

struct shape {
  char ops[3];
  long long m, n, k;
};
std::vector<shape> shapes = {{"NN", 1024, 1024, 1024},  {"NN", 2048, 2048, 2048}, {"NN", 2304, 2304, 2304},
                             {"NN", 3072, 3072, 3072},  {"NN", 4096, 4096, 4096}, {"NN", 5120, 5120, 5120},
                             {"NN", 6144, 6144, 6144},  {"NN", 8192, 8192, 8192}, {"NN", 16384, 16384, 16384},
                             {"NT", 4096, 4096, 4096},  {"TN", 4096, 4096, 4096}, {"TT", 4096, 4096, 4096},
                             {"NN", 4096, 11008, 4096}, {"NN", 8192, 28672, 8192}};

struct {
  std::string types = "b", json, commit;
  int samples = 11;
} options;

void check(cudaError_t result, int line) {
  if (result == cudaSuccess) return;
  fprintf(stderr, "half.cu:%d: %s\n", line, cudaGetErrorString(result));
  exit(1);
}
#define GPU(call) check((call), __LINE__)

PFN_cuTensorMapEncodeTiled_v12000 encode;
cudaStream_t stream;
cudaEvent_t before, after;
void *flush;
constexpr size_t flush_bytes = 256u << 20; /* several times the L2 */
ws_ticket_queue *queue;
float *largest_difference;
int n_sms;

struct problem {
  wsgemm_type type;
  bool a_trans, b_trans;
  int64_t m, n, k, lda, ldb;
  uint16_t *a, *b, *c, *reference;
};

/* Uniform(-1, 1), by a hash of the place. */
template <class Element> __global__ void fill(Element *x, int64_t count, uint32_t seed) {
  const int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= count) return;
  uint32_t h = uint32_t(i) * 2654435761u + seed;
  h = (h ^ h >> 16) * 0x85ebca6bu;
  h = (h ^ h >> 13) * 0xc2b2ae35u;
  x[i] = Element(float(int32_t(h ^ h >> 16)) * 0x1p-31f);
}

/* Largest |x - y| / (|y| + 1); a NaN counts as large. */
template <class Element> __global__ void compare(const Element *x, const Element *y, int64_t count, float *largest) {
  const int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= count) return;
  const float d = fabsf(float(x[i]) - float(y[i])) / (fabsf(float(y[i])) + 1);
  atomicMax(reinterpret_cast<int *>(largest), __float_as_int(d <= 1e30f ? d : 1e30f));
}

unsigned blocks_for(int64_t count) { return unsigned((count + 255) / 256); }

uint16_t *random_matrix(wsgemm_type type, int64_t count, uint32_t seed) {
  void *x;
  GPU(cudaMalloc(&x, size_t(count) * 2));
  if (type == WSGEMM_F16)
    fill<<<blocks_for(count), 256, 0, stream>>>(static_cast<__half *>(x), count, seed);
  else
    fill<<<blocks_for(count), 256, 0, stream>>>(static_cast<__nv_bfloat16 *>(x), count, seed);
  GPU(cudaGetLastError());
  return static_cast<uint16_t *>(x);
}

/* A matrix of `length` contiguous elements by `count`, in boxes of 64 by `box`, and one product. */
CUtensorMap map_of(wsgemm_type type, void *data, int64_t length, int64_t count, int64_t ld, int box) {
  CUtensorMap map;
  const cuuint64_t dims[3] = {cuuint64_t(length), cuuint64_t(count), 1},
                   strides[2] = {cuuint64_t(ld) * 2, cuuint64_t(ld * count) * 2};
  const cuuint32_t boxes[3] = {64, cuuint32_t(box), 1}, steps[3] = {1, 1, 1};
  const CUtensorMapDataType map_type = type == WSGEMM_F16 ? CU_TENSOR_MAP_DATA_TYPE_FLOAT16 : CU_TENSOR_MAP_DATA_TYPE_BFLOAT16;
  const CUresult result =
      encode(&map, map_type, 3, data, dims, strides, boxes, steps, CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B,
             CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  if (result != CUDA_SUCCESS) {
    fprintf(stderr, "half.cu: a tensor map was refused: %d\n", int(result));
    exit(1);
  }
  return map;
}

void run_row(const row &r, const problem &p) {
  ws_wgmma_args args = {};
  const int item_n = r.bn * r.coarse;
  args.a = p.a_trans ? map_of(p.type, p.a, p.k, p.m, p.lda, r.bm) : map_of(p.type, p.a, p.m, p.k, p.lda, 64);
  args.b = p.b_trans ? map_of(p.type, p.b, p.n, p.k, p.ldb, 64) : map_of(p.type, p.b, p.k, p.n, p.ldb, item_n);
  args.c = map_of(p.type, p.c, p.m, p.n, p.m, 64);
  args.grid = {1, ws_ceil_div(p.m, r.bm), ws_ceil_div(p.n, r.bn), r.coarse, 8};
  args.sched.n_items = uint32_t(ws_tile_items(&args.grid));
  args.sched.queue = int64_t(args.sched.n_items) > n_sms ? queue : nullptr;
  args.m = p.m, args.n = p.n, args.k = p.k;
  args.c_data = p.c, args.ldc = p.m, args.alpha = 1;
  args.a_k = p.a_trans, args.b_k = !p.b_trans, args.c_by_map = 1;
  r.kernel<<<unsigned(ws_min(args.sched.n_items, n_sms)), r.n_threads, r.shared_bytes, stream>>>(args);
  GPU(cudaGetLastError());
}

void run_cublas(const problem &p) {
  if (cublas_gemm(p.type, p.a_trans ? WSGEMM_TRANS : WSGEMM_NO_TRANS, p.b_trans ? WSGEMM_TRANS : WSGEMM_NO_TRANS, p.m, p.n, p.k,
                  p.a, p.lda, p.b, p.ldb, p.reference, p.m))
    return;
  fprintf(stderr, "half.cu: cuBLAS refused\n");
  exit(1);
}

template <class Run> float time_once(Run run) {
  float ms;
  GPU(cudaMemsetAsync(flush, 0, flush_bytes, stream));
  GPU(cudaEventRecord(before, stream));
  run();
  GPU(cudaEventRecord(after, stream));
  GPU(cudaEventSynchronize(after));
  GPU(cudaEventElapsedTime(&ms, before, after));
  return ms;
}

float median_of(std::vector<float> ms) {
  std::sort(ms.begin(), ms.end());
  return ms[ms.size() / 2];
}

float difference(const row &r, const problem &p) {
  const int64_t count = p.m * p.n;
  float largest;
  GPU(cudaMemsetAsync(p.c, 0xff, size_t(count) * 2, stream)); /* NaN: what is not written is seen */
  GPU(cudaMemsetAsync(largest_difference, 0, sizeof largest, stream));
  run_row(r, p);
  if (p.type == WSGEMM_F16)
    compare<<<blocks_for(count), 256, 0, stream>>>(reinterpret_cast<__half *>(p.c), reinterpret_cast<__half *>(p.reference),
                                                   count, largest_difference);
  else
    compare<<<blocks_for(count), 256, 0, stream>>>(reinterpret_cast<__nv_bfloat16 *>(p.c),
                                                   reinterpret_cast<__nv_bfloat16 *>(p.reference), count, largest_difference);
  GPU(cudaGetLastError());
  GPU(cudaMemcpyAsync(&largest, largest_difference, sizeof largest, cudaMemcpyDeviceToHost, stream));
  GPU(cudaStreamSynchronize(stream));
  return largest;
}

void report(const shape &s, const row &r, double ours, double theirs, const char *device) {
  char case_name[64], date[16];
  const time_t now = time(nullptr);
  strftime(date, sizeof date, "%Y-%m-%d", gmtime(&now));
  snprintf(case_name, sizeof case_name, "%s %lldx%lldx%lld", s.ops, s.m, s.n, s.k);
  printf("%cgemm %-22s %-30s %8.1f %8.1f %7.3f\n", r.name[0], case_name, r.name, ours, theirs, ours / theirs);
  FILE *f = options.json.empty() ? nullptr : fopen(options.json.c_str(), "a");
  if (!f) return;
  fprintf(f,
          "{\"suite\": \"half_rows\", \"routine\": \"%cgemm\", \"case\": \"%s\", \"policy\": \"steal\", \"kernel\": \"%s\", "
          "\"device\": \"%s\", "
          "\"peer\": \"%s\", \"ours\": %.2f, \"theirs\": %.2f, \"unit\": \"TFLOP/s\", \"ratio\": %.4f, \"commit\": \"%s\", "
          "\"date\": \"%s\"}\n",
          r.name[0], case_name, r.name, device, cublas_version(), ours, theirs, ours / theirs, options.commit.c_str(), date);
  fclose(f);
}

/* Whether every row was right. */
bool measure(const shape &s, wsgemm_type type, const char *device) {
  problem p = {type, s.ops[0] == 'T', s.ops[1] == 'T', s.m, s.n, s.k};
  p.lda = p.a_trans ? p.k : p.m, p.ldb = p.b_trans ? p.n : p.k;
  p.a = random_matrix(type, p.m * p.k, 1), p.b = random_matrix(type, p.k * p.n, 77);
  p.c = random_matrix(type, p.m * p.n, 3), p.reference = random_matrix(type, p.m * p.n, 5);
  run_cublas(p);
  std::vector<const row *> used;
  bool all_right = true;
  for (const row &r : rows) {
    if (r.name[0] != (type == WSGEMM_F16 ? 'h' : 'b')) continue;
    used.push_back(&r);
    const float d = difference(r, p), most = type == WSGEMM_F16 ? 2e-3f : 2e-2f; /* two units of the last place */
    if (d < most) continue;
    printf("WRONG: %s %s %lldx%lldx%lld: %.3g from cuBLAS\n", r.name, s.ops, s.m, s.n, s.k, d);
    all_right = false;
  }
  std::vector<std::vector<float>> ms(used.size() + 1);
  for (int i = 0; i < options.samples; i++) {
    ms.back().push_back(time_once([&] { run_cublas(p); }));
    for (size_t r = 0; r < used.size(); r++) ms[r].push_back(time_once([&] { run_row(*used[r], p); }));
  }
  const double work = 2e-9 * double(p.m) * double(p.n) * double(p.k);
  for (size_t r = 0; r < used.size(); r++) report(s, *used[r], work / median_of(ms[r]), work / median_of(ms.back()), device);
  for (uint16_t *x : {p.a, p.b, p.c, p.reference}) GPU(cudaFree(x));
  return all_right;
}

bool parse_shapes(const char *text) {
  shapes.clear();
  for (;;) {
    shape s;
    int used = 0;
    if (sscanf(text, "%2[NT],%lld,%lld,%lld%n", s.ops, &s.m, &s.n, &s.k, &used) != 4 || strlen(s.ops) != 2) return false;
    if (s.m < 1 || s.n < 1 || s.k < 1 || (s.m | s.n | s.k) % 8 != 0) return false; /* what the copy engine takes */
    shapes.push_back(s);
    text += used;
    if (*text == '\0') return true;
    if (*text++ != ';') return false;
  }
}

bool parse(int argc, char **argv) {
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string name = argv[i];
    if (name == "--types")
      options.types = argv[i + 1];
    else if (name == "--json")
      options.json = argv[i + 1];
    else if (name == "--commit")
      options.commit = argv[i + 1];
    else if (name == "--samples")
      options.samples = atoi(argv[i + 1]);
    else if (name != "--shapes" || !parse_shapes(argv[i + 1]))
      return false;
  }
  return argc % 2 == 1 && options.samples >= 1;
}

} // namespace

int main(int argc, char **argv) {
  if (!parse(argc, argv)) {
    fputs("usage: bench_gpu_half [--types hb] [--shapes OPS,M,N,K[;OPS,M,N,K]] [--json FILE] [--commit ID] [--samples N]\n",
          stderr);
    return 2;
  }
  int n_devices = 0;
  cudaDeviceProp properties;
  if (cudaGetDeviceCount(&n_devices) != cudaSuccess || n_devices == 0) {
    puts("skipped: no GPU");
    return 77;
  }
  GPU(cudaGetDeviceProperties(&properties, 0));
  if (properties.major != 9) {
    puts("skipped: not a Hopper GPU");
    return 77;
  }
  n_sms = properties.multiProcessorCount;
  cudaDriverEntryPointQueryResult found;
  GPU(cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", reinterpret_cast<void **>(&encode), 12000, cudaEnableDefault,
                                       &found));
  GPU(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  GPU(cudaEventCreate(&before));
  GPU(cudaEventCreate(&after));
  GPU(cudaMalloc(&flush, flush_bytes));
  GPU(cudaMalloc(&largest_difference, sizeof *largest_difference));
  GPU(cudaMalloc(&queue, sizeof *queue));
  GPU(cudaMemset(queue, 0, sizeof *queue));
  for (const row &r : rows) GPU(cudaFuncSetAttribute(r.kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, r.shared_bytes));
  if (!cublas_open(stream)) return 1;
  printf("%s, %s; TFLOP/s, L2 flushed, medians of %d\n", properties.name, cublas_version(), options.samples);
  printf("%-28s %-30s %8s %8s %7s\n", "case", "row", "ours", "theirs", "ratio");
  bool all_right = true;
  for (const shape &s : shapes)
    for (const char t : options.types) all_right &= measure(s, t == 'h' ? WSGEMM_F16 : WSGEMM_BF16, properties.name);
  ws_ticket_queue left;
  GPU(cudaMemcpy(&left, queue, sizeof left, cudaMemcpyDeviceToHost));
  if (left.next != 0 || left.n_left != 0) {
    printf("WRONG: the queue was left at %u, %u\n", left.next, left.n_left);
    all_right = false;
  }
  return all_right ? 0 : 1;
}
