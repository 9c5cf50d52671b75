"""wsgemm.torch.patch() has the rows of the cuBLAS interposer's table. Read as texts, since torch is seldom there."""

import ast
import pathlib
import re

import pytest

SOURCES = pathlib.Path(__file__).parents[2]
TABLE, PATCH = SOURCES / "src/cublas/wins.def", SOURCES / "python/wsgemm/torch/_patch.py"
NAMES = {"GEMM": "WINS", "GEMM_EPILOGUE": "WINS_OF_EPILOGUES"}
TYPES = {"F32": "float32", "C32": "complex64"}


def test_patch_has_the_table_of_the_library():
    if not TABLE.exists():
        pytest.skip("not beside the sources")
    rows = re.findall(r"^WIN\((GEMM|GEMM_EPILOGUE), (F32|C32), DEFAULT, (\d+), (\d+), ([\d.e]+), ANY, \d+\)", TABLE.read_text(), re.MULTILINE)
    ours = [
        (node.targets[0].id, win.args[0].attr, *(ast.literal_eval(number) for number in win.args[1:]))
        for node in ast.parse(PATCH.read_text()).body
        if isinstance(node, ast.Assign) and node.targets[0].id in NAMES.values()
        for win in node.value.elts
    ]
    assert rows and ours == [(NAMES[name], TYPES[kind], *map(float, numbers)) for name, kind, *numbers in rows]
