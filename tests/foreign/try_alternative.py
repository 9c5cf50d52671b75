"""Products, solutions and eigenvalues by NumPy and SciPy, for the two scripts that try the Debian alternative."""

import numpy as np
import scipy.linalg as sl

a, b = np.random.rand(300, 300), np.random.rand(300)
assert np.abs(a @ np.linalg.solve(a, b) - b).max() < 1e-9
assert np.abs(sl.inv(a) @ a - np.eye(300)).max() < 1e-8
w, v = sl.eigh(a + a.T)
assert np.abs(v @ np.diag(w) @ v.T - a - a.T).max() < 1e-10
assert np.abs(np.triu(sl.blas.dsyrk(1.0, a)) - np.triu(a @ a.T)).max() < 1e-10
