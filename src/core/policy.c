/* policy.c - see policy.h. */
#include "core/policy.h"

#include <string.h>

static const char *const names[WS_N_POLICIES] = {
#define NAME(enumerator, name) [WSGEMM_POLICY_##enumerator] = name,
    WSGEMM_POLICY_MAP(NAME)
#undef NAME
};

const char *ws_policy_name(wsgemm_policy policy) { return names[policy]; }

int ws_policy_find(const char *name) {
  for (int policy = 0; policy < WS_N_POLICIES; policy++)
    if (strcmp(names[policy], name) == 0) return policy;
  return -1;
}
