/* test_kernel_info.c - what wsgemm_get_kernel_info says of each row, against the columns of the two
 * kernels.def, read here once more: every row that this build has, all its facts, and nothing of a
 * row that it does not have. */
#include "support/check.h"
#include "wsgemm.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What a line of the registry says; letters and words are its own. */
struct line {
  const char *backend, *family, *name;
  char letter;
  int bm, bn, bk, coarse, stages, threads;
  const char *cluster; /* "x1", "x2", "k2" */
  bool splits, ping_pong;
};

/* Threads for each tm x tn part of a tile. */
enum { OWN_simt = 1, OWN_fma16 = 1, OWN_mma = 32, OWN_mma16 = 32, OWN_vec = 32 };

#define WS_CPU_ROWS_AMX
#define WS_CPU_ROWS_AVX512
#define WS_CPU_ROWS_AVX2
#define WS_CPU_ROWS_NEON
#define WS_CPU_ROWS_REF
#define WS_CPU_ROW(t, isa, mr, nr, kc) \
  {"cpu", #isa, #t "gemm_" #isa "_" #mr "x" #nr, #t[0], mr, nr, kc, 0, 0, 0, "", false, false},
#define WS_CUDA_ROW(t, mainloop, bm, bn, bk, tm, tn, coarse, stages, blocks, splits, rate) \
  {"cuda",                                                                                 \
   #mainloop,                                                                              \
   #t "gemm_" #mainloop "_" #bm "x" #bn "x" #bk "_c" #coarse,                              \
   #t[0],                                                                                  \
   bm,                                                                                     \
   bn,                                                                                     \
   bk,                                                                                     \
   coarse,                                                                                 \
   stages,                                                                                 \
   (bm) / (tm) * ((bn) / (tn)) * OWN_##mainloop,                                           \
   "x1",                                                                                   \
   splits,                                                                                 \
   false},
#define WS_CUDA_WGMMA_ROW(t, bm, bn, coarse, consumers, ping_pong, stages, cluster, rate)                     \
  {"cuda", "wgmma", #t "gemm_wgmma_" #bm "x" #bn "x64_c" #coarse "_" #cluster, #t[0],    bm,    bn,       64, \
   coarse, stages,  (#cluster[0] == 'x' ? 128 : 64) + 128 * (consumers),       #cluster, false, ping_pong},
#define WS_CUDA_SLICED_ROW(t, product, bm, bn, bk, coarse, consumers, stages, cluster, rate) \
  {"cuda",                                                                                   \
   #product,                                                                                 \
   #t "gemm_" #product "_" #bm "x" #bn "x" #bk "_c" #coarse "_" #cluster,                    \
   #t[0],                                                                                    \
   bm,                                                                                       \
   bn,                                                                                       \
   bk,                                                                                       \
   coarse,                                                                                   \
   stages,                                                                                   \
   128 + 128 * (consumers),                                                                  \
   #cluster,                                                                                 \
   false,                                                                                    \
   false},
/* A warp for each tm x tn of each of the groups that sum a part of k. */
#define WS_CUDA_DIRECT_ROW(t, bm, bn, tm, tn, k_groups, stages, blocks, cluster, rate) \
  {"cuda",                                                                             \
   "direct",                                                                           \
   #t "gemm_direct_" #bm "x" #bn "x16_g" #k_groups "_k" #cluster,                      \
   #t[0],                                                                              \
   bm,                                                                                 \
   bn,                                                                                 \
   16,                                                                                 \
   1,                                                                                  \
   stages,                                                                             \
   32 * (k_groups) * ((bm) / (tm)) * ((bn) / (tn)),                                    \
   "k" #cluster,                                                                       \
   false,                                                                              \
   false},
#define WS_CUDA_FLAT_ROW(t, bm, bn, k_groups, steps, blocks, cluster, rate) \
  {"cuda",                                                                  \
   "flat",                                                                  \
   #t "gemm_flat_" #bm "x" #bn "_s" #steps "_g" #k_groups "_k" #cluster,    \
   #t[0],                                                                   \
   bm,                                                                      \
   bn,                                                                      \
   64 * (steps),                                                            \
   1,                                                                       \
   0,                                                                       \
   32 * (k_groups),                                                         \
   "k" #cluster,                                                            \
   false,                                                                   \
   false},
#define WS_CUDA_SMALL_ROW(t, owner, bm, bn, blocks, rate) \
  {"cuda", "small", #t "gemm_small_" #bm "x" #bn, #t[0], bm, bn, 1, 1, 2, 256, "x1", false, false},
#define WS_CUDA_DMMA_ROW(t, bm, bn, wp, wq, k_groups, stages, blocks, cluster, rate)                                           \
  {"cuda", "dmma", #t "gemm_dmma_" #bm "x" #bn "_g" #k_groups "_k" #cluster, #t[0],        bm,    bn,   #t[0] == 'z' ? 8 : 16, \
   1,      stages, 128 + 32 * (k_groups) * ((bm) / (wp)) * (bn) / (wq),      "k" #cluster, false, false},
#define WS_CUDA_FFMA_ROW(t, bm, bn, wm, wn, k_groups, stages, blocks, cluster, rate)                        \
  {"cuda", "ffma", #t "gemm_ffma_" #bm "x" #bn "_g" #k_groups "_k" #cluster, #t[0],        bm,    bn,   32, \
   1,      stages, 128 + 32 * (k_groups) * ((bm) / (wm)) * (bn) / (wn),      "k" #cluster, false, false},
#define WS_CUDA_OUTER_ROW(t, bm, bn, lanes, tm, tn, warps, stages, blocks, rate) \
  {"cuda", "outer", #t "gemm_outer_" #bm "x" #bn, #t[0], bm, bn, 16, 1, stages, 32 * (warps), "k1", false, false},
#define WS_CUDA_TF32_ROW(t, slices, bm, bn, wm, wn, k_groups, stages, blocks, cluster, rate) \
  {"cuda",                                                                                   \
   "tf32x" #slices,                                                                          \
   #t "gemm_tf32x" #slices "_" #bm "x" #bn "_g" #k_groups "_k" #cluster,                     \
   #t[0],                                                                                    \
   bm,                                                                                       \
   bn,                                                                                       \
   #t[0] == 'c' ? 16 : 32,                                                                   \
   1,                                                                                        \
   stages,                                                                                   \
   128 + 32 * (k_groups) * ((bm) / (wm)) * (bn) / (wn),                                      \
   "k" #cluster,                                                                             \
   false,                                                                                    \
   false},
#define WS_CUDA_TF32W_ROW(t, slices, bm, bn, k_groups, stages, places, blocks, cluster, rate) \
  {"cuda",                                                                                    \
   "tf32w" #slices,                                                                           \
   #t "gemm_tf32w" #slices "_" #bm "x" #bn "_g" #k_groups "_k" #cluster,                      \
   #t[0],                                                                                     \
   bm,                                                                                        \
   bn,                                                                                        \
   #t[0] == 'c' ? 16 : 32,                                                                    \
   1,                                                                                         \
   stages,                                                                                    \
   256 + 128 * (k_groups) * (bm) / 64,                                                        \
   "k" #cluster,                                                                              \
   false,                                                                                     \
   false},
#define WS_CUDA_TF32W_STAYS(t, slices, bm, bn, stages, places, blocks, rate) \
  {"cuda",                                                                   \
   "tf32w" #slices,                                                          \
   #t "gemm_tf32w" #slices "_" #bm "x" #bn "_g1_k1_stays",                   \
   #t[0],                                                                    \
   bm,                                                                       \
   bn,                                                                       \
   32,                                                                       \
   1,                                                                        \
   stages,                                                                   \
   256 + 2 * (bm),                                                           \
   "k1",                                                                     \
   false,                                                                    \
   false},
#define WS_CUDA_TF32M_ROW(t, slices, bm, bn, stages, turned_stages, places, blocks, cluster, rate)                   \
  {"cuda", "tf32m" #slices, #t "gemm_tf32m" #slices "_" #bm "x" #bn "_g1_k" #cluster, #t[0],        bm,    bn,   32, \
   1,      stages,          ((slices) == 2 && (bm) == 128 ? 256 : 128) + 2 * (bm),    "k" #cluster, false, false},
static const struct line lines[] = {
#include "../../cuda/rows/dmma.def"
#include "../../cuda/rows/ffma.def"
#include "../../cuda/rows/flat.def"
#include "../../cuda/rows/kernels.def"
#include "../../cuda/rows/outer.def"
#include "../../cuda/rows/small.def"
#include "../../cuda/rows/tf32.def"
#include "../../cuda/rows/tf32m.def"
#include "../../cuda/rows/tf32w.def"
#include "../../cuda/rows/vec.def"
#include "../../src/cpu/kernels/kernels.def"
};
enum { N_LINES = sizeof lines / sizeof lines[0] };

static const struct line *line_named(const char *name) {
  for (int i = 0; i < N_LINES; i++)
    if (strcmp(lines[i].name, name) == 0) return &lines[i];
  REQUIRE(false, "no line makes the row %s", name);
  return NULL;
}

static wsgemm_kernel_info info_of(int row) {
  wsgemm_kernel_info info;
  memset(&info, 0x5a, sizeof info);
  info.struct_bytes = sizeof info;
  REQUIRE(wsgemm_get_kernel_info(row, &info) == WSGEMM_SUCCESS, "row %d: %s", row, wsgemm_last_error());
  return info;
}

static bool is_one_of(const char *word, const char *words) {
  char padded[32];
  snprintf(padded, sizeof padded, " %s ", word);
  return strstr(words, padded) != NULL;
}

/* What follows from a family. */
static void check_family(const wsgemm_kernel_info *info) {
  const bool is_sliced = is_one_of(info->family, " f16x3 bf16x6 f16x1 "),
             is_hopper =
                 is_sliced ||
                 is_one_of(info->family, " wgmma direct flat small dmma ffma outer tf32x1 tf32x2 tf32m1 tf32m2 tf32w1 tf32w2 ");
  const int n_slices = is_one_of(info->family, " f16x1 tf32x1 tf32m1 tf32w1 ")   ? 1
                       : is_one_of(info->family, " f16x3 tf32x2 tf32m2 tf32w2 ") ? 2
                       : is_sliced                                               ? 3
                                                                                 : 0;
  CHECK(info->n_slices == n_slices, "%s: %d slices", info->name, info->n_slices);
  /* small ones by threads, or by warps, of tiles of 16 and more */
  const bool is_by_units =
      is_one_of(info->family, " small ") ? info->bm >= 16 : is_hopper && !is_one_of(info->family, " dmma ffma outer ");
  CHECK(info->is_fma == !(is_by_units || is_one_of(info->family, " mma16 amx ref ")), "%s: is_fma is %d", info->name,
        info->is_fma);
  const bool is_gpu = strcmp(info->backend, "cuda") == 0;
  CHECK(info->least_cc == (is_hopper ? 90
                           : is_gpu  ? 80
                                     : 0) &&
            info->most_cc == (is_hopper ? 90 : 0),
        "%s: cc %d .. %d", info->name, info->least_cc, info->most_cc);
}

/* At least the blocks of A and B of every stage (flat rows: a sum of each element), at most what an SM has for a block (227 KiB of cc
 * 9.0). A sliced complex number is for the units a row of reals twice as high and with twice the k:
 * 2 x 2 of A, 1 x 2 of B. */
static void check_shared(const wsgemm_kernel_info *info) {
  static const int element_bytes[] = {4, 8, 8, 16, 2, 2};
  const bool is_split_before = info->n_slices > 0 && !is_one_of(info->family, " tf32x1 tf32x2 tf32m1 tf32m2 tf32w1 tf32w2 ");
  const bool is_doubled = is_split_before && info->type == WSGEMM_C32;
  const int of_a = is_split_before ? 2 * info->n_slices * (is_doubled ? 4 : 1) : element_bytes[info->type],
            of_b = is_split_before ? 2 * info->n_slices * (is_doubled ? 2 : 1) : element_bytes[info->type];
  const long long stages = (long long)info->n_stages * info->bk * (info->bm * of_a + info->bn * info->coarse_factor * of_b);
  const long long tiles = is_one_of(info->family, " flat ") ? (long long)info->bm * info->bn * 4 : stages;
  CHECK(info->shared_bytes >= tiles && info->shared_bytes <= 227 * 1024 && (tiles > 0 || info->shared_bytes == 0),
        "%s: %d bytes of shared memory, tiles of %lld", info->name, info->shared_bytes, tiles);
}

/* "x2", "k16", "s2": so many blocks; "x24": as many along m, and along n; "s2k4": as many share A, with as many parts of k each. */
static int splits_of(const char *text) {
  const char *k = strchr(text, 'k');
  return !*text ? 0 : k ? atoi(k + 1) : 1;
}
static int cluster_of(const char *text) {
  int n_blocks = *text ? splits_of(text) : 0;
  for (; *text && *text != 'k'; text++)
    if (*text >= '0' && *text <= '9') n_blocks *= *text - '0';
  return n_blocks;
}

static void every_field(void) {
  static const char letters[] = "sdczhb";
  for (int row = 0; row < wsgemm_kernel_count(); row++) {
    const wsgemm_kernel_info info = info_of(row);
    const struct line *line = line_named(wsgemm_kernel_name(row));
    const char *name = line->name;
    CHECK(info.struct_bytes == sizeof info, "%s: struct_bytes is %zu", name, info.struct_bytes);
    CHECK(strcmp(info.name, name) == 0 && strcmp(info.family, line->family) == 0, "%s: %s, %s", name, info.name, info.family);
    CHECK(strcmp(info.backend, line->backend) == 0 && info.backend == wsgemm_kernel_backend(row), "%s: %s", name, info.backend);
    CHECK(letters[info.type] == line->letter, "%s: type %d", name, (int)info.type);
    CHECK(info.is_usable == wsgemm_kernel_usable(row), "%s: is_usable is %d", name, info.is_usable);
    CHECK(info.bm == line->bm && info.bn == line->bn && info.bk == line->bk, "%s: %d x %d x %d", name, info.bm, info.bn, info.bk);
    CHECK(info.coarse_factor == line->coarse && info.n_stages == line->stages, "%s: COARSE_FACTOR %d, %d stages", name,
          info.coarse_factor, info.n_stages);
    CHECK(info.n_threads == line->threads, "%s: %d threads", name, info.n_threads);
    CHECK(info.cluster == cluster_of(line->cluster), "%s: clusters of %d", name, info.cluster);
    CHECK(info.cluster_splits == splits_of(line->cluster), "%s: %d parts of k", name, info.cluster_splits);
    CHECK(info.has_split_k == line->splits && info.is_ping_pong == line->ping_pong, "%s: split-k %d, ping-pong %d", name,
          info.has_split_k, info.is_ping_pong);
    check_family(&info);
    check_shared(&info);
  }
}

/* Every line of a family that the build has, and no row besides: rows have different names
 * (test_status.c), and each has its line. */
static void every_row(void) {
  for (int i = 0; i < N_LINES; i++) {
    bool has_family = false, is_found = false;
    for (int row = 0; row < wsgemm_kernel_count(); row++) {
      const wsgemm_kernel_info info = info_of(row);
      has_family |= strcmp(info.family, lines[i].family) == 0;
      is_found |= strcmp(info.name, lines[i].name) == 0;
    }
    CHECK(is_found == has_family, "%s is no row, but others of its family are", lines[i].name);
    CHECK(has_family || strcmp(lines[i].family, "ref") != 0, "no portable rows");
  }
}

static void refused(void) {
  const int beyond[] = {-1, wsgemm_kernel_count(), 1 << 30, -(1 << 30)};
  wsgemm_kernel_info info, before;
  memset(&info, 0x5a, sizeof info);
  info.struct_bytes = sizeof info;
  before = info;
  for (size_t i = 0; i < sizeof beyond / sizeof beyond[0]; i++) {
    char number[16];
    snprintf(number, sizeof number, "row is %d;", beyond[i]);
    CHECK(wsgemm_get_kernel_info(beyond[i], &info) == WSGEMM_INVALID_VALUE && strstr(wsgemm_last_error(), number), "row %d: %s",
          beyond[i], wsgemm_last_error());
  }
  const size_t wrong[] = {0, sizeof info - 1, sizeof info + 8};
  for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
    info.struct_bytes = wrong[i];
    CHECK(wsgemm_get_kernel_info(0, &info) == WSGEMM_INVALID_VALUE && strstr(wsgemm_last_error(), "struct_bytes"),
          "%zu bytes: %s", wrong[i], wsgemm_last_error());
  }
  info.struct_bytes = before.struct_bytes;
  CHECK(memcmp(&info, &before, sizeof info) == 0, "a refused call has written");
  CHECK(wsgemm_get_kernel_info(0, NULL) == WSGEMM_INVALID_POINTER && strstr(wsgemm_last_error(), "info is NULL"), "NULL: %s",
        wsgemm_last_error());
}

static const struct check_case cases[] = {{"every_field", every_field}, {"every_row", every_row}, {"refused", refused}};
CHECK_MAIN("kernel_info", cases)
