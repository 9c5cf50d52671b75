/* internal.h - the core, for files that take all of it. */
#ifndef WS_INTERNAL_H
#define WS_INTERNAL_H
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/backend.h"
#include "core/cgroup.h"
#include "core/handle.h"
#include "core/policy.h"
#include "core/problem.h"
#include "core/processors.h"
#include "core/status.h"
#include "core/text.h"
#include "wsgemm.h"
#endif
