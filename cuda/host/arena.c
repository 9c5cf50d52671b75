/* arena.c - where tuning measures products on a GPU: operands of its own in device memory, times by
 * events, and the candidates for a product. Unlike calls on matrices it initialises the driver,
 * allocates and waits. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/status.h"
#include "cuda/host/backend.h"
#include "cuda/host/device.h"
#include "cuda/host/gemm_plan.h"
#include "cuda/host/launch.h"
#include "cuda/host/level3.h"
#include "cuda/host/plan.h"
#include "cuda/shared/arena_args.h"
#include "cuda/shared/triangle_args.h"
#include "tune/tuning.h"

typedef struct cuda_arena {
  ws_device *device;
  CUstream stream;
  bool is_open, is_pushed;     /* pushed: the device's context, where another was current */
  CUstreamCaptureMode capture; /* of this thread, before */
  CUdeviceptr a, b, c, expected, cache, n_different;
  size_t c_bytes, cache_bytes;
  CUevent begin, end;
} cuda_arena;

static wsgemm_status checked(ws_arena *arena, const char *what, CUresult result) {
  if (result == CUDA_SUCCESS) return WSGEMM_SUCCESS;
  return ws_fail_cuda(arena->h, what, result);
}

/* ---- operands -------------------------------------------------------------------------------- */

static wsgemm_status launch(ws_arena *arena, int which, const char *name, ws_arena_args *args) {
  enum { N_THREADS = 256, BLOCKS_PER_SM = 8 };
  const cuda_arena *own = arena->own;
  CUresult result;
  CUkernel kernel = ws_device_plain_kernel(own->device, which, &result);
  if (!kernel) return ws_fail_kernel(arena->h, name, own->device, result);
  const ws_launch l = {.kernel = kernel,
                       .n_blocks = (int64_t)own->device->n_sms * BLOCKS_PER_SM,
                       .n_threads = N_THREADS,
                       .cluster = 1,
                       .args = {.arena = *args}};
  return checked(arena, "launch", ws_launch_make(&l, own->stream));
}

static wsgemm_status fill(ws_arena *arena, CUdeviceptr to, size_t bytes, wsgemm_type type, uint64_t seed) {
  static const ws_real reals[WS_N_TYPES] = {WS_REAL_F32, WS_REAL_F64, WS_REAL_F32, WS_REAL_F64, WS_REAL_F16, WS_REAL_BF16};
  ws_arena_args args = {.x = (void *)(uintptr_t)to, .seed = seed, .real = reals[type]};
  args.n = bytes / (size_t)(ws_types[type].bytes / ws_types[type].n_real);
  return launch(arena, WS_KERNEL_FILL, "fill", &args);
}

static wsgemm_status allocate(ws_arena *arena, size_t a_bytes, size_t b_bytes) {
  cuda_arena *own = arena->own;
  const struct {
    CUdeviceptr *at;
    size_t bytes;
  } wanted[] = {{&own->a, a_bytes},
                {&own->b, b_bytes},
                {&own->c, own->c_bytes},
                {&own->expected, own->c_bytes},
                {&own->cache, own->cache_bytes},
                {&own->n_different, sizeof(uint32_t)}};
  for (size_t i = 0; i < sizeof wanted / sizeof wanted[0]; i++) {
    const CUresult result = ws_cuda.cuMemAlloc(wanted[i].at, wanted[i].bytes);
    if (result != CUDA_SUCCESS) {
      *wanted[i].at = 0;
      return checked(arena, "operands", result);
    }
  }
  return WSGEMM_SUCCESS;
}

/* The other triangle of a triangular operand becomes zeros, as rows that multiply it as a general
 * matrix find them: how many of these an item passes over is the row's business. */
static wsgemm_status clear_triangle(ws_arena *arena, const ws_matrix *x, CUdeviceptr at, int64_t n) {
  const cuda_arena *own = arena->own;
  ws_launch_list list = {.n = 0};
  const ws_triangle_args args = {.work = WS_TRIANGLE_ADD,
                                 .structure = WS_TRIANGULAR,
                                 .is_lower = !x->stored_upper,
                                 .n = n,
                                 .n_batch = x->stride > 0 ? arena->problem.batch_count : 1,
                                 .d = (const void *)(uintptr_t)at,
                                 .y = (void *)(uintptr_t)at,
                                 .of_d = {1, x->ld, x->stride},
                                 .of_y = {1, x->ld, x->stride}};
  if (!ws_is_triangular((ws_structure)x->structure)) return WSGEMM_SUCCESS;
  const wsgemm_status status = ws_add_write_out(arena->h, x->type, &args, own->device, &list);
  return status ? status : checked(arena, "launch", ws_launch_make(&list.entry[0], own->stream));
}

/* The driver, the device and its context. */
static wsgemm_status open_device(ws_arena *arena) {
  cuda_arena *own = arena->own;
  const char *missing = ws_driver_load_tools();
  if (missing) return ws_fail(arena->h, WSGEMM_INSUFFICIENT_DRIVER, "the GPU driver is too old: it has no %s", missing);
  if (ws_driver_is_lost()) return ws_fail(arena->h, WSGEMM_NO_DEVICE, "the GPU is lost by fork(); only the parent can use it");
  wsgemm_status status = checked(arena, "driver", ws_cuda.cuInit(0));
  if (status) return status;
  ws_driver_note_use();
  own->device = ws_device_enter(arena->h, arena->device, NULL, &own->is_pushed, &status);
  if (!own->device) return status;
  /* what is allocated here is none of the captures' of other streams */
  own->capture = CU_STREAM_CAPTURE_MODE_RELAXED;
  CUresult result = ws_cuda.cuThreadExchangeStreamCaptureMode(&own->capture);
  if (result != CUDA_SUCCESS) return checked(arena, "capture mode", result);
  own->is_open = true;
  own->stream = ws_stream_get(arena->h);
  CUstreamCaptureStatus capturing;
  result = ws_cuda.cuStreamIsCapturing(own->stream, &capturing);
  if (result != CUDA_SUCCESS) return checked(arena, "stream", result);
  if (capturing != CU_STREAM_CAPTURE_STATUS_NONE)
    return ws_fail(arena->h, WSGEMM_CAPTURE_UNSAFE, "the handle's stream is being captured; tuning waits for it");
  return WSGEMM_SUCCESS;
}

/* A Level 3 call is a list of launches; what is tuned is one of its largest products. */
static wsgemm_status take_product(ws_arena *arena) {
  const cuda_arena *own = arena->own;
  const ws_call call = ws_call_of(arena->h);
  const ws_caller_workspace w = ws_caller_workspace_get(arena->h);
  ws_level3_cut cut;
  if (arena->is_system)
    cut = ws_cut_system(&call, &arena->system, own->device);
  else if (ws_is_structured(&arena->problem))
    cut = ws_cut_structured(&call, &arena->problem, own->device, ws_most_copies_bytes(&w, own->device));
  else
    return WSGEMM_SUCCESS;
  if (!cut.has_product)
    return ws_fail(arena->h, WSGEMM_NOT_SUPPORTED, "the call is one diagonal block: there is nothing to choose");
  arena->problem = cut.product;
  arena->is_system = false;
  return WSGEMM_SUCCESS;
}

static wsgemm_status open_arena(ws_arena *arena) {
  /* so that the launches of a run are on their way before the device is done with it */
  enum { CACHES = 4 };
  ws_problem *p = &arena->problem;
  const bool is_one_matrix = p->c.region != WS_ALL && p->a.data == p->b.data;
  cuda_arena *own = arena->own = calloc(1, sizeof *own);
  if (!own) return ws_fail(arena->h, WSGEMM_ALLOC_FAILED, "no memory for an arena");
  wsgemm_status status = open_device(arena);
  if (!status) status = take_product(arena);
  if (status) return status;
  int l2_bytes = 0;
  ws_cuda.cuDeviceGetAttribute(&l2_bytes, CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE, own->device->ordinal);
  own->cache_bytes = CACHES * (size_t)ws_max(l2_bytes, 1 << 20);
  const size_t a_bytes = ws_arena_bytes(p, p->a.ld, p->a.trans ? p->m : p->k, &p->a.stride, p->a.type);
  const size_t b_bytes = ws_arena_bytes(p, p->b.ld, p->b.trans ? p->k : p->n, &p->b.stride, p->a.type);
  own->c_bytes = ws_arena_bytes(p, p->c.ld, p->n, &p->c.stride, p->c.type);
  status = allocate(arena, a_bytes, b_bytes);
  if (!status) status = checked(arena, "event", ws_cuda.cuEventCreate(&own->begin, CU_EVENT_DEFAULT));
  if (!status) status = checked(arena, "event", ws_cuda.cuEventCreate(&own->end, CU_EVENT_DEFAULT));
  if (!status) status = fill(arena, own->a, a_bytes, p->a.type, 3 * arena->seed);
  if (!status) status = fill(arena, own->b, b_bytes, p->a.type, 3 * arena->seed + 1);
  if (!status) status = clear_triangle(arena, &p->a, own->a, p->k);
  if (!status) status = clear_triangle(arena, &p->b, own->b, p->k);
  p->a.data = (const void *)(uintptr_t)own->a, p->c.data = (void *)(uintptr_t)own->c;
  p->b.data = is_one_matrix ? p->a.data : (const void *)(uintptr_t)own->b;
  ws_arena_describe(arena);
  return status;
}

static void close_arena(ws_arena *arena) {
  cuda_arena *own = arena->own;
  if (!own) return;
  const CUdeviceptr memory[] = {own->a, own->b, own->c, own->expected, own->cache, own->n_different};
  if (own->a) ws_cuda.cuStreamSynchronize(own->stream); /* not one that is being captured */
  for (size_t i = 0; i < sizeof memory / sizeof memory[0]; i++)
    if (memory[i]) ws_cuda.cuMemFree(memory[i]);
  if (own->is_open) ws_cuda.cuThreadExchangeStreamCaptureMode(&own->capture);
  if (own->begin) ws_cuda.cuEventDestroy(own->begin);
  if (own->end) ws_cuda.cuEventDestroy(own->end);
  ws_device_leave(own->is_pushed);
  free(own);
}

/* ---- measuring ------------------------------------------------------------------------------- */

/* The plan that the problem's own call would make. */
static wsgemm_status plan_of(ws_arena *arena, const ws_tuning *tuning, ws_problem *p, ws_gpu_plan *plan) {
  const cuda_arena *own = arena->own;
  int n_slices = 0;
  *p = arena->problem;
  p->tuning = tuning;
  const ws_call call = ws_call_of(arena->h);
  const ws_row_kind kind = ws_gpu_kind_in_workspace(&call, p, own->device, &n_slices);
  return ws_gpu_plan_make(&call, p, own->device, kind, n_slices, plan);
}

static wsgemm_status prepare(ws_arena *arena, const ws_tuning *tuning) {
  cuda_arena *own = arena->own;
  ws_problem p;
  ws_gpu_plan plan;
  const wsgemm_status status = plan_of(arena, tuning, &p, &plan); /* loads the kernel */
  return status ? status : fill(arena, own->c, own->c_bytes, arena->problem.c.type, 3 * arena->seed + 2);
}

static wsgemm_status run(ws_arena *arena, const ws_tuning *tuning, double *us) {
  cuda_arena *own = arena->own;
  ws_problem p = arena->problem;
  float ms = 0;
  p.tuning = tuning;
  if (!p.scale.beta_zero) { /* else it might grow beyond all bounds */
    const wsgemm_status filled = fill(arena, own->c, own->c_bytes, p.c.type, 3 * arena->seed + 2);
    if (filled) return filled;
  }
  CUresult result = ws_cuda.cuMemsetD32Async(own->cache, 0, own->cache_bytes / 4, own->stream);
  if (result == CUDA_SUCCESS) result = ws_cuda.cuEventRecord(own->begin, own->stream);
  if (result != CUDA_SUCCESS) return checked(arena, "clearing of the cache", result);
  const ws_call call = ws_call_of(arena->h);
  const wsgemm_status status = ws_cuda_product(&call, &p, arena->device);
  if (status) return status;
  result = ws_cuda.cuEventRecord(own->end, own->stream);
  if (result == CUDA_SUCCESS) result = ws_cuda.cuEventSynchronize(own->end);
  if (result == CUDA_SUCCESS) result = ws_cuda.cuEventElapsedTime(&ms, own->begin, own->end);
  *us = ms * 1e3;
  return checked(arena, "run", result);
}

static wsgemm_status keep(ws_arena *arena) {
  const cuda_arena *own = arena->own;
  return checked(arena, "copy", ws_cuda.cuMemcpyDtoDAsync(own->expected, own->c, own->c_bytes, own->stream));
}

static wsgemm_status differs(ws_arena *arena, bool *answer) {
  cuda_arena *own = arena->own;
  uint32_t n_different = 1;
  ws_arena_args args = {.x = (void *)(uintptr_t)own->c,
                        .y = (const void *)(uintptr_t)own->expected,
                        .n = own->c_bytes / 4,
                        .n_different = (uint32_t *)(uintptr_t)own->n_different};
  wsgemm_status status = checked(arena, "counter", ws_cuda.cuMemsetD32Async(own->n_different, 0, 1, own->stream));
  if (!status) status = launch(arena, WS_KERNEL_COMPARE, "compare", &args);
  if (!status)
    status =
        checked(arena, "counter", ws_cuda.cuMemcpyDtoHAsync(&n_different, own->n_different, sizeof n_different, own->stream));
  if (!status) status = checked(arena, "comparison", ws_cuda.cuStreamSynchronize(own->stream));
  *answer = n_different != 0;
  return status;
}

/* ---- candidates ------------------------------------------------------------------------------ */

typedef struct listing {
  const ws_gpu_plan *plan;
  const ws_device *device;
  ws_call call;
  ws_candidate *list;
  int n;
} listing;

/* A round of as many items as the device has at once reads a swizzle group of `order` rows of tiles
 * and as many columns as it takes, once. */
static double traffic_us_per_k(const listing *l, const ws_cuda_row *row, const ws_tile_grid *grid) {
  /* H200: 4.0 of 4.8 TB/s */
  const double memory_bytes_per_us = 4e6, element = ws_types[row->type].bytes;
  const double items = (double)l->device->n_sms * (row->blocks > 0 ? row->blocks : 1) / row->cluster;
  const double n_rows = (double)ws_min(grid->swizzle, grid->n_rows), columns = ceil(items / n_rows);
  const double of_round = (n_rows * row->bm + ws_min((int64_t)columns * grid->coarse, grid->n_cols) * (double)row->bn) * element;
  return of_round * ceil((double)ws_gpu_plan_items(l->plan->problem, row, grid) / items) / memory_bytes_per_us;
}

/* Time in us: the rows' own, or that of the memory, if that takes longer; what is not built in is
 * tried after what is. */
static double model_of(const listing *l, const ws_tuning *t) {
  const ws_cuda_row *row = ws_cuda_row_at(t->row - 1);
  ws_tile_grid grid = ws_gpu_plan_grid(l->plan->problem, row, l->plan->split.n_splits);
  grid.swizzle = t->order;
  const double row_us = ws_gpu_plan_us(l->plan, t->row - 1, l->device);
  const double traffic_us = traffic_us_per_k(l, row, &grid) * (double)l->plan->problem->k;
  const double unusual = (t->policy == WSGEMM_POLICY_STEAL ? 0 : 0.01) + (t->quantum > 0 ? 0.03 : 0);
  return fmax(row_us, traffic_us) + 0.05 * traffic_us + unusual * row_us;
}

static void add(listing *l, const ws_tuning *t) {
  for (int i = 0; i < l->n; i++)
    if (memcmp(&l->list[i].tuning, t, sizeof *t) == 0) return;
  if (l->n == WS_MOST_CANDIDATES) return;
  ws_candidate *c = &l->list[l->n++];
  c->tuning = *t;
  ws_text row = {c->row, sizeof c->row, 0};
  ws_text_add(&row, "%s", ws_cuda_row_at(t->row - 1)->name);
  c->model = model_of(l, t);
}

/* Of a row: in which order items come, and who works on them; each with the other as it is built
 * in, where they are of any consequence. Not FIXED_BLOCKS: a search on an idle device does not see
 * what it costs where SMs are held by others. */
static void add_of_row(listing *l, const ws_tuning *base, int row_idx) {
  static const int orders[] = {1, 2, 4, 6, 12, 16, 32}, quanta[] = {4, 16};
  const ws_cuda_row *row = ws_cuda_row_at(row_idx);
  const ws_tile_grid grid = ws_gpu_plan_grid(l->plan->problem, row, l->plan->split.n_splits);
  const int64_t n_places = (int64_t)l->device->n_sms * (row->blocks > 0 ? row->blocks : 1) / row->cluster;
  const int64_t n_items = ws_gpu_plan_items(l->plan->problem, row, &grid);
  const bool order_matters = grid.n_rows > 1 && n_items > n_places / 2;
  const bool sharing_matters = l->plan->split.n_splits == 1 && n_items > n_places && !row->is_once &&
                               !ws_has_entry_for_ops(row->kind); /* they are not persistent */
  const bool policy_is_free = l->call.settings.policy == WSGEMM_POLICY_AUTO, quantum_is_free = l->call.settings.quantum == 0;
  ws_tuning t = *base;
  t.row = row_idx + 1;
  add(l, &t);
  for (size_t i = 0; order_matters && i < sizeof orders / sizeof orders[0]; i++)
    if (orders[i] < 2 * grid.n_rows) t.order = orders[i], add(l, &t);
  t = *base, t.row = row_idx + 1;
  if (sharing_matters && policy_is_free) t.policy = WSGEMM_POLICY_FIXED_WORK, add(l, &t);
  t = *base, t.row = row_idx + 1;
  for (size_t i = 0; sharing_matters && quantum_is_free && i < sizeof quanta / sizeof quanta[0]; i++)
    t.quantum = quanta[i], add(l, &t);
}

static int policy_of(const ws_gpu_plan *plan) {
  static const int policies[] = {[WS_SCHED_STATIC] = WSGEMM_POLICY_FIXED_BLOCKS,
                                 [WS_SCHED_QUEUE] = WSGEMM_POLICY_STEAL,
                                 [WS_SCHED_CLC] = WSGEMM_POLICY_CLC,
                                 [WS_SCHED_FOREACH] = WSGEMM_POLICY_FOREACH};
  _Static_assert(sizeof policies / sizeof policies[0] == WS_N_SCHEDS, "a policy for each scheduler");
  return plan->fixed_work ? WSGEMM_POLICY_FIXED_WORK : policies[plan->sched];
}

static wsgemm_status list_candidates(ws_arena *arena, ws_candidate *candidates, int *n) {
  const cuda_arena *own = arena->own;
  ws_problem p;
  ws_gpu_plan plan;
  const wsgemm_status status = plan_of(arena, &ws_tuning_of_model, &p, &plan);
  *n = 0;
  if (status || plan.kind == WS_ROW_VECTOR) return status;
  listing l = {&plan, own->device, ws_call_of(arena->h), candidates, 0};
  const int coarse = (int)l.call.settings.coarse;
  const ws_tuning built_in = {
      .row = plan.row_idx + 1, .policy = policy_of(&plan), .order = (int)plan.grid.swizzle, .quantum = (int)plan.quantum};
  arena->entry.kind = ws_gpu_tuning_kind(&plan);
  add_of_row(&l, &built_in, plan.row_idx);
  const bool is_forced = ws_forced_row(l.call.forced[WS_CUDA], p.a.type) != 0;
  for (int r = 0; r < ws_cuda_row_count() && !is_forced; r++)
    if (ws_gpu_plan_may_take(&plan, r) && (coarse == 0 || ws_cuda_row_at(r)->coarse == coarse)) add_of_row(&l, &built_in, r);
  *n = l.n;
  return WSGEMM_SUCCESS;
}

const ws_arena_class ws_cuda_arena = {open_arena, list_candidates, prepare, run, keep, differs, ws_arena_now_ms, close_arena};
