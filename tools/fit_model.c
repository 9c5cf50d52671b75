/* fit_model.c - what tools/fit_model.py asks of the library's own models (cuda/host/wgmma_model.c,
 * direct_model.c, flat_model.c; dmma_model.c, for each family of rows that copy for others): the times of rows for
 * products under given terms, and how far they are off. */
#include <math.h>
#include <string.h>

#include "cuda/host/direct_model.h"
#include "cuda/host/dmma_model.h"
#include "cuda/host/flat_model.h"
#include "cuda/host/problem_args.h"
#include "cuda/host/row_table.h"
#include "cuda/host/wgmma_model.h"

enum { N_SMS = 132, N_WGMMA = sizeof(ws_wgmma_terms) / sizeof(double), N_DIRECT = sizeof(ws_direct_terms) / sizeof(double) };
enum { MOST_ROWS = 512 };

typedef struct fit_product {
  int64_t m, n, k, a_trans, b_trans, n_entries; /* entries: those of one product stand together */
  int64_t type;                                 /* wsgemm_type; all of a fit have the same models */
  int64_t family;                               /* fit_family; of half precision any */
} fit_product;
typedef struct fit_entry {
  int64_t row_idx, is_across; /* how it was measured (fit_ways) */
  double us;                  /* measured */
} fit_entry;

int fit_row(const char *name) {
  for (int r = 0; r < WS_N_CUDA_ROWS; r++)
    if (strcmp(ws_cuda_rows[r].name, name) == 0) return r;
  return -1;
}

/* Rows whose warps copy for others: one model, with terms for each of these. */
typedef enum fit_family { FIT_DMMA, FIT_TF32X1, FIT_TF32X2, FIT_TF32W1, FIT_TF32W2, FIT_TF32M1, FIT_TF32M2 } fit_family;

static bool is_half(int64_t type) { return type == WSGEMM_F16 || type == WSGEMM_BF16; }

static const ws_dmma_terms *terms_of_family(int64_t type, int64_t family) {
  const int is_complex = type == WSGEMM_C32;
  return family == FIT_DMMA     ? &ws_dmma_terms_h200[type]
         : family >= FIT_TF32M1 ? &ws_tf32m_terms_h200[family - FIT_TF32M1]
         : family >= FIT_TF32W1 ? &ws_tf32w_terms_h200[family - FIT_TF32W1][is_complex]
                                : &ws_tf32_terms_h200[family - FIT_TF32X1][is_complex];
}

void fit_terms(int64_t type, int64_t family, double *terms) {
  if (!is_half(type)) {
    memcpy(terms, terms_of_family(type, family), sizeof(ws_dmma_terms));
    return;
  }
  memcpy(terms, &ws_wgmma_terms_h200, sizeof ws_wgmma_terms_h200);
  memcpy(terms + N_WGMMA, &ws_direct_terms_h200, sizeof ws_direct_terms_h200);
  memcpy(terms + N_WGMMA + N_DIRECT, &ws_flat_terms_h200, sizeof ws_flat_terms_h200);
}

static ws_problem problem_of(const fit_product *product) {
  ws_problem p = {.m = product->m, .n = product->n, .k = product->k, .batch_count = 1};
  p.a.type = p.c.type = (wsgemm_type)product->type, p.scale.alpha_one = p.scale.beta_zero = true;
  p.a.trans = product->a_trans != 0, p.b.trans = product->b_trans != 0;
  return p;
}
static ws_wgmma_product look_at(const double *terms, const ws_problem *p) {
  ws_wgmma_product look = ws_wgmma_look_at((const ws_wgmma_terms *)terms, p, N_SMS, false);
  look.is_bare = p->m % 8 == 0 && (p->a.trans ? p->k : p->m) % 8 == 0 && (p->b.trans ? p->n : p->k) % 8 == 0;
  return look;
}

/* Which rows computed C transposed when they were measured: as these terms had it then. Those that copy for others are asked anew each time. */
void fit_ways(const double *terms, int64_t n, const fit_product *products, fit_entry *entries) {
  for (int64_t i = 0; i < n; entries += products[i].n_entries, i++) {
    if (!is_half(products[i].type)) continue;
    const ws_problem p = problem_of(&products[i]);
    const ws_wgmma_product look = look_at(terms, &p);
    for (int64_t e = 0; e < products[i].n_entries; e++) {
      const ws_cuda_row *row = &ws_cuda_rows[entries[e].row_idx];
      entries[e].is_across = row->kind == WS_ROW_WGMMA && ws_wgmma_is_across((const ws_wgmma_terms *)terms, &look, row);
    }
  }
}

static void times_of_dmma(const ws_dmma_terms *terms, const fit_product *product, const fit_entry *entries, double *us) {
  ws_problem p = problem_of(product);
  if (product->family >= FIT_TF32M1 && ws_maps_are_across(&p)) p = ws_problem_across(&p);
  for (int64_t e = 0; e < product->n_entries; e++) {
    const ws_cuda_row *row = &ws_cuda_rows[entries[e].row_idx];
    const int64_t n_items = ws_ceil_div(p.m, row->bm) * ws_ceil_div(p.n, row->bn);
    us[e] = ws_dmma_us(terms, &p, n_items, row, N_SMS);
  }
}

/* The models' times of a product's entries: as the library weighs them, so of half precision 0 for rows of other
 * kinds, and for those that are not made for it. */
static void times_of(const double *terms, const fit_product *product, const fit_entry *entries, double *us) {
  if (!is_half(product->type)) {
    times_of_dmma((const ws_dmma_terms *)terms, product, entries, us);
    return;
  }
  const ws_wgmma_terms *wgmma = (const ws_wgmma_terms *)terms;
  const ws_direct_terms *direct = (const ws_direct_terms *)(terms + N_WGMMA);
  const ws_flat_terms *flat = (const ws_flat_terms *)(terms + N_WGMMA + N_DIRECT);
  const ws_problem p = problem_of(product);
  const ws_wgmma_product look = look_at(terms, &p);
  const double copies = ws_wgmma_copies_us(direct, &p);
  const bool is_small = ws_may_be_direct(&p);
  const ws_split split = ws_split_for(&p, N_SMS, false);
  for (int64_t e = 0; e < product->n_entries; e++) {
    const ws_cuda_row *row = &ws_cuda_rows[entries[e].row_idx];
    us[e] = row->kind == WS_ROW_WGMMA                 ? ws_wgmma_us_as(wgmma, &look, row, entries[e].is_across) + copies
            : row->kind == WS_ROW_VECTOR              ? ws_vector_us(direct, &p, &split, N_SMS)
            : row->kind != WS_ROW_DIRECT || !is_small ? 0
            : row->is_flat                            ? ws_flat_us(flat, &p, row, N_SMS)
                                                      : ws_direct_us(direct, &p, row, N_SMS);
    if (isinf(us[e])) us[e] = 0;
  }
}

void fit_times(const double *terms, int64_t n, const fit_product *products, const fit_entry *entries, double *us) {
  for (int64_t i = 0; i < n; entries += products[i].n_entries, us += products[i].n_entries, i++)
    times_of(terms, &products[i], entries, us);
}

/* What choosing by the model costs, as the mean of log(time / least time), where rows whose times
 * are within `softness` of each other are chosen by turns; and `weight` times the mean square of
 * log(model / measured) of rows, the more to a row the nearer it is to the best. */
double fit_loss(const double *terms, int64_t n, const fit_product *products, const fit_entry *entries, double softness,
                double weight) {
  double us[MOST_ROWS], loss = 0;
  for (int64_t i = 0; i < n; entries += products[i].n_entries, i++) {
    double least = HUGE_VAL, least_model = HUGE_VAL, shares = 0, regret = 0, near = 0, off = 0;
    times_of(terms, &products[i], entries, us);
    for (int64_t e = 0; e < products[i].n_entries; e++)
      if (us[e] > 0) least = fmin(least, entries[e].us), least_model = fmin(least_model, us[e]);
    for (int64_t e = 0; e < products[i].n_entries; e++) {
      if (!(us[e] > 0)) continue;
      const double part = least / entries[e].us, share = pow(least_model / us[e], 1 / softness);
      const double apart = log(us[e] / entries[e].us), squared = part * part * part * part;
      shares += share, regret -= share * log(part), near += squared, off += squared * apart * apart;
    }
    loss += regret / shares + weight * off / near;
  }
  return loss / (double)n;
}
