/* grouped.h - groups of products, checked: to the backend in whose memory they lie. */
#ifndef WS_OPS_GROUPED_H
#define WS_OPS_GROUPED_H
#include "core/backend.h"
#include "core/groups.h"

/* *device: in whose memory the arrays of groups are, so that the host cannot read them; -1: in the host's. */
wsgemm_status ws_groups_locate(const ws_call *call, const ws_groups *groups, int *device);
/* Groups whose arrays are there; nobody has looked at them. */
wsgemm_status ws_grouped_on_device(const ws_call *call, const ws_groups *groups, int device);
wsgemm_status ws_grouped(const ws_call *call, const ws_groups *groups);
#endif
