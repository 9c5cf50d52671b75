/* arrays.h - where the arrays of NumPy and torch lie, and of what shape and type they are: read from the objects themselves.
 *
 * Of NumPy's arrays the head is read, whose members are part of NumPy's binary interface (C extensions have them compiled in).
 * torch's tensors are asked through DLPack's exchange interface for C, which their class names; it is of version 1, which only
 * appends. Nothing of either is included or linked. */
#ifndef WS_PYTHON_ARRAYS_H
#define WS_PYTHON_ARRAYS_H
#define Py_LIMITED_API 0x030a0000
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdbool.h>
#include <stdint.h>

enum { WS_MOST_DIMS = 6, WS_ON_HOST = -1 };

typedef struct ws_array {
  uintptr_t data;
  uint64_t type; /* tells element types of one library apart */
  int device, n_dims;
  const int64_t *shape, *strides; /* strides in the library's own unit */
  bool is_writeable, is_conjugated;
} ws_array;

typedef struct ws_dlpack_api ws_dlpack_api;

/* How arrays of one library are read. */
typedef struct ws_reader {
  PyObject *types[2];           /* the classes: these themselves, none derived from them */
  const ws_dlpack_api *tensors; /* NULL: NumPy's arrays */
  PyObject *is_neg, *is_conj;   /* torch's methods */
} ws_reader;

/* Whether x is an array of this library, strided and of few dimensions; no exception is left. Valid as long as x is not changed. */
bool ws_read_array(const ws_reader *reader, PyObject *x, ws_array *array);

/* Of such an array. */
bool ws_read_address(const ws_reader *reader, PyObject *x, uintptr_t *address);

/* Whether NumPy's arrays are what ws_read_array takes them for: probe is one of 3 x 2 float64, whose address is known otherwise. */
bool ws_knows_numpy(const ws_reader *reader, PyObject *probe, uintptr_t address);

/* The interface that the class of tensors has; NULL with an exception if it has none, or of another version. */
const ws_dlpack_api *ws_dlpack_of(PyObject *type);

/* torch's current stream; NULL: the default one. */
bool ws_current_stream(const ws_reader *reader, int device, void **stream);
#endif
