/* errors.c - bad arguments and failed calls: xerbla_, cblas_xerbla, and a line on stderr.
 *
 * The handlers are those of the reference BLAS, by name and arguments, and a program may have its
 * own: its definition comes first in the loader's order, and these are weak in a static link. Unlike
 * the reference's, these return to the caller, which returns to its own with nothing written. */
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "blas/blas.h"

#define WEAK WS_BLAS_EXPORT __attribute__((weak))

const char *const ws_blas_names[WS_BLAS_N_ROUTINES] = {
#define ROUTINE(name, family, letter) #name,
#include "blas/routines.def"
#undef ROUTINE
};

/* The reference CBLAS's own variables, which handlers read: whether sizes and lds are those of a
 * row-major call after its exchange, and whether the call came through CBLAS. */
WS_BLAS_EXPORT int RowMajorStrg, CBLAS_CallFromC;

/* ---- the handlers, if the program has none ---------------------------------------------------- */

static void say_bad_argument(const char *name, size_t length, long long number) {
  while (length > 0 && name[length - 1] == ' ') length--;
  fprintf(stderr, " ** On entry to %.*s parameter number %2lld had an illegal value\n", (int)length, name, number);
}

WEAK void xerbla_(const char *name, const int32_t *info, size_t length) { say_bad_argument(name, length, *info); }
WEAK void xerbla_64_(const char *name, const int64_t *info, size_t length) { say_bad_argument(name, length, *info); }

/* The argument's place in a row-major call, from that after the exchange. */
static int64_t place_in_call(const char *name, int64_t info) {
  static const struct {
    const char *part;
    int one, other;
  } exchanged[] = {{"gemmt", 9, 11}, {"gemm", 4, 5}, {"gemm", 9, 11}, {"symm", 4, 5},
                   {"hemm", 4, 5},   {"trmm", 6, 7}, {"trsm", 6, 7}};
  for (size_t i = 0; i < sizeof exchanged / sizeof exchanged[0]; i++) {
    if (!strstr(name, exchanged[i].part)) continue;
    if (info == exchanged[i].one) return exchanged[i].other;
    if (info == exchanged[i].other) return exchanged[i].one;
    if (i == 0) return info; /* gemmtr: n and k are 5 and 6 */
  }
  return info;
}

static void say_bad_position(int64_t info, const char *name, const char *form, va_list rest) {
  fprintf(stderr, "Parameter %lld to routine %s was incorrect\n", (long long)(RowMajorStrg ? place_in_call(name, info) : info),
          name);
  vfprintf(stderr, form, rest);
}

__attribute__((format(printf, 3, 4))) WEAK void cblas_xerbla(int32_t info, const char *name, const char *form, ...) {
  va_list rest;
  va_start(rest, form);
  say_bad_position(info, name, form, rest);
  va_end(rest);
}

__attribute__((format(printf, 3, 4))) WEAK void cblas_xerbla_64(int64_t info, const char *name, const char *form, ...) {
  va_list rest;
  va_start(rest, form);
  say_bad_position(info, name, form, rest);
  va_end(rest);
}

/* ---- what the entry points call --------------------------------------------------------------- */

static void report_fortran(ws_blas_caller caller, int info) {
  char name[32] = "";
  size_t length = 0;
  for (const char *from = ws_blas_names[caller.routine]; *from && length < sizeof name - 1; from++)
    name[length++] = *from >= 'a' && *from <= 'z' ? (char)(*from - 'a' + 'A') : *from;
  while (length < 6) name[length++] = ' '; /* as the reference has it: "DGEMM " */
  const int64_t info_64 = info;
  const int32_t info_32 = info;
  if (caller.way & WS_64)
    xerbla_64_(name, &info_64, length);
  else
    xerbla_(name, &info_32, length);
}

static void report_cblas(ws_blas_caller caller, int position) {
  char name[40];
  snprintf(name, sizeof name, "cblas_%s", ws_blas_names[caller.routine]);
  CBLAS_CallFromC = 1;
  RowMajorStrg = (caller.way & WS_ROW_MAJOR) != 0;
  if (caller.way & WS_64)
    cblas_xerbla_64(position, name, "%s", "");
  else
    cblas_xerbla(position, name, "%s", "");
  RowMajorStrg = CBLAS_CallFromC = 0;
}

bool ws_blas_bad(ws_blas_caller caller, int info) {
  if (caller.way & (WS_COL_MAJOR | WS_ROW_MAJOR))
    report_cblas(caller, info + 1);
  else
    report_fortran(caller, info);
  return false;
}

void ws_blas_failed(ws_blas_routine routine, wsgemm_status status) {
  const char *const why = wsgemm_last_error();
  fprintf(stderr, "wsgemm_blas: %s was not computed: %s%s%s\n", ws_blas_names[routine], wsgemm_status_text(status),
          *why ? ": " : "", why);
}
