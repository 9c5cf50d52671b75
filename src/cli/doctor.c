/* `wsgemm doctor`: looks at this machine and process for what slows multiplications down or
 * distorts comparisons, and multiplies a little with every usable kernel.
 *
 * Each check is a row of the one table at the end. Only a wrong product makes the doctor fail:
 * everything else is advice, and what cannot be read (no such file, no permission, no driver) is
 * said, never an error. */
#define _GNU_SOURCE
#include "cli.h"
#include "gpu.h"
#include "trial.h"

#include <glob.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef enum { FINDING_OK, FINDING_NOTE, FINDING_WARN, FINDING_FAIL, N_FINDINGS } finding_kind;

typedef struct {
  char *config, *machine; /* the library's texts */
  int n_found[N_FINDINGS];
} doctor;

/* ---- Findings -------------------------------------------------------------------------------- */

/* One finding, its text broken at blanks to lines of a terminal's width. */
static void find(doctor *d, finding_kind kind, const char *topic, const char *format, ...) __attribute__((format(printf, 4, 5)));

static void find(doctor *d, finding_kind kind, const char *topic, const char *format, ...) {
  static const char *const labels[N_FINDINGS] = {"ok", "note", "warn", "FAIL"};
  enum { TEXT_WIDTH = 78 };
  char text[1024];
  va_list args;
  va_start(args, format);
  vsnprintf(text, sizeof text, format, args);
  va_end(args);
  d->n_found[kind]++;

  const char *left = labels[kind], *rest = text;
  while (*rest) {
    int length = (int)strlen(rest);
    if (length > TEXT_WIDTH) {
      int cut = TEXT_WIDTH;
      while (cut > 0 && rest[cut] != ' ') cut--;
      length = cut > 0 ? cut : TEXT_WIDTH;
    }
    printf("%-5s %-12s %.*s\n", left, topic, length, rest);
    rest += length;
    while (*rest == ' ') rest++;
    left = topic = "";
  }
}

/* The value of a key in one of the library's texts; "unknown" if it is not there. */
static void look_up(const char *text, const char *key, char *value, size_t bytes) {
  char *copy = strdup(text), *rest = copy, *line_key, *line_value;
  snprintf(value, bytes, "unknown");
  while (copy && ws_cli_next_line(&rest, &line_key, &line_value))
    if (strcmp(line_key, key) == 0) snprintf(value, bytes, "%s", line_value);
  free(copy);
}

static bool read_first_line(const char *path, char *line, size_t bytes) {
  FILE *file = fopen(path, "re");
  if (!file) return false;
  const bool ok = fgets(line, (int)bytes, file) != NULL;
  fclose(file);
  if (ok) line[strcspn(line, "\n")] = 0;
  return ok;
}

/* ---- Checks ---------------------------------------------------------------------------------- */

static void check_processor(doctor *d) {
  char model[128], isa[32], features[512];
  look_up(d->machine, "processor", model, sizeof model);
  look_up(d->machine, "isa", isa, sizeof isa);
  look_up(d->machine, "features", features, sizeof features);
  find(d, FINDING_OK, "processor", "%s", model);
  find(d, FINDING_OK, "features", "%s", features);
  if (strcmp(isa, "ref") == 0)
    find(d, FINDING_WARN, "kernels", "the portable kernels (ref) are in use: correct, but far below what a vector unit can do");
  else
    find(d, FINDING_OK, "kernels", "%s kernels are in use", isa);
}

static void check_threads(doctor *d) {
  char threads[128], affinity[64], quota[64];
  look_up(d->machine, "threads", threads, sizeof threads);
  look_up(d->machine, "affinity", affinity, sizeof affinity);
  look_up(d->machine, "cgroup quota", quota, sizeof quota);
  find(d, FINDING_OK, "threads", "%s; affinity: %s, cgroup quota: %s", threads, affinity, quota);
  const long n_online = sysconf(_SC_NPROCESSORS_ONLN);
  const int n_affinity = atoi(affinity), n_quota = atoi(quota);
  if (n_affinity > 0 && n_affinity < n_online)
    find(d, FINDING_NOTE, "threads", "this process may run on %d of the %ld processors only (affinity mask)", n_affinity,
         n_online);
  if (n_quota > 0)
    find(d, FINDING_WARN, "threads",
         "a cgroup quota is in force: when it is used up, all threads stand still for the rest of the period, so that timings "
         "jump");
}

/* Variables that other libraries read, or that force ours. A name that ends in '*' stands for all
 * that begin so. */
static const struct {
  const char *name, *effect;
} variables[] = {
    {"OPENBLAS_CORETYPE", "forces OpenBLAS's kernels: comparisons with it may be worthless"},
    {"OPENBLAS_L2_SIZE", "forces OpenBLAS's blocking: comparisons with it may be worthless"},
    {"OPENBLAS_NUM_THREADS", "limits OpenBLAS's threads, not wsgemm's"},
    {"OPENBLAS_*", "changes how OpenBLAS behaves"},
    {"GOTO_NUM_THREADS", "limits OpenBLAS's threads, not wsgemm's"},
    {"OMP_NUM_THREADS", "limits the threads of most other libraries, not wsgemm's"},
    {"OMP_*", "changes how libraries built with OpenMP behave"},
    {"KMP_*", "changes how libraries built with OpenMP behave"},
    {"GOMP_*", "changes how libraries built with OpenMP behave"},
    {"MKL_*", "changes how MKL behaves"},
    {"BLIS_*", "changes how BLIS behaves"},
    {"LD_PRELOAD", "may put another library in the place of the one that is meant"},
};

static const char *effect_of(const char *name, size_t length) {
  for (size_t i = 0; i < sizeof variables / sizeof *variables; i++) {
    const char *star = strchr(variables[i].name, '*');
    const size_t common = star ? (size_t)(star - variables[i].name) : strlen(variables[i].name);
    if (strncmp(name, variables[i].name, common) == 0 && (star || length == common)) return variables[i].effect;
  }
  return NULL;
}

/* WSGEMM_* variables: the library's text says which it obeys and which it could make nothing of. */
static void check_own_variable(doctor *d, const char *name, size_t length, const char *value) {
  static const char *const commands_own[] = {"WSGEMM_BENCH_PEERS", "WSGEMM_COMMIT", "WSGEMM_LIBRARY", "WSGEMM_PYTHON",
                                             "WSGEMM_TUNE"}; /* the library's path is the Python package's */
  for (size_t i = 0; i < sizeof commands_own / sizeof *commands_own; i++)
    if (strlen(commands_own[i]) == length && strncmp(name, commands_own[i], length) == 0) return;
  char key[128], said[128];
  snprintf(key, sizeof key, "env %.*s", (int)length, name);
  look_up(d->machine, key, said, sizeof said);
  if (!*value) return;
  if (strstr(said, "(ignored)"))
    find(d, FINDING_WARN, "environment", "%.*s=%.60s makes no sense and is ignored", (int)length, name, value);
  else if (strcmp(said, "unknown") == 0)
    find(d, FINDING_WARN, "environment", "%.*s is set, but wsgemm knows no such variable", (int)length, name);
  else
    find(d, FINDING_WARN, "environment", "%.*s=%.60s forces what wsgemm would choose by itself", (int)length, name, value);
}

static void check_environment(doctor *d) {
  const int n_before = d->n_found[FINDING_WARN];
  for (char **at = environ; *at; at++) {
    const size_t length = strcspn(*at, "=");
    const char *value = (*at)[length] ? *at + length + 1 : "";
    const char *effect = effect_of(*at, length);
    if (effect) find(d, FINDING_WARN, "environment", "%.*s=%.60s %s", (int)length, *at, value, effect);
    if (strncmp(*at, "WSGEMM_", 7) == 0) check_own_variable(d, *at, length, value);
  }
  if (d->n_found[FINDING_WARN] == n_before) find(d, FINDING_OK, "environment", "no variable is set that distorts comparisons");
}

static void check_load(doctor *d) {
  double load;
  if (getloadavg(&load, 1) != 1)
    find(d, FINDING_NOTE, "load", "the system's load cannot be read");
  else if (load > 0.5)
    find(d, FINDING_WARN, "load", "%.1f processes ran or waited on average over the last minute: timings will suffer", load);
  else
    find(d, FINDING_OK, "load", "the machine is idle (%.1f over the last minute)", load);
}

static void check_frequency(doctor *d) {
  glob_t found;
  char first[64] = "", line[64];
  bool differ = false;
  if (glob("/sys/devices/system/cpu/cpu[0-9]*/cpufreq/scaling_governor", 0, NULL, &found) == 0) {
    for (size_t i = 0; i < found.gl_pathc; i++) {
      if (!read_first_line(found.gl_pathv[i], line, sizeof line)) continue;
      if (!*first) snprintf(first, sizeof first, "%s", line);
      if (strcmp(first, line) != 0) differ = true;
    }
    globfree(&found);
  }
  if (!*first)
    find(d, FINDING_NOTE, "frequency", "no frequency governor to be seen here (usual in virtual machines and containers)");
  else if (differ)
    find(d, FINDING_WARN, "frequency", "the processors have different frequency governors");
  else if (strcmp(first, "performance") == 0)
    find(d, FINDING_OK, "frequency", "governor %s", first);
  else
    find(d, FINDING_NOTE, "frequency", "governor %s: short measurements may begin at a low clock", first);
}

static void check_huge_pages(doctor *d) {
  char line[64];
  if (!read_first_line("/sys/kernel/mm/transparent_hugepage/enabled", line, sizeof line))
    find(d, FINDING_NOTE, "huge pages", "the system does not tell whether it has transparent huge pages");
  else if (strstr(line, "[never]"))
    find(d, FINDING_NOTE, "huge pages", "transparent huge pages are off: large matrices cost more address translations");
  else
    find(d, FINDING_OK, "huge pages", "transparent huge pages: %s", strstr(line, "[always]") ? "always" : "where asked for");
}

/* ---- Multiplying a little -------------------------------------------------------------------- */

/* Integers small enough that every order of summing them is exact: any difference at all is a
 * fault. */
static int self_test(doctor *d, wsgemm_handle *h, const char *kernel, const char *topic, bool on_gpu) {
  int mr, nr, n_failed = 0;
  wsgemm_kernel_info info;
  const wsgemm_status status = ws_cli_kernel(kernel, &info) ? wsgemm_set_kernel(h, kernel) : WSGEMM_INVALID_VALUE;
  if (status != WSGEMM_SUCCESS) {
    find(d, FINDING_FAIL, topic, "%s: cannot be used: %s", kernel, ws_cli_why(status));
    return 1;
  }
  ws_trial_tile(&info, &mr, &nr);
  const int64_t sizes[][3] = {{1, 1, 1}, {mr + 1, nr + 1, 7}, {2 * mr - 1, 2 * nr + 1, 300}, {200, 200, 50}};
  for (int i = 0; i < 8; i++) {
    const ws_trial t = {.type = info.type,
                        .layout = i & 4 ? WSGEMM_ROW_MAJOR : WSGEMM_COL_MAJOR,
                        .transa = i & 1 ? WSGEMM_CONJ_TRANS : WSGEMM_NO_TRANS,
                        .transb = i & 2 ? WSGEMM_TRANS : WSGEMM_NO_TRANS,
                        .m = sizes[i % 4][0],
                        .n = sizes[i % 4][1],
                        .k = sizes[i % 4][2],
                        .padding = i % 3,
                        .alpha = {2, 0},
                        .beta = {i % 2, 0},
                        .on_gpu = on_gpu,
                        .has_integers = true};
    char why[WS_TRIAL_WHY_BYTES], description[64];
    ws_check check;
    if (ws_trial_run(h, &t, INT64_MAX, (uint64_t)i + 1, &check, why)) continue;
    ws_trial_describe(&t, description, sizeof description);
    find(d, FINDING_FAIL, topic, "%s, %s: %s", kernel, description, why);
    n_failed++;
  }
  return n_failed;
}

static void check_kernels(doctor *d) {
  wsgemm_handle *h;
  int n_rows = 0, n_run = 0, n_failed = 0;
  const wsgemm_status status = wsgemm_create(&h);
  if (status != WSGEMM_SUCCESS) {
    find(d, FINDING_FAIL, "self-test", "%s", ws_cli_why(status));
    return;
  }
  for (int row = 0; row < wsgemm_kernel_count(); row++) {
    n_rows += strcmp(wsgemm_kernel_backend(row), "cpu") == 0;
    if (!ws_cli_row_takes_host_memory(row)) continue;
    n_run++;
    n_failed += self_test(d, h, wsgemm_kernel_name(row), "self-test", false);
  }
  wsgemm_destroy(h);
  if (n_run == 0)
    find(d, FINDING_FAIL, "self-test", "this machine can run none of the kernels");
  else if (n_failed == 0)
    find(d, FINDING_OK, "self-test", "%d of the %d kernels for host memory run here; products of integers are exact on each",
         n_run, n_rows);
}

/* ---- The GPUs -------------------------------------------------------------------------------- */

/* False, and said so: there is no kernel for this GPU in the build, or nothing runs on it. */
static bool is_usable(doctor *d, wsgemm_handle *h, int ordinal) {
  char why[WS_GPU_WHY_BYTES], code[128];
  float a = 2, b = 3, c = 0;
  wsgemm_gemm_desc one = WSGEMM_GEMM_DESC_INIT;
  one.m = one.n = one.k = one.lda = one.ldb = one.ldc = 1;
  one.alpha.s = 1;
  one.a = &a;
  one.b = &b;
  one.c = &c;
  const wsgemm_status status = ws_gpu_gemm(h, &one, NULL, why);
  if (status == WSGEMM_SUCCESS) return true;
  look_up(d->config, "gpu code", code, sizeof code);
  find(d, FINDING_WARN, "gpu", "GPU %d cannot be used: %s%s%s", ordinal, why,
       status == WSGEMM_ARCH_MISMATCH ? "; this build has code for " : "", status == WSGEMM_ARCH_MISMATCH ? code : "");
  return false;
}

static void check_device(doctor *d, wsgemm_handle *h, int ordinal) {
  char why[WS_GPU_WHY_BYTES];
  ws_gpu_facts facts;
  int n_run = 0, n_failed = 0;
  if (!ws_gpu_open(ordinal, &facts, why)) {
    find(d, FINDING_WARN, "gpu", "GPU %d cannot be used: %s", ordinal, why);
    return;
  }
  find(d, FINDING_OK, "gpu", "GPU %d: %s, compute capability %d.%d, %d SMs, %.1f GiB", ordinal, facts.name, facts.cc_major,
       facts.cc_minor, facts.n_sms, facts.gib);
  if (!is_usable(d, h, ordinal)) return;
  for (int row = 0; row < wsgemm_kernel_count(); row++) {
    if (strcmp(wsgemm_kernel_backend(row), "cuda") != 0) continue;
    n_run++;
    n_failed += self_test(d, h, wsgemm_kernel_name(row), "gpu", true);
  }
  if (n_failed == 0)
    find(d, FINDING_OK, "gpu", "GPU %d: all %d kernels for it run; products of integers are exact on each", ordinal, n_run);
}

static void check_gpu(doctor *d) {
  char driver[256], why[WS_GPU_WHY_BYTES];
  int n_devices;
  glob_t found;
  const size_t n_nodes = glob("/dev/nvidia[0-9]*", 0, NULL, &found) == 0 ? found.gl_pathc : 0;
  if (n_nodes) globfree(&found);
  const ws_gpu_state state = ws_gpu_find(&n_devices, why);
  if (state != WS_GPU_READY) {
    /* Without a GPU there is nothing to complain of. */
    const bool is_odd = state == WS_GPU_OLD_DRIVER || state == WS_GPU_BROKEN || n_nodes > 0;
    find(d, is_odd ? FINDING_WARN : FINDING_NOTE, "gpu", "%s; products run on the CPU", why);
    if (n_nodes) find(d, FINDING_NOTE, "gpu", "%zu NVIDIA device node%s in /dev", n_nodes, n_nodes == 1 ? "" : "s");
    return;
  }
  const int version = ws_gpu_driver_version();
  const bool tells = read_first_line("/proc/driver/nvidia/version", driver, sizeof driver);
  find(d, FINDING_OK, "gpu", "driver for CUDA %d.%d, %d GPU%s%s%s", version / 1000, version % 1000 / 10, n_devices,
       n_devices == 1 ? "" : "s", tells ? "; " : "", tells ? driver : "");
  wsgemm_handle *h;
  const wsgemm_status status = wsgemm_create(&h);
  if (status != WSGEMM_SUCCESS) {
    find(d, FINDING_FAIL, "gpu", "%s", ws_cli_why(status));
    return;
  }
  for (int ordinal = 0; ordinal < n_devices; ordinal++) check_device(d, h, ordinal);
  wsgemm_destroy(h);
}

static void (*const checks[])(doctor *d) = {
    check_processor, check_threads, check_environment, check_load, check_frequency, check_huge_pages, check_kernels, check_gpu,
};

static int examine(doctor *d) {
  for (size_t i = 0; i < sizeof checks / sizeof *checks; i++) checks[i](d);
  const int n_warnings = d->n_found[FINDING_WARN];
  if (d->n_found[FINDING_FAIL]) return ws_cli_fail("the self-test failed: do not trust results on this machine");
  if (n_warnings)
    printf("\nHealthy, with %d warning%s.\n", n_warnings, n_warnings == 1 ? "" : "s");
  else
    printf("\nHealthy.\n");
  return WS_EXIT_OK;
}

int ws_cmd_doctor(int argc, char **argv) {
  static const struct option options[] = {{"help", no_argument, NULL, 'h'}, {0}};
  optind = 0;
  opterr = 0;
  for (int found; (found = getopt_long(argc, argv, ":h", options, NULL)) != -1;) {
    if (found != 'h') return ws_cli_bad_option("doctor", argc, argv, found);
    ws_cli_print_usage("doctor");
    printf("Tells which processor features, threads and environment variables are in play, what may slow\n"
           "multiplications down or distort comparisons, which GPUs can be used and why not, and tests every\n"
           "kernel of this machine, those for its GPUs too, with integers.\n"
           "Exit code 1 only if a product is wrong; warnings do not fail.\n");
    return WS_EXIT_OK;
  }
  if (optind < argc) return ws_cli_usage("doctor", "doctor: unexpected argument '%s'", argv[optind]);
  doctor d = {.config = ws_cli_text(wsgemm_config), .machine = ws_cli_text(wsgemm_machine)};
  const int code = d.config && d.machine ? examine(&d) : ws_cli_fail("out of memory");
  free(d.config);
  free(d.machine);
  return code;
}
