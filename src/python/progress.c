/* progress.c - what the library calls during a long product of host arrays: a function of Python's, or nothing but Python's
 * own handlers of signals. Their exceptions stop the product, and are raised when it has returned.
 *
 * In C, as a function in Python may be interrupted before its first line, where ctypes prints the exception and goes on. */
#include "progress.h"

#define STOPPED "wsgemm stopped by"

/* Kept for this thread: a new reference is taken of each. */
static void keep_exception(void) {
  PyObject *type = NULL, *value = NULL, *trace = NULL, *threads_own = PyThreadState_GetDict();
  PyErr_Fetch(&type, &value, &trace);
  PyErr_NormalizeException(&type, &value, &trace);
  if (value && trace) PyException_SetTraceback(value, trace);
  if (!value || !threads_own || PyDict_SetItemString(threads_own, STOPPED, value)) PyErr_Clear();
  Py_XDECREF(type), Py_XDECREF(value), Py_XDECREF(trace);
}

/* user: the function, or None. */
static int on_progress(void *user, double done) {
  const PyGILState_STATE state = PyGILState_Ensure();
  bool is_good = PyErr_CheckSignals() == 0;
  if (is_good && user != Py_None) {
    PyObject *result = PyObject_CallFunction(user, "d", done);
    is_good = result != NULL;
    Py_XDECREF(result);
  }
  if (!is_good) keep_exception();
  PyGILState_Release(state);
  return !is_good;
}

PyObject *ws_progress_address(PyObject *module, PyObject *unused) {
  (void)module, (void)unused;
  int (*const function)(void *, double) = on_progress;
  void *address;
  memcpy(&address, &function, sizeof address);
  return PyLong_FromVoidPtr(address);
}

PyObject *ws_progress_raise(PyObject *module, PyObject *unused) {
  (void)module, (void)unused;
  PyObject *threads_own = PyThreadState_GetDict();
  PyObject *kept = threads_own ? PyDict_GetItemString(threads_own, STOPPED) : NULL;
  if (!kept) Py_RETURN_NONE;
  Py_INCREF(kept);
  if (PyDict_DelItemString(threads_own, STOPPED)) PyErr_Clear();
  PyErr_SetObject((PyObject *)Py_TYPE(kept), kept);
  Py_DECREF(kept);
  return NULL;
}
