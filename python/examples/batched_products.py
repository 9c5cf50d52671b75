"""Many small products in one call: a stack of matrices against another stack, or against one matrix.

Prints what a call of the whole stack gains over a loop, and over NumPy's matmul.
"""

import time

import numpy as np
import wsgemm


def best_ms(call, n_times=5):
    times = []
    for _ in range(n_times):
        begin = time.perf_counter()
        call()
        times.append(time.perf_counter() - begin)
    return min(times) * 1e3


def main():
    rng = np.random.default_rng(4)
    a, b = (rng.standard_normal((2000, 12, 12), np.float32) for _ in range(2))
    one = b[0]
    expected = np.matmul(a, b)
    np.testing.assert_allclose(wsgemm.matmul(a, b), expected, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(wsgemm.matmul(a, one), a @ one, rtol=1e-4, atol=1e-4)
    loop = best_ms(lambda: [wsgemm.matmul(x, y) for x, y in zip(a, b)])
    stack, by_numpy = best_ms(lambda: wsgemm.matmul(a, b)), best_ms(lambda: np.matmul(a, b))
    shared, shared_by_numpy = best_ms(lambda: wsgemm.matmul(a, one)), best_ms(lambda: a @ one)
    print(f"2000 products of 12 x 12: a loop {loop:.2f} ms, one call {stack:.2f} ms: {loop / stack:.2f} times as fast")
    print(f"the same by NumPy {by_numpy:.2f} ms: wsgemm is {by_numpy / stack:.2f} times as fast")
    print(f"against one matrix: NumPy {shared_by_numpy:.2f} ms, {shared:.2f} ms: {shared_by_numpy / shared:.2f} times as fast")


if __name__ == "__main__":
    main()
