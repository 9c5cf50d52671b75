/* test_backend_old_driver.c - a driver from before CUDA 12, which cannot even be asked for its
 * entry points: device memory is refused in so many words, and nothing else changes. */
#include "fake_driver.h"
#include "support/gemm_call.h"

#include <string.h>

static void driver_without_get_proc_address(void) {
  wsgemm_gemm_desc d = gemm_desc(WSGEMM_F64, WSGEMM_COL_MAJOR, WSGEMM_NO_TRANS, WSGEMM_NO_TRANS, 8, 8, 8);
  static double host[3][64];
  char text[1024];
  void *device = fake_alloc(FAKE_DEVICE, 0, 4096);
  REQUIRE(device != NULL, "address space");
  for (int i = 0; i < 64; i++) host[0][i] = host[1][i] = 1;
  for (int operands = 0; operands < 8; operands++) {
    d.a = operands & 1 ? device : host[0], d.b = operands & 2 ? device : host[1], d.c = operands & 4 ? device : host[2];
    const wsgemm_status status = wsgemm_gemm(NULL, &d);
    if (operands == 0)
      CHECK(status == WSGEMM_SUCCESS && host[2][0] == 8 && host[2][63] == 8, "host memory: %s", wsgemm_last_error());
    else
      CHECK(status == WSGEMM_INSUFFICIENT_DRIVER && strstr(wsgemm_last_error(), "no cuGetProcAddress_v2"),
            "device memory: %s (%s)", wsgemm_status_name(status), wsgemm_last_error());
  }
  CHECK(wsgemm_set_workspace(NULL, device, 4096) == WSGEMM_INSUFFICIENT_DRIVER &&
            wsgemm_set_workspace(NULL, NULL, 0) == WSGEMM_SUCCESS,
        "workspace: %s", wsgemm_last_error());
  wsgemm_machine(text, sizeof text);
  CHECK(strstr(text, "too old: it has no cuGetProcAddress_v2"), "%s", text);
  CHECK(fake.n_calls == 0 && !fake.trapped, "%d driver calls", fake.n_calls);
}

static const struct check_case cases[] = {{"driver_without_get_proc_address", driver_without_get_proc_address}};
CHECK_MAIN("backend_old_driver", cases)
