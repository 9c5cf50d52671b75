/* room.h - memory for a few panels, which a worker takes for an item and gives back: without a lock, and
 * without the system but for the first time that so many workers have some at once. */
#ifndef WS_CPU_ROOM_H
#define WS_CPU_ROOM_H
#include <stddef.h>

#define WS_ROOM_BYTES ((size_t)96 << 10)

typedef struct ws_room {
  char *at; /* at a page boundary */
  int idx;  /* room.c's */
} ws_room;

/* bytes: at most WS_ROOM_BYTES. Never missing: where there is no memory, or hundreds of threads have rooms, there is one room of the library's own, for
 * which one thread at a time waits. So nobody may hold two, nor wait for another thread with one. */
ws_room ws_room_take(size_t bytes);
void ws_room_give(const ws_room *room);

/* For fork handlers: nobody may be mapping rooms, or have the library's own, while the process is copied. A child has
 * but the forking thread, which has none. */
void ws_room_lock(void);
void ws_room_unlock(void);
void ws_room_unlock_in_child(void);
#endif
