/* fp_state.h - the floating-point environment that a thread computes in: what a worker takes from
 * the caller whose work it does, and what it gives back.
 *
 * Control bits are rounding mode, flushing of subnormals (FTZ and DAZ, or FZ) and exception masks.
 * Of x86-64 they are those of MXCSR: no kernel computes on the x87 stack. */
#ifndef WS_CPU_FP_STATE_H
#define WS_CPU_FP_STATE_H

#if defined(__x86_64__)
#include <immintrin.h>

#define WS_MXCSR_FLAGS 0x3fu
typedef unsigned ws_fp_control;

static inline ws_fp_control ws_fp_control_of_caller(void) { return _mm_getcsr() & ~WS_MXCSR_FLAGS; }
/* Enters an environment with no flag raised. */
static inline void ws_fp_enter(const ws_fp_control *control) { _mm_setcsr(*control); }
static inline unsigned ws_fp_raised(void) { return _mm_getcsr() & WS_MXCSR_FLAGS; }
/* Sets flags; does not trap. */
static inline void ws_fp_raise(unsigned flags) { _mm_setcsr(_mm_getcsr() | flags); }

#elif defined(__aarch64__)
#include <stdint.h>

typedef uint64_t ws_fp_control; /* FPCR */

static inline ws_fp_control ws_fp_control_of_caller(void) {
  uint64_t fpcr;
  __asm__ volatile("mrs %0, fpcr" : "=r"(fpcr));
  return fpcr;
}
static inline void ws_fp_enter(const ws_fp_control *control) {
  __asm__ volatile("msr fpcr, %0\n\tmsr fpsr, %1" : : "r"(*control), "r"(UINT64_C(0)) : "memory");
}
static inline unsigned ws_fp_raised(void) {
  uint64_t fpsr;
  __asm__ volatile("mrs %0, fpsr" : "=r"(fpsr)::"memory");
  return (unsigned)fpsr;
}
static inline void ws_fp_raise(unsigned flags) {
  const uint64_t fpsr = ws_fp_raised() | flags;
  __asm__ volatile("msr fpsr, %0" : : "r"(fpsr) : "memory");
}

#else
#include <fenv.h>

typedef fenv_t ws_fp_control;

static inline ws_fp_control ws_fp_control_of_caller(void) {
  fenv_t environment;
  fegetenv(&environment);
  return environment;
}
static inline void ws_fp_enter(const ws_fp_control *control) {
  fesetenv(control);
  feclearexcept(FE_ALL_EXCEPT);
}
static inline unsigned ws_fp_raised(void) { return (unsigned)fetestexcept(FE_ALL_EXCEPT); }
static inline void ws_fp_raise(unsigned flags) { feraiseexcept((int)flags); }
#endif

#endif
