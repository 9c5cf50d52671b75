"""What a call from Python costs on the host: matmul of small matrices by wsgemm and by the library itself.

    calls.py [--json FILE] [--commit NAME] [SUITE...]

Time of the calling thread for each call, the least of seven chains, in turns; GPUs are waited for between chains, not in them.
NumPy 4 x 4; torch, CuPy and JAX 64 x 64 on a GPU, and torch in host memory; groups: 8 of bfloat16 (CuPy: float16), 128 x 128.
"""

import argparse
import importlib
import json
import time

import numpy as np
import wsgemm

N_CHAINS, N_CALLS = 7, 300


def least_us(cases, wait):
    """Of each case, in turns."""
    best = dict.fromkeys(cases, float("inf"))
    for _ in range(N_CHAINS):
        for name, call in cases.items():
            call()
            wait()
            begin = time.thread_time()
            for _ in range(N_CALLS):
                call()
            best[name] = min(best[name], (time.thread_time() - begin) / N_CALLS * 1e6)
            wait()
    return best


def of_numpy():
    a, b, c = (np.ones((4, 4), np.float32) for _ in range(3))
    cases = {
        "new": lambda: wsgemm.matmul(a, b), "out": lambda: wsgemm.matmul(a, b, c),
        "new, its own": lambda: np.matmul(a, b), "out, its own": lambda: np.matmul(a, b, c),
    }  # fmt: skip
    return least_us(cases, lambda: None)


def of_torch(device="cuda"):
    torch = importlib.import_module("torch")
    found = {}
    for dtype in (torch.float32, torch.bfloat16) if device == "cuda" else (torch.float32,):
        a, b, c = (torch.ones(64, 64, device=device, dtype=dtype) for _ in range(3))
        bias, w = torch.ones(64, device=device, dtype=dtype), torch.ones(64, 64, device=device, dtype=dtype, requires_grad=True)
        cases = {"new, its own": lambda a=a, b=b: torch.mm(a, b), "out, its own": lambda a=a, b=b, c=c: torch.mm(a, b, out=c)}
        if device == "cuda":
            cases |= {"new": lambda a=a, b=b: wsgemm.matmul(a, b), "out": lambda a=a, b=b, c=c: wsgemm.matmul(a, b, c)}
        try:
            wt = importlib.import_module("wsgemm.torch")
        except ImportError:
            wt = None
        if wt is not None:
            cases |= {
                "wsgemm.torch.mm": lambda a=a, b=b: wt.mm(a, b), "wsgemm.torch.mm, recorded": lambda a=a, w=w: wt.mm(a, w),
                "recorded, its own": lambda a=a, w=w: torch.mm(a, w),
                "wsgemm.torch.linear": lambda a=a, b=b, bias=bias: wt.linear(a, b, bias),
                "linear, its own": lambda a=a, b=b, bias=bias: torch.nn.functional.linear(a, b, bias),
            }  # fmt: skip
        wait = torch.cuda.synchronize if device == "cuda" else lambda: None
        found |= {f"{str(dtype)[6:]} {name}": us for name, us in least_us(cases, wait).items()}
    return found


def of_groups():
    torch, wt = importlib.import_module("torch"), importlib.import_module("wsgemm.torch")
    a, b, c = (torch.ones(shape, device="cuda", dtype=torch.bfloat16) for shape in ((256, 128), (8, 128, 128), (256, 128)))
    offs = torch.arange(32, 257, 32, device="cuda", dtype=torch.int32)
    cases = {
        "wsgemm.torch.grouped_mm": lambda: wt.grouped_mm(a, b, offs), "grouped_matmul, new": lambda: wsgemm.grouped_matmul(a, b, offs),
        "grouped_matmul, out": lambda: wsgemm.grouped_matmul(a, b, offs, c),
    }  # fmt: skip
    if hasattr(torch, "_grouped_mm"):
        cases["torch._grouped_mm"] = lambda: torch._grouped_mm(a, b, offs=offs)
    found = least_us(cases, torch.cuda.synchronize)
    try:
        cupy = importlib.import_module("cupy")
    except ImportError:
        return found
    x, y, z = (cupy.ones(shape, "float16") for shape in ((256, 128), (8, 128, 128), (256, 128)))
    ends = cupy.arange(32, 257, 32, dtype="int32")
    cases = {"CuPy, new": lambda: wsgemm.grouped_matmul(x, y, ends), "CuPy, out": lambda: wsgemm.grouped_matmul(x, y, ends, z)}
    return found | least_us(cases, cupy.cuda.runtime.deviceSynchronize)


def of_cupy():
    cupy = importlib.import_module("cupy")
    a, b, c = (cupy.ones((64, 64), "float32") for _ in range(3))
    cases = {
        "new": lambda: wsgemm.matmul(a, b), "out": lambda: wsgemm.matmul(a, b, c),
        "new, its own": lambda: cupy.matmul(a, b), "out, its own": lambda: cupy.matmul(a, b, out=c),
    }  # fmt: skip
    return least_us(cases, cupy.cuda.runtime.deviceSynchronize)


def of_jax():
    jax = importlib.import_module("jax")
    a = jax.numpy.ones((64, 64), "float32")
    jitted = jax.jit(jax.numpy.matmul)
    cases = {"new": lambda: wsgemm.matmul(a, a), "new, its own": lambda: a @ a, "jitted, its own": lambda: jitted(a, a)}
    try:
        ours = jax.jit(importlib.import_module("wsgemm.jax").matmul)
        ours(a, a)
        cases["wsgemm.jax.matmul, jitted"] = lambda: ours(a, a)
    except (ImportError, AttributeError):
        pass
    return least_us(cases, lambda: jitted(a, a).block_until_ready())


SUITES = {"numpy": of_numpy, "torch": of_torch, "torch on the host": lambda: of_torch("cpu"), "groups": of_groups, "cupy": of_cupy, "jax": of_jax}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--json")
    parser.add_argument("--commit", default="")
    parser.add_argument("suites", nargs="*", help=", ".join(SUITES) + "; all if none is named")
    options = parser.parse_args()
    for library, suite in SUITES.items():
        if options.suites and library not in options.suites:
            continue
        try:
            found = suite()
        except Exception as error:  # not installed, or no GPU
            print(f"calls     {library}: {type(error).__name__}: {str(error)[:90]}")
            continue
        for name, us in found.items():
            print(f"calls     {library:18s} {name:36s} {us:8.2f} us")
            if options.json:
                with open(options.json, "a") as file:
                    line = {"suite": "python_calls", "library": library, "case": name, "us": round(us, 3), "commit": options.commit}
                    print(json.dumps(line), file=file)


if __name__ == "__main__":
    main()
