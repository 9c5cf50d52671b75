/* fake_packed.c - see fake_packed.h. */
#include "fake_packed.h"

#include <stdio.h>
#include <string.h>

const wsgemm_type sliced_types[N_SLICED_TYPES] = {WSGEMM_F32, WSGEMM_C32};
const wsgemm_math sliced_maths[N_SLICED_MATHS] = {WSGEMM_MATH_DEFAULT, WSGEMM_MATH_TF32};

int unit_of(wsgemm_type type) { return type == WSGEMM_C32 ? 2 : 1; }

/* The row that multiplies the slices that operands have at first. */
static const char *name_of_row(wsgemm_type type, wsgemm_math math) {
  static const char *const rows[2][2] = {{"sgemm_f16x3_128x64x64_c2_x1", "sgemm_f16x1_128x64x64_c2_x1"},
                                         {"cgemm_f16x3_64x64x32_c2_x1", "cgemm_f16x1_64x64x32_c2_x1"}};
  return rows[type == WSGEMM_C32][math == WSGEMM_MATH_TF32];
}

wsgemm_handle *handle_for(wsgemm_type type, wsgemm_math math) {
  wsgemm_handle *h = forced(name_of_row(type, math));
  REQUIRE(wsgemm_set_math(h, math) == WSGEMM_SUCCESS, "%s", wsgemm_last_error());
  return h;
}

wsgemm_gemm_desc desc_of(wsgemm_type type, wsgemm_layout layout, wsgemm_op transa, wsgemm_op transb, int64_t m, int64_t n,
                         int64_t k) {
  const wsgemm_gemm_desc there = device_desc(type, m, n, k, 0);
  wsgemm_gemm_desc d = gemm_desc(type, layout, transa, transb, m, n, k);
  d.a = there.a, d.b = there.b, d.c = there.c;
  d.lda += 4, d.ldb += 3, d.ldc += 2;
  return d;
}

wsgemm_gemm_desc batch_of(wsgemm_type type, wsgemm_layout layout, wsgemm_op op, int64_t stride_a, int64_t stride_b) {
  enum { COUNT = 5 };
  wsgemm_gemm_desc d = desc_of(type, layout, op, op, 64, 72, 136);
  d.batch_count = COUNT, d.stride_a = stride_a, d.stride_b = stride_b, d.stride_c = d.ldc * 80;
  return d;
}

struct shape shape_of(const wsgemm_gemm_desc *d, bool is_b) {
  const wsgemm_op op = is_b ? d->transb : d->transa;
  const bool is_row_major = d->layout == WSGEMM_ROW_MAJOR, is_transposed = op == WSGEMM_TRANS || op == WSGEMM_CONJ_TRANS;
  const int64_t stride = is_b ? d->stride_b : d->stride_a;
  struct shape x = {.data = is_b ? d->b : d->a, .n = is_b ? d->n : d->m, .k = d->k, .ld = is_b ? d->ldb : d->lda};
  x.slot = is_b != is_row_major, x.along_k = is_transposed != (is_b != is_row_major), x.unit = unit_of(d->type_a);
  x.conj = x.unit == 2 && (op == WSGEMM_CONJ_TRANS || op == WSGEMM_CONJ_NO_TRANS);
  x.n_given = x.slot == 0 ? x.n * x.unit : x.n;
  x.n_lines = x.along_k ? x.n_given : x.k * x.unit, x.length = x.along_k ? x.k * x.unit : x.n_given;
  x.n_batch = d->batch_count > 1 && stride != 0 ? (int)d->batch_count : 1, x.stride = x.n_batch > 1 ? stride : 0;
  return x;
}

char *next_memory(size_t bytes) {
  static const size_t room = (size_t)16 << 30, gap = 64 << 10, align = 256;
  static char *memory;
  static size_t taken;
  if (!memory) memory = fake_alloc(FAKE_DEVICE, 0, room);
  REQUIRE(memory && taken + bytes + gap < room, "address space");
  char *const at = memory + taken;
  taken += (bytes + gap) / align * align;
  return at;
}

wsgemm_status watched_prepack(wsgemm_handle *h, const wsgemm_gemm_desc *d, bool is_b, void *memory, size_t bytes,
                              wsgemm_packed **packed) {
  const CUcontext context = fake_current();
  const int depth = fake_depth();
  wsgemm_packed *const before = *packed;
  fake_forget();
  const wsgemm_status status = wsgemm_prepack(h, d, (wsgemm_operand)is_b, memory, bytes, packed);
  CHECK(fake_depth() == depth && fake_current() == context && !fake.is_capture_broken && !fake.trapped,
        "%d contexts became %d; trapped: %s", depth, fake_depth(), fake.trapped ? fake.trapped : "nothing");
  CHECK((status == WSGEMM_SUCCESS) == (*packed != before), "%s, and *packed is %s", wsgemm_status_name(status),
        *packed == before ? "as it was" : "another");
  return status;
}

struct packing pack(wsgemm_handle *h, const wsgemm_gemm_desc *d, bool is_b) {
  struct packing p = {0};
  REQUIRE(wsgemm_get_packed_size(h, d, (wsgemm_operand)is_b, &p.bytes) == WSGEMM_SUCCESS && p.bytes > 0, "%zu bytes: %s", p.bytes,
          wsgemm_last_error());
  p.memory = next_memory(p.bytes);
  REQUIRE(watched_prepack(h, d, is_b, p.memory, p.bytes, &p.record) == WSGEMM_SUCCESS && fake.n_launches >= 2, "%s",
          wsgemm_last_error());
  p.made = fake.launch[1].slices.operand[0];
  return p;
}

void unpack(struct packing *p) { CHECK(wsgemm_packed_destroy(p->record) == WSGEMM_SUCCESS, "%s", wsgemm_last_error()); }

size_t workspace_for(wsgemm_handle *h, const wsgemm_gemm_desc *d) {
  size_t bytes = 77;
  CHECK(wsgemm_get_workspace_size(h, d, &bytes) == WSGEMM_SUCCESS, "%s", wsgemm_last_error());
  return bytes;
}

bool explained_with(wsgemm_handle *h, const wsgemm_gemm_desc *d, const char *words) {
  char text[2048];
  wsgemm_explain(h, d, text, sizeof text);
  return strstr(text, words) != NULL;
}

static const fake_launch *next_launch(int *at, const char *what) {
  REQUIRE(*at < fake.n_launches && fake.n_launches <= FAKE_N_LAUNCHES, "%s is not launched; there are %d", what, fake.n_launches);
  return &fake.launch[(*at)++];
}

/* A kernel that is no row's, called after the type, but for the first pass. */
static const fake_launch *next_plain(int *at, wsgemm_type type, const char *name) {
  const fake_launch *l = next_launch(at, name);
  const bool is_first = strcmp(name, FIRST_PASS) == 0;
  REQUIRE(strcmp(l->kernel + !is_first, name) == 0 && (is_first || l->kernel[0] == type_letter(type)), "launch %d is %s, not %s",
          *at - 1, l->kernel, name);
  return l;
}

static const fake_launch *next_product(int *at, wsgemm_type type, const char *family) {
  const fake_launch *l = next_launch(at, family);
  REQUIRE(is_of(l, family) && row_of(l)->type == type, "launch %d is %s, not %s", *at - 1, l->kernel, family);
  return l;
}

struct chain next_chain(int *at, wsgemm_type type, wsgemm_math math, bool cuts) {
  const bool is_tf32 = math == WSGEMM_MATH_TF32;
  struct chain c = {0};
  if (cuts) c.first_pass = next_plain(at, type, FIRST_PASS), c.slices = next_plain(at, type, is_tf32 ? "slices_1" : "slices_2");
  c.product = next_product(at, type, is_tf32 ? "f16x1" : "f16x3");
  if (!is_tf32) c.three = next_plain(at, type, "slices_3"), c.second = next_product(at, type, "bf16x6");
  c.fallback = next_plain(at, type, "fallback");
  return c;
}

struct part whole_of(const struct shape *x) {
  return (struct part){0, x->n, 0, x->n_batch};
}

/* Scales, groups and counts of one operand, as a product is told of them. */
static void check_scales(const ws_wgmma_scales *s, const struct packing *p, const struct shape *x, const struct part *at) {
  const int64_t given = at->first * (x->slot == 0 ? x->unit : 1);
  const bool is_m = x->slot == 0, are_many = at->n_batch > 1;
  CHECK((is_m ? s->of_m : s->of_n) == p->made.scales + at->product * p->made.scales_pitch + given &&
            (is_m ? s->groups_m : s->groups_n) == p->made.groups + at->product * p->made.groups_pitch + given / WS_SLICE_GROUP &&
            (is_m ? s->state_m : s->state_n) == p->made.state && !(is_m ? s->listed_m : s->listed_n),
        "scales, groups or state are not those of row or column %lld of product %d", (long long)at->first, at->product);
  CHECK((is_m ? s->pitch_m : s->pitch_n) == (are_many ? p->made.scales_pitch : 0) &&
            (is_m ? s->groups_pitch_m : s->groups_pitch_n) == (are_many ? p->made.groups_pitch : 0),
        "scales of other products");
  CHECK((is_m ? s->n_m : s->n_n) == x->n_given * x->n_batch, "the state counts %lld rows or columns", (long long)x->n_given);
}

/* The slices that a product reads: from element `given` of a packed operand's lines on, or its
 * three in `to`. */
static void check_map(const ws_wgmma_operand *read, uintptr_t to, int64_t pitch, int64_t slice_lines, int n_slices,
                      const struct shape *x, const struct part *at) {
  const int64_t n_given = at->n * (x->slot == 0 ? x->unit : 1);
  const fake_map map = held(&read->map);
  CHECK(map.address == to, "the map begins %lld bytes off", (long long)((intptr_t)map.address - (intptr_t)to));
  CHECK(map.dims[0] == (uint64_t)(x->along_k ? x->length : n_given) &&
            map.dims[1] == (uint64_t)(x->along_k ? n_given : x->n_lines) && map.dims[2] == (uint64_t)(n_slices * at->n_batch) &&
            map.strides[0] == (uint64_t)pitch * 2 &&
            (map.dims[2] == 1 || map.strides[1] == (uint64_t)(pitch * slice_lines) * 2) &&
            map.type == (n_slices == 3 ? CU_TENSOR_MAP_DATA_TYPE_BFLOAT16 : CU_TENSOR_MAP_DATA_TYPE_FLOAT16),
        "the map of %d slices", n_slices);
  CHECK((read->along_k != 0) == x->along_k && read->batch_first == 0 && read->batch_step == (at->n_batch > 1 ? n_slices : 0),
        "how they are read");
}

/* The operand as the kernels before a product are told of it: so that none cuts it, but into three
 * slices elsewhere. */
static void check_told(const ws_slice_operand *op, const struct packing *p, const struct shape *x, const struct part *at,
                       int n_slices) {
  const int64_t unit = x->unit, element = (int64_t)sizeof(float) * unit, given = at->first * (x->slot == 0 ? unit : 1);
  const char *from = x->data + (at->product * x->stride + at->first * (x->along_k ? x->ld : 1)) * element;
  CHECK(op->is_packed && (const char *)op->from == from && op->n_x == at->n * (x->along_k ? 1 : unit) &&
            op->n_batch == at->n_batch && op->ld == p->made.ld && op->n_k == p->made.n_k && op->form == p->made.form &&
            op->along_k == p->made.along_k && op->conj == p->made.conj,
        "which floats");
  CHECK(op->maxima == p->made.maxima + at->product * n_maxima_of(&p->made) + at->first * (x->along_k ? 1 : unit) &&
            op->maxima_pitch == p->made.maxima_pitch && op->n_chunks == p->made.n_chunks && op->chunk_k == p->made.chunk_k &&
            op->scales == p->made.scales + at->product * p->made.scales_pitch + given &&
            op->scales_pitch == p->made.scales_pitch &&
            op->groups == p->made.groups + at->product * p->made.groups_pitch + given / WS_SLICE_GROUP &&
            op->groups_pitch == p->made.groups_pitch && op->state == p->made.state && !op->listed,
        "its marks and maxima are not those of row or column %lld of product %d", (long long)at->first, at->product);
  const int64_t n_lines = n_slices == 3 && x->along_k ? at->n * (x->slot == 0 ? unit : 1) : x->n_lines;
  CHECK(op->n_lines == n_lines && op->pitch >= (x->along_k ? x->length : at->n * (x->slot == 0 ? unit : 1)), "%lld lines of %lld",
        (long long)op->n_lines, (long long)op->pitch);
  const bool is_inside = (const char *)op->to >= p->memory && (const char *)op->to < p->memory + p->bytes;
  CHECK(is_inside == (n_slices < 3), "%d slices stand %s the packed memory", n_slices, is_inside ? "in" : "outside of");
}

void check_chain(const struct chain *c, const struct packing *p, const struct shape *x, const struct part *at, wsgemm_math math) {
  const int n_slices = math == WSGEMM_MATH_TF32 ? 1 : 2;
  const int64_t given = at->first * (x->slot == 0 ? x->unit : 1);
  const int64_t elements = at->product * n_slices * p->made.n_lines * p->made.pitch + given * (x->along_k ? p->made.pitch : 1);
  const ws_wgmma_args *product = &c->product->wgmma;
  if (c->slices) {
    check_told(&c->slices->slices.operand[x->slot], p, x, at, n_slices);
    CHECK(memcmp(&c->first_pass->slices, &c->slices->slices, sizeof c->slices->slices) == 0,
          "two passes are told different things");
  }
  check_map(x->slot == 0 ? &product->a : &product->b, (uintptr_t)(p->made.to + elements), p->made.pitch, p->made.n_lines,
            n_slices, x, at);
  check_scales(&product->scales, p, x, at);
  check_scales(&c->fallback->fallback.scales, p, x, at);
  if (!c->three) return;
  const ws_slice_operand *three = &c->three->slices.operand[x->slot];
  check_told(three, p, x, at, 3);
  check_map(x->slot == 0 ? &c->second->wgmma.a : &c->second->wgmma.b, (uintptr_t)three->to, three->pitch, three->n_lines, 3, x,
            at);
  check_scales(&c->second->wgmma.scales, p, x, at);
}

void check_own_memory(const struct chain *c, const bool is_packed[2], const char *memory, int64_t bytes) {
  struct region regions[2 * REGIONS_OF_OPERAND];
  int n = 0;
  for (int slot = 0; slot < 2; slot++) {
    const fake_launch *last = c->three ? c->three : c->slices;
    if (!last) continue;
    const ws_slice_operand *op = &last->slices.operand[slot];
    if (!is_packed[slot]) {
      CHECK(!op->is_packed, "slot %d is no packed operand", slot);
      regions_of(op, c->three ? 3 : 1, regions + n), n += REGIONS_OF_OPERAND;
    } else if (c->three) {
      regions[n++] = (struct region){op->to, op->n_batch * 3 * op->n_lines * op->pitch * 2};
    }
  }
  check_regions(regions, n, memory, bytes);
}
