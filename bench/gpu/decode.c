/* decode.c - see decode.h. A layer's weights are (outputs, inputs) by rows, as PyTorch keeps them,
 * and so are its tokens: Y = X W^T, which by columns is TN with the outputs as m, the tokens as n. */
#include "decode.h"

#include "bench/harness/random.h"

/* Projections of queries, keys and values together, of attention's output, of the MLP up (with its
 * gate) and down, as one GPU has them. */
static const struct layer {
  int outputs, inputs;
} layers_of_models[] = {
    {6144, 4096},  {4096, 4096},  {28672, 4096}, {4096, 14336}, {128256, 4096},                /* Llama 3 8B, with its head */
    {10240, 8192}, {8192, 8192},  {57344, 8192}, {8192, 28672},                                /* Llama 3 70B */
    {4608, 3584},  {3584, 3584},  {37888, 3584}, {3584, 18944},                                /* Qwen 2.5 7B */
    {2112, 7168},  {24576, 1536}, {32768, 512},  {7168, 16384}, {4096, 7168},   {7168, 2048}}; /* DeepSeek V3, with an expert */
static const int tokens[] = {1, 2, 4, 8, 16, 32};
enum { N_LAYERS = sizeof layers_of_models / sizeof layers_of_models[0], N_TOKENS = sizeof tokens / sizeof tokens[0] };
_Static_assert(N_LAYERS *N_TOKENS + DECODE_MOST_RANDOM <= DECODE_MOST, "all find room");

/* One of m and n from 1 to 256, the others from 1024 to 16384, log-uniform, all ops; every second
 * shape in multiples of 8. */
static shape draw_flat(uint64_t *state, int idx) {
  enum { FEW_MOST = 256, LEAST = 1024, MOST = 16384, ALIGNED = 8 };
  static const char *const ops[] = {"NN", "NT", "TN", "TT"};
  const int64_t step = idx % 2 ? 1 : ALIGNED;
  int64_t sizes[] = {ws_random_size(state, 1, FEW_MOST), ws_random_size(state, LEAST, MOST), ws_random_size(state, LEAST, MOST)};
  for (int i = 0; i < 3; i++) sizes[i] = (sizes[i] + step - 1) / step * step;
  const int few_are_m = (int)ws_random_below(state, 2);
  return (shape)SHAPE(ops[ws_random_below(state, 4)], sizes[!few_are_m], sizes[few_are_m], sizes[2]);
}

int decode_shapes(uint64_t seed, int n_random, shape to[DECODE_MOST]) {
  int count = 0;
  uint64_t state = seed;
  for (int l = 0; l < N_LAYERS; l++)
    for (int t = 0; t < N_TOKENS; t++)
      to[count++] = (shape)SHAPE("TN", layers_of_models[l].outputs, tokens[t], layers_of_models[l].inputs);
  for (int i = 0; i < n_random && i < DECODE_MOST_RANDOM; i++) to[count++] = draw_flat(&state, i);
  return count;
}
