/* arrays.h - where the arrays of NumPy and torch lie, and of what shape and type they are: read from the objects themselves.
 *
 * Of NumPy's arrays the head is read, whose members are part of NumPy's binary interface (C extensions have them compiled in).
 * torch's tensors are asked through DLPack's exchange interface for C, which their class names; it is of version 1, which only
 * appends. CuPy's arrays are asked for their attributes. Nothing of any of them is included or linked. */
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
  int64_t told[2 * WS_MOST_DIMS]; /* shape and strides of what has told them */
} ws_array;

typedef struct ws_dlpack_api ws_dlpack_api;

typedef enum ws_source { WS_OF_NUMPY, WS_OF_TORCH, WS_OF_CUPY } ws_source;

/* How arrays of one library are read. */
typedef struct ws_reader {
  ws_source source;
  PyObject *types[2];                /* the classes: these themselves, none derived from them */
  const ws_dlpack_api *tensors;      /* torch's */
  PyObject *is_neg, *is_conj;        /* torch's methods */
  PyObject *get_device, *get_stream; /* CuPy's functions; the latter's place, where it is one of C's */
} ws_reader;

/* Whether x is an array of this library, strided and of few dimensions; no exception is left. Valid as long as x is not changed. */
bool ws_read_array(const ws_reader *reader, PyObject *x, ws_array *array);

/* Of such an array. */
bool ws_read_address(const ws_reader *reader, PyObject *x, uintptr_t *address);

/* Whether NumPy's arrays are what ws_read_array takes them for: probe is one of 3 x 2 float64, whose address is known otherwise. */
bool ws_knows_numpy(const ws_reader *reader, PyObject *probe, uintptr_t address);

/* The names of attributes, once. False: an exception. */
bool ws_arrays_init(void);

/* The interface that the class of tensors has; NULL with an exception if it has none, or of another version. */
const ws_dlpack_api *ws_dlpack_of(PyObject *type);

/* Whether arrays on this device may go the short way: where a library makes new ones on the current device, it must be that. */
bool ws_is_current(const ws_reader *reader, int device);

/* The library's current stream; NULL: the default one. False: an exception. */
bool ws_current_stream(const ws_reader *reader, int device, void **stream);
#endif
