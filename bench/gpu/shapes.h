/* shapes.h - what bench_gpu_gemm multiplies: shapes of its suites, and epilogues. */
#ifndef WSGEMM_BENCH_SHAPES_H
#define WSGEMM_BENCH_SHAPES_H
#include <stdbool.h>
#include <stdint.h>

#include "bench/harness/random_shapes.h"
#include "wsgemm.h"

typedef struct shape {
  const char *ops; /* "NN" */
  int64_t m, n, k;
  /* all lds are longer by so much; all matrices begin so many elements late */
  int64_t ld_more, shift;
  bool is_spread;                 /* elements of A and B are of many sizes */
  int64_t more_a, more_b, more_c; /* a single ld is longer by so much */
  const ws_random_shape *drawn;   /* what it was drawn as, or NULL */
} shape;

/* Points to the drawn one, and to its ops. */
static inline shape shape_of_drawn(const ws_random_shape *drawn, char ops[3]) {
  ops[0] = "NT"[drawn->transposed_a], ops[1] = "NT"[drawn->transposed_b], ops[2] = 0;
  return (shape){.ops = ops,
                 .m = drawn->m,
                 .n = drawn->n,
                 .k = drawn->k,
                 .more_a = drawn->more_a,
                 .more_b = drawn->more_b,
                 .more_c = drawn->more_c,
                 .drawn = drawn};
}

/* ops, m, n, k, and what else there is */
#define SHAPE(shape_ops, shape_m, shape_n, ...) \
  { .ops = shape_ops, .m = shape_m, .n = shape_n, .k = __VA_ARGS__ }
static const shape square[] = {
    SHAPE("NN", 256, 256, 256),     SHAPE("NN", 512, 512, 512),    SHAPE("NN", 1024, 1024, 1024), SHAPE("NN", 2048, 2048, 2048),
    SHAPE("NN", 2304, 2304, 2304),  SHAPE("NN", 3000, 3000, 3000), SHAPE("NN", 4096, 4096, 4096), SHAPE("NN", 5120, 5120, 5120),
    SHAPE("NN", 8192, 8192, 8192),  SHAPE("NN", 4097, 4095, 4093), SHAPE("NN", 128, 8192, 8192),  SHAPE("NN", 8192, 128, 8192),
    SHAPE("NN", 4096, 11008, 4096), SHAPE("NT", 4096, 4096, 4096), SHAPE("TN", 4096, 4096, 4096), SHAPE("TT", 4096, 4096, 4096)};
static const shape sliced[] = {SHAPE("NN", 1024, 1024, 1024), SHAPE("NN", 2048, 2048, 2048), SHAPE("NN", 4096, 4096, 4096),
                               SHAPE("NN", 8192, 8192, 8192), SHAPE("NN", 16384, 16384, 16384)};
static const shape spread[] = {SHAPE("NN", 2048, 2048, 2048, .is_spread = true), SHAPE("NN", 4096, 4096, 4096, .is_spread = true),
                               SHAPE("NN", 8192, 8192, 8192, .is_spread = true)};
static const shape packed[] = {SHAPE("NN", 16, 8192, 8192),    SHAPE("NN", 64, 8192, 8192),   SHAPE("NN", 128, 8192, 8192),
                               SHAPE("NN", 1024, 1024, 1024),  SHAPE("NN", 2048, 2048, 2048), SHAPE("NN", 4096, 4096, 4096),
                               SHAPE("NN", 4096, 11008, 4096), SHAPE("NN", 8192, 8192, 8192)};
static const shape skinny[] = {SHAPE("NN", 64, 64, 65536), SHAPE("NN", 16, 4096, 4096), SHAPE("NN", 1, 4096, 4096)};
/* 16-bit types */
static const shape half_square[] = {
    SHAPE("NN", 1024, 1024, 1024),    SHAPE("NN", 2048, 2048, 2048), SHAPE("NN", 2304, 2304, 2304), SHAPE("NN", 3072, 3072, 3072),
    SHAPE("NN", 4096, 4096, 4096),    SHAPE("NN", 5120, 5120, 5120), SHAPE("NN", 6144, 6144, 6144), SHAPE("NN", 8192, 8192, 8192),
    SHAPE("NN", 16384, 16384, 16384), SHAPE("NT", 4096, 4096, 4096), SHAPE("TN", 4096, 4096, 4096), SHAPE("TT", 4096, 4096, 4096),
    SHAPE("NN", 4096, 11008, 4096),   SHAPE("NN", 8192, 28672, 8192)};
static const shape half_odd[] = {SHAPE("NN", 4095, 4095, 4095),
                                 SHAPE("NT", 4095, 4095, 4095),
                                 SHAPE("TN", 4095, 4095, 4095),
                                 SHAPE("TT", 4095, 4095, 4095),
                                 SHAPE("NN", 4097, 4097, 4097),
                                 SHAPE("NT", 4097, 4097, 4097),
                                 SHAPE("TN", 4097, 4097, 4097),
                                 SHAPE("TT", 4097, 4097, 4097),
                                 SHAPE("NN", 4100, 4100, 4100),
                                 SHAPE("NT", 4100, 4100, 4100),
                                 SHAPE("TN", 4100, 4100, 4100),
                                 SHAPE("TT", 4100, 4100, 4100),
                                 SHAPE("NN", 4096, 4096, 4096, .ld_more = 1),
                                 SHAPE("NN", 4096, 4096, 4096, .shift = 1)};
static const shape half_skinny[] = {SHAPE("NN", 1, 4096, 4096),   SHAPE("NN", 16, 4096, 4096), SHAPE("NN", 64, 4096, 4096),
                                    SHAPE("NN", 128, 4096, 4096), SHAPE("NN", 1, 8192, 8192),  SHAPE("NN", 16, 8192, 8192),
                                    SHAPE("NN", 64, 8192, 8192),  SHAPE("NN", 128, 8192, 8192)};
static const shape demo[] = {SHAPE("NN", 1024, 1024, 1024), SHAPE("NN", 2048, 2048, 2048), SHAPE("NN", 4096, 4096, 4096)};
static const shape few[] = {SHAPE("NN", 1024, 1024, 1024), SHAPE("NN", 2048, 2048, 2048), SHAPE("NT", 4096, 4096, 4096),
                            SHAPE("NN", 4096, 4096, 4096), SHAPE("TN", 4096, 4096, 4096)};
/* Those of linear layers, C = X W^T by rows. */
static const shape layers[] = {SHAPE("NT", 4096, 4096, 4096), SHAPE("NT", 8192, 8192, 8192), SHAPE("NT", 4096, 11008, 4096)};

/* What is done to C beside the product. */
typedef struct epilogue {
  const char *name;
  wsgemm_epilogue activation;
  bool has_bias, has_residual, has_sums;
  double out_scale;
} epilogue;
static const epilogue epilogues[] = {
    {"relu", WSGEMM_EPILOGUE_RELU, .has_bias = true, .out_scale = 1},
    {"gelu_tanh", WSGEMM_EPILOGUE_GELU_TANH, .has_bias = true, .out_scale = 1},
    {"gelu_erf", WSGEMM_EPILOGUE_GELU_ERF, .has_bias = true, .out_scale = 1},
    {"silu", WSGEMM_EPILOGUE_SILU, .has_bias = true, .out_scale = 1},
    {"residual", WSGEMM_EPILOGUE_NONE, .has_residual = true, .out_scale = 1},
    {"out_scale", WSGEMM_EPILOGUE_NONE, .out_scale = 0.5},
    {"column_sums", WSGEMM_EPILOGUE_NONE, .has_sums = true, .out_scale = 1},
    {"all", WSGEMM_EPILOGUE_GELU_TANH, .has_bias = true, .has_residual = true, .has_sums = true, .out_scale = 0.5}};
enum { N_EPILOGUES = sizeof epilogues / sizeof epilogues[0] };

typedef struct shape_list {
  const shape *first;
  int count;
} shape_list;
#define LIST(shapes) \
  (shape_list) { shapes, sizeof shapes / sizeof shapes[0] }
#endif
