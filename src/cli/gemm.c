/* `wsgemm gemm`: C = alpha op(A) op(B) + beta C0 for matrices kept in .npy files.
 *
 * A file in C order is a row-major matrix, one in Fortran order a column-major one; whichever the
 * output is, an input of the other order is its own transpose, so (layout, op, ld) express every
 * mix without copying. The output file appears only when its contents are complete and, with
 * --verify, found right. */
#include "check.h"
#include "cli.h"
#include "gpu.h"
#include "npy.h"

#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* Multiply-adds that --verify may spend: about a second. */
enum { VERIFY_TERMS = 100000000, WS_MOST_DEVICES = 64 };

typedef struct {
  const char *a_path, *b_path, *c0_path, *output_path, *kernel;
  int devices[WS_MOST_DEVICES], n_devices; /* for host matrices; -1: all */
  char op_a, op_b;                         /* n, t or c */
  wsgemm_cdouble alpha, beta;
  bool has_beta, verify, explain, on_gpu, maps;
  bool to_stdout;                   /* -o -: what else there is to say goes to stderr */
  int64_t n_threads, coarse_factor; /* 0: the library's choice */
  wsgemm_policy policy;
  bool has_policy, invariant;
} request;

/* The files' contents. data is NULL for what is not there. */
typedef struct {
  ws_npy a, b, c0, c;
} matrices;

static void print_help(void) {
  ws_cli_print_usage("gemm");
  printf("C = alpha op(A) op(B) + beta C0, on .npy files of one element type (f2, f4, f8, c8 or c16).\n"
         "C.npy is written in C order, or in Fortran order if A and B are both in Fortran order.\n\n"
         "  -o, --output C.npy     where the product goes (may be left out with --explain); -: standard\n"
         "                         output, if that is no terminal: then nothing else is printed there\n"
         "      --alpha X          default 1; complex numbers as in Python: 1.5+2j\n"
         "      --beta X           default 1 with --c; an error without it\n"
         "      --c C0.npy         the matrix to add to\n"
         "      --transa n|t|c     op(A): A as it is, transposed, or conjugate-transposed\n"
         "      --transb n|t|c     op(B)\n"
         "      --verify           check the product against a reference before it is written\n"
         "      --gpu              multiply on the first GPU; the time is that of the product, without copies\n"
         "      --device all|0,1   multiply on these GPUs: the time is that of copies and product\n"
         "      --map              leave the matrices in their files: for such as are larger than memory\n"
         "      --explain          tell which kernel, tile, policy and threads are used\n"
         "      --threads N        use at most N threads\n"
         "      --policy P         who works on which tile: one of\n                         %s\n"
         "      --coarse N         tiles that share one load of A: 1 to 64\n"
         "      --invariant        rows of C with the same bits whatever m, n and the batch are\n"
         "      --kernel NAME      a kernel row by name ('wsgemm info' lists them)\n",
         ws_cli_policy_names());
}

/* ---- Command line ---------------------------------------------------------------------------- */

enum {
  ALPHA = 256,
  BETA,
  ADD_TO,
  TRANS_A,
  TRANS_B,
  VERIFY,
  EXPLAIN,
  THREADS,
  POLICY,
  COARSE,
  KERNEL,
  GPU,
  DEVICE,
  INVARIANT,
  MAP
};

static const struct option long_options[] = {
    {"output", required_argument, NULL, 'o'},
    {"alpha", required_argument, NULL, ALPHA},
    {"beta", required_argument, NULL, BETA},
    {"c", required_argument, NULL, ADD_TO},
    {"transa", required_argument, NULL, TRANS_A},
    {"transb", required_argument, NULL, TRANS_B},
    {"verify", no_argument, NULL, VERIFY},
    {"explain", no_argument, NULL, EXPLAIN},
    {"threads", required_argument, NULL, THREADS},
    {"policy", required_argument, NULL, POLICY},
    {"coarse", required_argument, NULL, COARSE},
    {"kernel", required_argument, NULL, KERNEL},
    {"gpu", no_argument, NULL, GPU},
    {"device", required_argument, NULL, DEVICE},
    {"map", no_argument, NULL, MAP},
    {"invariant", no_argument, NULL, INVARIANT},
    {"help", no_argument, NULL, 'h'},
    {0},
};

static int take_scalar(const char *option, wsgemm_cdouble *out) {
  if (ws_cli_complex(optarg, out)) return WS_EXIT_OK;
  return ws_cli_usage("gemm", "gemm: %s '%s' is no number that a double can hold", option, optarg);
}

static int take_op(const char *option, char *out) {
  if (strlen(optarg) != 1 || !strchr("ntc", *optarg))
    return ws_cli_usage("gemm", "gemm: %s '%s' is none of n, t, c", option, optarg);
  *out = *optarg;
  return WS_EXIT_OK;
}

static int take_count(const char *option, int64_t most, int64_t *out) {
  if (ws_cli_int64(optarg, 1, most, out)) return WS_EXIT_OK;
  return ws_cli_usage("gemm", "gemm: %s '%s' is no number from 1 to %" PRId64, option, optarg, most);
}

static int take_devices(request *r) {
  const char *rest = optarg;
  r->n_devices = strcmp(optarg, "all") == 0 ? -1 : 0;
  while (r->n_devices >= 0) {
    char *end;
    const long ordinal = *rest >= '0' && *rest <= '9' ? strtol(rest, &end, 10) : -1;
    if (ordinal < 0 || ordinal >= WS_MOST_DEVICES || r->n_devices == WS_MOST_DEVICES || (*end && *end != ','))
      return ws_cli_usage("gemm", "gemm: --device '%s' is neither all nor numbers of GPUs such as 0,1", optarg);
    r->devices[r->n_devices++] = (int)ordinal;
    if (!*end) break;
    rest = end + 1;
  }
  return WS_EXIT_OK;
}

static int take_option(request *r, int found) {
  switch (found) {
  case 'o':
    r->output_path = optarg;
    return WS_EXIT_OK;
  case ALPHA:
    return take_scalar("--alpha", &r->alpha);
  case BETA:
    r->has_beta = true;
    return take_scalar("--beta", &r->beta);
  case ADD_TO:
    r->c0_path = optarg;
    return WS_EXIT_OK;
  case TRANS_A:
    return take_op("--transa", &r->op_a);
  case TRANS_B:
    return take_op("--transb", &r->op_b);
  case VERIFY:
    r->verify = true;
    return WS_EXIT_OK;
  case EXPLAIN:
    r->explain = true;
    return WS_EXIT_OK;
  case GPU:
    r->on_gpu = true;
    return WS_EXIT_OK;
  case DEVICE:
    return take_devices(r);
  case MAP:
    r->maps = true;
    return WS_EXIT_OK;
  case INVARIANT:
    r->invariant = true;
    return WS_EXIT_OK;
  case THREADS:
    return take_count("--threads", 256, &r->n_threads);
  case COARSE:
    return take_count("--coarse", 64, &r->coarse_factor);
  case POLICY:
    r->has_policy = true;
    if (ws_cli_policy(optarg, &r->policy)) return WS_EXIT_OK;
    return ws_cli_usage("gemm", "gemm: --policy '%s' is none of %s", optarg, ws_cli_policy_names());
  default:
    r->kernel = optarg;
    return WS_EXIT_OK;
  }
}

static int take_files(request *r, int argc, char **argv) {
  if (argc - optind != 2) return ws_cli_usage("gemm", "gemm: two input files are needed, %d are given", argc - optind);
  r->a_path = argv[optind];
  r->b_path = argv[optind + 1];
  if (!r->output_path && !r->explain) return ws_cli_usage("gemm", "gemm: -o C.npy is missing");
  r->to_stdout = r->output_path && strcmp(r->output_path, "-") == 0;
  if (r->to_stdout && r->explain) return ws_cli_usage("gemm", "gemm: --explain and -o - both want the standard output");
  if (r->to_stdout && isatty(STDOUT_FILENO))
    return ws_cli_usage("gemm", "gemm: -o - would write a .npy file to a terminal; send it to a file or a program");
  if (!r->output_path && r->verify) return ws_cli_usage("gemm", "gemm: --verify needs -o C.npy");
  if (r->has_beta && !r->c0_path) return ws_cli_usage("gemm", "gemm: --beta needs --c C0.npy, the matrix that it scales");
  if (!r->c0_path) r->beta = (wsgemm_cdouble){0, 0};
  return WS_EXIT_OK;
}

/* ---- The problem ----------------------------------------------------------------------------- */

static int load(const request *r, const char *path, ws_npy *out) {
  char why[WS_NPY_WHY_BYTES];
  return ws_npy_load(path, r->maps, out, why) ? WS_EXIT_OK : ws_cli_fail("%s: %s", path, why);
}

static int check_types(const request *r, const matrices *m) {
  const ws_npy *others[2] = {&m->b, &m->c0};
  const char *paths[2] = {r->b_path, r->c0_path};
  for (int i = 0; i < 2; i++)
    if (others[i]->data && others[i]->type != m->a.type)
      return ws_cli_fail("element types differ: %s holds %s, %s holds %s", r->a_path, ws_cli_types[m->a.type].name, paths[i],
                         ws_cli_types[others[i]->type].name);
  return WS_EXIT_OK;
}

/* A scalar must mean something in the matrices' type, and is rounded to it. */
static int fit_scalar(const request *r, const matrices *m, const char *option, wsgemm_cdouble *value) {
  const ws_cli_type *type = &ws_cli_types[m->a.type];
  if (type->n_parts == 1 && value->im != 0) return ws_cli_fail("%s is complex, but %s holds %s", option, r->a_path, type->name);
  if (type->part_bytes == 8) return WS_EXIT_OK;
  if ((isfinite(value->re) && fabs(value->re) > FLT_MAX) || (isfinite(value->im) && fabs(value->im) > FLT_MAX))
    return ws_cli_fail("%s is too large for the elements of %s, which are %s", option, r->a_path, type->name);
  *value = ws_cli_fit(m->a.type, *value);
  return WS_EXIT_OK;
}

/* Fills in m->c but for its data. */
static int check_shapes(const request *r, matrices *m) {
  const bool flip_a = r->op_a != 'n', flip_b = r->op_b != 'n';
  const int64_t a_rows = flip_a ? m->a.n_cols : m->a.n_rows, a_cols = flip_a ? m->a.n_rows : m->a.n_cols;
  const int64_t b_rows = flip_b ? m->b.n_cols : m->b.n_rows, b_cols = flip_b ? m->b.n_rows : m->b.n_cols;
  if (a_cols != b_rows)
    return ws_cli_fail("sizes do not fit: %s is %" PRId64 " x %" PRId64 "%s, %s is %" PRId64 " x %" PRId64 "%s", r->a_path,
                       a_rows, a_cols, flip_a ? " (transposed)" : "", r->b_path, b_rows, b_cols, flip_b ? " (transposed)" : "");
  if (m->c0.data && (m->c0.n_rows != a_rows || m->c0.n_cols != b_cols))
    return ws_cli_fail("sizes do not fit: the product is %" PRId64 " x %" PRId64 ", %s is %" PRId64 " x %" PRId64, a_rows, b_cols,
                       r->c0_path, m->c0.n_rows, m->c0.n_cols);
  m->c = (ws_npy){m->a.type, a_rows, b_cols, m->a.is_fortran && m->b.is_fortran, NULL, NULL, 0};
  return WS_EXIT_OK;
}

/* op for a stored matrix; where its order is not the layout's, the layout sees its transpose. */
static wsgemm_op op_for(char op, bool is_layout) {
  if (op == 'n') return is_layout ? WSGEMM_NO_TRANS : WSGEMM_TRANS;
  if (op == 't') return is_layout ? WSGEMM_TRANS : WSGEMM_NO_TRANS;
  return is_layout ? WSGEMM_CONJ_TRANS : WSGEMM_CONJ_NO_TRANS;
}

static int64_t ld_of(const ws_npy *m) {
  const int64_t ld = m->is_fortran ? m->n_rows : m->n_cols;
  return ld > 1 ? ld : 1;
}

static wsgemm_gemm_desc describe(const request *r, const matrices *m) {
  wsgemm_gemm_desc d = WSGEMM_GEMM_DESC_INIT;
  d.layout = m->c.is_fortran ? WSGEMM_COL_MAJOR : WSGEMM_ROW_MAJOR;
  d.transa = op_for(r->op_a, m->a.is_fortran == m->c.is_fortran);
  d.transb = op_for(r->op_b, m->b.is_fortran == m->c.is_fortran);
  d.type_a = d.type_b = d.type_c = m->a.type;
  d.type_scalar = ws_cli_scalar_type(m->a.type);
  d.m = m->c.n_rows;
  d.n = m->c.n_cols;
  d.k = r->op_a == 'n' ? m->a.n_cols : m->a.n_rows;
  d.alpha = ws_cli_scalar(m->a.type, r->alpha);
  d.beta = ws_cli_scalar(m->a.type, r->beta);
  d.a = m->a.data;
  d.lda = ld_of(&m->a);
  d.b = m->b.data;
  d.ldb = ld_of(&m->b);
  d.c = m->c.data;
  d.ldc = ld_of(&m->c);
  return d;
}

/* The settings that the command line asks for, on a handle of our own. */
static int configure(wsgemm_handle *h, const request *r, wsgemm_type type) {
  wsgemm_status status = wsgemm_set_num_threads(h, (int)r->n_threads);
  if (status == WSGEMM_SUCCESS && r->coarse_factor) status = wsgemm_set_coarse_factor(h, (int)r->coarse_factor);
  if (status == WSGEMM_SUCCESS && r->has_policy) status = wsgemm_set_policy(h, r->policy);
  if (status == WSGEMM_SUCCESS && r->n_devices) status = wsgemm_set_devices(h, r->devices, r->n_devices);
  if (status == WSGEMM_SUCCESS && r->invariant) status = wsgemm_set_invariant(h, 1);
  if (status != WSGEMM_SUCCESS) return ws_cli_fail("%s", ws_cli_why(status));
  if (!r->kernel) return WS_EXIT_OK;
  status = wsgemm_set_kernel(h, r->kernel);
  wsgemm_kernel_info info;
  if (status == WSGEMM_INVALID_VALUE)
    return ws_cli_usage("info", "no kernel is called '%s'; 'wsgemm info' lists them", r->kernel);
  if (status != WSGEMM_SUCCESS) return ws_cli_fail("%s", ws_cli_why(status));
  if (!ws_cli_kernel(r->kernel, &info) || info.type != type)
    return ws_cli_fail("kernel %s is not for %s, which %s holds", r->kernel, ws_cli_types[type].name, r->a_path);
  return WS_EXIT_OK;
}

static int explain(wsgemm_handle *h, const wsgemm_gemm_desc *d, bool on_gpu) {
  char why[WS_GPU_WHY_BYTES] = "out of memory";
  char *text = on_gpu ? ws_gpu_explain(h, d, why) : ws_cli_explain(h, d), *rest = text, *key, *value;
  if (!text) return ws_cli_fail("%s", why);
  while (ws_cli_next_line(&rest, &key, &value)) printf("%-14s %s\n", key, value);
  free(text);
  return WS_EXIT_OK;
}

/* ---- The work -------------------------------------------------------------------------------- */

static ws_view view_of(const ws_npy *m, char op) {
  ws_view v = {m->type, m->data, m->n_rows, m->n_cols, m->is_fortran ? 1 : m->n_cols, m->is_fortran ? m->n_rows : 1, false};
  return op == 'n' ? v : ws_view_transposed(v, op == 'c');
}

/* C begins as C0, which may have the other order. */
static void fill_output(matrices *m) {
  const size_t bytes = (size_t)ws_cli_types[m->c.type].bytes;
  const int64_t n_rows = m->c.n_rows, n_cols = m->c.n_cols;
  if (m->c0.is_fortran == m->c.is_fortran) {
    memcpy(m->c.data, m->c0.data, (size_t)(n_rows * n_cols) * bytes);
    return;
  }
  const int64_t to_row = m->c.is_fortran ? 1 : n_cols, to_col = m->c.is_fortran ? n_rows : 1;
  const int64_t from_row = m->c0.is_fortran ? 1 : n_cols, from_col = m->c0.is_fortran ? n_rows : 1;
  for (int64_t i = 0; i < n_rows; i++)
    for (int64_t j = 0; j < n_cols; j++)
      memcpy((char *)m->c.data + (size_t)(i * to_row + j * to_col) * bytes,
             (const char *)m->c0.data + (size_t)(i * from_row + j * from_col) * bytes, bytes);
}

static int64_t clock_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static int verify(const request *r, const matrices *m) {
  const ws_product p = {view_of(&m->a, r->op_a),
                        view_of(&m->b, r->op_b),
                        view_of(&m->c, 'n'),
                        m->c0.data ? view_of(&m->c0, 'n') : (ws_view){0},
                        r->alpha,
                        r->beta};
  ws_check check;
  if (!ws_check_product(&p, VERIFY_TERMS, (uint64_t)clock_ns(), &check)) return ws_cli_fail("out of memory for --verify");
  char found[256];
  ws_check_describe(&check, found, sizeof found);
  if (!ws_check_passed(&check)) return ws_cli_fail("the product is wrong, nothing is written: %s", found);
  const double n_total = (double)m->c.n_rows * (double)m->c.n_cols;
  FILE *f = r->to_stdout ? stderr : stdout;
  fprintf(f, "verified: %" PRId64 " of %.0f elements, worst err/bound %.3g at (%" PRId64 ", %" PRId64 ")\n", check.n_checked,
          n_total, check.worst, check.row_idx, check.col_idx);
  if (check.n_unjudged) fprintf(f, "not judged: %" PRId64 " elements whose sums overflow\n", check.n_unjudged);
  return WS_EXIT_OK;
}

static void report(const request *r, const wsgemm_gemm_desc *d, int64_t elapsed_ns) {
  const double ns = elapsed_ns > 0 ? (double)elapsed_ns : 1;
  const double flops = (double)d->m * (double)d->n * (double)d->k * (ws_cli_types[d->type_c].n_parts == 2 ? 8 : 2);
  fprintf(r->to_stdout ? stderr : stdout, "%s: %" PRId64 " x %" PRId64 " %s, k = %" PRId64 ", %.3g ms, %.3g GF/s\n",
          r->to_stdout ? "standard output" : r->output_path, d->m, d->n, ws_cli_types[d->type_c].name, d->k, ns * 1e-6,
          flops / ns);
}

/* On a terminal, which shows what has come back from the GPUs so far. */
static int show_progress(void *user, double done) {
  int *shown = user;
  const int percent = (int)(100 * done);
  if (percent != *shown) fprintf(stderr, percent < 100 ? "\r%3d %%" : "\r     \r", percent);
  *shown = percent;
  return 0;
}

/* C = alpha op(A) op(B) + beta C, verified if asked for. */
static int compute(wsgemm_handle *h, const request *r, matrices *m, const wsgemm_gemm_desc *d, int64_t *elapsed_ns) {
  char gpu_why[WS_GPU_WHY_BYTES];
  int shown = 0;
  if (m->c0.data) fill_output(m);
  if (r->n_devices != 0 && isatty(STDERR_FILENO)) wsgemm_set_progress(h, show_progress, &shown);
  const int64_t start_ns = clock_ns();
  const wsgemm_status status = r->on_gpu ? ws_gpu_gemm(h, d, elapsed_ns, gpu_why) : wsgemm_gemm(h, d);
  if (!r->on_gpu) *elapsed_ns = clock_ns() - start_ns;
  wsgemm_set_progress(h, NULL, NULL);
  if (status != WSGEMM_SUCCESS) return ws_cli_fail("%s", r->on_gpu ? gpu_why : ws_cli_why(status));
  return r->verify ? verify(r, m) : WS_EXIT_OK;
}

static int too_large(const matrices *m) {
  return ws_cli_fail("out of memory for the product of %" PRId64 " x %" PRId64 " elements", m->c.n_rows, m->c.n_cols);
}

static int make_output(matrices *m) {
  m->c.data = ws_npy_alloc(m->c.type, m->c.n_rows, m->c.n_cols);
  return m->c.data ? WS_EXIT_OK : too_large(m);
}

static int to_stdout(wsgemm_handle *h, const request *r, matrices *m) {
  char why[WS_NPY_WHY_BYTES];
  int64_t elapsed_ns = 0;
  int code = make_output(m);
  if (code != WS_EXIT_OK) return code;
  const wsgemm_gemm_desc d = describe(r, m);
  code = compute(h, r, m, &d, &elapsed_ns);
  if (code != WS_EXIT_OK) return code;
  if (!ws_npy_write_stdout(&m->c, why)) return ws_cli_fail("standard output %s", why);
  report(r, &d, elapsed_ns);
  return WS_EXIT_OK;
}

/* From checked inputs to the finished file. */
static int to_file(wsgemm_handle *h, const request *r, matrices *m) {
  char why[WS_NPY_WHY_BYTES];
  int64_t elapsed_ns = 0;
  const int64_t data_bytes = ws_npy_data_bytes(m->c.type, m->c.n_rows, m->c.n_cols);
  if (data_bytes < 0) return too_large(m);
  ws_npy_output output;
  int code = r->maps ? WS_EXIT_OK : make_output(m);
  if (code != WS_EXIT_OK) return code;
  if (!ws_npy_open_output(r->output_path, data_bytes, &output, why)) return ws_cli_fail("%s: %s", r->output_path, why);
  if (r->maps && !ws_npy_map_output(&output, &m->c, why)) code = ws_cli_fail("%s: %s", r->output_path, why);
  const wsgemm_gemm_desc d = describe(r, m);
  if (code == WS_EXIT_OK) code = compute(h, r, m, &d, &elapsed_ns);
  if (code != WS_EXIT_OK) {
    ws_npy_discard_output(&output);
    return code;
  }
  if (!ws_npy_commit_output(&output, &m->c, why)) return ws_cli_fail("%s: %s", r->output_path, why);
  report(r, &d, elapsed_ns);
  return WS_EXIT_OK;
}

static int open_gpu(void) {
  char why[WS_GPU_WHY_BYTES];
  ws_gpu_facts facts;
  int n_devices;
  if (ws_gpu_find(&n_devices, why) == WS_GPU_READY && ws_gpu_open(0, &facts, why)) return WS_EXIT_OK;
  return ws_cli_fail("--gpu: %s", why);
}

static int run(wsgemm_handle *h, request *r, matrices *m) {
  int code = r->on_gpu ? open_gpu() : WS_EXIT_OK;
  if (code == WS_EXIT_OK) code = load(r, r->a_path, &m->a);
  if (code == WS_EXIT_OK) code = load(r, r->b_path, &m->b);
  if (code == WS_EXIT_OK && r->c0_path) code = load(r, r->c0_path, &m->c0);
  if (code == WS_EXIT_OK) code = check_types(r, m);
  if (code == WS_EXIT_OK) code = fit_scalar(r, m, "--alpha", &r->alpha);
  if (code == WS_EXIT_OK) code = fit_scalar(r, m, "--beta", &r->beta);
  if (code == WS_EXIT_OK) code = check_shapes(r, m);
  if (code == WS_EXIT_OK) code = configure(h, r, m->a.type);
  if (code == WS_EXIT_OK && r->explain) {
    const wsgemm_gemm_desc d = describe(r, m);
    code = explain(h, &d, r->on_gpu);
  }
  if (code == WS_EXIT_OK && r->output_path) code = (r->to_stdout ? to_stdout : to_file)(h, r, m);
  return code;
}

int ws_cmd_gemm(int argc, char **argv) {
  request r = {.op_a = 'n', .op_b = 'n', .alpha = {1, 0}, .beta = {1, 0}};
  optind = 0;
  opterr = 0;
  for (int found; (found = getopt_long(argc, argv, ":ho:", long_options, NULL)) != -1;) {
    if (found == '?' || found == ':') return ws_cli_bad_option("gemm", argc, argv, found);
    if (found == 'h') {
      print_help();
      return WS_EXIT_OK;
    }
    const int code = take_option(&r, found);
    if (code != WS_EXIT_OK) return code;
  }
  int code = take_files(&r, argc, argv);
  if (code == WS_EXIT_OK) code = ws_cli_check_environment();
  if (code != WS_EXIT_OK) return code;

  wsgemm_handle *h;
  const wsgemm_status status = wsgemm_create(&h);
  if (status != WSGEMM_SUCCESS) return ws_cli_fail("%s", ws_cli_why(status));
  matrices m = {0};
  code = run(h, &r, &m);
  ws_npy_free(&m.a), ws_npy_free(&m.b), ws_npy_free(&m.c0), ws_npy_free(&m.c);
  wsgemm_destroy(h);
  return code;
}
