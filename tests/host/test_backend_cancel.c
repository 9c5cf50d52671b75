/* test_backend_cancel.c - a thread that is to be cancelled (pthread_cancel) calls the library for
 * device memory, with a driver whose functions are places where a cancel acts: the call ends as
 * ever, and the cancel comes after it. A hang is the defect itself: an alarm ends it. */
#define _GNU_SOURCE
#include "fake_calls.h"

#include <pthread.h>
#include <unistd.h>

enum { HANG_S = 60, SIDE = 256 };

static void point_of_cancellation(fake_function function) {
  (void)function;
  pthread_testcancel();
}

static wsgemm_gemm_desc desc_of_product(void) { return device_desc(WSGEMM_F32, SIDE, SIDE, SIDE, 0); }

static void call_gemm(void) {
  const wsgemm_gemm_desc d = desc_of_product();
  CHECK(wsgemm_gemm(NULL, &d) == WSGEMM_SUCCESS, "%s", wsgemm_last_error());
}
static void call_half(void) {
  const wsgemm_gemm_desc d = device_desc(WSGEMM_F16, SIDE, SIDE, SIDE, 0);
  CHECK(wsgemm_gemm(NULL, &d) == WSGEMM_SUCCESS, "%s", wsgemm_last_error());
}
static void call_workspace_size(void) {
  size_t bytes = 0;
  const wsgemm_gemm_desc d = desc_of_product();
  CHECK(wsgemm_get_workspace_size(NULL, &d, &bytes) == WSGEMM_SUCCESS, "%s", wsgemm_last_error());
}
static void call_explain(void) {
  char text[2048];
  const wsgemm_gemm_desc d = desc_of_product();
  CHECK(wsgemm_explain(NULL, &d, text, sizeof text) > 0, "nothing explained");
}
static void call_set_workspace(void) {
  CHECK(wsgemm_set_workspace(NULL, device_memory(0), 4096) == WSGEMM_SUCCESS, "%s", wsgemm_last_error());
  CHECK(wsgemm_set_workspace(NULL, NULL, 0) == WSGEMM_SUCCESS, "%s", wsgemm_last_error());
}
static void call_packed_size(void) {
  size_t bytes = 0;
  const wsgemm_gemm_desc d = desc_of_product();
  CHECK(wsgemm_get_packed_size(NULL, &d, WSGEMM_OPERAND_B, &bytes) == WSGEMM_SUCCESS, "%s", wsgemm_last_error());
}
static void call_prepack(void) {
  size_t bytes = 0;
  wsgemm_packed *packed = NULL;
  const wsgemm_gemm_desc d = desc_of_product();
  wsgemm_get_packed_size(NULL, &d, WSGEMM_OPERAND_B, &bytes);
  const wsgemm_status status = wsgemm_prepack(NULL, &d, WSGEMM_OPERAND_B, device_memory(0), 1 << 20, &packed);
  CHECK(status == (bytes > 0 ? WSGEMM_SUCCESS : WSGEMM_NOT_SUPPORTED), "%s", wsgemm_last_error());
  CHECK(wsgemm_packed_destroy(packed) == WSGEMM_SUCCESS, "%s", wsgemm_last_error());
}
static void call_fallback_count(void) {
  int64_t count = -1;
  CHECK(wsgemm_get_fallback_count(NULL, 0, &count) == WSGEMM_SUCCESS && count == 0, "%lld: %s", (long long)count,
        wsgemm_last_error());
}
static void call_machine(void) {
  char text[4096];
  CHECK(wsgemm_machine(text, sizeof text) > 0, "nothing about this machine");
}

static const struct call {
  const char *name;
  void (*call)(void);
} calls[] = {{"gemm", call_gemm},
             {"half", call_half},
             {"workspace_size", call_workspace_size},
             {"explain", call_explain},
             {"set_workspace", call_set_workspace},
             {"packed_size", call_packed_size},
             {"prepack", call_prepack},
             {"fallback_count", call_fallback_count},
             {"machine", call_machine}};
enum { N_CALLS = sizeof calls / sizeof calls[0] };

struct cancelled {
  const struct call *call;
  bool has_returned;
};

static void *cancelled_thread(void *argument) {
  struct cancelled *self = argument;
  pthread_cancel(pthread_self());
  self->call->call();
  self->has_returned = true;
  pthread_testcancel();
  return NULL;
}

static void call_child(void *argument) {
  struct cancelled self = {argument, false};
  pthread_t thread;
  void *result = NULL;
  alarm(HANG_S);
  device_memory(0);
  fake.device[0].cc = 90;
  for (int turn = 0; turn < 2; turn++) { /* the first call of the library, and a later one */
    self.has_returned = false;
    fake.before_call = point_of_cancellation;
    REQUIRE(pthread_create(&thread, NULL, cancelled_thread, &self) == 0 && pthread_join(thread, &result) == 0, "thread");
    fake.before_call = NULL;
    CHECK(self.has_returned, "%s: cancelled in the middle of the call", self.call->name);
    CHECK(result == PTHREAD_CANCELED, "%s: not cancelled after the call", self.call->name);
    for (int i = 0; i < N_CALLS; i++) calls[i].call(); /* no lock is left */
  }
}

static void every_call(void) {
  for (int i = 0; i < N_CALLS; i++) {
    struct call call = calls[i];
    check_in_child(call.name, call_child, &call);
  }
}

static const struct check_case cases[] = {{"every_call", every_call}};
CHECK_MAIN("backend_cancel", cases)
