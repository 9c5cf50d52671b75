/* lookup.c - what dlsym answers for the names of cuBLAS: this library's entry point where it has one and the
 * function is one of a real cuBLAS, else what it is.
 *
 * Handles that are made by a function that dlsym found are made by the library that it was found in: so the
 * functions that make handles are another for each library (handles.c). All others go by their handle. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <string.h>

#include "cublas/cublas.h"

static const ws_cublas_any entries[WS_CUBLAS_N_FUNCTIONS] = {
#define ENTRY(symbol) [WS_##symbol] = (ws_cublas_any)symbol,
#include "cublas/entries.def"
#undef ENTRY
};

static ws_cublas_any entry_of(const char *name, ws_cublas_function *function) {
  for (int f = 0; f < WS_CUBLAS_N_FUNCTIONS; f++)
    if (entries[f] && strcmp(name, ws_cublas_names[f]) == 0) return *function = (ws_cublas_function)f, entries[f];
  return NULL;
}

/* Others that define a name of cuBLAS (a program that has it built in, say) mean themselves. */
static bool is_in_cublas(const void *address) {
  Dl_info info;
  if (!dladdr(address, &info) || !info.dli_fname) return false;
  const char *const slash = strrchr(info.dli_fname, '/');
  return strncmp(slash ? slash + 1 : info.dli_fname, "libcublas", 9) == 0;
}

void *ws_cublas_look_up(void *library, const char *name) {
  void *const real = ws_cublas_true_dlsym()(library, name);
  if (!real) return NULL;
  ws_cublas_read_settings(); /* the caller may be a constructor that comes before ours */
  if (ws_cublas_settings_now.is_off) return real;
  ws_cublas_function function;
  const ws_cublas_any entry = entry_of(name, &function);
  if (!entry || !is_in_cublas(real)) return real;
  const int number = ws_cublas_number_of(function, real);
  dlerror(); /* of the search for the library's file, which the caller knows nothing of */
  if (number < 0) return real;
  const ws_cublas_any create = ws_cublas_create_of(function, number);
  void *found;
  memcpy(&found, create ? &create : &entry, sizeof found);
  return found;
}
