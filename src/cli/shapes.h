/* shapes.h - the sizes that a command is to work on, from one word of the command line: sets by
 * name, single shapes, files. */
#ifndef WSGEMM_CLI_SHAPES_H
#define WSGEMM_CLI_SHAPES_H

#include <stdint.h>

/* op(A) is m x k, op(B) is k x n. */
typedef struct ws_shape {
  int64_t m, n, k;
} ws_shape;

/* Grows as shapes are added; `at` is to be freed. */
typedef struct ws_shapes {
  ws_shape *at;
  int n;
} ws_shapes;

/* Adds what a list, separated by commas, names: a set, random:COUNT[:SEED], MxNxK, N (a square), or
 * a file with a shape a line. A shape that is there already is not added again. Returns an exit
 * code, what is wrong has been printed in the command's name; then `list` holds what came
 * before. */
int ws_shapes_add(ws_shapes *list, const char *command, const char *text);

/* A line for each set, indented, for a command's help. */
void ws_shapes_print_sets(void);

#endif
