/* `wsgemm info`: what this library is, what it found on this machine, which kernels it has.
 *
 * The facts are the library's own texts; here they are only set out, as an aligned table or
 * (--json) as one JSON object. */
#include "cli.h"
#include "types.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { KEY_WIDTH = 14 };

/* Members of wsgemm_kernel_info, whose names are those in the JSON object. */
#define NUMBERS(X)  \
  X(bm)             \
  X(bn)             \
  X(bk)             \
  X(coarse_factor)  \
  X(n_stages)       \
  X(n_threads)      \
  X(shared_bytes)   \
  X(cluster)        \
  X(cluster_splits) \
  X(n_slices)       \
  X(least_cc)       \
  X(most_cc)
#define TRUTHS(X) \
  X(has_split_k)  \
  X(is_ping_pong) \
  X(is_fma)

static void print_section(const char *title, char *text) {
  char *key, *value;
  printf("%s\n", title);
  while (ws_cli_next_line(&text, &key, &value)) printf("  %-*s %s\n", KEY_WIDTH, key, value);
  printf("\n");
}

static void print_table(char *config, char *machine) {
  print_section("Build", config);
  print_section("Machine", machine);
  printf("Kernels\n  %-30s %-6s %-7s %4s %6s %7s %7s %s\n", "name", "family", "item", "k", "stages", "threads", "shared", "here");
  for (int row = 0; row < wsgemm_kernel_count(); row++) {
    const wsgemm_kernel_info info = ws_cli_kernel_at(row);
    char item[32];
    snprintf(item, sizeof item, "%dx%d", info.bm, info.bn * (info.coarse_factor ? info.coarse_factor : 1));
    printf("  %-30s %-6s %-7s %4d %6d %7d %7d %s\n", info.name, info.family, item, info.bk, info.n_stages, info.n_threads,
           info.shared_bytes, info.is_usable ? "usable" : "not on this machine");
  }
}

static void print_object(const char *name, char *text) {
  char *key, *value;
  const char *separator = "";
  printf("  \"%s\": {", name);
  while (ws_cli_next_line(&text, &key, &value)) {
    printf("%s\n    ", separator);
    ws_cli_put_json(stdout, key);
    printf(": ");
    ws_cli_put_json(stdout, value);
    separator = ",";
  }
  printf("\n  },\n");
}

static void print_json(char *config, char *machine) {
  printf("{\n  \"version\": \"%s\",\n", wsgemm_version_string());
  print_object("build", config);
  print_object("machine", machine);
  printf("  \"kernels\": [");
  for (int row = 0; row < wsgemm_kernel_count(); row++) {
    const wsgemm_kernel_info info = ws_cli_kernel_at(row);
    printf("%s\n    {\"name\": \"%s\", \"backend\": \"%s\", \"family\": \"%s\", \"type\": \"%c\", \"usable\": %s", row ? "," : "",
           info.name, info.backend, info.family, ws_cli_types[info.type].letter, info.is_usable ? "true" : "false");
#define PUT_NUMBER(member) printf(", \"" #member "\": %d", info.member);
    NUMBERS(PUT_NUMBER)
#undef PUT_NUMBER
#define PUT_TRUTH(member) printf(", \"" #member "\": %s", info.member ? "true" : "false");
    TRUTHS(PUT_TRUTH)
#undef PUT_TRUTH
    printf("}");
  }
  printf("\n  ]\n}\n");
}

int ws_cmd_info(int argc, char **argv) {
  static const struct option options[] = {{"json", no_argument, NULL, 256}, {"help", no_argument, NULL, 'h'}, {0}};
  bool as_json = false;
  optind = 0;
  opterr = 0;
  for (int found; (found = getopt_long(argc, argv, ":h", options, NULL)) != -1;) {
    if (found == '?' || found == ':') return ws_cli_bad_option("info", argc, argv, found);
    if (found == 'h') {
      ws_cli_print_usage("info");
      printf("Shows the library's version and build, what it found on this machine, and its kernels.\n\n"
             "  --json   as one JSON object\n");
      return WS_EXIT_OK;
    }
    as_json = true;
  }
  if (optind < argc) return ws_cli_usage("info", "info: unexpected argument '%s'", argv[optind]);

  char *config = ws_cli_text(wsgemm_config), *machine = ws_cli_text(wsgemm_machine);
  if (!config || !machine) {
    free(config);
    free(machine);
    return ws_cli_fail("out of memory");
  }
  (as_json ? print_json : print_table)(config, machine);
  free(config);
  free(machine);
  return WS_EXIT_OK;
}
