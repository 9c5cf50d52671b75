"""wsgemm.jax: jit, vmap, grad. Skipped without jax; on the GPU where JAX sees one."""

import doctest

import numpy as np
import pytest
import wsgemm

jax = pytest.importorskip("jax")
jnp = jax.numpy
try:
    import wsgemm.jax as wj
    from wsgemm.jax._functions import _registered, product

    _registered()
except (ImportError, AttributeError) as error:
    pytest.skip(str(error), allow_module_level=True)

TYPES = {"float32": 1e-5, "float64": 1e-13, "complex64": 1e-5, "complex128": 1e-13, "float16": 2e-3, "bfloat16": 2e-2}
SHAPES = [
    ((3, 4), (4, 5)), ((4,), (4,)), ((4,), (4, 5)), ((3, 4), (4,)), ((2, 3, 4), (4, 5)), ((2, 3, 4), (2, 4, 5)), ((4,), (2, 4, 5)),
    ((3, 4), (6, 2, 4, 5)), ((6, 1, 3, 4), (2, 4, 5)), ((0, 4), (4, 5)), ((3, 0), (0, 5)), ((2, 0, 4), (2, 4, 5)),
]  # fmt: skip


@pytest.fixture(autouse=True)
def double_precision():
    before = jax.config.jax_enable_x64
    jax.config.update("jax_enable_x64", True)
    yield
    jax.config.update("jax_enable_x64", before)


@pytest.fixture
def rng():
    return np.random.default_rng(73)


def random(rng, shape, dtype="float64"):
    x = rng.standard_normal(shape)
    return jnp.asarray(x + 1j * rng.standard_normal(shape) if dtype.startswith("complex") else x, dtype)


def close(x, y, tolerance=1e-12):
    wide = np.complex128 if jnp.iscomplexobj(x) else np.float64
    np.testing.assert_allclose(np.asarray(x, wide), np.asarray(y, wide), rtol=tolerance, atol=8 * tolerance)


@pytest.mark.parametrize("dtype", TYPES)
def test_products_of_all_types_and_shapes(dtype, rng):
    for shape_a, shape_b in SHAPES:
        a, b = random(rng, shape_a, dtype), random(rng, shape_b, dtype)
        for f in (wj.matmul, jax.jit(wj.matmul)):
            result = f(a, b)
            assert result.dtype == a.dtype and result.shape == jnp.matmul(a, b).shape
            wide = "complex128" if dtype.startswith("complex") else "float64"
            close(result, np.matmul(np.asarray(a, wide), np.asarray(b, wide)), TYPES[dtype])


@pytest.mark.parametrize("trans_a", [False, True])
@pytest.mark.parametrize("trans_b", [False, True])
def test_transposed_operands_of_stacks(trans_a, trans_b, rng):
    for stack_a, stack_b in (((), ()), ((7,), (7,)), ((1,), (7,)), ((7, 1), (1, 3)), ((7, 2, 1), (7, 1, 3)), ((1, 5, 4), (1, 1, 4))):
        a = random(rng, (*stack_a, *((3, 2) if trans_a else (2, 3))))
        b = random(rng, (*stack_b, *((4, 3) if trans_b else (3, 4))))
        close(product(a, b, trans_a, trans_b), (a.mT if trans_a else a) @ (b.mT if trans_b else b))


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
def test_gradients(dtype, rng):
    for shape_a, shape_b in SHAPES[:9]:
        a, b = random(rng, shape_a, dtype), random(rng, shape_b, dtype)
        ours, theirs = (
            jax.grad(lambda a, b, f=f: jnp.abs(f(a, b) ** 2).sum(), (0, 1))(a, b) for f in (wj.matmul, jnp.matmul)
        )
        for x, y in zip(ours, theirs):
            close(x, y)


def test_second_gradients_under_jit(rng):
    a, b = random(rng, (3, 3)), random(rng, (3, 3))
    hessians = [jax.jit(jax.jacrev(jax.grad(lambda a, f=f: (f(f(a, b), a) ** 2).sum())))(a) for f in (wj.matmul, jnp.matmul)]
    close(*hessians)


@pytest.mark.parametrize("axes", [(0, 0), (0, None), (None, 0), (1, 2)])
def test_stacks_by_vmap(axes, rng):
    shapes = [(3, 4), (4, 5)]
    a, b = (
        random(rng, shape if axis is None else (*shape[:axis], 7, *shape[axis:])) for shape, axis in zip(shapes, axes)
    )
    f, g = (jax.jit(jax.vmap(x, axes)) for x in (wj.matmul, jnp.matmul))
    close(f(a, b), g(a, b))
    ours, theirs = (jax.grad(lambda a, b, f=f: (f(a, b) ** 2).sum(), (0, 1))(a, b) for f in (f, g))
    for x, y in zip(ours, theirs):
        close(x, y)


def test_wsgemm_itself_inside_jit(rng):
    a, b = random(rng, (3, 4)), random(rng, (4, 5))
    close(jax.jit(wsgemm.matmul)(a, b), a @ b)
    close(jax.jit(lambda a: wsgemm.matmul(np.asarray(b).T, a))(a.T), np.asarray(b).T @ a.T)
    close(jax.grad(lambda a: wsgemm.matmul(a, b).sum())(a), jnp.ones((3, 5)) @ b.T)
    with pytest.raises(TypeError, match="traced"):
        jax.jit(lambda a, b: wsgemm.matmul(a, b, alpha=2))(a, b)


def test_what_is_refused(rng):
    a = random(rng, (3, 4))
    for x, y, error in ((a, a, ValueError), (a, a.T.astype("float32"), TypeError), (a.astype(int), a.T.astype(int), TypeError)):
        with pytest.raises(error):
            wj.matmul(x, y)
    with pytest.raises(ValueError):
        wj.matmul(random(rng, (2, 3, 4)), random(rng, (3, 4, 5)))


def test_example_of_the_document():
    jax.config.update("jax_enable_x64", False)
    failures, n_tests = doctest.testmod(wj)
    assert n_tests and not failures
