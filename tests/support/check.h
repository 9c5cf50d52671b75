/* check.h - the test runner of this folder: cases in a table, checks that are counted, one exit
 * status.
 *
 * A run cannot pass in silence: a case that makes no check fails, a process that leaves early
 * (exit() called from anywhere) fails, and a suite in which every case was skipped exits with 77,
 * which CTest shows as skipped. A case name on the command line runs only that case. Checks may be
 * made from any thread. */
#ifndef WSGEMM_TESTS_CHECK_H
#define WSGEMM_TESTS_CHECK_H

#include <stdbool.h>
#include <stddef.h>

struct check_case {
  const char *name;
  void (*run)(void);
};

#define CHECK_EXIT_SKIPPED 77

/* Runs the cases (those named in argv, or all) and returns the exit status of main. */
int check_main(const char *suite, const struct check_case *cases, size_t n_cases, int argc, char **argv);

#define CHECK_MAIN(suite, cases) \
  int main(int argc, char **argv) { return check_main(suite, cases, sizeof(cases) / sizeof((cases)[0]), argc, argv); }

/* Records one check; on failure prints the place, the condition and the printf-style text, and goes
 * on. Value: the condition. */
#define CHECK(condition, ...) check_record((condition), __FILE__, __LINE__, #condition, __VA_ARGS__)

/* The same, but a failure ends the process: for what the rest of the case cannot do without. */
#define REQUIRE(condition, ...)                                                        \
  ((condition) ? (void)check_record(true, __FILE__, __LINE__, #condition, __VA_ARGS__) \
               : check_abandon(__FILE__, __LINE__, #condition, __VA_ARGS__))

bool check_record(bool passed, const char *file, int line, const char *condition, const char *format, ...)
    __attribute__((format(printf, 5, 6)));
void check_abandon(const char *file, int line, const char *condition, const char *format, ...)
    __attribute__((format(printf, 4, 5), noreturn));

/* Marks the running case as skipped, with the reason; the case should then return. A skipped case
 * may not have failed. */
void check_skip(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Runs body(argument) in a forked child and checks that it ended well with at least one check made
 * and none failed. Value: whether it did. */
bool check_in_child(const char *what, void (*body)(void *argument), void *argument);

/* How much repeated work to leave out: 1 runs everything, s about one part in s. WSGEMM_TEST_SCALE
 * in the environment, else a default that depends on the sanitizer. */
int check_scale(void);

/* Sequence of 64-bit numbers that is the same in every run (WSGEMM_TEST_SEED changes it). */
struct check_random {
  unsigned long long state;
};
struct check_random check_random_from(unsigned long long salt);
unsigned long long check_random_bits(struct check_random *random);
/* both ends included */
long long check_random_in(struct check_random *random, long long low, long long high);
/* in (-1, 1) */
double check_random_unit(struct check_random *random);

#endif
