/* policy.h - who works on which tile: the policies' names. */
#ifndef WS_POLICY_H
#define WS_POLICY_H
#include "wsgemm.h"

/* "auto", "fixed_work", ... */
const char *ws_policy_name(wsgemm_policy policy);
/* WSGEMM_POLICY_MAP(WS_POLICY_LISTED): all names, each with ", " before it. */
#define WS_POLICY_LISTED(enumerator, name) ", " name
#endif
