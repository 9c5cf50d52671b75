/* policy.c - see policy.h. */
#include "core/policy.h"

const char *ws_policy_name(wsgemm_policy policy) {
  static const char *const names[] = {"auto", "fixed_work", "fixed_blocks", "steal", "clc", "foreach"};
  return names[policy];
}
