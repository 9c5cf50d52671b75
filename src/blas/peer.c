/* peer.c - the other BLAS: the one that does Level 1 and 2.
 *
 * Looked for on first need: never as this library is loaded, so a program that needs no Level 1 and
 * 2 loads no second BLAS. In this order: the file that WSGEMM_BLAS_LIBRARY names; a library that the
 * program has loaded behind this one (so preloaded, this library leaves the program its own);
 * OpenBLAS, BLIS, then the reference BLAS where Debian and others keep them. A file that turns out
 * to be this library, under whatever name, is passed over: as libblas.so.3 it would find itself. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "blas/blas.h"

/* Tells this library from others. */
WS_BLAS_EXPORT int wsgemm_blas_version(void);
int wsgemm_blas_version(void) { return WSGEMM_VERSION; }

/* What every BLAS has. */
static const char known_symbol[] = "daxpy_";

#if defined(__x86_64__)
#define TRIPLET "x86_64-linux-gnu"
#elif defined(__aarch64__)
#define TRIPLET "aarch64-linux-gnu"
#else
#define TRIPLET "."
#endif

static const char *const places[] = {
    "/usr/lib/" TRIPLET "/openblas-pthread/libblas.so.3",
    "/usr/lib/" TRIPLET "/openblas-openmp/libblas.so.3",
    "/usr/lib/" TRIPLET "/openblas-serial/libblas.so.3",
    "/usr/lib/" TRIPLET "/blis-pthread/libblas.so.3",
    "/usr/lib/" TRIPLET "/blis-openmp/libblas.so.3",
    "/usr/lib/" TRIPLET "/blis-serial/libblas.so.3",
    "/usr/lib/" TRIPLET "/blas/libblas.so.3",
    "libopenblas.so.0",
    "libblas.so.3",
    "libcblas.so.3",
    "libmkl_rt.so.2",
    "libmkl_rt.so.1",
};
enum { N_PLACES = sizeof places / sizeof places[0] };

static pthread_once_t once = PTHREAD_ONCE_INIT;
static void *peer; /* RTLD_NEXT: what is loaded behind this library */
static char text[512] =
    "there is no other BLAS: install one (Debian: libopenblas0 or libblas3), or name its file in WSGEMM_BLAS_LIBRARY";

static bool is_this_library(void *handle) { return dlsym(handle, "wsgemm_blas_version") != NULL; }

/* Opens a file if it is another BLAS. */
static void *open_blas(const char *file) {
  void *const handle = dlopen(file, RTLD_LAZY | RTLD_LOCAL);
  if (!handle) return NULL;
  if (is_this_library(handle) || !dlsym(handle, known_symbol)) {
    dlclose(handle);
    return NULL;
  }
  snprintf(text, sizeof text, "%s has no such function", file);
  return handle;
}

/* The symbol's owner behind this library, unless that is another copy of it. */
static bool has_next(void) {
  void *const function = dlsym(RTLD_NEXT, known_symbol);
  Dl_info info;
  if (!function || !dladdr(function, &info)) return false;
  void *const handle = dlopen(info.dli_fname, RTLD_LAZY | RTLD_LOCAL | RTLD_NOLOAD);
  const bool is_copy = handle && is_this_library(handle);
  if (handle) dlclose(handle);
  if (is_copy) return false;
  snprintf(text, sizeof text, "%s has no such function", info.dli_fname);
  return true;
}

static void find_blas(void) {
  const char *const wanted = secure_getenv("WSGEMM_BLAS_LIBRARY");
  if (wanted && *wanted) {
    peer = open_blas(wanted);
    if (!peer) snprintf(text, sizeof text, "WSGEMM_BLAS_LIBRARY=%s is not a BLAS that can be loaded", wanted);
    return;
  }
  if (has_next()) {
    peer = RTLD_NEXT;
    return;
  }
  for (int i = 0; i < N_PLACES && !peer; i++) peer = open_blas(places[i]);
}

/* What ws_blas_limit_peer was told last; 0: nothing. */
static atomic_int peer_limit;
static atomic_bool is_found;

/* OpenBLAS's openblas_set_num_threads() calls its goto_set_num_threads() by name, which leads back to
 * this library's: so the latter is called, and a call that comes back all the same ends here. */
static void limit_threads(void *library, int n_threads) {
  static _Thread_local bool is_inside;
  void (*set)(int);
  *(void **)&set = dlsym(library, "goto_set_num_threads"); /* as POSIX has it */
  if (!set) *(void **)&set = dlsym(library, "openblas_set_num_threads");
  if (!set || is_inside) return;
  is_inside = true;
  set(n_threads);
  is_inside = false;
}

/* A limit that is set meanwhile is set here, or by its own thread, or by both. */
static void find_peer(void) {
  find_blas();
  atomic_store(&is_found, true);
  const int n_threads = atomic_load(&peer_limit);
  if (peer && n_threads > 0) limit_threads(peer, n_threads);
}

void ws_blas_limit_peer(int n_threads) {
  atomic_store(&peer_limit, n_threads);
  void *const openblas = dlopen("libopenblas.so.0", RTLD_LAZY | RTLD_LOCAL | RTLD_NOLOAD);
  if (atomic_load(&is_found) && peer)
    limit_threads(peer, n_threads);
  else /* the program's own, if this library is preloaded */
    limit_threads(openblas ? openblas : RTLD_NEXT, n_threads);
  if (openblas) dlclose(openblas);
}

/* RTLD_NEXT is (void *)-1, never NULL. */
void *ws_blas_peer_function(const char *name) {
  pthread_once(&once, find_peer);
  return peer ? dlsym(peer, name) : NULL;
}

const char *ws_blas_peer_text(void) { return text; }
