"""Products of NumPy arrays: transposed views, a bias and an activation in one pass, and stacks of matrices.

Prints what each gains over NumPy. Both use their own threads.
"""

import time

import numpy as np
import wsgemm


def best_ms(call, n_times=7):
    times = []
    for _ in range(n_times):
        begin = time.perf_counter()
        call()
        times.append(time.perf_counter() - begin)
    return min(times) * 1e3


def main():
    rng = np.random.default_rng(3)
    a, b = (rng.standard_normal((700, 700), np.float32) for _ in range(2))
    bias = rng.standard_normal(700, np.float32)
    stack = rng.standard_normal((500, 24, 24), np.float32)
    pairs = {
        "a.T @ b": (lambda: a.T @ b, lambda: wsgemm.matmul(a.T, b)),
        "relu(a @ b + bias)": (lambda: np.maximum(a @ b + bias, 0), lambda: wsgemm.matmul(a, b, bias=bias, activation="relu")),
        "a stack of them": (lambda: stack @ stack, lambda: wsgemm.matmul(stack, stack)),
    }
    for name, (by_numpy, by_wsgemm) in pairs.items():
        np.testing.assert_allclose(by_wsgemm(), by_numpy(), rtol=1e-3, atol=1e-2)
        theirs, ours = best_ms(by_numpy), best_ms(by_wsgemm)
        print(f"{name}: {theirs:.2f} ms by NumPy, {ours:.2f} ms: {theirs / ours:.2f} times as fast")


if __name__ == "__main__":
    main()
