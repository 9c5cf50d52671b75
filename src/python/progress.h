/* progress.h - functions of the module wsgemm._calls about progress. */
#ifndef WS_PYTHON_PROGRESS_H
#define WS_PYTHON_PROGRESS_H
#include <stdbool.h>
#include <string.h>

#include "arrays.h"

/* Where the function for wsgemm_set_progress lies; its user is a function of Python's, or None. */
PyObject *ws_progress_address(PyObject *module, PyObject *unused);
/* Raises what that function has stopped this thread's last call with; None: nothing has. */
PyObject *ws_progress_raise(PyObject *module, PyObject *unused);
#endif
