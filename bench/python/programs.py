"""Whole programs that call cuBLAS (torch, CuPy, JAX), each as it is and with libwsgemm_cublas.so preloaded.

    programs.py LIBWSGEMM_CUBLAS [--programs NAME,...] [--pairs N] [--seconds S] [--json FILE] [--commit NAME] [--device cpu]

NAME is a part of a program's name, or its library: `torch`, `jax matmul`. What is preloaded is a process's own matter, so each
side is a process that this one starts, and that runs all programs of a library, one after the other. A pair is a process of each
side, and which comes first alternates. A program prepares random data (both sides the same), takes five steps whose results are
compared, warms up a little longer, and then repeats its step for S seconds (0.5), at least ten times. A step ends when the GPU
has been waited for; its time is the median. A program's ratio is the median of its pairs' ratios (of an even number the lower
middle one), above 1 where preloading is faster. Times are those of that pair; `least` and `most` are of all pairs' ratios.

`spread` is the greatest over the least time of a program as it is, over the pairs. A program is
    slower       if its ratio is below 0.98 and below 1 / spread, so that the spread does not explain it;
    noisy        if it is below 0.98 only (too few pairs: of fewer than three);
    faster       if it is above 1.02 and above the spread.

Calls are counted in one more process for each library, with WSGEMM_CUBLAS=log: how many of a step's calls of cuBLAS were wsgemm's
(taken), and how many there are (seen). A captured graph that is replayed makes none; then its preparation's calls are counted.

Results are compared by losses, relative to the other side's; arrays by norm and a projection, relative to the norm, and by some
elements, relative to the largest of these. Beyond these limits the exit code is 1:
    float32      1e-4: sums of some thousand products that are added in another order differ by 1e-5 at most;
    float64      1e-12, likewise;
    TF32         4e-3, four times 2^-10: one side may cut operands off where the other rounds them;
    bfloat16     2e-2, five times 2^-8: results are rounded to that, and the next layer reads them.

`one patched line` preloads nothing: one process takes a training step as it is and inside wsgemm.torch.patch(), in five turns.
Its figures are medians of the turns, its losses must agree to 1e-5, and the package wsgemm must be importable.

All processes have XLA_PYTHON_CLIENT_PREALLOCATE=false. XLA's autotuner stays on, since programs have it, too: where it finds that
Triton is faster than cuBLAS there is no call to take. Convolutions and LSTMs of torch have float32's precision here, not TF32,
which is torch's default for them.

--device cpu tries the programs with a sixteenth of all sizes and nothing preloaded. Without a GPU the exit code is 77. Programs
of a library that is missing are skipped.
"""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import dataclasses
import datetime
import gc
import importlib
import importlib.util
import json
import math
import os
import statistics
import subprocess
import sys
import tempfile
import time
import typing

import numpy as np
from offload import device

SEED, N_COMPARED, N_LEAST, N_PICKED, N_TURNS, MARK = 25, 5, 10, 64, 5, "program: "
LIMITS = {"float32": 1e-4, "float64": 1e-12, "tf32": 4e-3, "bfloat16": 2e-2, "patched": 1e-5}
MODULES = {"torch": ["torch"], "cupy": ["cupy"], "jax": ["jax"], "patched": ["torch", "wsgemm"]}


@dataclasses.dataclass
class Program:
    """`make` prepares the data for a library and returns the step: a function of nothing, whose results are compared."""

    family: str
    name: str
    kind: str
    make: typing.Callable

    @property
    def title(self):
        return f"{'torch' if self.family == 'patched' else self.family} {self.name}"


@dataclasses.dataclass
class Row:
    """A program's figures: seconds of both sides, ratios of the pairs, greatest over least time of one side alone."""

    program: Program
    theirs: float
    ours: float
    ratios: list
    spread: float
    difference: float
    calls: list | None
    peer: str

    @property
    def ratio(self):
        return self.theirs / self.ours

    @property
    def verdict(self):
        if self.ratio < 0.98 and len(self.ratios) < 3:
            return "too few pairs"
        if self.ratio < 0.98:
            return "slower" if self.ratio < 1 / self.spread else "noisy"
        return "faster" if self.ratio > max(1.02, self.spread) else "the same"


# ---- Libraries ---------------------------------------------------------------------------------------------------------


class Library:
    def __init__(self, name, is_gpu):
        self.module, self.is_gpu = importlib.import_module(name), is_gpu
        self.draws = np.random.default_rng(SEED)

    def size(self, n):
        return n if self.is_gpu else max(n // 16, 4)

    def sizes(self, shape):
        return tuple(self.size(n) for n in shape)

    def start(self, kind):
        """Before each program: draws and precision."""
        self.draws = np.random.default_rng(SEED)

    def step_of(self, program):
        return program.make(self)

    def random(self, shape, dtype="float32"):
        shape = self.sizes(shape)
        x = self.draws.standard_normal(shape, np.float32)
        if dtype.startswith("complex"):
            x = x + 1j * self.draws.standard_normal(shape, np.float32)
        return self.from_host(x.astype(dtype))


class Torch(Library):
    def __init__(self, is_gpu):
        super().__init__("torch", is_gpu)
        self.device = "cuda" if is_gpu else "cpu"

    def start(self, kind):
        backends = self.module.backends
        self.module.manual_seed(SEED)
        backends.cuda.matmul.fp32_precision = "tf32" if kind == "tf32" else "ieee"
        backends.cudnn.conv.fp32_precision = backends.cudnn.rnn.fp32_precision = "ieee"

    def step_of(self, program):
        with self.module.device(self.device):  # where all is made, but no longer as steps are taken: it costs calls some time
            return program.make(self)

    def random(self, shape, dtype="float32"):
        return self.module.randn(self.sizes(shape), dtype=getattr(self.module, dtype))

    def wait(self, _):
        if self.is_gpu:
            self.module.cuda.synchronize()

    def to_host(self, x):
        x = x.detach().cpu()
        return (x.float() if x.dtype == self.module.bfloat16 else x).numpy()

    def release(self):
        gc.collect()
        self.module.cuda.empty_cache()


class Cupy(Library):
    def __init__(self, is_gpu):
        super().__init__("cupy", is_gpu)
        self.from_host, self.to_host = self.module.asarray, self.module.asnumpy

    def wait(self, _):
        self.module.cuda.Device().synchronize()

    def release(self):
        gc.collect()
        self.module.get_default_memory_pool().free_all_blocks()


class Jax(Library):
    def __init__(self, is_gpu):
        super().__init__("jax", is_gpu)
        self.from_host, self.to_host, self.wait = self.module.numpy.asarray, np.asarray, self.module.block_until_ready

    def start(self, kind):
        super().start(kind)
        self.module.config.update("jax_default_matmul_precision", None if kind == "tf32" else "highest")

    def release(self):
        gc.collect()
        self.module.clear_caches()


# ---- Programs ----------------------------------------------------------------------------------------------------------


def products(on, call, *shapes, dtype="float32", count=1):
    """The same product `count` times."""
    operands = [on.random(shape, dtype) for shape in shapes]

    def step():
        for _ in range(count):
            c = call(*operands)
        return c

    return step


def chain(on, n, count):
    """Each product reads the one before; by an orthogonal matrix, so that norms stay."""
    torch, x = on.module, on.random((n, n))
    w = torch.linalg.qr(on.random((n, n)))[0]

    def step():
        y = x
        for _ in range(count):
            y = torch.mm(y, w)
        return y

    return step


def linear(on, n_tokens, n_in, n_out):
    torch, x = on.module, on.random((n_tokens, n_in)).requires_grad_()
    layer, gradient = torch.nn.Linear(on.size(n_in), on.size(n_out)), on.random((n_tokens, n_out))
    wanted = (x, *layer.parameters())
    return lambda: torch.autograd.grad(layer(x), wanted, gradient)


def perceptron(on, n_tokens, *widths, dtype="float32", is_captured=False):
    """Inference: layers with GELU between them."""
    torch, layers = on.module, []
    for n_in, n_out in zip(widths, widths[1:]):
        layers += [torch.nn.Linear(on.size(n_in), on.size(n_out), dtype=getattr(torch, dtype)), torch.nn.GELU()]
    model, x = torch.nn.Sequential(*layers[:-1]), on.random((n_tokens, widths[0]), dtype)

    @torch.no_grad()
    def forward():
        return model(x)

    if not is_captured or not on.is_gpu:
        return forward
    stream, graph = torch.cuda.Stream(), torch.cuda.CUDAGraph()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        forward()
    torch.cuda.current_stream().wait_stream(stream)
    with torch.cuda.graph(graph):
        y = forward()

    def step():
        graph.replay()
        return y

    return step


def training(on, modules, forward, inputs, targets, is_mixed=False):
    """A step of training a classifier: forward, gradients, SGD."""
    torch = on.module
    optimizer = torch.optim.SGD(torch.nn.ModuleList(modules).parameters(), lr=0.01, momentum=0.9)

    def step():
        with torch.autocast(on.device, torch.bfloat16, enabled=is_mixed):
            loss = torch.nn.functional.cross_entropy(forward(inputs).flatten(0, -2), targets.flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss.detach()

    return step


def words_of(on, n_words, batch, length):
    """What goes in, and what is to come next."""
    words = on.module.randint(on.size(n_words), (on.size(batch), on.size(length) + 1))
    return words[:, :-1].contiguous(), words[:, 1:].contiguous()


def transformer(on, width, n_layers, batch, length, n_words=4096, is_mixed=False):
    nn, width = on.module.nn, on.size(width)
    layer = nn.TransformerEncoderLayer(width, max(width // 64, 1), 4 * width, dropout=0.0, activation="gelu", batch_first=True,
                                       norm_first=True)  # fmt: skip
    encoder = nn.TransformerEncoder(layer, n_layers, nn.LayerNorm(width), enable_nested_tensor=False)
    embedding, head = nn.Embedding(on.size(n_words), width), nn.Linear(width, on.size(n_words))
    mask = nn.Transformer.generate_square_subsequent_mask(on.size(length))

    def forward(words):
        return head(encoder(embedding(words), mask=mask, is_causal=True))

    return training(on, [embedding, encoder, head], forward, *words_of(on, n_words, batch, length), is_mixed)


def lstm(on, width, n_layers, batch, length, n_words=4096):
    nn, width = on.module.nn, on.size(width)
    embedding, head = nn.Embedding(on.size(n_words), width), nn.Linear(width, on.size(n_words))
    cells = nn.LSTM(width, width, n_layers, batch_first=True)

    def forward(words):
        return head(cells(embedding(words))[0])

    return training(on, [embedding, cells, head], forward, *words_of(on, n_words, batch, length))


def convolutions(on, batch, side, n_classes=1000):
    """Blocks as a ResNet has them, of 64, 128 and 256 channels."""
    torch, nn = on.module, on.module.nn

    class Block(nn.Module):
        def __init__(self, n_in, n_out, stride):
            super().__init__()
            first, second = nn.Conv2d(n_in, n_out, 3, stride, 1, bias=False), nn.Conv2d(n_out, n_out, 3, 1, 1, bias=False)
            self.body = nn.Sequential(first, nn.BatchNorm2d(n_out), nn.ReLU(), second, nn.BatchNorm2d(n_out))
            self.skip = nn.Conv2d(n_in, n_out, 1, stride, bias=False)

        def forward(self, x):
            return torch.relu(self.body(x) + self.skip(x))

    widths = on.sizes((64, 64, 128, 256))
    blocks = [Block(n_in, n_out, 1 + (n_in < n_out)) for n_in, n_out in zip(widths, widths[1:])]
    ends = [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(widths[-1], on.size(n_classes))]
    model = nn.Sequential(nn.Conv2d(3, widths[0], 3, 1, 1), *blocks, *ends)
    images = torch.randn(on.size(batch), 3, on.size(side), on.size(side))
    return training(on, [model], model, images, torch.randint(on.size(n_classes), (on.size(batch),)))


def linalg(on, name, m, n, n_right=0):
    """Symmetric or general, with a diagonal that keeps the condition small where a system is solved."""
    torch, a = on.module, on.random((m, n))
    call = getattr(torch.linalg, name)
    if name in ("cholesky", "eigh"):
        a = a + a.mT
    if name in ("cholesky", "solve"):
        a.diagonal().add_(4 * a.shape[0] ** 0.5)
    if name == "solve":
        right = on.random((m, n_right))
        return lambda: call(a, right)
    if name == "cholesky":
        return lambda: call(a)
    return lambda: call(a)[0 if name == "eigh" else 1]  # eigenvectors may have either sign


def k_means(on, n, n_features, n_centers):
    cupy, x = on.module, on.random((n, n_features))
    centers, numbers = x[: on.size(n_centers)].copy(), cupy.arange(on.size(n_centers))

    def step():
        nonlocal centers
        distances = (centers * centers).sum(axis=1) - 2 * cupy.matmul(x, centers.T)
        belongs = (distances.argmin(axis=1)[:, None] == numbers[None, :]).astype(x.dtype)
        centers = cupy.matmul(belongs.T, x) / cupy.maximum(belongs.sum(axis=0), 1)[:, None]
        return (distances.min(axis=1) + (x * x).sum(axis=1)).mean()

    return step


def jax_product(on, n, dtype):
    return products(on, on.module.jit(on.module.numpy.matmul), (n, n), (n, n), dtype=dtype)


def jax_gradient(on, n_tokens, width, n_hidden):
    jax, x = on.module, on.random((n_tokens, width))
    weights = [on.random(shape) / on.size(shape[0]) ** 0.5 for shape in ((width, n_hidden), (n_hidden, width))]

    def loss(weights):
        return jax.numpy.square(jax.nn.gelu(x @ weights[0]) @ weights[1] - x).mean()

    gradient = jax.jit(jax.value_and_grad(loss))
    return lambda: jax.tree_util.tree_leaves(gradient(weights))


PROGRAMS = [
    Program("torch", "10 mm 256^3", "float32", lambda on: products(on, on.module.mm, (256, 256), (256, 256), count=10)),
    Program("torch", "10 mm 1024^3", "float32", lambda on: products(on, on.module.mm, (1024, 1024), (1024, 1024), count=10)),
    Program("torch", "mm 4096^3", "float32", lambda on: products(on, on.module.mm, (4096, 4096), (4096, 4096))),
    Program("torch", "bmm 64 x 256^3", "float32", lambda on: products(on, on.module.bmm, (64, 256, 256), (64, 256, 256))),
    Program("torch", "bmm 16 x 1024^3", "float32", lambda on: products(on, on.module.bmm, (16, 1024, 1024), (16, 1024, 1024))),
    Program("torch", "addmm 1000x777x3001", "float32",
            lambda on: products(on, on.module.addmm, (1000, 777), (1000, 3001), (3001, 777))),
    Program("torch", "linear layer and gradients 8192x4096x1024", "float32", lambda on: linear(on, 8192, 1024, 4096)),
    Program("torch", "MLP inference 4096 wide 1 token", "float32", lambda on: perceptron(on, 1, *[4096] * 5)),
    Program("torch", "MLP inference 4096 wide 8 tokens", "float32", lambda on: perceptron(on, 8, *[4096] * 5)),
    Program("torch", "MLP inference 1024 wide 512 tokens CUDA graph", "float32",
            lambda on: perceptron(on, 512, *[1024] * 4, is_captured=True)),
    Program("torch", "training step conv net 64 x 64^2", "float32", lambda on: convolutions(on, 64, 64)),
    Program("torch", "training step LSTM 512 wide 2 layers 64x128", "float32", lambda on: lstm(on, 512, 2, 64, 128)),
    Program("torch", "training step transformer 512 wide 4 layers 8x256", "float32", lambda on: transformer(on, 512, 4, 8, 256)),
    Program("torch", "training step transformer 1024 wide 8 layers 16x512", "float32",
            lambda on: transformer(on, 1024, 8, 16, 512)),
    Program("torch", "training step transformer 1024 wide 4 layers 8x512 TF32", "tf32",
            lambda on: transformer(on, 1024, 4, 8, 512)),
    Program("torch", "training step transformer 1024 wide 8 layers 8x512 bfloat16", "bfloat16",
            lambda on: transformer(on, 1024, 8, 8, 512, is_mixed=True)),
    Program("torch", "decode 4 linears 4096 wide 1 token bfloat16", "bfloat16",
            lambda on: perceptron(on, 1, 4096, 16384, 4096, 16384, 4096, dtype="bfloat16")),
    Program("torch", "decode 4 linears 4096 wide 16 tokens bfloat16", "bfloat16",
            lambda on: perceptron(on, 16, 4096, 16384, 4096, 16384, 4096, dtype="bfloat16")),
    Program("torch", "chain of 200 mm 64^3", "float32", lambda on: chain(on, 64, 200)),
    Program("torch", "200 linears 32x64x128 bfloat16", "bfloat16",
            lambda on: products(on, on.module.nn.functional.linear, (32, 128), (64, 128), (64,), dtype="bfloat16", count=200)),
    Program("torch", "mm 2048^3 float64", "float64",
            lambda on: products(on, on.module.mm, (2048, 2048), (2048, 2048), dtype="float64")),
    Program("torch", "matmul 2048^3 complex64", "float32",
            lambda on: products(on, on.module.matmul, (2048, 2048), (2048, 2048), dtype="complex64")),
    Program("torch", "bmm 64 x 256^3 complex64", "float32",
            lambda on: products(on, on.module.bmm, (64, 256, 256), (64, 256, 256), dtype="complex64")),
    Program("torch", "linalg cholesky 4096", "float32", lambda on: linalg(on, "cholesky", 4096, 4096)),
    Program("torch", "linalg solve 2048 with 256 right sides", "float32", lambda on: linalg(on, "solve", 2048, 2048, 256)),
    Program("torch", "linalg eigh 1024", "float32", lambda on: linalg(on, "eigh", 1024, 1024)),
    Program("torch", "linalg qr 2048x512", "float32", lambda on: linalg(on, "qr", 2048, 512)),
    Program("cupy", "matmul 2048^3", "float32", lambda on: products(on, on.module.matmul, (2048, 2048), (2048, 2048))),
    Program("cupy", "tensordot 256x2048x(16x512)", "float32",
            lambda on: products(on, lambda a, b: on.module.tensordot(a, b, ([1, 2], [0, 1])), (256, 16, 512), (16, 512, 2048))),
    Program("cupy", "k-means step 100000x64 256 centers", "float32", lambda on: k_means(on, 100000, 64, 256)),
    Program("jax", "matmul 4096^3 highest", "float32", lambda on: jax_product(on, 4096, "float32")),
    Program("jax", "matmul 4096^3 default precision", "tf32", lambda on: jax_product(on, 4096, "float32")),
    Program("jax", "gradient MLP 8192x1024x4096 highest", "float32", lambda on: jax_gradient(on, 8192, 1024, 4096)),
    Program("jax", "gradient MLP 8192x1024x4096 default precision", "tf32", lambda on: jax_gradient(on, 8192, 1024, 4096)),
    Program("jax", "matmul 2048^3 complex64 highest", "float32", lambda on: jax_product(on, 2048, "complex64")),
    Program("jax", "matmul 2048^3 complex64 default precision", "tf32", lambda on: jax_product(on, 2048, "complex64")),
    Program("patched", "training step transformer 1024 wide 8 layers 16x512 one patched line", "patched",
            lambda on: transformer(on, 1024, 8, 16, 512)),
]  # fmt: skip


# ---- In a process that measures ----------------------------------------------------------------------------------------


def parts_of(result):
    return result if isinstance(result, (tuple, list)) else (result,)


def losses_of(on, result):
    return [[float(on.to_host(part))] for part in parts_of(result) if math.prod(part.shape) == 1]


def numbers_of(on, result):
    """Of each array two lists: its norm and a projection, and some elements; a loss is a list by itself."""
    found = []
    for part in parts_of(result):
        if math.prod(part.shape) > 1:
            flat = np.ascontiguousarray(on.to_host(part)).reshape(-1)
            flat = flat.view(flat.real.dtype).astype(np.float64)
            draws = np.random.default_rng(SEED)
            signs = 2 * draws.integers(2, size=flat.size, dtype=np.int8) - 1
            found += [[math.sqrt(flat @ flat), float(flat @ signs)], flat[draws.integers(flat.size, size=N_PICKED)].tolist()]
    return found + losses_of(on, result)


def first_steps(on, step):
    """The numbers of the first step, and the losses of some more."""
    result = step()
    found = numbers_of(on, result)
    for _ in range(N_COMPARED - 1):
        found += losses_of(on, step())
    on.wait(result)
    return found


def median_s(on, step, seconds):
    """Of a step, of at least N_LEAST."""
    times, until = [], time.perf_counter() + seconds
    while len(times) < N_LEAST or time.perf_counter() < until:
        begin = time.perf_counter()
        on.wait(step())
        times.append(time.perf_counter() - begin)
    return statistics.median(times)


def check_last(on, step):
    if not all(map(math.isfinite, sum(losses_of(on, step()), []))):
        raise ArithmeticError("the loss of the last step is not finite")


def measure(on, program, seconds):
    step = on.step_of(program)
    values = first_steps(on, step)
    median_s(on, step, seconds / 5)
    found = {"seconds": median_s(on, step, seconds), "values": values}
    check_last(on, step)
    return found


def count(on, program, path):
    """[calls of a step that were wsgemm's, calls of a step]; of the second one, as the first may choose kernels."""

    def calls():
        lines = []
        if os.path.exists(path):
            with open(path, encoding="utf-8") as log:
                lines = [line for line in log if line.startswith("wsgemm_cublas[")]
        return np.array([sum(line.endswith(": taken\n") for line in lines), len(lines)])

    at = [calls()]
    step = on.step_of(program)
    for _ in range(2):
        on.wait(step())
        at.append(calls())
    found = at[2] - at[1] if at[2][1] > at[1][1] else at[1] - at[0]
    return {"calls": found.tolist()}


def measure_patched(on, program, seconds):
    """Both ways in turns, each with a model and a state of its own."""
    patch = importlib.import_module("wsgemm.torch").patch
    steps, values, turns = [], [], []
    for is_patched in (False, True):
        with patch() if is_patched else contextlib.nullcontext():
            on.start(program.kind)
            steps.append(on.step_of(program))
            values.append(first_steps(on, steps[-1]))
    for _ in range(N_TURNS):
        plain = median_s(on, steps[0], seconds / 2)
        with patch():
            turns.append((plain, median_s(on, steps[1], seconds / 2)))
    for step in steps:
        check_last(on, step)
    return {"turns": turns, "values": values}


def loaded(name):
    """Files in this process whose names begin with that."""
    with open("/proc/self/maps", encoding="utf-8") as maps:
        paths = {line.split()[-1] for line in maps}
    return sorted(path for path in paths if os.path.basename(path).startswith(name))


def cublas_version():
    """Of the one that is loaded."""
    paths = loaded("libcublas.so")
    if not paths:
        return "no cuBLAS"
    library, parts = ctypes.CDLL(paths[0]), [ctypes.c_int() for _ in range(3)]
    for number, part in enumerate(parts):
        library.cublasGetProperty(number, ctypes.byref(part))
    return "cuBLAS " + ".".join(str(part.value) for part in parts)


def child(family, options):
    """Prints a line of JSON for each program of a library."""
    preload = os.path.abspath(options.library)
    if os.environ.get("LD_PRELOAD") == preload and not loaded(os.path.basename(preload)):
        sys.exit(f"{preload} could not be preloaded")
    on = {"cupy": Cupy, "jax": Jax}.get(family, Torch)(options.device == "cuda")
    for program in chosen(family, options.programs):
        try:
            on.start(program.kind)
            if options.log:
                found = count(on, program, options.log)
            else:
                found = (measure_patched if family == "patched" else measure)(on, program, options.seconds)
        except Exception as error:
            found = {"error": f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"}
        on.release()
        version = f"{MODULES[family][0]} {on.module.__version__.split('+')[0]}, {cublas_version()}"
        print(MARK + json.dumps({"name": program.name, "peer": version} | found), flush=True)


# ---- In the process that starts the others -----------------------------------------------------------------------------


def chosen(family, patterns):
    wanted = patterns.split(",") if patterns else [""]
    return [program for program in PROGRAMS if program.family == family and any(name in program.title for name in wanted)]


def run(family, preload, failed, log=None):
    """What a process of a library says of each of its programs; `failed` grows if it did not end well."""
    environment, begin = os.environ | {"XLA_PYTHON_CLIENT_PREALLOCATE": "false"}, time.perf_counter()
    if preload:
        environment["LD_PRELOAD"] = os.path.abspath(preload)
    if log:
        environment |= {"WSGEMM_CUBLAS": "log", "WSGEMM_CUBLAS_FILE": log}
    command = [sys.executable, *sys.argv, "--child", family] + (["--log", log] if log else [])
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    found = [json.loads(line[len(MARK) :]) for line in done.stdout.splitlines() if line.startswith(MARK)]
    side = "calls counted" if log else "preloaded" if preload else "as it is" if family != "patched" else "both ways"
    print(f"{family:8s} {side:14s} {time.perf_counter() - begin:6.1f} s", flush=True)
    if done.returncode != 0:
        failed.append(f"{family}, {side}: the process ended with {done.returncode}")
        print(done.stderr[-2000:], flush=True)
    return {record["name"]: record for record in found}


def difference_of(ours, theirs):
    """The largest, each list's relative to the largest number in it."""
    if len(ours) != len(theirs) or not np.isfinite(sum(ours, []) + sum(theirs, [])).all():
        return math.inf
    return float(np.max([np.abs(np.subtract(x, y)).max() / np.abs(y).max() for x, y in zip(ours, theirs)]))


def patched_row(program, record):
    plain, patched = zip(*record["turns"])
    values, ratios = record["values"], [x / y for x, y in record["turns"]]
    return Row(program, statistics.median(plain), statistics.median(patched), ratios, max(plain) / min(plain),
               difference_of(values[1], values[0]), None, record["peer"])  # fmt: skip


def row_of(program, pairs, counted):
    ratios = [theirs["seconds"] / ours["seconds"] for theirs, ours in pairs]
    theirs, ours = pairs[ratios.index(statistics.median_low(ratios))]
    alone = [theirs["seconds"] for theirs, _ in pairs]
    difference = float(np.max([difference_of(ours["values"], theirs["values"]) for theirs, ours in pairs]))
    return Row(program, theirs["seconds"], ours["seconds"], ratios, max(alone) / min(alone), difference,
               counted.get(program.name, {}).get("calls"), theirs["peer"])  # fmt: skip


def rows_of(family, options):
    """(a library's rows, the programs that failed)"""
    programs, sides, counted, failed = chosen(family, options.programs), [], {}, []
    if family == "patched":
        sides.append([run(family, None, failed)])
    elif options.library:
        with tempfile.TemporaryDirectory() as folder:
            counted = run(family, options.library, failed, os.path.join(folder, "log"))
    for pair in range(options.pairs if family != "patched" else 0):
        order = (True, False) if pair % 2 else (False, True)
        found = {is_preloaded: run(family, options.library if is_preloaded else None, failed) for is_preloaded in order}
        sides.append([found[False], found[True]])
    rows = []
    for program in programs:
        records = [[side.get(program.name, {"error": "the process ended before"}) for side in pair] for pair in sides]
        errors = [record["error"] for pair in records for record in pair if "error" in record]
        if errors:
            failed.append(f"{program.title}: {errors[0]}")
        else:
            rows.append(patched_row(program, records[0][0]) if family == "patched" else row_of(program, records, counted))
    return rows, failed


def record_of(row, gpu, options):
    """A line of results (bench/harness/result.h), and what these have besides."""
    figures = {"ours": 1e3 * row.ours, "theirs": 1e3 * row.theirs, "unit": "ms", "ratio": row.ratio, "commit": options.commit,
               "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"), "samples": len(row.ratios),
               "least": min(row.ratios), "most": max(row.ratios), "spread": row.spread, "difference": row.difference}  # fmt: skip
    line = {"suite": "gpu_programs", "routine": row.program.title.split()[0], "case": row.program.name, "policy": "auto",
            "device": gpu, "peer": row.peer}  # fmt: skip
    line |= {name: float(f"{figure:.6g}") if isinstance(figure, float) else figure for name, figure in figures.items()}
    line |= {"verdict": row.verdict} | dict(zip(("taken", "seen"), row.calls or ()))
    return line | ({"tuning": "off"} if os.environ.get("WSGEMM_TUNE") == "off" else {})


def print_table(rows):
    """Whether all results are within their limits."""
    heads = f"{'plain':>9s} {'preload':>9s} {'ratio':>7s} {'least..most':>15s} {'spread':>7s} {'taken/seen':>10s} {'differ':>7s}"
    print(f"\n{'program, ms':76s} {heads}")
    is_good = True
    for row in rows:
        is_right = row.difference <= LIMITS[row.program.kind]
        calls = "/".join(map(str, row.calls)) if row.calls else "-"
        times, ends = f"{1e3 * row.theirs:9.4g} {1e3 * row.ours:9.4g}", f"{min(row.ratios):.3f}..{max(row.ratios):.3f}"
        figures = f"{times} {row.ratio:7.3f} {ends:>15s} {row.spread:7.3f} {calls:>10s} {row.difference:7.1e}"
        wrong = "" if is_right else f", WRONG: beyond {LIMITS[row.program.kind]:.0e}"
        print(f"{row.program.title:76s} {figures} {row.verdict}{wrong}")
        is_good &= is_right
    for verdict in ("slower", "noisy", "too few pairs"):
        print(f"{verdict}: {', '.join(row.program.title for row in rows if row.verdict == verdict) or 'none'}")
    return is_good


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("library")
    parser.add_argument("--programs", default="")
    parser.add_argument("--pairs", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=0.5)
    parser.add_argument("--json")
    parser.add_argument("--commit", default="unknown")
    parser.add_argument("--device", default="cuda", choices=("cuda", "cpu"))
    parser.add_argument("--child", help=argparse.SUPPRESS)
    parser.add_argument("--log", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        child(options.child, options)
        return 0
    gpu = device() if options.device == "cuda" else "CPU, a sixteenth of all sizes"
    if gpu is None:
        print("skipped: no GPU")
        return 77
    if options.device == "cpu":
        options.library = None
    elif not os.path.isfile(options.library):
        parser.error(f"no such file: {options.library}")  # the loader would only warn
    if not any(chosen(family, options.programs) for family in MODULES):
        parser.error(f"no program is called {options.programs}")
    rows, notes, begin = [], [], time.perf_counter()
    for family, modules in MODULES.items():
        if not chosen(family, options.programs):
            continue
        missing = [name for name in modules if importlib.util.find_spec(name) is None]
        if missing:
            notes += [f"skipped: {program.title}: no {' and no '.join(missing)}" for program in chosen(family, options.programs)]
            continue
        found, failed = rows_of(family, options)
        rows, notes = rows + found, notes + [f"FAILED: {text}" for text in failed]
        if options.json:
            with open(options.json, "a", encoding="ascii") as out:
                out.writelines(json.dumps(record_of(row, gpu, options)) + "\n" for row in found)
    is_good = print_table(rows) and not any(note.startswith("FAILED") for note in notes)
    peers = "; ".join(sorted({row.peer for row in rows}))
    print("\n".join([*notes, f"{time.perf_counter() - begin:.0f} s in all; {gpu}; {peers}"]))
    return 0 if is_good else 1


if __name__ == "__main__":
    sys.exit(main())
