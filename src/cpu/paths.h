/* paths.h - the ways of computing a product on the CPU, and what they share. Each takes a checked
 * problem with k >= 1 and alpha != 0 and the plan that plan.c made for it. */
#ifndef WS_CPU_PATHS_H
#define WS_CPU_PATHS_H
#include "cpu/plan.h"
#include "cpu/rectangle.h"

/* Without a plan: those of ws_small_of. */
void ws_cpu_small(const ws_problem *p, const ws_cpu_row *row);
void ws_cpu_small_by_rows(const ws_problem *p, const ws_cpu_row *row);
void ws_cpu_small_dots(const ws_problem *p, const ws_cpu_row *row);
void ws_direct_run(const ws_problem *p, const ws_plan *plan);
/* A part of C, over one block of k: of a plan with k_of_part. */
void ws_direct_parts(const ws_problem *p, const ws_plan *plan, const ws_rectangle *all, const ws_scale *scale, int64_t k0,
                     int64_t kb);
void ws_dots_run(const ws_problem *p, const ws_plan *plan);
void ws_vector_run(const ws_problem *p, const ws_plan *plan);
/* false: no memory for packing, nothing done. */
bool ws_packed_run(const ws_problem *p, const ws_plan *plan);
void ws_half_run(const ws_problem *p, const ws_plan *plan);

/* The scalars as micro-kernels take them. */
static inline ws_scale ws_scale_first(const ws_problem *p) {
  ws_scale s = p->scale;
  s.conj_a = p->a.conj, s.conj_b = p->b.conj;
  return s;
}

/* The same for a later block of k: its products are added to what the first one left. */
static inline ws_scale ws_scale_later(const ws_problem *p) {
  ws_scale s = ws_scale_first(p);
  if (p->a.type == WSGEMM_F32 || p->a.type == WSGEMM_C32)
    s.beta.s[0] = 1, s.beta.s[1] = 0;
  else
    s.beta.d[0] = 1, s.beta.d[1] = 0;
  s.beta_zero = false;
  s.beta_one = s.beta_real = true;
  return s;
}

/* Addresses of element (i, j) of an operand, as the product reads it, and of C. */
static inline const char *ws_operand_at(const ws_matrix *x, int64_t batch, int64_t i, int64_t j, int bytes) {
  return (const char *)x->data + (batch * x->stride + (x->trans ? j + i * x->ld : i + j * x->ld)) * bytes;
}
static inline char *ws_c_at(const ws_problem *p, int64_t batch, int64_t i, int64_t j, int bytes) {
  return (char *)p->c.data + (batch * p->c.stride + i + j * p->c.ld) * bytes;
}
#endif
