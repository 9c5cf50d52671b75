/* calls.c - the module wsgemm._calls: the short way of products from Python, in C.
 *
 * A Short is what python/wsgemm/_plans.py does for the arrays of one library, with the same plans: it reads the arrays, finds the
 * plan, has a new result made, and calls the library. What it cannot do is None, and goes the ways that are written in Python.
 * Written in the stable interface of Python 3.10; where it is not built or does not load, all goes those ways. */
#include <stddef.h>
#include <string.h>

#include "plans.h"
#include "progress.h"

typedef int gemm_function(void *handle, const void *desc);

typedef struct ws_short {
  PyObject head;
  ws_reader reader;
  ws_plans plans;
  gemm_function *gemm;
  PyObject *planned, *empty, *written; /* written: told of an out that was given; None: nobody */
  PyObject *check, *pointer_of, *on_stream, *default_handle;
} ws_short;

/* The arguments of matmul(), in their order. */
enum { A, B, OUT, ALPHA, BETA, HANDLE, BIAS, ACTIVATION, IS_TRANSPOSED, N_ARGUMENTS };

static PyObject *name_on_streams, *name_pointer;

/* ---- Keys --------------------------------------------------------------------------------------------------------------- */

static void add_array(ws_key *key, const ws_array *x) {
  uint64_t *word = key->words + key->n_words;
  const size_t n = (size_t)x->n_dims;
  word[0] = x->type;
  word[1] = (uint64_t)(uint32_t)x->device << 32 | (uint64_t)n << 1 | x->is_conjugated;
  memcpy(word + 2, x->shape, n * sizeof *word);
  memcpy(word + 2 + n, x->strides, n * sizeof *word);
  key->n_words += 2 + 2 * (int)n;
}

/* A number of Python's own types; false: another. */
static bool add_number(ws_key *key, PyObject *x) {
  if (!PyFloat_CheckExact(x) && !PyLong_CheckExact(x)) return false;
  const double value = PyFloat_AsDouble(x);
  if (value == -1 && PyErr_Occurred()) return PyErr_Clear(), false;
  memcpy(key->words + key->n_words++, &value, sizeof value);
  return true;
}

static bool add_name(ws_key *key, PyObject *x) {
  enum { MOST_BYTES = 16 };
  memset(key->words + key->n_words, 0, MOST_BYTES);
  if (x != Py_None) {
    Py_ssize_t n_bytes;
    const char *name = PyUnicode_Check(x) ? PyUnicode_AsUTF8AndSize(x, &n_bytes) : NULL;
    if (!name || n_bytes > MOST_BYTES) return PyErr_Clear(), false;
    memcpy(key->words + key->n_words, name, (size_t)n_bytes);
  }
  key->n_words += MOST_BYTES / sizeof *key->words;
  return true;
}

/* A, B, C and the bias; those that are not given are all zero. False: there is no short way. */
static bool read_product(const ws_short *self, PyObject *const *given, ws_key *key, ws_array x[WS_MOST_ARRAYS]) {
  static const int places[WS_MOST_ARRAYS] = {A, B, OUT, BIAS};
  key->n_words = 1;
  key->words[0] = given[IS_TRANSPOSED] == Py_True;
  if (!add_number(key, given[ALPHA]) || !add_number(key, given[BETA])) return false;
  for (int i = 0; i < WS_MOST_ARRAYS; i++) {
    if (given[places[i]] == Py_None) continue;
    if (!ws_read_array(&self->reader, given[places[i]], &x[i])) return false;
    key->words[0] |= (uint64_t)2 << i;
    add_array(key, &x[i]);
  }
  if (given[OUT] != Py_None && !x[2].is_writeable) return false;
  for (int i = 0; i < WS_MOST_ARRAYS; i++)
    if (given[places[i]] != Py_None && x[i].device != x[0].device) return false;
  if (!ws_is_current(&self->reader, x[0].device)) return false;
  return given[ACTIVATION] == Py_None || add_name(key, given[ACTIVATION]);
}

/* ---- Plans -------------------------------------------------------------------------------------------------------------- */

/* What words of the key are the addresses of must stay what it is as long as the key is kept. */
static PyObject *types_of(const ws_short *self, const ws_array x[WS_MOST_ARRAYS]) {
  if (self->reader.source == WS_OF_TORCH) return Py_INCREF(Py_None), Py_None;
  PyObject *kept[3];
  for (int i = 0; i < 3; i++) kept[i] = x[i].type ? (PyObject *)(uintptr_t)x[i].type : Py_None; /* NOLINT: it was an address */
  return PyTuple_Pack(3, kept[0], kept[1], kept[2]);
}

static ws_plan *make_plan(ws_short *self, PyObject *const *given, const ws_key *key, const ws_array x[WS_MOST_ARRAYS]) {
  PyObject *kept = types_of(self, x);
  if (!kept) return NULL;
  PyObject *made = PyObject_CallFunctionObjArgs(self->planned, given[A], given[B], given[OUT], given[ALPHA], given[BETA],
                                                given[BIAS], given[ACTIVATION], given[IS_TRANSPOSED], NULL);
  ws_plan *plan = made ? ws_plan_of(made, kept) : NULL;
  Py_XDECREF(made);
  Py_DECREF(kept);
  if (plan && !ws_plans_keep(&self->plans, key, plan)) ws_plan_release(plan), plan = NULL;
  return plan;
}

/* ---- Calls -------------------------------------------------------------------------------------------------------------- */

static bool meet(uintptr_t x, int64_t x_bytes, uintptr_t y, int64_t y_bytes) {
  return x < y + (uintptr_t)y_bytes && y < x + (uintptr_t)x_bytes;
}

/* An address that Python tells as an int, or None. False: an exception. */
static bool read_pointer(PyObject *told, void **pointer) {
  *pointer = NULL;
  if (!told) return false;
  if (told != Py_None) *pointer = PyLong_AsVoidPtr(told);
  Py_DECREF(told);
  return !PyErr_Occurred();
}

/* The handle for the current stream, which the caller releases once the call has returned; NULL: an exception. */
static PyObject *lend_handle(const ws_short *self, PyObject *settings, int device) {
  void *stream;
  if (!ws_current_stream(&self->reader, device, &stream)) return NULL;
  PyObject *number = PyLong_FromVoidPtr(stream ? stream : (void *)1); /* cudaStreamLegacy */
  if (!number) return NULL;
  PyObject *of_streams = settings == Py_None ? PyObject_GetAttr(self->default_handle, name_on_streams) : NULL;
  PyObject *handle = of_streams ? PyDict_GetItemWithError(of_streams, number) : NULL;
  Py_XINCREF(handle);
  Py_XDECREF(of_streams);
  if (!handle && !PyErr_Occurred()) handle = PyObject_CallFunctionObjArgs(self->on_stream, settings, number, NULL);
  Py_DECREF(number);
  return handle;
}

/* The C handle for the call, and what keeps it alive. */
static bool choose_handle(const ws_short *self, PyObject *settings, int device, PyObject **lent, void **pointer) {
  *pointer = NULL;
  if (device < 0)
    return settings == Py_None || read_pointer(PyObject_CallFunctionObjArgs(self->pointer_of, settings, NULL), pointer);
  *lent = lend_handle(self, settings, device);
  return *lent && read_pointer(PyObject_GetAttr(*lent, name_pointer), pointer);
}

/* False: an exception. */
static bool call_gemm(const ws_short *self, const ws_plan *plan, PyObject *settings, const uintptr_t at[WS_MOST_ARRAYS]) {
  char desc[WS_MOST_DESC_BYTES];
  const int64_t places[5] = {(int64_t)at[0], plan->lda, (int64_t)at[1], plan->ldb, (int64_t)at[2]};
  memcpy(desc, plan->desc, (size_t)plan->desc_bytes);
  memcpy(desc + plan->at_places, places, sizeof places);
  if (plan->at_bias >= 0) memcpy(desc + plan->at_bias, &at[3], sizeof at[3]);
  PyObject *lent = NULL;
  void *pointer;
  int status = -1;
  if (choose_handle(self, settings, (int)plan->device, &lent, &pointer)) {
    Py_BEGIN_ALLOW_THREADS status = self->gemm(pointer, desc);
    Py_END_ALLOW_THREADS if (status > 0) Py_XDECREF(PyObject_CallFunction(self->check, "i", status)); /* raises */
  }
  Py_XDECREF(lent);
  return !status;
}

/* None: the addresses are such that something must be copied. */
static PyObject *run(const ws_short *self, const ws_plan *plan, PyObject *const *given, const ws_array x[WS_MOST_ARRAYS]) {
  const bool is_given = given[OUT] != Py_None;
  PyObject *result = given[OUT];
  uintptr_t at[WS_MOST_ARRAYS] = {x[0].data, x[1].data, x[2].data, x[3].data};
  if ((at[0] | at[1] | at[2] | at[3]) & (uintptr_t)plan->misaligned) return Py_INCREF(Py_None), Py_None;
  if (is_given) {
    if (meet(at[0], plan->bytes[0], at[2], plan->bytes[2]) || meet(at[1], plan->bytes[1], at[2], plan->bytes[2]))
      return Py_INCREF(Py_None), Py_None;
    Py_INCREF(result);
  } else {
    result = PyObject_Call(self->empty, plan->arguments, plan->keywords);
    if (!result) return NULL;
    if (!ws_read_address(&self->reader, result, &at[2]) || at[2] & (uintptr_t)plan->misaligned)
      return Py_DECREF(result), Py_INCREF(Py_None), Py_None;
  }
  bool is_done = call_gemm(self, plan, given[HANDLE], at);
  if (is_done && is_given && self->written != Py_None) {
    PyObject *told = PyObject_CallFunctionObjArgs(self->written, result, NULL);
    is_done = told;
    Py_XDECREF(told);
  }
  if (is_done) return result;
  Py_DECREF(result);
  return NULL;
}

static PyObject *matmul(PyObject *own, PyObject *const *given, Py_ssize_t n_given) {
  ws_short *self = (ws_short *)own;
  if (n_given != N_ARGUMENTS) return PyErr_Format(PyExc_TypeError, "matmul takes %d arguments", N_ARGUMENTS);
  ws_key key;
  ws_array x[WS_MOST_ARRAYS]; /* of those that are not given, these alone are looked at */
  for (int i = 0; i < WS_MOST_ARRAYS; i++) x[i].data = 0, x[i].type = 0;
  if (!read_product(self, given, &key, x)) return Py_INCREF(Py_None), Py_None;
  ws_plan *plan = ws_plans_find(&self->plans, &key);
  if (!plan) plan = make_plan(self, given, &key, x);
  if (!plan) return NULL;
  PyObject *result = plan->is_possible ? run(self, plan, given, x) : (Py_INCREF(Py_None), Py_None);
  ws_plan_release(plan);
  return result;
}

/* ---- The class ---------------------------------------------------------------------------------------------------------- */

static PyObject **references(ws_short *self, int idx) {
  PyObject **all[] = {
      &self->reader.types[0],   &self->reader.types[1], &self->reader.is_neg, &self->reader.is_conj, &self->reader.get_device,
      &self->reader.get_stream, &self->planned,         &self->empty,         &self->written,        &self->check,
      &self->pointer_of,        &self->on_stream,       &self->default_handle};
  return idx < (int)(sizeof all / sizeof *all) ? all[idx] : NULL;
}

static int traverse(PyObject *own, visitproc visit, void *arg) {
  PyObject **member;
  Py_VISIT(Py_TYPE(own));
  for (int i = 0; (member = references((ws_short *)own, i)); i++) Py_VISIT(*member);
  return 0;
}

static int clear(PyObject *own) {
  PyObject **member;
  for (int i = 0; (member = references((ws_short *)own, i)); i++) Py_CLEAR(*member);
  return 0;
}

static void dealloc(PyObject *own) {
  PyTypeObject *type = Py_TYPE(own);
  PyObject_GC_UnTrack(own);
  clear(own);
  ws_plans_clear(&((ws_short *)own)->plans);
  ((freefunc)PyType_GetSlot(type, Py_tp_free))(own);
  Py_DECREF(type);
}

static void choose_source(ws_reader *reader, PyObject *methods) {
  const Py_ssize_t n = PyTuple_Check(methods) ? PyTuple_Size(methods) : 0;
  if (n == 2)
    reader->source = WS_OF_TORCH, reader->is_neg = PyTuple_GetItem(methods, 0), reader->is_conj = PyTuple_GetItem(methods, 1);
  if (n == 3)
    reader->source = WS_OF_CUPY, reader->get_device = PyTuple_GetItem(methods, 1),
    reader->get_stream = PyTuple_GetItem(methods, 2);
}

/* Short(gemm, most, types, methods, probe, address, planned, empty, written, check, pointer_of, on_stream, default_handle): gemm is
 * the address of wsgemm_gemm, most the number of plans that are kept; methods are torch's is_neg and is_conj, or of CuPy its name, the
 * current device's and the current stream's functions, or for NumPy's arrays None, with one of 3 x 2 float64 as a probe, and its
 * address. */
static int init(PyObject *own, PyObject *arguments, PyObject *keywords) {
  ws_short *self = (ws_short *)own;
  PyObject *gemm, *methods, *probe;
  unsigned long long address;
  Py_ssize_t most;
  if (keywords && PyDict_Size(keywords)) return PyErr_SetString(PyExc_TypeError, "Short takes no keywords"), -1;
  if (self->gemm) return PyErr_SetString(PyExc_TypeError, "a Short is made once"), -1;
  if (!PyArg_ParseTuple(arguments, "On(OO)OOKOOOOOOO", &gemm, &most, &self->reader.types[0], &self->reader.types[1], &methods,
                        &probe, &address, &self->planned, &self->empty, &self->written, &self->check, &self->pointer_of,
                        &self->on_stream, &self->default_handle))
    return memset(&self->reader, 0, sizeof *self - offsetof(ws_short, reader)), -1;
  choose_source(&self->reader, methods);
  PyObject **member;
  for (int i = 0; (member = references(self, i)); i++) Py_XINCREF(*member);
  self->plans.most = most > 0 ? (size_t)most : 1;
  if (self->reader.source == WS_OF_TORCH) {
    self->reader.tensors = ws_dlpack_of(self->reader.types[0]);
    if (!self->reader.tensors) return -1;
  } else if (self->reader.source == WS_OF_NUMPY && !ws_knows_numpy(&self->reader, probe, (uintptr_t)address)) {
    return PyErr_SetString(PyExc_AttributeError, "NumPy's arrays are not what they were"), -1;
  }
  void *found;
  Py_INCREF(gemm);
  if (!read_pointer(gemm, &found) || !found) return PyErr_Occurred() ? -1 : (PyErr_SetString(PyExc_ValueError, "no library"), -1);
  memcpy(&self->gemm, &found, sizeof found);
  return 0;
}

static PyObject *n_plans(PyObject *own, void *closure) {
  (void)closure;
  return PyLong_FromSize_t(((ws_short *)own)->plans.n_plans);
}

static PyMethodDef methods[] = {
    {"matmul", (PyCFunction)(void (*)(void))matmul, METH_FASTCALL,
     "matmul(a, b, out, alpha, beta, handle, bias, activation, is_transposed)"},
    {NULL, NULL, 0, NULL},
};
static PyGetSetDef getters[] = {{"n_plans", n_plans, NULL, "how many plans are kept", NULL}, {NULL, NULL, NULL, NULL, NULL}};
static PyType_Slot slots[] = {
    {Py_tp_init, init},
    {Py_tp_dealloc, dealloc},
    {Py_tp_traverse, traverse},
    {Py_tp_clear, clear},
    {Py_tp_methods, methods},
    {Py_tp_getset, getters},
    {Py_tp_doc, "The short way of products of one library's arrays."},
    {0, NULL},
};
static PyType_Spec spec = {"wsgemm._calls.Short", sizeof(ws_short), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC, slots};
static PyMethodDef functions[] = {
    {"progress_address", ws_progress_address, METH_NOARGS, "what wsgemm_set_progress takes; its user: a function, or None"},
    {"raise_stopped", ws_progress_raise, METH_NOARGS, "raises what this thread's last product was stopped by, if it was"},
    {NULL, NULL, 0, NULL},
};
static PyModuleDef definition = {PyModuleDef_HEAD_INIT, "wsgemm._calls", NULL, -1, functions, NULL, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit__calls(void) {
  PyObject *module = PyModule_Create(&definition);
  PyObject *type = module ? PyType_FromSpec(&spec) : NULL;
  name_on_streams = PyUnicode_InternFromString("_on_streams");
  name_pointer = PyUnicode_InternFromString("pointer");
  if (type && ws_arrays_init() && name_on_streams && name_pointer && !PyModule_AddObject(module, "Short", type)) return module;
  Py_XDECREF(type);
  Py_XDECREF(module);
  return NULL;
}
