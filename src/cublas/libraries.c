/* libraries.c - the real cuBLAS and cuBLASLt, of which a process may have loaded several versions.
 *
 * This library stands before them in the search for symbols, so each of their names leads here first.
 * The real function of a handle is the one of the library that made it: the one in which dlsym found
 * cublasCreate (lookup.c), or known by the code that called it by name, whose own dependencies are
 * searched, which this library is not among. Else it is the process's first: the one behind this library,
 * or if it was loaded with RTLD_LOCAL (Python's extensions) the one that is loaded under one of the names
 * below, or the first that dlsym found. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "cublas/cublas.h"

const char *const ws_cublas_names[WS_CUBLAS_N_FUNCTIONS] = {
#define FUNCTION(symbol) #symbol,
#include "cublas/functions.def"
#undef FUNCTION
};

typedef enum kind { BLAS, LT, N_KINDS } kind;

struct ws_cublas_library {
  void *handle; /* dlopen's, or RTLD_NEXT */
  const void *base;
  kind kind;
  _Atomic(void *) functions[WS_CUBLAS_N_FUNCTIONS];
};

static const char *const files[N_KINDS][3] = {{"libcublas.so.13", "libcublas.so.12", "libcublas.so.11"},
                                              {"libcublasLt.so.13", "libcublasLt.so.12", "libcublasLt.so.11"}};
static const char *const known[N_KINDS] = {"cublasCreate_v2", "cublasLtCreate"};

static ws_cublas_library libraries[WS_CUBLAS_N_LIBRARIES];
static atomic_int n_libraries;
static _Atomic(ws_cublas_library *) first[N_KINDS];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static kind kind_of(ws_cublas_function function) { return strncmp(ws_cublas_names[function], "cublasLt", 8) == 0 ? LT : BLAS; }

static bool is_in(const void *base, const void *address) {
  Dl_info info;
  return address && dladdr(address, &info) && info.dli_fbase == base;
}
static bool is_here(const void *address) {
  Dl_info here;
  return dladdr((const void *)&libraries, &here) && is_in(here.dli_fbase, address);
}

static void *look_up(void *handle, const char *name) { return ws_cublas_true_dlsym()(handle, name); }

static ws_cublas_library *library_of_base(const void *base) {
  const int n = atomic_load_explicit(&n_libraries, memory_order_acquire);
  for (int i = 0; i < n; i++)
    if (libraries[i].base == base) return &libraries[i];
  return NULL;
}

/* The record of the library that has this function. `handle` serves where the library cannot be opened
 * again, NULL: none does. The loader's lock comes before this one: constructors may call dlsym. */
static ws_cublas_library *library_with(void *function, kind kind, void *handle) {
  Dl_info info;
  if (!function || is_here(function) || !dladdr(function, &info)) return NULL;
  ws_cublas_library *found = library_of_base(info.dli_fbase);
  if (found) return found;
  void *const own = dlopen(info.dli_fname, RTLD_LAZY | RTLD_LOCAL | RTLD_NOLOAD);
  const bool is_own = own && is_in(info.dli_fbase, look_up(own, known[kind])); /* not its copy in another namespace */
  if (is_own) handle = own;
  if (own && !is_own) dlclose(own);
  pthread_mutex_lock(&lock);
  const int n = atomic_load(&n_libraries);
  found = library_of_base(info.dli_fbase);
  if (!found && handle && n < WS_CUBLAS_N_LIBRARIES) {
    found = &libraries[n];
    found->handle = handle, found->base = info.dli_fbase, found->kind = kind;
    atomic_store_explicit(&n_libraries, n + 1, memory_order_release);
  }
  pthread_mutex_unlock(&lock);
  return found;
}

int ws_cublas_number_of(ws_cublas_function function, void *real) {
  const ws_cublas_library *const l = library_with(real, kind_of(function), NULL);
  return l ? (int)(l - libraries) : -1;
}
ws_cublas_library *ws_cublas_library_at(int number) { return &libraries[number]; }

static ws_cublas_library *open_library(const char *file, kind kind, int flags) {
  void *const handle = dlopen(file, RTLD_LAZY | RTLD_LOCAL | flags);
  return handle ? library_with(look_up(handle, known[kind]), kind, handle) : NULL;
}

static ws_cublas_library *first_known(kind kind) {
  const int n = atomic_load_explicit(&n_libraries, memory_order_acquire);
  for (int i = 0; i < n; i++)
    if (libraries[i].kind == kind) return &libraries[i];
  return NULL;
}

/* Nothing that is not loaded is loaded while something of its kind is. */
static ws_cublas_library *first_library(kind kind) {
  ws_cublas_library *l = atomic_load_explicit(&first[kind], memory_order_acquire);
  if (l) return l;
  const int depth = ws_cublas_depth;
  ws_cublas_depth = depth + 1;
  l = library_with(look_up(RTLD_NEXT, known[kind]), kind, RTLD_NEXT);
  for (int i = 0; i < 3 && !l; i++) l = open_library(files[kind][i], kind, RTLD_NOLOAD);
  if (!l) l = first_known(kind);
  for (int i = 0; i < 3 && !l; i++) l = open_library(files[kind][i], kind, 0);
  ws_cublas_depth = depth;
  if (l) atomic_store_explicit(&first[kind], l, memory_order_release);
  return l;
}

ws_cublas_library *ws_cublas_library_of(ws_cublas_function function, const void *caller) {
  const kind kind = kind_of(function);
  Dl_info info;
  ws_cublas_library *found = NULL;
  if (dladdr(caller, &info) && info.dli_fname) {
    void *const handle = dlopen(info.dli_fname, RTLD_LAZY | RTLD_LOCAL | RTLD_NOLOAD);
    if (handle) found = library_with(look_up(handle, known[kind]), kind, handle);
  }
  return found ? found : first_library(kind);
}

/* POSIX lets an object pointer hold a function's address, ISO C does not. */
static ws_cublas_any as_function(void *target) {
  ws_cublas_any function;
  memcpy(&function, &target, sizeof function);
  return function;
}

/* libcublas may be linked to a libcublasLt that its handle does not reach: then the first one serves. */
ws_cublas_any ws_cublas_function_of(ws_cublas_library *library, ws_cublas_function function) {
  ws_cublas_library *const l = library ? library : first_library(kind_of(function));
  if (!l) return NULL;
  void *target = atomic_load_explicit(&l->functions[function], memory_order_acquire);
  if (target) return as_function(target);
  target = look_up(l->handle, ws_cublas_names[function]);
  if (target && is_here(target)) target = NULL;
  if (!target && library && kind_of(function) == LT) return ws_cublas_function_of(NULL, function);
  if (target) atomic_store_explicit(&l->functions[function], target, memory_order_release);
  return as_function(target);
}
