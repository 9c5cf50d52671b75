/* log.c - what a program has of this library: settings from the environment, a line for each call, and
 * a summary as the process ends.
 *
 * WSGEMM_CUBLAS is words with commas between: on, off, all, log. Counters are relaxed atomics: exact,
 * but no order. */
#define _GNU_SOURCE
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cublas/cublas.h"

ws_cublas_settings ws_cublas_settings_now;

static const char *const reasons[WS_CUBLAS_N_REASONS + 1] = {
#define REASON(name, words) words,
#include "cublas/reasons.def"
#undef REASON
    "taken"};

static atomic_llong counts[WS_CUBLAS_N_FUNCTIONS][WS_CUBLAS_N_REASONS + 1];
static atomic_llong saved_ns[WS_CUBLAS_N_FUNCTIONS];
static FILE *file; /* NULL: stderr */

static FILE *output(void) { return file ? file : stderr; }

static bool has_word(const char *words, const char *word) {
  const size_t length = strlen(word);
  for (const char *at = words; at; at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL)
    if (strncmp(at, word, length) == 0 && (at[length] == ',' || at[length] == '\0')) return true;
  return false;
}

static void read_settings(void) {
  const char *const words = secure_getenv("WSGEMM_CUBLAS");
  const char *const summary = secure_getenv("WSGEMM_CUBLAS_SUMMARY");
  const char *const name = secure_getenv("WSGEMM_CUBLAS_FILE");
  ws_cublas_settings_now.is_off = words && has_word(words, "off");
  ws_cublas_settings_now.takes_all = words && has_word(words, "all");
  ws_cublas_settings_now.is_logged = words && has_word(words, "log");
  ws_cublas_settings_now.has_summary = summary && strcmp(summary, "1") == 0;
  if (name && *name && (ws_cublas_settings_now.is_logged || ws_cublas_settings_now.has_summary)) file = fopen(name, "ae");
  if (file) setvbuf(file, NULL, _IOLBF, BUFSIZ);
}

__attribute__((constructor)) void ws_cublas_read_settings(void) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, read_settings);
}

static char letter_of(wsgemm_op op) { return op == WSGEMM_NO_TRANS ? 'N' : op == WSGEMM_TRANS ? 'T' : 'C'; }

static void write_line(const ws_cublas_call *call, ws_cublas_reason reason, wsgemm_status status) {
  static const char *const types[] = {"f32", "f64", "c32", "c64", "f16", "bf16"};
  char shape[160], why[96] = "taken";
  const wsgemm_gemm_desc *const g = &call->desc.gemm;
  const wsgemm_level3_desc *const l = &call->desc.level3;
  if (call->is_level3)
    snprintf(shape, sizeof shape, "%s m=%lld n=%lld k=%lld", types[l->type], (long long)l->m, (long long)l->n, (long long)l->k);
  else
    snprintf(shape, sizeof shape, "%s %c%c %lldx%lldx%lld batch=%lld", call->is_foreign ? "-" : types[g->type_a],
             letter_of(g->transa), letter_of(g->transb), (long long)g->m, (long long)g->n, (long long)g->k,
             (long long)g->batch_count);
  if (reason == WS_CUBLAS_REFUSED || status != WSGEMM_SUCCESS)
    snprintf(why, sizeof why, "%s: %s", reasons[reason], wsgemm_status_name(status));
  else if (reason != WS_CUBLAS_TAKEN)
    snprintf(why, sizeof why, "passed on: %s", reasons[reason]);
  fprintf(output(), "wsgemm_cublas[%ld]: %s %s: %s\n", (long)getpid(), ws_cublas_names[call->function], shape, why);
}

void ws_cublas_note(const ws_cublas_call *call, ws_cublas_reason reason, wsgemm_status status) {
  atomic_fetch_add_explicit(&counts[call->function][reason], 1, memory_order_relaxed);
  if (reason == WS_CUBLAS_TAKEN)
    atomic_fetch_add_explicit(&saved_ns[call->function], (long long)(call->saved_us * 1e3), memory_order_relaxed);
  if (ws_cublas_settings_now.is_logged) write_line(call, reason, status);
}

__attribute__((destructor)) static void print_summary(void) {
  if (!ws_cublas_settings_now.has_summary) return;
  for (int f = 0; f < WS_CUBLAS_N_FUNCTIONS; f++) {
    long long n[WS_CUBLAS_N_REASONS + 1], n_all = 0;
    for (int r = 0; r <= WS_CUBLAS_N_REASONS; r++) n_all += n[r] = atomic_load_explicit(&counts[f][r], memory_order_relaxed);
    if (!n_all) continue;
    fprintf(output(), "wsgemm_cublas[%ld]: %s: %lld calls, %lld taken", (long)getpid(), ws_cublas_names[f], n_all,
            n[WS_CUBLAS_TAKEN]);
    for (int r = 0; r < WS_CUBLAS_N_REASONS; r++)
      if (n[r]) fprintf(output(), ", %lld passed on (%s)", n[r], reasons[r]);
    const double saved_ms = (double)atomic_load_explicit(&saved_ns[f], memory_order_relaxed) * 1e-6;
    if (n[WS_CUBLAS_TAKEN]) fprintf(output(), "; about %.3g ms saved, by measurements on an H200", saved_ms);
    fprintf(output(), "\n");
  }
}
