/* tuning_case.c - tuning entries for the suites: see tuning_case.h. */
#define _GNU_SOURCE
#include "tuning_case.h"

#include "folder.h"

#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "api/problem.h"
#include "cpu/plan.h"

static int draw_in(struct check_random *rng, int most) {
  switch (check_random_in(rng, 0, 3)) {
  case 0:
    return 0;
  case 1:
    return most;
  default:
    return (int)check_random_in(rng, 0, most);
  }
}

static int64_t draw_size(struct check_random *rng) {
  const int bits = (int)check_random_in(rng, 1, 63);
  const int64_t size = (int64_t)(check_random_bits(rng) >> (64 - bits));
  return check_random_in(rng, 0, 19) == 0 ? INT64_MAX : size > 0 ? size : 1;
}

/* At most `most` printing characters, for a word none of them a space. */
static void draw_text(struct check_random *rng, char *text, size_t most, bool is_word) {
  static const char strange[] = "\"\\='#.";
  const size_t length = (size_t)check_random_in(rng, is_word, check_random_in(rng, 0, 3) ? 12 : (long long)most);
  for (size_t i = 0; i < length; i++)
    text[i] = check_random_in(rng, 0, 4) ? (char)check_random_in(rng, is_word ? '!' : ' ', '~')
                                         : strange[check_random_in(rng, 0, (long long)sizeof strange - 2)];
  text[length] = '\0';
}

/* In whole ns, so that a line holds it exactly. */
static double draw_us(struct check_random *rng) { return (double)(check_random_bits(rng) >> check_random_in(rng, 20, 63)) / 1e3; }

ws_tuning_entry tuning_draw(struct check_random *rng) {
  ws_tuning_entry e = {0};
  const bool is_gpu = check_random_in(rng, 0, 1);
  draw_text(rng, e.device.name, sizeof e.device.name - 1, false);
  draw_text(rng, e.device.arch, 20, true);
  if (is_gpu) memcpy(e.device.arch, "sm_90", sizeof "sm_90");
  e.device.is_gpu = strncmp(e.device.arch, "sm_", 3) == 0;
  e.device.units = 1 + draw_in(rng, (1 << 20) - 1);
  draw_text(rng, e.version, 8, true);
  e.kind.type = (wsgemm_type)check_random_in(rng, 0, WS_N_TYPES - 1);
  e.kind.type_c = (wsgemm_type)check_random_in(rng, 0, WS_N_TYPES - 1);
  e.kind.numerics = (ws_numerics)check_random_in(rng, 0, WS_N_NUMERICS - 1);
  const unsigned flags = (unsigned)check_random_in(rng, 0, 31);
  e.kind.a_trans = flags & 1, e.kind.b_trans = flags & 2, e.kind.single_a = flags & 4, e.kind.single_b = flags & 8,
  e.kind.full_store = flags & 16;
  e.kind.workers = draw_in(rng, 1 << 12);
  e.kind.routine = (uint8_t)check_random_in(rng, 0, WSGEMM_TRSM);
  e.kind.is_right = ws_tuning_has_side(e.kind.routine) && check_random_in(rng, 0, 1);
  e.kind.is_upper = ws_tuning_has_uplo(e.kind.routine) && check_random_in(rng, 0, 1);
  e.kind.in_place = check_random_in(rng, 0, 1);
  e.shape = (ws_tuning_shape){draw_size(rng), draw_size(rng), draw_size(rng), draw_size(rng)};
  draw_text(rng, e.row, 30, true);
#define DRAW(name, most) e.tuning.name = draw_in(rng, most);
  WS_TUNING_PARAMETERS(DRAW)
#undef DRAW
  e.before_us = draw_us(rng), e.after_us = draw_us(rng);
  return e;
}

ws_tuning_entry tuning_plain(int64_t m, int64_t n, int64_t k, int mark) {
  ws_tuning_entry e = {.device = {"test device", "avx9/1K/2K", 3, false},
                       .kind = {.type = WSGEMM_F32, .type_c = WSGEMM_F32, .numerics = WS_NUMERICS_CHAIN, .workers = 2},
                       .shape = {m, n, k, 1},
                       .row = "sgemm_ref_8x6",
                       .tuning = {.mc = mark},
                       .before_us = 2,
                       .after_us = 1.5};
  snprintf(e.version, sizeof e.version, "%s", wsgemm_version_string());
  return e;
}

ws_tuning_entry tuning_for(wsgemm_handle *h, const wsgemm_gemm_desc *d, const ws_tuning *tuning) {
  ws_problem p;
  ws_plan plan;
  REQUIRE(ws_problem_of(ws_handle(h), d, &p) == WSGEMM_SUCCESS, "%s", wsgemm_last_error());
  const ws_call call = ws_call_of(ws_handle(h));
  ws_plan_make(&call, &p, &plan);
  ws_tuning_entry e = tuning_plain(p.m, p.n, p.k, 0);
  REQUIRE(ws_tune_device(WS_TUNE_CPU, &e.device), "no device");
  e.kind = ws_cpu_tuning_kind(&call, &p);
  e.shape.batch = p.batch_count;
  snprintf(e.row, sizeof e.row, "%s", plan.row->name);
  e.tuning = *tuning;
  return e;
}

static bool equal_kinds(const ws_tuning_kind *x, const ws_tuning_kind *y) {
  return x->type == y->type && x->type_c == y->type_c && x->numerics == y->numerics && x->a_trans == y->a_trans &&
         x->b_trans == y->b_trans && x->single_a == y->single_a && x->single_b == y->single_b && x->workers == y->workers &&
         x->full_store == y->full_store && x->routine == y->routine && x->is_right == y->is_right && x->is_upper == y->is_upper &&
         x->in_place == y->in_place;
}

static bool equal_keys(const ws_tuning_entry *x, const ws_tuning_entry *y) {
  return strcmp(x->device.name, y->device.name) == 0 && strcmp(x->device.arch, y->device.arch) == 0 &&
         x->device.units == y->device.units && x->device.is_gpu == y->device.is_gpu && strcmp(x->version, y->version) == 0 &&
         equal_kinds(&x->kind, &y->kind) && x->shape.m == y->shape.m && x->shape.n == y->shape.n && x->shape.k == y->shape.k &&
         x->shape.batch == y->shape.batch;
}

bool tuning_equal(const ws_tuning_entry *x, const ws_tuning_entry *y) {
  bool is_equal = equal_keys(x, y) && strcmp(x->row, y->row) == 0;
#define COMPARE(name, most) is_equal = is_equal && x->tuning.name == y->tuning.name;
  WS_TUNING_PARAMETERS(COMPARE)
#undef COMPARE
  return is_equal && fabs(x->before_us - y->before_us) <= 1e-12 * x->before_us + 1e-9 &&
         fabs(x->after_us - y->after_us) <= 1e-12 * x->after_us + 1e-9;
}

const ws_tuning_entry *tuning_in(const ws_tuning_list *list, const ws_tuning_entry *key) {
  for (int i = 0; i < list->n; i++)
    if (equal_keys(&list->entry[i], key)) return &list->entry[i];
  return NULL;
}

size_t tuning_line(const ws_tuning_entry *e, char line[LINE_BYTES]) {
  ws_text t = {line, LINE_BYTES, 0};
  line[0] = '\0';
  ws_tuning_write_line(e, &t);
  REQUIRE(t.length > 0 && t.length < LINE_BYTES && line[t.length - 1] == '\n', "a line of %zu bytes", t.length);
  return t.length - 1;
}

/* Bit by bit, the lowest of each byte first: the polynomial division that CRC-32 is defined by. */
static uint32_t remainder_of(const unsigned char *bytes, size_t n) {
  uint32_t rest = 0xffffffffu;
  for (size_t bit = 0; bit < 8 * n; bit++) {
    const uint32_t out = (rest ^ (uint32_t)(bytes[bit / 8] >> bit % 8)) & 1;
    rest >>= 1;
    if (out) rest ^= 0xedb88320u;
  }
  return rest ^ 0xffffffffu;
}

size_t tuning_seal(char *line, size_t n) {
  return n + (size_t)sprintf(line + n, " crc=%08lx", (unsigned long)remainder_of((const unsigned char *)line, n));
}

char *tuning_text(const ws_tuning_list *list, size_t *n_bytes) {
  ws_text t = {NULL, 0, 0};
  ws_tuning_list_write(list, &t);
  *n_bytes = strlen(WS_TUNING_HEADER) + t.length;
  char *text = malloc(*n_bytes + 1);
  REQUIRE(text != NULL, "memory for a file");
  memcpy(text, WS_TUNING_HEADER, strlen(WS_TUNING_HEADER) + 1);
  t = (ws_text){text + strlen(WS_TUNING_HEADER), t.length + 1, 0};
  ws_tuning_list_write(list, &t);
  return text;
}

/* ---- files ---------------------------------------- */

ws_tuning_entry tuning_of_writer(int writer, int i) { return tuning_plain(1 + writer, 1 + i, 7, 1 + 1000 * writer + i); }

bool tuning_merge(const char *path, const ws_tuning_entry *e) {
  ws_tuning_entry copy = *e;
  const ws_tuning_list list = {.entry = &copy, .n = 1, .most = 1};
  return ws_tuning_file_merge(path, &list);
}

bool tuning_file_has(const char *path, const ws_tuning_entry *e) {
  ws_tuning_list list = {0};
  const bool is_read = ws_tuning_file_read(path, &list);
  const ws_tuning_entry *found = tuning_in(&list, e);
  const bool has = is_read && found && tuning_equal(found, e);
  ws_tuning_list_free(&list);
  return has;
}

int tuning_file_count(const char *path) {
  ws_tuning_list list = {0};
  const int n = ws_tuning_file_read(path, &list) && list.n_bad == 0 ? list.n : -1;
  ws_tuning_list_free(&list);
  return n;
}

bool tuning_file_is_unlocked(const char *path) {
  char lock[PATH_BYTES + 8];
  snprintf(lock, sizeof lock, "%s.lock", path);
  const int fd = open(lock, O_RDWR | O_CREAT, 0666);
  const bool is = fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0;
  if (fd >= 0) close(fd);
  return is;
}
