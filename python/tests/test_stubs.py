"""The stub __init__.pyi says what the functions are: names, parameters, defaults; and no result is Any."""

import ast
import inspect
import pathlib

import pytest
import wsgemm

TREE = ast.parse((pathlib.Path(wsgemm.__file__).parent / "__init__.pyi").read_text())
CALLS = {node.name: [x for x in node.body if isinstance(x, ast.FunctionDef)] for node in TREE.body if isinstance(node, ast.ClassDef)}


def shown(node):
    """The definitions of each public name: several if it is overloaded."""
    found = {}
    for x in TREE.body:
        if isinstance(x, ast.FunctionDef):
            found.setdefault(x.name, []).append(x)
        elif isinstance(x, ast.AnnAssign):
            kind = x.annotation.value if isinstance(x.annotation, ast.Subscript) else x.annotation
            found[x.target.id] = CALLS.get(kind.id, [])
        elif isinstance(x, ast.ImportFrom) and x.level:
            found.update({alias.asname: [] for alias in x.names})
    return found


SHOWN = shown(TREE)
FUNCTIONS = [name for name in wsgemm.__all__ if SHOWN.get(name)]


STARS = {inspect.Parameter.VAR_POSITIONAL: "*", inspect.Parameter.VAR_KEYWORD: "**"}


def parameters_of(definition):
    arguments = definition.args
    names = [x.arg for x in arguments.args if x.arg != "self"]
    defaults = [None] * (len(names) - len(arguments.defaults)) + arguments.defaults
    rest = [(f"*{x.arg}", None, False) for x in (arguments.vararg,) if x]
    rows = [*zip(names, defaults, [False] * len(names)), *rest, *((x.arg, y, True) for x, y in zip(arguments.kwonlyargs, arguments.kw_defaults))]
    rows += [(f"**{x.arg}", None, False) for x in (arguments.kwarg,) if x]
    return [(name, None if default is None else (ast.literal_eval(default),), is_keyword) for name, default, is_keyword in rows]


def test_all_names_are_there():
    assert {name for name in SHOWN if not name.startswith("_")} == set(wsgemm.__all__)
    assert len(FUNCTIONS) > 20


@pytest.mark.parametrize("name", FUNCTIONS)
def test_parameters_are_those_of_the_function(name):
    own = [
        (STARS.get(x.kind, "") + x.name, None if x.default is x.empty else (x.default,), x.kind == x.KEYWORD_ONLY)
        for x in inspect.signature(getattr(wsgemm, name)).parameters.values()
    ]
    for definition in SHOWN[name]:
        told = parameters_of(definition)
        if len(SHOWN[name]) > 1 and any(row == ("out", None, False) for row in told):  # that with an out
            told = [("out", (None,), False) if row[0] == "out" else row for row in told]
        assert told == own


def test_no_result_is_any():
    every = [definition for definitions in [*SHOWN.values(), *CALLS.values()] for definition in definitions]
    assert not [x.name for x in every if "Any" in ast.unparse(x.returns)]
    for kind in (wsgemm.Handle, wsgemm.Packed, wsgemm.KernelInfo, wsgemm.TuningResult, wsgemm.TuningStep):
        for name, value in vars(kind).items():
            if isinstance(value, property) and not name.startswith("_"):
                assert "Any" not in value.fget.__annotations__["return"], (kind, name)


@pytest.mark.parametrize("module", ["__init__", "jax/__init__", "torch/__init__"])
def test_modules_fit_a_terminal(module):
    """Read, not imported: jax and torch need not be there."""
    text = (pathlib.Path(wsgemm.__file__).parent / f"{module}.py").read_text()
    assert all(len(line) <= 100 for line in ast.get_docstring(ast.parse(text)).splitlines())


def test_docstrings_fit_a_terminal():
    objects = [getattr(wsgemm, name) for name in wsgemm.__all__]
    objects += [member for x in objects if inspect.isclass(x) for name, member in vars(x).items() if not name.startswith("_")]
    for x in objects:
        # of a number or a name the documents are its class's
        lines = (inspect.getdoc(x) or "").splitlines() if callable(x) or isinstance(x, property) else []
        assert all(len(line) <= 100 for line in lines), x
