"""The recipe of docs/distributed.md: a product of Dask arrays, block by block through wsgemm, on a local cluster."""

import pathlib
import re

import numpy as np
import pytest

da = pytest.importorskip("dask.array")
distributed = pytest.importorskip("distributed")

RECIPE = pathlib.Path(__file__).resolve().parents[2] / "docs" / "distributed.md"


@pytest.fixture(scope="module")
def matmul():
    """The function `matmul` of the document's Python block, as it is there."""
    if not RECIPE.exists():
        pytest.skip("the documents are not here")
    block = next(b for b in re.findall(r"```python\n(.*?)```", RECIPE.read_text(), re.DOTALL) if "def matmul" in b)
    names = {}
    exec(compile(block.split("# On a cluster")[0], str(RECIPE), "exec"), names)
    return names["matmul"]


@pytest.fixture(scope="module")
def client():
    with distributed.LocalCluster(n_workers=2, threads_per_worker=1, processes=False, dashboard_address=None) as cluster:
        with distributed.Client(cluster) as client:
            yield client


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.complex128])
def test_product_of_blocks(matmul, client, dtype):
    rng = np.random.default_rng(1)
    a = rng.integers(-3, 4, (130, 170)).astype(dtype)
    b = rng.integers(-3, 4, (170, 90)).astype(dtype)
    c = matmul(da.from_array(a, chunks=(50, 64)), da.from_array(b, chunks=(64, 40)))
    assert c.dtype == dtype and c.shape == (130, 90)
    assert (c.compute() == a @ b).all()  # small integers: exact in any order


def test_one_block_and_bits(matmul, client):
    rng = np.random.default_rng(2)
    a, b = rng.standard_normal((64, 64)), rng.standard_normal((64, 64))
    blocks = [matmul(da.from_array(a, chunks=n), da.from_array(b, chunks=n)).compute() for n in (64, 16, 16)]
    assert np.allclose(blocks[0], a @ b)
    assert (blocks[1] == blocks[2]).all()  # the same bits on every run
