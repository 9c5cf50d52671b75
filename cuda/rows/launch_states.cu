/* launch_states.cu - the launch states of all streams and captured launches of a device: memory of
 * the image, so that a call allocates nothing; zero when it is loaded, and clean again after every
 * launch. */
#include "cuda/shared/launch_state.h"

extern "C" __device__ ws_launch_state ws_launch_states[WS_N_STATES];
extern "C" __device__ ws_launch_state ws_launch_states[WS_N_STATES] = {};
