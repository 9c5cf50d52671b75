"""What the tests share: matrices in every memory layout, and the product that they are compared with.

The reference is NumPy in the next wider type; the tolerance is the a-priori bound of a dot product, in every component.
"""

import numpy as np

DTYPES = ["float32", "float64", "complex64", "complex128"]
WIDER = {"float32": np.float64, "float64": np.longdouble, "complex64": np.complex128, "complex128": np.clongdouble}


def random_array(rng, shape, dtype):
    """Numbers of mixed signs and sizes."""
    x = rng.standard_normal(shape) * 10.0 ** rng.integers(-3, 4, shape)
    if np.dtype(dtype).kind == "c":
        x = x + 1j * rng.standard_normal(shape)
    return np.asarray(x).astype(dtype)


def integer_array(rng, shape, dtype):
    """Integers so small that a product of a few hundred terms is exact in every type."""
    x = rng.integers(-8, 9, shape)
    if np.dtype(dtype).kind == "c":
        x = x + 1j * rng.integers(-8, 9, shape)
    return np.asarray(x).astype(dtype)


def to_bits(x):
    """float32 numbers as bfloat16 bits, rounded to nearest even."""
    bits = np.asarray(x, "float32").view("uint32")
    return ((bits + 0x7FFF + (bits >> 16 & 1)) >> 16).astype("uint16")


def from_bits(bits):
    """bfloat16 bits as float64 numbers."""
    return (bits.astype("uint32") << 16).view("float32").astype("float64")


def _magnitude(x):
    # |re| + |im|: bounds both components of a complex product by one real product.
    return np.abs(x.real) + np.abs(x.imag)


def assert_product(result, a, b, alpha=1, beta=0, c=None):
    """Checks |result - (alpha a b + beta c)| <= gamma (|alpha| |a| |b| + |beta| |c|) in every component."""
    dtype = result.dtype
    wide = WIDER[dtype.name]
    expected = alpha * np.matmul(a.astype(wide), b.astype(wide))
    k = a.shape[-1]
    bound = _magnitude(np.asarray(alpha)) * np.matmul(_magnitude(a.astype(wide)), _magnitude(b.astype(wide)))
    if c is not None:
        expected = expected + beta * c.astype(wide)
        bound = bound + _magnitude(np.asarray(beta)) * _magnitude(c.astype(wide))
    assert result.shape == np.shape(expected)
    n_roundings = (2 * k + 6) if dtype.kind == "c" else (k + 2)
    unit = np.finfo(dtype).eps / 2
    gamma = n_roundings * unit / (1 - n_roundings * unit)
    difference = np.asarray(result.astype(wide) - expected)
    error = np.maximum(np.abs(difference.real), np.abs(difference.imag))
    bad = ~(error <= gamma * bound)
    if bad.any():
        worst = np.unravel_index(np.argmax(np.where(bad, error - gamma * bound, -np.inf)), bad.shape)
        raise AssertionError(f"element {worst}: error {error[worst]} is over the bound {gamma * bound[worst]}")


def of_type(x, dtype):
    """x rounded to a dtype: also to a bfloat16 that is not ml_dtypes', which NumPy cannot convert to."""
    return to_bits(x).view(dtype) if dtype.name == "bfloat16" else np.asarray(x).astype(dtype)


def numbers_of(x):
    """x of such a dtype as float64."""
    return from_bits(x.view("uint16")) if x.dtype.name == "bfloat16" else x.astype("float64")


# ---- Layouts -------------------------------------------------------------------------------------------------------------


def _inside(x, pad_rows, pad_cols, order):
    shape = (*x.shape[:-2], x.shape[-2] + pad_rows, x.shape[-1] + pad_cols)
    base = np.full(shape, np.nan, x.dtype, order=order)
    view = base[..., pad_rows // 2 : pad_rows // 2 + x.shape[-2], pad_cols // 2 : pad_cols // 2 + x.shape[-1]]
    view[...] = x
    return view


def _strided(x, row_step, col_step):
    base = np.full((*x.shape[:-2], x.shape[-2] * abs(row_step), x.shape[-1] * abs(col_step)), np.nan, x.dtype)
    view = base[..., ::row_step, ::col_step]
    view[...] = x
    return view


def _transposed(x):
    return np.ascontiguousarray(np.swapaxes(x, -1, -2)).swapaxes(-1, -2)


def _at_odd_address(x):
    raw = bytearray(x.nbytes + 1)
    view = np.frombuffer(raw, x.dtype, x.size, offset=1).reshape(x.shape)
    view[...] = x
    return view


def _last_axis_first(x):
    # The stack lies innermost: two non-unit strides.
    return np.moveaxis(np.ascontiguousarray(np.moveaxis(x, 0, -1)), -1, 0)


def _rows_outside(x):
    # The stack lies between rows and columns, as heads do in attention: each matrix has a long leading dimension.
    return np.moveaxis(np.ascontiguousarray(np.moveaxis(x, 0, -2)), -2, 0)


# Name: (function, whether BLAS can express it without a copy).
LAYOUTS = {
    "c": (lambda x: x.copy("C"), True),
    "f": (_transposed, True),
    "window": (lambda x: _inside(x, 2, 3, "C"), True),
    "f_window": (lambda x: np.swapaxes(_inside(np.swapaxes(x, -1, -2), 3, 2, "C"), -1, -2), True),
    "every_second_row": (lambda x: _strided(x, 2, 1), True),
    "every_second_col": (lambda x: _strided(x, 1, 2), False),
    "rows_backwards": (lambda x: _strided(x, -1, 1), False),
    "cols_backwards": (lambda x: _strided(x, 1, -1), False),
    "both_strided": (lambda x: _strided(x, 3, 2), False),
    "odd_address": (_at_odd_address, False),
}
STACK_LAYOUTS = {**LAYOUTS, "stack_innermost": (_last_axis_first, False), "rows_outside": (_rows_outside, True)}


def arrange(x, layout):
    """A writable array equal to x whose memory lies as the layout says."""
    view = STACK_LAYOUTS[layout][0](x)
    assert view.shape == x.shape and view.dtype == x.dtype
    return view
