/* test_backend_host.c - what a call on device memory tells the driver, seen by a fake one: which
 * device and context, which stream, what the kernel is told of its operands, and when there is
 * nothing to launch. Schedulers and queues: test_backend_sched.c. */
#include "fake_calls.h"

#include <stdio.h>
#include <string.h>

/* ---- pointers decide ------------------------------------------------------------------------- */

CHILD_CASE(all_on_one_device) {
  (void)unused;
  for (int type = 0; type < N_TYPES; type++)
    for (int device = 1; device >= 0; device--)
      for (int layout = 0; layout < 2; layout++) {
        wsgemm_gemm_desc d = device_desc((wsgemm_type)type, 20, 30, 10, device);
        d.layout = all_layouts[layout];
        d.lda = d.ldb = d.ldc = 30;
        d.a = (const char *)d.a + 4096; /* inside an allocation */
        const fake_launch *l = launch_of(NULL, &d);
        CHECK(l->device == device && l->context == fake_primary(device), "launched on device %d", l->device);
        CHECK(row_of(l) && row_of(l)->type == (wsgemm_type)type, "kernel %s", l->kernel);
      }
  expect_cpu_works("beside device memory");
}

/* Every mix of host, pinned, managed and device memory for A, B and C. */
CHILD_CASE(mixes_of_memory) {
  (void)unused;
  enum { HOST, PINNED, MANAGED, DEVICE, N_KINDS };
  static float host[3][64];
  char *pinned = fake_alloc(FAKE_PINNED, 0, 1 << 20), *managed = fake_alloc(FAKE_MANAGED, 0, 1 << 20);
  REQUIRE(pinned && managed, "memory");
  for (int mix = 0; mix < N_KINDS * N_KINDS * N_KINDS; mix++) {
    const int kind[3] = {mix % N_KINDS, mix / N_KINDS % N_KINDS, mix / N_KINDS / N_KINDS};
    wsgemm_gemm_desc d = device_desc(WSGEMM_F32, 8, 8, 8, 0);
    void *pointer[3];
    int n_of[N_KINDS] = {0};
    for (int i = 0; i < 3; i++) {
      void *places[N_KINDS] = {host[i], pinned + i * 4096, managed + i * 4096, (char *)device_memory(0) + i * 4096};
      pointer[i] = places[kind[i]];
      n_of[kind[i]]++;
    }
    d.a = pointer[0], d.b = pointer[1], d.c = pointer[2];
    const bool has_host = n_of[HOST] + n_of[PINNED] > 0;
    if (has_host && n_of[DEVICE] > 0) {
      expect_failure(NULL, &d, WSGEMM_INVALID_POINTER, "host memory");
    } else {
      CHECK(watched_gemm(NULL, &d) == WSGEMM_SUCCESS, "mix %d: %s", mix, wsgemm_last_error());
      CHECK(fake.n_launches == !has_host, "mix %d: %d launches", mix, fake.n_launches);
    }
    CHECK(explained_is(NULL, &d, "backend", has_host ? "cpu" : "cuda") == !(has_host && n_of[DEVICE] > 0), "mix %d", mix);
  }
}

CHILD_CASE(two_devices) {
  (void)unused;
  for (int on_other = 1; on_other < 7; on_other++) {
    const wsgemm_gemm_desc other = device_desc(WSGEMM_F64, 8, 8, 8, 1);
    wsgemm_gemm_desc d = device_desc(WSGEMM_F64, 8, 8, 8, 0);
    if (on_other & 1) d.a = other.a;
    if (on_other & 2) d.b = other.b;
    if (on_other & 4) d.c = other.c;
    expect_failure(NULL, &d, WSGEMM_INVALID_POINTER, "different devices");
  }
  /* managed memory goes where the others are, wherever it was allocated, and whichever comes
   * first */
  for (int position = 0; position < 3; position++) {
    wsgemm_gemm_desc d = device_desc(WSGEMM_F64, 8, 8, 8, 1);
    void *managed = fake_alloc(FAKE_MANAGED, 0, 4096);
    if (position == 0) d.a = managed;
    if (position == 1) d.b = managed;
    if (position == 2) d.c = managed;
    CHECK(launch_of(NULL, &d)->device == 1, "managed memory in position %d", position);
  }
}

/* What is not read does not count: alpha = 0 or k = 0. */
CHILD_CASE(unread_operands) {
  (void)unused;
  static double host[64];
  for (int by_k = 0; by_k < 2; by_k++)
    for (int operands = 0; operands < 3; operands++) {
      wsgemm_gemm_desc d = device_desc(WSGEMM_F64, 8, 8, by_k ? 0 : 8, 0);
      const wsgemm_gemm_desc other = device_desc(WSGEMM_F64, 8, 8, 8, 1);
      const void *unread[3] = {NULL, host, other.a};
      d.alpha = scalar_make(WSGEMM_F64, by_k, 0);
      d.a = d.b = unread[operands];
      CHECK(launch_of(NULL, &d)->device == 0, "unread operands");
      d.c = host;
      CHECK(watched_gemm(NULL, &d) == WSGEMM_SUCCESS && fake.n_launches == 0, "C in host memory: %s", wsgemm_last_error());
    }
}

/* Sizes alone: the device that is the thread's, if any; else nothing says that it is a GPU's
 * call. */
CHILD_CASE(no_pointers) {
  (void)unused;
  const int current[] = {-1, 0, 1};
  char expected[1024], text[1024];
  for (size_t i = 0; i < sizeof current / sizeof current[0]; i++) {
    const int device = current[i];
    size_t bytes = 7, expected_bytes = 0;
    wsgemm_gemm_desc d = device_desc(WSGEMM_F64, 64, 64, 8192, device < 0 ? 0 : device);
    fake_set_current(device < 0 ? NULL : fake_primary(device));
    wsgemm_explain(NULL, &d, expected, sizeof expected);
    CHECK(wsgemm_get_workspace_size(NULL, &d, &expected_bytes) == WSGEMM_SUCCESS && expected_bytes > 0, "%s",
          wsgemm_last_error());
    d.a = d.b = d.c = NULL;
    wsgemm_explain(NULL, &d, text, sizeof text);
    CHECK(device < 0 ? strstr(text, "backend: cpu") != NULL : strcmp(text, expected) == 0, "device %d: %s", device, text);
    CHECK(wsgemm_get_workspace_size(NULL, &d, &bytes) == WSGEMM_SUCCESS && bytes == (device < 0 ? 0 : expected_bytes),
          "device %d: %zu bytes: %s", device, bytes, wsgemm_last_error());
  }
  fake_set_current(NULL);
}

/* ---- contexts and streams -------------------------------------------------------------------- */

/* Whatever is current stays current (watched_gemm looks); a context of the device's own is used as
 * it is. */
CHILD_CASE(contexts) {
  (void)unused;
  const CUcontext before[] = {NULL, fake_primary(0), fake_other(0), fake_primary(1), fake_other(1)};
  for (size_t i = 0; i < sizeof before / sizeof before[0]; i++)
    for (int k = 0; k < 2; k++) { /* the kernel, and the scaling */
      const wsgemm_gemm_desc d = device_desc(WSGEMM_F32, 65, 40, k, 0);
      fake_set_current(before[i]);
      const fake_launch *l = launch_of(NULL, &d);
      CHECK(l->device == 0 && l->context == (i == 2 ? fake_other(0) : fake_primary(0)), "context %zu", i);
      char text[512];
      wsgemm_explain(NULL, &d, text, sizeof text);
      CHECK(fake_current() == before[i] && fake_depth() == (before[i] != NULL), "wsgemm_explain left another context");
      fake_fail(FAKE_cuLaunchKernelEx, 1, 1, CUDA_ERROR_LAUNCH_FAILED);
      expect_failure(NULL, &d, WSGEMM_DEVICE_ERROR, "CUDA_ERROR_LAUNCH_FAILED");
      fake_fail(FAKE_ANY, 0, 0, CUDA_SUCCESS);
    }
}

CHILD_CASE(streams) {
  (void)unused;
  for (int policy = WSGEMM_POLICY_AUTO; policy < WS_N_POLICIES; policy++)
    for (int k = 0; k < 2; k++) {
      wsgemm_handle *one = handle_of_row(&gpu_rows[0]), *two = handle_of_row(&gpu_rows[0]);
      const wsgemm_gemm_desc d = device_desc(WSGEMM_F32, 65, 40, k, 0);
      wsgemm_set_policy(one, (wsgemm_policy)policy);
      CHECK(launch_of(one, &d)->stream == NULL, "a new handle's stream is not the default one");
      CHECK(wsgemm_set_stream(one, &fake.stream[3]) == WSGEMM_SUCCESS, "set_stream");
      CHECK(wsgemm_set_stream(two, &fake.stream[4]) == WSGEMM_SUCCESS, "set_stream");
      CHECK(launch_of(one, &d)->stream == (CUstream)&fake.stream[3], "another stream than the handle's");
      CHECK(launch_of(two, &d)->stream == (CUstream)&fake.stream[4], "another stream than the handle's");
      CHECK(launch_of(NULL, &d)->stream == NULL, "another stream than the default handle's");
      CHECK(wsgemm_set_stream(one, NULL) == WSGEMM_SUCCESS && launch_of(one, &d)->stream == NULL, "back to the default stream");
      wsgemm_destroy(one), wsgemm_destroy(two);
    }
}

/* ---- what the kernel is told ----------------------------------------------------------------- */

static double scalar_part(wsgemm_type type, const float *s, const double *d, int part) {
  return type_is_double(type) ? d[part] : (double)s[part];
}

/* Every type, layout and op: each operand's steps, conjugation and widest copy; row-major is the
 * transposed problem. */
CHILD_CASE(operands) {
  (void)unused;
  for (int type = 0; type < N_TYPES; type++)
    for (int layout = 0; layout < 2; layout++)
      for (int op_a = 0; op_a < n_ops((wsgemm_type)type); op_a++)
        for (int op_b = 0; op_b < n_ops((wsgemm_type)type); op_b++) {
          const bool is_complex = type_is_complex((wsgemm_type)type);
          wsgemm_gemm_desc d = device_desc((wsgemm_type)type, 40, 24, 16, 0);
          d.layout = all_layouts[layout], d.transa = all_ops[op_a], d.transb = all_ops[op_b];
          d.lda = 48, d.ldb = 64, d.ldc = 80;
          d.alpha = scalar_make((wsgemm_type)type, 1.5, 0.5), d.beta = scalar_make((wsgemm_type)type, -2, 0.25);
          const ws_gemm_args *args = &launch_of(NULL, &d)->args;
          const bool transposed = d.layout == WSGEMM_ROW_MAJOR;
          const ws_operand *a = transposed ? &args->b : &args->a, *b = transposed ? &args->a : &args->b;
          const bool a_by_k = (op_a == 1 || op_a == 2) != transposed, b_by_k = (op_b == 1 || op_b == 2) == transposed;
          char text[DESCRIPTION_BYTES];
          gemm_describe(&d, text);
          CHECK(args->m == (transposed ? 24 : 40) && args->n == (transposed ? 40 : 24) && args->k == 16 && args->c == d.c &&
                    args->ldc == 80,
                "%s", text);
          CHECK(a->data == d.a && b->data == d.b, "%s: operands", text);
          CHECK(a->step_k == (a_by_k ? 1 : 48) && a->step_mn == (a_by_k ? 48 : 1), "%s: steps of A", text);
          CHECK(b->step_k == (b_by_k ? 1 : 64) && b->step_mn == (b_by_k ? 64 : 1), "%s: steps of B", text);
          CHECK(a->mode == (a_by_k ? WS_COPY_VECTORS_K : WS_COPY_VECTORS_MN), "%s: copy mode of A: %d", text, a->mode);
          CHECK(b->mode == (b_by_k ? WS_COPY_VECTORS_K : WS_COPY_VECTORS_MN), "%s: copy mode of B: %d", text, b->mode);
          CHECK(a->conj == (is_complex && op_a >= 2) && b->conj == (is_complex && op_b >= 2), "%s: conjugation", text);
          CHECK(a->whole_elements && b->whole_elements && args->c_vectors && !args->beta_zero, "%s: flags", text);
          for (int part = 0; part < 2; part++) {
            const double alpha = part == 0 ? 1.5 : is_complex ? 0.5 : 0, beta = part == 0 ? -2 : is_complex ? 0.25 : 0;
            CHECK(scalar_part((wsgemm_type)type, args->alpha.s, args->alpha.d, part) == alpha &&
                      scalar_part((wsgemm_type)type, args->beta.s, args->beta.d, part) == beta,
                  "%s: alpha or beta", text);
          }
        }
}

/* Pointers, lds and strides that forbid copies of 16 bytes, or of a whole element; one at a time,
 * all else as good as can be. */
CHILD_CASE(alignment) {
  (void)unused;
  enum { PLAIN, POINTER, LD, STRIDE, REAL_PART, N_FLAWS };
  for (int type = 0; type < N_TYPES; type++)
    for (int operand = 0; operand < 3; operand++)
      for (int by_k = 0; by_k < 2; by_k++) /* else m, n contiguous in both operands */
        for (int flaw = PLAIN; flaw < N_FLAWS; flaw++) {
          const int bytes = (int)type_bytes((wsgemm_type)type);
          wsgemm_gemm_desc d = device_desc((wsgemm_type)type, 64, 64, 64, 0);
          if (by_k)
            d.transa = WSGEMM_TRANS;
          else
            d.transb = WSGEMM_TRANS;
          d.batch_count = 2, d.stride_a = d.stride_b = d.stride_c = 64 * 80;
          d.lda = d.ldb = d.ldc = 80;
          const char *pointer[3] = {d.a, d.b, d.c};
          if (flaw == POINTER) pointer[operand] += bytes;
          if (flaw == REAL_PART) pointer[operand] += type_is_single((wsgemm_type)type) ? 4 : 8;
          d.a = pointer[0], d.b = pointer[1], d.c = (void *)(uintptr_t)pointer[2];
          if (flaw == LD) *(operand == 0 ? &d.lda : operand == 1 ? &d.ldb : &d.ldc) += 1;
          if (flaw == STRIDE) *(operand == 0 ? &d.stride_a : operand == 1 ? &d.stride_b : &d.stride_c) += 1;
          const ws_gemm_args *args = &launch_of(NULL, &d)->args;
          const bool is_flawed = flaw == REAL_PART || (flaw != PLAIN && bytes < 16);
          const bool is_split = flaw == REAL_PART && type_is_complex((wsgemm_type)type);
          const ws_operand *ab[2] = {&args->a, &args->b};
          for (int i = 0; i < 2; i++) {
            const bool is_it = i == operand;
            CHECK(ab[i]->mode == (is_it && is_flawed ? by_k ? WS_COPY_ALONG_K : WS_COPY_ALONG_MN
                                  : by_k             ? WS_COPY_VECTORS_K
                                                     : WS_COPY_VECTORS_MN),
                  "%c, operand %d, flaw %d: mode %d of %d", type_letter((wsgemm_type)type), operand, flaw, ab[i]->mode, i);
            CHECK(!ab[i]->whole_elements == (is_it && is_split), "%c, operand %d, flaw %d: whole elements of %d",
                  type_letter((wsgemm_type)type), operand, flaw, i);
            CHECK(!ab[i]->pairs == (is_it && is_flawed && bytes == 2 && flaw != REAL_PART),
                  "%c, operand %d, flaw %d: pairs of %d", type_letter((wsgemm_type)type), operand, flaw, i);
          }
          CHECK(!args->c_vectors == (operand == 2 && is_flawed), "%c, operand %d, flaw %d: vectors of C",
                type_letter((wsgemm_type)type), operand, flaw);
        }
}

CHILD_CASE(batches) {
  (void)unused;
  for (int layout = 0; layout < 2; layout++) {
    wsgemm_handle *h = handle_of_row(gpu_row_with(WSGEMM_F64, 32, 32, 1));
    wsgemm_gemm_desc d = device_desc(WSGEMM_F64, 33, 65, 7, 0);
    d.layout = all_layouts[layout];
    d.lda = d.ldb = d.ldc = 100;
    d.batch_count = 11, d.stride_a = 5000, d.stride_b = 0, d.stride_c = -7000;
    wsgemm_set_policy(h, WSGEMM_POLICY_FIXED_WORK);
    const fake_launch *l = launch_of(h, &d);
    CHECK(l->args.grid.n_batch == 11 && l->args.sched.n_items == 11 * 2 * 3 && l->grid[0] == 11 * 2 * 3, "items: %u",
          l->args.sched.n_items);
    CHECK(l->args.a.stride == (layout ? 0 : 5000) && l->args.b.stride == (layout ? 5000 : 0) && l->args.stride_c == -7000,
          "strides");
    wsgemm_destroy(h);
  }
}

/* ---- little or nothing to launch ------------------------------------------------------------- */

CHILD_CASE(quick_paths) {
  (void)unused;
  for (int type = 0; type < N_TYPES; type++)
    for (int by_k = 0; by_k < 2; by_k++) {
      const char name[] = {type_letter((wsgemm_type)type), 's', 'c', 'a', 'l', 'e', '\0'};
      wsgemm_gemm_desc d = device_desc((wsgemm_type)type, 50, 40, by_k ? 0 : 8, 1);
      d.alpha = scalar_make((wsgemm_type)type, by_k, 0);
      d.a = d.b = NULL;
      d.ldc = 60, d.batch_count = 3, d.stride_c = 9000;
      d.beta = scalar_make((wsgemm_type)type, 1, 0);
      CHECK(watched_gemm(NULL, &d) == WSGEMM_SUCCESS && fake.n_launches == 0, "beta = 1: %d launches", fake.n_launches);
      for (int beta = 0; beta < 2; beta++) {
        d.beta = scalar_make((wsgemm_type)type, beta ? -3 : 0, 0);
        const fake_launch *l = launch_of(NULL, &d);
        CHECK(strcmp(l->kernel, name) == 0, "kernel %s, not %s", l->kernel, name);
        CHECK(l->device == 1 && l->args.c == d.c && l->args.m == 50 && l->args.n == 40 && l->args.ldc == 60 &&
                  l->args.stride_c == 9000 && l->args.grid.n_batch == 3 && l->args.beta_zero == !beta &&
                  scalar_part((wsgemm_type)type, l->args.beta.s, l->args.beta.d, 0) == (beta ? -3 : 0),
              "arguments of %s", name);
        CHECK(l->grid[0] >= 1 && l->grid[0] <= 50 * 40 * 3 / 256 + 1 && l->block[0] == 256, "%u blocks for 6000 elements",
              l->grid[0]);
      }
      d.m = d.lda = d.ldc = 1 << 20; /* no more blocks than do the device good */
      CHECK(launch_of(NULL, &d)->grid[0] == 131 * 8, "%u blocks for a large C", fake.launch[0].grid[0]);
    }
  /* m = 0, n = 0, no products: nobody is asked anything */
  for (int zero = 0; zero < 3; zero++) {
    wsgemm_gemm_desc d = device_desc(WSGEMM_F32, 8, 8, 8, 0);
    *(zero == 0 ? &d.m : zero == 1 ? &d.n : &d.batch_count) = 0;
    CHECK(watched_gemm(NULL, &d) == WSGEMM_SUCCESS && fake.n_calls == 0, "nothing to do: %d driver calls", fake.n_calls);
  }
}

/* A and B of 16 bits: C of either such type or of floats, aligned and scaled by its own type;
 * vectors (m = 1, n = 1) by their own rows if the matrix has k contiguous, else by the ordinary
 * ones. */
CHILD_CASE(half_precision) {
  (void)unused;
  static const wsgemm_type types[] = {WSGEMM_F16, WSGEMM_BF16}, types_c[] = {WSGEMM_F16, WSGEMM_BF16, WSGEMM_F32};
  static const int told[] = {WS_HALF_C_F16, WS_HALF_C_BF16, WS_HALF_C_F32};
  for (int t = 0; t < 2; t++)
    for (int to = 0; to < 3; to++) {
      const char letter = type_letter(types[t]);
      wsgemm_gemm_desc d = device_desc(types[t], 20, 30, 40, 0);
      d.type_c = types_c[to], d.alpha = scalar_make(types[t], 1.5, 0), d.beta = scalar_make(types[t], -2, 0);
      for (int shift = 0; shift < 16; shift += 2) { /* from 16 bytes' alignment on */
        wsgemm_gemm_desc shifted = d;
        shifted.a = (const char *)d.a + shift, shifted.c = (char *)d.c + (shift & ~((int)type_bytes(types_c[to]) - 1));
        shifted.lda = shifted.ldb = shifted.ldc = 48;
        const fake_launch *l = launch_of(NULL, &shifted);
        CHECK(row_of(l)->type == types[t] && l->args.type_c == told[to] && l->args.alpha.s[0] == 1.5F && l->args.beta.s[0] == -2,
              "%c to %c: %s, C of kind %d", letter, type_letter(types_c[to]), l->kernel, l->args.type_c);
        CHECK(l->args.a.mode == (shift ? WS_COPY_ALONG_MN : WS_COPY_VECTORS_MN) && l->args.a.pairs == (shift % 4 == 0) &&
                  l->args.b.mode == WS_COPY_VECTORS_K && l->args.b.pairs,
              "shifted by %d: modes %d and %d, pairs %d and %d", shift, l->args.a.mode, l->args.b.mode, l->args.a.pairs,
              l->args.b.pairs);
        CHECK(l->args.c_vectors == ((uintptr_t)shifted.c % 16 == 0), "C at %zu: vectors", (size_t)((uintptr_t)shifted.c % 16));
      }
      for (int odd = 0; odd < 6; odd++) { /* an ld or a stride of A, of B, of C that is odd */
        wsgemm_gemm_desc other = d;
        other.batch_count = 2, other.lda = other.ldb = other.ldc = 48, other.stride_a = other.stride_b = other.stride_c = 48 * 48;
        *(odd == 0   ? &other.lda
          : odd == 1 ? &other.ldb
          : odd == 2 ? &other.ldc
          : odd == 3 ? &other.stride_a
          : odd == 4 ? &other.stride_b
                     : &other.stride_c) += 1;
        const ws_gemm_args *args = &launch_of(NULL, &other)->args;
        CHECK(!args->a.pairs == (odd % 3 == 0) && !args->b.pairs == (odd % 3 == 1) && !args->c_vectors == (odd % 3 == 2),
              "%d is odd: pairs %d and %d, vectors of C %d", odd, args->a.pairs, args->b.pairs, args->c_vectors);
      }
      for (int side = 0; side < 2; side++) {
        wsgemm_gemm_desc thin = device_desc(types[t], side ? 1 : 900, side ? 900 : 1, 100, 0);
        thin.type_c = types_c[to];
        const fake_launch *l = launch_of(NULL, &thin);
        CHECK(row_of(l)->type == types[t] && (row_of(l)->kind == WS_ROW_VECTOR) == (side == 1), "m = 1 or n = 1: %s", l->kernel);
      }
      d.k = 0;
      const char name[] = {type_letter(types_c[to]), 's', 'c', 'a', 'l', 'e', '\0'};
      const fake_launch *l = launch_of(NULL, &d);
      CHECK(strcmp(l->kernel, name) == 0 && l->args.type_c == told[to] && l->args.beta.s[0] == -2, "kernel %s, not %s", l->kernel,
            name);
    }
  const wsgemm_gemm_desc d = device_desc(WSGEMM_BF16, 20, 30, 40, 0);
  char text[1024];
  wsgemm_explain(NULL, &d, text, sizeof text);
  CHECK(strstr(text, "arithmetic: exact products of bf16, summed in FP32"), "explained: %s", text);
}

/* A grid has at most 2^31 - 1 blocks. */
CHILD_CASE(grid_limits) {
  (void)unused;
  const ws_cuda_row *row = gpu_row_with(WSGEMM_F32, 64, 32, 1);
  wsgemm_handle *h = handle_of_row(row);
  for (int policy = WSGEMM_POLICY_AUTO; policy < WS_N_POLICIES; policy++) {
    wsgemm_gemm_desc d = device_desc(WSGEMM_F32, 64 * WS_SCHED_MAX_ITEMS, 1, 1, 0);
    wsgemm_set_policy(h, (wsgemm_policy)policy);
    d.lda = d.ldc = d.m;
    const fake_launch *l = launch_of(h, &d);
    CHECK(l->args.sched.n_items == WS_SCHED_MAX_ITEMS, "%u items", l->args.sched.n_items);
    if (policy == WSGEMM_POLICY_FIXED_WORK) CHECK(l->grid[0] == WS_SCHED_MAX_ITEMS, "%u blocks", l->grid[0]);
    d.m++, d.lda++, d.ldc++;
    expect_failure(h, &d, WSGEMM_NOT_SUPPORTED, "2147483648 work items");
  }
  wsgemm_destroy(h);
}

/* ---- words ----------------------------------------------------------------------------------- */

CHILD_CASE(explanations) {
  (void)unused;
  int n_cuda = 0;
  fake.n_devices = FAKE_N_DEVICES;
  fake.device[2].cc = 90;
  for (int i = 0; i < wsgemm_kernel_count(); i++) {
    if (strcmp(wsgemm_kernel_backend(i), "cuda") != 0) continue;
    n_cuda++;
    const ws_cuda_row *row = gpu_row_named(wsgemm_kernel_name(i));
    CHECK(wsgemm_kernel_usable(i), "%s is not usable beside a driver", row->name);
    if (row->kind == WS_ROW_SMALL) continue; /* of smaller products: test_backend_small.c */
    if (row->n_slices == 3) continue;        /* never the first choice: test_backend_slices.c */
    wsgemm_handle *h = handle_of_row(row);
    const bool is_sliced = row->kind == WS_ROW_SLICED;
    const bool is_direct = ws_has_entry_for_ops(row->kind);
    const int device = row->kind == WS_ROW_WGMMA || is_sliced || is_direct ? 2 : 1;
    wsgemm_gemm_desc d = row_desc(row, 304, 500, row->cluster_splits > 1 ? 2048 : is_sliced ? 128 : 40, device);
    if (row->n_slices == 1) d.math = WSGEMM_MATH_TF32;
    char number[32], tile[32], name[32];
    snprintf(name, sizeof name, "%d Fake GPU %d", device, device);
    char transposed[128];
    const bool is_across = explained_text(h, &d, "transposed", transposed);
    snprintf(number, sizeof number, "%lld", (long long)gpu_row_items(row, is_across ? d.n : d.m, is_across ? d.m : d.n, 1));
    snprintf(tile, sizeof tile, "%dx%d", row->bm, row->bn);
    fake_forget();
    CHECK(explained_is(h, &d, "backend", "cuda") && explained_is(h, &d, "device", name) &&
              explained_is(h, &d, "kernel", row->name) && explained_is(h, &d, "tile", tile) &&
              explained_is(h, &d, "items", number) &&
              explained_is(h, &d, "scheduler", is_direct || row->is_once ? "static" : "queue") &&
              explained_number(h, &d, "coarse_factor", -1) == row->coarse && explained_number(h, &d, "blocks_per_sm", -1) == 2,
          "%s is not explained", row->name);
    CHECK(fake.n_launches == 0, "wsgemm_explain launched");
    CHECK(watched_gemm(h, &d) == WSGEMM_SUCCESS && fake.n_launches == (!is_sliced           ? 1
                                                                       : row->n_slices == 1 ? 4
                                                                                            : 6),
          "%s: %d launches: %s", row->name, fake.n_launches, wsgemm_last_error());
    const fake_launch *l = &fake.launch[is_sliced ? 2 : 0];
    const wsgemm_kernel_info info = row_info_at(i);
    CHECK(l->block[0] == (unsigned)info.n_threads && l->planned_shared == info.shared_bytes &&
              l->cluster == (unsigned)info.cluster,
          "%s: %d threads and %d bytes are told, %u and %d launched", row->name, info.n_threads, info.shared_bytes, l->block[0],
          l->planned_shared);
    CHECK(row_of(l) == row, "%s was forced and explained, %s launched", row->name, l->kernel);
    wsgemm_destroy(h);
  }
  CHECK(n_cuda == n_all_gpu_rows, "%d rows of %d are registered", n_cuda, n_all_gpu_rows);

  char text[1024];
  wsgemm_gemm_desc d = device_desc(WSGEMM_F32, 8, 8, 8, 0);
  d.c = device_desc(WSGEMM_F32, 8, 8, 8, 1).c;
  wsgemm_explain(NULL, &d, text, sizeof text);
  CHECK(strstr(text, "error: the matrices lie on different devices"), "explained: %s", text);
  d = device_desc(WSGEMM_F32, 8, 8, 0, 0);
  CHECK(explained_is(NULL, &d, "path", "scale C by beta"), "the scaling is not explained");
  wsgemm_machine(text, sizeof text);
  CHECK(strstr(text, "gpu: driver found"), "%s", text);
}

/* A product of a row and a column could be either kind of vector product, which sum differently: it
 * is the same one with memory for partial sums and without, however its operands lie. */
CHILD_CASE(one_element) {
  static const wsgemm_op ops[] = {WSGEMM_NO_TRANS, WSGEMM_TRANS};
  wsgemm_handle *frugal = NULL;
  (void)unused;
  REQUIRE(wsgemm_create(&frugal) == WSGEMM_SUCCESS, "handle");
  for (int type = 0; type < 4; type++)
    for (int turn = 0; turn < 16; turn++) {
      wsgemm_gemm_desc d = device_desc((wsgemm_type)type, 1, 1, 3000, 0);
      d.transa = ops[turn & 1], d.transb = ops[turn >> 1 & 1];
      d.lda = (turn & 1 ? 3000 : 1) + (turn >> 2 & 1), d.ldb = (turn & 2 ? 1 : 3000) + (turn >> 3 & 1);
      char kernel[sizeof fake.launch[0].kernel];
      snprintf(kernel, sizeof kernel, "%s", launch_of(NULL, &d)->kernel);
      CHECK(wsgemm_set_workspace(frugal, device_memory(0), 256) == WSGEMM_SUCCESS, "%s", wsgemm_last_error());
      CHECK(strcmp(kernel, launch_of(frugal, &d)->kernel) == 0, "%s, but without memory %s", kernel, fake.launch[0].kernel);
      CHECK(row_of(&fake.launch[0])->kind == WS_ROW_VECTOR && row_of(&fake.launch[0])->bn == 1, "%s", kernel);
    }
  wsgemm_destroy(frugal);
}

static const struct check_case cases[] = {{"one_element", one_element},
                                          {"all_on_one_device", all_on_one_device},
                                          {"mixes_of_memory", mixes_of_memory},
                                          {"two_devices", two_devices},
                                          {"unread_operands", unread_operands},
                                          {"no_pointers", no_pointers},
                                          {"contexts", contexts},
                                          {"streams", streams},
                                          {"operands", operands},
                                          {"alignment", alignment},
                                          {"batches", batches},
                                          {"quick_paths", quick_paths},
                                          {"half_precision", half_precision},
                                          {"grid_limits", grid_limits},
                                          {"explanations", explanations}};
CHECK_MAIN("backend_host", cases)
