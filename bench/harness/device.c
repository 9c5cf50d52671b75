/* device.c - see device.h. The name is made from what the kernel says about the processor, and
 * only labels results. */
#define _GNU_SOURCE
#include "bench/harness/device.h"

#include <ctype.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* AMD's server parts carry no generation in their name under many hypervisors. */
static const struct {
  const char *vendor;
  int family, first_model, last_model;
  const char *name;
} generations[] = {
    {"AuthenticAMD", 23, 0x00, 0x2f, "zen"},  {"AuthenticAMD", 23, 0x30, 0xff, "zen2"}, {"AuthenticAMD", 25, 0x00, 0x0f, "zen3"},
    {"AuthenticAMD", 25, 0x10, 0x1f, "zen4"}, {"AuthenticAMD", 25, 0x20, 0x5f, "zen3"}, {"AuthenticAMD", 25, 0x60, 0xaf, "zen4"},
    {"AuthenticAMD", 26, 0x00, 0xff, "zen5"},
};

static bool take_field(const char *line, const char *key, char *value, size_t bytes) {
  const size_t length = strlen(key);
  const char *colon = strchr(line, ':');
  if (strncmp(line, key, length) || !colon || strspn(line + length, " \t") != (size_t)(colon - line) - length) return false;
  snprintf(value, bytes, "%s", colon + 1 + strspn(colon + 1, " \t"));
  value[strcspn(value, "\n")] = 0;
  return true;
}

/* "Intel(R) Xeon(R) CPU @ 2.0GHz" becomes "Intel Xeon". */
static void tidy_model(char *model) {
  static const char *const noise[] = {"(R)", "(TM)", "(r)", "(tm)", " CPU", " Processor"};
  char *at = strstr(model, " @ ");
  if (at) *at = 0;
  for (size_t i = 0; i < sizeof noise / sizeof *noise; i++)
    while ((at = strstr(model, noise[i]))) memmove(at, at + strlen(noise[i]), strlen(at + strlen(noise[i])) + 1);
}

static void make_slug(char *slug, size_t bytes, const char *text) {
  size_t used = 0;
  for (; *text && used + 1 < bytes; text++) {
    if (isalnum((unsigned char)*text))
      slug[used++] = (char)tolower((unsigned char)*text);
    else if (used && slug[used - 1] != '-')
      slug[used++] = '-';
  }
  slug[used] = 0;
}

ws_bench_device ws_bench_device_cpu(void) {
  ws_bench_device d;
  char line[512], model[80] = "", vendor[32] = "", implementer[16] = "", part[16] = "", family[16] = "", number[16] = "",
                  slug[80];
  const char *generation = "";
  cpu_set_t set;
  FILE *f = fopen("/proc/cpuinfo", "re");
  while (f && fgets(line, sizeof line, f)) {
    if (*line == '\n' && (*model || *part)) break; /* the first processor is enough */
    if (!take_field(line, "model name", model, sizeof model) && !take_field(line, "vendor_id", vendor, sizeof vendor) &&
        !take_field(line, "cpu family", family, sizeof family) && !take_field(line, "model", number, sizeof number) &&
        !take_field(line, "CPU implementer", implementer, sizeof implementer))
      take_field(line, "CPU part", part, sizeof part);
  }
  if (f) fclose(f);
  if (!*model) snprintf(model, sizeof model, "CPU implementer %s part %s", implementer, part);
  tidy_model(model);
  for (size_t i = 0; i < sizeof generations / sizeof *generations; i++)
    if (!strcmp(vendor, generations[i].vendor) && atoi(family) == generations[i].family &&
        atoi(number) >= generations[i].first_model && atoi(number) <= generations[i].last_model)
      generation = generations[i].name;
  d.n_cores = sched_getaffinity(0, sizeof set, &set) ? 1 : CPU_COUNT(&set);
  snprintf(d.name, sizeof d.name, "%s%s%s, %d core%s", model, *generation ? " " : "", generation, d.n_cores,
           d.n_cores == 1 ? "" : "s");
  snprintf(line, sizeof line, "%s %s", model, generation);
  make_slug(slug, sizeof slug, line);
  snprintf(d.slug, sizeof d.slug, "%s%s%dc", slug, slug[strlen(slug) - 1] == '-' ? "" : "-", d.n_cores);
  return d;
}
