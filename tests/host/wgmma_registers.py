#!/usr/bin/env python3
"""Looks at the machine code of the images for cc 9.0: no instruction writes a register that a wgmma in flight reads A from.

    wgmma_registers.py SOURCE_DIR IMAGE_DIR

ptxas takes the registers of A for free once the instruction is issued (CUDA 13.0), though the units read them until the wait; which
ones it gives away then is its allocation's luck (bench/NOTES.md). Instructions are looked at in the order of the code, from each HGMMA
with A in registers to the WARPGROUP.DEPBAR that waits for its group; of loops that is one turn. Wants nvdisasm and cuobjdump, of the
toolkit or of PyPI (tools/setup.sh); exits 77 without them, or where the images hold no code.
"""

import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

INSTRUCTION = re.compile(r"\s+/\*([0-9a-f]{4,6})\*/\s+(?:\{\s*)?(?:@!?U?P\w+ )?([A-Z][\w.]*)\s*(.*?);")
FUNCTION = re.compile(r"\.text\.(\w+):")
# What has no register for a result in front.
WITHOUT_RESULT = ("ST", "STS", "STG", "RED", "SYNCS", "ISETP", "FSETP", "DSETP", "PLOP3", "BRA", "BAR", "BSSY", "BSYNC", "UTMALDG", "WARPSYNC")
IMAGES = ("instantiate_tf32m", "instantiate_tf32w", "instantiate_groups")
LEAST_FUNCTIONS = 100  # with A in registers: rows of tf32m.def and tf32w.def, of four pairs of ops each, and those for groups


def written_by(operation, operands):
    """Registers that it writes, as far as an overlap with A's can be told: those of its first operand."""
    found = re.match(r"(?:U?P\w+, )?R(\d+)", operands)
    name = operation.split(".")[0]
    if not found or name in WITHOUT_RESULT:
        return set()
    width = 4 if ".128" in operation or name == "LDSM" else 2 if ".64" in operation or ".WIDE" in operation or name == "CS2R" else 1
    return set(range(int(found[1]), int(found[1]) + width))


def faults_of(code):
    """(functions with A in registers, [(function, address of the HGMMA, address of what writes, its text)])"""
    function, in_flight, functions, faults = None, [], set(), []  # in_flight: groups, of which each is [(address, registers)]
    for line in code.splitlines():
        begins = FUNCTION.match(line)
        if begins:
            function, in_flight = begins[1], []
        found = INSTRUCTION.match(line)
        if not found:
            continue
        address, operation, operands = found.groups()
        if operation.startswith("HGMMA"):
            of_a = re.match(r"R\d+, R(\d+),", operands)
            if not in_flight or in_flight[-1][1]:
                in_flight.append(([], False))
            if of_a:
                functions.add(function)
                in_flight[-1][0].append((address, set(range(int(of_a[1]), int(of_a[1]) + 4))))
            if "gsb0" in operands:
                in_flight[-1] = (in_flight[-1][0], True)
        elif "DEPBAR" in operation and "gsb0" in operands:
            n_left = int(operands.split(",")[-1].strip(), 16)
            in_flight = in_flight[len(in_flight) - n_left:] if n_left else []
        elif in_flight and any(group for group, _ in in_flight):
            written = written_by(operation, operands)
            faults += [(function, at, address, f"{operation} {operands}") for group, _ in in_flight for at, registers in group if registers & written]
    return functions, faults


SAMPLE = """.text.sample:
        /*0100*/                   HGMMA.64x128x8.F32.TF32 R24, R88, gdesc[UR8], R24, gsb0 ;
        /*0110*/              @!P1 LDS.64 R{first}, [R6] ;
        /*0120*/                   WARPGROUP.DEPBAR.LE gsb0, 0x0 ;
        /*0130*/                   LDS R88, [R6] ;
"""


def tool(name, source):
    found = shutil.which(name) or shutil.which(name, path="/usr/local/cuda/bin")
    of_python = sorted(source.glob(f".venv/lib/python*/site-packages/nvidia/*/bin/{name}"))
    return found or (str(of_python[-1]) if of_python else None)


def main():
    source, images = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
    if len(faults_of(SAMPLE.format(first=87))[1]) != 1 or faults_of(SAMPLE.format(first=86))[1] or faults_of(SAMPLE.format(first=92))[1]:
        print("the sample's fault is not found, or one that it has not")
        return 1
    extract, disassemble = tool("cuobjdump", source), tool("nvdisasm", source)
    if not extract or not disassemble:
        print("skipped: no cuobjdump, or no nvdisasm")
        return 77
    functions, faults = set(), []
    with tempfile.TemporaryDirectory() as scratch:
        for image in IMAGES:
            subprocess.run([extract, "-arch", "sm_90a", "-xelf", "all", str((images / f"{image}.fatbin").resolve())], cwd=scratch, stdout=subprocess.DEVNULL,
                           stderr=subprocess.DEVNULL, check=False)
        for cubin in sorted(pathlib.Path(scratch).glob("*.cubin")):
            code = subprocess.run([disassemble, "-c", str(cubin)], stdout=subprocess.PIPE, check=True, text=True).stdout
            more = faults_of(code)
            functions |= more[0]
            faults += more[1]
    if not functions:
        print("skipped: no code for cc 9.0")
        return 77
    for fault in faults[:20]:
        print("{}: of the HGMMA at {} {} writes A's registers: {}".format(*fault))
    print(f"{len(functions)} functions with A in registers, {len(faults)} writes of them in flight")
    return 1 if faults or len(functions) < LEAST_FUNCTIONS else 0


if __name__ == "__main__":
    sys.exit(main())
