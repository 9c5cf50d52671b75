"""The command line: python3 -m wsgemm.plot. Exit code 0 if a picture was drawn, 1 if none was, 2 if the options make no sense."""

from __future__ import annotations

import argparse
import pathlib
import sys

from ._draw import draw
from ._pictures import NAMES
from ._results import ResultsError, read
from ._style import MissingMatplotlib


def _say(line: str) -> None:
    print("wsgemm: plot: " + " ".join(line.split()), file=sys.stderr)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python3 -m wsgemm.plot", description="Draws measurements as PNG and SVG.")
    parser.add_argument("--results", type=pathlib.Path, default=pathlib.Path("bench/results"), metavar="FOLDER",
                        help="holds <device>/<suite>.jsonl (default: bench/results)")
    parser.add_argument("--out", type=pathlib.Path, required=True, metavar="DIR", help="pictures go to DIR/<device>/")
    parser.add_argument("--device", help="only this folder of the results")
    parser.add_argument("--only", default=",".join(NAMES), metavar="NAME,...", help=f"of: {', '.join(NAMES)}")
    options = parser.parse_args(arguments)
    names = options.only.split(",")
    unknown = [name for name in names if name not in NAMES]
    if unknown:
        parser.error(f"there is no picture '{unknown[0]}'; there are {', '.join(NAMES)}")
    try:
        written = draw(read(options.results, options.device), options.out, names, _say)
    except (ResultsError, MissingMatplotlib, OSError) as error:
        _say(str(error))
        return 1
    for path in written:
        print(path)
    if not written:
        _say("nothing was drawn")
    return 0 if written else 1


if __name__ == "__main__":
    sys.exit(main())
