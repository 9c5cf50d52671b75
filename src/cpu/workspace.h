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

/* Room for at most WS_ROOM_BYTES, which is never missing: a workspace, or, where there is no memory, a room
 * of the library's own, for which one thread at a time waits. So nobody may hold two, nor wait for another
 * thread with one. */
#define WS_ROOM_BYTES ((size_t)96 << 10)
typedef struct ws_room {
  char *at; /* at a page boundary */
  ws_workspace *workspace;
} ws_room;
ws_room ws_room_take(size_t bytes);
void ws_room_give(const ws_room *room);

/* For fork handlers: nobody may hold the list's lock, or the room, while the process is copied. */
void ws_workspace_lock(void);
void ws_workspace_unlock(void);
#endif
