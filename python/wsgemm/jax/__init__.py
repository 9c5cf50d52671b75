"""wsgemm for JAX: products that jit, vmap and grad take as JAX's own, on CPUs and NVIDIA GPUs.

>>> import jax, jax.numpy as jnp
>>> import wsgemm.jax
>>> jax.jit(wsgemm.jax.matmul)(jnp.ones((2, 3)), jnp.ones((3, 2)))
Array([[3., 3.],
       [3., 3.]], dtype=float32)

The types are wsgemm.matmul's, never mixed; results are within the bounds of docs/numerics.md. A
product runs inside XLA's program, on XLA's stream (src/xla/gemm.c). Gradients are products of
wsgemm's; forward mode (jvp) is not there.
"""

from ._functions import matmul

__all__ = ["matmul"]
