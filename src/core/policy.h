/* policy.h - who works on which tile: how many policies there are, and their names. */
#ifndef WS_POLICY_H
#define WS_POLICY_H
#include "wsgemm.h"

/* They are the numbers from 0 on. */
#define WS_POLICY_COUNTED(enumerator, name) +1
enum { WS_N_POLICIES = 0 WSGEMM_POLICY_MAP(WS_POLICY_COUNTED) };

/* "auto", "fixed_work", ...; -1: none is called so. */
const char *ws_policy_name(wsgemm_policy policy);
int ws_policy_find(const char *name);
/* WSGEMM_POLICY_MAP(WS_POLICY_LISTED): all names, each with ", " before it. */
#define WS_POLICY_LISTED(enumerator, name) ", " name
#endif
