/* workspace.h - memory for packed operands, kept between calls. */
#ifndef WS_CPU_WORKSPACE_H
#define WS_CPU_WORKSPACE_H
#include <stddef.h>

typedef struct ws_workspace ws_workspace;

/* At least `bytes` bytes at a page boundary, or NULL. Several threads may hold workspaces at
 * once. */
ws_workspace *ws_workspace_get(size_t bytes);
void *ws_workspace_data(ws_workspace *w);
void ws_workspace_put(ws_workspace *w);

/* For fork handlers: nobody may hold the list's lock while the process is copied. */
void ws_workspace_lock(void);
void ws_workspace_unlock(void);
#endif
