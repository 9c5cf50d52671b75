/* arrays.c - reading NumPy's arrays, torch's tensors and CuPy's arrays. */
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
  array->data = (uintptr_t)own->data, array->type = (uintptr_t)own->type;
  array->device = WS_ON_HOST, array->n_dims = own->n_dims;
  array->shape = (const int64_t *)own->shape, array->strides = (const int64_t *)own->strides;
  array->is_writeable = own->flags & NUMPY_WRITEABLE, array->is_conjugated = false;
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
  array->data = (uintptr_t)seen.data + seen.offset;
  array->type = (uint64_t)seen.code << 32 | (uint64_t)seen.bits << 16 | seen.lanes;
  array->device = seen.device_type == DLPACK_CUDA ? seen.device : WS_ON_HOST;
  array->n_dims = seen.n_dims, array->shape = seen.shape, array->strides = seen.strides;
  array->is_writeable = true;
  if (is_set(reader->is_neg, x)) return false; /* the long way computes with such */
  const int is_conjugated = seen.code == DLPACK_COMPLEX ? is_set(reader->is_conj, x) : 0;
  array->is_conjugated = is_conjugated > 0;
  return is_conjugated >= 0;
}

/* ---- CuPy --------------------------------------------------------------------------------------------------------------- */

enum { NAME_DATA, NAME_PTR, NAME_DEVICE_ID, NAME_SHAPE, NAME_STRIDES, NAME_DTYPE, N_NAMES };
static PyObject *names[N_NAMES];

bool ws_arrays_init(void) {
  static const char *const texts[N_NAMES] = {"data", "ptr", "device_id", "shape", "strides", "dtype"};
  for (int i = 0; i < N_NAMES; i++)
    if (!names[i] && !(names[i] = PyUnicode_InternFromString(texts[i]))) return false;
  return true;
}

/* A whole number that an attribute is; false: an exception. */
static bool read_attribute(PyObject *x, int name, int64_t *number) {
  PyObject *told = PyObject_GetAttr(x, names[name]);
  if (!told) return false;
  *number = PyLong_AsLongLong(told);
  Py_DECREF(told);
  return !PyErr_Occurred();
}

/* A tuple of few whole numbers. */
static bool read_tuple(PyObject *x, int name, int64_t *numbers, int *n) {
  PyObject *told = PyObject_GetAttr(x, names[name]);
  const Py_ssize_t n_told = told && PyTuple_Check(told) ? PyTuple_Size(told) : -1;
  const bool is_good = n_told >= 0 && n_told <= WS_MOST_DIMS;
  for (Py_ssize_t i = 0; is_good && i < n_told; i++) numbers[i] = PyLong_AsLongLong(PyTuple_GetItem(told, i));
  *n = (int)n_told;
  Py_XDECREF(told);
  return is_good && !PyErr_Occurred();
}

static bool read_place(PyObject *x, int64_t *address, int64_t *device) {
  PyObject *data = PyObject_GetAttr(x, names[NAME_DATA]);
  const bool is_good =
      data && read_attribute(data, NAME_PTR, address) && (!device || read_attribute(data, NAME_DEVICE_ID, device));
  Py_XDECREF(data);
  return is_good;
}

static bool read_told(PyObject *x, ws_array *array) {
  int64_t address, device;
  int n_strides;
  PyObject *type = PyObject_GetAttr(x, names[NAME_DTYPE]);
  Py_XDECREF(type); /* the array has it */
  array->type = (uintptr_t)type, array->is_writeable = true, array->is_conjugated = false;
  if (!type || !read_place(x, &address, &device) || !read_tuple(x, NAME_SHAPE, array->told, &array->n_dims) ||
      !read_tuple(x, NAME_STRIDES, array->told + array->n_dims, &n_strides) || n_strides != array->n_dims)
    return false;
  array->data = (uintptr_t)address, array->device = (int)device;
  array->shape = array->told, array->strides = array->told + array->n_dims;
  return true;
}

/* A function without arguments: its whole number, or of what it gives an attribute. */
static bool ask(PyObject *function, int name, int64_t *number) {
  PyObject *answer = PyObject_CallFunctionObjArgs(function, NULL);
  bool is_good = answer;
  if (answer && name < N_NAMES)
    is_good = read_attribute(answer, name, number);
  else if (answer)
    *number = PyLong_AsLongLong(answer), is_good = !PyErr_Occurred();
  Py_XDECREF(answer);
  return is_good;
}

/* ---- All ---------------------------------------------------------------------------------------------------------------- */

bool ws_is_current(const ws_reader *reader, int device) {
  int64_t current;
  if (reader->source != WS_OF_CUPY) return true;
  if (ask(reader->get_device, N_NAMES, &current)) return current == device;
  PyErr_Clear();
  return false;
}

bool ws_current_stream(const ws_reader *reader, int device, void **stream) {
  int64_t address;
  union {
    void *place;
    intptr_t (*call)(void);
  } function;
  if (reader->source == WS_OF_TORCH) return !reader->tensors->current_stream(DLPACK_CUDA, device, stream);
  if (PyLong_Check(reader->get_stream)) {
    function.place = PyLong_AsVoidPtr(reader->get_stream);
    address = function.call();
    if (PyErr_Occurred()) return false;
  } else if (!ask(reader->get_stream, NAME_PTR, &address)) {
    return false;
  }
  *stream = (void *)(uintptr_t)address; /* NOLINT: it is an address */
  return true;
}

static bool read_any(const ws_reader *reader, PyObject *x, ws_array *array) {
  return reader->source == WS_OF_NUMPY   ? read_numpy(x, array)
         : reader->source == WS_OF_TORCH ? read_tensor(reader, x, array)
                                         : read_told(x, array);
}

bool ws_read_array(const ws_reader *reader, PyObject *x, ws_array *array) {
  PyObject *type = (PyObject *)Py_TYPE(x);
  if (type != reader->types[0] && type != reader->types[1]) return false;
  if (read_any(reader, x, array)) return true;
  PyErr_Clear();
  return false;
}

bool ws_read_address(const ws_reader *reader, PyObject *x, uintptr_t *address) {
  dlpack_tensor seen;
  int64_t told;
  if (reader->source == WS_OF_NUMPY) return *address = (uintptr_t)((const numpy_array *)x)->data, true;
  if (reader->source == WS_OF_CUPY) {
    if (!read_place(x, &told, NULL)) return PyErr_Clear(), false;
    return *address = (uintptr_t)told, true;
  }
  if (reader->tensors->look(x, &seen)) return PyErr_Clear(), false;
  *address = (uintptr_t)seen.data + seen.offset;
  return true;
}
