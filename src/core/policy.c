/* policy.c - see policy.h. */
#include "core/policy.h"

const char *ws_policy_name(wsgemm_policy policy) {
  static const char *const names[] = {
#define NAME(enumerator, name) [WSGEMM_POLICY_##enumerator] = name,
      WSGEMM_POLICY_MAP(NAME)
#undef NAME
  };
  return names[policy];
}
