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

/* A setting's value that is a number. n_threads is not one of a new handle: it limits those of all
 * handles. */
static bool read_number(const char *text, ws_setting which, int least) {
  char *end;
  errno = 0;
  const long value = strtol(text, &end, 10);
  if (errno || end == text || *end || value < least || value > ws_setting_ranges[which].most) return false;
  if (which == WS_SETTING_n_threads)
    environment.n_threads = (int)value;
  else
    ws_setting_put(&environment.settings, which, (int)value);
  return true;
}

static bool read_policy(const char *text) {
  const int policy = ws_policy_find(text);
  if (policy >= 0) ws_setting_put(&environment.settings, WS_SETTING_policy, policy);
  return policy >= 0;
}

static bool read_isa(const char *text) { return readers->isa(text); }
static bool read_kernel(const char *text) { return readers->kernel(text); }

/* Not for a program with more rights than its user, who would have it write where he says. */
static bool read_tune(const char *text) {
  if (!secure_getenv("WSGEMM_TUNE")) return false;
  environment.tune = text;
  return true;
}

/* Host matrices on GPUs: off, auto, all, or ordinals. */
static bool read_ordinals(const char *text, ws_device_set *set) {
  for (*set = 0;; text++) {
    char *end;
    const long ordinal = *text >= '0' && *text <= '9' ? strtol(text, &end, 10) : -1;
    if (ordinal < 0 || ordinal >= 64 || *set >> ordinal & 1) return false;
    *set |= (ws_device_set)1 << ordinal;
    text = end;
    if (*text != ',') return !*text;
  }
}

static bool read_offload(const char *text) {
  const bool is_auto = strcmp(text, "auto") == 0, is_all = is_auto || strcmp(text, "all") == 0;
  ws_device_set set = is_all ? WS_ALL_DEVICES : 0;
  if (!is_all && strcmp(text, "off") != 0 && !read_ordinals(text, &set)) return false;
  environment.devices = set;
  if (is_auto) environment.settings.offload = WSGEMM_OFFLOAD_AUTO;
  return true;
}

/* 64M: bytes, in thousands of 1024 if it ends so. */
static bool read_bytes(const char *text, size_t *bytes) {
  static const char units[] = "KMG";
  char *end;
  errno = 0;
  const unsigned long long n = *text >= '0' && *text <= '9' ? strtoull(text, &end, 10) : 0;
  if (errno || n == 0) return false;
  const char *unit = *end ? strchr(units, *end) : NULL;
  if (*end && (!unit || end[1])) return false;
  const int shift = unit ? 10 * (int)(unit - units + 1) : 0;
  *bytes = (size_t)n << shift;
  return *bytes >> shift == n;
}

static bool read_caches(const char *text) {
  size_t bytes[3];
  for (int level = 0; level < 3; level++, text++) {
    char number[24];
    const size_t length = strcspn(text, ",");
    if (length >= sizeof number || (text[length] == ',') != (level < 2)) return false;
    memcpy(number, text, length);
    number[length] = 0;
    if (!read_bytes(number, &bytes[level])) return false;
    text += length;
  }
  return readers->caches(bytes);
}

static bool read_offload_memory(const char *text) { return read_bytes(text, &environment.offload_bytes); }

/* Words by `read`; else the numbers of a setting, from `least` on: 1 where 0 is automatic, which
 * goes without saying. */
static const struct {
  const char *name;
  bool (*read)(const char *text);
  const char *legal;
  ws_setting setting;
  int least;
} variables[] = {
    {"WSGEMM_NUM_THREADS", NULL, NULL, WS_SETTING_n_threads, 1},
    {"WSGEMM_POLICY", read_policy, &WSGEMM_POLICY_MAP(WS_POLICY_LISTED)[2], 0, 0},
    {"WSGEMM_COARSE_FACTOR", NULL, NULL, WS_SETTING_coarse, 1},
    {"WSGEMM_QUANTUM", NULL, NULL, WS_SETTING_quantum, 0},
    {"WSGEMM_ISA", read_isa, "an instruction set of this machine: amx, avx512, avx2, neon or ref", 0, 0},
    {"WSGEMM_KERNEL", read_kernel, "the name of a kernel row that this machine can run", 0, 0},
    {"WSGEMM_CACHES", read_caches, "bytes of L1 data, L2 and L3, such as 32K,1M,16M", 0, 0},
    {"WSGEMM_TUNE", read_tune, "the name of a file, or off", 0, 0},
    {"WSGEMM_OFFLOAD", read_offload, "off, auto, all, or ordinals of GPUs such as 0,1", 0, 0},
    {"WSGEMM_OFFLOAD_MEMORY", read_offload_memory, "bytes of each GPU, such as 16G or 500M", 0, 0},
    {"WSGEMM_CHECK", NULL, NULL, WS_SETTING_check, 0},
    {"WSGEMM_INVARIANT", NULL, NULL, WS_SETTING_invariant, 0},
};
enum { N_VARIABLES = sizeof variables / sizeof variables[0] };

static bool read_variable(int i, const char *value) {
  return variables[i].read ? variables[i].read(value) : read_number(value, variables[i].setting, variables[i].least);
}

static void warn(int i, const char *value) {
  char numbers[32];
  const int least = variables[i].least, most = ws_setting_ranges[variables[i].setting].most;
  ws_text t = {numbers, sizeof numbers, 0};
  ws_text_add(&t, most - least == 1 ? "%d or %d" : "%d .. %d", least, most);
  ws_fail(NULL, WSGEMM_INVALID_VALUE, "warning: %s=%.60s is ignored; it must be %s", variables[i].name, value,
          variables[i].read ? variables[i].legal : numbers);
}

void ws_environment_read(const ws_environment_readers *given) {
  readers = given;
  environment.settings = ws_default_settings;
  ws_text report = {environment.report, sizeof environment.report, 0};
  for (int i = 0; i < N_VARIABLES; i++) {
    const char *value = getenv(variables[i].name);
    if (!value || !*value) continue;
    const bool ok = read_variable(i, value);
    ws_text_add(&report, "env %s: %.40s%s\n", variables[i].name, value, ok ? "" : " (ignored)");
    if (!ok) warn(i, value);
  }
}
