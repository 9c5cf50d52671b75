/* slices.cuh - operands of floats into slices of 16 bits (slice_args.h), in two passes: the largest
 * magnitude of each row or column by chunks of k; then, knowing them, scales, slices and marks.
 *
 * A block takes chunk after chunk: of 128 neighbouring x where these are contiguous (a thread has
 * the same few x of every so many k), else of 8 lines along k (a warp each). */
#ifndef WS_CUDA_SLICE_KERNELS_CUH
#define WS_CUDA_SLICE_KERNELS_CUH
#include "cuda/ptx/convert.cuh"
#include "cuda/ptx/memory.cuh"
#include "cuda/sched/fixed.cuh"
#include "cuda/shared/power_of_two.cuh"
#include "cuda/shared/slice_args.h"
#include "cuda/shared/structure.h"

namespace ws {

/* What a block takes at a time, of one operand. */
struct slice_part {
  int64_t product, x; /* x: the first */
  int chunk;
};

/* Calls body(operand, part) for what falls to this block, in all of its threads: of n_x(operand) of its x. The second pass goes
 * backwards: what the first one read last may still be in the L2. */
template <bool BACKWARDS, class Count, class Body>
__device__ __forceinline__ void for_each_slice_part(const ws_slice_args &args, Count n_x, Body body) {
  int64_t next = worker_idx();
#pragma unroll
  for (int i = 0; i < 2; i++) {
    const ws_slice_operand &op = args.operand[BACKWARDS ? 1 - i : i];
    const int64_t n_groups = op.n_batch > 0 ? ws_slice_groups(n_x(op), op.along_k) : 0,
                  n_parts = op.n_batch * n_groups * op.n_chunks;
    for (; next < n_parts; next += n_workers()) {
      const int64_t at = BACKWARDS ? n_parts - 1 - next : next;
      const int64_t group = at / op.n_chunks;
      body(op,
           slice_part{group / n_groups, group % n_groups * (op.along_k ? WS_SLICE_LINES : WS_SLICE_X), int(at % op.n_chunks)});
    }
    next -= n_parts;
  }
}

/* Some neighbours in a line, of which n exist; zeros for the others. */
template <int COUNT>
__device__ __forceinline__ void load_neighbours(const float *from, int64_t n, bool vectors, float (&x)[COUNT]) {
  if (vectors && n >= COUNT) {
#pragma unroll
    for (int i = 0; i < COUNT; i += 4) {
      const float4 four = *reinterpret_cast<const float4 *>(from + i);
      x[i] = four.x, x[i + 1] = four.y, x[i + 2] = four.z, x[i + 3] = four.w;
    }
  } else {
#pragma unroll
    for (int i = 0; i < COUNT; i++) x[i] = i < n ? from[i] : 0;
  }
}

/* Some that stand in such places of a line. */
__device__ __forceinline__ void load_places(const float *line, const int32_t *places, int64_t n, float (&x)[4]) {
#pragma unroll
  for (int i = 0; i < 4; i++) x[i] = i < n ? line[places[i]] : 0;
}

/* The same of a structured operand, from float `first` of line `line` on: what is not stored is
 * read where it is mirrored. */
template <int COUNT, bool COMPLEX>
__device__ __forceinline__ void load_structured(const ws_slice_operand &op, const float *from, int64_t line, int64_t first,
                                                int64_t n, float (&x)[COUNT]) {
  constexpr int unit = COMPLEX ? 2 : 1;
  const bool is_triangular = op.structure >= WS_TRIANGULAR;
  const int64_t begin = first / unit, end = begin + (ws_min(n, COUNT) - 1) / unit;
  const bool is_stored = op.stored_upper ? end < line : begin > line, is_other = op.stored_upper ? begin > line : end < line;
  if (is_stored || n <= 0) return load_neighbours(from + line * op.ld + first, n, op.vectors, x);
#pragma unroll
  for (int i = 0; i < COUNT; i++) x[i] = 0;
  if (is_other && is_triangular) return;
#pragma unroll
  for (int i = 0; i < COUNT; i++) {
    const int64_t place = (first + i) / unit;
    const int part = COMPLEX ? i % 2 : 0;
    if (i >= n) continue;
    const bool is_here = op.stored_upper ? place <= line : place >= line, is_diagonal = place == line;
    if (is_diagonal && op.structure == WS_UNIT_TRIANGULAR)
      x[i] = part == 0;
    else if (is_here && !(is_diagonal && part == 1 && op.structure == WS_HERMITIAN))
      x[i] = from[line * op.ld + first + i];
    else if (!is_here && !is_triangular)
      x[i] = from[place * op.ld + line * unit + part] * (part == 1 && op.structure == WS_HERMITIAN ? -1.0f : 1.0f);
  }
}

/* Of any operand; STRUCTURED: it may be one of those. */
template <bool STRUCTURED, bool COMPLEX, int COUNT>
__device__ __forceinline__ void load_line(const ws_slice_operand &op, const float *from, int64_t line, int64_t first, int64_t n,
                                          float (&x)[COUNT]) {
  if constexpr (STRUCTURED)
    if (op.structure != WS_GENERAL) return load_structured<COUNT, COMPLEX>(op, from, line, first, n, x);
  load_neighbours(from + line * op.ld + first, n, op.vectors, x);
}

/* Magnitudes are ordered as their bits are, NaN and infinity above all others. */
__device__ __forceinline__ uint32_t magnitude_bits(float x) { return __float_as_uint(x) & 0x7fffffff; }

/* ---- first pass ------------------------------------------------------------------------------ */

template <bool STRUCTURED, bool COMPLEX>
__device__ __forceinline__ void maxima_along_k(const ws_slice_operand &op, const slice_part &at) {
  const int lane = int(threadIdx.x) % 32;
  const int64_t x = at.x + threadIdx.x / 32, first = int64_t(at.chunk) * op.chunk_k, end = ws_min(first + op.chunk_k, op.n_k);
  if (x >= op.n_x) return;
  const float *from = op.from + at.product * op.stride;
  uint32_t most = 0;
#pragma unroll 4
  for (int64_t k = first + lane * 4; k < end; k += 128) {
    float four[4];
    load_line<STRUCTURED, COMPLEX>(op, from, x, k, end - k, four);
#pragma unroll
    for (int i = 0; i < 4; i++) most = max(most, magnitude_bits(four[i]));
  }
  most = __reduce_max_sync(~0u, most);
  if (lane == 0) op.maxima[(at.product * op.n_chunks + at.chunk) * op.maxima_pitch + x] = most;
}

template <bool STRUCTURED, bool COMPLEX>
__device__ __forceinline__ void maxima_along_x(const ws_slice_operand &op, const slice_part &at) {
  __shared__ uint32_t of_warp[WS_SLICE_LINES][WS_SLICE_X];
  const int lane = int(threadIdx.x) % 32, warp = int(threadIdx.x) / 32;
  const int64_t x = at.x + lane * 4, end = ws_min((int64_t(at.chunk) + 1) * op.chunk_k, op.n_k);
  const float *from = op.from + at.product * op.stride;
  uint32_t most[4] = {};
#pragma unroll 8
  for (int64_t k = int64_t(at.chunk) * op.chunk_k + warp; k < end; k += WS_SLICE_LINES) {
    float four[4];
    load_line<STRUCTURED, COMPLEX>(op, from, k, x, op.n_x - x, four);
#pragma unroll
    for (int i = 0; i < 4; i++) most[i] = max(most[i], magnitude_bits(four[i]));
  }
#pragma unroll
  for (int i = 0; i < 4; i++) of_warp[warp][lane * 4 + i] = most[i];
  __syncthreads();
  if (threadIdx.x < WS_SLICE_X && at.x + threadIdx.x < op.n_x) {
    uint32_t all = 0;
#pragma unroll
    for (int w = 0; w < WS_SLICE_LINES; w++) all = max(all, of_warp[w][threadIdx.x]);
    op.maxima[(at.product * op.n_chunks + at.chunk) * op.maxima_pitch + at.x + threadIdx.x] = all;
  }
  __syncthreads();
}

/* The second pass adds to scales and marks, so they begin as zeros. */
__device__ __forceinline__ void clear_marks(const ws_slice_operand &op) {
  const int64_t first = int64_t(worker_idx()) * blockDim.x + threadIdx.x, step = int64_t(n_workers()) * blockDim.x;
  for (int64_t i = first; i < op.n_batch * op.scales_pitch; i += step) op.scales[i] = 0;
  for (int64_t i = first; i < op.n_batch * op.groups_pitch; i += step) op.groups[i] = 0;
  for (int64_t i = first; op.listed && i < op.n_batch; i += step) op.listed[i * op.listed_pitch] = 0;
  if (first == 0) *op.state = {};
}

/* STRUCTURED: an operand may be; then COMPLEX, which does not matter else. */
template <bool STRUCTURED = false, bool COMPLEX = false> __device__ __forceinline__ void find_maxima(const ws_slice_args &args) {
  griddepcontrol_launch_dependents();
  griddepcontrol_wait(); /* for who wrote the operand, and for the product of the call before, which reads scales */
  const auto is_new = [](const ws_slice_operand &op) { return !op.is_again && !op.is_packed; };
  for (const ws_slice_operand &op : args.operand)
    if (op.n_batch > 0 && is_new(op)) clear_marks(op);
  const auto n_x = [&](const ws_slice_operand &op) { return is_new(op) ? op.n_x : 0; };
  for_each_slice_part<false>(args, n_x, [](const ws_slice_operand &op, const slice_part &at) {
    if (op.along_k)
      maxima_along_k<STRUCTURED, COMPLEX>(op, at);
    else
      maxima_along_x<STRUCTURED, COMPLEX>(op, at);
  });
}

/* ---- second pass ----------------------------------------------------------------------------- */

__device__ __forceinline__ bool is_finite_magnitude(uint32_t bits) { return bits < 0x7f800000; }

/* Calls body(row) for each x that the units are given of one in memory. */
template <class Body> __device__ __forceinline__ void for_each_given(const ws_slice_operand &op, int64_t x, Body body) {
  if (op.form == WS_SLICE_REALS) return body(x);
  const int64_t number = op.along_k ? x : x / 2;
  if (op.form == WS_SLICE_COMPLEX_B) return body(number);
  body(2 * number), body(2 * number + 1);
}

/* Whether two slices do not represent an x in memory. */
__device__ __forceinline__ bool needs_3(const ws_slice_operand &op, int64_t product, int64_t x) {
  const int64_t number = op.form == WS_SLICE_REALS || op.along_k ? x : x / 2;
  const int64_t given = op.form == WS_SLICE_COMPLEX_A ? 2 * number : number;
  return (op.scales[product * op.scales_pitch + given] & WS_SCALE_NEEDS_3) != 0;
}

/* Of four neighbours, of which some may not exist. */
__device__ __forceinline__ bool is_any_needed(const ws_slice_operand &op, int64_t product, int64_t first) {
  bool is_any = false;
#pragma unroll
  for (int i = 0; i < 4; i++) is_any |= first + i < op.n_x && needs_3(op, product, first + i);
  return is_any;
}

/* One more, of what the units are given. */
__device__ __forceinline__ void list_one(const ws_slice_operand &op, int64_t product, int64_t given) {
  const bool is_pair = op.form == WS_SLICE_COMPLEX_A;
  if (!op.listed || (is_pair && given % 2 != 0)) return;
  int32_t *const listed = op.listed + product * op.listed_pitch;
  listed[1 + atomicAdd(listed, 1)] = int32_t(is_pair ? given / 2 : given);
}

/* One x of a product; every thread may say so. */
__device__ __forceinline__ void mark(const ws_slice_operand &op, int64_t product, int64_t x, int marks) {
  for_each_given(op, x, [&](int64_t given) {
    const int before = atomicOr(op.scales + product * op.scales_pitch + given, marks);
    if (marks & ~before & WS_SCALE_NEEDS_3) {
      atomicAdd(&op.state->n_needs_3, 1);
      op.groups[product * op.groups_pitch + given / WS_SLICE_GROUP] = 1;
      list_one(op, product, given);
    }
    if (marks & ~before & WS_SCALE_NEEDS_FP32) atomicAdd(&op.state->n_needs_fp32, 1);
  });
}

constexpr int fp32_marks = WS_SCALE_NEEDS_3 | WS_SCALE_NEEDS_FP32;
/* What follows when slices do not represent an element. */
template <int SLICES> constexpr int marks_of = SLICES == 2 ? int(WS_SCALE_NEEDS_3) : fp32_marks;

/* By one thread for each x of an operand, in the first of its passes that split. */
__device__ __forceinline__ void tell_scale(const ws_slice_operand &op, int64_t product, int64_t x, uint32_t most) {
  for_each_given(op, x, [&](int64_t given) { /* others may be marking it */
                                             atomicAdd(op.scales + product * op.scales_pitch + given,
                                                       WS_SCALE_BIAS - ws_slice_exponent(most));
  });
  if (!is_finite_magnitude(most)) mark(op, product, x, fp32_marks);
}

/* Two numbers as 16 bits each, the first in the lower half, and these as floats again. */
template <bool BF16> __device__ __forceinline__ uint32_t rounded_pair(const float (&x)[2], float (&rounded)[2]) {
  const uint32_t pair = BF16 ? bf16x2_of(x[0], x[1]) : f16x2_of(x[0], x[1]);
#pragma unroll
  for (int i = 0; i < 2; i++) {
    const uint16_t bits = uint16_t(pair >> 16 * i);
    rounded[i] = BF16 ? float_of_bf16(bits) : float_of_f16(bits);
  }
  return pair;
}

/* Slices of two neighbours, scaled, in the lower and upper half of each word. All differences are
 * exact. */
template <int SLICES> __device__ __forceinline__ void split_two(const float *y, uint32_t (&slice)[SLICES]) {
  float rest[2] = {y[0], y[1]}, rounded[2];
#pragma unroll
  for (int s = 0; s < SLICES; s++) {
    if constexpr (SLICES == 3) {
      slice[s] = rounded_pair<true>(rest, rounded);
      rest[0] -= rounded[0], rest[1] -= rounded[1];
    } else {
      slice[s] = rounded_pair<false>(rest, rounded);
      rest[0] = (rest[0] - rounded[0]) * 2048, rest[1] = (rest[1] - rounded[1]) * 2048;
    }
  }
}

/* Where a thread's slices go: four neighbours of a line at a time. */
struct slice_place {
  uint16_t *to;       /* NULL: nowhere */
  int64_t plane, row; /* from slice to slice; from line to line, where a number takes two */
  int form, along_k;
  uint32_t conjugated; /* its sign */
  static constexpr uint32_t sign = 0x8000;

  /* From float `first` of a line on. */
  __device__ __forceinline__ slice_place(const ws_slice_operand &op, int64_t product, int n_slices, int64_t line, int64_t first)
      : plane(op.n_lines * op.pitch), row(op.pitch), form(op.form), along_k(op.along_k), conjugated(op.conj ? sign : 0) {
    to = op.to ? op.to + product * n_slices * plane + line * next_line() + (is_b_along_x() ? first / 2 : first) : nullptr;
  }
  __device__ __forceinline__ bool is_b_along_x() const { return form == WS_SLICE_COMPLEX_B && !along_k; }
  /* From one line in memory to the next. */
  __device__ __forceinline__ int64_t next_line() const { return form == WS_SLICE_COMPLEX_A || is_b_along_x() ? 2 * row : row; }

  static __device__ __forceinline__ void put_four(uint16_t *at, uint32_t first, uint32_t second) {
    *reinterpret_cast<uint2 *>(at) = {first, second};
  }

  /* Pairs of a slice, so far on. */
  template <bool COMPLEX> __device__ __forceinline__ void put(int64_t offset, uint32_t first, uint32_t second) const {
    uint16_t *const at = to + offset;
    if constexpr (!COMPLEX)
      put_four(at, first, second);
    else
      put_numbers(at, first, second);
  }

private:
  static __device__ __forceinline__ uint32_t swapped(uint32_t pair) { return __byte_perm(pair, 0, 0x1032); }
  /* Pairs (re, im). */
  __device__ __forceinline__ void put_numbers(uint16_t *at, uint32_t first, uint32_t second) const {
    if (form == WS_SLICE_COMPLEX_A) {
      /* Two rows for a line of k, two k for a line of rows: one of these has the minus where the
       * other has the plus. */
      const uint32_t above = conjugated ^ (along_k ? sign : 0), below = above ^ sign;
      put_four(at, first ^ above << 16, second ^ above << 16);
      put_four(at + row, swapped(first) ^ below, swapped(second) ^ below);
    } else if (along_k) {
      put_four(at, first ^ conjugated << 16, second ^ conjugated << 16);
    } else {
      *reinterpret_cast<uint32_t *>(at) = __byte_perm(first, second, 0x5410);
      *reinterpret_cast<uint32_t *>(at + row) = __byte_perm(first, second, 0x7632) ^ (conjugated | conjugated << 16);
    }
  }
};

/* Splits four neighbours; notes which of them their slices do not represent. */
template <int SLICES, bool COMPLEX>
__device__ __forceinline__ void split_four(const slice_place &place, int64_t offset, const float (&x)[4], const float (&scale)[4],
                                           bool (&fit)[4]) {
  float y[4];
#pragma unroll
  for (int j = 0; j < 4; j++) y[j] = x[j] * scale[j], fit[j] = fit[j] & ws_slices_stand_for(SLICES, x[j], y[j]);
  if (SLICES == 3 && !place.to) return;
  uint32_t slice[2][SLICES];
#pragma unroll
  for (int h = 0; h < 2; h++) split_two(y + 2 * h, slice[h]);
#pragma unroll
  for (int s = 0; s < SLICES; s++) place.template put<COMPLEX>(offset + s * place.plane, slice[0][s], slice[1][s]);
}

/* Rows of k, or pieces of a line, of which a thread has its elements on their way at a time. */
constexpr int n_ahead = 4;

/* Of which x of an operand slices are made, and where: of all; of those that need three, in their places, or one behind the other
 * (ws_slices_are_gathered). */
enum slice_choice { of_all_x, of_those_in_place, of_those_gathered };

template <int SLICES, bool COMPLEX, bool STRUCTURED>
__device__ __forceinline__ void slice_along_k(const ws_slice_operand &op, const slice_part &at, slice_choice choice) {
  const int lane = int(threadIdx.x) % 32;
  const int64_t line = at.x + threadIdx.x / 32, first = int64_t(at.chunk) * op.chunk_k, end = ws_min(first + op.chunk_k, op.n_k);
  int64_t x = line;
  if (SLICES == 3 && choice == of_those_gathered) {
    const int32_t *const listed = op.listed + at.product * op.listed_pitch;
    if (line >= listed[0]) return;
    x = listed[1 + line];
  }
  if (x >= op.n_x || (SLICES == 3 && choice == of_those_in_place && !needs_3(op, at.product, x))) return;
  const uint32_t of_chunk = lane < op.n_chunks ? op.maxima[(at.product * op.n_chunks + lane) * op.maxima_pitch + x] : 0;
  const uint32_t most = __reduce_max_sync(~0u, of_chunk);
  const float factor = power_of_two(ws_slice_exponent(most)), scale[4] = {factor, factor, factor, factor};
  if (SLICES < 3 && !op.is_again && at.chunk == 0 && lane == 0) tell_scale(op, at.product, x, most);
  const float *from = op.from + at.product * op.stride;
  const slice_place place(op, at.product, SLICES, line, 0);
  bool fit[4] = {true, true, true, true};
#pragma unroll 1
  for (int64_t k = first + lane * 4; k < end; k += n_ahead * 128) {
    float four[n_ahead][4];
#pragma unroll
    for (int a = 0; a < n_ahead; a++) load_line<STRUCTURED, COMPLEX>(op, from, x, k + a * 128, end - k - a * 128, four[a]);
#pragma unroll
    for (int a = 0; a < n_ahead; a++)
      if (k + a * 128 < end) split_four<SLICES, COMPLEX>(place, k + a * 128, four[a], scale, fit);
  }
  if (!(fit[0] & fit[1] & fit[2] & fit[3])) mark(op, at.product, x, marks_of<SLICES>);
}

template <int SLICES, bool COMPLEX, bool STRUCTURED>
__device__ __forceinline__ void slice_along_x(const ws_slice_operand &op, const slice_part &at, slice_choice choice) {
  constexpr int unit = COMPLEX ? 2 : 1;
  __shared__ uint32_t most[2][WS_SLICE_X];
  __shared__ int32_t places[SLICES == 3 ? WS_SLICE_X : 1]; /* gathered: of these x */
  const bool is_gathered = SLICES == 3 && choice == of_those_gathered;
  const int t = int(threadIdx.x), half = t / WS_SLICE_X, own = t % WS_SLICE_X, x = t % 32 * 4;
  int64_t n_x = op.n_x, own_x = at.x + own;
  bool is_needed = true; /* one of four neighbours */
  if (is_gathered) {
    const int32_t *const listed = op.listed + at.product * op.listed_pitch;
    n_x = int64_t(listed[0]) * unit;
    if (at.x >= n_x) return;
    if (own_x < n_x) own_x = int64_t(listed[1 + own_x / unit]) * unit + own_x % unit;
    if (half == 0) places[own] = int32_t(own_x);
  } else if (SLICES == 3 && choice == of_those_in_place) {
    is_needed = is_any_needed(op, at.product, at.x + x);
    if (!__syncthreads_or(is_needed)) return;
  }
  uint32_t of_chunks = 0;
  if (at.x + own < n_x) {
    const uint32_t *maxima = op.maxima + at.product * op.n_chunks * op.maxima_pitch + own_x;
#pragma unroll 8
    for (int c = half; c < op.n_chunks; c += 2) of_chunks = max(of_chunks, maxima[c * op.maxima_pitch]);
  }
  most[half][own] = of_chunks;
  __syncthreads();
  const auto most_of = [&](int i) { return max(most[0][i], most[1][i]); };
  /* Of a complex number the larger of its parts. */
  const auto most_at = [&](int i) { return COMPLEX ? max(most_of(i & ~1), most_of(i | 1)) : most_of(i); };
  const bool is_told = t < WS_SLICE_X && at.x + t < n_x && !(COMPLEX && t % 2 != 0);
  if (SLICES < 3 && !op.is_again && at.chunk == 0 && is_told) tell_scale(op, at.product, at.x + t, most_at(t));
  const int64_t n = n_x - at.x - x, end = ws_min((int64_t(at.chunk) + 1) * op.chunk_k, op.n_k);
  const float *from = op.from + at.product * op.stride;
  if (n > 0 && is_needed) {
    float scale[4];
    bool fit[4] = {true, true, true, true};
#pragma unroll
    for (int i = 0; i < 4; i++) scale[i] = power_of_two(ws_slice_exponent(most_at(x + i)));
    const int64_t k_first = int64_t(at.chunk) * op.chunk_k + t / 32;
    const slice_place place(op, at.product, SLICES, k_first, at.x + x);
    const auto load = [&](int64_t row, int64_t n_wanted, float(&four)[4]) {
      if constexpr (SLICES == 3)
        if (is_gathered) return load_places(from + row * op.ld, places + x, n_wanted, four);
      load_line<STRUCTURED, COMPLEX>(op, from, row, at.x + x, n_wanted, four);
    };
    const int64_t next = WS_SLICE_LINES * place.next_line();
    int64_t offset = 0;
#pragma unroll 1
    for (int64_t k = k_first; k < end; k += n_ahead * WS_SLICE_LINES) {
      float four[n_ahead][4];
#pragma unroll
      for (int a = 0; a < n_ahead; a++) {
        const int64_t row = k + a * WS_SLICE_LINES;
        load(row, row < end ? n : 0, four[a]);
      }
#pragma unroll
      for (int a = 0; a < n_ahead; a++, offset += next)
        if (k + a * WS_SLICE_LINES < end) split_four<SLICES, COMPLEX>(place, offset, four[a], scale, fit);
    }
#pragma unroll
    for (int i = 0; i < 4; i++)
      if (!fit[i]) mark(op, at.product, is_gathered ? places[SLICES == 3 ? x + i : 0] : at.x + x + i, marks_of<SLICES>);
  }
  __syncthreads();
}

/* Of three slices. What is only tried (no `to`) is tried of those alone; else all x are multiplied with what needs three of the other
 * operand, if that has any, or is the same. */
__device__ __forceinline__ slice_choice choice_of(const ws_slice_operand &op, const ws_slice_operand &other) {
  if (!op.to) return of_those_in_place;
  if (other.n_batch == 0 || other.state->n_needs_3 > 0) return of_all_x;
  return ws_slices_are_gathered(op.listed, op.state, other.state, op.n_counted) ? of_those_gathered : of_those_in_place;
}

/* COMPLEX: both operands are of complex numbers. Three slices only if something needs them. */
template <int SLICES, bool COMPLEX, bool STRUCTURED = false>
__device__ __forceinline__ void split_slices(const ws_slice_args &args) {
  griddepcontrol_launch_dependents();
  griddepcontrol_wait(); /* for the first pass; for the product of two slices */
  if constexpr (SLICES == 3) {
    uint32_t n_needs_3 = 0;
    for (const ws_slice_operand &op : args.operand)
      if (op.n_batch > 0) n_needs_3 += op.state->n_needs_3;
    if (worker_idx() == 0 && threadIdx.x < 2) {
      const ws_slice_operand &op = args.operand[threadIdx.x];
      if (op.n_batch > 0 && !op.is_packed) op.state->has_three = n_needs_3 > 0;
    }
    if (n_needs_3 == 0) return;
  }
  /* Of an operand that was split before: if all of it needs three slices, these are there and are
   * all that is needed; else they may be where two should. */
  const auto needs = [](const ws_slice_operand &op) {
    if (SLICES < 3 && op.is_packed) return false;
    if (!op.is_again) return true;
    const bool all_need_3 = op.state->n_needs_3 == op.n_counted;
    return !all_need_3 && (SLICES == 3 || op.state->has_three);
  };
  slice_choice choices[2] = {of_all_x, of_all_x};
  if constexpr (SLICES == 3)
    for (int i = 0; i < 2; i++)
      if (args.operand[i].n_batch > 0) choices[i] = choice_of(args.operand[i], args.operand[1 - i]);
  const auto choice_for = [&](const ws_slice_operand &op) { return choices[&op == &args.operand[0] ? 0 : 1]; };
  const auto n_x = [&](const ws_slice_operand &op) -> int64_t {
    if (!needs(op)) return 0;
    /* of one product there are as many at most, and of a complex number two floats */
    return choice_for(op) == of_those_gathered ? ws_min(op.n_x, 2 * int64_t(op.state->n_needs_3)) : op.n_x;
  };
  for_each_slice_part<true>(args, n_x, [&](const ws_slice_operand &op, const slice_part &at) {
    if (op.along_k)
      slice_along_k<SLICES, COMPLEX, STRUCTURED>(op, at, choice_for(op));
    else
      slice_along_x<SLICES, COMPLEX, STRUCTURED>(op, at, choice_for(op));
  });
}

/* ---- for multiply-adds ----------------------------------------------------------------------- */

template <bool COMPLEX> __device__ __forceinline__ void expand_structured(const ws_expand_args &args) {
  const ws_slice_operand &op = args.operand;
  if (args.state[0]->n_needs_fp32 + args.state[1]->n_needs_fp32 == 0) return;
  const int64_t length = op.along_k ? op.n_k : op.n_x, n_lines = op.along_k ? op.n_x : op.n_k, n_fours = ws_ceil_div(length, 4);
  for (int64_t at = worker_idx() * int64_t(blockDim.x) + threadIdx.x; at < op.n_batch * n_lines * n_fours;
       at += int64_t(n_workers()) * blockDim.x) {
    const int64_t first = at % n_fours * 4, row = at / n_fours, line = row % n_lines, product = row / n_lines;
    float x[4];
    load_structured<4, COMPLEX>(op, op.from + product * op.stride, line, first, length - first, x);
    *reinterpret_cast<float4 *>(args.to + row * args.pitch + first) = {x[0], x[1], x[2], x[3]};
  }
}

} // namespace ws
#endif
