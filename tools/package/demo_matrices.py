"""Makes the matrices of tools/demo.sh as .npy files, and afterwards compares wsgemm's products with NumPy's.

    demo_matrices.py make FOLDER            writes A_x.npy, B_x.npy (and C0_c16.npy) for the four element types
    demo_matrices.py compare FOLDER P [Q]   reads the products P_x.npy, exits 1 unless each agrees with NumPy's, or with Q_x.npy

The sizes are odd on purpose, and both storage orders occur. Both sides round, so each element may differ by twice the error
bound of one of them.
"""

import sys
from pathlib import Path

import numpy as np

# Name, element type, shape of A, shape of B, op(A), op(B), alpha, beta: the products that demo.sh asks wsgemm for.
PRODUCTS = [
    ("f4", np.float32, (1511, 1009), (1009, 1301), "n", "n", 1, 0),
    ("f8", np.float64, (1201, 907), (1103, 907), "n", "t", 0.5, 0),
    ("c8", np.complex64, (811, 701), (811, 613), "c", "n", 1, 0),
    ("c16", np.complex128, (509, 601), (601, 433), "n", "n", 1, 1j),
]
OPS = {"n": lambda x: x, "t": lambda x: x.T, "c": lambda x: x.conj().T}


def random_matrix(rng, shape, dtype):
    values = rng.uniform(-1, 1, shape)
    if np.issubdtype(dtype, np.complexfloating):
        values = values + 1j * rng.uniform(-1, 1, shape)
    return values.astype(dtype)


def save(path, matrix):
    np.save(path, matrix)
    order = "C" if matrix.flags.c_contiguous else "Fortran"
    print(f"{path.name:<11} {matrix.shape[0]:>5} x {matrix.shape[1]:<5} {matrix.dtype}, {order} order")


def make(folder):
    rng = np.random.default_rng(20240229)
    for name, dtype, shape_a, shape_b, _, _, _, beta in PRODUCTS:
        save(folder / f"A_{name}.npy", random_matrix(rng, shape_a, dtype))
        save(folder / f"B_{name}.npy", np.asfortranarray(random_matrix(rng, shape_b, dtype)))
        if beta != 0:
            save(folder / f"C0_{name}.npy", random_matrix(rng, (shape_a[0], shape_b[1]), dtype))


def compare(folder, prefix, reference=None):
    n_wrong = 0
    for name, dtype, _, _, op_a, op_b, alpha, beta in PRODUCTS:
        a = OPS[op_a](np.load(folder / f"A_{name}.npy"))
        b = OPS[op_b](np.load(folder / f"B_{name}.npy"))
        c = np.load(folder / f"{prefix}_{name}.npy")
        expected = alpha * (a @ b)
        bound = abs(alpha) * (abs(a) @ abs(b))
        if beta != 0:
            c0 = np.load(folder / f"C0_{name}.npy")
            expected += beta * c0
            bound += abs(beta) * abs(c0)
        if reference:
            expected = np.load(folder / f"{reference}_{name}.npy")
        # eps is twice the unit roundoff; a complex product has two roundings more to each term.
        bound *= 2 * (a.shape[1] + 4) * np.finfo(dtype).eps
        difference = abs(c - expected)
        agrees = c.shape == expected.shape and c.dtype == expected.dtype and bool(np.max(difference / bound) < 1)
        print(f"{prefix}_{name + '.npy':<9} {c.shape[0]:>5} x {c.shape[1]:<5} largest difference {np.max(difference):.1e}: "
              f"{'agrees' if agrees else 'DIFFERS'}")
        n_wrong += not agrees
    return 1 if n_wrong else 0


if __name__ == "__main__":
    command, *arguments = sys.argv[1:] or [""]
    if (command, len(arguments)) not in (("make", 1), ("compare", 2), ("compare", 3)):
        sys.exit(__doc__)
    sys.exit({"make": make, "compare": compare}[command](Path(arguments[0]), *arguments[1:]))
