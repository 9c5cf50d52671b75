#!/usr/bin/env python3
"""Checks the arrows between the rooms of the house (docs/design.md): what each may include and call, and that no files go round in a circle.

  check_rooms.py [OBJECTS]    OBJECTS: the folder of the library's object files; without it only the includes are checked

Exit status 1 if an arrow is not allowed or a circle is found; each is printed.
"""

import collections
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent

# Room: the folder it stands for, and the rooms whose headers and functions it may use. Each may use itself and the public header.
ROOMS = {
    "library": ("src/library.c", {"core", "tune", "cpu", "cuda"}),
    "api": ("src/api", {"core", "ops", "tune"}),
    "ops": ("src/ops", {"core"}),
    "core": ("src/core", set()),
    "tune": ("src/tune", {"core"}),
    "cpu": ("src/cpu", {"core", "tune", "kernels"}),
    "kernels": ("src/cpu/kernels", {"core"}),
    "blas": ("src/blas", set()),
    "cublas": ("src/cublas", set()),
    "xla": ("src/xla", set()),
    "python": ("src/python", set()),
    "cuda": ("cuda/host", {"core", "tune", "shared", "sched", "rows"}),
    "shared": ("cuda/shared", {"core", "sched"}),
    "sched": ("cuda/sched", {"core", "shared", "ptx"}),
    "ptx": ("cuda/ptx", {"core", "shared"}),
    "rows": ("cuda/rows", {"core", "shared", "sched", "ptx", "mainloop", "epilogue", "device"}),
    "device": ("cuda/kernels", {"core", "shared", "sched", "ptx", "mainloop", "epilogue", "rows"}),
    "mainloop": ("cuda/mainloop", {"core", "shared", "ptx", "rows", "epilogue"}),
    "epilogue": ("cuda/epilogue", {"core", "shared", "ptx", "rows"}),
}


def room_of(path: str) -> str | None:
    found = [(len(folder), room) for room, (folder, _) in ROOMS.items() if path == folder or path.startswith(folder + "/")]
    return max(found)[1] if found else None


def files() -> list[str]:
    kinds = (".c", ".h", ".cu", ".cuh", ".def")
    found = [p for top in ("src", "cuda") for p in (ROOT / top).rglob("*") if p.suffix in kinds]
    return sorted(str(p.relative_to(ROOT)) for p in found if "cli" not in p.parts)


def included(path: str) -> list[str]:
    text = (ROOT / path).read_text()
    names = re.findall(r'^\s*#\s*include\s+"([^"]+)"', text, re.M)
    places = [ROOT / path, ROOT / "src/x", ROOT / "x"]
    result = []
    for name in names:
        for place in places:
            target = place.parent / name
            if target.exists():
                result.append(str(target.resolve().relative_to(ROOT)))
                break
    return result


def check_arrow(user: str, used: str, how: str, wrong: set[str]) -> None:
    a, b = room_of(user), room_of(used)
    if a and b and a != b and b not in ROOMS[a][1]:
        wrong.add(f"{user} {how} {used}: {a} > {b} is no arrow of the house")


def circles(graph: dict[str, set[str]]) -> list[list[str]]:
    """Strongly connected components of more than one node (Tarjan)."""
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    found = []

    def visit(node: str) -> None:
        index[node] = low[node] = len(index)
        stack.append(node)
        for other in sorted(graph.get(node, ())):
            if other not in index:
                visit(other)
                low[node] = min(low[node], low[other])
            elif other in stack:
                low[node] = min(low[node], index[other])
        if low[node] == index[node]:
            component = []
            while True:
                component.append(stack.pop())
                if component[-1] == node:
                    break
            if len(component) > 1:
                found.append(sorted(component))

    sys.setrecursionlimit(10000)
    for node in sorted(graph):
        if node not in index:
            visit(node)
    return found


def check_includes(wrong: set[str]) -> None:
    graph = {}
    for path in files():
        targets = included(path)
        graph[path] = set(targets) - {path}
        for target in targets:
            check_arrow(path, target, "includes", wrong)
    for component in circles(graph):
        wrong.add("headers include each other: " + ", ".join(component))


def symbols(path: pathlib.Path) -> tuple[set[str], set[str]]:
    """Defined and undefined global symbols of an object file."""
    text = subprocess.run(["nm", "-g", "-P", path], check=True, capture_output=True, text=True).stdout
    defined, undefined = set(), set()
    for line in text.splitlines():
        name, kind = line.split()[:2]
        (undefined if kind in "Uwv" else defined).add(name)
    return defined, undefined


def check_objects(folder: pathlib.Path, wrong: set[str]) -> int:
    sources = {}
    for path in sorted(folder.rglob("*.o")):
        source = str(path.relative_to(folder))[: -len(".o")]
        if room_of(source) and (ROOT / source).exists():  # else it is left over from an earlier build
            sources[source] = symbols(path)
    owner = {name: source for source, (defined, _) in sources.items() for name in defined}
    graph = collections.defaultdict(set)
    for source, (_, undefined) in sources.items():
        for name in undefined & owner.keys():
            if name.startswith("wsgemm_"):
                continue  # the public interface is anybody's
            used = owner[name]
            # What the core asks of the library as a whole (core/start.h, the tables of core/backend.h) is given by library.c.
            if used == "src/library.c":
                continue
            graph[source].add(used)
            check_arrow(source, used, f"needs {name} of", wrong)
    for component in circles(graph):
        wrong.add("files need each other's functions: " + ", ".join(component))
    return len(sources)


def main() -> int:
    wrong: set[str] = set()
    check_includes(wrong)
    n_objects = check_objects(pathlib.Path(sys.argv[1]), wrong) if len(sys.argv) > 1 else 0
    for line in sorted(wrong):
        print(line)
    if len(sys.argv) > 1 and n_objects < 20:
        print(f"{sys.argv[1]}: only {n_objects} object files of the library's rooms")
        return 1
    print(f"rooms: {len(files())} files, {n_objects} objects, {len(wrong)} wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
