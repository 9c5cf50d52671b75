/* grouped.h - groups of products, checked: to the backend in whose memory they lie. */
#ifndef WS_OPS_GROUPED_H
#define WS_OPS_GROUPED_H
#include "core/backend.h"
#include "core/groups.h"

/* NOT_SUPPORTED: offsets or arrays are in memory that the host cannot read. */
wsgemm_status ws_groups_readable(const ws_call *call, const ws_groups *groups);
wsgemm_status ws_grouped(const ws_call *call, const ws_groups *groups);
#endif
