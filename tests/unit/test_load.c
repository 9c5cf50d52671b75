/* test_load.c - what loading the library does to a process: nothing. No thread, no change of the
 * floating-point environment, no output; it works after dlopen, and its threads outlive a dlclose.
 * The library is not linked here, only loaded. */
#define _GNU_SOURCE
#include "support/process.h"
#include "wsgemm.h"

#include <dlfcn.h>
#include <fenv.h>
#include <stdlib.h>

typedef wsgemm_status dgemm_function(wsgemm_handle *, wsgemm_layout, wsgemm_op, wsgemm_op, int64_t, int64_t, int64_t, double,
                                     const double *, int64_t, const double *, int64_t, double, double *, int64_t);
typedef wsgemm_status set_threads_function(wsgemm_handle *, int);

struct loaded {
  void *library;
  dgemm_function *dgemm;
  set_threads_function *set_num_threads;
};

static bool load(struct loaded *loaded) {
  loaded->library = dlopen(WSGEMM_LIBRARY, RTLD_NOW | RTLD_LOCAL);
  if (!loaded->library) return CHECK(false, "%s", dlerror());
  *(void **)&loaded->dgemm = dlsym(loaded->library, "wsgemm_dgemm");
  *(void **)&loaded->set_num_threads = dlsym(loaded->library, "wsgemm_set_num_threads");
  return CHECK(loaded->dgemm && loaded->set_num_threads, "symbols");
}

/* side x side ones times ones. */
static void multiply(const struct loaded *loaded, int64_t side) {
  double *x = malloc((size_t)(side * side) * sizeof *x), *c = malloc((size_t)(side * side) * sizeof *c);
  REQUIRE(x && c, "memory");
  for (int64_t i = 0; i < side * side; i++) x[i] = 1;
  CHECK(loaded->dgemm(NULL, WSGEMM_ROW_MAJOR, WSGEMM_NO_TRANS, WSGEMM_TRANS, side, side, side, 1, x, side, x, side, 0, c, side) ==
            WSGEMM_SUCCESS,
        "dgemm of %lld", (long long)side);
  int64_t n_wrong = 0;
  for (int64_t i = 0; i < side * side; i++) n_wrong += c[i] != (double)side;
  CHECK(n_wrong == 0, "%lld elements of %lld^2 are wrong", (long long)n_wrong, (long long)side);
  free(x);
  free(c);
}

static void loading_changes_nothing(void) {
  process_start_first_thread();
  static const int roundings[] = {FE_TONEAREST, FE_UPWARD};
  for (int i = 0; i < 2; i++) {
    struct loaded loaded;
    REQUIRE(fesetround(roundings[i]) == 0, "fesetround");
    const int n_before = process_n_threads();
    const unsigned long long register_before = process_control_register();
    feclearexcept(FE_ALL_EXCEPT);
    if (!load(&loaded)) return;
    CHECK(fetestexcept(FE_ALL_EXCEPT) == 0, "loading raised %#x", (unsigned)fetestexcept(FE_ALL_EXCEPT));
    CHECK(process_n_threads() == n_before, "loading took the process from %d to %d threads", n_before, process_n_threads());
    CHECK(process_control_register() == register_before && fegetround() == roundings[i],
          "loading changed the control register from "
          "%#llx to %#llx",
          register_before, process_control_register());
    multiply(&loaded, 20);
    CHECK(process_n_threads() == n_before, "a small product made a thread");
    CHECK(dlclose(loaded.library) == 0, "%s", dlerror());
    CHECK(process_control_register() == register_before, "calling or unloading changed the control register");
  }
  fesetround(FE_TONEAREST);
}

static void unloading_with_threads(void) {
  for (int round = 0; round < 5; round++) {
    struct loaded loaded;
    if (!load(&loaded)) return;
    CHECK(loaded.set_num_threads(NULL, 4) == WSGEMM_SUCCESS, "threads");
    multiply(&loaded, 400);
    CHECK(dlclose(loaded.library) == 0, "%s", dlerror());
  }
}

static const struct check_case cases[] = {{"loading_changes_nothing", loading_changes_nothing},
                                          {"unloading_with_threads", unloading_with_threads}};
CHECK_MAIN("load", cases)
