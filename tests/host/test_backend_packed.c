/* test_backend_packed.c - packing operands, seen by a fake driver: what is launched and into which
 * memory, what cannot be packed, and that a product refuses a packed form which is not that of its
 * operand. What products launch: test_backend_packed_products.c. Bad arguments that need no GPU:
 * tests/unit/test_packed.c. Bits: tests/gpu/test_gpu_packed.c. */
#define _GNU_SOURCE
#include "core/problem.h"
#include "fake_packed.h"

#include <stdio.h>
#include <string.h>

/* ---- What is launched ------------------------------------------------------------------------ */

/* What is cut: all of it. */
static void check_cut(const ws_slice_operand *op, const struct shape *x) {
  const int64_t unit = x->unit, from_k = x->along_k ? x->k * unit : x->k, from_n = x->along_k ? x->n : x->n * unit;
  CHECK((const char *)op->from == x->data && op->n_x == from_n && op->n_k == from_k && op->ld == x->ld * unit &&
            op->n_batch == x->n_batch && op->stride == x->stride * unit,
        "which floats are cut: %lld x %lld, ld %lld", (long long)op->n_x, (long long)op->n_k, (long long)op->ld);
  CHECK(op->form == (unit == 1      ? WS_SLICE_REALS
                     : x->slot == 0 ? WS_SLICE_COMPLEX_A
                                    : WS_SLICE_COMPLEX_B) &&
            (op->along_k != 0) == x->along_k && (op->conj != 0) == x->conj && op->n_lines == x->n_lines &&
            op->pitch >= x->length && op->scales_pitch >= x->n_given && op->groups_pitch * WS_SLICE_GROUP >= x->n_given &&
            op->maxima_pitch >= op->n_x,
        "into what they are cut");
  CHECK(!op->is_again && !op->is_packed && op->n_chunks >= 1 && (int64_t)op->n_chunks * op->chunk_k >= op->n_k,
        "how they are cut");
}

static void expect_kernel(const fake_launch *l, const char *prefix, int n_slices, char letter) {
  char name[32];
  snprintf(name, sizeof name, "%c%s%d", letter, prefix, n_slices);
  CHECK(strcmp(l->kernel, name) == 0, "%s, not %s", l->kernel, name);
}

/* The launches just made that packed it, and that a product by itself would cut the operand into
 * the same. */
static void check_packing(wsgemm_handle *h, const wsgemm_gemm_desc *d, bool is_b, wsgemm_math math, const struct packing *p) {
  const struct shape x = shape_of(d, is_b);
  const int n_slices = math == WSGEMM_MATH_TF32 ? 1 : 2, n_launches = math == WSGEMM_MATH_TF32 ? 2 : 3;
  const char letter = type_letter(d->type_a);
  struct region regions[REGIONS_OF_OPERAND];
  REQUIRE(fake.n_launches == n_launches, "%d launches", fake.n_launches);
  CHECK(strcmp(fake.launch[0].kernel, FIRST_PASS) == 0, "%s", fake.launch[0].kernel);
  expect_kernel(&fake.launch[1], "slices_", n_slices, letter);
  const ws_slice_args *args = &fake.launch[1].slices;
  CHECK(memcmp(&fake.launch[0].slices, args, sizeof *args) == 0, "the two passes are told different things");
  CHECK(args->n_slices == n_slices && args->operand[1].n_batch == 0, "more than one operand");
  check_cut(&args->operand[0], &x);
  regions_of(&args->operand[0], n_slices, regions);
  check_regions(regions, REGIONS_OF_OPERAND, p->memory, (int64_t)p->bytes);
  if (n_slices == 2) { /* marks what three slices would not do for, and keeps none */
    ws_slice_operand trial = fake.launch[2].slices.operand[0];
    expect_kernel(&fake.launch[2], "slices_", 3, letter);
    CHECK(trial.to == NULL && fake.launch[2].slices.n_slices == 3 && fake.launch[2].slices.operand[1].n_batch == 0,
          "three slices are kept");
    trial.to = args->operand[0].to;
    CHECK(memcmp(&trial, &args->operand[0], sizeof trial) == 0, "the trial is told of another operand");
  }
  REQUIRE(watched_gemm(h, d) == WSGEMM_SUCCESS && fake.n_launches == (n_slices == 2 ? 6 : 4), "%d launches: %s", fake.n_launches,
          wsgemm_last_error());
  const ws_slice_operand *alone = &fake.launch[1].slices.operand[x.slot], *made = &p->made;
  CHECK(alone->form == made->form && alone->conj == made->conj && alone->vectors == made->vectors &&
            alone->n_lines == made->n_lines && alone->pitch == made->pitch && alone->n_chunks == made->n_chunks &&
            alone->chunk_k == made->chunk_k,
        "a product by itself cuts it another way");
  CHECK(fake.launch[1].slices.n_slices == n_slices && (n_slices == 1 || fake.launch[3].slices.n_slices == 3),
        "a product by itself marks it by another rule");
}

CHILD_CASE(prepacked) {
  (void)unused;
  for (int t = 0; t < N_SLICED_TYPES; t++)
    for (int c = 0; c < N_SLICED_MATHS; c++) {
      wsgemm_handle *h = handle_for(sliced_types[t], sliced_maths[c]);
      for (int turn = 0; turn < 2 * n_ops(sliced_types[t]) * 2; turn++) {
        const bool is_b = turn % 2;
        const wsgemm_op op = all_ops[turn / 4];
        const wsgemm_gemm_desc d = desc_of(sliced_types[t], all_layouts[turn / 2 % 2], op, op, 301, 213, 331);
        struct packing p = pack(h, &d, is_b);
        check_packing(h, &d, is_b, sliced_maths[c], &p);
        unpack(&p);
      }
      wsgemm_destroy(h);
    }
}

/* About 4 bytes for each real number, and for a complex operand that the units take as A 16 for
 * each element; half of it for TF32. */
CHILD_CASE(sizes) {
  (void)unused;
  enum { SIDE = 640, K = 512, DIFFERENCE = 20 /* one part in */ };
  for (int t = 0; t < N_SLICED_TYPES; t++)
    for (int turn = 0; turn < 8; turn++) {
      const bool is_b = turn / 2 % 2, is_tf32 = turn / 4;
      const wsgemm_layout layout = all_layouts[turn % 2];
      wsgemm_gemm_desc d = desc_of(sliced_types[t], layout, WSGEMM_NO_TRANS, WSGEMM_NO_TRANS, SIDE, SIDE, K);
      wsgemm_handle *h = forced(NULL);
      size_t bytes = 0, doubled = 0;
      d.math = is_tf32 ? WSGEMM_MATH_TF32 : WSGEMM_MATH_DEFAULT;
      const int slot = shape_of(&d, is_b).slot;
      const size_t each = (size_t)(t == 0 ? 4 : slot == 0 ? 16 : 8) / (is_tf32 ? 2 : 1), least = each * SIDE * K;
      fake_forget();
      CHECK(wsgemm_get_packed_size(h, &d, (wsgemm_operand)is_b, &bytes) == WSGEMM_SUCCESS && bytes >= least &&
                bytes <= least + least / DIFFERENCE,
            "type %c, operand %d, layout %d%s: %zu bytes, not about %zu", type_letter(sliced_types[t]), is_b, (int)layout,
            is_tf32 ? ", TF32" : "", bytes, least);
      CHECK(fake.n_launches == 0, "asking launches");
      d.batch_count = 2, d.stride_a = d.stride_b = 1 << 20;
      CHECK(wsgemm_get_packed_size(h, &d, (wsgemm_operand)is_b, &doubled) == WSGEMM_SUCCESS && doubled > 2 * bytes - bytes / 8 &&
                doubled < 2 * bytes + bytes / 8,
            "two products: %zu bytes, one: %zu", doubled, bytes);
      d.stride_a = d.stride_b = 0;
      CHECK(wsgemm_get_packed_size(h, &d, (wsgemm_operand)is_b, &doubled) == WSGEMM_SUCCESS && doubled == bytes,
            "one operand for two products: %zu bytes, not %zu", doubled, bytes);
      wsgemm_destroy(h);
    }
}

/* What belongs to the other operand, to C and to the epilogue may be anything, and changes
 * nothing. */
CHILD_CASE(not_looked_at) {
  (void)unused;
  wsgemm_handle *h = handle_for(WSGEMM_F32, WSGEMM_MATH_DEFAULT);
  for (int turn = 0; turn < 4; turn++) {
    const bool is_b = turn / 2;
    wsgemm_gemm_desc d = desc_of(WSGEMM_F32, all_layouts[turn % 2], WSGEMM_NO_TRANS, WSGEMM_NO_TRANS, 301, 213, 331);
    struct packing p = pack(h, &d, is_b);
    const ws_slice_args args = fake.launch[1].slices;
    size_t bytes = 0;
    wsgemm_packed *again = NULL;
    *(is_b ? &d.m : &d.n) = -1, *(is_b ? &d.lda : &d.ldb) = 0, *(is_b ? &d.a : &d.b) = NULL;
    *(is_b ? &d.transa : &d.transb) = (wsgemm_op)7, *(is_b ? &d.stride_a : &d.stride_b) = INT64_MIN;
    d.c = &d, d.ldc = 0, d.alpha.s = 0, d.beta.s = 7, d.epilogue = (wsgemm_epilogue)9, d.residual = &d, d.packed_a = p.record;
    CHECK(wsgemm_get_packed_size(h, &d, (wsgemm_operand)is_b, &bytes) == WSGEMM_SUCCESS && bytes == p.bytes,
          "%zu bytes, not %zu: %s", bytes, p.bytes, wsgemm_last_error());
    REQUIRE(watched_prepack(h, &d, is_b, p.memory, p.bytes, &again) == WSGEMM_SUCCESS, "%s", wsgemm_last_error());
    CHECK(memcmp(&fake.launch[1].slices, &args, sizeof args) == 0, "the kernels are told something else");
    CHECK(wsgemm_packed_destroy(again) == WSGEMM_SUCCESS, "%s", wsgemm_last_error());
    unpack(&p);
  }
  wsgemm_destroy(h);
}

/* ---- What cannot be packed ------------------------------------------------------------------- */

static void expect_refusal(wsgemm_handle *h, const wsgemm_gemm_desc *d, bool is_b, void *memory, size_t bytes,
                           wsgemm_status answer, const char *words) {
  wsgemm_packed *packed = (wsgemm_packed *)(void *)h; /* anything */
  const wsgemm_status status = watched_prepack(h, d, is_b, memory, bytes, &packed);
  CHECK(status == answer && strstr(wsgemm_last_error(), words), "%s (%s), not %s (.. %s ..)", wsgemm_status_name(status),
        wsgemm_last_error(), wsgemm_status_name(answer), words);
  CHECK(fake.n_launches == 0, "%s, and %d launches", wsgemm_last_error(), fake.n_launches);
}

static void expect_none(wsgemm_handle *h, const wsgemm_gemm_desc *d, const char *what) {
  for (int is_b = 0; is_b < 2; is_b++) {
    size_t bytes = 77;
    CHECK(wsgemm_get_packed_size(h, d, (wsgemm_operand)is_b, &bytes) == WSGEMM_SUCCESS && bytes == 0, "%s: %zu bytes (%s)", what,
          bytes, wsgemm_last_error());
    expect_refusal(h, d, is_b, next_memory(256), 1 << 20, WSGEMM_NOT_SUPPORTED, "packed form");
  }
}

/* Other types, devices, memory, classes, modes; a short k. */
CHILD_CASE(no_packed_form) {
  (void)unused;
  static float host[4];
  wsgemm_handle *h = forced(NULL);
  const wsgemm_gemm_desc good = desc_of(WSGEMM_F32, WSGEMM_COL_MAJOR, WSGEMM_TRANS, WSGEMM_NO_TRANS, 300, 200, 256);
  struct packing p = pack(h, &good, true);
  unpack(&p);
  wsgemm_gemm_desc d = good;
  static const wsgemm_type types[] = {WSGEMM_F64, WSGEMM_C64, WSGEMM_F16, WSGEMM_BF16};
  for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
    d.type_a = d.type_b = d.type_c = types[i], d.type_scalar = type_of_scalars(types[i]);
    expect_none(h, &d, "another type");
  }
  d = good, d.k = 127;
  expect_none(h, &d, "k = 127");
  d = good, d.k = 128;
  p = pack(h, &d, false), unpack(&p);
  d = good, d.k = 0;
  expect_none(h, &d, "k = 0");
  d = good, d.m = d.n = 0;
  expect_none(h, &d, "nothing to pack");
  d = good, d.batch_count = 0;
  expect_none(h, &d, "no products");
  d = good, d.m = d.n = INT64_C(1) << 30, d.lda = d.ldb = 256;
  expect_none(h, &d, "beyond what tensor maps can say");
  d = good, d.math = WSGEMM_MATH_PEDANTIC;
  expect_none(h, &d, "PEDANTIC");
  d = good, d.a = d.b = host;
  expect_none(h, &d, "host memory");
  d = good, d.a = d.b = fake_alloc(FAKE_PINNED, 0, 4096);
  expect_none(h, &d, "pinned memory");
  d = good, d.a = d.b = device_memory(1);
  expect_none(h, &d, "a device without these units");
  CHECK(wsgemm_set_math(h, WSGEMM_MATH_PEDANTIC) == WSGEMM_SUCCESS, "%s", wsgemm_last_error());
  expect_none(h, &good, "a PEDANTIC handle");
  d = good, d.math = WSGEMM_MATH_TF32;
  p = pack(h, &d, true), unpack(&p);
  CHECK(wsgemm_set_math(h, WSGEMM_MATH_DEFAULT) == WSGEMM_SUCCESS && wsgemm_set_invariant(h, 1) == WSGEMM_SUCCESS, "%s",
        wsgemm_last_error());
  expect_none(h, &good, "invariant mode");
  wsgemm_destroy(h);
}

/* Memory that will not do; launches that fail. */
CHILD_CASE(refused) {
  (void)unused;
  static _Alignas(256) char host[4096];
  wsgemm_handle *h = forced(NULL);
  const wsgemm_gemm_desc d = desc_of(WSGEMM_C32, WSGEMM_COL_MAJOR, WSGEMM_TRANS, WSGEMM_NO_TRANS, 300, 200, 256);
  struct packing p = pack(h, &d, false);
  unpack(&p);
  char words[32];
  snprintf(words, sizeof words, "%zu", p.bytes);
  expect_refusal(h, &d, false, p.memory, p.bytes - 1, WSGEMM_WORKSPACE_TOO_SMALL, words);
  expect_refusal(h, &d, false, p.memory, 0, WSGEMM_WORKSPACE_TOO_SMALL, words);
  expect_refusal(h, &d, false, p.memory + 128, p.bytes, WSGEMM_INVALID_VALUE, "memory");
  expect_refusal(h, &d, false, NULL, p.bytes, WSGEMM_INVALID_POINTER, "memory");
  expect_refusal(h, &d, false, host, p.bytes, WSGEMM_INVALID_POINTER, "memory");
  expect_refusal(h, &d, false, fake_alloc(FAKE_PINNED, 0, p.bytes), p.bytes, WSGEMM_INVALID_POINTER, "memory");
  expect_refusal(h, &d, false, fake_alloc(FAKE_DEVICE, 1, p.bytes), p.bytes, WSGEMM_INVALID_POINTER, "device 0");
  expect_refusal(h, &d, false, fake_alloc(FAKE_MANAGED, 1, p.bytes), p.bytes, WSGEMM_INVALID_POINTER, "device 0");
  for (int launch = 1; launch <= 3; launch++) {
    wsgemm_packed *packed = NULL;
    fake_fail(FAKE_cuLaunchKernelEx, launch, launch, CUDA_ERROR_LAUNCH_FAILED);
    REQUIRE(watched_prepack(h, &d, false, p.memory, p.bytes, &packed) == WSGEMM_DEVICE_ERROR && fake.n_launches == launch - 1,
            "launch %d failed, %d did not: %s", launch, fake.n_launches, wsgemm_last_error());
  }
  fake_fail(FAKE_ANY, 1, 0, CUDA_SUCCESS);
  void *managed = fake_alloc(FAKE_MANAGED, 0, p.bytes);
  wsgemm_packed *packed = NULL;
  CHECK(watched_prepack(h, &d, false, managed, p.bytes, &packed) == WSGEMM_SUCCESS &&
            wsgemm_packed_destroy(packed) == WSGEMM_SUCCESS,
        "managed memory: %s", wsgemm_last_error());
  wsgemm_destroy(h);
}

/* On the handle's stream, also while that is captured, and whichever device is the thread's. */
CHILD_CASE(streams) {
  (void)unused;
  wsgemm_handle *h = handle_for(WSGEMM_F32, WSGEMM_MATH_DEFAULT);
  wsgemm_gemm_desc d = desc_of(WSGEMM_F32, WSGEMM_COL_MAJOR, WSGEMM_NO_TRANS, WSGEMM_NO_TRANS, 300, 200, 256);
  REQUIRE(wsgemm_set_workspace(h, next_memory(4 << 20), 4 << 20) == WSGEMM_SUCCESS, "%s", wsgemm_last_error());
  for (int turn = 0; turn < 4; turn++) {
    fake_stream *stream = &fake.stream[7 + turn];
    stream->capture = turn % 2 ? CU_STREAM_CAPTURE_STATUS_ACTIVE : CU_STREAM_CAPTURE_STATUS_NONE;
    fake_set_current(turn / 2 ? fake_primary(1) : NULL);
    CHECK(wsgemm_set_stream(h, stream) == WSGEMM_SUCCESS, "%s", wsgemm_last_error());
    struct packing p = pack(h, &d, true);
    for (int i = 0; i < fake.n_launches; i++)
      CHECK(fake.launch[i].stream == (CUstream)(void *)stream && fake.launch[i].device == 0, "launch %d goes elsewhere", i);
    d.packed_b = p.record;
    REQUIRE(watched_gemm(h, &d) == WSGEMM_SUCCESS && fake.n_launches == 6 && fake.launch[0].slices.operand[1].is_packed,
            "%d launches: %s", fake.n_launches, wsgemm_last_error());
    d.packed_b = NULL;
    unpack(&p);
    stream->capture = CU_STREAM_CAPTURE_STATUS_NONE;
  }
  wsgemm_destroy(h);
}

/* Some call to the driver, at which the handle becomes another class's, or invariant. */
static wsgemm_handle *handle_to_change;
static bool makes_invariant;
static int n_calls_before; /* negative: it has happened */
static void change_handle(fake_function function) {
  (void)function;
  if (n_calls_before-- > 0) return;
  if (makes_invariant)
    wsgemm_set_invariant(handle_to_change, 1);
  else
    wsgemm_set_math(handle_to_change, WSGEMM_MATH_DEFAULT);
}

/* For one slice; whether it was packed, and then so. */
static bool is_packed_meanwhile(const wsgemm_gemm_desc *d, char *memory, size_t bytes, int call) {
  wsgemm_handle *h = handle_for(WSGEMM_F32, WSGEMM_MATH_TF32);
  struct packing p = {0};
  struct region regions[REGIONS_OF_OPERAND];
  handle_to_change = h, n_calls_before = call, fake.before_call = change_handle;
  const wsgemm_status status = watched_prepack(h, d, true, memory, bytes, &p.record);
  fake.before_call = NULL;
  CHECK(status == WSGEMM_SUCCESS || status == (makes_invariant ? WSGEMM_NOT_SUPPORTED : WSGEMM_WORKSPACE_TOO_SMALL),
        "call %d: %s", call, wsgemm_last_error());
  CHECK(wsgemm_destroy(h) == WSGEMM_SUCCESS, "destroy");
  if (status) return false;
  const ws_slice_args *args = &fake.launch[1].slices;
  CHECK(fake.n_launches == 2 && strcmp(fake.launch[1].kernel, "sslices_1") == 0, "call %d: %s is launched", call,
        fake.launch[1].kernel);
  regions_of(&args->operand[0], args->n_slices, regions);
  check_regions(regions, REGIONS_OF_OPERAND, memory, (int64_t)bytes);
  unpack(&p);
  return true;
}

/* Another thread may do that at any time: what is packed is what there was room for. */
CHILD_CASE(one_look_at_the_handle) {
  (void)unused;
  wsgemm_handle *h = handle_for(WSGEMM_F32, WSGEMM_MATH_TF32);
  const wsgemm_gemm_desc d = desc_of(WSGEMM_F32, WSGEMM_COL_MAJOR, WSGEMM_NO_TRANS, WSGEMM_NO_TRANS, 300, 200, 256);
  size_t bytes = 0;
  REQUIRE(wsgemm_get_packed_size(h, &d, WSGEMM_OPERAND_B, &bytes) == WSGEMM_SUCCESS, "%s", wsgemm_last_error());
  char *memory = next_memory(bytes);
  for (int turn = 0; turn < 2; turn++) {
    int n_packed = 0, call = 0;
    makes_invariant = turn;
    do n_packed += is_packed_meanwhile(&d, memory, bytes, call++);
    while (n_calls_before < 0);
    CHECK(n_packed > 1, "packed %d times", n_packed);
  }
  wsgemm_destroy(h);
}

/* ---- Not the packed operand ------------------------------------------------------------------ */

static void expect_mismatch(wsgemm_handle *h, const wsgemm_gemm_desc *d, bool is_b, const char *words, const char *what) {
  const char *const name = is_b ? "packed_b" : "packed_a";
  size_t bytes = 77;
  char text[512];
  fake_forget();
  const wsgemm_status status = wsgemm_gemm(h, d);
  CHECK(status == WSGEMM_INVALID_VALUE && strstr(wsgemm_last_error(), name) && strstr(wsgemm_last_error(), words),
        "%s: %s (%s), not of %s and its %s", what, wsgemm_status_name(status), wsgemm_last_error(), name, words);
  CHECK(wsgemm_get_workspace_size(h, d, &bytes) == WSGEMM_INVALID_VALUE && strstr(wsgemm_last_error(), name), "%s: %s", what,
        wsgemm_last_error());
  wsgemm_explain(h, d, text, sizeof text);
  CHECK(strncmp(text, "error: ", 7) == 0 && strstr(text, name), "%s is explained as %s", what, text);
  CHECK(fake.n_launches == 0, "%s: %d launches", what, fake.n_launches);
}

/* In every layout; the words are the caller's, whose m and n are swapped in a row-major problem. */
CHILD_CASE(mismatches) {
  (void)unused;
  for (int turn = 0; turn < 8; turn++) {
    const bool is_b = turn % 2;
    const wsgemm_type type = sliced_types[turn / 4];
    wsgemm_handle *h = handle_for(type, WSGEMM_MATH_DEFAULT);
    wsgemm_gemm_desc good = desc_of(type, all_layouts[turn / 2 % 2], WSGEMM_NO_TRANS, WSGEMM_NO_TRANS, 300, 200, 256);
    good.lda = good.ldb = good.ldc = 400;
    struct packing p = pack(h, &good, is_b);
    good.packed_a = is_b ? NULL : p.record, good.packed_b = is_b ? p.record : NULL;
    const char **data = (const char **)(void *)(is_b ? &good.b : &good.a);
    wsgemm_gemm_desc d = good;
    *(is_b ? &d.b : &d.a) = *data + 16;
    expect_mismatch(h, &d, is_b, "data is", "another pointer");
    d = good, *(is_b ? &d.ldb : &d.lda) = 401;
    expect_mismatch(h, &d, is_b, "ld is 400, not 401", "another ld");
    d = good, d.k = 255;
    expect_mismatch(h, &d, is_b, "k is 256, not 255", "another k");
    d = good, *(is_b ? &d.n : &d.m) -= 1;
    expect_mismatch(h, &d, is_b, is_b ? "its n is 200, not 199" : "its m is 300, not 299", "another size");
    d = good, *(is_b ? &d.transb : &d.transa) = WSGEMM_TRANS;
    expect_mismatch(h, &d, is_b, "transposition", "another op");
    d = good, *(is_b ? &d.transb : &d.transa) = WSGEMM_CONJ_NO_TRANS;
    if (type == WSGEMM_C32)
      expect_mismatch(h, &d, is_b, "conjugation", "another op");
    else
      CHECK(watched_gemm(h, &d) == WSGEMM_SUCCESS, "conj of real numbers is nothing: %s", wsgemm_last_error());
    d = good, d.layout = good.layout == WSGEMM_COL_MAJOR ? WSGEMM_ROW_MAJOR : WSGEMM_COL_MAJOR;
    expect_mismatch(h, &d, is_b, "its ", "another layout");
    d = good, d.type_a = d.type_b = d.type_c = d.type_scalar = type == WSGEMM_C32 ? WSGEMM_F32 : WSGEMM_C32;
    expect_mismatch(h, &d, is_b, "type is", "another type");
    d.type_a = d.type_b = d.type_c = d.type_scalar = WSGEMM_F64;
    expect_mismatch(h, &d, is_b, "type is", "another type");
    d = good, d.batch_count = 2, d.stride_a = d.stride_b = d.stride_c = 200000;
    expect_mismatch(h, &d, is_b, "number of products is 1, not 2", "a batch");
    d = good, *(is_b ? &d.n : &d.m) = 0;
    expect_mismatch(h, &d, is_b, "its ", "nothing to do");
    d = good, d.packed_a = good.packed_b, d.packed_b = good.packed_a;
    expect_mismatch(h, &d, !is_b, "its ", "the other operand");
    REQUIRE(watched_gemm(h, &good) == WSGEMM_SUCCESS && fake.n_launches == 6, "the right one: %s", wsgemm_last_error());
    d = good, *(is_b ? &d.m : &d.n) = 0;
    REQUIRE(watched_gemm(h, &d) == WSGEMM_SUCCESS && fake.n_launches == 0, "nothing to do: %s", wsgemm_last_error());
    d = good, d.alpha = scalar_make(type, 0, 0);
    REQUIRE(watched_gemm(h, &d) == WSGEMM_SUCCESS && fake.n_launches == 1, "alpha = 0: %s", wsgemm_last_error());
    unpack(&p);
    wsgemm_destroy(h);
  }
}

/* Of a batch; and of a complex product, whose A and B have other forms. */
CHILD_CASE(mismatched_batches_and_sides) {
  (void)unused;
  for (int turn = 0; turn < 4; turn++) {
    const wsgemm_layout layout = all_layouts[turn % 2];
    const bool is_b = turn / 2;
    wsgemm_handle *h = handle_for(WSGEMM_C32, WSGEMM_MATH_DEFAULT);
    wsgemm_gemm_desc good = batch_of(WSGEMM_C32, layout, WSGEMM_NO_TRANS, 20000, 20000), d;
    struct packing p = pack(h, &good, is_b);
    *(is_b ? &good.packed_b : &good.packed_a) = p.record;
    d = good, d.batch_count = 4;
    expect_mismatch(h, &d, is_b, "number of products is 5, not 4", "fewer products");
    d = good, *(is_b ? &d.stride_b : &d.stride_a) = 20001;
    expect_mismatch(h, &d, is_b, "stride is 20000, not 20001", "another stride");
    d = good, *(is_b ? &d.stride_b : &d.stride_a) = 0;
    expect_mismatch(h, &d, is_b, "number of products is 5, not 1", "a shared one");
    CHECK(watched_gemm(h, &good) == WSGEMM_SUCCESS, "the right one: %s", wsgemm_last_error());
    unpack(&p);
    wsgemm_gemm_desc square = desc_of(WSGEMM_C32, layout, WSGEMM_TRANS, WSGEMM_NO_TRANS, 300, 300, 300);
    square.b = square.a, square.ldb = square.lda;
    p = pack(h, &square, is_b);
    *(is_b ? &square.packed_a : &square.packed_b) = p.record;
    expect_mismatch(h, &square, !is_b, "side", "the other side");
    unpack(&p);
    wsgemm_destroy(h);
  }
}

/* Records that are destroyed, or that something else has overwritten. */
CHILD_CASE(no_records) {
  (void)unused;
  wsgemm_handle *h = handle_for(WSGEMM_F32, WSGEMM_MATH_DEFAULT);
  wsgemm_gemm_desc d = desc_of(WSGEMM_F32, WSGEMM_COL_MAJOR, WSGEMM_NO_TRANS, WSGEMM_NO_TRANS, 300, 200, 256);
  struct packing p = pack(h, &d, true);
  struct wsgemm_packed copy = *p.record;
  d.packed_b = &copy;
  CHECK(watched_gemm(h, &d) == WSGEMM_SUCCESS, "a copy of a record is as good: %s", wsgemm_last_error());
  copy.magic ^= 1;
  expect_mismatch(h, &d, true, "wsgemm_prepack", "an overwritten record");
  CHECK(wsgemm_packed_destroy(&copy) == WSGEMM_INVALID_POINTER, "an overwritten record is destroyed");
  unpack(&p);
  d.packed_b = p.record;
  expect_mismatch(h, &d, true, "wsgemm_prepack", "a destroyed record");
  CHECK(wsgemm_packed_destroy(p.record) == WSGEMM_INVALID_POINTER, "a record is destroyed twice");
  wsgemm_destroy(h);
}

static const struct check_case cases[] = {{"prepacked", prepacked},
                                          {"sizes", sizes},
                                          {"not_looked_at", not_looked_at},
                                          {"no_packed_form", no_packed_form},
                                          {"refused", refused},
                                          {"streams", streams},
                                          {"one_look_at_the_handle", one_look_at_the_handle},
                                          {"mismatches", mismatches},
                                          {"mismatched_batches_and_sides", mismatched_batches_and_sides},
                                          {"no_records", no_records}};
CHECK_MAIN("backend_packed", cases)
