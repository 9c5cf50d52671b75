/* test_backend_packed_products.c - products with operands packed beforehand, seen by a fake driver:
 * whole, in pieces and in batches they read just the packed form, launch nothing to cut it again,
 * and count its marks once; when it is looked at, and what is said of it. */
#define _GNU_SOURCE
#include "fake_packed.h"

#include <stdio.h>
#include <string.h>

/* ---- Whole products -------------------------------------------------------------------------- */

/* A product with one operand packed or with both. */
static void check_product(wsgemm_handle *h, const wsgemm_gemm_desc *plain, wsgemm_math math, bool packs_a, bool packs_b) {
  wsgemm_gemm_desc d = *plain;
  const struct shape of_a = shape_of(&d, false), of_b = shape_of(&d, true);
  struct packing a, b;
  bool is_packed[2];
  int at = 0;
  char text[DESCRIPTION_BYTES];
  is_packed[of_a.slot] = packs_a, is_packed[of_b.slot] = packs_b;
  if (packs_a) a = pack(h, plain, false), d.packed_a = a.record;
  if (packs_b) b = pack(h, plain, true), d.packed_b = b.record;
  const size_t bytes = workspace_for(h, &d), bytes_of_plain = workspace_for(h, plain);
  CHECK(bytes < bytes_of_plain, "%s: %zu bytes of workspace, unpacked %zu", gemm_describe(&d, text), bytes, bytes_of_plain);
  if (math == WSGEMM_MATH_TF32 && packs_a && packs_b) CHECK(bytes == 0, "%zu bytes of workspace for nothing", bytes);
  REQUIRE(watched_gemm(h, &d) == WSGEMM_SUCCESS, "%s", wsgemm_last_error());
  const struct chain c = next_chain(&at, d.type_a, math, !(packs_a && packs_b));
  CHECK(at == fake.n_launches, "%d launches, not %d", fake.n_launches, at);
  const struct part all_a = whole_of(&of_a), all_b = whole_of(&of_b);
  if (packs_a) check_chain(&c, &a, &of_a, &all_a, math), unpack(&a);
  if (packs_b) check_chain(&c, &b, &of_b, &all_b, math), unpack(&b);
  if (bytes > 0) check_own_memory(&c, is_packed, fake.copies[0], (int64_t)bytes);
  CHECK(c.fallback->fallback.counts_a && c.fallback->fallback.counts_b, "marks are not counted");
}

CHILD_CASE(products) {
  (void)unused;
  for (int t = 0; t < N_SLICED_TYPES; t++)
    for (int c = 0; c < N_SLICED_MATHS; c++) {
      wsgemm_handle *h = handle_for(sliced_types[t], sliced_maths[c]);
      const int n = n_ops(sliced_types[t]);
      for (int ops = 0; ops < n * n; ops++)
        for (int turn = 0; turn < 6; turn++) {
          const wsgemm_gemm_desc d =
              desc_of(sliced_types[t], all_layouts[turn % 2], all_ops[ops / n], all_ops[ops % n], 301, 213, 331);
          check_product(h, &d, sliced_maths[c], turn / 2 != 1, turn / 2 != 0);
        }
      wsgemm_destroy(h);
    }
}

/* One real operand may be the other one too: X^T X. */
CHILD_CASE(on_both_sides) {
  (void)unused;
  for (int turn = 0; turn < 4; turn++) {
    const wsgemm_layout layout = all_layouts[turn % 2];
    const bool as_b = turn / 2;
    wsgemm_handle *h = handle_for(WSGEMM_F32, WSGEMM_MATH_DEFAULT);
    wsgemm_gemm_desc d = desc_of(WSGEMM_F32, layout, WSGEMM_TRANS, WSGEMM_NO_TRANS, 300, 300, 400);
    d.b = d.a, d.ldb = d.lda;
    struct packing p = pack(h, &d, as_b);
    const struct shape of_a = shape_of(&d, false), of_b = shape_of(&d, true);
    const struct part all = whole_of(&of_a);
    int at = 0;
    d.packed_a = d.packed_b = p.record;
    REQUIRE(watched_gemm(h, &d) == WSGEMM_SUCCESS, "%s", wsgemm_last_error());
    const struct chain c = next_chain(&at, WSGEMM_F32, WSGEMM_MATH_DEFAULT, false);
    check_chain(&c, &p, &of_a, &all, WSGEMM_MATH_DEFAULT), check_chain(&c, &p, &of_b, &all, WSGEMM_MATH_DEFAULT);
    check_own_memory(&c, (const bool[]){true, true}, fake.copies[0], (int64_t)workspace_for(h, &d));
    unpack(&p);
    wsgemm_destroy(h);
  }
}

/* ---- Products of other classes and kernels, and what is said of them ------------------------- */

/* A packed form of another class, or beside kernels without slices, is as if it were not there. */
CHILD_CASE(other_classes) {
  (void)unused;
  static const struct {
    wsgemm_math packed_for, used_in;
    bool is_invariant;
  } all[] = {{WSGEMM_MATH_TF32, WSGEMM_MATH_DEFAULT, false},     {WSGEMM_MATH_DEFAULT, WSGEMM_MATH_TF32, false},
             {WSGEMM_MATH_DEFAULT, WSGEMM_MATH_PEDANTIC, false}, {WSGEMM_MATH_TF32, WSGEMM_MATH_PEDANTIC, false},
             {WSGEMM_MATH_DEFAULT, WSGEMM_MATH_DEFAULT, true},   {WSGEMM_MATH_DEFAULT, WSGEMM_MATH_DEFAULT, false}};
  for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
    for (int is_b = 0; is_b < 2; is_b++) {
      wsgemm_handle *h = forced(NULL);
      wsgemm_gemm_desc d = desc_of(WSGEMM_F32, WSGEMM_COL_MAJOR, WSGEMM_NO_TRANS, WSGEMM_TRANS, 2048, 2048, 2048);
      d.math = all[i].packed_for;
      struct packing p = pack(h, &d, is_b);
      d.math = all[i].used_in;
      CHECK(wsgemm_set_invariant(h, all[i].is_invariant) == WSGEMM_SUCCESS, "%s", wsgemm_last_error());
      const bool is_used = all[i].packed_for == all[i].used_in && !all[i].is_invariant;
      const size_t bytes = workspace_for(h, &d);
      REQUIRE(watched_gemm(h, &d) == WSGEMM_SUCCESS, "%s", wsgemm_last_error());
      const int n_launches = fake.n_launches;
      const ws_slice_args before = fake.launch[0].slices;
      const fake_launch simt = fake.launch[0];
      const bool is_sliced = strcmp(fake.launch[0].kernel, FIRST_PASS) == 0;
      CHECK(is_sliced == (all[i].used_in != WSGEMM_MATH_PEDANTIC && !all[i].is_invariant), "%s", fake.launch[0].kernel);
      *(is_b ? &d.packed_b : &d.packed_a) = p.record;
      CHECK((workspace_for(h, &d) == bytes) != is_used, "the workspace: %zu bytes, unpacked %zu", workspace_for(h, &d), bytes);
      CHECK(explained_with(h, &d, is_b ? "packed: b\n" : "packed: a\n") == is_used, "how it is explained");
      REQUIRE(watched_gemm(h, &d) == WSGEMM_SUCCESS, "%s", wsgemm_last_error());
      CHECK(fake.n_launches == n_launches, "%d launches, without %d", fake.n_launches, n_launches);
      const bool is_same = is_sliced ? memcmp(&before, &fake.launch[0].slices, sizeof before) == 0
                                     : strcmp(simt.kernel, fake.launch[0].kernel) == 0 && simt.grid[0] == fake.launch[0].grid[0];
      CHECK(is_same != is_used, "packed in math %d, used in %d: the kernels are told %s", (int)all[i].packed_for,
            (int)all[i].used_in, is_same ? "the same" : "something else");
      unpack(&p);
      wsgemm_destroy(h);
    }
}

/* Managed memory goes where the other matrices are: what is packed on one device is not read on
 * another. */
CHILD_CASE(other_devices) {
  (void)unused;
  enum { SIDE = 2048, BYTES = SIDE * SIDE * 4 };
  fake.n_devices = 2;
  wsgemm_handle *h = forced(NULL);
  fake.device[1].cc = 90;
  wsgemm_gemm_desc d = desc_of(WSGEMM_F32, WSGEMM_COL_MAJOR, WSGEMM_NO_TRANS, WSGEMM_NO_TRANS, SIDE, SIDE, SIDE);
  d.b = fake_alloc(FAKE_MANAGED, 0, BYTES), d.ldb = SIDE;
  struct packing p = pack(h, &d, true);
  for (int device = 0; device < 2; device++) {
    d.a = fake_alloc(FAKE_DEVICE, device, BYTES), d.c = fake_alloc(FAKE_DEVICE, device, BYTES), d.lda = d.ldc = SIDE;
    d.packed_b = NULL;
    const size_t alone = workspace_for(h, &d);
    d.packed_b = p.record;
    REQUIRE(watched_gemm(h, &d) == WSGEMM_SUCCESS && strcmp(fake.launch[0].kernel, FIRST_PASS) == 0, "%s", wsgemm_last_error());
    CHECK((fake.launch[0].slices.operand[1].is_packed != 0) == (device == 0), "device %d: B is taken from where it is packed",
          device);
    CHECK((workspace_for(h, &d) == alone) == (device == 1), "device %d: the workspace", device);
    CHECK(explained_with(h, &d, "packed: b\n") == (device == 0), "device %d: how it is explained", device);
  }
  unpack(&p);
  wsgemm_destroy(h);
}

CHILD_CASE(explained) {
  (void)unused;
  wsgemm_handle *h = handle_for(WSGEMM_C32, WSGEMM_MATH_DEFAULT);
  wsgemm_gemm_desc d = desc_of(WSGEMM_C32, WSGEMM_COL_MAJOR, WSGEMM_NO_TRANS, WSGEMM_TRANS, 300, 200, 256);
  struct packing a = pack(h, &d, false), b = pack(h, &d, true);
  size_t bytes[4];
  CHECK(!explained_with(h, &d, "packed:"), "packed operands are told of where there are none");
  for (int which = 0; which < 4; which++) {
    static const char *const lines[] = {"\n", "\npacked: a\n", "\npacked: b\n", "\npacked: a b\n"};
    char line[64];
    d.packed_a = which & 1 ? a.record : NULL, d.packed_b = which & 2 ? b.record : NULL;
    bytes[which] = workspace_for(h, &d);
    snprintf(line, sizeof line, "\noperand_copies_bytes: %zu\n", bytes[which]);
    CHECK(explained_with(h, &d, lines[which]) && explained_with(h, &d, line), "%d: no line %s or %s", which, lines[which] + 1,
          line + 1);
  }
  CHECK(bytes[1] < bytes[0] && bytes[2] < bytes[0] && bytes[3] < bytes[1] && bytes[3] < bytes[2],
        "workspaces: %zu, %zu, %zu, %zu", bytes[0], bytes[1], bytes[2], bytes[3]);
  unpack(&a), unpack(&b);
  wsgemm_destroy(h);
}

/* A flat product, whose large operand costs more to cut than slices save: it uses them only if that
 * is done already. By the model of the time (sliced_model.h), with a third to spare both ways. */
CHILD_CASE(gain) {
  (void)unused;
  for (int turn = 0; turn < 8; turn++) {
    const bool is_b = turn % 2;
    const wsgemm_layout layout = all_layouts[turn / 2 % 2];
    const wsgemm_type type = sliced_types[turn / 4];
    const int64_t flat = type == WSGEMM_F32 ? 64 : 112, large = 8192, k = large / unit_of(type);
    wsgemm_handle *h = forced(NULL);
    wsgemm_gemm_desc d = desc_of(type, layout, WSGEMM_NO_TRANS, WSGEMM_NO_TRANS, is_b ? flat : large, is_b ? large : flat, k);
    CHECK(!explained_with(h, &d, "gemm_f16x3_"), "slices are used without a packed operand");
    struct packing p = pack(h, &d, is_b);
    *(is_b ? &d.packed_b : &d.packed_a) = p.record;
    CHECK(explained_with(h, &d, "gemm_f16x3_"), "slices are not used with a packed operand");
    d.math = WSGEMM_MATH_TF32; /* packed for another class */
    CHECK(!explained_with(h, &d, "packed: "), "it is used in another class");
    unpack(&p);
    wsgemm_destroy(h);
  }
}

/* An epilogue is taken after the product; its residual in C is copied to where the slices do not
 * stand. */
CHILD_CASE(epilogue) {
  (void)unused;
  wsgemm_handle *h = handle_for(WSGEMM_F32, WSGEMM_MATH_DEFAULT);
  wsgemm_gemm_desc d = desc_of(WSGEMM_F32, WSGEMM_COL_MAJOR, WSGEMM_NO_TRANS, WSGEMM_NO_TRANS, 300, 200, 400);
  struct packing p = pack(h, &d, true);
  const struct shape of_b = shape_of(&d, true);
  const struct part all = whole_of(&of_b);
  int at = 1;
  d.packed_b = p.record, d.residual = d.c, d.ld_residual = d.ldc, d.epilogue = WSGEMM_EPILOGUE_RELU;
  const int64_t bytes = (int64_t)workspace_for(h, &d);
  REQUIRE(watched_gemm(h, &d) == WSGEMM_SUCCESS && fake.n_launches == 8, "%d launches: %s", fake.n_launches, wsgemm_last_error());
  const struct chain c = next_chain(&at, WSGEMM_F32, WSGEMM_MATH_DEFAULT, true);
  const ws_align_copy_operand *copy = &fake.launch[0].pitch.operand[0];
  const int64_t copied = copy->pitch * copy->n_lines * 2;
  check_chain(&c, &p, &of_b, &all, WSGEMM_MATH_DEFAULT);
  check_own_memory(&c, (const bool[]){false, true}, fake.copies[0] + copied, bytes - copied);
  unpack(&p);
  wsgemm_destroy(h);
}

/* ---- Pieces ---------------------------------------------------------------------------------- */

enum { LEAST_SIDE = 256 };

struct room {
  char *memory;
  int64_t bytes;
};

/* A workspace for pieces of LEAST_SIDE rows and columns, or of so many products, of the unpacked
 * product. */
static struct room give_little(wsgemm_handle *h, const wsgemm_gemm_desc *d, int64_t batch_count) {
  wsgemm_gemm_desc least = *d;
  if (batch_count > 0)
    least.batch_count = batch_count;
  else
    least.m = least.n = LEAST_SIDE;
  const size_t bytes = workspace_for(h, &least);
  const struct room room = {next_memory(bytes), (int64_t)bytes};
  REQUIRE(wsgemm_set_workspace(h, room.memory, bytes) == WSGEMM_SUCCESS, "%s", wsgemm_last_error());
  return room;
}

/* The library's own. */
static struct room room_of_library(void) { return (struct room){fake.copies[0], WS_COPIES_BYTES}; }

/* Which rows, columns and products of the whole a piece is, by where its C stands. */
struct piece {
  int64_t m, n, m_first, n_first; /* of the problem */
  int product, n_batch;
};
static struct piece piece_of(const struct chain *c, const wsgemm_gemm_desc *d) {
  const int64_t element = (int64_t)type_bytes(d->type_c),
                offset = ((const char *)c->product->wgmma.c_data - (const char *)d->c) / element;
  const int64_t product = d->batch_count > 1 ? offset / d->stride_c : 0, in_product = offset - product * d->stride_c;
  return (struct piece){.m = c->product->wgmma.m / unit_of(d->type_c),
                        .n = c->product->wgmma.n,
                        .m_first = in_product % d->ldc,
                        .n_first = in_product / d->ldc,
                        .product = (int)product,
                        .n_batch = (int)c->fallback->fallback.gemm.grid.n_batch};
}

/* The part of a packed operand that the piece takes: of one that all products share, always of the
 * first. */
static struct part part_of(const struct piece *piece, const struct shape *x) {
  const bool are_many = x->n_batch > 1;
  return (struct part){x->slot == 0 ? piece->m_first : piece->n_first, x->slot == 0 ? piece->m : piece->n,
                       are_many ? piece->product : 0, are_many ? piece->n_batch : 1};
}

/* How a product was cut, and how often the marks of the problem's operands are counted. */
struct cuts {
  int n_pieces, n_rows, n_columns, n_batches, n_counts[2];
};

static struct cuts check_pieces(wsgemm_handle *h, const wsgemm_gemm_desc *plain, wsgemm_math math, bool packs_a, bool packs_b,
                                const struct room *given) {
  wsgemm_gemm_desc d = *plain;
  const struct shape of_a = shape_of(&d, false), of_b = shape_of(&d, true);
  struct packing a, b;
  bool is_packed[2];
  struct cuts cuts = {0};
  int64_t area = 0;
  is_packed[of_a.slot] = packs_a, is_packed[of_b.slot] = packs_b;
  if (packs_a) a = pack(h, plain, false), d.packed_a = a.record;
  if (packs_b) b = pack(h, plain, true), d.packed_b = b.record;
  REQUIRE(watched_gemm(h, &d) == WSGEMM_SUCCESS, "%s", wsgemm_last_error());
  const struct room room = given ? *given : room_of_library();
  for (int at = 0; at < fake.n_launches; cuts.n_pieces++) {
    const struct chain c = next_chain(&at, d.type_a, math, !(packs_a && packs_b));
    const struct piece piece = piece_of(&c, &d);
    const struct part part_a = part_of(&piece, &of_a), part_b = part_of(&piece, &of_b);
    if (packs_a) check_chain(&c, &a, &of_a, &part_a, math);
    if (packs_b) check_chain(&c, &b, &of_b, &part_b, math);
    check_own_memory(&c, is_packed, room.memory, room.bytes);
    cuts.n_rows += piece.n_first == 0 && piece.product == 0, cuts.n_columns += piece.m_first == 0 && piece.product == 0;
    cuts.n_batches += piece.m_first == 0 && piece.n_first == 0;
    cuts.n_counts[0] += c.fallback->fallback.counts_a, cuts.n_counts[1] += c.fallback->fallback.counts_b;
    area += piece.m * piece.n * piece.n_batch;
  }
  CHECK(area == d.m * d.n * d.batch_count, "%lld elements in %d pieces", (long long)area, cuts.n_pieces);
  if (packs_a) unpack(&a);
  if (packs_b) unpack(&b);
  return cuts;
}

/* Rows and columns of pieces; each begins in the packed operands where it begins in C. */
CHILD_CASE(chunks) {
  (void)unused;
  for (int t = 0; t < N_SLICED_TYPES; t++)
    for (int turn = 0; turn < 24; turn++) {
      const wsgemm_type type = sliced_types[t];
      const int contiguity = turn / 2 % 4, which = turn / 8;
      const wsgemm_op op = type == WSGEMM_C32 ? WSGEMM_CONJ_TRANS : WSGEMM_TRANS;
      wsgemm_handle *h = handle_for(type, WSGEMM_MATH_DEFAULT);
      const wsgemm_gemm_desc d = desc_of(type, all_layouts[turn % 2], contiguity % 2 ? op : WSGEMM_NO_TRANS,
                                         contiguity / 2 ? op : WSGEMM_NO_TRANS, 500, 530, 640);
      const struct room room = give_little(h, &d, 0);
      const struct cuts cuts = check_pieces(h, &d, WSGEMM_MATH_DEFAULT, which != 1, which != 0, &room);
      CHECK(cuts.n_pieces >= 4 && cuts.n_rows >= 2 && cuts.n_columns >= 2 && cuts.n_pieces == cuts.n_rows * cuts.n_columns,
            "%d pieces, %d rows of them, %d columns", cuts.n_pieces, cuts.n_rows, cuts.n_columns);
      wsgemm_destroy(h);
    }
}

/* A packed operand of one slice needs no memory, so that only the other one is cut; with both
 * packed nothing is, in any memory. */
CHILD_CASE(pieces_of_one_slice) {
  (void)unused;
  for (int t = 0; t < N_SLICED_TYPES; t++)
    for (int turn = 0; turn < 6; turn++) {
      const int which = turn / 2;
      wsgemm_handle *h = handle_for(sliced_types[t], WSGEMM_MATH_TF32);
      const wsgemm_gemm_desc d =
          desc_of(sliced_types[t], all_layouts[turn % 2], WSGEMM_NO_TRANS, WSGEMM_NO_TRANS, 1100, 1100, 640);
      const struct room room = give_little(h, &d, 0);
      const struct cuts cuts = check_pieces(h, &d, WSGEMM_MATH_TF32, which != 1, which != 0, &room);
      const bool a_is_cut = which == 1, b_is_cut = which == 0, swaps = d.layout == WSGEMM_ROW_MAJOR;
      CHECK((cuts.n_rows > 1) == (swaps ? b_is_cut : a_is_cut) && (cuts.n_columns > 1) == (swaps ? a_is_cut : b_is_cut),
            "%d rows of pieces, %d columns", cuts.n_rows, cuts.n_columns);
      wsgemm_destroy(h);
    }
}

/* ---- Batches --------------------------------------------------------------------------------- */

/* All products at once, then some at a time. */
CHILD_CASE(batches) {
  (void)unused;
  static const int64_t strides[][2] = {{20000, 20004}, {-20000, 20000}, {20001, -20003}, {0, 20000}, {20000, 0}, {0, 0}};
  for (int t = 0; t < N_SLICED_TYPES; t++)
    for (int c = 0; c < N_SLICED_MATHS; c++)
      for (int turn = 0; turn < 36; turn++) {
        const int64_t *stride = strides[turn % 6];
        const int which = turn / 6 % 3;
        wsgemm_handle *h = handle_for(sliced_types[t], sliced_maths[c]);
        const wsgemm_gemm_desc d =
            batch_of(sliced_types[t], all_layouts[turn / 18], turn % 2 ? WSGEMM_TRANS : WSGEMM_NO_TRANS, stride[0], stride[1]);
        struct cuts cuts = check_pieces(h, &d, sliced_maths[c], which != 1, which != 0, NULL);
        CHECK(cuts.n_pieces == 1, "%d pieces", cuts.n_pieces);
        const bool cuts_some = (which == 0 ? stride[1] : which == 1 ? stride[0] : 0) != 0;
        const struct room room = give_little(h, &d, sliced_maths[c] == WSGEMM_MATH_TF32 ? 1 : 2);
        cuts = check_pieces(h, &d, sliced_maths[c], which != 1, which != 0, &room);
        CHECK(cuts.n_pieces == cuts.n_batches && (!cuts_some || cuts.n_pieces > 1), "%d pieces of the batch", cuts.n_pieces);
        wsgemm_destroy(h);
      }
}

/* One operand packed by itself serves batches that share it, and the other way round. */
CHILD_CASE(shared) {
  (void)unused;
  wsgemm_handle *h = handle_for(WSGEMM_F32, WSGEMM_MATH_DEFAULT);
  for (int turn = 0; turn < 4; turn++) {
    const bool is_b = turn % 2, packs_batch = turn / 2;
    wsgemm_gemm_desc batch = batch_of(WSGEMM_F32, WSGEMM_COL_MAJOR, WSGEMM_NO_TRANS, is_b ? 20000 : 0, is_b ? 0 : 20000),
                     one = batch;
    one.batch_count = 1, one.stride_a = one.stride_b = 77777; /* not looked at */
    struct packing p = pack(h, packs_batch ? &batch : &one, is_b);
    for (int of_one = 0; of_one < 2; of_one++) {
      wsgemm_gemm_desc d = of_one ? one : batch;
      const struct shape x = shape_of(&d, is_b);
      const struct part all = whole_of(&x);
      int at = 0;
      *(is_b ? &d.packed_b : &d.packed_a) = p.record;
      REQUIRE(watched_gemm(h, &d) == WSGEMM_SUCCESS, "%s", wsgemm_last_error());
      const struct chain c = next_chain(&at, WSGEMM_F32, WSGEMM_MATH_DEFAULT, true);
      check_chain(&c, &p, &x, &all, WSGEMM_MATH_DEFAULT);
    }
    unpack(&p);
  }
  wsgemm_destroy(h);
}

/* ---- Counting marks -------------------------------------------------------------------------- */

/* The state of a packed operand counts all its rows or columns: in whatever pieces the product
 * comes, one of them adds that. */
CHILD_CASE(counted_once) {
  (void)unused;
  static const int64_t strides[][2] = {{20000, 20004}, {0, 20000}, {20000, 0}};
  for (int turn = 0; turn < 12; turn++) {
    const wsgemm_layout layout = all_layouts[turn % 2];
    const int which = turn / 2 % 3, slot_of_a = layout == WSGEMM_ROW_MAJOR;
    const bool packs_a = which != 1, packs_b = which != 0, is_batch = turn / 6;
    wsgemm_handle *h = handle_for(WSGEMM_F32, WSGEMM_MATH_DEFAULT);
    for (int s = 0; s < (is_batch ? 3 : 1); s++) {
      const wsgemm_gemm_desc d = is_batch ? batch_of(WSGEMM_F32, layout, WSGEMM_NO_TRANS, strides[s][0], strides[s][1])
                                          : desc_of(WSGEMM_F32, layout, WSGEMM_NO_TRANS, WSGEMM_NO_TRANS, 500, 530, 640);
      CHECK(wsgemm_set_workspace(h, NULL, 0) == WSGEMM_SUCCESS, "%s", wsgemm_last_error());
      const struct room room = give_little(h, &d, is_batch ? 2 : 0);
      const struct cuts cuts = check_pieces(h, &d, WSGEMM_MATH_DEFAULT, packs_a, packs_b, &room);
      CHECK(cuts.n_pieces > 1 || is_batch, "one piece");
      if (packs_a)
        CHECK(cuts.n_counts[slot_of_a] == 1, "A's marks are counted %d times in %d pieces", cuts.n_counts[slot_of_a],
              cuts.n_pieces);
      if (packs_b)
        CHECK(cuts.n_counts[!slot_of_a] == 1, "B's marks are counted %d times in %d pieces", cuts.n_counts[!slot_of_a],
              cuts.n_pieces);
    }
    wsgemm_destroy(h);
  }
}

static const struct check_case cases[] = {{"products", products},
                                          {"on_both_sides", on_both_sides},
                                          {"other_classes", other_classes},
                                          {"other_devices", other_devices},
                                          {"explained", explained},
                                          {"gain", gain},
                                          {"epilogue", epilogue},
                                          {"chunks", chunks},
                                          {"pieces_of_one_slice", pieces_of_one_slice},
                                          {"batches", batches},
                                          {"shared", shared},
                                          {"counted_once", counted_once}};
CHECK_MAIN("backend_packed_products", cases)
