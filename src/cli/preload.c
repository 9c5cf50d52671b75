/* `wsgemm preload`: where the library lies that makes wsgemm serve a program which calls another one. */
#define _GNU_SOURCE
#include "cli.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const struct library {
  const char *word, *file, *option;
} libraries[] = {{"blas", "libwsgemm_blas.so", "WSGEMM_BLAS"}, {"cublas", "libwsgemm_cublas.so", "WSGEMM_CUBLAS"}};
enum { N_LIBRARIES = sizeof libraries / sizeof *libraries };

/* Beside libwsgemm, as installed or as in a wheel, where names have no version. */
static int print_path(const struct library *library) {
  Dl_info info;
  char own[PATH_MAX], path[PATH_MAX + 64];
  void *const function = dlsym(RTLD_DEFAULT, "wsgemm_version_string");
  if (!function || !dladdr(function, &info) || !info.dli_fname || !realpath(info.dli_fname, own))
    return ws_cli_fail("preload: the command does not know where libwsgemm lies: it is linked statically");
  *strrchr(own, '/') = 0;
  for (int has_version = 1; has_version >= 0; has_version--) {
    const int length = snprintf(path, sizeof path, "%s/%s", own, library->file);
    if (has_version) snprintf(path + length, sizeof path - (size_t)length, ".%d", WSGEMM_VERSION_MAJOR);
    if (access(path, R_OK) != 0) continue;
    puts(path);
    return WS_EXIT_OK;
  }
  return ws_cli_fail("preload: no %s in %s: this wsgemm was built without %s", library->file, own, library->option);
}

int ws_cmd_preload(int argc, char **argv) {
  static const struct option options[] = {{"help", no_argument, NULL, 'h'}, {0}};
  optind = 0;
  opterr = 0;
  for (int found; (found = getopt_long(argc, argv, ":h", options, NULL)) != -1;) {
    if (found != 'h') return ws_cli_bad_option("preload", argc, argv, found);
    ws_cli_print_usage("preload");
    printf("Prints the path of the library that LD_PRELOAD takes, so that a program that knows nothing of wsgemm\n"
           "uses it:\n"
           "  blas     programs that call a BLAS, such as Python with NumPy\n"
           "  cublas   programs that call cuBLAS, such as Python with torch\n"
           "\n"
           "  LD_PRELOAD=$(wsgemm preload blas) python3 program.py\n");
    return WS_EXIT_OK;
  }
  if (argc - optind != 1)
    return ws_cli_usage("preload", "preload: %s", argc == optind ? "blas or cublas is missing" : "one library at a time");
  for (int i = 0; i < N_LIBRARIES; i++)
    if (strcmp(argv[optind], libraries[i].word) == 0) return print_path(&libraries[i]);
  return ws_cli_usage("preload", "preload: '%s' is neither blas nor cublas", argv[optind]);
}
