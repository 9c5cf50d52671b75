/* peers_cpu.c - loads other BLAS libraries into this process, each in a name space of its own
 * (dlopen, RTLD_LOCAL).
 *
 * The interface used is CBLAS with 32-bit integers. A family says how a library is asked for its
 * version and core and told its thread count; prefixes and families are tables, so that another
 * packaging of the same library is a row. A peer that runs kernels far below this machine (its
 * core was forced, or its detection is older than the CPU) makes every ratio meaningless: it is
 * refused. */
#define _GNU_SOURCE
#include "bench/harness/peers_cpu.h"

#include <dlfcn.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

static const char *const distorting[] = {"OPENBLAS_", "GOTO_", "BLIS_", "OMP_"};
static const char *const prefixes[] = {"", "scipy_"};
static const char *const default_peers[] = {"libopenblas.so.0",
                                            ".venv/lib/python3*/site-packages/scipy_openblas32/lib/libscipy_openblas.so"};
#define COUNT(array) ((int)(sizeof(array) / sizeof *(array)))

static bool has_avx512(void) {
#if defined(__x86_64__)
  return __builtin_cpu_supports("avx512f") != 0;
#else
  return false;
#endif
}

int ws_bench_clean_environment(char *text, size_t bytes) {
  int n_removed = 0;
  if (bytes) *text = 0;
  for (char **at = environ; at && *at;) {
    char name[128];
    const size_t length = strcspn(*at, "=");
    bool remove = false;
    for (int i = 0; i < COUNT(distorting); i++) remove |= strncmp(*at, distorting[i], strlen(distorting[i])) == 0;
    if (!remove || length >= sizeof name) {
      at++;
      continue;
    }
    memcpy(name, *at, length);
    name[length] = 0;
    if (strlen(text) + length + 2 < bytes) {
      if (*text) strcat(text, " ");
      strcat(text, name);
    }
    unsetenv(name);
    n_removed++;
    at = environ; /* the array has moved up */
  }
  return n_removed;
}

/* Looks up prefix + name and copies the address to a function pointer (ISO C has no cast for
 * that). */
static bool find(void *library, const char *prefix, const char *name, void *function) {
  char symbol[128];
  snprintf(symbol, sizeof symbol, "%s%s", prefix, name);
  void *address = dlsym(library, symbol);
  memcpy(function, &address, sizeof address);
  return address != NULL;
}

/* "OpenBLAS 0.3.21 NO_LAPACKE DYNAMIC_ARCH Cooperlake MAX_THREADS=64" and its core's name. */
static bool describe_openblas(void *library, const char *prefix, bench_peer *peer, char *core, size_t bytes) {
  char *(*get_config)(void), *(*get_corename)(void), version[48] = "";
  if (!find(library, prefix, "openblas_get_config", &get_config) ||
      !find(library, prefix, "openblas_get_corename", &get_corename) ||
      !find(library, prefix, "openblas_set_num_threads", &peer->set_threads) ||
      !find(library, prefix, "openblas_get_num_threads", &peer->get_threads))
    return false;
  if (sscanf(get_config(), "OpenBLAS %47s", version) != 1) snprintf(version, sizeof version, "(version unknown)");
  snprintf(core, bytes, "%.31s", get_corename());
  snprintf(peer->name, sizeof peer->name, "OpenBLAS %.47s %s", version, core);
  return true;
}

static bool describe_blis(void *library, const char *prefix, bench_peer *peer, char *core, size_t bytes) {
  const char *(*get_version)(void), *(*arch_string)(int);
  int (*arch_id)(void);
  if (!find(library, prefix, "bli_info_get_version_str", &get_version) || !find(library, prefix, "bli_arch_query_id", &arch_id) ||
      !find(library, prefix, "bli_arch_string", &arch_string) ||
      !find(library, prefix, "bli_thread_set_num_threads", &peer->set_threads64))
    return false;
  snprintf(core, bytes, "%.31s", arch_string(arch_id()));
  snprintf(peer->name, sizeof peer->name, "BLIS %.47s %s", get_version(), core);
  return true;
}

static const struct {
  bool (*describe)(void *library, const char *prefix, bench_peer *peer, char *core, size_t bytes);
  const char *avx512_cores[5]; /* its names for kernels with AVX-512; the last entry stays NULL */
} families[] = {{describe_openblas, {"SkylakeX", "Cooperlake", "SapphireRapids"}},
                {describe_blis, {"skx", "knl", "zen4", "zen5"}}};

/* 1: loaded; 0: no such library; -1: not usable, error says why. */
static int load(const char *path, const char *wanted_prefix, bool allow_slow, bench_peer *peer, char *error, size_t bytes) {
  void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  const char *prefix = wanted_prefix;
  char core[32] = "";
  int family = 0;

  memset(peer, 0, sizeof *peer);
  if (!library) {
    snprintf(error, bytes, "cannot load peer: %.300s", dlerror());
    return 0;
  }
  for (int i = 0; !prefix && i < COUNT(prefixes); i++)
    if (find(library, prefixes[i], "cblas_sgemm", &peer->sgemm)) prefix = prefixes[i];
  if (!prefix || !find(library, prefix, "cblas_sgemm", &peer->sgemm) || !find(library, prefix, "cblas_dgemm", &peer->dgemm) ||
      !find(library, prefix, "cblas_cgemm", &peer->cgemm) || !find(library, prefix, "cblas_zgemm", &peer->zgemm)) {
    snprintf(error, bytes, "peer %.200s has no function %.40scblas_sgemm", path, prefix ? prefix : "");
    return -1;
  }
  while (family < COUNT(families) && !families[family].describe(library, prefix, peer, core, sizeof core)) family++;
  if (family == COUNT(families)) {
    snprintf(error, bytes, "peer %.200s is neither OpenBLAS nor BLIS: it cannot be asked for its version and threads", path);
    return -1;
  }
  if (has_avx512() && !allow_slow) {
    bool fast = false;
    for (const char *const *name = families[family].avx512_cores; *name; name++) fast |= strcasecmp(core, *name) == 0;
    if (!fast) {
      snprintf(error, bytes,
               "peer %.60s (%.200s) runs kernels without AVX-512 on a machine that has it; --allow-slow-peer compares anyway",
               peer->name, path);
      return -1;
    }
  }
  Dl_info where;
  void *address;
  memcpy(&address, &peer->sgemm, sizeof address);
  peer->library = library;
  snprintf(peer->prefix, sizeof peer->prefix, "%s", prefix);
  snprintf(peer->path, sizeof peer->path, "%s", dladdr(address, &where) && where.dli_fname ? where.dli_fname : path);
  return 1;
}

/* A path, or a pattern of paths, or a plain library name. Same answers as load. */
static int load_pattern(const char *pattern, bool allow_slow, bench_peer *peer, char *error, size_t bytes) {
  glob_t found;
  int answer = 0;
  if (!strchr(pattern, '/')) return load(pattern, NULL, allow_slow, peer, error, bytes);
  if (glob(pattern, 0, NULL, &found)) return 0;
  if (found.gl_pathc) answer = load(found.gl_pathv[0], NULL, allow_slow, peer, error, bytes);
  globfree(&found);
  return answer;
}

/* "PATH" or "PATH:PREFIX"; a named peer that is not there is an error. */
static bool load_spec(const char *spec, bool allow_slow, bench_peer *peer, char *error, size_t bytes) {
  char path[512];
  const char *colon = strrchr(spec, ':');
  const size_t length = colon ? (size_t)(colon - spec) : strlen(spec);
  if (length >= sizeof path) {
    snprintf(error, bytes, "the path of a peer is too long");
    return false;
  }
  memcpy(path, spec, length);
  path[length] = 0;
  return load(path, colon ? colon + 1 : NULL, allow_slow, peer, error, bytes) == 1;
}

int ws_bench_load_peers(const char *const *specs, int n_specs, bool allow_slow, bench_peer *peers, char *error, size_t bytes) {
  const char *listed = getenv("WSGEMM_BENCH_PEERS");
  int n_peers = 0;

  for (int i = 0; i < n_specs; i++, n_peers++)
    if (!load_spec(specs[i], allow_slow, &peers[n_peers], error, bytes)) return -1;
  if (n_specs) return n_peers;

  for (int i = 0; i < COUNT(default_peers); i++) {
    const int answer = load_pattern(default_peers[i], allow_slow, &peers[n_peers], error, bytes);
    if (answer < 0) return -1;
    n_peers += answer;
  }
  if (listed && *listed) {
    char *copy = strdup(listed), *rest = copy;
    for (char *spec; copy && (spec = strsep(&rest, ",")) && n_peers < BENCH_MAX_PEERS;) {
      if (!*spec) continue;
      if (!load_spec(spec, allow_slow, &peers[n_peers], error, bytes)) {
        free(copy);
        return -1;
      }
      bool again = false; /* the same file is already loaded */
      for (int i = 0; i < n_peers; i++) again |= peers[i].sgemm == peers[n_peers].sgemm;
      n_peers += !again;
    }
    free(copy);
  }
  return n_peers;
}

bool ws_bench_peer_find(const bench_peer *peer, const char *name, void *function) {
  return find(peer->library, peer->prefix, name, function);
}

bool ws_bench_peer_threads(bench_peer *peer, int n_threads) {
  if (peer->n_threads == n_threads) return true;
  if (peer->set_threads64)
    peer->set_threads64(n_threads);
  else
    peer->set_threads(n_threads);
  if (peer->get_threads && peer->get_threads() != n_threads) return false;
  peer->n_threads = n_threads;
  return true;
}
