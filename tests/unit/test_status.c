/* test_status.c - the small promises of the header: status names and texts, CBLAS's enum values,
 * layouts of the structs, texts that are cut and closed, versions, the registry's listing,
 * last_error per thread. */
#include "support/check.h"
#include "wsgemm.h"

#include <complex.h>
#include <ctype.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

static void status_list(void) {
  static const struct {
    wsgemm_status status;
    int value;
    const char *name, *text;
  } list[] = {
#define STATUS_ROW(name, value, text) {WSGEMM_##name, value, "WSGEMM_" #name, text},
      WSGEMM_STATUS_MAP(STATUS_ROW)
#undef STATUS_ROW
  };
  const int n_statuses = (int)(sizeof list / sizeof list[0]);
  CHECK(WSGEMM_SUCCESS == 0, "SUCCESS is %d", WSGEMM_SUCCESS);
  for (int i = 0; i < n_statuses; i++) {
    CHECK((int)list[i].status == list[i].value, "%s is %d", list[i].name, (int)list[i].status);
    CHECK(strcmp(wsgemm_status_name(list[i].status), list[i].name) == 0, "%s is called %s", list[i].name,
          wsgemm_status_name(list[i].status));
    CHECK(strcmp(wsgemm_status_text(list[i].status), list[i].text) == 0, "%s: %s", list[i].name,
          wsgemm_status_text(list[i].status));
    CHECK(strlen(list[i].text) > 3, "%s has no text", list[i].name);
    for (int j = 0; j < i; j++)
      CHECK(list[i].value != list[j].value && strcmp(list[i].text, list[j].text) != 0, "%s and %s", list[i].name, list[j].name);
  }
  const int unknown[] = {-1, n_statuses, 1000, INT32_MAX, INT32_MIN};
  for (size_t i = 0; i < sizeof unknown / sizeof unknown[0]; i++) {
    CHECK(strcmp(wsgemm_status_name((wsgemm_status)unknown[i]), "WSGEMM_UNKNOWN") == 0, "%d", unknown[i]);
    CHECK(strcmp(wsgemm_status_text((wsgemm_status)unknown[i]), "unknown status") == 0, "%d", unknown[i]);
  }
}

static void values_and_layouts(void) {
  CHECK(WSGEMM_ROW_MAJOR == 101 && WSGEMM_COL_MAJOR == 102, "layout");
  CHECK(WSGEMM_NO_TRANS == 111 && WSGEMM_TRANS == 112 && WSGEMM_CONJ_TRANS == 113 && WSGEMM_CONJ_NO_TRANS == 114, "op");
  CHECK(WSGEMM_UPPER == 121 && WSGEMM_LOWER == 122 && WSGEMM_NON_UNIT == 131 && WSGEMM_UNIT == 132, "uplo, diag");
  CHECK(WSGEMM_LEFT == 141 && WSGEMM_RIGHT == 142, "side");
  CHECK(sizeof(wsgemm_cfloat) == 2 * sizeof(float) && _Alignof(wsgemm_cfloat) == _Alignof(float), "cfloat");
  CHECK(sizeof(wsgemm_cdouble) == 2 * sizeof(double) && _Alignof(wsgemm_cdouble) == _Alignof(double), "cdouble");
  CHECK(sizeof(wsgemm_scalar) == sizeof(wsgemm_cdouble), "scalar");
  CHECK(WSGEMM_EPILOGUE_NONE == 0 && WSGEMM_EPILOGUE_RELU == 1 && WSGEMM_EPILOGUE_GELU_TANH == 2 &&
            WSGEMM_EPILOGUE_GELU_ERF == 3 && WSGEMM_EPILOGUE_SILU == 4 && WSGEMM_BIAS_PER_ROW == 0 && WSGEMM_BIAS_PER_COLUMN == 1,
        "epilogue");
  CHECK(sizeof(wsgemm_f16) == 2 && sizeof(wsgemm_bf16) == 2, "halves");
  CHECK(WSGEMM_F32 == 0 && WSGEMM_F64 == 1 && WSGEMM_C32 == 2 && WSGEMM_C64 == 3 && WSGEMM_F16 == 4 && WSGEMM_BF16 == 5, "type");
  const wsgemm_gemm_desc d = WSGEMM_GEMM_DESC_INIT;
  CHECK(d.struct_bytes == sizeof d && d.layout == WSGEMM_COL_MAJOR && d.transa == WSGEMM_NO_TRANS &&
            d.transb == WSGEMM_NO_TRANS && d.type_a == WSGEMM_F32 && d.type_b == WSGEMM_F32 && d.type_c == WSGEMM_F32 &&
            d.type_scalar == WSGEMM_F32 && d.math == WSGEMM_MATH_INHERIT && d.scalar_mode == WSGEMM_SCALAR_VALUE &&
            d.epilogue == WSGEMM_EPILOGUE_NONE && d.m == 0 && d.n == 0 && d.k == 0 && !d.a && !d.b && !d.c && d.lda == 0 &&
            d.ldb == 0 && d.ldc == 0 && d.batch_count == 1 && d.stride_a == 0 && d.stride_b == 0 && d.stride_c == 0 &&
            d.bias_per == WSGEMM_BIAS_PER_ROW && d.type_bias == WSGEMM_F32 && !d.bias && d.stride_bias == 0 && !d.residual &&
            d.ld_residual == 0 && d.stride_residual == 0 && d.out_scale == 1 && !d.column_sums && d.stride_column_sums == 0,
        "WSGEMM_GEMM_DESC_INIT fills the wrong members");
}

/* As users hold them: without a cast, and without a warning from a strict compiler (this suite is
 * compiled so). */
static void complex_pointers(void) {
  const float complex a = 1 + 2 * I, b = 3 - 4 * I;
  const double complex za = 5 + 6 * I, zb = 7 - 8 * I;
  const wsgemm_cfloat two = {2, 0}, zero = {0, 0};
  const wsgemm_cdouble ztwo = {2, 0}, zzero = {0, 0}, own = {5, 6};
  float complex c = 0;
  double complex z = 0;
  wsgemm_cdouble own_c;
  CHECK(wsgemm_cgemm(NULL, WSGEMM_COL_MAJOR, WSGEMM_NO_TRANS, WSGEMM_NO_TRANS, 1, 1, 1, two, &a, 1, &b, 1, zero, &c, 1) ==
            WSGEMM_SUCCESS,
        "cgemm: %s", wsgemm_last_error());
  CHECK(crealf(c) == 22 && cimagf(c) == 4, "cgemm: (%g, %g)", (double)crealf(c), (double)cimagf(c));
  CHECK(wsgemm_zgemm(NULL, WSGEMM_COL_MAJOR, WSGEMM_NO_TRANS, WSGEMM_NO_TRANS, 1, 1, 1, ztwo, &za, 1, &zb, 1, zzero, &z, 1) ==
            WSGEMM_SUCCESS,
        "zgemm: %s", wsgemm_last_error());
  CHECK(creal(z) == 166 && cimag(z) == 4, "zgemm: (%g, %g)", creal(z), cimag(z));
  CHECK(wsgemm_zgemm(NULL, WSGEMM_COL_MAJOR, WSGEMM_NO_TRANS, WSGEMM_NO_TRANS, 1, 1, 1, ztwo, &own, 1, &zb, 1, zzero, &own_c,
                     1) == WSGEMM_SUCCESS &&
            own_c.re == 166 && own_c.im == 4,
        "zgemm of wsgemm_cdouble: (%g, %g)", own_c.re, own_c.im);
}

static void versions(void) {
  char expected[32];
  snprintf(expected, sizeof expected, "%d.%d.%d", WSGEMM_VERSION_MAJOR, WSGEMM_VERSION_MINOR, WSGEMM_VERSION_PATCH);
  CHECK(wsgemm_version() == WSGEMM_VERSION, "%d", wsgemm_version());
  CHECK(strcmp(wsgemm_version_string(), expected) == 0, "%s", wsgemm_version_string());
}

static void registry(void) {
  const int n_rows = wsgemm_kernel_count();
  CHECK(n_rows >= 4, "%d rows", n_rows);
  CHECK(wsgemm_kernel_name(-1) == NULL && wsgemm_kernel_name(n_rows) == NULL, "names beyond the rows");
  CHECK(!wsgemm_kernel_usable(-1) && !wsgemm_kernel_usable(n_rows), "usable beyond the rows");
  for (int i = 0; i < n_rows; i++) {
    const char *name = wsgemm_kernel_name(i);
    REQUIRE(name, "row %d has no name", i);
    CHECK(strchr("sdczhb", name[0]) && strncmp(name + 1, "gemm_", 5) == 0 && isalnum((unsigned char)name[strlen(name) - 1]), "%s",
          name);
    for (int j = 0; j < i; j++) CHECK(strcmp(name, wsgemm_kernel_name(j)) != 0, "two rows are called %s", name);
    wsgemm_kernel_info info = {.struct_bytes = sizeof info};
    REQUIRE(wsgemm_get_kernel_info(i, &info) == WSGEMM_SUCCESS, "%s: %s", name, wsgemm_last_error());
    if (strcmp(info.family, "ref") == 0) CHECK(info.is_usable, "%s needs nothing, yet is not usable", name);
  }
}

/* ---- Texts ----------------------------------------------------------------------------------- */

static size_t text_config(char *text, size_t bytes) { return wsgemm_config(text, bytes); }
static size_t text_machine(char *text, size_t bytes) { return wsgemm_machine(text, bytes); }
static size_t text_explain(char *text, size_t bytes) {
  wsgemm_gemm_desc d = WSGEMM_GEMM_DESC_INIT;
  d.m = d.n = d.k = d.lda = d.ldb = d.ldc = 500;
  d.alpha.s = 1;
  return wsgemm_explain(NULL, &d, text, bytes);
}
static size_t text_explain_error(char *text, size_t bytes) { return wsgemm_explain(NULL, NULL, text, bytes); }

/* snprintf's manner: the length of the whole, cut to the buffer and closed, not a byte beyond
 * it. */
static void text_is_cut(const char *what, size_t (*ask)(char *text, size_t bytes)) {
  char whole[8192], cut[8192];
  const size_t length = ask(NULL, 0);
  REQUIRE(length > 0 && length < sizeof whole, "%s: %zu bytes", what, length);
  CHECK(ask(whole, sizeof whole) == length && strlen(whole) == length, "%s: length %zu is not %zu", what, strlen(whole), length);
  for (size_t bytes = 0; bytes <= length + 2; bytes++) {
    memset(cut, 'x', sizeof cut);
    CHECK(ask(cut, bytes) == length, "%s: another length for %zu bytes", what, bytes);
    const size_t kept = bytes == 0 ? 0 : bytes - 1 < length ? bytes - 1 : length;
    CHECK(memcmp(cut, whole, kept) == 0 && (bytes == 0 || cut[kept] == '\0') && cut[bytes > kept ? kept + 1 : 0] == 'x',
          "%s: wrong text in %zu bytes", what, bytes);
    CHECK(cut[bytes] == 'x', "%s: a byte beyond %zu was written", what, bytes);
  }
  int n_lines = 0;
  for (const char *line = whole; *line; n_lines++) {
    const char *end = strchr(line, '\n'), *colon = strstr(line, ": ");
    REQUIRE(end, "%s: the last line is not closed", what);
    CHECK(colon && colon < end && colon > line, "%s: no \"key: value\" in line %d", what, n_lines);
    line = end + 1;
  }
  CHECK(n_lines >= 1, "%s: no line", what);
}

static bool has_key(const char *text, const char *key) {
  const size_t length = strlen(key);
  for (const char *line = text; line; line = strchr(line, '\n') ? strchr(line, '\n') + 1 : NULL)
    if (strncmp(line, key, length) == 0 && line[length] == ':') return true;
  return false;
}

/* A row-major product is named as the caller has it, then as it is computed. */
static void explain_by_layout(void) {
  wsgemm_gemm_desc d = WSGEMM_GEMM_DESC_INIT;
  char text[4096];
  d.m = 30, d.n = 20, d.k = 10, d.lda = d.ldb = 50, d.ldc = 60;
  d.type_a = d.type_b = d.type_c = d.type_scalar = WSGEMM_C32;
  d.alpha.c.re = 1;
  d.transa = WSGEMM_CONJ_TRANS, d.transb = WSGEMM_CONJ_NO_TRANS;
  const char *const product = "problem: cgemm cn* m=30 n=20 k=10 batch=1\n";
  d.layout = WSGEMM_ROW_MAJOR;
  wsgemm_explain(NULL, &d, text, sizeof text);
  CHECK(strncmp(text, product, strlen(product)) == 0, "%s", text);
  CHECK(strstr(text, "\nlayout: row-major\ncomputed_as: column-major C^T = op(B)^T op(A)^T, m=20 n=30;"), "%s", text);
  d.layout = WSGEMM_COL_MAJOR;
  wsgemm_explain(NULL, &d, text, sizeof text);
  CHECK(strncmp(text, product, strlen(product)) == 0 && strstr(text, "\nlayout: column-major\n"), "%s", text);
  CHECK(!has_key(text, "computed_as"), "%s", text);
}

static void texts(void) {
  text_is_cut("config", text_config);
  text_is_cut("machine", text_machine);
  text_is_cut("explain", text_explain);
  text_is_cut("explain of nothing", text_explain_error);
  static const char *const keys[] = {"kernel", "tile", "k_block", "coarse_factor", "policy", "threads"};
  char text[4096];
  text_explain(text, sizeof text);
  for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) CHECK(has_key(text, keys[i]), "explain names no %s", keys[i]);
  text_config(text, sizeof text);
  CHECK(has_key(text, "version") && strstr(text, wsgemm_version_string()), "config names no version");
  text_machine(text, sizeof text);
  CHECK(has_key(text, "isa") && has_key(text, "threads"), "machine names no isa or threads");
  text_explain_error(text, sizeof text);
  CHECK(strncmp(text, "error: ", 7) == 0 && strchr(text, '\n') == text + strlen(text) - 1, "not one error line: %s", text);
}

/* ---- last_error ------------------------------------------------------------------------------ */

static void *other_thread(void *argument) {
  (void)argument;
  CHECK(strcmp(wsgemm_last_error(), "") == 0, "a new thread starts with \"%s\"", wsgemm_last_error());
  CHECK(wsgemm_set_coarse_factor(NULL, -5) == WSGEMM_INVALID_VALUE, "-5 is taken");
  CHECK(strstr(wsgemm_last_error(), "-5") != NULL, "%s", wsgemm_last_error());
  return NULL;
}

static void last_error_is_per_thread(void) {
  CHECK(wsgemm_last_error() != NULL, "NULL");
  CHECK(wsgemm_set_num_threads(NULL, -9) == WSGEMM_INVALID_VALUE, "-9 is taken");
  CHECK(strstr(wsgemm_last_error(), "-9") != NULL, "%s", wsgemm_last_error());
  pthread_t thread;
  REQUIRE(pthread_create(&thread, NULL, other_thread, NULL) == 0, "thread");
  pthread_join(thread, NULL);
  CHECK(strstr(wsgemm_last_error(), "-9") != NULL, "another thread's failure shows here: %s", wsgemm_last_error());
}

static const struct check_case cases[] = {{"status_list", status_list},
                                          {"values_and_layouts", values_and_layouts},
                                          {"complex_pointers", complex_pointers},
                                          {"versions", versions},
                                          {"registry", registry},
                                          {"texts", texts},
                                          {"explain_by_layout", explain_by_layout},
                                          {"last_error_is_per_thread", last_error_is_per_thread}};
CHECK_MAIN("status", cases)
