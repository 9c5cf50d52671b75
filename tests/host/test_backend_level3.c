/* test_backend_level3.c - what is launched for Level 3 in device memory: regions, slices that
 * are made once, structured operands by slices, where they lie and written out, two products in one
 * launch, and triangular systems as diagonal blocks and products in their order. Seen by a fake driver. */
#define _GNU_SOURCE
#include "core/matrix.h"
#include "cuda/shared/triangle_args.h"
#include "fake_calls.h"

#include <string.h>

static void run(const wsgemm_level3_desc *d) {
  fake_forget();
  REQUIRE(wsgemm_level3(NULL, d) == WSGEMM_SUCCESS, "%s", wsgemm_last_error());
  REQUIRE(fake.n_launches > 0 && fake.n_launches <= FAKE_N_LAUNCHES, "%d launches", fake.n_launches);
}

static int count_of(const char *what) {
  int n = 0;
  for (int i = 0; i < fake.n_launches; i++) n += strstr(fake.launch[i].kernel, what) != NULL;
  return n;
}

CHILD_CASE(regions) {
  (void)unused;
  fake.device[0].cc = 90;
  for (int uplo = WSGEMM_UPPER; uplo <= WSGEMM_LOWER; uplo++) {
    wsgemm_level3_desc d = level3_device_desc(WSGEMM_SYRK, WSGEMM_F32, 4096);
    d.uplo = (wsgemm_uplo)uplo;
    run(&d);
    const int region = uplo == WSGEMM_UPPER ? WS_UPPER : WS_LOWER;
    for (int i = 0; i < fake.n_launches; i++) {
      const fake_launch *l = &fake.launch[i];
      if (is_of(l, "f16x3")) CHECK(l->wgmma.region.region == region && !l->wgmma.region.real_diagonal, "region of %s", l->kernel);
      if (is_of(l, "bf16x6")) CHECK(!l->wgmma.scales.listed_m && !l->wgmma.scales.listed_n, "lines of a region are gathered");
      if (strcmp(l->kernel, "sfallback") == 0) CHECK(l->args.region.region == region, "region of the fallback");
      if (strcmp(l->kernel, "sslices_2") == 0)
        CHECK(l->slices.operand[0].n_batch == 1 && l->slices.operand[1].n_batch == 0, "the one operand is split once");
    }
    CHECK(count_of("f16x3") == 1 && count_of("sslices_2") == 1, "one product by slices");
    d = level3_device_desc(WSGEMM_HERK, WSGEMM_C64, 100);
    d.uplo = (wsgemm_uplo)uplo;
    run(&d);
    CHECK(fake.n_launches == 1 && fake.launch[0].args.region.region == region && fake.launch[0].args.region.real_diagonal,
          "herk: %s", fake.launch[0].kernel);
    d.k = 0, d.beta = scalar_make(WSGEMM_C64, 2, 0);
    run(&d);
    CHECK(strcmp(fake.launch[0].kernel, "zscale") == 0 && fake.launch[0].args.region.region == region, "herk without a product");
  }
}

/* Of floats by slices: one triangle is read, and of a triangular operand the zeros are passed
 * over. */
CHILD_CASE(by_slices) {
  (void)unused;
  fake.device[0].cc = 90;
  wsgemm_level3_desc d = level3_device_desc(WSGEMM_SYMM, WSGEMM_F32, 2048);
  run(&d);
  CHECK(count_of("sstructured_maxima") == 1 && count_of("sstructured_slices_2") == 1 && count_of("sexpand_structured") == 1,
        "symm");
  for (int i = 0; i < fake.n_launches; i++)
    if (is_of(&fake.launch[i], "f16x3")) CHECK(fake.launch[i].wgmma.triangular == 0, "symm is not triangular");
  d = level3_device_desc(WSGEMM_TRMM, WSGEMM_F32, 2048);
  d.c = NULL;
  run(&d);
  CHECK(strcmp(fake.launch[0].kernel, "scopy_lines") == 0 && count_of("f16x3") == 1, "trmm in place: a copy, then the product");
  for (int i = 0; i < fake.n_launches; i++)
    if (is_of(&fake.launch[i], "f16x3"))
      CHECK(fake.launch[i].wgmma.triangular == 1 && fake.launch[i].wgmma.triangle == WS_UPPER, "the triangle of A");
}

/* Of doubles on cc 9.0: one triangle is read, in one launch, and nothing is written but C; but for symmetric and Hermitian C64. */
CHILD_CASE(where_they_lie) {
  (void)unused;
  static const struct {
    wsgemm_routine routine;
    wsgemm_type type;
    int structure;
  } of[] = {{WSGEMM_SYMM, WSGEMM_F64, WS_SYMMETRIC}, {WSGEMM_TRMM, WSGEMM_C64, WS_TRIANGULAR}};
  fake.device[0].cc = 90;
  for (int side = WSGEMM_LEFT; side <= WSGEMM_RIGHT; side++)
    for (int i = 0; i < 2; i++) {
      wsgemm_level3_desc d = level3_device_desc(of[i].routine, of[i].type, 6000);
      d.side = (wsgemm_side)side;
      const int n_allocs = fake.n_allocs;
      run(&d);
      const ws_copied_args *args = &fake.launch[0].copied;
      CHECK(fake.n_launches == 1 && row_of(&fake.launch[0]) && fake.n_allocs == n_allocs, "%d launches, %s", fake.n_launches,
            fake.launch[0].kernel);
      CHECK(args->gemm.structured == (side == WSGEMM_LEFT ? 1 : 2) && args->structure == of[i].structure &&
                args->stored == WS_UPPER,
            "operand %d, structure %d, triangle %d", args->gemm.structured, args->structure, args->stored);
      CHECK((side == WSGEMM_LEFT ? args->gemm.a : args->gemm.b).data == d.a, "A is read where it lies");
      CHECK(args->gemm.triangular == (of[i].routine == WSGEMM_TRMM ? args->gemm.structured : 0), "zeros are passed over");
    }
  for (int routine = WSGEMM_SYMM; routine <= WSGEMM_HEMM; routine++) {
    const wsgemm_level3_desc of_z = level3_device_desc((wsgemm_routine)routine, WSGEMM_C64, 2048);
    run(&of_z);
    CHECK(fake.n_launches == 2 && count_of("zwrite_out") == 1, "a block of C64 is written out: %d launches", fake.n_launches);
  }
  wsgemm_level3_desc d = level3_device_desc(WSGEMM_TRMM, WSGEMM_F64, 2048);
  d.c = NULL;
  run(&d);
  CHECK(fake.n_launches == 2 && count_of("dcopy_lines") == 1 && fake.launch[1].copied.gemm.structured == 1, "trmm in place");
  d = level3_device_desc(WSGEMM_SYRK, WSGEMM_F64, 500);
  run(&d);
  CHECK(fake.n_launches == 1 && fake.launch[0].copied.gemm.structured == 0 && !fake.launch[0].copied.is_twice,
        "syrk: a plain product");
}

/* syr2k of doubles on cc 9.0: both products in one launch, where they have the same alpha; else one after the other. */
CHILD_CASE(both_at_once) {
  (void)unused;
  fake.device[0].cc = 90;
  for (int type = WSGEMM_F32; type <= WSGEMM_C64; type++)
    for (int hermitian = 0; hermitian < 2; hermitian++)
      for (int im = 0; im < 2; im++) {
        const bool is_double = type == WSGEMM_F64 || type == WSGEMM_C64, is_complex = type == WSGEMM_C32 || type == WSGEMM_C64;
        if (!is_complex && (hermitian || im)) continue;
        wsgemm_level3_desc d = level3_device_desc(hermitian ? WSGEMM_HER2K : WSGEMM_SYR2K, (wsgemm_type)type, 300);
        d.alpha = scalar_make((wsgemm_type)type, 2, im);
        run(&d);
        const bool at_once = is_double && !(hermitian && im);
        CHECK(!is_double || (fake.n_launches == (at_once ? 1 : 2) && fake.launch[0].copied.is_twice == at_once),
              "%c: %d launches", type_letter((wsgemm_type)type), fake.n_launches);
        CHECK(fake.n_launches > 1 || at_once, "%c: one launch", type_letter((wsgemm_type)type));
        if (at_once) CHECK(fake.launch[0].args.a.data == d.a && fake.launch[0].args.b.data == d.b, "A and B");
      }
}

/* Elsewhere diagonal blocks are written out, and what lies beside them is read where it is. */
CHILD_CASE(written_out) {
  (void)unused;
  const wsgemm_level3_desc d = level3_device_desc(WSGEMM_SYMM, WSGEMM_F64, 4096);
  run(&d);
  CHECK(count_of("dwrite_out") == 2 && fake.n_launches == 2 + 2 + 2, "%d launches", fake.n_launches);
  const int64_t half = 2048;
  const char *beside = (const char *)d.a + half * d.lda * 8; /* stored: the upper triangle */
  int n_beside = 0;
  for (int i = 0; i < fake.n_launches; i++) n_beside += row_of(&fake.launch[i]) && fake.launch[i].args.a.data == beside;
  CHECK(n_beside == 2, "%d products read the block beside the diagonal", n_beside);
}

/* Diagonal blocks and products alternate; the first product takes alpha to the rows that follow. */
CHILD_CASE(systems) {
  (void)unused;
  enum { N = 4 * WS_SOLVE_N_d };
  for (int uplo = WSGEMM_UPPER; uplo <= WSGEMM_LOWER; uplo++) {
    wsgemm_level3_desc d = level3_device_desc(WSGEMM_TRSM, WSGEMM_F64, N);
    d.uplo = (wsgemm_uplo)uplo, d.c = NULL, d.alpha = scalar_make(WSGEMM_F64, 3, 0);
    run(&d);
    CHECK(fake.n_launches == 7 && count_of("dsolve") == 4, "%d launches", fake.n_launches);
    for (int l = 0; l < fake.n_launches; l++)
      CHECK((strcmp(fake.launch[l].kernel, "dsolve") == 0) == (l % 2 == 0), "launch %d is %s", l, fake.launch[l].kernel);
    CHECK(fake.launch[3].args.alpha.d[0] == -1 && fake.launch[3].args.beta.d[0] == 3, "of the halves: alpha B - A X");
    CHECK(fake.launch[5].args.beta.d[0] == 1, "what follows has been multiplied by alpha");
  }
}

/* A launch counts in 32 bits. */
CHILD_CASE(long_batch) {
  (void)unused;
  wsgemm_level3_desc d = level3_device_desc(WSGEMM_TRSM, WSGEMM_F64, 1);
  d.c = NULL, d.m = d.n = 1, d.stride_a = d.stride_b = 1, d.batch_count = INT64_C(5) << 30;
  run(&d);
  CHECK(count_of("dsolve") == 3, "%d launches for 5 * 2^30 systems", count_of("dsolve"));
  d.n = 33, d.stride_b = 33, d.batch_count = INT64_C(1) << 30;
  run(&d);
  CHECK(count_of("dsolve") == 2, "%d launches for 3 * 2^30 groups of right-hand sides", count_of("dsolve"));
}

/* Of floats by slices where the blocks of the other kernel would not all have an SM; not under PEDANTIC. */
CHILD_CASE(systems_by_slices) {
  (void)unused;
  const int64_t enough = WS_SOLVE_COLUMNS * (int64_t)fake.device[0].n_sms;
  wsgemm_level3_desc d = level3_device_desc(WSGEMM_TRSM, WSGEMM_F32, 2 * WS_SLICED_SOLVE_N);
  fake.device[0].cc = 90, d.c = NULL;
  for (int more = 0; more < 2; more++)
    for (int math = WSGEMM_MATH_DEFAULT; math <= WSGEMM_MATH_PEDANTIC; math++) {
      d.n = enough + more, d.math = (wsgemm_math)math;
      run(&d);
      const bool by_slices = more && math != WSGEMM_MATH_PEDANTIC;
      CHECK(count_of("ssolve") == 2 && (count_of("ssolve_sliced") > 0) == by_slices, "math %d, %d: %s", math, more,
            fake.launch[0].kernel);
    }
}

static const struct check_case cases[] = {{"regions", regions},
                                          {"systems_by_slices", systems_by_slices},
                                          {"by_slices", by_slices},
                                          {"written_out", written_out},
                                          {"where_they_lie", where_they_lie},
                                          {"both_at_once", both_at_once},
                                          {"systems", systems},
                                          {"long_batch", long_batch}};
CHECK_MAIN("backend_level3", cases)
