/* entries.c - the entry points of cuBLAS: each is a row of routines.def, and looks as its family does in
 * entries.h. */
#include "cublas/entries.h"

#define ROUTINE(symbol, family, letter, integer) ENTRY_##family(symbol, letter, integer)
#include "cublas/routines.def"
