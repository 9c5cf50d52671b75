"""NumPy's wheel from PyPI takes its products from a preloaded libwsgemm_blas: by the names that its own OpenBLAS has.

numpy_wheel.py LIBRARY: exit code 77: this NumPy has another BLAS.
"""

import os
import re
import subprocess
import sys

PRODUCTS = """
import numpy as np
rng = np.random.default_rng(3)
for dtype in "fdFD":
    a, b = (rng.integers(-4, 5, shape).astype(dtype) for shape in ((30, 40), (40, 20)))
    assert (a @ b == np.einsum("ik,kj->ij", a, b)).all() and (a @ a.T == np.einsum("ik,jk->ij", a, a)).all()
    assert (np.dot(b.T, a.T) == (a @ b).T).all() and (a[:, ::2] @ b[::2] == np.einsum("ik,kj->ij", a[:, ::2], b[::2])).all()
np.linalg.inv(rng.random((50, 50)))
"""


def main(library):
    import numpy as np

    module = getattr(np, "_core", None) or np.core
    with open(module._multiarray_umath.__file__, "rb") as file:
        if b"scipy_cblas_dgemm64_" not in file.read():
            print("skipped: this NumPy has another BLAS")
            return 77
    env = {**os.environ, "LD_PRELOAD": library, "WSGEMM_BLAS_LOG": "1"}
    result = subprocess.run([sys.executable, "-c", PRODUCTS], env=env, capture_output=True, text=True)
    print(result.stdout, result.stderr)
    missing = [f"{x}{routine}" for routine in ("gemm", "syrk") for x in "sdcz" if not re.search(rf" {x}{routine}: \d", result.stderr)]
    print("not called:", ", ".join(missing) or "none")
    return result.returncode or bool(missing)


if __name__ == "__main__":
    sys.exit(main(os.path.abspath(sys.argv[1])))
