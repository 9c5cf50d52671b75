/* machine.c - what the processor can do, by feature bits and never by family, and how large its
 * caches are. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cpu/machine.h"
#if defined(__x86_64__)
#include <cpuid.h>
#endif
#if defined(__x86_64__) && defined(__linux__)
#include <sys/syscall.h>
#endif

/* Of the system call arch_prctl, and the number of the tiles among the states that XSAVE saves. */
enum { ARCH_GET_XCOMP_SUPP = 0x1021, ARCH_REQ_XCOMP_PERM = 0x1023, XFEATURE_XTILEDATA = 18 };

static const char *const isa_names[WS_N_ISAS] = {
    [WS_ISA_REF] = "ref", [WS_ISA_NEON] = "neon", [WS_ISA_AVX2] = "avx2", [WS_ISA_AVX512] = "avx512", [WS_ISA_AMX] = "amx"};

const char *ws_isa_name(ws_isa isa) { return isa_names[isa]; }

static ws_machine machine;
const ws_machine *ws_machine_get(void) { return &machine; }

static void add_feature(ws_machine *m, const char *name, bool present) {
  if (!present) return;
  const size_t used = strlen(m->features);
  snprintf(m->features + used, sizeof m->features - used, "%s%s", used ? " " : "", name);
}

#if defined(__x86_64__)
/* Register state that the operating system saves: bit 1 xmm, 2 ymm, 5..7 zmm and masks, 17..18
 * tiles. */
static unsigned saved_state(void) {
  unsigned low, high;
  __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return low;
}

/* Whether Linux knows of tile registers and saves them for who asks (ws_machine_settle_tiles).
 * Other systems are taken not to. */
static bool tiles_offered(void) {
#if defined(__linux__) && defined(SYS_arch_prctl)
  uint64_t offered = 0;
  return syscall(SYS_arch_prctl, ARCH_GET_XCOMP_SUPP, &offered) == 0 && (offered >> XFEATURE_XTILEDATA & 1);
#else
  return false;
#endif
}

/* Palette 1 as simd_amx.h has it: 8 tiles of 16 rows of 64 bytes. */
static bool has_tiles(void) {
  unsigned a, b, c, d;
  return __get_cpuid_count(0x1d, 1, &a, &b, &c, &d) && a >> 16 >= 1024 && (b & 0xffff) >= 64 && b >> 16 >= 8 &&
         (c & 0xffff) >= 16;
}

static void detect_isa(ws_machine *m) {
  unsigned a, b, c, d;
  if (__get_cpuid(1, &a, &b, &c, &d)) {
    const unsigned state = c & bit_OSXSAVE ? saved_state() : 0;
    const bool ymm = (state & 0x6) == 0x6, zmm = (state & 0xe6) == 0xe6, tiles = (state & 0x60000) == 0x60000;
    const bool fma = (c & bit_FMA) && (c & bit_AVX) && ymm;
    const bool f16c = (c & bit_F16C) && (c & bit_AVX) && ymm;
    unsigned b7 = 0, c7 = 0, d7 = 0, a7_1 = 0;
    if (__get_cpuid_count(7, 0, &a, &b, &c, &d)) b7 = b, c7 = c, d7 = d;
    if (__get_cpuid_count(7, 1, &a, &b, &c, &d)) a7_1 = a;
    const unsigned need512 = bit_AVX512F | bit_AVX512DQ | bit_AVX512BW | bit_AVX512VL;
    m->isa[WS_ISA_AVX2] = fma && f16c && (b7 & bit_AVX2);
    m->isa[WS_ISA_AVX512] = m->isa[WS_ISA_AVX2] && zmm && (b7 & need512) == need512;
    const bool amx_tile = d7 & (1u << 24), amx_bf16 = d7 & (1u << 22);
    m->isa[WS_ISA_AMX] = m->isa[WS_ISA_AVX512] && tiles && amx_tile && amx_bf16 && has_tiles() && tiles_offered();
    add_feature(m, "fma", fma);
    add_feature(m, "f16c", f16c);
    add_feature(m, "avx2", m->isa[WS_ISA_AVX2]);
    add_feature(m, "avx512f/dq/bw/vl", m->isa[WS_ISA_AVX512]);
    add_feature(m, "avx512vnni", zmm && (c7 & bit_AVX512VNNI));
    add_feature(m, "avx512bf16", zmm && (a7_1 & bit_AVX512BF16));
    add_feature(m, "amx-tile", amx_tile);
    add_feature(m, "amx-bf16", amx_bf16);
  }
  unsigned brand[12] = {0};
  for (unsigned i = 0; i < 3; i++)
    if (!__get_cpuid(0x80000002 + i, &brand[4 * i], &brand[4 * i + 1], &brand[4 * i + 2], &brand[4 * i + 3])) break;
  snprintf(m->model, sizeof m->model, "%.48s", (const char *)brand);
}
#else
static void detect_isa(ws_machine *m) {
#if defined(__aarch64__)
  m->isa[WS_ISA_NEON] = true; /* part of the architecture */
  add_feature(m, "neon", true);
#endif
  snprintf(m->model, sizeof m->model, "unknown processor");
}
#endif

/* Size of a data or unified cache of this level, from Linux's table of the first processor; 0:
 * unknown. */
static int64_t cache_bytes(int level) {
  for (int index = 0; index < 8; index++) {
    char path[96], text[32];
    int found = 0;
    bool data = false;
    snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu0/cache/index%d/type", index);
    FILE *f = fopen(path, "re");
    if (!f) break;
    if (fgets(text, sizeof text, f)) data = text[0] != 'I';
    fclose(f);
    snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu0/cache/index%d/level", index);
    if ((f = fopen(path, "re"))) {
      if (fgets(text, sizeof text, f)) found = atoi(text);
      fclose(f);
    }
    if (!data || found != level) continue;
    snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu0/cache/index%d/size", index);
    if ((f = fopen(path, "re"))) {
      char *unit = text;
      int64_t size = fgets(text, sizeof text, f) ? strtoll(text, &unit, 10) : 0;
      fclose(f);
      return *unit == 'K' ? size << 10 : *unit == 'M' ? size << 20 : size;
    }
  }
  return 0;
}

static void set_caches(int64_t l1d, int64_t l2, int64_t l3, const char *from) {
  ws_machine *const m = &machine;
  m->l1d_bytes = l1d, m->l2_bytes = l2, m->l3_bytes = l3, m->caches_from = from;
  /* A larger L3 is that of many cores and guests, and most of it is far from each (Emerald Rapids, a guest's two cores of 260 MB:
   * 4 MB answer in 35 ns, 8 MB in 47, 16 MB in 144, 256 MB in 170). */
  const int64_t most_near = 32 << 20;
  m->near_l3_bytes = m->l3_bytes < most_near ? m->l3_bytes : most_near;
}

void ws_machine_detect(void) {
  ws_machine *const m = &machine;
  memset(m, 0, sizeof *m);
  m->isa[WS_ISA_REF] = true;
  detect_isa(m);
  const int64_t l1d = cache_bytes(1), l2 = cache_bytes(2), l3 = cache_bytes(3);
  const int64_t known_l1d = l1d > 0 ? l1d : 32 << 10, known_l2 = l2 > 0 ? l2 : 512 << 10;
  set_caches(known_l1d, known_l2, l3 > 0 ? l3 : 4 * known_l2, l1d > 0 && l2 > 0 ? "from the system" : "assumed");
}

bool ws_machine_take_caches(const size_t bytes[3]) {
  const size_t least = 4 << 10, most = (size_t)1 << 40;
  if (bytes[0] < least || bytes[1] < bytes[0] || bytes[2] < bytes[1] || bytes[2] > most) return false;
  set_caches((int64_t)bytes[0], (int64_t)bytes[1], (int64_t)bytes[2], "by WSGEMM_CACHES");
  return true;
}

void ws_machine_settle_tiles(bool wanted) {
  ws_machine *const m = &machine;
  m->isa[WS_ISA_AMX] = false;
  if (!wanted) return;
#if defined(__linux__) && defined(SYS_arch_prctl)
  m->isa[WS_ISA_AMX] = syscall(SYS_arch_prctl, ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA) == 0;
#endif
  add_feature(m, "(tiles refused by the system)", !m->isa[WS_ISA_AMX]);
}
