"""The command `wsgemm`, also as `python -m wsgemm`: the program of the C build that lies in this package, in this process's place."""

from __future__ import annotations

import os
import sys


def main() -> None:
    # An editable install has two folders: the sources' and the one that the command was built into.
    for folder in sys.modules[__package__ or "wsgemm"].__path__:
        program = os.path.join(folder, "bin", "wsgemm")
        if os.access(program, os.X_OK):
            os.environ.setdefault("WSGEMM_PYTHON", sys.executable)  # draws the pictures of `wsgemm bench --plot`
            os.execv(program, ["wsgemm", *sys.argv[1:]])
    sys.exit("wsgemm: the command is not in this package: it comes with `pip install` of the sources, not with PYTHONPATH")


if __name__ == "__main__":
    main()
