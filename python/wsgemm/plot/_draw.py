"""Goes through the table of pictures for each device. What cannot be drawn for want of data is named, and left out."""

from __future__ import annotations

import pathlib
from collections.abc import Callable, Iterable

from ._pictures import PICTURES, Picture
from ._results import Device, NoData
from ._style import in_style


def _draw_one(picture: Picture, device: Device, out: pathlib.Path) -> list[pathlib.Path]:
    if not any(device.suites.get(suite) for suite in picture.suites):
        suites = [suite for suite in picture.suites if device.has_gpu or not suite.startswith("gpu_")]
        raise NoData(f"there is no {' or '.join(f'{suite}.jsonl' for suite in suites)}")
    try:
        drawings = picture.draw(device)
    except (KeyError, TypeError, ValueError) as error:
        raise NoData(f"a record lacks something, or is odd ({type(error).__name__}: {error})") from error
    folder = out / device.name
    folder.mkdir(parents=True, exist_ok=True)
    return [path for drawing in drawings for path in drawing.save(folder / picture.file)]


def draw(
    devices: Iterable[Device], out: pathlib.Path, names: Iterable[str], say_missing: Callable[[str], None]
) -> list[pathlib.Path]:
    """Draws the pictures of these names for each device into out/<device>/ and returns the files written.

    Calls say_missing with one line for each picture that is left out. Raises MissingMatplotlib before anything is written.
    """
    wanted = list(names)
    written = []
    with in_style():
        for device in devices:
            for picture in PICTURES:
                if picture.name not in wanted or not picture.fits(device):
                    continue
                try:
                    written += _draw_one(picture, device, out)
                except NoData as error:
                    say_missing(f"{device.name}: no picture {picture.name}: {error}")
    return written
