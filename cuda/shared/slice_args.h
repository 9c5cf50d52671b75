/* slice_args.h - arguments of the kernels that split operands of floats into slices of 16 bits
 * (slices.cuh). Shared by C and CUDA.
 *
 * A row of A, or a column of B (here: an x), is multiplied by the power of two that brings its
 * largest element into [2^14, 2^15). Of an element y after that
 *
 *   two slices    slice 0 = fp16(y), slice 1 = fp16((y - slice 0) 2^11):    y = slice 0 + 2^-11 slice 1, to 2^-22 |y| or to 2^-36
 *   three slices  each the bf16 of what those before it leave:               y = their sum, for |y| >= 2^-54 exactly
 *   one slice     fp16(y)
 *
 * An x needs 3 slices if two (or one) do not represent one of its elements (ws_slices_stand_for);
 * it needs FP32 if three do not, or if an element is no finite number. An element of C whose row or
 * column needs them comes from three slices, if one needs FP32 from multiply-adds of the floats
 * themselves (fallback.cuh), else from two. So its arithmetic depends on its own row and column
 * alone. */
#ifndef WS_CUDA_SLICE_ARGS_H
#define WS_CUDA_SLICE_ARGS_H
#include <stdint.h>

#include "core/tile.h"

/* How many x of an operand need 3 slices, and FP32; and whether three slices are where two were. */
typedef struct ws_slice_state {
  uint32_t n_needs_3, n_needs_fp32, has_three;
} ws_slice_state;

/* What the units are given of an operand. A product of complex numbers is for them one of reals: of
 * C's columns as they are, 2 m reals each.
 *
 *        [ re a  -im a ]         [ re b ]
 *   A:   [ im a   re a ]    B:   [ im b ]
 *
 * So of a complex A each row is two, which have the same scale and marks, and of A and B each k is
 * two. */
typedef enum ws_slice_form { WS_SLICE_REALS, WS_SLICE_COMPLEX_A, WS_SLICE_COMPLEX_B } ws_slice_form;

/* An operand that is not there has no products. Floats as they are in memory: line l of product p
 * begins at float p * stride + l * ld of `from`; a line is k of one x, or the x of one k. Slice s
 * of product p is the lines (p * n_slices + s) * n_lines + l of `pitch` elements of `to`. */
typedef struct ws_slice_operand {
  const float *from;
  uint16_t *to; /* NULL (three slices only): they are tried, and not kept */
  /* bits of the largest magnitude in chunk c of k: at [(p * n_chunks + c) * maxima_pitch + x] */
  uint32_t *maxima;
  /* Of what the units are given, at [p * scales_pitch + x]: WS_SCALE_BIAS - the exponent of the
   * factor, + WS_SCALE_NEEDS_3, + WS_SCALE_NEEDS_FP32. */
  int32_t *scales;
  /* likewise, at [p * groups_pitch + x / WS_SLICE_GROUP]: whether an x of the group needs 3
   * slices */
  int32_t *groups;
  /* Those that need 3 slices, rows of A or columns of B as they are numbered in memory, in any order: their number at
   * [p * listed_pitch], then they. NULL: there is no list. */
  int32_t *listed;
  ws_slice_state *state;
  int64_t n_x, n_k, n_batch, ld, stride; /* floats in memory */
  int64_t n_lines, pitch, maxima_pitch, scales_pitch, groups_pitch, listed_pitch;
  /* how many x of all products the state counts; of a packed operand there may be more than C
   * has */
  int64_t n_counted;
  int32_t form, conj; /* ws_slice_form; conj: of complex numbers */
  /* ws_structure; of all but GENERAL one triangle is read: numbers whose place in a line is at
   * most the line's number (upper), or at least */
  int32_t structure, stored_upper;
  int32_t along_k, vectors; /* vectors: lines begin where 16 bytes may be read at a time */
  /* split before, for another chunk of C: see split_slices for which of its slices are still
   * valid */
  int32_t is_again;
  /* split before, for other products also: the two slices are there, and nothing of its state
   * changes */
  int32_t is_packed;
  int32_t n_chunks; /* of chunk_k each, at most WS_SLICE_CHUNKS */
  int32_t chunk_k;  /* a multiple of 64 */
} ws_slice_operand;

typedef struct ws_slice_args {
  ws_slice_operand operand[2];
  int32_t n_slices;
} ws_slice_args;

/* Writes out a structured operand where multiply-adds of its floats are needed: in the memory of
 * its slices, whose turn is over, in lines of `pitch` floats, a multiple of 4. state: of both
 * operands; nothing is written if neither needs FP32. */
typedef struct ws_expand_args {
  ws_slice_operand operand;
  const ws_slice_state *state[2];
  float *to;
  int64_t pitch;
} ws_expand_args;

enum {
  WS_SCALE_BIAS = 512,
  WS_SCALE_NEEDS_3 = 1 << 20,
  WS_SCALE_NEEDS_FP32 = 1 << 24,
  WS_SLICE_CHUNKS = 32,
  WS_SLICE_GROUP = 64
};

/* The least |y| of a y != 0 that so many slices represent. A tensor core aligns the products of a
 * step by their exponent fields, and drops what lies more than 25 bits below the largest
 * (docs/numerics.md). A subnormal slice 0 has the field of 2^-14, however small it is, so with a
 * large partner it would cost all other products of the step their low bits, also where it
 * represents y exactly.
 *   one    slice 0 is a normal number, so it leaves out 2^-11 |y| at most
 *   two    slice 0 is at most one binary place below its field, and the two leave out 2^-21 |y| at most
 *   three  products of such y, and of their last slices, are normal floats */
static inline WS_HOST_DEVICE float ws_slice_least(int n_slices) {
  return n_slices == 1 ? 0x1p-14f : n_slices == 2 ? 0x1p-15f : 0x1p-54f;
}

/* x: an element; y: x times its scale, which may have made 0 of it. NaN has no slices. */
static inline WS_HOST_DEVICE int ws_slices_stand_for(int n_slices, float x, float y) {
  return (x == 0) | ((y < 0 ? -y : y) >= ws_slice_least(n_slices));
}

/* A row's (column's) factor is 2^exponent, -113 <= exponent <= 127, by the bits of its largest
 * magnitude. One without elements from 2^-113 on is left below 2^14 by it. */
static inline WS_HOST_DEVICE int ws_slice_exponent(uint32_t most) {
  const int exponent = 14 + 127 - (int)(most >> 23);
  return most == 0 || most >= 0x7f800000 ? 0 : exponent < 127 ? exponent : 127;
}

/* Whether three slices are of the listed x alone, as if there were no others (gathered): where no x of the other operand needs them, so
 * that C has no such elements elsewhere. If all do, they are left in their places, as a later chunk of C takes them so. */
static inline WS_HOST_DEVICE int ws_slices_are_gathered(const int32_t *listed, const ws_slice_state *own,
                                                        const ws_slice_state *other, int64_t n_counted) {
  return listed && other->n_needs_3 == 0 && 2 * (int64_t)own->n_needs_3 <= n_counted;
}

/* What a block takes at a time: so many x of a chunk if x are contiguous, else so many lines (one
 * for each warp). */
enum { WS_SLICE_THREADS = 256, WS_SLICE_X = 128, WS_SLICE_LINES = WS_SLICE_THREADS / 32 };

/* How many such groups so many x are. */
static inline WS_HOST_DEVICE int64_t ws_slice_groups(int64_t n_x, int along_k) {
  return ws_ceil_div(n_x, along_k ? WS_SLICE_LINES : WS_SLICE_X);
}
#endif
