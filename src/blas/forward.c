/* forward.c - Level 1 and 2: symbols that jump to the functions of the same names in another BLAS, of
 * which names with 64 take 64-bit integers (peer.c).
 *
 * A symbol of forward.def is one jump through a slot. At first the slot leads to code that saves the
 * argument registers, lets forward_find() put the function's address into the slot, and goes on
 * there, so no signature is needed, and results (also complex ones) are passed as ever. Where there
 * is no such function, the process ends as a program with an undefined symbol does: with a line on
 * stderr and status 127. Another processor needs its own two macros. */
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "blas/blas.h"

/* A symbol's slot and its name, as the code below lays them out. */
typedef struct forward {
  _Atomic(void *) target;
  const char *name;
} forward;

__attribute__((used, visibility("hidden"))) void *ws_blas_forward_find(forward *f) {
  void *const target = ws_blas_peer_function(f->name);
  if (!target) {
    fprintf(stderr, "wsgemm_blas: no %s: %s\n", f->name, ws_blas_peer_text(f->name));
    _Exit(127);
  }
  atomic_store_explicit(&f->target, target, memory_order_release);
  return target;
}

/* Slot and name of a symbol; `first` is where the slot leads at first. */
#define SLOT(symbol)                                \
  ".section .rodata.forward,\"a\",%progbits\n"      \
  ".Lname_" #symbol ": .asciz \"" #symbol "\"\n"    \
  ".section .data.rel.local,\"aw\",%progbits\n"     \
  ".balign 16\n"                                    \
  ".Lslot_" #symbol ": .quad .Lfirst_" #symbol "\n" \
  "  .quad .Lname_" #symbol "\n"                    \
  ".text\n"                                         \
  ".balign 16\n"                                    \
  ".globl " #symbol "\n"                            \
  ".type " #symbol ", %function\n"

#if defined(__x86_64__)

/* 0 .. 63: rdi rsi rdx rcx r8 r9 rax and the slot; 64 .. 191: xmm0 .. xmm7. */
__asm__(".text\n"
        ".balign 16\n"
        "ws_blas_forward_first:\n"
        ".cfi_startproc\n"
        "  subq $200, %rsp\n"
        ".cfi_adjust_cfa_offset 200\n"
        "  movq %rdi, 0(%rsp)\n"
        "  movq %rsi, 8(%rsp)\n"
        "  movq %rdx, 16(%rsp)\n"
        "  movq %rcx, 24(%rsp)\n"
        "  movq %r8, 32(%rsp)\n"
        "  movq %r9, 40(%rsp)\n"
        "  movq %rax, 48(%rsp)\n"
        "  movups %xmm0, 64(%rsp)\n"
        "  movups %xmm1, 80(%rsp)\n"
        "  movups %xmm2, 96(%rsp)\n"
        "  movups %xmm3, 112(%rsp)\n"
        "  movups %xmm4, 128(%rsp)\n"
        "  movups %xmm5, 144(%rsp)\n"
        "  movups %xmm6, 160(%rsp)\n"
        "  movups %xmm7, 176(%rsp)\n"
        "  movq %r11, %rdi\n"
        "  call ws_blas_forward_find\n"
        "  movq %rax, %r11\n"
        "  movq 0(%rsp), %rdi\n"
        "  movq 8(%rsp), %rsi\n"
        "  movq 16(%rsp), %rdx\n"
        "  movq 24(%rsp), %rcx\n"
        "  movq 32(%rsp), %r8\n"
        "  movq 40(%rsp), %r9\n"
        "  movq 48(%rsp), %rax\n"
        "  movups 64(%rsp), %xmm0\n"
        "  movups 80(%rsp), %xmm1\n"
        "  movups 96(%rsp), %xmm2\n"
        "  movups 112(%rsp), %xmm3\n"
        "  movups 128(%rsp), %xmm4\n"
        "  movups 144(%rsp), %xmm5\n"
        "  movups 160(%rsp), %xmm6\n"
        "  movups 176(%rsp), %xmm7\n"
        "  addq $200, %rsp\n"
        ".cfi_adjust_cfa_offset -200\n"
        "  jmp *%r11\n"
        ".cfi_endproc\n");

#define JUMP(symbol)                                                     \
  __asm__(SLOT(symbol) #symbol ":\n"                                     \
                               "  endbr64\n"                             \
                               "  jmp *.Lslot_" #symbol "(%rip)\n"       \
                               ".Lfirst_" #symbol ":\n"                  \
                               "  endbr64\n"                             \
                               "  leaq .Lslot_" #symbol "(%rip), %r11\n" \
                               "  jmp ws_blas_forward_first\n"           \
                               ".size " #symbol ", .-" #symbol "\n");
#define HAS_JUMPS

#elif defined(__aarch64__)

/* x0 .. x8, x30 and q0 .. q7; x17 has the slot. */
__asm__(".text\n"
        ".balign 16\n"
        "ws_blas_forward_first:\n"
        ".cfi_startproc\n"
        "  sub sp, sp, #224\n"
        ".cfi_adjust_cfa_offset 224\n"
        "  stp x0, x1, [sp, #0]\n"
        "  stp x2, x3, [sp, #16]\n"
        "  stp x4, x5, [sp, #32]\n"
        "  stp x6, x7, [sp, #48]\n"
        "  stp x8, x30, [sp, #64]\n"
        ".cfi_offset 30, -152\n"
        "  stp q0, q1, [sp, #96]\n"
        "  stp q2, q3, [sp, #128]\n"
        "  stp q4, q5, [sp, #160]\n"
        "  stp q6, q7, [sp, #192]\n"
        "  mov x0, x17\n"
        "  bl ws_blas_forward_find\n"
        "  mov x16, x0\n"
        "  ldp x0, x1, [sp, #0]\n"
        "  ldp x2, x3, [sp, #16]\n"
        "  ldp x4, x5, [sp, #32]\n"
        "  ldp x6, x7, [sp, #48]\n"
        "  ldp x8, x30, [sp, #64]\n"
        ".cfi_restore 30\n"
        "  ldp q0, q1, [sp, #96]\n"
        "  ldp q2, q3, [sp, #128]\n"
        "  ldp q4, q5, [sp, #160]\n"
        "  ldp q6, q7, [sp, #192]\n"
        "  add sp, sp, #224\n"
        ".cfi_adjust_cfa_offset -224\n"
        "  br x16\n"
        ".cfi_endproc\n");

#define JUMP(symbol)                                                        \
  __asm__(SLOT(symbol) #symbol ":\n"                                        \
                               "  adrp x17, .Lslot_" #symbol "\n"           \
                               "  add x17, x17, :lo12:.Lslot_" #symbol "\n" \
                               "  ldr x16, [x17]\n"                         \
                               "  br x16\n"                                 \
                               ".Lfirst_" #symbol ":\n"                     \
                               "  b ws_blas_forward_first\n"                \
                               ".size " #symbol ", .-" #symbol "\n");
#define HAS_JUMPS

#endif

#ifdef HAS_JUMPS
#define FORWARD(symbol) JUMP(symbol) JUMP(symbol##64_)
#define FORWARD_CBLAS(symbol) JUMP(symbol) JUMP(symbol##_64)
#include "blas/forward.def"
#endif
