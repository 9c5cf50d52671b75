/* dlsym.c - dlsym, which this library stands before, too: programs that open cuBLAS with dlopen ask for its
 * functions by name, and get the entry points of this library (lookup.c).
 *
 * What RTLD_NEXT and RTLD_DEFAULT mean depends on who calls, which dlsym knows by its return address: so all
 * that is no question about cuBLAS goes on to the true dlsym by a jump, with the stack as it was.
 * Sanitizers leave this file alone (CMakeLists.txt): their own start calls dlsym. Another processor needs
 * its own code below. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "cublas/cublas.h"

#if defined(__x86_64__)
#define FIRST_VERSION "GLIBC_2.2.5"
#elif defined(__aarch64__)
#define FIRST_VERSION "GLIBC_2.17"
#endif

#ifdef FIRST_VERSION

/* By its version, which every glibc has and the dlsym of this library has not. */
ws_cublas_dlsym ws_cublas_true_dlsym(void) {
  static _Atomic(ws_cublas_dlsym) kept;
  ws_cublas_dlsym found = atomic_load_explicit(&kept, memory_order_relaxed);
  if (found) return found;
  *(void **)&found = dlvsym(RTLD_DEFAULT, "dlsym", FIRST_VERSION);
  if (!found) abort();
  atomic_store_explicit(&kept, found, memory_order_relaxed);
  return found;
}

/* Where dlsym goes on to, or NULL, and what it returns then: in two registers. */
typedef struct answer {
  ws_cublas_dlsym go_on;
  void *found;
} answer;

static bool is_of_cublas(const char *name) {
  static const char start[] = "cublas";
  for (int i = 0; start[i]; i++)
    if (name[i] != start[i]) return false;
  return true;
}

__attribute__((used, visibility("hidden"))) answer ws_cublas_answer(void *library, const char *name) {
  if (library == RTLD_NEXT || library == RTLD_DEFAULT || !is_of_cublas(name)) return (answer){ws_cublas_true_dlsym(), NULL};
  return (answer){NULL, ws_cublas_look_up(library, name)};
}

/* The section that the compiler was in comes back. */
#define BEGIN_DLSYM          \
  ".pushsection .text\n"     \
  ".balign 16\n"             \
  ".globl dlsym\n"           \
  ".type dlsym, %function\n" \
  "dlsym:\n"                 \
  ".cfi_startproc\n"
#define END_DLSYM          \
  ".cfi_endproc\n"         \
  ".size dlsym, .-dlsym\n" \
  ".popsection\n"

#if defined(__x86_64__)
__asm__(BEGIN_DLSYM "  endbr64\n"
                    "  subq $24, %rsp\n"
                    ".cfi_adjust_cfa_offset 24\n"
                    "  movq %rdi, 0(%rsp)\n"
                    "  movq %rsi, 8(%rsp)\n"
                    "  call ws_cublas_answer\n"
                    "  movq 0(%rsp), %rdi\n"
                    "  movq 8(%rsp), %rsi\n"
                    "  addq $24, %rsp\n"
                    ".cfi_adjust_cfa_offset -24\n"
                    "  testq %rax, %rax\n"
                    "  je 1f\n"
                    "  jmp *%rax\n"
                    "1:\n"
                    "  movq %rdx, %rax\n"
                    "  ret\n" END_DLSYM);
#else
/* hint 34 is bti c, in an assembler that may not know it. */
__asm__(BEGIN_DLSYM "  hint #34\n"
                    "  stp x0, x1, [sp, #-32]!\n"
                    ".cfi_adjust_cfa_offset 32\n"
                    "  str x30, [sp, #16]\n"
                    ".cfi_offset 30, -16\n"
                    "  bl ws_cublas_answer\n"
                    "  mov x16, x0\n"
                    "  mov x17, x1\n"
                    "  ldr x30, [sp, #16]\n"
                    ".cfi_restore 30\n"
                    "  ldp x0, x1, [sp], #32\n"
                    ".cfi_adjust_cfa_offset -32\n"
                    "  cbz x16, 1f\n"
                    "  br x16\n"
                    "1:\n"
                    "  mov x0, x17\n"
                    "  ret\n" END_DLSYM);
#endif

#else

ws_cublas_dlsym ws_cublas_true_dlsym(void) { return dlsym; }

#endif
