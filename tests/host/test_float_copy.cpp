// test_float_copy.cpp - the kernel of cuda/kernels/float_copy.cuh on the host, block by block: every element of op(A) or op(B) comes to
// where tiled rows read it, nothing is read beside the operands, and nothing written beside the copies' columns.
#include "host_device.h"

#undef __shared__
#define __shared__ static // one for all threads of a block, which the host runs one block at a time
#include "cuda/kernels/float_copy.cuh"

#include "fenced.h"

namespace {

struct check_random rng;

struct source {
  ws_float_copy_operand op;
  fenced from, to;
  int64_t n_copied() const { return op.n_batch * op.n_k * op.pitch; }
  int64_t n_given() const {
    const int64_t length = op.transposed ? op.n_k : op.n_x, n_lines = op.transposed ? op.n_x : op.n_k;
    return (op.n_batch - 1) * op.stride + (n_lines - 1) * op.ld + length;
  }
  static int64_t bytes_given(const ws_float_copy_operand &op) {
    return (op.n_batch * op.stride + (op.transposed ? op.n_x : op.n_k) * op.ld + 8) * int64_t(sizeof(float));
  }
  explicit source(const ws_float_copy_operand &drawn)
      : op(drawn), from(size_t(bytes_given(drawn))), to(size_t(drawn.n_batch * drawn.n_k * drawn.pitch) * sizeof(float)) {
    // at the end of memory, or up to three floats from its begin
    float *const given = check_random_in(&rng, 0, 1) ? reinterpret_cast<float *>(from.end()) - n_given()
                                                     : reinterpret_cast<float *>(from.begin()) + check_random_in(&rng, 0, 3);
    op.from = given, op.to = reinterpret_cast<float *>(to.end()) - n_copied();
    for (int64_t b = 0; b < op.n_batch; b++)
      for (int64_t k = 0; k < op.n_k; k++)
        for (int64_t x = 0; x < op.n_x; x++) given[place_of(b, k, x)] = value_of(b, k, x);
  }
  int64_t place_of(int64_t b, int64_t k, int64_t x) const {
    return b * op.stride + (op.transposed ? k + x * op.ld : x + k * op.ld);
  }
  float value_of(int64_t b, int64_t k, int64_t x) const { return float((b * op.n_k + k) * op.n_x + x); }
  int64_t n_wrong() const {
    int64_t n = 0;
    for (int64_t b = 0; b < op.n_batch; b++)
      for (int64_t k = 0; k < op.n_k; k++)
        for (int64_t x = 0; x < op.pitch; x++) {
          const float y = op.to[(b * op.n_k + k) * op.pitch + x];
          n += x < op.n_x ? !(y == value_of(b, k, x)) : !(y != y);
        }
    return n;
  }
};

ws_float_copy_operand drawn_operand() {
  ws_float_copy_operand op = {};
  op.transposed = int32_t(check_random_in(&rng, 0, 1)), op.n_batch = check_random_in(&rng, 1, 3);
  op.n_x = check_random_in(&rng, 1, 300), op.n_k = check_random_in(&rng, 1, 100);
  op.ld = (op.transposed ? op.n_k : op.n_x) + check_random_in(&rng, 0, 9);
  op.stride = (op.transposed ? op.n_x : op.n_k) * op.ld + check_random_in(&rng, 0, 9);
  op.pitch = (op.n_x + 31) / 32 * 32;
  return op;
}

void operands() {
  rng = check_random_from(211);
  for (int turn = 0; turn < 60 / check_scale() + 12; turn++) {
    const source a(drawn_operand()), b(drawn_operand());
    const bool of_a = turn % 3 != 0, of_b = turn % 3 != 1;
    ws_float_copy_args args = {};
    if (of_a) args.operand[0] = a.op;
    if (of_b) args.operand[1] = b.op;
    gridDim.x = unsigned(check_random_in(&rng, 1, 5));
    bool have_met = true;
    for (blockIdx.x = 0; blockIdx.x < gridDim.x; blockIdx.x++)
      have_met &= host_run_block(WS_FLOAT_COPY_THREADS, 16, turn % 2 != 0, [&] { ws::float_copy::run(args); });
    CHECK(have_met && (!of_a || a.n_wrong() == 0) && (!of_b || b.n_wrong() == 0),
          "A %d: %lld x %lld, transposed %d, B %d: %lld x %lld, transposed %d, %u blocks", of_a, (long long)a.op.n_x,
          (long long)a.op.n_k, a.op.transposed, of_b, (long long)b.op.n_x, (long long)b.op.n_k, b.op.transposed, gridDim.x);
  }
}

const struct check_case cases[] = {{"operands", operands}};

} // namespace

CHECK_MAIN("float_copy", cases)
