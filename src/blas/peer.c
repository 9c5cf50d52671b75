/* peer.c - the other BLAS: the one that does Level 1 and 2.
 *
 * Looked for on first need: never as this library is loaded, so a program that needs no Level 1 and
 * 2 loads no second BLAS. In this order: the file that WSGEMM_BLAS_LIBRARY names; a library that the
 * program has loaded behind this one (so preloaded, this library leaves the program its own);
 * OpenBLAS, BLIS, then the reference BLAS where Debian and others keep them. A file that turns out
 * to be this library, under whatever name, is passed over: as libblas.so.3 it would find itself.
 *
 * Names with 64 (daxpy_64_, cblas_daxpy_64) are asked of the same BLAS first. Where it has none, of
 * another one for them alone: the file that WSGEMM_BLAS64_LIBRARY names, then those that are called
 * libopenblas64_ (whose names have the suffix) and libblas64 (Debian's, whose names have none and take
 * 64-bit integers all the same). */
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

static const char *const places64[] = {
    "/usr/lib/" TRIPLET "/openblas64-pthread/libblas64.so.3",
    "/usr/lib/" TRIPLET "/openblas64-openmp/libblas64.so.3",
    "/usr/lib/" TRIPLET "/openblas64-serial/libblas64.so.3",
    "/usr/lib/" TRIPLET "/blis64-pthread/libblas64.so.3",
    "/usr/lib/" TRIPLET "/blis64-openmp/libblas64.so.3",
    "/usr/lib/" TRIPLET "/blis64-serial/libblas64.so.3",
    "/usr/lib/" TRIPLET "/blas64/libblas64.so.3",
    "libopenblas64_.so.0",
    "libopenblas64.so.0",
    "libblas64.so.3",
};
enum { N_PLACES64 = sizeof places64 / sizeof places64[0] };

static pthread_once_t once = PTHREAD_ONCE_INIT;
static void *peer; /* RTLD_NEXT: what is loaded behind this library */
static char text[512] =
    "there is no other BLAS: install one (Debian: libopenblas0 or libblas3), or name its file in WSGEMM_BLAS_LIBRARY";

static pthread_once_t once64 = PTHREAD_ONCE_INIT;
static void *peer64;
static bool has_suffix; /* peer64's names */
static char text64[512] =
    "there is no other BLAS with 64-bit integers: install one (Debian: libopenblas64-0 or libblas64-3), or name its file in "
    "WSGEMM_BLAS64_LIBRARY";

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

static void *open_blas64(const char *file) {
  void *const handle = dlopen(file, RTLD_LAZY | RTLD_LOCAL);
  if (!handle) return NULL;
  has_suffix = dlsym(handle, "daxpy_64_") != NULL;
  if (is_this_library(handle) || (!has_suffix && !dlsym(handle, known_symbol))) {
    dlclose(handle);
    return NULL;
  }
  snprintf(text64, sizeof text64, "%s has no such function", file);
  return handle;
}

static void find_blas64(void) {
  const char *const wanted = secure_getenv("WSGEMM_BLAS64_LIBRARY");
  if (wanted && *wanted) {
    peer64 = open_blas64(wanted);
    if (!peer64) snprintf(text64, sizeof text64, "WSGEMM_BLAS64_LIBRARY=%s is not a BLAS that can be loaded", wanted);
    return;
  }
  for (int i = 0; i < N_PLACES64 && !peer64; i++) peer64 = open_blas64(places64[i]);
}

/* What ws_blas_limit_peer was told last; 0: nothing. */
static atomic_int peer_limit;
static atomic_bool is_found, is_found64;

/* OpenBLAS's openblas_set_num_threads() calls its goto_set_num_threads() by name, which leads back to
 * this library's: so the latter is called, and a call that comes back all the same ends here. */
static void limit_threads(void *library, int n_threads) {
  static _Thread_local bool is_inside;
  void (*set)(int);
  *(void **)&set = dlsym(library, "goto_set_num_threads"); /* as POSIX has it */
  if (!set) *(void **)&set = dlsym(library, "openblas_set_num_threads");
  if (!set) *(void **)&set = dlsym(library, "openblas_set_num_threads64_");
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

static void find_peer64(void) {
  find_blas64();
  atomic_store(&is_found64, true);
  const int n_threads = atomic_load(&peer_limit);
  if (peer64 && n_threads > 0) limit_threads(peer64, n_threads);
}

void ws_blas_limit_peer(int n_threads) {
  atomic_store(&peer_limit, n_threads);
  if (atomic_load(&is_found64) && peer64) limit_threads(peer64, n_threads);
  void *const openblas = dlopen("libopenblas.so.0", RTLD_LAZY | RTLD_LOCAL | RTLD_NOLOAD);
  if (atomic_load(&is_found) && peer)
    limit_threads(peer, n_threads);
  else /* the program's own, if this library is preloaded */
    limit_threads(openblas ? openblas : RTLD_NEXT, n_threads);
  if (openblas) dlclose(openblas);
}

/* The suffix of a name for 64-bit integers: "64_" of Fortran's, "_64" of CBLAS's; NULL: it has
 * none. */
static const char *suffix_of(const char *name) {
  const char *const end = name + strlen(name) - 3;
  return end > name && (strcmp(end, "64_") == 0 || strcmp(end, "_64") == 0) ? end : NULL;
}

/* OpenBLAS puts its suffix behind CBLAS's names, too: cblas_daxpy64_. */
static void *function64(const char *name, const char *suffix) {
  char plain[32], with_suffix[sizeof plain + 3];
  pthread_once(&once64, find_peer64);
  if (!peer64) return NULL;
  snprintf(plain, sizeof plain, "%.*s", (int)(suffix - name), name);
  if (!has_suffix) return dlsym(peer64, plain);
  void *const function = dlsym(peer64, name);
  snprintf(with_suffix, sizeof with_suffix, "%s64_", plain);
  return function ? function : dlsym(peer64, with_suffix);
}

/* RTLD_NEXT is (void *)-1, never NULL. */
void *ws_blas_peer_function(const char *name) {
  const char *const suffix = suffix_of(name);
  pthread_once(&once, find_peer);
  void *const function = peer ? dlsym(peer, name) : NULL;
  return function || !suffix ? function : function64(name, suffix);
}

const char *ws_blas_peer_text(const char *name) { return suffix_of(name) ? text64 : text; }
