/* check.c - the test runner: see check.h. What a check compares is left to the suites.
 *
 * Invariant: the exit status is 0 only if main ran to its end, at least one case ran, every case
 * that ran made a check, and no check failed. */
#include "check.h"

#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define MAX_PRINTED_FAILURES 10 /* per case; the rest is only counted */
#define EXIT_LEFT_EARLY 99

static atomic_llong n_checks, n_failures; /* of the running case */
static atomic_bool is_skipped;
static atomic_bool is_finished;
static const char *running_case = "";

static void fail_if_left_early(void) {
  if (!atomic_load(&is_finished)) {
    fprintf(stderr, "FAILED: the process left through exit() in case %s\n", running_case);
    fflush(NULL);
    _exit(EXIT_LEFT_EARLY);
  }
}

static void print_failure(const char *file, int line, const char *condition, const char *format, va_list arguments) {
  char text[1024];
  vsnprintf(text, sizeof text, format, arguments);
  fprintf(stderr, "%s:%d: %s: not so: %s: %s\n", file, line, running_case, condition, text);
}

bool check_record(bool passed, const char *file, int line, const char *condition, const char *format, ...) {
  atomic_fetch_add_explicit(&n_checks, 1, memory_order_relaxed);
  if (!passed && atomic_fetch_add(&n_failures, 1) < MAX_PRINTED_FAILURES) {
    va_list arguments;
    va_start(arguments, format);
    print_failure(file, line, condition, format, arguments);
    va_end(arguments);
  }
  return passed;
}

void check_abandon(const char *file, int line, const char *condition, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  print_failure(file, line, condition, format, arguments);
  va_end(arguments);
  fprintf(stderr, "FAILED: case %s cannot go on\n", running_case);
  fflush(NULL);
  _exit(1);
}

void check_skip(const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  printf("  skipped %s: ", running_case);
  vprintf(format, arguments);
  printf("\n");
  va_end(arguments);
  atomic_store(&is_skipped, true);
}

bool check_in_child(const char *what, void (*body)(void *argument), void *argument) {
  fflush(NULL);
  const pid_t child = fork();
  REQUIRE(child >= 0, "fork for %s", what);
  if (child == 0) {
    atomic_store(&n_checks, 0);
    atomic_store(&n_failures, 0);
    body(argument);
    const bool passed = atomic_load(&n_checks) > 0 && atomic_load(&n_failures) == 0;
    if (atomic_load(&n_checks) == 0) fprintf(stderr, "%s: the child for %s made no check\n", running_case, what);
    fflush(NULL);
    _exit(passed ? 0 : 1);
  }
  int status = -1;
  REQUIRE(waitpid(child, &status, 0) == child, "waitpid for %s", what);
  return CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0, "child for %s ended with wait status %#x", what, (unsigned)status);
}

#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define UNDER_TSAN 1
#elif __has_feature(address_sanitizer) || __has_feature(undefined_behavior_sanitizer)
#define UNDER_ASAN 1
#endif
#endif
#if defined(__SANITIZE_THREAD__)
#define UNDER_TSAN 1
#elif defined(__SANITIZE_ADDRESS__)
#define UNDER_ASAN 1
#endif

int check_scale(void) {
  const char *text = getenv("WSGEMM_TEST_SCALE");
  const int wanted = text ? atoi(text) : 0;
  if (wanted >= 1) return wanted;
#if defined(UNDER_TSAN)
  return 20;
#elif defined(UNDER_ASAN)
  return 6;
#else
  return 1;
#endif
}

struct check_random check_random_from(unsigned long long salt) {
  const char *text = getenv("WSGEMM_TEST_SEED");
  const unsigned long long seed = text ? strtoull(text, NULL, 0) : 0;
  struct check_random random = {seed * 0x9e3779b97f4a7c15ULL + salt};
  check_random_bits(&random);
  return random;
}

/* Splitmix64: every state gives a full-period sequence, so any salt will do. */
unsigned long long check_random_bits(struct check_random *random) {
  unsigned long long z = random->state += 0x9e3779b97f4a7c15ULL;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
  return z ^ (z >> 31);
}

long long check_random_in(struct check_random *random, long long low, long long high) {
  return low + (long long)(check_random_bits(random) % (unsigned long long)(high - low + 1));
}

double check_random_unit(struct check_random *random) {
  return (double)(int64_t)(check_random_bits(random) | 1) * 0x1p-63 * (1 - 0x1p-30);
}

static bool is_wanted(const char *name, int argc, char **argv) {
  if (argc < 2) return true;
  for (int i = 1; i < argc; i++)
    if (strcmp(argv[i], name) == 0) return true;
  return false;
}

int check_main(const char *suite, const struct check_case *cases, size_t n_cases, int argc, char **argv) {
  size_t n_run = 0, n_bad = 0, n_skipped = 0;
  long long n_all_checks = 0;
  atexit(fail_if_left_early);
  for (size_t i = 0; i < n_cases; i++) {
    if (!is_wanted(cases[i].name, argc, argv)) continue;
    atomic_store(&n_checks, 0);
    atomic_store(&n_failures, 0);
    atomic_store(&is_skipped, false);
    running_case = cases[i].name;
    printf("  case %s\n", running_case);
    fflush(NULL);
    cases[i].run();
    n_run++;
    const long long checks = atomic_load(&n_checks), failures = atomic_load(&n_failures);
    n_all_checks += checks;
    if (failures > 0) {
      fprintf(stderr, "FAILED %s.%s: %lld of %lld checks\n", suite, running_case, failures, checks);
      n_bad++;
    } else if (atomic_load(&is_skipped)) {
      n_skipped++;
    } else if (checks == 0) {
      fprintf(stderr, "FAILED %s.%s: made no check\n", suite, running_case);
      n_bad++;
    }
  }
  printf("%s: %zu cases, %lld checks, %zu cases failed, %zu skipped\n", suite, n_run, n_all_checks, n_bad, n_skipped);
  if (n_run == 0) fprintf(stderr, "FAILED %s: no case of that name\n", suite);
  fflush(NULL);
  atomic_store(&is_finished, true);
  if (n_bad > 0 || n_run == 0) return 1;
  return n_skipped == n_run ? CHECK_EXIT_SKIPPED : 0;
}
