"""The ctypes declarations against include/wsgemm.h, as a C compiler reads it: they cannot drift apart unseen."""

import ctypes
import os
import pathlib
import re
import shutil
import subprocess

import pytest
from wsgemm import _lib

INCLUDE = pathlib.Path(__file__).resolve().parents[2] / "include"
CC = os.environ.get("CC", "cc")

ENUMS = {
    "status": _lib.Status,
    "layout": _lib.Layout,
    "op": _lib.Op,
    "uplo": _lib.Uplo,
    "diag": _lib.Diag,
    "side": _lib.Side,
    "type": _lib.Type,
    "math": _lib.Math,
    "ragged": _lib.Ragged,
    "offload": _lib.Offload,
    "policy": _lib.Policy,
    "scalar_mode": _lib.ScalarMode,
    "epilogue": _lib.Epilogue,
    "bias": _lib.Bias,
    "operand": _lib.Operand,
    "routine": _lib.Routine,
}
STRUCTS = {
    "cfloat": _lib.CFloat,
    "cdouble": _lib.CDouble,
    "scalar": _lib.Scalar,
    "gemm_desc": _lib.GemmDesc,
    "level3_desc": _lib.Level3Desc,
    "grouped_desc": _lib.GroupedDesc,
    "autotune_step": _lib.AutotuneStep,
    "autotune_result": _lib.AutotuneResult,
    "autotune_options": _lib.AutotuneOptions,
    "kernel_info": _lib.KernelInfo,
}

VALUES = {
    "void": None,
    "int": ctypes.c_int,
    "int64_t": ctypes.c_int64,
    "size_t": ctypes.c_size_t,
    "float": ctypes.c_float,
    "double": ctypes.c_double,
    "wsgemm_logger": _lib.Logger,
    "wsgemm_progress": _lib.Progress,
    **{f"wsgemm_{name}": ctypes.c_int for name in ENUMS},
    **{f"wsgemm_{name}": struct for name, struct in STRUCTS.items()},
}
POINTERS = {
    "char *": ctypes.c_char_p,
    "wsgemm_gemm_desc *": ctypes.c_char_p,  # passed as packed bytes
    "wsgemm_level3_desc *": ctypes.c_char_p,
    "wsgemm_grouped_desc *": ctypes.POINTER(_lib.GroupedDesc),
    "wsgemm_autotune_options *": ctypes.POINTER(_lib.AutotuneOptions),
    "wsgemm_kernel_info *": ctypes.POINTER(_lib.KernelInfo),
    "wsgemm_handle **": ctypes.POINTER(ctypes.c_void_p),
    "wsgemm_packed **": ctypes.POINTER(ctypes.c_void_p),
    "void **": ctypes.POINTER(ctypes.c_void_p),
    **{f"{name} *": ctypes.POINTER(ctypes.c_int) for name in ("int", "wsgemm_policy", "wsgemm_math", "wsgemm_offload")},
    **{
        f"{name} *": ctypes.c_void_p
        for name in (
            "void",
            "size_t",
            "int64_t",
            "float",
            "double",
            *(f"wsgemm_{x}" for x in ("handle", "packed", "cfloat", "cdouble", "f16", "bf16")),
        )
    },
}

if shutil.which(CC) is None:
    pytest.skip(f"no C compiler {CC}", allow_module_level=True)


@pytest.fixture(scope="module")
def header():
    """The header after preprocessing, without attributes and in single spaces."""
    text = subprocess.run(
        [CC, "-E", "-P", "-I", INCLUDE, "-x", "c", "-"], input="#include <wsgemm.h>\n", capture_output=True, text=True, check=True
    ).stdout
    text = re.sub(r"__attribute__\s*\(\(visibility\(\"default\"\)\)\)", "", text)
    return re.sub(r"\s+", " ", text)


@pytest.fixture(scope="module")
def compiled(header, tmp_path_factory):
    """What the compiler says: {expression: value} for every enumerator, size and offset."""
    expressions = [name for names in enums_of(header).values() for name in names]
    for struct, fields in structs_of(header).items():
        expressions.append(f"sizeof(wsgemm_{struct})")
        expressions += [f"offsetof(wsgemm_{struct}, {field})" for field in fields]
        expressions += [f"sizeof(((wsgemm_{struct} *)0)->{field})" for field in fields]
    lines = "".join(f'  printf("%s=%lld\\n", "{x}", (long long)({x}));\n' for x in expressions)
    folder = tmp_path_factory.mktemp("header")
    source = folder / "values.c"
    source.write_text(
        f"#include <stddef.h>\n#include <stdio.h>\n#include <wsgemm.h>\nint main(void) {{\n{lines}  return 0;\n}}\n"
    )
    subprocess.run([CC, "-I", INCLUDE, "-o", folder / "values", source], check=True)
    output = subprocess.run([folder / "values"], capture_output=True, text=True, check=True).stdout
    return {name: int(value) for name, value in (line.rsplit("=", 1) for line in output.splitlines())}


def enums_of(header):
    found = re.findall(r"typedef enum wsgemm_(\w+) \{([^}]*)\} wsgemm_\w+ ?;", header)
    return {name: re.findall(r"\b(WSGEMM_\w+)", body) for name, body in found}


def structs_of(header):
    found = re.findall(r"typedef (?:struct|union) wsgemm_(\w+) \{([^}]*)\} wsgemm_\w+ ?;", header)
    return {name: re.findall(r"(\w+)(?:\[\d+\])?(?= ?[,;])", body) for name, body in found}


def functions_of(header):
    """{name: (result, [argument types])}, pointers as "type *" without const."""
    found = re.findall(r"(?<=[;}]) ?((?:const )?\w+(?: \*)?) ?\bwsgemm_(\w+)\(([^)]*)\) ?;", header)
    functions = {}
    for result, name, arguments in found:
        types = [] if arguments.strip() == "void" else [re.sub(r"\w+$", "", x.strip()) for x in arguments.split(",")]
        functions[name] = (plain(result), [plain(x) for x in types])
    return functions


def plain(c_type):
    name, stars = re.fullmatch(r"\s*(?:const )?(\w+) ?(\**)\s*", c_type).groups()
    return f"{name} {stars}" if stars else name


def declared_as(c_type):
    return POINTERS[c_type] if c_type in POINTERS else VALUES[c_type]


def test_the_header_was_read(header):
    assert len(enums_of(header)) >= 13 and len(structs_of(header)) >= 4 and len(functions_of(header)) >= 37


def test_enums(header, compiled):
    names = enums_of(header)
    assert names.keys() == ENUMS.keys()
    for enum, members in names.items():
        assert {name: compiled[name] for name in members} == {f"WSGEMM_{x.name}": x.value for x in ENUMS[enum]}, enum


def test_structs(header, compiled):
    fields = structs_of(header)
    assert fields.keys() == STRUCTS.keys()
    for name, struct in STRUCTS.items():
        assert fields[name] == [field[0] for field in struct._fields_], name
        assert compiled[f"sizeof(wsgemm_{name})"] == ctypes.sizeof(struct), name
        for field in fields[name]:
            described = getattr(struct, field)
            assert compiled[f"offsetof(wsgemm_{name}, {field})"] == described.offset, (name, field)
            assert compiled[f"sizeof(((wsgemm_{name} *)0)->{field})"] == described.size, (name, field)


def test_functions(header):
    functions = functions_of(header)
    assert functions.keys() == _lib.SIGNATURES.keys()
    for name, (result, arguments) in functions.items():
        expected = (declared_as(result), [declared_as(x) for x in arguments])
        assert _lib.SIGNATURES[name] == expected, name


def test_logger_type(header):
    assert re.search(r"typedef void \(\*wsgemm_logger\)\(void \*user, wsgemm_status status, const char \*message\) ?;", header)


def test_offload_progress_type(header):
    assert re.search(r"typedef int \(\*wsgemm_progress\)\(void \*user, double done\) ?;", header)


def test_progress_type(header):
    assert re.search(
        r"typedef int \(\*wsgemm_autotune_progress\)\(void \*user, const wsgemm_autotune_step \*step\) ?;", header
    )


def test_version():
    text = (INCLUDE / "wsgemm.h").read_text()
    numbers = [int(re.search(rf"define WSGEMM_VERSION_{part} (\d+)", text).group(1)) for part in ("MAJOR", "MINOR", "PATCH")]
    assert tuple(numbers[:2]) == _lib.API_VERSION
    assert _lib.library.wsgemm_version() == 10000 * numbers[0] + 100 * numbers[1] + numbers[2]


@pytest.mark.parametrize("kind", list(_lib.Type))
def test_packed_descriptor(kind):
    # struct_bytes, then a different number in every field.
    integers = list(range(101, 114))
    layout_to_epilogue, sizes = integers[:10], integers[10:]
    rest = list(range(201, 211))
    behind = [*range(301, 308), 5.5, *range(308, 312)]
    packed = _lib.DESC_FORMAT[kind].pack(_lib.DESC_BYTES, *layout_to_epilogue, *sizes, 1.5, 2.5, 3.5, 4.5, *rest)
    assert len(packed) == _lib.BASE_DESC_BYTES
    packed += _lib.REST_FORMAT.pack(*behind)
    assert len(packed) == _lib.DESC_BYTES
    desc = _lib.GemmDesc.from_buffer_copy(packed)
    names = [name for name, _ in _lib.GemmDesc._fields_]
    assert desc.struct_bytes == _lib.DESC_BYTES
    assert [getattr(desc, name) for name in names[1:14]] == integers
    assert [getattr(desc, name) for name in names[16:26]] == rest
    assert [getattr(desc, name) for name in names[26:]] == behind
    for scalar, (re_part, im_part) in ((desc.alpha, (1.5, 2.5)), (desc.beta, (3.5, 4.5))):
        if kind in (_lib.Type.F32, _lib.Type.F16, _lib.Type.BF16):
            assert scalar.s == re_part
        elif kind == _lib.Type.F64:
            assert scalar.d == re_part
        else:
            pair = scalar.c if kind == _lib.Type.C32 else scalar.z
            assert (pair.re, pair.im) == (re_part, im_part)


@pytest.mark.parametrize("kind", list(_lib.LEVEL3_FORMAT))
def test_packed_level3_descriptor(kind):
    enums, sizes, rest = list(range(101, 110)), [110, 111, 112], list(range(201, 211))
    packed = _lib.LEVEL3_FORMAT[kind].pack(_lib.LEVEL3_DESC_BYTES, *enums, *sizes, 1.5, 2.5, 3.5, 4.5, *rest)
    assert len(packed) == _lib.LEVEL3_DESC_BYTES
    desc = _lib.Level3Desc.from_buffer_copy(packed)
    names = [name for name, _ in _lib.Level3Desc._fields_]
    assert desc.struct_bytes == _lib.LEVEL3_DESC_BYTES
    assert [getattr(desc, name) for name in names[1:13]] == enums + sizes
    assert [getattr(desc, name) for name in names[15:]] == rest
    field = "sdcz"[kind]
    for scalar, parts in ((getattr(desc.alpha, field), (1.5, 2.5)), (getattr(desc.beta, field), (3.5, 4.5))):
        assert (scalar if field in "sd" else (scalar.re, scalar.im)) == (parts[0] if field in "sd" else parts)
