#!/usr/bin/env python3
"""Keeps the code map of docs/design.md: one line for every file of src and cuda, between its two markers.

Without an option it brings the map up to date: a new file gets the first sentence of its own head comment, a file that moved
keeps its line, the line of a file that is gone goes. `--check` changes nothing and exits 1 if a file of src or cuda has no line, or
more than one, or if a line names no file.
"""

import argparse
import os
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
FOLDERS = ("src", "cuda")
MARKED = re.compile(r"(<!-- code map -->\n)(.*?)(<!-- /code map -->)", re.DOTALL)
ROW = re.compile(r"^\| `([^`]+)` \| (.*) \|$", re.MULTILINE)
HEAD = re.compile(r"^### `([^`]+)`: (.*)$", re.MULTILINE)


def files_on_disk():
    found = []
    for folder in FOLDERS:
        for place, folders, names in os.walk(ROOT / folder):
            folders[:] = [name for name in folders if not name.startswith((".", "__"))]
            found += [(pathlib.Path(place) / name).relative_to(ROOT).as_posix() for name in names if not name.startswith(".")]
    return sorted(found)


def own_words(path):
    """The first sentence of the file's head comment, without the file's name."""
    text = (ROOT / path).read_text(errors="replace")[:2000]
    comment = re.search(r"/\*(.*?)\*/", text, re.DOTALL)
    words = comment[1] if comment else "\n".join(line[1:] for line in text.splitlines() if line.startswith("#"))
    words = re.sub(r"\s*\n\s*\*?\s*", " ", words).strip()
    words = re.sub(r"^\S+\.\w+ - ", "", words)
    return re.split(r"(?<=[.;]) ", words)[0].rstrip(".:;").replace("|", r"\|") or "?"


def faults(rows, disk):
    named = [path for path, _ in rows]
    yield from (f"{path} has no line in the code map" for path in disk if path not in named)
    yield from (f"the code map names {path}, which does not exist" for path in sorted(set(named)) if path not in disk)
    yield from (f"{path} has {named.count(path)} lines in the code map" for path in sorted(set(named)) if named.count(path) > 1)
    yield from (f"{path} has an empty line in the code map" for path, words in rows if not words.strip(" ?"))


def updated(rows, heads, disk):
    known = dict(rows)
    gone = [path for path in known if path not in disk]
    for path in disk:
        if path in known:
            continue
        moved = [old for old in gone if pathlib.PurePath(old).name == pathlib.PurePath(path).name]
        known[path] = known[moved[0]] if len(moved) == 1 else own_words(path)
    order = list(heads)
    folders = {str(pathlib.PurePath(path).parent) for path in disk}
    lines = []
    for folder in [f for f in order if f in folders] + sorted(folders - set(order)):
        lines += [f"### `{folder}`: {heads.get(folder, '?')}", "", "| file | what it does |", "|:--|:--|"]
        lines += [f"| `{path}` | {known[path]} |" for path in disk if str(pathlib.PurePath(path).parent) == folder]
        lines.append("")
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--document", type=pathlib.Path, default=ROOT / "docs" / "design.md")
    options = parser.parse_args()
    text = options.document.read_text()
    marked = MARKED.search(text)
    if not marked:
        sys.exit(f"{options.document} has no code map")
    rows, heads, disk = ROW.findall(marked[2]), dict(HEAD.findall(marked[2])), files_on_disk()
    if options.check:
        found = list(faults(rows, disk))
        if len(disk) < 100:
            found.append(f"only {len(disk)} files found in {' and '.join(FOLDERS)}")
        for fault in found:
            print(fault, file=sys.stderr)
        if not found:
            print(f"{len(disk)} files, each with its line")
        return 1 if found else 0
    options.document.write_text(text[: marked.start(2)] + updated(rows, heads, disk) + text[marked.end(2) :])
    return 0


if __name__ == "__main__":
    sys.exit(main())
