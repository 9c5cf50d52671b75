"""Pictures of measurements: what `wsgemm bench --results` and the GPU's bench programs left, drawn as PNG and SVG.

    python3 -m wsgemm.plot --results bench/results --out DIR [--device NAME] [--only NAME,...]

Importable without matplotlib, which only drawing needs: pip install matplotlib.

_pictures.py holds the one table of pictures; _results.py reads the files, _odd.py leaves out what cannot be drawn, _caption.py says
where figures come from, _ceilings.py what the machines can do at most, _style.py what all pictures have in common; the other files
draw one kind of picture each.
"""

from ._draw import draw
from ._pictures import PICTURES, Picture
from ._results import Device, ResultsError, read
from ._style import MissingMatplotlib

__all__ = ["PICTURES", "Device", "MissingMatplotlib", "Picture", "ResultsError", "draw", "read"]
