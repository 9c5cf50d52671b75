#!/usr/bin/env python3
"""Makes src/tune/tuned.def, the table of tuned settings that comes with the library, of files that `wsgemm autotune --out FILE` has written.

    tuned_table.py FILE... > src/tune/tuned.def

Of the same device, version, kind and shape the line of the last file is taken. Lines are taken as they are, with their checksums.
"""

import pathlib
import sys

NOT_OF_THE_KEY = ("row=", "policy=", "coarse=", "order=", "quantum=", "path=", "mc=", "nc=", "threads=", "before_us=", "after_us=", "crc=")


def key(line):
    routine, quoted, rest = line.split('"', 2)
    return (quoted, routine.split()[0], *(word for word in rest.split() if not word.startswith(NOT_OF_THE_KEY)))


def order(words):
    """Sizes by number, so that the table can be read."""
    return tuple((len(word), word) if "=" in word and word.split("=")[1].isdigit() else (0, word) for word in words)


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    lines = {}
    for name in sys.argv[1:]:
        for line in pathlib.Path(name).read_text(encoding="utf-8").splitlines():
            if line and not line.startswith("#"):
                lines[key(line)] = line
    print("/* Made by tools/tuned_table.py of what `wsgemm autotune` found on these devices: lines of tuning files (line.c). */")
    for words in sorted(lines, key=order):
        text = lines[words].replace("\\", "\\\\").replace('"', '\\"')
        print(f'"{text}",')


if __name__ == "__main__":
    main()
