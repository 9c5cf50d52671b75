/* autotune_cases.c - what `wsgemm autotune` searches for: products and Level 3 calls, their
 * descriptors and names; and whether a tuning file has them already. */
#define _GNU_SOURCE
#include "autotune.h"
#include "tuning_lines.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* ---- Routines -------------------------------------------------------------------------------- */

static const char *const routine_names[] = {"gemm",
#define NAME(enumerator, name) [WSGEMM_##enumerator] = (name),
                                            WSGEMM_ROUTINE_MAP(NAME)
#undef NAME
};

/* Those whose C is n x n, of sums over k. */
static bool has_k_of(int routine) { return routine >= WSGEMM_SYRK && routine <= WSGEMM_GEMMTR; }

static bool exists(wsgemm_type type, int routine) {
  if (type == WSGEMM_F16 || type == WSGEMM_BF16) return routine == 0;
  return !ws_cli_is_hermitian(routine) || ws_cli_types[type].n_parts == 2;
}

bool ws_autotune_find_routine(const char *word, autotune_routine *found) {
  int type = 0, routine = 0;
  while (type < WS_N_TYPES && ws_cli_types[type].letter != *word) type++;
  if (type == WS_N_TYPES) return false;
  while (word[1] && routine <= WSGEMM_TRSM && strcmp(word + 1, routine_names[routine]) != 0) routine++;
  *found = (autotune_routine){(wsgemm_type)type, routine};
  return routine <= WSGEMM_TRSM && exists((wsgemm_type)type, routine);
}

/* ---- Products -------------------------------------------------------------------------------- */

static wsgemm_op op_of(char letter) { return letter == 'n' ? WSGEMM_NO_TRANS : letter == 't' ? WSGEMM_TRANS : WSGEMM_CONJ_TRANS; }

static wsgemm_gemm_desc describe(const autotune_request *r, const autotune_case *c) {
  wsgemm_gemm_desc d = WSGEMM_GEMM_DESC_INIT;
  d.transa = op_of(c->op_a);
  d.transb = op_of(c->op_b);
  d.type_a = d.type_b = d.type_c = c->of.type;
  d.type_scalar = ws_cli_scalar_type(c->of.type);
  d.math = r->math;
  d.m = c->shape.m;
  d.n = c->shape.n;
  d.k = c->shape.k;
  d.alpha = ws_cli_scalar(c->of.type, (wsgemm_cdouble){1, 0});
  d.beta = ws_cli_scalar(c->of.type, (wsgemm_cdouble){r->beta, 0});
  d.lda = c->op_a == 'n' ? d.m : d.k;
  d.ldb = c->op_b == 'n' ? d.k : d.n;
  d.ldc = d.m;
  return d;
}

/* Column-major, in place where the routine can be; alpha = 1. */
static wsgemm_level3_desc describe_level3(const autotune_request *r, const autotune_case *c) {
  wsgemm_level3_desc d = WSGEMM_LEVEL3_DESC_INIT;
  const bool is_transposed = c->op_a != 'n', has_k = has_k_of(c->of.routine);
  d.routine = (wsgemm_routine)c->of.routine;
  d.type = c->of.type;
  d.side = r->is_right ? WSGEMM_RIGHT : WSGEMM_LEFT;
  d.uplo = r->is_upper ? WSGEMM_UPPER : WSGEMM_LOWER;
  d.transa = op_of(c->op_a);
  d.transb = op_of(c->op_b);
  d.math = r->math;
  d.m = c->shape.m, d.n = c->shape.n, d.k = c->shape.k;
  d.alpha = ws_cli_scalar(d.type, (wsgemm_cdouble){1, 0});
  d.beta = ws_cli_scalar(d.type, (wsgemm_cdouble){r->beta, 0});
  d.ldc = has_k ? d.n : d.m;
  d.lda = has_k ? (is_transposed ? d.k : d.n) : r->is_right ? d.n : d.m;
  d.ldb = !has_k ? d.m : d.routine == WSGEMM_GEMMTR ? (c->op_b == 'n' ? d.k : d.n) : d.lda;
  return d;
}

wsgemm_status ws_autotune_run(wsgemm_handle *h, const autotune_request *r, const autotune_case *c,
                              const wsgemm_autotune_options *options) {
  if (c->of.routine == 0) {
    const wsgemm_gemm_desc d = describe(r, c);
    return wsgemm_autotune(h, &d, options);
  }
  const wsgemm_level3_desc d = describe_level3(r, c);
  return wsgemm_level3_autotune(h, &d, options);
}

static void name_gemm(autotune_case *c) {
  snprintf(c->product, sizeof c->product, "%c%c %" PRId64 "x%" PRId64 "x%" PRId64, c->op_a, c->op_b, c->shape.m, c->shape.n,
           c->shape.k);
}

/* Without what the routine does not have. */
static void name_level3(const autotune_request *r, autotune_case *c) {
  const int routine = c->of.routine;
  const bool has_k = has_k_of(routine), has_ops = routine != WSGEMM_SYMM && routine != WSGEMM_HEMM;
  char ops[4] = "";
  if (has_k) c->shape.m = 0;
  if (!has_k) c->shape.k = 0;
  if (!has_ops) c->op_a = 'n';
  /* of rank updates there is but one transposition */
  if (has_k && routine != WSGEMM_GEMMTR && c->op_a != 'n') c->op_a = ws_cli_is_hermitian(routine) ? 'c' : 't';
  if (routine != WSGEMM_GEMMTR) c->op_b = 'n';
  if (has_ops) snprintf(ops, sizeof ops, routine == WSGEMM_GEMMTR ? "%c%c " : "%c ", c->op_a, c->op_b);
  snprintf(c->product, sizeof c->product, "%s%s %s%" PRId64 "x%" PRId64,
           has_k         ? ""
           : r->is_right ? "right "
                         : "left ",
           r->is_upper ? "upper" : "lower", ops, has_k ? c->shape.n : c->shape.m, has_k ? c->shape.k : c->shape.n);
}

/* Whether a case before it says the same: of what a routine does not have, requests may differ. */
static bool is_repeated(const autotune_case *cases, const autotune_case *c) {
  for (const autotune_case *before = c; before-- > cases;) {
    if (before->of.routine != c->of.routine || before->of.type != c->of.type) return false;
    if (strcmp(before->product, c->product) == 0) return true;
  }
  return false;
}

autotune_case *ws_autotune_make_cases(const autotune_request *r, int *n_cases) {
  autotune_case *cases = calloc((size_t)(r->n_routines * r->n_ops * r->shapes.n), sizeof *cases), *c = cases;
  if (!cases) return NULL;
  for (int f = 0; f < r->n_routines; f++)
    for (int o = 0; o < r->n_ops; o++)
      for (int s = 0; s < r->shapes.n; s++) {
        const int routine = r->routines[f].routine;
        *c = (autotune_case){.of = r->routines[f], .op_a = r->ops[o][0], .op_b = r->ops[o][1], .shape = r->shapes.at[s]};
        snprintf(c->routine, sizeof c->routine, "%c%s", ws_cli_types[c->of.type].letter, routine_names[routine]);
        if (routine == 0)
          name_gemm(c);
        else
          name_level3(r, c);
        snprintf(c->name, sizeof c->name, "%s", c->product);
        if (r->beta != 0 && routine != WSGEMM_TRMM && routine != WSGEMM_TRSM)
          snprintf(c->name, sizeof c->name, "%s beta=%g", c->product, r->beta);
        if (routine == 0 || !is_repeated(cases, c)) c++;
      }
  *n_cases = (int)(c - cases);
  return cases;
}

/* ---- What a file has already ----------------------------------------------------------------- */

int ws_autotune_read_known(autotune_known *k, const autotune_request *r, const ws_gpu_facts *gpu) {
  char *machine = ws_cli_text(wsgemm_machine), *rest = machine, *key, *value;
  k->lines = ws_tuning_lines(r->out, false);
  if (!machine || !k->lines) {
    free(machine);
    return ws_cli_fail("out of memory");
  }
  while (ws_cli_next_line(&rest, &key, &value)) {
    if (strcmp(key, "processor") == 0) snprintf(k->processor, sizeof k->processor, "%s", value);
    if (strcmp(key, "isa") == 0) snprintf(k->isa, sizeof k->isa, "%s", value);
    if (strcmp(key, "processors") == 0) k->n_units = atoi(value);
  }
  free(machine);
  /* the matrix unit has rows for bfloat16 alone, but names the machine */
  for (int row = 0; row < wsgemm_kernel_count(); row++)
    if (ws_cli_row_takes_host_memory(row) && strcmp(ws_cli_kernel_at(row).family, "amx") == 0)
      snprintf(k->isa, sizeof k->isa, "amx");
  const int n_all = wsgemm_default_num_threads();
  k->n_workers = r->n_threads > 0 && r->n_threads < n_all ? (int)r->n_threads : n_all;
  k->gpu_name = r->device >= 0 ? gpu->name : NULL;
  return WS_EXIT_OK;
}

static bool is_device(const autotune_known *k, const char *line) {
  char arch[64], name[128];
  if (!ws_tuning_value(line, "arch", arch, sizeof arch) || !ws_tuning_value(line, "device", name, sizeof name)) return false;
  if (k->gpu_name) return strncmp(arch, "sm_", 3) == 0 && strcmp(name, k->gpu_name) == 0;
  const size_t length = strlen(k->isa);
  return strncmp(arch, k->isa, length) == 0 && arch[length] == '/' && strcmp(name, k->processor) == 0 &&
         ws_tuning_number(line, "units") == k->n_units && ws_tuning_number(line, "workers") == k->n_workers;
}

/* Half precision of GPUs has lines of their own for products with a beta: of the kinds of numerics
 * wgmma and wgmma_k2 .. k8. */
static bool is_store(const char *line, double beta) {
  char numerics[16];
  const bool has_two = ws_tuning_value(line, "numerics", numerics, sizeof numerics) && strncmp(numerics, "wgmma", 5) == 0;
  return ws_tuning_is(line, "store", "full") == (has_two && (float)beta != 0);
}

static bool is_product(const char *line, const autotune_request *r, const autotune_case *c) {
  const char type[] = {ws_cli_types[c->of.type].letter, 0}, ops[] = {c->op_a == 'n' ? 'n' : 't', c->op_b == 'n' ? 'n' : 't', 0};
  return strncmp(line, "gemm ", 5) == 0 && is_store(line, r->beta) && ws_tuning_is(line, "type", type) &&
         ws_tuning_is(line, "type_c", type) && ws_tuning_is(line, "ops", ops) && ws_tuning_is(line, "batch", "1") &&
         ws_tuning_is(line, "version", wsgemm_version_string()) && ws_tuning_number(line, "m") == (double)c->shape.m &&
         ws_tuning_number(line, "n") == (double)c->shape.n && ws_tuning_number(line, "k") == (double)c->shape.k;
}

/* A line of a Level 3 call on the CPU, under the name of the work that it is. */
static bool is_level3(const char *line, const autotune_request *r, const autotune_case *c) {
  const int routine = c->of.routine;
  const bool has_k = has_k_of(routine), trans = c->op_a != 'n';
  const char *word = routine_names[!has_k ? routine : ws_cli_is_hermitian(routine) ? WSGEMM_HERK : WSGEMM_SYRK];
  const char type[] = {ws_cli_types[c->of.type].letter, 0};
  char ops[] = {trans ? 't' : 'n', 'n', 0};
  if (has_k) ops[1] = routine == WSGEMM_GEMMTR ? (c->op_b == 'n' ? 'n' : 't') : trans ? 'n' : 't';
  if (routine == WSGEMM_TRMM && r->is_right) ops[0] = 'n', ops[1] = trans ? 't' : 'n';
  const double m = (double)(has_k ? c->shape.n : c->shape.m), n = (double)c->shape.n;
  const size_t length = strlen(word);
  return strncmp(line, word, length) == 0 && line[length] == ' ' &&
         ws_tuning_is(line, "store", "in_place") == (routine == WSGEMM_TRMM) &&
         (has_k || ws_tuning_is(line, "side", r->is_right ? "right" : "left")) &&
         (routine == WSGEMM_SYMM || routine == WSGEMM_HEMM || ws_tuning_is(line, "uplo", r->is_upper ? "upper" : "lower")) &&
         ws_tuning_is(line, "type", type) && ws_tuning_is(line, "ops", ops) && ws_tuning_is(line, "batch", "1") &&
         ws_tuning_is(line, "version", wsgemm_version_string()) && ws_tuning_number(line, "m") == m &&
         ws_tuning_number(line, "n") == n &&
         ws_tuning_number(line, "k") == (has_k         ? (double)c->shape.k
                                         : r->is_right ? n
                                                       : m);
}

/* Of half precision, what a GPU is not to take for it; matrix-vector products are the same under
 * PEDANTIC. */
static bool is_numerics_of_half(const char *line, const autotune_request *r) {
  char numerics[16];
  if (!ws_tuning_value(line, "numerics", numerics, sizeof numerics)) return false;
  return strcmp(numerics, "vector") == 0 || (strncmp(numerics, "fma16", 5) == 0) == (r->math == WSGEMM_MATH_PEDANTIC);
}

/* Which arithmetic a GPU takes for F32 and C32 depends on the numerics class and the shape; only
 * then `numerics` tells them apart. */
static bool is_numerics(const char *line, wsgemm_handle *h, const autotune_request *r, const autotune_case *c) {
  char why[WS_GPU_WHY_BYTES];
  if (r->device < 0) return true;
  if (c->of.type == WSGEMM_F16 || c->of.type == WSGEMM_BF16) return is_numerics_of_half(line, r);
  if (c->of.type != WSGEMM_F32 && c->of.type != WSGEMM_C32) return true;
  const wsgemm_gemm_desc d = describe(r, c);
  char *text = ws_gpu_explain(h, &d, why);
  if (!text) return false;
  const bool is_one = strstr(text, "one slices"), is_more = !is_one && strstr(text, " slices of ");
  free(text);
  const bool has_one = ws_tuning_is(line, "numerics", "f16x1");
  const bool has_more = ws_tuning_is(line, "numerics", "f16x3") || ws_tuning_is(line, "numerics", "bf16x6");
  return is_one == has_one && is_more == has_more;
}

bool ws_autotune_is_known(const autotune_known *k, wsgemm_handle *h, const autotune_request *r, const autotune_case *c) {
  /* on a GPU its lines are those of its products */
  if (c->of.routine != 0 && r->device >= 0) return false;
  for (const char *line = k->lines; line && *line;) {
    const bool is_it = c->of.routine == 0 ? is_product(line, r, c) && is_numerics(line, h, r, c) : is_level3(line, r, c);
    if (is_it && is_device(k, line)) return true;
    line = strchrnul(line, '\n');
    line += *line == '\n';
  }
  return false;
}
