/* tuned.c - the table of tuned settings that comes with the library: lines as in a tuning file,
 * made by tools/tuned_table.py. */
#include <stdio.h>
#include <string.h>

#include "tune/tuning.h"

static const char *const lines[] = {
#include "tune/tuned.def"
};
enum { N_LINES = sizeof lines / sizeof lines[0] };

void ws_tuned_write(ws_text *t) {
  ws_text_add(t, WS_TUNING_HEADER);
  for (int i = 0; i < N_LINES; i++) ws_text_add(t, "%s\n", lines[i]);
}

bool ws_tuned_read(const ws_tuning_device *device, ws_tuning_list *list) {
  char words[WS_ARCH_BYTES + 32];
  ws_tuning_entry entry;
  bool ok = true;
  if (device->is_gpu)
    snprintf(words, sizeof words, " arch=%s units=%d ", device->arch, device->units);
  else /* the threads of a call are of its kind, whatever the machine has */
    snprintf(words, sizeof words, " arch=%s ", device->arch);
  for (int i = 0; i < N_LINES && ok; i++)
    if (strstr(lines[i], words) && ws_tuning_read_line(lines[i], strlen(lines[i]), &entry)) ok = ws_tuning_list_add(list, &entry);
  return ok;
}
