/* arrays.c - reading NumPy's arrays and torch's tensors. */
#include "arrays.h"

/* ---- NumPy -------------------------------------------------------------------------------------------------------------- */

enum { NUMPY_WRITEABLE = 0x400 };

typedef struct numpy_array {
  PyObject head;
  char *data;
  int n_dims;
  Py_ssize_t *shape, *strides;
  PyObject *base, *type;
  int flags;
} numpy_array;

_Static_assert(sizeof(Py_ssize_t) == sizeof(int64_t), "shapes are of 64 bits");

static bool read_numpy(PyObject *x, ws_array *array) {
  const numpy_array *own = (const numpy_array *)x;
  if (own->n_dims > WS_MOST_DIMS) return false;
  *array = (ws_array){.data = (uintptr_t)own->data,
                      .type = (uintptr_t)own->type,
                      .device = WS_ON_HOST,
                      .n_dims = own->n_dims,
                      .shape = (const int64_t *)own->shape,
                      .strides = (const int64_t *)own->strides,
                      .is_writeable = own->flags & NUMPY_WRITEABLE};
  return true;
}

bool ws_knows_numpy(const ws_reader *reader, PyObject *probe, uintptr_t address) {
  ws_array array;
  return ws_read_array(reader, probe, &array) && array.data == address && array.n_dims == 2 && array.shape[0] == 3 &&
         array.shape[1] == 2 && array.strides[0] == 16 && array.strides[1] == 8 && array.is_writeable;
}

/* ---- torch -------------------------------------------------------------------------------------------------------------- */

enum { DLPACK_HOST = 1, DLPACK_CUDA = 2, DLPACK_PINNED = 3, DLPACK_COMPLEX = 5, DLPACK_MAJOR = 1 };

typedef struct dlpack_tensor {
  char *data;
  int32_t device_type, device;
  int32_t n_dims;
  uint8_t code, bits;
  uint16_t lanes;
  int64_t *shape, *strides;
  uint64_t offset;
} dlpack_tensor;

struct ws_dlpack_api {
  uint32_t major, minor;
  const ws_dlpack_api *older;
  void *allocate, *lend, *adopt;
  int (*look)(PyObject *tensor, dlpack_tensor *seen);
  int (*current_stream)(int device_type, int32_t device, void **stream);
};

const ws_dlpack_api *ws_dlpack_of(PyObject *type) {
  PyObject *capsule = PyObject_GetAttrString(type, "__dlpack_c_exchange_api__");
  if (!capsule) return NULL;
  const ws_dlpack_api *api = PyCapsule_GetPointer(capsule, "dlpack_exchange_api");
  Py_DECREF(capsule);
  if (PyErr_Occurred()) return NULL;
  while (api && api->major != DLPACK_MAJOR) api = api->older;
  if (api && api->look && api->current_stream) return api;
  PyErr_SetString(PyExc_AttributeError, "no DLPack interface for C of version 1");
  return NULL;
}

/* -1: an exception. */
static int is_set(PyObject *method, PyObject *x) {
  PyObject *answer = PyObject_CallFunctionObjArgs(method, x, NULL);
  if (!answer) return -1;
  const int is_true = answer == Py_True;
  Py_DECREF(answer);
  return is_true;
}

static bool read_tensor(const ws_reader *reader, PyObject *x, ws_array *array) {
  dlpack_tensor seen;
  if (reader->tensors->look(x, &seen)) return false;
  if (seen.n_dims > WS_MOST_DIMS ||
      (seen.device_type != DLPACK_HOST && seen.device_type != DLPACK_CUDA && seen.device_type != DLPACK_PINNED))
    return false;
  *array = (ws_array){.data = (uintptr_t)seen.data + seen.offset,
                      .type = (uint64_t)seen.code << 32 | (uint64_t)seen.bits << 16 | seen.lanes,
                      .device = seen.device_type == DLPACK_CUDA ? seen.device : WS_ON_HOST,
                      .n_dims = seen.n_dims,
                      .shape = seen.shape,
                      .strides = seen.strides,
                      .is_writeable = true};
  if (is_set(reader->is_neg, x)) return false; /* the long way computes with such */
  const int is_conjugated = seen.code == DLPACK_COMPLEX ? is_set(reader->is_conj, x) : 0;
  array->is_conjugated = is_conjugated > 0;
  return is_conjugated >= 0;
}

bool ws_current_stream(const ws_reader *reader, int device, void **stream) {
  return !reader->tensors->current_stream(DLPACK_CUDA, device, stream);
}

/* ---- Both --------------------------------------------------------------------------------------------------------------- */

bool ws_read_array(const ws_reader *reader, PyObject *x, ws_array *array) {
  PyObject *type = (PyObject *)Py_TYPE(x);
  if (type != reader->types[0] && type != reader->types[1]) return false;
  if (!reader->tensors) return read_numpy(x, array);
  if (read_tensor(reader, x, array)) return true;
  PyErr_Clear();
  return false;
}

bool ws_read_address(const ws_reader *reader, PyObject *x, uintptr_t *address) {
  dlpack_tensor seen;
  if (!reader->tensors) return *address = (uintptr_t)((const numpy_array *)x)->data, true;
  if (reader->tensors->look(x, &seen)) return PyErr_Clear(), false;
  *address = (uintptr_t)seen.data + seen.offset;
  return true;
}
