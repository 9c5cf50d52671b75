"""A solver in JAX on wsgemm's products: Newton's iteration for the inverse of a matrix, jitted, and its gradient.

Compares with jnp.linalg.inv, and prints what the iteration gains over the same one on jax.numpy's products.
"""

import functools
import time

import jax
import jax.numpy as jnp
import numpy as np
import wsgemm.jax


@functools.partial(jax.jit, static_argnums=(1, 2))
def inverse(a, matmul, n_steps=30):
    x = a.T / (jnp.abs(a).sum(0).max() * jnp.abs(a).sum(1).max())
    return jax.lax.fori_loop(0, n_steps, lambda _, x: 2 * x - matmul(x, matmul(a, x)), x)


def best_ms(call, n_times=5):
    times = []
    for _ in range(n_times):
        begin = time.perf_counter()
        call().block_until_ready()
        times.append(time.perf_counter() - begin)
    return min(times) * 1e3


def main():
    n = 4096 if jax.default_backend() == "gpu" else 256
    rng = np.random.default_rng(6)
    a = jnp.asarray(np.eye(n) + rng.standard_normal((n, n)) / (4 * np.sqrt(n)), "float32")
    theirs = functools.partial(jnp.matmul, precision="highest")
    ours = wsgemm.jax.matmul
    np.testing.assert_allclose(inverse(a, ours), jnp.linalg.inv(a), rtol=1e-3, atol=1e-4)
    small = a[:8, :8]
    gradient = jax.grad(lambda a: ours(inverse_of_steps(a, ours), a).sum())(small)
    np.testing.assert_allclose(gradient, jax.grad(lambda a: theirs(inverse_of_steps(a, theirs), a).sum())(small), atol=1e-3)
    before, after = best_ms(lambda: inverse(a, theirs)), best_ms(lambda: inverse(a, ours))
    print(f"inverse of {n} x {n}: {before:.2f} ms on jax.numpy's products, {after:.2f} ms: {before / after:.2f} times as fast")


def inverse_of_steps(a, matmul):
    """Two steps of the iteration, which gradients can go back through."""
    x = a.T
    for _ in range(2):
        x = 2 * x - matmul(x, matmul(a, x))
    return x


if __name__ == "__main__":
    main()
