/* result.c - see result.h. */
#define _GNU_SOURCE
#include "bench/harness/result.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

void ws_bench_put_json(FILE *f, const char *text) {
  fputc('"', f);
  for (const unsigned char *c = (const unsigned char *)text; *c; c++) {
    if (*c == '"' || *c == '\\')
      fprintf(f, "\\%c", *c);
    else if (*c < 0x20 || *c >= 0x7f)
      fprintf(f, "\\u%04x", *c);
    else
      fputc(*c, f);
  }
  fputc('"', f);
}

void ws_bench_result_text(FILE *f, const char *name, const char *text) {
  fputs(", ", f);
  ws_bench_put_json(f, name);
  fputs(": ", f);
  ws_bench_put_json(f, text);
}

void ws_bench_result_number(FILE *f, const char *name, double value) {
  if (isfinite(value)) fprintf(f, ", \"%s\": %.6g", name, value); /* JSON has no NaN */
}

void ws_bench_result_begin(FILE *f, const ws_bench_result *r) {
  const int has_peer = strcmp(r->peer, "none") != 0;
  fputs("{\"suite\": ", f);
  ws_bench_put_json(f, r->suite);
  ws_bench_result_text(f, "routine", r->routine);
  ws_bench_result_text(f, "case", r->case_name);
  ws_bench_result_text(f, "policy", r->policy);
  ws_bench_result_text(f, "device", r->device);
  ws_bench_result_text(f, "peer", r->peer);
  ws_bench_result_number(f, "ours", r->ours);
  if (has_peer) ws_bench_result_number(f, "theirs", r->theirs);
  ws_bench_result_text(f, "unit", r->unit);
  if (has_peer) ws_bench_result_number(f, "ratio", r->ratio);
  ws_bench_result_text(f, "commit", r->commit);
  ws_bench_result_text(f, "date", r->date);
  const char *tune = getenv("WSGEMM_TUNE");
  if (tune && *tune) ws_bench_result_text(f, "tuning", strcmp(tune, "off") == 0 ? "off" : "a file");
}

void ws_bench_result_end(FILE *f) {
  fputs("}\n", f);
  fflush(f);
}

void ws_bench_commit(const char *given, char text[WS_BENCH_COMMIT_BYTES]) {
  const char *listed = given && *given ? given : getenv("WSGEMM_COMMIT");
  text[0] = 0;
  if (listed && *listed) {
    snprintf(text, WS_BENCH_COMMIT_BYTES, "%s", listed);
    return;
  }
  FILE *git = popen("git rev-parse --short HEAD 2>/dev/null", "re");
  if (git && !fgets(text, WS_BENCH_COMMIT_BYTES, git)) text[0] = 0;
  if (git && pclose(git) != 0) text[0] = 0;
  text[strcspn(text, "\n")] = 0;
  if (!text[0]) snprintf(text, WS_BENCH_COMMIT_BYTES, "unknown");
}
