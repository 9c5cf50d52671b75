"""Lets threadpoolctl see wsgemm and set its threads (of the default handle), together with other BLAS libraries.

Importing this module registers the controller; the package does so when threadpoolctl is installed.
"""

from __future__ import annotations

import ctypes

from threadpoolctl import LibController, register  # type: ignore[import-untyped]


class _Automatic(int):
    """A number of threads that nobody has set: given back at the end of a block, it is left to the library again."""


class WsgemmController(LibController):  # type: ignore[misc]
    user_api = "blas"
    internal_api = "wsgemm"
    filename_prefixes = ("libwsgemm.",)  # not libwsgemm_xla.so, in which the symbols are found, too
    check_symbols = ("wsgemm_set_num_threads", "wsgemm_get_num_threads", "wsgemm_default_num_threads")

    def get_num_threads(self) -> int:
        n_threads = ctypes.c_int(0)
        self.dynlib.wsgemm_get_num_threads(None, ctypes.byref(n_threads))
        return n_threads.value or _Automatic(self.dynlib.wsgemm_default_num_threads())

    def set_num_threads(self, num_threads: int) -> None:
        self.dynlib.wsgemm_set_num_threads(None, ctypes.c_int(0 if isinstance(num_threads, _Automatic) else num_threads))

    def get_version(self) -> str:
        version_string = self.dynlib.wsgemm_version_string
        version_string.restype = ctypes.c_char_p
        return str(version_string().decode())


register(WsgemmController)
