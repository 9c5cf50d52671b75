/* test_blas_arguments.c - argument errors of the BLAS library: for every routine and every argument
 * that can be wrong, through Fortran and CBLAS with both integer widths, the routine's name and the
 * number of the first bad argument, and nothing written. Also: this program's own handlers are the
 * ones that are called.
 *
 * The handlers take numbers as the reference CBLAS gives them: in a row-major call sizes and lds have
 * changed places, and RowMajorStrg says so. */
#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "routines.h"
#include "support/check.h"

extern int RowMajorStrg;

/* ---- this program's handlers ------------------------------------------------------------------ */

static struct {
  int n_calls;
  char name[40];
  int64_t info;
  int is_row_major, is_64;
} seen;

static void see(const char *name, size_t length, int64_t info, int is_64) {
  seen.n_calls++;
  snprintf(seen.name, sizeof seen.name, "%.*s", (int)length, name);
  seen.info = info, seen.is_64 = is_64, seen.is_row_major = RowMajorStrg;
}

void xerbla_(const char *name, const int32_t *info, size_t length);
void xerbla_64_(const char *name, const int64_t *info, size_t length);
void cblas_xerbla(int32_t info, const char *name, const char *form, ...);
void cblas_xerbla_64(int64_t info, const char *name, const char *form, ...);
void xerbla_(const char *name, const int32_t *info, size_t length) { see(name, length, *info, 0); }
void xerbla_64_(const char *name, const int64_t *info, size_t length) { see(name, length, *info, 1); }
void cblas_xerbla(int32_t info, const char *name, const char *form, ...) {
  (void)form;
  see(name, strlen(name), info, 0);
}
void cblas_xerbla_64(int64_t info, const char *name, const char *form, ...) {
  (void)form;
  see(name, strlen(name), info, 1);
}

/* ---- what each family takes ------------------------------------------------------------------- */

/* A good call, arguments numbered as in CBLAS; then what spoils it, in the order of the checks. */
struct spoiled {
  int number;          /* of the argument in the CBLAS call */
  int64_t col, row;    /* a bad value, column-major and row-major */
  int number_row_seen; /* the number that a handler gets in a row-major call */
};

enum { BAD = 7 };
enum { ROW = WSGEMM_ROW_MAJOR, NO = WSGEMM_NO_TRANS, UP = WSGEMM_UPPER, LEFT = WSGEMM_LEFT, NON = WSGEMM_NON_UNIT };

struct shape {
  int64_t good[MOST_ARGUMENTS + 1];     /* [1] is the layout */
  int64_t good_row[MOST_ARGUMENTS + 1]; /* 0: as in `good` */
  struct spoiled spoiled[12];
};

/* m = 2, n = 3, k = 4 (gemmtr, rank k: n = 3, k = 4; copies: 2 rows, 3 columns). */
static const struct shape shapes[] = {
    [family_gemm] = {{0, 0, NO, NO, 2, 3, 4, 0, 0, 2, 0, 4, 0, 0, 2},
                     {[9] = 4, [11] = 3, [14] = 3},
                     {{2, BAD, BAD, 2},
                      {3, BAD, BAD, 3},
                      {4, -1, 0, 0},
                      {4, 0, -1, 5},
                      {5, -1, 0, 0},
                      {5, 0, -1, 4},
                      {6, -1, -1, 6},
                      {9, 1, 3, 11},
                      {11, 3, 2, 9},
                      {14, 1, 2, 14}}},
    [family_gemmtr] = {{0, 0, UP, NO, NO, 3, 4, 0, 0, 3, 0, 4, 0, 0, 3},
                       {[9] = 4, [11] = 3, [14] = 3},
                       {{2, BAD, BAD, 2},
                        {3, BAD, BAD, 3},
                        {4, BAD, BAD, 4},
                        {5, -1, -1, 5},
                        {6, -1, -1, 6},
                        {9, 2, 3, 11},
                        {11, 3, 2, 9},
                        {14, 2, 2, 14}}},
    [family_symm] = {{0, 0, LEFT, UP, 2, 3, 0, 0, 2, 0, 2, 0, 0, 2},
                     {[10] = 3, [13] = 3},
                     {{2, BAD, BAD, 2},
                      {3, BAD, BAD, 3},
                      {4, -1, 0, 0},
                      {4, 0, -1, 5},
                      {5, -1, 0, 0},
                      {5, 0, -1, 4},
                      {8, 1, 1, 8},
                      {10, 1, 2, 10},
                      {13, 1, 2, 13}}},
    [family_syrk] = {{0, 0, UP, NO, 3, 4, 0, 0, 3, 0, 0, 3},
                     {[8] = 4},
                     {{2, BAD, BAD, 2}, {3, BAD, BAD, 3}, {4, -1, -1, 4}, {5, -1, -1, 5}, {8, 2, 3, 8}, {11, 2, 2, 11}}},
    [family_syr2k] =
        {{0, 0, UP, NO, 3, 4, 0, 0, 3, 0, 3, 0, 0, 3},
         {[8] = 4, [10] = 4},
         {{2, BAD, BAD, 2}, {3, BAD, BAD, 3}, {4, -1, -1, 4}, {5, -1, -1, 5}, {8, 2, 3, 8}, {10, 2, 3, 10}, {13, 2, 2, 13}}},
    [family_trmm] = {{0, 0, LEFT, UP, NO, NON, 2, 3, 0, 0, 2, 0, 2},
                     {[12] = 3},
                     {{2, BAD, BAD, 2},
                      {3, BAD, BAD, 3},
                      {4, BAD, BAD, 4},
                      {5, BAD, BAD, 5},
                      {6, -1, 0, 0},
                      {6, 0, -1, 7},
                      {7, -1, 0, 0},
                      {7, 0, -1, 6},
                      {10, 1, 1, 10},
                      {12, 1, 2, 12}}},
    [family_batch] = {{0, 0, NO, NO, 2, 3, 4, 0, 0, 2, 0, 4, 0, 0, 2, 1, 1},
                      {[9] = 4, [11] = 3, [14] = 3},
                      {{2, BAD, BAD, 2},
                       {3, BAD, BAD, 3},
                       {4, -1, -1, 4},
                       {5, -1, -1, 5},
                       {6, -1, -1, 6},
                       {9, 1, 3, 9},
                       {11, 3, 2, 11},
                       {14, 1, 2, 14},
                       {15, -1, -1, 15},
                       {16, -1, -1, 16}}},
    [family_strided] = {{0, 0, NO, NO, 2, 3, 4, 0, 0, 2, 64, 0, 4, 64, 0, 0, 2, 64, 1},
                        {[9] = 4, [12] = 3, [16] = 3},
                        {{2, BAD, BAD, 2},
                         {3, BAD, BAD, 3},
                         {4, -1, -1, 4},
                         {5, -1, -1, 5},
                         {6, -1, -1, 6},
                         {9, 1, 3, 9},
                         {12, 3, 2, 12},
                         {16, 1, 2, 16},
                         {18, -1, -1, 18}}},
    [family_omatcopy] = {{0, 0, NO, 2, 3, 0, 0, 2, 0, 2},
                         {[7] = 3, [9] = 3},
                         {{2, BAD, BAD, 2}, {3, -1, -1, 3}, {4, -1, -1, 4}, {7, 1, 2, 7}, {9, 1, 2, 9}}},
    [family_imatcopy] = {{0, 0, NO, 2, 3, 0, 0, 2, 2},
                         {[7] = 3, [8] = 3},
                         {{2, BAD, BAD, 2}, {3, -1, -1, 3}, {4, -1, -1, 4}, {7, 1, 2, 7}, {8, 1, 2, 8}}},
};

static const struct shape *shape_of(enum family family) {
  switch (family) {
  case family_half:
  case family_bgemm:
    return &shapes[family_gemm];
  case family_herk:
    return &shapes[family_syrk];
  case family_her2k:
    return &shapes[family_syr2k];
  default:
    return &shapes[family];
  }
}

/* ---- operands, whose bytes must stay as they are ----------------------------------------------- */

static unsigned char memory[3][16 * 64 * 4];
static const double one[2] = {1, 0}; /* of any type's size; its value does not matter */

static struct operands guarded_operands(void) {
  memset(memory, 0x5a, sizeof memory);
  return (struct operands){memory[0], memory[1], memory[2], one, one};
}

static bool is_untouched(void) {
  for (size_t i = 0; i < sizeof memory; i++)
    if (((unsigned char *)memory)[i] != 0x5a) return false;
  return true;
}

/* ---- CBLAS ------------------------------------------------------------------------------------ */

static void check_cblas_call(const struct routine *r, int is_64, const int64_t *v, int64_t info, int is_row_major) {
  char name[40];
  snprintf(name, sizeof name, "cblas_%s", r->name);
  const struct operands operands = guarded_operands();
  memset(&seen, 0, sizeof seen);
  (is_64 ? r->call_64 : r->call)(v, &operands);
  CHECK(seen.n_calls == 1 && seen.info == info && strcmp(seen.name, name) == 0 && seen.is_64 == is_64,
        "%s%s, layout %d: %d calls of the handler, %s with number %d, not %d", name, is_64 ? "_64" : "", (int)v[1], seen.n_calls,
        seen.name, (int)seen.info, (int)info);
  CHECK(seen.is_row_major == is_row_major && RowMajorStrg == 0, "%s: RowMajorStrg was %d", name, seen.is_row_major);
  CHECK(is_untouched(), "%s with bad argument %d wrote", name, (int)info);
}

static void make_good(const struct shape *shape, bool is_row, int64_t *v) {
  for (int i = 0; i <= MOST_ARGUMENTS; i++) v[i] = is_row && shape->good_row[i] ? shape->good_row[i] : shape->good[i];
  v[1] = is_row ? WSGEMM_ROW_MAJOR : WSGEMM_COL_MAJOR;
}

/* Batches and copies report places in the call itself, and no exchange. */
static bool has_exchange(enum family family) { return family < family_batch; }

static void check_cblas(const struct routine *r, int is_64) {
  const struct shape *const shape = shape_of(r->family);
  for (int is_row = 0; is_row < 2; is_row++) {
    int64_t v[MOST_ARGUMENTS + 1];
    for (const struct spoiled *s = shape->spoiled; s->number; s++) {
      const int64_t value = is_row ? s->row : s->col;
      if (value == 0 && (is_row ? s->number_row_seen == 0 : true)) continue; /* a line for the other layout */
      make_good(shape, is_row, v);
      v[s->number] = value;
      check_cblas_call(r, is_64, v, is_row ? s->number_row_seen : s->number, is_row && has_exchange(r->family));
    }
    make_good(shape, is_row, v);
    v[1] = BAD;
    check_cblas_call(r, is_64, v, 1, 0);
  }
}

static void cblas(void) {
  for (int i = 0; i < N_ROUTINES; i++) check_cblas(&routines[i], 0);
}
static void cblas_64(void) {
  for (int i = 0; i < N_ROUTINES; i++) check_cblas(&routines[i], 1);
}

/* Of two bad arguments the first one is reported: in a row-major call the first after the exchange. */
static void first_of_two(void) {
  for (int i = 0; i < N_ROUTINES; i++) {
    const struct shape *const shape = shape_of(routines[i].family);
    int64_t v[MOST_ARGUMENTS + 1];
    make_good(shape, false, v);
    int64_t least = 0;
    for (const struct spoiled *s = shape->spoiled; s->number; s++) {
      const bool is_group_count = routines[i].family == family_batch && s->number == 15; /* comes before the groups */
      if (s->col == 0 || is_group_count) continue;
      v[s->number] = s->col;
      if (!least) least = s->number;
    }
    check_cblas_call(&routines[i], 0, v, least, 0);
  }
}

/* ---- Fortran ---------------------------------------------------------------------------------- */

#define ROUTINE(name, family, letter) \
  void name##_(void);                 \
  void name##_64_(void);
#include "blas/routines.def"
#undef ROUTINE
static void (*const fortran_names[][2])(void) = {
#define ROUTINE(name, family, letter) {name##_, name##_64_},
#include "blas/routines.def"
#undef ROUTINE
};

/* Which arguments are letters, and what they are for the enumerators' values. */
static char letter_of(int64_t value) {
  switch (value) {
  case WSGEMM_NO_TRANS:
  case WSGEMM_NON_UNIT:
    return 'n'; /* lower case will do */
  case WSGEMM_UPPER:
    return 'U';
  case WSGEMM_LEFT:
    return 'L';
  default:
    return '/';
  }
}

/* Matrices stand in the Fortran call where `good` has 0, among them the scalars. */
static void check_fortran(const struct routine *r, int index, int is_64) {
  const struct shape *const shape = shape_of(r->family);
  const bool has_order = r->family == family_omatcopy || r->family == family_imatcopy;
  char name[40] = "";
  for (size_t i = 0; r->name[i]; i++) name[i] = (char)toupper((unsigned char)r->name[i]);
  while (strlen(name) < 6) strcat(name, " ");
  for (const struct spoiled *s = shape->spoiled; s->number; s++) {
    if (s->col == 0) continue;
    int64_t v[MOST_ARGUMENTS + 1];
    make_good(shape, false, v);
    v[s->number] = s->col;
    /* CBLAS's argument i is Fortran's i - 1: the layout is missing, but copies have it as a letter. */
    int32_t numbers[MOST_ARGUMENTS + 1];
    char letters[MOST_ARGUMENTS + 1];
    const void *p[MOST_ARGUMENTS + 1];
    const struct operands operands = guarded_operands();
    const int shift = has_order ? 0 : 1;
    for (int i = 1; i <= MOST_ARGUMENTS; i++) {
      numbers[i] = (int32_t)v[i], letters[i] = letter_of(v[i]);
      if (has_order && i == 1) letters[i] = 'C';
      const bool is_letter = shape->good[i] >= WSGEMM_ROW_MAJOR || (has_order && i == 1);
      const bool is_matrix_or_scalar = shape->good[i] == 0 && !is_letter;
      const void *const given = is_letter             ? (const void *)&letters[i]
                                : is_matrix_or_scalar ? (const void *)operands.c
                                : is_64               ? (const void *)&v[i]
                                                      : (const void *)&numbers[i];
      if (i - shift >= 1) p[i - shift] = given;
    }
    if (!has_order) p[MOST_ARGUMENTS] = NULL;
    fortran_routine routine;
    memcpy(&routine, &fortran_names[index][is_64], sizeof routine);
    memset(&seen, 0, sizeof seen);
    routine(p[1], p[2], p[3], p[4], p[5], p[6], p[7], p[8], p[9], p[10], p[11], p[12], p[13], p[14], p[15], p[16], p[17]);
    const int info = s->number - shift;
    CHECK(seen.n_calls == 1 && seen.info == info && strcmp(seen.name, name) == 0 && seen.is_64 == is_64,
          "%s%s: %d calls of the handler, <%s> with number %d, not %d", name, is_64 ? "_64" : "", seen.n_calls, seen.name,
          (int)seen.info, info);
    CHECK(is_untouched(), "%s with bad argument %d wrote", name, info);
  }
}

static void fortran(void) {
  for (int i = 0; i < N_ROUTINES; i++) check_fortran(&routines[i], i, 0);
}
static void fortran_64(void) {
  for (int i = 0; i < N_ROUTINES; i++) check_fortran(&routines[i], i, 1);
}

static const struct check_case cases[] = {
    {"cblas", cblas}, {"cblas_64", cblas_64}, {"first_of_two", first_of_two}, {"fortran", fortran}, {"fortran_64", fortran_64}};
CHECK_MAIN("blas_arguments", cases)
