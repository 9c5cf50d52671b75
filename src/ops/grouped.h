/* grouped.h - groups of products, checked: to the backend in whose memory they lie. */
#ifndef WS_OPS_GROUPED_H
#define WS_OPS_GROUPED_H
#include "core/backend.h"
#include "core/groups.h"

/* Whether the host cannot read the ends: they are in device memory. NOT_SUPPORTED: so are other arrays. */
wsgemm_status ws_groups_locate(const ws_call *call, const ws_groups *groups, bool *are_on_device);
/* Ragged ones, whose ends nobody has looked at. */
wsgemm_status ws_grouped_on_device(const ws_call *call, const ws_groups *groups);
wsgemm_status ws_grouped(const ws_call *call, const ws_groups *groups);
#endif
