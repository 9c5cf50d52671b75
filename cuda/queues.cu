/* queues.cu - the ticket queues of all streams and captured launches of a device: memory of the image, so that a call allocates
 * nothing; zero when it is loaded, and again after every launch. */
#include "sched.h"

extern "C" __device__ ws_ticket_queue ws_ticket_queues[WS_N_QUEUES];
extern "C" __device__ ws_ticket_queue ws_ticket_queues[WS_N_QUEUES] = {};
