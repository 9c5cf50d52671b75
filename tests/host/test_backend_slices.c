/* test_backend_slices.c - what the kernels are told that multiply floats by slices of FP16: where
 * slices, scales and marks stand, the tensor maps of the slices, pieces, and which products go this
 * way at all. Seen by a fake driver. */
#define _GNU_SOURCE
#include "fake_slices.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

/* maxima, two slices and their product, three slices and theirs, multiply-adds */
enum { N_LAUNCHES = 6 };
static const char *const row_name = "sgemm_f16x3_128x64x64_c2_x1";

static wsgemm_gemm_desc single_desc(wsgemm_op op_a, wsgemm_op op_b, int64_t m, int64_t n, int64_t k) {
  wsgemm_gemm_desc d = device_desc(WSGEMM_F32, m, n, k, 0);
  d.transa = op_a, d.transb = op_b;
  d.lda = op_a == WSGEMM_NO_TRANS ? m : k, d.ldb = op_b == WSGEMM_NO_TRANS ? k : n;
  return d;
}

static bool is_sliced(const fake_launch *l) { return row_of(l) && row_of(l)->kind == WS_ROW_SLICED; }

/* One operand: what is cut, into what, and that the product reads just that. */
static void check_operand(const ws_slice_operand *op, const ws_wgmma_operand *read, int n_slices, const void *from, int64_t n_x,
                          int64_t k, int64_t ld, bool along_k) {
  const int64_t length = along_k ? k : n_x, n_lines = along_k ? n_x : k;
  const fake_map map = held(&read->map);
  CHECK(op->from == from && op->n_x == n_x && op->n_k == k && op->ld == ld && (op->along_k != 0) == along_k && op->n_batch == 1,
        "what is cut");
  CHECK((int64_t)op->n_chunks * op->chunk_k >= k && op->chunk_k % 64 == 0 && op->n_chunks <= WS_SLICE_CHUNKS &&
            (int64_t)(op->n_chunks - 1) * op->chunk_k < k,
        "%d chunks of %d", op->n_chunks, op->chunk_k);
  CHECK(map.address == (uintptr_t)op->to && map.dims[0] == (uint64_t)length && map.dims[1] == (uint64_t)n_lines &&
            map.dims[2] == (uint64_t)n_slices && map.strides[0] == (uint64_t)op->pitch * 2 &&
            (n_slices == 1 || map.strides[1] == (uint64_t)(op->pitch * n_lines) * 2) &&
            map.type == (n_slices == 3 ? CU_TENSOR_MAP_DATA_TYPE_BFLOAT16 : CU_TENSOR_MAP_DATA_TYPE_FLOAT16),
        "the map of the slices");
  CHECK(op->pitch >= length && op->pitch % 64 == 0 && (read->along_k != 0) == along_k && read->batch_step == 0,
        "how they are read");
}

/* Nothing of the two operands overlaps, and all of it is in the memory. */
static void check_memory(const ws_slice_args *args, const char *memory, int64_t bytes) {
  struct region regions[2 * REGIONS_OF_OPERAND];
  for (int i = 0; i < 2; i++) regions_of(&args->operand[i], 3, regions + i * REGIONS_OF_OPERAND);
  check_regions(regions, 2 * REGIONS_OF_OPERAND, memory, bytes);
}

CHILD_CASE(launches) {
  (void)unused;
  wsgemm_handle *h = forced(row_name);
  for (int ops = 0; ops < 4; ops++) {
    const wsgemm_gemm_desc d = single_desc(all_ops[ops / 2], all_ops[ops % 2], 301, 200, 136);
    REQUIRE(watched_gemm(h, &d) == WSGEMM_SUCCESS && fake.n_launches == N_LAUNCHES, "%d launches: %s", fake.n_launches,
            wsgemm_last_error());
    const fake_launch *maxima = &fake.launch[0], *slices = &fake.launch[1], *product = &fake.launch[2], *three = &fake.launch[3],
                      *second = &fake.launch[4], *fallback = &fake.launch[5];
    CHECK(strcmp(maxima->kernel, "maxima") == 0 && strcmp(slices->kernel, "sslices_2") == 0 &&
              row_of(product) == gpu_row_named(row_name) && strcmp(three->kernel, "sslices_3") == 0 && is_of(second, "bf16x6") &&
              strcmp(fallback->kernel, "sfallback") == 0,
          "%s, %s, %s, %s, %s, %s", maxima->kernel, slices->kernel, product->kernel, three->kernel, second->kernel,
          fallback->kernel);
    CHECK(memcmp(&maxima->slices, &slices->slices, sizeof slices->slices) == 0, "the two passes are told different things");
    const ws_slice_args *args = &slices->slices;
    check_operand(&args->operand[0], &product->wgmma.a, 2, d.a, d.m, d.k, d.lda, ops / 2 == 1);
    check_operand(&args->operand[1], &product->wgmma.b, 2, d.b, d.n, d.k, d.ldb, ops % 2 == 0);
    size_t bytes = 0;
    CHECK(wsgemm_get_workspace_size(h, &d, &bytes) == WSGEMM_SUCCESS, "%s", wsgemm_last_error());
    check_memory(args, fake.copies[0], (int64_t)bytes);
    const ws_slice_args *again = &three->slices;
    check_operand(&again->operand[0], &second->wgmma.a, 3, d.a, d.m, d.k, d.lda, ops / 2 == 1);
    check_operand(&again->operand[1], &second->wgmma.b, 3, d.b, d.n, d.k, d.ldb, ops % 2 == 0);
    for (int i = 0; i < 3; i++) {
      const ws_wgmma_scales *s = i == 0 ? &product->wgmma.scales : i == 1 ? &second->wgmma.scales : &fallback->fallback.scales;
      CHECK(s->of_m == args->operand[0].scales && s->of_n == args->operand[1].scales && s->pitch_m == 0 && s->pitch_n == 0 &&
                s->groups_m == args->operand[0].groups && s->groups_n == args->operand[1].groups && s->groups_pitch_m == 0 &&
                s->listed_m && s->listed_n && s->listed_m == args->operand[0].listed && s->listed_n == args->operand[1].listed &&
                s->state_m == args->operand[0].state && s->state_n == args->operand[1].state,
            "scales");
    }
    CHECK(fallback->args.a.data == d.a && fallback->args.b.data == d.b && fallback->args.c == d.c &&
              fallback->args.sched.n_items == (uint32_t)(((d.m + 63) / 64) * ((d.n + 63) / 64)),
          "what is computed again");
    CHECK(product->wgmma.c_data == d.c && product->wgmma.m == d.m && product->wgmma.n == d.n && product->wgmma.k == d.k, "C");
  }
  wsgemm_destroy(h);
}

/* Complex numbers: as reals, twice the rows of C and twice the k. What is cut are floats as they
 * are in memory. */
static void check_complex_operand(const ws_slice_operand *op, const ws_wgmma_operand *read, int n_slices, bool is_a, bool along_k,
                                  int64_t n, int64_t k, int64_t ld) {
  const int64_t n_given = is_a ? 2 * n : n, length = along_k ? 2 * k : n_given, n_lines = along_k ? n_given : 2 * k;
  const fake_map map = held(&read->map);
  CHECK(op->form == (is_a ? WS_SLICE_COMPLEX_A : WS_SLICE_COMPLEX_B) && (op->along_k != 0) == along_k &&
            op->n_x == (along_k ? n : 2 * n) && op->n_k == (along_k ? 2 * k : k) && op->ld == 2 * ld && op->n_lines == n_lines &&
            op->pitch >= length && op->scales_pitch >= n_given,
        "%c: what is cut", is_a ? 'A' : 'B');
  CHECK(map.address == (uintptr_t)op->to && map.dims[0] == (uint64_t)length && map.dims[1] == (uint64_t)n_lines &&
            map.dims[2] == (uint64_t)n_slices && map.strides[0] == (uint64_t)op->pitch * 2 &&
            map.strides[1] == (uint64_t)(op->pitch * n_lines) * 2 && (read->along_k != 0) == along_k,
        "%c: the map of the slices", is_a ? 'A' : 'B');
}

CHILD_CASE(complex_numbers) {
  (void)unused;
  static const wsgemm_op ops[] = {WSGEMM_NO_TRANS, WSGEMM_TRANS, WSGEMM_CONJ_TRANS, WSGEMM_CONJ_NO_TRANS};
  wsgemm_handle *h = forced("cgemm_f16x3_64x64x32_c2_x1");
  for (int i = 0; i < 16; i++) {
    const wsgemm_op op_a = ops[i / 4], op_b = ops[i % 4];
    const bool a_along_k = op_a == WSGEMM_TRANS || op_a == WSGEMM_CONJ_TRANS,
               b_along_k = op_b == WSGEMM_NO_TRANS || op_b == WSGEMM_CONJ_NO_TRANS;
    wsgemm_gemm_desc d = device_desc(WSGEMM_C32, 301, 200, 136, 0);
    d.transa = op_a, d.transb = op_b, d.lda = a_along_k ? d.k : d.m, d.ldb = b_along_k ? d.k : d.n;
    d.alpha.c = (wsgemm_cfloat){2, 3}, d.beta.c = (wsgemm_cfloat){5, 7};
    REQUIRE(watched_gemm(h, &d) == WSGEMM_SUCCESS && fake.n_launches == N_LAUNCHES, "%d launches: %s", fake.n_launches,
            wsgemm_last_error());
    const fake_launch *l = fake.launch;
    CHECK(strcmp(l[0].kernel, "maxima") == 0 && strcmp(l[1].kernel, "cslices_2") == 0 && row_of(&l[2])->type == WSGEMM_C32 &&
              is_of(&l[2], "f16x3") && strcmp(l[3].kernel, "cslices_3") == 0 && row_of(&l[4])->type == WSGEMM_C32 &&
              is_of(&l[4], "bf16x6") && strcmp(l[5].kernel, "cfallback") == 0,
          "%s, %s, %s, %s, %s, %s", l[0].kernel, l[1].kernel, l[2].kernel, l[3].kernel, l[4].kernel, l[5].kernel);
    for (int at = 1; at <= 3; at += 2) {
      const ws_slice_operand *op = l[at].slices.operand;
      check_complex_operand(&op[0], &l[at + 1].wgmma.a, at == 1 ? 2 : 3, true, a_along_k, d.m, d.k, d.lda);
      check_complex_operand(&op[1], &l[at + 1].wgmma.b, at == 1 ? 2 : 3, false, b_along_k, d.n, d.k, d.ldb);
      CHECK((op[0].conj != 0) == (i / 4 >= 2) && (op[1].conj != 0) == (i % 4 >= 2), "which are conjugated");
      const ws_wgmma_args *p = &l[at + 1].wgmma;
      CHECK(p->c_data == d.c && p->m == 2 * d.m && p->n == d.n && p->k == 2 * d.k && p->ldc == 2 * d.ldc && p->alpha == 2 &&
                p->alpha_im == 3 && p->beta == 5 && p->beta_im == 7 && !p->beta_zero && p->c_pairs,
            "C");
      CHECK(p->scales.n_m == 2 * d.m && p->scales.n_n == d.n, "what is counted");
    }
    size_t bytes = 0;
    CHECK(wsgemm_get_workspace_size(h, &d, &bytes) == WSGEMM_SUCCESS, "%s", wsgemm_last_error());
    check_memory(&l[1].slices, fake.copies[0], (int64_t)bytes);
    CHECK(l[5].fallback.gemm.m == d.m && l[5].fallback.gemm.k == d.k && l[5].fallback.gemm.a.data == d.a &&
              l[5].fallback.counts_a && l[5].fallback.counts_b,
          "what is computed again");
    d.c = (float *)d.c + 1; /* aligned to its real parts only */
    REQUIRE(watched_gemm(h, &d) == WSGEMM_SUCCESS, "%s", wsgemm_last_error());
    CHECK(!fake.launch[2].wgmma.c_pairs, "a misaligned C is written in pairs");
  }
  wsgemm_destroy(h);
}

/* In which numerics class, at which k, from which size on, on which device. */
CHILD_CASE(who_uses_them) {
  (void)unused;
  fake.n_devices = FAKE_N_DEVICES;
  fake.device[0].cc = 90, fake.device[0].n_sms = 132;
  const struct {
    int64_t side, k;
    wsgemm_math handle_math, math;
    bool invariant;
    int device;
    const char *family; /* of the product's kernel */
  } cases[] = {{2048, 2048, WSGEMM_MATH_DEFAULT, WSGEMM_MATH_INHERIT, false, 0, "f16x3"},
               {1024, 1024, WSGEMM_MATH_PEDANTIC, WSGEMM_MATH_INHERIT, false, 0, "ffma"},
               {2048, 2048, WSGEMM_MATH_PEDANTIC, WSGEMM_MATH_DEFAULT, false, 0, "f16x3"},
               {1024, 1024, WSGEMM_MATH_DEFAULT, WSGEMM_MATH_PEDANTIC, false, 0, "ffma"},
               {8192, 8192, WSGEMM_MATH_TF32, WSGEMM_MATH_INHERIT, false, 0, "f16x1"},
               {8192, 8192, WSGEMM_MATH_DEFAULT, WSGEMM_MATH_TF32, false, 0, "f16x1"},
               {512, 512, WSGEMM_MATH_TF32, WSGEMM_MATH_INHERIT, false, 0, "tf32m1"},   /* the launches alone take longer */
               {1023, 1023, WSGEMM_MATH_TF32, WSGEMM_MATH_INHERIT, false, 0, "tf32w1"}, /* no lines of whole 16 bytes */
               {2048, 2048, WSGEMM_MATH_DEFAULT, WSGEMM_MATH_INHERIT, true, 0, "simt"},
               {2048, 2048, WSGEMM_MATH_DEFAULT, WSGEMM_MATH_INHERIT, false, 1, "simt"},
               {1024, 100, WSGEMM_MATH_DEFAULT, WSGEMM_MATH_INHERIT, false, 0, "tf32w2"},
               {123, 5377, WSGEMM_MATH_DEFAULT, WSGEMM_MATH_INHERIT, false, 0, "tf32x2"}};
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    wsgemm_handle *h = NULL;
    REQUIRE(wsgemm_create(&h) == WSGEMM_SUCCESS && wsgemm_set_math(h, cases[i].handle_math) == WSGEMM_SUCCESS &&
                wsgemm_set_invariant(h, cases[i].invariant) == WSGEMM_SUCCESS,
            "%s", wsgemm_last_error());
    wsgemm_gemm_desc d = device_desc(WSGEMM_F32, cases[i].side, cases[i].side, cases[i].k, cases[i].device);
    char text[1024], kernel[128];
    d.math = cases[i].math;
    wsgemm_explain(h, &d, text, sizeof text);
    REQUIRE(explained_text(h, &d, "kernel", kernel), "case %zu: %s", i, text);
    const ws_cuda_row *row = gpu_row_named(kernel);
    CHECK(strcmp(row->family, cases[i].family) == 0, "case %zu: not %s: %s", i, cases[i].family, text);
    const bool tells = strstr(text, "slices of FP16") != NULL;
    CHECK(tells == (row->kind == WS_ROW_SLICED), "case %zu: the arithmetic that is told: %s", i, text);
    wsgemm_destroy(h);
  }
}

/* A build without code of these rows for the device, wherever the driver notices that: other rows,
 * and not a word of it. */
static void count_words(void *user, wsgemm_status status, const char *message) {
  (void)status, (void)message;
  ++*(int *)user;
}

static void no_sliced_code(void *argument) {
  const fake_function function = *(const fake_function *)argument;
  wsgemm_handle *h = NULL;
  int n_words = 0;
  fake.device[0].cc = 90;
  REQUIRE(wsgemm_create(&h) == WSGEMM_SUCCESS && wsgemm_set_logger(h, count_words, &n_words) == WSGEMM_SUCCESS, "handle");
  wsgemm_gemm_desc d = device_desc(WSGEMM_F32, 2048, 2048, 2048, 0);
  d.transb = WSGEMM_TRANS; /* of which no copies are made */
  for (int turn = 0; turn < 2; turn++) {
    /* an image is looked for again, a row is not */
    fake_fail(function, 1, 1, CUDA_ERROR_NO_BINARY_FOR_GPU);
    const fake_launch *l = launch_of(h, &d);
    CHECK(strstr(l->kernel, "_simt_") && (turn == 1 || fake.n_watched > 0), "%s", l->kernel);
    CHECK(n_words == 0 && wsgemm_last_error()[0] == '\0', "%d words of a success; %s", n_words, wsgemm_last_error());
  }
  wsgemm_destroy(h);
}

CHILD_CASE(without_code) {
  (void)unused;
  static const fake_function functions[] = {FAKE_cuLibraryLoadData, FAKE_cuOccupancyMaxActiveBlocksPerMultiprocessor};
  for (size_t i = 0; i < sizeof functions / sizeof functions[0]; i++)
    check_in_child(fake_function_names[functions[i]], no_sliced_code, (void *)&functions[i]);
}

/* A workspace for parts of the operands: every element of C belongs to one piece, an operand is cut
 * once for a row of pieces. */
CHILD_CASE(chunks) {
  (void)unused;
  wsgemm_handle *h = forced(row_name);
  enum { BYTES = 4 << 20, SIDE = 256 };
  char *workspace = fake_alloc(FAKE_DEVICE, 0, BYTES);
  const wsgemm_gemm_desc d = single_desc(WSGEMM_NO_TRANS, WSGEMM_NO_TRANS, 700, 900, 640);
  int times[(700 + SIDE - 1) / SIDE][(900 + SIDE - 1) / SIDE] = {{0}};
  size_t asked = 0;
  REQUIRE(wsgemm_set_workspace(h, workspace, BYTES) == WSGEMM_SUCCESS, "%s", wsgemm_last_error());
  CHECK(wsgemm_get_workspace_size(h, &d, &asked) == WSGEMM_SUCCESS && asked > BYTES, "%zu bytes are asked for", asked);
  REQUIRE(watched_gemm(h, &d) == WSGEMM_SUCCESS && fake.n_launches > N_LAUNCHES && fake.n_launches % N_LAUNCHES == 0 &&
              fake.n_launches <= FAKE_N_LAUNCHES,
          "%d launches: %s", fake.n_launches, wsgemm_last_error());
  const void *a_before = NULL;
  int n_counted_a = 0, n_counted_b = 0;
  for (int i = 0; i < fake.n_launches; i += N_LAUNCHES) {
    const ws_slice_args *args = &fake.launch[i + 1].slices;
    const ws_wgmma_args *product = &fake.launch[i + 2].wgmma;
    const int64_t first = (const float *)product->c_data - (const float *)d.c, m_first = first % d.m, n_first = first / d.m;
    for (int64_t m = m_first; m < m_first + product->m; m += SIDE)
      for (int64_t n = n_first; n < n_first + product->n; n += SIDE) times[m / SIDE][n / SIDE]++;
    const bool new_a = !args->operand[0].is_again;
    n_counted_a += fake.launch[i + 5].fallback.counts_a != 0, n_counted_b += fake.launch[i + 5].fallback.counts_b != 0;
    CHECK(fake.launch[i].slices.operand[0].is_again == args->operand[0].is_again &&
              fake.launch[i + 3].slices.operand[0].is_again == args->operand[0].is_again,
          "what is cut again");
    CHECK(new_a == (n_first == 0), "A is cut at column %lld", (long long)n_first);
    CHECK(!args->operand[1].is_again, "B's other columns have been cut since");
    if (new_a) a_before = args->operand[0].from;
    CHECK(a_before == (const float *)d.a + m_first, "A's slices are of other rows");
    CHECK((const char *)product->scales.of_n >= workspace && (const char *)product->scales.of_n < workspace + BYTES,
          "scales lie elsewhere");
  }
  const ws_wgmma_args *largest = &fake.launch[2].wgmma;
  CHECK(n_counted_a == (d.m + largest->m - 1) / largest->m && n_counted_b == (d.n + largest->n - 1) / largest->n,
        "marks of A are counted with %d pieces, of B with %d", n_counted_a, n_counted_b);
  for (size_t m = 0; m < sizeof times / sizeof times[0]; m++)
    for (size_t n = 0; n < sizeof times[0] / sizeof times[0][0]; n++)
      CHECK(times[m][n] == 1, "%zu, %zu: %d times", m, n, times[m][n]);
  REQUIRE(wsgemm_set_workspace(h, workspace, 4096) == WSGEMM_SUCCESS, "%s", wsgemm_last_error());
  CHECK(!is_sliced(launch_of(h, &d)), "slices in 4096 bytes");
  wsgemm_destroy(h);
}

CHILD_CASE(batches) {
  (void)unused;
  wsgemm_handle *h = forced(row_name);
  wsgemm_gemm_desc d = single_desc(WSGEMM_NO_TRANS, WSGEMM_NO_TRANS, 64, 64, 128);
  d.batch_count = 5, d.stride_a = 8192, d.stride_b = 0, d.stride_c = 4096;
  REQUIRE(watched_gemm(h, &d) == WSGEMM_SUCCESS && fake.n_launches == N_LAUNCHES, "%s", wsgemm_last_error());
  const ws_slice_args *args = &fake.launch[1].slices;
  const ws_wgmma_args *product = &fake.launch[2].wgmma;
  CHECK(args->operand[0].n_batch == 5 && args->operand[0].stride == 8192 && held(&product->a.map).dims[2] == 10 &&
            product->a.batch_step == 2 && product->scales.pitch_m == args->operand[0].scales_pitch,
        "A: 5 products");
  CHECK(args->operand[1].n_batch == 1 && held(&product->b.map).dims[2] == 2 && product->b.batch_step == 0 &&
            product->scales.pitch_n == 0,
        "B: one for all");
  wsgemm_destroy(h);
}

/* A residual that is C itself is copied to where the slices do not stand, in the workspace and in
 * the library's own memory. */
CHILD_CASE(residual_in_c) {
  (void)unused;
  wsgemm_handle *h = forced(row_name);
  wsgemm_gemm_desc d = single_desc(WSGEMM_NO_TRANS, WSGEMM_NO_TRANS, 300, 200, 136);
  d.residual = d.c, d.ld_residual = d.ldc;
  size_t bytes = 0;
  REQUIRE(wsgemm_get_workspace_size(h, &d, &bytes) == WSGEMM_SUCCESS && bytes > 0, "%zu bytes", bytes);
  char *workspace = fake_alloc(FAKE_DEVICE, 0, bytes);
  for (int given = 0; given < 2; given++) {
    if (given) REQUIRE(wsgemm_set_workspace(h, workspace, bytes) == WSGEMM_SUCCESS, "%s", wsgemm_last_error());
    REQUIRE(watched_gemm(h, &d) == WSGEMM_SUCCESS && fake.n_launches == 1 + N_LAUNCHES + 1, "%d launches: %s", fake.n_launches,
            wsgemm_last_error());
    const ws_align_copy_operand *copy = &fake.launch[0].pitch.operand[0];
    const char *memory = given ? workspace : fake.copies[0];
    const int64_t copied = copy->pitch * copy->n_lines * 2;
    CHECK(copy->from == d.c && (const char *)copy->to == memory, "the copy");
    check_memory(&fake.launch[2].slices, memory + copied, (int64_t)bytes - copied);
    CHECK(fake.launch[1 + N_LAUNCHES].args.epilogue.residual == copy->to, "not the copy is added");
  }
  wsgemm_destroy(h);
}

/* Streams have one memory, which each takes when the calls before with it have ended. Captured
 * launches wait for nobody: each has its own. */
CHILD_CASE(shared_memory) {
  (void)unused;
  enum { N_STREAMS = 3, N_TURNS = 4 };
  wsgemm_handle *h = forced(row_name);
  const wsgemm_gemm_desc d = single_desc(WSGEMM_NO_TRANS, WSGEMM_NO_TRANS, 64, 64, 128);
  const ws_slice_state *memory[N_STREAMS] = {NULL};
  CUstream last = NULL;
  for (int turn = 0; turn < N_TURNS * N_STREAMS; turn++) {
    const int which = turn % N_STREAMS;
    CUstream stream = (CUstream)&fake.stream[1 + which];
    REQUIRE(wsgemm_set_stream(h, stream) == WSGEMM_SUCCESS && watched_gemm(h, &d) == WSGEMM_SUCCESS &&
                fake.n_launches == N_LAUNCHES,
            "%s", wsgemm_last_error());
    memory[which] = fake.launch[0].slices.operand[0].state;
    CHECK(memory[which] == memory[0], "turn %d: other memory", turn);
    CHECK(fake.n_waits == (last != NULL), "turn %d: %d waits", turn, fake.n_waits);
    if (fake.n_waits == 1)
      CHECK(fake.wait[0].stream == stream && fake.wait[0].event.stream == last && fake.wait[0].n_launches == 0,
            "turn %d: it waits for something else", turn);
    last = stream;
    fake.n_waits = 0;
    int n_ended = 0;
    for (int e = 0; e < fake.n_events; e++) n_ended += fake.event[e].stream == stream && fake.event[e].n_launches == N_LAUNCHES;
    CHECK(n_ended == 1, "turn %d: the end of the call is recorded %d times", turn, n_ended);
  }
  for (int captured = 0; captured < 2; captured++) {
    fake_begin_capture(4 + captured);
    REQUIRE(wsgemm_set_stream(h, &fake.stream[4 + captured]) == WSGEMM_SUCCESS && watched_gemm(h, &d) == WSGEMM_SUCCESS, "%s",
            wsgemm_last_error());
    CHECK(fake.n_waits == 0 && fake.n_launches == N_LAUNCHES && fake.n_nodes == captured + 1 &&
              (const char *)fake.launch[0].slices.operand[0].state == fake.node[captured].memory,
          "captured launch %d: %d launches", captured, fake.n_launches);
  }
  wsgemm_destroy(h);
}

/* The end of a call could not be recorded: the next ones have the same memory all the same
 * (test_backend_lending.c: how). */
CHILD_CASE(unrecorded) {
  (void)unused;
  wsgemm_handle *h = forced(row_name);
  const wsgemm_gemm_desc d = single_desc(WSGEMM_NO_TRANS, WSGEMM_NO_TRANS, 64, 64, 128);
  static const int streams[] = {1, 2, 3, 1, 2, 1};
  fake_fail(FAKE_cuEventRecord, 1, 1, CUDA_ERROR_OUT_OF_MEMORY);
  for (size_t i = 0; i < sizeof streams / sizeof streams[0]; i++) {
    REQUIRE(wsgemm_set_stream(h, &fake.stream[streams[i]]) == WSGEMM_SUCCESS, "%s", wsgemm_last_error());
    fake_forget();
    CHECK(wsgemm_gemm(h, &d) == WSGEMM_SUCCESS && fake.n_launches == N_LAUNCHES, "call %zu: %d launches: %s", i, fake.n_launches,
          wsgemm_last_error());
    const char *state = (const char *)fake.launch[0].slices.operand[0].state;
    CHECK(state >= fake.copies[0] && state < fake.copies[0] + fake.copies_bytes[0] && fake.n_allocs == (i == 0),
          "call %zu: %d allocations", i, fake.n_allocs);
  }
  wsgemm_destroy(h);
}

/* There is no driver call for a device that has had no product, and none for bad arguments. */
CHILD_CASE(fallback_count) {
  (void)unused;
  int64_t count = 7;
  fake_forget();
  CHECK(wsgemm_get_fallback_count(NULL, 0, &count) == WSGEMM_SUCCESS && count == 0, "before any product: %lld", (long long)count);
  CHECK(wsgemm_get_fallback_count(NULL, -1, &count) == WSGEMM_INVALID_VALUE && strstr(wsgemm_last_error(), "device"),
        "device -1");
  CHECK(wsgemm_get_fallback_count(NULL, 0, NULL) == WSGEMM_INVALID_POINTER, "no place for the count");
  CHECK(fake.n_calls == 0, "the driver was called");
  fake.n_fallback[0] = 77;
  wsgemm_handle *h = forced(row_name);
  const wsgemm_gemm_desc d = single_desc(WSGEMM_NO_TRANS, WSGEMM_NO_TRANS, 64, 64, 128);
  const CUcontext context = fake_current();
  REQUIRE(watched_gemm(h, &d) == WSGEMM_SUCCESS, "%s", wsgemm_last_error());
  CHECK(wsgemm_get_fallback_count(h, 0, &count) == WSGEMM_SUCCESS && count == 77 && fake_current() == context, "%lld: %s",
        (long long)count, wsgemm_last_error());
  wsgemm_destroy(h);
}

static const struct check_case cases[] = {{"launches", launches},
                                          {"complex_numbers", complex_numbers},
                                          {"who_uses_them", who_uses_them},
                                          {"without_code", without_code},
                                          {"chunks", chunks},
                                          {"batches", batches},
                                          {"residual_in_c", residual_in_c},
                                          {"shared_memory", shared_memory},
                                          {"unrecorded", unrecorded},
                                          {"fallback_count", fallback_count}};
CHECK_MAIN("backend_slices", cases)
