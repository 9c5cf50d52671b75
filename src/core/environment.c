/* environment.c - see environment.h. */
#define _GNU_SOURCE
#include "core/environment.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/policy.h"
#include "core/status.h"
#include "core/text.h"

static ws_environment environment;
static const ws_environment_readers *readers;
const ws_environment *ws_environment_get(void) { return &environment; }

static bool parse_int(const char *text, int least, int most, int *value) {
  char *end;
  errno = 0;
  const long v = strtol(text, &end, 10);
  if (errno || end == text || *end || v < least || v > most) return false;
  *value = (int)v;
  return true;
}

static bool read_threads(const char *text) { return parse_int(text, 1, WS_MAX_WORKERS, &environment.n_threads); }

#define READ_SETTING(name, least, most)                      \
  static bool read_##name(const char *text) {                \
    int value;                                               \
    if (!parse_int(text, least, most, &value)) return false; \
    environment.settings.name = (unsigned)value;             \
    return true;                                             \
  }
READ_SETTING(coarse, 1, WS_COARSE_MAX)
READ_SETTING(quantum, 0, WS_QUANTUM_MAX)
READ_SETTING(check, 0, 1)
READ_SETTING(invariant, 0, 1)

static bool read_policy(const char *text) {
  for (int policy = WSGEMM_POLICY_AUTO; policy <= WSGEMM_POLICY_FOREACH; policy++)
    if (strcmp(text, ws_policy_name((wsgemm_policy)policy)) == 0) {
      environment.settings.policy = (unsigned)policy;
      return true;
    }
  return false;
}

static bool read_isa(const char *text) { return readers->isa(text); }
static bool read_kernel(const char *text) { return readers->kernel(text); }

/* Not for a program with more rights than its user, who would have it write where he says. */
static bool read_tune(const char *text) {
  if (!secure_getenv("WSGEMM_TUNE")) return false;
  environment.tune = text;
  return true;
}

static const struct {
  const char *name;
  bool (*read)(const char *text);
  const char *legal;
} variables[] = {
    {"WSGEMM_NUM_THREADS", read_threads, "1 .. 256"},
    {"WSGEMM_POLICY", read_policy, &WSGEMM_POLICY_MAP(WS_POLICY_LISTED)[2]},
    {"WSGEMM_COARSE_FACTOR", read_coarse, "1 .. 64"},
    {"WSGEMM_QUANTUM", read_quantum, "0 .. 1048576"},
    {"WSGEMM_ISA", read_isa, "an instruction set of this machine: amx, avx512, avx2, neon or ref"},
    {"WSGEMM_KERNEL", read_kernel, "the name of a kernel row that this machine can run"},
    {"WSGEMM_TUNE", read_tune, "the name of a file, or off"},
    {"WSGEMM_CHECK", read_check, "0 or 1"},
    {"WSGEMM_INVARIANT", read_invariant, "0 or 1"},
};

void ws_environment_read(const ws_environment_readers *given) {
  readers = given;
  environment.settings = ws_default_settings;
  ws_text report = {environment.report, sizeof environment.report, 0};
  for (size_t i = 0; i < sizeof variables / sizeof variables[0]; i++) {
    const char *value = getenv(variables[i].name);
    if (!value || !*value) continue;
    const bool ok = variables[i].read(value);
    ws_text_add(&report, "env %s: %.40s%s\n", variables[i].name, value, ok ? "" : " (ignored)");
    if (!ok)
      ws_fail(NULL, WSGEMM_INVALID_VALUE, "warning: %s=%.60s is ignored; it must be %s", variables[i].name, value,
              variables[i].legal);
  }
}
