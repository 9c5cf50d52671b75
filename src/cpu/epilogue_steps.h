/* epilogue_steps.h - the steps of an epilogue over lines of numbers, written once for floats and
 * doubles. Included by epilogue.c with R, the type that sums are made in, NAME(x), the name of x
 * for it, and BETA, beta's member of it. */

/* The activations of a float are computed in double, whose error is then far below the rounding to
 * float. */
static void NAME(activate)(wsgemm_epilogue activation, int64_t n, R *x) {
  switch (activation) {
  case WSGEMM_EPILOGUE_NONE:
    break;
  case WSGEMM_EPILOGUE_RELU:
    /* a NaN is not less, and raises nothing here */
    for (int64_t i = 0; i < n; i++) x[i] = isless(x[i], 0) ? 0 : x[i];
    break;
  case WSGEMM_EPILOGUE_GELU_TANH:
    for (int64_t i = 0; i < n; i++) x[i] = (R)gelu_tanh((double)x[i]);
    break;
  case WSGEMM_EPILOGUE_GELU_ERF:
    for (int64_t i = 0; i < n; i++) x[i] = (R)gelu_erf((double)x[i]);
    break;
  case WSGEMM_EPILOGUE_SILU:
    for (int64_t i = 0; i < n; i++) x[i] = (R)silu((double)x[i]);
    break;
  }
}

/* x = out_scale act(x + bias) + residual for n lines of m. bias: of the rows if bias_per_row, else
 * of the lines; residual: n lines. Both may be NULL. */
static void NAME(apply)(const ws_epilogue *e, int64_t m, int64_t n, R *x, int64_t ldx, const R *bias, const R *residual,
                        int64_t ld_residual) {
  const R out_scale = (R)e->out_scale;
  for (int64_t j = 0; j < n; j++, x += ldx) {
    if (bias && e->bias_per_row)
      for (int64_t i = 0; i < m; i++) x[i] += bias[i];
    else if (bias)
      for (int64_t i = 0; i < m; i++) x[i] += bias[j];
    NAME(activate)(e->activation, m, x);
    if (out_scale != 1)
      for (int64_t i = 0; i < m; i++) x[i] *= out_scale;
    if (residual) {
      for (int64_t i = 0; i < m; i++) x[i] += residual[i];
      residual += ld_residual;
    }
  }
}

/* x = beta x, or 0, for n lines of m. */
static void NAME(scale)(const ws_scale *scale, R beta, int64_t m, int64_t n, R *x, int64_t ldx) {
  for (int64_t j = 0; j < n; j++, x += ldx)
    for (int64_t i = 0; i < m; i++) x[i] = scale->beta_zero ? 0 : beta * x[i];
}

/* The m x n elements of C from (i, j) on into x, and back. */
static void NAME(load)(const ws_problem *p, const ws_cpu_row *row, int64_t batch, int64_t i, int64_t j, int64_t m, int64_t n,
                       R *x, int64_t ldx) {
  const char *c = ws_c_at(p, batch, i, j, ws_types[p->c.type].bytes);
  if (ws_is_half(p->c.type))
    row->convert->widen[p->c.type](m, n, (const void *)c, p->c.ld, (void *)x, ldx);
  else
    for (int64_t line = 0; line < n; line++)
      memcpy(x + line * ldx, c + line * p->c.ld * (int64_t)sizeof *x, (size_t)m * sizeof *x);
}

static void NAME(store)(const ws_problem *p, const ws_cpu_row *row, int64_t batch, int64_t i, int64_t j, int64_t m, int64_t n,
                        const R *x, int64_t ldx) {
  char *c = ws_c_at(p, batch, i, j, ws_types[p->c.type].bytes);
  if (ws_is_half(p->c.type))
    row->convert->narrow[p->c.type](m, n, (const void *)x, ldx, (void *)c, p->c.ld);
  else
    for (int64_t line = 0; line < n; line++)
      memcpy(c + line * p->c.ld * (int64_t)sizeof *x, x + line * ldx, (size_t)m * sizeof *x);
}

/* The epilogue of a block of at most BLOCK elements of C; if there was no product, of beta C. */
static void NAME(walk_block)(const ws_problem *p, const ws_cpu_row *row, bool has_product, int64_t batch, int64_t i, int64_t j,
                             int64_t m, int64_t n) {
  R x[BLOCK];
  const R beta = p->scale.beta.BETA[0];
  if (has_product || !p->scale.beta_zero) NAME(load)(p, row, batch, i, j, m, n, x, m);
  if (!has_product && !p->scale.beta_one) NAME(scale)(&p->scale, beta, m, n, x, m);
  ws_epilogue_apply(p, row, batch, i, j, m, n, x, m);
  NAME(store)(p, row, batch, i, j, m, n, x, m);
}

/* ---- column sums: each is the sum of SUM_LANES sums, of which number l takes the rows l, l +
 * SUM_LANES, ...: so it can be made along a column or across many, with the same bits ---- */

static R NAME(sum_lanes)(const R *lane, int64_t stride) {
  R sum[SUM_LANES];
  for (int l = 0; l < SUM_LANES; l++) sum[l] = lane[l * stride];
  for (int half = SUM_LANES / 2; half > 0; half /= 2)
    for (int l = 0; l < half; l++) sum[l] += sum[l + half];
  return sum[0];
}

/* Of column j, whose elements follow each other. */
static R NAME(sum_along)(const ws_problem *p, const ws_cpu_row *row, int64_t batch, int64_t j) {
  R x[BLOCK], lane[SUM_LANES] = {0};
  for (int64_t i = 0; i < p->m; i += BLOCK) {
    const int64_t m = ws_min(BLOCK, p->m - i), whole = m / SUM_LANES * SUM_LANES;
    NAME(load)(p, row, batch, i, j, m, 1, x, m);
    for (int64_t at = 0; at < whole; at += SUM_LANES)
      for (int l = 0; l < SUM_LANES; l++) lane[l] += x[at + l];
    for (int64_t at = whole; at < m; at++) lane[at - whole] += x[at];
  }
  return NAME(sum_lanes)(lane, 1);
}

/* Of the caller's columns i .. i + m - 1, m <= SUM_COLUMNS, which are rows here. */
static void NAME(sum_across)(const ws_problem *p, const ws_cpu_row *row, int64_t batch, int64_t i, int64_t m, R *sums) {
  R x[SUM_COLUMNS], lane[SUM_LANES * SUM_COLUMNS] = {0};
  for (int64_t j = 0; j < p->n; j++) {
    R *of_row = lane + j % SUM_LANES * SUM_COLUMNS;
    NAME(load)(p, row, batch, i, j, m, 1, x, m);
    for (int64_t at = 0; at < m; at++) of_row[at] += x[at];
  }
  for (int64_t at = 0; at < m; at++) sums[at] = NAME(sum_lanes)(lane + at, SUM_COLUMNS);
}

static void NAME(sum_columns)(const ws_problem *p, const ws_cpu_row *row, int64_t batch, int64_t first, int64_t n) {
  R *sums = (R *)p->epilogue.column_sums + batch * p->epilogue.stride_column_sums + first;
  if (p->epilogue.transposed)
    NAME(sum_across)(p, row, batch, first, n, sums);
  else
    for (int64_t j = 0; j < n; j++) sums[j] = NAME(sum_along)(p, row, batch, first + j);
}
